"""DP-AFF: private additive function-on-function regression by noisy residual gradients on white features.

Each round releases the gradient of the squared error at the current coefficients, clipped per person; all rounds
together are noisy measurements of ``A Θ*``, from which empirical Bayes with the known noise gives Θ. The noise scales
with the residual, not with the response, and a round once paid for is used to the end. Everything here sees public
values and what the cohort released.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from fdadp._typing import FloatArray
from fdadp.privacy import Cohort
from fdadp.regression.private.bayes import Measurement, calibrate, combine, posteriors, secant_update
from fdadp.regression.private.plan import RESIDUAL_RANGE, Plan
from fdadp.regression.private.prior import WhiteDesign
from fdadp.regression.private.rows import Rows

__all__ = ["PrivateFit", "finish", "fit_dp_aff", "locate", "mean_response"]


@dataclass(frozen=True)
class PrivateFit:
    """What a private fit released, and what follows from it.

    Attributes
    ----------
    location, scale : float
        X is standardised by ``(X - location) / scale``.
    mean : ndarray of shape (m,)
        Coefficients of the mean response, about the middle of the public range.
    mean_variance : ndarray of shape (m,)
        Their posterior variances.
    coefficients : ndarray of shape (D, K)
        Of the features (the constant first) on the first K response functions.
    covariance : ndarray of shape (K, D, D)
        Posterior covariances, DP noise and sampling error included.
    second_moment : ndarray of shape (D, D)
        Estimate of the features' second moment, from the secants.
    edf : ndarray of shape (K,)
        Effective degrees of freedom of each output.
    residual_covariance : ndarray of shape (K, K)
    left_over : float
        Mean squared residual outside the K response functions.
    calibration : (float, float)
        Scale and 1/ν of the t law of standardised residuals.
    """

    location: float
    scale: float
    mean: FloatArray
    mean_variance: FloatArray
    coefficients: FloatArray
    covariance: FloatArray
    second_moment: FloatArray
    edf: FloatArray
    residual_covariance: FloatArray
    left_over: float
    calibration: tuple[float, float]


def fit_dp_aff(cohort: Cohort, plan: Plan, design: WhiteDesign, rows: Rows) -> PrivateFit:
    """Spend the budget of a cohort as planned.

    Parameters
    ----------
    cohort : Cohort
        Over the curves (X, Y).
    plan : Plan
    design : WhiteDesign
    rows : Rows
        What is computed from a person's rows; filled with released values as they come.
    """
    locate(cohort, plan, design, rows)
    mean_variance, energy = mean_response(cohort, plan, design, rows)
    k = plan.n_outputs
    prior_energy = design.response_shares[:k] / design.response_shares[:k].sum() * energy * 0.5
    rows.begin_regression(plan)
    cohort = cohort.derive(rows.derived, name="features and response coefficients")
    regression = _regress(cohort, plan, design, rows, prior_energy)
    return finish(cohort, plan, design, rows, regression, mean_variance, energy)


Regression = tuple[FloatArray, FloatArray, FloatArray, FloatArray]
"""Coefficients (D, K), their posterior covariances (K, D, D), second moment of the features (D, D), edf (K,)."""


def finish(
    cohort: Cohort,
    plan: Plan,
    design: WhiteDesign,
    rows: Rows,
    regression: Regression,
    mean_variance: FloatArray,
    energy: float,
) -> PrivateFit:
    """Release what prediction intervals need, about a regression that is done; `cohort` has the derived rows."""
    theta, covariance, second_moment, edf = regression
    rows.coefficients = theta
    residual, left_over = _residuals(cohort, plan, rows, design, energy)
    rows.set_spread(residual, left_over, mean_variance, covariance)
    calibration = (1.0, 0.0)
    if plan.shares["calibration"]:
        masses, sd = cohort.histogram(
            rows.residual_histogram, share=plan.shares["calibration"], name="calibration of intervals"
        )
        scale, inverse_dof = calibrate(masses / plan.n, sd / plan.n)
        optimism = math.sqrt(1 + 2 * plan.n_pairs / (plan.n_outputs * plan.n))  # residuals of fitted data are too small
        calibration = (scale * optimism, inverse_dof)
    return PrivateFit(
        rows.location,
        rows.scale,
        rows.mean,
        mean_variance,
        theta,
        covariance,
        second_moment,
        edf,
        residual,
        left_over,
        calibration,
    )


def locate(cohort: Cohort, plan: Plan, design: WhiteDesign, rows: Rows) -> None:
    """Location and scale of X: the public range is a hint, not a wall."""
    shares = plan.shares
    if not shares["x rms"]:
        return
    guess = rows.x_scale_guess * design.geometric_scale
    half = rows.x_half
    rms, error = cohort.log_scale(
        rows.x_rms, half / 32, 2 * half, share=shares["x rms"], name="root mean square of X", n=plan.n
    )
    # Log-normal prior about the public guess, sd 0.6.
    rms = guess * (rms / guess) ** (0.36 / (0.36 + error**2))
    shift = 0.0
    if shares["x location"]:
        total, sd = cohort.sum(rows.x_level, clip=1.5 * rms, size=1, share=shares["x location"], name="location of X")
        shift, sd = float(total[0]) / plan.n, sd / plan.n
        shift = float(np.clip(shift * rms**2 / (rms**2 + sd**2), -1.5 * rms, 1.5 * rms))
        rows.location += shift
    if shares["x scale"]:
        spread, _ = cohort.log_scale(
            rows.x_rms, rms / 16, 1.5 * rms, share=shares["x scale"], name="scale of X", n=plan.n
        )
    else:
        spread = math.sqrt(max(rms**2 - shift**2, (0.3 * rms) ** 2))
    rows.scale = spread / design.geometric_scale


def mean_response(cohort: Cohort, plan: Plan, design: WhiteDesign, rows: Rows) -> tuple[FloatArray, float]:
    """Mean of Y, shrunk by its known noise; returns its posterior variance and the squared scale of a response."""
    share = plan.shares["y scale"]
    clip = rows.y_half / 2.5
    if share:
        scale, _ = cohort.log_scale(
            rows.response_norm, rows.y_half / 16, rows.y_half, share=share, name="scale of Y", n=plan.n
        )
        clip = 1.5 * scale
    wider = clip * (1.6 if plan.pure else 1.0)
    m = design.response_shares.size
    total, sd = cohort.sum(rows.response, clip=wider, size=m, share=plan.shares["y mean"], name="mean of Y")
    mean, variance = total / plan.n, (sd / plan.n) ** 2
    signal = design.response_shares * max(mean @ mean - m * variance, 0.0)
    gain = signal / (signal + variance + 1e-300)
    rows.mean = mean * gain
    return variance * gain, (clip / 1.5) ** 2


def _regress(cohort: Cohort, plan: Plan, design: WhiteDesign, rows: Rows, prior_energy: FloatArray) -> Regression:
    """Gradient rounds; posterior mean (D, K), covariances (K, D, D), second moment (D, D) of the features, edf (K,)."""
    d, k, w = plan.n_features, plan.n_outputs, plan.weights
    active = w > 0
    weighted = w * np.sqrt(prior_energy)
    guess = 0.64 * weighted.sum() if plan.pure else math.sqrt((weighted**2).sum())
    theta, covariance, edf = np.zeros((d, k)), np.zeros((k, d, d)), np.zeros(k)
    a = start = np.eye(d)  # white features have about this second moment
    measurements: list[Measurement] = []
    uncertainty, damping = 0.03, 1.0
    best: tuple[float, int] | None = None
    for t in range(plan.rounds):
        rows.coefficients = theta
        clip = (0.8 if plan.pure else 0.62) * guess
        if plan.shares["gradient scale"]:
            norm, _ = cohort.log_scale(
                rows.gradient_norm,
                guess / 10,
                guess * 3,
                share=plan.shares["gradient scale"],
                name=f"scale of gradient {t + 1}",
                n=plan.n,
            )
            clip = plan.clip_factor * norm
        total, sd = cohort.sum_outer(
            rows.weighted,
            weights=w,
            clip=clip,
            share=plan.shares["gradient"],
            name=f"gradient {t + 1}",
        )
        safe = np.where(active, w, 1.0)
        gradient = np.where(active, total / safe, 0.0) / plan.n
        measurements.append((gradient, theta, np.where(active, (sd / plan.n / safe) ** 2, np.inf)))
        # Guard: the measured energy must not grow; else start again from the best point, with shorter steps.
        energy = float((total**2).sum())
        base = t
        if best is not None and energy > 2 * best[0] + 3 * sd**2 * math.sqrt(2 * plan.n_pairs):
            damping *= 2
            base = best[1]
        if best is None or energy < best[0]:
            best = (energy, t)
        a = secant_update(start, uncertainty, measurements, active) if t else start
        a = a + (damping - 1) * np.eye(d)
        target, noise = combine(measurements, measurements[base][1], a, uncertainty)
        theta, covariance, edf = posteriors(
            target, noise, a, active, design.feature_shares[: d - 1], prior_energy, plan.n
        )
    return theta, covariance, a, edf


def _residuals(cohort: Cohort, plan: Plan, rows: Rows, design: WhiteDesign, energy: float) -> tuple[FloatArray, float]:
    """Residual covariance on the K response functions, and the mean square outside them.

    The size of a residual curve is released first, on a log scale about a good guess, which is accurate even where the
    covariance is not; covariance and left-over energy are then shrunk to public shapes of that size by their noise.
    """
    k, share = plan.n_outputs, plan.shares["residual"]
    guess = 0.7 * math.sqrt(energy)
    norm, error = cohort.log_scale(
        rows.residual_rms,
        guess / RESIDUAL_RANGE,
        guess * RESIDUAL_RANGE,
        share=plan.shares["residual scale"],
        name="scale of residuals",
        n=plan.n,
    )
    rows.residual_clip = (2.3 + 2.2 * plan.clarity) * norm
    bound = rows.residual_clip**2
    upper = np.triu_indices(k)
    # Off-diagonals times sqrt(2): the L2 norm of the triangle is then that of the matrix.
    scale = np.where(upper[0] == upper[1], 1.0, 1.0 if plan.pure else math.sqrt(2))
    clip = bound * (k + 1) / 2 if plan.pure else bound
    total, sd = cohort.sum(
        rows.residual_products, clip=clip, size=len(scale), share=0.75 * share, name="covariance of residuals"
    )
    noisy = np.zeros((k, k))
    noisy[upper] = total / scale / plan.n
    noisy = noisy + noisy.T - np.diag(np.diag(noisy))
    sd = sd / plan.n
    outside, outside_sd = cohort.sum(
        rows.left_over, clip=norm**2, size=1, share=0.25 * share, name="energy outside the response functions"
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


def _shrink(value: Any, sd: float, towards: Any, prior_sd: float) -> Any:
    """Posterior mean of a Gaussian with known noise."""
    return towards + (value - towards) * (prior_sd**2 / (prior_sd**2 + sd**2))
