"""Many terms fitted to the scores of the responses on their eigenfunctions, each score with its own smoothing.

The regressions of all scores (:mod:`fdadp.solve.fit.least_squares`) together are one fit of the long form, by
generalised least squares with a precision that weights each function by its own residual variance, so that all that is
known of such fits holds here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError
from fdadp.functional.fpca import Eigenbasis
from fdadp.responses import Functional
from fdadp.solve.covariance.low_rank import LowRankPrecision
from fdadp.solve.fit.additive_fit import AdditiveFit
from fdadp.solve.fit.least_squares import ScoresFit, fit_scores, vary
from fdadp.solve.form.on_basis import OnBasis, given_smoothing, in_order, information_of, on_functions
from fdadp.solve.form.sums import Over, add_up
from fdadp.solve.linear.block_diagonal import ByFunction
from fdadp.solve.smoothing.penalized import Solution
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
        outside = np.einsum("tr,tu,ur->r", of.inner[:, k:], left.covariance, of.inner[:, k:])
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
            rss=float(np.trace(left.sums)),
            n=n,
            n_rows=n * t.size,
            column_means=np.concatenate(
                (of.values.mean(axis=0) @ of.back, np.kron(features.mean, of.values[:, :k].mean(axis=0)))
            ),
            hessian=_hessian(designs, solutions) if scores.criterion == "reml" else None,
            on_eigenfunctions=True,
        )
        within = of.inner.T @ left.covariance @ of.inner
        known = {"iid": of.values**2 @ variances, "curve": ((of.values @ within) * of.values).sum(axis=1)}
        beyond = {kind: (left.variance - seen) / n + left.omitted for kind, seen in known.items()}
        return cls(fit, basis, LowRankPrecision(of.inner * np.sqrt(weights)), beyond, scores)


def fit_components(
    designs: Sequence[TermDesign],
    over: Over,
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
    over : callable
        Of training rows with their responses (n, T), as :func:`fdadp.solve.form.sums.add_up` takes it.
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
    sums = add_up(designs, over, t)
    for what, own in zip((*(d.name for d in designs), name), (*sums.of_terms(), sums.y), strict=True):
        if not vary(own):
            raise InputError(f"{what} must vary between rows, got the same in all")
    fixed = response.fixed(sums.n, sums.y.mean, sums.y.scatter, t)
    if not isinstance(smoothing, str):
        names = [name for design in designs for name in design.penalty_names]
        smoothing = given_smoothing(smoothing, fixed.n_components, names)
    return ComponentsFit.of(fit_scores(sums, fixed, smoothing, n_unpenalized))


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
