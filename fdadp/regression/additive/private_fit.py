"""Private fits of the additive model: those of a regression on one term, ``sff(X)``, of which the surface is kept."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp._common.threads import one_blas_thread
from fdadp._common.typing import ArrayLike, CurveData
from fdadp.errors import InputError
from fdadp.functional.tables.curve_sample import Curves, Kind, as_grid, names_of
from fdadp.private.input_advice import advise
from fdadp.private.model_from_releases import as_surface
from fdadp.private.public.curve_shapes import PrivateChunks, chunks_of, private_curves
from fdadp.private.release.plan_and_spend import spend
from fdadp.regression.additive.fitted_surface import FittedSurface, check_saveable
from fdadp.regression.model_settings import ModelSettings
from fdadp.regression.private.chunked_tables import DeclaredTable, JoinedTables
from fdadp.regression.private.fit import Prepared, PrivateSettings, prepared
from fdadp.regression.private.private_table import PrivateTable
from fdadp.regression.reading.label_joins import joined_labels, opened_columns, refuse_several
from fdadp.regression.reading.missing_entries import Completion
from fdadp.terms.curves.functional_additive import FunctionalAdditive

if TYPE_CHECKING:
    from fdadp.regression.additive.estimator import AdditiveFunctionOnFunction


def settings_of(model: AdditiveFunctionOnFunction) -> PrivateSettings:
    """The settings of the same model as a regression on a term; sizes and smoothing are the public plan's."""
    assert model.privacy is not None
    for name in ("anchor", "errors_by_record"):
        if getattr(model.mechanism, name, None):
            what = "prior='persistence'" if name == "anchor" else name
            raise InputError(f"{what} is there for FunctionalRegression and ScalarRegression")
    return PrivateSettings(
        model=ModelSettings(
            formula=(FunctionalAdditive("X"),),
            missing=model.missing,
            person_rows=model.person_rows,
            max_rows=model.max_rows,
            private=True,
        ),
        privacy=model.privacy,
        bounds=model._public_ranges(),
        mechanism=model.mechanism,
        only=None,
    )


def fit_private(
    model: AdditiveFunctionOnFunction,
    X: CurveData,
    Y: CurveData,
    s: ArrayLike | None = None,
    t: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    *,
    by: str | None = None,
) -> FittedSurface:
    """Fit from noisy releases; only shapes and grids of the curves are looked at here."""
    private = settings_of(model)
    given = opened_columns({"X": X, "Y": Y})
    own = given if groups is None or isinstance(groups, str) else {**given, "groups": groups}
    labels = joined_labels(by, own)
    if labels is None and isinstance(groups, str):
        raise InputError(f"groups must have one entry per curve where rows have no labels, got {groups!r}")
    grids = {name: grid for name, grid in (("X", s), ("Y", t)) if grid is not None}
    table = PrivateTable(given, grids, private.bounds)
    x = private_curves(given["X"], s, "X", empty=labels is not None, streamed=True)
    found = prepared(private, table)
    assert found.response is not None
    chunks = chunks_of(given, groups) if labels is None else None
    values: Any
    if chunks is None:
        entries = tuple(found.reading.given.values())
        values, groups = table.handed(entries, groups, "Y", privacy=private.privacy, by=by)
        refuse_several(values, model.max_rows)
    else:
        values = PrivateChunks(chunks[0], found.reading.axes | {"Y": found.response.grid}, groups=chunks[1])
        groups = values.groups
    check_saveable(model, found.response.columns)
    private.privacy.hold((name, private.bounds[of]) for of, data in given.items() for name in names_of(data, of))
    return _fitted(model, private, found, values, groups, x, found.response)


def fit_private_chunks(
    model: AdditiveFunctionOnFunction,
    chunks: Any,
    s: ArrayLike | None,
    t: ArrayLike | None,
    groups: ArrayLike | bool | None,
    kind: Kind | None,
) -> FittedSurface:
    """Fit from noisy releases about chunks, which nothing but the kernel reads."""
    if s is None or t is None:
        raise InputError(
            "s and t must be the grids of X and Y when fitting privately from chunks, "
            f"got {'s' if s is None else 't'}=None: chunks are not looked at to find them"
        )
    grids = {"X": as_grid(s, np.size(s), "s"), "Y": as_grid(t, np.size(t), "t")}
    private = settings_of(model)
    table = DeclaredTable(chunks if isinstance(chunks, JoinedTables) else [], grids, private.bounds)
    found = prepared(private, table)
    values: Any
    columns = None
    if isinstance(chunks, JoinedTables):
        entries, kind = tuple(found.reading.given.values()), "array"
        values, groups = table.handed(entries, None, "Y", privacy=private.privacy)
    else:
        labels: Any = t if hasattr(t, "to_numpy") else None
        values = PrivateChunks(chunks, grids, groups=groups, kind=kind or "array", columns=labels)
        groups, kind, columns = values.groups, values.kind, values.columns
    check_saveable(model, columns)
    x, y = (Curves(np.empty((0, grid.size)), grid) for grid in grids.values())
    return _fitted(model, private, found, values, groups, x, replace(y, kind=kind, columns=columns))


def _fitted(
    model: AdditiveFunctionOnFunction,
    private: PrivateSettings,
    found: Prepared,
    values: Any,
    groups: Any,
    x: Curves,
    y: Curves,
) -> FittedSurface:
    """Release the model; of curves only what is public was checked."""
    spent = spend(model, values, groups, **found.spending(private.privacy), noise=model._noise)
    with one_blas_thread():
        surface = as_surface(spent.fit, spent.design, spent.plan)
    warned, notes = advise(spent.fit, spent.plan, spent.rows, surface.r2)
    ledger = spent.cohort.ledger
    guarantee = replace(private.privacy) if ledger.private else None
    return FittedSurface.of(
        replace(surface, notes=warned + notes, ledger=ledger, privacy=guarantee),
        Completion({"X": model._gaps}, {}, {}, {}, within_rows=True),  # of new curves, as of the training curves
        x,
        y,
        fitted_with={"privacy": guarantee, "bounds": private.bounds, "mechanism": model.mechanism},
        moments=spent.statistic,
        warned=warned,
    )
