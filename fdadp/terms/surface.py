"""The surface F of the additive term ``∫ F{X(s), s, t} ds``, as splines over the values of a curve and its domain."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from fdadp._common.checks import numbers
from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import ExtrapolationWarning, InputError
from fdadp.functional.curves import Curves, refuse_other_domain
from fdadp.functional.margins import Margin, TensorProduct
from fdadp.functional.quadrature import quadrature_weights
from fdadp.terms._rows import FeatureMap
from fdadp.terms.quantiles import QuantileTransform

__all__ = ["AdditiveTerm"]


@dataclass(frozen=True)
class AdditiveTerm:
    """``∫ F{X(s), s, t} ds`` with F a tensor product of splines over x and s, on known bases.

    Its coefficients are values ``F(x_l, s_l')`` at the points of the two bases, shape (K, kx, ks). It is used in this
    order: :meth:`add_to` for each block of training curves, :meth:`learned` when all were seen; then `rotation` and
    `penalties` say what is estimated and how it is smoothed, :meth:`published` turns the estimates into coefficients
    for users, and :meth:`rows` with :meth:`to_features` predict.

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
    row_norm : float
        Scales the penalties as mgcv does (:class:`~fdadp.functional.margins.TensorProduct`); from the training curves.
    mean_x_basis : ndarray of shape (S, kx), or None
        Mean of the B-splines of X(s) over the training curves, about which F is centred.
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
    row_norm: float = 1.0
    mean_x_basis: FloatArray | None = None

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
        refuse_other_domain(x, self.grid, self.column)
        self._warn_outside(x)
        values = np.clip(x.values, *self.x_range) if self.continuation == "constant" else x.values
        features = self._own_features if x.grid is self.grid else self.features(x.grid)
        return features.rows(values if self.transform is None else self.transform(x))

    def of_ranks(self, transform: QuantileTransform, x: Curves) -> AdditiveTerm:
        """The term of curves in their own units, where it is one of their ranks; `x` are the training curves."""
        return replace(self, x_range=(float(x.values.min()), float(x.values.max())), transform=transform)

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

    def add_to(self, x: Curves, rows: FloatArray) -> _Seen:
        """Add the feature rows of training curves to the first columns of `rows`."""
        features = self._own_features
        basis_sums = np.zeros((self.grid.size, self.x.basis.n_basis))
        features.add_to(x.values, rows, basis_sums)
        return _Seen(basis_sums, self._row_norm(x.values))

    @cached_property
    def _own_features(self) -> FeatureMap:
        return self.features(self.grid)

    @cached_property
    def _row_norm(self) -> Callable[[FloatArray], float]:
        return self._own_features.row_norm(self.x.to_raw, self.s.to_raw)

    def learned(self, seen: _Seen, n: int) -> AdditiveTerm:
        """The term with the scale of its penalties, and the mean about which F is centred."""
        return replace(self, row_norm=seen.row_norm, mean_x_basis=seen.basis_sums / n)

    @property
    def smooth(self) -> TensorProduct:
        """The two bases together, with what is not identified left out."""
        return TensorProduct(self.x, self.s, self.row_norm)

    @property
    def rotation(self) -> FloatArray:
        """From identified coordinates to B-spline coefficients, shape (kx·ks, p)."""
        return self.smooth.raw_rotation

    @property
    def penalties(self) -> FloatArray:
        """Diagonals of the penalties over x and s in identified coordinates, shape (2, p)."""
        return self.smooth.penalties

    def names(self, directions: Sequence[int]) -> list[str]:
        """The integrals ``∫ s^b X(s)^a ds`` that unpenalised coordinates stand for."""
        powers = [(1 + int(i) // self.s.size, int(i) % self.s.size) for i in directions]
        return ["∫ " + _power("s", b) + _power(f"{self.column}(s)", a) + "ds" for a, b in powers]

    def notes(self) -> tuple[str, ...]:
        """A note where 99 % of X lie within three tenths of the intervals between knots."""
        assert self.mean_x_basis is not None
        shares = np.sort(np.abs(self.mean_x_basis.sum(axis=0)))[::-1]
        used = int(np.searchsorted(np.cumsum(shares), 0.99 * shares.sum())) + 1
        degree = self.x.basis.degree
        if used - degree > 0.3 * (shares.size - degree):
            return ()
        return (
            f"99 % of {self.column} lie on {used} of {shares.size} basis functions over x: x_transform='quantile' "
            "may fit better",
        )

    def published(self, identified: FloatArray) -> FloatArray:
        """Values of F at the points of the bases (K, kx, ks), centred, from identified coordinates (K, p)."""
        rotation = self.smooth.rotation
        values = np.stack([rotation @ row for row in identified])
        return self.centred(values.reshape(len(values), self.x.size, self.s.size))

    def to_features(self, coefficients: FloatArray) -> FloatArray:
        """B-spline coefficients (q, K) from values of F (K, kx, ks)."""
        raw = np.einsum("ab,kbc,dc->kad", self.x.to_raw, coefficients, self.s.to_raw)
        return np.asarray(raw.reshape(len(raw), -1).T)

    def from_features(self, features: FloatArray) -> FloatArray:
        """Values of F (K, kx, ks), centred, from B-spline coefficients (q, K)."""
        to_values = np.kron(np.linalg.inv(self.x.to_raw), np.linalg.inv(self.s.to_raw))
        values = (to_values @ features).T.reshape((features.shape[1], self.x.size, self.s.size))
        on_unit = (self.grid - self.grid[0]) / (self.grid[-1] - self.grid[0])
        return self.centred(values, quadrature_weights(on_unit))

    def in_units(self, location: float, scale: float, grid: FloatArray) -> tuple[AdditiveTerm, float]:
        """The term on curves as they are: splines of the same shape over their own units."""
        low, high = location + scale * self.x_range[0], location + scale * self.x_range[1]
        x = Margin.pspline(low, high, self.x.size, margin=0.0)
        s = Margin.pspline(grid[0], grid[-1], self.s.size, margin=0.0)
        term = replace(self, x=x, s=s, grid=grid, x_range=(low, high), continuation="constant")
        return term, float(grid[-1] - grid[0])  # the weights on [0, 1] sum to one

    def centred(self, values: FloatArray, weights: FloatArray | None = None) -> FloatArray:
        """Take from F_k its mean over curves as a function of s, which is not identified.

        Parameters
        ----------
        values : ndarray of shape (K, kx, ks)
        weights : ndarray of shape (S,), optional
            Quadrature weights; default those of the grid.

        Returns
        -------
        ndarray of shape (K, kx, ks)
        """
        assert self.mean_x_basis is not None
        mean_x = self.mean_x_basis @ self.x.to_raw
        design = self.s.basis.design(self.grid) @ self.s.to_raw  # (S, ks)
        means = np.einsum("jl,klm,jm->jk", mean_x, values, design)
        root = np.sqrt(np.abs(self.weights(self.grid) if weights is None else weights))[:, None]
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


@dataclass
class _Seen:
    """Of training curves: ``Σ_i B_l(X_i(s_j))``, shape (S, kx), and their largest row of the basis."""

    basis_sums: FloatArray
    row_norm: float

    def merge(self, other: _Seen) -> _Seen:
        self.basis_sums += other.basis_sums
        self.row_norm = max(self.row_norm, other.row_norm)
        return self


def _power(of: str, exponent: int) -> str:
    return "" if exponent == 0 else f"{of} " if exponent == 1 else f"{of}^{exponent} "
