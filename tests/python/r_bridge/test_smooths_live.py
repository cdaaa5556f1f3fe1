"""Smooths, tensor smooths, random effects and by-variables beside mgcv itself on fresh data."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest
from refund_cases import far, one

from fdadp import FunctionalRegression, ScalarRegression, inference, terms
from fdadp.functional.quadrature import quadrature_weights
from fdadp.inference.contrasts import STEP
from fdadp.regression.reading.table_columns import columns_of
from r_bridge._crosscheck_terms import cohort, models_of_cohort
from r_bridge.gam_by_formula import fit_gam
from r_bridge.to_mgcv import InMgcv

pytestmark = pytest.mark.mgcv


@pytest.fixture(scope="module")
def numbers():
    """Rows with a number as response; new rows, some beyond the range of the others."""
    rng = np.random.default_rng(0)
    n = 150
    z, w, x, g = rng.normal(size=n), rng.uniform(0, 3, n), rng.normal(size=n), rng.choice(list("abc"), n)
    y = np.sin(z) + 0.3 * w * z + 0.5 * x * np.cos(w) + (g == "b") * np.cos(z) + 0.3 * rng.normal(size=n)
    new = {"z": 1.3 * z[:20], "w": 1.3 * w[:20], "x": x[:20], "g": g[:20]}
    return {"z": z, "w": w, "x": x, "g": g, "y": y}, new


def differences(make, data, grids, theirs, new=None):
    """How far a model is from mgcv's at its smoothing parameters; and by how much its own score is above theirs."""
    same = make(smoothing=theirs["sp"]).fit(data, grids=grids)
    found = {
        "fitted": far(same.fitted_values_, theirs["fitted"]),
        "edf": abs(same.edf_ / one(theirs["edf_total"]) - 1),
        "sigma2": abs(same.sigma2_ / one(theirs["sig2"]) - 1),
    }
    if new is not None:
        found["predicted"] = far(same.predict(new), theirs["predicted"])
        found["se"] = far(same.predict_se(new, kind="iid"), theirs["predicted_se"])
    # Scores are the same up to a constant, where mgcv's coordinates are not orthonormal: ours are compared.
    own = make(smoothing="reml").fit(data, grids=grids)
    found["above"] = max(own.criterion_ - same.criterion_, 0) / (1 + abs(same.criterion_))
    return found


@pytest.mark.parametrize("name", ["ff", "concurrent", "s(z)", "x", "re"])
def test_covariance_with_that_of_smoothing_parameters_is_mgcvs(name):
    """predict(unconditional = TRUE), at optima that are the same."""
    columns, all_grids = cohort()
    model = models_of_cohort()[name].set_params(k="refund")
    data = {column: columns[column] for column in (*columns_of(model.formula), "Y")}
    grids = {column: grid for column, grid in all_grids.items() if column in data}
    new = {column: values[:8] for column, values in data.items() if column != "Y"}
    theirs = InMgcv.of(model.formula, data, grids, grids["Y"])
    rows = InMgcv.of(model.formula, new, grids, grids["Y"], data).columns
    found = fit_gam(theirs.formula, {**theirs.columns, "y": data["Y"].ravel()}, rows)
    model.fit(data, grids=grids)
    assert far(model.predict_se(new, kind="unconditional"), found["unconditional_se"]) < 1e-5
    assert far(model.predict_se(new, kind="iid"), found["unconditional_se"]) > 0.01  # it is not the same without


COUNTED = {
    's(z, bs = "ps")': [terms.s("z", bs="ps")],
    's(z, bs = "cr")': [terms.s("z", bs="cr")],
    'x + s(z, bs = "ps", k = 6)': [terms.linear("x"), terms.s("z", bs="ps", k=6)],
    's(z, bs = "ps", k = 12) + s(w, bs = "ps", k = 8)': [terms.s("z", bs="ps", k=12), terms.s("w", bs="ps", k=8)],
    's(w, bs = "cc") + x': [terms.s("w", bs="cc"), terms.linear("x")],
    's(z, bs = "ps") + s(g, bs = "re")': [terms.s("z", bs="ps"), terms.re("g")],
    's(g, bs = "re")': [terms.re("g")],
    's(z, by = x, bs = "ps")': [terms.s("z", by="x", bs="ps")],
    's(z, by = g, bs = "cr")': [terms.s("z", by="g", bs="cr")],
    "s(z)": [terms.s("z")],
    'te(z, w, bs = "ps")': [terms.te("z", "w", bs="ps")],
    "te(z, w)": [terms.te("z", "w")],
}


