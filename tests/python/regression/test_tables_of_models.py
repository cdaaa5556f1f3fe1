"""Tables as users have them, read into records and responses; what is wrong with one is said by column and row."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from skfda import FDataGrid, FDataIrregular
from xarray import DataArray, Dataset

from fdadp.errors import InputError
from fdadp.functional.tables.curve_sample import Curves
from fdadp.regression.reading.table_columns import ColumnTable, read_long_response, read_records, read_response
from fdadp.responses import PointwiseResponse
from fdadp.terms.records import TrainingSummary

S = np.array([0.0, 0.2, 0.5, 1.0])
VALUES = np.random.default_rng(0).normal(size=(5, 4))
X = FDataGrid(VALUES, grid_points=S)


def frame(**more):
    data = pd.DataFrame({"age": [61, 70, 55, 48, 80], "region": list("abcab")}, index=list("pqrst"))
    data["X"] = X
    return data.assign(**more)


# --- what is read ---


@pytest.mark.parametrize(
    "curves",
    [
        X,
        pd.Series(X),
        VALUES,
        VALUES.tolist(),
        pd.DataFrame(VALUES, columns=S),
        DataArray(VALUES, dims=("row", "s"), coords={"s": S}),
        pd.Series(list(VALUES)),
        np.ma.masked_array(VALUES),
    ],
    ids=["FDataGrid", "series", "array", "lists", "frame", "xarray", "cells", "masked"],
)
def test_curves_of_every_kind_are_the_same(curves):
    own = isinstance(curves, FDataGrid | DataArray) or getattr(curves, "dtype", None) == X.dtype
    grids = None if own or isinstance(curves, pd.DataFrame) else {"X": S}
    records, _ = read_records({"X": curves, "z": np.arange(5)}, ("X", "z"), grids)
    np.testing.assert_array_equal(records.curves("X").values, VALUES)
    np.testing.assert_array_equal(records.curves("X").grid, S)
    assert records.n == 5 and records.numbers("z").tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("column", "wanted"),
    [
        (pd.array([1, 2, 3], dtype="Int64"), [1, 2, 3]),
        (pd.array([True, False, True], dtype="boolean"), [1, 0, 1]),
        (np.array([True, False, True]), [1, 0, 1]),
        (pd.Series([1, 2.5, np.float32(3)], dtype=object), [1, 2.5, 3]),
        (np.array([[1], [2], [3]]), [1, 2, 3]),
        ((1, 2, 3), [1, 2, 3]),
        (range(1, 4), [1, 2, 3]),
        (DataArray([1.0, 2.0, 3.0], dims="row"), [1, 2, 3]),
        (pd.Series([1.0, 2.0, 3.0], dtype="Float32"), [1, 2, 3]),
    ],
)
def test_numbers_of_every_kind_are_float64(column, wanted):
    numbers = read_records({"z": column}, ("z",))[0].numbers("z")
    assert numbers.dtype == np.float64 and numbers.tolist() == wanted


def test_labels_of_every_kind():
    data = {
        "text": ["b", "a", "b"],
        "numpy": np.array(["b", "a", "b"]),
        "category": pd.Categorical(["b", "a", "b"], categories=["never", "b", "a"]),
        "numbers": pd.Categorical([3, 1, 3]),
        "cut": pd.cut([1.0, 9.0, 2.0], [0, 5, 10]),
        "whole": [3.0, 1.0, 3.0],
    }
    records, _ = read_records(data, tuple(data))
    seen = TrainingSummary.of([records[:1], records[1:]])
    assert records.labels("cut").tolist() == ["(0, 5]", "(5, 10]", "(0, 5]"]
    assert {name: seen.levels_of(name) for name in data} == {
        "text": ("a", "b"),
        "numpy": ("a", "b"),
        "category": ("b", "a"),  # as the categorical has them, without the one that no row has
        "numbers": (1, 3),
        "cut": ("(0, 5]", "(5, 10]"),
        "whole": (1, 3),
    }


def test_only_the_columns_asked_for_are_read():
    data = frame(junk=[object()] * 5, gone=[None] * 5, when=pd.Timestamp(0))
    records, index = read_records(data, ("X", "age"))
    assert tuple(records.columns) == ("X", "age") and index.tolist() == list("pqrst")
    with pytest.raises(InputError, match=r"when must hold numbers, labels or curves, got datetime64.*days since"):
        read_records(data, ("when",))


def test_kinds_are_told_without_fitting():
    kinds = ColumnTable(frame(sure=True)).kinds()
    assert dict(kinds) == {"age": "numbers", "region": "labels", "X": "curves", "sure": "numbers"}
    assert "X" in kinds and "Z" not in kinds and 3 not in kinds


def test_wide_frames_below_a_name_are_curves():
    data = pd.concat({"X": pd.DataFrame(VALUES, columns=S), "Y": pd.DataFrame(VALUES * 2, columns=S)}, axis=1)
    records, _ = read_records(data, ("X",))
    np.testing.assert_array_equal(records.curves("X").grid, S)
    np.testing.assert_array_equal(read_response(data, "Y").values, VALUES * 2)


def test_data_sets_of_xarray_are_mappings():
    data = Dataset({"X": (("row", "s"), VALUES), "z": ("row", np.arange(5.0))}, coords={"s": S})
    records, _ = read_records(data, ("X", "z"))
    np.testing.assert_array_equal(records.curves("X").grid, S)


def test_without_names_the_rows_count():
    assert read_records(frame(), ())[0].n == 5
    assert read_records({"X": VALUES}, ())[0].n == 5


def test_curves_without_points_take_those_of_the_fit():
    records, _ = read_records({"X": VALUES}, ("X",), defaults={"X": S})
    assert records.curves("X").grid.tolist() == S.tolist()
    with pytest.raises(InputError, match="X must have 4 points a curve, as the fit had"):
        read_records({"X": VALUES[:, :3]}, ("X",), defaults={"X": S})


@given(st.permutations(range(5)), st.lists(st.integers(0, 4), min_size=1, max_size=9))
def test_rows_of_a_frame_stay_together(order, picked):
    data = frame(z=np.arange(5.0)).iloc[order].iloc[picked]
    records, index = read_records(data, ("X", "z", "region"))
    rows = np.asarray(order)[picked]
    np.testing.assert_array_equal(records.curves("X").values, VALUES[rows])
    assert records.numbers("z").tolist() == rows.tolist()
    assert index.tolist() == ["pqrst"[i] for i in rows]
    assert records.labels("region").tolist() == ["abcab"[i] for i in rows]


# --- row functions ---


def test_columns_are_computed_by_name():
    data = frame(**{"my col": np.arange(5.0)})
    names = ("mean(X)", "last(X)", "sd(X)", "log(age)", "I(age ** 2 - `my col` / 2)", "max(abs(X))", "last(X - age)")
    records, _ = read_records(data, names)
    weights = np.array([0.1, 0.25, 0.4, 0.25])
    mean = VALUES @ weights
    np.testing.assert_allclose(records.numbers("mean(X)"), mean)
    np.testing.assert_allclose(records.numbers("sd(X)"), np.sqrt((VALUES - mean[:, None]) ** 2 @ weights))
    assert records.numbers("last(X)").tolist() == VALUES[:, -1].tolist()
    assert records.numbers("max(abs(X))").tolist() == np.abs(VALUES).max(axis=1).tolist()
    age = np.array([61.0, 70, 55, 48, 80])
    np.testing.assert_allclose(records.numbers("log(age)"), np.log(age))
    np.testing.assert_allclose(records.numbers("I(age ** 2 - `my col` / 2)"), age**2 - np.arange(5) / 2)
    np.testing.assert_allclose(records.numbers("last(X - age)"), VALUES[:, -1] - age)
    logged = read_response(frame(Y=np.exp(age / 100)), "log(Y)")
    np.testing.assert_allclose(logged, age / 100)


def test_a_column_of_that_very_name_comes_first():
    assert read_records({"log(x)": [1.0, 2.0], "x": [5, 5]}, ("log(x)",))[0].numbers("log(x)").tolist() == [1, 2]


def test_functions_of_responses_leave_gaps():
    gaps = np.abs(VALUES) + 1
    gaps[2, 1] = np.nan
    logged = read_response({"Y": gaps}, "log(Y)")
    np.testing.assert_array_equal(logged.values, np.log(gaps))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("log(z)", r"log\(z\) must be finite in every row, got -inf in row 2, where z = 0"),
        ("log(X)", r"log\(X\) must be finite in every row, got nan in row"),
        ("mean(age)", r"mean\(age\) must be mean\(\) of curves, got numbers"),
        ("log(region)", "region must hold numbers, got 'a' in row 0"),
        ("log(agee)", "data must have the column 'agee', .*did you mean 'age'"),
        ("I(age if age else 3)", "must consist of columns, numbers"),
        ("I(__import__('os'))", "must consist of columns, numbers|must have the column"),
        ("I(X.values)", "must consist of columns, numbers"),
        ("I(3 ** 2)", "must read a column, got a constant"),
        ("log(age, 2)", "must consist of columns, numbers"),
        ("log(gap)", "gap must have a finite number in every row, got none in row 1"),
        ("sin(age)", r"must have the column 'sin\(age\)'"),
    ],
)
def test_what_cannot_be_computed_is_refused(name, text):
    with pytest.raises(InputError, match=text):
        read_records(frame(z=[2, 1, 0, 1, 2], gap=[1, np.nan, 3, 4, 5]), (name,))


# --- what is refused ---


@pytest.mark.parametrize(
    ("more", "text"),
    [
        (
            {"z": [1.0, 2, np.nan, 4, 5]},
            r"z must have a finite number in every row, got none in row 2 \(label 'r'\)\. Fit with missing='indicator'",
        ),
        ({"z": [1.0, 2, np.inf, 4, 5]}, r"z must have a finite number in every row, got inf in row 2"),
        ({"z": pd.array([1, None, None, 4, 5], dtype="Int64")}, r"got none in row 1 \(label 'q'\) and 1 more"),
        ({"z": pd.array([True, None, True, True, True], dtype="boolean")}, "z must have a finite number"),
        ({"z": ["a", None, "b", "a", "a"]}, r"z must have a label in every row, got none in row 1 \(label 'q'\)"),
        ({"z": pd.Categorical(["a", None, "b", "a", "a"])}, "z must have a label in every row"),
        ({"z": [1j, 2, 3, 4, 5]}, "z must hold numbers, labels or curves, got complex128"),
        ({"z": [[1, 2], [3], [1], [2], [2]]}, r"z must hold one number, .* got list \[1, 2\] in row 0"),
        ({"z": [(1, 2), (3, 1), (1, 1), (2, 2), (2, 2)]}, r"got tuple \(1, 2\) in row 0"),
        ({"z": [{}, 1, 2, 3, 4]}, r"got dict {} in row 0"),
        ({"z": [1, 2, len, 3, 4]}, "got builtin_function_or_method <built-in function len> in row 2"),
        ({"z": [None] * 5}, "z must have a"),
    ],
)
def test_bad_columns_are_named_with_their_rows(more, text):
    with pytest.raises(InputError, match=text):
        read_records(frame(**more), ("z",))


def test_an_odd_entry_is_named_where_numbers_are_wanted():
    records, _ = read_records(frame(z=["1.5", "2", "3?", "4", "5"]), ("z",), first=100)
    assert records.labels("z").tolist() == ["1.5", "2", "3?", "4", "5"]
    for wanted in (records, records[1:]):
        with pytest.raises(InputError, match=r"z must hold numbers, got '3\?' in row 102"):
            wanted.numbers("z")
    with pytest.raises(InputError, match=r"z must hold numbers, got '3\?' in row 102"):
        TrainingSummary.of([records[:1], records[1:]]).numbers_of("z")


def test_assign_calls_curves():
    data = pd.DataFrame({"x": [0.0, 0.2, 0.5, 1.0, 0.1]}).assign(X=X)
    with pytest.raises(InputError, match=r"X must hold one .*data\['X'\] = curves; data.assign"):
        read_records(data, ("X",))


def test_rows_without_a_curve_after_a_merge_are_named():
    data = frame().reset_index().merge(pd.DataFrame({"index": list("pz")}), how="right")
    with pytest.raises(InputError, match="X must have a curve in every row, got none in row 1"):
        read_records(data, ("X",))
    gaps = VALUES.copy()
    gaps[3, 2] = np.nan
    data = frame()
    data["X"] = FDataGrid(gaps, grid_points=S)
    with pytest.raises(InputError, match=r"X must be finite, got nan in curve 3 \(label 's'\)"):
        read_records(data, ("X",))
    assert np.isnan(read_records(data, ("X",), missing=("X",))[0].curves("X").values[3, 2])


def test_missing_entries_pass_where_they_may():
    data = frame(z=[1.0, np.nan, 3, 4, 5], w=["a", None, "b", "a", "a"])
    records, _ = read_records(data, ("z", "w"), missing=("z", "w"))
    assert np.isnan(records.numbers("z")[1]) and records.labels("w")[1] is None


@pytest.mark.parametrize(
    ("data", "names", "text"),
    [
        (None, ("x",), "data must be a data frame, or a mapping of columns by name, got NoneType"),
        (VALUES, ("x",), "data must be .* got ndarray"),
        ({}, (), "data must have at least one column, got none"),
        ({"x": []}, ("x",), "x must have at least one row, got none"),
        (frame().iloc[:0], ("age",), "data must have at least one row"),
        ({"x": [1, 2], "z": [1, 2, 3]}, ("x", "z"), "x and z must have the same number of rows, got 2 and 3"),
        ({"x": [1, 2], "X": X}, ("x", "X"), "x and X must have the same number of rows, got 2 and 5"),
        (frame(), ("Age",), "data must have the column 'Age', got the columns age, region, X; did you mean 'age'?"),
        ({"x": 3.0}, ("x",), "x must hold curves, or one entry a row, got float 3.0"),
        ({"x": "abc"}, ("x",), "x must hold curves, or one entry a row, got str 'abc'"),
        ({"x": np.float64(3)}, ("x",), r"x must have shape \(n,\)"),
        ({"x": np.zeros((2, 2, 2))}, ("x",), r"x must have shape \(n,\), or \(n, S\) for curves, got \(2, 2, 2\)"),
        (pd.concat([frame(), frame()], axis=1), ("age",), "data must have one column of the name 'age', got 2"),
    ],
)
def test_tables_that_do_not_hold_together_are_refused(data, names, text):
    with pytest.raises(InputError, match=text):
        read_records(data, names)


# --- responses ---


def test_responses_of_every_kind():
    gaps = VALUES.copy()
    gaps[1, 2] = np.nan
    data = {"Y": FDataGrid(gaps, grid_points=S), "y": [1, 2, 3, 4, 5], "died": list("abbab"), "A": gaps}
    curves = read_response(data, "Y")
    assert isinstance(curves, Curves) and curves.kind == "fdatagrid"
    np.testing.assert_array_equal(curves.values, gaps)
    np.testing.assert_array_equal(read_response(data, "A", {"A": S}).grid, S)
    assert read_response(data, "y").tolist() == [1, 2, 3, 4, 5]
    assert read_response(data, "died").tolist() == list("abbab")


def irregular():
    return FDataIrregular(
        start_indices=[0, 2, 3], points=[0.4, 0.1, 0.5, 0.2, 0.3, 0.9], values=[1.0, 2.0, 3.0, np.nan, 4.0, 5.0]
    )


def test_irregular_responses_keep_points_of_their_own():
    data = pd.DataFrame({"age": [3.0, 4.0, 5.0]})
    data["Y"] = pd.Series(irregular()) if hasattr(irregular(), "dtype") else irregular()
    for table in (data, {"Y": irregular()}):
        got = read_response(table, "Y", n=3)
        assert isinstance(got, PointwiseResponse) and len(got) == 3
        assert got.record.tolist() == [0, 0, 1, 2, 2]
        assert got.t.tolist() == [0.1, 0.4, 0.5, 0.3, 0.9] and got.y.tolist() == [2, 1, 3, 4, 5]


def test_long_tables_are_irregular_responses():
    index = pd.Index(["ann", "bob", "eve"])
    long = pd.DataFrame(
        {"who": ["bob", "ann", "bob", "ann"], "hour": [2.0, 5, 1, 5], "beats": pd.array([80, 70, None, 71], "Int64")}
    )
    got = read_long_response(long, 3, index)
    assert (got.record.tolist(), got.t.tolist(), got.y.tolist(), got.n) == ([0, 0, 1], [5, 5, 2], [70, 71, 80], 3)
    numbered = read_long_response(long.assign(who=[1, 0, 1, 0]), 3)
    np.testing.assert_array_equal(numbered.y, got.y)


@pytest.mark.parametrize(
    ("change", "index", "text"),
    [
        ({"who": ["joe", "ann"]}, None, "Y must be of records that data have, .* such as 'ann', got 'joe' in row 0"),
        ({"y": ["a", "b"]}, None, "column 'y' of Y must hold numbers, got labels"),
        ({"y": [np.nan, np.nan]}, None, "Y must have at least one observation, got none"),
        ({"t": [np.inf, 1]}, None, "Y must be observed at finite t with finite values, got 1 at inf"),
        ({"extra": 1}, None, "data frame of three columns .* got 4 columns"),
        ({}, ["ann", "ann"], "row labels of data must differ where Y is a long table, got 'ann' more than once"),
    ],
)
def test_bad_long_tables_are_refused(change, index, text):
    long = pd.DataFrame({"who": ["ann", "bob"], "t": [0.0, 1.0], "y": [1.0, 2.0]}).assign(**change)
    with pytest.raises(InputError, match=text):
        read_long_response(long, 2, pd.Index(index or ["ann", "bob"]))


@pytest.mark.parametrize(
    ("y", "text"),
    [
        ([1.0, np.nan, 3, 4, 5], "Y must have a finite number in every row, got none in row 1"),
        (np.full((5, 3), np.nan), "Y must have at least one observation, got none"),
        (
            np.where(np.eye(5) == 1, np.inf, 1.0),
            "Y must be finite where it was observed, got an infinite value in row 0",
        ),
        ([1.0, 2.0], "Y must have one entry for each of the 5 rows of the covariates, got 2"),
        (pd.Series(range(5), index=list("pqrts")), "covariates and Y must have the same row labels"),
    ],
)
def test_bad_responses_are_refused(y, text):
    with pytest.raises(InputError, match=text):
        read_response({"Y": y}, "Y", n=5, index=pd.Index(list("pqrst")))
