"""Terms of a private fit as those of any other: features of records in the units of their columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fdadp._common.typing import BoolArray, FloatArray
from fdadp.functional.splines.margins import SmoothMargin
from fdadp.functional.tables.curves import refuse_other_domain
from fdadp.functional.tables.records import Records
from fdadp.privacy.boundary import codes_of, index_of
from fdadp.private.public.columns import Column, CurvesColumn, NumberColumn
from fdadp.private.whitened.base import WhiteTerm
from fdadp.terms.spec import TermDesign


@dataclass(frozen=True, kw_only=True)
class WhiteDesign(TermDesign):
    """The first white features of a term, for the records of any table.

    Attributes
    ----------
    term : WhiteTerm
    located : tuple of Column
        Its columns with released locations and scales.
    count : int
        Number of features that the plan afforded.
    unmeasured : ndarray of shape (d, m), or None
        Prior variance of the coefficients of all features on all response functions that no gradient measured.
    everywhere : SmoothMargin, or None
        All response functions.
    """

    term: WhiteTerm
    located: tuple[Column, ...]
    count: int
    unmeasured: FloatArray | None = None
    everywhere: SmoothMargin | None = None

    @property
    def _columns(self) -> Mapping[str, Column]:
        return {column.name: column for column in self.located}

    def features(self, records: Records, t: FloatArray | None = None) -> FloatArray:
        """White features (n, count); NaN of a row whose curve has no observation."""
        return self._features(records, self.term)

    def _features(self, records: Records, term: WhiteTerm) -> FloatArray:
        seen: dict[str, Any] = {}
        lost = np.zeros(records.n, dtype=bool)
        for column in self.located:
            if isinstance(column, CurvesColumn):
                x = records.curves(column.name)
                refuse_other_domain(x, column.grid, column.name)
                grid = None if np.array_equal(x.grid, column.grid) else x.grid
                seen[column.name], never = column.seen(x.values, grid)
                lost |= never
            elif isinstance(column, NumberColumn):
                seen[column.name] = column.seen(records.numbers(column.name))[0]
            else:
                seen[column.name] = codes_of(records.labels(column.name), index_of(column.levels))
        out = term.features(seen, self.count)
        out[lost] = np.nan
        return out

    @property
    def axes(self) -> dict[str, FloatArray | tuple[Any, ...]]:
        """Axes of the coefficient function, in units of the columns."""
        return self.term.axes(self._columns)

    def effect(self, *points: Any) -> FloatArray:
        """Features of the coefficient function."""
        return self.term.effect(self._columns, self.count, *points)

    def acts(self, axes: Mapping[str, Any]) -> BoolArray | None:
        """Where the coefficient function is part of the model."""
        return self.term.acts(self._columns, axes)

    def unseen(self, axes: Mapping[str, Any]) -> FloatArray | None:
        """Prior variance of the coefficient function outside of what was measured."""
        if self.unmeasured is None or self.everywhere is None:
            return None
        points = [at for name, at in axes.items() if name != "t"]
        effect = self.term.effect(self._columns, len(self.unmeasured), *points)
        along = self.everywhere.design(axes["t"]) if "t" in axes else np.ones((1, 1))
        return np.asarray(effect**2 @ self.unmeasured @ (along**2).T).ravel()


@dataclass(frozen=True, kw_only=True)
class VaryingDesign(WhiteDesign):
    """The same of a term whose features differ between points of the response."""

    separable: ClassVar[bool] = False

    def features(self, records: Records, t: FloatArray | None = None) -> FloatArray:
        """White features at points, shape (n, T, count)."""
        term = self.term if t is None else self.term.at(t)
        return np.moveaxis(self._features(records, term), 1, 2)
