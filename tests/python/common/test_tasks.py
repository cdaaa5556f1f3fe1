"""Work on Dask's partitions: where it is done, in which order it is merged, and what is left after errors."""

from __future__ import annotations

import contextlib
import io
import operator
import os
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import tqdm

from fdadp._common.dask_tasks import computed, mapped, merged
from fdadp._common.threads import map_blocks
from fdadp.errors import FdadpError, InputError, PublicParameterMissing

dask = pytest.importorskip("dask")


@pytest.fixture(params=["threads", "synchronous", "workers"])
def where(request):
    """Each kind of scheduler, active."""
    if request.param != "workers":
        with dask.config.set(scheduler=request.param):
            yield request.param
        return
    with request.getfixturevalue("two_workers").as_current():
        yield request.param


def pieces(values):
    return [dask.delayed(value) for value in values]


def test_parts_are_merged_in_their_order(where):
    parts = mapped(lambda i: [(i, os.getpid())], pieces(range(70)))
    found = computed(merged(parts, operator.add), "numbers", False, parts)
    assert [i for i, _ in found] == list(range(70))
    processes = {process for _, process in found}
    assert (os.getpid() in processes) == (where != "workers")
    assert computed(merged(mapped(lambda i: -i, pieces([3])), operator.add), "one", False) == -3


def slowly(values, i):
    time.sleep(0.02 * (i % 3))
    return values[i]


def test_sums_do_not_depend_on_who_ends_first(on_workers):
    values = np.random.default_rng(0).normal(size=50) * 10.0 ** np.arange(-25, 25)
    found = {computed(merged(mapped(partial(slowly, values), pieces(range(50))), operator.add), "sum") for _ in "ab"}
    with dask.config.set(scheduler="synchronous"):
        found.add(computed(merged(mapped(partial(slowly, values), pieces(range(50))), operator.add), "sum"))
    assert len(found) == 1


def test_merging_changes_no_partial_result(where):
    def merge(a, b):
        a += b
        return a

    parts = mapped(lambda i: np.full(3, float(i)), pieces(range(9)))
    total = merged(parts, merge)
    both = merged([total, *parts], merge)
    np.testing.assert_array_equal(computed(both, "twice", False), np.full(3, 72.0))


def test_a_task_has_one_thread(where):
    def names(_):
        import threading

        return {threading.get_ident()} >= set(map_blocks(lambda rows: threading.get_ident(), 10_000))

    parts = mapped(names, pieces(range(3)))
    assert computed(merged(parts, operator.and_), "threads", False) is True


@pytest.mark.parametrize("error", [InputError, PublicParameterMissing, FdadpError])
def test_our_errors_keep_their_type_and_text(where, error):
    def refuse(i):
        if i == 4:
            raise error("X must be finite, got nan in row 7")
        return i

    parts = mapped(refuse, pieces(range(9)))
    with pytest.raises(error, match=r"^X must be finite, got nan in row 7$") as caught:
        computed(merged(parts, operator.add), "sums", False, parts)
    assert type(caught.value) is error


@pytest.mark.parametrize("before", [True, False], ids=["in the rows", "in the function"])
def test_other_errors_name_the_partition(where, before):
    def fail(i):
        time.sleep(0.01)
        if i == 0:
            raise OSError("no such disk")
        return i

    read = dask.delayed(fail if before else abs, pure=False)
    parts = mapped(abs if before else fail, [read(i) for i in (3, 2, 1, 0, 4, 5)])
    with pytest.raises(InputError, match=r"partition (\d or )*3( or \d)* of 6 must give .*sums, got OSError: no such"):
        computed(merged(parts, operator.add), "sums", False, parts)
    parts = mapped(fail, pieces([0]))
    with pytest.raises(InputError, match=r"a partition must give its rows for .* got OSError"):
        computed(merged(parts, operator.add), "sums", False)


def count(folder, i, dies):
    Path(folder, str(i)).touch()
    time.sleep(0.05)
    if dies and len(list(Path(folder).iterdir())) > 8:
        raise InputError("X must be finite")
    return i


def idle(client):
    """Whether no task waits or runs any more, soon."""
    for _ in range(100):
        if not any(client.processing().values()) and not client.run_on_scheduler(
            lambda dask_scheduler: len(dask_scheduler.tasks)
        ):
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("stop", ["error", "interrupt"])
def test_nothing_goes_on_after_an_error_or_an_interruption(on_workers, tmp_path, monkeypatch, stop):
    import distributed

    parts = mapped(lambda i: count(tmp_path, i, stop == "error"), pieces(range(200)))
    if stop == "interrupt":
        plain = distributed.as_completed.__next__
        seen = iter(range(9))

        def interrupted(self):
            if next(seen, None) == 4:
                raise KeyboardInterrupt
            return plain(self)

        monkeypatch.setattr(distributed.as_completed, "__next__", interrupted)
    with pytest.raises(InputError if stop == "error" else KeyboardInterrupt):
        computed(merged(parts, operator.add), "sums", False, parts)
    assert idle(on_workers)
    done = len(list(tmp_path.iterdir()))
    time.sleep(0.3)
    assert len(list(tmp_path.iterdir())) == done < 50


def test_nothing_is_left_on_the_workers_after_success(on_workers):
    parts = mapped(lambda i: i, pieces(range(20)))
    assert computed(merged(parts, operator.add), "sums", False, parts) == 190
    assert idle(on_workers)


@pytest.mark.parametrize("progress", [True, "auto"])
def test_progress_is_shown_to_people_only(monkeypatch, progress):
    """A log file got ``1chunk [00:02...]``."""
    from fdadp._common import dask_tasks as module

    class Screen(io.StringIO):
        def isatty(self):
            return True

    class Cell(io.StringIO):
        """Where a notebook shows what is written; ``isatty()`` is false there."""

    Cell.__module__ = "ipykernel.iostream"
    monkeypatch.setattr(module, "DELAY", 0.0)
    for stream, wanted in ((io.StringIO(), False), (Screen(), True), (Cell(), True)):
        with contextlib.redirect_stderr(stream):
            assert list(module.progress_bar("sums", progress, range(3))) == [0, 1, 2]
        assert ("sums" in stream.getvalue()) == wanted, type(stream)


def test_progress_counts_partitions(where):
    parts = mapped(lambda i: i, pieces(range(20)))
    shown = io.StringIO()
    with contextlib.redirect_stderr(shown):
        computed(merged(parts, operator.add), "sums over curves", False, parts)
    assert shown.getvalue() == ""

    class Bar(tqdm.tqdm):
        def __init__(self, **settings):
            super().__init__(**settings | {"disable": False, "mininterval": 0, "file": shown, "leave": True})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tqdm, "tqdm", Bar)
        computed(merged(parts, operator.add), "sums over curves", True, parts)
    assert "sums over curves" in shown.getvalue() and "20/20" in shown.getvalue()
