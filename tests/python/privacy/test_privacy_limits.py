"""What is refused in public before a row is read, what goes back, and what a ledger must not pass over in silence."""

from __future__ import annotations

import math
from decimal import Decimal, getcontext, localcontext

import numpy as np
import pytest
from learner_registry import LEARNERS, toy

from fdadp import Privacy, PrivateMean
from fdadp.errors import PrivacyError
from fdadp.learners import DPPCA
from fdadp.privacy import Budget, Cohort, SeededNoise
from fdadp.privacy.account.epsilon_mu_rho import _hockey_stick
from fdadp.privacy.guarantee_checks import LARGEST_DELTA
from fdadp.privacy.kernel._loss_minimisers import steps_from_real
from fdadp.privacy.noise._matrix_noise import degrees
from fdadp.privacy.noise.sources import DIRECTIONS, DRAWS, KINDS

gaussian = pytest.mark.parametrize("learner", [x for x in LEARNERS if x.gaussian], ids=str)


# ------------------------------------------------------------------ delta and n


@pytest.mark.filterwarnings("ignore:what was released speaks against:fdadp.errors.PublicInputWarning")  # few rows
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


def test_a_refusal_says_what_was_spent_before_it():
    """The number of rows is released first where n is private, or rows add up: the refusal by it hid that it cost."""
    for released in (False, True):
        budget = Budget(1.0, 1e-6)
        cohort = some(budget)
        with pytest.raises(PrivacyError) as refused, cohort.refusing():
            if released:
                total(cohort, 0.1)
            raise PrivacyError("n must be larger")
        said = "n must be larger. What was released before that is spent: sum"
        assert str(refused.value) == (said if released else "n must be larger")
        assert (budget.spent > 0) is released


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


@pytest.mark.filterwarnings("ignore::fdadp.errors.PublicInputWarning")
def test_a_ledger_is_for_release_where_each_draw_is_exact_or_its_distance_counted():
    """One rule for all samplers: directions were for release although the ledger said that their draw is not proved."""
    X, _ = toy("transformer")
    ledger = DPPCA(epsilon=1.0, data_norm=2.0, n_components=1, mechanism="bingham").fit(X).ledger_
    assert "in floating point" in ledger.statement
    assert not ledger.for_release and ledger.headline.endswith("not for release")
    with pytest.raises(PrivacyError, match="ledger must be for release"):
        ledger.certificate()
    assert {r.draw for r in ledger.releases} == {"exact", "not proved"}
    assert "not proved: principal directions" in ledger.details["draws (docs/theory/noise.md#exactness)"]
    directions = [r for r in ledger.releases if r.noise.startswith("Bingham")]
    assert directions
    assert all("floating point" in r.noise and "OpenDP" not in r.noise for r in directions)
    other = DPPCA(epsilon=1.0, data_norm=2.0, n_components=1).fit(X.copy()).ledger_
    assert "floating point" not in other.statement and other.for_release
    assert other.details["draws (docs/theory/noise.md#exactness)"] == "exact"


def test_every_kind_of_noise_has_its_grade_and_wishart_pays_for_it():
    assert set(DRAWS) == set(KINDS)
    assert {kind for kind, draw in DRAWS.items() if draw != "exact"} == {"wishart", *DIRECTIONS}
    cohort = Cohort(np.ones((30, 2)), budget=Budget(1.0, 1e-6), n=30)
    cohort.wishart_moment(lambda r: r[0], clip=1.0, share=1.0, name="w")
    assert cohort.ledger.for_release and "counted in delta" in cohort.releases[0].draw
    with pytest.raises(PrivacyError, match="delta must be above"):
        degrees(1.0, 5e-36)
    with pytest.raises(PrivacyError, match="delta must be above"):
        degrees(80.0, 1e-6)  # e^80 times the distance is more than this delta
    assert degrees(3.0, 1e-6) <= degrees(3.0, 1e-6 - 1e-12)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("mu", [0.02, 0.3, 2.0])
def test_deltas_of_a_perturbed_objective_allow_for_floats(epsilon, mu):
    """Against sixty digits: never below the exact value, and above it by less than a hair where it is of use."""
    jacobian = 0.05
    with localcontext() as context:
        context.prec = 60
        gap = Decimal(epsilon) - (Decimal(mu) ** 2 / 2 + Decimal(jacobian))
        m = Decimal(mu)
        if gap >= 0:
            exact = _tail(gap / m) - (gap + m * m / 2).exp() * _tail(gap / m + m)
        else:
            exact = 1 - gap.exp() / 2 - (gap + m * m / 2).exp() * _tail(m)
    found = Decimal(_hockey_stick(epsilon, mu, jacobian, 1))
    assert exact <= found
    assert found <= exact * Decimal("1.000001") + Decimal("1e-30")


def _tail(x):
    """1 - Φ(x) in the digits of the context, x >= 0: by its series up to 12, by its continued fraction beyond."""
    pi = Decimal("3.14159265358979323846264338327950288419716939937510582097494")
    density = (-x * x / 2).exp() / (2 * pi).sqrt()
    if x > 12:
        fraction = x
        for k in range(400, 0, -1):
            fraction = x + k / fraction
        return density / fraction
    getcontext().prec += 40
    term = total = x
    for k in range(1, 900):
        term = term * x * x / (2 * k + 1)
        total += term
    found = Decimal("0.5") - total * (-x * x / 2).exp() / (2 * pi).sqrt()
    getcontext().prec -= 40
    return found


def test_steps_are_exceeded_almost_never():
    """The tail by scipy, where the docstring has a bound; that of a chi-square is one for subgaussian coordinates."""
    from scipy.stats import chi

    for D in (1, 2, 7, 50, 1000):
        assert chi.logsf(steps_from_real("gaussian", D) / 4, D) < -190 * math.log(10)
