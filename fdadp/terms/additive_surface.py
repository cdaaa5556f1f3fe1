"""The surface F of ``∫ F{X(s), s} ds``, as splines over the values of a curve and its domain: one design for all.

``sff`` and ``af`` stand on it, on a response that is a curve or a number, and :class:`fdadp.AdditiveFunctionOnFunction`
with and without privacy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from fdadp._common.calling_language import warn
from fdadp._common.typing import BoolArray, FloatArray
from fdadp.errors import ExtrapolationWarning, InputError
from fdadp.functional.quadrature import quadrature_weights
from fdadp.functional.splines.bsplines import BSplines, PeriodicBSplines
from fdadp.functional.splines.diagonal_margins import SmoothMargin
from fdadp.functional.tables.curve_sample import Curves
from fdadp.terms._feature_rows import FeatureMap
from fdadp.terms.cycles import refuse_other_circle
from fdadp.terms.records import Records, refuse_other_domain
from fdadp.terms.spec import TermDesign

# How many B-splines the surface gets where the user names no number: by a public rule, from n and the grid alone.


AUTO = "auto"
FEWEST = 4
"""Intervals between knots: with cubic splines 7 functions, refund's default."""
MOST_X, MOST_S = 17, 7


def basis_sizes(sizes: tuple[int | str, int | str], n: int | None, points: int, degree: int) -> tuple[int, int]:
    """Numbers of B-splines over the values of X and over its grid.

    Parameters
    ----------
    sizes : pair of (int or "auto")
        As the user set them.
    n : int or None
        Number of curves; None takes the most.
    points : int
        Of the grid of X.
    degree : int

    Returns
    -------
    over_x, over_s : int
        For ``"auto"`` ``3 n^(1/4)`` intervals over x, from 4 to 17, and half as many over s, from 4 to 7 and no more
        than one for three points. Cubic splines: 7 x 7 for 10 curves, 12 x 7 for 100, 14 x 8 for 200, 20 x 10 from
        1,100 on.

    Notes
    -----
    The penalties keep a basis that is larger than need be from costing accuracy; one that is too small leaves a bias
    that no standard error knows of and that does not shrink with n. So the number of intervals grows with n.

    References
    ----------
    Ruppert (2002), Selecting the number of knots for penalized splines, doi:10.1198/106186002853; Claeskens,
    Krivobokova & Opsomer (2009), doi:10.1093/biomet/asp035: the number must grow with n, and from there on it hardly
    matters.
    """
    growth = float("inf") if n is None else n**0.25
    intervals = min(3 * growth, MOST_X), min(1.5 * growth, MOST_S, points / 3)
    over_x, over_s = (
        max(int(m), FEWEST) + degree if size == AUTO else int(size) for size, m in zip(sizes, intervals, strict=True)
    )
    return over_x, over_s


def check_size(size: int | str, name: str, degree: int) -> int:
    """Return a number of B-splines, or the least that ``"auto"`` takes.

    Raises
    ------
    InputError
        Another text, no whole number, or one too small for the degree.
    """
    if isinstance(size, str):
        if size != AUTO:
            raise InputError(f"{name} must be 'auto' or a number of B-splines, got {size!r}")
        size = FEWEST + int(degree)
    return BSplines.uniform(0.0, 1.0, size, degree=degree, name=name).n_basis


