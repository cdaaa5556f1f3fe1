"""Private linear regression from one noisy second moment of features and targets.

Sources: Vu & Slavkovic (2009), doi:10.1109/ICDMW.2009.52 and Wang (2018), arXiv:1803.02596 (sufficient statistics and
AdaSSP); Zhang et al. (2012), arXiv:1208.0219 (functional mechanism); Dwork et al. (2014), doi:10.1145/2591796.2591883
(Gaussian noise on second moments); Sheffet (2015), arXiv:1507.00056 (Wishart noise).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fdadp._common.argument_checks import is_one_of
from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError
from fdadp.learners.inference import CoefficientIntervals, Equations, solved
from fdadp.learners.shared._base import PrivateRegressor
from fdadp.learners.shared._doubts import Doubts
from fdadp.learners.shared._posterior import above_zero, empirical_bayes
from fdadp.learners.shared.encoding import feature_names
from fdadp.learners.shared.inputs import as_table, as_target, box
from fdadp.privacy import Cohort
from fdadp.privacy.rows._sealed_row_functions import Rows

_MECHANISMS = ("moments", "adassp", "functional", "wishart")
_INTERCEPTS, _SLOPES = (0.01, 0.1, 1.0), np.geomspace(0.01, 30.0, 17)
"""Variances that are believed in evenly of the intercept and of slopes, for |t| <= 1 and vectors z of length 1."""
_LOOKS = 3
"""Times that the noise on the matrix is priced by the coefficients it is multiplied by."""
_BREAK_EVEN = 0.75
"""Pure noise of this variance and Gaussian noise of variance 1 give the same R², by fits of 2 to 14 features."""
_SQUARES = 0.3
"""Weight of the targets' squares in the release: they only tell the residual variance, roughly."""


class _Moments(NamedTuple):
    """Noisy Σ zz' (p, p), Σ zt' (p, q), Σ t² (q,), and standard deviations of the noise on their entries: on the
    diagonal and off it of the first, of the second, and of the third."""

    gram: FloatArray
    cross: FloatArray
    squares: FloatArray
    sd: float
    sd_off: float
    sd_cross: float
    sd_squares: float


