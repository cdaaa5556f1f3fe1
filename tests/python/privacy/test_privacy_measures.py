"""Measures of a budget: what noise an amount buys, what a release costs, and what goes red if a formula is changed."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest
from mutants import mutate

from fdadp.errors import PrivacyError
from fdadp.learners import DPBoostedStumps, DPLinearRegression, Numeric
from fdadp.planner.simulated_fit_of_one_curve import outcomes
from fdadp.privacy import Budget, Cohort, Ledger, OpenDPNoise, Privacy, SeededNoise, epsilon_from
from fdadp.privacy.account import epsilon_mu_rho as measures
from fdadp.privacy.account.epsilon_mu_rho import amount_for, cost_of, delta_from_mu
from fdadp.privacy.kernel import _kernel
from fdadp.privacy.noise import sources as noise
from fdadp.privacy.noise.distributed import DistributedNoise
from fdadp.privacy.noise.sources import Sampler
from fdadp.private.public.gaussian_process_prior import PublicPrior

ROWS = np.random.default_rng(0).uniform(size=(50, 3))


def cohort(budget: Budget, **settings) -> Cohort:
    return Cohort(ROWS, budget=budget, n=50, noise=SeededNoise(0), **settings)


# ------------------------------------------------------------------ scales and charges


@pytest.mark.parametrize("source", [OpenDPNoise(), SeededNoise(0)])
@pytest.mark.parametrize(
    ("sensitivity", "amount"), list(itertools.product([2.0**8, 2.0**24], [0.9 * 0.028, 1e-4, 5.0]))
)
def test_the_scale_pays_for_the_lattice(source, sensitivity, amount):
    sampler = source.prepare("gaussian", 4, sensitivity, amount)
    assert sensitivity**2 / (sampler.scale**2 - 16) <= 2 * amount
    assert sensitivity**2 / (sampler.scale**2 - 16) > 2 * amount * (1 - 1e-8)


def cost(accounting: str, sampler: Sampler) -> float:
    """By the formula of each kind, from what was prepared."""
    sizes = {"sensitivity": sampler.sensitivity, "scale": sampler.guaranteed or sampler.scale, "spent": sampler.spent}
    return cost_of(accounting, sampler.kind, **sizes)


KINDS = ("gaussian", "gumbel", "bingham-zcdp", "laplace", "exponential", "spherical", "bingham")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("accounting", ["gdp", "zcdp"])
@pytest.mark.parametrize("amount", [1e-6, 0.028, 3.0])
def test_an_amount_buys_noise_that_costs_it(kind, accounting, amount):
    sampler = SeededNoise(0).prepare(kind, 6, 2.0**24, amount_for(accounting, kind, amount))
    assert amount * (1 - 1e-7) < cost(accounting, sampler) <= amount


def two_point_delta(t: float, eta: float, epsilon: float) -> float:
    """δ of the pair of laws with likelihood ratios e^-t and e^(η-t) alone: the worst of all pairs of this range."""
    high = math.expm1(t) / math.expm1(eta)  # mass of the second under one law, e^(η-t) times that under the other
    one = [high * math.exp(eta - t), 1 - high * math.exp(eta - t)]
    other = [high, 1 - high]
    return sum(max(p - math.exp(epsilon) * q, 0) for p, q in zip(one, other, strict=True))


@pytest.mark.parametrize("budget", [Budget(1.0, 1e-6), Budget(0.1, 1e-6), Budget(8.0, 1e-5)])
@pytest.mark.parametrize("kind", ["gumbel", "bingham-zcdp", "laplace"])
def test_the_whole_curve_of_a_selection_is_below_that_of_the_budget(budget, kind):
    """At the budget's own (ε, δ) a charge of η²/8 would pass; at ε = .3 μ its δ is up to 1.3 times too large."""
    sampler = SeededNoise(0).prepare(kind, 3, 2.0**24, amount_for(budget.accounting, kind, budget.total))
    eta = sampler.sensitivity / sampler.scale * (1 if kind == "bingham-zcdp" else 2)  # pure ε: log-ratios in [-ε, ε]
    for t, of_mu in itertools.product([0.1, 0.3, 0.5, 0.7, 0.9], [0.01, 0.1, 0.3, 0.6, 1.0, 2.0]):
        epsilon = of_mu * budget.mu
        assert two_point_delta(t * eta, eta, epsilon) <= delta_from_mu(budget.mu, epsilon)
    tight = max(
        two_point_delta(t * eta, eta, e * budget.mu) / delta_from_mu(budget.mu, e * budget.mu)
        for t, e in itertools.product([0.4, 0.5, 0.6], [0.01, 0.05, 0.1])
    )
    assert tight > 0.9  # and is no more than it takes