@dataclass(frozen=True, kw_only=True)
class Surface(TermDesign):
    """Features ``∫ B_l(X(s)) B_l'(s) ds`` in the coordinates of the two margins, s fastest.

    Attributes
    ----------
    over_x, over_s : SmoothMargin
        Bases over the values of X and over its domain: kx and ks coefficients, values of F at even points.
    grid : ndarray of shape (S,)
        That of the training curves.
    x_range : (float, float)
        Range of the training values.
    rule : str
        For ∫ ds.
    uneven_simpson : bool
        Keep ``"simpson_legacy"`` on uneven grids.
    period : float or None
        Length of a periodic domain.
    continuation : {"linear", "constant"}
        How F goes on beyond the range of x.
    transform : QuantileTransform or None
        From values to ranks, of which F is then a function.
    centred : bool
        F has mean zero over the training curves at each s: what it adds as a function of s alone, the same for all
        curves, has no coefficients. The scale of the penalties, and the mean, are learned with the sums over curves
        (:meth:`trained`). Its penalties are those over x and s, else those over s and x as in refund.
    mean_basis : ndarray of shape (S, kx), or None
        Mean of the B-splines of X(s) over the training curves, about which F is centred.
    with_constant : bool
        F has the constant, which is not the intercept's: numbers multiply it.
    """

    over_x: SmoothMargin
    over_s: SmoothMargin
    grid: FloatArray
    x_range: tuple[float, float]
    rule: str = "trapezoid"
    uneven_simpson: bool = False
    period: float | None = None
    continuation: Literal["linear", "constant"] = "linear"
    transform: QuantileTransform | None = None
    centred: bool = False
    mean_basis: FloatArray | None = None
    with_constant: bool = False

    @classmethod
    def on(cls, name: str, column: str, over_x: SmoothMargin, over_s: SmoothMargin, **fields: Any) -> Surface:
        """The design on two margins, the scale of its penalties yet to come (:meth:`scaled`).

        Parameters
        ----------
        name, column : str
        over_x, over_s : SmoothMargin
        **fields
            Others.
        """
        in_x, in_s = (margin.eigenvalues / margin.penalty_norm for margin in (over_x, over_s))
        both = np.repeat(in_x, over_s.size), np.tile(in_s, over_x.size)
        own = np.vstack(both if fields.get("centred") else both[::-1])
        return cls(name=name, columns=(column,), over_x=over_x, over_s=over_s, own_penalties=own, **fields)

    def scaled(self, norm: float) -> Surface:
        """With penalties on mgcv's scale, by the largest row sum of its basis over the training curves."""
        return replace(self, own_norm=norm, own_penalties=self.own_penalties * (norm / self.own_norm) ** 2)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of coefficients over x and over s."""
        return self.over_x.size, self.over_s.size

    @property
    def splines(self) -> tuple[BSplines, BSplines]:
        """Bases over x and s."""
        x, s = self.over_x.basis, self.over_s.basis
        assert isinstance(x, BSplines)
        assert isinstance(s, BSplines)
        return x, s

    @cached_property
    def kept(self) -> BoolArray:
        """All but the intercept's direction, and its multiples: what is linear in s alone adds the same to each row."""
        keep = np.ones((*self.shape, self.along.size), dtype=bool)
        if self.centred:
            keep[0] = False
            return keep.reshape(-1)
        keep[0][np.ix_(self.over_s.eigenvalues == 0, self.along.eigenvalues == 0)] = False
        keep[0, 0] = True
        keep[0, 0, 0] = self.with_constant
        return keep.reshape(-1)

    def by_numbers(self) -> Surface:
        """With the constant, as mgcv has it: times numbers it is an effect of theirs."""
        return self if self.centred else replace(self, with_constant=True)

    def beside_numbers(self) -> Surface:
        """Without it, where the numbers have an effect of their own."""
        return replace(self, with_constant=False)

    # --- features ---

    def weights(self, grid: FloatArray) -> FloatArray:
        """Quadrature weights on a grid; of a periodic domain the way from the last point to the first counts too."""
        return quadrature_weights(grid, self.rule, uneven_simpson=self.uneven_simpson, period=self.period)

    def feature_map(self, grid: FloatArray) -> FeatureMap:
        """From curves on a grid to integrals of products of B-splines."""
        over_x, over_s = self.splines
        on_basis = over_s.wrapped(grid) if isinstance(over_s, PeriodicBSplines) else grid
        return FeatureMap(over_x, over_s, on_basis, self.weights(grid))

    def rows(self, x: Curves) -> FloatArray:
        """Integrals ``∫ B_l(X(s)) B_l'(s) ds`` of complete curves, each row by itself; shape (n, q').

        Raises
        ------
        InputError
            Curves on another domain.

        Warns
        -----
        ExtrapolationWarning
            Some values lie outside the training range; says how many.
        """
        if self.period is None:
            refuse_other_domain(x, self.grid, self.columns[0])
        else:
            refuse_other_circle(x, self.grid, self.period, self.columns[0])
        self.warn_outside(x)
        features = self._own_map if np.array_equal(x.grid, self.grid) else self.feature_map(x.grid)
        return features.rows(self._levels(x))

    def _levels(self, x: Curves) -> FloatArray:
        """Values at which the basis over x is taken."""
        if self.transform is not None:
            return self.transform(x)
        return np.clip(x.values, *self.x_range) if self.continuation == "constant" else x.values

    def features(self, records: Records, t: FloatArray | None = None) -> FloatArray:
        """Integrals in the coordinates of the margins, shape (n, kx·ks)."""
        return self.turned(self.rows(records.curves(self.columns[0])))

    def turned(self, rows: FloatArray) -> FloatArray:
        """Rows of integrals in the coordinates of the margins, shape (n, kx·ks)."""
        to_x, to_s = self.over_x.to_raw, self.over_s.to_raw
        by_margin = rows.reshape(len(rows), len(to_x), len(to_s))
        return np.asarray((to_x.T @ (by_margin @ to_s)).reshape(len(rows), -1))

    def unturned(self, coefficients: FloatArray) -> FloatArray:
        """Coefficients (q, K) of :meth:`turned` rows from those of integrals (q, K)."""
        to_x, to_s = (np.linalg.inv(margin.to_raw) for margin in (self.over_x, self.over_s))
        by_margin = coefficients.reshape(*self.shape, -1)
        return np.asarray(np.einsum("ax,xsk,bs->abk", to_x, by_margin, to_s).reshape(coefficients.shape))

    def trained(self, records: Records) -> tuple[FloatArray, Any]:
        """Features of training rows, with what :meth:`learned` needs where F is centred."""
        if not self.centred:
            return self.features(records), None
        rows, seen = self.integrals(records.curves(self.columns[0]))
        return self.turned(rows), seen

    def integrals(self, x: Curves) -> tuple[FloatArray, Trained]:
        """:meth:`rows` of training curves, with what there is to learn from them."""
        levels = self._levels(x)
        rows = np.zeros((len(levels), self._own_map.n_features))
        basis_sums = np.zeros((self.grid.size, len(self.over_x.to_raw)))
        self._own_map.add_to(levels, rows, basis_sums)
        return rows, Trained(basis_sums, self._largest_row_sum(levels))

    def learned(self, seen: Trained | None, n: int) -> Surface:
        """With the scale of its penalties, and the mean about which F is centred."""
        return self if seen is None else replace(self.scaled(seen.norm), mean_basis=seen.basis_sums / n)

    @cached_property
    def _own_map(self) -> FeatureMap:
        return self.feature_map(self.grid)

    def row_sum_of(self, x: Curves) -> float:
        """Largest row sum of the basis over curves on the training grid: what scales the penalties."""
        return self._largest_row_sum(self._levels(x))

    @cached_property
    def _largest_row_sum(self) -> Callable[[FloatArray], float]:
        return self._own_map.row_norm(self.over_x.to_basis, self.over_s.to_basis)

    def warn_outside(self, x: Curves) -> None:
        """Warn of values outside the training range, saying how many."""
        low, high = self.x_range
        if self.transform is None:
            outside = int(((x.values < low) | (x.values > high)).sum())
            where = f"the training range [{low:g}, {high:g}]"
        else:
            outside, where = self.transform.count_outside(x), "the training range at their s"
        if outside:
            linear = self.transform is None and self.continuation == "linear"
            warn(
                f"{outside} of {x.values.size} points of {self.columns[0]} lie outside {where}; the surface of "
                f"{self.name} is continued {'linearly' if linear else 'as a constant'} there",
                ExtrapolationWarning,
            )

    # --- F ---

    @property
    def axes(self) -> dict[str, FloatArray | tuple[Any, ...]]:
        """Points of s, and the range of X."""
        return {"s": np.linspace(self.grid[0], self.grid[-1], 20), "x": np.linspace(*self.x_range, 20)}

    @property
    def periods(self) -> dict[str, float]:
        """That of s, and that along the response."""
        return super().periods if self.period is None else {**super().periods, "s": self.period}

    def effect(self, *points: Any) -> FloatArray:
        """Features of F at the product of points of s and x, s slowest."""
        at_s, at_x = (np.asarray(p, dtype=np.float64) for p in points)
        over_s = self.over_s.design(at_s)
        if self.transform is None:
            over_x = np.broadcast_to(self.over_x.design(at_x), (at_s.size, at_x.size, self.over_x.size))
        else:  # another level of x at each s
            order = np.argsort(at_s)
            levels = np.empty((at_s.size, at_x.size))
            levels[order] = self.transform(Curves(np.repeat(at_x[:, None], at_s.size, 1), at_s[order])).T
            over_x = self.over_x.design(levels.ravel()).reshape(*levels.shape, self.over_x.size)
        shape = at_s.size * at_x.size, self.over_x.size * self.over_s.size  # there may be no points
        return np.asarray((over_x[..., None] * over_s[:, None, None, :]).reshape(shape))

    def values(self, coefficients: FloatArray) -> FloatArray:
        """F at the points of the bases (K, kx, ks) from coefficients (q, K) of all coordinates."""
        over_x, over_s = self.over_x.rotation, self.over_s.rotation
        found = np.einsum("xa,abk,sb->kxs", over_x, coefficients.reshape(*self.shape, -1), over_s)
        return np.ascontiguousarray(found)

    def coefficients(self, values: FloatArray) -> FloatArray:
        """What :meth:`values` is of: coefficients (q, K) from values (K, kx, ks)."""
        found = np.einsum("xa,kxs,sb->abk", self.over_x.rotation, values, self.over_s.rotation)
        return np.ascontiguousarray(found.reshape(-1, len(values)))

    def about_mean(self, values: FloatArray, weights: FloatArray | None = None) -> FloatArray:
        """Take from F its mean over curves as a function of s, which is not identified.

        Parameters
        ----------
        values : ndarray of shape (K, kx, ks)
        weights : ndarray of shape (S,), optional
            Quadrature weights; default those of the grid.

        Returns
        -------
        ndarray of shape (K, kx, ks)
        """
        assert self.mean_basis is not None
        mean_x = self.mean_basis @ self.over_x.to_basis
        design = self.over_s.basis.design(self.grid) @ self.over_s.to_basis  # (S, ks)
        means = np.einsum("jl,klm,jm->jk", mean_x, values, design)
        root = np.sqrt(np.abs(self.weights(self.grid) if weights is None else weights))[:, None]
        mean_surface = np.linalg.lstsq(design * root, means * root, rcond=None)[0].T
        return np.ascontiguousarray(values - mean_surface[:, None, :])

    def of_centred(self, effect: FloatArray) -> FloatArray:
        """Rows of the coefficients that are kept, for F about its mean, from rows (m, q) of all coefficients for F."""
        one_each = np.eye(effect.shape[1])
        return effect @ self.coefficients(self.about_mean(self.values(one_each)))[:, self.kept]

    def directions(self, numbers: Sequence[int]) -> list[str]:
        """The integrals ``∫ s^b X(s)^a ds`` that coefficients without a penalty stand for, where F is centred."""
        powers = [(1 + int(i) // self.over_s.size, int(i) % self.over_s.size) for i in numbers]
        return ["∫ " + _power("s", b) + _power(f"{self.columns[0]}(s)", a) + "ds" for a, b in powers]

    def notes(self) -> tuple[str, ...]:
        """A note where 99 % of X lie within three tenths of the intervals between knots."""
        assert self.mean_basis is not None
        degree = self.splines[0].degree
        shares = np.sort(np.abs(self.mean_basis.sum(axis=0)))[::-1]
        used = int(np.searchsorted(np.cumsum(shares), 0.99 * shares.sum())) + 1
        if used - degree > 0.3 * (shares.size - degree):
            return ()
        return (
            f"99 % of {self.columns[0]} lie on {used} of {shares.size} basis functions over x: x_transform='quantile' "
            "may fit better",
        )


@dataclass
class Trained:
    """Of training curves: ``Σ_i B_l(X_i(s_j))``, shape (S, kx), and their largest row of the basis."""

    basis_sums: FloatArray
    norm: float

    def merge(self, other: Trained) -> Trained:
        """Add those of other curves."""
        self.basis_sums += other.basis_sums
        self.norm = max(self.norm, other.norm)
        return self


def _power(of: str, exponent: int) -> str:
    return "" if exponent == 0 else f"{of} " if exponent == 1 else f"{of}^{exponent} "


# X by its quantiles: X(s) becomes its rank among the training curves at s, so that knots lie where curves are.


MOST_QUANTILES = 257
"""Quantiles kept at each point; with no more curves than that the transform is that of the ranks, exactly."""


@dataclass(frozen=True)
class QuantileTransform:
    """The pointwise empirical distribution function, ``(rank - 1)/(n - 1)`` on the training curves.

    Ties get their mean rank. Between training values it is linear; beyond them it is 0 or 1, as a distribution function
    is, so a surface goes on as a constant there.

    Attributes
    ----------
    grid : ndarray of shape (S,)
    table : ndarray of shape (S, Q)
        Quantiles of X(s) at Q even levels from 0 to 1.

    References
    ----------
    McLean, Hooker, Staicu, Scheipl & Ruppert (2014), Functional generalized additive models, JCGS 23(1), section 3.3,
    doi:10.1080/10618600.2012.729985; ``refund::af(Qtransform = TRUE)`` 0.1-38.
    """

    grid: FloatArray
    table: FloatArray

    @classmethod
    def of(cls, x: Curves) -> QuantileTransform:
        """Learn it from complete curves."""
        ranks = np.round(np.linspace(0, len(x) - 1, min(len(x), MOST_QUANTILES))).astype(int)
        return cls(x.grid, np.ascontiguousarray(np.sort(x.values, axis=0)[ranks].T))

    def __call__(self, x: Curves) -> FloatArray:
        """Levels of complete curves on a grid over the same domain, shape (n, S')."""
        table = self._at(x.grid)
        levels = np.empty(x.values.shape)
        for j, quantiles in enumerate(table):
            values, first, count = np.unique(quantiles, return_index=True, return_counts=True)
            levels[:, j] = np.interp(x.values[:, j], values, (first + (count - 1) / 2) / max(quantiles.size - 1, 1))
        return levels

    def count_outside(self, x: Curves) -> int:
        """Number of values below or above all training values at their point."""
        table = self._at(x.grid)
        return int(((x.values < table[:, 0]) | (x.values > table[:, -1])).sum())

    def _at(self, grid: FloatArray) -> FloatArray:
        if np.array_equal(grid, self.grid):
            return self.table
        return np.stack([np.interp(grid, self.grid, quantile) for quantile in self.table.T], axis=1)
