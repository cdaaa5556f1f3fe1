"""Private linear regression from one noisy second moment of features and targets.

Sources: Vu & Slavkovic (2009), doi:10.1109/ICDMW.2009.52 and Wang (2018), arXiv:1803.02596 (sufficient statistics and
AdaSSP); Zhang et al. (2012), arXiv:1208.0219 (functional mechanism); Dwork et al. (2014), doi:10.1145/2591796.2591883
(Gaussian noise on second moments); Sheffet (2015), arXiv:1507.00056 (Wishart noise).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fdadp._common.argument_checks import is_one_of
from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError
from fdadp.learners.coefficient_intervals import CoefficientIntervals, Equations, solved
from fdadp.learners.linear_regression_by_rounds import doubts_of_rounds, fit_rounds
from fdadp.learners.shared._declared_vs_released import Doubts
from fdadp.learners.shared._estimator_base import PrivateRegressor
from fdadp.learners.shared.noisy_second_moments import (
    CLIP,
    JOINT_CLIP,
    RowMoments,
    believed_moment,
    posterior_coefficients,
    release_moments,
)
from fdadp.learners.shared.public_encoding import feature_names
from fdadp.learners.shared.public_inputs import UnitRows, as_table, as_target, box, box_of
from fdadp.privacy import Cohort
from fdadp.privacy.account.epsilon_mu_rho import noise_multiplier, unit_noise
from fdadp.privacy.rows._sealed_row_functions import Rows
from fdadp.rounds.budget_plan import COUNT, RoundsPlan, counted_persons

_MECHANISMS = ("moments", "rounds", "adassp", "functional", "wishart")
_BREAK_EVEN = 0.75
"""Pure noise of this variance and Gaussian noise of variance 1 give the same R², by fits of 2 to 14 features."""


@dataclass(kw_only=True, eq=False, repr=False)
class DPLinearRegression(CoefficientIntervals, PrivateRegressor):
    """Linear regression for one or several targets, differentially private.

    With four features or more, a δ and 1,000 rows times ε take :class:`DPAdditiveRegressor` first. With a δ this
    learner spends pure ε where its noise is no worse (at δ = 1e-6 and ε = 1: up to 15 features).

    Parameters
    ----------
    epsilon, delta, n, adjacency, unit, labels, budget, dataset, random_state, study, purpose
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
    mechanism : {"moments", "rounds", "adassp", "functional", "wishart"}, optional
        Default: ``"rounds"`` where n is declared, n ε is 500 or more and places can be found (``plan(n, d).worth(ε)``);
        else ``"moments"``. ``"rounds"``: places and sizes by counts, then moments, then gradients on residuals. Bounds
        may be thousands of times too wide (``docs/theory/rounds.md``); a private n is released first. All others have
        one release of moments, and noise by the bounds. ``"moments"``: shrinkage by the noise, which is known.
        ``"adassp"``: the ridge of Wang (2018), which keeps the noisy matrix well conditioned (wants a δ); ahead at most
        where n ε is so small that hardly anything is explained. ``"functional"``: a fixed ridge of four standard
        deviations, and no directions without a minimum (pure ε). It is the functional mechanism, corrected, and only
        for comparison. ``"wishart"``: as ``"moments"`` from a release with Wishart noise (Sheffet 2015), which needs
        one row a person, a δ and a whole budget. Beyond ε of about 1 its noise hardly falls any more, so it is for
        comparison. Measured: ``docs/learners.md#other-mechanisms``.
    intercept_scaling : float
        b0, the value of the constant feature, in units of ``data_norm`` (with bounds: of the box's half diagonal).

    Attributes
    ----------
    coef_ : ndarray of shape (d,) or (q, d)
        Target's units per unit of a feature, within the ball.
    intercept_ : float or ndarray of shape (q,)
    mechanism_ : str
        That was taken.
    walls_ : ndarray of shape (2, d)
        Of rounds: features count as moved to these walls, and slopes are those between them.
    ledger_, privacy_spent_

    ``conf_int()``, ``coef_table()`` and ``summary()`` have standard errors and intervals of the coefficients, for free.

    Notes
    -----
    *Sensitivity, with a δ* (proof: ``docs/theory/learners.md#linear-regression``). A row is encoded as z = (clip(x -
    center)/R, b0)/√(1 + b0²) in R^p, ‖z‖ <= 1, p = d + 1, and t in R^q with ‖t‖ <= 1. Released is one vector: z_i², √2
    z_i z_j (i < j), z_i t_k and 0.3 t_k². Its squared L2 norm is ‖z‖⁴ + ‖z‖²‖t‖² + 0.09 Σ t_k⁴ <= 2.09. The kernel
    clips to that itself. Pure ε: the second moment of a = (z, t), whose nuclear norm is ‖a‖² <= 2, with matrix Laplace
    noise. One joint release has less noise than a share of the budget for each moment; the smallest eigenvalue, for
    which AdaSSP spends a third, is taken from the noisy matrix. Wishart: ‖(z, t)‖² <= 2, see
    :mod:`fdadp.privacy.noise._matrix_noise`.

    *Shrinkage.* A is estimated from the noisy Σ zz'. It has posterior means of the entries about common values (of the
    squares, of the products of two features, of their sums), with spreads estimated from them. Negative eigenvalues are
    put to 0. Given A, Σ zt ~ N(Aθ, s² I + σ²A), where s² contains the noise on the matrix times θ, priced by the
    estimate itself. With θ ~ N(0, P), P = τ² for slopes and another for the intercept, the estimate is P A (A P A + s²
    I)⁻¹ Σ zt. It is averaged over public pairs of variances with their marginal likelihoods as weights. As the noise
    goes to 0 so does s, and it becomes that of least squares.

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
    mechanism: str | None = None
    mechanism_: str = field(init=False)
    walls_: FloatArray = field(init=False)

    def _learn(self, X: Any, y: Any, groups: ArrayLike | None) -> Cohort:
        """Release the moments, and solve; or fit by rounds."""
        self._check_mechanism(groups)
        d, shape = int(as_table(X).shape[1]), as_target(y).shape
        q = 1 if len(shape) == 1 else int(shape[1])
        encode = self._encoding(d)
        low, high = box(self.bounds_y, q, "bounds_y")
        shown = {"bounds": self.bounds, "data_norm": self.data_norm, "center": self.center, "bounds_y": self.bounds_y}
        cohort = self._open(X, y, groups, public=shown)
        self._range = low, high
        self.mechanism_ = self.mechanism or _default_mechanism(cohort, d, q, self.epsilon)
        theta = self._by_rounds(cohort, d, q) if self.mechanism_ == "rounds" else self._by_moments(cohort, encode, q)
        slopes, intercepts = self._encode.coefficients(theta)
        intercepts = intercepts + self._middle
        self.coef_ = slopes[0] if len(shape) == 1 else slopes
        self.intercept_ = float(intercepts[0]) if len(shape) == 1 else intercepts
        return cohort

    def _check_mechanism(self, groups: ArrayLike | None) -> None:
        """Refuse a mechanism that is unknown, or cannot have the budget or the groups."""
        if not is_one_of(self.mechanism, (None, *_MECHANISMS)):
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

    def _by_moments(self, cohort: Cohort, encode: UnitRows, q: int) -> FloatArray:
        """Coefficients (p, q) of encoded rows, in the targets' units, from one release."""
        low, high = self._range
        middle, half = (low + high) / 2, (high - low) / 2

        def pair(rows: Rows) -> FloatArray:
            x, target = rows[0], rows[1].reshape(len(rows[1]), q)
            t = (np.clip(target, low, high) - middle) / half / math.sqrt(q) + 0.0 * target
            return np.concatenate((encode(x), t), axis=1)

        # Noise in zt', and in zz' times coefficients of length 1, over that of the Gaussian release
        variance = _BREAK_EVEN * 4 * (encode.dimensions + q + 1) / (1.5 * CLIP**2)
        pure = cohort.pure or (self.mechanism_ == "moments" and cohort.pure_is_quieter(variance))
        wishart, p = self.mechanism_ == "wishart", encode.dimensions
        moments = release_moments(cohort, pair, p, q, joint=pure, wishart=wishart)
        self._encode, self._middle, self._unit = encode, middle, half * math.sqrt(q)
        self._equations = tuple(_equations(moments, k, encode.intercept) for k in range(q))
        self.doubts_ = self._doubts(cohort, moments, p - 1, pure=pure or wishart)
        if self.mechanism_ in ("adassp", "functional"):
            return _ridge(moments, self.mechanism_) * self._unit
        A = believed_moment(moments)
        return np.stack([posterior_coefficients(moments, A, k)[0] for k in range(q)], axis=1) * self._unit

    def _by_rounds(self, cohort: Cohort, d: int, q: int) -> FloatArray:
        """The same by rounds on residuals."""
        n, left = counted_persons(cohort)
        plan = _plan_of(n, d, q, unit_noise(cohort, 1.0), pure=cohort.pure, left=left)
        low, high = (
            np.append(x, y)
            for x, y in zip(box_of(self.bounds, self.data_norm, self.center, d), self._range, strict=True)
        )
        found = fit_rounds(cohort, plan, low, high, self.intercept_scaling)
        self._encode, self._middle, self._unit = found.encode, found.middle, found.unit
        self._equations = found.equations
        self.walls_ = np.stack([found.encode.bottom, found.encode.top])
        names = [*feature_names(self), *_targets(q)]
        self.doubts_ = doubts_of_rounds(cohort, found.moments, found.places, names, self.intercept_scaling)
        return found.theta * found.unit

    def _doubts(self, cohort: Cohort, m: RowMoments, d: int, *, pure: bool) -> tuple[str, ...]:
        """What the moments say against what was declared: too few rows, features or targets that do not vary."""
        q, b0 = m.cross.shape[1], self.intercept_scaling
        length = 1 + b0**2
        doubts = Doubts(cohort, 1 + d + q, pure=pure)
        n, noise = float(m.gram[-1, -1]) * length / b0**2, m.sd * length / b0**2
        if not doubts.rows(n, noise, m.in_noise):
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
        doubts.still(_targets(q), square - middle**2, sd)
        return doubts.said

    def _estimating(self) -> tuple[Equations, ...]:
        return self._equations

    def _units(self) -> tuple[FloatArray, FloatArray]:
        matrix, _ = super()._units()
        offsets = np.zeros((len(self._middle), matrix.shape[1]))
        offsets[:, 0] = self._middle
        return self._unit[:, None, None] * matrix, offsets

    def _facts(self) -> tuple[str, list[tuple[str, str, str, str]], list[str]]:
        facts = [("Features", f"{self.n_features_in_}", "Mechanism", self.mechanism_)]
        notes = [
            "The coefficients are those of rows and targets moved into their bounds",
            "The sampling variance is that of errors of one size, whatever the features (statsmodels' nonrobust)",
        ]
        if self.mechanism_ == "rounds":
            notes.append("Slopes are those within walls_, where walls are narrower than bounds")
        return "Private linear regression", facts, notes

    def plan(self, n: int, d: int, q: int = 1) -> RoundsPlan:
        """What each release of a fit by rounds would get of the budget, and its noise; reads and spends nothing.

        Parameters
        ----------
        n : int
            Number of persons.
        d, q : int
            Numbers of features and targets.

        Returns
        -------
        RoundsPlan
            Printed as a table; ``worth(epsilon)`` says whether rounds pay.

        Examples
        --------
        >>> plan = DPLinearRegression(epsilon=1.0, delta=1e-6, bounds=(-1, 1), bounds_y=(-1, 1)).plan(5000, 8)
        >>> plan.worth(1.0), round(plan.moments, 3)
        (True, 0.46)
        """
        settings = self._settings()
        budget, share = settings.budget_share(self._accounting)
        noise = noise_multiplier(budget.total * share, settings.stated_adjacency, pure=budget.pure)
        left = 1 - COUNT if settings.stated_adjacency == "add-remove" else 1.0
        return _plan_of(n, d, q, noise, pure=budget.pure, left=left)

    def predict(self, X: Any) -> FloatArray:
        """Targets, shape (m,) or (m, q), within ``bounds_y``; rows are clipped as in the fit."""
        x = self._new_rows(X)
        out = self._encode.inside(x) @ np.asarray(self.coef_).T + self.intercept_
        return np.asarray(np.clip(out, *self._range))


