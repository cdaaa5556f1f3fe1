"""How much the evidence of features counts that were taken for independent: learnt from noisy slopes of the log-loss.

Naive Bayes adds up what each feature says. Where features repeat each other, or their laws are not those assumed,
the sum is too sure, and where noise was shrunk it may be too timid. One number τ mends both: log-probabilities are
``log prior + τ evidence``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fdadp._common.checks import is_number
from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.learners.shared._posterior import above_zero, posterior
from fdadp.privacy import Cohort, rowwise_exp
from fdadp.privacy.rows._local import Rows

_STEPS = 2
_LARGEST_STEP = 1.5
"""In log τ."""
_SLOPE, _CURVATURE = 2.0, 1.0
"""Where what a row adds to the slope, on both sides, and to the curvature, is clipped."""
_SD = 1.0
"""Standard deviation, before the release, of log τ about its public guess."""
_LEAST = 0.1
"""Of its variance before the second step: slopes are no straight lines."""
_USUAL = 0.1
"""Curvature that is expected of a row before the release; the standard deviation of that, too."""
_CLASSES = 0.15
"""Weight of a row's class, squared, beside d features, in units of d."""


def count_weight(d: int) -> float:
    """Weight of the count in a class's block of a release, beside what d features add.

    It has the shares of the classes, and stands under everything else: as one number among d it would be the noisiest.
    """
    return max(1.0, math.sqrt(_CLASSES * d))


def check_share(value: Any) -> None:
    """Refuse what is no share of the budget for the weight of the evidence."""
    if not is_number(value) or not 0 <= value < 1:
        raise InputError(f"evidence_share must be 0 or a number below 1, got {value!r}")


def evidence_weight(
    cohort: Cohort, evidence: Callable[[Any], FloatArray], prior: FloatArray, n: float, start: float, share: float
) -> float:
    """Weight τ that a cohort of rows (x, class) makes one expect, about a public guess; Newton steps in log τ.

    Parameters
    ----------
    evidence : callable
        Log-likelihoods (m, K) of x in each class, by a released model; row-local.
    prior : ndarray of shape (K,)
        Released, or public.
    n : float
        Released number of rows.
    start : float
        The guess, above 0.
    share : float
        Of the budget; 0: the guess.

    Notes
    -----
    Proof, and what is clipped: ``docs/theory/learners.md#naive-bayes``.
    """
    log_prior, K = np.log(prior), len(prior)
    at, variance = 0.0, _SD**2
    for step in range(_STEPS if share else 0):
        weight = start * math.exp(at)

        def slopes(rows: Rows, weight: float = weight) -> FloatArray:
            x, label = rows
            each = evidence(x)
            score = log_prior + weight * each
            p = rowwise_exp(score - score.max(axis=1, keepdims=True))
            total, mean, own, square = np.zeros((4, len(each)))
            for k in range(K):  # in a fixed order
                total += p[:, k]
            for k in range(K):
                mean += p[:, k] / total * each[:, k]
                own += np.where(label == k, each[:, k], 0.0)
            for k in range(K):
                square += p[:, k] / total * (each[:, k] - mean) ** 2
            slope = np.clip(weight * (mean - own), -_SLOPE, _SLOPE)
            curvature = np.minimum(weight**2 * square, _CURVATURE)
            return np.asarray(np.stack((slope, curvature), axis=1) + 0 * label[:, None])

        clip = _SLOPE + _CURVATURE if cohort.pure else math.hypot(_SLOPE, _CURVATURE)
        name = f"weight of the evidence, step {step + 1}"
        (slope, raw), sd = cohort.sum(slopes, clip=clip, share=share / _STEPS, name=name)
        usual = _USUAL * n
        curvature = float(above_zero(*posterior(raw, sd**2, usual, usual**2)))
        known = curvature**2 * variance + sd**2
        at -= float(np.clip(variance * curvature * slope / known, -_LARGEST_STEP, _LARGEST_STEP))
        variance = max(variance * sd**2 / known, _LEAST)
    return start * math.exp(at)
