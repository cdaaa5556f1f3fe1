"""Gaussian DP: the curve, its inverses, and the lattice."""

from __future__ import annotations

import math

import numpy as np
import pytest
from free_accuracy import attacked, plan_delta

from fdadp.errors import PrivacyError
from fdadp.privacy import Budget, SeededNoise
from fdadp.privacy.account.epsilon_mu_rho import (
    delta_from_mu,
    epsilon_from_mu,
    mu_from,
    mu_from_epsilon,
    mu_from_range,
    range_from_mu,
)

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
    found = mu_from(epsilon, delta)
    assert exact * (1 - 3e-10) < found < exact
    assert delta_from_mu(found, epsilon) < delta * (1 - 0.99e-10)  # which is kept back for rounding and the lattice
    assert delta_from_mu(exact, epsilon) == pytest.approx(delta, rel=1e-11, abs=0)


@pytest.mark.parametrize(("epsilon", "delta", "exact"), POINTS)
def test_epsilon_is_never_below_the_exact_one(epsilon, delta, exact):
    found = epsilon_from_mu(exact, delta)
    assert found >= epsilon * (1 - 1e-13)
    # dδ/dε = -e^ε Φ(-b): how far 10⁻¹⁰ of δ carries ε, and it is not far where δ depends on ε at all
    slope = (delta_from_mu(exact, epsilon * (1 - 1e-6)) - delta_from_mu(exact, epsilon)) / (1e-6 * epsilon)
    if slope * epsilon > 1e-4 * delta:
        assert found <= epsilon + 2e-10 * delta / slope + 1e-12 * epsilon


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1.0, 1e-6), (8.0, 1e-3)])
def test_of_a_budget_the_squares_of_mu_add_up(epsilon, delta):
    """What is drawn on is μ²/2: four releases of half of μ use it up, not two."""
    mu = mu_from(epsilon, delta)
    budget = Budget(epsilon, delta)
    assert budget.total == pytest.approx(4 * (mu / 2) ** 2 / 2, rel=1e-12)
    assert budget.mu == pytest.approx(mu, rel=1e-12) and delta_from_mu(budget.mu, epsilon) <= delta * (1 + 1e-9)


@pytest.mark.parametrize(("epsilon", "exact"), PURE.items())
def test_mu_of_pure_releases_and_back(epsilon, exact):
    assert mu_from_epsilon(epsilon) == pytest.approx(exact, rel=1e-13, abs=0)
    assert mu_from_range(2 * epsilon) == mu_from_epsilon(epsilon)
    assert range_from_mu(exact) == pytest.approx(2 * epsilon, rel=1e-13, abs=0)


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


@pytest.mark.parametrize(("epsilon", "eta", "count"), [(1.0, 0.5, 3), (0.5, 0.2, 8), (2.0, 0.4, 12), (0.2, 0.5, 1)])
def test_a_plan_of_selections_costs_what_an_adversary_reaches_and_little_more(epsilon, eta, count):
    """The bound of theory/gaussian-dp.md#plans is above every strategy on a grid, whichever grid, and falls to them."""
    bounds = [plan_delta(epsilon, [("select", eta)] * count, eta / cells) for cells in (8, 16, 64)]
    reached = max(attacked(epsilon, eta, count, cells) for cells in (8, 17, 64))
    assert reached <= bounds[2] * (1 + 1e-9)
    assert bounds[2] <= bounds[1] * (1 + 1e-9) <= bounds[0] * (1 + 2e-9)
    assert bounds[2] <= 1.1 * reached
    if count > 1:  # one t for all is not the worst case
        t = math.log((1 + math.exp(eta)) / 2)
        p = (math.exp(eta) - math.exp(t)) / math.expm1(eta)
        up = np.arange(count + 1)
        chance = np.array([math.comb(count, k) * p**k * (1 - p) ** (count - k) for k in up])
        assert chance @ np.maximum(1 - np.exp(epsilon - count * t + (count - up) * eta), 0) < reached


def test_a_plan_of_sums_is_gaussian_and_one_that_mixes_is_dearer_than_its_parts():
    sums = plan_delta(1.0, [("sum", 0.2)] * 4, 0.01)
    assert sums == pytest.approx(delta_from_mu(0.4, 1.0), rel=5e-3) and sums >= delta_from_mu(0.4, 1.0)
    both = plan_delta(1.0, [("select", 0.3), ("sum", 0.2)] * 4, 0.3 / 16)
    assert both > max(sums, plan_delta(1.0, [("select", 0.3)] * 4, 0.3 / 16))
    assert both < delta_from_mu(math.sqrt(0.16 + 4 * mu_from_range(0.3) ** 2), 1.0)
