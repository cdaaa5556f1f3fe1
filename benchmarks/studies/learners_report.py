"""Tables, files and a figure of the learners' experiments, from the table of :func:`studies.learners.summarise`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from fdadp.demo.published_experiment import write_results
from fdadp.errors import InputError
from fdadp.plot._matplotlib_figures import GREY, PALETTE, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console
    from rich.table import Table

MARKERS = "os^Dv<>PX"
NOT_PRIVATE_BOOSTING = (
    "The published boosting schemes are NOT differentially private, whatever epsilon they claim: weak learners, their "
    "votes and most weights are computed from the data and released without noise."
)


def learners(table: pd.DataFrame, *, axes: Any = None) -> Figure:
    """Score against ε, a line a learner and a panel a data set, metric and, where given, number of rounds m.

    Dashed in a learner's colour: its counterpart without privacy; dotted: what needs no learner. Bars: one standard
    deviation over repeats to either side.

    Parameters
    ----------
    table : DataFrame
        From :func:`studies.learners.summarise`.
    axes : array_like of Axes, optional

    Raises
    ------
    InputError
        Not such a table, or too few axes.
    """
    needed = ("dataset", "metric", "scheme", "learner", "rounds", "epsilon", "score", "score_sd")
    lacking = [name for name in needed if name not in table]
    if lacking or table.empty:
        raise InputError(f"table must be one from studies.learners.summarise, got one without {lacking or 'rows'}")
    noisy = table[table["epsilon"].notna()]
    keys = list(dict.fromkeys(zip(noisy["dataset"], noisy["metric"], noisy["rounds"].fillna(0), strict=True)))
    with_rounds = {key[:2] for key in keys if key[2]}
    keys = [key for key in keys if key[2] or key[:2] not in with_rounds]  # what has no m is in every panel
    figure, flat = panels(len(keys), axes, size=(4.2, 3.4))
    names = list(dict.fromkeys(noisy["learner"]))
    # Where there are more learners than colours, those of the second turn have broken lines.
    style = {
        name: (PALETTE[i % len(PALETTE)], MARKERS[i % len(MARKERS)], "-" if i < len(PALETTE) else "-.")
        for i, name in enumerate(names)
    }
    for axis, (dataset, metric, rounds) in zip(flat, keys, strict=True):
        part = table[(table["dataset"] == dataset) & (table["metric"] == metric)]
        part = part[part["rounds"].isna() | (part["rounds"] == rounds)]
        for name, line in part[part["epsilon"].notna()].groupby("learner", sort=False):
            colour, marker, dash = style[str(name)]
            line = line.sort_values("epsilon")
            axis.errorbar(
                line["epsilon"],
                line["score"],
                line["score_sd"].fillna(0),
                color=colour,
                marker=marker,
                linestyle=dash,
                markersize=4.5,
                capsize=2,
                label=str(name),
            )
        for _, row in part[part["scheme"] == "no privacy"].iterrows():
            colour = style.get(row["learner"], (GREY, ""))[0]
            axis.axhline(row["score"], color=colour, linestyle="--", linewidth=1.2)
        for level in part.loc[part["scheme"] == "trivial", "score"]:
            axis.axhline(level, color="black", linestyle=":", linewidth=1.2)
        axis.set_xscale("log")
        ticks = sorted(part["epsilon"].dropna().unique())
        axis.set_xticks(ticks, [f"{t:g}" for t in ticks])
        axis.minorticks_off()
        axis.set_xlabel("ε")
        axis.set_ylabel(metric)
        axis.set_title(dataset + (f", m = {rounds:g}" if rounds else ""))
        if axes is not None or len({key[:2] for key in keys}) > 1:  # panels have learners of their own
            axis.legend(fontsize="x-small")
    if axes is None and len({key[:2] for key in keys}) == 1:
        handles, texts = flat[0].get_legend_handles_labels()
        figure.legend(handles, texts, loc="outside lower center", ncols=min(len(texts), 3), frameon=False)
    result: Figure = figure
    return result


def learners_table(part: pd.DataFrame) -> Table:
    """Table of one data set and metric, from :func:`studies.learners.summarise`: ε across, learners down."""
    from rich import box
    from rich.table import Table

    first = part.iloc[0]
    noisy = part[part["epsilon"].notna()]
    repeats = int(part["repeats"].max())
    plain = part[part["scheme"] == "trivial"]["score"]
    rows = "held-out rows" if first["metric"] in ("accuracy", "R2") else "the rows that were fitted"
    title = f"{first['dataset']}: {first['metric']} on {rows}, {repeats} repeats, mean (sd)"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("learner")
    epsilons = sorted(noisy["epsilon"].unique())
    for name in (*(f"ε = {e:g}" for e in epsilons), "no privacy"):
        table.add_column(name, justify="right")
    for _, line in part[part["learner"] != ""].groupby(["learner", "rounds"], sort=False, dropna=False):
        name, m = str(line["learner"].iloc[0]), float(line["rounds"].iloc[0])
        cells = []
        for e in epsilons:
            at = line[line["epsilon"] == e]
            sd = "" if at.empty or pd.isna(at["score_sd"].iloc[0]) else f" ({at['score_sd'].iloc[0]:.3f})"
            cells.append("" if at.empty else f"{at['score'].iloc[0]:.3f}{sd}")
        without = line[line["scheme"] == "no privacy"]["score"]
        cells.append("" if without.empty else f"{without.iloc[0]:.3f}")
        table.add_row(name if math.isnan(m) else f"{name}, m = {m:g}", *cells)
    if len(plain):
        table.add_row("without a learner", *[""] * len(epsilons), f"{plain.iloc[0]:.3f}")
    return table


def print_learners(screen: Console, table: pd.DataFrame) -> None:
    """Print one table a data set and metric, from :func:`studies.learners.summarise`."""
    for _, part in table.groupby(["dataset", "metric"], sort=False):
        screen.print(learners_table(part))


def write_learners(
    out: Path, results: pd.DataFrame, table: pd.DataFrame, settings: Mapping[str, Any]
) -> dict[str, Path]:
    """Write ``results.csv`` (every fit), ``table.csv``, ``table.txt``, ``settings.json`` and ``learners.png``.

    Returns
    -------
    dict
        Path of each by what it is; without matplotlib the picture is missing.
    """
    from rich.console import Console

    def figure() -> Any:
        return learners(table)

    paths = write_results(out, results, table, settings, figure, "learners.png")
    text = out / "table.txt"
    with text.open("w", encoding="utf-8") as file:
        print_learners(Console(file=file, width=160), table)
    return paths | {"table as text": text}
