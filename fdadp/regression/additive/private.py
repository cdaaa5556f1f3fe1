"""Private fits of the additive model: what is public of them, the release, the plan."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp._common.threads import one_blas_thread
from fdadp._common.typing import ArrayLike, CurveData
from fdadp.errors import InputError
from fdadp.functional.gaps import GAPS
from fdadp.functional.tables.sample import Curves, Kind, as_grid, names_of
from fdadp.privacy.boundary import table
from fdadp.private.advice import advise
from fdadp.private.private_fitted import as_surface
from fdadp.private.public.inputs import PrivateChunks, check_groups, chunks_of, private_curves
from fdadp.private.release.fit import describe_grid, spend
from fdadp.private.release.mechanisms import EndToEnd, mechanism_of
from fdadp.regression.additive.fitted import FittedSurface, check_saveable
from fdadp.regression.private.chunks import JoinedTables
from fdadp.regression.reading.completion import Completion
from fdadp.regression.reading.joined import joined_labels, opened_columns, private_rows
from fdadp.regression.reading.training import private_law

if TYPE_CHECKING:
    from fdadp.privacy.noise.sources import Noise
    from fdadp.private.plan.design import PrivateDesign
    from fdadp.regression.additive.estimator import AdditiveFunctionOnFunction


def fit_private(
    model: AdditiveFunctionOnFunction,
    X: CurveData,
    Y: CurveData,
    s: ArrayLike | None = None,
    t: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    *,
    by: str | None = None,
    noise: Noise | None = None,
) -> FittedSurface:
    """Fit from noisy releases; only shapes and grids of the curves are looked at here. `noise` is for audits."""

    assert model.privacy is not None
    X, Y = opened_columns({"X": X, "Y": Y}).values()
    inputs = {"X": X, "Y": Y} | ({} if groups is None or isinstance(groups, str) else {"groups": groups})
    labels = joined_labels(by, inputs)
    empty = labels is not None  # then the number of rows is nobody's business
    x, y = (
        private_curves(curves, grid, name, empty=empty, streamed=True)
        for curves, grid, name in ((X, s, "X"), (Y, t, "Y"))
    )
    chunks = None if labels is not None else chunks_of({"X": X, "Y": Y}, groups)
    data: Any
    if chunks is not None:
        data = PrivateChunks(chunks[0], {"X": x.grid, "Y": y.grid}, groups=chunks[1])
        groups = data.groups
    else:
        if labels is None and len(x) != len(y):
            raise InputError("X and Y must hold the same number of curves")
        if labels is None and groups is not None:
            check_groups(groups, len(x))
        tables = [(name, table(own.values)) for name, own in (("X", x), ("Y", y))]
        data, groups = private_rows(labels, tables, groups, model.privacy, inputs)
    check_saveable(model, y.columns)
    ranges = model._public_ranges()
    model.privacy.hold((name, ranges[of]) for of, data in (("X", X), ("Y", Y)) for name in names_of(data, of))
    return _spent(model, data, groups, x, y, noise)


def fit_private_chunks(
    model: AdditiveFunctionOnFunction,
    chunks: Any,
    s: ArrayLike | None,
    t: ArrayLike | None,
    groups: ArrayLike | bool | None,
    kind: Kind | None,
) -> FittedSurface:
    """Fit from noisy releases about chunks, which nothing but the kernel reads."""
    assert model.privacy is not None
    if s is None or t is None:
        raise InputError(
            "s and t must be the grids of X and Y when fitting privately from chunks, "
            f"got {'s' if s is None else 't'}=None: chunks are not looked at to find them"
        )
    x_grid, y_grid = as_grid(s, np.size(s), "s"), as_grid(t, np.size(t), "t")
    labels: Any = t if hasattr(t, "to_numpy") else None
    grids, columns = {"X": x_grid, "Y": y_grid}, None
    data: Any
    if isinstance(chunks, JoinedTables):
        data, groups, kind = chunks.curves(grids), None, "array"
    else:
        data = PrivateChunks(chunks, grids, groups=groups, kind=kind or "array", columns=labels)
        groups, kind, columns = data.groups, data.kind, data.columns
    check_saveable(model, columns)
    x, y = (Curves(np.empty((0, grid.size)), grid) for grid in (x_grid, y_grid))
    return _spent(model, data, groups, x, replace(y, kind=kind, columns=columns), None)


def _spent(
    model: AdditiveFunctionOnFunction, data: Any, groups: Any, x: Curves, y: Curves, noise: Noise | None
) -> FittedSurface:
    """Release the model of curves, of which only what is public was checked."""
    mechanism, bounds = mechanism_of(model.mechanism), model._public_ranges()
    assert model.privacy is not None and isinstance(mechanism, EndToEnd)
    law = private_law(model.person_rows, model.max_rows)
    for name in ("anchor", "errors_by_record"):
        if getattr(mechanism, name, None):
            what = "prior='persistence'" if name == "anchor" else name
            raise InputError(f"{what} is there for FunctionalRegression and ScalarRegression")
    prior = mechanism.public_prior
    public = {
        "bounds of X": bounds["X"],
        "bounds of Y": bounds["Y"],
        "grid of X": describe_grid(x.grid),
        "grid of Y": describe_grid(y.grid),
        "prior": prior.describe(),
        "gaps of X": GAPS[model._gaps] + ", within each row",
        "gaps of Y": "a row counts where it was observed",
    }

    def design() -> PrivateDesign:
        return prior.design(x.grid, y.grid, bounds=bounds["X"], missing=model._gaps)

    spent = spend(model, data, groups, design, bounds["Y"], model.privacy, mechanism, public, noise=noise, law=law)
    with one_blas_thread():
        found = as_surface(spent.fit, spent.design, spent.plan)
    warned, notes = advise(spent.fit, spent.plan, spent.rows, found.r2)
    ledger = spent.cohort.ledger
    guarantee = replace(model.privacy) if ledger.private else None
    return FittedSurface.of(
        replace(found, notes=warned + notes, ledger=ledger, privacy=guarantee),
        Completion({"X": model._gaps}, {}, {}, {}, within_rows=True),  # of new curves, as of the training curves
        x,
        y,
        fitted_with={"privacy": guarantee, "bounds": bounds, "mechanism": model.mechanism},
        moments=spent.statistic,
        warned=warned,
    )
