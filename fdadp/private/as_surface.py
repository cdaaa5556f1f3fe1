"""A private fit of one surface as any other: splines in the units of X, eigenfunctions of Y, from what was released."""

from __future__ import annotations

import math

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.functional.fpca import Eigenbasis
from fdadp.functional.quadrature import quadrature_weights
from fdadp.private.as_terms import TINY, as_terms, released_variance, unexplained_variance
from fdadp.private.columns import CurvesColumn
from fdadp.private.design import PrivateDesign
from fdadp.private.intervals import PrivateFit
from fdadp.private.plan import Plan
from fdadp.solve.surface_fit import SurfaceFit


def as_surface(fit: PrivateFit, design: PrivateDesign, plan: Plan) -> SurfaceFit:
    """Make the fitted surface of a private fit; post-processing, which costs no privacy.

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
    k = plan.n_outputs
    whitening = term.unturned(white.whitening[:, : plan.n_features - 1] / length)
    basis, axes, explained = _eigenbasis(fit, design, k)
    raw = (whitening @ fit.regression.coefficients[1:]) @ axes * math.sqrt(design.t[-1] - design.t[0])  # (p, K)
    return SurfaceFit(
        fit=as_terms(fit, design, plan),
        term=term,
        values=term.about_mean(term.values(raw), quadrature_weights(design.unit_s)),
        basis=basis,
        law=released_variance(fit, design),
        edf=(axes**2).T @ fit.regression.edf,
        smoothing_parameters=np.full((k, len(term.penalties)), np.nan),
        criterion=np.full(k, np.nan),
        noise_variance=fit.outside_variance,
        r2=1 - unexplained_variance(fit) / max(explained + unexplained_variance(fit), TINY),
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
