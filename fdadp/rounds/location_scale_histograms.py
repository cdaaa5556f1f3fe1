"""Where numbers are on public ranges, and how far they spread: a range may be thousands of times too wide.

Three counts in cells, fixed in number: of the whole range, then of a part about what the counts before told. Numbers in
a small part are many in a few cells, which noise does not hide. Each count gives location and size by Bayes' rule under
a normal law, with what the counts before told as its prior. A fourth count, in powers of two of the distance from the
place, shows what is far out: it makes sizes larger and sets the walls (docs/theory/rounds.md#places).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from fdadp._common.typing import BoolArray, FloatArray
from fdadp.privacy import Cohort
from fdadp.privacy.rows._sealed_row_functions import RowFunction, Rows

CELLS = (32, 8, 8)
"""Of each count: many in the whole range, then those that are widest for their noise."""
AROUND = 3.0
"""Half-width of the next part, in sizes that were told."""
POINTS, SIZES, SMALLEST, LARGEST = 81, 22, 0.3, 1.2
"""Places and sizes that are looked at in a part; the least size over a cell, the largest over half of the part."""
FAVOUR, MISFIT = 0.5, 0.3
"""Power of a size in its prior; sd of a share about its expectation over that, as numbers follow no normal law."""
CARRIED, OFF_PLACE, OFF_SIZE = 1.2, 0.05, 0.1
"""What a count before told is believed with sds so much larger, of half a part and a logarithm so much at least."""
RESOLVED = 2.0
"""Sizes above so many least ones are told by a count; smaller ones are only known to be small."""
BINS, SURE, BEYOND, WITHIN = 20, 2.5, 4.0, 0.72
"""Powers of two of a distance; sds from which on what is beyond an edge is no noise; sizes from which on a bin is far
out; where numbers are in their bin, over its end."""
WALL, WALL_STILL = 30.0, 5.0
"""Sizes at which numbers are walled where nothing is seen further out, and where all but a few are one number."""
LEAST_OWN = 1e-6
"""Least variance of what is no noise, over that of noise."""
FINEST = 1e-12
"""Least width of a part, over the size of the ends of its range."""


class Places(NamedTuple):
    """Where columns of numbers are, as released.

    Attributes
    ----------
    at, size : ndarray of shape (q,)
        Location, and root mean square about it, in the units of the numbers.
    unsure : ndarray of shape (q,)
        Posterior sd of the logarithm of the size.
    still : ndarray of shape (q,)
        Whether the size is the least that counts can tell: numbers that are all the same, but for a few.
    """

    at: FloatArray
    size: FloatArray
    unsure: FloatArray
    still: BoolArray

    def first(self, d: int) -> Places:
        """Of the first d columns."""
        return Places(self.at[:d], self.size[:d], self.unsure[:d], self.still[:d])


class _Told(NamedTuple):
    """What is believed of one column: its place and the logarithm of its sd, each with an sd; and the size."""

    at: float
    off: float
    log_sd: float
    off_log: float
    size: float


class NormalLaw(NamedTuple):
    """Posterior of a normal law on a grid of places (P, 1) and sds (S,).

    Attributes
    ----------
    weights : ndarray of shape (P, S)
    place : float
        Posterior mean.
    log_size : float
        Posterior mean of the logarithm of the root mean square about that place.
    error : float
        Posterior sd of it.
    """

    weights: FloatArray
    place: float
    log_size: float
    error: float

    @classmethod
    def by(cls, evidence: FloatArray, at: FloatArray, sds: FloatArray) -> NormalLaw:
        """From log densities, but for a constant."""
        weights = np.exp(evidence - evidence.max())
        weights /= weights.sum()
        place = float((weights * at).sum())
        logs = 0.5 * np.log(sds**2 + (at - place) ** 2)
        middle = float((weights * logs).sum())
        return cls(weights, place, middle, math.sqrt(float((weights * (logs - middle) ** 2).sum())))


def norm_of(columns: int, *, pure: bool) -> float:
    """Norm of a person's counts, one cell in each column."""
    return float(columns) if pure else math.sqrt(columns)


def cells_of(values: RowFunction, low: FloatArray, high: FloatArray, count: int) -> RowFunction:
    """Row function: in which of `count` even cells of [low, high] each of q numbers is; (m, q count), at most q ones.

    Parameters
    ----------
    values : callable
        Gives numbers (m, q); NaN makes the whole row NaN, so that it does not count.
    low, high : ndarray of shape (q,)
    count : int
    """

    def row(rows: Rows) -> FloatArray:
        v = values(rows)
        return _whole(in_cells(v, low, high, count), v)

    return row


