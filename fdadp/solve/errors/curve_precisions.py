"""Precisions along a response curve: of few functions, of a smooth part plus white noise, learned from the curves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fdadp._common.typing import FloatArray, IntArray
from fdadp.solve.form.long_form_design import LongForm, times_functions
from fdadp.terms.records import Records

AT_A_TIME = 2**22
"""Numbers that are held at once."""

ROUNDING = 1e-8
"""What a cluster alone determines, it determines without residual: 1 less its leverage is not below this."""


@dataclass(frozen=True)
class LowRankPrecision:
    """The precision ``R R'`` on the grid of the response.

    Attributes
    ----------
    root : ndarray of shape (T, r)
        R.
    """

    root: FloatArray

    @property
    def rank(self) -> int:
        """Number r of functions."""
        return int(self.root.shape[1])

    def of_values(self, values: FloatArray) -> FloatArray:
        """The precision times values on the grid, shape (n, T)."""
        return np.asarray(values @ self.root @ self.root.T)

    def of_rows(self, rows: FloatArray) -> FloatArray:
        """The precision times rows of the long form, shape (n, T, p)."""
        return np.asarray(self.root @ (self.root.T @ rows))

    def loads(self, form: LongForm, records: Records) -> FloatArray:
        """``R' D_i`` of the long-form rows of each record, whose features are the same at all t, shape (n, r, p)."""
        return times_functions(form, form.features(records), [self.root.T @ along for along in form.along])


