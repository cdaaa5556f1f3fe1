"""Every container gives what the array gives, bit for bit, at every entry point, with and without groups.

The full cross product carries the marker ``long``. Always run: each entry point with CSV text, and each
container at some entry points (:data:`ALWAYS`, :data:`ALWAYS_AT`). A refusal counts only where :func:`refusal` lists
it, by its text.
"""

from __future__ import annotations

import functools
import itertools
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from learner_registry import LEARNERS, Learner
from neighbour_tools import on_tape

from fdadp import (
    FPCA,
    AdditiveFunctionOnFunction,
    FunctionalRegression,
    MultilevelFPCA,
    Privacy,
    PrivateFPCA,
    PrivateMean,
    ScalarRegression,
    SurvivalRegression,
    open_curves,
)
from fdadp.errors import InputError, NotAccountedWarning, PublicInputWarning
from fdadp.functional.containers.opened_tables import OpenedTable
from fdadp.functional.files import csv_curves
from fdadp.functional.files.curve_files import read_curves
from fdadp.functional.metrics import concordance
from fdadp.functional.tables.curve_inputs import as_curves
from fdadp.private.release.mechanisms import DPAFF
from fdadp.summaries import (
    PrivateMultilevelFPCA,
    PrivateTable1,
    private_count,
    private_histogram,
    private_mean,
    private_quantiles,
    private_survival,
    private_variance,
    suggest_bounds,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore", category=category) for category in (PublicInputWarning, NotAccountedWarning)
]
PERSONS, VISITS, S = 10, 3, 7
N = PERSONS * VISITS
GRID = np.linspace(0, 1, S)
POINTS = [f"{point!r}" for point in GRID.tolist()]
ENTRIES = ("id", "age", "flag")
SHORT = (2.0, 3.0)
"""Bounds of age that many lie beyond, so that it matters what is clipped."""

Data = dict[str, Any]


def people(seed: int = 0) -> Data:
    """Curves X and Y of persons with several rows each, and numbers."""
    rng = np.random.default_rng(seed)
    x = (rng.uniform(-1, 1, (N, 4)) @ rng.uniform(-0.5, 0.5, (4, S))).round(6)
    y = (x[:, ::-1] + rng.normal(0, 0.2, (N, S))).round(6)
    ids = rng.permutation(np.repeat(np.arange(PERSONS), VISITS))
    age = (2.5 + x.mean(axis=1) + rng.normal(0, 0.2, N)).round(6)
    return {"id": ids, "age": age, "flag": (x[:, 0] > 0).astype(int), "X": x, "Y": y}


# ------------------------------------------------------------------ containers


def flat(data: Data) -> dict[str, Any]:
    """One column a point: x_0.0, x_0.5, ..., y_0.0, ..."""
    points = {f"{name.lower()}_{p}": data[name][:, j] for name in ("X", "Y") for j, p in enumerate(POINTS)}
    return {name: data[name] for name in ENTRIES} | points


WIDE = {"curves": {"X": "x_", "Y": "y_"}}


def frame_of(data: Data) -> pd.DataFrame:
    return pd.DataFrame(flat(data))


def arrow_of(data: Data) -> Any:
    return pytest.importorskip("pyarrow").table(flat(data))


def lists_of(data: Data, *, fixed: bool) -> Any:
    pa = pytest.importorskip("pyarrow")
    lists = {
        name: pa.FixedSizeListArray.from_arrays(data[name].ravel(), S) if fixed else pa.array(data[name].tolist())
        for name in ("X", "Y")
    }
    return pa.table({name: data[name] for name in ENTRIES} | lists)


def polars_of(data: Data) -> Any:
    return pytest.importorskip("polars").DataFrame(flat(data))


def duckdb_of(data: Data) -> Any:
    table = arrow_of(data)
    return pytest.importorskip("duckdb").from_arrow(table)


def dataset_of(data: Data) -> Any:
    xr = pytest.importorskip("xarray")
    entries = {name: ("row", data[name]) for name in ENTRIES}
    return xr.Dataset({name: (("row", "t"), data[name]) for name in ("X", "Y")} | entries, {"t": GRID})


