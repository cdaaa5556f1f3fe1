"""Private forests of public random trees: the leaf of a row is public knowledge of the row, what leaves hold is not.

Trees that look at the data for their cuts spend a budget on each. Here features and cuts are drawn at random from the
public ranges (Geurts, Ernst & Wehenkel 2006, of "totally randomized trees"), so all of the budget goes to one release,
what is in the leaves. Such a forest finds interactions, of which additive models and linear ones know nothing.

Sources: Geurts, Ernst & Wehenkel (2006), doi:10.1007/s10994-006-6226-1; Jagannathan, Pillaipakkamnatt & Wright (2012),
Transactions on Data Privacy 5 (random trees with private leaf counts).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import softmax

from fdadp._common.argument_checks import whole
from fdadp._common.typing import ArrayLike, FloatArray, IntArray
from fdadp.errors import InputError
from fdadp.learners.shared._declared_vs_released import Doubts
from fdadp.learners.shared._estimator_base import Bounded, PrivateClassifier, PrivateRegressor
from fdadp.learners.shared.public_inputs import UnitTarget, as_table, box_of, class_array, class_labels, one_target
from fdadp.privacy import Cohort
from fdadp.privacy.rows._sealed_row_functions import Rows

_MOST = 10**6
"""Released values."""
_NEAREST = 0.2
"""Cuts are no nearer to the ends of a cell than this share of it."""
_ROWS = 2.0
"""Leaves are shrunk by as many rows, and by the noise."""
_CERTAIN = 4.0
"""Variances of the noise below which a square tells nothing; sds of the noise for the squares of all leaves."""


class _Trees:
    """Public random trees on a public box: in each node one feature, and a cut within the node's cell.

    Attributes
    ----------
    feature, cut : ndarray of shape (trees, 2^depth - 1)
        Nodes level by level.
    """

    def __init__(self, low: FloatArray, high: FloatArray, trees: int, depth: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.low, self.high, self.depth, self.leaves = low, high, depth, 2**depth
        shape = trees, self.leaves - 1
        self.feature: IntArray = rng.integers(0, len(low), shape)
        self.cut = np.zeros(shape)
        place = rng.uniform(_NEAREST, 1 - _NEAREST, shape)
        for tree in range(trees):
            cells = {0: (low.copy(), high.copy())}
            for node in range(shape[1]):
                a, b = cells.pop(node)
                j = self.feature[tree, node]
                self.cut[tree, node] = a[j] + place[tree, node] * (b[j] - a[j])
                left, right = b.copy(), a.copy()
                left[j] = right[j] = self.cut[tree, node]
                cells[2 * node + 1], cells[2 * node + 2] = (a, left), (right, b)

    def __call__(self, x: FloatArray) -> IntArray:
        """Leaf of each row (m, d) in each tree, (m, trees): a function of the row alone, moved into the box."""
        inside = np.clip(np.nan_to_num(x), self.low, self.high)
        trees, each = np.arange(len(self.feature)), np.arange(len(x))[:, None]
        node: IntArray = np.zeros((len(x), len(trees)), dtype=np.int64)
        for _ in range(self.depth):
            node = 2 * node + 1 + (inside[each, self.feature[trees, node]] > self.cut[trees, node])
        return np.asarray(node - (self.leaves - 1))


@dataclass(kw_only=True, eq=False, repr=False)
class _Forest(Bounded):
    """What both forests share: the public trees."""

    n_trees: int = 64
    depth: int = 4
    tree_seed: int = 0

    def _trees(self, d: int, values: int) -> _Trees:
        """Trees of d features, of which each leaf holds so many released values."""
        low, high = box_of(self.bounds, self.data_norm, self.center, d)
        trees, depth = whole(self.n_trees, "n_trees"), whole(self.depth, "depth")
        seed = whole(self.tree_seed, "tree_seed", least=0)
        if depth > math.log2(_MOST) or trees * values * 2**depth > _MOST:
            raise InputError(
                f"n_trees and depth must release at most {_MOST} values, got {trees} trees of "
                f"depth {depth} with {values} a leaf"
            )
        return _Trees(low, high, trees, depth, seed)

    def _shown(self, trees: _Trees) -> dict[str, Any]:
        """Public inputs, for the ledger."""
        bounds = (trees.low, trees.high) if self.bounds is None else self.bounds
        return {"bounds": bounds, "trees": f"{self.n_trees} of depth {self.depth}, seed {self.tree_seed}"}


@dataclass(kw_only=True, eq=False, repr=False)
class DPForestClassifier(PrivateClassifier, _Forest):
    """A forest of public random trees with private class counts in their leaves.

    Worth taking where features say something only together (interactions), which no other learner here sees. Where each
    says something by itself another learner is mostly as good or a little better: ``docs/learners.md``.

    Parameters
    ----------
    epsilon, delta, n, adjacency, unit, labels, budget, dataset, random_state, study, purpose
        The guarantee: the parameters of :class:`fdadp.Privacy`.
    classes : sequence
        Public labels. A row with another label counts as no row.
    bounds : (low, high), optional
        Public range of each feature, a number or d numbers each; values are moved to it.
    data_norm : float, optional
        Instead of ``bounds``: public radius of a ball about ``center``; values are moved to the box around it.
    center : float or array_like of shape (d,)
        Public; with ``data_norm``.
    n_trees, depth : int
        Public. More trees cost no accuracy by their noise, which averages out as fast as it grows; deeper ones do.
    tree_seed : int
        Public seed of the trees, which has nothing to do with the noise.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
    leaf_log_share_ : ndarray of shape (K, n_trees, 2^depth)
        Logarithm of each class's share in each leaf, shrunk to its share in all.
    ledger_, privacy_spent_

    Notes
    -----
    *Proof.* A row adds 1 to the count of its class in one leaf of each of T trees: L1 norm T, L2 norm √T, nothing
    negative (``docs/theory/learners.md#forest``). Missing values: the row counts as no row.

    Shares are shrunk by 2 rows and one standard deviation of the noise, and averaged over trees as logarithms.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (5000, 3))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same", "opposite")  # no feature says anything by itself
    >>> model = DPForestClassifier(epsilon=1.0, classes=["opposite", "same"], bounds=(-1, 1), random_state=0)
    >>> bool(model.fit(X, y).score(X, y) > 0.8)
    True
    """

    def _learn(self, X: Any, y: Any, groups: ArrayLike | None) -> Cohort:
        """Release the counts, and shrink them."""
        labels = class_labels(self.classes)
        K = len(labels)
        trees = self._trees(int(as_table(X).shape[1]), K)
        T, L = self.n_trees, trees.leaves
        shown = {"classes": labels, **self._shown(trees)}
        cohort = self._open(X, y, groups, classes=labels, public=shown)

        def counts(rows: Rows) -> FloatArray:
            x, code = rows
            at = trees(x) + L * (np.arange(T) + T * np.nan_to_num(code).astype(np.int64)[:, None])
            return np.asarray(_ones(at, K * T * L) + 0.0 * (code + _usable(x))[:, None])

        clip = float(T) if cohort.pure else math.sqrt(T)
        total, sd = cohort.sum(counts, clip=clip, share=1.0, name="class counts in leaves", nonnegative=True)
        self.doubts_ = _doubts(cohort, total.reshape(K, T, L), sd, labels)
        leaf = np.maximum(total.reshape(K, T, L), 0.0)
        rows = np.maximum(total.reshape(K, T * L).sum(axis=1) / T, 0.0) + _ROWS + sd * math.sqrt(L / T)
        share = (rows / rows.sum())[:, None, None]
        weight = _ROWS + sd
        self._fitted_trees = trees
        self.leaf_log_share_ = np.log((leaf + weight * share) / (leaf.sum(axis=0) + weight))
        self.classes_ = class_array(labels)
        return cohort

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of the classes, shape (m, K): the geometric mean over trees, normalised."""
        x = self._new_rows(X)  # first: it refuses where nothing was fitted
        at = self._fitted_trees(x)
        return np.asarray(softmax(_over_trees(self.leaf_log_share_, at), axis=1))

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """Most probable class, shape (m,)."""
        return self._labels(self.predict_proba(X))


