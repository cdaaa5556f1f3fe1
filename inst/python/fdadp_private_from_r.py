"""What R's ``dp_fdadp()`` calls: private models of several terms. Plain values in, plain values out.

R holds no Python object: a fit is the bytes of its saved file. Columns come as they are, entry by entry; what they
hold is not looked at here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import fdadp_terms_from_r
import numpy as np
import pandas as pd

from fdadp import DPAFF, FunctionalRegression, Privacy, ScalarRegression, plan, planner
from fdadp.errors import InputError
from fdadp.privacy.private_entries import numbers

MODELS = {False: FunctionalRegression, True: ScalarRegression}
"""By whether the response is a number."""


def columns_of(columns: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Columns, and grids of those that are curves. Entries that R has as text stay text, missing ones are None."""
    data: dict[str, Any] = {}
    grids: dict[str, Any] = {}
    for name, told in columns.items():
        if told["kind"] == "curves":
            own = np.array(numbers(np.array(told["values"], order="C")))
            own[np.isnan(own)] = np.nan  # R's NA is a signalling one
            data[name] = own
            if told.get("grid") is not None:
                grids[name] = np.asarray(told["grid"], dtype=np.float64)
            if told.get("rows") is not None:
                data[name] = pd.DataFrame(own, index=index_of(told["rows"]))
            continue
        gone = np.atleast_1d(np.asarray(told["missing"], dtype=bool))
        held = np.atleast_1d(np.asarray(told["numbers" if told["numeric"] else "text"])).astype(object)
        data[name] = np.where(gone, None, held)
        if told.get("rows") is not None:
            data[name] = pd.Series(data[name], index=index_of(told["rows"]))
    return data, grids


def index_of(names: Any) -> Any:
    """Names of rows, by which the kernel joins them."""
    return pd.Index([str(name) for name in np.atleast_1d(np.asarray(names)).tolist()], dtype=object)


def public(own: Any) -> Any:
    """A range, or a list of levels."""
    return tuple(own.tolist()) if isinstance(own, np.ndarray) else [str(level) for level in own]


def plan_of_formula(
    formula: str,
    n: int | None,
    bounds: Mapping[str, Any],
    points: Mapping[str, Any] | None,
    accuracy: float | None,
    numbers: Mapping[str, Any] | None,
    importances: Mapping[str, Any] | None,
    curves: Mapping[str, Any] | None,
    **settings: Any,
) -> dict[str, Any]:
    """Forecast of a private fit of several terms."""
    own = {name: public(given) for name, given in dict(bounds).items()}
    said: dict[str, Any] = {"grids": dict(points or {}), "numbers": dict(numbers or {})}
    said |= {"importances": dict(importances or {}), "curves": dict(curves or {})}
    forecast = plan(formula, n, bounds=own, accuracy=accuracy, **said, **settings)
    names = ("n", "epsilon", "delta", "adjacency", "share", "worst_share", "best_share", "error", "cohorts")
    names += ("explained", "coverage", "family", "rate")
    return {name: getattr(forecast, name) for name in names} | {
        "importances": dict(forecast.importances),
        "left_out": list(forecast.left_out),
        "untold": list(forecast.untold),
        "plan": str(forecast.plan),
        "text": str(forecast),
    }


def plan_levels(**asked: Any) -> dict[str, Any]:
    """Forecast of private components of persons and of their curves."""
    forecast = planner.plan_levels(**asked)
    captured = {"level": list(forecast.captured)} | {
        name: [getattr(one, name) for one in forecast.captured.values()] for name in ("mean", "worst", "best", "error")
    }
    return {"captured": captured, "icc_width": forecast.icc_width.mean, "text": str(forecast)}


def plan_mixed(
    formula: str,
    bounds: Mapping[str, Any],
    points: Mapping[str, Any] | None,
    within: Any,
    numbers: Mapping[str, Any] | None,
    importances: Mapping[str, Any] | None,
    **asked: Any,
) -> dict[str, Any]:
    """Forecast of a private mixed model."""
    own = {name: public(given) for name, given in dict(bounds).items()}
    said: dict[str, Any] = {"grids": dict(points or {}), "numbers": dict(numbers or {}), "within": tuple(within or ())}
    said["importances"] = dict(importances or {})
    forecast = planner.plan_mixed(formula, bounds=own, **said, **asked)
    share = forecast.share
    found = {"share": share.mean, "worst_share": share.worst, "best_share": share.best, "text": str(forecast)}
    found |= {"standard_errors": dict(forecast.standard_errors), "icc_width": forecast.icc_width.mean}
    return found | {"cohorts": forecast.cohorts, "untold": list(forecast.untold)}


def plan_survival(**asked: Any) -> dict[str, Any]:
    """Forecast of the limits of a private survival curve."""
    forecast = planner.plan_survival(**asked)
    widths = {
        "time": list(forecast.ends),
        "survival": list(forecast.survival),
        "width": list(forecast.widths),
        "exact_width": list(forecast.exact_widths),
    }
    if forecast.difference_widths:
        widths["difference_width"] = list(forecast.difference_widths)
    return {"widths": widths, "coverage": forecast.coverage, "text": str(forecast)}


