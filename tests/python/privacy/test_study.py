"""Studies: budgets in files that outlive processes; crashes, races, tampering and files as users have them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.base import clone
from study_tools import ROWS, cohort_of, nothing_was_spent, release, study_at

from fdadp import AdditiveFunctionOnFunction, Privacy, PrivateMean, simulate_affr
from fdadp.errors import PrivacyError
from fdadp.learners import DPGaussianNB
from fdadp.privacy import Cohort, SeededNoise
from fdadp.privacy.study import Study


@pytest.fixture
def path(tmp_path):
    return tmp_path / "wards.fdadp"


# ------------------------------------------------------------------ what it keeps


def test_a_fit_is_written_down_before_it_reads_and_for_good(path):
    study_at(path)
    cohort = cohort_of(path, 0.25)
    assert Study(path).fits[0].state.startswith("waiting")

    seen = []

    def f(rows):
        seen.append(Study(path).fits[0].releases)
        return rows[0]

    cohort.sum(f, clip=1.0, share=0.5, name="total")
    assert [r.name for r in seen[-1]] == ["total"]  # the entry was there when the rows were read
    of = Study(path)
    assert of.left == pytest.approx(0.75)
    (fit,) = of.fits
    assert fit.releases == cohort.releases
    assert (fit.mechanism, fit.state) == ("mean of rows", "spent")
    assert of.verify() == ()
    assert cohort.ledger.details["study"].startswith("Wards (")
    assert cohort.ledger.details["last entry of the study"] == "{}, {}".format(*of.head)


def test_what_was_not_read_is_given_back(path):
    study_at(path)
    cohort = cohort_of(path, 0.5)
    cohort.close()
    assert Study(path).left == 1
    forgotten = cohort_of(path, 0.5)
    del forgotten
    assert Study(path).left == 1
    part = cohort_of(path, 0.5)
    release(part, 0.1)
    part.stop()
    assert Study(path).left == pytest.approx(0.95)
    with pytest.raises(PrivacyError, match="was closed"):
        release(part, 0.1)
    assert Study(path).verify() == ()
    assert [f.state for f in Study(path).fits] == [
        "given back: nothing was read",
        "given back: nothing was read",
        "spent, the rest given back",
    ]


def test_refused_with_what_is_left(path):
    study_at(path)
    release(cohort_of(path, 0.9))
    with pytest.raises(PrivacyError, match=r"study 'Wards' has left, 0\.[0-9]+ \(10\.00% of all") as info:
        cohort_of(path, 0.2)
    assert "nothing was read and nothing was spent" in str(info.value)
    assert Study(path).left == pytest.approx(0.1)


def test_simulations_are_not_for_studies(path):
    study_at(path)
    with pytest.raises(PrivacyError, match="noise must be secure"):
        Cohort(ROWS, budget=Study(path).budget, n=50, noise=SeededNoise(0))
    with pytest.raises(PrivacyError, match="random_state must be left out"):
        Privacy(study=path, epsilon=1.0, random_state=0)
    assert len(Study(path).entries) == 1


# ------------------------------------------------------------------ estimators


def test_estimators_take_from_it_what_it_has_fixed(path):
    study_at(path, n=1500, unit="person", bounds={"heart rate": (30, 180), "sex": ["f", "m"]}, sources="manual")
    privacy = Privacy(study=path, epsilon=0.5, purpose="mean curve")
    assert (privacy.n, privacy.delta, privacy.unit, privacy.adjacency) == (1500, 1e-6, "person", "zero-out")
    with pytest.raises(PrivacyError, match=r"n must be that of the study, 1500, got 100"):
        Privacy(study=path, epsilon=0.5, n=100)
    with pytest.raises(PrivacyError, match="delta must be that of the study"):
        Privacy(study=path, epsilon=0.5, delta=1e-5)
    assert privacy.bounds_with({"Y": (0, 1)}) == {"heart rate": (30, 180), "sex": ["f", "m"], "Y": (0, 1)}
    with pytest.raises(PrivacyError, match="bounds of heart rate must be those of the study"):
        privacy.bounds_with({"heart rate": (0, 300)})
    Y = simulate_affr(scenario=1, n=1500, seed=0).Y
    model = PrivateMean(privacy=privacy, bounds=(-8, 8))
    with pytest.raises(PrivacyError, match="groups must be the person id"):
        model.fit(Y)
    assert len(Study(path).entries) == 1  # nothing was even asked for
    fitted = clone(model).fit(Y, groups=np.arange(1500))
    (fit,) = Study(path).fits
    assert fit.purpose == "mean curve"
    assert fit.epsilon == pytest.approx(0.5)
    assert fitted.ledger_.others == 0
    with pytest.raises(PrivacyError, match="epsilon must be at most that of the study"):
        PrivateMean(privacy=Privacy(study=path, epsilon=3), bounds=(-8, 8)).fit(Y, groups=np.arange(1500))


def test_another_study_brings_its_own_settings(tmp_path):
    for name, n in (("a", 100), ("b", 200)):
        study_at(tmp_path / name, n=n)
    privacy = Privacy(study=tmp_path / "a", epsilon=0.5)
    assert privacy.set_params(study=tmp_path / "b").n == 200
    with pytest.raises(PrivacyError, match="n must be that"):
        privacy.set_params(study=tmp_path / "a", n=7)
    model = AdditiveFunctionOnFunction(privacy=privacy).set_params(privacy__epsilon=0.25)
    assert model.privacy.study == str(tmp_path / "b")


def test_a_search_is_refused_at_the_fit_that_would_exceed_it(path):
    from sklearn.model_selection import GridSearchCV

    study_at(path, delta=None, n=300)
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 2))
    y = (X[:, 0] > 0).astype(int)
    model = DPGaussianNB(epsilon=0.3, study=str(path), classes=[0, 1], bounds=(-1, 1))
    search = GridSearchCV(model, {"priors": [None, [0.5, 0.5], [0.4, 0.6], [0.3, 0.7]]}, cv=3, error_score="raise")
    with (
        pytest.warns(match="score is computed from the rows"),
        pytest.raises(PrivacyError, match=r"has left, 0\.2 \(10\.00% of all that may ever be spent, epsilon 2"),
    ):
        search.fit(X, y)
    of = Study(path)
    assert len(of.fits) == 6
    assert math.fsum(r.spent for f in of.fits for r in f.releases) == pytest.approx(1.8)
    assert of.verify() == ()


def test_folds_with_groups(path):
    """scikit-learn's tools hand groups on where they are asked to; where they drop them, nothing is read or spent."""
    from sklearn import config_context
    from sklearn.model_selection import GroupKFold, cross_val_score

    study_at(path, n=300, unit="person")
    rng = np.random.default_rng(0)
    X, patient = rng.uniform(-1, 1, (600, 2)), np.arange(600) // 2
    y = (X[:, 0] > 0).astype(int)
    model = DPGaussianNB(epsilon=0.5, study=str(path), classes=[0, 1], bounds=(-1, 1))
    with pytest.raises(PrivacyError, match="groups must be the person id of every row"):
        cross_val_score(model, X, y, groups=patient, cv=GroupKFold(3), error_score="raise")
    assert nothing_was_spent(path)
    with config_context(enable_metadata_routing=True), pytest.warns(match="score is computed from the rows"):
        asked = model.set_fit_request(groups=True)
        scores = cross_val_score(asked, X, y, params={"groups": patient}, cv=GroupKFold(3), error_score="raise")
    assert scores.shape == (3,)
    of = Study(path)
    assert [round(fit.epsilon, 6) for fit in of.fits] == [0.5, 0.5, 0.5]
    assert of.verify() == ()


def test_a_private_choice_draws_on_it(tmp_path):
    from fdadp import choose_privately

    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (1000, 2))
    y = (X[:, 0] > 0).astype(int)
    candidates = [DPGaussianNB(classes=[0, 1], bounds=(-1, 1), priors=p) for p in ([0.999, 0.001], None)]
    study_at(tmp_path / "persons", n=1000, unit="person")
    privacy = Privacy(study=tmp_path / "persons", epsilon=1.5)
    found = choose_privately(candidates, X, y, privacy, np.arange(1000))
    # Of trials at epsilon 0.15, with noise that nobody can repeat: either may be the better one.
    assert found.index in (0, 1)
    of = Study(tmp_path / "persons")
    assert len(of.fits) == 4
    assert of.verify() == ()
    assert of.budget.spent_epsilon == pytest.approx(1.5, rel=1e-6)
