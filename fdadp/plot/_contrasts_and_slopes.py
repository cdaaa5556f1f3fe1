"""Estimates with their intervals and bands: curves along t in panels, single numbers as points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp._common.loaded_later import pd
from fdadp.plot._matplotlib_figures import GREY, PALETTE, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_PANELS = 12


def plot_estimates(frame: pd.DataFrame, labels: Sequence[str], title: str, axes: Any = None) -> Figure:
    """Draw estimates as :meth:`fdadp.inference.EffectEstimates.to_frame` has them.

    Parameters
    ----------
    frame : DataFrame
        Curves along ``t``, which follow each other; or numbers.
    labels : sequence of str
        Of each curve, or number.
    title : str
    axes : Axes or array_like of Axes, optional
    """
    if "t" not in frame:
        figure, (ax,) = panels(1, axes, size=(4.8, 0.35 * len(frame) + 1.2))
        at = np.arange(len(frame))[::-1]
        for low, high, width in (("lower_all", "upper_all", 1.0), ("lower", "upper", 3.0)):
            ax.hlines(at, frame[low], frame[high], color=PALETTE[0], linewidth=width)
        ax.plot(frame["value"], at, "o", color=PALETTE[0])
        ax.axvline(0.0, color=GREY, linewidth=0.8)
        ax.set_ylim(-0.6, len(frame) - 0.4)
        ax.set_yticks(at, labels if len(frame) > 1 else [""])
        ax.set_title(title)
        return figure
    step, shown = len(frame) // len(labels), labels[:MOST_PANELS]
    figure, drawn = panels(len(shown), axes)
    for ax, label, start in zip(drawn, shown, range(0, len(frame), step), strict=False):
        own = frame.iloc[start : start + step]
        for ends, shade, holds in (("_all", 0.15, "all t at once"), ("", 0.3, "each t")):
            limits = own[f"lower{ends}"], own[f"upper{ends}"]
            ax.fill_between(own["t"], *limits, color=PALETTE[0], alpha=shade, linewidth=0, label=holds)
        ax.plot(own["t"], own["value"], color=PALETTE[0])
        ax.axhline(0.0, color=GREY, linewidth=0.8)
        ax.set_title(label if len(shown) > 1 else title)
        ax.set_xlabel("t")
    drawn[0].legend(frameon=False, fontsize="small")
    if len(shown) > 1:  # one scale, or a small curve would look like a large one
        drawn[0].set_ylabel(title)
        scales = np.array([ax.get_ylim() for ax in drawn])
        for ax in drawn:
            ax.set_ylim(scales[:, 0].min(), scales[:, 1].max())
    return figure
