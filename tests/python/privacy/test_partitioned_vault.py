"""Private rows in partitions on Dask's workers: the integers of one process, whatever the partition and the order."""

from __future__ import annotations

import logging
import threading
import warnings

import numpy as np
import privacy_tools as tools
import pytest

from fdadp.errors import InputError, PrivacyError
from fdadp.privacy import Budget, Cohort, OpenDPNoise, SeededNoise, TapeNoise
from fdadp.privacy.private_entries import persons_of, table
from fdadp.privacy.rows import _dask_partitions
from fdadp.privacy.rows._dask_partitions import (
    PartitionedVault,
    RowsOnTheWay,
    Sent,
    VaultPart,
    bucket_count,
    gathered,
    scattered,
)
from fdadp.privacy.rows._sealed_row_functions import FAILED
from fdadp.privacy.rows._vault import Vault

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

N = 700
SECRET = 1234.56789


@pytest.fixture
def workers(monkeypatch):
    """All of it in this process: what a cluster's workers would do, one thing after the other."""
    monkeypatch.setattr(_dask_partitions, "active_client", object)
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    rows = 3 * rng.normal(size=(N, 2))
    rows[: len(tools.NASTY)] = tools.NASTY
    who = rng.integers(0, 200, N)
    ids = np.array([None if i % 17 == 0 else (f"p{i}", i, (i, "a"))[i % 3] for i in who], dtype=object)
    return rows, ids


def tapes(rows, ids, **settings):
    """Exact and released integers of every release, in a row, by one cohort."""
    noise = TapeNoise(SeededNoise(1))
    cohort = Cohort(rows, groups=ids, noise=noise, **{"budget": Budget(1.0, 1e-6), "n": N} | settings)
    for release in tools.RELEASES.values():
        release(_Tenth(cohort))
    return cohort, [(e.exact, e.released) for e in noise.entries]


class _Tenth:
    """A cohort that gives each release a tenth of what it asks for."""

    def __init__(self, cohort):
        self._cohort = cohort

    def __getattr__(self, name):
        method = getattr(self._cohort, name)
        if not callable(method):
            return method

        def ask(*args, **kwargs):
            found = method(*args, **kwargs | ({"share": 0.01} if "share" in kwargs else {}))
            return _Tenth(found) if isinstance(found, Cohort) else found

        return ask


@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize("grouped", [False, True])
def test_every_release_is_that_of_one_process_whatever_the_partition(people, workers, pure, grouped):
    rows, ids = people
    settings = {"budget": Budget(1.0, None if pure else 1e-6)}
    one, expected = tapes(rows, ids if grouped else None, **settings)
    assert type(one._kernel.vault) is Vault
    for chunks in [(133, 1), (N, 2), ((1, 0, 512, 187), 2)]:
        settings = {"budget": Budget(1.0, None if pure else 1e-6)}
        other, found = tapes(da.from_array(rows, chunks=chunks), ids if grouped else None, **settings)
        assert type(other._kernel.vault) is PartitionedVault
        assert found == expected and other.ledger.releases == one.ledger.releases


def test_on_processes_as_well(people, two_workers):
    rows, ids = people
    _, expected = tapes(rows, ids)
    with two_workers.as_current():
        _, found = tapes(da.from_array(rows, chunks=(133, 1)), da.from_array(ids, chunks=50))
    assert found == expected


def test_frames_of_which_nobody_has_counted_the_rows(people, two_workers):
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    rows, ids = people
    ids = np.array([i if type(i) is not tuple else f"t{i[0]}" for i in ids], dtype=object)
    frame = pd.DataFrame(rows, columns=["a", "b"]).assign(who=ids)
    _, expected = tapes(rows, ids)
    with two_workers.as_current():
        lazy = dd.from_delayed([dask.delayed(part) for part in (frame[:0], frame[:300], frame[300:])], meta=frame[:0])
        _, found = tapes(lazy[["a", "b"]], lazy["who"])
        with pytest.raises(PrivacyError, match="of the same partitions"):
            tapes(lazy[["a", "b"]], ids)
    assert found == expected


