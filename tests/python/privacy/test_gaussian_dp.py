"""Accounting in Gaussian DP: the curve, its inverses, the lattice, selections, and what a budget adds up."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest

from fdadp.errors import PrivacyError
from fdadp.privacy import Budget, Cohort, Ledger, OpenDPNoise, SeededNoise
from fdadp.privacy._measures import amount_for, cost_of
from fdadp.privacy.gaussian_dp import (
    delta_from_mu,
    epsilon_from_mu,
    mu_from,
    mu_from_epsilon,
    mu_from_range,
    range_from_mu,
)
from fdadp.privacy.noise import Sampler

DELTAS = (1e-15, 1e-9, 1e-6, 1e-3, 0.1, 0.9)
# By bisection with mpmath 1.3 in 100 digits, of Φ(μ/2 - ε/μ) - e^ε Φ(-μ/2 - ε/μ) = δ.
MU = {
    1e-8: (
        2.18144286053908424e-9,
        1.06681658916996423e-8,
        2.51914155546661897e-6,
        0.00250664145146322757,
        0.251322705079386228,
        3.28970725875093028,
    ),
    1e-6: (
        1.84767131041998961e-7,
        4.104403020248586e-7,
        3.62279588374922151e-6,
        0.00250788079330063053,
        0.25132383063203331,
        3.28970773870135394,
    ),
    1e-4: (
        0.0000162697910642351676,
        0.0000276315690739893137,
        0.0000580009116932033707,
        0.00262993415715803121,
        0.251436366613851572,
        3.28975573319590253,
    ),
    0.01: (
        0.00146795049329105284,
        0.00218098466104434907,
        0.0032642362400687987,
        0.010648785811657761,
        0.262505512851008702,
        3.29454971674981178,
    ),
    0.1: (
        0.0140251283867823392,
        0.0199164234126814673,
        0.0275446502438276217,
        0.0574567476133322595,
        0.351256249519093097,
        3.33764578055096043,
    ),
    1.0: (
        0.133564676828025934,
        0.181974807295332265,
        0.236704380663435709,
        0.388401248306584478,
        0.9209139666132833,
        3.72894368198845171,
    ),
    10.0: (
        1.20633100647410368,
        1.53787733681453996,
        1.84813220576708412,
        2.46269292333848778,
        3.5484640258860138,
        6.16575619966046189,
    ),
    300.0: (
        17.8407907285281419,
        19.2551907672257729,
        20.2343832818285973,
        21.6366358187426342,
        23.286480852497077,
        25.8517065321669112,
    ),
    3000.0: (
        69.9365028517983907,
        71.7060817535943324,
        72.8644370706045571,
        74.4436895011580589,
        76.2015151836882652,
        78.7648317720584363,
    ),
}
# As above, of Φ(-μ/2) = 1/(1 + e^ε).
PURE = {
    1e-12: 1.25331413731550023e-12,
    1e-8: 1.25331413731550028e-8,
    1e-4: 0.000125331413709136405,
    0.1: 0.125309012211607588,
    0.5: 0.623892592098508192,
    1.0: 1.23203538534490097,
    1.0001: 1.2321545452902046,
    5.0: 4.94667844559565859,
    30.0: 14.7153336300175248,
    709.0: 75.0709033961018411,
    710.0: 75.1241297760801494,
    1e4: 282.759679746254327,
}
POINTS = [(e, d, mu) for e, row in MU.items() for d, mu in zip(DELTAS, row, strict=True)]


@pytest.mark.parametrize(("epsilon", "delta", "exact"), POINTS)
def test_mu_is_the_largest_and_never_above_it(epsilon, delta, exact):
    assert exact * (1 - 3e-10) < mu_from(epsilon, delta) < exact
    assert delta_from_mu(exact, epsilon) == pytest.approx(delta, rel=1e-11)


@pytest.mark.parametrize(("epsilon", "delta", "exact"), POINTS)
def test_epsilon_is_never_below_the_exact_one(epsilon, delta, exact):
    found = epsilon_from_mu(exact, delta)
    assert found >= epsilon * (1 - 1e-13)
    # dδ/dε = -e^ε Φ(-b): how far 10⁻¹⁰ of δ carries ε, and it is not far where δ depends on ε at all
    slope = (delta_from_mu(exact, epsilon * (1 - 1e-6)) - delta_from_mu(exact, epsilon)) / (1e-6 * epsilon)
    if slope * epsilon > 1e-4 * delta:
        assert found <= epsilon + 2e-10 * delta / slope + 1e-12 * epsilon


@pytest.mark.parametrize(("epsilon", "exact"), PURE.items())
def test_mu_of_pure_releases_and_back(epsilon, exact):
    assert mu_from_epsilon(epsilon) == pytest.approx(exact, rel=1e-13)
    assert mu_from_range(2 * epsilon) == mu_from_epsilon(epsilon)
    assert range_from_mu(exact) == pytest.approx(2 * epsilon, rel=1e-13)


def test_mu_that_delta_pays_for_alone_has_epsilon_zero():
    assert epsilon_from_mu(0.0, 1e-6) == epsilon_from_mu(2.5e-6, 1e-6) == 0
    assert 0 < epsilon_from_mu(2.6e-6, 1e-6) < 1e-7


def test_what_cannot_be_computed_is_refused():
    with pytest.raises(PrivacyError, match="epsilon must be at most 10000"):
        mu_from(1.1e4, 1e-6)
    with pytest.raises(PrivacyError, match="delta must be at least"):
        mu_from(1.0, 1e-301)


# ------------------------------------------------------------------ the lattice (Lemma 1)


def exact_deltas(sigma: float, moves: tuple[int, ...], epsilons: list[float]) -> np.ndarray:
    """δ of discrete Gaussians of scale σ in each coordinate against those moved by `moves`, by exact sums."""
    reach = int(14 * sigma) + max(moves)
    x = np.arange(-reach, reach + 1, dtype=np.float64)
    laws = []
    for centre in (0, 1):
        log = np.zeros((1,))
        for move in moves:
            one = -((x - centre * move) ** 2) / (2 * sigma**2)
            one -= np.log(np.exp(-(x**2) / (2 * sigma**2)).sum())
            log = (log[:, None] + one[None]).ravel()
        laws.append(log)
    p, q = laws
    return np.array([np.maximum(np.exp(p) - np.exp(e + q), 0).sum() for e in epsilons])


EPSILONS = [0.05, 0.2, 0.5, 1.0, 2.0, 3.0]


@pytest.mark.parametrize("sigma", [3.0, 4.2, 5.0, 6.5, 8.0])
@pytest.mark.parametrize("moves", [(1,), (2,), (3,), (5,), (8,), (1, 1), (1, 2), (2, 2)])
def test_a_discrete_gaussian_is_no_worse_than_the_real_one_with_16_less(sigma, moves):
    delta = exact_deltas(sigma, moves, EPSILONS)
    square = sum(m * m for m in moves)
    if sigma > 4:
        mu = math.sqrt(square / (sigma**2 - 16))
        assert (delta <= [delta_from_mu(mu, e) * (1 + 1e-10) for e in EPSILONS]).all()
    else:  # nothing is promised
        sampler = SeededNoise(0).prepare("gaussian", len(moves), math.sqrt(square), 1e9)
        assert sampler.scale >= 4


def test_a_discrete_gaussian_is_worse_than_the_real_one_of_its_own_variance():
    """Why the 16 are there: σ = 3, Δ = 2, ε between the atoms of the log-ratio."""
    epsilons = np.linspace(0.1, 4, 200).tolist()
    ratio = exact_deltas(3.0, (2,), epsilons) / [delta_from_mu(2 / 3, e) for e in epsilons]
    assert 1.1 < ratio.max() < 1.2


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
    sizes = {"sensitivity": sampler.sensitivity, "scale": sampler.scale, "spent": sampler.spent}
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
    assert Budget(1.0).accounting == Budget(1.0, accounting="zcdp").accounting == "pure"
    for accounting, delta in [("rdp", 1e-6), ("pure", 1e-6), (None, None)]:
        with pytest.raises(PrivacyError, match="accounting must be 'gdp' or 'zcdp'"):
            Budget(1.0, delta, accounting=accounting)


# ------------------------------------------------------------------ the ledger


def cohort(budget: Budget, **settings) -> Cohort:
    rows = np.random.default_rng(0).uniform(size=(50, 3))
    return Cohort(rows, budget=budget, n=50, noise=SeededNoise(0), **settings)


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
