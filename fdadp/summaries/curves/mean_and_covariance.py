"""Mean and covariance of coefficients: locate, scale, look at the tail, clip, release, shrink by the known noise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.functional.gap_filling import fill_linear
from fdadp.privacy import Cohort, rowwise_matmul, rowwise_norm
from fdadp.privacy.account.epsilon_mu_rho import unit_noise
from fdadp.private.denoise.empirical_bayes import shrunk_coefficients, shrunk_scale
from fdadp.private.levels.between_within_covariances import WithinShares
from fdadp.private.levels.observed_counts import L1_OVER_L2, Block, ObservedCurves
from fdadp.private.levels.tail_law_and_clip import EDGES, PRIOR, ReleasedCovariance, Tail, clip_of, covariance_of

# What private summaries were tuned to: shares of the budget and clips, by name and public.


@dataclass(frozen=True, kw_only=True)
class SummaryTuning:
    """Of a private summary of curves; :data:`SHARES` are shares of the budget, which add up to one.

    Attributes
    ----------
    goal : {"mean", "covariance"}
        What is wanted. With the covariance also the energy outside the functions is released.
    observed, outside, level, size, rough_mean, spread, tail, mean, covariance, rest : float
        Number of persons with an observed curve;
        share of values beyond the bounds; levels of curves; their size about the level; a rough mean; their size about
        that; shares of large curves; mean; covariance; energy outside the functions.
    rows, within_size, within_tail, within : float
        Where persons have several curves: how many; the size of what differs within a person; shares of persons that
        vary much; the covariance within persons.
    size_below, spread_below : float
        The sizes are looked for from the bounds, and from the size about the level, divided by this.
    size_clip : float
        Clip of curves over their released size, where no tail was looked at.
    size_guess : float
        Half-width of the bounds over the size that curves are guessed to have.
    half_band : float
        Half a simultaneous band over the sd of the mean.
    """

    goal: Literal["mean", "covariance"]
    observed: float = 0.01
    outside: float = 0.01
    level: float = 0.02
    size: float
    rough_mean: float
    spread: float
    tail: float
    mean: float
    covariance: float
    rest: float = 0.0
    rows: float = 0.0
    within_size: float = 0.0
    within_tail: float = 0.0
    within: float = 0.0
    size_below: float = 64.0
    spread_below: float = 32.0
    size_clip: float = 1.5
    size_guess: float = 4.0
    half_band: float = 2.8

    @property
    def share(self) -> float:
        """Share of the budget of what is wanted."""
        return self.mean if self.goal == "mean" else self.covariance

    @property
    def clip_of_goal(self) -> float:
        """Clip of what is wanted over the size of curves, or its square."""
        return self.size_clip if self.goal == "mean" else self.size_clip**2

    @property
    def within_persons(self) -> WithinShares:
        """Of what differs within persons."""
        own = (self.within_size, self.within_tail, self.within)
        return WithinShares(*own, self.size_below, self.spread_below, self.size_clip)

    def scaled(self, left: float) -> SummaryTuning:
        """Return shares of the whole budget, of which `left` is left."""
        return replace(self, **{name: getattr(self, name) * left for name in SHARES})


_OF_CURVES = ("observed", "outside", "level", "size", "rough_mean", "spread", "tail", "mean", "covariance", "rest")
SHARES = (*_OF_CURVES, "rows", "within_size", "within_tail", "within")
MEAN = SummaryTuning(goal="mean", size=0.03, rough_mean=0.07, spread=0.04, tail=0.06, mean=0.64, covariance=0.12)
COVARIANCE = SummaryTuning(
    goal="covariance", size=0.04, rough_mean=0.06, spread=0.05, tail=0.05, mean=0.10, covariance=0.58, rest=0.08
)
LEVELS = SummaryTuning(
    goal="covariance",
    size=0.03,
    rough_mean=0.05,
    spread=0.04,
    tail=0.04,
    mean=0.08,
    covariance=0.31,
    rest=0.05,
    rows=0.02,
    within_size=0.04,
    within_tail=0.04,
    within=0.26,
)


# What the private summaries compute from a curve: row-local functions of that curve and of released values.


LEVEL_BINS = 16
"""Bins of the public range in which the level of curves is located."""


class CurveRowFunctions(ObservedCurves):
    """Row functions; a block is (Y,), later what :meth:`coefficients` makes of it.

    Values beyond the range are clipped, and gaps are filled by straight lines within the curve. A curve without an
    observed point is NaN: it adds nothing to any release.
    """

    def __init__(
        self, functions: FloatArray, weights: FloatArray, bounds: tuple[float, float], grid: FloatArray
    ) -> None:
        super().__init__(functions.shape[1])
        self.weights, self.grid = weights, grid
        self.constant = functions.T @ weights
        self.weighted = np.ascontiguousarray(functions * weights[:, None])
        self.middle, self.half = sum(bounds) / 2, (bounds[1] - bounds[0]) / 2
        self.centre = np.zeros(functions.shape[1])  # as released

    def coefficients(self, block: Block) -> Block:
        """Coefficients about the middle of the range (m, K); mean square outside the functions, share of t beyond the
        range, (m, 1) each."""
        filled = fill_linear(np.where(np.isfinite(block[0]), block[0], np.nan), self.grid)
        beyond = np.where(np.isnan(filled), np.nan, np.abs(filled - self.middle) > self.half)
        y = np.clip(filled, self.middle - self.half, self.middle + self.half) - self.middle
        c = rowwise_matmul(y, self.weighted)
        rest = rowwise_matmul(y * y, self.weights[:, None])[:, 0] - rowwise_norm(c) ** 2
        return c, np.maximum(rest, 0.0)[:, None], rowwise_matmul(beyond, self.weights[:, None])

    def left(self, block: Block) -> FloatArray:
        """Coefficients about the released centre."""
        return block[0] - self.centre

    def level_bins(self, block: Block) -> FloatArray:
        """Which sixteenth of the range the mean over t is in, shape (m, 16)."""
        level = rowwise_matmul(block[0], self.constant[:, None])[:, 0] / self.half
        bin_of = np.clip(np.floor((level + 1) / 2 * LEVEL_BINS), 0, LEVEL_BINS - 1)[:, None]
        return np.where(np.isnan(bin_of), np.nan, bin_of == np.arange(LEVEL_BINS))


LIKELY, LIKELY_PURE = 0.9, 0.97
"""Posterior probability that the clip takes off the mean no more than the bands hold for it.