def left_out_of_few(
    loads: Callable[[IntArray], tuple[FloatArray, FloatArray]],
    inverse: FloatArray,
    rank: int,
    clusters: IntArray,
    pulls: FloatArray | None = None,
) -> FloatArray:
    """By how much coefficients change when a cluster is left out, where a curve shows few functions, shape (G, p).

    Parameters
    ----------
    loads : callable
        Of the numbers of some records (k,) what they know of coefficients, U of shape (k, r, p), and what the fit left
        of that, e of shape (k, r): their products of the long form are ``U'U`` and their scores ``U'e``.
    inverse : ndarray of shape (p, p)
    rank : int
        r.
    clusters : ndarray of shape (n,)
        Numbers of clusters, from 0.
    pulls : ndarray of shape (G, p), optional
        By how much scores of all others change as well.

    Notes
    -----
    ``A⁻¹ U' (I - U A⁻¹ U')⁻¹ e``, U and e those of all records of a cluster: matrices of the size of what is seen of a
    cluster, not of the coefficients. Pulls v add ``-(I + A⁻¹U'(I - UA⁻¹U')⁻¹U) A⁻¹ v``.
    """
    out = np.zeros((int(clusters.max()) + 1, len(inverse)))
    drawn = out if pulls is None else pulls @ inverse
    order = np.argsort(clusters, kind="stable")
    each = np.split(order, np.flatnonzero(np.diff(clusters[order])) + 1)
    if len(each) < len(order):
        for own in each:
            u, e = loads(own)
            u, place = u.reshape(-1, len(inverse)), clusters[own[0]]
            out[place] = _one_cluster(u, inverse, e.ravel() - u @ drawn[place])
        return out if pulls is None else out - drawn
    step = max(AT_A_TIME // (rank * len(inverse)), 1)
    unit = (1 + ROUNDING) * np.eye(rank)
    for start in range(0, len(order), step):
        part = order[start : start + step]
        u, e = loads(part)
        moved = (u.reshape(-1, len(inverse)) @ inverse).reshape(u.shape)
        place = clusters[part]
        e = e if pulls is None else e - np.einsum("nrp,np->nr", u, drawn[place])
        left = np.linalg.solve(unit - moved @ u.swapaxes(1, 2), e[:, :, None])
        out[place] = np.einsum("nrp,nr->np", moved, left[:, :, 0])
    return out if pulls is None else out - drawn


def _one_cluster(loads: FloatArray, inverse: FloatArray, seen: FloatArray) -> FloatArray:
    moved = loads @ inverse
    if len(loads) <= len(inverse):
        unit = (1 + ROUNDING) * np.eye(len(loads))
        return np.asarray(np.linalg.solve(unit - moved @ loads.T, seen) @ moved)
    unit = (1 + ROUNDING) * np.eye(len(inverse))
    return np.asarray(np.linalg.solve(unit - loads.T @ moved, loads.T @ seen) @ inverse)


# Inverse of a covariance that is smooth plus white, of curves that need not be observed at the same points.


@dataclass(frozen=True)
class CurvePrecision:
    """For each curve ``W = v D^½ (ΦΛΦ' + σ² I)⁻¹ D^½`` at its points, D its weights, v the mean variance.

    By Woodbury's identity that is ``(v / σ²) (D - D^½ Φ M Φ' D^½)`` with ``M = (σ² Λ⁻¹ + Φ'Φ)⁻¹``, K x K for K smooth
    components: no matrix of a curve's points is ever built.

    Attributes
    ----------
    record : ndarray of shape (N,)
        Of each observation; does not decrease. Curves on a grid have all its points, of weight 0 where not observed.
    loadings : ndarray of shape (N, K)
        Smooth components Φ; 0 where the weight is 0.
    weights : ndarray of shape (N,)
    sizes : ndarray of shape (K,)
        Variances Λ of the components.
    white : float
        Variance σ² of an observation of weight 1 about its curve's smooth part.
    variance : float
        v.
    n : int
        Number of records.
    """

    record: IntArray
    loadings: FloatArray
    weights: FloatArray
    sizes: FloatArray
    white: float
    variance: float
    n: int

    @property
    def factor(self) -> float:
        """``v / σ²``."""
        return self.variance / self.white

    @cached_property
    def weighted(self) -> FloatArray:
        """``D^½ Φ``, shape (N, K)."""
        return self.loadings * np.sqrt(self.weights)[:, None]

    @cached_property
    def inner(self) -> FloatArray:
        """M of each record, shape (n, K, K)."""
        squares = self.summed(self.loadings[:, :, None] * self.loadings[:, None, :])
        return np.asarray(np.linalg.inv(squares + np.diag(self.white / self.sizes)))

    @cached_property
    def log_det(self) -> float:
        """Logarithm of the determinants of all W, over what was observed."""
        seen = self.weights > 0
        squares = self.summed(self.loadings[:, :, None] * self.loadings[:, None, :])
        inside = np.eye(len(self.sizes)) + squares * (self.sizes / self.white)
        of_smooth = np.linalg.slogdet(inside)[1].sum() if len(self.sizes) else 0.0
        return float(seen.sum() * np.log(self.factor) + np.log(self.weights[seen]).sum() - of_smooth)

    def times(self, values: FloatArray, which: IntArray | None = None) -> FloatArray:
        """W times columns of values at the observations, shape (N, c).

        Parameters
        ----------
        values : ndarray of shape (N, c)
        which : ndarray of int, optional
            Numbers of the observations, where they are not all: all those of some records, in order.
        """
        every = slice(None) if which is None else which
        root, weights, record = self.weighted[every], self.weights[every], self.record[every]
        out = values * weights[:, None]
        if len(self.sizes) and len(record):
            first = np.flatnonzero(np.r_[True, record[1:] != record[:-1]])
            inside = np.add.reduceat(root[:, :, None] * values[:, None, :], first, axis=0)
            pulled = np.repeat(self.inner[record[first]] @ inside, np.diff(np.r_[first, len(record)]), axis=0)
            out -= (root[:, None, :] @ pulled)[:, 0]
        return np.asarray(self.factor * out)

    def moments(self, y: FloatArray) -> FloatArray:
        """``Φ' D^½ y`` of each record, shape (n, K)."""
        return self.summed(self.weighted * y[:, None])

    def summed(self, values: FloatArray) -> FloatArray:
        """Sums over the observations of each record, shape (n, ...), of values (N, ...)."""
        out = np.zeros((self.n, *values.shape[1:]))
        first = np.flatnonzero(np.r_[True, self.record[1:] != self.record[:-1]])
        out[self.record[first]] = np.add.reduceat(values, first, axis=0)
        return out


# A precision along curves that was learned from the curves: what it would be without some, and what that changes.
#
# Weights that are learned from errors fit these errors: estimates vary by more than with known weights, and residuals
# look smaller than they are. To first order one pass over the curves tells by how much.


@dataclass(frozen=True)
class LearnedPrecision:
    """A precision, and what it was learned from.

    Attributes
    ----------
    precision : CurvePrecision
        Of K smooth components, at N observations.
    functions : ndarray of shape (N, q)
        Functions B in whose span the smooth part was looked for; 0 where nothing was observed.
    inside : ndarray of shape (q, K)
        Orthonormal coefficients of the components.
    residuals : ndarray of shape (N,)
        e, of variance ``(B Θ B' + σ² I)`` for each curve; 0 where nothing was observed.
    left : float
        Curves that say something, less those that the means of the residuals used up.
    """

    precision: CurvePrecision
    functions: FloatArray
    inside: FloatArray
    residuals: FloatArray
    left: float

    def changes(self) -> FloatArray:
        """By how much ``Θ / σ²`` changes as each curve is left out, to first order, shape (n, q, q).

        A step of Fisher's scoring: with ``s_i = B'V_i⁻¹e_i``, ``C_i = B'V_i⁻¹B`` and C their mean, Θ moves by
        ``-C⁻¹(s_i s_i' - C_i)C⁻¹`` over the number of the others, and σ² by ``-(e_i'V_i⁻²e_i - tr V_i⁻¹)`` over
        ``Σ tr V_j⁻²``. Their number of components stays: a component turns out of its place, none is born.
        """
        own, white = self._plain, self.precision.white
        solved, left = own.times(self.functions), own.times(self.residuals[:, None])[:, 0]
        scores = own.summed(solved * self.residuals[:, None]) / white
        each = own.summed(self.functions[:, :, None] * solved[:, None, :]) / white
        seen = own.summed(own.weights) > 0
        inverse = np.linalg.pinv(each[seen].mean(axis=0), hermitian=True)
        moved = -inverse @ (scores[:, :, None] * scores[:, None, :] - each) @ inverse / max(self.left - 1, 1.0)
        outside = np.eye(len(self.inside)) - self.inside @ self.inside.T
        moved = moved - outside @ moved @ outside

        squares = own.summed(own.loadings[:, :, None] * own.loadings[:, None, :])
        kept = np.einsum("nab,nbc->nac", own.inner, squares)
        first, points = np.trace(kept, axis1=1, axis2=2), own.summed(own.weights)
        second = points - 2 * first + np.einsum("nab,nba->n", kept, kept)
        of_white = -(own.summed(left**2) / white - (points - first)) / second.sum()  # over σ²
        ratio = (self.inside * (self.precision.sizes / white)) @ self.inside.T
        changes = moved / white - of_white[:, None, None] * ratio
        return np.asarray(np.where(seen[:, None, None], changes, 0.0))

    def pulls(self, scores: Callable[[FloatArray], FloatArray], values: FloatArray, clusters: IntArray) -> FloatArray:
        """By how much the scores of all others change as the precision is learned without a cluster, shape (G, p).

        ``Σ_j D_j' (W_g - W) r_j`` over the curves j outside of cluster g, where σ² is the unit of W: with another one
        smoothing parameters would be others, and estimates the same.

        Parameters
        ----------
        scores : callable
            ``D_j' v_j`` of each curve, shape (n, p), from values v at the observations, shape (N,).
        values : ndarray of shape (N,)
            Residuals r of the fit.
        clusters : ndarray of shape (n,)
            Numbers of clusters, from 0.

        References
        ----------
        Kackar & Harville (1984), Approximations for standard errors of estimators of fixed and random effects in mixed
        linear models, doi:10.1080/01621459.1984.10477102, on what learned weights add; Hansen (2022), Jackknife
        standard errors for clustered regression, on leaving out.
        """
        solved = self._plain.times(self.functions) * np.sqrt(self.precision.weights)[:, None]
        loads = np.stack([scores(column) for column in solved.T], axis=1)  # (n, q, p)
        seen = self.precision.summed(solved * values[:, None])
        count, size = int(clusters.max()) + 1, solved.shape[1]
        changes = np.zeros((count, size, size))
        np.add.at(changes, clusters, self.changes())
        out = -np.einsum("gab,abp->gp", changes, np.einsum("nap,nb->abp", loads, seen, optimize=True), optimize=True)
        turned = np.einsum("nab,nb->na", changes[clusters], seen)
        np.add.at(out, clusters, np.einsum("na,nap->np", turned, loads))
        return np.asarray(self.precision.factor * out)

    @property
    def _plain(self) -> CurvePrecision:
        """``σ² V⁻¹`` of residuals that have their weights in them already."""
        seen = (self.precision.weights > 0).astype(np.float64)
        return replace(self.precision, weights=seen, variance=self.precision.white)
