"""DP-AFF of zeros and ones and of counts: noisy gradients of the log-likelihood on white features.

As :mod:`fdadp.private.release.dp_aff`, with bounded residuals (:mod:`fdadp.private.rows.count_and_binary_rows`): no
scale of the response, of its gradients or of its residuals is released. The base rate comes first, and the fit starts
there; the sum of all residuals comes last, and sets the level right.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.privacy import Cohort
from fdadp.private.denoise.posterior_from_gradients import LikelihoodPosterior, ReleasedGradients
from fdadp.private.plan.budget_plan import OF_NUMBERS, Plan
from fdadp.private.plan.budget_sharing import make_plan
from fdadp.private.plan.private_design import PrivateDesign
from fdadp.private.public.column_ranges import Column, Range
from fdadp.private.public.tuned_constants import GAUSSIAN, PURE, Tuning
from fdadp.private.release.mechanisms import DPAFF, EndToEnd
from fdadp.private.release.planned_releases import Releases, locate
from fdadp.private.release.residual_sizes import Regression
from fdadp.private.rows.count_and_binary_rows import BoundedResponse, BoundedRows, Level, bins_of, level_of

BASE_RATE, BALANCE = 0.02, 0.03
"""Shares of the budget of the first and of the last release; in pure ε, where they count linearly, twice that."""
ROUNDS, FALL_OFF, WATER_NOISE = 6, 0.6, 6.0
"""Of the tuning where none is given: features that tell little cost more than where residuals are scaled."""
CLIP = 0.5
"""Bound on a gradient over the size of weighted white features times the residual's largest."""
ENERGY = 5.0
"""Variance of linear predictors of probabilities that the prior expects."""
CUTS, NORMAL, TINY = 40, np.linspace(-3, 3, 61), 1e-12
"""Cuts of counts that are compared; where a normal law is looked at, in sds; keeps 0/0 from arising."""
ATTENUATION = math.pi / 8
"""Squared ratio of the sds of a probit and a logit, about: what a variance that is left out takes from log-odds."""
RARE = 0.005
"""Base rates count as this far from the ends of the range at least, relative to its width."""
INFORMATION_VARIANCE = 0.005
"""Prior variance of an entry of the information matrix about that of Gaussian features, relative to a person's."""
WIDER = 3.0
"""By how much that variance is larger for standard errors of counts, whose means have long tails."""
STEPS, LAST_STEPS = 2, 4
"""Gauss-Newton steps after each release, and after the last one."""
SPREAD = 3.0
"""Sds of the sum of a person's residuals, were they independent, that its gradients count beyond one row."""
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


@dataclass(frozen=True, kw_only=True, repr=False)
class DPAFFOfFamily(EndToEnd[FamilyFit]):
    """The mechanism ``"dp-aff"`` for responses of a family."""

    response: BoundedResponse
    tuning: Tuning | None = None

    name: ClassVar[str] = DPAFF.name

    @classmethod
    def of(cls, settings: DPAFF, response: BoundedResponse) -> DPAFFOfFamily:
        """With the settings of the mechanism for curves and numbers."""
        prior, useless = settings.public_prior, settings.allow_useless
        return cls(prior=prior, allow_useless=useless, tuning=settings.tuning, response=response)

    def plan(self, n: float, noise_multiplier: float, design: PrivateDesign, *, pure: bool) -> Plan:
        """Share out the budget over rounds of gradients."""
        tuning = self.tuning
        if tuning is None:
            tuning = replace(
                PURE if pure else GAUSSIAN, fall_off=FALL_OFF, rounds=ROUNDS, twice_from=0.0, water_noise=WATER_NOISE
            )
        plan = make_plan(n, noise_multiplier, design, pure=pure, tuning=tuning)
        times = 2 if pure else 1
        shares = {key: v for key, v in plan.budget_shares.items() if key.startswith("x ") or key in OF_NUMBERS}
        used = sum(share * plan.times(key) for key, share in shares.items())
        shares |= {"counts" if self.response.counts else "base rate": times * BASE_RATE, "balance": times * BALANCE}
        shares["gradient"] = (1 - used - times * (BASE_RATE + BALANCE)) / plan.rounds
        return replace(plan, budget_shares=shares)

    def rows(self, design: PrivateDesign, y_bounds: Range) -> BoundedRows:
        """Row functions; the bounds are those of the response."""
        return BoundedRows(design, self.response)

    def spend(self, cohort: Cohort, plan: Plan, rows: Any) -> tuple[FamilyFit, None]:
        """Spend it; nothing is kept beside the fit."""
        return fit_family(cohort, plan, rows), None


