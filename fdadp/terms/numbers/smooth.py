"""A smooth function of one number, or of several: ``f(z, t)``, ``f(z)``, ``f(z₁, z₂, t)``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from fdadp._common.argument_checks import whole
from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.functional.splines.diagonal_margins import SmoothMargin
from fdadp.functional.splines.mgcv_bases import Order, covariate_margin
from fdadp.terms.records import Records, TrainingSummary, row_blocks
from fdadp.terms.spec import TermDesign, TermSpec, along_response, margin_rows, own_norm, size_along, unsized
from fdadp.terms.times_column import is_numeric, multiplied


@dataclass(frozen=True)
class Smooth(TermSpec):
    """Effect ``f(z, t)`` of a number that sums to zero over the training rows at each t; of a scalar response ``f(z)``.

    Parameters
    ----------
    column : str
        Column of numbers.
    k : int or (int, int), optional
        Number of functions of z, before the constraint, and of B-splines along the response; one number is of z.
        Default: 8, and 15 along the response, or as many as it has points. ``"refund"`` takes 8 and 5. Where the effect
        is the same at all t: 10, as in mgcv.
    bs : {"tp", "ps", "cr", "cc"}
        Basis in z: thin plate, P-spline, cubic regression spline, cyclic.
    m : int or pair, optional
        Orders as in mgcv: for z and for the response, each a number or, of P-splines, a pair of degree less one and
        order of differences; one number is for both. Default: 2 and 1, refund's. Where the effect is the same at all
        t, of z alone.
    by : str, optional
        Column that multiplies the effect. Of numbers: then there is no constraint, and ``f(z, t)`` is the slope. Of
        labels: then each level has a function with smoothing parameters of its own.
    constant : bool
        The same at all t, refund's ``c(s(z))``.
    period : (float, float), optional
        With ``bs="cc"``, the two ends that meet. Default: the least and the largest value.

    References
    ----------
    Wood (2017), Generalized Additive Models, chapter 5, doi:10.1201/9781315370279. refund's ``pffr``: ``s(z)``, which
    is mgcv's ``ti(z, t, mc = c(TRUE, FALSE))``.

    Examples
    --------
    >>> from fdadp import terms
    >>> terms.s("age", k=8, bs="cr").name
    's(age)'
    """

    column: str
    k: int | tuple[int, int] | Literal["refund"] | None = None
    bs: str = "tp"
    m: Any = None
    by: str | None = None
    constant: bool = False
    period: tuple[float, float] | None = None

    function = "s"

    def fixed(self, seen: TrainingSummary, t: FloatArray | None) -> TermDesign:
        """A margin of mgcv's in z; sums to zero unless a number multiplies it."""
        z = seen.observed_numbers(self.column)
        varies = t is not None and not self.constant
        centred = self.by is None or not is_numeric(seen, self.by)
        k, m, k_t, m_t = self._sizes(t if varies else None)
        over_z = covariate_margin(
            z, k, self.bs, m, name=self.name, tensor=varies, sums_to_zero=varies and centred, period=self.period
        )
        beside: dict[str, Any] = {"constant": not varies, "cycle": seen.t_cycle}
        along = along_response(t, k_t, m_t, values=True, name=f"k of {self.name}", **beside)
        row_sums, total = np.empty(z.size), np.zeros(len(over_z.to_basis))
        for part in row_blocks(z.size):  # whose functions stay in a core's cache
            rows = over_z.basis.design(z[part])
            row_sums[part] = over_z.row_sums_of(rows)
            total += rows.sum(axis=0)
        norm = own_norm(row_sums, seen, **along)
        if centred and not varies:
            over_z = over_z.less(total / z.size)
        design = _SmoothDesign(
            name=f"s({self.column})",
            columns=(self.column,),
            over_z=over_z,
            own_norm=norm,
            own_penalties=over_z.eigenvalues[None] * norm**2 / over_z.penalty_norm,
            range=(float(z.min()), float(z.max())),
            **along,
        )
        return multiplied(design, seen, self.by, name=self.name)

    def with_refund_sizes(self) -> Smooth:
        """The same with refund's numbers of functions, where it does not give its own."""
        own: Any = 8 if unsized(self.k) else self.k
        return self if self.constant or isinstance(own, tuple | list) else replace(self, k=(own, 5))

    def _sizes(self, t: FloatArray | None) -> tuple[int, Order, int, tuple[int, int]]:
        if t is None:
            if isinstance(self.k, tuple):
                raise InputError(
                    f"k of {self.name} must be one number where the effect is the same at all t, got {self.k}"
                )
            return 10 if unsized(self.k) else self.k, self.m, 5, (1, 1)  # type: ignore[return-value]
        pairs = [("k", None if unsized(self.k) else self.k), ("m", self.m)]
        for argument, value in pairs:
            if isinstance(value, (tuple, list)) and len(value) != 2:
                raise InputError(
                    f"{argument} of {self.name} must be a number or a pair, for z and for t, got {value!r}"
                )
            if not isinstance(value, (tuple, list)) and value is not None:
                whole(value, f"{argument} of {self.name}", least=None)
        own: Any = self.with_refund_sizes().k
        k, k_t = (
            own if isinstance(self.k, tuple | list) or self.k == "refund" else (own[0], size_along(None, own[1], t))
        )
        m, m_t = self.m if isinstance(self.m, (tuple, list)) else (2, 1) if self.m is None else (self.m, self.m)
        return k, tuple(m) if isinstance(m, list) else m, k_t, (m_t, m_t) if isinstance(m_t, int) else tuple(m_t)


