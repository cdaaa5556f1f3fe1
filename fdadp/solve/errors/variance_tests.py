"""Tests that a random effect has no variance: exact for numbers, by flipped signs of curves for curves.

References
----------
Imhof (1961), Computing the distribution of quadratic forms in normal variables, doi:10.1093/biomet/48.3-4.419; Wood
(2013), A simple test for random effects in regression models, doi:10.1093/biomet/ast038; Canay, Romano & Shaikh (2017),
Randomization tests under an approximate symmetry assumption, doi:10.3982/ECTA13081.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from fdadp._common.typing import FloatArray, IntArray
from fdadp.solve.errors.term_tests import TermTest
from fdadp.solve.fit.additive_fit import AdditiveFit
from fdadp.solve.smoothing.penalized import PenalizedLeastSquares

DRAWS = 1999
"""Of signs."""

NUMBERS_AT_A_TIME = 2**22
"""Of signs times curves."""

ROUNDING = 1e-9
"""Share of the largest eigenvalue, or of a column, below which nothing is left."""


def score_test(fit: AdditiveFit, which: IntArray, known_scale: bool) -> TermTest:
    """Test that a random effect on numbers has no variance.

    Parameters
    ----------
    fit : AdditiveFit
    which : ndarray of int
        Its coefficients, which one penalty without a null space holds.
    known_scale : bool
        Whether errors have variance 1 (working responses of Poisson and binomial fits).

    Notes
    -----
    ``T = r'BB'r / y'r``, B the columns by which the effect has unit variance, r what the other terms leave of y, at
    smoothing parameters that REML chooses without it. Under the null hypothesis y'r/σ² is χ² on n - q degrees of
    freedom, and T is a ratio of quadratic forms with the eigenvalues of ``B'PB``, so p is exact for Gaussian errors and
    known smoothing parameters. It is the locally most powerful test, in any design.
    """
    here = which[fit.identified[which]]
    others = np.setdiff1d(np.flatnonzero(fit.identified), which)
    heavy = fit.smoothing_parameters @ fit.form.stacked_penalties
    free = float(fit.coefficients[0]) if fit.form.has_intercept else 0.0
    beta = fit.coefficients.copy()
    if fit.form.has_intercept:
        beta[0] = 0.0  # of responses less the constant, of which fewer digits are lost
    moved = fit.gram @ fit.coefficients
    cross = moved + heavy * fit.coefficients - fit.gram[0] * free
    pulled = heavy * fit.coefficients
    rss = fit.sigma2 * max(fit.n_rows - fit.edf_total, 1e-300)  # of other families that of the working responses
    total = float(rss + 2 * beta @ pulled + beta @ fit.gram @ beta)
    penalties = fit.form.stacked_penalties[:, others]
    own = penalties.any(axis=1)
    load = heavy[others]
    if own.any() and not known_scale:
        rest = PenalizedLeastSquares(
            fit.gram[np.ix_(others, others)], cross[others], total, fit.n_rows, penalties[own], intercept=False
        )
        (found,) = rest.optimize()
        load = found.smoothing_parameters @ penalties[own]
    a = fit.gram[np.ix_(others, others)] + np.diag(load)
    size = np.sqrt(np.maximum(a.diagonal(), 1e-300))
    between = fit.gram[np.ix_(others, here)]
    solved = np.linalg.solve(a / np.outer(size, size), np.column_stack((cross[others], between)) / size[:, None])
    solved /= size[:, None]
    unit = 1 / np.sqrt(
        (fit.form.stacked_penalties[:, here] > 0).any(axis=0) * fit.form.stacked_penalties[:, here].sum(0)
    )
    z = (cross[here] - between.T @ solved[:, 0]) * unit
    left = total - float(cross[others] @ solved[:, 0])
    inner = (fit.gram[np.ix_(here, here)] - between.T @ solved[:, 1:]) * np.outer(unit, unit)
    values: FloatArray = np.asarray(np.linalg.eigvalsh((inner + inner.T) / 2), dtype=np.float64)
    values = values[values > ROUNDING * max(float(values.max(initial=0.0)), 0.0)]
    if not len(values):
        return TermTest(0.0, 0, 1.0)
    squares = float(z @ z)
    if known_scale:
        return TermTest(squares / float(values.mean()), len(values), _tail(values, np.ones(len(values)), squares))
    dof = fit.n_rows - int((load == 0).sum())
    ratio = squares / max(left, 1e-300)
    rest_dof = max(dof - len(values), 0)
    p = _tail(
        np.asarray(np.append(values - ratio, -ratio), dtype=np.float64),
        np.append(np.ones(len(values)), float(rest_dof)),
        0.0,
    )
    return TermTest(ratio * dof / float(values.mean()), len(values), p)


@cache
def _nodes() -> tuple[FloatArray, FloatArray]:
    x, w = np.polynomial.legendre.leggauss(800)
    return (x + 1) / 2, w / 2


def _tail(weights: FloatArray, degrees: FloatArray, beyond: float) -> float:
    """``P(Σ w_j χ²_j > beyond)``, weights of any sign: Imhof's integral."""
    scale = float(np.abs(weights).max())
    w, beyond = weights[:, None] / scale, beyond / scale
    v, share = _nodes()
    u = v / (1 - v)
    turn = 0.5 * (degrees[:, None] * np.arctan(w * u)).sum(axis=0) - 0.5 * beyond * u
    size = 0.25 * (degrees[:, None] * np.log1p((w * u) ** 2)).sum(axis=0)
    found = np.sin(turn) / (u * np.exp(size)) / (1 - v) ** 2
    return float(np.clip(0.5 + (share * found).sum() / np.pi, 0.0, 1.0))


