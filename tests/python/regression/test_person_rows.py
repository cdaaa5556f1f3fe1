"""What a fit with several rows a person is about: ordinary and private fits answer the same question."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from hazards import PERIODS, followed_by_period
from privacy_tools import distance

import fdadp
from fdadp import FunctionalRegression, Privacy, ScalarRegression
from fdadp.errors import InputError, PersonRowsWarning, PrivacyError
from fdadp.privacy import TapeNoise


def person_periods(seed, n=3000):
    """A row for each period until the event, and the true hazards (N,)."""
    persons, hazard, seen = followed_by_period(n, np.random.default_rng(seed))
    i, k = np.nonzero(seen)
    event = (persons["died"] * persons["time"])[i] == k + 1
    table = {"X": persons["X"][i], "age": persons["age"][i], "period": k * 1.0, "y": event * 1.0, "id": i}
    return table, hazard[i, k]


BOUNDS = {"X": (-4, 4), "age": (-1, 1), "period": (0, PERIODS - 1), "y": [0, 1]}


def fitted(table, epsilon=None, seed=0, **told):
    if epsilon is not None:
        told |= {"privacy": Privacy(epsilon, 1e-6, n=3000, random_state=seed), "bounds": BOUNDS}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PersonRowsWarning)
        return ScalarRegression("y ~ lf(X) + age + period", family="binomial", **told).fit(table, groups="id")


def logit(p):
    return np.log(p / (1 - p))


@pytest.mark.statistics
def test_private_hazards_are_those_of_rows():
    """Averaged rows gave .246 for .167, and a slope of .81; each row once gives hazards (n = 3,000, epsilon 1)."""
    found = []
    for seed in range(5):
        (table, _), (new, true) = person_periods(seed), person_periods(100 + seed)
        p = fitted(table, 1.0, seed, person_rows="sum", max_rows=PERIODS).predict(new)
        found.append((p.mean() - true.mean(), np.polyfit(logit(true), logit(p), 1)[0]))
    off, slope = np.mean(found, axis=0)
    assert abs(off) < 0.01
    assert 0.95 <= slope <= 1.05


@pytest.mark.parametrize(("law", "told"), [("mean", {}), ("sum", {"person_rows": "sum", "max_rows": PERIODS})])
def test_private_and_ordinary_fits_answer_the_same_question(law, told):
    table, _ = person_periods(0)
    ordinary = fitted(table, **{"person_rows": law} if told else {})
    private = fitted(table, 20.0, **told)
    assert private.predict(table).mean() == pytest.approx(ordinary.predict(table).mean(), abs=0.01)
    said = {"mean": "each person counts once", "sum": "each row counts once"}[law]
    assert said in ordinary.summary().as_text() and said in private.summary().as_text()
    assert said in private.ledger_.details["rows of a person"]


def test_an_ordinary_fit_by_person_is_one_with_weights():
    rng = np.random.default_rng(0)
    ids = np.repeat(np.arange(40), rng.integers(1, 6, 40))
    table = {"x": rng.normal(size=ids.size), "id": ids}
    table["y"] = table["x"] + rng.normal(size=40)[ids] + rng.normal(size=ids.size)
    by_person = ScalarRegression("y ~ x").fit(table, groups="id")
    weights = 1 / np.bincount(ids)[ids]
    weighted = ScalarRegression("y ~ x", person_rows="sum").fit(table, groups="id", weights=weights / weights.mean())
    np.testing.assert_allclose(by_person.predict(table), weighted.predict(table), rtol=1e-10)
    np.testing.assert_allclose(by_person.predict_se(table), weighted.predict_se(table), rtol=1e-10)
    assert np.abs(by_person.predict(table) - ScalarRegression("y ~ x").fit(table).predict(table)).max() > 1e-3


def test_curves_by_person_and_by_row():
    rng = np.random.default_rng(1)
    ids = np.repeat(np.arange(30), rng.integers(1, 7, 30))
    level = np.bincount(ids)[ids] / 3.0  # persons with many rows are higher
    table = {"z": rng.normal(size=ids.size), "Y": level[:, None] + rng.normal(size=(ids.size, 12)), "id": ids}
    means = {}
    for law in ("mean", "sum"):
        model = FunctionalRegression("Y ~ z", person_rows=law).fit(table, groups="id")
        means[law] = float(np.asarray(model.predict(table)).mean(axis=1) @ (1 / np.bincount(ids)[ids]) / 30)
    of_persons = np.mean([table["Y"][ids == i].mean() for i in range(30)])
    assert means["mean"] == pytest.approx(of_persons, abs=0.05)
    assert means["sum"] - means["mean"] > 0.2


def test_chunks_count_persons_as_tables_do():
    """They were refused where persons had different numbers of rows."""
    table, _ = person_periods(0, n=200)
    rng = np.random.default_rng(1)
    curves = {
        "age": table["age"],
        "id": table["id"],
        "Y": rng.normal(size=(len(table["id"]), 9)) + table["age"][:, None],
    }
    wanted = rng.uniform(0.5, 2, len(table["id"]))
    for kind, formula, data, told in (
        (ScalarRegression, "y ~ lf(X) + age + period", table, {"family": "binomial"}),
        (FunctionalRegression, "Y ~ age", curves, {}),
        (FunctionalRegression, "Y ~ age", curves | {"w": wanted}, {}),
    ):
        parts = [{name: values[i::3] for name, values in data.items()} for i in range(3)]
        weights = "w" if "w" in data else None
        for law in ("mean", "sum"):
            whole = kind(formula, person_rows=law, **told).fit(data, groups="id", weights=data.get("w"))
            chunked = kind(formula, person_rows=law, **told).fit_chunks(parts, groups="id", weights=weights)
            np.testing.assert_allclose(chunked.predict(data), whole.predict(data), rtol=1e-6)
            np.testing.assert_allclose(chunked.predict_se(data), whole.predict_se(data), rtol=1e-5)
    with pytest.warns(PersonRowsWarning):
        parts = [{name: values[i::3] for name, values in table.items()} for i in range(3)]
        ScalarRegression("y ~ age", family="binomial").fit_chunks(parts, groups="id")


def test_max_rows_is_not_passed_over_in_ordinary_fits():
    """They count all rows: `max_rows` was taken and had no effect, so that private fits answered another question."""
    table, _ = person_periods(0, n=100)
    parts = [{name: values[i::2] for name, values in table.items()} for i in range(2)]

    def fits(**told):
        model = ScalarRegression("y ~ age + period", family="binomial", person_rows="sum").set_params(**told)
        yield lambda: model.fit(table, groups="id")
        yield lambda: model.fit_chunks(parts, groups="id")

    for fit in fits(max_rows=PERIODS):
        fit()
    for fit in fits(max_rows=PERIODS - 1):
        with pytest.raises(InputError, match="max_rows must be at least 8, the rows of a person"):
            fit()
    for fit in fits(person_rows="mean", max_rows=PERIODS):
        with pytest.raises(InputError, match="max_rows must be left out with person_rows='mean', got 8"):
            fit()
    for fit in fits(max_rows="8"):
        with pytest.raises(InputError, match="max_rows must be"):
            fit()
    for kind, data in ((ScalarRegression("y ~ age", max_rows=4), table),):
        with pytest.raises(InputError, match="max_rows must be left out"):
            kind.fit(data)


def test_a_binary_response_with_groups_warns_once_unless_it_is_said():
    table, _ = person_periods(0, n=300)
    told = {"privacy": Privacy(20.0, 1e-6, n=300, random_state=0), "bounds": BOUNDS}
    for settings in ({}, told):
        model = ScalarRegression("y ~ lf(X) + age + period", family="binomial", **settings)
        with pytest.warns(PersonRowsWarning, match="With person_rows='sum' it is about all rows") as seen:
            model.fit(table, groups="id")
        assert len([w for w in seen if w.category is PersonRowsWarning]) == 1
        with warnings.catch_warnings():
            warnings.simplefilter("error", PersonRowsWarning)
            more = {"max_rows": 8} if settings else {}
            model.set_params(person_rows="sum", **more).fit(table, groups="id")


def test_what_does_not_go_together_is_refused():
    table, _ = person_periods(0, n=300)
    private = {"privacy": Privacy(20.0, 1e-6, n=300, random_state=0), "bounds": BOUNDS}
    formula, groups = "y ~ lf(X) + age", {"groups": "id"}
    for told, beside, kind, says in (
        ({"person_rows": "both"}, groups, InputError, "person_rows must be 'mean', 'sum' or None, got 'both'"),
        ({"person_rows": "mean"}, {}, InputError, "groups must be the person id of every row"),
        (private | {"person_rows": "sum"}, groups, PrivacyError, "max_rows must be given with person_rows='sum'"),
        (private | {"max_rows": 4}, groups, PrivacyError, "max_rows must be left out with person_rows='mean'"),
        (
            private | {"person_rows": "sum", "max_rows": 4},
            {},
            PrivacyError,
            "person_rows must be 'mean' without groups",
        ),
    ):
        with pytest.raises(kind, match=says):
            ScalarRegression(formula, family="binomial", **told).fit(table, **beside)


def _tape(monkeypatch, fit, table, privacy, tape=None):
    noise, right = TapeNoise(tape=tape), Privacy.cohort
    with monkeypatch.context() as patch:
        patch.setattr(Privacy, "cohort", lambda self, *args, **told: right(self, *args, **told | {"noise": noise}))
        fit(table, privacy)
    return noise.entries


@pytest.mark.each_once
@pytest.mark.statistics
@pytest.mark.filterwarnings("ignore::fdadp.errors.FdadpWarning")
@pytest.mark.parametrize("delta", [1e-3, None])
@pytest.mark.parametrize(
    ("model", "formula", "family"),
    [
        (ScalarRegression, "y ~ lf(X) + z", "gaussian"),
        (ScalarRegression, "y ~ lf(X) + z", "binomial"),
        (ScalarRegression, "y ~ lf(X) + z", "poisson"),
        (FunctionalRegression, "Y ~ ff(X) + z", "gaussian"),
    ],
)
@pytest.mark.parametrize("law", [{}, {"person_rows": "sum", "max_rows": 3}])
def test_no_person_moves_a_release_by_more_than_was_declared(monkeypatch, model, formula, family, delta, law):
    """Persons of one to five rows, some of extreme entries: each in turn blanked out, or exchanged for another."""
    rng = np.random.default_rng(0)
    ids = np.repeat(np.arange(60), rng.integers(1, 6, 60))
    table = {"X": rng.normal(size=(ids.size, 12)), "z": rng.uniform(-1, 1, ids.size), "id": ids}
    table["Y"], table["y"] = table["X"] + rng.normal(size=(ids.size, 12)), np.rint(rng.uniform(0, 1, ids.size))
    for name, extreme in (("X", 50.0), ("z", 9.0), ("Y", -50.0), ("y", 1.0)):
        table[name][ids < 3] = extreme
    bounds = {
        "X": (-3, 3),
        "z": (-1, 1),
        "Y": (-4, 4),
        "y": {"gaussian": (0, 1), "poisson": (0, 3)}.get(family, [0, 1]),
    }

    def fit(data, privacy):
        model(formula, family=family, privacy=privacy, bounds=bounds, **law).fit(data, groups="id")

    changes = {"zero-out": 0.0, "replace": 0.0}
    for who in (0, 2, 7):
        others = {"zero-out": {**table, "id": np.where(ids == who, np.nan, ids)}, "replace": dict(table)}
        for name in ("X", "z", "Y"):
            others["replace"][name] = np.where(
                (ids == who).reshape(-1, *[1] * (table[name].ndim - 1)), -9.0, table[name]
            )
        for adjacency, other in others.items():
            privacy = Privacy(300.0, delta, n=60, adjacency=adjacency)
            one = _tape(monkeypatch, fit, table, privacy)
            two = _tape(monkeypatch, fit, other, privacy, one)
            assert len(one) == len(two)
            moved = [distance(a, b) / a.sensitivity for a, b in zip(two, one, strict=True)]
            changes[adjacency] = max(changes[adjacency], *moved)
    assert 0.3 < changes["zero-out"] <= 1 and changes["replace"] <= 1


@pytest.mark.parametrize("private", [False, True], ids=["ordinary", "private"])
def test_labels_of_opened_rows_may_be_the_groups(private, tmp_path):
    """A column that labels rows is no covariate, and still says whose each row is."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 8))
    frame = pd.DataFrame(X, columns=[f"h{j}" for j in range(8)])
    frame.insert(0, "y", X.mean(axis=1))
    frame.insert(0, "who", [f"p{i % 20}" for i in range(60)])
    frame.to_csv(tmp_path / "rows.csv", index=False)
    settings = {}
    if private:
        settings = {"privacy": Privacy(9.0, n=20, random_state=0), "bounds": {"h": (-4, 4), "y": (-4, 4)}}
    found = []
    for rows in (None, "who"):
        data = fdadp.open_curves(tmp_path / "rows.csv", curves={"h": "h"}, rows=rows)
        model = ScalarRegression("y ~ lf(h)", progress=False, **settings).fit(data, groups="who")
        found.append(model.fitted_.fit.coefficients)
    np.testing.assert_array_equal(*found)
    if not private:
        frame = frame.set_index("who")
        by_index = ScalarRegression("y ~ z", progress=False).fit(frame.rename(columns={"h0": "z"}), groups="who")
        by_column = ScalarRegression("y ~ z", progress=False).fit(
            frame.rename(columns={"h0": "z"}).reset_index(), groups="who"
        )
        np.testing.assert_array_equal(by_index.vcov(), by_column.vcov())
