"""A private table 1 and suggested bounds: what they release, what they refuse, what comes back from files."""

from __future__ import annotations

import functools
import re
import warnings
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from privacy_tools import Guarded
from sklearn.base import clone

from fdadp import AdditiveFunctionOnFunction, Privacy, Study, simulate_affr
from fdadp.audit import Neighbours, replay_audit
from fdadp.errors import FdadpError, FileFormatError, InputError, PrivacyError, PublicInputWarning
from fdadp.learners import DPGaussianNB
from fdadp.privacy import Budget
from fdadp.summaries import PrivateMean, PrivateTable1, private_mean, suggest_bounds

COLUMNS = {"arm": ["drug", "placebo"], "age": (0, 100), "sex": ["f", "m"], "visits": (0, 20)}
MODES = {"zero-out": {"n": 300}, "replace": {"n": 300, "adjacency": "replace"}, "add-remove": {}}
BOTH = pytest.mark.parametrize("by", [None, "arm"])
EITHER = pytest.mark.parametrize("delta", [None, 1e-6])


@functools.cache
def everybody(n=300, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"id": np.arange(n), "age": rng.normal(60, 10, n), "visits": rng.poisson(3, n)})
    frame["sex"], frame["arm"] = rng.choice(["f", "m"], n), rng.choice(["drug", "placebo"], n)
    frame.loc[frame["arm"] == "drug", "age"] += 5
    frame.loc[::10, "age"] = np.nan
    return frame


def table1(**more):
    settings = {"epsilon": 1.0, "delta": 1e-6, "n": 300, "random_state": 0}
    privacy = Privacy(**settings | {k: more.pop(k) for k in list(more) if k in (*settings, "adjacency", "budget")})
    return PrivateTable1(**{"privacy": privacy, "columns": COLUMNS, "steps": {"visits": 1}} | more)


# --- what is promised and released ---


@BOTH
@EITHER
@pytest.mark.parametrize("mode", MODES)
def test_the_plan_is_what_is_released(by, delta, mode):
    model = table1(by=by, delta=delta, **({"n": None} | MODES[mode]))
    plan = model.plan(n=150)
    ledger = model.fit(everybody()).ledger_
    assert [release.name for release in ledger.releases] == list(plan.index)
    np.testing.assert_allclose([release.share for release in ledger.releases], plan["share"])
    assert plan["share"].sum() == pytest.approx(1) and ledger.private and (plan["sd"] > 0).all()
    for release, (_, row) in zip(ledger.releases, plan.iterrows(), strict=True):
        if row["noise of"] == "a count":
            assert release.sd == pytest.approx(row["sd"], rel=2e-3)
    counted = by is not None or mode == "add-remove"
    assert len(plan) == counted + 2 * 2 + (1 if by else 2)
    frame = model.table_
    assert (frame["low"] <= frame["value"]).all() and (frame["value"] <= frame["high"]).all()
    assert (frame["noise_sd"] > 0).all() and set(frame["interval"]) == {"noise", "noise and sampling"}
    groups = {"all", "drug", "placebo"} if by else {"all"}
    assert set(frame.index.get_level_values("group")) == groups == set(model.to_frame().columns)


@pytest.mark.each_once
@BOTH
@EITHER
def test_replays_of_neighbours_show_the_sums_alone(by, delta):
    pairs = []
    for mode, settings in MODES.items():
        for odd in ({"age": 1e30, "arm": "?"}, {"age": np.nan, "sex": None, "visits": -5.0}):
            first, second = everybody().astype(object), everybody().astype(object)
            for name, value in odd.items():
                first.loc[17, name] = value
            if mode != "replace":
                second = second.drop(index=17)

            def run(data, noise, settings=settings):
                model = table1(by=by, delta=delta, **({"n": None} | settings))
                model.set_params(privacy__dataset="people")
                with mock.patch("fdadp.privacy.noise.sources.SeededNoise", lambda seed: noise):
                    model.fit(data)
                return model.table_, model.summary().as_text(), model.ledger_

            total, measure = Budget(1.0, delta).total, "pure" if delta is None else "gdp"
            pairs.append(Neighbours(f"{mode}, {odd}", run, first, second, total, accounting=measure))
    result = replay_audit(pairs)
    assert result.passed, str(result)
    assert 0.2 < result.ratios.max() <= 1 and result.finished == len(pairs)


def test_more_groups_cost_no_more():
    one, many = table1(by="arm"), table1(by="arm", columns=COLUMNS | {"arm": ["drug", "placebo", *"abcdefgh"]})
    np.testing.assert_allclose(one.plan(n=150)["sd"], many.plan(n=150)["sd"])
    assert many.fit(everybody()).table_.loc[("age", "", "n", "a"), "low"] == 0


