"""What a guarantee means for one person: odds, probabilities before and after, and tests of an attacker.

All of it holds whatever the attacker knows besides, for every prior: consequences of the definition alone (Wasserman &
Zhou 2010, doi:10.1198/jasa.2009.tm08651; Kasiviswanathan & Smith 2014, doi:10.29012/jpc.v6i1.634).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from fdadp.privacy.gaussian_dp import delta_from_mu

__all__ = ["PRIORS", "Odds", "odds_of"]

PRIORS = (0.01, 0.1, 0.5)
"""Probabilities before the release, for tables."""
FALSE_ALARMS = 0.05
"""Of the tests whose power is said."""
SPARE = math.log(1.1)
"""Added to ε where nothing but one pair (ε, δ) is known: the exceptions are then finite in probability."""
POINTS = 400
"""Values of ε' among which the smallest bound is looked for; each is a bound."""


@dataclass(frozen=True)
class Odds:
    """What an attacker can learn of one person.

    Attributes
    ----------
    factor : float
        By which the odds of any statement about one person's data change at most.
    exception : float
        Probability of all outcomes together in which they may change more; 0 in pure ε.
    power : float
        Of the best test of whether a person's data are in, which raises a false alarm in one case of twenty.
    """

    factor: float
    exception: float
    power: float

    def after(self, prior: float) -> tuple[float, float]:
        """Least and largest probability after the release of what had probability `prior` before it."""
        return prior / (prior + (1 - prior) * self.factor), prior * self.factor / (prior * self.factor + 1 - prior)


def odds_of(epsilon: float, delta: float | None, mu: float | None) -> Odds:
    """What (ε, δ) means, or μ where the guarantee is in Gaussian DP.

    Parameters
    ----------
    epsilon : float
    delta : float or None
        None: pure ε.
    mu : float or None

    Notes
    -----
    Of S, the outcomes that are more than e^ε times as probable with a person's data as without, ``P(S) <= e^ε' Q(S) +
    δ(ε')`` and ``Q(S) <= e^-ε P(S)``; so ``P(S) <= δ(ε')/(1 - e^(ε' - ε))`` for each ε' below ε. The power at level α
    is at most ``min(e^ε α + δ, 1 - e^-ε (1 - α - δ))``, and Φ(Φ⁻¹(α) + μ) in Gaussian DP.

    Examples
    --------
    >>> pure = odds_of(0.5, None, None)
    >>> round(pure.factor, 2), pure.exception, [round(p, 3) for p in pure.after(0.1)]
    (1.65, 0.0, [0.063, 0.155])
    """
    alpha = FALSE_ALARMS
    if delta is None:
        return Odds(math.exp(epsilon), 0.0, _power(alpha, epsilon, 0.0))
    if mu is None:
        return Odds(math.exp(epsilon + SPARE), delta / -math.expm1(-SPARE), _power(alpha, epsilon, delta))
    from scipy.special import ndtr, ndtri

    smaller = (epsilon * i / POINTS for i in range(POINTS))
    exception = min(delta_from_mu(mu, e) / -math.expm1(e - epsilon) for e in smaller)
    return Odds(math.exp(epsilon), exception, float(ndtr(ndtri(alpha) + mu)))


def _power(alpha: float, epsilon: float, delta: float) -> float:
    return min(math.exp(epsilon) * alpha + delta, 1 - math.exp(-epsilon) * (1 - alpha - delta))
