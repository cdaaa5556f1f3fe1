"""``python -m fdadp predict | evaluate | contrasts | slopes``: what a saved model says of rows, and how well."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import fdadp
from fdadp.cli import input_files
from fdadp.cli import shared_options as option
from fdadp.cli.input_files import CurvesFile, FileFormat, has_ids, labelled_files, load_model, read_columns
from fdadp.cli.private_files import edges_of, write_shown
from fdadp.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

X = "Of a model of two files: predictor curves."
Level = Annotated[float, typer.Option(help="Of intervals and bands.")]
Table = Annotated[Path | None, typer.Option(help="The table as CSV. (default: only shown)")]
NOT_PRIVATE = "Computed from these rows without privacy: where they are people's, keep these figures with them."


def predict(
    model: option.Model,
    x: Annotated[Path | None, typer.Argument(metavar="[X]", help=X)] = None,
    out: Annotated[
        Path | None, typer.Option(help="Predicted means: .csv, .csv.gz, .parquet or .npz, one row for each. Required.")
    ] = None,
    *,
    rows: option.DataOptions,
    times: Annotated[
        str | None,
        typer.Option(help="Of times to an event: where survival is predicted, as 1,4,8. (default: all periods)"),
    ] = None,
    interval: Annotated[
        float | None, typer.Option(help="Level of prediction intervals, written beside it as -lower and -upper.")
    ] = None,
    how: FileFormat,
) -> None:
    """Predict the responses of new rows with a saved model; of times to an event survival curves.

    Of ordered categories these are probabilities, a column each.

    \b
    Examples:
      fdadp predict model.npz Xnew.csv --out predicted.csv --interval 0.95
      fdadp predict model.npz --curves X=new.csv --table new-people.csv --out predicted.csv
    """
    from fdadp.functional.files.curve_files import check_suffix, write_curves

    if out is None:
        raise InputError("--out must be given: the file for predictions")
    suffix = check_suffix(out)
    fitted = load_model(model)
    data = _new(fitted, model, [] if x is None else [x], ["X"], rows, how)
    if hasattr(fitted, "predict_survival"):
        if interval is not None:
            raise InputError("--interval must be left out for times to an event")
        files = {out: _survival(fitted, data, edges_of(times, "--times"))}
    elif times is not None:
        raise InputError("--times is there for models of times to an event")
    else:
        files = {out: _predicted(fitted, data)}
    if interval is not None:
        stem = out.name[: -len(suffix)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # said by predict already
            limits = fitted.predict_interval(data, level=interval)
        for side, found in zip(("lower", "upper"), limits, strict=True):
            files[out.with_name(f"{stem}-{side}{suffix}")] = _as_frame(found, data, fitted)
    write_curves(files)
    what = "predictions" if hasattr(fitted, "response_name_") else "curves"
    for path, frame in files.items():
        typer.echo(f"{len(frame)} {what} written to {path}")


def evaluate(
    model: option.Model,
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="[X Y]", help=f"{X[:-1]}, and observed responses.")
    ] = None,
    *,
    rows: option.DataOptions,
    level: Annotated[float, typer.Option(help="Of the intervals whose coverage is counted.")] = 0.95,
    out: Annotated[Path | None, typer.Option(help="The figures as JSON. (default: only shown)")] = None,
    how: FileFormat,
) -> None:
    """Hold a saved model against observed responses: share explained, error, and what intervals cover.

    Judge on rows that the model was not fitted to. The figures are not private.

    \b
    Examples:
      fdadp evaluate model.npz Xnew.csv Ynew.csv
      fdadp evaluate model.npz --curves X=x.csv --curves Y=y.csv --table people.csv --out figures.json
    """
    fitted = load_model(model)
    data = _new(fitted, model, files or [], ["X", "Y"], rows, how)
    found = _figures(fitted, data, level)
    for name, value in found.items():
        typer.echo(f"{name:<24}{value:.4g}")
    typer.echo(f"\n{NOT_PRIVATE}")
    if out is not None:
        write_shown(out, json.dumps(found, indent=1) + "\n", "figures")


def contrasts(
    model: option.Model,
    column: Annotated[str, typer.Argument(help="Of the factor.")],
    *,
    rows: option.DataOptions,
    pairs: Annotated[
        str, typer.Option("--how", help="pairwise, reference (each level less the first), mean or sequential.")
    ] = "pairwise",
    level: Level = 0.95,
    out: Table = None,
    how: FileFormat,
) -> None:
    """Compare the levels of a factor with a saved model, averaged over the rows of a table.

    Of a model of curves along t, with a band for all of the curve. A private model spends nothing more.

    \b
    Example:
      fdadp contrasts model.npz arm --table people.csv --out arms.csv
    """
    from fdadp import inference

    fitted, data = _asked(model, rows, how)
    _show(inference.contrasts(fitted, column, pairs, new=data, level=level), out)


def slopes(
    model: option.Model,
    column: Annotated[str, typer.Argument(help="Of numbers.")],
    *,
    rows: option.DataOptions,
    level: Level = 0.95,
    out: Table = None,
    how: FileFormat,
) -> None:
    """Say by how much the mean changes with a number, averaged over the rows of a table.

    Of a model of curves along t, with a band for all of the curve. A private model spends nothing more.

    \b
    Example:
      fdadp slopes model.npz age --table people.csv --out age.csv
    """
    from fdadp import inference

    fitted, data = _asked(model, rows, how)
    _show(inference.slopes(fitted, column, new=data, level=level), out)


def _asked(model: Path, rows: option.DataOptions, how: FileFormat) -> tuple[Any, Any]:
    """A model by a formula, and the rows at which it is asked."""
    fitted = load_model(model)
    if not hasattr(fitted, "response_name_"):
        raise InputError(
            f"{model} must hold a regression by a formula of curves or numbers, got {type(fitted).__name__}"
        )
    return fitted, _new(fitted, model, [], [], rows, how)


def _show(found: Any, out: Path | None) -> None:
    """Show estimates and their test, and write the table."""
    typer.echo(str(found))
    for name, row in found.test().iterrows():
        typer.echo(f"{name}: p = {row['p']:.3g} that it is 0 everywhere")
    if out is not None:
        write_shown(out, found.to_frame().to_csv(index=False), "estimates")


def _survival(fitted: Any, data: Any, times: Sequence[float] | None) -> pd.DataFrame:
    """Survival curves of new persons, one a row."""
    import pandas as pd

    found = fitted.predict_survival(data, times)
    columns = fitted.times_ if times is None else times
    return found if isinstance(found, pd.DataFrame) else pd.DataFrame(_values(found), columns=pd.Index(columns))


def _figures(fitted: Any, data: Any, level: float) -> dict[str, float]:
    """Share explained, root mean squared error and coverage, where responses were observed."""
    import numpy as np

    if hasattr(fitted, "predict_survival"):
        from fdadp.functional.metrics import concordance
        from fdadp.regression.survival import SurvivalFormula

        names = SurvivalFormula.read(fitted.formula)
        time, event, *late = (np.ravel(_values(data[name])) for name in names.followed)
        risk = np.asarray(fitted.predict(data))
        return {"rows": float(len(time)), "concordance": concordance(time, event, risk, *late)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a score is not private is said in a sentence of its own
        additive = isinstance(data, list)
        explained = fitted.score(*data) if additive else fitted.score(data)
    new = data[0] if additive else data
    truth = _values(data[1] if additive else _response(fitted, data))
    found = {"rows": float(len(truth)), "share explained": float(explained)}
    if truth.dtype.kind != "f":  # of labels there is no distance
        return found
    found["root mean square error"] = float(np.sqrt(np.nanmean((truth - _values(fitted.predict(new))) ** 2)))
    if getattr(fitted, "family", "gaussian") == "gaussian":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            lower, upper = (_values(side) for side in fitted.predict_interval(new, level=level))
        inside = np.where(np.isnan(truth), np.nan, (truth >= lower) & (truth <= upper))
        found[f"covered at {level:g}"] = float(np.nanmean(inside))
    return found


def _response(fitted: Any, data: dict[str, Any]) -> Any:
    """The response as observed: a column, or an expression of columns."""
    from fdadp.regression.reading.computed_columns import expression

    name = fitted.response_name_
    if name in data:
        return data[name]
    wanted = expression(name)
    return wanted.of({source: _values(data[source]) for source in wanted.sources})


def _values(what: Any) -> Any:
    """Rows as an array of shape (n, T), floats where they are numbers."""
    import numpy as np

    values = np.asarray(getattr(what, "data_matrix", what))
    values = values.reshape(len(values), -1)
    return values.astype(np.float64) if values.dtype.kind in "biuf" else values


def _new(
    fitted: Any, model: Path, files: list[Path], names: list[str], rows: option.DataOptions, how: FileFormat
) -> Any:
    """New rows as the model wants them: one file or a list of them, or columns by name."""
    from fdadp.regression.reading.label_joins import aligned

    if not hasattr(fitted, "predict"):
        raise InputError(f"{model} must hold a regression, got a {type(fitted).__name__}, which predicts nothing")
    if by_formula(fitted):
        if files:
            raise InputError(f"files must be named for a model by a formula, as --curves X={files[0]}")
        data, by = read_columns(rows, how)
        *_, last = [name for name, own in data.items() if has_ids(own)] or data  # curves, where there are any
        return aligned(by, data, last, every=True)[0]
    if len(files) != len(names) or rows.curves or rows.table:
        raise InputError(f"{model} must have {' and '.join(names)} as files, without --curves and --table")
    named = {name: CurvesFile(file) for name, file in zip(names, files, strict=True)}
    data, by = labelled_files(named, how, id=rows.id)
    frames = list(aligned(by, data, names[0], every=True)[0].values())
    _check_grid(frames[0], files[0], fitted)
    return frames if len(frames) > 1 else input_files.with_label_name(frames[0], named[names[0]], how)


def by_formula(fitted: Any) -> bool:
    """Whether a model reads columns by name."""
    return hasattr(fitted, "response_name_") or hasattr(fitted, "predict_survival")


def _check_grid(frame: pd.DataFrame, path: Path, fitted: Any) -> None:
    from fdadp.functional.tables.curve_inputs import as_curves

    if frame.shape[1] != fitted.s_.size and not as_curves(frame).gridded:
        raise InputError(
            f"{path} must have {fitted.s_.size} columns as the training curves had, or a grid as its first row, "
            f"got {frame.shape[1]}"
        )


def _predicted(fitted: Any, data: Any) -> pd.DataFrame:
    """Means of new rows; of ordered categories their probabilities."""
    family = getattr(getattr(fitted, "fitted_", None), "family", None)
    if family is None or family.name != "ordered":
        return _as_frame(fitted.predict(data), data, fitted)
    return _as_frame(fitted.predict_proba(data), data, fitted, [str(one) for one in fitted.classes_])


def _as_frame(found: Any, data: Any, fitted: Any, names: Sequence[str] | None = None) -> pd.DataFrame:
    """Predictions as a data frame: labels of the new rows, and `names`, or the training responses' or their grid."""
    import pandas as pd

    if isinstance(data, pd.DataFrame):
        index: Any = data.index
        if isinstance(found, pd.DataFrame) and not found.columns.equals(pd.RangeIndex(found.shape[1])):
            return found
    else:
        index = next((c.index for c in data.values() if has_ids(c)), None)
    columns = pd.Index(fitted.t_) if hasattr(fitted, "t_") else pd.Index(names or [fitted.response_name_])
    return pd.DataFrame(_values(found), index=index, columns=columns)


