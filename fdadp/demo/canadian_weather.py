"""The demonstration: Canadian weather, a private fit that works, a published scheme that is not one, real people."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from fdadp.datasets import load_canadian_weather
from fdadp.demo import published_experiment
from fdadp.demo.private_fits import fit_people, fit_stays
from fdadp.demo.published_experiment import ABOUT_INTERVALS, NOT_PRIVATE, rich_table, write_experiment
from fdadp.errors import ExtrapolationWarning
from fdadp.plot._matplotlib_figures import MissingPlotsError, pyplot, save_figure
from fdadp.regression import AdditiveFunctionOnFunction

if TYPE_CHECKING:
    from rich.console import Console

LABELS = {"x": "temperature [°C]", "s": "s, time of year [years]", "t": "t", "F": "F [log10 mm per day, per year of s]"}
Y_LABELS = {"t": "time of year [years]", "Y": "precipitation [log10 mm per day]"}


def run(
    out: Path,
    console: Console,
    *,
    repeats: int = 20,
    people: int = 3000,
    draws: int = 4,
    seed: int = 1,
    progress: bool = True,
) -> None:
    """Fit, validate, draw and save; print what was found and where it is.

    Canadian weather without privacy; 3,000 simulated people with it; the published scheme on the weather, as a
    warning; where the stays in intensive care are there, the second day from the first.

    Parameters
    ----------
    out : Path
        Folder, made if it is not there.
    console : rich.console.Console
    repeats, draws, seed : int
        See :func:`fdadp.demo.published_experiment.run`.
    people : int
        Simulated, of the private fit.
    progress : bool
    """
    [data], _ = published_experiment.load(["canadian-weather"])
    places = pd.Index(load_canadian_weather().stations["place"])
    X = pd.DataFrame(data.X, index=places, columns=pd.Index(data.s))
    Y = pd.DataFrame(data.Y, index=places, columns=pd.Index(data.t))
    out.mkdir(parents=True, exist_ok=True)
    console.print(
        f"[bold]Canadian weather[/bold]: {len(X)} stations, {X.shape[1]} five-day means of a year; temperature (°C) "
        "predicts precipitation (log10 mm per day).\n"
    )
    model = AdditiveFunctionOnFunction(progress=False).fit(X, Y)
    console.print(model.summary().as_text(), highlight=False)

    results = published_experiment.run(data, repeats=repeats, draws=draws, seed=seed, progress=progress)
    table = published_experiment.summarise(results)
    published = ~table["scheme"].isin((published_experiment.NO_PRIVACY, published_experiment.MEAN_CURVE))
    console.print()
    console.print(rich_table(table[~published], data.unit))
    files = {"model": model.save(out / "model.npz"), **fit_people(out, console, people)}

    console.print("[bold]A warning: the published scheme[/bold], on the weather at four stated ε.\n")
    console.print(rich_table(table[published], data.unit))
    console.print(
        f"{ABOUT_INTERVALS} 'local', 'coefficient' and 'scaled' are three readings of the sensitivity Δ:\n"
        "largest change of a component's coefficients when one station is left out (L1 norm), of a single\n"
        "coefficient, and the latter divided by n.",
        style="dim",
    )
    console.print(NOT_PRIVATE + "\n", style="bold")

    settings = {"repeats": repeats, "draws": draws, "seed": seed}
    files |= write_experiment(out, results, [data], settings) | fit_stays(out, console)
    try:
        files |= _figures(out, model, X, Y, seed)
    except MissingPlotsError as exc:
        console.print(f"No figures: {exc}", style="yellow", markup=False)
    width = max(map(len, files))
    for name, path in files.items():
        console.print(f"  {name:<{width}}  {path}", highlight=False, markup=False)
    console.print(
        "\nUse the model in Python:\n"
        "  from fdadp import AdditiveFunctionOnFunction\n"
        f"  model = AdditiveFunctionOnFunction.load({str(files['model'])!r})\n"
        f"or on the command line:\n  python -m fdadp predict {files['model']} X.csv --out predicted.csv",
        highlight=False,
        markup=False,
    )


def _figures(
    out: Path, model: AdditiveFunctionOnFunction, X: pd.DataFrame, Y: pd.DataFrame, seed: int
) -> dict[str, Path]:
    from fdadp import plot

    pyplot()
    test = np.sort(np.random.default_rng(seed).permutation(len(X))[: len(X) // 5])
    train = np.setdiff1d(np.arange(len(X)), test)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)
        held_out = AdditiveFunctionOnFunction(progress=False).fit(X.iloc[train], Y.iloc[train])
        predicted = plot.predictions(held_out, X.iloc[test], Y.iloc[test], labels=Y_LABELS)
    figures = {
        "surface": plot.surface(model, X=X, labels=LABELS),
        "eigenfunctions": plot.eigenfunctions(model, labels=Y_LABELS),
        "held-out predictions": predicted,
    }
    return {name: save_figure(figure, out / f"{name.replace(' ', '-')}.png") for name, figure in figures.items()}
