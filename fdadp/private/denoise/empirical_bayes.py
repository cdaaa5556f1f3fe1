"""Post-processing of noisy releases: empirical Bayes with known noise. Costs no privacy."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.linalg.lapack import dsygvd
from scipy.special import logsumexp, ndtr, ndtri, stdtr, stdtrit

from fdadp._common.typing import FloatArray, IntArray
from fdadp.rounds.posterior_means import gain

if TYPE_CHECKING:
    from fdadp.private.rows.pointwise_gradients import MeasuredPairs

# Shrinkage by known noise: what a noisy release says once the public prior has had its say. Costs no privacy.


TINY = 1e-300
"""Keeps 0/0 from arising."""
LOG_SPREADS, SHIFTS = np.linspace(-4.0, 1.5, 111), np.linspace(-3.0, 3.0, 241)
"""Where spreads and levels are looked for, over the root mean square; the first in logarithms."""
LEVEL_SCALE, LEVEL_DOF = 0.3, 2.0
"""Prior of a level over the spread: Student's t."""


def shrunk_shift(shift: float, sd: float, size: float, reach: float) -> float:
    """Posterior mean of a shift with a prior of sd `size` about 0, within `reach` sizes of it."""
    return float(np.clip(shift * size**2 / (size**2 + sd**2), -reach * size, reach * size))


def shrunk_scale(value: float, error: float, guess: float, prior_variance: float) -> float:
    """Posterior of a scale with a log-normal prior about a guess; `error` is the sd of the noise in its logarithm."""
    return float(guess * (value / guess) ** (prior_variance / (prior_variance + error**2)))


def level_and_spread(
    rms: float, error: float, level: float, sd: float, guess: float, prior_variance: float
) -> tuple[float, float]:
    """Posterior mean of a level, and of the spread about it on a log scale, from releases with Laplace noise.

    The root mean square is that of level and spread together, so that a level which noise put far out is seen to be
    impossible, instead of leaving no spread at all. Sums over a grid; the prior of the spread is log-normal, that of
    the level over the spread Student's t, for a public range is about its middle or else anywhere.

    Parameters
    ----------
    rms, level : float
        As released.
    error, sd : float
        Of the noise in the logarithm of the one, and in the other.
    guess, prior_variance : float
        Of the spread: where it is guessed to be, and the variance of its logarithm about that.
    """
    spread = rms * np.exp(LOG_SPREADS)[:, None]
    at = rms * SHIFTS
    log_density = -math.sqrt(2) * np.abs(np.log(np.hypot(at, spread) / rms)) / error
    log_density = log_density - math.sqrt(2) * np.abs(at - level) / sd
    log_density = log_density - np.log(spread / guess) ** 2 / (2 * prior_variance)
    t = at / (LEVEL_SCALE * spread)
    log_density = log_density - (LEVEL_DOF + 1) / 2 * np.log1p(t * t / LEVEL_DOF) - np.log(spread)
    density = np.exp(log_density - log_density.max())
    density /= density.sum()
    return float((density * at).sum()), float(rms * np.exp((density * LOG_SPREADS[:, None]).sum()))


