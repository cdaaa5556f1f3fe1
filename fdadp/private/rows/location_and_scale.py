"""Where numbers are on their public range, and how far they spread: a range may be many times too wide.

Means and variances on the range cannot tell numbers that fill a small part of it from its middle: their noise is that
of the range. Counts can, for numbers in a small part are many in a few cells. Cells of the range are counted, then
cells of the part that the first counts say; with the means and variances both give location and scale by Bayes' rule
under a normal law. Where the releases contradict that law, as for numbers that are mostly zero, the law nearest to it
that agrees with them all gives both (docs/theory/private-terms.md#places).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.private.public.column_ranges import UNIFORM_VARIANCE
from fdadp.rounds.location_scale_histograms import FAVOUR, NormalLaw, evidence_of_counts, in_cells, log_density

CELLS = 32
"""Of a part of the range."""
SPREADS = np.geomspace(0.002, 1.0, 36)
"""Where spreads are looked for, on [-1, 1]; of two values at the ends it is 1."""
POINTS = 121
"""Where locations are, on each part."""
AROUND = 5.0
"""Half-width of the second part, over the spread found in the first."""
SURE, SURE_PURE = 2.0, 3.0
"""Sds of noise, Gaussian and Laplace, beyond which a release contradicts a law."""
FAR = 4.0
"""Scales from the location beyond which a normal law has nobody."""
FLOOR, SHARPNESS, PER_CELL = 1e-6, 4.0, 4
"""Of the nearest law: mass that is anywhere, belief in counts over the normal law, and points in a cell."""
NEWTON, CLOSE, LEAST_STEP, ENOUGH = 60, 1e-9, 1e-8, 1e-4
"""Steps of its search, the gain at which it ends, the shortest step, and what a step gains of its promise, at least."""
LEAST_SPREAD, UNKNOWN = 1e-3, 0.5
"""Least scale; largest error of its logarithm, of which a scale that was released says more than none."""

Part = tuple[float, float]
WHOLE: Part = (-1.0, 1.0)


class Counted(NamedTuple):
    """Released counts.

    Attributes
    ----------
    part : (float, float)
    shares : ndarray of shape (CELLS,)
        Counts over n.
    sd : float
        Of the noise in each.
    """

    part: Part
    shares: FloatArray
    sd: float


def located(
    mean: float, square: float, sd: float, counts: Sequence[Counted], n: float, *, pure: bool
) -> tuple[float, float, float]:
    """Location and scale of numbers on [-1, 1], by what was released of them; costs no privacy.

    Parameters
    ----------
    mean, square : float
        Released means of u and u² - 1/3.
    sd : float
        Of the noise in both.
    counts : sequence of Counted
    n : float
    pure : bool
        Whether noise is Laplace's. A normal law of it would take one large draw in 64 cells for numbers in one place.

    Returns
    -------
    location, scale : float
        Posterior mean of the location, and geometric mean of the root mean square about that.
    error : float
        Posterior standard deviation of its logarithm.
    """
    from scipy.special import ndtr

    at = np.unique(np.concatenate([np.linspace(*part, POINTS) for part in (WHOLE, *(c.part for c in counts))]))
    m, s = at[:, None], SPREADS[None]
    evidence = np.log(np.gradient(at))[:, None] + FAVOUR * np.log(s)
    evidence = evidence + log_density(mean - m, sd, 1 / n, pure=pure)
    evidence = evidence + log_density(square + UNIFORM_VARIANCE - s**2 - m**2, sd, 1 / n, pure=pure)
    for part, shares, noise in counts:
        below = ndtr((np.linspace(*part, CELLS + 1) - m[..., None]) / s[..., None])
        open_ends = (part[0] <= WHOLE[0], part[1] >= WHOLE[1])  # numbers beyond the range are at its ends
        evidence = evidence + evidence_of_counts(shares, noise, n, below, open_ends, pure=pure)
    law = NormalLaw.by(evidence, m, s)
    return law.place, math.exp(law.log_size), law.error


def settled(
    mean: float, square: float, sd: float, counts: Sequence[Counted], n: float, *, pure: bool
) -> tuple[float, float, float]:
    """Location and scale of numbers, and its error: those of a normal law, unless the releases contradict it.

    Parameters are those of :func:`located`, and whether noise is Laplace's.
    """
    location, scale, error = located(mean, square, sd, counts, n, pure=pure)
    sure = SURE_PURE if pure else SURE
    noise = math.hypot(sd, 1 / math.sqrt(n))
    away = max(abs(mean - location), abs(square + UNIFORM_VARIANCE - location**2 - scale**2)) / noise
    outside, outside_sd = beyond(counts[0], location, FAR * scale)
    if away < sure and outside < sure * outside_sd:
        return location, scale, error
    at, weights = _nearest(mean, square, sd, counts, n, location, scale)
    location = float(weights @ at)
    scale = math.sqrt(max(float(weights @ (at - location) ** 2), LEAST_SPREAD**2))
    return location, scale, error_of_moments(scale, sd)


def error_of_moments(scale: float, sd: float) -> float:
    """Error of the logarithm of a scale by a mean square with noise of this sd."""
    return min(sd / (2 * scale**2), UNKNOWN)


def beyond(counted: Counted, location: float, reach: float) -> tuple[float, float]:
    """Share of numbers in cells of which no point is within reach of a location, as released, and its noise's sd."""
    edges = np.linspace(*counted.part, CELLS + 1)
    out = (edges[:-1] > location + reach) | (edges[1:] < location - reach)
    return float(counted.shares[out].sum()), counted.sd * math.sqrt(out.sum())


