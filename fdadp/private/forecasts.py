"""Forecasts about an anchor: what is believed of their errors in public, what is released of them, and the guard.

Errors of forecasts grow with the distance from what was observed, and are larger for records whose curves are rough;
how much larger, by the level of the curves too, is released as a few means (docs/theory/dp-aff.md#forecasts). The guard
compares errors of the fit with those of the anchor, row by row, and drops a fit that is no better.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.private.looks import shares_of_looks
from fdadp.private.plan import Plan
from fdadp.private.tuning import Aux

if TYPE_CHECKING:
    from fdadp.private.intervals import PrivateFit
    from fdadp.private.releases import Releases
    from fdadp.private.residual_rows import ResidualRows

__all__ = ["GROWTH", "for_forecasts", "growth", "guarded", "near_anchor"]

GROWTH = 0.4
"""By how much the logarithm of the sd of an error grows over the domain of the response, before anything is known."""
HEAVY = 1.15
"""Mean square of errors over what it is taken to be of other residuals, before calibration."""
MEAN = 0.2
"""Prior size of the mean curve about the anchor, over that of responses."""
EXPECTED, EXPECTED_SD = -0.05, 0.05
"""Prior mean and sd of what the fit adds to the mean square of the anchor's errors, over that of its own."""
ANCHOR = Aux(target=0.01, cap=0.015)


def for_forecasts(plan: Plan) -> Plan:
    """The plan with shares for the guard and for how errors vary, taken from all others alike."""
    shares = shares_of_looks(plan.eta, pure=plan.pure) | {"anchor": ANCHOR.share(plan.eta, pure=plan.pure)}
    left = 1 - sum(shares.values())
    return replace(plan, budget_shares={k: v * left for k, v in plan.budget_shares.items()} | shares)


def near_anchor(
    mean: FloatArray, variance: FloatArray, shares: FloatArray, spread: float
) -> tuple[FloatArray, FloatArray]:
    """Coefficients (m,) of the mean curve and their variances, with what is believed of it: that it is small."""
    prior = (MEAN * spread) ** 2 * shares / shares.sum()
    sure = prior / (prior + variance)
    return mean * sure, variance * sure


def growth(variance: FloatArray, unit_t: FloatArray) -> FloatArray:
    """A residual variance that grows over the domain, and has heavy tails, as is believed in public."""
    return np.asarray(HEAVY * variance * np.exp(2 * GROWTH * (unit_t - 0.5)))


def guarded(releases: Releases, residuals: ResidualRows, fit: PrivateFit) -> PrivateFit:
    """The fit, or nothing beside its anchor where what was released of the errors of both lets expect no gain."""
    found, sd = releases.mean("anchor", residuals.against_anchor, clip=1.0)
    worse = EXPECTED / EXPECTED_SD**2 + float(found[0]) / sd**2 > 0
    return anchored(fit) if worse else fit


def anchored(fit: PrivateFit) -> PrivateFit:
    """The fit without all that it would add to its anchor; errors are those that were released."""
    of = fit.regression
    nothing = replace(
        of,
        coefficients=np.zeros_like(of.coefficients),
        covariance=np.zeros_like(of.covariance),
        edf=np.zeros_like(of.edf),
        mean_variance=np.zeros_like(of.mean_variance),
    )
    return replace(fit, y_location=0.0, mean=np.zeros_like(fit.mean), regression=nothing, dropped=True)
