"""DP-AFF of zeros and ones and of counts: noisy gradients of the log-likelihood on white features.

As :mod:`fdadp.private.dp_aff`, with bounded residuals (:mod:`fdadp.private.bounded_rows`): no scale of the response, of
its gradients or of its residuals is released. The base rate comes first, and the fit starts there; the sum of all
residuals comes last, and sets the level right.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.privacy import Cohort, Privacy
from fdadp.private.bayes import SAMPLING, posteriors
from fdadp.private.bounded_rows import BoundedResponse, BoundedRows
from fdadp.private.columns import Column
from fdadp.private.design import PrivateDesign
from fdadp.private.intervals import Regression
from fdadp.private.location import locate
from fdadp.private.mechanisms import DPAFF
from fdadp.private.plan import Plan
from fdadp.private.ranges import Range
from fdadp.private.releases import Releases
from fdadp.private.rounds import Rounds
from fdadp.private.sharing import make_plan
from fdadp.private.tuning import GAUSSIAN, PURE, Tuning

__all__ = ["DPAFFOfFamily", "FamilyFit", "fit_family", "in_entries", "plan_family"]

BASE_RATE, BALANCE = 0.02, 0.03
"""Shares of the budget of the first and of the last release; in pure ε, where they count linearly, twice that."""
ROUNDS, FALL_OFF = 6, 0.6
"""Of the tuning where none is given: in each round the likelihood is linear about another point, and features that
tell little cost more than where residuals are scaled."""
CLIP = 0.8
"""Bound on a gradient over the size of weighted white features times the residual's largest."""
ENERGY = {"binomial": 5.0, "poisson": 0.5}
"""Variance of linear predictors that the prior expects."""
RARE = 0.005
"""Base rates count as this far from the ends of the range at least, relative to its width."""
SPREAD = 0.8
"""Information of a person over that at the base rate: means differ, and those near the ends tell less."""
INFORMATION_VARIANCE = 0.075
"""Prior variance of an entry of the information matrix, relative to that of a person, about the identity."""
LEVEL_VARIANCE = 0.25
"""Of the error of the constant before the last release."""
MEAN_SIZE = math.sqrt(2 / math.pi)
"""Mean absolute value of a standard Gaussian."""


@dataclass(frozen=True)
class FamilyFit:
    """What was released of a regression of bounded responses, and what follows from it.

    Attributes
    ----------
    columns : tuple of Column
        Covariates with their released locations and scales.
    y_location : float
        Linear predictor to which the features add.
    regression : Regression
        Of one output, the linear predictor.
    """

    columns: tuple[Column, ...]
    y_location: float
    regression: Regression

    @property
    def mean(self) -> FloatArray:
        """All of the mean is in `y_location`, and in the constant's coefficient."""
        return np.zeros(1)

    @property
    def residual_variance(self) -> FloatArray:
        """The scale of these families is known."""
        return np.ones(1)


@dataclass(frozen=True)
class DPAFFOfFamily:
    """The mechanism ``"dp-aff"`` for responses of a family.

    Attributes
    ----------
    mechanism : DPAFF
        Its settings.
    response : BoundedResponse
    """

    mechanism: DPAFF
    response: BoundedResponse

    @property
    def name(self) -> str:
        """As ledgers say it."""
        return self.mechanism.name

    @property
    def allow_useless(self) -> bool:
        """Fit even what is hopeless."""
        return self.mechanism.allow_useless

    def check_n(self, privacy: Privacy, n: float) -> None:
        """Refuse what is useless; see :meth:`fdadp.private.mechanisms.EndToEnd.check_n`."""
        self.mechanism.check_n(privacy, n)

    def plan(self, n: float, noise_multiplier: float, design: PrivateDesign, *, pure: bool) -> Plan:
        """Share out the budget over rounds of gradients."""
        return plan_family(n, noise_multiplier, design, pure=pure, tuning=self.mechanism.tuning)

    def rows(self, design: PrivateDesign, y_bounds: Range) -> BoundedRows:
        """Row functions; the bounds are those of the response."""
        return BoundedRows(design, self.response)

    def spend(self, cohort: Cohort, plan: Plan, design: PrivateDesign, rows: Any) -> tuple[FamilyFit, None]:
        """Spend it; nothing is kept beside the fit."""
        return fit_family(cohort, plan, design, rows), None


def plan_family(
    n: float, noise_multiplier: float, design: PrivateDesign, *, pure: bool, tuning: Tuning | None = None
) -> Plan:
    """Plan a fit; parameters as of :func:`fdadp.private.sharing.make_plan`."""
    if tuning is None:
        tuning = replace(PURE if pure else GAUSSIAN, fall_off=FALL_OFF, rounds=ROUNDS)
    plan = make_plan(n, noise_multiplier, design, pure=pure, tuning=tuning, located=design.located)
    times = 2 if pure else 1
    shares = {key: v for key, v in plan.budget_shares.items() if key.startswith("x ") or key == "scalars"}
    used = sum(share * plan.times(key) for key, share in shares.items())
    shares |= {"base rate": times * BASE_RATE, "balance": times * BALANCE}
    shares["gradient"] = (1 - used - times * (BASE_RATE + BALANCE)) / plan.rounds
    return replace(plan, budget_shares=shares)


