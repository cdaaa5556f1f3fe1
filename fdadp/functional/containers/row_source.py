"""Where rows are: pieces of a container, what is public of their columns, and how they become tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from fdadp._common.loaded_later import pd
from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import FdadpError, FileFormatError, InputError
from fdadp.functional.tables import grid_from_labels as axes
from fdadp.functional.tables.curve_sample import Curves, Given, Kind, as_grid, values_of

# Columns of a container by what is public of it: names, numbers of points, grids; no value and no type is asked.


ALONE = "curves"
"""Name of the column of a container that holds one sample of curves and nothing else."""
LEAST_POINTS = 3
"""Columns that are labelled by a grid are curves from here on."""


@dataclass(frozen=True)
class Field:
    """One column.

    Attributes
    ----------
    name : str
    source : object
        By which the container knows it: a name, or names of several columns.
    grid : ndarray of shape (S,) or None
        Points of curves; None: one entry a row.
    labels : pandas.Index or None
        Of the points, as the container has them.
    unit : str or None
        Of the grid.
    gridded : bool
        Whether the grid was given, and not assumed.
    backwards : bool
        Whether points decrease in the container, and are turned round with the values.
    open_length : bool
        A column of lists of which nobody said how long they are.
    given : Given
    """

    name: str
    source: Any
    grid: FloatArray | None = None
    labels: pd.Index[Any] | None = None
    unit: str | None = None
    gridded: bool = False
    backwards: bool = False
    open_length: bool = False
    given: Given = field(default_factory=Given)


@dataclass(frozen=True)
class Fields:
    """All columns of a container.

    Attributes
    ----------
    columns : mapping of str to Field
    rows : Field or None
        That labels the rows.
    coordinates : tuple of Field
        That say more of the rows and are no columns.
    alone : bool
        Whether the one column is all there is: a sample of curves, and no table.
    """

    columns: Mapping[str, Field]
    rows: Field | None = None
    coordinates: tuple[Field, ...] = ()
    alone: bool = False


def curve_field(
    name: str, source: Any, size: int, labels: pd.Index[Any] | None = None, grid: Any = None, given: Given | None = None
) -> Field:
    """A column of curves; its points are `grid` (their number: even on [0, 1]), or what their labels say.

    Raises
    ------
    InputError
        A grid of another length, or labels that are half a grid.
    """
    given = given or Given(name)
    if grid is not None and not isinstance(grid, int | np.integer):
        return Field(name, source, as_grid(grid, size, f"grid of {name}"), labels, gridded=True, given=given)
    if grid is not None and grid != size:
        raise InputError(f"grid of {name} must have {size} points, as its rows have, got {grid}")
    axis = None if labels is None else axes.axis_of(labels, name)
    if axis is None:
        unit = axes.ONLY_NUMBERED if grid is None and labels is not None and axes.is_only_numbered(labels) else None
        return Field(name, source, as_grid(None, size), labels, unit, given=given)
    return Field(name, source, axis.points, labels, axis.unit, True, axis.backwards, given=given)


def fields_of(
    lists: Mapping[str, int | None],
    options: Mapping[str, Any],
    *,
    stored: Mapping[str, ArrayLike] | None = None,
    whole: bool = False,
    labels: pd.Index[Any] | None = None,
) -> Fields:
    """What the columns of a table are.

    Parameters
    ----------
    lists : mapping of label to int or None
        All columns by their labels: points of a list in each row (0: of open length), None for single entries.
    options : mapping
        As :func:`open_curves` has them. ``curves``: columns of curves whose points are columns of the table, by a
        prefix, after which labels of the points follow, or by their labels. ``grids``: points of curves, or how many.
        ``rows``: column of the labels of rows.
    stored : mapping of str to array_like, optional
        Grids that the container knows of columns of lists.
    whole : bool
        Take a table without columns of lists as one sample of curves, whatever its labels are.
    labels : pandas.Index, optional
        Those of all columns, as they are.

    Raises
    ------
    InputError
        A column that is not there, or twice; grids that do not suit.
    """
    curves, grids, rows = (options.get(name) for name in ("curves", "grids", "rows"))
    given: dict[str, Any] = dict(grids or {})
    names = list(lists)
    known = {str(name): name for name in names}
    if len(known) < len(names):
        raise InputError("columns of a table must have names that differ")
    if rows is not None and rows not in known:
        raise InputError(f"rows must be a column of the table, got {rows!r}")
    found: dict[str, Field] = {}
    taken: set[Any] = set() if rows is None else {known[rows]}
    for name, wanted in (curves or {}).items():
        sources, labels = _points(name, wanted, names, taken)
        found[name] = curve_field(name, sources, len(sources), labels, given.pop(name, None))
        taken |= set(sources)
    rest = [name for name in names if name not in taken]
    if not found and all(lists[name] is None for name in rest):
        alone = _alone(rest, rows, given, labels, whole=whole)
        if alone is not None:
            sample, labelled = alone
            rows_by = known[rows] if rows is not None else labelled
            return Fields({ALONE: sample}, None if rows_by is None else Field(str(rows_by), rows_by), alone=True)
    for label in rest:
        size, own = lists[label], str(label)
        if own in found:
            raise InputError(f"curves must have names that no column has, got {own!r}")
        if size is None:
            found[own] = Field(own, label)
        else:
            found[own] = _of_lists(own, label, size, given.pop(own, None), (stored or {}).get(own))
    if given:
        raise InputError(f"grids must be of columns of curves, got {next(iter(given))!r}")
    return Fields(found, None if rows is None else Field(rows, known[rows]))


def _points(
    name: str, wanted: str | Sequence[Any], names: Sequence[Any], taken: set[Any]
) -> tuple[tuple[Any, ...], pd.Index[Any]]:
    """Columns of the points of curves, and their labels."""
    if isinstance(wanted, str):
        sources = tuple(n for n in names if str(n).startswith(wanted) and str(n) != wanted)
        labels = list(axes.points_after([str(n) for n in sources], wanted))
    else:
        sources, labels = tuple(wanted), list(wanted)
    odd = [n for n in sources if n not in names or n in taken]
    if odd or len(sources) < 2:
        got = f"{odd[0]!r}" if odd else f"{len(sources)} for {wanted!r}"
        raise InputError(f"curves must name two columns or more of the table for {name}, each once, got {got}")
    return sources, pd.Index(labels)


def _alone(
    names: Sequence[Any], rows: str | None, grids: dict[str, Any], all_labels: pd.Index[Any] | None, *, whole: bool
) -> tuple[Field, Any] | None:
    """The one sample of curves that a table is by the labels of its columns, and the column that labels its rows."""
    label, points = None, list(names)
    first, others = points[0] if points else None, points[1:]
    if rows is None and others and axes.labels_rows(first, others):
        label, points = first, others
    if len(points) < (1 if whole else LEAST_POINTS):
        return None
    labels = pd.Index(points) if all_labels is None or len(all_labels) != len(points) else all_labels
    try:
        axis = axes.axis_of(labels, ALONE, numbered=whole)
    except InputError:
        if whole:
            raise
        return None
    if axis is None and not whole and not axes.is_only_numbered(labels):
        return None
    return curve_field(ALONE, tuple(points), len(points), labels, grids.pop(ALONE, None), Given()), label


def _of_lists(name: str, source: Any, size: int, grid: Any, stored: Any) -> Field:
    """A column with a list in each row."""
    if size == 0 and grid is None:
        return Field(name, source, open_length=True)
    if size == 0:
        size = int(grid) if isinstance(grid, int | np.integer) else int(np.size(grid))
    if size == 1:
        raise InputError(f"{name} must have two points a row or more, got lists of one")
    return curve_field(name, source, size, None, stored if grid is None else grid)


ROWS = 8192
"""Of a piece."""


Piece = Callable[[Sequence[Field], bool], list[Any]]
"""Some rows of a container, one after the other: from columns to their entries.