@dataclass(kw_only=True, eq=False, repr=False)
class DPLinearRegression(CoefficientIntervals, PrivateRegressor):
    """Linear regression for one or several targets, differentially private.

    With four features or more, a δ and 1,000 rows times ε take :class:`DPAdditiveRegressor` first. With a δ this
    learner spends pure ε where its noise is no worse (at δ = 1e-6 and ε = 1: up to 15 features).

    Parameters
    ----------
    epsilon, delta, n, adjacency, unit, labels, budget, dataset, random_state
        The guarantee: the parameters of :class:`fdadp.Privacy`.
    bounds : (low, high), optional
        Public range of each feature, a number or d numbers each; values are clipped to it.
    data_norm : float, optional
        Instead of ``bounds``: public bound on the L2 norm of a row about ``center``; longer rows are shortened to it.
        A ball much smaller than the box around it means that much less noise.
    center : float or array_like of shape (d,)
        Public; with ``data_norm``.
    bounds_y : (low, high)
        Public range of the target, a number or q numbers each; targets, and predictions, are clipped to it.
    mechanism : {"moments", "adassp", "functional", "wishart"}
        What becomes of the noisy moments. ``"moments"``: shrinkage by the noise, which is known; the most accurate
        where a fit explains anything. ``"adassp"``: the ridge of Wang (2018), which keeps the noisy matrix well
        conditioned (wants a δ); ahead at most where n ε is so small that hardly anything is explained.
        ``"functional"``: a fixed ridge of four standard deviations, and no directions that are left without a minimum
        (pure ε): the functional mechanism, corrected; only for comparison. ``"wishart"``: as ``"moments"`` from
        a release with Wishart noise (Sheffet 2015), which wants one row a person, a δ and a whole budget;
        beyond ε of about 1 its noise hardly falls any more, so it is for comparison. Measured:
        ``docs/learners.md#other-mechanisms``.
    intercept_scaling : float
        b0, the value of the constant feature, in units of ``data_norm`` (with bounds: of the box's half diagonal).

    Attributes
    ----------
    coef_ : ndarray of shape (d,) or (q, d)
        Target's units per unit of a feature, within the ball.
    intercept_ : float or ndarray of shape (q,)
    ledger_, privacy_spent_

    ``conf_int()``, ``coef_table()`` and ``summary()`` have standard errors and intervals of the coefficients, for free.

    Notes
    -----
    *Sensitivity, with a δ* (proof: ``docs/theory/learners.md#linear-regression``).
    A row is encoded as z = (clip(x - center)/R, b0)/√(1 + b0²) in R^p, ‖z‖ <= 1, p = d + 1, and t in R^q
    with ‖t‖ <= 1. Released is one vector: z_i², √2 z_i z_j (i < j), z_i t_k and 0.3 t_k². Its squared L2 norm is
    ‖z‖⁴ + ‖z‖²‖t‖² + 0.09 Σ t_k⁴ <= 2.09. The kernel clips to that itself. Pure ε: the second moment of a = (z, t), of
    which the nuclear norm is ‖a‖² <= 2, with matrix Laplace noise. One joint release has less noise than a share of the
    budget for each moment; the smallest eigenvalue, for which AdaSSP spends a third, is taken from the noisy matrix.
    Wishart: ‖(z, t)‖² <= 2, see :mod:`fdadp.privacy.noise._matrices`.

    *Shrinkage.* A is what the noisy Σ zz' makes one expect: posterior means of its entries about common values (of the
    squares, of the products of two features, of their sums), with spreads that they tell; then negative eigenvalues put
    to 0. Given A, Σ zt ~ N(Aθ, s² I + σ²A), where s² contains the noise on the matrix times θ, priced by the estimate
    itself. With θ ~ N(0, P), P = τ² for slopes and
    another for the intercept, the estimate is P A (A P A + s² I)⁻¹ Σ zt, averaged over public pairs of variances with
    their marginal likelihoods as weights. As the noise goes to 0 so does s, and it becomes that of least squares.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (5000, 2))
    >>> y = 1 + X @ [2.0, -1.0] + 0.1 * rng.normal(size=5000)
    >>> model = DPLinearRegression(epsilon=1.0, delta=1e-6, bounds=(-1, 1), bounds_y=(-2.5, 4.5), random_state=0)
    >>> bool(model.fit(X, y).score(X, y) > 0.95)
    True
    """

    bounds_y: Any = None
    mechanism: str = "moments"

    def _learn(self, X: Any, y: Any, groups: ArrayLike | None) -> Cohort:
        """Release the moments, and solve."""
        if not is_one_of(self.mechanism, (*_MECHANISMS,)):
            raise InputError(f"mechanism must be one of {', '.join(_MECHANISMS)}, got {self.mechanism!r}")
        delta = self._settings().delta
        if self.mechanism in ("adassp", "wishart") and delta is None:
            raise InputError(
                f'delta must be given with mechanism="{self.mechanism}", got None; "moments" takes pure epsilon'
            )
        if self.mechanism == "wishart":
            self._wants_whole_budget(groups, '"moments"')
        if self.mechanism == "functional" and delta is not None:
            raise InputError(f'delta must be left out with mechanism="functional", which is pure, got {delta:g}')
        encode = self._encoding(int(as_table(X).shape[1]))
        shape = as_target(y).shape
        q = 1 if len(shape) == 1 else int(shape[1])
        low, high = box(self.bounds_y, q, "bounds_y")
        middle, half = (low + high) / 2, (high - low) / 2
        shown = {"bounds": self.bounds, "data_norm": self.data_norm, "center": self.center, "bounds_y": self.bounds_y}
        cohort = self._open(X, y, groups, public=shown)

        def pair(rows: Rows) -> FloatArray:
            x, target = rows[0], rows[1].reshape(len(rows[1]), q)
            t = (np.clip(target, low, high) - middle) / half / math.sqrt(q) + 0.0 * target
            return np.concatenate((encode(x), t), axis=1)

        # Noise in zt', and in zz' times coefficients of length 1, over that of the Gaussian release
        variance = _BREAK_EVEN * 4 * (encode.dimensions + q + 1) / (1.5 * (2 + _SQUARES**2))
        pure = cohort.pure or (self.mechanism == "moments" and cohort.pure_is_quieter(variance))
        wishart, p = self.mechanism == "wishart", encode.dimensions
        if wishart or pure:
            moments = _release_joint(cohort, pair, p, q, wishart=wishart)
        else:
            moments = _release(cohort, pair, p, q)
        solve = {"adassp": _adassp, "functional": _functional}.get(self.mechanism, _shrunk)
        theta = np.stack([solve(moments, k) for k in range(q)], axis=1) * (half * math.sqrt(q))
        slopes, intercepts = encode.coefficients(theta)
        intercepts = intercepts + middle
        self.coef_ = slopes[0] if len(shape) == 1 else slopes
        self.intercept_ = float(intercepts[0]) if len(shape) == 1 else intercepts
        self._released, self._encode, self._range = moments, encode, (low, high)
        self.doubts_ = self._doubts(cohort, moments, p - 1, pure=pure or wishart)
        return cohort

    def _doubts(self, cohort: Cohort, m: _Moments, d: int, *, pure: bool) -> tuple[str, ...]:
        """What the moments say against what was declared: too few rows, features or targets that do not vary."""
        q, b0 = m.cross.shape[1], self.intercept_scaling
        length = 1 + b0**2
        doubts = Doubts(cohort, 1 + d + q, pure=pure)
        n, noise = float(m.gram[-1, -1]) * length / b0**2, m.sd * length / b0**2
        released = [
            m.gram[np.triu_indices(d + 1, 1)] / m.sd_off,
            np.diag(m.gram) / m.sd,
            np.ravel(m.cross) / m.sd_cross,
        ]
        if not doubts.rows(n, noise, np.concatenate(released)):
            return doubts.said
        mean, square = m.gram[:-1, -1] * length / (b0 * n), np.diag(m.gram)[:-1] * length / n
        variance = square - mean**2
        parts = [length * m.sd + 0 * mean, 2 * mean * length * m.sd_off / b0, (square - 2 * mean**2) * noise]
        sd = np.linalg.norm(parts, axis=0) / n
        if self.bounds is not None:
            doubts.still(feature_names(self), d * variance, d * sd)
        else:
            doubts.still(["X"], variance.sum(), math.sqrt(float((sd**2).sum())))
        middle = m.cross[-1] * math.sqrt(length * q) / (b0 * n)
        square = q * m.squares / n
        parts = [q * m.sd_squares + 0 * middle, 2 * middle * m.sd_cross * math.sqrt(length * q) / b0]
        sd = np.linalg.norm([*parts, (square - 2 * middle**2) * noise], axis=0) / n
        doubts.still(["y"] if q == 1 else [f"y{k}" for k in range(q)], square - middle**2, sd)
        return doubts.said

    def _estimating(self) -> tuple[Equations, ...]:
        count = self._released.cross.shape[1]
        return tuple(_equations(self._released, k, self._encode.intercept) for k in range(count))

    def _units(self) -> tuple[FloatArray, FloatArray]:
        matrix, _ = super()._units()
        low, high = self._range
        q = len(low)
        offsets = np.zeros((q, matrix.shape[1]))
        offsets[:, 0] = (low + high) / 2
        return ((high - low) / 2 * math.sqrt(q))[:, None, None] * matrix, offsets

    def _facts(self) -> tuple[str, list[tuple[str, str, str, str]], list[str]]:
        facts = [("Features", f"{self.n_features_in_}", "Mechanism", self.mechanism)]
        notes = [
            "The coefficients are those of rows and targets moved into their bounds",
            "The sampling variance is that of errors of one size, whatever the features (statsmodels' nonrobust)",
        ]
        return "Private linear regression", facts, notes

    def predict(self, X: Any) -> FloatArray:
        """Targets, shape (m,) or (m, q), within ``bounds_y``; rows are clipped as in the fit."""
        x = self._new_rows(X)
        out = self._encode.inside(x) @ np.asarray(self.coef_).T + self.intercept_
        return np.asarray(np.clip(out, *self._range))