def fit_family(cohort: Cohort, plan: Plan, design: PrivateDesign, rows: BoundedRows) -> FamilyFit:
    """Spend the budget of a cohort as planned."""
    releases = Releases(cohort, plan)
    locate(releases, rows)
    information = _base_rate(releases, rows)
    w = plan.weights[:, 0]
    rows.feature_norm = 1 if plan.pure and in_entries(w) else 2
    reach = float(rows.bounded.reach(rows.bounded.family.mean(np.array(rows.location))))
    rows.largest = CLIP * _size(w, rows.feature_norm) * (1 + reach) / 2
    rows.begin_regression(plan)
    releases = Releases(cohort.derive(rows.derived, name="features and responses"), plan)
    regression = _regress(releases, design, rows, information)
    location, regression = _level(releases, rows, regression, information)
    return FamilyFit(tuple(rows.columns.values()), location, regression)


def in_entries(w: FloatArray) -> bool:
    """Whether in pure ε Laplace's noise in each entry, for the L1 norm, is less than the spherical one for the L2 norm.

    Parameters
    ----------
    w : ndarray of shape (D,)
        Weights of the features.
    """
    return math.sqrt(2) * _size(w, 1) < math.sqrt(w.size + 1) * _size(w, 2)


def _size(w: FloatArray, norm: int) -> float:
    """About the norm of weighted white features, the constant first."""
    return float(w[0] + MEAN_SIZE * w[1:].sum()) if norm == 1 else float(np.sqrt((w**2).sum()))


def _base_rate(releases: Releases, rows: BoundedRows) -> float:
    """Start at the mean of all responses; returns the information of a person there."""
    response = rows.bounded
    found, sd = releases.mean("base rate", rows.about_the_middle, clip=0.5)
    least = min(max(RARE, 2 * sd), 0.5)
    share = float(np.clip(found[0] + 0.5, least, 1 - least if response.family.name == "binomial" else 1.0))
    low = response.bounds[0]
    rows.location = float(response.family.predictor(np.array(low + response.width * share)))
    # Too little information would be too long a step: take the most that noise lets be.
    surer = min(share + sd, 0.5) if share < 0.5 else max(share - sd, 0.5)
    at = surer if response.family.name == "binomial" else min(share + sd, 1.0)
    return SPREAD * response.information(low + response.width * at)


def _gradient(releases: Releases, rows: BoundedRows, number: str) -> tuple[FloatArray, float]:
    """Sum of clipped features times residuals, (D, 1), and the sd of the noise in each entry."""
    plan = releases.plan
    name, share = plan.name("gradient") + number, plan.budget_shares["gradient"]
    if plan.pure and rows.feature_norm == 2:
        total, sd = releases.cohort.sum_outer(
            rows.clipped, rows.residual, norm="nuclear", clip=rows.largest, share=share, name=name
        )
        return np.asarray(total), float(sd)
    total, sd = releases.cohort.sum(
        rows.gradient, clip=rows.largest, size=plan.n_features, norm=rows.feature_norm, share=share, name=name
    )
    return np.asarray(total)[:, None], float(sd)


def _regress(releases: Releases, design: PrivateDesign, rows: BoundedRows, information: float) -> Regression:
    """Rounds of gradients. All in units of a person's information: the matrix A that they measure is then about I."""
    plan = releases.plan
    d, n, w = plan.n_features, plan.n, plan.weights
    energy = np.array([ENERGY[rows.bounded.family.name]])
    # A gradient's sampling variance is A / (n information width): as of so many persons with residuals as expected.
    persons = n * information * rows.bounded.width * SAMPLING * float(energy[0])
    theta, covariance, edf = np.zeros((d, 1)), np.zeros((1, d, d)), np.zeros(1)
    rounds = Rounds(w, INFORMATION_VARIANCE)
    for t in range(plan.rounds):
        rows.coefficients = theta
        total, sd = _gradient(releases, rows, f" {t + 1}")
        target, noise = rounds.add(total, sd, theta, n * information)
        theta, covariance, edf = posteriors(
            target,
            noise,
            rounds.moment,
            rounds.active,
            design.feature_shares[: d - 1],
            energy,
            persons,
            design.groups.owner[: d - 1],
        )
    return Regression(theta, covariance, rounds.moment, edf, np.zeros(1), float(energy[0]), None)


def _level(
    releases: Releases, rows: BoundedRows, regression: Regression, information: float
) -> tuple[float, Regression]:
    """The sum of all residuals sets the constant right; its gain is that of an error of variance `LEVEL_VARIANCE`."""
    rows.coefficients = regression.coefficients
    found, sd = releases.mean("balance", rows.residual, clip=1.0)
    slopes = information * regression.second_moment[0]  # of the mean residual in each coefficient
    variance = sd**2 + slopes[0] / (rows.bounded.width * releases.plan.n)
    gain = LEVEL_VARIANCE / (LEVEL_VARIANCE + variance / slopes[0] ** 2) / slopes[0]
    first = np.zeros(slopes.size)
    first[0] = 1.0
    rest = np.eye(slopes.size) - gain * np.outer(first, slopes)
    covariance = rest @ regression.covariance[0] @ rest.T + gain**2 * variance * np.outer(first, first)
    return rows.location + gain * float(found[0]), replace(regression, covariance=covariance[None])
