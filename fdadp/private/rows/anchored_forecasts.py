"""Forecasts about an anchor: what is believed of their errors in public, what is released of them, and the guard.

Errors of forecasts grow with the distance from what was observed, and are larger for records whose curves are rough;
how much larger, by the level of the curves too, is released as a few means (docs/theory/dp-aff.md#forecasts). The guard
compares errors of the fit with those of the anchor, row by row, and drops a fit that is no better.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.private.plan.budget_plan import Plan
from fdadp.private.plan.budget_sharing import make_plan
from fdadp.private.public.tuned_constants import GAUSSIAN, PURE, Tuning
from fdadp.private.rows.errors_by_record import with_looks
from fdadp.rounds.budget_plan import Aux
from fdadp.rounds.posterior_means import gain

if TYPE_CHECKING:
    from fdadp.private.plan.private_design import PrivateDesign
    from fdadp.private.release.planned_releases import Releases
    from fdadp.private.release.residual_sizes import PrivateFit
    from fdadp.private.rows.row_functions import ResidualRows

MEAN_SQUARE = 1.65
"""Mean square of errors over their squared geometric mean: 1.35 of Gaussian curves with the shares of the public prior
and a tenth of their energy outside of its functions, times 1.22 of records whose sizes differ as a t law of 1/ν = .15
has it."""
USELESS, NOTHING = 0.1, Aux(target=1.0, cap=1.0, max_error=0.0)
"""Noise of the calibration, in shares of people, from which on its budget is better spent on the size of residuals.
From there on a release of the mean curve says nothing either, beside how small it is believed to be."""
LOCATION_CAP, LOCATION_ERROR = 0.04, 0.5
"""Cap and largest error of the location of curves: what is predicted from a level needs to know what a usual one is."""
START = 0.4
"""Variance of an error at the start of the domain over what is added to it by its end, as a random walk adds it."""
MEAN = 0.1
"""Prior size of the mean curve about the anchor, over that of responses."""
SIGNAL, PLANNED_SIGNAL = 0.2, 0.05
"""Energy of what the fit adds to the anchor over that of the anchor's errors: as expected, and as the plan counts on,
so that coefficients which the budget cannot find well are not looked for."""
EXPECTED, EXPECTED_SD = -0.05, 0.03
"""Prior mean and sd of what the fit adds to the mean square of the anchor's errors, over that of its own."""
ANCHOR = Aux(target=0.01, cap=0.015)


def plan_forecasts(
    n: float, noise_multiplier: float, design: PrivateDesign, *, pure: bool, tuning: Tuning | None = None
) -> Plan:
    """Plan a fit about an anchor: as :func:`~fdadp.private.plan.budget_sharing.make_plan`, for a signal that is small.

    Shares for the guard and for how errors vary are taken from all others alike.
    """
    tuning = replace(tuning or (PURE if pure else GAUSSIAN), signal=SIGNAL, planned_signal=PLANNED_SIGNAL)
    location = replace(tuning.x_location, cap=LOCATION_CAP, max_error=LOCATION_ERROR)
    level = replace(tuning.level, max_error=0.0)  # errors of forecasts are to both sides
    tuning = replace(tuning, mean_square=MEAN_SQUARE, x_location=location, level=level)
    most = tuning.calibration.cap
    dear = noise_multiplier / n / (most if pure else math.sqrt(most)) > USELESS
    if dear:
        size = replace(tuning.residual_scale, cap=tuning.residual_scale.cap + most)
        tuning = replace(tuning, calibration=NOTHING, residual_scale=size, mean_weight=0.0)
    plan = make_plan(n, noise_multiplier, design, pure=pure, tuning=tuning)
    again = tuning.residual_again
    added = {
        "residual scale again": again.share(again.reach * plan.eta, pure=pure),
        "anchor": ANCHOR.share(plan.eta, pure=pure),
    }
    return with_looks(plan.beside(added))


def about_anchor(plan: Plan) -> bool:
    """Whether a plan is one of forecasts."""
    return "anchor" in plan.budget_shares


def near_anchor(
    mean: FloatArray, variance: FloatArray, shares: FloatArray, spread: float
) -> tuple[FloatArray, FloatArray]:
    """Coefficients (m,) of the mean curve and their variances, with what is believed of it: that it is small.

    An infinite `variance` stands for coefficients that were not released.
    """
    prior = (MEAN * spread) ** 2 * shares / shares.sum()
    sure = gain(prior, variance)
    return mean * sure, prior * (1 - sure)


def growth(unit_t: FloatArray, weights: FloatArray) -> FloatArray:
    """How a residual variance grows over the domain, as is believed in public; its mean is 1."""
    variance = START + unit_t
    return np.asarray(variance / (weights @ variance))


def guarded(releases: Releases, residuals: ResidualRows, fit: PrivateFit) -> PrivateFit:
    """The fit, or nothing beside its anchor where what was released of the errors of both lets expect no gain."""
    found, sd = releases.mean("anchor", residuals.against_anchor, clip=1.0)
    worse = EXPECTED / EXPECTED_SD**2 + float(found[0]) / sd**2 > 0
    return anchored(fit) if worse else fit


def anchored(fit: PrivateFit) -> PrivateFit:
    """The fit without all that it would add to its anchor; errors are those that were released."""
    of = fit.regression
    found = ("coefficients", "covariance", "edf", "mean_variance")
    nothing = replace(of, **{name: np.zeros_like(getattr(of, name)) for name in found})
    return replace(fit, y_location=0.0, mean=np.zeros_like(fit.mean), regression=nothing, dropped=True)
