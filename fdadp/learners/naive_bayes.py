"""Private naive Bayes: one noisy sum of class counts with moments, or histograms, of each feature in each class.

Published private Gaussian naive Bayes (Vaidya et al. 2013, doi:10.1109/WI-IAT.2013.80, as repeated in textbooks) scales
its noise by the private class sizes, and the variance's by a number of the wrong dimension; see
:mod:`fdadp.published.adaboost_and_naive_bayes`. Here the sums themselves are released, whose sensitivity is exact.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fdadp._common.argument_checks import fraction, is_number, numbers, whole
from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError
from fdadp.learners.shared._declared_vs_released import Doubts
from fdadp.learners.shared._estimator_base import Bounded, PrivateClassifier, TakesLabels
from fdadp.learners.shared.public_encoding import (
    Categorical,
    Numeric,
    PublicEncoder,
    codes_encoder,
    feature_names,
    features_of,
)
from fdadp.learners.shared.public_inputs import as_table, box_of, class_array, class_labels, positive, public
from fdadp.privacy import Cohort, rowwise_exp
from fdadp.privacy.rows._rowwise_arithmetic import rowwise_sum
from fdadp.privacy.rows._sealed_row_functions import Rows
from fdadp.rounds.posterior_means import (
    above_zero,
    class_shares,
    empirical_bayes,
    posterior,
    spread,
)

# How much the evidence counts: one number τ, learnt from noisy slopes of the log-loss. Naive Bayes adds up what each
# feature says. Where features repeat each other, or their laws are not those assumed, the sum is too sure, and where
# noise was shrunk it may be too timid: log-probabilities are ``log prior + τ evidence``.

_STEPS = 2
_LARGEST_STEP = 1.5
"""In log τ."""
_SLOPE, _CURVATURE = 2.0, 1.0
"""Where what a row adds to the slope, on both sides, and to the curvature, is clipped."""
_SD = 1.0
"""Standard deviation, before the release, of log τ about its public guess."""
_LEAST = 0.1
"""Of its variance before the second step: slopes are no straight lines."""
_USUAL_CURVATURE = 0.1
"""Curvature that is expected of a row before the release; the standard deviation of that, too."""
_CLASSES = 0.15
"""Weight of a row's class, squared, beside d features, in units of d."""


def count_weight(d: int) -> float:
    """Weight of the count in a class's block of a release, beside what d features add.

    It has the shares of the classes, and stands under everything else: as one number among d it would be the noisiest.
    """
    return max(1.0, math.sqrt(_CLASSES * d))


_UNIFORM = 1 / 3
"""Variance of the prior of a mean in [-1, 1]: of a uniform one."""
_USUAL = 1 / 9
"""Mean, and sd, of the prior of a variance in [-1, 1]: declared ranges are some three sd wide to each side."""
_LEAST_WITHIN = 0.05
"""Share of a variance that is left within classes, however far apart their means seem."""


class FromLikelihood:
    """Mixin: prediction from the joint log-likelihood of row and class."""

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


def gaussian_log_likelihood(
    x: FloatArray, prior: FloatArray, mean: FloatArray, var: FloatArray, each: float = 1.0
) -> FloatArray:
    """Joint log-likelihood (m, K) of rows (m, d) and classes with probabilities (K,), means and variances (K, d).

    `each` is what a feature counts, 1 for independent ones.
    """
    away = x[:, None] - mean
    return np.asarray(np.log(prior) - 0.5 * each * (np.log(2 * np.pi * var) + away**2 / var).sum(axis=2))


