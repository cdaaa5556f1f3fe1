"""What prediction intervals need, released about a regression that is done: how large residuals are, where, and how.

Size and covariance on the response functions, energy outside them, their size in blocks of time, the law of their
standardised values, and how much of the data lies outside the public ranges.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.privacy.clipped_shares import ReleasedShares
from fdadp.private.denoise.empirical_bayes import CALIBRATION_EDGES, calibrate, predictive, profile
from fdadp.private.plan.budget_sharing import SPREADS, time_blocks
from fdadp.private.plan.private_design import PrivateDesign
from fdadp.private.public.column_ranges import Column
from fdadp.private.release.planned_releases import Releases
from fdadp.private.rows.anchored_forecasts import about_anchor, growth, guarded
from fdadp.private.rows.errors_by_record import ONE_ERROR, Probe, learn_looks, place_looks
from fdadp.private.rows.pointwise_gradients import MeasuredPairs
from fdadp.private.rows.row_functions import ResidualRows, RowFunctions
from fdadp.rounds.posterior_means import gain, shrunk

UNEXPLAINED = 0.7
"""Size of residuals over that of Y, as guessed before it is released."""
LEFT_OVER, LEAST_TRACE, UNCERTAIN = 0.1, 0.1, 0.2
"""Shares of that size: outside the response functions, and the sd of that; least and uncertain share within them."""
SHAPE_SD, LEAST_EIGENVALUE = 0.3, 0.005
"""Prior sd of an entry of the residual covariance over its trace; least eigenvalue over the largest."""
WIDE, WIDER, SURE = 1.25, 0.36, 2.0
"""Clip of residuals whose mean is wanted, over their size, at noise of 1, and its power of the noise: so chosen, noise
and what the clip takes of log-normal errors (of which the logarithm has variance 1) are about equal. Sds of the sum of
squares of the means beyond which these are no noise."""
SAMPLING_SD = 0.6
"""Of a person's log residual in a block of time."""
LEAST_CORRECTED = 0.01
"""Residual variance over what it was before the noise of the prediction was taken off, at least."""
TINY = 1e-9


def _with_constant(coefficients: FloatArray, by: FloatArray) -> FloatArray:
    """Coefficients (D, K) with (K,) more in those of the constant."""
    out = coefficients.copy()
    out[0] += by
    return out


