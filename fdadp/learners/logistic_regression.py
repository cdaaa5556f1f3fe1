"""Private logistic regression: noise in the objective, on its minimiser, or on every gradient.

Sources: Chaudhuri, Monteleoni & Sarwate (2011), JMLR 12; Kifer, Smith & Thakurta (2012), COLT; Redberg, Koskela & Wang
(2023), arXiv:2401.00583, for the privacy of objective perturbation of generalised linear models; Iyengar et al. (2019),
doi:10.1109/SP.2019.00001, for noise on an approximate minimum, by which the kernel makes up for computing in floats.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import expit, softmax

from fdadp._common.argument_checks import flag, one_of, whole
from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError
from fdadp.learners.coefficient_intervals import CoefficientIntervals, Equations
from fdadp.learners.linear_regression_by_rounds import PlacedRows, doubts_of_rounds, placed_rows
from fdadp.learners.shared._declared_vs_released import Doubts
from fdadp.learners.shared._estimator_base import ScoringClassifier
from fdadp.learners.shared.noisy_second_moments import (
    RowMoments,
    believed_moment,
    posterior_coefficients,
    release_moments,
)
from fdadp.learners.shared.public_encoding import feature_names
from fdadp.learners.shared.public_inputs import as_table, box_of, class_array, class_labels, positive
from fdadp.privacy import Cohort, Privacy, rowwise_matmul
from fdadp.privacy.account.epsilon_mu_rho import gaussian_multiplier, replaced_multiplier, unit_noise
from fdadp.privacy.rows._rowwise_arithmetic import rowwise_sum
from fdadp.privacy.rows._sealed_row_functions import Rows
from fdadp.rounds.budget_plan import FIRST, PlacesPlan, counted_persons
from fdadp.rounds.posterior_means import gaussian_update

_MECHANISMS = ("objective", "output", "gradient", "rounds")
_STEEPEST = 6.0
"""Largest factor of logits over the coefficients of labels -1 and 1."""
_ROUNDS = 3
"""Gradients of rounds."""
_WRONG = 0.3
"""Share of a step that may be off, as the curvature is that of normal logits, and the first step that of a line."""
_FEW_CLASSES = 3
"""Of "auto": with more of them one softmax beats one problem for each class."""
_USUAL_N = 3000
"""Number of persons for which the default λ is set where n is neither declared nor guessed, nor counted as less."""
_POINTS = np.linspace(-4.0, 4.0, 81)
_MASSES = np.exp(-(_POINTS**2) / 2) / np.exp(-(_POINTS**2) / 2).sum()
"""Of a normal law."""
_COUNT = 0.02
"""Share of the budget for the number of usable rows, where n is private and a mechanism can take it beside."""
_NUMBERS = np.geomspace(100, 1e9, 2000)
"""Numbers of persons that are believed in evenly before they are counted."""
_WORTH = 2.5
"""So much more noise in the objective is taken for a count beside it: λ for 3,000 rows is far too small for 300."""
_CURVATURE = 0.15
"""Share of ε for the curvature at the fit, where intervals are wanted (benchmarks/learners/results/curvature.md)."""
_LARGEST_CURVATURE = 0.25
"""Of the logistic loss, along a row of length 1."""


def default_regularization(
    epsilon: float, delta: float | None, dimensions: int, *, problems: int = 1, n: float | None = None, steps: int = 1
) -> float:
    """λ of the sum of losses, from public numbers alone.

    ``max(5.5 (‖b‖/√n)^(5/4), 1/(4 (exp(ε/(3K)) - 1)))``, ‖b‖ the usual length of the linear term that meets (ε, δ).

    The first term balances what noise does to the minimiser against shrinkage. Its factor was chosen by accuracy on
    Adult's training rows and three small data sets (n from 281 to 26 049, 15 to 92 dimensions, ε from 0.1 to 5;
    ``docs/decisions/0013-constants-of-the-learners.md``). With the second the Jacobian of objective perturbation costs
    at most ε/3.

    Parameters
    ----------
    epsilon, delta : float
        delta None: pure ε.
    dimensions : int
        Features and intercept.
    problems : int
        K: 1 with two classes, else one for each class.
    n : float, optional
        Declared or released number of persons, or a public guess; default 3 000.
    steps : int
        2 with adjacency "replace", which is two steps of adding or removing.

    Returns
    -------
    float

    Examples
    --------
    >>> round(default_regularization(1.0, 1e-6, 10, n=10_000), 2)
    0.63
    """
    length = _usual_length(epsilon, delta, dimensions, problems, steps)
    if delta is not None and steps == 2:
        epsilon /= 2
    jacobian = 0.25 / math.expm1(min(epsilon / (3 * problems), 50.0))
    return float(min(max(5.5 * (length / math.sqrt(n or _USUAL_N)) ** 1.25, jacobian, 0.01), 1e9))


def _usual_length(epsilon: float, delta: float | None, dimensions: int, problems: int, steps: int) -> float:
    """Usual length of the linear term of a problem that meets (ε, δ); arguments as above."""
    if delta is None:
        return steps * problems * dimensions / epsilon
    most = replaced_multiplier if steps == 2 else gaussian_multiplier
    return math.sqrt(dimensions) / most(epsilon, delta, 1e9, problems)


@dataclass(kw_only=True, eq=False, repr=False)
class DPLogisticRegression(CoefficientIntervals, ScoringClassifier):
    """Logistic regression for two or more classes, differentially private.

    Parameters
    ----------
    epsilon, delta, n, adjacency, unit, labels, budget, dataset, random_state, study, purpose
        The guarantee: the parameters of :class:`fdadp.Privacy`.
    classes : sequence
        Public labels. A row with another label counts as no row.
    bounds : (low, high), optional
        Public range of each feature, a number or d numbers each; values are clipped to it.
    data_norm : float, optional
        Instead of ``bounds``: public bound on the L2 norm of a row about ``center``; longer rows are shortened to it.
        A ball much smaller than the box around it means that much less noise.
    center : float or array_like of shape (d,)
        Public; with ``data_norm``.
    mechanism : {"auto", "objective", "output", "gradient", "rounds"}
        ``"auto"``: the next with up to three classes, else ``"gradient"``. ``"objective"``: a random linear term in the
        objective (Laplace-like for pure ε, Gaussian else). It wants one row a person, and with a δ a whole budget. On a
        budget of its own it spends pure ε, although a δ is given, where that has less noise (two classes, ε = 1 and δ =
        1e-5: up to 12 features). Where n is private, no guess is given and λ is the default, it does so up to 2.5 times
        as much noise (up to some 80 features), for then rows can be counted. With ``n`` or ``about_n`` a δ gains from
        some 25 features on. ``"output"``: noise on the minimiser; worth trying with a δ and many features that say the
        same. ``"gradient"``: gradient descent with noise on each gradient, for more than two classes of the softmax
        loss. It is worth taking for several rows a person, or a shared budget with a δ. ``"rounds"``, of two classes:
        places and sizes by counts, then one second moment, then gradients as of :class:`DPLinearRegression`. Bounds may
        be thousands of times too wide, and a private n is released first. It is worth taking where ranges may be three
        times too wide or more, from n ε of about 1,000 on with a δ (pure: 5,000). Measured:
        ``docs/learners.md#other-mechanisms``.
    regularization : float, optional
        λ of ``Σ loss + (λ/2) ‖w‖²``, w in the units of rows scaled to norm 1, intercept included. Default:
        :func:`~fdadp.learners.logistic_regression.default_regularization` (ten times that for ``"output"``), by the
        declared n, or a noisy number of rows (2 % of pure ε, with ``"objective"``), at most 3,000, or ``about_n``.
    intercept_scaling : float
        b0, the value of the constant feature, in units of ``data_norm``.
    about_n : int, optional
        Public guess of the number of persons, by which λ is set where n is private, instead of a count; where there is
        neither, 3,000. Only a guess: the guarantee does not rest on it.
    n_steps : int, optional
        Gradients of ``"gradient"``; default: from λ and n, 10 to 100.
    inference : bool
        Whether 15 % of ε go to the curvature of the loss at the fit, which ``conf_int()``, ``coef_table()`` and
        ``summary()`` need: standard errors and intervals of the coefficients. It spends pure ε, also where a δ is
        given. With two classes and ``"objective"`` only: the gradient at such a fit is known but for noise of a known
        distribution. At the mean of noisy steps of ``"gradient"``, and at the noisy minimiser of ``"output"``, it is
        not.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
    coef_ : ndarray of shape (1, d) or (K, d)
        Logits per unit of a feature, within the ball.
    intercept_ : ndarray of shape (1,) or (K,)
    regularization_ : float
        λ that was used; 0 by rounds, which shrink by what noise is known to be.
    walls_ : ndarray of shape (2, d)
        Of rounds: features count as moved to these walls.
    mechanism_ : str
        The mechanism that was used.
    ledger_, privacy_spent_

    Notes
    -----
    A row is encoded as z = (clip(x - center)/R, b0)/√(1 + b0²), ‖z‖ <= 1, and every coordinate is regularised. Then a
    loss log(1 + exp(-t z'w)) has a gradient of norm at most 1 and a Hessian of rank one and norm at most 1/4.

    *Objective.* w = argmin Σ loss + (λ/2)‖w‖² + b'w. Given the data, w ↔ b is one to one: b(w) = -(Σ gradient + λw).
    One person changes b(w) by its gradient s z, ``|s| <= 1`` with a sign that the label alone decides, and the
    determinant of the Jacobian by a factor between 1 and 1 + 1/(4λ). Pure: the density of b is ∝ exp(-ε' ‖b‖), ε' = ε -
    log(1 + 1/(4λ)). Gaussian: see ``accounting.gaussian_multiplier``. For K > 2 classes there are K problems, one
    against the rest, with a b each; the Gaussian losses are composed exactly. Rows are counted before, for 2 % of a
    pure ε: both compose, λ being made of what was released. The minimiser is computed in floats, so 1 % of (ε, δ) goes
    to noise on it that covers the distance to the exact one. This is approximate minima perturbation (Iyengar et al.
    2019), with a tolerance so small that the noise does not matter. *Output.* Minimisers of neighbouring data are at
    most 1/λ apart in each problem, √K/λ together (strong convexity). *Gradient.* One person adds at most 1 (two
    classes) or √2 (softmax: ‖p - e_y‖ <= √2) to a gradient.

    Rows are shortened to the ball for prediction too.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 3))
    >>> y = np.where(X[:, 0] + 0.3 * rng.normal(size=5000) > 0, "yes", "no")
    >>> model = DPLogisticRegression(epsilon=1.0, delta=1e-6, classes=["no", "yes"], data_norm=3.0, random_state=0)
    >>> bool(model.fit(X, y).score(X, y) > 0.9)
    True
    """

    mechanism: str = "auto"
    regularization: float | None = None
    about_n: int | None = None
    n_steps: int | None = None
    inference: bool = False
    walls_: FloatArray = field(init=False)

    def _learn(self, X: Any, y: Any, groups: ArrayLike | None) -> Cohort:
        """Release a minimiser, or gradients, and keep what they say."""
        labels = class_labels(self.classes)
        K = 1 if len(labels) == 2 else len(labels)
        mechanism = one_of(self.mechanism, "mechanism", ("auto", *_MECHANISMS))
        if self.about_n is not None:
            whole(self.about_n, "about_n")
        if mechanism == "auto":
            mechanism = "gradient" if len(labels) > _FEW_CLASSES else "objective"
        if self.n_steps is not None:
            whole(self.n_steps, "n_steps")
        _check_inference(self, K)
        d = int(as_table(X).shape[1])
        encode = self._encoding(d)
        settings = self._settings()
        if mechanism == "rounds" and K > 1:
            raise InputError(f'mechanism must be another one than "rounds" with {K} classes, which wants two')
        if mechanism == "rounds":
            return _by_rounds(self, X, y, groups, labels)
        if mechanism == "objective":
            self._wants_whole_budget(groups, '"output" or "gradient"', mechanism)
            settings = self._quieter(settings, encode.dimensions, K)
        n: float | None = settings.n or self.about_n
        ridge = _ridge(self.regularization, settings, encode.dimensions, K, mechanism, n)
        by_count = _sets_ridge_by_count(self, settings, mechanism)
        shown = {"classes": labels, "bounds": self.bounds, "data_norm": self.data_norm, "center": self.center}
        if not by_count:
            shown["regularization"] = ridge
        cohort = self._open(X, y, groups, classes=labels, public=shown, settings=settings)

        def problems(rows: Rows) -> tuple[FloatArray, FloatArray]:
            x, code = rows
            at = code[:, None]
            target = 2 * at - 1 if K == 1 else np.where(at == np.arange(K), 1.0, -1.0) + 0.0 * at
            return encode(x), target  # an unknown label is NaN: the kernel leaves the row out

        self.mechanism_, self._encode, share = mechanism, encode, 1.0
        if by_count or (mechanism == "gradient" and settings.n is None):
            (n, self.doubts_), share = _count(cohort, problems, self.about_n), 1 - _COUNT
            if by_count:
                ridge = _ridge(self.regularization, settings, encode.dimensions, K, mechanism, min(n, _USUAL_N))
        if mechanism == "gradient":
            assert n is not None
            w = _descend(cohort, problems, (encode.dimensions, K), ridge, n, share, self.n_steps)
        else:
            share -= _CURVATURE if self.inference else 0.0
            w, sd = cohort.perturbed_minimum(
                problems, loss="logistic", perturb=mechanism, ridge=ridge, share=share, name="logistic regression"
            )
            self._at_fit = _curvature(cohort, problems, w[:, 0], ridge, sd) if self.inference else None
        self.classes_ = class_array(labels)
        self.coef_, self.intercept_ = encode.coefficients(w)
        self.regularization_ = ridge
        return cohort

    def _settings(self) -> Privacy:
        found = super()._settings()
        return replace(found, delta=None) if self.inference else found

    def _estimating(self) -> tuple[Equations, ...]:
        if not self.inference or self._at_fit is None:
            raise InputError("inference must be True in the fit whose coefficients are to have intervals, got False")
        return (self._at_fit,)

    def _facts(self) -> tuple[str, list[tuple[str, str, str, str]], list[str]]:
        facts = [
            ("Features", f"{self.n_features_in_}", "Mechanism", self.mechanism_),
            ("Odds of", str(self.classes_[1]), "Regularization", f"{self.regularization_:.4g}, taken off again"),
        ]
        notes = [
            "The coefficients are those of rows moved into their bounds",
            "The sampling variance is that of the model (statsmodels' nonrobust)",
        ]
        return "Private logistic regression", facts, notes

    def _quieter(self, of: Privacy, dimensions: int, K: int) -> Privacy:
        """Pure ε, which is more than was asked for, where the linear term is no longer so, or rows can be counted."""
        if of.delta is None or self.budget is not None or self.study is not None:
            return of
        steps = _steps(of)
        pure, other = (_usual_length(of.epsilon, delta, dimensions, K, steps) for delta in (None, of.delta))
        counts = _sets_ridge_by_count(self, replace(of, delta=None), "objective")
        pays = _WORTH if counts else 1.0
        return replace(of, delta=None) if pure <= pays * other else of

    def decision_function(self, X: Any) -> FloatArray:
        """Logits: of the second class, shape (m,), or of each class, shape (m, K)."""
        x = self._new_rows(X)
        logits = self._encode.inside(x) @ self.coef_.T + self.intercept_
        return np.asarray(logits[:, 0] if len(self.classes_) == 2 else logits)

    def _shares(self, score: FloatArray) -> FloatArray:
        """Of one-against-the-rest problems normalised, else softmax."""
        if self.mechanism_ == "gradient":
            return np.asarray(softmax(score, axis=1))
        each = expit(score) + 1e-300
        return np.asarray(each / each.sum(axis=1, keepdims=True))

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Log-probabilities of the classes, shape (m, K)."""
        return np.asarray(np.log(self.predict_proba(X)))


def _check_inference(of: DPLogisticRegression, K: int) -> None:
    """Refuse intervals of coefficients where there are none to be had."""
    flag(of.inference, "inference")
    if of.inference and K > 1:
        raise InputError(f"inference must be False with more than two classes, got True with {K} of them")
    budget = of.budget if of.inference else None
    if (budget is not None and budget.delta is not None) or (of.inference and of._settings().delta is not None):
        raise InputError("budget or study must be one of pure epsilon with inference=True, got one with a delta")
    if of.inference and of.mechanism not in ("auto", "objective"):
        raise InputError(f'mechanism must be "objective" with inference=True, got "{of.mechanism}"')


def _sets_ridge_by_count(model: DPLogisticRegression, of: Privacy, mechanism: str) -> bool:
    """Whether the default λ is set by a noisy number of rows, which costs pure ε beside objective perturbation."""
    beside = mechanism == "objective" and of.delta is None and of.n is None
    return beside and model.about_n is None and model.regularization is None


def _ridge(given: float | None, of: Privacy, dimensions: int, K: int, mechanism: str, n: float | None) -> float:
    """λ as given, or the default one."""
    if given is not None:
        return positive(given, "regularization")
    ridge = default_regularization(of.epsilon, of.delta, dimensions, problems=K, n=n, steps=_steps(of))
    return ridge * (10 if mechanism == "output" else 1)


def _count(cohort: Cohort, problems: Any, about: int | None) -> tuple[float, tuple[str, ...]]:
    """Release the number of usable rows; its geometric mean given that, and doubts about it."""

    def usable(rows: Rows) -> FloatArray:
        z, t = problems(rows)
        return np.asarray(1.0 + 0.0 * (z.sum(axis=1) + t.sum(axis=1))[:, None])  # NaN counts as no row

    count, sd = cohort.sum(usable, clip=1.0, share=_COUNT, name="number of usable rows", nonnegative=True)
    doubts = Doubts(cohort)
    doubts.rows(float(count[0]), sd, count / sd, about=about)
    away = np.abs(count[0] - _NUMBERS) / sd
    law = -math.sqrt(2) * away if cohort.pure else -0.5 * away**2
    likely = np.exp(law - law.max())
    return float(np.exp(likely @ np.log(_NUMBERS) / likely.sum())), doubts.said


def _curvature(cohort: Cohort, problems: Any, w: FloatArray, ridge: float, sd: float) -> Equations:
    """Release the curvature of the loss at w. The gradient there is known but for the random linear term."""

    def bent(rows: Rows) -> FloatArray:
        z, t = problems(rows)
        p = expit(rowwise_matmul(z, w[:, None]))
        return np.asarray(z * np.sqrt(p * (1 - p)) + 0.0 * t)

    found = cohort.second_moment(bent, clip=_LARGEST_CURVATURE, share=_CURVATURE, name="curvature at the fit")
    return Equations(found.value, ridge * w, w, 1.0, found.sd / math.sqrt(2), sd)


def _descend(
    cohort: Cohort, problems: Any, shape: tuple[int, int], ridge: float, n: float, share: float, steps: int | None
) -> FloatArray:
    """Accelerated gradient descent (Nesterov) on noisy gradients; mean of the last half of its points, (D, K)."""
    D, K = shape
    data = cohort.derive(problems, name="encoded rows")
    steepest = n * (0.25 if K == 1 else 0.5) + ridge
    T = steps or int(min(max(math.ceil(2 * math.sqrt(steepest / ridge)), 10), 100))
    bound, norm = 1.0 if K == 1 else math.sqrt(2.0), "nuclear" if cohort.pure else None
    momentum = (math.sqrt(steepest) - math.sqrt(ridge)) / (math.sqrt(steepest) + math.sqrt(ridge))
    w = ahead = np.zeros((D, K))
    points = []
    for step in range(T):
        at = ahead

        def errors(rows: Rows, at: FloatArray = at) -> tuple[FloatArray, FloatArray]:
            z, t = rows
            logits = rowwise_matmul(z, at)
            return z, (expit(logits) if K == 1 else _softmax(logits)) - (t + 1) / 2

        total, _ = data.sum_outer(errors, clip=bound, share=share / T, name=f"gradient {step + 1}", norm=norm)
        new = ahead - (total + ridge * ahead) / steepest
        ahead = new + momentum * (new - w)
        w = new
        points.append(w)
    return np.asarray(np.mean(points[T // 2 :], axis=0))


def _by_rounds(model: DPLogisticRegression, X: Any, y: Any, groups: ArrayLike | None, labels: list[Any]) -> Cohort:
    """Fit two classes by places, one second moment and gradients."""
    d = int(as_table(X).shape[1])
    low, high = box_of(model.bounds, model.data_norm, model.center, d)
    shown = {"classes": labels, "bounds": model.bounds, "data_norm": model.data_norm, "center": model.center}
    cohort = model._open(X, y, groups, classes=labels, public=shown)
    n, left = counted_persons(cohort)
    plan = PlacesPlan(n, d, 0, unit_noise(cohort, 1.0) / n, cohort.pure, left)

    def values(rows: Rows) -> FloatArray:
        return np.asarray(np.clip(rows[0], low, high) + 0.0 * (rows[0] + rows[1][:, None]).sum(axis=1, keepdims=True))

    encode, places = placed_rows(cohort, plan, values, values, low, high, model.intercept_scaling)
    w, moments = _rounds(cohort, plan, encode)
    model.doubts_ = doubts_of_rounds(cohort, moments, places, feature_names(model), model.intercept_scaling)
    model.mechanism_, model._encode, model._at_fit, model.regularization_ = "rounds", encode, None, 0.0
    model.walls_ = np.stack([encode.bottom, encode.top])
    model.classes_ = class_array(labels)
    model.coef_, model.intercept_ = encode.coefficients(w[:, None])
    return cohort


def _rounds(cohort: Cohort, plan: PlacesPlan, encode: PlacedRows) -> tuple[FloatArray, RowMoments]:
    """Coefficients (d + 1,) of placed rows by one second moment and gradients, and the moment.

    *Sensitivity.* |z| <= 1 and |w t| <= 1 as of linear regression; then z (y - p) w has norm 1 at most, and rank one.
    """

    def pair(rows: Rows) -> FloatArray:
        return np.concatenate((encode(rows[0]), (2 * rows[1][:, None] - 1) * encode.weight(rows[0])), axis=1)

    moments = release_moments(cohort, pair, encode.dimensions, 1, share=FIRST * plan.rest)
    A = believed_moment(moments)
    line, covariance = posterior_coefficients(moments, A, 0)
    factor = 2.0
    for _ in range(50):
        factor = min(0.5 / _usual_curvature(factor**2 * float(line @ A @ line) / plan.n), _STEEPEST)
    w, covariance = factor * line, factor**2 * covariance
    step = w
    for t in range(_ROUNDS):
        covariance = covariance + _WRONG**2 * (np.outer(step, step) + np.mean(step**2) * np.eye(len(w)))

        def errors(rows: Rows, at: FloatArray = w[:, None]) -> tuple[FloatArray, FloatArray]:
            p = expit(rowwise_matmul(encode.whole(rows[0]), at))
            return encode(rows[0]), encode.weight(rows[0]) * (rows[1][:, None] - p)

        gradient, sd = cohort.sum_outer(
            errors,
            clip=1.0,
            norm="nuclear" if cohort.pure else None,
            share=(1 - FIRST) * plan.rest / _ROUNDS,
            name=f"gradient {t + 1}",
        )
        bent = _usual_curvature(float(w @ A @ w) / plan.n) * A
        moved, covariance = gaussian_update(w, covariance, gradient[:, 0], bent, sd)
        w, step = moved, moved - w
    return w, moments


def _usual_curvature(square: float) -> float:
    """Mean of p (1 - p) over normal logits of this mean square."""
    p = expit(_POINTS * math.sqrt(max(square, 0.0)))
    return float(_MASSES @ (p * (1 - p)))


def _steps(of: Privacy) -> int:
    """Persons more or less between neighbours."""
    return 2 if of.stated_adjacency == "replace" else 1


def _softmax(logits: FloatArray) -> FloatArray:
    """Softmax of each row, with the same order of operations wherever the row stands in a block."""
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(e / rowwise_sum(e)[:, None])