def _release(cohort: Cohort, pair: Any, p: int, q: int) -> _Moments:
    """Release the upper triangle of the joint second moment of features and targets, scaled to a small sensitivity."""
    off = math.sqrt(2.0)
    weights = np.zeros((p + q, p + q))
    weights[:p, :p] = np.triu(np.full((p, p), off), 1) + np.eye(p)
    weights[:p, p:] = 1.0
    weights[p:, p:] = _SQUARES * np.eye(q)
    value, sd = cohort.sum_outer(
        lambda rows: (pair(rows), pair(rows)),
        clip=math.sqrt(2 + _SQUARES**2),
        weights=weights,
        share=1.0,
        name="second moment of features and targets",
    )
    moment = value / np.where(weights > 0, weights, 1.0)
    upper = np.triu(moment[:p, :p], 1)
    return _Moments(
        gram=upper + upper.T + np.diag(np.diag(moment[:p, :p])),
        cross=moment[:p, p:],
        squares=np.diag(moment[p:, p:]),
        sd=sd,
        sd_off=sd / off,
        sd_cross=sd,
        sd_squares=sd / _SQUARES,
    )


def _release_joint(cohort: Cohort, pair: Any, p: int, q: int, *, wishart: bool) -> _Moments:
    """Release the moments of features z and targets t, ‖(z, t)‖² <= 2, with Wishart or matrix Laplace noise.

    Noise has its sd on the diagonal, and 1/√2 of it elsewhere.
    """
    name = "second moment of features and targets"
    if wishart:
        moment, sd = cohort.wishart_moment(pair, clip=math.sqrt(2.0), share=1.0, name=name)
    else:
        moment, sd = cohort.second_moment(pair, clip=2.0, share=1.0, name=name, norm="nuclear")
    off = sd / math.sqrt(2)
    return _Moments(moment[:p, :p], moment[:p, p:], np.diag(moment)[p:], sd, off, off, sd)


