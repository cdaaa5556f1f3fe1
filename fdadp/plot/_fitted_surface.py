"""The fitted surface F(·, ·, t), as heat maps or in 3-D."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp._common.argument_checks import fraction, one_of
from fdadp._common.typing import ArrayLike, BoolArray, CurveData, FloatArray
from fdadp.errors import InputError
from fdadp.functional.tables.curve_inputs import as_curves
from fdadp.functional.tables.curve_sample import axis_names
from fdadp.plot._matplotlib_figures import panels, texts_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


POINTS = 101


def surface(
    model: Any,
    t: ArrayLike | None = None,
    *,
    kind: str = "heatmap",
    X: CurveData | None = None,
    vmax: float | None = None,
    level: float | None = None,
    labels: Mapping[str, str] | None = None,
    ax: Any = None,
) -> Figure:
    """Picture of the fitted surface F(x, s, t) for one or several t, or of several surfaces side by side.

    Red means that predictor values x at s go with a response above its mean at t, blue below it. The surface is
    centred, so that at each s its mean over the training curves is zero. All panels have the same colours, which end at
    the 99 % quantile of ``|F|``; the line is where F is zero.

    Parameters
    ----------
    model : AdditiveFunctionOnFunction, or mapping of str to such
        Fitted. Of several, whose names are the titles, all are centred over the curves `X`, and share one scale of
        colours; simulated curves, which know the true surface, may be among them.
    t : float or array_like of shape (m,), optional
        Points of the response's domain, one panel each; default four, evenly spread.
    kind : {"heatmap", "3d"}
    X : FDataGrid, DataFrame or array_like of shape (n, S), optional
        Curves, usually the training ones: what lies outside their range at each s is hatched, and does not count
        for the colours. There the surface is an extrapolation by its penalty. Without X only the overall range
        of the training predictors is known. Names of axes are taken from it, too. A picture that shows where curves
        are is not private.
    vmax : float, optional
        Where the colours end instead, so that pictures can be compared.
    level : float, optional
        In (0, 1): values whose pointwise interval of this level holds zero are pale. Heat maps of fitted models.
    labels : mapping, optional
        Texts with units under the keys ``"x"``, ``"s"``, ``"t"`` and ``"F"``.
    ax : Axes or array_like of Axes, optional
        Where to draw, one per surface and t (made with ``projection="3d"`` for that kind).

    Raises
    ------
    InputError
        Unknown `kind` or label, too few axes, `t` outside the domain, several surfaces without `X`, or with `level`.

    Examples
    --------
    >>> from fdadp import AdditiveFunctionOnFunction, plot, simulate_affr
    >>> data = simulate_affr(scenario=1, n=60, seed=0)
    >>> model = AdditiveFunctionOnFunction().fit(data.X, data.Y)
    >>> plot.surface(model, t=[0.25, 0.75], X=data.X)
    <Figure size ...>
    """
    several = dict(model) if isinstance(model, Mapping) else {"": model}
    _check(several, kind, X, vmax, level)
    own = axis_names(X)
    texts = texts_of(labels, x=own[1] or "x", s=own[0] or "s", t="t", F="F(x, s, t)")
    first = next(iter(several.values()))
    grid = _grid(first, "s")
    at = _default_t(_grid(first, "t")) if t is None else np.atleast_1d(np.asarray(t, dtype=np.float64))
    x, s = np.linspace(*_range(first, X), POINTS), np.linspace(grid[0], grid[-1], POINTS)
    # One t at a time, so that they may come in any order.
    shown = [(name, point, one.surface(x, s, [point])[:, :, 0]) for point in at for name, one in several.items()]
    if len(several) > 1:
        shown = [(name, point, _centred(values, x, s, X, grid)) for name, point, values in shown]
    seen = where_curves_run(x, s, X, grid)
    found = np.abs([values[seen] for _, _, values in shown])
    extent = float(found.max()) or 1.0
    # A corner where the surface runs away would leave the rest white; the bar's arrows say that there is more.
    limit = (float(np.quantile(found, 0.99)) or 1.0) if vmax is None else float(vmax)
    flat = kind == "heatmap"
    figure, axes = _panels(len(shown), len(several), ax, flat=flat)
    for axis, (name, point, values) in zip(axes, shown, strict=True):
        draw = _heatmap if flat else _relief
        if not flat:
            axis.set(zlim=(-extent, extent))
        image = draw(axis, x, s, values, seen, limit)
        if level is not None:
            _pale(axis, x, s, np.abs(values) < _half(level) * first.surface_se(x, s, [point])[:, :, 0], seen)
        title = ", ".join(part for part in (name, f"{texts['t']} = {point:.3g}") if part)
        axis.set(xlabel=texts["s"], ylabel=texts["x"], title=title)
        place = axis.get_subplotspec()
        if flat and ax is None and place is not None and not place.is_first_col():
            axis.set_ylabel("")
            axis.tick_params(labelleft=False)
    pad, shrink = (0.02, 1.0) if flat else (0.08, 0.6)
    figure.colorbar(image, ax=axes, label=texts["F"], extend="both", pad=pad, shrink=shrink)
    said = _what_is_pale(level, X, flat=flat)
    if said and ax is None:
        figure.supxlabel("; ".join(said), fontsize="small", color="#444444")
    return figure


def _check(several: Mapping[str, Any], kind: str, X: CurveData | None, vmax: float | None, level: float | None) -> None:
    """Refuse settings that do not go together."""
    one_of(kind, "kind", ("heatmap", "3d"))
    if vmax is not None and not vmax > 0:
        raise InputError(f"vmax must be a number above 0, got {vmax!r}")
    if level is not None and (kind == "3d" or len(several) != 1):
        raise InputError("level must be None in 3-D and with several surfaces, which are centred anew")
    if not several or (len(several) > 1 and X is None):
        raise InputError(f"model must be one or more surfaces, and X be given with several, got {len(several)}")


def _panels(n: int, surfaces: int, ax: Any, *, flat: bool) -> tuple[Figure, Any]:
    """A figure with a panel for each surface and t; of several surfaces those of one t in a row."""
    columns = (surfaces,) if surfaces > 1 else None
    if flat:
        return panels(n, ax, columns=columns or (4, 3), size=(3.1, 3.0))
    return panels(n, ax, columns=columns or (3, 2), size=(4.3, 3.9), projection="3d")


def _what_is_pale(level: float | None, X: CurveData | None, *, flat: bool) -> list[str]:
    """What a reader must know of pale and of hatched parts."""
    pale = [] if level is None else [f"pale: the pointwise {100 * level:g} % interval holds zero"]
    return pale + ([] if X is None else [f"{'hatched' if flat else 'left out'}: no curve has such values there"])


def _grid(model: Any, axis: str) -> FloatArray:
    """Points of s or t of a fit, or of simulated curves."""
    return getattr(model, f"{axis}_" if hasattr(model, f"{axis}_") else axis)  # type: ignore[no-any-return]


def _default_t(grid: FloatArray) -> FloatArray:
    low, high = float(grid[0]), float(grid[-1])
    return np.asarray(low + (high - low) * np.array([0.125, 0.375, 0.625, 0.875]))


def _range(model: Any, X: CurveData | None) -> tuple[float, float]:
    """Values of x to show: those of the fit, or where it has none those of the curves."""
    if hasattr(model, "x_range_") or X is None:
        low, high = model.x_range_
        return float(low), float(high)
    values = as_curves(X, name="X").values
    return float(np.nanmin(values)), float(np.nanmax(values))


def _centred(values: FloatArray, x: FloatArray, s: FloatArray, X: CurveData | None, grid: FloatArray) -> FloatArray:
    """A surface (x, s) less its mean over curves, at each s."""
    curves = as_curves(X, name="X", default=grid)
    at = [np.interp(s, curves.grid, row) for row in curves.values]
    means = [np.nanmean(np.interp(column, x, values[:, j])) for j, column in enumerate(np.transpose(at))]
    return np.asarray(values - means)


def _half(level: float) -> float:
    """Standard errors on either side of an interval."""
    from scipy.stats import norm

    return float(norm.ppf((1 + fraction(level, "level")) / 2))


def _pale(axis: Any, x: FloatArray, s: FloatArray, where: Any, seen: Any) -> None:
    """Whiten what may be zero."""
    veil = np.ma.masked_where(~(where & seen), np.ones(where.shape))
    axis.pcolormesh(s, x, veil, cmap="gray", vmin=0, vmax=1, alpha=0.6, shading="nearest", rasterized=True, linewidth=0)


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
    colours = {"cmap": "RdBu_r", "vmin": -limit, "vmax": limit, "edgecolor": "#55555555"}
    image = axis.plot_surface(across, along, shown, rcount=50, ccount=50, linewidth=0.1, **colours)
    axis.tick_params(labelsize="small", pad=1)
    axis.set_box_aspect(None, zoom=0.88)
    return image


# Where the rows of a table are, in the plane of a heat map.


FAR = 0.1
"""How far, as a share of their ranges, two numbers may be from the nearest row: mgcv's ``too.far``."""


