"""What the R package calls. Plain values in, plain values out; errors and warnings travel as data.

R holds no Python object: a fit is the bytes of its saved file, and each function here reads that file again.
Matrices arrive in R's column order and as views of R's memory; they are copied to rows before anything reads them.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import fdadp_persons_from_r
import fdadp_private_from_r
import fdadp_study_from_r
import fdadp_terms_from_r
import numpy as np
import pandas as pd

import fdadp
from fdadp import FPCA, AdditiveFunctionOnFunction, Privacy
from fdadp._common.calling_language import door
from fdadp.errors import FdadpError, FdadpWarning, InputError
from fdadp.functional.tables.curve_sample import Curves, as_grid
from fdadp.functional.tables.grid_from_labels import axis_of
from fdadp.functional.tables.row_and_grid_labels import same_rows
from fdadp.privacy import Ledger
from fdadp.privacy.private_entries import numbers
from fdadp.private.release.mechanisms import SHORT, Mechanism, mechanism_of
from fdadp.published import PublishedNoise

QUIET = (DeprecationWarning, PendingDeprecationWarning, FutureWarning, ImportWarning, ResourceWarning)


def run(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Call a function of this module; return its value, or its error, and its warnings."""
    others = (fdadp_private_from_r, fdadp_study_from_r, fdadp_terms_from_r, fdadp_persons_from_r)
    function: Callable[..., dict[str, Any]] = globals().get(name) or next(
        getattr(module, name) for module in others if hasattr(module, name)
    )
    result: dict[str, Any] = {"value": None, "error": None}
    with door("r"), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for category in QUIET:
            warnings.simplefilter("ignore", category)
        try:
            result["value"] = function(**(arguments or {}))  # R's empty list is no mapping
        except Exception as exc:
            result["error"] = condition(exc, FdadpError)
    said = {(type(w.message), str(w.message)): w.message for w in caught}
    result["warnings"] = [condition(message, FdadpWarning) for message in said.values()]
    return result


def condition(exc: Any, base: type) -> dict[str, Any]:
    """Text and classes of an error or a warning, the classes as R spells them: ``InputError`` is ``input_error``."""
    names = [c.__name__ for c in type(exc).__mro__ if issubclass(c, base) and c is not base]
    if isinstance(exc, base):
        return {
            "text": in_words_of_r(counted_from_one(str(exc))),
            "classes": [re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower() for name in names],
        }
    kind = "error" if base is FdadpError else "warning"
    if isinstance(exc, OSError) and exc.filename:
        return {"text": f"{exc.strerror}: {exc.filename}", "classes": [f"python_{kind}"]}
    return {"text": f"{type(exc).__name__}: {exc}", "classes": [f"python_{kind}"]}


def counted_from_one(text: str) -> str:
    """Numbers of curves, rows and positions as R counts them."""
    return re.sub(r"\b(curve|row|position) (\d+)\b", lambda m: f"{m[1]} {int(m[2]) + 1}", text)


def in_words_of_r(text: str) -> str:
    """Constants as R has them."""
    words = {"None": "NULL", "True": "TRUE", "False": "FALSE"}
    return re.sub(r"\b(got|be|is|or) (None|True|False)\b", lambda m: f"{m[1]} {words[m[2]]}", text)


def about(probe: Any) -> dict[str, Any]:
    """Versions, and whether R's matrices arrive as what they are."""
    return {"fdadp": fdadp.__version__, "numpy": np.__version__, "matrices": np.shape(probe) == (2, 3)}


# --- fits ---


