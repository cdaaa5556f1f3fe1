"""Fits to Dask's partitions: the answer of one process, made where the rows are; errors leave no trace."""

from __future__ import annotations

import os
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from skfda import FDataGrid

from fdadp import AdditiveFunctionOnFunction, FunctionalRegression, ScalarRegression, terms
from fdadp.errors import InputError

da = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")

RNG = np.random.default_rng(0)
N, S, T = 240, np.linspace(0, 2, 31), np.linspace(0, 1, 25)
X = np.cumsum(RNG.normal(size=(N, S.size)), axis=1) / 4
Y = np.sin(X) @ np.sin(np.outer(S, T)) / S.size + np.cumsum(RNG.normal(size=(N, T.size)), axis=1) / 50
CLIENT = os.getpid()


@pytest.fixture(params=["threads", "workers"])
def where(request):
    """Each kind of scheduler, active."""
    if request.param == "threads":
        with dask.config.set(scheduler="threads"):
            yield request.param
        return
    with request.getfixturevalue("two_workers").as_current():
        yield request.param


def not_here(rows, client):
    """The rows, which the client's process must not have."""
    if os.getpid() == client:
        raise RuntimeError("these rows are not for the client")
    return rows


def guarded(values, chunks, where):
    lazy = da.from_array(values, chunks=chunks)
    return da.map_blocks(not_here, lazy, CLIENT, dtype=float, meta=np.empty((0, 0))) if where == "workers" else lazy


def surface(**settings):
    return AdditiveFunctionOnFunction(progress=False, **settings)


def assert_same_surface(one, other):
    np.testing.assert_allclose(one.predict(X[:9]), other.predict(X[:9]), rtol=1e-9, atol=1e-9)
    for name in ("smoothing_parameters_", "residual_variance_", "coef_", "r2_", "edf_", "x_range_", "n_curves_"):
        got, want = getattr(one, name), getattr(other, name)
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-8, err_msg=name)


@pytest.mark.parametrize("chunks", [((240, 31), (240, 25)), ((100, 20), (70, 9)), ((100, 20), (100, -1))])
def test_a_surface_is_that_of_one_process(where, chunks):
    of_x, of_y = chunks
    got = surface().fit(guarded(X, of_x, where), guarded(Y, of_y, where), s=S, t=T)
    assert_same_surface(got, surface().fit(X, Y, s=S, t=T))


def test_delayed_pairs_are_chunks_where_they_are(where):
    @dask.delayed
    def load(start, stop):
        if where == "workers":
            not_here(None, CLIENT)
        return X[start:stop], Y[start:stop]

    ends = [(0, 0), (0, 100), (100, 100), (100, 240)]  # those without rows say nothing
    got = surface().fit_chunks([load(*rows) for rows in ends], s=S, t=T)
    assert_same_surface(got, surface().fit(X, Y, s=S, t=T))


def test_dataarrays_keep_their_coordinates_on_workers(where):
    xr = pytest.importorskip("xarray")
    x = xr.DataArray(guarded(X, (90, 31), where), dims=("who", "s"), coords={"s": S})
    y = xr.DataArray(guarded(Y, (50, 25), where), dims=("who", "t"), coords={"t": T})
    got = surface().fit(x, y)
    np.testing.assert_array_equal(got.s_, S)
    np.testing.assert_array_equal(got.t_, T)
    new = xr.DataArray(X[:5], dims=("who", "s"), coords={"s": S})
    want = surface().fit(X, Y, s=S, t=T).predict(X[:5])
    np.testing.assert_allclose(np.asarray(got.predict(new)), want, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("spoil", "text"),
    [
        (lambda i, x, y: (x, y[:-1]), "X and Y must hold the same number of curves, got 80 and 79"),
        (lambda i, x, y: (np.where(x == x[3, 4], np.nan, x), y), r"X must be finite.*in curve 3.*\(in partition 1\)"),
        (lambda i, x, y: (x[:, :-1], y), "all chunks of X must have the grid of the first one"),
        (lambda i, x, y: (_ for _ in ()).throw(OSError("disk gone")), "partition .*1.* of 3 .* got OSError: disk gone"),
        (lambda i, x, y: None, "each chunk must be a pair"),
    ],
    ids=["lengths", "nan", "grid", "raises", "no pair"],
)
def test_a_spoilt_partition_leaves_an_earlier_fit_as_it_was(where, spoil, text):
    @dask.delayed
    def load(i):
        x, y = X[80 * i : 80 * i + 80], Y[80 * i : 80 * i + 80]
        return spoil(i, x, y) if i == 1 else (x, y)

    model = surface().fit(X, Y)
    before = dict(vars(model))
    with pytest.raises(InputError, match=text):
        model.fit_chunks([load(i) for i in range(3)])
    assert vars(model).keys() == before.keys() and all(vars(model)[name] is before[name] for name in before)


