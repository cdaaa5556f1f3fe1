"""A curve that acts through an integral, at all t or up to t: ``∫ X_i(s) β(s, t) ds``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from fdadp._common.argument_checks import several
from fdadp._common.loaded_later import kernel
from fdadp._common.typing import BoolArray, FloatArray, IntArray
from fdadp.errors import InputError
from fdadp.functional.quadrature import quadrature_weights
from fdadp.functional.splines.diagonal_margins import SmoothMargin
from fdadp.functional.tables.curve_inputs import refuse_other_axis
from fdadp.terms.cycles import Cycle
from fdadp.terms.records import Records, TrainingSummary, row_blocks
from fdadp.terms.spec import TermDesign, TermSpec, along_response, size_along, unsized
from fdadp.terms.times_column import multiplied

Limits = Callable[[FloatArray, FloatArray], BoolArray]

NUMBERS_AT_A_TIME = 2**21
"""Of curves cut off at points of the response."""

LIMITS: dict[str, Limits] = {"s<t": np.less, "s<=t": np.less_equal}


@dataclass(frozen=True)
class FunctionalLinear(TermSpec):
    """Effect ``∫ X(s) β(s, t) ds`` of a curve on a curve, refund's ``ff``.

    Parameters
    ----------
    column : str
        Column of curves.
    k : (int, int), optional
        Numbers of B-splines over s and over t. Default: 5 over s, and 15 over t, or as many as the response has points.
        ``"refund"`` takes 5 and 5.
    m : pair of (int, int)
        Of each, degree less one and order of the difference penalty.
    rule : {"trapezoid", "simpson", "riemann", "simpson_legacy"}
        See :func:`fdadp.functional.quadrature.quadrature_weights`; ``"simpson_legacy"`` is refund's default.
    limits : {"s<t", "s<=t"} or callable, optional
        Where the integral goes for each t (a historical model); a function of arrays s and t that returns where.
        Refund then takes Riemann sums, and so does ``rule="simpson_legacy"``.
    by : str, optional
        Column of numbers that multiplies the effect, or of labels: a surface for each level, with smoothing parameters
        of its own.
    period : float, optional
        Makes β periodic in s: s and s + period are the same point, 24 for hours of a day. β(·, t) is then a periodic
        spline, mgcv's ``bs = "cc"`` with k + 1 even knots, whose penalty is the integrated squared second derivative,
        whatever the order in `m`. The integral goes once round, from the last point to the first too. New curves may
        begin at another s. For t see ``t_period`` of :class:`fdadp.FunctionalRegression`.

    References
    ----------
    Ivanescu, Staicu, Scheipl & Greven (2015), Penalized function-on-function regression,
    doi:10.1007/s00180-014-0548-4; Malfait & Ramsay (2003), The historical functional linear model,
    doi:10.2307/3316063.

    Examples
    --------
    >>> from fdadp import terms
    >>> terms.ff("X", k=(10, 8), limits="s<=t").name
    'ff(X)'
    """

    column: str
    k: tuple[int, int] | Literal["refund"] | None = None
    m: tuple[tuple[int, int], tuple[int, int]] = ((2, 1), (2, 1))
    rule: str = "trapezoid"
    limits: str | Limits | None = None
    by: str | None = None
    period: float | None = None

    function = "ff"
    refund_k = (5, 5)

    def fixed(self, seen: TrainingSummary, t: FloatArray | None) -> TermDesign:
        """P-splines over s and t, with coefficients as values at even points."""
        if t is None:
            raise InputError(f"{self.name} must have a response that is a curve; for a scalar response use lf()")
        grid = seen.curves_of(self.column).grid
        k_s, k_t = several(self.refund_k if unsized(self.k) else self.k, 2, f"k of {self.name}")
        k_t = size_along(None, k_t, t) if self.k is None else k_t
        m_s, m_t = (several(m, 2, f"m of {self.name}") for m in several(self.m, 2, f"m of {self.name}"))
        along = along_response(t, k_t, m_t, values=True, name=f"k of {self.name}", cycle=seen.t_cycle)
        used: FloatArray = grid
        if self.limits is not None:
            if isinstance(self.limits, str):
                refuse_other_axis(grid, t, self.column)
            within = limits_of(self.limits)
            used = grid[within(grid[None, :], np.unique(t)[:, None]).any(axis=0)]
            if used.size < 2:
                raise InputError(
                    f"limits of {self.name} must leave points of {self.column} for some t, got {used.size}"
                )
        over_s = _over_s(self, used, k_s, m_s, values=True)
        fields = _fields(self, over_s, used) | {"grid": grid, **along}
        design = Integral(**fields) if self.limits is None else _Historical(limits=self.limits, **fields)
        return design if self.by is None else multiplied(design, seen, self.by, name=self.name)


def _over_s(
    spec: FunctionalLinear | LinearFunctional, points: FloatArray, k: int, m: tuple[int, int], *, values: bool = False
) -> SmoothMargin:
    """P-splines over points of s, or periodic splines."""
    name = f"k of {spec.name}"
    cycle = Cycle.of(spec.period, f"period of {spec.name}")
    if cycle is None:
        return SmoothMargin.pspline(points, k, m, values=values, name=name)
    return cycle.margin(points, f"the grid of {spec.column}", k, m[0] + 1, name=name)


def _fields(spec: FunctionalLinear | LinearFunctional, over_s: SmoothMargin, points: FloatArray) -> dict[str, Any]:
    """Fields of :class:`Integral`: bases over s, with their penalty on mgcv's scale over points of s."""
    norm = over_s.row_norm(points)
    own = {"name": f"{spec.function}({spec.column})", "columns": (spec.column,), "rule": spec.rule, "over_s": over_s}
    own["period"] = None if spec.period is None else float(spec.period)
    return own | {"own_norm": norm, "own_penalties": over_s.eigenvalues[None] * norm**2 / over_s.penalty_norm}


