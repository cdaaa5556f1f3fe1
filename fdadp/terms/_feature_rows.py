"""Feature rows: ``Z_i[l, l'] = ∫ B_l(X_i(s)) B_l'(s) ds``, the one hot kernel of the package.

A row depends on its own curve and on public things only (knots, grid, weights) and is summed in a fixed
order, so the same curve gives the same row bit for bit, wherever it stands: the private fits rely on it.
B-splines of degree d have d + 1 non-zeros, so a curve costs ``S (d + 1)²`` additions and the
n·S long form of the data is never built.

The kernels run on one thread and without Python's lock: callers hand blocks of curves to several threads
(:func:`fdadp._common.threads.map_blocks`). So results do not depend on the number of threads, and forked processes are
safe.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from fdadp._common.loaded_later import kernel
from fdadp._common.threads import map_blocks
from fdadp._common.typing import FloatArray, IntArray
from fdadp.functional.splines.bsplines import BSplines


@kernel(inline="always")
def _cubic(x, lower, upper, scale, n_intervals, ends):  # type: ignore[no-untyped-def]
    """Return the index of the first cubic B-spline that is non-zero at x, and the values of four.

    Outside [lower, upper] they go on along their tangents: `ends` holds value and slope at both ends.
    """
    if x < lower or x > upper:
        at, d, first = (0, x - lower, 0) if x < lower else (2, x - upper, n_intervals - 1)
        b0, b1 = ends[at, 0] + d * ends[at + 1, 0], ends[at, 1] + d * ends[at + 1, 1]
        return first, b0, b1, ends[at, 2] + d * ends[at + 1, 2], ends[at, 3] + d * ends[at + 1, 3]
    u = (x - lower) * scale
    first = min(int(u), n_intervals - 1)
    u -= first
    v = 1.0 - u
    inner, outer = (3 * u - 6) * u * u * (1 / 6) + 4 / 6, (3 * v - 6) * v * v * (1 / 6) + 4 / 6
    return first, v * v * v * (1 / 6), inner, outer, u * u * u * (1 / 6)


@kernel(inline="always")
def _bsplines(x, lower, upper, scale, n_intervals, degree, ends, out):  # type: ignore[no-untyped-def]
    """Write the degree + 1 B-splines that are non-zero at x into out; return the index of the first."""
    if degree == 3:
        first, out[0], out[1], out[2], out[3] = _cubic(x, lower, upper, scale, n_intervals, ends)
        return first
    if x < lower:
        for r in range(degree + 1):
            out[r] = ends[0, r] + (x - lower) * ends[1, r]
        return 0
    if x > upper:
        for r in range(degree + 1):
            out[r] = ends[2, r] + (x - upper) * ends[3, r]
        return n_intervals - 1
    u = (x - lower) * scale
    first = min(int(u), n_intervals - 1)
    u -= first
    out[0] = 1.0
    for d in range(1, degree + 1):
        saved = 0.0
        for r in range(d):
            share = out[r] / d
            out[r] = saved + (r + 1 - u) * share
            saved = (u + (d - 1 - r)) * share
        out[d] = saved
    return first


@kernel("f8[:,::1], f8, f8, f8, i8, i8, f8[:,::1], i8[::1], f8[:,::1], i8, f8[:,::1], f8[:,::1]")
def _feature_rows(x, lower, upper, scale, n_intervals, degree, ends, s_first, s_values, n_s, rows, basis_sums):  # type: ignore[no-untyped-def]
    """Add the feature rows to the first columns of rows (n, >= p), and Σ_i B_l(x_ij) to basis_sums (S, n_basis_x)."""
    n, points = x.shape
    basis = np.empty(degree + 1)
    for i in range(n):
        for j in range(points):
            first = _bsplines(x[i, j], lower, upper, scale, n_intervals, degree, ends, basis)
            for r in range(degree + 1):
                basis_sums[j, first + r] += basis[r]
                start = (first + r) * n_s + s_first[j]
                for q in range(s_values.shape[1]):
                    rows[i, start + q] += basis[r] * s_values[j, q]


@kernel("f8[:,::1], f8, f8, f8, i8, f8[:,::1], i8[::1], f8[:,::1], i8, f8[:,::1], f8[:,::1]")
def _cubic_feature_rows(x, lower, upper, scale, n_intervals, ends, s_first, s_values, n_s, rows, basis_sums):  # type: ignore[no-untyped-def]
    """Write feature rows for cubic splines on both sides, the usual case, three times as fast.

    Everything stays in registers, the four sums in s are read before one is written, and the indices are unsigned
    because numba tests signed ones for counting from the end.
    """
    n, points = x.shape
    one, two, three, step = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(n_s)
    for i in range(n):
        row = rows[i]
        for j in range(points):
            first, b0, b1, b2, b3 = _cubic(x[i, j], lower, upper, scale, n_intervals, ends)
            at = np.uint64(first)
            basis_sums[j, at] += b0
            basis_sums[j, at + one] += b1
            basis_sums[j, at + two] += b2
            basis_sums[j, at + three] += b3
            start = at * step + np.uint64(s_first[j])
            s0, s1, s2, s3 = s_values[j, 0], s_values[j, 1], s_values[j, 2], s_values[j, 3]
            for b in (b0, b1, b2, b3):
                r0 = row[start] + b * s0
                r1 = row[start + one] + b * s1
                r2 = row[start + two] + b * s2
                r3 = row[start + three] + b * s3
                row[start], row[start + one], row[start + two], row[start + three] = r0, r1, r2, r3
                start += step


@kernel("f8[:,::1], f8, f8, f8, i8, i8, f8[:,::1], f8[:,::1], f8[::1], f8[::1]")
def _largest_row_sum(x, lower, upper, scale, n_intervals, degree, ends, coordinates, bounds, column_factor):  # type: ignore[no-untyped-def]
    """Return the largest ``|B(x_ij) C|_1`` times the factor of column j: evaluated where bounds allow more.

    Bounds are of points within [lower, upper]. B-splines grow beyond, so that each point there is one of them.
    """
    largest, last, out = 0.0, bounds.size - 1, np.empty(degree + 1)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            position = (x[i, j] - lower) / (upper - lower) * bounds.size
            bound = bounds[min(max(int(position), 0), last)] * column_factor[j]
            if bound > largest or x[i, j] < lower or x[i, j] > upper:
                first = _bsplines(x[i, j], lower, upper, scale, n_intervals, degree, ends, out)
                total = 0.0
                for c in range(coordinates.shape[1]):
                    entry = 0.0
                    for r in range(degree + 1):
                        entry += out[r] * coordinates[first + r, c]
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
        first = np.clip(interval, 0, self.s_basis.n_basis - width)
        values = np.take_along_axis(design, first[:, None] + np.arange(width), axis=1) * self.weights[:, None]
        x = self.x_basis
        ends = np.empty((4, x.degree + 1))
        for row, (at, order) in enumerate(((x.lower, 0), (x.lower, 1), (x.upper, 0), (x.upper, 1))):
            near = x.design([at], order)[0]
            ends[row] = near[: x.degree + 1] if row < 2 else near[-x.degree - 1 :]
        object.__setattr__(self, "_s_first", first.astype(np.int64))
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
        return x.lower, x.upper, n_intervals / (x.upper - x.lower), n_intervals, x.degree, self._ends

    def add_to(self, x: FloatArray, rows: FloatArray, basis_sums: FloatArray) -> None:
        """Add the feature rows of finite curves `x` (n, S) to ``rows[:, :n_features]`` and their basis to `basis_sums`.

        Parameters
        ----------
        x : ndarray of shape (n, S)
        rows : ndarray of shape (n, q), contiguous
            With at least n_features columns; those beyond are left alone.
        basis_sums : ndarray of shape (S, n_basis_x)
            ``Σ_i B_l(x_ij)`` for each grid point j and function l are added here.
        """
        values = np.ascontiguousarray(x, dtype=np.float64)
        *x_arguments, degree, ends = self._x_arguments
        s_arguments = self._s_first, self._s_values, self.s_basis.n_basis
        if degree == self.s_basis.degree == 3:
            _cubic_feature_rows(values, *x_arguments, ends, *s_arguments, rows, basis_sums)
        else:
            _feature_rows(values, *x_arguments, degree, ends, *s_arguments, rows, basis_sums)

    def rows(self, x: FloatArray) -> FloatArray:
        """Feature rows of finite curves `x` of shape (n, S); shape (n, n_features)."""
        out = np.zeros((len(x), self.n_features))

        def fill(block: slice) -> None:
            self.add_to(x[block], out[block], np.zeros((self.grid.size, self.x_basis.n_basis)))

        for _ in map_blocks(fill, len(x)):
            pass
        return out

    def row_norm(self, x_coordinates: FloatArray, s_coordinates: FloatArray) -> Callable[[FloatArray], float]:
        """Return the function of curves (n, S) that gives their largest ``|B(x_ij) C_x|_1 |B(s_j) C_s|_1``.

        That scales mgcv's penalties. A table of upper bounds spares the evaluation at nearly every point.
        """
        edges = np.linspace(self.x_basis.lower, self.x_basis.upper, 2049)
        sums = np.abs(self.x_basis.design(edges) @ x_coordinates).sum(axis=1)
        # Between neighbouring edges the sum exceeds both ends by far less than it changes over three bins.
        change = np.abs(np.diff(sums))
        slack = np.maximum(np.maximum(change, np.roll(change, 1)), np.roll(change, -1))
        bounds = np.maximum(sums[:-1], sums[1:]) + slack + 1e-9
        factor = np.abs(self.s_basis.design(self.grid) @ s_coordinates).sum(axis=1)

        to = np.ascontiguousarray(x_coordinates)

        def largest(x: FloatArray) -> float:
            values = np.ascontiguousarray(x, dtype=np.float64)
            return float(_largest_row_sum(values, *self._x_arguments, to, bounds, factor))

        return largest
