"""What an entry means: the public rule, entry by entry, and that it holds for whatever a reader made of a column."""

from __future__ import annotations

import datetime
import decimal
import fractions
import io
import math
import uuid

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fdadp import Privacy, PrivateMean
from fdadp.errors import InputError, PrivacyError
from fdadp.learners import DPLinearRegression
from fdadp.privacy.private_entries import (
    Persons,
    check_ids,
    codes_of,
    columns,
    index_of,
    labels,
    meaning,
    numbers,
    person_of,
    table,
)

DAY = datetime.datetime(2020, 1, 2)
ONE = [1, 1.0, True, "1", "1.0", " 1 ", "True", "TRUE", "+1", "1e0", np.int8(1), np.float32(1), np.longdouble(1)]
ONE += [b"1", np.bool_(True), "1\0", decimal.Decimal(1), fractions.Fraction(2, 2), 1 + 0j, np.complex64(1), "(1+0j)"]
NOTHING = [None, math.nan, "nan", "NaN", "", "  ", "NA", "None", "<NA>", "NaT", pd.NA, pd.NaT, np.datetime64("NaT")]
NOTHING += [np.float32("nan"), object(), {}, {1}, datetime.timedelta(1), np.timedelta64(1, "s"), b"\xff"]
DAYS = ["2020-01-02", "2020-01-02 00:00:00", "2020-01-02T00:00", DAY.date(), DAY, pd.Timestamp(DAY)]
DAYS += [np.datetime64("2020-01-02"), np.datetime64("2020-01-02", "ns")]
SAME = {
    1.0: ONE,
    0.0: [0, -0.0, False, "0", "-0", "False", "0j", 0j],
    0.1: [0.1, "0.1", "1e-1", decimal.Decimal("0.1"), np.float64(0.1)],
    2.0**53: [2**53, 2**53 + 1, "9007199254740993", float(2**53), np.uint64(2**53 + 1)],
    math.inf: ["inf", "Infinity", 10**400, "1" + "0" * 400, np.inf],
    None: NOTHING,
    "a b": ["a b", " a b", "a b\0", b"a b", np.str_("a b "), np.bytes_(b"a b")],
    "1_0": ["1_0"],
    "2j": ["2j", 2j, np.complex128(2j)],
    "2020-01-02": DAYS,
    "2020-01-02T03:04:05.5": ["2020-01-02 03:04:05.500", pd.Timestamp("2020-01-02 03:04:05.5")],
    ("H1", 7.0): [("H1", 7), ["H1 ", "7"], (b"H1", 7.0)],
}


@pytest.mark.parametrize("wanted", SAME, ids=str)
def test_an_entry_means_one_thing_whatever_form_it_has(wanted):
    for entry in SAME[wanted]:
        found = meaning(entry)
        assert (found, type(found)) == (wanted, type(wanted)), entry


class Evil(str):
    def __hash__(self):
        raise RuntimeError("private")

    def __eq__(self, other):
        raise RuntimeError("private")

    def __float__(self):
        raise RuntimeError("private")

    __str__ = __repr__ = strip = __hash__


class Loud:
    def __getattribute__(self, name):
        raise RuntimeError("private")


class Number(float):
    def __float__(self):
        raise RuntimeError("private")

    __eq__ = __ne__ = __hash__ = __float__


def test_no_code_of_an_entry_is_run():
    assert meaning(Evil("a")) == "a" and meaning(Number(2.5)) == 2.5 and meaning(Loud()) is None
    deep = []
    deep.append(deep)
    assert person_of(deep) is None
    cells = np.empty(5, dtype=object)
    for i, cell in enumerate([Evil("3"), Loud(), Number(2), [1, 2], {"a": 1}]):
        cells[i] = cell
    np.testing.assert_array_equal(numbers(cells), [3, np.nan, 2, np.nan, np.nan])


ENTRY = st.one_of(
    st.integers(-(10**20), 10**20).map(str),
    st.floats(-1e6, 1e6).map(lambda v: f"{v:.12g}"),
    st.sampled_from(["True", "False", "", "NA", "?", "a", " a", "inf", "-0", "1.0", "007", "1e5", "2020-01-01", "x y"]),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(ENTRY, min_size=1, max_size=6), ENTRY)
def test_another_persons_entry_changes_no_meaning(entries, odd):
    """Read alone and read together with somebody else's entry, whole and through every conversion."""

    def forms(texts):
        column = pd.read_csv(io.StringIO("a,b\n" + "".join(f"{t},0\n" for t in texts)), float_precision="round_trip")[
            "a"
        ]  # pandas before 3.0 reads some decimals as another float than the nearest: docs/theory/kernel.md
        listed = column.tolist()
        yield from (column, column.to_numpy(), np.array(listed), listed, column.astype("category"))
        yield np.ma.MaskedArray(column.to_numpy(), mask=pd.isna(column))

    index = index_of(["a", 1, "x y", 7, -3, "2020-01-01", False])
    seen = []
    for texts in (entries, [*entries, odd]):
        for form in forms(texts):
            values = numbers(table(form).rows[:])[: len(entries)] + 0.0
            codes = codes_of(form, index)[: len(entries)]
            people = Persons()
            people.add(form)
            who = people.close().codes(form)[: len(entries)]
            together = [[who[i] == who[j] >= 0 for j in range(len(entries))] for i in range(len(entries))]
            seen.append((np.where(np.isnan(values), np.nan, values).tobytes(), codes.tobytes(), str(together)))
    assert len(set(seen)) == 1


