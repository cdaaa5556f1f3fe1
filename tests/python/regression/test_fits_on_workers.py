"""Fits to Dask's partitions: the answer of one process, made where the rows are; errors leave no trace."""

from __future__ import annotations

import os

import numpy as np
import pytest

from fdadp import AdditiveFunctionOnFunction
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


@pytest.fixture
def on_workers(two_workers):
    with two_workers.as_current():
        yield two_workers


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

    with pytest.raises(InputError, match="chunks must give the same curves each time they are read"):
        surface().fit_chunks([load(i) for i in range(3)])


def test_no_rows_at_all_are_refused(where):
    nothing = [dask.delayed(lambda: (X[:0], Y[:0]))() for _ in range(2)]
    with pytest.raises(InputError, match="chunks must hold at least one pair, got none"):
        surface().fit_chunks(nothing)
