"""What (ε, δ) allows, in μ of Gaussian DP or ρ of zCDP, and what releases cost of it.

*Gaussian DP*: from (ε, δ) to μ and back, and what releases that are no Gaussian sums cost in it.

μ-GDP (Dong, Roth & Su 2022, doi:10.1111/rssb.12454): D and D' are no easier to tell apart than N(0, 1) and N(μ, 1).
Squares of μ add up over adaptive releases (``docs/theory/gaussian-dp.md#filter``), and

    δ_μ(ε) = Φ(-a) - e^ε Φ(-b),  a = ε/μ - μ/2,  b = a + μ,

is all that a Gaussian promises (Balle & Wang 2018, arXiv:1805.06530). Every number here errs on the safe side: what is
computed in floating point is off by less than 10⁻¹², and :data:`ALLOWANCE` of δ pays for that, and for the lattice.

*zCDP*: from (ε, δ) to ρ and back. Pure ε needs no conversion: it adds up.

ρ-zCDP (Bun & Steinke 2016) adds up over adaptive releases; what a user asks for is (ε, δ). The conversion is OpenDP's
zCDP → approximate-DP curve. It is checked against the closed form of Canonne, Kamath & Steinke (2020), which here only
tells where to search.

*Costs* of releases in the measure of a budget, and the noise that an amount of it buys.

================ ================================ ======================== ==========
kind of noise    "gdp": μ²/2                      "zcdp": ρ                "pure": ε
================ ================================ ======================== ==========
gaussian         Δ²/2(σ² - 16)                    OpenDP's map, Δ²/2σ²     -
gumbel, bingham- μ(η)²/2 of its range η           η²/8                     -
zcdp
any pure law     μ²/2, μ = -2Φ⁻¹(1/(1 + e^ε))     ε²/2                     ε
================ ================================ ======================== ==========

Wishart noise and objective perturbation are accounted for in (ε, δ) by themselves and have no place here. Proofs:
``docs/theory/gaussian-dp.md``.

*Objective perturbation*: what noise in the objective of a logistic regression costs: (ε, δ) of its minimisers.

Sources: Chaudhuri, Monteleoni & Sarwate (2011), JMLR 12; Redberg, Koskela & Wang (2023), arXiv:2401.00583 (objective
perturbation of generalised linear models).
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import erfcx, erfinv, log_ndtr, ndtr, ndtri_exp

from fdadp.errors import PrivacyError

if TYPE_CHECKING:
    from fdadp.privacy.cohort import Cohort


ALLOWANCE = 1e-10
"""Of δ: kept back for rounding, and for the factor e^(±10⁻¹²³) between lattice and real Gaussians."""
LARGEST_EPSILON = 1e4
"""ε/μ - μ/2 loses digits beyond it."""
LEAST_DELTA = 1e-300
_SMALL = 0.5
"""μ up to which the difference of two Mills ratios would lose digits, and is integrated instead."""
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)


def _mills(x: float) -> float:
    """Mills ratio Φ(-x)/φ(x)."""
    return math.sqrt(math.pi / 2) * float(erfcx(x / math.sqrt(2)))


def delta_from_mu(mu: float, epsilon: float) -> float:
    """δ of μ-GDP at ε.

    Parameters
    ----------
    mu : float
        Above 0.
    epsilon : float
        At least 0.

    Notes
    -----
    With the Mills ratio R and e^ε φ(b) = φ(a): δ = φ(a) (R(a) - R(b)), for a < 0 Φ(-a) - φ(a) R(b). For μ up to ½ the
    difference is the integral of -R'(t) = 1 - t R(t) over (a, b), by Gauss and Legendre's rule.

    Examples
    --------
    >>> f"{delta_from_mu(0.236704, 1.0):.3e}"
    '1.000e-06'
    """
    a = epsilon / mu - mu / 2
    density = math.exp(-a * a / 2) / math.sqrt(2 * math.pi)
    if mu <= _SMALL:
        points = a + mu * (_NODES + 1) / 2
        slopes = [1 - float(t) * _mills(float(t)) for t in points]
        return density * mu / 2 * float(np.dot(_WEIGHTS, slopes))
    return float(ndtr(-a)) - density * _mills(a + mu) if a < 0 else density * (_mills(a) - _mills(a + mu))


@functools.lru_cache(maxsize=1024)
def epsilon_from_mu(mu: float, delta: float) -> float:
    """Smallest ε (to 12 digits, rounded up) that μ-GDP implies at δ; 0 where 2Φ(μ/2) - 1 ≤ δ.

    Parameters
    ----------
    mu : float
        At least 0.
    delta : float
        In (0, 1).

    Examples
    --------
    >>> round(epsilon_from_mu(0.236704, 1e-6), 4)
    1.0
    >>> epsilon_from_mu(1e-7, 1e-6)
    0.0
    """
    target = delta / (1 + ALLOWANCE)
    if mu == 0 or delta_from_mu(mu, 0.0) <= target:
        return 0.0
    high = mu * (1 + mu)
    while delta_from_mu(mu, high) > target:
        high *= 2
    return bisected(lambda e: delta_from_mu(mu, e) > target, 0.0, high)[1]


@functools.lru_cache(maxsize=1024)
def mu_from(epsilon: float, delta: float) -> float:
    """Largest μ (to 10 digits, rounded down) such that μ-GDP implies (ε, δ).

    Parameters
    ----------
    epsilon : float
        At least 0.
    delta : float
        In (0, 1).

    Raises
    ------
    PrivacyError
        ε is above 10⁴, or δ below 10⁻³⁰⁰: there is no room for rounding there.

    Examples
    --------
    >>> round(mu_from(1.0, 1e-6), 6)
    0.236704
    """
    if not epsilon <= LARGEST_EPSILON:
        raise PrivacyError(f"epsilon must be at most {LARGEST_EPSILON:g} to be accounted for, got {epsilon:g}")
    if not delta >= LEAST_DELTA:
        raise PrivacyError(f"delta must be at least {LEAST_DELTA:g} to be accounted for, got {delta:g}")
    target = delta / (1 + ALLOWANCE)
    low = high = math.sqrt(2 * epsilon) + 1e-3
    while delta_from_mu(high, epsilon) <= target:
        high *= 2
    while delta_from_mu(low, epsilon) > target:
        low /= 2
    return bisected(lambda mu: delta_from_mu(mu, epsilon) <= target, low, high)[0]


def bisected(holds: Callable[[float], bool], low: float, high: float, *, digits: int = 14) -> tuple[float, float]:
    """Ends of a short interval in which a condition, which holds at `low` and not at `high`, ends to hold."""
    while high - low > 10.0**-digits * high:
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high


def mu_from_epsilon(epsilon: float) -> float:
    """μ of an ε-DP release: -2Φ⁻¹(1/(1 + e^ε)), and no less will do for randomised response.

    Parameters
    ----------
    epsilon : float
        Above 0.

    Examples
    --------
    >>> round(mu_from_epsilon(0.1) / 0.1, 3)  # a pure release costs √(π/2) times what a Gaussian's mean shift would
    1.253
    """
    if epsilon <= 1:
        return 2 * math.sqrt(2) * float(erfinv(math.tanh(epsilon / 2)))
    return -2 * float(ndtri_exp(-np.logaddexp(0.0, epsilon)))


def mu_from_range(eta: float) -> float:
    """μ of a selection whose log-ratios lie within a range η, as the exponential mechanism's do.

    ``docs/theory/gaussian-dp.md#range``; the bounded range of Dong, Durfee & Rogers (2020), arXiv:1909.01917.

    Parameters
    ----------
    eta : float
        Above 0.
    """
    return mu_from_epsilon(eta / 2)


def range_from_mu(mu: float) -> float:
    """Range η of a selection that is μ-GDP: 2 log(Φ(μ/2)/Φ(-μ/2)), the inverse of :func:`mu_from_range`.

    Parameters
    ----------
    mu : float
        Above 0.

    Examples
    --------
    >>> round(range_from_mu(mu_from_range(0.7)), 12)
    0.7
    """
    if mu <= 1:
        return 4 * math.atanh(math.erf(mu / (2 * math.sqrt(2))))
    return 2 * float(log_ndtr(mu / 2) - log_ndtr(-mu / 2))


@functools.cache
def opendp() -> Any:
    """Load of OpenDP what is used here, on first use, with the components that it has gated as ``contrib``.

    Names are those of ``opendp.prelude``, which loads scikit-learn and polars, too.
    """
    from opendp import combinators, domains, measurements, measures, metrics, mod

    mod.enable_features("contrib")
    names = vars(mod) | vars(domains) | vars(metrics) | vars(measures)
    return SimpleNamespace(**names | {"m": measurements, "c": combinators})


@functools.cache
def _curve() -> Any:
    """Build OpenDP's zCDP → (ε, δ) map of a mechanism that spends ρ = d²/2 at distance d."""
    dp = opendp()
    unit = dp.m.make_gaussian(dp.atom_domain(T="i64"), dp.absolute_distance(T=float), scale=1.0)
    return dp.c.make_zCDP_to_approxDP(unit)


