"""A curve for each level of a factor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.functional.tables.records import Records, TrainingSummary
from fdadp.terms.levels import Levels
from fdadp.terms.spec import TermDesign, TermSpec, along_response, no_penalties, size_along

CODINGS = ("treatment", "full", "levels")

MANY = 20
"""Levels of a factor that may be more than half as many as rows."""


@dataclass(frozen=True)
class Factor(TermSpec):
    """Effect of the level of a factor: a curve over the response for each; of a scalar response a number.

    Parameters
    ----------
    column : str
        Column of labels, or of whole numbers that are codes.
    coding : {"treatment", "full", "levels"}
        ``"treatment"``: curves of differences from the first level. ``"full"``: a curve for every level, for models
        without an intercept. ``"levels"``: a curve for every level, each with mean zero over t, as refund's ``pffr``
        has it: there levels cannot differ in their means over t.
    k : int, optional
        Number of B-splines along the response. Default: 15, or as many as the response has points; ``"refund"``: 5.
    m : (int, int)
        Their degree less one, and the order of the difference penalty.
    constant : bool
        The same at all t, refund's ``c(region)``.

    References
    ----------
    refund's ``pffr``: ``s(t, by = region, bs = "ps", k = 5, m = c(2, 1))``; Scheipl, Staicu & Greven (2015),
    Functional additive mixed models, doi:10.1080/10618600.2014.901914.

    Examples
    --------
    >>> from fdadp import terms
    >>> terms.factor("region").name
    'region'
    """

    column: str
    coding: str = "treatment"
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
        """A feature for each level, or for each but the first; each has its own smoothing parameter."""
        if self.coding not in CODINGS:
            raise InputError(f"coding of {self.name} must be 'treatment', 'full' or 'levels', got {self.coding!r}")
        centred, every = self.coding == "levels", self.coding != "treatment"
        if centred and (t is None or self.constant):
            raise InputError(
                f"coding of {self.name} must be 'treatment' where effects do not vary along the response, "
                "or 'full', got 'levels': its curves have mean zero over t"
            )
        levels = Levels.of(seen, self.column)
        if len(levels) < 2 and not every:
            raise InputError(f"{self.column} must have at least two levels, got {levels.levels[0]!r} in all rows")
        if len(levels) > max(MANY, seen.n / 2):
            raise InputError(
                f"{self.column} must have fewer levels, got {len(levels)} in {seen.n} rows, such as "
                f"{levels.levels[0]!r}; re({self.column}) is for many levels, pandas.to_numeric makes numbers of text"
            )
        along = along_response(
            t,
            size_along(self.k, self.refund_k, t),
            self.m,
            constant=self.constant,
            centred=centred,
            name=f"k of {self.name}",
        )
        q = len(levels) - int(not every)
        return _Curves(
            name=self.name,
            columns=self.columns,
            levels=levels,
            own_penalties=no_penalties(q),
            each_its_own=True,
            **along,
        )


def is_factor(design: TermDesign) -> bool:
    """Whether a design is that of a factor."""
    return isinstance(design, _Curves)


@dataclass(frozen=True, kw_only=True)
class _Curves(TermDesign):
    levels: Levels

    def features(self, records: Records, t: FloatArray | None = None) -> FloatArray:
        return self.levels.indicators(records)[:, len(self.levels) - self.n_features :]

    @property
    def axes(self) -> dict[str, FloatArray | tuple[Any, ...]]:
        return {self.columns[0]: self.levels.levels}

    def effect(self, *points: Any) -> FloatArray:
        return np.eye(len(self.levels))[self.levels.codes(points[0]), len(self.levels) - self.n_features :]

    @property
    def penalty_names(self) -> tuple[str, ...]:
        if not self.along.penalised:
            return ()
        return tuple(f"{self.name}[{level}].t" for level in self.levels.levels[-self.n_features :])
