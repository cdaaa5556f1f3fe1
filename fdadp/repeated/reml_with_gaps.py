"""Repeated curves with gaps: REML of persons, rows and noise from the points that each row was observed at.

``y_ij = Φ_o (B'x_ij + b_i + u_ij) + e``, with Φ_o the rows of Φ at the observed points. The smooth error u is
eliminated from each row, ``H = (I + A K/σ²)⁻¹ A/σ²`` with ``A = Φ_o'Φ_o``, and b from each person. Rows of one person
that were observed at the same points share all matrices, so that a person of complete rows costs as one row does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import InputError
from fdadp.functional.gap_filling import fill_linear
from fdadp.repeated.fixed_effects import Weighed
from fdadp.repeated.person_sums import PersonPass
from fdadp.repeated.reml_search import LevelCovariances, level_covariances


@dataclass(frozen=True, eq=False)
class GapRows:
    """Rows with gaps: N rows, I persons, p features, k functions; E patterns of points, L pairs of person and pattern.

    Attributes
    ----------
    X : ndarray of shape (N, p)
    A : ndarray of shape (E, k, k)
        ``Φ_o'Φ_o`` of each pattern.
    points : ndarray of shape (E,)
        Observed points of each pattern.
    a : ndarray of shape (N, k)
        ``Φ_o'y``.
    energy : float
        Sum of squares of all observed values.
    pair_of : ndarray of shape (N,)
    pattern, person : ndarray of shape (L,)
        Of each pair.
    """

    X: FloatArray
    A: FloatArray
    points: FloatArray
    a: FloatArray
    energy: float
    pair_of: IntArray
    pattern: IntArray
    person: IntArray

    @property
    def persons(self) -> int:
        """I."""
        return int(self.person.max()) + 1


def gap_rows(phi: FloatArray, X: FloatArray, Y: FloatArray, persons: IntArray) -> GapRows:
    """Take up curves (N, T) that are NaN where they were not observed; persons (N,) are numbered from 0.

    Raises
    ------
    InputError
        A row without a value.
    """
    seen = np.isfinite(Y)
    if not seen.any(axis=1).all():
        raise InputError(f"Y must have values in each row, got none in row {int(np.flatnonzero(~seen.any(axis=1))[0])}")
    y = np.where(seen, Y, 0.0)
    patterns, pattern_of = np.unique(seen, axis=0, return_inverse=True)
    products = np.einsum("ti,tj->tij", phi, phi).reshape(len(phi), -1)
    A = (patterns.astype(np.float64) @ products).reshape(len(patterns), phi.shape[1], -1)
    keys, pair_of = np.unique(persons * len(patterns) + pattern_of.reshape(-1), return_inverse=True)
    return GapRows(
        X,
        A,
        patterns.sum(axis=1).astype(np.float64),
        y @ phi,
        float((y**2).sum()),
        pair_of.reshape(-1),
        keys % len(patterns),
        keys // len(patterns),
    )


def gap_rows_at(functions: FloatArray, record: IntArray, y: FloatArray, X: FloatArray, persons: IntArray) -> GapRows:
    """Take up rows that were observed at points of their own.

    Parameters
    ----------
    functions : ndarray of shape (M, k)
        Φ at each observation.
    record : ndarray of shape (M,)
        Row of X of each observation; does not decrease.
    y : ndarray of shape (M,)
    X : ndarray of shape (N, p)
    persons : ndarray of shape (N,)

    Raises
    ------
    InputError
        A row without an observation.
    """
    points = np.bincount(record, minlength=len(X))
    if not points.all():
        raise InputError(f"Y must have values in each row, got none in row {int(np.flatnonzero(points == 0)[0])}")
    ends = np.cumsum(points)
    A = np.stack([own.T @ own for own in np.split(functions, ends[:-1])])
    a = np.add.reduceat(functions * y[:, None], ends - points)
    rows = np.arange(len(X))
    return GapRows(X, A, points.astype(np.float64), a, float(y @ y), rows, rows, persons)


def _added(values: FloatArray, at: IntArray, size: int) -> FloatArray:
    out = np.zeros((size, *values.shape[1:]))
    np.add.at(out, at, values)
    return out


@dataclass(frozen=True, eq=False)
class GapFit:
    """What rows with gaps say at given covariances.

    Attributes
    ----------
    deviance : float
        -2 log restricted likelihood, without the constant in π.
    fixed : ndarray of shape (p, k)
    covariance : ndarray of shape (p k, p k)
    effects : ndarray of shape (I, k)
    d_g, d_k : ndarray of shape (k, k)
    d_noise : float
        Derivatives in G, K and σ².
    weighed : Weighed
    """

    deviance: float
    fixed: FloatArray
    covariance: FloatArray
    effects: FloatArray
    d_g: FloatArray
    d_k: FloatArray
    d_noise: float
    weighed: Weighed


def gap_fit(rows: GapRows, G: FloatArray, K: FloatArray, noise: float) -> GapFit:
    """Restricted likelihood, its gradient, mean curves and effects of persons at covariances G, K (k, k) and σ²."""
    p, k, L, I = rows.X.shape[1], len(G), len(rows.pattern), rows.persons  # noqa: E741
    eye, pair, who = np.eye(k), rows.pair_of, rows.person[rows.pair_of]
    inverse = np.linalg.inv(eye + rows.A @ K / noise)
    H, C = (inverse @ rows.A / noise)[rows.pattern], (K @ inverse / noise)[rows.pattern]
    A = rows.A[rows.pattern]
    x, n = _added(rows.X, pair, L), np.bincount(pair, minlength=L).astype(np.float64)
    xx = _added(rows.X[:, :, None] * rows.X[:, None, :], pair, L)
    h = rows.a / noise - np.einsum("nij,nj->ni", A[pair], np.einsum("nij,nj->ni", C[pair], rows.a)) / noise
    J = _added(n[:, None, None] * H, rows.person, I)
    S = _added(np.einsum("la,lij->laij", x, H), rows.person, I)
    inner = eye + G @ J
    M = np.linalg.solve(inner, np.broadcast_to(G, J.shape))
    T = (M[:, None] @ S.transpose(0, 1, 3, 2)).transpose(0, 2, 1, 3)  # (I, k, p, k): M S'
    hi = _added(h, who, I)
    gram = np.einsum("lab,lij->aibj", xx, H, optimize=True) - np.einsum("maij,mjbl->aibl", S, T, optimize=True)
    gram = gram.reshape(p * k, p * k)
    right = rows.X.T @ h - np.einsum("mibj,mi->bj", T, hi)
    V = np.linalg.inv(gram)
    B = (V @ right.ravel()).reshape(p, k)
    b = np.einsum("mij,mj->mi", M, hi) - np.einsum("mibj,bj->mi", T, B)
    mean = rows.X @ B + b[who]
    left = rows.a - np.einsum("nij,nj->ni", A[pair], mean)
    w = mean + np.einsum("nij,nj->ni", C[pair], left)
    g = h - np.einsum("nij,nj->ni", H[pair], mean)
    fitted = rows.energy - 2 * float((rows.a * w).sum()) + float(np.einsum("ni,nij,nj->", w, A[pair], w, optimize=True))
    # E = x' ⊗ I - T: what a row's mean does after its person's effect is predicted.
    spread, by = V.reshape(p, k, p, k), rows.person
    TV = T.reshape(I, k, p * k) @ V
    once = (np.einsum("la,aibj->libj", x, spread).reshape(L, k, p * k)) @ T[by].reshape(L, k, p * k).transpose(0, 2, 1)
    EVE = np.einsum("lab,aibj->lij", xx, spread, optimize=True) - once - once.transpose(0, 2, 1)
    EVE += n[:, None, None] * (TV @ T.reshape(I, k, p * k).transpose(0, 2, 1))[by]
    open_ = n[:, None, None] * M[by] + EVE
    D = (eye - C @ A) / noise
    d_k = np.einsum("l,lij->ij", n, H) - (H @ open_ @ H).sum(axis=0) - g.T @ g
    score = _added(g, who, I)
    # Z'(V⁻¹F) of a person: S' - J T, and its covariance.
    U = (S.transpose(0, 2, 1, 3) - (J @ T.reshape(I, k, p * k)).reshape(T.shape)).reshape(I, k, p * k)
    d_g = (J - J @ M @ J).sum(axis=0) - (U @ V @ U.transpose(0, 2, 1)).sum(axis=0) - score.T @ score
    points = rows.points[rows.pattern]
    traces = n * (points - np.einsum("lij,lji->l", A, C)) / noise
    d_noise = float(traces.sum() - np.einsum("lij,lji->", D.transpose(0, 2, 1) @ A @ D, open_)) - fitted / noise**2
    total = float(n @ points)
    log_det = total * np.log(noise) - float(n @ np.linalg.slogdet(inverse)[1][rows.pattern])
    log_det += float(np.linalg.slogdet(inner)[1].sum())
    squares = (rows.energy - float(np.einsum("ni,nij,nj->", rows.a, C[pair], rows.a, optimize=True))) / noise
    squares -= float(np.einsum("mi,mij,mj->", hi, M, hi, optimize=True))
    value = log_det + squares - float((right * B).sum()) + float(np.linalg.slogdet(gram)[1])
    return GapFit(value, B, V, b, d_g, d_k, d_noise, Weighed(gram.reshape(p, k, p, k), right, squares, log_det))


@dataclass(frozen=True, eq=False)
class GapEffects:
    """Predictions of persons beside mean curves that are known.

    Attributes
    ----------
    effects : ndarray of shape (I, k)
    opened : ndarray of shape (I, k, k)
        Their covariance.
    weights : ndarray of shape (L, k, k)
        What the predictions of a pair's person take of a row's mean coefficients: ``M H``.
    smooth : ndarray of shape (N, k)
        Smooth errors of rows, predicted from what these have beside means and predictions of persons.
    edf : float
        Degrees of freedom of the predictions.
    """

    effects: FloatArray
    opened: FloatArray
    weights: FloatArray
    smooth: FloatArray
    edf: float


def gap_effects(rows: GapRows, G: FloatArray, K: FloatArray, noise: float, mean: FloatArray) -> GapEffects:
    """Best linear predictions beside mean coefficients (N, k) of rows."""
    eye, pair, who = np.eye(len(G)), rows.pair_of, rows.person[rows.pair_of]
    inverse = np.linalg.inv(eye + rows.A @ K / noise)
    H, C, A = (part[rows.pattern] for part in (inverse @ rows.A / noise, K @ inverse / noise, rows.A))
    n = np.bincount(pair, minlength=len(rows.pattern)).astype(np.float64)
    left = rows.a - np.einsum("nij,nj->ni", A[pair], mean)
    h = left / noise - np.einsum("nij,nj->ni", A[pair], np.einsum("nij,nj->ni", C[pair], left)) / noise
    J = _added(n[:, None, None] * H, rows.person, rows.persons)
    M = np.asarray(np.linalg.solve(eye + G @ J, np.broadcast_to(G, J.shape)), dtype=np.float64)
    b = np.einsum("mij,mj->mi", M, _added(h, who, rows.persons))
    left = left - np.einsum("nij,nj->ni", A[pair], b[who])
    smooth = np.einsum("nij,nj->ni", C[pair], left)
    return GapEffects(b, M, M[rows.person] @ H, smooth, float(np.einsum("mij,mji->", M, J)))


def gap_covariances(
    phi: FloatArray, X: FloatArray, Y: FloatArray, persons: IntArray, grid: FloatArray, *, tolerance: float = 1e-7
) -> tuple[LevelCovariances, GapFit]:
    """REML of G, K and σ² from curves with gaps, by L-BFGS over factors; the start is from curves filled by lines.

    Parameters
    ----------
    phi : ndarray of shape (T, k)
    X : ndarray of shape (N, p)
        With its constant.
    Y : ndarray of shape (N, T)
    persons : ndarray of shape (N,)
        Numbered from 0.
    grid : ndarray of shape (T,)
    tolerance : float
        Of the gradient an observed value.

    Returns
    -------
    levels : LevelCovariances
        With ``R = K + σ² I``.
    fit : GapFit
    """
    filled = PersonPass(phi, X.shape[1], intercept=False).add(X, fill_linear(Y, grid), persons).sums()
    return gap_search(gap_rows(phi, X, Y, persons), level_covariances(filled), tolerance=tolerance)


def gap_search(
    rows: GapRows, first: LevelCovariances, *, tolerance: float = 1e-7, persons: bool = True
) -> tuple[LevelCovariances, GapFit]:
    """REML as :func:`gap_covariances`, from a start; without `persons` G is 0."""
    from scipy.optimize import minimize

    k, count = len(first.R), float(rows.points[rows.pattern[rows.pair_of]].sum())
    noise = max(first.noise_variance, 1e-6 * float(np.trace(first.R)) / k)

    def root(covariance: FloatArray) -> FloatArray:
        values, vectors = np.linalg.eigh(np.linalg.solve(unit, np.linalg.solve(unit, covariance).T))
        return np.asarray(vectors * np.sqrt(np.maximum(values, 1e-4)))

    unit = np.linalg.cholesky(first.R)
    own = root(first.G) if persons else np.zeros((k, 0))
    start = np.concatenate((own.ravel(), root(first.smooth_rows).ravel(), [0.0]))

    def factors(z: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        a, c = (unit @ part.reshape(k, -1) for part in (z[: own.size], z[own.size : -1]))
        return a, c, noise * float(np.exp(z[-1]))

    def objective(z: Any) -> Any:
        a, c, s2 = factors(z)
        try:
            at = gap_fit(rows, a @ a.T, c @ c.T, s2)
        except np.linalg.LinAlgError:  # a step too far
            return 1e300, np.zeros_like(z)
        parts = (2 * unit.T @ at.d_g @ a).ravel(), (2 * unit.T @ at.d_k @ c).ravel(), [s2 * at.d_noise]
        return at.deviance / count, np.concatenate(parts) / count

    options: Any = {"maxiter": 2000, "maxfun": 4000, "maxcor": 40, "ftol": 1e-15, "gtol": tolerance}
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
    a, c, s2 = factors(found.x)
    fit = gap_fit(rows, a @ a.T, c @ c.T, s2)
    return LevelCovariances(a @ a.T, c @ c.T + s2 * np.eye(k), s2, fit.deviance, True, int(found.nit)), fit