@pytest.mark.filterwarnings("ignore:R. Fitting terminated with step failure")  # at the limit of rounding
@pytest.mark.parametrize("formula", COUNTED)
def test_aic_is_mgcvs(numbers, formula):
    """With what choosing smoothing parameters costs, at optima that are the same to 1e-11 of the score."""
    data, _ = numbers
    theirs = fit_gam(f"y ~ {formula}", data, tolerance=1e-11)
    own = ScalarRegression(COUNTED[formula], response="y").fit(data)
    assert abs(own.aic_ - one(theirs["aic"])) < 1e-6 * abs(own.aic_)


ASKED = {
    "g + s(z)": ("gaussian", [terms.factor("g"), terms.s("z")]),
    "g + te(z, w, k = 4)": ("gaussian", [terms.factor("g"), terms.te("z", "w", k=4)]),
    "g + s(z, by = g)": ("gaussian", [terms.factor("g"), terms.s("z", by="g")]),
    's(z, bs = "ps") + g + w': ("poisson", [terms.s("z", bs="ps"), terms.factor("g"), terms.linear("w")]),
    's(z, bs = "cr") + g': ("binomial", [terms.s("z", bs="cr"), terms.factor("g")]),
    "s(z) + g + offset(w)": ("poisson", "y ~ s(z) + C(g) + offset(w)"),
}


@pytest.mark.parametrize("formula", ASKED)
def test_contrasts_and_slopes_are_those_of_mgcvs_rows(numbers, formula):
    """By lpmatrix and Vp: each level less the first and the average slope in z, on the scale of the response."""
    family, own = ASKED[formula]
    data, y = dict(numbers[0]), numbers[0]["y"]
    data["y"] = {"gaussian": y, "poisson": np.floor(np.exp(y / 2)), "binomial": 1.0 * (y > 0.5)}[family]
    n, h = len(y), STEP * np.std(data["z"])
    levels = [{**data, "g": np.full(n, level)} for level in "abc"]
    moved = [{**data, "z": data["z"] + sign * h} for sign in (1, -1)]
    new = {name: np.concatenate([one[name] for one in (*levels, *moved)]) for name in data}
    weights = [[-1, 1, 0, 0, 0], [-1, 0, 1, 0, 0], [0, 0, 0, 0.5 / h, -0.5 / h]]
    combine = np.kron(weights, np.full(n, 1 / n))
    found = fit_gam(f"y ~ {formula}", data, new, family=f"{family}()", combine=combine)
    response = {} if isinstance(own, str) else {"response": "y"}
    model = ScalarRegression(own, **response, family=family, smoothing=found["sp"]).fit(data)
    asked = (inference.contrasts(model, "g", "reference", kind="iid"), inference.slopes(model, "z", kind="iid"))
    tolerance = 1e-8 if family == "gaussian" else 1e-7
    for name, theirs in (("value", found["combined"]), ("se", found["combined_se"])):
        ours = np.concatenate([getattr(one, name) for one in asked])
        np.testing.assert_allclose(ours, theirs, atol=tolerance * np.abs(theirs).max())


SCALAR = {
    "s(z)": [terms.s("z")],
    "s(z, k = 6, m = 1)": [terms.s("z", k=6, m=1)],
    "s(z, k = 12, m = 3)": [terms.s("z", k=12, m=3)],
    's(z, bs = "ps")': [terms.s("z", bs="ps")],
    's(z, bs = "ps", m = c(2, 1), k = 7)': [terms.s("z", bs="ps", m=(2, 1), k=7)],
    's(z, bs = "cr", k = 9)': [terms.s("z", bs="cr", k=9)],
    's(w, bs = "cc", k = 9)': [terms.s("w", bs="cc", k=9)],
    "te(z, w)": [terms.te("z", "w")],
    'te(z, w, bs = c("tp", "ps"), k = c(5, 6))': [terms.te("z", "w", bs=("tp", "ps"), k=(5, 6))],
    "te(z, w, x, k = 3)": [terms.te("z", "w", "x", k=3)],
    "s(z, by = x)": [terms.s("z", by="x")],
    's(w, by = x, bs = "cc")': [terms.s("w", by="x", bs="cc")],
    "te(z, w, by = x)": [terms.te("z", "w", by="x")],
    "g + s(z, by = g)": [terms.factor("g"), terms.s("z", by="g")],
    "g + te(z, w, by = g, k = 3)": [terms.factor("g"), terms.te("z", "w", by="g", k=3)],
    's(g, bs = "re") + s(w)': [terms.re("g"), terms.s("w")],
    's(g, by = x, bs = "re") + s(w)': [terms.by("x", terms.re("g")), terms.s("w")],
}