# ``python -m fdadp summary | ledger | plot``: what a saved model says of itself.


def summary(model: option.Model) -> None:
    """Show the table of a saved model.

    \b
    Example:
      fdadp summary model.npz
    """
    fitted = load_model(model)
    typer.echo(fitted.summary().as_text())
    for note in getattr(fitted, "notes_", ()):
        typer.echo(f"note: {note}")


def ledger(
    model: option.Model,
    out: Annotated[Path | None, typer.Option(help="The ledger as JSON. (default: only shown)")] = None,
) -> None:
    """Show what a private fit released, and under which assumptions.

    \b
    Example:
      fdadp ledger model.npz --out ledger.json
    """
    found = getattr(load_model(model), "ledger_", None)
    if found is None:
        raise InputError(f"{model} must hold a private fit to have a ledger, got one without privacy")
    typer.echo(str(found))
    if out is not None:
        write_shown(out, found.to_json(), "\nledger")


def plot(
    model: option.Model,
    out: Annotated[
        Path | None, typer.Option(help="The figure: .png, .pdf or .svg. (default: the model's name, .png)")
    ] = None,
    term: Annotated[
        str | None, typer.Option(help="Of a formula this term, of mfpca person or row. (default: all; person)")
    ] = None,
) -> None:
    """Draw a saved model: its terms, its surface, a mean curve with its band, eigenfunctions, or survival.

    \b
    Examples:
      fdadp plot model.npz --out surface.png
      fdadp plot model.npz --term "s(age)" --out age.pdf
    """
    out = model.with_suffix(".png") if out is None else out
    option.check_suffix(out, "--out", ".png", ".pdf", ".svg")
    fitted = load_model(model)
    figure: Any
    if hasattr(fitted, "plot_survival"):
        figure = fitted.plot_survival() if term is None else fitted.model_.plot(term)
    elif hasattr(fitted, "levels") or by_formula(fitted):
        figure = fitted.plot(term)
    elif term is None:
        figure = _picture(fitted)
    else:
        raise InputError(f"--term is there for models by a formula, got a {type(fitted).__name__}")
    out.parent.mkdir(parents=True, exist_ok=True)  # as of every --out
    figure.savefig(out, dpi=150)
    typer.echo(f"figure: {out}")


def _picture(fitted: Any) -> Any:
    if isinstance(fitted, fdadp.PrivateTable1):
        raise InputError("plot must be of a model of curves or of terms, got a table, which has no picture")
    if hasattr(fitted, "plot_surface"):
        return fitted.plot_surface()
    return fdadp.plot.mean(fitted) if hasattr(fitted, "band") else fdadp.plot.eigenfunctions(fitted)