These are arrays (m,), or (m, S) of curves, of numbers or of objects; each entry is what it is whatever the others are.
A list of another length than its grid is a row without values if the second argument is true, and an InputError else.
"""


@dataclass(frozen=True)
class Source:
    """Where the rows are.

    Attributes
    ----------
    called : str
        For messages.
    fields : Fields
    kind : str
        What curves are given back as.
    pieces : tuple of Piece, or callable
        A function returns pieces for one pass.
    sizes : tuple of int or None
        Rows of each piece, where they are known without reading.
    ordered : bool
        Whether each pass has the rows in the same order.
    for_kernel : callable, optional
        Pieces of one pass of a private fit, where they are others.
    held : dict
        Columns that were read as a whole, where order is not kept.
    """

    called: str
    fields: Fields
    kind: Kind
    pieces: tuple[Piece, ...] | Callable[[], Iterable[Piece]]
    sizes: tuple[int, ...] | None = None
    ordered: bool = True
    for_kernel: Callable[[], Iterable[Piece]] | None = None
    held: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of_rows(
        cls,
        called: str,
        fields: Fields,
        kind: Kind,
        n: int,
        read: Callable[[slice, Sequence[Field], bool], list[Any]],
        chunks: Sequence[int] | None = None,
    ) -> Source:
        """A container of n rows, which are cut by its chunks, if it has any; `read` makes entries of a slice."""
        ends = np.cumsum(chunks).tolist() if chunks else [*range(ROWS, n, ROWS), n]
        places = list(zip([0, *ends[:-1]], ends, strict=True))
        return cls(
            called, fields, kind, tuple(partial(read, slice(*at)) for at in places), tuple(b - a for a, b in places)
        )

    @property
    def n(self) -> int | None:
        """Number of rows, where it is known."""
        return None if self.sizes is None else sum(self.sizes)

    def field(self, name: str) -> Field:
        """A column.

        Raises
        ------
        InputError
            None of this name, or one of lists whose length nobody said.
        """
        known, rows = self.fields.columns, self.fields.rows
        if rows is not None and rows.name == name:  # its labels may say whose each row is
            return rows
        if name not in known:
            raise InputError(f"{self.called} must have the column {name!r}, got {', '.join(known) or 'none'}")
        if known[name].open_length:
            raise InputError(
                f"grids must say how many points {name} has, as in grids={{{name!r}: t}}. Its lists may be of any "
                "length, and are not read to find it"
            )
        return known[name]

    @property
    def columns(self) -> tuple[Field, ...]:
        """All columns that can be read."""
        return tuple(f for f in self.fields.columns.values() if not f.open_length)

    def passed(self, *, lenient: bool = False) -> Iterable[Piece]:
        """Pieces of one pass, for the kernel if `lenient`."""
        pieces = self.for_kernel if lenient and self.for_kernel is not None else self.pieces
        return pieces() if callable(pieces) else pieces

    def entries(self, piece: Piece, fields: Sequence[Field]) -> list[Any]:
        """Entries of a piece for the kernel, points in increasing order."""
        return [_turned(e, f) for e, f in zip(piece(fields, True), fields, strict=True)]

    def table(self, piece: Piece, fields: Sequence[Field]) -> dict[str, Any]:
        """Columns of a piece: curves with the labels of their rows, and entries.

        Raises
        ------
        InputError
            Entries of curves that are no numbers, lists of another length.
        FileFormatError
            The piece cannot be read.
        """
        labels = () if self.fields.rows is None else (self.fields.rows,)
        beside = (*labels, *self.fields.coordinates)
        try:
            found = piece((*fields, *beside), False)
        except (FdadpError, MemoryError, OSError) as exc:
            if isinstance(exc, OSError) and not isinstance(exc, FileNotFoundError):
                raise FileFormatError(f"{self.called} could not be read: {exc}") from exc
            raise
        except Exception as exc:  # libraries raise classes of their own
            raise FileFormatError(f"{self.called} could not be read ({type(exc).__name__}: {exc})") from exc
        own, rest = found[: len(fields)], found[len(fields) :]
        index: Any = rest[0] if labels else None
        if labels and not isinstance(index, pd.Index):
            index = pd.Index(index, name=labels[0].name)
        coordinates = {f.name: e for f, e in zip(self.fields.coordinates, rest[len(labels) :], strict=True)}
        out: dict[str, Any] = {}
        for f, e in zip(fields, own, strict=True):
            if f.grid is not None:
                given = replace(f.given, rows=coordinates)
                values = np.ascontiguousarray(_turned(values_of(e, f.name), f)) if len(e) else np.empty(e.shape)
                out[f.name] = Curves(values, f.grid, self.kind, index, f.labels, f.gridded, f.unit, given)
            else:
                out[f.name] = e if index is None else pd.Series(e, index=index)
        return out


def side_by_side(columns: Sequence[Any]) -> Any:
    """Columns as one array, each entry as it was: no common type but that of numbers."""
    if all(c.dtype.kind in "biuf" for c in columns):
        return np.stack([c.astype(np.float64, copy=False) for c in columns], axis=1)
    return np.stack([c.astype(object) for c in columns], axis=1)


def _turned(entries: Any, field: Field) -> Any:
    return entries[:, ::-1] if field.backwards else entries


def _read(source: Source, piece: Piece, names: Sequence[str]) -> dict[str, Any]:
    """One piece as a table, for a task that can be sent to another process where the container can."""
    return source.table(piece, [source.field(name) for name in names])


def _read_entries(source: Source, piece: Piece, names: Sequence[str]) -> dict[str, Any]:
    """The same for the kernel: entries by name, as they are."""
    return dict(zip(names, source.entries(piece, [source.field(name) for name in names]), strict=True))


class Tasks(list[Any]):
    """The pieces of a source as ``dask.delayed`` tables, to be read on any worker.

    Raises
    ------
    InputError
        A source that can only be gone through as a whole, such as a query.
    """

    def __init__(self, source: Source, names: Sequence[str]) -> None:
        self._source = source
        super().__init__(self._made(_read, names))

    def entries(self, names: Sequence[str]) -> list[Any]:
        """Tasks that a private fit reads instead: entries as they are, made numbers of by nobody yet.

        Raises
        ------
        InputError
            A source whose pieces are other ones then, such as CSV text.
        """
        if self._source.for_kernel is not None:
            raise InputError(f"{self._source.called} must be read here in a private fit, line by line: use .chunks()")
        return self._made(_read_entries, names)

    def _made(self, task: Callable[..., dict[str, Any]], names: Sequence[str]) -> list[Any]:
        from dask import delayed

        pieces = self._source.pieces
        if callable(pieces):
            raise InputError(f"{self._source.called} must have pieces that can be read by themselves, got a stream")
        return [delayed(partial(task, self._source, piece, tuple(names)), pure=False)() for piece in pieces]


class RowChunks:
    """Tuples of columns for the kernel, read anew on each pass: entries as they are, made numbers of by nobody yet.

    The first tuple is empty and says what a row is, so that nothing is read to find that.
    """

    def __init__(self, source: Source, names: Sequence[str]) -> None:
        self._source, self._fields = source, [source.field(name) for name in names]

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        yield tuple(np.empty(0 if f.grid is None else (0, f.grid.size)) for f in self._fields)
        for piece in self._source.passed(lenient=True):  # not before the kernel asks: a query that fails may tell why
            yield tuple(self._source.entries(piece, self._fields))

    def to_delayed(self) -> list[Any]:
        """The tuples as ``dask.delayed`` ones, to be read on any worker.

        Raises
        ------
        InputError
            A source that can only be gone through as a whole, such as a query or CSV text.
        """
        from dask import delayed

        names = [f.name for f in self._fields]
        return [delayed(_in_order, pure=False)(task, names) for task in Tasks(self._source, ()).entries(names)]


def _in_order(entries: dict[str, Any], names: Sequence[str]) -> tuple[Any, ...]:
    return tuple(entries[name] for name in names)
