"""Changes that nobody should have made: in a study's rows and bytes, in files of models, in ledgers, and old copies."""

from __future__ import annotations

import contextlib
import sqlite3
import zipfile
from copy import copy
from dataclasses import replace

import numpy as np
import pytest
from study_tools import cohort_of, release, study_at, tampered, wrong_with

from fdadp import Privacy, PrivateMean, simulate_affr
from fdadp.errors import PrivacyError
from fdadp.privacy._verified import verify_ledger
from fdadp.privacy.study import Study
from fdadp.privacy.study.models import verify_model


@pytest.fixture
def path(tmp_path):
    return tmp_path / "wards.fdadp"


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("UPDATE reservations SET cost = cost / 2", "is not what the entries tell"),
        ("UPDATE reservations SET share = 0.1", "is not what the entries tell"),
        ("DELETE FROM reservations", "other reservations"),
        ("DELETE FROM entries WHERE kind = 'released'", "is not what the entries tell"),
        ("DELETE FROM entries WHERE position = 2", "entry 2 is missing"),
        ("DELETE FROM entries", "there is no entry"),
        ("UPDATE entries SET content = replace(content, '2.0', '9.0') WHERE position = 1", "entry 1 was changed"),
        ("UPDATE entries SET time = '2020-01-01' WHERE position = 3", "entry 3 was changed"),
        ("UPDATE entries SET reservation = 7 WHERE position = 3", "entry 3 was changed"),
        ("UPDATE entries SET kind = 'opened' WHERE position = 3", "entry 3 was changed"),
    ],
)
def test_changed_rows_are_found(path, statement, found):
    study_at(path)
    release(cohort_of(path, 0.25))
    assert Study(path).verify() == ()
    tampered(path, lambda db: db.execute(statement))
    if statement == "DELETE FROM entries":
        with pytest.raises(PrivacyError, match="does not say what it is"):
            Study(path)
        return
    assert any(found in problem for problem in Study(path).verify())


def test_every_byte_of_the_entries_counts(path):
    """A byte changed in any text or number of any row of the study is found."""
    study_at(path)
    release(cohort_of(path, 0.25))
    rng = np.random.default_rng(0)
    with contextlib.closing(sqlite3.connect(path)) as db:
        rows = db.execute("SELECT * FROM entries ORDER BY position").fetchall()
    texts = [(r, c) for r, row in enumerate(rows) for c, value in enumerate(row) if isinstance(value, str) and value]
    tampered(path, lambda db: None)
    for _ in range(60):
        r, c = texts[rng.integers(len(texts))]
        old = rows[r][c]
        at = int(rng.integers(len(old)))
        new = old[:at] + chr((ord(old[at]) + int(rng.integers(1, 90))) % 128) + old[at + 1 :]
        column = ("position", "time", "kind", "reservation", "content", "previous", "hash")[c]
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute(f"UPDATE entries SET {column} = ? WHERE position = ?", (new, r + 1))
            db.commit()
        try:
            found = Study(path).verify()
        except PrivacyError as exc:
            found = (str(exc),)
        assert found, (column, old, new)
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute(f"UPDATE entries SET {column} = ? WHERE position = ?", (old, r + 1))
            db.commit()
    assert Study(path).verify() == ()


def test_fits_do_not_draw_on_a_study_that_says_something_else(path):
    study_at(path)
    cohort_of(path, 0.1).close()
    tampered(
        path, lambda db: db.execute("UPDATE entries SET content = replace(content, '2.0', '9.0') WHERE position = 1")
    )
    with pytest.raises(PrivacyError, match="is damaged: entry 1 was changed"):
        cohort_of(path, 0.1)
    assert len(Study(path).entries) == 3


@pytest.fixture(scope="module")
def wards(tmp_path_factory):
    """A study, and a model that was saved of it."""
    folder = tmp_path_factory.mktemp("wards")
    study_at(folder / "wards.fdadp", n=1500, unit="person")
    model = mean_of(folder / "wards.fdadp", 0.5)
    return folder / "wards.fdadp", model, model.save(folder / "mean.npz")


def mean_of(path, epsilon):
    Y = simulate_affr(scenario=1, n=1500, seed=0, n_points=21).Y
    return PrivateMean(privacy=Privacy(study=path, epsilon=epsilon), bounds=(-8, 8)).fit(Y, groups=np.arange(1500))


