"""What a private fit reads: columns of the terms, of what is computed within rows, and the response; nothing is read.

Columns that a table has are handed to the kernel as they are; of others, such as ``mean(X)``, their sources are, and
the kernel computes them first (:mod:`fdadp.regression.private.columns_read_privately`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fdadp._common.calling_language import bounds_as
from fdadp._common.loaded_later import pd
from fdadp._common.typing import FloatArray
from fdadp.errors import InputError, PrivacyError
from fdadp.functional.containers.opened_tables import OpenedColumn
from fdadp.functional.tables.curve_sample import Curves
from fdadp.privacy.private_entries import numbers as entries_as_numbers
from fdadp.private.plan.private_design import curves_column
from fdadp.private.public.column_ranges import FILLERS, REACH, Column, CurvesColumn, NumberColumn, Range, public_range
from fdadp.private.public.curve_shapes import is_irregular, table_of_irregular
from fdadp.private.public.gaussian_process_prior import PublicPrior
from fdadp.regression.private.private_table import DeclaredBounds, Entries, PrivateTable
from fdadp.regression.reading.computed_columns import bounds_of, expression, row_function
from fdadp.regression.reading.missing_entries import Completion
from fdadp.regression.reading.table_columns import ColumnTable, Grids, read_records, read_together
from fdadp.solve.form.families_by_name import FAMILIES
from fdadp.solve.form.response_families import Family
from fdadp.terms.numbers.factors_and_random_effects import Factor
from fdadp.terms.numbers.scalar_linear import Linear
from fdadp.terms.records import Records
from fdadp.terms.spec import TermSpec
from fdadp.terms.times_column import By

if TYPE_CHECKING:
    from fdadp.private.release.mechanisms import EndToEnd
    from fdadp.private.rows.count_and_binary_rows import BoundedResponse


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
                f"bounds must give a public range for {' and '.join(without)}, as in {bounds_as(text)}: "
                f"without it {text} is unbounded"
            )
        return found if found[0] == found[1] else public_range(found, f"bounds of {text}", of=text)


# What a private fit computes within each row before all else: columns of others, and the response less an offset.


@dataclass(frozen=True)
class SourceColumn:
    """A column that others are computed from.

    Attributes
    ----------
    name : str
    grid : ndarray of shape (S,) or None
        Of curves; None: numbers.
    gaps : {"linear", "smooth"} or None
        How gaps of curves are filled; None: not at all.
    bounds : (float, float) or None
        Public range, beyond which values go by a few half-widths at most.
    """

    name: str
    grid: FloatArray | None = None
    gaps: str | None = None
    bounds: Range | None = None

    def read(self, values: FloatArray, grid: FloatArray | None = None) -> Curves | FloatArray:
        """The column as functions of it see it; `grid` where new curves have another one."""
        values = np.array(values, dtype=np.float64)
        points = self.grid if grid is None else grid
        if points is None:
            values = values.reshape(len(values))
        values = np.where(np.isfinite(values), values, np.nan)
        if points is not None and self.gaps is not None:
            values = FILLERS[self.gaps](values, points)
        if self.bounds is not None:
            middle, half = sum(self.bounds) / 2, (self.bounds[1] - self.bounds[0]) / 2
            values = np.clip(values, middle - REACH * half, middle + REACH * half)
        return values if points is None else Curves(values, points)


@dataclass(frozen=True)
class Made:
    """A column that is computed within each row.

    Attributes
    ----------
    text : str
        An expression of columns.
    sources : tuple of Source
    indicator : bool
        Instead of a value, whether there is none: 1, else 0.
    """

    text: str
    sources: tuple[SourceColumn, ...]
    indicator: bool = False

    def of(self, columns: Mapping[str, FloatArray], grids: Mapping[str, FloatArray] | None = None) -> FloatArray:
        """Entries of rows, shape (m,) or (m, S); NaN where there is no value."""
        grids = grids or {}
        read: dict[str, Any] = {
            source.name: source.read(columns[source.name], grids.get(source.name)) for source in self.sources
        }
        made = expression(self.text).by_rows(read)
        values = made.values if isinstance(made, Curves) else made
        finite = np.isfinite(values)
        return np.where(finite, 0.0, 1.0) if self.indicator else np.where(finite, values, np.nan)


@dataclass(frozen=True)
class PreparedRows:
    """Row function from blocks of the columns that were given to blocks of a design's columns and the response.

    Attributes
    ----------
    given : tuple of str
        Columns of a block.
    wanted : tuple of (str or Made)
        Those of the design, then the response: a column as it was given, or a computed one.
    offset : str, Made or None
        What the response is less of.
    """

    given: tuple[str, ...]
    wanted: tuple[str | Made, ...]
    offset: str | Made | None = None

    def __call__(self, block: Sequence[FloatArray]) -> tuple[FloatArray, ...]:
        """Columns of the rows of a block."""
        columns = dict(zip(self.given, block, strict=True))
        *out, y = (self._column(columns, wanted) for wanted in self.wanted)
        if self.offset is not None:
            y = y.reshape(len(y), -1) - self._column(columns, self.offset).reshape(len(y), -1)
        return (*out, y)

    @staticmethod
    def _column(columns: Mapping[str, FloatArray], wanted: str | Made) -> FloatArray:
        return columns[wanted] if isinstance(wanted, str) else wanted.of(columns)


# The response of a private fit: what is public of it by its family, and its entries, which the kernel alone reads.


OF_NUMBERS = ("gaussian", "binomial", "poisson")
"""Families of private fits of numbers."""


@dataclass(frozen=True)
class PublicResponse:
    """A response before the first read.

    Attributes
    ----------
    name : str
    bounds : (float, float)
        Public range.
    classes : tuple or None
        Where it is one of two classes.
    bounded : BoundedResponse or None
        Where it is of another family than the Gaussian.
    """

    name: str
    bounds: Range
    classes: tuple[Hashable, ...] | None = None
    bounded: BoundedResponse | None = None

    @property
    def public(self) -> dict[str, Any]:
        """Public inputs, for the ledger."""
        if self.classes is not None:
            return {f"classes of {self.name}": ", ".join(map(str, self.classes))}
        return {f"bounds of {self.name}": self.bounds}

    def check_offset(self, offset: Any) -> None:
        """Refuse an offset of another family than the Gaussian, where it would not be a part of the response."""
        if self.bounded is not None and offset is not None:
            family = self.bounded.family.name
            raise InputError(f"offset and prior='persistence' must be left out with family={family!r} in a private fit")

    def spending(self, mechanism: EndToEnd[Any]) -> EndToEnd[Any]:
        """The mechanism for this kind of response."""
        from fdadp.private.release.dp_aff_of_families import DPAFFOfFamily
        from fdadp.private.release.mechanisms import DPAFF

        if self.bounded is None:
            return mechanism
        assert isinstance(mechanism, DPAFF)
        return DPAFFOfFamily.of(mechanism, self.bounded)


def check_family(family: Family, *, curves: bool) -> None:
    """Refuse a family that has no private fit; raises InputError."""
    known = ("gaussian",) if curves else OF_NUMBERS
    if family in [FAMILIES[name] for name in known]:
        return
    why = "" if curves else ": residuals must have a public bound, and those of other families have none"
    if family.name == "gamma" and not curves:
        why = ": its residuals (y - μ)/μ have no bound; fit the logarithm of the response with family='gaussian'"
    if family.name == "negative_binomial" and not curves:
        why = ": its weights depend on theta, which no release chooses; family='poisson' estimates the same means"
    if family.name == "scaled_t":
        why = ": its nu and sigma are chosen by no release; family='gaussian' clips long tails at the bounds"
    if family.name == "ordered" and not curves:
        why = (
            ": its cut points depend on the data, and no release chooses them; family='binomial' estimates the "
            "probability of a category or more"
        )
    raise InputError(f"family must be {' or '.join(map(repr, known))} in a private fit, got {family.name!r}{why}")


def public_response(declared: DeclaredBounds, name: str, family: Family, *, curves: bool) -> PublicResponse:
    """What is public of a response.

    Parameters
    ----------
    declared : DeclaredBounds
    name : str
    family : Family
    curves : bool
        Whether it is a curve, or else a number.

    Raises
    ------
    InputError, PrivacyError
        No bounds or classes, or such as do not suit the family. Nothing was read.
    """
    from fdadp.private.rows.count_and_binary_rows import BoundedResponse

    if family.name == "binomial" and not curves:
        return PublicResponse(name, (0.0, 1.0), declared.classes(name), BoundedResponse(family, (0.0, 1.0)))
    bounds = declared.range(name)
    if family.name == "poisson" and not curves:
        if bounds[0] < 0:
            raise PrivacyError(f"bounds of {name} must be counts of 0 or more for family='poisson', got {bounds!r}")
        return PublicResponse(name, bounds, bounded=BoundedResponse(family, bounds))
    return PublicResponse(name, bounds)


# How a private fit reads columns of new rows: as in the fit, entry by entry; nothing is learned of them.


@dataclass(frozen=True)
class PrivateColumns:
    """How columns of new rows are read: as they are, for the terms complete them as they did in the fit.

    Attributes
    ----------
    grids : mapping of str to ndarray
        Points of the training curves.
    made : mapping of str to Made
        Columns that are computed within each row.
    numbers : tuple of str
        Columns of one number a row, whose entries mean what they meant in the fit: ``" 1.5 "`` is 1.5, ``"?"`` missing.
    units : mapping of str to str
        Of the points of curves, where dates or times label them.
    """

    grids: Mapping[str, FloatArray]
    made: Mapping[str, Made] = field(default_factory=dict)
    numbers: tuple[str, ...] = ()
    units: Mapping[str, str] = field(default_factory=dict)

    @property
    def completion(self) -> Completion:
        """Nothing is completed by what was learned of other rows."""
        return Completion.none()

    def read(self, data: Any, columns: Sequence[str], grids: Grids | None) -> Records:
        """Columns of new rows, which may lack entries; irregular curves go on the grid as those of the fit did."""
        made = [self.made[name] for name in columns if name in self.made]
        sources = [source.name for one in made for source in one.sources]
        given = list(dict.fromkeys([*(name for name in columns if name not in self.made), *sources]))
        table = self._as_numbers(self._on_grids(read_together(data, given), given, grids), given)
        records = read_records(table, given, grids, defaults=self.grids, missing=given)[0]
        return records.with_columns(**{name: self._computed(name, records) for name in columns if name in self.made})

    def _on_grids(self, data: Any, columns: Sequence[str], grids: Grids | None) -> Any:
        """The table with irregular curves on the grids of the fit."""
        table = ColumnTable(data, grids)
        held = {name: table.held(name) for name in columns if table.has(name)}
        irregular = [name for name, raw in held.items() if is_irregular(raw) and name not in (grids or {})]
        if not irregular:
            return data
        binned = {name: table_of_irregular(held[name], self.grids[name]).read() for name in irregular}
        rest = {name: table.raw(name) for name in held if name not in binned}
        return rest | {name: Curves(values, self.grids[name]) for name, values in binned.items()}

    def _as_numbers(self, data: Any, columns: Sequence[str]) -> Any:
        """The table with numbers in its columns of numbers and curves, whatever types their entries came as."""
        own = ColumnTable(data)
        held = {name: own.raw(name) for name in columns if own.has(name)}
        wanted = [
            name
            for name, raw in held.items()
            if (name in self.numbers and not _holds_numbers(raw)) or (name in self.grids and _is_of_text(raw))
        ]
        return held | {name: _like(held[name], entries_as_numbers(held[name])) for name in wanted} if wanted else data

    def completed(self, records: Records, offset: str | None) -> Records:
        """Rows with all columns that are computed.

        Raises
        ------
        InputError
            What they, or an offset, are computed from is not there.
        """
        needed = {source.name for one in self.made.values() for source in one.sources}
        if offset is not None and offset not in self.made:
            needed.add(offset)
        lacking = sorted(map(str, needed - set(records.columns)))
        if lacking:
            raise InputError(
                f"{lacking[0]} must be a column of a term, as an offset or an expression reads it, got none"
            )
        return records.with_columns(**{name: self._computed(name, records) for name in self.made})

    def _computed(self, name: str, records: Records) -> Curves | FloatArray:
        one = self.made[name]
        held = {s.name: records.columns[s.name] for s in one.sources}
        own = {source: c for source, c in held.items() if isinstance(c, Curves)}
        values = {source: own[source].values if source in own else records.numbers(source) for source in held}
        computed = one.of(values, {source: curves.grid for source, curves in own.items()})
        return computed if computed.ndim == 1 else Curves(computed, next(iter(own.values())).grid)


def _holds_numbers(raw: Any) -> bool:
    return getattr(getattr(raw, "dtype", None), "kind", "O") in "biuf"


def _is_of_text(raw: Any) -> bool:
    """Whether a table of curves came with text in it."""
    if isinstance(raw, pd.DataFrame):
        return not all(map(_holds_numbers, (raw.iloc[:, j] for j in range(raw.shape[1]))))
    return isinstance(raw, np.ndarray) and raw.ndim == 2 and not _holds_numbers(raw)


def _like(raw: Any, values: FloatArray) -> Any:
    """Values with the labels of rows, and of points, that a column had."""
    raw = raw.values() if isinstance(raw, OpenedColumn) else raw
    if isinstance(raw, pd.DataFrame):
        return pd.DataFrame(values, index=raw.index, columns=raw.columns)
    return pd.Series(values, index=raw.index) if isinstance(raw, pd.Series) else values
