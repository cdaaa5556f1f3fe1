"""The private parts of the demonstration: simulated people, and stays in intensive care where the data are."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp.datasets import SimulatedCurves, load_icu, simulate_affr
from fdadp.errors import ExtrapolationWarning, MissingDataError
from fdadp.functional.gap_filling import fill_linear
from fdadp.functional.metrics import coverage, rmspe
from fdadp.planner import Forecast, plan
from fdadp.plot._matplotlib_figures import PALETTE, pyplot, saved
from fdadp.privacy import Privacy
from fdadp.private.release.mechanisms import DPAFF
from fdadp.regression import AdditiveFunctionOnFunction
from fdadp.regression.functional import FunctionalRegression

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.figure import Figure
    from rich.console import Console

    from fdadp._common.typing import FloatArray


EPSILON, DELTA = 1.0, 1e-6
BOUNDS = {"X": (-4.5, 4.5), "Y": (-8.0, 8.0)}
SHOWN_T, SHOWN_CURVES = 0.25, (3, 8)
ORDINARY, PRIVATE = "without privacy", f"ε = {EPSILON:g}, δ = {DELTA:g}"


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
    """Plan, fit with and without privacy, draw, print shares explained and the ledger's first line.

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

    forecast = plan(n=n, epsilon=EPSILON, delta=DELTA)
    people = simulate_affr(scenario=2, n=n, seed=0)
    private = AdditiveFunctionOnFunction(
        privacy=Privacy(EPSILON, DELTA, n=n), bounds={**BOUNDS}, progress=False
    ).fit(people.X, people.Y)  # fmt: skip
    ordinary = AdditiveFunctionOnFunction(progress=False).fit(people.X, people.Y)
    newcomers = simulate_affr(scenario=2, n=1000, seed=1)
    fitted = People(newcomers, {ORDINARY: ordinary, PRIVATE: private}, forecast)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for i, column in enumerate(("fit", "share explained", "RMSPE", "coverage of 95 % intervals", "their width")):
        table.add_column(column, justify="right" if i else "left")
    ledger = private.ledger_
    assert ledger is not None
    files = {"private model": private.save(out / "private-model.npz"), "ledger": out / "ledger.txt"}
    files["ledger"].write_text(f"{ledger}\n", encoding="utf-8")
    console.print(f"[bold]{n:,} simulated people, privately[/bold]: curves X predict curves Y, far from linearly.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)
        drawn = saved(fitted.picture, out / "private-people.png")
        if drawn is not None:
            files["private surface"] = drawn
            console.print(f"Figure: {drawn}", highlight=False, markup=False)
        console.print(
            f"Before any data the planner says: {forecast.share:.2f} of what can be explained will be. Judged on 1,000 "
            "people that the fits have not seen:"
        )
        for row in fitted.rows():
            table.add_row(*row)
    console.print(table)
    console.print(
        f"The ledger, {files['ledger']}, lists {len(ledger.releases)} noisy releases. It begins:\n{ledger.headline}\n",
        highlight=False,
        markup=False,
    )
    return files


# Last part of the demonstration, where the data are: the second day in intensive care from the first.


N = 5500
SEEN = 18
"""Hours of each day in which a stay must have been observed."""
DAY_BOUNDS = {"day 1": (30.0, 180.0), "day 2": (30.0, 180.0)}
FORMULA = "`day 2` ~ ff(`day 1`)"


def fit_stays(out: Path, console: Console) -> dict[str, Path]:
    """Forecast heart rates with and without privacy, print shares explained, draw means of groups of stays.

    Returns
    -------
    dict
        Path of each file by what it is; empty where the data are not there.
    """

    try:
        icu = load_icu(as_frame=True, download=False)
    except MissingDataError:
        return {}
    enough = (icu.X.notna().sum(axis=1) >= SEEN) & (icu.Y.notna().sum(axis=1) >= SEEN)
    hours = {name: days.columns.to_numpy(dtype=float) for name, days in (("day 1", icu.X), ("day 2", icu.Y))}
    order = np.random.default_rng(0).permutation(int(enough.sum()))
    columns = {"day 1": icu.X[enough].to_numpy()[order], "day 2": icu.Y[enough].to_numpy()[order]}
    train, test = ({name: rows[part] for name, rows in columns.items()} for part in (slice(N), slice(N, None)))
    console.print(
        f"[bold]Real people: {N:,} stays in intensive care[/bold] (PhysioNet 2012). Heart rates of the second day "
        f"from those of the first,\njudged on the observed hours of {len(test['day 1']):,} other stays:"
    )
    private = FunctionalRegression(
        FORMULA, privacy=Privacy(EPSILON, DELTA, n=N), bounds={**DAY_BOUNDS}, mechanism=DPAFF(prior="persistence")
    ).fit(train, grids=hours)
    filled = {name: fill_linear(rows, hours[name]) for name, rows in train.items()}
    ordinary = FunctionalRegression("`day 2` ~ ff(`day 1`, k=(12, 8))").fit(filled, grids=hours)
    first = fill_linear(test["day 1"], hours["day 1"])
    predicted = {
        "the last value of day 1": np.repeat(first[:, -1:], 24, axis=1),
        f"private, ε = {EPSILON:g}, δ = {DELTA:g}": np.asarray(private.predict(test)),
        "without privacy": np.asarray(ordinary.predict({"day 1": first})),
    }
    truth = test["day 2"]
    spread = np.nansum((truth - np.nanmean(train["day 2"], axis=0)) ** 2)
    for name, rows in predicted.items():
        console.print(f"  {name:<26} explains {1 - np.nansum((truth - rows) ** 2) / spread:.3f}", highlight=False)
    low, high = (np.asarray(side) for side in private.predict_interval(test))
    inside = ((low <= truth) & (truth <= high))[~np.isnan(truth)].mean()
    console.print(f"  its 95 % intervals hold {inside:.1%} of the observed hours\n", highlight=False)
    shown = {"private": predicted[f"private, ε = {EPSILON:g}, δ = {DELTA:g}"], "low": low, "high": high}
    drawn = saved(lambda: _groups(hours, test, first, shown), out / "second-day.png")
    return {} if drawn is None else {"second day": drawn}


def _groups(
    hours: Mapping[str, FloatArray], test: Mapping[str, FloatArray], first: FloatArray, shown: Mapping[str, FloatArray]
) -> Figure:
    """Means of thirds of the stays by how fast hearts were on the first day: never one patient's curve."""

    figure, axes = pyplot().subplots(1, 3, figsize=(11.5, 3.9), sharey=True, layout="constrained")
    thirds = np.array_split(np.argsort(first.mean(axis=1)), 3)
    axis: Any
    for axis, third, name in zip(axes, thirds, ("slow", "middle", "fast"), strict=True):
        axis.plot(hours["day 1"], np.nanmean(test["day 1"][third], axis=0), ".", color="0.6", label="observed, day 1")
        axis.plot(hours["day 2"], np.nanmean(test["day 2"][third], axis=0), ".", color="black", label="observed, day 2")
        low, middle, high = (shown[side][third].mean(axis=0) for side in ("low", "private", "high"))
        axis.plot(hours["day 2"], middle, color=PALETTE[0], label=f"forecast, ε = {EPSILON:g}")
        axis.fill_between(
            hours["day 2"], low, high, color=PALETTE[0], alpha=0.18, linewidth=0, label="95 % interval of one stay"
        )
        axis.set(xlabel="hours since admission", title=f"{name} hearts: mean of {len(third):,} stays")
    axes[0].set_ylabel("heart rate [beats/min]")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    return figure  # type: ignore[no-any-return]
