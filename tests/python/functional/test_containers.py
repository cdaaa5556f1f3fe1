"""Curves in the containers that people have: what is opened, what is read, and what comes back."""

from __future__ import annotations

import pickle
import sys
import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fdadp import DPAFF, AdditiveFunctionOnFunction, FunctionalRegression, Privacy, PrivateMean, open_curves
from fdadp.datasets import simulate_affr
from fdadp.errors import FileFormatError, InputError, PrivacyError
from fdadp.functional.containers import arrow
from fdadp.functional.containers.opened_tables import OpenedCurves, OpenedTable, _Opened
from fdadp.functional.tables.curve_inputs import as_curves
from fdadp.privacy import Budget, Cohort, SeededNoise
from fdadp.terms import ff, linear

COHORT = simulate_affr(scenario=1, n=60, n_points=21, seed=3)
X, Y = (c.data_matrix[..., 0] for c in (COHORT.X, COHORT.Y))
S = np.linspace(0, 1, 21).round(2)
IDS, AGE = np.arange(60) // 2, np.linspace(20, 70, 60)
BOUNDS = {"X": (-4.5, 4.5), "Y": (-8, 8)}
FORMULA = "Y ~ ff(X) + age"


def surface(**settings: Any) -> AdditiveFunctionOnFunction:
    return AdditiveFunctionOnFunction(n_components=2, n_basis_x=5, n_basis_s=5, progress=False, **settings)


def promised() -> dict[str, Any]:
    privacy = Privacy(epsilon=1.0, delta=1e-6, n=30, random_state=0)
    return {"privacy": privacy, "mechanism": DPAFF(allow_useless=True), "progress": False}


def private_surface() -> AdditiveFunctionOnFunction:
    return AdditiveFunctionOnFunction(**promised(), bounds=BOUNDS, n_components=2)


# ------------------------------------------------------------------ one table in every container


def arrow_table() -> Any:
    pa = pytest.importorskip("pyarrow")
    columns = {"id": pa.array(IDS), "age": pa.array(AGE)}
    for name, values in (("X", X), ("Y", Y)):
        columns[name] = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), 21)
    return pa.table(columns)


def parquet(folder: Path) -> Path:
    table, path = arrow_table(), folder / "people.parquet"
    pytest.importorskip("pyarrow.parquet").write_table(table, path, row_group_size=17)
    return path


def parquet_folder(folder: Path) -> Path:
    table, pq = arrow_table(), pytest.importorskip("pyarrow.parquet")
    (folder / "many").mkdir()
    for k in range(3):
        pq.write_table(table.slice(20 * k, 20), folder / "many" / f"part-{k}.parquet", row_group_size=13)
    return folder / "many"


def polars_frame(folder: Path) -> Any:
    return pytest.importorskip("polars").from_arrow(arrow_table())


def xarray_dataset(folder: Path) -> Any:
    xr = pytest.importorskip("xarray")
    columns = {"X": (("who", "s"), X), "Y": (("who", "t"), Y), "age": ("who", AGE), "id": ("who", IDS)}
    return xr.Dataset(columns, coords={"s": S, "t": S})


def zarr_store(folder: Path) -> Path:
    pytest.importorskip("zarr")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zarr's, of what its format will be
        xarray_dataset(folder).chunk({"who": 25}).to_zarr(folder / "people.zarr")
    return folder / "people.zarr"


def wide_frame(folder: Path) -> pd.DataFrame:
    points = {f"{name}_{s:.2f}": v[:, j] for name, v in (("x", X), ("y", Y)) for j, s in enumerate(S)}
    return pd.DataFrame({"id": IDS, **points, "age": AGE})


def csv(folder: Path) -> Path:
    wide_frame(folder).to_csv(folder / "people.csv", index=False)
    return folder / "people.csv"


def duckdb_relation(folder: Path) -> Any:
    return pytest.importorskip("duckdb").sql(f"select * from '{parquet(folder)}'")


def lazy_frame(folder: Path) -> Any:
    return pytest.importorskip("polars").scan_parquet(parquet(folder))


def arrow_dataset(folder: Path) -> Any:
    pytest.importorskip("pyarrow")
    return __import__("pyarrow.dataset").dataset.dataset(parquet(folder))


