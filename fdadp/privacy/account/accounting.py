"""From (ε, δ) to a zCDP budget ρ and back. Pure ε needs no conversion: it adds up.

ρ-zCDP (Bun & Steinke 2016) adds up over adaptive releases; what a user asks for is (ε, δ). The conversion is OpenDP's
zCDP → approximate-DP curve. It is checked against the closed form of Canonne, Kamath & Steinke (2020), which here only
tells where to search.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp.errors import PrivacyError

if TYPE_CHECKING:
    from fdadp.privacy.cohort import Cohort


@functools.cache
def opendp() -> Any:
    """Load OpenDP on first use (it takes seconds) with the components that it has gated as ``contrib``."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    return dp


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
    guess = _bisect(lambda r: epsilon_from_closed_form(r, delta) <= epsilon, *_bracket(epsilon, delta), digits=10)

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
        return _bisect(fits, low, high, digits=12)
    except PrivacyError as exc:
        raise PrivacyError(f"epsilon must be at most some thousands to be accounted for, got {epsilon:g}") from exc


def _bracket(epsilon: float, delta: float) -> tuple[float, float]:
    high = max(epsilon, 1e-6)
    while epsilon_from_closed_form(high, delta) <= epsilon:
        high *= 2
    return 0.0, high


def _bisect(holds: Any, low: float, high: float, *, digits: int) -> float:
    """Largest value in [low, high] at which a decreasing condition still holds; low is returned, never high."""
    while high - low > 10.0**-digits * high:
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def noise_multiplier(amount: float, adjacency: str, *, pure: bool) -> float:
    """Sd of the noise of a sum of sensitivity 1 that spends all of μ²/2 or ρ, or of ε; doubled for replaced persons."""
    one = math.sqrt(2) / amount if pure else 1 / math.sqrt(2 * amount)
    return one * (2 if adjacency == "replace" else 1)


def unit_noise(cohort: Cohort, share: float) -> float:
    """Sd of the noise of a sum of sensitivity 1 that takes a share of what a cohort has reserved."""
    return noise_multiplier(cohort.amount * share, cohort.adjacency, pure=cohort.pure) * cohort.inflation