def epsilon_from(rho: float, delta: float) -> float:
    """Smallest ε such that ρ-zCDP implies (ε, δ), by OpenDP's conversion.

    Parameters
    ----------
    rho : float
        At least 0.
    delta : float
        In (0, 1).

    Raises
    ------
    PrivacyError
        ρ is so large that OpenDP's curve overflows (ε in the thousands).

    Examples
    --------
    >>> round(epsilon_from(0.0243558, 1e-6), 4)
    1.0
    """
    if rho == 0:
        return 0.0
    # Rounded up: the curve may only err on the side of a larger epsilon.
    distance = math.nextafter(math.sqrt(2 * rho), math.inf)
    try:
        return float(_curve().map(distance).epsilon(delta))
    except opendp().OpenDPException as exc:
        raise PrivacyError(f"rho must be small enough to be converted to (epsilon, delta), got {rho:g}") from exc


def epsilon_from_closed_form(rho: float, delta: float) -> float:
    """ε of ρ-zCDP at δ by Canonne, Kamath & Steinke (2020), Corollary 13; NumPy, for checks and starting values.

    ``inf over α > 1 of αρ + log(1/(αδ))/(α-1) + log(1-1/α)``.

    References
    ----------
    Canonne, Kamath & Steinke (2020), The Discrete Gaussian for Differential Privacy, arXiv:2004.00010.
    """
    low, high = -20.0, 25.0  # of log(alpha - 1)
    best = math.inf
    for _ in range(8):
        u = np.linspace(low, high, 201)
        excess = np.exp(u)
        alpha = 1 + excess
        values = alpha * rho - (np.log(alpha) + math.log(delta)) / excess + u - np.log(alpha)
        at = int(np.argmin(values))
        best = min(best, float(values[at]))
        low, high = float(u[max(at - 1, 0)]), float(u[min(at + 1, 200)])
    return max(best, 0.0)


