"""Private fits join rows by the person's id, inside the kernel: neighbours move exact sums by what Lemma 9 says."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from mutants import mutate
from neighbour_tools import change, on_tape, sums_of_rows

from fdadp import AdditiveFunctionOnFunction, FunctionalRegression, Privacy, ScalarRegression
from fdadp.errors import InputError, PrivacyError, PublicInputWarning
from fdadp.privacy import settings
from fdadp.private.release.mechanisms import DPAFF

N, GRID = 60, np.linspace(0, 1, 6)
DRAW = np.random.default_rng(0)
IDS = pd.Index([f"p{i}" for i in range(N)], name="pid")
CURVES = pd.DataFrame(DRAW.normal(size=(N, 6)), columns=GRID, index=IDS)
PEOPLE = pd.DataFrame({"age": DRAW.uniform(0, 3, N), "side": np.where(DRAW.integers(0, 2, N), "l", "r")}, index=IDS)
RESPONSES = pd.DataFrame(
    np.outer(PEOPLE["age"] - 1.5, GRID) + CURVES.to_numpy() + DRAW.normal(size=(N, 6)), columns=GRID, index=IDS
)
BOUNDS = {"X": (-2, 2), "Y": (-2, 2), "y": (-2, 2), "age": (0, 3), "side": ["l", "r"]}
Tables = dict[str, Any]


def private(**others: Any) -> Privacy:
    return Privacy(8.0, 1e-6, random_state=0, **{"n": N, **others})


def surface(data: Tables, by: str | None = None, **others: Any) -> Any:
    model = AdditiveFunctionOnFunction(
        privacy=private(**others), bounds={k: BOUNDS[k] for k in "XY"}, mechanism=DPAFF(allow_useless=True)
    )
    return model.fit(data["X"], data["Y"], by=by)


def of_curves(data: Tables, by: str | None = None, **others: Any) -> Any:
    model = FunctionalRegression(
        "Y ~ ff(X) + age + C(side)", privacy=private(**others), bounds=BOUNDS, mechanism=DPAFF(allow_useless=True)
    )
    people = data["people"]
    return model.fit({"X": data["X"], "age": people["age"], "side": people["side"], "Y": data["Y"]}, by=by)


def of_numbers(data: Tables, by: str | None = None, **others: Any) -> Any:
    model = ScalarRegression(
        "y ~ age + C(side)", privacy=private(**others), bounds=BOUNDS, mechanism=DPAFF(allow_useless=True)
    )
    return model.fit(data["people"], data["Y"].iloc[:, 2], by=by)


FITS = [surface, of_curves, of_numbers]


def tables(**others: Any) -> Tables:
    return {"X": CURVES, "Y": RESPONSES, "people": PEOPLE} | others


def each(change_of: Any, data: Tables) -> Tables:
    return {name: change_of(table) for name, table in data.items()}


def moved(fit: Any, first: Tables, second: Tables) -> float:
    """Largest change of an exact sum over its sensitivity; the second tables are read as the first ones were."""
    of_all = all(first.get(name) is table for name, table in tables().items())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return change(fit, first, second, entries=of_tables(fit) if of_all else None)


@functools.cache
def of_tables(fit: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sums_of_rows(fit, tables())


def quiet(fit: Any, data: Tables, **others: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit(data, **others)


def said(model: Any) -> Any:
    """All of a ledger that may not depend on a row: it shows clips that were released, too."""
    return model.ledger_.details, [release.name for release in model.ledger_.releases], model.privacy_


@pytest.mark.parametrize("fit", FITS)
def test_a_person_out_of_all_tables_moves_a_sum_by_one_clip(fit: Any) -> None:
    for person in ("p0", f"p{N - 1}"):
        second = {name: table.drop(index=person) for name, table in tables().items()}
        assert 1e-3 < moved(fit, tables(), second) <= 1


def others_of(name: str) -> list[Any]:
    """A table with other rows of one person, from less to more."""
    table = tables()[name]
    twice = pd.concat([table, table.loc[["p3"]].map(lambda v: v if isinstance(v, str) else v + 1)])
    nobodys = table.rename(index={"p3": "?"})
    return [table.drop(index="p3"), twice, pd.concat([table, *[table.loc[["p3"]]] * 1000]), nobodys]


@pytest.mark.parametrize("fit", FITS)
def test_a_person_with_other_rows_in_one_table_costs_two(fit: Any) -> None:
    name = "X" if fit is surface else "people"
    changes = [moved(fit, tables(), tables(**{name: other})) for other in others_of(name)]
    changes.append(moved(fit, tables(), tables(Y=RESPONSES.drop(index="p3"))))
    assert 1e-3 < max(changes) <= 2


@pytest.mark.parametrize("fit", FITS)
def test_an_id_of_somebody_else_costs_four(fit: Any) -> None:
    for name in ("Y", "X" if fit is surface else "people"):
        assert 1e-3 < moved(fit, tables(), tables(**{name: tables()[name].rename(index={"p3": "p4"})})) <= 4


def with_nobody(table: Any) -> Any:
    labels = pd.Index([None, np.nan, "", "NA", 1.5] * 40, name="pid")
    return pd.concat([table, pd.concat([table.iloc[:1]] * 200).set_axis(labels)])


@pytest.mark.parametrize("fit", FITS)
def test_the_order_of_rows_and_rows_without_an_id_change_no_bit(fit: Any) -> None:
    plain = tables()
    changed = {name: with_nobody(t).sample(frac=1, random_state=i) for i, (name, t) in enumerate(plain.items())}
    assert moved(fit, plain, changed) == 0
    assert quiet(fit, plain).ledger_.to_json() == quiet(fit, changed).ledger_.to_json()


@pytest.mark.parametrize("fit", FITS)
def test_what_is_joined_is_what_position_gives_where_rows_stand_in_order(fit: Any) -> None:
    plain = each(lambda t: t.reset_index(drop=True), tables())
    by_label, by_position = on_tape(fit, plain), on_tape(lambda data: fit(data, by="position"), plain)
    for one, other in zip(by_label, by_position, strict=True):
        np.testing.assert_array_equal(one.exact, other.exact)
    assert any(np.any(entry.exact) for entry in by_label)


@pytest.mark.parametrize("fit", FITS)
def test_a_row_dropped_from_rows_that_pandas_counted(fit: Any) -> None:
    """Dropping the last row leaves a RangeIndex, dropping another one does not: neither decides how rows are joined."""
    plain = each(lambda t: t.reset_index(drop=True), tables())
    for row in (N // 2, N - 1):
        assert 1e-3 < moved(fit, plain, each(lambda t: t.drop(index=row), plain)) <= 1  # noqa: B023
    only_one = plain | {"people": plain["people"].drop(index=7), "X": plain["X"].drop(index=7)}
    assert moved(fit, plain, only_one) <= 2
    assert said(quiet(fit, only_one)) == said(quiet(fit, plain))


@pytest.mark.parametrize("fit", FITS)
def test_lengths_and_ids_that_do_not_meet_are_no_error(fit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [
        tables(people=PEOPLE.iloc[:0], X=CURVES.iloc[:0]),
        tables(people=PEOPLE.set_axis(IDS + "x"), X=CURVES.set_axis(IDS + "y")),
    ]
    assert all(said(quiet(fit, other)) == said(quiet(fit, tables())) for other in pairs)
    mutate(monkeypatch, settings, 'f"joined by {data.name};', 'f"joined {len(data.keys[0].ids)} by {data.name};')
    assert said(quiet(fit, pairs[0])) != said(quiet(fit, tables()))


@pytest.mark.parametrize("fit", FITS)
def test_the_ledger_says_so_and_no_id_leaves(fit: Any) -> None:
    model = quiet(fit, each(lambda t: t.set_axis(IDS + "#secret"), tables()))
    text = f"{model.ledger_.to_json()} {model.notes_} {model!r} {model.summary()}"
    assert "joined by pid" in text and "secret" not in text
    assert "person" in model.ledger_.details["unit"]
    assert "secret" not in repr(vars(model))


def test_rows_that_pandas_counted_are_labels_as_others_are() -> None:
    """A row of `people` was dropped and the rest counted anew: by position 59 of 60 people get another's age."""
    people = PEOPLE.reset_index(drop=True)
    model = quiet(of_numbers, {"people": people, "Y": RESPONSES.reset_index(drop=True)})
    assert model.ledger_.details["public input: rows belong together by"].startswith("joined by row label")


