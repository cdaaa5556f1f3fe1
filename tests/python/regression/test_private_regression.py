"""Models of many terms fitted privately: what they explain, what is refused before the first read, what files hold."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from skfda import FDataGrid, FDataIrregular

from fdadp import DPAFF, AdditiveFunctionOnFunction, FunctionalRegression, Privacy, ScalarRegression, terms
from fdadp.errors import InputError, PrivacyError, PublicInputWarning
from fdadp.privacy import Budget

S = np.linspace(0, 1, 21)
BOUNDS = {"X": (-4.0, 4.0), "z": (0.0, 100.0), "g": ["a", "b", "c"], "Y": (-6.0, 6.0), "y": (-6.0, 6.0)}


def people(n, seed=0):
    """Curves, a number and labels; a curve and a number that depend on them."""
    rng = np.random.default_rng(seed)
    covariance = np.exp(-0.5 * ((S[:, None] - S) / 0.2) ** 2) + 1e-8 * np.eye(S.size)
    x = rng.normal(size=(n, S.size)) @ np.linalg.cholesky(covariance).T + rng.normal(0, 0.5, (n, 1))
    z, g = rng.uniform(20, 80, n), rng.integers(0, 3, n)
    f = 4 * x @ np.outer(np.sin(2 * np.pi * S), np.cos(np.pi * S)) / S.size
    f = f + np.outer((z - 50) / 20, 0.5 * S) + np.array([0.0, 0.5, -0.5])[g][:, None] * np.sin(np.pi * S) + np.cos(S)
    mean = 3 * x @ np.cos(np.pi * S) / S.size + (z - 50) / 40
    data = {"X": x, "z": z, "g": np.array(["a", "b", "c"])[g]}
    data["Y"], data["y"] = f + 0.3 * rng.normal(size=f.shape), mean + 0.3 * rng.normal(size=n)
    return data, f, mean


def private(n, **settings):
    return Privacy(epsilon=2.0, delta=1e-6, n=n, random_state=settings.pop("seed", 1), **settings)


def share(predicted, wanted):
    return 1 - ((np.asarray(predicted) - wanted) ** 2).mean() / ((wanted - wanted.mean(axis=0)) ** 2).mean()


@pytest.mark.parametrize("frame", [False, True])
def test_curves_on_a_curve_a_number_and_labels(frame):
    data, _, _ = people(3000)
    new, f, _ = people(400, seed=5)
    if frame:
        data, new = (pd.DataFrame({"z": d["z"], "g": d["g"]}).assign(k=0).pipe(with_curves, d) for d in (data, new))
    model = FunctionalRegression("Y ~ ff(X) + z + g", privacy=private(3000), bounds={k: BOUNDS[k] for k in "XzgY"})
    grids = None if frame else {"X": S, "Y": S}
    model.fit(data, grids=grids)
    found = model.predict(new)
    values = found.data_matrix[..., 0] if frame else found
    assert share(values, f) > 0.98
    assert model.ledger_.private and model.ledger_.epsilon == pytest.approx(2.0)
    assert model.term_names_ == ("(Intercept)", "s(t)", "ff(X)", "z", "g")
    assert sum(model.importances_.values()) == pytest.approx(1.0)
    low, high = model.predict_interval(new)
    y = new["Y"].array.data_matrix[..., 0] if frame else new["Y"]
    low, high = (v.data_matrix[..., 0] if frame else v for v in (low, high))
    assert 0.93 < ((low <= y) & (y <= high)).mean() < 0.97


def with_curves(frame, data):
    for name in "XY":
        frame[name] = FDataGrid(data[name], S)
    return frame


@pytest.mark.parametrize("kind", [{"n": 400}, {"n": 400, "delta": None}, {"n": None, "adjacency": "add-remove"}])
@pytest.mark.filterwarnings("ignore::fdadp.errors.PublicInputWarning", "ignore::fdadp.errors.ExtrapolationWarning")
def test_sff_alone_is_the_private_additive_function_on_function_model(kind):
    data, _, _ = people(400)
    bounds = {name: BOUNDS[name] for name in "XY"}
    one, other = (Privacy(**{"epsilon": 8.0, "delta": 1e-6, "random_state": 3} | kind) for _ in range(2))
    model = AdditiveFunctionOnFunction(privacy=one, bounds=bounds).fit(data["X"], data["Y"])
    same = FunctionalRegression([terms.sff("X")], privacy=other, bounds=bounds)
    same.fit({name: data[name] for name in "XY"}, grids={"X": S, "Y": S})
    new = data["X"][:50] * np.linspace(0.1, 3, 50)[:, None]  # also beyond the limit on predictions
    for t in (None, [0.11, 0.5]):
        np.testing.assert_allclose(same.predict({"X": new}, t=t), model.predict(new, t=t), rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(same.predict_se({"X": new}, t=t), model.predict_se(new, t=t), rtol=1e-8)
        for a, b in zip(same.predict_interval({"X": new}, t=t), model.predict_interval(new, t=t), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8)
    drawn, again = ([(r.name, r.scale) for r in m.ledger_.releases] for m in (model, same))
    assert [name for name, _ in drawn] == [name for name, _ in again] and same.notes_ == model.notes_
    np.testing.assert_allclose([scale for _, scale in drawn], [scale for _, scale in again], rtol=1e-8)  # BLAS rounds


def test_a_number_on_a_curve_and_a_number():
    data, _, _ = people(3000)
    new, _, mean = people(400, seed=5)
    model = ScalarRegression("y ~ lf(X) + z", privacy=private(3000), bounds={k: BOUNDS[k] for k in "Xzy"})
    model.fit(data, grids={"X": S})
    assert share(model.predict(new), mean) > 0.97
    low, high = model.predict_interval(new)
    assert 0.91 < ((low <= new["y"]) & (new["y"] <= high)).mean() < 0.985
    beta = model.coef("lf(X)", s=S)["value"].to_numpy()
    assert np.corrcoef(beta[2:-2], np.cos(np.pi * S)[2:-2])[0, 1] > 0.9


def test_a_file_holds_the_fit_and_its_ledger(tmp_path):
    data, _, _ = people(500)
    model = FunctionalRegression(
        [terms.ff("X"), terms.linear("z")], privacy=private(500), bounds={k: BOUNDS[k] for k in "XzY"}
    )
    model.fit(data, grids={"X": S, "Y": S})
    model.save(tmp_path / "m.fdadp")
    again = FunctionalRegression.load(tmp_path / "m.fdadp")
    np.testing.assert_array_equal(again.predict(data), model.predict(data))
    np.testing.assert_array_equal(again.predict_interval(data)[1], model.predict_interval(data)[1])
    assert str(again.ledger_) == str(model.ledger_) and again.privacy_.epsilon == 2.0
    assert again.importances_ == model.importances_ and again.notes_ == model.notes_


def odd_entries(data):
    """The same people, as a file with odd entries gives them: dtypes of whole columns change."""
    z, g = data["z"].astype(object), data["g"].astype(object)
    z[3], g[4] = "?", None
    x = data["X"].astype(object)
    x[5, 2] = "n/a"
    return data | {"z": z, "g": g, "X": x}


def test_odd_entries_count_as_missing_and_change_nobody_else():
    data, _, _ = people(600)
    blank = {name: v.copy() for name, v in data.items()}
    blank["z"][3], blank["X"][5, 2] = np.nan, np.nan
    blank["g"] = blank["g"].astype(object)
    blank["g"][4] = "no such level"
    bounds = {k: BOUNDS[k] for k in "XzgY"}
    fits = [
        FunctionalRegression("Y ~ ff(X) + z + C(g)", privacy=private(600), bounds=bounds).fit(d, grids={"X": S, "Y": S})
        for d in (odd_entries(data), blank)
    ]
    new, _, _ = people(20, seed=3)
    np.testing.assert_array_equal(fits[0].predict(new), fits[1].predict(new))
    lacking = {name: v.copy() for name, v in new.items()}
    lacking["z"][3], lacking["X"][5, 2] = np.nan, np.nan
    lacking["g"] = lacking["g"].astype(object)
    lacking["g"][4] = "no such level"
    wanted = fits[0].predict(lacking)
    np.testing.assert_array_equal(fits[0].predict(odd_entries(new)), wanted)  # entries mean what they meant in the fit
    written = {name: v.astype(str) for name, v in odd_entries(new).items() if name in "Xzg"}
    np.testing.assert_array_equal(fits[0].predict(written), wanted)


def test_intervals_of_a_number_cover_at_few_people():
    """The geometric mean of a number's |residual| is small against its spread, more so than a curve's."""
    inside = []
    for seed in range(4):
        (data, _, _), (new, _, _) = people(300, seed), people(1000, seed + 50)
        for table, own in ((data, seed), (new, seed + 9)):
            table["y"] = table["y"] + 0.3 * np.random.default_rng(own).standard_t(5, len(table["y"]))
        model = ScalarRegression("y ~ lf(X) + z", privacy=private(300, seed=seed), bounds={k: BOUNDS[k] for k in "Xzy"})
        low, high = model.fit(data, grids={"X": S}).predict_interval(new)
        inside.append(((low <= new["y"]) & (new["y"] <= high)).mean())
    assert 0.93 < np.mean(inside) < 0.985  # 0.88 where a number's size was taken as a curve's


@pytest.mark.parametrize(
    ("model", "change", "message"),
    [
        ("Y ~ ff(X) + z", {"bounds": {"X": (-4, 4), "Y": (-6, 6)}}, "bounds must give a public range for z"),
        ("Y ~ ff(X) + C(g)", {"bounds": {"X": (-4, 4), "Y": (-6, 6)}}, "bounds must give the public levels of g"),
        ("Y ~ ff(X)", {"bounds": {"X": (-4, 4)}}, "bounds must give a public range for Y"),
        ("Y ~ ff(X)", {"bounds": {"X": (4, -4), "Y": (-6, 6)}}, "low < high"),
        ("Y ~ ff(X) + C(g)", {"bounds": {"X": (-4, 4), "Y": (-6, 6), "g": "abc"}}, "list of its levels"),
        ("Y ~ ff(X) + C(g)", {"bounds": {"X": (-4, 4), "Y": (-6, 6), "g": ["a", "a"]}}, "distinct"),
        ("Y ~ ff(Q)", {}, "must have the column 'Q'"),
        ("Y ~ ff(X) - 1", {}, "intercept"),
        ("Y ~ ff(X)", {"missing": "fpca"}, "missing in a private fit"),
        ("Y ~ ff(X)", {"missing": "raise"}, "missing in a private fit"),
        ("Y ~ ff(X)", {"mechanism": "moments"}, "mechanism must be 'dp-aff'"),
        ("Y ~ ff(X)", {"family": "poisson"}, "family must be"),
        ("Y ~ ff(X) + re(g)", {}, "re"),
    ],
)
def test_what_is_wrong_is_said_before_the_first_read(model, change, message):
    data, _, _ = people(300)
    budget = Budget(2.0, 1e-6)
    settings = {"bounds": {k: BOUNDS[k] for k in "XzgY"}} | change
    wrong = FunctionalRegression(model, privacy=private(300, budget=budget), **settings)
    with pytest.raises((InputError, PrivacyError), match=message):
        wrong.fit(data, grids={"X": S, "Y": S})
    assert budget.spent == 0 and budget.reserved == 0


def test_terms_that_the_budget_cannot_carry_are_named_before_the_first_read():
    data, _, _ = people(100)
    many = [f"level {i}" for i in range(40)]
    data["site"] = np.array(many)[np.random.default_rng(0).integers(0, 40, 100)]
    bounds = {k: BOUNDS[k] for k in "XzY"} | {"site": many}
    budget = Budget(1.0, 1e-6)
    settings = {"privacy": Privacy(1.0, 1e-6, n=100, budget=budget, random_state=0), "bounds": bounds}
    with pytest.raises(PrivacyError, match=r"terms that the budget can carry, got site\. It affords"):
        FunctionalRegression("Y ~ ff(X) + z + site", **settings).fit(data, grids={"X": S, "Y": S})
    assert budget.spent == 0 and budget.reserved == 0
    fitted = FunctionalRegression("Y ~ ff(X) + z + site", **settings, mechanism=DPAFF(allow_useless=True))
    fitted.fit(data, grids={"X": S, "Y": S})
    assert any("site was not afforded" in note for note in fitted.notes_) and "site" not in fitted.term_names_


def test_columns_of_other_lengths_are_refused_before_the_first_read():
    data, _, _ = people(300)
    budget = Budget(2.0, 1e-6)
    wrong = FunctionalRegression(
        "Y ~ ff(X) + z", privacy=private(300, budget=budget), bounds={k: BOUNDS[k] for k in "XzY"}
    )
    with pytest.raises(InputError, match="same number of rows"):
        wrong.fit(data | {"z": data["z"][:-1]}, grids={"X": S, "Y": S})
    assert budget.spent == 0


def test_chunks_are_never_fitted_without_the_guarantee_that_was_asked_for():
    data, _, _ = people(300)
    model = FunctionalRegression("Y ~ ff(X)", privacy=private(300), bounds={k: BOUNDS[k] for k in "XY"})
    assert model.fit_chunks([data], grids={"X": S, "Y": S}).ledger_.private
    model.set_params(mechanism="moments")
    with pytest.raises(InputError, match="mechanism must be 'dp-aff'"):
        model.fit_chunks([data], grids={"X": S, "Y": S})


def test_the_summary_says_what_may_be_released():
    data, _, _ = people(300)
    model = FunctionalRegression("Y ~ ff(X)", privacy=private(300), bounds={k: BOUNDS[k] for k in "XY"})
    text = str(model.fit(data, grids={"X": S, "Y": S}).summary())
    assert "NOT FOR RELEASE" in text and "epsilon = 2, delta = 1e-06" in text and "Differentially private" not in text
    assert "without privacy" not in text


def test_a_cohort_drawn_from_a_fit_gives_the_fit_back(tmp_path):
    data, _, _ = people(8000)
    bounds = {k: BOUNDS[k] for k in "XzgY"}
    model = FunctionalRegression("Y ~ ff(X) + z + g", privacy=private(8000), bounds=bounds)
    model.fit(data, grids={"X": S, "Y": S})
    drawn = model.sample(4000, random_state=0)
    assert len(drawn) == 4000 and "private fit (epsilon = 2" in drawn.attrs["synthetic"]
    assert list(drawn.columns) == ["X", "z", "g", "Y"] and set(drawn["g"]) == {"a", "b", "c"}
    assert drawn["z"].between(0, 100).all()
    again = FunctionalRegression("Y ~ ff(X) + z + g").fit(drawn)
    new, _, _ = people(200, seed=9)
    found = again.predict({"X": FDataGrid(new["X"], S), "z": new["z"], "g": new["g"]}).data_matrix[..., 0]
    assert share(found, model.predict(new)) > 0.99
    assert again.sigma2_ == pytest.approx(0.09, rel=0.2)  # that of the people
    model.save(tmp_path / "m.fdadp")
    kept = FunctionalRegression.load(tmp_path / "m.fdadp").sample(10, random_state=3)
    pd.testing.assert_series_equal(kept["z"], model.sample(10, random_state=3)["z"])
    with pytest.raises(InputError, match="privacy must have been given"):
        again.sample(10)


def test_predictions_far_from_anything_stay_near_the_mean():
    data, _, _ = people(300)
    model = FunctionalRegression("Y ~ ff(X)", privacy=private(300), bounds={k: BOUNDS[k] for k in "XY"})
    model.fit(data, grids={"X": S, "Y": S})
    wild = {"X": 1e6 * np.random.default_rng(0).choice([-1.0, 1.0], (200, S.size))}
    y = data["Y"] - data["Y"].mean(axis=0)
    far = np.sqrt(((model.predict(wild) - data["Y"].mean(axis=0)) ** 2).mean(axis=1))
    assert far.max() < 6 * np.sqrt((y**2).mean())


def irregular(values, keep):
    """The same curves at points of their own, those kept."""
    rows, at = np.nonzero(keep)
    starts = np.flatnonzero(np.diff(rows, prepend=-1))
    jitter = np.random.default_rng(2).uniform(-0.02, 0.02, rows.size) * (at > 0) * (at < S.size - 1)
    return FDataIrregular(starts, (S[at] + jitter)[:, None], values[rows, at][:, None])


def test_curves_at_points_of_their_own_are_curves_with_gaps():
    data, _, _ = people(2500)
    rng = np.random.default_rng(1)
    keep = {name: rng.random(data[name].shape) < 0.4 for name in "XY"}
    for one in keep.values():
        one[:, 10] = True  # no curve without a point
    sparse = data | {name: irregular(data[name], keep[name]) for name in "XY"}
    gaps = data | {name: np.where(keep[name], data[name], np.nan) for name in "XY"}
    settings = {"privacy": private(2500), "bounds": {k: BOUNDS[k] for k in "XzY"}}
    fits = [FunctionalRegression("Y ~ ff(X) + z", **settings).fit(d, grids={"X": S, "Y": S}) for d in (sparse, gaps)]
    new, f, _ = people(300, seed=5)
    predicted = [np.asarray(getattr(m.predict(new), "data_matrix", m.predict(new))).reshape(f.shape) for m in fits]
    np.testing.assert_array_equal(*predicted)
    assert share(predicted[0], f) > 0.9
    held = rng.random(new["X"].shape) < 0.5
    held[:, 10] = True
    one = fits[0].predict({"X": irregular(new["X"], held), "z": new["z"]}).data_matrix[..., 0]
    np.testing.assert_array_equal(one, fits[1].predict({"X": np.where(held, new["X"], np.nan), "z": new["z"]}))
    with pytest.raises(InputError, match="Declare a grid"):
        FunctionalRegression("Y ~ ff(X) + z", **settings).fit(sparse)


def test_where_warnings_are_errors_the_ledger_of_what_was_spent_is_there():
    data, _, _ = people(2000)
    budget = Budget(2.0, 1e-6)
    narrow = {"X": (-0.2, 0.2), "z": (0, 100), "Y": (-6, 6)}
    model = FunctionalRegression("Y ~ ff(X) + z", privacy=private(2000, budget=budget), bounds=narrow)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(PublicInputWarning, match="of the values of X lie outside"):
            model.fit(data, grids={"X": S, "Y": S})
    assert budget.spent == pytest.approx(budget.total) and model.ledger_.private
    assert any("outside" in note for note in model.notes_)


@pytest.mark.parametrize("kind", [FunctionalRegression, ScalarRegression])
def test_a_plan_before_there_are_data_is_that_of_the_fit(kind):
    data, _, _ = people(600)
    formula, grids = (
        ("Y ~ ff(X) + z", {"X": S, "Y": S}) if kind is FunctionalRegression else ("y ~ lf(X) + z", {"X": S})
    )
    model = kind(formula, privacy=private(600), bounds=BOUNDS)
    plan, before = model.plan(grids), dict(vars(model))
    assert model.plan({name: S.size for name in grids}).budget_shares == plan.budget_shares
    assert dict(vars(model)) == before  # nothing of it is kept
    model.fit(data, grids=grids)
    assert model.plan_.budget_shares == plan.budget_shares
    np.testing.assert_array_equal(model.plan_.weights, plan.weights)
    assert "gradient" in str(plan)
    unknown = kind(formula, privacy=private(None), bounds=BOUNDS)
    assert unknown.plan(grids, n=600).n == 600
    with pytest.raises(InputError, match="n must be a number of persons to plan for"):
        unknown.plan(grids)
    with pytest.raises(PrivacyError, match="bounds must give a public range for z"):
        kind(formula, privacy=private(600), bounds={k: BOUNDS[k] for k in "XYy"}).plan(grids)
    with pytest.raises(InputError, match="privacy must be a Privacy or None, got NoneType"):
        kind(formula).plan(grids)


def test_the_intercept_is_the_mean_of_the_mean_curve_and_knows_its_error():
    """It was the released level alone, with a standard error of zero."""
    estimates, errors = [], []
    for seed in range(6):
        data, _, _ = people(1500, seed)
        model = FunctionalRegression("Y ~ ff(X) + z", privacy=private(1500, seed=seed), bounds=BOUNDS).fit(data)
        (row,) = model.coef("(Intercept)", se=True).itertuples()
        curve = model.coef("s(t)")
        assert abs(np.mean(curve["value"])) < 0.02 * np.abs(curve["value"]).max()
        estimates.append(row.value - np.mean(np.cos(S)))  # of centred covariates
        errors.append(row.se)
    assert 0.005 < min(errors) < max(errors) < 0.2
    assert np.abs(np.array(estimates) / errors).max() < 4
