"""Models of many terms from chunks: the answer is that of the whole table."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from skfda import FDataGrid

from fdadp import FunctionalRegression, ScalarRegression
from fdadp.errors import InputError
from fdadp.solve.errors import sandwich as curve_errors

S, T = np.linspace(0, 2, 31), np.linspace(0, 1, 25)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    n = 120
    x = np.cumsum(rng.normal(size=(n, S.size)), axis=1) / 4
    data = pd.DataFrame({"age": rng.normal(size=n), "region": rng.choice(list("abc"), n)})
    data["person"] = np.repeat(np.arange(n // 3), 3)
    data["X"] = FDataGrid(x, S)
    mean = (
        100
        + x @ np.sin(np.outer(S, T)) / S.size
        + np.outer(data["age"], T)
        + (data["region"] == "b").to_numpy()[:, None]
    )
    data["Y"] = FDataGrid(mean + np.cumsum(rng.normal(size=(n, T.size)), axis=1) / 5, T)
    data["y"] = mean[:, 3] + rng.normal(size=n)
    data["count"] = rng.poisson(np.exp(0.4 * data["age"]))
    return data


def pieces(table, *stops):
    ends = [0, *stops, len(table)]
    return [table.iloc[a:b] for a, b in pairwise(ends)]


def assert_same(chunked, whole, new, rtol=1e-7):
    np.testing.assert_allclose(chunked.smoothing_parameters_, whole.smoothing_parameters_, rtol=1e-3)
    for name in ("criterion_", "sigma2_", "edf_", "null_deviance_", "deviance_", "loglik_", "aic_"):
        np.testing.assert_allclose(getattr(chunked, name), getattr(whole, name), rtol=1e-5, err_msg=name)
    one, other = (m.predict(new) for m in (chunked, whole))
    values = [p.data_matrix if hasattr(p, "data_matrix") else p for p in (one, other)]
    np.testing.assert_allclose(*values, rtol=rtol)
    ses = [p.data_matrix if hasattr(p, "data_matrix") else p for p in (chunked.predict_se(new), whole.predict_se(new))]
    np.testing.assert_allclose(*ses, rtol=1e-4)
    assert type(one) is type(other)


@pytest.mark.parametrize("groups", [None, "person"])
def test_curves_from_chunks_are_fitted_as_from_one_table(table, groups):
    formula = "Y ~ ff(X, k=(5, 5)) + s(age, k=6) + region"
    whole = FunctionalRegression(formula, progress=False).fit(table, groups=groups)
    chunked = FunctionalRegression(formula, progress=False).fit_chunks(pieces(table, 1, 50, 90), groups=groups)
    assert_same(chunked, whole, table.iloc[:7])
    assert not hasattr(chunked, "fitted_values_")
    kinds = ("iid", "curve") if groups is None else ("iid", "curve", "cluster")
    for kind in kinds:
        np.testing.assert_allclose(
            chunked.vcov(kind), whole.vcov(kind), rtol=1e-3, atol=1e-6 * whole.vcov(kind).abs().max().max()
        )
    pd.testing.assert_frame_equal(chunked.test_terms(), whole.test_terms(), rtol=1e-3)


def test_gaps_come_in_chunks_too(table):
    values = table["Y"].array.data_matrix[..., 0].copy()
    values[40:60, 5:9] = np.nan
    data = table.copy()
    data["Y"] = FDataGrid(values, T)
    formula = "Y ~ ff(X) + s(age, k=6)"
    whole = FunctionalRegression(formula, progress=False).fit(data)
    chunked = FunctionalRegression(formula, progress=False).fit_chunks(pieces(data, 30, 50))
    assert_same(chunked, whole, data.iloc[:7])


@pytest.mark.parametrize(
    ("formula", "family"), [("y ~ lf(X, k=8) + age", "gaussian"), ("count ~ s(age, k=6) + region", "poisson")]
)
def test_numbers_from_chunks_are_fitted_as_from_one_table(table, formula, family):
    whole = ScalarRegression(formula, family=family, progress=False).fit(table)
    chunked = ScalarRegression(formula, family=family, progress=False).fit_chunks(lambda: iter(pieces(table, 10, 100)))
    assert_same(chunked, whole, table.iloc[:7], rtol=1e-5)


@pytest.mark.parametrize("gaps", [False, True])
def test_weights_and_offsets_come_in_chunks_too(table, gaps):
    rng = np.random.default_rng(1)
    data = table.assign(w=rng.uniform(0.5, 2, len(table)), exposure=rng.normal(size=len(table)))
    data["wide"] = FDataGrid(rng.uniform(0.5, 2, size=(len(table), T.size)), T)
    values = table["Y"].array.data_matrix[..., 0].copy()
    if gaps:
        values[40:60, 5:9] = np.nan
    data["Y"] = FDataGrid(values, T)
    formula = "Y ~ ff(X) + s(age, k=6)"
    for beside in ({"weights": "w"}, {"weights": "wide", "offset": "exposure"}, {"offset": "wide"}):
        whole = FunctionalRegression(formula, progress=False).fit(data, **beside)
        chunked = FunctionalRegression(formula, progress=False).fit_chunks(pieces(data, 30, 50), **beside)
        assert_same(chunked, whole, data.iloc[:7])
    plain = FunctionalRegression(formula, progress=False).fit(data)
    assert np.abs(chunked.predict(data).data_matrix - plain.predict(data).data_matrix).max() > 1e-3


@pytest.mark.parametrize(
    ("formula", "family", "beside"),
    [
        ("y ~ lf(X, k=8) + age", "gaussian", {"weights": "w"}),
        ("count ~ s(age, k=6)", "poisson", {"offset": "exposure"}),
        ("share ~ s(age, k=6)", "binomial", {"weights": "trials"}),
    ],
)
def test_numbers_with_weights_and_offsets(table, formula, family, beside):
    rng = np.random.default_rng(2)
    data = table.assign(w=rng.uniform(0, 2, len(table)), exposure=rng.normal(size=len(table)) / 4)
    data["trials"] = rng.integers(1, 9, len(table)).astype(float)
    data["share"] = rng.binomial(data["trials"].astype(int), 0.4) / data["trials"]
    data.loc[7, "w"] = 0.0
    whole = ScalarRegression(formula, family=family, progress=False).fit(data, **beside)
    chunked = ScalarRegression(formula, family=family, progress=False).fit_chunks(pieces(data, 10, 100), **beside)
    assert_same(chunked, whole, data.iloc[:7], rtol=1e-5)


@pytest.mark.parametrize("missing", ["linear", "smooth", {"X": "linear"}])
def test_gaps_of_covariates_are_filled_row_by_row(table, missing):
    values = table["X"].array.data_matrix[..., 0].copy()
    values[np.random.default_rng(3).uniform(size=values.shape) < 0.05] = np.nan
    data = table.assign(age=table["age"])
    data["X"] = FDataGrid(values, S)
    whole = FunctionalRegression("Y ~ ff(X) + age", missing=missing, progress=False).fit(data)
    chunked = FunctionalRegression("Y ~ ff(X) + age", missing=missing, progress=False).fit_chunks(pieces(data, 30))
    assert_same(chunked, whole, data.iloc[:7])


@pytest.mark.parametrize(
    ("beside", "change", "text"),
    [
        ({"weights": np.ones(120)}, {}, "weights must be the name of a column when fitting from chunks"),
        ({"offset": "exposur"}, {}, "must have the column 'exposur'"),
        ({"weights": "region"}, {}, "weights must be numbers or the name of a column of numbers, got labels"),
        ({"weights": "w"}, {"w": -1.0}, "weights must not be negative, got -1 in row 50"),
        ({"weights": "X"}, {}, r"weights must be of shape \(50,\) or \(50, 25\), got \(50, 31\)"),
    ],
)
def test_weights_and_offsets_that_are_none(table, beside, change, text):
    first, second = pieces(table.assign(w=1.0), 50)
    with pytest.raises(InputError, match=text):
        FunctionalRegression("Y ~ age", progress=False).fit_chunks([first, second.assign(**change)], **beside)


def test_weights_that_are_all_zero(table):
    with pytest.raises(InputError, match="weights must not all be 0"):
        FunctionalRegression("Y ~ age", progress=False).fit_chunks(pieces(table.assign(w=0.0), 50), weights="w")


def test_a_model_from_chunks_is_saved_and_loaded(table, tmp_path):
    model = FunctionalRegression("Y ~ ff(X) + age", progress=False).fit_chunks(pieces(table, 50))
    loaded = FunctionalRegression.load(model.save(tmp_path / "model"))
    new = table.iloc[:5]
    np.testing.assert_array_equal(loaded.predict(new).data_matrix, model.predict(new).data_matrix)
    np.testing.assert_array_equal(loaded.predict_se(new).data_matrix, model.predict_se(new).data_matrix)


def test_of_large_data_only_scores_are_kept(table, monkeypatch):
    chunks = pieces(table, 50)
    from fdadp.regression import fit_in_chunks as chunked

    whole = FunctionalRegression("Y ~ ff(X) + age", progress=False)
    for module in (curve_errors, chunked):
        monkeypatch.setattr(module, "LEVERAGES", 0)
    want = whole.fit(table).vcov("curve")
    got = FunctionalRegression("Y ~ ff(X) + age", progress=False).fit_chunks(chunks).vcov("curve")
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-6 * want.abs().max().max())


def test_pieces_of_dask_are_chunks(table):
    array = pytest.importorskip("dask.array")
    columns = {name: np.asarray(table[name].array.data_matrix[..., 0]) for name in ("X", "Y")}
    lazy = {name: array.from_array(values, chunks=(50, 10)) for name, values in columns.items()}
    model = FunctionalRegression("Y ~ ff(X) + age", progress=False)
    got = model.fit_chunks({**lazy, "age": table["age"]}, grids={"X": S, "Y": T}).predict(table.iloc[:3])
    want = FunctionalRegression("Y ~ ff(X) + age", progress=False).fit(table).predict(table.iloc[:3])
    np.testing.assert_allclose(got, want.data_matrix[..., 0], rtol=1e-7)


@pytest.mark.parametrize(
    ("model", "change", "text"),
    [
        (
            FunctionalRegression("Y ~ ff(X)", missing="pace"),
            {},
            "missing must be 'raise', 'linear' or 'smooth' when fit",
        ),
        (FunctionalRegression("Y ~ ff(X)", errors="curve"), {}, "errors must be 'iid' when fitting from chunks"),
        (FunctionalRegression("y ~ ff(X)"), {}, "y must hold curves .* use ScalarRegression"),
        (ScalarRegression("Y ~ lf(X)"), {}, "Y must hold one number a row, got curves; use FunctionalRegression"),
        (ScalarRegression("region ~ lf(X)", family="binomial"), {}, "region must hold numbers in chunks"),
        (ScalarRegression("count ~ age", family="poisson"), {"count": -1.0}, "got -1 in row 50"),
        (ScalarRegression("y ~ agee"), {}, "must have the column 'agee'.*did you mean 'age'"),
        (
            ScalarRegression("y ~ age"),
            {"age": "old"},
            "age must be of one kind, got numbers at first and labels from row 50",
        ),
    ],
)
def test_what_cannot_be_fitted_from_chunks_is_refused(table, model, change, text):
    first, second = pieces(table, 50)
    with pytest.raises(InputError, match=text):
        model.set_params(progress=False).fit_chunks([first.assign(count=1), second.assign(**change)])


def test_no_chunks_are_refused():
    with pytest.raises(InputError, match="chunks must hold at least one table, got none"):
        ScalarRegression("y ~ age").fit_chunks([])
