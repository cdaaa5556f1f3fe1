"""The kernel: brute-force sensitivity, spending, silence, and the ledger, for every kind of release."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import logging
import math
import subprocess
import sys
import threading
import warnings
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest
from privacy_tools import COUNT, MODES, NASTY, OF_A_COLUMN, RELEASES, SUM_OF, assemble, run, toy, worst_ratio
from scipy import stats

import fdadp.privacy.kernel._kernel as kernel
from fdadp._common.threads import ALONE, map_stream, said_threads
from fdadp.errors import PrivacyError
from fdadp.privacy import Budget, Cohort, Ledger, OpenDPNoise, SeededNoise, TapeNoise, rowwise_matmul
from fdadp.privacy.rows._rowwise_arithmetic import log, log_positions
from fdadp.privacy.rows._sealed_row_functions import BLOCK, evaluate, silence


def cohort(rows=None, *, epsilon=1.0, delta=1e-6, n=200, noise=None, **kwargs):
    rows = np.random.default_rng(0).normal(size=(200, 2)) if rows is None else rows
    return Cohort(rows, budget=Budget(epsilon, delta), n=n, noise=noise or SeededNoise(0), **kwargs)


# ------------------------------------------------------------------ (b) sensitivity by brute force


@pytest.mark.each_once(("kind", "adjacency"), ("kind", "pure"), ("kind", "grouped"))
@pytest.mark.parametrize("grouped", [False, "mean", "sum"])
@pytest.mark.parametrize(("pure", "adjacency"), MODES)
@pytest.mark.parametrize("kind", [*RELEASES, *COUNT])
def test_sensitivity_by_brute_force(kind, pure, adjacency, grouped):
    if kind == "count" and adjacency != "add-remove" and grouped != "sum":
        pytest.skip("n is public")
    ratio = worst_ratio((RELEASES | COUNT)[kind], pure=pure, adjacency=adjacency, grouped=grouped)
    least = -1.0 if kind == "count" and adjacency == "replace" else 0.1 if grouped == "sum" else 0.2
    assert least < ratio <= 1.0  # replaced persons of one row all count alike


def test_the_bounds_are_attained():
    attained = {k: worst_ratio(f, pure=False, adjacency="zero-out", grouped=False) for k, f in RELEASES.items()}
    assert min(attained.values()) > 0.999
    assert worst_ratio(RELEASES["sum"], pure=False, adjacency="replace", grouped=False) > 0.9
    assert worst_ratio(RELEASES["histogram"], pure=False, adjacency="replace", grouped=False) > 0.999
    assert worst_ratio(RELEASES["geometric_mean"], pure=True, adjacency="replace", grouped=False) > 0.999


# ------------------------------------------------------------------ mutations: brute force must go red


def _half_sensitivity(patch):
    original = kernel.Kernel.sensitivity
    patch.setattr(kernel.Kernel, "sensitivity", lambda *a: original(*a) / 2)


def _twice_the_clip(patch):
    original = kernel.exact_sum
    patch.setattr(kernel, "exact_sum", lambda *a, bits, **k: original(*a, bits=bits + 1, **k))


def _replaced_counts_once(patch):
    patch.setattr(kernel.Kernel, "sensitivity", lambda self, what, bits, factor: float(2**bits))


def _no_mask(patch):
    """NaN and infinity cast to integers, as a naive kernel would."""

    def naive(vault, contributions, size, *, clip, bits, **_):
        total = np.zeros(size, dtype=np.int64)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for rows, m, _ in vault.blocks():
                v = contributions(rows, m)[:m]
                v = v * np.minimum(1, clip / np.sqrt((v * v).sum(axis=1)))[:, None]
                total += np.trunc(v * 2**bits / clip).astype(np.int64).sum(axis=0)
        return total

    patch.setattr(kernel, "exact_sum", naive)


@pytest.mark.parametrize(
    ("mutate", "adjacency"),
    [
        (_half_sensitivity, "zero-out"),
        (_twice_the_clip, "add-remove"),
        (_replaced_counts_once, "replace"),
        (_no_mask, "zero-out"),
    ],
)
def test_mutants_are_caught(monkeypatch, mutate, adjacency):
    mutate(monkeypatch)
    assert worst_ratio(RELEASES["sum"], pure=False, adjacency=adjacency, grouped=False) > 1


# ------------------------------------------------------------------ the right value, persons, rows


def test_sums_are_the_clipped_sums():
    rows = np.random.default_rng(1).normal(size=(700, 3)) * 3
    c = Cohort(rows, budget=Budget(1e3, 1e-6), n=700, noise=SeededNoise(0))
    value, sd = c.sum(lambda r: r[0], clip=4.0, share=0.2, name="s")
    wanted = (rows * np.minimum(1, 4 / np.linalg.norm(rows, axis=1))[:, None]).sum(axis=0)
    np.testing.assert_allclose(value, wanted, atol=5 * sd + 700 * 4 / 2**24)
    weights = np.array([[1.0, 2.0], [0.0, 1.0], [0.5, 0.0]])
    value, sd = c.sum_outer(lambda r: r[0], lambda r: r[0][:, :2], clip=5.0, share=0.2, name="o", weights=weights)
    v = weights * rows[:, :, None] * rows[:, None, :2]
    v *= np.minimum(1, 5 / np.sqrt((v**2).sum(axis=(1, 2))))[:, None, None]
    np.testing.assert_allclose(value, v.sum(axis=0), atol=5 * sd + 700 * 5 / 2**24)
    assert value[1, 0] == value[2, 1] == 0
    scale, log_sd = c.geometric_mean(lambda r: np.abs(r[0][:, 0]), 0.01, 100, share=0.2, name="l")
    assert scale == pytest.approx(
        math.exp(np.log(np.clip(np.abs(rows[:, 0]), 0.01, 100)).mean()), rel=6 * log_sd + 1e-6
    )
    masses, sd = c.histogram(lambda r: np.stack([r[0][:, 0] > 0, r[0][:, 0] <= 0], 1) * 1.0, share=0.2, name="h")
    np.testing.assert_allclose(masses, [(rows[:, 0] > 0).sum(), (rows[:, 0] <= 0).sum()], atol=5 * sd)
    assert c.select(lambda r: np.array([0.1, 0.9, 0.3]) + 0 * r[0], share=0.1, name="u") == 1
    assert c.left == pytest.approx(0.1)
    assert c.reads == 5


def test_rows_in_one_of_many_blocks_give_the_sums_of_wide_rows():
    """Bit for bit, where rows are clipped too, whichever places of four the blocks begin at; and no row is wide."""
    rng = np.random.default_rng(2)

    def one(shape, blocks, nonnegative, pure, persons):
        rows = rng.normal(size=(120, shape + 1)) * 10.0 ** rng.uniform(-3, 3, (120, 1))
        rows[:, -1] = rng.choice([*range(blocks), -1, blocks, 0.5, np.nan], 120)
        rows[:4, 0] = np.nan, np.inf, 0.0, -0.0
        at = np.arange(blocks)
        wide = lambda r: ((r[0][:, -1:] == at)[:, :, None] * r[0][:, None, :-1]).reshape(len(r[0]), -1)  # noqa: E731
        narrow = lambda r: (r[0][:, :-1], r[0][:, -1])  # noqa: E731
        told = {"clip": 1.7, "share": 0.1, "name": "s", "nonnegative": nonnegative}
        sums = [lambda c: c.sum(wide, **told), lambda c: c.sum(narrow, blocks=blocks, **told)]
        groups = np.arange(120) // 2 if persons else None
        first, second = (run(release, rows, groups, pure=pure, n=120) for release in sums)
        assert any(first.exact) and first.exact == second.exact
        assert (first.kind, first.scale, first.sensitivity) == (second.kind, second.scale, second.sensitivity)

    for shape, blocks in ((1, 1), (1, 7), (3, 5), (4, 3), (5, 41), (9, 2), (1030, 3)):
        for nonnegative, pure, persons in itertools.product([False, True], repeat=3):
            one(shape, blocks, nonnegative, pure, persons)


@pytest.mark.parametrize("blocks", [0, 3])
def test_blocks_are_checked_before_the_first_read(blocks):
    c = cohort()
    with pytest.raises(PrivacyError, match="block as one number"):
        c.sum(lambda r: (r[0], r[0]), clip=1.0, share=0.1, name="s", blocks=blocks)
    with pytest.raises(PrivacyError, match="2 array"):
        c.sum(lambda r: r[0], clip=1.0, share=0.1, name="s", blocks=blocks)
    assert (c.reads, c.left) == (0, 1.0)


@pytest.mark.parametrize(
    ("told", "text"),
    [
        ({"table": [[np.nan]]}, "table must be finite"),
        ({"table": [1.0]}, r"of shape \(K, d\)"),
        ({"table": [[1.0]], "f": lambda r: r[0][:, :, None]}, "numbers of its rows"),
        ({"table": [[1.0]], "size": 2}, "size must be"),
    ],
)
def test_tables_are_checked_before_the_first_read(told, text):
    c = cohort()
    with pytest.raises(PrivacyError, match=text):
        c.sum(told.pop("f", lambda r: r[0]), clip=1.0, share=0.1, name="s", **told)
    assert (c.reads, c.left) == (0, 1.0)


def test_a_row_that_names_no_row_of_a_table_adds_nothing():
    rows = np.array([[0.0, 2.0], [1.0, 1.0], [0.5, 1.0], [np.nan, 0.0], [-1.0, 0.0], [3.0, 0.0]])
    table = np.array([[1.0, 0.0], [0.0, 2.0], [4.0, 4.0]])
    exact = run(lambda c: c.sum(lambda r: r[0], clip=8.0, share=0.1, name="s", table=table), rows).exact
    np.testing.assert_allclose(np.array(exact) * 8 / 2**24, [2.5, 4.0], atol=1e-6)


def test_persons_are_averaged_once_and_rows_without_an_id_are_nobody():
    rows = np.array([[1.0], [3.0], [np.nan], [10.0], [7.0]])
    ids = ["a", "a", "a", "b", None]
    exact = run(ADDED, rows, ids).exact[0]
    assert exact / 2**24 * 100 == pytest.approx(2 + 10, abs=1e-4)  # the mean of a's usable rows, b's row
    assert run(ADDED, rows, ids, law="sum").exact[0] / 2**24 * 100 == pytest.approx(4 + 10, abs=1e-4)
    assert run(COUNT["count"], rows, ids, adjacency="add-remove").exact[0] == 2 * 2**24
    assert run(COUNT["count"], rows[[2]], ["a"], adjacency="add-remove").exact[0] == 2**24  # usable or not


def ADDED(c):
    return c.sum(lambda r: r[0], clip=100.0, share=0.1, name="s")


@pytest.mark.parametrize("kind", RELEASES)
@pytest.mark.parametrize("law", ["mean", "sum"])
def test_neither_the_order_of_a_persons_rows_nor_their_chunks_matter(kind, law):
    """Bit for bit: rows are added in integers, and which of them count follows from their own entries."""
    rng = np.random.default_rng(3)
    rows, ids = rng.normal(size=(300, 2)) * 10.0 ** rng.integers(-3, 4, (300, 1)), rng.integers(0, 60, 300)
    whole = run(RELEASES[kind], rows, ids, law=law).exact
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(300)
        np.testing.assert_array_equal(run(RELEASES[kind], rows[order], ids[order], law=law).exact, whole)
        apart = {"chunks": 37, "ids_in_chunks": True, "law": law}
        np.testing.assert_array_equal(run(RELEASES[kind], rows[order], ids[order], **apart).exact, whole)


def test_rows_beyond_max_rows_are_nobodys():
    rows, ids = np.arange(1.0, 8.0)[:, None], [0, 0, 0, 0, 0, 1, None]
    added = run(ADDED, rows, ids, law="sum").exact[0] / 2**24 * 100
    alone = [run(ADDED, rows[[i, j]], [0, 0], law="sum").exact[0] / 2**24 * 100 for i in range(5) for j in range(i)]
    assert min(abs(added - 6.0 - pair) for pair in alone) < 1e-3
    assert run(COUNT["count"], rows, ids, law="sum").exact[0] / 2**24 * SUM_OF == pytest.approx(3)


def test_equal_rows_of_a_person_take_no_other_rows_place():
    """A source may show rows in another order on each pass. Two equal rows that came first both counted."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        a, b = rng.normal(size=2)
        rows = np.array([a, b, a, a, b])  # of one person, of which three count
        orders = [rng.permutation(5) for _ in range(4)]

        class Source:
            def __init__(self, orders):
                self.orders = iter([*orders, *orders])

            def __iter__(self):
                order = next(self.orders)
                yield from ((rows[[i], None], [0]) for i in order)  # noqa: B023

        told = {"groups": True, "person_rows": "sum", "max_rows": 3, "adjacency": "zero-out", "n": 1}
        seen = []
        for source in (Source(orders), Source([np.arange(5)] * 4)):
            noise = TapeNoise(SeededNoise(0))
            RELEASES["sum"](Cohort(source, budget=Budget(1.0, 1e-6), noise=noise, **told))
            seen.append(noise.entries[0].exact)
        assert seen[0] == seen[1]


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ({"person_rows": "median"}, "person_rows must be 'mean' or 'sum', got 'median'"),
        ({"person_rows": "sum"}, "max_rows must be given with person_rows='sum'"),
        ({"person_rows": "sum", "max_rows": 0}, "from 1 to 10000, got 0"),
        ({"max_rows": 3}, "max_rows must be left out with person_rows='mean', got 3"),
        ({"person_rows": "sum", "max_rows": 3}, "person_rows must be 'mean' without groups"),
    ],
)
def test_wrong_laws_are_refused_before_anything_is_read(told, says):
    with pytest.raises(PrivacyError, match=says):
        Cohort(np.ones(4), budget=Budget(1.0), n=4, **told)


