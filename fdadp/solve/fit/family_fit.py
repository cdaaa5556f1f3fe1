"""Fits of families: smoothing parameters by REML in Laplace's approximation, or given."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from fdadp._common.argument_checks import numbers
from fdadp._common.calling_language import warn
from fdadp._common.threads import one_blas_thread
from fdadp._common.typing import ArrayLike, BoolArray, FloatArray, IntArray
from fdadp.errors import IdentificationWarning, InputError
from fdadp.solve.fit.additive_fit import AdditiveFit, ChosenSmoothing
from fdadp.solve.form.long_form_design import LongForm
from fdadp.solve.form.response_families import Derivatives, Family
from fdadp.solve.form.weighted_least_squares import Blocks, Observed, over_blocks
from fdadp.solve.smoothing.normal_equations import OWN_SCALE, IndefiniteEquations, NormalEquations, identified
from fdadp.solve.smoothing.penalized_least_squares import LOG_RANGE, PenalizedLeastSquares
from fdadp.solve.smoothing.smoothing_search import Values, newton

HELD = 1e-6
"""Share of the null model's information by which unpenalised coefficients are held where responses are separated."""

PERFECT = 0.01
"""Deviance of all responses below which smooth terms tell them apart."""

PERFECT_FIT = (
    "smooth terms tell all responses apart without error, which REML takes for certain: give smoothing parameters, "
    "fewer basis functions or more data"
)

ROUNDS = 2
"""Of working responses whose optimum the search starts from."""

APART = 1.0
"""A working response at the minimum that has its own optimum further away, in a log λ, is a reason to start there."""


Start = Callable[[LongForm, Blocks, Family, int | None], "tuple[Laplace, FloatArray]"]


def fit_family(
    form: LongForm,
    blocks: Blocks,
    family: Family,
    smoothing: str | ArrayLike,
    n: int,
    n_unpenalized: int | None = None,
    start: Start | None = None,
    near: FloatArray | None = None,
) -> AdditiveFit:
    """Fit a family, whose parameters are known, to the long form.

    Parameters
    ----------
    form : LongForm
    blocks : Blocks
        Gone through several times.
    family : Family
    smoothing : "reml" or array_like of shape (M,)
    n : int
        Number of records.
    n_unpenalized : int, optional
        As in :func:`fdadp.solve.fit.additive_fit.fit_gaussian`.
    start : callable, optional
        Makes the problem, and coefficients to start from; default those of observations that are independent.
    near : ndarray of shape (M,), optional
        Logarithms of smoothing parameters to start from; default the optimum of working responses.

    Raises
    ------
    InputError
        Another criterion, a wrong number of smoothing parameters, or responses without a finite estimate of their mean.

    Warns
    -----
    IdentificationWarning
        Unpenalised terms tell responses apart without error, so that their coefficients have no finite estimate. They
        are held by a millionth of the information that the data would have without covariates. Or smooth terms do so.
    """
    with one_blas_thread():
        problem, beta = (start or first_problem)(form, blocks, family, n_unpenalized)
        if not family.known_scale and problem.saturated.n <= problem.n_unpenalized:
            raise InputError(
                f"n must be above the {problem.n_unpenalized} unpenalised coefficients, got {problem.saturated.n} "
                "observations"
            )
        log_sp = given(smoothing, form)
        best = optimum(problem, beta, log_sp, near)
        problem, found = best.problem, (best.log_sp, best.at)
        if best.apart is not None:
            _warn_separated(form, problem.whole(best.apart))
        elif family.extremes and best.at.look.deviance < PERFECT:
            warn(PERFECT_FIT, IdentificationWarning)
        fit = _fit(form, problem, *found, n)
        if log_sp is not None:
            return fit
        hessian = problem.at_fixed_weights(*found).hessian
        return replace(fit, hessian=hessian, chosen=problem.chosen(*found) if start is None else None)