@pytest.mark.parametrize("fit", FITS)
def test_what_is_refused_is_public(fit: Any) -> None:
    for name in ("people", "X"):
        renamed = tables(**{name: tables()[name].rename_axis("patient")})
        if fit in (surface, of_numbers) and name != {surface: "X", of_numbers: "people"}[fit]:
            continue
        with pytest.raises(InputError, match=r"must have row labels of one name, got .*: say by='label' .*'position'"):
            fit(renamed)
        quiet(fit, renamed, by="label")
        quiet(fit, renamed, by="position")
    with pytest.raises(InputError, match="by must be 'label' or 'position', got 'id'"):
        fit(tables(), by="id")
    with pytest.raises(PrivacyError, match="by must be 'position' where unit is 'row', for rows of one label"):
        fit(tables(), unit="row")
    quiet(fit, tables(), by="position", unit="row")
    quiet(fit, tables(), unit="person")


def test_several_rows_of_a_person_cannot_be_joined_by_the_person() -> None:
    """Everybody whose rows differ had nothing, and the budget was spent."""
    three = pd.Index(np.repeat(IDS[:20], 3), name="pid")
    data = {"Y": RESPONSES.set_axis(three), "age": PEOPLE["age"].set_axis(three)}
    privacy = private(n=20)
    model = FunctionalRegression(
        "Y ~ age", privacy=privacy, bounds=BOUNDS, mechanism=DPAFF(allow_useless=True), person_rows="sum", max_rows=3
    )
    with pytest.raises(InputError, match=r"max_rows must be left out where rows are joined by pid.*got 3"):
        model.fit(data)
    quiet(model.fit, data, groups=three, by="position")


