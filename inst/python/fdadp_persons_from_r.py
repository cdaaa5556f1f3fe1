"""What R's ``mfpca()``, ``survival_regression()`` and ``private_survival()`` call. Plain values in, plain values out.

R holds no Python object: a fit is the bytes of its saved file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import fdadp_private_from_r
import fdadp_terms_from_r
import numpy as np
import pandas as pd

from fdadp import MultilevelFPCA, Privacy, SurvivalRegression
from fdadp.functional import metrics
from fdadp.functional.tables.curve_sample import Curves, as_grid
from fdadp.privacy import Ledger
from fdadp.privacy.private_entries import numbers
from fdadp.summaries import PrivateMultilevelFPCA
from fdadp.summaries import private_survival as survival_counts

SUMMARISED = {"mfpca": MultilevelFPCA, "private_mfpca": PrivateMultilevelFPCA, "survival": SurvivalRegression}
"""Classes of saved fits by R's names of their kinds."""


def matrix(values: Any) -> Any:
    """Rows in memory of their own. R's NA is a signalling NaN, which would make NumPy warn of a gap."""
    own = np.array(numbers(np.array(values, order="C")))
    own[np.isnan(own)] = np.nan
    return own


def ledger_of(entry: Ledger | None) -> dict[str, Any] | None:
    """A ledger as plain data."""
    import fdadp_from_r

    return None if entry is None else fdadp_from_r.ledger(entry)


def summary_of(path: str, kind: str) -> dict[str, Any]:
    """Tables as text."""
    return {"text": str(SUMMARISED[kind].load(path).summary())}


# --- components of persons and of their rows ---


def fit_levels(
    Y: Any,
    t: Any,
    groups: Mapping[str, Any],
    covariates: Any,
    visits: Any,
    settings: Mapping[str, Any],
    privacy: Mapping[str, Any] | None,
    path: str,
) -> dict[str, Any]:
    """Fit, save to `path`, and describe the fit."""
    import fdadp_from_r

    values, given = matrix(Y), {name: v for name, v in settings.items() if v is not None}
    given |= {name: tuple(v) for name, v in given.items() if isinstance(v, np.ndarray | list)}
    grid = as_grid(t, values.shape[1], "argvals")
    ids, curves = fdadp_from_r.persons(groups), Curves(values, grid, gridded=True)
    if privacy is None:
        beside = {"covariates": None if covariates is None else matrix(covariates)}
        beside["visits"] = fdadp_from_r.persons(visits)
        model: Any = MultilevelFPCA(**given).fit(curves, groups=ids, **beside)
    else:
        model = PrivateMultilevelFPCA(privacy=Privacy(**privacy), **given).fit(curves, groups=ids)
    model.save(path)
    by_level = {name: getattr(model, f"{name}_") for name in ("eigenfunctions", "eigenvalues")}
    found = {
        "mu": model.mean_,
        "argvals": model.grid_,
        "efunctions": {level: functions.T for level, functions in by_level["eigenfunctions"].items()},
        "evalues": dict(by_level["eigenvalues"]),
        "pve": dict(model.explained_variance_ratio_),
        "npc": {level: int(count) for level, count in model.n_components_.items()},
        "sigma2": model.noise_variance_,
        "icc": model.icc_,
        "icc.noise": model.icc_with_noise_,
        "coefficients": model.coefficients_.T,
        "ledger": ledger_of(getattr(model, "ledger_", None)),
    }
    if privacy is None:
        return found | {"icc.curve": model.icc_curve_, "k": model.k_}
    return found | {"icc.interval": np.array(model.icc_interval()), "n": model.n_}


def predict_levels(
    path: str, kind: str, Y: Any, t: Any, groups: Mapping[str, Any], covariates: Any, visits: Any
) -> dict[str, Any]:
    """Scores, curves of persons and of rows, and curves with their gaps filled, of rows that are handed over."""
    import fdadp_from_r

    model, values = SUMMARISED[kind].load(path), matrix(Y)
    given: dict[str, Any] = {"groups": fdadp_from_r.persons(groups), "t": t}
    features = np.zeros((len(values), 0))
    if covariates is not None:
        given["covariates"] = features = matrix(covariates)
    if visits is not None:
        given["visits"] = own = fdadp_from_r.persons(visits)
    person, row = model.transform(values, **given)
    codes = pd.factorize(given["groups"])[0]
    if visits is not None:
        features = (own[:, None] == np.asarray(model.visits_)).astype(np.float64)
    means = model.basis_.means(features)
    scores = person.to_numpy()
    of_persons = model.inverse_transform(scores)
    of_rows = means + of_persons[codes] + model.inverse_transform(np.zeros_like(scores)[codes], row) - 2 * model.mean_
    return {
        "persons": [f"{label:.15g}" if isinstance(label, float) else str(label) for label in person.index],
        "person": scores,
        "row": row,
        "curves": of_persons,
        "fit": of_rows,
        "complete": np.where(np.isnan(values), of_rows, values),
    }


