"""Where k-means starts: a noisy histogram on a public grid, clustered as often as one likes.

Lloyd's iterations find a local optimum, and privately each costs budget. What a histogram released can be clustered
from many starts for nothing. Su et al. (2016), doi:10.1145/2857705.2857708 (EUGkM).
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from sklearn.cluster import KMeans

from fdadp._common.typing import FloatArray, IntArray
from fdadp.learners.decomposition import CONST, noisy_scatter
from fdadp.privacy import Cohort, rowwise_matmul
from fdadp.privacy._local import RowFunction, Rows

MOST_DIMENSIONS = 3
"""Beyond them a grid of this many cells cannot tell clusters apart."""
_CELLS = {1: 256, 2: 32, 3: 8}
"""Cells along each dimension, by the number of dimensions: powers of 2, that cells can be joined."""
_COVERED = 0.7
"""Share of the rows that cells above the noise must hold: else cells are joined by twos in each dimension."""
_COARSEST, _RESTARTS = 4, 20
_WIDE = 2.5
"""Half width of the grid on principal components, in standard deviations along them."""


def cells(half: FloatArray, many: int) -> FloatArray:
    """Middles (cells, p) of a grid with so many cells a dimension on the box of half widths (p,) about 0."""
    edges = (2 * np.arange(many) + 1) / many - 1
    return np.array(list(itertools.product(*(edges * h for h in half))))


def grid_start(
    cohort: Cohort, row: RowFunction, half: FloatArray, share: float, start: FloatArray, seed: int
) -> FloatArray:
    """Centres (k, p) of a noisy histogram of rows (m, p) in a box about 0: one release, then weighted k-means.

    Counts below the usual largest of so many draws of noise alone are taken for 0. Cells are joined until those above
    the noise hold most rows. Where they are fewer than k, public points `start` (k, p) stand for the rest.
    """
    p, many, k = len(half), _CELLS[len(half)], len(start)

    def histogram(rows: Rows) -> FloatArray:
        z = row(rows)
        at: IntArray = np.clip(np.nan_to_num((z / half + 1) / 2 * many), 0, many - 1).astype(np.int64)
        place = at @ many ** np.arange(p - 1, -1, -1)
        return np.asarray((place[:, None] == np.arange(many**p)) + 0.0 * z.sum(axis=1)[:, None])

    counts, sd = cohort.sum(histogram, clip=1.0, share=share, name="histogram on a grid", nonnegative=True)
    found = counts.reshape((many,) * p)
    while True:
        weights = np.where(found > sd * math.sqrt(2 * math.log(found.size)), found, 0.0)
        if weights.sum() >= _COVERED * found.sum() or len(found) <= _COARSEST:
            break
        for axis in range(p):
            found = found.reshape(*found.shape[:axis], -1, 2, *found.shape[axis + 1 :]).sum(axis=axis + 1)
        sd = sd * math.sqrt(2**p)
    middles, flat = cells(half, len(found)), weights.ravel()
    seen = flat > 0
    if seen.sum() <= k:
        return np.concatenate((middles[seen], start))[:k]
    return np.asarray(
        KMeans(k, n_init=_RESTARTS, random_state=seed).fit(middles[seen], sample_weight=flat[seen]).cluster_centers_
    )


def plane_start(
    cohort: Cohort, row: RowFunction, middle: FloatArray, radius: float, share: float, start: FloatArray, seed: int
) -> FloatArray:
    """Centres (k, d) about a public middle (d,), of more features than a grid can have.

    Half of the share goes to a second moment of the rows (clipped to the ball of `radius` about the middle), the other
    to :func:`grid_start` on its first principal components: what k-means can tell apart lies along them.
    """
    n, mean, scatter = noisy_scatter(cohort, middle, radius, radius * CONST, share / 2)
    values, vectors = np.linalg.eigh(scatter)
    plane = np.ascontiguousarray(vectors[:, ::-1][:, :MOST_DIMENSIONS])
    spreads = np.sqrt(np.maximum(values[::-1][:MOST_DIMENSIONS], 0.0) / n)
    half = np.clip(_WIDE * spreads, 1e-6 * radius, radius)

    def flat(rows: Rows) -> FloatArray:
        return rowwise_matmul(row(rows) - mean, plane)

    public = np.clip((start - mean) @ plane, -half, half)
    return np.asarray(mean + grid_start(cohort, flat, half, share / 2, public, seed) @ plane.T)