def test_what_a_least_squares_fit_needs_is_a_sum(people, workers):
    rows, _ = people
    bounds = {"loss": "squared", "ridge": 5.0, "clip": 2.0, "target_clip": 1.0, "radius": 1.0, "share": 1.0}

    def fitted(data):
        cohort = Cohort(data, budget=Budget(1.0, 1e-6), n=N, noise=SeededNoise(0))
        return cohort.perturbed_minimum(lambda r: (r[0], r[0][:, :1]), name="w", **bounds).value

    np.testing.assert_array_equal(fitted(da.from_array(rows, chunks=(99, 2))), fitted(rows))


# ------------------------------------------------------------------ persons


def test_a_persons_rows_come_together_in_their_order(people):
    rows, ids = people
    numbered = np.column_stack([np.arange(N), rows])
    pieces = []
    for start, stop in ((0, 10), (10, 10), (10, 400), (400, N)):  # and types that a reader chose for a part of them
        kind = object if start else str
        part = np.array(["" if i is None else i for i in ids[start:stop]], dtype=object)
        part = part if kind is object else np.array([str(i) if type(i) is not tuple else i for i in part], dtype=object)
        pieces.append(RowsOnTheWay((numbered[start:stop],), *persons_of(part)))
    parts = [gathered(bucket) for bucket in zip(*(scattered(p, 3) for p in pieces), strict=True)]
    at = [part.arrays[0][:, 0].astype(int) for part in parts]
    named = [i for i, person in enumerate(ids) if person is not None]
    assert sorted(np.concatenate(at)) == named  # nobody's rows are nowhere, everybody else's once
    assert all((np.diff(rows) > 0).all() for rows in at)
    for part, where in zip(parts, at, strict=True):
        by_code = {
            code: {str(ids[i]) for i, c in zip(where, part.codes, strict=True) if c == code} for code in part.codes
        }
        assert all(len(persons) == 1 for persons in by_code.values())
    assert len({str(i) for i in ids}) - 1 == sum(len(set(part.codes.tolist())) for part in parts)
    assert [bucket_count(k) for k in (1, 5, 4000)] == [1, 5, 128]


def test_the_shuffle_is_the_same_everywhere_and_always():
    ids = [7, "7", 7.0, "anna", ("a", 7), -3, 2**52, "ü"]
    buckets = scattered(RowsOnTheWay((np.arange(8.0),), *persons_of(ids)), 5)
    assert [b.arrays[0].astype(int).tolist() for b in buckets] == [[4], [7], [0, 1, 2], [5], [3, 6]]


def spread(rows, ids, order):
    """The same rows in four partitions, such that a person's are in several."""
    return da.from_array(rows[order], chunks=(175, 2)), ids[order]


def change(monkeypatch, people, *, shuffled):
    """Largest change of an exact sum over its sensitivity when one person is blanked out, of persons with many rows."""
    rows = np.abs(people[0])
    rows[: len(tools.NASTY)] = 1.0
    ids = np.arange(N) % 50
    without = rows.copy()
    without[ids == 17] = np.nan
    if not shuffled:
        monkeypatch.setattr(_dask_partitions, "scattered", lambda piece, buckets: _one_each(piece, buckets))
    exact = []
    for values in (rows, without):
        noise = TapeNoise()
        data, who = spread(values, ids, np.random.default_rng(0).permutation(N))
        cohort = Cohort(data, groups=who, budget=Budget(1.0, 1e-6), n=50, noise=noise)
        cohort.sum(lambda r: r[0], clip=0.1, share=1.0, name="s")
        exact.append(np.array(noise.entries[0].exact))
    return float(np.linalg.norm(exact[0] - exact[1]) / noise.entries[0].sensitivity)


def _one_each(piece, buckets):
    """What would be if each partition were a bucket: a mutation."""
    empty = RowsOnTheWay(tuple(a[:0] for a in piece.arrays), piece.whole[:0], {})
    at = int(piece.arrays[0][0, 0] * 1e6) % buckets
    return tuple(piece if b == at else empty for b in range(buckets))