# --- times to an event ---


def table_of(columns: Mapping[str, Any], private: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """Columns and grids; of a private fit entries as they are."""
    return fdadp_private_from_r.columns_of(columns) if private else fdadp_terms_from_r.table(columns)


def fit_survival(
    columns: Mapping[str, Any], settings: Mapping[str, Any], groups: Any, privacy: Mapping[str, Any] | None, path: str
) -> dict[str, Any]:
    """Fit, save to `path`, and describe the fit."""
    import fdadp_from_r

    given = dict(settings)
    if privacy is not None:
        bounds = {name: fdadp_private_from_r.public(own) for name, own in (given.pop("bounds") or {}).items()}
        given |= {"privacy": Privacy(**privacy), "bounds": bounds or None}
    data, grids = table_of(columns, privacy is not None)
    model = SurvivalRegression(**given).fit(data, grids=grids, groups=fdadp_from_r.persons(groups))
    model.save(path)
    inner = model.model_
    return {
        "times": model.times_,
        "term.names": list(inner.term_names_),
        "coefficients": inner.coefficients_.to_numpy(),
        "coefficient.names": inner.coefficients_.index.tolist(),
        "edf": inner.edf_,
        "loglik": None if privacy is not None else inner.loglik_,
        "df": None if privacy is not None else inner.aic_ / 2 + inner.loglik_,
        "baseline": fdadp_terms_from_r.frame(model.baseline_hazard()),
        "text": str(model.summary()),
        "ledger": ledger_of(model.ledger_),
    }


def predict_survival(path: str, columns: Mapping[str, Any], kind: str, times: Any) -> dict[str, Any]:
    """Risks, hazards, linear predictors or survival curves of new persons."""
    model = SurvivalRegression.load(path)
    data, grids = fdadp_terms_from_r.table(columns)
    if kind == "survival":
        at = model.times_ if times is None else np.atleast_1d(times)
        return {"fit": np.asarray(model.predict_survival(data, at, grids=grids)), "times": at}
    fit = np.asarray(model.predict(data, type=kind, grids=grids))
    return {"fit": fit, "times": model.times_[1:] if fit.ndim == 2 else None}


def effect_on_survival(path: str, term: str, level: float, at: Mapping[str, Any] | None) -> dict[str, Any]:
    """A term's coefficient function on a grid, with a band."""
    points = {name: np.atleast_1d(np.asarray(v)) for name, v in (at or {}).items()}
    return fdadp_terms_from_r.frame(SurvivalRegression.load(path).model_.coef(term, se=True, level=level, at=points))


def private_survival(
    columns: Mapping[str, Any],
    time: str,
    event: str,
    edges: Any,
    by: Mapping[str, Any] | None,
    groups: Any,
    level: float,
    privacy: Mapping[str, Any],
) -> dict[str, Any]:
    """A private Kaplan-Meier curve: table and ledger."""
    import fdadp_from_r

    data = fdadp_private_from_r.columns_of(columns)[0]
    classes = {name: fdadp_private_from_r.public(own) for name, own in (by or {}).items()}
    found = survival_counts(
        pd.DataFrame(data, columns=list(data)),
        time,
        event,
        edges=np.atleast_1d(edges).tolist(),
        by={name: list(own) for name, own in classes.items()} or None,
        privacy=Privacy(**privacy),
        groups=fdadp_from_r.persons(groups),
        level=level,
    )
    rows = found.frame.index.tolist()
    parts = [("", *row) if len(row) == 2 else row for row in rows]
    frame = found.frame.reset_index(drop=True)
    return {
        "table": {
            "group": [str(part[0]) for part in parts],
            "what": [str(part[1]) for part in parts],
            "time": [float(part[2]) for part in parts],
            **fdadp_terms_from_r.frame(frame[["value", "low", "high", "noise_sd"]]),
        },
        "ledger": ledger_of(found.ledger),
    }


def concordance(time: Any, event: Any, risk: Any, entry: Any = None) -> dict[str, Any]:
    """Share of pairs of persons in the right order."""
    own = [np.asarray(column, dtype=np.float64) for column in (time, event, risk)]
    own += [] if entry is None else [np.asarray(entry, dtype=np.float64)]
    return {"value": metrics.concordance(*own)}
