"""A curve through its principal components: by their scores (``ffpc``), or by a β in their span (``fpcr``)."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fdadp._common.argument_checks import one_of
from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.functional.fpca import Eigenbasis
from fdadp.functional.quadrature import RULES, quadrature_weights
from fdadp.functional.splines.bsplines import BSplines
from fdadp.terms.records import Records, TrainingSummary
from fdadp.terms.spec import TermDesign, TermSpec, along_response, no_penalties, size_along

METHODS = ("face", "dense", "sc")


if TYPE_CHECKING:
    from fdadp.functional.fpca import FPCA


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
        Number of B-splines along the response. Default: 15, or as many as the response has points. ``"refund"`` takes
        8.
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

    function = "ffpc"
    refund_k = 8

    def fixed(self, seen: TrainingSummary, t: FloatArray | None) -> TermDesign:
        """As many features as components; their FPCA takes a pass over the curves."""
        if t is None:
            raise InputError(f"{self.name} must have a response that is a curve; for a scalar response use fpcr()")
        one_of(self.method, f"method of {self.name}", METHODS)
        grid = seen.curves_of(self.column).grid
        k = size_along(self.k, self.refund_k, t)
        along = along_response(t, k, self.m, name=f"k of {self.name}", cycle=seen.t_cycle)
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
        from fdadp.functional.fpca import FPCA

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
        x = records.curves(self.columns[0], self.basis.grid)
        basis = self.basis if np.array_equal(x.grid, self.basis.grid) else self.basis.on_grid(x.grid)
        return basis.conditional_scores(x.values) if self.conditional else basis.scores(x.values)

    @property
    def axes(self) -> dict[str, FloatArray | tuple[Any, ...]]:
        return {"s": np.linspace(self.basis.grid[0], self.basis.grid[-1], 40)}

    def effect(self, *points: Any) -> FloatArray:
        return self.basis.evaluate(points[0])[1].T


# A curve that acts through an integral, on a number, with β in the span of its leading principal components.


@dataclass(frozen=True)
class ComponentRegression(TermSpec):
    """Effect ``∫ (X(s) - X̄(s)) β(s) ds`` of a curve on a number, refund's ``fpcr``.

    The curves are put on B-splines, reduced to their leading principal components, and β is smoothed there by
    ``λ ∫ β''(s)² ds``.

    Parameters
    ----------
    column : str
        Column of curves.
    n_components : int or float
        Number of components; or in (0, 1] the share of the sum of singular values (not of their squares, as in refund)
        that is exceeded.
    n_basis : int
        Number of cubic B-splines.
    rule : {"trapezoid", "simpson", "riemann", "simpson_legacy", "sum"}
        See :func:`fdadp.functional.quadrature.quadrature_weights`; ``"sum"`` is refund's, a plain sum over the points.

    References
    ----------
    Reiss & Ogden (2007), Functional principal component regression and functional partial least squares,
    doi:10.1198/016214507000000527.

    Examples
    --------
    >>> from fdadp import terms
    >>> terms.fpcr("X", n_components=4).name
    'fpcr(X)'
    """

    column: str
    n_components: float = 0.99
    n_basis: int = 40
    rule: str = "trapezoid"

    function = "fpcr"

    def fixed(self, seen: TrainingSummary, t: FloatArray | None) -> TermDesign:
        """As many features as components; finding them takes a pass over the curves."""
        if t is not None:
            raise InputError(f"{self.name} must have a response that is a number; for curves use ffpc()")
        one_of(self.rule, f"rule of {self.name}", (*RULES, "sum"))
        curves = seen.curves_of(self.column)
        splines = BSplines.clamped(curves.grid[0], curves.grid[-1], self.n_basis, name=f"n_basis of {self.name}")
        on_splines = splines.design(curves.grid) * _weights(curves.grid, self.rule)[:, None]
        triangle = seen.over(partial(_triangle, self.column, curves.mean, on_splines), _stacked)
        directions = _leading(triangle, self.n_components, self.name)
        penalty, turn = np.linalg.eigh(directions.T @ splines.derivative_penalty(2) @ directions)
        penalty[penalty < penalty[-1] * 1e-12] = 0.0
        return _Components(
            name=self.name,
            columns=self.columns,
            splines=splines,
            to_splines=directions @ turn,
            grid=curves.grid,
            mean=curves.mean,
            rule=self.rule,
            own_penalties=penalty[None],
        )


def _weights(grid: FloatArray, rule: str) -> FloatArray:
    return np.ones(grid.size) if rule == "sum" else quadrature_weights(grid, rule)


def _triangle(column: str, mean: FloatArray, on_splines: FloatArray, block: Records) -> FloatArray:
    centred = (block.curves(column).values - mean) @ on_splines
    return np.asarray(np.linalg.qr(centred, mode="r"))


def _stacked(one: FloatArray, other: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.qr(np.vstack((one, other)), mode="r"))


def _leading(triangle: FloatArray, n_components: float, name: str) -> FloatArray:
    """Leading right singular vectors of rows (n, p), from the triangle of their QR, shape (p, q)."""
    _, singular, right = np.linalg.svd(triangle, full_matrices=False)
    rank = int((singular > singular[0] * 1e-12).sum()) if singular[0] > 0 else 0
    if isinstance(n_components, (int, np.integer)) and not isinstance(n_components, bool):
        if not 1 <= n_components <= rank:
            raise InputError(f"n_components of {name} must be from 1 to {rank} here, got {n_components}")
        return np.asarray(right[: int(n_components)].T)
    if not isinstance(n_components, float) or not 0 < n_components <= 1:
        raise InputError(f"n_components of {name} must be a whole number or a share in (0, 1], got {n_components!r}")
    if rank == 0:
        raise InputError(f"the curves of {name} must vary, got equal ones")
    enough = np.flatnonzero(np.cumsum(singular) > n_components * singular.sum())
    return np.asarray(right[: min(int(enough[0]) + 1 if enough.size else rank, rank)].T)


@dataclass(frozen=True, kw_only=True)
class _Components(TermDesign):
    splines: BSplines
    to_splines: FloatArray
    grid: FloatArray
    mean: FloatArray
    rule: str

    def features(self, records: Records, t: FloatArray | None = None) -> FloatArray:
        x = records.curves(self.columns[0], self.grid)
        if self.rule == "sum" and x.grid.size != self.grid.size:
            raise InputError(
                f"{self.columns[0]} must be on the {self.grid.size} training points where {self.name} is a sum over "
                f"points (rule='sum'), got {x.grid.size}"
            )
        mean = np.interp(x.grid, self.grid, self.mean)
        return np.asarray((x.values - mean) @ (self.effect(x.grid) * _weights(x.grid, self.rule)[:, None]))

    @property
    def axes(self) -> dict[str, FloatArray | tuple[Any, ...]]:
        return {"s": np.linspace(self.grid[0], self.grid[-1], 40)}

    def effect(self, *points: Any) -> FloatArray:
        return self.splines.design(points[0]) @ self.to_splines