def test_rows_are_read_by_the_kernel_after_the_budget_was_spent():
    budget = Budget(1.0, 1e-6)
    numbers = {"a": (-3, 3), "b": (-3, 3)}
    guarded = Guarded(np.random.default_rng(0).normal(size=(300, 2)), budget)
    model = table1(columns=numbers, steps=None, budget=budget).fit(guarded)
    assert guarded.reads and budget.left == 0 and model.table_.shape == (12, 5)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"columns": None}, "columns must be facts by column"),
        ({"columns": {}}, "columns must name at least one"),
        ({"columns": ["age"]}, "columns must be facts by column where no study"),
        ({"columns": {"age": ("f", "m")}}, r"columns\['age'\] must be a pair"),
        ({"columns": {"age": (1, 0)}}, r"columns\['age'\] must be finite with low < high"),
        ({"columns": {"age": None}}, r"columns\['age'\] must be a pair"),
        ({"columns": {"sex": ["f", "f"]}}, "distinct"),
        ({"columns": {3: (0, 1)}}, "columns must be named by texts"),
        ({"columns": {"weight": (0, 1)}, "steps": None}, "X must have the columns"),
        ({"by": "age"}, "by must be one of the columns with classes"),
        ({"by": "ward"}, "by must be one of the columns with classes"),
        ({"by": "sex", "columns": {"sex": ["f", "m"]}, "steps": None}, "columns must name another column"),
        ({"by": "sex", "columns": COLUMNS | {"sex": ["f", "all"]}}, r"columns\['sex'\] must have no class 'all'"),
        ({"steps": 1}, "steps must be numbers by column, got 1"),
        ({"steps": ["age"]}, "steps must be numbers by column"),
        ({"quantiles": (0.5, 2)}, "quantiles must lie between 0 and 1"),
        ({"steps": {"sex": 1}}, "steps must be of columns of numbers"),
        ({"steps": {"visits": 0.3}}, "step must divide the bounds"),
        ({"privacy": None}, "privacy must be a Privacy"),
        ({"columns": {"sex": [object(), "m"]}, "steps": None}, "columns|distinct"),
    ],
)
def test_bad_settings_are_refused_and_nothing_is_spent(settings, text):
    budget = Budget(1.0, 1e-6)
    with pytest.raises((InputError, PrivacyError), match=text) as error:
        table1(budget=budget, **settings).fit(everybody())
    assert isinstance(error.value, FdadpError) and budget.spent == budget.reserved == 0


TABLES = {
    "arrow": lambda frame: pytest.importorskip("pyarrow").Table.from_pandas(frame),
    "batch": lambda frame: pytest.importorskip("pyarrow").RecordBatch.from_pandas(frame),
    "polars": lambda frame: pytest.importorskip("polars").from_pandas(frame),
    "nullable": lambda frame: frame.convert_dtypes(),
    "categories": lambda frame: frame.astype({"sex": pd.CategoricalDtype(["x", "m", "f"]), "arm": "category"}),
    "text": lambda frame: frame.astype(str),
}


@pytest.mark.parametrize("kind", TABLES)
def test_tables_of_all_kinds_are_one(kind):
    """Of Arrow's tables ``columns`` are the values: bounds had been suggested under names that were made of these."""
    other = TABLES[kind](everybody())
    pd.testing.assert_frame_equal(table1().fit(other).table_, table1().fit(everybody()).table_)
    numbers = everybody()[["age", "visits"]]
    told = Privacy(20.0, 1e-6, n=300, random_state=0)
    wanted = suggest_bounds(numbers, within=(0, 200), privacy=told)
    some = other[["age", "visits"]] if isinstance(other, pd.DataFrame) else other.select(["age", "visits"])
    found = suggest_bounds(some, within=(0, 200), privacy=told)
    assert found.by_column == wanted.by_column and list(found.bounds) == ["age", "visits"]
    assert [release.name for release in found.ledger.releases] == [f"cumulative counts of {name}" for name in numbers]
    one = [suggest_bounds(X, within={"age": (0, 200)}, privacy=told).bounds for X in (other, everybody())]
    assert one[0] == one[1]