def fit_family(cohort: Cohort, plan: Plan, rows: BoundedRows) -> FamilyFit:
    """Spend the budget of a cohort as planned."""
    releases = Releases(cohort, plan)
    locate(releases, rows)
    base = _counts(releases, rows) if "counts" in plan.budget_shares else _base_rate(releases, rows)
    w = plan.weights[:, 0]
    rows.feature_norm = 1 if plan.pure and in_entries(w) else 2
    reach = float(rows.bounded.reach(rows.bounded.family.mean(np.array(rows.location))))
    rows.largest = CLIP * _size(w, rows.feature_norm) * (1 + reach) / 2
    rows.begin_regression(plan)
    releases = Releases(cohort.derive(rows.derived, name="features and responses"), plan)
    regression = _regress(releases, rows, base)
    return FamilyFit(tuple(rows.columns.values()), rows.location, regression)


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


class Base(NamedTuple):
    """Where a fit starts.

    Attributes
    ----------
    mean, sd : float
        Mean residual there over the width, and the noise in it; infinite where it was not measured.
    energy : float
        Variance of linear predictors that is expected.
    """

    mean: float
    sd: float
    energy: float


def _base_rate(releases: Releases, rows: BoundedRows) -> Base:
    """Start at the share of ones."""
    found, sd = releases.mean("base rate", rows.about_the_middle, clip=0.5)
    share = float(found[0]) + 0.5
    least = min(max(RARE, 2 * sd), 0.5)
    start = float(np.clip(share, least, 1 - least))
    rows.location = math.log(start / (1 - start))
    return Base(share - start, sd, ENERGY)


def _counts(releases: Releases, rows: BoundedRows) -> Base:
    """Start where a histogram of the counts says, and cut them where that is best for what is to be measured."""
    response, plan = rows.bounded, releases.plan
    edges = bins_of(*response.bounds)
    masses, sd = releases.histogram("counts", rows.count_bins)
    level = level_of(masses, sd, plan.n, edges)
    rows.location = level.location
    rows.bounded = replace(response, bounds=(response.bounds[0], _best_cut(response, level, plan)))
    return Base(0.0, math.inf, level.energy)


def _best_cut(response: BoundedResponse, level: Level, plan: Plan) -> float:
    """The cut with which a coefficient has the least variance, by noise and sampling error, at this level."""
    low, high = response.bounds
    w, z = plan.weights[:, 0], NORMAL
    mass = np.exp(-0.5 * z**2) / np.exp(-0.5 * z**2).sum()
    eta = level.location + math.sqrt(level.energy) * z
    noise = (CLIP * _size(w, 2) * plan.eta) ** 2 * float((w**-2.0).mean())
    best = (math.inf, high)
    for cut in np.unique(np.floor(np.geomspace(low + 1, high, CUTS))):
        here = replace(response, bounds=(low, float(cut)))
        slope, variance = mass @ here.slope(eta), mass @ here.variance(eta)
        value = float((variance / plan.n + (cut - low) ** 2 * noise) / max(slope, TINY) ** 2)
        best = min(best, (value, float(cut)))
    return best[1]


