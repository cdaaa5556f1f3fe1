"""Features of rows that differ between points of the response: what they do with coefficients, residuals and noise.

``z`` has shape (m, q, T). Each row's numbers depend on that row alone, bit for bit (:mod:`fdadp.private.rows.rows`).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from fdadp._common.typing import FloatArray, IntArray


def added(values: FloatArray, z: FloatArray, effects: FloatArray) -> FloatArray:
    """``values(t) + Σ_j z_j(t) effects_j(t)``, shape (m, T); `effects` (q, T)."""
    out = np.array(values, order="C")
    _add(np.ascontiguousarray(z), np.ascontiguousarray(effects), out)
    return out


def integrals(z: FloatArray, curves: FloatArray, weighted: FloatArray) -> FloatArray:
    """``∫ z_j(t) φ_k(t) r(t) dt`` of curves r (m, T), shape (m, q, K).

    Parameters
    ----------
    z : ndarray of shape (m, q, T)
    curves : ndarray of shape (m, T)
    weighted : ndarray of shape (T, K)
        The functions φ times quadrature weights.
    """
    out = np.zeros((*z.shape[:2], weighted.shape[1]))
    _integrate(np.ascontiguousarray(z), np.ascontiguousarray(curves), np.ascontiguousarray(weighted), out)
    return out


def quadratic(features: FloatArray, z: FloatArray, places: IntArray, forms: FloatArray) -> FloatArray:
    """``h(t)' Q(t) h(t)``, h the features of a row at t; shape (m, T).

    Parameters
    ----------
    features : ndarray of shape (m, D)
        0 at `places`.
    z : ndarray of shape (m, q, T)
    places : ndarray of shape (q,)
        Of these among the features.
    forms : ndarray of shape (D, D, T)
        Q at each point, symmetric.
    """
    at = np.full(features.shape[1], -1, dtype=np.int64)
    at[places] = np.arange(places.size)
    out = np.zeros((len(features), forms.shape[2]))
    _quadratic(np.ascontiguousarray(features), np.ascontiguousarray(z), at, np.ascontiguousarray(forms), out)
    return out


@njit(cache=True, nogil=True)
def _add(z, effects, out):  # type: ignore[no-untyped-def]
    for i in range(z.shape[0]):
        for j in range(z.shape[1]):
            for t in range(z.shape[2]):
                out[i, t] += z[i, j, t] * effects[j, t]


@njit(cache=True, nogil=True)
def _integrate(z, curves, weighted, out):  # type: ignore[no-untyped-def]
    for i in range(z.shape[0]):
        for j in range(z.shape[1]):
            for t in range(z.shape[2]):
                product = z[i, j, t] * curves[i, t]
                for k in range(weighted.shape[1]):
                    out[i, j, k] += product * weighted[t, k]


@njit(cache=True, nogil=True)
def _quadratic(features, z, at, forms, out):  # type: ignore[no-untyped-def]
    d, points = at.size, forms.shape[2]
    for i in range(len(features)):
        for j in range(d):
            for k in range(j + 1):
                twice = 1.0 if j == k else 2.0
                if at[j] < 0 and at[k] < 0:
                    product = twice * features[i, j] * features[i, k]
                    for t in range(points):
                        out[i, t] += product * forms[j, k, t]
                elif at[j] >= 0 and at[k] >= 0:
                    for t in range(points):
                        out[i, t] += twice * z[i, at[j], t] * z[i, at[k], t] * forms[j, k, t]
                else:
                    first, steady = (j, k) if at[j] >= 0 else (k, j)
                    product = twice * features[i, steady]
                    for t in range(points):
                        out[i, t] += product * z[i, at[first], t] * forms[j, k, t]
