"""Private additive histograms: a score for each public bin, fitted feature after feature from noisy residual sums.

Each turn is one private sum, so that the turns' costs add up to the budget and everything that is kept was released.

Source: Nori et al. (2021), Accuracy, Interpretability and Differential Privacy via Explainable Boosting,
arXiv:2106.09680 (cyclic histograms).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.fft import dct
from scipy.special import softmax

from fdadp._common.argument_checks import fraction, is_number, whole
from fdadp._common.typing import ArrayLike, FloatArray, IntArray
from fdadp.errors import InputError
from fdadp.learners.shared._declared_vs_released import Doubts
from fdadp.learners.shared._public_bins import BinnedClassifier, in_bins, odds
from fdadp.learners.shared.public_inputs import class_array, class_labels, positive
from fdadp.privacy import Cohort
from fdadp.privacy.rows._rowwise_arithmetic import rowwise_sum
from fdadp.privacy.rows._sealed_row_functions import RowFunction, Rows
from fdadp.rounds.posterior_means import above_zero, class_shares, empirical_bayes

_LARGEST_STEP = 2.0
"""Of a bin's score in one turn, in logits."""
_FEATURES = 15.0
"""Features from which on their scores are believed to be smaller, so that the variance of their sum is the same."""


@dataclass(kw_only=True, eq=False, repr=False)
class DPAdditiveHistograms(BinnedClassifier):
    """Additive model with one score for each bin, fitted feature after feature from noisy residual sums.

    Parameters
    ----------
    epsilon, delta, n, adjacency, unit, labels, budget, dataset, random_state, study, purpose
    classes, features, bounds, data_norm, center
        As of :class:`fdadp.learners.DPBoostedStumps`.
    n_passes : int
        How often each feature has its turn.
    learning_rate : float
        In (0, 1].
    count_share : float
        Share of the budget for the numbers of rows of the classes and in the bins.
    prior_sd, smooth_sd : float
        Public prior standard deviations, in logits. The first is of the step of a label's score, or of the mean step of
        a number's. The second is of the difference between the steps of the first and the last bin of a number, and is
        divided over neighbours. They shrink and smooth the noise. With a large budget they do not matter. With d > 15
        features both are smaller, by √(15/d).

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
    scores_ : ndarray of shape (number of bins,), or (number of bins, K) of more than two classes
        In logits.
    intercept_ : float, or ndarray of shape (K,) of more than two classes
        Log-odds, or logarithms, of the shares of the classes, to which the scores are added.
    bin_counts_ : ndarray of shape (number of bins,)
        As released, with noise.
    ledger_, privacy_spent_

    Notes
    -----
    *Proof.* A row adds w = √d to the count of its class, and 1 to one bin of each of d features: the counts have
    sensitivity √(w² + d) = √(2d) in L2 and w + d in L1. Given the
    model so far (released), its residual r = 1[y = 1] - p, ``|r| <= 1``, goes to one bin of the feature whose turn it
    is: sensitivity 1. With more than two classes the residual is the vector e_y - p of the softmax, with
    ‖e_y - p‖₂² = (1 - p_y)² + Σ_{k≠y} p_k² <= 2 (1 - p_y)² <= 2 and L1 norm 2 (1 - p_y) <= 2. Where a person is
    replaced the counts, which are not negative, move by √2 times that in L2, all else by twice that. Turns compose
    adaptively.

    *Step.* With a curvature of at most count/4 (that of the logistic loss) the residual sum is H step + noise; the step
    is its posterior mean under the public prior, at most 2. Shares of the classes, where the scores start, and rows in
    the bins are posterior means, too. All of it is post-processing.

    Examples
    --------
    >>> import numpy as np
    >>> from fdadp.learners import DPAdditiveHistograms, Numeric
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 10, (5000, 2))
    >>> y = (np.abs(X[:, 0] - 5) < 2).astype(int)
    >>> spec = [Numeric(0, 10), Numeric(0, 10)]
    >>> model = DPAdditiveHistograms(epsilon=1.0, classes=[0, 1], features=spec, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    n_passes: int = 4
    learning_rate: float = 0.7
    count_share: float = 0.2
    prior_sd: float = 0.35
    smooth_sd: float = 1.8

    def _learn(self, X: Any, y: Any, groups: ArrayLike | None) -> Cohort:
        """Counts of rows in the bins, then feature after feature its residual sums."""
        whole(self.n_passes, "n_passes")
        fraction(self.count_share, "count_share")
        if not is_number(self.learning_rate) or not 0 < self.learning_rate <= 1:
            raise InputError(f"learning_rate must lie in (0, 1], got {self.learning_rate!r}")
        for name, sd in (("prior_sd", self.prior_sd), ("smooth_sd", self.smooth_sd)):
            positive(sd, name)
        labels = class_labels(self.classes)
        cohort, bins = self._start(X, y, groups, labels)
        binned = bins.of(cohort)
        d, K = len(bins.sizes), len(labels)
        width = 1 if K == 2 else K
        pure = cohort.pure

        weight = math.sqrt(d)

        def counts(rows: Rows) -> FloatArray:
            codes, label = rows
            out = in_bins(1 + 0 * label[:, None], codes, bins.starts)
            hit = weight * (label[:, None] == np.arange(K)) + 0 * out[:, :1]
            return np.concatenate((hit, out), axis=1)

        clip = weight + d if pure else math.sqrt(weight**2 + d)
        name = "rows of the classes and in the bins"
        released, sd = binned.sum(counts, clip=clip, share=self.count_share, name=name, nonnegative=True)
        of_classes, noisy = released[:K] / weight, released[K:]
        doubts = Doubts(cohort, 1 + K + d)
        if doubts.bins(bins.names, bins.starts, bins.ordered, noisy, sd):
            doubts.classes(labels, of_classes, sd / weight)
        self.doubts_ = doubts.said
        shares = class_shares(of_classes, sd / weight)
        intercept = np.log(shares[1:] / shares[:1]) if K == 2 else np.log(shares)
        n = max(float(of_classes.sum()), math.sqrt(K) * sd / weight, 1.0)
        count = np.concatenate([_believed(part, n, sd) for part in np.split(noisy, bins.starts[1:-1])])
        scores = np.zeros((bins.total, width))
        share = (1 - self.count_share) / (self.n_passes * d)
        narrow = min(1.0, math.sqrt(_FEATURES / d))
        bound = 1.0 if K == 2 else 2.0 if pure else math.sqrt(2)
        for turn in range(1, self.n_passes + 1):
            for j in range(d):
                start, stop = bins.starts[j : j + 2]
                total, sd = binned.sum(
                    _residuals(bins.starts, scores, intercept, j, K),
                    clip=bound,
                    share=share,
                    name=f"pass {turn}: residuals by {bins.names[j]}",
                )
                scores[start:stop] += self.learning_rate * _steps(
                    total.reshape(stop - start, width),
                    count[start:stop],
                    sd,
                    ordered=bool(bins.ordered[j]),
                    prior_sd=self.prior_sd * narrow,
                    smooth_sd=self.smooth_sd * narrow,
                )
        self.classes_ = class_array(labels)
        self._bins = bins
        self.bin_counts_ = noisy
        self.scores_ = scores[:, 0] if K == 2 else scores
        self.intercept_ = intercept[0] if K == 2 else intercept
        return cohort

    def decision_function(self, X: Any) -> FloatArray:
        """Scores in logits, (m,) of the second class where there are two, else (m, K)."""
        scores = super().decision_function(X)
        return np.asarray(scores + self.intercept_)

    def _shares(self, score: FloatArray) -> FloatArray:
        return np.asarray(softmax(score, axis=1))


def _residuals(starts: IntArray, scores: FloatArray, intercept: FloatArray, feature: int, K: int) -> RowFunction:
    """Row function: the residuals, (m, bins of the feature · columns of the scores), in the bin of each row."""

    before = np.exp(intercept)

    def residuals(rows: Rows) -> FloatArray:
        codes, label = rows
        each = odds(codes, starts, scores) * before
        if K == 2:
            share = 1 / (1 + 1 / each)
            hit = label[:, None] == 1
        else:
            share = each / rowwise_sum(each)[:, None]
            hit = label[:, None] == np.arange(K)
        bounds = np.array([0, starts[feature + 1] - starts[feature]])
        return np.asarray(in_bins(hit - share + 0 * label[:, None], codes[:, [feature]], bounds))

    return residuals


def _believed(counts: FloatArray, n: float, sd: float) -> FloatArray:
    """Rows (bins,) that noisy counts of a feature's bins make one expect, about even ones: posterior means above 0.

    A noisy count taken at its word is a curvature that is not there, and lets noise on the residuals pass.
    """
    even = n / len(counts)
    wide = len(counts) * even**2  # as if one bin might have all of them
    return above_zero(*empirical_bayes(counts, sd**2, even, wide))


def _steps(
    total: FloatArray, count: FloatArray, sd: float, *, ordered: bool, prior_sd: float, smooth_sd: float
) -> FloatArray:
    """Posterior mean of the bins' steps, (bins, K), given ``total = H step + N(0, sd²)`` with curvature H = count/4.

    Prior: each step of labels N(0, prior_sd²); of ordered bins the mean step, and differences as of a random walk that
    gets N(0, smooth_sd²) from the first bin to the last.
    """
    m = len(count)
    modes, precision = np.eye(m), np.full(m, 1 / prior_sd**2)
    if ordered:  # cosines, of which differences of neighbours are the squares' sum 4 sin²
        modes = dct(modes, norm="ortho", axis=0).T
        precision = precision / m + 4 * np.sin(np.pi * np.arange(m) / (2 * m)) ** 2 * (m - 1) / smooth_sd**2
    root = modes / np.sqrt(precision)
    seen = root * (count / 4 / sd)[:, None]
    steps = root @ np.linalg.solve(np.eye(m) + seen.T @ seen, seen.T @ total / sd)
    return np.asarray(np.clip(steps, -_LARGEST_STEP, _LARGEST_STEP))
