"""The guarantee as a parameter: searched over, cloned, set, and kept as it was promised."""

from __future__ import annotations

import dataclasses
import functools
import inspect

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, ParameterGrid

from fdadp import AdditiveFunctionOnFunction, Privacy, PrivateFPCA, PrivateMean, simulate_affr
from fdadp.errors import FdadpError, InputError, NotAccountedWarning, PrivacyError
from fdadp.privacy import Budget
from fdadp.privacy.settings import privacy_from_json, privacy_to_json

BOUNDS = {"X": (-4.5, 4.5), "Y": (-8, 8)}
FOLDS = KFold(2)


@functools.cache
def curves(n=120):
    sim = simulate_affr(1, n, 0, n_points=15)
    return sim.X.data_matrix[..., 0], sim.Y.data_matrix[..., 0]


def model(**settings):
    privacy = Privacy(**{"epsilon": 4.0, "delta": 1e-6, "n": 120, "random_state": 0} | settings)
    return AdditiveFunctionOnFunction(privacy=privacy, bounds=BOUNDS, progress=False)


# --- searches ---


@pytest.mark.filterwarnings("ignore::fdadp.errors.FdadpWarning")
def test_a_search_over_epsilon_fits_each_and_changes_nothing_else():
    estimator = model()
    before = estimator.privacy
    search = GridSearchCV(estimator, {"privacy__epsilon": [2.0, 50.0]}, cv=FOLDS, error_score="raise").fit(*curves())
    assert search.best_params_ == {"privacy__epsilon": 50.0}
    assert search.best_estimator_.ledger_.epsilon == search.best_estimator_.privacy_.epsilon == 50.0
    assert estimator.privacy is before and before.epsilon == 4.0


@pytest.mark.filterwarnings("ignore::fdadp.errors.FdadpWarning")
def test_a_search_may_compare_with_no_privacy():
    """Bounds and mechanism are then not used, as the sizes of the bases are not in a private fit."""
    private = model().privacy
    search = GridSearchCV(model(), {"privacy": [private, None]}, cv=FOLDS, error_score="raise").fit(*curves())
    assert search.best_params_ == {"privacy": None}
    assert search.best_estimator_.ledger_ is None
    plain = AdditiveFunctionOnFunction(progress=False).fit(*curves())
    np.testing.assert_array_equal(search.best_estimator_.coef_, plain.coef_)


def test_grids_over_all_that_a_guarantee_has():
    grid = ParameterGrid({"privacy__epsilon": [1.0, 2.0], "privacy__delta": [None, 1e-6], "privacy__n": [60, None]})
    seen = [clone(model()).set_params(**point).privacy for point in grid]
    assert {(p.epsilon, p.delta, p.n) for p in seen} == {
        (e, d, n) for e in (1.0, 2.0) for d in (None, 1e-6) for n in (60, None)
    }
    names = set(inspect.signature(Privacy).parameters)
    assert {f"privacy__{name}" for name in names} <= model().get_params().keys()
    assert set(model().privacy.get_params()) == names


@pytest.mark.filterwarnings("ignore::fdadp.errors.PublicInputWarning", "ignore::fdadp.errors.ExtrapolationWarning")
def test_fits_of_a_search_are_told_to_add_up_as_ever():
    """Without a common budget, and with noise that could be released."""
    with pytest.warns(NotAccountedWarning):
        GridSearchCV(model(random_state=None), {"privacy__epsilon": [20.0]}, cv=FOLDS, refit=False).fit(*curves())


@pytest.mark.filterwarnings("ignore::fdadp.errors.PublicInputWarning")
def test_fits_of_a_search_share_a_budget_until_it_is_spent():
    budget = Budget(8.0, 1e-6)
    asked = GridSearchCV(
        model(budget=budget, dataset="ours", epsilon=6.0), {"privacy__epsilon": [6.0]}, cv=FOLDS, error_score="raise"
    )
    with pytest.raises(PrivacyError, match="share must be at most what the budget has left"):
        asked.fit(*curves())
    assert budget.spent_epsilon == pytest.approx(6.0, rel=1e-6)


# --- what may change, and what may not ---


def test_attributes_cannot_be_assigned_and_parameters_are_changed_together_or_not_at_all():
    privacy = Privacy(1.0, 1e-6, n=100)
    with pytest.raises(dataclasses.FrozenInstanceError):
        privacy.epsilon = 2.0
    for bad, error in (({"n": 50, "epsilon": -1.0}, PrivacyError), ({"n": 50, "colour": 1}, InputError)):
        with pytest.raises(
            error, match=r"epsilon must be|colour is no parameter of Privacy, which has epsilon, delta, n"
        ):
            privacy.set_params(**bad)
        assert privacy == Privacy(1.0, 1e-6, n=100)
    assert privacy.set_params(n=50, epsilon=np.float32(2.0)) is privacy
    assert privacy == Privacy(2.0, 1e-6, n=50) and type(privacy.epsilon) is float
    with pytest.raises(TypeError, match="unhashable"):
        hash(privacy)


