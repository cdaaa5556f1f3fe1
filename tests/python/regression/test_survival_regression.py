"""Times to an event: person-periods beside statsmodels, survival of new people, and private hazards."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from hazards import S, followed_by_period
from neighbour_tools import change, observed
from sklearn.base import clone

from fdadp import Privacy, ScalarRegression, SurvivalRegression, concordance
from fdadp.errors import IdentificationWarning, InputError, PrivacyError
from fdadp.regression import survival
from fdadp.regression.reading import person_periods
from fdadp.regression.reading.person_periods import Followed, Periods


def people(n=150, seed=0):
    """Times with ties, censored."""
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((2, n))
    t = np.round(rng.exponential(np.exp(-0.5 * a + 0.3 * b)), 1) + 0.1
    c = np.round(rng.exponential(2, n), 1) + 0.1
    return pd.DataFrame({"a": a, "b": b, "time": np.minimum(t, c), "died": (t <= c).astype(int)})


def hazards(seed, n=3000):
    """A table of persons with curves, true hazards (n, 8) and the periods that each was seen in."""
    return followed_by_period(n, np.random.default_rng(seed))


BOUNDS = {"X": (-4, 4), "age": (-1, 1)}


def private(seed=0, n=3000, **told):
    privacy = Privacy(1.0, 1e-6, n=n, random_state=seed)
    settings = {"formula": "Surv(time, died) ~ lf(X) + age", "times": range(9), "privacy": privacy, "bounds": BOUNDS}
    return SurvivalRegression(progress=False, **settings | told)


def test_poisson_person_periods_are_cox_with_breslow_s_ties():
    table = people()
    model = SurvivalRegression("Surv(time, died) ~ a + b", family="poisson").fit(table)
    cox = sm.PHReg(table["time"], table[["a", "b"]], status=table["died"], ties="breslow").fit(tol=1e-14)
    own = [model.model_.coef(name, se=True)[["value", "se"]].iloc[0] for name in ("a", "b")]
    np.testing.assert_allclose([row["value"] for row in own], cox.params, atol=1e-8)
    np.testing.assert_allclose([row["se"] for row in own], cox.bse, atol=1e-6)
    effect = np.exp((table[["a", "b"]] @ cox.params).to_numpy())  # Breslow's cumulated hazard
    ends, t = model.times_[1:], table["time"].to_numpy()
    died = [((t == end) & (table["died"] == 1)).sum() for end in ends]
    cumulated = np.cumsum([d / effect[t >= end].sum() for d, end in zip(died, ends, strict=True)])
    np.testing.assert_allclose(model.predict_survival(table, ends), np.exp(-cumulated * effect[:, None]), atol=1e-8)
    assert "at the times of events" in str(model.summary())
    assert "at the times of events" in model._repr_html_()


def test_binomial_person_periods_are_a_generalised_linear_model():
    table, ends = people(300, seed=1), np.array([0.5, 1.0, 1.5, 2.0])
    model = SurvivalRegression("Surv(time, died) ~ a + b", times=[0, *ends]).fit(table)
    rows = []
    for a, b, t, died in table.itertuples(index=False):
        for k, end in enumerate(ends):
            here = end - 0.5 < t <= end
            if (died and here) or t >= (end if died else end - 0.25):
                rows.append([*np.eye(4)[k], a, b, died and here])
    design = np.array(rows)
    glm = sm.GLM(design[:, -1], design[:, :-1], sm.families.Binomial()).fit(tol=1e-14)
    found = [model.model_.coef(name)["value"].iloc[0] for name in ("a", "b")]
    np.testing.assert_allclose(found, glm.params[4:], atol=1e-8)
    np.testing.assert_allclose(
        model.predict(table, type="hazard").iloc[:, 2],
        1 / (1 + np.exp(-(table[["a", "b"]] @ glm.params[4:] + glm.params[2]))),
        atol=1e-8,
    )
    np.testing.assert_allclose(model.baseline_hazard()["hazard"], 1 / (1 + np.exp(-glm.params[:4])), atol=1e-8)
    assert f"{len(rows)} person-periods in 4 periods, as given" in str(model.summary())


def test_who_counts_in_which_period():
    """Half of a period is enough for censored persons with hazards of periods, and is not in Cox's likelihood."""
    time = np.array([0.0, 1.0, 1.4, 1.5, 2.0, 9.0, np.nan, -1.0, 1.0])
    nan, always = np.nan, np.full(9, -np.inf)
    lived, ended = Followed(time, np.zeros(9), always), Followed(time, np.ones(9), always)
    censored = Periods(np.array([0.0, 1.0, 2.0]), rule="half").responses(lived)
    assert np.array_equal(censored[:6], [[nan, nan], [0, nan], [0, nan], [0, 0], [0, 0], [0, 0]], equal_nan=True)
    to_end = Periods(np.array([0.0, 1.0, 2.0]), rule="end").responses(lived)
    assert np.array_equal(to_end[:6], [[nan, nan], [0, nan], [0, nan], [0, nan], [0, 0], [0, 0]], equal_nan=True)
    died = Periods(np.array([0.0, 1.0, 2.0]), rule="end").responses(ended)
    assert np.array_equal(died[:6], [[1, nan], [1, nan], [0, 1], [0, 1], [0, 1], [0, 0]], equal_nan=True)
    odd = Followed(time, np.full(9, 2.0), always)
    assert np.isnan(died[6:8]).all() and np.isnan(Periods(np.array([0.0, 1.0]), "end").responses(odd)).all()


