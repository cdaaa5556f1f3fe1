"""The scale of the noise that was drawn, read off the draws, is enough for the largest move of the exact point.

One test for every kind of noise, adjacency, measure and unit. Sensitivity and noise are not tested apart here: exact
points of hostile neighbours come out of the kernel, and so do the draws, of the very sampler that made the release.
"""

from __future__ import annotations

import dataclasses
import importlib
import math
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from mutants import SCALE_MUTANTS, mutate
from scipy.optimize import brentq
from scipy.special import expit, ive

from fdadp import PublicPrior
from fdadp.privacy import Budget, Cohort, OpenDPNoise, SeededNoise
from fdadp.privacy.account.epsilon_mu_rho import gaussian_multiplier, mu_from, range_from_mu, replaced_multiplier
from fdadp.privacy.kernel._loss_minimisers import GRADIENT_ERROR
from fdadp.privacy.noise._matrix_noise import degrees
from fdadp.private.release.dp_aff import directions_of
from fdadp.private.rows.curve_roughness import CurveEnergies, ResponseEnergies
from fdadp.private.rows.row_functions import RowFunctions
from fdadp.rounds.location_scale_histograms import cells_of, distances_of, norm_of

EPSILON, DELTA, RIDGE = 1.0, 1e-6, 20.0
DRAWS = 500
ROWS_OF_ONE = 16
TURN = np.array([[1.0, 1.0], [-1.0, 1.0]]) / math.sqrt(2)


class Recorder:
    """Noise that keeps the exact integers of each release, and draws from its sampler again and again."""

    def __init__(self, source):
        self.source, self.calls, self.description = source, [], "recorded"

    def prepare(self, kind, size, sensitivity, amount, columns=1):
        sampler = self.source.prepare(kind, size, sensitivity, amount, columns)

        def draw(exact):
            released = sampler.draw(exact)
            self.calls.append((sampler, np.array(exact, dtype=object), np.array(released, dtype=object)))
            return released

        return dataclasses.replace(sampler, draw=draw)


# ------------------------------------------------------------------ releases, and whom they are hostile to


@dataclasses.dataclass(frozen=True)
class Case:
    """A release, what a person says for it, and what says the opposite; each a row of every table."""

    release: object
    one: tuple
    other: tuple
    others: tuple = ()
    how_many: int = 3
    modes: tuple = ("pure", "gdp", "zcdp")
    grouped: bool = True
    alone: bool = True
    """Whether each row may be a person."""
    adjacencies: tuple = ("zero-out", "add-remove", "replace")


def minimum(**more):
    given = {"share": 1.0, "name": "w", "ridge": RIDGE}
    return lambda c: c.perturbed_minimum(lambda r: r, **given | more).value


def of(method, *args, **more):
    def release(c):
        found = getattr(c, method)(lambda r: r[0], *args, share=1.0, name="it", **more)
        return getattr(found, "value", found)

    return release


def outer(**more):
    return lambda c: c.sum_outer(lambda r: r[0], lambda r: r[1], clip=1.0, share=1.0, name="it", **more).value


def ones(row, *args):
    """Ones in bins of two numbers, as rounds release them; bins are the last argument's."""
    size = 2 * (args[-1] if isinstance(args[-1], int) else 3)
    return lambda c: (
        c.sum(
            row(lambda r: r[0], *args), clip=norm_of(2, pure=c.pure), share=1.0, name="it", size=size, nonnegative=True
        ).value
    )


def look(of):
    return lambda c: c.histogram(of.shares, share=1.0, name="it").value


def directions(c):
    """Of rows that are features, the first of them the constant."""
    every = SimpleNamespace(linear_in_curves=lambda count: np.ones(count, dtype=bool))
    rows = SimpleNamespace(row=lambda block: SimpleNamespace(features=block[0]), design=every)
    return c.second_moment(partial(directions_of, rows), clip=1.0, share=1.0, name="it").value