@dataclass(kw_only=True, eq=False, repr=False)
class _NaiveBayes(FromLikelihood, PrivateClassifier):
    """Naive Bayes whose evidence has a weight, first by a public guess of correlation, then by what rows say of it."""

    correlation: float = 0.15
    evidence_share: float = 0.04

    def _check_evidence(self) -> None:
        """Refuse what is no correlation of features to be guessed, or no share of the budget for the weight."""
        if not is_number(self.correlation) or not 0 <= self.correlation <= 1:
            raise InputError(f"correlation must be a number from 0 to 1, got {self.correlation!r}")
        if not is_number(self.evidence_share) or not 0 <= self.evidence_share < 1:
            raise InputError(f"evidence_share must be 0 or a number below 1, got {self.evidence_share!r}")

    def _weigh(
        self, cohort: Cohort, evidence: Callable[[Any], FloatArray], prior: FloatArray, n: float, d: int
    ) -> None:
        """Weight τ that a cohort of rows (x, class) makes one expect, about a public guess; Newton steps in log τ.

        Parameters
        ----------
        evidence : callable
            Log-likelihoods (m, K) of x in each class, by a released model; row-local.
        prior : ndarray of shape (K,)
            Released, or public.
        n : float
            Released number of rows.
        d : int
            Number of features; the guess is how many independent ones each is worth.

        Notes
        -----
        Proof, and what is clipped: ``docs/theory/learners.md#naive-bayes``.
        """
        start, share = 1 / (1 + (d - 1) * self.correlation), self.evidence_share
        log_prior, K = np.log(prior), len(prior)
        at, variance = 0.0, _SD**2
        for step in range(_STEPS if share else 0):
            weight = start * math.exp(at)

            def slopes(rows: Rows, weight: float = weight) -> FloatArray:
                x, label = rows
                each = evidence(x)
                score = log_prior + weight * each
                p = rowwise_exp(score - score.max(axis=1, keepdims=True))
                p = p / rowwise_sum(p)[:, None]
                mean = rowwise_sum(p * each)
                own = rowwise_sum(np.where(label[:, None] == np.arange(K), each, 0.0))
                square = rowwise_sum(p * (each - mean[:, None]) ** 2)
                slope = np.clip(weight * (mean - own), -_SLOPE, _SLOPE)
                curvature = np.minimum(weight**2 * square, _CURVATURE)
                return np.asarray(np.stack((slope, curvature), axis=1) + 0 * label[:, None])

            clip = _SLOPE + _CURVATURE if cohort.pure else math.hypot(_SLOPE, _CURVATURE)
            name = f"weight of the evidence, step {step + 1}"
            (slope, raw), sd = cohort.sum(slopes, clip=clip, share=share / _STEPS, name=name)
            usual = _USUAL_CURVATURE * n
            curvature = float(above_zero(*posterior(raw, sd**2, usual, usual**2)))
            known = curvature**2 * variance + sd**2
            at -= float(np.clip(variance * curvature * slope / known, -_LARGEST_STEP, _LARGEST_STEP))
            variance = max(variance * sd**2 / known, _LEAST)
        self.evidence_weight_ = start * math.exp(at)