@dataclass(frozen=True)
class Regression:
    """A regression on the features, before its residuals were looked at.

    Attributes
    ----------
    coefficients : ndarray of shape (D, K)
        Of the features (the constant first) on the first K response functions.
    covariance : ndarray of shape (K, D, D), or (1, P, P) of pairs
        Posterior covariances, DP noise and sampling error included.
    second_moment : ndarray of shape (D, D), or (P, P)
        Estimate of the features' second moment.
    edf : ndarray of shape (K,), or (1,)
        Effective degrees of freedom of each output.
    mean_variance : ndarray of shape (m,)
        Posterior variances of the coefficients of the mean response.
    energy : float
        Squared scale of Y about its mean.
    outside : ReleasedShares or None
        Shares of each column of curves and of Y outside their public ranges.
    pairs : MeasuredPairs or None
        Of a design with features that differ between points of the response.
    """

    coefficients: FloatArray
    covariance: FloatArray
    second_moment: FloatArray
    edf: FloatArray
    mean_variance: FloatArray
    energy: float
    outside: ReleasedShares | None
    pairs: MeasuredPairs | None = None

    def shifted(self, by: FloatArray, variance: FloatArray) -> Regression:
        """Return it with a number (K,) more in the constant's coefficients, with the variances (K,) of that."""
        if not by.any():
            return self
        of_constant = np.zeros(self.covariance.shape)
        if self.pairs is None:
            of_constant[:, 0, 0] = variance
        else:
            constant = self.pairs.feature == 0
            of_constant[0, constant, constant] = variance[self.pairs.output[constant]]
        return replace(
            self, coefficients=_with_constant(self.coefficients, by), covariance=self.covariance + of_constant
        )

    @property
    def covariances(self) -> FloatArray:
        """Posterior covariances of all coefficients, shape (D, K, D, K): outputs are independent, but of pairs."""
        if self.pairs is not None:
            return self.pairs.square(self.covariance[0])
        return np.asarray(np.einsum("kij,kl->ikjl", self.covariance, np.eye(len(self.covariance))))

    @property
    def moments(self) -> FloatArray:
        """Second moment of what multiplies them, shape (D, K, D, K)."""
        if self.pairs is not None:
            return self.pairs.square(self.second_moment)
        return np.asarray(np.einsum("ij,kl->ikjl", self.second_moment, np.eye(self.coefficients.shape[1])))

    def uncertainty(self, functions: FloatArray) -> FloatArray:
        """Mean variance of a prediction that its coefficients leave, from the response functions (T, M); (T,)."""
        if self.pairs is None:
            of_outputs = np.einsum("kij,ij->k", self.covariance, self.second_moment)
            return np.asarray(functions[:, : of_outputs.size] ** 2 @ np.maximum(of_outputs, 0.0))
        forms = self.pairs.forms(self.covariance[0], functions)
        of_features = np.einsum("ikjk->ij", self.pairs.square(self.second_moment)) / self.pairs.shape[1]
        return np.asarray(np.maximum(np.einsum("ijt,ij->t", forms, of_features), 0.0))

    def of_prediction(self, functions: FloatArray) -> FloatArray:
        """Mean variance of a prediction, that of the mean curve included, from all response functions (T, m); (T,)."""
        return np.asarray(functions**2 @ self.mean_variance + self.uncertainty(functions))


@dataclass(frozen=True)
class PrivateFit:
    """What a private fit released, and what follows from it.

    Attributes
    ----------
    columns : tuple of Column
        Covariates with their released locations and scales, in the order of the design's.
    y_location : float
    mean : ndarray of shape (m,)
        Coefficients of the mean response, about `y_location`.
    regression : Regression
    residual_covariance : ndarray of shape (K, K)
    outside_variance : float
        Mean squared residual outside the K response functions.
    residual_variance : ndarray of shape (T,)
    calibration : (float, float)
        Scale and 1/ν of the t law of standardised residuals.
    counted : (float, float)
        Persons with usable rows that the releases show, relative to n, and the sd of the noise in that; NaN where
        nothing shows it.
    looks : tuple of Probe
        Of forecasts, and where it was asked for: how errors hang on what records look like.
    dropped : bool
        Whether the fit was no better than its anchor, which alone is left of it.
    """

    columns: tuple[Column, ...]
    y_location: float
    mean: FloatArray
    regression: Regression
    residual_covariance: FloatArray
    outside_variance: float
    residual_variance: FloatArray
    calibration: tuple[float, float]
    counted: tuple[float, float]
    looks: tuple[Probe, ...] = ()
    dropped: bool = False


