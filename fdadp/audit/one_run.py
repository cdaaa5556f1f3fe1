"""One-run audit: a lower bound on ε from one output and many persons who were included by the toss of a coin."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.audit.black_box import too_small
from fdadp.audit.lower_bound import LowerBound
from fdadp.errors import InputError


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
    low, high = 0.0, 1.0
    if _chance(m, r, correct, 0.0, delta) <= 1 - level:
        while high < 64 and _chance(m, r, correct, high, delta) <= 1 - level:
            low, high = high, 2 * high
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if _chance(m, r, correct, middle, delta) <= 1 - level else (low, middle)
    return OneRunAudit(epsilon, delta, low, level, _power(m, r, epsilon, delta, level), m, r, correct, p_value)


def _power(m: int, r: int, epsilon: float, delta: float, level: float) -> float:
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