class Optimum(NamedTuple):
    """The minimum of V: the problem, log smoothing parameters, and the maximum of the penalised likelihood there.

    `apart` are unpenalised coefficients that tell responses apart without error, which the problem holds; or None.
    """

    problem: Laplace
    log_sp: FloatArray
    at: Inside
    apart: FloatArray | None


def optimum(
    problem: Laplace, beta: FloatArray, log_sp: FloatArray | None = None, near: FloatArray | None = None
) -> Optimum:
    """Find the minimum of V in smoothing parameters, if they are not given as `log_sp`; `near` is a start."""
    found = _found(problem, beta, log_sp, near)
    apart = problem.separated(found[1].look.gram)
    if apart is not None:
        free = (problem.penalties == 0).all(axis=0)
        problem = replace(problem, held=np.where(free, HELD * problem.information.diagonal(), 0.0))
        found = _found(problem, beta, log_sp, near)
    return Optimum(problem, *found, apart)


def first_problem(
    form: LongForm, blocks: Blocks, family: Family, n_unpenalized: int | None
) -> tuple[Laplace, FloatArray]:
    """The problem, and coefficients to start from."""
    penalties = form.stacked_penalties
    total, weight = over_blocks(blocks, partial(_totals, family), _sums)
    family.check_mean(total / weight)
    eta = family.predictor(np.array(total / weight))
    found, ones = over_blocks(blocks, partial(_of_one_mean, family, eta), _both)
    keep = identified(found.gram, penalties, floor=OWN_SCALE)
    own = found.gram[np.ix_(keep, keep)]
    free = int((penalties[:, keep] == 0).all(axis=0).sum())
    problem = Laplace(
        blocks,
        family,
        penalties[:, keep],
        keep,
        free if n_unpenalized is None else n_unpenalized,
        own,
        np.zeros(len(own)),
    )
    # The constant, written in the coordinates as well as they can.
    ridge = 1e-8 * own.diagonal() + 1e-300
    normal = NormalEquations(own, ones[keep][:, None], OWN_SCALE)
    (root,), (half,), _ = normal.roots(ridge[None], np.zeros(1, dtype=np.int64))
    beta = np.asarray(float(eta) * (half @ root))
    if form.has_intercept:  # they can, and what is there has been seen
        problem.saw(beta, "fisher", found._replace(gram=own, cross=found.cross[keep]))
    return problem, beta


def _totals(family: Family, block: Observed) -> tuple[float, float]:
    exposure = np.exp(block.offset) if family.link == "log" else 1.0
    total = float(np.where(block.weights > 0, block.weights * block.y, 0.0).sum())
    return total, float((block.weights * exposure).sum())


def _of_one_mean(family: Family, eta: FloatArray, block: Observed) -> tuple[PenalizedStep, FloatArray]:
    found, at = _at(family, eta + block.offset, "fisher", block)
    return found, block.rows.cross(block.weights * at.fisher)


def _both(a: tuple[PenalizedStep, Any], b: tuple[PenalizedStep, Any]) -> tuple[PenalizedStep, Any]:
    return _added(a[0], b[0]), a[1] + b[1]


def _column_sums(block: Observed) -> FloatArray:
    return block.rows.cross((block.weights > 0).astype(np.float64))


def _sums(a: tuple[Any, Any], b: tuple[Any, Any]) -> tuple[Any, Any]:
    return a[0] + b[0], a[1] + b[1]


def given(smoothing: str | ArrayLike, form: LongForm) -> FloatArray | None:
    """Logarithms of smoothing parameters; None where REML chooses them."""
    if isinstance(smoothing, str):
        if smoothing != "reml":
            raise InputError(f"smoothing of a family must be 'reml' or smoothing parameters, got {smoothing!r}")
        return None
    values = numbers(smoothing, "smoothing")
    if values.shape != (form.n_penalties,) or not (np.isfinite(values) & (values > 0)).all():
        raise InputError(
            f"smoothing must hold {form.n_penalties} positive smoothing parameters "
            f"({', '.join(form.penalty_names)}), got {values.tolist()}"
        )
    return np.log(values)