@pytest.mark.parametrize(
    ("rule", "lived"),
    [
        ("half", [[nan := np.nan, 0], [0, 0], [nan, 0], [nan, nan], [nan, nan], [nan, nan]]),
        ("end", [[0, 0], [0, 0], [nan, 0], [nan, nan], [nan, nan], [nan, nan]]),
        ("exposure", [[0, 0], [0, 0], [nan, 0], [nan, 0], [nan, nan], [nan, nan]]),
    ],
)
def test_who_counts_in_the_period_of_the_entry(rule, lived):
    """Entries are taken to the nearest edge, or count for as long as was seen; events always count."""
    entry, time = np.array([0.5, 0.4, 1.0, 1.6, 2.0, nan]), np.array([2.0, 2.0, 2.0, 1.8, 1.9, 2.0])
    periods = Periods(np.array([0.0, 1.0, 2.0]), rule=rule)
    found = periods.responses(Followed(time, np.zeros(6), entry))
    assert np.array_equal(found, lived, equal_nan=True)
    died = periods.responses(Followed(time, np.ones(6), entry))
    assert (died[:4, 1] == 1).all() and np.isnan(died[4:]).all()
    if rule == "exposure":
        person, period = np.nonzero(np.isfinite(found))
        np.testing.assert_allclose(
            periods.exposures(Followed(time, np.zeros(6), entry), person, period), [0.5, 1, 0.6, 1, 1, 0.2]
        )


def late(n, seed, digits=1):
    """People who come under observation late: those whose event was before are not there."""
    rng = np.random.default_rng(seed)
    table = people(3 * n, seed)
    table["time"] = np.round(table["time"] + 1e-3 * rng.random(3 * n), digits)
    table["entry"] = np.round(rng.uniform(-0.5, 1.0, 3 * n).clip(0), digits)
    return table[table["time"] > table["entry"]].iloc[:n].reset_index(drop=True)


@pytest.mark.parametrize(("n", "digits"), [(150, 1), (400, 6)])
def test_late_entries_are_those_of_cox_s_regression(n, digits):
    """By person-periods, and by sums over those at risk; errors and the baseline hazard, too."""
    table = late(n, 3, digits)
    model = SurvivalRegression("Surv(entry, time, died) ~ a + b", family="poisson").fit(table)
    assert (model.model_.fitted_.steps is None) == (digits == 1)
    own = {
        "status": table["died"],
        "entry": table["entry"] + 1e-9,
        "ties": "breslow",
    }  # not at risk at the entry, as in R
    cox = sm.PHReg(table["time"], table[["a", "b"]], **own).fit(tol=1e-14)
    found = [model.model_.coef(name, se=True)[["value", "se"]].iloc[0] for name in ("a", "b")]
    np.testing.assert_allclose([row["value"] for row in found], cox.params, atol=1e-8)
    np.testing.assert_allclose([row["se"] for row in found], cox.bse, rtol=1e-5)
    effect, ends = np.exp((table[["a", "b"]] @ cox.params).to_numpy()), model.times_[1:]
    t, e = table["time"].to_numpy(), table["entry"].to_numpy()
    died = [((t == end) & (table["died"] == 1)).sum() for end in ends]
    cumulated = np.cumsum([d / effect[(t >= end) & (e < end)].sum() for d, end in zip(died, ends, strict=True)])
    np.testing.assert_allclose(model.predict_survival(table, ends), np.exp(-cumulated * effect[:, None]), atol=1e-7)
    assert f"{n} rows, " in str(model.summary())
    without = SurvivalRegression("Surv(time, died) ~ a + b", family="poisson").fit(table)
    early = [float(one.predict_survival(table, [0.5]).mean().iloc[0]) for one in (without, model)]
    assert early[0] - early[1] > 0.05  # whom late entry hides


@pytest.mark.parametrize(("told", "digits"), [({"times": [0, 0.5, 1, 2, 4]}, 1), ({}, 1), ({}, 6)])
def test_a_person_in_stretches_is_the_person(told, digits):
    """Exposures and risk sets are the same where a row is cut anywhere."""
    table = late(400, 5, digits)
    cut = (table["entry"] + 0.37 * (table["time"] - table["entry"])).round(digits)
    inside = (cut > table["entry"]) & (cut < table["time"])
    first = table.assign(time=cut.where(inside, table["time"]), died=table["died"].where(~inside, 0))
    both = pd.concat([first, table.assign(entry=cut)[inside]]).sample(frac=1, random_state=0)
    formula = f"Surv(entry, time, died) ~ a + {'b' if told else 's(b)'}"
    settings = {"family": "poisson", "smoothing": "reml" if told else [1.0], **told}
    whole, parts = (SurvivalRegression(formula, **settings).fit(rows) for rows in (table, both))
    np.testing.assert_allclose(parts.predict_survival(table), whole.predict_survival(table), rtol=1e-7)
    edges = settings.get("times", [0])
    assert len(both) > 500 and set(edges) <= set(whole.times_)


