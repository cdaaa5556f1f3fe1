"""refund through R: ``pffr``, ``pfr``, ``fpca.face``, ``fpca.sc`` and ``fosr``, with prediction on new data.

Data are dicts of arrays (a matrix of shape (n, S) for a functional variable), ``FDataGrid`` objects or data frames.
A formula is refund's own, as text; names in it are variables of the data or of `grids`::

    fit = pffr("Y ~ ff(X, xind = s)", {"Y": Y, "X": X}, t, grids={"s": s})
    fitted, se = fit.predict({"X": X_new})
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fdadp._common.typing import ArrayLike, CurveData, FloatArray
from fdadp.errors import InputError
from fdadp.functional.tables.curve_inputs import as_curves
from r_bridge._rpy2 import Handle, call
from r_bridge.convert import plain_data
from r_bridge.refund_fits import Data, FosrFit, FpcaFit, PffrFit, PfrFit, Surface, gam_fields, matrix

__all__ = ["FosrFit", "FpcaFit", "PffrFit", "PfrFit", "Surface", "fosr", "fpca_face", "fpca_sc", "pffr", "pfr"]


def pffr(
    formula: str,
    data: Data,
    t: ArrayLike,
    *,
    grids: Mapping[str, ArrayLike] | None = None,
    **options: Any,
) -> PffrFit:
    """Fit a function-on-function regression by ``refund::pffr``.

    Parameters
    ----------
    formula : str
        refund's, as ``"Y ~ ff(X, xind = s) + z"``.
    data : mapping or DataFrame
        Y of shape (n, T), functional variables (n, S), scalar ones (n,).
    t : array_like of shape (T,)
        Grid of Y (refund's ``yind``).
    grids : mapping, optional
        Other names in the formula.
    **options
        Of ``pffr``, as ``method="REML"``.

    Raises
    ------
    RBridgeUnavailable
        No R, rpy2 or refund.
    RError
        R's own.

    Examples
    --------
    >>> from fdadp import simulate_affr
    >>> data = simulate_affr(scenario=1, n=60, seed=0)
    >>> fit = pffr("Y ~ ff(X, xind = s)", {"Y": data.Y, "X": data.X}, data.t, grids={"s": data.s})  # doctest: +SKIP
    >>> fit.edf_total  # doctest: +SKIP
    """
    answer = call(
        "pffr_fit",
        "refund",
        formula=_text(formula),
        data=plain_data(data),
        grids=_grids(grids),
        yind=np.asarray(t, dtype=np.float64),
        options=options,
    )
    return PffrFit(**gam_fields(answer))


def pfr(formula: str, data: Data, *, grids: Mapping[str, ArrayLike] | None = None, **options: Any) -> PfrFit:
    """Fit a scalar-on-function regression by ``refund::pfr``; arguments and errors as :func:`pffr`.

    Examples
    --------
    >>> from fdadp import simulate_affr
    >>> data = simulate_affr(scenario=1, n=60, seed=0)
    >>> fit = pfr("y ~ lf(X)", {"y": data.Y.data_matrix[:, 25, 0], "X": data.X})  # doctest: +SKIP
    >>> fit.edf_total  # doctest: +SKIP
    """
    answer = call(
        "pfr_fit", "refund", formula=_text(formula), data=plain_data(data), grids=_grids(grids), options=options
    )
    return PfrFit(**gam_fields(answer))


def fpca_face(
    Y: CurveData,
    t: ArrayLike | None = None,
    *,
    pve: float = 0.99,
    npc: int | None = None,
    knots: int = 35,
    **options: Any,
) -> FpcaFit:
    """Principal components by ``refund::fpca.face``.

    Parameters
    ----------
    Y : FDataGrid, DataFrame or array_like of shape (n, T)
    t : array_like of shape (T,), optional
        Grid of a plain array; default even on [0, 1].
    pve : float
        Share of variance to explain.
    npc : int, optional
        Number of components instead.
    knots : int
        Of the covariance smoother.
    **options
        Others of ``fpca.face``.

    Raises
    ------
    RBridgeUnavailable, RError
        As :func:`pffr`.

    Examples
    --------
    >>> from fdadp import simulate_affr
    >>> data = simulate_affr(scenario=1, n=60, seed=0)
    >>> fpca_face(data.Y, npc=2, knots=20).values  # doctest: +SKIP
    """
    return _fpca("fpca.face", Y, t, pve=pve, npc=npc, knots=int(knots), **options)


def fpca_sc(
    Y: CurveData,
    t: ArrayLike | None = None,
    *,
    pve: float = 0.99,
    npc: int | None = None,
    nbasis: int = 10,
    **options: Any,
) -> FpcaFit:
    """Principal components of curves with gaps (NaN) by ``refund::fpca.sc``; otherwise as :func:`fpca_face`.

    Examples
    --------
    >>> from fdadp import simulate_affr
    >>> data = simulate_affr(scenario=1, n=60, seed=0)
    >>> fpca_sc(data.Y, npc=2).values  # doctest: +SKIP
    """
    return _fpca("fpca.sc", Y, t, pve=pve, npc=npc, nbasis=int(nbasis), **options)


def fosr(
    Y: CurveData,
    X: ArrayLike,
    t: ArrayLike | None = None,
    *,
    method: str = "OLS",
    smoothing_parameter: float | None = None,
    **options: Any,
) -> FosrFit:
    """Function-on-scalar regression by ``refund::fosr``.

    Parameters
    ----------
    Y : FDataGrid, DataFrame or array_like of shape (n, T)
    X : array_like of shape (n, p)
        Design, with a column of ones for the intercept.
    t : array_like of shape (T,), optional
    method : {"OLS", "GLS", "mix"}
    smoothing_parameter : float, optional
        refund's ``lambda``. In refund 0.1-38 the choice by cross-validation (``method="OLS"`` without it) fails with
        more curves than grid points.
    **options
        Others of ``fosr``; ``multi.sp`` is FALSE unless given, as its default for GLS fails in refund 0.1-38.

    Raises
    ------
    RBridgeUnavailable, RError
        As :func:`pffr`.

    Examples
    --------
    >>> from fdadp import simulate_affr
    >>> data = simulate_affr(scenario=1, n=60, seed=0)
    >>> fosr(data.Y, [[1.0]] * 60).coefficients.shape  # doctest: +SKIP
    """
    curves = as_curves(Y, t, name="Y")
    chosen: dict[str, Any] = {"method": method, "multi.sp": False, **options}
    if smoothing_parameter is not None:
        chosen["lambda"] = float(smoothing_parameter)
    answer = call(
        "fosr_fit",
        "refund",
        "fda",
        Y=curves.values,
        X=np.asarray(X, dtype=np.float64),
        argvals=curves.grid,
        options=chosen,
    )
    return FosrFit(
        answer["coefficients"], answer["se"], answer["argvals"], answer["fitted"], np.ravel(answer["lambda"])
    )


def _fpca(method: str, Y: CurveData, t: ArrayLike | None, **options: Any) -> FpcaFit:
    curves = as_curves(Y, t, name="Y")
    chosen = {name: value for name, value in options.items() if value is not None}
    answer = call("fpca_fit", "refund", method=method, Y=curves.values, argvals=curves.grid, options=chosen)
    n_components = int(answer["n_components"][0])
    return FpcaFit(
        mean=answer["mean"],
        functions=answer["functions"].reshape(n_components, -1),
        values=np.ravel(answer["values"]),
        scores=matrix(answer["scores"], n_components),
        fitted=answer["fitted"],
        noise_variance=float(answer["noise_variance"][0]),
        grid=curves.grid,
        _handle=Handle(str(answer["key"][0])),
    )


def _text(formula: str) -> str:
    if not isinstance(formula, str) or "~" not in formula:
        raise InputError(f"formula must be text with a ~, as 'Y ~ ff(X, xind = s)', got {formula!r}")
    return formula


def _grids(grids: Mapping[str, ArrayLike] | None) -> dict[str, FloatArray]:
    return {name: np.asarray(grid, dtype=np.float64) for name, grid in (grids or {}).items()}
