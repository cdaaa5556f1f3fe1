"""What a private fit reads: columns of the terms, of what is computed within rows, and the response; nothing is read.

Columns that a table has are handed to the kernel as they are; of others, such as ``mean(X)``, their sources are, and
the kernel computes them first (:mod:`fdadp.regression.private.rows`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.errors import InputError, PrivacyError
from fdadp.functional.tables.sample import Curves
from fdadp.private.plan.design import curves_column
from fdadp.private.public.columns import Column, CurvesColumn, NumberColumn, Range, public_range
from fdadp.private.public.prior import PublicPrior
from fdadp.regression.private.rows import Made, PreparedRows, SourceColumn
from fdadp.regression.private.table import Entries, PrivateTable
from fdadp.regression.reading.expressions import bounds_of, expression, row_function
from fdadp.terms.numbers.labels import Factor
from fdadp.terms.numbers.scalar_linear import Linear
from fdadp.terms.spec import TermSpec
from fdadp.terms.times_column import By


def indicator_of(name: str) -> str:
    """Name of the column that says where numbers are missing."""
    return f"missing({name})"


def persistence(name: str) -> str:
    """The anchor of a forecast of the same quantity: half the last value, half the mean of a row's curve."""
    quoted = name if name.isidentifier() else f"`{name}`"
    return f"0.5 * last({quoted}) + 0.5 * mean({quoted})"


OF_ANCHOR = 0.4
"""Width of the public range of a response less its anchor, over the wider one of both."""


def about(y: Range, offset: Range, width: float = 1.0) -> Range:
    """Public range of a response less an offset: about the difference of the middles, as wide as the wider of both."""
    middle = sum(y) / 2 - sum(offset) / 2
    half = width * max(y[1] - y[0], offset[1] - offset[0]) / 2
    return middle - half, middle + half


def factor_columns(spec: TermSpec) -> tuple[str, ...]:
    """Columns that a term takes for labels."""
    if isinstance(spec, Factor):
        return spec.columns
    if isinstance(spec, By) and spec.coding in ("levels", "treatment"):
        return (spec.column,)
    return ()


@dataclass(frozen=True)
class PublicColumns:
    """What is public of the columns of a private fit, and which of them the kernel reads; no row is among it.

    Attributes
    ----------
    given : dict of str to Entries
        Columns that the kernel reads.
    columns : list of Column
        Of the design.
    wanted : list of (str or Made)
        Where each comes from.
    axes : dict of str to ndarray
        Points of columns of curves.
    units : dict of str to str
        Of these points, where dates or times label them.
    made : dict of str to Made
        Columns that are computed.
    """

    given: dict[str, Entries] = field(default_factory=dict)
    columns: list[Column] = field(default_factory=list)
    wanted: list[str | Made] = field(default_factory=list)
    axes: dict[str, FloatArray] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)
    made: dict[str, Made] = field(default_factory=dict)

    @property
    def numbers(self) -> tuple[str, ...]:
        """Columns of one number a row, but the response."""
        return tuple(key for key, e in self.given.items() if e.kind == "numbers" and key == e.column)

    def on(self, name: str, grid: FloatArray, unit: str | None) -> None:
        """Keep the points of a column of curves."""
        self.axes[name] = grid
        if unit is not None:
            self.units[name] = unit

    def prepared(self, offset: str | Made | None) -> PreparedRows | None:
        """What is computed within rows before all else; None where all columns are as they were given."""
        if offset is None and all(isinstance(wanted, str) for wanted in self.wanted):
            return None
        return PreparedRows(tuple(self.given), tuple(self.wanted), offset)


