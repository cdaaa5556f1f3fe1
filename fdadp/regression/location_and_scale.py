"""Regression of a number whose variance has terms of its own: mean and variance are fitted in turn.

The mean is least squares with weights 1/σ². Squared residuals over 1 less their leverage are about σ² times χ² of one
degree of freedom: a gamma law of scale 2, which is known, with 1 less the leverage as weights. Each fit has smoothing
parameters of its own by REML, so that no one criterion is minimised.

References
----------
Smyth (1989), Generalized linear models with varying dispersion, doi:10.1111/j.2517-6161.1989.tb01747.x; Lee, Nelder &
Pawitan (2006), Generalized Linear Models with Random Effects, chapter 3, doi:10.1201/9781420011340.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.regression.fit_in_memory import fit_whole
from fdadp.regression.fitted.fitted_model import Fitted
from fdadp.regression.fitted.variance_model import CONVERGED, VarianceModel
from fdadp.regression.model_settings import ModelSettings
from fdadp.regression.reading.table_columns import Covariates, Grids
from fdadp.solve.form.response_families import ChiSquare

ROUNDS = 50
"""Of fits of the mean and of the variance, at most."""

MOST_LEVERAGE = 0.95
"""Of a row: the rest of one that the mean follows says nothing of its variance."""

SMALLEST = 1e-12
"""Squared residual, as a share of their mean: the logarithm of 0 is not finite."""


def fit_location_and_scale(settings: ModelSettings, data: Any, y: Any, grids: Grids | None, **beside: Any) -> Fitted:
    """Fit the mean and the variance of a number in turn.

    Parameters
    ----------
    settings, data, y, grids, **beside
        As :func:`fdadp.regression.fit_in_memory.fit_whole` takes them.

    Raises
    ------
    InputError
        Groups, or rows that are joined by label.
    """
    if beside.get("groups") is not None:
        raise InputError(f"groups must be None with variance={settings.variance!r}, whose rows are independent")
    mean = replace(settings, variance=None)
    squares = replace(mean, formula=f"squares {settings.variance}", response=None, smoothing="reml", family=ChiSquare())
    fitted = fit_whole(mean, data, y, grids, **beside)
    if fitted.joined is not None:
        raise InputError(f"rows must belong together by position with variance={settings.variance!r}: by='position'")
    assert fitted.rows is not None
    given = fitted.rows.weights
    prior = np.ones(len(fitted.rows.residuals)) if given is None else given.reshape(-1)
    variance, moved, rounds = np.ones_like(prior), np.inf, 0
    while moved > CONVERGED and rounds < ROUNDS:
        square, share = _squares(fitted, data, grids, prior, variance)
        own = fit_whole(squares, data, square, grids, weights=share / 2)
        assert own.rows is not None
        moved = float(np.abs(np.log(own.rows.means / variance)).max())
        variance, rounds = own.rows.means, rounds + 1
        fitted = fit_whole(mean, data, y, grids, **{**beside, "weights": prior / variance})
    assert isinstance(own.covariates, Covariates)
    model = VarianceModel(str(settings.variance), own.fit, own.covariates, rounds, moved)
    return replace(fitted, variance=model, errors=replace(fitted.errors, settings=settings))


def _squares(
    fitted: Fitted, data: Any, grids: Grids | None, prior: FloatArray, variance: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Squared residuals of weight 1 over what the mean leaves of them, and these shares; shapes (n,)."""
    fit = fitted.fit
    assert fitted.rows is not None
    rows = fit.form.rows(fitted.records(data, grids))[:, 0]
    leverage = ((rows @ fit.inverse) * rows).sum(axis=1) * prior / variance
    share = 1 - np.minimum(leverage, MOST_LEVERAGE)
    square = prior * fitted.rows.residuals**2 / share
    return np.maximum(square, SMALLEST * square.mean()), share
