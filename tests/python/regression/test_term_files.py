"""Saved models of many terms: a loaded one says the same, and the file holds no training row."""

from __future__ import annotations

import json
import pickle
import zipfile

import numpy as np
import pandas as pd
import pytest

from fdadp import FunctionalRegression, ScalarRegression, terms
from fdadp.errors import FileFormatError, InputError

S, T = np.linspace(0, 2, 25), np.linspace(0, 1, 20)
N = 43
GRIDS = {"X": S, "Z": T, "Y": T}


@pytest.fixture(scope="module")
def data():
    draw = np.random.default_rng(1)
    x = draw.normal(size=(N, 6)) @ np.array([np.cos(k * np.pi * S / 2) / (1 + k) for k in range(6)])
    z = draw.normal(size=(N, 4)) @ np.array([np.sin(k * T + k) for k in range(4)])
    age, region = draw.uniform(20, 60, N), draw.choice(["east", "north", "west"], N)
    y = x[:, ::5] @ draw.normal(size=(5, T.size)) / 5 + z * T + (region == "west")[:, None] + np.sin(age / 9)[:, None]
    y += 0.1 * draw.normal(size=y.shape)
    person = draw.integers(0, 9, N)
    return {"X": x, "Z": z, "age": age, "region": region, "person": person, "Y": y, "y": y.mean(axis=1)}


CURVES = {
    "several": (terms.ff("X", limits="s<=t"), terms.concurrent("Z"), terms.factor("region"), terms.s("age")),
    "surface": (terms.sff("X"), terms.linear("age", constant=True)),
    "components": (terms.ffpc("X"), terms.s("age", by="region"), terms.re("person")),
    "tensor": (terms.te("age", "person", k=(4, 4)),),
}
NUMBERS = {
    "linear": (terms.lf("X"), terms.linear("age"), terms.factor("region")),
    "surface": (terms.af("X"), terms.s("age", bs="cr")),
    "components": (terms.fpcr("X"), terms.s("age", bs="cc")),
}


def same(a, b):
    np.testing.assert_allclose(np.asarray(a, dtype=float), np.asarray(b, dtype=float), rtol=1e-13, atol=1e-13)


def check(model, data, path):
    loaded = type(model).load(model.save(path / "model"))
    assert loaded.get_params().keys() == model.get_params().keys()
    assert str(loaded.summary()) == str(model.summary())
    same(loaded.predict(data), model.predict(data))
    same(loaded.predict_se(data), model.predict_se(data))
    for ours, theirs in zip(loaded.predict_interval(data), model.predict_interval(data), strict=True):
        same(ours, theirs)
    for name in model.term_names_:
        pd.testing.assert_frame_equal(loaded.coef(name, se=True), model.coef(name, se=True), rtol=1e-12)
    assert loaded.term_edf_ == model.term_edf_
    return loaded


@pytest.mark.parametrize("case", CURVES)
def test_curves(data, case, tmp_path):
    model = FunctionalRegression(CURVES[case]).fit(data, grids=GRIDS)
    loaded = check(model, data, tmp_path)
    same(loaded.predict(data, t=[0.25, 0.5]), model.predict(data, t=[0.25, 0.5]))
    assert not hasattr(loaded, "fitted_values_")


@pytest.mark.parametrize("case", NUMBERS)
def test_numbers(data, case, tmp_path):
    check(ScalarRegression(NUMBERS[case]).fit(data, grids=GRIDS), data, tmp_path)


def more(data):
    """Responses and gaps beside the other columns."""
    draw = np.random.default_rng(2)
    gone = {"age": data["age"].copy(), "X": data["X"].copy()}
    gone["age"][3], gone["X"][5, 3:6] = np.nan, np.nan
    counts = {"count": draw.poisson(2, N) * 1.0, "group": np.where(data["y"] + draw.normal(size=N) > 0, "high", "low")}
    return data | {"P": np.exp(data["Y"])} | counts | {f"{name}_gone": v for name, v in gone.items()}


