"""``python -m fdadp regress | regress-predict``: regressions of curves or numbers on many terms, by a formula."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any

import typer

from fdadp._common.terminal import plain_messages
from fdadp.cli.private_formulas import BOUNDS, PrivateFiles, bounds_of, fit_privately
from fdadp.errors import FileFormatError, InputError

__all__ = ["regress", "regress_predict"]

CURVES = "Curves by name, as --curves X=x.csv: .csv, .csv.gz, .parquet or .npz, one curve a row. May be repeated."
TABLE = "Numbers and labels, one column each: .csv, .csv.gz or .parquet; a first column named id labels the rows."

Files = Annotated[list[str] | None, typer.Option("--curves", metavar="NAME=FILE", help=CURVES)]
Table = Annotated[Path | None, typer.Option(help=TABLE)]


def regress(
    formula: Annotated[str, typer.Argument(metavar="FORMULA", help="As 'Y ~ ff(X) + s(age) + region'.")],
    curves: Files = None,
    table: Table = None,
    out: Annotated[Path, typer.Option(help="The model file to write (.npz).")] = Path("model.npz"),
    family: Annotated[str, typer.Option(help="gaussian, binomial, poisson or gamma.")] = "gaussian",
    smoothing: Annotated[str, typer.Option(help="reml or gcv.")] = "reml",
    missing: Annotated[
        str, typer.Option(help="raise, linear, smooth, fpca, pace or indicator; auto: raise, in a private fit linear.")
    ] = "auto",
    groups: Annotated[str | None, typer.Option(help="Column that says whose each row is.")] = None,
    offset: Annotated[str | None, typer.Option(help="Column, or expression of some, that is added as it is.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="Budget of a private fit. [default: no privacy]")] = None,
    delta: Annotated[float, typer.Option(help="Private: of (ε, δ); 0 for pure ε.")] = 1e-6,
    n: Annotated[int | None, typer.Option(help="Private: how many persons; left out, that is private, too.")] = None,
    adjacency: Annotated[str | None, typer.Option(help="Private: zero-out, replace or add-remove.")] = None,
    bounds: Annotated[list[str] | None, typer.Option(metavar="NAME=PUBLIC", help=BOUNDS)] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Private: show the plan, read no row.")] = False,
) -> None:
    """Fit a regression of curves or of numbers by a formula; with --epsilon privately, from end to end.

    The response is what stands left of ~: curves, or a column of the table. Rows are those of the same number in all
    files; where files label their rows, labels must agree. A private fit shows its plan before it reads a row, reads
    CSV files line by line, does not compare labels of rows (they are private), and writes its ledger beside the model.
    Each run has a budget of its own: what several runs on the same people spend adds up.
    """
    with plain_messages():
        if out.suffix not in ("", ".npz"):
            raise FileFormatError(f"--out must end in .npz, got {out.name!r}")
        settings: dict[str, Any] = {"family": family, "smoothing": smoothing, "missing": missing}
        beside = {"groups": groups, "offset": offset}
        if epsilon is None:
            only = {"--n": n, "--adjacency": adjacency, "--bounds": bounds, "--dry-run": dry_run or None}
            odd = next((name for name, value in only.items() if value is not None), None)
            if odd is not None:
                raise InputError(f"{odd} is there for private fits: give --epsilon as well")
            data = _read(curves, table)
            model = _model(formula, [name for name, c in data.items() if getattr(c, "ndim", 1) == 2], data)(
                formula, **settings
            )
            if groups is not None and not hasattr(model, "se"):
                raise InputError("--groups is there for responses that are curves")
            model.fit(data, **{name: value for name, value in beside.items() if value is not None})
        else:
            from fdadp.privacy import Privacy

            files = PrivateFiles.of(curves, table)
            privacy = Privacy(epsilon, delta or None, n=n, adjacency=adjacency)
            model = _model(formula, files.curves, files.names)(
                formula, privacy=privacy, bounds=bounds_of(bounds), **settings
            )
            if not fit_privately(model, files, out, dry_run=dry_run, **beside):
                return
        path = model.save(out)
        typer.echo(model.summary().as_text())
        typer.echo(f"\nModel written to {path}. In Python: {type(model).__name__}.load({str(path)!r})")


def _model(formula: str, curves: Collection[str], names: Collection[str]) -> Any:
    """The kind of model by what the response is."""
    from fdadp.regression.functional import FunctionalRegression
    from fdadp.regression.row_functions import row_function
    from fdadp.regression.scalar import ScalarRegression

    response = formula.partition("~")[0].strip().strip("`")
    function = row_function(response) if response not in names else None
    sources = (response,) if function is None else function.sources
    return FunctionalRegression if any(name in curves for name in sources) else ScalarRegression


def regress_predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file written by regress or save.")],
    out: Annotated[Path, typer.Option(help="Predicted means: .csv, .csv.gz, .parquet or .npz, one row for each.")],
    curves: Files = None,
    table: Table = None,
) -> None:
    """Predict means of new rows with a model that regress wrote."""
    with plain_messages():
        import numpy as np
        import pandas as pd

        from fdadp.functional.tables import check_suffix, write_curves
        from fdadp.regression.functional import FunctionalRegression
        from fdadp.regression.scalar import ScalarRegression

        check_suffix(out)
        data = _read(curves, table)
        index = next((c.index for c in data.values() if not isinstance(c.index, pd.RangeIndex)), None)
        try:
            fitted: Any = FunctionalRegression.load(model)
        except FileFormatError as exc:
            try:
                fitted = ScalarRegression.load(model)
            except FileFormatError:
                raise exc from None
        mean = fitted.predict(data)
        values = np.asarray(getattr(mean, "data_matrix", mean), dtype=np.float64)
        columns = pd.Index(fitted.t_) if hasattr(fitted, "t_") else pd.Index([fitted.response_name_])
        frame = pd.DataFrame(values.reshape(len(values), -1), index=index, columns=columns)
        write_curves({out: frame})
        typer.echo(f"{len(frame)} predictions written to {out}")


def _read(curves: list[str] | None, table: Path | None) -> dict[str, Any]:
    """Columns of all files by name."""
    from fdadp.functional.tables import read_curves

    data: dict[str, Any] = {}
    if table is not None:
        frame = _read_table(table)
        data = {str(name): frame[name] for name in frame.columns}
    for entry in curves or []:
        name, equals, path = entry.partition("=")
        if not equals or not name or not path:
            raise InputError(f"--curves must be NAME=FILE, as X=x.csv, got {entry!r}")
        if name in data:
            raise InputError(f"--curves and --table must have different names, got {name!r} twice")
        data[name] = read_curves(path)
    if not data:
        raise InputError("--curves or --table must be given, got neither")
    return data


def _read_table(path: Path) -> Any:
    import pandas as pd

    from fdadp.functional.axis import is_identifier

    if not path.exists():
        raise FileNotFoundError(f"no such file: {path}")
    if not path.name.endswith((".csv", ".csv.gz", ".parquet")):
        raise FileFormatError(f"--table must end in .csv, .csv.gz or .parquet, got {path.name!r}")
    try:
        frame = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path, encoding="utf-8-sig")
    except ImportError as exc:
        raise FileFormatError("parquet needs pyarrow: pip install pyarrow") from exc
    except (ValueError, UnicodeDecodeError, OSError) as exc:  # pandas' parser raises ValueError's kinds
        raise FileFormatError(f"{path} must be a table with a row of names, got {exc}") from None
    first = frame.columns[0] if frame.shape[1] else None
    unnamed = isinstance(first, str) and first.startswith("Unnamed:")
    return frame.set_index(first) if unnamed or is_identifier(first) else frame
