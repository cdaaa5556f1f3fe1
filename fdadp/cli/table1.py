"""``python -m fdadp table1``: who was in a study, from a file of persons, privately."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fdadp._common.terminal import plain_messages
from fdadp.cli import options as option
from fdadp.cli.inputs import Reading, check_out
from fdadp.cli.private_files import (
    PrivateFiles,
    bounds_of,
    check_not_read,
    check_writable,
    privacy_of,
    write_ledger,
)
from fdadp.errors import FileFormatError, InputError
from fdadp.files.regular import text_of

if TYPE_CHECKING:
    import pandas as pd

    from fdadp.summaries import PrivateTable1

__all__ = ["table1"]

PEOPLE = "Numbers and labels of persons, one a row, with a row of names: .csv, .csv.gz or .parquet."
FACTS = 'Public facts in JSON: {"columns": {"age": [18, 100], "sex": ["f", "m"]}, "by": "sex", "steps": {"age": 1}}.'
SHOWN = "The table: .txt, .html, .csv or .json. May be repeated. (default: beside the model, .csv)"
SUFFIXES = (".txt", ".html", ".csv", ".json")


def table1(
    people: Annotated[Path, typer.Argument(metavar="PEOPLE", help=PEOPLE)],
    out: Annotated[Path, typer.Option(help="Model file (.npz).")] = Path("table1.npz"),
    shown: Annotated[list[Path] | None, typer.Option("--write", metavar="FILE", help=SHOWN)] = None,
    by: Annotated[str | None, typer.Option(help="Column of labels: its groups side by side.")] = None,
    quantiles: Annotated[str | None, typer.Option(help="As 0.1,0.5,0.9; none. (default: quartiles)")] = None,
    steps: Annotated[
        list[str] | None, typer.Option(metavar="NAME=STEP", help="Numbers are multiples of it, as age=1.")
    ] = None,
    columns: Annotated[str | None, typer.Option(help="Names, of what the study has fixed. (default: all)")] = None,
    facts: Annotated[Path | None, typer.Option(help=FACTS)] = None,
    level: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    groups: Annotated[str | None, typer.Option(help="Column that says whose each row is.")] = None,
    sep: option.Sep = ",",
    decimal: option.Decimal = ".",
    epsilon: option.Epsilon = None,
    delta: option.Delta = None,
    n: option.N = None,
    adjacency: option.Adjacency = None,
    bounds: option.Bounds = None,
    study: option.StudyFile = None,
    purpose: option.Purpose = None,
    dry_run: option.DryRun = False,
) -> None:
    """Release table 1 of a study privately: counts, means, quantiles and shares by group, with intervals.

    \b
    Examples:
      fdadp table1 people.csv --bounds age=18:100 --bounds arm=drug,placebo --by arm --epsilon 1 --delta 1e-6 --n 3000
      fdadp table1 people.csv --by arm --epsilon 0.5 --study trial.fdadp --write table1.html
    """
    with plain_messages():
        from fdadp._common.checks import fraction
        from fdadp.summaries import PrivateTable1

        privacy = privacy_of(epsilon, delta, n, adjacency, study, purpose)
        if privacy is None:
            raise InputError("--epsilon must be given: table1 is a private release")
        check_out(out)
        paths = shown or [out.with_suffix(".csv")]
        for path in paths:
            if path.suffix not in SUFFIXES:
                raise FileFormatError(f"--write must end in {', '.join(SUFFIXES)}, got {path.name!r}")
        written = [out, out.with_suffix(".ledger.json"), *paths]
        if len({path.absolute() for path in written}) < len(written):
            raise InputError("--out and --write must be different files, none of them the ledger")
        check_not_read(written, [people, facts, study])
        for path in written:
            check_writable(path)
        fraction(level, "level")
        said = _facts(facts) if facts is not None else {}
        given: dict[str, Any] = {
            "columns": _columns(bounds_of(bounds), columns),
            "by": by,
            "quantiles": _numbers(quantiles),
            "steps": _steps(steps),
        }
        for name, value in given.items():
            if value is not None and name in said:
                raise InputError(f"{name} must be given once, got it in {facts} and by an option, too")
        if study is None and not isinstance(said.get("columns", given["columns"]), dict):
            raise InputError(
                "--bounds must be given for each column, as --bounds age=18:100 or --bounds sex=f,m (or --facts FILE, "
                "or a --study that has fixed them)"
            )
        fitted = PrivateTable1(privacy=privacy, **said, **{k: v for k, v in given.items() if v is not None})
        plan, names = fitted.plan(), [*fitted.facts, *([] if groups is None else [groups])]
        files = PrivateFiles.of({}, people, how=Reading(sep=sep, decimal=decimal))
        _check_has(files.names, names, people)
        privacy.check_unit(groups)
        if dry_run:
            typer.echo(plan.to_string(float_format=lambda value: f"{value:.4g}"))
            return
        frame = _read(files, names)
        fitted.fit(frame, groups=None if groups is None else frame[groups])
        write_ledger(fitted, out)
        path = fitted.save(out)
        typer.echo(fitted.summary(level).as_text())
        typer.echo(f"\nModel written to {path}. In Python: PrivateTable1.load({str(path)!r})")
        for path in paths:
            _write(fitted, path, level)


def _check_has(there: Sequence[str], names: Sequence[str], people: Path) -> None:
    """Refuse columns that a file has not, or has more than once: names, no expressions."""
    from fdadp.regression.table import unknown_column

    for name in names:
        if name not in there:
            raise unknown_column(name, there, str(people))
        if there.count(name) > 1:
            raise InputError(f"{people} must have each column once, got {there.count(name)} of {name!r}")


def _facts(path: Path) -> dict[str, Any]:
    """Public facts of a JSON file: two numbers are a range, all else a list of classes."""
    names = ("columns", "by", "quantiles", "steps")
    try:
        said = json.loads(text_of(path))
    except ValueError as exc:
        raise FileFormatError(f"{path} must be JSON, got {exc}") from None
    if not isinstance(said, dict) or not isinstance(said.get("columns", {}), dict) or set(said) - set(names):
        raise FileFormatError(
            f"{path} must be an object with some of {', '.join(names)}, columns by name, got {said!r}"
        )
    for name, fact in said.get("columns", {}).items():
        if not isinstance(fact, list):
            raise FileFormatError(f"{path} must have [low, high] or a list of classes for {name}, got {fact!r}")
        numbers = len(fact) == 2 and all(isinstance(v, int | float) and not isinstance(v, bool) for v in fact)
        said["columns"][name] = tuple(fact) if numbers else fact
    return said


def _columns(bounds: dict[str, Any], names: str | None) -> Any:
    if names is None:
        return bounds or None
    if bounds:
        raise InputError("--columns must be left out with --bounds, which names the columns")
    return [name.strip() for name in names.split(",")]


def _numbers(text: str | None) -> Sequence[float] | None:
    if text is None:
        return None
    try:
        return () if text == "none" else [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"--quantiles must be numbers with commas, as 0.1,0.5,0.9, or none, got {text!r}") from None


def _steps(texts: Sequence[str] | None) -> dict[str, float] | None:
    found: dict[str, float] = {}
    for text in texts or []:
        name, _, value = text.partition("=")
        try:
            step = float(value)
        except ValueError:
            raise InputError(f"--steps must be NAME=STEP, as age=1, got {text!r}") from None
        if name in found:
            raise InputError(f"--steps must be given once of each column, got {name} twice")
        found[name] = step
    return found or None


def _read(files: PrivateFiles, names: Sequence[str]) -> pd.DataFrame:
    """Columns of a file, entries as they are: what they mean is the kernel's to say, entry by entry."""
    import numpy as np
    import pandas as pd

    blocks = list(files.tables())
    read = {name: [np.asarray(block[name], dtype=object) for block in blocks] for name in dict.fromkeys(names)}
    return pd.DataFrame({name: np.concatenate([np.empty(0, dtype=object), *parts]) for name, parts in read.items()})


def _write(fitted: PrivateTable1, path: Path, level: float) -> None:
    from fdadp.files.atomic import replacing

    rows = fitted.estimates_.at(level).frame.rename_axis(["column", "class", "statistic", "group"]).reset_index()
    made = {
        ".txt": lambda: f"{fitted.summary(level).as_text()}\n",
        ".html": lambda: fitted.to_html(level),
        ".csv": lambda: rows.to_csv(index=False),
        ".json": lambda: json.dumps(json.loads(rows.to_json(orient="records")), indent=1, ensure_ascii=False),
    }
    with replacing(path) as stream:
        stream.write(made[path.suffix]().encode())
    typer.echo(f"table: {path}")
