"""FACE: fast covariance estimation by sandwich smoothing with P-splines, from moments alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.linalg import eigh

from fdadp._common.argument_checks import whole
from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError
from fdadp.functional.fpca.eigenbasis import (
    Eigenbasis,
    check_covariance,
    check_moments,
    grid_weights,
    leading,
    minimum_near,
    oriented,
)
from fdadp.functional.splines.bsplines import BSplines
from fdadp.functional.tables.curve_sample import as_grid

_DEGREE = 3
_ORDER = 2
_LOG_LAMBDA = np.linspace(-20, 20, 100)


@dataclass(frozen=True)
class FaceSmoother:
    """The sandwich smoother on one grid, diagonalised: ``S = Q diag(1/(1 + λ s)) Q'``.

    Attributes
    ----------
    grid : ndarray of shape (T,)
    basis : ndarray of shape (T, c)
        Q: the B-splines turned so that Q'Q = I and the penalty is diagonal (``B A0`` in the paper).
    penalty : ndarray of shape (c,)
        s >= 0, decreasing; the last two are 0.

    Examples
    --------
    >>> import numpy as np
    >>> from fdadp.functional.fpca import FaceSmoother
    >>> smoother = FaceSmoother.on(np.linspace(0, 1, 101), n_knots=20)
    >>> smoother.basis.shape
    (101, 23)
    """

    grid: FloatArray
    basis: FloatArray
    penalty: FloatArray

    @classmethod
    def on(cls, grid: FloatArray, n_knots: int | None = None) -> FaceSmoother:
        """Set up the smoother: cubic B-splines on `n_knots` even intervals, second-difference penalty.

        Raises
        ------
        InputError
            A grid of fewer than 5 points, or too many knots for it.
        """
        size = grid.size
        if size < 5:
            raise InputError(f"grid must have at least 5 points for FACE, got {size}; use method='dense'")
        knots = min(35, size // 3) if n_knots is None else n_knots
        return _diagonalised(tuple(grid.tolist()), whole(knots, "n_knots", most=size - _DEGREE - 1))

    def smooth(
        self, projected: FloatArray, total: float, *, smoothing: float | None = None, refine: bool = False
    ) -> tuple[FloatArray, float, float]:
        """Smooth a covariance C given as ``Q'CQ`` (c, c) and its trace.

        Returns
        -------
        projected : ndarray of shape (c, c)
            ``Q'C̃Q`` of the smoothed covariance ``C̃ = S C S``.
        noise_variance : float
            ``max(0, tr C − tr C̃)/T``.
        smoothing : float
            λ: as given, or that of least GCV on refund's 100 points ``exp(-20 ... 20)``, and with `refine`
            of the least nearby.
        """
        if smoothing is None:
            smoothing = self._select(np.diag(projected), total, refine)
        elif not (np.isfinite(smoothing) and smoothing >= 0):
            raise InputError(f"smoothing must be a finite number of at least 0, got {smoothing!r}")
        shrink = 1 / (1 + smoothing * self.penalty)
        smoothed = projected * shrink[:, None] * shrink
        noise = max((total - float(np.trace(smoothed))) / self.grid.size, 0.0)
        return smoothed, noise, smoothing

    def _select(self, power: FloatArray, total: float, refine: bool) -> float:
        outside = total - float(power.sum())  # what no spline can follow

        def gcv(log_lambda: FloatArray | float) -> FloatArray:
            scaled = np.exp(np.atleast_1d(np.asarray(log_lambda))) * self.penalty[:, None]
            residual = power @ (scaled / (1 + scaled)) ** 2 + outside
            trace = (1 / (1 + scaled)).sum(axis=0)
            return np.asarray(residual / (1 - trace / self.grid.size) ** 2)

        if refine:
            return float(np.exp(minimum_near(lambda x: float(gcv(x)[0]), _LOG_LAMBDA, xatol=1e-5)))
        return float(np.exp(_LOG_LAMBDA[int(gcv(_LOG_LAMBDA).argmin())]))

    def eigenbasis(
        self,
        smoothed: FloatArray,
        noise: float,
        mean: FloatArray,
        *,
        n_components: float,
        max_components: int | None,
        quadrature: str,
    ) -> Eigenbasis:
        """Eigenbasis of the smoothed covariance, as :meth:`smooth` gives it."""
        weights = grid_weights(self.grid, quadrature)
        # Orthonormal coordinates under the weights: Q E g^{-1/2}, with Q'WQ = E g E'.
        gram, turn = eigh((self.basis * weights[:, None]).T @ self.basis)
        keep = gram > 1e-12 * gram[-1]
        half = turn[:, keep] * np.sqrt(gram[keep])
        values, vectors, ratio = leading(half.T @ smoothed @ half, n_components, max_components)
        functions = self.basis @ ((turn[:, keep] / np.sqrt(gram[keep])) @ vectors)
        return Eigenbasis(self.grid, weights, mean, oriented(functions.T), values, noise, ratio)


@lru_cache(maxsize=8)
def _diagonalised(points: tuple[float, ...], knots: int) -> FaceSmoother:
    """The smoother; remembered because every fit smooths two covariances on its grid, that of Y and of what is left."""
    grid = np.array(points)
    splines = BSplines.uniform(points[0], points[-1], knots + _DEGREE, margin=0.0)
    design = splines.design(grid)
    values, vectors = eigh(design.T @ design)
    if values[0] <= 1e-7:  # a gap in an uneven grid; refund's remedy
        values = values + 1e-6
    root = (vectors / np.sqrt(values)) @ vectors.T
    penalty, turn = eigh(root @ splines.difference_penalty(_ORDER) @ root)
    penalty = penalty[::-1].copy()
    penalty[-_ORDER:] = 0.0
    smoother = FaceSmoother(grid, design @ (root @ turn[:, ::-1]), penalty)
    for shared in (smoother.grid, smoother.basis, smoother.penalty):
        shared.flags.writeable = False
    return smoother


def face_eigenbasis(
    mean: ArrayLike,
    covariance: ArrayLike,
    grid: ArrayLike | None = None,
    *,
    n_components: float = 0.95,
    n_knots: int | None = None,
    max_components: int | None = None,
    smoothing: float | None = None,
    refine: bool = False,
    quadrature: str = "trapezoid",
) -> Eigenbasis:
    r"""Eigenbasis of the FACE-smoothed covariance, from moments.

    GCV needs the covariance only: the sums of squares of the transformed data are
    ``rowSums(Ỹ²) = n diag(Q'CQ)``, and n cancels.

    Parameters
    ----------
    mean : array_like of shape (T,)
    covariance : array_like of shape (T, T)
        With any divisor (refund: n); eigenvalues and noise variance have the same.
    grid : array_like of shape (T,), optional
        T >= 5 points, default even on [0, 1]. For shorter grids use :func:`~fdadp.functional.fpca.dense_eigenbasis`.
    n_components : int or float
        Number of components, or share of variance in (0, 1].
    n_knots : int, optional
        Intervals between knots, default ``min(35, T // 3)``; 35 is refund's default.
    max_components : int, optional
        Cap on the number found by share of variance.
    smoothing : float, optional
        λ; default by GCV on refund's grid of 100 points.
    refine : bool
        Look for the least GCV between the points of that grid too.
    quadrature : {"trapezoid", "equal", "simpson", "riemann"}
        Rule of the inner products; ``"equal"`` is refund's Euclidean norm.

    Returns
    -------
    Eigenbasis
        refund's unit vectors are ``functions * sqrt(weights)``; on [0, 1] its eigenvalues are T times larger
        and its scores ``sqrt(T)`` times.

    Raises
    ------
    InputError
        Shapes that do not fit, values that are not finite, a grid too short, or more components than there are.

    Notes
    -----
    The mean is taken as given; refund smooths the mean curve by a smoothing spline, so with white noise its mean is
    smoother than the mean of the curves that :class:`FPCA` hands over. On an uneven grid refund weighs all points the
    same (``"equal"``), so that where points lie close a curve counts more; ``"trapezoid"`` is the integral.

    References
    ----------
    Xiao, Zipunnikov, Ruppert & Crainiceanu (2016), Fast covariance estimation for high-dimensional functional
    data, Statistics and Computing 26, doi:10.1007/s11222-014-9485-x; ``refund::fpca.face`` 0.1-38.

    Examples
    --------
    >>> import numpy as np
    >>> t = np.linspace(0, 1, 60)
    >>> wave = np.sqrt(2) * np.sin(2 * np.pi * t)
    >>> basis = face_eigenbasis(np.zeros(60), np.outer(wave, wave) + np.eye(60), t, n_components=1)
    >>> basis.functions.shape, round(basis.noise_variance, 1)
    ((1, 60), 1.0)
    """
    mu, cov, points = check_moments(mean, covariance, grid)
    smoother = FaceSmoother.on(points, n_knots)
    projected = smoother.basis.T @ cov @ smoother.basis
    smoothed, noise, _ = smoother.smooth(projected, float(np.trace(cov)), smoothing=smoothing, refine=refine)
    size: dict[str, Any] = {"n_components": n_components, "max_components": max_components}
    return smoother.eigenbasis(smoothed, noise, mu, quadrature=quadrature, **size)


def face_smooth(
    covariance: ArrayLike,
    grid: ArrayLike | None = None,
    *,
    n_knots: int | None = None,
    smoothing: float | None = None,
    refine: bool = False,
) -> tuple[FloatArray, float]:
    """Split a covariance into a smooth part and white noise, by FACE.

    Parameters
    ----------
    covariance : array_like of shape (T, T)
    grid, n_knots, smoothing, refine
        As in :func:`~fdadp.functional.fpca.face_eigenbasis`.

    Returns
    -------
    smooth : ndarray of shape (T, T)
        Positive semi-definite if `covariance` is.
    noise_variance : float

    Raises
    ------
    InputError
        As in :func:`~fdadp.functional.fpca.face_eigenbasis`.

    Examples
    --------
    >>> import numpy as np
    >>> from fdadp.functional.fpca import face_smooth
    >>> curves = np.random.default_rng(0).normal(size=(50, 101)).cumsum(axis=1)
    >>> smooth, smoothing = face_smooth(np.cov(curves.T), n_knots=20)
    >>> smooth.shape
    (101, 101)
    """
    cov = check_covariance(covariance)
    smoother = FaceSmoother.on(as_grid(grid, len(cov)), n_knots)
    projected = smoother.basis.T @ cov @ smoother.basis
    smoothed, noise, _ = smoother.smooth(projected, float(np.trace(cov)), smoothing=smoothing, refine=refine)
    return np.asarray(smoother.basis @ smoothed @ smoother.basis.T), noise