def test_masked_entries_are_no_rows():
    """Going through a masked array gives arrays without dimensions where it is masked."""
    column = np.ma.MaskedArray(np.array([True, None, None], dtype=object), mask=[False, True, True])
    assert table(column).shape == (3,)
    np.testing.assert_array_equal(table(column).read(), [1, np.nan, np.nan])
    rows = np.empty(3, dtype=object)
    rows[:] = [[1, 2], [3, 4], [5]]
    np.testing.assert_array_equal(table(rows, width=2).read(), [[1, 2], [3, 4], [np.nan, np.nan]])


@pytest.mark.parametrize("odd", [1, 30, 59])
def test_what_a_list_is_and_how_wide_no_row_decides(odd):
    """The plurality decided: exact sums moved by 7.7 sensitivities where one row was of another length."""
    rows = [[0.5, 0.5, 0.5] if i < odd else [0.5, 0.5] for i in range(60)]
    assert table(rows).shape == (60,) and np.isnan(table(rows).read()).all()
    assert table(rows, width=3).shape == (60, 3)
    with pytest.raises(InputError, match=r"X must be two-dimensional .* got a list: its rows may be of any length"):
        DPLinearRegression(epsilon=1.0, bounds=(0, 1), bounds_y=(0, 1)).fit(rows, [0.5] * 60)
    model = PrivateMean(privacy=Privacy(8.0, n=60), bounds=(0, 1), allow_useless=True)
    with pytest.raises(InputError, match="Y must be an array or a data frame, or come with its grid, got a list"):
        model.fit(rows)


def test_who_an_id_names():
    for entry in (7, 7.0, "7", " 007 ", np.int32(7)):
        assert person_of(entry) == 7
    for entry in (None, math.nan, 7.5, "7.5", 2**53, -(2**53), str(2**53), 1e300, "", "NA", "inf", (), ("a", None)):
        assert person_of(entry) is None
    one = uuid.UUID("c0ffee00-0000-4000-8000-000000000001")
    assert person_of(one) == person_of(str(one)) == str(one)
    assert person_of(("a", 1.0)) == person_of(["a ", "1"]) == ("a", 1)
    people = Persons()
    people.add(np.array([3, 1, 3]))
    people.add(["x", 1.0, ("x", 1), None, "3"])
    assert people.close().row_counts.tolist() == [2, 3, 1, 1]
    np.testing.assert_array_equal(people.codes(["3", 9, ("x", "1"), "x", 7.5, 2**60]), [1, -1, 3, 2, -1, -1])


@pytest.mark.parametrize("ids", [np.zeros((3, 2)), pd.DataFrame({"a": [1]}), 7, "abc", None])
def test_ids_of_another_shape_are_refused_by_their_shape(ids):
    with pytest.raises(PrivacyError, match=r"one id for each row|one for each row"):
        check_ids(ids)


def test_labels_that_mean_the_same_or_nothing_are_refused():
    for named in ([1, "1"], [True, 1], ["a", " a"], ["NA", "a"], [None, 1], [math.nan], [object()]):
        with pytest.raises(PrivacyError, match="distinct values, none of them missing"):
            labels([1], named)
    with pytest.raises(PrivacyError, match="one-dimensional"):
        labels(np.zeros((3, 2)), [0, 1])
    np.testing.assert_array_equal(labels(pd.DataFrame({"y": ["1", "?"]}), [0, 1]).read(), [1, np.nan])


def test_what_is_no_table_is_refused_by_what_is_public_of_it():
    sparse = pytest.importorskip("scipy.sparse")
    bad = {"dense": sparse.eye(3).tocsr(), "got float": 3.0, "rows along": np.float64(3), "got set": {1}}
    for text, data in bad.items():
        with pytest.raises(InputError, match=text):
            table(data)


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_tables_of_every_kind_give_the_same_numbers():
    wanted = np.array([[1.0, np.nan, 0.0], [2.5, 3.0, 1.0]])
    frame = pd.DataFrame({"a": [1, 2.5], "b": ["?", "3"], "c": [False, True]})
    mixed = [[1, "?", False], [2.5, "3", True]]
    kinds = [
        frame,
        frame.convert_dtypes(),
        frame.astype("category"),
        mixed,
        np.array(mixed, dtype=object),
        np.array(mixed),
    ]
    kinds += [wanted, wanted.astype(np.longdouble), wanted.astype(">f8"), np.ma.masked_invalid(wanted), wanted + 0j]
    kinds += [np.asmatrix(wanted), tuple(map(tuple, mixed)), [np.array(row) for row in wanted], frame.astype("string")]
    for kind in kinds:
        got = table(kind, width=3)
        assert got.shape == (2, 3)
        np.testing.assert_array_equal(got.read(), wanted)
        assert got.read().dtype == np.float64 and type(got.read()) is np.ndarray
    for kind in kinds[:6]:
        got = columns(kind, [None, [3, 4], ["False", "True"]]).read()
        np.testing.assert_array_equal(got, [[1, np.nan, 0], [2.5, 0, 1]])


