"""Private fits of models of many terms: their plan, the fit, and the fitted model that releases make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fdadp._common.checks import whole
from fdadp._common.door import warn
from fdadp._common.promised import promised
from fdadp._common.threads import one_blas_thread
from fdadp.errors import InputError, PublicInputWarning
from fdadp.functional.containers.open import opened_table
from fdadp.functional.containers.source_table import OpenedTable
from fdadp.functional.tables.records import Records
from fdadp.functional.tables.sample import Curves
from fdadp.privacy import Privacy
from fdadp.private.advice import advise, beyond_scale, describe_ranges
from fdadp.private.private_fitted import as_terms, importances, released_variance, unexplained_variance
from fdadp.private.release.fit import planned, refuse_unaffordable, spend
from fdadp.regression.fitted.errors import CoefficientErrors
from fdadp.regression.fitted.fitted import Fitted, FittedResponse, Released
from fdadp.regression.private.chunks import DeclaredTable
from fdadp.regression.private.prepared import Prepared, PrivateSettings, prepared
from fdadp.regression.private.read import PrivateColumns
from fdadp.regression.private.table import PrivateTable
from fdadp.regression.reading.training import along, warn_of_rows

if TYPE_CHECKING:
    from fdadp._common.typing import ArrayLike
    from fdadp.privacy.noise.sources import Noise
    from fdadp.private.plan.plan import Plan
    from fdadp.private.release.fit import Spent
    from fdadp.regression.reading.columns import Grids


def plan_private(
    private: PrivateSettings, grids: Mapping[str, ArrayLike | int] | None, groups: Any, offset: str | None, n: Any
) -> Plan:
    """The plan of a fit, from public values alone."""
    privacy = private.privacy
    if isinstance(privacy, Privacy):
        privacy.check_unit(groups)
    points = {name: np.linspace(0, 1, g) if isinstance(g, int) else g for name, g in (grids or {}).items()}
    found = prepared(private, DeclaredTable([], points, private.public_bounds()), offset=offset)
    with one_blas_thread():
        design = found.design()
    plan, _ = planned(privacy, found.asked.spending(found.mechanism), lambda: design, n, found.law)
    if privacy.n is not None and found.law.name == "mean" and not found.mechanism.allow_useless:
        refuse_unaffordable(design, plan)
    return plan


def fit_private(
    model: Any,
    private: PrivateSettings,
    data: Any,
    y: Any,
    grids: Grids | None,
    groups: Any,
    *,
    offset: Any = None,
    by: str | None = None,
    noise: Noise | None = None,
    **not_yet: Any,
) -> Fitted:
    """Fit from noisy releases; only names, shapes and grids of the columns are looked at here.

    Parameters
    ----------
    model : estimator
        That is fitted; only known to be counted (:mod:`fdadp.privacy._seen`).
    private : PrivateSettings
    data, y, grids, groups, offset, by
        As :meth:`fdadp.FunctionalRegression.fit` takes them.
    noise : Noise, optional
        For audits.
    **not_yet
        Arguments that must be None in a private fit.
    """
    data = opened_table(data)
    if isinstance(data, OpenedTable) and y is None:
        data = DeclaredTable(data, grids, private.public_bounds())
    table = data if isinstance(data, PrivateTable) else PrivateTable(data, grids, private.public_bounds(), y)
    found = prepared(private, table, given=y, offset=offset, **not_yet)
    if groups is not None:
        warn_of_rows(private.model.person_rows, private.model.family.name)
    given = tuple(found.reading.given.values())
    values, groups = table.handed(given, groups, found.name, privacy=private.privacy, by=by)
    spent = spend(
        model,
        values,
        groups,
        found.design,
        found.y_bounds,
        private.privacy,
        found.asked.spending(found.mechanism),
        found.public,
        noise=noise,
        prepare=found.reading.prepared(found.less),
        law=found.law,
    )
    return _fitted(private, found, spent)


def fit_private_chunks(
    model: Any,
    private: PrivateSettings,
    chunks: Any,
    grids: Grids | None,
    columns: Mapping[str, Any],
    noise: Noise | None = None,
) -> Fitted:
    """Fit from noisy releases about chunks, which nothing but the kernel reads."""
    for argument in ("groups", "offset"):
        name = columns[argument]
        if name is not None and not isinstance(name, str):
            raise InputError(
                f"{argument} must be the name of a column when fitting from chunks, got {type(name).__name__}"
            )
    table = DeclaredTable(chunks, grids, private.public_bounds())
    beside = {"offset": columns["offset"], "weights": columns["weights"]}
    return fit_private(model, private, table, None, None, columns["groups"], noise=noise, **beside)


def _fitted(private: PrivateSettings, found: Prepared, spent: Spent[Any]) -> Fitted:
    """The model that releases make; nothing of the training rows is kept."""
    with one_blas_thread():
        fit = as_terms(spent.fit, spent.design, spent.plan)
    errors = CoefficientErrors(settings=private.model, fit=fit)
    shares, warned, notes = _said(found, spent, errors)
    names = {design.name for design in fit.form.designs}
    own = importances(spent.fit, spent.design)
    left_out = [name for name in own if name not in names]
    notes = warned + notes + tuple(f"{name} was not afforded by the plan and left out" for name in left_out)
    if getattr(spent.fit, "dropped", False):
        notes += ("the releases let expect no gain of the fit over its anchor, which alone is left of it",)
    ledger = spent.cohort.ledger
    released = Released(
        notes=notes,
        warned=warned,
        importances=own,
        curve_prior=found.mechanism.public_prior.x,
        columns=spent.fit.columns,
        ledger=ledger,
        privacy=replace(private.privacy) if ledger.private else None,
        plan=spent.plan,
    )
    classes = None if found.asked.classes is None else list(found.asked.classes)
    reading = found.reading
    return Fitted(
        response=FittedResponse(name=found.name, curves=_without_rows(found.response), classes=classes),
        errors=errors,
        covariates=PrivateColumns(reading.axes, reading.made, reading.numbers, reading.units),
        null_deviance=float("nan"),
        offset=found.offset,
        shares=shares,
        released=released,
    )


def _said(
    found: Prepared, spent: Spent[Any], errors: CoefficientErrors
) -> tuple[tuple[float, float], tuple[str, ...], tuple[str, ...]]:
    """What releases say: shares explained, warnings of the public inputs, and notes. Keeps the law of the errors."""
    if found.asked.bounded is not None:  # what such responses vary about their means follows from the means
        warned = beyond_scale(spent.fit.columns, pure=spent.plan.pure)
        return (np.nan, np.nan), warned, describe_ranges(spent.fit.columns)
    spread = released_variance(spent.fit, spent.design)
    explained = 1 - unexplained_variance(spent.fit) / max(spread.total, 1e-300)
    errors.variances["released"] = spread
    name = found.name
    rest = (name,) if found.offset is None else (f"{name} - offset", "its offset and a mean curve")
    warned, notes = advise(spent.fit, spent.plan, spent.rows, explained, *rest)
    return (explained, explained), warned, notes


def _without_rows(response: Curves | None) -> Curves | None:
    return None if response is None else replace(response, values=np.zeros((0, response.grid.size)), index=None)


def say_of_public_inputs(warned: tuple[str, ...]) -> None:
    """Warn of what releases say of bounds and n, at the end of ``fit``: where warnings are errors the ledger is there.

    Warns
    -----
    PublicInputWarning
    """
    for text in warned:
        warn(text, PublicInputWarning)


# Synthetic cohorts from what a private fit released; post-processing, which costs no privacy.


def synthetic_cohort(fitted: Fitted, n: int, random_state: int | None) -> pd.DataFrame:
    """Draw rows: columns by their released locations and scales, and a response by the fit.

    Raises
    ------
    InputError
        A fit without privacy, or of another family than the Gaussian.
    """
    from skfda import FDataGrid

    from fdadp.private.private_fitted import draw_column

    released, covariates = fitted.released, fitted.covariates
    if released is None or released.ledger is None or released.ledger.epsilon is None:
        raise InputError("privacy must have been given to draw a cohort: a fit without it is not safe to sample")
    assert isinstance(covariates, PrivateColumns)
    fitted.settings.refuse_other_families("sample")
    rng = np.random.default_rng(random_state)
    count = whole(n, "n")
    own = [column for column in released.columns if column.name not in covariates.made]
    columns = {column.name: draw_column(column, released.curve_prior, count, rng) for column in own}
    law = fitted.errors.variances["released"]
    records = covariates.completed(Records(count, columns), fitted.offset)
    y = fitted.fit.form.predictor(records, fitted.fit.coefficients) + law.draw(count, rng)
    y = y if fitted.offset is None else y + along(records.columns[fitted.offset], law.grid)
    out = pd.DataFrame(index=range(count))
    for name, values in columns.items():
        out[name] = FDataGrid(values.values, values.grid) if isinstance(values, Curves) else values
    out[fitted.response.name] = FDataGrid(y, law.grid) if law.grid.size > 1 else y[:, 0]
    known = promised(released.ledger.epsilon, released.ledger.delta)
    out.attrs["synthetic"] = f"drawn from a private fit ({known}); no row is a person's"
    return out
