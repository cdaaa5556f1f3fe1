"""Numbers of persons and what lies outside of functions, as released, for all private fits of whole curves."""

from __future__ import annotations

import math

from fdadp.privacy import Cohort
from fdadp.privacy.rows._sealed_row_functions import RowFunction
from fdadp.private.levels.tail_law_and_clip import TINY
from fdadp.rounds.posterior_means import shrunk

REST = 0.1
"""Prior sd of the energy outside the functions, over the squared spread of curves."""


def release_observed(cohort: Cohort, observed: RowFunction, n: float, share: float) -> float:
    """Number of persons with an observed curve: sensitivity 1, or √2 (pure: 2) where a person is replaced.

    A posterior mean by the known noise: all n persons are observed with prior probability one half, else any share.

    Parameters
    ----------
    cohort : Cohort
    observed : callable
        1 for each observed curve, shape (m, 1); NaN for the others.
    n : float
        Declared, or released.
    share : float
    """
    total, sd = cohort.sum(
        observed, clip=1.0, size=1, share=share, name="number of persons with an observed curve", nonnegative=True
    )
    seen, noise = float(total[0]) / n, sd / n
    low, high = -seen / noise, (1 - seen) / noise
    all_of_them = math.exp(-0.5 * high**2) / (noise * math.sqrt(2 * math.pi))
    some = 0.5 * (math.erf(high / math.sqrt(2)) - math.erf(low / math.sqrt(2)))
    mean = seen * some + noise * (math.exp(-0.5 * low**2) - math.exp(-0.5 * high**2)) / math.sqrt(2 * math.pi)
    weight = all_of_them + some
    share_observed = (all_of_them + mean) / weight if weight > TINY else min(max(seen, 0.0), 1.0)
    return max(n * share_observed, 1.0)


def release_rest(cohort: Cohort, rest: RowFunction, spread: float, share: float, n: float) -> float:
    """Mean square of curves outside the functions, shrunk by the known noise; `spread` is the clip's root."""
    total, sd = cohort.sum(rest, clip=spread**2, size=1, share=share, name="energy outside the functions")
    return max(float(shrunk(float(total[0]) / n, sd / n, 0.0, REST * spread**2)), 0.0)