def limits_of(limits: str | Limits) -> Limits:
    """The function of arrays s and t that limits stand for; raises InputError."""
    if callable(limits):
        return limits
    if limits not in LIMITS:
        raise InputError(f"limits must be 's<t', 's<=t' or a function of (s, t), got {limits!r}")
    return LIMITS[limits]


@dataclass(frozen=True, kw_only=True)
class Integral(TermDesign):
    """Features ``∫ X(s) B_l(s) ds`` of curves.

    Attributes
    ----------
    over_s : SmoothMargin
        The functions B_l.
    grid : ndarray of shape (S,)
        That of the training curves.
    rule : str
    uneven_simpson : bool
        See :func:`fdadp.functional.quadrature.quadrature_weights`.
    centre : ndarray of shape (S,) or None
        Curve that is subtracted from all curves first.
    period : float or None
        Of s, where it is a circle.
    """

    over_s: SmoothMargin
    grid: FloatArray
    rule: str
    uneven_simpson: bool = False
    centre: FloatArray | None = None
    period: float | None = None

    def about(self, means: Mapping[str, Any]) -> TermDesign:
        """With the mean training curve as centre."""
        return replace(self, centre=means[self.columns[0]].values[0])

    @property
    def own_margins(self) -> tuple[SmoothMargin, ...]:
        """The one over s."""
        return (self.over_s,)

    def _weighted(self, records: Records, rule: str) -> tuple[FloatArray, FloatArray, FloatArray]:
        x = records.curves(self.columns[0], self.grid, self.period)
        weights = quadrature_weights(x.grid, rule, uneven_simpson=self.uneven_simpson, period=self.period)
        values = x.values
        if self.centre is not None:
            values = values - np.interp(x.grid, self.grid, self.centre, period=self.period)
        return values, x.grid, self.over_s.design(x.grid) * weights[:, None]

    def features(self, records: Records, t: FloatArray | None = None) -> FloatArray:
        """Integrals, each row by itself bit for bit, shape (n, q)."""
        values, s, weighted = self._weighted(records, self.rule)
        return windowed(values, weighted, np.ones((1, s.size), dtype=bool))[:, 0]

    def followed(self, records: Records) -> float:
        """Share of the variance of curves about their mean that the functions B_l can follow; NaN without variance.

        A curve acts through its integrals with these functions alone: an effect cannot see the rest of it.
        """
        x = records.curves(self.columns[0], self.grid, self.period)
        roots = np.sqrt(quadrature_weights(x.grid, "trapezoid", period=self.period))
        mean, onto = x.values.mean(axis=0), np.linalg.qr(self.over_s.design(x.grid) * roots[:, None])[0]
        total = inside = 0.0
        for rows in row_blocks(len(x.values)):
            values = (x.values[rows] - mean) * roots
            scores = values @ onto
            total, inside = total + float(np.vdot(values, values)), inside + float(np.vdot(scores, scores))
        return inside / total if total > 0 else np.nan

    @property
    def axes(self) -> dict[str, FloatArray | tuple[Any, ...]]:
        """Points of s, of a circle once round."""
        end = self.grid[-1] if self.period is None else self.grid[0] + self.period
        return {"s": np.linspace(self.grid[0], end, 40)}

    @property
    def periods(self) -> dict[str, float]:
        """That of s, and that along the response."""
        return super().periods if self.period is None else {**super().periods, "s": self.period}

    def effect(self, *points: Any) -> FloatArray:
        """The functions B_l at points of s."""
        return self.over_s.design(points[0])


