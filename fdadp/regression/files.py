"""Saved models: a file of :mod:`fdadp.files.container` of kind ``"additive-function-on-function"``.

Arrays: ``coef`` (K, kx, ks), ``covariance`` (C, p, p), ``unit_variance`` (C), ``smoothing_parameters`` (K, 2), ``edf``
and ``criterion`` (K), ``feature_mean`` (q), ``rotation`` (q, p), ``mean_variance`` and ``residual_variance`` (T); and
``numbers``, those of the term on its bases, the eigenbasis of Y, the treatment of gaps, and the grids, whose tree
(:mod:`fdadp.files.records`) is in the header. There are also the constructor's arguments, with the privacy that was
spent (:mod:`fdadp.private.stored`), the scalars and the ledger. No training curve is in the file.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.files.container import Layout, complete
from fdadp.files.labels import labels_to_json
from fdadp.files.records import pack, unpack
from fdadp.functional.curves import Curves
from fdadp.functional.records import Records
from fdadp.privacy import Ledger
from fdadp.privacy.study.models import record_model
from fdadp.private.stored import params_from_json, params_to_json
from fdadp.regression.term_files import may_be_made
from fdadp.solve.fitted import Fitted
from fdadp.solve.residuals import Residual

if TYPE_CHECKING:
    from pandas import Index

    from fdadp.regression.additive import AdditiveFunctionOnFunction

__all__ = ["LAYOUT", "check_saveable", "load", "save"]

_ARRAYS = {
    "covariance": "C p p",
    "unit_variance": "C",
    "smoothing_parameters": "K 2",
    "edf": "K",
    "criterion": "K",
    "feature_mean": "f",
    "rotation": "f q",
}
"""Fields of a Fitted that are stored under their own names."""

LAYOUT = Layout(
    "additive-function-on-function",
    {"coef": "K kx ks", **_ARRAYS, "mean_variance": "T", "residual_variance": "T", "numbers": "v"},
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
    fitted = model._fitted
    ledger, residual, term = fitted.ledger, fitted.residual, replace(fitted.term, mean_basis=None)
    tree, numbers = pack((term, fitted.response, model._missing, model._x, model._y), "model")
    content = {
        "params": params_to_json(model, model._fitted_with),
        "tree": tree,
        "n": fitted.n,
        "limited": fitted.limited,
        "notes": fitted.notes,
        "r2": residual.r2,
        "noise_variance": residual.noise_variance,
        "interval_scale": residual.scale,
        "interval_inverse_dof": residual.inverse_dof,
        "ledger": None if ledger is None else ledger.to_json(),
    }
    arrays = {name: getattr(fitted, name) for name in _ARRAYS} | {
        "coef": fitted.values,
        "mean_variance": residual.mean_variance,
        "residual_variance": residual.variance,
        "numbers": numbers,
    }
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
    term, response, missing, x, y = unpack(content["tree"], arrays["numbers"], may_be_made)
    ledger = None if content["ledger"] is None else Ledger.from_json(content["ledger"])
    private = ledger is not None and ledger.private and model.privacy is not None
    fitted = Fitted(
        term=term,
        values=arrays["coef"],
        response=response,
        residual=Residual(
            arrays["residual_variance"],
            content["noise_variance"],
            arrays["mean_variance"],
            content["r2"],
            content["interval_scale"],
            content["interval_inverse_dof"],
        ),
        n=content["n"],
        limited=content["limited"],
        notes=tuple(content["notes"]),
        ledger=ledger,
        privacy=replace(model.privacy) if private and model.privacy else None,
        **{name: arrays[name] for name in _ARRAYS},
    )
    middle = np.full((1, term.grid.size), sum(term.x_range) / 2)
    fitted.standard_errors(Records(1, {"X": Curves(middle, term.grid)}))  # bases and arrays suit each other
    model._adopt(fitted)
    model._fitted_with = {name: getattr(model, name) for name in ("privacy", "bounds", "mechanism")}
    model._missing, model._x, model._y = missing, x, y
    return model