@pytest.mark.parametrize("mine", ["2020-01-05", "?", "", "7", "True"])
def test_rows_of_an_arrow_table_are_what_they_are_whatever_type_one_entry_makes_of_a_column(mine):
    """Dates beside numbers have no common type: whether all entries were dates told whether the rows could be read."""
    csv = pytest.importorskip("pyarrow.csv")

    def of(last):
        text = f"when,x,k\n2020-01-02,0.5,a\n2020-01-03,,b\n2020-01-04,7,a\n{last},1,b\n"
        return csv.read_csv(io.BytesIO(text.encode()))

    wanted = np.array([[math.nan, 0.5, math.nan], [math.nan, math.nan, math.nan], [math.nan, 7.0, math.nan]])
    for whole in (of(mine), of(mine).to_batches()[0]):
        found = table(whole)
        assert found.shape == (4, 3) and found.source is whole
        np.testing.assert_array_equal(found.read()[:3], wanted)
        np.testing.assert_array_equal(
            columns(whole, [None, ["a"]], [1, 2]).read()[:3], [[0.5, 0], [math.nan] * 2, [7, 0]]
        )


def test_an_index_that_pandas_left_in_an_arrow_table_is_a_column_of_it():
    pa = pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"x": [1.0, 2.0], "k": pd.Categorical(["a", "b"])}, index=[7, 8])
    found = columns(pa.Table.from_pandas(frame), [None, ["b", "a"], None])
    np.testing.assert_array_equal(found.read(), [[1, 1, 7], [2, 0, 8]])


@pytest.mark.parametrize("beside", ["1", "?"])
@pytest.mark.parametrize("mine", ["3", "18446744073709551617", "1.5", "?", ""])
def test_a_whole_number_beyond_64_bits_hides_and_tells_nothing_in_a_frame_of_polars(mine, beside):
    """polars makes a column of 128 bits of it, of which NumPy has none.

    That failed, and said so; beside text the frame was one column.
    """
    pl = pytest.importorskip("polars")
    if len(mine) > 9 and not hasattr(pl, "Int128"):
        pytest.skip("this polars reads no such number at all")
    frame = pl.read_csv(f"x,k\n1,0.5\n2,2\n{mine},{beside}\n".encode(), infer_schema_length=None)
    found = table(frame)
    assert found.shape == (3, 2)
    np.testing.assert_array_equal(found.read()[:2], [[1, 0.5], [2, 2]])
    np.testing.assert_array_equal(columns(frame, [[1, 2], None]).read()[:2], [[0, 0.5], [1, 2]])
    np.testing.assert_array_equal(labels(frame["x"], [2, 1]).read()[:2], [1, 0])
    persons = Persons()
    persons.add(frame["x"])
    np.testing.assert_array_equal(persons.close().codes(frame["x"])[:2], [0, 1])


def undecodable(kind):
    """A column 1.5, text that is no UTF-8, 2, in the memory of Arrow, and what it is in other libraries."""
    pa = pytest.importorskip("pyarrow")
    arrow = pa.array([b"1.5", b"\xff\xfe", b"2"], pa.binary()).view(pa.string())
    if kind.startswith("polars"):
        series = pytest.importorskip("polars").from_arrow(arrow)
        return series if kind == "polars series" else series.to_frame("x").with_row_index("i")
    made = {
        "array": lambda: arrow,
        "chunked": lambda: pa.chunked_array([arrow, arrow[:0]]),
        "table": lambda: pa.table({"x": arrow}),
        "pandas series": lambda: pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([arrow]))),
        "pandas frame": lambda: pd.DataFrame({"x": pd.arrays.ArrowExtensionArray(pa.chunked_array([arrow])), "a": 1}),
        "pandas text": lambda: pd.Series(pd.array(["1.5", "x", "2"], dtype="string[pyarrow]")),
    }
    return made[kind]()


@pytest.mark.parametrize(
    "kind",
    ["array", "chunked", "table", "pandas series", "pandas frame", "pandas text", "polars series", "polars frame"],
)
def test_text_that_cannot_be_decoded_is_one_missing_entry_in_every_container(kind):
    """It made the whole fit fail: of one column of Arrow with an error that named the byte."""
    read = table(undecodable(kind)).read()
    column = read if read.ndim == 1 else read[:, 1 if kind == "polars frame" else 0]
    np.testing.assert_array_equal(column, [1.5, np.nan, 2.0])
