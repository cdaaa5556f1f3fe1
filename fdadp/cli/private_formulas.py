"""Private fits by a formula on the command line: files are read line by line, by the kernel alone."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from fdadp.errors import InputError
from fdadp.files.atomic import replacing

if TYPE_CHECKING:
    from fdadp._common.typing import FloatArray
    from fdadp.functional.csv_lines import CsvLines

__all__ = ["BOUNDS", "PrivateFiles", "bounds_of", "fit_privately", "points_of"]

BOUNDS = (
    "What is public of a column: --bounds age=0:120 of numbers and curves, --bounds sex=f,m of labels. May be repeated."
)


def bounds_of(texts: Sequence[str] | None) -> dict[str, Any]:
    """Public ranges and levels by column.

    Raises
    ------
    InputError
        Neither NAME=LOW:HIGH nor NAME=A,B, or a name twice.
    """
    found: dict[str, Any] = {}
    for text in texts or []:
        name, equals, value = text.partition("=")
        wanted = f"--bounds must be NAME=LOW:HIGH, as age=0:120, or NAME=A,B, as sex=f,m, got {text!r}"
        if not equals or not name or not value:
            raise InputError(wanted)
        if name in found:
            raise InputError(f"--bounds must be given once of each column, got {name} twice")
        if "," in value:
            found[name] = [level.strip() for level in value.split(",")]
            continue
        try:
            low, high = map(float, value.split(":"))
        except ValueError:
            raise InputError(wanted) from None
        found[name] = (low, high)
    return found


def points_of(texts: Sequence[str] | None) -> dict[str, int]:
    """Numbers of points by column of curves; raises InputError for all but NAME=POINTS."""
    found = {}
    for text in texts or []:
        name, _, value = text.partition("=")
        if not name or not value.isdecimal():
            raise InputError(f"--points must be NAME=POINTS, as X=101, got {text!r}")
        found[name] = int(value)
    return found


@dataclass(frozen=True)
class PrivateFiles:
    """Files of which only the labels of columns have been read.

    Attributes
    ----------
    curves : mapping of str to CsvLines
    table : CsvLines or None
    """

    curves: Mapping[str, CsvLines]
    table: CsvLines | None

    @classmethod
    def of(cls, curves: Sequence[str] | None, table: Path | None) -> PrivateFiles:
        """Read first lines of files of curves, each NAME=FILE, and of a table.

        Raises
        ------
        InputError, FileFormatError, FileNotFoundError
            All of it about names and labels of columns.
        """
        from fdadp.functional.csv_lines import CsvLines

        lines = None if table is None else CsvLines.of(table)
        names = list(() if lines is None else lines.names)
        found: dict[str, CsvLines] = {}
        for entry in curves or []:
            name, equals, path = entry.partition("=")
            if not equals or not name or not path:
                raise InputError(f"--curves must be NAME=FILE, as X=x.csv, got {entry!r}")
            names.append(name)
            found[name] = CsvLines.of(path)
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"--curves and --table must have different names, got {twice!r} twice")
        if not names:
            raise InputError("--curves or --table must be given, got neither")
        return cls(found, lines)

    def grids(self) -> dict[str, FloatArray]:
        """Points of all columns of curves."""
        return {name: lines.grid()[0] for name, lines in self.curves.items()}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all columns."""
        return (*self.curves, *(() if self.table is None else self.table.names))

    def check_has(self, texts: Sequence[str]) -> None:
        """Refuse columns, or those that expressions read, that are in no file.

        Raises
        ------
        InputError
        """
        from fdadp.regression.row_functions import expression, row_function
        from fdadp.regression.table import unknown_column

        for text in texts:
            plain = text in self.names or (text.isidentifier() and row_function(text) is None)
            for name in (text,) if plain else expression(text).sources:
                if name not in self.names:
                    raise unknown_column(name, self.names, "the files")

    def tables(self) -> Iterator[dict[str, Any]]:
        """Blocks of rows, as columns of text; rows are those of the same number in all files."""
        used = {name: lines.grid()[1] for name, lines in self.curves.items()}
        sources = [lines.blocks() for lines in self.curves.values()]
        tables = itertools.repeat(None) if self.table is None else self.table.blocks()
        if self.table is not None and not sources:
            yield from (self._columns(block) for block in self.table.blocks())
            return
        for blocks, table in zip(zip(*sources, strict=True), tables, strict=self.table is not None):
            own = {name: block[:, used[name]] for name, block in zip(self.curves, blocks, strict=True)}
            yield own | ({} if table is None else self._columns(table))

    def _columns(self, block: Any) -> dict[str, Any]:
        assert self.table is not None
        return {name: block[:, i] for i, name in enumerate(self.table.names)}


def fit_privately(
    model: Any, files: PrivateFiles, out: Path, *, groups: str | None, offset: str | None, dry_run: bool
) -> bool:
    """Show the plan, then fit from files and write the ledger beside the model; return whether there is a fit.

    Parameters
    ----------
    model : FunctionalRegression or ScalarRegression
        With privacy and bounds.
    files : PrivateFiles
    out : Path
        Where the model is to be written.
    groups, offset : str, optional
    dry_run : bool
        Only show the plan.

    Raises
    ------
    InputError, PrivacyError
        Before a row is read; or one constant sentence, if that fails.
    """
    ledger = out.with_suffix(".ledger.json")
    if out.is_dir() or not os.access(next(p for p in out.absolute().parents if p.exists()), os.W_OK):
        raise InputError(f"--out must be a file that can be written, got {str(out)!r}")
    named = {name.strip("`") for name in re.findall(r"`[^`]*`|\w+", model.model)}
    files.check_has([*(name for name in model.bounds if name in named), *filter(None, (groups, offset))])
    grids = files.grids()
    if model.privacy.n is not None or dry_run:
        typer.echo(f"{model.plan(grids, groups=groups, offset=offset)}\n")
    if dry_run:
        return False
    model.fit_chunks(files.tables, grids=grids, groups=groups, offset=offset)
    with replacing(ledger) as stream:
        stream.write(model.ledger_.to_json().encode())
    typer.echo("" if model.privacy.n is not None else f"{model.plan_}\n")
    typer.echo(f"{model.ledger_}\n\nLedger written to {ledger}\n")
    return True