def test_rows_that_change_between_passes_are_refused(where, tmp_path):
    @dask.delayed(pure=False)
    def load(i):
        made = tmp_path / str(i)
        again = made.exists()
        made.touch()
        return X[80 * i : 80 * i + 80] + again, Y[80 * i : 80 * i + 80]

    with pytest.raises(InputError, match="chunks must give the same rows each time they are read"):
        surface().fit_chunks([load(i) for i in range(3)])


def test_no_rows_at_all_are_refused(where):
    nothing = [dask.delayed(lambda: (X[:0], Y[:0]))() for _ in range(2)]
    with pytest.raises(InputError, match="chunks must hold at least one row, got none"):
        surface().fit_chunks(nothing)


# --- models of many terms ---

AGE, REGION, PERSON = RNG.normal(size=N), RNG.choice(list("abc"), N), np.repeat(np.arange(N // 4), 4)
TABLE = {
    "X": X,
    "Y": Y + np.outer(AGE, T) + (REGION == "b")[:, None],
    "age": AGE,
    "region": REGION,
    "person": PERSON,
    "w": RNG.uniform(0.5, 2, N),
    "y": Y[:, 3] + AGE + RNG.normal(size=N) / 9,
    "count": RNG.poisson(np.exp(0.4 * AGE)),
    "cost": RNG.gamma(3, np.exp(0.4 * AGE)),
}
GAPS = {**TABLE, "Y": np.where(RNG.uniform(size=Y.shape) < 0.1, np.nan, TABLE["Y"])}
GRIDS = {"X": S, "Y": T}
NEW = {name: column[:7] for name, column in TABLE.items()}


def lazily(table, where, rows=90):
    """Curves in Dask's arrays, some of the columns beside them, and others in memory."""
    lazy = {name: guarded(table[name], (rows, 11), where) for name in ("X", "Y")}
    return {**table, **lazy, "age": da.from_array(table["age"], chunks=50)}


def assert_same_model(got, want):
    for name in ("smoothing_parameters_", "criterion_", "sigma2_", "edf_", "null_deviance_", "deviance_", "loglik_"):
        np.testing.assert_allclose(getattr(got, name), getattr(want, name), rtol=1e-6, err_msg=name)
    np.testing.assert_allclose(got.predict(NEW), want.predict(NEW), rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(got.predict_se(NEW), want.predict_se(NEW), rtol=1e-6)
    kinds = [
        kind for kind in ("iid", "curve", "cluster") if kind != "cluster" or "cluster" in want.fitted_.errors.clusters
    ]
    for kind in kinds:
        cov = want.vcov(kind)
        np.testing.assert_allclose(got.vcov(kind), cov, rtol=1e-5, atol=1e-8 * np.abs(cov).max().max())


CURVES = "Y ~ ff(X, k=(5, 5)) + s(age, k=6) + region"


KINDS = {
    "groups": (FunctionalRegression(CURVES, progress=False), TABLE, {"groups": "person"}),
    "gaps": (FunctionalRegression(CURVES, progress=False), GAPS, {}),
    "weights": (FunctionalRegression("Y ~ ff(X, k=(5, 5)) + age", progress=False), TABLE, {"weights": "w"}),
    "components": (FunctionalRegression("Y ~ ffpc(X)", progress=False), TABLE, {}),
    "eigen": (FunctionalRegression("Y ~ ff(X) + age", response_basis="eigen", progress=False), TABLE, {}),
    "numbers": (
        ScalarRegression("y ~ fpcr(X) + s(age, k=6)", progress=False),
        TABLE,
        {"weights": "w", "groups": "person"},
    ),
    "quantiles": (
        FunctionalRegression([terms.sff("X", k=(5, 5, 4), x_transform="quantile")], progress=False),
        TABLE,
        {},
    ),
    "poisson": (
        ScalarRegression("count ~ lf(X, k=6)", family="poisson", smoothing=[9.0], progress=False),
        TABLE,
        {},
    ),
    "gamma": (ScalarRegression("cost ~ age + region", family="gamma", progress=False), TABLE, {"weights": "w"}),
}
ALWAYS = ("groups", "numbers")


@pytest.mark.parametrize(
    "kind", [kind if kind in ALWAYS else pytest.param(kind, marks=pytest.mark.long) for kind in KINDS]
)
def test_models_of_terms_are_those_of_one_process(on_workers, kind):
    model, table, beside = KINDS[kind]
    from sklearn.base import clone

    ends = (0, 90, 180, 240)
    pieces = [{name: column[a:b] for name, column in table.items()} for a, b in pairwise(ends)]
    want = clone(model).fit_chunks(pieces, grids=GRIDS, **beside)
    got = clone(model).fit(lazily(table, "workers"), grids=GRIDS, **beside)
    assert_same_model(got, want)


def test_of_many_rows_only_sums_come_from_the_workers(where, monkeypatch):
    from fdadp.regression import fit_in_chunks
    from fdadp.solve.errors import sandwich as curve_errors

    for module in (curve_errors, fit_in_chunks):
        monkeypatch.setattr(module, "LEVERAGES", 0)
    own = {"grids": GRIDS, "groups": "person"}
    pieces = [{name: column[a : a + 90] for name, column in TABLE.items()} for a in (0, 90, 180)]
    want = FunctionalRegression(CURVES, progress=False).fit_chunks(pieces, **own)
    got = FunctionalRegression(CURVES, progress=False).fit_chunks(lazily(TABLE, where), **own)
    assert_same_model(got, want)
    whole = FunctionalRegression(CURVES, progress=False).fit(TABLE, **own)
    for kind in ("curve", "cluster"):
        np.testing.assert_allclose(got.vcov(kind), whole.vcov(kind), rtol=1e-5, atol=1e-9)


def test_delayed_data_frames_may_be_empty_and_of_unknown_length(where):
    frame = pd.DataFrame({name: TABLE[name] for name in ("age", "region", "y")})
    frame["X"] = FDataGrid(X, S)
    pieces = [dask.delayed(frame.iloc[a:b]) for a, b in ((0, 0), (0, 100), (100, 100), (100, 240))]
    got = ScalarRegression("y ~ lf(X, k=6) + s(age, k=6) + region", progress=False).fit_chunks(pieces)
    want = ScalarRegression("y ~ lf(X, k=6) + s(age, k=6) + region", progress=False).fit(frame)
    np.testing.assert_allclose(got.predict(frame), want.predict(frame), rtol=1e-7)


def test_dask_data_frames_are_read_by_partition(where):
    frames = pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame({name: TABLE[name] for name in ("age", "region", "y")})
    got = ScalarRegression("y ~ s(age, k=6) + region", progress=False).fit(frames.from_pandas(frame, npartitions=3))
    want = ScalarRegression("y ~ s(age, k=6) + region", progress=False).fit(frame)
    np.testing.assert_allclose(got.predict(frame), want.predict(frame), rtol=1e-7)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            lambda t: {**t, "age": np.where(t["age"] == AGE[103], np.nan, t["age"])},
            r"age must .* row 23.*in partition 1",
        ),
        (lambda t: {**t, "age": t["region"]}, "all chunks of age must be of one kind, got numbers at first and labels"),
        (lambda t: {**t, "Y": t["Y"][:, :-1]}, "all chunks of the response Y must have the grid"),
        (lambda t: {name: t[name] for name in t if name != "X"}, "data must have the column 'X'"),
        (lambda t: 1 / 0, "partition .*1.* got ZeroDivisionError"),
    ],
    ids=["nan", "kinds", "grid", "column", "raises"],
)
def test_spoilt_tables_leave_an_earlier_fit_as_it_was(where, change, text):
    table = {name: TABLE[name] for name in ("X", "Y", "age", "region")}

    @dask.delayed
    def load(i):
        piece = {name: column[80 * i : 80 * i + 80] for name, column in table.items()}
        return change(piece) if i == 1 else piece

    model = FunctionalRegression("Y ~ ff(X) + age", progress=False).fit(table)
    before = dict(vars(model))
    with pytest.raises(InputError, match=text):
        model.fit_chunks([load(i) for i in range(3)])
    assert vars(model).keys() == before.keys() and all(vars(model)[name] is before[name] for name in before)


def test_a_response_beside_dasks_columns_is_refused():
    with pytest.raises(InputError, match="y must be None where data are Dask's"):
        FunctionalRegression("Y ~ ff(X)").fit(lazily(TABLE, "threads"), Y)
