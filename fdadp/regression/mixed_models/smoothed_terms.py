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

from fdadp._common.symmetric_matrices import inverse_root, positive_part
from fdadp._common.typing import FloatArray
from fdadp.regression.model_settings import ModelSettings
from fdadp.repeated.fixed_effects import MeanTerm, Weighed
from fdadp.solve.errors.sandwich import ClusterErrors, cluster_errors
from fdadp.solve.fit.additive_fit import AdditiveFit, fit_gaussian
from fdadp.solve.form.long_form_design import LongForm, System, kept_of

SEEN = 1e-12
"""Share of the largest information below which a direction is not identified without penalties."""
LOGARITHMS = np.arange(-14, 12.01, 0.25)
"""Of smoothing parameters that are integrated over, about where penalty and information are alike."""


@dataclass(frozen=True, eq=False)
class SmoothedTerms:
    """Smoothed estimates ``H⁻¹ W b``, ``H = W + λ S``, of unpenalised ones b.

    Attributes
    ----------
    fit : AdditiveFit
        With W as information, and H⁻¹ as spread.
    working : System
        Its normal equations, of errors that are alike.
    spread : ndarray of shape (p, p)
        V, the covariance of b in the mixed model.
    restricted : float
        -log restricted likelihood of the mixed model at these smoothing parameters.
    """

    fit: AdditiveFit
    working: System
    spread: FloatArray
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
        exact = fit_gaussian(form, system, fit.smoothing_parameters, n, scale=scale)
        return cls(fit, working, spread, exact.criterion)

    @property
    def turn(self) -> FloatArray:
        """``H⁻¹ W V``: from scores of the mixed model to changes of the coefficients, shape (p, p)."""
        return np.asarray(self.fit.inverse @ self.fit.gram @ self.spread)

    def unsure(self, spread: FloatArray | None = None) -> FloatArray:
        """What not knowing the smoothing parameters adds to the covariance of the coefficients, shape (p, p).

        Each in turn is integrated over, by the restricted likelihood of errors that are alike and a flat prior on the
        standard deviation ``λ^{-1/2}`` of what it penalises. Where REML takes an effect for constant, λ is infinite and
        its derivatives are 0; the likelihood of other λ is not.

        Parameters
        ----------
        spread : ndarray of shape (p, p), optional
            Covariance of the unpenalised estimates. Default: the mixed model's.

        References
        ----------
        Gelman (2006), Prior distributions for variance parameters in hierarchical models, doi:10.1214/06-BA117A.
        """
        own, spread = self.fit, self.spread if spread is None else spread
        added = np.zeros_like(spread)
        if own.hessian is None:  # smoothing parameters are given
            return added
        known = _covariance(own, spread)
        for m in range(own.form.n_penalties):
            along = _AlongOne.of(own, m)
            weights = along.likelihood(self.working.cross) * along.factors**-0.5
            weights /= weights.sum()
            apart = along.coefficients(self.working.cross) - own.coefficients
            moved = along.covariance(own.gram @ spread @ own.gram, weights)
            added += positive_part(moved - known + (apart.T * weights) @ apart)
        return added

    def outcome(self) -> AdditiveFit:
        """The fit with its covariance in place of that of errors that are alike."""
        spread = _covariance(self.fit, self.spread) / self.fit.sigma2
        return replace(self.fit, spread=spread, criterion=self.restricted, hessian=None)

    def by_person(self, scores: FloatArray) -> ClusterErrors:
        """Errors from scores (I, p) of the mixed model, one a person."""
        found = cluster_errors(replace(self.fit, hessian=None), scores @ self.turn.T)
        seen = scores @ self.spread
        return replace(found, covariance=found.covariance + self.unsure(seen.T @ seen))


def _covariance(fit: AdditiveFit, spread: FloatArray) -> FloatArray:
    """Of smoothed estimates about the truth at known smoothing parameters, of unpenalised ones of covariance `spread`.

    Squares of what penalties take away are as Bayes' posterior has them.
    """
    taken = fit.inverse @ fit.gram
    found = taken @ (spread @ taken.T - fit.sigma2 * fit.inverse) + fit.bayesian_covariance
    return np.asarray((found + found.T) / 2)


@dataclass(frozen=True, eq=False)
class _AlongOne:
    """A smoothed fit at other values of one smoothing parameter: ``H⁻¹ = K D K'`` with D diagonal.

    Attributes
    ----------
    fit : AdditiveFit
    factors : ndarray of shape (J,)
        The parameter, in units in which penalty and information are alike.
    turn : ndarray of shape (p, r)
        K.
    shares : ndarray of shape (J, r)
        D.
    penalties : ndarray of shape (J, p)
        Diagonals of all penalties.
    """

    fit: AdditiveFit
    factors: FloatArray
    turn: FloatArray
    shares: FloatArray
    penalties: FloatArray

    @classmethod
    def of(cls, fit: AdditiveFit, m: int) -> _AlongOne:
        own, seen = fit.form.stacked_penalties[m], fit.identified
        others = np.delete(fit.smoothing_parameters, m) @ np.delete(fit.form.stacked_penalties, m, axis=0)
        alike = fit.gram.diagonal()[own > 0].sum() / own.sum()
        root = inverse_root((fit.gram + np.diag(others + alike * own))[np.ix_(seen, seen)], SEEN)
        taken, axes = np.linalg.eigh(alike * (root.T * own[seen]) @ root)
        factors, turn = np.exp(LOGARITHMS), np.zeros((len(seen), len(taken)))
        turn[seen] = root @ axes
        left = (1 - np.clip(taken, 0, 1)) + factors[:, None] * np.clip(taken, 0, 1)
        return cls(fit, factors, turn, 1 / left, others + factors[:, None] * alike * own)

    def coefficients(self, cross: FloatArray) -> FloatArray:
        """At each value, shape (J, p)."""
        return np.asarray((self.shares * (self.turn.T @ cross)) @ self.turn.T)

    def likelihood(self, cross: FloatArray) -> FloatArray:
        """Restricted, over its greatest value, shape (J,)."""
        taken = self.shares @ (self.turn.T @ cross) ** 2 / self.fit.scale
        held = self.penalties[:, (self.penalties[0] > 0) & self.fit.identified]
        twice = taken + np.log(self.shares).sum(axis=1) + np.log(held).sum(axis=1)
        return np.asarray(np.exp((twice - twice.max()) / 2))

    def covariance(self, meat: FloatArray, weights: FloatArray) -> FloatArray:
        """Mean of :func:`_covariance` at all values, of ``meat = W V W`` (p, p) and weights (J,); shape (p, p)."""
        sigma2 = self.fit.sigma2
        inner = self.turn.T @ (meat - sigma2 * self.fit.gram) @ self.turn
        inner *= (self.shares.T * weights) @ self.shares
        inner[np.diag_indices_from(inner)] += sigma2 * (weights @ self.shares)
        return np.asarray(self.turn @ inner @ self.turn.T)


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
