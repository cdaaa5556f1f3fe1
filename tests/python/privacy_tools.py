"""Toy cohorts with nasty rows, every kind of release, and brute force over neighbours."""

from __future__ import annotations

import itertools
import math
import sys

import numpy as np

from fdadp.privacy import Budget, Cohort, TapeNoise
from fdadp.summaries.questions.column_questions import AskCells, ask
from fdadp.summaries.questions.moments_and_quantiles import AskDistribution, AskMoments

NASTY = np.array(
    [
        [0.0, 0.0],
        [1.0, -1.0],
        [-3.0, 4.0],
        [1e-9, 2.0],
        [1e30, -1e30],
        [1e200, 1.0],
        [np.nan, 1.0],
        [np.inf, -np.inf],
        [0.3, 0.0],
        [-5.0, -5.0],
    ]
)
W = np.array([[1.0, 0.5], [0.0, 0.25]])
TABLE = np.array([[0.5, 0.0, 0.5], [0.0, -1.0, 0.0], [0.6, 0.1, 0.3], [0.0, 0.7, -0.2], [-0.7, 0.0, 0.0]])

RELEASES = {
    "sum": lambda c: c.sum(lambda r: r[0], clip=2.0, share=0.1, name="s"),
    "sum, norm 1": lambda c: c.sum(lambda r: r[0], clip=0.1, share=0.1, name="s", norm=1),
    "sum, 8 bits": lambda c: c.sum(lambda r: r[0], clip=3.0, share=0.1, name="s", bits=8),
    "sum_outer": lambda c: c.sum_outer(lambda r: r[0], lambda r: r[0], clip=1.0, share=0.1, name="o"),
    "sum_outer, weights": lambda c: c.sum_outer(lambda r: (r[0], r[0]), clip=0.7, share=0.1, name="o", weights=W),
    "sum_outer, nuclear": lambda c: c.sum_outer(
        lambda r: (r[0], r[0]), clip=1.2, share=0.1, name="o", norm="nuclear" if c.pure else None
    ),
    "sum, nonnegative": lambda c: c.sum(lambda r: r[0], clip=2.0, share=0.1, name="s", nonnegative=True),
    "sum of a table": lambda c: c.sum(lambda r: np.floor(r[0]), clip=0.7, share=0.1, name="t", table=TABLE),
    "sum of a table by group": lambda c: c.sum(
        lambda r: (np.floor(r[0][:, 0]), np.abs(r[0][:, 1])), clip=1.0, share=0.1, name="t", table=TABLE, blocks=3
    ),
    "second_moment": lambda c: c.second_moment(lambda r: r[0], clip=1.5, share=0.1, name="m"),
    "principal_directions": lambda c: c.principal_directions(lambda r: r[0], 1, clip=1.5, share=0.1, name="p"),
    "geometric_mean": lambda c: c.geometric_mean(lambda r: abs(r[0][:, 0]), 0.1, 5.0, share=0.1, name="l", n=9),
    "histogram": lambda c: c.histogram(
        lambda r: np.stack([r[0][:, 0] > 0.5, r[0][:, 0] <= 0.5, r[0][:, 1] > 3], 1) * 1.0, share=0.1, name="h"
    ),
    "histogram, wild": lambda c: c.histogram(lambda r: r[0], share=0.1, name="h"),
    "select": lambda c: c.select(lambda r: r[0], share=0.1, name="u"),
    "derived": lambda c: c.derive(lambda r: r[0] * 2).sum(lambda r: r[0], clip=1.0, share=0.1, name="d"),
}


def _of_column(question, name, **by):
    """One question of :mod:`fdadp.summaries` about the first column."""

    def release(c):
        n = None if c.n is None else float(c.n)
        return ask(c, question(n, c.pure), lambda r: r[0][:, 0], share=0.1, name=name, **by)

    return release


OF_A_COLUMN = {
    "moments": _of_column(lambda n, pure: AskMoments((-1.0, 1.0), n, pure=pure), "moments"),
    "moments, n not used": _of_column(lambda n, pure: AskMoments((-1.0, 1.0), None, pure=pure), "moments"),
    "cumulative counts": _of_column(
        lambda n, pure: AskDistribution(np.linspace(-4, 4, 41), n, pure=pure), "cumulative counts"
    ),
    "cells by group": _of_column(
        lambda n, pure: AskCells(2, n, pure=pure), "cells", group=lambda r: np.floor(r[0][:, 1]), groups=3
    ),
}
RELEASES |= OF_A_COLUMN
COUNT = {"count": lambda c: c.count(share=0.1)}

MODES = [(pure, adjacency) for pure in (False, True) for adjacency in ("zero-out", "add-remove", "replace")]


