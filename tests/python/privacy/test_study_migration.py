"""Studies of fdadp 0.2, which were SQLite, become lines: the same entries, so that models and certificates hold."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from functools import partial

import pytest
from study_tools import cohort_of, release, study_at
from typer.testing import CliRunner

from fdadp.cli.main import app
from fdadp.errors import PrivacyError
from fdadp.privacy.study import Study, _append_only_file

TABLES = """
PRAGMA application_id = 1717855344;
PRAGMA user_version = 1;
CREATE TABLE entries (position INTEGER PRIMARY KEY, time TEXT NOT NULL, kind TEXT NOT NULL, reservation INTEGER,
    content TEXT NOT NULL, previous TEXT NOT NULL, hash TEXT NOT NULL);
CREATE TABLE reservations (number INTEGER PRIMARY KEY, share REAL NOT NULL, used REAL NOT NULL, cost REAL NOT NULL,
    state TEXT NOT NULL, whole INTEGER NOT NULL);
"""


@pytest.fixture
def old(tmp_path):
    """A study as format 1 had it, and its certificate."""
    path = tmp_path / "wards.fdadp"
    study_at(path, bounds={"heart rate": (30, 180), "größe": ["klein", "groß"]})
    for name in ("one", "two"):
        release(cohort_of(path, 0.25), 0.3, name)
    cohort_of(path, 0.125).close()
    certificate = Study(path).report(custodian="Office").save(tmp_path / "certificate")[1]
    with _append_only_file.reading(path) as file:
        lines, held = file.entries, file.told.held
    path.unlink()
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.executescript(TABLES)
        rows = [(e.position, e.time, e.kind, e.reservation, e.text, e.previous, e.hash) for e in lines]
        db.executemany("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        rows = [(k, r.share, sum(r.shares), sum(r.costs), r.state, int(r.whole)) for k, r in held.items()]
        db.executemany("INSERT INTO reservations VALUES (?, ?, ?, ?, ?, ?)", rows)
        db.commit()
    path.chmod(0o600)
    return path, lines, certificate


def test_an_old_study_is_converted_once_and_on_command(old):
    path, lines, certificate = old
    before = path.read_bytes()
    with pytest.raises(PrivacyError, match=f"of format 1, .* python -m fdadp study migrate {path}"):
        Study(path)
    assert path.read_bytes() == before
    made = CliRunner().invoke(app, ["study", "migrate", str(path)])
    assert made.exit_code == 0, made.output
    assert "50.00% is left" in made.output
    assert Study(path).entries == lines
    assert Study(path).verify(certificate) == ()
    assert path.stat().st_mode & 0o777 == 0o600
    release(cohort_of(path, 0.25))
    assert Study(path).left == pytest.approx(0.25)
    with pytest.raises(PrivacyError, match=r"must be of format 1, got .* which needs no conversion"):
        Study.migrate(path)


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("UPDATE reservations SET share = 0.125 WHERE number = 2", "not what its entries tell"),
        ("DELETE FROM entries WHERE position = 5", "entry 5 was changed"),
        ("PRAGMA user_version = 3", "must be of format 1"),
    ],
)
def test_a_damaged_or_other_one_stays_as_it_is(old, statement, found):
    path, _, _ = old
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute(statement)
        db.commit()
    before = path.read_bytes()
    with pytest.raises(PrivacyError, match=found):
        Study.migrate(path)
    assert path.read_bytes() == before


def test_one_with_two_names_or_in_use_stays_as_it_is(old, monkeypatch):
    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, timeout=0.1))  # 5 s else
    path, _, _ = old
    os.link(path, path.with_name("other"))
    with pytest.raises(PrivacyError, match="must be a file of one name"):
        Study.migrate(path)
    path.with_name("other").unlink()
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        with pytest.raises(PrivacyError, match="database is locked"):
            Study.migrate(path)
    Study.migrate(path)