def test_a_covariate_that_changes_is_found_by_stretches():
    """The dose doubles the hazard from when on it is given; who is given it later lived until then."""
    rng, n = np.random.default_rng(2), 4000
    switch = rng.exponential(2.0, n)
    before, after = rng.exponential(4.0, n), rng.exponential(2.0, n)
    end = np.where(before < switch, before, switch + after)
    seen = np.minimum(end, rng.uniform(1, 8, n))
    given = switch < seen
    first = pd.DataFrame({"entry": 0.0, "time": np.minimum(switch, seen), "died": (end <= seen) & ~given, "dose": 0.0})
    then = pd.DataFrame({"entry": switch, "time": seen, "died": end <= seen, "dose": 1.0})[given]
    rows = pd.concat([first, then]).assign(id=[*range(n), *np.flatnonzero(given)])
    for settings in ({"times": range(9)}, {"times": np.arange(0, 8.1, 0.25)}, {"family": "poisson"}):
        model = SurvivalRegression("Surv(entry, time, died) ~ dose", **settings).fit(rows)
        effect = model.model_.coef("dose", se=True).iloc[0]
        assert abs(effect["value"] - np.log(2)) < 3 * effect["se"] < 0.25, settings
    ever = pd.DataFrame({"time": seen, "died": end <= seen, "dose": given * 1.0})
    wrong = SurvivalRegression("Surv(time, died) ~ dose", family="poisson").fit(ever)
    assert wrong.model_.coef("dose")["value"].iloc[0] < 0.3  # the time before it is given counted for it
    private = SurvivalRegression(
        "Surv(entry, time, died) ~ dose",
        times=range(9),
        bounds={"dose": (0, 1)},
        privacy=Privacy(4.0, 1e-6, n=n, random_state=0),
        progress=False,
    ).fit(rows.drop(columns="id"), groups=rows["id"])
    assert abs(private.model_.coef("dose")["value"].iloc[0] - np.log(2)) < 0.3


def test_the_order_and_the_container_of_rows_say_nothing():
    from skfda import FDataGrid

    table, _, _ = hazards(0, n=300)
    settings = {"formula": "Surv(time, died) ~ lf(X) + s(age)", "times": range(9), "smoothing": [1.0] * 2}
    settings["baseline"] = "factor"
    one = SurvivalRegression(**settings).fit(table)
    order = np.random.default_rng(0).permutation(300)
    shuffled = SurvivalRegression(**settings).fit({name: column[order] for name, column in table.items()})
    survival = one.predict_survival(table)
    np.testing.assert_allclose(shuffled.predict_survival(table), survival, rtol=1e-6)
    curves = FDataGrid(table["X"], S)
    of_curves = {**table, "X": curves}
    again = SurvivalRegression(**settings).fit(of_curves)
    shown = again.predict_survival(of_curves)
    assert isinstance(shown, FDataGrid)
    np.testing.assert_allclose(shown.data_matrix[..., 0], survival, rtol=1e-8)
    frame = pd.DataFrame({name: table[name] for name in ("age", "time")}, index=[f"p{i}" for i in range(300)])
    frame["X"], frame["died"] = curves, table["died"] == 1
    shown = SurvivalRegression(**settings).fit(frame).predict_survival(frame, [2, 3.5])
    assert shown.index.equals(frame.index) and shown.columns.tolist() == [2, 3.5]
    np.testing.assert_allclose(shown, survival[:, [2, 3]], rtol=1e-8)
    risk = again.predict(frame)
    assert risk.index.equals(frame.index)
    np.testing.assert_allclose(risk, 1 - survival[:, -1], rtol=1e-8)


def test_the_fit_is_that_of_the_rows_as_written():
    table, _, seen = hazards(1, n=400)
    i, k = np.nonzero(seen)
    rows = {"X": table["X"][i], "age": table["age"][i], "period": k + 1.0}
    rows["died"] = ((table["died"][i] == 1) & (k + 1 == table["time"][i])) * 1.0
    by_hand = ScalarRegression("died ~ lf(X) + age * period", family="binomial").fit(rows)
    model = SurvivalRegression("Surv(time, died) ~ lf(X) + age + age:period", times=range(9), baseline="linear").fit(
        table
    )
    hazard = model.predict(table, type="hazard")
    np.testing.assert_allclose(hazard[seen], by_hand.predict(rows), rtol=1e-6)
    assert concordance(table["time"], table["died"], model.predict(table)) > 0.6