def test_models_are_held_against_their_study(wards, path, tmp_path, monkeypatch):
    path.write_bytes(wards[0].read_bytes())
    of, model, file = Study(path), wards[1], wards[2]
    old = path.read_bytes()
    assert verify_model(of, file) == ()
    assert of.fits[0].models
    assert PrivateMean.load(file).privacy_.study is None  # the file may go where the study is not
    # a ledger that promises more, and one of another fit
    other = mean_of(path, 0.25)
    monkeypatch.setattr("fdadp.summaries.files.record_model", lambda *a: None)
    right = model.ledger_
    for wrong, found in (
        (dict(epsilon=0.1), "releases cost more"),
        (dict(releases=right.releases[1:]), "not those that the study"),
        (dict(details=right.details | {"reservation of the study": 2}), "not those that the study"),
        (dict(details=right.details | {"study": "Wards (else)"}), "another study"),
        (dict(details=right.details | {"last entry of the study": "4, abc"}), "put back to an older state"),
    ):
        changed = copy(model)
        changed.ledger_ = replace(right, **wrong)
        problems = verify_model(of, changed.save(tmp_path / "wrong.npz"))
        assert any(found in p for p in problems), (wrong, problems)
    changed = copy(model)
    changed.ledger_ = other.ledger_
    assert any("no record of this file" in p for p in verify_model(of, changed.save(tmp_path / "pasted.npz")))
    # the file put back to what it was before the second fit
    later = other.ledger_
    path.write_bytes(old)
    other.ledger_ = later
    problems = verify_model(Study(path), other.save(tmp_path / "later.npz"))
    assert any("put back to an older state" in p for p in problems)
    (tmp_path / "broken.npz").write_bytes(file.read_bytes()[:-200])
    assert "written by fdadp" in verify_model(of, tmp_path / "broken.npz")[0]


def test_a_ledger_is_checked_by_itself(path):
    study_at(path)
    cohort = cohort_of(path, 0.25)
    release(cohort)

    ledger = cohort.ledger
    assert verify_ledger(ledger) == ()
    (r,) = ledger.releases
    assert verify_ledger(replace(ledger, releases=[replace(r, scale=r.scale / 2)])) != ()
    assert verify_ledger(replace(ledger, releases=[r] * 5)) != ()
    assert verify_ledger(replace(ledger, epsilon=0.3)) != ()


# ------------------------------------------------------------------ single bytes


def rows_of(path):
    """Everything that a study says."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        return [db.execute(f"SELECT * FROM {table}").fetchall() for table in ("entries", "reservations")]


def changed_byte(content, at, rng):
    made = bytearray(content)
    made[at] ^= int(rng.integers(1, 256))
    return bytes(made)


COUNTS = [pytest.param(40, id="some"), pytest.param(1000, id="a thousand", marks=pytest.mark.long)]


@pytest.mark.parametrize("count", COUNTS)
def test_no_byte_of_a_model_can_be_changed(wards, tmp_path, count):
    """Bytes of arrays, and of the header with the ledger, one at a time; half of each."""
    path, _, file = wards
    content, rng, of = file.read_bytes(), np.random.default_rng(), Study(path)
    with zipfile.ZipFile(file) as entries:
        infos = entries.infolist()
    parts = {True: [], False: []}
    for info in infos:
        start = info.header_offset + 30 + len(info.filename)
        parts[info.filename == "header.npy"] += range(start, start + info.file_size)
    other = tmp_path / "changed.npz"
    for number in range(count):
        at = int(rng.choice(parts[number % 2 == 0]))
        other.write_bytes(changed_byte(content, at, rng))
        assert of.verify(other), at
    other.write_bytes(content)
    assert of.verify(other) == ()


@pytest.mark.parametrize("count", COUNTS)
def test_no_byte_of_a_study_can_be_changed(wards, tmp_path, count):
    """Any byte of the file is found, or does not change what it says (empty places, and what only SQLite reads)."""
    content, rng, before = wards[0].read_bytes(), np.random.default_rng(), rows_of(wards[0])
    texts = [text for row in before[0] for text in row if isinstance(text, str) and len(text) > 8]
    said = [i for text in texts for i in places(content, text)]
    other, found = tmp_path / "changed.fdadp", 0
    for number in range(count):
        inside = number % 2 == 0
        at = int(rng.choice(said)) if inside else int(rng.integers(len(content)))
        other.write_bytes(changed_byte(content, at, rng))
        wrong = wrong_with(other)
        found += bool(wrong)
        assert wrong or (not inside and rows_of(other) == before), at
        for left in tmp_path.iterdir():
            left.unlink()
    assert found >= count / 2


def places(content, text):
    """Where a text stands in the bytes of a file."""
    start = content.find(text.encode())
    return range(start, start + len(text.encode())) if start >= 0 else ()


def test_no_bit_of_the_sums_can_be_changed(path):
    """The table that fits are checked against is held against the entries to the last bit."""
    study_at(path)
    cohort = cohort_of(path, 0.3)
    for name in ("one", "two", "three"):
        release(cohort, 0.3, name)
    cohort.stop()
    release(cohort_of(path, 0.1))
    assert Study(path).verify() == ()
    _, rows = rows_of(path)
    for row in rows:
        for at, value in enumerate(row):
            for other in other_values(value):
                put(path, at, row[0], other)
                assert wrong_with(path), (at, value, other)
                put(path, at, other if at == 0 else row[0], value)
    assert Study(path).verify() == ()


def put(path, at, number, value):
    """Set a column of a reservation."""
    column = ("number", "share", "used", "cost", "state", "whole")[at]
    tampered(path, lambda db: db.execute(f"UPDATE reservations SET {column} = ? WHERE number = ?", (value, number)))


def other_values(value):
    """Values that are a bit away from a number, or a letter away from a text."""
    if isinstance(value, float):
        bits = np.float64(value).view(np.int64) ^ (np.int64(1) << np.arange(0, 64, 21))
        return [float(v) for v in bits.view(np.float64) if np.isfinite(v)]
    return [value + 7] if isinstance(value, int) else [value[:-1] + "x"]
