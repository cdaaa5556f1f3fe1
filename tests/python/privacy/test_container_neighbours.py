"""One person among many, in containers that were opened: no type, null or length of theirs changes another's rows."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import numpy as np
import pytest
from neighbour_tools import change, on_tape

from fdadp import FunctionalRegression, Privacy, PrivateMean, open_curves
from fdadp.errors import InputError, PrivacyError
from fdadp.privacy import Budget, Cohort, SeededNoise
from fdadp.private.release.mechanisms import DPAFF

pa = pytest.importorskip("pyarrow")
N, GRID = 40, np.linspace(0, 1, 5)
CURVES = np.random.default_rng(0).uniform(-1, 1, (N, 5)).round(6)
SIDES = np.where(np.random.default_rng(1).integers(0, 2, N), "left", "right")
UTC = datetime.UTC
REPLACED: dict[str, Any] = {"n": N, "adjacency": "replace"}


def mean(data: Any) -> None:
    model = PrivateMean(privacy=Privacy(4.0, **REPLACED, random_state=0), bounds=(-2, 2), allow_useless=True)
    model.fit(data["Y"], groups=data["id"])


def regression(data: Any) -> None:
    FunctionalRegression(
        "Y ~ age + C(side)",
        privacy=Privacy(8.0, 1e-6, **REPLACED, random_state=0),
        bounds={"Y": (-2, 2), "age": (0, 3), "side": ["left", "right"]},
        mechanism=DPAFF(allow_useless=True),
        progress=False,
    ).fit(data, groups="id")


def columns(**others: Any) -> dict[str, list[Any]]:
    base = {"id": list(range(N)), "age": [float(i % 3) for i in range(N)], "side": SIDES.tolist()}
    return {**base, "Y": [list(map(float, row)) for row in CURVES], **others}


def with_first(values: list[Any], entry: Any) -> list[Any]:
    return [entry, *values[1:]]


def arrow(data: dict[str, list[Any]]) -> Any:
    """Each column of the type that Arrow finds for its entries; of several types, text, as a reader does."""

    def column(values: list[Any]) -> Any:
        try:
            return pa.array(values)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            if any(isinstance(v, list) for v in values):
                return pa.array([v if v is None else [None if e is None else str(e) for e in v] for v in values])
            return pa.array([None if v is None else str(v) for v in values])

    return pa.table({name: column(values) for name, values in data.items()})


def polars(data: dict[str, list[Any]]) -> Any:
    """Each column of the type that polars finds."""
    pl = pytest.importorskip("polars")

    def column(values: list[Any]) -> Any:
        try:
            return pl.Series(values, strict=False)
        except (pl.exceptions.PolarsError, TypeError, OverflowError):
            return pl.Series([None if v is None else str(v) for v in values])

    return pl.DataFrame({name: column(values) for name, values in data.items()})


def duckdb(data: dict[str, list[Any]]) -> Any:
    table = arrow(data)
    return pytest.importorskip("duckdb").from_arrow(table)


READERS = {"arrow": arrow, "polars": polars, "duckdb": duckdb}
NULL = None
ODD_CURVES = {
    "missing": NULL,
    "a missing point": [0.5, NULL, 0.5, 0.5, 0.5],
    "short": [0.5],
    "long": [0.5] * 9,
    "empty": [],
    "text": ["1", "?", "x", "2", "3"],
    "whole numbers": [1, 1, 1, 1, 1],
    "infinite": [float("inf"), float("nan"), 1e300, 0.0, 0.0],
}
ODD_ENTRIES: dict[str, tuple[str, Any]] = {
    "a missing number": ("age", NULL),
    "a whole number": ("age", 1),
    "a word": ("age", "?"),
    "a large number": ("age", 2**70),
    "a truth value": ("age", True),
    "a decimal": ("age", decimal.Decimal("0.1")),
    "a missing label": ("side", NULL),
    "a number as a label": ("side", 3),
    "a date as a label": ("side", datetime.date(2020, 1, 1)),
    "an instant as a label": ("side", datetime.datetime(2020, 1, 1, 5, tzinfo=UTC)),
    "a word as an id": ("id", "H7"),
    "a missing id": ("id", NULL),
    "a fraction as an id": ("id", 7.5),
    "a large id": ("id", 2**63 + 5),
    "an object": ("age", object()),
}


@pytest.mark.each_once
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("odd", ODD_CURVES)
def test_one_odd_list_changes_nobody_else(reader: str, odd: str) -> None:
    values = columns()["Y"]
    first, second = columns(), columns(Y=with_first(values, ODD_CURVES[odd]))

    def fit(data: dict[str, list[Any]]) -> None:
        mean(open_curves(READERS[reader](data), grids={"Y": GRID}))

    assert 0 < change(fit, first, second) <= 1


@pytest.mark.each_once
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("odd", ODD_ENTRIES)
def test_one_odd_entry_changes_nobody_else(reader: str, odd: str) -> None:
    name, entry = ODD_ENTRIES[odd]
    if odd == "an object" and reader != "polars":
        pytest.skip("only frames of polars hold objects")
    first, second = columns(), columns(**{name: with_first(columns()[name], entry)})

    def fit(data: dict[str, list[Any]]) -> None:
        (mean if name == "id" else regression)(open_curves(READERS[reader](data), grids={"Y": GRID}))

    assert change(fit, first, second) <= 1


def test_text_that_cannot_be_decoded_is_one_missing_entry() -> None:
    """It made the whole fit fail, and told of it."""
    first, second = arrow(columns()), arrow(columns())
    texts = [b"\xff\xfe", *(text.encode() for text in columns()["side"][1:])]
    at = second.schema.get_field_index("side")
    second = second.set_column(at, "side", pa.array(texts, pa.binary()).view(pa.string()))
    assert 0 < change(lambda t: regression(open_curves(t, grids={"Y": GRID})), first, second) <= 1


def test_categories_of_an_arrow_column_are_labels_as_text_is() -> None:
    plain = arrow(columns())
    at = plain.schema.get_field_index("side")
    coded = plain.set_column(at, "side", plain["side"].dictionary_encode())
    other = columns(side=with_first(columns()["side"], "aaa"))  # comes first among the categories
    more = arrow(other)
    more = more.set_column(at, "side", more["side"].dictionary_encode())
    tapes = [on_tape(lambda t: regression(open_curves(t, grids={"Y": GRID})), table) for table in (plain, coded)]
    assert [e.exact for e in tapes[0]] == [e.exact for e in tapes[1]]
    assert change(lambda t: regression(open_curves(t, grids={"Y": GRID})), coded, more) <= 1


def test_statistics_in_a_footer_are_not_looked_at(tmp_path: Any) -> None:
    import pyarrow.parquet as pq

    tapes = []
    for name, options in (("a", {}), ("b", {"write_statistics": False, "use_dictionary": False})):
        pq.write_table(arrow(columns()), tmp_path / f"{name}.parquet", row_group_size=7, **options)
        table = open_curves(tmp_path / f"{name}.parquet", grids={"Y": GRID})
        tapes.append([e.exact for e in on_tape(regression, table)])
    assert tapes[0] == tapes[1]


def test_lists_of_unknown_length_need_a_declared_grid_before_anything_is_read() -> None:
    table = open_curves(arrow(columns()))
    with pytest.raises(InputError, match=r"grids must have the points of Y, as in grids=\{'Y': t\}"):
        regression(table)
    with pytest.raises(InputError, match="grids must say how many points Y has"):
        table["Y"]


class Restless:
    """A query that gives its rows in another order on each pass, and counts the passes."""

    def __init__(self, table: Any, more: int = 0) -> None:
        self.table, self.passes, self.more = table, 0, more

    def limit(self, n: int) -> Any:
        if n == 0:
            return self.table.slice(0, 0)
        self.passes += 1
        order = np.random.default_rng(self.passes).permutation(len(self.table))
        rows = np.concatenate([order, np.zeros(self.more * (self.passes > 1), dtype=int)])
        return self.table.take(pa.array(rows))

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        raise AssertionError("not anew")


@pytest.mark.parametrize("more", [0, 30])
def test_rows_of_a_query_may_come_in_another_order_each_time(more: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fdadp.privacy.rows._vault.KEPT", 0)
    ids = [0] * 10 + list(range(1, N - 9))
    first, second = columns(id=ids), columns(id=ids)
    second["Y"] = [[0.9] * 5 if i == 0 else row for i, row in zip(ids, second["Y"], strict=True)]
    queries = []

    def fit(data: dict[str, list[Any]]) -> None:
        queries.append(Restless(arrow(data), more))
        mean(open_curves(queries[-1], grids={"Y": GRID}))

    assert change(fit, first, second) <= 1
    assert queries[0].passes > 2


class Failing(Restless):
    """Fails while it is read, with a text that tells of somebody."""

    def limit(self, n: int) -> Any:
        if n == 0:
            return super().limit(0)
        self.passes += 1
        raise ValueError("could not convert 'HIV-positive'")


def test_a_query_that_fails_tells_nothing_and_is_not_read_before_the_kernel_does() -> None:
    for use in (
        mean,
        regression,
        lambda t: Cohort(t.chunks("Y", "id"), groups=True, budget=Budget(1.0), n=N, noise=SeededNoise(0)).sum(
            lambda rows: rows[0], clip=1.0, share=0.5, name="s"
        ),
    ):
        query = Failing(arrow(columns()))
        table = open_curves(query, grids={"Y": GRID})
        with pytest.raises(PrivacyError, match="the source of chunks failed") as caught:
            use(table)
        assert "HIV" not in str(caught.value) and caught.value.__cause__ is None and caught.value.__context__ is None
        assert query.passes == 1
    query = Failing(arrow(columns()))
    Cohort(open_curves(query, grids={"Y": GRID}).chunks("Y"), budget=Budget(1.0), n=N)
    assert query.passes == 0


def test_attributes_and_row_labels_of_xarray_stay_inside() -> None:
    xr = pytest.importorskip("xarray")
    who = [f"patient {i}" for i in range(N)]
    y = xr.DataArray(CURVES, dims=("who", "t"), coords={"who": who, "t": GRID}, name="Y", attrs={"actual_range": 0.97})
    model = PrivateMean(privacy=Privacy(4.0, n=N, random_state=0), bounds=(-2, 2), allow_useless=True)
    for given in (y, open_curves(y)):
        model.fit(given)
        out, _ = model.band()
        assert out.attrs == {} and "patient" not in repr(vars(model)) and "0.97" not in repr(vars(model))