def test_columns_that_stand_twice_are_refused_where_they_are_wanted():
    twice = pd.concat([everybody(), everybody()["age"] + 30], axis=1)
    budget = Budget(1.0, 1e-6)
    with pytest.raises(InputError, match=r"each of the columns .* once, but has more of \['age'\]"):
        table1(budget=budget).fit(twice)
    with pytest.raises(InputError, match="columns of different names, got 'age' 2 times"):
        suggest_bounds(twice[["age"]], within=(0, 200), privacy=Privacy(1.0, 1e-6, n=300, budget=budget))
    assert budget.spent == budget.reserved == 0
    assert len(table1(columns={"sex": ["f", "m"]}, steps=None).fit(twice).table_) == 5


def test_what_has_no_rows_yet_is_refused_before_anything_is_spent():
    budget, frames = Budget(1.0, 1e-6), pytest.importorskip("dask.dataframe")
    with pytest.raises(InputError, match=r"X must have a known number of rows: use \.compute\(\)"):
        table1(budget=budget).fit(frames.from_pandas(everybody(), npartitions=2))
    query = pytest.importorskip("duckdb").from_df(everybody())
    with pytest.raises(InputError, match=r"X must be a table, got a query of DuckDB: use X\.df\(\)"):
        table1(budget=budget).fit(query)
    assert budget.spent == budget.reserved == 0
    table1().fit(query.df())


def test_two_classes_that_look_like_a_range_are_warned_of():
    with pytest.warns(PublicInputWarning, match=r"a range is a tuple: \(18, 100\)"):
        table1(columns={"age": [18, 100]}, steps=None).plan()


def test_settings_that_change_after_a_fit_do_not_touch_it(tmp_path):
    model = table1(by="arm").fit(everybody())
    wanted = model.to_frame()
    model.set_params(by=None, quantiles=(0.5,), columns={"age": (0, 50)}, steps=None)
    assert len(model.plan()) == 2 and list(model.facts) == ["age"]
    pd.testing.assert_frame_equal(model.to_frame(), wanted)
    again = PrivateTable1.load(model.save(tmp_path / "t.npz"))
    pd.testing.assert_frame_equal(again.to_frame(), wanted)
    assert again.by == "arm" and again.quantiles == (0.25, 0.5, 0.75) and again.columns == COLUMNS


def test_classes_of_several_parts_come_back_from_files(tmp_path):
    frame, pairs = everybody()[["age"]].copy(), [("a", 0), ("a", ("b", 1))]
    frame["pair"] = [pairs[k % 2] for k in range(300)]
    model = table1(columns={"age": (0, 100), "pair": pairs}, by="pair", steps=None).fit(frame)
    again = PrivateTable1.load(model.save(tmp_path / "t.npz"))
    pd.testing.assert_frame_equal(again.to_frame(), model.to_frame())
    assert again.columns == model.columns


def test_levels_and_numbers_that_are_none_are_refused():
    model = table1()
    with pytest.raises(Exception, match="not fitted"):
        _ = model.table_
    for n in (0, -5, "all"):
        with pytest.raises(InputError, match="n must be a number of persons above 0"):
            model.plan(n)
    model.fit(everybody())
    for show in (model.to_frame, model.summary, model.to_html):
        with pytest.raises(InputError, match="level must lie between 0 and 1"):
            show(2)


# --- how good it is ---


@BOTH
def test_large_samples_give_the_statistics_of_the_data(by):
    data = everybody(60_000)
    for n in (60_000, None):
        frame = table1(by=by, n=n).fit(data).table_["value"]
        for group, own in [("all", data), *(data.groupby("arm") if by else [])]:
            assert frame["age", "", "mean", group] == pytest.approx(own["age"].mean(), abs=0.3)
            assert frame["age", "", "sd", group] == pytest.approx(own["age"].std(), rel=0.05)
            assert frame["age", "", "n", group] == pytest.approx(own["age"].count(), abs=150)
            assert frame["age", "", "quantile 0.5", group] == pytest.approx(own["age"].median(), abs=0.6)
            assert frame["visits", "", "quantile 0.75", group] == own["visits"].quantile(0.75)
            assert frame["sex", "f", "%", group] == pytest.approx((own["sex"] == "f").mean(), abs=0.005)
            assert abs(frame["sex", "", "missing", group]) < 150
    text = table1(by=by).fit(data).summary().as_text()
    assert "age, mean" in text and "sex: f, %" in text and "[" in text and "epsilon = 1" in text


def test_who_is_in_no_group_is_among_all():
    frame = everybody().copy()
    frame.loc[:119, "arm"] = None
    model = table1(epsilon=50.0, by="arm").fit(frame)
    assert model.table_.loc[("sex", "f", "n", "all"), "value"] == pytest.approx((frame["sex"] == "f").sum(), abs=10)


