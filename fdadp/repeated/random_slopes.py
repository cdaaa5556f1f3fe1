"""Random functions of persons with slopes: ``c_ij = B'x_ij + Σ_a z_ija b_ia + e_ij``, q functions a person.

Rows are whitened by R. A person then has the information ``Z_i'Z_i ⊗ I``. All that is needed of the persons with one
``Z'Z`` is a moment of their ``Z_i'(X_i, C_i)``: the cost grows with the number of distinct designs, not of persons.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fdadp._common.symmetric_matrices import root_of
from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import InputError
from fdadp.repeated.fixed_effects import Weighed
from fdadp.repeated.person_sums import PersonSums
from fdadp.repeated.reml_search import LevelCovariances, over_factors


@dataclass(frozen=True, eq=False)
class SlopeSums:
    """Person sums by distinct design: E designs of q random functions, I persons, p features, k functions along t.

    Attributes
    ----------
    sums : PersonSums
    designs : ndarray of shape (E, q, q)
        Distinct ``Z_i'Z_i``.
    design_of : ndarray of shape (I,)
    persons : ndarray of shape (E,)
    vectors : ndarray of shape (I, q, p + k)
        ``Z_i'(X_i, C_i)``.
    moments : ndarray of shape (E, q (p + k), q (p + k))
        Sums over persons of one design of the products of these vectors; empty beside loads.
    """

    sums: PersonSums
    designs: FloatArray
    design_of: IntArray
    persons: IntArray
    vectors: FloatArray
    moments: FloatArray

    @property
    def q(self) -> int:
        """Number of random functions."""
        return int(self.designs.shape[1])

    def of(self, sums: PersonSums, vectors: FloatArray) -> SlopeSums:
        """The same designs of persons with other rows."""
        flat = vectors.reshape(len(vectors), -1)
        own = [flat[self.design_of == e] for e in range(len(self.designs))]
        return replace(self, sums=sums, vectors=vectors, moments=np.stack([part.T @ part for part in own]))

    def only(self, kept: Sequence[int]) -> SlopeSums:
        """Sums for some of the random functions."""
        own = list(kept)
        designs = self.designs[:, own][:, :, own]
        return replace(self, designs=designs).of(self.sums, self.vectors[:, own])


def slope_sums(sums: PersonSums, mix: FloatArray, name: str = "re(id)") -> SlopeSums:
    """Sums for random functions of q combinations of the features.

    Parameters
    ----------
    sums : PersonSums
        With ``cross=True``.
    mix : ndarray of shape (p, q)
        What the effects of differ from person to person: combinations of the features as the sums have them, so that
        the constant is the first where there is one, and the others are about their shift.
    name : str

    Raises
    ------
    InputError
        Sums without cross products, or too few rows beyond what the random functions take up.
    """
    if sums.cross is None:
        raise InputError(f"{name}: slopes need sums with cross=True")
    vectors = np.einsum("aq,iav->iqv", mix, sums.cross, optimize=True)
    zz = vectors[:, :, : sums.p] @ mix
    size = np.sqrt(np.einsum("iaa->a", zz))
    rounded = np.round(zz / size / size[:, None], 13).reshape(len(zz), -1) + 0.0
    _, first, design_of = np.unique(rounded, axis=0, return_index=True, return_inverse=True)
    design_of = design_of.reshape(-1)
    # A design of rank r takes r rows of each person.
    values = np.linalg.eigvalsh(zz[first] / size / size[:, None])
    ranks = (values > 1e-10 * values[:, -1:]).sum(axis=1)
    spare = sums.n_rows - int(ranks @ np.bincount(design_of))
    if spare < sums.k:
        raise InputError(
            f"{name}: k={sums.k} needs at least {sums.k} rows beyond those that {mix.shape[1]} random functions a "
            f"person take up, got {spare}"
        )
    found = SlopeSums(sums, zz[first], design_of, np.bincount(design_of), vectors, np.zeros((0, 0, 0)))
    return found.of(sums, vectors) if sums.loads is None else found


@dataclass(frozen=True, eq=False)
class _White:
    """Everything in coordinates in which R = I."""

    root: FloatArray
    M: FloatArray  # (E, q, k, q, k): covariance of b given rows, mean curves known
    J: FloatArray  # (E, qk, qk)
    blocks: tuple[FloatArray, FloatArray, FloatArray]  # moments xx (E, q, p, q, p), xc, cc
    totals: tuple[FloatArray, FloatArray, FloatArray]
    gram: FloatArray  # (pk, pk)
    right: FloatArray  # (p, k)
    total: float
    log_det: float
    covariance: FloatArray  # (pk, pk)
    B: FloatArray  # (p, k)
    value: float


def _whitened(s: SlopeSums, G: FloatArray, R: FloatArray, restricted: bool) -> _White:
    p, k, q, E = s.sums.p, s.sums.k, s.q, len(s.designs)
    root = np.asarray(np.linalg.cholesky(R), dtype=np.float64)
    inverse = np.linalg.inv(root)
    turn = np.zeros((p + k, p + k))
    turn[:p, :p], turn[p:, p:] = np.eye(p), inverse
    both = np.kron(np.eye(q), turn)
    moments = (both @ s.moments @ both.T).reshape(E, q, p + k, q, p + k)
    blocks = moments[:, :, :p, :, :p], moments[:, :, :p, :, p:], moments[:, :, p:, :, p:]
    xx, xc, cc = s.sums.split(turn @ s.sums.total @ turn.T)
    Gw = np.kron(np.eye(q), inverse) @ G @ np.kron(np.eye(q), inverse).T
    J = np.einsum("eab,ij->eaibj", s.designs, np.eye(k)).reshape(E, q * k, q * k)
    inner = np.eye(q * k) + J @ Gw
    M = Gw @ np.linalg.inv(inner)
    M5 = M.reshape(E, q, k, q, k)
    gram = np.einsum("ab,ij->aibj", xx, np.eye(k)) - np.einsum("eqarb,eqirj->aibj", blocks[0], M5, optimize=True)
    gram = gram.reshape(p * k, p * k)
    right = xc - np.einsum("eqarj,eqirj->ai", blocks[1], M5, optimize=True)
    covariance = np.linalg.inv(gram)
    B = (covariance @ right.ravel()).reshape(p, k)
    total = float(np.trace(cc) - np.einsum("eqirj,eqirj->", blocks[2], M5))
    log_r = 2 * float(np.log(np.diag(root)).sum())
    log_det = s.sums.n_rows * log_r + float(s.persons @ np.linalg.slogdet(inner)[1])
    value = log_det + total - float((right * B).sum())
    if restricted:
        value += float(np.linalg.slogdet(gram)[1]) - p * log_r
    return _White(root, M5, J, blocks, (xx, xc, cc), gram, right, total, log_det, covariance, B, value)


def weighed_with_slopes(s: SlopeSums, levels: LevelCovariances) -> Weighed:
    """Normal equations of a curve on Φ for each feature, at given covariances."""
    w, p, k = _whitened(s, levels.G, levels.R, True), s.sums.p, s.sums.k
    back = np.linalg.inv(w.root)
    gram = np.einsum("aibj,il,jm->albm", w.gram.reshape(p, k, p, k), back, back, optimize=True)
    return Weighed(gram, w.right @ back, w.total, w.log_det)


def slope_deviance_and_gradient(
    s: SlopeSums, G: FloatArray, R: FloatArray, *, restricted: bool = True
) -> tuple[float, FloatArray, FloatArray]:
    """-2 log (restricted) likelihood and its derivatives in G (qk, qk), function by function, and R (k, k)."""
    w = _whitened(s, G, R, restricted)
    p, k, q, E = s.sums.p, s.sums.k, s.q, len(s.designs)
    xx, xc, cc = w.blocks
    B, M = w.B, w.M.reshape(E, q * k, q * k)
    crossed = np.einsum("ai,eqarj->eqirj", B, xc)
    left = cc - crossed - crossed.transpose(0, 3, 4, 1, 2) + np.einsum("ai,eqarb,bj->eqirj", B, xx, B, optimize=True)
    left = left.reshape(E, q * k, q * k)  # moments of Z'(C - X B)
    spread = w.covariance.reshape(p, k, p, k)
    seen = left
    if restricted:  # what estimating B adds
        seen = left + np.einsum("eqarb,aibj->eqirj", xx, spread, optimize=True).reshape(E, q * k, q * k)
    T = np.eye(q * k) - w.J @ M
    d_g = np.einsum("e,eij->ij", s.persons, T @ w.J) - np.einsum("eij,ejl,eml->im", T, seen, T, optimize=True)
    t_xx, t_xc, t_cc = w.totals
    of_rows = t_cc - B.T @ t_xc - t_xc.T @ B + B.T @ t_xx @ B
    if restricted:
        of_rows = of_rows + np.einsum("ab,aibj->ij", t_xx, spread)
    shrunk = (M @ seen).reshape(E, q, k, q, k)
    once = np.einsum("eqiqj->ij", shrunk)
    MSM = (M @ seen @ M.transpose(0, 2, 1)).reshape(E, q, k, q, k)
    twice = np.einsum("eqr,eqirj->ij", s.designs, MSM)
    open_ = np.einsum("e,eqr,eqirj->ij", s.persons, s.designs, w.M)
    d_r = s.sums.n_rows * np.eye(k) - open_ - (of_rows - once - once.T + twice)
    back = np.linalg.inv(w.root)
    wide = np.kron(np.eye(q), back)
    return w.value, wide.T @ d_g @ wide, back.T @ d_r @ back


def slope_start(s: SlopeSums) -> tuple[FloatArray, FloatArray]:
    """Where the search starts: a Cholesky factor of R (k, k), and G (qk, qk) over it, half of all variance each."""
    xx, xc, cc = s.sums.split(s.sums.total)
    R = (cc - xc.T @ np.linalg.solve(xx, xc)) / max(s.sums.n_rows - s.sums.p, 1) / 2
    scale = np.einsum("e,eaa->a", s.persons, s.designs) / s.sums.n_rows
    root = np.asarray(np.linalg.cholesky(R), dtype=np.float64)
    return root, np.asarray(np.kron(np.diag(1 / np.sqrt(s.q * scale)), np.eye(s.sums.k)), dtype=np.float64)


def slope_covariances(
    s: SlopeSums,
    *,
    restricted: bool = True,
    tolerance: float = 1e-9,
    start: tuple[FloatArray, FloatArray] | None = None,
) -> LevelCovariances:
    """REML of G (qk, qk), function by function of a person, and R (k, k), by L-BFGS over their factors."""
    if start is None:
        root, first = slope_start(s)
    else:
        root = np.asarray(np.linalg.cholesky(start[1]), dtype=np.float64)
        first = np.linalg.solve(np.kron(np.eye(s.q), root), root_of(start[0]))

    def criterion(between: Sequence[FloatArray], of_rows: FloatArray) -> tuple[float, list[FloatArray], FloatArray]:
        value, d_g, d_r = slope_deviance_and_gradient(s, between[0], of_rows, restricted=restricted)
        return value, [d_g], d_r

    (G,), R, value, steps = over_factors(criterion, root, [first], s.sums.n_rows, tolerance)
    return LevelCovariances(G, R, s.sums.noise_variance(), value, restricted, steps)


@dataclass(frozen=True, eq=False)
class SlopeEffects:
    """Mean curves and random functions at given covariances.

    Attributes
    ----------
    fixed : ndarray of shape (p, k)
        On Φ, curves and features about the shift of the sums.
    covariance : ndarray of shape (p k, p k)
    effects : ndarray of shape (I, q, k)
    posterior : ndarray of shape (E, q k, q k)
        Covariance of a person's functions given their rows, mean curves known, by design.
    """

    fixed: FloatArray
    covariance: FloatArray
    effects: FloatArray
    posterior: FloatArray


def slope_effects(s: SlopeSums, levels: LevelCovariances) -> SlopeEffects:
    """Generalised least squares of mean curves and best linear predictions of persons' functions."""
    w, p, k, q = _whitened(s, levels.G, levels.R, True), s.sums.p, s.sums.k, s.q
    inverse = np.linalg.inv(w.root)
    left = s.vectors[:, :, p:] @ inverse.T - s.vectors[:, :, :p] @ w.B
    M = w.M.reshape(-1, q * k, q * k)
    effects = np.empty_like(left)
    for e in range(len(M)):
        own = s.design_of == e
        effects[own] = (left[own].reshape(-1, q * k) @ M[e].T).reshape(-1, q, k)
    turn, wide = np.kron(np.eye(p), w.root), np.kron(np.eye(q), w.root)
    return SlopeEffects(w.B @ w.root.T, turn @ w.covariance @ turn.T, effects @ w.root.T, wide @ M @ wide.T)