More in pure form, where the noise leaves so little of a skewed tail to be seen that the prior decides."""
MOST_LEVEL_NOISE = 0.06
"""The level of curves is located where the noise in a bin is at most this share of the persons."""


def release_mean(
    cohort: Cohort, rows: CurveRowFunctions, prior_shares: FloatArray, tuning: SummaryTuning, n: float
) -> tuple[FloatArray, FloatArray, float, Tail]:
    """Coefficients of the mean and their variances, shrunk by the known noise; what was cut off, at most; sizes."""
    m, wide = prior_shares.size, L1_OVER_L2 if cohort.pure else 1.0
    half = rows.half
    anchor, rough = _locate(cohort, rows, tuning, n)
    rows.centre = anchor
    size, error = cohort.geometric_mean(
        rows.size, half / tuning.size_below, half, share=tuning.size, name="size of curves", n=n
    )
    size = shrunk_scale(size, error, half / tuning.size_guess, PRIOR)
    total, sd = cohort.sum(rows.left, clip=tuning.size_clip * wide * size, size=m, share=rough, name="rough mean")
    rows.centre = anchor + shrunk_coefficients(rows.centre - anchor + total / n, sd / n, prior_shares)[0]
    low, high = size / tuning.spread_below, tuning.size_clip * size
    spread, error = cohort.geometric_mean(rows.size, low, high, share=tuning.spread, name="spread of curves", n=n)
    spread = shrunk_scale(spread, error, size / tuning.size_clip, PRIOR)
    largest = half + float(np.linalg.norm(rows.centre))
    rows.edges, rows.pure = spread * EDGES, cohort.pure
    name = "shares of large curves"
    tail = Tail.released(cohort, rows.beyond, spread, largest, n, share=tuning.tail, name=name)
    noise = unit_noise(cohort, tuning.mean) / n * wide
    # Half a simultaneous band, with noise in half of the functions: shrinkage takes it out of the others.
    cost = tuning.half_band * np.sqrt(tail.mean_square / n + m / 2 * (noise * tail.candidates) ** 2)
    clip = tail.clip(cost)
    total, sd = cohort.sum(rows.left, clip=clip * wide, size=m, share=tuning.mean, name="mean")
    mean, variance = shrunk_coefficients(rows.centre - anchor + total / n, sd / n, prior_shares)
    rows.centre = mean = anchor + mean
    likely = LIKELY_PURE if cohort.pure else LIKELY
    return mean, variance, tail.likely_excess(clip, likely), tail


def _locate(cohort: Cohort, rows: CurveRowFunctions, tuning: SummaryTuning, n: float) -> tuple[FloatArray, float]:
    """Coefficients of a constant at the median level of the curves, and the share that is left for the rough mean.

    The middle of the range, and the share of both, where noise is large.
    """
    if unit_noise(cohort, tuning.level) / n > MOST_LEVEL_NOISE:
        return np.zeros(rows.constant.size), tuning.rough_mean + tuning.level
    masses, _ = cohort.histogram(rows.level_bins, share=tuning.level, name="levels of curves")
    if not (masses > 0).any():
        return np.zeros(rows.constant.size), tuning.rough_mean
    below = np.append(0.0, np.cumsum(np.maximum(masses, 0.0)))
    median = float(np.interp(0.5 * below[-1], below, np.linspace(-rows.half, rows.half, LEVEL_BINS + 1)))
    return rows.constant * median, tuning.rough_mean


def release_covariance(
    cohort: Cohort, rows: CurveRowFunctions, prior_shares: FloatArray, tuning: SummaryTuning, n: float, tail: Tail
) -> ReleasedCovariance:
    """Covariance of curves about the released centre, as :func:`covariance_of`."""

    rows.leading, rows.reach = clip_of(cohort, prior_shares, tuning.covariance, n, tail, tuning.size_clip)
    seen = cohort.second_moment(rows.within_reach, clip=rows.reach**2, share=tuning.covariance, name="covariance")
    return covariance_of(seen, rows.reach, prior_shares, n, tail)