def test_persons_count_once():
    rows = pd.concat([everybody().iloc[:100]] * 9 + [everybody().iloc[100:]])
    model = table1(epsilon=20.0).fit(rows, groups=rows["id"])
    assert "person" in model.ledger_.details["unit"]
    assert model.table_.loc[("sex", "f", "n", "all"), "value"] == pytest.approx(
        (everybody()["sex"] == "f").sum(), abs=6
    )


def test_a_study_gives_the_columns_and_keeps_the_model(tmp_path):
    path = tmp_path / "s.fdadp"
    facts = {name: COLUMNS[name] for name in ("sex", "age")}
    Study.new(path, epsilon=1.0, name="trial", unit="row", n=300, bounds=facts, sources="protocol")
    model = PrivateTable1(privacy=Privacy(0.5, study=path, purpose="table 1")).fit(everybody())
    assert {name for name, *_ in model.table_.index} == {"sex", "age"}
    assert Study(path).budget.left == pytest.approx(0.5)
    file = model.save(tmp_path / "table1.npz")
    assert (
        Study(path).verify(file).passed if hasattr(Study(path).verify(file), "passed") else not Study(path).verify(file)
    )
    with pytest.raises(PrivacyError, match="bounds of age"):
        PrivateTable1(privacy=Privacy(0.1, study=path), columns={"age": (0, 90)}).fit(everybody())
    assert Study(path).report()


@BOTH
def test_files_tables_and_texts(by, tmp_path):
    model = table1(by=by).fit(everybody())
    again = PrivateTable1.load(model.save(tmp_path / "table1"))
    pd.testing.assert_frame_equal(again.table_, model.table_)
    assert again.ledger_ == model.ledger_ and again.summary().as_text() == model.summary().as_text()
    assert again.by == by and again.columns == COLUMNS and "<table" in model.to_html() == model._repr_html_()
    assert model._repr_mimebundle_()["text/html"] == model.to_html()  # what a notebook takes: it showed the settings
    assert (model.estimates_.at(0.5).frame["high"] <= model.table_["high"].to_numpy()).all()
    assert clone(model).get_params()["columns"] == COLUMNS and "PrivateTable1" in repr(model)
    with pytest.raises(FileFormatError):
        PrivateMean.load(tmp_path / "table1.npz")
    with pytest.raises(Exception, match="not fitted"):
        table1().summary()
    secure = table1(by=by, random_state=None).set_params(privacy__dataset=f"a trial, {by}").fit(everybody())
    assert secure.ledger_.for_release and secure.ledger_.certificate()


# --- suggested bounds ---


@EITHER
def test_bounds_are_suggested_and_usable(delta):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"rate": rng.normal(80, 12, 5000), "dose": np.exp(rng.normal(size=5000))})
    y = (X["rate"] > 80).astype(int)
    budget = Budget(1.0, delta)
    told = functools.partial(Privacy, delta=delta, n=5000, budget=budget, dataset="ward", random_state=0)
    found = suggest_bounds(X, within={"rate": (0, 1000), "dose": (0, 500)}, privacy=told(0.2))
    assert len(found.ledger.releases) == 2
    for name, (low, high) in found.bounds.items():
        outside = ((X[name] < low) | (X[name] > high)).mean()
        assert outside < 0.04 and high - low < 2.5 * np.ptp(X[name].quantile([0.005, 0.995]))
        assert found.beyond[name] == pytest.approx(outside, abs=0.03)
    model = DPGaussianNB(
        epsilon=0.5,
        delta=delta,
        n=5000,
        budget=budget,
        dataset="ward",
        classes=[0, 1],
        bounds=found.box,
        random_state=0,
    )
    assert model.fit(X, y).score(X, y) > 0.9
    assert private_mean(X["rate"], bounds=found.bounds["rate"], privacy=told(0.1)).value == pytest.approx(80, abs=2)
    assert "rate" in str(found) and found.frame.shape == (2, 3)


