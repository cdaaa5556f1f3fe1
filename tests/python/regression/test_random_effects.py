"""Tests of random effects: exact for numbers, by flipped signs for curves."""

from __future__ import annotations

import numpy as np
import pytest

from fdadp import FunctionalRegression, ScalarRegression
from fdadp.errors import InputError
from fdadp.regression.fit_in_memory import free_memory
from fdadp.solve.errors.term_tests import flip_test

T = np.linspace(0, 1, 21)
SMOOTH = np.linalg.cholesky(np.exp(-(np.subtract.outer(T, T) ** 2) / 0.045) + 1e-8 * np.eye(T.size))


def numbers(seed, sd, formula="y ~ x + re(g)", counts=(5,) * 20):
    """The p-value of a random effect of 20 groups, residual sd .6."""
    draw = np.random.default_rng(seed)
    g = np.repeat(np.arange(len(counts)), counts)
    x = draw.normal(size=len(g))
    y = x + draw.normal(size=len(counts))[g] * sd + draw.normal(size=len(g)) * 0.6
    model = ScalarRegression(formula, progress=False).fit({"x": x, "g": [f"p{i}" for i in g], "y": y})
    return model, model.test_terms().loc["re(g)", "p"]


def test_the_score_test_is_exact():
    """By brute force: its p is the share of Gaussian responses whose ratio of squares is larger."""
    counts = [1, 1, 2, 3, 5, 8, 13]
    model, p = numbers(4, 0.3, counts=counts)
    g = np.repeat(np.arange(7), counts)
    draw = np.random.default_rng(4)
    x = draw.normal(size=len(g))
    y = x + draw.normal(size=7)[g] * 0.3 + draw.normal(size=len(g)) * 0.6
    q = np.linalg.qr(np.column_stack((np.ones(len(g)), x)))[0]

    def ratio(of):
        left = of - (of @ q) @ q.T
        return ((left @ np.eye(7)[g]) ** 2).sum(axis=-1) / (left**2).sum(axis=-1)

    others = np.random.default_rng(0).normal(size=(40_000, len(g)))
    assert p == pytest.approx(np.mean(ratio(others) >= ratio(y)), abs=0.01)
    assert model.anova(ScalarRegression("y ~ x").fit({"x": x, "y": y}))["p"].iloc[1] == pytest.approx(p)


@pytest.mark.parametrize(
    ("formula", "sd", "low", "high"), [("y ~ x + re(g)", 0.0, 0, 7), ("y ~ x + re(g)", 0.3, 30, 50)]
)
def test_level_and_power_for_numbers(formula, sd, low, high):
    """Of 50 data sets: Wald's test on the leading directions rejected in none, and in 10."""
    assert low <= sum(numbers(i, sd, formula)[1] < 0.05 for i in range(50)) <= high


def test_counts_have_the_same_test():
    draw = np.random.default_rng(0)
    g, none, some = np.repeat(np.arange(20), 5), [], []
    for _ in range(30):
        x, of = draw.normal(size=100), draw.normal(size=20)[g]
        for sd, found in ((0.0, none), (0.6, some)):
            data = {"x": x, "g": [f"p{i}" for i in g], "y": draw.poisson(np.exp(1 + 0.3 * x + sd * of)).astype(float)}
            model = ScalarRegression("y ~ x + re(g)", family="poisson", progress=False).fit(data)
            found.append(model.test_terms().loc["re(g)", "p"])
    assert np.mean(np.array(none) < 0.05) <= 0.2
    assert np.mean(np.array(some) < 0.05) >= 0.9


