"""How well coefficients are known, once the size of residuals is: the posterior covariance that standard errors are of.

While gradients are released nothing is known of residuals but a guess, and persons' gradients are taken to count in
full. Both are known better afterwards, from released values, at no cost of privacy. A person's gradient ``f r'``, of
norm ``|w f r'| = ρ``, counts by ``c = min(1, C/ρ)``. So of a step of the coefficients a gradient shows but
``a_jk = E c f_j² r_k² / E r_k²`` (by Stein's identity, residuals being Gaussian), and its sampling variance is
``E c² f_j² r_k² / n``: an M-estimator's sandwich (Huber 1964, doi:10.1214/aoms/1177703732), in which the noise for
privacy, too, is divided by a² (docs/theory/dp-aff.md#standard-errors).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fdadp._common.typing import FloatArray, IntArray
from fdadp.privacy import rowwise_matmul
from fdadp.private.denoise.bayes import WIDER_SPECTRA, posterior_of_pairs, posteriors
from fdadp.private.denoise.scores import gaussian_draws
from fdadp.private.plan.design import PrivateDesign
from fdadp.private.plan.plan import Plan
from fdadp.private.release.intervals import Regression
from fdadp.private.release.rounds import Rounds
from fdadp.private.rows.pairs import MeasuredPairs

TINY = 1e-300

Known = tuple[FloatArray, FloatArray, float, IntArray]
"""Prior shares of features, expected energies of outputs, number of persons, and the term of each feature."""


@dataclass(frozen=True)
class Clipped:
    """What clipping leaves of gradients of white features and Gaussian residuals.

    Attributes
    ----------
    slope : ndarray of shape (D, K)
        Of a change of a coefficient, the share that the mean gradient shows.
    variance : ndarray of shape (D, K)
        Of a person's gradient.
    """

    slope: FloatArray
    variance: FloatArray

    @classmethod
    def of(cls, weights: FloatArray, residual: FloatArray, clip: float) -> Clipped:
        """By public draws.

        Parameters
        ----------
        weights : ndarray of shape (D, K)
            Of the pairs in the gradient.
        residual : ndarray of shape (K, K)
            Covariance of residuals.
        clip : float
            Norm of weighted gradients from which on they count as that.
        """
        f = gaussian_draws(len(weights))
        r = np.random.default_rng(1).standard_normal((len(f), len(residual))) @ np.linalg.cholesky(residual).T
        f2, r2 = f * f, r * r
        norm = np.sqrt((rowwise_matmul(f2, np.ascontiguousarray(weights**2)) * r2).sum(axis=1))
        count = np.minimum(1.0, clip / np.maximum(norm, TINY))[:, None]
        products = [np.asarray(rowwise_matmul(np.ascontiguousarray(f2.T), c * r2)) / len(f) for c in (count, count**2)]
        return cls(products[0] / np.diag(residual), products[1])

    def over(self, left: float) -> Clipped:
        """The same of gradients that were divided by a number."""
        return Clipped(self.slope / left, self.variance / left**2)


@dataclass(frozen=True)
class Certainty:
    """What the gradients were, for the posterior once residuals are known.

    Attributes
    ----------
    rounds : Rounds
    design : PrivateDesign
    plan : Plan
    clip : float
        Of the last gradient.
    left : float
        What clips were expected to leave, by which gradients were divided already.
    """

    rounds: Rounds
    design: PrivateDesign
    plan: Plan
    clip: float
    left: float

    def of(self, regression: Regression, residual: FloatArray) -> Regression:
        """The same coefficients, with their posterior covariance.

        Parameters
        ----------
        regression : Regression
        residual : ndarray of shape (K, K)
            Released covariance of residuals.
        """
        plan, pairs, theta = self.plan, regression.pairs, regression.coefficients
        d, design = plan.n_features, self.design
        clipped = Clipped.of(plan.weights, residual, self.clip).over(self.left)
        left = np.diag(residual)
        energy = left + np.maximum(np.einsum("ik,ikjk,jk->k", theta, regression.moments, theta), 0.0)
        known = (design.feature_shares[: d - 1], energy, plan.n, design.groups.owner[: d - 1])
        if pairs is None:
            of_outputs = clipped.slope.mean(axis=0)
            mean = float(of_outputs @ energy / energy.sum())
            y, v, a = self.rounds.together(theta, mean * np.eye(d))
            sampling = (clipped.variance / clipped.slope).mean(axis=0)
            slopes = of_outputs / mean
            clipping = {"residual": sampling, "slopes": slopes}
            covariance = posteriors(y, v, a, self.rounds.active, *known, **clipping, spectra=WIDER_SPECTRA)[1]
            return replace(regression, covariance=covariance)
        return replace(regression, covariance=self._of_pairs(pairs, theta, clipped, residual, known))

    def _of_pairs(
        self, pairs: MeasuredPairs, theta: FloatArray, clipped: Clipped, residual: FloatArray, known: Known
    ) -> FloatArray:
        """Covariance of all pairs, (1, P, P)."""
        at = pairs.feature, pairs.output
        root = np.sqrt(clipped.slope[at])
        y, v, a = self.rounds.together(theta[at][:, None], pairs.moment * np.outer(root, root))
        ratio = float((clipped.variance / (clipped.slope * np.diag(residual)))[at].mean())
        left = ratio * float(np.trace(residual))
        return posterior_of_pairs(y, v, a, pairs, *known, residual=left, spectra=WIDER_SPECTRA)[1]
