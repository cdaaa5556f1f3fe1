"""Smoothed singular value decomposition: eigenfunctions by a penalised power iteration, one after the other."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh

from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError
from fdadp.functional.fpca.eigenbasis import Eigenbasis, check_mean, count_components, grid_weights, oriented
from fdadp.functional.tables.curve_inputs import check_finite
from fdadp.functional.tables.curve_sample import Curves, as_grid

_ORDER = 3
_ALPHA = 1.5 ** np.arange(-20.0, 41.0)
_MAX_ITERATIONS = 15
_TOLERANCE = 1e-4


def gavish_donoho(curves: ArrayLike) -> int:
    """Number of singular values above the optimal hard threshold, as ``fpca.ssvd`` counts them.

    At least 1 and at most as many as make up 99.5 % of the sum of singular values.

    Parameters
    ----------
    curves : array_like of shape (n, T)
        Not centred, as in refund.

    References
    ----------
    Gavish & Donoho (2014), The optimal hard threshold for singular values is 4/√3, IEEE Trans. Inf. Theory 60,
    doi:10.1109/TIT.2014.2323359. (The cubic in n/T is meant for n <= T.)

    Examples
    --------
    >>> from fdadp import simulate_affr
    >>> from fdadp.functional.fpca import gavish_donoho
    >>> gavish_donoho(simulate_affr(scenario=1, n=60, seed=0).Y.data_matrix[..., 0])
    3
    """
    values = np.asarray(curves, dtype=np.float64)
    beta = values.shape[0] / values.shape[1]
    singular = np.linalg.svd(values, compute_uv=False)
    threshold = (0.56 * beta**3 - 0.95 * beta**2 + 1.82 * beta + 1.43) * np.median(singular)
    positive = singular[singular > 0]
    if positive.size == 0:
        return 1
    rank = int(np.flatnonzero(np.cumsum(positive) / positive.sum() > 0.995)[0]) + 1
    return min(max(1, int((singular > threshold).sum())), rank)


def ssvd_eigenbasis(
    curves: ArrayLike,
    grid: ArrayLike | None = None,
    *,
    n_components: float | None = None,
    max_components: int | None = None,
    quadrature: str = "trapezoid",
    mean: ArrayLike | None = None,
) -> Eigenbasis:
    """Eigenbasis by smoothed singular value decomposition, as ``refund::fpca.ssvd``.

    Each right singular vector is smoothed with a third-difference penalty whose weight is chosen by GCV in
    every step of the power iteration; then its part is taken away. The vectors are orthogonal only nearly:
    use :func:`~fdadp.functional.fpca.ssvd.sequential_scores`. Noise is not estimated (``noise_variance`` is 0).

    Parameters
    ----------
    curves : array_like of shape (n, T)
        Complete.
    grid : array_like of shape (T,), optional
        T >= 4 points, default even on [0, 1]. The penalty takes it as even.
    n_components : int, float or None
        Number of components; ``None``: :func:`gavish_donoho`. A share of variance in (0, 1]: components until
        the variances of the scores exceed it.
    max_components : int, optional
        Cap on the number found by share of variance or by the threshold.
    quadrature : {"trapezoid", "equal", "simpson", "riemann"}
        For the norm of the functions; the iteration itself is Euclidean.
    mean : array_like of shape (T,), optional
        Default: the mean curve (refund smooths it).

    Returns
    -------
    Eigenbasis
        ``values`` are the variances of the scores (divisor n − 1), not always decreasing; ``explained_ratio``
        their shares of the total variance.

    Raises
    ------
    InputError
        Shapes that do not fit, values that are not finite, fewer than 2 curves, or more components than there are.

    References
    ----------
    Huang, Shen & Buja (2008), Functional principal components analysis via penalized rank one approximation,
    Electron. J. Statist. 2, doi:10.1214/08-EJS218; ``refund::fpca.ssvd`` 0.1-38.

    Examples
    --------
    >>> from fdadp import simulate_affr
    >>> from fdadp.functional.fpca import ssvd_eigenbasis
    >>> basis = ssvd_eigenbasis(simulate_affr(scenario=1, n=60, seed=0).Y.data_matrix[..., 0], n_components=2)
    >>> basis.functions.shape
    (2, 51)
    """
    values = np.asarray(curves, dtype=np.float64)
    if values.ndim != 2 or len(values) < 2 or values.shape[1] <= _ORDER:
        raise InputError(f"curves must be at least 2, at {_ORDER + 1} points or more, got shape {values.shape}")
    points = as_grid(grid, values.shape[1])
    check_finite(Curves(values, points), "curves")
    mu = values.mean(axis=0) if mean is None else check_mean(mean, points.size)
    centred = values - mu
    weights = grid_weights(points, quadrature)
    total = float((centred**2 @ weights).sum()) / (len(values) - 1)
    limit = min(values.shape)
    if n_components is None:
        n_components = min(gavish_donoho(values), max_components or limit)
    count_components(np.ones(limit if total > 0 else 0), n_components, max_components)  # for its errors
    wanted = None if isinstance(n_components, (float, np.floating)) else int(n_components)

    vectors: list[FloatArray] = []
    variances: list[float] = []
    most = wanted or min(limit, max_components or limit)
    smoother = _PowerIteration(points.size)
    rest = centred
    scale = float(np.abs(centred).max())
    while len(vectors) < most and np.abs(rest).max() > 1e-12 * scale:
        vector = smoother.leading(rest)
        vector = oriented(vector[None] / np.sqrt(vector**2 @ weights))[0]
        euclidean = vector / np.linalg.norm(vector)
        score = rest @ euclidean
        rest = rest - np.outer(score, euclidean)
        vectors.append(vector)
        variances.append(float(np.var(score / np.linalg.norm(vector), ddof=1)))
        if wanted is None and sum(variances) > float(n_components) * total:
            break
    if wanted is not None and len(vectors) < wanted:
        raise InputError(f"n_components must be at least 1 and at most {len(vectors)} here, got {wanted}")
    spread = np.array(variances)
    return Eigenbasis(points, weights, mu, np.array(vectors), spread, 0.0, spread / total)


def sequential_scores(basis: Eigenbasis, curves: ArrayLike) -> FloatArray:
    """Scores (n, K) taken one after the other, each from what the ones before have left of the curve.

    For functions that are not quite orthogonal; with orthonormal ones, projections. Least squares at each step
    with equal weights, as in :func:`ssvd_eigenbasis`.
    """
    rest = basis._check(curves) - basis.mean
    scores = np.empty((len(rest), basis.n_components))
    for k, function in enumerate(basis.functions):
        scores[:, k] = rest @ function / (function @ function)
        rest = rest - np.outer(scores[:, k], function)
    return scores


class _PowerIteration:
    """Leading smooth right singular vector; the penalty is diagonalised once."""

    def __init__(self, size: int) -> None:
        differences = np.diff(np.eye(size), n=_ORDER, axis=0)
        penalty, self.vectors = eigh(differences.T @ differences)
        scaled = _ALPHA[:, None] * np.clip(penalty, 0.0, None)
        self.shrink = 1 / (1 + scaled)
        self.rough = scaled / (1 + scaled)
        self.freedom = 1 - self.shrink.sum(axis=1) / size

    def leading(self, curves: FloatArray) -> FloatArray:
        """Unit vector v (T,) of the penalised rank-one fit to curves (n, T)."""
        rotated = curves @ self.vectors
        old = np.linalg.svd(curves, full_matrices=False)[2][0]
        for _ in range(_MAX_ITERATIONS):
            w = rotated.T @ (curves @ old)
            gcv = np.linalg.norm(w * self.rough, axis=1) / self.freedom
            new = self.vectors @ (w * self.shrink[int(gcv.argmin())])
            new /= np.linalg.norm(new)
            change = float(((old - new) ** 2).sum())
            old = new
            if change <= _TOLERANCE:
                break
        return np.asarray(old)
