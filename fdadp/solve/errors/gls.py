"""Generalised least squares along curves: a covariance of the errors that is estimated from the curves, and the fit.

Errors of real curves are smooth. A covariance that is smooth plus white, estimated before any smoothing by least
squares at each point, weights observations by what they say together; one round is enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from fdadp._common.threads import one_blas_thread
from fdadp._common.typing import ArrayLike, FloatArray, IntArray
from fdadp.errors import InputError
from fdadp.functional.splines.bsplines import BSplines
from fdadp.functional.splines.diagonal_margins import SmoothMargin
from fdadp.solve.errors.curve_precisions import CurvePrecision, LearnedPrecision
from fdadp.solve.errors.leave_one_out_residuals import Residuals
from fdadp.solve.fit.additive_fit import AdditiveFit, fit_gaussian
from fdadp.solve.fit.observations import ChunkedObservations, Observations
from fdadp.solve.form.long_form_design import LongForm, LongSums, System, feature_slices
from fdadp.solve.form.response_families import Family
from fdadp.terms.records import Records, row_blocks
from fdadp.terms.spec import TermDesign, no_penalties

JUDGES = 300
"""Curves, at most, that say what errors along curves let think of minima of REML."""

POINTS = 51
"""Of the grid of these curves, at most."""


@dataclass(frozen=True)
class ErrorCovariance:
    """What a fit believed of the errors along curves.

    Attributes
    ----------
    precision : ndarray of shape (T, T) or CurvePrecision
        Inverse of their covariance times their mean variance: of all curves on a grid, or of each at its points.
    log_det : float
        Logarithm of the determinants of the precisions of all curves.
    n_smooth : int
        Components of their smooth part; with none, errors are white.
    learned : LearnedPrecision or None
        What the precision was learned from; None where errors are white.
    """

    precision: FloatArray | CurvePrecision
    log_det: float
    n_smooth: int
    learned: LearnedPrecision | None = None

    def log_likelihood(self, fit: AdditiveFit) -> float:
        """Gaussian log-likelihood of a fit by these precisions."""
        weighted = max(fit.sigma2 * (fit.n_rows - fit.edf_total), 1e-300)
        return self.log_det / 2 - fit.n_rows / 2 * (1 + float(np.log(2 * np.pi * weighted / fit.n_rows)))


def fit_along_curves(
    form: LongForm,
    observed: Observations,
    smoothing: str | ArrayLike,
    n_unpenalized: int | None = None,
    errors: SmoothErrors | None = None,
) -> tuple[AdditiveFit, ErrorCovariance]:
    """Generalised least squares of Gaussian responses; arguments as of `fit_terms`, and the errors where known.

    The scale of the precision makes the residual variance of the fit that of an observation of weight 1, on average;
    its residual sum of squares is the plain (weighted) one.

    Raises
    ------
    InputError
        Too few curves or points.
    """
    with one_blas_thread():
        level = observed.level if form.has_intercept else 0.0  # sums of squares about zero lose digits
        below = observed.below(level)
        system, working = _system(form, below) if errors is None else _at_points(form, below, errors)
        fit = fit_gaussian(form, system, smoothing, observed.n, n_unpenalized)
        weights, ones = observed.used, (observed.used > 0).astype(np.float64)
        left = np.where(ones > 0, below.y - below.predictor(form, fit.coefficients), 0.0)
        means = Residuals(observed.records, ones, None, observed.points).scores(form).sum(axis=0) / fit.n_rows
    fit.coefficients[0] += level
    return replace(fit, rss=float((weights * left**2).sum()), column_means=means), working


def judging_system(
    form: LongForm, observed: Observations | ChunkedObservations, family: Family, smoothing: str | ArrayLike
) -> System | None:
    """Normal equations by the same covariance, for least squares that chooses between several minima of REML.

    Of :data:`JUDGES` curves at :data:`POINTS` points of a grid, where there are more: a smoothing parameter is a ratio
    of variances, and means the same in a part of the data. None where nothing is to be chosen, where errors do not
    depend along curves, and where curves or points are too few to tell.
    """
    chosen = isinstance(smoothing, str) and smoothing == "reml" and form.n_penalties
    if family.name != "gaussian" or not chosen or form.t.size < 2:
        return None
    rows = np.unique(np.linspace(0, observed.n - 1, min(observed.n, JUDGES)).astype(np.int64))
    return observed.of_some(rows, partial(_judged, form))


def _judged(form: LongForm, few: Observations) -> System | None:
    """Of few curves, at few points."""
    if few.points is None and form.t.size > POINTS:
        at = np.unique(np.linspace(0, form.t.size - 1, POINTS).astype(np.int64))
        form, few = LongForm(form.designs, form.t[at]), few.at(at)
    with one_blas_thread():
        try:
            system, working = _system(form, few.below(few.level if form.has_intercept else 0.0))
        except InputError:
            return None
    return system if working.n_smooth else None


def _system(form: LongForm, observed: Observations) -> tuple[System, ErrorCovariance]:
    return (_on_grid if observed.whole else _at_points)(form, observed)


def _on_grid(form: LongForm, observed: Observations) -> tuple[System, ErrorCovariance]:
    """Of whole curves: one matrix for all."""
    observed = observed.without_offset()
    features = form.features(observed.records) if observed.features is None else observed.features
    working = working_covariance(form, features, observed.y)
    system = precision_system(form, observed, working.precision)
    return system, ErrorCovariance(working.precision, observed.n * working.log_det, working.n_smooth, working.learned)


def _at_points(
    form: LongForm, observed: Observations, errors: SmoothErrors | None = None
) -> tuple[System, ErrorCovariance]:
    """Of curves with gaps, weights, or points of their own: a covariance function."""
    found = smooth_errors(form, observed) if errors is None else errors
    precision = found.precision(observed, form.t)
    system, learned = curves_system(form, observed, precision), found.learned(observed, form.t, precision)
    return system, ErrorCovariance(precision, precision.log_det, precision.sizes.size, learned)


def curves_system(form: LongForm, observed: Observations, precision: CurvePrecision) -> System:
    """Normal equations: those of weighted least squares, less what smooth components of the errors say.

    With ``U_i = D_i' W_i^½ Φ_i`` of each curve, ``(v/σ²) (Σ D_i' W_i D_i - Σ U_i M_i U_i')``.
    """
    plain = observed.system(form)
    gram, cross, total = plain.gram, plain.cross, plain.total
    y = np.where(observed.used > 0, observed.y - observed.added(), 0.0)
    moments = precision.moments(y.ravel())  # (n, K)
    root = np.linalg.cholesky(precision.inner)
    for rows in observed.records.blocks():
        part = observed.part(rows)
        here = precision.weighted[observed.entries(rows)]
        own = [Residuals(part.records, load.reshape(part.y.shape), None, part.points).scores(form) for load in here.T]
        if not own:
            break
        turned = np.einsum("knp,nkl->nlp", own, root[rows]).reshape(-1, form.size)
        pulled = np.einsum("nk,nkl->nl", moments[rows], root[rows]).ravel()
        gram, cross, total = gram - turned.T @ turned, cross - turned.T @ pulled, total - float(pulled @ pulled)
    return System(precision.factor * gram, precision.factor * cross, precision.factor * total, plain.n_rows)


# The working covariance, of whole curves on a grid.


SMOOTH = 7
"""Cubic B-splines of the smooth part; 10 say the same."""

SHARE = 0.25
"""Of the number of curves: features that residuals are taken from; more features than that leave too few residuals."""

EDGE = 1.05
"""Above the largest eigenvalue that white noise alone has, a component is smooth error."""

LEAST = 0.05
"""Of 1 less the leverage of a curve, whose residual says nothing where the means follow it."""


@dataclass(frozen=True)
class WorkingCovariance:
    """Covariance of the errors of a curve, up to a scale.

    Attributes
    ----------
    precision : ndarray of shape (T, T)
        Its inverse, times the mean variance over t.
    variance : float
        That mean variance.
    n_smooth : int
        Components of its smooth part; with none, errors are white and the precision is the identity.
    learned : LearnedPrecision or None
        What it was learned from; None where errors are white.
    """

    precision: FloatArray
    variance: float
    n_smooth: int
    learned: LearnedPrecision | None = None

    @property
    def log_det(self) -> float:
        """Logarithm of the determinant of the precision."""
        return float(np.linalg.slogdet(self.precision)[1])


def working_covariance(form: LongForm, features: Sequence[FloatArray], y: FloatArray) -> WorkingCovariance:
    """Estimate it from the features of the terms and responses (n, T).

    Residuals are those of least squares at each t, on the leading principal directions of the features (at most n/4 of
    them; every term counts alike, whatever its units), with exact degrees of freedom. Of their covariance the part in
    :data:`SMOOTH` B-splines is smooth; the rest is white. Components whose eigenvalue white noise explains are dropped,
    and the others' shrunk by what noise adds.

    Raises
    ------
    InputError
        Fewer than 10 points, or 8 curves.

    References
    ----------
    Baik & Silverstein (2006), Eigenvalues of large sample covariance matrices of spiked population models,
    doi:10.1016/j.jmva.2005.08.003; Reiss, Huang & Mennes (2010), Fast function-on-scalar regression with penalized
    basis expansions, doi:10.2202/1557-4679.1246, on generalised least squares of curves.
    """
    n, size = y.shape
    if size <= SMOOTH + 2 or n < 8:
        raise InputError(f"errors along curves need {SMOOTH + 3} points of t and 8 curves or more, got {size} and {n}")
    residuals, left, leverage = _residuals_on_grid(features, y)
    covariance = residuals.T @ residuals / left
    splines = BSplines.uniform(float(form.t[0]), float(form.t[-1]), SMOOTH).design(form.t)
    smooth = np.linalg.qr(splines)[0]
    inner = smooth.T @ covariance @ smooth
    total = float(np.trace(covariance))
    white = max((total - float(np.trace(inner))) / (size - SMOOTH), 1e-6 * total / size)
    if not white > 0:
        return WorkingCovariance(np.eye(size), 0.0, 0)
    values, vectors = np.linalg.eigh(inner)
    values, vectors, ratio = values[::-1], vectors[:, ::-1], SMOOTH / left
    count = int((values > white * (1 + np.sqrt(ratio)) ** 2 * EDGE).sum())
    # An eigenvalue d of the covariance shows as d (1 + ratio white / (d - white)).
    middle = values[:count] + white - ratio * white
    sizes = (middle + np.sqrt(np.maximum(middle**2 - 4 * values[:count] * white, 0.0))) / 2
    loadings = smooth @ vectors[:, :count]
    sizes = np.maximum(sizes - white, 1e-6 * white)
    inverse = (np.eye(size) - (loadings * (sizes / (sizes + white))) @ loadings.T) / white
    variance = white + float(sizes.sum()) / size
    learned = None
    if count:
        record, weights = np.repeat(np.arange(n), size), np.ones(n * size)
        own = CurvePrecision(record, np.tile(loadings, (n, 1)), weights, sizes, white, variance, n)
        alone = residuals / np.sqrt(np.maximum(1 - leverage, LEAST))
        learned = LearnedPrecision(own, np.tile(smooth, (n, 1)), vectors[:, :count], alone.ravel(), left)
    return WorkingCovariance(variance * (inverse + inverse.T) / 2, variance, count, learned)


def _residuals_on_grid(features: Sequence[FloatArray], y: FloatArray) -> tuple[FloatArray, int, FloatArray]:
    """Residuals at each t (n, T), their degrees of freedom, and leverages of curves (n, T) or (n, 1)."""
    n = len(y)
    same = np.hstack([f / size_of(f) for f in features if f.ndim == 2] or [np.zeros((n, 0))])
    own = [f / size_of(f) for f in features if f.ndim == 3]
    varying = np.concatenate(own, axis=2) if own else np.zeros((n, y.shape[1], 0))
    most = max(int(SHARE * n) - varying.shape[2], 1)
    directions = _spanning(same, most)
    left = n - 1 - directions.shape[1]
    residuals = y - y.mean(axis=0)
    residuals = residuals - directions @ (directions.T @ residuals)
    leverage = 1 / n + (directions**2).sum(axis=1)[:, None]
    if not varying.shape[2]:
        return residuals, left, leverage
    extra, leverage = 0, np.repeat(leverage, y.shape[1], axis=1)
    for j in range(y.shape[1]):
        z = varying[:, j] - varying[:, j].mean(axis=0)
        size = float(np.linalg.norm(z))
        z = _spanning(z - directions @ (directions.T @ z), max(int(SHARE * n), 1), size)
        residuals[:, j] -= z @ (z.T @ residuals[:, j])
        leverage[:, j] += (z**2).sum(axis=1)
        extra = max(extra, z.shape[1])
    return residuals, max(left - extra, 1), leverage


TIE = 0.01
"""By how much features that are alike are told apart where not all of them are taken."""


def size_of(features: FloatArray) -> float:
    """Root of the variance of a term's features together; 1 where they are constant."""
    size = float(np.sqrt(features.var(axis=0).sum()))
    return size if 0 < size < np.inf else 1.0


