"""Tests of single terms, and of several terms at once, from the covariance of all coefficients."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fdadp._common.typing import FloatArray

__all__ = ["TermTest", "largest_ratio", "wald"]

SLACK = 0.05
"""Effective degrees of freedom above a whole number that do not count as one more."""


@dataclass(frozen=True)
class TermTest:
    """A Wald test of rank `df`.

    Attributes
    ----------
    statistic : float
        ``β'V⁻β`` on the `df` directions in which the term's values vary most by chance.
    df : int
    p : float
        By F with `df` and the degrees of freedom of the covariance.
    """

    statistic: float
    df: int
    p: float


def wald(
    gram: FloatArray, coefficients: FloatArray, covariance: FloatArray, edf: float, left: float, *, clustered: bool
) -> TermTest:
    """Test that a term's values at the training rows are all 0.

    Parameters
    ----------
    gram : ndarray of shape (p, p)
        Products of the term's columns of the long form.
    coefficients : ndarray of shape (p,)
    covariance : ndarray of shape (p, p)
    edf : float
        Effective degrees of freedom of the term: the rank of the test, rounded up.
    left : float
        Degrees of freedom of the covariance: observations less those used, or clusters less one.
    clustered : bool
        The covariance is estimated from clusters, as Hotelling's is; else it is known up to a scale.

    References
    ----------
    Wood (2013), On p-values for smooth components of an extended generalized additive model,
    doi:10.1093/biomet/ass048, with whole ranks; Hotelling (1931), doi:10.1214/aoms/1177732979.
    """
    from scipy.stats import f

    values, vectors = np.linalg.eigh(gram)
    root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    spread, directions = np.linalg.eigh(root @ covariance @ root.T)
    spread, directions = spread[::-1], directions[:, ::-1]
    rank = int((spread > 1e-10 * max(float(spread[0]), 0.0)).sum())
    r = min(max(int(np.ceil(edf - SLACK)), 1), rank, max(int(left) - 1, 1) if clustered else rank)
    if not r:
        return TermTest(0.0, 0, 1.0)
    z = directions[:, :r].T @ (root @ coefficients)
    statistic = float((z**2 / spread[:r]).sum())
    if not clustered:
        return TermTest(statistic, r, float(f.sf(statistic / r, r, left)))
    # Hotelling's T² with `left` degrees of freedom.
    below = max(left - r + 1, 1.0)
    return TermTest(statistic, r, float(f.sf(statistic * below / (left * r), r, below)))


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
        Degrees of freedom of the covariance; draws are of multivariate t.
    seed : int
    draws : int

    References
    ----------
    Ruppert, Wand & Carroll (2003), Semiparametric Regression, section 6.5, doi:10.1017/CBO9780511755453.
    """
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
    if np.isfinite(left):
        largest /= np.sqrt(rng.chisquare(left, draws) / left)
    return float(np.quantile(largest, level))
