"""Pairs (X, Y) of curves, as tables of two columns: all that a fit of one surface without privacy sees."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from fdadp.errors import InputError
from fdadp.functional.alignment import same_rows
from fdadp.functional.containers.open import opened
from fdadp.functional.containers.opened import OpenedCurves, in_memory, on_grid
from fdadp.functional.containers.together import pieces_together
from fdadp.functional.curves import as_curves, check_finite
from fdadp.functional.records import Records
from fdadp.functional.sample import Curves
from fdadp.regression.chunked_records import ChunkedRecords
from fdadp.solve.chunks import Partitions

AT_A_TIME = 8192
"""Curves in memory that are gone through together."""


class Pairs(ChunkedRecords):
    """Pairs of curves that can be gone through more than once.

    Parameters
    ----------
    source : sequence, callable or Partitions
        A sequence of pairs, or a function that returns a fresh iterator over pairs. Each pair holds curves as
        :func:`fdadp.functional.curves.as_curves` reads them. Pairs that are delayed, or of Dask's collections, stay
        where Dask computes them.
    s, t : array_like or None
        Grids of X and Y.
    progress : bool or "auto"
        Show a progress bar; ``"auto"``: on passes that take longer than two seconds.

    Raises
    ------
    InputError
        Something that cannot be read twice; while it is read, what is no pair, X and Y of different n or with other row
        labels, a value that is not finite, and what :class:`~fdadp.regression.chunked_records.ChunkedRecords` refuses.
    """

    _rows: ClassVar[str] = "pairs"
    _response_called: ClassVar[str] = "{}"

    def __init__(
        self,
        source: Sequence[tuple[Any, ...]] | Callable[[], Iterable[tuple[Any, ...]]] | Partitions,
        s: Any = None,
        t: Any = None,
        progress: bool | str = "auto",
    ) -> None:
        lazy = isinstance(source, Partitions)
        if not callable(source) and isinstance(source, Iterator):
            raise InputError(
                "chunks must be a sequence of (X, Y) pairs or a function that returns a fresh iterator "
                f"(the data are read twice), got a one-way {type(source).__name__}"
            )
        if not (callable(source) or lazy) and (isinstance(source, str) or not isinstance(source, Iterable)):
            raise InputError(f"chunks must be a sequence of (X, Y) pairs or a function, got {type(source).__name__}")

        super().__init__(source, ("X",), "Y", progress=progress, convert=partial(_table, s, t))

    @classmethod
    def of(cls, x: Curves, y: Curves, progress: bool | str = "auto") -> Pairs:
        """Pairs of curves held in memory."""

        def pieces() -> Iterator[tuple[Curves, Curves]]:
            for start in range(0, len(y), AT_A_TIME):
                rows = slice(start, start + AT_A_TIME)
                yield Curves(x.values[rows], x.grid), Curves(y.values[rows], y.grid)

        return cls(pieces, progress=progress)

    def read(self, what: str = "sums") -> Iterator[tuple[Records, Curves]]:
        """X as records, and Y, under a progress bar labelled `what`."""
        for records, y in super().read(what):
            assert isinstance(y, Curves)
            yield records, y

    def range(self) -> tuple[float, float]:
        """Smallest and largest value of X.

        Raises
        ------
        InputError
            X is constant.
        """
        low, high = self.over(_ends, _further, "range of X")
        if not low < high:
            raise InputError(f"X must vary, got the constant {low:g} everywhere")
        return low, high


def _ends(records: Records, _: Curves) -> tuple[float, float]:
    values = records.curves("X").values
    return float(values.min()), float(values.max())


def _further(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    return min(one[0], other[0]), max(one[1], other[1])


def pairs_of(x: Any, y: Any, s: Any = None, t: Any = None) -> Callable[[], Iterator[tuple[Any, Any]]] | None:
    """Pieces of curves of which at least one sample was opened, to be read on demand; None where none was.

    Raises
    ------
    InputError
        Samples of queries of their own, which may give their rows in another order each time.
    """
    given = {"X": opened(x, "X"), "Y": opened(y, "Y")}
    if not any(isinstance(curves, OpenedCurves) for curves in given.values()):
        return None
    columns = {
        name: curves if isinstance(curves, OpenedCurves) else in_memory(as_curves(curves, grid, name=name))
        for (name, curves), grid in zip(given.items(), (s, t), strict=True)
    }
    pieces = pieces_together(columns)

    def pairs() -> Iterator[tuple[Any, Any]]:
        return ((on_grid(a, s, "X"), on_grid(b, t, "Y")) for a, b in pieces())

    return pairs


def _table(s: Any, t: Any, pair: Any, first: int) -> Mapping[str, Curves]:
    """Both columns of a pair, checked; `first` is the number of its first curve."""
    try:
        x_data, y_data = (pair["X"], pair["Y"]) if isinstance(pair, Mapping) and {"X", "Y"} <= pair.keys() else pair
    except (TypeError, ValueError) as exc:
        raise InputError(f"chunks: each chunk must be a pair (X, Y), got {type(pair).__name__}") from exc
    table = {"X": as_curves(x_data, s, name="X"), "Y": as_curves(y_data, t, name="Y")}
    x, y = table.values()
    if len(x) != len(y):
        raise InputError(f"X and Y must hold the same number of curves, got {len(x)} and {len(y)}")
    same_rows(**table)
    check_finite(y, "Y", first=first)  # X is checked where tables are read
    return table
