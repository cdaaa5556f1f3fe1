"""Any model of mgcv's by its formula, as the same numbers that recorded cases hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from fdadp._common.typing import ArrayLike
from r_bridge._rpy2 import call


def fit_gam(
    formula: str | Sequence[str],
    data: Mapping[str, Any],
    new: Mapping[str, Any] | None = None,
    *,
    sp: ArrayLike | None = None,
    family: str = "gaussian()",
    weights: ArrayLike | None = None,
    tolerance: float = 1e-6,
    combine: ArrayLike | None = None,
    knots: Mapping[str, ArrayLike] | None = None,
) -> dict[str, Any]:
    """Fit ``mgcv::gam(formula, family, data, weights, method = "REML")``.

    Parameters
    ----------
    formula : str or sequence of str
        Of R; several where a family has several linear predictors, whose means then follow each other.
    data, new : mapping
        Columns of numbers, of text (factors), or matrices, which mgcv sums over; rows to predict.
    sp : array_like, optional
        Smoothing parameters instead of REML's.
    family : str
        Of R, such as ``"Gamma(link = 'log')"``.
    weights : array_like, optional
    tolerance : float
        Of the search for smoothing parameters, relative to the score: mgcv's ``conv.tol``.
    combine : array_like of shape (m, n), optional
        Weights of combinations of the means of `new`, such as contrasts and average slopes.
    knots : mapping of str to array_like, optional
        By variable, such as all of a cyclic smooth's; default mgcv's.

    Returns
    -------
    dict
        ``sp, fitted, edf_total, sig2, score, deviance, aic``, ``theta`` of families that have one, and, of `new`,
        ``predicted, predicted_se`` of the means; also ``unconditional_se`` where smoothing parameters were not given,
        and ``combined, combined_se``.

    Raises
    ------
    RBridgeUnavailable
        No R, rpy2 or mgcv.
    RError
        R's own.
    """
    answer = call(
        "gam_by_formula",
        "mgcv",
        formula=formula if isinstance(formula, str) else np.array(formula),
        data=_columns(data),
        new=None if new is None else _columns(new),
        sp=None if sp is None else np.asarray(sp, dtype=np.float64),
        family=family,
        weights=None if weights is None else np.asarray(weights, dtype=np.float64),
        tolerance=tolerance,
        combine=None if combine is None else np.asarray(combine, dtype=np.float64),
        knots=None if knots is None else {name: np.asarray(at, dtype=np.float64) for name, at in knots.items()},
    )
    return {name: np.asarray(value) for name, value in answer.items() if value is not None}


def _columns(data: Mapping[str, Any]) -> dict[str, Any]:
    columns = {name: np.asarray(column) for name, column in data.items()}
    return {name: pd.Categorical(c) if c.dtype.kind in "UO" else c for name, c in columns.items()}
