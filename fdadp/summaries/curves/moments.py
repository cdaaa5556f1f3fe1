"""Mean and covariance of coefficients: locate, scale, look at the tail, clip, release, shrink by the known noise."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.functional.gaps import fill_linear
from fdadp.privacy import Cohort, Noisy, rowwise_matmul, rowwise_norm
from fdadp.privacy.account.accounting import unit_noise
from fdadp.privacy.clipped import release_shares
from fdadp.private.denoise.bayes import shrunk, shrunk_coefficients, shrunk_scale

# How far out curves lie: released shares of persons beyond a few sizes, and what clipping at some size then costs.
#
# A clip that follows the typical size of curves is right for Gaussian ones and cuts a skewed sample on one side, by an
# amount that no number of persons makes smaller. So the shares of persons beyond a few multiples of the typical size
# are released, and from them alone follow the clip, what it may take off, and the variance of what lies beyond.


EDGES = 1.6 ** np.arange(1.0, 5.0)
"""Multiples of the typical size beyond which persons are counted: 1.6, 2.6, 4.1, 6.6."""
SIZES = np.geomspace(0.05, 2000.0, 400)
"""Where the laws are tabulated, in units of the typical size."""
SURE = 2.5
LIGHT = 0.7
"""Prior probability of a tail as light as that of Gaussian curves."""


@functools.cache
def _laws() -> tuple[FloatArray, FloatArray]:
    """Shares beyond SIZES, (L, 400), of laws with a Weibull tail from the first edge on; and their log prior (L,).

    ``S(x) = p exp(-d ((x / e)^b - 1) / b)`` beyond e = 1.6: share p beyond it, decline d there, and b = 2 for Gaussian,
    1 for exponential, less for log-normal sizes, towards 0 for powers. Below, S falls as ``1 - (1 - p) (x/e)^1.3``, as
    it does for Gaussian curves of one component and of many.
    """
    p, d, b = (
        a.ravel()
        for a in np.meshgrid(
            np.geomspace(0.02, 0.6, 18), np.geomspace(0.5, 12.0, 16), np.linspace(0.1, 2.5, 13), indexing="ij"
        )
    )
    ratio = SIZES / EDGES[0]
    with np.errstate(over="ignore"):
        above = p[:, None] * np.exp(-d[:, None] * (ratio ** b[:, None] - 1) / b[:, None])
    below = 1 - (1 - p[:, None]) * ratio**1.3
    light = b > 1.5
    log_prior = np.log(np.where(light, LIGHT / light.sum(), (1 - LIGHT) / (~light).sum()))
    log_prior = log_prior - 0.5 * (np.log(p / 0.2) / 0.7) ** 2 - 0.5 * (np.log(d / 2) / 0.7) ** 2
    return np.where(ratio > 1, above, below), log_prior


@dataclass(frozen=True)
class Tail:
    """The law of the size of curves, as released shares and the prior's laws let expect it.

    Attributes
    ----------
    typical : float
        Geometric mean of the sizes, as released.
    largest : float
        Size that no curve exceeds, from public bounds.
    beyond : ndarray of shape (400,)
        Expected share of persons beyond ``typical * SIZES``.
    weight : ndarray of shape (L,)
        Posterior weights of the laws, which sum to one.
    surely : ndarray of shape (4,)
        Share of persons that surely are beyond each of EDGES: as released, less 2.5 sds of the noise.
    """

    typical: float
    largest: float
    beyond: FloatArray
    weight: FloatArray
    surely: FloatArray

    @classmethod
    def fit(
        cls, shares: FloatArray, sd: float, typical: float, largest: float, n: float, *, pure: bool = False
    ) -> Tail:
        """Weigh the laws by how well they agree with the release.

        Parameters
        ----------
        shares : ndarray of shape (4,)
            Released shares of persons beyond ``typical * EDGES``.
        sd : float
            Of the noise in each.
        typical, largest : float
        n : float
            Number of persons, for the sampling error of the shares.
        pure : bool
            Whether the noise is Laplace noise.
        """
        laws, log_prior = _laws()
        at = np.where(EDGES * typical < largest, laws[:, np.searchsorted(SIZES, EDGES)], 0.0)
        variance = sd**2 + at * (1 - at) / n
        off = (shares - at) ** 2 / variance
        log_weight = log_prior - (np.sqrt(2 * off) if pure else off / 2).sum(axis=1) - np.log(variance).sum(axis=1) / 2
        weight = np.exp(log_weight - log_weight.max())
        weight /= weight.sum()
        surely = np.minimum.accumulate(np.clip(np.asarray(shares) - SURE * sd, 0.0, 1.0))  # shares cannot grow
        return cls(typical, largest, weight @ laws, weight, surely)

    def excess(self, clip: float, power: int = 1) -> float:
        """Mean of ``size^p - clip^p`` over persons, 0 for those within the clip: what a clip takes off, at most.

        As expected, or :meth:`sure_excess` where that is more.
        """
        inside = np.clip(SIZES, clip / self.typical, self.largest / self.typical)
        expected = float((self.beyond[:-1] + self.beyond[1:]) / 2 @ np.diff(inside**power))
        return max(expected * self.typical**power, self.sure_excess(clip, power))

    def likely_excess(self, clip: float, level: float) -> float:
        """Size that the excess over a clip exceeds under laws of total weight 1 - `level` only."""
        inside = np.clip(SIZES, clip / self.typical, self.largest / self.typical)
        of_laws = _laws()[0][:, :-1] @ np.diff(inside) * self.typical
        order = np.argsort(of_laws)
        quantile = of_laws[order[np.searchsorted(np.cumsum(self.weight[order]), level * (1 - 1e-12))]]
        return max(float(quantile), self.sure_excess(clip))

    def sure_excess(self, clip: float, power: int = 1) -> float:
        """What it is at least by the shares that surely are beyond the edges: nobody farther out than an edge says."""
        steps = np.clip(np.append(0.0, EDGES), clip / self.typical, self.largest / self.typical)
        return float(self.surely @ np.diff(steps**power)) * self.typical**power

    @property
    def mean_square(self) -> float:
        """Mean of the squared sizes."""
        return self.excess(float(SIZES[0]) * self.typical, 2)

    @property
    def candidates(self) -> FloatArray:
        """Clips to choose from, (60,), from a little above the typical size to the largest."""
        return np.asarray(np.geomspace(1.2 * self.typical, max(self.largest, 1.3 * self.typical), 60))

    def clip(self, cost: FloatArray, power: int = 1) -> float:
        """Candidate of the least cost (60,) and excess together."""
        candidates = self.candidates
        return float(candidates[np.argmin(cost + [self.excess(float(c), power) for c in candidates])])


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
L1_OVER_L2 = 1.8
"""Of the coefficients of a curve, about: in pure form sizes are L1 norms over this."""
Block = tuple[FloatArray, ...]


class CurveRowFunctions:
    """Row functions; a block is (Y,), later what :meth:`coefficients` makes of it.

    Values beyond the range are clipped, and gaps are filled by straight lines within the curve. A curve without an
    observed point is NaN: it adds nothing to any release.
    """

    def __init__(
        self, functions: FloatArray, weights: FloatArray, bounds: tuple[float, float], grid: FloatArray
    ) -> None:
        self.weights, self.grid = weights, grid
        self.constant = functions.T @ weights
        self.weighted = np.ascontiguousarray(functions * weights[:, None])
        self.middle, self.half = sum(bounds) / 2, (bounds[1] - bounds[0]) / 2
        # Released values, filled in as they come.
        self.centre = np.zeros(functions.shape[1])
        self.reach, self.pure, self.leading = math.inf, False, functions.shape[1]
        self.edges: FloatArray = np.zeros(0)

    def coefficients(self, block: Block) -> Block:
        """Coefficients about the middle of the range (m, K); mean square outside the functions, share of t beyond the
        range, (m, 1) each."""
        filled = fill_linear(np.where(np.isfinite(block[0]), block[0], np.nan), self.grid)
        beyond = np.where(np.isnan(filled), np.nan, np.abs(filled - self.middle) > self.half)
        y = np.clip(filled, self.middle - self.half, self.middle + self.half) - self.middle
        c = rowwise_matmul(y, self.weighted)
        rest = rowwise_matmul(y * y, self.weights[:, None])[:, 0] - rowwise_norm(c) ** 2
        return c, np.maximum(rest, 0.0)[:, None], rowwise_matmul(beyond, self.weights[:, None])

    def observed(self, block: Block) -> FloatArray:
        """1 for each observed curve, shape (m, 1); NaN for the others."""
        return np.asarray(np.where(np.isnan(block[1]), np.nan, 1.0))

    def away(self, block: Block) -> FloatArray:
        """Coefficients about the released centre."""
        return block[0] - self.centre

    def level_bins(self, block: Block) -> FloatArray:
        """Which sixteenth of the range the mean over t is in, shape (m, 16)."""
        level = rowwise_matmul(block[0], self.constant[:, None])[:, 0] / self.half
        bin_of = np.clip(np.floor((level + 1) / 2 * LEVEL_BINS), 0, LEVEL_BINS - 1)[:, None]
        return np.where(np.isnan(bin_of), np.nan, bin_of == np.arange(LEVEL_BINS))

    def distance(self, block: Block) -> FloatArray:
        """Their norm, shape (m,)."""
        return rowwise_norm(self.away(block))

    def beyond(self, block: Block) -> FloatArray:
        """Whether the curve is larger than each of :attr:`edges`, shape (m, 4); in pure form by L1 norms."""
        r = self.away(block)
        size = rowwise_matmul(np.abs(r), np.ones((r.shape[1], 1)))[:, 0] / L1_OVER_L2 if self.pure else rowwise_norm(r)
        return np.where(np.isnan(size[:, None]), np.nan, size[:, None] > self.edges)

    def within_reach(self, block: Block) -> FloatArray:
        """Leading coefficients about the released centre, shrunk to a norm of at most :attr:`reach`; shape (m, d)."""
        r = np.ascontiguousarray(self.away(block)[:, : self.leading])
        return np.asarray(r * np.minimum(1.0, self.reach / np.maximum(rowwise_norm(r), 1e-300))[:, None])

    def rest(self, block: Block) -> FloatArray:
        """Mean square outside the functions, shape (m, 1)."""
        return np.asarray(block[1])

    def outside(self, block: Block) -> FloatArray:
        """Share of t at which the curve is beyond the public range, shape (m, 1)."""
        return np.asarray(block[2])


PRIOR = 0.49
"""Variance of the logarithm of the size of curves about a guess."""
TRACE_SD, LEAST_TRACE = 0.4, 0.1
"""Prior sd of the total variance over the released size, and its least value."""
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
        rows.distance, half / tuning.size_below, half, share=tuning.size, name="size of curves", n=n
    )
    size = shrunk_scale(size, error, half / tuning.size_guess, PRIOR)
    total, sd = cohort.sum(rows.away, clip=tuning.size_clip * wide * size, size=m, share=rough, name="rough mean")
    rows.centre = anchor + shrunk_coefficients(rows.centre - anchor + total / n, sd / n, prior_shares)[0]
    spread, error = cohort.geometric_mean(
        rows.distance,
        size / tuning.spread_below,
        tuning.size_clip * size,
        share=tuning.spread,
        name="spread of curves",
        n=n,
    )
    spread = shrunk_scale(spread, error, size / tuning.size_clip, PRIOR)
    largest = half + float(np.linalg.norm(rows.centre))
    rows.edges, rows.pure = spread * EDGES, cohort.pure
    beyond = release_shares(cohort, rows.beyond, n=n, share=tuning.tail, name="shares of large curves", size=EDGES.size)
    tail = Tail.fit(beyond.value, beyond.sd, spread, largest, n, pure=cohort.pure)
    noise = unit_noise(cohort, tuning.mean) / n * wide
    # Half a simultaneous band, with noise in half of the functions: shrinkage takes it out of the others.
    cost = tuning.half_band * np.sqrt(tail.mean_square / n + m / 2 * (noise * tail.candidates) ** 2)
    clip = tail.clip(cost)
    total, sd = cohort.sum(rows.away, clip=clip * wide, size=m, share=tuning.mean, name="mean")
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


class ReleasedCovariance(NamedTuple):
    """Covariance (m, m), and what its noise is.

    Attributes
    ----------
    matrix : ndarray of shape (m, m)
    sd : float
        Of the noise in entries off the diagonal before shrinkage; sqrt(2) times that on the diagonal.
    reach : float
        Size beyond which persons were clipped.
    trace_sd : float
        What the noise leaves unknown of the trace.
    """

    matrix: FloatArray
    sd: float
    reach: float
    trace_sd: float


def release_covariance(
    cohort: Cohort,
    rows: CurveRowFunctions,
    prior_shares: FloatArray,
    tuning: SummaryTuning,
    n: float,
    tail: Tail,
) -> ReleasedCovariance:
    """Covariance of curves about the released centre, as :func:`covariance_of`."""

    def ask(d: int, reach: float) -> Noisy:
        rows.leading, rows.reach = d, reach
        return cohort.second_moment(rows.within_reach, clip=reach**2, share=tuning.covariance, name="covariance")

    return covariance_of(ask, cohort, prior_shares, tuning.covariance, n, tail, tuning.size_clip)


def covariance_of(
    ask: Callable[[int, float], Noisy],
    cohort: Cohort,
    prior_shares: FloatArray,
    share: float,
    n: float,
    tail: Tail,
    size_clip: float,
) -> ReleasedCovariance:
    """Covariance, shrunk entry by entry towards the prior's and positive.

    In pure form of the leading functions alone; of the others it is the prior's, of the size that is found.

    Parameters
    ----------
    ask : callable
        From the number d of functions and the size beyond which persons are clipped to the released sum over persons
        of second moments (d, d).
    share : float
        Of the cohort's reservation, that `ask` spends.
    n : float
        Persons in the sum.
    tail : Tail
        Of the sizes of persons, whose squares are the norms of their moments.
    """
    m = prior_shares.size
    noise_of_one = unit_noise(cohort, share)
    d = _leading(prior_shares, size_clip**2 * noise_of_one / 2 / n) if cohort.pure else m
    if cohort.pure:  # as Cohort.second_moment: matrix Laplace noise, √(d + 1) and not √2
        noise_of_one *= math.sqrt((d + 1) / 2)
    elif cohort.adjacency == "replace":  # not 2 clips, but √2
        noise_of_one /= math.sqrt(2)
    per_square = math.sqrt(d) * noise_of_one / n
    reach = tail.clip(per_square * tail.candidates**2, power=2)
    moment, sd = ask(d, reach)
    off = math.sqrt(2)
    matrix, noise = np.zeros((m, m)), np.full((m, m), math.inf)
    matrix[:d, :d], noise[:d, :d] = moment / n, np.where(np.eye(d, dtype=bool), 1.0, 1 / off) * sd / n
    part = prior_shares[:d].sum()
    size = max(tail.mean_square - tail.excess(reach, power=2), tail.typical**2 / 2)
    trace = shrunk(float(np.trace(matrix)) / part, math.sqrt(d) * sd / n / part, size, TRACE_SD * size)
    trace = max(trace, LEAST_TRACE * size)
    towards = np.diag(prior_shares * trace)
    # An entry is a priori as uncertain as the two variances that it belongs to are large.
    prior_sd = trace * np.sqrt(np.outer(prior_shares, prior_shares))
    matrix = shrunk(matrix, noise, towards, prior_sd)
    left = 1 / (1 / np.diag(prior_sd) ** 2 + 1 / np.diag(noise) ** 2)  # posterior variances of the diagonal
    values, vectors = np.linalg.eigh(matrix)
    # What lies beyond the clip is taken to be shaped as what lies within.
    beyond = 1 + tail.excess(reach, power=2) / trace
    return ReleasedCovariance(
        (vectors * np.maximum(values, 0.0) * beyond) @ vectors.T,
        float(sd / n / off * beyond),
        reach,
        math.sqrt(left.sum()) * beyond,
    )


def _leading(prior_shares: FloatArray, noise: float) -> int:
    """Number of functions of which the moments are released in pure form: the least expected squared error.

    The noise in all moments of d functions is √(d + 1) times `noise`, relative to the trace, off the diagonal.
    """
    products = np.outer(prior_shares, prior_shares)

    def error(d: int) -> float:
        return float(d * (d + 1) * noise**2 * (d + 1) - products[:d, :d].sum())

    return min(range(1, prior_shares.size + 1), key=error)
