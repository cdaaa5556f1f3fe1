"""Predicted beside observed curves, eigenfunctions of the responses, mean curves, and residuals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp._common.argument_checks import one_of
from fdadp._common.typing import CurveData, FloatArray
from fdadp.errors import InputError
from fdadp.functional.tables.curve_inputs import as_curves
from fdadp.functional.tables.curve_sample import Curves, axis_names
from fdadp.functional.tables.row_and_grid_labels import same_rows
from fdadp.plot._matplotlib_figures import GREY, PALETTE, panels, texts_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


PREDICTED, BAND = PALETTE[0], "#0072B233"


def predictions(
    model: Any,
    X: CurveData,
    Y: CurveData | None = None,
    *,
    level: float = 0.95,
    curves: Sequence[int] | None = None,
    names: Sequence[str] | None = None,
    labels: Mapping[str, str] | None = None,
    ax: Any = None,
) -> Figure:
    """Predicted curves with pointwise prediction bands, one panel a curve, observed curves over them.

    Parameters
    ----------
    model : AdditiveFunctionOnFunction
        Fitted.
    X : FDataGrid, DataFrame or array_like of shape (n, S)
        Predictor curves. Only for curves that the model was not fitted to does the band say how well it predicts.
    Y : FDataGrid, DataFrame or array_like of shape (n, T), optional
        Observed responses; each title then gives the root mean squared error of that curve.
    level : float
        Of the pointwise band, in (0, 1).
    curves : sequence of int, optional
        Rows to show. Default: up to six; with Y evenly spread from the best to the worst predicted, else evenly
        spread over the rows.
    names : sequence of str of length n, optional
        Titles. Default: the index of a data frame, else the row number.
    labels : mapping, optional
        Texts with units under the keys ``"t"`` and ``"Y"``; default the names that Y carries.
    ax : Axes or array_like of Axes, optional
        Where to draw, one per curve.

    Raises
    ------
    InputError
        X and Y of different n, rows that do not exist, unknown labels, too few axes.

    Examples
    --------
    >>> from fdadp import AdditiveFunctionOnFunction, plot, simulate_affr
    >>> data = simulate_affr(scenario=1, n=60, seed=0)
    >>> model = AdditiveFunctionOnFunction().fit(data.X[:50], data.Y[:50])
    >>> plot.predictions(model, data.X[50:], data.Y[50:], curves=[0, 1])
    <Figure size ...>
    """
    x = as_curves(X, name="X", default=model.s_)
    y = None if Y is None else as_curves(Y, name="Y", default=model.t_)
    if y is not None and len(y) != len(x):
        raise InputError(f"X and Y must hold the same number of curves, got {len(x)} and {len(y)}")
    if y is not None:
        same_rows(X=x, Y=y)
    if names is not None and len(names) != len(x):
        raise InputError(f"names must have {len(x)} entries, one per curve, got {len(names)}")
    grid = model.t_ if y is None else y.grid
    fitted, lower, upper = (
        as_curves(c, default=grid, any_layout=True).values
        for c in (model.predict(X, t=grid), *model.predict_interval(X, level=level, t=grid))
    )
    errors = None if y is None else np.sqrt(np.nanmean((y.values - fitted) ** 2, axis=1))
    rows = _choose(curves, len(x), errors)
    figure, axes = panels(len(rows), ax, columns=(3, 2), size=(3.4, 2.5), share=True)
    own = axis_names(Y)
    texts = texts_of(labels, t=own[0] or "t", Y=own[1] or "Y")
    for axis, i in zip(axes, rows, strict=True):
        band = axis.fill_between(grid, lower[i], upper[i], color=BAND, linewidth=0)
        (line,) = axis.plot(grid, fitted[i], color=PREDICTED, linewidth=1.8)
        handles = {"predicted": line, f"{100 * level:g} % prediction band": band}
        title = _name(i, names, x)
        if y is not None and errors is not None:
            points = y.grid.size <= 40
            style = {"linestyle": "none", "marker": "o", "markersize": 3} if points else {"linewidth": 0.9}
            (seen,) = axis.plot(grid, y.values[i], color="black", **style)
            handles = {"observed": seen, **handles}
            title += f"  (RMSE {errors[i]:.3g})"
        axis.set_title(title, fontsize="medium")
    _label(figure, axes, texts, own=ax is None)
    _legend(figure, axes, list(handles.values()), list(handles), own=ax is None)
    return figure


def eigenfunctions(
    model: Any, *, kind: str = "effects", labels: Mapping[str, str] | None = None, ax: Any = None
) -> Figure:
    """Eigenfunctions of the responses, one panel each.

    Parameters
    ----------
    model : AdditiveFunctionOnFunction or FPCA
        Fitted.
    kind : {"effects", "functions"}
        ``"effects"``: the mean curve, and what adding (+) or subtracting (-) two standard deviations of the component
        makes of it, in the unit of Y. ``"functions"``: the L2-normalised φ_k themselves.
    labels : mapping, optional
        Texts with units under the keys ``"t"`` and ``"Y"``.
    ax : Axes or array_like of Axes, optional
        Where to draw, one per component.

    Raises
    ------
    InputError
        Unknown `kind` or label, too few axes.

    Examples
    --------
    >>> from fdadp import AdditiveFunctionOnFunction, plot, simulate_affr
    >>> data = simulate_affr(scenario=1, n=60, seed=0)
    >>> model = AdditiveFunctionOnFunction().fit(data.X, data.Y)
    >>> plot.eigenfunctions(model)
    <Figure size ...>
    """
    one_of(kind, "kind", ("effects", "functions"))
    grid: FloatArray = model.t_ if hasattr(model, "t_") else model.grid_
    texts = texts_of(labels, t="t", Y="Y" if kind == "effects" else "eigenfunction")
    functions, values, shares = model.eigenfunctions_, model.eigenvalues_, model.explained_variance_ratio_
    figure, axes = panels(len(functions), ax, size=(3.4, 2.6), share=True)
    for k, axis in enumerate(axes):
        if kind == "functions":
            axis.axhline(0.0, color=GREY, linewidth=0.8)
            axis.plot(grid, functions[k], color=PREDICTED, linewidth=1.8)
        else:
            swing = 2 * np.sqrt(values[k]) * functions[k]
            axis.plot(grid, model.mean_, color="black", linewidth=1.4, label="mean curve")
            for sign, side, colour, style in (("+", swing, PALETTE[1], "-"), ("-", -swing, PALETTE[0], "--")):
                text = f"mean {sign} 2 sd of component"
                axis.plot(grid, model.mean_ + side, color=colour, linewidth=1.6, linestyle=style, label=text)
        axis.set_title(f"component {k + 1}: {100 * shares[k]:.1f} % of variance", fontsize="medium")
    _label(figure, axes, texts, own=ax is None)
    if kind == "effects":
        _legend(figure, axes, *axes[0].get_legend_handles_labels(), own=ax is None, columns=3 if len(axes) > 1 else 1)
    return figure


def mean(model: Any, *, level: float = 0.95, labels: Mapping[str, str] | None = None, ax: Any = None) -> Figure:
    """Private mean curve with its simultaneous band.

    Parameters
    ----------
    model : PrivateMean
        Fitted.
    level : float
        Of the band, in (0, 1).
    labels : mapping, optional
        Texts with units under the keys ``"t"`` and ``"Y"``.
    ax : Axes, optional
        Where to draw.

    Returns
    -------
    Figure

    Examples
    --------
    >>> from fdadp import Privacy, PrivateMean, plot, simulate_affr
    >>> privacy = Privacy(epsilon=1.0, delta=1e-6, n=1000, random_state=0)
    >>> model = PrivateMean(privacy=privacy, bounds=(-8, 8)).fit(simulate_affr(scenario=1, n=1000, seed=0).Y)
    >>> plot.mean(model)
    <Figure size ...>
    """
    lower, upper = (as_curves(c, default=model.grid_).values[0] for c in model.band(level))
    texts = texts_of(labels, t="t", Y="Y")
    figure, axes = panels(1, ax, size=(5.0, 3.4))
    text = f"{100 * level:g} % simultaneous band, privacy noise included"
    axes[0].fill_between(model.grid_, lower, upper, color=BAND, linewidth=0, label=text)
    axes[0].plot(model.grid_, model.mean_, color=PREDICTED, linewidth=1.8, label="private mean")
    axes[0].legend(fontsize="small")
    _label(figure, axes, texts, own=ax is None)
    return figure


def _choose(curves: Sequence[int] | None, n: int, errors: FloatArray | None) -> list[int]:
    if curves is not None:
        rows = [int(i) for i in curves]
        bad = [i for i in rows if not 0 <= i < n]
        if bad or not rows:
            raise InputError(f"curves must be rows from 0 to {n - 1}, got {bad[0] if bad else 'none'}")
        return rows
    spread = np.unique(np.linspace(0, n - 1, min(n, 6)).round().astype(int))
    order = np.arange(n) if errors is None else np.argsort(errors, kind="stable")
    return [int(i) for i in order[spread]]


def _name(i: int, names: Sequence[str] | None, x: Curves) -> str:
    if names is not None:
        return str(names[i])
    return f"curve {i}" if x.index is None else str(x.index[i])


def _legend(figure: Any, axes: list[Any], handles: list[Any], names: list[str], *, own: bool, columns: int = 3) -> None:
    """Above a figure of ours, else in the first panel."""
    if own:
        figure.legend(handles, names, loc="outside upper center", ncols=columns, frameon=False)
    else:
        axes[0].legend(handles, names, fontsize="small")


def _label(figure: Any, axes: list[Any], texts: Mapping[str, str], *, own: bool) -> None:
    """Label a figure of ours once, as long texts beside every panel would run into each other."""
    if own:
        figure.supxlabel(texts["t"], fontsize="medium")
        figure.supylabel(texts["Y"], fontsize="medium")
        return
    for axis in axes:
        axis.set(xlabel=texts["t"], ylabel=texts["Y"])


# Residuals: are errors normal, of one variance, and independent along the curve?


CURVES, POINTS, GRID = 50, 4000, 101
"""Most curves, points and points of t that are drawn; evenly chosen where there are more."""

BINS = 25
"""Of t, where each curve has points of its own."""


def residuals(model: Any, *, labels: Mapping[str, str] | None = None, ax: Any = None) -> Figure:
    """Four pictures of the (deviance) residuals of a regression.

    Of curves the first has residual curves with two standard deviations at each t. The second has quantiles of the
    residuals, each divided by the standard deviation at its t, against normal ones. The third has residuals against
    fitted values. The last has the correlation of the residuals at two points of t, which is zero beside the diagonal
    where errors are independent along the curve. Where each curve has points of its own, means in 25 bins of t stand
    for its residuals. Of numbers: residuals against fitted values, quantiles, histogram, observed against fitted
    values.

    Parameters
    ----------
    model : FunctionalRegression or ScalarRegression
        Fitted, not loaded from a file.
    labels : mapping, optional
        Texts with units under the keys ``"t"`` and ``"Y"``.
    ax : array_like of Axes, optional
        Where to draw: four.

    Raises
    ------
    InputError
        A model without residuals, unknown labels, too few axes.

    Examples
    --------
    >>> from fdadp import FunctionalRegression, plot, simulate_affr
    >>> data = simulate_affr(scenario=1, n=60, seed=0)
    >>> model = FunctionalRegression("Y ~ ff(X)").fit({"X": data.X, "Y": data.Y})
    >>> plot.residuals(model)
    <Figure size ...>
    """
    if not hasattr(model, "residuals_"):
        raise InputError("model must have residuals_, got one without: a file holds none, nor does a fit from chunks")
    texts = texts_of(labels, t="t", Y=model.response_name_)
    figure, axes = panels(4, ax, columns=(4, 2), size=(3.4, 2.8))
    if hasattr(model, "t_"):
        t, fitted, found = _on_grid(model)
        _of_curves(figure, axes, t, fitted, found, texts)
        return figure
    fitted, found = np.asarray(model.fitted_values_), np.asarray(model.residuals())
    _against_fitted(axes[0], fitted, found, texts)
    _quantiles(axes[1], found / (found.std() or 1.0))
    axes[2].hist(found, bins="auto", color=PALETTE[5])
    axes[2].set(title="residuals", xlabel=f"residual of {texts['Y']}", ylabel="records")
    some = _evenly(found.size, POINTS)
    axes[3].plot(fitted[some], (fitted + model.residuals_)[some], ".", color=PALETTE[0], markersize=3)
    axes[3].axline((float(fitted.mean()), float(fitted.mean())), slope=1, color=GREY, linewidth=0.8)
    axes[3].set(title="observed against fitted", xlabel=f"fitted {texts['Y']}", ylabel=texts["Y"])
    return figure


def _on_grid(model: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Points of t, fitted values and residuals (n, T); means in bins of t where curves have points of their own."""
    both = (model.fitted_values_, model.residuals())
    own = model.observed_at_
    if own is None:
        fitted, found = (as_curves(c, default=model.t_, any_layout=True).values for c in both)
        return model.t_, fitted, found
    edges = np.linspace(own.t.min(), own.t.max(), BINS + 1)
    cell = own.record * BINS + np.clip(np.searchsorted(edges, own.t, side="right") - 1, 0, BINS - 1)
    counts = np.bincount(cell, minlength=own.n * BINS)
    with np.errstate(invalid="ignore"):
        fitted, found = ((np.bincount(cell, v, own.n * BINS) / counts).reshape(own.n, BINS) for v in both)
    return (edges[1:] + edges[:-1]) / 2, fitted, found


