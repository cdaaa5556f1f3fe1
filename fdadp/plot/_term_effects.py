"""Terms of a regression: coefficient functions with their bands, curves and surfaces."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp._common.typing import ArrayLike, BoolArray, FloatArray
from fdadp.errors import InputError
from fdadp.plot._fitted_surface import where_seen
from fdadp.plot._matplotlib_figures import GREY, PALETTE, panels, texts_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SLICES = 4
"""Panels of an effect of three axes that are all continuous."""

BANDS = 3
"""Most curves in a panel that still have bands."""

LEGEND = 12
"""Most curves in a panel that are named."""

MOST_PANELS = 60


@dataclass(frozen=True)
class _Effect:
    """A coefficient function on its axes, as ``coef`` gave it."""

    name: str
    axes: dict[str, Any]
    value: FloatArray
    lower: FloatArray
    upper: FloatArray
    limit: float
    """Where the colours of heat maps end: the 99 % quantile of absolute values."""
    hatched: bool = False
    """Whether heat maps show where not even the sign is known."""
    seen: BoolArray | None = None
    """Where in (x, s), or among two numbers, there were rows; the rest of heat maps is hatched."""

    def at(self, axis: str, i: int) -> _Effect:
        """The slice at the i-th point of an axis."""
        number = list(self.axes).index(axis)
        rest = {name: points for name, points in self.axes.items() if name != axis}
        value, lower, upper = (np.take(v, i, axis=number) for v in (self.value, self.lower, self.upper))
        return replace(self, axes=rest, value=value, lower=lower, upper=upper)

    def with_rows(self, seen: BoolArray | None) -> _Effect:
        """The same, knowing where there were rows: what lies elsewhere does not count for the colours."""
        if seen is None:
            return self
        return replace(self, seen=seen, limit=_limit(self.value[seen]))

    @property
    def levels(self) -> list[str]:
        """Axes that are levels of factors."""
        return [name for name, points in self.axes.items() if points.dtype.kind != "f"]


_Panel = tuple[str, Callable[[Any], Any]]
"""Title, and what draws on axes; it returns an image where there is one."""


def terms(
    model: Any,
    name: str | None = None,
    *,
    level: float = 0.95,
    kind: str | None = None,
    data: Any = None,
    labels: Mapping[str, str] | None = None,
    ax: Any = None,
    **points: ArrayLike,
) -> Figure:
    """Picture of every term of a regression, or of one: what ``coef`` says.

    A function of one axis is a curve with its pointwise band. A function of two is a heat map, red above and blue below
    zero, with contours. Its colours end at the 99 % quantile of its absolute values. A function of three has one heat
    map for each level of a factor, or for four points of t. Levels of a factor are curves in one panel, or points with
    intervals. Heat maps of a private fit are hatched where the pointwise band holds zero: there not even the sign is
    known. A line below a figure of its own says what bands and hatching mean.

    Parameters
    ----------
    model : FunctionalRegression or ScalarRegression
        Fitted.
    name : str, optional
        Of a term. Default: every term that is no number; all numbers where there are no others.
    level : float
        Of the bands, in (0, 1).
    kind : str, optional
        What is assumed of the errors, see ``coef``.
    data : DataFrame or mapping, optional
        The training table, or one like it: functions of a curve's values, and of two numbers, are left white and
        hatched where it has no row. Such a picture is not private.
    labels : mapping, optional
        Texts with units for axes, by their names such as ``"s"``, ``"t"`` or ``"age"``.
    ax : Axes or array_like of Axes, optional
        Where to draw, one per panel.
    **points : array_like, optional
        Points of the axes of the term `name`.

    Raises
    ------
    InputError
        No such term, points of axes without a term, unknown labels, too few axes, an effect of too many axes.

    Examples
    --------
    >>> from fdadp import FunctionalRegression, plot, simulate_affr
    >>> data = simulate_affr(scenario=1, n=60, seed=0)
    >>> model = FunctionalRegression("Y ~ ff(X)").fit({"X": data.X, "Y": data.Y})
    >>> plot.terms(model, "ff(X)")
    <Figure size ...>
    """
    if name is None and points:
        raise InputError(f"name must be a term where points are given, got None and points of {', '.join(points)}")
    names = _shown(model) if name is None else [name]
    private = getattr(model, "ledger_", None) is not None
    effects = [_effect(model.coef(one, se=True, level=level, kind=kind, **points), one, private) for one in names]
    if data is not None:
        columns = {design.name: design.columns for design in model.fitted_.fit.form.designs}
        effects = [one.with_rows(where_seen(columns.get(one.name, ()), one.axes, data)) for one in effects]
    texts = texts_of(labels, **{axis: axis for axis in sorted({axis for effect in effects for axis in effect.axes})})
    found = [panel for effect in effects for panel in _panels(effect, texts)]
    if len(found) > MOST_PANELS:
        raise InputError(f"name must be a term: the picture of all would have {len(found)} panels")
    figure, axes = panels(len(found), ax, columns=(4, 3), size=(3.4, 2.8))
    for axis, (title, draw) in zip(axes, found, strict=True):
        image = draw(axis)
        axis.set_title(title, fontsize="medium")
        if image is not None:
            figure.colorbar(image, ax=axis, pad=0.02, extend="both")
    if ax is None:
        said = _said(effects, level, private)
        width = round(12 * figure.get_figwidth())  # letters that fit below
        figure.supxlabel("\n".join(wrap(said, width)), fontsize="x-small", color=GREY)
    return figure


def _said(effects: list[_Effect], level: float, private: bool) -> str:
    """What bands and hatching mean, of those that are there."""
    bands = f"{100 * level:g} % pointwise band" + (" (with the privacy noise)" if private else "")
    flat = [effect for effect in effects if len(effect.axes) - len(effect.levels) > 1]
    said = [bands] if len(flat) < len(effects) else []
    if private and flat:
        said.append(f"hatched: the {bands} holds zero")
    if any(effect.seen is not None for effect in flat):
        said.append("white and hatched: no row of the data there")
    return "; ".join(said)


def _shown(model: Any) -> list[str]:
    every = list(model.term_names_)
    curves = [name for name in every if len(model.coef(name).columns) > 1]
    return curves or every


def _effect(frame: Any, name: str, hatched: bool) -> _Effect:
    axes = {axis: frame[axis].unique() for axis in frame.columns[: frame.columns.get_loc("value")]}
    axes = {axis: np.asarray(points) for axis, points in axes.items()}
    shape = tuple(points.size for points in axes.values())
    value, lower, upper = (frame[column].to_numpy().reshape(shape) for column in ("value", "lower", "upper"))
    return _Effect(name, axes, value, lower, upper, _limit(value), hatched)


def _limit(values: FloatArray) -> float:
    """The 99 % quantile of absolute values, 1 where there are none."""
    found = np.abs(values[np.isfinite(values)])
    return (float(np.quantile(found, 0.99)) if found.size else 0.0) or 1.0


def _panels(effect: _Effect, texts: Mapping[str, str], title: str | None = None) -> list[_Panel]:
    title = effect.name if title is None else title
    levels, names = effect.levels, list(effect.axes)
    if len(names) <= 1 and len(names) == len(levels):
        return [(title, lambda axis: _intervals(axis, effect, texts))]
    if len(names) - len(levels) == 1 and len(levels) <= 1:
        return [(title, lambda axis: _curves(axis, effect, texts))]
    if len(names) == 2 and not levels:
        return [(title, lambda axis: _heatmap(axis, effect, texts))]
    if len(names) > 4:
        raise InputError(f"name must be a term of at most four axes for a picture, got {effect.name} of {len(names)}")
    over = levels[0] if levels else names[-1]
    points = effect.axes[over]
    which = range(points.size) if levels else np.linspace(0, points.size - 1, SLICES + 2)[1:-1].round().astype(int)
    found = []
    for i in which:
        at = f"{points[i]}" if levels else f"{points[i]:.3g}"
        found += _panels(effect.at(over, int(i)), texts, f"{title}, {texts[over]} = {at}")
    return found


def _curves(axis: Any, effect: _Effect, texts: Mapping[str, str]) -> None:
    (over,) = (name for name in effect.axes if name not in effect.levels)
    x = effect.axes[over]
    named = [("", effect)]
    if effect.levels:
        named = [(str(one), effect.at(effect.levels[0], i)) for i, one in enumerate(effect.axes[effect.levels[0]])]
    axis.axhline(0.0, color=GREY, linewidth=0.8)
    for i, (text, curve) in enumerate(named):
        colour = PALETTE[i % len(PALETTE)]
        if len(named) <= BANDS:
            axis.fill_between(x, curve.lower, curve.upper, color=colour, alpha=0.2, linewidth=0)
        width = 1.8 if len(named) <= LEGEND else 0.7
        axis.plot(x, curve.value, color=colour, linewidth=width, label=text if len(named) <= LEGEND else None)
    axis.set_xlabel(texts[over])
    if 1 < len(named) <= LEGEND:
        axis.legend(fontsize="small", title=texts[effect.levels[0]])


def _intervals(axis: Any, effect: _Effect, texts: Mapping[str, str]) -> None:
    value, lower, upper = (np.ravel(v) for v in (effect.value, effect.lower, effect.upper))
    at = np.arange(value.size)
    axis.axvline(0.0, color=GREY, linewidth=0.8)
    axis.errorbar(value, at, xerr=(value - lower, upper - value), fmt="o", color=PALETTE[0], markersize=4)
    names = [str(one) for points in effect.axes.values() for one in points] or [effect.name]
    step = -(-at.size // 30)
    axis.set_yticks(at[::step], names[::step])
    for name in effect.axes:
        axis.set_xlabel(f"by {texts[name]}")
    axis.invert_yaxis()


def _heatmap(axis: Any, effect: _Effect, texts: Mapping[str, str]) -> Any:
    (down, y), (across, x) = effect.axes.items()
    x, y = np.meshgrid(x, y)
    if (down, across) == ("s", "x"):  # time runs across
        down, across, x, y = across, down, y, x
    hidden = ~np.isfinite(effect.value)
    if effect.seen is not None and effect.seen.shape == hidden.shape:
        hidden |= ~effect.seen
        axis.patch.set(facecolor="#f2f2f2", hatch="////", edgecolor="#bbbbbb")
    values = np.ma.masked_where(hidden, effect.value)
    style = {"cmap": "RdBu_r", "vmin": -effect.limit, "vmax": effect.limit, "shading": "nearest", "rasterized": True}
    image = axis.pcolormesh(x, y, values, **style)
    if min(values.shape) > 1 and values.count() and np.ma.ptp(values) > 1e-9 * effect.limit:
        lines = axis.contour(x, y, values, colors="#333333", linewidths=0.6)
        axis.clabel(lines, fontsize="x-small")
    if effect.hatched and min(values.shape) > 1:
        unknown = (effect.lower <= 0) & (effect.upper >= 0) & ~hidden
        axis.contourf(x, y, unknown.astype(float), levels=[0.5, 1.5], colors="none", hatches=["////"])
    axis.set(xlabel=texts[across], ylabel=texts[down])
    return image