@pytest.mark.parametrize("family", ["binomial", "poisson"])
def test_survival_in_wide_periods_is_that_of_the_persons(family):
    """Everybody is censored by the end: who was seen to the end of a period alone gave .11 for .26."""
    rng, n = np.random.default_rng(0), 20000
    t, c = rng.exponential(6, n), rng.uniform(0, 8, n)
    table = {"a": rng.normal(size=n), "time": np.minimum(t, c), "died": t <= c}
    model = SurvivalRegression("Surv(time, died) ~ a", times=range(9), family=family).fit(table)
    survival = model.predict_survival({"a": np.zeros(1)}, [2, 4, 6, 8])[0]
    np.testing.assert_allclose(survival, np.exp(-np.array([2, 4, 6, 8]) / 6), atol=0.02)
    np.testing.assert_allclose(model.baseline_hazard()["survival"].iloc[1::2], survival, rtol=1e-10)


@pytest.mark.each_once
@pytest.mark.parametrize("family", ["binomial", "poisson"])
@pytest.mark.parametrize("baseline", ["factor", "smooth", "linear"])
def test_saved_models_predict_the_same(baseline, family, tmp_path):
    table = people(300)
    settings = {"times": np.linspace(0, 2, 6), "baseline": baseline, "family": family}
    model = SurvivalRegression("Surv(time, died) ~ a", **settings).fit(table)
    again = SurvivalRegression.load(model.save(tmp_path / "model.npz"))
    pd.testing.assert_frame_equal(again.predict_survival(table), model.predict_survival(table))
    pd.testing.assert_frame_equal(again.baseline_hazard(), model.baseline_hazard())
    at_zero = model.predict(pd.DataFrame({"a": [0.0]}), type="hazard").iloc[0]
    np.testing.assert_allclose(model.baseline_hazard()["hazard"], at_zero, rtol=1e-10)
    assert len(model.plot_survival().axes[0].lines) == 1
    assert len(model.plot_survival(table.head(3)).axes[0].lines) == 3


def test_a_saved_cox_regression_has_no_exposures(tmp_path):
    table = people()
    model = SurvivalRegression("Surv(time, died) ~ a", family="poisson").fit(table)
    again = SurvivalRegression.load(model.save(tmp_path / "model.npz"))
    pd.testing.assert_frame_equal(again.predict_survival(table), model.predict_survival(table))
    pd.testing.assert_frame_equal(again.baseline_hazard(), model.baseline_hazard())


def test_a_piecewise_exponential_model_is_one_with_exposures():
    table, ends = people(300, seed=1), np.array([0.5, 1.0, 1.5, 2.0])
    model = SurvivalRegression("Surv(time, died) ~ a + b", times=[0, *ends], family="poisson").fit(table)
    rows = []
    for a, b, t, died in table.itertuples(index=False):
        for k, end in enumerate(ends):
            if t > end - 0.5:
                rows.append([*np.eye(4)[k], a, b, min(t, end) - end + 0.5, died and t <= end])
    design = np.array(rows)
    family = sm.families.Poisson()
    glm = sm.GLM(design[:, -1], design[:, :6], family, exposure=design[:, 6]).fit(tol=1e-14)
    found = [model.model_.coef(name)["value"].iloc[0] for name in ("a", "b")]
    np.testing.assert_allclose(found, glm.params[4:], atol=1e-8)
    np.testing.assert_allclose(model.baseline_hazard()["hazard"], 0.5 * np.exp(glm.params[:4]), atol=1e-8)
    with pytest.raises(InputError, match="time must be above 0, where time begins"):
        clone(model).fit(pd.concat([table, pd.DataFrame({"a": [0.0], "b": 0.0, "time": 0.0, "died": 1})]))


def test_columns_that_the_formula_does_not_name_may_have_gaps():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=200), "time": rng.exponential(2, 200), "died": np.arange(200) % 2})
    beside = table.assign(note=np.where(np.arange(200) == 3, np.nan, 1.0), text=None)
    for times in (None, range(4)):
        model = SurvivalRegression("Surv(time, died) ~ a", times=times, family="poisson")
        found = [clone(model).fit(own).model_.coefficients_ for own in (table, beside)]
        np.testing.assert_array_equal(*found)


def test_missing_covariates_are_named_by_the_row_of_the_person():
    table = people()
    table.loc[3, "a"] = np.nan
    with pytest.raises(InputError, match="a must have a finite number in every row, got none in row 3"):
        SurvivalRegression("Surv(time, died) ~ a + b", times=range(3)).fit(table)
    table.loc[::5, "a"] = np.nan
    for missing in ("indicator", {"a": "indicator"}):
        model = SurvivalRegression("Surv(time, died) ~ a + b", times=range(3), missing=missing).fit(table)
        assert "missing(a)" in model.model_.term_names_


def continuous(n=1500, seed=0):
    """As many times as persons, and an effect of b that is no line."""
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((2, n))
    t, c = rng.exponential(np.exp(-0.5 * a + 0.3 * np.sin(2 * b))), rng.exponential(2, n)
    return pd.DataFrame({"a": a, "b": b, "time": np.minimum(t, c), "died": t <= c})


def breslow(table, effect):
    """Cumulated hazard at the times of events."""
    t, died = table["time"].to_numpy(), table["died"].to_numpy() == 1
    ends, deaths = np.unique(t[died], return_counts=True)
    return ends, np.cumsum([d / effect[t >= end].sum() for d, end in zip(deaths, ends, strict=True)])


