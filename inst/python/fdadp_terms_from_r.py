"""What R's ``fdadp()`` calls: models of several terms. Plain values in, plain values out, as in ``fdadp_from_r.py``.

R walks its own formula and evaluates the arguments of terms; what comes here says which terms there are and gives
their columns. A fit in R is that description with how its smoothing is chosen: Python's model of this session is used
where it is still there, and is made again otherwise.
"""

from __future__ import annotations

import uuid
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from fdadp import FunctionalRegression, ScalarRegression, inference, terms
from fdadp.errors import InputError
from fdadp.regression.fitted import summary_tables
from fdadp.regression.fitted.coefficient_functions import place_of
from fdadp.terms.spec import TermSpec

MOST_KEPT = 16
_models: OrderedDict[str, Any] = OrderedDict()
"""Models of this session, by the key that a fit in R has."""


# --- what R says ---


def term_of(told: Mapping[str, Any]) -> TermSpec:
    """The term that R's formula asks for."""
    kind, settings = str(told["kind"]), {name: setting(v) for name, v in (told["settings"] or {}).items()}
    made: TermSpec
    columns = [str(name) for name in told["columns"]]
    if "term" in told:
        inner = term_of(told["term"])
        made = terms.c(inner) if kind == "c" else terms.by(columns[0], inner, **settings)
        return made
    if kind == "fosr":
        made = terms.fosr(tuple(columns), **settings)
        return made
    if kind != "te" and len(columns) != 1:
        raise InputError(f"{kind}() must have one column, got {', '.join(columns)}")
    try:
        made = getattr(terms, kind)(*columns, **settings)
    except TypeError as exc:
        said = str(exc).split(") ")[-1].split("() ")[-1].replace("got an unexpected keyword", "has no")
        raise InputError(f"{kind}({', '.join(columns)}): {said}") from None
    return made


def variance_of(told: Any) -> Any:
    """Terms of the variance as text of a formula; a word of curves as it is."""
    if told is None or isinstance(told, str):
        return told
    return "~ " + " + ".join(text_of(own) for own in told)


def text_of(told: Mapping[str, Any]) -> str:
    """A term as text of a formula."""
    kind, columns = str(told["kind"]), [f"`{name}`" for name in told["columns"]]
    if "term" in told:
        raise InputError(f"variance must have terms of their own, got one times {columns[0] if columns else kind}")
    if kind in ("linear", "factor"):
        return columns[0]
    told_settings = (f"{name}={setting(value)!r}" for name, value in (told["settings"] or {}).items())
    return f"{kind}({', '.join([*columns, *told_settings])})"


def setting(value: Any) -> Any:
    """An argument of a term: R's whole numbers are doubles, its vectors tuples."""
    if isinstance(value, np.ndarray | list | tuple):
        return tuple(setting(v) for v in (value.tolist() if isinstance(value, np.ndarray) else value))
    return int(value) if isinstance(value, float) and value.is_integer() else value