def test_bounds_without_a_range_and_for_curves():
    data = simulate_affr(scenario=1, n=3000, seed=0)
    low, high = suggest_bounds(data.Y, privacy=Privacy(0.5, 1e-6, n=3000, random_state=0)).bounds
    values = data.Y.data_matrix
    assert ((values < low) | (values > high)).mean() < 0.05 and high - low < 4 * np.ptp(
        np.quantile(values, [0.01, 0.99])
    )
    again = suggest_bounds(values[..., 0], together=True, privacy=Privacy(0.5, 1e-6, n=3000, random_state=0)).bounds
    assert again == (low, high)
    bounds = {"X": (-4.5, 4.5), "Y": again}
    AdditiveFunctionOnFunction(privacy=Privacy(5.0, 1e-6, n=3000, random_state=0), bounds=bounds).fit(data.X, data.Y)
    each = suggest_bounds(values[:, :2, 0], privacy=Privacy(0.5, 1e-6, n=3000, random_state=0)).bounds
    assert list(each) == ["x0", "x1"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"within": (1, 0)}, "within must be finite with low < high"),
        ({"within": {"a": (0, 1)}}, "within must be one pair"),
        ({"coverage": 1.0}, "coverage must lie between 0 and 1"),
        ({"together": 1}, "together must be True or False"),
        ({"X": np.zeros((2, 2, 2))}, "X must have one or two dimensions"),
        ({"X": pd.DataFrame({"b": [1.0]}), "within": {"a": (0, 1)}}, "X must have the columns"),
        ({"privacy": Privacy(0.01, n=100)}, "n and epsilon must let a quarter"),
    ],
)
def test_bad_requests_for_bounds_are_refused_and_nothing_is_spent(arguments, text):
    budget = Budget(1.0)
    given = {"X": np.zeros(100), "privacy": Privacy(1.0, n=100, budget=budget)} | arguments
    with pytest.raises((InputError, PrivacyError), match=text):
        suggest_bounds(given.pop("X"), **given)
    assert budget.spent == budget.reserved == 0


def test_suggested_bounds_leave_half_of_what_is_left_on_each_side():
    x = np.random.default_rng(0).normal(size=100_000)
    found = suggest_bounds(x, within=(-8, 8), coverage=0.9, privacy=Privacy(5.0, n=x.size, random_state=0))
    assert np.mean((x >= found.bounds[0]) & (x <= found.bounds[1])) > 0.89


@pytest.mark.filterwarnings("ignore::fdadp.errors.PublicInputWarning")
@pytest.mark.parametrize("delta", [None, 1e-6])
@pytest.mark.parametrize("d", [1, 3])
def test_a_refusal_says_how_many_persons_it_takes(d, delta):
    def asked(n):
        return suggest_bounds(np.zeros((n, d)), privacy=Privacy(0.1, delta, n=n, random_state=0))

    with pytest.raises(PrivacyError, match=r"It takes \d+ persons") as refused:
        asked(100)
    needed = int(re.findall(r"It takes (\d+)", str(refused.value))[0])
    with pytest.raises(PrivacyError, match=f"It takes {needed} persons"):
        asked(needed - 1)
    asked(needed)


def test_what_columns_share_is_too_little_for_many_of_them():
    one, many = np.zeros(400), np.zeros((400, 8))
    suggest_bounds(one, within=(-1, 1), privacy=Privacy(0.5, n=400, random_state=0))
    with pytest.raises(PrivacyError, match=r"for 8 column\(s\)"):
        suggest_bounds(many, within=(-1, 1), privacy=Privacy(0.5, n=400, random_state=0))


def test_noise_that_is_too_large_for_a_private_n_gives_the_range_back():
    with pytest.warns(PublicInputWarning, match="the noise is too large to suggest bounds of x"):
        found = suggest_bounds(np.zeros(30), within=(-7, 9), privacy=Privacy(0.01, random_state=0))
    assert found.bounds == (-7, 9)


def test_released_shares_beyond_bounds_are_shares():
    for seed in range(20):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PublicInputWarning)
            found = suggest_bounds(np.zeros(30), within=(-7, 9), privacy=Privacy(0.05, random_state=seed))
        assert 0 <= found.beyond["x"] <= 1


def test_columns_of_arrow_are_called_by_name_and_not_by_what_is_in_them():
    """What is in them stood in warnings and errors, and as names in the result."""
    pa = pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"rate": rng.normal(80, 9, 3000).round(3), "dose": rng.uniform(0, 9, 3000).round(3)})
    data = pa.Table.from_pandas(frame)
    told = {"privacy": Privacy(2.0, n=3000, random_state=0)}
    found = suggest_bounds(data, **told).bounds
    assert found == suggest_bounds(frame, **told).bounds and list(found) == ["rate", "dose"]
    few = {"privacy": Privacy(0.5, n=9, random_state=0)}
    with pytest.raises(PrivacyError, match="stand out from the noise") as caught:
        suggest_bounds(data, **few)
    assert "'rate'" in str(caught.value) and str(frame["rate"][0]) not in str(caught.value)
    within = {"dose": (0, 500), "rate": (0, 1000)}
    assert suggest_bounds(data, within=within, **told).bounds == (suggest_bounds(frame, within=within, **told).bounds)
