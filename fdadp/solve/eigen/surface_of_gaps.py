"""The surface of an additive model of curves with gaps: a fit of the observed points, with a block for each function.

Curves are left out one at a time for standard errors, and for the variance of responses. Of the covariance of
coefficients the blocks within eigenfunctions are kept. What lies between two of them says where along t a mean curve is
known best, and nothing of how well it is known on average.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fdadp._common.threads import one_blas_thread
from fdadp._common.typing import FloatArray
from fdadp.solve.eigen.components_of_gaps import ComponentsOfGaps
from fdadp.solve.eigen.surface_fit import SurfaceFit
from fdadp.solve.errors.leave_one_out import Residuals
from fdadp.solve.errors.residual_variance import residual_variance
from fdadp.solve.errors.sandwich import cluster_errors, left_out
from fdadp.solve.fit.observations import Observations
from fdadp.solve.fit.residuals import PointwiseVariance
from fdadp.solve.form.family import family_of
from fdadp.solve.form.on_basis import OnBasis, information_of
from fdadp.solve.linear.block_diagonal import ByFunction
from fdadp.solve.linear.moments import Moments
from fdadp.terms.on_functions import OnFunctions, by_function
from fdadp.terms.surface import Surface


def surface_of_gaps(found: ComponentsOfGaps, observed: Observations) -> SurfaceFit:
    """Make the surface of a fit of one term to the observed points of curves.

    Parameters
    ----------
    found : ComponentsOfGaps
    observed : Observations
        The responses on a grid, NaN where they were not observed.
    """
    fit, basis, of, k = found.fit, found.basis, OnBasis.of(found.basis), found.basis.n_components
    terms = [design for design in fit.form.designs if isinstance(design, OnFunctions)]
    term, weights, c, t = terms[-1].of, terms[-1].weights, len(of.back), basis.grid
    assert isinstance(term, Surface)
    with one_blas_thread():
        features = Moments.of(terms[-1].features(observed.records))
        eta = observed.predictor(fit.form, fit.coefficients)
        working = found.working
        residuals = Residuals.of(observed, eta, family_of("gaussian"), working.precision, working.learned)
        changes = left_out(fit.form, fit.inverse, residuals)
        covariance = cluster_errors(fit, changes).covariance
        law = _law(fit.mean_variance(covariance), observed, residuals.without(fit.form, changes), t)
        inverse, spread = (_by_blocks(m, features, of, weights) for m in (fit.inverse, covariance / fit.sigma2))
    edf = 1 + fit.edf[c:].reshape(-1, k).sum(axis=0)
    slopes = np.zeros((term.kept.size, k))
    slopes[term.kept] = fit.coefficients[c:].reshape(-1, k)
    information = information_of(features, np.r_[weights, np.ones(c - k)], of.back, k)
    left, total = np.nansum((observed.y - eta) ** 2), np.nansum((observed.y - basis.mean) ** 2)
    return SurfaceFit(
        fit=replace(fit, spread=spread, information=information, on_eigenfunctions=True),
        term=term,
        values=term.about_mean(term.values(slopes)),
        basis=basis,
        law=replace(law, inverse_dof=1 / max(fit.n - float(edf.mean()), 1.0)),
        beyond=dict.fromkeys(("iid", "curve"), found.beyond),
        edf=edf,
        smoothing_parameters=by_function(terms, fit.smoothing_parameters),
        criterion=np.full(k, fit.criterion),
        noise_variance=found.errors.white,
        r2=float(1 - left / total),
        inverses=inverse.blocks[:, 1:, 1:],
        notes=term.notes(),
    )


def _law(of_means: float, observed: Observations, alone: FloatArray, t: FloatArray) -> PointwiseVariance:
    """Variance along the response of residuals of curves left out, less the mean variance of their means."""
    record, at = np.nonzero(~np.isnan(observed.y))
    found = residual_variance(record, t[at], alone[record, at], None).variance(np.zeros((1, 0)), t)[0]
    return PointwiseVariance(t, np.maximum(found - of_means, found / 2))


def _by_blocks(matrix: FloatArray, features: Moments, of: OnBasis, weights: FloatArray) -> ByFunction:
    """What is within each function of a covariance of coefficients; constants are taken at means of the features."""
    ahead, mean, c, k = np.asarray(np.linalg.inv(of.back)), features.mean, len(of.back), len(weights)
    turn = np.eye(len(matrix))
    turn[:c, :c] = of.back
    for i in range(k):
        turn[i, c + i :: k] = mean
    turned = turn @ matrix @ turn.T
    which = [np.r_[i, c + i : len(turned) : k] for i in range(k)]
    blocks = np.stack([turned[np.ix_(own, own)] * weight for own, weight in zip(which, weights, strict=True)])
    outside = ahead[:, k:]
    rest = outside @ turned[k:c, k:c] @ outside.T
    return ByFunction(blocks=blocks, sizes=1 / weights, centre=mean, turn=ahead[:, :k], rest=rest)