def shrunk_coefficients(noisy: FloatArray, sd: float, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Coefficients, and their variances, whose prior variances are in proportion to public shares.

    The size of the prior is what the squares of the coefficients are above their noise.

    Parameters
    ----------
    noisy, shares : ndarray of shape (m,)
    sd : float
        Of the noise in each.
    """
    variance = sd**2
    of_noise = gain(shares * max(float(noisy @ noisy) - noisy.size * variance, 0.0), variance)
    return noisy * of_noise, variance * of_noise


# The law of standardised residuals, from a noisy histogram and what is believed in public; no privacy is spent.


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
    return np.asarray(ndtr(x) if inverse == 0 else stdtr(1 / inverse, x))


def _quantiles(inverse: float) -> FloatArray:
    at = (1 + np.array(LEVELS)) / 2
    return np.asarray(ndtri(at) if inverse == 0 else stdtrit(1 / inverse, at))


Measurement = tuple[FloatArray, FloatArray, FloatArray]
"""A gradient g (D, K) measured at Θ (D, K) with noise variances (D, K)."""


MOMENT_VARIANCE, LEAST_EIGENVALUE = 0.03, 0.1
"""Prior variance of an entry of the features' second moment about the identity, and its least eigenvalue."""
SIZE_STEPS = np.linspace(-3, 3, 31)
"""Where the logarithm of the size of signals is looked at, in sds of its prior."""
SIZES = 0.8 * SIZE_STEPS
"""It is there about what is expected."""
SMALLER_SIZES = np.where(SIZE_STEPS < 0, 2.4, 0.8) * SIZE_STEPS
"""The same where signals may be far smaller: of chances, which may hardly differ between persons."""
SAMPLING = 0.6
"""Variance of residuals over that of the response, as expected, for the sampling error."""
PROFILE_LENGTH, LEVEL_VARIANCE = 0.2, 4.0
"""Correlation length of the logarithm of the spread of residuals in time; prior variance of its level."""
PROFILE_SIZES = (0.0, 0.1, 0.2, 0.4, 0.8)
"""Prior sizes of the logarithm of the spread of residuals, as a function of time."""
IMPORTANCES = (1e-4, 0.15, 6.0)
"""Factors on what one term is taken to explain, between which the measurements decide: the first leaves it out."""
SPECTRA = (0.5, 0.8)
"""Powers of the prior shares of features, between which the measurements decide: how fast signals fall off."""
WIDER_SPECTRA = (0.3, *SPECTRA)
"""The same of standard errors: rougher effects than predictions count on."""

Posterior = tuple[FloatArray, FloatArray, float]
"""Mean (d,), covariance (d, d) and effective degrees of freedom: how many directions the measurement determines."""


def posterior(
    y: FloatArray,
    v: FloatArray,
    a: FloatArray,
    noise: float | FloatArray,
    shares: FloatArray,
    energy: float,
    sizes: FloatArray = SIZES,
) -> tuple[Posterior, float]:
    """Posterior of θ from ``y = A θ + N(0, diag(v) + noise A)``, ``θ ~ N(0, τ² diag(shares))``.

    τ² is averaged over, under ``log τ² ~ N(log energy, 0.8²)`` (or as `sizes` say): where noise hides the signal its
    likelihood has no sharp maximum, and often one at 0.

    Parameters
    ----------
    noise : float or ndarray of shape (d, d)
        Of the sampling error, or the whole covariance of that.
    energy : float
        Public or released guess of τ².
    sizes : ndarray of shape (31,)
        Quantiles of log(τ²/energy) at :data:`SIZE_STEPS`.

    Returns
    -------
    Posterior
    evidence : float
        Logarithm of the marginal likelihood, up to a constant that does not depend on shares.
    """
    error = np.diag(v) + (noise if isinstance(noise, np.ndarray) else a * noise)
    prior = a * shares
    signal = prior @ a
    values, axes, failed = dsygvd((signal + signal.T) / 2, (error + error.T) / 2)  # of small matrices; eigh does more
    if failed:
        raise np.linalg.LinAlgError("the covariance of the noise is not positive definite")
    values, seen = np.maximum(values, 0), axes.T @ y
    steps = SIZE_STEPS
    tau2 = energy * np.exp(sizes)[:, None]
    spread = 1 + tau2 * values
    log_density = -0.5 * (np.log(spread) + seen**2 / spread).sum(axis=1) - 0.5 * steps**2
    peak = log_density.max()  # logsumexp by hand: SciPy's costs more than all the rest of this function
    evidence = float(peak + np.log(np.exp(log_density - peak).sum()))
    density = np.exp(log_density - evidence)
    back = prior.T @ axes
    gains = tau2 / spread
    gain = density @ gains
    # Covariance: the mean of those given τ², and that of the means, which differ.
    away = back @ ((gains - gain) * seen * np.sqrt(density)[:, None]).T
    covariance = np.diag(density @ tau2 * shares) - (back * (density @ (tau2 * gains))) @ back.T + away @ away.T
    return (back @ (gain * seen), covariance, float(gain @ values)), evidence


def posteriors(
    y: FloatArray,
    v: FloatArray,
    a: FloatArray,
    active: npt.NDArray[np.bool_],
    feature_shares: FloatArray,
    energy: FloatArray,
    n: float,
    owner: IntArray | None = None,
    *,
    sampling: FloatArray | None = None,
    residual: FloatArray | None = None,
    slopes: FloatArray | None = None,
    signal: float = 1.0,
    spectra: tuple[float, ...] = SPECTRA,
    sizes: FloatArray = SIZES,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Posterior of all outputs; each has its own size of signal, all share fall-off of the spectrum and importances.

    The evidence averages over two fall-offs, and, where there are several terms, over each of them in turn being less
    or more important than the prior says (:data:`IMPORTANCES`), or out of the model.

    Parameters
    ----------
    y, v : ndarray of shape (D, K)
        Measurement of ``A Θ`` and the variances of its noise.
    a : ndarray of shape (D, D)
    active : bool ndarray of shape (D, K)
        Pairs of feature and output that are measured at all.
    feature_shares : ndarray of shape (D - 1,)
        Prior shares of the features but the first, the constant, which counts as the largest.
    energy : ndarray of shape (K,)
        Expected energy of each output.
    n : float
        Number of persons, for the sampling error.
    owner : ndarray of shape (D - 1,), optional
        Number of the term that each feature is of; default one term.
    sampling : ndarray of shape (D, D), optional
        Covariance of the sampling error; default that of so many persons with residuals as expected.
    residual : ndarray of shape (K,), optional
        Variances of residuals, where these are known.
    slopes : ndarray of shape (K,), optional
        What A is of each output, relative to `a`.
    signal : float
        Energy of what is explained over that of the output, as expected.
    spectra : tuple of float
        Powers of the shares between which the measurements decide.
    sizes : ndarray of shape (31,)
        As of :func:`posterior`.

    Returns
    -------
    mean : ndarray of shape (D, K)
    covariance : ndarray of shape (K, D, D)
    edf : ndarray of shape (K,)
    """
    d, k = y.shape
    beliefs = list(_beliefs(feature_shares, owner, spectra))
    m = len(beliefs)
    means, covariances, edf, evidence = np.zeros((m, d, k)), np.zeros((m, k, d, d)), np.zeros((m, k)), np.zeros(m)
    for j in np.flatnonzero(active.any(axis=0)):
        on = active[:, j]
        at = np.ix_(on, on)
        left = SAMPLING * energy[j] if residual is None else residual[j]
        error = left / n if sampling is None else sampling[at]
        slope = 1.0 if slopes is None else slopes[j]
        own = (slope * y[on, j], v[on, j], slope * a[at], error)
        for i, shares in enumerate(beliefs):
            part, log = posterior(*own, shares[on] / shares.sum(), signal * energy[j], sizes)
            means[i, on, j], covariances[i, j][at], edf[i, j] = part
            evidence[i] += log
    return _averaged(evidence, means, covariances, edf)


def posterior_of_pairs(
    y: FloatArray,
    v: FloatArray,
    a: FloatArray,
    pairs: MeasuredPairs,
    feature_shares: FloatArray,
    energy: FloatArray,
    n: float,
    owner: IntArray,
    *,
    residual: float | None = None,
    signal: float = 1.0,
    spectra: tuple[float, ...] = SPECTRA,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The same of pairs (feature, output) which A mixes: one output of P features, with one size of signal.

    Parameters
    ----------
    y, v : ndarray of shape (P, 1)
    a : ndarray of shape (P, P)
    pairs : MeasuredPairs
    feature_shares, energy, n, owner, signal, spectra
        As of :func:`posteriors`.
    residual : float, optional
        Variance of residuals in all outputs together, where that is known.

    Returns
    -------
    mean : ndarray of shape (P, 1)
    covariance : ndarray of shape (1, P, P)
    edf : ndarray of shape (1,)
    """
    total, feature, output = float(energy.sum()), pairs.feature, pairs.output
    sizes = np.sqrt(pairs.shares)
    left = SAMPLING * total if residual is None else residual
    found = [
        posterior(
            y[:, 0],
            v[:, 0],
            a,
            left / n * np.outer(sizes, sizes) * a,
            shares[feature] / shares.sum() * energy[output] / total,
            signal * total,
        )
        for shares in _beliefs(feature_shares, owner, spectra)
    ]
    means = np.stack([one[0] for one, _ in found])[:, :, None]
    covariances = np.stack([one[1] for one, _ in found])[:, None]
    edf = np.array([[one[2]] for one, _ in found])
    return _averaged(np.array([log for _, log in found]), means, covariances, edf)


def _beliefs(feature_shares: FloatArray, owner: IntArray | None, spectra: tuple[float, ...]) -> Iterator[FloatArray]:
    """Prior shares of all features, the constant first, between which the measurements decide; each (D,).

    Of each fall-off those of the prior, then each term in turn as more or less important.
    """
    kinds = [np.ones(feature_shares.size)]
    if owner is not None and owner.size and owner.max() > 0:
        kinds += [np.where(owner == i, factor, 1.0) for i in np.unique(owner) for factor in IMPORTANCES]
    for power, importance in product(spectra, kinds):
        shares = feature_shares**power * importance
        yield np.concatenate(([shares.max()], shares))


def _averaged(
    evidence: FloatArray, means: FloatArray, covariances: FloatArray, edf: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Posterior of a mixture, from the evidence (m,) of its parts, means (m, D, K), covariances (m, K, D, D), edf."""
    weight = np.exp(evidence - logsumexp(evidence))
    mean = np.tensordot(weight, means, 1)
    away = means - mean
    between = np.einsum("i,idk,iek->kde", weight, away, away)
    return mean, np.tensordot(weight, covariances, 1) + between, weight @ edf


def combine(
    measurements: list[Measurement], at: FloatArray, a: FloatArray, a_variance: float | FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Inverse-variance mean of the noisy measurements ``g_t + A Θ_t`` of ``A Θ*``.

    A is known with variance `a_variance` per entry, one number or (D, D), which counts against rounds far from the
    point `at`.

    Returns
    -------
    mean, variance : ndarray of shape (D, K)
    """
    total = precision = np.zeros_like(at)
    for gradient, theta, variance in measurements:
        weight = 1 / (variance + _unknown(a_variance, at - theta))
        total = total + (gradient + a @ theta) * weight
        precision = precision + weight
    precision = np.maximum(precision, TINY)
    return total / precision, 1 / precision


def _unknown(a_variance: float | FloatArray, step: FloatArray) -> FloatArray:
    """Variance of ``A step``, step (D, K), for entries of A of these variances."""
    if np.ndim(a_variance) == 0:
        return np.asarray(a_variance * (step**2).sum(axis=0))
    return np.asarray(a_variance @ step**2)


# The second moment of features, from differences of released gradients. Costs no privacy.


BENDS = 0.1
"""Prior variance of what an entry of A is off along a step, for gradients bend, over that of the entry."""


def secant_update(
    a: FloatArray,
    variance: float | FloatArray,
    measurements: list[Measurement],
    active: npt.NDArray[np.bool_],
    *,
    local: bool = False,
    least: float = LEAST_EIGENVALUE,
) -> FloatArray:
    """Second moment of the features, learned from differences of released gradients.

    ``g_0 - g_t = A (Θ_t - Θ_0) + known noise``: a Gaussian update of each row of ``A ~ N(a, variance)``, entries
    independent, then made symmetric, with eigenvalues of at least `least`. No budget is spent.

    Gradients are clipped, so that A is not the same everywhere: where a step was far too long nearly all persons are
    clipped, and the gradient is much smaller than it should be. `local` takes differences to the last gradient, the
    longer a step the less is believed of it, and knows that they have the noise of the last in common
    (docs/theory/dp-aff.md#rounds).

    Parameters
    ----------
    a : ndarray of shape (D, D)
    variance : float or ndarray of shape (D, D)
        Of all entries, or of each.
    measurements : list of Measurement
    active : bool ndarray of shape (D, K)
        Pairs of feature and output that are measured at all.
    local : bool
        About the last gradient, not the first.
    least : float
    """
    if len(measurements) == 1:
        return a
    at = -1 if local else 0
    centre, origin, centre_variance = measurements[at]
    others = measurements[:-1] if local else measurements[1:]
    updated, m = a.copy(), len(others)
    for on in np.unique(active, axis=0):
        rows = np.flatnonzero((active == on).all(axis=1))
        here = np.ix_(rows, on)
        steps = np.stack([(theta - origin)[:, on].T for _, theta, _ in others])
        changes = np.stack([(centre - g)[here] for g, _, _ in others], axis=1)
        seen = changes - (a[rows, None, None] @ steps.transpose(0, 2, 1))[:, :, 0]
        steps = steps.reshape(-1, len(a))
        spread = steps * (variance[rows, None] if isinstance(variance, np.ndarray) else variance)
        own, common = np.hstack([v[here] for _, _, v in others]), np.tile(centre_variance[here], m)
        if local:
            own += BENDS * (spread * steps).sum(axis=-1)
        alone = np.eye(len(steps))
        noise = alone * own[:, None] + (np.tile(np.eye(on.sum()), (m, m)) if local else alone) * common[:, None]
        solved = np.linalg.solve(spread @ steps.T + noise, seen.reshape(len(rows), -1, 1))
        updated[rows] += (spread.swapaxes(-1, -2) @ solved)[:, :, 0]
    return steady((updated + updated.T) / 2, least)


def steady(moment: FloatArray, least: float = LEAST_EIGENVALUE) -> FloatArray:
    """Symmetric estimate of the second moment of white features, with eigenvalues of at least `least`."""
    values, vectors = np.linalg.eigh(moment)
    return np.asarray((vectors * np.maximum(values, least)) @ vectors.T)


def profile(seen: FloatArray, sd: float, averages: FloatArray, t: FloatArray) -> FloatArray:
    """Smooth curve whose averages were measured with known noise: posterior mean under a Gaussian process.

    A level of its own, free; about it curves of correlation length 0.2, of a size between 0 and `PROFILE_SIZES`'s
    largest over which the evidence averages. Where the noise hides the curve what is left is its level.

    Parameters
    ----------
    seen : ndarray of shape (B,)
    sd : float
        Of the noise in each.
    averages : ndarray of shape (B, T)
        Rows sum to one.
    t : ndarray of shape (T,)
        Grid on [0, 1].

    Returns
    -------
    ndarray of shape (T,)
    """
    kernel = np.exp(-0.5 * ((t[:, None] - t) / PROFILE_LENGTH) ** 2)
    curves, evidence = [], []
    for size in PROFILE_SIZES:
        covariance = size**2 * kernel + LEVEL_VARIANCE
        across = covariance @ averages.T
        inside = averages @ across + sd**2 * np.eye(seen.size)
        solved = np.linalg.solve(inside, seen)
        curves.append(across @ solved)
        evidence.append(-0.5 * (seen @ solved + np.linalg.slogdet(inside)[1]))
    weights = np.exp(np.array(evidence) - logsumexp(evidence))
    return np.asarray(weights @ np.stack(curves))
