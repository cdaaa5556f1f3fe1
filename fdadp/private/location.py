"""Where the curves are and how large: a public range is a hint of both, and these releases find them.

Size about the middle of the range, then the level, then the size about that level: each step is clipped at what the
step before released, so that a range which is too wide, or to one side of the curves, costs little
(docs/theory/dp-aff.md#location).
"""

from __future__ import annotations

import math

from fdadp._common.typing import FloatArray
from fdadp.private.design import WhitenedDesign
from fdadp.private.releases import Releases
from fdadp.private.rows import REACH, Rows
from fdadp.private.shrinkage import shrunk_coefficients, shrunk_scale, shrunk_shift

__all__ = ["locate", "mean_response"]

X_PRIOR, Y_PRIOR = 0.36, 1.0
"""Variances of the logarithms of the sizes of X and Y about their public guesses."""
Y_GUESS = 3.75
"""Half-width of the public range of Y over the size that Y is guessed to have."""
LEAST_SPREAD = 0.3
"""Spread of X over its root mean square about another point, at least."""


def locate(releases: Releases, design: WhitenedDesign, rows: Rows) -> None:
    """Location and scale of X: the public range is a hint, not a wall."""
    if not releases.affords("x rms"):
        return
    tuning = releases.plan.tuning
    rms, error = releases.size("x rms", rows.x_rms, tuning.x_rms.range(rows.x_half))
    rms = shrunk_scale(rms, error, rows.x_scale_guess * design.geometric_scale, X_PRIOR)
    shift = 0.0
    if releases.affords("x location"):
        shift = _shift_of_x(releases, "x location", rows, rms)
    if releases.affords("x scale"):
        spread, _ = releases.size("x scale", rows.x_rms, tuning.x_scale.range(rms))
        if releases.affords("x centre"):  # noise of the location may be larger than the curves, if the range is far off
            _shift_of_x(releases, "x centre", rows, spread)
            spread, _ = releases.size("x size", rows.x_rms, tuning.x_scale.range(spread))
    else:
        spread = math.sqrt(max(rms**2 - shift**2, (LEAST_SPREAD * rms) ** 2))
    rows.scale = spread / design.geometric_scale


def _shift_of_x(releases: Releases, key: str, rows: Rows, size: float) -> float:
    """Move the location of X to its released level; returns by how much."""
    level, sd = releases.mean(key, rows.x_level, clip=releases.plan.tuning.size_clip * size)
    shift = shrunk_shift(float(level[0]), sd, size, releases.plan.tuning.size_clip)
    rows.location += shift
    return shift


def mean_response(releases: Releases, design: WhitenedDesign, rows: Rows) -> tuple[FloatArray, float]:
    """Location and mean of Y; returns the posterior variance of the mean and the squared scale of Y about it."""
    plan, tuning = releases.plan, releases.plan.tuning
    scale = rows.y_half / Y_GUESS
    if releases.affords("y rms"):
        largest = REACH * rows.y_half
        rms, error = releases.size("y rms", rows.response_norm, (largest / plan.y_range, largest))
        scale = shrunk_scale(rms, error, scale, Y_PRIOR)
    clip = tuning.size_clip * scale
    spread = scale / math.sqrt(2)  # half of the square is taken to be the mean's
    if releases.affords("y location"):
        level, sd = releases.mean("y location", rows.y_level, clip=clip)
        shift = shrunk_shift(float(level[0]), sd, scale, tuning.size_clip)
        rows.y_location += shift
        spread = math.sqrt(max(scale**2 - shift**2, 0.5 * scale**2))
    if releases.affords("y scale"):
        spread, _ = releases.size("y scale", rows.response_norm, tuning.y_scale.range(scale))
        clip = tuning.size_clip * spread
    m = design.response_shares.size
    noisy, sd = releases.mean("y mean", rows.response, clip=clip * tuning.mean_clip, size=m)
    rows.mean, variance = shrunk_coefficients(noisy, sd, design.response_shares)
    if releases.affords("y spread"):
        spread, _ = releases.size("y spread", rows.response_norm, tuning.y_spread.range(spread))
    return variance, spread**2
