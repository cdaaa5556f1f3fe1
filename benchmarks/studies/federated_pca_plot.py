"""Lines of many owners' principal components: one panel a data set, one line a scheme, base lines across."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from fdadp.errors import InputError
from fdadp.plot._matplotlib_figures import GREY, PALETTE, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MARKERS = "os^Dv"


def lines(
    table: pd.DataFrame,
    x: str,
    y: str,
    *,
    labels: tuple[str, str] | None = None,
    panel: str = "dataset",
    log: str = "x",
    axes: Any = None,
) -> Figure:
    """Measure `y` against `x`; schemes without an x are dashed lines across.

    Parameters
    ----------
    table : DataFrame
        With the columns ``scheme``, `x`, `y`, `panel`, and ``y_sd`` for bars of one standard deviation.
    x, y : str
    labels : (str, str), optional
        Of the axes; default: the columns' names.
    panel : str
        Column with a panel for each value.
    log : str
        Axes on a logarithmic scale: "x", "xy" or "".
    axes : array_like of Axes, optional

    Raises
    ------
    InputError
        No such columns.
    MissingPlotsError
        matplotlib is not installed.
    """
    lacking = [name for name in ("scheme", x, y, panel) if name not in table]
    if lacking or table.empty:
        raise InputError(f"table must have rows and the columns scheme, {x}, {y}, {panel}, got none of {lacking}")
    names = list(dict.fromkeys(table[panel]))
    figure, flat = panels(len(names), axes, size=(3.6, 3.0))
    schemes = list(dict.fromkeys(table.loc[table[x].notna(), "scheme"]))
    base = [scheme for scheme in dict.fromkeys(table["scheme"]) if scheme not in schemes]
    for axis, name in zip(flat, names, strict=True):
        part = table[table[panel] == name]
        for i, scheme in enumerate(schemes):
            line = part[(part["scheme"] == scheme) & part[x].notna()].sort_values(x)
            bars = line[f"{y}_sd"].fillna(0) if f"{y}_sd" in line else None
            style = {"color": PALETTE[i % len(PALETTE)], "marker": MARKERS[i % len(MARKERS)], "label": scheme}
            axis.errorbar(line[x], line[y], bars, markersize=4.5, capsize=2, **style)
        for i, scheme in enumerate(base):
            for level in part.loc[part["scheme"] == scheme, y]:
                axis.axhline(level, color=GREY, linestyle=("--", ":", "-.")[i % 3], linewidth=1.2, label=scheme)
        if "x" in log:
            axis.set_xscale("log")
            ticks = sorted(part[x].dropna().unique())
            axis.set_xticks(ticks, [f"{t:g}" for t in ticks])
            axis.minorticks_off()
        if "y" in log:
            axis.set_yscale("log")
        axis.set_xlabel(labels[0] if labels else x)
        axis.set_ylabel(labels[1] if labels else y)
        axis.set_title(str(name))
    if axes is None:
        handles = {text: handle for a in flat for handle, text in zip(*a.get_legend_handles_labels(), strict=True)}
        columns = min(len(handles), 5 if len(flat) > 1 else 2)
        figure.legend(handles.values(), handles, loc="outside lower center", ncols=columns, frameon=False)
    return figure
