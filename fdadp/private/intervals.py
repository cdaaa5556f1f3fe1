"""What prediction intervals need, released about a regression that is done: how large residuals are, where, and how.

Size and covariance on the response functions, energy outside them, their size in blocks of time, the law of their
standardised values, and how much of the data lies outside the public ranges.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.privacy import Cohort
from fdadp.privacy.clipped import ReleasedShares, release_shares
from fdadp.private.bayes import calibrate, profile
from fdadp.private.plan import RESIDUAL_RANGE, SPREADS, Plan, time_blocks
from fdadp.private.prior import WhiteDesign
from fdadp.private.residual_rows import ResidualRows
from fdadp.private.rows import Rows

__all__ = ["PrivateFit", "Regression", "finish", "release_outside"]


@dataclass(frozen=True)
class Regression:
    """A regression on the features, before its residuals were looked at.

    Attributes
    ----------
    coefficients : ndarray of shape (D, K)
        Of the features (the constant first) on the first K response functions.
    covariance : ndarray of shape (K, D, D)
        Posterior covariances, DP noise and sampling error included.
    second_moment : ndarray of shape (D, D)
        Estimate of the features' second moment.
    edf : ndarray of shape (K,)
        Effective degrees of freedom of each output.
    mean_variance : ndarray of shape (m,)
        Posterior variances of the coefficients of the mean response.
    energy : float
        Squared scale of Y about its mean.
    outside : ReleasedShares or None
        Shares of X and of Y outside their public ranges.
    """

    coefficients: FloatArray
    covariance: FloatArray
    second_moment: FloatArray
    edf: FloatArray
    mean_variance: FloatArray
    energy: float
    outside: ReleasedShares | None


@dataclass(frozen=True)
class PrivateFit:
    """What a private fit released, and what follows from it.

    Attributes
    ----------
    location, scale : float
        X is standardised by ``(X - location) / scale``.
    y_location : float
    mean : ndarray of shape (m,)
        Coefficients of the mean response, about `y_location`.
    regression : Regression
    residual_covariance : ndarray of shape (K, K)
    left_over : float
        Mean squared residual outside the K response functions.
    residual_variance : ndarray of shape (T,)
    calibration : (float, float)
        Scale and 1/ν of the t law of standardised residuals.
    counted : (float, float)
        Persons with usable rows that the releases show, relative to n, and the sd of the noise in that; NaN where
        nothing shows it.
    """

    location: float
    scale: float
    y_location: float
    mean: FloatArray
    regression: Regression
    residual_covariance: FloatArray
    left_over: float
    residual_variance: FloatArray
    calibration: tuple[float, float]
    counted: tuple[float, float]


def release_outside(cohort: Cohort, plan: Plan, rows: Rows) -> ReleasedShares | None:
    """Shares of the values of X and of Y outside the public ranges, where the plan affords it."""
    share = plan.shares["outside"]
    if not share:
        return None
    return release_shares(cohort, rows.outside, n=plan.n, share=share, name="shares outside the bounds", size=2)


def finish(cohort: Cohort, plan: Plan, design: WhiteDesign, rows: Rows, regression: Regression) -> PrivateFit:
    """Release what prediction intervals need, about a regression that is done; `cohort` has the derived rows."""
    rows.coefficients = regression.coefficients
    residuals = ResidualRows(rows)
    covariance, left_over = _size(cohort, plan, residuals, design, regression.energy)
    functions = design.response[:, : plan.n_outputs]
    variance = np.einsum("tk,kl,tl->t", functions, covariance, functions) + left_over
    residuals.set_spread(variance, regression.mean_variance, regression.covariance)
    if plan.shares["residual profile"]:
        variance = _in_time(cohort, plan, design, residuals, regression, variance)
        residuals.set_spread(variance, regression.mean_variance, regression.covariance)
    calibration, counted = (1.0, 0.0), (math.nan, math.nan)
    if plan.shares["calibration"]:
        masses, sd = cohort.histogram(
            residuals.histogram, share=plan.shares["calibration"], name="calibration of intervals"
        )
        counted = (float(masses.sum()) / plan.n, math.sqrt(masses.size) * sd / plan.n)
        scale, inverse_dof = calibrate(masses / plan.n, sd / plan.n)
        optimism = math.sqrt(1 + 2 * plan.n_pairs / (plan.n_outputs * plan.n))  # residuals of fitted data are too small
        calibration = (scale * optimism, inverse_dof)
    return PrivateFit(
        rows.location,
        rows.scale,
        rows.y_location,
        rows.mean,
        regression,
        covariance,
        left_over,
        variance,
        calibration,
        counted,
    )


def _size(
    cohort: Cohort, plan: Plan, residuals: ResidualRows, design: WhiteDesign, energy: float
) -> tuple[FloatArray, float]:
    """Residual covariance on the K response functions, and the mean square outside them.

    The size of a residual curve is released first, on a log scale about a good guess, which is accurate even where the
    covariance is not; covariance and left-over energy are then shrunk to public shapes of that size by their noise.
    """
    k, share = plan.n_outputs, plan.shares["residual"]
    guess = 0.7 * math.sqrt(energy)
    norm, error = cohort.log_scale(
        residuals.rms,
        guess / RESIDUAL_RANGE,
        guess * RESIDUAL_RANGE,
        share=plan.shares["residual scale"],
        name="scale of residuals",
        n=plan.n,
    )
    residuals.clip = (2.3 + 2.2 * plan.clarity) * norm
    bound = residuals.clip**2
    clip = bound * (k + 1) / 2 if plan.pure else bound  # in L1 the triangle of r r' is at most that long
    moment, sd = cohort.second_moment(residuals.clipped, clip=clip, share=0.75 * share, name="covariance of residuals")
    noisy, sd = moment / plan.n, sd / plan.n
    outside, outside_sd = cohort.sum(
        residuals.left_over, clip=norm**2, size=1, share=0.25 * share, name="energy outside the response functions"
    )
    left_over, left_over_sd = float(outside[0]) / plan.n, outside_sd / plan.n
    # Size: log-normal from the released scale (a mean square exceeds the geometric one), and the trace.
    size = 1.3 * norm**2
    left_over = max(_shrink(left_over, left_over_sd, 0.1 * size, 0.1 * size), 0.0)
    shape = design.response_shares[:k] / design.response_shares[:k].sum()
    trace = _shrink(
        float(np.trace(noisy)), math.sqrt(k) * sd, max(size - left_over, 0.2 * size), size * math.hypot(2 * error, 0.2)
    )
    trace = max(trace, 0.1 * size)
    matrix = _shrink(noisy, sd, np.diag(shape * trace), 0.3 * trace)
    values, vectors = np.linalg.eigh(matrix)
    values = np.maximum(values, 0.005 * max(values.max(), 1e-9))
    covariance = (vectors * (values * trace / values.sum())) @ vectors.T  # positive, of the estimated size
    return covariance, left_over


def _in_time(
    cohort: Cohort,
    plan: Plan,
    design: WhiteDesign,
    residuals: ResidualRows,
    regression: Regression,
    variance: FloatArray,
) -> FloatArray:
    """Residual variance corrected by what blocks of time show: residuals over their spread, as a smooth curve.

    The correction has mean one on the log scale; the overall size is left to the calibration.
    """
    of = time_blocks(design.unit_t)
    count = int(of[-1]) + 1
    low, high = SPREADS
    half = math.log(high / low) / 2
    total, sd = cohort.sum(
        residuals.by_block,
        clip=float(count) if plan.pure else math.sqrt(count),
        size=count,
        share=plan.shares["residual profile"],
        name="residuals in blocks of time",
    )
    averages = (of[None] == np.arange(count)[:, None]) * design.t_weights
    averages = averages / averages.sum(axis=1, keepdims=True)
    places = half * np.asarray(total) / plan.n
    log_ratio = profile(places, math.hypot(half * sd, 0.6 * math.sqrt(plan.n)) / plan.n, averages, design.unit_t)
    ratio = np.exp(2 * (log_ratio - design.t_weights @ log_ratio))
    # What blocks show is the spread of responses about predictions: noise of the prediction is part of it.
    phi = design.response
    uncertain = np.einsum("kij,ij->k", regression.covariance, regression.second_moment)
    of_prediction = phi**2 @ regression.mean_variance + phi[:, : uncertain.size] ** 2 @ np.maximum(uncertain, 0.0)
    return np.asarray(np.maximum(ratio * (variance + of_prediction) - of_prediction, 0.01 * ratio * variance))


def _shrink(value: Any, sd: float, towards: Any, prior_sd: float) -> Any:
    """Posterior mean of a Gaussian with known noise."""
    return towards + (value - towards) * (prior_sd**2 / (prior_sd**2 + sd**2))
