"""Covariance of coefficients where errors within a curve, or within a person's curves, are of any law.

Least squares takes all observations as independent; the errors of a curve are not. What estimates then vary by is seen
when curves (clusters) are left out one at a time, smoothing parameters chosen again each time: to first order that
needs one pass over the records and no refit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fdadp._common.typing import FloatArray, IntArray
from fdadp.functional.records import Records
from fdadp.responses.pointwise import PointwiseResponse
from fdadp.solve.additive_fit import AdditiveFit
from fdadp.solve.curve_precision import CurvePrecision
from fdadp.solve.families import Family
from fdadp.solve.learned_precision import LearnedPrecision
from fdadp.solve.long_form import LongForm
from fdadp.solve.low_rank import ROUNDING, LowRankPrecision, left_out_on_functions
from fdadp.solve.observations import Observations

__all__ = [
    "ClusterErrors",
    "Residuals",
    "Scores",
    "cluster_errors",
    "corrected_edf",
    "left_out",
    "with_smoothing_chosen_again",
]

LEVERAGES = 2**27
"""Numbers of long-form rows up to which leverages of clusters count; of more data no cluster has one that matters."""

AT_A_TIME = 2**21
"""Numbers of long-form rows, and of products of them, that are held at once."""

PRIOR_PRECISION = 0.1
"""Of the logarithms of smoothing parameters; where the data do not say, they are not chosen anew."""


Precision = FloatArray | LowRankPrecision | CurvePrecision


@dataclass(frozen=True)
class Residuals:
    """What a fit left of the observations, on the scale of its linear predictor.

    Attributes
    ----------
    records : Records
        Of the training rows.
    values : ndarray of shape (n, T) or (N,)
        On the grid of the response; or one by one, of observations at points of their own.
    weights : ndarray of the same shape, or None
        Of the fit; 0 where nothing was observed. None: 1.
    points : PointwiseResponse or None
        Records and points of such observations.
    precision : ndarray of shape (T, T), LowRankPrecision, CurvePrecision or None
        Working precision of the fit along a curve: on the grid, where there are no weights; or for each curve at its
        own points, with the weights.
    learned : LearnedPrecision or None
        What that was learned from, where it was from the curves.
    """

    records: Records
    values: FloatArray
    weights: FloatArray | None = None
    points: PointwiseResponse | None = None
    precision: Precision | None = None
    learned: LearnedPrecision | None = None

    @classmethod
    def of(
        cls,
        observed: Observations,
        eta: FloatArray,
        family: Family,
        precision: Precision | None = None,
        learned: LearnedPrecision | None = None,
    ) -> Residuals:
        """What linear predictors leave of observations: working residuals, where the family has a link."""
        seen = observed.used > 0
        working = family.working(np.where(seen, observed.y, family.placeholder), eta)
        weights = None if observed.whole and family.name == "gaussian" else observed.used * working.fisher
        left = np.where(seen, working.residual / np.maximum(working.fisher, 1e-300), 0.0)
        return cls(observed.records, left, weights, observed.points, precision, learned)

    @classmethod
    def together(cls, parts: Sequence[Residuals]) -> Residuals:
        """Residuals on a grid of all records of several parts, of one fit."""
        weights = None
        if any(part.weights is not None for part in parts):
            weights = np.concatenate([np.ones_like(p.values) if p.weights is None else p.weights for p in parts])
        records = Records.together([part.records for part in parts])
        return cls(records, np.concatenate([part.values for part in parts]), weights, None, parts[0].precision)

    @property
    def n(self) -> int:
        """Number of records."""
        return self.records.n

    def scores(self, form: LongForm) -> FloatArray:
        """``D_i' W r_i`` of each record, D_i its long-form rows, shape (n, p)."""
        weighted = self._weighted()
        out = np.zeros((self.records.n, form.size))
        for part in self._parts(np.arange(self.records.n), form):
            if self.points is None:
                out[part] = form.scores(self.records[part], weighted[part])
            else:
                which, rows, own = self._rows_at(part, form)
                np.add.at(out, part[own], rows * weighted[which][:, None])
        return out

    def grams(self, form: LongForm, rows: IntArray) -> Iterator[tuple[IntArray, FloatArray]]:
        """``D_i' W D_i`` of some records, a part of them at a time: which, and the products (k, p, p)."""
        for part in self._parts(rows, form):
            if self.points is None:
                d = form.rows(self.records[part])
                yield part, np.ascontiguousarray(self._weighted_rows(part, d).swapaxes(1, 2)) @ d
                continue
            which, d, own = self._rows_at(part, form)
            if isinstance(self.precision, CurvePrecision):
                left = self.precision.times(d, which)
            else:
                left = d if self.weights is None else d * self.weights[which][:, None]
            out = np.zeros((len(part), form.size, form.size))
            for i in range(len(part)):
                out[i] = left[own == i].T @ d[own == i]
            yield part, out

    def without(self, form: LongForm, changes: FloatArray) -> FloatArray:
        """Residuals of a record under coefficients that do not know it, shape of the values; `changes` (n, p)."""
        out = self.values.copy()
        for part in self._parts(np.arange(self.records.n), form):
            if self.points is None:
                out[part] += np.einsum("ntp,np->nt", form.rows(self.records[part]), changes[part])
            else:
                which, rows, own = self._rows_at(part, form)
                out[which] += np.einsum("ij,ij->i", rows, changes[part][own])
        return out

    def _weighted(self) -> FloatArray:
        """The values times the weights, or the precision, of the fit."""
        if isinstance(self.precision, CurvePrecision):
            return self.precision.times(self.values.reshape(-1, 1)).reshape(self.values.shape)
        if isinstance(self.precision, LowRankPrecision):
            return self.precision.of_values(self.values)
        if self.precision is not None:
            return np.asarray(self.values @ self.precision)
        return self.values if self.weights is None else np.where(self.weights > 0, self.values, 0) * self.weights

    def _weighted_rows(self, part: IntArray, d: FloatArray) -> FloatArray:
        """The same of long-form rows on the grid of some records, shape (k, T, p)."""
        if isinstance(self.precision, CurvePrecision):
            size = d.shape[1]
            which = (part[:, None] * size + np.arange(size)).ravel()
            return self.precision.times(d.reshape(-1, d.shape[2]), which).reshape(d.shape)
        if isinstance(self.precision, LowRankPrecision):
            return self.precision.of_rows(d)
        if self.precision is not None:
            return np.asarray(np.matmul(self.precision, d))
        return d if self.weights is None else d * self.weights[part][:, :, None]

    def size(self, form: LongForm) -> int:
        """Numbers of the long-form rows of all observations, or of what a precision of low rank sees of them."""
        own = self.precision
        return (self.n * own.rank if isinstance(own, LowRankPrecision) else self.values.size) * form.size

    def _parts(self, rows: IntArray, form: LongForm) -> Iterator[IntArray]:
        step = max(AT_A_TIME // (max(self.values.size // self.records.n, form.size, 1) * form.size), 1)
        for start in range(0, len(rows), step):
            yield rows[start : start + step]

    def _rows_at(self, part: IntArray, form: LongForm) -> tuple[IntArray, FloatArray, IntArray]:
        """Numbers of the observations of some records, their long-form rows, and the place of the record in `part`."""
        assert self.points is not None
        bounds = np.searchsorted(self.points.record, np.stack((part, part + 1)))
        which = np.concatenate([np.arange(low, high) for low, high in bounds.T])
        own = np.repeat(np.arange(len(part)), bounds[1] - bounds[0])
        return which, form.rows_at(self.records[part], own, self.points.t[which]), own


@dataclass(frozen=True)
class Scores:
    """What :class:`Residuals` says of large data, in which leverages do not count: of each record, shape (n, p)."""

    values: FloatArray

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.values)

    def scores(self, form: LongForm) -> FloatArray:
        """The scores of each record, shape (n, p)."""
        return self.values