@functools.lru_cache(maxsize=256)
def rho_from(epsilon: float, delta: float) -> float:
    """Largest ρ (to 12 digits) whose converted ε does not exceed ``epsilon``.

    Parameters
    ----------
    epsilon : float
        Above 0.
    delta : float
        In (0, 1).

    Returns
    -------
    float
        With ``epsilon_from(rho, delta) <= epsilon``.

    Raises
    ------
    PrivacyError
        ε is beyond what OpenDP's curve can represent.

    Examples
    --------
    >>> round(rho_from(1.0, 1e-6), 5)
    0.02436
    """
    high = max(epsilon, 1e-6)
    while epsilon_from_closed_form(high, delta) <= epsilon:
        high *= 2
    guess = bisected(lambda r: epsilon_from_closed_form(r, delta) <= epsilon, 0.0, high, digits=10)[0]

    def fits(rho: float) -> bool:
        return epsilon_from(rho, delta) <= epsilon

    low, high = guess * (1 - 1e-6), guess * (1 + 1e-6)
    try:
        while not fits(low):
            low, high = low / 2, low
        while fits(high):
            low, high = high, high * 2
        # The curve is a straight line over so short a stretch: try there first, OpenDP's conversion is slow.
        left, right = epsilon_from(low, delta), epsilon_from(high, delta)
        middle = low + (epsilon - left) / (right - left) * (high - low)
        below, above = middle * (1 - 5e-13), middle * (1 + 5e-13)
        if low < below and above < high and fits(below) and not fits(above):
            return below
        return bisected(fits, low, high, digits=12)[0]
    except PrivacyError as exc:
        raise PrivacyError(f"epsilon must be at most some thousands to be accounted for, got {epsilon:g}") from exc


