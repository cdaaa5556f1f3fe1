"""A fitted additive regression: its term with coefficients, how sure they are, and what they predict.

Every way of fitting returns a :class:`Fitted` — least squares, a private mechanism, a file, the published scheme — and
every prediction is computed here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.functional.curves import Curves
from fdadp.responses.functional import FunctionalResponse
from fdadp.terms.surface import AdditiveTerm

if TYPE_CHECKING:
    from fdadp.privacy import Ledger, Privacy

__all__ = ["FARTHEST", "Fitted", "Residual"]

FARTHEST = 2.5
"""Standard deviations of Y from its mean curve beyond which a private prediction is pulled back."""


@dataclass(frozen=True)
class Residual:
    """What a fit leaves unexplained.

    Attributes
    ----------
    variance : ndarray of shape (T,)
        Pointwise variance of Y about E[Y | X].
    noise_variance : float
        Its white part.
    mean_variance : ndarray of shape (T,)
        Variance of a predicted mean curve that does not depend on its covariates: of the overall mean, and of what the
        response functions cannot follow.
    r2 : float
        Share of the variance of Y that is explained.
    scale, inverse_dof : float
        Intervals are `scale` times quantiles of the t distribution with ``1 / inverse_dof`` degrees of freedom.
    """

    variance: FloatArray
    noise_variance: float
    mean_variance: FloatArray
    r2: float
    scale: float = 1.0
    inverse_dof: float = 0.0

    def quantile(self, level: float) -> float:
        """Standard deviations that an interval of this level reaches to either side."""
        from scipy.stats import norm
        from scipy.stats import t as student

        tail = (1 + level) / 2
        return float(self.scale * (student.ppf(tail, 1 / self.inverse_dof) if self.inverse_dof else norm.ppf(tail)))


@dataclass(frozen=True)
class Fitted:
    """The additive regression ``E[Y | X](t) = mean(t) + Σ_k φ_k(t) (row - mean row) @ coefficients_k``.

    Attributes
    ----------
    term : AdditiveTerm
    coefficients : ndarray of shape (K, kx, ks)
        As the term publishes them, for each response function.
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

    term: AdditiveTerm
    coefficients: FloatArray
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

    @cached_property
    def of_features(self) -> FloatArray:
        """Coefficients of the feature rows, shape (q, K)."""
        return self.term.to_features(self.coefficients)

    def features(self, data: Mapping[str, Curves]) -> FloatArray:
        """Feature rows about their training mean, shape (n, q).

        Raises
        ------
        InputError
            A covariate on another domain than the training curves'.
        """
        return np.asarray(self.term.rows(data[self.term.column]) - self.feature_mean)

    def scores(self, features: FloatArray) -> FloatArray:
        """Predicted coefficients on the response functions, shape (n, K).

        In a private fit noise is largest for curves unlike any other. There a prediction farther from the mean curve
        than `FARTHEST` standard deviations of Y (L2 norms, from the releases) keeps ``e³ / (e² + v)`` of its excess e,
        v being the variance of the predicted curve. Others stay as they are.
        """
        scores: FloatArray = features @ self.of_features
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
        quadratic = np.stack([np.einsum("ij,jk,ik->i", z, c, z) for c in self.covariance], axis=1)
        of_mean, residual, grid = self.residual.mean_variance, self.residual.variance, self.response.grid
        if not np.array_equal(points, grid):
            of_mean, residual = (np.interp(points, grid, v) for v in (of_mean, residual))
        functions = self.response.interval_functions_at(points)
        return np.asarray(np.maximum(quadratic, 0.0) @ functions**2 + of_mean), np.asarray(residual)

    def predict(self, data: Mapping[str, Curves], t: ArrayLike | None = None) -> tuple[FloatArray, FloatArray]:
        """Predicted curves (n, T'), and their grid."""
        grid, mean, functions = self.response.at(t)
        return np.asarray(mean + self.scores(self.features(data)) @ functions), grid

    def standard_errors(self, data: Mapping[str, Curves], t: ArrayLike | None = None) -> tuple[FloatArray, FloatArray]:
        """Standard errors of predicted mean curves (n, T'), and their grid."""
        grid = self.response.at(t)[0]
        return np.sqrt(self.variances(self.features(data), grid)[0]), grid

    def interval(
        self, data: Mapping[str, Curves], level: float, t: ArrayLike | None = None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Lower and upper ends of pointwise prediction intervals (n, T'), and their grid."""
        grid, mean, functions = self.response.at(t)
        features = self.features(data)
        values = mean + self.scores(features) @ functions
        of_mean, residual = self.variances(features, grid)
        half = self.residual.quantile(level) * np.sqrt(of_mean + residual)
        return values - half, values + half, grid