def test_a_person_in_several_partitions_counts_once_because_of_the_shuffle(monkeypatch, people, workers):
    assert 0.99 < change(monkeypatch, people, shuffled=True) <= 1
    assert change(monkeypatch, people, shuffled=False) > 1.5


# ------------------------------------------------------------------ what is sent, and what is shown


@pytest.mark.parametrize(
    "held",
    [
        *(Budget(1.0), OpenDPNoise(), SeededNoise(0), TapeNoise(), table(np.ones(3)), VaultPart((np.ones(3),), None)),
        *(Vault(np.ones(3)), Cohort(np.ones(3), budget=Budget(1.0), n=3), threading.Lock()),
    ],
    ids=lambda held: type(held).__name__,
)
def test_what_must_stay_here_is_not_sent_along(workers, held):
    with pytest.raises(Exception, match=r"must not hold|cannot be copied or pickled|cannot pickle"):
        Sent(lambda rows: (held, rows))
    budget = Budget(1.0)
    cohort = Cohort(da.ones((9, 2), chunks=3), budget=budget, n=9)
    with pytest.raises(PrivacyError, match="s: the function must be one that cloudpickle can send"):
        cohort.sum(lambda r: (held, r[0])[1], clip=1.0, share=1.0, name="s")
    assert cohort.reads == 0 and not cohort.releases
    cohort.close()
    assert budget.left == budget.total


def test_what_travels_shows_nothing_and_no_row_is_sent_with_a_function(monkeypatch, people, workers):
    rows, ids = people[0].copy(), people[1]
    rows[400] = SECRET
    sent = []
    init = Sent.__init__
    monkeypatch.setattr(Sent, "__init__", lambda self, f: (init(self, f), sent.append(self._bytes))[0])
    tapes(da.from_array(rows, chunks=(133, 2)), ids)
    assert len(sent) > 20
    for one in sent:
        assert np.float64(SECRET).tobytes() not in one
        assert not any(word in one for word in (b"Budget", b"Noise", b"Account", b"Cohort", b"Kernel", b"_vault"))
    part = VaultPart((rows,), np.arange(N))
    piece = RowsOnTheWay((rows,), *persons_of(ids))
    assert {repr(part), str(part), repr(piece)} == {"<private rows>"}
    assert part.__sizeof__() > rows.nbytes
    vault = Cohort(da.from_array(rows), budget=Budget(1.0), n=N)._kernel.vault
    assert repr(vault) == "<private rows>"
    with pytest.raises(PrivacyError, match="cannot be copied or pickled"):
        vault.__reduce_ex__(4)


def fails_at(where, chunks, what=ValueError):
    """Delayed chunks of which one raises with a private value in its text."""

    def chunk(i, rows):
        if i == where:
            raise what(f"cannot parse {SECRET}")
        return (rows,)

    return [dask.delayed(chunk)(i, rows) for i, rows in enumerate(chunks)]


def test_a_partition_that_raises_is_told_in_one_sentence(people, two_workers, caplog):
    rows = people[0]
    budget = Budget(1.0, 1e-6)
    with two_workers.as_current(), caplog.at_level(logging.DEBUG), warnings.catch_warnings(record=True) as warned:
        cohort = Cohort(fails_at(2, np.array_split(rows, 4)), budget=budget, n=N)
        assert budget.spent == 0
        with pytest.raises(PrivacyError) as caught:
            cohort.sum(lambda r: r[0], clip=1.0, share=0.5, name="s")
        with pytest.raises(PrivacyError, match="the source of chunks failed"):
            cohort.sum(lambda r: r[0], clip=1.0, share=0.5, name="t")
    assert str(caught.value) == FAILED and caught.value.__cause__ is None and caught.value.__context__ is None
    assert str(SECRET) not in caplog.text and not any(str(SECRET) in str(w.message) for w in warned)
    assert len(cohort.releases) == 2 and budget.left == 0


