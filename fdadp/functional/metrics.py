"""How good predicted curves, their intervals, and predicted risks are.

The arguments are curves of any kind (FDataGrid, data frame, array; see
:func:`fdadp.functional.tables.curve_inputs.as_curves`). These functions read the data they are given: on private
records the numbers they return are not private.
"""

from __future__ import annotations

import numpy as np

from fdadp._common.argument_checks import numbers
from fdadp._common.typing import ArrayLike, CurveData
from fdadp.errors import InputError
from fdadp.functional.quadrature import quadrature_weights
from fdadp.functional.tables.curve_inputs import as_curves
from fdadp.functional.tables.curve_sample import Curves
from fdadp.functional.tables.row_and_grid_labels import same_grid, same_rows

__all__ = ["concordance", "coverage", "functional_r2", "rmspe"]


def rmspe(Y: CurveData, Y_hat: CurveData) -> float:
    """Root mean squared prediction error, ``sqrt(Σ_i Σ_j (Y_ij - Ŷ_ij)² / (n m))``.

    Parameters
    ----------
    Y, Y_hat : FDataGrid, DataFrame or array_like of shape (n, m)
        Observed and predicted curves.

    Returns
    -------
    float
        In the unit of Y.

    Raises
    ------
    InputError
        Different shapes, grids or row labels, or values that are not finite.

    References
    ----------
    Kim et al. (2018), *J. Comput. Graph. Statist.* 27(1):234-244, doi:10.1080/10618600.2017.1356730

    Examples
    --------
    >>> rmspe([[0.0, 0.0], [0.0, 0.0]], [[1.0, 1.0], [1.0, -1.0]])
    1.0
    """
    observed = _curves(Y, "Y")
    predicted = _match(Y_hat, "Y_hat", observed)
    return float(np.sqrt(np.mean((observed.values - predicted.values) ** 2)))


def coverage(Y: CurveData, lower: CurveData, upper: CurveData) -> float:
    """Average coverage probability (ACP): the share of values ``Y_ij`` with ``lower_ij <= Y_ij <= upper_ij``.

    Parameters
    ----------
    Y, lower, upper : FDataGrid, DataFrame or array_like of shape (n, m)
        Observed curves and the limits of their intervals; limits may be infinite.

    Returns
    -------
    float
        Between 0 and 1.

    Raises
    ------
    InputError
        Different shapes, grids or row labels, missing values, or a lower limit above the upper one.

    Examples
    --------
    >>> coverage([[0.0, 2.0]], lower=[[-1.0, -1.0]], upper=[[1.0, 1.0]])
    0.5
    """
    observed = _curves(Y, "Y")
    low = _match(lower, "lower", observed, infinite=True)
    high = _match(upper, "upper", observed, infinite=True)
    crossed = np.argwhere(low.values > high.values)
    if len(crossed):
        i, j = (int(b) for b in crossed[0])
        raise InputError(
            f"lower must not exceed upper, got {low.values[i, j]:g} > {high.values[i, j]:g} "
            f"in curve {i} at position {j}"
        )
    return float(np.mean((low.values <= observed.values) & (observed.values <= high.values)))


def functional_r2(Y: CurveData, Y_hat: CurveData, *, t: ArrayLike | None = None) -> float:
    """Functional R²: ``1 - Σ_i ∫(Y_i - Ŷ_i)² dt / Σ_i ∫(Y_i - Ȳ)² dt``, with Ȳ the mean of the curves in `Y`.

    Parameters
    ----------
    Y, Y_hat : FDataGrid, DataFrame or array_like of shape (n, m)
        Observed and predicted curves, m >= 2.
    t : array_like of shape (m,), optional
        The grid, for trapezoidal weights. Default: that of `Y`; an array has an even one on [0, 1].

    Returns
    -------
    float
        1 for perfect prediction, 0 for the mean curve of `Y` itself, negative for worse.

    Raises
    ------
    InputError
        Different shapes, grids or row labels, values that are not finite, or curves in `Y` that are all equal (a
        single one, for instance), for which it is not defined.

    References
    ----------
    Yao, F., Müller, H.-G. and Wang, J.-L. (2005). Functional linear regression analysis for longitudinal data.
    *Ann. Statist.* 33(6):2873-2903. doi:10.1214/009053605000000660 (their global R², as a sample version)

    Examples
    --------
    >>> functional_r2([[0.0, 0.0], [2.0, 2.0]], [[0.5, 0.5], [1.5, 1.5]])
    0.75
    """
    observed = _curves(Y, "Y", t)
    predicted = _match(Y_hat, "Y_hat", observed)
    weights = quadrature_weights(observed.grid)
    deviations = observed.values - observed.values.mean(axis=0)
    # Equal curves leave rounding errors of their mean, not zeros.
    total = float((deviations**2 @ weights).sum())
    size = float((observed.values**2 @ weights).sum())
    if total <= size * (4 * np.finfo(np.float64).eps) ** 2:
        raise InputError(f"Y must hold at least two different curves, got {len(observed)} that are all equal")
    return 1.0 - float((((observed.values - predicted.values) ** 2) @ weights).sum()) / total


