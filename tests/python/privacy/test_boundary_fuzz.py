"""Random neighbouring tables through the public estimators: what one person moves, in every form that a table may have.

``pytest -m long -s tests/python/privacy/test_boundary_fuzz.py`` makes 20,000 trials and prints the worst change over
the sensitivity; the reduced form runs always. ``trials(...)`` repeats single ones by their numbers.
"""

from __future__ import annotations

import collections
import warnings
from unittest import mock

import numpy as np
import pytest
from fuzz_tables import ADJACENCIES, FORMS, LABELLED, QUERIES, neighbouring, opened, source, table, two_tables
from learner_registry import LEARNERS
from neighbour_tools import costs_the_same, moved
from privacy_tools import COUNT, RELEASES
from sklearn.base import clone

import fdadp.privacy.cohort as cohorts
from fdadp import AdditiveFunctionOnFunction, FunctionalRegression, Privacy, PrivateFPCA, PrivateMean, ScalarRegression
from fdadp.cli.input_files import CurvesFile, FileFormat
from fdadp.cli.private_files import PrivateFiles
from fdadp.errors import PublicInputWarning
from fdadp.learners import DPLinearRegression
from fdadp.privacy import Budget, Cohort
from fdadp.privacy.noise import sources as noise
from fdadp.privacy.rows._vault import Vault
from fdadp.private.release.mechanisms import SHORT
from fdadp.summaries import (
    PrivateMultilevelFPCA,
    PrivateTable1,
    private_cross_table,
    private_histogram,
    private_mean,
    private_quantiles,
    private_survival,
    suggest_bounds,
)

BOUNDS = {"X": (-2, 2), "Y": (-2, 2)}
ON_TAPE = [learner for learner in LEARNERS if learner.sums]
OFF_TAPE = [learner for learner in LEARNERS if not learner.sums]


# ------------------------------------------------------------------ one trial of each estimator


def trial_cohort(rng):
    pair = neighbouring(rng, persons=int(rng.integers(3, 25)), width=2, grouped=bool(rng.random() < 0.6))
    form, pure = str(rng.choice(FORMS)), bool(rng.integers(2))
    kinds = {**RELEASES, **(COUNT if pair.adjacency == "add-remove" else {})}
    name = str(rng.choice(list(kinds)))
    if pair.grouped and name.startswith("select tests"):
        return name, 0.0
    law = person_rows(rng) if pair.grouped else {}

    def fit(columns):
        X, _, ids = table(columns, form, np.random.default_rng(0))
        data = np.array(X, dtype=object) if form == "lists" else X  # a list would be chunks
        settings = {"adjacency": pair.adjacency, "n": pair.n, "noise": noise.SeededNoise(0), **law}
        budget = Budget(1.0, None if pure else 1e-6)
        cohort = Cohort(data, groups=ids if pair.grouped else None, budget=budget, **settings)
        kinds[name](cohort)

    return f"Cohort, {form}", moved(fit, pair.first, pair.second)


def trial_chunks_of_a_cohort(rng):
    pair = neighbouring(rng, persons=int(rng.integers(3, 25)), width=2, grouped=bool(rng.random() < 0.8))
    name = str(rng.choice(list(RELEASES)))
    how = {"shuffled": bool(rng.integers(2)) and pair.grouped, "with_ids": pair.grouped}
    more, kept, seed = int(rng.integers(0, 9)) * pair.grouped, int(rng.choice([0, 2**28])), int(rng.integers(2**31))
    law = person_rows(rng) if pair.grouped else {}

    class Source:
        def __init__(self, columns):
            self.read = source(columns, np.random.default_rng(seed), more=more, **how)

        def __iter__(self):
            empty = np.empty((0, 2))
            yield (empty, []) if pair.grouped else (empty,)
            yield from self.read()

    def fit(columns):
        settings = {"adjacency": pair.adjacency, "n": pair.n, "noise": noise.SeededNoise(0), **law}
        cohort = Cohort(Source(columns), groups=pair.grouped or None, budget=Budget(1.0, 1e-6), **settings)
        RELEASES[name](cohort)

    with mock.patch("fdadp.privacy.rows._vault.KEPT", kept):
        return "Cohort, chunks", moved(fit, pair.first, pair.second)


