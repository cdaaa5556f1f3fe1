"""Second part of the demonstration: simulated people, and a private fit to them that works."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp.datasets import SimulatedCurves, simulate_affr
from fdadp.errors import ExtrapolationWarning
from fdadp.functional.metrics import coverage, rmspe
from fdadp.planner import Forecast, plan
from fdadp.plot._canvas import PALETTE, MissingPlotsError, pyplot, save_figure
from fdadp.privacy import Privacy
from fdadp.regression import AdditiveFunctionOnFunction

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console

EPSILON, DELTA = 1.0, 1e-6
BOUNDS = {"X": (-4.5, 4.5), "Y": (-8.0, 8.0)}
SHOWN_T, SHOWN_CURVES = 0.25, (3, 8)
ORDINARY, PRIVATE = "without privacy", f"ε = {EPSILON:g}, δ = {DELTA:g}"
FIRST_LINES = 3
"""Of the ledger's releases that are shown."""


@dataclass(frozen=True)
class People:
    """Two fits to the same people, judged on 1,000 others whose noiseless responses are known.

    Attributes
    ----------
    newcomers : SimulatedCurves
    fits : dict of str to AdditiveFunctionOnFunction
    forecast : Forecast
        Made before the data.
    """

    newcomers: SimulatedCurves
    fits: dict[str, AdditiveFunctionOnFunction]
    forecast: Forecast

    def explained(self, model: AdditiveFunctionOnFunction) -> float:
        """Share of the variance of E[Y | X] that a fit explains; 0 is what the mean curve does."""
        truth = self.newcomers.mean_function
        left = np.square(truth - self._predicted(model)).sum()
        return float(1 - left / np.square(truth - truth.mean(axis=0)).sum())

    def rows(self) -> list[tuple[str, str, str, str, str]]:
        """Of each fit: its name, share explained, error, coverage and width of 95 % intervals."""
        found = []
        for name, model in self.fits.items():
            low, high = model.predict_interval(self.newcomers.X)
            error = rmspe(self.newcomers.Y, model.predict(self.newcomers.X))
            held, width = coverage(self.newcomers.Y, low, high), (high - low).data_matrix.mean()
            found.append((name, f"{self.explained(model):.3f}", f"{error:.3f}", f"{100 * held:.1f} %", f"{width:.2f}"))
        return found

    def picture(self) -> Figure:
        """Surfaces side by side, two new people with their bands, and what the planner had said."""
        from fdadp import plot

        plt = pyplot()
        figure: Figure
        figure, axes = plt.subplots(2, 3, figsize=(11.5, 7.2), layout="constrained")
        surfaces = {"truth": self.newcomers, **self.fits}
        plot.surface(surfaces, t=SHOWN_T, X=self.newcomers.X, labels={"x": "x = X(s)"}, ax=axes[0])
        for axis, i in zip(axes[1], SHOWN_CURVES, strict=False):
            self._bands(axis, i)
        axes[1, 0].legend(fontsize="small", loc="best")
        self._shares(axes[1, 2])
        figure.suptitle(
            f"{self.forecast.n:,} simulated people: surface F(x, s, t), new people, forecast of what is explained"
        )
        return figure

    def _predicted(self, model: AdditiveFunctionOnFunction) -> Any:
        return model.predict(self.newcomers.X).data_matrix[..., 0]

    def _bands(self, axis: Any, i: int) -> None:

        t, one = self.newcomers.t, self.newcomers.X[i]
        axis.plot(t, self.newcomers.Y.data_matrix[i, :, 0], ".", color="0.6", markersize=4, label="observed")
        axis.plot(t, self.newcomers.mean_function[i], color="black", label="truth, E[Y | X]")
        for (name, model), colour in zip(self.fits.items(), PALETTE[1::-1], strict=True):
            low, high = (band.data_matrix[0, :, 0] for band in model.predict_interval(one))
            axis.plot(t, model.predict(one).data_matrix[0, :, 0], color=colour, linewidth=1.8, label=name)
            if name == PRIVATE:
                axis.fill_between(t, low, high, color=colour, alpha=0.18, linewidth=0)
            else:
                axis.plot(t, np.transpose([low, high]), color=colour, linewidth=1.0, linestyle="--")
        axis.set(xlabel="t", ylabel="Y(t)", title=f"new person {i + 1}, with 95 % intervals")

    def _shares(self, axis: Any) -> None:
        axis.plot(
            [n for n, _ in self.forecast.by_n], [o.share for _, o in self.forecast.by_n], "o-", color="0.55", ms=3.5,
            label=f"planner's forecast, ε = {EPSILON:g}",
        )  # fmt: skip
        ordinary, private = (self.explained(self.fits[name]) for name in (ORDINARY, PRIVATE))
        axis.axhline(ordinary, color=PALETTE[1], linestyle="--", label=f"{ORDINARY}: {ordinary:.3f}")
        axis.plot([self.forecast.n], [private], "D", color=PALETTE[0], ms=8, label=f"this private fit: {private:.3f}")
        axis.set(xscale="log", xlabel="people", ylabel="share explained", ylim=(0, 1.03), title="forecast and outcome")
        axis.legend(fontsize="small", loc="lower right")


