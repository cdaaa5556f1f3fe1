"""The command line: ``python -m fdadp demo | fit | predict | experiment | learners | federated | plan | audit``.

Mistakes in files and settings come out as one line on stderr with exit status 2, and nothing is half-written.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fdadp._common.terminal import Variadic, console, no_window, plain_messages, say_absent, say_paths
from fdadp.cli.federated import app as federated
from fdadp.errors import FileFormatError, InputError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["app", "main"]

LONG = "Long tables, one value a row: the columns of id, point and value, as --long id,s,value."

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Functional data regression with differential privacy.",
)
app.add_typer(federated, name="federated")


def main() -> None:
    """Entry point of the console script."""
    app(prog_name="fdadp")


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the figures, tables and the model.")] = Path("fdadp-demo"),
    repeats: Annotated[int, typer.Option(help="Random splits into training and test stations.")] = 20,
) -> None:
    """Fit Canadian weather (bundled), validate, draw, save: what fdadp does in half a minute."""
    no_window()
    with plain_messages():
        from fdadp.studies.demo import run

        run(out, console(), repeats=repeats, progress=sys.stderr.isatty())


@app.command()
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


@app.command()
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


@app.command(cls=Variadic, name="experiment")
def experiment_command(
    dataset: Annotated[list[str], typer.Option(help="canadian-weather, lip-emg, dti2 or all.")] = ["all"],  # noqa: B006
    epsilon: Annotated[list[float], typer.Option(help="One or several, --epsilon 0.05 0.1.")] = [  # noqa: B006
        0.05,
        0.1,
        0.15,
        0.2,
    ],
    sensitivity: Annotated[list[str], typer.Option(help="local, coefficient, scaled or all.")] = ["all"],  # noqa: B006
    repeats: Annotated[int, typer.Option(help="Random splits, 80 % training curves.")] = 50,
    draws: Annotated[int, typer.Option(help="Draws of the noise per split.")] = 10,
    out: Annotated[Path, typer.Option(help="Folder for tables and figure.")] = Path("fdadp-experiment"),
    seed: Annotated[int, typer.Option(help="Seed of splits and noise.")] = 0,
    jobs: Annotated[int, typer.Option(help="Processes.")] = 1,
    download: Annotated[bool, typer.Option(help="Download data sets that are not here.")] = False,
) -> None:
    """Run the published experiment: held-out error and coverage of the published scheme against epsilon.

    Beside it: the fit without privacy, and the mean curve. Intervals are scored twice: the published ones, which do not
    know of the noise, and honest ones, which widen with it. Data sets that are not here are skipped and named.
    """
    no_window()
    with plain_messages():
        import pandas as pd

        from fdadp.published.scheme import SENSITIVITIES
        from fdadp.studies import regression as experiment
        from fdadp.studies.report import ABOUT_INTERVALS, NOT_PRIVATE, rich_table, write_experiment

        screen = console()
        names = list(experiment.DATASETS) if "all" in dataset else dataset
        readings = list(SENSITIVITIES) if "all" in sensitivity else sensitivity
        data, absent = experiment.load(names, download=download)
        say_absent(data, absent, names)
        results = []
        for one in data:
            results.append(
                experiment.run(
                    one,
                    epsilons=epsilon,
                    sensitivities=readings,
                    repeats=repeats,
                    draws=draws,
                    seed=seed,
                    jobs=jobs,
                    progress=sys.stderr.isatty(),
                )
            )
            screen.print(rich_table(experiment.summarise(results[-1]), one.unit))
        screen.print(ABOUT_INTERVALS, style="dim")
        screen.print(NOT_PRIVATE, style="bold")
        settings = {
            "datasets": [one.name for one in data],
            "skipped": list(absent),
            "epsilon": epsilon,
            "sensitivity": readings,
            "repeats": repeats,
            "draws": draws,
            "seed": seed,
        }
        say_paths(write_experiment(out, pd.concat(results, ignore_index=True), data, settings))


@app.command(cls=Variadic, name="audit")
def audit_command(
    mechanism: Annotated[list[str], typer.Option(help="published, dp-aff or all.")] = ["all"],  # noqa: B006
    n: Annotated[list[int] | None, typer.Option(help="Persons, one or several. [default: 35 100, dp-aff: 100]")] = None,
    epsilon: Annotated[float | None, typer.Option(help="Claimed in total. [default: 0.6, dp-aff: 1]")] = None,
    delta: Annotated[float | None, typer.Option(help="[default: 0, dp-aff: 1e-6; 0 is pure epsilon]")] = None,
    draws: Annotated[
        int | None, typer.Option(help="Outputs a side for the lower bound. [default: 20000, dp-aff: 40]")
    ] = None,
    tapes: Annotated[int, typer.Option(help="Replays of dp-aff with a person deleted, blanked out or replaced.")] = 60,
    out: Annotated[Path, typer.Option(help="Folder for the figures.")] = Path("fdadp-audit"),
    seed: Annotated[int, typer.Option(help="Seed of data and noise.")] = 0,
) -> None:
    """Try to break a mechanism's privacy claim, on simulated people, and print the verdict with a figure.

    A verdict of the command, not its exit status, says whether a claim is false.
    """
    no_window()
    with plain_messages():
        from fdadp.audit import MECHANISMS, audit
        from fdadp.plot._canvas import MissingPlotsError
        from fdadp.studies.report import save_figure

        for name in MECHANISMS if "all" in mechanism else mechanism:
            result = audit(
                name,
                tuple(n) if n else None,
                epsilon=epsilon,
                delta=delta,
                draws=draws,
                tapes=tapes,
                seed=seed,
                progress=sys.stderr.isatty(),
            )
            typer.echo(str(result))
            try:
                figure = result.plot()
            except MissingPlotsError:
                typer.echo("no figure: pip install matplotlib", err=True)
                continue
            out.mkdir(parents=True, exist_ok=True)
            typer.echo(f"figure: {save_figure(figure, out / f'audit-{name}.png')}\n")


@app.command(cls=Variadic, name="learners")
def learners_command(
    dataset: Annotated[list[str], typer.Option(help="adult, bank, diabetes, digits or all.")] = ["adult"],  # noqa: B006
    epsilon: Annotated[
        list[float] | None, typer.Option(help="One or several. [default: 0.01 0.1 0.5 1 5; published: 0.1 0.5 1 2 5]")
    ] = None,
    experiment: Annotated[
        str,
        typer.Option(
            help="private: all private learners; published: the DPAda family as printed, beside private boosting."
        ),
    ] = "private",
    learner: Annotated[list[str] | None, typer.Option(help="Only these, as DPBoostedStumps. [default: all]")] = None,
    rounds: Annotated[list[int], typer.Option(help="m of the published experiment.")] = [  # noqa: B006
        30,
        50,
        70,
        90,
        100,
    ],
    repeats: Annotated[int, typer.Option(help="Draws of the noise; random splits where there is none.")] = 5,
    out: Annotated[Path, typer.Option(help="Folder for tables and figure.")] = Path("fdadp-learners"),
    seed: Annotated[int, typer.Option(help="Seed of splits and noise.")] = 0,
    download: Annotated[bool, typer.Option(help="Download data sets that are not here.")] = False,
) -> None:
    """Accuracy against privacy: the private learners, or the published boosting schemes, on public data sets.

    Beside each: the same kind of learner without privacy, and what needs no learner. The noise is seeded, for
    simulation.
    """
    no_window()
    with plain_messages():
        import pandas as pd

        from fdadp.studies import learners as study
        from fdadp.studies.report import NOT_PRIVATE_BOOSTING, learners_table, write_learners

        if experiment not in ("private", "published"):
            raise InputError(f"--experiment must be private or published, got {experiment!r}")
        is_private = experiment == "private"
        every = study.TASKS if is_private else ("adult", "bank")
        tasks, absent = study.load(list(every) if "all" in dataset else dataset, download=download)
        say_absent(tasks, absent, dataset)
        epsilons = epsilon or ([0.01, 0.1, 0.5, 1.0, 5.0] if is_private else [0.1, 0.5, 1.0, 2.0, 5.0])
        common: dict[str, Any] = {"epsilons": epsilons, "repeats": repeats, "seed": seed}
        common["progress"] = sys.stderr.isatty()
        results = pd.concat(
            [
                study.run(task, only=learner or None, **common)
                if is_private
                else study.published(task, rounds=rounds, **common)
                for task in tasks
            ],
            ignore_index=True,
        )
        table = study.summarise(results)
        screen = console()
        for _, part in table.groupby(["dataset", "metric"], sort=False):
            screen.print(learners_table(part))
        if not is_private:
            screen.print(NOT_PRIVATE_BOOSTING, style="bold")
        settings = {
            "experiment": experiment,
            "datasets": [task.name for task in tasks],
            "skipped": list(absent),
            "epsilon": epsilons,
            "repeats": repeats,
            "seed": seed,
            "delta": {task.name: task.delta for task in tasks},
            **({} if is_private else {"rounds": rounds}),
            "note": "seeded noise, for simulation" if is_private else NOT_PRIVATE_BOOSTING,
        }
        say_paths(write_learners(out, results, table, settings))


@app.command(name="plan")
def plan_command(
    n: Annotated[int | None, typer.Option(help="Persons; left out, the smallest n that reaches --accuracy.")] = None,
    epsilon: Annotated[float, typer.Option(help="Budget.")] = 1.0,
    delta: Annotated[float, typer.Option(help="Of (ε, δ) privacy; 0 for pure ε.")] = 1e-6,
    accuracy: Annotated[float | None, typer.Option(help="Wanted share of the explainable variance, as 0.9.")] = None,
    adjacency: Annotated[
        str, typer.Option(help="zero-out (n public), add-remove (n private) or replace.")
    ] = "zero-out",
    out: Annotated[Path | None, typer.Option(help="Folder for forecast.txt and forecast.png.")] = None,
) -> None:
    """Predict what a private fit will explain, before any data are touched: by n, by ε, and what it takes."""
    no_window()
    with plain_messages():
        from fdadp.planner import plan
        from fdadp.plot._canvas import MissingPlotsError
        from fdadp.studies.report import save_figure

        forecast = plan(n, epsilon, delta or None, accuracy=accuracy, adjacency=adjacency)
        typer.echo(str(forecast))
        if out is None:
            return
        out.mkdir(parents=True, exist_ok=True)
        (out / "forecast.txt").write_text(f"{forecast}\n", encoding="utf-8")
        typer.echo(f"\ntext: {out / 'forecast.txt'}")
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