def where_curves_run(x: FloatArray, s: FloatArray, X: CurveData | None, grid: FloatArray) -> BoolArray:
    """Where curves run: mask of shape (len(x), len(s)); everywhere without curves."""
    if X is None:
        return np.ones((x.size, s.size), dtype=bool)
    curves = as_curves(X, name="X", default=grid)
    low = np.interp(s, curves.grid, np.nanmin(curves.values, axis=0))
    high = np.interp(s, curves.grid, np.nanmax(curves.values, axis=0))
    step = x[1] - x[0]  # half a cell on either side, so that narrow ranges do not vanish
    seen: BoolArray = (x[:, None] >= low - step / 2) & (x[:, None] <= high + step / 2)
    return seen


def where_seen(columns: tuple[str, ...], axes: Mapping[str, Any], data: Any) -> BoolArray | None:
    """Mask over the first two axes of an effect, where these are a curve's domain and its values, or two numbers.

    Parameters
    ----------
    columns : tuple of str
        That the term reads.
    axes : mapping of str to ndarray
        Of the effect, in order.
    data : DataFrame or mapping
        With these columns.
    """
    first, second = (*list(axes)[:2], "", "")[:2]
    if (first, second) == ("s", "x"):
        curves = column_of(data, columns[0])
        default = np.linspace(axes["s"][0], axes["s"][-1], np.shape(curves)[-1]) if np.ndim(curves) == 2 else None
        read = as_curves(curves, name=columns[0], default=default)
        return where_curves_run(axes["x"], axes["s"], read.values, read.grid).T
    if not {first, second} <= set(columns) or any(axes[name].dtype.kind != "f" for name in (first, second)):
        return None
    z = [np.asarray(column_of(data, name), dtype=np.float64) for name in (first, second)]
    spans = [np.ptp(axes[name]) or 1.0 for name in (first, second)]
    down, across = (axes[name] / span for name, span in zip((first, second), spans, strict=True))
    nearest = np.full((down.size, across.size), np.inf)
    for a, b in zip(*(one / span for one, span in zip(z, spans, strict=True)), strict=True):
        np.fmin(nearest, np.hypot(down[:, None] - a, across - b), out=nearest)
    found: BoolArray = nearest <= FAR
    return found


def column_of(data: Any, name: str) -> Any:
    """A column of a table.

    Raises
    ------
    InputError
        There is none of this name.
    """
    try:
        column = data[name]
    except (KeyError, IndexError, TypeError) as exc:
        raise InputError(f"data must have the column {name!r}, got none") from exc
    own = getattr(column, "array", None)
    return own if hasattr(own, "grid_points") else column