GRID = np.linspace(0, 1, 33)
DESIGN = PublicPrior().design(GRID, GRID)
LEVEL, ALTERNATING = (np.ones(33),), ((-1.0) ** np.arange(33),)
NUMBERS = (np.array([1.0, -1.0]),), (np.array([0.1, 0.7]),)
AXES = (np.array([1.0, 0.0]),), (np.array([0.0, 1.0]),)
SIDES = (np.array([1.0, 0.0]),), (np.array([-1.0, 0.0]),)
WRONG = (np.array([0.866, 0.499]), np.array([-1.0])), (np.array([-0.866, 0.499]), np.array([-1.0]))
"""Both contradict all the others, who are on the second axis, and pull to opposite sides of it."""
SHORT = (np.array([0.0, 0.05]), np.array([1.0]))
SQUARED = {"loss": "squared", "target_clip": 1.0, "radius": 1.0}
OBJECTIVE = {"others": SHORT, "how_many": 9, "modes": ("pure", "gdp"), "grouped": False}
CASES = {
    "sum": Case(of("sum", clip=1.0), *SIDES),
    "histogram": Case(of("histogram"), *AXES),
    "counts in cells": Case(ones(cells_of, -np.ones(2), np.ones(2), 8), *NUMBERS),
    "distances from places": Case(ones(distances_of, np.zeros(2), np.array([[0.3, 0.9]] * 2)), *NUMBERS),
    "tails": Case(ones(distances_of, 0.0, np.array([[0.3, 0.9]] * 2)), *NUMBERS),
    "look at X": Case(look(CurveEnergies(DESIGN.curves[0])), LEVEL, ALTERNATING),
    "look at Y": Case(look(ResponseEnergies(RowFunctions(DESIGN, (-8.0, 8.0)))), LEVEL, ALTERNATING),
    "geometric mean": Case(of("geometric_mean", 0.1, 10.0, n=4.0), (np.array(10.0),), (np.array(0.1),)),
    "count": Case(lambda c: c.count(share=1.0).value, *SIDES, adjacencies=("add-remove",)),
    "second moment of directions": Case(directions, (np.array([1.0, 3.0, 0.0]),), (np.array([1.0, 0.0, 0.1]),)),
    "second moment": Case(of("second_moment", clip=1.0), *AXES),
    "person moment": Case(
        lambda c: (
            c.by_person(lambda r: r[0], max_rows=ROWS_OF_ONE)
            .person_moment(lambda r: r[0], law="mean", clip=1.0, share=1.0, name="it")
            .value
        ),
        *AXES,
        modes=("pure", "gdp"),
        alone=False,
    ),
    "person moment, of two": Case(
        lambda c: (
            c.by_person(lambda r: r, max_rows=ROWS_OF_ONE)
            .person_moment(lambda r: r[0], lambda r: r[1], law="mean", clip=1.0, share=1.0, name="it")
            .value
        ),
        SIDES[0] + (np.array([1.0]),),
        SIDES[1] + (np.array([1.0]),),
        modes=("pure", "gdp"),
        alone=False,
    ),
    "matrix Laplace, symmetric": Case(of("second_moment", clip=1.0, norm="nuclear"), *AXES, modes=("pure", "gdp")),
    "matrix Laplace, product": Case(
        outer(norm="nuclear"), SIDES[0] + AXES[0], SIDES[1] + AXES[0], modes=("pure", "gdp")
    ),
    "outer product": Case(outer(), SIDES[0] + AXES[0], SIDES[1] + AXES[0]),
    "selection": Case(of("select"), *AXES),
    "direction": Case(of("principal_directions", 1, clip=1.0), *AXES),
    "Wishart": Case(of("wishart_moment", clip=1.0), *AXES, modes=("gdp",), grouped=False),
    "least squares": Case(minimum(**SQUARED), *WRONG, SHORT, 400),
    "logistic, output": Case(minimum(loss="logistic", ridge=1.0), *WRONG, SHORT, 900),
    "logistic, objective": Case(minimum(loss="logistic", perturb="objective", ridge=1.0), *WRONG, **OBJECTIVE),
}


def neighbours(case, adjacency, grouped):
    """Two data sets, with the ids of their rows: the person has the first rows, of which it may have many."""
    others = case.others or tuple(np.zeros_like(x) for x in case.one)
    times = ROWS_OF_ONE if grouped else 1
    for person in (case.one, case.other if adjacency == "replace" else None):
        rows = []
        for i, x in enumerate(others):
            mine = np.full_like(x, np.nan) if person is None else person[i]
            if isinstance(case.one[0], np.ndarray) and case.others and i == 0:
                mine, x = mine @ TURN, x @ TURN  # so that moves are long in L1, too
            rows.append(np.stack([mine] * times + [x] * case.how_many))
        ids = np.r_[np.zeros(times), np.arange(1, case.how_many + 1)].astype(int)
        keep = slice(times if person is None and adjacency == "add-remove" else 0, None)
        yield tuple(a[keep] for a in rows), ids[keep] if grouped else None


