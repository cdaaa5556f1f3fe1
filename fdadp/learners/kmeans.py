"""Private k-means: Lloyd's iterations on noisy counts and sums, from a start that does not see the data.

Libraries that start from the data, skip a cluster because it is *exactly* empty, choose the number of iterations by
the number of rows or return labels and inertia of the training rows give more away than their ε; here nothing but
the noisy counts and sums depends on the data.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.cluster import KMeans

from fdadp._common.argument_checks import fraction, numbers, whole
from fdadp._common.typing import ArrayLike, FloatArray, IntArray
from fdadp.errors import InputError
from fdadp.learners.pca import CONST, noisy_scatter
from fdadp.learners.shared._declared_vs_released import Doubts
from fdadp.learners.shared._estimator_base import Bounded
from fdadp.learners.shared.public_inputs import as_table, ball, box, positive, said_once
from fdadp.privacy import Cohort, rowwise_matmul
from fdadp.privacy._unaccounted_fits import score_is_not_private
from fdadp.privacy.rows._rowwise_arithmetic import in_ball
from fdadp.privacy.rows._sealed_row_functions import RowFunction, Rows
from fdadp.rounds.posterior_means import empirical_bayes

# Where k-means starts: a noisy histogram on a public grid, clustered as often as one likes.
#
# Lloyd's iterations find a local optimum, and privately each costs budget. What a histogram released can be clustered
# from many starts for nothing. Su et al. (2016), doi:10.1145/2857705.2857708 (EUGkM).


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

    def cell(rows: Rows) -> tuple[FloatArray, IntArray]:
        z = row(rows)
        at: IntArray = np.clip(np.nan_to_num((z / half + 1) / 2 * many), 0, many - 1).astype(np.int64)
        return 1.0 + 0.0 * z.sum(axis=1)[:, None], at @ many ** np.arange(p - 1, -1, -1)

    name = "histogram on a grid"
    counts, sd = cohort.sum(cell, clip=1.0, share=share, name=name, nonnegative=True, blocks=many**p)
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


_RHO = 0.225
"""Su et al.: expected size of a centre's coordinate, as a share of half the range."""
_COUNT_SHARE = 0.01
_GRID_SHARE, _AFTER_GRID = 0.5, 1
"""Share of the budget for the start on a grid, and Lloyd's iterations after it."""
_MEAN, _CENTRE = 1 / 9, 1 / 3
"""Largest variance, before the release, of a coordinate of the mean, and of a centre about it, by the half range²."""


def sphere_packing(k: int, half: FloatArray | float, d: int, rng: np.random.Generator) -> FloatArray:
    """k points far from each other and from the edge: of a box of half widths (d,), or of a ball of a radius.

    Points are drawn one by one, at least a from the edge and 2a from the others; after 100 failures a is made smaller
    by a fifth and all are drawn again (Su et al. 2016, who halve it). Sees no data.
    """
    in_box = not isinstance(half, float)
    size = float(np.max(half)) if in_box else float(half)
    a = size
    while True:
        points: list[FloatArray] = []
        room = np.maximum(half - a, 0.0)
        for _ in range(k):
            for _ in range(100):
                if in_box:
                    point = rng.uniform(-1, 1, d) * room
                else:
                    direction = rng.standard_normal(d)
                    point = direction / np.linalg.norm(direction) * room * rng.random() ** (1 / d)
                if all(np.linalg.norm(point - other) >= 2 * a for other in points):
                    points.append(point)
                    break
            else:
                break
        if len(points) == k:
            return np.array(points)
        a *= 0.8


