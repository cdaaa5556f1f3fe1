"""Where the curves are and how large: a public range is a hint of both, and these releases find them.

Size about the middle of the range, then the level, then the size about that level: each step is clipped at what the
step before released, so that a range which is too wide, or to one side of the curves, costs little.
"""

from __future__ import annotations

import math

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.privacy import Cohort
from fdadp.private.plan import Plan
from fdadp.private.prior import WhiteDesign
from fdadp.private.rows import REACH, Rows

__all__ = ["locate", "mean_response"]


def locate(cohort: Cohort, plan: Plan, design: WhiteDesign, rows: Rows) -> None:
    """Location and scale of X: the public range is a hint, not a wall."""
    shares = plan.shares
    if not shares["x rms"]:
        return
    guess = rows.x_scale_guess * design.geometric_scale
    half = rows.x_half
    rms, error = cohort.log_scale(
        rows.x_rms, half / 32, 2 * half, share=shares["x rms"], name="root mean square of X", n=plan.n
    )
    # Log-normal prior about the public guess, sd 0.6.
    rms = guess * (rms / guess) ** (0.36 / (0.36 + error**2))
    shift = 0.0
    if shares["x location"]:
        total, sd = cohort.sum(rows.x_level, clip=1.5 * rms, size=1, share=shares["x location"], name="location of X")
        shift = _shrunk(float(total[0]) / plan.n, sd / plan.n, rms)
        rows.location += shift
    if shares["x scale"]:
        spread, _ = cohort.log_scale(
            rows.x_rms, rms / 16, 1.5 * rms, share=shares["x scale"], name="scale of X", n=plan.n
        )
        if shares["x centre"]:  # noise of the location may be larger than the curves, if the range is far off
            total, sd = cohort.sum(
                rows.x_level, clip=1.5 * spread, size=1, share=shares["x centre"], name="location of X, again"
            )
            rows.location += _shrunk(float(total[0]) / plan.n, sd / plan.n, spread)
            spread, _ = cohort.log_scale(
                rows.x_rms, spread / 16, 1.5 * spread, share=shares["x size"], name="scale of X, again", n=plan.n
            )
    else:
        spread = math.sqrt(max(rms**2 - shift**2, (0.3 * rms) ** 2))
    rows.scale = spread / design.geometric_scale


def mean_response(cohort: Cohort, plan: Plan, design: WhiteDesign, rows: Rows) -> tuple[FloatArray, float]:
    """Location and mean of Y; returns the posterior variance of the mean and the squared scale of Y about it."""
    shares = plan.shares
    scale = rows.y_half / 3.75
    if shares["y rms"]:
        rms, error = cohort.log_scale(
            rows.response_norm,
            REACH * rows.y_half / plan.y_range,
            REACH * rows.y_half,
            share=shares["y rms"],
            name="root mean square of Y",
            n=plan.n,
        )
        scale *= (rms / scale) ** (1 / (1 + error**2))  # log-normal prior about the public guess, sd 1
    clip = 1.5 * scale
    spread = scale / math.sqrt(2)  # half of the square is taken to be the mean's
    if shares["y location"]:
        total, sd = cohort.sum(rows.y_level, clip=1.5 * scale, size=1, share=shares["y location"], name="location of Y")
        shift = _shrunk(float(total[0]) / plan.n, sd / plan.n, scale)
        rows.y_location += shift
        spread = math.sqrt(max(scale**2 - shift**2, 0.5 * scale**2))
    if shares["y scale"]:
        spread, _ = cohort.log_scale(
            rows.response_norm, scale / 16, 1.5 * scale, share=shares["y scale"], name="scale of Y", n=plan.n
        )
        clip = 1.5 * spread
    wider = clip * (1.6 if plan.pure else 1.0)
    m = design.response_shares.size
    total, sd = cohort.sum(rows.response, clip=wider, size=m, share=shares["y mean"], name="mean of Y")
    mean, variance = total / plan.n, (sd / plan.n) ** 2
    signal = design.response_shares * max(mean @ mean - m * variance, 0.0)
    gain = signal / (signal + variance + 1e-300)
    rows.mean = mean * gain
    if shares["y spread"]:
        spread, _ = cohort.log_scale(
            rows.response_norm, spread / 32, 1.5 * spread, share=shares["y spread"], name="spread of Y", n=plan.n
        )
    return variance * gain, spread**2


def _shrunk(shift: float, sd: float, rms: float) -> float:
    """Posterior mean of a location within 1.5 rms of where it was looked for."""
    return float(np.clip(shift * rms**2 / (rms**2 + sd**2), -1.5 * rms, 1.5 * rms))
