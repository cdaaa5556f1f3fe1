"""Private mixed models: effects with intervals that know persons, both covariances, and no person."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from neighbour_tools import on_tape
from private_settings import GUARANTEE, regression_settings
from skfda import FDataGrid

from fdadp import FunctionalRegression, Privacy, terms
from fdadp.errors import InputError, PrivacyError, PublicInputWarning
from fdadp.privacy import Budget
from fdadp.regression.fitted.released_person_covariances import NOT_RELEASED

T = 40
t = np.linspace(0, 1, T)
FORMULA = "Y ~ age + weekend + re(id, covariance='free')"
BOUNDS = {"Y": (-8, 8), "age": (-1, 1), "weekend": (0, 1), "arm": ["a", "b", "c"]}
EFFECTS = {"mean": np.sin(np.pi * t), "age": 0.4 * t, "weekend": 0.3 * np.cos(np.pi * t)}
BETWEEN, WITHIN = np.sqrt(2) * np.sin(2 * np.pi * t), np.sqrt(2) * np.cos(np.pi * t)
ICC = 1.5 / (1.5 + 0.6)


def sample(persons=3000, seed=0, most=7, own=0.0):
    """Rows of persons; `own` makes weekends hang on the person's own curve."""
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(persons), rng.integers(1, most + 1, persons))
    age, level = rng.uniform(-1, 1, persons)[ids], rng.normal(size=persons)
    weekend = (rng.random(ids.size) < 0.3 + own * np.tanh(level[ids])) * 1.0
    Y = EFFECTS["mean"] + np.outer(age, EFFECTS["age"]) + np.outer(weekend, EFFECTS["weekend"])
    curves = level[:, None] + np.sqrt(0.5) * rng.normal(size=(persons, 1)) * BETWEEN
    Y += curves[ids]
    Y += np.sqrt(0.6) * rng.normal(size=(ids.size, 1)) * WITHIN + 0.3 * rng.normal(size=(ids.size, T))
    arm = np.array(["a", "b", "c"], dtype=object)[rng.integers(0, 3, persons)][ids]
    return {"Y": Y, "age": age, "weekend": weekend, "arm": arm, "id": ids, "own": curves[ids]}


def model(formula=FORMULA, **given):
    own = {"epsilon": 1.0, "delta": 1e-6, "n": 3000, "random_state": 0, "bounds": BOUNDS, "max_rows": 7}
    return FunctionalRegression(formula, **regression_settings(**(own | {"within": ("weekend",)} | given)))


def effect(fitted, name):
    frame = fitted.coef(name, se=True, t=t)
    return frame["value"].to_numpy(), frame["se"].to_numpy()


@pytest.mark.each_once
@pytest.mark.parametrize("person_rows", ["mean", "exchangeable"])
@pytest.mark.parametrize("delta", [1e-6, None])
def test_effects_and_covariances_are_found(delta, person_rows):
    fitted = model(delta=delta, person_rows=person_rows).fit(sample())
    for name, most in (("age", 0.25), ("weekend", 0.08)):
        value, se = effect(fitted, name)
        error = np.abs(value - EFFECTS[name])
        assert (error < 4.5 * se).all() and error.max() < (most if delta else 4 * most)
    levels = fitted.persons_
    low, high = levels.icc_interval()
    assert low < ICC < high and abs(levels.icc() - ICC) < 0.05
    K = np.ones((T, T)) + 0.5 * np.outer(BETWEEN, BETWEEN)
    assert np.abs(levels.covariance("person") - K).mean() < (0.15 if delta else 0.3)
    assert np.abs(levels.covariance("row") - 0.6 * np.outer(WITHIN, WITHIN)).mean() < (0.06 if delta else 0.1)
    assert levels.eigenbasis("row").values[0] > 8 * levels.eigenbasis("row").values[1] > 0
    assert abs(levels.noise_variance - 0.09) < 0.02
    ends = levels.icc_band()
    truth = np.diag(K) / (np.diag(K) + 0.6 * WITHIN**2)
    assert ((ends[0] <= truth) & (truth <= ends[1])).mean() > 0.6
    assert np.abs(levels.row_shares - 1 / 7).max() < (0.05 if delta else 0.1)


