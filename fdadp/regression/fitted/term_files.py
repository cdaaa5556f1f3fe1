"""Saved models of many terms: files of :mod:`fdadp.files.container`, packed by :mod:`fdadp.files.records`.

A file holds the constructor's arguments, the terms on their bases and the fit: coefficients, their covariance, what
the summary says; of a private fit the ledger, not the plan. No training row is in it, but without privacy a thin-plate
smooth stands on values of its covariate, and a factor on its labels.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fdadp.errors import IdentificationWarning
from fdadp.files.container import Layout, complete
from fdadp.files.records import pack, unpack
from fdadp.privacy.account.ledger import Ledger
from fdadp.privacy.study.models import record_model
from fdadp.private.release.mechanisms import guarantee_from_json, guarantee_to_json
from fdadp.private.whitened.base import WhiteTerm
from fdadp.terms.spec import TermDesign, TermSpec

if TYPE_CHECKING:
    from fdadp.regression.fitted.term_views import TermViews

# Fits that start from nothing, and leave what was there where they fail.


LEFT = "_left_by_fit"
"""Attribute with the names of what a fit left, itself among them."""


@contextmanager
def afresh(model: Any) -> Iterator[None]:
    """Fit a model as if it were new: nothing of an earlier fit is left, and all of it comes back on an error.

    What others attached to the model, such as callbacks, stays.
    """
    state = vars(model)
    before = {name: state.pop(name) for name in state.get(LEFT, ()) if name in state}
    others = set(state)
    try:
        yield
    except BaseException:
        for name in set(state) - others:
            del state[name]
        state.update(before)
        raise
    state[LEFT] = tuple(sorted({*state, LEFT} - others))


GUARANTEE = ("privacy", "mechanism")
"""Parameters that are kept as plain JSON."""
PARTS = ("fdadp.functional.", "fdadp.private.", "fdadp.solve.", "fdadp.responses.", "fdadp.regression.", "fdadp.terms.")
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
    params = held.get_params(deep=False)
    plain = {name: value for name, value in params.items() if name not in GUARANTEE}
    tree, numbers = pack((plain, model._fit, state), type(model).__name__)
    ledger = held.ledger_
    content = {
        "tree": tree,
        "guarantee": guarantee_to_json(params),
        "ledger": None if ledger is None else ledger.to_json(),
        "notes": [*_accuracy(held), *held.notes_],
    }
    released = ledger is not None and ledger.private and ledger.for_release
    written = _layout(type(model)).write(path, content, {"numbers": numbers}, released=released)
    record_model(written, ledger, held.privacy_)
    return written


def _accuracy(model: Any) -> list[str]:
    """What a fit explains, in words, for certificates."""
    of = "" if model._offset is None else ", of what the offset leaves"
    return [f"adjusted R-squared {model.r2_:.3f}{of}"] if math.isfinite(model.r2_) else []


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
        params, fit, state = unpack(content["tree"], arrays["numbers"], may_be_made)
        model = kind(**params, **guarantee_from_json(content["guarantee"]))
        with afresh(model):
            if content["ledger"] is not None:
                model.ledger_ = Ledger.from_json(content["ledger"])
                model.privacy_ = model.privacy if model.ledger_.private else None
            model._adopt(fit, state["null_deviance_"])
            for name in kind._stored:
                setattr(model, name, state[name])
    return model


def may_be_made(kind: type) -> bool:
    """Whether a file may name a class: a term, or what terms and fits consist of."""
    return issubclass(kind, TermSpec | TermDesign | WhiteTerm) or f"{kind.__module__}.".startswith(PARTS)
