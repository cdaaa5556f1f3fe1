"""A curve that acts through the integral of a smooth surface, on a curve: ``∫ F{X_i(s), s, t} ds``."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fdadp._common.checks import several
from fdadp._common.typing import BoolArray, FloatArray
from fdadp.errors import ExtrapolationWarning, InputError
from fdadp.functional.curves import Curves, refuse_other_domain
from fdadp.functional.quadrature import quadrature_weights
from fdadp.functional.records import Records, Seen
from fdadp.functional.smooths import SmoothMargin
from fdadp.functional.splines import BSplines
from fdadp.terms._rows import FeatureMap
from fdadp.terms.spec import TermDesign, TermSpec, along_response

__all__ = ["FunctionalAdditive", "additive"]


@dataclass(frozen=True)
class FunctionalAdditive(TermSpec):
    """Effect ``∫ F{X(s), s, t} ds`` of a curve on a curve, refund's ``sff``.

    What F adds as a function of s and t alone is not identified: compare surfaces by ``F(x, s, t) - F(x0, s, t)``.

    Parameters
    ----------
    column : str
        Column of curves.
    k : (int, int, int)
        Numbers of B-splines over t, s and x.
    m : (int, int)
        Of all three, degree less one and order of the difference penalty.
    rule : {"trapezoid", "simpson", "riemann", "simpson_legacy"}
        See :func:`fdadp.functional.quadrature.quadrature_weights`; ``"simpson_legacy"`` is refund's default.

    References
    ----------
    Scheipl, Staicu & Greven (2015), Functional additive mixed models, doi:10.1080/10618600.2014.901914; Kim, Staicu,
    Maity, Carroll & Ruppert (2018), Additive function-on-function regression, doi:10.1080/10618600.2017.1356730.
    """

    column: str
    k: tuple[int, int, int] = (5, 5, 5)
    m: tuple[int, int] = (2, 2)
    rule: str = "trapezoid"

    @property
    def name(self) -> str:
        """As in a formula."""
        return f"sff({self.column})"

    @property
    def columns(self) -> tuple[str, ...]:
        """The column."""
        return (self.column,)

    def fixed(self, seen: Seen, t: FloatArray | None) -> TermDesign:
        """P-splines over t, s and the range of X; the scale of their penalties takes a pass over the curves."""
        if t is None:
            raise InputError(f"{self.name} must have a response that is a curve; for a scalar response use af()")
        several(self.k, 3, f"k of {self.name}")
        along = along_response(t, self.k[0], self.m, values=True, name=f"k of {self.name}")
        return additive(self.name, self.column, seen, self.k[1:], self.m, self.rule, along_first=True, **along)


def additive(
    name: str, column: str, seen: Seen, k: tuple[int, ...], m: tuple[int, int], rule: str, **fields: Any
) -> TermDesign:
    """The design of ``∫ F{X(s), s} ds`` times functions along the response.

    Parameters
    ----------
    name, column : str
    seen : Seen
    k : (int, int)
        Numbers of B-splines over s and x.
    m : (int, int)
    rule : str
    **fields
        Of the design: `along`, `along_norm`, `along_first`, `uneven_simpson`.
    """
    curves = seen.curves_of(column)
    several(k, 2, f"k of {name}")
    several(m, 2, f"m of {name}")
    over_s = SmoothMargin.pspline(curves.grid, k[0], m, values=True, name=f"k of {name}")
    over_x = SmoothMargin.pspline(curves.range, k[1], m, values=True, name=f"k of {name}")
    weights = quadrature_weights(curves.grid, rule)
    largest = _feature_map(over_x, over_s, curves.grid, weights).row_norm(over_x.to_basis, over_s.to_basis)
    norm = max(largest(block.curves(column).values) for block in seen.read())
    in_s, in_x = (margin.eigenvalues * norm**2 / margin.penalty_norm for margin in (over_s, over_x))
    return _Surface(
        name=name,
        columns=(column,),
        over_s=over_s,
        over_x=over_x,
        grid=curves.grid,
        x_range=curves.range,
        rule=rule,
        own_norm=norm,
        own_penalties=np.vstack((np.tile(in_s, over_x.size), np.repeat(in_x, over_s.size))),
        **fields,
    )


def _feature_map(over_x: SmoothMargin, over_s: SmoothMargin, grid: FloatArray, weights: FloatArray) -> FeatureMap:
    assert isinstance(over_x.basis, BSplines)
    assert isinstance(over_s.basis, BSplines)
    return FeatureMap(over_x.basis, over_s.basis, grid, weights)


@dataclass(frozen=True, kw_only=True)
class _Surface(TermDesign):
    """Features ``∫ B_l(X(s)) B_l'(s) ds``, s fastest."""

    over_s: SmoothMargin
    over_x: SmoothMargin
    grid: FloatArray
    x_range: tuple[float, float]
    rule: str
    uneven_simpson: bool = False

    @cached_property
    def kept(self) -> BoolArray:
        """All but the intercept's direction, and its multiples: what is linear in s alone adds the same to each row."""
        keep = np.ones((self.over_x.size, self.over_s.size, self.along.size), dtype=bool)
        keep[0][np.ix_(self.over_s.eigenvalues == 0, self.along.eigenvalues == 0)] = False
        keep[0, 0] = True
        keep[0, 0, 0] = False
        return keep.reshape(-1)

    def features(self, records: Records, t: FloatArray | None = None) -> FloatArray:
        x = records.curves(self.columns[0])
        refuse_other_domain(x, self.grid, self.columns[0])
        self._warn_outside(x)
        weights = quadrature_weights(x.grid, self.rule, uneven_simpson=self.uneven_simpson)
        rows = _feature_map(self.over_x, self.over_s, x.grid, weights).rows(x.values)
        by_margin = rows.reshape(len(rows), self.over_x.to_raw.shape[0], -1)
        turned = np.einsum("nab,ac,bd->ncd", by_margin, self.over_x.to_raw, self.over_s.to_raw, optimize=True)
        return np.asarray(turned.reshape(len(rows), -1))

    def _warn_outside(self, x: Curves) -> None:
        low, high = self.x_range
        outside = int(((x.values < low) | (x.values > high)).sum())
        if outside:
            warnings.warn(
                f"{outside} of {x.values.size} points of {self.columns[0]} lie outside the training range "
                f"[{low:g}, {high:g}]; the surface of {self.name} is continued linearly there",
                ExtrapolationWarning,
                stacklevel=2,
            )

    @property
    def axes(self) -> dict[str, FloatArray | tuple[Any, ...]]:
        return {"s": np.linspace(self.grid[0], self.grid[-1], 20), "x": np.linspace(*self.x_range, 20)}

    def effect(self, *points: Any) -> FloatArray:
        at_s, at_x = self.over_s.design(points[0]), self.over_x.design(points[1])
        return np.asarray(np.einsum("sb,xa->sxab", at_s, at_x).reshape(len(at_s) * len(at_x), -1))
