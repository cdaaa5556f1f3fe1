"""Scores of private learners against ε, from the table of :func:`fdadp.studies.learners.summarise`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from fdadp.errors import InputError
from fdadp.plot._canvas import GREY, PALETTE, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MARKERS = "os^Dv<>PX"


def learners(table: pd.DataFrame, *, axes: Any = None) -> Figure:
    """Score against ε, a line a learner and a panel a data set, metric and, where given, number of rounds m.

    Dashed in a learner's colour: its counterpart without privacy; dotted: what needs no learner. Bars: one standard
    deviation over repeats to either side.

    Parameters
    ----------
    table : DataFrame
        From :func:`fdadp.studies.learners.summarise`.
    axes : array_like of Axes, optional

    Raises
    ------
    InputError
        Not such a table, or too few axes.
    """
    needed = ("dataset", "metric", "scheme", "learner", "rounds", "epsilon", "score", "score_sd")
    lacking = [name for name in needed if name not in table]
    if lacking or table.empty:
        raise InputError(
            f"table must be one from fdadp.studies.learners.summarise, got one without {lacking or 'rows'}"
        )
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
