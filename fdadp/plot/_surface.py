"""The fitted surface F(·, ·, t), as heat maps or in 3-D."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp._common.typing import ArrayLike, CurveData, FloatArray
from fdadp.errors import InputError
from fdadp.functional.curves import as_curves
from fdadp.plot._canvas import label, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["surface"]

LABELS = ("x", "s", "t", "F")
POINTS = 101


def surface(
    model: Any,
    t: ArrayLike | None = None,
    *,
    kind: str = "heatmap",
    X: CurveData | None = None,
    labels: Mapping[str, str] | None = None,
    ax: Any = None,
) -> Figure:
    """Picture of the fitted surface F(x, s, t) for one or several t.

    Red means that predictor values x at s go with a response above its mean at t, blue below it; the surface is
    centred, so that at each s its mean over the training curves is zero. All panels have the same colours, which end
    at the 99 % quantile of |F|; the line is where F is zero.

    Parameters
    ----------
    model : AdditiveFunctionOnFunction
        Fitted.
    t : float or array_like of shape (m,), optional
        Points of the response's domain, one panel each; default four, evenly spread.
    kind : {"heatmap", "3d"}
    X : FDataGrid, DataFrame or array_like of shape (n, S), optional
        Curves, usually the training ones: what lies outside their range at each s is hatched, and does not count
        for the colours. There the surface is an extrapolation by its penalty. Without X only the overall range
        of the training predictors is known.
    labels : mapping, optional
        Texts with units under the keys ``"x"``, ``"s"``, ``"t"`` and ``"F"``.
    ax : Axes or array_like of Axes, optional
        Where to draw, one per t (made with ``projection="3d"`` for that kind).

    Raises
    ------
    InputError
        Unknown `kind` or label, too few axes, `t` outside the domain.
    """
    if kind not in ("heatmap", "3d"):
        raise InputError(f"kind must be 'heatmap' or '3d', got {kind!r}")
    texts = {key: label(labels, key, "F(x, s, t)" if key == "F" else key, LABELS) for key in LABELS}
    at = _default_t(model) if t is None else np.atleast_1d(np.asarray(t, dtype=np.float64))
    low, high = model.x_range_
    x, s = np.linspace(low, high, POINTS), np.linspace(model.s_[0], model.s_[-1], POINTS)
    # One t at a time, so that they may come in any order.
    values = np.concatenate([model.surface(x, s, [point]) for point in at], axis=2)
    seen = _seen(x, s, X, model.s_)
    extent = float(np.abs(values[seen]).max()) or 1.0
    # A corner where the surface runs away would leave the rest white; the bar's arrows say that there is more.
    limit = float(np.quantile(np.abs(values[seen]), 0.99)) or 1.0
    flat = kind == "heatmap"
    if flat:
        figure, axes = panels(len(at), ax, size=(3.1, 3.0))
    else:
        figure, axes = panels(len(at), ax, columns=(3, 2), size=(4.3, 3.9), projection="3d")
    for i, (axis, point) in enumerate(zip(axes, at, strict=True)):
        draw = _heatmap if flat else _relief
        if not flat:
            axis.set(zlim=(-extent, extent))
        image = draw(axis, x, s, values[:, :, i], seen, limit)
        axis.set(xlabel=texts["s"], ylabel=texts["x"], title=f"{texts['t']} = {point:.3g}")
        place = axis.get_subplotspec()
        if flat and ax is None and place is not None and not place.is_first_col():
            axis.set_ylabel("")
            axis.tick_params(labelleft=False)
    pad, shrink = (0.02, 1.0) if flat else (0.08, 0.6)
    figure.colorbar(image, ax=axes, label=texts["F"], extend="both", pad=pad, shrink=shrink)
    if X is not None and ax is None:
        what = "hatched" if flat else "left out"
        figure.supxlabel(f"{what}: no curve has such values there", fontsize="small", color="#444444")
    return figure


def _default_t(model: Any) -> FloatArray:
    low, high = float(model.t_[0]), float(model.t_[-1])
    return np.asarray(low + (high - low) * np.array([0.125, 0.375, 0.625, 0.875]))


def _seen(x: FloatArray, s: FloatArray, X: CurveData | None, grid: FloatArray) -> Any:
    """Where curves run: mask of shape (len(x), len(s))."""
    if X is None:
        return np.ones((x.size, s.size), dtype=bool)
    curves = as_curves(X, name="X", default=grid)
    low = np.interp(s, curves.grid, np.nanmin(curves.values, axis=0))
    high = np.interp(s, curves.grid, np.nanmax(curves.values, axis=0))
    step = x[1] - x[0]  # half a cell on either side, so that narrow ranges do not vanish
    return (x[:, None] >= low - step / 2) & (x[:, None] <= high + step / 2)


def _heatmap(axis: Any, x: FloatArray, s: FloatArray, values: FloatArray, seen: Any, limit: float) -> Any:
    axis.patch.set(facecolor="#f2f2f2", hatch="////", edgecolor="#bbbbbb")
    shown = np.ma.masked_where(~seen, values)
    image = axis.pcolormesh(s, x, shown, cmap="RdBu_r", vmin=-limit, vmax=limit, shading="nearest", rasterized=True)
    if shown.min() < 0 < shown.max():
        axis.contour(s, x, shown, levels=[0.0], colors="#333333", linewidths=0.8)
    return image


def _relief(axis: Any, x: FloatArray, s: FloatArray, values: FloatArray, seen: Any, limit: float) -> Any:
    across, along = np.meshgrid(s, x)
    shown = np.where(seen, values, np.nan)
    image = axis.plot_surface(
        across,
        along,
        shown,
        cmap="RdBu_r",
        vmin=-limit,
        vmax=limit,
        rcount=50,
        ccount=50,
        linewidth=0.1,
        edgecolor="#55555555",
    )
    axis.tick_params(labelsize="small", pad=1)
    axis.set_box_aspect(None, zoom=0.88)
    return image