def _found(
    problem: Laplace, beta: FloatArray, log_sp: FloatArray | None, near: FloatArray | None
) -> tuple[FloatArray, Inside]:
    """Log smoothing parameters, and the maximum there."""
    if log_sp is None and len(problem.penalties):
        return _search(problem, beta, near)
    point = np.zeros(0) if log_sp is None else log_sp
    return point, problem.inside(point, beta)


def _search(problem: Laplace, beta: FloatArray, near: FloatArray | None) -> tuple[FloatArray, Inside]:
    """Minimise V from the optimum of working responses, and again from theirs at the minimum where it is another one.

    The search of the working response looks for the lowest of several minima, and costs nothing beside a pass. Of a
    start that is near, the minimum next to it is taken.
    """
    bounds = problem.centre - LOG_RANGE, problem.centre + LOG_RANGE
    known: list[tuple[FloatArray, Inside]] = []

    def inside(point: FloatArray) -> Inside:
        near = min(known, key=lambda other: float(np.abs(other[0] - point).max()), default=None)
        if near is not None and np.array_equal(near[0], point):
            return near[1]
        at = problem.inside(point, beta if near is None else near[1].beta)
        known.append((point.copy(), at))
        return at

    def score(points: FloatArray, of: IntArray) -> Values:
        found = [inside(point) for point in points]
        derivatives = [problem.derivatives(point, at) for point, at in zip(points, found, strict=True)]
        values = [problem.criterion(point, at) for point, at in zip(points, found, strict=True)]
        return np.array(values), np.array([d[0] for d in derivatives]), np.array([d[1] for d in derivatives])

    start = problem.working_optimum(beta) if near is None else np.clip(near, *bounds)
    for _ in range(ROUNDS if near is None else 0):
        beta = problem.inside(start, beta, ROUGH).beta
        start = problem.working_optimum(beta)
    best, value = start, np.inf
    for _ in range(3):
        tolerance = 1e-9 * problem.saturated.n
        (reached,), (end,) = newton(score, start[None], np.zeros(1, dtype=np.int64), bounds, tolerance)
        if reached >= value - 1e-6 * (1 + abs(value)):
            break
        best, value = end, float(reached)
        if near is not None:
            break
        start = problem.working_optimum(inside(best).beta)
        if np.abs(start - best).max() < APART:
            break
    return best, inside(best)


def _fit(form: LongForm, problem: Laplace, log_sp: FloatArray, at: Inside, n: int) -> AdditiveFit:
    found = problem.look(at.beta, "fisher")
    own = np.exp(log_sp) @ problem.penalties + problem.held
    normal = NormalEquations(found.gram, (found.gram @ at.beta)[:, None], OWN_SCALE)
    (root,), _, _ = normal.roots(own[None], np.zeros(1, dtype=np.int64))
    small = root.T @ root
    n_rows = problem.saturated.n
    edf = 1 - own * small.diagonal()
    which = np.ix_(problem.keep, problem.keep)
    inverse, gram = np.zeros((form.size, form.size)), np.zeros((form.size, form.size))
    inverse[which], gram[which] = small, found.gram
    means = over_blocks(problem.blocks, _column_sums, operator.add)
    return AdditiveFit(
        form=form,
        coefficients=problem.whole(at.beta),
        spread=inverse,
        information=gram,
        edf=problem.whole(edf),
        identified=problem.keep,
        smoothing_parameters=np.exp(log_sp),
        sigma2=problem.dispersion(at.beta, found.pearson, float(edf.sum())),
        scale=problem.scale(at.penalized)[0],
        criterion=problem.criterion(log_sp, at),
        rss=found.deviance,
        n=n,
        n_rows=n_rows,
        column_means=means / n_rows,
    )