WIDE = {"curves": {"X": "x_", "Y": "y_"}}
GIVEN = {"grids": {"X": S, "Y": S}}
CONTAINERS: dict[str, tuple[Any, dict[str, Any], str]] = {
    "Arrow table": (lambda folder: arrow_table(), GIVEN, "pyarrow"),
    "parquet": (parquet, GIVEN, "pyarrow"),
    "parquet folder": (parquet_folder, GIVEN, "pyarrow"),
    "Arrow dataset": (arrow_dataset, GIVEN, "pyarrow"),
    "polars": (polars_frame, GIVEN, "polars"),
    "polars, lazy": (lazy_frame, GIVEN, "polars"),
    "DuckDB": (duckdb_relation, GIVEN, "pyarrow"),
    "xarray": (xarray_dataset, {}, "xarray"),
    "zarr": (zarr_store, {}, "xarray"),
    "pandas": (wide_frame, WIDE, "pandas"),
    "CSV": (csv, WIDE, "pandas"),
}


@pytest.fixture(scope="module")
def fits() -> dict[str, Any]:
    """Fits to the same values as arrays."""
    data = {"X": X, "Y": Y, "age": AGE}
    bounds = {**BOUNDS, "age": (20, 70)}
    mean = PrivateMean(privacy=Privacy(4.0, n=30, random_state=0), bounds=(-8, 8), allow_useless=True)
    return {
        "surface": surface().fit(X, Y, s=S, t=S),
        "private": private_surface().fit(X, Y, s=S, t=S, groups=IDS),
        "terms": FunctionalRegression(FORMULA, progress=False).fit(data, **GIVEN),
        "private terms": FunctionalRegression(FORMULA, **promised(), bounds=bounds).fit(data, **GIVEN, groups=IDS),
        "mean": mean.fit(Y, t=S, groups=IDS),
    }


def again(model: Any) -> Any:
    from sklearn.base import clone

    return clone(model)


@pytest.mark.filterwarnings("ignore::fdadp.errors.FdadpWarning")
@pytest.mark.parametrize("kind", CONTAINERS)
def test_fits_are_those_of_the_same_values_as_arrays(kind: str, tmp_path: Path, fits: dict[str, Any]) -> None:
    make, options, package = CONTAINERS[kind]
    table = open_curves(make(tmp_path), **options)
    assert isinstance(table, OpenedTable) and set(table.names) >= {"id", "age", "X", "Y"}
    np.testing.assert_allclose(table.grids["X"], S, atol=1e-12)
    x, y = table["X"], table["Y"]
    assert isinstance(x, OpenedCurves)

    plain = surface().fit(x, y)
    np.testing.assert_allclose(plain.coef_, fits["surface"].coef_, rtol=1e-6, atol=1e-9)
    predicted = plain.predict(x)
    assert type(predicted).__module__.split(".")[0] == package
    np.testing.assert_allclose(as_curves(predicted).grid, S, atol=1e-12)
    np.testing.assert_allclose(as_curves(predicted).values, fits["surface"].predict(X), rtol=1e-5, atol=1e-7)

    terms = again(fits["terms"])
    for fit in (terms.fit, terms.fit_chunks):
        fit(table)
        np.testing.assert_allclose(terms.coefficients_, fits["terms"].coefficients_, rtol=1e-5, atol=1e-7)
        assert type(terms.predict(table)).__module__.split(".")[0] == package

    private = private_surface().fit(x, y, groups=table["id"])
    np.testing.assert_array_equal(private.coef_, fits["private"].coef_)
    assert type(private.predict(X, t=S)).__module__.split(".")[0] == package
    of_terms = again(fits["private terms"])
    (of_terms.fit_chunks if kind == "parquet" else of_terms.fit)(table, groups="id")
    np.testing.assert_array_equal(of_terms.coefficients_, fits["private terms"].coefficients_)
    assert type(of_terms.predict(table)).__module__.split(".")[0] == package
    mean = again(fits["mean"]).fit(y, groups=table["id"])
    np.testing.assert_array_equal(mean.mean_, fits["mean"].mean_)


