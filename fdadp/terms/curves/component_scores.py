"""A curve that acts through the scores of its principal components, on a curve: ``Σ_k ξ_ik β_k(t)``."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from fdadp._common.checks import one_of
from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.functional.fpca import FPCA, Eigenbasis
from fdadp.functional.tables.curves import refuse_other_domain
from fdadp.functional.tables.records import Records, TrainingSummary
from fdadp.terms.spec import TermDesign, TermSpec, along_response, no_penalties, size_along

METHODS = ("face", "dense", "sc")


@dataclass(frozen=True)
class ComponentScores(TermSpec):
    """Effect ``Σ_k ξ_k β_k(t)`` of the scores ξ of a curve, refund's ``ffpc``.

    Parameters
    ----------
    column : str
        Column of curves.
    n_components : int or float
        Number of components, or in (0, 1] the share of variance to explain: refund's ``npc`` and ``pve``.
    max_components : int
        Cap on the number found by share of variance, refund's ``npc.max``.
    k : int, optional
        Number of B-splines along the response. Default: 15, or as many as the response has points; ``"refund"``: 8.
    m : (int, int)
        Their degree less one, and the order of the difference penalty. All β_k share one smoothing parameter.
    method : {"face", "dense", "sc"}
        How the components of the training curves are found, see :class:`fdadp.FPCA`. Refund's is ``"sc"``, whose scores
        are conditional expectations; its covariance (S, S) is too large for grids of many thousands of points.
    basis : Eigenbasis, optional
        Components to take as given, such as ``basis_`` of a fitted :class:`fdadp.FPCA`, on the grid of the curves.

    References
    ----------
    Scheipl, Staicu & Greven (2015), Functional additive mixed models, doi:10.1080/10618600.2014.901914; Yao, Müller &
    Wang (2005), Functional linear regression analysis for longitudinal data, doi:10.1214/009053605000000660.

    Examples
    --------
    >>> from fdadp import terms
    >>> terms.ffpc("X", n_components=3).name
    'ffpc(X)'
    """

    column: str
    n_components: float = 0.99
    max_components: int = 15
    k: int | Literal["refund"] | None = None
    m: tuple[int, int] = (2, 1)
    method: str = "face"
    basis: Eigenbasis | None = None

    refund_k = 8

    @property
    def name(self) -> str:
        """As in a formula."""
        return f"ffpc({self.column})"

    @property
    def columns(self) -> tuple[str, ...]:
        """The column."""
        return (self.column,)

    def fixed(self, seen: TrainingSummary, t: FloatArray | None) -> TermDesign:
        """As many features as components; their FPCA takes a pass over the curves."""
        if t is None:
            raise InputError(f"{self.name} must have a response that is a curve; for a scalar response use fpcr()")
        one_of(self.method, f"method of {self.name}", METHODS)
        grid = seen.curves_of(self.column).grid
        along = along_response(t, size_along(self.k, self.refund_k, t), self.m, name=f"k of {self.name}")
        basis = self._components(seen) if self.basis is None else self.basis
        if not np.array_equal(basis.grid, grid):
            raise InputError(f"basis of {self.name} must be on the grid of {self.column}, use its on_grid()")
        return _Scores(
            name=self.name,
            columns=self.columns,
            basis=basis,
            conditional=self.method == "sc",
            own_penalties=no_penalties(basis.n_components),
            **along,
        )

    def _components(self, seen: TrainingSummary) -> Eigenbasis:
        cap = None if isinstance(self.n_components, int) else self.max_components
        fpca = FPCA(n_components=self.n_components, method=self.method, max_components=cap)
        try:
            grid = seen.curves_of(self.column).grid
            basis: Eigenbasis = seen.over(partial(_values, self.column), operator.add, partial(_basis, fpca, grid))
        except InputError as exc:
            raise InputError(f"{self.name}: {exc}") from exc
        return basis


def _values(column: str, block: Records) -> list[FloatArray]:
    return [block.curves(column).values]


def _basis(fpca: FPCA, grid: FloatArray, values: list[FloatArray]) -> Eigenbasis:
    return fpca.fit(np.vstack(values), t=grid).basis_


@dataclass(frozen=True, kw_only=True)
class _Scores(TermDesign):
    """The coefficient function is ``Σ_k φ_k(s) β_k(t)``: what a curve that differs by a delta at s has more."""

    basis: Eigenbasis
    conditional: bool

    def features(self, records: Records, t: FloatArray | None = None) -> FloatArray:
        x = records.curves(self.columns[0])
        refuse_other_domain(x, self.basis.grid, self.columns[0])
        basis = self.basis if np.array_equal(x.grid, self.basis.grid) else self.basis.on_grid(x.grid)
        return basis.conditional_scores(x.values) if self.conditional else basis.scores(x.values)

    @property
    def axes(self) -> dict[str, FloatArray | tuple[Any, ...]]:
        return {"s": np.linspace(self.basis.grid[0], self.basis.grid[-1], 40)}

    def effect(self, *points: Any) -> FloatArray:
        return self.basis.evaluate(points[0])[1].T
