"""``python -m fdadp mean | fpca``: private summaries of a file of curves."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import fdadp
from fdadp.cli import private_files
from fdadp.cli import shared_options as option
from fdadp.cli.input_files import CurvesFile, FileFormat, check_out, read_file
from fdadp.cli.private_files import PrivateFiles
from fdadp.cli.shared_options import ONLY_PRIVATE, components_of, refuse_given
from fdadp.errors import FileFormatError, InputError
from fdadp.files.regular_files import text_of

if TYPE_CHECKING:
    import pandas as pd

CURVES = "A file of curves, one a row: .csv, .csv.gz, .parquet, .npz, .npy or .zarr."
RANGE = "Public range of the curves' values, as --bounds 30:180."

Curves = Annotated[Path, typer.Argument(metavar="CURVES", help=CURVES)]
Range = Annotated[str | None, typer.Option(metavar="LOW:HIGH", help=RANGE, rich_help_panel=option.PRIVATE)]


def mean(
    curves: Curves,
    out: Annotated[Path, typer.Option(help="Model file (.npz); the curve and its band go beside it as .csv.")] = Path(
        "mean.npz"
    ),
    level: Annotated[float, typer.Option(help="Of the band, of the whole curve at once.")] = 0.95,
    *,
    whose: option.PersonOptions,
    sep: option.Sep = ",",
    decimal: option.Decimal = ".",
    private: option.PrivacyOptions,
    bounds: Range = None,
) -> None:
    """Release the mean of curves privately, with a band that includes the noise.

    \b
    Examples:
      fdadp mean Y.csv --bounds 30:180 --epsilon 1 --delta 1e-6 --n 3000
      fdadp mean Y.csv --bounds 30:180 --epsilon 0.5 --study wards.fdadp --table people.csv --groups id
    """
    import numpy as np
    import pandas as pd

    from fdadp._common.argument_checks import fraction

    privacy = private.required("mean")
    fraction(level, "level")
    fitted = fdadp.PrivateMean(privacy=privacy, bounds=range_of(bounds))
    release(fitted, curves, whose, out, FileFormat(sep, decimal))
    low, high = (np.ravel(side) for side in fitted.band(level))
    private_files.save_model(fitted, out)
    write_curves(pd.DataFrame({"point": fitted.grid_, "mean": fitted.mean_, "lower": low, "upper": high}), out)


def fpca(
    curves: Curves,
    out: Annotated[Path, typer.Option(help="Model file (.npz), if private; functions go beside it, .csv.")] = Path(
        "fpca.npz"
    ),
    components: Annotated[str, typer.Option(help="How many, or the share of the variance to explain.")] = "0.95",
    *,
    how: FileFormat,
    grid: option.Grid = None,
    whose: option.PersonOptions,
    private: option.PrivacyOptions,
    bounds: Range = None,
) -> None:
    """Functional principal components of curves; with --epsilon privately.

    \b
    Examples:
      fdadp fpca Y.csv --components 3
      fdadp fpca Y.csv --components 3 --bounds 30:180 --epsilon 1 --delta 1e-6 --n 3000
    """

    count, how = components_of(components), replace(how, grid=private_files.labels_of(grid))
    privacy = private.privacy()
    if privacy is not None:
        refuse_given({"--no-header": not how.header}, "cannot be in a private release")
        released = fdadp.PrivateFPCA(n_components=count, privacy=privacy, bounds=range_of(bounds))
        release(released, curves, whose, out, how)
        _say_shares(released)
        private_files.save_model(released, out)
        write_curves(functions(released), out)
        return
    only = {"--bounds": bounds, "--grid": grid, "--groups": whose.groups, "--id": whose.id, "--table": whose.table}
    refuse_given(only, ONLY_PRIVATE)
    file = CurvesFile.of(curves)
    private_files.check_not_read([out.with_suffix(".csv")], [file.path])
    fitted = fdadp.FPCA(n_components=count).fit(read_file(file, how))
    _say_shares(fitted)
    write_curves(functions(fitted), out)


def release(fitted: Any, curves: Path, whose: option.PersonOptions, out: Path, how: FileFormat) -> None:
    """Fit from a file that the kernel reads, line by line or in pieces."""
    file, table, groups = CurvesFile.of(curves), whose.table, whose.groups
    check_out(out)
    private_files.check_not_read(
        [out, *(out.with_suffix(kind) for kind in (".csv", ".ledger.json"))], [file.path, table]
    )
    private_files.check_writable(out)
    whose.check()
    known = next((name for name, one in (("--id", whose.id), ("--long", how.long)) if one is not None), None)
    if known is not None:
        refuse_given({"--table": table, "--groups": groups}, f"must be left out with {known}, which has the person ids")
    files = PrivateFiles.of({"Y": file}, table, how, whose.id)
    if groups is not None:
        files.check_has([groups])
        typer.echo(f"rows of {curves} and {table} are taken by position; --id takes ids of {curves} itself", err=True)
    person = groups or files.id

    def rows() -> Any:
        for block in files.tables() if files.id is None else files.joined().sources["Y"]():
            yield block["Y"] if person is None else (block["Y"], block[person])

    fitted.fit_chunks(rows, t=files.grids()["Y"], groups=None if person is None else True)
    private_files.write_ledger(fitted.ledger_, fitted.privacy_, out)


def write_curves(frame: pd.DataFrame, out: Path) -> None:
    """Write curves beside a model, one column each."""
    private_files.write_shown(out.with_suffix(".csv"), frame.to_csv(index=False), "curves")


def functions(fitted: Any) -> pd.DataFrame:
    """Points, mean and eigenfunctions, of both levels where there are two, one column each."""
    import pandas as pd

    found = fitted.eigenfunctions_
    levels = found if isinstance(found, dict) else {"component": found}
    columns = {f"{level} {k}": values for level, own in levels.items() for k, values in enumerate(own, 1)}
    return pd.DataFrame({"point": fitted.grid_, "mean": fitted.mean_, **columns})


def _say_shares(fitted: Any) -> None:
    for k, share in enumerate(fitted.explained_variance_ratio_, 1):
        typer.echo(f"component {k}: {100 * share:.1f} % of the variance")


def range_of(text: str | None) -> Any:
    """Public range of the values; raises InputError."""
    if text is None:
        raise InputError("--bounds must be the public range of the values, as --bounds 30:180")
    try:
        low, high = map(float, text.split(":"))
    except ValueError:
        raise InputError(f"--bounds must be LOW:HIGH, as --bounds 30:180, got {text!r}") from None
    return low, high


# ``python -m fdadp table1``: who was in a study, from a file of persons, privately.


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
    groups: Annotated[str | None, typer.Option(help="Column of person ids.")] = None,
    *,
    sep: option.Sep = ",",
    decimal: option.Decimal = ".",
    private: option.PrivacyOptions,
    bounds: option.Bounds = None,
    dry_run: option.DryRun = False,
) -> None:
    """Release table 1 of a study privately: counts, means, quantiles and shares by group, with intervals.

    \b
    Examples:
      fdadp table1 people.csv --bounds age=18:100 --bounds arm=drug,placebo --by arm --epsilon 1 --delta 1e-6 --n 3000
      fdadp table1 people.csv --by arm --epsilon 0.5 --study trial.fdadp --write table1.html
    """
    import pandas as pd

    from fdadp._common.argument_checks import fraction

    privacy = private.required("table1")
    check_out(out)
    paths = shown or [out.with_suffix(".csv")]
    _check_paths(out, paths, [people, facts, private.study])
    fraction(level, "level")
    said = _facts(facts) if facts is not None else {}
    given: dict[str, Any] = {
        "columns": _columns(private_files.bounds_of(bounds), columns),
        "by": by,
        "quantiles": _numbers(quantiles),
        "steps": option.by_name(steps, "--steps", "NAME=STEP, as age=1", float) or None,
    }
    fitted = fdadp.PrivateTable1(privacy=privacy, **_declared(said, given, facts, has_study=private.study is not None))
    plan, names = fitted.plan(), [*fitted.facts, *([] if groups is None else [groups])]
    files = PrivateFiles.of({}, people, FileFormat(sep, decimal))
    check_has(files.names, names, people)
    privacy.check_unit(groups)
    if dry_run:
        typer.echo(plan.to_string(float_format=lambda value: f"{value:.4g}"))
        return
    frame = pd.DataFrame(private_files.read_entries(files, names))
    fitted.fit(frame, groups=None if groups is None else frame[groups])
    private_files.write_ledger(fitted.ledger_, privacy, out)
    private_files.save_model(fitted, out, level)
    for path in paths:
        _write_table(fitted, path, level)


def _check_paths(out: Path, paths: Sequence[Path], read: Sequence[Path | None]) -> None:
    """Refuse to write what has no known form, what is there twice, and over what is read."""
    for path in paths:
        option.check_suffix(path, "--write", *SUFFIXES)
    written = [out, out.with_suffix(".ledger.json"), *paths]
    if len({path.absolute() for path in written}) < len(written):
        raise InputError("--out and --write must be different files, none of them the ledger")
    private_files.check_not_read(written, read)
    for path in written:
        private_files.check_writable(path)


def _declared(said: dict[str, Any], given: dict[str, Any], facts: Path | None, *, has_study: bool) -> dict[str, Any]:
    """Public facts of a file and of options together, each of which is given once."""
    for name, value in given.items():
        if value is not None and name in said:
            raise InputError(f"{name} must be given once, got it in {facts} and by an option, too")
    if not has_study and not isinstance(said.get("columns", given["columns"]), dict):
        raise InputError(
            "--bounds must be given for each column, as --bounds age=18:100 or --bounds sex=f,m (or --facts FILE, "
            "or a --study that has fixed them)"
        )
    return said | {name: value for name, value in given.items() if value is not None}


def check_has(there: Sequence[str], names: Sequence[str], people: Path) -> None:
    """Refuse columns that a file has not, or has more than once: names, no expressions."""
    from fdadp.regression.reading.table_columns import unknown_column

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


def _write_table(fitted: fdadp.PrivateTable1, path: Path, level: float) -> None:
    rows = fitted.estimates_.at(level).frame.rename_axis(["column", "class", "statistic", "group"]).reset_index()
    made = {
        ".txt": lambda: f"{fitted.summary(level).as_text()}\n",
        ".html": lambda: fitted.to_html(level),
        ".csv": lambda: rows.to_csv(index=False),
        ".json": lambda: json.dumps(json.loads(rows.to_json(orient="records")), indent=1, ensure_ascii=False),
    }
    private_files.write_shown(path, made[path.suffix](), "table")