def finish(
    releases: Releases,
    rows: RowFunctions,
    regression: Regression,
    known: Callable[[Regression, FloatArray], Regression] | None = None,
) -> PrivateFit:
    """Release what prediction intervals need, about a regression that is done, from the derived rows.

    Parameters
    ----------
    known : callable, optional
        From the regression and the residual covariance (K, K) to one that knows the size of residuals.
    """
    plan, design = releases.plan, rows.design
    rows.coefficients = regression.coefficients
    residuals = ResidualRows(rows)
    forecasts = about_anchor(plan)
    if "errors by looks" in plan.budget_shares:
        residuals.looks = place_looks(releases, residuals, rows.columns, design.prior, forecasts=forecasts)
    norm, error = _scale(releases, residuals, regression.energy)
    shift = of_shift = np.zeros(plan.n_outputs)
    if releases.affords("level"):
        shift, of_shift = _level(releases, residuals, norm)
        rows.coefficients = _with_constant(regression.coefficients, shift)
    covariance, outside_variance, error = _size(releases, residuals, design, norm, error)
    if known is not None:
        regression = known(regression, covariance)
    regression = regression.shifted(shift, of_shift)
    rows.coefficients = regression.coefficients
    functions = design.response[:, : plan.n_outputs]
    if forecasts:  # residuals are of predictions, whose own error is added again
        total = float(np.trace(covariance)) + outside_variance
        own = float(design.t_weights @ regression.of_prediction(design.response))
        variance = max(total - own, LEAST_CORRECTED * total) * growth(design.unit_t, design.t_weights)
    else:
        variance = np.einsum("tk,kl,tl->t", functions, covariance, functions) + outside_variance
    residuals.set_spread(variance, regression.mean_variance, regression.covariance)
    if residuals.looks:
        learn_looks(releases, residuals, forecasts=forecasts)
    if releases.affords("residual profile"):
        variance = _in_time(releases, design, residuals, regression, variance)
        residuals.set_spread(variance, regression.mean_variance, regression.covariance)
    calibration, counted = (1.0, 0.0), (math.nan, math.nan)
    masses, sd = np.zeros(CALIBRATION_EDGES.size), math.inf
    if releases.affords("calibration"):
        masses, sd = releases.histogram("calibration", residuals.histogram)
        counted = (float(masses.sum()) / plan.n, math.sqrt(masses.size) * sd / plan.n)
    if forecasts or releases.affords("calibration"):
        law = (masses / plan.n, sd / plan.n)
        scale, inverse_dof = predictive(*law, error) if forecasts else calibrate(*law)
        optimism = math.sqrt(1 + 2 * plan.n_pairs / (plan.n_outputs * plan.n))  # residuals of fitted data are too small
        calibration = (scale * optimism, inverse_dof)
    found = PrivateFit(
        tuple(rows.columns.values()),
        rows.y_location,
        rows.mean,
        regression,
        covariance,
        outside_variance,
        variance,
        calibration,
        counted,
        residuals.looks,
    )
    return guarded(releases, residuals, found) if forecasts else found


def _scale(releases: Releases, residuals: ResidualRows, energy: float) -> tuple[float, float]:
    """Size of a residual curve, on a log scale about a good guess, and the error of its logarithm."""
    between = releases.plan.tuning.residual_scale.range(UNEXPLAINED * math.sqrt(energy))
    norm, error = releases.size("residual scale", residuals.rms, between)
    return _closer(releases, residuals, norm, error) if releases.affords("residual scale again") else (norm, error)


def _level(releases: Releases, residuals: ResidualRows, norm: float) -> tuple[FloatArray, FloatArray]:
    """Means (K,) of residuals on the response functions, as far as they are no noise, and the variance of each.

    Clips of gradients hold errors that are skewed to one side, and with them the level, at any n. Here the clip has
    about as much noise as a log-normal law of errors has beyond it, so it grows with n. What noise may be is left out:
    symmetric errors keep the level that they have.
    """
    plan, k = releases.plan, releases.plan.n_outputs
    share = plan.budget_shares["level"]
    noise = plan.eta / (share if plan.pure else math.sqrt(share))
    clip = norm * WIDE * noise**-WIDER * plan.tuning.mean_clip
    found, sd = releases.mean("level", residuals.rows.residuals, clip=clip, size=k)
    variance = sd**2 + norm**2 / plan.n
    of = residuals.rows.design.response_shares[:k]
    of = of / of.max()
    beyond = float(of @ found**2) - variance * (of.sum() + SURE * math.sqrt(2 * float(of @ of)))
    kept = gain(of * max(beyond, 0.0) / float(of @ of), variance)
    return kept * found, kept * variance


