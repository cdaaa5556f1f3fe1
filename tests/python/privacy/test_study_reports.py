"""Certificates held against their study later: rolled back, rewritten, changed, signed."""

from __future__ import annotations

import json

import numpy as np
import pytest
from study_tools import cohort_of, release, rewritten, study_at
from typer.testing import CliRunner

from fdadp.cli.main import app
from fdadp.errors import PrivacyError
from fdadp.privacy.certificate.signature import new_keys
from fdadp.privacy.study import Study, _append_only_file


@pytest.fixture
def path(tmp_path):
    return tmp_path / "wards.fdadp"


def reported(path, tmp_path, name="certificate", key=None):
    made = Study(path).report(custodian="Office")
    return (made if key is None else made.signed(key)).save(tmp_path / name)[1]


def test_a_study_that_was_put_back_is_found_by_a_later_report(path, tmp_path):
    study_at(path)
    release(cohort_of(path, 0.1))
    before, early = path.read_bytes(), reported(path, tmp_path, "early")
    release(cohort_of(path, 0.2))
    late = reported(path, tmp_path, "late")
    assert Study(path).verify(early, late) == ()
    path.write_bytes(before)
    (itself, found) = Study(path).verify(early, late)
    assert "put back to an older state" in itself
    assert found.startswith(f"{late}: the study does not have the entry that the certificate names as the last")
    Study(path).restored("the disk was lost")
    release(cohort_of(path, 0.2))  # the same again, within a second: at another time all the same
    (found,) = Study(path).verify(early, late)
    assert found.startswith(f"{late}: the study does not have the entry")


def test_a_study_that_was_rewritten_with_right_hashes_is_found(path, tmp_path):
    """Who can write the file can make every hash right again: the certificate still names the old ones."""
    study_at(path)
    release(cohort_of(path, 0.1))
    release(cohort_of(path, 0.2))
    file = reported(path, tmp_path)

    def rename(lines):
        return [json.loads(json.dumps(line).replace("mean of rows", "mean of rooms")) for line in lines]

    rewritten(path, rename, hashes=True)
    _append_only_file.forget(Study(path).facts["id"], path, _append_only_file._TOLD[str(path)])  # as for another user
    assert Study(path).verify() == ()  # by itself nothing is wrong with it
    assert len(Study(path).verify(file)) == 1


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda d: d.update(epsilon=1.0), "does not say what follows from the study in"),
        (lambda d: d.update(n=None), "does not say what follows from the study in"),
        (lambda d: d["fits"][0]["releases"][0].update(scale=1e3), "does not say what follows from the study in"),
        (lambda d: d["fits"].pop(), "does not say what follows from the study in"),
        (lambda d: d.update(fits="none"), "does not say what follows from the study in"),
        (lambda d: d.update(study="Wards (else), made today; last entry 1, a"), "another study"),
        (lambda d: d.pop("study"), "it is no certificate of a study"),
    ],
)
def test_a_changed_certificate_is_found(path, tmp_path, change, found):
    study_at(path)
    release(cohort_of(path, 0.1))
    file = reported(path, tmp_path)
    content = json.loads(file.read_text(encoding="utf-8"))
    change(content)
    file.write_text(json.dumps(content), encoding="utf-8")
    assert any(found in problem for problem in Study(path).verify(file))


def test_what_is_no_certificate(path, tmp_path):
    study_at(path)
    for text in ("", "[]", "3", "{}", '{"study": 3}', "\x00"):
        (tmp_path / "some.json").write_text(text, encoding="utf-8")
        assert "it is no certificate of a study" in Study(path).verify(tmp_path / "some.json")[0]
    assert "it is no certificate" in Study(path).verify(tmp_path / "none.json")[0]


# ------------------------------------------------------------------ signatures


def test_signed_certificates(path, tmp_path):
    pytest.importorskip("cryptography")
    study_at(path)
    release(cohort_of(path, 0.1))
    secret, public = new_keys(tmp_path / "office.pem")
    _, other = new_keys(tmp_path / "other.pem", "a password")
    assert secret.stat().st_mode & 0o077 == 0
    with pytest.raises(PrivacyError, match="must name no file yet"):
        new_keys(tmp_path / "office.pem")
    file, plain, of = reported(path, tmp_path, key=secret), reported(path, tmp_path, "plain"), Study(path)
    assert of.verify(file) == of.verify(file, key=public) == of.verify(plain) == ()
    assert "signed with another key" in of.verify(file, key=other)[0]
    assert "is not signed" in of.verify(plain, key=public)[0]
    page = file.with_suffix(".html").read_text(encoding="utf-8")
    assert json.loads(file.read_text(encoding="utf-8"))["signature"]["public key"] in page
    for key, password in ((tmp_path / "other.pem", None), (tmp_path / "other.pem", "wrong"), (public, None)):
        with pytest.raises(PrivacyError, match="key must be a secret key in PEM"):
            of.report().signed(key, password)
    assert of.report().signed(tmp_path / "other.pem", "a password").signature is not None


def test_every_change_of_a_signed_certificate_is_found(path, tmp_path):
    """Letters and digits of what is signed, one at a time; what it says is compared besides."""
    pytest.importorskip("cryptography")
    study_at(path)
    release(cohort_of(path, 0.1))
    secret, public = new_keys(tmp_path / "office.pem")
    file, of, rng = reported(path, tmp_path, key=secret), Study(path), np.random.default_rng()
    text = file.read_text(encoding="utf-8")
    said = json.loads(text)
    of_signature = text.index('"signature"')
    for number in range(80):
        at = int(rng.integers(of_signature if number % 2 else 0, len(text)))
        other = chr((ord(text[at]) + int(rng.integers(1, 60))) % 128)
        file.write_text(text[:at] + other + text[at + 1 :], encoding="utf-8")
        try:
            same = json.loads(file.read_text(encoding="utf-8")) == said  # blanks between values
        except ValueError:
            same = False
        assert same or of.verify(file, key=public), (at, text[at - 20 : at + 20], other)


def test_signatures_on_the_command_line(path, tmp_path, monkeypatch):
    pytest.importorskip("cryptography")
    monkeypatch.setenv("FDADP_KEY_PASSWORD", "a password")
    study_at(path)
    release(cohort_of(path, 0.1))

    def said(*words):
        return CliRunner().invoke(app, ["study", *map(str, words)])

    made = said("key", tmp_path / "office")
    assert made.exit_code == 0, made.output
    assert b"ENCRYPTED" in (tmp_path / "office").read_bytes()
    page = tmp_path / "page.html"
    assert said("report", path, "--out", page, "--sign", tmp_path / "office").exit_code == 0
    checked = said("verify", path, page.with_suffix(".json"), "--key", tmp_path / "office.pub")
    assert checked.exit_code == 0, checked.output
    changed = page.with_suffix(".json").read_text(encoding="utf-8").replace('"n": 50', '"n": 51')
    page.with_suffix(".json").write_text(changed, encoding="utf-8")
    checked = said("verify", path, page.with_suffix(".json"))
    assert checked.exit_code == 1
    assert "the signature is not of this certificate" in checked.output.replace("\n", " ")
