"""Post-processing of noisy releases: empirical Bayes with known noise, secants, calibration. Costs no privacy."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh
from scipy.stats import norm
from scipy.stats import t as student

from fdadp._typing import FloatArray

__all__ = ["CALIBRATION_EDGES", "Measurement", "calibrate", "combine", "posterior", "secant_update"]

CALIBRATION_EDGES = np.array([0.0, 0.8, 1.44, 1.96, 2.8])
"""Left edges of the bins of |residual| / sd; the last bin is open."""

Measurement = tuple[FloatArray, FloatArray, FloatArray]
"""A gradient g (D, K) measured at Θ (D, K) with noise variances (D, K)."""


def posterior(
    y: FloatArray, v: FloatArray, a: FloatArray, noise: float, shares: FloatArray
) -> tuple[FloatArray, FloatArray, float]:
    """Posterior of θ from ``y = A θ + N(0, diag(v) + noise A)``, ``θ ~ N(0, τ² diag(shares))``.

    τ² maximises the marginal likelihood on a grid that contains 0, so pure noise gives θ = 0.

    Returns
    -------
    mean : ndarray of shape (d,)
    covariance : ndarray of shape (d, d)
    edf : float
        Effective degrees of freedom: how many directions the measurement determines.
    """
    error = np.diag(v) + a * noise
    prior = a * shares
    signal = prior @ a
    values, axes = eigh((signal + signal.T) / 2, (error + error.T) / 2)
    values = np.maximum(values, 0)
    energy = (axes.T @ y) ** 2
    top = max(energy.max() / max(values.max(), 1e-300), 1e-12)
    grid = np.concatenate(([0.0], top * 10.0 ** np.linspace(-5, 2, 36)))
    spread = 1 + grid[:, None] * values
    tau2 = grid[int(np.argmin(np.log(spread).sum(axis=1) + (energy / spread).sum(axis=1)))]
    gain = (axes * (tau2 / (1 + tau2 * values))) @ axes.T
    edf = float((tau2 * values / (1 + tau2 * values)).sum())
    return prior.T @ (gain @ y), tau2 * np.diag(shares) - tau2 * prior.T @ gain @ prior, edf


def combine(
    measurements: list[Measurement], at: FloatArray, a: FloatArray, a_variance: float
) -> tuple[FloatArray, FloatArray]:
    """Inverse-variance mean of the noisy measurements ``g_t + A Θ_t`` of ``A Θ*``.

    A is known with variance `a_variance` per entry, which counts against rounds far from the point `at`.

    Returns
    -------
    mean, variance : ndarray of shape (D, K)
    """
    total = precision = np.zeros_like(at)
    for gradient, theta, variance in measurements:
        weight = 1 / (variance + a_variance * ((at - theta) ** 2).sum(axis=0))
        total = total + (gradient + a @ theta) * weight
        precision = precision + weight
    precision = np.maximum(precision, 1e-300)
    return total / precision, 1 / precision


def secant_update(
    a: FloatArray, variance: float, measurements: list[Measurement], active: npt.NDArray[np.bool_]
) -> FloatArray:
    """Second moment of the features, learned from differences of released gradients.

    ``g_0 - g_t = A (Θ_t - Θ_0) + known noise``: a Gaussian update of each row of ``A ~ N(a, variance I)``, then made
    symmetric, with eigenvalues of at least 0.1. Replaces a private release of the second moment.

    Parameters
    ----------
    a : ndarray of shape (D, D)
    variance : float
    measurements : list of Measurement
    active : bool ndarray of shape (D, K)
        Pairs of feature and output that are measured at all.
    """
    first, origin, first_variance = measurements[0]
    updated = a.copy()
    for j in range(len(a)):
        on = active[j]
        steps = np.concatenate([(theta - origin)[:, on].T for _, theta, _ in measurements[1:]])
        seen = np.concatenate([(first - g)[j, on] - a[j] @ (theta - origin)[:, on] for g, theta, _ in measurements[1:]])
        noise = np.concatenate([(first_variance + v)[j, on] for _, _, v in measurements[1:]])
        updated[j] = a[j] + variance * steps.T @ np.linalg.solve(steps @ steps.T * variance + np.diag(noise), seen)
    values, vectors = np.linalg.eigh((updated + updated.T) / 2)
    return np.asarray((vectors * np.maximum(values, 0.1)) @ vectors.T)


def calibrate(masses: FloatArray, sd: float) -> tuple[float, float]:
    """Scale s and 1/ν of a t law for |residual| / sd, from noisy bin masses.

    Least squares with known noise, penalised by the public prior ``log s ~ N(0, 0.12²)``, ``1/ν ~ N(0.1, 0.1²)`` on
    [0, 0.46): intervals do not take residuals as Gaussian, least of all where the noise hides their tails.
    """
    log_scales = np.linspace(-0.9, 0.9, 73)
    edges = np.append(CALIBRATION_EDGES, np.inf) / np.exp(log_scales)[:, None]
    best = (np.inf, 1.0, 0.0)
    for inverse in np.concatenate(([0.0, 0.03], np.arange(0.06, 0.46, 0.04))):
        cdf = norm.cdf(edges) if inverse == 0 else student.cdf(edges, 1 / inverse)
        misfit = ((masses - 2 * np.diff(cdf, axis=1)) ** 2).sum(axis=1) / (2 * (sd * sd + 1e-5))
        values = misfit + 0.5 * (log_scales / 0.12) ** 2 + 0.5 * ((inverse - 0.1) / 0.1) ** 2
        i = int(values.argmin())
        if values[i] < best[0]:
            best = (float(values[i]), float(np.exp(log_scales[i])), float(inverse))
    return best[1], best[2]