@dataclass(frozen=True)
class ColumnReader:
    """Columns asked for one after the other, by what is public of them.

    Parameters
    ----------
    table : PrivateTable
    prior : PublicPrior
    gaps_of : callable
        How gaps of a column of curves are filled.
    public : PublicColumns
        What is known of those that were asked for.
    """

    table: PrivateTable
    prior: PublicPrior
    gaps_of: Callable[[str], str]
    public: PublicColumns = field(default_factory=PublicColumns)

    def terms(self, terms: Sequence[TermSpec], missing: str | Mapping[str, str]) -> tuple[TermSpec, ...]:
        """Covariates of all terms, each once; returns the terms, indicators of missing numbers among them."""
        factors = {name for term in terms for name in factor_columns(term)}
        for name in dict.fromkeys(c for term in terms for c in term.columns):
            self.column(name, factor=name in factors)
        indicators: list[TermSpec] = []
        for column in list(self.public.columns):
            wanted = missing if isinstance(missing, str) else missing.get(column.name)
            if isinstance(column, NumberColumn) and wanted == "indicator":
                indicators.append(Linear(self.indicator(column.name)))
        curves = [column for column in self.public.columns if isinstance(column, CurvesColumn)]
        scale = self.prior.x_scale
        if len(curves) > 1 and scale is not None:
            raise InputError(f"x_scale of the prior must be None with several columns of curves, got {scale:g}")
        return (*terms, *indicators)

    def column(self, name: str, *, factor: bool) -> None:
        """A column of a term."""
        at = len(self.public.columns)
        if self.table.has(name) or row_function(name) is None:
            column, self.public.given[name], curves = self.table.column(
                name, at, self.prior, self.gaps_of, factor=factor
            )
            if curves is not None:
                self.public.on(name, curves.grid, curves.unit)
            self.public.columns.append(column)
            self.public.wanted.append(name)
            return
        if factor:
            raise InputError(f"{name} must be a column of labels, got an expression")
        made = self._made(name)
        source = next((s for s in made.sources if s.grid is not None), None)
        bounds = self._bounds(name, made)
        if source is not None and expression(name).is_curves(self.table.kinds):
            assert source.grid is not None
            self.public.columns.append(
                curves_column(self.prior, name, at, source.grid, bounds, self.gaps_of(source.name))
            )
        else:
            self.public.columns.append(NumberColumn(name, at, bounds))
        self.public.wanted.append(made)
        self.public.made[name] = made

    def indicator(self, name: str) -> str:
        """A column that is 1 where a number is missing and 0 elsewhere; returns its name."""
        own = indicator_of(name)
        quoted = name if name.isidentifier() or name not in self.public.given else f"`{name}`"
        made = Made(quoted, self._sources(quoted), indicator=True)
        self.public.columns.append(NumberColumn(own, len(self.public.columns), (0.0, 1.0)))
        self.public.wanted.append(made)
        self.public.made[own] = made
        return own

    def response(
        self, name: str, y: Any, *, curves: bool, classes: tuple[Hashable, ...] | None = None
    ) -> Curves | None:
        """The response: what is public of it where it is a curve; of one of two classes 0 or 1 is read."""
        if classes is None and y is None and not self.table.has(name) and row_function(name) is not None:
            made = self._made(name, fill=False)
            self.public.wanted.append(made)
            source = next((s for s in made.sources if s.grid is not None), None)
            if curves != expression(name).is_curves(self.table.kinds):
                raise InputError(f"{name} must hold {'curves' if curves else 'numbers'}")
            return self.table.curves(source.name) if curves and source is not None else None
        response = self.table.curves(name, y) if curves else None
        own = f"{name}, the response"  # which may be a covariate as well, given otherwise
        kind: Literal["curves", "numbers", "labels"] = "numbers" if response is None else "curves"
        self.public.given[own] = Entries(name, "labels" if classes else kind, classes or (), beside=y is not None)
        self.public.wanted.append(own)
        return response

    def offset(self, text: Any, response: str, t: FloatArray | None) -> tuple[str | Made, Range]:
        """What the response is less of, and its public bounds.

        Raises
        ------
        InputError, PrivacyError
            Neither a column nor an expression of columns, curves on another grid than the response's, the response
            itself, or no public bounds.
        """
        if not isinstance(text, str):
            raise InputError(
                "offset must be the name of a column, or an expression of columns such as "
                f"'0.5 * last(X) + 0.5 * mean(X)', in a private fit, got {type(text).__name__}"
            )
        if self.table.has(text):
            if text == response:
                raise InputError(f"offset must not be the response, got {text!r}")
            found, bounds = self._given_offset(text, t), self.table.bounds.range(text)
            return found, bounds
        made = self._made(text)
        if response in [source.name for source in made.sources]:
            raise InputError(f"offset must not read the response, got {text!r}")
        if expression(text).is_curves(self.table.kinds):
            grids = [s.grid for s in made.sources if s.grid is not None]
            self._check_grid(text, grids[0], t)
        self.public.made[text] = made
        return made, self._bounds(text, made)

    def _given_offset(self, name: str, t: FloatArray | None) -> str:
        if self.table.kind(name) == "curves":
            curves = self.table.curves(name)
            self._check_grid(name, curves.grid, t)
            self.public.on(name, curves.grid, curves.unit)
            self.public.given.setdefault(name, Entries(name, "curves"))
        else:
            self.public.given.setdefault(name, Entries(name, "numbers"))
        return name

    @staticmethod
    def _check_grid(name: str, grid: FloatArray, t: FloatArray | None) -> None:
        if t is None:
            raise InputError(f"offset must be one number a row, as the response is, got curves ({name})")
        if not np.array_equal(grid, t):
            raise InputError(f"offset must be on the grid of the response, got {name} on another one")

    def _made(self, text: str, *, fill: bool = True) -> Made:
        return Made(text, self._sources(text, fill=fill))

    def _sources(self, text: str, *, fill: bool = True) -> tuple[SourceColumn, ...]:
        return tuple(self._source(name, fill=fill) for name in expression(text).sources)

    def _source(self, name: str, *, fill: bool) -> SourceColumn:
        kind = self.table.kind(name)
        if kind == "labels":
            raise InputError(f"{name} must hold numbers or curves to be computed with, got labels")
        bounds = self.table.bounds.range(name) if self.table.bounds.bounded(name) else None
        if kind == "numbers":
            self.public.given.setdefault(name, Entries(name, "numbers"))
            return SourceColumn(name, bounds=bounds)
        curves = self.table.curves(name)
        self.public.given.setdefault(name, Entries(name, "curves"))
        self.public.on(name, curves.grid, curves.unit)
        return SourceColumn(name, curves.grid, self.gaps_of(name) if fill else None, bounds)

    def _bounds(self, text: str, made: Made) -> Range:
        """Those given under its own name, or what those of its sources say."""
        if self.table.bounds.bounded(text):
            return self.table.bounds.range(text)
        found = bounds_of(expression(text), {s.name: s.bounds for s in made.sources if s.bounds is not None})
        if found is None:
            without = [s.name for s in made.sources if s.bounds is None] or [text]
            raise PrivacyError(
                f"bounds must give a public range for {' and '.join(without)}: {text} is unbounded without, as in "
                f'bounds={{"{text}": (low, high)}}'
            )
        return found if found[0] == found[1] else public_range(found, f"bounds of {text}", of=text)
