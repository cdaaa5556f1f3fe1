"""Many terms fitted to the scores of the responses on their eigenfunctions, each score with its own smoothing.

The regressions of all scores (:mod:`fdadp.solve.eigen.fit_to_scores`) together are one fit of the long form, by
generalised least squares with a precision that weights each function by its own residual variance, so that all that is
known of such fits holds here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from fdadp._common.argument_checks import numbers
from fdadp._common.student_and_f import ndtri, student_quantile
from fdadp._common.threads import one_blas_thread
from fdadp._common.typing import ArrayLike, BoolArray, FloatArray
from fdadp.errors import InputError
from fdadp.functional.fpca import Eigenbasis, FaceSmoother
from fdadp.functional.splines.diagonal_margins import SmoothMargin, margin_of
from fdadp.responses import Functional
from fdadp.solve.errors.curve_precisions import LowRankPrecision
from fdadp.solve.errors.gls import Directions, ErrorCovariance, SmoothErrors, fit_along_curves, smooth_errors
from fdadp.solve.fit.additive_fit import AdditiveFit, ByFunction
from fdadp.solve.fit.observations import ChunkedObservations, Observations
from fdadp.solve.form.long_form_design import LongForm
from fdadp.solve.form.training_sums import Moments, TrainingSums, add_up
from fdadp.solve.smoothing.penalized_least_squares import PenalizedLeastSquares, Solution
from fdadp.terms.numbers.scalar_linear import ones
from fdadp.terms.on_response_functions import OnFunctions
from fdadp.terms.records import Records
from fdadp.terms.spec import TermDesign

LEAST_VARIANCE = 1e-12
"""Of a component that is fitted without residual, as a share of the largest."""


@dataclass(frozen=True)
class ComponentsFit:
    """A fit to the scores of responses.

    Attributes
    ----------
    fit : AdditiveFit
        Of the long form of all terms on the eigenfunctions, the mean curve among them.
    basis : Eigenbasis
        Mean and K eigenfunctions of the responses.
    precision : LowRankPrecision
        Of which the fit is the generalised least squares.
    beyond : mapping of str to ndarray of shape (T,)
        Variance of mean curves that no coefficient knows of, by what is believed of errors: what the features explain
        outside the eigenfunctions, and of the mean curve what lies there.
    scores : ScoresFit
        The regressions of all scores.
    """

    fit: AdditiveFit
    basis: Eigenbasis
    precision: LowRankPrecision
    beyond: Mapping[str, FloatArray]
    scores: ScoresFit

    @classmethod
    def of(cls, scores: ScoresFit) -> ComponentsFit:
        """One fit of the long form from those of all scores.

        Coefficients of the mean come first, then those of the features, each with its K functions.
        """
        designs, features, solutions, left = scores.sums.designs, scores.sums.x, scores.solutions, scores.left
        basis = scores.basis
        n, k, t = features.n, basis.n_components, basis.grid
        of = OnBasis.of(basis)
        seen = left.times(of.inner)
        outside = (of.inner[:, k:] * seen[:, k:]).sum(axis=0)
        variances = np.concatenate((scores.variances, outside))
        sigma2 = float(left.variance.mean())
        rounding = np.finfo(np.float64).eps * float(basis.values.sum())  # sums of squares know no less
        least = max(LEAST_VARIANCE * float(variances.max()), rounding, np.finfo(np.float64).tiny)
        weights = sigma2 / np.maximum(variances, least) if sigma2 > 0 else np.ones_like(variances)
        slopes = scores.coefficients
        level = np.linalg.lstsq(of.values, basis.mean, rcond=None)[0]
        level[:k] -= features.mean @ slopes
        r = len(level)
        fit = AdditiveFit(
            form=on_functions(designs, of, weights, k, t),
            coefficients=np.concatenate((np.linalg.solve(of.back, level), slopes.ravel())),
            spread=_spread(scores, weights, np.asarray(np.linalg.inv(of.back))),
            information=information_of(features, weights, of.back, k),
            edf=np.concatenate((np.ones(r), np.stack([s.edf for s in solutions], axis=1).ravel())),
            identified=np.concatenate((np.ones(r, dtype=bool), np.repeat(scores.identified, k))),
            smoothing_parameters=in_order(designs, np.stack([s.smoothing_parameters for s in solutions])),
            sigma2=sigma2,
            scale=sigma2,
            criterion=float(scores.criteria.sum()),
            rss=float(left.squares.sum()),
            n=n,
            n_rows=n * t.size,
            column_means=np.concatenate(
                (of.values.mean(axis=0) @ of.back, np.kron(features.mean, of.values[:, :k].mean(axis=0)))
            ),
            hessian=_hessian(designs, solutions) if scores.criterion == "reml" else None,
            on_eigenfunctions=True,
        )
        within = of.inner.T @ seen
        known = {"iid": of.values**2 @ variances, "curve": ((of.values @ within) * of.values).sum(axis=1)}
        beyond = {kind: (left.variance - own) / n + left.omitted for kind, own in known.items()}
        return cls(fit, basis, LowRankPrecision(of.inner * np.sqrt(weights)), beyond, scores)


def fit_components(
    designs: Sequence[TermDesign],
    observed: Observations | ChunkedObservations,
    t: FloatArray,
    response: Functional,
    smoothing: str | ArrayLike,
    n_unpenalized: int | None = None,
    name: str = "Y",
) -> ComponentsFit:
    """Fit terms to the scores of curves in one pass.

    Parameters
    ----------
    designs : sequence of TermDesign
        Of a response that is a number; a constant is added.
    observed : Observations or ChunkedObservations
        Whole responses (n, T), with the same weight.
    t : ndarray of shape (T,)
    response : Functional
        Which eigenfunctions.
    smoothing : {"reml", "gcv"} or array_like of shape (M,) or (K, M)
        A criterion, or smoothing parameters of the M penalties of all terms, the same or each score's own, as they are
        in a regression of the score.
    n_unpenalized : int, optional
        Dimension that REML counts as unpenalised in each.
    name : str
        Of the response, for messages.

    Raises
    ------
    InputError
        Smoothing parameters of another shape, too few curves, or responses or features that are all the same.
    """
    sums = add_up(designs, partial(_over_rows, observed), t)
    for what, own in zip((*(d.name for d in designs), name), (*sums.of_terms(), sums.y), strict=True):
        if not vary(own):
            raise InputError(f"{what} must vary between rows, got the same in all")
    fixed = response.fixed(sums.n, sums.y.mean, sums.y.scatter, t)
    if not isinstance(smoothing, str):
        names = [name for design in designs for name in design.penalty_names]
        smoothing = given_smoothing(smoothing, fixed.n_components, names)
    return ComponentsFit.of(fit_scores(sums, fixed, smoothing, n_unpenalized))


def _over_rows(observed: Observations | ChunkedObservations, function: Callable[..., Any], merge: Any) -> Any:
    return observed.over(partial(_of_rows, function), merge)


def _of_rows(function: Callable[..., Any], chunk: Observations) -> Any:
    return function(chunk.records, chunk.without_offset().y)


def _spread(scores: ScoresFit, weights: FloatArray, ahead: FloatArray) -> ByFunction:
    """Inverse of the penalised information; `ahead` from coefficients on functions to those of the mean curve."""
    features, k = scores.sums.x, len(scores.solutions)
    blocks = np.zeros((k, 1 + features.mean.size, 1 + features.mean.size))
    blocks[:, 0, 0], blocks[:, 1:, 1:] = 1 / features.n, [solution.inverse for solution in scores.solutions]
    outside = ahead[:, k:]
    rest = (outside / (features.n * weights[k:])) @ outside.T
    return ByFunction(blocks, 1 / weights[:k], features.mean, ahead[:, :k], rest)


def _hessian(designs: Sequence[TermDesign], solutions: Sequence[Solution]) -> FloatArray:
    """Of the sum of all criteria in the logarithms of all smoothing parameters: scores do not know of each other."""
    k, m = len(solutions), len(solutions[0].smoothing_parameters)
    which = in_order(designs, np.arange(k * m, dtype=np.float64).reshape(k, m)).astype(np.int64)
    every = np.zeros((k, m, k, m))
    for i, solution in enumerate(solutions):
        every[i, :, i] = solution.hessian
    return np.asarray(every.reshape(k * m, k * m)[np.ix_(which, which)])


# Functions along the response that a regression on eigenfunctions stands on, and its long form.


NEARLY_WITHIN = 1e-10
"""Share of its norm below which what of a function lies outside others is rounding."""


@dataclass(frozen=True)
class OnBasis:
    """The mean curve and its coordinates.

    It stands on the K eigenfunctions and on what it and the constant have outside them: r orthonormal functions in all,
    whose coordinates are turned into those of a constant and of curves that sum to zero over the grid.

    Attributes
    ----------
    values : ndarray of shape (T, r)
    inner : ndarray of shape (T, r)
        The same times quadrature weights.
    curve : ndarray of shape (r, r - 1)
        Orthonormal coordinates of curves that sum to zero.
    back : ndarray of shape (r, r)
        From the constant and these to coordinates on the functions.
    """

    values: FloatArray
    inner: FloatArray
    curve: FloatArray
    back: FloatArray

    @classmethod
    def of(cls, basis: Eigenbasis) -> OnBasis:
        """Those of an eigenbasis."""
        found, weights = basis.functions.T, basis.weights
        for i, function in enumerate((np.ones(basis.grid.size), basis.mean, basis.grid)):
            if i == 2 and found.shape[1] > 1:
                break  # two functions are enough to tell a constant from a curve
            rest = function
            for _ in range(2):
                rest = rest - found @ np.linalg.lstsq(found, rest, rcond=None)[0]
            size = np.sqrt(weights @ rest**2)
            if size > NEARLY_WITHIN * np.sqrt(weights @ function**2):
                rest = rest - found @ ((found * weights[:, None]).T @ rest)
                found = np.column_stack((found, rest / np.sqrt(weights @ rest**2)))
        constant = np.linalg.lstsq(found, np.ones(basis.grid.size), rcond=None)[0]
        curve = np.linalg.qr(found.mean(axis=0)[:, None], mode="complete")[0][:, 1:]
        return cls(found, found * weights[:, None], curve, np.column_stack((constant, curve)))


def on_functions(designs: Sequence[TermDesign], of: OnBasis, weights: FloatArray, k: int, t: FloatArray) -> LongForm:
    """The long form of a mean curve and of terms on K functions, each with its weight in the least squares."""
    curve = OnFunctions.made(ones("s(t)"), margin_of(t, of.values @ of.curve, smooth=True))
    along = margin_of(t, np.ascontiguousarray(of.values[:, :k]), smooth=True)
    return LongForm((ones("(Intercept)"), curve, *(OnFunctions.made(d, along, weights[:k]) for d in designs)), t)


def in_order(designs: Sequence[TermDesign], by_function: FloatArray) -> FloatArray:
    """Numbers (K, M) of penalties in their order in the long form: by term, then by function."""
    ends = np.cumsum([len(design.penalties) for design in designs])[:-1]
    return np.concatenate([part.ravel() for part in np.split(by_function, ends, axis=1)])


def given_smoothing(smoothing: ArrayLike, k: int, names: Sequence[str]) -> FloatArray:
    """Smoothing parameters (K, M) that were given, for all functions together or for each.

    Raises
    ------
    InputError
        Another shape.
    """
    given, shape = numbers(smoothing, "smoothing"), (k, len(names))
    if given.shape not in (shape, shape[1:]):
        raise InputError(
            f"smoothing must hold {len(names)} smoothing parameters ({', '.join(names)}), or as many for each of {k} "
            f"eigenfunctions, shape {shape}, got shape {given.shape}"
        )
    return np.array(np.broadcast_to(given, shape))


def information_of(features: Moments, weights: FloatArray, back: FloatArray, k: int) -> ByFunction:
    """The information; `back` from coefficients of the mean curve to those on functions, of which K have slopes."""
    n, mean = features.n, features.mean
    products = np.block([[np.ones((1, 1)), mean[None]], [mean[:, None], features.outer / n]])
    rest = (back[k:].T * (n * weights[k:])) @ back[k:]
    return ByFunction(products[None], n * weights[:k], np.zeros_like(mean), back[:k].T, rest)


# What a fit of scores leaves: the residual covariance, and what the features explain outside the kept components.


@dataclass(frozen=True)
class PointwiseVariance:
    """Variance of responses about their means at points of the grid, with the law of what is divided by its root.

    Attributes
    ----------
    grid : ndarray of shape (T,)
    values : ndarray of shape (T,)
    scale, inverse_dof : float
        Standardised errors are `scale` times a t law with ``1 / inverse_dof`` degrees of freedom.
    """

    grid: FloatArray
    values: FloatArray
    scale: float = 1.0
    inverse_dof: float = 0.0

    def of_records(self, records: Records, t: FloatArray) -> FloatArray:
        """Variances of records at points, shape (1, T') or (n, T')."""
        return np.interp(t, self.grid, self.values)[None]

    def quantile(self, level: float) -> float:
        """Standard deviations that an interval of this level reaches to either side."""
        tail = (1 + level) / 2
        return float(self.scale * (student_quantile(tail, 1 / self.inverse_dof) if self.inverse_dof else ndtri(tail)))


@dataclass(frozen=True)
class Unexplained:
    """What components leave of the responses, by sums over curves.

    Attributes
    ----------
    squares : ndarray of shape (T,)
        Squares of residual curves, summed.
    diagonal : ndarray of shape (T,)
        Of the covariance of residual curves, corrected for the degrees of freedom used.
    times : callable
        That covariance, which is never formed, times vectors of shape (T, m).
    omitted : ndarray of shape (T,)
        Variance of the part of E[Y | X] outside the kept components; the covariance has it, too.
    degrees : float
        Residual degrees of freedom of a component, on average.
    """

    squares: FloatArray
    diagonal: FloatArray
    times: Callable[[FloatArray], FloatArray]
    omitted: FloatArray
    degrees: float

    @property
    def variance(self) -> FloatArray:
        """Pointwise variance of responses about their fitted means, shape (T,)."""
        return np.maximum(self.diagonal, 0.0)


def unexplained(sums: TrainingSums, basis: Eigenbasis, solutions: Sequence[Solution]) -> Unexplained:
    """What K fitted components leave.

    Parameters
    ----------
    sums : TrainingSums
    basis : Eigenbasis
        K functions.
    solutions : sequence of Solution
    """
    n, gram, cross, scatter = sums.n, sums.gram, sums.cross, sums.y.scatter
    functions, weighted = basis.functions, basis.functions * basis.weights  # (K, T)
    coefficients = np.stack([f.coefficients for f in solutions], axis=1)  # (p, K)
    # Products of residual curves are the scatter less functions' fitted + fitted' functions.
    fitted = coefficients.T @ cross - 0.5 * (coefficients.T @ gram @ coefficients) @ functions
    squares = np.diag(scatter) - 2 * (functions * fitted).sum(axis=0)
    edf = np.array([f.edf_total for f in solutions])
    degrees = np.maximum(n - edf, 1.0)
    inflate = np.sqrt((n - 1) / degrees) - 1
    # (I + wider weighted) residual (I + wider weighted)': all but the identity has rank K.
    seen = weighted @ scatter
    wider = functions.T * inflate
    scores = seen - (weighted @ functions.T) @ fitted - (weighted @ fitted.T) @ functions
    widened = scores + 0.5 * (scores @ weighted.T) @ wider.T
    diagonal = (squares + 2 * (wider.T * widened).sum(axis=0)) / (n - 1)
    left, right = np.vstack((-functions, wider.T)), np.vstack((fitted, widened))

    def times(vectors: FloatArray) -> FloatArray:
        found = scatter @ vectors + left.T @ (right @ vectors) + right.T @ (left @ vectors)
        return np.asarray(found / (n - 1))

    # The directions of Y that no component stands for, regressed with the lightest smoothing that one of them has.
    total = np.diag(scatter) + (functions * ((seen @ weighted.T) @ functions - 2 * seen)).sum(axis=0)
    outside = cross - (cross @ weighted.T) @ functions
    omitted = _explained_variance(gram, outside, total, n, solutions[int(edf.argmax())])
    omitted = np.minimum(omitted, np.maximum(diagonal, 0.0))
    return Unexplained(squares, diagonal, times, omitted, float(degrees.mean()))


def r2_of(sums: TrainingSums, left: Unexplained, basis: Eigenbasis) -> float:
    """Share of the variance of the responses that is explained."""
    return float(1 - (left.squares @ basis.weights) / (np.diag(sums.y.scatter) @ basis.weights))


def white_part(left: Unexplained, t: FloatArray) -> float:
    """White part of the residual variance."""
    if t.size < 12:
        return float(left.variance.min())
    smoother = FaceSmoother.on(t)
    return smoother.smooth(smoother.basis.T @ left.times(smoother.basis), float(left.diagonal.sum()))[1]


def _explained_variance(gram: FloatArray, cross: FloatArray, total: FloatArray, n: int, like: Solution) -> FloatArray:
    """Variance over curves of ``E[y | X]`` for responses (T of them), fitted with the smoothing of a solution.

    ``|Hy|²/n`` less what noise adds to it, ``σ² tr(H²)/n``.
    """
    beta = like.inverse @ cross
    fitted = (beta * (gram @ beta)).sum(axis=0)
    left = max(n - like.edf_total, 1.0)
    noise = np.maximum(total - 2 * (beta * cross).sum(axis=0) + fitted, 0.0) / left
    hat = like.inverse @ gram
    return np.asarray(np.maximum(fitted - noise * float((hat * hat.T).sum()), 0.0) / n)


# From sums over training rows to a fit: penalised least squares of each score of the response on the features.
#
# Orthonormal functions take the least squares of curves apart: the scores on each are a regression of numbers, and all
# of them need the same sums over curves.


@dataclass(frozen=True)
class ScoresFit:
    """Terms fitted to the K scores of a response.

    Attributes
    ----------
    sums : TrainingSums
    basis : Eigenbasis
        Mean and K eigenfunctions of the response.
    solutions : sequence of Solution
        One a score.
    identified : ndarray of shape (p,), bool
        Coefficients that the training rows or a penalty identify.
    criterion : {"reml", "gcv", ""}
        That chose the smoothing parameters; none where they were given.
    left : Unexplained
    """

    sums: TrainingSums
    basis: Eigenbasis
    solutions: Sequence[Solution]
    identified: BoolArray
    criterion: str
    left: Unexplained

    @property
    def coefficients(self) -> FloatArray:
        """Of the features that have some, shape (p, K)."""
        return np.stack([solution.coefficients for solution in self.solutions], axis=1)

    @property
    def variances(self) -> FloatArray:
        """Residual variances, shape (K,)."""
        return np.array([solution.noise_variance for solution in self.solutions])

    @property
    def criteria(self) -> FloatArray:
        """Value of the criterion for each score (REML where smoothing parameters were given), shape (K,)."""
        return np.array([getattr(solution, self.criterion or "reml") for solution in self.solutions])


def problem_of(sums: TrainingSums, basis: Eigenbasis, n_unpenalized: int | None = None) -> PenalizedLeastSquares:
    """The penalised least squares of each score of the response (K of them).

    `n_unpenalized` is that of :class:`~fdadp.solve.smoothing.penalized_least_squares.PenalizedLeastSquares`.
    """
    projection = basis.projection
    total = (projection * (sums.y.scatter @ projection)).sum(axis=0)
    return PenalizedLeastSquares(
        sums.gram, sums.cross @ projection, total, sums.n, sums.penalties, n_unpenalized=n_unpenalized
    )


def fit_scores(
    sums: TrainingSums, basis: Eigenbasis, smoothing: str | FloatArray, n_unpenalized: int | None = None
) -> ScoresFit:
    """Fit the scores of a response to sums over training rows.

    Parameters
    ----------
    sums : TrainingSums
    basis : Eigenbasis
        Of the response: K functions.
    smoothing : {"reml", "gcv"} or ndarray of shape (K, M)
        Criterion, or the smoothing parameters of the M penalties of all terms.
    n_unpenalized : int, optional
        Dimension that REML counts as unpenalised in each, to repeat programs that count otherwise.

    Raises
    ------
    InputError
        Too few curves.
    """
    problem = problem_of(sums, basis, n_unpenalized)
    if isinstance(smoothing, str):
        solutions, criterion = problem.optimize(smoothing), smoothing
    else:
        solutions, criterion = [problem.solve(own, i) for i, own in enumerate(smoothing)], ""
    left = unexplained(sums, basis, solutions)
    return ScoresFit(sums, basis, solutions, problem.identified, criterion, left)


def vary(moments: Moments) -> bool:
    """Whether rows are not all the same but for rounding."""
    return bool(moments.scatter.diagonal().max() > 1e-24 * moments.n * (moments.mean @ moments.mean))


# Curves that were observed at some of their points only.
#
# Scores of such curves are not known. What an FPCA lets expect of them is pulled towards the mean, so that a regression
# of expected scores is attenuated and takes for known what is not. But the observed points follow a linear model,
# Y_i(t_j) = μ(t_j) + Σ_k f_i'θ_k φ_k(t_j) + e_i(t_j), and need no scores: it is fitted by generalised least squares of
# the long form, under a smooth covariance of the errors.
#
# Eigenfunctions of the products of few points miss more of what covariates explain than its standard error. So a first
# regression, of few features on splines along the response, says what is explained; eigenfunctions are those of the
# covariance of that and of what is left (docs/decisions/0005-gaps-of-y-on-eigenfunctions.md).


ALONG = 10
"""Cubic B-splines along the response of the first regression."""

MOST_DIRECTIONS = 40
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
        As of :func:`fdadp.solve.eigen.fit_to_scores.fit_components`.
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
    most, along = min(MOST_DIRECTIONS, observed.n // 5), SmoothMargin.pspline((float(t[0]), float(t[-1])), ALONG)
    form = LongForm((Directions.of(designs, observed.records, most, along, shrunk=True),), t)
    level = observed.level
    below = observed.below(level)
    coefficients = fit_along_curves(form, below, "reml")[0].coefficients
    left = replace(below.below(below.predictor(form, coefficients)), offset=None)
    means = form.predictor(observed.records, coefficients) + level
    return np.asarray(means), smooth_errors(LongForm((ones("(Intercept)"),), t), left)