def each(make: Callable[[Any], Any]) -> Callable[[Data, Any], Data]:
    """A mapping in which both samples of curves are of one kind, beside arrays."""
    return lambda data, folder: data | {name: make(data[name]) for name in ("X", "Y")}


def in_file(write: Callable[[Any, Any], None], read: Callable[[Any], Any], end: str) -> Callable[[Data, Any], Data]:
    """The same, of a file each."""

    def make(data: Data, folder: Any) -> Data:
        found = dict(data)
        for name in ("X", "Y"):
            path = folder / f"{name}{end}"
            write(path, data[name])
            found[name] = read(path)
        return found

    return make


def written(data: Data, folder: Any, end: str = ".csv") -> Any:
    path = folder / f"all{end}"
    if end == ".parquet":
        pytest.importorskip("pyarrow.parquet").write_table(arrow_of(data), path)
    else:
        frame_of(data).to_csv(path, index=False)
    return path


def labelled(values: Any) -> pd.DataFrame:
    return pd.DataFrame(values, columns=GRID)


def to_csv(path: Any, values: Any) -> None:
    pd.DataFrame(values, columns=POINTS).to_csv(path, index=False)


def fdatagrid(values: Any) -> Any:
    from skfda import FDataGrid

    return FDataGrid(values, GRID)


def dataarray(values: Any) -> Any:
    return pytest.importorskip("xarray").DataArray(values, dims=("row", "t"), coords={"t": GRID})


def dask_array(values: Any) -> Any:
    return pytest.importorskip("dask.array").from_array(values, chunks=values.shape)


def zarr_array(values: Any) -> Any:
    return pytest.importorskip("zarr").array(values, chunks=values.shape)


def plain_table(values: Any) -> Any:
    return pytest.importorskip("pyarrow").table(dict(zip(POINTS, values.T, strict=True)))


def plain_polars(values: Any) -> Any:
    return pytest.importorskip("polars").DataFrame(dict(zip(POINTS, values.T, strict=True)))


CONTAINERS: dict[str, Callable[[Data, Any], Any]] = {
    "lists": each(lambda v: v.tolist()),
    "objects": each(lambda v: v.astype(object)),
    "Fortran order": each(np.asfortranarray),
    "masked": each(np.ma.MaskedArray),
    "frame": each(labelled),
    "frame, nullable": each(lambda v: labelled(v).convert_dtypes()),
    "frame of Arrow": each(lambda v: labelled(v).convert_dtypes(dtype_backend="pyarrow")),
    "FDataGrid": each(fdatagrid),
    "DataArray": each(dataarray),
    "Dask": each(dask_array),
    "zarr": each(zarr_array),
    "Arrow": each(plain_table),
    "polars": each(plain_polars),
    "memory map": in_file(np.save, lambda p: np.load(p, mmap_mode="r"), ".npy"),
    "read csv": in_file(to_csv, read_curves, ".csv"),
    "opened csv": in_file(to_csv, open_curves, ".csv"),
    "opened csv.gz": in_file(to_csv, open_curves, ".csv.gz"),
    "opened npy": in_file(np.save, lambda p: open_curves(p, grids=GRID), ".npy"),
    "opened npz": in_file(lambda p, v: np.savez(p, values=v, grid=GRID), open_curves, ".npz"),
    "opened array": each(lambda v: open_curves(v, grids=GRID)),
    "opened frame": each(lambda v: open_curves(labelled(v))),
    "opened FDataGrid": each(lambda v: open_curves(fdatagrid(v))),
    "opened DataArray": each(lambda v: open_curves(dataarray(v))),
    "opened zarr": each(lambda v: open_curves(zarr_array(v), grids=GRID)),
    "opened table": lambda data, folder: open_curves(frame_of(data), **WIDE),
    "opened Dataset": lambda data, folder: open_curves(dataset_of(data)),
    "opened Arrow": lambda data, folder: open_curves(arrow_of(data), **WIDE),
    "opened lists": lambda data, folder: open_curves(lists_of(data, fixed=True), grids={"X": GRID, "Y": GRID}),
    "opened open lists": lambda data, folder: open_curves(lists_of(data, fixed=False), grids={"X": GRID, "Y": GRID}),
    "opened polars": lambda data, folder: open_curves(polars_of(data), **WIDE),
    "opened parquet": lambda data, folder: open_curves(written(data, folder, ".parquet"), **WIDE),
    "CSV": lambda data, folder: open_curves(written(data, folder), **WIDE),
    "LazyFrame": lambda data, folder: open_curves(polars_of(data).lazy(), **WIDE),
    "DuckDB": lambda data, folder: open_curves(duckdb_of(data), **WIDE),
}
QUERIES = ("CSV", "LazyFrame", "DuckDB")
"""Tables of unknown length, opened as one."""
OF_FILES = ("opened csv", "opened csv.gz")
"""Samples of unknown length beside arrays."""


