"""The demonstration: a private fit that works, Canadian weather, real people, and a file to play on with."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from fdadp._common.argument_checks import whole
from fdadp.datasets import load_canadian_weather, write_people
from fdadp.demo import published_experiment
from fdadp.demo.private_fits import fit_people, fit_stays
from fdadp.demo.published_experiment import rich_table, write_experiment
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
    """Fit, validate, draw and save. Print what was found in at most 40 lines.

    First 3,000 simulated people with privacy, then Canadian weather without it. Where the stays in intensive care are
    there, their second day is predicted from the first. The last lines name a file of people and two commands for it.

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

    Raises
    ------
    InputError
        Fewer than one split, or fewer than 50 people. Nothing was written.
    """
    whole(repeats, "repeats")
    whole(people, "people", least=50)
    out.mkdir(parents=True, exist_ok=True)
    files = fit_people(out, console, people)
    [data], _ = published_experiment.load(["canadian-weather"])
    places = pd.Index(load_canadian_weather().stations["place"])
    X = pd.DataFrame(data.X, index=places, columns=pd.Index(data.s))
    Y = pd.DataFrame(data.Y, index=places, columns=pd.Index(data.t))
    model = AdditiveFunctionOnFunction(progress=False).fit(X, Y)
    results = published_experiment.run(data, repeats=repeats, draws=draws, seed=seed, progress=progress)
    settings = {"repeats": repeats, "draws": draws, "seed": seed}
    files |= {"model": model.save(out / "model.npz"), **write_experiment(out, results, [data], settings)}
    _show_weather(console, published_experiment.summarise(results), len(X))
    files |= fit_stays(out, console)
    try:
        files |= _figures(out, model, X, Y, seed)
    except MissingPlotsError as exc:
        console.print(f"No figures: {exc}", style="yellow", markup=False)
    file = write_people(out / "people.csv")
    lines = [
        f"All {len(files) + 1} files are in {out}. Play on with {file}, 2,000 simulated patients:",
        *_commands(file),
    ]
    console.print("\n".join([*lines, "The page docs/your-csv.md goes on from here."]), highlight=False, markup=False)


def _show_weather(console: Console, table: pd.DataFrame, n: int) -> None:
    """The ordinary fit beside the mean curve, and in one line what the published scheme makes of it."""
    ordinary = table["scheme"].isin((published_experiment.NO_PRIVACY, published_experiment.MEAN_CURVE))
    local = table[table["sensitivity"] == "local"]
    console.print(f"[bold]Canadian weather, without privacy[/bold]: {n} stations; temperature predicts precipitation.")
    console.print(rich_table(table[ordinary], "log10 mm per day"))
    console.print(
        f"Each split fits {n - round(n / 5)} stations. Coverage (ACP) may fall short with so few curves, because "
        "intervals count\neigenfunctions and smoothing parameters as known.\n"
        f"For comparison, the published scheme: RMSPE {local['rmspe_median'].min():.3g} to "
        f"{local['rmspe_median'].max():.3g} at ε = {local['epsilon'].max():g} to {local['epsilon'].min():g}, and NOT "
        "differentially private.\n",
        highlight=False,
    )


def _commands(file: Path) -> list[str]:
    """Two commands that fit the file of people: without privacy and with it."""
    fit = f"  python -m fdadp fit 'days ~ lf(rate) + age + C(sex)' --curves 'rate={file}:h*' --table {file}"
    marks = "--sep ';' --decimal ,"
    private = "--groups id --epsilon 1 --delta 1e-6 --n 2000 --bounds rate=30:200 --bounds age=18:100 --bounds sex=f,m"
    return [
        f"{fit} \\\n    {marks} --id id --missing rate=linear --missing age=indicator --out days.npz",
        f"{fit} \\\n    {marks} {private} \\\n    --bounds days=0:30 --out private-days.npz",
    ]


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
