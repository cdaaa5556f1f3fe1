"""A curve that acts through the integral of a smooth surface, on a curve: ``∫ F{X_i(s), s, t} ds``."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from fdadp._common.argument_checks import is_one_of, several
from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.functional.splines.diagonal_margins import SmoothMargin
from fdadp.functional.tables.curve_sample import Curves
from fdadp.terms.additive_surface import AUTO, QuantileTransform, Surface, basis_sizes
from fdadp.terms.cycles import Cycle
from fdadp.terms.records import Records, TrainingSummary
from fdadp.terms.spec import TermDesign, TermSpec, along_response, size_along, unsized
from fdadp.terms.times_column import multiplied


@dataclass(frozen=True)
class FunctionalAdditive(TermSpec):
    """Effect ``∫ F{X(s), s, t} ds`` of a curve on a curve, refund's ``sff``.

    What F adds as a function of s and t alone is not identified: compare surfaces by ``F(x, s, t) - F(x0, s, t)``.

    Parameters
    ----------
    column : str
        Column of curves.
    k : (int, int, int), optional
        Numbers of B-splines over t, s and x. Default: 5 over s and x, and 15 over t, or as many as the response has
        points. ``"refund"`` takes 5 of each. Of the last two ``"auto"`` grows with the number of curves
        (:func:`fdadp.terms.additive_surface.basis_sizes`); it is the default with ``response_basis="eigen"``.
    m : (int, int)
        Of all three, degree less one and order of the difference penalty.
    rule : {"trapezoid", "simpson", "riemann", "simpson_legacy"}
        See :func:`fdadp.functional.quadrature.quadrature_weights`; ``"simpson_legacy"`` is refund's default.
    period : float, optional
        Makes F periodic in s, as mgcv's ``bs = "cc"``: s and s + period are the same point, 365 for days of a year.
        The penalty over s is then the integrated squared second derivative.
    x_transform : {None, "quantile"}
        ``"quantile"`` takes X(s) by its rank among the training curves at s (refund's ``Qtransform``), for skewed X.

    References
    ----------
    Scheipl, Staicu & Greven (2015), Functional additive mixed models, doi:10.1080/10618600.2014.901914; Kim, Staicu,
    Maity, Carroll & Ruppert (2018), Additive function-on-function regression, doi:10.1080/10618600.2017.1356730.

    Examples
    --------
    >>> from fdadp import terms
    >>> terms.sff("X", k=(7, 7, 5)).name
    'sff(X)'
    """

    column: str
    k: tuple[int | str, ...] | str | None = None
    m: tuple[int, int] = (2, 2)
    rule: str = "trapezoid"
    period: float | None = None
    x_transform: str | None = None

    function = "sff"
    refund_k = (5, 5, 5)

    def fixed(self, seen: TrainingSummary, t: FloatArray | None) -> TermDesign:
        """P-splines over t, s and the range of X; the scale of their penalties takes a pass over the curves."""
        if t is None:
            raise InputError(f"{self.name} must have a response that is a curve; for a scalar response use af()")
        k = several(self.refund_k if unsized(self.k) else self.k, 3, f"k of {self.name}")
        if self.k is None:
            k = (size_along(None, k[0], t), *k[1:])
        if isinstance(k[0], str):
            raise InputError(f"k of {self.name} must begin with the number of B-splines over t, got {k[0]!r}")
        along = along_response(t, k[0], self.m, values=True, name=f"k of {self.name}", cycle=seen.t_cycle)
        own = self.name, self.column, seen, k[1:], self.m, self.rule
        return additive(*own, period=self.period, x_transform=self.x_transform, along_first=True, **along)


@dataclass(frozen=True)
class CentredSurface(FunctionalAdditive):
    """The surface of :class:`fdadp.AdditiveFunctionOnFunction`: F has mean zero over the training curves at each s.

    Its errors name the arguments of that estimator. Parameters are those of :class:`FunctionalAdditive`.
    """

    @property
    def name(self) -> str:
        """The column."""
        return self.column

    def fixed(self, seen: TrainingSummary, t: FloatArray | None) -> TermDesign:
        """P-splines over the range of X and over s; their scale, and the mean of F, are learned with the sums.

        Raises
        ------
        InputError
            Too few curves, or constant ones.
        """
        column, least = self.column, 2 * self.m[1] + 1
        low, high = seen.curves_of(column).range
        if seen.n < least:
            raise InputError(f"{column} and Y must hold at least {least} curves, got {seen.n}")
        if not low < high:
            raise InputError(f"{column} must vary, got the constant {low:g} everywhere")
        names = ("n_basis_x", "n_basis_s", "period_s")
        k = several(self.k, 3, f"k of {self.name}")[1:]
        more: Any = {"period": self.period, "x_transform": self.x_transform, "names": names, "centred": True}
        return additive(self.name, column, seen, k, self.m, self.rule, **more)


def additive(
    name: str,
    column: str,
    seen: TrainingSummary,
    k: tuple[int | str, ...],
    m: tuple[int, int],
    rule: str,
    *,
    period: float | None = None,
    x_transform: str | None = None,
    names: tuple[str, str, str] | None = None,
    **fields: Any,
) -> TermDesign:
    """The design of ``∫ F{X(s), s} ds`` times functions along the response.

    Parameters
    ----------
    name, column : str
    seen : TrainingSummary
    k : (int, int)
        Numbers of B-splines over s and x, or ``"auto"``.
    m : (int, int)
    rule : str
    period, x_transform
        As of :class:`FunctionalAdditive`.
    names : (str, str, str), optional
        Of the sizes over x and s and of the period, for messages.
    **fields
        Of the design: `along`, `along_norm`, `along_first`, `uneven_simpson`, `centred`.
    """
    curves, what = seen.curves_of(column), f"k of {name}"
    over_s, over_x = several(k, 2, what)
    several(m, 2, f"m of {name}")
    for size in (over_x, over_s):
        if isinstance(size, str) and size != AUTO:
            raise InputError(f"{what} must be of numbers of B-splines, or 'auto', got {size!r}")
    Cycle.of(period, f"period of {name}")
    if not is_one_of(x_transform, (None, "quantile")):
        raise InputError(f"x_transform of {name} must be None or 'quantile', got {x_transform!r}")
    transform = None
    if x_transform == "quantile":
        transform = seen.over(partial(_values, column), operator.add, partial(_quantiles, curves.grid))
    surface = surface_on(
        name,
        column,
        curves.grid,
        curves.range,
        basis_sizes((over_x, over_s), seen.n, curves.grid.size, m[0] + 1),
        m,
        names or (what, what, f"period of {name}"),
        rule=rule,
        period=period,
        transform=transform,
        **fields,
    )
    return surface if surface.centred else surface.scaled(seen.over(partial(_row_sum, surface), max))


def _values(column: str, block: Records) -> list[FloatArray]:
    return [block.curves(column).values]


def _quantiles(grid: FloatArray, values: list[FloatArray]) -> QuantileTransform:
    return QuantileTransform.of(Curves(np.concatenate(values), grid))


def _row_sum(surface: Surface, block: Records) -> float:
    return surface.row_sum_of(block.curves(surface.columns[0]))


def surface_on(
    name: str,
    column: str,
    grid: FloatArray,
    x_range: tuple[float, float],
    sizes: tuple[int, int],
    m: tuple[int, int],
    names: tuple[str, str, str],
    *,
    period: float | None = None,
    transform: QuantileTransform | None = None,
    **fields: Any,
) -> Surface:
    """F on splines, the scale of its penalties yet to come.

    Parameters
    ----------
    name, column : str
    grid : ndarray of shape (S,)
    x_range : (float, float)
        Range of the curves.
    sizes : (int, int)
        Numbers of B-splines over x and s.
    m : (int, int)
        Of both, degree less one and order of the difference penalty; not of a periodic s.
    names : (str, str, str)
        Of both sizes and of the period, for messages.
    period : float, optional
        Length of a periodic domain.
    transform : QuantileTransform, optional
        To ranks, over which the first basis then is.
    **fields
        Others of :class:`Surface`.

    Raises
    ------
    InputError
        A period shorter than the grid, or a basis too small for its degree.
    """
    ends = x_range if transform is None else (0.0, 1.0)
    over_x = SmoothMargin.pspline(ends, sizes[0], m, values=True, name=names[0])
    if period is None:
        over_s = SmoothMargin.pspline(grid, sizes[1], m, values=True, name=names[1])
    else:
        cycle = Cycle(float(period), names[2])
        over_s = cycle.margin(grid, f"the grid of {column}", sizes[1], m[0] + 1, name=names[1])
    fixed = {"grid": grid, "x_range": x_range, "period": period, "transform": transform}
    return Surface.on(name, column, over_x, over_s, **fixed, **fields)


# A curve that acts through the integral of a smooth surface, on a number: ``∫ F{X_i(s), s} ds``.


@dataclass(frozen=True)
class AdditiveFunctional(TermSpec):
    """Effect ``∫ F{X(s), s} ds`` of a curve on a number, refund's ``af``.

    Parameters
    ----------
    column : str
        Column of curves.
    k : (int, int)
        Numbers of B-splines over s and x.
    m : (int, int)
        Of both, degree less one and order of the difference penalty.
    rule : {"trapezoid", "simpson", "riemann", "simpson_legacy"}
        See :func:`fdadp.functional.quadrature.quadrature_weights`; ``"simpson_legacy"`` is refund's default, which
        ``af`` keeps on uneven grids.
    by : str, optional
        Column of numbers that multiplies the effect, or of labels: a surface for each level.
    period : float, optional
        Makes F periodic in s, as in :class:`~fdadp.terms.curves.functional_additive.FunctionalAdditive`.
    x_transform : {None, "quantile"}
        ``"quantile"`` takes X(s) by its rank among the training curves at s: refund's ``Qtransform``.

    References
    ----------
    McLean, Hooker, Staicu, Scheipl & Ruppert (2014), Functional generalized additive models,
    doi:10.1080/10618600.2012.729985.

    Examples
    --------
    >>> from fdadp import terms
    >>> terms.af("X", k=(10, 8)).name
    'af(X)'
    """

    column: str
    k: tuple[int, int] = (8, 8)
    m: tuple[int, int] = (2, 2)
    rule: str = "trapezoid"
    by: str | None = None
    period: float | None = None
    x_transform: str | None = None

    function = "af"

    def fixed(self, seen: TrainingSummary, t: FloatArray | None) -> TermDesign:
        """P-splines over s and the range of X; the scale of their penalties takes a pass over the curves."""
        if t is not None:
            raise InputError(f"{self.name} must have a response that is a number; for curves use sff()")
        options: Any = {"period": self.period, "x_transform": self.x_transform, "uneven_simpson": True}
        design = additive(f"af({self.column})", self.column, seen, self.k, self.m, self.rule, **options)
        return multiplied(design, seen, self.by, name=self.name)
