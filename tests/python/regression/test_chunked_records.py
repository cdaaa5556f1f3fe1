"""Tables in chunks: what is read is what a whole table would give, and chunks that do not agree are refused."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from skfda import FDataGrid

from fdadp.errors import InputError
from fdadp.functional.tables.curve_sample import Curves
from fdadp.regression.reading.chunked_records import ChunkedRecords
from fdadp.regression.reading.table_columns import ColumnTable
from fdadp.terms.records import TrainingSummary

RNG = np.random.default_rng(0)
N, S = 23, np.array([0.0, 0.2, 0.5, 1.0])
X, Y = RNG.normal(size=(N, 4)), RNG.normal(size=(N, 3))
AGE, REGION = RNG.normal(size=N), RNG.choice(list("abc"), N)
NAMES = ("X", "age", "region", "mean(X)")


def table(rows=slice(None)):
    data = pd.DataFrame({"age": AGE[rows], "region": REGION[rows]})
    data["X"], data["Y"] = FDataGrid(X[rows], S), FDataGrid(Y[rows])
    return data


def pieces(*stops):
    ends = [0, *stops, N]
    return [table(slice(a, b)) for a, b in pairwise(ends)]


def together(chunks):
    records, responses = zip(*chunks.read(), strict=True)
    columns = {name: [r.columns[name] for r in records] for name in NAMES}
    return [np.concatenate([c.values if isinstance(c, Curves) else c for c in parts]) for parts in columns.values()] + [
        np.concatenate([y.values if isinstance(y, Curves) else y for y in responses])
    ]


def dask_columns():
    array = pytest.importorskip("dask.array")
    return {
        "X": array.from_array(X, chunks=(7, 2)),
        "Y": array.from_array(Y, chunks=(5, 3)),
        "age": AGE,
        "region": pd.Series(REGION),
        "other": array.from_array(AGE, chunks=4),
    }


@pytest.mark.parametrize(
    "source",
    [
        lambda: [table()],
        lambda: pieces(1, 10, 11),
        lambda: lambda: iter(pieces(9)),
        lambda: tuple({"X": X[a:b], "Y": Y[a:b], "age": AGE[a:b], "region": REGION[a:b]} for a, b in ((0, 5), (5, N))),
        dask_columns,
    ],
    ids=["one", "list", "function", "mappings", "dask"],
)
def test_chunks_are_the_rows_of_a_table(source):
    made = source()
    chunks = ChunkedRecords(made, NAMES, "Y", {"X": S} if isinstance(made, tuple | dict) else None, progress=False)
    assert chunks.of_first(lambda first: ColumnTable(first).kinds()["X"]) == "curves"
    seen = TrainingSummary.of([records for records, _ in chunks.read()])
    assert seen.n == chunks.n == N and seen.levels_of("region") == tuple(np.unique(REGION))
    assert seen.curves_of("X").range == (X.min(), X.max())
    weights = np.array([0.1, 0.25, 0.4, 0.25])
    wanted = [X, AGE, REGION, X @ weights, Y]
    for got, want in zip(together(chunks), wanted, strict=True):
        if want.dtype.kind == "f":
            np.testing.assert_allclose(got, want, rtol=1e-12)
        else:
            assert got.tolist() == want.tolist()


def test_data_frames_of_dask():
    frame = pytest.importorskip("dask.dataframe")
    data = pd.DataFrame({"age": AGE, "region": REGION, "y": Y[:, 0]})
    chunks = ChunkedRecords(frame.from_pandas(data, npartitions=3), ("age", "region"), "y", progress=False)
    ages, ys = zip(*((records.numbers("age"), y) for records, y in chunks.read()), strict=True)
    np.testing.assert_array_equal(np.concatenate(ages), AGE)
    np.testing.assert_array_equal(np.concatenate(ys), Y[:, 0])


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (iter([table()]), "got a one-way list_iterator"),
        ((t for t in [table()]), "got a one-way generator"),
        (table(), "chunks must be a sequence of tables .* got DataFrame"),
        ({"X": X}, "chunks must be a sequence of tables .* got dict"),
        ("file.csv", "chunks must be a sequence of tables .* got str"),
        ([], "chunks must hold at least one row, got none"),
        ([(X, Y)], "data must be a data frame, or a mapping of columns by name, got tuple"),
        ([*pieces(9), table().drop(columns="age")], "data must have the column 'age'"),
        (
            [*pieces(9), table().assign(age="old")],
            "chunks of age must be of one kind, got numbers at first",
        ),
        (
            [*pieces(9), {**table(), "X": REGION}],
            "of one kind, got curves at first and labels from row 23",
        ),
        (
            [*pieces(9), {**table(), "X": X}],
            "X must have the grid of the first one, got another at row 23",
        ),
        ([*pieces(9), {**table(), "Y": X}], "all chunks of the response Y must have the grid"),
        ([*pieces(9), table().assign(age=[*AGE[:-1], np.nan])], "age must have a finite number .* got none in row 45"),
    ],
)
def test_chunks_that_do_not_agree_are_refused(source, text):
    with pytest.raises(InputError, match=text):
        list(ChunkedRecords(source, ("X", "age", "region"), "Y", progress=False).read())


@pytest.mark.parametrize(
    ("later", "text"),
    [
        (lambda: pieces(9)[:1], "chunks must give the same rows each time they are read, got 23 rows at first and 9"),
        (lambda: [table().assign(age=AGE + 1)], "got a sum of age of"),
        (lambda: [table().assign(region=np.where(REGION == "a", "b", REGION))], "got a sum of region of"),
        (lambda: [table().iloc[::-1]], None),
    ],
)
def test_every_pass_must_give_the_same_rows(later, text):
    passes = iter([[table()], later()])
    chunks = ChunkedRecords(lambda: iter(next(passes)), ("X", "age", "region"), "Y", progress=False)
    list(chunks.read())
    if text is None:
        list(chunks.read())
        return
    with pytest.raises(InputError, match=text):
        list(chunks.read())


def test_dask_columns_must_agree():
    columns = dask_columns()
    with pytest.raises(InputError, match="columns must have the same number of rows"):
        ChunkedRecords({**columns, "age": AGE[:-1]}, ("X",))
    unknown = columns["other"][columns["other"] > 0]
    with pytest.raises(InputError, match="other must be a dask array whose chunk sizes are known"):
        ChunkedRecords({"other": unknown}, ("other",))
