"""The eigenbasis of a sample of curves: mean, eigenfunctions, eigenvalues, and scores with respect to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigh

from fdadp._common.argument_checks import numbers, whole
from fdadp._common.typing import ArrayLike, BoolArray, FloatArray
from fdadp.errors import InputError
from fdadp.functional.quadrature import quadrature_weights
from fdadp.functional.tables.curve_inputs import check_finite
from fdadp.functional.tables.curve_sample import Curves, as_grid

RIDGE = 1e-6
"""Least noise variance in conditional scores, relative to the mean variance of the kept components."""


@dataclass(frozen=True)
class Eigenbasis:
    """Mean and leading eigenfunctions of curves on one grid.

    Inner products are ``⟨f, g⟩ = Σ_j weights_j f(t_j) g(t_j)``, an approximation of ``∫ f g dt``.

    Attributes
    ----------
    grid : ndarray of shape (T,)
    weights : ndarray of shape (T,)
        Quadrature weights, in units of the grid.
    mean : ndarray of shape (T,)
    functions : ndarray of shape (K, T)
        Of unit norm; in each the entry of largest absolute value is positive. Orthogonal, but for
        :func:`~fdadp.functional.fpca.ssvd_eigenbasis`, whose functions are so only nearly.
    values : ndarray of shape (K,)
        Eigenvalues of the covariance operator (variances of scores), in units of the curves squared times the grid.
    noise_variance : float
        Variance of the white noise at each point, in units of the curves squared.
    explained_ratio : ndarray of shape (K,)
        Share of each component in the sum of all positive eigenvalues.

    References
    ----------
    Ramsay & Silverman (2005), *Functional Data Analysis*, chapter 8, doi:10.1007/b98888.

    Examples
    --------
    >>> import numpy as np
    >>> from fdadp.functional.fpca import dense_eigenbasis
    >>> t = np.linspace(0, 1, 51)
    >>> basis = dense_eigenbasis(np.zeros(51), np.minimum.outer(t, t), t, n_components=2)
    >>> basis.functions.shape, (basis.functions**2 @ basis.weights).round(6)
    ((2, 51), array([1., 1.]))
    """

    grid: FloatArray
    weights: FloatArray
    mean: FloatArray
    functions: FloatArray
    values: FloatArray
    noise_variance: float
    explained_ratio: FloatArray

    def __post_init__(self) -> None:
        # One layout in memory: some BLAS kernels round strided operands in another order, and a file keeps no strides.
        object.__setattr__(self, "functions", np.ascontiguousarray(self.functions))

    @property
    def n_components(self) -> int:
        """K, the number of components kept."""
        return int(self.values.size)

    def scores(self, curves: ArrayLike) -> FloatArray:
        """Projections ``∫ (Y_i − μ) φ_k``.

        Parameters
        ----------
        curves : array_like of shape (n, T)
            Complete curves on ``grid``.

        Returns
        -------
        ndarray of shape (n, K)

        Raises
        ------
        InputError
            Not of T columns, or not finite.
        """
        values = self._check(curves)
        check_finite(Curves(values, self.grid), "curves")
        return np.asarray((values - self.mean) @ (self.functions * self.weights).T)

    def conditional_scores(self, curves: ArrayLike) -> FloatArray:
        """Best linear predictions of the scores from the observed points of each curve.

        ``(Φ'Φ + σ² Λ⁻¹)⁻¹ Φ'(y − μ)`` with the rows of Φ ``(|O|, K)`` at which the curve was observed: the
        conditional expectation if scores and noise are Gaussian. On complete curves with equal weights w
        this is the projection times ``λ / (λ + σ² w)``, the shrinkage of ``fpca.face``.

        Parameters
        ----------
        curves : array_like of shape (n, T)
            NaN where a curve was not observed.

        Returns
        -------
        ndarray of shape (n, K)

        Raises
        ------
        InputError
            A curve without any observed point, or infinite values.

        References
        ----------
        Yao, Müller & Wang (2005), doi:10.1198/016214504000001745, equation (5).
        """
        values, observed = self._check_observed(curves)
        centred = np.where(observed, values - self.mean, 0.0)
        return np.asarray(np.linalg.solve(self._precision(observed), (centred @ self.functions.T)[..., None])[..., 0])

    def conditional_covariance(self, curves: ArrayLike) -> FloatArray:
        """Covariance of the scores of each curve given its observed points, ``σ² (Φ'Φ + σ² Λ⁻¹)⁻¹``; (n, K, K).

        What the observations leave open about a curve, and so what imputed values are uncertain by: two imputed
        values of curve i at s and t have the covariance ``φ(s)' V_i φ(t)``. Only which points were observed matters.

        Parameters
        ----------
        curves : array_like of shape (n, T)
            NaN where a curve was not observed.

        Raises
        ------
        InputError
            As :meth:`conditional_scores`.
        """
        _, observed = self._check_observed(curves)
        patterns, which = np.unique(observed, axis=0, return_inverse=True)
        return np.asarray(self._noise * np.linalg.inv(self._precision(patterns))[which.reshape(-1)])

    def conditional_variance(self, curves: ArrayLike) -> FloatArray:
        """Pointwise variance of the reconstructions from :meth:`conditional_scores`, shape (n, T).

        ``φ(t)' V_i φ(t)`` with V from :meth:`conditional_covariance`. Mean, functions and eigenvalues are taken as
        known, and what lies outside the kept components is not in it: see :attr:`left_out_variance`.
        """
        covariance = self.conditional_covariance(curves)
        return np.asarray(np.einsum("kt,nkl,lt->nt", self.functions, covariance, self.functions, optimize=True))

    @property
    def left_out_variance(self) -> float:
        """Variance of the curves outside the kept components, averaged over the domain, by the shares explained."""
        kept = float(self.explained_ratio.sum())
        return float(self.values.sum()) * max(1 / kept - 1, 0.0) / float(self.weights.sum())

    def reconstruct(self, scores: ArrayLike) -> FloatArray:
        """Curves ``μ + Σ_k ξ_k φ_k``, shape (n, T), from scores (n, K)."""
        xi = numbers(scores, "scores")
        if xi.ndim != 2 or xi.shape[1] != self.n_components:
            raise InputError(f"scores must have shape (n, {self.n_components}), got {xi.shape}")
        return np.asarray(self.mean + xi @ self.functions)

    def covariance(self) -> FloatArray:
        """The covariance ``Σ_k λ_k φ_k(s) φ_k(t)`` of the kept components, without noise; shape (T, T)."""
        return np.asarray((self.functions.T * self.values) @ self.functions)

    def evaluate(self, t: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Mean (T',) and eigenfunctions (K, T') at other points, by cubic interpolation.

        Raises
        ------
        InputError
            A point that is not finite or lies outside the grid.
        """
        points = np.atleast_1d(np.asarray(t, dtype=np.float64))
        low, high = float(self.grid[0]), float(self.grid[-1])
        outside = ~((points >= low) & (points <= high))
        if points.ndim != 1 or outside.any():
            found = f"shape {points.shape}" if points.ndim != 1 else f"{points[outside][0]:g}"
            raise InputError(f"t must be points within [{low:g}, {high:g}], got {found}")
        if np.array_equal(points, self.grid):
            return self.mean.copy(), self.functions.copy()
        from scipy.interpolate import CubicSpline

        rows = np.vstack((self.mean, self.functions))
        at = np.asarray(CubicSpline(self.grid, rows, axis=1)(points), dtype=np.float64)
        return at[0], at[1:]

    @property
    def projection(self) -> FloatArray:
        """Scores are ``(curves - mean) @ projection``; shape (T, K)."""
        return (self.functions * self.weights).T

    def on_grid(self, grid: ArrayLike) -> Eigenbasis:
        """Return the same basis on another grid within the domain, with trapezoidal weights there."""
        points = np.asarray(grid, dtype=np.float64)
        mean, functions = self.evaluate(points)
        return replace(self, grid=points, weights=quadrature_weights(points), mean=mean, functions=functions)

    def truncate(self, n_components: int) -> Eigenbasis:
        """Keep the first components only; the noise variance stays what it was."""
        k = count_components(self.values, n_components)
        return replace(
            self, functions=self.functions[:k], values=self.values[:k], explained_ratio=self.explained_ratio[:k]
        )

    def gram(self, observed: BoolArray) -> FloatArray:
        """``Φ'Φ`` over the points of each row of a mask (n, T), shape (n, K, K)."""
        k = self.n_components
        products = (self.functions[:, None] * self.functions[None]).reshape(k * k, -1)
        return np.asarray((observed.astype(np.float64) @ products.T).reshape(-1, k, k))

    def _precision(self, observed: BoolArray) -> FloatArray:
        return self.gram(observed) + np.diag(self._noise / self.values)

    @property
    def _noise(self) -> float:
        """Noise variance; where none was estimated a ridge, so that few points can be solved for many scores."""
        return max(self.noise_variance, RIDGE * float(self.values.sum() / self.weights.sum()))

    def _check(self, curves: ArrayLike) -> FloatArray:
        values = np.asarray(curves, dtype=np.float64)
        if values.ndim != 2 or values.shape[1] != self.grid.size:
            raise InputError(f"curves must have shape (n, {self.grid.size}), got {values.shape}")
        return values

    def _check_observed(self, curves: ArrayLike) -> tuple[FloatArray, BoolArray]:
        values = self._check(curves)
        check_observed(values)
        return values, ~np.isnan(values)


def check_observed(values: FloatArray, name: str = "curves", at_least: int = 1) -> None:
    """Refuse infinite values and curves with fewer observed points than `at_least`.

    Raises
    ------
    InputError
        Naming the curve.
    """
    for i, j in np.argwhere(np.isinf(values)):
        raise InputError(f"{name} must be finite or NaN (missing), got {values[i, j]} in curve {i} at position {j}")
    count = (~np.isnan(values)).sum(axis=1)
    for i in np.flatnonzero(count < at_least):
        raise InputError(f"{name} must have at least {at_least} observed point(s) each, got {count[i]} in curve {i}")


def grid_weights(grid: FloatArray, rule: str = "trapezoid") -> FloatArray:
    """Quadrature weights for eigenbases: a rule of :mod:`fdadp.functional.quadrature`, or ``"equal"``, (b − a)/T each.

    Equal weights on an even grid make the eigenvectors of refund's FACE and SVD, of unit Euclidean length,
    orthonormal functions.
    """
    if rule == "equal":
        return np.full(grid.size, (grid[-1] - grid[0]) / grid.size)
    return quadrature_weights(grid, rule)


def count_components(values: FloatArray, n_components: float, max_components: int | None = None) -> int:
    """How many components to keep.

    Parameters
    ----------
    values : ndarray of shape (m,)
        Eigenvalues, decreasing, all positive.
    n_components : int or float
        An integer is the number itself. A float in (0, 1] is the share of variance to explain: the first
        number whose cumulative share exceeds it (as in refund), all of them for 1.0.
    max_components : int, optional
        Cap for the second form.

    Raises
    ------
    InputError
        Not such a number, or more components asked for than there are.
    """
    most = values.size
    if most == 0:
        raise InputError("the covariance must have at least one positive eigenvalue, got none: the curves do not vary")
    if max_components is not None:
        most = min(most, whole(max_components, "max_components"))
    if _is_int(n_components):
        if not 1 <= n_components <= most:
            raise InputError(f"n_components must be at least 1 and at most {most} here, got {n_components}")
        return int(n_components)
    if not isinstance(n_components, (float, np.floating)) or not 0 < n_components <= 1:
        raise InputError(
            f"n_components must be an integer of at least 1 or a share of variance in (0, 1], got {n_components!r}"
        )
    share = np.cumsum(values) / values.sum()
    enough = np.flatnonzero(share > n_components)
    return min(int(enough[0]) + 1 if enough.size else values.size, most)


def minimum_near(f: Callable[[float], float], grid: FloatArray, xatol: float = 1e-8) -> float:
    """Where a function is least, to `xatol`, about the best point of a grid."""
    from scipy.optimize import minimize_scalar

    best = int(np.argmin([f(float(x)) for x in grid]))
    around = (grid[max(best - 1, 0)], grid[min(best + 1, grid.size - 1)])
    return float(minimize_scalar(f, bounds=around, method="bounded", options={"xatol": xatol}).x)


def significant(values: FloatArray) -> int:
    """How many of some decreasing eigenvalues are positive beyond rounding."""
    return int((values > np.abs(values).max() * values.size * np.finfo(float).eps).sum())


def oriented(functions: FloatArray) -> FloatArray:
    """Turn each row (K, T) so that its entry of largest absolute value is positive."""
    largest = functions[np.arange(len(functions)), np.abs(functions).argmax(axis=1)]
    return np.asarray(functions * np.where(largest < 0, -1.0, 1.0)[:, None])


def _is_int(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


# Eigenbasis of densely observed curves, straight from their covariance.


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
    root = _roots(weights)
    values, vectors, ratio = leading(covariance * root[:, None] * root, n_components, max_components)
    return Eigenbasis(grid, weights, mean, oriented(vectors.T / root), values, 0.0, ratio)


def leading(
    matrix: FloatArray, n_components: float, max_components: int | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Leading eigenvalues (K,) and eigenvectors (p, K) of a symmetric matrix, and the share of each in all positive."""
    values, vectors = eigh(matrix)
    values, vectors = values[::-1], vectors[:, ::-1]
    values = values[: significant(values)]
    k = count_components(values, n_components, max_components)
    return values[:k].copy(), vectors[:, :k], values[:k] / values.sum()


AT_ONCE = 2**20
"""Numbers of curves that are worked on at once."""
MANY, FEW = 1000, 0.02
"""Curves and points from which on so few components, as a share of either, are looked for alone."""


def few_of_many(n_components: float | None, max_components: int | None, values: FloatArray) -> int | None:
    """How many components are looked for, where that is a small part of all there are; else None."""
    least = min(values.shape)
    if _is_int(n_components) and n_components is not None and max_components is None and least >= MANY:
        return int(n_components) if 1 <= n_components <= FEW * least else None
    return None


def few_of_curves(values: FloatArray, mean: FloatArray, grid: FloatArray, k: int, quadrature: str) -> Eigenbasis:
    """What :func:`dense_eigenbasis` finds for k components, from products of the curves with vectors alone.

    Neither the covariance nor centred curves are formed: Lanczos' method (``scipy.sparse.linalg.eigsh``).
    """
    from scipy.sparse.linalg import LinearOperator, eigsh

    n, size = values.shape
    weights = grid_weights(grid, quadrature)
    root = _roots(weights)

    def covariance(vector: FloatArray) -> FloatArray:
        turned = root * vector.ravel()
        scores = values @ turned - mean @ turned
        return np.asarray(root * (scores @ values - scores.sum() * mean) / (n - 1))

    operator = LinearOperator((size, size), matvec=covariance, dtype=np.float64)
    found, vectors = eigsh(operator, k=k, which="LA", v0=np.cos(np.arange(size)), tol=0)
    order, total, step = np.argsort(-found), 0.0, max(AT_ONCE // size, 1)
    for start in range(0, n, step):
        total += float((((values[start : start + step] - mean) * root) ** 2).sum()) / (n - 1)
    found = found[order]
    count_components(found[found > found[0] * min(n, size) * np.finfo(float).eps], k)
    return Eigenbasis(grid, weights, mean, oriented(vectors[:, order].T / root), found, 0.0, found / total)


def _roots(weights: FloatArray) -> FloatArray:
    root = np.sqrt(weights)
    if not (root > 0).all():
        raise InputError(f"quadrature weights must be positive, got {weights.min():g} at {weights.argmin()}")
    return np.asarray(root)


def check_moments(
    mean: ArrayLike, covariance: ArrayLike, grid: ArrayLike | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Check mean (T,), covariance (T, T) and grid (T,); the covariance comes back symmetrised."""
    cov = check_covariance(covariance)
    return check_mean(mean, len(cov)), cov, as_grid(grid, len(cov))


def check_mean(mean: ArrayLike, size: int) -> FloatArray:
    """Check a mean curve (T,); raises InputError."""
    mu = np.asarray(mean, dtype=np.float64)
    if mu.shape != (size,) or not np.isfinite(mu).all():
        raise InputError(f"mean must be {size} finite numbers, one per grid point, got shape {mu.shape}")
    return mu


def check_covariance(covariance: ArrayLike) -> FloatArray:
    """Check a covariance matrix (T, T), T >= 2, and symmetrise it."""
    cov = np.asarray(covariance, dtype=np.float64)
    if cov.ndim != 2 or cov.shape[0] != cov.shape[1] or len(cov) < 2:
        raise InputError(f"covariance must be a square matrix of at least 2 rows, got shape {cov.shape}")
    if not np.isfinite(cov).all():
        i, j = (int(b) for b in np.argwhere(~np.isfinite(cov))[0])
        raise InputError(f"covariance must be finite, got {cov[i, j]} at ({i}, {j})")
    if np.array_equal(cov, cov.T):
        return cov.copy()
    asymmetry = float(np.abs(cov - cov.T).max())
    if asymmetry > 1e-8 * float(np.abs(cov).max()):
        raise InputError(f"covariance must be symmetric, got entries that differ by {asymmetry:g}")
    return np.asarray((cov + cov.T) / 2)