@dataclass(kw_only=True, eq=False, repr=False)
class DPGaussianNB(_NaiveBayes, Bounded):
    """Gaussian naive Bayes from one noisy vector of counts, sums and sums of squares a class.

    Parameters
    ----------
    epsilon, delta, n, adjacency, unit, labels, budget, dataset, random_state, study, purpose
        The guarantee: the parameters of :class:`fdadp.Privacy`.
    classes : sequence
        Public labels, in any order. A row with another label counts as no row.
    bounds : (low, high), optional
        Public range of each feature, a number or d numbers each; values are clipped to it, also to predict.
    data_norm : float, optional
        Instead of ``bounds``: public radius of a ball about ``center``; values are clipped to the box around it.
    center : float or array_like of shape (d,)
        Public; with ``data_norm``.
    var_floor : float
        Smallest variance, as a share of the square of half a feature's range.
    priors : array_like of shape (K,), optional
        Public class probabilities; default: the noisy counts'.
    correlation : float
        Public guess of the correlation of features within a class, in [0, 1]: d features count as the
        d/(1 + (d - 1) correlation) independent ones that say as much. 0: naive Bayes of textbooks, whose probabilities
        are far too sure where there are many features.
    evidence_share : float
        Share of the budget, in [0, 1), for what the rows say of that guess, from which more or less is then made of
        the evidence. 0: the guess is kept.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
    class_prior_ : ndarray of shape (K,)
    theta_, var_ : ndarray of shape (K, d)
        Means and variances, in units of the features and squared: what is believed after the release; a variance
        contains what is not known of the mean.
    evidence_weight_ : float
        What a feature counts, 1 for independent ones of normal law.
    ledger_, privacy_spent_

    Notes
    -----
    *Sensitivity*: ``docs/theory/learners.md#naive-bayes``.

    With z in [-1, 1]^d a row adds (w, z, z² - 1/2), w = max(1, √(0.15 d)), to the block of its class. L1 norm at most w
    + 1.5 d and squared L2 norm at most w² + 1.25 d, both at corners; a row lies in one block, so the classes compose in
    parallel. Where a person is replaced the kernel doubles the clip. max(√2 ‖v‖, 2 √d) would do (another class, or the
    same with opposite signs). So the noise is up to √2 larger than it must be. Two sums more, of slopes of the log-loss
    in the logarithm of the evidence's weight, depend on what was released before them.

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

    var_floor: float = 1e-4
    priors: ArrayLike | None = None

    def _learn(self, X: Any, y: Any, groups: ArrayLike | None) -> Cohort:
        """Release the moments."""
        labels = class_labels(self.classes)
        K = len(labels)
        fraction(self.var_floor, "var_floor")
        self._check_evidence()
        if self.priors is not None:
            priors = numbers(self.priors, "priors")
            if priors.shape != (K,) or not (priors > 0).all() or not math.isclose(priors.sum(), 1, abs_tol=1e-6):
                raise InputError(f"priors must be {K} numbers above 0 that sum to 1, got {self.priors!r}")
        d = int(as_table(X).shape[1])
        low, high = box_of(self.bounds, self.data_norm, self.center, d)
        shown = {"classes": labels, "bounds": (low, high) if self.bounds is None else self.bounds}
        cohort = self._open(X, y, groups, classes=labels, public=shown)

        def moments(rows: Rows) -> tuple[FloatArray, FloatArray]:
            x, code = rows
            z = np.clip(2 * (x - low) / (high - low) - 1, -1, 1) + 0.0 * x  # what is not finite becomes NaN
            block = np.concatenate((np.full((len(x), 1), weight), z, z * z - 0.5), axis=1)
            return block + 0.0 * code[:, None], code  # of an unknown label all is NaN: the kernel leaves the row out

        weight = count_weight(d)
        clip = weight + 1.5 * d if cohort.pure else math.sqrt(weight**2 + 1.25 * d)
        name = "counts, sums and sums of squares of the classes"
        total, sd = cohort.sum(moments, clip=clip, share=1 - self.evidence_share, name=name, blocks=K)
        table = total.reshape(K, 1 + 2 * d)
        table[:, 0] /= weight
        found, mean, var = _believed(table, sd, sd / weight)
        doubts = Doubts(cohort, 1 + K + d)
        released = np.append(table[:, 1:].ravel() / sd, weight * table[:, 0] / sd)
        if doubts.rows(float(table[:, 0].sum()), math.sqrt(K) * sd / weight, released, copies=K):
            doubts.classes(labels, table[:, 0], sd / weight)
            doubts.still(feature_names(self), *_variances(table, sd, sd / weight))
        self.doubts_ = doubts.said
        half = (high - low) / 2
        self.classes_ = class_array(labels)
        theta, spreads = low + (mean + 1) * half, np.clip(var, self.var_floor, 1) * half**2
        self.theta_, self.var_, self._box = theta, spreads, (low, high)
        self.class_prior_ = found if self.priors is None else priors
        n = max(float(table[:, 0].sum()), sd / weight, 1.0)

        def evidence(x: FloatArray) -> FloatArray:
            inside = np.clip(x, low, high) + 0.0 * x
            return gaussian_log_likelihood(inside, np.ones(K), theta, spreads)

        self._weigh(cohort, evidence, self.class_prior_, n, d)
        return cohort

    def _joint_log_likelihood(self, X: Any) -> FloatArray:
        x = self._new_rows(X)
        x = np.clip(x, *self._box)
        return gaussian_log_likelihood(x, self.class_prior_, self.theta_, self.var_, self.evidence_weight_)


def _variances(table: FloatArray, sd: float, sd_count: float) -> tuple[FloatArray, FloatArray]:
    """Variances (d,) of all rows in [-1, 1]^d as released, and the sds of their noise; that of counts by itself."""
    K, d = len(table), (table.shape[1] - 1) // 2
    all_of = table.sum(axis=0)
    mean, square = all_of[1 : 1 + d] / all_of[0], all_of[1 + d :] / all_of[0]
    noise = np.sqrt((1 + 4 * mean**2) * sd**2 + (2 * mean**2 - square) ** 2 * sd_count**2)
    return square + 0.5 - mean**2, math.sqrt(K) * noise / all_of[0]


def _believed(table: FloatArray, sd: float, sd_count: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Class probabilities (K,), means and predictive variances (K, d), of noisy blocks (K, 1 + 2 d) in [-1, 1]^d.

    `sd_count` is the noise's on the counts, the first column, `sd` that on all else.
    Post-processing: posterior means under public priors and the noise's known sd; see :class:`DPGaussianNB`.
    """
    K, d = len(table), (table.shape[1] - 1) // 2
    n = max(float(table[:, 0].sum()), sd_count, 1.0)
    prior = class_shares(table[:, 0], sd_count)
    count = np.maximum(prior * n, 1.0)[:, None]
    first, second = table[:, 1 : 1 + d], table[:, 1 + d :]
    # All classes together: each mean uniform in the range, variances like each other.
    noise = K * (sd / n) ** 2
    middle = np.clip(posterior(first.sum(axis=0) / n, noise, 0.0, _UNIFORM)[0], -1, 1)
    raw, noises = second.sum(axis=0) / n + 0.5 - middle**2, noise * (1 + 4 * middle**2)
    usual = above_zero(*posterior(raw.mean(), noises.mean() / d, _USUAL, _USUAL**2))
    whole = above_zero(*posterior(raw, noises, usual, usual**2))
    # Class means about the common one, as far apart as features spread, times the root of what the gaps tell of it:
    # by all of it noise passes where classes are rare, by what is told alone features that tell classes apart are lost.
    noise_k = (sd / count) ** 2
    gaps = first / count - middle
    mean, unsure = posterior(gaps, noise_k, 0.0, whole * math.sqrt(spread(gaps, noise_k, whole)))
    mean = np.clip(middle + mean, -1, 1)
    # Variances within classes, about what the means leave of the whole, likewise.
    within = np.maximum(whole - (prior[:, None] * (mean - middle) ** 2).sum(axis=0), _LEAST_WITHIN * whole)
    about = second / count + 0.5 - 2 * mean * first / count + mean**2
    noise_k = noise_k * (1 + 4 * mean**2)
    return prior, mean, above_zero(*empirical_bayes(about, noise_k, within, within**2)) + unsure


