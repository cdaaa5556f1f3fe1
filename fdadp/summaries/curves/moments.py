"""Mean and covariance of coefficients: locate, scale, look at the tail, clip, release, shrink by the known noise."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.privacy import Cohort, Noisy
from fdadp.privacy.account.accounting import unit_noise
from fdadp.privacy.clipped import release_shares
from fdadp.private.denoise.bayes import shrunk, shrunk_coefficients, shrunk_scale
from fdadp.summaries.curves.rows import L1_OVER_L2, LEVELS, CurveRowFunctions
from fdadp.summaries.curves.tails import EDGES, Tail
from fdadp.summaries.curves.tuning import SummaryTuning

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
    median = float(np.interp(0.5 * below[-1], below, np.linspace(-rows.half, rows.half, LEVELS + 1)))
    return rows.constant * median, tuning.rough_mean


def release_covariance(
    cohort: Cohort,
    rows: CurveRowFunctions,
    prior_shares: FloatArray,
    tuning: SummaryTuning,
    n: float,
    tail: Tail,
) -> tuple[FloatArray, float, float]:
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
) -> tuple[FloatArray, float, float]:
    """Covariance, shrunk entry by entry towards the prior's and positive; sd of its noise; size that was the clip.

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
    matrix = shrunk(matrix, noise, towards, trace * np.sqrt(np.outer(prior_shares, prior_shares)))
    values, vectors = np.linalg.eigh(matrix)
    # What lies beyond the clip is taken to be shaped as what lies within.
    beyond = 1 + tail.excess(reach, power=2) / trace
    return (vectors * np.maximum(values, 0.0) * beyond) @ vectors.T, float(sd / n / off * beyond), reach


def _leading(prior_shares: FloatArray, noise: float) -> int:
    """Number of functions of which the moments are released in pure form: the least expected squared error.

    The noise in all moments of d functions is √(d + 1) times `noise`, relative to the trace, off the diagonal.
    """
    products = np.outer(prior_shares, prior_shares)

    def error(d: int) -> float:
        return float(d * (d + 1) * noise**2 * (d + 1) - products[:d, :d].sum())

    return min(range(1, prior_shares.size + 1), key=error)
