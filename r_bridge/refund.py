"""refund through R: ``pffr``, ``pfr``, ``fpca.face``, ``fpca.sc`` and ``fosr``, with prediction on new data.

Data are dicts of arrays (a matrix of shape (n, S) for a functional variable), ``FDataGrid`` objects or data frames.
A formula is refund's own, as text; names in it are variables of the data or of `grids`::

    fit = pffr("Y ~ ff(X, xind = s)", {"Y": Y, "X": X}, t, grids={"s": s})
    fitted, se = fit.predict({"X": X_new})
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fdadp._common.typing import ArrayLike, CurveData, FloatArray
from fdadp.errors import InputError
from fdadp.functional.curves import as_curves
from r_bridge._r import Handle, call
from r_bridge.convert import plain_data

__all__ = ["FosrFit", "FpcaFit", "PffrFit", "PfrFit", "Surface", "fosr", "fpca_face", "fpca_sc", "pffr", "pfr"]

Data = Mapping[str, Any]


@dataclass(frozen=True)
class Surface:
    """An estimated coefficient function on refund's grid.

    Attributes
    ----------
    label : str
    coordinates : tuple of ndarray
        Grid of each argument, in refund's order.
    values, se : ndarray
        One axis per coordinate.
    """

    label: str
    coordinates: tuple[FloatArray, ...]
    values: FloatArray
    se: FloatArray


@dataclass(frozen=True)
class _Gam:
    """What all fits by ``gam`` have.

    Attributes
    ----------
    fitted : ndarray
        (n, T) for ``pffr``, (n,) for ``pfr``.
    coefficients, edf, smoothing_parameters : ndarray
    edf_total, noise_variance, score : float
    covariance : ndarray of shape (p, p)
        mgcv's ``Vp``.
    """

    fitted: FloatArray
    coefficients: FloatArray
    edf: FloatArray
    smoothing_parameters: FloatArray
    covariance: FloatArray
    edf_total: float
    noise_variance: float
    score: float
    _handle: Handle = field(repr=False, compare=False)


def _gam(answer: dict[str, Any]) -> dict[str, Any]:
    arrays = ("fitted", "coefficients", "edf", "smoothing_parameters", "covariance")
    found: dict[str, Any] = {name: answer[name] for name in arrays}
    found |= {name: float(answer[name][0]) for name in ("edf_total", "noise_variance", "score")}
    return found | {"_handle": Handle(str(answer["key"][0]))}


@dataclass(frozen=True)
class PffrFit(_Gam):
    """A fit of ``refund::pffr``."""

    def predict(self, data: Data) -> tuple[FloatArray, FloatArray]:
        """Predicted curves of new data and their standard errors, each (n, T).

        Raises
        ------
        RError
            R's own, as for other grids than in the fit.
        """
        answer = call("pffr_predict", "refund", key=self._handle.key, data=plain_data(data))
        return answer["fit"], answer["se"]

    def surfaces(self, n1: int = 100, n2: int = 40, n3: int = 20) -> list[Surface]:
        """Coefficient functions with standard errors, on grids of n1 points, n2 × n2 or n3 × n3 × n3."""
        found = []
        for part in call("pffr_surfaces", "refund", key=self._handle.key, n1=n1, n2=n2, n3=n3):
            axes = tuple(np.ravel(part[name]) for name in ("x", "y", "z") if name in part)
            shape = tuple(axis.size for axis in axes)
            values, se = (np.reshape(part[name], shape, order="F") for name in ("value", "se"))
            found.append(Surface(str(part["label"][0]), axes, values, se))
        return found


@dataclass(frozen=True)
class PfrFit(_Gam):
    """A fit of ``refund::pfr``."""

    def predict(self, data: Data) -> tuple[FloatArray, FloatArray]:
        """Predicted responses of new data and their standard errors, each (n,)."""
        answer = call("pfr_predict", "refund", key=self._handle.key, data=plain_data(data))
        return answer["fit"], answer["se"]

    def curve(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Coefficient function of the first functional term: grid (points, arguments), value and standard error."""
        answer = call("pfr_curve", "refund", key=self._handle.key)
        return answer["grid"], answer["value"], answer["se"]


