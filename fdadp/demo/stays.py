"""Last part of the demonstration, where the data are: the second day in intensive care from the first."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp.datasets import load_icu
from fdadp.errors import MissingDataError
from fdadp.functional.gaps import fill_linear
from fdadp.plot._canvas import PALETTE, MissingPlotsError, pyplot, save_figure
from fdadp.privacy import Privacy
from fdadp.private.release.mechanisms import DPAFF
from fdadp.regression.functional import FunctionalRegression

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.figure import Figure
    from rich.console import Console

    from fdadp._common.typing import FloatArray

N, EPSILON, DELTA = 5500, 1.0, 1e-6
SEEN = 18
"""Hours of each day in which a stay must have been observed."""
BOUNDS = {"day 1": (30.0, 180.0), "day 2": (30.0, 180.0)}
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
        f"[bold]Real people: {N:,} stays in intensive care[/bold] (PhysioNet 2012): heart rates of the second day "
        f"from those of the first,\njudged on the observed hours of {len(test['day 1']):,} other stays.\n"
    )
    private = FunctionalRegression(
        FORMULA, privacy=Privacy(EPSILON, DELTA, n=N), bounds={**BOUNDS}, mechanism=DPAFF(prior="persistence")
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
    try:
        return {"second day": save_figure(_groups(hours, test, first, shown), out / "second-day.png")}
    except MissingPlotsError:
        return {}


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
