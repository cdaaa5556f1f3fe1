"""Eigenbasis of densely observed curves, straight from their covariance."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh

from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError
from fdadp.functional.fpca.basis import Eigenbasis, count_components, grid_weights, oriented, significant
from fdadp.functional.tables.sample import as_grid


def dense_eigenbasis(
    mean: ArrayLike,
    covariance: ArrayLike,
    grid: ArrayLike | None = None,
    *,
    n_components: float = 0.95,
    max_components: int | None = None,
    quadrature: str = "trapezoid",
) -> Eigenbasis:
    """Eigenbasis from moments, without smoothing.

    Eigenvectors of ``W^½ C W^½`` with W the quadrature weights. The noise variance is 0: this method does
    not tell noise from signal (``face`` and ``sc`` do).

    Parameters
    ----------
    mean : array_like of shape (T,)
    covariance : array_like of shape (T, T)
        With any divisor; eigenvalues have the same (scikit-fda and ``fpca2s``: n − 1).
    grid : array_like of shape (T,), optional
        Default: even on [0, 1].
    n_components : int or float
        Number of components, or share of variance in (0, 1].
    max_components : int, optional
        Cap on the number found by share of variance.
    quadrature : {"trapezoid", "equal", "simpson", "riemann"}
        Rule of the inner products; ``"equal"`` is refund's Euclidean norm.

    Returns
    -------
    Eigenbasis

    Raises
    ------
    InputError
        Shapes that do not fit, values that are not finite, or more components than there are.

    References
    ----------
    Ramsay & Silverman (2005), *Functional Data Analysis*, section 8.4.1, doi:10.1007/b98888.

    Examples
    --------
    >>> import numpy as np
    >>> from fdadp.functional.fpca import dense_eigenbasis
    >>> t = np.linspace(0, 1, 51)
    >>> basis = dense_eigenbasis(np.zeros(51), np.minimum.outer(t, t), t, n_components=2)  # Brownian motion
    >>> basis.values.round(2)
    array([0.41, 0.05])
    """
    mu, cov, points = check_moments(mean, covariance, grid)
    weights = grid_weights(points, quadrature)
    return spectral(mu, cov, points, weights, n_components, max_components)


def spectral(
    mean: FloatArray,
    covariance: FloatArray,
    grid: FloatArray,
    weights: FloatArray,
    n_components: float,
    max_components: int | None,
) -> Eigenbasis:
    """Eigenbasis of a symmetric kernel (T, T) under quadrature weights; negative eigenvalues are left out."""
    root = np.sqrt(weights)
    if not (root > 0).all():
        raise InputError(f"quadrature weights must be positive, got {weights.min():g} at {weights.argmin()}")
    values, vectors = eigh(covariance * root[:, None] * root)
    values, vectors = values[::-1], vectors[:, ::-1]
    values = values[: significant(values)]
    k = count_components(values, n_components, max_components)
    return Eigenbasis(
        grid=grid,
        weights=weights,
        mean=mean,
        functions=oriented(vectors[:, :k].T / root),
        values=values[:k].copy(),
        noise_variance=0.0,
        explained_ratio=values[:k] / values.sum(),
    )


def check_moments(
    mean: ArrayLike, covariance: ArrayLike, grid: ArrayLike | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Check mean (T,), covariance (T, T) and grid (T,); the covariance comes back symmetrised."""
    cov = check_covariance(covariance)
    mu = np.asarray(mean, dtype=np.float64)
    if mu.shape != (len(cov),) or not np.isfinite(mu).all():
        raise InputError(f"mean must be {len(cov)} finite numbers, as the covariance has rows, got shape {mu.shape}")
    return mu, cov, as_grid(grid, len(cov))


def check_covariance(covariance: ArrayLike) -> FloatArray:
    """Check a covariance matrix (T, T), T >= 2, and symmetrise it."""
    cov = np.asarray(covariance, dtype=np.float64)
    if cov.ndim != 2 or cov.shape[0] != cov.shape[1] or len(cov) < 2:
        raise InputError(f"covariance must be a square matrix of at least 2 rows, got shape {cov.shape}")
    if not np.isfinite(cov).all():
        i, j = (int(b) for b in np.argwhere(~np.isfinite(cov))[0])
        raise InputError(f"covariance must be finite, got {cov[i, j]} at ({i}, {j})")
    asymmetry = float(np.abs(cov - cov.T).max())
    if asymmetry > 1e-8 * float(np.abs(cov).max()):
        raise InputError(f"covariance must be symmetric, got entries that differ by {asymmetry:g}")
    return np.asarray((cov + cov.T) / 2)
