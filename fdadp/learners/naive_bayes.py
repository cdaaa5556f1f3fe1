"""Private naive Bayes: one noisy sum of class counts and moments, or of histograms, and post-processing.

Published private Gaussian naive Bayes (Vaidya et al. 2013, doi:10.1109/WI-IAT.2013.80, as repeated in textbooks) scales
its noise by the private class sizes, and the variance's by a number of the wrong dimension; see
:mod:`fdadp.published.learners`. Here the sums themselves are released, whose sensitivity is exact.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fdadp._common.checks import is_number, numbers
from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError
from fdadp.learners._base import PrivateClassifier, Rows, as_table, box, class_labels, public
from fdadp.learners.encoding import Categorical, Numeric, PublicEncoder, codes_encoder

__all__ = ["DPCategoricalNB", "DPGaussianNB", "DPHistogramNB"]

_NOISE_SMOOTHING = 0.3
"""Standard deviations of the noise that are added to each count: public, hence post-processing."""


class _NaiveBayes(PrivateClassifier):
    """Prediction from the joint log-likelihood of row and class."""

    classes_: np.ndarray[Any, Any]

    def _joint_log_likelihood(self, X: Any) -> FloatArray:
        raise NotImplementedError

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Log-probabilities of the classes, shape (m, K)."""
        joint = self._joint_log_likelihood(X)
        return np.asarray(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True))

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of the classes, shape (m, K)."""
        return np.asarray(np.exp(self.predict_log_proba(X)))

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """Most probable class, shape (m,)."""
        best = self._joint_log_likelihood(X).argmax(axis=1)
        return np.asarray(self.classes_[best])


class DPGaussianNB(_NaiveBayes):
    """Gaussian naive Bayes from one noisy vector of counts, sums and sums of squares a class.

    Parameters
    ----------
    epsilon, delta, n, adjacency, unit, labels, budget, dataset, random_state
        See :class:`fdadp.learners._base.PrivateLearner`.
    classes : sequence
        Public labels, in the order of the columns of ``predict_proba``. A row with another label counts as no row.
    bounds : (low, high)
        Public range of each feature, a number or d numbers each; values are clipped to it.
    var_floor : float
        Smallest variance, as a share of the square of half a feature's range.
    priors : array_like of shape (K,), optional
        Public class probabilities; default: the noisy counts'.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
    class_prior_ : ndarray of shape (K,)
    theta_, var_ : ndarray of shape (K, d)
        Means and variances, in units of the features and squared.
    ledger_, privacy_spent_

    Raises
    ------
    PublicParameterMissing
        No classes or bounds. Nothing was read.
    InputError, PrivacyError
        Something public is wrong. Nothing was read.

    Notes
    -----
    *Sensitivity*: ``docs/theory/learners.md#naive-bayes``.

    With z in [-1, 1]^d a row adds (1, z, z² - 1/2) to the block of its class. L1 norm at most 1 + 1.5 d and squared L2
    norm at most 1 + 1.25 d, both where |z| = 1; a row lies in one block, so the classes compose in parallel. Where a
    person is replaced the kernel doubles the clip; max(√2 |v|, 2 √d) would do (another class, or the same with opposite
    signs), so that the noise is up to √2 larger than it must be.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 2000)
    >>> X = rng.normal(2.0 * y[:, None], 1.0, (2000, 3))
    >>> model = DPGaussianNB(epsilon=1.0, classes=[0, 1], bounds=(-4, 6), random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        n: int | None = None,
        adjacency: str | None = None,
        unit: str | None = None,
        labels: str | None = None,
        budget: Any = None,
        dataset: str | None = None,
        random_state: int | None = None,
        classes: Sequence[Hashable] | None = None,
        bounds: Any = None,
        var_floor: float = 1e-4,
        priors: ArrayLike | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.n = n
        self.adjacency = adjacency
        self.unit = unit
        self.labels = labels
        self.budget = budget
        self.dataset = dataset
        self.random_state = random_state
        self.classes = classes
        self.bounds = bounds
        self.var_floor = var_floor
        self.priors = priors

    def fit(self, X: Any, y: Any, groups: ArrayLike | None = None) -> DPGaussianNB:
        """Release the moments and fit.

        Parameters
        ----------
        X : array_like of shape (n, d)
            Rows with a value that is not finite count as no rows.
        y : array_like of shape (n,)
        groups : array_like of shape (n,), optional
            Person of each row: then a person's rows are averaged before they are clipped.
        """
        labels = class_labels(self.classes)
        K = len(labels)
        if not is_number(self.var_floor) or not 0 < self.var_floor < 1:
            raise InputError(f"var_floor must lie between 0 and 1, got {self.var_floor!r}")
        if self.priors is not None:
            priors = numbers(self.priors, "priors")
            if priors.shape != (K,) or not (priors > 0).all() or not math.isclose(priors.sum(), 1, abs_tol=1e-6):
                raise InputError(f"priors must be {K} numbers above 0 that sum to 1, got {self.priors!r}")
        shown = {"classes": labels, "bounds": self.bounds}
        d = int(as_table(X).shape[1])
        low, high = box(self.bounds, d)
        cohort = self._open(X, y, groups, classes=labels, public=shown)

        def moments(rows: Rows) -> FloatArray:
            x, code = rows
            z = np.clip(2 * (x - low) / (high - low) - 1, -1, 1) + 0.0 * x  # what is not finite becomes NaN
            block = np.concatenate((np.ones((len(x), 1)), z, z * z - 0.5), axis=1)
            here = code[:, None] == np.arange(K)
            # A value or label that is not usable makes the row NaN, which the kernel leaves out.
            blocks = np.where(here[:, :, None], block[:, None], 0.0) + 0.0 * code[:, None, None]
            return np.asarray(blocks.reshape(len(x), K * (1 + 2 * d)))

        clip = 1 + 1.5 * d if cohort.pure else math.sqrt(1 + 1.25 * d)
        total, _ = cohort.sum(moments, clip=clip, share=1.0, name="counts, sums and sums of squares of the classes")
        blocks = total.reshape(K, 1 + 2 * d)
        count = np.maximum(blocks[:, :1], 1.0)
        mean = np.clip(blocks[:, 1 : 1 + d] / count, -1, 1)
        square = np.clip(blocks[:, 1 + d :] / count + 0.5, 0, 1)
        half = (high - low) / 2
        self.classes_ = np.array(labels)
        self.theta_ = low + (mean + 1) * half
        self.var_ = np.clip(square - mean**2, self.var_floor, 1) * half**2
        self.class_prior_ = count[:, 0] / count.sum() if self.priors is None else priors
        self._close(cohort)
        return self

    def _joint_log_likelihood(self, X: Any) -> FloatArray:
        x = self._new_rows(X)
        away = x[:, None] - self.theta_
        return np.asarray(
            np.log(self.class_prior_) - 0.5 * (np.log(2 * np.pi * self.var_) + away**2 / self.var_).sum(axis=2)
        )


class DPHistogramNB(_NaiveBayes):
    """Naive Bayes from one noisy vector of class counts and of a histogram of each feature in each class.

    For numbers in public bins and labels with public values, mixed. With numbers it needs no belief about their law,
    and on skewed ones it does better than :class:`DPGaussianNB` at every ε.

    Parameters
    ----------
    epsilon, delta, n, adjacency, unit, labels, budget, dataset, random_state
        See :class:`fdadp.learners._base.PrivateLearner`.
    classes : sequence
        Public labels, in the order of the columns of ``predict_proba``. A row with another label counts as no row.
    features : mapping of name to Numeric or Categorical, sequence of them, or one of them
        As for :class:`fdadp.learners.PublicEncoder`; X itself may hold text and numbers. One holds for all columns.
    n_bins : int
        Bins of equal width (of log1p where that is set) for numbers without edges.
    alpha : float
        Added to each count, Laplace's smoothing; on top of it 0.3 standard deviations of the noise are added, so that
        what is mostly noise tells the classes apart less (Adult's training rows, ε = 0.01: AUC .79 instead of .74).

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
    class_log_prior_ : ndarray of shape (K,)
    feature_log_prob_ : list of ndarray of shape (K, b_j)
        Logarithm of the probability of each bin or label in each class, in nats.
    ledger_, privacy_spent_

    Raises
    ------
    PublicParameterMissing
        No classes or features. Nothing was read.
    InputError, PrivacyError
        Something public is wrong. Nothing was read.

    Notes
    -----
    A row adds, to the block of its class, 1 to the count and 1 to one bin of each of the d features: L1 norm d + 1, L2
    norm √(d + 1); these are the clips. Entries are not negative, so replacing a person changes the sum by at most
    √2 √(d + 1) in L2 and 2 (d + 1) in L1. A textbook's Laplace(1/ε) on each count is (d + 1) ε.

    *Missing values.* A value that is no number, or no declared label, adds to no bin of its feature, and is left out
    of the product when predicting.

    References
    ----------
    Vaidya, Shafiq, Basu & Hong (2013), Differentially private naive Bayes classification, WI-IAT,
    doi:10.1109/WI-IAT.2013.80 (with the sensitivity of one table).

    Examples
    --------
    >>> import pandas as pd
    >>> from fdadp.learners import Categorical, Numeric
    >>> rng = np.random.default_rng(0)
    >>> y = rng.choice(["no", "yes"], 3000)
    >>> yes = y == "yes"
    >>> X = pd.DataFrame({"age": rng.normal(35 + 15 * yes, 8), "work": np.where(rng.random(3000) < 0.8, yes, ~yes)})
    >>> X["work"] = X["work"].map({True: "office", False: "field"})
    >>> features = {"age": Numeric(0, 120), "work": Categorical(["office", "field"])}
    >>> model = DPHistogramNB(epsilon=1.0, classes=["no", "yes"], features=features, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.85)
    True
    """

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        n: int | None = None,
        adjacency: str | None = None,
        unit: str | None = None,
        labels: str | None = None,
        budget: Any = None,
        dataset: str | None = None,
        random_state: int | None = None,
        classes: Sequence[Hashable] | None = None,
        features: Any = None,
        n_bins: int = 16,
        alpha: float = 1.0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.n = n
        self.adjacency = adjacency
        self.unit = unit
        self.labels = labels
        self.budget = budget
        self.dataset = dataset
        self.random_state = random_state
        self.classes = classes
        self.features = features
        self.n_bins = n_bins
        self.alpha = alpha

    def _encoder(self, d: int) -> PublicEncoder:
        """Encoder of d columns, with bins in every feature."""
        if isinstance(self.n_bins, bool) or not isinstance(self.n_bins, (int, np.integer)) or self.n_bins < 2:
            raise InputError(f"n_bins must be an integer of at least 2, got {self.n_bins!r}")

        def binned(spec: Any) -> Any:
            plain = isinstance(spec, Numeric) and spec.edges is None
            return replace(spec, edges=int(self.n_bins)) if plain else spec

        return codes_encoder(self.features, d, binned)

    def fit(self, X: Any, y: Any, groups: ArrayLike | None = None) -> DPHistogramNB:
        """Release the counts and fit.

        Parameters
        ----------
        X : array_like of shape (n, d) or data frame
        y : array_like of shape (n,)
        groups : array_like of shape (n,), optional
            Person of each row: then a person's rows are averaged before they are clipped.
        """
        labels = class_labels(self.classes)
        K = len(labels)
        if not isinstance(self.alpha, (int, float, np.number)) or not 0 < self.alpha < math.inf:
            raise InputError(f"alpha must be a finite number above 0, got {self.alpha!r}")
        encoder = self._encoder(int(as_table(X).shape[1]))
        shown = {"classes": labels, "features": encoder.features, "alpha": self.alpha}
        cohort = self._open(X, y, groups, classes=labels, public=shown, columns=encoder.columns(X))
        specs = encoder.specs
        d = len(specs)

        def counts(rows: Rows) -> FloatArray:
            x, code = rows
            parts = [np.ones((len(x), 1))]
            for j, spec in enumerate(specs):
                index = x[:, j] if isinstance(spec, Categorical) else spec.bins(x[:, j])
                parts.append((index[:, None] == np.arange(spec.n_bins)).astype(np.float64))
            block = np.concatenate(parts, axis=1)
            here = code[:, None] == np.arange(K)
            # A label that is none of the classes makes the row NaN, which the kernel leaves out.
            blocks = np.where(here[:, :, None], block[:, None], 0.0) + 0.0 * code[:, None, None]
            return np.asarray(blocks.reshape(len(x), K * block.shape[1]))

        clip = d + 1.0 if cohort.pure else math.sqrt(d + 1)
        total, sd = cohort.sum(counts, clip=clip, share=1.0, name="class counts and histograms", nonnegative=True)
        at = np.cumsum([1, *(spec.n_bins for spec in specs)])
        smooth = np.maximum(total.reshape(K, -1), 0.0) + self.alpha + _NOISE_SMOOTHING * sd
        self.classes_ = np.array(labels)
        self.class_log_prior_ = np.log(smooth[:, 0] / smooth[:, 0].sum())
        self.feature_log_prob_ = [
            np.log(smooth[:, a:b] / smooth[:, a:b].sum(axis=1, keepdims=True)) for a, b in itertools.pairwise(at)
        ]
        self._close(cohort)
        return self

    def _joint_log_likelihood(self, X: Any) -> FloatArray:
        self._check_new_table(X)
        codes = self._encoder(self.n_features_in_).transform(X)
        joint = np.tile(self.class_log_prior_, (len(codes), 1))
        for code, log_prob in zip(codes.T, self.feature_log_prob_, strict=True):
            known = np.isfinite(code)
            joint[known] += log_prob[:, code[known].astype(np.int64)].T
        return joint

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags


class DPCategoricalNB(DPHistogramNB):
    """:class:`DPHistogramNB` for labels alone: naive Bayes from noisy tables of public categories.

    Parameters
    ----------
    epsilon, delta, n, adjacency, unit, labels, budget, dataset, random_state, classes, alpha
        See :class:`DPHistogramNB`, also for the attributes and the proof.
    categories : sequence of sequences, or Categorical
        Public labels of each feature; any other counts as missing. A Categorical holds for all columns.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 2000)
    >>> X = np.where(rng.random((2000, 3)) < 0.8, y[:, None], 1 - y[:, None])
    >>> model = DPCategoricalNB(epsilon=1.0, classes=[0, 1], categories=[[0, 1]] * 3, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.85)
    True
    """

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        n: int | None = None,
        adjacency: str | None = None,
        unit: str | None = None,
        labels: str | None = None,
        budget: Any = None,
        dataset: str | None = None,
        random_state: int | None = None,
        classes: Sequence[Hashable] | None = None,
        categories: Sequence[Sequence[Hashable]] | Categorical | None = None,
        alpha: float = 1.0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.n = n
        self.adjacency = adjacency
        self.unit = unit
        self.labels = labels
        self.budget = budget
        self.dataset = dataset
        self.random_state = random_state
        self.classes = classes
        self.categories = categories
        self.alpha = alpha

    def _encoder(self, d: int) -> PublicEncoder:
        categories = public("categories", self.categories, "the labels of each feature")
        if isinstance(categories, Categorical):
            categories = [categories.values] * d
        return PublicEncoder([Categorical(values) for values in categories], output="codes").fit()