def flip_test(left: FloatArray, features: FloatArray, levels: IntArray, units: IntArray, seed: int = 0) -> TermTest:
    """Test that curves of one level of a factor have nothing in common, by flipping the signs of curves.

    Parameters
    ----------
    left : ndarray of shape (n, r)
        What all other terms leave of each curve, in r orthonormal directions along the response.
    features : ndarray of shape (n, q)
        What the other terms know of each curve, the constant among them, which is taken out of `left`.
    levels : ndarray of shape (n,)
        Number of the level of each curve.
    units : ndarray of shape (n,)
        Number of what has a sign of its own: the curve, or a group of curves whose errors may go together.
    seed : int
        Of the signs.

    Notes
    -----
    The statistic is ``|Z'MR|²`` over ``|MR|²``, each divided by what it is where nothing is in common: Z indicates the
    level of each curve, M takes out the features, R are the curves. Signs change only products of different units of a
    level. So the test needs errors that are independent between units and about symmetric; nothing is asked of their
    law along the curve, which may differ between curves, nor of how many curves a level has.
    """
    from scipy.sparse import csr_array

    n, n_levels = len(left), int(levels.max()) + 1
    directions, size, _ = np.linalg.svd(features, full_matrices=False)
    out = directions[:, size > ROUNDING * size[0]]
    left = left - out @ (out.T @ left)
    member = csr_array((np.ones(n), (np.arange(n), levels)), shape=(n, n_levels))
    shared = member.T @ out
    usual = (n - float((shared**2).sum())) / max(n - out.shape[1], 1)
    if n - out.shape[1] < 2 or usual <= 0 or not left.any() or n_levels == n:
        return TermTest(0.0, n_levels - 1, 1.0)

    def ratio(signs: FloatArray) -> FloatArray:
        between, within = np.zeros(len(signs)), np.zeros(len(signs))
        for column in left.T:
            flipped = signs * column
            lost = flipped @ out
            between += ((flipped @ member - lost @ shared.T) ** 2).sum(axis=1)
            within += float(column @ column) - (lost**2).sum(axis=1)
        return np.asarray(between / np.maximum(usual * within, 1e-300))

    # The signs of a unit follow from its size, not from its place: the order of rows is of no effect.
    energy = np.bincount(units, (left**2).sum(axis=1))
    units = np.argsort(np.argsort(energy, kind="stable"))[units]
    rng = np.random.default_rng(seed)
    seen = float(ratio(np.ones((1, n)))[0])
    step, above = max(NUMBERS_AT_A_TIME // n, 1), 1
    for start in range(0, DRAWS, step):
        signs = rng.choice([-1.0, 1.0], (min(step, DRAWS - start), int(units.max()) + 1))
        above += int((ratio(signs[:, units]) >= seen * (1 - 1e-12)).sum())
    return TermTest(seen, n_levels - 1, above / (DRAWS + 1))