def fit_people(out: Path, console: Console, n: int) -> dict[str, Path]:
    """Plan, fit with and without privacy, print shares explained and the ledger's first lines, draw.

    Parameters
    ----------
    out : Path
        Folder.
    console : rich.console.Console
    n : int
        Number of people.

    Returns
    -------
    dict
        Path of each file by what it is.
    """
    from rich import box
    from rich.table import Table

    console.print(f"[bold]{n:,} simulated people, privately[/bold]: curves X predict curves Y, far from linearly.\n")
    forecast = plan(n=n, epsilon=EPSILON, delta=DELTA)
    console.print(f"Before any data the planner says: {forecast.share:.2f} of what can be explained will be.")
    people = simulate_affr(scenario=2, n=n, seed=0)
    start = time.perf_counter()
    private = AdditiveFunctionOnFunction(
        privacy=Privacy(EPSILON, DELTA, n=n), bounds={**BOUNDS}, progress=False
    ).fit(people.X, people.Y)  # fmt: skip
    console.print(
        f"The private fit took {time.perf_counter() - start:.0f} s. Judged on 1,000 people it has not seen:\n"
    )
    ordinary = AdditiveFunctionOnFunction(progress=False).fit(people.X, people.Y)
    newcomers = simulate_affr(scenario=2, n=1000, seed=1)
    fitted = People(newcomers, {ORDINARY: ordinary, PRIVATE: private}, forecast)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for i, column in enumerate(("fit", "share explained", "RMSPE", "coverage of 95 % intervals", "their width")):
        table.add_column(column, justify="right" if i else "left")
    files = {"private model": private.save(out / "private-model.npz"), "ledger": out / "ledger.txt"}
    files["ledger"].write_text(f"{private.ledger_}\n", encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)
        for row in fitted.rows():
            table.add_row(*row)
        console.print(table)
        console.print(_first_lines(str(private.ledger_)), highlight=False, markup=False, style="dim")
        try:
            files["private surface"] = save_figure(fitted.picture(), out / "private-people.png")
        except MissingPlotsError:
            return files
    return files


def _first_lines(ledger: str) -> str:
    """The promise, and the first releases."""
    promise, _, rest = ledger.partition("\nReleased, with noise:\n")
    releases = rest.splitlines()
    more = sum(bool(line.strip()) for line in "\n".join(releases).partition("\n\n")[0].splitlines()) - FIRST_LINES - 1
    shown = ["The ledger, which every private fit has, begins:", "", *promise.splitlines(), "Released, with noise:"]
    return "\n".join([*shown, *releases[: FIRST_LINES + 1], f"  ... and {more} more releases\n"])
