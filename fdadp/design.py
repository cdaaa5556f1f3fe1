"""Feature rows: ``Z_i[l, l'] = ∫ B_l(X_i(s)) B_l'(s) ds``, the one hot kernel of the package.

A row depends on its own curve and on public things only (knots, grid, weights) and is summed in a fixed
order, so the same curve gives the same row bit for bit, wherever it stands: the private fits rely on it.
B-splines of degree d have d + 1 non-zeros, so a curve costs ``S (d + 1)²`` additions and the
n·S long form of the data is never built.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numba import get_num_threads, njit, prange

from fdadp._threads import numba_threads_for
from fdadp._typing import FloatArray, IntArray
from fdadp.splines import BSplines

__all__ = ["FeatureMap"]


@njit(cache=True, inline="always")
def _bsplines(x, lower, upper, h, n_intervals, degree, ends, out):  # type: ignore[no-untyped-def]
    """Write the degree + 1 B-splines that are non-zero at x into out; return the index of the first.

    Outside [lower, upper] they go on along their tangents: `ends` holds value and slope at both ends.
    """
    if x < lower:
        for r in range(degree + 1):
            out[r] = ends[0, r] + (x - lower) * ends[1, r]
        return 0
    if x > upper:
        for r in range(degree + 1):
            out[r] = ends[2, r] + (x - upper) * ends[3, r]
        return n_intervals - 1
    u = (x - lower) / h
    first = min(int(u), n_intervals - 1)
    u -= first
    if degree == 3:  # the usual case, four times as fast as the recursion
        v = 1.0 - u
        out[0] = v * v * v / 6
        out[1] = (3 * u * u * u - 6 * u * u + 4) / 6
        out[2] = (3 * v * v * v - 6 * v * v + 4) / 6
        out[3] = u * u * u / 6
        return first
    out[0] = 1.0
    for d in range(1, degree + 1):
        saved = 0.0
        for r in range(d):
            share = out[r] / d
            out[r] = saved + (r + 1 - u) * share
            saved = (u + (d - 1 - r)) * share
        out[d] = saved
    return first


@njit(cache=True, parallel=True)
def _feature_rows(x, lower, upper, h, n_intervals, degree, ends, s_first, s_values, n_s, out):  # type: ignore[no-untyped-def]
    n, points = x.shape
    width = s_values.shape[1]
    for i in prange(n):
        basis = np.empty(degree + 1)
        row = out[i]
        for j in range(points):
            first = _bsplines(x[i, j], lower, upper, h, n_intervals, degree, ends, basis)
            for r in range(degree + 1):
                start = (first + r) * n_s + s_first[j]
                value = basis[r]
                if width == 4:  # cubic: unrolled
                    row[start] += value * s_values[j, 0]
                    row[start + 1] += value * s_values[j, 1]
                    row[start + 2] += value * s_values[j, 2]
                    row[start + 3] += value * s_values[j, 3]
                else:
                    for q in range(width):
                        row[start + q] += value * s_values[j, q]


@njit(cache=True, parallel=True)
def _basis_sums(x, lower, upper, h, n_intervals, degree, ends, n_threads, out):  # type: ignore[no-untyped-def]
    n, points = x.shape
    for block in prange(n_threads):
        basis = np.empty(degree + 1)
        for i in range(block * n // n_threads, (block + 1) * n // n_threads):
            for j in range(points):
                first = _bsplines(x[i, j], lower, upper, h, n_intervals, degree, ends, basis)
                for r in range(degree + 1):
                    out[block, j, first + r] += basis[r]


@njit(cache=True)
def _largest_row_sum(x, lower, upper, h, n_intervals, degree, ends, coordinates, bounds, column_factor):  # type: ignore[no-untyped-def]
    """Return max over (i, j) of column_factor[j] * |B(x_ij) coordinates|_1, looking only where bounds allow it."""
    basis = np.empty(degree + 1)
    largest = 0.0
    n, points = x.shape
    n_bins = bounds.size
    for i in range(n):
        for j in range(points):
            position = (x[i, j] - lower) / (upper - lower) * n_bins
            bin_ = min(max(int(position), 0), n_bins - 1)
            if bounds[bin_] * column_factor[j] > largest:
                first = _bsplines(x[i, j], lower, upper, h, n_intervals, degree, ends, basis)
                total = 0.0
                for column in range(coordinates.shape[1]):
                    entry = 0.0
                    for r in range(degree + 1):
                        entry += basis[r] * coordinates[first + r, column]
                    total += abs(entry)
                largest = max(largest, total * column_factor[j])
    return largest


@dataclass(frozen=True)
class FeatureMap:
    """From curves ``X (n, S)`` to feature rows ``Z (n, n_basis_x * n_basis_s)``, s fastest.

    Parameters
    ----------
    x_basis : BSplines
        Uniform basis over the values of the curves.
    s_basis : BSplines
        Basis over the grid.
    grid : ndarray of shape (S,)
    weights : ndarray of shape (S,)
        Quadrature weights.

    References
    ----------
    Kim, Staicu, Maity, Carroll & Ruppert (2018), Additive Function-on-Function Regression, JCGS 27(1),
    doi:10.1080/10618600.2017.1356730, section 3.
    """

    x_basis: BSplines
    s_basis: BSplines
    grid: FloatArray
    weights: FloatArray
    _s_first: IntArray = field(init=False, repr=False)
    _s_values: FloatArray = field(init=False, repr=False)
    _ends: FloatArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        design = self.s_basis.design(self.grid)
        width = self.s_basis.degree + 1
        # The first of the non-zero functions at each grid point; at the right end the last `width` ones.
        interval = np.searchsorted(self.s_basis.knots, self.grid, side="right") - width
        first = np.clip(interval, 0, self.s_basis.n_basis - width).astype(np.int64)
        values = np.take_along_axis(design, first[:, None] + np.arange(width), axis=1) * self.weights[:, None]
        x = self.x_basis
        ends = np.empty((4, x.degree + 1))
        for row, (at, order) in enumerate(((x.lower, 0), (x.lower, 1), (x.upper, 0), (x.upper, 1))):
            near = x.design([at], order)[0]
            ends[row] = near[: x.degree + 1] if row < 2 else near[-x.degree - 1 :]
        object.__setattr__(self, "_s_first", first)
        object.__setattr__(self, "_s_values", np.ascontiguousarray(values))
        object.__setattr__(self, "_ends", ends)

    @property
    def n_features(self) -> int:
        """Length of a feature row."""
        return self.x_basis.n_basis * self.s_basis.n_basis

    @property
    def _x_arguments(self) -> tuple[float, float, float, int, int, FloatArray]:
        x = self.x_basis
        n_intervals = x.n_basis - x.degree
        return x.lower, x.upper, (x.upper - x.lower) / n_intervals, n_intervals, x.degree, self._ends

    def rows(self, x: FloatArray) -> FloatArray:
        """Feature rows of finite curves `x` of shape (n, S); shape (n, n_features)."""
        values = np.ascontiguousarray(x, dtype=np.float64)
        out = np.zeros((values.shape[0], self.n_features))
        with numba_threads_for(values.size):
            _feature_rows(values, *self._x_arguments, self._s_first, self._s_values, self.s_basis.n_basis, out)
        return out

    def basis_sums(self, x: FloatArray) -> FloatArray:
        """``Σ_i B_l(x_ij)`` for each grid point j and function l; shape (S, n_basis_x)."""
        values = np.ascontiguousarray(x, dtype=np.float64)
        with numba_threads_for(values.size):
            n_threads = min(get_num_threads(), max(values.shape[0], 1))
            out = np.zeros((n_threads, values.shape[1], self.x_basis.n_basis))
            _basis_sums(values, *self._x_arguments, n_threads, out)
        return np.asarray(out.sum(axis=0), dtype=np.float64)

    def largest_row_sum(self, x: FloatArray, x_coordinates: FloatArray, s_coordinates: FloatArray) -> float:
        """Largest ``|B(x_ij) C_x|_1 |B(s_j) C_s|_1`` over all pairs: the scale of mgcv's penalties.

        A table of upper bounds spares the evaluation at nearly every point.
        """
        edges = np.linspace(self.x_basis.lower, self.x_basis.upper, 2049)
        sums = np.abs(self.x_basis.design(edges) @ x_coordinates).sum(axis=1)
        # Between neighbouring edges the sum exceeds both ends by far less than it changes over three bins.
        change = np.abs(np.diff(sums))
        slack = np.maximum(np.maximum(change, np.roll(change, 1)), np.roll(change, -1))
        bounds = np.maximum(sums[:-1], sums[1:]) + slack + 1e-9
        factor = np.abs(self.s_basis.design(self.grid) @ s_coordinates).sum(axis=1)
        values = np.ascontiguousarray(x, dtype=np.float64)
        return float(_largest_row_sum(values, *self._x_arguments, x_coordinates, bounds, factor))
