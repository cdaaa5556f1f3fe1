"""Coefficient functions of terms, such as ``β(s, t)`` of ``ff(X)``, on any grid."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp._common.argument_checks import fraction, numbers
from fdadp._common.student_and_f import student_quantile
from fdadp._common.typing import BoolArray, FloatArray
from fdadp.errors import InputError
from fdadp.functional.splines.diagonal_margins import Constant
from fdadp.solve.fit.additive_fit import AdditiveFit
from fdadp.solve.form.long_form_design import LongForm
from fdadp.terms.spec import TermDesign

if TYPE_CHECKING:
    import pandas as pd

POINTS = {1: 100, 2: 40}
"""Number of default points of t, by the number of axes. With three axes or more it is 20."""

MOST_FACTORS = 5
"""Most factors of an interaction whose orders are all tried."""

CENTRED = 1e-9
"""Largest mean of a column of a centred term, relative to the largest entry of its rows."""


@dataclass(frozen=True)
class EffectRows:
    """A coefficient function as rows times coefficients.

    Attributes
    ----------
    name : str
        Of the term.
    axes : dict of str
        Points of each axis, in order. ``"t"`` comes last, if the effect varies along the response.
    rows : ndarray of shape (m, p_j)
        Rows of the term's coefficients at the product of all points, the last axis fastest.
    place : slice
        Places of these coefficients among all.
    absent : ndarray of shape (m,), bool
        Points without a coefficient, such as those beyond the limits of a historical effect.
    unseen : ndarray of shape (m,), or None
        Variance of the coefficient function outside of the features.
    """

    name: str
    axes: dict[str, Any]
    rows: FloatArray
    place: slice
    absent: BoolArray
    unseen: FloatArray | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return tuple(len(points) for points in self.axes.values())


@dataclass(frozen=True)
class Effect:
    """A coefficient function on the product of its axes.

    Attributes
    ----------
    name : str
    axes : dict of str
        Points of each axis, in order.
    value : ndarray
        Of the shape of the axes. NaN at points without a coefficient.
    se, lower, upper : ndarray or None
        Standard errors and ends of the pointwise interval, of the same shape.
    """

    name: str
    axes: dict[str, Any]
    value: FloatArray
    se: FloatArray | None = None
    lower: FloatArray | None = None
    upper: FloatArray | None = None

    def to_frame(self) -> pd.DataFrame:
        """A row for each point: its coordinates, value, and standard error and interval if computed."""
        import pandas as pd

        where = np.meshgrid(*(np.arange(len(points)) for points in self.axes.values()), indexing="ij")
        columns = {axis: np.asarray(p)[w.ravel()] for (axis, p), w in zip(self.axes.items(), where, strict=True)}
        for name in ("value", "se", "lower", "upper"):
            found = getattr(self, name)
            if found is not None:
                columns[name] = np.ravel(found)
        return pd.DataFrame(columns)


def place_of(form: LongForm, name: str) -> int:
    """Number of a term by its name.

    Raises
    ------
    InputError
        No such term; a term may also be named as in the formula.
    """
    names = [design.name for design in form.designs]
    found = next((own for own in _spellings(name) if own in names), None)
    if found is None:
        raise InputError(f"name must be a term of the model ({', '.join(names)}), got {name!r}")
    return names.index(found)


def _spellings(name: str) -> Iterator[str]:
    """A name as it is, and what a term written so in a formula is called: ``C(g):ff(X, k=8)`` is ``ff(X):g``."""
    yield name
    factors = re.split(r":(?![^()]*\))", str(name))
    plain = ":".join(_called(factor.strip()) for factor in factors).split(":")
    yield from map(":".join, permutations(plain[:MOST_FACTORS]))
    yield f"concurrent({name})"


def _called(text: str) -> str:
    """What a term is called that a formula writes so: without options, and ``s(z, by=g)`` is ``s(z):g``."""
    try:
        node = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):  # a name in backticks, say
        return re.sub(r"^(?:C|factor|linear)\(\s*([^(),]+?)\s*\)$", r"\1", text)
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args):
        return text
    options = {option.arg: option.value for option in node.keywords}
    kind, columns = node.func.id, [ast.unparse(column) for column in node.args]
    if kind in ("C", "factor", "linear") and len(columns) == 1:
        return columns[0]
    if kind == "s" and _plain(options.get("bs")) == "re":
        kind = "re"
    if kind == "c" and len(columns) == 1:
        columns = [_called(columns[0])]
    by = _plain(options.get("by"))
    return f"{kind}({', '.join(columns)})" + (f":{by}" if by else "")


def _plain(option: ast.expr | None) -> str | None:
    """A text, or a name as R writes it."""
    return (
        option.value
        if isinstance(option, ast.Constant) and isinstance(option.value, str)
        else (ast.unparse(option) if option is not None else None)
    )


def varies(design: TermDesign) -> bool:
    """Whether an effect varies along the response."""
    return not isinstance(design.along.basis, Constant)


def effect_rows(form: LongForm, name: str, points: Mapping[str, Any] | None = None) -> EffectRows:
    """Rows of a term's coefficient function.

    Parameters
    ----------
    form : LongForm
    name : str
        Of the term.
    points : mapping, optional
        Points of axes by name; default: even ones over the range that was seen, and all levels of factors.

    Raises
    ------
    InputError
        No such term or axis, or points outside the domain of the curves.
    """
    number = place_of(form, name)
    design, given = form.designs[number], {k: v for k, v in (points or {}).items() if v is not None}
    own = design.axes
    known = [*own, *(("t",) if varies(design) else ())]
    unknown = next((axis for axis in given if axis not in known), None)
    if unknown is not None:
        raise InputError(f"axes of {name} are {', '.join(known) or 'none'}, got points of {unknown!r}")
    free = design.periods
    axes = {axis: _points(axis, given.get(axis), default, axis in free) for axis, default in own.items()}
    effect = design.effect(*axes.values())
    if varies(design):
        low = float(form.t.min())
        high = low + free["t"] if "t" in free else float(form.t.max())
        axes["t"] = _points("t", given.get("t"), np.linspace(low, high, POINTS.get(len(own) + 1, 20)), "t" in free)
        along = design.along.design(axes["t"])
    else:
        along = np.ones((1, 1))
    rows = (effect[:, None, :, None] * along[None, :, None, :]).reshape(len(effect) * len(along), -1)
    inside = design.acts(axes)
    absent = np.zeros(len(rows), dtype=bool) if inside is None else ~inside.ravel()
    return EffectRows(name, axes, rows[:, design.kept], form.slices[number], absent, design.unseen(axes))


def _points(axis: str, given: Any, default: Any, free: bool) -> Any:
    """Points of an axis; those of curves' domains lie within them, but on a circle (`free`)."""
    if isinstance(default, tuple):
        return default if given is None else tuple(np.atleast_1d(np.asarray(given, dtype=object)).tolist())
    if given is None:
        return default
    points = np.atleast_1d(numbers(given, axis))
    if points.ndim != 1 or not points.size or not np.isfinite(points).all():
        raise InputError(f"{axis} must be finite numbers, one or a sequence, got {given!r}")
    low, high = float(default.min()), float(default.max())
    slack = 1e-9 * (high - low)
    if axis in ("s", "t") and not free and (points.min() < low - slack or points.max() > high + slack):
        raise InputError(f"{axis} must lie within [{low:g}, {high:g}], got [{points.min():g}, {points.max():g}]")
    return points