@dataclass(kw_only=True, eq=False, repr=False)
class DPForestRegressor(PrivateRegressor, _Forest):
    """A forest of public random trees with private sums of the target in their leaves.

    Worth taking where features act on the target only together; where each says something by itself,
    :class:`DPLinearRegression` and :class:`DPAdditiveRegressor` do better.

    Parameters
    ----------
    epsilon, delta, n, adjacency, unit, labels, budget, dataset, random_state, study, purpose
    bounds, data_norm, center, n_trees, depth, tree_seed
        As of :class:`DPForestClassifier`.
    bounds_y : (low, high)
        Public range of the target; targets are moved to it.

    Attributes
    ----------
    leaf_sum_, leaf_count_ : ndarray of shape (n_trees, 2^depth)
        As released: of targets in units of half their range, from its middle, and of rows.
    mean_ : float
        Of all targets, in their units, shrunk by its noise.
    kept_ : float
        Share of the leaves' differences from the mean that is kept, in [0, 1]: what their size says is no noise.
    ledger_, privacy_spent_

    Notes
    -----
    *Proof.* A row adds (1, t), ``|t| <= 1``, to one leaf of each of T trees: L1 norm at most 2 T, L2 norm at most
    √(2 T) (``docs/theory/learners.md#forest``). Missing values: the row counts as no row.

    A prediction is the mean, and ``kept_`` of how the sums over trees of a row's leaves differ from it, over their
    counts and the weight of 2 rows and two standard deviations of noise. ``kept_`` compares the squares of all leaves'
    differences with those of the noise, which is known; where they are no larger (by four standard deviations) it is 0.
    The mean is drawn to the middle of the range, and is that where sum or count are within two of their own.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (5000, 2))
    >>> y = X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=5000)
    >>> model = DPForestRegressor(epsilon=2.0, bounds=(-1, 1), bounds_y=(-1, 1), random_state=0)
    >>> bool(model.fit(X, y).score(X, y) > 0.4)
    True
    """

    bounds_y: Any = None

    def _learn(self, X: Any, y: Any, groups: ArrayLike | None) -> Cohort:
        """Release counts and sums."""
        scale = UnitTarget(self.bounds_y)
        trees = self._trees(int(as_table(X).shape[1]), 2)
        one_target(y)
        T, L = self.n_trees, trees.leaves
        shown = {"bounds_y": self.bounds_y, **self._shown(trees)}
        cohort = self._open(X, y, groups, public=shown)

        def sums(rows: Rows) -> FloatArray:
            x, t = rows[0], scale(rows[1])[:, None]
            ones = _ones(trees(x) + L * np.arange(T), T * L) + 0.0 * (t + _usable(x)[:, None])
            return np.concatenate([ones, ones * t], axis=1)

        clip = 2.0 * T if cohort.pure else math.sqrt(2 * T)
        total, sd = cohort.sum(sums, clip=clip, share=1.0, name="counts and sums of the target in leaves")
        self.leaf_count_, self.leaf_sum_ = total.reshape(2, T, L)
        self.doubts_ = _doubts(cohort, self.leaf_count_[None], sd, leaf_sum=self.leaf_sum_)
        counted, summed = float(self.leaf_count_.sum()) / T, float(self.leaf_sum_.sum()) / T
        of_sums = sd**2 * L / T
        known = _above_noise(summed, of_sums) * (_above_noise(counted, of_sums) if counted > 0 else 0.0)
        mean = min(max(known * summed / max(counted, 1.0), -1.0), 1.0)
        noise = sd**2 * (1 + mean**2)
        left = float(((self.leaf_sum_ - mean * self.leaf_count_) ** 2).mean())
        signal = max(left - noise * (1 + _CERTAIN * math.sqrt(2 / (T * L))), 0.0)
        self.kept_ = signal / (signal + noise / T)
        self.mean_ = scale.middle + scale.half * mean
        self._fitted_trees, self._scale = trees, scale
        self._weight = _ROWS + 2 * sd / math.sqrt(T)
        return cohort

    def predict(self, X: Any) -> FloatArray:
        """Targets, shape (m,), within ``bounds_y``; rows are moved to ``bounds``."""
        x = self._new_rows(X)
        at, scale = self._fitted_trees(x), self._scale
        mean = (self.mean_ - scale.middle) / scale.half
        sums, counts = _over_trees(np.stack([self.leaf_sum_, self.leaf_count_]), at).T
        off = self.kept_ * (sums - mean * counts) / (np.maximum(counts, 0.0) + self._weight)
        return scale.inside(self.mean_ + scale.half * off)


