"""The package marginaleffects on our models: beside mgcv's rows by R; curves, labels, offsets, private fits; refusals.

Tests that call marginaleffects are skipped where it is not, or where polars is 2, with which it fails. Of ``.ci/run``
the run with Python 3.13 has both.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fdadp import FunctionalRegression, Privacy, ScalarRegression, inference
from fdadp.errors import InputError
from fdadp.functional.quadrature import quadrature_weights
from fdadp.inference.estimates import fitted_of
from fdadp.inference.numbered_rows import NumberedRows
from r_bridge.gam_by_formula import fit_gam

S = np.linspace(0, 1, 20)
STEP = 1e-6
"""By which coefficients are moved for standard errors of slopes."""


@pytest.fixture(scope="module")
def me():
    """The package."""
    package = pytest.importorskip("marginaleffects")
    polars = pytest.importorskip("polars")
    if int(polars.__version__.split(".")[0]) > 1:
        pytest.skip(f"marginaleffects fails with polars {polars.__version__}")
    return package


pytestmark = pytest.mark.filterwarnings("ignore:.*get_categories")  # marginaleffects' own


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(5)
    n = 300
    x, z, g = rng.uniform(size=n), rng.normal(size=n), rng.choice(list("abc"), n)
    X = rng.normal(size=(n, len(S))).cumsum(axis=1) / 3
    eta = np.sin(6 * x) + 0.5 * z + (g == "b") * 0.7 - (g == "c") * 0.5 + X @ np.sin(np.pi * S) / 10
    return {"y": 1.0 * (rng.uniform(size=n) < 1 / (1 + np.exp(-eta))), "x": x, "z": z, "g": g, "X": X}


def found_by(result):
    """Estimates and standard errors."""
    return result["estimate"].to_numpy(), result["std_error"].to_numpy()


def agree(ours, theirs, atol):
    for own, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(own, other, rtol=0, atol=atol)


LINEAR = 's(S, by = XW, bs = "ps", k = 8, m = c(2, 2))'
MODELS = {
    "s(x) + z + C(g)": ('s(x, bs = "ps", k = 10) + z + g', "y ~ s(x, bs='ps', k=10) + z + C(g)"),
    "lf(X) beside": (f's(x, bs = "ps", k = 10) + z + g + {LINEAR}', "y ~ s(x, bs='ps', k=10) + z + C(g) + lf(X, k=8)"),
}


@pytest.mark.mgcv
@pytest.mark.parametrize("name", MODELS)
def test_answers_are_those_of_mgcvs_rows(me, people, name):
    """By lpmatrix and Vp: average slopes to 5e-7, comparisons to 1e-7, predictions to 1e-8; standard errors too."""
    theirs, own = MODELS[name]
    n = len(people["y"])
    matrices = {"S": np.tile(S, (n, 1)), "XW": people["X"] * quadrature_weights(S, "trapezoid")}
    data = {**{key: people[key] for key in ("y", "x", "z", "g")}, **(matrices if "XW" in theirs else {})}
    grid = {**{key: values[:2] for key, values in data.items()}, "x": np.array([0.2, 0.5]), "g": np.array(["b", "b"])}
    half = {key: 1e-4 * np.ptp(data[key]) / 2 for key in ("x", "z")}
    moved = [{**data, key: data[key] + sign * half[key]} for key in ("x", "z") for sign in (1, -1)]
    tables = [{**data, "g": np.full(n, level)} for level in "abc"] + moved + [grid]
    new = {key: np.concatenate([table[key] for table in tables]) for key in data}
    each = np.zeros((6, 7))
    each[[0, 0, 1, 1], [0, 1, 0, 2]] = -1, 1, -1, 1
    each[2, [3, 4]], each[3, [5, 6]] = ([s / 2 / h for s in (1, -1)] for h in half.values())
    combine = np.zeros((6, 7 * n + 2))
    combine[:, : 7 * n] = np.kron(each, np.full(n, 1 / n))
    combine[[4, 5], [7 * n, 7 * n + 1]] = 1
    answer = fit_gam(f"y ~ {theirs}", data, new, family="binomial()", combine=combine, tolerance=1e-9)
    model = ScalarRegression(own, family="binomial", smoothing=np.atleast_1d(answer["sp"]))
    model.fit(people, grids={"X": S} if "lf" in own else None)
    wrapped = inference.for_marginaleffects(model, people, kind="iid")
    value, se = answer["combined"], answer["combined_se"]
    agree(found_by(me.avg_comparisons(wrapped, variables="g")), (value[:2], se[:2]), 1e-7)
    agree(found_by(me.avg_slopes(wrapped, variables=["x", "z"], eps_vcov=STEP)), (value[2:4], se[2:4]), 5e-7)
    slopes = found_by(me.avg_slopes(wrapped, variables=["x", "z"]))
    agree(slopes, (value[2:4], se[2:4]), 1e-4)  # its own step, 1.5e-8 of a coefficient, rounds
    curves = {"X": [0, 1]} if "lf" in own else {}
    new = me.datagrid(wrapped, x=[0.2, 0.5], z=people["z"][:2], g="b", grid_type="dataframe", **curves)
    agree(found_by(me.predictions(wrapped, newdata=new)), (value[4:], se[4:]), 1e-8)


@pytest.fixture(scope="module")
def of_curves(people):
    return ScalarRegression("y ~ lf(X, k=8) + s(x) + C(g)", family="binomial").fit(people, grids={"X": S})


def test_answers_are_ours(me, people, of_curves):
    """Slopes, contrasts and intervals are those of fdadp.inference, by persons where the fit had groups."""
    persons = np.repeat(np.arange(100), 3)
    model = ScalarRegression("y ~ lf(X, k=8) + s(x) + C(g)", family="binomial").fit(
        people, grids={"X": S}, groups=persons
    )
    for fit, kind in ((of_curves, None), (of_curves, "iid"), (model, None)):
        wrapped = inference.for_marginaleffects(fit, people, kind=kind)
        theirs, ours = me.avg_slopes(wrapped, variables="x", eps_vcov=STEP), inference.slopes(fit, "x", kind=kind)
        agree(found_by(theirs), (ours.value, ours.se), 1e-6)
        theirs = me.avg_comparisons(wrapped, variables={"g": "pairwise"})
        ours = inference.contrasts(fit, "g", kind=kind).to_frame()
        agree(found_by(theirs), (ours["value"], ours["se"]), 1e-7)
        agree([theirs["conf_low"], theirs["conf_high"]], [ours["lower"], ours["upper"]], 1e-6)
    assert wrapped.df_resid == 99


def test_a_curve_is_told_by_its_row_or_is_the_mean_curve(me, people, of_curves):
    wrapped = inference.for_marginaleffects(of_curves, people)
    there = {"x": [0.5, 0.5], "g": ["b", "b"]}
    found = me.predictions(wrapped, newdata=me.datagrid(wrapped, X=[7, 4], x=[0.5], g="b"))
    agree([found["estimate"]], [of_curves.predict({"X": people["X"][[7, 4]], **there})], 1e-12)
    mean = of_curves.predict({"X": people["X"].mean(axis=0)[None], "x": [0.5], "g": ["b"]})
    for grid in (me.datagrid(wrapped, x=[0.5], g="b"), pd.DataFrame({"x": [0.5], "g": pd.Categorical(["b"])})):
        agree([me.predictions(wrapped, newdata=grid)["estimate"]], [mean], 1e-12)
    with pytest.raises(InputError, match=r"X must hold the numbers, 0 to 299, of rows of data .* got 300"):
        me.predictions(wrapped, newdata=me.datagrid(wrapped, X=[300]))
    each = me.predictions(wrapped)["estimate"]
    agree([each], [of_curves.predict(people)], 1e-12)
    assert me.avg_slopes(wrapped)["term"].to_list() == ["g", "g", "x"]  # curves have none


def test_levels_that_are_numbers_offsets_computed_columns_and_columns_beside(me, people):
    rng = np.random.default_rng(0)
    n = len(people["x"])
    data = {"dose": rng.choice([1, 2, 10], n), "age": rng.uniform(20, 70, n), "o": rng.uniform(size=n)}
    data["sex"], data["y"] = rng.choice(["f", "m"], n), rng.poisson(np.exp(data["o"] + data["dose"] / 10)) * 1.0
    model = ScalarRegression("y ~ C(dose) + log(age) + offset(o)", family="poisson").fit(data)
    wrapped = inference.for_marginaleffects(model, data, beside=["sex"])
    found = me.avg_comparisons(wrapped, variables="dose")
    ours = inference.contrasts(model, "dose", "reference", new=data)
    assert found["contrast"].to_list() == ["2 - 1", "10 - 1"]
    agree(found_by(found), (ours.value, ours.se), 1e-6)
    ours = inference.slopes(model, "age", new=data)
    agree(found_by(me.avg_slopes(wrapped, variables="age", eps_vcov=STEP)), (ours.value, ours.se), 1e-6)
    averages = me.avg_predictions(wrapped, by="sex")
    means = [model.predict(data)[data["sex"] == sex].mean() for sex in averages["sex"]]
    agree([averages["estimate"]], [means], 1e-10)
    link = inference.for_marginaleffects(model, data, scale="link")
    agree([me.predictions(link)["estimate"]], [model.predict(data, type="link")], 1e-10)
    with pytest.raises(InputError, match=r"vcov must be True, False or a matrix; .*kind='iid'"):
        me.avg_slopes(wrapped, vcov="iid")
    assert "std_error" not in me.avg_slopes(wrapped, variables="age", vcov=False).columns


def test_a_private_fit_answers_for_public_rows(me):
    rng = np.random.default_rng(0)
    n = 2000
    data = {"x": rng.uniform(size=n), "g": rng.choice(["a", "b"], n)}
    data["y"] = data["x"] + (data["g"] == "b") + 0.1 * rng.normal(size=n)
    bounds = {"x": (0, 1), "g": ["a", "b"], "y": (-1, 3)}
    model = ScalarRegression("y ~ x + C(g)", privacy=Privacy(4, 1e-6), bounds=bounds).fit(data)
    public = {"x": [0.2, 0.8], "g": ["a", "b"]}
    ours = inference.contrasts(model, "g", new=public)
    agree(
        found_by(me.avg_comparisons(inference.for_marginaleffects(model, public), variables="g")),
        (ours.value, ours.se),
        1e-6,
    )


def test_the_page_runs(me, capsys):
    page = Path(__file__).resolve().parents[3] / "docs" / "after-the-fit.md"
    (block,) = re.findall(r"^```py\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    names: dict[str, object] = {}
    exec(compile(block, str(page), "exec"), names)
    assert capsys.readouterr().out.count("Std.Error") == 4


def test_rows_of_the_design(people, of_curves):
    """Without the package."""
    own = NumberedRows.of(fitted_of(of_curves), people, None, ["z"])
    rows = own.design({"X": ["7", None], "x": people["x"][:2], "g": ["b", "c"]})
    curves = np.stack([people["X"][7], people["X"].mean(axis=0)])
    wanted = inference.design_rows(of_curves, {"X": curves, "x": people["x"][:2], "g": ["b", "c"]})
    np.testing.assert_allclose(rows, wanted, atol=1e-12)
    assert list(own.numbers) == ["x", "y", "z"] and list(own.labels) == ["g"]


def test_refusals(people, of_curves):
    curves = FunctionalRegression("X ~ z", progress=False).fit(people, grids={"X": S})
    with pytest.raises(InputError, match=r"model must be a ScalarRegression; for curves fdadp.inference has"):
        inference.for_marginaleffects(curves, people)
    with pytest.raises(InputError, match=r"beside must name columns of numbers or labels, got X, which holds curves"):
        inference.for_marginaleffects(of_curves, people, beside=["X"])
    with pytest.raises(InputError, match="scale must be"):
        inference.for_marginaleffects(of_curves, people, scale="logit")
    if find_spec("marginaleffects") is None:
        with pytest.raises(
            InputError, match=r"marginaleffects must be installed \(pip install 'fdadp\[marginaleffects\]'\)"
        ):
            inference.for_marginaleffects(of_curves, people)
