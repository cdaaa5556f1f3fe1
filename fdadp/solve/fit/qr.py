"""Least squares from the triangle of the QR of the records' rows: twice the digits of sums of products.

A row holds the features of all terms and what of the response lies in the few directions that functions along it
span. The triangle R of the QR of the rows has ``R'R = Σ rows' rows``, merges by the QR of two stacked triangles and
does not grow with the number of records, but a direction that is 10⁻⁸ of the largest still has half its digits there,
and none in the products.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.functional.tables.records import Records
from fdadp.solve.form.long_form import LongForm
from fdadp.solve.linear.normal_equations import from_roots
from fdadp.solve.smoothing.penalized import PenalizedLeastSquares, Solution


@dataclass(frozen=True)
class Triangle:
    """Of the rows of a model whose terms all have the same features at all t.

    Attributes
    ----------
    factor : ndarray of shape (r, q + m)
        Upper triangle: q features of all terms, m coordinates of the response (:attr:`LongForm.directions`).
    beyond : float
        Sum of squares of what of the responses lies in no such direction.
    """

    factor: FloatArray
    beyond: float

    @classmethod
    def of(cls, form: LongForm, records: Records, y: FloatArray) -> Triangle:
        """Of records with responses (n, T)."""
        of_y = y @ form.directions
        rows = np.hstack([*form.features(records), of_y])
        return cls(np.asarray(np.linalg.qr(rows, mode="r")), float(((y - of_y @ form.directions.T) ** 2).sum()))

    def merge(self, other: Triangle) -> Triangle:
        """Of the rows of both."""
        both = np.vstack((self.factor, other.factor))
        return Triangle(np.asarray(np.linalg.qr(both, mode="r")), self.beyond + other.beyond)


def refined(problem: PenalizedLeastSquares, solution: Solution, triangle: Triangle, form: LongForm) -> Solution:
    """Solve once more at the smoothing parameters of a solution, from a triangle.

    Parameters
    ----------
    problem : PenalizedLeastSquares
        Of the long form, without an intercept of its own.
    solution : Solution
    triangle : Triangle
    form : LongForm

    Returns
    -------
    Solution
        With other coefficients, inverse, edf, residual sum of squares and variances; criteria and their derivatives
        remain.
    """
    keep = problem.identified
    q, m = sum(design.n_features for design in form.designs), form.directions.shape[1]
    of_y = triangle.factor[:, q:]
    unit = problem.units[keep]
    rows = _rows(triangle.factor[:q, :q], form)[:, keep] * unit
    penalty = solution.smoothing_parameters @ problem.penalties[:, keep] * unit**2
    root, half, _ = from_roots(rows, of_y[:q].reshape(-1, 1), penalty)
    beta, own_inverse = half[:, 0] @ root, root.T @ root
    left = np.vstack((of_y[:q] - (rows @ beta).reshape(-1, m), of_y[q:]))
    rss = float((left**2).sum()) + triangle.beyond
    edf = 1 - penalty * own_inverse.diagonal()
    dof = problem.n - problem.n_unpenalized
    known = problem.scale
    coefficients, all_edf, inverse = np.zeros(keep.size), np.zeros(keep.size), np.zeros((keep.size, keep.size))
    coefficients[keep], all_edf[keep] = beta * unit, edf
    inverse[np.ix_(keep, keep)] = own_inverse * unit * unit[:, None]
    return replace(
        solution,
        coefficients=coefficients,
        inverse=inverse,
        edf=all_edf,
        rss=rss,
        noise_variance=rss / (problem.n - float(edf.sum())) if known is None else known,
        scale=(rss + float(penalty @ beta**2)) / dof if known is None else known,
    )


def _rows(features: FloatArray, form: LongForm) -> FloatArray:
    """Rows of the long form of features of all terms (r, q) along the directions: shape (r m, p)."""
    out, at = [], 0
    for design, along in zip(form.designs, form.along, strict=True):
        own, turned = features[:, at : at + design.n_features], form.directions.T @ along
        whole = own[:, None, :, None] * turned[None, :, None, :]
        out.append(whole.reshape(len(own) * len(turned), -1)[:, design.kept])
        at += design.n_features
    return np.hstack(out)
