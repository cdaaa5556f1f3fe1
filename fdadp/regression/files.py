"""Saved models: a file of :mod:`fdadp.storage` of kind ``"additive-function-on-function"``.

Arrays: ``coef`` (K, kx, ks), ``covariance`` (K, p, p), ``smoothing_parameters``, ``edf``, ``criterion``,
``feature_mean``, ``rotation``, ``interval_functions``, ``mean_variance``, ``residual_variance``, ``s``, ``x_range``.
The eigenbasis of Y is stored as ``basis_<field>``, the margins as ``x_<field>`` and ``s_<field>`` (knots among them);
with ``missing="fpca"`` the eigenbasis of X as ``missing_<field>``. The header holds the constructor's arguments, the
scalars and the ledger.
No training curve is in the file.
"""

from __future__ import annotations

import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fdadp import storage
from fdadp._typing import FloatArray
from fdadp.errors import FileFormatError
from fdadp.fpca import Eigenbasis
from fdadp.privacy import Bounds, Ledger, Privacy
from fdadp.regression.additive import AdditiveFunctionOnFunction
from fdadp.regression.missing import MissingValues
from fdadp.splines import BSplines
from fdadp.tensor import Margin

__all__ = ["load", "save"]

KIND = "additive-function-on-function"
_ARRAYS = {
    "coef": "coef_",
    "covariance": "_covariance",
    "unit_variance": "_unit_variance",
    "smoothing_parameters": "smoothing_parameters_",
    "edf": "edf_",
    "criterion": "criterion_",
    "feature_mean": "_feature_mean",
    "rotation": "_rotation",
    "interval_functions": "_interval_functions",
    "mean_variance": "_mean_variance",
    "residual_variance": "residual_variance_",
    "s": "s_",
}
_SCALARS = ("n_curves_", "n_features_in_", "noise_variance_", "r2_", "_quantile", "_clip_x", "_y_kind", "_units")
_BASIS = ("grid", "weights", "mean", "functions", "values", "explained_ratio")
_MARGIN = ("points", "to_raw", "penalty", "rotation", "eigenvalues")


def save(model: AdditiveFunctionOnFunction, path: str | os.PathLike[str]) -> Path:
    """Write a fitted model."""
    params = model.get_params(deep=False)
    if model.privacy_ is not None:  # of the fit: what is set since then is for the next one
        params["privacy"] = model.privacy_
    if params["privacy"] is not None:
        # A budget is a live object of one session; pilot curves may be large. The ledger keeps what was spent.
        settings = replace(params["privacy"], budget=None, prior=None)
        params["privacy"] = asdict(settings)
    if not isinstance(params["smoothing"], str):
        params["smoothing"] = np.asarray(params["smoothing"], dtype=np.float64).tolist()
    columns = model._y_columns
    content = {
        "params": {k: v.item() if isinstance(v, np.generic) else v for k, v in params.items()},
        "scalars": {name: getattr(model, name) for name in _SCALARS},
        "noise_variance_of_basis": model._basis.noise_variance,
        "missing_noise_variance": model._missing.x_basis.noise_variance if model._missing.x_basis else None,
        "columns": None if columns is None else [c.item() if isinstance(c, np.generic) else c for c in columns],
        "ledger": None if model.ledger_ is None else model.ledger_.to_json(),
    }
    arrays = {name: getattr(model, attribute) for name, attribute in _ARRAYS.items()}
    arrays["x_range"] = np.asarray(model.x_range_)
    arrays |= {f"basis_{f}": getattr(model._basis, f) for f in _BASIS}
    for name, margin in (("x", model._x_margin), ("s", model._s_margin)):
        arrays |= {f"{name}_{f}": getattr(margin, f) for f in _MARGIN} | {f"{name}_knots": margin.basis.knots}
    if model._missing.x_basis is not None:
        arrays |= {f"missing_{f}": getattr(model._missing.x_basis, f) for f in _BASIS}
    return storage.write(path, KIND, content, arrays)


def load(path: str | os.PathLike[str]) -> AdditiveFunctionOnFunction:
    """Read a fitted model."""
    content, arrays = storage.read(path, KIND)
    try:
        return _build(content, arrays)
    except (KeyError, TypeError) as exc:
        raise FileFormatError(f"path must hold a complete model, got {str(path)!r}, which lacks {exc}") from exc


def _build(content: dict[str, Any], arrays: dict[str, FloatArray]) -> AdditiveFunctionOnFunction:
    params = content["params"]
    if params["privacy"] is not None:
        settings = params["privacy"]
        if settings["bounds"] is not None:
            settings["bounds"] = Bounds(**{k: v and tuple(v) for k, v in settings["bounds"].items()})
        params["privacy"] = Privacy(**settings)
    model = AdditiveFunctionOnFunction(**params)
    for name, attribute in _ARRAYS.items():
        setattr(model, attribute, arrays[name])
    for name in _SCALARS:
        setattr(model, name, content["scalars"][name])
    model.x_range_ = (float(arrays["x_range"][0]), float(arrays["x_range"][1]))
    model._basis = _eigenbasis("basis", arrays, content["noise_variance_of_basis"])
    model._set_basis()
    model._x_margin, model._s_margin = (
        Margin(BSplines(arrays[f"{m}_knots"], model.degree), **{f: arrays[f"{m}_{f}"] for f in _MARGIN}) for m in "xs"
    )
    noise = content["missing_noise_variance"]
    model._missing = MissingValues(model.missing, None if noise is None else _eigenbasis("missing", arrays, noise))
    model._y_columns = None if content["columns"] is None else pd.Index(content["columns"])
    model.ledger_ = None if content["ledger"] is None else Ledger.from_json(content["ledger"])
    private = model.ledger_ is not None and model.ledger_.private
    model.privacy_ = model.privacy if private else None
    model.plan_ = None
    return model


def _eigenbasis(name: str, arrays: dict[str, FloatArray], noise_variance: float) -> Eigenbasis:
    return Eigenbasis(noise_variance=noise_variance, **{f: arrays[f"{name}_{f}"] for f in _BASIS})
