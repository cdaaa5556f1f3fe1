"""Standard errors and intervals of private coefficients: least squares' without noise, and right with it."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from privacy_tools import worst_ratio
from scipy.special import expit
from scipy.stats import norm
from sklearn.exceptions import NotFittedError

from fdadp.audit import Neighbours, replay_audit
from fdadp.errors import InputError
from fdadp.learners import DPLinearRegression, DPLogisticRegression
from fdadp.learners.coefficient_intervals import Equations, estimate
from fdadp.learners.logistic_regression import _curvature
from fdadp.privacy import Budget, Cohort, SeededNoise
from fdadp.privacy.study import Study

APART = 10**6
"""Added to the seed of the noise, so that it is not drawn from the numbers that the data are drawn from."""
SLOPES = np.array([1.0, 0.0, -0.5])


def rows(n=4000, seed=0, intercept=0.3):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    return X, intercept + X @ SLOPES + 0.5 * rng.standard_normal(n)


def linear(**more):
    settings = {"epsilon": 1.0, "bounds": (-1, 1), "bounds_y": (-4, 4), "random_state": 0}
    return DPLinearRegression(**{**settings, **more})


# ------------------------------------------------------------------ what they are without noise, and in which units


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
def test_a_coefficient_of_which_nothing_is_known_has_no_interval_in_any_unit(unit):
    """In large units, so of small weight, it had one of width 1e-150."""
    known = Equations(np.diag([100.0, 0.0]), np.array([50.0, 0.0]), np.zeros(2), 1.0, 3.0, 3.0)
    assert estimate(known, np.array([0.0, unit]), 0.0, 0.05).std_error == math.inf
    assert estimate(known, np.array([unit, 0.0]), 0.0, 0.05).std_error < unit


@pytest.mark.parametrize(
    ("mechanism", "delta"), [("moments", None), ("functional", None), ("adassp", 1e-6), ("moments", 1e-6)]
)
def test_without_noise_they_are_those_of_statsmodels(mechanism, delta):
    X, y = rows()
    X[:, 1] += 0.5 * X[:, 0]
    bounds = (-1.5, 1.5)
    found = linear(epsilon=1e7 if delta is None else 3000.0, delta=delta, mechanism=mechanism, bounds=bounds).fit(X, y)
    peer = sm.OLS(y, sm.add_constant(X)).fit()
    table = found.coef_table(0.1)
    close = {"rtol": 2e-2, "atol": 2e-3}
    np.testing.assert_allclose(table["estimate"], peer.params, **close)
    np.testing.assert_allclose(table["std_error"], peer.bse, rtol=3e-2)
    np.testing.assert_allclose(table[["lower", "upper"]], peer.conf_int(0.1), **close)
    np.testing.assert_allclose(table["z"], peer.tvalues, rtol=0.05, atol=0.2)
    assert list(table.index) == ["intercept", "x0", "x1", "x2"]


def test_units_and_names_are_those_of_the_users_columns():
    X, y = rows()
    plain = linear().fit(X, y).coef_table()
    scale, shift = np.array([10.0, 1e-3, 3.0]), np.array([5.0, -2.0, 0.0])
    frame = pd.DataFrame(X * scale + shift, columns=["age", "dose", "score"])
    ends = shift - scale, shift + scale
    there = linear(bounds=ends, bounds_y=(-8, 8)).fit(frame, 2 * pd.Series(y)).coef_table()
    assert list(there.index) == ["intercept", "age", "dose", "score"]
    for column in ("estimate", "std_error", "lower", "upper"):
        np.testing.assert_allclose(there[column][1:], 2 * plain[column][1:] / scale, rtol=1e-5)
    np.testing.assert_allclose(there["p"][1:], plain["p"][1:], atol=1e-6)


def test_of_several_targets_each_has_its_own():
    X, y = rows()
    table = linear(epsilon=50.0, bounds_y=([-4, -20], [4, 20])).fit(X, np.stack([y, -3 * y], axis=1)).coef_table()
    assert table.index.names == ["target", "coefficient"]
    np.testing.assert_allclose(table.loc[1, "estimate"], -3 * table.loc[0, "estimate"], atol=0.1)
    np.testing.assert_allclose(table.loc[1, "std_error"], 3 * table.loc[0, "std_error"], rtol=0.3)
    with pytest.raises(KeyError):
        table.loc[2]


# ------------------------------------------------------------------ what they promise


def fits(n, count, make, truth, alpha=0.05):
    """Whether each interval holds the truth, and its width, (count, d + 1)."""
    held, width = [], []
    for seed in range(count):
        X, y = rows(n, seed)
        ends = make(seed).fit(X, y).conf_int(alpha).to_numpy()
        held.append((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
        width.append(ends[:, 1] - ends[:, 0])
    return np.array(held), np.array(width)


@pytest.mark.statistics
@pytest.mark.parametrize("delta", [None, 1e-6])
def test_they_hold_the_truth_as_often_as_they_say(delta):
    """At nominal 90 %; without the noise in them they would a good deal less often, so the test can fail."""
    truth = np.array([0.3, *SLOPES])
    held, width = fits(1500, 100, lambda seed: linear(delta=delta, random_state=seed + APART), truth, 0.1)
    assert 0.86 < held.mean() < 0.94
    X, y = rows(1500)
    sampling = sm.OLS(y, sm.add_constant(X)).fit().bse * 2 * norm.isf(0.05)
    assert (np.median(width, axis=0)[1:] > 1.5 * sampling[1:]).all()


@pytest.mark.statistics
@pytest.mark.parametrize("n", [60, 200])
def test_where_noise_hides_them_they_are_wide_or_the_whole_line_and_hold(n):
    held, width = fits(n, 60, lambda seed: linear(random_state=seed + APART), np.array([0.3, *SLOPES]))
    assert held.mean() > 0.95
    assert np.isinf(width).mean() > (0.5 if n == 60 else 0.05)


def test_a_coefficient_that_noise_hides_is_said_to_be_undetermined():
    X, y = rows(50)
    model = linear(epsilon=0.1).fit(X, y)
    table = model.coef_table()
    hidden = np.isinf(table["std_error"])
    assert hidden.any()
    assert (table.loc[hidden, "lower"] == -np.inf).all() and (table.loc[hidden, "upper"] == np.inf).all()
    assert (table.loc[hidden, "p"] > 0.04).all()
    assert "undetermined" in str(model.summary())


@pytest.mark.statistics
@pytest.mark.parametrize("pure", [True, False])
def test_the_noise_on_the_equations_has_the_covariance_that_they_state(pure):
    """Fits with the same rows: b - A w varies by noise alone, and as stated; also along w, where it is twice that."""
    X, y = rows(40)
    w = np.array([3.0, -1.0, 0.0, 0.5])
    errors = []
    how = {"mechanism": "functional"} if pure else {"mechanism": "adassp", "delta": 1e-6, "epsilon": 5.0}
    for seed in range(600):
        model = linear(random_state=seed, **how).fit(X, y)
        (equations,) = model._estimating()
        errors.append(equations.score - equations.curvature @ w)
    stated = equations.noise(w)
    found = np.cov(np.array(errors).T)
    np.testing.assert_allclose(found, stated, atol=0.2 * stated.diagonal().max())
    along = w / np.linalg.norm(w)
    assert along @ found @ along == pytest.approx(along @ stated @ along, rel=0.2)


KNOWN = Equations(np.array([[90.0, 20.0], [20.0, 60.0]]), np.array([40.0, -5.0]), np.array([0.1, 0.2]), 0.8, 5.0, 4.0)


@pytest.mark.parametrize("alpha", [0.32, 0.05])
def test_the_ends_are_what_the_test_just_does_not_reject(alpha):
    weights = np.array([2.0, -1.0])
    inside = estimate(KNOWN, weights, 3.0, alpha)
    for end in (inside.lower, inside.upper):
        assert estimate(KNOWN, weights, 3.0 - end, alpha).p == pytest.approx(alpha, abs=1e-9)
    assert inside.lower < inside.estimate < inside.upper
    symmetric = estimate(KNOWN._replace(sd_curvature=0.0), weights, 3.0, alpha)
    half = norm.isf(alpha / 2) * symmetric.std_error
    assert symmetric.upper - symmetric.estimate == pytest.approx(half)
    assert symmetric.estimate - symmetric.lower == pytest.approx(half)


@pytest.mark.parametrize("A", [[[0.0, 0.0], [0.0, 0.0]], [[1.0, 1.0], [1.0, 1.0]]])
def test_a_singular_matrix_is_no_error(A):
    found = estimate(KNOWN._replace(curvature=np.array(A)), np.array([1.0, 0.0]), 0.0, 0.05)
    assert found.upper == math.inf


# ------------------------------------------------------------------ logistic regression


def odds(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    return X, np.where(rng.random(n) < expit(-0.5 + X @ SLOPES), "ill", "fine")


def logistic(**more):
    settings = {"epsilon": 1.0, "classes": ["fine", "ill"], "data_norm": 1.75, "inference": True, "random_state": 0}
    return DPLogisticRegression(**{**settings, **more})


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_of_a_logistic_regression_without_noise_they_are_those_of_statsmodels_whatever_the_ridge(adjacency):
    X, y = odds()
    n = len(X) if adjacency == "replace" else None
    model = logistic(epsilon=1e5, regularization=10.0, adjacency=adjacency, n=n).fit(X, y)
    table = model.coef_table()
    peer = sm.Logit(y == "ill", sm.add_constant(X)).fit(disp=False)
    np.testing.assert_allclose(table["estimate"], peer.params, rtol=0.03, atol=0.01)
    np.testing.assert_allclose(table["std_error"], peer.bse, rtol=0.03)
    np.testing.assert_allclose(table[["lower", "upper"]], peer.conf_int(), rtol=0.03, atol=0.02)
    assert abs(model.coef_[0, 0]) < 0.97 * table["estimate"]["x0"]  # which the ridge has shrunk


@pytest.mark.statistics
def test_those_of_a_logistic_regression_hold_the_truth_as_often_as_they_say():
    truth, held, width = np.array([-0.5, *SLOPES]), [], []
    for seed in range(100):
        X, y = odds(2500, seed)
        ends = logistic(random_state=seed + APART).fit(X, y).conf_int(0.1).to_numpy()
        held.append((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
        width.append(ends[:, 1] - ends[:, 0])
    assert 0.86 < np.mean(held) < 0.94
    sampling = sm.Logit(y == "ill", sm.add_constant(X)).fit(disp=False).bse * 2 * norm.isf(0.05)
    assert (np.median(width, axis=0)[1:] > 1.1 * sampling[1:]).all()


def curvature(cohort):
    """The release that intervals add to a fit, from rows with a label in the second column."""

    def problems(rows):
        x = rows[0]
        z = logistic(data_norm=2.0)._encoding(1)(x[:, :1])
        return z, np.where(x[:, 1:] > 0, 1.0, -1.0) + 0.0 * x[:, 1:]

    found = _curvature(cohort, problems, np.array([0.3, -0.2]), 1.0, 1.0)
    return found.curvature, found.sd_curvature * math.sqrt(2)


class Silent(SeededNoise):
    """Noise of the right scale that is not added."""

    __slots__ = ()

    def prepare(self, *args, **kwargs):
        return dataclasses.replace(super().prepare(*args, **kwargs), draw=lambda exact: exact)


def test_the_curvature_and_its_noise_are_those_that_intervals_reckon_with(monkeypatch):
    """Rows of an unknown class are no rows; the noise is that of the ledger, off the diagonal."""
    X, y = odds(300)
    monkeypatch.setattr("fdadp.privacy.noise.sources.SeededNoise", Silent)
    model = logistic().fit(np.vstack([X, X[:50]]), np.append(y, np.full(50, 7)))
    found, z = model._at_fit, model._encoding(X.shape[1])(X)
    p = expit(z @ found.at)
    np.testing.assert_allclose(found.curvature, (z * (p * (1 - p))[:, None]).T @ z, atol=0.02)
    _, objective, curved = model.ledger_.releases
    assert found.sd_curvature == pytest.approx(curved.sd / math.sqrt(2))
    assert found.sd_score == pytest.approx(objective.sd) and curved.clip == 0.25


@pytest.mark.parametrize("adjacency", ["zero-out", "add-remove", "replace"])
def test_sensitivity_of_the_curvature_by_brute_force(adjacency):
    ratio = worst_ratio(curvature, pure=True, adjacency=adjacency, grouped=False)
    assert 0.3 < ratio <= 1


@pytest.mark.parametrize("adjacency", ["zero-out", "add-remove"])
def test_exact_privacy_loss_of_the_curvature_by_replay(adjacency):
    rng = np.random.default_rng(5)
    people = rng.normal(size=(30, 2))
    people[:3] = [[np.nan, 1.0], [1e200, -1.0], [np.inf, 0.0]]

    def run(data, noise):
        n = None if adjacency == "add-remove" else 30
        return curvature(Cohort(data, budget=Budget(2.0), adjacency=adjacency, n=n, noise=noise))

    def pairs():
        for i in (0, 1, 2, 9, 20):
            other = np.delete(people, i, axis=0) if adjacency == "add-remove" else people.copy()
            if adjacency == "zero-out":
                other[i] = np.nan
            yield Neighbours(f"person {i}", run, people, other, 2.0)

    audit = replay_audit(pairs())
    assert audit.passed, str(audit)
    assert 0 < audit.changes.max() <= 1


def test_a_fit_with_intervals_spends_pure_epsilon_and_says_so():
    X, y = odds(500)
    model = logistic(delta=1e-6).fit(X, y)
    assert model.privacy_spent_["delta"] is None and model.ledger_.delta is None
    names = [r.name for r in model.ledger_.releases]
    assert names == ["number of usable rows", "logistic regression", "curvature at the fit"]
    assert sum(r.epsilon for r in model.ledger_.releases) == pytest.approx(1.0)
    assert "Private logistic regression" in str(model.summary()) and "Odds of" in str(model.summary())


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"inference": "yes"}, "inference must be True or False"),
        ({"mechanism": "gradient"}, 'mechanism must be "objective"'),
        ({"mechanism": "output"}, 'mechanism must be "objective"'),
        ({"classes": ["fine", "ill", "dead"]}, "inference must be False with more than two"),
        ({"delta": 1e-6, "budget": Budget(1.0, 1e-6)}, "budget or study must be one of pure epsilon"),
    ],
)
def test_what_intervals_of_a_logistic_regression_cannot_do_costs_nothing(settings, what):
    X, y = odds(50)
    budget = settings.get("budget") or Budget(1.0)
    with pytest.raises(InputError, match=what):
        logistic(**{"budget": budget, **settings}).fit(X, y)
    assert budget.spent == budget.reserved == 0


def test_a_study_with_a_delta_refuses_before_it_reads(tmp_path):
    study = Study.new(tmp_path / "study.fdadp", name="Wards", epsilon=2.0, delta=1e-6, unit="row", n=50)
    for epsilon in (1.0, 2.0):
        with pytest.raises(InputError, match="budget or study must be one of pure epsilon"):
            logistic(study=tmp_path / "study.fdadp", random_state=None, epsilon=epsilon).fit(*odds(50))
    assert study.left == 1


def test_a_fit_without_the_curvature_says_what_it_needs():
    model = logistic(inference=False).fit(*odds(200))
    for ask in (model.conf_int, model.summary, model.coef_table):
        with pytest.raises(InputError, match="inference must be True"):
            ask()


# ------------------------------------------------------------------ what is asked for in the wrong way


def test_what_cannot_be_is_said():
    X, y = rows(100)
    model = linear()
    with pytest.raises(NotFittedError):
        model.conf_int()
    model.fit(X, y)
    for alpha in (0, 1, -0.1, "95", None, math.nan):
        with pytest.raises(InputError, match="alpha must lie"):
            model.conf_int(alpha)
    spent = dict(model.privacy_spent_)
    model.summary()
    assert model.privacy_spent_ == spent


def test_the_summary_has_the_guarantee_and_the_table():
    text = str(linear(epsilon=2.0, delta=1e-6).fit(*rows()).summary(0.1))
    for part in ("Private linear regression", "epsilon = 2, delta = 1e-06", "[0.05", "0.95]", "x2", "not for release"):
        assert part in text