def persons(seed, sd=0.0, counts=(3,) * 30, errors="smooth", visits=1):
    """Curves of persons with smooth errors; in `visits` curves a day, whose errors go together."""
    draw = np.random.default_rng(seed)
    person = np.repeat(np.arange(len(counts)), counts)
    x, n = draw.normal(size=len(counts))[person], len(person)
    e = np.repeat(draw.normal(size=(n // visits, T.size)) @ SMOOTH.T, visits, axis=0) * 0.5
    e = e if errors == "smooth" else e * np.sqrt(8 / np.array(counts)[person])[:, None]
    y = 0.5 * x[:, None] * T + (draw.normal(size=len(counts)) * sd)[person][:, None] + e
    return {"x": x, "id": [f"p{i}" for i in person], "day": [f"d{i // visits}" for i in range(n)], "Y": y}


def test_signs_of_curves_keep_their_level_and_find_persons():
    """Independent errors gave p < .05 in 28 % where persons had nothing in common."""
    for counts, errors in (((3,) * 30, "smooth"), ((1, 2, 3, 8) * 8, "few are larger")):
        left = []
        for sd in (0.0, 0.3):
            ps = []
            for seed in range(40):
                data = persons(seed, sd, counts, errors)
                r = data["Y"] @ np.ones((T.size, 1)) / T.size**0.5
                known = np.column_stack((np.ones(len(r)), data["x"]))
                codes = np.unique(data["id"], return_inverse=True)[1]
                ps.append(flip_test(r, known, codes, np.arange(len(r))).p)
            left.append(np.mean(np.array(ps) < 0.05))
        assert left[0] <= 0.15
        assert left[1] >= (0.9 if errors == "smooth" else 0.3)


def test_ten_curves_keep_the_level():
    """Signs of residuals, as if no mean had been taken out of them, had p ≤ .05 in .095 of these samples."""
    along, five = np.linalg.qr(np.vander(np.linspace(-1, 1, T.size), 6, increasing=True))[0], np.repeat(np.arange(5), 2)
    found = []
    for seed in range(400):
        draw = np.random.default_rng([seed, 9])
        errors = draw.normal(size=(10, T.size)) @ SMOOTH.T / np.sqrt(draw.chisquare(3, size=(10, 1)) / 3)
        found.append(flip_test(errors @ along, np.ones((10, 1)), five, np.arange(10), seed).p)
    assert 0 < np.mean(np.array(found) <= 0.05) < 0.075
    same = flip_test(errors @ along * 1e-6, np.ones((10, 1)), five, np.arange(10), seed)
    assert same.p == found[-1]  # whatever the unit


def test_where_errors_are_smooth_the_summary_says_that_levels_are_shrunk_too_little():
    """Of 29 directions in which 30 persons with nothing in common may differ, independent points keep 24."""
    kept, said = [], "shrink the levels of re(id) too little."
    for seed in range(4):
        data = persons(seed)
        models = [FunctionalRegression("Y ~ x + re(id)", errors=e).fit(data, grids={"Y": T}) for e in ("iid", "curve")]
        assert [said in str(model.summary()) for model in models] == [True, False]
        kept.append([model.term_edf_["re(id)"] for model in models])
    independent, smooth = np.mean(kept, axis=0)
    assert independent > 15 > 8 > smooth
    white = {**data, "Y": data["x"][:, None] * T + np.random.default_rng(0).normal(size=(90, T.size))}
    assert said not in str(FunctionalRegression("Y ~ x + re(id)").fit(white, grids={"Y": T}).summary())
    assert "levels" not in str(FunctionalRegression("Y ~ x").fit(data, grids={"Y": T}).summary())


def test_random_effects_of_curves_are_tested_by_signs(tmp_path):
    data = persons(1)
    model = FunctionalRegression("Y ~ x + re(id)").fit(data, grids={"Y": T})
    table = model.test_terms()
    codes = np.unique(data["id"], return_inverse=True)[1]
    mean = data["Y"].sum(axis=1, keepdims=True) / T.size**0.5
    alone = flip_test(mean, np.column_stack((np.ones(90), data["x"])), codes, np.arange(90))
    order = [int(i[1:]) for i in data["id"]]
    same = flip_test(mean, np.column_stack((np.ones(90), data["x"])), np.array(order), np.arange(90))
    assert (same.statistic, same.p) == pytest.approx((alone.statistic, alone.p), rel=1e-12)  # sums round by place
    assert table.loc["re(id)", "p"] == pytest.approx(alone.p, abs=1e-12)
    assert table.loc["re(id)", "statistic"] == pytest.approx(alone.statistic, rel=1e-6)
    for kind in ("curve", None):
        assert model.test_terms(kind).loc["re(id)", "p"] == table.loc["re(id)", "p"]
    assert model.test_terms("iid").loc["re(id)", "df"] > 1  # refund's
    loaded = FunctionalRegression.load(model.save(tmp_path / "model"))
    assert loaded.test_terms().loc["re(id)", "p"] == table.loc["re(id)", "p"]


def test_the_order_of_rows_changes_no_fit_along_curves():
    """Persons of equally many rows are alike: which were left out of the errors' covariance followed from the order."""
    data, found = persons(5, 0.1), []
    for seed in range(2):
        order = np.arange(90) if seed == 0 else np.random.default_rng(seed).permutation(90)
        permuted = {name: np.asarray(values)[order] for name, values in data.items()}
        model = FunctionalRegression("Y ~ x + re(id)", errors="curve", progress=False)
        found.append(model.fit(permuted, grids={"Y": T}).criterion_)
    assert found[1] == pytest.approx(found[0], rel=1e-7)


@pytest.mark.parametrize("groups", [None, "pair"])
def test_the_order_of_rows_changes_no_p_value(groups):
    """Signs were drawn for rows in the order of the file."""
    data = persons(5, 0.1, counts=(4,) * 12)
    data["pair"] = np.array([f"{person} {i // 2 % 2}" for i, person in enumerate(data["id"])])
    found = []
    for seed in range(3):
        order = np.arange(48) if seed == 0 else np.random.default_rng(seed).permutation(48)
        permuted = {name: np.asarray(values)[order] for name, values in data.items()}
        model = FunctionalRegression("Y ~ x + re(id)", progress=False).fit(permuted, grids={"Y": T}, groups=groups)
        found.append(model.test_terms().loc["re(id)", "p"])
    assert 0.01 < found[0] < 0.9
    np.testing.assert_allclose(found, found[0], atol=1e-12)


@pytest.mark.parametrize("settings", [{"errors": "curve"}, {"response_basis": "eigen"}, {"se": "iid"}, {}])
def test_persons_that_differ_are_found_whatever_is_believed_of_errors(settings):
    for formula in ("Y ~ x + re(id)", "Y ~ x + re(id, k=5)"):
        model = FunctionalRegression(formula, progress=False, **settings).fit(persons(3, 0.6), grids={"Y": T})
        assert model.test_terms().loc["re(id)", "p"] < 0.01


def test_groups_within_persons_have_one_sign():
    """Curves of a day go together: signs of single curves would take that for persons."""
    rejected = {"curves": 0, "days": 0, "re(day)": 0}
    for seed in range(12):
        data = persons(seed, counts=(6,) * 12, visits=3)
        plain = FunctionalRegression("Y ~ x + re(id)", progress=False).fit(data, grids={"Y": T})
        days = FunctionalRegression("Y ~ x + re(id)", progress=False).fit(data, grids={"Y": T}, groups="day")
        both = FunctionalRegression("Y ~ x + re(id) + re(day)", progress=False).fit(data, grids={"Y": T})
        for name, model in (("curves", plain), ("days", days), ("re(day)", both)):
            rejected[name] += model.test_terms().loc["re(id)", "p"] < 0.05
    assert rejected["curves"] >= 6
    assert max(rejected["days"], rejected["re(day)"]) <= 3


def test_gaps_and_points_of_their_own():
    data = persons(2, 0.6)
    data["Y"][np.random.default_rng(0).uniform(size=data["Y"].shape) < 0.3] = np.nan
    model = FunctionalRegression("Y ~ x + re(id)", progress=False).fit(data, grids={"Y": T})
    assert model.test_terms().loc["re(id)", "p"] < 0.01


def test_a_fit_says_what_memory_it_would_take():
    """5,000 persons with eight coefficients each took all 24 GB of a machine; with weights they cannot be summed."""
    n = 5000
    data = {"id": [f"p{i}" for i in range(n)], "Y": np.zeros((n, T.size)) + np.arange(n)[:, None]}
    text = r"re\(id\) must have fewer coefficients, got 40,000 of 40,020: .* about 141 GB .* 8\.0 GB are free"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fdadp.regression.fit_in_memory.free_memory", lambda: 8_000_000_000)
        with pytest.raises(InputError, match=text):
            FunctionalRegression("Y ~ re(id, k=8)").fit(data, grids={"Y": T}, weights=1.0 + np.arange(n))
        with pytest.raises(InputError, match=r"fit\(groups='id'\)"):
            FunctionalRegression("Y ~ re(id, k=8)").fit_chunks([data], grids={"Y": T})
    assert (free_memory() or 1) > 0


def test_groups_leave_a_random_effect_its_exact_test(tmp_path):
    """By clusters, p was .44 for effects of twice the errors: there are as many effects as clusters."""
    rng = np.random.default_rng(1)
    g = np.repeat(np.arange(60), 4)
    x = rng.normal(size=240)
    data = {"x": x, "g": g.astype(str), "y": 2 * rng.normal(size=60)[g] + 0.5 * x + rng.normal(size=240)}
    alone = ScalarRegression("y ~ x + re(g)", progress=False).fit(data).test_terms().loc["re(g)"]
    model = ScalarRegression("y ~ x + re(g)", progress=False).fit(data, groups="g")
    np.testing.assert_allclose(model.test_terms().loc["re(g)"], alone, rtol=1e-6)
    model.save(tmp_path / "model.npz")
    again = ScalarRegression.load(tmp_path / "model.npz").test_terms()
    np.testing.assert_allclose(again, model.test_terms(), rtol=1e-12)
    few = {name: values[:-3] for name, values in data.items()}  # the last group has one row, which then counts fourfold
    uneven = ScalarRegression("y ~ x + re(g)", progress=False).fit(few, groups="g").test_terms().loc["re(g)"]
    assert np.isnan(uneven["p"])
    known = ScalarRegression("y ~ x + re(g)", progress=False, person_rows="sum").fit(few, groups="g")
    assert known.test_terms().loc["re(g)", "p"] < 1e-9


def test_one_coefficient_has_one_p_value_by_groups():
    """summary() took the term's own degrees of freedom, test_terms() those of all clusters: .0006 and .0001."""
    rng = np.random.default_rng(2)
    g = np.repeat(np.arange(12), 4)
    x = rng.normal(size=48) * (1 + 4 * (g == 0))
    y = rng.normal(size=12)[g] + 0.5 * x + rng.normal(size=48)
    model = ScalarRegression("y ~ x", progress=False).fit({"x": x, "y": y, "g": g.astype(str)}, groups="g")
    line = next(line for line in str(model.summary()).splitlines() if line.split()[:1] == ["x"])
    assert line.split()[-1] == f"{model.test_terms().loc['x', 'p']:.4f}"