def test_groups_are_the_id_or_refused() -> None:
    model = FunctionalRegression(
        "Y ~ age", privacy=private(), bounds=BOUNDS, mechanism=DPAFF(allow_useless=True), progress=False
    )
    data = PEOPLE.assign(family=np.arange(N) // 2)
    with pytest.raises(InputError, match="groups must be left out where rows are joined by their labels"):
        model.fit(data, RESPONSES, groups="family")
    with pytest.raises(InputError, match="groups must be left out where rows are joined by their labels"):
        model.fit(data, RESPONSES, groups=data["family"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(data, RESPONSES, groups="pid")
        model.fit(data, RESPONSES, groups="family", by="position")
        model.fit(data, RESPONSES, groups=data["family"].to_numpy())  # has no labels, so rows are taken by position
        assert "position" in model.ledger_.details["public input: rows belong together by"]


def test_one_input_without_labels_is_taken_by_position_as_the_ledger_says() -> None:
    model = quiet(surface, tables(X=CURVES.to_numpy()))
    assert model.ledger_.details["public input: rows belong together by"].startswith("position; labels were not")
    with pytest.raises(InputError, match="X must have row labels with by='label', as a data frame or a series has"):
        surface(tables(X=CURVES.to_numpy()), by="label")


def test_visits_of_a_person_are_joined_by_both_and_averaged() -> None:
    """Three visits each: rows of a visit belong together, in any order; one row of covariates serves all visits."""
    rows = pd.MultiIndex.from_product([IDS[:20], ["a", "b", "c"]], names=["pid", "visit"])
    x, y = CURVES.set_axis(rows), RESPONSES.set_axis(rows)
    people = PEOPLE.iloc[:20]
    plain = {"X": x, "Y": y, "people": people}
    shuffled = {name: table.sample(frac=1, random_state=i) for i, (name, table) in enumerate(plain.items())}
    fit = lambda data: of_curves(data, n=20)  # noqa: E731
    assert moved(fit, plain, shuffled) == 0
    joined = on_tape(fit, plain)
    repeated = people.loc[rows.get_level_values(0)].reset_index(drop=True)
    at = {"X": x.to_numpy(), "Y": y.to_numpy(), "age": repeated["age"].to_numpy(), "side": repeated["side"].to_numpy()}
    model = FunctionalRegression(
        "Y ~ ff(X) + age + C(side)", privacy=private(n=20), bounds=BOUNDS, mechanism=DPAFF(allow_useless=True)
    )
    grids = {"X": GRID, "Y": GRID}
    by_hand = on_tape(lambda d: model.fit(d, groups=rows.get_level_values(0).to_numpy(), grids=grids), at)
    for one, other in zip(joined, by_hand, strict=True):
        np.testing.assert_array_equal(one.exact, other.exact)


def test_frames_in_partitions_are_not_joined_and_that_is_said() -> None:
    dd = pytest.importorskip("dask.dataframe")
    for other in (dd.from_pandas(CURVES, npartitions=2), dd.from_pandas(CURVES[0.0], npartitions=2)):
        with pytest.raises(InputError, match=r"rows are not joined across partitions\. Merge them by their id before"):
            surface(tables(X=other))


def test_ids_that_do_not_meet_are_doubted() -> None:
    """The fit is of nothing then. By what is released in any case: at no cost, and in the same words for all rows."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(1000, 6)), [f"p{i}" for i in range(1000)], [str(i) for i in range(6)])
    y = pd.Series(rng.normal(size=1000), [f"q{i}" for i in range(1000)], name="y")
    model = ScalarRegression(
        "y ~ lf(X)", privacy=Privacy(1.0, 1e-6, random_state=0), bounds={"X": (-4, 4), "y": (-4, 4)}
    )
    with pytest.warns(PublicInputWarning, match="ids of tables do not meet"):
        model.fit({"X": X, "y": y})