def _warn_separated(form: LongForm, apart: FloatArray) -> None:
    names = [d.name for d, place in zip(form.designs, form.slices, strict=True) if apart[place].max(initial=0) > 0.05]
    warn(
        f"the unpenalised part of {', '.join(names)} separates the responses without error, as a level does whose "
        "responses are all 0. Its coefficients have no finite estimate and are held by a millionth of the data's "
        "information. Predictions are of use, standard errors of these coefficients are not",
        IdentificationWarning,
    )


# Newton's method inside, and outside in all log λ.


CONVERGED = 1e-22
"""Of the penalised deviance: a step that would lower it by less is not taken; coefficients are right to its root."""

ROUGH = 1e-7
"""The same where coefficients are for a working response to start from."""

LEAST = 1e-14
"""Deviance of an observation that is rounding."""

ROUNDING = 1e-13
"""Of the penalised deviance: differences below this are rounding."""

STEPS = 100
"""Of Newton's method for the coefficients."""

SEPARATED = 1e-10
"""Share of the null model's information about some unpenalised coefficients: less says that they go to infinity."""

FORWARD = 1e-4
"""Step of differences: of slopes of weights along a log λ, and of V's gradient along θ."""

_FIRST = np.zeros(1, dtype=np.int64)


class PenalizedStep(NamedTuple):
    """What one pass over the data finds at some coefficients.

    `gram` is ``X'WX``, `cross` minus half the gradient of the deviance, `pearson` the sum of squares of Pearson's
    residuals.
    """

    deviance: float
    gram: FloatArray
    cross: FloatArray
    pearson: float


class Inside(NamedTuple):
    """The maximum of the penalised likelihood for given λ.

    `penalized` is ``D + β'Sβ``; `root` is such that ``root'root = A⁻¹``.
    """

    beta: FloatArray
    penalized: float
    root: FloatArray
    log_det: float
    look: PenalizedStep


class FixedWeights(NamedTuple):
    """How V moves with M log λ where its weights do not: derivatives, and what they are made of.

    `weighted` are the penalties times λ, `moves` the derivatives of the coefficients, both of shape (M, p).
    """

    weighted: FloatArray
    inverse: FloatArray
    moves: FloatArray
    slopes: FloatArray
    hessian: FloatArray


class WeightsTurn(NamedTuple):
    """Sums over observations: how the weights turn with M log λ.

    `grams` (M, p, p) are how fast ``X'WX`` moves, `products` (M, M) sums of leverages times second derivatives of
    weights, `pull` as of :meth:`Laplace.pull_of_weights`.
    """

    grams: FloatArray
    products: FloatArray
    pull: FloatArray

    def plus(self, other: WeightsTurn) -> WeightsTurn:
        """With those of other observations."""
        return WeightsTurn(*(a + b for a, b in zip(self, other, strict=True)))