@dataclass(frozen=True, kw_only=True)
class _SmoothDesign(TermDesign):
    over_z: SmoothMargin
    range: tuple[float, float]

    @property
    def own_margins(self) -> tuple[SmoothMargin, ...]:
        return (self.over_z,)

    def features(self, records: Records, t: FloatArray | None = None) -> FloatArray:
        return margin_rows(self.over_z, records.numbers(self.columns[0]))

    @property
    def axes(self) -> dict[str, FloatArray | tuple[Any, ...]]:
        return {self.columns[0]: np.linspace(*self.range, 100)}

    def effect(self, *points: Any) -> FloatArray:
        return self.over_z.design(points[0])


# A smooth function of several numbers.


@dataclass(frozen=True)
class TensorSmooth(TermSpec):
    """Effect ``f(z₁, z₂, t)`` of numbers in units of their own that sums to zero over the training rows at each t.

    Parameters
    ----------
    covariates : tuple of str
        Columns of numbers.
    k : int or tuple of int
        Number of functions of each, and, where one more is given, of B-splines along the response (5).
    bs : str or tuple of str
        Basis in each: see :class:`fdadp.terms.numbers.smooth.Smooth`.
    m : tuple, optional
        Orders of each, and, where one more is given, of the response ((2, 1)).
    by : str, optional
        Column of numbers or of labels that multiplies the effect.
    constant : bool
        The same at all t, refund's ``c(te(z1, z2))``.

    References
    ----------
    Wood (2006), Low-rank scale-invariant tensor product smooths, doi:10.1111/j.1541-0420.2006.00574.x; mgcv's ``te``,
    for scalar responses and ``constant`` with the same numbers. refund's ``te(z1, z2)`` sums to zero over all rows and
    t together, not at each t.
    """

    covariates: tuple[str, ...]
    k: int | tuple[int, ...] = 5
    bs: str | tuple[str, ...] = "cr"
    m: tuple[Any, ...] | None = None
    by: str | None = None
    constant: bool = False

    function = "te"

    def fixed(self, seen: TrainingSummary, t: FloatArray | None) -> TermDesign:
        """Products of margins of mgcv's; they sum to zero unless a number multiplies them."""
        if len(self.covariates) < 2 or len(set(self.covariates)) < len(self.covariates):
            raise InputError(f"{self.name} must have two or more different columns; for one use s()")
        ks, bases, orders = (
            self._each(value, argument) for value, argument in ((self.k, "k"), (self.bs, "bs"), (self.m, "m"))
        )
        values = [seen.observed_numbers(column) for column in self.covariates]
        count = len(values)
        margins = tuple(
            covariate_margin(z, k, bs, m, name=self.name, tensor=True)
            for z, k, bs, m in zip(values, ks[:count], bases[:count], orders[:count], strict=True)
        )
        k_t, m_t = ks[-1] if len(ks) > count else 5, orders[-1] if len(orders) > count else (2, 1)
        m_t = (m_t, m_t) if isinstance(m_t, int) else (2, 1) if m_t is None else m_t
        beside: dict[str, Any] = {"constant": self.constant, "cycle": seen.t_cycle}
        along = along_response(t, k_t, m_t, values=True, name=f"k of {self.name}", **beside)
        row_sums = np.prod([margin.row_sums(z) for margin, z in zip(margins, values, strict=True)], axis=0)
        norm = own_norm(row_sums, seen, **along)
        penalties, shift = _penalties(margins) * norm**2, None
        if self.by is None or not is_numeric(seen, self.by):
            penalties, shift = penalties[:, 1:], _products(margins, values)[:, 1:].mean(axis=0)
        design = _Functions(
            name=f"te({', '.join(self.covariates)})",
            columns=self.covariates,
            margins=margins,
            shift=shift,
            own_norm=norm,
            own_penalties=penalties,
            ranges=tuple((float(z.min()), float(z.max())) for z in values),
            **along,
        )
        return multiplied(design, seen, self.by, name=self.name)

    def _each(self, value: Any, argument: str) -> list[Any]:
        count = len(self.covariates)
        if not isinstance(value, (tuple, list)):
            return [value] * count
        if len(value) not in (count, count + 1):
            raise InputError(
                f"{argument} of {self.name} must have one entry for each of {', '.join(self.covariates)}, "
                f"and may have one for t, got {value!r}"
            )
        return list(value)