AT_A_TIME = 2**22
"""Pairs of persons that are compared at once."""


def concordance(time: ArrayLike, event: ArrayLike, risk: ArrayLike, entry: ArrayLike | None = None) -> float:
    """Harrell's C: the share of comparable pairs in which the one with the earlier event has the higher risk.

    A pair is comparable where one had the event, and the other was seen for longer, or as long and without event. Equal
    risks count half.

    Parameters
    ----------
    time : array_like of shape (n,)
        How long each person was seen.
    event : array_like of shape (n,)
        1 or True where that ended with the event, else 0 or False.
    risk : array_like of shape (n,)
        Higher for those whose event is expected earlier.
    entry : array_like of shape (n,), optional
        From when on each was seen: a pair is comparable only where the other had entered before the event.

    Returns
    -------
    float
        Between 0 and 1; .5 for risks that say nothing.

    Raises
    ------
    InputError
        Different lengths, entries that are missing, or no comparable pair.

    References
    ----------
    Harrell, F. E., Lee, K. L. and Mark, D. B. (1996). Multivariable prognostic models. *Statist. Med.* 15(4):361-387.

    Examples
    --------
    >>> concordance([1, 2, 3, 4], [1, 0, 1, 1], [0.9, 0.8, 0.7, 0.1])
    1.0
    >>> concordance([1, 2], [1, 1], [0.5, 0.5])
    0.5
    """
    given = {"time": time, "event": event, "risk": risk} | ({} if entry is None else {"entry": entry})
    own = {name: numbers(value, name) for name, value in given.items()}
    t, died, r = own["time"], own["event"], own["risk"]
    late = own.get("entry", np.full(t.shape, -np.inf))
    if t.ndim != 1 or not t.shape == died.shape == r.shape == late.shape:
        shapes = ", ".join(f"{name} {values.shape}" for name, values in own.items())
        raise InputError(f"time, event and risk must be of one length, got {shapes}")
    odd = next((name for name, values in own.items() if np.isnan(values).any()), None)
    if odd is not None or not np.isin(died, (0, 1)).all():
        raise InputError(f"{odd or 'event'} must be {'known for everybody' if odd else '0 or 1'}, got other entries")
    first = np.flatnonzero(died)
    pairs = agreed = 0.0
    step = max(AT_A_TIME // max(t.size, 1), 1)
    for start in range(0, first.size, step):
        i = first[start : start + step, None]
        later = ((t > t[i]) | ((t == t[i]) & (died == 0))) & (late < t[i])
        pairs += later.sum()
        agreed += (later & (r < r[i])).sum() + 0.5 * (later & (r == r[i])).sum()
    if pairs == 0:
        raise InputError("time and event must hold a pair that is comparable, got none")
    return float(agreed / pairs)


def _curves(data: CurveData, name: str, grid: ArrayLike | None = None, *, infinite: bool = False) -> Curves:
    curves = as_curves(data, grid, name=name, any_layout=True)
    bad = np.argwhere(np.isnan(curves.values) if infinite else ~np.isfinite(curves.values))
    if len(bad):
        i, j = (int(b) for b in bad[0])
        what = "have no missing values" if infinite else "be finite"
        raise InputError(f"{name} must {what}, got {curves.values[i, j]} in curve {i} at position {j}")
    return curves


def _match(data: CurveData, name: str, observed: Curves, *, infinite: bool = False) -> Curves:
    """Read `data` as curves that go with `observed`."""
    curves = _curves(data, name, infinite=infinite)
    if curves.values.shape != observed.values.shape:
        raise InputError(f"{name} must have the shape of Y, {observed.values.shape}, got {curves.values.shape}")
    same_rows(**{"Y": observed, name: curves})
    same_grid(**{"Y": observed, name: curves})
    return curves
