"""Saved models: a file of :mod:`fdadp.files.container` of kind ``"additive-function-on-function"``.

Its ``numbers`` are those of the fit of the long form, the surface and the eigenbasis of Y, the treatment of gaps, and
the grids, whose tree (:mod:`fdadp.files.records`) is in the header. There are also the constructor's arguments, with
the privacy that was spent (:mod:`fdadp.private.release.mechanisms`), and the ledger. No training curve is in the file.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.files.container import Layout, complete
from fdadp.files.records import labels_to_json, pack, unpack
from fdadp.functional.tables.records import Records
from fdadp.functional.tables.sample import Curves
from fdadp.privacy import Ledger
from fdadp.privacy.study.models import record_model
from fdadp.private.release.mechanisms import params_from_json, params_to_json
from fdadp.regression.additive.fitted import FittedSurface
from fdadp.regression.fitted.term_files import may_be_made

if TYPE_CHECKING:
    from pandas import Index

    from fdadp.regression.additive.estimator import AdditiveFunctionOnFunction

Model = TypeVar("Model", bound="AdditiveFunctionOnFunction")

LAYOUT = Layout("additive-function-on-function", {"numbers": "v"})


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
    ledger, fitted = model.ledger_, model.fitted_
    found = replace(fitted.surface, ledger=None, privacy=None, plan=None)
    tree, numbers = pack((found, fitted.missing, fitted.x, fitted.y), "model")
    content = {
        "params": params_to_json(model, dict(fitted.fitted_with)),
        "tree": tree,
        "notes": found.notes,
        "r2": found.r2,
        "ledger": None if ledger is None else ledger.to_json(),
    }
    released = ledger is not None and ledger.private and ledger.for_release
    written = LAYOUT.write(path, content, {"numbers": numbers}, released=released)
    record_model(written, ledger, model.privacy_)
    return written


def load(path: str | os.PathLike[str], kind: type[Model]) -> Model:
    """Read a fitted model of a class."""
    content, arrays = LAYOUT.read(path)
    with complete(path, "model"):
        return _build(kind, content, arrays)


def _build(kind: type[Model], content: dict[str, Any], arrays: dict[str, FloatArray]) -> Model:
    model = kind(**params_from_json(content["params"]))
    found, missing, x, y = unpack(content["tree"], arrays["numbers"], may_be_made)
    ledger = None if content["ledger"] is None else Ledger.from_json(content["ledger"])
    private = ledger is not None and ledger.private and model.privacy is not None
    guarantee = replace(model.privacy) if private and model.privacy else None
    surface = replace(found, ledger=ledger, privacy=guarantee)
    own = {name: getattr(model, name) for name in ("privacy", "bounds", "mechanism")}
    fitted = FittedSurface(surface=surface, missing=missing, x=x, y=y, fitted_with=own)
    model._keep(fitted)
    middle = np.full((1, model.s_.size), sum(model.x_range_) / 2)
    fitted.errors.of_predictor(Records(1, {"X": Curves(middle, model.s_)}), None, model.t_)  # bases and arrays suit
    model.surface(middle[0, 0], model.s_[0], model.t_[0])
    return model
