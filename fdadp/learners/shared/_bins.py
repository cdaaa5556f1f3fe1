"""Features cut into public bins, and scores that add up over them: what the boosted learners share.

Weights of rows are built by multiplication of released numbers, row by row: an exponential of a private margin might
have other last bits at the end of a block (see :mod:`fdadp.privacy.rows._local`).
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numba import njit

from fdadp._common.typing import FloatArray, IntArray
from fdadp.learners.shared.encoding import Numeric, codes_encoder

CUTS = 19
"""Of each kind, for a number without edges: evenly spaced, and evenly spaced in log(1 + x - low)."""
_LARGEST = 1e150
_LONGEST = 345.0
"""Its logarithm, rounded down."""


class Bins:
    """Public bins of declared features.

    Parameters
    ----------
    features : mapping of name to Numeric or Categorical, sequence of them, or one of them
        One holds for all columns. A Numeric without edges gets 19 evenly spaced cuts, and 19 that are so in
        log(1 + x - low).
    d : int
        Number of columns.

    Attributes
    ----------
    encoder : PublicEncoder
        To codes; its ``columns`` are what the kernel reads.
    sizes : ndarray of shape (d,)
        Number of bins of each feature.
    starts : ndarray of shape (d + 1,)
        Where each feature's bins start among all of them.
    ordered : ndarray of shape (d,)
        1 where bins have an order.
    """

    def __init__(self, features: Any, d: int) -> None:
        self.encoder = codes_encoder(features, d, _with_cuts)
        self.names, self.specs = self.encoder._specs()
        self.sizes: IntArray = np.array([spec.n_bins for spec in self.specs], dtype=np.int64)
        self.starts: IntArray = np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)
        self.ordered: IntArray = np.array([isinstance(spec, Numeric) for spec in self.specs], dtype=np.int64)

    @property
    def total(self) -> int:
        """Number of all bins."""
        return int(self.starts[-1])

    def codes(self, values: FloatArray) -> FloatArray:
        """Bins (m, d) of what the encoder's ``columns`` give; NaN for what has none. Row-local."""
        out = np.array(values, dtype=np.float64)
        for j, spec in enumerate(self.specs):
            if isinstance(spec, Numeric):
                out[:, j] = spec.bins(values[:, j])
        return out

    def scores(self, codes: FloatArray, table: FloatArray) -> FloatArray:
        """Sum over features of the table's entry (total,) or (total, K) of each row's bin; a missing value adds 0."""
        padded = np.concatenate([table, np.zeros_like(table[:1])])
        at = np.where(np.isnan(codes), self.total, np.nan_to_num(codes) + self.starts[:-1]).astype(np.int64)
        return np.asarray(padded[at].sum(axis=1))


def _with_cuts(spec: Any) -> Any:
    if not isinstance(spec, Numeric) or spec.edges is not None:
        return spec
    low, high = float(spec.low), float(spec.high)
    even = np.linspace(low, high, CUTS + 2)[1:-1]
    log = low + np.expm1(np.linspace(0, np.log1p(high - low), CUTS + 2)[1:-1])
    cuts = np.unique(np.concatenate([even, log]))
    return dataclasses.replace(spec, edges=[float(c) for c in cuts if low < c < high])


@njit(cache=True, nogil=True)
def _place(codes, starts, i, j):  # type: ignore[no-untyped-def]
    """Bin of row i in feature j among all bins, or -1 for none."""
    code = codes[i, j]
    if code >= 0 and code < starts[j + 1] - starts[j] and code == np.floor(code):
        return starts[j] + np.int64(code)
    return -1


def in_bins(values: FloatArray, codes: FloatArray, starts: IntArray) -> FloatArray:
    """Put each row's values (m, K) into its bin of each feature, (m, total K); NaN in rows with a missing bin.

    Parameters
    ----------
    values : ndarray of shape (m, K)
        Private, as are the codes (m, d).
    starts : ndarray of shape (d + 1,)
    """
    out = np.zeros((len(codes), int(starts[-1]) * values.shape[1]))
    _put(codes, starts, values, out)
    return out


@njit(cache=True, nogil=True)
def _put(codes, starts, values, out):  # type: ignore[no-untyped-def]
    K = values.shape[1]
    for i in range(codes.shape[0]):
        for j in range(codes.shape[1]):
            at = _place(codes, starts, i, j)
            for k in range(K):
                out[i, max(at, 0) * K + k] = values[i, k] if at >= 0 else np.nan


def totals(codes: FloatArray, starts: IntArray, scores: FloatArray) -> FloatArray:
    """Sum over features, in order, of the score of each row's bin, (m,); NaN for a missing bin.

    Parameters
    ----------
    codes : ndarray of shape (m, d)
        Private.
    starts : ndarray of shape (d + 1,)
    scores : ndarray of shape (total,)
        Public or released.
    """
    out = np.zeros(len(codes))
    _add(codes, starts, scores, out)
    return out


@njit(cache=True, nogil=True)
def _add(codes, starts, scores, out):  # type: ignore[no-untyped-def]
    for i in range(codes.shape[0]):
        for j in range(codes.shape[1]):
            at = _place(codes, starts, i, j)
            out[i] += scores[at] if at >= 0 else np.nan


def odds(codes: FloatArray, starts: IntArray, scores: FloatArray) -> FloatArray:
    """``exp`` of the sum over features of the score of each row's bin, (m, K), as a product; NaN for a missing bin.

    Parameters
    ----------
    codes : ndarray of shape (m, d)
        Private.
    starts : ndarray of shape (d + 1,)
    scores : ndarray of shape (total, K)
        Public or released.
    """
    out = np.empty((len(codes), scores.shape[1]))
    _product(codes, starts, np.exp(np.clip(scores, -_LONGEST, _LONGEST)), out)
    return out


@njit(cache=True, nogil=True)
def _product(codes, starts, factors, out):  # type: ignore[no-untyped-def]
    for i in range(codes.shape[0]):
        for k in range(out.shape[1]):
            value = 1.0
            for j in range(codes.shape[1]):
                at = _place(codes, starts, i, j)
                if at >= 0:
                    value *= factors[at, k]
                    value = min(max(value, 1 / _LARGEST), _LARGEST)  # the product stays finite
                else:
                    value = np.nan
                    break
            out[i, k] = value
