"""Files of studies as users have them: none, others, old ones, where they may not be, and whose they are."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import resource
import shutil
import stat
import tempfile
from pathlib import Path

import pytest
from study_tools import cohort_of, nothing_was_spent, release, study_at

from fdadp import Privacy, PrivateMean, simulate_affr
from fdadp.errors import PrivacyError
from fdadp.privacy.study import Study, _append_only_file


@pytest.fixture
def path(tmp_path):
    return tmp_path / "wards.fdadp"


def test_the_file_is_its_owners(path):
    study_at(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_second_one_on_the_same_path(path):
    study_at(path)
    before = path.read_bytes()
    with pytest.raises(PrivacyError, match="must name no file yet"):
        study_at(path)
    assert path.read_bytes() == before


def test_what_is_no_study(tmp_path):
    with pytest.raises(PrivacyError, match="which is not there"):
        Study(tmp_path / "none")
    text = tmp_path / "text.fdadp"
    text.write_text("epsilon = 2\n" * 1000)
    with pytest.raises(PrivacyError, match="which is none"):
        Study(text)
    for other in (Path("/dev/zero"), tmp_path):
        with pytest.raises(PrivacyError, match="which is none"):
            Privacy(study=other, epsilon=1.0)
    (tmp_path / "empty").touch()
    with pytest.raises(PrivacyError, match="which is none"):
        Study(tmp_path / "empty")
    with pytest.raises(PrivacyError, match="study must be a path, got int"):
        Privacy(study=3, epsilon=1.0)


def test_another_version(path):
    study_at(path)
    path.write_bytes(path.read_bytes().replace(b'study": 2', b'study": 9', 1))
    _append_only_file._TOLD.clear()  # as in another process
    with pytest.raises(PrivacyError, match=r"must be of format 2, got .* another version of fdadp"):
        Study(path)


def test_closed_and_expired(path, tmp_path):
    study_at(path).close("the data were deleted")
    with pytest.raises(PrivacyError, match=r"was closed on .*: the data were deleted"):
        cohort_of(path, 0.1)
    with pytest.raises(PrivacyError, match="was closed"):
        Study(path).close("again")
    study_at(tmp_path / "old", expires="2020-01-31")
    with pytest.raises(PrivacyError, match="has expired on 2020-01-31"):
        cohort_of(tmp_path / "old", 0.1)
    assert Study(path).left == Study(tmp_path / "old").left == 1


def test_of_another_unit_or_adjacency(path):
    study_at(path, unit="person")
    with pytest.raises(PrivacyError, match="unit and adjacency must be those of the study, person and zero-out"):
        cohort_of(path, 0.1)
    assert Study(path).left == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(unit="household"), "unit must be"),
        (dict(name=""), "name must be a text"),
        (dict(epsilon=-1.0), "epsilon must be"),
        (dict(delta=0.1), "below 1/n"),
        (dict(n=None, adjacency="replace"), "adjacency must be"),
        (dict(expires="soon"), "expires must be a day"),
        (dict(bounds={"x": (2, 1)}), "low below high"),
        (dict(bounds={"x": "abc"}), "must be a tuple"),
        (dict(bounds={"g": ["a", "a"]}), "distinct levels"),
        (dict(sources={"y": "manual"}), "sources must be of columns in bounds"),
    ],
)
def test_settings_that_are_wrong_leave_no_file(path, change, message):
    with pytest.raises(PrivacyError, match=message):
        study_at(path, **change)
    assert not path.exists()


def test_file_systems_over_a_network_are_refused(path, tmp_path, monkeypatch):
    """When a study is made, and at each opening: it may have been moved there."""
    study_at(tmp_path / "moved")
    cohort = cohort_of(tmp_path / "moved", 0.5)
    monkeypatch.setattr(_append_only_file, "kind_of_file_system", lambda folder: "nfs4")
    with pytest.raises(PrivacyError, match=r"must lie on a disk of this machine, got .* on 'nfs4'"):
        study_at(path)
    assert not path.exists()
    for use in (lambda: release(cohort), lambda: Study(tmp_path / "moved")):
        with pytest.raises(PrivacyError, match="must lie on a disk of this machine"):
            use()
    assert cohort.reads == 0


@contextlib.contextmanager
def full_disk(size=0):
    """Files of this process cannot grow beyond `size` bytes: a write that does stops short, then fails."""
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, old[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)


def test_where_nothing_can_be_written_nothing_is_released(path):
    """A full disk: the entry of a release fails, and so does the release, before it reads; what is left can be read."""
    study_at(path)
    cohort = cohort_of(path, 0.5)
    before = path.read_bytes()
    forgotten = [cohort_of(path, 0.1)]
    for room in (0, 1, 100):
        with full_disk(path.stat().st_size + room):
            with pytest.raises(PrivacyError, match="could not be written: File too large"):
                release(cohort)
            forgotten.clear()  # it cannot be given back now
            assert Study(path).left == pytest.approx(0.4)
            assert "is left" in str(Study(path))
            assert Study(path).verify() == ()
    assert path.read_bytes().startswith(before)
    assert cohort.reads == 0
    assert cohort.releases == ()
    assert Study(path).fits[0].releases == ()
    assert Study(path).left == pytest.approx(0.5)
    release(cohort)
    assert Study(path).verify() == ()


def test_a_study_on_a_full_disk_is_not_made(path):
    with full_disk(100), pytest.raises(PrivacyError, match="could not be written: File too large"):
        study_at(path)
    assert not path.exists()
    with pytest.raises(PrivacyError, match=r"path must be where a file can be made, got .*: No such file or directory"):
        study_at(path / "no" / "such")


NOBODY = 65534


def said_by_nobody(what):
    """What `what()` says, or the error it raises, in a child that is not root."""
    reader, writer = multiprocessing.Pipe(duplex=False)

    def child():
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        try:
            writer.send(("", what()))
        except Exception as exc:
            writer.send((type(exc).__name__, str(exc)))

    worker = multiprocessing.get_context("fork").Process(target=child, daemon=True)
    worker.start()
    assert reader.poll(60)
    worker.join(60)
    return reader.recv()


@pytest.fixture
def open_folder():
    """A folder that everybody may look into and nobody else may write to."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o700)
    shutil.rmtree(folder)