def _spanning(features: FloatArray, most: int, size: float = 0.0) -> FloatArray:
    """Orthonormal columns (n, r) that span the centred features, or most of them; `size` was theirs before others."""
    centred = features - features.mean(axis=0)
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    count = int((sizes > 1e-8 * max(float(sizes.max(initial=0.0)), size, 1e-300)).sum())
    if count > most:  # levels of equally many rows are alike: which of them are left out follows from their order
        uneven = np.linspace(1 + TIE, 1, centred.shape[1])
        left = np.linalg.svd(centred * uneven, full_matrices=False)[0]
    return left[:, : min(count, most)]


def precision_system(form: LongForm, observed: Observations, precision: FloatArray) -> System:
    """Normal equations with a precision along curves, of whole curves on the grid.

    From the same sums as without it where features do not vary with t; else a block's rows are built.
    """
    if form.separable:
        y = observed.y - observed.added()
        total = float(((y @ precision) * y).sum())
        return LongSums.over(form, observed.of_terms(form)).system(form, precision, total)
    out = System(np.zeros((form.size, form.size)), np.zeros(form.size), 0.0, 0)
    for part in row_blocks(observed.n):
        records, y = observed.records[part], observed.y[part]
        weighted = y @ precision
        gram = np.zeros_like(out.gram)
        for few in form.blocks(records):
            rows = form.rows(few)
            left = np.matmul(precision, rows)
            gram += left.reshape(-1, form.size).T @ rows.reshape(-1, form.size)
        cross = form.scores(records, weighted).sum(axis=0)
        total = float((weighted * y).sum())
        out = System(out.gram + gram, out.cross + cross, out.total + total, out.n_rows + y.size)
    return out


