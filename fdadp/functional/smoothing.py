"""Curves with missing values, or irregular ones, made complete on a common grid, each by itself."""

from __future__ import annotations

import numpy as np

from fdadp._common.argument_checks import numbers, one_of
from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError
from fdadp.functional.fpca.eigenbasis import check_observed
from fdadp.functional.splines.bsplines import BSplines
from fdadp.functional.tables.curve_sample import as_grid

_ORDER = 2
_LOG_RATIO = np.linspace(-28.0, 14.0, 85)  # λ against the size of the data's part of the equations
MIN_POINTS = 4


def smooth_curves(
    values: ArrayLike,
    grid: ArrayLike | None = None,
    new_grid: ArrayLike | None = None,
    *,
    n_basis: int | None = None,
    criterion: str = "reml",
    name: str = "values",
) -> FloatArray:
    """Smooth each curve by penalised B-splines, and evaluate it on a common grid.

    Cubic B-splines with a second-difference penalty, one basis for all curves; every curve has its own λ and
    nothing passes from one curve to another. Observed values are smoothed, too. Where a curve ends before the
    grid does it goes on in a straight line.

    Parameters
    ----------
    values : array_like of shape (n, S)
        NaN where a curve was not observed; at least 4 observed points in each.
    grid : array_like of shape (S,), optional
        Default: even on [0, 1].
    new_grid : array_like of shape (S',), optional
        Points within the range of `grid`, default `grid`.
    n_basis : int, optional
        Default: ``min(35, S // 3) + 3``, as in FACE.
    criterion : {"reml", "gcv"}
        How λ is chosen. Where points are few GCV interpolates a curve now and then, REML (default) does not.
    name : str
        The argument's name in error messages.

    Returns
    -------
    ndarray of shape (n, S')
        Complete curves.

    Raises
    ------
    InputError
        Infinite values, a curve with fewer than 4 observed points (the text names it), a bad grid, basis or
        criterion.

    References
    ----------
    Eilers & Marx (1996), doi:10.1214/ss/1038425655; Wood (2011), Fast stable REML, JRSS B 73,
    doi:10.1111/j.1467-9868.2010.00749.x.

    Examples
    --------
    >>> curve = [[1.0, 1.2, float("nan"), 1.6, 1.8, 2.0]]
    >>> smooth_curves(curve).round(6).tolist()
    [[1.0, 1.2, 1.4, 1.6, 1.8, 2.0]]
    """
    data = numbers(values, name)
    if data.ndim != 2 or data.shape[1] < MIN_POINTS:
        raise InputError(f"{name} must have shape (n, S) with S of at least {MIN_POINTS}, got {data.shape}")
    points = as_grid(grid, data.shape[1])
    check_observed(data, name, MIN_POINTS)
    one_of(criterion, "criterion", ("reml", "gcv"))
    low, high = float(points[0]), float(points[-1])
    size = min(35, points.size // 3) + 3 if n_basis is None else n_basis
    splines = BSplines.uniform(low, high, size, margin=0.0)
    target = points if new_grid is None else numbers(new_grid, "new_grid")
    if target.ndim != 1 or target.size == 0 or not ((target >= low) & (target <= high)).all():
        raise InputError(f"new_grid must be points within [{low:g}, {high:g}], got {new_grid!r}")

    to_mixed = _mixed_model(splines.difference_penalty(_ORDER))
    design, out_design = splines.design(points) @ to_mixed, splines.design(target) @ to_mixed
    observed = ~np.isnan(data)
    # Curves observed at the same points share their decomposition.
    patterns, which = np.unique(observed, axis=0, return_inverse=True)
    which = which.ravel()
    result = np.empty((len(data), target.size))
    for p, pattern in enumerate(patterns):
        rows = np.flatnonzero(which == p)
        coefficients = _fit(design[pattern], data[np.ix_(rows, np.flatnonzero(pattern))], criterion)
        result[rows] = coefficients @ out_design.T
    return result


def _mixed_model(penalty: FloatArray) -> FloatArray:
    """Coefficients of a basis as (straight line, random effects): penalty diag(0, 0, 1, ..., 1)."""
    values, vectors = np.linalg.eigh(penalty)
    scale = np.concatenate((np.ones(_ORDER), 1 / np.sqrt(values[_ORDER:])))
    return np.asarray(vectors * scale)


def _fit(design: FloatArray, curves: FloatArray, criterion: str) -> FloatArray:
    """Coefficients (n, p) of curves (n, m) seen at the same m points; a λ for each.

    With the line projected out and the rest diagonalised (eigenvalues ρ, rotated data u), everything
    that REML and GCV ask for is a sum over ρ; REML is that of Wood (2011) with σ² profiled out.
    """
    m = design.shape[0]
    line, random = design[:, :_ORDER], design[:, _ORDER:]
    q, r = np.linalg.qr(line)
    free = random - q @ (q.T @ random)
    left, singular, right = np.linalg.svd(free, full_matrices=False)
    keep = singular > singular[0] * max(free.shape) * np.finfo(float).eps
    left, singular, right = left[:, keep], singular[keep], right[keep]
    rho = singular**2
    centred = curves - (curves @ q) @ q.T
    u = centred @ left
    # Below this the residuals are rounding: a curve without noise is interpolated.
    floor = np.finfo(float).eps * (centred**2).sum(axis=1, keepdims=True) + np.finfo(float).tiny
    beyond = ((centred - u @ left.T) ** 2).sum(axis=1, keepdims=True)

    ratios = np.exp(_LOG_RATIO) * rho.max()
    part = ratios / (rho[:, None] + ratios)  # the share of u that a λ leaves over
    if criterion == "reml":
        score = (m - _ORDER) * np.log(np.maximum(u**2 @ part + beyond, floor)) - np.log(part).sum(axis=0)
    else:
        left_over = part.sum(axis=0) + m - _ORDER - rho.size  # m - edf
        score = np.log(np.maximum(u**2 @ part**2 + beyond, floor)) - 2 * np.log(left_over)
    smoothing = np.exp(_parabolic_minimum(score)) * rho.max()
    effects = (u * singular / (rho + smoothing[:, None])) @ right
    fixed = np.linalg.solve(r, (q.T @ (curves.T - random @ effects.T)))
    return np.hstack((fixed.T, effects))


def _parabolic_minimum(score: FloatArray) -> FloatArray:
    """Log ratio of the least score in each row (n, L), between the points of the search by a parabola."""
    best = score.argmin(axis=1)
    inner = np.clip(best, 1, score.shape[1] - 2)
    rows = np.arange(len(score))
    before, at, after = score[rows, inner - 1], score[rows, inner], score[rows, inner + 1]
    bend = before - 2 * at + after
    shift = np.divide(before - after, 2 * bend, out=np.zeros_like(bend), where=(bend > 0) & (best == inner))
    step = _LOG_RATIO[1] - _LOG_RATIO[0]
    return np.asarray(_LOG_RATIO[best] + step * np.clip(shift, -1, 1))
