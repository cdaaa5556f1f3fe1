"""Models of several terms through mgcv, live: ``gam`` on the long form, which is what refund's pffr and pfr call.

Compared are the same quantities as for recorded fits (:mod:`r_bridge.refund_case`), but for coefficient functions, and
for the score at R's smoothing parameters: mgcv's differs by a constant wherever its constrained coordinates are not
orthonormal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fdadp import FunctionalRegression, ScalarRegression, terms
from fdadp._common.argument_checks import one_of
from fdadp._common.typing import ArrayLike
from fdadp.errors import InputError
from fdadp.regression.reading.table_columns import columns_of
from r_bridge._rpy2 import require
from r_bridge.difference_report import Report
from r_bridge.gam_by_formula import fit_gam
from r_bridge.refund_case import TermCase, differences
from r_bridge.to_mgcv import InMgcv

TOLERANCES = dict.fromkeys(("fitted", "predicted", "standard errors", "edf", "residual variance"), 1e-8)
TOLERANCES["fitted, our optimum"] = 1e-3
"""mgcv's and our search end where the score is flat."""

FAMILIES = {"gaussian": "gaussian()", "binomial": "binomial()", "poisson": "poisson()", "gamma": 'Gamma("log")'}


def crosscheck_terms(
    model: Any,
    data: Mapping[str, Any],
    *,
    grids: Mapping[str, ArrayLike] | None = None,
    new: Mapping[str, Any] | None = None,
    name: str | None = None,
    factor: float = 1.0,
) -> Report:
    """Fit the same model with fdadp and, through R, with mgcv; compare.

    Parameters
    ----------
    model : FunctionalRegression or ScalarRegression
        Of term objects, with a constant; its family is used.
    data : mapping
        Columns: curves (n, S), numbers and labels (n,), and the response.
    grids : mapping, optional
        Grids of the curves; default even on [0, 1].
    new : mapping, optional
        Rows to predict.
    name : str, optional
        Of the model in the report.
    factor : float
        Multiplies every tolerance.

    Raises
    ------
    RBridgeUnavailable
        No R, rpy2 or mgcv.
    InputError
        A formula, or a term or setting that mgcv is not compared for here.

    Examples
    --------
    >>> from fdadp import simulate_affr
    >>> data = simulate_affr(scenario=1, n=60, seed=0)
    >>> print(crosscheck_terms("Y ~ ff(X)", {"X": data.X, "Y": data.Y}))  # doctest: +SKIP
    """
    require("mgcv")  # before any work
    if isinstance(model.formula, str) or not model.intercept:
        raise InputError(
            f"formula must have term objects and a constant to be compared with mgcv, got {model.formula!r}"
        )
    scalar = isinstance(model, ScalarRegression)
    response = model.response or ("y" if scalar else "Y")
    y = np.asarray(data[response], dtype=float)
    given = {column: np.linspace(0, 1, np.shape(v)[1]) for column, v in data.items() if np.ndim(v) == 2}
    given |= {column: np.ravel(np.asarray(grid, dtype=float)) for column, grid in (grids or {}).items()}
    covariates = {column: values for column, values in data.items() if column != response}
    t = None if scalar else given[response]
    theirs = InMgcv.of(model.formula, covariates, given, t)
    newcomers = None if new is None else InMgcv.of(model.formula, new, given, t, covariates).columns
    fit = fit_gam(theirs.formula, {**theirs.columns, "y": y.ravel()}, newcomers, family=FAMILIES[model.family])
    output = {part: v.reshape(-1, t.size) if t is not None and _by_row(part) else v for part, v in fit.items()}
    case = TermCase(
        record=name or theirs.formula,
        call=theirs.formula,
        terms=lambda _: model.formula,
        columns={column: column for column in covariates},
        grids={("Y" if column == response else column): f"grid of {column}" for column in given},
        scalar=scalar,
        response=response,
        settings={"family": model.family},
        new=lambda _: new or {},
        only_near=True,
        tolerances=TOLERANCES,
        left_out={"score": "mgcv's constrained coordinates change it by a constant"},
    )
    record = {"input": {**data, **{f"grid of {column}": grid for column, grid in given.items()}}, "output": output}
    report = Report(f"fdadp against mgcv, live, {len(y)} rows: {theirs.formula}")
    found = differences(case, record, report.seconds)
    report.add(replace(d, tolerance=d.tolerance * factor) for d in found)
    report.skipped.update({f"{case.name}, {what}": why for what, why in case.left_out.items()})
    return report


