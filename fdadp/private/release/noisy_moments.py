"""``mechanism="moments"``: one noisy second moment of features and responses, from which the model follows.

Sufficient-statistics perturbation on publicly whitened features. The statistic is kept (``moments_``): any model that
is linear in the features can be computed from it without further privacy cost. It explains less than DP-AFF, whose
noise scales with the residual and not with the response (``docs/decisions/0022-gradients-instead-of-moments.md``).

Sources: Vu & Slavković (2009), doi:10.1109/ICDMW.2009.52 (sufficient statistics). Sensitivity:
``docs/theory/kernel.md#second-moments``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.privacy import Cohort, rowwise_norm
from fdadp.privacy.rows._sealed_row_functions import RowFunction
from fdadp.private.denoise.empirical_bayes import posteriors, steady
from fdadp.private.plan.budget_plan import Plan
from fdadp.private.plan.budget_sharing import make_plan
from fdadp.private.plan.private_design import PrivateDesign
from fdadp.private.public.tuned_constants import GAUSSIAN, PURE
from fdadp.private.release.planned_releases import start_regression
from fdadp.private.release.residual_sizes import PrivateFit, Regression, finish
from fdadp.private.rows.row_functions import Block, RowFunctions
from fdadp.rounds.posterior_means import gain

SCALE_SHARE = 0.03
"""Of the budget of the second moment, for the size of a person's contribution."""
MOST_FEATURES = 41
"""Features, the constant among them, are fewer than this."""


@dataclass(frozen=True)
class NoisyMoments:
    """A private second moment, for as many models as wanted: post-processing costs nothing.

    Attributes
    ----------
    features : ndarray of shape (D, D)
        Mean of f f' over persons, with noise; f are the white features, the constant first.
    cross : ndarray of shape (D, K)
        Mean of f (c - mean)' with c the response coefficients.
    responses : ndarray of shape (K, K)
        Mean of (c - mean)(c - mean)'.
    features_sd, cross_sd, responses_sd : float
        Standard deviation of the noise off the diagonals (on the diagonals √2 times that).
    n : float
        Declared or released number of persons.
    """

    features: FloatArray
    cross: FloatArray
    responses: FloatArray
    features_sd: float
    cross_sd: float
    responses_sd: float
    n: float


def plan_moments(n: float, noise_multiplier: float, design: PrivateDesign, *, pure: bool) -> Plan:
    """Plan one release of moments: the numbers of features and outputs with the least expected loss under the prior.

    Notes
    -----
    Rows are scaled such that features and responses have the same norm √D. A cross moment then has noise variance
    2 η² D relative to the response, and noise in the features' moment adds 2 η² D² times the explained variance.
    """
    tuning = replace(PURE if pure else GAUSSIAN, twice_from=0.0)
    plan = make_plan(n, noise_multiplier, design, pure=pure, tuning=tuning)
    shares = {key: 0.0 if key.startswith("gradient") else share for key, share in plan.budget_shares.items()}
    shares["moments"] = 1 - sum(share * plan.times(key) for key, share in shares.items())
    tau2 = design.feature_shares
    tau2 = np.concatenate(([tau2[0]], tau2)) / tau2.sum()
    lam = design.response_shares
    eta2 = plan.eta**2 / (shares["moments"] ** 2 if pure else shares["moments"])
    best, size = np.inf, (2, 1)
    for d in range(2, min(tau2.size, MOST_FEATURES)):
        for k in range(1, lam.size + 1):
            widen = (d + k + 1) / 2 if pure else 1.0  # variance of matrix Laplace noise over that of Laplace's, over 2
            noise = 2 * eta2 * widen * (d + 0.5 * d**2 * lam[:k])
            signal = tau2[:d, None] * lam[:k]
            loss = (signal * noise / (signal + noise)).sum() + lam.sum() * tau2.sum() - signal.sum()
            if loss < best:
                best, size = float(loss), (d, k)
    return replace(plan, budget_shares=shares, weights=np.ones(size), rounds=1, feature_clip=2 * math.sqrt(size[0] - 1))


def joint_of(rows: RowFunctions, ratio: float) -> tuple[RowFunction, RowFunction]:
    """Row functions: v = (features, responses times a ratio), both with the row's weight, (m, D + K); and |v|²."""

    def vector(block: Block) -> FloatArray:
        f, r = rows.weighted(block)
        return np.hstack((f, r * ratio))

    return vector, lambda block: rowwise_norm(vector(block)) ** 2


def fit_moments(cohort: Cohort, plan: Plan, rows: RowFunctions) -> tuple[PrivateFit, NoisyMoments]:
    """Spend the budget of a cohort as planned; returns the fit and the statistic it came from."""
    releases, prior_energy, mean_variance, energy, outside = start_regression(cohort, plan, rows)
    d, k = plan.weights.shape
    rows.coefficients = np.zeros((d, k))  # residuals are responses less their mean
    ratio = math.sqrt(d / energy)
    vector, norm = joint_of(rows, ratio)
    share = releases.plan.budget_shares["moments"]  # less where Y was located again
    between = plan.tuning.gradient_scale.range(2.0 * d)
    scale, _ = releases.size("moments scale", norm, between, share=SCALE_SHARE * share)
    clip = plan.clip_factor * scale
    moment, sd = releases.second_moment("moments", vector, clip=clip, share=(1 - SCALE_SHARE) * share)
    sd = sd / math.sqrt(2)  # from the diagonal to all else
    parts = moment[:d, :d], moment[:d, d:] / ratio, moment[d:, d:] / ratio**2
    statistic = NoisyMoments(*parts, sd, sd / ratio, sd / ratio**2, plan.n)
    a = _steady(statistic)
    # Noise in A acts as A-noise times the coefficients: of the size that the prior expects of them.
    variance = np.tile(statistic.cross_sd**2 + statistic.features_sd**2 * prior_energy, (d, 1))
    active = np.ones((d, k), dtype=bool)
    theta, covariance, edf = posteriors(
        statistic.cross, variance, a, active, rows.design.feature_shares[: d - 1], prior_energy, plan.n
    )
    fit = finish(releases, rows, Regression(theta, covariance, a, edf, mean_variance, energy, outside))
    return fit, statistic


def _steady(statistic: NoisyMoments) -> FloatArray:
    """Second moment of the features, shrunk towards the prior's identity by its known noise, eigenvalues >= 0.1."""
    d = len(statistic.features)
    away = statistic.features - np.eye(d)
    noise = statistic.features_sd**2
    signal = max(float((away**2).mean()) - noise, 0.0)
    return steady(np.eye(d) + away * gain(signal, noise))