@pytest.mark.parametrize("kind", RELEASES)
@pytest.mark.parametrize("grouped", [False, True])
def test_a_person_changes_the_sum_by_its_own_integers_exactly(kind, grouped):
    """Under deletion; and neither the order of persons nor the cut into chunks changes anything."""
    people = [p for p in toy(grouped) for _ in range(40)]
    rng = np.random.default_rng(5)
    people = [p + rng.normal(size=p.shape) for p in people]
    release = RELEASES[kind]
    rows, ids = assemble(people, grouped)
    whole = np.array(run(release, rows, ids).exact)
    for i in (0, 7, 200, len(people) - 1):
        alone = np.array(run(release, *assemble(people[i : i + 1], grouped)).exact)
        without = np.array(run(release, *assemble(people[:i] + people[i + 1 :], grouped)).exact)
        np.testing.assert_array_equal(whole, without + alone)
    order = rng.permutation(len(people))
    np.testing.assert_array_equal(run(release, *assemble([people[i] for i in order], grouped)).exact, whole)
    for size in (1, 7, 512, 513):
        np.testing.assert_array_equal(run(release, rows, ids, chunks=size).exact, whole)
    if grouped:  # a person's rows far apart, in their own order
        apart = np.argsort(np.concatenate([np.arange(len(p)) for p in people]), kind="stable")
        np.testing.assert_array_equal(run(release, rows[apart], ids[apart]).exact, whole)
        np.testing.assert_array_equal(run(release, rows[apart], ids[apart], chunks=50).exact, whole)


