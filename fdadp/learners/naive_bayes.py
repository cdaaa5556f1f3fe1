"""Private Gaussian naive Bayes: one noisy sum of class counts and moments, and post-processing.

Published private Gaussian naive Bayes (Vaidya et al. 2013, doi:10.1109/WI-IAT.2013.80, as repeated in textbooks) scales
its noise by the private class sizes, and the variance's by a number of the wrong dimension; see
:mod:`fdadp.published.classifiers`. Here the sums themselves are released, whose sensitivity is exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from fdadp._common.checks import fraction, is_number, numbers
from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError
from fdadp.learners.shared._base import PrivateClassifier
from fdadp.learners.shared._columns import feature_names
from fdadp.learners.shared._doubts import Doubts
from fdadp.learners.shared._evidence import check_share, count_weight, evidence_weight
from fdadp.learners.shared._posterior import (
    above_zero,
    class_shares,
    empirical_bayes,
    independent_evidence,
    posterior,
    spread,
)
from fdadp.learners.shared._rows import blocks
from fdadp.learners.shared.inputs import as_table, box_of, class_array, class_labels
from fdadp.privacy import Cohort
from fdadp.privacy.rows._local import Rows

_UNIFORM = 1 / 3
"""Variance of the prior of a mean in [-1, 1]: of a uniform one."""
_USUAL = 1 / 9
"""Mean, and sd, of the prior of a variance in [-1, 1]: declared ranges are some three sd wide to each side."""
_LEAST_WITHIN = 0.05
"""Share of a variance that is left within classes, however far apart their means seem."""


def check_correlation(value: Any) -> None:
    """Refuse what is no correlation of features to be guessed."""
    if not is_number(value) or not 0 <= value <= 1:
        raise InputError(f"correlation must be a number from 0 to 1, got {value!r}")


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
class DPGaussianNB(FromLikelihood, PrivateClassifier):
    """Gaussian naive Bayes from one noisy vector of counts, sums and sums of squares a class.

    Parameters
    ----------
    epsilon, delta, n, adjacency, unit, labels, budget, dataset, random_state
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

    With z in [-1, 1]^d a row adds (w, z, z² - 1/2), w = max(1, √(0.15 d)), to the block of its class. L1 norm at most
    w + 1.5 d and squared L2 norm at most w² + 1.25 d, both at corners; a row lies in one block, so the classes compose
    in parallel. Where a person is replaced the kernel doubles the clip; max(√2 ‖v‖, 2 √d) would do (another class, or
    the same with opposite signs), so that the noise is up to √2 larger than it must be. Two sums more, of slopes of the
    log-loss in the logarithm of the evidence's weight, depend on what was released before them.

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

    bounds: Any = None
    data_norm: float | None = None
    center: ArrayLike = 0.0
    var_floor: float = 1e-4
    priors: ArrayLike | None = None
    correlation: float = 0.15
    evidence_share: float = 0.04

    def _learn(self, X: Any, y: Any, groups: ArrayLike | None) -> Cohort:
        """Release the moments."""
        labels = class_labels(self.classes)
        K = len(labels)
        fraction(self.var_floor, "var_floor")
        check_correlation(self.correlation)
        check_share(self.evidence_share)
        if self.priors is not None:
            priors = numbers(self.priors, "priors")
            if priors.shape != (K,) or not (priors > 0).all() or not math.isclose(priors.sum(), 1, abs_tol=1e-6):
                raise InputError(f"priors must be {K} numbers above 0 that sum to 1, got {self.priors!r}")
        d = int(as_table(X).shape[1])
        low, high = box_of(self.bounds, self.data_norm, self.center, d)
        shown = {"classes": labels, "bounds": (low, high) if self.bounds is None else self.bounds}
        cohort = self._open(X, y, groups, classes=labels, public=shown)

        def moments(rows: Rows) -> FloatArray:
            x, code = rows
            z = np.clip(2 * (x - low) / (high - low) - 1, -1, 1) + 0.0 * x  # what is not finite becomes NaN
            block = np.concatenate((np.full((len(x), 1), weight), z, z * z - 0.5), axis=1)
            return blocks(block, code, K)

        weight = count_weight(d)
        clip = weight + 1.5 * d if cohort.pure else math.sqrt(weight**2 + 1.25 * d)
        name = "counts, sums and sums of squares of the classes"
        total, sd = cohort.sum(moments, clip=clip, share=1 - self.evidence_share, name=name)
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
        start = independent_evidence(d, self.correlation)

        def evidence(x: FloatArray) -> FloatArray:
            inside = np.clip(x, low, high) + 0.0 * x
            return gaussian_log_likelihood(inside, np.ones(K), theta, spreads)

        self.evidence_weight_ = evidence_weight(cohort, evidence, self.class_prior_, n, start, self.evidence_share)
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
