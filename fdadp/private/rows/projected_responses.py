"""Responses with gaps: a row's own projection on the response functions, from the points where it was observed."""

from __future__ import annotations

import math

import numpy as np

from fdadp._common.loaded_later import kernel
from fdadp._common.typing import FloatArray
from fdadp.privacy import rowwise_matmul


class Projection:
    """From curves about a prediction to coefficients on orthonormal functions.

    Of a complete curve e they are ``Φ'We``. Of a curve with gaps they minimise ``Σ_o w_j (e_j - φ_j'c)² + c'Rc`` over
    its observed points o, ``R = (1 - Σ_o w_j) diag(1/share_m) / T``: where nothing was observed the prediction stands.

    Parameters
    ----------
    functions : ndarray of shape (T, M)
        Orthonormal under the weights.
    weights : ndarray of shape (T,)
        Quadrature weights, which sum to one.
    shares : ndarray of shape (M,)
        Prior shares of variance of the functions.
    """

    def __init__(self, functions: FloatArray, weights: FloatArray, shares: FloatArray) -> None:
        self.functions = np.ascontiguousarray(functions)
        self.weights = np.ascontiguousarray(weights)
        self._weighted = np.ascontiguousarray(functions * weights[:, None])
        self._ridge = 1 / (np.maximum(shares, 1e-6) * weights.size)

    def __call__(self, y: FloatArray) -> FloatArray:
        """Coefficients (m, M) of curves (m, T), NaN where not observed; NaN throughout where nothing was."""
        out = rowwise_matmul(y, self._weighted)
        return self.about(y, np.zeros_like(out), out)

    def about(self, y: FloatArray, predicted: FloatArray, complete: FloatArray) -> FloatArray:
        """Coefficients of ``y - Φ predicted``; `complete` (m, M) is what they are of curves without gaps."""
        out = np.array(complete, order="C")
        y, predicted = np.ascontiguousarray(y), np.ascontiguousarray(predicted)
        _project(y, predicted, self.functions, self.weights, self._ridge, out)
        return out


def observed_mean(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Weighted mean over the points where a row is not NaN, shape (m,); NaN where there are none."""
    out = np.empty(len(values))
    _observed_mean(np.ascontiguousarray(values), np.ascontiguousarray(weights), out)
    return out


@kernel("f8[:,::1], f8[::1], f8[::1]")
def _observed_mean(values, weights, out):  # type: ignore[no-untyped-def]
    for i in range(values.shape[0]):
        total, mass = 0.0, 0.0
        for j in range(weights.size):
            if not math.isnan(values[i, j]):
                total += weights[j] * values[i, j]
                mass += weights[j]
        out[i] = total / mass if mass > 0 else math.nan


@kernel("f8[:,::1], f8[:,::1], f8[:,::1], f8[::1], f8[::1], f8[:,::1]")
def _project(y, predicted, functions, weights, ridge, out):  # type: ignore[no-untyped-def]
    """Overwrite the rows of `out` (m, M) that belong to curves with gaps."""
    points, size = functions.shape
    gram, right = np.empty((size, size)), np.empty(size)
    for i in range(y.shape[0]):
        mass, gaps = 0.0, 0
        for j in range(points):
            if math.isnan(y[i, j]):
                gaps += 1
            else:
                mass += weights[j]
        if gaps == 0:
            continue
        if mass <= 0.0:
            for a in range(size):
                out[i, a] = math.nan
            continue
        for a in range(size):
            right[a] = 0.0
            for b in range(a):
                gram[a, b] = 0.0
            gram[a, a] = ridge[a] * max(1.0 - mass, 0.0)
        for j in range(points):
            if not math.isnan(y[i, j]):
                away = y[i, j]
                for a in range(size):
                    away -= functions[j, a] * predicted[i, a]
                for a in range(size):
                    part = weights[j] * functions[j, a]
                    right[a] += part * away
                    for b in range(a + 1):
                        gram[a, b] += part * functions[j, b]
        for a in range(size):  # Cholesky, in place, and its solution
            for b in range(a + 1):
                for c in range(b):
                    gram[a, b] -= gram[a, c] * gram[b, c]
                gram[a, b] = math.sqrt(max(gram[a, a], 1e-12)) if a == b else gram[a, b] / gram[b, b]
            for b in range(a):
                right[a] -= gram[a, b] * right[b]
            right[a] /= gram[a, a]
        for a in range(size - 1, -1, -1):
            for b in range(a + 1, size):
                right[a] -= gram[b, a] * right[b]
            right[a] /= gram[a, a]
            out[i, a] = right[a]
