"""A fitted regression of the scores of curves: coefficients, how sure they are, and what they predict.

Every way of fitting the additive model returns a :class:`Fitted` — least squares, a private mechanism, a file, the
published scheme — and every prediction of it is computed here. With splines or many terms it becomes one fit of the
long form instead (:mod:`fdadp.solve.components`), whose covariance is of all coefficients at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.functional.records import Records
from fdadp.responses.functional import FunctionalResponse
from fdadp.solve.least_squares import Scores
from fdadp.solve.residuals import Residual, residual_of
from fdadp.terms.surface import Surface

if TYPE_CHECKING:
    from fdadp.privacy import Ledger, Privacy

__all__ = ["FARTHEST", "Fitted"]

FARTHEST = 2.5
"""Standard deviations of Y from its mean curve beyond which a private prediction is pulled back."""


@dataclass(frozen=True)
class Fitted:
    """The additive regression ``E[Y | X](t) = mean(t) + Σ_k φ_k(t) (row - mean row) @ coefficients_k``.

    Attributes
    ----------
    term : Surface
    values : ndarray of shape (K, kx, ks)
        F at the points of its bases for each response function, about its mean over the training curves.
    feature_mean : ndarray of shape (q,)
        Mean feature row.
    rotation : ndarray of shape (q, p)
        From feature rows to the coordinates that the covariance is of.
    covariance : ndarray of shape (C, p, p) or (C, p + 1, p + 1)
        Of the coefficients of each interval function of the response, the constant's first where it has one.
    unit_variance : ndarray of shape (C,)
        Residual variance of each of them; ``covariance / unit_variance`` is what observations alone determine.
    response : FunctionalResponse
    residual : Residual
    edf : ndarray of shape (K,)
        Effective degrees of freedom, the intercept's among them.
    smoothing_parameters : ndarray of shape (K, M)
    criterion : ndarray of shape (K,)
        Value of the criterion that chose them.
    n : int
        Number of training curves; in a private fit the declared or the released number of persons.
    limited : bool
        Whether predictions far from the mean curve are pulled back, as in private fits (:meth:`scores`).
    notes : tuple of str
    ledger : Ledger or None
        What was released.
    privacy : Privacy or None
        The guarantee; None where there is none.
    plan : Plan or None
        How a private fit shared out its budget.
    """

    term: Surface
    values: FloatArray
    feature_mean: FloatArray
    rotation: FloatArray
    covariance: FloatArray
    unit_variance: FloatArray
    response: FunctionalResponse
    residual: Residual
    edf: FloatArray
    smoothing_parameters: FloatArray
    criterion: FloatArray
    n: int
    limited: bool = False
    notes: tuple[str, ...] = ()
    ledger: Ledger | None = None
    privacy: Privacy | None = None
    plan: object = None

    @classmethod
    def of(cls, scores: Scores) -> Fitted:
        """That of one term fitted to scores, F about its mean over the training curves."""
        sums, solutions = scores.sums, scores.solutions
        (term,) = sums.designs
        assert isinstance(term, Surface)
        widened, variances, response = scores.widened, scores.variances, scores.response
        residual = residual_of(sums, scores.left, response.basis)
        of_mean = residual.mean_variance + ((widened - 1) * variances) @ response.basis.functions**2 / sums.n
        rotation = np.ascontiguousarray(np.eye(term.kept.size)[:, term.kept])
        return cls(
            term=term,
            values=term.about_mean(term.values(rotation @ scores.coefficients)),
            feature_mean=sums.moments.mean[: term.kept.size],
            rotation=rotation,
            covariance=np.stack([one.covariance * more for one, more in zip(solutions, widened, strict=True)]),
            unit_variance=variances,
            response=response,
            residual=replace(residual, mean_variance=of_mean),
            edf=np.array([one.edf_total for one in solutions]),
            smoothing_parameters=np.stack([one.smoothing_parameters for one in solutions]),
            criterion=scores.criteria,
            n=sums.n,
            notes=term.notes(),
        )

    @property
    def coefficients(self) -> FloatArray:
        """Of the feature rows, shape (q, K)."""
        return self.term.coefficients(self.values)

    def features(self, x: Records) -> FloatArray:
        """Feature rows about their training mean, shape (n, q).

        Raises
        ------
        InputError
            A covariate on another domain than the training curves'.
        """
        return self.term.features(x) - self.feature_mean

    def scores(self, features: FloatArray) -> FloatArray:
        """Predicted coefficients on the response functions, shape (n, K).

        In a private fit noise is largest for curves unlike any other. There a prediction farther from the mean curve
        than `FARTHEST` standard deviations of Y (L2 norms, from the releases) keeps ``e³ / (e² + v)`` of its excess e,
        v being the variance of the predicted curve. Others stay as they are.
        """
        scores: FloatArray = features @ self.coefficients
        if not self.limited:
            return scores
        basis = self.response.basis
        total = basis.values.sum() + self.residual.noise_variance * (basis.grid[-1] - basis.grid[0])
        limit, norms = FARTHEST * np.sqrt(total), np.sqrt((scores * scores).sum(axis=1))
        far = norms > limit
        if far.any():
            excess = norms[far] - limit
            variance = self.variances(features[far], basis.grid)[0] @ basis.weights
            scores[far] *= ((limit + excess**3 / (excess**2 + variance)) / norms[far])[:, None]
        return scores

    def variances(self, features: FloatArray, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Variance of predicted mean curves (n, T'), and of responses about their means (T',), at points of t."""
        z = features @ self.rotation
        if self.covariance.shape[1] > z.shape[1]:  # the constant has a variance of its own
            z = np.hstack((np.ones((len(z), 1)), z))
        quadratic = np.stack([((z @ c) * z).sum(axis=1) for c in self.covariance], axis=1)
        of_mean, residual, grid = self.residual.mean_variance, self.residual.variance, self.response.grid
        if not np.array_equal(points, grid):
            of_mean, residual = (np.interp(points, grid, v) for v in (of_mean, residual))
        functions = self.response.interval_functions_at(points)
        return np.asarray(np.maximum(quadratic, 0.0) @ functions**2 + of_mean), np.asarray(residual)

    def predict(self, x: Records, t: ArrayLike | None = None) -> tuple[FloatArray, FloatArray]:
        """Predicted curves (n, T'), and their grid."""
        grid, mean, functions = self.response.at(t)
        return np.asarray(mean + self.scores(self.features(x)) @ functions), grid

    def standard_errors(self, x: Records, t: ArrayLike | None = None) -> tuple[FloatArray, FloatArray]:
        """Standard errors of predicted mean curves (n, T'), and their grid."""
        grid = self.response.at(t)[0]
        return np.sqrt(self.variances(self.features(x), grid)[0]), grid

    def interval(
        self, x: Records, level: float, t: ArrayLike | None = None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Lower and upper ends of pointwise prediction intervals (n, T'), and their grid."""
        grid, mean, functions = self.response.at(t)
        features = self.features(x)
        values = mean + self.scores(features) @ functions
        of_mean, residual = self.variances(features, grid)
        half = self.residual.quantile(level) * np.sqrt(of_mean + residual)
        return values - half, values + half, grid
