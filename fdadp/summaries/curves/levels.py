"""Mean, and covariances between and within persons, of curves of which each person has several.

All rows of a person stand side by side (:meth:`fdadp.privacy.Cohort.by_person`), and each release takes one clipped
contribution of a person: the mean of its curves, the product of that mean with itself, and the products of its curves
about that mean. In this order: how many persons have a curve, how many curves persons have, the share of values beyond
the bounds, the mean curve (:func:`release_mean`, of persons' means), the covariance of persons' means, the size of what
differs within persons, its tail, and the covariance within persons.

Of persons' means B = G + E[1/n] R is estimated, G between and R within persons; so G = B - E[1/n] R.

References
----------
Di, Crainiceanu, Caffo & Punjabi (2009), Annals of Applied Statistics 3, doi:10.1214/08-AOAS206. The laws "between" and
"within" and their sensitivity: ``docs/theory/kernel.md#person-moments``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from fdadp._common.typing import BoolArray, FloatArray
from fdadp.privacy import Cohort, Ledger, Noisy, person_moments, rowwise_norm
from fdadp.privacy.clipped import release_shares
from fdadp.privacy.noise.sources import Noise
from fdadp.private.denoise.bayes import shrunk_scale
from fdadp.summaries.curves.moments import (
    EDGES,
    PRIOR,
    Block,
    CurveRowFunctions,
    ReleasedCovariance,
    SummaryTuning,
    Tail,
    covariance_of,
    release_covariance,
    release_mean,
)
from fdadp.summaries.curves.release import TINY, Declared, PrivateCurves, opened, release_observed, release_rest

ICC_DRAWS = 2000


@dataclass(frozen=True)
class ReleasedLevels:
    """Released covariances of two levels, of coefficients on orthonormal functions.

    Attributes
    ----------
    outside : float
        Share of the curves' values that is surely beyond the public bounds.
    mean : ndarray of shape (m,)
    between, within : ndarray of shape (m, m)
        Of persons, and of the curves of a person about its own; positive semidefinite. The noise of single points is
        in `within`.
    between_sd, within_sd : float
        Sd of the privacy noise in their entries off the diagonal, before shrinkage.
    row_shares : ndarray of shape (max_rows,)
        Shares of persons with 1, 2, ... curves.
    trace_sds : (float, float)
        Standard errors of the traces of B and R: of the noise, and of who happened to be in the sample.
    rest : float
        Mean square of curves outside the functions.
    ledger : Ledger
    """

    outside: float
    mean: FloatArray
    between: FloatArray
    within: FloatArray
    between_sd: float
    within_sd: float
    row_shares: FloatArray
    trace_sds: tuple[float, float]
    rest: float
    ledger: Ledger

    @property
    def once(self) -> float:
        """Mean of 1/n over persons with n curves."""
        return float(self.row_shares @ (1 / np.arange(1, self.row_shares.size + 1)))

    @property
    def trace_means(self) -> tuple[float, float]:
        """Traces of B, the covariance of persons' means, and of R."""
        within = float(np.trace(self.within))
        return float(np.trace(self.between)) + self.once * within, within

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


def _curves_of(block: Block) -> BoolArray:
    """Which of the places of a person hold a curve, (m, rows)."""
    return np.isfinite(block[1][:, :, 0])


class PersonRows:
    """Row functions of persons: a block is (c (m, rows, K), energies (m, rows, 1), shares beyond (m, rows, 1))."""

    def __init__(self, *, pure: bool = False) -> None:
        self.edges: FloatArray = np.zeros(0)
        self.pure = pure

    def means(self, block: Block) -> Block:
        """Means over the curves of each person; NaN of who has none."""
        there = _curves_of(block)
        n = there.sum(axis=1)
        out = tuple(np.zeros((len(a), a.shape[2])) for a in block)
        for j in range(there.shape[1]):  # in a fixed order, row by row
            for total, values in zip(out, block, strict=True):
                total += np.where(there[:, j, None], values[:, j], 0.0)
        with np.errstate(all="ignore"):
            return tuple(np.where(n[:, None] > 0, total / n[:, None], np.nan) for total in out)

    def counts(self, block: Block) -> FloatArray:
        """Which number of curves a person has, (m, rows): 1 in its place."""
        n = _curves_of(block).sum(axis=1)
        return np.asarray(n[:, None] == np.arange(1, block[1].shape[1] + 1), dtype=np.float64)

    def size_within(self, block: Block) -> FloatArray:
        """Root of the norm of a person's moment within, (m,); NaN of who has one curve.

        The Frobenius norm, in pure form the trace: each is what the release clips.
        """
        several = _curves_of(block).sum(axis=1) > 1
        moments = person_moments(block[0], "within")
        at = np.cumsum(np.r_[0, np.arange(block[0].shape[2], 1, -1)])  # the diagonal
        norm = rowwise_norm(np.ascontiguousarray(moments[:, at]), 1) if self.pure else rowwise_norm(moments)
        return np.where(several, np.sqrt(norm), np.nan)

    def beyond(self, block: Block) -> FloatArray:
        """Whether that is larger than each of :attr:`edges`, (m, 4)."""
        size = self.size_within(block)[:, None]
        return np.where(np.isnan(size), np.nan, size > self.edges)