# The leading principal directions of the features of many terms: few features that say most of what all do.


@dataclass(frozen=True, kw_only=True)
class Directions(TermDesign):
    """1, and the leading principal directions of the features of terms that are the same at all t.

    Attributes
    ----------
    designs : tuple of TermDesign
    centre : ndarray of shape (p,)
        Means of their features.
    turn : ndarray of shape (p, q)
        From features about their means to directions of variance 1.
    """

    designs: tuple[TermDesign, ...]
    centre: FloatArray
    turn: FloatArray

    @classmethod
    def of(
        cls,
        designs: Sequence[TermDesign],
        records: Records,
        most: int,
        along: SmoothMargin,
        *,
        shrunk: bool = False,
    ) -> Directions:
        """Directions of training rows.

        Parameters
        ----------
        designs : sequence of TermDesign
        records : Records
        most : int
            Number of directions, at most.
        along : SmoothMargin
            Functions along the response.
        shrunk : bool
            With a penalty on each direction, as much heavier as its variance is smaller.
        """
        features = _side_by_side(designs, records)
        centre = features.mean(axis=0)
        own = (features[:, place] for place in feature_slices(designs))
        alone = [np.full(each.shape[1], size_of(each)) for each in own]
        units = np.concatenate([np.zeros(0), *alone])  # every term counts alike
        _, sizes, directions = np.linalg.svd((features - centre) / units, full_matrices=False)
        count = min(int((sizes > 1e-8 * max(float(sizes.max(initial=0.0)), 1e-300)).sum()), most)
        penalties = no_penalties(1 + count)
        if shrunk and count:
            penalties = np.concatenate(([0.0], (sizes[0] / sizes[:count]) ** 2))[None]
        return cls(
            name="directions",
            columns=(),
            along=along,
            own_penalties=penalties,
            designs=tuple(designs),
            centre=centre,
            turn=directions[:count].T / sizes[:count] * np.sqrt(records.n) / units[:, None],
        )

    def features(self, records: Records, t: FloatArray | None = None) -> FloatArray:
        """Shape (n, q)."""
        turned = (_side_by_side(self.designs, records) - self.centre) @ self.turn
        return np.hstack((np.ones((records.n, 1)), turned))


