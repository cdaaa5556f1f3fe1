"""What is refused in public before a row is read, what goes back, and what a ledger must not pass over in silence."""

from __future__ import annotations

import math

import numpy as np
import pytest
from learner_registry import LEARNERS, toy

from fdadp import Privacy, PrivateMean
from fdadp.errors import PrivacyError
from fdadp.learners import DPPCA, DPLogisticRegression
from fdadp.privacy import Budget, Cohort, SeededNoise
from fdadp.privacy._logistic import logistic
from fdadp.privacy._minima import GRADIENT_ERROR, check_rounding, length_of, steps_from_real
from fdadp.privacy._vault import Vault
from fdadp.privacy.declared import LARGEST_DELTA

gaussian = pytest.mark.parametrize("learner", [x for x in LEARNERS if x.gaussian], ids=str)


# ------------------------------------------------------------------ delta and n


@gaussian
def test_learners_have_a_limit_on_delta_where_n_is_private(learner):
    """A delta of 0.9 was called "private end to end"."""
    X, y = toy(learner.kind)
    for delta in (0.9, LARGEST_DELTA * 1.001):
        budget = Budget(2.0, delta)
        model = learner.make(pure=False, delta=delta, budget=budget)
        with pytest.raises(PrivacyError, match=r"delta must be at most 0\.001 where n is private"):
            model.fit(X, y)
        assert budget.spent == budget.reserved == 0
    own = {"budget": Budget(2.0, LARGEST_DELTA)} if learner.stronger else {}  # of its own it would spend no delta
    model = learner.make(pure=False, delta=LARGEST_DELTA, **own).fit(X, y)
    assert "fewer than 1000 persons" in model.ledger_.details["delta against n"]
    own = {"budget": Budget(2.0, 1e-6)} if learner.stronger else {}
    declared = learner.make(pure=False, adjacency="zero-out", **own).fit(X, y)
    assert declared.ledger_.details["delta against n"] == "n times delta is 0.00012"


def test_a_hopeless_summary_gives_back_what_it_did_not_release():
    budget = Budget(0.02, 1e-6)
    privacy = Privacy(0.02, 1e-6, budget=budget, random_state=0)
    with pytest.raises(PrivacyError, match="must leave noise of at most"):
        PrivateMean(privacy=privacy, bounds=(-9, 9)).fit(np.random.default_rng(0).normal(size=(20, 11)))
    assert 0 < budget.cost <= budget.spent <= 0.1 * budget.total * (1 + 1e-9)
    assert budget.left >= 0.9 * budget.total * (1 - 1e-9)


def some(budget, **more):
    return Cohort(np.ones((9, 2)), budget=budget, n=9, noise=SeededNoise(0), dataset="rows", **more)


def total(cohort, share):
    return cohort.sum(lambda r: r[0], clip=1.0, share=share, name="sum")


def test_what_a_stopped_cohort_did_not_use_can_be_reserved_again_and_no_more():
    budget = Budget(1.0, 1e-6)
    cohort = some(budget, share=0.8)
    total(cohort, 0.25)
    assert budget.spent == pytest.approx(0.8 * budget.total)
    cohort.stop()
    assert budget.spent == pytest.approx(0.2 * budget.total)
    with pytest.raises(PrivacyError, match="closed"):
        total(cohort, 0.1)
    cohort.stop()
    with pytest.raises(PrivacyError, match="share must be at most"):
        some(budget, share=0.81)
    total(some(budget, share=0.8), 1.0)
    assert budget.cost <= budget.total
    assert budget.left == 0
    assert cohort.ledger.private


def test_errors_of_other_kinds_give_nothing_back():
    """Only a check of public and released values may: an error may tell of the rows."""
    budget = Budget(1.0)
    cohort = some(budget)
    with pytest.raises(ZeroDivisionError), cohort.refusing():
        total(cohort, 0.1)
        raise ZeroDivisionError
    assert budget.left == 0


# ------------------------------------------------------------------ a crumb after a whole budget


