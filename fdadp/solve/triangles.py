"""Least squares from the triangle of the QR of the records' rows: twice the digits of sums of products.

A row holds the features of all terms and the response on its grid. The triangle R of the QR of the rows has
``R'R = Σ rows' rows``, merges by the QR of two stacked triangles and does not grow with the number of records, but a
direction that is 10⁻⁸ of the largest still has half its digits there, and none in the products.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.solve.long_form import LongForm
from fdadp.solve.normal_equations import from_roots
from fdadp.solve.penalized import PenalizedLeastSquares
from fdadp.solve.solution import Solution

__all__ = ["refined", "triangle_of"]


def triangle_of(rows: FloatArray, before: FloatArray | None = None) -> FloatArray:
    """Triangle of the QR of rows, and of those that another triangle stands for.

    Parameters
    ----------
    rows : ndarray of shape (n, q)
        Or the triangle of other rows: so triangles merge.
    before : ndarray of shape (m, q), optional
        Triangle of earlier rows.

    Returns
    -------
    ndarray of shape (min(n + m, q), q)
    """
    return np.asarray(np.linalg.qr(rows if before is None else np.vstack((before, rows)), mode="r"))


def refined(problem: PenalizedLeastSquares, solution: Solution, triangle: FloatArray, form: LongForm) -> Solution:
    """Solve once more at the smoothing parameters of a solution, from a triangle.

    Parameters
    ----------
    problem : PenalizedLeastSquares
        Of the long form, without an intercept of its own.
    solution : Solution
    triangle : ndarray of shape (r, q + T)
        Of rows (features of all terms, response on its grid).
    form : LongForm
        Whose terms have the same features at all t.

    Returns
    -------
    Solution
        With other coefficients, inverse, edf, residual sum of squares and variances; criteria and their derivatives
        remain.
    """
    keep = problem.identified
    q = sum(design.n_features for design in form.designs)
    turned = np.linalg.qr(np.hstack(form.along))[0]  # all functions along the response lie in these few directions
    of_y = triangle[:, q:] @ turned
    rows = _rows(triangle[:q, :q], turned, form)[:, keep]
    penalty = solution.smoothing_parameters @ problem.penalties[:, keep]
    root, half, _ = from_roots(rows, of_y[:q].reshape(-1, 1), penalty)
    beta, own_inverse = half[:, 0] @ root, root.T @ root
    left = np.vstack((of_y[:q] - (rows @ beta).reshape(-1, turned.shape[1]), of_y[q:]))
    beyond = triangle[:, q:] - of_y @ turned.T
    rss = float((left**2).sum() + (beyond**2).sum())
    edf = 1 - penalty * own_inverse.diagonal()
    dof = problem.n - problem.n_unpenalized
    known = problem.scale
    coefficients, all_edf, inverse = np.zeros(keep.size), np.zeros(keep.size), np.zeros((keep.size, keep.size))
    coefficients[keep], all_edf[keep], inverse[np.ix_(keep, keep)] = beta, edf, own_inverse
    return replace(
        solution,
        coefficients=coefficients,
        inverse=inverse,
        edf=all_edf,
        rss=rss,
        noise_variance=rss / (problem.n - float(edf.sum())) if known is None else known,
        scale=(rss + float(penalty @ beta**2)) / dof if known is None else known,
    )


def _rows(triangle: FloatArray, turned: FloatArray, form: LongForm) -> FloatArray:
    """Rows of the long form of a triangle (r, q) along the directions (T, m): shape (r m, p)."""
    out, at = [], 0
    for design, along in zip(form.designs, form.along, strict=True):
        own = triangle[:, at : at + design.n_features]
        whole = own[:, None, :, None] * (turned.T @ along)[None, :, None, :]
        out.append(whole.reshape(len(own) * turned.shape[1], -1)[:, design.kept])
        at += design.n_features
    return np.hstack(out)