def noise_multiplier(amount: float, adjacency: str, *, pure: bool) -> float:
    """Sd of the noise of a sum of sensitivity 1 that spends all of μ²/2 or ρ, or of ε; doubled for replaced persons."""
    one = math.sqrt(2) / amount if pure else 1 / math.sqrt(2 * amount)
    return one * (2 if adjacency == "replace" else 1)


def unit_noise(cohort: Cohort, share: float) -> float:
    """Sd of the noise of a sum of sensitivity 1 that takes a share of what a cohort has reserved."""
    return noise_multiplier(cohort.amount * share, cohort.adjacency, pure=cohort.pure) * cohort.inflation


LATTICE_VARIANCE = 16.0
"""A discrete Gaussian of variance σ² is a map of a real one of so much less: ``docs/theory/gaussian-dp.md#lattice``."""

MEASURES = {"gdp": "mu squared / 2 (Gaussian DP)", "zcdp": "rho (zCDP)", "pure": "epsilon"}
"""Names of what adds up."""
_RANGED = ("gumbel", "bingham-zcdp")
"""Kinds whose own cost is η²/8, of a range η."""
IN_RHO = ("gaussian", *_RANGED)
"""Kinds whose own measure is ρ; that of the others is ε."""


def amount_for(accounting: str, kind: str, amount: float) -> float:
    """Amount in a kind's own measure (ρ or ε, see ``noise.sources``) that costs so much of a budget."""
    if accounting == "pure" or kind == "gaussian":
        return amount
    if kind in _RANGED:
        return amount if accounting == "zcdp" else range_from_mu(math.sqrt(2 * amount)) ** 2 / 8
    return math.sqrt(2 * amount) if accounting == "zcdp" else range_from_mu(math.sqrt(2 * amount)) / 2


def cost_of(accounting: str, kind: str, *, sensitivity: float, scale: float, spent: float) -> float:
    """Cost of a release in the measure of a budget, where sums are so far apart and noise has this scale.

    ``spent`` is the cost in the kind's own measure.
    """
    if accounting == "pure":
        return spent
    gdp = accounting == "gdp"
    if kind == "gaussian" and gdp:
        variance = scale**2 - LATTICE_VARIANCE
        return sensitivity**2 / variance / 2 if variance > 0 else math.inf
    if kind in IN_RHO:
        return mu_from_range(math.sqrt(8 * spent)) ** 2 / 2 if gdp else spent
    return (mu_from_epsilon(spent) if gdp else spent) ** 2 / 2


_OF_FLOATS = 1e-11
"""Relative error that is allowed for in values of the normal distribution and in exponentials of up to ε."""


@functools.lru_cache(maxsize=64)
def gaussian_multiplier(epsilon: float, delta: float, ridge: float, problems: int = 1) -> float:
    """Largest μ such that b ~ N(0, I/μ²) in the objective of K logistic problems is (ε, δ)-private.

    Where a person is added or removed, the log-ratio of densities of the K minimisers is at most
    ``K (μ²/2 + log(1 + 1/(4λ))) + μ Σ_k max(0, ζ_k)``, ζ_k ~ N(0, 1) independent: the Jacobian is bounded by the
    rank-one Hessian, and the sign of the gradient of a generalised linear loss is that of its label, whatever w.

    Raises
    ------
    PrivacyError
        λ is so small that the Jacobian alone costs more than ε.
    """
    jacobian, _ = _jacobian_and_rest(epsilon, ridge, problems)
    most = _largest(lambda mu: _hockey_stick(epsilon, mu, jacobian, problems) <= delta)
    return _useful(most, epsilon, delta, ridge)


