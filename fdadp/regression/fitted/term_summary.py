"""Summary tables of a model of many terms, as statsmodels' ``Summary`` (text, HTML, LaTeX)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from statsmodels.iolib.summary import Summary
from statsmodels.iolib.table import SimpleTable

from fdadp.functional.tables.axis import text_of_grid
from fdadp.regression.fitted.coefficient_functions import effect_rows, varies
from fdadp.regression.fitted.inference import aic, error_left_out, terms_tested
from fdadp.regression.reading.person_rows import said_of_rows
from fdadp.terms.spec import TermDesign

if TYPE_CHECKING:
    from fdadp.regression.fitted.fitted import Fitted


def summarise(fitted: Fitted) -> Summary:
    """Build the tables: the fit as a whole, numbers, smooth terms, smoothing parameters, and notes."""
    result = Summary()
    result.tables.append(SimpleTable(_facts(fitted), title=_title(fitted)))
    numbers = _numbers(fitted)
    if numbers:
        result.tables.append(SimpleTable(numbers, headers=["", "estimate", "std. error", "t", "p"]))
    smooths = _smooths(fitted)
    if smooths:
        result.tables.append(SimpleTable(smooths, headers=["term", "edf", "at most", "Wald", "df", "p"]))
    values, names = fitted.smoothing
    chosen = np.atleast_2d(values)  # on eigenfunctions a row for each
    if chosen.size:
        rows = [(name, *(f"{v:.4g}" for v in own)) for name, own in zip(names, chosen.T, strict=True)]
        each = [""] if len(chosen) == 1 else [f"[{k + 1}]" for k in range(len(chosen))]
        result.tables.append(SimpleTable(rows, headers=["smoothing parameter", *each]))
    result.add_extra_txt([*_notes(fitted), *_guarantee(fitted)])
    return result


def _guarantee(fitted: Fitted) -> list[str]:
    """Whether the fit may be released."""
    ledger = None if fitted.released is None else fitted.released.ledger
    if ledger is None:
        return ["Fitted without privacy: do not release."]
    known = ledger.promise
    private = f"Differentially private end to end, {known}; ledger_ says what was released."
    return [private, *([] if ledger.for_release else ["The noise was seeded, for simulation: do not release."])]


def _title(fitted: Fitted) -> str:
    return "Regression of curves" if fitted.settings.of_curves else "Regression of numbers"


def _facts(fitted: Fitted) -> list[tuple[str, str, str, str]]:
    fit, family, smoothing = fitted.fit, fitted.family, fitted.settings.smoothing
    chosen = smoothing.upper() if isinstance(smoothing, str) else "Fixed smoothing"
    t = fit.form.t
    facts = [
        ("Response", fitted.response.name, "Family", f"{family.name}, {family.link}"),
        ("Records", f"{fit.n}", "Observations", f"{fit.n_rows}"),
        ("R-squared (adj.)", _known(fitted.r2, ".4f"), "Deviance explained", _known(fitted.explained_deviance, ".1%")),
        ("Smoothing", "public prior", "Scale", f"{fit.sigma2:.4g}")
        if fitted.private
        else (chosen, f"{fit.criterion:.6g}", "Scale", f"{fit.sigma2:.4g}"),
        ("Total edf", f"{fit.edf_total:.2f}", *_score(fitted)),
    ]
    if fitted.settings.of_curves:
        facts.insert(2, ("Points of t", f"{t.size}", "Domain", f"{t.min():.4g} to {t.max():.4g}"))
        if fitted.basis is not None:
            share = _known(float(fitted.basis.explained_ratio.sum()), ".1%")
            facts.insert(3, ("Eigenfunctions", f"{fitted.basis.n_components}", "of the variance", share))
    return facts


def _score(fitted: Fitted) -> tuple[str, str]:
    """The criterion for comparing models: the error of curves left out, or AIC if the response is a number."""
    errors = fitted.errors
    if fitted.private:
        return "AIC", "not known"
    if not fitted.settings.of_curves:
        return "AIC", f"{aic(errors):.6g}"
    known = errors.scores or (errors.has_rows and fitted.family.name == "gaussian")
    return "Error of curves left out", f"{error_left_out(errors)[0]:.4g}" if known else "not known"


def _known(value: float, how: str) -> str:
    return "not known" if np.isnan(value) else format(value, how).replace("%", " %")


def is_parametric(design: TermDesign) -> bool:
    """Whether the term is numbers without a penalty, and not a function of points, which a prior may smooth."""
    functions = any(isinstance(axis, np.ndarray) for axis in design.axes.values())  # levels are a tuple
    return not varies(design) and not functions and not len(design.penalties)


def _numbers(fitted: Fitted) -> list[tuple[str, ...]]:
    """Coefficients that are numbers: estimate, standard error, t statistic and p-value."""
    from scipy.stats import t as student

    fit, covariance = fitted.fit, fitted.errors.covariance(None)
    found: list[tuple[str, ...]] = []
    for design in fit.form.designs:
        if not is_parametric(design):
            continue
        effect = effect_rows(fit.form, design.name)
        left = fitted.errors.degrees(None, design.name)
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


def _smooths(fitted: Fitted) -> list[tuple[str, ...]]:
    edf, tests = fitted.edf, terms_tested(fitted.errors, None).to_dict("index")
    found: list[tuple[str, ...]] = []
    for design in fitted.fit.form.designs:
        if is_parametric(design):
            continue
        row = (design.name, f"{edf[design.name]:.2f}", f"{design.size}")
        if design.name in tests:
            test = tests[design.name]
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


def _notes(fitted: Fitted) -> list[str]:
    formula, ledger = fitted.settings.formula, None if fitted.released is None else fitted.released.ledger
    notes = [f"Formula: {formula}"] if isinstance(formula, str) else []
    covariates, response = fitted.covariates, fitted.response
    grids = [(name, grid, covariates.units.get(name)) for name, grid in covariates.grids.items()]
    if response.curves is not None:
        grids.append((response.name, response.curves.grid, response.curves.unit))
    notes += [f"Grid of {name}: {text_of_grid(grid, unit)}." for name, grid, unit in grids]
    errors = "Standard errors and tests know the noise of the releases" if ledger is not None else None
    notes += [] if fitted.joined is None else [f"Rows: {fitted.joined}."]
    if ledger is not None:
        said = ledger.details.get("rows of a person")
    else:
        said = said_of_rows(fitted.settings.person_rows) if fitted.errors.grouped else None
    notes += [] if said is None else [f"Rows of a person: {said}."]
    notes.append((errors or ERRORS[fitted.errors.kind_of(None)]) + ".")
    lost = fitted.fit.unidentified()
    if lost:
        whys = "; ".join(f"{name} {why}" for name, why in lost.items())
        notes.append(f"Note: the data do not identify all of {', '.join(lost)}. {whys}.")
    return notes
