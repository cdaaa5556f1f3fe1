"""``python -m fdadp mean | fpca``: private summaries of a file of curves."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fdadp._common.terminal import plain_messages
from fdadp.cli import options as option
from fdadp.cli.inputs import CurvesFile, Reading, check_out, read_file
from fdadp.cli.private_files import (
    ONLY_PRIVATE,
    PrivateFiles,
    bounds_of,
    check_not_read,
    check_writable,
    labels_of,
    privacy_of,
    refuse_given,
    write_ledger,
)
from fdadp.errors import InputError

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
    table: option.Table = None,
    groups: option.Groups = None,
    id: option.Id = None,
    sep: option.Sep = ",",
    decimal: option.Decimal = ".",
    epsilon: option.Epsilon = None,
    delta: option.Delta = None,
    n: option.N = None,
    adjacency: option.Adjacency = None,
    bounds: Range = None,
    study: option.StudyFile = None,
    purpose: option.Purpose = None,
) -> None:
    """Release the mean of curves privately, with a band that knows of the noise.

    \b
    Examples:
      fdadp mean Y.csv --bounds 30:180 --epsilon 1 --delta 1e-6 --n 3000
      fdadp mean Y.csv --bounds 30:180 --epsilon 0.5 --study wards.fdadp --table people.csv --groups id
    """
    with plain_messages():
        import numpy as np
        import pandas as pd

        from fdadp._common.checks import fraction
        from fdadp.summaries import PrivateMean

        privacy = privacy_of(epsilon, delta, n, adjacency, study, purpose)
        if privacy is None:
            raise InputError("--epsilon must be given: mean is a private release")
        fraction(level, "level")
        fitted = PrivateMean(privacy=privacy, bounds=_range(bounds))
        _release(fitted, curves, table, groups, id, out, Reading(sep=sep, decimal=decimal))
        low, high = (np.ravel(side) for side in fitted.band(level))
        columns = {"point": fitted.grid_, "mean": fitted.mean_, "lower": low, "upper": high}
        _finish(fitted, pd.DataFrame(columns), out)


def fpca(
    curves: Curves,
    out: Annotated[Path, typer.Option(help="Model file (.npz), if private; functions go beside it, .csv.")] = Path(
        "fpca.npz"
    ),
    components: Annotated[str, typer.Option(help="How many, or the share of the variance to explain.")] = "0.95",
    header: option.Header = True,
    long: option.Long = None,
    grid: option.Grid = None,
    table: option.Table = None,
    groups: option.Groups = None,
    id: option.Id = None,
    sep: option.Sep = ",",
    decimal: option.Decimal = ".",
    epsilon: option.Epsilon = None,
    delta: option.Delta = None,
    n: option.N = None,
    adjacency: option.Adjacency = None,
    bounds: Range = None,
    study: option.StudyFile = None,
    purpose: option.Purpose = None,
) -> None:
    """Functional principal components of curves; with --epsilon privately.

    \b
    Examples:
      fdadp fpca Y.csv --components 3
      fdadp fpca Y.csv --components 3 --bounds 30:180 --epsilon 1 --delta 1e-6 --n 3000
    """
    with plain_messages():
        from fdadp.cli.additive import components_of
        from fdadp.summaries import PrivateFPCA

        count, how = components_of(components), Reading(header, long, sep, decimal, labels_of(grid))
        privacy = privacy_of(epsilon, delta, n, adjacency, study, purpose)
        if privacy is not None:
            refuse_given({"--no-header": not header}, "cannot be in a private release")
            released = PrivateFPCA(n_components=count, privacy=privacy, bounds=_range(bounds))
            _release(released, curves, table, groups, id, out, how)
            _say_shares(released)
            _finish(released, _functions(released), out)
            return
        from fdadp.functional.fpca import FPCA

        only = {"--bounds": bounds, "--grid": grid, "--groups": groups, "--id": id, "--table": table}
        refuse_given(only, ONLY_PRIVATE)
        check_not_read([out.with_suffix(".csv")], [CurvesFile.of(curves).path])
        fitted = FPCA(n_components=count).fit(read_file(curves, how))
        _say_shares(fitted)
        _write(_functions(fitted), out)


def _release(
    fitted: Any, curves: Path, table: Path | None, groups: str | None, id: str | None, out: Path, how: Reading
) -> None:
    """Fit from a file that the kernel reads, line by line or in pieces."""
    check_out(out)
    check_not_read(
        [out, *(out.with_suffix(kind) for kind in (".csv", ".ledger.json"))], [CurvesFile.of(curves).path, table]
    )
    check_writable(out)
    if (table is None) is not (groups is None):
        raise InputError("--table and --groups must be given together: whose each row is")
    known = next((name for name, one in (("--id", id), ("--long", how.long)) if one is not None), None)
    if known is not None:
        refuse_given({"--table": table, "--groups": groups}, f"must be left out with {known}, which says whose each is")
    files = PrivateFiles.of({"Y": CurvesFile.of(curves)}, table, id, how)
    if groups is not None:
        files.check_has([groups])
        typer.echo(f"rows of {curves} and {table} are taken by position; --id takes ids of {curves} itself", err=True)
    person = groups or files.id

    def rows() -> Any:
        for block in files.tables() if files.id is None else files.joined().sources["Y"]():
            yield block["Y"] if person is None else (block["Y"], block[person])

    fitted.fit_chunks(rows, t=files.grids()["Y"], groups=None if person is None else True)
    write_ledger(fitted, out)


def _finish(fitted: Any, frame: pd.DataFrame, out: Path) -> None:
    path = fitted.save(out)
    typer.echo(fitted.summary().as_text())
    typer.echo(f"\nModel written to {path}. In Python: {type(fitted).__name__}.load({str(path)!r})")
    _write(frame, out)


def _write(frame: pd.DataFrame, out: Path) -> None:
    from fdadp.files.atomic import replacing

    beside = out.with_suffix(".csv")
    with replacing(beside) as stream:
        stream.write(frame.to_csv(index=False).encode())
    typer.echo(f"curves: {beside}")


def _functions(fitted: Any) -> pd.DataFrame:
    """Points, mean and eigenfunctions, one column each."""
    import pandas as pd

    functions = {f"component {k}": values for k, values in enumerate(fitted.eigenfunctions_, 1)}
    return pd.DataFrame({"point": fitted.grid_, "mean": fitted.mean_, **functions})


def _say_shares(fitted: Any) -> None:
    for k, share in enumerate(fitted.explained_variance_ratio_, 1):
        typer.echo(f"component {k}: {100 * share:.1f} % of the variance")


def _range(text: str | None) -> Any:
    """Public range of the values; raises InputError."""
    if text is None:
        raise InputError("--bounds must be the public range of the values, as --bounds 30:180")
    found = bounds_of([f"Y={text}"])["Y"]
    if not isinstance(found, tuple):
        raise InputError(f"--bounds must be LOW:HIGH, as --bounds 30:180, got {text!r}")
    return found
