"""Mechanisms as objects: the names stand for them, estimators know none, files name them."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import pytest
from sklearn.base import clone

from fdadp import (
    DPAFF,
    AdditiveFunctionOnFunction,
    Privacy,
    PublicPrior,
    simulate_affr,
)
from fdadp.errors import FileFormatError, InputError, PrivacyError
from fdadp.private.public.tuned_constants import GAUSSIAN
from fdadp.private.release.mechanisms import (
    SHORT,
    MomentPerturbation,
    mechanism_of,
    params_from_json,
    params_to_json,
)
from fdadp.published import PublishedNoise

BOUNDS = {"X": (-4.5, 4.5), "Y": (-8, 8)}
PRIVATE = [DPAFF, MomentPerturbation]


@functools.cache
def curves(n=150):
    sim = simulate_affr(1, n, 0, n_points=15)
    return sim.X.data_matrix[..., 0], sim.Y.data_matrix[..., 0]


def model(mechanism, **settings):
    privacy = Privacy(4.0, 1e-6, n=150, random_state=0)
    return AdditiveFunctionOnFunction(privacy=privacy, bounds=BOUNDS, mechanism=mechanism, progress=False, **settings)


@pytest.mark.parametrize("kind", PRIVATE)
def test_a_name_stands_for_the_object_with_its_defaults(kind):
    assert SHORT[kind.name] is kind and mechanism_of(kind.name) == kind()
    named, given = model(kind.name).fit(*curves()), model(kind()).fit(*curves())
    np.testing.assert_array_equal(named.coef_, given.coef_)
    assert given.ledger_.mechanism == kind.name and str(named.ledger_) == str(given.ledger_)
    assert (given.moments_ is None) == (kind is not MomentPerturbation)


@pytest.mark.parametrize("kind", [*PRIVATE, PublishedNoise])
def test_they_are_frozen_parameters(kind):
    made = kind()
    assert repr(made) == f"{kind.__name__}()"
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.name = "another"
    with pytest.raises(TypeError):
        kind(None)  # keyword-only
    changed = {"sensitivity": "scaled"} if kind is PublishedNoise else {"allow_useless": True}
    estimator = model(made).set_params(**{f"mechanism__{name}": value for name, value in changed.items()})
    assert made == kind() and estimator.mechanism == kind(**changed) == clone(estimator).mechanism
    assert repr(estimator.mechanism) == f"{kind.__name__}({', '.join(f'{k}={v!r}' for k, v in changed.items())})"


@pytest.mark.parametrize("kind", PRIVATE)
def test_settings_are_checked_when_they_are_made(kind):
    with pytest.raises(InputError, match=r"prior must be a PublicPrior( or 'persistence')?, got int"):
        kind(prior=3)
    with pytest.raises(PrivacyError, match="allow_useless must be True or False, got 1"):
        kind(allow_useless=1)
    if kind is DPAFF:
        with pytest.raises(InputError, match="tuning must be a Tuning, got dict"):
            kind(tuning={})


def test_prior_and_tuning_change_the_plan():
    usual = model("dp-aff").plan()
    assert model(DPAFF(prior=PublicPrior(max_features=4))).plan().n_features == 5 < usual.n_features
    assert model(DPAFF(tuning=dataclasses.replace(GAUSSIAN, rounds=3))).plan().rounds == 3 != usual.rounds


OBJECTS = [*(kind() for kind in PRIVATE), DPAFF(allow_useless=True), PublishedNoise(sensitivity="scaled")]


@pytest.mark.parametrize("mechanism", ["moments", *OBJECTS], ids=str)
def test_a_file_says_which_it_was(mechanism):
    stored = params_to_json(model(mechanism))
    again = params_from_json(stored)
    assert (again["mechanism"], again["bounds"], again["privacy"]) == (mechanism, BOUNDS, model("").privacy)


def test_a_file_does_not_hold_prior_and_tuning():
    again = params_from_json(
        params_to_json(model(DPAFF(prior=PublicPrior(seed=3), tuning=GAUSSIAN, allow_useless=True)))
    )
    assert again["mechanism"] == DPAFF(allow_useless=True)


@pytest.mark.parametrize(
    "name", ["os.system", "fdadp.cli.main.app", "fdadp.private.release.mechanisms.SHORT", "nowhere.Mine", "DPAFF", 3]
)
def test_a_file_names_no_other_code(name):
    stored = params_to_json(model(DPAFF()))
    with pytest.raises(FileFormatError, match="mechanism must be a class that can be found"):
        params_from_json(stored | {"mechanism": {"class": name}})


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Mine(DPAFF):
    """A mechanism that somebody else wrote."""

    name = "mine"


def test_a_new_mechanism_is_one_class(tmp_path):
    fitted = model(Mine()).fit(*curves())
    np.testing.assert_array_equal(fitted.coef_, model("dp-aff").fit(*curves()).coef_)
    assert fitted.ledger_.mechanism == "mine" and fitted.ledger_.private
    again = AdditiveFunctionOnFunction.load(fitted.save(tmp_path / "model.npz"))
    assert again.mechanism == Mine()