def crosscheck_cohort(models: Sequence[str] = (), *, n: int = 60, seed: int = 0, factor: float = 1.0) -> Report:
    """Compare models of a simulated cohort, all or those named, with mgcv."""
    data, grids = cohort(n, seed)
    report = Report(f"fdadp against mgcv, live: models of several terms on {n} simulated rows")
    made = models_of_cohort()
    for name in models or COHORT:
        model = made[one_of(name, "model", COHORT)]
        response = model.response or ("y" if isinstance(model, ScalarRegression) else "Y")
        columns = {*columns_of(model.formula), response}
        rows = {column: values for column, values in data.items() if column in columns}
        own = {column: grid for column, grid in grids.items() if column in columns}
        new = {column: values[:5] for column, values in rows.items() if column != response}
        one = crosscheck_terms(model, rows, grids=own, new=new, name=name, factor=factor)
        report.add(one.differences).skipped.update(one.skipped)
        report.seconds.update(one.seconds)
    return report


def _by_row(part: str) -> bool:
    return part.startswith(("fitted", "predicted"))


COHORT = ("ff", "sff", "concurrent", "s(z)", "x", "factor", "re", "poisson", "binomial", "lf", "af")
"""Models of :func:`models_of_cohort`."""


def models_of_cohort() -> dict[str, Any]:
    """Models of the simulated cohort by name."""
    with_x = [terms.ff("X"), terms.linear("x")]
    of_curves = {
        "ff": [terms.ff("X")],
        "sff": [terms.sff("X", k=(5, 4, 4))],
        "concurrent": [terms.concurrent("Xt")],
        "s(z)": [terms.s("z")],
        "x": [terms.linear("x"), terms.linear("z", constant=True)],
        "factor": [terms.factor("g")],
        "re": [terms.re("g"), terms.linear("x")],
    }
    found: dict[str, Any] = {name: FunctionalRegression(specs) for name, specs in of_curves.items()}
    for family, response in (("poisson", "counts"), ("binomial", "sick")):
        found[family] = FunctionalRegression(with_x, response=response, family=family)
    found["lf"] = ScalarRegression([terms.lf("X", k=10), terms.linear("x")])
    found["af"] = ScalarRegression([terms.af("X", k=(5, 5))])
    return found


def cohort(n: int = 60, seed: int = 0) -> tuple[dict[str, Any], dict[str, Any]]:
    """Simulated rows with curves, numbers and labels, and responses that are curves, counts, 0 or 1, and a number.

    Returns
    -------
    data, grids : dict
    """
    draw = np.random.default_rng(seed)
    s, t = np.linspace(0, 1, 16), np.linspace(0, 1, 22)
    waves = [np.sin((k + 1) * np.pi * np.append(s, t)) / (k + 1) for k in range(4)]
    curves = draw.normal(size=(n, 1)) + draw.normal(size=(n, 4)) @ np.array(waves)
    x, z, g = draw.normal(size=n), draw.uniform(-2, 2, n), draw.choice(list("abcd"), n)
    surface = 2 * np.sin(np.pi * s)[:, None] * np.cos(np.pi * t)
    effect = curves[:, : s.size] @ surface / s.size + 0.5 * x[:, None] * t + np.sin(z)[:, None] * (1 - t)
    effect += 0.5 * (g == "b")[:, None] * np.cos(3 * t)
    data = {"X": curves[:, : s.size], "Xt": curves[:, s.size :], "x": x, "z": z, "g": g}
    data["Y"] = effect + 0.3 * draw.normal(size=effect.shape)
    data["counts"] = draw.poisson(np.exp(effect / 2)).astype(float)
    data["sick"] = (draw.uniform(size=effect.shape) < 1 / (1 + np.exp(-effect))).astype(float)
    data["y"] = data["Y"].mean(axis=1)
    return data, {"X": s, "Xt": t, "Y": t, "counts": t, "sick": t}