def _size(
    releases: Releases, residuals: ResidualRows, design: PrivateDesign, norm: float, error: float
) -> tuple[FloatArray, float, float]:
    """Residual covariance on the K response functions, the mean square outside them, and the error of the log size.

    The size of residual curves is accurate even where the covariance is not; covariance and left-over energy are
    shrunk to public shapes of that size by their noise.
    """
    plan, tuning = releases.plan, releases.plan.tuning
    k, share = plan.n_outputs, plan.budget_shares["residual"]
    residuals.clip = (tuning.residual_clip + tuning.residual_clip_more * plan.signal_to_noise) * norm
    noisy, sd = releases.second_moment(
        "residual", residuals.clipped, clip=residuals.clip**2, share=tuning.residual_split * share
    )
    outside, outside_sd = releases.mean(
        "residual energy", residuals.outside_variance, clip=norm**2, share=(1 - tuning.residual_split) * share
    )
    # Size: log-normal from the released scale (a mean square exceeds the geometric one), and the trace.
    size = tuning.mean_square * norm**2
    outside_variance = max(shrunk(float(outside[0]), outside_sd, LEFT_OVER * size, LEFT_OVER * size), 0.0)
    shape = design.response_shares[:k] / design.response_shares[:k].sum()
    towards = max(size - outside_variance, UNCERTAIN * size)
    trace = shrunk(float(np.trace(noisy)), math.sqrt(k) * sd, towards, size * math.hypot(2 * error, UNCERTAIN))
    trace = max(trace, LEAST_TRACE * size)
    matrix = shrunk(noisy, sd, np.diag(shape * trace), SHAPE_SD * trace)
    values, vectors = np.linalg.eigh(matrix)
    values = np.maximum(values, LEAST_EIGENVALUE * max(values.max(), TINY))
    covariance = (vectors * (values * trace / values.sum())) @ vectors.T  # positive, of the estimated size
    of_trace = math.sqrt(k) * sd / (2 * size)
    return covariance, outside_variance, error * of_trace / math.hypot(error, of_trace)


def _closer(releases: Releases, residuals: ResidualRows, norm: float, error: float) -> tuple[float, float]:
    """The size of residuals with a second release near the first, whose logarithm is off by `error`.

    Within so narrow a range a person moves less, but many are clipped: of what the first is off by the second shows the
    share of persons within the range (Stein's lemma).
    """
    again = releases.plan.tuning.residual_again
    seen, noise = releases.size("residual scale again", residuals.rms, again.range(norm))
    shown = math.erf(again.reach / (math.sqrt(2) * math.hypot(ONE_ERROR, error)))
    sure = float(gain(error**2, (noise / shown) ** 2))
    return norm * (seen / norm) ** (sure / shown), error * math.sqrt(1 - sure)


def _in_time(
    releases: Releases, design: PrivateDesign, residuals: ResidualRows, regression: Regression, variance: FloatArray
) -> FloatArray:
    """Residual variance corrected by what blocks of time show: residuals over their spread, as a smooth curve.

    The correction has mean one on the log scale; the overall size is left to the calibration.
    """
    plan, of = releases.plan, time_blocks(design.unit_t)
    count = int(of[-1]) + 1
    low, high = SPREADS
    half = math.log(high / low) / 2
    clip = float(count) if plan.pure else math.sqrt(count)
    total, sd = releases.sum("residual profile", residuals.by_block, clip=clip, size=count)
    averages = (of[None] == np.arange(count)[:, None]) * design.t_weights
    averages = averages / averages.sum(axis=1, keepdims=True)
    noise = math.hypot(half * sd, SAMPLING_SD * math.sqrt(plan.n)) / plan.n
    log_ratio = profile(half * total / plan.n, noise, averages, design.unit_t)
    ratio = np.exp(2 * (log_ratio - design.t_weights @ log_ratio))
    # What blocks show is the spread of responses about predictions: noise of the prediction is part of it.
    of_prediction = regression.of_prediction(design.response)
    least = LEAST_CORRECTED * ratio * variance
    return np.asarray(np.maximum(ratio * (variance + of_prediction) - of_prediction, least))
