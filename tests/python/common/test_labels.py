"""Labels of rows and columns are read, and what does not belong together by them is refused with the way out."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from private_settings import regression_settings
from skfda import FDataGrid
from sklearn.base import clone

from fdadp import (
    FPCA,
    AdditiveFunctionOnFunction,
    FunctionalRegression,
    Privacy,
    PrivateMean,
    ScalarRegression,
    coverage,
    rmspe,
    simulate_affr,
)
from fdadp.errors import InputError, PrivacyError
from fdadp.functional.metrics import functional_r2
from fdadp.functional.tables.curve_inputs import as_curves
from fdadp.functional.tables.grid_from_labels import axis_of
from fdadp.functional.tables.row_and_grid_labels import same_rows
from fdadp.learners import DPGaussianNB
from fdadp.privacy.account.budget import Budget
from fdadp.published import PublishedDPAda
from fdadp.terms import linear

COHORT = simulate_affr(scenario=1, n=60, seed=3)
X = pd.DataFrame(COHORT.X.data_matrix[..., 0], columns=COHORT.s)
Y = pd.DataFrame(COHORT.Y.data_matrix[..., 0], columns=COHORT.t)
PLACES = pd.Index([f"place {i}" for i in range(60)])
NO_PLACE = pd.Index([None, *PLACES[1:]])  # nan, and None in older versions of pandas
SHUFFLED = np.random.default_rng(0).permutation(60)


def model() -> AdditiveFunctionOnFunction:
    return AdditiveFunctionOnFunction(n_components=2, n_basis_x=5, n_basis_s=5, progress=False)


# --- rows


def labelled(frame: pd.DataFrame, index: Any) -> pd.DataFrame:
    return frame.set_axis(pd.Index(index), axis=0)


OTHERS = [
    (labelled(X, PLACES), labelled(Y, PLACES).iloc[SHUFFLED]),  # one of the files was sorted
    (X, Y.iloc[SHUFFLED]),  # sample(frac=1) of one of them
    (X.iloc[SHUFFLED[:50]], Y.iloc[:50]),  # two splits
    (X.iloc[10:], Y.iloc[:50]),
    (labelled(X, PLACES), labelled(Y, PLACES[::-1])),
    (labelled(X, [*"ab", *PLACES[2:]]), labelled(Y, PLACES)),  # other people
]


@pytest.mark.parametrize(("first", "second"), OTHERS)
def test_rows_are_joined_by_their_labels_whatever_their_order(first: pd.DataFrame, second: pd.DataFrame) -> None:
    both = [label for label in second.index if label in first.index]
    fitted, wanted = model().fit(first, second), model().fit(first.loc[both], second.loc[both])
    np.testing.assert_array_equal(fitted.coef_, wanted.coef_)
    assert fitted.joined_ == f"joined {len(both)} of {len(second)} by row label"
    assert fitted.joined_ in fitted.summary().as_text()
    assert fitted.score(first, second) == wanted.score(first.loc[both], second.loc[both])
    if len(first) == len(second):
        by_position = model().fit(first, second, by="position")
        np.testing.assert_array_equal(by_position.coef_, model().fit(first.to_numpy(), second, s=COHORT.s).coef_)
        assert by_position.joined_ is None


@pytest.mark.parametrize(("first", "second"), OTHERS)
def test_rows_with_other_labels_are_refused_where_they_are_not_joined(first: Any, second: Any) -> None:
    message = r"X and Y must have the same row labels in the same order, got .* and .* in row \d+ .*\.loc\[X\.index\]"
    with pytest.raises(InputError, match=message):
        model().fit_chunks([(first, second)])
    for metric in (rmspe, functional_r2, lambda a, b: coverage(a, b, b)):
        with pytest.raises(InputError, match="must have the same row labels"):
            metric(first.set_axis(COHORT.t, axis=1), second)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (
            labelled(X, PLACES),
            Y,
            "Y and X must have row labels in common .* such as 0 and 'place 0': say by='position'",
        ),
        (
            labelled(X, pd.date_range("2020-01-01", periods=60)),
            labelled(Y, pd.date_range("2021-01-02", periods=60)),
            "Y and X must have row labels in common",
        ),
        (
            labelled(X, NO_PLACE),
            labelled(Y, PLACES),
            f"X must have an id in every row .*, got {NO_PLACE[0]} in row 0;",
        ),
        (
            labelled(X, PLACES),
            labelled(Y, [1.5, *PLACES[1:]]),
            r"Y must have an id in every row .*, got 1\.5 in row 0;",
        ),
        (
            labelled(X, ["a", "a", *PLACES[2:]]),
            labelled(Y, PLACES),
            "X must have one row for each row label, or equal ones, got several that differ for 'a' in row 0",
        ),
    ],
)
def test_labels_that_say_no_person_are_refused_by_name(first: Any, second: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        model().fit(first, second)
    model().fit(first, second, by="position")


def test_equal_rows_of_one_label_are_one() -> None:
    x, y = labelled(X, PLACES), labelled(Y, PLACES)
    fitted = model().fit(pd.concat([x, x.iloc[:9]]), y)
    np.testing.assert_array_equal(fitted.coef_, model().fit(x, y).coef_)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (labelled(X, PLACES), labelled(Y, PLACES)),
        (labelled(X, PLACES), Y.to_numpy()),
        (labelled(X, range(60)), labelled(Y, [str(i) for i in range(60)])),  # from two kinds of file
        (labelled(X, [f"{i:03d}" for i in range(60)]), labelled(Y, np.arange(60.0))),
        (X.iloc[SHUFFLED], Y.iloc[SHUFFLED]),
        (X.iloc[SHUFFLED].reset_index(drop=True), Y.iloc[SHUFFLED].reset_index(drop=True)),
    ],
)
def test_rows_that_belong_together_fit_as_arrays_do(first: Any, second: Any) -> None:
    fitted = model().fit(first, second)
    same = model().fit(np.asarray(first), np.asarray(second), s=COHORT.s, t=COHORT.t)
    np.testing.assert_array_equal(fitted.coef_, same.coef_)


def test_groups_and_sample_names_and_the_ignored_y_of_fpca_are_compared_too() -> None:
    ids = pd.Series(np.arange(60) // 2, index=PLACES)
    x, y = labelled(X, PLACES), labelled(Y, PLACES)
    model().fit(x, y, groups=ids.iloc[SHUFFLED])
    with pytest.raises(InputError, match="X and Y must have the same row labels"):
        model().fit(x, y.iloc[::-1], groups=ids.to_numpy())  # which has none, so all is by position
    named = FDataGrid(X, grid_points=COHORT.s, sample_names=tuple(PLACES))
    model().fit(named, y)
    curves = FDataGrid(y.to_numpy(), grid_points=COHORT.t, sample_names=tuple(PLACES))
    found = model().fit(named, curves).predict(named[:3])
    assert found.sample_names == tuple(PLACES[:3])  # the names of persons were lost
    with pytest.raises(InputError, match="X and Y must have the same row labels"):
        model().fit(named, y.iloc[::-1])
    with pytest.raises(InputError, match="Y and y must have the same row labels"):
        FPCA().fit(y, pd.Series(0.0, index=PLACES[::-1]))


def test_columns_and_what_is_beside_them_are_joined_too() -> None:
    draw = np.random.default_rng(1)
    data = {"X": labelled(X, PLACES), "z": pd.Series(draw.normal(size=60), PLACES), "Y": labelled(Y, PLACES)}
    beside = {"weights": pd.Series(draw.uniform(1, 2, 60), PLACES), "groups": pd.Series(np.arange(60) // 2, PLACES)}
    shuffled, moved = ({k: v.sample(frac=1, random_state=len(k)) for k, v in d.items()} for d in (data, beside))
    shuffled["Y"] = data["Y"]
    formula = FunctionalRegression("Y ~ ff(X) + z", progress=False)
    wanted, joined = formula.fit(data, **beside), clone(formula).fit(shuffled, **moved)
    assert joined.joined_ == "joined 60 of 60 by row label"
    np.testing.assert_array_equal(joined.residuals_, wanted.residuals_)
    order = shuffled["X"].index.get_indexer(PLACES)
    np.testing.assert_allclose(joined.predict(shuffled).to_numpy()[order], wanted.predict(data).to_numpy(), rtol=1e-9)
    assert joined.score(shuffled) == pytest.approx(wanted.score(data), rel=1e-9)
    assert joined.score(shuffled, data["Y"]) == pytest.approx(wanted.score(data), rel=1e-9)
    with pytest.raises(InputError, match=r"z must have a row for each of X .*, got none for 'place 3'"):
        joined.predict(data | {"z": data["z"].drop(index="place 3")})
    other = {**data, "z": data["z"].set_axis(PLACES[::-1])}
    by_position = clone(formula).fit(other, by="position")
    np.testing.assert_array_equal(by_position.residuals_, clone(formula).fit(data).residuals_)
    frame = pd.DataFrame({"z": data["z"], "w": draw.normal(size=60)})
    numbers = ScalarRegression("y ~ z + w", progress=False).fit(frame, frame["z"].iloc[SHUFFLED] + 1.0)
    assert numbers.r2_ == pytest.approx(1, abs=1e-6)


def test_a_formula_joins_rows_as_its_terms_do() -> None:
    """A row more in the column that a formula names first was an error, and left out by the same terms."""
    values = np.random.default_rng(1).normal(size=(2, 61))
    places = [*PLACES, "elsewhere"]
    data = {"a": pd.Series(values[0], places), "b": pd.Series(values[1, :60], PLACES), "y": Y[0.5].set_axis(PLACES)}
    models = [ScalarRegression(spec, "y", progress=False) for spec in ("y ~ a + b", [linear("a"), linear("b")])]
    fitted = [model.fit(data) for model in models]
    assert {model.joined_ for model in fitted} == {"joined 60 of 60 by row label"}
    np.testing.assert_array_equal(fitted[0].residuals_, fitted[1].residuals_)


def test_labels_are_compared_without_a_look_at_values() -> None:
    class Unread(pd.DataFrame):
        def to_numpy(self, *args: Any, **kwargs: Any) -> Any:
            raise AssertionError("values were read")

    same_rows(X=Unread(X), Y=Unread(Y), groups=np.zeros(60))

    class Lazy:
        shape = (60, 51)

        def __array__(self, *args: Any, **kwargs: Any) -> Any:
            raise AssertionError("values were read")

    same_rows(X=Lazy(), Y=Y)


# --- columns


def test_a_grid_that_decreases_is_turned_round_with_its_values() -> None:
    """FTIR spectra: wave numbers from 4000 down."""
    wave = np.linspace(4000, 400, COHORT.s.size)
    down = X.set_axis(wave, axis=1)
    up = down.iloc[:, ::-1]
    curves = as_curves(down)
    np.testing.assert_array_equal(curves.grid, wave[::-1])
    np.testing.assert_array_equal(curves.values, up)
    late = Y.set_axis(-COHORT.t, axis=1)
    fitted = model().fit(down, late)
    same = model().fit(up, late.iloc[:, ::-1])
    np.testing.assert_array_equal(fitted.coef_, same.coef_)
    predicted = fitted.predict(down)
    assert list(predicted.columns) == list(late.columns)
    pd.testing.assert_frame_equal(predicted.iloc[:, ::-1], same.predict(up))
    assert rmspe(late, predicted) == pytest.approx(rmspe(late.iloc[:, ::-1], same.predict(up)), rel=1e-12)
    components = FPCA(n_components=2).fit(late)
    np.testing.assert_allclose(components.transform(late), FPCA(n_components=2).fit(late.iloc[:, ::-1]).transform(late))
    with pytest.raises(
        InputError, match=r"grid of X must be left out where column labels decrease, from 4000\.0 to 400\.0"
    ):
        as_curves(down, wave[::-1])


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([1, 2, "age", 3], "columns of X must all be points of one grid, got 'age' among numbers"),
        (["0.1", "0.2", "age", "0.3"], "got 'age' among numbers"),
        (["a", "b", 3, "c"], "got 3 among words"),
        ([0.1, 0.2, 0.2, 0.3], "labels that differ, got 0.2 more than once"),
        (["Mon", "Tue", "Tue", "Wed"], "labels that differ, got 'Tue' more than once"),
        ([0.1, 0.3, 0.2, 0.4], r"increase or decrease, got 0.3 followed by 0.2 at position 1; sort_index\(axis=1\)"),
        ([0.1, np.nan, 0.2, 0.4], "finite labels, got nan"),
        (pd.Index([1, 2, 3, 10**400], dtype=object), "finite labels, got 1000"),
        (["1", "2", "3", "1e999"], "finite labels, got '1e999'"),
        (["2020-01-01", "2020-13-45", "2020-01-02", "2020-01-03"], "columns of X must be dates or times"),
        (["id", "t0", "t1", "t2"], r"got 'id' beside 't0'. If it names the curves, .* set_index\('id'\)"),
        (["patient_id", "Mon", "Tue", "Wed"], "got 'patient_id' beside 'Mon'"),
        (["t0", "t1", "t10", "t2"], "labels that increase or decrease, got 't10' followed by 't2'"),
        (["2020-01-01", "2020-01-03", "2020-01-02", "2020-01-04"], "got '2020-01-03' followed by '2020-01-02'"),
        (["2020-01-01", "2020-01-02", "2020-01-03", "age"], "got 'age' among dates"),
        (pd.MultiIndex.from_product([["u", "v"], [0, 1]]), "one level of labels"),
    ],
)
def test_labels_that_are_no_grid_are_refused(labels: Any, message: str) -> None:
    frame = pd.DataFrame(np.zeros((2, 4)), columns=labels)
    with pytest.raises(InputError, match=message):
        as_curves(frame)
    np.testing.assert_array_equal(as_curves(frame, [0, 1, 2, 3]).grid, [0, 1, 2, 3])  # a given grid needs no labels


@pytest.mark.parametrize(
    ("labels", "points", "unit"),
    [
        (pd.date_range("2020-01-01", periods=4), [0, 1, 2, 3], "days since 2020-01-01"),
        (["2020-01-31", "2020-02-29", "2020-03-31", "2020-04-30"], [0, 29, 60, 90], "days since 2020-01-31"),
        (pd.period_range("2021-01", periods=4, freq="M"), [0, 31, 59, 90], "days since 2021-01-01"),
        (pd.date_range("2020-01-01 06:00", periods=4, freq="30min"), [0, 30, 60, 90], "minutes since 2020-01-01 06:00"),
        (["08:00", "10:00", "12:30", "20:00"], [8, 10, 12.5, 20], "hours"),
        (pd.timedelta_range("0h", periods=4, freq="6h"), [0, 6, 12, 18], "hours"),
        (pd.MultiIndex.from_product([["load"], [0.0, 0.5, 1.0, 3.0]]), [0, 0.5, 1, 3], None),
        (pd.RangeIndex(4000, 3996, -1), [3997, 3998, 3999, 4000], None),
        ([Decimal(1), Decimal("1.5"), 2, np.float32(4)], [1, 1.5, 2, 4], None),
        (pd.CategoricalIndex([0.5, 0.7, 0.8, 0.9]), [0.5, 0.7, 0.8, 0.9], None),
    ],
)
def test_dates_times_and_levels_become_a_grid_with_its_unit(labels: Any, points: list[float], unit: str | None) -> None:
    curves = as_curves(pd.DataFrame(np.zeros((2, 4)), columns=labels))
    np.testing.assert_allclose(curves.grid, points)
    assert (curves.unit or "").startswith(unit or "") and (curves.unit is None) == (unit is None)


@pytest.mark.parametrize("newest_first", [False, True])
def test_predictions_come_back_with_the_dates(newest_first: bool) -> None:
    dates = pd.date_range("2020-01-01", periods=COHORT.t.size)
    dated = Y.set_axis(dates, axis=1)
    fitted = model().fit(X, dated.iloc[:, ::-1] if newest_first else dated)
    predicted = fitted.predict(X)
    assert list(predicted.columns) == list(dates[::-1] if newest_first else dates)
    assert fitted.t_[-1] == COHORT.t.size - 1
    plain = model().fit(X, Y.set_axis(np.arange(COHORT.t.size) + 0.0, axis=1)).predict(X)
    np.testing.assert_allclose(predicted[dates], plain.to_numpy())
    assert "days since 2020-01-01" in str(fitted.summary())


def test_curves_on_other_grids_or_with_columns_in_another_order_are_not_compared() -> None:
    with pytest.raises(InputError, match="Y_hat must be on the grid of Y, got 0 instead of 1 at position 0"):
        rmspe(Y.set_axis(1 + COHORT.t, axis=1), Y)
    week = pd.DataFrame(np.arange(9.0).reshape(3, 3), columns=["Mon", "Tue", "Wed"])
    with pytest.raises(
        InputError, match="Y_hat must have the columns of Y in the same order, got 'Wed' instead of 'Mon' at position 0"
    ):
        rmspe(week, week[["Wed", "Tue", "Mon"]])


def test_axis_of_says_nothing_about_words_and_counts() -> None:
    for labels in (pd.RangeIndex(3), pd.Index(["Mon", "Tue", "Wed"]), pd.Index(["V1", "V2", "V3"])):
        assert axis_of(labels, "X") is None


# --- another number of points


@pytest.mark.parametrize("call", ["predict", "predict_interval", "predict_se", "score"])
def test_curves_of_another_length_want_their_grid(call: str) -> None:
    fitted = model().fit(X.to_numpy(), Y.to_numpy())
    half = X.to_numpy()[:, ::2]
    arguments = (half, Y.to_numpy()) if call == "score" else (half,)
    with pytest.raises(
        InputError, match=r"X must have 51 points a curve, as the fit had, or come with its grid, got 26"
    ):
        getattr(fitted, call)(*arguments)
    if call != "score":
        on_grid: Callable[..., Any] = getattr(fitted, call)
        np.testing.assert_array_equal(on_grid(half, s=COHORT.s[::2]), on_grid(X.iloc[:, ::2]))


# --- tables that are not one curve a row


def long_table(n: int = 6, size: int = 5) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "id": np.repeat(np.arange(n), size),
            "s": np.tile(np.linspace(0, 1, size), n),
            "value": np.random.default_rng(0).normal(size=n * size),
        }
    )


@pytest.mark.parametrize("change", ["as it is", "array", "text ids", "other names", "sorted by time", "both"])
def test_long_tables_are_refused(change: str) -> None:
    table: Any = long_table()
    if change == "array":
        table = table.to_numpy()
    if change in ("text ids", "both"):
        table["id"] = [f"p{i}" for i in table["id"]]
    if change == "other names":
        table.columns = ["subject", "hour", "pulse"]
    if change in ("sorted by time", "both"):
        table = table.sort_values(["s", "id"])
    with pytest.raises(
        InputError, match=r"X must have one curve a row; it looks like a long table.*read_curves\(table, l"
    ):
        as_curves(table)


@pytest.mark.parametrize("where", ["index", "first column", "dates"])
def test_transposed_tables_are_refused(where: str) -> None:
    table = pd.DataFrame(X.to_numpy().T[:, :5], columns=["Oslo", "Rome", "Bonn", "Bern", "Kiev"])
    if where == "index":
        table.index = pd.Index(COHORT.s)
    elif where == "dates":
        table.index = pd.date_range("2020-01-01", periods=len(table))
    else:
        table.insert(0, "time", COHORT.s)
    with pytest.raises(
        InputError, match=r"X must have one curve a row; it looks like one curve a column: transpose it"
    ):
        as_curves(table)
    np.testing.assert_array_equal(as_curves(table.to_numpy()).values, table)  # nothing speaks for it there


@pytest.mark.parametrize("n", [8, 60])
def test_real_curves_are_not_taken_for_something_else(n: int) -> None:
    rng = np.random.default_rng(1)
    days = pd.DataFrame(rng.normal(size=(n, 1)) + np.cumsum(rng.normal(size=(n, 24)), axis=1))
    for index in (np.arange(1, n + 1), np.linspace(0, 1, n), pd.date_range("2020-01-01", periods=n)):
        for columns in ([f"h{j}" for j in range(24)], [f"{chr(97 + j)}" for j in range(24)]):
            assert as_curves(days.set_axis(index, axis=0).set_axis(columns, axis=1)).values.shape == (n, 24)
    for size in (3, 4):
        small = rng.integers(1, 6, size=(n, size))
        assert as_curves(small).values.shape == (n, size)
        assert as_curves(np.sort(small, axis=0)).values.shape == (n, size)
        assert as_curves(np.sort(rng.normal(size=(n, size)), axis=0)).values.shape == (n, size)


# --- private fits


BOUNDS = {"X": (-4.5, 4.5), "Y": (-8, 8)}


def private(**settings: Any) -> AdditiveFunctionOnFunction:
    budget = {"epsilon": 1.0, "delta": 1e-6, "bounds": BOUNDS, "n": 60, "random_state": 0, "allow_useless": True}
    return AdditiveFunctionOnFunction(**regression_settings(**{**budget, **settings}), progress=False)


def test_a_private_fit_refuses_labels_only_where_they_are_declared_public() -> None:
    x, y = labelled(X, PLACES), labelled(Y, PLACES).iloc[::-1]
    fitted = private().fit(x, y)
    np.testing.assert_array_equal(fitted.coef_, private().fit(X, Y).coef_)
    assert "joined by row label" in str(fitted.ledger_.details)
    budget = Budget(1.0, 1e-6)
    others = labelled(Y, [*PLACES[1:], "elsewhere"])
    private().fit(x, others)
    with pytest.raises(InputError, match="X and Y must have rows of the same ids, each once, where labels are public"):
        private(labels="public", budget=budget).fit(x, others)
    with pytest.raises(InputError, match="X and Y must have the same row labels"):
        private(labels="public", budget=budget).fit(x, y, by="position")
    assert budget.left == budget.total
    same = private(labels="public").fit(x, y)
    np.testing.assert_array_equal(same.coef_, fitted.coef_)
    with pytest.raises(PrivacyError, match="labels must be 'public' or None, got 'private'"):
        private(labels="private")
    with pytest.raises(PrivacyError, match="labels must be None where the number of persons is private"):
        private(labels="public", n=None)


def test_private_learners_and_summaries_do_so_too() -> None:
    index = PLACES
    table, target = pd.DataFrame(np.zeros((60, 2)), index=index), pd.Series(0.0, index=index[::-1])
    settings: dict[str, Any] = {"epsilon": 1.0, "n": 60, "random_state": 0, "bounds": (-1, 1)}
    DPGaussianNB(classes=[0.0, 1.0], **settings).fit(table, target)
    with pytest.raises(InputError, match="X and y must have the same row labels"):
        DPGaussianNB(classes=[0.0, 1.0], labels="public", **settings).fit(table, target)
    ids = pd.Series(range(60), index=index[::-1])
    for labels in (None, "public"):
        summary = PrivateMean(privacy=Privacy(epsilon=50.0, n=60, labels=labels, random_state=0), bounds=(-8, 8))
        if labels is None:
            summary.fit(labelled(Y, index), groups=ids)
        else:
            with pytest.raises(InputError, match="Y and groups must have the same row labels"):
                summary.fit(labelled(Y, index), groups=ids)


def test_grids_in_labels_are_read_by_private_fits() -> None:
    wave = np.linspace(4000, 400, COHORT.s.size)
    down, late = X.set_axis(wave, axis=1), Y.set_axis(pd.date_range("2020-01-01", periods=COHORT.t.size)[::-1], axis=1)
    fitted = private().fit(down, late)
    same = private().fit(down.iloc[:, ::-1], late.iloc[:, ::-1])
    np.testing.assert_array_equal(fitted.coef_, same.coef_)
    np.testing.assert_array_equal(fitted.s_, wave[::-1])
    predicted = fitted.predict(down)
    assert list(predicted.columns) == list(late.columns)
    np.testing.assert_array_equal(predicted.iloc[:, ::-1], same.predict(down))
    for labels in ([*wave[:-1], "age"], [*wave[:-1], wave[-2]]):
        budget = Budget(1.0, 1e-6)
        with pytest.raises(InputError, match="columns of X must"):
            private(budget=budget).fit(X.set_axis(labels, axis=1), Y)
        assert budget.left == budget.total


def test_predictions_are_rows_whatever_they_look_like() -> None:
    """Frames of predictions with words as columns, whose rows are labelled by growing numbers and change slowly."""
    words = Y.set_axis([chr(65 + j // 26) + chr(97 + j % 26) for j in range(Y.shape[1])], axis=1)
    ordered = labelled(X.sort_values(X.columns[20]), np.linspace(0, 1, 60))
    fitted = model().fit(X, words)
    predicted = fitted.predict(ordered)
    assert rmspe(predicted, predicted) == 0
    assert fitted.score(ordered, predicted) > 0.99


def test_scores_of_learners_and_published_learners_compare_labels() -> None:
    index = PLACES
    rows = pd.DataFrame(np.random.default_rng(0).uniform(-1, 1, size=(60, 2)), index=index)
    signs = pd.Series((rows[0] > 0).astype(int), index=index)
    settings: dict[str, Any] = {"epsilon": 9.0, "n": 60, "random_state": 0, "bounds": (-1, 1), "classes": [0, 1]}
    fitted = DPGaussianNB(**settings).fit(rows, signs)
    assert fitted.score(rows, signs) > 0.5
    with pytest.raises(InputError, match="X and y must have the same row labels"):
        fitted.score(rows, signs[::-1])
    with pytest.raises(InputError, match="X and y must have the same row labels"):
        PublishedDPAda(epsilon=1.0).fit(rows, signs[::-1])


def test_named_columns_of_new_curves_are_in_the_order_of_the_training_curves(tmp_path: Path) -> None:
    words = X.set_axis([chr(65 + j // 26) + chr(97 + j % 26) for j in range(X.shape[1])], axis=1)
    for fitted in (model().fit(words, Y), private().fit(words, Y)):
        for one in (fitted, AdditiveFunctionOnFunction.load(fitted.save(tmp_path / "model.npz"))):
            np.testing.assert_array_equal(one.predict(words), fitted.predict(words.to_numpy()))
            with pytest.raises(InputError, match="X must have the columns of the training curves in the same order"):
                one.predict(words.iloc[:, ::-1])
