"""What a fitted model of many terms says: coefficient functions beside refund's, shares explained, tables."""

from __future__ import annotations

import numpy as np
import pytest
from refund_cases import far, one, rows

from fdadp import FunctionalRegression, ScalarRegression, terms
from fdadp.errors import InputError

LEGACY = {"rule": "simpson_legacy"}
CLOSE = 5e-11  # largest found: 1.0e-11, which depends on the BLAS


def at_their_smoothing(record, which, term):
    i, o = record["input"], record["output"] if which is None else record["output"][which]
    train = rows(i, "train")
    data, grids = {"X": i["X"][train], "Y": i["Y"][train]}, {"X": np.ravel(i.get("s", i["t"])), "Y": np.ravel(i["t"])}
    return FunctionalRegression([term], smoothing=np.ravel(o["sp"]), k="refund").fit(data, grids=grids), o


def beside(model, name, surface, **points):
    """Relative differences of values and of both kinds of standard errors; theirs have the first axis fastest."""
    found = {}
    for with_mean, se in ((False, "se_without_mean"), (True, "se")):
        ours = model.coef(name, se=True, kind="iid", with_mean=with_mean, **points)
        ours = ours.sort_values(["t", *(axis for axis in points if axis != "t")])
        found["value"], found[se] = far(ours["value"], surface["value"]), far(ours["se"], surface[se])
    return found


@pytest.mark.parametrize("which", ["default", "trapezoidal"])
@pytest.mark.parametrize("case", ["canadian", "dti2", "sim"])
def test_surfaces_are_refunds(reference, case, which):
    record = reference(f"pffr_ff_{case}")
    k = tuple(int(v) for v in np.ravel(record["input"]["k"]))
    term = terms.ff("X", **LEGACY) if which == "default" else terms.ff("X", k=k, m=((2, 2), (2, 2)))
    model, o = at_their_smoothing(record, which, term)
    mean, surface = o["surfaces"]
    found = beside(model, "s(t)", mean, t=mean["x"])
    assert max(found.values()) < CLOSE, found
    found = beside(model, "ff(X)", surface, s=surface["x"], t=surface["y"])
    assert max(found.values()) < CLOSE, found
    assert abs(model.r2_ - one(o["r_sq"])) < 1e-11
    assert abs(model.explained_deviance_ - one(o["dev_expl"])) < 1e-11
    assert abs(model.term_edf_["ff(X)"] / one(o["edf_smooth"]) - 1) < 1e-10
    intercept = model.coef("(Intercept)", se=True, kind="iid")
    assert far(intercept[["value", "se"]], o["parametric"]) < 1e-11


def test_the_curve_of_a_concurrent_effect_is_refunds(reference):
    model, o = at_their_smoothing(reference("pffr_concurrent_canadian"), None, terms.concurrent("X"))
    for name, theirs in zip(("s(t)", "concurrent(X)"), o["surfaces"], strict=True):
        found = beside(model, name, theirs, t=theirs["x"])
        assert max(found.values()) < CLOSE, (name, found)


def test_curves_of_levels_are_refunds(reference):
    """Each centred over t; with the mean of everything else in their standard errors."""
    record = reference("pffr_fos_canadian")
    i, o = record["input"], record["output"]["factor"]
    data = {"region": np.array([str(level) for level in i["region"]]), "Y": i["Y"]}
    term = terms.factor("region", coding="levels")
    model = FunctionalRegression([term], smoothing=np.ravel(o["sp"]), k="refund").fit(
        data, grids={"Y": np.ravel(i["t"])}
    )
    levels = [str(level) for level in i["region_levels"]]
    found = beside(model, "s(t)", o["surfaces"][0], t=o["surfaces"][0]["x"])
    assert max(found.values()) < CLOSE, found
    for level, surface in zip(levels, o["surfaces"][1:], strict=True):
        found = beside(model, "region", surface, region=[level], t=surface["x"])
        assert max(found.values()) < CLOSE, (level, found)


N, S, T = 40, np.linspace(0, 2, 25), np.linspace(0, 1, 20)


def simulated(n=N, seed=0):
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(n, 6)) @ np.array([np.cos(k * np.pi * S / 2) / (1 + k) for k in range(6)])
    age, weight = draw.uniform(20, 60, n), draw.uniform(1, 2, n)
    y = x @ (np.outer(np.sin(S), np.cos(2 * T)) * (S[1] - S[0])) + (age[:, None] / 40 - 1) * T
    return {"X": x, "age": age, "weight": weight, "Y": y + 0.1 * draw.normal(size=y.shape), "y": y.mean(axis=1)}