def _nearest(
    mean: float, square: float, sd: float, counts: Sequence[Counted], n: float, location: float, scale: float
) -> tuple[FloatArray, FloatArray]:
    """Points and their masses, of the law of least relative entropy to a normal one for how well it fits the releases.

    All releases are linear in the law. So its masses are those of the normal law times exp(a'λ), a what the releases
    would say of a point; λ maximises a concave function, by Newton's steps.
    """
    from scipy.special import ndtr

    edges = np.unique(np.concatenate([np.linspace(*c.part, PER_CELL * CELLS + 1) for c in counts]))
    at = np.concatenate(([-1.0], (edges[1:] + edges[:-1]) / 2, [1.0]))  # both ends are points of their own
    below = ndtr((edges - location) / scale)
    normal = np.diff(below, prepend=0.0, append=1.0)
    anywhere = np.concatenate(([1 / CELLS], np.diff(edges), [1 / CELLS]))
    start = np.log((1 - FLOOR) * normal + FLOOR * anywhere / anywhere.sum())
    told = np.vstack((at, at * at, *(in_cells(at[:, None], *c.part, CELLS)[:, 0].T for c in counts)))
    found = np.concatenate(([mean, square + UNIFORM_VARIANCE], *(c.shares for c in counts)))
    noise = np.concatenate(([sd**2 + 1 / n] * 2, *([c.sd**2] * CELLS for c in counts)))
    noise = noise / (SHARPNESS * counts[0].sd)

    def gain(dual: FloatArray) -> tuple[float, FloatArray]:
        exponent = start + dual @ told
        top = exponent.max()
        masses = np.exp(exponent - top)
        total = float(masses.sum())
        return float(dual @ found - top - math.log(total) - 0.5 * noise @ dual**2), masses / total

    dual = np.zeros(found.size)
    value, masses = gain(dual)
    for _ in range(NEWTON):
        seen = told @ masses
        slope = found - seen - noise * dual
        step = np.linalg.solve((told * masses) @ told.T - np.outer(seen, seen) + np.diag(noise), slope)
        rise, length = float(slope @ step), 1.0
        if rise < CLOSE:
            break
        while length > LEAST_STEP:
            better, moved = gain(dual + length * step)
            if better >= value + ENOUGH * length * rise:
                break
            length /= 2
        dual, value, masses = dual + length * step, better, moved
    return at, masses


def part_about(location: float, scale: float) -> Part:
    """The part of the range to count in next."""
    return max(location - AROUND * scale, WHOLE[0]), min(location + AROUND * scale, WHOLE[1])
