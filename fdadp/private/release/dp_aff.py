"""DP-AFF: private additive function-on-function regression by noisy residual gradients on white features.

Each round releases the gradient of the squared error at the current coefficients, clipped per person; all rounds
together are noisy measurements of ``A Θ*``, from which empirical Bayes with the known noise gives Θ. The noise scales
with the residual, not with the response, and a round once paid for is used to the end. Everything here sees public
values and what the cohort released.
"""

from __future__ import annotations

import math

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.privacy import Cohort
from fdadp.private.denoise.bayes import MOMENT_VARIANCE, posterior_of_pairs, posteriors
from fdadp.private.plan.design import PrivateDesign
from fdadp.private.plan.plan import Plan
from fdadp.private.release.coefficient_posterior import Certainty
from fdadp.private.release.intervals import PrivateFit, Regression, finish, release_outside
from fdadp.private.release.location import locate, mean_response
from fdadp.private.release.releases import Releases
from fdadp.private.release.rounds import Rounds, left_by_clip
from fdadp.private.rows.rows import RowFunctions


def fit_dp_aff(cohort: Cohort, plan: Plan, design: PrivateDesign, rows: RowFunctions) -> PrivateFit:
    """Spend the budget of a cohort as planned.

    Parameters
    ----------
    cohort : Cohort
        Over the curves (X, Y).
    plan : Plan
    design : PrivateDesign
    rows : RowFunctions
        What is computed from a person's rows; filled with released values as they come.
    """
    releases = Releases(cohort, plan)
    locate(releases, rows)
    mean_variance, energy = mean_response(releases, rows)
    outside = release_outside(releases, rows)
    k = plan.n_outputs
    prior_energy = design.response_shares[:k] / design.response_shares[:k].sum() * energy
    rows.begin_regression(plan)
    releases = releases.derive(rows)
    theta, covariance, moment, edf, certainty = _regress(releases, design, rows, prior_energy)
    regression = Regression(theta, covariance, moment, edf, mean_variance, energy, outside, rows.pairs)
    return finish(releases, design, rows, regression, certainty.of)


Solution = tuple[FloatArray, FloatArray, FloatArray, FloatArray, Certainty]
"""Coefficients, covariance, second moment and edf of a :class:`Regression`; what makes the covariance of the end."""


def _regress(releases: Releases, design: PrivateDesign, rows: RowFunctions, prior_energy: FloatArray) -> Solution:
    """Gradient rounds; posterior mean, covariances, second moment and edf as a :class:`Regression` has them."""
    plan, tuning, pairs, w = releases.plan, releases.plan.tuning, rows.pairs, rows.weights
    d, k = w.shape
    energies = design.gradient_shares[: plan.n_features, : plan.n_outputs] / design.response_shares[: plan.n_outputs]
    weighted = plan.weights * np.sqrt(prior_energy * energies)
    guess = math.sqrt((weighted**2).sum())
    theta, covariance, edf = np.zeros((d, k)), np.zeros((k, d, d)), np.zeros(k)
    released = releases.affords("gradient scale")
    usual = tuning.first_clip * guess
    left = 1.0 if released else left_by_clip(weighted, usual)  # released clips leave most, and more rounds learn it
    law = (MOMENT_VARIANCE,) if pairs is None else (pairs.uncertain, pairs.moment)
    rounds = Rounds(w, *law, local=released)
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
