"""Labels against the levels of training rows, through the terms that read them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fdadp import FunctionalRegression, terms
from fdadp.errors import InputError
from fdadp.terms.numbers.levels import Levels
from fdadp.terms.records import Records, TrainingSummary

T = np.linspace(0, 1, 25)


def table(labels):
    return Records(len(labels), {"region": np.array(labels, dtype=object)})


def levels(labels):
    rows = table(labels)
    return Levels.of(TrainingSummary.of([rows]), "region")


def curves(region, seed=0):
    rng = np.random.default_rng(seed)
    shapes = {"a": np.sin(3 * T), "b": 2 + np.cos(3 * T), "c": -T}
    return np.array([shapes[r] for r in region]) + 0.1 * rng.normal(size=(len(region), T.size))


def test_indicators():
    found = levels(["b", "a", "c", "a"])
    assert found.levels == ("a", "b", "c")
    assert (found.indicators(table(["c", "a"])) == [[0, 0, 1], [1, 0, 0]]).all()
    assert (found.indicators(table(["mars", "a"]), unseen=True) == [[0, 0, 0], [1, 0, 0]]).all()


def test_numbers_that_are_equal_are_the_same_level():
    found = levels([2, 1.0, 1])
    assert found.levels == (1, 2)
    numbers = Records(3, {"region": np.array([1.0, 2.0, 1.0])})  # a column of floats
    assert (found.indicators(numbers) == [[1, 0], [0, 1], [1, 0]]).all()
    assert Levels.of(TrainingSummary.of([numbers]), "region").levels == (1, 2)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["a", 1, "b"], "labels of region must be of one kind, got 1 (number) and 'a' (text)"),
        (["a", True], "labels of region must be of one kind, got 'a' (text) and True (yes or no)"),
        (["a", "b", None], "region must have a label in every row, got none in row 2"),
        (["a", float("nan")], "region must have a label in every row, got none in row 1"),
        (["a", pd.NA], "region must have a label in every row, got none in row 1"),
        ([1.0, float("nan")], "region must have a label in every row, got none in row 1"),
    ],
)
def test_labels_are_checked(labels, message):
    with pytest.raises(InputError) as caught:
        levels(labels)
    assert message in str(caught.value)


@pytest.mark.parametrize("term", [terms.factor("region"), terms.factor("region", coding="levels")])
def test_an_unseen_level_is_named_with_its_row(term):
    region = np.array(list("abc") * 5)
    model = FunctionalRegression([term]).fit({"region": region, "Y": curves(region)}, grids={"Y": T})
    with pytest.raises(InputError) as caught:
        model.predict({"region": np.array(["a", "b", "c", "mars", "venus"])})
    message = "region has level 'mars' in row 3, unseen in training; levels were 'a', 'b', 'c'"
    assert str(caught.value) == message


def test_many_levels_are_not_all_listed():
    found = levels([f"{i:02d}" for i in range(30)])
    with pytest.raises(InputError, match=r"'08', '09' and 20 more$"):
        found.codes(["30"])