def _equations(m: _Moments, k: int, const: float) -> Equations:
    """Noisy normal equations of target k, with the residual variance that the moments tell.

    That is Σ t² - b'θ over the persons, both noisy, p fewer and with what the noise in θ takes off put back. Never less
    than its own noise: where that is most of it, noise is also most of what the intervals are made of.
    """
    p = len(m.gram)
    plain = Equations(m.gram, m.cross[:, k], np.zeros(p), 0.0, m.sd_off, m.sd_cross)
    theta = plain.step
    persons = max(float(m.gram[-1, -1]) * (1 + 1 / const**2), 1.0)
    taken = float(np.trace(solved(m.gram, plain.noise(theta))))
    squared = float(theta @ theta)
    noise = math.sqrt(m.sd_squares**2 + 4 * m.sd_cross**2 * squared + 2 * m.sd_off**2 * squared**2)
    left = max(float(m.squares[k] - m.cross[:, k] @ theta) + taken, noise)
    return plain._replace(dispersion=min(left / max(persons - p, 1.0), 1.0))


def _shrunk(m: _Moments, k: int) -> FloatArray:
    """Posterior mean, over priors as likely as what was released makes them; see :class:`DPLinearRegression`."""
    values, axes = np.linalg.eigh(_believed(m))
    A = np.asarray((axes * np.maximum(values, 0.0)) @ axes.T)
    b, p = m.cross[:, k], len(A)
    residual = min(max(m.squares[k] / max(np.trace(A), 1.0), 1e-2), 1.0)
    evidence, means = [], []
    for intercept in _INTERCEPTS:
        for slope in _SLOPES:
            prior = np.append(np.full(p - 1, slope), intercept)
            size = prior.sum()  # |θ|², by which noise on the matrix counts
            for _ in range(_LOOKS):
                law = (A * prior) @ A + (m.sd_cross**2 + m.sd_off**2 * size) * np.eye(p)
                mean = prior * (A @ np.linalg.solve(law, b))
                size = min(prior.sum(), float(mean @ mean))
            factor = np.linalg.cholesky(law + residual * A)
            misfit = np.linalg.solve(factor, b)
            evidence.append(-0.5 * misfit @ misfit - np.log(np.diag(factor)).sum())
            means.append(mean)
    weights = np.exp(np.array(evidence) - max(evidence))
    return np.asarray(weights @ np.array(means) / weights.sum())


def _believed(m: _Moments) -> FloatArray:
    """Posterior mean (p, p) of Σ zz', entry by entry: of noise alone it is even, and has no directions of its own."""
    d = len(m.gram) - 1
    squares, upper = np.diag(m.gram)[:-1], np.triu_indices(d, 1)
    usual = float(above_zero(squares.mean(), m.sd**2 / d))
    size = float(above_zero(m.gram[-1, -1], m.sd**2))
    out = np.zeros((d + 1, d + 1))
    out[upper] = _about_common(m.gram[upper], m.sd_off**2, usual**2)
    out[:-1, -1] = _about_common(m.gram[:-1, -1], m.sd_off**2, usual * size)
    out += out.T
    out[np.diag_indices(d)] = np.maximum(empirical_bayes(squares, m.sd**2, usual, usual**2)[0], 0.0)
    out[-1, -1] = size
    return out


def _about_common(values: FloatArray, noise: float, scale: float) -> FloatArray:
    """Posterior means of values, with noise of this variance, about their common mean, itself about 0."""
    common = 0.0
    if len(values) > 1:
        mean, left = float(values.mean()), noise / len(values)
        common = float(empirical_bayes(mean, left, 0.0, scale)[0])
    return empirical_bayes(values, noise, common, scale)[0]


def _adassp(m: _Moments, k: int) -> FloatArray:
    """Ridge max(0, √(2p) s - λ_min), where √(2p) s is the norm of the noise on the matrix (Wang 2018)."""
    values, axes = np.linalg.eigh(m.gram)
    ridge = max(0.0, math.sqrt(2 * len(values)) * m.sd - float(values[0]))
    return np.asarray(axes @ ((axes.T @ m.cross[:, k]) / np.maximum(values + ridge, 0.25 * m.sd)))


def _functional(m: _Moments, k: int) -> FloatArray:
    """Ridge of four standard deviations; directions in which the noisy quadratic has no minimum are left out."""
    values, axes = np.linalg.eigh(m.gram)
    curvature = values + 4 * m.sd
    inverse = np.where(curvature > 0, 1 / np.where(curvature > 0, curvature, 1.0), 0.0)
    return np.asarray(axes @ (inverse * (axes.T @ m.cross[:, k])))
