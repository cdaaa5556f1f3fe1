"""A fitted additive model: its surface, how curves came, what is known of the errors, its tables and its files.

A saved model is a file of :mod:`fdadp.files.npz_files` of kind ``"additive-function-on-function"``. Its ``numbers`` are
those of the fit of the long form, the surface and the eigenbasis of Y, the treatment of gaps, and the grids, whose tree
(:mod:`fdadp.files.dataclass_json`) is in the header. There are also the constructor's arguments, with the privacy that
was spent (:mod:`fdadp.private.release.mechanisms`), and the ledger. No training curve is in the file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from fdadp._common.guarantee_in_words import promised
from fdadp._common.loaded_later import pd
from fdadp._common.typing import ArrayLike, CurveData, FloatArray
from fdadp.files.dataclass_json import labels_to_json, pack, unpack
from fdadp.files.npz_files import Layout, complete
from fdadp.functional.gap_filling import GAPS
from fdadp.functional.tables.curve_inputs import as_curves, check_finite
from fdadp.functional.tables.curve_sample import Curves
from fdadp.functional.tables.grid_from_labels import text_of_grid
from fdadp.functional.tables.printed_tables import PrintedSummary, PrintedTable
from fdadp.functional.tables.row_and_grid_labels import same_order
from fdadp.privacy import Ledger
from fdadp.privacy.study.verification import record_model
from fdadp.private.release.mechanisms import params_from_json, params_to_json
from fdadp.regression.fitted.coefficient_errors import CoefficientErrors
from fdadp.regression.fitted.fitted_model import Fitted, FittedResponse
from fdadp.regression.fitted.model_files import may_be_made
from fdadp.regression.model_settings import ModelSettings
from fdadp.regression.reading.missing_entries import Completion
from fdadp.regression.reading.table_columns import Covariates
from fdadp.solve.eigen.surface_fit import SurfaceFit
from fdadp.terms.records import Records, refuse_other_domain

if TYPE_CHECKING:
    from fdadp.private.release.noisy_moments import NoisyMoments
    from fdadp.regression.additive.estimator import AdditiveFunctionOnFunction


@dataclass(frozen=True, kw_only=True)
class FittedSurface(Fitted):
    """A fitted additive model: of one term, the surface.

    Attributes
    ----------
    surface : SurfaceFit
    x : Curves
        How X came, without any curve.
    fitted_with : mapping
        Settings that the fit was made with, whatever is set afterwards.
    moments : NoisyMoments or None
        The statistic of ``mechanism="moments"``.
    warned : tuple of str
        What users must be warned of, once the fit is kept.
    """

    surface: SurfaceFit
    x: Curves
    fitted_with: Mapping[str, Any]
    moments: NoisyMoments | None = None
    warned: tuple[str, ...] = ()

    @classmethod
    def of(cls, surface: SurfaceFit, completion: Completion, x: Curves, y: Curves, **more: Any) -> FittedSurface:
        """That of curves as they came; nothing of their values is kept."""
        names = None if x.gridded or x.columns is None else pd.Index([str(name) for name in x.columns])
        return cls(
            response=FittedResponse(name="Y", curves=y.without_rows()),
            errors=_errors_of(surface),
            covariates=Covariates({"X": x.grid}, completion, {} if x.unit is None else {"X": x.unit}),
            null_deviance=float("nan"),
            basis=surface.basis,
            surface=surface,
            x=replace(x.without_rows(), columns=names),
            **more,
        )

    def with_surface(self, surface: SurfaceFit, **more: Any) -> FittedSurface:
        """The same curves with another surface, such as one with noise: predictions and intervals are its own."""
        return replace(self, surface=surface, errors=_errors_of(surface), basis=surface.basis, **more)

    @property
    def private(self) -> bool:
        """Whether the surface comes from noisy releases."""
        return self.surface.privacy is not None

    def curves(self, X: CurveData, s: ArrayLike | None) -> Records:
        """New curves, complete and checked."""
        own, x = self.x, as_curves(X, s, name="X", default=self.x.grid)
        refuse_other_domain(x, own.grid, "X")
        if own.columns is not None and not x.gridded and x.columns is not None:
            same_order(list(own.columns), list(x.columns), "X", "the training curves")
        records = self.covariates.read({"X": x}, ("X",), None)
        check_finite(records.curves("X"), "X")
        if self.surface.limited:  # features of private fits say nothing of it
            self.surface.term.warn_outside(records.curves("X"))
        return records

    def shown(self, values: FloatArray, points: FloatArray, x: Records) -> Any:
        """Curves at points as Y came, with the labels of X."""
        assert self.response.curves is not None
        return self.response.curves.wrap(values, points, rows=x.curves("X"))


def _errors_of(surface: SurfaceFit) -> CoefficientErrors:
    """The surface's coefficients, and what is known of errors about it."""
    law: dict[str, Any] = {"released" if surface.limited else "pointwise": surface.law}
    settings = ModelSettings(response_basis="eigen")
    return CoefficientErrors(settings=settings, fit=surface.fit, beyond=surface.beyond, variances=law)