def _gradient(releases: Releases, rows: BoundedRows, number: str) -> tuple[FloatArray, float]:
    """Sum of clipped features times residuals, (D, 1), and the sd of the noise in each entry."""
    plan = releases.plan
    name, share = plan.name("gradient") + number, plan.budget_shares["gradient"]
    clip = rows.largest * _together(rows, plan)
    if plan.pure and rows.feature_norm == 2:
        return releases.sum_outer("gradient", rows.factors, clip=rows.largest, number=number)
    total, sd = releases.cohort.sum(
        rows.gradient, clip=clip, size=plan.n_features, norm=rows.feature_norm, share=share, name=name
    )
    return np.asarray(total)[:, None] / plan.rows, float(sd) / plan.rows


def _together(rows: BoundedRows, plan: Plan) -> float:
    """How long the sum of a person's gradients counts, over the longest of one row: 1 + :data:`SPREAD` sds.

    A residual is at most 1 of the longest, and has the sd √(p/(1 - p)) where p <= 1/2 is the rate of the rarer
    response: of m rows that have nothing to do with each other the sum is seldom longer than that.
    """
    if plan.max_rows == 1:
        return 1.0
    response = rows.bounded
    at = np.array([rows.location])
    sd = math.sqrt(float(response.variance(at)[0])) / float(response.reach(response.mean(at))[0] * response.width)
    return min(float(plan.max_rows), 1 + SPREAD * math.sqrt(plan.max_rows) * sd)


def _regress(releases: Releases, rows: BoundedRows, base: Base) -> Regression:
    """Rounds of gradients, and the sum of residuals at the end."""
    plan = releases.plan
    d, n, w = plan.n_features, plan.n, plan.weights[:, 0]
    owner = rows.design.groups.owner
    shares = np.where(np.isin(owner, owner[: d - 1]), rows.design.feature_shares, 0.0)
    scores = ReleasedGradients(rows.bounded, n, d, shares, owner, base.energy, INFORMATION_VARIANCE, rows.norms)
    scores.location = rows.location
    if math.isfinite(base.sd):
        scores.add(*_of_the_constant(d, base.mean, base.sd), scores.theta)
    for t in range(plan.rounds):
        rows.coefficients = scores.theta
        total, sd = _gradient(releases, rows, f" {t + 1}")
        scores.add(total[:, 0] / (w * n), sd / (w * n), scores.theta, rows.largest)
        scores.solve(STEPS)
    rows.coefficients = scores.theta
    found, sd = _balance(releases, rows)
    scores.add(*_of_the_constant(d, float(found[0]), sd), scores.theta)
    last = scores.solve(LAST_STEPS)
    covariance = scores.covariance(WIDER if rows.bounded.counts else 1.0)
    if not rows.bounded.counts:
        covariance = _widened(replace(last, covariance=covariance), d, rows.location)
    return Regression(last.mean, covariance, np.eye(len(last.mean)), last.edf, np.zeros(1), base.energy, None)


def _balance(releases: Releases, rows: BoundedRows) -> tuple[FloatArray, float]:
    """Mean residual over the width, and the noise in it."""
    plan = releases.plan
    clip = _together(rows, plan) / plan.max_rows if plan.max_rows > 1 else 1.0
    return releases.mean("balance", rows.residual, clip=clip)


def _widened(found: LikelihoodPosterior, d: int, location: float) -> FloatArray:
    """Covariance with the square of what probabilities lose by features left out: log-odds are ``√(1 + π v/8)`` larger.

    v is the variance of what those features explain (Zeger, Liang & Albert 1988, doi:10.2307/2531734).
    """
    left_out = float(np.trace(found.covariance[0][d:, d:]))
    whole = found.mean[:, 0].copy()
    whole[0] += location
    less = math.sqrt(1 + ATTENUATION * left_out) - 1
    return found.covariance + less**2 * np.outer(whole, whole)


def _of_the_constant(d: int, mean: float, sd: float) -> tuple[FloatArray, FloatArray]:
    """A mean residual as a gradient of which the constant's entry alone was measured."""
    gradient, noise = np.zeros(d), np.full(d, np.inf)
    gradient[0], noise[0] = mean, sd
    return gradient, noise