def te(*covariates: str, **options: Any) -> TensorSmooth:
    """:class:`~fdadp.terms.numbers.smooth.TensorSmooth` of columns: ``te("z1", "z2", k=(5, 5))``.

    Examples
    --------
    >>> from fdadp import terms
    >>> terms.te("height", "weight").name
    'te(height, weight)'
    """
    return TensorSmooth(covariates, **options)


@dataclass(frozen=True, kw_only=True)
class _Functions(TermDesign):
    margins: tuple[SmoothMargin, ...]
    shift: FloatArray | None
    ranges: tuple[tuple[float, float], ...]

    def _rows(self, values: list[FloatArray]) -> FloatArray:
        rows = _products(self.margins, values)
        return rows if self.shift is None else rows[:, 1:] - self.shift

    @property
    def from_mgcv(self) -> FloatArray:
        turn: FloatArray = np.eye(1)
        for margin in self.margins:
            turn = np.asarray(np.kron(turn, margin.from_mgcv))
        if self.shift is not None:  # they sum to zero: mgcv reflects the means of its columns onto the first one
            first = np.prod([m.design(np.array(r[:1]))[0, 0] for m, r in zip(self.margins, self.ranges, strict=True)])
            means = np.r_[first, self.shift] @ turn
            turn = (turn @ np.linalg.qr(means[:, None], mode="complete")[0][:, 1:])[1:]
        return np.asarray(np.kron(turn, self.along.from_mgcv))

    def features(self, records: Records, t: FloatArray | None = None) -> FloatArray:
        return self._rows([records.numbers(column) for column in self.columns])

    @property
    def axes(self) -> dict[str, FloatArray | tuple[Any, ...]]:
        return {column: np.linspace(*ends, 40) for column, ends in zip(self.columns, self.ranges, strict=True)}

    def effect(self, *points: Any) -> FloatArray:
        return self._rows([grid.ravel() for grid in np.meshgrid(*points, indexing="ij")])


def _penalties(margins: tuple[SmoothMargin, ...]) -> FloatArray:
    """Diagonals of the penalty of each margin in the products, shape (d, K₁ K₂ ...)."""
    sizes = tuple(margin.size for margin in margins)
    rows = []
    for i, margin in enumerate(margins):
        own = np.expand_dims(margin.eigenvalues, tuple(range(1, len(sizes) - i))) / margin.penalty_norm
        rows.append(np.broadcast_to(own, sizes).ravel())
    return np.array(rows)


def _products(margins: tuple[SmoothMargin, ...], values: list[FloatArray]) -> FloatArray:
    """Products of a function of each margin, first slowest, shape (n, K₁ K₂ ...)."""
    rows = margin_rows(margins[0], values[0])
    for margin, z in zip(margins[1:], values[1:], strict=True):
        rows = (rows[:, :, None] * margin_rows(margin, z)[:, None, :]).reshape(len(rows), -1)
    return rows
