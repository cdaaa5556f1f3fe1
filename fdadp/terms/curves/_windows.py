"""Sums of a curve's values over windows that differ between points of the response, each row by itself bit for bit."""

from __future__ import annotations

import numpy as np
from numba import njit

from fdadp._common.typing import BoolArray, FloatArray


def windowed(values: FloatArray, weighted: FloatArray, inside: BoolArray) -> FloatArray:
    """Sums ``Σ_s x(s) B_j(s)`` over the points s inside a window for each point t, shape (m, q, T).

    From one window to the next only what comes in or goes out is added or taken off.

    Parameters
    ----------
    values : ndarray of shape (m, S)
    weighted : ndarray of shape (S, q)
        Functions B times quadrature weights.
    inside : bool ndarray of shape (T, S)
    """
    steps = np.diff(inside.astype(np.int8), axis=0, prepend=np.zeros((1, inside.shape[1]), dtype=np.int8))
    at_t, at_s = np.nonzero(steps)
    ends = np.searchsorted(at_t, np.arange(len(inside) + 1))
    out = np.empty((len(values), weighted.shape[1], len(inside)))
    signed = np.ascontiguousarray(weighted[at_s] * steps[at_t, at_s][:, None])
    _sum_windows(np.ascontiguousarray(values), signed, at_s, ends, out)
    return out


@njit(cache=True, nogil=True)
def _sum_windows(values, signed, at, ends, out):  # type: ignore[no-untyped-def]
    for i in range(values.shape[0]):
        for j in range(signed.shape[1]):
            total = 0.0
            for t in range(ends.size - 1):
                for c in range(ends[t], ends[t + 1]):
                    total += values[i, at[c]] * signed[c, j]
                out[i, j, t] = total
