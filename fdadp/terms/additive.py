"""The additive term ``∫ F{X(s), s, t} ds``: a surface over the values of a curve and its domain."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fdadp._common.checks import numbers
from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import ExtrapolationWarning, InputError
from fdadp.functional.curves import Curves
from fdadp.functional.margins import Margin
from fdadp.functional.quadrature import quadrature_weights
from fdadp.terms._rows import FeatureMap
from fdadp.terms.base import Term
from fdadp.terms.quantiles import QuantileTransform

__all__ = ["AdditiveTerm"]


@dataclass(frozen=True)
class AdditiveTerm(Term):
    """``∫ F{X(s), s, t} ds`` with F a tensor product of splines over x and s, on known bases.

    Its coefficients are values ``F(x_l, s_l')`` at the points of the two bases, shape (K, kx, ks).

    Attributes
    ----------
    x, s : Margin
        Bases over the values of X and over its domain.
    grid : ndarray of shape (S,)
        That of the training curves.
    x_range : (float, float)
        Range of the training values.
    quadrature : str
        Rule for ∫ ds.
    period : float or None
        Length of a periodic domain.
    continuation : {"linear", "constant"}
        How F goes on beyond the range of x.
    transform : QuantileTransform or None
        From values to ranks, of which F is then a function.
    column : str
    """

    x: Margin
    s: Margin
    grid: FloatArray
    x_range: tuple[float, float]
    quadrature: str = "trapezoid"
    period: float | None = None
    continuation: Literal["linear", "constant"] = "linear"
    transform: QuantileTransform | None = None
    column: str = "X"

    @property
    def n_features(self) -> int:
        """Length of a feature row."""
        return self.x.basis.n_basis * self.s.basis.n_basis

    def weights(self, grid: FloatArray) -> FloatArray:
        """Quadrature weights on a grid; of a periodic domain the way from the last point to the first counts too."""
        weights = quadrature_weights(grid, self.quadrature)
        if self.period is not None and self.quadrature == "trapezoid":
            weights[[0, -1]] += (self.period - (grid[-1] - grid[0])) / 2
        return weights

    def features(self, grid: FloatArray) -> FeatureMap:
        """From curves on a grid to feature rows."""
        return FeatureMap(self.x.basis, self.s.basis, grid, self.weights(grid))

    def rows(self, x: Curves) -> FloatArray:
        """Feature rows ``∫ B_l(X(s)) B_l'(s) ds`` of complete curves, shape (n, q).

        Raises
        ------
        InputError
            Curves on another domain.

        Warns
        -----
        ExtrapolationWarning
            Some values lie outside the training range; says how many.
        """
        start, end = self.grid[0], self.grid[-1]
        length = end - start
        if abs(x.grid[0] - start) > 1e-6 * length or abs(x.grid[-1] - end) > 1e-6 * length:
            raise InputError(
                f"{self.column} must lie on the training domain [{start:g}, {end:g}], "
                f"got [{x.grid[0]:g}, {x.grid[-1]:g}]"
            )
        self._warn_outside(x)
        values = np.clip(x.values, *self.x_range) if self.continuation == "constant" else x.values
        return self.features(x.grid).rows(values if self.transform is None else self.transform(x))

    def _warn_outside(self, x: Curves) -> None:
        low, high = self.x_range
        if self.transform is None:
            outside = int(((x.values < low) | (x.values > high)).sum())
            where = f"the training range [{low:g}, {high:g}]"
        else:
            outside, where = self.transform.count_outside(x), "the training range at their s"
        if outside:
            linear = self.transform is None and self.continuation == "linear"
            warnings.warn(
                f"{outside} of {x.values.size} points of {self.column} lie outside {where}; the surface is continued "
                f"{'linearly' if linear else 'as a constant'} there",
                ExtrapolationWarning,
                stacklevel=7,
            )

    def to_features(self, coefficients: FloatArray) -> FloatArray:
        """B-spline coefficients (q, K) from values of F (K, kx, ks)."""
        raw = np.einsum("ab,kbc,dc->kad", self.x.to_raw, coefficients, self.s.to_raw)
        return np.asarray(raw.reshape(len(raw), -1).T)

    def centred(self, values: FloatArray, mean_x_basis: FloatArray, weights: FloatArray) -> FloatArray:
        """Take from F_k its mean over curves as a function of s, which is not identified.

        Parameters
        ----------
        values : ndarray of shape (K, kx, ks)
        mean_x_basis : ndarray of shape (S, kx)
            Mean of the B-splines of X(s) over the curves.
        weights : ndarray of shape (S,)
            Quadrature weights.

        Returns
        -------
        ndarray of shape (K, kx, ks)
        """
        mean_x = mean_x_basis @ self.x.to_raw
        design = self.s.basis.design(self.grid) @ self.s.to_raw  # (S, ks)
        means = np.einsum("jl,klm,jm->jk", mean_x, values, design)
        root = np.sqrt(np.abs(weights))[:, None]
        mean_surface = np.linalg.lstsq(design * root, means * root, rcond=None)[0].T
        return np.ascontiguousarray(values - mean_surface[:, None, :])

    def surface(self, coefficients: FloatArray, functions: FloatArray, x: ArrayLike, s: ArrayLike) -> FloatArray:
        """F on a product grid.

        Parameters
        ----------
        coefficients : ndarray of shape (K, kx, ks)
        functions : ndarray of shape (K, T)
            Response functions at points of t.
        x, s : array_like

        Returns
        -------
        ndarray of shape (len(x), len(s), T)

        Raises
        ------
        InputError
            `s` outside the training domain.
        """
        at_x, at_s = (np.atleast_1d(numbers(v, k)) for k, v in (("x", x), ("s", s)))
        if ((at_s < self.grid[0]) | (at_s > self.grid[-1])).any():
            raise InputError(
                f"s must lie within [{self.grid[0]:g}, {self.grid[-1]:g}], got {at_s.min():g} to {at_s.max():g}"
            )
        bs = self.s.basis.design(at_s) @ self.s.to_raw
        if self.transform is not None:  # another level of x at each s
            order = np.argsort(at_s)
            levels = np.empty((at_x.size, at_s.size))
            levels[:, order] = self.transform(Curves(np.repeat(at_x[:, None], at_s.size, 1), at_s[order]))
            bx = (self.x.basis.design(levels.ravel()) @ self.x.to_raw).reshape(*levels.shape, -1)
            return np.asarray(np.einsum("abl,bm,klm,kt->abt", bx, bs, coefficients, functions, optimize=True))
        bx = self.x.basis.design(at_x) @ self.x.to_raw
        return np.asarray(np.einsum("al,bm,klm,kt->abt", bx, bs, coefficients, functions, optimize=True))
