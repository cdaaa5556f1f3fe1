"""Penalised least squares of one or several terms from moments, with smoothing parameters by REML or GCV.

The penalties of a term are diagonal in its coordinates (see :mod:`fdadp.functional.splines.diagonal_margins`), and the
terms of a model stand one after another: ``A(λ) = G + Σ_j λ_j diag(d_j)`` with G the scatter of all features. Neither n
nor the grid enters.

References
----------
Wood (2011), Fast stable REML and marginal likelihood estimation of semiparametric generalized linear models,
JRSS-B 73(1), doi:10.1111/j.1467-9868.2010.00749.x; Craven & Wahba (1979), doi:10.1007/BF01404567.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fdadp._common.typing import ArrayLike, FloatArray, IntArray
from fdadp.errors import InputError
from fdadp.solve.smoothing.normal_equations import OWN_SCALE, NormalEquations, identified, in_blocks, units_of
from fdadp.solve.smoothing.smoothing_search import (
    START_RANGE,
    Criteria,
    apart,
    judged,
    minima,
    rough,
    starts_of,
    with_jumps,
)

# What a penalised fit of one response found.


@dataclass(frozen=True)
class Solution:
    """A penalised fit of one response.

    Attributes
    ----------
    smoothing_parameters : ndarray of shape (M,)
    coefficients : ndarray of shape (p,)
    edf : ndarray of shape (p,)
        Effective degrees of freedom of each coefficient, ``diag(A⁻¹ G)``; the 1 of an intercept that features are
        centred for is not among them.
    rss : float
        Residual sum of squares.
    noise_variance : float
        ``rss / (n - edf_total)``, mgcv's ``sig2``; the scale where that is known.
    scale : float
        The scale that was given, or REML's own estimate ``(rss + β'Sβ) / (n - n_unpenalized)``, mgcv's ``reml.scale``.
    reml, gcv : float
        The two criteria at these smoothing parameters.
    gradient : ndarray of shape (M,)
    hessian : ndarray of shape (M, M)
        First and second derivatives of REML in the logarithms of the smoothing parameters.
    inverse : ndarray of shape (p, p)
        ``A⁻¹``; the Bayesian covariance of the coefficients (mgcv's ``Vp``) is ``noise_variance * inverse``.
    intercept : bool
        Whether features were centred, which stands for an intercept.
    """

    smoothing_parameters: FloatArray
    coefficients: FloatArray
    edf: FloatArray
    rss: float
    noise_variance: float
    scale: float
    reml: float
    gcv: float
    gradient: FloatArray
    hessian: FloatArray
    inverse: FloatArray
    intercept: bool

    @property
    def edf_total(self) -> float:
        """Effective degrees of freedom, the intercept among them."""
        return float(self.edf.sum() + self.intercept)

    @property
    def covariance(self) -> FloatArray:
        """Bayesian covariance of the coefficients, shape (p, p)."""
        return self.noise_variance * self.inverse


# Penalties beyond e^25 times the data's own scale, or below e^-25, change nothing any more but the rounding.
LOG_RANGE = 25.0

SMOOTHEST = 48
"""Coordinates a term on which REML's search is rehearsed, where it has more than half as many again."""

GRID_OF_ALL = 2
"""Smoothing parameters over which one grid goes: jumps of single ones find nothing more then."""

LOG_ROUNDING = float(np.log(np.finfo(float).eps))


class PenalizedLeastSquares:
    """Least squares of K responses on the same features, each with smoothing parameters of its own.

    Parameters
    ----------
    gram : ndarray of shape (p, p)
        ``Z'Z`` of the features of all terms.
    cross : ndarray of shape (p,) or (p, K)
        ``Z'y`` of each response.
    total : float or ndarray of shape (K,)
        ``y'y`` of each response.
    n : int
        Number of observations.
    penalties : ndarray of shape (M, p), or list of ndarray of shape (M_j, p_j)
        Non-negative diagonals of one term; or of each term in its own coordinates, an array of shape (0, p_j) where
        it has no penalty. The coordinates of the terms stand one after another, ``p = Σ p_j``, and so do the
        smoothing parameters, ``M = Σ M_j``.
    n_unpenalized : int, optional
        Dimension counted as unpenalised by REML (mgcv's Mp). Default: the intercept and the coordinates without
        a penalty. Set it to repeat mgcv where that also counts directions that are not identified.
    intercept : bool
        Features and responses are centred, which stands for an intercept. If not, a constant is one of the
        coordinates, or there is none.
    scale : float, optional
        Known variance of the errors (1 for Poisson and binomial working responses). Default: estimated.

    Attributes
    ----------
    penalties : ndarray of shape (M, p)
        Of all terms, 0 beyond a term's own coordinates.
    units : ndarray of shape (p,)
        Powers of 2, one for each term, in whose multiples coordinates are solved for.
    identified : ndarray of shape (p,), bool
        Coordinates that the data or a penalty identify; the coefficients of the others are 0.

    Raises
    ------
    InputError
        Shapes that do not fit, fewer than n_unpenalized + 1 observations, or a scale that is not positive.
    """

    def __init__(
        self,
        gram: ArrayLike,
        cross: ArrayLike,
        total: ArrayLike,
        n: int,
        penalties: ArrayLike | Sequence[ArrayLike],
        *,
        n_unpenalized: int | None = None,
        intercept: bool = True,
        scale: float | None = None,
    ) -> None:
        self.gram = np.atleast_2d(np.asarray(gram, dtype=np.float64))
        self.cross = np.asarray(cross, dtype=np.float64)
        if self.cross.ndim == 1:
            self.cross = self.cross[:, None]
        self.total = np.atleast_1d(np.asarray(total, dtype=np.float64))
        self.n, self.scale = int(n), scale
        p = len(self.cross)
        self.penalties, self._n_penalties, sizes = _one_after_another(penalties, p)
        if self.gram.shape != (p, p) or self.penalties.shape[1] != p or self.cross.shape[1] != self.total.size:
            raise InputError(
                "gram (p, p), cross (p, K), total (K,) and penalties (M, p) must fit together, got "
                f"{self.gram.shape}, {self.cross.shape}, {self.total.shape} and {self.penalties.shape}"
            )
        if scale is not None and not (np.isfinite(scale) and scale > 0):
            raise InputError(f"scale must be positive and finite, got {scale!r}")
        # Coordinates of each term in units of their own: which columns are large is no matter of theirs.
        self.units = units_of(self.gram, sizes)
        own_penalties = self.penalties * self.units**2
        gram = self.gram if (self.units == 1).all() else self.gram * self.units * self.units[:, None]
        self.identified = identified(gram, own_penalties, floor=None if intercept else OWN_SCALE)
        # In an order of their own: what shares nothing with others stands together.
        found = np.flatnonzero(self.identified)
        order, blocks = in_blocks(_among(gram, found))
        self._order = found[order]
        unit, own_penalties = self.units[self._order], own_penalties[:, self._order]
        free = (own_penalties == 0).all(axis=0)
        self._units_of_free = float(np.log(unit[free]).sum())
        self.n_unpenalized = int(free.sum()) + intercept if n_unpenalized is None else int(n_unpenalized)
        if self.n <= self.n_unpenalized:
            raise InputError(
                f"n must be above the {self.n_unpenalized} unpenalised coefficients, got {self.n} observations"
            )
        # The criteria see identified coordinates and responses with y'y = 1: no result depends on units.
        self._size = np.where(self.total > 0, self.total, 1.0)
        normal = NormalEquations(
            _among(gram, self._order),
            self.cross[self._order] * unit[:, None] / np.sqrt(self._size),
            1.0 if intercept else OWN_SCALE,
            blocks,
        )
        dof = self.n - self.n_unpenalized
        known = None if scale is None else scale / self._size
        self._criteria = Criteria(normal, self.total / self._size, own_penalties, self.n, dof, bool(intercept), known)
        # Where the penalty weighs as much as the data: the middle of the search.
        own = normal.diagonal
        least = 1e-16 * float(own.max(initial=0.0)) or 1.0
        weights = [max(float(own[d > 0].sum()), least) / (float(d.sum()) or 1.0) for d in own_penalties]
        self._centre = np.log(np.array(weights, dtype=np.float64))

    def solve(self, smoothing_parameters: ArrayLike, response: int = 0) -> Solution:
        """Fit a response at given smoothing parameters, one for each penalty.

        Raises
        ------
        InputError
            Wrong number, or not positive and finite.

        Notes
        -----
        Where all penalties weigh less than e^-25 of the data, one factor raises them to this: the fit has come to its
        limit by then. And none weighs less than 2.2e-16 of the data, the rounding of their sums.
        """
        sp = np.asarray(smoothing_parameters, dtype=np.float64)
        if sp.shape != (len(self.penalties),) or not (np.isfinite(sp) & (sp > 0)).all():
            raise InputError(f"smoothing_parameters must be {len(self.penalties)} positive numbers, got {sp.tolist()}")
        heavier = np.log(sp) + max(float((self._centre - LOG_RANGE - np.log(sp)).min(initial=np.inf)), 0.0)
        log_sp = np.maximum(heavier, self._centre + LOG_ROUNDING)
        of = self._criteria
        diagonal = np.exp(log_sp) @ of.penalties
        which = np.array([response])
        solved = of.solved(log_sp[None], which)
        own_inverse, beta, fitted, log_det = np.zeros(of.normal.gram.shape), np.zeros(len(diagonal)), 0.0, 0.0
        for own, (own_beta, explained, own_log_det, inverse) in solved:
            beta[own], own_inverse[own, own] = own_beta[0], inverse[0]
            fitted, log_det = fitted + float(explained[0]), log_det + float(own_log_det[0])
        total, size = float(of.total[response]), float(self._size[response])
        rss = min(max(total - 2 * fitted + float(beta @ of.normal.gram @ beta), 0.0), total)
        scale = max(total - fitted, 0.0) / of.dof if of.scale is None else float(of.scale[response])
        edf = 1 - diagonal * own_inverse.diagonal()  # diag(A⁻¹G) = diag(I - A⁻¹S), with no more rounding than A⁻¹
        left = self.n - of.intercept - float(edf.sum())
        # An interpolation leaves no residuals to estimate from.
        noise_variance = rss / left if of.scale is None and left > 1e-6 * self.n else scale
        _, gradient, hessian = of.values_of(log_sp[None], which, solved)
        coefficients, all_edf, all_inverse = (
            np.zeros(shape) for shape in (len(self.gram), len(self.gram), self.gram.shape)
        )
        unit = self.units[self._order]
        coefficients[self._order], all_edf[self._order] = beta * unit * np.sqrt(size), edf
        own_inverse *= unit
        own_inverse *= unit[:, None]
        all_inverse[np.ix_(self._order, self._order)] = own_inverse
        return Solution(
            sp,
            coefficients,
            all_edf,
            rss * size,
            size * noise_variance,
            scale * size,
            float(of.restricted(np.array(total - fitted), np.array(log_det), diagonal, response))
            + self._reml_of_unit(response),
            self.n * max(rss, 1e-14) * size / max(left, 1e-9 * self.n) ** 2,
            gradient[0],
            hessian[0],
            all_inverse,
            of.intercept,
        )

    def firm(self, smoothing_parameters: FloatArray) -> bool:
        """Whether sums of products are enough to solve at these smoothing parameters: if not, some digits are lost."""
        return self._criteria.normal.firm(smoothing_parameters @ self._criteria.penalties)

    def reml(self, log_sp: FloatArray, response: int = 0) -> tuple[float, FloatArray, FloatArray]:
        """Negative restricted log-likelihood, its gradient and Hessian in log λ; an unknown scale is profiled out.

        The intercept's ``log n / 2`` and mgcv's choice of coordinates are constants and left out
        (``r_bridge.mgcv_tensor_products`` has them).
        """
        value, gradient, hessian = self._criteria.reml(np.asarray(log_sp)[None], np.array([response]))
        return float(value[0]) + self._reml_of_unit(response), gradient[0], hessian[0]

    def _reml_of_unit(self, response: int) -> float:
        """What the norm of a response, and the units of coordinates without a penalty, add to REML."""
        return self._criteria.dof * float(np.log(self._size[response])) / 2 - self._units_of_free

    def gcv(self, log_sp: FloatArray, response: int = 0) -> tuple[float, FloatArray, FloatArray]:
        """``n RSS / (n - edf)²`` with its gradient and Hessian in log λ."""
        halves, gradients, hessians = self._criteria.gcv(np.asarray(log_sp)[None], np.array([response]))
        value = float(np.exp(2 / self.n * halves[0]) * self._size[response])
        gradient, hessian = 2 / self.n * gradients[0], hessians[0]
        return value, value * gradient, value * (2 / self.n * hessian + np.outer(gradient, gradient))

    def optimize(self, criterion: str = "reml", judge: PenalizedLeastSquares | None = None) -> list[Solution]:
        """Fit every response at the smoothing parameters that minimise ``"reml"`` or ``"gcv"``.

        Parameters
        ----------
        criterion : {"reml", "gcv"}
        judge : PenalizedLeastSquares, optional
            The same responses and penalties under another law of the errors. Of several minima of REML, that one is
            taken which its REML likes best; without a judge, the lowest.

        Newton's method with exact derivatives, jointly in all log λ. REML starts from several points, the best of grids
        over the penalties of one term at a time among them, and tries from where it ends whether jumps of one log λ
        lead to a lower minimum: a guard against local minima. GCV starts where penalties and data weigh the same, as
        mgcv does, and takes the minimum it comes to: the global one is often an interpolation. A judge adds the minimum
        of REML below its own.

        Raises
        ------
        InputError
            Unknown criterion.
        """
        if criterion not in ("reml", "gcv"):
            raise InputError(f"criterion must be 'reml' or 'gcv', got {criterion!r}")
        if criterion == "gcv":
            tolerance = 1e-9 * self._criteria.dof  # both criteria are sums over the observations
            found = minima(self._criteria.gcv, [[self._centre]] * self.total.size, self._bounds(LOG_RANGE), tolerance)
        else:
            found, rehearsed = self._reml_minima()
            if judge is not None:
                own, few = (self._criteria, judge._criteria), (self._smoothest(), judge._smoothest())
                found = judged(*own, found, self._centre, self._bounds(LOG_RANGE), few, rehearsed)
        return [self.solve(np.exp(lowest), k) for k, (lowest, *_) in enumerate(found)]

    def _bounds(self, log_range: float) -> tuple[FloatArray, FloatArray]:
        return self._centre - log_range, self._centre + log_range

    def _smoothest(self) -> Criteria:
        """The criteria on the smoothest coordinates, where there are many; else those of all."""
        of, count = self._criteria, SMOOTHEST * len(self._n_penalties)
        return of.smoothest(count) if len(self._centre) and of.penalties.shape[1] > 1.5 * count else of

    def _reml_minima(self) -> tuple[list[list[FloatArray]], list[list[FloatArray]]]:
        """Minima of REML for each response, the lowest first, and where their searches started.

        Where there are many coordinates the search is rehearsed on the smoothest ones. Smoothing parameters mean the
        same there, a step costs a small part, and the minima are nearly those of all.
        """
        of, few = self._criteria, self._smoothest()
        parts = apart(self.penalties, self._n_penalties)
        starts = starts_of(few.reml_values, self.total.size, self._centre, parts, flat=1e-7 * self.n)
        jumps = len(self._centre) > GRID_OF_ALL
        if few is of:
            return _search(of, starts, self._bounds(LOG_RANGE), 1e-9 * of.dof, jumps), starts
        starts = few.nearer(starts, self._bounds(START_RANGE))
        rehearsed = _search(few, starts, self._bounds(START_RANGE), rough(of.dof), jumps)
        found = _search(of, rehearsed, self._bounds(LOG_RANGE), 1e-9 * of.dof, jumps=False)
        if not (jumps and len(parts) > 1):
            return found, rehearsed
        jumped = with_jumps(of.reml, of.beyond, found, self._bounds(LOG_RANGE), 1e-9 * of.dof, at_once=True)
        return jumped, rehearsed


def _search(
    of: Criteria, starts: list[list[FloatArray]], bounds: tuple[FloatArray, FloatArray], tolerance: float, jumps: bool
) -> list[list[FloatArray]]:
    found = minima(of.reml, starts, bounds, tolerance)
    return with_jumps(of.reml, of.beyond, found, bounds, tolerance) if jumps else found


def _among(gram: FloatArray, order: IntArray) -> FloatArray:
    """Rows and columns in an order; the matrix itself, where that is its own."""
    return gram if np.array_equal(order, np.arange(len(gram))) else gram[np.ix_(order, order)]


def _one_after_another(penalties: ArrayLike | Sequence[ArrayLike], p: int) -> tuple[FloatArray, list[int], list[int]]:
    """Penalties (M, p) of all terms, and how many each term has, and coordinates."""
    if isinstance(penalties, (list, tuple)) and not penalties:
        return np.zeros((0, p)), [], [p]
    if not (isinstance(penalties, (list, tuple)) and all(np.ndim(term) == 2 for term in penalties)):
        only = np.atleast_2d(np.asarray(penalties, dtype=np.float64))
        return only, [len(only)], [p]
    terms = [np.asarray(term, dtype=np.float64) for term in penalties]
    sizes = [term.shape[1] for term in terms]
    out = np.zeros((sum(len(term) for term in terms), sum(sizes)))
    row = column = 0
    for term in terms:
        out[row : row + len(term), column : column + term.shape[1]] = term
        row, column = row + len(term), column + term.shape[1]
    return out, [len(term) for term in terms], sizes
