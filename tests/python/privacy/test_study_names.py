"""Studies with several names: hard links, moves, mounts, copies, and processes that are killed; nothing comes back."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from study_tools import cohort_of, release, study_at, try_to_spend

from fdadp.errors import PrivacyError
from fdadp.privacy.study import Study, _append_only_file

WAIT = 120
SHARE = 1e-4


@pytest.fixture
def path(tmp_path):
    return tmp_path / "wards.fdadp"


@contextlib.contextmanager
def mounted(path, other):
    """A bind mount of a single file, as containers have it."""
    other.touch()
    made = (
        subprocess.run(["mount", "--bind", path, other], capture_output=True, text=True)
        if shutil.which("mount")
        else None
    )
    if made is None or made.returncode:
        pytest.skip("a file can be mounted by root alone")
    try:
        yield other
    finally:
        subprocess.run(["umount", "-l", other], check=True)


@contextlib.contextmanager
def linked(path, other):
    os.link(path, other)
    yield other


@contextlib.contextmanager
def symbolic(path, other):
    other.symlink_to(path)
    yield other


NAMES = {"hard link": linked, "mount": mounted, "symbolic link": symbolic}


def _work(path):
    """Fit for ever."""
    while True:
        cohort = cohort_of(path, SHARE)
        for name in ("one", "two", "three"):
            release(cohort, 0.3, name)


def killed(path, seconds):
    """A process that fits is killed."""
    worker = multiprocessing.get_context("fork").Process(target=_work, args=(path,), daemon=True)
    worker.start()
    time.sleep(seconds)
    os.kill(worker.pid, signal.SIGKILL)
    worker.join(WAIT)


@pytest.mark.parametrize("how", NAMES)
@pytest.mark.parametrize("runs", [pytest.param(7, id="some"), pytest.param(60, id="sixty", marks=pytest.mark.long)])
def test_a_process_is_killed_on_one_name_and_another_goes_on_with_the_other(path, tmp_path, how, runs):
    """No entry that was there is ever gone, and what was taken stays taken."""
    study_at(path)
    release(cohort_of(path, SHARE))
    rng = np.random.default_rng()
    with NAMES[how](path, tmp_path / "other.fdadp") as other:
        names, last = [path, other], Study(path).left
        for _ in range(runs):
            killed(names[0], rng.uniform(0.0, 0.15))
            before = path.read_bytes()
            release(cohort_of(names[1], SHARE))
            entries, left = Study(names[1]).entries, Study(names[1]).left
            assert path.read_bytes().startswith(before[: before.rindex(b"\n") + 1])
            assert Study(names[0]).entries == entries
            assert Study(names[0]).left == left < last
            last = left
            assert Study(names[0]).verify() == Study(names[1]).verify() == ()
            names.reverse()


@pytest.mark.parametrize("how", NAMES)
def test_two_names_have_one_lock(path, tmp_path, how):
    study_at(path)
    with NAMES[how](path, tmp_path / "other.fdadp") as other:
        context = multiprocessing.get_context("fork")
        out = context.Queue()
        workers = [
            context.Process(target=try_to_spend, args=(p, 0.25, out), daemon=True) for p in [path, other, path] * 2
        ]
        for w in workers:
            w.start()
        said = [out.get(timeout=WAIT) for _ in workers]
        for w in workers:
            w.join(WAIT)
        assert sorted(map(bool, said)) == [False] * 4 + [True] * 2
        assert Study(path).entries == Study(other).entries
        assert Study(other).verify() == ()


def test_moved_while_it_is_used(path, tmp_path):
    """A fit goes on where the file is put back under its name; a file that is moved elsewhere is not there."""
    study_at(path)
    other = tmp_path / "other.fdadp"
    for _ in range(6):
        killed(path, 0.05)
        before, left = path.read_bytes(), Study(path).left
        path.rename(other)
        with pytest.raises(PrivacyError, match="which is not there"):
            cohort_of(path, SHARE)
        release(cohort_of(other, SHARE))
        other.rename(path)
        assert path.read_bytes().startswith(before[: before.rindex(b"\n") + 1])
        assert Study(path).left == pytest.approx(left - SHARE)
        assert Study(path).verify() == ()


# ------------------------------------------------------------------ older copies


def test_an_older_copy_is_refused_by_this_process(path):
    study_at(path)
    cohort = cohort_of(path, 0.2)
    before = path.read_bytes()
    release(cohort)
    release(cohort_of(path, 0.5))
    path.write_bytes(before)
    for use in (lambda: release(cohort), lambda: cohort_of(path, 0.1), lambda: Study(path).close("why not")):
        with pytest.raises(PrivacyError, match=r"must not go backwards: entry 5, .*, is missing"):
            use()
    assert path.read_bytes() == before
    assert "WRONG: it was put back to an older state" in str(Study(path))
    with pytest.raises(PrivacyError, match="put back to an older state"):
        Study(path).report()


def test_who_looks_at_a_study_has_seen_its_last_entry(path, monkeypatch):
    """Another user made the fits: this one only showed the file, and notices the older copy all the same."""
    study_at(path)
    before = path.read_bytes()
    with monkeypatch.context() as other:
        other.setattr(_append_only_file, "remember", lambda path, told: None)
        release(cohort_of(path, 0.2))
    monkeypatch.setattr(_append_only_file, "_LAST", {})
    assert "WRONG" not in str(Study(path))
    path.write_bytes(before)
    assert "WRONG: it was put back to an older state" in str(Study(path))
    assert any("put back" in problem for problem in Study(path).verify())


def test_a_copy_that_went_on_is_the_study_and_the_one_that_stayed_behind_is_refused(path, tmp_path):
    study_at(path)
    release(cohort_of(path, 0.2))
    other = tmp_path / "other.fdadp"
    shutil.copy(path, other)
    release(cohort_of(other, 0.5))
    with pytest.raises(PrivacyError, match=f"last seen in '{other}'"):
        cohort_of(path, 0.1)
    shutil.copy(other, path)
    release(cohort_of(path, 0.1))
    assert Study(path).left == pytest.approx(0.2)


def spend(path):
    """A fit in a process of its own."""
    words = (
        "import sys; sys.path.insert(0, sys.argv[1]); import study_tools as t; print(t.try_to_spend(sys.argv[2], 0.25))"
    )
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    run = subprocess.run([sys.executable, "-c", words, folder, str(path)], capture_output=True, text=True, timeout=WAIT)
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


def test_an_older_copy_is_refused_by_another_process_of_this_user(path, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    study_at(path)
    before = path.read_bytes()
    assert spend(path) == ""
    path.write_bytes(before)
    assert "must not go backwards: entry 3" in spend(path)
    os.rename(tmp_path / "state", tmp_path / "of another user")
    assert spend(path) == ""


def test_on_purpose(path, tmp_path):
    """The file was lost, and what the backup does not know of stays spent."""
    study_at(path)
    release(cohort_of(path, 0.125))
    before = path.read_bytes()
    with pytest.raises(PrivacyError, match="no entry is missing"):
        Study(path).restored("no reason")
    release(cohort_of(path, 0.25))
    path.write_bytes(before)
    with pytest.raises(PrivacyError, match="reason must be a text"):
        Study(path).restored(" ")
    Study(path).restored("the disk was lost")
    assert Study(path).left == pytest.approx(0.625)
    release(cohort_of(path, 0.125))
    assert Study(path).left == pytest.approx(0.5)
    assert Study(path).verify() == ()
    assert [fit.purpose for fit in Study(path).fits] == ["", "the disk was lost", ""]
    assert "the disk was lost" in str(Study(path).report().to_json())


# ------------------------------------------------------------------ clocks


def test_a_clock_that_was_set_back(path, monkeypatch):
    """Expiry counts from the last entry, too; a clock that is an hour behind it is refused."""
    study_at(path, expires="2030-01-31")
    at = "fdadp.privacy.study._chained_entries.now"
    for clock, found in (("2030-01-31T23:59:59", ""), ("2030-01-31T23:58:00", ""), ("2030-02-01T00:10:00", "expired")):
        monkeypatch.setattr(at, lambda timespec="", clock=clock: f"{clock}.000000+00:00")
        monkeypatch.setattr("fdadp.privacy.study.budget_accounts.now", lambda clock=clock: f"{clock}.000000+00:00")
        assert found in try_to_spend(path, 0.1)
    assert [line.time for line in Study(path).entries] == sorted(line.time for line in Study(path).entries)
    assert Study(path).left == pytest.approx(0.8)
    clock = "2030-01-20T00:00:00"
    monkeypatch.setattr(at, lambda timespec="": f"{clock}.000000+00:00")
    monkeypatch.setattr("fdadp.privacy.study.budget_accounts.now", lambda: f"{clock}.000000+00:00")
    assert "the clock must not go backwards" in try_to_spend(path, 0.1)
    assert Study(path).left == pytest.approx(0.8)
    assert "the clock was set back" in Study(path).verify()[0]
