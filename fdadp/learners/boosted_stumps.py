"""Private boosting of stumps over public bins: each round selects a one-feature test and weighs it.

The published private variants of AdaBoost (see :mod:`fdadp.published.adaboost_and_naive_bayes`) add noise to a few
weights and release the rest as it is. Here each round is a private selection and a private sum, so that the rounds'
costs add up to the budget and everything that is kept was released.

Sources: Freund & Schapire (1997), doi:10.1006/jcss.1997.1504 (boosting); Domingo & Watanabe (2000), MadaBoost (weights
in [0, 1] without normalisation); Friedman, Hastie & Tibshirani (2000), doi:10.1214/aos/1016218223 (logistic weights);
Dong, Durfee & Rogers (2020), arXiv:1909.01917 (bounded range of the exponential mechanism).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import expit

from fdadp._common.argument_checks import fraction, whole
from fdadp._common.typing import ArrayLike, FloatArray, IntArray
from fdadp.learners.shared._declared_vs_released import Doubts
from fdadp.learners.shared._public_bins import BinnedClassifier, Bins, odds
from fdadp.learners.shared.public_encoding import Numeric
from fdadp.learners.shared.public_inputs import class_array, class_labels, positive
from fdadp.privacy import Cohort
from fdadp.privacy.rows._sealed_row_functions import RowFunction, Rows
from fdadp.rounds.posterior_means import above_zero, posterior

_EDGE_SD = 0.1
"""Of the half-normal law that is believed in public of a chosen test's edge, before its step is released."""
_LARGEST_EDGE = 0.95
"""So that a step is finite."""


class Stump(NamedTuple):
    """One vote: ``step`` for the class where the test holds and ``-step`` elsewhere, times ``polarity``.

    The test is ``feature >= test`` for a number and ``feature == test`` for a label.
    """

    label: Hashable
    feature: int
    test: Any
    polarity: int
    step: float


