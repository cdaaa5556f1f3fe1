"""Covariance of coefficients where errors within a curve, or within a person's curves, are of any law.

Least squares takes all observations as independent; the errors of a curve are not. What estimates then vary by is seen
when curves (clusters) are left out one at a time, smoothing parameters chosen again each time: to first order that
needs one pass over the records and no refit.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fdadp._common.typing import FloatArray, IntArray
from fdadp.functional.records import Records
from fdadp.solve.additive_fit import AdditiveFit
from fdadp.solve.long_form import LongForm

__all__ = ["clustered_covariance", "left_out", "with_smoothing_chosen_again"]

LEVERAGES = 2**27
"""Numbers of long-form rows up to which leverages of clusters count; of more data no cluster has one that matters."""

AT_A_TIME = 256
"""Records whose long-form rows are held at once."""

ROUNDING = 1e-8
"""What a cluster alone determines, it determines without residual: 1 less its leverage is not below this."""

PRIOR_PRECISION = 0.1
"""Of the logarithms of smoothing parameters; where the data do not say, they are not chosen anew."""


def clustered_covariance(
    fit: AdditiveFit,
    records: Records,
    residuals: FloatArray,
    clusters: IntArray | None = None,
    *,
    precision: FloatArray | None = None,
    weights: FloatArray | None = None,
) -> FloatArray:
    """Covariance of all coefficients about the truth, shape (p, p): from clusters, and what penalties take away.

    Parameters
    ----------
    fit : AdditiveFit
    records : Records
        Of the training rows.
    residuals : ndarray of shape (n, T)
    clusters : ndarray of shape (n,) of int, optional
        Numbers of clusters from 0. Default: each record is one.
    precision : ndarray of shape (T, T), optional
        Working precision of the fit along a curve.
    weights : ndarray of shape (n, T), optional
        Weights of the fit; 0 where nothing was observed.

    Returns
    -------
    ndarray of shape (p, p)
        ``K (Σ_g u_g u_g') K' + B``: ``u_g`` is by how much coefficients change without cluster g at the same smoothing
        parameters, K what choosing these again adds, and B the squared bias by penalties, as Bayes' posterior has it
        (Marra & Wood 2012).

    References
    ----------
    Hansen (2022), Jackknife standard errors for clustered regression; Cameron & Miller (2015), A practitioner's guide
    to cluster-robust inference, doi:10.3368/jhr.50.2.317; Marra & Wood (2012), Coverage properties of confidence
    intervals for generalized additive model components, doi:10.1111/j.1467-9469.2011.00760.x.
    """
    changes = left_out(fit.form, fit.inverse, records, residuals, clusters, precision=precision, weights=weights)
    changes = changes @ with_smoothing_chosen_again(fit).T
    bias = fit.bayesian_covariance - fit.sigma2 * fit.inverse @ fit.gram @ fit.inverse
    covariance = changes.T @ changes + bias
    return np.asarray((covariance + covariance.T) / 2)


def left_out(
    form: LongForm,
    inverse: FloatArray,
    records: Records,
    residuals: FloatArray,
    clusters: IntArray | None = None,
    *,
    precision: FloatArray | None = None,
    weights: FloatArray | None = None,
) -> FloatArray:
    """By how much coefficients change when a cluster is left out, at the same smoothing parameters, shape (G, p).

    Notes
    -----
    With ``s = D_g'W r_g`` and ``H = D_g'W D_g`` of a cluster, ``A⁻¹ (I - H A⁻¹)⁻¹ s``, exactly. Where there are more
    than :data:`LEVERAGES` numbers to go through, ``A⁻¹ s`` times ``sqrt(G / (G - 1))``.
    """
    weighted = residuals if weights is None else residuals * weights
    weighted = weighted if precision is None else weighted @ precision
    numbers = np.arange(records.n) if clusters is None else clusters
    count = int(numbers.max()) + 1
    scores = np.zeros((count, form.size))
    for rows in _blocks(records.n, form.size):
        np.add.at(scores, numbers[rows], form.scores(records[rows], weighted[rows]))
    if records.n * len(form.t) * form.size > LEVERAGES:
        return np.asarray(scores @ inverse * np.sqrt(count / max(count - 1, 1)))
    unit = (1 + ROUNDING) * np.eye(form.size)
    for clusters_here, rows in _whole_clusters(numbers, count, max(len(form.t), form.size) * form.size):
        grams = np.zeros((len(clusters_here), form.size, form.size))
        for part in np.array_split(rows, -(-len(rows) // AT_A_TIME)):
            d = form.rows(records[part])
            left = d if precision is None else np.einsum("ut,ntp->nup", precision, d)
            left = left if weights is None else left * weights[part][:, :, None]
            own = np.ascontiguousarray(left.swapaxes(1, 2)) @ d
            np.add.at(grams, np.searchsorted(clusters_here, numbers[part]), own)
        scores[clusters_here] = np.linalg.solve(unit - grams @ inverse, scores[clusters_here][:, :, None])[..., 0]
    return np.asarray(scores @ inverse)


def with_smoothing_chosen_again(fit: AdditiveFit) -> FloatArray:
    """From a change of coefficients at the same smoothing parameters to one where REML chooses them again, (p, p).

    Along ``ρ = log λ`` the coefficients move by ``-A⁻¹ λ_j S_j β``, and REML's gradient moves by ``λ_j β'S_j dβ / φ``
    with them: ``I + A⁻¹ U' (H + P)⁻¹ U / φ`` with rows ``u_j = λ_j S_j β`` and H its Hessian. The identity where
    smoothing parameters were given or chosen otherwise.
    """
    unit = np.eye(fit.form.size)
    if fit.hessian is None or not fit.form.n_penalties:
        return unit
    pull = fit.form.stacked_penalties * fit.smoothing_parameters[:, None] * fit.coefficients
    values, vectors = np.linalg.eigh(fit.hessian)
    hessian = (vectors * np.maximum(values, 0.0)) @ vectors.T + PRIOR_PRECISION * np.eye(len(values))
    return np.asarray(unit + fit.inverse @ pull.T @ np.linalg.solve(hessian, pull / fit.scale))


def _blocks(n: int, width: int) -> Iterator[slice]:
    step = max(2**22 // max(width, 1), 1)
    for start in range(0, n, step):
        yield slice(start, start + step)


def _whole_clusters(numbers: IntArray, count: int, size: int) -> Iterator[tuple[IntArray, IntArray]]:
    """Some clusters at a time, and all their rows."""
    order = np.argsort(numbers, kind="stable")
    ends = np.concatenate(([0], np.cumsum(np.bincount(numbers, minlength=count))))
    step = max(2**21 // size, 1)
    for start in range(0, count, step):
        stop = min(start + step, count)
        yield np.arange(start, stop), order[ends[start] : ends[stop]]
