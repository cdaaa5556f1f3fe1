"""Numbers times curves: 1 (a constant and the mean curve ``μ(t)``), one number, ``x_i β(t)``, or several together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.functional.splines.bsplines import BSplines
from fdadp.functional.splines.diagonal_margins import diagonalised
from fdadp.terms.records import Records, TrainingSummary
from fdadp.terms.spec import TermDesign, TermSpec, along_response, no_penalties, own_cycle, size_along


@dataclass(frozen=True, kw_only=True)
class _Ones(TermDesign):
    """The feature 1."""

    def features(self, records: Records, t: FloatArray | None = None) -> FloatArray:
        return np.ones((records.n, 1))


def ones(name: str) -> TermDesign:
    """The feature 1, the same at all t."""
    return _Ones(name=name, columns=(), own_penalties=no_penalties(1))


@dataclass(frozen=True)
class Intercept(TermSpec):
    """A constant."""

    name = "(Intercept)"
    columns = ()

    def fixed(self, seen: TrainingSummary, t: FloatArray | None) -> TermDesign:
        """The feature 1, the same at all t."""
        return ones(self.name)


@dataclass(frozen=True)
class MeanCurve(TermSpec):
    """The mean curve ``μ(t)`` less its mean: refund's ``s(t, bs="ps", k=20, m=c(2, 1))``.

    Parameters
    ----------
    k : int
        Number of B-splines.
    m : (int, int)
        Degree less one, and order of the difference penalty.
    """

    k: int = 20
    m: tuple[int, int] = (2, 1)

    name = "s(t)"
    columns = ()

    def fixed(self, seen: TrainingSummary, t: FloatArray | None) -> TermDesign:
        """A P-spline that sums to zero over the points of the response."""
        return _Ones(
            name=self.name,
            columns=(),
            own_penalties=no_penalties(1),
            **along_response(t, self.k, self.m, centred=True, name="k of the mean curve", cycle=seen.t_cycle),
        )


@dataclass(frozen=True)
class Linear(TermSpec):
    """Effect ``x β(t)`` of a number; of a scalar response ``x β``.

    Parameters
    ----------
    column : str
        Column of numbers.
    k : int, optional
        Number of B-splines along the response. Default: 15, or as many as the response has points. ``"refund"`` takes
        5.
    m : (int, int)
        Their degree less one, and the order of the difference penalty.
    constant : bool
        The same at all t, refund's ``c(x)``.
    period : float, optional
        Makes β periodic in t, as ``t_period`` of :class:`fdadp.FunctionalRegression` does for all terms.

    References
    ----------
    refund's ``pffr``: ``s(t, by = x, bs = "ps", k = 5, m = c(2, 1))``; Scheipl, Staicu & Greven (2015), Functional
    additive mixed models, doi:10.1080/10618600.2014.901914.

    Examples
    --------
    >>> from fdadp import terms
    >>> terms.linear("age").name
    'age'
    """

    column: str
    k: int | Literal["refund"] | None = None
    m: tuple[int, int] = (2, 1)
    constant: bool = False
    period: float | None = None

    refund_k = 5

    def fixed(self, seen: TrainingSummary, t: FloatArray | None) -> TermDesign:
        """One feature, the number."""
        seen.numbers_of(self.column)
        cycle = own_cycle(self.period, self.name, seen, varies=t is not None and not self.constant)
        beside: dict[str, Any] = {"constant": self.constant, "cycle": cycle}
        along = along_response(t, size_along(self.k, self.refund_k, t), self.m, name=f"k of {self.name}", **beside)
        return NumberDesign(name=self.name, columns=self.columns, own_penalties=no_penalties(1), **along)


@dataclass(frozen=True, kw_only=True)
class NumberDesign(TermDesign):
    """A number, less `centre`."""

    centre: float = 0.0

    def about(self, means: Mapping[str, Any]) -> TermDesign:
        """With the mean training number as centre, where the effect varies along the response."""
        return self if self.along.size == 1 else replace(self, centre=means[self.columns[0]])

    def features(self, records: Records, t: FloatArray | None = None) -> FloatArray:
        """The number less the centre, shape (n, 1)."""
        return records.numbers(self.columns[0])[:, None] - self.centre


# Numbers times curves that share one smoothing parameter: β_0(t) + Σ_j x_ij β_j(t).


INTERCEPT = "(intercept)"
"""Name of the mean curve among the curves of the numbers."""


@dataclass(frozen=True)
class ScalarsTogether(TermSpec):
    """Effects ``β_0(t) + Σ_j x_j β_j(t)`` of numbers on a curve, refund's ``fosr``.

    All curves β are cubic B-splines with the penalty ``λ Σ_j ∫ β_j''(t)² dt``. β_0 is the model's mean, which needs no
    other: ``FunctionalRegression([terms.fosr(("case", "female"))], intercept=False)``.

    Parameters
    ----------
    numbers : tuple of str
        Columns of numbers.
    k : int
        Number of B-splines.
    intercept : bool
        Whether β_0 is among the curves, the first.

    References
    ----------
    Reiss, Huang & Mennes (2010), Fast function-on-scalar regression with penalized basis expansions,
    doi:10.2202/1557-4679.1246.

    Examples
    --------
    >>> from fdadp import terms
    >>> terms.fosr(("age", "weight")).columns
    ('age', 'weight')
    """

    numbers: tuple[str, ...]
    k: int = 15
    intercept: bool = True

    function = "fosr"

    def fixed(self, seen: TrainingSummary, t: FloatArray | None) -> TermDesign:
        """One feature a number, and the feature 1."""
        if t is None:
            raise InputError(f"{self.name} must have a response that is a curve; for a scalar response use linear()")
        if isinstance(self.numbers, str) or not (self.numbers or self.intercept):
            raise InputError(f"numbers of fosr() must be a tuple of columns, got {self.numbers!r}")
        for column in self.numbers:
            seen.numbers_of(column)
        splines = BSplines.clamped(float(t.min()), float(t.max()), self.k, name=f"k of {self.name}")
        along = diagonalised(splines, np.eye(splines.n_basis), splines.derivative_penalty(2), 2)
        return _Together(
            name=self.name,
            columns=self.columns,
            along=along,
            along_norm=float(np.sqrt(along.penalty_norm)),  # the penalty as it is, not on mgcv's scale
            own_penalties=no_penalties(len(self.numbers) + self.intercept),
            intercept=self.intercept,
        )


@dataclass(frozen=True, kw_only=True)
class _Together(TermDesign):
    intercept: bool

    def features(self, records: Records, t: FloatArray | None = None) -> FloatArray:
        ones = [np.ones(records.n)] if self.intercept else []
        return np.column_stack([*ones, *(records.numbers(column) for column in self.columns)])

    @property
    def axes(self) -> dict[str, FloatArray | tuple[Any, ...]]:
        return {"number": ((INTERCEPT,) if self.intercept else ()) + self.columns}

    def effect(self, *points: Any) -> FloatArray:
        known = list(self.axes["number"])
        return np.eye(len(known))[[known.index(name) for name in points[0]]]
