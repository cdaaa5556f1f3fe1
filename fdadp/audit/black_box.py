"""What audits from outside find: a lower bound on ε, beside the ε that is claimed.

A black-box audit has scores of many outputs with and without one person; a one-run audit has one output, and many
persons who were included by the toss of a coin.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fdadp._common.argument_checks import fraction
from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.privacy.account.epsilon_mu_rho import bisected, epsilon_from_mu, mu_from

TOO_SMALL = math.sqrt(2)
"""Factor by which the noise is too small in the mechanism against which audits state their power."""


@dataclass(frozen=True)
class LowerBound:
    """A lower bound on ε.

    Attributes
    ----------
    epsilon, delta : float
        What is claimed.
    found : float
        Lower bound on ε at this δ, at the confidence `level`; 0 where nothing was found.
    level : float
    power : float
        Probability that this audit, with as many draws, finds noise that is too small by √2 where it claims to be just
        enough: of a Gaussian or, without a δ, a Laplace release, of which the scores are the log-likelihood ratio.
    """

    epsilon: float
    delta: float
    found: float
    level: float
    power: float

    @property
    def passed(self) -> bool:
        """Whether the claim stands."""
        return self.found <= self.epsilon

    @property
    def _verdict(self) -> str:
        return (
            f"{'no violation' if self.passed else 'VIOLATION'}; claimed epsilon {self.epsilon:g} "
            f"(delta {self.delta:g}), found at least {self.found:.2f} at {self.level:.0%} confidence; "
            f"power against noise too small by sqrt(2): {self.power:.2f}"
        )


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
        The claim in Gaussian DP, where it is one. The whole curve is then tested, not the point (ε, δ) alone, at which
        thousands of draws find nothing. A test shows μ >= Φ⁻¹(true positives) - Φ⁻¹(false positives), and `found` is
        the ε at δ of the largest μ that was shown.
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
        found, ceiling = (epsilon_from_mu(max(x, 0.0), delta) for x in (found, ceiling))
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


@dataclass(frozen=True)
class OneRunAudit(LowerBound):
    """A lower bound on ε from one output.

    Attributes
    ----------
    epsilon, delta : float
        What is claimed.
    found : float
        Lower bound on ε at this δ; 0 where nothing was found.
    level : float
    canaries, guesses, correct : int
        Persons included at random, those guessed about, and those guessed rightly.
    p_value : float
        Probability of so many right guesses if the claim were true, at most.
    """

    canaries: int
    guesses: int
    correct: int
    p_value: float

    def __str__(self) -> str:
        guessed = f"{self.correct} of {self.guesses} guesses about {self.canaries} canaries were right"
        return f"one-run audit: {self._verdict} ({guessed})"


def one_run_audit(
    included: Any,
    scores: FloatArray,
    *,
    epsilon: float,
    delta: float = 0.0,
    guesses: int | None = None,
    level: float = 0.95,
) -> OneRunAudit:
    """Bound ε from below from a single run on data with many canaries.

    Each canary was included with probability 1/2, independently; excluded ones are absent in the sense of the
    adjacency. The `guesses` canaries of most extreme score are guessed, half of them as included.

    Parameters
    ----------
    included : array_like of bool, shape (m,)
    scores : ndarray of shape (m,)
        From the output alone; larger for canaries that look included.
    epsilon, delta : float
        The claim.
    guesses : int, optional
        Fixed before looking; default m / 2, at least 2.
    level : float

    Returns
    -------
    OneRunAudit

    Raises
    ------
    InputError
        Scores that do not fit, or another number of guesses than 2 to m.

    Notes
    -----
    Steinke, Nasr & Jagielski (2023), Privacy Auditing with One (1) Training Run, arXiv:2305.08846, Theorem 5.2: with r
    guesses the number of right ones is, under pure ε, stochastically at most ``W ~ Binomial(r, e^ε/(1 + e^ε))``; under
    (ε, δ) ``P(right >= v) <= P(W >= v) + 2 m δ max_i P(v > W >= v - i)/i``.

    Examples
    --------
    >>> included = np.random.default_rng(0).random(400) < 0.5
    >>> one_run_audit(included, included + 0.0, epsilon=1.0).passed  # an output that shows who is in
    False
    """
    truth = np.asarray(included, dtype=bool).ravel()
    values = np.asarray(scores, dtype=np.float64).ravel()
    m = len(truth)
    if values.shape != truth.shape or np.isnan(values).any():
        raise InputError(f"scores must be {m} numbers, one per canary, got shape {values.shape}")
    r = max(2, m // 2) if guesses is None else guesses
    if not 2 <= r <= m:
        raise InputError(f"guesses must be from 2 to the number of canaries, {m}, got {r}")
    order = np.argsort(values, kind="stable")
    correct = int((~truth[order[: r // 2]]).sum() + truth[order[m - (r - r // 2) :]].sum())
    p_value = _chance(m, r, correct, epsilon, delta)

    def rejected(claim: float) -> bool:
        return _chance(m, r, correct, claim, delta) <= 1 - level

    low = 0.0
    if rejected(low):
        high = next((2.0**k for k in range(7) if not rejected(2.0**k)), None)
        low = 64.0 if high is None else bisected(rejected, 0.0, high)[0]
    return OneRunAudit(
        epsilon, delta, low, level, _power_of_one_run(m, r, epsilon, delta, level), m, r, correct, p_value
    )


def _power_of_one_run(m: int, r: int, epsilon: float, delta: float, level: float) -> float:
    """Share of 500 runs with noise too small by √2 in which enough guesses are right."""
    wanted = next((v for v in range(r + 1) if _chance(m, r, v, epsilon, delta) <= 1 - level), r + 1)
    law, shift = too_small(epsilon, delta)
    rng = np.random.default_rng(0)
    truth = rng.random((500, m)) < 0.5
    order = np.argsort(law.rvs(size=truth.shape, random_state=rng) + shift * truth, axis=1)
    truth = np.take_along_axis(truth, order, axis=1)
    right = (~truth[:, : r // 2]).sum(axis=1) + truth[:, m - (r - r // 2) :].sum(axis=1)
    return float((right >= wanted).mean())


def _chance(m: int, r: int, v: int, epsilon: float, delta: float) -> float:
    """Largest probability of v or more right guesses under (ε, δ)."""
    from scipy.stats import binom

    rate = 1 / (1 + math.exp(-epsilon))
    beta = float(binom.sf(v - 1, r, rate))
    if delta == 0 or v == 0:
        return min(beta, 1.0)
    below = np.cumsum(binom.pmf(np.arange(v - 1, -1, -1), r, rate))
    return min(beta + 2 * m * delta * float((below / np.arange(1, v + 1)).max()), 1.0)
