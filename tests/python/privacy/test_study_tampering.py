"""Changes that nobody should have made: in a study's rows and bytes, in files of models, in ledgers, and old copies."""

from __future__ import annotations

import zipfile
from copy import copy
from dataclasses import replace

import numpy as np
import pytest
from study_tools import cohort_of, release, rewritten, study_at, wrong_with

from fdadp import Privacy, PrivateMean, simulate_affr
from fdadp.errors import PrivacyError
from fdadp.privacy.certificate.ledger_recount import verify_ledger
from fdadp.privacy.study import Study, _append_only_file
from fdadp.privacy.study.verification import verify_model


@pytest.fixture
def path(tmp_path):
    return tmp_path / "wards.fdadp"


def put(number, **changes):
    """A change of one entry."""
    return lambda lines: [line | (changes if line["position"] == number else {}) for line in lines]


@pytest.mark.parametrize(
    ("change", "hashes", "found"),
    [
        (lambda lines: [], False, "does not say what it is"),
        (lambda lines: lines[:1] + lines[2:], False, "entry 2 was changed"),
        (lambda lines: lines[:2] + lines[1:], False, "entry 3 was changed"),
        (put(1, content={"total": 9.0}), False, "entry 1 was changed"),
        (put(3, time="2020-01-01"), False, "entry 3 was changed"),
        (put(3, reservation=7), False, "entry 3 was changed"),
        (put(3, kind="opened"), False, "entry 3 was changed"),
        # by somebody who makes the hashes right again
        (put(3, reservation=7), True, "entry 3 of the study does not follow"),
        (put(3, kind="gift"), True, "entry 3 was changed"),
        (put(3, time="2020-01-01T00:00:00.000000+00:00"), True, "entry 3 was written before the one before it"),
        (put(3, time="2999-01-01T00:00:00.000000+00:00"), True, "the clock was set back, or ahead before"),
        (
            lambda lines: [line | {"content": line["content"] | {"expires": "2020-01-01"}} for line in lines],
            True,
            "last day",
        ),
        (lambda lines: lines[:2], False, "was put back to an older state: entry 3"),
    ],
)
def test_changed_entries_are_found(path, change, hashes, found):
    study_at(path)
    release(cohort_of(path, 0.25))
    assert Study(path).verify() == ()
    rewritten(path, change, hashes=hashes)
    assert any(found in problem for problem in wrong_with(path))


@pytest.mark.parametrize(
    "step", [pytest.param(11, id="some"), pytest.param(1, id="each", marks=pytest.mark.statistics)]
)
def test_every_byte_of_a_study_counts(path, step):
    """A byte that is changed, left out or doubled is found."""
    study_at(path)
    release(cohort_of(path, 0.25))
    content, rng, other = path.read_bytes(), np.random.default_rng(), path.with_name("other.fdadp")
    for at in (*range(int(rng.integers(step)), len(content), step), len(content) - 1):
        for wrong in (
            changed_byte(content, at, rng),
            content[:at] + content[at + 1 :],
            content[: at + 1] + content[at:],
        ):
            other.write_bytes(wrong)
            assert wrong_with(other), (at, content[at - 20 : at + 20])
    other.write_bytes(content)
    assert wrong_with(other) == ()


def test_a_line_that_was_not_written_to_its_end_is_dropped(path):
    """As a killed process leaves it, at each byte; the next step writes over it."""
    study_at(path)
    release(cohort_of(path, 0.25))
    content = path.read_bytes()
    start = content[:-1].rindex(b"\n") + 1
    for number, end in enumerate(range(start + 1, len(content), 60)):
        other = path.with_name(f"{number}.fdadp")
        study_at(other)
        cohort_of(other, 0.25)
        whole = other.read_bytes()
        other.write_bytes(whole + content[start:end])
        assert Study(other).verify() == ()
        release(cohort_of(other, 0.25))
        assert other.read_bytes().startswith(whole + b'{"position"')
        assert Study(other).verify() == ()


def test_fits_do_not_draw_on_a_study_that_was_changed(path):
    study_at(path)
    cohort_of(path, 0.1).close()
    content = path.read_bytes()
    path.write_bytes(content.replace(b'"epsilon": 2.0', b'"epsilon": 9.0', 1))
    _append_only_file._TOLD.clear()  # as in another process
    with pytest.raises(PrivacyError, match="is damaged: entry 1 was changed"):
        cohort_of(path, 0.1)


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
    monkeypatch.setattr("fdadp.summaries.mean_and_fpca.record_model", lambda *a: None)
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
        assert of.wrong_with(other), at
    other.write_bytes(content)
    assert of.wrong_with(other) == ()
