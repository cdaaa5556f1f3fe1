"""What the command line prints of an experiment, and the files it writes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fdadp._version import __version__
from fdadp.demo.experiment import MEAN_CURVE, NO_PRIVACY, Paired, summarise
from fdadp.errors import InputError
from fdadp.plot._canvas import GREY, PALETTE, MissingPlotsError, pyplot, save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table


ABOUT_INTERVALS = (
    "ACP: average coverage probability of pointwise prediction intervals; honest ones know of the noise and widen with "
    "it,\nthe published ones do not."
)
NOT_PRIVATE = (
    "The published scheme is NOT differentially private end to end: its noise scales, the mean curve, the "
    "eigenfunctions and the smoothing parameters are computed from the data and released without noise."
)


def rich_table(part: pd.DataFrame, unit: str = "") -> Table:
    """Table of one data set, from :func:`fdadp.demo.experiment.summarise`."""
    from rich import box
    from rich.table import Table

    splits = int(part["splits"].max())
    title = f"{part['dataset'].iloc[0]}: held-out curves, {splits} random splits" + (
        f", RMSPE in {unit}" if unit else ""
    )
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("scheme", no_wrap=True, min_width=len("published, coefficient"))
    columns = ("ε", "RMSPE median", "RMSPE mean", "ACP 85 %", "ACP 95 %", "width 95 %", "published ACP 95 %")
    for name in (*columns, "beats mean curve"):
        table.add_column(name, justify="right")
    previous = ""
    for _, row in part.iterrows():
        base = row["scheme"] in (NO_PRIVACY, MEAN_CURVE)
        name = row["scheme"] if base else f"published, {row['sensitivity']}"
        if name != previous:
            table.add_section()
        previous = name
        table.add_row(
            name,
            "" if base else f"{row['epsilon']:g}",
            *(f"{row[column]:.3g}" for column in ("rmspe_median", "rmspe_mean")),
            *(f"{100 * row[column]:.1f} %" for column in ("acp_85", "acp_95")),
            f"{row['width_95']:.3g}",
            "" if base else f"{100 * row['acp_95_published']:.1f} %",
            "" if row["scheme"] == MEAN_CURVE else f"{100 * row['beats_mean_curve']:.0f} %",
        )
    return table


def write_experiment(
    out: Path, results: pd.DataFrame, data: Sequence[Paired], settings: Mapping[str, Any]
) -> dict[str, Path]:
    """Write ``results.csv`` (every split and draw), ``table.csv``, ``settings.json`` and ``experiment.png``.

    Returns
    -------
    dict
        Path of each by what it is; without matplotlib the picture is missing.
    """
    table = summarise(results)

    def figure() -> Any:
        return experiment_figure(table, units={d.name: d.unit for d in data})

    about = {"note": NOT_PRIVATE, **settings}
    names = {"results": "every split and draw", "figure": "experiment figure"}
    return write_results(out, results, table, about, figure, "experiment.png", names)


def write_results(
    out: Path,
    results: pd.DataFrame,
    table: pd.DataFrame | None,
    settings: Mapping[str, Any],
    figure: Callable[[], Any],
    picture: str,
    names: Mapping[str, str] | None = None,
) -> dict[str, Path]:
    """Write ``results.csv``, ``table.csv`` where there is one, ``settings.json`` and a picture.

    Parameters
    ----------
    out : Path
        Folder, made if it is not there.
    results, table : DataFrame
    settings : mapping
        The version is added.
    figure : callable
        Draws it; called last.
    picture : str
        File name of the figure.
    names : mapping, optional
        What to call ``"results"`` and ``"figure"``; by default "every fit" and "figure".

    Returns
    -------
    dict
        Path of each by what it is; without matplotlib the picture is missing.
    """
    called = {"results": "every fit", "figure": "figure", **(names or {})}
    out.mkdir(parents=True, exist_ok=True)
    paths = {called["results"]: out / "results.csv"}
    results.to_csv(out / "results.csv", index=False)
    if table is not None:
        paths["table"] = out / "table.csv"
        table.to_csv(paths["table"], index=False)
    paths["settings"] = out / "settings.json"
    paths["settings"].write_text(json.dumps({"fdadp": __version__, **settings}, indent=2) + "\n", encoding="utf-8")
    try:
        drawn = figure()
    except MissingPlotsError:
        return paths
    return paths | {called["figure"]: save_figure(drawn, out / picture)}


# RMSPE and coverage against ε, from the table of :func:`fdadp.demo.experiment.summarise`.


READINGS = {
    "local": ("published, Δ: leave-one-out, L1", PALETTE[1], "o"),
    "coefficient": ("published, Δ: largest coefficient change", PALETTE[4], "s"),
    "scaled": ("published, Δ: that divided by n", PALETTE[2], "^"),
}
NEEDED = (
    "dataset",
    "scheme",
    "sensitivity",
    "epsilon",
    "rmspe_median",
    "rmspe_p10",
    "rmspe_p90",
    "acp_85",
    "acp_95",
    "width_95",
    "acp_85_published",
    "acp_95_published",
    "width_95_published",
)
MEASURES = (("rmspe", None), ("acp_85", 0.85), ("acp_95", 0.95), ("width_95", None))
"""Rows of the figure, and the nominal value of each."""


def experiment_figure(table: pd.DataFrame, *, units: dict[str, str] | None = None, axes: Any = None) -> Figure:
    """RMSPE, average coverage probability (ACP) and width of intervals against ε, one column a data set.

    Solid lines are of honest intervals, dashed ones of the published intervals, which do not know of the noise.
    Coverage alone would mislead: intervals that know of the noise keep it by growing, so their width is shown too.
    Lines of the RMSPE are medians over splits and draws, the band runs from the 10 % to the 90 % quantile. Two
    horizontal lines belong to every panel: the fit without privacy, and the mean curve, which uses no predictor.

    Parameters
    ----------
    table : DataFrame
        From :func:`fdadp.demo.experiment.summarise`.
    units : dict, optional
        Unit of Y by data set.
    axes : array_like of Axes of shape (4, number of data sets), optional

    Raises
    ------
    InputError
        Not such a table, or axes of another number.
    """
    plt = pyplot()
    lacking = [name for name in NEEDED if name not in table]
    if lacking or table.empty:
        what = lacking or "rows"
        raise InputError(f"table must be one from fdadp.demo.experiment.summarise, got one without {what}")
    datasets = list(dict.fromkeys(table["dataset"]))
    own = axes is None
    if own:
        figure, grid = plt.subplots(
            4,
            len(datasets),
            figsize=(3.9 * len(datasets) + 0.4, 10.6),
            squeeze=False,
            sharex=True,
            layout="constrained",
            height_ratios=(1.7, 1, 1, 1.3),
        )
    else:
        grid = np.asarray(axes, dtype=object).reshape(4, -1)
        if grid.shape[1] != len(datasets):
            raise InputError(f"axes must have shape (4, {len(datasets)}), got {np.shape(axes)}")
        figure = grid[0, 0].figure
    for column, name in enumerate(datasets):
        part = table[table["dataset"] == name]
        for axis, (measure, nominal) in zip(grid[:, column], MEASURES, strict=True):
            _panel(axis, part, measure, nominal)
        unit = (units or {}).get(name)
        grid[0, column].set_title(name)
        for row in (0, 3):
            grid[row, column].set_yscale("log")
        grid[0, column].set_ylabel("held-out RMSPE (median)" + (f"\n[{unit}]" if unit else ""))
        grid[3, column].set_ylabel("width of 95 % intervals" + (f"\n[{unit}]" if unit else ""))
        grid[3, column].set_xlabel("ε of each component")
        for row, level in ((1, 85), (2, 95)):
            grid[row, column].set_ylabel(f"coverage (ACP)\nof {level} % intervals" if column == 0 else "")
    handles, names = grid[0, 0].get_legend_handles_labels()
    for style, text in (("-", "intervals: honest"), ("--", "intervals: published")):
        handles.append(plt.Line2D([], [], color=GREY, linestyle=style))
        names.append(text)
    if own:
        rows = 3 if len(datasets) > 1 else 7
        figure.legend(handles, names, loc="outside lower center", ncols=-(-len(names) // rows), frameon=False)
    else:
        grid[0, 0].legend(handles, names, fontsize="small")
    result: Figure = figure
    return result


def _panel(axis: Any, part: pd.DataFrame, measure: str, nominal: float | None) -> None:
    value = "rmspe_median" if measure == "rmspe" else measure
    for scheme, colour, style in (("no privacy", PALETTE[0], "-"), ("mean curve", "black", "--")):
        for level in part.loc[part["scheme"] == scheme, value]:
            axis.axhline(level, color=colour, linestyle=style, linewidth=1.6, label=scheme)
    noisy = part[part["scheme"] == "published"]
    for reading, (text, colour, marker) in READINGS.items():
        line = noisy[noisy["sensitivity"] == reading].sort_values("epsilon")
        if line.empty:
            continue
        axis.plot(line["epsilon"], line[value], color=colour, marker=marker, markersize=4.5, label=text)
        if measure != "rmspe":
            blind = line[f"{measure}_published"]
            axis.plot(line["epsilon"], blind, color=colour, marker=marker, markersize=3.5, linestyle="--", mfc="white")
        if measure == "rmspe":
            axis.fill_between(line["epsilon"], line["rmspe_p10"], line["rmspe_p90"], color=colour, alpha=0.15, lw=0)
    axis.set_xticks(sorted(noisy["epsilon"].unique()))
    axis.xaxis.set_major_formatter("{x:g}")
    axis.grid(axis="y", color="#dddddd", linewidth=0.6)
    if nominal is not None:
        axis.axhline(nominal, color=GREY, linestyle=":", linewidth=1.2)
        low = min(float(part[[measure, f"{measure}_published"]].min().min()), nominal)
        axis.set_ylim(min(nominal - 0.1, low - 0.02), 1.0)
