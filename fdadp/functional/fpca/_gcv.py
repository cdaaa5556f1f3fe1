"""One-parameter penalised least squares with GCV, from normal equations, diagonalised once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import minimize_scalar

from fdadp._common.typing import FloatArray
from fdadp.errors import InputError


@dataclass(frozen=True)
class GcvFit:
    """A penalised fit: coefficients (p,), λ, GCV score ``n RSS / (n − edf)²`` and edf."""

    coefficients: FloatArray
    smoothing: float
    score: float
    edf: float


def gcv_fit(
    gram: FloatArray, penalty: FloatArray, rhs: FloatArray, total: float, n_rows: int, smoothing: float | None = None
) -> GcvFit:
    """Minimise ``(y − Xβ)'W(y − Xβ) + λ β'Sβ``, λ given or by GCV.

    Parameters
    ----------
    gram : ndarray of shape (p, p)
        X'WX, possibly singular where S is not.
    penalty : ndarray of shape (p, p)
        S.
    rhs : ndarray of shape (p,)
        X'Wy.
    total : float
        y'Wy. Centre y first if its mean is large beside its spread: the residual sum of squares is a difference.
    n_rows : int
        Rows of X.
    smoothing : float, optional
        λ.

    References
    ----------
    Wood (2017), *Generalized Additive Models*, 2nd ed., section 6.2; Demmler & Reinsch (1975),
    doi:10.1007/BF01437407.
    """
    if smoothing is not None and not (np.isfinite(smoothing) and smoothing >= 0):
        raise InputError(f"smoothing must be a finite number of at least 0, got {smoothing!r}")
    # In the eigenvectors of the pencil (S, X'WX + τS) both matrices are diagonal, and the second is
    # positive definite even where some coefficients are not seen by the data.
    tau = float(np.trace(gram) / np.trace(penalty))
    roughness, vectors = eigh(penalty, gram + tau * penalty)
    roughness = np.clip(roughness, 0.0, 1 / tau)
    seen = 1 - tau * roughness
    rotated = vectors.T @ rhs

    def at(value: float) -> tuple[FloatArray, float, float]:
        scale = seen + value * roughness
        beta = np.divide(rotated, scale, out=np.zeros_like(rotated), where=scale > 0)
        edf = float(np.divide(seen, scale, out=np.zeros_like(seen), where=scale > 0).sum())
        return beta, edf, max(total - float(beta @ (2 * rotated - seen * beta)), 0.0)

    def log_gcv(log_value: float) -> float:
        _, edf, residual = at(float(np.exp(log_value)))
        # kept finite where the fit interpolates
        return float(np.log(residual + np.finfo(float).tiny) - 2 * np.log(max(n_rows - edf, 1e-8 * n_rows)))

    if smoothing is None:
        logs = np.log(tau) + np.linspace(-23, 16, 118)
        best = int(np.argmin([log_gcv(x) for x in logs]))
        around = (logs[max(best - 1, 0)], logs[min(best + 1, logs.size - 1)])
        smoothing = float(np.exp(minimize_scalar(log_gcv, bounds=around, method="bounded", options={"xatol": 1e-8}).x))
    beta, edf, residual = at(float(smoothing))
    score = n_rows * residual / (n_rows - edf) ** 2 if n_rows > edf else np.inf
    return GcvFit(vectors @ beta, float(smoothing), score, edf)
