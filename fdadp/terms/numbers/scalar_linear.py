"""A number times a curve: ``x_i β(t)``; or times a constant."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from fdadp._common.typing import FloatArray
from fdadp.functional.tables.records import Records, TrainingSummary
from fdadp.terms.spec import TermDesign, TermSpec, along_response, no_penalties, size_along


@dataclass(frozen=True)
class Linear(TermSpec):
    """Effect ``x β(t)`` of a number; of a scalar response ``x β``.

    Parameters
    ----------
    column : str
        Column of numbers.
    k : int, optional
        Number of B-splines along the response. Default: 15, or as many as the response has points; ``"refund"``: 5.
    m : (int, int)
        Their degree less one, and the order of the difference penalty.
    constant : bool
        The same at all t, refund's ``c(x)``.

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

    refund_k = 5

    @property
    def name(self) -> str:
        """As in a formula."""
        return f"c({self.column})" if self.constant else self.column

    @property
    def columns(self) -> tuple[str, ...]:
        """The column."""
        return (self.column,)

    def fixed(self, seen: TrainingSummary, t: FloatArray | None) -> TermDesign:
        """One feature, the number."""
        seen.numbers_of(self.column)
        along = along_response(
            t, size_along(self.k, self.refund_k, t), self.m, constant=self.constant, name=f"k of {self.name}"
        )
        return NumberDesign(name=self.name, columns=self.columns, own_penalties=no_penalties(1), **along)


@dataclass(frozen=True, kw_only=True)
class NumberDesign(TermDesign):
    """A number, less `centre`."""

    centre: float = 0.0

    def about(self, seen: TrainingSummary) -> TermDesign:
        """With the mean training number as centre, where the effect varies along the response."""
        return self if self.along.size == 1 else replace(self, centre=seen.mean_of(self.columns[0]))

    def features(self, records: Records, t: FloatArray | None = None) -> FloatArray:
        """The number less the centre, shape (n, 1)."""
        return records.numbers(self.columns[0])[:, None] - self.centre
