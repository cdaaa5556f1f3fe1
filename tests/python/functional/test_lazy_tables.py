"""Curves in xarray's and Dask's containers, and FDataGrids of no real numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fdadp import DPAFF, AdditiveFunctionOnFunction, Privacy, rmspe, simulate_affr
from fdadp._common.dask_tasks import is_dask
from fdadp.errors import InputError
from fdadp.functional.tables.curve_inputs import as_curves

COHORT = simulate_affr(scenario=1, n=60, seed=3)
X, Y = (c.data_matrix[..., 0] for c in (COHORT.X, COHORT.Y))
NAMES = [f"p{i}" for i in range(60)]
DAYS = pd.date_range("2020-01-01", periods=Y.shape[1])


def model(**settings: Any) -> AdditiveFunctionOnFunction:
    return AdditiveFunctionOnFunction(n_components=2, n_basis_x=5, n_basis_s=5, progress=False, **settings)


def private() -> AdditiveFunctionOnFunction:
    privacy = Privacy(epsilon=1.0, delta=1e-6, n=60, random_state=0)
    return model(privacy=privacy, bounds={"X": (-4.5, 4.5), "Y": (-8, 8)}, mechanism=DPAFF(allow_useless=True))


def labelled() -> tuple[Any, Any]:
    """X on wave numbers that decrease, Y on days."""
    xarray = pytest.importorskip("xarray")
    x = xarray.DataArray(X, dims=("who", "wave"), coords={"who": NAMES, "wave": np.linspace(4000, 400, X.shape[1])})
    return x, xarray.DataArray(Y, dims=("who", "day"), coords={"who": NAMES, "day": DAYS})


@pytest.mark.parametrize("make", [model, private])
def test_dataarrays_are_curves_on_their_coordinates(make: Any) -> None:
    x, y = labelled()
    assert not is_dask(x)
    fitted = make().fit(x, y)
    wave = np.linspace(400, 4000, X.shape[1])
    same = make().fit(pd.DataFrame(X[:, ::-1], columns=wave), pd.DataFrame(Y, columns=DAYS))
    np.testing.assert_array_equal(fitted.coef_, same.coef_)
    np.testing.assert_array_equal(fitted.s_, wave)
    predicted = fitted.predict(x[:4])
    assert predicted.dims == ("who", "day") and list(predicted.indexes["day"]) == list(DAYS)
    assert list(predicted.indexes["who"]) == NAMES[:4]
    np.testing.assert_array_equal(predicted, same.predict(pd.DataFrame(X[:4, ::-1], columns=wave)))
    assert rmspe(y, fitted.predict(x)) > 0


def test_rows_of_dataarrays_are_joined_and_what_is_no_table_is_refused() -> None:
    x, y = labelled()
    np.testing.assert_allclose(model().fit(x, y[::-1]).coef_, model().fit(x, y).coef_, rtol=1e-8)
    with pytest.raises(InputError, match=r"Y must be a two-dimensional DataArray .* got Dataset with dimensions"):
        model().fit(x, y.to_dataset(name="rain"))
    with pytest.raises(InputError, match="X must be a two-dimensional DataArray"):
        as_curves(x[0])
    with pytest.raises(InputError, match="X must be two-dimensional"):
        private().fit(x.to_dataset(name="a"), y)
    plain = type(x)(X, dims=("who", "s"))
    np.testing.assert_array_equal(as_curves(plain).grid, np.linspace(0, 1, X.shape[1]))


def test_dataarrays_in_chunks_keep_their_coordinates() -> None:
    pytest.importorskip("dask.array")
    x, y = labelled()
    in_memory = model().fit(x, y)
    lazy = model().fit(x.chunk({"who": 25}), y.chunk({"who": 17}))
    np.testing.assert_allclose(lazy.coef_, in_memory.coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(lazy.s_, in_memory.s_)
    assert lazy.predict(x[:2]).dims == ("who", "day")
    beside = model().fit(x.chunk({"who": 25}), y)
    np.testing.assert_allclose(beside.coef_, in_memory.coef_, rtol=1e-6, atol=1e-9)
    one = private().fit(x.chunk({"who": 25}), y.chunk({"who": 17}))
    np.testing.assert_array_equal(one.coef_, private().fit(x, y).coef_)


def test_dask_arrays_of_unknown_size_are_refused_with_the_way_out() -> None:
    da = pytest.importorskip("dask.array")
    x, y = da.from_array(X, chunks=20), da.from_array(Y, chunks=20)
    model().fit(x, y)
    unknown = x[x[:, 0] > -100]
    for make in (model, private):
        with pytest.raises(InputError, match=r"X must .* known.*\.compute_chunk_sizes\(\)"):
            make().fit(unknown, y)
    with pytest.raises(InputError, match="X must be two-dimensional"):
        model().fit(x[:, 0], y)


def test_an_object_that_only_looks_like_dask_is_none() -> None:
    pytest.importorskip("dask")

    class Looks(np.ndarray):
        def __dask_graph__(self) -> None:
            return None

    assert not is_dask(X.view(Looks))
    model().fit(X.view(Looks), Y)


@pytest.mark.parametrize(("kind", "word"), [(complex, "complex128"), (object, "object"), ("M8[s]", "datetime64")])
def test_fdatagrids_of_no_real_numbers_are_refused(kind: Any, word: str) -> None:
    grid = COHORT.Y.copy()
    grid.data_matrix = np.zeros_like(grid.data_matrix).astype("int64").astype(kind)
    with pytest.raises(InputError, match=f"Y must hold real numbers, got an FDataGrid of {word}"):
        as_curves(grid, name="Y")


def test_fdatagrids_of_truth_values_are_zeros_and_ones() -> None:
    grid = COHORT.Y.copy()
    grid.data_matrix = grid.data_matrix > 0
    np.testing.assert_array_equal(as_curves(grid).values, Y > 0)


def test_dataarrays_come_back_from_a_saved_model(tmp_path: Path) -> None:
    x, y = labelled()
    fitted = model().fit(x, y.assign_coords(day=np.arange(Y.shape[1]) / 2))
    loaded = AdditiveFunctionOnFunction.load(fitted.save(tmp_path / "m.npz"))
    again = loaded.predict(x[:2])
    assert type(again) is type(y)
    np.testing.assert_array_equal(again, fitted.predict(x[:2]))