_APART = 0.1
"""Variance, before the release, of the probability p of a bin in a class, in units of p in all classes together."""


@dataclass(kw_only=True, eq=False, repr=False)
class _Histograms(TakesLabels, _NaiveBayes):
    """Naive Bayes from a histogram of each feature in each class; the features are encoded as bins and labels."""

    alpha: float = 1.0

    def _encoder(self, d: int) -> PublicEncoder:
        """Public encoder of d columns to codes of bins and labels."""
        raise NotImplementedError

    def _learn(self, X: Any, y: Any, groups: ArrayLike | None) -> Cohort:
        """Release the counts."""
        labels = class_labels(self.classes)
        K = len(labels)
        positive(self.alpha, "alpha")
        self._check_evidence()
        encoder = self._encoder(int(as_table(X).shape[1]))
        shown = {"classes": labels, "features": encoder.features, "alpha": self.alpha}
        bounds = getattr(self, "bounds", None)  # of numbers alone
        if bounds is not None:
            shown["bounds"] = bounds
        cohort = self._open(X, y, groups, classes=labels, public=shown, columns=encoder.columns(X))
        specs = encoder.specs
        d = len(specs)

        def bins(x: FloatArray) -> list[FloatArray]:
            return [x[:, j] if isinstance(spec, Categorical) else spec.bins(x[:, j]) for j, spec in enumerate(specs)]

        def counts(rows: Rows) -> tuple[FloatArray, FloatArray]:
            x, code = rows
            parts = [np.full((len(x), 1), weight)]
            for index, spec in zip(bins(x), specs, strict=True):
                parts.append((index[:, None] == np.arange(spec.n_bins)).astype(np.float64))
            return np.concatenate(parts, axis=1) + 0.0 * code[:, None], code

        weight = count_weight(d)
        clip = d + weight if cohort.pure else math.sqrt(d + weight**2)
        name = "class counts and histograms"
        share = 1 - self.evidence_share
        total, sd = cohort.sum(counts, clip=clip, share=share, name=name, nonnegative=True, blocks=K)
        table, at = total.reshape(K, -1), np.cumsum([1, *(spec.n_bins for spec in specs)])
        in_class, sd_count = table[:, 0] / weight, sd / weight
        prior = class_shares(in_class, sd_count)
        n = max(float(in_class.sum()), sd_count, 1.0)
        count = np.maximum(prior * n, 1.0)[:, None]
        parts = [table[:, a:b] for a, b in itertools.pairwise(at)]
        self.doubts_ = _doubts(cohort, labels, encoder, in_class, sd_count, parts, sd)
        self.classes_, self._fitted_encoder = class_array(labels), encoder
        self.class_log_prior_ = np.log(prior)
        believed = [np.log(_believed_bins(part, count, sd, self.alpha)) for part in parts]
        self.feature_log_prob_ = believed

        def evidence(x: FloatArray) -> FloatArray:
            return _evidence(np.stack(bins(x), axis=1), believed)

        self._weigh(cohort, evidence, prior, n, d)
        return cohort

    def _joint_log_likelihood(self, X: Any) -> FloatArray:
        self._check_new_table(X)
        codes = self._fitted_encoder.transform(X)
        return np.asarray(self.class_log_prior_ + self.evidence_weight_ * _evidence(codes, self.feature_log_prob_))


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