GRIDS = {"X": S, "Y": T}
MODEL = (terms.ff("X", limits="s<=t"), terms.linear("age"), terms.linear("weight", constant=True))


@pytest.fixture(scope="module")
def model():
    return FunctionalRegression(MODEL).fit(simulated(), grids=GRIDS)


def test_coefficients_add_up_to_predictions(model):
    """Of effects that are products: the number, less its mean, times its curve."""
    curve = model.coef("age", t=T)["value"].to_numpy()
    data = simulated()
    parts = model.predict(data, type="terms")
    np.testing.assert_allclose(parts["age"], np.outer(data["age"] - data["age"].mean(), curve), rtol=1e-9)
    (slope,) = model.coef("c(weight)")["value"]
    np.testing.assert_allclose(parts["c(weight)"], np.outer(data["weight"], np.ones(T.size)) * slope, rtol=1e-12)
    np.testing.assert_allclose(sum(parts.values()), model.predict(data), rtol=1e-12)


def test_coefficients_are_those_of_their_covariance(model):
    assert model.coefficients_.index.tolist() == model.vcov("iid").index.tolist()
    (slope,) = model.coef("c(weight)")["value"]
    assert model.coefficients_["c(weight).1"] == slope


def test_a_historical_effect_has_no_coefficients_beyond_its_limits(model):
    frame = model.coef("ff(X)", se=True, level=0.9, s=[0.2, 0.6], t=[0.1, 0.5, 0.9])
    assert frame.columns.tolist() == ["s", "t", "value", "se", "lower", "upper"]
    assert frame["value"].notna().tolist() == [False, True, True, False, False, True]
    table = frame.pivot(index="s", columns="t", values="value")
    assert table.shape == (2, 3)
    assert far(frame["upper"].dropna() - frame["value"].dropna(), 1.6448536 * frame["se"].dropna()) < 1e-7


