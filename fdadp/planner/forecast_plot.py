"""Picture of the forecast of a private fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fdadp.plot._matplotlib_figures import GREY, PALETTE, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fdadp.planner.forecast import Forecast


def picture(prediction: Forecast, ax: Any = None) -> Figure:
    """Predicted explained share, and error and interval width relative to no privacy, against n and ε.

    Parameters
    ----------
    prediction : Forecast
        From :func:`fdadp.plan`.
    ax : array_like of two Axes, optional

    Returns
    -------
    Figure
    """
    figure, axes = panels(2, ax, size=(4.4, 3.4), columns=(2,))
    for axis, curve, at, name in (
        (axes[0], prediction.by_n, prediction.n, f"number of persons n, at ε = {prediction.epsilon:g}"),
        (axes[1], prediction.by_epsilon, prediction.epsilon, f"ε, at n = {prediction.n:,}"),
    ):
        x = [value for value, _ in curve]
        axis.plot(x, [o.share for _, o in curve], "o-", color=PALETTE[0], label="explained share")
        axis.plot(x, [o.rmspe_ratio for _, o in curve], "s--", color=PALETTE[1], label="RMSPE / no privacy")
        axis.plot(x, [o.width_ratio for _, o in curve], "^:", color=PALETTE[2], label="interval width / no privacy")
        axis.axhline(1.0, color=GREY, linewidth=0.6)
        axis.axvline(at, color=GREY, linestyle=":", linewidth=1)
        if prediction.accuracy is not None:
            axis.axhline(prediction.accuracy, color=PALETTE[0], linestyle=":", linewidth=1)
        axis.set_xscale("log")
        axis.set_ylim(0, 2)
        axis.set_xlabel(name)
    axes[0].legend(loc="lower right", frameon=False, fontsize="small")
    kind = "pure ε" if prediction.delta is None else f"δ = {prediction.delta:g}"
    figure.suptitle(f"Forecast of a private fit ({kind}, {prediction.adjacency})", fontsize="medium")
    return figure