def fit(
    X: Any,
    Y: Any,
    s: Any,
    t: Any,
    path: str,
    settings: Mapping[str, Any],
    privacy: Mapping[str, Any] | None = None,
    groups: Any = None,
    labels: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Fit, save to `path`, and describe the fit. `labels` are names of rows, by which a private fit joins them."""
    x, y = rows(X), rows(Y)
    if privacy is None:
        compare_rows(labels)
    else:
        settings = {**settings, "privacy": Privacy(**privacy), "mechanism": mechanism(**settings["mechanism"])}
        x, y = labelled("X", x, s, labels), labelled("Y", y, t, labels)
    model = AdditiveFunctionOnFunction(**settings)
    model.fit(x, y, s=s, t=t, groups=persons(groups))
    model.save(path)
    return describe(model)


def labelled(name: str, values: Any, grid: Any, labels: Mapping[str, Any] | None) -> Any:
    """Curves with the names of their rows, where they have some."""
    own = (labels or {}).get(name)
    if not own:
        return values
    return Curves(
        values, as_grid(grid, values.shape[1], f"grid of {name}"), index=row_names(own["names"]), gridded=True
    )


def mechanism(name: str, allow_useless: bool, sensitivity: str) -> Mechanism:
    """Mechanism with its settings, by the name that R knows it by."""
    if name == PublishedNoise.name:
        return PublishedNoise(sensitivity=sensitivity)
    return SHORT[mechanism_of(name).name](allow_useless=allow_useless)


def axis(labels: Any, name: str) -> dict[str, Any]:
    """Grid that column labels give, or none."""
    found = axis_of(pd.Index([str(label) for label in np.asarray(labels)], dtype=object), name)
    return {"points": None} if found is None else {"points": found.points, "backwards": found.backwards}


def compare_rows(labels: Mapping[str, Any] | None, *, frame: bool = False) -> None:
    """Refuse tables whose rows have other names; numbers that R counted say nothing against text.

    The first may be the data `frame` that holds the others.
    """
    given = {name: own for name, own in (labels or {}).items() if own}
    indices = {name: row_names(own["names"]) for name, own in given.items()}
    text = any(index.inferred_type == "string" for index in indices.values())
    shown = {name: index for name, index in indices.items() if not (given[name]["counted"] and text)}
    try:
        same_rows(**{name: pd.Series(0.0, index=index) for name, index in shown.items()})
    except InputError as exc:
        told = str(exc).split(" Put them in one order")[0]
        first, second = told.split(" must ")[0].split(" and ")
        if frame:
            second = f"data${second}"
        names = "row.names(data)" if first == "data" else f"rownames({'data$' * frame}{first})"
        raise InputError(
            f"{told} Align them, as by {second}[{names}, ]; or, if rows belong together as they stand, "
            f"drop the names: rownames({second}) <- NULL"
        ) from None


def compare_names(labels: Mapping[str, Any], *, frame: bool = False) -> dict[str, Any]:
    """Refuse columns whose rows have other names, where some have none and all are taken by position."""
    compare_rows({name: {"names": own, "counted": False} for name, own in labels.items()}, frame=frame)
    return {}


def joined_names(labels: Mapping[str, Any], primary: str, every: bool = False) -> dict[str, Any]:
    """Rows of each column, from 0, that belong to the records, the rows of the first; and what was joined, in words."""
    from fdadp.regression.reading.label_joins import aligned

    inputs = {name: pd.Series(np.arange(len(own)), index=row_names(own)) for name, own in labels.items()}
    found, said = aligned("label", inputs, primary, every=every)
    return {"rows": {name: own.to_numpy() for name, own in found.items()}, "said": said}


def row_names(names: Any) -> Any:
    """Names as an index, whole numbers as such."""
    texts = [str(name) for name in np.atleast_1d(np.asarray(names)).tolist()]
    return pd.Index([int(t) for t in texts]) if all(t.isdigit() for t in texts) else pd.Index(texts, dtype=object)


def rows(values: Any) -> Any:
    """Own memory, one row after the other; every entry is treated alike, whatever it is.

    R's NA is a signalling NaN: arithmetic with it makes NumPy warn, which would tell of a gap in a private fit.
    """
    copy = np.array(numbers(np.array(values, order="C")))
    copy[np.isnan(copy)] = np.nan
    return copy


def persons(groups: Mapping[str, Any] | None) -> Any:
    """Ids of persons, row by row; a missing one is None. Numbers and text are told apart by fdadp, entry by entry."""
    if groups is None:
        return None
    ids, missing = np.asarray(groups["ids"]), np.asarray(groups["missing"], dtype=bool)
    return np.where(missing, None, ids.astype(object))


def describe(model: AdditiveFunctionOnFunction) -> dict[str, Any]:
    """Return everything of a fit that R shows, functions of t as columns."""
    return {
        "coefficients": model.coef_,
        "sp": model.smoothing_parameters_,
        "edf": model.edf_,
        "criterion": model.criterion_,
        "efunctions": model.eigenfunctions_.T,
        "evalues": model.eigenvalues_,
        "pve": model.explained_variance_ratio_,
        "mu": model.mean_,
        "sigma2": model.noise_variance_,
        "residual.variance": model.residual_variance_,
        "r.sq": model.r2_,
        "n": model.n_curves_,
        "s": model.s_,
        "t": model.t_,
        "x.range": np.asarray(model.x_range_),
        "private": model.privacy_ is not None,
        "adjacency": model.privacy_.stated_adjacency if model.privacy_ else None,
        "ledger": None if model.ledger_ is None else ledger(model.ledger_),
        "plan": None if model.plan_ is None else str(model.plan_),
    }


def ledger(entry: Ledger) -> dict[str, Any]:
    """Return a ledger as plain data; releases by column."""
    names = ("name", "size", "noise", "scale", "sensitivity", "epsilon", "mu", "rho", "share", "sd", "clip", "norm")
    return {
        "headline": entry.headline,
        "mechanism": entry.mechanism,
        "private": entry.private,
        "for.release": entry.for_release,
        "epsilon": entry.epsilon,
        "delta": entry.delta,
        "mu": entry.mu,
        "curve": entry.curve,
        "statement": entry.statement,
        "releases": {name: column([getattr(r, name) for r in entry.releases]) for name in (*names, "secure")},
        "unnoised": list(entry.unnoised),
        "details": {str(k): str(v) for k, v in entry.details.items()},
        "text": str(entry),
        "json": entry.to_json(),
    }


def column(values: Sequence[Any]) -> list[Any]:
    """Return a column of a table, with NaN where there is no number."""
    return [float("nan") if v is None else v for v in values]


# --- using a fit ---


def predict(path: str, X: Any, t: Any, s: Any, se: bool, level: float | None) -> dict[str, Any]:
    """Predicted curves, with standard errors and limits of prediction intervals where asked for."""
    model, new = AdditiveFunctionOnFunction.load(path), rows(X)
    result = {"fit": model.predict(new, t=t, s=s)}
    if se:
        result["se.fit"] = model.predict_se(new, t=t, s=s)
    if level is not None:
        result["lwr"], result["upr"] = model.predict_interval(new, level=level, t=t, s=s)
    return result


def surface(path: str, x: Any, s: Any, t: Any, se: bool) -> dict[str, Any]:
    """F on a product grid, with standard errors where asked for."""
    model = AdditiveFunctionOnFunction.load(path)
    found = {"fit": model.surface(x, s, t)}
    return found | {"se.fit": model.surface_se(x, s, t)} if se else found


def summary(path: str) -> dict[str, Any]:
    """Tables as text."""
    return {"text": str(AdditiveFunctionOnFunction.load(path).summary())}


# --- the rest ---


def principal_components(Y: Any, t: Any, settings: Mapping[str, Any], Y_pred: Any = None) -> dict[str, Any]:
    """Eigenbasis of curves, and the scores of these or of other curves."""
    values = rows(Y)
    odd = [name for name in settings if name not in FPCA().get_params()]
    if odd:
        raise InputError(f"unused argument: {', '.join(odd)}")
    fpca = FPCA(**settings).fit(values, t=t)
    scores = fpca.transform(values if Y_pred is None else rows(Y_pred))
    return {
        "mu": fpca.mean_,
        "efunctions": fpca.eigenfunctions_.T,
        "evalues": fpca.eigenvalues_,
        "pve": fpca.explained_variance_ratio_,
        "sigma2": fpca.noise_variance_,
        "argvals": fpca.grid_,
        "scores": scores,
        "Yhat": fpca.inverse_transform(scores),
    }


def plan(
    n: int | None,
    epsilon: float,
    delta: float | None,
    accuracy: float | None,
    adjacency: str | None,
) -> dict[str, Any]:
    """Forecast of a private fit."""
    forecast = fdadp.plan(None, n, epsilon, delta, accuracy=accuracy, adjacency=adjacency)
    names = ("n", "epsilon", "delta", "adjacency", "share", "rmspe_ratio", "width_ratio", "coverage", "accuracy")
    result = {name: getattr(forecast, name) for name in (*names, "reached", "smallest_n", "smallest_epsilon")}
    for name in ("by_n", "by_epsilon"):
        curve = getattr(forecast, name)
        result[name] = {name[3:]: [at for at, _ in curve]} | {
            key: [getattr(outcome, key) for _, outcome in curve] for key in ("share", "rmspe_ratio", "width_ratio")
        }
    return result | {"text": str(forecast)}


def rmspe(Y: Any, Y_hat: Any, labels: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Root mean squared prediction error."""
    compare_rows(labels)
    return {"value": fdadp.rmspe(rows(Y), rows(Y_hat))}


def coverage(Y: Any, lower: Any, upper: Any, labels: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Share of values between limits."""
    compare_rows(labels)
    return {"value": fdadp.coverage(rows(Y), rows(lower), rows(upper))}


def canadian_weather() -> dict[str, Any]:
    """Return the bundled data."""
    weather = fdadp.load_canadian_weather()
    return {
        "X": weather.X.data_matrix[..., 0],
        "Y": weather.Y.data_matrix[..., 0],
        "s": weather.X.grid_points[0],
        "t": weather.Y.grid_points[0],
        "stations": {str(k): v.tolist() for k, v in weather.stations.items()},
    }


def write_people(path: str, n: int, seed: int) -> dict[str, Any]:
    """A file of simulated patients."""
    return {"path": str(fdadp.datasets.write_people(path, n, seed))}


def simulate_affr(scenario: int, n: int, seed: int, n_points: int) -> dict[str, Any]:
    """Curves of a known model."""
    sim = fdadp.simulate_affr(scenario, n, seed, n_points=n_points)
    return {
        "X": sim.X.data_matrix[..., 0],
        "Y": sim.Y.data_matrix[..., 0],
        "s": sim.s,
        "t": sim.t,
        "mean_function": sim.mean_function,
    }
