"""What a person can move in the score of a choice, and what an observer of the choice can learn of a person."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from mutants import mutate

from fdadp import AdditiveFunctionOnFunction, FunctionalRegression, Privacy, ScalarRegression, choose_privately
from fdadp.audit import Neighbours, black_box_audit, replay_audit
from fdadp.choice import held_out_errors as module
from fdadp.choice.held_out_errors import OCTAVES, Judges, Reader
from fdadp.errors import PrivacyError
from fdadp.privacy import Budget, Cohort, SeededNoise, TapeNoise
from fdadp.privacy.kernel import _kernel
from fdadp.privacy.noise.distributed import noise_source
from fdadp.privacy.private_entries import table
from fdadp.privacy.replayed_loss import losses


def judges(X, y, clip=4.0):
    """Two candidates that are known: one predicts x, the other 0."""
    x = table(X)
    readers = (Reader((x,), (1,), lambda row: row[0][:, 0]), Reader((x,), (1,), lambda row: 0.0 * row[0][:, 0]))
    return Judges(table(y), readers, [], clip, (x,))


ODD = [(0.0, 0.0), (2.0, 2.0), (2.0, 0.0), (-9.0, 9.0), (np.nan, 1.0), (1.0, np.nan), (np.inf, -np.inf), (1e30, -1e30)]
"""Rows (x, y): no difference, one candidate right and the other wrong, the other way round, and no numbers."""


def tape(rows, adjacency, delta, ids):
    """Releases of a selection with its size of differences."""
    rows = np.array(rows, dtype=np.float64).reshape(-1, 2)
    own = judges(rows[:, :1].copy(), rows[:, 1].copy())
    noise = TapeNoise(SeededNoise(0))
    n = None if adjacency == "add-remove" else 6
    cohort = Cohort(own.data, groups=ids, budget=Budget(1.0, delta), n=n, adjacency=adjacency, noise=noise)
    errors = cohort.derive(own.errors)
    errors.histogram(own.size, share=0.5, name="size of differences")
    errors.select(own.utilities(1.0), share=0.5, name="choice")
    return noise.entries


@pytest.mark.statistics
@pytest.mark.parametrize(
    ("adjacency", "delta"),
    [("add-remove", None), ("replace", 1e-6)]
    + [
        pytest.param(*one, marks=pytest.mark.long)
        for one in (("zero-out", None), ("zero-out", 1e-6), ("add-remove", 1e-6), ("replace", None))
    ],
)
def test_no_person_moves_the_score_by_more_than_its_sensitivity(adjacency, delta):
    """Brute force over persons with odd rows, one and two rows each: on the integers that noise is added to."""
    others = [(0.5, 0.4), (0.1, 1.0), (1.0, -1.0)]
    persons = [[row] for row in ODD] + [list(pair) for pair in itertools.combinations(ODD[1:5], 2)]
    nobody = [(np.nan, np.nan)]

    def entries(person):
        rows = [*others, *person]
        return tape(rows, adjacency, delta, ["a", "b", "c", *["p"] * len(person)])

    base = entries([]) if adjacency == "add-remove" else entries(nobody)
    every = [entries(person) for person in persons]
    pairs = [(base, one) for one in every]
    if adjacency == "replace":
        pairs += list(itertools.combinations(every, 2))
    changes = []
    for first, second in pairs:
        forced = [
            type(b)(b.kind, b.size, b.sensitivity, b.amount, b.scale, b.exact, a.released, b.columns)
            for a, b in zip(first, second, strict=True)
        ]
        found = losses(first, forced)
        assert all(one.spent <= one.amount for one in found)
        changes.append([one.change for one in found])
    largest = np.max(changes, axis=0)
    assert (largest <= 1).all()
    assert largest[1] > 0.99  # one person right for one candidate, the other wrong: the bound is reached


def test_a_row_that_no_candidate_can_predict_for_counts_as_no_row():
    own = judges(np.zeros((1, 1)), np.zeros(1))
    found = own.errors((np.array([1.0, np.nan, 1.0, 3.0]), np.array([[np.nan], [1.0], [np.inf], [1.0]])))
    assert np.isnan(found[:3]).all()
    np.testing.assert_allclose(found[3], [4.0, 4.0])  # cut off
    half = Judges(
        own.target, (own.readers[0], Reader(own.data[1:], (1,), lambda row: row[0][5])), [], 4.0, own.data[1:]
    )
    np.testing.assert_allclose(half.errors((np.array([1.0]), np.array([[1.0]]))), [[0.0, 4.0]])  # one of them fails


def test_utilities_are_about_a_half_and_what_no_candidate_explains_cancels():
    own = judges(np.zeros((1, 1)), np.zeros(1))
    of = own.utilities(0.5)
    errors = np.array([[1.0, 1.5, 2.0], [3.0, 3.5, 4.0], [0.0, 0.0, 9.0], [2.0, 2.0, 2.0]])
    found = of((errors,))
    np.testing.assert_allclose(found[0], [1.0, 0.5, 0.0])
    np.testing.assert_array_equal(found[0], found[1])
    assert (found[2] == [1.0, 1.0, 0.0]).all()
    assert (found[3] == 0.5).all()
    sizes = own.size((np.array([[0.0, 4.0], [0.0, 0.9], [1.0, 1.0], [np.nan, 1.0]]),))
    assert sizes.shape == (4, OCTAVES)
    assert [int(row.argmax()) for row in sizes[:3]] == [0, 2, OCTAVES - 1]
    assert np.isnan(sizes[3]).all()


def test_the_scale_follows_the_released_sizes():
    own = judges(np.zeros((1, 1)), np.zeros(1), clip=4.0)
    counts = np.zeros(OCTAVES)
    counts[3], counts[5] = 10.0, 4.0  # most persons differ by between 1/8 and 1/16 of the clip
    assert own.scale(counts) == module.WIDE * 4.0 / 8
    assert own.scale(np.full(OCTAVES, -1.0)) == module.WIDE * 4.0  # noise alone: nothing is cut off


@pytest.mark.statistics
@pytest.mark.parametrize("delta", [1e-6, pytest.param(None, marks=pytest.mark.long)])
def test_who_sees_only_which_candidate_was_chosen_learns_no_more_than_epsilon(monkeypatch, delta):
    """Black box: draws of the index with and without the person who moves the score most."""
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])

    def draws(present, count=400):
        kept = rows if present else rows[:2]
        out = np.empty(count)
        for seed in range(count):
            noise = SeededNoise(np.random.default_rng([seed, present]))
            cohort = Cohort(kept, budget=Budget(1.0, delta), groups=range(len(kept)), noise=noise)
            out[seed] = cohort.select(lambda block: block[0], share=1.0, name="choice")
        return out

    claim = {"epsilon": 1.0, "delta": delta or 0.0}
    assert black_box_audit(draws(True), draws(False), **claim).passed
    mutate(monkeypatch, _kernel, "2 ** (bits - 1) if what", "2 ** (bits - 5) if what")
    assert not black_box_audit(draws(True), draws(False), **claim).passed


def test_a_score_that_looks_at_other_rows_is_refused(monkeypatch):
    mutate(monkeypatch, module, "total += errors[:, j : j + 1]", "total += errors[:, j : j + 1] + errors[:, 0].mean()")
    own = judges(np.ones((3, 1)), np.zeros(3))
    cohort = Cohort(own.data, budget=Budget(1.0), groups=range(3), noise=SeededNoise(0))
    with pytest.raises(PrivacyError, match="must be row-local"):
        cohort.derive(own.errors).select(own.utilities(1.0), share=1.0, name="choice")


# ------------------------------------------------------------------ the whole procedure on curves and columns

S = np.linspace(0, 1, 8)
BOUNDS = {"age": (0, 90), "X": (-3, 3), "Y": (-3, 3), "y": (-3, 3), "ward": ["a", "b"]}


def stays(n):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 1)) + 0.3 * rng.normal(size=(n, S.size))
    ward = rng.choice(["a", "b"], n).astype(object)
    return {"X": X, "age": rng.uniform(0, 90, n), "ward": ward, "y": X.mean(axis=1), "Y": X + 0.1}


def curve_models():
    return [AdditiveFunctionOnFunction(bounds={k: BOUNDS[k] for k in "XY"}, mechanism=m) for m in ("dp-aff", "moments")]


CASES = {
    "numbers": lambda: [ScalarRegression(m, bounds=BOUNDS) for m in ("y ~ ward", "y ~ age")],
    "columns": lambda: [ScalarRegression(m, bounds=BOUNDS) for m in ("y ~ ward", "y ~ lf(X)")],
    "curves of columns": lambda: [FunctionalRegression(m, bounds=BOUNDS) for m in ("Y ~ ward", "Y ~ ff(X)")],
    "curves": curve_models,
}


def neighbours(case, adjacency, grouped, delta, who):
    n = 24
    make = CASES[case]
    data, ids = stays(n), [f"p{i // 2}" for i in range(n)] if grouped else None
    persons = None if adjacency == "add-remove" else n // 2 if grouped else n
    privacy = Privacy(120.0, delta, n=persons, adjacency=adjacency, dataset=f"{case} {adjacency} {grouped} {delta}")

    def run(given, noise):
        columns, who = given
        x, y = (columns, None) if case != "curves" else (columns["X"], columns["Y"])
        with noise_source(noise):
            found = choose_privately(make(), x, y, privacy, who, grids={"X": S, "Y": S}, clip=1.0, allow_useless=True)
        return found.index, found.ledger, found.plan

    budget = Budget(120.0, delta)
    for i in who:
        mine = np.arange(n) // 2 == i // 2 if grouped else np.arange(n) == i
        other = {name: column.copy() for name, column in data.items()}
        others = ids
        if adjacency == "add-remove":
            other = {name: column[~mine] for name, column in data.items()}
            others = [one for one, m in zip(ids, mine, strict=True) if not m]
        elif grouped:  # blanked out: nobody's; or exchanged with one who may be in the other part
            others = [(None if adjacency == "zero-out" else "new") if m else o for o, m in zip(ids, mine, strict=True)]
        if adjacency == "replace" or not grouped:
            for name, column in other.items():
                column[mine] = "elsewhere" if name == "ward" else np.nan if adjacency == "zero-out" else 1e3
        total = {"total": budget.total, "accounting": budget.accounting}
        yield Neighbours(f"{case} {i}", run, (data, ids), (other, others), **total)


KINDS = [("zero-out", False), ("zero-out", True), ("add-remove", True), ("replace", False), ("replace", True)]


@pytest.mark.statistics
@pytest.mark.parametrize(
    ("case", "adjacency", "grouped", "delta"),
    [("numbers", "add-remove", True, 1e-3), ("numbers", "replace", False, None)],
)
def test_replay_of_the_whole_procedure(case, adjacency, grouped, delta):
    audit = replay_audit(neighbours(case, adjacency, grouped, delta, (3,)))
    assert audit.passed, str(audit)
    assert audit.finished == 1
    assert 0.01 < audit.changes.max() <= 1


@pytest.mark.long
@pytest.mark.parametrize(("adjacency", "grouped"), KINDS)
@pytest.mark.parametrize("delta", [None, 1e-3])
@pytest.mark.parametrize("case", CASES)
def test_replay_of_every_kind(case, adjacency, grouped, delta):
    if case == "numbers" and (adjacency, grouped) == ("zero-out", False):
        pytest.skip("a row whose number is missing is no blank row: it counts in the number's location")
    audit = replay_audit(neighbours(case, adjacency, grouped, delta, range(0, 24, 4)))
    assert audit.passed, str(audit)
    assert audit.finished == len(audit.ratios)
    assert 0.2 < audit.changes.max() <= 1
