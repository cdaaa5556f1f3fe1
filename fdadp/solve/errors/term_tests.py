"""Tests of single terms, and of several terms at once, from the covariance of all coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from fdadp._common.student_and_f import f_beyond, ndtr, ndtri, student_beyond, student_quantile
from fdadp._common.symmetric_matrices import inverse_root, root_of
from fdadp._common.typing import FloatArray, IntArray
from fdadp.solve.fit.additive_fit import AdditiveFit
from fdadp.solve.smoothing.penalized_least_squares import PenalizedLeastSquares

SLACK = 0.05
"""Effective degrees of freedom above a whole number that do not count as one more."""

CLUSTERS_PER_DIRECTION = 15
"""Of a test by clusters, at least, beyond the first :data:`LEAST` directions."""

LEAST = 3
"""Directions in which a term is tested by clusters, however few they are."""

DIRECTIONS = 12
"""In which it is tested, however smooth its estimate is, where clusters are enough; more, where it is rougher."""


@dataclass(frozen=True)
class TermTest:
    """A Wald test of rank `df`.

    Attributes
    ----------
    statistic : float
        ``β'V⁻β`` on `df` directions.
    df : int
    p : float
        By F, with the degrees of freedom of the covariance.
    """

    statistic: float
    df: int
    p: float


def wald(gram: FloatArray, coefficients: FloatArray, covariance: FloatArray, edf: float, left: float) -> TermTest:
    """Test that a term's values at the training rows are all 0, where errors are independent.

    Parameters
    ----------
    gram : ndarray of shape (p, p)
        Products of the term's columns of the long form.
    coefficients : ndarray of shape (p,)
    covariance : ndarray of shape (p, p)
    edf : float
        Effective degrees of freedom of the term: the rank of the test, rounded up.
    left : float
        Degrees of freedom of the scale of the covariance: observations less those used.

    References
    ----------
    Wood (2013), On p-values for smooth components of an extended generalized additive model,
    doi:10.1093/biomet/ass048, with whole ranks.
    """
    values, vectors = np.linalg.eigh(gram)
    root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    spread, directions = np.linalg.eigh(root @ covariance @ root.T)
    spread, directions = spread[::-1], directions[:, ::-1]
    rank = int((spread > 1e-10 * max(float(spread[0]), 0.0)).sum())
    r = min(max(int(np.ceil(edf - SLACK)), 1), rank)
    if not r:
        return TermTest(0.0, 0, 1.0)
    z = directions[:, :r].T @ (root @ coefficients)
    statistic = float((z**2 / spread[:r]).sum())
    return TermTest(statistic, r, f_beyond(statistic / r, r, left))


def wald_by_clusters(
    fit: AdditiveFit, which: IntArray, sampling: FloatArray, n_clusters: int, left: float | None = None
) -> TermTest:
    """Test that coefficients are all 0, where their covariance is estimated from clusters.

    Parameters
    ----------
    fit : AdditiveFit
    which : ndarray of int
        The coefficients, of one term or several.
    sampling : ndarray of shape (p, p)
        Covariance of all coefficients at these smoothing parameters, from clusters left out.
    n_clusters : int
    left : float, optional
        Degrees of freedom of the covariance; default one less than clusters.

    Notes
    -----
    Tested are least squares without the penalty, ``U = (D*'D* + S) β``, D* the columns given all others, in the
    directions in which functions of this size are smoothest: :data:`DIRECTIONS` of them, or as many as the effective
    degrees of freedom where these are more, but one for :data:`CLUSTERS_PER_DIRECTION` clusters at most. So neither the
    directions nor, where clusters are few, their number are chosen by the responses, and no estimate is drawn towards
    0: with as many directions as smoothing leaves to correlated errors, in the order of their variance, tests reject a
    null hypothesis in .00 to .15, and have less power (docs/decisions/0032-tests-of-wide-terms.md).

    References
    ----------
    Hotelling (1931), doi:10.1214/aoms/1177732979; Zhang & Lin (2003), Hypothesis testing in semiparametric additive
    mixed models, doi:10.1093/biostatistics/4.1.57, on scores instead of smoothed estimates.
    """
    which = which[fit.identified[which]]
    heavy = (fit.smoothing_parameters @ fit.form.stacked_penalties)[which]
    own = _given_others(fit, which)
    if not which.size or not own.any():
        return TermTest(0.0, 0, 1.0)
    directions = _smoothest(fit, which, own)
    edf = int(np.ceil(float(fit.edf[which].sum()) - SLACK))
    most = min(max(n_clusters // CLUSTERS_PER_DIRECTION, LEAST), max(n_clusters - 2, 1))
    contrasts = directions[:, : min(max(edf, DIRECTIONS), most)].T @ (own + np.diag(heavy))
    z = contrasts @ fit.coefficients[which]
    values, vectors = np.linalg.eigh(contrasts @ sampling[np.ix_(which, which)] @ contrasts.T)
    kept = values > 1e-10 * max(float(values[-1]), 0.0)
    r, left = int(kept.sum()), n_clusters - 1 if left is None else left
    if not r:
        return TermTest(0.0, 0, 1.0)
    statistic = float(((vectors[:, kept].T @ z) ** 2 / values[kept]).sum())
    below = max(left - r + 1.0, 1.0)
    return TermTest(statistic, r, f_beyond(statistic * below / (left * r), r, below))


def _given_others(fit: AdditiveFit, which: IntArray) -> FloatArray:
    """Products of columns of which the penalised part that all others explain is taken away."""
    others = np.setdiff1d(np.flatnonzero(fit.identified), which)
    a = fit.gram + np.diag(fit.smoothing_parameters @ fit.form.stacked_penalties)
    size = np.sqrt(np.maximum(a.diagonal()[others], 1e-300))
    rest, between = a[np.ix_(others, others)] / np.outer(size, size), a[np.ix_(others, which)] / size[:, None]
    own = fit.gram[np.ix_(which, which)] - between.T @ np.linalg.solve(rest, between)
    return np.asarray((own + own.T) / 2)


def _smoothest(fit: AdditiveFit, which: IntArray, own: FloatArray) -> FloatArray:
    """Directions of coefficients, in columns: of functions of one size first those that all penalties mind least.

    A penalty weighs as much as the columns of its term do, whatever its smoothing parameter.
    """
    rough = np.zeros(len(which))
    for place, penalties in zip(fit.form.slices, fit.form.penalties, strict=True):
        here = (which >= place.start) & (which < place.stop)
        d = penalties[:, which[here] - place.start]
        d = d[d.any(axis=1)]
        rough[here] += (d / d.sum(axis=1, keepdims=True)).sum(axis=0) * own.diagonal()[here].sum() / max(len(d), 1)
    size = np.sqrt(np.maximum(own.diagonal() + rough, 1e-300))
    alone = own / np.outer(size, size)
    root = np.linalg.cholesky(alone + np.diag(rough / size**2 + 1e-10))
    half = np.linalg.solve(root, np.linalg.solve(root, alone).T)
    smoothness, turn = np.linalg.eigh((half + half.T) / 2)
    seen = turn[:, smoothness > 1e-6][:, ::-1]
    return np.asarray(np.linalg.solve(root.T, seen) / size[:, None])


@dataclass(frozen=True)
class LargestRatio:
    """Law of ``max |row'(b - β)| / se(row)`` over all rows: simultaneous bands, and the test that belongs to them.

    Attributes
    ----------
    drawn : ndarray
        Largest ratios of Gaussian draws, which nothing uses where `alone`; empty where no row has an error.
    alone : bool
        Whether all rows are multiples of one number, whose law is exact.

    Notes
    -----
    The quantile z of Gaussian draws, and from it that of Student's t with the same tail. So variances at two points
    err by themselves, as those that different clusters say do: with one error for all points (multivariate t) bands
    are too narrow where the ends of a covariate belong to few clusters each
    (docs/decisions/0038-bands-of-few-curves.md).

    References
    ----------
    Ruppert, Wand & Carroll (2003), Semiparametric Regression, section 6.5, doi:10.1017/CBO9780511755453; Westfall &
    Young (1993), Resampling-Based Multiple Testing, on equal tails at points of unlike laws; Bell & McCaffrey (2002)
    and Satterthwaite (1946), doi:10.2307/3002019, on t of such variances.
    """

    drawn: FloatArray
    alone: bool = False

    @classmethod
    def of(cls, rows: FloatArray, covariance: FloatArray, seed: int, draws: int = 4000) -> LargestRatio:
        """Of rows (m, p) and the covariance (p, p) of the coefficients."""
        spread = rows @ root_of((covariance + covariance.T) / 2)
        se = np.sqrt(np.einsum("ij,ij->i", spread, spread))
        spread = spread[se > 1e-12 * max(float(se.max(initial=0.0)), 1e-300)]
        if not len(spread):
            return cls(np.zeros(0))
        spread = spread / np.sqrt(np.einsum("ij,ij->i", spread, spread))[:, None]
        # Of many rows, their own principal directions are far fewer.
        _, size, directions = np.linalg.svd(spread.T @ spread)
        kept = size > 1e-10 * size[0]
        if kept.sum() == 1:  # one number: no need to draw
            return cls(np.ones(1), alone=True)
        spread = spread @ directions[kept].T
        # Rounding chooses the signs of directions, and must not choose the draws.
        spread = spread * np.where(np.cos(np.arange(len(spread))) @ spread < 0, -1.0, 1.0)
        rng = np.random.default_rng(seed)
        largest = np.empty(draws)
        for start in range(0, draws, 500):
            normal = rng.standard_normal((min(500, draws - start), spread.shape[1]))
            largest[start : start + len(normal)] = np.abs(normal @ spread.T).max(axis=1)
        return cls(largest)

    def quantile(self, level: float, left: float) -> float:
        """Half-width of bands in standard errors, whose variance at each point has `left` degrees of freedom."""
        if not self.drawn.size:
            return 0.0
        widest = float(-ndtri((1 - level) / 2) if self.alone else np.quantile(self.drawn, level))
        return -float(student_quantile(float(ndtr(-widest)), left)) if np.isfinite(left) else widest

    def p(self, ratio: float, left: float) -> float:
        """Probability of a largest ratio as large as this one; the least that is told is one of the draws."""
        if not self.drawn.size:
            return 1.0
        if self.alone:
            return 2 * float(student_beyond(ratio, left) if np.isfinite(left) else ndtr(-ratio))
        ratio = -float(ndtri(student_beyond(ratio, left))) if np.isfinite(left) else ratio
        return float(max((self.drawn >= ratio).mean(), 1 / self.drawn.size))


# Concurvity: how far one term of a model can be written by the others, as collinearity of columns.


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
    root = inverse_root(own, NOT_THERE)
    b = coefficients[term]
    length, total = float(b @ own @ b), float(np.trace(own))
    found = []
    for columns in others:
        cross = inverse_root(gram[np.ix_(columns, columns)], NOT_THERE).T @ gram[np.ix_(columns, term)]
        shared = cross.T @ cross  # X'PX
        worst = float(np.linalg.norm(cross @ root, 2) ** 2) if root.size and cross.size else 0.0
        observed = float(b @ shared @ b) / length if length > 0 else np.nan
        estimate = float(np.trace(shared)) / total if total > 0 else np.nan
        found.append((min(worst, 1.0), min(observed, 1.0), min(estimate, 1.0)))
    return found


# Tests that a random effect has no variance: exact for numbers, by flipped signs of curves for curves.
#
# Imhof (1961), Computing the distribution of quadratic forms in normal variables, doi:10.1093/biomet/48.3-4.419; Wood
# (2013), A simple test for random effects in regression models, doi:10.1093/biomet/ast038; Canay, Romano & Shaikh
# (2017), Randomization tests under an approximate symmetry assumption, doi:10.3982/ECTA13081.


DRAWS = 1999
"""Of signs."""

NUMBERS_AT_A_TIME = 2**22
"""Of signs times curves."""

ROUNDING = 1e-9
"""Share of the largest eigenvalue, or of a column, below which nothing is left."""


@dataclass(frozen=True)
class EffectSpectrum:
    """What the other terms leave of responses, by the directions of a random effect with independent coefficients.

    With B the columns by which the effect has unit variance, and P what the other terms leave of y, at smoothing
    parameters that REML chooses without it.

    Attributes
    ----------
    values : ndarray of shape (J,)
        Eigenvalues of ``B'PB`` that are not 0.
    squares : ndarray of shape (J,)
        Of ``B'Py`` along its eigenvectors. Without an effect independent, σ² times the values times χ² on 1.
    left : float
        ``y'Py``. Without an effect σ² times χ² on `dof`.
    dof : int
        Of observations less unpenalised coefficients.
    """

    values: FloatArray
    squares: FloatArray
    left: float
    dof: int

    @classmethod
    def of(cls, fit: AdditiveFit, which: IntArray, known_scale: bool) -> EffectSpectrum:
        """Of coefficients of a fit, which one penalty without a null space holds."""
        here = which[fit.identified[which]]
        others = np.setdiff1d(np.flatnonzero(fit.identified), which)
        heavy = fit.smoothing_parameters @ fit.form.stacked_penalties
        free = float(fit.coefficients[0]) if fit.form.has_intercept else 0.0
        beta = fit.coefficients.copy()
        if fit.form.has_intercept:
            beta[0] = 0.0  # of responses less the constant, of which fewer digits are lost
        pulled = heavy * fit.coefficients
        cross = fit.gram @ fit.coefficients + pulled - fit.gram[0] * free
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
        unit = 1 / np.sqrt(fit.form.stacked_penalties[:, here].sum(axis=0))
        z = (cross[here] - between.T @ solved[:, 0]) * unit
        inner = (fit.gram[np.ix_(here, here)] - between.T @ solved[:, 1:]) * np.outer(unit, unit)
        values, axes = np.linalg.eigh((inner + inner.T) / 2)
        kept = values > ROUNDING * max(float(values.max(initial=0.0)), 0.0)
        left = max(total - float(cross[others] @ solved[:, 0]), 1e-300)
        return cls(values[kept], (z @ axes[:, kept]) ** 2, left, fit.n_rows - int((load == 0).sum()))


def score_test(spectrum: EffectSpectrum, known_scale: bool) -> TermTest:
    """Test that a random effect on numbers has no variance.

    Parameters
    ----------
    spectrum : EffectSpectrum
    known_scale : bool
        Whether errors have variance 1 (working responses of Poisson and binomial fits).

    Notes
    -----
    ``T = |B'Py|² / y'Py``. Under the null hypothesis T is a ratio of quadratic forms with the eigenvalues of ``B'PB``,
    so p is exact for Gaussian errors and known smoothing parameters. It is the locally most powerful test, in any
    design.
    """
    values = spectrum.values
    if not len(values):
        return TermTest(0.0, 0, 1.0)
    squares = float(spectrum.squares.sum())
    if known_scale:
        return TermTest(squares / float(values.mean()), len(values), _tail(values, np.ones(len(values)), squares))
    ratio = squares / spectrum.left
    p = _tail(
        np.asarray(np.append(values - ratio, -ratio), dtype=np.float64),
        np.append(np.ones(len(values)), float(max(spectrum.dof - len(values), 0))),
        0.0,
    )
    return TermTest(ratio * spectrum.dof / float(values.mean()), len(values), p)


RATIOS = np.r_[0.0, np.logspace(-4, 6, 200)]
"""Variances of an effect that likelihoods are compared at, of errors and the mean eigenvalue 1."""


def ratio_test(
    spectrum: EffectSpectrum, known_scale: bool, draws: int, rng: np.random.Generator
) -> tuple[float, FloatArray]:
    """The restricted likelihood ratio of the same hypothesis, and draws from its law without an effect.

    Notes
    -----
    ``sup_λ dof log(y'Py / (y'Py - Σ_j λ s_j / (1 + λ v_j))) - Σ_j log(1 + λ v_j)`` with the spectrum's values v and
    squares s; known variances of errors take the place of the logarithm. Both are sums of independent χ², so that the
    exact law in this design is drawn without a fit.

    References
    ----------
    Crainiceanu & Ruppert (2004), Likelihood ratio tests in linear mixed models with one variance component, JRSS-B
    66(1), doi:10.1111/j.1467-9868.2004.00438.x.
    """
    values = spectrum.values
    if not len(values):
        return 0.0, np.zeros(draws)
    sizes = RATIOS[:, None] / values.mean()
    share = (sizes / (1 + sizes * values)).T
    charge = np.log1p(sizes * values).sum(axis=1)

    def largest(squares: FloatArray, left: FloatArray) -> FloatArray:
        fallen = squares @ share
        gain = fallen if known_scale else -spectrum.dof * np.log(np.maximum(1 - fallen / left[:, None], 1e-300))
        return np.asarray((gain - charge).max(axis=1))

    chi = rng.standard_normal((draws, len(values))) ** 2
    rest = rng.chisquare(max(spectrum.dof - len(values), 0), draws) if spectrum.dof > len(values) else np.zeros(draws)
    seen = largest(spectrum.squares[None], np.array([spectrum.left]))
    return float(seen[0]), largest(chi * values, chi.sum(axis=1) + rest)


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
    found = np.sin(turn) * np.exp(-size) / u / (1 - v) ** 2
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
    level of each curve, M takes out the features, R are the curves. Signs S change only products of different units of
    a level. As M is in R already, they also change what both are on average, ``|Z'MSM|²`` and ``|MSM|²``, of which the
    ratio is subtracted. Without that p ≤ .05 came in .08 to .12 of samples of ten curves (Hemerik, Goeman & Finos 2020,
    doi:10.1111/rssb.12369, on signs and features). So the test needs errors that are independent between units and
    about symmetric; nothing is asked of their law along the curve, which may differ between curves, nor of how many
    curves a level has.
    """
    from scipy.sparse import csr_array

    n, n_levels = len(left), int(levels.max()) + 1
    directions, size, _ = np.linalg.svd(features, full_matrices=False)
    out = directions[:, size > ROUNDING * size[0]]
    left = left - out @ (out.T @ left)
    member = csr_array((np.ones(n), (np.arange(n), levels)), shape=(n, n_levels))
    shared = member.T @ out
    usual, free = n - float((shared**2).sum()), n - out.shape[1]
    if free < 2 or usual <= 0 or not left.any() or n_levels == n:
        return TermTest(0.0, n_levels - 1, 1.0)
    least = ROUNDING * float((left**2).sum())

    def beyond(signs: FloatArray) -> FloatArray:
        """``|Z'MSR|² / |MSR|²`` less the same of averages."""
        between, within, among, rest = np.zeros((4, len(signs)))
        for column in left.T:
            flipped = signs * column
            lost = flipped @ out
            between += ((flipped @ member - lost @ shared.T) ** 2).sum(axis=1)
            within += float(column @ column) - (lost**2).sum(axis=1)
        for column in out.T:
            flipped = signs * column
            lost = flipped @ out
            among += ((flipped @ member - lost @ shared.T) ** 2).sum(axis=1)
            rest += (lost**2).sum(axis=1) - 2
        return np.asarray(between / np.maximum(within, least) - (usual - among) / np.maximum(n + rest, ROUNDING * n))

    # The signs of a unit follow from its size, not from its place: the order of rows is of no effect.
    energy = np.bincount(units, (left**2).sum(axis=1))
    units = np.argsort(np.argsort(energy, kind="stable"))[units]
    rng = np.random.default_rng(seed)
    seen = float(beyond(np.ones((1, n)))[0])
    step, above = max(NUMBERS_AT_A_TIME // n, 1), 1
    for start in range(0, DRAWS, step):
        signs = rng.choice([-1.0, 1.0], (min(step, DRAWS - start), int(units.max()) + 1))
        above += int((beyond(signs[:, units]) >= seen - 1e-12 * n).sum())
    return TermTest(1 + seen * free / usual, n_levels - 1, above / (DRAWS + 1))
