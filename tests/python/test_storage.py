"""Files of fitted models: what is written, what is found at load, what is refused."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from fdadp import AdditiveFunctionOnFunction, Bounds, Privacy, PrivateFPCA, PrivateMean, simulate_affr, storage
from fdadp.moments import Moments

GAP = np.s_[3, 2:5]


@functools.cache
def curves():
    sim = simulate_affr(scenario=1, n=60, seed=0, n_points=21)
    return sim.X.data_matrix[..., 0], sim.Y.data_matrix[..., 0]


def settings(**kwargs):
    return Privacy(epsilon=8.0, delta=1e-6, bounds=Bounds(x=(-4.5, 4.5), y=(-8, 8)), n=60, random_state=7, **kwargs)


def regression(**kwargs):
    x, y = curves()
    if kwargs.get("missing"):
        x = x.copy()
        x[GAP] = np.nan
    return AdditiveFunctionOnFunction(n_basis_x=5, n_basis_s=5, **kwargs).fit(x, y)


MODELS = {
    "regression": regression,
    "gaps": lambda: regression(missing="fpca"),
    "private regression": lambda: AdditiveFunctionOnFunction(privacy=settings(allow_useless=True)).fit(*curves()),
    "private mean": lambda: PrivateMean(privacy=settings()).fit(curves()[1]),
    "private components": lambda: PrivateFPCA(n_components=2, privacy=settings()).fit(curves()[1]),
    "moments": lambda: Moments.of(curves()[0]),
}
model = functools.cache(lambda name: MODELS[name]())
EVERY = pytest.mark.parametrize("name", MODELS)


@EVERY
def test_arrays_of_models_have_one_layout(name, monkeypatch, tmp_path):
    """A file keeps no strides, and BLAS kernels for AVX-512 round strided operands in another order."""
    written = {}
    monkeypatch.setattr(storage, "write", lambda path, kind, content, arrays: written.update(arrays))
    model(name).save(tmp_path / "model.npz")
    assert written and [key for key, value in written.items() if not np.asarray(value).flags.c_contiguous] == []
