"""Summary tables of a model of many terms, as statsmodels' ``Summary`` (text, HTML, LaTeX)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from statsmodels.iolib.summary import Summary
from statsmodels.iolib.table import SimpleTable

from fdadp.functional.axis import text_of_grid
from fdadp.regression.effects import effect_rows, varies
from fdadp.regression.person_rows import said_of_rows
from fdadp.terms.spec import TermDesign

if TYPE_CHECKING:
    from fdadp.regression.term_views import TermViews

__all__ = ["summarise"]


def summarise(model: TermViews) -> Summary:
    """Build the tables: the fit as a whole, numbers, smooth terms, smoothing parameters; and notes."""
    result = Summary()
    result.tables.append(SimpleTable(_facts(model), title=_title(model)))
    numbers = _numbers(model)
    if numbers:
        result.tables.append(SimpleTable(numbers, headers=["", "estimate", "std. error", "t", "p"]))
    smooths = _smooths(model)
    if smooths:
        result.tables.append(SimpleTable(smooths, headers=["term", "edf", "at most", "Wald", "df", "p"]))
    chosen = np.atleast_2d(model.smoothing_parameters_)  # on eigenfunctions a row for each
    if chosen.size:
        rows = [(name, *(f"{v:.4g}" for v in own)) for name, own in zip(model.smoothing_names_, chosen.T, strict=True)]
        each = [""] if len(chosen) == 1 else [f"[{k + 1}]" for k in range(len(chosen))]
        result.tables.append(SimpleTable(rows, headers=["smoothing parameter", *each]))
    result.add_extra_txt([*_notes(model), *_guarantee(model)])
    return result


def _guarantee(model: Any) -> list[str]:
    """What may be released."""
    ledger = model.ledger_
    if ledger is None:
        return ["Fitted without privacy: do not release."]
    known = ledger.promise
    private = f"Differentially private end to end, {known}; ledger_ says what was released."
    return [private, *([] if ledger.for_release else ["The noise was seeded, for simulation: do not release."])]


def _title(model: Any) -> str:
    return "Regression of curves" if hasattr(model, "t_") else "Regression of numbers"


def _facts(model: Any) -> list[tuple[str, str, str, str]]:
    fit = model._fit
    smoothing = model._as_fitted("smoothing")
    chosen = smoothing.upper() if isinstance(smoothing, str) else "Fixed smoothing"
    t, private = fit.form.t, model.ledger_ is not None
    facts = [
        ("Response", model.response_name_, "Family", f"{model._family.name}, {model._family.link}"),
        ("Records", f"{fit.n}", "Observations", f"{fit.n_rows}"),
        ("R-squared (adj.)", _known(model.r2_, ".4f"), "Deviance explained", _known(model.explained_deviance_, ".1%")),
        ("Smoothing", "public prior", "Scale", f"{fit.sigma2:.4g}")
        if private
        else (chosen, f"{fit.criterion:.6g}", "Scale", f"{fit.sigma2:.4g}"),
        ("Total edf", f"{fit.edf_total:.2f}", *_score(model)),
    ]
    if hasattr(model, "t_"):
        facts.insert(2, ("Points of t", f"{t.size}", "Domain", f"{t.min():.4g} to {t.max():.4g}"))
        if model.eigenbasis_ is not None:
            share = _known(float(model.eigenbasis_.explained_ratio.sum()), ".1%")
            facts.insert(3, ("Eigenfunctions", f"{model.eigenbasis_.n_components}", "of the variance", share))
    return facts


def _score(model: Any) -> tuple[str, str]:
    """What models are chosen by: of curves, whose points AIC takes as independent, the error of curves left out."""
    if model.ledger_ is not None:
        return "AIC", "not known"
    if not model._of_curves:
        return "AIC", f"{model.aic_:.6g}"
    score = model._score
    return "Error of curves left out", "not known" if score is None else f"{score[0]:.4g}"


def _known(value: float, how: str) -> str:
    return "not known" if np.isnan(value) else format(value, how).replace("%", " %")


def is_parametric(design: TermDesign) -> bool:
    """Whether the term is numbers without a penalty, and no function of points (which a prior may hold instead)."""
    functions = any(isinstance(axis, np.ndarray) for axis in design.axes.values())  # levels are a tuple
    return not varies(design) and not functions and not len(design.penalties)


def _numbers(model: Any) -> list[tuple[str, ...]]:
    """Coefficients that are numbers: estimate, standard error, t statistic and p-value."""
    from scipy.stats import t as student

    fit, covariance = model._fit, model._covariance_of(None)
    found: list[tuple[str, ...]] = []
    for design in fit.form.designs:
        if not is_parametric(design):
            continue
        effect = effect_rows(fit.form, design.name)
        left = model._degrees_of(None, design.name)
        labels = [design.name]
        for axis in effect.axes.values():
            labels = [f"{label}[{level}]" for label in labels for level in axis]
        for label, row in zip(labels, effect.rows, strict=True):
            if not row.any():
                continue
            value = float(row @ fit.coefficients[effect.place])
            se = float(np.sqrt(row @ covariance[effect.place, effect.place] @ row))
            z = value / se if se > 0 else np.nan
            found.append((label, f"{value:.4g}", f"{se:.4g}", f"{z:.2f}", _p(2 * float(student.sf(abs(z), left)))))
    return found


def _smooths(model: Any) -> list[tuple[str, ...]]:
    edf, tests = model.term_edf_, model.test_terms()
    found: list[tuple[str, ...]] = []
    for design in model._fit.form.designs:
        if is_parametric(design):
            continue
        row = (design.name, f"{edf[design.name]:.2f}", f"{design.size}")
        if design.name in tests.index:
            test = tests.loc[design.name]
            found.append((*row, f"{test['statistic']:.4g}", f"{test['df']:g}", _p(float(test["p"]))))
        else:
            found.append((*row, "", "", ""))
    return found


def _p(value: float) -> str:
    return "" if np.isnan(value) else "<0.0001" if value < 1e-4 else f"{value:.4f}"


ERRORS = {
    "iid": "Standard errors and tests take all observations as independent",
    "curve": "Standard errors and tests allow any dependence of errors along a curve",
    "cluster": "Standard errors and tests allow any dependence of errors within a group",
}


def _notes(model: Any) -> list[str]:
    formula = model._as_fitted("formula")
    notes = [f"Formula: {formula}"] if isinstance(formula, str) else []
    grids = [(name, grid, model._covariates.units.get(name)) for name, grid in model._covariates.grids.items()]
    if hasattr(model, "t_"):
        grids.append((model.response_name_, model.t_, model._y.unit))
    notes += [f"Grid of {name}: {text_of_grid(grid, unit)}." for name, grid, unit in grids]
    errors = "Standard errors and tests know the noise of the releases" if model.ledger_ is not None else None
    notes += [] if model.joined_ is None else [f"Rows: {model.joined_}."]
    if model.ledger_ is not None:
        said = model.ledger_.details.get("rows of a person")
    else:
        said = said_of_rows(model.person_rows) if model._grouped else None
    notes += [] if said is None else [f"Rows of a person: {said}."]
    notes.append((errors or ERRORS[model._kind_of(None)]) + ".")
    lost = model._fit.unidentified()
    if lost:
        whys = "; ".join(f"{name} {why}" for name, why in lost.items())
        notes.append(f"Note: the data do not identify all of {', '.join(lost)}. {whys}.")
    return notes