def in_cells(values: FloatArray, low: FloatArray | float, high: FloatArray | float, count: int) -> FloatArray:
    """A one in the cell of each of the values (m, q), shape (m, q, count); zeros alone where it is in none.

    The upper end of a part is in its last cell.
    """
    cell = np.where(values == high, count - 1, np.floor((values - low) / (high - low) * count))
    return np.asarray(cell[:, :, None] == np.arange(count), dtype=np.float64)


def distances_of(values: RowFunction, at: FloatArray | float, edges: FloatArray) -> RowFunction:
    """Row function: between which edges (q, B - 1) the distance of each number from its place is; (m, q B), q ones.

    The last bin has all that is further. NaN makes the whole row NaN.
    """

    def row(rows: Rows) -> FloatArray:
        v = values(rows)
        beyond = (np.abs(v - at)[:, :, None] > edges).sum(axis=2)
        return _whole(beyond[:, :, None] == np.arange(edges.shape[1] + 1), v)

    return row


def _whole(ones: FloatArray | BoolArray, values: FloatArray) -> FloatArray:
    """Ones (m, q, B) side by side; NaN where any number of the row is no number."""
    out = ones + 0.0 * values.sum(axis=1)[:, None, None]
    return np.asarray(out.reshape(len(values), -1))


def count_in_bins(
    cohort: Cohort, row: RowFunction, q: int, *, n: float, share: float, name: str
) -> tuple[FloatArray, float]:
    """Release how many persons have each of q numbers in each of its bins.

    Parameters
    ----------
    cohort : Cohort
    row : callable
        Row function: bins side by side (m, q B), a one at most for each number.
    q : int
    n : float
        Declared or released number of persons.
    share, name
        Of the release.

    Returns
    -------
    seen : ndarray of shape (q, B)
        Counts over n.
    sd : float
        Of the noise in each.

    Notes
    -----
    *Sensitivity.* One bin for each of q numbers: √q in L2, q in L1; nothing is negative, so an exchange costs √2 of it.
    """
    total, sd = cohort.sum(row, clip=norm_of(q, pure=cohort.pure), share=share, name=name, nonnegative=True)
    return total.reshape(q, -1) / n, sd / n


def find_places(
    cohort: Cohort, values: RowFunction, low: FloatArray, high: FloatArray, *, n: float, shares: Sequence[float]
) -> Places:
    """Release counts, and take places and sizes from them.

    Parameters
    ----------
    cohort : Cohort
    values : callable
        Row function: numbers (m, q) within their ranges.
    low, high : ndarray of shape (q,)
        Public ranges.
    n : float
        Declared or released number of persons.
    shares : sequence of float
        Of the budget, one for each of :data:`CELLS`.
    """
    q, start, end = len(low), low.copy(), high.copy()
    told: list[_Told | None] = [None] * q
    for t, (count, share) in enumerate(zip(CELLS, shares, strict=True)):
        row, name = cells_of(values, start.copy(), end.copy(), count), f"counts in cells {t + 1}"
        seen, sd = count_in_bins(cohort, row, q, n=n, share=share, name=name)
        found = []
        for j, own in enumerate(seen):
            open_ends = (bool(start[j] <= low[j]), bool(end[j] >= high[j]))
            found.append(_tell(own, sd, n, (float(start[j]), float(end[j])), open_ends, told[j]))
        finest = FINEST * np.maximum(np.abs(low), np.abs(high))
        at = np.clip([one.at for one in found], low, high)
        size = np.clip([one.size for one in found], finest, (high - low) / 2)
        least = SMALLEST / count * (end - start) / 2
        told = [one if math.exp(one.log_sd) > RESOLVED * s else None for one, s in zip(found, least, strict=True)]
        start, end = np.maximum(at - AROUND * size - finest, low), np.minimum(at + AROUND * size + finest, high)
    return Places(at, size, np.array([one.off_log for one in found]), np.array([one is None for one in told]))


