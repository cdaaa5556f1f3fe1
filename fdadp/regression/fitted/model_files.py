"""Saved models of many terms: files of :mod:`fdadp.files.npz_files`, packed by :mod:`fdadp.files.dataclass_json`.

A file holds the constructor's arguments and the :class:`~fdadp.regression.fitted.fitted_model.Fitted`: terms on their
bases, coefficients, their covariance, and the figures of the summary. A private fit adds the ledger, not the plan.
Training rows are left out. But without privacy the file has the knots of thin-plate smooths, which are values of the
covariate, and the labels of factors.
"""

from __future__ import annotations

import math
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp.files.dataclass_json import pack, unpack
from fdadp.files.npz_files import Layout, complete
from fdadp.privacy.account.ledger import Ledger
from fdadp.privacy.study.verification import record_model
from fdadp.private.release.mechanisms import guarantee_from_json, guarantee_to_json
from fdadp.private.whitened.white_term import WhiteTerm
from fdadp.regression.fitted.coefficient_errors import BY_CLUSTERS, CoefficientErrors
from fdadp.regression.fitted.tests_and_bands import error_left_out, tested_as_random
from fdadp.regression.model_settings import ModelSettings
from fdadp.terms.spec import TermDesign, TermSpec

if TYPE_CHECKING:
    from fdadp.regression.fitted.fitted_model import Fitted

GUARANTEE = ("privacy", "mechanism")
"""Parameters that are kept as plain JSON."""
PARTS = (
    "fdadp.functional.",
    "fdadp.private.",
    "fdadp.solve.",
    "fdadp.responses.",
    "fdadp.regression.",
    "fdadp.terms.",
    "fdadp.repeated.",
)
"""Modules whose dataclasses a file may name."""


def _layout(kind: type) -> Layout:
    return Layout(kind.__name__, {"numbers": "v"})


def save(fitted: Fitted, model: Any, path: str | os.PathLike[str], *, people: bool = True) -> Path:
    """Write a fitted model, and the settings of its estimator; `people`: with the curves of persons.

    Raises
    ------
    InputError
        Settings or terms that no file can hold, such as functions as limits.
    """
    released = fitted.released
    ledger = None if released is None else released.ledger
    held = None if released is None else replace(released, ledger=None, privacy=None, plan=None)
    own = None if fitted.persons is None else fitted.persons.stored(people=people)
    errors: Any = replace(_computed(fitted.errors), settings=None, persons=own)  # type: ignore[arg-type]  # kept separately
    response = replace(fitted.response, observed_at=None)
    stored = replace(fitted, errors=errors, response=response, rows=None, released=held, grids=())
    params = model.get_params(deep=False)
    plain = {name: value for name, value in params.items() if name not in GUARANTEE}
    tree, numbers = pack((plain, stored), type(model).__name__)
    content = {
        "tree": tree,
        "guarantee": guarantee_to_json(params),
        "ledger": None if ledger is None else ledger.to_json(),
        "notes": [*_accuracy(fitted), *(() if released is None else released.notes)],
    }
    may_leave = ledger is not None and ledger.private and ledger.for_release
    written = _layout(type(model)).write(path, content, {"numbers": numbers}, released=may_leave)
    record_model(written, ledger, None if released is None else released.privacy)
    return written


def _computed(errors: CoefficientErrors) -> CoefficientErrors:
    """Compute all covariances and variances, and drop the residuals."""
    settings, gaussian = errors.settings, errors.settings.family.name == "gaussian"
    if errors.residuals is not None:
        for kind in ("curve",) if errors.groups is None else BY_CLUSTERS:
            errors.by_clusters(kind)
    if errors.has_rows and settings.variance is not None and settings.of_curves and gaussian:
        for kind in ("t", "model"):
            errors.variance_of(kind)
    form = errors.fit.form
    for design, place in zip(form.designs, form.slices, strict=True) if settings.of_curves or errors.grouped else ():
        tested_as_random(errors, design, np.arange(place.start, place.stop), errors.kind_of(None), None)
    if errors.has_rows and gaussian:
        error_left_out(errors)
    return replace(errors, residuals=None, groups=None, changes=[])


def _accuracy(fitted: Fitted) -> list[str]:
    """What a fit explains, in words, for certificates."""
    of = "" if fitted.offset is None else ", of what the offset leaves"
    noisy = ", from noisy releases: other noise gives another one" if fitted.private else ""
    return [f"adjusted R-squared {fitted.r2:.3f}{of}{noisy}"] if math.isfinite(fitted.r2) else []


def load(path: str | os.PathLike[str], kind: type[Any]) -> tuple[Any, Fitted]:
    """Read a fitted model of a class: the estimator with its settings, and the `Fitted`.

    Raises
    ------
    FileFormatError
        Not such a file, one of another version, or a term whose class is not there.
    """
    content, arrays = _layout(kind).read(path)
    with complete(path, "model"):
        params, stored = unpack(content["tree"], arrays["numbers"], may_be_made)
        model = kind(**params, **guarantee_from_json(content["guarantee"]))
        errors = replace(
            stored.errors,
            settings=ModelSettings.of(model).with_family_of(stored.errors.fit),
            changes=[],
            scores=list(stored.errors.scores),
        )
        released = stored.released
        if released is not None:
            ledger = Ledger.from_json(content["ledger"])
            released = replace(released, ledger=ledger, privacy=model.privacy if ledger.private else None)
        return model, replace(stored, errors=errors, released=released)


def may_be_made(kind: type) -> bool:
    """Whether a file may name a class: a term, or what terms and fits consist of."""
    return issubclass(kind, TermSpec | TermDesign | WhiteTerm) or f"{kind.__module__}.".startswith(PARTS)
