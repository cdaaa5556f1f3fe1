"""Whole curves of persons: row functions, numbers of persons, and what lies outside of functions, as released."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.privacy import Cohort, rowwise_norm
from fdadp.privacy.rows._rowwise_arithmetic import in_ball
from fdadp.privacy.rows._sealed_row_functions import RowFunction
from fdadp.private.levels.tail_law_and_clip import TINY
from fdadp.rounds.posterior_means import shrunk

REST = 0.1
"""Prior sd of the energy outside the functions, over the squared spread of curves."""


Block = tuple[FloatArray, ...]
L1_OVER_L2 = 1.8
"""Of the coefficients of a curve, about: in pure form sizes are L1 norms over this."""


class ObservedCurves(ABC):
    """Row functions of whole curves, one a person.

    A block starts with coefficients (m, K), the mean square outside the functions and the share of t beyond the public
    range, (m, 1) each; NaN where nothing was observed.

    Attributes
    ----------
    edges, reach, leading
        Released values, filled in as they come: sizes that persons are compared with, the size they are clipped at, and
        how many coefficients count then.
    """

    def __init__(self, size: int, *, pure: bool = False) -> None:
        self.pure = pure
        self.edges: FloatArray = np.zeros(0)
        self.reach, self.leading = math.inf, size

    @abstractmethod
    def left(self, block: Block) -> FloatArray:
        """Coefficients about what is released of them, (m, K)."""

    def observed(self, block: Block) -> FloatArray:
        """1 for each person with an observed curve, (m, 1); NaN for the others."""
        return np.asarray(np.where(np.isnan(block[1]), np.nan, 1.0))

    def rest(self, block: Block) -> FloatArray:
        """Mean square outside the functions, (m, 1)."""
        return np.asarray(block[1])

    def outside(self, block: Block) -> FloatArray:
        """Share of t at which curves are beyond the public range, (m, 1)."""
        return np.asarray(block[2])

    def size(self, block: Block) -> FloatArray:
        """Norm of what is left, (m,)."""
        return rowwise_norm(self.left(block))

    def beyond(self, block: Block) -> FloatArray:
        """Whether it is larger than each of :attr:`edges`, (m, 4); in pure form by L1 norms."""
        size = rowwise_norm(self.left(block), 1) / L1_OVER_L2 if self.pure else self.size(block)
        return np.where(np.isnan(size[:, None]), np.nan, size[:, None] > self.edges)

    def within_reach(self, block: Block) -> FloatArray:
        """Leading coefficients of what is left, shrunk to a norm of at most :attr:`reach`; (m, d)."""
        return in_ball(np.ascontiguousarray(self.left(block)[:, : self.leading]), self.reach)


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