def test_rows_of_another_shape_and_rows_that_fail(people, two_workers):
    rows = people[0]

    def roots(r):
        if (r[0] >= 100).any():
            raise ArithmeticError("rows of this test")
        return np.sqrt(r[0])

    def total(chunks):
        cohort = Cohort(chunks, budget=Budget(1.0, 1e-6), n=N, noise=SeededNoise(0))
        return cohort.sum(roots, clip=1.0, share=1.0, name="s").value

    pieces = np.array_split(rows, 3)
    with two_workers.as_current():
        lazy = [dask.delayed(lambda a: (a,))(a) for a in pieces]
        np.testing.assert_array_equal(total(lazy), total(rows))
        with pytest.raises(PrivacyError, match="the source of chunks failed"):
            total([*lazy, dask.delayed(lambda: (np.ones((3, 5)),))()])
        logs = str(two_workers.get_worker_logs())  # of all tests so far that used these workers
    assert "rows of this test" not in logs and "another shape" not in logs


def test_errors_before_anything_is_read(people, workers):
    rows, ids = people
    lazy = da.from_array(rows, chunks=100)
    budget = Budget(1.0, 1e-6)

    def cohort(*args, **kwargs):
        return Cohort(*args, budget=budget, n=N, **kwargs)

    with pytest.raises(InputError, match=r"known number of rows: use .compute_chunk_sizes\(\)"):
        cohort((lazy, lazy[lazy[:, 0] > 0]))
    with pytest.raises(PrivacyError, match="arrays of equal length"):
        cohort((lazy, lazy[:50]))
    with pytest.raises(PrivacyError, match="groups must have one id for each row of data, got another length"):
        cohort(lazy, groups=ids[:-1])
    with pytest.raises(PrivacyError, match="groups must be ids, one a row: True is for chunks"):
        cohort(lazy, groups=True)
    with pytest.raises(PrivacyError, match="groups must be True, and each chunk end"):
        cohort([dask.delayed(rows)], groups=ids)
    with pytest.raises(PrivacyError, match="a chunk must be a tuple of arrays of equal length"):
        cohort([dask.delayed(lambda: 3)()])
    with pytest.raises(PrivacyError, match=r"the source of chunks failed.*the budget is spent"):
        Cohort([dask.delayed(lambda: 1 / 0)()], budget=(own := Budget(1.0)), n=N)  # perhaps at somebody's entry
    assert own.left == 0
    asked = cohort(lazy)
    with pytest.raises(PrivacyError, match="no sum over partitions, so the rows must be in one place"):
        asked.perturbed_minimum(lambda r: (r[0], r[0][:, :1]), loss="logistic", ridge=1.0, share=1.0, name="w")
    assert asked.reads == 0 and not asked.releases and budget.reserved == asked.amount
    asked.close()
    assert budget.left == budget.total


def test_an_interruption_leaves_nothing_held_and_the_reservation_spent(monkeypatch, people, workers):
    budget = Budget(1.0, 1e-6)
    cohort = Cohort(da.from_array(people[0], chunks=100), budget=budget, n=N).derive(lambda r: r[0])
    held = cohort._kernel.vault._family.held
    assert [len(parts) for parts in held] == [7, 7]

    def interrupted(*_, **__):
        raise KeyboardInterrupt("with frames")

    monkeypatch.setattr(_dask_partitions, "computed", interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        cohort.sum(lambda r: r[0], clip=1.0, share=0.5, name="s")
    assert not caught.value.args and [len(parts) for parts in held] == [0, 0]
    cohort.close()
    assert budget.left == 0


def test_rows_that_are_others_when_they_are_computed_again_are_refused(people, workers):
    cohort = Cohort(da.from_array(people[0], chunks=100), budget=Budget(1.0, 1e-6), n=N)
    cohort.sum(lambda r: r[0], clip=1.0, share=0.5, name="s")
    vault = cohort._kernel.vault
    vault._parts[3] = dask.delayed(VaultPart)((people[0][300:400] + 1,), None)
    with pytest.raises(PrivacyError, match="the source of chunks failed"):
        cohort.sum(lambda r: r[0], clip=1.0, share=0.5, name="t")
