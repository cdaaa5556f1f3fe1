"""Covariance of the errors along curves with gaps, weights or points of their own, from pairs of observed points.

What :func:`fdadp.solve.covariance.working_covariance.working_covariance` is for whole curves on a grid: smooth plus
white, before any smoothing, one round.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import InputError
from fdadp.functional.splines.bsplines import BSplines
from fdadp.functional.splines.margins import SmoothMargin
from fdadp.solve.covariance.directions import Directions
from fdadp.solve.covariance.loo_precision import LearnedPrecision
from fdadp.solve.fit.observations import Observations
from fdadp.solve.form.long_form import LongForm
from fdadp.solve.linear.curve_precision import CurvePrecision

SMOOTH = 7
"""Cubic B-splines of the smooth part."""

ALONG = 12
"""Cubic B-splines along the response of the means that residuals are taken from."""

SHARE = 0.25
"""Of the curves, and of the observations: what those means may use up."""

MOST = 60
"""Directions of the features, at most."""

EDGE = 1.05
"""Above the largest eigenvalue that white noise alone has, a component is smooth error."""

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
        record, at = _places(observed, t)
        weights = observed.used.ravel()
        loadings = np.where(weights[:, None] > 0, self.splines.design(at) @ self.loadings, 0.0)
        return CurvePrecision(record, loadings, weights, self.sizes, self.white, self.variance, observed.n)

    def learned(self, observed: Observations, t: FloatArray, precision: CurvePrecision) -> LearnedPrecision | None:
        """What it was learned from; None where errors are white."""
        own = self.source
        if own is None or not self.sizes.size:
            return None
        seen = observed.used.ravel()[:, None] > 0
        functions = np.where(seen, self.splines.design(_places(observed, t)[1]) @ own.turn, 0.0)
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
    record, at = _places(observed, form.t)
    record, at = record[seen], at[seen]
    counts = np.bincount(record, minlength=observed.n)
    several, points = int((counts > 1).sum()), np.unique(at).size
    if several < 8 or points < SMOOTH + 3:
        raise InputError(
            f"errors along curves need {SMOOTH + 3} points of t and 8 curves or more with two observations, got "
            f"{points} and {several}"
        )
    low, high = float(form.t.min()), float(form.t.max())
    residuals, share = _residuals(form, observed, int(seen.sum()), SmoothMargin.pspline((low, high), ALONG))
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
    least = max(LEAST_WHITE * total / e.size, float(np.finfo(np.float64).tiny))
    white = max(total / e.size, least)
    theta = white / 2 * np.eye(b.shape[1]) / max(b.shape[1], 1)
    for _ in range(STEPS if b.shape[1] else 0):
        spread = np.linalg.inv(np.linalg.inv(theta) + squares / white)
        mean = np.einsum("nab,nb->na", spread, sums) / white
        second = spread + mean[:, :, None] * mean[:, None, :]
        left = total - 2 * float((mean * sums).sum()) + float((squares * second).sum())
        theta, white = second.mean(axis=0) + least * 1e-6 * np.eye(b.shape[1]), max(left / e.size, least)
    return (theta + theta.T) / 2, white


def _places(observed: Observations, t: FloatArray) -> tuple[IntArray, FloatArray]:
    """Record and point of each entry of the responses."""
    if observed.points is not None:
        return observed.points.record, observed.points.t
    return np.repeat(np.arange(observed.n), t.size), np.tile(t, observed.n)


def _orthonormal(low: float, high: float) -> tuple[BSplines, FloatArray]:
    """Splines, and coefficients of functions of them whose squares have mean 1 over the domain."""
    splines = BSplines.uniform(low, high, SMOOTH)
    points = np.linspace(low, high, 20 * SMOOTH)
    return splines, np.linalg.inv(np.linalg.qr(splines.design(points))[1]) * np.sqrt(points.size)


def _residuals(form: LongForm, observed: Observations, count: int, along: SmoothMargin) -> tuple[FloatArray, float]:
    """Residuals in the shape of the responses, and the share of a curve's variance that they keep."""
    same = [design for design in form.designs if design.separable]
    own = [replace(design, along=along) for design in form.designs if not design.separable]
    n_own = sum(design.n_features for design in own)
    most = min(SHARE * observed.n, SHARE * count / along.size - 1, MOST)
    directions = Directions.of(same, observed.records, max(int(most) - n_own, 1), along)
    rough = LongForm((directions, *own), form.t)
    system = observed.system(rough)
    size = np.sqrt(np.maximum(system.gram.diagonal(), 1e-300))
    values, vectors = np.linalg.eigh(system.gram / np.outer(size, size))
    keep = values > 1e-8 * values[-1]
    found = vectors[:, keep] @ ((vectors[:, keep].T @ (system.cross / size)) / values[keep]) / size
    used = directions.n_features + n_own
    share = 1 - max(used / observed.n, used * along.size / count)
    return np.where(observed.used > 0, observed.y - observed.predictor(rough, found), 0.0), max(share, 0.1)