def run(case, data, groups, mode, adjacency, source):
    noise = Recorder(source)
    budget = Budget(EPSILON, None if mode == "pure" else DELTA, accounting="zcdp" if mode == "zcdp" else "gdp")
    n = None if adjacency == "add-remove" else 1 + case.how_many
    cohort = Cohort(data, groups=groups, budget=budget, n=n, adjacency=adjacency, noise=noise)
    return case.release(cohort), noise.calls


# ------------------------------------------------------------------ what was drawn, and what is enough


def scale_of(sampler, exact):
    """Scale parameter, read off draws, and its relative sd."""
    kind, size = sampler.kind, sampler.size
    many = DRAWS * (4 if size == 1 else 1)
    if kind in ("gumbel", "exponential"):
        gap = int(sampler.scale)
        first = np.mean([sampler.draw(np.array([0, gap]))[0] == 0 for _ in range(4 * many)])
        return gap / math.log(1 / first - 1 if kind == "gumbel" else 0.5 / first), 0.05
    if kind.startswith("bingham"):
        gap = 4 * int(sampler.scale)
        u = np.array([sampler.draw(np.array([gap, 0, 0])) for _ in range(many)], dtype=float)
        cosine = np.mean((u[:, 0] ** 2 - u[:, 1] ** 2) / (u**2).sum(axis=1))
        return gap / 2 / brentq(lambda x: ive(1, x) / ive(0, x) - cosine, 1e-3, 1e3), 0.06
    exact = np.zeros(size, dtype=np.int64) if exact is None else exact.astype(np.int64)
    noise = np.array([sampler.draw(exact) - exact for _ in range(many)], dtype=float)
    square, m = (noise**2).mean(), noise.size
    if kind == "wishart":  # the trace is unit times a chi-square
        trace = noise[:, np.cumsum(np.r_[0, np.arange(_order(size), 1, -1)])].sum(axis=1)
        return trace.var() / trace.mean() / 2, 2 * math.sqrt(2 / many)
    if kind == "symmetric":
        d = _order(size)
        diagonal = noise[:, np.cumsum(np.r_[0, np.arange(d, 1, -1)])]
        return math.sqrt((diagonal**2).mean() / (d + 1)), 1.5 / math.sqrt(diagonal.size)
    if kind == "laplace":
        return np.abs(noise).mean(), 1 / math.sqrt(m)
    degrees_of = {"gaussian": 1.0, "spherical": size + 1.0, "product": size / sampler.columns + sampler.columns}[kind]
    return math.sqrt(square / degrees_of), (1 if kind == "gaussian" else 1.5) / math.sqrt(2 * m)


def _order(size):
    return (math.isqrt(8 * size + 1) - 1) // 2


def enough(sampler, move, mode):
    """Scale that hides this move of the exact integers, from the law of the noise."""
    budget = Budget(EPSILON, None if mode == "pure" else DELTA, accounting="zcdp" if mode == "zcdp" else "gdp")
    mu = math.sqrt(2 * budget.total)
    move, kind = move.astype(float), sampler.kind
    if kind == "gaussian":
        return np.linalg.norm(move) / mu
    if kind == "laplace":
        return np.abs(move).sum() / EPSILON
    if kind == "product":
        return np.linalg.norm(move.reshape(-1, sampler.columns), "nuc") / EPSILON
    if kind in ("symmetric", "wishart"):
        full = np.zeros((_order(len(move)),) * 2)
        full[np.triu_indices(len(full))] = move
        values = np.linalg.eigvalsh(full + np.triu(full, 1).T)
        return np.abs(values).sum() / EPSILON if kind == "symmetric" else max(values.max(), -values.min())
    if kind in ("gumbel", "exponential"):
        spread = move.max() - move.min()
    else:  # coordinates of a symmetric matrix, those off the diagonal times sqrt(2)
        values = np.linalg.eigvalsh([[move[0], move[1] / math.sqrt(2)], [move[1] / math.sqrt(2), move[2]]])
        spread = values.max() - values.min()
    return spread / (EPSILON if mode == "pure" else range_from_mu(mu) if mode == "gdp" else 2 * mu)