# ------------------------------------------------------------------ entry points


def promised(grouped: bool, **more: Any) -> Privacy:
    return Privacy(**{"epsilon": 8.0, "delta": 1e-6, "n": PERSONS if grouped else N, "random_state": 0} | more)


def ids_of(data: Any, grouped: bool) -> Any:
    return data["id"] if grouped else None


def tuples(data: Any, *names: str) -> Any:
    """Chunks, one of which holds all rows: of a table that was opened, or of its columns."""
    if isinstance(data, OpenedTable):
        return data.chunks(*names)
    return lambda: iter([tuple(data[name] for name in names)])


def samples(data: Any, name: str) -> Any:
    """Chunks, each a sample of curves and nothing else."""
    return tuples(data, name) if isinstance(data, OpenedTable) else [data[name]]


EndToEnd = DPAFF(allow_useless=True)
BOUNDS = {"X": (-2, 2), "Y": (-2, 2), "age": SHORT}


def additive(data: Any, grouped: bool) -> Any:
    model = AdditiveFunctionOnFunction(n_components=2, progress=False)
    return model.fit(data["X"], data["Y"], t=None, groups=ids_of(data, grouped)).coef_


def additive_chunks(data: Any, grouped: bool) -> Any:
    model = AdditiveFunctionOnFunction(n_components=2, progress=False)
    if isinstance(data, OpenedTable):
        return model.fit_chunks(data).coef_
    return model.fit_chunks([(data["X"], data["Y"])]).coef_


def private_additive(data: Any, grouped: bool) -> Any:
    model = AdditiveFunctionOnFunction(privacy=promised(grouped), bounds=curve_bounds(), mechanism=EndToEnd)
    return model.set_params(progress=False).fit(data["X"], data["Y"], groups=ids_of(data, grouped)).coef_


def private_additive_chunks(data: Any, grouped: bool) -> Any:
    model = AdditiveFunctionOnFunction(privacy=promised(grouped), bounds=curve_bounds(), mechanism=EndToEnd)
    chunks = tuples(data, "X", "Y", *(["id"] if grouped else []))
    return model.set_params(progress=False).fit_chunks(chunks, s=GRID, t=GRID, groups=grouped or None).coef_


def curve_bounds() -> dict[str, tuple[float, float]]:
    return {"X": (-2, 2), "Y": (-2, 2)}


def regression(formula: str, cls: Any, *, private: bool, chunks: bool = False) -> Callable[[Any, bool], Any]:
    def fit(data: Any, grouped: bool) -> Any:
        model = cls(formula, progress=False)
        groups = "id" if grouped else None
        if private:
            model.set_params(privacy=promised(grouped), bounds=BOUNDS, mechanism=EndToEnd)
        grids = {} if isinstance(data, OpenedTable) else {"grids": {"X": GRID, "Y": GRID}}
        if chunks:
            model.fit_chunks(data if isinstance(data, OpenedTable) else [data], groups=groups, **grids)
        else:
            listed = not isinstance(data, OpenedTable) and isinstance(data["X"], list)
            model.fit(data, groups=groups, **(grids if listed else {}))
        return np.append(model.r2_, model.edf_)

    return fit


def summary(cls: Any) -> Callable[[Any, bool], Any]:
    def fit(data: Any, grouped: bool) -> Any:
        model = cls(privacy=promised(grouped), bounds=(-2, 2), allow_useless=True)
        return model.fit(data["Y"], groups=ids_of(data, grouped))

    return fit