def table(columns: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Columns and the grids of those that are curves."""
    data: dict[str, Any] = {}
    grids: dict[str, Any] = {}
    for name, told in columns.items():
        values = told["values"]
        if told["kind"] == "labels":
            labels = np.array(values, dtype=object)
            labels[np.asarray(told["missing"], dtype=bool)] = None
            levels = [str(level) for level in told["levels"]]
            data[name] = pd.Categorical(labels, categories=levels, ordered=bool(told.get("ordered")))
        else:
            own = np.array(values, dtype=np.float64, order="C")
            own[np.isnan(own)] = np.nan  # R's NA is a signalling one
            data[name] = own
        if told.get("grid") is not None:
            grids[name] = np.asarray(told["grid"], dtype=np.float64)
    return data, grids


def made(spec: Mapping[str, Any], smoothing: Any) -> Any:
    """A fitted model."""
    data, grids = table(spec["columns"])
    kind = ScalarRegression if spec["scalar"] else FunctionalRegression
    settings = dict(spec["settings"] or {})
    if "variance" in settings:
        settings["variance"] = variance_of(settings["variance"])
    model = kind(
        [term_of(told) for told in spec["terms"]],
        response=spec["response"],
        smoothing=smoothing if isinstance(smoothing, str) else np.atleast_1d(np.asarray(smoothing, dtype=np.float64)),
        **settings,
    )
    more = {name: as_given(spec[name]) for name in ("weights", "offset", "groups") if spec.get(name) is not None}
    if spec.get("long") is not None:
        long = {name: np.array(values, dtype=np.float64) for name, values in spec["long"].items()}
        more["response"] = pd.DataFrame({**long, "row": long["row"].astype(int) - 1})
    return model.fit(data, grids=grids, **more)


def as_given(values: Any) -> Any:
    """Numbers or labels, one a row, or one a point."""
    array = np.asarray(values)
    return np.array(array, order="C") if array.dtype.kind in "biuf" else array.astype(object)


# --- fits ---


def fit_terms(spec: Mapping[str, Any], smoothing: Any) -> dict[str, Any]:
    """Fit and describe."""
    model, key = made(spec, smoothing), uuid.uuid4().hex
    keep(key, model)
    return {"key": key, **description(model)}


def keep(key: str, model: Any) -> None:
    """Keep a model of this session."""
    _models[key] = model
    while len(_models) > MOST_KEPT:
        _models.popitem(last=False)


def has_model(key: str) -> dict[str, Any]:
    """Whether the model of a fit is here, so that R need not send its data again."""
    return {"here": key in _models}


def model_of(fit: Mapping[str, Any]) -> Any:
    """The model of a fit, made again where it is not here."""
    key = fit["key"]
    if key not in _models:
        keep(key, made(fit["spec"], fit["sp"]))
    _models.move_to_end(key)
    return _models[key]


def description(model: Any) -> dict[str, Any]:
    """Return everything of a fit that R shows."""
    fitted = model.fitted_
    one_criterion = fitted.variance is None  # else mean and variance are fitted in turn
    return {
        "sp": np.atleast_1d(model.smoothing_parameters_),
        "sp.names": list(model.smoothing_names_),
        "term.names": list(model.term_edf_),
        "term.edf": np.array(list(model.term_edf_.values())),
        "coefficient.names": model.coefficients_.index.tolist(),
        "edf": model.edf_,
        "criterion": model.criterion_,
        "sigma2": model.sigma2_,
        "theta": np.ravel(getattr(fitted.family, "known", [])).tolist() or None,
        "deviance": model.deviance_,
        "r.sq": model.r2_,
        "dev.expl": model.explained_deviance_,
        "t": getattr(model, "t_", None),
        "fitted.values": np.asarray(model.fitted_values_),
        "residuals": np.asarray(model.residuals_),
        "loglik": model.loglik_ if one_criterion else None,
        "df": model.aic_ / 2 + model.loglik_ if one_criterion else None,
        "persons": None if model.persons_ is None else persons_of(model.persons_),
    }


def persons_of(own: Any) -> dict[str, Any]:
    """What a fit says of curves of persons and sites: shares of the variance, and how they were found."""
    table, levels = own.variances, dict.fromkeys(own.names, own.persons.levels)
    if own.sites is not None:
        levels[own.sites.name] = own.sites.known.labels.levels
    return {
        "levels": {
            name: [f"{label:.15g}" if isinstance(label, float) else str(label) for label in labels]
            for name, labels in levels.items()
        },
        "variances": {"level": [str(level) for level in table.index], **frame(table)},
        "icc": own.icc(),
        "icc.noise": own.icc(noise=True),
        "icc.curve": own.icc_curve(),
        "k": int(own.phi.shape[1]),
        "edf": own.edf,
        "successive": own.successive,
        "notes": own.notes(),
    }


def frame(table: pd.DataFrame) -> dict[str, Any]:
    """A table by columns, as R's data frames are."""
    return {str(name): table[name].tolist() for name in table}


# --- using a fit ---


def predict_terms(
    fit: Mapping[str, Any],
    columns: Mapping[str, Any],
    offset: Any,
    t: Any,
    kind: str,
    se: bool,
    errors: str | None,
    level: float | None,
    exclude: Sequence[str] | None = None,
    simultaneous: bool = False,
) -> dict[str, Any]:
    """Predictions of new rows, with standard errors and prediction intervals where asked for, without some terms."""
    model = model_of(fit)
    data, grids = table(columns)
    more: dict[str, Any] = {"grids": grids} | ({} if t is None else {"t": np.atleast_1d(t)})
    out = {called(model, str(name)) for name in exclude or ()}
    if kind == "terms" or out:
        parts = {name: np.asarray(part) for name, part in model.predict(data, type="terms", **more).items()}
    if kind == "terms":
        return {"terms": {name: part for name, part in parts.items() if name not in out}}
    added = {} if offset is None else {"offset": as_given(offset)}
    result: dict[str, Any]
    if kind == "probs":
        result = {"fit": model.predict_proba(data, **more, **added), "classes": [str(one) for one in model.classes_]}
    else:
        result = {"fit": np.asarray(model.predict(data, type=kind, **more, **added))}
    if out:
        link = np.asarray(model.predict(data, type="link", **more, **added)) - sum(parts[name] for name in out)
        return {"fit": link if kind == "link" else model.fitted_.family.mean(link)}
    if se:
        result["se.fit"] = np.asarray(model.predict_se(data, kind=errors, type=kind, **more, **added))
    if level is not None and added:
        raise InputError("prediction intervals are there for models without an offset alone")
    if level is not None:
        whole = {"simultaneous": True} if simultaneous else {}  # numbers have no such argument
        lower, upper = model.predict_interval(data, level, **more, **whole)
        result["lwr"], result["upr"] = np.asarray(lower), np.asarray(upper)
    return result


def called(model: Any, name: str) -> str:
    """Name of a term, by itself or as it stands in the formula."""
    known: tuple[str, ...] = model.term_names_
    return name if name in known else known[place_of(model.fitted_.fit.form, name)]


def answer(
    model: Any,
    read: Callable[[Mapping[str, Any]], tuple[dict[str, Any], dict[str, Any]]],
    *,
    question: str,
    told: Mapping[str, Any],
    tables: Mapping[str, Any],
    rows: Mapping[str, Any],
    t: Any,
    scale: str,
    level: float,
    errors: str | None = None,
) -> dict[str, Any]:
    """What :mod:`fdadp.inference` answers: a table, its title, and a test for each curve."""
    own: dict[str, Any] = {}
    grids: dict[str, Any] = {}
    for name, columns in (tables or {}).items():
        own[name], points = read(columns)
        grids |= points
    more = {"t": np.atleast_1d(t)} if t is not None else {}
    found = getattr(inference, question)(
        model, **told, **own, **more, scale=scale, level=level, kind=errors, grids=grids or None
    )
    shown = found.to_frame()
    if "row" in shown:
        labels = next(iter((rows or {}).values()), None)
        shown["row"] = [str(labels[row]) if labels else row + 1 for row in pd.factorize(shown["row"])[0].tolist()]
    test = found.test()
    return {
        "frame": frame(shown),
        "title": found.title,
        "test": {"what": test.index.tolist(), **frame(test)},
    }


def ask_terms(fit: Mapping[str, Any], **asked: Any) -> dict[str, Any]:
    """A question to an ordinary fit."""
    return answer(model_of(fit), table, **asked)


def coefficient_function(
    fit: Mapping[str, Any], term: str, points: Mapping[str, Any], level: float, errors: str | None, simultaneous: bool
) -> dict[str, Any]:
    """A term's coefficient function on a grid, with a band."""
    at = {name: np.atleast_1d(np.asarray(v)) for name, v in (points or {}).items()}
    return frame(model_of(fit).bands(term, level, simultaneous, at=at, kind=errors))


def covariance_of_coefficients(fit: Mapping[str, Any], errors: str | None) -> dict[str, Any]:
    """Of all coefficients."""
    return {"covariance": model_of(fit).vcov(errors).to_numpy()}


def tests_of_terms(fit: Mapping[str, Any], errors: str | None) -> dict[str, Any]:
    """One row a term."""
    found = model_of(fit).test_terms(errors)
    return {"term": found.index.tolist(), **frame(found)}


def compare_models(fit: Mapping[str, Any], other: Mapping[str, Any], errors: str | None) -> dict[str, Any]:
    """Two nested models."""
    return frame(model_of(fit).anova(model_of(other), errors))


def compare_left_out(fit: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Two models by their errors of curves left out."""
    return frame(model_of(fit).compare(model_of(other)))


def test_of_variance(fit: Mapping[str, Any], term: str, draws: Any, seed: Any) -> dict[str, Any]:
    """The restricted likelihood ratio of a random effect on numbers."""
    found = inference.variance_test(model_of(fit), term, draws=setting(draws), seed=setting(seed))
    return {"statistic": found.statistic, "p": found.p_value}


def coefficient_table(fit: Mapping[str, Any]) -> dict[str, Any]:
    """Coefficients that are numbers, and the notes on grids of curves and on rows of persons."""
    fitted = model_of(fit).fitted_
    names = "name", "estimate", "std. error", "t", "Pr(>|t|)"
    table = zip(*summary_tables.coefficient_table(fitted), strict=True)
    notes = [note for note in summary_tables.notes(fitted) if note.startswith(("Grid of ", "Rows of a person"))]
    return {"table": dict(zip(names, map(list, table), strict=False)), "notes": notes}


def coefficients_of(fit: Mapping[str, Any]) -> dict[str, Any]:
    """All of them, in the order of their covariance."""
    return {"coefficients": model_of(fit).coefficients_.to_numpy()}