def test_without_noise_effects_are_those_of_least_squares_on_means_and_within_persons():
    """At an ε without noise: of means each person once, and within persons by rows about their means."""
    data = sample(800)
    fitted = model(epsilon=5000.0, delta=1e-6, n=800, bounds=BOUNDS).fit(data)
    ids, functions = data["id"], fitted.persons_.functions
    project = functions @ (functions * fitted.persons_.weights[:, None]).T
    rows = pd.DataFrame(data["Y"] @ project.T).groupby(ids)
    x = pd.DataFrame({"age": data["age"], "weekend": data["weekend"]}).groupby(ids)
    centred = data["weekend"] - x["weekend"].transform("mean").to_numpy()
    within = centred @ (data["Y"] @ project.T - rows.transform("mean").to_numpy()) / (centred @ centred)
    value, _ = effect(fitted, "weekend")
    assert np.abs(value - within).max() < 0.02
    means = rows.mean().to_numpy() - np.outer(x["weekend"].mean(), within)
    X = np.column_stack((np.ones(800), x["age"].mean()))
    value, _ = effect(fitted, "age")
    assert np.abs(value - np.linalg.lstsq(X, means, rcond=None)[0][1]).max() < 0.03


def test_pure_equations_within_persons_are_hardly_clipped():
    """Their clip is on the sum of sizes: at a norm's size it would cut four of ten persons, and steps be too short."""
    data = sample(800)
    data["Y"] = data["Y"] + np.outer(data["weekend"], 2 * np.cos(np.pi * t))
    fitted = model(epsilon=50_000.0, delta=None, n=800).fit(data)
    Y, weekend = (pd.DataFrame(data[name]).groupby(data["id"]) for name in ("Y", "weekend"))
    centred = data["weekend"] - weekend.transform("mean").to_numpy().ravel()
    within = centred @ (data["Y"] - Y.transform("mean").to_numpy()) / (centred @ centred)
    functions = fitted.persons_.functions
    value, _ = effect(fitted, "weekend")
    assert np.abs(value - (within * fitted.persons_.weights) @ functions @ functions.T).max() < 0.07


def test_functions_of_numbers_and_differences_between_levels_are_found(tmp_path):
    """A curved effect of age, and weekends that differ by arm: both from moments of features with public bounds."""
    data = sample()
    arch = np.outer(1.5 * data["age"] ** 2, np.ones(T))
    more = np.outer((data["arm"] == "c") * data["weekend"], np.ones(T))
    data["Y"] = data["Y"] - np.outer(data["age"], EFFECTS["age"]) + arch + more
    fitted = model("Y ~ s(age) + C(arm) * weekend + re(id, covariance='free')", epsilon=8.0).fit(data)
    ages = np.linspace(-0.9, 0.9, 7)
    new = {"age": ages, "arm": np.full(7, "a", dtype=object), "weekend": np.zeros(7)}
    seen = np.asarray(fitted.predict(new)).mean(axis=1)
    assert np.abs((seen - seen.mean()) - 1.5 * (ages**2 - (ages**2).mean())).max() < 0.15
    effect = fitted.coef("s(age)", t=[0.5], at={"age": ages})
    value = effect["value"].to_numpy()
    assert np.abs((value - value.mean()) - 1.5 * (ages**2 - (ages**2).mean())).max() < 0.2
    days = {"age": np.zeros(4), "arm": np.array(list("aacc"), dtype=object), "weekend": np.array([0.0, 1, 0, 1])}
    a0, a1, c0, c1 = np.asarray(fitted.predict(days)).mean(axis=1)
    assert c1 - c0 - (a1 - a0) == pytest.approx(1.0, abs=0.15)
    assert a1 - a0 == pytest.approx(0.0, abs=0.15)
    loaded = FunctionalRegression.load(fitted.save(tmp_path / "m.npz"))
    np.testing.assert_array_equal(loaded.predict(new), fitted.predict(new))