def trial_learner(rng):
    learner = ON_TAPE[rng.integers(len(ON_TAPE))]
    pure, adjacency = learner.modes[rng.integers(len(learner.modes))]
    pair = neighbouring(rng, adjacency=adjacency, grouped=learner.grouped and bool(rng.integers(2)))
    form = str(rng.choice(FORMS))

    def fit(columns):
        X, y, ids = table(columns, form, np.random.default_rng(0))
        y = None if learner.kind in ("clusterer", "transformer") else y
        model = learner.make(pure=pure, adjacency=adjacency, n=20)
        model.fit(X, y, groups=ids if pair.grouped else None)

    return f"{learner}", moved(fit, pair.first, pair.second)


def trial_rows_of_a_learner(rng):
    """Releases that are no sums on a tape: the kernel gets the same rows of all others, bit for bit."""
    learner = OFF_TAPE[rng.integers(len(OFF_TAPE))]
    pure, adjacency = learner.modes[rng.integers(len(learner.modes))]
    pair = neighbouring(rng, adjacency=adjacency, grouped=learner.grouped and bool(rng.integers(2)))
    form = str(rng.choice([form for form in FORMS if form != "lists"]))  # which learners refuse before they read
    seen = []
    for columns in (pair.first, pair.second):
        X, y, ids = table(columns, form, np.random.default_rng(0))
        y = None if learner.kind in ("clusterer", "transformer") else y
        vaults = []
        with (
            mock.patch.object(cohorts, "vault_of", lambda *args, v=vaults: v.append(Vault(*args)) or v[-1]),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore", PublicInputWarning)  # twenty rows are hardly any
            learner.make(pure=pure, adjacency=adjacency, n=20).fit(X, y, groups=ids if pair.grouped else None)
        seen.append(people_of(vaults[0]))
    for one, other in (seen, seen[::-1]):
        assert (one - other).total() <= 1, f"{learner}, {form}: the rows of more than one person differ"
    return f"{learner}", 0.0


def people_of(vault):
    """The rows of each person, in bits, and how many persons have such rows."""
    blocks = list(vault.blocks())
    rows = np.concatenate([np.column_stack([a.reshape(len(a), -1)[:m] for a in rows]) for rows, m, _ in blocks]) + 0.0
    rows[np.isnan(rows)] = np.nan
    codes = np.concatenate([codes for _, _, codes in blocks]) if vault.grouped else np.arange(len(rows))
    people = collections.defaultdict(list)
    for code, row in zip(codes.tolist(), rows, strict=True):
        if code >= 0:
            people[code].append(row.tobytes())
    return collections.Counter(tuple(sorted(own)) for own in people.values())


def trial_summary(rng):
    estimator = (PrivateMean, PrivateFPCA, PrivateMultilevelFPCA)[rng.integers(3)]
    levels = estimator is PrivateMultilevelFPCA
    pair = neighbouring(rng, persons=int(rng.integers(5, 25)), width=4, grouped=levels or bool(rng.random() < 0.6))
    form, chunked, pure = str(rng.choice(FORMS)), bool(rng.random() < 0.5), bool(rng.integers(2))
    how = {
        "shuffled": bool(rng.integers(2)) and pair.grouped,
        "with_ids": pair.grouped,
        "more": int(rng.choice([0, 5])) * pair.grouped,
    }
    privacy = Privacy(8.0, None if pure else 1e-6, n=pair.n, adjacency=pair.adjacency, random_state=0)
    own = {"max_rows": int(rng.integers(2, 5))} if levels else {}
    model = estimator(privacy=privacy, bounds=(-2, 2), allow_useless=True, **own)
    seed = int(rng.integers(2**31))

    def fit(columns):
        if chunked:
            chunks = source(columns, np.random.default_rng(seed), **how)
            clone(model).fit_chunks(chunks, t=np.linspace(0, 1, 4), groups=pair.grouped or None)
        else:
            X, _, ids = table(columns, form, np.random.default_rng(0))
            clone(model).fit(X, groups=ids if pair.grouped else None, t=np.linspace(0, 1, 4))

    return estimator.__name__, moved(fit, pair.first, pair.second)


def trial_table(rng):
    """Numbers and classes: a table 1, suggested bounds, or one of the single summaries."""
    pair = neighbouring(rng, persons=int(rng.integers(3, 25)), width=2, grouped=bool(rng.random() < 0.6))
    form, pure = str(rng.choice(FORMS)), bool(rng.integers(2))
    privacy = Privacy(8.0, None if pure else 1e-6, n=pair.n, adjacency=pair.adjacency, random_state=0)
    facts = {"x0": (-2, 2), "x1": [-1, 0, 1, "unknown", 2.5] if rng.integers(2) else (-3, 3)}
    kind = str(rng.choice(["table1", "bounds", "mean", "quantiles", "classes", "cells", "survival"]))

    def fit(columns):
        X, y, ids = table(columns, form, np.random.default_rng(0))
        told = {"privacy": privacy, "groups": ids if pair.grouped else None}
        if kind == "table1":
            by = "x1" if isinstance(facts["x1"], list) else None
            PrivateTable1(privacy=privacy, columns=facts, by=by).fit(X, groups=told["groups"])
        elif kind == "bounds":
            suggest_bounds(X, within=(-9, 9), **told)
        elif kind == "cells":
            private_cross_table(X, {"x0": [0, 1, -1], "x1": [0.5, 2]}, **told)
        elif kind == "survival":
            private_survival(X, "x0", "x1", edges=[-2, -0.5, 0, 1], **told)
        elif kind == "classes":
            private_histogram(y, levels=[0, 1], **told)
        else:
            {"mean": private_mean, "quantiles": private_quantiles}[kind](y, bounds=(-2, 2), **told)

    return f"summaries, {kind}", moved(fit, pair.first, pair.second)


def trial_regression(rng):
    pair = neighbouring(rng, persons=int(rng.integers(20, 40)), width=4, grouped=bool(rng.integers(2)))
    form, pure = str(rng.choice(FORMS)), bool(rng.integers(2))
    mechanism = str(rng.choice(["dp-aff", "moments"]))
    model = AdditiveFunctionOnFunction(
        privacy=Privacy(20.0, None if pure else 1e-6, n=pair.n, adjacency=pair.adjacency, random_state=0),
        bounds=BOUNDS,
        mechanism=SHORT[mechanism](allow_useless=True),
        progress=False,
    )

    def fit(columns):
        X, _, ids = table(columns, form, np.random.default_rng(0))
        grid = np.linspace(0, 1, 4)
        clone(model).fit(X, X, s=grid, t=grid, groups=ids if pair.grouped else None)

    return "AdditiveFunctionOnFunction", moved(fit, pair.first, pair.second)


def trial_query(rng):
    """Rows of a query have no known number, and come anew on each pass, with their ids."""
    pair = neighbouring(rng, persons=int(rng.integers(5, 25)), width=4)
    form, pure, whole = str(rng.choice(QUERIES)), bool(rng.integers(2)), bool(rng.integers(2))
    settings = {"adjacency": pair.adjacency, "n": pair.n}
    privacy = Privacy(8.0, None if pure else 1e-6, **settings, random_state=0)

    def fit(columns):
        found = opened(columns, form)
        if whole:
            mean = PrivateMean(privacy=clone(privacy, safe=False), bounds=(-2, 2), allow_useless=True)
            mean.fit(found["X"], groups=found["id"])
        else:
            seeded, budget = noise.SeededNoise(0), Budget(1.0, None if pure else 1e-6)
            cohort = Cohort(found.chunks("X", "y", "id"), groups=True, budget=budget, **settings, noise=seeded)
            cohort.sum(lambda rows: rows[1], clip=1.0, share=0.5, name="labels")

    return f"{form}", moved(fit, pair.first, pair.second)


def person_rows(rng):
    """How a person's rows come together, as arguments."""
    return {"person_rows": "sum", "max_rows": int(rng.integers(1, 4))} if rng.integers(2) else {}


def trial_joined(rng):
    """Two tables of the same persons, each in an order of its own, joined by the ids that stand in them."""
    pair, form = neighbouring(rng, persons=int(rng.integers(20, 40)), width=4), str(rng.choice(LABELLED))
    kind, pure = str(rng.choice(["surface", "terms", "numbers"])), bool(rng.integers(2))
    only = pair.adjacency == "replace" and bool(rng.integers(2))  # the person's rows differ in one of the two tables
    privacy = Privacy(20.0, None if pure else 1e-6, n=pair.n, adjacency=pair.adjacency, random_state=0)
    told = {"privacy": privacy, "mechanism": SHORT["dp-aff"](allow_useless=True), **person_rows(rng)}
    t, seed = np.linspace(0, 1, 4), int(rng.integers(2**31))

    def fit(columns):
        x, y = two_tables(columns, pair.first if only else columns, form, np.random.default_rng(seed))
        if form == "files":
            curves = {"X": CurvesFile(x), "Y": CurvesFile(y)}
            source = PrivateFiles.of(curves, None, FileFormat(), "id").joined()
            if kind == "surface":
                AdditiveFunctionOnFunction(bounds=BOUNDS, **told).fit_chunks(source, s=t, t=t)
            else:
                model = FunctionalRegression("Y ~ ff(X) + mean(X)", bounds={**BOUNDS, "mean(X)": (-2, 2)}, **told)
                model.fit_chunks(source, grids={"X": t, "Y": t})
        elif kind == "surface":
            AdditiveFunctionOnFunction(bounds=BOUNDS, **told).fit(x, y, s=t, t=t)
        elif kind == "terms":
            FunctionalRegression("Y ~ ff(X)", bounds=BOUNDS, **told).fit({"X": x, "Y": y}, grids={"X": t, "Y": t})
        else:
            model = ScalarRegression("z ~ lf(X)", bounds={**BOUNDS, "z": (-1, 1)}, **told)
            model.fit({"X": x}, y[:, 0] if form == "xarray" else y.iloc[:, 0])

    return f"joined, {form}", moved(fit, pair.first, pair.second)


class Breaking:
    """A source of chunks which cannot read the rows of one person, from some pass on."""

    def __init__(self, chunks, broken, after):
        self._chunks, self._broken, self._after, self._passes = chunks, broken, after, 0

    def __call__(self):
        self._passes += 1
        for at, chunk in enumerate(self._chunks):
            if at in self._broken and self._passes > self._after:
                raise OSError("private row 17")
            yield chunk

    __iter__ = __call__


def trial_failing_source(rng):
    """Whoever makes a read fail saves nobody's budget: the fit that fails costs what the other one costs."""
    n, grouped, size = 60, bool(rng.integers(2)), int(rng.integers(3, 15))
    kind = str(rng.choice(["Cohort", "mean", "surface", "terms", "derived", "offset"]))
    delta, after, broken = (None, 1e-6)[rng.integers(2)], int(rng.integers(0, 4)), int(rng.integers(0, n // size))
    curves, t = rng.uniform(-1, 1, (n, 4)), np.linspace(0, 1, 4)
    ids = [f"p{i}" for i in rng.integers(0, 30, n)]
    adjacency = str(rng.choice(ADJACENCIES))
    settings = {"adjacency": adjacency, "n": None if adjacency == "add-remove" else n}
    privacy = Privacy(20.0, delta, **settings, random_state=0)
    facts = {"privacy": privacy, "mechanism": SHORT["dp-aff"](allow_useless=True), "progress": False}
    by_name = kind in ("terms", "derived", "offset")
    chunks = []
    for rows in np.split(np.arange(n), range(size, n, size)):
        chunk = {"X": curves[rows], "Y": curves[rows]} if by_name else (curves[rows],) * (1 + (kind == "surface"))
        own = [ids[i] for i in rows]
        chunks.append({**chunk, "id": own} if by_name else (*chunk, own) if grouped else chunk)

    def fit(broken):
        source = Breaking(chunks, broken, after)
        if kind == "Cohort":
            cohort = Cohort(source, groups=grouped or None, budget=Budget(1.0, delta), **settings)
            cohort.sum(lambda rows: rows[0], clip=1.0, share=0.5, name="sum")
        elif kind == "mean":
            mean = PrivateMean(privacy=privacy, bounds=(-2, 2), allow_useless=True)
            mean.fit_chunks(source, t=t, groups=grouped or None)
        elif kind == "surface":
            model = AdditiveFunctionOnFunction(bounds=BOUNDS, **facts)
            model.fit_chunks(source, s=t, t=t, groups=grouped or None)
        else:
            formula = "Y ~ ff(X) + mean(X)" if kind == "derived" else "Y ~ ff(X)"
            offset = "0.5 * last(X)" if kind == "offset" else None
            model = FunctionalRegression(formula, bounds=BOUNDS, **facts)
            model.fit_chunks(source, grids={"X": t, "Y": t}, offset=offset, groups="id" if grouped else None)

    fit_first, failed = ({broken}, set()) if rng.integers(2) else (set(), {broken})
    return f"failing source, {kind}", costs_the_same(fit, fit_first, failed)


def trial_ragged_lists(rng):
    """Rows of a person that are lists of another length than those of all others."""
    n, width, grouped = int(rng.integers(5, 30)), int(rng.integers(1, 7)), bool(rng.integers(2))
    rows = [[float(v) for v in row] for row in rng.uniform(-1, 1, (n, width))]
    if rng.integers(2):  # two widths, of which one person decides which is more frequent
        rows = [[*row, 0.5] if i % 2 else row for i, row in enumerate(rows)]
    ids, mine = [f"p{i}" for i in range(n)], int(rng.choice([0, n - 1, rng.integers(n)]))
    odd = [list(rng.uniform(-1, 1, int(rng.integers(0, 8)))), [], None, 0.5, "?", [[0.5]]]
    odd += [["?"] * width, [1e30] * width]
    other = list(rows)
    other[mine] = odd[rng.integers(len(odd))]
    kind, pure = str(rng.choice(["mean", "chunks", "linear", "surface"])), bool(rng.integers(2))
    privacy = Privacy(20.0, None if pure else 1e-6, n=n, adjacency="replace", random_state=0)
    t = np.linspace(0, 1, width) if width > 2 and rng.random() < 0.8 else None

    def fit(rows):
        groups = ids if grouped else None
        mean = PrivateMean(privacy=privacy, bounds=(-2, 2), allow_useless=True)
        if kind == "mean":
            mean.fit(rows, groups=groups, t=t)
        elif kind == "chunks":
            pieces = [((rows[k : k + 4], ids[k : k + 4]) if grouped else (rows[k : k + 4],)) for k in range(0, n, 4)]
            mean.fit_chunks(pieces, t=t, groups=grouped or None)
        elif kind == "surface":
            mechanism = SHORT["dp-aff"](allow_useless=True)
            model = AdditiveFunctionOnFunction(privacy=privacy, bounds=BOUNDS, mechanism=mechanism, progress=False)
            model.fit(rows, np.full((n, 4), 0.5), s=t, groups=groups)
        else:
            ends = {"bounds": (-1, 1), "bounds_y": (-1, 1)}
            model = DPLinearRegression(epsilon=20.0, **ends, n=n, adjacency="replace", random_state=0)
            model.fit(rows, [0.5] * n, groups=groups)

    return f"ragged lists, {kind}", moved(fit, *((rows, other) if rng.integers(2) else (other, rows)))


SHARES = {
    trial_cohort: 0.42,
    trial_query: 0.04,
    trial_failing_source: 0.03,
    trial_ragged_lists: 0.02,
    trial_joined: 0.02,
    trial_chunks_of_a_cohort: 0.18,
    trial_learner: 0.14,
    trial_rows_of_a_learner: 0.03,
    trial_summary: 0.06,
    trial_table: 0.05,
    trial_regression: 0.01,
}


def trials(count, seed=0, start=0):
    """Worst change of each estimator over some trials, and how many there were of it."""
    worst, number = collections.Counter(), collections.Counter()
    for at in range(start, start + count):
        rng = np.random.default_rng([seed, at])
        trial = rng.choice(list(SHARES), p=list(SHARES.values()))
        try:
            name, ratio = trial(rng)
        except Exception as error:
            raise AssertionError(f"trial {at} of seed {seed}, {trial.__name__}: {error}") from error
        assert ratio <= 1, f"trial {at} of seed {seed}, {name}: change/sensitivity {ratio}"
        worst[name], number[name] = max(worst[name], ratio), number[name] + 1
    return worst, number


def test_one_person_moves_no_sum_by_more_than_the_sensitivity():
    worst, _ = trials(100)
    assert 0.9 < max(worst.values()) <= 1


@pytest.mark.parametrize("trial", SHARES, ids=lambda trial: trial.__name__)
def test_every_estimator_has_its_share(trial):
    for at in range(3):
        assert trial(np.random.default_rng([7, at]))[1] <= 1


@pytest.mark.long
def test_twenty_thousand_trials():
    worst, number = trials(20_000, seed=1)
    for name in sorted(worst):
        print(f"{number[name]:6d} {worst[name]:.6f} {name}")
    print(f"{sum(number.values()):6d} {max(worst.values()):.6f} worst change over sensitivity")
    assert max(worst.values()) <= 1