@pytest.mark.parametrize("digits", [12, 3])
def test_cox_s_regression_has_a_step_at_each_of_a_thousand_times(digits):
    table = continuous(2000)
    table["time"] = table["time"].round(digits) + 0.001
    model = SurvivalRegression("Surv(time, died) ~ a + b", family="poisson").fit(table)
    cox = sm.PHReg(table["time"], table[["a", "b"]], status=table["died"], ties="breslow").fit(tol=1e-14)
    own = pd.concat([model.model_.coef(name, se=True) for name in ("a", "b")])
    np.testing.assert_allclose(own["value"], cox.params, atol=1e-8)
    np.testing.assert_allclose(own["se"], cox.bse, atol=1e-8)
    assert model.model_.loglik_ == pytest.approx(cox.llf, rel=1e-10)
    effect = np.exp((table[["a", "b"]] @ cox.params).to_numpy())
    ends, cumulated = breslow(table, effect)
    np.testing.assert_array_equal(model.times_, [0, *ends])
    assert ends.size > (1000 if digits == 12 else 700)
    at = ends[::50]
    np.testing.assert_allclose(
        model.predict_survival(table, [0, *at]),
        np.exp(-np.outer(effect, [0, *cumulated[::50]])),
        atol=1e-8,
    )
    np.testing.assert_allclose(model.predict(table), 1 - np.exp(-effect * cumulated[-1]), atol=1e-8)
    np.testing.assert_allclose(model.baseline_hazard()["survival"], np.exp(-cumulated), atol=1e-8)
    few = table.head(5)
    hazards = model.predict(few, type="hazard")
    np.testing.assert_allclose(hazards.cumsum(axis=1).iloc[:, -1], effect[:5] * cumulated[-1], rtol=1e-6)
    np.testing.assert_allclose(model.predict(few, type="link"), np.log(hazards), rtol=1e-6)
    assert f"events at {ends.size} times, by Cox's partial likelihood" in str(model.summary())
    residuals = model.model_.residuals_  # martingale residuals
    assert residuals.sum() == pytest.approx(0, abs=1e-6) and residuals.max() < 1


@pytest.mark.parametrize("formula", ["a + s(b, k=6, bs='cr')", "lf(X) + C(where)", "a + b + offset(log(size))"])
def test_the_partial_likelihood_is_what_person_periods_give(formula, monkeypatch):
    """Smoothing parameters too: person-periods have the same REML but for constants."""
    table = continuous(400)
    table["time"] = np.ceil(table["time"] * 20) / 20
    rng = np.random.default_rng(1)
    data = {name: table[name].to_numpy() for name in table}
    scores = rng.normal(size=(400, 3))
    data["X"] = scores @ np.stack([np.ones(25), np.sin(2 * np.pi * S), np.cos(2 * np.pi * S)])
    data["where"], data["size"] = rng.choice(["here", "there"], 400), rng.uniform(1, 2, 400)
    model = SurvivalRegression(f"Surv(time, died) ~ {formula}", family="poisson")
    periods = clone(model).fit(data)
    assert 20 < periods.times_.size <= 101 and periods.baseline_ == "C(period)"
    monkeypatch.setattr(survival, "MOST_PERIODS", 10)
    cox = model.fit(data)
    assert cox.model_.fitted_.steps is not None
    ours, theirs = (1 / (1 + m.model_.smoothing_parameters_) for m in (cox, periods))  # one of them is infinite
    np.testing.assert_allclose(ours, theirs, atol=1e-6)
    np.testing.assert_allclose(cox.predict_survival(data), periods.predict_survival(data), atol=1e-6)
    for name in cox.model_.term_names_[1:]:
        assert cox.model_.term_edf_[name] == pytest.approx(periods.model_.term_edf_[name], rel=1e-5)
        if name == "s(b)":  # about its mean over persons, and over person-periods
            continue
        ours, theirs = (m.model_.coef(name, se=True)[["value", "se"]] for m in (cox, periods))
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


@pytest.mark.statistics
def test_the_error_of_the_cumulated_hazard_counts_that_of_the_coefficients():
    """Of 200 samples: where a is 1, of the logarithm at the last time that most reach."""
    found, told = [], []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        a = rng.normal(size=250)
        t = rng.exponential(np.exp(-a))
        table = {"a": a, "time": np.minimum(t, 1.0), "died": t <= 1}
        model = SurvivalRegression("Surv(time, died) ~ a", family="poisson").fit(table)
        new = {"a": np.ones(1), "exposure": np.ones(1)}
        found.append(model.model_.predict(new, type="link")[0])
        told.append(model.model_.predict_se(new, type="link")[0])
    assert np.mean(told) == pytest.approx(np.std(found), rel=0.15)
    assert np.mean(found) == pytest.approx(1.0, abs=0.04)  # a cumulated hazard of e at time 1