@functools.lru_cache(maxsize=64)
def replaced_multiplier(epsilon: float, delta: float, ridge: float, problems: int = 1) -> float:
    """As :func:`gaussian_multiplier`, where a person is replaced: one linear term for both of its rows.

    In each problem the log-ratio is at most the largest of 0 and those of Gaussians that one row (twice) or both of
    them move, by 1 or 2 at most, plus one Jacobian. δ is at most the sum over all ways in which problems move. Two
    steps, each of (ε/2, δ/(1 + e^(ε/2))), are taken where they allow more, with many problems.

    Raises
    ------
    PrivacyError
        λ is so small that the Jacobian alone costs more than ε.
    """
    _, gap = _jacobian_and_rest(epsilon, ridge, problems)
    ways = [
        (math.comb(problems, both) * math.comb(problems - both, one) * 2**one, math.sqrt(4 * both + one))
        for both in range(problems + 1)
        for one in range(problems - both + 1)
        if both + one
    ]

    def kept(mu: float) -> bool:
        return math.fsum(times * delta_from_mu(mu * move, gap) for times, move in ways) <= delta / (1 + ALLOWANCE)

    most = _largest(kept)
    with contextlib.suppress(PrivacyError):
        most = max(most, gaussian_multiplier(epsilon / 2, delta / (1 + math.exp(epsilon / 2)), ridge, problems))
    return _useful(most, epsilon, delta, ridge)


def _jacobian_and_rest(epsilon: float, ridge: float, problems: int) -> tuple[float, float]:
    """What the Jacobian of one problem costs at most, and what all leave of ε; refuses where that is nothing."""
    jacobian = math.log1p(1 / (4 * ridge))
    rest = epsilon - problems * jacobian
    if rest <= 0:
        raise PrivacyError(
            f"ridge must be at least {1 / (4 * math.expm1(epsilon / problems)):.3g} at this epsilon, got {ridge:g}"
        )
    return jacobian, rest


def _largest(kept: Callable[[float], bool]) -> float:
    """Largest μ, to the last digit, that is allowed, as all smaller ones are; 0 where none is."""
    low, high = 0.0, 1.0
    while kept(high):
        low, high = high, 2 * high
    return bisected(kept, low, high, digits=17)[0]


def _useful(mu: float, epsilon: float, delta: float, ridge: float) -> float:
    if mu < 1e-6:
        raise PrivacyError(f"ridge must be larger at epsilon {epsilon:g} and delta {delta:g}, got {ridge:g}")
    return mu


def _hockey_stick(epsilon: float, mu: float, jacobian: float, problems: int) -> float:
    """E (1 - exp(ε - L))_+ for L = K (μ²/2 + jacobian) + μ Σ max(0, ζ_k): δ at ε."""
    gap = epsilon - problems * (mu**2 / 2 + jacobian)
    if problems == 1:
        if gap >= 0:
            plus, minus = float(ndtr(-gap / mu)), math.exp(gap + mu**2 / 2 + float(log_ndtr(-gap / mu - mu)))
        else:
            plus, minus = 1.0, 0.5 * math.exp(gap) + math.exp(gap + mu**2 / 2 + float(log_ndtr(-mu)))
        return plus - minus + _OF_FLOATS * (plus + minus) + 1e-300  # which is what underflows
    from scipy.signal import fftconvolve

    # The law of the sum on a grid, each max(0, ζ) rounded up: δ can only come out larger.
    step = 2e-3
    grid = np.arange(0, 12, step)
    law = np.diff(ndtr(grid), prepend=0.0)  # the first cell holds the half that is 0
    law[-1] += 1 - law.sum()
    total = law
    for _ in range(problems - 1):
        total = np.maximum(fftconvolve(total, law), 0.0)
    excess = mu * step * np.arange(total.size) - gap
    rounding = 2e-16 * problems * total.size + 1e-30 * problems  # of the convolutions; what lies beyond 12
    return float((total * np.where(excess > 0, -np.expm1(-np.maximum(excess, 0)), 0.0)).sum()) + rounding
