"""Residuals of a regression: are errors normal, of one variance, and independent along the curve?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.functional.tables.curves import as_curves
from fdadp.plot._canvas import GREY, PALETTE, label, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CURVES, POINTS, GRID = 50, 4000, 101
"""Most curves, points and points of t that are drawn; evenly chosen where there are more."""

BINS = 25
"""Of t, where each curve has points of its own."""


def residuals(model: Any, *, labels: Mapping[str, str] | None = None, ax: Any = None) -> Figure:
    """Four pictures of the (deviance) residuals of a regression.

    Of curves: residual curves with two standard deviations at each t; quantiles of the residuals, each divided by the
    standard deviation at its t, against normal ones; residuals against fitted values; correlation of the residuals at
    two points of t, which is zero beside the diagonal where errors are independent along the curve. Where each curve
    has points of its own, means in 25 bins of t stand for its residuals. Of numbers: residuals against fitted values,
    quantiles, histogram, observed against fitted values.

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
    texts = {key: label(labels, key, default, ("t", "Y")) for key, default in (("t", "t"), ("Y", model.response_name_))}
    if hasattr(model, "t_"):
        t, fitted, found = _on_grid(model)
        figure, axes = panels(4, ax, columns=(4, 2), size=(3.4, 2.8))
        _of_curves(figure, axes, t, fitted, found, texts)
        return figure
    figure, axes = panels(4, ax, columns=(4, 2), size=(3.4, 2.8))
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
