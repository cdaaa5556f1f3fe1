"""A fitted surface F of ``∫ F{X(s), s, t} ds``: a fit of one term on eigenfunctions, and what is published of it.

Least squares, private mechanisms, files and the published scheme all give one; what it predicts is said by its fit of
the long form, as of any model of many terms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from fdadp._common.threads import one_blas_thread
from fdadp._common.typing import FloatArray
from fdadp.functional.fpca import Eigenbasis
from fdadp.solve.eigen.fit_to_scores import (
    ComponentsFit,
    ComponentsOfGaps,
    OnBasis,
    PointwiseVariance,
    information_of,
    r2_of,
    white_part,
)
from fdadp.solve.errors.leave_one_out_residuals import Residuals
from fdadp.solve.errors.sandwich import cluster_errors, left_out
from fdadp.solve.errors.variance_function import residual_variance
from fdadp.solve.fit.additive_fit import AdditiveFit, ByFunction
from fdadp.solve.fit.observations import Observations
from fdadp.solve.form.families_by_name import family_of
from fdadp.solve.form.training_sums import Moments
from fdadp.terms.additive_surface import Surface
from fdadp.terms.on_response_functions import OnFunctions, by_function

if TYPE_CHECKING:
    from fdadp.privacy import Ledger, Privacy


@dataclass(frozen=True, kw_only=True)
class SurfaceFit:
    """A fit of one surface.

    Attributes
    ----------
    fit : AdditiveFit
        Of the long form: the mean curve and the surface.
    term : Surface
        The surface, in the units of X.
    values : ndarray of shape (K, kx, ks)
        F at the points of its bases for each eigenfunction, about its mean over the training curves.
    basis : Eigenbasis
        Mean and eigenfunctions of Y.
    law : PointwiseVariance
        Of new responses about their means.
    beyond : mapping of str to ndarray of shape (T,), or None
        Variance of mean curves that no coefficient knows of (:class:`fdadp.solve.eigen.fit_to_scores.ComponentsFit`).
    edf : ndarray of shape (K,)
        Effective degrees of freedom, the intercept's among them.
    smoothing_parameters : ndarray of shape (K, M)
    criterion : ndarray of shape (K,)
        Value of the criterion that chose them.
    noise_variance : float
        White part of the residual variance.
    r2 : float
        Share of the variance of Y that is explained.
    inverses : ndarray of shape (K, p, p) or None
        Inverse of the penalised information of each score, where the covariance is not made of it: of curves with gaps.
    limited : bool
        Whether predictions far from the mean curve are pulled back, as in private fits.
    notes : tuple of str
    ledger : Ledger or None
        What was released.
    privacy : Privacy or None
        The guarantee; None where there is none.
    plan : Plan or None
        How a private fit shared out its budget.
    """

    fit: AdditiveFit
    term: Surface
    values: FloatArray
    basis: Eigenbasis
    law: PointwiseVariance
    beyond: Mapping[str, FloatArray] | None = None
    edf: FloatArray
    smoothing_parameters: FloatArray
    criterion: FloatArray
    noise_variance: float
    r2: float
    inverses: FloatArray | None = None
    limited: bool = False
    notes: tuple[str, ...] = ()
    ledger: Ledger | None = None
    privacy: Privacy | None = None
    plan: object = None

    @classmethod
    def of(cls, found: ComponentsFit) -> SurfaceFit:
        """That of one term fitted to scores; of curves with gaps see :func:`surface_of_gaps`."""
        scores = found.scores
        sums, left = scores.sums, scores.left
        (term,) = sums.designs
        assert isinstance(term, Surface)
        slopes = np.zeros((term.kept.size, len(scores.solutions)))
        slopes[term.kept] = scores.coefficients
        return cls(
            fit=found.fit,
            term=term,
            values=term.about_mean(term.values(slopes)),
            basis=found.basis,
            law=PointwiseVariance(sums.t, left.variance - left.omitted, inverse_dof=1 / left.degrees),
            beyond=found.beyond,
            edf=np.array([one.edf_total for one in scores.solutions]),
            smoothing_parameters=np.stack([one.smoothing_parameters for one in scores.solutions]),
            criterion=scores.criteria,
            noise_variance=white_part(left, sums.t),
            r2=r2_of(sums, left, found.basis),
            notes=term.notes(),
        )

    @property
    def by_function(self) -> ByFunction:
        """Covariance of coefficients without the scale."""
        assert isinstance(self.fit.spread, ByFunction)
        return self.fit.spread

    @property
    def slopes(self) -> FloatArray:
        """Coefficients of the features, shape (p, K)."""
        return self.fit.coefficients[len(self.by_function.rest) :].reshape(-1, len(self.values))

    @property
    def unidentified(self) -> list[str]:
        """Integrals of X that the training curves do not identify."""
        identified = self.fit.identified[len(self.by_function.rest) :].reshape(-1, len(self.values))
        return self.term.directions(np.flatnonzero(~identified.all(axis=1)).tolist())

    def with_values(self, values: FloatArray, variances: FloatArray) -> SurfaceFit:
        """The fit with other values of F, each farther from the truth by a variance of its function's (K,)."""
        held, c = self.by_function, len(self.by_function.rest)
        change = self.term.coefficients(values)[self.term.kept] - self.slopes
        coefficients = self.fit.coefficients.copy()
        coefficients[:c] -= held.turn @ (held.centre @ change)
        coefficients[c:] += change.ravel()
        scale = self.fit.sigma2
        blocks = held.blocks * (held.sizes * scale)[:, None, None]
        blocks[:, 1:, 1:] += variances[:, None, None] * np.eye(held.centre.size)  # the coordinates are orthonormal
        spread = replace(held, blocks=blocks, sizes=np.ones(len(blocks)), rest=held.rest * scale)
        fit = replace(self.fit, coefficients=coefficients, spread=spread, sigma2=1.0)
        return replace(self, fit=fit, values=values)


# The surface of an additive model of curves with gaps: a fit of the observed points, with a block for each function.
#
# Curves are left out one at a time for standard errors, and for the variance of responses. Of the covariance of
# coefficients the blocks within eigenfunctions are kept. What lies between two of them says where along t a mean curve
# is known best, and nothing of how well it is known on average.


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
