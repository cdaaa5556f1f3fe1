"""Moments add up, whatever the parts; files of moments and other files."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from moments_file import StoredMoments

from fdadp.errors import FileFormatError, InputError
from fdadp.files.npz_files import Layout
from fdadp.solve.form.training_sums import Moments


@given(seed=st.integers(0, 2**32 - 1), cuts=st.lists(st.integers(0, 30), max_size=4), shift=st.floats(-1e6, 1e6))
def test_parts_add_up_to_the_whole(seed, cuts, shift):
    rows = np.random.default_rng(seed).normal(size=(30, 4)) + shift
    whole = Moments.of(rows)
    total = Moments.zeros(4)
    for part in np.split(rows, sorted(cuts)):
        total.merge(Moments.of(part))
    assert total.n == 30
    np.testing.assert_allclose(total.mean, whole.mean, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(total.scatter, whole.scatter, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(whole.scatter / 29, np.cov(rows.T), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(whole.outer, rows.T @ rows, rtol=1e-10)


def test_save_and_load(tmp_path):
    moments = StoredMoments.of(np.random.default_rng(0).normal(size=(20, 4)))
    path = moments.save(tmp_path / "sums")
    again = StoredMoments.load(path)
    assert again.n == 20
    assert np.array_equal(again.scatter, moments.scatter)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: Moments.of(np.zeros(3)), r"two-dimensional, got shape \(3,\)"),
        (lambda: Moments.zeros(3).merge(Moments.of(np.zeros((2, 4)))), "length 3, got 4"),
    ],
)
def test_bad_moments_are_refused(call, text):
    with pytest.raises(InputError, match=text):
        call()


def _other_version(path):
    header = {"format": "fdadp", "kind": "moments", "version": 99, "fdadp": "9.0", "content": {}}
    np.savez(path, header=np.frombuffer(json.dumps(header).encode(), dtype=np.uint8))


@pytest.mark.parametrize(
    ("write", "text"),
    [
        (lambda path: path.write_bytes(b""), "written by fdadp"),
        (lambda path: path.write_text("1,2,3"), "written by fdadp"),
        (lambda path: np.savez(path, a=np.zeros(3)), "written by fdadp"),
        (lambda path: Layout("other", {}).write(path, {}, {}), "must hold a 'moments', got 'other'"),
        (_other_version, r"layout version 3, got version 99 \(written by fdadp 9.0\)"),
    ],
)
def test_other_files_are_refused(tmp_path, write, text):
    path = tmp_path / "file.npz"
    write(path)
    with pytest.raises(FileFormatError, match=text):
        StoredMoments.load(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="absent"):
        StoredMoments.load(tmp_path / "absent.npz")
