"""Regressions on eigenfunctions of curves that were observed at some of their points only.

Scores of such curves are not known. What an FPCA lets expect of them is pulled towards the mean, so that a regression
of expected scores is attenuated and takes for known what is not. But the observed points follow a linear model,
``Y_i(t_j) = μ(t_j) + Σ_k f_i'θ_k φ_k(t_j) + e_i(t_j)``, and need no scores: it is fitted by generalised least squares
of the long form, under a smooth covariance of the errors.

Eigenfunctions of the products of few points miss more of what covariates explain than its standard error. So a first
regression, of few features on splines along the response, says what is explained; eigenfunctions are those of the
covariance of that and of what is left (docs/decisions/0005-gaps-of-y-on-eigenfunctions.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fdadp._common.threads import one_blas_thread
from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.functional.fpca import Eigenbasis
from fdadp.functional.splines.margins import SmoothMargin
from fdadp.responses import Functional
from fdadp.solve.covariance.directions import Directions
from fdadp.solve.covariance.smooth_errors import SmoothErrors, smooth_errors
from fdadp.solve.errors.gls import ErrorCovariance, fit_along_curves
from fdadp.solve.fit.additive_fit import AdditiveFit
from fdadp.solve.fit.observations import Observations
from fdadp.solve.form.long_form import LongForm
from fdadp.solve.form.on_basis import OnBasis, given_smoothing, in_order, on_functions
from fdadp.terms.intercept import ones
from fdadp.terms.spec import TermDesign

ALONG = 10
"""Cubic B-splines along the response of the first regression."""

MOST = 40
"""Directions of the features in it, at most, and at most a fifth of the curves."""


@dataclass(frozen=True)
class ComponentsOfGaps:
    """A fit of observed points on eigenfunctions.

    Attributes
    ----------
    fit : AdditiveFit
        Of the long form of all terms on the eigenfunctions, the mean curve among them.
    basis : Eigenbasis
        Mean and K eigenfunctions of the responses.
    working : ErrorCovariance
        What was believed of the errors along curves.
    errors : SmoothErrors
        About the first regression.
    beyond : ndarray of shape (T,)
        Variance over the training rows of what the first regression explains outside the eigenfunctions.
    """

    fit: AdditiveFit
    basis: Eigenbasis
    working: ErrorCovariance
    errors: SmoothErrors
    beyond: FloatArray


def fit_components_of_gaps(
    designs: Sequence[TermDesign],
    observed: Observations,
    t: FloatArray,
    response: Functional,
    smoothing: str | ArrayLike,
    n_unpenalized: int | None = None,
) -> ComponentsOfGaps:
    """Fit terms to the observed points of curves.

    Parameters
    ----------
    designs : sequence of TermDesign
        Of a response that is a number; a constant is added.
    observed : Observations
        Without weights.
    t : ndarray of shape (T,)
        Grid of the eigenfunctions.
    response : Functional
        Which eigenfunctions.
    smoothing : {"reml", "gcv"} or array_like of shape (M,) or (K, M)
        As of :func:`fdadp.solve.eigen.components.fit_components`.
    n_unpenalized : int, optional
        Dimension that REML counts as unpenalised.

    Raises
    ------
    InputError
        Smoothing parameters of another shape, too few curves or points.

    References
    ----------
    James, Hastie & Sugar (2000), doi:10.1093/biomet/87.3.587; Goldsmith, Greven & Crainiceanu (2013), Corrected
    confidence bands for functional data using principal components, doi:10.1111/j.1541-0420.2012.01808.x, on what
    eigenfunctions that are taken as known cost.
    """
    with one_blas_thread():
        designs = [design.learned(design.trained(observed.records)[1], observed.n) for design in designs]
        means, errors = _roughly(designs, observed, t)
        smooth = errors.splines.design(t) @ errors.loadings
        left = (smooth * errors.sizes) @ smooth.T
        mean = means.mean(axis=0)
        explained = means - mean
        n = len(means)
        found = Functional(response.basis, "dense").fixed(n, mean, explained.T @ explained + n * left, t)
        basis = replace(found, noise_variance=errors.white)
        outside = explained - (explained * basis.weights) @ basis.functions.T @ basis.functions
        of, k = OnBasis.of(basis), basis.n_components
        # Of each score of a curve without gaps: so smoothing parameters are those of its regression.
        variances = np.einsum("tr,tu,ur->r", of.inner, left + errors.white * np.eye(t.size), of.inner)
        weights = errors.variance / variances
        form = on_functions(designs, of, weights, k, t)
        if not isinstance(smoothing, str):
            names = [name for design in designs for name in design.penalty_names]
            smoothing = in_order(designs, given_smoothing(smoothing, k, names))
    fit, working = fit_along_curves(form, observed, smoothing, n_unpenalized, errors)
    return ComponentsOfGaps(fit, basis, working, errors, (outside**2).mean(axis=0))


def _roughly(designs: Sequence[TermDesign], observed: Observations, t: FloatArray) -> tuple[FloatArray, SmoothErrors]:
    """Mean curves of all records (n, T) by a first regression, and the covariance of what it leaves."""
    most, along = min(MOST, observed.n // 5), SmoothMargin.pspline((float(t[0]), float(t[-1])), ALONG)
    form = LongForm((Directions.of(designs, observed.records, most, along, shrunk=True),), t)
    level = observed.level
    below = observed.below(level)
    coefficients = fit_along_curves(form, below, "reml")[0].coefficients
    left = replace(below.below(below.predictor(form, coefficients)), offset=None)
    means = form.predictor(observed.records, coefficients) + level
    return np.asarray(means), smooth_errors(LongForm((ones("(Intercept)"),), t), left)
