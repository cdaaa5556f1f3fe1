"""Public ranges made narrower by what counts tell: bins and clips are then those of where numbers are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.privacy import Cohort
from fdadp.privacy.rows._sealed_row_functions import RowFunction
from fdadp.rounds.budget_plan import PlacesPlan
from fdadp.rounds.location_scale_histograms import CELLS, FINEST, Places, find_places, reach

WIDTH = 4.0
"""Half-width of a narrower range, in sizes."""
NARROWER = 0.5
"""Of the public range, what a narrower one is at most: else the public one stays, with all that is near its ends."""

SMALLEST_RANGE = 1e-300
"""Narrower ones have no room for cuts."""


class Ranges(NamedTuple):
    """Ranges of columns, as released.

    Attributes
    ----------
    low, high : ndarray of shape (q,)
        Within the public ones.
    places : Places
    """

    low: FloatArray
    high: FloatArray
    places: Places


def narrowed_ranges(cohort: Cohort, values: RowFunction, low: FloatArray, high: FloatArray, plan: PlacesPlan) -> Ranges:
    """Release counts and distances of q columns, and take ranges from them.

    Parameters
    ----------
    cohort : Cohort
    values : callable
        Row function: numbers (m, q) within their ranges.
    low, high : ndarray of shape (q,)
        Public ranges.
    plan : PlacesPlan
        Of q features.

    Notes
    -----
    *Sensitivity.* As of :func:`find_places` and :func:`reach`: one cell and one bin in each column.
    """
    places = find_places(cohort, values, low, high, n=plan.n, shares=[plan.counts] * len(CELLS))
    size, _, _ = reach(cohort, values, low, high, places, n=plan.n, share=plan.distances)
    bottom, top = np.maximum(low, places.at - WIDTH * size), np.minimum(high, places.at + WIDTH * size)
    width, most = top - bottom, high - low
    narrower = (width <= NARROWER * most) & (width > np.maximum(FINEST * most, SMALLEST_RANGE))
    return Ranges(np.where(narrower, bottom, low), np.where(narrower, top, high), places)