@pytest.mark.parametrize("crumb", [1e-9, 1e-12])
def test_nothing_is_left_after_a_release_that_took_a_whole_budget(crumb):
    """Sums leave 3e-9 of their shares unused, so that crumbs do no harm; what is accounted for by itself does not."""
    budget = Budget(1.0, 1e-6)
    cohort = some(budget)
    cohort.wishart_moment(lambda r: r[0], clip=1.0, share=1.0, name="moment")
    with pytest.raises(PrivacyError, match="share must be at most"):
        total(cohort, crumb)
    with pytest.raises(PrivacyError, match="share must be at most"):
        some(budget, share=crumb)
    other = Budget(1.0, 1e-6)
    small, large = some(other, share=crumb), some(other, share=1.0)
    for first in (small, None):
        with pytest.raises(PrivacyError, match="whole budget"):
            large.wishart_moment(lambda r: r[0], clip=1.0, share=1.0, name="moment")
        if first is not None:
            total(first, 1.0)
    assert large.reads == 0


# ------------------------------------------------------------------ floating point


def test_the_ledger_says_that_directions_are_drawn_in_floating_point():
    X, _ = toy("transformer")
    ledger = DPPCA(epsilon=1.0, data_norm=2.0, n_components=1, mechanism="bingham").fit(X).ledger_
    assert "in floating point" in ledger.statement
    directions = [r for r in ledger.releases if r.noise.startswith("Bingham")]
    assert directions
    assert all("floating point" in r.noise and "OpenDP" not in r.noise for r in directions)
    assert "floating point" not in DPPCA(epsilon=1.0, data_norm=2.0, n_components=1).fit(X.copy()).ledger_.statement


@pytest.mark.parametrize("mechanism", ["output", "objective"])
def test_a_logistic_fit_whose_rounding_is_not_covered_is_refused_before_it_reads(mechanism):
    X, y = toy("classifier")
    settings = {"epsilon": 1.0, "classes": [0, 1], "data_norm": 2.0, "mechanism": mechanism}
    budget = Budget(1.0)
    with pytest.raises(PrivacyError, match="ridge must be larger"):
        DPLogisticRegression(n=10**12, budget=budget, **settings).fit(X, y)
    assert budget.spent == 0
    DPLogisticRegression(n=10**5, **settings).fit(X, y)


def test_least_squares_and_wishart_have_limits_too():
    for release, n in (
        (lambda c: c.wishart_moment(lambda r: r[0], clip=1.0, share=1.0, name="w"), 10**9),
        (
            lambda c: c.perturbed_minimum(
                lambda r: (r[0], r[0]), loss="squared", ridge=1.0, target_clip=1.0, radius=1.0, share=1.0, name="l"
            ),
            10**9,
        ),
    ):
        cohort = Cohort(np.ones((9, 2)), budget=Budget(1.0, 1e-10), n=n, noise=SeededNoise(0))
        with pytest.raises(PrivacyError, match="n must be at most 1e8"):
            release(cohort)
        assert cohort.reads == 0


@pytest.mark.parametrize("ridge", [0.01, 0.25, 30.0])
def test_the_bound_on_rounding_holds_for_long_linear_terms(ridge):
    """Gradient at the point that is returned, in rational-like precision (long double), for |b| at the limit."""
    rng = np.random.default_rng(1)
    n, D = 400, 3
    z = rng.standard_normal((n, D))
    z /= np.linalg.norm(z, axis=1, keepdims=True) * (1 + 1e-9)
    t = np.sign(rng.standard_normal((n, 1)))
    b = rng.standard_normal((D, 1))
    b *= 1e4 * ridge / np.linalg.norm(b)
    check_rounding(n, ridge, float(np.linalg.norm(b)), "here")
    with pytest.raises(PrivacyError):
        check_rounding(n, ridge, 1e13 * ridge, "here")
    w = logistic(Vault((z, t)), lambda r: r, [(D,), (1,)], ridge=ridge, linear=b).astype(np.longdouble)
    z, t, b = (a.astype(np.longdouble) for a in (z / (1 + 1e-12), t, b))
    slope = -t / (1 + np.exp(t * (z @ w)))
    gradient = z.T @ slope + np.longdouble(ridge) * w + b
    assert float(np.sqrt((gradient**2).sum())) <= GRADIENT_ERROR


def test_lengths_and_steps_are_exceeded_almost_never():
    """Tails by scipy, where the docstrings have bounds."""
    from scipy.stats import chi, gamma

    for D in (1, 2, 7, 50, 1000):
        assert chi.sf(length_of("gaussian", D, 1.0), D) < 1e-10
        assert gamma.sf(length_of("spherical", D, 1.0), D) < 1e-10
        assert chi.sf(steps_from_real("gaussian", D) / 4, D) < 1e-31
        assert steps_from_real("gaussian", D) > 4 * math.sqrt(D)
