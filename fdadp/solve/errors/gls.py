"""Generalised least squares along curves: the fit, by a covariance of the errors that is estimated from the curves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from fdadp._common.threads import one_blas_thread
from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError
from fdadp.solve.covariance.loo_precision import LearnedPrecision
from fdadp.solve.covariance.smooth_errors import SmoothErrors, smooth_errors
from fdadp.solve.covariance.working_covariance import precision_system, working_covariance
from fdadp.solve.errors.leave_one_out import Residuals
from fdadp.solve.fit.additive_fit import AdditiveFit, fit_gaussian
from fdadp.solve.fit.chunked_observations import ChunkedObservations
from fdadp.solve.fit.observations import Observations
from fdadp.solve.form.family import Family
from fdadp.solve.form.long_form import LongForm, System
from fdadp.solve.linear.curve_precision import CurvePrecision

JUDGES = 300
"""Curves, at most, that say what errors along curves let think of minima of REML."""

POINTS = 51
"""Of the grid of these curves, at most."""


@dataclass(frozen=True)
class ErrorCovariance:
    """What a fit believed of the errors along curves.

    Attributes
    ----------
    precision : ndarray of shape (T, T) or CurvePrecision
        Inverse of their covariance times their mean variance: of all curves on a grid, or of each at its points.
    log_det : float
        Logarithm of the determinants of the precisions of all curves.
    n_smooth : int
        Components of their smooth part; with none, errors are white.
    learned : LearnedPrecision or None
        What the precision was learned from; None where errors are white.
    """

    precision: FloatArray | CurvePrecision
    log_det: float
    n_smooth: int
    learned: LearnedPrecision | None = None


def fit_along_curves(
    form: LongForm,
    observed: Observations,
    smoothing: str | ArrayLike,
    n_unpenalized: int | None = None,
    errors: SmoothErrors | None = None,
) -> tuple[AdditiveFit, ErrorCovariance]:
    """Generalised least squares of Gaussian responses; arguments as of `fit_terms`, and the errors where known.

    The scale of the precision makes the residual variance of the fit that of an observation of weight 1, on average;
    its residual sum of squares is the plain (weighted) one.

    Raises
    ------
    InputError
        Too few curves or points.
    """
    with one_blas_thread():
        level = observed.level if form.has_intercept else 0.0  # sums of squares about zero lose digits
        below = observed.below(level)
        system, working = _system(form, below) if errors is None else _at_points(form, below, errors)
        fit = fit_gaussian(form, system, smoothing, observed.n, n_unpenalized)
        weights, ones = observed.used, (observed.used > 0).astype(np.float64)
        left = np.where(ones > 0, below.y - below.predictor(form, fit.coefficients), 0.0)
        means = Residuals(observed.records, ones, None, observed.points).scores(form).sum(axis=0) / fit.n_rows
    fit.coefficients[0] += level
    return replace(fit, rss=float((weights * left**2).sum()), column_means=means), working


def judging_system(
    form: LongForm, observed: Observations | ChunkedObservations, family: Family, smoothing: str | ArrayLike
) -> System | None:
    """Normal equations by the same covariance, for least squares that chooses between several minima of REML.

    Of :data:`JUDGES` curves at :data:`POINTS` points of a grid, where there are more: a smoothing parameter is a ratio
    of variances, and means the same in a part of the data. None where nothing is to be chosen, where errors do not
    depend along curves, and where curves or points are too few to tell.
    """
    chosen = isinstance(smoothing, str) and smoothing == "reml" and form.n_penalties
    if family.name != "gaussian" or not chosen or form.t.size < 2:
        return None
    rows = np.unique(np.linspace(0, observed.n - 1, min(observed.n, JUDGES)).astype(np.int64))
    return observed.of_some(rows, partial(_judged, form))


def _judged(form: LongForm, few: Observations) -> System | None:
    """Of few curves, at few points."""
    if few.points is None and form.t.size > POINTS:
        at = np.unique(np.linspace(0, form.t.size - 1, POINTS).astype(np.int64))
        form, few = LongForm(form.designs, form.t[at]), few.at(at)
    with one_blas_thread():
        try:
            system, working = _system(form, few.below(few.level if form.has_intercept else 0.0))
        except InputError:
            return None
    return system if working.n_smooth else None


def _system(form: LongForm, observed: Observations) -> tuple[System, ErrorCovariance]:
    return (_on_grid if observed.whole else _at_points)(form, observed)


def _on_grid(form: LongForm, observed: Observations) -> tuple[System, ErrorCovariance]:
    """Of whole curves: one matrix for all."""
    y, records = observed.y - observed.added(), observed.records
    working = working_covariance(form, records, y)
    parts = ((records[part], y[part]) for part in records.blocks())
    system = precision_system(form, parts, working.precision)
    return system, ErrorCovariance(working.precision, records.n * working.log_det, working.n_smooth, working.learned)


def _at_points(
    form: LongForm, observed: Observations, errors: SmoothErrors | None = None
) -> tuple[System, ErrorCovariance]:
    """Of curves with gaps, weights, or points of their own: a covariance function."""
    found = smooth_errors(form, observed) if errors is None else errors
    precision = found.precision(observed, form.t)
    system, learned = curves_system(form, observed, precision), found.learned(observed, form.t, precision)
    return system, ErrorCovariance(precision, precision.log_det, precision.sizes.size, learned)


def curves_system(form: LongForm, observed: Observations, precision: CurvePrecision) -> System:
    """Normal equations: those of weighted least squares, less what smooth components of the errors say.

    With ``U_i = D_i' W_i^½ Φ_i`` of each curve, ``(v/σ²) (Σ D_i' W_i D_i - Σ U_i M_i U_i')``.
    """
    plain = observed.system(form)
    gram, cross, total = plain.gram, plain.cross, plain.total
    y = np.where(observed.used > 0, observed.y - observed.added(), 0.0)
    moments = precision.moments(y.ravel())  # (n, K)
    root = np.linalg.cholesky(precision.inner)
    for rows in observed.records.blocks():
        part = observed.part(rows)
        here = precision.weighted[observed.entries(rows)]
        own = [Residuals(part.records, load.reshape(part.y.shape), None, part.points).scores(form) for load in here.T]
        if not own:
            break
        turned = np.einsum("knp,nkl->nlp", own, root[rows]).reshape(-1, form.size)
        pulled = np.einsum("nk,nkl->nl", moments[rows], root[rows]).ravel()
        gram, cross, total = gram - turned.T @ turned, cross - turned.T @ pulled, total - float(pulled @ pulled)
    return System(precision.factor * gram, precision.factor * cross, precision.factor * total, plain.n_rows)
