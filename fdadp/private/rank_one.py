"""Which features and outputs a gradient in pure ε measures, and with which weights: those of a matrix of rank one.

Noise for contributions of bounded nuclear norm costs √(D + K) for any D x K rectangle, not √(D K) as Laplace noise
does; but weights must keep a person's contribution of rank one, so that they are products: ``W = u v'``. From public
values only (docs/theory/dp-aff.md#rank-one).
"""

from __future__ import annotations

import functools
import math

import numpy as np

from fdadp._common.typing import FloatArray

HALVINGS = 50
PRECISIONS = np.concatenate(([0.0], np.geomspace(1e-3, 1e9, 481)))
"""Precisions of a feature, over those of its prior, at which the worth of more precision is tabulated."""

REMEMBERED = 64
"""Plans kept in memory."""
LEAST_SHARE = 1e-12
"""Outputs of no larger prior share are not measured."""


def rank_one_weights(noise: float, feature_scale: FloatArray, output_shares: FloatArray) -> FloatArray:
    """Weights u v' of the rectangle of features and outputs with the least expected loss.

    Parameters
    ----------
    noise : float
        Variance of the mean of all rounds in one entry, for a clip of 1 and where √(D + K) is 1.
    feature_scale : ndarray of shape (d,)
        Prior shares τ² of the features, the constant first; falling, d >= 2.
    output_shares : ndarray of shape (m,)
        Prior shares λ of the response functions; falling, the first above 0.

    Returns
    -------
    ndarray of shape (D, K)
        Largest entry 1.

    Notes
    -----
    With ``v_k = λ_k^(-1/4)``, ``u_j = √p_j`` and Σ p = 1 a typical |u∘f||v∘r| is √(Σ √λ_k), so that the pair (j, k) is
    measured with variance ``N √λ_k / p_j``, ``N = noise (D + K) Σ √λ_k``, and the expected loss is
    ``Σ λ_k τ_j² / (1 + √λ_k q_j)`` with ``q_j = τ_j² p_j / N``, the precision of a feature. At its minimum over p the
    derivatives ``τ_j⁴/N g(q_j)``, ``g(q) = Σ_k λ_k^(3/2) / (1 + √λ_k q)²``, are the same for all features that get
    anything: their common level is found by bisection, for all D at once, and g is inverted from a table.
    """
    return _cached(float(noise), tuple(map(float, feature_scale)), tuple(map(float, output_shares))).copy()


@functools.lru_cache(maxsize=REMEMBERED)
def _cached(noise: float, feature_scale: tuple[float, ...], output_shares: tuple[float, ...]) -> FloatArray:
    tau2, best, weights = np.array(feature_scale), -math.inf, np.ones((1, 1))
    for k in range(1, sum(share > LEAST_SHARE for share in output_shares) + 1):
        roots = np.sqrt(output_shares[:k])
        kept, precisions = _kept(noise, tau2, roots)
        at = int(kept.argmax())
        if kept[at] > best:
            best = float(kept[at])
            d = at + 2
            weights = np.outer(np.sqrt(precisions[at, :d] / tau2[:d]), 1 / np.sqrt(roots))
    return np.asarray(weights / weights.max())


def _kept(noise: float, tau2: FloatArray, roots: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Signal that is kept with the first D = 2, ..., d features, shape (d - 1,), and their precisions (d - 1, d)."""
    worth = (roots**3 / (1 + np.outer(PRECISIONS, roots)) ** 2).sum(axis=1)
    falling, precisions = np.log(worth[::-1]), PRECISIONS[::-1]
    counts = np.arange(2, tau2.size + 1)
    inside = np.arange(tau2.size) < counts[:, None]
    budget = 1 / (noise * (counts + roots.size) * roots.sum())  # Σ q_j/τ_j² where Σ p = 1
    steep = 2 * np.log(tau2)
    low, high = np.full(counts.size, falling[0] + steep.min()), np.full(counts.size, falling[-1] + steep.max())
    for _ in range(HALVINGS):
        level = (low + high) / 2
        used = np.where(inside, np.interp(level[:, None] - steep, falling, precisions) / tau2, 0.0).sum(axis=1)
        low, high = np.where(used > budget, level, low), np.where(used > budget, high, level)
    q = np.where(inside, np.interp(high[:, None] - steep, falling, precisions), 0.0)
    kept = tau2 * (roots**2 * (1 - 1 / (1 + q[..., None] * roots))).sum(axis=-1)
    return np.asarray(kept.sum(axis=1)), q