@pytest.mark.parametrize("grouped", [False, True])
def test_the_number_of_threads_does_not_matter(monkeypatch, grouped):
    rng = np.random.default_rng(4)
    rows, B = rng.normal(size=(5000, 5)), rng.normal(size=(5, 7))
    ids = rng.integers(0, 1800, 5000) if grouped else None
    found = []
    for threads in (1, 2, 5):
        monkeypatch.setattr("fdadp._common.threads.N_THREADS", threads)
        for chunks in (0, 700):
            release = lambda c: c.derive(lambda r: rowwise_matmul(r[0], B)).sum_outer(  # noqa: E731
                lambda r: (r[0], r[0]), clip=20.0, share=0.1, name="o"
            )
            found.append(run(release, rows, ids, chunks=chunks).exact)
    assert len(set(found)) == 1


def test_map_stream_keeps_order_and_holds_few_items():
    taken = []

    def items():
        for i in range(100):
            taken.append(i)
            yield i

    results = map_stream(lambda i: i * i, items())
    assert next(results) == 0 and len(taken) < 100
    assert list(results) == [i * i for i in range(1, 100)]


def test_a_few_items_wake_no_other_thread(monkeypatch):
    monkeypatch.setattr("fdadp._common.threads.N_THREADS", 2)
    own, threads = threading.get_ident(), list(map_stream(lambda _: threading.get_ident(), range(50)))
    assert threads[:ALONE] == [own] * ALONE and own not in threads[ALONE:]