@pytest.mark.skipif(os.name == "nt", reason="Windows has other permissions")
def test_without_permission_nothing_is_read_or_spent(open_folder):
    """Not root's: root may write everywhere."""
    path = open_folder / "wards.fdadp"
    study_at(path)
    path.chmod(0o444)
    open_folder.chmod(0o555)
    read = []

    def fit():
        cohort = cohort_of(path, 0.5)
        cohort.sum(lambda rows: read.append(rows) or rows[0], clip=1.0, share=1.0, name="total")

    assert said_by_nobody(lambda: Study(path).left) == ("", 1.0)  # who may read may look
    error, text = said_by_nobody(fit)
    assert error == "PrivacyError"
    assert "study must be a file that may be written to" in text
    assert "nothing was spent" in text
    path.chmod(0o000)
    error, text = said_by_nobody(lambda: Study(path))
    assert (error, "may be written to" in text or "which is not there" in text) == ("PrivacyError", True)
    error, text = said_by_nobody(lambda: study_at(open_folder / "new.fdadp").path)
    assert (error, "a file can be made" in text) == ("PrivacyError", True)
    path.chmod(0o600)
    assert read == []
    assert nothing_was_spent(path)
    assert [p.name for p in open_folder.iterdir()] == ["wards.fdadp"]


def test_names_of_files_as_users_have_them(tmp_path):
    for name in ("with space.fdadp", "ünï#?%.fdadp", "a&mode=memory"):
        path = tmp_path / name
        study_at(path)
        release(cohort_of(path, 0.5))
        assert Study(path).verify() == ()
        assert sorted(p.name for p in tmp_path.iterdir()) == [name]
        path.unlink()


def test_relative_paths_survive_a_change_of_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    study_at("here.fdadp")
    privacy = Privacy(study="here.fdadp", epsilon=0.5)
    monkeypatch.chdir("/")
    assert privacy.budget_share()[1] > 0
    assert Path(privacy.study).is_absolute()


# ------------------------------------------------------------------ what a fit is told, before it reads


CLOSED = {"closed": "was closed on", "expired": "has expired on", "of persons": "groups must be the person id"}


@pytest.mark.parametrize("state", CLOSED)
def test_what_a_study_refuses_is_refused_before_the_read(path, state):
    study_at(
        path, unit="person" if state == "of persons" else "row", expires="2020-01-31" if state == "expired" else None
    )
    if state == "closed":
        Study(path).close("the data were deleted")
    before = Study(path).head
    Y = simulate_affr(scenario=1, n=50, seed=0, n_points=11).Y.data_matrix[..., 0]
    with pytest.raises(PrivacyError, match=CLOSED[state]):
        PrivateMean(privacy=Privacy(study=path, epsilon=0.5), bounds=(-8, 8), allow_useless=True).fit(Y)
    assert Study(path).head == before  # no entry: a row is read only after one
    assert Study(path).left == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(n=49), "n must be that of the study, 50, got 49"),
        (dict(delta=1e-7), "delta must be that of the study"),
        (dict(unit="person"), "unit must be that of the study, 'row', got 'person'"),
        (dict(adjacency="replace"), "adjacency must be that of the study, 'zero-out', got 'replace'"),
        (dict(epsilon=2.5), "epsilon must be at most that of the study, 2, got 2.5"),
        (dict(random_state=0), "random_state must be left out"),
        (dict(dataset="wards"), "dataset must be left out"),
    ],
)
def test_other_settings_than_the_studys(path, change, message):
    study_at(path)
    with pytest.raises(PrivacyError, match=message):
        Privacy(**{"study": path, "epsilon": 0.5, **change}).check()
    assert nothing_was_spent(path)


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "lustre"])
def test_kinds_of_file_systems(path, monkeypatch, kind):
    """A mount that the system's table of mounts calls so, with another one of a disk inside it."""
    table = f"1 0 0:1 / / rw - ext4 /dev/a rw\n2 1 0:2 / {path.parent} rw - {kind} server:/x rw\n"
    monkeypatch.setattr(_append_only_file.Path, "read_text", lambda self, **k: table)
    with pytest.raises(PrivacyError, match=f"on '{kind}'"):
        study_at(path)
    assert not path.exists()
    table += f"3 2 0:3 / {path.parent}/disk rw - xfs /dev/b rw\n"
    assert _append_only_file.kind_of_file_system(path.parent / "disk" / "study") == "xfs"
    assert _append_only_file.kind_of_file_system(Path("/")) == "ext4"