@pytest.mark.parametrize("formula", SCALAR)
def test_scalar_responses(numbers, formula):
    data, new = numbers
    theirs = fit_gam(f"y ~ {formula}", data, new)
    found = differences(partial(ScalarRegression, SCALAR[formula]), data, None, theirs, new)
    assert found.pop("above") <= 1e-6
    assert max(found.values()) <= 1e-9, found


T = np.linspace(0, 1, 21)
MEAN = 's(t, bs = "ps", k = 20, m = c(2, 1))'
TI = "mc = c(TRUE, FALSE), k = c(8, 5), m = c(2, 1)"
CURVES = {
    f'ti(w, t, bs = c("cc", "ps"), {TI})': [terms.s("w", bs="cc")],
    f'ti(w, t, bs = c("cr", "ps"), {TI})': [terms.s("w", bs="cr")],
    f'ti(z, t, by = g, bs = c("tp", "ps"), {TI})': [terms.s("z", by="g")],
    "s(z) + g": [terms.c(terms.s("z")), terms.c(terms.factor("g"))],
    "te(z, w)": [terms.c(terms.te("z", "w"))],
    's(t, by = x, bs = "ps", k = 5, m = c(2, 1))': [terms.linear("x")],
    # What refund 0.1-40 makes of s(z): the margin over t has the penalty that was asked for.
    'ti(z, t, bs = c("tp", "ps"), mc = c(TRUE, FALSE), k = c(8, 5), m = list(NA, c(2, 1)))': [
        terms.s("z", m=(2, (2, 1)))
    ],
}


@pytest.mark.parametrize("formula", CURVES)
def test_responses_that_are_curves(numbers, formula):
    agrees(numbers[0], f"y ~ {MEAN} + {formula}", partial(FunctionalRegression, CURVES[formula], k="refund"))


def test_random_curves(numbers):
    """Without a mean curve: beside one mgcv deletes coordinates of random curves that it has too (``gam.side``)."""
    model = partial(FunctionalRegression, [terms.re("g", k=5)], intercept=False)
    agrees(numbers[0], f'y ~ ti(g, t, bs = c("re", "ps"), {TI}) - 1', model)


PARTS = {
    f'ti(z, t, bs = c("cr", "ps"), {TI})': [terms.s("z", bs="cr")],
    f'ti(z, t, by = g, bs = c("ps", "ps"), {TI})': [terms.s("z", bs="ps", by="g")],
    "s(z)": [terms.c(terms.s("z"))],
    "te(z, w)": [terms.c(terms.te("z", "w"))],
}


@pytest.mark.parametrize("where", ["gaps", "points of their own"])
@pytest.mark.parametrize("formula", PARTS)
def test_rows_count_as_often_as_they_were_observed(numbers, formula, where):
    """In constraints and in scales of penalties; one row in three was not observed at all."""
    rng = np.random.default_rng(3)
    rows = {name: column[:60] for name, column in numbers[0].items()}
    observed = rng.uniform(size=(60, T.size)) < rng.choice([0, 0.2, 0.9], 60)[:, None]
    row, at = np.nonzero(observed)
    t = T[at] if where == "gaps" else rng.uniform(size=row.size)
    y = np.sin(2 * rows["z"][row]) * t + rows["w"][row] + 0.2 * rng.normal(size=row.size)
    long = {"row": row, "t": t, "y": y}
    theirs = fit_gam(f"y ~ {MEAN} + {formula}", {**{name: c[row] for name, c in rows.items()}, "t": t, "y": y})
    data, fit = {name: c for name, c in rows.items() if name != "y"}, {}
    if where == "gaps":
        data["Y"] = np.full(observed.shape, np.nan)
        data["Y"][observed], fit["grids"] = y, {"Y": T}
    else:
        fit["response"] = pd.DataFrame(long)
    same = FunctionalRegression(PARTS[formula], smoothing=theirs["sp"], k="refund").fit(data, **fit)
    fitted = same.fitted_values_[observed] if where == "gaps" else same.fitted_values_  # by row and t
    assert far(fitted, theirs["fitted"][np.lexsort((t, row))]) < 1e-9
    assert abs(same.edf_ / one(theirs["edf_total"]) - 1) < 1e-9
    assert abs(same.sigma2_ / one(theirs["sig2"]) - 1) < 1e-9


