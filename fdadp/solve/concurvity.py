"""Concurvity: how far one term of a model can be written by the others, as collinearity of columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fdadp._common.typing import FloatArray, IntArray

MEASURES = ("worst", "observed", "estimate")

NOT_THERE = 1e-10
"""Directions of less than this share of the largest, with columns of length 1, are taken as rounding."""


def concurvity(
    gram: FloatArray, coefficients: FloatArray, term: IntArray, others: Sequence[IntArray]
) -> list[tuple[float, float, float]]:
    """How much of a term lies in the span of others, from the Gram matrix of all columns.

    Parameters
    ----------
    gram : ndarray of shape (p, p)
    coefficients : ndarray of shape (p,)
    term : ndarray of shape (p_j,), int
        Numbers of its columns.
    others : sequence of ndarray of int
        Of what it may be written by, one set of columns a result.

    Returns
    -------
    list of (worst, observed, estimate)
        All between 0, nothing in common, and 1, not identified. With P the projection on the span of the others and X
        the term's columns: the largest ``|P X b|² / |X b|²``, that of the estimate b, and ``|P X|² / |X|²``, which
        depends on the coordinates of the term.

    References
    ----------
    mgcv's ``concurvity``; Wood (2017), Generalized Additive Models, section 5.6.3, doi:10.1201/9781315370279.
    """
    own = gram[np.ix_(term, term)]
    root = _inverse_root(own)
    b = coefficients[term]
    length, total = float(b @ own @ b), float(np.trace(own))
    found = []
    for columns in others:
        cross = _inverse_root(gram[np.ix_(columns, columns)]).T @ gram[np.ix_(columns, term)]
        shared = cross.T @ cross  # X'PX
        worst = float(np.linalg.norm(cross @ root, 2) ** 2) if root.size and cross.size else 0.0
        observed = float(b @ shared @ b) / length if length > 0 else np.nan
        estimate = float(np.trace(shared)) / total if total > 0 else np.nan
        found.append((min(worst, 1.0), min(observed, 1.0), min(estimate, 1.0)))
    return found


def _inverse_root(gram: FloatArray) -> FloatArray:
    """R of shape (p, r) with ``R' G R = I`` on what is there."""
    scale = np.sqrt(np.diag(gram))
    scale = np.where(scale > 0, 1 / np.where(scale > 0, scale, 1.0), 0.0)
    values, vectors = np.linalg.eigh(gram * np.outer(scale, scale))
    there = values > NOT_THERE * max(float(values[-1]), 0.0) if values.size else np.zeros(0, dtype=bool)
    return np.asarray(scale[:, None] * vectors[:, there] / np.sqrt(values[there]))