def test_the_charge_of_zcdp_breaks_the_curve_of_a_selection():
    budget = Budget(1.0, 1e-6)
    eta = math.sqrt(8 * budget.total)
    epsilon = 0.3 * budget.mu
    assert two_point_delta(eta / 2, eta, epsilon) / delta_from_mu(budget.mu, epsilon) == pytest.approx(1.31, abs=0.01)
    assert two_point_delta(eta / 2, eta, budget.epsilon) == 0  # and at the promise itself nobody would see it


# ------------------------------------------------------------------ budgets


def test_the_total_is_half_of_mu_squared():
    budget = Budget(1.0, 1e-6)
    assert budget.mu == pytest.approx(0.2367043806, rel=1e-9)
    assert budget.total == pytest.approx(budget.mu**2 / 2, rel=1e-15)
    assert (budget.accounting, budget.measure) == ("gdp", "mu squared / 2 (Gaussian DP)")
    old = Budget(1.0, 1e-6, accounting="zcdp")
    assert (old.accounting, old.measure, old.mu) == ("zcdp", "rho (zCDP)", None)
    assert math.sqrt(budget.total / old.total) == pytest.approx(1.0725, abs=2e-4)  # so much less noise
    assert "zCDP" in repr(old)
    for epsilon, delta in ((0.01, 1e-6), (1.0, 1e-9), (1.0, 1e-3), (10.0, 1e-6)):  # ε that OpenDP makes of the total
        assert 1.04 < epsilon_from(Budget(epsilon, delta).total, delta) / epsilon < 1.16
    assert Budget(1.0).accounting == Budget(1.0, accounting="zcdp").accounting == "pure"
    for accounting, delta in [("rdp", 1e-6), ("pure", 1e-6), (None, None)]:
        with pytest.raises(PrivacyError, match="accounting must be 'gdp' or 'zcdp'"):
            Budget(1.0, delta, accounting=accounting)


# ------------------------------------------------------------------ the ledger


def test_the_ledger_says_mu_of_each_release_and_of_all():
    c = cohort(Budget(1.0, 1e-6))
    c.sum(lambda r: r[0], clip=1.0, share=0.25, name="a sum")
    c.select(lambda r: r[0], share=0.5, name="a choice")
    ledger = c.ledger
    total, choice = ledger.releases
    assert total.mu == pytest.approx(0.5 * 0.236704, rel=1e-5)
    assert total.rho == pytest.approx(total.mu**2 / 2, rel=1e-9)  # 24 bits: the lattice is nothing
    assert choice.mu == pytest.approx(math.sqrt(0.5) * 0.236704, rel=1e-5)
    assert choice.rho == pytest.approx(choice.mu**2 / math.pi, rel=1e-2)  # of a small range η: μ = √(π/2) η/2, ρ = η²/8
    said = "mu = 0.2368 (Gaussian DP), which is (epsilon, delta) = (1, 1e-06), (0.728, 0.0001), (1.23, 1e-08)"
    assert ledger.curve == said
    for text in (str(ledger), ledger._repr_html_()):
        assert said in text and "mu squared / 2 (Gaussian DP)" in text and "mu 0.1184, share 0.25" in text
    assert "charged by their range (docs/theory/gaussian-dp.md#range): a choice" in str(ledger)
    assert Ledger.from_json(ledger.to_json()) == ledger
    old = {k: v for k, v in json.loads(ledger.to_json()).items() if k != "mu"}
    old["releases"] = [{k: v for k, v in r.items() if k != "mu"} for r in old["releases"]]
    assert Ledger.from_json(json.dumps(old)).curve == ""  # as written before


