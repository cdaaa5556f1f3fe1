"""The law of standardised residuals, from a noisy histogram and what is believed in public; no privacy is spent."""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student

from fdadp._common.typing import FloatArray

CALIBRATION_EDGES = np.array([0.0, 0.8, 1.44, 1.96, 2.8])
"""Left edges of the bins of |residual| / sd; the last bin is open."""

LOG_SCALES, LOG_SCALE_SD = np.linspace(-0.9, 0.9, 73), 0.12
"""Logarithms of the scale of standardised residuals, and their prior sd about 0."""
INVERSE_DOFS = np.concatenate(([0.0, 0.03], np.arange(0.06, 0.46, 0.04)))
INVERSE_DOF, INVERSE_DOF_SD = 0.1, 0.1
"""Reciprocals of the degrees of freedom of residuals; prior mean and sd."""
HEAVY_INVERSE_DOF, HEAVY_INVERSE_DOF_SD, LARGEST_INVERSE_DOF = 0.15, 0.07, 0.42
"""The same of errors of forecasts; above the last, variances are not what sizes are compared by."""
LEVELS, QUANTILES = (0.8, 0.95), np.linspace(0.2, 8.0, 400)
"""Levels at which a mixture is taken to be one law, and where its quantiles are looked for."""
MASS_VARIANCE = 1e-5
"""Of the released masses, beside the noise: no law fits exactly."""


def calibrate(masses: FloatArray, sd: float) -> tuple[float, float]:
    """Scale s and 1/ν of a t law for |residual| / sd, from noisy bin masses.

    Least squares with known noise, penalised by the public prior ``log s ~ N(0, 0.12²)``, ``1/ν ~ N(0.1, 0.1²)`` on
    [0, 0.46): intervals do not take residuals as Gaussian, least of all where the noise hides their tails.
    """
    values = _misfits(masses, sd) + 0.5 * (LOG_SCALES / LOG_SCALE_SD) ** 2
    values += 0.5 * ((INVERSE_DOFS[:, None] - INVERSE_DOF) / INVERSE_DOF_SD) ** 2
    j, i = np.unravel_index(values.argmin(), values.shape)
    return float(np.exp(LOG_SCALES[i])), float(INVERSE_DOFS[j])


def predictive(masses: FloatArray, sd: float, error: float) -> tuple[float, float]:
    """Scale and 1/ν of a t law for |residual| / sd of a new record, averaged over what the masses leave uncertain.

    As :func:`calibrate`, but the prior of the scale is about that of variance 1, whatever the tails, and as wide as the
    size of residuals is uncertain; the law is that whose 80 and 95 % quantiles are those of the mixture.

    Parameters
    ----------
    error : float
        Sd of the logarithm of the size that residuals were divided by.
    """
    middle = 0.5 * np.log(1 - 2 * np.minimum(INVERSE_DOFS, LARGEST_INVERSE_DOF))[:, None]
    values = _misfits(masses, sd) + 0.5 * (LOG_SCALES - middle) ** 2 / (LOG_SCALE_SD**2 + error**2)
    values += 0.5 * ((INVERSE_DOFS[:, None] - HEAVY_INVERSE_DOF) / HEAVY_INVERSE_DOF_SD) ** 2
    weights = np.exp(values.min() - values)
    weights /= weights.sum()
    inside = sum(
        w @ (2 * _cdf(QUANTILES / np.exp(LOG_SCALES)[:, None], inverse) - 1)
        for w, inverse in zip(weights, INVERSE_DOFS, strict=True)
    )
    wanted = np.interp(LEVELS, inside, QUANTILES)
    laws = np.array([_quantiles(inverse) for inverse in INVERSE_DOFS])
    best = int(np.abs(np.log(laws[:, 1] / laws[:, 0]) - math.log(wanted[1] / wanted[0])).argmin())
    return float(wanted[1] / laws[best, 1]), float(INVERSE_DOFS[best])


def _misfits(masses: FloatArray, sd: float) -> FloatArray:
    """Minus log likelihood of all laws looked at, (1/ν, scale)."""
    edges = np.append(CALIBRATION_EDGES, np.inf) / np.exp(LOG_SCALES)[:, None]
    shares = np.stack([2 * np.diff(_cdf(edges, inverse), axis=1) for inverse in INVERSE_DOFS])
    return np.asarray(((masses - shares) ** 2).sum(axis=2) / (2 * (sd * sd + MASS_VARIANCE)))


def _cdf(x: FloatArray, inverse: float) -> FloatArray:
    return np.asarray(norm.cdf(x) if inverse == 0 else student.cdf(x, 1 / inverse))


def _quantiles(inverse: float) -> FloatArray:
    at = (1 + np.array(LEVELS)) / 2
    return np.asarray(norm.ppf(at) if inverse == 0 else student.ppf(at, 1 / inverse))