@dataclass(frozen=True)
class ClusterErrors:
    """What leaving out clusters says of the estimates.

    Attributes
    ----------
    covariance : ndarray of shape (p, p)
        Of all coefficients about the truth.
    sampling : ndarray of shape (p, p)
        By chance alone, at the same smoothing parameters.
    degrees : ndarray of shape (p_terms,)
        For each term, of how many independent clusters its variance is the mean: less one, degrees of freedom of it.
    n_clusters : int
    """

    covariance: FloatArray
    sampling: FloatArray
    degrees: FloatArray
    n_clusters: int


def cluster_errors(fit: AdditiveFit, changes: FloatArray) -> ClusterErrors:
    """Covariance of all coefficients about the truth: from clusters, and what penalties take away.

    Parameters
    ----------
    fit : AdditiveFit
    changes : ndarray of shape (G, p)
        Of :func:`left_out`.

    Notes
    -----
    The covariance is ``K (Σ_g u_g u_g') K' + B``: ``u_g`` is by how much coefficients change without cluster g at the
    same smoothing parameters, K what choosing these again adds, and B the squared bias by penalties, as Bayes'
    posterior has it (Marra & Wood 2012).

    A sum of G squares that are alike has G degrees of freedom; where few clusters make most of it, as at the ends of
    a covariate or where errors are skewed, ``3 (Σ a_g²)² / Σ a_g⁴``, which is G for Gaussian ``a_g``.

    References
    ----------
    Hansen (2022), Jackknife standard errors for clustered regression; Cameron & Miller (2015), A practitioner's guide
    to cluster-robust inference, doi:10.3368/jhr.50.2.317; Bell & McCaffrey (2002), Bias reduction in standard errors
    for linear regression with multi-stage samples; Marra & Wood (2012), Coverage properties of confidence intervals
    for generalized additive model components, doi:10.1111/j.1467-9469.2011.00760.x.
    """
    sampling = changes.T @ changes
    changes = changes @ with_smoothing_chosen_again(fit).T
    bias = fit.bayesian_covariance - fit.sigma2 * fit.inverse @ fit.gram @ fit.inverse
    covariance = changes.T @ changes + bias
    degrees = [_degrees(fit.gram[at, at], changes[:, at], bias[at, at]) for at in fit.form.slices]
    return ClusterErrors(np.asarray((covariance + covariance.T) / 2), sampling, np.array(degrees), len(changes))


