"""Saved models: a file of :mod:`fdadp.files.container` of kind ``"additive-function-on-function"``.

Arrays: ``coef`` (K, kx, ks), ``covariance`` (K, p, p), ``smoothing_parameters``, ``edf``, ``criterion``,
``feature_mean``, ``rotation``, ``interval_functions``, ``mean_variance``, ``residual_variance``, ``s``, ``x_range``;
``x_quantiles`` (S, Q), pointwise, with ``x_transform="quantile"``, else empty.
The eigenbasis of Y is stored as ``basis_<field>``, the margins as ``x_<field>`` and ``s_<field>`` (knots among them);
with ``missing="fpca"`` the eigenbasis of X as ``missing_<field>``. The header holds the constructor's arguments, with
the privacy that was spent (:mod:`fdadp.private.stored`), the scalars and the ledger.
No training curve is in the file.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.files.container import Layout, complete
from fdadp.files.labels import labels_from_json, labels_to_json
from fdadp.functional.fpca import Eigenbasis
from fdadp.functional.smooths import SmoothMargin
from fdadp.functional.splines import BSplines
from fdadp.privacy import Ledger
from fdadp.privacy.study.models import record_model
from fdadp.private.stored import params_from_json, params_to_json
from fdadp.regression.missing import MissingValues
from fdadp.regression.predictions import Input
from fdadp.responses.functional import FunctionalResponse
from fdadp.solve.fitted import Fitted
from fdadp.solve.residuals import Residual
from fdadp.terms.quantiles import QuantileTransform
from fdadp.terms.surface import Surface

if TYPE_CHECKING:
    from pandas import Index

    from fdadp.regression.additive import AdditiveFunctionOnFunction

__all__ = ["LAYOUT", "check_saveable", "load", "save"]

_ARRAYS = ("covariance", "unit_variance", "smoothing_parameters", "edf", "criterion", "feature_mean", "rotation")
"""Fields of a Fitted that are stored under their own names."""
_BASIS = {"grid": "{T}", "weights": "{T}", "mean": "{T}", "functions": "{K} {T}", "values": "{K}"}
_BASIS |= {"explained_ratio": "{K}"}
_MARGIN = {"to_basis": "{r} {k}", "penalty": "{k} {k}", "rotation": "{k} {k}", "eigenvalues": "{k}"}


def _named(name: str, fields: dict[str, str], **letters: str) -> dict[str, str]:
    return {f"{name}_{field}": lengths.format(**letters) for field, lengths in fields.items()}


LAYOUT = Layout(
    "additive-function-on-function",
    {
        "coef": "K kx ks",
        "covariance": "C p p",
        "unit_variance": "C",
        "smoothing_parameters": "K 2",
        "edf": "K",
        "criterion": "K",
        "feature_mean": "f",
        "rotation": "f q",
        "interval_functions": "C T",
        "mean_variance": "T",
        "residual_variance": "T",
        "s": "S",
        "x_range": "2",
        "x_knots": "mx",
        "s_knots": "ms",
        **_named("basis", _BASIS, K="K", T="T"),
        "x_quantiles": "S Q",
        **_named("x", _MARGIN, k="kx", r="rx"),
        **_named("s", _MARGIN, k="ks", r="rs"),
    },
    optional=_named("missing", _BASIS, K="M", T="S"),
)


def check_saveable(model: AdditiveFunctionOnFunction, columns: Index[Any] | None) -> None:
    """Refuse before a private fit what a file of it could not hold.

    Parameters
    ----------
    model : AdditiveFunctionOnFunction
        Not fitted; its settings are looked at.
    columns : pandas.Index or None
        Labels of Y.

    Raises
    ------
    InputError
    """
    params_to_json(model)
    labels_to_json(columns, "Y")


def save(model: AdditiveFunctionOnFunction, path: str | os.PathLike[str]) -> Path:
    """Write a fitted model."""
    fitted, term, own = model._fitted, model._term, model._input
    ledger, residual, basis = fitted.ledger, fitted.residual, fitted.response.basis
    content = {
        "params": params_to_json(model, model._fitted_with),
        "degree": term.splines[0].degree,
        "quadrature": term.rule,
        "continuation": term.continuation,
        "n": fitted.n,
        "limited": fitted.limited,
        "notes": fitted.notes,
        "r2": residual.r2,
        "noise_variance": residual.noise_variance,
        "interval_scale": residual.scale,
        "interval_inverse_dof": residual.inverse_dof,
        "missing": model._missing.how,
        "labels": {"kind": model._y_kind, "units": [own.unit, model._y_unit], "names": own.names},
        "noise_variance_of_basis": basis.noise_variance,
        "missing_noise_variance": model._missing.x_basis.noise_variance if model._missing.x_basis else None,
        "columns": labels_to_json(model._y_columns, "Y"),
        "ledger": None if ledger is None else ledger.to_json(),
    }
    arrays = {name: getattr(fitted, name) for name in _ARRAYS} | {
        "coef": fitted.values,
        "interval_functions": fitted.response.interval_functions,
        "mean_variance": residual.mean_variance,
        "residual_variance": residual.variance,
        "s": term.grid,
        "x_range": np.array(term.x_range),
        "x_quantiles": np.zeros((term.grid.size, 0)) if term.transform is None else term.transform.table,
    }
    arrays |= {f"basis_{f}": getattr(basis, f) for f in _BASIS}
    for name, margin, splines in zip("xs", (term.over_x, term.over_s), term.splines, strict=True):
        arrays |= {f"{name}_{f}": getattr(margin, f) for f in _MARGIN} | {f"{name}_knots": splines.knots}
    if model._missing.x_basis is not None:
        arrays |= {f"missing_{f}": getattr(model._missing.x_basis, f) for f in _BASIS}
    written = LAYOUT.write(path, content, arrays, released=ledger is not None and ledger.private and ledger.for_release)
    record_model(written, ledger, model.privacy_)
    return written


def load(path: str | os.PathLike[str], kind: type[AdditiveFunctionOnFunction]) -> AdditiveFunctionOnFunction:
    """Read a fitted model of a class."""
    content, arrays = LAYOUT.read(path)
    with complete(path, "model"):
        return _build(kind, content, arrays)


def _build(
    kind: type[AdditiveFunctionOnFunction], content: dict[str, Any], arrays: dict[str, FloatArray]
) -> AdditiveFunctionOnFunction:
    model = kind(**params_from_json(content["params"]))
    ledger = None if content["ledger"] is None else Ledger.from_json(content["ledger"])
    private = ledger is not None and ledger.private and model.privacy is not None
    fitted = _fitted(content, arrays, model.period_s)
    model._adopt(replace(fitted, ledger=ledger, privacy=replace(model.privacy) if private and model.privacy else None))
    model._fitted_with = {name: getattr(model, name) for name in ("privacy", "bounds", "mechanism")}
    labels = content["labels"]
    x_unit, y_unit = labels["units"]
    model._input = Input(arrays["s"], labels["names"], x_unit)
    model._y_kind, model._y_unit, model._y_columns = labels["kind"], y_unit, labels_from_json(content["columns"])
    noise = content["missing_noise_variance"]
    basis = None if noise is None else _eigenbasis("missing", arrays, noise)
    model._missing = MissingValues(content["missing"], basis, within_rows=model._is_private)
    return model


def _fitted(content: dict[str, Any], arrays: dict[str, FloatArray], period: float | None) -> Fitted:
    x_margin, s_margin = (_margin(name, arrays, content["degree"]) for name in "xs")
    low, high = (float(end) for end in arrays["x_range"])
    term = Surface.on(
        "X",
        "X",
        x_margin,
        s_margin,
        grid=arrays["s"],
        x_range=(low, high),
        rule=content["quadrature"],
        period=period,
        continuation=content["continuation"],
        transform=QuantileTransform(arrays["s"], arrays["x_quantiles"]) if arrays["x_quantiles"].size else None,
        centred=True,
    )
    basis = _eigenbasis("basis", arrays, content["noise_variance_of_basis"])
    residual = Residual(
        arrays["residual_variance"],
        content["noise_variance"],
        arrays["mean_variance"],
        content["r2"],
        content["interval_scale"],
        content["interval_inverse_dof"],
    )
    return Fitted(
        term=term,
        values=arrays["coef"],
        response=FunctionalResponse(basis, arrays["interval_functions"]),
        residual=residual,
        n=content["n"],
        limited=content["limited"],
        notes=tuple(content["notes"]),
        feature_mean=arrays["feature_mean"],
        rotation=arrays["rotation"],
        covariance=arrays["covariance"],
        unit_variance=arrays["unit_variance"],
        edf=arrays["edf"],
        smoothing_parameters=arrays["smoothing_parameters"],
        criterion=arrays["criterion"],
    )


def _margin(name: str, arrays: dict[str, FloatArray], degree: int) -> SmoothMargin:
    knots, fields = arrays[f"{name}_knots"], {f: arrays[f"{name}_{f}"] for f in _MARGIN}
    if knots.size != len(fields["to_basis"]) + degree + 1:
        raise ValueError(f"{name}_knots must be {len(fields['to_raw']) + degree + 1} numbers, got {knots.size}")
    return SmoothMargin(BSplines(knots, degree), **fields)


def _eigenbasis(name: str, arrays: dict[str, FloatArray], noise_variance: float) -> Eigenbasis:
    return Eigenbasis(noise_variance=noise_variance, **{f: arrays[f"{name}_{f}"] for f in _BASIS})