def test_effects_within_persons_do_not_see_what_persons_bring_along():
    """Weekends hang on the person's own level: rows of one person are compared, all rows are not."""
    data = sample(own=0.25)
    bias = {}
    for person_rows in ("mean", "exchangeable"):
        value, _ = effect(model(epsilon=8.0, person_rows=person_rows).fit(data), "weekend")
        bias[person_rows] = abs((value - EFFECTS["weekend"]).mean())
    assert bias["mean"] < 0.03 < 0.08 < bias["exchangeable"]


@pytest.mark.statistics
@pytest.mark.parametrize("person_rows", ["mean", "exchangeable"])
def test_intervals_hold(person_rows):
    held = {"age": [], "weekend": [], "icc": []}
    for seed in range(60):
        fitted = model(n=2000, random_state=seed, person_rows=person_rows).fit(sample(2000, seed))
        for name in ("age", "weekend"):
            value, se = effect(fitted, name)
            held[name].append(np.abs(value - EFFECTS[name]) < 1.96 * se)
        low, high = fitted.persons_.icc_interval()
        held["icc"].append(low <= ICC <= high)
    found = {name: np.mean(own) for name, own in held.items()}
    assert all(share > 0.9 for share in found.values()), found


def test_factors_chunks_orders_and_containers():
    data = sample(60)
    fit = model("Y ~ C(arm) + weekend + re(id, covariance='free')", n=60, epsilon=50.0, max_rows=3)
    how = fit.get_params(deep=False)

    def direct(data):
        FunctionalRegression(**how).fit(data, grids={"Y": t})

    def in_chunks(data):
        n = len(data["id"])
        pieces = [{name: column[i : i + 17] for name, column in data.items()} for i in range(0, n, 17)]
        FunctionalRegression(**how).fit_chunks(pieces, grids={"Y": t}, groups="id")

    wanted = [entry.exact for entry in on_tape(direct, data)]
    order = np.random.default_rng(0).permutation(len(data["id"]))
    shuffled = {name: column[order] for name, column in data.items()}
    renamed = data | {"id": np.array([f"p{i}" for i in data["id"]], dtype=object)}
    for way, given in ((direct, shuffled), (direct, renamed), (in_chunks, data), (in_chunks, shuffled)):
        assert [entry.exact for entry in on_tape(way, given)] == wanted


def test_rows_beyond_the_most_do_not_count():
    """A person of more rows: those that count are chosen by their entries, so more copies of one row change nothing."""
    data = sample(60, most=2)
    more = {name: np.concatenate([column, column[data["id"] == 7][:1]]) for name, column in data.items()}
    most = {name: np.concatenate([column, *[column[data["id"] == 7][:1]] * 5]) for name, column in data.items()}
    fit = model(n=60, epsilon=50.0, max_rows=2).get_params(deep=False)

    def run(data):
        FunctionalRegression(**fit).fit(data)

    assert [e.exact for e in on_tape(run, most)] == [e.exact for e in on_tape(run, more)]


def test_who_holds_rows_finds_curves_of_persons_and_cannot_save_them(tmp_path):
    data = sample()
    fitted = model(epsilon=8.0).fit(data)
    own = {name: column[:200] for name, column in data.items()}
    local = fitted.local_blups(own)
    assert local.note == NOT_RELEASED and NOT_RELEASED in repr(local)
    assert local.curves.shape == (len(local.persons), T) and list(local.persons) == sorted(set(own["id"].tolist()))
    left = pd.DataFrame(own["Y"] - fitted.predict({k: v for k, v in own.items() if k != "Y"}))
    means, counts = left.groupby(own["id"]).mean().to_numpy(), pd.Series(own["id"]).value_counts(sort=False)
    several = local.counts > 4
    assert (local.counts == counts.to_numpy()).all() and (local.se > 0).all()
    truth = pd.DataFrame(own["own"]).groupby(own["id"]).first().to_numpy()
    error = ((local.curves - truth) ** 2).mean()
    assert error < 0.5 * ((means - truth) ** 2).mean() and 0.5 < error / (local.se**2).mean() < 1.6
    assert local.se[local.counts == 1].mean() > local.se[several].mean()
    with pytest.raises(InputError, match="cannot be saved"):
        local.save(tmp_path / "local")
    new = {"age": np.zeros(2), "weekend": np.zeros(2), "id": np.array([0, 10**9])}
    one, other = fitted.predict(new)
    assert (one == other).all()  # a person of the fit and nobody: the population's curve
    with pytest.raises(InputError, match="local_blups needs a private fit"):
        FunctionalRegression("Y ~ age").fit({k: data[k][:200] for k in ("Y", "age")}).local_blups(own)


