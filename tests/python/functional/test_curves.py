"""What users may give as curves, what comes back, and what bad input is told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from skfda import FDataGrid, FDataIrregular
from skfda.representation.basis import BSplineBasis

from fdadp import open_curves
from fdadp.errors import FdadpError, InputError
from fdadp.functional.files.curve_files import read_curves
from fdadp.functional.tables.curve_inputs import as_curves, check_finite
from fdadp.functional.tables.curve_sample import Curves, as_grid

VALUES = np.array([[1.0, 2.0, 4.0], [0.0, -1.0, 3.0]])
GRID = np.array([0.0, 0.2, 1.0])


def irregular(points: list[list[float]], values: list[list[float]]) -> FDataIrregular:
    """Curves with their own points each."""
    starts = np.cumsum([0, *map(len, points[:-1])])
    return FDataIrregular(
        start_indices=starts, points=np.concatenate(points)[:, None], values=np.concatenate(values)[:, None]
    )


# --- what is accepted


def test_array_without_grid_means_even_grid_on_the_unit_interval() -> None:
    curves = as_curves(VALUES.tolist())
    assert (curves.kind, len(curves)) == ("array", 2)
    assert curves.values.dtype == np.float64
    np.testing.assert_array_equal(curves.values, VALUES)
    np.testing.assert_array_equal(curves.grid, [0.0, 0.5, 1.0])


def test_array_with_grid() -> None:
    curves = as_curves(VALUES.astype(np.float32), GRID)
    np.testing.assert_array_equal(curves.grid, GRID)
    back = curves.wrap(VALUES, GRID)
    assert isinstance(back, np.ndarray)
    assert as_curves(curves) is curves


def test_integers_and_masked_values() -> None:
    assert as_curves(np.array([[1, 2], [3, 4]])).values.dtype == np.float64
    masked = np.ma.MaskedArray([[1, 2], [3, 99]], mask=[[0, 0], [0, 1]])
    np.testing.assert_array_equal(as_curves(masked).values, [[1, 2], [3, np.nan]])


@pytest.mark.parametrize("columns", [GRID, ["0", "0.2", "1.0"]], ids=["numbers", "text from a file"])
def test_numeric_column_labels_are_the_grid(columns: Any) -> None:
    frame = pd.DataFrame(VALUES, index=["Halifax", "Resolute"], columns=columns)
    curves = as_curves(frame)
    assert curves.kind == "frame"
    np.testing.assert_array_equal(curves.grid, GRID)
    back = curves.wrap(VALUES + 1, GRID, index=curves.index)
    pd.testing.assert_frame_equal(back, frame + 1)


@pytest.mark.parametrize("columns", [None, ["a", "b", "c"]])
def test_other_column_labels_say_nothing_about_the_grid(columns: Any) -> None:
    frame = pd.DataFrame(VALUES, columns=columns)  # None: pandas' RangeIndex
    np.testing.assert_array_equal(as_curves(frame).grid, [0.0, 0.5, 1.0])
    np.testing.assert_array_equal(as_curves(frame, GRID).grid, GRID)


def test_names_with_a_prefix_that_end_in_numbers_are_the_grid_wherever_they_come_from(tmp_path: Any) -> None:
    """A frame had [0, 1] without a word, and the same columns opened by their prefix 0 to 23."""
    names = [f"h{hour:02d}" for hour in (0, 1, 2, 12, 23)]
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(4, 5)).round(6), columns=names)
    frame.to_csv(tmp_path / "x.csv", index=False)
    wanted = [0.0, 1.0, 2.0, 12.0, 23.0]
    for found in (frame, read_curves(tmp_path / "x.csv"), frame[names[::-1]]):
        curves = as_curves(found)
        np.testing.assert_array_equal(curves.grid, wanted)
        np.testing.assert_array_equal(curves.values, frame.to_numpy())
    table = open_curves(frame.assign(age=1.0), curves={"X": "h"})
    np.testing.assert_array_equal(table["X"].grid, wanted)
    np.testing.assert_array_equal(as_curves(frame, np.arange(5)).grid, np.arange(5))


def test_frame_on_a_new_grid_gets_the_grid_as_labels() -> None:
    curves = as_curves(pd.DataFrame(VALUES, columns=["a", "b", "c"]))
    back = curves.wrap(np.ones((2, 2)), np.array([0.1, 0.9]))
    assert back.columns.tolist() == [0.1, 0.9]


def test_missing_values_of_pandas_become_nan() -> None:
    frame = pd.DataFrame([[1, 2], [3, None]], dtype="Int64")
    np.testing.assert_array_equal(as_curves(frame).values, [[1, 2], [3, np.nan]])


def test_fdatagrid() -> None:
    data = FDataGrid(VALUES, grid_points=GRID)
    curves = as_curves(data)
    assert curves.kind == "fdatagrid"
    np.testing.assert_array_equal(curves.values, VALUES)
    np.testing.assert_array_equal(curves.grid, GRID)
    np.testing.assert_array_equal(as_curves(data, GRID).grid, GRID)
    back = curves.wrap(VALUES, GRID)
    assert isinstance(back, FDataGrid)
    assert back.equals(data)
    named = data.copy(sample_names=tuple(f"p{i}" for i in range(len(VALUES))))
    assert as_curves(named).wrap(VALUES, GRID).sample_names == back.sample_names  # of other rows
    assert as_curves(named).wrap(VALUES, GRID, rows=as_curves(named)).sample_names == named.sample_names


def test_fdatabasis_is_evaluated() -> None:
    basis = BSplineBasis(domain_range=(0, 2), n_basis=5)
    data = basis.to_basis()
    curves = as_curves(data)
    assert curves.kind == "fdatagrid"
    assert curves.values.shape == (5, 101)
    np.testing.assert_allclose(curves.grid[[0, -1]], [0, 2])
    np.testing.assert_allclose(curves.values.sum(axis=0), 1)  # B-splines sum to one
    np.testing.assert_allclose(as_curves(data, [0.0, 0.3]).values, data(np.array([0.0, 0.3]))[..., 0])


def test_fdatairregular_comes_out_on_the_union_of_its_points() -> None:
    data = irregular([[0.0, 1.0, 0.5], [0.25, 1.0]], [[1, 2, 3], [4, 5]])
    curves = as_curves(data)
    assert curves.kind == "fdatagrid"
    np.testing.assert_array_equal(curves.grid, [0.0, 0.25, 0.5, 1.0])
    np.testing.assert_array_equal(curves.values, [[1, np.nan, 3, 2], [np.nan, 4, np.nan, 5]])


def test_fdatairregular_on_a_given_grid() -> None:
    data = irregular([[0.0, 1.0], [0.5]], [[1, 2], [4]])
    curves = as_curves(data, [0.0, 0.25, 0.5, 1.0])
    np.testing.assert_array_equal(curves.values, [[1, np.nan, np.nan, 2], [np.nan, np.nan, 4, np.nan]])


# --- what is refused, and what the error says


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([["a", "b"]], "X must be numeric with one curve per row, got 'a' in row 0, at point 0 of its curve"),
        ([[1.0, 2.0], [3.0]], "X must be numeric with one curve per row, got list"),
        ({"a": 1}, "X must be numeric with one curve per row, got dict"),
        (np.array([[1j, 2.0]]), "X must be numeric with one curve per row, got ndarray: complex values"),
        (pd.DataFrame([["x", 1.0]]), "X must be numeric with one curve per row, got 'x' in row 0, at point 0"),
        (None, r"X must be two-dimensional \(curves, points\), got shape \(\)"),
        ([1.0, 2.0], r"X must be two-dimensional \(curves, points\), got shape \(2,\)"),
        (np.ones((2, 3, 1)), r"X must be two-dimensional \(curves, points\), got shape \(2, 3, 1\)"),
        (np.empty((0, 3)), r"X must not be empty, got shape \(0, 3\)"),
        (np.empty((3, 0)), r"X must not be empty, got shape \(3, 0\)"),
        (FDataGrid(VALUES, grid_points=GRID)[:0], r"X must not be empty, got shape \(0, 3\)"),
        (FDataGrid(np.ones((2, 3, 2)), grid_points=GRID), "X must hold real .* got dim_domain=1, dim_codomain=2"),
        (FDataGrid(np.ones((2, 3, 2))), "X must hold real functions of one variable, got dim_domain=2, dim_codomain=1"),
        (irregular([[0.0, 0.0], [1.0]], [[1, 2], [3]]), "X must have one value a point, got two for curve 0 at 0"),
        (BSplineBasis(n_basis=4), "X must be an FDataGrid, FDataBasis or FDataIrregular, got BSplineBasis"),
    ],
)
def test_bad_curves(data: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        as_curves(data)


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ([0.0, 1.0], r"grid of Y must have 3 points, one per column of the curves, got shape \(2,\)"),
        ([[0.0, 0.5, 1.0]], r"grid of Y must have 3 points, .* got shape \(1, 3\)"),
        ([0.0, np.nan, 1.0], "grid of Y must be finite, got nan among its points"),
        ([0.0, 1.0, np.inf], "grid of Y must be finite, got inf among its points"),
        ([0.0, 0.5, 0.5], "grid of Y must be strictly increasing, got 0.5 followed by 0.5 at position 1"),
        ([1.0, 0.5, 0.0], "grid of Y must be strictly increasing, got 1 followed by 0.5 at position 0"),
        (["a", "b", "c"], "grid of Y must be a sequence of numbers, got"),
    ],
)
def test_bad_grids(grid: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        as_curves(VALUES, grid, name="Y")


@pytest.mark.parametrize(
    ("data", "grid", "message"),
    [
        (
            FDataGrid(VALUES, grid_points=GRID),
            [0.0, 0.5, 1.0],
            "grid of X must be left out or equal the FDataGrid's own",
        ),
        (FDataGrid(VALUES, grid_points=GRID), ["a"], "grid of X must be a sequence of numbers"),
        (irregular([[0.0, 1.0], [0.5]], [[1, 2], [4]]), [0.0, 1.0], "must hold every point .* got curve 1 at 0.5"),
        (irregular([[0.0, 1.0], [0.5]], [[1, 2], [4]]), [0.0, 0.5], "must hold every point .* got curve 0 at 1"),
        (irregular([[0.0, 1.0], [0.5]], [[1, 2], [4]]), [], "grid of X must have at least one point, got none"),
        (BSplineBasis(n_basis=4).to_basis(), [0.5, 0.2], "must be strictly increasing, got 0.5 followed by 0.2"),
        (BSplineBasis(n_basis=4).to_basis(), [0.0, 2.0], r"must lie in the curves' domain \[0, 1\], got \[0, 2\]"),
        (BSplineBasis(n_basis=4).to_basis(), ["a"], "grid of X must be a sequence of numbers"),
    ],
)
def test_grid_that_does_not_fit_a_scikit_fda_object(data: Any, grid: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        as_curves(data, grid)


def test_as_grid_default_and_one_point() -> None:
    np.testing.assert_array_equal(as_grid(None, 5), [0.0, 0.25, 0.5, 0.75, 1.0])
    np.testing.assert_array_equal(as_grid([3.0], 1), [3.0])


# --- values that are not finite


def test_check_finite_names_curve_and_position() -> None:
    check_finite(as_curves(VALUES))
    bad = VALUES.copy()
    bad[1, 1:] = np.nan, np.inf
    message = r"X must be finite, got nan in curve 1 at position 1 \(grid point 0.2\); 2 such value\(s\) in all$"
    with pytest.raises(InputError, match=message):
        check_finite(as_curves(bad, GRID))


@pytest.mark.parametrize(("index", "label"), [(["Halifax", "Resolute"], "'Resolute'"), ([7, 9], "9")])
def test_check_finite_names_the_label_of_a_frame(index: list[Any], label: str) -> None:
    frame = pd.DataFrame([[1.0, 2.0], [-np.inf, 3.0]], index=index)
    with pytest.raises(InputError, match=rf"Y must be finite, got -inf in curve 1 \(label {label}\) at position 0"):
        check_finite(as_curves(frame, name="Y"), "Y")


def test_errors_are_fdadp_errors_and_value_errors() -> None:
    with pytest.raises(FdadpError):
        as_curves([1.0])
    with pytest.raises(ValueError, match="two-dimensional"):
        as_curves([1.0])


def test_curves_are_frozen() -> None:
    with pytest.raises(AttributeError):
        Curves(VALUES, GRID).kind = "frame"  # type: ignore[misc]