def _side_by_side(designs: Sequence[TermDesign], records: Records) -> FloatArray:
    return np.hstack([design.features(records) for design in designs] or [np.zeros((records.n, 0))])


# The same of curves with gaps, weights or points of their own: smooth plus white, before any smoothing, one round.


ALONG = 12
"""Cubic B-splines along the response of the means that residuals are taken from."""


MOST_DIRECTIONS = 60
"""Directions of the features, at most."""


STEPS = 60
"""Of the EM algorithm."""

CURVES = 2000
"""Of which the covariance is estimated, at most."""

LEAST_WHITE = 1e-3
"""Of the variance of an observation."""


@dataclass(frozen=True)
class PairMoments:
    """What a covariance was estimated from.

    Attributes
    ----------
    turn : ndarray of shape (7, 7)
        Coefficients of functions of mean square 1, among which components were looked for.
    residuals : ndarray of shape (N,)
        About rough means, over the root of the share that these leave; 0 where nothing was observed.
    left : float
        Number of curves times that share.
    """

    turn: FloatArray
    residuals: FloatArray
    left: float


@dataclass(frozen=True)
class SmoothErrors:
    """Covariance ``Φ(t) Λ Φ(u)' + σ² 1[t = u]`` of the errors of a curve.

    Attributes
    ----------
    splines : BSplines
    loadings : ndarray of shape (7, K)
        Coefficients of the components Φ; K may be 0.
    sizes : ndarray of shape (K,)
        Λ.
    white : float
        σ².
    variance : float
        Mean over the observations.
    source : Source or None
        What it was estimated from.
    """

    splines: BSplines
    loadings: FloatArray
    sizes: FloatArray
    white: float
    variance: float
    source: PairMoments | None = None

    def precision(self, observed: Observations, t: FloatArray) -> CurvePrecision:
        """Its inverse at the observations of each record; `t` is the grid, where they are on one."""
        record, at = _places_of(observed, t)
        weights = observed.used.ravel()
        loadings = np.where(weights[:, None] > 0, self.splines.design(at) @ self.loadings, 0.0)
        return CurvePrecision(record, loadings, weights, self.sizes, self.white, self.variance, observed.n)

    def learned(self, observed: Observations, t: FloatArray, precision: CurvePrecision) -> LearnedPrecision | None:
        """What it was learned from; None where errors are white."""
        own = self.source
        if own is None or not self.sizes.size:
            return None
        seen = observed.used.ravel()[:, None] > 0
        functions = np.where(seen, self.splines.design(_places_of(observed, t)[1]) @ own.turn, 0.0)
        inside = np.asarray(np.linalg.solve(own.turn, self.loadings), dtype=np.float64)
        return LearnedPrecision(precision, functions, inside, own.residuals, own.left)