@dataclass(frozen=True, kw_only=True)
class _Historical(Integral):
    limits: str | Limits

    separable: ClassVar[bool] = False

    def features(self, records: Records, t: FloatArray | None = None) -> FloatArray:
        assert t is not None
        rule = "riemann" if self.rule == "simpson_legacy" else self.rule
        values, s, weighted = self._weighted(records, rule)
        inside = np.asarray(limits_of(self.limits)(s[None, :], t[:, None]), dtype=bool)
        return windowed(values, weighted, np.broadcast_to(inside, (t.size, s.size)))

    def features_at(self, records: Records, record: IntArray, t: FloatArray) -> FloatArray:
        rule = "riemann" if self.rule == "simpson_legacy" else self.rule
        values, s, weighted = self._weighted(records, rule)
        out = np.empty((len(t), weighted.shape[1]))
        step = max(NUMBERS_AT_A_TIME // s.size, 1)
        for start in range(0, len(t), step):
            some = slice(start, start + step)
            inside = limits_of(self.limits)(s[None, :], t[some, None])
            out[some] = (values[record[some]] * inside) @ weighted
        return out

    def acts(self, axes: Mapping[str, Any]) -> BoolArray | None:
        return np.asarray(limits_of(self.limits)(axes["s"][:, None], axes["t"][None, :]), dtype=bool)


# A curve that acts through an integral, on a number: ``∫ X_i(s) β(s) ds``.


@dataclass(frozen=True)
class LinearFunctional(TermSpec):
    """Effect ``∫ X(s) β(s) ds`` of a curve on a number, refund's ``lf``.

    Parameters
    ----------
    column : str
        Column of curves.
    k : int
        Number of B-splines; the penalty makes up for too many. Of 10, 15, 20, 30 and 40, twenty are the fewest that
        miss little of peaks as wide as a tenth of the domain (benchmarks/terms/lf_size.py).
    m : (int, int)
        Their degree less one, and the order of the difference penalty.
    rule : {"trapezoid", "simpson", "riemann", "simpson_legacy"}
        See :func:`fdadp.functional.quadrature.quadrature_weights`; ``"simpson_legacy"`` is refund's default, which
        ``lf`` keeps on uneven grids.
    by : str, optional
        Column of numbers that multiplies the effect, or of labels: a function for each level, with a smoothing
        parameter of its own.
    period : float, optional
        Makes β periodic, as in :class:`~fdadp.terms.curves.functional_linear.FunctionalLinear`.

    References
    ----------
    Goldsmith, Bobb, Crainiceanu, Caffo & Reich (2011), Penalized functional regression,
    doi:10.1198/jcgs.2010.10007.

    Examples
    --------
    >>> from fdadp import terms
    >>> terms.lf("X", k=30).name
    'lf(X)'
    """

    column: str
    k: int = 20
    m: tuple[int, int] = (2, 2)
    rule: str = "trapezoid"
    by: str | None = None
    period: float | None = None

    function = "lf"

    def fixed(self, seen: TrainingSummary, t: FloatArray | None) -> TermDesign:
        """P-splines over s, on mgcv's coordinates of ``s(..., by=)``."""
        if t is not None:
            raise InputError(f"{self.name} must have a response that is a number; for curves use ff()")
        grid = seen.curves_of(self.column).grid
        over_s = _over_s(self, grid, self.k, several(self.m, 2, f"m of {self.name}"))
        design = Integral(grid=grid, uneven_simpson=True, **_fields(self, over_s, grid))
        return design if self.by is None else multiplied(design, seen, self.by, name=self.name)


# Sums of a curve's values over windows, such as those that differ between points of the response.


def windowed(values: FloatArray, weighted: FloatArray, inside: BoolArray) -> FloatArray:
    """Sums ``Σ_s x(s) B_j(s)`` over the points s inside each of T windows, each row by itself bit for bit.

    From one window to the next only what comes in or goes out is added or taken off.

    Parameters
    ----------
    values : ndarray of shape (m, S)
    weighted : ndarray of shape (S, q)
        Functions B times quadrature weights.
    inside : bool ndarray of shape (T, S)

    Returns
    -------
    ndarray of shape (m, T, q)
    """
    steps = np.diff(inside.astype(np.int8), axis=0, prepend=np.zeros((1, inside.shape[1]), dtype=np.int8))
    at_t, at_s = np.nonzero(steps)
    ends = np.searchsorted(at_t, np.arange(len(inside) + 1))
    out = np.empty((len(values), len(inside), weighted.shape[1]))
    signed = np.ascontiguousarray(weighted[at_s] * steps[at_t, at_s][:, None])
    _sum_windows(np.ascontiguousarray(values), signed, np.ascontiguousarray(at_s), ends, out)
    return out


@kernel("f8[:,::1], f8[:,::1], i8[::1], i8[::1], f8[:,:,::1]")
def _sum_windows(values, signed, at, ends, out):  # type: ignore[no-untyped-def]
    """Four rows side by side, so that the functions are read once for all four; a row's sums go in a fixed order."""
    last = len(values) - 1
    sums = np.empty((4, signed.shape[1]))
    for i in range(0, len(values), 4):
        i1, i2, i3 = min(i + 1, last), min(i + 2, last), min(i + 3, last)
        for j in range(signed.shape[1]):
            sums[0, j], sums[1, j], sums[2, j], sums[3, j] = 0.0, 0.0, 0.0, 0.0
        for t in range(ends.size - 1):
            for c in range(ends[t], ends[t + 1]):
                s = at[c]
                x0, x1, x2, x3 = values[i, s], values[i1, s], values[i2, s], values[i3, s]
                for j in range(signed.shape[1]):
                    function = signed[c, j]
                    sums[0, j] += x0 * function
                    sums[1, j] += x1 * function
                    sums[2, j] += x2 * function
                    sums[3, j] += x3 * function
            for row in range(min(4, len(values) - i)):
                for j in range(signed.shape[1]):
                    out[i + row, t, j] = sums[row, j]
