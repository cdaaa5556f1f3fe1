"""Certificates whose JSON was changed, field by field: what follows from the study is found without a signature."""

from __future__ import annotations

import copy
import dataclasses
import gc
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from fdadp import Privacy, PrivateMean, Study, simulate_affr
from fdadp.cli.main import app
from fdadp.privacy.study import _append_only_file, verification
from fdadp.privacy.study.budget_accounts import written

SAID = ("about.", "date", "accuracy", "versions.fdadp", "signature")
"""What people said, or what the one who wrote it had installed."""


@pytest.fixture(scope="module")
def wards(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wards")
    of = {"bounds": {"Y": (-8, 8), "sex": ["f", "m"]}, "sources": {"Y": "manual"}, "custodian": "Data office"}
    study = Study.new(folder / "s.fdadp", name="Wards", epsilon=2.0, delta=1e-6, unit="row", n=800, **of)
    Y = simulate_affr(scenario=1, n=800, seed=0).Y
    PrivateMean(privacy=Privacy(study=study.path, epsilon=0.5, purpose="means"), bounds=(-8, 8)).fit(Y)
    _, file = study.report(region="Germany").save(folder / "c.html")
    PrivateMean(privacy=Privacy(study=study.path, epsilon=0.3, purpose="later"), bounds=(-8, 8)).fit(Y)
    return study, file


def leaves(plain, at=()):
    """Places of everything that is no dict or list with something in it."""
    if isinstance(plain, (dict, list)) and plain:
        items = plain.items() if isinstance(plain, dict) else enumerate(plain)
        for key, value in items:
            yield from leaves(value, (*at, key))
    else:
        yield at


def other(value):
    if isinstance(value, bool) or value is None:
        return 3.25
    if isinstance(value, (int, float)):
        return value * 1.5 + 1
    return f"{value}." if isinstance(value, str) else [1]


def name(at):
    return "".join(f"[{k}]" if isinstance(k, int) else f".{k}" for k in at).lstrip(".")


def test_what_was_written_before_releases_had_parts_is_what_is_written_now(wards):
    """A study, and a certificate: a release that reads all persons has no part in either."""
    study, file = wards
    (fit,) = json.loads(file.read_text(encoding="utf-8"))["fits"]
    assert fit["releases"] and not any("part" in release for release in fit["releases"])
    of_some = dataclasses.replace(study.fits[0].releases[0], part="trials")
    assert written(of_some)["part"] == "trials" and "part" not in written(study.fits[0].releases[0])


def test_each_field_that_follows_from_the_study_is_held_against_it(wards):
    """Each field is changed by itself; the verdict is that of `Study.wrong_with`, of the JSON as a file."""
    study, file = wards
    text = file.read_text(encoding="utf-8")
    assert study.wrong_with(file) == ()  # although another fit came later
    passed, tried = [], 0
    to = file.with_name("changed.json")
    for at in leaves(json.loads(text)):
        changed = json.loads(text)
        place = changed
        for key in at[:-1]:
            place = place[key]
        place[at[-1]] = other(place[at[-1]])
        to.write_text(json.dumps(changed), encoding="utf-8")
        tried += 1
        if not study.wrong_with(to):
            passed.append(name(at))
    assert tried > 200
    assert [p for p in passed if not p.startswith(SAID)] == []
    assert any(p.startswith("about.region") for p in passed)  # that nobody can check


def test_parts_left_out_or_added_are_found(wards):
    study, file = wards
    plain = json.loads(file.read_text(encoding="utf-8"))
    to = file.with_name("cut.json")
    for key in plain:
        if key not in ("signature",):
            to.write_text(json.dumps({k: v for k, v in plain.items() if k != key}), encoding="utf-8")
            assert study.wrong_with(to), key
    more = copy.deepcopy(plain)
    more["fits"][0]["approved"] = True
    to.write_text(json.dumps(more), encoding="utf-8")
    (found,) = study.wrong_with(to)
    assert "fits[0].approved" in found
    plain["spent"] = np.nextafter(plain["spent"], 9)  # rounding on another machine
    to.write_text(json.dumps(plain), encoding="utf-8")
    assert study.wrong_with(to) == ()


def test_the_shell_says_what_is_not_checked(wards, tmp_path):
    study, file = wards
    done = CliRunner().invoke(app, ["study", "verify", str(study.path), str(file)])
    assert done.exit_code == 0, done.output
    said = f"{file}: verified; not signed: its texts, date, accuracy and version are not checked"
    assert said in done.output.replace("\n", "")
    pytest.importorskip("cryptography")
    from fdadp.privacy.certificate.signature import new_keys

    new_keys(tmp_path / "key.pem")
    _, signed = study.report().signed(tmp_path / "key.pem").save(tmp_path / "signed.html")
    assert "not signed" not in CliRunner().invoke(app, ["study", "verify", str(study.path), str(signed)]).output


def test_the_page_is_not_what_is_verified(wards):
    study, file = wards
    done = CliRunner().invoke(app, ["study", "verify", str(study.path), str(file.with_suffix(".html"))])
    assert done.exit_code == 1
    assert f"this page is for people: verify {file.name}, saved beside it" in done.output.replace("\n", "")


def test_a_study_that_is_wrong_is_shown_with_status_1(wards, monkeypatch):
    study, _ = wards
    shown = CliRunner().invoke(app, ["study", "show", str(study.path)])
    assert shown.exit_code == 0, shown.output
    monkeypatch.setattr(verification, "_problems", lambda *_: ("more was reserved than the total",))
    shown = CliRunner().invoke(app, ["study", "show", str(study.path)])
    assert shown.exit_code == 1
    assert "WRONG: more was reserved than the total" in shown.output
    assert "WRONG: more was reserved than the total" in study._repr_html_()


def test_a_study_is_opened_once_to_be_shown(wards, monkeypatch):
    study, _ = wards
    gc.collect()
    str(study)  # which closes what fits held that are gone now
    opened, real = [], _append_only_file.Opened
    monkeypatch.setattr(_append_only_file, "Opened", lambda *of: opened.append(of) or real(*of))
    for show in (str, Study._repr_html_):
        assert "last entry" in show(study)
        assert len(opened) == 1
        opened.clear()
    assert CliRunner().invoke(app, ["study", "show", str(study.path)]).exit_code == 0
    assert len(opened) == 2  # once for what the study is
