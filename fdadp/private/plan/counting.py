"""How many persons there are, where that is private, what counting them leaves of the budget, and how many it takes."""

from __future__ import annotations

import math

import numpy as np

from fdadp.privacy import Cohort

LEAST_N = 20.0
"""A released number of persons is never taken below this."""
FIRST = 0.01
"""Share of the budget of the first count."""
ACCURATE = 0.02
"""Relative error that is good enough; where the first count has more, a second one follows."""
MOST_AGAIN = 0.09
"""Share of the budget of the second count, at most."""
LEAST_N_EPSILON = 50.0
"""n ε below which a private regression explains no more than the mean curve."""


def least_n_epsilon(adjacency: str) -> float:
    """Least n ε of a regression that is worth fitting; where persons are replaced the noise is twice as large."""
    return LEAST_N_EPSILON * (2 if adjacency == "replace" else 1)


def release_n(cohort: Cohort) -> tuple[float, float]:
    """Private number of persons, or of rows that are added up, and the share of the budget that is left.

    The second count has the share that would make the error small enough, or `MOST_AGAIN`; the two are combined by
    inverse variance.
    """
    what = f"number of {'persons' if cohort.law.name == 'mean' else 'rows'}"
    first = cohort.count(share=FIRST, floor=LEAST_N, name=what)
    again = _again(first.sd / first.value, pure=cohort.pure)
    if not again:
        return float(first.value), 1 - FIRST
    second = cohort.count(share=again, floor=LEAST_N, name=f"{what}, again")
    weights = np.array([first.sd**-2, second.sd**-2])
    n = float(np.average([first.value, second.value], weights=weights))
    return max(n, LEAST_N), 1 - FIRST - again


def expected_left(n: float, multiplier: float, *, pure: bool) -> float:
    """Share of the budget that :func:`release_n` is expected to leave.

    Parameters
    ----------
    n : float
    multiplier : float
        Sd of the noise of a count that spends the whole budget.
    pure : bool
    """
    return 1 - FIRST - _again(multiplier / (FIRST if pure else math.sqrt(FIRST)) / n, pure=pure)


def _again(relative: float, *, pure: bool) -> float:
    """Share of a second count after a first one with this relative error; 0 where none is needed."""
    if relative <= ACCURATE:
        return 0.0
    ratio = relative / ACCURATE
    return min(MOST_AGAIN, FIRST * (ratio if pure else ratio**2))