def smooth_errors(form: LongForm, observed: Observations) -> SmoothErrors:
    """Estimate it.

    Residuals are those of least squares on the leading directions of the features times :data:`ALONG` splines in t; a
    weight says that the variance of an observation is its share. The likeliest covariance of :data:`SMOOTH` splines
    plus white noise is found; components whose size white noise explains are dropped, and that of the others is found
    again.

    Raises
    ------
    InputError
        Fewer than 8 curves with two observations or more, or 10 different points.

    References
    ----------
    James, Hastie & Sugar (2000), Principal component models for sparse functional data, doi:10.1093/biomet/87.3.587,
    on the likelihood; Baik & Silverstein (2006), doi:10.1016/j.jmva.2005.08.003, on the edge.
    """
    weights = observed.used.ravel()
    seen = weights > 0
    record, at = _places_of(observed, form.t)
    record, at = record[seen], at[seen]
    counts = np.bincount(record, minlength=observed.n)
    several, points = int((counts > 1).sum()), np.unique(at).size
    if several < 8 or points < SMOOTH + 3:
        raise InputError(
            f"errors along curves need {SMOOTH + 3} points of t and 8 curves or more with two observations, got "
            f"{points} and {several}"
        )
    low, high = float(form.t.min()), float(form.t.max())
    residuals, share = _residuals_at_points(form, observed, int(seen.sum()), SmoothMargin.pspline((low, high), ALONG))
    residuals = residuals.ravel() * np.sqrt(weights / share)
    e = residuals[seen]
    splines, whole = _orthonormal(low, high)
    turn = whole
    b = splines.design(at) @ turn
    theta, white = _likeliest(record, b, e, counts)
    values, vectors = np.linalg.eigh(theta)
    # What white noise alone has: the law of eigenvalues of whole curves, with their mean number of points.
    own, ratio = white / float(counts[counts > 1].mean()), SMOOTH / max(share * several, 1.0)
    turn = turn @ vectors[:, values + own > own * (1 + np.sqrt(ratio)) ** 2 * EDGE]
    b = splines.design(at) @ turn
    theta, white = _likeliest(record, b, e, counts)  # of the components that are left
    sizes, vectors = np.linalg.eigh(theta)
    smooth = float(((b @ vectors) ** 2 @ sizes).mean())
    source = PairMoments(whole, residuals, share * several)
    return SmoothErrors(splines, turn @ vectors, sizes, white, white + smooth, source)