# PrintedSummary tables of a fit.


def summarise(model: AdditiveFunctionOnFunction) -> PrintedSummary:
    """Build the tables: the fit as a whole, its components, and the ledger's first line where there is one."""
    private = model.privacy_ is not None
    criterion = model.smoothing.upper() if isinstance(model.smoothing, str) else "fixed smoothing"
    if private:
        criterion = "empirical Bayes"
    low, high = model.x_range_
    y = model.fitted_.response.curves
    facts = [
        ("Curves", f"{model.n_curves_}", "Components K", f"{len(model.edf_)}"),
        (
            "Grid of X",
            text_of_grid(model.s_, model.fitted_.x.unit, "s"),
            "Grid of Y",
            text_of_grid(model.t_, None if y is None else y.unit, "t"),
        ),
        ("Range of X", f"{low:.4g} to {high:.4g}", "Basis", f"{model.coef_.shape[1]} x {model.coef_.shape[2]}"),
        ("R-squared", f"{model.r2_:.4f}", "Noise variance", f"{model.noise_variance_:.4g}"),
        ("Smoothing", criterion, "Total edf", f"{model.edf_.sum():.2f}"),
    ]
    rows = [
        (f"{k + 1}", f"{100 * share:.1f} %", f"{edf:.2f}", f"{sp[0]:.4g}", f"{sp[1]:.4g}", f"{score:.6g}")
        for k, (share, edf, sp, score) in enumerate(
            zip(
                model.explained_variance_ratio_,
                model.edf_,
                model.smoothing_parameters_,
                model.criterion_,
                strict=True,
            )
        )
    ]
    headers = ["component", "variance of Y", "edf", "lambda x", "lambda s"]
    if private:  # no smoothing parameters: the prior and its released scale take their place
        headers = headers[:3]
    else:
        headers.append("GCV" if criterion == "GCV" else "-REML")
    tables = [PrintedTable(facts, title="Additive function-on-function regression")]
    tables.append(PrintedTable([row[: len(headers)] for row in rows], headers))
    lines = []
    if model.ledger_ is None:
        lines.append("Fitted without privacy: do not release.")
    else:
        lines.append(model.ledger_.headline)
        if model.privacy_ is not None:
            budget = model.privacy_
            known = promised(budget.epsilon, budget.delta)
            lines.append(f"{known}, adjacency {budget.stated_adjacency}; details: ledger_")
        if private:
            lines.append(f"Gaps of X {GAPS[model._gaps]}, within each row; of Y a row counts where it was observed.")
    if model.joined_ is not None:
        lines.append(f"Rows: {model.joined_}.")
    return PrintedSummary(tables, [*lines, *(f"Note: {note}." for note in model.notes_)])


# Saved models: a file of :mod:`fdadp.files.npz_files` of kind ``"additive-function-on-function"``.


Model = TypeVar("Model", bound="AdditiveFunctionOnFunction")

LAYOUT = Layout("additive-function-on-function", {"numbers": "v"})


def check_saveable(model: AdditiveFunctionOnFunction, columns: pd.Index[Any] | None) -> None:
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
    tree, numbers = pack((found, fitted.covariates.completion, fitted.x, fitted.response.curves), "model")
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
    found, completion, x, y = unpack(content["tree"], arrays["numbers"], may_be_made)
    ledger = None if content["ledger"] is None else Ledger.from_json(content["ledger"])
    private = ledger is not None and ledger.private and model.privacy is not None
    guarantee = replace(model.privacy) if private and model.privacy else None
    surface = replace(found, ledger=ledger, privacy=guarantee)
    own = {name: getattr(model, name) for name in ("privacy", "bounds", "mechanism")}
    fitted = FittedSurface.of(surface, completion, x, y, fitted_with=own)
    model._keep(fitted)
    middle = np.full((1, model.s_.size), sum(model.x_range_) / 2)
    fitted.errors.of_predictor(Records(1, {"X": Curves(middle, model.s_)}), None, model.t_)  # bases and arrays suit
    model.surface(middle[0, 0], model.s_[0], model.t_)
    return model