@pytest.mark.parametrize(("by", "sort"), [("g", "levels"), ("g", "treatment"), ("x", "numbers")])
def test_functional_terms_times_a_column(numbers, by, sort):
    """``C(g):ff(X)`` is mgcv's te() by weights that are zero for other levels."""
    rows = {name: column[:60] for name, column in numbers[0].items()}
    rng = np.random.default_rng(2)
    s = np.linspace(0, 1, 12)
    x = rng.normal(size=(60, 4)) @ np.array([np.ones(12), np.sin(3 * s), np.cos(3 * s), s])
    slope = {"a": 1.0, "b": -1.0, "c": 0.5}
    y = np.array([slope[g] for g in rows["g"]])[:, None] * np.outer(x.mean(axis=1), np.sin(3 * T))
    y += 0.2 * rng.normal(size=y.shape)
    weights = quadrature_weights(s) * x  # by = L.X
    parts = {"numbers": [rows["x"]], "levels": [rows["g"] == v for v in "abc"]}
    parts["treatment"] = parts["levels"][1:]
    long = {"t": np.tile(T, 60), "y": y.ravel(), "S": np.tile(s, (60 * T.size, 1))}
    long["U"] = np.repeat(long["t"][:, None], s.size, axis=1)
    formula = f"y ~ {MEAN}"
    for i, part in enumerate(parts[sort]):
        long[f"L{i}"] = np.repeat(weights * part[:, None], T.size, axis=0)
        formula += f' + te(S, U, by = L{i}, bs = "ps", k = c(5, 5), m = list(c(2, 1), c(2, 1)))'
    model = partial(FunctionalRegression, [terms.by(by, terms.ff("X"), coding=sort)], k="refund")
    found = differences(model, {**rows, "X": x, "Y": y}, {"X": s, "Y": T}, fit_gam(formula, long))
    assert found.pop("above") <= 1e-6
    assert max(found.values()) <= 1e-9, found


def agrees(data, formula, model):
    """A model is mgcv's on the long form of 60 curves."""
    rows = {name: column[:60] for name, column in data.items()}
    rng = np.random.default_rng(1)
    curves = rows["y"][:, None] * np.cos(3 * T) + np.outer(rows["x"], T) + 0.3 * rng.normal(size=(60, T.size))
    long = {name: np.repeat(column, T.size) for name, column in rows.items()}
    theirs = fit_gam(formula, {**long, "t": np.tile(T, 60), "y": curves.ravel()})
    found = differences(model, {**rows, "Y": curves}, {"Y": T}, theirs)
    assert found.pop("above") <= 1e-6
    assert max(found.values()) <= 1e-8, found


@pytest.mark.parametrize(
    "formula", ["s(dose, k = 7)", "s(dose, k = 6)", 's(dose, k = 7, by = x, bs = "tp")', "s(dose, k = 7, m = 1)"]
)
def test_as_many_functions_as_different_values(formula):
    """mgcv decomposes nothing where k is the number of different values: 7 doses had another smoothing parameter."""
    rng = np.random.default_rng(1)
    data = {"dose": np.tile([0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0], 20), "x": rng.normal(size=140)}
    data["y"] = np.log1p(data["dose"]) * np.sin(data["dose"]) + 0.5 * data["x"] + 0.5 * rng.normal(size=140)
    theirs = fit_gam(f"y ~ {formula}", data)
    same = ScalarRegression(f"y ~ {formula}", smoothing=theirs["sp"]).fit(data)
    assert far(same.fitted_values_, theirs["fitted"]) < 1e-9
    assert abs(same.edf_ - one(theirs["edf_total"])) < 1e-8