def _targets(q: int) -> list[str]:
    """Names of targets, for doubts."""
    return ["y"] if q == 1 else [f"y{k}" for k in range(q)]


def _default_mechanism(cohort: Cohort, d: int, q: int, epsilon: float) -> str:
    """Rounds where n is declared and they pay, by public numbers alone."""
    if cohort.n is None:
        return "moments"
    plan = _plan_of(cohort.n, d, q, unit_noise(cohort, 1.0), pure=cohort.pure)
    return "rounds" if plan.worth(epsilon) else "moments"


def _plan_of(n: float, d: int, q: int, noise: float, *, pure: bool, left: float = 1.0) -> RoundsPlan:
    """The plan of rounds, of the noise that the whole budget leaves on a sum of sensitivity 1."""
    return RoundsPlan(float(n), d, q, noise / n, pure, left, JOINT_CLIP if pure else CLIP)


def _equations(m: RowMoments, k: int, const: float) -> Equations:
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


def _ridge(m: RowMoments, mechanism: str) -> FloatArray:
    """Solution (p, q) of the noisy equations with a ridge.

    Of AdaSSP max(0, √(2p) s - λ_min), where √(2p) s is the norm of the noise on the matrix (Wang 2018). Of the
    functional mechanism four standard deviations; directions in which its quadratic has no minimum are left out.
    """
    values, axes = np.linalg.eigh(m.gram)
    if mechanism == "adassp":
        values = np.maximum(values + max(0.0, math.sqrt(2 * len(values)) * m.sd - float(values[0])), 0.25 * m.sd)
    else:
        values = np.where(values + 4 * m.sd > 0, values + 4 * m.sd, math.inf)
    return np.asarray(axes @ ((axes.T @ m.cross) / values[:, None]))