@pytest.mark.parametrize("kind", CONTAINERS)
def test_pieces_are_read_anew_and_their_rows_are_all_there(kind: str, tmp_path: Path) -> None:
    make, options, _ = CONTAINERS[kind]
    table = open_curves(make(tmp_path), **options)
    for _ in range(2):
        pieces = list(table)
        np.testing.assert_array_equal(np.concatenate([piece["X"].values for piece in pieces]), X)
        np.testing.assert_array_equal(np.concatenate([np.asarray(piece["id"]) for piece in pieces]), IDS)
    cohort = Cohort(table.chunks("X", "id"), groups=True, budget=Budget(1.0), n=30, noise=SeededNoise(0))
    plain = Cohort(X, groups=IDS, budget=Budget(1.0), n=30, noise=SeededNoise(0))
    one, other = (c.sum(lambda rows: rows[0], clip=9.0, share=1.0, name="s").value for c in (cohort, plain))
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("rows", [slice(None, None, -1), slice(25, 3, -4), slice(3, 25, 4), slice(3, 3, -1)])
def test_slices_are_those_of_arrays(rows: slice, tmp_path: Path) -> None:
    """Those backwards were empty, without a word."""
    table = open_curves(CONTAINERS["parquet folder"][0](tmp_path), **CONTAINERS["parquet folder"][1])
    np.testing.assert_array_equal(table["X"][rows], X[rows])
    np.testing.assert_array_equal(table["id"][rows], np.asarray(IDS)[rows])


@pytest.mark.parametrize("kind", ["parquet", "parquet folder", "Arrow table", "zarr", "xarray", "CSV", "Arrow dataset"])
def test_pieces_are_tasks_for_dask(kind: str, tmp_path: Path) -> None:
    dask = pytest.importorskip("dask")
    make, options, _ = CONTAINERS[kind]
    table = open_curves(make(tmp_path), **options)
    parts = pickle.loads(pickle.dumps(table.to_delayed()))
    tables = dask.compute(*parts, scheduler="synchronous")
    np.testing.assert_array_equal(np.concatenate([part["Y"].values for part in tables]), Y)
    if kind == "parquet":  # added up where Dask reads them
        fitted = surface().fit_chunks(table.to_delayed())
        np.testing.assert_allclose(fitted.coef_, surface().fit(X, Y, s=S, t=S).coef_, rtol=1e-6, atol=1e-9)


def many_terms() -> FunctionalRegression:
    return FunctionalRegression(FORMULA, **promised(), bounds=BOUNDS | {"age": (0, 100)})


@pytest.mark.filterwarnings("ignore::fdadp.errors.PublicInputWarning")
@pytest.mark.parametrize("workers", [False, True])
def test_private_fits_read_tasks_as_the_kernel_reads_what_was_opened(
    workers: bool, tmp_path: Path, monkeypatch: Any
) -> None:
    """Entry by entry: one person's short list is that person's alone, on workers as in one process."""
    dask = pytest.importorskip("dask")
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    lists = [x.tolist() for x in X]
    lists[3] = lists[3][:7]
    columns = {"id": pa.array(IDS), "age": pa.array(AGE), "X": pa.array(lists), "Y": pa.array(list(Y))}
    pq.write_table(pa.table(columns), tmp_path / "people.parquet", row_group_size=17)
    table = open_curves(tmp_path / "people.parquet", grids={"X": S, "Y": S})
    known = X.copy()
    known[3] = np.nan
    arrays = {"X": known, "Y": Y, "age": AGE, "id": IDS}
    terms = many_terms().fit(arrays, grids={"X": S, "Y": S}, groups="id")
    one = private_surface().fit(known, Y, s=S, t=S, groups=IDS)
    if workers:
        monkeypatch.setattr("fdadp.privacy.rows._dask_partitions.active_client", object)
    with dask.config.set(scheduler="synchronous"):
        found = many_terms().fit_chunks(table.to_delayed(), grids={"X": S, "Y": S}, groups="id")
        tuples = table.chunks("X", "Y", "id").to_delayed()
        other = private_surface().fit_chunks(tuples, s=S, t=S, groups=True)
    np.testing.assert_array_equal(found.fitted_.fit.coefficients, terms.fitted_.fit.coefficients)
    np.testing.assert_array_equal(other.coef_, one.coef_)


