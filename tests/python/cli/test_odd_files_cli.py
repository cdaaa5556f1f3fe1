"""Files that are none, keys that others may read, model files of others: one line, and an end."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from study_tools import cohort_of, release, study_at
from typer.testing import CliRunner

from fdadp import FunctionalRegression
from fdadp.cli.main import app
from fdadp.errors import FileFormatError, PrivacyError
from fdadp.federated.local_dp.parameters_and_server import LocalParameters
from fdadp.federated.local_dp.user_gradients import LocalClient


def said(*words):
    return CliRunner().invoke(app, list(map(str, words)))


@pytest.mark.parametrize(
    "words",
    [
        ("summary", "/dev/zero"),
        ("ledger", "/dev/zero"),
        ("fit", "Y ~ ff(X)", "--curves", "Y={0}", "--curves", "X={0}", "--out", "{1}/m.npz"),
        ("fit", "Y ~ ff(X)", "--curves", "Y={0}", "--epsilon", "1", "--n", "9", "--out", "{1}/m.npz"),
        ("fit", "y ~ x", "--table", "{0}", "--out", "{1}/m.npz"),
        ("study", "show", "/dev/zero"),
        ("study", "migrate", "/dev/zero"),
        ("table1", "{0}", "--facts", "{0}", "--epsilon", "1"),
        ("federated", "rows", "{0}", "--out", "{1}/rows.npz"),
        ("federated", "certificates", "{0}", "host", "{1}/tls"),
        ("federated", "model", "{0}", "{0}"),
    ],
)
def test_a_device_is_refused_at_once(tmp_path, words, little_memory):
    link = tmp_path / "curves.csv"
    link.symlink_to("/dev/zero")
    found = said(*(word.format(link, tmp_path) for word in words))
    assert found.exit_code == 2, found.output
    assert "must be a regular file" in found.output or "which is none" in found.output


@pytest.fixture
def little_memory():
    """A reader of a device ends in a MemoryError, not in the machine's."""
    resource = pytest.importorskip("resource")
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (now + 2**30, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def test_certificates_and_keys_are_regular_files(tmp_path, little_memory):
    pytest.importorskip("cryptography")
    study_at(tmp_path / "wards.fdadp")
    release(cohort_of(tmp_path / "wards.fdadp", 0.1))
    for name in ("c.json", "key.pem"):
        (tmp_path / name).symlink_to("/dev/zero")
    found = said("study", "verify", tmp_path / "wards.fdadp", tmp_path / "c.json")
    assert found.exit_code == 1 and "must be a regular file" in " ".join(found.output.split())
    words = ("study", "report", tmp_path / "wards.fdadp", "--out", tmp_path / "r.html", "--sign", tmp_path / "key.pem")
    found = said(*words)
    assert found.exit_code == 2 and "key must be a secret key in PEM" in " ".join(found.output.split())
    (tmp_path / "wide.json").write_text("{}", encoding="utf-16")
    found = said("federated", "model", tmp_path / "wide.json", tmp_path / "wide.json")
    assert found.exit_code == 2 and "must be text in UTF-8, got UTF-16" in " ".join(found.output.split())


def model_file(path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 11))
    return FunctionalRegression("Y ~ ff(X)").fit({"X": X, "Y": X[:, :7] + rng.normal(size=(30, 7))}).save(path)


def with_header(path, change):
    """A file with another header and the right digest for it."""
    from fdadp.files import npz_files

    stored = dict(np.load(path))
    header = json.loads(bytes(stored.pop("header")))
    header.pop("sha256")
    change(header)
    text = json.dumps(header).encode()
    text = npz_files._DIGEST.format(npz_files._digest(text, stored)).encode() + text[1:]
    np.savez(path, header=np.frombuffer(text, dtype=np.uint8), **stored)


def first_with(tree, key):
    """The first part of a tree of JSON that has a key."""
    for item in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        found = first_with(item, key)
        if found is not None:
            return found
    return tree if isinstance(tree, dict) and key in tree else None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("class", "fdadp.no.such.Thing"),
        ("class", 3),
        ("shape", [float("inf")]),
        ("start", float("inf")),
    ],
)
def test_model_files_that_somebody_made(tmp_path, key, value):
    path = model_file(tmp_path / "m.npz")
    FunctionalRegression.load(path)

    def change(header):
        first_with(header["content"], key)[key] = value

    with_header(path, change)
    with pytest.raises(FileFormatError, match="path must hold a complete"):
        FunctionalRegression.load(path)
    assert said("summary", path).exit_code == 2


def test_a_file_of_the_first_version(tmp_path):
    path = model_file(tmp_path / "m.npz")
    stored = dict(np.load(path))
    header = json.loads(bytes(stored["header"]))
    header.pop("sha256")
    np.savez(path, **stored | {"header": np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)})
    found = said("summary", path)
    assert found.exit_code == 2
    assert "its header has no digest, as in files of fdadp 0.1" in " ".join(found.output.split())
    assert "KeyError" not in found.output


def test_a_key_that_others_may_read_signs_nothing(tmp_path):
    pytest.importorskip("cryptography")
    study_at(tmp_path / "wards.fdadp")
    release(cohort_of(tmp_path / "wards.fdadp", 0.1))
    assert said("study", "key", tmp_path / "office.pem").exit_code == 0
    (tmp_path / "office.pem").chmod(0o644)
    words = (
        "study",
        "report",
        tmp_path / "wards.fdadp",
        "--out",
        tmp_path / "page.html",
        "--sign",
        tmp_path / "office.pem",
    )
    found = said(*words)
    assert found.exit_code == 2
    assert "its owner alone may read" in " ".join(found.output.split())
    (tmp_path / "office.pem").chmod(0o600)
    assert said(*words).exit_code == 0


def test_figures_and_models_make_the_folders_that_are_missing(tmp_path):
    pytest.importorskip("matplotlib")
    path = model_file(tmp_path / "no" / "such" / "m.npz")
    found = said("plot", path, "--out", tmp_path / "nor" / "this" / "m.png")
    assert found.exit_code == 0, found.output
    assert (tmp_path / "nor" / "this" / "m.png").exists()


def test_who_closes_the_pipe_hears_nothing(tmp_path):
    study_at(tmp_path / "wards.fdadp")
    words = "import sys; from fdadp.cli import main; sys.stdin.readline(); main()"
    run = subprocess.Popen(
        [sys.executable, "-c", words, "study", "show", str(tmp_path / "wards.fdadp")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    run.stdout.close()
    run.stdin.write(b"\n")
    run.stdin.close()
    assert run.stderr.read() == b""
    run.stderr.close()
    run.wait(60)


def test_a_client_is_not_copied():
    params = LocalParameters(["no", "yes"], [0.0, 0.0], [1.0, 10.0], mechanism="cldp", epsilon=3.0, n_rounds=1)
    client = LocalClient(params)
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(PrivacyError, match="must not be copied"):
            copied(client)
    assert len(client.report([0.5, 3.0], "yes", np.zeros(3))) > 0
