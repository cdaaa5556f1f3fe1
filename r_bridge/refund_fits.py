"""Fits of refund: plain numbers, and R's object kept for predictions on new data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fdadp._common.typing import ArrayLike, CurveData, FloatArray
from fdadp.errors import InputError
from fdadp.functional.tables.curve_inputs import as_curves
from r_bridge._rpy2 import Handle, call
from r_bridge.convert import plain_data

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


def gam_fields(answer: dict[str, Any]) -> dict[str, Any]:
    """Fields that all fits by ``gam`` have, from R's answer."""
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
        answer = call("fpca_predict", "refund", key=self._handle.key, Y=on_grid(Y, self.grid))
        return matrix(answer["scores"], len(self.values)), answer["fitted"]


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


def matrix(scores: Any, n_components: int) -> FloatArray:
    """Scores as (n, n_components), where R drops a dimension of one."""
    return np.asarray(scores, dtype=np.float64).reshape(-1, n_components)


def on_grid(Y: CurveData, grid: FloatArray) -> FloatArray:
    """Values of curves that must be on the grid of the fit; raises InputError."""
    curves = as_curves(Y, name="Y", default=grid)
    if curves.grid.size != grid.size:
        raise InputError(f"Y must have {grid.size} points as in the fit, got {curves.grid.size}")
    return curves.values