@pytest.mark.parametrize("budget", [Budget(1.0), Budget(1.0, 1e-6, accounting="zcdp")])
def test_other_measures_say_nothing_of_mu(budget):
    c = cohort(budget)
    c.sum(lambda r: r[0], clip=1.0, share=0.25, name="a sum")
    assert (c.ledger.mu, c.ledger.curve, c.releases[0].mu) == (None, "", None)
    assert "Gaussian DP" not in str(c.ledger)


def test_a_release_that_is_accounted_for_by_itself_has_no_mu():
    c = cohort(Budget(1.0, 1e-6))
    c.wishart_moment(lambda r: r[0], clip=1.0, share=1.0, name="a moment")
    assert (c.ledger.mu, c.releases[0].mu, c.ledger.epsilon) == (None, None, 1.0)


# ------------------------------------------------------------------ shared budgets


@pytest.mark.parametrize("accounting", ["gdp", "zcdp"])
def test_learners_on_one_budget_count_in_its_measure_whatever_they_prefer(accounting):
    X, y = np.tile(ROWS, (8, 1)), np.tile(ROWS[:, 0] > 0.5, 8).astype(int)
    budget = Budget(2.0, 1e-6, accounting=accounting)
    common = {"delta": 1e-6, "n": 400, "budget": budget, "dataset": "rows", "random_state": 0}
    line = DPLinearRegression(epsilon=1.0, bounds=(0, 1), bounds_y=(0, 1), **common).fit(X, y)
    stumps = DPBoostedStumps(epsilon=0.9, classes=[0, 1], features=Numeric(0, 1, edges=4), n_rounds=2, **common)
    stumps.fit(X, y)
    assert (budget.accounting, budget.measure) == (accounting, measures.MEASURES[accounting])
    for model in (line, stumps):
        assert model.ledger_.details["accounting"] == budget.measure
        assert model.ledger_.mu == budget.mu
        assert all((r.mu is None) == (accounting == "zcdp") for r in model.ledger_.releases)
    spent = math.fsum(r.spent for model in (line, stumps) for r in model.ledger_.releases)
    assert spent == pytest.approx(budget.cost) and spent <= budget.spent <= budget.total
    assert budget.spent == pytest.approx(
        sum(Budget(epsilon, 1e-6, accounting=accounting).total for epsilon in (1.0, 0.9)), rel=1e-6
    )
    with pytest.raises(PrivacyError, match="share must be at most what the budget has left"):
        DPLinearRegression(epsilon=1.9, bounds=(0, 1), bounds_y=(0, 1), **common).fit(X, y)
    own = DPBoostedStumps(epsilon=0.9, delta=1e-6, classes=[0, 1], features=Numeric(0, 1, edges=4), n=400, n_rounds=2)
    assert own.set_params(random_state=0).fit(X, y).ledger_.details["accounting"] == "rho (zCDP)"


def test_the_measure_of_a_budget_cannot_be_changed_by_a_fit():
    budget = Budget(1.0, 1e-6)
    found, share = Privacy(1.0, 1e-6, n=50, budget=budget).budget_share("zcdp")
    assert found is budget and share == 1.0 and budget.accounting == "gdp"


# ------------------------------------------------------------------ many owners, and noise beyond all measure


@pytest.mark.parametrize("honest", [1, 2, 3, 5, 8])
def test_the_honest_shares_pay_for_the_lattice_together(honest):
    amount = 0.9 * Budget(1.0, 1e-6).total
    source = DistributedNoise(owners=8, honest=honest, n_max=10, random_state=0)
    sampler = source.prepare("gaussian", 3, 2.0**8, amount)
    assert sampler.scale == pytest.approx(sampler.guaranteed * math.sqrt(8 / honest), rel=1e-12)
    assert amount * (1 - 1e-6) < cost("gdp", sampler) <= amount
    share_sd = sampler.guaranteed / math.sqrt(honest)
    alone = 2.0**8 / math.sqrt(share_sd**2 - 16)
    assert f"all but one owner have that one's persons at mu = {alone:.4g} (Gaussian DP)" in source.assumption


