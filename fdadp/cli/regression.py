"""``python -m fdadp fit | predict | plan``: function-on-function regression of the user's own curves."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fdadp._common.terminal import no_window, plain_messages
from fdadp.cli.private_formulas import BOUNDS, bounds_of, points_of
from fdadp.errors import FileFormatError, InputError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["fit", "plan", "predict"]

LONG = "Long tables, one value a row: the columns of id, point and value, as --long id,s,value."


def fit(
    x: Annotated[Path, typer.Argument(metavar="X", help="Predictor curves: .csv, .csv.gz, .parquet or .npz.")],
    y: Annotated[Path, typer.Argument(metavar="Y", help="Response curves, rows in the same order.")],
    out: Annotated[Path, typer.Option(help="The model file to write (.npz).")] = Path("model.npz"),
    components: Annotated[str, typer.Option(help="Number of eigenfunctions of Y, or the share to explain.")] = "0.95",
    basis_x: Annotated[str, typer.Option(help="B-splines over the values of X; auto grows with n.")] = "auto",
    basis_s: Annotated[str, typer.Option(help="B-splines over the grid of X.")] = "auto",
    smoothing: Annotated[str, typer.Option(help="reml, gcv, or two numbers with a comma between.")] = "reml",
    missing: Annotated[str, typer.Option(help="Missing values: raise (refuse), linear, smooth or fpca.")] = "raise",
    header: Annotated[bool, typer.Option(help="Whether the CSV files start with a row of labels.")] = True,
    long: Annotated[str | None, typer.Option(help=LONG)] = None,
) -> None:
    """Fit an additive function-on-function regression to your own curves (without privacy).

    One curve a row. Column labels that are numbers, dates or times are the grid, else it is even on [0, 1]; a first
    column that is not numeric labels the curves, which must then be the same ones in the same order in both files.
    """
    with plain_messages():
        from fdadp.regression import AdditiveFunctionOnFunction

        if out.suffix not in ("", ".npz"):
            raise FileFormatError(f"--out must end in .npz, got {out.name!r}")
        model = AdditiveFunctionOnFunction(
            n_basis_x=_basis(basis_x),
            n_basis_s=_basis(basis_s),
            n_components=_components(components),
            smoothing=_smoothing(smoothing),
            missing=missing,
        )
        model.fit(_read(x, header, long), _read(y, header, long))
        path = model.save(out)
        typer.echo(model.summary().as_text())
        typer.echo(f"\nModel written to {path}. In Python: AdditiveFunctionOnFunction.load({str(path)!r})")


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file written by fit or save.")],
    x: Annotated[Path, typer.Argument(metavar="X", help="Predictor curves: .csv, .csv.gz, .parquet or .npz.")],
    out: Annotated[Path, typer.Option(help="Predicted curves: .csv, .csv.gz, .parquet or .npz.")],
    interval: Annotated[
        float | None, typer.Option(help="Level of prediction intervals, written beside it as -lower and -upper.")
    ] = None,
    header: Annotated[bool, typer.Option(help="Whether a CSV file starts with a row of labels.")] = True,
    long: Annotated[str | None, typer.Option(help=LONG)] = None,
) -> None:
    """Predict response curves with a saved model."""
    with plain_messages():
        from fdadp.functional.curves import as_curves
        from fdadp.functional.tables import check_suffix, write_curves
        from fdadp.regression import AdditiveFunctionOnFunction

        suffix = check_suffix(out)
        fitted = AdditiveFunctionOnFunction.load(model)
        X = _read(x, header, long)
        if X.shape[1] != fitted.s_.size and not as_curves(X).gridded:
            raise InputError(
                f"{x} must have {fitted.s_.size} columns as the training curves had, or a grid as its first row, "
                f"got {X.shape[1]}"
            )
        files = {out: _as_frame(fitted.predict(X), X, fitted)}
        if interval is not None:
            stem = out.name[: -len(suffix)]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # said by predict already
                limits = fitted.predict_interval(X, level=interval)
            for side, curves in zip(("lower", "upper"), limits, strict=True):
                files[out.with_name(f"{stem}-{side}{suffix}")] = _as_frame(curves, X, fitted)
        write_curves(files)
        for path in files:
            typer.echo(f"{len(X)} curves written to {path}")


def plan(
    formula: Annotated[str | None, typer.Argument(metavar="[FORMULA]", help="As 'Y ~ ff(X) + s(age)'.")] = None,
    n: Annotated[int | None, typer.Option(help="Persons; left out, the smallest n that reaches --accuracy.")] = None,
    epsilon: Annotated[float, typer.Option(help="Budget.")] = 1.0,
    delta: Annotated[float, typer.Option(help="Of (ε, δ) privacy; 0 for pure ε.")] = 1e-6,
    accuracy: Annotated[float | None, typer.Option(help="Wanted share of the explainable variance, as 0.9.")] = None,
    adjacency: Annotated[
        str, typer.Option(help="zero-out (n public), add-remove (n private) or replace.")
    ] = "zero-out",
    bounds: Annotated[list[str] | None, typer.Option(metavar="NAME=PUBLIC", help=f"Of a formula. {BOUNDS}")] = None,
    points: Annotated[list[str] | None, typer.Option(metavar="NAME=POINTS", help="Of a formula: grids.")] = None,
    family: Annotated[str, typer.Option(help="Of a formula: gaussian, binomial or poisson.")] = "gaussian",
    rate: Annotated[float | None, typer.Option(help="Expected share of ones, or mean count, of such families.")] = None,
    offset: Annotated[str | None, typer.Option(help="Of a formula: what the response is fitted less of.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for forecast.txt and forecast.png.")] = None,
) -> None:
    """Predict what a private fit will explain, before any data are touched: by n, by ε, and what it takes.

    Of the additive model of one curve, or of a formula, whose columns are described by --bounds.
    """
    no_window()
    with plain_messages():
        from fdadp import planner
        from fdadp.plot._canvas import MissingPlotsError
        from fdadp.studies.report import save_figure

        forecast: Any
        if formula is None:
            if bounds or points or offset or rate is not None or family != "gaussian":
                raise InputError(
                    "--bounds and --points are there for formulas, as 'Y ~ ff(X) + s(age)', as are --family, --rate "
                    "and --offset"
                )
            forecast = planner.plan(None, n, epsilon, delta or None, accuracy=accuracy, adjacency=adjacency)
        else:
            if n is None or accuracy is not None:
                raise InputError("--n must be given with a formula, and --accuracy left out")
            own: dict[str, Any] = {"bounds": bounds_of(bounds), "grids": points_of(points)}
            own |= {"family": family, "rate": rate, "offset": offset}
            forecast = planner.plan(formula, n, epsilon, delta or None, adjacency=adjacency, **own)
        typer.echo(str(forecast))
        if out is None:
            return
        out.mkdir(parents=True, exist_ok=True)
        (out / "forecast.txt").write_text(f"{forecast}\n", encoding="utf-8")
        typer.echo(f"\ntext: {out / 'forecast.txt'}")
        if formula is not None:
            return
        try:
            typer.echo(f"figure: {save_figure(forecast.plot(), out / 'forecast.png')}")
        except MissingPlotsError:
            typer.echo("no figure: pip install matplotlib", err=True)


def _read(path: Path, header: bool, long: str | None) -> pd.DataFrame:
    """Read a file of curves and say on stderr how it was understood."""
    from fdadp.functional.curves import as_curves
    from fdadp.functional.tables import read_curves

    names: Any = None if long is None else tuple(name.strip() for name in long.split(","))
    frame = read_curves(path, header=header, long=names)
    read = as_curves(frame, name=str(path))
    grid = "no grid in the file, so an even one"
    if read.gridded:
        grid = f"grid {read.grid[0]:g} to {read.grid[-1]:g}{'' if read.unit is None else f' {read.unit}'}"
    labels = "" if type(frame.index).__name__ == "RangeIndex" else ", labelled"
    typer.echo(f"{path}: {len(frame)} curves{labels}, {frame.shape[1]} points, {grid}", err=True)
    return frame


def _as_frame(curves: Any, X: pd.DataFrame, fitted: Any) -> pd.DataFrame:
    """Predictions as a data frame: rows labelled as X, columns as the training responses or by their grid."""
    import numpy as np
    import pandas as pd

    if isinstance(curves, pd.DataFrame) and not curves.columns.equals(pd.RangeIndex(curves.shape[1])):
        return curves
    values = np.reshape(getattr(curves, "data_matrix", curves), (len(X), -1))
    return pd.DataFrame(values, index=X.index, columns=pd.Index(fitted.t_))


def _components(text: str) -> float:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise InputError(f"--components must be a whole number or a share such as 0.95, got {text!r}") from None


def _basis(text: str) -> int | str:
    return int(text) if text.isdecimal() else text


def _smoothing(text: str) -> Any:
    if text in ("reml", "gcv"):
        return text
    try:
        pair = [float(part) for part in text.split(",")]
    except ValueError:
        pair = []
    if len(pair) != 2:
        raise InputError(f"--smoothing must be reml, gcv or two numbers with a comma between, got {text!r}")
    return pair