def test_chunks_of_a_private_surface_are_no_tables(tmp_path: Path) -> None:
    pytest.importorskip("dask")
    table = open_curves(parquet(tmp_path), **GIVEN)
    for chunks, how in ((table, ""), (table.to_delayed(), r"\.to_delayed\(\)")):
        model = private_surface()
        with pytest.raises(InputError, match=rf"as table\.chunks\('X', 'Y', 'id'\){how} gives them, got its tables"):
            model.fit_chunks(chunks, s=S, t=S, groups=True)
    for tasks in (open_curves(csv(tmp_path), **WIDE).to_delayed(), open_curves(csv(tmp_path), **WIDE).chunks("X")):
        with pytest.raises(InputError, match=r"read here in a private fit, line by line: use \.chunks\(\)"):
            tasks.entries(["X"]) if hasattr(tasks, "entries") else tasks.to_delayed()


def test_a_query_has_no_tasks_and_its_columns_belong_to_one_pass(tmp_path: Path) -> None:
    table, other = (open_curves(duckdb_relation(folder), **GIVEN) for folder in (tmp_path, tmp_path))
    pytest.importorskip("dask")
    with pytest.raises(InputError, match="pieces that can be read by themselves, got a stream"):
        table.to_delayed()
    for make in (surface, private_surface):
        with pytest.raises(InputError, match="X and Y must be columns of one table that was opened once"):
            make().fit(table["X"], other["Y"])
    with pytest.raises(InputError, match="groups must be a column of what was opened, as table"):
        private_surface().fit(table["X"], table["Y"], groups=IDS)


# ------------------------------------------------------------------ arrays on disk


def npy(folder: Path, name: str, values: Any) -> Path:
    np.save(folder / f"{name}.npy", values)
    return folder / f"{name}.npy"


@pytest.mark.filterwarnings("ignore::fdadp.errors.FdadpWarning")
def test_arrays_on_disk(tmp_path: Path, fits: dict[str, Any]) -> None:
    x, y = open_curves(npy(tmp_path, "x", X), grids=S), open_curves(npy(tmp_path, "y", Y), grids=S)
    assert isinstance(x, OpenedCurves) and x.shape == X.shape
    fitted = surface().fit(x, y)
    np.testing.assert_allclose(fitted.coef_, fits["surface"].coef_, rtol=1e-6, atol=1e-9)
    assert isinstance(fitted.predict(x), np.ndarray)
    np.testing.assert_array_equal(private_surface().fit(x, y, groups=IDS).coef_, fits["private"].coef_)
    mixed = surface().fit(x, COHORT.Y)  # one of them in memory, with its kind
    assert type(mixed.predict(x)).__name__ == "FDataGrid"
    zarr = pytest.importorskip("zarr")
    zarr.create_array(store=str(tmp_path / "x.zarr"), data=X, chunks=(16, 21)) if hasattr(
        zarr, "create_array"
    ) else zarr.save_array(str(tmp_path / "x.zarr"), X, chunks=(16, 21))
    stored = open_curves(tmp_path / "x.zarr", grids=S)
    assert len(list(stored)) == 4  # by the chunks of the store
    np.testing.assert_allclose(surface().fit(stored, y).coef_, fitted.coef_, rtol=1e-6, atol=1e-9)


def test_a_large_map_does_not_come_into_memory(tmp_path: Path) -> None:
    n, points = 60_000, 51
    values = np.lib.format.open_memmap(tmp_path / "y.npy", mode="w+", dtype=np.float64, shape=(n, points))
    for start in range(0, n, 6000):
        values[start : start + 6000] = np.random.default_rng(start).normal(size=(6000, points))
    values.flush()
    tracemalloc.start()
    curves = open_curves(tmp_path / "y.npy")
    opened = tracemalloc.get_traced_memory()[1]
    surface().fit(curves, curves)
    read = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert opened < 1e6 and read < values.nbytes / 2, (opened, read, values.nbytes)


# ------------------------------------------------------------------ what comes back