def _of_curves(
    figure: Any, axes: list[Any], t: FloatArray, fitted: FloatArray, found: FloatArray, texts: Mapping[str, str]
) -> None:
    sd = np.sqrt(np.nanmean(found**2, axis=0))
    style = {"marker": "."} if t.size == 1 else {}
    for curve in found[_evenly(len(found), CURVES)]:
        seen = np.isfinite(curve)
        axes[0].plot(t[seen], curve[seen], color=PALETTE[0], linewidth=0.5, alpha=0.5, **style)
    for sign in (-2, 2):
        axes[0].plot(t, sign * sd, color="black", linewidth=1.2, linestyle="--", **style)
    axes[0].set(title="residual curves, ±2 sd", xlabel=texts["t"], ylabel=f"residual of {texts['Y']}")
    scaled = found / np.where(sd > 0, sd, 1.0)
    _quantiles(axes[1], scaled[np.isfinite(scaled)])
    _against_fitted(axes[2], fitted.ravel(), found.ravel(), texts)
    at = _evenly(t.size, GRID)
    both = np.ma.masked_invalid(scaled[:, at])
    counts = (~np.ma.getmaskarray(both)).astype(np.float64)
    products = both.filled(0.0).T @ both.filled(0.0)
    correlation = np.ma.masked_invalid(products / np.where(counts.T @ counts > 0, counts.T @ counts, np.nan))
    image = axes[3].pcolormesh(t[at], t[at], correlation, cmap="RdBu_r", vmin=-1, vmax=1, shading="nearest")
    axes[3].set(title="correlation of residuals", xlabel=texts["t"], ylabel=texts["t"])
    figure.colorbar(image, ax=axes[3], pad=0.02)


def _quantiles(axis: Any, values: FloatArray) -> None:
    from scipy.stats import norm

    ordered = np.sort(values)
    normal = norm.ppf((np.arange(ordered.size) + 0.5) / ordered.size)
    some = _evenly(ordered.size, POINTS)
    axis.plot(normal[some], ordered[some], ".", color=PALETTE[0], markersize=3)
    axis.axline((0.0, 0.0), slope=1, color=GREY, linewidth=0.8)
    axis.set(title="quantiles", xlabel="normal", ylabel="standardised residuals")


def _against_fitted(axis: Any, fitted: FloatArray, found: FloatArray, texts: Mapping[str, str]) -> None:
    seen = np.flatnonzero(np.isfinite(found))
    some = seen[_evenly(seen.size, POINTS)]
    axis.axhline(0.0, color=GREY, linewidth=0.8)
    axis.plot(fitted[some], found[some], ".", color=PALETTE[0], markersize=3, alpha=0.6)
    axis.set(title="residuals against fitted", xlabel=f"fitted {texts['Y']}", ylabel=f"residual of {texts['Y']}")


def _evenly(n: int, most: int) -> Any:
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(int))