def test_a_number_of_threads_that_is_none_spends_no_budget():
    """NUMBA_NUM_THREADS=0 failed in the middle of a read, at its fifth block; an empty text at the import."""
    assert [said_threads(said) for said in ("0", "-1", "3")] == [1, 1, 3]
    assert said_threads("") == said_threads("all") >= 1


def test_features_by_rowwise_matmul_are_row_local():
    rng = np.random.default_rng(2)
    rows, B = rng.normal(size=(1300, 51)), rng.normal(size=(51, 60))
    release = lambda c: c.sum(lambda r: rowwise_matmul(r[0], B), clip=30.0, share=0.1, name="s")  # noqa: E731
    whole = np.array(run(release, rows).exact)
    for i in (0, 511, 512, 1299):
        np.testing.assert_array_equal(
            np.array(run(release, np.delete(rows, i, axis=0)).exact) + run(release, rows[[i]]).exact, whole
        )
    np.testing.assert_allclose(rowwise_matmul(rows, B), rows @ B, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("columns", [1, 3, 4, 8, 13, 60, 488])
def test_a_product_of_rows_is_the_same_alone_and_among_others(columns):
    """Fast loops treat entries in fours, and few columns have a kernel of their own: all must get the same bits."""
    rng = np.random.default_rng(columns)
    rows, B = rng.normal(size=(23, 61)) * 10.0 ** rng.uniform(-3, 3, (23, 1)), rng.normal(size=(61, columns))
    rows[5, 7] = np.nan
    whole = rowwise_matmul(rows, B)
    for i in range(23):
        np.testing.assert_array_equal(rowwise_matmul(rows[i : i + 1], B)[0], whole[i])
    shuffled = rng.permutation(23)
    np.testing.assert_array_equal(rowwise_matmul(rows[shuffled], B), whole[shuffled])
    one_by_one = [[functools.reduce(lambda s, p: s + p, r * b, 0.0) for b in B.T] for r in rows]
    np.testing.assert_array_equal(whole, one_by_one)  # plain additions, in order


def test_log_scale_has_a_logarithm_of_its_own_with_the_same_bits_everywhere():
    rng = np.random.default_rng(0)
    x = np.concatenate([np.exp(rng.uniform(-700, 700, 3000)), rng.uniform(0.5, 2, 3000), [1.0, 5e-324, 1.7e308]])
    off = [abs(log(v) - math.log(v)) / math.ulp(math.log(v)) for v in x if v != 1]
    assert max(off) <= 1 and log(1.0) == 0
    together, alone = np.empty(x.size), np.empty(x.size)
    scale = 1e-300, 1e300, 1.0, math.log(1e300)
    log_positions(x, *scale, together)
    for i in range(x.size):
        log_positions(x[i : i + 1], *scale, alone[i : i + 1])
    np.testing.assert_array_equal(together, alone)
    nothing = np.empty(5)
    log_positions(np.array([np.nan, np.inf, -1.0, 0.0, 2e300]), *scale, nothing)
    np.testing.assert_array_equal(nothing, [np.nan, np.nan, np.nan, -1, 1])


@pytest.mark.parametrize(
    "f",
    [
        lambda r: r[0] - r[0].mean(axis=0),
        lambda r: np.cumsum(r[0], axis=0),
        lambda r: r[0] * np.arange(len(r[0]))[:, None],
        lambda r: r[0] / np.abs(r[0]).max(),
        lambda r: r[0][::-1],
        lambda r, state=[0]: r[0] + state.append(0) + len(state) if False else r[0] + (state.append(0) or len(state)),
    ],
)
def test_functions_that_are_not_row_local_are_refused_before_the_first_read(f):
    c = cohort()
    with pytest.raises(PrivacyError, match="row-local"):
        c.sum(f, clip=1.0, share=0.1, name="s")
    assert (c.reads, c.left, c.budget.spent) == (0, 1.0, 0.0)


LOW, HIGH = 1e6, 1e6 + 1


class Levels:
    """Bounds of each column, as private estimators hold them."""

    def __init__(self, columns):
        self.low, self.high = np.full(columns, 1234567.0), np.full(columns, 1234568.5)
        self.more = list(range(150))

    def centred(self, rows):
        x = np.where((rows[0] >= self.low) & (rows[0] <= self.high), rows[0], np.nan)
        return np.nan_to_num(x - np.nanmean(x, axis=0))


def of_bounds(low, high):
    def f(rows):
        x = np.clip(rows[0], low, high)
        return x - x.mean(axis=0)

    return f


@pytest.mark.parametrize(
    "f",
    [
        of_bounds(1e6, 1e6 + 1),
        of_bounds(-5e8, -5e8 + 0.25),
        lambda r: np.where(np.abs(r[0] - 2718281.5) < 0.5, r[0] - r[0][np.abs(r[0] - 2718281.5) < 0.5].mean(), 0.0),
        lambda r: np.clip(r[0], LOW, HIGH) - np.clip(r[0], LOW, HIGH).mean(axis=0),
        Levels(2).centred,
        functools.partial(lambda r, at: np.where(np.abs(r[0] - at) < 1, r[0].mean(axis=0), 0.0), at=1e6 + 2),
        lambda r: (lambda x: np.where(np.abs(x - 1000002.0) < 1, x.mean(axis=0), 0.0))(r[0]),
    ],
)
def test_rows_far_from_zero_are_tried_too(f):
    """All rows about 0 are clipped to one value, whose mean it is: such functions passed."""
    c = cohort()
    with pytest.raises(PrivacyError, match="row-local"):
        c.sum(f, clip=1.0, share=0.1, name="s")
    assert (c.reads, c.left, c.budget.spent) == (0, 1.0, 0.0)


def test_functions_that_keep_to_public_bounds_far_from_zero_pass():
    c = cohort()
    c.sum(lambda r: np.clip(r[0], LOW, HIGH) - LOW, clip=1.0, share=0.1, name="s")
    c.sum(lambda r: np.where((r[0] > LOW) & (r[0] < HIGH), r[0] - LOW, np.nan), clip=1.0, share=0.1, name="t")


def test_a_wrapper_is_checked_again_with_another_function_inside():
    def wrap(inner):
        return lambda r: inner(r[0])

    c = cohort()
    c.sum(wrap(lambda x: 2 * x), clip=1.0, share=0.1, name="s")
    with pytest.raises(PrivacyError, match="row-local"):
        c.sum(wrap(lambda x: x - x.mean(axis=0)), clip=1.0, share=0.1, name="s")


def raises_below_zero(rows):
    if (rows[0] < 0).any():
        raise ValueError("below 0")
    return rows[0] - rows[0].mean(axis=0)


@pytest.mark.parametrize(
    "f",
    [
        lambda r: np.where(np.isnan(r[0]), np.nanmean(r[0], axis=0), r[0]),
        lambda r: np.where(np.isinf(r[0]), r[0][np.isfinite(r[0])].max(), r[0]),
        raises_below_zero,
    ],
)
def test_rows_with_gaps_are_tried_too_and_those_that_a_function_takes(f):
    """What fills a gap by other rows passed, for no row had gaps; so did what raised for any one of the rows."""
    c = cohort()
    with pytest.raises(PrivacyError, match="row-local"):
        c.sum(f, clip=1.0, share=0.1, name="s")
    assert (c.reads, c.left, c.budget.spent) == (0, 1.0, 0.0)


def of_all(x, times):
    return x - times * x.mean(axis=0)


def of_one(x, times):
    return x * times


class InSlots:
    __slots__ = ("inner",)

    def __init__(self, inner):
        self.inner = inner


def in_a_notebook(helper):
    """A function of the same text each time, whose helper was written anew."""
    module = {}
    exec(f"def helper(x): return {helper}\nf = lambda rows: helper(rows[0])", module)
    return module["f"]


HOLDS = {
    "a partial": lambda held: lambda r: held(r[0], 1.0),
    "a slot": lambda held: lambda r: held.inner(r[0], 1.0),
    "a word": lambda held: lambda r: (of_one if held == "rows" else of_all)(r[0], 1.0),
    "a flag": lambda held: lambda r: (of_all if held else of_one)(r[0], 1.0),
    "a number": lambda held: lambda r: of_one(r[0], 1.0) if held == 0 else of_all(r[0], held),
    "a set": lambda held: lambda r: (of_all if "mean" in held else of_one)(r[0], 1.0),
    "one of several": lambda held: lambda r: held[2](r[0], 1.0),
    "a function of its module": in_a_notebook,
}


@pytest.mark.parametrize(
    ("kind", "first", "second"),
    [
        ("a partial", functools.partial(of_one), functools.partial(of_all)),
        ("a slot", InSlots(of_one), InSlots(of_all)),
        ("a word", "rows", "all"),
        ("a flag", False, True),
        ("a number", 0.0, 1.0),
        ("a set", {"rows"}, {"mean"}),
        ("one of several", (of_one, of_all, of_one), (of_one, of_all, of_all)),
        ("a function of its module", "2 * x", "x - x.mean(axis=0)"),
    ],
)
def test_a_function_is_checked_again_with_another(kind, first, second):
    c = cohort()
    c.sum(HOLDS[kind](first), clip=1.0, share=0.1, name="s")
    with pytest.raises(PrivacyError, match="row-local"):
        c.sum(HOLDS[kind](second), clip=1.0, share=0.1, name="s")


@pytest.mark.parametrize("columns", [1, 3, 60])
def test_products_by_blas_are_refused_or_do_no_harm(columns):
    B = np.random.default_rng(0).normal(size=(51, columns))
    f = lambda r: r[0] @ B  # noqa: E731
    c = cohort(np.zeros((5, 51)))
    try:
        c.sum(f, clip=1.0, share=0.1, name="s")
    except PrivacyError as refused:
        assert "rowwise_matmul" in str(refused)
        return
    rows = np.random.default_rng(1).normal(size=(700, 51))
    release = lambda c: c.sum(f, clip=9.0, share=0.1, name="s")  # noqa: E731
    whole, alone = (np.array(run(release, x).exact) for x in (rows, rows[:1]))
    np.testing.assert_array_equal(whole, alone + run(release, rows[1:]).exact)


@pytest.mark.parametrize("held", [np.matrix([[30.0, -40.0]]), np.ma.masked_array([1.0, 50.0, 99.0], [0, 0, 1])])
def test_rows_are_tried_at_the_ends_of_arrays_of_any_class(held):
    def jumps(r, ends=held):  # by how many others are near the end as well
        near = np.abs(r[0] - np.asarray(ends).ravel()[0 if ends.ndim == 2 else 1]) < 1.01
        return r[0] + near * np.ones(len(near)).dot(near.any(axis=1) * 1.0)

    with pytest.raises(PrivacyError, match="row-local"):
        cohort(np.zeros((5, 2))).sum(jumps, clip=1.0, share=0.1, name="s")


def test_opendp_is_loaded_on_first_use_only():
    code = (
        "import sys, fdadp.privacy, fdadp.privacy.cohort, fdadp.privacy.noise.sources; print('opendp' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == "False"


def test_a_row_that_raises_costs_as_many_calls_as_the_page_says():
    """``docs/theory/kernel.md#silence``: time is not covered, and this is how much more of it there may be."""
    block, calls = (np.arange(float(BLOCK))[:, None],), []

    def touchy(rows):
        calls.append(len(rows[0]))
        if (rows[0] == 13).any():
            raise ValueError
        return rows[0]

    evaluate(touchy, block, 100, [(1,)])
    assert calls == [BLOCK] + [1] * 100


class PanicError(BaseException):
    """As those of polars, which are no Exception."""


@pytest.mark.parametrize("error", [ValueError, PanicError])
def test_rows_that_raise_contribute_zero_and_nobody_else_is_touched(error):
    def touchy(r):
        if (r[0][:, 0] == 13).any():
            raise error("13 is private")
        if (r[0][:, 0] == 14).any():
            return np.zeros((1, 7, 7))
        warnings.warn("private", stacklevel=1)
        return np.log(r[0]) + np.array([1.0]) / 0.0 * 0 if False else r[0]

    release = lambda c: c.sum(touchy, clip=1.0, share=0.1, name="s")  # noqa: E731
    rows = np.random.default_rng(3).normal(size=(600, 2))
    bad = rows.copy()
    bad[17, 0], bad[555, 0] = 13, 14
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kept = run(release, np.delete(rows, [17, 555], axis=0)).exact
        assert run(release, bad).exact == kept
        derive = lambda c: c.derive(touchy).sum(lambda r: r[0], clip=1.0, share=0.1, name="s")  # noqa: E731
        assert run(derive, bad).exact == kept


def interrupt(*_):
    raise KeyboardInterrupt


def test_warnings_of_rows_are_silent_while_other_fits_begin_and_end(recwarn):
    """Two threads in one another's silence: the first to leave let warnings out, the last left them off for good."""
    filters = list(warnings.filters)
    first, second = silence(), silence()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    warnings.warn("of somebody's row", stacklevel=1)
    second.__exit__(None, None, None)
    assert not recwarn.list and warnings.filters == filters


def test_an_interrupted_silence_ends_with_the_next_one():
    """A key pressed while filters were put back left them off for good, about once in a hundred times."""
    filters = list(warnings.filters)
    interrupted = silence()
    interrupted.__enter__()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fdadp.privacy.rows._sealed_row_functions._door", mock.MagicMock(__enter__=interrupt))
        with pytest.raises(KeyboardInterrupt):
            interrupted.__exit__(None, None, None)
    del interrupted
    with silence():
        pass
    assert warnings.filters == filters


def test_functions_cannot_change_the_rows():
    def destroy(r):
        r[0][:] = 0
        return r[0] + 1.0

    rows = np.ones((5, 2))
    c = cohort(rows)
    c.sum(destroy, clip=1.0, share=0.1, name="s")
    assert rows.sum() == 10


def test_entries_that_are_no_numbers_are_nan_and_dtypes_do_not_matter():
    release = lambda c: c.sum(lambda r: r[0], clip=9.0, share=0.1, name="s")  # noqa: E731
    wanted = run(release, np.array([[1.0, 2.0], [3.0, 4.0]])).exact
    assert run(release, np.array([[1, 2], [3, 4]])).exact == wanted
    assert run(release, np.array([[1, 2], [3, 4], ["x", 1]], dtype=object)).exact == wanted
    assert run(release, np.ma.masked_equal(np.array([[1, 2], [3, 4], [9, 1]]), 9)).exact == wanted
    pd = pytest.importorskip("pandas")
    assert run(release, pd.DataFrame([[1, 2], [3, 4], [None, 5]])).exact == wanted


def test_lazy_arrays_take_the_same_path():
    da = pytest.importorskip("dask.array")
    rows = np.random.default_rng(0).normal(size=(1000, 2))
    ids = np.arange(1000) // 3
    for kind in ("sum", "derived", "geometric_mean"):
        lazy = da.from_array(rows, chunks=(170, 2))
        assert run(RELEASES[kind], lazy, ids).exact == run(RELEASES[kind], rows, ids).exact


# ------------------------------------------------------------------ (d) spending; errors are releases too


BAD = {
    "clip": lambda c: c.sum(lambda r: r[0], clip=0.0, share=0.1, name="s"),
    "clip nan": lambda c: c.sum(lambda r: r[0], clip=math.nan, share=0.1, name="s"),
    "share": lambda c: c.sum(lambda r: r[0], clip=1.0, share=1.1, name="s"),
    "name": lambda c: c.sum(lambda r: r[0], clip=1.0, share=0.1, name=""),
    "size": lambda c: c.sum(lambda r: r[0], clip=1.0, share=0.1, name="s", size=3),
    "norm": lambda c: c.sum(lambda r: r[0], clip=1.0, share=0.1, name="s", norm=3),
    "bits": lambda c: c.sum(lambda r: r[0], clip=1.0, share=0.1, name="s", bits=40),
    "fails": lambda c: c.sum(lambda r: r[7], clip=1.0, share=0.1, name="s"),
    "no row values": lambda c: c.sum(lambda r: r[0].sum(), clip=1.0, share=0.1, name="s"),
    "no function": lambda c: c.sum(np.ones(3), clip=1.0, share=0.1, name="s"),
    "two arrays": lambda c: c.sum(lambda r: (r[0], r[0]), clip=1.0, share=0.1, name="s"),
    "weights": lambda c: c.sum_outer(
        lambda r: r[0], lambda r: r[0], clip=1.0, share=0.1, name="s", weights=-np.ones((2, 2))
    ),
    "blocks": lambda c: c.sum(lambda r: (r[0], r[0][:, 0]), clip=1.0, share=0.1, name="s", blocks=2.0),
    "lo text": lambda c: c.geometric_mean(lambda r: r[0][:, 0], "1", 2.0, share=0.1, name="s"),
    "n text": lambda c: c.geometric_mean(lambda r: r[0][:, 0], 1.0, 2.0, share=0.1, name="s", n="9"),
    "lo hi": lambda c: c.geometric_mean(lambda r: r[0][:, 0], 2.0, 1.0, share=0.1, name="s"),
    "n": lambda c: c.geometric_mean(lambda r: r[0][:, 0], 1.0, 2.0, share=0.1, name="s", n=0),
    "norms": lambda c: c.geometric_mean(lambda r: r[0], 1.0, 2.0, share=0.1, name="s"),
    "count": lambda c: c.count(share=0.1),
    "one candidate": lambda c: c.select(lambda r: r[0][:, 0], share=0.1, name="s"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_fails_public_validation_reads_and_spends_nothing(what):
    c = cohort()
    with pytest.raises(PrivacyError):
        BAD[what](c)
    assert (c.reads, c.left, c.budget.spent, c.releases) == (0, 1.0, 0.0, ())


@pytest.mark.parametrize("floor", [None, math.nan, "1"])
def test_the_floor_of_a_count_is_checked_before_it_is_released(floor):
    c = cohort(n=None)
    with pytest.raises(PrivacyError, match="floor must be a finite number"):
        c.count(share=0.1, floor=floor)
    assert (c.reads, c.left, c.releases) == (0, 1.0, ())


def test_ends_of_a_range_may_be_numbers_of_any_type():
    values = [
        cohort().geometric_mean(lambda r: abs(r[0][:, 0]), low, 4, share=0.1, name="s").value
        for low in (0.25, Fraction(1, 4), np.longdouble(0.25))
    ]
    assert values[0] == values[1] == values[2]


@pytest.mark.parametrize(
    ("kwargs", "match"),
    [
        ({"n": 0}, "n must"),
        ({"n": None, "adjacency": "zero-out"}, "declared"),
        ({"n": 5, "adjacency": "add-remove"}, "left out"),
        ({"adjacency": "swap"}, "adjacency must"),
        ({"groups": [1, 2]}, "one id for each row"),
        ({"rows": (np.ones((3, 2)), np.ones(2))}, "equal length"),
        ({"rows": (x for x in ())}, "generator"),
        ({"rows": [], "n": 5}, "at least one chunk"),
        ({"delta": 0.5}, "1/n"),
        ({"noise": "opendp"}, "noise must"),
        ({"share": 2}, "share must"),
    ],
)
def test_bad_cohorts_raise_and_reserve_nothing(kwargs, match):
    with pytest.raises(PrivacyError, match=match):
        cohort(**kwargs)
    with pytest.raises(PrivacyError, match="budget must"):
        Cohort(np.ones(3), budget=1.0)


def test_from_the_first_read_on_the_reservation_is_spent():
    class Broken:
        def __iter__(self):
            yield (np.ones((2, 2)),)
            if armed:
                raise OSError("private row 17")

    armed = False
    budget = Budget(1.0)
    c = Cohort(Broken(), budget=budget, n=5, noise=SeededNoise(0), share=0.5)
    assert budget.reserved == 0.5
    armed = True
    with pytest.raises(PrivacyError, match="source of chunks failed") as caught:
        c.sum(lambda r: r[0], clip=1.0, share=0.5, name="s")
    assert "17" not in str(caught.value)
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    assert (budget.spent, budget.reserved, c.left) == (0.5, 0.0, 0.5)
    c.close()
    assert budget.spent == 0.5


def test_two_fits_on_one_budget():
    rows, budget = np.ones((50, 2)), Budget(1.0, 1e-6)
    first = Cohort(rows, budget=budget, n=50, noise=SeededNoise(0), share=0.7)
    with pytest.raises(PrivacyError, match="has left"):
        Cohort(rows, budget=budget, n=50, noise=SeededNoise(0), share=0.7)
    first.sum(lambda r: r[0], clip=1.0, share=1.0, name="s")
    with pytest.raises(PrivacyError, match="this cohort has left"):
        first.sum(lambda r: r[0], clip=1.0, share=0.01, name="s")
    Cohort(rows, budget=budget, n=50, noise=SeededNoise(0), share=0.3)
    with pytest.raises(PrivacyError, match="another data set"):
        Cohort(rows.copy(), budget=budget, n=50, noise=SeededNoise(0), share=0.1)
    named = Budget(1.0)
    Cohort(rows, budget=named, n=50, share=0.3, dataset="d").derive(lambda r: r[0])
    Cohort(rows.copy(), budget=named, n=50, share=0.3, dataset="d")


@pytest.mark.parametrize("pure", [False, True])
def test_the_ledger_says_what_was_spent(pure):
    c = cohort(delta=None if pure else 1e-6, noise=OpenDPNoise(), public={"bounds": (0, 1)})
    for kind in RELEASES:
        if kind not in (
            "sum, norm 1",
            "sum of rows",
            "sum, 8 bits",
            "sum, nonnegative",
            "sum of a table",
            "sum of a table by group",
            "histogram, wild",
            "principal_directions",  # whose draws are not proved
            *OF_A_COLUMN,
        ):  # a tenth each
            RELEASES[kind](c)
    ledger = c.ledger
    spent = sum(r.spent for r in ledger.releases)
    assert spent == pytest.approx(c.budget.total * (1 - c.left), rel=2e-2 if pure else 1e-2)
    assert spent <= c.budget.total * (1 - c.left)
    for r in ledger.releases:
        assert 0 < r.spent <= r.share * c.amount
        assert r.spent == r.epsilon if pure else r.rho <= r.spent  # a selection's ρ is far less than its μ²/2
        assert r.scale > 0 and r.sd > 0 and r.secure and r.adjacency == "zero-out"
    assert ledger.private and ledger.for_release
    assert Ledger.from_json(ledger.to_json()) == ledger
    assert "Not covered: timing" in str(ledger)
    assert "share 0.1" in ledger._repr_html_()
    assert ledger.details["n"] == "200, declared and public; not compared with the data"


def test_other_noise_is_not_for_release():
    class Mine(OpenDPNoise):
        pass

    for noise in (SeededNoise(0), TapeNoise(), Mine()):
        c = cohort(noise=noise)
        RELEASES["sum"](c)
        assert not c.ledger.for_release
        assert "NOT FOR RELEASE" in str(c.ledger)
        assert "not for release" in c.ledger.headline


def test_noise_that_costs_too_much_is_refused_before_the_read():
    class Cheap(SeededNoise):
        def prepare(self, kind, size, sensitivity, amount, columns=1):
            return super().prepare(kind, size, sensitivity, 2 * amount, columns)

    c = cohort(noise=Cheap(0))
    with pytest.raises(PrivacyError, match="above its share"):
        RELEASES["sum"](c)
    assert (c.reads, c.budget.spent) == (0, 0.0)


def as_lists(out):
    """All that a release gave, in a form that can be compared."""
    if dataclasses.is_dataclass(out):
        return {f.name: as_lists(getattr(out, f.name)) for f in dataclasses.fields(out)}
    return [as_lists(part) for part in out] if isinstance(out, tuple) else np.asarray(out).tolist()


@pytest.mark.each_once(("kind", "pure"))
@pytest.mark.parametrize(("pure", "adjacency"), MODES)
@pytest.mark.parametrize("kind", RELEASES)
def test_nothing_but_the_sums_depends_on_a_person(kind, pure, adjacency, caplog, capsys):
    """Same tape with a NaN, an absent, a wild person: same values, ledger, reads, log, output, warnings."""
    people, seen = toy(False), []
    tape = None
    for rows in (NASTY[:9], NASTY[[0, 1, 2, 3, 9, 5, 6, 7, 8]], np.concatenate(people[:3] + people[4:])):
        noise = TapeNoise(SeededNoise(0), tape)
        c = Cohort(
            rows,
            budget=Budget(1.0, None if pure else 1e-6),
            adjacency=adjacency,
            n=None if adjacency == "add-remove" else 9,
            noise=noise,
        )
        with caplog.at_level(logging.DEBUG), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            out = RELEASES[kind](c)
        tape = noise.entries if tape is None else tape
        seen.append(
            (as_lists(out), c.ledger.to_json(), repr(c), c.reads, str(caught), caplog.text, capsys.readouterr())
        )
    assert seen[0] == seen[1] == seen[2]


# ------------------------------------------------------------------ (a), (c), (f): the noise


@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize("clip", [1e-6, 1.0, 1e6])
def test_every_coordinate_has_noise(clip, pure):
    """Also for data that are all zero, where diffprivlib once released exact values."""
    rows = np.zeros((200, 40))
    for noise in (OpenDPNoise(), SeededNoise(1)):
        c = cohort(rows, noise=noise, delta=None if pure else 1e-6)
        value, sd = c.sum(lambda r: r[0], clip=clip, share=0.5, name="s")
        assert (value != 0).all() and sd > 0
        outer, _ = c.sum_outer(lambda r: r[0][:, :5], lambda r: r[0][:, :5], clip=clip, share=0.5, name="o")
        assert (outer != 0).all()


def test_the_exact_value_comes_out_only_without_bound():
    rows = np.full((100, 1), 0.3)
    errors = []
    for epsilon in (0.1, 10.0, 1e3):
        c = cohort(rows, epsilon=epsilon, n=100)
        errors.append(abs(c.sum(lambda r: r[0], clip=1.0, share=1.0, name="s").value[0] - 30))
    assert errors[0] > errors[1] > errors[2] > 0
    for epsilon in (math.inf, 0.0):
        with pytest.raises(PrivacyError):
            Budget(epsilon)


@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize("adjacency", ["zero-out", "add-remove", "replace"])
def test_released_noise_has_the_declared_law(pure, adjacency):
    rows = np.zeros((3, 4000))
    c = Cohort(
        rows,
        budget=Budget(1.0, None if pure else 1e-6),
        adjacency=adjacency,
        n=None if adjacency == "add-remove" else 3,
        noise=SeededNoise(7),
    )
    value, sd = c.sum(lambda r: r[0], clip=2.0, share=0.5, name="s")
    factor = 2 if adjacency == "replace" else 1
    wanted = factor * 2 * math.sqrt(2) / 0.5 if pure else factor * 2 / math.sqrt(2 * 0.5 * c.budget.total)
    assert sd == pytest.approx(wanted, rel=1e-6)
    law = stats.laplace(scale=sd / math.sqrt(2)) if pure else stats.norm(scale=sd)
    assert stats.kstest(value, law.cdf).pvalue > 0.001


def test_private_n():
    c = Cohort(np.ones((500, 1)), budget=Budget(1.0, 1e-6), noise=SeededNoise(0))
    assert (c.adjacency, c.n) == ("add-remove", None)
    with pytest.raises(PrivacyError, match="released number"):
        c.geometric_mean(lambda r: r[0], 0.1, 10, share=0.1, name="l")
    n, sd = c.count(share=0.01, floor=20)
    assert sd == pytest.approx(10 / 0.2367, rel=0.001)
    assert abs(n - 500) < 5 * sd
    assert "500" not in str(c.ledger) + repr(c)
    empty = Cohort(np.ones((0, 1)), budget=Budget(1.0, 1e-6), noise=SeededNoise(0))
    assert empty.count(share=0.01, floor=20).value >= 20


def test_all_adjacencies_agree_on_declared_defaults():
    assert cohort().adjacency == "zero-out"
    assert cohort(adjacency="replace").adjacency == "replace"
    pairs = itertools.product(("zero-out", "replace"), (None,))
    for adjacency, n in pairs:
        with pytest.raises(PrivacyError):
            cohort(adjacency=adjacency, n=n)