def test_labels_names_and_attributes_of_xarray_come_back() -> None:
    xr = pytest.importorskip("xarray")
    names, days = [f"p{i}" for i in range(60)], pd.date_range("2020-01-01", periods=21)
    coords = {"who": names, "day": days, "place": ("who", AGE)}
    y = xr.DataArray(Y, dims=("who", "day"), coords=coords, name="rain", attrs={"units": "mm", "seen": object()})
    backwards = {"who": names, "wave": S[::-1], "place": ("who", AGE)}
    x = xr.DataArray(X[:, ::-1].T, dims=("wave", "who"), coords=backwards)
    opened = open_curves(x, rows="who")
    np.testing.assert_array_equal(opened.grid, S)
    for given in (opened, x.T):
        for target in (open_curves(y), y):
            fitted = surface().fit(given, target)
            predicted = fitted.predict(given)
            assert predicted.dims == ("who", "day") and predicted.name == "rain" and predicted.attrs == {"units": "mm"}
            assert list(predicted.indexes["who"]) == names and list(predicted.indexes["day"]) == list(days)
            np.testing.assert_array_equal(predicted["place"], AGE)
            assert fitted.fitted_.response.curves.unit == "days since 2020-01-01"
    private = private_surface().fit(opened, open_curves(y)).predict(opened)
    assert private.name == "rain" and private.attrs == {} and list(private.indexes["day"]) == list(days)
    direct = private_surface().fit(x.T, y).predict(x.T[:3])
    assert direct.name == "rain" and direct.attrs == {}
    spans = y.assign_coords(day=pd.to_timedelta(np.arange(21) / 2, unit="h"))
    assert open_curves(spans).head.unit == "hours"
    with pytest.raises(InputError, match="must have labels that increase or decrease"):
        open_curves(y.assign_coords(day=np.roll(S, 3)))
    with pytest.raises(InputError, match=r"rows must be a dimension of DataArray, got 'day2'"):
        open_curves(y, rows="day2")


def test_saved_models_give_back_the_kind(tmp_path: Path) -> None:
    xr, pl = pytest.importorskip("xarray"), pytest.importorskip("polars")
    y = xr.DataArray(Y, dims=("who", "t"), coords={"t": S}, name="rain", attrs={"units": "mm"})
    frame = polars_frame(tmp_path)
    for target, x in ((y, X), (frame.select("Y"), X)):
        model = surface().fit(x, target)
        loaded = AdditiveFunctionOnFunction.load(model.save(tmp_path / "m.npz"))
        one, other = model.predict(X[:3]), loaded.predict(X[:3])
        assert type(one) is type(other)
        np.testing.assert_array_equal(as_curves(one).values, as_curves(other).values)
    assert isinstance(other, pl.DataFrame) and other.columns == ["Y"]
    assert surface().fit(X, y).predict(X[:3]).attrs == {"units": "mm"}


def test_wide_frames_of_polars_and_arrow_come_back_with_names_and_labels(tmp_path: Path) -> None:
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    wide = pd.DataFrame(Y, columns=[f"{s:.2f}" for s in S[::-1]])
    wide.insert(0, "id", [f"p{i}" for i in range(60)])
    for given in (pl.from_pandas(wide), pa.Table.from_pandas(wide, preserve_index=False)):
        opened = open_curves(given)
        assert isinstance(opened, OpenedCurves)
        np.testing.assert_allclose(opened.grid, S)
        np.testing.assert_array_equal(opened.read().values, Y[:, ::-1])
        assert list(opened.read().index) == list(wide["id"])
        for x, y in ((opened, opened), (given, given)):  # as it is, too
            back = surface().fit(x, y).predict(x)
            assert type(back) is type(given)
            names = back.columns if hasattr(back, "get_column") else back.column_names
            assert list(names) == list(wide.columns) and back["id"].to_pylist() if hasattr(back, "num_rows") else True