@dataclass(kw_only=True, eq=False, repr=False)
class DPBoostedStumps(BinnedClassifier):
    """Boosting of one-feature tests: each round selects a test privately and weighs it by a noisy weighted error.

    Parameters
    ----------
    epsilon, delta, n, adjacency, unit, labels, budget, dataset, random_state, study, purpose
        The guarantee: the parameters of :class:`fdadp.Privacy`.
    classes : sequence
        Public labels; a row with another label counts as no row. More than two: one against the rest, each with its
        share of the budget.
    features : mapping of name to Numeric or Categorical, sequence of them, or one of them
        Public; one holds for all columns. Values beyond a Numeric's range are moved to its ends; a row with a missing
        value counts as no row. The candidates are ``x >= cut`` for every edge and
        ``x == label`` for every label, each with both signs. A Numeric without edges gets 38 cuts of its range, half of
        them on a logarithmic scale.
    bounds : (low, high), optional
        Instead of ``features``, where all are numbers: public range of each, a number or d numbers each.
    data_norm, center : float, array_like of shape (d,)
        Instead of both: public radius and centre of a ball; the ranges are those of the box around it.
    n_rounds : int, optional
        Default, by the public ε: 5 below 0.05, 25 below 0.5, else 50.
    select_share : float
        Share of a round's budget for the selection; the rest is for the step.
    max_step : float
        Largest step, in logits.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
    model_ : list of Stump
        In the order of the rounds; the test is a cut or a label.
    scores_ : ndarray of shape (number of bins,), or (number of bins, K) of more than two classes
        The same model as one number for each bin of each feature, in logits.
    ledger_, privacy_spent_

    Notes
    -----
    *Proof.* Given the model F so far (released), a row with y = ±1 has the weight w = 1/(1 + exp(y F(x))) in (0, 1).

    Selection: h is worth u(h) = w 1[h(x) = y] to a row, in [0, 1]; the sum over rows orders the candidates as the
    weighted edge Σ w y h(x) does. The contribution to that edge is 2 u(h) - w and would lie in [-1, 1]. In this form a
    row moves all sums in one direction by at most 1, hence in effect by ½ (:meth:`fdadp.privacy.Cohort.select`).

    Step: a row adds w to one of W+ = Σ w 1[h = y] and W- = Σ w 1[h ≠ y], so the pair has sensitivity 1 in L1 and L2.
    Where a person is replaced it is √2 in L2. Weights are not normalised: AdaBoost's exp(-y F)/Z has no bounded
    sensitivity. The step is log((1+r)/(1-r)), at most ``max_step``, where r in [0, 0.95] is the expected edge (W+ -
    W-)/(W+ + W-) given the noisy pair. The test was chosen for its edge, so the public prior is a half-normal with sd
    0.1. With little noise that is the released edge; all of it is post-processing.

    A round takes time and memory linear in the rows times features, and in the features times the square of their bins.

    Rounds compose adaptively. Of a person with several rows the mean of each contribution counts.

    Examples
    --------
    >>> import numpy as np
    >>> from fdadp.learners import DPBoostedStumps, Numeric
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 10, (3000, 2))
    >>> y = np.where(X[:, 0] > 5, "old", "young")
    >>> ages = [Numeric(0, 10), Numeric(0, 10)]
    >>> model = DPBoostedStumps(epsilon=1.0, classes=["young", "old"], features=ages, n_rounds=3, random_state=0)
    >>> bool(model.fit(X, y).score(X, y) > 0.95)
    True
    >>> model.model_[0].feature, model.model_[0].test
    (0, 5.0)
    """

    n_rounds: int | None = None
    select_share: float = 0.7
    max_step: float = 2.0

    @property
    def _accounting(self) -> str:
        return "zcdp"

    def _learn(self, X: Any, y: Any, groups: ArrayLike | None) -> Cohort:
        """Select and weigh the stumps."""
        self._settings()  # refuses an epsilon that is none
        rounds = _rounds(self.epsilon) if self.n_rounds is None else self.n_rounds
        whole(rounds, "n_rounds")
        fraction(self.select_share, "select_share")
        positive(self.max_step, "max_step")
        labels = class_labels(self.classes)
        cohort, bins = self._start(X, y, groups, labels)
        binned = bins.of(cohort)
        tests, K = _Tests(bins), len(labels)
        passing = tests.cells()
        wanted = [1] if K == 2 else list(range(K))
        scores = np.zeros((bins.total, len(wanted)))
        share = 1 / (rounds * len(wanted))
        model = []
        weights: list[float] = []  # of the rows, twice a step, in units of their noise
        for number in range(1, rounds + 1):
            for column, code in enumerate(wanted):
                released = scores[:, [column]]
                text = f"round {number}" + ("" if K == 2 else f", {labels[code]}")
                chosen = binned.select_test(
                    _cells(bins.starts, released, code),
                    passing,
                    2 * bins.sizes,
                    share=share * self.select_share,
                    name=f"{text}: test",
                )
                index, sign = chosen % tests.size, 1 if chosen < tests.size else -1
                feature, pattern = int(tests.feature[index]), sign * tests.pattern(index)
                (right, wrong), sd = binned.histogram(
                    _votes(bins.starts, released, code, feature, pattern),
                    share=share * (1 - self.select_share),
                    name=f"{text}: step",
                )
                weights += [right / sd, wrong / sd]
                edge = min(_edge(right, wrong, sd), _LARGEST_EDGE)
                step = min(self.max_step, math.log((1 + edge) / (1 - edge)))
                model.append(Stump(labels[code], *tests.describe(index), sign, step))
                scores[bins.starts[feature] : bins.starts[feature + 1], column] += step * pattern
        doubts = Doubts(cohort)
        least, many = 0.05 * len(weights), len(weights)  # a tenth in each step, on average: of very certain models
        doubts.rows(sd * sum(weights), sd * math.sqrt(many), weights, copies=many, what="weights of rows", least=least)
        self.doubts_ = doubts.said
        self.classes_ = class_array(labels)
        self._bins, self._tests = bins, tests
        self.scores_ = scores[:, 0] if K == 2 else scores
        self.model_ = model
        return cohort

    def _shares(self, score: FloatArray) -> FloatArray:
        """Of each class against the rest, normalised."""
        each = expit(score)
        return np.asarray(each / np.maximum(each.sum(axis=1, keepdims=True), 1e-300))

    def staged_predict(self, X: Any) -> Iterator[np.ndarray[Any, Any]]:
        """Predictions after each round."""
        codes = self._codes(X)
        K = len(self.classes_)
        width = 1 if K == 2 else K
        total = np.zeros((len(codes), width))
        for at, stump in enumerate(self.model_):
            column, code = at % width, codes[:, stump.feature]
            pattern = np.append(self._tests.pattern(self._tests.index(stump)), 0.0)  # a missing value votes for nothing
            votes = pattern[np.where(np.isnan(code), -1, np.nan_to_num(code)).astype(np.int64)]
            total[:, column] += stump.step * stump.polarity * votes
            if column == width - 1:
                yield self._labels(total[:, 0] if K == 2 else total)


