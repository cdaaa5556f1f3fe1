"""Rounds of AdaBoost on one-feature thresholds, with noise where the published schemes put it. **Not private.**"""

from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def boost(codes, sizes, y, noised, budget, tie, clip0, clamp, perfect, mode, rng):  # type: ignore[no-untyped-def]
    """AdaBoost on stumps. mode 0: noise on weights in the rounds ``noised``; 1: on leaves; 2: on splits and leaves.

    ``codes`` is (d, n): indices of the values, a feature a row. Of equally good stumps the first is taken.
    """
    n, m = codes.shape[1], noised.size
    w = np.full(n, 1.0 / n)
    out = np.empty((m, 5))
    edge, vote = np.empty(n), np.empty(n)
    widest = sizes.max()
    sums = np.empty(widest)
    if widest < 2:  # nothing to test
        return out[:0]
    for k in range(m):
        total = 0.0
        for i in range(n):
            edge[i] = w[i] * y[i]
            total += edge[i]
        feature, cut = _best_test(codes, sizes, edge, total, sums, mode, 2 * m / budget, rng)
        above, below = _votes(codes[feature], cut, y, w, mode, mode * m / budget, rng)
        error = 0.0
        for i in range(n):
            vote[i] = above if codes[feature, i] >= cut else below
            if vote[i] != y[i]:
                error += w[i]
        if error > 0.5:
            return out[:k]
        e = min(max(error, clamp), 1 - clamp)
        alpha = 0.5 * math.log((1 - e) / e)
        out[k, 0], out[k, 1], out[k, 2], out[k, 3], out[k, 4] = feature, cut, above, below, alpha
        if error <= perfect:
            return out[: k + 1]
        right, wrong = math.exp(-alpha), math.exp(alpha)
        norm = 0.0
        for i in range(n):
            w[i] *= right if vote[i] == y[i] else wrong
            norm += w[i]
        for i in range(n):
            w[i] /= norm
        if noised[k] and not _add_noise(w, m, budget, tie, clip0, rng):
            return out[: k + 1]
    return out


@njit(cache=True, nogil=True)
def _best_test(codes, sizes, edge, total, sums, mode, scale, rng):  # type: ignore[no-untyped-def]
    """Feature and value of the best stump; in mode 2 scores have noise of this scale. Overwrites ``sums``."""
    d, n = codes.shape
    best = -np.inf
    feature, cut = 0, 0
    for j in range(d):
        if sizes[j] == 2:
            sums[1] = _where_one(edge, codes[j])
        else:
            sums[: sizes[j]] = 0.0
            for i in range(n):
                sums[codes[j, i]] += edge[i]
        above = 0.0
        for c in range(sizes[j] - 1, 0, -1):  # test x_j >= value c
            above += sums[c]
            score = abs(2 * above - total)  # |Σ w y h| of h = ±(2 [x_j >= c] - 1)
            if mode == 2:  # count N Σ w 1[y = h] of the better sign
                score = n * (1 + score) / 2 + rng.laplace(0.0, scale)
            if score > best + _EQUAL * max(1.0, best):
                best, feature, cut = score, j, c
    return feature, cut


@njit(cache=True, nogil=True)
def _votes(code, cut, y, w, mode, scale, rng):  # type: ignore[no-untyped-def]
    """Signs that the two leaves vote for; in modes 1 and 2 their weights have noise of this scale."""
    n = y.size
    high = np.zeros(2)
    low = np.zeros(2)
    for i in range(n):
        side = high if code[i] >= cut else low
        side[1 if y[i] > 0 else 0] += n * w[i]
    if mode > 0:
        for c in range(2):
            high[c] += rng.laplace(0.0, scale)
            low[c] += rng.laplace(0.0, scale)
        return 1.0 if high[1] > high[0] else -1.0, 1.0 if low[1] > low[0] else -1.0
    above = 1.0 if high[1] - high[0] > low[1] - low[0] else -1.0
    return above, -above  # the two leaves vote for different classes


@njit(cache=True, nogil=True)
def _add_noise(w, m, budget, tie, clip0, rng):  # type: ignore[no-untyped-def]
    """Add noise to the largest and the smallest weights, in place; False where no weight is left."""
    n = w.size
    top, bottom = w.max(), w.min()
    is_top = w == top
    is_bottom = w == bottom
    for which in range(2):
        value = top if which == 0 else bottom
        scale = abs(value - 1.0 / n) * m / (budget * value) if value > 0 else 0.0
        draw = rng.laplace(0.0, scale) if scale > 0 else 0.0
        done = False
        for i in range(n):
            if (is_top[i] if which == 0 else is_bottom[i]) and not (tie == 2 and done):
                if tie == 1 and done and scale > 0:
                    draw = rng.laplace(0.0, scale)
                new = value + draw
                w[i] = max(new, 1.0 / n) if which == 0 else min(new, 1.0 / n)
                done = True
    norm = 0.0
    for i in range(n):
        if clip0 and w[i] < 0:
            w[i] = 0.0
        norm += w[i]
    if not abs(norm) > 0:
        return False
    for i in range(n):
        w[i] /= norm
    return True


_EQUAL = 1e-12
"""Relative difference of scores that counts as none: sums of weights over 10⁵ rows are that exact."""


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})  # so that it is vectorised
def _where_one(values, code):  # type: ignore[no-untyped-def]
    """Sum of the values whose code, 0 or 1, is 1."""
    total = 0.0
    for i in range(values.size):
        total += values[i] * code[i]
    return total