def test_grids_of_lists_travel_with_arrow_tables(tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    uneven = S**2
    table = open_curves(arrow_table(), grids={"X": uneven, "Y": uneven})
    back = surface().fit(table["X"], table["Y"]).predict(table["X"])
    pq.write_table(back, tmp_path / "back.parquet")
    np.testing.assert_allclose(open_curves(tmp_path / "back.parquet")["Y"].grid, uneven)


# ------------------------------------------------------------------ what is refused


def test_what_cannot_be_opened_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no such file"):
        open_curves(tmp_path / "nothing.parquet")
    (tmp_path / "x.txt").write_text("1")
    with pytest.raises(FileFormatError, match=r"must end in one of .csv.* got '.txt'"):
        open_curves(tmp_path / "x.txt")
    with pytest.raises(InputError, match=r"source must be a path, or an object .* got set"):
        open_curves({1, 2})
    with pytest.raises(InputError, match=r"must be an array of curves, of shape \(n, S\), got shape \(3,\)"):
        open_curves(npy(tmp_path, "flat", np.zeros(3)))
    np.savez(tmp_path / "several.npz", X=X)
    for other in (b"nothing", b"PK\x03\x04", (tmp_path / "several.npz").read_bytes()):
        (tmp_path / "bad.npy").write_bytes(other)
        with pytest.raises(FileFormatError, match=r"must be a NumPy .npy file"):
            open_curves(tmp_path / "bad.npy")
    with pytest.raises(InputError, match=r"grid of curves must have 21 points.* got shape \(4,\)"):
        open_curves(npy(tmp_path, "x", X), grids=[1, 2, 3, 4])


def test_tables_that_do_not_suit_are_refused_by_name(tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = open_curves(arrow_table())
    with pytest.raises(InputError, match=r"Table must have the column 'Z', got id, age, X, Y"):
        table["Z"]
    with pytest.raises(InputError, match="rows must be a column of the table, got 'who'"):
        open_curves(arrow_table(), rows="who")
    with pytest.raises(InputError, match="curves must name two columns or more"):
        open_curves(arrow_table(), curves={"W": "w_"})
    with pytest.raises(InputError, match="grids must be of columns of curves, got 'age'"):
        open_curves(arrow_table(), grids={"age": S})
    with pytest.raises(InputError, match="one-way stream"):
        open_curves(arrow_table().to_reader())
    with pytest.raises(InputError, match="X must have one column of curves, got X, Y"):
        as_curves(arrow_table())
    (tmp_path / "sex=f").mkdir()
    pq.write_table(arrow_table(), tmp_path / "sex=f" / "a.parquet")
    with pytest.raises(FileFormatError, match="partitioning='hive'"):
        open_curves(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    pq.write_table(arrow_table(), other / "a.parquet")
    pq.write_table(pa.table({"id": [1]}), other / "b.parquet")
    with pytest.raises(FileFormatError, match=r"b.parquet must have the columns of .*a.parquet"):
        open_curves(other)


def lists(values: Any) -> Any:
    pa = pytest.importorskip("pyarrow")
    return pa.table({"X": pa.array(values), "Y": pa.array([list(row) for row in Y])})


def test_lists_of_other_lengths_and_missing_ones() -> None:
    rows: list[Any] = [list(row) for row in X]
    table = open_curves(lists(rows))
    with pytest.raises(InputError, match="grids must say how many points X has"):
        table["X"]
    given = {"X": 21, "Y": S}
    np.testing.assert_array_equal(open_curves(lists(rows), grids=given)["X"].read().values, X)
    rows[17] = rows[17][:3]
    ragged = open_curves(lists(rows), grids=given)
    with pytest.raises(InputError, match="X must have 21 points in each row, got 3 in row 17"):
        surface().fit(ragged["X"], ragged["Y"])
    rows[17], rows[18] = None, [None, *rows[18][1:]]
    holes = open_curves(lists(rows), grids=given)
    read = holes["X"].read().values
    assert np.isnan(read[17]).all() and np.isnan(read[18, 0]) and np.isfinite(read[18, 1:]).all()
    with pytest.raises(InputError, match="X must have a curve in every row, got none in row 17"):
        surface().fit(holes["X"], holes["Y"])


def test_unlike_lengths_empty_pieces_and_pieces_that_fail(tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    x, y = open_curves(npy(tmp_path, "x", X)), open_curves(npy(tmp_path, "y", Y[:50]))
    model = surface().fit(X, Y)
    with pytest.raises(InputError, match="X and Y must hold the same number of rows, got more in one of them"):
        surface().fit(x, y)
    with pytest.raises(InputError, match="columns and Y must have the same number of rows"):
        private_surface().fit(x, y)
    path = tmp_path / "holes.parquet"
    with pq.ParquetWriter(path, arrow_table().schema) as writer:
        for part in (arrow_table().slice(0, 0), arrow_table(), arrow_table().slice(0, 0)):
            writer.write_table(part)
    holes = open_curves(path)
    assert len(list(holes)) == 1
    np.testing.assert_allclose(surface().fit(holes["X"], holes["Y"]).coef_, model.coef_, rtol=1e-6, atol=1e-9)
    nothing = open_curves(pa.table({"X": pa.array([], pa.list_(pa.float64(), 21))}))
    with pytest.raises(InputError, match="at least one"):
        surface().fit(nothing["X"], nothing["X"])

    whole = parquet(tmp_path)
    broken = bytearray(whole.read_bytes())
    broken[300:4000] = bytes(3700)
    whole.write_bytes(bytes(broken))
    table = open_curves(whole, **GIVEN)  # the footer is whole
    terms = FunctionalRegression(FORMULA, progress=False)
    with pytest.raises(FileFormatError, match=r"people.parquet could not be read"):
        terms.fit_chunks(table)
    assert not hasattr(terms, "t_")
    private = private_surface()
    with pytest.raises(PrivacyError, match="the source of chunks failed") as caught:
        private.fit(table["X"], table["Y"])
    assert "parquet" not in str(caught.value) and not hasattr(private, "coef_")


def test_only_what_is_asked_for_is_read(tmp_path: Path) -> None:
    """Nothing is read on opening, no other columns later."""
    path = parquet(tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        read: list[Any] = []
        own = arrow._of_row_group

        def noted(path: str, number: int, fields: Any, lenient: bool) -> list[Any]:
            read.append([one.name for one in fields])
            return own(path, number, fields, lenient)

        patch.setattr(arrow, "_of_row_group", noted)
        again = open_curves(path, **GIVEN)
        assert again["X"].shape == (60, 21) and read == []
        again["age"].values()
        assert read == [["age"]] * 4


@pytest.mark.parametrize("private", [False, True])
def test_new_rows_of_a_file_are_read_once(private: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = promised() | {"bounds": BOUNDS | {"age": (20, 70)}} if private else {}
    model = FunctionalRegression("Y ~ ff(X) + I(age / 10)", **told)
    model.fit({"Y": Y, "X": X, "age": AGE}, grids={"X": S, "Y": S})
    new = pd.DataFrame(X, columns=[f"x{s}" for s in S]).assign(age=AGE, id=IDS)
    new.to_csv(tmp_path / "new.csv", index=False)
    reads, real = [], pd.read_csv
    monkeypatch.setattr(pd, "read_csv", lambda *of, **how: reads.append(of) or real(*of, **how))
    found = model.predict(open_curves(tmp_path / "new.csv", curves={"X": "x"}, rows="id"))
    assert len(reads) == 1
    np.testing.assert_allclose(found, model.predict({"X": X, "age": AGE}, grids={"X": S}), rtol=1e-9)


@pytest.mark.parametrize(
    "formula", ["Y ~ ff(X, k=(5, 5)) + I(age / 10) + `a b`", [ff("X"), linear("age"), linear("a b")]]
)
def test_a_fit_reads_a_file_once(formula: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns of the model in one pass, and no other: neither a word of another column's name nor an option is one."""
    columns = {"X": X, "Y": Y, "age": AGE, "a b": np.cos(AGE)}
    whole = FunctionalRegression(formula).fit(columns, grids={"X": S, "Y": S})
    table = pd.concat([pd.DataFrame(v, columns=[f"{k}_{s}" for s in S]) for k, v in (("X", X), ("Y", Y))], axis=1)
    table = table.assign(age=AGE, **{"a b": np.cos(AGE), "a": "odd", "k": "odd", "id": IDS})
    table.to_csv(tmp_path / "people.csv", index=False)
    opened = open_curves(tmp_path / "people.csv", curves={"X": "X_", "Y": "Y_"}, rows="id")
    read: list[set[str]] = []
    real = _Opened.tables_of

    def noted(self: Any, names: Any) -> Any:
        read.append(set(names))
        return real(self, names)

    monkeypatch.setattr(_Opened, "tables_of", noted)
    found = FunctionalRegression(formula).fit(opened)
    assert read == [{"X", "Y", "age", "a b"}]
    np.testing.assert_allclose(found.predict(columns, grids={"X": S}), whole.predict(columns, grids={"X": S}))


@pytest.mark.parametrize(("package", "name"), [("zarr", "x.zarr"), ("pyarrow", "x.parquet")])
def test_a_package_that_is_not_installed_is_named(
    package: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).mkdir()
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(FileFormatError, match=f"{name} needs {package} to be read: pip install {package}"):
        open_curves(tmp_path / name)