class _Tests:
    """The candidate tests of public bins: ``code >= c`` of numbers, ``code == c`` of labels.

    Attributes
    ----------
    size : int
    feature : ndarray of shape (size,)
    """

    def __init__(self, bins: Bins) -> None:
        self._bins = bins
        found = []
        for j, (size, ordered) in enumerate(zip(bins.sizes.tolist(), bins.ordered.tolist(), strict=True)):
            # Of two labels one test says it all.
            codes = range(1, size) if ordered or size == 2 else range(size) if size > 2 else ()
            found += [(j, code) for code in codes]
        self.size = len(found)
        self.feature: IntArray = np.array([j for j, _ in found], dtype=np.int64)
        self._codes = [code for _, code in found]

    def cells(self) -> sparse.csr_array:
        """Sparse array of shape (2 size, 2 number of bins), of at most the square of a feature's bins for each feature.

        Cells are bins and, in each, the other classes and the class; 1 in cells of rows that the test, or then the test
        with the other sign, puts into the right class.
        """
        holds = [self.pattern(index) > 0 for index in range(self.size)]
        places = [2 * np.arange(*self._bins.starts[j : j + 2]) for j in self.feature.tolist()]
        right = [at + here for at, here in zip(places, holds, strict=True)]
        wrong = [at + ~here for at, here in zip(places, holds, strict=True)]
        ends = np.cumsum([0, *(len(at) for at in right + wrong)])
        ones = np.ones(int(ends[-1]), dtype=np.int64)
        return sparse.csr_array(
            (ones, np.concatenate(right + wrong), ends), shape=(2 * self.size, 2 * self._bins.total)
        )

    def describe(self, index: int) -> tuple[int, Any]:
        """Feature, and its cut or label."""
        feature, code = int(self.feature[index]), self._codes[index]
        spec = self._bins.specs[feature]
        return feature, float(spec.cuts[code - 1]) if isinstance(spec, Numeric) else spec.values[code]

    def pattern(self, index: int) -> FloatArray:
        """1 in bins of the test's feature where it holds, -1 in its others."""
        feature, code = int(self.feature[index]), self._codes[index]
        here = np.arange(int(self._bins.sizes[feature]))
        return np.where(here >= code if self._bins.ordered[feature] else here == code, 1.0, -1.0)

    def index(self, stump: Stump) -> int:
        """Number of the test of a stump."""
        same = np.flatnonzero(self.feature == stump.feature).tolist()
        return int(next(i for i in same if self.describe(i)[1] == stump.test))


def _weights(starts: IntArray, scores: FloatArray, codes: FloatArray, positive: FloatArray) -> FloatArray:
    """w = 1/(1 + exp(±F)), in [0, 1], (m,)."""
    each = odds(codes, starts, scores)[:, 0]
    return np.asarray(np.where(positive, 1 / (1 + each), 1 / (1 + 1 / each)))


def _cells(starts: IntArray, scores: FloatArray, wanted: int) -> RowFunction:
    """Row function: the cells (m, d) of :class:`_Tests`, and the weights (m,)."""

    def cells(rows: Rows) -> tuple[FloatArray, FloatArray]:
        codes, label = rows
        positive = label == wanted
        return 2 * codes + positive[:, None], _weights(starts, scores, codes, positive) + 0 * label

    return cells


def _votes(starts: IntArray, scores: FloatArray, wanted: int, feature: int, pattern: FloatArray) -> RowFunction:
    """Row function: (w 1[h(x) = y], w 1[h(x) ≠ y]), (m, 2), of the test with this pattern, (bins of its feature,)."""

    def votes(rows: Rows) -> FloatArray:
        codes, label = rows
        positive = label == wanted
        w = _weights(starts, scores, codes, positive) + 0 * label
        at = np.clip(np.nan_to_num(codes[:, feature]), 0, len(pattern) - 1).astype(np.int64)
        right = (pattern[at] > 0) == positive
        return np.stack([np.where(right, w, 0 * w), np.where(right, 0 * w, w)], axis=1)

    return votes


def _edge(right: float, wrong: float, sd: float) -> float:
    """Expected (W+ - W-)/(W+ + W-), given both with noise of this sd: their sum is positive, the edge half-normal.

    Difference and sum have uncorrelated noise. Given the sum's mean and variance the edge is a posterior mean where the
    difference is taken for normal with the variance that an uncertain sum gives it.
    """
    noise = 2 * sd**2
    total = float(above_zero(right + wrong, noise))
    mean, variance = posterior((right - wrong) / total, noise / total**2 * (1 + _EDGE_SD**2), 0.0, _EDGE_SD**2)
    return float(above_zero(mean, variance))


def _rounds(epsilon: float) -> int:
    return 5 if epsilon < 0.05 else 25 if epsilon < 0.5 else 50
