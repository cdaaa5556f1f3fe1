"""mgcv through R: the additive function-on-function core fitted by mgcv itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fdadp._common.typing import ArrayLike, CurveData, FloatArray
from fdadp.errors import InputError
from fdadp.functional.quadrature import quadrature_weights
from fdadp.functional.tables.curve_inputs import as_curves, check_finite
from r_bridge._rpy2 import Handle, call

__all__ = ["GamFit", "gam_linear_functional"]

METHODS = ("REML", "ML", "GCV.Cp")


@dataclass(frozen=True)
class GamFit:
    """``gam(y ~ te(X, S, by = L))`` as plain arrays.

    Attributes
    ----------
    fitted : ndarray of shape (n,)
    coefficients : ndarray of shape (p,)
        mgcv's, intercept first; they depend on mgcv's choice of coordinates.
    values : ndarray of shape (k_x, k_s)
        F at ``points_x`` and ``points_s``; identified up to a function of s alone.
    smoothing_parameters : ndarray of shape (2,)
    edf_total, noise_variance, score : float
        Score: negative restricted log-likelihood or GCV, as ``method`` says.
    reml_scale : float
        REML's own estimate of the variance; NaN with GCV.
    covariance : ndarray of shape (p, p)
        mgcv's ``Vp``.
    packed : bool
        Whether mgcv set the basis up on unique (x, s) pairs.
    n_dropped : int
        Coefficients dropped for lack of rank.
    version : str
        Of mgcv.
    """

    fitted: FloatArray
    coefficients: FloatArray
    values: FloatArray
    points_x: FloatArray
    points_s: FloatArray
    smoothing_parameters: FloatArray
    edf: FloatArray
    edf_total: float
    noise_variance: float
    score: float
    method: str
    reml_scale: float
    covariance: FloatArray
    penalty_scales: FloatArray
    packed: bool
    n_dropped: int
    version: str
    grid: FloatArray
    _handle: Handle = field(repr=False, compare=False)

    def predict(self, X: CurveData) -> tuple[FloatArray, FloatArray]:
        """Predictions of new curves and their standard errors, each of shape (n,).

        Parameters
        ----------
        X : FDataGrid, DataFrame or array_like of shape (n, S)
            On the training grid.

        Raises
        ------
        InputError
            Another number of points.
        RError
            R's own.
        """
        curves = as_curves(X, name="X", default=self.grid)
        if curves.grid.size != self.grid.size:
            raise InputError(f"X must have {self.grid.size} points as in the fit, got {curves.grid.size}")
        answer = call("gam_core_predict", "mgcv", key=self._handle.key, X=curves.values)
        return answer["fit"], answer["se"]


def gam_linear_functional(
    X: CurveData,
    y: ArrayLike,
    s: ArrayLike | None = None,
    *,
    k: tuple[int, int] = (7, 7),
    degree: int = 3,
    penalty_order: int = 2,
    method: str = "REML",
    smoothing_parameters: ArrayLike | None = None,
    quadrature: str = "trapezoid",
    period: float | None = None,
) -> GamFit:
    """Fit ``y_i = a + ∫ F{X_i(s), s} ds`` by ``mgcv::gam``.

    The call is ``gam(y ~ te(X, S, by = L, bs = "ps", k = k, m = list(m, m)), method = method)`` with matrices X, S (the
    grid in each row) and L (quadrature weights in each row): what fdadp fits for each component of Y.

    Parameters
    ----------
    X : FDataGrid, DataFrame or array_like of shape (n, S)
    y : array_like of shape (n,)
    s : array_like of shape (S,), optional
        Grid of a plain array; default even on [0, 1].
    k : (int, int)
        Basis sizes over x and s.
    degree, penalty_order : int
        Of the P-splines; mgcv's ``m = c(degree - 1, penalty_order)``.
    method : {"REML", "ML", "GCV.Cp"}
    smoothing_parameters : array_like of shape (2,), optional
        Fixed instead of chosen.
    quadrature : str
        See :func:`fdadp.functional.quadrature.quadrature_weights`.
    period : float, optional
        Makes the margin over s cyclic: ``bs = c("ps", "cc")`` with even knots, k over s counted without the last one,
        which is the first again.

    Raises
    ------
    RBridgeUnavailable
        No R, rpy2 or mgcv.
    RError
        R's own; mgcv before 1.9 refuses more coefficients than curves.
    InputError
        Curves and y that do not fit together, or an unknown method.

    Examples
    --------
    >>> from fdadp import simulate_affr
    >>> from r_bridge.mgcv import gam_linear_functional
    >>> data = simulate_affr(scenario=1, n=100, seed=0)
    >>> fit = gam_linear_functional(data.X, data.Y.data_matrix[:, 25, 0])  # doctest: +SKIP
    >>> fit.edf_total, fit.predict(data.X[:3])  # doctest: +SKIP
    """
    curves = as_curves(X, s, name="X")
    check_finite(curves, "X")
    response = np.asarray(y, dtype=np.float64)
    if response.shape != (len(curves),) or not np.isfinite(response).all():
        raise InputError(f"y must be {len(curves)} finite numbers, one per curve, got shape {response.shape}")
    if method not in METHODS:
        raise InputError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    answer = call(
        "gam_core",
        "mgcv",
        y=response,
        X=curves.values,
        s=curves.grid,
        weights=quadrature_weights(curves.grid, quadrature),
        k=[int(v) for v in k],
        m=int(penalty_order),
        degree=int(degree),
        method=method,
        sp=None if smoothing_parameters is None else np.asarray(smoothing_parameters, dtype=np.float64),
        period=None if period is None else float(period),
    )
    arrays = ("fitted", "coefficients", "values", "points_x", "points_s", "smoothing_parameters", "edf", "covariance")
    found: dict[str, Any] = {name: answer[name] for name in (*arrays, "penalty_scales")}
    found |= {name: float(answer[name][0]) for name in ("edf_total", "noise_variance", "score", "reml_scale")}
    return GamFit(
        **found,
        method=str(answer["method"][0]),
        packed=bool(answer["packed"][0]),
        n_dropped=int(answer["n_dropped"][0]),
        version=str(answer["version"][0]),
        grid=curves.grid,
        _handle=Handle(str(answer["key"][0])),
    )