def _release_within(
    persons: Cohort, own: PersonRows, prior_shares: FloatArray, tuning: SummaryTuning, several: float, tail: Tail
) -> ReleasedCovariance:
    """Covariance within persons; `tail` is of the means of persons."""
    size, error = persons.geometric_mean(
        own.size_within,
        tail.typical / tuning.size_below,
        tail.typical * tuning.spread_below,
        share=tuning.within_size,
        name="size of what differs within persons",
        n=several,
    )
    size = shrunk_scale(size, error, tail.typical, PRIOR)
    own.edges = size * EDGES
    beyond = release_shares(
        persons,
        own.beyond,
        n=several,
        share=tuning.within_tail,
        name="shares of persons that vary much",
        size=EDGES.size,
    )
    largest = math.sqrt(2) * tail.largest  # two curves at opposite ends of the bounds
    spread = Tail.fit(beyond.value, beyond.sd, size, largest, several, pure=persons.pure)

    def ask(d: int, reach: float) -> Noisy:
        leading = lambda block: block[0][:, :, :d]  # noqa: E731
        return persons.person_moment(
            leading, law="within", clip=reach**2, share=tuning.within, name="covariance within persons"
        )

    return covariance_of(ask, persons, prior_shares, tuning.within, several, spread, tuning.size_clip)


def release_levels(
    persons: Cohort, means: Cohort, rows: CurveRowFunctions, prior_shares: FloatArray, tuning: SummaryTuning, n: float
) -> ReleasedLevels:
    """Spend on both levels, of `n` persons. `means` are those of :meth:`PersonRows.means` of `persons`."""
    own = PersonRows(pure=persons.pure)
    n, outside = release_observed(means, rows, n, tuning)
    counts, _ = persons.histogram(own.counts, share=tuning.rows, name="curves a person")
    row_shares = np.maximum(counts, 0.0)
    row_shares = row_shares / row_shares.sum() if row_shares.any() else np.full(counts.size, 1 / counts.size)
    several = max(n * (1 - float(row_shares[0])), 1.0)
    once = float(row_shares @ (1 / np.arange(1, row_shares.size + 1)))
    mean, _, _, tail = release_mean(means, rows, prior_shares, tuning, n)
    of_means = release_covariance(means, rows, prior_shares, tuning, n, tail)
    within = _release_within(persons, own, prior_shares, tuning, several, tail)
    values, vectors = np.linalg.eigh(of_means.matrix - once * within.matrix)
    between = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return ReleasedLevels(
        outside=outside,
        mean=mean,
        between=between,
        within=within.matrix,
        between_sd=of_means.sd,
        within_sd=within.sd,
        row_shares=row_shares,
        trace_sds=(_trace_sd(of_means, 1 / n), _trace_sd(within, _mean_of_degrees(row_shares) / several)),
        rest=release_rest(means, rows, tail.typical, tuning, n),
        ledger=persons.ledger,
    )


def summarise_levels(
    data: Any,
    grid: FloatArray,
    groups: Any,
    declared: Declared,
    tuning: SummaryTuning,
    *,
    max_rows: int,
    noise: Noise | None,
) -> tuple[PrivateCurves, ReleasedLevels]:
    """Spend the budget on both levels; arguments are those of :func:`summarise`, and `max_rows` of a person count.

    All validation comes before the first read.
    """
    start = opened(data, grid, groups, declared, tuning, noise=noise)
    persons = start.cohort.by_person(start.rows.coefficients, max_rows=max_rows, name="curves of persons")
    means = persons.derive(PersonRows().means, name="means of persons")
    return start, release_levels(persons, means, start.rows, start.prior_shares, start.tuning, start.n)


def _mean_of_degrees(row_shares: FloatArray) -> float:
    """Mean of 1/(n - 1) over persons of two curves or more."""
    later = row_shares[1:]
    return float(later @ (1 / np.arange(1, later.size + 1))) / max(float(later.sum()), TINY) if later.size else 1.0


def _trace_sd(released: ReleasedCovariance, per_degree: float) -> float:
    """Standard error of a trace: of who is in a sample of Gaussian curves, and of the noise."""
    return math.hypot(released.trace_sd, math.sqrt(2 * float((released.matrix**2).sum()) * per_degree))
