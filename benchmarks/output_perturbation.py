"""A private additive model that is not built this way: the ridge solution, with noise on its coefficients.

    model = AdditiveFunctionOnFunction(privacy=privacy, bounds=bounds, mechanism=OutputPerturbation())

The noise has to cover what one person can move the solution by, in the worst case over all other people. That is far
more than what it takes to hide a person in a sum. It is correct and simple, and shows why the default is built of noisy
gradients (``docs/decisions/0022-gradients-instead-of-moments.md``). Share explained, scenario S1, (ε, δ) = (1, 1e-6),
four cohorts a cell (``python benchmarks/mechanisms.py``, ``docs/decisions/0010-output-perturbation-in-a-ball.md``):

    n                        1,000   6,000  30,000
    output perturbation        .04     .72     .86
    DP-AFF                     .95     .99    1.00

It is also an example of a mechanism that somebody else writes: one subclass of ``EndToEnd``, one of ``Plan``.

Sources: Chaudhuri, Monteleoni & Sarwate (2011), JMLR 12:1069-1109 (output perturbation by strong convexity); the bound
is :mod:`fdadp.privacy.kernel._loss_minimisers`'s.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np

from fdadp.errors import PrivacyError
from fdadp.privacy import Cohort
from fdadp.private.denoise.empirical_bayes import MOMENT_VARIANCE, posteriors
from fdadp.private.plan.budget_plan import Plan
from fdadp.private.plan.budget_sharing import make_plan
from fdadp.private.plan.private_design import PrivateDesign
from fdadp.private.release.mechanisms import EndToEnd
from fdadp.private.release.planned_releases import start_regression
from fdadp.private.release.residual_sizes import PrivateFit, Regression, finish
from fdadp.private.rows.row_functions import RowFunctions

TARGET_CLIP = 1.5
"""Clip of a response about its mean, relative to its private scale; the radius of the coefficients is 1."""
FEATURE_CLIP = 2
"""Norm of features from which on a person is down-weighted, over what the prior expects."""
MOST_FEATURES = 41
"""Features, the constant among them, are fewer than this."""
RIDGES = 10.0 ** np.linspace(-2, 1, 13)
COEFFICIENTS = "coefficients"
"""Key of the release in a plan, and its name in a ledger."""


@dataclass(frozen=True, kw_only=True, repr=False)
class OutputPerturbation(EndToEnd):
    """The ridge solution with noise on its coefficients for the worst case.

    Parameters
    ----------
    prior, allow_useless
        As of every mechanism that is private end to end (:class:`~fdadp.private.release.mechanisms.EndToEnd`).
    """

    name: ClassVar[str] = "output"

    def plan(self, n: float, noise_multiplier: float, design: PrivateDesign, *, pure: bool) -> RidgePlan:
        """Choose sizes and the ridge penalty."""
        return plan_output(n, noise_multiplier, design, pure=pure)

    def spend(self, cohort: Cohort, plan: RidgePlan, rows: RowFunctions) -> tuple[PrivateFit, None]:
        """Release the coefficients; nothing is kept beside the fit."""
        return fit_output(cohort, plan, rows), None


@dataclass(frozen=True, kw_only=True)
class RidgePlan(Plan):
    """A plan with a ridge penalty.

    Attributes
    ----------
    ridge : float
        Over n.
    """

    ridge: float


def plan_output(n: float, noise_multiplier: float, design: PrivateDesign, *, pure: bool) -> RidgePlan:
    """Plan one noisy ridge solution: sizes and ridge penalty of the least expected loss under the prior.

    Notes
    -----
    With |f| <= C and responses of size 1, one person moves the coefficients by at most C (C + 1.5)/Λ. Λ = n ridge
    shrinks them by 1/(1 + ridge), which is undone; that leaves what the features' unknown second moment does.
    """
    plan = make_plan(n, noise_multiplier, design, pure=pure)
    shares = {key: 0.0 if key.startswith("gradient") else share for key, share in plan.budget_shares.items()}
    shares[COEFFICIENTS] = share = 1 - sum(shares.values())
    tau2 = design.feature_shares
    tau2 = np.concatenate(([tau2[0]], tau2)) / tau2.sum()
    lam = design.response_shares
    eta = plan.eta / (share if pure else math.sqrt(share))
    best = (np.inf, 2, 1, 1.0)
    for d in range(2, min(tau2.size, MOST_FEATURES)):
        clip = _feature_clip(d)
        for k in range(1, lam.size + 1):
            signal = 0.5 * tau2[:d, None] * lam[:k]
            for ridge in RIDGES:
                sd = clip * (clip + TARGET_CLIP) / ridge * eta * (1 + ridge) * (math.sqrt(d * k) if pure else 1.0)
                noise = sd**2 + MOMENT_VARIANCE * signal.sum(axis=0) * (ridge / (1 + ridge)) ** 2
                loss = (signal * noise / (signal + noise)).sum() - signal.sum()
                if loss < best[0]:
                    best = (float(loss), d, k, float(ridge))
    _, d, k, ridge = best
    own = {field.name: getattr(plan, field.name) for field in fields(plan)}
    own |= {"budget_shares": shares, "weights": np.ones((d, k)), "rounds": 1}
    own |= {"feature_clip": FEATURE_CLIP * math.sqrt(d - 1)}
    return RidgePlan(**own, ridge=ridge)


def _feature_clip(d: int) -> float:
    """Norm of d weighted features, the constant among them (see ``RowFunctions.derived``)."""
    return math.sqrt(1 + FEATURE_CLIP**2 * (d - 1))


def fit_output(cohort: Cohort, plan: RidgePlan, rows: RowFunctions) -> PrivateFit:
    """Spend the budget of a cohort as planned."""
    if plan.max_rows > 1:
        raise PrivacyError("person_rows must be 'mean' with output perturbation, got 'sum'")
    releases, prior_energy, mean_variance, energy, outside = start_regression(cohort, plan, rows)
    d, k = plan.weights.shape
    size = math.sqrt(energy)
    rows.coefficients = np.zeros((d, k))  # residuals are responses less their mean
    solution, sd = releases.cohort.perturbed_minimum(
        rows.weighted,
        loss="squared",
        perturb="output",
        ridge=plan.n * plan.ridge,
        clip=_feature_clip(d),
        target_clip=TARGET_CLIP * size,
        radius=size,
        share=releases.plan.budget_shares[COEFFICIENTS],
        name=COEFFICIENTS,
    )
    grown = 1 + plan.ridge
    variance = np.tile((grown * sd) ** 2 + MOMENT_VARIANCE * prior_energy * (plan.ridge / grown) ** 2, (d, 1))
    active = np.ones((d, k), dtype=bool)
    theta, covariance, edf = posteriors(
        grown * solution, variance, np.eye(d), active, rows.design.feature_shares[: d - 1], prior_energy, plan.n
    )
    return finish(releases, rows, Regression(theta, covariance, np.eye(d), edf, mean_variance, energy, outside))
