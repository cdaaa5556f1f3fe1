"""From sums over training rows to a fit: penalised least squares of each score of the response on the features.

Orthonormal functions take the least squares of curves apart: the scores on each are a regression of numbers, and all of
them need the same sums over curves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fdadp._common.typing import BoolArray, FloatArray
from fdadp.functional.fpca import Eigenbasis
from fdadp.solve.fit.residuals import Unexplained, unexplained
from fdadp.solve.form.sums import TrainingSums
from fdadp.solve.linear.moments import Moments
from fdadp.solve.smoothing.penalized import PenalizedLeastSquares, Solution


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

    `n_unpenalized` is that of :class:`~fdadp.solve.smoothing.penalized.PenalizedLeastSquares`.
    """
    projection = basis.projection
    total = np.einsum("tk,tu,uk->k", projection, sums.y.scatter, projection)
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
