"""Tests of single terms, and of several terms at once, from the covariance of all coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fdadp._common.typing import FloatArray, IntArray
from fdadp.solve.fit.additive_fit import AdditiveFit

SLACK = 0.05
"""Effective degrees of freedom above a whole number that do not count as one more."""

CLUSTERS_PER_DIRECTION = 15
"""Of a test by clusters, at least, beyond the first :data:`LEAST` directions."""

LEAST = 3
"""Directions in which a term is tested by clusters, however few they are."""

DIRECTIONS = 12
"""In which it is tested, however smooth its estimate is, where clusters are enough; more, where it is rougher."""


@dataclass(frozen=True)
class TermTest:
    """A Wald test of rank `df`.

    Attributes
    ----------
    statistic : float
        ``β'V⁻β`` on `df` directions.
    df : int
    p : float
        By F, with the degrees of freedom of the covariance.
    """

    statistic: float
    df: int
    p: float


def wald(gram: FloatArray, coefficients: FloatArray, covariance: FloatArray, edf: float, left: float) -> TermTest:
    """Test that a term's values at the training rows are all 0, where errors are independent.

    Parameters
    ----------
    gram : ndarray of shape (p, p)
        Products of the term's columns of the long form.
    coefficients : ndarray of shape (p,)
    covariance : ndarray of shape (p, p)
    edf : float
        Effective degrees of freedom of the term: the rank of the test, rounded up.
    left : float
        Degrees of freedom of the scale of the covariance: observations less those used.

    References
    ----------
    Wood (2013), On p-values for smooth components of an extended generalized additive model,
    doi:10.1093/biomet/ass048, with whole ranks.
    """
    from scipy.stats import f

    values, vectors = np.linalg.eigh(gram)
    root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    spread, directions = np.linalg.eigh(root @ covariance @ root.T)
    spread, directions = spread[::-1], directions[:, ::-1]
    rank = int((spread > 1e-10 * max(float(spread[0]), 0.0)).sum())
    r = min(max(int(np.ceil(edf - SLACK)), 1), rank)
    if not r:
        return TermTest(0.0, 0, 1.0)
    z = directions[:, :r].T @ (root @ coefficients)
    statistic = float((z**2 / spread[:r]).sum())
    return TermTest(statistic, r, float(f.sf(statistic / r, r, left)))


def wald_by_clusters(fit: AdditiveFit, which: IntArray, sampling: FloatArray, n_clusters: int) -> TermTest:
    """Test that coefficients are all 0, where their covariance is estimated from clusters.

    Parameters
    ----------
    fit : AdditiveFit
    which : ndarray of int
        The coefficients, of one term or several.
    sampling : ndarray of shape (p, p)
        Covariance of all coefficients at these smoothing parameters, from clusters left out.
    n_clusters : int

    Notes
    -----
    Tested are least squares without the penalty, ``U = (D*'D* + S) β``, D* the columns given all others, in the
    directions in which functions of this size are smoothest: :data:`DIRECTIONS` of them, or as many as the effective
    degrees of freedom where these are more, but one for :data:`CLUSTERS_PER_DIRECTION` clusters at most. So neither the
    directions nor, where clusters are few, their number are chosen by the responses, and no estimate is drawn towards
    0: with as many directions as smoothing leaves to correlated errors, in the order of their variance, tests reject a
    null hypothesis in .00 to .15, and have less power (docs/decisions/0032-tests-of-wide-terms.md).

    References
    ----------
    Hotelling (1931), doi:10.1214/aoms/1177732979; Zhang & Lin (2003), Hypothesis testing in semiparametric additive
    mixed models, doi:10.1093/biostatistics/4.1.57, on scores instead of smoothed estimates.
    """
    from scipy.stats import f

    which = which[fit.identified[which]]
    heavy = (fit.smoothing_parameters @ fit.form.stacked_penalties)[which]
    own = _given_others(fit, which)
    if not which.size or not own.any():
        return TermTest(0.0, 0, 1.0)
    directions = _smoothest(fit, which, own)
    edf = int(np.ceil(float(fit.edf[which].sum()) - SLACK))
    most = min(max(n_clusters // CLUSTERS_PER_DIRECTION, LEAST), max(n_clusters - 2, 1))
    contrasts = directions[:, : min(max(edf, DIRECTIONS), most)].T @ (own + np.diag(heavy))
    z = contrasts @ fit.coefficients[which]
    values, vectors = np.linalg.eigh(contrasts @ sampling[np.ix_(which, which)] @ contrasts.T)
    kept = values > 1e-10 * max(float(values[-1]), 0.0)
    r, left = int(kept.sum()), n_clusters - 1
    if not r:
        return TermTest(0.0, 0, 1.0)
    statistic = float(((vectors[:, kept].T @ z) ** 2 / values[kept]).sum())
    below = max(left - r + 1.0, 1.0)
    return TermTest(statistic, r, float(f.sf(statistic * below / (left * r), r, below)))


def _given_others(fit: AdditiveFit, which: IntArray) -> FloatArray:
    """Products of columns of which the penalised part that all others explain is taken away."""
    others = np.setdiff1d(np.flatnonzero(fit.identified), which)
    a = fit.gram + np.diag(fit.smoothing_parameters @ fit.form.stacked_penalties)
    size = np.sqrt(np.maximum(a.diagonal()[others], 1e-300))
    rest, between = a[np.ix_(others, others)] / np.outer(size, size), a[np.ix_(others, which)] / size[:, None]
    own = fit.gram[np.ix_(which, which)] - between.T @ np.linalg.solve(rest, between)
    return np.asarray((own + own.T) / 2)


def _smoothest(fit: AdditiveFit, which: IntArray, own: FloatArray) -> FloatArray:
    """Directions of coefficients, in columns: of functions of one size first those that all penalties mind least.

    A penalty weighs as much as the columns of its term do, whatever its smoothing parameter.
    """
    rough = np.zeros(len(which))
    for place, penalties in zip(fit.form.slices, fit.form.penalties, strict=True):
        here = (which >= place.start) & (which < place.stop)
        d = penalties[:, which[here] - place.start]
        d = d[d.any(axis=1)]
        rough[here] += (d / d.sum(axis=1, keepdims=True)).sum(axis=0) * own.diagonal()[here].sum() / max(len(d), 1)
    size = np.sqrt(np.maximum(own.diagonal() + rough, 1e-300))
    alone = own / np.outer(size, size)
    root = np.linalg.cholesky(alone + np.diag(rough / size**2 + 1e-10))
    half = np.linalg.solve(root, np.linalg.solve(root, alone).T)
    smoothness, turn = np.linalg.eigh((half + half.T) / 2)
    seen = turn[:, smoothness > 1e-6][:, ::-1]
    return np.asarray(np.linalg.solve(root.T, seen) / size[:, None])


def largest_ratio(
    rows: FloatArray, covariance: FloatArray, level: float, left: float, seed: int, draws: int = 4000
) -> float:
    """Quantile of ``max |row'(b - β)| / se(row)`` over all rows: the half-width of simultaneous bands in se.

    Parameters
    ----------
    rows : ndarray of shape (m, p)
    covariance : ndarray of shape (p, p)
        Of the coefficients.
    level : float
    left : float
        Degrees of freedom of the variance at each point.
    seed : int
    draws : int

    Notes
    -----
    The quantile z of Gaussian draws, and from it that of Student's t with the same tail. So variances at two points
    err by themselves, as those that different clusters say do: with one error for all points (multivariate t) bands
    are too narrow where the ends of a covariate belong to few clusters each
    (docs/decisions/0038-bands-of-few-curves.md).

    References
    ----------
    Ruppert, Wand & Carroll (2003), Semiparametric Regression, section 6.5, doi:10.1017/CBO9780511755453; Westfall &
    Young (1993), Resampling-Based Multiple Testing, on equal tails at points of unlike laws; Bell & McCaffrey (2002)
    and Satterthwaite (1946), doi:10.2307/3002019, on t of such variances.
    """
    from scipy.stats import norm, t

    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    spread = rows @ root
    se = np.sqrt(np.einsum("ij,ij->i", spread, spread))
    spread = spread[se > 1e-12 * max(float(se.max(initial=0.0)), 1e-300)]
    if not len(spread):
        return 0.0
    spread = spread / np.sqrt(np.einsum("ij,ij->i", spread, spread))[:, None]
    # Of many rows, their own principal directions are far fewer.
    _, size, directions = np.linalg.svd(spread.T @ spread)
    kept = size > 1e-10 * size[0]
    spread = spread @ directions[kept].T
    rng = np.random.default_rng(seed)
    largest = np.empty(draws)
    for start in range(0, draws, 500):
        normal = rng.standard_normal((min(500, draws - start), spread.shape[1]))
        largest[start : start + len(normal)] = np.abs(normal @ spread.T).max(axis=1)
    widest = float(np.quantile(largest, level))
    return float(t.isf(norm.sf(widest), left)) if np.isfinite(left) else widest


# Concurvity: how far one term of a model can be written by the others, as collinearity of columns.


MEASURES = ("worst", "observed", "estimate")

NOT_THERE = 1e-10
"""Directions of less than this share of the largest, with columns of length 1, are taken as rounding."""


def concurvity(
    gram: FloatArray, coefficients: FloatArray, term: IntArray, others: Sequence[IntArray]
) -> list[tuple[float, float, float]]:
    """How much of a term lies in the span of others, from the Gram matrix of all columns.

    Parameters
    ----------
    gram : ndarray of shape (p, p)
    coefficients : ndarray of shape (p,)
    term : ndarray of shape (p_j,), int
        Numbers of its columns.
    others : sequence of ndarray of int
        Of what it may be written by, one set of columns a result.

    Returns
    -------
    list of (worst, observed, estimate)
        All between 0, nothing in common, and 1, not identified. With P the projection on the span of the others and X
        the term's columns: the largest ``|P X b|² / |X b|²``, that of the estimate b, and ``|P X|² / |X|²``, which
        depends on the coordinates of the term.

    References
    ----------
    mgcv's ``concurvity``; Wood (2017), Generalized Additive Models, section 5.6.3, doi:10.1201/9781315370279.
    """
    own = gram[np.ix_(term, term)]
    root = _inverse_root(own)
    b = coefficients[term]
    length, total = float(b @ own @ b), float(np.trace(own))
    found = []
    for columns in others:
        cross = _inverse_root(gram[np.ix_(columns, columns)]).T @ gram[np.ix_(columns, term)]
        shared = cross.T @ cross  # X'PX
        worst = float(np.linalg.norm(cross @ root, 2) ** 2) if root.size and cross.size else 0.0
        observed = float(b @ shared @ b) / length if length > 0 else np.nan
        estimate = float(np.trace(shared)) / total if total > 0 else np.nan
        found.append((min(worst, 1.0), min(observed, 1.0), min(estimate, 1.0)))
    return found


def _inverse_root(gram: FloatArray) -> FloatArray:
    """R of shape (p, r) with ``R' G R = I`` on what is there."""
    scale = np.sqrt(np.diag(gram))
    scale = np.where(scale > 0, 1 / np.where(scale > 0, scale, 1.0), 0.0)
    values, vectors = np.linalg.eigh(gram * np.outer(scale, scale))
    there = values > NOT_THERE * max(float(values[-1]), 0.0) if values.size else np.zeros(0, dtype=bool)
    return np.asarray(scale[:, None] * vectors[:, there] / np.sqrt(values[there]))
