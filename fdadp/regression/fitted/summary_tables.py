"""Tables of a fitted model: summaries (text, HTML, LaTeX), checks of bases, concurvity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp._common.calling_language import advice
from fdadp._common.student_and_f import student_beyond
from fdadp._common.threads import one_blas_thread
from fdadp._common.typing import FloatArray, IntArray
from fdadp.functional.splines.bsplines import BSplines
from fdadp.functional.tables.curve_sample import Curves
from fdadp.functional.tables.grid_from_labels import text_of_grid
from fdadp.functional.tables.printed_tables import PrintedSummary, PrintedTable
from fdadp.private.plan.budget_plan import PLANNED
from fdadp.regression.fitted.coefficient_functions import effect_rows, varies
from fdadp.regression.fitted.tests_and_bands import aic, each_tested, error_left_out
from fdadp.regression.reading.training_rows import TrainingSpec, read_training, said_of_rows
from fdadp.solve.errors.term_tests import MEASURES, concurvity
from fdadp.solve.fit.additive_fit import AdditiveFit
from fdadp.terms.on_response_functions import OnFunctions
from fdadp.terms.records import Records
from fdadp.terms.spec import TermDesign

if TYPE_CHECKING:
    import pandas as pd

    from fdadp.regression.fitted.fitted_model import Fitted


def summarise(fitted: Fitted) -> PrintedSummary:
    """Build the tables: the fit as a whole, numbers, smooth terms, smoothing parameters, and notes."""
    tables = [PrintedTable(_facts(fitted), title=_title(fitted))]
    numbers = coefficient_table(fitted)
    if numbers:
        shown: list[tuple[str, ...]] = [(of, f"{b:.4g}", f"{se:.4g}", f"{z:.2f}", _p(p)) for of, b, se, z, p in numbers]
        tables.append(PrintedTable(shown, headers=["", "estimate", "std. error", "t", "p"]))
    smooths = _smooths(fitted)
    if smooths:
        tables.append(PrintedTable(smooths, headers=["term", "edf", "at most", "Wald", "df", "p"]))
    values, names = fitted.smoothing
    chosen = np.atleast_2d(values)  # on eigenfunctions a row for each
    if chosen.size:
        rows = [(name, *(f"{v:.4g}" for v in own)) for name, own in zip(names, chosen.T, strict=True)]
        each = [""] if len(chosen) == 1 else [f"[{k + 1}]" for k in range(len(chosen))]
        tables.append(PrintedTable(rows, headers=["smoothing parameter", *each]))
    held = fitted.levels
    if held is not None:
        table = held.variances
        rows = [(level, *(f"{v:.4g}" for v in row)) for level, row in zip(table.index, table.to_numpy(), strict=True)]
        tables.append(PrintedTable(rows, headers=["level", *table.columns]))
    return PrintedSummary(tables, [*notes(fitted), *_guarantee(fitted)])


def _guarantee(fitted: Fitted) -> list[str]:
    """Whether the fit may be released."""
    ledger = None if fitted.released is None else fitted.released.ledger
    if ledger is None:
        return ["Fitted without privacy: do not release."]
    known = ledger.promise
    says = advice("ledger_", r="ledger()", shell="the ledger")
    if not ledger.for_release:
        return [f"NOT FOR RELEASE: the noise can be repeated. With real noise the fit would have {known}."]
    return [f"Differentially private end to end, {known}; {says} says what was released."]


def _title(fitted: Fitted) -> str:
    return "Regression of curves" if fitted.settings.of_curves else "Regression of numbers"


def _facts(fitted: Fitted) -> list[tuple[str, str, str, str]]:
    fit, family, smoothing = fitted.fit, fitted.family, fitted.settings.smoothing
    chosen = smoothing.upper() if isinstance(smoothing, str) else "Fixed smoothing"
    if fitted.settings.smooths_by_curves:
        chosen = f"{'Curves' if smoothing == 'curves' else 'Persons'} left out"
    t = fit.form.t
    facts = [
        ("Response", fitted.response.name, "Family", f"{family.shown}, {family.link}"),
        ("Records", f"{fit.n}", "Observations", f"{fit.n_rows}"),
        ("R-squared (adj.)", _known(fitted.r2, ".4f"), "Deviance explained", _known(fitted.explained_deviance, ".1%")),
        ("Smoothing", "public prior", "Scale", f"{fit.sigma2:.4g}")
        if fitted.private
        else (chosen, f"{fit.criterion:.6g}", "Scale", f"{fit.sigma2:.4g}"),
        ("Total edf", f"{fit.edf_total:.2f}", *_score(fitted)),
    ]
    if fitted.settings.of_curves:
        period = fitted.settings.t_period
        domain = f"{t.min():.4g} to {t.max():.4g}" + ("" if period is None else f", period {period:.4g}")
        facts.insert(2, ("Points of t", f"{t.size}", "Domain", domain))
        if fitted.basis is not None:
            share = _known(float(fitted.basis.explained_ratio.sum()), ".1%")
            facts.insert(3, ("Eigenfunctions", f"{fitted.basis.n_components}", "of the variance", share))
    return facts


def _score(fitted: Fitted) -> tuple[str, str]:
    """The criterion for comparing models: the error of curves left out, or AIC if the response is a number."""
    errors = fitted.errors
    if fitted.private or fitted.variance is not None:
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


def coefficient_table(fitted: Fitted) -> list[tuple[str, float, float, float, float]]:
    """Coefficients that are numbers: name, estimate, standard error, t statistic and p-value."""
    fit, covariance = fitted.fit, fitted.errors.covariance(None)
    found: list[tuple[str, float, float, float, float]] = []
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
            se = float(np.sqrt(max(row @ covariance[effect.place, effect.place] @ row, 0.0)))
            z = value / se if se > 0 else np.nan
            found.append((label, value, se, z, 2 * float(student_beyond(abs(z), left))))
    return found


def _smooths(fitted: Fitted) -> list[tuple[str, ...]]:
    edf, tests = fitted.edf, each_tested(fitted.errors, None)
    found: list[tuple[str, ...]] = []
    for design in fitted.fit.form.designs:
        if is_parametric(design):
            continue
        row = (design.name, f"{edf[design.name]:.2f}", f"{design.size}")
        if design.name in tests:
            _, test = tests[design.name]
            found.append((*row, f"{test.statistic:.4g}", f"{test.df:g}", _p(test.p)))
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
BY_PERSON = {
    "iid": "Standard errors and tests account for the covariances of persons and of their rows",
    "unconditional": "Standard errors and tests are of random curves, and count that smoothing is estimated",
    "cluster": "Standard errors and tests allow any dependence of errors within a person",
}

CURVES_BELIEVED = (
    "Bands of coefficient functions assume that curves vary as the public prior says. Where real curves vary along "
    "few shapes, bands hold far less than 95 %"
)
"""Of private fits: .26 of a function at n = 10,000, the worst of seven simulators (``docs/limits.md``)."""


def notes(fitted: Fitted) -> list[str]:
    """What stands below the tables, a sentence or more each."""
    formula, ledger = fitted.settings.formula, None if fitted.released is None else fitted.released.ledger
    found = [f"Formula: {formula}"] if isinstance(formula, str) else []
    covariates, response = fitted.covariates, fitted.response
    grids = [(name, grid, covariates.units.get(name)) for name, grid in covariates.grids.items()]
    if response.curves is not None:
        grids.append((response.name, response.curves.grid, response.curves.unit))
    found += [f"Grid of {name}: {text_of_grid(grid, unit)}." for name, grid, unit in grids]
    found += _functions_along(fitted)
    errors = None
    if ledger is not None:
        errors = "Standard errors and tests include the noise of the releases"
        looked = any(release.name == PLANNED["directions"] for release in ledger.releases)
        errors += f". {CURVES_BELIEVED}" if covariates.grids and not looked else ""
    found += [] if fitted.joined is None else [f"Rows: {fitted.joined}."]
    if ledger is not None:
        said = ledger.details.get("rows of a person")
    else:
        said = said_of_rows(fitted.settings.person_rows) if fitted.errors.grouped and fitted.persons is None else None
    found += [] if said is None else [f"Rows of a person: {said}."]
    if fitted.levels is not None:
        found += fitted.levels.notes()
    if fitted.persons is not None:
        kind = fitted.errors.kind_of(None)
        errors = errors or BY_PERSON[kind]
        if kind == "unconditional":  # errors are those of estimated covariances up to a number of persons and of terms
            counted = fitted.persons.weights.any()
            errors += "; covariances are estimated, too" if counted else "; covariances are taken as known"
    found.append((errors or ERRORS[fitted.errors.kind_of(None)]) + ".")
    found += fitted.family.notes
    found += [] if fitted.variance is None else [fitted.variance.note]
    found += fitted.advice
    lost = fitted.fit.unidentified()
    if lost:
        whys = "; ".join(f"{name} {why}" for name, why in lost.items())
        found.append(f"Note: the data do not identify all of {', '.join(lost)}. {whys}.")
    return found


def _functions_along(fitted: Fitted) -> list[str]:
    """How many functions along t the terms of an ordinary fit of curves have."""
    if fitted.private or not fitted.settings.of_curves or fitted.basis is not None:
        return []
    found: dict[int, list[str]] = {}
    for design in fitted.fit.form.designs:
        if design.columns and varies(design):
            found.setdefault(design.along.size, []).append(design.name)
    said = "; ".join(f"{size} of {', '.join(names)}" for size, names in found.items())
    return [f"Functions along t: {said}."] if said else []


# Check of basis sizes: dependence of residuals on covariates and on t, as mgcv's ``k.check``.


RECORDS = 2000
"""Number of records in the check, sampled at random if there are more."""

NEAREST = 3
"""Number of neighbours of a record, if its covariates are more than one number."""


def check_model(fitted: Fitted, asked: tuple[Any, ...], n_draws: int, seed: int) -> pd.DataFrame:
    """Check a fitted model with its training rows; `asked` are the arguments of its `fit`."""
    data, y, grids, weights, offset, long = asked
    fit, settings, response = fitted.fit, fitted.settings, fitted.response
    made = fitted.covariates.completion.indicators.values()
    names = dict.fromkeys(name for design in fit.form.designs for name in design.columns if name not in made)
    if fitted.offset is not None and (offset is None or f"I({offset})" == fitted.offset):
        offset = fitted.offset
        names[offset] = None
    names |= dict.fromkeys(fitted.columns)
    known = dict(fitted.covariates.grids)
    if response.curves is not None:
        known.setdefault(response.name, response.curves.grid)
    columns = (response.name, tuple(names))
    rows = TrainingSpec(data, y, *columns, grids, weights, offset, long, settings.gaps, defaults=known)
    observed = read_training(rows, settings.family, curves=settings.of_curves).observed
    eta = observed.predictor(fit.form, fit.coefficients)
    if fitted.persons is not None:  # residuals are of rows, not of persons
        eta = eta + fitted.persons.beside(observed)
    mean = settings.family.mean(eta)
    left = settings.family.deviance_residuals(observed.y, mean, observed.weights)
    left = np.where(np.isnan(left), 0.0, left)
    if observed.points is not None:
        record, n = observed.points.record, observed.records.n
        left = (np.bincount(record, left, n) / np.sqrt(np.maximum(np.bincount(record, minlength=n), 1)))[:, None]
    return check_terms(fit, observed.records, left, n_draws, seed)


def check_terms(fit: AdditiveFit, records: Records, residuals: FloatArray, n_draws: int, seed: int) -> pd.DataFrame:
    """A row for each term that is no number.

    Parameters
    ----------
    fit : AdditiveFit
    records : Records
        The training rows.
    residuals : ndarray of shape (n, T)
        Zero where nothing was observed.
    n_draws : int
        Random arrangements of the records that the real one is compared with.
    seed : int

    Returns
    -------
    DataFrame
        ``k`` (most degrees of freedom), ``edf``, ``k_index``, ``p_value``, and of curves ``p_value_t``.
    """
    import pandas as pd

    draw = np.random.default_rng(seed)
    if records.n > RECORDS:
        some = np.sort(draw.choice(records.n, RECORDS, replace=False))
        records, residuals = records[some], residuals[some]
    products = residuals @ residuals.T
    orders = np.array([draw.permutation(records.n) for _ in range(n_draws)])
    signs = draw.choice([-1.0, 1.0], size=(n_draws, records.n))
    rows: dict[str, Any] = {}
    for design, place in zip(fit.form.designs, fit.form.slices, strict=True):
        if is_parametric(design):
            continue
        row: dict[str, Any] = {"k": design.size, "edf": float(fit.edf[place].sum())}
        row["k_index"], row["p_value"] = _by_neighbours(products, _covariates(design, records), orders)
        if residuals.shape[1] > 1:
            row["p_value_t"] = _along(design, records, residuals, fit.form.t, signs)
        rows[design.name] = row
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("term")


def _covariates(design: TermDesign, records: Records) -> FloatArray:
    """Numbers and curves that a term reads, each scaled to variance 1, shape (n, d); labels are left out."""
    parts: list[FloatArray] = []
    design = design.of if isinstance(design, OnFunctions) else design
    for name in design.columns:
        column = records.columns[name]
        if isinstance(column, Curves):
            parts.append(column.values / (np.sqrt(column.values.var(axis=0).sum()) or 1.0))
        elif column.dtype.kind == "f" and not hasattr(design, "levels"):
            parts.append(column[:, None] / (column.std() or 1.0))
    return np.concatenate(parts, axis=1) if parts else np.zeros((records.n, 0))


def _by_neighbours(products: FloatArray, covariates: FloatArray, orders: IntArray) -> tuple[float, float]:
    """Half the mean squared difference of residuals of neighbours, over their variance; how rarely chance has less."""
    n, d = covariates.shape
    if d == 0 or n < NEAREST + 2:
        return np.nan, np.nan
    if d == 1:
        order = np.argsort(covariates[:, 0], kind="stable")
        first, second = order[:-1], order[1:]
    else:
        first, second = np.repeat(np.arange(n), NEAREST), _nearest(covariates).ravel()
    squares = products.diagonal()
    variance = float(squares.mean())
    if variance == 0:
        return np.nan, np.nan

    def index(order: IntArray) -> float:
        a, b = order[first], order[second]
        return float((squares[a] + squares[b] - 2 * products[a, b]).mean() / 2)

    found = index(np.arange(n))
    return found / variance, float(np.mean([index(order) < found for order in orders]))


def _nearest(covariates: FloatArray) -> IntArray:
    squares = np.einsum("ij,ij->i", covariates, covariates)
    distances = squares[:, None] + squares - 2 * covariates @ covariates.T
    np.fill_diagonal(distances, np.inf)
    return np.argpartition(distances, NEAREST, axis=1)[:, :NEAREST]


def _along(design: TermDesign, records: Records, residuals: FloatArray, t: FloatArray, signs: FloatArray) -> float:
    """p-value of structure along t beyond the basis of the term, from random signs of the records.

    The statistic is the sum over records of features times residuals. It is projected on splines with twice the
    intervals, without the span of the term's own. A sign applies to a whole residual curve, so errors may depend along
    the curve in any way.
    """
    if not varies(design) or not len(design.penalties):
        return np.nan
    along = np.column_stack((np.ones(t.size), design.along.design(t)))
    fine = BSplines.uniform(float(t.min()), float(t.max()), max(2 * design.along.size, 8)).design(t)
    basis = np.linalg.qr(along)[0]
    rest = fine - basis @ (basis.T @ fine)
    vectors, values, _ = np.linalg.svd(rest, full_matrices=False)
    more = vectors[:, values > 1e-6 * np.abs(fine).max()]
    if not more.shape[1]:
        return np.nan
    features = design.features(records, t)
    if features.ndim == 2:
        whitened = _orthonormal(features)
        at = residuals @ more
        both = (whitened @ whitened.T) * (at @ at.T)
    else:
        sums = np.einsum("ntq,nt,tm->nqm", features, residuals, more, optimize=True).reshape(len(features), -1)
        both = sums @ sums.T
    found = float(both.sum())
    by_chance = np.einsum("bi,bi->b", signs @ both, signs)
    return float((1 + np.sum(by_chance >= found)) / (1 + len(signs)))


def _orthonormal(features: FloatArray) -> FloatArray:
    vectors, values, _ = np.linalg.svd(features, full_matrices=False)
    return np.asarray(vectors[:, values > 1e-8 * values.max(initial=0.0)])


# Concurvity of the terms of a fitted model, as a table.


NUMBERS = "numbers"
"""Name of the row for all coefficients that are numbers without a penalty."""


def concurvity_table(fit: AdditiveFit, pairwise: bool) -> pd.DataFrame:
    """A row for each term, or with `pairwise` for each pair of them."""
    import pandas as pd

    groups: dict[str, list[IntArray]] = {}
    for design, place in zip(fit.form.designs, fit.form.slices, strict=True):
        name = NUMBERS if is_parametric(design) else design.name
        groups.setdefault(name, []).append(np.arange(place.start, place.stop))
    columns = {name: np.concatenate(parts) for name, parts in groups.items()}
    rows, labels = [], []
    with one_blas_thread():
        for name, term in columns.items():
            rest = {other: c for other, c in columns.items() if other != name}
            sets = rest if pairwise else {"": np.concatenate([np.zeros(0, dtype=np.int64), *rest.values()])}
            rows += concurvity(fit.gram, fit.coefficients, term, list(sets.values()))
            labels += [(name, other) for other in sets]
    if pairwise:
        index: pd.Index = pd.MultiIndex.from_tuples(labels, names=["term", "by"])
    else:
        index = pd.Index([name for name, _ in labels], name="term")
    return pd.DataFrame(rows, columns=list(MEASURES), index=index)
