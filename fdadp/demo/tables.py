"""What the command line prints of an experiment, and the files it writes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from fdadp._version import __version__
from fdadp.demo import experiment_plot
from fdadp.demo.experiment import MEAN_CURVE, NO_PRIVACY, Paired, summarise
from fdadp.plot._canvas import MissingPlotsError, save_figure

if TYPE_CHECKING:
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
        return experiment_plot.experiment(table, units={d.name: d.unit for d in data})

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
