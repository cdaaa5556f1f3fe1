"""A private fit as any other: splines in the units of X, eigenfunctions of Y, from what was released."""

from __future__ import annotations

import math

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.functional.fpca import Eigenbasis
from fdadp.functional.quadrature import quadrature_weights
from fdadp.private.columns import CurvesColumn
from fdadp.private.design import PrivateDesign
from fdadp.private.intervals import PrivateFit
from fdadp.private.plan import Plan
from fdadp.responses.functional import FunctionalResponse
from fdadp.solve.fitted import Fitted
from fdadp.solve.residuals import Residual

__all__ = ["as_fitted"]

TINY = 1e-300


def as_fitted(fit: PrivateFit, design: PrivateDesign, plan: Plan) -> Fitted:
    """Make the fitted model of a private fit; post-processing, which costs no privacy.

    Parameters
    ----------
    fit : PrivateFit
    design : PrivateDesign
        The coordinates that it was made in.
    plan : Plan
    """
    white = design.only
    (column,) = fit.columns
    assert isinstance(column, CurvesColumn)
    term, length = white.in_units(column, design.s), design.s[-1] - design.s[0]  # weights on [0, 1] sum to one
    k, d = plan.n_outputs, plan.n_features
    whitening = term.unturned(white.whitening[:, : d - 1] / length)
    basis, axes, explained = _eigenbasis(fit, design, k)
    raw = (whitening @ fit.regression.coefficients[1:]) @ axes * math.sqrt(design.t[-1] - design.t[0])  # (p, K)
    unexplained = float(np.trace(fit.residual_covariance)) + fit.outside_variance
    return Fitted(
        term=term,
        values=term.about_mean(term.values(raw), quadrature_weights(design.unit_s)),
        feature_mean=term.turned(white.centre[None] * length)[0],
        rotation=whitening,
        covariance=fit.regression.covariance,
        unit_variance=np.ones(k),
        # Intervals: on the response functions, in which the posterior covariances are.
        response=FunctionalResponse(basis, design.response[:, :k].T.copy()),
        residual=Residual(
            fit.residual_variance,
            fit.outside_variance,
            design.response**2 @ fit.regression.mean_variance,
            1 - unexplained / max(explained + unexplained, TINY),
            *fit.calibration,
        ),
        edf=(axes**2).T @ fit.regression.edf,
        smoothing_parameters=np.full((k, len(term.penalties)), np.nan),
        criterion=np.full(k, np.nan),
        n=round(plan.n),
        limited=True,
        plan=plan,
    )


def _eigenbasis(fit: PrivateFit, design: PrivateDesign, k: int) -> tuple[Eigenbasis, FloatArray, float]:
    """Eigenfunctions of Y after the fact: of its explained and its residual covariance together.

    Returns
    -------
    basis : Eigenbasis
    axes : ndarray of shape (K, K)
        Its functions on the first K response functions.
    explained : float
        Explained variance.
    """
    regression = fit.regression
    explained = regression.coefficients.T @ regression.second_moment @ regression.coefficients
    explained -= np.outer(regression.coefficients[0], regression.coefficients[0])
    values, axes = np.linalg.eigh(explained + fit.residual_covariance)
    values, axes = np.maximum(values[::-1], 0.0), axes[:, ::-1]
    functions = (design.response[:, :k] @ axes).T
    signs = np.where(functions[np.arange(k), np.abs(functions).argmax(axis=1)] < 0, -1.0, 1.0)
    functions, axes = functions * signs[:, None], axes * signs
    t_length = design.t[-1] - design.t[0]
    total = values.sum() + fit.outside_variance
    mean = fit.y_location + design.response @ fit.mean + design.response[:, :k] @ regression.coefficients[0]
    basis = Eigenbasis(
        grid=design.t,
        weights=design.t_weights * t_length,
        mean=mean,
        functions=functions / math.sqrt(t_length),
        values=values * t_length,
        noise_variance=fit.outside_variance,
        explained_ratio=values / total,
    )
    return basis, axes, float(np.trace(explained))