def _likeliest(record: IntArray, b: FloatArray, e: FloatArray, counts: IntArray) -> tuple[FloatArray, float]:
    """Θ and σ² of Gaussian residuals with covariances ``b Θ b' + σ² I``, by the EM algorithm from what a curve sums to.

    Of many curves, :data:`CURVES` evenly spaced ones.
    """
    chosen = np.flatnonzero(counts)
    chosen = chosen[np.unique(np.linspace(0, chosen.size - 1, min(chosen.size, CURVES)).astype(int))]
    place = np.full(counts.size, -1)
    place[chosen] = np.arange(chosen.size)
    kept = place[record] >= 0
    own, b, e = place[record[kept]], b[kept], e[kept]
    first = np.flatnonzero(np.r_[True, own[1:] != own[:-1]])
    squares = np.add.reduceat(b[:, :, None] * b[:, None, :], first, axis=0)
    sums = np.add.reduceat(b * e[:, None], first, axis=0)
    total = float(e @ e)
    least = max(LEAST_WHITE * total / e.size, 1e-100)
    white = max(total / e.size, least)
    theta = white / 2 * np.eye(b.shape[1]) / max(b.shape[1], 1)
    for _ in range(STEPS if b.shape[1] else 0):
        spread = np.linalg.inv(np.linalg.inv(theta) + squares / white)
        mean = np.einsum("nab,nb->na", spread, sums) / white
        second = spread + mean[:, :, None] * mean[:, None, :]
        left = total - 2 * float((mean * sums).sum()) + float((squares * second).sum())
        theta, white = second.mean(axis=0) + least * 1e-6 * np.eye(b.shape[1]), max(left / e.size, least)
    return (theta + theta.T) / 2, white


def _places_of(observed: Observations, t: FloatArray) -> tuple[IntArray, FloatArray]:
    """Record and point of each entry of the responses."""
    if observed.points is not None:
        return observed.points.record, observed.points.t
    return np.repeat(np.arange(observed.n), t.size), np.tile(t, observed.n)


def _orthonormal(low: float, high: float) -> tuple[BSplines, FloatArray]:
    """Splines, and coefficients of functions of them whose squares have mean 1 over the domain."""
    splines = BSplines.uniform(low, high, SMOOTH)
    points = np.linspace(low, high, 20 * SMOOTH)
    return splines, np.linalg.inv(np.linalg.qr(splines.design(points))[1]) * np.sqrt(points.size)


def _residuals_at_points(
    form: LongForm, observed: Observations, count: int, along: SmoothMargin
) -> tuple[FloatArray, float]:
    """Residuals in the shape of the responses, and the share of a curve's variance that they keep."""
    same = [design for design in form.designs if design.separable]
    own = [replace(design, along=along) for design in form.designs if not design.separable]
    n_own = sum(design.n_features for design in own)
    most = min(SHARE * observed.n, SHARE * count / along.size - 1, MOST_DIRECTIONS)
    directions = Directions.of(same, observed.records, max(int(most) - n_own, 1), along)
    rough, observed = LongForm((directions, *own), form.t), replace(observed, features=None)
    system = observed.system(rough)
    size = np.sqrt(np.maximum(system.gram.diagonal(), 1e-300))
    values, vectors = np.linalg.eigh(system.gram / np.outer(size, size))
    keep = values > 1e-8 * values[-1]
    found = vectors[:, keep] @ ((vectors[:, keep].T @ (system.cross / size)) / values[keep]) / size
    used = directions.n_features + n_own
    share = 1 - max(used / observed.n, used * along.size / count)
    return np.where(observed.used > 0, observed.y - observed.predictor(rough, found), 0.0), max(share, 0.1)