def plan_hazards(
    formula: str,
    bounds: Mapping[str, Any],
    points: Mapping[str, Any] | None,
    numbers: Mapping[str, Any] | None,
    importances: Mapping[str, Any] | None,
    curves: Mapping[str, Any] | None,
    **asked: Any,
) -> dict[str, Any]:
    """Forecast of a private regression of times to an event."""
    own = {name: public(given) for name, given in dict(bounds).items()}
    said: dict[str, Any] = {"grids": dict(points or {}), "numbers": dict(numbers or {})}
    said |= {"importances": dict(importances or {}), "curves": dict(curves or {})}
    forecast = planner.plan_hazards(formula, bounds=own, **said, **asked)
    share = forecast.share
    found = {"share": share.mean, "worst_share": share.worst, "best_share": share.best, "text": str(forecast)}
    found |= {"untold": list(forecast.untold), "cohorts": forecast.cohorts}
    return found | {name: getattr(forecast, name).mean for name in ("error", "mean_error", "survival_error")}


def fit_private_terms(spec: Mapping[str, Any], privacy: Mapping[str, Any], groups: Any, path: str) -> dict[str, Any]:
    """Fit, save to `path`, and describe the fit."""
    import fdadp_from_r

    data, grids = columns_of(spec["columns"])
    within = {"within": tuple(spec["within"])} if spec.get("within") else {}
    if within and spec["scalar"]:
        raise InputError("within must be left out where the response is a number")
    model = MODELS[bool(spec["scalar"])](
        spec["formula"],
        family=spec["family"],
        privacy=Privacy(**privacy),
        bounds={name: public(own) for name, own in dict(spec["bounds"] or {}).items()},
        mechanism=DPAFF(allow_useless=bool(spec["allow_useless"])),
        missing=spec["missing"],
        person_rows=spec.get("person_rows"),
        max_rows=spec.get("max_rows"),
        **within,
    )
    model.fit(data, grids=grids, groups=fdadp_from_r.persons(groups))
    model.save(path)
    return {
        "term.names": list(model.term_names_),
        "importances": dict(model.importances_ or {}),
        "notes": list(model.notes_),
        "plan": str(model.plan_),
        "ledger": fdadp_from_r.ledger(model.ledger_),
        "sigma2": float(model.sigma2_),
        "r.sq": float(model.r2_),
        "t": getattr(model, "t_", None),
        "n": float(model.plan_.n),
    }


def model_from(path: str, scalar: bool) -> Any:
    """The fitted model that a file holds."""
    return MODELS[bool(scalar)].load(path)


def new_columns_of(columns: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Columns of new rows, which are not private: entries that are all numbers become numbers."""
    data, grids = columns_of(columns)
    for name, values in data.items():
        if name not in grids and all(v is None or isinstance(v, float) for v in values):
            data[name] = values.astype(np.float64)
    return data, grids


def predict_private_terms(
    path: str, scalar: bool, columns: Mapping[str, Any], t: Any, se: bool, level: float | None
) -> dict[str, Any]:
    """Means of new rows, with standard errors and prediction intervals where asked for."""
    model = model_from(path, scalar)
    data, grids = new_columns_of(columns)
    more: dict[str, Any] = {"grids": grids} | ({} if t is None else {"t": np.atleast_1d(t)})
    result = {"fit": np.asarray(model.predict(data, **more))}
    if se:
        result["se.fit"] = np.asarray(model.predict_se(data, **more))
    if level is not None:
        lower, upper = model.predict_interval(data, level, **more)
        result["lwr"], result["upr"] = np.asarray(lower), np.asarray(upper)
    return result


def ask_private(path: str, scalar: bool, **asked: Any) -> dict[str, Any]:
    """A question to a private fit."""
    return fdadp_terms_from_r.answer(model_from(path, scalar), new_columns_of, **asked)


def coefficient_of_private(path: str, scalar: bool, term: str, level: float) -> dict[str, Any]:
    """A term's coefficient function on a grid, with a band."""
    found = model_from(path, scalar).coef(term, se=True, level=level)
    return {str(name): found[name].tolist() for name in found}


def summary_of_private(path: str, scalar: bool) -> dict[str, Any]:
    """Tables as text."""
    return {"text": str(model_from(path, scalar).summary())}


def sample_of_private(path: str, scalar: bool, n: int, seed: int | None) -> dict[str, Any]:
    """Columns of a synthetic cohort."""
    drawn = model_from(path, scalar).sample(int(n), None if seed is None else int(seed))
    out: dict[str, Any] = {}
    for name in drawn:
        held = getattr(drawn[name], "array", drawn[name])
        curves = getattr(held, "data_matrix", None)
        out[str(name)] = drawn[name].tolist() if curves is None else np.array(curves[..., 0])
    return out
