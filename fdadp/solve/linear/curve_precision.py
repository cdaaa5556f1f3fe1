"""Inverse of a covariance that is smooth plus white, of curves that need not be observed at the same points."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fdadp._common.typing import FloatArray, IntArray


@dataclass(frozen=True)
class CurvePrecision:
    """For each curve ``W = v D^½ (ΦΛΦ' + σ² I)⁻¹ D^½`` at its points, D its weights, v the mean variance.

    By Woodbury's identity that is ``(v / σ²) (D - D^½ Φ M Φ' D^½)`` with ``M = (σ² Λ⁻¹ + Φ'Φ)⁻¹``, K x K for K smooth
    components: no matrix of a curve's points is ever built.

    Attributes
    ----------
    record : ndarray of shape (N,)
        Of each observation; does not decrease. Curves on a grid have all its points, of weight 0 where not observed.
    loadings : ndarray of shape (N, K)
        Smooth components Φ; 0 where the weight is 0.
    weights : ndarray of shape (N,)
    sizes : ndarray of shape (K,)
        Variances Λ of the components.
    white : float
        Variance σ² of an observation of weight 1 about its curve's smooth part.
    variance : float
        v.
    n : int
        Number of records.
    """

    record: IntArray
    loadings: FloatArray
    weights: FloatArray
    sizes: FloatArray
    white: float
    variance: float
    n: int

    @property
    def factor(self) -> float:
        """``v / σ²``."""
        return self.variance / self.white

    @cached_property
    def weighted(self) -> FloatArray:
        """``D^½ Φ``, shape (N, K)."""
        return self.loadings * np.sqrt(self.weights)[:, None]

    @cached_property
    def inner(self) -> FloatArray:
        """M of each record, shape (n, K, K)."""
        squares = self.summed(self.loadings[:, :, None] * self.loadings[:, None, :])
        return np.asarray(np.linalg.inv(squares + np.diag(self.white / self.sizes)))

    @cached_property
    def log_det(self) -> float:
        """Logarithm of the determinants of all W, over what was observed."""
        seen = self.weights > 0
        squares = self.summed(self.loadings[:, :, None] * self.loadings[:, None, :])
        inside = np.eye(len(self.sizes)) + squares * (self.sizes / self.white)
        of_smooth = np.linalg.slogdet(inside)[1].sum() if len(self.sizes) else 0.0
        return float(seen.sum() * np.log(self.factor) + np.log(self.weights[seen]).sum() - of_smooth)

    def times(self, values: FloatArray, which: IntArray | None = None) -> FloatArray:
        """W times columns of values at the observations, shape (N, c).

        Parameters
        ----------
        values : ndarray of shape (N, c)
        which : ndarray of int, optional
            Numbers of the observations, where they are not all: all those of some records, in order.
        """
        every = slice(None) if which is None else which
        root, weights, record = self.weighted[every], self.weights[every], self.record[every]
        out = values * weights[:, None]
        if len(self.sizes) and len(record):
            first = np.flatnonzero(np.r_[True, record[1:] != record[:-1]])
            inside = np.add.reduceat(root[:, :, None] * values[:, None, :], first, axis=0)
            pulled = np.repeat(self.inner[record[first]] @ inside, np.diff(np.r_[first, len(record)]), axis=0)
            out -= (root[:, None, :] @ pulled)[:, 0]
        return np.asarray(self.factor * out)

    def moments(self, y: FloatArray) -> FloatArray:
        """``Φ' D^½ y`` of each record, shape (n, K)."""
        return self.summed(self.weighted * y[:, None])

    def summed(self, values: FloatArray) -> FloatArray:
        """Sums over the observations of each record, shape (n, ...), of values (N, ...)."""
        out = np.zeros((self.n, *values.shape[1:]))
        first = np.flatnonzero(np.r_[True, self.record[1:] != self.record[:-1]])
        out[self.record[first]] = np.add.reduceat(values, first, axis=0)
        return out
