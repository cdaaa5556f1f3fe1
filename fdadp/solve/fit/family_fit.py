"""Fits of families: smoothing parameters by REML in Laplace's approximation, or given."""

from __future__ import annotations

import operator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from fdadp._common.checks import numbers
from fdadp._common.door import warn
from fdadp._common.threads import one_blas_thread
from fdadp._common.typing import ArrayLike, FloatArray, IntArray
from fdadp.errors import IdentificationWarning, InputError
from fdadp.solve.fit.additive_fit import AdditiveFit
from fdadp.solve.fit.laplace import Inside, Laplace
from fdadp.solve.form.family import Family
from fdadp.solve.form.long_form import LongForm
from fdadp.solve.form.weighted import Blocks, Observed, over_blocks
from fdadp.solve.linear.normal_equations import OWN_SCALE, NormalEquations, identified
from fdadp.solve.smoothing.criteria import Values
from fdadp.solve.smoothing.penalized import LOG_RANGE
from fdadp.solve.smoothing.search import newton

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


def fit_family(
    form: LongForm,
    blocks: Blocks,
    family: Family,
    smoothing: str | ArrayLike,
    n: int,
    n_unpenalized: int | None = None,
) -> AdditiveFit:
    """Fit a family to the long form.

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
        problem, beta = _problem(form, blocks, family, n_unpenalized)
        log_sp = _given(smoothing, form)
        found = _found(problem, beta, log_sp)
        apart = problem.separated(found[1].look.gram)
        if apart is not None:
            _warn_separated(form, problem.whole(apart))
            free = (problem.penalties == 0).all(axis=0)
            problem = replace(problem, held=np.where(free, HELD * problem.information.diagonal(), 0.0))
            found = _found(problem, beta, log_sp)
        elif family.extremes and found[1].look.deviance < PERFECT:
            warn(PERFECT_FIT, IdentificationWarning)
        fit = _fit(form, problem, *found, n)
        return fit if log_sp is not None else replace(fit, hessian=problem.derivatives(*found)[1])


def _problem(form: LongForm, blocks: Blocks, family: Family, n_unpenalized: int | None) -> tuple[Laplace, FloatArray]:
    """The problem, and coefficients to start from."""
    penalties = form.stacked_penalties
    total, weight = over_blocks(blocks, partial(_totals, family), _sums)
    family.check_mean(total / weight)
    eta = family.predictor(np.array(total / weight))
    gram, ones = over_blocks(blocks, partial(_of_one_mean, family, eta), _sums)
    keep = identified(gram, penalties, floor=OWN_SCALE)
    own = gram[np.ix_(keep, keep)]
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
    return problem, float(eta) * (half @ root)


def _totals(family: Family, block: Observed) -> tuple[float, float]:
    exposure = np.exp(block.offset) if family.link == "log" else 1.0
    total = float(np.where(block.weights > 0, block.weights * block.y, 0.0).sum())
    return total, float((block.weights * exposure).sum())


def _of_one_mean(family: Family, eta: FloatArray, block: Observed) -> tuple[FloatArray, FloatArray]:
    at = family.working(np.full_like(block.y, family.placeholder), eta + block.offset)
    return block.rows.gram(block.weights * at.fisher), block.rows.cross(block.weights * at.fisher)


def _column_sums(block: Observed) -> FloatArray:
    return block.rows.cross((block.weights > 0).astype(np.float64))


def _sums(a: tuple[Any, Any], b: tuple[Any, Any]) -> tuple[Any, Any]:
    return a[0] + b[0], a[1] + b[1]


def _given(smoothing: str | ArrayLike, form: LongForm) -> FloatArray | None:
    if isinstance(smoothing, str):
        if smoothing != "reml":
            raise InputError(f"smoothing of a family must be 'reml' or smoothing parameters, got {smoothing!r}")
        return None
    given = numbers(smoothing, "smoothing")
    if given.shape != (form.n_penalties,) or not (np.isfinite(given) & (given > 0)).all():
        raise InputError(
            f"smoothing must hold {form.n_penalties} positive smoothing parameters "
            f"({', '.join(form.penalty_names)}), got {given.tolist()}"
        )
    return np.log(given)


def _found(problem: Laplace, beta: FloatArray, log_sp: FloatArray | None) -> tuple[FloatArray, Inside]:
    """Log smoothing parameters, and the maximum there."""
    if log_sp is None and len(problem.penalties):
        return _search(problem, beta)
    point = np.zeros(0) if log_sp is None else log_sp
    return point, problem.inside(point, beta)


def _search(problem: Laplace, beta: FloatArray) -> tuple[FloatArray, Inside]:
    """Minimise V from the optimum of working responses, and again from theirs at the minimum where it is another one.

    The search of the working response looks for the lowest of several minima, and costs nothing beside a pass.
    """
    own = problem.information.diagonal()
    centre = np.log(np.array([max(own[d > 0].sum(), 1e-300) / d.sum() for d in problem.penalties]))
    bounds = centre - LOG_RANGE, centre + LOG_RANGE
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

    start = problem.working_optimum(beta)
    for _ in range(ROUNDS):
        start = problem.working_optimum(inside(start).beta)
    best, value = start, np.inf
    for _ in range(3):
        tolerance = 1e-9 * problem.saturated.n
        (reached,), (end,) = newton(score, start[None], np.zeros(1, dtype=np.int64), bounds, tolerance)
        if reached >= value - 1e-6 * (1 + abs(value)):
            break
        best, value = end, float(reached)
        start = problem.working_optimum(inside(best).beta)
        if np.abs(start - best).max() < APART:
            break
    return best, inside(best)


def _fit(form: LongForm, problem: Laplace, log_sp: FloatArray, at: Inside, n: int) -> AdditiveFit:
    found = problem.look(at.beta, expected=True)
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
        f"the unpenalised part of {', '.join(names)} tells responses apart without error, as a level does whose "
        "responses are all 0: there is no finite estimate of its coefficients, which are held by a millionth of the "
        "data's information. Predictions are of use, standard errors of these coefficients are not",
        IdentificationWarning,
    )