def _believed_bins(counts: FloatArray, rows: FloatArray, sd: float, alpha: float) -> FloatArray:
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
class DPHistogramNB(_Histograms, Bounded):
    """Naive Bayes from one noisy vector of class counts and of a histogram of each feature in each class.

    For numbers in public bins and labels with public values, mixed. With numbers it needs no belief about their law: on
    skewed ones, as Adult's, it does better than :class:`DPGaussianNB` (``benchmarks/learners/results/latest.md``).

    Parameters
    ----------
    epsilon, delta, n, adjacency, unit, labels, budget, dataset, random_state, study, purpose, classes
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
    features. The clips are its L1 norm d + w and its L2 norm √(d + w²). Entries are not negative, so replacing a person
    changes the sum by at most √2 √(d + w²) in L2 and 2 (d + w) in L1. A textbook's Laplace(1/ε) on each count is (d +
    1) ε. The weight of the evidence takes two sums more, as in :class:`fdadp.learners.DPGaussianNB`.

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

    def _encoder(self, d: int) -> PublicEncoder:
        n_bins = whole(self.n_bins, "n_bins", least=2)
        features = features_of(self.features, self.bounds, self.data_norm, self.center, d)
        return codes_encoder(features, d, lambda spec: replace(spec, edges=n_bins))


@dataclass(kw_only=True, eq=False, repr=False)
class DPCategoricalNB(_Histograms):
    """:class:`DPHistogramNB` for labels alone: naive Bayes from noisy tables of public categories.

    Parameters
    ----------
    epsilon, delta, n, adjacency, unit, labels, budget, dataset, random_state, study, purpose, classes, alpha
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