def test_a_simulation_with_next_to_no_budget_has_the_noise_that_was_asked_for():
    """μ = 10⁻⁶ is (0, δ) at every usual δ; no budget can be made of ε = 0."""
    (found,) = outcomes(PublicPrior(), 60, [1e6 / 60], [0], pure=False)
    assert found.share < 0.5


# ------------------------------------------------------------------ mutants


def one_sum(source=None) -> Cohort:
    c = Cohort(ROWS, budget=Budget(1.0, 1e-6), n=50, noise=source or SeededNoise(0))
    c.sum(lambda r: r[0], clip=1.0, share=0.9, name="a sum", bits=8)
    return c


def test_without_the_16_the_kernel_refuses(monkeypatch):
    """OpenDP's map would not: it is below the amount."""
    amount = 0.9 * Budget(1.0, 1e-6).total
    monkeypatch.setattr(noise, "LATTICE_VARIANCE", 0.0)
    assert OpenDPNoise().prepare("gaussian", 3, 2.0**8, amount).spent <= amount
    with pytest.raises(PrivacyError, match="above its share"):
        one_sum()
    with pytest.raises(PrivacyError, match="above its share"):
        one_sum(DistributedNoise(owners=8, honest=3, n_max=10, random_state=0))


def test_what_a_sum_was_charged_is_its_cost_with_the_16(monkeypatch):
    def off() -> float:
        (release,) = one_sum().releases
        steps = release.scale / release.sensitivity * 2.0**8
        return release.spent / (2.0**16 / (steps**2 - 16) / 2) - 1

    assert off() == pytest.approx(0, abs=1e-12)
    mutate(monkeypatch, measures, "variance = scale**2 - LATTICE_VARIANCE", "variance = scale**2")
    assert off() < -1e-5


def curve_of_a_choice() -> float:
    """Largest δ over that of the budget, over the curve, of the worst pair of a selection's range."""
    budget = Budget(1.0, 1e-6)
    c = Cohort(ROWS, budget=budget, n=50, noise=SeededNoise(0))
    c.select(lambda r: r[0], share=1.0, name="a choice")
    (release,) = c.releases
    eta = 2 * release.sensitivity / release.scale
    points = itertools.product([0.3, 0.4, 0.5, 0.6], [0.1, 0.3, 0.6, 1.0])
    return max(
        two_point_delta(t * eta, eta, e * budget.mu) / delta_from_mu(budget.mu, e * budget.mu) for t, e in points
    )


def test_a_selection_charged_as_in_zcdp_is_seen(monkeypatch):
    assert 0.95 < curve_of_a_choice() <= 1
    mutate(
        monkeypatch,
        measures,
        'return amount if accounting == "zcdp" else range_from_mu(math.sqrt(2 * amount)) ** 2 / 8',
        "return amount",
    )
    with pytest.raises(PrivacyError, match="above its share"):
        curve_of_a_choice()
    monkeypatch.setattr(_kernel, "cost_of", lambda *a, spent, **k: spent)
    assert curve_of_a_choice() > 1.25


def test_mu_added_instead_of_its_squares_is_seen(monkeypatch):
    def total() -> float:
        c = cohort(Budget(1.0, 1e-6))
        for share in (0.2, 0.3, 0.5):
            c.sum(lambda r: r[0], clip=1.0, share=share, name=f"{share}")
        return math.hypot(*(r.sensitivity / r.scale for r in c.releases)) / c.budget.mu

    assert total() == pytest.approx(1, rel=1e-6)
    mutate(monkeypatch, noise, "sensitivity / math.sqrt(2 * amount), math", "sensitivity / (2 * amount), math")
    assert total() < 0.2  # shares of μ, not of μ²: nothing is broken, and most of the budget is thrown away


def test_charges_that_are_not_squared_are_refused(monkeypatch):
    mutate(monkeypatch, measures, "return sensitivity**2 / variance / 2", "return sensitivity / math.sqrt(variance)")
    with pytest.raises(PrivacyError, match="above its share"):
        one_sum()