@dataclass
class Laplace:
    """The problem in those coordinates that data or penalties identify.

    Attributes
    ----------
    blocks : Blocks
        They are gone through once for each step.
    family : Family
    penalties : ndarray of shape (M, p)
        Of the identified coordinates.
    keep : ndarray, bool
        Which coordinates of the rows these are.
    n_unpenalized : int
        Number M of unpenalised coefficients.
    information : ndarray of shape (p, p)
        ``X'WX`` of a model that is one mean.
    held : ndarray of shape (p,)
        Further weights of squares of coefficients, beside those of the penalties.
    passes : int
        How often the data were gone through.
    """

    blocks: Blocks
    family: Family
    penalties: FloatArray
    keep: BoolArray
    n_unpenalized: int
    information: FloatArray
    held: FloatArray
    passes: int = field(default=0, init=False)
    _seen: tuple[FloatArray, str, PenalizedStep] | None = field(default=None, init=False)
    _derived: tuple[Inside, FloatArray, FloatArray] | None = field(default=None, init=False)

    @cached_property
    def saturated(self) -> Saturated:
        """What scales need to know of all responses."""
        return over_blocks(self.blocks, partial(Saturated.of, self.family), Saturated.merge)

    @property
    def centre(self) -> FloatArray:
        """Log smoothing parameters at which penalties are as large as the information, shape (M,)."""
        own = self.information.diagonal()
        return np.asarray(np.log([(float(own[d > 0].sum()) or 1.0) / d.sum() for d in self.penalties]))

    def look(self, beta: FloatArray, weights: str = "weight") -> PenalizedStep:
        """Go through the data once; W are the observed weights, or another name in :class:`Derivatives`.

        What was found last is not looked for again.
        """
        weights = self._name(weights)
        if self._seen is not None and self._seen[1] == weights and np.array_equal(self._seen[0], beta):
            return self._seen[2]
        self.passes += 1
        found = over_blocks(self.blocks, partial(_step, self.family, self.keep, self.whole(beta), weights), _added)
        found = found if np.isfinite(found.deviance) else found._replace(deviance=np.inf)
        self.saw(beta, weights, found)
        return found

    def saw(self, beta: FloatArray, weights: str, found: PenalizedStep) -> None:
        """Keep what was found."""
        self._seen = beta.copy(), self._name(weights), found

    def _name(self, weights: str) -> str:
        return "weight" if self.family.canonical else weights

    def inside(self, log_sp: FloatArray, beta: FloatArray, enough: float = CONVERGED) -> Inside:
        """Maximise the penalised likelihood from a start by Newton's method, halving steps that do not raise it.

        It ends where a step would gain less than `enough` of the penalised deviance.
        """
        own = np.exp(log_sp) @ self.penalties + self.held
        found = self.look(beta)
        penalized = found.deviance + float(beta @ (own * beta))
        last = np.inf
        for _ in range(STEPS):
            root, step, log_det = self.step(found, beta, own)
            size, gain = 1 + abs(penalized), float(step @ (found.cross - own * beta))
            done = gain <= enough * size or (gain <= ROUNDING * size and gain > last / 2)
            if done or self.separated(found.gram) is not None:
                break
            last = gain
            trial, value, then = beta, np.inf, found
            for halvings in range(40):
                trial = beta + step / 2**halvings
                then = self.look(trial)
                value = then.deviance + float(trial @ (own * trial))
                if value <= penalized + ROUNDING * size:
                    break
            else:
                break
            beta, penalized, found = trial, value, then
        return Inside(beta, penalized, root, log_det, found)

    def step(self, found: PenalizedStep, beta: FloatArray, own: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        """The root of A⁻¹, the step towards the maximum of a parabola, and log|A|.

        The parabola is Newton's. Where that has no maximum, as there can be of families that are not log-concave, it
        is one that is nowhere above the penalised likelihood (Lange, Hunter & Yang 2000,
        doi:10.1080/10618600.2000.10474858).
        """
        equations = NormalEquations if self.family.log_concave else IndefiniteEquations
        try:
            normal = equations(found.gram, (found.gram @ beta + found.cross)[:, None], OWN_SCALE)
            (root,), (half,), (log_det,) = normal.roots(own[None], _FIRST)
        except np.linalg.LinAlgError:
            gram = self.look(beta, "bound").gram
            normal = NormalEquations(gram, (gram @ beta + found.cross)[:, None], OWN_SCALE)
            (root,), (half,), (log_det,) = normal.roots(own[None], _FIRST)
        return root, half @ root - beta, float(log_det)

    def separated(self, gram: FloatArray) -> FloatArray | None:
        """Unpenalised coefficients (p,) that tell responses apart without error, where there are any, in their shares.

        Along these the weights W vanish, for probabilities of 0 and 1 or means of 0 have no errors.
        """
        free = (self.penalties == 0).all(axis=0) & (self.held == 0)
        if not self.family.extremes or not free.any():
            return None
        which = np.ix_(free, free)
        root = np.linalg.inv(np.linalg.cholesky(self.information[which]))
        values, vectors = np.linalg.eigh(root @ gram[which] @ root.T)
        if values[0] > SEPARATED:
            return None
        out = np.zeros(len(gram))
        along = root.T @ vectors[:, values <= SEPARATED]
        out[free] = np.abs(along).max(axis=1) * np.sqrt(self.information[which].diagonal())
        return np.asarray(out / out.max())

    def scale(self, penalized: float) -> tuple[float, float, float]:
        """The scale φ that minimises V, what of V depends on it, and the curvature in log φ (0: φ is known)."""
        n = self.saturated.n
        m, penalized = self.n_unpenalized, max(penalized, LEAST * n)
        if self.family.known_scale:
            value = self.saturated.at(self.family, 1.0)[0]
            return 1.0, penalized / 2 - value - m / 2 * float(np.log(2 * np.pi)), 0.0
        log_scale = float(np.log(penalized / max(n - m, 1)))
        step = 1.0
        for _ in range(100):
            scale = float(np.exp(log_scale))
            value, first, second = self.saturated.at(self.family, scale)
            half = penalized / (2 * scale)
            if abs(step) < 1e-10:
                break
            step = float(np.clip((half + first + m / 2) / (half - second), -1.0, 1.0))
            log_scale += step
        return scale, half - value - m / 2 * float(np.log(2 * np.pi * scale)), half - second

    def dispersion(self, beta: FloatArray, pearson: float, edf: float) -> float:
        """Estimate of an unknown scale from Pearson's residuals, with the correction for sparse data of mgcv.

        References
        ----------
        Fletcher (2012), Estimating overdispersion when fitting a generalized linear model to sparse data,
        doi:10.1093/biomet/asr083.
        """
        if self.family.known_scale:
            return 1.0
        total = over_blocks(self.blocks, partial(_skewness, self.family, self.whole(beta)), operator.add)
        n = self.saturated.n
        return float(pearson / (n - edf) / (1 + max(total / n, -0.9)))

    def criterion(self, log_sp: FloatArray, at: Inside) -> float:
        """V, the scale profiled out."""
        diagonal = np.exp(log_sp) @ self.penalties
        log_s = float(np.log(diagonal[diagonal > 0]).sum())
        return self.scale(at.penalized)[1] + (at.log_det - log_s) / 2

    def at_fixed_weights(self, log_sp: FloatArray, at: Inside) -> FixedWeights:
        """Derivatives of V in log λ but for how the weights W depend on λ."""
        weighted = np.exp(log_sp)[:, None] * self.penalties
        diagonal = weighted.sum(axis=0)
        inverse = at.root.T @ at.root
        scale, _, curvature = self.scale(at.penalized)
        share = weighted / np.where(diagonal > 0, diagonal, 1.0)
        pushed = weighted * at.beta
        moves = -pushed @ inverse
        d1 = pushed @ at.beta / scale
        slopes = d1 + weighted @ inverse.diagonal() - share.sum(axis=1)
        hessian = share @ share.T - weighted @ (inverse * inverse) @ weighted.T
        hessian += np.diag(slopes) + 2 / scale * (pushed @ moves.T)
        if curvature:
            hessian -= np.outer(d1, d1) / (2 * curvature)
        return FixedWeights(weighted, inverse, moves, slopes / 2, hessian / 2)

    def derivatives(self, log_sp: FloatArray, at: Inside) -> tuple[FloatArray, FloatArray]:
        """Gradient of V in log λ, exact, and its Hessian but for how the weights W depend on λ."""
        if self._derived is None or self._derived[0] is not at:
            own = self.at_fixed_weights(log_sp, at)
            pulled = own.moves @ self.pull_of_weights(at.beta, own.inverse)
            self._derived = at, own.slopes + pulled / 2, own.hessian
        return self._derived[1:]

    def chosen(self, log_sp: FloatArray, at: Inside) -> ChosenSmoothing:
        """How V is curved at its minimum, and how coefficients follow log λ: one pass over the data.

        The curvature is exact but for the slope of w' along a coefficient's way, a difference.
        """
        own = self.at_fixed_weights(log_sp, at)
        whole = np.zeros((len(log_sp), self.keep.size))
        whole[:, self.keep] = own.moves
        turn = partial(_turn, self.family, self.whole(at.beta), whole, self._full(own.inverse), self.keep)
        self.passes += 1
        seen: WeightsTurn = over_blocks(self.blocks, turn, WeightsTurn.plus)
        along = own.inverse @ seen.pull
        changes = own.weighted[:, None] * np.eye(len(along)) + seen.grams  # of A
        turned = own.inverse @ changes
        bent = seen.products - np.einsum("kij,lji->kl", turned, turned)
        bent += own.weighted @ (own.inverse * own.inverse) @ own.weighted.T  # which the Hessian has
        # Second derivatives of coefficients are -A⁻¹ (changes_k moves_l + weighted_l moves_k), more on the diagonal.
        bent -= changes @ along @ own.moves.T + own.moves @ (own.weighted * along).T
        bent -= np.diag((own.weighted * at.beta) @ along)
        hessian = own.hessian + (bent + bent.T) / 4
        scale, _, curvature = self.scale(at.penalized)
        if curvature:  # the scale is profiled out of the gradient
            mixed = -(own.weighted @ at.beta**2) / (2 * scale)
            inner = hessian + np.outer(mixed, mixed) / curvature
            hessian = np.block([[inner, mixed[:, None]], [mixed, np.array(curvature)]])
        return ChosenSmoothing(hessian, whole)

    def working_optimum(self, beta: FloatArray) -> FloatArray:
        """Log smoothing parameters of the working response with its weights fixed, which is a Gaussian problem."""
        found = self.look(beta, "fisher")
        fitted = found.gram @ beta
        problem = PenalizedLeastSquares(
            found.gram,
            fitted + found.cross,
            float(beta @ (fitted + 2 * found.cross)) + found.pearson,
            self.saturated.n,
            self.penalties,
            n_unpenalized=self.n_unpenalized,
            intercept=False,
            scale=1.0 if self.family.known_scale else None,
        )
        return np.log(problem.optimize("reml")[0].smoothing_parameters)

    def pull_of_weights(self, beta: FloatArray, inverse: FloatArray) -> FloatArray:
        """Gradient of log|A| in the coefficients, through the weights: ``Σ h w' x`` with leverages h."""
        self.passes += 1
        pull = partial(_pull, self.family, self.whole(beta), self._full(inverse))
        return np.asarray(over_blocks(self.blocks, pull, operator.add)[self.keep])

    def _full(self, matrix: FloatArray) -> FloatArray:
        """A matrix (p, p) of all coordinates: 0 for those that are not identified."""
        out = np.zeros((self.keep.size, self.keep.size))
        out[np.ix_(self.keep, self.keep)] = matrix
        return out

    def whole(self, beta: FloatArray) -> FloatArray:
        """Coefficients of all coordinates: 0 for those that are not identified."""
        out = np.zeros(self.keep.size)
        out[self.keep] = beta
        return out


@dataclass
class Saturated:
    """What saturated log-likelihoods at any scale are made of: numbers, not responses.

    What of a saturated log-likelihood depends on the response does not depend on the scale: it is added up once, and
    the rest depends on the weights.

    Attributes
    ----------
    n : int
        Number of observations.
    weights, counts : ndarray
        Different weights, and how often there are.
    beyond : float
        By how much the log-likelihood is above that of responses that are all :attr:`Family.placeholder`.
    """

    n: int
    weights: FloatArray
    counts: IntArray
    beyond: float

    @classmethod
    def of(cls, family: Family, block: Observed) -> Saturated:
        """Of a block of observations."""
        here = block.weights > 0
        y, weights = block.y[here], block.weights[here]
        own = family.saturated(y, weights, 1.0)[0] if y.size else 0.0
        found = cls(y.size, *np.unique(weights, return_counts=True), 0.0)
        found.beyond = own - found.at(family, 1.0)[0]
        return found

    def merge(self, other: Saturated) -> Saturated:
        """With those of other observations."""
        weights = np.concatenate((self.weights, other.weights))
        self.weights, self.counts = _counted(weights, np.concatenate((self.counts, other.counts)))
        self.n, self.beyond = self.n + other.n, self.beyond + other.beyond
        return self

    def at(self, family: Family, scale: float) -> tuple[float, float, float]:
        """Log-likelihood at a scale, and its two derivatives in the logarithm of that."""
        found = np.array([self.beyond, 0.0, 0.0])
        for count in np.unique(self.counts):
            own = self.weights[self.counts == count]
            found += count * np.array(family.saturated(np.full(own.size, family.placeholder), own, scale))
        value, first, second = found.tolist()
        return value, first, second


def _counted(weights: FloatArray, counts: IntArray) -> tuple[FloatArray, IntArray]:
    different, which = np.unique(weights, return_inverse=True)
    total = np.zeros(different.size, dtype=np.int64)
    np.add.at(total, which, counts)
    return different, total


def _step(family: Family, keep: BoolArray, coefficients: FloatArray, weights: str, block: Observed) -> PenalizedStep:
    with np.errstate(over="ignore", invalid="ignore"):
        found, _ = _at(family, block.rows.predictor(coefficients) + block.offset, weights, block)
    return found if keep.all() else found._replace(gram=found.gram[np.ix_(keep, keep)], cross=found.cross[keep])


def _at(family: Family, eta: FloatArray, weights: str, block: Observed) -> tuple[PenalizedStep, Derivatives]:
    deviance = 2 * float((block.weights * family.half_deviance(block.y, eta)).sum())
    at = family.working(block.y, eta)
    gram = block.rows.gram(block.weights * getattr(at, weights))
    cross = block.rows.cross(block.weights * at.residual)
    squares = at.residual**2 / np.maximum(at.fisher, 1e-100)
    return PenalizedStep(deviance, gram, cross, float((block.weights * squares).sum())), at


def _added(a: PenalizedStep, b: PenalizedStep) -> PenalizedStep:
    with np.errstate(over="ignore", invalid="ignore"):
        return PenalizedStep(a.deviance + b.deviance, a.gram + b.gram, a.cross + b.cross, a.pearson + b.pearson)


def _skewness(family: Family, coefficients: FloatArray, block: Observed) -> float:
    parts = family.skewness(block.y, block.rows.predictor(coefficients) + block.offset)
    return float(parts[block.weights > 0].sum())


def _pull(family: Family, coefficients: FloatArray, inverse: FloatArray, block: Observed) -> FloatArray:
    eta = block.rows.predictor(coefficients) + block.offset
    slope = block.weights * family.working(block.y, eta).slope
    return block.rows.cross(block.rows.leverages(inverse) * slope)


def _turn(
    family: Family,
    coefficients: FloatArray,
    moves: FloatArray,
    inverse: FloatArray,
    keep: BoolArray,
    block: Observed,
) -> WeightsTurn:
    rows, eta, weights = block.rows, block.rows.predictor(coefficients) + block.offset, block.weights
    slope, levers = family.working(block.y, eta).slope, rows.leverages(inverse)
    ways = [rows.predictor(move) for move in moves]
    bends = [levers * (family.working(block.y, eta + FORWARD * way).slope - slope) / FORWARD for way in ways]
    grams, products = np.zeros((len(ways), keep.sum(), keep.sum())), np.zeros((len(ways), len(ways)))
    for k, way in enumerate(ways):
        grams[k] = rows.gram(weights * slope * way)[np.ix_(keep, keep)]
        products[k] = [(weights * bend * way).sum() for bend in bends]
    return WeightsTurn(grams, products, rows.cross(levers * weights * slope)[keep])