@dataclass(kw_only=True, eq=False, repr=False)
class DPKMeans(ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin, Bounded):  # type: ignore[misc]
    """k-means clustering with differential privacy.

    Parameters
    ----------
    epsilon, delta, n, adjacency, unit, labels, budget, dataset, random_state, study, purpose
        The guarantee: the parameters of :class:`fdadp.Privacy`.
    n_clusters : int
    bounds : (low, high), optional
        Public range of each feature, a number or d numbers each. One of `bounds` and `data_norm` must be given; with
        both the box gives the middle and the start, and the ball the clip.
    data_norm : float, optional
        Public radius. Rows are clipped to this ball about the middle. Default with bounds: half the box's diagonal.
    center : float or array_like of shape (d,)
        Public middle, where there are no bounds.
    n_iter : int, optional
        Lloyd's iterations. Default 1 after a grid or plane; else 4 with a δ, and with pure ε 2 to 7 by Su et al., from
        n. That is declared, or under "add-remove" a noisy count for one percent of the budget.
    init : {"auto", "grid", "plane", "sphere_packing"} or array_like of shape (k, d)
        "grid" starts from a noisy histogram on a public grid, clustered from twenty starts, for half of the budget. It
        is for at most three features, or principal components. "plane" is for more features. It does the same on the
        first three principal components of a noisy second moment, each for a quarter. The choice "sphere_packing" takes
        public points far from each other. With "auto" the fit takes the first of them that can be. Or given points.
    split : float
        Share of the budget for the sums in each iteration; the rest is for the counts. Not with pure ε.
    projection : int, optional
        Cluster on so many private principal components, learnt for half of the budget. With many features, few rows
        and a small ε this may show clusters that the default does not; with more of either the default does better.
    projection_norm : float, optional
        Public radius to which projected rows are clipped about the mean; default: half of data_norm.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (k, d)
        In units of the features.
    noisy_sizes_ : ndarray of shape (k,)
        Rows, or persons, in each cluster at the last iteration, with noise; may be negative.
    ledger_, privacy_spent_

    Notes
    -----
    With T iterations the share of each is 1/T. In one a row adds, to the block of its nearest centre, a weight w_0 to
    the count and w z to the sums, z clipped. A row lies in one block, so the clusters compose in parallel. The centre
    is the noisy sum over the noisy count, clipped; where the noisy count is at most 2 sd it stays where it was. At the
    last iteration centres are posterior means given the noise's sd, about the centres before it. With many features
    they are shrunk to the mean of all rows, which is nearer to the rows than a wrong guess.

    *Sensitivity*: ``docs/theory/learners.md#k-means``.

    *Gaussian.* w_0 = √(1 - split), w = √split/R: L2 norm at most 1. Where a person is replaced the kernel doubles it;
    max(2 √split, √2) would do.

    *Laplace.* L1: w_0 = c_0, w_j = c_1/half_j, half_j the smaller of half the range and R, with c_0 + d c_1 = 1 and c_0
    / c_1 = (4 d 0.225²)^(1/3) (Su et al. 2016, doi:10.1145/2857705.2857708).

    *Starts.* Lloyd's iterations end in a local optimum, without privacy too; other public starts cost another fit each.

    ``labels_`` and ``inertia_`` of the training rows would not be private and are not there. ``predict`` may be asked
    for any rows, but its answers for the rows that were fitted on, and so ``fit_predict``, are not private.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> centers = np.array([[-2.0, 0.0], [2.0, 2.0], [2.0, -2.0]])
    >>> X = centers[rng.integers(0, 3, 6000)] + 0.3 * rng.normal(size=(6000, 2))
    >>> model = DPKMeans(epsilon=1.0, n_clusters=3, bounds=(-4, 4), random_state=1).fit(X)
    >>> bool(-model.score(X) / 6000 < 0.25)  # mean squared distance; 0.18 without privacy
    True
    """

    n_clusters: int = 8
    n_iter: int | None = None
    init: Any = "auto"
    split: float = 0.8
    projection: int | None = None
    projection_norm: float | None = None

    def _region(self, d: int) -> tuple[FloatArray, float, FloatArray | None]:
        """Public middle (d,), radius, and half widths of the box if there is one."""
        said_once(self.bounds, self.data_norm, self.center, both=True)
        if self.bounds is None:
            radius, middle = ball(self.data_norm, self.center, d)
            return middle, radius, None
        low, high = box(self.bounds, d)
        half, middle = (high - low) / 2, (low + high) / 2
        radius = float(np.linalg.norm(half))
        if self.data_norm is not None:
            radius = min(ball(self.data_norm, 0.0, d)[0], radius)
        return middle, radius, half

    def _check(self, d: int) -> None:
        whole(self.n_clusters, "n_clusters")
        if self.n_iter is not None:
            whole(self.n_iter, "n_iter")
        if self.projection is not None:
            whole(self.projection, "projection", most=d)
        fraction(self.split, "split")
        if self.projection_norm is not None:
            positive(self.projection_norm, "projection_norm")

    def _start(self, d: int, middle: FloatArray) -> FloatArray | None:
        """Return the starting centres that the user gave, relative to the middle, or None."""
        if isinstance(self.init, str):
            if self.init not in ("auto", "grid", "plane", "sphere_packing"):
                raise InputError(
                    f"init must be 'auto', 'grid', 'plane', 'sphere_packing' or an array, got {self.init!r}"
                )
            if self.init == "plane" and (self.projection is not None or d <= MOST_DIMENSIONS):
                raise InputError(
                    f"init must not be 'plane' with projection, or with at most {MOST_DIMENSIONS} features, got {d} "
                    f"and projection {self.projection}"
                )
            if self.init == "grid" and (self.projection or d) > MOST_DIMENSIONS:
                raise InputError(
                    f"init must not be 'grid' with more than {MOST_DIMENSIONS} features or components (projection), "
                    f"got {self.projection or d}"
                )
            return None
        start = numbers(self.init, "init")
        if start.shape != (self.n_clusters, d) or not np.isfinite(start).all():
            raise InputError(f"init must be finite, of shape {(self.n_clusters, d)}, got shape {start.shape}")
        return np.asarray(start - middle)

    def _learn(self, X: Any, y: Any, groups: ArrayLike | None) -> Cohort:
        """Release counts and sums of each iteration and keep the last centres."""
        d = int(as_table(X).shape[1])
        middle, radius, half = self._region(d)
        self._check(d)
        centers = self._start(d, middle)
        shown = {"bounds": self.bounds, "data_norm": radius, "center": self.center, "n_clusters": self.n_clusters}
        shown |= {"projection": self.projection, "split": self.split}
        cohort = self._open(X, groups=groups, public=shown)
        rng = np.random.default_rng(None if self.random_state is None else [self.random_state, 1])  # public
        share = 1.0
        axes = np.eye(d)
        offset = np.zeros(d)
        if self.projection is not None:
            share /= 2
            _, offset, scatter = noisy_scatter(cohort, middle, radius, radius * CONST, share)
            axes = np.linalg.eigh(scatter)[1][:, ::-1][:, : self.projection]
            axes = np.ascontiguousarray(axes)
            whole, radius, half = radius, float(self.projection_norm or radius / 2), None
            if centers is not None:
                centers = (centers - offset) @ axes
        p = axes.shape[1]

        def row(rows: Rows) -> FloatArray:
            x = rows[0] - middle
            if half is not None:
                x = np.clip(x, -half, half) + 0.0 * x  # what is not finite becomes NaN, not the bound
            if self.projection is not None:
                x = rowwise_matmul(in_ball(x, whole) - offset, axes)
            return in_ball(x, radius)

        drawn = centers is None
        on_grid = drawn and p <= MOST_DIMENSIONS and self.init in ("auto", "grid")
        on_plane = drawn and p > MOST_DIMENSIONS and self.projection is None and self.init in ("auto", "plane")
        if centers is None:
            centers = sphere_packing(int(self.n_clusters), radius if half is None else half, p, rng)
        if on_grid:
            width = np.full(p, radius) if half is None else np.minimum(half, radius)
            centers = grid_start(cohort, row, width, share * _GRID_SHARE, centers, int(rng.integers(2**31)))
        elif on_plane:
            seed = int(rng.integers(2**31))
            centers = plane_start(cohort, row, middle, radius, share * _GRID_SHARE, centers, seed)
        if on_grid or on_plane:
            steps, share = self.n_iter or _AFTER_GRID, share * (1 - _GRID_SHARE)
        else:
            steps, share = self._steps(cohort, p, share)
        sizes, noise = np.zeros(len(centers)), 0.0
        for step in range(steps):
            name = f"counts and sums of the clusters, iteration {step + 1}"
            last = step == steps - 1
            centers, sizes, noise = self._iterate(cohort, row, centers, radius, half, share / steps, name, last=last)
        self.cluster_centers_ = middle + offset + centers @ axes.T
        self.noisy_sizes_ = sizes
        doubts = Doubts(cohort)
        doubts.rows(float(sizes.sum()), math.sqrt(len(sizes)) * noise, sizes / noise)
        self.doubts_ = doubts.said
        return cohort

    def _steps(self, cohort: Cohort, d: int, share: float) -> tuple[int, float]:
        """Number of iterations, and the share of the budget that is left for them."""
        if self.n_iter is not None:
            return int(self.n_iter), share
        if not cohort.pure:
            return 4, share
        n = cohort.n
        if n is None:
            n, share = cohort.count(share=_COUNT_SHARE).value, share - _COUNT_SHARE
        c = _weight_of_counts(d)
        least = math.sqrt(500 * self.n_clusters**3 / n**2 * (d + c) ** 3)
        return int(min(max(cohort.amount * share / least, 2), 7)), share

    def _iterate(
        self,
        cohort: Cohort,
        row: Any,
        centers: FloatArray,
        radius: float,
        half: FloatArray | None,
        share: float,
        name: str,
        *,
        last: bool = False,
    ) -> tuple[FloatArray, FloatArray, float]:
        k, d = centers.shape
        if cohort.pure:
            c = _weight_of_counts(d)
            most = np.full(d, radius) if half is None else np.minimum(half, radius)
            count, weight = c / (c + d), 1 / (c + d) / most
        else:
            count, weight = math.sqrt(1 - self.split), np.full(d, math.sqrt(self.split) / radius)
        turned = np.ascontiguousarray(centers.T)
        lengths = (centers**2).sum(axis=1) / 2

        def counts_and_sums(rows: Rows) -> tuple[FloatArray, IntArray]:
            z = row(rows)
            near = (rowwise_matmul(z, turned) - lengths).argmax(axis=1)
            return np.concatenate((np.full((len(z), 1), count), z * weight), axis=1), near

        total, sd = cohort.sum(counts_and_sums, clip=1.0, share=share, name=name, blocks=k)
        table = total.reshape(k, d + 1)
        sizes = table[:, 0] / count
        if last:
            wide = np.full(d, radius / math.sqrt(d)) if half is None else half
            believed = _believed(centers, sizes, table[:, 1:] / weight, sd / count, sd / weight, wide)
            return in_ball(believed, radius), sizes, sd / count
        moved = table[:, 1:] / weight / np.maximum(sizes, 1.0)[:, None]
        seen = sizes > 2 * sd / count
        return np.where(seen[:, None], in_ball(moved, radius), centers), sizes, sd / count

    def _distances(self, X: Any) -> FloatArray:
        x = self._new_rows(X)
        return np.asarray(np.linalg.norm(x[:, None] - self.cluster_centers_, axis=2))

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """Index of the nearest centre, (m,)."""
        return np.asarray(self._distances(X).argmin(axis=1))

    def fit_predict(self, X: Any, y: Any = None, groups: ArrayLike | None = None) -> np.ndarray[Any, Any]:
        """Fit, and return the nearest centre of each row: not private, so for the rows' owner alone."""
        return self.fit(X, groups=groups).predict(X)

    def transform(self, X: Any) -> FloatArray:
        """Distances from the centres, (m, k)."""
        return self._distances(X)

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the sum of squared distances of some rows from their nearest centres."""
        score_is_not_private(self)
        return -float((self._distances(X).min(axis=1) ** 2).sum())


def _weight_of_counts(d: int) -> float:
    """Of the count over that of a coordinate's sum, where noise is Laplace's."""
    return float((4 * d * _RHO**2) ** (1 / 3))


def _believed(
    start: FloatArray, sizes: FloatArray, sums: FloatArray, sd_size: float, sd_sum: FloatArray, half: FloatArray
) -> FloatArray:
    """Centres (k, d) of noisy sizes (k,) and sums (k, d): posterior means.

    About the centres that were there, drawn to the mean of all rows: of k points in directions at random the nearest
    one to a row has a squared cosine of 2 log k/d, and where that is small a wrong guess is worse than the mean.
    `sd_sum` (d,) is the noise's on sums, `half` (d,) how far a coordinate can be from 0.
    """
    k, d = start.shape
    n = max(float(sizes.sum()), math.sqrt(k) * sd_size, 1.0)
    mean, noise = sums.sum(axis=0) / n, k * (sd_sum / n) ** 2
    middle, _ = empirical_bayes(mean, noise, 0.0, _MEAN * half**2)
    near = min(1.0, 2 * math.log(max(k, 2)) / d)
    guess = middle + near * (start - middle)
    rows = np.maximum(sizes, max(sd_size, 1.0))[:, None]
    gaps, noise = sums / rows - guess, (sd_sum / rows) ** 2
    return np.asarray(guess + empirical_bayes(gaps, noise, 0.0, _CENTRE * half**2)[0])