@dataclass(frozen=True)
class FpcaFit:
    """A fit of ``refund::fpca.face`` or ``fpca.sc``, in refund's normalisation.

    Attributes
    ----------
    mean : ndarray of shape (T,)
    functions : ndarray of shape (K, T)
        Unit Euclidean length for ``fpca.face``, unit L2 norm for ``fpca.sc``; signs are arbitrary.
    values : ndarray of shape (K,)
    scores : ndarray of shape (n, K)
    fitted : ndarray of shape (n, T)
    noise_variance : float
        NaN where refund does not return it.
    """

    mean: FloatArray
    functions: FloatArray
    values: FloatArray
    scores: FloatArray
    fitted: FloatArray
    noise_variance: float
    grid: FloatArray
    _handle: Handle = field(repr=False, compare=False)

    @property
    def n_components(self) -> int:
        """Number of components."""
        return len(self.values)

    def predict(self, Y: CurveData) -> tuple[FloatArray, FloatArray]:
        """Scores (n, K) and reconstructions (n, T) of new curves on the same grid.

        refund decomposes the training curves again for that.
        """
        answer = call("fpca_predict", "refund", key=self._handle.key, Y=_on(Y, self.grid))
        return _matrix(answer["scores"], len(self.values)), answer["fitted"]


@dataclass(frozen=True)
class FosrFit:
    """A fit of ``refund::fosr``.

    Attributes
    ----------
    coefficients, se : ndarray of shape (p, m)
        Coefficient curves at ``argvals`` (m,).
    fitted : ndarray of shape (n, T)
    smoothing_parameters : ndarray
    """

    coefficients: FloatArray
    se: FloatArray
    argvals: FloatArray
    fitted: FloatArray
    smoothing_parameters: FloatArray

    def predict(self, X: ArrayLike) -> FloatArray:
        """Predicted curves at ``argvals`` of new rows of X, shape (n, m). refund has no such method for ``fosr``."""
        rows = np.asarray(X, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != len(self.coefficients):
            raise InputError(f"X must have {len(self.coefficients)} columns as in the fit, got shape {rows.shape}")
        return np.asarray(rows @ self.coefficients)


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
    return PffrFit(**_gam(answer))


def pfr(formula: str, data: Data, *, grids: Mapping[str, ArrayLike] | None = None, **options: Any) -> PfrFit:
    """Fit a scalar-on-function regression by ``refund::pfr``; arguments and errors as :func:`pffr`."""
    answer = call(
        "pfr_fit", "refund", formula=_text(formula), data=plain_data(data), grids=_grids(grids), options=options
    )
    return PfrFit(**_gam(answer))


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
    """Principal components of curves with gaps (NaN) by ``refund::fpca.sc``; otherwise as :func:`fpca_face`."""
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
        scores=_matrix(answer["scores"], n_components),
        fitted=answer["fitted"],
        noise_variance=float(answer["noise_variance"][0]),
        grid=curves.grid,
        _handle=Handle(str(answer["key"][0])),
    )


def _matrix(scores: Any, n_components: int) -> FloatArray:
    return np.asarray(scores, dtype=np.float64).reshape(-1, n_components)


def _on(Y: CurveData, grid: FloatArray) -> FloatArray:
    curves = as_curves(Y, name="Y", default=grid)
    if curves.grid.size != grid.size:
        raise InputError(f"Y must have {grid.size} points as in the fit, got {curves.grid.size}")
    return curves.values


def _text(formula: str) -> str:
    if not isinstance(formula, str) or "~" not in formula:
        raise InputError(f"formula must be text with a ~, as 'Y ~ ff(X, xind = s)', got {formula!r}")
    return formula


def _grids(grids: Mapping[str, ArrayLike] | None) -> dict[str, FloatArray]:
    return {name: np.asarray(grid, dtype=np.float64) for name, grid in (grids or {}).items()}