def check(name, mode, adjacency, grouped, source=None):
    """Compare them, for one release; raises AssertionError."""
    case = CASES[name]
    one, other = (
        run(case, *pair, mode, adjacency, source or SeededNoise(0)) for pair in neighbours(case, adjacency, grouped)
    )
    (value, calls), (_, others) = one, other
    if name == "logistic, objective":
        (data, _), *_ = neighbours(case, adjacency, grouped)
        return check_objective(np.asarray(value), data, calls, mode, adjacency)
    (sampler, exact, released), (again, moved, _) = calls[0], others[0]
    assert len(calls) == 1 and (sampler.kind, sampler.scale) == (again.kind, again.scale)
    if sampler.kind in ("gaussian", "laplace", "product") and "moment" not in name:  # what went out has this noise
        out, integers = np.atleast_1d(value).ravel(), released.astype(float)
        if name not in ("count", "geometric mean"):
            np.testing.assert_allclose(out * integers[0], integers * out[0], rtol=1e-9)
    scale, sd = scale_of(sampler, exact)
    assert scale * (1 + 5 * sd) >= enough(sampler, moved - exact, mode)
    if sampler.kind == "wishart":
        half = adjacency == "replace"
        nu = degrees(*((EPSILON / 2, DELTA / (1 + math.exp(EPSILON / 2))) if half else (EPSILON, DELTA)))
        noise = np.array([sampler.draw(exact.astype(np.int64)) - exact for _ in range(100)], dtype=float)
        assert noise[:, 0].mean() / 4.0**18 * 1.05 >= nu + value.shape[0] - 1
    return None


def check_objective(w, data, calls, mode, adjacency):
    """The linear term against gradients of persons on opposite sides; the last noise against what a solver may miss."""
    (linear, _, b), (point, _, released) = calls
    z, t = data
    np.testing.assert_allclose(w.ravel() * float(released[0]), released.astype(float) * w.ravel()[0], rtol=1e-9)
    drawn = -(z.T @ (-t * expit(-t * (z @ w)))) - w  # the linear term of which w is the minimiser, ridge 1
    assert np.abs(drawn.ravel() - b.astype(float) * 2.0**-40).max() < 0.2
    far = np.array([[0.0], [60.0]])
    slopes = [-(z.T @ (t * expit(-t * (z @ (TURN.T @ far))))) for z, t in ((x[0][None] @ TURN, x[1]) for x in WRONG)]
    move = np.linalg.norm(slopes[0] - (slopes[1] if adjacency == "replace" else 0)) * 2.0**40
    scale, sd = scale_of(linear, None)
    if mode == "pure":
        needed = move / (0.99 * EPSILON - math.log1p(1 / 4))
    else:
        most = replaced_multiplier if adjacency == "replace" else gaussian_multiplier
        needed = 2.0**40 / most(0.99 * EPSILON, 0.99 * DELTA, 1.0)
    assert scale * (1 + 5 * sd) >= needed
    step = w.ravel()[0] / float(released[0])
    move = 2 * GRADIENT_ERROR / step  # two computed points, each off by the gradient that is left
    scale, sd = scale_of(point, None)
    pure = move * math.sqrt(2) / (0.01 * EPSILON)
    assert scale * (1 + 5 * sd) >= (pure if mode == "pure" else move / mu_from(0.01 * EPSILON, 0.01 * DELTA))


ALL = [
    pytest.param(name, mode, adjacency, grouped, id=f"{name}-{mode}-{adjacency}-{'persons' if grouped else 'rows'}")
    for name, case in CASES.items()
    for mode in case.modes
    for adjacency in case.adjacencies
    for grouped in ((False, True) if case.grouped and case.alone and mode != "zcdp" else (not case.alone,))
]


@pytest.mark.each_once(("name", "mode"), ("name", "adjacency"), ("name", "grouped"))
@pytest.mark.parametrize(("name", "mode", "adjacency", "grouped"), ALL)
def test_the_scale_that_was_drawn_hides_the_largest_move(name, mode, adjacency, grouped):
    check(name, mode, adjacency, grouped)


@pytest.mark.each_once
@pytest.mark.parametrize(("name", "mode"), [(name, mode) for name, case in CASES.items() for mode in case.modes[:2]])
def test_so_does_the_noise_for_releases(name, mode):
    case = CASES[name]
    check(name, mode, case.adjacencies[-1], not case.alone, OpenDPNoise())


@pytest.mark.parametrize("mutant", SCALE_MUTANTS)
def test_mutants_turn_it_red(monkeypatch, mutant):
    module, old, new, where = SCALE_MUTANTS[mutant]
    check(*where)
    mutate(monkeypatch, importlib.import_module(module), old, new)
    with pytest.raises(AssertionError):
        check(*where, OpenDPNoise() if mutant.endswith("secure") else None)