def run(release, rows, persons=None, *, pure=False, adjacency="zero-out", n=9, chunks=0, law=None, ids_in_chunks=False):
    """Entry of the tape, with the exact integers, of one release on a toy cohort."""
    noise = TapeNoise()
    data = rows if not chunks else [(rows[i : i + chunks],) for i in range(0, max(len(rows), 1), chunks)]
    budget = Budget(1.0, None if pure else 1e-6)
    declared = None if adjacency == "add-remove" else n
    if ids_in_chunks:
        data = [(*chunk, persons[i : i + chunks]) for i, chunk in zip(range(0, len(rows), chunks), data, strict=True)]
        data, persons = [(np.empty((0, 2)), []), *data], True  # the first one says what a row is
    told = {"person_rows": "sum", "max_rows": SUM_OF} if law == "sum" else {}
    release(Cohort(data, groups=persons, budget=budget, adjacency=adjacency, n=declared, noise=noise, **told))
    return noise.entries[-1]


def distance(one, other):
    """Between two exact sums, in the norm of the release; integers, so exact but for one root."""
    moves = [a - b for a, b in zip(one.exact, other.exact, strict=True)]
    if one.kind in ("bingham", "bingham-zcdp"):  # of two features: largest less smallest u'Mu over the circle
        return math.hypot(moves[0] - moves[2], math.sqrt(2) * moves[1])
    if one.kind in ("product", "symmetric"):
        M = np.array(moves, dtype=float)
        if one.kind == "symmetric":
            M = np.zeros((one.columns, one.columns))
            M[np.triu_indices(one.columns)] = moves
            M += np.triu(M, 1).T
        return np.linalg.svd(M.reshape(-1, one.columns), compute_uv=False).sum() * (1 - 1e-14)  # its rounding
    if one.kind == "gaussian":
        return math.sqrt(sum(m * m for m in moves))
    if one.kind == "laplace":
        return sum(map(abs, moves))
    return (max(moves) - min(moves)) / 2  # a constant on all candidates changes no selection


SUM_OF = 2
"""Rows of a person that count at most with law "sum": less than some have."""


def toy(grouped):
    """Nine persons, of one row or of one to three; the tenth row pattern is kept for replacements."""
    people = [NASTY[[i]] if not grouped else NASTY[[i, (3 * i + 1) % 10, (i + 4) % 10][: 1 + i % 3]] for i in range(9)]
    return people


def assemble(people, grouped):
    rows = np.concatenate(people) if people else np.empty((0, 2))
    ids = np.repeat(np.arange(len(people)), [len(p) for p in people]) if grouped else None
    return rows, ids


def worst_ratio(release, *, pure, adjacency, grouped):
    """Largest change over neighbours, in units of the declared sensitivity."""
    people = toy(grouped)
    kw = {"pure": pure, "adjacency": adjacency, "law": grouped or None}
    if adjacency == "replace":
        ends = [[*people[:i], new[None], *people[i + 1 :]] for i, new in itertools.product((0, 4), NASTY)]
        groups = [[run(release, *assemble(p, grouped), **kw) for p in ends if len(p) == 9]]
        groups = [groups[0][:10], groups[0][10:]]  # the same person replaced: all of a group are neighbours
        pairs = [pair for g in groups for pair in itertools.combinations(g, 2)]
    else:
        whole = run(release, *assemble(people, grouped), **kw)
        pairs = [(whole, run(release, *assemble(people[:i] + people[i + 1 :], grouped), **kw)) for i in range(9)]
    assert len({pair[0].sensitivity for pair in pairs}) == 1
    return max(distance(a, b) for a, b in pairs) / pairs[0][0].sensitivity


class Guarded:
    """Rows with shape, dtype and slices that only the kernel may read, and only after the budget was spent.

    `reader`: the client of the local model, who holds a record of its own, in the kernel's place; nobody else.
    """

    def __init__(self, values, budget=None, reader="fdadp.privacy.rows._vault"):
        self.values, self.budget, self.reader, self.reads = np.asarray(values), budget, reader, 0

    shape = property(lambda self: self.values.shape)
    dtype = property(lambda self: self.values.dtype)

    def __getitem__(self, rows):
        self._check()
        return self.values[rows]

    def __array__(self, *args, **kwargs):
        self._check()
        return self.values

    def __len__(self):
        return len(self.values)

    def __iter__(self):
        raise AssertionError("nobody goes through private rows one by one")

    def _check(self):
        frame, module = sys._getframe(2), ""
        while frame is not None and not module.startswith("fdadp"):
            module, frame = frame.f_globals.get("__name__", ""), frame.f_back
        assert module == self.reader, f"{module or 'someone'} reads private rows"
        assert self.budget is None or self.budget.spent > 0, "read before the budget was spent"
        self.reads += 1
