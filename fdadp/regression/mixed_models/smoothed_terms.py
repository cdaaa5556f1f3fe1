"""Terms beside random functions of persons: generalised least squares, smoothed as if its errors were alike along t.

Errors of persons and rows lie in few directions along t. A penalised likelihood that knows them takes what smoothing
leaves of an effect in all other directions for such an error, and takes all of that error off the effect. So a small
bias in directions with little noise becomes a large one in others: nominal 95 % held .87 of a weekend's effect. Here
penalties pull the unpenalised estimates only as far as errors of one size in all directions let them, and the
covariance counts the errors as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fdadp._common.symmetric_matrices import inverse_root
from fdadp._common.typing import FloatArray
from fdadp.regression.model_settings import ModelSettings
from fdadp.repeated.fixed_effects import MeanTerm, Weighed
from fdadp.solve.errors.sandwich import ClusterErrors, cluster_errors, with_smoothing_chosen_again
from fdadp.solve.fit.additive_fit import AdditiveFit, fit_gaussian
from fdadp.solve.form.long_form_design import LongForm, System, kept_of

SEEN = 1e-12
"""Share of the largest information below which a direction is not identified without penalties."""


@dataclass(frozen=True, eq=False)
class SmoothedTerms:
    """Smoothed estimates ``H⁻¹ W b``, ``H = W + λ S``, of unpenalised ones b.

    Attributes
    ----------
    fit : AdditiveFit
        With W as information, and H⁻¹ as spread.
    turn : ndarray of shape (p, p)
        ``H⁻¹ W V``, V the covariance of b: from scores of the mixed model to changes of the coefficients.
    sampling : ndarray of shape (p, p)
        ``H⁻¹ W V W H⁻¹``.
    restricted : float
        -log restricted likelihood of the mixed model at these smoothing parameters.
    """

    fit: AdditiveFit
    turn: FloatArray
    sampling: FloatArray
    restricted: float

    @classmethod
    def of(
        cls, settings: ModelSettings, form: LongForm, weights: FloatArray, system: System, n: int, scale: float
    ) -> SmoothedTerms:
        """Smooth with weights W (p, p); smoothing parameters are given, or REML's.

        Parameters
        ----------
        settings : ModelSettings
        form : LongForm
        weights : ndarray of shape (p, p)
        system : System
            Normal equations of generalised least squares times the scale.
        n : int
            Number of rows.
        scale : float
            The noise variance.
        """
        spread = scale * _inverse(system.gram)
        plain = spread @ system.cross / scale
        pulled = scale * weights @ plain
        working = System(scale * weights, pulled, float(plain @ pulled), system.n_rows)
        fit = fit_gaussian(form, working, settings.smoothing, n, settings.n_unpenalized, scale=scale)
        turn = scale * fit.inverse @ weights @ spread
        exact = fit_gaussian(form, system, fit.smoothing_parameters, n, scale=scale)
        sampling = scale * turn @ weights @ fit.inverse
        return cls(fit, turn, (sampling + sampling.T) / 2, exact.criterion)

    @property
    def bias(self) -> FloatArray:
        """Squares of what penalties take away, as Bayes' posterior has it, shape (p, p)."""
        own = self.fit
        return np.asarray(own.bayesian_covariance - own.sigma2 * own.inverse @ own.gram @ own.inverse)

    @property
    def covariance(self) -> FloatArray:
        """Of the coefficients about the truth at known smoothing parameters, shape (p, p)."""
        return self.sampling + self.bias

    @property
    def unsure(self) -> FloatArray:
        """What choosing smoothing parameters adds to it, shape (p, p)."""
        again = with_smoothing_chosen_again(self.fit)
        return np.asarray(again @ self.sampling @ again.T - self.sampling)

    def outcome(self) -> AdditiveFit:
        """The fit with its covariance in place of that of errors that are alike."""
        spread = self.covariance / self.fit.sigma2
        return replace(self.fit, spread=spread, criterion=self.restricted, hessian=None)

    def by_person(self, scores: FloatArray) -> ClusterErrors:
        """Errors from scores (I, p) of the mixed model, one a person."""
        return cluster_errors(self.fit, scores @ self.turn.T)


def alike_along(form: LongForm, terms: Sequence[MeanTerm], inner: Weighed, white: FloatArray) -> FloatArray:
    """Weights W of the coefficients (p, p): curves of features have their mean covariance at each point.

    Parameters
    ----------
    form : LongForm
    terms : sequence of MeanTerm
        Of all coefficients, also of those that are not kept.
    inner : Weighed
        Of a curve on k functions for each of m features.
    white : ndarray of shape (m, m)
        Covariance in each direction beyond these functions.
    """
    points, (m, k) = form.t.size, inner.right.shape
    four = _inverse(inner.gram.reshape(m * k, m * k)).reshape(m, k, m, k)
    mean = (np.einsum("ajbj->ab", four) + max(points - k, 0) * white) / points
    own = np.linalg.inv(mean)
    whole = np.block([[np.kron(a.mix.T @ own @ b.mix, a.along.T @ b.along) for b in terms] for a in terms])
    keep = kept_of(form.designs)
    return np.asarray(whole[np.ix_(keep, keep)])


def _inverse(gram: FloatArray) -> FloatArray:
    """Inverse of an information; 0 in directions of which it knows nothing."""
    root = inverse_root(gram, SEEN)
    return root @ root.T
