"""Black-box audit: a lower bound on ε from scores of many outputs with and without one person."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fdadp._common.checks import fraction
from fdadp._common.typing import FloatArray
from fdadp.audit.lower_bound import TOO_SMALL, LowerBound
from fdadp.errors import InputError
from fdadp.privacy.account.gaussian_dp import epsilon_from_mu, mu_from


@dataclass(frozen=True)
class BlackBoxAudit(LowerBound):
    """A lower bound on ε from outside.

    Attributes
    ----------
    epsilon, delta : float
        What is claimed.
    found : float
        Lower bound on ε at this δ, at the confidence `level`; never below 0.
    level : float
    threshold : float
        Of the score, at which the bound was found.
    ceiling : float
        What the number of draws allows to find at most.
    present, absent : ndarray
        The scores with and without the person.
    """

    threshold: float
    ceiling: float
    present: FloatArray = field(repr=False)
    absent: FloatArray = field(repr=False)

    def __str__(self) -> str:
        return f"black-box audit: {self._verdict} ({len(self.present)} draws a side can show {self.ceiling:.2f})"


def black_box_audit(
    present: FloatArray,
    absent: FloatArray,
    *,
    epsilon: float,
    delta: float = 0.0,
    mu: float | None = None,
    level: float = 0.95,
) -> BlackBoxAudit:
    """Bound ε from below, from scores of independent outputs with and without one person.

    (ε, δ) implies ``P(score > c | present) <= e^ε P(score > c | absent) + δ`` for every c, and three more of the kind.
    The first half of the draws chooses c, in each direction; the second half bounds both probabilities (Clopper &
    Pearson 1934), each at a quarter of ``1 - level``, so that all four hold together.

    Parameters
    ----------
    present, absent : ndarray
        One score an output, of any meaning; at least 20 each. A log-likelihood ratio is the strongest.
    epsilon, delta : float
        The claim.
    mu : float, optional
        The claim in Gaussian DP, where it is one. The whole curve is then tested, not the point (ε, δ) alone, at
        which thousands of draws find nothing: μ >= Φ⁻¹(true positives) - Φ⁻¹(false positives), and
        `found` is the ε at δ of the largest μ that was shown.
    level : float
        Confidence.

    Returns
    -------
    BlackBoxAudit

    Raises
    ------
    InputError
        Too few scores, NaN among them, or a level outside (0, 1).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> laplace = rng.laplace(size=(2, 4000))  # a count with epsilon = 1
    >>> audit = black_box_audit(laplace[0] + 1, laplace[1], epsilon=1.0)
    >>> audit.passed, bool(0.7 < audit.found)
    (True, True)
    >>> black_box_audit(3 * laplace[0] + 9, 3 * laplace[1], epsilon=1.0).passed
    False
    """
    scores = [np.asarray(a, dtype=np.float64).ravel() for a in (present, absent)]
    if min(len(a) for a in scores) < 20 or any(np.isnan(a).any() for a in scores):
        raise InputError(f"present and absent must be 20 scores or more without NaN, got {[len(a) for a in scores]}")
    fraction(level, "level")
    alpha, shown = (1 - level) / 4, _Shown(delta, mu)
    found, threshold = 0.0, math.nan
    first = [a[: len(a) // 2] for a in scores]
    last = [a[len(a) // 2 :] for a in scores]
    candidates = np.quantile(np.concatenate(first), np.linspace(0.002, 0.998, 400))
    for here, there in ((0, 1), (1, 0)):
        sign = 1.0 if here == 0 else -1.0  # each direction with its own tail
        bounds = _bounds(first[here] * sign, first[there] * sign, candidates * sign, shown, alpha)
        best = candidates[int(np.argmax(bounds))]
        bound = float(_bounds(last[here] * sign, last[there] * sign, np.array([best * sign]), shown, alpha)[0])
        if bound > found:
            found, threshold = bound, float(best)
    ceiling = max(
        float(shown(np.array([len(a)]), len(a), np.array([0]), len(b), alpha)[0]) for a, b in (last, last[::-1])
    )
    if mu is not None:
        found, ceiling = (_epsilon(x, delta) for x in (found, ceiling))
    power = _power(epsilon if mu is None else mu, epsilon, shown, min(map(len, last)), alpha)
    return BlackBoxAudit(epsilon, delta, found, level, power, threshold, ceiling, scores[0], scores[1])


def _bounds(here: FloatArray, there: FloatArray, at: FloatArray, shown: _Shown, alpha: float) -> FloatArray:
    """What is shown at each threshold, from scores above it."""
    hits, false = ((a[None] > at[:, None]).sum(axis=1) for a in (here, there))
    return shown(hits, len(here), false, len(there), alpha)


@dataclass(frozen=True)
class _Shown:
    """Lower bound on ε at a δ, or on μ where that is claimed, of counts of true and false positives."""

    delta: float
    mu: float | None

    def __call__(self, hits: Any, n: int, false: Any, m: int, alpha: float) -> FloatArray:
        from scipy.special import ndtri
        from scipy.stats import beta

        low = np.where(hits > 0, beta.ppf(alpha, np.maximum(hits, 1), n - hits + 1), 0.0)
        high = np.where(false < m, beta.ppf(1 - alpha, false + 1, np.maximum(m - false, 1)), 1.0)
        if self.mu is not None:
            return np.asarray(ndtri(low) - ndtri(np.minimum(high, 1 - 1e-16)))
        return np.asarray(np.log(np.maximum(low - self.delta, 1e-300) / high))


def _epsilon(mu: float, delta: float) -> float:
    return epsilon_from_mu(mu, delta) if mu > 0 else 0.0


def too_small(epsilon: float, delta: float, mu: float | None = None) -> Any:
    """Law of scores without the person, and how far they move with it, of noise that is too small by √2.

    Parameters
    ----------
    epsilon, delta : float
    mu : float or None
    """
    from scipy.stats import laplace, norm

    return (laplace, TOO_SMALL * epsilon) if delta == 0 else (norm, TOO_SMALL * (mu or mu_from(epsilon, delta)))


def _power(claimed: float, epsilon: float, shown: _Shown, n: int, alpha: float) -> float:
    """Share of violations that are found, at the best threshold: of 2,000 draws of both counts."""
    law, shift = too_small(epsilon, shown.delta, shown.mu)
    at = np.linspace(-3, shift + 3, 200)
    rates = law.sf(at - shift), law.sf(at)
    best = int(np.argmax(shown(np.round(n * rates[0]), n, np.round(n * rates[1]), n, alpha)))
    rng = np.random.default_rng(0)
    hits, false = (rng.binomial(n, rate[best], 2000) for rate in rates)
    return float((shown(hits, n, false, n, alpha) > claimed).mean())
