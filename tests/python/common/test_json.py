"""Texts in JSON from elsewhere: one error, which says what the text should be."""

from __future__ import annotations

import json

import pytest

from fdadp.errors import InputError
from fdadp.federated.local_dp.parameters_and_server import LocalParameters
from fdadp.planner.simulation_table import _cached
from fdadp.privacy import Ledger

BAD = ["", "{", "null", "3", '"ab"', "[1]", "[[1, 2]]", "{}", '{"unknown": 1}', '{"releases": 3}', '{"releases": [3]}']
BAD += ["[" * 200_000, '{"a":' * 100_000, "9" * 5000, "\x00", "\ud800"]


@pytest.mark.parametrize("kind", ["ledger", "parameters", "contract"])
def test_texts_that_are_something_else(kind):
    if kind == "contract":
        pytest.importorskip("phe")
        pytest.importorskip("gmpy2")
        from fdadp.federated.run_contract import Contract

        read = Contract.from_json
    else:
        read = Ledger.from_json if kind == "ledger" else LocalParameters.from_json
    for text in BAD:
        with pytest.raises(InputError, match=kind):
            read(text)


def test_what_is_wrong_with_a_field_is_said_as_ever():
    good = LocalParameters([0, 1], [0.0], [4.0], epsilon=3.0, n_rounds=1).to_json()
    with pytest.raises(InputError, match="epsilon must be"):
        LocalParameters.from_json(json.dumps(json.loads(good) | {"epsilon": -1.0}))


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[1]", b"[" * 200_000, b"\xff", b'{"a": 3}', b'{"a": ["x"]}', b'{"a": [1]}']
)
def test_a_damaged_cache_of_forecasts_is_computed_again(tmp_path, content):
    path = tmp_path / "cells.json"
    assert _cached(path) == {}
    path.write_bytes(content)
    assert _cached(path) == {}
    path.write_text('{"1000 0.1": [0.5, 1.0, 2.0, 0.95]}')
    assert _cached(path) == {"1000 0.1": [0.5, 1.0, 2.0, 0.95]}
