"""Frozen dataclasses as JSON and one array of numbers: what is packed comes back."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fdadp.errors import InputError
from fdadp.files.dataclass_json import class_at, pack, unpack
from fdadp.regression.fitted.model_files import may_be_made
from fdadp.terms import ff


@dataclass(frozen=True)
class Held:
    value: Any


def through(value):
    tree, numbers = pack(value, "value")
    return unpack(json.loads(json.dumps(tree)), numbers, lambda kind: True)


@pytest.mark.parametrize(
    "value", [None, True, 3, 2.5, "text", (), (1, ("a", None)), {}, {"a": 1, "b": {"c": (2,)}}, {3: 4}]
)
def test_plain_values(value):
    assert through(value) == value
    assert through(Held(value)) == Held(value)


def test_lists_come_back_as_tuples():
    assert through([Held(1), [2.0]]) == (Held(1), (2.0,))


@pytest.mark.parametrize(
    "array", [np.arange(6.0).reshape(2, 3), np.zeros((0, 4)), np.array(2.5), np.array([True, False]), np.arange(3)]
)
def test_arrays(array):
    found = through({"deep": (Held(array),)})["deep"][0].value
    np.testing.assert_array_equal(found, array)
    assert found.dtype == (bool if array.dtype == bool else np.float64)


def test_bits_of_numbers():
    array = np.array([0.1, -0.0, 5e-324, 1e308, np.inf, np.nan])
    assert through(array).tobytes() == array.tobytes()


@pytest.mark.parametrize(
    "index", [pd.Index(["a", "b"], name="who"), pd.Index([1, 2]), pd.to_datetime(["2020", "2021"])]
)
def test_labels(index):
    pd.testing.assert_index_equal(through(Held(index)).value, index)


@pytest.mark.parametrize("value", [lambda x: x, {1, 2}, np.less])
def test_what_no_file_can_hold(value):
    with pytest.raises(InputError, match=r"value.value must be made of numbers, texts, lists and None"):
        pack(Held(value), "value")


def test_classes_that_may_not_be_made():
    tree, numbers = pack(Held(1), "value")
    with pytest.raises(ValueError, match="must be a class that can be found"):
        unpack(tree, numbers, lambda kind: False)
    with pytest.raises(ValueError, match="must be a class that can be found"):
        unpack({"class": "os.system", "fields": {}}, numbers, lambda kind: True)


@pytest.mark.parametrize("module", ["fdadp.terms.as_it_was_called", "fdadp.errors"])
def test_classes_that_moved_after_the_file_was_written(module):
    """Out of a module that is no more, and out of one that is still there."""
    term = ff("X", k=(5, 6))
    tree, numbers = pack(term, "term")
    tree["class"] = f"{module}.FunctionalLinear"
    assert unpack(tree, numbers, may_be_made) == term


def test_no_module_without_the_class_is_imported():
    """Importing ``fdadp.__main__`` would run the command line."""
    tree = {"class": "fdadp.__main__.FunctionalLinear", "fields": {}}
    assert class_at("fdadp.__main__.NoSuchClass") is None
    assert class_at(tree["class"]) is type(ff("X")) and "fdadp.__main__" not in sys.modules