def test_curves_of_persons_want_the_grid_of_the_fit_and_ids_that_stay_apart():
    """Another grid of as many points was taken for that of the fit, and the ids 2^60, 2^60 + 1, ... for one person."""
    data = sample(60)
    fitted = model(n=60, epsilon=50.0).fit(data)
    own = fitted.local_blups(data | {"Y": FDataGrid(data["Y"], t)})
    np.testing.assert_array_equal(own.curves, fitted.local_blups(data).curves)
    with pytest.raises(InputError, match=r"^Y must hold curves on the grid of the fit"):
        fitted.local_blups(data | {"Y": FDataGrid(data["Y"], t / 2)})
    with pytest.raises(InputError, match=r"^id must hold text, or whole numbers below 2\^53"):
        fitted.local_blups(data | {"id": data["id"].astype(np.int64) + 2**60})


def test_saved_and_loaded_and_nothing_of_a_person_is_in_the_file(tmp_path):
    data = sample(300)
    canary = 3.14159265
    data["Y"][data["id"] == 7] = canary
    data["age"][data["id"] == 7] = canary / 10
    data["id"] = np.where(data["id"] == 7, 271828, data["id"])
    with pytest.warns(PublicInputWarning, match="n \\* epsilon is 300"):
        fitted = model(n=300).fit(data)
    path = fitted.save(tmp_path / "mixed")
    again = FunctionalRegression.load(path)
    new = {"age": np.array([0.2]), "weekend": np.array([1.0])}
    assert (again.predict(new) == fitted.predict(new)).all() and (again.predict_se(new) == fitted.predict_se(new)).all()
    assert again.persons_.icc_interval() == fitted.persons_.icc_interval()
    assert str(again.summary()) == str(fitted.summary())
    assert b"271828" not in path.read_bytes()
    with np.load(path) as file:
        numbers = np.concatenate([a.ravel() for a in file.values() if a.dtype.kind == "f"])
    for value in (canary, canary / 10, 271828.0):
        assert not np.isclose(numbers, value, rtol=1e-9).any()
    assert not any(np.shares_memory(data["Y"], a) for a in vars(fitted).values() if isinstance(a, np.ndarray))


