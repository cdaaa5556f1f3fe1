"""RMSPE and coverage against ε, from the table of :func:`fdadp.demo.experiment.summarise`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fdadp.errors import InputError
from fdadp.plot._canvas import GREY, PALETTE, pyplot

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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


def experiment(table: pd.DataFrame, *, units: dict[str, str] | None = None, axes: Any = None) -> Figure:
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
