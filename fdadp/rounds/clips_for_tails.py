"""Where to clip numbers with tails: a histogram of their sizes, and the least of noise² + bias².

A clip at a multiple of a robust scale is what must not be done: of numbers that are mostly zero it clips all the rest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.privacy import Cohort
from fdadp.privacy.rows._sealed_row_functions import RowFunction
from fdadp.rounds.location_scale_histograms import count_in_bins, distances_of, shown

FIRST, LAST = -6, 18
"""Edges are 2^(k/2) times where the histogram starts, k from the first to the last at most."""
NEAR, FAR, FAR_FROM = 1.5, 3.0, 4.0
"""Sds from which on what is beyond an edge counts; further than so many starts, the second."""
LEFT = 0.85
"""Share of what is beyond a clip that is lost."""
MEAN_SQUARE = 0.736
"""Of numbers spread evenly between an edge and √2 times it, over the square of the latter."""


class Clips(NamedTuple):
    """Clips of k numbers, and their mean squares once clipped.

    Attributes
    ----------
    at, square : ndarray of shape (k,)
    """

    at: FloatArray
    square: FloatArray


def find_clips(
    cohort: Cohort,
    values: RowFunction,
    start: FloatArray,
    most: FloatArray,
    *,
    n: float,
    noise: float,
    share: float,
    name: str,
) -> Clips:
    """Release a histogram of the sizes of k numbers, and clip where noise² + bias² is least.

    Parameters
    ----------
    cohort : Cohort
    values : callable
        Row function: numbers (m, k).
    start : ndarray of shape (k,)
        About where sizes are.
    most : ndarray of shape (k,)
        Larger clips are not wanted.
    n : float
        Declared or released number of persons.
    noise : float
        Error that noise leaves where the clip is 1.
    share, name
        Of the release, as of :func:`~fdadp.rounds.location_scale_histograms.count_in_bins`.
    """
    steps = 2.0 ** (np.arange(FIRST, LAST + 1) / 2)
    kept = steps[steps < np.max(most / start)]
    edges = start[:, None] * np.append(kept, kept[-1] * np.sqrt(2)) if kept.size else start[:, None] * steps[:2]
    k, bins = edges.shape
    seen, sd = count_in_bins(cohort, distances_of(values, 0.0, edges[:, :-1]), k, n=n, share=share, name=name)
    sure = np.where(edges > FAR_FROM * start[:, None], FAR, NEAR)
    beyond = np.where(shown(seen, sd, sure), np.cumsum(seen[:, ::-1], axis=1)[:, ::-1], 0.0)
    beyond = np.minimum.accumulate(np.clip(beyond, 0.0, 1.0), axis=1)
    lost = beyond[:, 1:] * np.diff(edges, axis=1)
    bias = LEFT * np.append(np.cumsum(lost[:, ::-1], axis=1)[:, ::-1], np.zeros((k, 1)), axis=1)
    best = np.argmin((noise * edges) ** 2 + bias**2, axis=1)
    at = np.minimum(edges[np.arange(k), best], most)
    within = np.minimum(MEAN_SQUARE * edges**2, at[:, None] ** 2)
    inside = np.arange(bins) <= best[:, None]
    square = (np.where(inside, seen, 0.0) * within).sum(axis=1)
    square = square + np.clip(1 - np.where(inside, seen, 0.0).sum(axis=1), 0.0, 1.0) * at**2
    return Clips(at, np.maximum(square, (0.1 * at) ** 2))