def _degrees(gram: FloatArray, changes: FloatArray, bias: FloatArray) -> float:
    """Degrees of freedom of a term's variance: their harmonic mean over directions, by the variance in them."""
    count = len(changes)
    values, vectors = np.linalg.eigh(gram)
    root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    own = root @ changes.T  # (p, G)
    squares = own**2
    square = squares.sum(axis=1)
    known = np.einsum("ij,jk,ik->i", root, bias, root)
    total = square + np.maximum(known, 0.0)
    heavy = total > 1e-12 * max(float(total.max(initial=0.0)), 1e-300)
    if not heavy.any():
        return float(count - 1)
    each = (squares[heavy] ** 2).sum(axis=1) / (3 * total[heavy] ** 2)
    clusters = total[heavy].sum() / max(float((each * total[heavy]).sum()), 1e-300)
    return float(np.clip(clusters - 1, 1.0, max(count - 1, 1)))


def left_out(
    form: LongForm, inverse: FloatArray, residuals: Residuals | Scores, clusters: IntArray | None = None
) -> FloatArray:
    """By how much coefficients change when a cluster is left out, at the same smoothing parameters, shape (G, p).

    Notes
    -----
    With ``s = D_g'W r_g`` and ``H = D_g'W D_g`` of a cluster, ``A⁻¹ (I - H A⁻¹)⁻¹ s``, exactly. Where there are more
    than :data:`LEVERAGES` numbers to go through, ``A⁻¹ s`` times ``sqrt(G / (G - 1))``.
    """
    own = residuals.precision if isinstance(residuals, Residuals) and residuals.size(form) <= LEVERAGES else None
    if isinstance(residuals, Residuals) and isinstance(own, LowRankPrecision):
        return left_out_on_functions(form, inverse, residuals.records, residuals.values, own, clusters)
    numbers = np.arange(residuals.n) if clusters is None else clusters
    count = int(numbers.max()) + 1
    scores = np.zeros((count, form.size))
    np.add.at(scores, numbers, residuals.scores(form))
    if isinstance(residuals, Residuals) and residuals.learned is not None and residuals.size(form) <= LEVERAGES:
        plain = replace(residuals, weights=None, precision=None)

        def of_values(values: FloatArray) -> FloatArray:
            return replace(plain, values=values.reshape(residuals.values.shape)).scores(form)

        scores -= residuals.learned.pulls(of_values, residuals.values.ravel(), numbers)
    if isinstance(residuals, Scores) or residuals.size(form) > LEVERAGES:
        return np.asarray(scores @ inverse * np.sqrt(count / max(count - 1, 1)))
    # In units in which coefficients vary alike, so that terms of any size are solved for together.
    sizes = np.sqrt(np.maximum(inverse.diagonal(), 0.0))
    units = 2.0 ** np.round(np.log2(np.where(sizes > 0, sizes, 1.0)))
    scores, inverse = scores * units, inverse / units / units[:, None]
    identity = (1 + ROUNDING) * np.eye(form.size)
    order = np.argsort(numbers, kind="stable")
    ends = np.concatenate(([0], np.cumsum(np.bincount(numbers, minlength=count))))
    step = max(AT_A_TIME // form.size**2, 1)
    for start in range(0, count, step):
        stop = min(start + step, count)
        grams = np.zeros((stop - start, form.size, form.size))
        for part, own in residuals.grams(form, order[ends[start] : ends[stop]]):
            np.add.at(grams, numbers[part] - start, own * units * units[:, None])
        scores[start:stop] = np.linalg.solve(identity - grams @ inverse, scores[start:stop][:, :, None])[..., 0]
    return np.asarray(scores @ inverse * units)


def with_smoothing_chosen_again(fit: AdditiveFit) -> FloatArray:
    """From a change of coefficients at the same smoothing parameters to one where REML chooses them again, (p, p).

    Along ``ρ_j = log λ_j`` the coefficients move by ``-A⁻¹ u_j``, ``u_j = λ_j S_j β``, and REML's gradient moves by
    ``u_j'dβ / φ`` with them: ``I + A⁻¹ U'(H + P)⁻¹ U / φ`` with REML's Hessian H. The identity where smoothing
    parameters were given or chosen otherwise.
    """
    pull, variance = _smoothing(fit)
    if fit.scale <= 0:  # a perfect fit: nothing moves
        return np.eye(fit.form.size)
    return np.asarray(np.eye(fit.form.size) + fit.inverse @ pull.T @ variance @ pull / fit.scale)


def corrected_edf(fit: AdditiveFit) -> float:
    """Effective degrees of freedom, with those that choosing smoothing parameters by REML adds to first order."""
    pull, variance = _smoothing(fit)
    moves = pull @ fit.inverse
    if fit.sigma2 <= 0:
        return fit.edf_total
    return fit.edf_total + float(np.einsum("jk,ja,ab,kb->", variance, moves, fit.gram, moves)) / fit.sigma2


def _smoothing(fit: AdditiveFit) -> tuple[FloatArray, FloatArray]:
    """``u_j`` of each smoothing parameter (M, p), and the variance of their logarithms (M, M); 0 where not chosen."""
    count = fit.form.n_penalties
    pull = fit.form.stacked_penalties * fit.smoothing_parameters[:, None] * fit.coefficients
    if fit.hessian is None or not count:
        return pull, np.zeros((count, count))
    values, vectors = np.linalg.eigh(fit.hessian)
    return pull, (vectors / (np.maximum(values, 0.0) + PRIOR_PRECISION)) @ vectors.T