def test_a_historical_effect_for_each_level(model):
    data = simulated() | {"g": np.array(["a", "b"] * (N // 2))}
    by_level = FunctionalRegression([terms.ff("X", limits="s<=t", by="g")]).fit(data, grids=GRIDS)
    (name,) = by_level.term_names_[2:]
    frame = by_level.coef(name, s=[0.2, 0.6], t=[0.1, 0.5, 0.9])
    assert frame["g"].tolist() == ["a"] * 6 + ["b"] * 6
    assert frame["value"].notna().tolist() == [False, True, True, False, False, True] * 2


def test_default_points(model):
    assert len(model.coef("ff(X)")) == 40 * 40
    assert len(model.coef("age")) == len(model.coef("s(t)")) == 100
    assert model.coef("(Intercept)").columns.tolist() == ["value"]
    named_otherwise = model.coef("ff(X)", at={"s": [0.0], "t": [0.5]})
    assert far(named_otherwise["value"], model.coef("ff(X)", s=0.0, t=0.5)["value"]) == 0


@pytest.mark.parametrize(
    ("name", "points", "message"),
    [
        (
            "ff(Z)",
            {},
            r"name must be a term of the model \(\(Intercept\), s\(t\), ff\(X\), age, c\(weight\)\), got 'ff\(Z\)'",
        ),
        ("age", {"s": [0.5]}, r"axes of age are t, got points of 's'"),
        ("c(weight)", {"t": [0.5]}, r"axes of c\(weight\) are none, got points of 't'"),
        ("ff(X)", {"s": [2.5]}, r"s must lie within \[0, 2\], got \[2.5, 2.5\]"),
        ("age", {"t": [np.nan]}, "t must be finite numbers"),
        ("age", {"level": 1.0}, "level must lie between 0 and 1, got 1.0"),
        ("age", {"kind": "white"}, "kind must be"),
        ("age", {"se": 1}, "se must be True or False, got 1"),
    ],
)
def test_what_coef_refuses(model, name, points, message):
    with pytest.raises(InputError, match=message):
        model.coef(name, **{"se": True, **points})


def test_summary(model):
    text = str(model)
    for part in (
        "Regression of curves",
        "Records",
        "40",
        "ff(X)",
        "c(weight)",
        "smoothing parameter",
        "ff(X).t",
        "REML",
    ):
        assert part in text
    assert "<table" in model._repr_html_()
    fixed = FunctionalRegression(MODEL, smoothing=model.smoothing_parameters_).fit(simulated(), grids=GRIDS)
    assert "FIXED SMOOTHING" in str(fixed).upper()
    assert str(FunctionalRegression(MODEL)).startswith("FunctionalRegression(")


def test_summary_has_the_tests_of_terms(model):
    tests = model.test_terms()
    rows_ = [row.split() for row in str(model).splitlines()]
    for name in ("ff(X)", "age"):
        (row,) = (row for row in rows_ if row[:1] == [name])
        edf, statistic, df = (tests.loc[name, column] for column in ("edf", "statistic", "df"))
        assert row[1:5:2] == [f"{edf:.2f}", f"{statistic:.4g}"]
        assert row[4] == f"{df:g}"


def test_summary_shows_the_formula():
    model = FunctionalRegression("Y ~ ff(X) + age").fit(simulated(), grids=GRIDS)
    assert "Formula: Y ~ ff(X) + age" in str(model)
    assert "allow any dependence of errors along a curve" in str(model)
    grouped = FunctionalRegression("Y ~ age").fit(simulated(), grids=GRIDS, groups=np.arange(N) % 9)
    assert "within a group" in str(grouped)


def test_summary_of_least_squares():
    """The table of numbers is that of ordinary least squares."""
    sm = pytest.importorskip("statsmodels.api")
    data = simulated()
    model = ScalarRegression([terms.linear("age"), terms.linear("weight")]).fit(data)
    theirs = sm.OLS(data["y"], sm.add_constant(np.column_stack((data["age"], data["weight"])))).fit()
    rows_ = [row.split() for row in str(model).splitlines()]
    for name, value, se, z in zip(
        ("(Intercept)", "age", "weight"), theirs.params, theirs.bse, theirs.tvalues, strict=True
    ):
        (row,) = (row for row in rows_ if row[:1] == [name])
        assert row[1:4] == [f"{value:.4g}", f"{se:.4g}", f"{z:.2f}"]
    assert abs(model.r2_ - theirs.rsquared_adj) < 1e-12
    assert abs(model.explained_deviance_ - theirs.rsquared) < 1e-12


NUMBERS = {
    "s(age)": terms.s("age", bs="ps"),
    "te(age, weight)": terms.te("age", "weight", k=(5, 4)),
    "c(s(weight))": terms.s("weight", constant=True),
    "re(g)": terms.re("g"),
    "g": terms.factor("g"),
    "s(age):g": terms.s("age", by="g"),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_coefficients_of_numbers_and_levels_are_what_terms_add(name):
    """At the covariates of each row, which `predict` reads by another way."""
    data = simulated() | {"g": np.random.default_rng(3).choice(["a", "b", "c"], N)}
    data["Y"] = data["Y"] + (data["g"] == "b")[:, None] * (1 + T) + np.sin(4 * data["weight"])[:, None]
    fitted = FunctionalRegression([NUMBERS[name]]).fit(data, grids={"Y": T})
    term = fitted.term_names_[-1]
    added = fitted.predict(data, type="terms")[term]
    axes = [axis for axis in fitted.coef(term).columns if axis not in ("t", "value")]
    for i in range(0, N, 7):
        at = {axis: [data[axis][i]] for axis in axes}
        if "t" in fitted.coef(term).columns:
            at["t"] = T
        here = fitted.coef(term, at=at)["value"].to_numpy() + np.zeros(T.size)
        np.testing.assert_allclose(here, added[i], rtol=1e-9, atol=1e-12)
    assert np.abs(added).max() > 0.05


def test_surfaces_over_values_are_what_terms_add():
    """``∫ F{X(s), s, t} ds`` of a curve that is constant, by the trapezoidal rule."""
    data = simulated()
    fitted = FunctionalRegression([terms.sff("X")]).fit(data, grids=GRIDS)
    flat = np.full((1, S.size), 0.3)
    added = fitted.predict({"X": flat}, type="terms")["sff(X)"][0]
    surface = fitted.coef("sff(X)", s=S, x=[0.3], t=T)["value"].to_numpy().reshape(S.size, T.size)
    weights = np.full(S.size, S[1] - S[0])
    weights[[0, -1]] /= 2
    np.testing.assert_allclose(weights @ surface, added, rtol=1e-9)


def test_a_model_before_its_fit():
    model = FunctionalRegression("Y ~ ff(X)")
    assert "FunctionalRegression" in model._repr_html_()
    assert model._repr_mimebundle_()["text/plain"].startswith("FunctionalRegression(")
    for method in (model.summary, model.concurvity, model.residuals, model.plot, lambda: model.save("nowhere")):
        with pytest.raises(ValueError, match="not fitted"):
            method()
