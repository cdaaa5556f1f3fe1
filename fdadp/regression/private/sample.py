"""Synthetic cohorts from what a private fit released; post-processing, which costs no privacy."""

from __future__ import annotations

import numpy as np
import pandas as pd

from fdadp._common.checks import whole
from fdadp._common.promised import promised
from fdadp.errors import InputError
from fdadp.functional.tables.records import Records
from fdadp.functional.tables.sample import Curves
from fdadp.regression.fitted.fitted import Fitted
from fdadp.regression.private.columns import PrivateColumns
from fdadp.regression.reading.training import along


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
