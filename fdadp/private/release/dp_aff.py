"""DP-AFF: private additive function-on-function regression by noisy residual gradients on white features.

Each round releases the gradient of the squared error at the current coefficients, clipped per person; all rounds
together are noisy measurements of ``A Θ*``, from which empirical Bayes with the known noise gives Θ. The noise scales
with the residual, not with the response, and a round once paid for is used to the end. Everything here sees public
values and what the cohort released.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from fdadp._common.typing import BoolArray, FloatArray, IntArray
from fdadp.privacy import Cohort, rowwise_matmul, rowwise_norm
from fdadp.private.denoise.empirical_bayes import (
    LEAST_EIGENVALUE,
    MOMENT_VARIANCE,
    WIDER_SPECTRA,
    Measurement,
    combine,
    posterior_of_pairs,
    posteriors,
    secant_update,
    steady,
)
from fdadp.private.denoise.posterior_from_gradients import gaussian_draws
from fdadp.private.plan.budget_plan import Plan
from fdadp.private.plan.private_design import PrivateDesign
from fdadp.private.release.planned_releases import Releases, start_regression
from fdadp.private.release.residual_sizes import PrivateFit, Regression, finish
from fdadp.private.rows.pointwise_gradients import MeasuredPairs
from fdadp.private.rows.row_functions import Block, RowFunctions
from fdadp.rounds.posterior_means import gain

# Rounds of noisy gradients: what all of them together measure of ``A Θ*``, and a guard against too long steps.
#
# The measured energy of a gradient must not grow from round to round; where it does, steps are shortened and start
# again from the best point.


GUARD_SDS = 3
"""Energies of gradients count as grown from so many sds of noise on."""
GROWN, GROWN_QUIET, QUIET = 2.0, 1.3, 1e-4
"""And from so many times the least on; the second from a noise per person of the third down, where steps otherwise go
to and fro between points that are about as bad."""
DRAWS, SEED = 4000, 1
"""Public draws of features and residuals."""


def left_by_clip(spreads: FloatArray, clip: float) -> float:
    """Share of a gradient that its clip leaves, where features and residuals are normal.

    What is clipped pulls less than it should: ``E[κ f_j² r_k²]`` over what it is for κ = 1, as a mean over the entries
    by their energies, ``κ = min(1, clip/|g|)`` the factor of a person's gradient g.

    Parameters
    ----------
    spreads : ndarray of shape (D, K)
        Root mean squares of the entries of gradients; the first feature is the constant.
    clip : float
        In the same units.
    """
    rng = np.random.default_rng(SEED)
    features = rng.normal(size=(DRAWS, spreads.shape[0])) ** 2
    features[:, 0] = 1.0
    energies = ((features @ spreads**2) * rng.normal(size=(DRAWS, spreads.shape[1])) ** 2).sum(axis=1)
    return float((np.minimum(1.0, clip / np.sqrt(energies)) * energies).sum() / energies.sum())


class Rounds:
    """Gradients that were released, and the second moment A of the features that they show.

    Parameters
    ----------
    weights : ndarray of shape (D, K)
        Of the pairs (feature, output); 0: not measured.
    variance : float or ndarray of shape (D, D)
        Prior variance of an entry of A about its prior mean.
    start : ndarray of shape (D, D), optional
        Prior mean of A; default the identity.
    local : bool
        Whether A is that near the last gradient, rather than near the first: for many rounds.
    least : float
        Least eigenvalue of A.
    quiet : bool
        Whether there is so little noise that less than twice the energy is worse, and half of it a reason for longer
        steps again.
    """

    def __init__(
        self,
        weights: FloatArray,
        variance: float | FloatArray,
        start: FloatArray | None = None,
        least: float = LEAST_EIGENVALUE,
        *,
        local: bool = False,
        quiet: bool = False,
    ) -> None:
        self.active: BoolArray = np.asarray(weights > 0)
        self.weights = np.where(self.active, weights, 1.0)
        self.variance, self.least, self.local, self.quiet = variance, least, local, quiet
        self.moment = self.start = np.eye(len(weights)) if start is None else start  # white features have about I
        self._measurements: list[Measurement] = []
        self._damping = 1.0
        self._best: tuple[float, int] | None = None

    def add(self, total: FloatArray, sd: float, theta: FloatArray, unit: float) -> tuple[FloatArray, FloatArray]:
        """Take one gradient in.

        Parameters
        ----------
        total : ndarray of shape (D, K)
            Released sum, in weighted coordinates.
        sd : float
            Of the noise in its entries.
        theta : ndarray of shape (D, K)
            Coefficients that it was measured at.
        unit : float
            What one unit of A is in the sum.

        Returns
        -------
        target, noise : ndarray of shape (D, K)
            ``A Θ*`` as measured, and the variances of its noise; A is :attr:`moment`.
        """
        t, scale = len(self._measurements), self.weights * unit
        gradient = np.where(self.active, total / scale, 0.0)
        self._measurements.append((gradient, theta, np.where(self.active, (sd / scale) ** 2, np.inf)))
        energy, base = float((total**2).sum()), t
        noisy = GUARD_SDS * sd**2 * math.sqrt(2 * int(self.active.sum()))
        grown = GROWN_QUIET if self.quiet else GROWN
        if self._best is not None and energy > grown * self._best[0] + noisy:
            self._damping *= 2
            base = self._best[1]
        elif self.quiet and self._best is not None and energy < self._best[0] / 2:
            self._damping = max(1.0, self._damping / 2)
        if self._best is None or energy < self._best[0]:
            self._best = (energy, t)
        moment = self._learned(self.start)
        self.moment = moment + (self._damping - 1) * np.eye(len(moment))
        return combine(self._measurements, self._measurements[base][1], self.moment, self.variance)

    def together(self, theta: FloatArray, start: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """What all rounds say near coefficients (D, K) that are settled on: no step is to be taken, none is shortened.

        Parameters
        ----------
        theta : ndarray of shape (D, K)
        start : ndarray of shape (D, D)
            Prior mean of A.

        Returns
        -------
        target, noise : ndarray of shape (D, K)
            As of :meth:`add`.
        moment : ndarray of shape (D, D)
        """
        moment = self._learned(start)
        return *combine(self._measurements, theta, moment, self.variance), moment

    def _learned(self, start: FloatArray) -> FloatArray:
        known = start, self.variance, self._measurements, self.active
        return secant_update(*known, local=self.local, least=self.least)


# How well coefficients are known, once the size of residuals is: the posterior covariance that standard errors are of.
#
# While gradients are released nothing is known of residuals but a guess, and persons' gradients are taken to count in
# full. Both are known better afterwards, from released values, at no cost of privacy. A person's gradient ``f r'``, of
# norm ``|w f r'| = ρ``, counts by ``c = min(1, C/ρ)``. So of a step of the coefficients a gradient shows but
# ``a_jk = E c f_j² r_k² / E r_k²`` (by Stein's identity, residuals being Gaussian), and its sampling variance is
# ``E c² f_j² r_k² / n``: an M-estimator's sandwich (Huber 1964, doi:10.1214/aoms/1177703732), in which the noise for
# privacy, too, is divided by a² (docs/theory/dp-aff.md#standard-errors).


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
    def of(cls, weights: FloatArray, residual: FloatArray, clip: float, left: float = 1.0) -> Clipped:
        """By public draws.

        Parameters
        ----------
        weights : ndarray of shape (D, K)
            Of the pairs in the gradient.
        residual : ndarray of shape (K, K)
            Covariance of residuals.
        clip : float
            Norm of weighted gradients from which on they count as that.
        left : float
            By which gradients were divided.
        """
        f = gaussian_draws(len(weights))
        r = np.random.default_rng(1).standard_normal((len(f), len(residual))) @ np.linalg.cholesky(residual).T
        f2, r2 = f * f, r * r
        norm = np.sqrt((rowwise_matmul(f2, np.ascontiguousarray(weights**2)) * r2).sum(axis=1))
        count = np.minimum(1.0, clip / np.maximum(norm, TINY))[:, None]
        products = [np.asarray(rowwise_matmul(np.ascontiguousarray(f2.T), c * r2)) / len(f) for c in (count, count**2)]
        return cls(products[0] / np.diag(residual) / left, products[1] / left**2)


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
        """Coefficients with their posterior covariance; the same ones, where directions were not released.

        Parameters
        ----------
        regression : Regression
        residual : ndarray of shape (K, K)
            Released covariance of residuals.
        """
        plan, pairs, theta = self.plan, regression.pairs, regression.coefficients
        d, design = plan.n_features, self.design
        clipped = Clipped.of(plan.weights, residual, self.clip, self.left)
        left = np.diag(residual)
        energy = left + np.maximum(np.einsum("ik,ikjk,jk->k", theta, regression.moments, theta), 0.0)
        known = (design.feature_shares[: d - 1], energy, plan.n, design.groups.owner[: d - 1])
        if pairs is None:
            of_outputs = clipped.slope.mean(axis=0)
            mean = float(of_outputs @ energy / energy.sum())
            y, v, a = self.rounds.together(theta, mean * self.rounds.start)
            sampling = (clipped.variance / clipped.slope).mean(axis=0)
            slopes = of_outputs / mean
            clipping = {"residual": sampling, "slopes": slopes}
            found = posteriors(y, v, a, self.rounds.active, *known, **clipping, spectra=WIDER_SPECTRA)
            seen = plan.budget_shares.get("directions")
            return replace(regression, coefficients=found[0] if seen else theta, covariance=found[1])
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


def fit_dp_aff(cohort: Cohort, plan: Plan, rows: RowFunctions) -> PrivateFit:
    """Spend the budget of a cohort as planned.

    Parameters
    ----------
    cohort : Cohort
        Over the curves (X, Y).
    plan : Plan
    rows : RowFunctions
        What is computed from a person's rows, in the coordinates that the plan is for; filled with released values.
    """
    releases, energies, mean_variance, energy, outside = start_regression(cohort, plan, rows)
    theta, covariance, moment, edf, certainty = _regress(releases, rows, energies)
    regression = Regression(theta, covariance, moment, edf, mean_variance, energy, outside, rows.pairs)
    return finish(releases, rows, regression, certainty.of)


Solution = tuple[FloatArray, FloatArray, FloatArray, FloatArray, Certainty]
"""Coefficients, covariance, second moment and edf of a :class:`Regression`; what makes the covariance of the end."""


def _regress(releases: Releases, rows: RowFunctions, prior_energy: FloatArray) -> Solution:
    """Gradient rounds; posterior mean, covariances, second moment and edf as a :class:`Regression` has them."""
    plan, tuning, design = releases.plan, releases.plan.tuning, rows.design
    pairs, w = rows.pairs, rows.weights
    d, k = w.shape
    energies = design.gradient_shares[: plan.n_features, : plan.n_outputs] / design.response_shares[: plan.n_outputs]
    weighted = plan.weights * np.sqrt(prior_energy * energies)
    guess = math.sqrt((weighted**2).sum())
    theta, covariance, edf = np.zeros((d, k)), np.zeros((k, d, d)), np.zeros(k)
    released = releases.affords("gradient scale")
    usual = tuning.first_clip * guess
    left = 1.0 if released else left_by_clip(weighted, usual)  # released clips leave most, and more rounds learn it
    law: tuple[Any, ...] = (MOMENT_VARIANCE,) if pairs is None else (pairs.uncertain, pairs.moment)
    law = _shown_by_directions(releases, rows) if releases.affords("directions") else law
    rounds = Rounds(w, *law, local=released, quiet=plan.eta <= QUIET)
    shares, owner = design.feature_shares[: plan.n_features - 1], design.groups.owner[: plan.n_features - 1]
    for t in range(plan.rounds):
        rows.coefficients = theta if pairs is None else pairs.matrix(theta)
        clip, number = usual, f" {t + 1}"
        if released:
            between = tuning.gradient_scale.range(guess)
            clip = plan.clip_factor * releases.size("gradient scale", rows.gradient_norm, between, number=number)[0]
        if plan.pure:
            total, sd = releases.sum_outer("gradient", rows.factors, clip=clip, number=number)
        else:
            total, sd = releases.sum_outer("gradient", rows.weighted, weights=w, clip=clip, number=number)
        target, noise = rounds.add(total, sd, theta, plan.n * left)
        if pairs is None:
            known = (rounds.moment, rounds.active, shares, prior_energy, plan.n, owner)
            found = posteriors(target, noise, *known, signal=tuning.signal)
        else:
            of_pairs = (rounds.moment, pairs, shares, prior_energy, plan.n, owner)
            found = posterior_of_pairs(target, noise, *of_pairs, signal=tuning.signal)
        theta, covariance, edf = found
    coefficients = theta if pairs is None else pairs.matrix(theta)
    return coefficients, covariance, rounds.moment, edf, Certainty(rounds, design, plan, clip, left)


# Directions of features: along which shapes curves vary.
#
# White features have about the identity as their second moment A where curves are as the prior says. Real curves may
# vary along few shapes; then gradients say nothing about others, and a fit that believes in the identity takes that for
# knowledge of the coefficient function there. So A is looked at first (docs/theory/dp-aff.md#directions).


AFTER_DIRECTIONS = MOMENT_VARIANCE / 5
"""Prior variance of an entry of A about what directions show: they know neither sizes of features nor clips."""


def with_directions(plan: Plan, design: PrivateDesign) -> Plan:
    """The plan with a look at directions, where it is accurate enough; its share is taken from all others alike."""
    size = int(design.linear_in_curves(plan.n_features - 1).sum())
    if size < 2 or design.shares_of_pairs is not None:
        return plan
    noise = size * plan.eta * (math.sqrt(plan.n_features / 2) if plan.pure else 1.0)
    share = plan.tuning.directions.share(noise, pure=plan.pure)
    return plan.beside({"directions": share})


def directions_of(rows: RowFunctions, block: Block) -> FloatArray:
    """Features of rows that are linear in curves, of norm 1; 0 in the place of others, shape (m, D - 1)."""
    f = rows.row(block).features[:, 1:]
    f = np.where(rows.design.linear_in_curves(f.shape[1]), f, 0.0)
    return f / np.maximum(rowwise_norm(f), TINY)[:, None]


def _shown_by_directions(releases: Releases, rows: RowFunctions) -> tuple[FloatArray, FloatArray, float]:
    """Variances of entries of A, A as it is shown by the mean of ``f f' / |f|²`` times the number of features, and its
    least eigenvalue: an entry's noise.
    """
    d = releases.plan.n_features
    linear = 1 + np.flatnonzero(rows.design.linear_in_curves(d - 1))
    at, size = np.ix_(linear, linear), linear.size
    shown, sd = releases.second_moment("directions", partial(directions_of, rows), clip=1.0)
    prior, variance, start = np.eye(size), np.full((d, d), MOMENT_VARIANCE), np.eye(d)
    sure = gain(MOMENT_VARIANCE, (size * sd) ** 2 * (1 + prior) / 2)
    start[at] = prior + sure * (size * shown[np.ix_(linear - 1, linear - 1)] - prior)
    variance[at] = AFTER_DIRECTIONS
    least = min(size * sd, LEAST_EIGENVALUE)
    return variance, steady(start, least), least
