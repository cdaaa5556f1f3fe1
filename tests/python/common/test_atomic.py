"""Files are there whole or not at all; modes, groups and links stay what they were."""

from __future__ import annotations

import os
import stat
import threading
import time

import numpy as np
import pandas as pd
import pytest
from moments_file import StoredMoments

from fdadp import AdditiveFunctionOnFunction, Privacy, PrivateMean, simulate_affr
from fdadp.errors import InputError
from fdadp.files.atomic_writes import PUBLIC, SECRET, STALE, _take_over, replacing
from fdadp.functional.files.curve_files import read_curves, write_curves

pytestmark = pytest.mark.skipif(os.name == "nt", reason="modes and links of POSIX")


@pytest.fixture
def open_umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def write(path, content, **kwargs):
    with replacing(path, **kwargs) as stream:
        stream.write(content)


@pytest.mark.usefixtures("open_umask")
def test_models_are_for_the_owner_alone_but_released_ones_as_the_umask_says(tmp_path):
    sim = simulate_affr(n=60, seed=0, n_points=15)
    y = sim.Y.data_matrix[..., 0]
    setting = {"epsilon": 8.0, "delta": 1e-6, "n": 60}
    with_noise_of_a_seed = PrivateMean(privacy=Privacy(**setting, random_state=1), bounds=(-8, 8)).fit(y)
    models = [
        (StoredMoments.of(y), 0o600),
        (AdditiveFunctionOnFunction(n_basis_x=5, n_basis_s=5, progress=False).fit(sim.X, sim.Y), 0o600),
        (with_noise_of_a_seed, 0o600),
        (PrivateMean(privacy=Privacy(**setting), bounds=(-8, 8)).fit(y), 0o644),
    ]
    for number, (model, wanted) in enumerate(models):
        path = model.save(tmp_path / f"{number}.npz")
        assert mode(path) == wanted
        for other in (0o600, 0o640, 0o444):
            path.chmod(other)
            model.save(path)
            assert mode(path) == other


def test_the_umask_of_the_process_is_left_alone(tmp_path, monkeypatch):
    """It belongs to all threads: another one would make files with the wrong mode meanwhile."""
    monkeypatch.setattr(os, "umask", lambda _: pytest.fail("the umask was changed"))
    write(tmp_path / "a", b"1")
    write(tmp_path / "a", b"2")
    write_curves({tmp_path / "b.csv": pd.DataFrame(np.eye(2))})
    StoredMoments.of(np.eye(2)).save(tmp_path / "c")


def test_of_a_link_the_target_is_replaced(tmp_path):
    real, link, chain = tmp_path / "far" / "real.npz", tmp_path / "link.npz", tmp_path / "chain.npz"
    link.symlink_to(real)  # dangling: neither the file nor its folder is there
    chain.symlink_to(link.name)
    moments = StoredMoments.of(np.eye(3))
    assert moments.save(chain) == chain
    assert link.is_symlink() and chain.is_symlink() and not real.is_symlink()
    assert StoredMoments.load(link).n == 3
    assert [p.name for p in real.parent.iterdir()] == ["real.npz"]
    real.chmod(0o640)
    moments.save(link)
    assert mode(real) == 0o640


def test_what_is_no_regular_file_is_left_alone(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    for path in (tmp_path / "pipe", tmp_path, "/dev/null"):
        with pytest.raises(InputError, match="must name a regular file"):
            write(path, b"")
    with pytest.raises((InputError, OSError)):
        write(loop / "below", b"")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode) and stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_the_group_stays_or_loses_its_rights(tmp_path, monkeypatch):
    path = tmp_path / "model"
    path.write_bytes(b"")
    path.chmod(0o660)
    asked = []

    def chown(file, user, group):
        asked.append((user, group))
        raise PermissionError

    old = path.stat()
    monkeypatch.setattr(os, "chown", chown)
    _take_over(path, os.stat_result([old.st_mode, 0, 0, 1, old.st_uid, old.st_gid + 1, 0, 0, 0, 0]))
    assert asked == [(-1, old.st_gid + 1)] and mode(path) == 0o600


@pytest.mark.parametrize("there", [False, True])
def test_a_failure_leaves_what_was_there_and_nothing_else(tmp_path, there):
    path = tmp_path / "file"
    if there:
        path.write_bytes(b"before")
    for error in (ValueError, KeyboardInterrupt):
        with pytest.raises(error), replacing(path) as stream:
            stream.write(b"half")
            raise error
    assert [p.read_bytes() for p in tmp_path.iterdir()] == [b"before"] * there


def test_content_then_name_then_folder_reach_the_disk(tmp_path, monkeypatch):
    path, calls = tmp_path / "file", []
    fsync, replace = os.fsync, os.replace

    def recorded_fsync(handle):
        calls.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else f"file of {os.fstat(handle).st_size}")
        fsync(handle)

    def recorded_replace(a, b):
        calls.append("rename")
        replace(a, b)

    monkeypatch.setattr(os, "fsync", recorded_fsync)
    monkeypatch.setattr(os, "replace", recorded_replace)
    write(path, b"12345")
    assert calls == ["file of 5", "rename", "folder"]


def test_the_temporary_file_is_beside_its_place_and_hidden_from_others(tmp_path):
    path = tmp_path / "file"
    with replacing(path, SECRET) as stream:
        (temporary,) = tmp_path.iterdir()
        assert temporary.name.startswith(".fdadp-") and mode(temporary) == 0o600
        stream.write(b"1")
    path.chmod(0o666)
    with replacing(path, PUBLIC):
        (temporary,) = set(tmp_path.iterdir()) - {path}
        assert mode(temporary) == 0o600  # until it takes over the mode


def test_own_stale_temporary_files_are_swept_and_no_others(tmp_path):
    path = tmp_path / "file"
    left = []
    for name in ("file", "other"):
        for age in (0, 2 * STALE):
            before = set(tmp_path.iterdir())
            stream = replacing(tmp_path / name)
            stream.__enter__()
            left.append(stream)  # as if the process had died here
            (newest,) = set(tmp_path.iterdir()) - before
            os.utime(newest, (time.time() - age,) * 2)
    (tmp_path / ".fdadp-mine.tmp").write_bytes(b"")
    os.utime(tmp_path / ".fdadp-mine.tmp", (0, 0))
    assert len(list(tmp_path.iterdir())) == 5
    write(path, b"new")
    assert len(list(tmp_path.glob(".fdadp-*"))) == 4  # the aged one of "file" is gone


def test_a_long_name_has_room_for_its_temporary_file(tmp_path):
    write(tmp_path / ("n" * 255), b"1")


def test_threads_that_write_the_same_file_leave_one_of_theirs(tmp_path):
    path = tmp_path / "file"
    threads = [threading.Thread(target=write, args=(path, bytes([k]) * 10_000)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    content = path.read_bytes()
    assert len(content) == 10_000 and len(set(content)) == 1
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".npz", ".parquet"])
def test_tables_keep_modes_too(tmp_path, suffix, open_umask):
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    path = tmp_path / f"curves{suffix}"
    frame = pd.DataFrame(np.arange(6.0).reshape(2, 3), columns=[0.0, 0.5, 1.0], index=["a", "b"])
    write_curves({path: frame})
    assert mode(path) == 0o644
    path.chmod(0o600)
    write_curves({path: frame + 1})
    assert mode(path) == 0o600
    pd.testing.assert_frame_equal(read_curves(path), frame + 1)
