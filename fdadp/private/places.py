"""Where numbers are on their public range, and how far they spread: a range may be many times too wide.

Means and variances on the range cannot tell numbers that fill a small part of it from its middle: their noise is that
of the range. Counts can, for numbers in a small part are many in a few cells. Cells of the range are counted, then
cells of the part that the first counts say; with the means and variances both give location and scale by Bayes' rule
(docs/theory/private-terms.md#places).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.private.columns import UNIFORM_VARIANCE

__all__ = ["CELLS", "WHOLE", "Counted", "Part", "in_cells", "located", "part_about"]

CELLS = 32
"""Of a part of the range."""
SPREADS = np.geomspace(0.002, 1.0, 36)
"""Where spreads are looked for, on [-1, 1]; of two values at the ends it is 1."""
POINTS = 121
"""Where locations are, on each part."""
FAVOUR = 0.5
"""Prior of a spread: its power."""
MISFIT = 0.3
"""Numbers are no normal law: sd of a count about its expectation over that, besides noise."""
AROUND = 5.0
"""Half-width of the second part, over the spread found in the first."""

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


def in_cells(unit: FloatArray, part: Part) -> FloatArray:
    """Which cell of a part each number (m,) on [-1, 1] is in: rows (m, CELLS) of at most a single 1."""
    low, high = part
    with np.errstate(invalid="ignore"):
        cell = np.floor((unit - low) * (CELLS / (high - low)))
        cell = np.where(unit == high, CELLS - 1, cell)
        inside = (unit >= low) & (unit <= high) & (cell < CELLS)
    return np.asarray(inside[:, None] & (cell[:, None] == np.arange(CELLS)), dtype=np.float64)


def located(mean: float, square: float, sd: float, counts: Sequence[Counted], n: float) -> tuple[float, float]:
    """Location and scale of numbers on [-1, 1], by what was released of them; costs no privacy.

    Parameters
    ----------
    mean, square : float
        Released means of u and u² - 1/3.
    sd : float
        Of the noise in both.
    counts : sequence of Counted
    n : float

    Returns
    -------
    location, scale : float
        Posterior mean of the location, and geometric mean of the root mean square about that.
    """
    from scipy.special import ndtr

    at = np.unique(np.concatenate([np.linspace(*part, POINTS) for part in (WHOLE, *(c.part for c in counts))]))
    m, s = at[:, None], SPREADS[None]
    variance = sd**2 + 1 / n
    evidence = -0.5 * ((mean - m) ** 2 + (square + UNIFORM_VARIANCE - s**2 - m**2) ** 2) / variance
    evidence = evidence + np.log(np.gradient(at))[:, None] + FAVOUR * np.log(s)
    for part, shares, noise in counts:
        edges = np.linspace(*part, CELLS + 1)
        below = ndtr((edges - m[..., None]) / s[..., None])
        if part[0] <= WHOLE[0]:  # numbers beyond the range are at its ends
            below[..., 0] = 0.0
        if part[1] >= WHOLE[1]:
            below[..., -1] = 1.0
        expected = np.diff(below)
        spread = noise**2 + expected / n + (MISFIT * expected) ** 2
        evidence -= 0.5 * ((shares - expected) ** 2 / spread + np.log(spread)).sum(axis=-1)
    weights = np.exp(evidence - evidence.max())
    weights /= weights.sum()
    location = float((weights * m).sum())
    return location, float(np.exp(0.5 * (weights * np.log(s**2 + (m - location) ** 2)).sum()))


def part_about(location: float, scale: float) -> Part:
    """The part of the range to count in next."""
    return max(location - AROUND * scale, WHOLE[0]), min(location + AROUND * scale, WHOLE[1])
