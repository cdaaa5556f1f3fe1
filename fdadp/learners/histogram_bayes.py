"""Private naive Bayes from histograms: one noisy sum of class counts and of a histogram a feature in each class."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fdadp._common.checks import whole
from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError
from fdadp.learners.naive_bayes import FromLikelihood, check_correlation
from fdadp.learners.shared._base import PrivateClassifier
from fdadp.learners.shared._doubts import Doubts
from fdadp.learners.shared._evidence import check_share, count_weight, evidence_weight
from fdadp.learners.shared._posterior import above_zero, class_shares, empirical_bayes, independent_evidence, posterior
from fdadp.learners.shared._rows import blocks
from fdadp.learners.shared.encoding import Categorical, Numeric, PublicEncoder, codes_encoder, features_of
from fdadp.learners.shared.inputs import as_table, class_array, class_labels, positive, public
from fdadp.privacy import Cohort
from fdadp.privacy.rows._local import Rows

_APART = 0.1
"""Variance, before the release, of the probability p of a bin in a class, in units of p in all classes together."""


@dataclass(kw_only=True, eq=False, repr=False)
class _Histograms(FromLikelihood, PrivateClassifier):
    """Naive Bayes from a histogram of each feature in each class; the features are encoded as bins and labels."""

    alpha: float = 1.0
    correlation: float = 0.15
    evidence_share: float = 0.04

    @property
    def _range(self) -> Any:
        """Public range of all features, where it was given by itself."""
        return None

    def _encoder(self, d: int) -> PublicEncoder:
        """Public encoder of d columns to codes of bins and labels."""
        raise NotImplementedError

    def _learn(self, X: Any, y: Any, groups: ArrayLike | None) -> Cohort:
        """Release the counts."""
        labels = class_labels(self.classes)
        K = len(labels)
        positive(self.alpha, "alpha")
        check_correlation(self.correlation)
        check_share(self.evidence_share)
        encoder = self._encoder(int(as_table(X).shape[1]))
        shown = {"classes": labels, "features": encoder.features, "alpha": self.alpha}
        if self._range is not None:
            shown["bounds"] = self._range
        cohort = self._open(X, y, groups, classes=labels, public=shown, columns=encoder.columns(X))
        specs = encoder.specs
        d = len(specs)

        def bins(x: FloatArray) -> list[FloatArray]:
            return [x[:, j] if isinstance(spec, Categorical) else spec.bins(x[:, j]) for j, spec in enumerate(specs)]

        def counts(rows: Rows) -> FloatArray:
            x, code = rows
            parts = [np.full((len(x), 1), weight)]
            for index, spec in zip(bins(x), specs, strict=True):
                parts.append((index[:, None] == np.arange(spec.n_bins)).astype(np.float64))
            return blocks(np.concatenate(parts, axis=1), code, K)

        weight = count_weight(d)
        clip = d + weight if cohort.pure else math.sqrt(d + weight**2)
        name = "class counts and histograms"
        total, sd = cohort.sum(counts, clip=clip, share=1 - self.evidence_share, name=name, nonnegative=True)
        table, at = total.reshape(K, -1), np.cumsum([1, *(spec.n_bins for spec in specs)])
        in_class, sd_count = table[:, 0] / weight, sd / weight
        prior = class_shares(in_class, sd_count)
        n = max(float(in_class.sum()), sd_count, 1.0)
        count = np.maximum(prior * n, 1.0)[:, None]
        parts = [table[:, a:b] for a, b in itertools.pairwise(at)]
        self.doubts_ = _doubts(cohort, labels, encoder, in_class, sd_count, parts, sd)
        self.classes_, self._fitted_encoder = class_array(labels), encoder
        self.class_log_prior_ = np.log(prior)
        believed = [np.log(_believed(part, count, sd, self.alpha)) for part in parts]
        self.feature_log_prob_ = believed
        start = independent_evidence(d, self.correlation)

        def evidence(x: FloatArray) -> FloatArray:
            return _evidence(np.stack(bins(x), axis=1), believed)

        self.evidence_weight_ = evidence_weight(cohort, evidence, prior, n, start, self.evidence_share)
        return cohort

    def _joint_log_likelihood(self, X: Any) -> FloatArray:
        self._check_new_table(X)
        codes = self._fitted_encoder.transform(X)
        return np.asarray(self.class_log_prior_ + self.evidence_weight_ * _evidence(codes, self.feature_log_prob_))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags


def _doubts(
    cohort: Cohort,
    labels: Sequence[Hashable],
    encoder: PublicEncoder,
    counts: FloatArray,
    sd_count: float,
    tables: Sequence[FloatArray],
    sd: float,
) -> tuple[str, ...]:
    """What counts of classes (K,) and of bins (K, b) of each feature, with noise of these sds, say against the rest."""
    (names, specs), K = encoder._specs(), len(labels)
    doubts, whole = Doubts(cohort, 1 + K + 2 * len(specs)), float(counts.sum())
    released = np.concatenate([counts / sd_count, *(table.ravel() / sd for table in tables)])
    if doubts.rows(whole, math.sqrt(K) * sd_count, released, copies=K):
        doubts.classes(labels, counts, sd_count)
        bins, each = [table.sum(axis=0) for table in tables], math.sqrt(K) * sd
        known = np.array([float(of.sum()) for of in bins])
        found = doubts.unknown(names, known, each * np.sqrt([len(of) for of in bins]), whole)
        numbers = [j for j, spec in enumerate(specs) if isinstance(spec, Numeric) and found[j]]
        doubts.crowded([names[j] for j in numbers], [bins[j] for j in numbers], each, whole)
    return doubts.said


def _evidence(codes: FloatArray, log_probs: Sequence[FloatArray]) -> FloatArray:
    """Log-likelihoods (m, K) of bins (m, d), of those (K, b_j) of each feature; what has no bin adds nothing."""
    out = np.zeros((len(codes), len(log_probs[0])))
    for code, log_prob in zip(codes.T, log_probs, strict=True):
        known = (code >= 0) & (code < log_prob.shape[1])
        out[known] += log_prob[:, code[known].astype(np.int64)].T
    return out


def _believed(counts: FloatArray, rows: FloatArray, sd: float, alpha: float) -> FloatArray:
    """Probabilities (K, bins) of a feature's bins in each class: what is believed after counts with noise.

    Those of all classes together are normal about even ones before the release, with a spread that the release tells,
    those of a class about these; then `alpha` rows in each bin.
    """
    K, bins = counts.shape
    n = rows.sum()
    together, noise = counts.sum(axis=0) / n, K * (sd / n) ** 2
    even = 1 / bins
    middle = above_zero(*empirical_bayes(together, noise, even, even))
    middle /= middle.sum()
    each, noise_k = counts / rows, (sd / rows) ** 2
    own = above_zero(*posterior(each, noise_k, middle, _APART * middle))
    smooth = own + alpha / rows
    return np.asarray(smooth / smooth.sum(axis=1, keepdims=True))


@dataclass(kw_only=True, eq=False, repr=False)
class DPHistogramNB(_Histograms):
    """Naive Bayes from one noisy vector of class counts and of a histogram of each feature in each class.

    For numbers in public bins and labels with public values, mixed. With numbers it needs no belief about their law: on
    skewed ones, as Adult's, it does better than :class:`DPGaussianNB` (``benchmarks/learners/results/latest.md``).

    Parameters
    ----------
    epsilon, delta, n, adjacency, unit, labels, budget, dataset, random_state, classes
        As of :class:`fdadp.learners.DPGaussianNB`.
    features : mapping of name to Numeric or Categorical, sequence of them, or one of them
        As for :class:`fdadp.learners.PublicEncoder`; X itself may hold text and numbers. One holds for all columns.
    bounds : (low, high), optional
        Instead of ``features``, where all are numbers: public range of each, a number or d numbers each.
    data_norm, center : float, array_like of shape (d,)
        Instead of both: public radius and centre of a ball; the ranges are those of the box around it.
    n_bins : int
        Bins of equal width (of log1p where that is set) for numbers without edges.
    alpha : float
        Rows that are added to each bin, Laplace's smoothing.
    correlation, evidence_share : float
        As of :class:`fdadp.learners.DPGaussianNB`.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
    class_log_prior_ : ndarray of shape (K,)
    feature_log_prob_ : list of ndarray of shape (K, b_j)
        Logarithm of the probability of each bin or label in each class, in nats.
    evidence_weight_ : float
        What a feature counts, 1 for independent ones.
    ledger_, privacy_spent_

    Notes
    -----
    A row adds, to the block of its class, w = max(1, √(0.15 d)) to the count and 1 to one bin of each of the d
    features: L1 norm d + w, L2 norm √(d + w²); these are the clips. Entries are not negative, so replacing a person
    changes the sum by at most √2 √(d + w²) in L2 and 2 (d + w) in L1. A textbook's Laplace(1/ε) on each count is
    (d + 1) ε. The weight of the evidence takes two sums more, as in :class:`fdadp.learners.DPGaussianNB`.

    *Noise that is known.* Probabilities are posterior means given the noise's sd: of the bins of a feature in all
    classes together about even ones, of a class about those. What is all noise is the same for all classes.

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

    features: Any = None
    n_bins: int = 16
    bounds: Any = None
    data_norm: float | None = None
    center: ArrayLike = 0.0

    @property
    def _range(self) -> Any:
        return self.bounds

    def _encoder(self, d: int) -> PublicEncoder:
        n_bins = whole(self.n_bins, "n_bins", least=2)

        def binned(spec: Any) -> Any:
            plain = isinstance(spec, Numeric) and spec.edges is None
            return replace(spec, edges=n_bins) if plain else spec

        return codes_encoder(features_of(self.features, self.bounds, self.data_norm, self.center, d), d, binned)


@dataclass(kw_only=True, eq=False, repr=False)
class DPCategoricalNB(_Histograms):
    """:class:`DPHistogramNB` for labels alone: naive Bayes from noisy tables of public categories.

    Parameters
    ----------
    epsilon, delta, n, adjacency, unit, labels, budget, dataset, random_state, classes, alpha
    correlation, evidence_share
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

    categories: Sequence[Sequence[Hashable]] | Categorical | None = None

    def _encoder(self, d: int) -> PublicEncoder:
        categories = public("categories", self.categories, "the labels of each feature")
        if isinstance(categories, Categorical):
            categories = [categories.values] * d
        if isinstance(categories, (Mapping, Set, str)):
            raise InputError(
                f"categories must be a sequence of the labels of each feature, in order, got {categories!r}; "
                "DPHistogramNB(features=) takes them by name"
            )
        return PublicEncoder([Categorical(values) for values in categories], output="codes").fit()
