"""Covariances between and within persons, whose rows stand side by side: row functions, releases, shares of variance.

Of persons' means B = G + E[1/n] R is released, G the covariance between and R that within persons; so G = B - E[1/n] R.
What is released, and its proof: ``docs/theory/summaries.md#levels``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fdadp._common.symmetric_matrices import positive_part
from fdadp._common.typing import BoolArray, FloatArray
from fdadp.privacy import Cohort, person_moments, rowwise_norm
from fdadp.private.denoise.empirical_bayes import shrunk_scale
from fdadp.private.levels.observed_counts import Block
from fdadp.private.levels.tail_law_and_clip import EDGES, PRIOR, TINY, ReleasedCovariance, Tail, clip_of, covariance_of

ICC_DRAWS = 2000


def rows_there(block: Block) -> BoolArray:
    """Which of the places of a person hold a row, (m, rows)."""
    return np.isfinite(block[0][:, :, 0])


class PersonRows:
    """Row functions of persons: a block is (c (m, rows, K), and others (m, rows, ...))."""

    def __init__(self, *, pure: bool = False) -> None:
        self.edges: FloatArray = np.zeros(0)
        self.pure = pure

    def means(self, block: Block) -> Block:
        """Means over the rows of each person; NaN of who has none."""
        there = rows_there(block)
        n = there.sum(axis=1)
        out = tuple(np.zeros((len(a), a.shape[2])) for a in block)
        for j in range(there.shape[1]):  # in a fixed order, row by row
            for total, values in zip(out, block, strict=True):
                total += np.where(there[:, j, None], values[:, j], 0.0)
        with np.errstate(all="ignore"):
            return tuple(np.where(n[:, None] > 0, total / n[:, None], np.nan) for total in out)

    def counts(self, block: Block) -> FloatArray:
        """Which number of rows a person has, (m, rows): 1 in its place."""
        n = rows_there(block).sum(axis=1)
        return np.asarray(n[:, None] == np.arange(1, block[0].shape[1] + 1), dtype=np.float64)

    def size_within(self, block: Block) -> FloatArray:
        """Root of the norm of a person's moment within, (m,); NaN of who has one row.

        The Frobenius norm, in pure form the trace: each is what the release clips.
        """
        several = rows_there(block).sum(axis=1) > 1
        moments = person_moments(block[0], "within")
        at = np.cumsum(np.r_[0, np.arange(block[0].shape[2], 1, -1)])  # the diagonal
        norm = rowwise_norm(np.ascontiguousarray(moments[:, at]), 1) if self.pure else rowwise_norm(moments)
        return np.where(several, np.sqrt(norm), np.nan)

    def beyond(self, block: Block) -> FloatArray:
        """Whether a size (m,) is larger than each of :attr:`edges`, (m, 4)."""
        size = block[0][:, None]
        return np.where(np.isnan(size), np.nan, size > self.edges)


def release_row_shares(persons: Cohort, share: float, name: str) -> FloatArray:
    """Shares of persons with 1, 2, ... rows: a unit vector a person."""
    counts, _ = persons.histogram(PersonRows().counts, share=share, name=name)
    kept = np.maximum(counts, 0.0)
    return np.asarray(kept / kept.sum() if kept.any() else np.full(counts.size, 1 / counts.size))


def with_several(n: float, row_shares: FloatArray) -> float:
    """Of n persons those with two rows or more, at least 1."""
    return max(n * (1 - float(row_shares[0])), 1.0)


class WithinShares(NamedTuple):
    """Shares of the budget of the size, the tail and the covariance within persons.

    The size is looked for from that of the means of persons divided by `below` to that times `above`; `size_clip` is
    the clip over it where no tail was looked at.
    """

    size: float
    tail: float
    covariance: float
    below: float
    above: float
    size_clip: float


def release_within(
    persons: Cohort,
    prior_shares: FloatArray,
    shares: WithinShares,
    several: float,
    *,
    typical: float,
    largest: float,
) -> ReleasedCovariance:
    """Covariance within persons.

    Parameters
    ----------
    persons : Cohort
        Of which a block starts with coefficients (m, rows, K).
    prior_shares : ndarray of shape (K,)
    shares : WithinShares
    several : float
        Persons with two rows or more.
    typical, largest : float
        Released size of the means of persons, and the largest that public bounds allow.
    """
    own = PersonRows(pure=persons.pure)
    sizes = persons.derive(lambda block: (own.size_within(block),), name="size of what differs within persons")
    size, error = sizes.geometric_mean(
        lambda block: block[0],
        typical / shares.below,
        typical * shares.above,
        share=shares.size,
        name="size of what differs within persons",
        n=several,
    )
    size = shrunk_scale(size, error, typical, PRIOR)
    own.edges = size * EDGES
    name, most = (
        "shares of persons that vary much",
        math.sqrt(2) * largest,
    )  # rows may be at opposite ends of the bounds
    spread = Tail.released(sizes, own.beyond, size, most, several, share=shares.tail, name=name)

    d, reach = clip_of(persons, prior_shares, shares.covariance, several, spread, shares.size_clip)
    seen = persons.person_moment(
        lambda block: block[0][:, :, :d],
        law="within",
        clip=reach**2,
        share=shares.covariance,
        name="covariance within persons",
    )
    return covariance_of(seen, reach, prior_shares, several, spread)


@dataclass(frozen=True)
class LevelMoments:
    """Released covariances of both levels, in coefficients on orthonormal functions.

    Attributes
    ----------
    of_means : ReleasedCovariance
        B, of the means of persons.
    of_rows : ReleasedCovariance
        R, of the rows of a person about its own; the noise of single points is in it.
    row_shares : ndarray of shape (max_rows,)
        Shares of persons with 1, 2, ... rows.
    n : float
        Persons.
    """

    of_means: ReleasedCovariance
    of_rows: ReleasedCovariance
    row_shares: FloatArray
    n: float

    @property
    def within(self) -> FloatArray:
        """R, shape (m, m)."""
        return self.of_rows.matrix

    @property
    def once(self) -> float:
        """Mean of 1/n over persons with n rows."""
        return float(self.row_shares @ (1 / np.arange(1, self.row_shares.size + 1)))

    @property
    def between(self) -> FloatArray:
        """G, shape (m, m), positive semidefinite."""
        return positive_part(self.of_means.matrix - self.once * self.within)

    @property
    def trace_means(self) -> tuple[float, float]:
        """Traces of B and R."""
        within = float(np.trace(self.within))
        return float(np.trace(self.between)) + self.once * within, within

    @property
    def trace_sds(self) -> tuple[float, float]:
        """Their standard errors: of the noise, and of who happened to be in the sample."""
        return _trace_sd(self.of_means, 1 / self.n), _trace_sd(self.of_rows, self.per_degree)

    @property
    def per_degree(self) -> float:
        """Mean of 1/(n - 1) over persons of two rows or more, over their number."""
        later, several = self.row_shares[1:], with_several(self.n, self.row_shares)
        if not later.size:
            return 1.0 / several
        mean = float(later @ (1 / np.arange(1, later.size + 1))) / max(float(later.sum()), TINY)
        return mean / several

    def icc(self, white: float) -> float:
        """Share of the variance that lies between persons; `white`: the trace of point noise, which is left out."""
        between = float(np.trace(self.between))
        within = max(float(np.trace(self.within)) - white, 0.0)
        return between / max(between + within, TINY)


def icc_interval(
    means: float, within: float, means_sd: float, within_sd: float, once: float, white: float, level: float
) -> tuple[float, float]:
    """Interval of the intraclass correlation: quantiles over draws of the traces of B and R about what was released."""
    rng = np.random.default_rng(0)  # of public and released numbers: always the same draws
    of_means = means + means_sd * rng.normal(size=ICC_DRAWS)
    of_rows = within + within_sd * rng.normal(size=ICC_DRAWS)
    between = np.maximum(of_means - once * of_rows, 0.0)
    total = np.maximum(between + np.maximum(of_rows - white, 0.0), TINY)
    low, high = np.quantile(between / total, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _trace_sd(released: ReleasedCovariance, per_degree: float) -> float:
    """Standard error of a trace: of who is in a sample of Gaussian curves, and of the noise."""
    return math.hypot(released.trace_sd, math.sqrt(2 * float((released.matrix**2).sum()) * per_degree))
