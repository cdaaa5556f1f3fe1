"""The model of two levels from person sums: one rotation leaves k random-intercept models of one number each.

``G P = R P Λ`` with ``P'RP = I``: in the coordinates ``P'c`` the contrasts within persons are white, and a mean of n
rows has the weight ``1 / (1 + n λ_l)``. G may be singular: it is never inverted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from fdadp._common.typing import FloatArray
from fdadp.repeated.person_sums import PersonSums


@dataclass(frozen=True, eq=False)
class Rotation:
    """Person sums in the coordinates of one pair of covariances; l counts the k scalar models.

    Attributes
    ----------
    ratios : ndarray of shape (k,)
        λ: variance between persons over that of a row.
    turn : ndarray of shape (k, k)
        P.
    weights : ndarray of shape (D, k)
        ``1 / (1 + n λ)`` of each number of rows.
    normal : ndarray of shape (k, p, p)
        Normal matrix ``A_l`` of each model.
    right : ndarray of shape (k, p)
        Its right side.
    beta : ndarray of shape (k, p)
        Its solution.
    within : tuple of ndarray
        Blocks xx (p, p), xc (p, k) and cc (k, k) of the scatter within persons, rotated.
    between : tuple of ndarray
        The same of means, by number of rows: (D, p, p), (D, p, k), (D, k, k).
    """

    ratios: FloatArray
    turn: FloatArray
    weights: FloatArray
    normal: FloatArray
    right: FloatArray
    beta: FloatArray
    within: tuple[FloatArray, FloatArray, FloatArray]
    between: tuple[FloatArray, FloatArray, FloatArray]

    @property
    def quadratic(self) -> FloatArray:
        """Weighted sums of squares of the rotated coefficients, before any regression; shape (k,)."""
        return np.asarray(np.diag(self.within[2]) + np.einsum("dl,dll->l", self.weights, self.between[2]))


def rotate(sums: PersonSums, G: FloatArray, R: FloatArray) -> Rotation:
    """Rotate person sums for covariances of persons G and of rows R, both (k, k), R positive definite.

    Raises
    ------
    numpy.linalg.LinAlgError
        R is not positive definite.
    """
    ratios, P = eigh(G, R)
    ratios = np.maximum(ratios, 0.0)
    weights = 1 / (1 + sums.sizes[:, None] * ratios)
    w_xx, w_xc, w_cc = sums.split(sums.within)
    m_xx, m_xc, m_cc = sums.split(sums.between)
    within, between = (w_xx, w_xc @ P, P.T @ w_cc @ P), (m_xx, m_xc @ P, P.T @ m_cc @ P)
    normal = w_xx + np.einsum("dl,dab->lab", weights, m_xx)
    right = within[1].T + np.einsum("dl,dal->la", weights, between[1])
    beta = np.linalg.solve(normal, right[..., None])[..., 0]
    return Rotation(ratios, P, weights, normal, right, beta, within, between)


def deviance(sums: PersonSums, G: FloatArray, R: FloatArray, *, restricted: bool = True) -> float:
    """-2 log (restricted) likelihood of the coefficients on Φ; the constant ``(N - p) k log 2π`` is left out.

    For the likelihood itself the constant has N in place of N - p.
    """
    if sums.loads is not None:
        return _joint(sums, G, R, restricted)[0]
    return _value(sums, rotate(sums, G, R), R, restricted)


def _joint(
    sums: PersonSums, G: FloatArray, R: FloatArray, restricted: bool
) -> tuple[float, FloatArray, FloatArray, FloatArray]:
    """The same where loads tie the k models together: value, θ, its covariance, and the covariance REML counts."""
    assert sums.loads is not None
    np.linalg.cholesky(R)
    precisions, log_det = precisions_of(sums, G, R)
    gram, right, total = sums.moments.normal(precisions)
    noise, z = sums.noise_variance(), slice(len(gram) - sums.loads.count, None)
    if noise > 0:
        gram[z, z] += sums.loads.gram / noise
        right[z] += sums.loads.right / noise
        total += sums.loads.outside()[0] / noise
    seen = sums.seen
    own = seen.T @ gram @ seen
    covariance = seen @ np.linalg.inv(own) @ seen.T
    theta = covariance @ right
    value = log_det + total - float(right @ theta)
    if not restricted:
        return value, theta, covariance, np.zeros_like(covariance)
    return value + float(np.linalg.slogdet(own)[1]), theta, covariance, covariance


def precisions_of(sums: PersonSums, G: FloatArray, R: FloatArray) -> tuple[FloatArray, float]:
    """Inverses of R and of ``R + n G``, (1 + D, k, k), and the log determinant of the covariance of all rows."""
    covariances = np.concatenate((R[None], R + sums.sizes[:, None, None] * G))
    counts = np.concatenate(([sums.n_rows - sums.n_persons], sums.persons))
    return np.asarray(np.linalg.inv(covariances), dtype=np.float64), float(counts @ np.linalg.slogdet(covariances)[1])


def _value(sums: PersonSums, at: Rotation, R: FloatArray, restricted: bool) -> float:
    rows = sums.n_rows - sums.p if restricted else sums.n_rows
    value = rows * np.linalg.slogdet(R)[1] - float((sums.persons @ np.log(at.weights)).sum())
    value += float(at.quadratic.sum() - (at.right * at.beta).sum())
    return float(value + np.linalg.slogdet(at.normal)[1].sum()) if restricted else float(value)


def deviance_and_gradient(
    sums: PersonSums, G: FloatArray, R: FloatArray, *, restricted: bool = True
) -> tuple[float, FloatArray, FloatArray]:
    """The same with its derivatives in G and R, two symmetric (k, k) matrices; D (k³ + k p²) + k p³ operations."""
    if sums.loads is not None:
        value, theta, _, spread = _joint(sums, G, R, restricted)
        return value, *covariance_gradient(sums, G, R, theta, spread)
    at = rotate(sums, G, R)
    (w_xx, w_xc, w_cc), (m_xx, m_xc, m_cc) = at.within, at.between
    B, w, count = at.beta.T, at.weights, sums.persons[:, None]
    Q = m_cc - m_xc.transpose(0, 2, 1) @ B - B.T @ m_xc + B.T @ m_xx @ B  # moments of residuals
    E = w_cc - w_xc.T @ B - B.T @ w_xc + B.T @ w_xx @ B + np.einsum("dl,dlm,dm->lm", w, Q, w)
    h = sums.sizes[:, None] * w
    in_g, in_r = (count * h).sum(axis=0), (count * (1 - w)).sum(axis=0)
    if restricted:
        inverse = np.linalg.inv(at.normal)
        trace = np.einsum("lab,dab->dl", inverse, m_xx)
        in_g -= (h * w * trace).sum(axis=0)
        in_r += np.einsum("lab,ab->l", inverse, w_xx) + (w**2 * trace).sum(axis=0)
    d_g = np.diag(in_g) - np.einsum("dl,dlm,dm->lm", w, Q, h)  # Q holds one n already
    d_r = sums.n_rows * np.eye(sums.k) - E - np.diag(in_r)
    P = at.turn
    return _value(sums, at, R, restricted), P @ d_g @ P.T, P @ d_r @ P.T


def gls(sums: PersonSums, G: FloatArray, R: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Generalised least squares with unpenalised means on Φ: B (p, k), and the covariance of its rows (p k, p k).

    With loads: θ (p k + P,), and its covariance.
    """
    if sums.loads is not None:
        return _joint(sums, G, R, True)[1:3]
    at = rotate(sums, G, R)
    back = np.linalg.inv(at.turn)
    spread = np.einsum("lab,li,lj->aibj", np.linalg.inv(at.normal), back, back)
    size = sums.p * sums.k
    return at.beta.T @ back, spread.reshape(size, size)


def covariance_gradient(
    sums: PersonSums, G: FloatArray, R: FloatArray, theta: FloatArray, spread: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Derivatives in G and R of -2 log restricted likelihood, whatever estimated the mean curves.

    Parameters
    ----------
    sums : PersonSums
    G, R : ndarray of shape (k, k)
    theta : ndarray of shape (p k + P,)
        Mean curves on Φ, about the shift of the sums, and coefficients of loads.
    spread : ndarray of shape (p k + P, p k + P)
        Their covariance.
    """
    inverse, _ = precisions_of(sums, G, R)
    counts = np.concatenate(([sums.n_rows - sums.n_persons], sums.persons))
    own = counts[:, None, None] * inverse - inverse @ sums.moments.left(theta, spread) @ inverse
    return np.einsum("d,dij->ij", sums.sizes, own[1:]), own.sum(axis=0)