@lru_cache(maxsize=8)
def _laws(count: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Places (P, 1) and sds (S,) on [-1, 1], and the mass of normal laws below each edge, (P, S, count + 1)."""
    from scipy.special import ndtr

    at = np.linspace(-1.0, 1.0, POINTS)[:, None]
    sds = np.geomspace(SMALLEST / count, LARGEST, SIZES)
    return at, sds, ndtr((np.linspace(-1.0, 1.0, count + 1) - at[..., None]) / sds[:, None])


def _tell(
    seen: FloatArray, sd: float, n: float, part: tuple[float, float], open_ends: tuple[bool, bool], before: _Told | None
) -> _Told:
    """Posterior of place and size of one column by its shares in the cells of a part.

    Beyond an open end of a part, which is the end of the range, numbers are in its last cell.
    """
    at, sds, below = _laws(len(seen))
    evidence = evidence_of_counts(seen, sd, n, below, open_ends)
    middle, half = (part[0] + part[1]) / 2, (part[1] - part[0]) / 2
    logs = np.log(sds)
    if before is None:
        evidence = evidence + FAVOUR * logs
    else:
        off, off_log = CARRIED * before.off / half + OFF_PLACE, CARRIED * before.off_log + OFF_SIZE
        evidence = evidence - 0.5 * ((at - (before.at - middle) / half) / off) ** 2
        evidence = evidence - 0.5 * ((logs - before.log_sd + math.log(half)) / off_log) ** 2
    law = NormalLaw.by(evidence, at, sds)
    weights, place = law.weights, law.place
    off = math.sqrt(float((weights * (at - place) ** 2).sum()))
    log_sd = float((weights * logs).sum())
    off_log = math.sqrt(float((weights * (logs - log_sd) ** 2).sum()))
    return _Told(middle + half * place, half * off, log_sd + math.log(half), off_log, half * math.exp(law.log_size))


def evidence_of_counts(
    seen: FloatArray, sd: float, n: float, below: FloatArray, open_ends: tuple[bool, bool], *, pure: bool = False
) -> FloatArray:
    """Log density of released shares (count,) in the cells of a part under normal laws, but for a constant.

    Parameters
    ----------
    seen : ndarray of shape (count,)
    sd : float
        Of the noise in each.
    n : float
    below : ndarray of shape (P, S, count + 1)
        Mass of each law below each edge.
    open_ends : (bool, bool)
        Whether numbers beyond an end are in its last cell, as at the ends of the range.
    pure : bool
        As of :func:`log_density`.
    """
    below = below.copy()
    below[..., 0] = np.where(open_ends[0], 0.0, below[..., 0])
    below[..., -1] = np.where(open_ends[1], 1.0, below[..., -1])
    expected = np.diff(below)
    own = expected / n + (MISFIT * expected) ** 2
    return np.asarray(log_density(seen - expected, sd, own, pure=pure).sum(axis=-1))


def log_density(off: FloatArray, sd: float, variance: Any, *, pure: bool) -> FloatArray:
    """Of noise with this sd, Gaussian or (`pure`) Laplace, and a normal error of its own variance; but for a constant.

    Of the sum of a Laplace and a normal variable: Reed (2006), doi:10.1007/0-8176-4487-3_4.
    """
    from scipy.special import log_ndtr

    if not pure:
        spread = sd**2 + variance
        return np.asarray(-0.5 * (off**2 / spread + np.log(spread)))
    size, own = sd / math.sqrt(2), np.sqrt(np.maximum(variance, LEAST_OWN * sd**2))
    above = log_ndtr(off / own - own / size) - off / size
    below = log_ndtr(-off / own - own / size) + off / size
    return np.asarray(np.logaddexp(above, below) + 0.5 * (own / size) ** 2)


def reach(
    cohort: Cohort, values: RowFunction, low: FloatArray, high: FloatArray, places: Places, *, n: float, share: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Release how far numbers are from their places; sizes and walls by it.

    A size becomes the root mean square with what is seen far out; a wall stands at :data:`WALL` sizes, or at twice
    the distance of the furthest that is seen.

    Returns
    -------
    size : ndarray of shape (q,)
    bottom, top : ndarray of shape (q,)
        Walls, within the ranges.
    """
    q, at = len(low), places.at
    furthest = np.maximum(high - at, at - low)
    ends = furthest[:, None] * 2.0 ** np.arange(1 - BINS, 1)
    row = distances_of(values, at, ends[:, :-1])
    seen, sd = count_in_bins(cohort, row, q, n=n, share=share, name="distances from places")
    visible = shown(seen, sd, SURE)
    last = np.maximum(visible.sum(axis=1) - 1, 0)
    far = visible & (ends > BEYOND * places.size[:, None])
    over = WITHIN * ends / places.size[:, None]
    size = places.size * np.sqrt(1 + np.where(far, np.maximum(seen, 0.0) * over**2, 0.0).sum(axis=1))
    wall = np.where(places.still, WALL_STILL, WALL) * size
    wall = np.maximum(wall, np.where(far.any(axis=1), 2 * ends[np.arange(q), last], 0.0))
    return size, np.maximum(at - wall, low), np.minimum(at + wall, high)


def shown(seen: FloatArray, sd: float, sure: FloatArray | float) -> BoolArray:
    """Bins (q, B) of which the shares there and beyond are no noise, up to the first gap."""
    beyond = np.cumsum(seen[:, ::-1], axis=1)[:, ::-1]
    noise = sd * np.sqrt(np.arange(seen.shape[1], 0, -1))
    return np.asarray(np.logical_and.accumulate(beyond > sure * noise, axis=1))