def test_an_estimator_changes_a_copy():
    shared = Privacy(1.0, n=100)
    one, two = (AdditiveFunctionOnFunction(privacy=shared, bounds=BOUNDS) for _ in range(2))
    one.set_params(privacy__epsilon=3.0, bounds=None)
    three = PrivateMean().set_params(privacy=shared, privacy__epsilon=4.0)
    assert [m.privacy.epsilon for m in (one, two, three)] == [3.0, 1.0, 4.0]
    assert shared.epsilon == 1.0 and two.privacy is shared


@pytest.mark.parametrize("kind", [AdditiveFunctionOnFunction, PrivateMean, PrivateFPCA])
def test_a_fit_keeps_what_it_promised(kind):
    pair = kind is AdditiveFunctionOnFunction
    privacy = Privacy(8.0, 1e-6, n=120, random_state=0)
    fitted = kind(privacy=privacy, bounds=BOUNDS if pair else BOUNDS["Y"]).fit(*(curves() if pair else curves()[1:]))
    privacy.set_params(epsilon=0.1)
    assert fitted.privacy.epsilon == 0.1  # of the next fit
    assert fitted.privacy_.epsilon == fitted.ledger_.epsilon == 8.0


def test_summaries_have_their_own_parameters_and_no_others():
    own = {"privacy", "bounds", "prior", "allow_useless"}
    assert PrivateMean().get_params().keys() == own
    assert PrivateFPCA().get_params().keys() == own | {"n_components"}


def test_clones_and_copies_share_the_budget():
    budget = Budget(2.0)
    privacy = Privacy(1.0, budget=budget)
    assert clone(privacy) == privacy and clone(privacy) is not privacy
    assert clone(AdditiveFunctionOnFunction(privacy=privacy)).privacy.budget is budget


def test_texts_say_what_was_set():
    assert repr(Privacy(1.0)) == "Privacy(epsilon=1.0)"
    assert (
        repr(Privacy(1.0, 1e-6, n=3000, adjacency="replace"))
        == "Privacy(epsilon=1.0, delta=1e-06, n=3000, adjacency='replace')"
    )
    text = repr(AdditiveFunctionOnFunction(privacy=Privacy(1.0, n=9), bounds=BOUNDS))
    assert "privacy=Privacy(epsilon=1.0, n=9)" in " ".join(text.split())


def test_a_file_holds_all_but_the_budget():
    privacy = Privacy(
        1.0, 1e-6, n=90, unit="row", labels="public", dataset="d", budget=Budget(3.0, 1e-6), random_state=1
    )
    stored = privacy_to_json(privacy)
    assert stored.keys() == privacy.get_params().keys() and stored["budget"] is None
    assert privacy_from_json(stored) == dataclasses.replace(privacy, budget=None)
    assert privacy_to_json(None) is None and privacy_from_json(None) is None


# --- bounds ---


@pytest.mark.parametrize("privacy", [None, Privacy(4.0, n=120)])
@pytest.mark.parametrize("bounds", [{"X": (1, 0), "Y": (0, 1)}, {"x": (0, 1)}, (0, 1), {"X": 3}, {"X": (0, np.inf)}])
def test_bounds_are_checked_with_and_without_privacy(privacy, bounds):
    with pytest.raises(FdadpError, match="bounds"):
        AdditiveFunctionOnFunction(privacy=privacy, bounds=bounds).fit(None, None)


@pytest.mark.parametrize("bounds", [None, {}, {"X": (-1, 1)}, {"X": (-1, 1), "Y": None}])
def test_a_private_fit_requires_both_and_an_ordinary_one_none(bounds):
    with pytest.raises(
        PrivacyError, match=r"bounds must give a public range for [XY], as in bounds=.*got None; a range"
    ):
        AdditiveFunctionOnFunction(privacy=Privacy(4.0, n=120), bounds=bounds).fit(None, None)
    AdditiveFunctionOnFunction(bounds=bounds, mechanism="moments", progress=False).fit(*curves())
    with pytest.raises(PrivacyError, match="mechanism must be one of dp-aff, moments, or an object"):
        AdditiveFunctionOnFunction(mechanism="published").fit(*curves())
