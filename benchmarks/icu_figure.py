"""Figure of ``benchmarks/icu.py``: share explained and coverage by ε and n, and mean curves of groups of stays.

    python benchmarks/icu_figure.py [--table benchmarks/results/icu.json] [--out docs/icu.png]

The third panel draws means over hundreds of held-out stays (thirds by the level of their first day), never one
person's curve: observed, and predicted by one private fit.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from icu import FIRST_SPLIT, N_TRAIN, Judge, private, stays

LEAST = 50
"""Stays that a mean is drawn of, at the least: the last hour of a stay is seldom observed."""
COLOURS = ("#0072B2", "#009E73", "#D55E00", "#CC79A7")


def explained(axis: Any, table: pd.DataFrame) -> None:
    """Share explained against ε, a line for each n, with the range of the draws."""
    for style, named in (("-", "with anchor"), (":", "without anchor")):
        part = table[table["method"] == f"private, {named}"]
        for (n, rows), colour in zip(part.groupby("n"), COLOURS, strict=False):
            label = f"n = {n:,.0f}" if style == "-" else None
            axis.plot(rows["epsilon"], rows["explained"], style, color=colour, label=label, marker="o", markersize=3)
            if style == "-":
                axis.fill_between(rows["epsilon"], rows["worst"], rows["best"], color=colour, alpha=0.15, linewidth=0)
    levels = table.set_index("method")["explained"]
    lines = {
        "last value": levels["last value"],
        "anchor, no fit": levels["anchor"],
        "no privacy, n = 5,500": levels["no privacy, with anchor"].iloc[-1],
    }
    for name, level in lines.items():
        axis.axhline(level, color="0.45", linewidth=0.8)
        axis.annotate(name, (3.2, level), fontsize=7, va="center", annotation_clip=False)
    axis.set(xscale="log", xlabel="ε  (δ = 1e-6)", ylabel="share explained, observed hours", ylim=(0.4, 0.585))
    axis.set_title("dotted: without the anchor; bands: ten draws", fontsize=9)
    axis.legend(fontsize=7, loc=(0.72, 0.2), frameon=False)


def covered(axis: Any, table: pd.DataFrame) -> None:
    """Coverage of 95 % intervals against ε, with the anchor."""
    part = table[table["method"] == "private, with anchor"]
    for (n, rows), colour in zip(part.groupby("n"), COLOURS, strict=False):
        axis.plot(rows["epsilon"], rows["covered"], color=colour, marker="o", markersize=3, label=f"n = {n:,.0f}")
        axis.fill_between(rows["epsilon"], rows["covered least"], rows["covered most"], color=colour, alpha=0.12)
    axis.axhspan(0.93, 0.97, color="0.9", zorder=0)
    axis.axhline(0.95, color="0.45", linewidth=0.8)
    axis.set(xscale="log", xlabel="ε  (δ = 1e-6)", ylabel="covered by 95 % intervals", ylim=(0.8, 1.0))
    axis.set_title("grey: .93 to .97", fontsize=9)


def groups(axis: Any) -> None:
    """Mean second days of thirds of held-out stays by level, observed and as one private fit predicts."""
    columns, grids = stays()
    order = np.random.default_rng(FIRST_SPLIT).permutation(len(columns["day1"]))
    train, test = order[:N_TRAIN], order[N_TRAIN:]
    data, new = ({name: value[rows] for name, value in columns.items()} for rows in (train, test))
    model = private(data, grids, 1.0, FIRST_SPLIT, anchored=True)
    first = Judge(new, np.nanmean(data["day2"], axis=0)).first.mean(axis=1)
    third = np.searchsorted(np.quantile(first, [1 / 3, 2 / 3]), first)
    predicted = np.where(np.isnan(new["day2"]), np.nan, model.predict({"day1": new["day1"]}))
    for k, (name, colour) in enumerate(zip(("slow", "middle", "fast"), COLOURS, strict=False)):
        mine = third == k
        label = f"{name} first day, {mine.sum()} stays"
        seen = np.isfinite(new["day2"][mine]).sum(axis=0) >= LEAST
        hours, observed = grids["day2"][seen], new["day2"][mine][:, seen]
        axis.plot(hours, np.nanmean(observed, axis=0), "o", color=colour, markersize=3, label=label)
        axis.plot(hours, np.nanmean(predicted[mine][:, seen], axis=0), color=colour)
    axis.set(xlabel="hours since admission", ylabel="heart rate, beats/min")
    axis.set_title("means of groups: dots observed, lines private (ε = 1)", fontsize=9)
    axis.set_ylim(68, 118)
    axis.legend(fontsize=7, frameon=False, loc="upper right")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", type=Path, default=Path("benchmarks/results/icu.json"))
    parser.add_argument("--out", type=Path, default=Path("docs/icu.png"))
    asked = parser.parse_args(arguments)
    table = pd.DataFrame(json.loads(asked.table.read_text())["rows"])
    figure, axes = plt.subplots(1, 3, figsize=(13.5, 4), layout="constrained")
    explained(axes[0], table)
    covered(axes[1], table)
    groups(axes[2])
    figure.savefig(asked.out, dpi=100)


if __name__ == "__main__":
    main()
