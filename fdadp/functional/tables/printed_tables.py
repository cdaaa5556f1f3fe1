"""Tables that say what was fitted: text in statsmodels' form, by it HTML, LaTeX and CSV."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from statsmodels.iolib.table import SimpleTable

__all__ = ["PrintedSummary", "PrintedTable"]


@dataclass(frozen=True)
class PrintedTable:
    """One table of cells that are text or whole numbers; ``print`` it.

    Attributes
    ----------
    rows : sequence of sequences
    headers, stubs : sequence of str
        Of columns and of rows, where they have any.
    title : str
    """

    rows: Sequence[Sequence[object]]
    headers: Sequence[str] = ()
    stubs: Sequence[str] = ()
    title: str = ""

    def __str__(self) -> str:
        """What statsmodels' ``SimpleTable`` prints; pandas and polars, which it loads, take .4 s."""
        cells = [[str(cell) for cell in row] for row in self.rows]
        shown = [list(self.headers), *cells] if self.headers else cells
        widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
        stubs = max(map(len, self.stubs), default=0)

        def line(row: Sequence[str], stub: str, placed: Callable[[str, int], str]) -> str:
            return " ".join([*([stub.ljust(stubs)] if self.stubs else []), *map(placed, row, widths)])

        body = [line(row, stub, str.rjust) for row, stub in zip(cells, self.stubs or [""] * len(cells), strict=True)]
        rule = len(body[-1])
        head = [line(self.headers, "", str.center), "-" * rule] if self.headers else []
        above = [self.title.center(rule)] if self.title else []
        return "\n".join([*above, "=" * rule, *head, *body, "-" * rule])

    def of_statsmodels(self) -> SimpleTable:
        """The same as statsmodels' ``SimpleTable``, which has other forms."""
        from statsmodels.iolib.table import SimpleTable

        return SimpleTable(self.rows, list(self.headers), list(self.stubs), title=self.title)

    def _repr_html_(self) -> str:
        return str(self.of_statsmodels().as_html())


@dataclass(frozen=True)
class PrintedSummary:
    """Tables of a fit, and lines below them; ``print`` it.

    Attributes
    ----------
    tables : sequence of PrintedTable
    notes : sequence of str
    """

    tables: Sequence[PrintedTable]
    notes: Sequence[str]

    def as_text(self) -> str:
        """Tables and notes as text."""
        *first, last = map(str, self.tables)
        tables = "\n".join([*(text.rpartition("\n")[0] for text in first), last])
        return "\n\n".join([tables, "\n".join(self.notes)])

    __str__ = as_text

    def as_html(self) -> str:
        """Tables and notes as HTML."""
        tables = "\n".join(table.of_statsmodels().as_html() for table in self.tables)
        return f"{tables}<br/><br/>{'<br/>'.join(self.notes)}"

    def as_latex(self) -> str:
        """Tables and notes as LaTeX, with the package booktabs."""
        tables = "\n".join(table.of_statsmodels().as_latex_tabular() for table in self.tables)
        return "\n\n".join([tables, " \\newline\n ".join(self.notes)])

    def as_csv(self) -> str:
        """Tables and notes as CSV."""
        tables = "\n".join(table.of_statsmodels().as_csv() for table in self.tables)
        return "\n\n".join([tables, "\n".join(self.notes)])

    _repr_html_, _repr_latex_ = as_html, as_latex
