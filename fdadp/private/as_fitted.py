"""A private fit as any other: splines in the units of X, eigenfunctions of Y, from what was released."""

from __future__ import annotations

import math

import numpy as np

from fdadp.functional.fpca import Eigenbasis
from fdadp.functional.margins import Margin
from fdadp.private.intervals import PrivateFit
from fdadp.private.plan import Plan
from fdadp.private.prior import HALF_WIDTH, WhiteDesign
from fdadp.responses.functional import FunctionalResponse
from fdadp.solve.fitted import Fitted, Residual
from fdadp.terms.additive import AdditiveTerm

__all__ = ["as_fitted"]

TINY = 1e-300


def as_fitted(fit: PrivateFit, design: WhiteDesign, plan: Plan, *, quadrature: str = "trapezoid") -> Fitted:
    """Make the fitted model of a private fit; post-processing, which costs no privacy.

    Parameters
    ----------
    fit : PrivateFit
    design : WhiteDesign
        The coordinates that it was made in.
    plan : Plan
    quadrature : str
        Rule for the integral over s, by which new curves are predicted.
    """
    prior, s = design.prior, design.s
    length = s[-1] - s[0]  # the private quadrature weights sum to one
    low, high = fit.location - HALF_WIDTH * fit.scale, fit.location + HALF_WIDTH * fit.scale
    term = AdditiveTerm(
        Margin.pspline(low, high, prior.n_basis_x, margin=0.0),
        Margin.pspline(s[0], s[-1], prior.n_basis_s, margin=0.0),
        s,
        (low, high),
        quadrature,
        continuation="constant",
        mean_x_basis=design.mean_x_basis,
    )
    k, d = plan.n_outputs, plan.n_features
    whitening = design.whitening[:, : d - 1]
    # Eigenfunctions of Y after the fact: of the explained covariance and the residual one.
    explained = fit.regression.coefficients.T @ fit.regression.second_moment @ fit.regression.coefficients
    explained -= np.outer(fit.regression.coefficients[0], fit.regression.coefficients[0])
    values, axes = np.linalg.eigh(explained + fit.residual_covariance)
    values, axes = np.maximum(values[::-1], 0.0), axes[:, ::-1]
    functions = (design.response[:, :k] @ axes).T
    signs = np.where(functions[np.arange(k), np.abs(functions).argmax(axis=1)] < 0, -1.0, 1.0)
    functions, axes = functions * signs[:, None], axes * signs
    t_length = design.t[-1] - design.t[0]
    total = values.sum() + fit.left_over
    mean = fit.y_location + design.response @ fit.mean + design.response[:, :k] @ fit.regression.coefficients[0]
    basis = Eigenbasis(
        grid=design.t,
        weights=design.t_weights * t_length,
        mean=mean,
        functions=functions / math.sqrt(t_length),
        values=values * t_length,
        noise_variance=fit.left_over,
        explained_ratio=values / total,
    )
    raw = (whitening / length @ fit.regression.coefficients[1:]) @ axes * math.sqrt(t_length)  # (p, K)
    to_values = np.kron(np.linalg.inv(term.x.to_raw), np.linalg.inv(term.s.to_raw))
    values_of_surface = (to_values @ raw).T.reshape((k, prior.n_basis_x, prior.n_basis_s))
    unexplained = float(np.trace(fit.residual_covariance)) + fit.left_over
    return Fitted(
        terms=(term,),
        coefficients=(term.centred(values_of_surface, design.s_weights),),
        feature_mean=design.centre * length,
        rotation=whitening / length,
        covariance=fit.regression.covariance,
        unit_variance=np.ones(k),
        # Intervals: on the response functions, in which the posterior covariances are.
        response=FunctionalResponse(basis, design.response[:, :k].T.copy()),
        residual=Residual(
            fit.residual_variance,
            fit.left_over,
            design.response**2 @ fit.regression.mean_variance,
            1 - unexplained / max(float(np.trace(explained)) + unexplained, TINY),
            *fit.calibration,
        ),
        edf=(axes**2).T @ fit.regression.edf,
        smoothing_parameters=np.full((k, 2), np.nan),
        criterion=np.full(k, np.nan),
        n=round(plan.n),
        limited=True,
        plan=plan,
    )