def _above_noise(value: float, variance: float) -> float:
    """Share of a noisy value that is kept: none up to two standard deviations, nearly all far above them."""
    return max(1 - _CERTAIN * variance / value**2, 0.0) if value else 0.0


def _doubts(
    cohort: Cohort, counts: FloatArray, sd: float, labels: Sequence[Hashable] = (), leaf_sum: FloatArray | None = None
) -> tuple[str, ...]:
    """What counts (K, trees, leaves), and sums of a target in [-1, 1], say against what was declared."""
    K, T, L = counts.shape
    doubts = Doubts(cohort, 3 + K)
    each = counts.sum(axis=(1, 2)) / T
    whole, noise = float(each.sum()), sd * math.sqrt(K * L / T)
    if doubts.rows(whole, noise, counts / sd, copies=counts.size):
        if labels:
            doubts.classes(labels, each, noise / math.sqrt(K))
        if leaf_sum is not None:
            mean = float(leaf_sum.sum()) / T / whole
            doubts.still(["y"], 1 - mean**2, 2 * math.sqrt(2) * noise / whole)
        leaves = counts.sum(axis=0)
        doubts.crowded_trees(leaves, sd * math.sqrt(K), whole)
    return doubts.said


def _ones(at: IntArray, size: int) -> FloatArray:
    """Rows of zeros, (m, size), with ones at these places, (m, T)."""
    out = np.zeros((len(at), size))
    np.put_along_axis(out, at, 1.0, axis=1)
    return out


def _usable(x: FloatArray) -> FloatArray:
    """0 for each row, (m,), or NaN where an entry is no finite number."""
    return np.where(np.isfinite(x).all(axis=1), 0.0, np.nan)


def _over_trees(values: FloatArray, at: IntArray) -> FloatArray:
    """Mean over trees of the values (K, trees, leaves) in each row's leaves (m, trees); shape (m, K)."""
    return np.asarray(values[:, np.arange(at.shape[1]), at].mean(axis=2).T)
