"""What a guarantee means for one person: what anybody may conclude, odds, and tests of an attacker.

Everything compares two worlds: the one in which the person's data are in, and the one in which they were left out.
That holds for everybody, whatever they believe or know besides. Odds are said of somebody who knows all other persons'
data: to others, one person's data may be tied to another's. Proofs: ``docs/theory/accounting.md#odds``; Kasiviswanathan
& Smith 2014 (doi:10.29012/jpc.v6i1.634), Wasserman & Zhou 2010 (doi:10.1198/jasa.2009.tm08651), Kifer &
Machanavajjhala 2011 (doi:10.1145/1989323.1989345).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from fdadp.privacy.account.epsilon_mu_rho import delta_from_mu


@dataclass(frozen=True)
class Protected:
    """How sentences speak of what is protected: of a person's data, or of one row.

    Attributes
    ----------
    about, own, it : str
        Whom conclusions are about; what is used or not; the same once it was named.
    was : str
        The verb that goes with it.
    others, units : str
        What an attacker knows, and what there are n of.
    """

    about: str
    own: str
    it: str
    was: str
    others: str
    units: str


PERSON = Protected("you", "your data", "your data", "were", "all other persons' data", "persons")
ROW = Protected("one row of the data", "one row", "this row", "was", "all other rows", "rows")

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
    """What somebody who knows all other persons' data can learn of one person.

    Attributes
    ----------
    factor : float
        The odds that the person took part change at most by this factor. Under "replace": the odds between two values
        of the person's data.
    exception : float
        Probability of all outcomes together in which they change more, up or down; 0 in pure ε.
    power : float
        Of the best test of whether a person's data are in, which raises a false alarm in one case of twenty.
    values_factor, values_exception : float
        The same of the odds between two values of the person's data. They are two steps apart where neighbours differ
        by a person's presence, and one step under "replace".
    """

    factor: float
    exception: float
    power: float
    values_factor: float
    values_exception: float

    @staticmethod
    def after(prior: float, factor: float) -> tuple[float, float]:
        """Least and largest probability after the release of what had probability `prior` before it."""
        return prior / (prior + (1 - prior) * factor), prior * factor / (prior * factor + 1 - prior)


def odds_of(epsilon: float, delta: float | None, mu: float | None, adjacency: str = "zero-out") -> Odds:
    """What (ε, δ) means, or μ where the guarantee is in Gaussian DP.

    Parameters
    ----------
    epsilon : float
    delta : float or None
        None: pure ε.
    mu : float or None
    adjacency : {"zero-out", "add-remove", "replace"}
        How neighbours differ.

    Notes
    -----
    Let P and Q be the laws of all releases in two worlds, and δ(·) a curve of the guarantee. The outcomes S that are
    more than e^ε times as probable under P have ``P(S) <= δ(ε')/(1 - e^(ε' - ε))`` for each ε' below ε. So have, under
    Q, those that are more than e^ε times as probable under Q, and under P e^-ε of that: (1 + e^-ε) times the bound
    covers both sides. Two steps cost 2ε, (2ε, (1 + e^ε) δ), or 2μ. The power at level α is at most
    ``min(e^ε α + δ, 1 - e^-ε (1 - α - δ))``, and Φ(Φ⁻¹(α) + μ) in Gaussian DP.

    Examples
    --------
    >>> pure = odds_of(0.5, None, None)
    >>> round(pure.factor, 2), pure.exception, [round(p, 3) for p in pure.after(0.1, pure.factor)]
    (1.65, 0.0, [0.063, 0.155])
    >>> round(pure.values_factor, 2)
    2.72
    """
    steps = 1 if adjacency == "replace" else 2
    alpha = FALSE_ALARMS
    if delta is None:
        return Odds(math.exp(epsilon), 0.0, _power(alpha, epsilon, 0.0), math.exp(steps * epsilon), 0.0)
    if mu is None:
        apart = delta if steps == 1 else delta * (1 + math.exp(epsilon))
        one, values = _of_pair(epsilon, delta), _of_pair(steps * epsilon, apart)
        return Odds(*one, _power(alpha, epsilon, delta), *values)
    from scipy.special import ndtr, ndtri

    one, values = (_of_curve(k * epsilon, partial(delta_from_mu, k * mu)) for k in (1, steps))
    return Odds(*one, float(ndtr(ndtri(alpha) + mu)), *values)


def _of_pair(epsilon: float, delta: float) -> tuple[float, float]:
    """Factor and exception where one pair alone is known."""
    return math.exp(epsilon + SPARE), _both_sides(delta / -math.expm1(-SPARE), epsilon + SPARE)


def _of_curve(epsilon: float, curve: Callable[[float], float]) -> tuple[float, float]:
    """Factor and exception where δ is known at each ε."""
    smaller = (epsilon * i / POINTS for i in range(POINTS))
    return math.exp(epsilon), _both_sides(min(curve(e) / -math.expm1(e - epsilon) for e in smaller), epsilon)


def _both_sides(one: float, epsilon: float) -> float:
    return min(one * (1 + math.exp(-epsilon)), 1.0)


def _power(alpha: float, epsilon: float, delta: float) -> float:
    return min(math.exp(epsilon) * alpha + delta, 1 - math.exp(-epsilon) * (1 - alpha - delta))