def test_saved_steps_predict_the_same(tmp_path):
    table = continuous(600)
    model = SurvivalRegression("Surv(time, died) ~ a + s(b, k=5)", family="poisson").fit(table)
    again = SurvivalRegression.load(model.save(tmp_path / "model.npz"))
    pd.testing.assert_frame_equal(again.predict_survival(table), model.predict_survival(table))
    pd.testing.assert_frame_equal(again.baseline_hazard(), model.baseline_hazard())
    pd.testing.assert_frame_equal(again.model_.test_terms(), model.model_.test_terms())
    assert again.times is None and len(model.plot_survival(table.head(2)).axes[0].lines) == 2


def test_many_times_are_cut_at_quantiles_where_they_have_no_steps():
    """For hazards of periods, groups and effects that change in time."""
    table = continuous(400)
    for told, groups in (({"family": "binomial"}, None), ({}, np.arange(400) // 2)):
        model = SurvivalRegression(**{"formula": "Surv(time, died) ~ a", "family": "poisson"} | told)
        model.fit(table, groups=groups)
        assert model.times_.size == 101 and np.isin(model.times_[1:], table["time"]).all()
        assert "in 100 periods, at quantiles of the times of events" in str(model.summary())
    formula = "Surv(time, died) ~ a + a:period"
    assert SurvivalRegression(formula, family="poisson").fit(table).times_.size == 101


def test_missing_covariates_and_constants_that_events_do_not_identify():
    table = continuous(400)
    table.loc[3, "a"] = np.nan
    model = SurvivalRegression("Surv(time, died) ~ a + b", family="poisson")
    with pytest.raises(InputError, match="a must have a finite number in every row, got none in row 3"):
        model.fit(table)
    table.loc[::5, "a"] = np.nan
    assert "missing(a)" in clone(model).set_params(missing="indicator").fit(table).model_.term_names_
    table = continuous(400).assign(where="here")
    table.loc[table.index[~table["died"]][:5], "where"] = "there"
    with pytest.warns(IdentificationWarning, match="where separates the responses"):
        clone(model).set_params(formula="Surv(time, died) ~ a + C(where)").fit(table)
    with pytest.raises(InputError, match="time must be above 0"):
        clone(model).fit(table.assign(time=np.where(table["died"], 0.0, 1.0)))


@pytest.mark.parametrize(
    ("formula", "told", "columns", "message"),
    [
        ("died ~ a", {}, {}, "formula must be text such as"),
        ("Surv(time, time) ~ a", {}, {}, "time twice"),
        ("Surv(time, gone) ~ a", {}, {}, "gone"),
        ("Surv(time, died) ~ a + time", {}, {}, "time"),
        ("Surv(time, died) ~ a", {"times": [0, 2, 1]}, {}, "times must be increasing"),
        ("Surv(time, died) ~ a", {"times": range(200)}, {}, "at most 100 periods, got 199"),
        ("Surv(time, died) ~ a", {"times": [50, 60]}, {}, "at least one event"),
        ("Surv(time, died) ~ a", {"times": [0, 1, 50, 60], "baseline": "factor"}, {}, "constant is not finite"),
        ("Surv(time, died) ~ a", {"times": [0, 1, 2], "baseline": "smooth"}, {}, "fewer than 4 periods"),
        ("Surv(time, died) ~ a", {"family": "gaussian"}, {}, "family must be one of"),
        ("Surv(time, died) ~ a", {"person_rows": "mean"}, {}, "person_rows must be 'sum'"),
        ("Surv(time, died) ~ a", {}, {"died": 0}, "at least one person"),
        ("Surv(time, died) ~ a", {}, {"died": 2}, r"1 \(the event\) or 0 \(censored\), got 2 in row 0"),
        ("Surv(time, died) ~ a", {}, {"time": -1.0}, "time must be at least 0"),
        ("Surv(time, died) ~ a", {}, {"time": np.nan}, "time"),
        ("Surv(time, died) ~ a", {}, {"period": 1.0}, "no column called 'period'"),
        ("Surv(time, time, died) ~ a", {}, {}, "time twice"),
        ("Surv(came, time, died) ~ a", {}, {}, "came"),
        ("Surv(came, time, died) ~ a", {}, {"came": 9.0}, "came must be before time, got 9 and .* in row 0"),
        ("Surv(came, time, died) ~ a", {}, {"came": np.nan}, "came must be known and finite for everybody"),
        ("Surv(came, time, died, a) ~ b", {}, {}, "formula must be text such as"),
    ],
)
def test_what_is_refused(formula, told, columns, message):
    with pytest.raises(InputError, match=message):
        SurvivalRegression(formula, **told).fit(people().assign(**columns))


def test_too_many_rows_and_times_beyond_the_last_are_refused(monkeypatch):
    model = SurvivalRegression("Surv(time, died) ~ a", times=[0, 1, 2]).fit(people())
    with pytest.raises(InputError, match="times must lie within 0 and 2"):
        model.predict_survival(people(), [3.0])
    monkeypatch.setattr(person_periods, "MOST_ROWS", 100)
    with pytest.raises(InputError, match=r"at most 100 person-periods, got .*: give fewer times.*; Cox's regression"):
        clone(model).fit(people())


# --- private


@pytest.mark.parametrize("family", ["binomial", "poisson"])
def test_a_private_fit_is_that_of_the_rows_that_persons_have(family):
    """Rows after the event are nobody's: as if they were not there, which the number of rows must not count."""
    table, _, seen = hazards(0, n=1000)
    i, k = np.nonzero(seen)
    rows = {"X": table["X"][i], "age": table["age"][i], "period": k + 1.0}
    rows["died"] = ((table["died"][i] == 1) & (k + 1 == table["time"][i])) * 1.0
    bounds = {**BOUNDS, "period": (1, 8), "died": [0, 1] if family == "binomial" else (0, 1)}
    privacy = Privacy(5.0, 1e-6, n=1000, random_state=3)
    by_hand = ScalarRegression(
        "died ~ lf(X) + age + period", family=family, privacy=privacy, bounds=bounds, person_rows="sum", max_rows=8
    ).fit(rows, groups=i)
    model = private(n=1000, family=family, baseline="linear", privacy=privacy).fit(table)
    np.testing.assert_allclose(model.predict(table, type="hazard")[seen], by_hand.predict(rows), rtol=1e-6)
    assert "each row counts once, at most 8 rows a person" in str(model.summary())
    assert "8 public periods from 0 to 8" in str(model.summary())


def test_a_person_moves_the_sums_by_at_most_the_sensitivity():
    table, _, _ = hazards(0, n=60)
    other = {name: column.copy() for name, column in table.items()}
    other["X"][7], other["age"][7], other["time"][7], other["died"][7] = 100.0, -5.0, 8.0, 0.0
    table["time"][7], table["died"][7] = 1.0, 1.0

    def fit(data):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            private(n=60, privacy=Privacy(20.0, 1e-6, n=60, random_state=0)).fit(data)

    gone = {name: column.copy() for name, column in table.items()}
    gone["time"][7] = np.nan
    assert 0 < change(fit, table, gone) <= 1
    assert 0.5 < change(fit, other, gone) <= 1  # all periods, and far from the others


def test_a_person_who_is_not_there_moves_the_sums_by_at_most_the_sensitivity():
    """Without a declared n: the table has a row less, so that all later persons have other numbers."""
    table, _, _ = hazards(0, n=60)
    table["X"][7], table["age"][7], table["time"][7], table["died"][7] = 100.0, -5.0, 8.0, 0.0
    gone = {name: np.delete(column, 7, axis=0) for name, column in table.items()}

    def fit(data):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            private(privacy=Privacy(40.0, 1e-6, random_state=0)).fit(data)

    assert 0.5 < change(fit, table, gone) <= 1


def test_nothing_but_shapes_is_looked_at():
    """Odd entries of one person change neither errors, warnings nor what is spent."""
    table, _, _ = hazards(0, n=60)
    model = private(n=60, privacy=Privacy(20.0, 1e-6, n=60, random_state=0))
    import polars as pl

    said = observed(lambda data: clone(model).fit(data), table)[1:]
    assert said[0] is None
    for odd in ({"time": -3.0}, {"time": "?"}, {"died": 7}, {"died": None}, {"time": np.inf}, {"age": "x"}):
        other = {name: list(column) if name != "X" else column for name, column in table.items()}
        for name, entry in odd.items():
            other[name][5] = entry
        assert observed(lambda data: clone(model).fit(data), other)[1:] == said
        other = {name: column if name == "X" else pl.Series(column, strict=False) for name, column in other.items()}
        assert observed(lambda data: clone(model).fit(data), other)[1:] == said


@pytest.mark.parametrize(
    ("told", "error", "message"),
    [
        ({"times": None}, PrivacyError, "times must give public ends of periods in a private fit"),
        ({"person_rows": "mean"}, InputError, "rows end with the event"),
        ({"bounds": {"age": (-1, 1)}}, PrivacyError, "X"),
        ({"bounds": 3}, InputError, "bounds must be a mapping"),
        ({"privacy": 1.0}, InputError, "privacy must be a Privacy"),
        (
            {"privacy": Privacy(1.0, 1e-6, n=60, unit="person")},
            PrivacyError,
            "groups must be the person id of every row",
        ),
        ({"privacy": Privacy(1.0, 1e-6, n=60, unit="row")}, PrivacyError, "must not have unit='row'"),
        ({"privacy": Privacy(1.0, 1e-6, n=10**6)}, InputError, "at most 2,000,000 person-periods, got 8,000,000"),
    ],
)
def test_what_is_refused_privately(told, error, message):
    with pytest.raises(error, match=message):
        private(n=60, **told).fit(hazards(0, n=60)[0])


def test_columns_with_labels_of_their_own_are_not_joined():
    table, _, _ = hazards(0, n=60)
    columns = {name: pd.Series(table[name]) for name in ("age", "time", "died")}
    with pytest.raises(InputError, match="data must be one data frame"):
        private(n=60, formula="Surv(time, died) ~ age").fit(columns)
    arrays = {name: column.to_numpy() for name, column in columns.items()}
    frame = pd.DataFrame(arrays, index=[f"p{i}" for i in range(60)])
    found = []
    for data in (arrays, frame):
        privacy = Privacy(20.0, 1e-6, n=60, random_state=0)
        found.append(private(formula="Surv(time, died) ~ age", privacy=privacy).fit(data).predict(frame))
    pd.testing.assert_series_equal(*found)
    assert found[0].index.equals(frame.index)


def containers():
    import polars as pl
    import pyarrow as pa
    import xarray as xr

    table, _, _ = hazards(0, n=60)
    del table["X"]
    yield table
    yield pl.DataFrame(table)
    yield pa.table(table)
    yield {name: column.tolist() for name, column in table.items()}
    yield {name: xr.DataArray(column, dims="person") for name, column in table.items()}


def test_containers_say_nothing():
    ordinary, found = [], []
    for data in containers():
        privacy = Privacy(20.0, 1e-6, n=60, random_state=0)
        formula = "Surv(time, died) ~ age"
        found.append(np.asarray(private(formula=formula, privacy=privacy).fit(data).predict(data)))
        ordinary.append(np.asarray(SurvivalRegression(formula, times=range(9)).fit(data).predict(data)))
    assert len(found) == 5
    for one, other in zip(found, ordinary, strict=True):
        np.testing.assert_array_equal(one, found[0])
        np.testing.assert_allclose(other, ordinary[0], rtol=1e-12)


def test_rows_of_one_person_are_protected_together():
    """With groups a person of two rows moves the sums by no more than its sensitivity; without, it is two persons."""
    table, _, _ = hazards(0, n=60)
    table["id"] = np.array([f"p{i // 2}" for i in range(60)])
    for name, value in {"X": 100.0, "age": -5.0, "time": 8.0, "died": 0.0}.items():
        table[name][6:8] = value
    gone = {name: column.copy() for name, column in table.items()}
    gone["time"][6:8] = np.nan

    def fit(data, groups="id"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            private(privacy=Privacy(40.0, 1e-6, n=30, random_state=0)).fit(data, groups=groups)

    assert 0.5 < change(fit, table, gone) <= 1
    assert change(lambda data: fit(data, None), table, gone) > 1
    household = [(i // 2, "a") for i in range(60)]  # ids of several parts
    assert change(lambda data: fit(data, household), table, gone) == change(fit, table, gone)


def test_groups_of_an_ordinary_fit_are_clusters():
    table, _, seen = hazards(0, n=200)
    ids = np.arange(200) // 2
    i, k = np.nonzero(seen)
    rows = {"age": table["age"][i], "period": k + 1.0}
    rows["died"] = ((table["died"][i] == 1) & (k + 1 == table["time"][i])) * 1.0
    by_hand = ScalarRegression("died ~ age + period", family="binomial", person_rows="sum").fit(rows, groups=ids[i])
    settings = {"formula": "Surv(time, died) ~ age", "times": range(9), "baseline": "linear"}
    model = SurvivalRegression(**settings).fit({**table, "id": ids}, groups="id").model_
    np.testing.assert_allclose(model.vcov(), by_hand.vcov(), rtol=1e-8)
    np.testing.assert_allclose(SurvivalRegression(**settings).fit(table, groups=ids).model_.vcov(), by_hand.vcov())
    with pytest.raises(InputError, match="one id a person, 200 in all"):
        SurvivalRegression(**settings).fit(table, groups=ids[:-1])


def test_private_models_are_saved_and_planned(tmp_path):
    table, _, _ = hazards(0, n=500)
    model = private(privacy=Privacy(5.0, 1e-6, n=500, random_state=0)).fit(table)
    again = SurvivalRegression.load(model.save(tmp_path / "model.npz"))
    np.testing.assert_array_equal(again.predict_survival(table), model.predict_survival(table))
    assert again.ledger_.promise == model.ledger_.promise
    assert private(n=500).plan({"X": 25}).max_rows == 8
    with pytest.raises(InputError, match="privacy must be a Privacy for a plan"):
        private(privacy=None).plan()


@pytest.mark.statistics
def test_private_hazards_are_accurate():
    """3,000 people at epsilon 1: mean hazard within .01, slope of log-odds .95 to 1.05."""
    found = []
    for seed in range(5):
        (table, _, _), (new, true, seen) = hazards(seed), hazards(100 + seed)
        p = private(seed, baseline="linear").fit(table).predict(new, type="hazard")[seen]
        found.append((p.mean() - true[seen].mean(), np.polyfit(*(np.log(h / (1 - h)) for h in (true[seen], p)), 1)[0]))
    off, slope = np.mean(found, axis=0)
    assert abs(off) < 0.01
    assert 0.95 <= slope <= 1.05


@pytest.mark.parametrize("name", ["time", "died"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_who_was_not_followed_is_named_with_what_to_do(name, value):
    table = people().astype({"died": float})
    table.loc[3, name] = value
    with pytest.raises(InputError, match=f"{name} must be known and finite .* in row 3: leave out whom nobody"):
        SurvivalRegression("Surv(time, died) ~ a", times=range(4)).fit(table)