def summary_chunks(cls: Any, of: Callable[..., Any]) -> Callable[[Any, bool], Any]:
    def fit(data: Any, grouped: bool) -> Any:
        model = cls(privacy=promised(grouped), bounds=(-2, 2), allow_useless=True)
        return model.fit_chunks(of(data, "Y", *(["id"] if grouped else [])), t=GRID, groups=grouped or None)

    return fit


def learner(wanted: Learner) -> Callable[[Any, bool], Any]:
    def fit(data: Any, grouped: bool) -> Any:
        y = {"classifier": "flag", "regressor": "age"}.get(wanted.kind)
        model = wanted.make(adjacency="zero-out", n=PERSONS if grouped else N)
        if wanted.kind == "regressor":
            model.set_params(bounds_y=SHORT)
        model.fit(data["X"], None if y is None else data[y], groups=ids_of(data, grouped))
        return np.concatenate([np.ravel(v) for _, v in sorted(vars(model).items()) if _is_result(v)])

    return fit


def _is_result(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"


def scalar(function: Callable[..., Any], *, x: str = "age", **settings: Any) -> Callable[[Any, bool], Any]:
    def fit(data: Any, grouped: bool) -> Any:
        function(data[x], privacy=promised(grouped), groups=ids_of(data, grouped), **settings)

    return fit


def counted(data: Any, grouped: bool) -> Any:
    private_count(data["Y"], privacy=promised(grouped, n=None), groups=ids_of(data, grouped))


def levels(*, private: bool, chunks: bool = False) -> Callable[[Any, bool], Any]:
    """Components of persons and of their rows; scores and completed curves, too."""

    def fit(data: Any, grouped: bool) -> Any:
        model: Any = MultilevelFPCA(k=4) if not private else None
        if private:
            how = {"privacy": promised(grouped), "bounds": (-2, 2), "allow_useless": True, "max_rows": 2}
            model = PrivateMultilevelFPCA(n_components=2, **how)
        if chunks and private:
            model.fit_chunks(tuples(data, "Y", "id"), t=GRID, groups=True)
        elif chunks:
            model.fit_chunks(tuples(data, "Y", "id"), t=GRID)
        else:
            model.fit(data["Y"], groups=data["id"])
        return np.concatenate([model.eigenvalues_["person"], model.eigenvalues_["row"], model.mean_, [model.icc_]])

    return fit


def scores_of_levels(data: Any, grouped: bool) -> Any:
    model = MultilevelFPCA(k=4).fit(people()["Y"], groups=people()["id"])
    person, row = model.transform(data["Y"], groups=data["id"])
    filled = model.complete(data["Y"], groups=data["id"])
    return np.concatenate([np.ravel(np.asarray(part)) for part in (person, row, *values_of(filled))])


def values_of(curves: Any) -> Any:
    """Of curves of any kind."""
    return as_curves(curves, name="curves", any_layout=True).values


def mixed(data: Any, grouped: bool) -> Any:
    """A curve for each person: the fit, its persons, and predictions."""
    model = FunctionalRegression("Y ~ age + re(id, covariance='free', k=4)", progress=False)
    listed = not isinstance(data, OpenedTable) and isinstance(data["Y"], list)
    model.fit(data, **({"grids": {"X": GRID, "Y": GRID}} if listed else {}))
    own = model.persons_
    predicted = model.predict(people())
    return np.concatenate([np.ravel(part) for part in (own.levels.G, own.levels.R, model.edf_, values_of(predicted))])


def saved(data: Any, grouped: bool) -> Any:
    """A saved model of persons' curves, and loaded: predictions, their errors and limits, of what the file holds."""
    rows = people()
    fit = FunctionalRegression("Y ~ age + re(id, covariance='free', k=4)", progress=False).fit(rows)
    with tempfile.TemporaryDirectory() as folder:
        model = FunctionalRegression.load(fit.save(Path(folder) / "mixed"))
    found = (model.predict(data), model.predict_se(data), *model.predict_interval(data))
    return np.concatenate([np.ravel(values_of(part)) for part in found])


def survival(*, private: bool) -> Callable[[Any, bool], Any]:
    """Times to an event: age is the time, flag the event."""

    def fit(data: Any, grouped: bool) -> Any:
        how: dict[str, Any] = {"times": [1.5, 2.25, 2.5, 2.75, 4.0], "baseline": "linear", "progress": False}
        if private:
            how |= {"privacy": promised(grouped), "bounds": {"X": (-2, 2)}, "mechanism": EndToEnd}
        formula = "Surv(age, flag) ~ lf(X)" if private else "Surv(age, flag) ~ lf(X, k=4)"
        model = SurvivalRegression(formula, **how)
        listed = not isinstance(data, OpenedTable) and isinstance(data["X"], list)
        model.fit(data, groups="id" if grouped else None, **({"grids": {"X": GRID, "Y": GRID}} if listed else {}))
        return np.ravel(model.predict_survival(people()))

    return fit


def ordered(data: Any, grouped: bool) -> Any:
    """Harrell's C of times that the table has, and of a risk that is seen in no curve."""
    return np.array([concordance(data["age"], data["flag"], people()["X"].mean(axis=1))])


def private_times(data: Any, grouped: bool) -> Any:
    how = {"edges": [1.5, 2.25, 2.5, 2.75, 4.0], "privacy": promised(grouped), "groups": ids_of(data, grouped)}
    private_survival(data, "age", "flag", **how)


def of_points(function: Callable[..., Any], *, epsilon: float = 8.0, **settings: Any) -> Callable[[Any, bool], Any]:
    """Columns of numbers and classes, of which the points of the curves are taken here."""

    def fit(data: Any, grouped: bool) -> Any:
        function(data["Y"], privacy=promised(grouped, epsilon=epsilon), groups=ids_of(data, grouped), **settings)

    return fit


def table1(X: Any, *, privacy: Privacy, groups: Any) -> None:
    if isinstance(X, pd.DataFrame):
        X = X.set_axis(POINTS, axis=1)
    PrivateTable1(privacy=privacy, columns=dict.fromkeys(POINTS, (-0.5, 0.5))).fit(X, groups=groups)


ENTRY_POINTS: dict[str, Callable[[Any, bool], Any]] = {
    "additive": additive,
    "additive, chunks": additive_chunks,
    "additive, private": private_additive,
    "additive, private chunks": private_additive_chunks,
    "functional": regression("Y ~ ff(X, k=(4, 4)) + age", FunctionalRegression, private=False),
    "functional, chunks": regression("Y ~ ff(X, k=(4, 4)) + age", FunctionalRegression, private=False, chunks=True),
    "functional, private": regression("Y ~ ff(X) + age", FunctionalRegression, private=True),
    "functional, private chunks": regression("Y ~ ff(X) + age", FunctionalRegression, private=True, chunks=True),
    "scalar": regression("age ~ lf(X, k=5)", ScalarRegression, private=False),
    "scalar, chunks": regression("age ~ lf(X, k=5)", ScalarRegression, private=False, chunks=True),
    "scalar, private": regression("age ~ lf(X)", ScalarRegression, private=True),
    "scalar, private chunks": regression("age ~ lf(X)", ScalarRegression, private=True, chunks=True),
    "components": lambda data, grouped: FPCA(n_components=2).fit(data["Y"]).eigenfunctions_,
    "PrivateMean": summary(PrivateMean),
    "PrivateMean, chunks": summary_chunks(PrivateMean, tuples),
    "PrivateMean, chunks of curves": summary_chunks(PrivateMean, samples),
    "PrivateFPCA": summary(PrivateFPCA),
    "PrivateFPCA, chunks": summary_chunks(PrivateFPCA, tuples),
    **{str(wanted): learner(wanted) for wanted in LEARNERS},
    "private_mean": scalar(private_mean, bounds=SHORT),
    "private_variance": scalar(private_variance, bounds=SHORT),
    "private_quantiles": scalar(private_quantiles, bounds=SHORT),
    "private_histogram": scalar(private_histogram, x="flag", levels=[0, 1]),
    "private_count": counted,
    "levels": levels(private=False),
    "levels, chunks": levels(private=False, chunks=True),
    "levels, private": levels(private=True),
    "levels, private chunks": levels(private=True, chunks=True),
    "levels, scores": scores_of_levels,
    "persons' curves": mixed,
    "persons' curves, loaded": saved,
    "concordance": ordered,
    "survival": survival(private=False),
    "survival, private": survival(private=True),
    "private_survival": private_times,
    "suggest_bounds": of_points(suggest_bounds, within=(-2, 2), together=True, epsilon=50.0),
    "table 1": of_points(table1),
}


# ------------------------------------------------------------------ the test


TABLES = (*map(str, LEARNERS), "table 1")
ONE_ROW_A_PERSON = (
    "components",
    "additive, chunks",
    "PrivateMean, chunks of curves",
    "concordance",
    *(str(one) for one in LEARNERS if not one.grouped),
)
OF_PERSONS = (
    "levels",
    "levels, chunks",
    "levels, private",
    "levels, private chunks",
    "levels, scores",
    "persons' curves",
    "persons' curves, loaded",
)
"""Entry points that need persons."""
SINGLE = ("private_mean", "private_variance", "private_quantiles", "private_histogram")


def refusal(container: str, entry: str, grouped: bool) -> str | None:
    """The text by which a container is refused at an entry point, or None."""
    if container == "FDataGrid" and entry in TABLES:
        return "X must (be two-dimensional|have two dimensions)"  # a learner wants a table, and says what it got
    widths = (
        "additive, private",
        "PrivateMean",
        "PrivateFPCA",
        "levels, private",
        *map(str, LEARNERS),
        "suggest_bounds",
    )
    if container == "lists" and entry in widths:  # which is declared nowhere
        return "got a list: its rows may be of any length"
    columns = (*TABLES, *SINGLE, "private_count", "private_survival", "suggest_bounds")
    if container in ("LazyFrame", "DuckDB") and entry in columns:
        return "must keep the order of its rows, got .* read the table first"
    if container == "CSV" and grouped and entry in columns:
        return "must be read to know its number of rows"
    if container in (*QUERIES, *OF_FILES) and entry == "survival, private":
        return "data must have a known number of rows"
    if container in OF_FILES:  # whose number of rows is not known, beside arrays
        if entry == "PrivateMean, chunks of curves":
            return "each chunk of a list must have a known number of rows"
        if entry in ("functional, private", "scalar, private"):
            return "(X|Y) must have a known number of rows, got .* Or read the file first"
        if entry in ("functional, private chunks", "scalar, private chunks"):
            return "X of each chunk must have a known number of rows, got a column that was opened and not read"
        if entry in ("additive, chunks", "levels, chunks"):
            return "must be read to know its number of rows: hand over what was opened as it is"
        if grouped and entry in ("additive, private", "PrivateMean", "PrivateFPCA", "levels, private"):
            return "groups must be a column of what was opened"
    return None


ROUNDED = 1e-9
"""Digits to which ordinary fits agree whose sums Dask adds up in a tree of its own."""


def seen(entry: str, data: Any, grouped: bool) -> list[Any]:
    """Exact sums of all releases on a tape, and the bits of what the fit gave."""
    results: list[Any] = []
    tape = on_tape(lambda held: results.append(ENTRY_POINTS[entry](held, grouped)), data)
    return [e.exact for e in tape] + [r.tobytes() for r in results if isinstance(r, np.ndarray)]


@functools.cache
def of_arrays(entry: str, grouped: bool) -> list[Any]:
    """What arrays give, which depends on the values."""
    found = seen(entry, people(), grouped)
    assert found and (found != seen(entry, people(seed=1), grouped) or entry == "private_count")
    return found


ALWAYS = ("CSV",)
"""All entry points meet it in each run: text of unknown length."""
ALWAYS_AT = ("PrivateMean", "PrivateMean, chunks", "scalar, private", "DPGaussianNB")
"""Entry points that meet all containers in each run."""


def cases() -> Iterator[Any]:
    for container, entry, grouped in itertools.product(CONTAINERS, ENTRY_POINTS, (False, True)):
        if not (entry in ONE_ROW_A_PERSON if grouped else entry in OF_PERSONS):
            always = container in ALWAYS or entry in ALWAYS_AT
            marks = [] if always else [pytest.mark.long]
            yield pytest.param(container, entry, grouped, marks=marks)


@pytest.mark.each_once(("entry", "grouped"))
@pytest.mark.parametrize(("container", "entry", "grouped"), list(cases()))
def test_a_container_gives_what_the_array_gives(container: str, entry: str, grouped: bool, tmp_path: Any) -> None:
    data = CONTAINERS[container](people(), tmp_path)
    refused = refusal(container, entry, grouped)
    if refused is not None:
        with pytest.raises(InputError, match=refused):
            ENTRY_POINTS[entry](data, grouped)
        return
    found, wanted = seen(entry, data, grouped), of_arrays(entry, grouped)
    if container == "Dask" and not isinstance(found[0], tuple):
        np.testing.assert_allclose(*(np.frombuffer(bits[0]) for bits in (found, wanted)), rtol=ROUNDED, atol=ROUNDED)
    else:
        assert found == wanted


@pytest.mark.parametrize("entry", ["functional, private", "scalar, private", "PrivateMean", "private_histogram"])
def test_an_odd_line_changes_how_no_other_line_counts(
    entry: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines that are all regular are an array of numbers, and objects beside an odd one; or each is read by itself."""
    first, *lines = written(people(), tmp_path).read_text().splitlines()
    odd = ",".join(["x"] * len(first.split(",")))
    path, sums = tmp_path / "lines.csv", []
    for extra, at_once in (([], True), ([], False), ([odd], True), ([odd], False)):
        path.write_text("\n".join([first, *lines[len(extra) :], *extra]))
        monkeypatch.setattr(csv_curves, "ENOUGH", 7 if at_once else 1000)
        sums.append(seen(entry, open_curves(path, **WIDE), False))
    assert sums[0] == sums[1] and sums[2] == sums[3] and sums[0] != sums[2]


@pytest.mark.parametrize("as_columns", [False, True])
def test_a_list_of_what_was_opened_and_not_read_is_no_fit_of_no_rows(as_columns: bool, tmp_path: Any) -> None:
    """Such a fit had noise alone, and said nothing. The table itself is read."""
    z = np.linspace(-1, 1, N)
    pd.DataFrame({"z": z, "y": 2 * z}).to_csv(tmp_path / "rows.csv", index=False)
    opened = open_curves(tmp_path / "rows.csv")
    model = ScalarRegression("y ~ z", privacy=promised(False), bounds={"y": (-3, 3), "z": (-1, 1)}, mechanism=EndToEnd)
    chunk = {"z": opened["z"], "y": opened["y"]} if as_columns else opened
    with pytest.raises(InputError, match="must have a known number of rows, got a column that was opened"):
        model.fit_chunks([chunk])
    model.fit_chunks(opened)


def of_persons(data: Data) -> pd.DataFrame:
    """A number of each person, in an order of its own."""
    persons = np.random.default_rng(7).permutation(PERSONS)
    return pd.DataFrame({"id": persons, "who": persons, "dose": np.cos(persons).round(6)})


@pytest.mark.parametrize("end", [".csv", ".csv.gz", ".parquet"])
def test_curves_in_a_file_and_persons_in_another_are_one_table(end: str, tmp_path: Any) -> None:
    """Rows of persons join what another file has of them, by id."""
    data, known = people(), of_persons(people())
    if end == ".parquet":
        pytest.importorskip("pyarrow")
    for name, table in (("y", frame_of(data)), ("p", known)):
        path = tmp_path / f"{name}{end}"
        table.to_parquet(path) if end == ".parquet" else table.to_csv(path, index=False)
    curves, persons = open_curves(tmp_path / f"y{end}", **WIDE, rows="id"), open_curves(tmp_path / f"p{end}", rows="id")
    formula = "Y ~ dose + re(who, covariance='free', k=4)"
    one = FunctionalRegression(formula, progress=False)
    one.fit({"Y": curves["Y"], "dose": persons["dose"], "who": persons["who"]})
    table = {"Y": data["Y"], "dose": np.cos(data["id"]).round(6), "who": data["id"]}
    other = FunctionalRegression(formula, progress=False).fit(table)
    assert one.joined_ == f"joined {N} of {N} by id"
    np.testing.assert_array_equal(one.persons_.levels.G, other.persons_.levels.G)
    np.testing.assert_array_equal(one.predict(table), other.predict(table))
