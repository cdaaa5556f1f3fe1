"""Gaussian differential privacy: from (ε, δ) to μ and back, and what releases that are no Gaussian sums cost in it.

μ-GDP (Dong, Roth & Su 2022, doi:10.1111/rssb.12454): D and D' are no easier to tell apart than N(0, 1) and N(μ, 1).
Squares of μ add up over adaptive releases (``docs/theory/gaussian-dp.md#filter``), and

    δ_μ(ε) = Φ(-a) - e^ε Φ(-b),  a = ε/μ - μ/2,  b = a + μ,

is all that a Gaussian promises (Balle & Wang 2018, arXiv:1805.06530). Every number here errs on the safe side: what is
computed in floating point is off by less than 10⁻¹², and :data:`ALLOWANCE` of δ pays for that, and for the lattice.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np
from scipy.special import erfcx, erfinv, log_ndtr, ndtr, ndtri_exp

from fdadp.errors import PrivacyError

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
    return _bisect(lambda e: delta_from_mu(mu, e) > target, 0.0, high)[1]


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
    return _bisect(lambda mu: delta_from_mu(mu, epsilon) <= target, low, high)[0]


def _bisect(holds: Callable[[float], bool], low: float, high: float) -> tuple[float, float]:
    """Ends of a short interval in which a condition, which holds at `low` and not at `high`, ends to hold."""
    while high - low > 1e-14 * high:
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