def test_what_is_said():
    fitted = model().fit(sample())
    text = str(fitted.summary())
    note = "re(id) in a private fit: the effects of persons are never released; the model will hold their covariance"
    assert note in text and note in " ".join(fitted.notes_) and "ICC" in text
    ledger = fitted.ledger_
    assert sum(release.share for release in ledger.releases) == pytest.approx(1.0)
    names = {release.name for release in ledger.releases}
    assert {"equations within persons, round 2", "covariance within persons", "rows a person"} < names
    assert "effects of weekend come from what differs within persons" in str(ledger)
    plan = model().plan({"Y": T})
    assert str(plan) == str(fitted.plan_)
    assert list(fitted.sample(3).columns) == ["age", "weekend", "Y"]
    low, high = fitted.predict_interval({"age": np.zeros(1), "weekend": np.zeros(1)})
    truth = np.sqrt(1 + 0.5 * BETWEEN**2 + 0.6 * WITHIN**2 + 0.09)
    assert np.abs((high - low)[0] / (2 * 1.96 * truth) - 1).mean() < 0.1
    assert set(fitted.importances_) == {"age", "weekend"}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"max_rows": 1}, "levels are learned from at least 2 rows a person: max_rows=1"),
        ({"max_rows": None}, "max_rows must be given with re"),
        ({"person_rows": "sum"}, "person_rows must be 'mean' or 'exchangeable' with re"),
        ({"person_rows": "median"}, "person_rows must be"),
        ({"bounds": {"Y": (-8, 8), "age": (-1, 1)}}, "bounds must give a public range for weekend"),
        ({"bounds": {"age": (-1, 1), "weekend": (0, 1)}}, "bounds must give a public range for Y"),
        ({"within": ("day",)}, "within must name columns of terms, got 'day'"),
        ({"within": "weekend"}, "within must be a tuple of columns"),
        (
            {
                "formula": "Y ~ ff(X) + re(id, covariance='free')",
                "within": (),
                "bounds": BOUNDS | {"X": (-3, 3)},
            },
            "terms beside re.id. must be of labels, and of one or two numbers, in a private fit, got ff.X.",
        ),
        ({"formula": "Y ~ age + re(arm) + re(id, covariance='free')", "within": ()}, "must have a private version"),
        ({"formula": "Y ~ age", "max_rows": None}, "within must be left out"),
        ({"formula": "Y ~ age", "max_rows": None, "within": (), "person_rows": "exchangeable"}, "is there for re"),
        ({"formula": "Y ~ age + re(id, covariance='free', k=1)", "within": ()}, "k of re"),
        ({"formula": "Y ~ age + re(id, slopes=age)", "within": ()}, "slopes of re"),
        (
            {"formula": "Y ~ age + re(id, covariance='free') + re(arm, covariance='free')", "within": ()},
            "private version",
        ),
        ({"delta": 0.2}, "delta"),
        ({"n": 20}, "n \\* epsilon of at least"),
    ],
)
def test_wrong_settings_are_refused_before_anything_is_read(given, says):
    budget = Budget(1.0, given.get("delta", 1e-6))
    given = {"n": 3000} | given
    guarantee = {name: given.pop(name) for name in list(given) if name in GUARANTEE and name != "delta"}
    given.pop("delta", None)
    own = {"bounds": BOUNDS, "max_rows": 7, "within": ("weekend",)} | given
    formula = own.pop("formula", FORMULA)
    fit = FunctionalRegression(formula, privacy=Privacy(1.0, budget.delta, budget=budget, **guarantee), **own)
    with pytest.raises((InputError, PrivacyError), match=says):
        fit.fit(sample(60) | {"X": np.zeros((len(sample(60)["id"]), T))})
    assert budget.spent == budget.reserved == 0


def test_other_persons_than_those_of_the_term_are_refused():
    data = sample(60)
    fit = model(n=60, epsilon=8.0)
    for groups in ("arm", data["id"]):
        with pytest.raises(InputError, match="groups must be left out, or 'id'"):
            fit.fit(data, groups=groups)
    with pytest.raises(InputError, match="'exchangeable' is there for"):
        FunctionalRegression("Y ~ age", person_rows="exchangeable").fit(data, groups="id")


def test_no_term_and_terms_of_objects():
    data = sample(2000)
    alone = model([terms.re("id", covariance="free")], n=2000, within=()).fit(data)
    assert abs(alone.persons_.icc() - ICC) < 0.1 and alone.term_names_ == ("(Intercept)", "s(t)")
    together = model("Y ~ fosr(age, weekend) + re(id, covariance='free')", n=2000, within=("weekend",)).fit(data)
    assert together.coef("fosr(age, weekend)").shape[0] > 0


def test_heavy_tails_are_said():
    data = sample(1000)
    far = np.where(np.random.default_rng(0).random(1000) < 0.15, 8.0, 1.0)
    data["Y"] = (data["Y"] - EFFECTS["mean"]) * far[data["id"]][:, None]
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model(n=1000, bounds=BOUNDS | {"Y": (-60, 60)}).fit(data)
    said = " ".join(str(one.message) for one in seen if one.category is PublicInputWarning)
    assert "of the variance of persons lies beyond the clip" in said and "of rows lies beyond" in said
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model().fit(sample())