OTHERS = {
    "formula": (FunctionalRegression, "log(P) ~ ff(X, limits='s<=t') + region*age + mean(Z)", {}, {}),
    "scalar formula": (ScalarRegression, "y ~ lf(X) + region + last(Z) + s(age)", {}, {}),
    "groups": (FunctionalRegression, "Y ~ ff(X) + age", {}, {"groups": "person"}),
    "weights": (FunctionalRegression, "Y ~ age", {}, {"weights": "age"}),
    "classes": (ScalarRegression, "group ~ lf(X, k=6) + age", {"family": "binomial"}, {}),
    "counts": (ScalarRegression, "count ~ s(age)", {"family": "poisson"}, {}),
    "gaps": (
        FunctionalRegression,
        "Y ~ ff(X_gone) + age_gone",
        {"missing": {"age_gone": "indicator", "X_gone": "fpca"}},
        {},
    ),
    "generalised": (FunctionalRegression, "Y ~ ff(X) + age", {"errors": "curve", "variance": "model"}, {}),
    "by level": (FunctionalRegression, [terms.ff("X", limits="s<=t", by="region")], {"smoothing": [1e-2] * 7}, {}),
}


@pytest.mark.parametrize("case", OTHERS)
def test_formulas_families_groups_and_gaps(data, case, tmp_path):
    kind, formula, settings, fit = OTHERS[case]
    rows = more(data)
    grids = GRIDS | {"P": T, "X_gone": S}
    model = kind(formula, **settings).fit(rows, grids=grids, **fit)
    loaded = kind.load(model.save(tmp_path / "model"))
    assert str(loaded) == str(model)
    same(loaded.predict(rows), model.predict(rows))
    same(loaded.predict_se(rows), model.predict_se(rows))
    for se in ("iid", "curve", "cluster")[: 3 if fit.get("groups") else 2 if kind is FunctionalRegression else 1]:
        same(loaded.vcov(se), model.vcov(se))
    pd.testing.assert_frame_equal(loaded.test_terms(), model.test_terms())
    if kind is FunctionalRegression:
        for ours, theirs in zip(loaded.predict_interval(rows), model.predict_interval(rows), strict=True):
            same(ours, theirs)
    if case == "classes":
        assert loaded.classes_.tolist() == ["high", "low"]
        same(loaded.predict_proba(rows), model.predict_proba(rows))


@pytest.mark.parametrize("settings", [{}, {"errors": "curve", "variance": "model"}, {"variance": "t"}])
def test_no_array_of_a_file_has_one_entry_a_record(data, settings, tmp_path):
    model = FunctionalRegression(CURVES["several"][:3], **settings).fit(data, grids=GRIDS, groups="person")
    with zipfile.ZipFile(model.save(tmp_path / "model")) as file:
        text = file.read("header.npy")
    header = json.loads(text[text.index(b"\n") + 1 :])

    def shapes(tree):
        if isinstance(tree, dict):
            yield from [tree["shape"]] if "shape" in tree else (s for v in tree.values() for s in shapes(v))
        elif isinstance(tree, list):
            yield from (s for v in tree for s in shapes(v))

    found = list(shapes(header["content"]["tree"]))
    assert len(found) > 20
    assert not any(N in shape for shape in found)


def test_columns_of_a_frame_come_back(data, tmp_path):
    hours = pd.Index([f"{k:02}h" for k in range(T.size)], name="hour")
    y = pd.DataFrame(data["Y"], columns=hours)
    model = FunctionalRegression([terms.linear("age")]).fit({"age": data["age"]}, y, grids={"Y": T})
    loaded = FunctionalRegression.load(model.save(tmp_path / "model.npz"))
    pd.testing.assert_frame_equal(loaded.predict(data), model.predict(data))
    pd.testing.assert_index_equal(loaded.predict(data).columns, hours)


def test_what_cannot_be_saved_or_loaded(data, tmp_path):
    model = FunctionalRegression([terms.ff("X", limits=lambda s, t: s <= t)]).fit(data, grids=GRIDS)
    with pytest.raises(InputError, match=r"limits must be made of numbers, texts, lists and None"):
        model.save(tmp_path / "model")
    scalar = ScalarRegression([terms.linear("age")]).fit(data)
    with pytest.raises(FileFormatError, match="must hold a 'FunctionalRegression', got 'ScalarRegression'"):
        FunctionalRegression.load(scalar.save(tmp_path / "scalar"))


def test_a_model_pickles(data):
    model = FunctionalRegression(CURVES["several"]).fit(data, grids=GRIDS)
    again = pickle.loads(pickle.dumps(model))
    same(again.predict(data), model.predict(data))
    same(again.residuals_, model.residuals_)