def effect_of(
    fit: AdditiveFit,
    rows: EffectRows,
    covariance: FloatArray | None = None,
    level: float = 0.95,
    *,
    with_mean: bool = False,
    degrees: float = np.inf,
) -> Effect:
    """Values of a coefficient function, and their standard errors where a covariance is given.

    Parameters
    ----------
    fit : AdditiveFit
    rows : EffectRows
    covariance : ndarray of shape (p, p), optional
        Of all coefficients.
    level : float
        Of pointwise intervals, in (0, 1).
    with_mean : bool
        Of a term that is centred, standard errors of its sum with the mean of all others.
    degrees : float
        Student's, of the intervals; infinite: by the normal law.

    References
    ----------
    Marra & Wood (2012), Coverage properties of confidence intervals for generalized additive model components,
    doi:10.1111/j.1467-9469.2011.00760.x, section 4: intervals that know the mean.
    """
    value = rows.rows @ fit.coefficients[rows.place]
    if covariance is None:
        return Effect(rows.name, rows.axes, _shaped(value, rows))
    half = student_quantile((1 + fraction(level, "level")) / 2, degrees)
    whole = rows.rows
    if with_mean and _is_centred(fit, rows):
        whole = np.tile(fit.column_means, (len(whole), 1))
        whole[:, rows.place] = rows.rows
    else:
        covariance = covariance[rows.place, rows.place]
    variance = np.maximum(np.einsum("ij,ij->i", whole @ covariance, whole), 0.0)
    se = np.sqrt(variance if rows.unseen is None else variance + rows.unseen)
    found = (_shaped(v, rows) for v in (value, se, value - half * se, value + half * se))
    return Effect(rows.name, rows.axes, *found)


def _is_centred(fit: AdditiveFit, rows: EffectRows) -> bool:
    means = np.abs(fit.column_means[rows.place]).max(initial=0.0)
    return bool(means <= CENTRED * np.abs(rows.rows).max(initial=0.0))


def _shaped(values: FloatArray, rows: EffectRows) -> FloatArray:
    return np.where(rows.absent, np.nan, values).reshape(rows.shape)
