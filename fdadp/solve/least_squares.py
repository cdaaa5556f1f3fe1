"""From sums over training curves to a fit: penalised least squares of each score of the response on the features."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import IdentificationWarning, InputError
from fdadp.responses.functional import FunctionalResponse
from fdadp.solve.fitted import Fitted
from fdadp.solve.moments import Moments
from fdadp.solve.penalized import PenalizedLeastSquares
from fdadp.solve.residuals import residual_of
from fdadp.solve.solution import Solution
from fdadp.solve.sums import TrainingSums

__all__ = ["fit_sums", "problem_of", "problem_of_scores", "refuse_same_curves", "vary"]


def problem_of(
    sums: TrainingSums, response: FunctionalResponse, n_unpenalized: int | None = None
) -> PenalizedLeastSquares:
    """The penalised least squares of each score of the response (K of them) on the identified coordinates.

    `n_unpenalized` is that of :class:`~fdadp.solve.penalized.PenalizedLeastSquares`.

    Raises
    ------
    InputError
        Covariates that are the same for all curves, or too few curves.
    """
    refuse_same_curves(sums.term.column, sums.x)
    parts = (sums.n, sums.gram, sums.cross, sums.y.scatter)
    return problem_of_scores(*parts, [sums.term.penalties], response, n_unpenalized)


def problem_of_scores(
    n: int,
    gram: FloatArray,
    cross: FloatArray,
    scatter: FloatArray,
    penalties: Sequence[FloatArray],
    response: FunctionalResponse,
    n_unpenalized: int | None = None,
) -> PenalizedLeastSquares:
    """The penalised least squares of K scores of curves on features of any terms, from sums.

    Parameters
    ----------
    n : int
        Number of curves.
    gram : ndarray of shape (p, p)
        Scatter of the features.
    cross : ndarray of shape (p, T)
        Products of them and the response, both centred.
    scatter : ndarray of shape (T, T)
        Of the response.
    penalties : sequence of ndarray of shape (M_j, p_j)
        Of each term.
    response : FunctionalResponse
    n_unpenalized : int, optional
    """
    projection = response.projection
    return PenalizedLeastSquares(
        gram,
        cross @ projection,
        np.einsum("tk,tu,uk->k", projection, scatter, projection),
        n,
        penalties,
        n_unpenalized=n_unpenalized,
    )


def fit_sums(
    sums: TrainingSums, response: FunctionalResponse, smoothing: str | ArrayLike, n_unpenalized: int | None = None
) -> Fitted:
    """Fit the scores of a response to sums over curves.

    Parameters
    ----------
    sums : TrainingSums
    response : FunctionalResponse
        On a known basis of K functions.
    smoothing : {"reml", "gcv"} or array_like of shape (M,) or (K, M)
        Criterion, or the smoothing parameters of the M penalties.
    n_unpenalized : int, optional
        Dimension that REML counts as unpenalised, to repeat programs that count otherwise.

    Raises
    ------
    InputError
        As :func:`problem_of`; smoothing parameters of another shape.

    Warns
    -----
    IdentificationWarning
        Coordinates without a penalty that the training curves do not tell apart; they are left out.
    """
    k = response.n_outputs
    given = None if isinstance(smoothing, str) else _given(smoothing, (k, len(sums.term.penalties)))
    problem = problem_of(sums, response, n_unpenalized)
    _warn_unidentified(problem, sums)
    if given is not None:
        return _fitted(sums, response, [problem.solve(given[i], i) for i in range(k)], "reml")
    return _fitted(sums, response, problem.optimize(str(smoothing)), str(smoothing))


def _fitted(sums: TrainingSums, response: FunctionalResponse, solutions: list[Solution], criterion: str) -> Fitted:
    return Fitted(
        term=sums.term,
        coefficients=sums.term.published(np.stack([f.coefficients for f in solutions], axis=1).T),
        feature_mean=sums.moments.mean[: sums.n_features],
        rotation=sums.rotation,
        covariance=np.stack([f.covariance for f in solutions]),  # Bayesian, of the identified coordinates
        unit_variance=np.array([f.noise_variance for f in solutions]),
        response=response,
        residual=residual_of(sums, response.basis, solutions),
        edf=np.array([f.edf_total for f in solutions]),
        smoothing_parameters=np.stack([f.smoothing_parameters for f in solutions]),
        criterion=np.array([getattr(f, criterion) for f in solutions]),
        n=sums.n,
        notes=sums.term.notes(),
    )


def _given(smoothing: Any, shape: tuple[int, int]) -> FloatArray:
    try:
        return np.array(np.broadcast_to(np.asarray(smoothing, dtype=np.float64), shape))
    except (TypeError, ValueError) as exc:
        raise InputError(
            f"smoothing must be 'reml', 'gcv' or numbers of shape ({shape[1]},) or {shape}, got {smoothing!r}"
        ) from exc


def vary(moments: Moments) -> bool:
    """Whether rows are not all the same but for rounding."""
    return bool(moments.scatter.diagonal().max() > 1e-24 * moments.n * (moments.mean @ moments.mean))


def refuse_same_curves(name: str, moments: Moments) -> None:
    """Refuse curves that are all the same but for rounding, from the moments of them or of their features.

    Raises
    ------
    InputError
        Naming the argument.
    """
    if not vary(moments):
        raise InputError(f"{name} must vary between curves, got the same curve every time")


def _warn_unidentified(problem: PenalizedLeastSquares, sums: TrainingSums) -> None:
    """Say which of the directions without a penalty the training curves do not tell apart.

    For one shape times a number, a level or a 0/1 treatment given as a curve, for example.
    """
    if problem.identified.all():
        return
    names = sums.term.names(np.flatnonzero(~problem.identified).tolist())
    warnings.warn(
        f"the curves {sums.term.column} do not identify {', '.join(names)}: among the "
        "training curves they are functions of the other integrals of this kind, or do not vary (as for one shape "
        "times a number). They are left out; the fit is not affected, predictions for curves of another shape rest on "
        "this choice",
        IdentificationWarning,
        stacklevel=6,
    )
