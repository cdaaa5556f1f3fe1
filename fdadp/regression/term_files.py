"""Saved models of many terms: files of :mod:`fdadp.files.container`, packed by :mod:`fdadp.files.records`.

A file holds the constructor's arguments, the terms on their bases and the fit: coefficients, their covariance, what
the summary says. No training row is in it, but a thin-plate smooth stands on values of its covariate, and a factor on
its labels.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fdadp.errors import IdentificationWarning
from fdadp.files.container import Layout, complete
from fdadp.files.records import pack, unpack
from fdadp.regression.afresh import afresh
from fdadp.terms.spec import TermDesign, TermSpec

if TYPE_CHECKING:
    from fdadp.regression.term_views import TermViews

__all__ = ["load", "save"]

PARTS = ("fdadp.functional.", "fdadp.solve.", "fdadp.responses.", "fdadp.regression.", "fdadp.terms.")
"""Modules whose dataclasses a file may name."""


def _layout(kind: type) -> Layout:
    return Layout(kind.__name__, {"numbers": "v"})


def save(model: TermViews, path: str | os.PathLike[str]) -> Path:
    """Write a fitted model.

    Raises
    ------
    InputError
        Arguments or terms that no file can hold, such as functions as limits.
    """
    held: Any = model
    state = {name: getattr(model, name) for name in model._stored}
    tree, numbers = pack((held.get_params(deep=False), model._fit, state), type(model).__name__)
    return _layout(type(model)).write(path, {"tree": tree}, {"numbers": numbers})


def load(path: str | os.PathLike[str], kind: type[Any]) -> Any:
    """Read a fitted model of a class.

    Raises
    ------
    FileFormatError
        Not such a file, one of another version, or a term whose class is not there.
    """
    content, arrays = _layout(kind).read(path)
    with complete(path, "model"), warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentificationWarning)
        params, fit, state = unpack(content["tree"], arrays["numbers"], _may_be_made)
        model = kind(**params)
        with afresh(model):
            model._adopt(fit, state["null_deviance_"])
            for name in kind._stored:
                setattr(model, name, state[name])
    return model


def _may_be_made(kind: type) -> bool:
    """Whether a file may name a class: a term, or what terms and fits consist of."""
    return issubclass(kind, TermSpec | TermDesign) or f"{kind.__module__}.".startswith(PARTS)
