"""A curve that acts at the same point: ``X_i(t) β(t)``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import InputError
from fdadp.functional.tables.curve_inputs import refuse_other_axis
from fdadp.functional.tables.curve_sample import Curves
from fdadp.terms.records import Records, TrainingSummary
from fdadp.terms.spec import TermDesign, TermSpec, along_response, no_penalties, own_cycle, size_along


@dataclass(frozen=True)
class Concurrent(TermSpec):
    """Effect ``X(t) β(t)`` of a curve on the domain of the response.

    Parameters
    ----------
    column : str
        Column of curves; between points of their grid they are interpolated linearly.
    k : int, optional
        Number of B-splines along the response. Default: 15, or as many as the response has points. ``"refund"`` takes
        5.
    m : (int, int)
        Their degree less one, and the order of the difference penalty.
    period : float, optional
        Makes β periodic in t, as ``t_period`` of :class:`fdadp.FunctionalRegression` does for all terms.

    References
    ----------
    Hastie & Tibshirani (1993), Varying-coefficient models, doi:10.1111/j.2517-6161.1993.tb01939.x; Ramsay & Silverman
    (2005), Functional Data Analysis, chapter 14; in refund's ``pffr`` a matrix covariate by its name.

    Examples
    --------
    >>> from fdadp import terms
    >>> terms.concurrent("X").name
    'concurrent(X)'
    """

    column: str
    k: int | Literal["refund"] | None = None
    m: tuple[int, int] = (2, 1)
    period: float | None = None

    function = "concurrent"
    refund_k = 5

    def fixed(self, seen: TrainingSummary, t: FloatArray | None) -> TermDesign:
        """One feature, the value of the curve at t."""
        grid = seen.curves_of(self.column).grid
        if t is None:
            raise InputError(f"{self.name} must have a response that is a curve; for a scalar response use lf()")
        refuse_beyond(grid, t, self.column)
        refuse_other_axis(grid, t, self.column)
        cycle, k = own_cycle(self.period, self.name, seen, varies=True), size_along(self.k, self.refund_k, t)
        along = along_response(t, k, self.m, name=f"k of {self.name}", cycle=cycle)
        return _Value(name=self.name, columns=self.columns, own_penalties=no_penalties(1), **along)


@dataclass(frozen=True, kw_only=True)
class _Value(TermDesign):
    centre: Curves | None = None
    """One curve, which is subtracted from all curves."""

    separable: ClassVar[bool] = False

    def about(self, means: Mapping[str, Any]) -> TermDesign:
        """With the mean training curve as centre."""
        return replace(self, centre=means[self.columns[0]])

    def _centred(self, values: FloatArray, t: FloatArray) -> FloatArray:
        return values if self.centre is None else values - values_at(self.centre, t)[0]

    def features(self, records: Records, t: FloatArray | None = None) -> FloatArray:
        assert t is not None
        x = records.curves(self.columns[0])
        refuse_beyond(x.grid, t, self.columns[0])
        return self._centred(values_at(x, t), t)[:, :, None]

    def features_at(self, records: Records, record: IntArray, t: FloatArray) -> FloatArray:
        x = records.curves(self.columns[0])
        refuse_beyond(x.grid, t, self.columns[0])
        right, share = _neighbours(x.grid, t)
        values = x.values[record, right - 1] * (1 - share) + x.values[record, right] * share
        return self._centred(np.asarray(values), t)[:, None]


def values_at(x: Curves, t: FloatArray) -> FloatArray:
    """Curves at points, linearly between those of their grid, shape (n, T)."""
    if np.array_equal(x.grid, t):
        return x.values
    right, share = _neighbours(x.grid, t)
    return np.asarray(x.values[:, right - 1] * (1 - share) + x.values[:, right] * share)


def _neighbours(grid: FloatArray, t: FloatArray) -> tuple[IntArray, FloatArray]:
    """Of each point the grid point to its right, and the share of the way to it from the one before."""
    right = np.clip(np.searchsorted(grid, t), 1, grid.size - 1)
    return right, (t - grid[right - 1]) / (grid[right] - grid[right - 1])


def refuse_beyond(grid: FloatArray, t: FloatArray, name: str) -> None:
    """Refuse points of the response beyond the curves; raises InputError."""
    slack = 1e-6 * float(grid[-1] - grid[0])
    if t.min() < grid[0] - slack or t.max() > grid[-1] + slack:
        raise InputError(
            f"{name} must cover the domain of the response, [{t.min():g}, {t.max():g}], to act at the same t, "
            f"got [{grid[0]:g}, {grid[-1]:g}]. Use ff() for curves on another domain"
        )
