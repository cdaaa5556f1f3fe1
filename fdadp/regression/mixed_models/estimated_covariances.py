"""What it adds to errors that covariances are estimated: Kenward and Roger's sum for any levels of random curves.

Rows fall into blocks that are independent of each other, ``V = Σ_g Σ_u Z_u Γ_g Z_u'``: level g has units u (a site, a
person, a row, a number of noise), whose loads Z_u carry its covariance Γ_g into the block. All derivatives in entries
of Γ are ``Z_u E Z_u'``, so that the products ``T = Z'V⁻¹Z`` and ``F = Z'V⁻¹X`` of all loads are enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import block_diag, eigh

from fdadp._common.symmetric_matrices import root_of
from fdadp._common.typing import FloatArray, IntArray
from fdadp.repeated.nested_sites import SiteSums
from fdadp.repeated.person_sums import PersonSums
from fdadp.repeated.reml_with_gaps import GapRows

MOST_WORK = 2e10
"""Products up to which it is counted that covariances are estimated; some seconds."""
EMPTY = 1e-4
"""Variance, beside that of rows, below which REML found none: a covariance cannot be less than 0 there."""


@dataclass(frozen=True, eq=False)
class Block:
    """Independent rows of one law, b numbers each.

    Attributes
    ----------
    loads : tuple of ndarray of shape (u, b, k)
        Z of the units of each level; u may be 0.
    features : ndarray of shape (n, b, P)
        Of rows that have some; only the sum of their products matters.
    count : float
        How many there are.
    """

    loads: tuple[FloatArray, ...]
    features: FloatArray
    count: float = 1.0

    @property
    def width(self) -> int:
        """w: columns of the loads of all units."""
        return sum(load.shape[0] * load.shape[2] for load in self.loads)


@dataclass(frozen=True, eq=False)
class VarianceLevel:
    """A covariance Γ (k, k), and its derivatives (m, k, k) in what was estimated of it.

    `held` (k, k) projects onto the directions in which Γ is not 0; None: all.
    """

    covariance: FloatArray
    basis: FloatArray
    held: FloatArray | None = None


def free_levels(*covariances: FloatArray) -> list[VarianceLevel]:
    """Levels of any covariances, of which the last is that of rows, in coordinates in which that is 1.

    Entries between two directions in which REML found no variance are at their bound: they do not vary with the rows.
    Those between such a direction and another turn the covariance, and do.
    """
    unit, out = np.asarray(np.linalg.cholesky(covariances[-1]), dtype=np.float64), []
    for covariance in covariances:
        wide, size = np.kron(np.eye(len(covariance) // len(unit)), unit), len(covariance)
        back = np.linalg.inv(wide)
        values, vectors = np.linalg.eigh(back @ covariance @ back.T)
        some = values > EMPTY
        rows, columns = (own[(some[:, None] | some)[np.tril_indices(size)]] for own in np.tril_indices(size))
        basis = np.zeros((len(rows), size, size))
        basis[np.arange(len(rows)), rows, columns] = basis[np.arange(len(rows)), columns, rows] = 1.0
        turn = wide @ vectors
        held = turn[:, some] @ (vectors.T @ back)[some]
        out.append(VarianceLevel(covariance, turn @ basis @ turn.T, held))
    return out


@dataclass(frozen=True, eq=False)
class EstimatedCovariances:
    """To first order, what estimating m numbers of covariances adds; P coefficients of mean curves.

    Attributes
    ----------
    covariance : ndarray of shape (P, P)
        C, of mean curves at known covariances.
    slopes : ndarray of shape (m, P, P)
        ``X'V⁻¹ K V⁻¹X`` for each derivative K of V.
    errors : ndarray of shape (m, m)
        Covariance of the estimated numbers, from their expected information.
    inner : ndarray of shape (P, P)
        Kenward and Roger's Λ: C grows by ``2 C Λ C``.
    added : tuple of ndarray of shape (w, w)
        What the covariance of predictions of a block's units grows by: the variance of ``Γ Z'V⁻¹`` times the
        residuals, as predictions vary with it; and the same once more in directions in which Γ is not 0, as their
        covariance at estimated values is too small by as much. Where Γ is at its bound 0, it cannot be.

    References
    ----------
    Kenward & Roger (1997), Small sample inference for fixed effects from restricted maximum likelihood,
    doi:10.2307/2533558; (2009), doi:10.1016/j.csda.2008.12.013, by which second derivatives of V are left out;
    Kackar & Harville (1984), doi:10.1080/01621459.1984.10477102.
    """

    covariance: FloatArray
    slopes: FloatArray
    errors: FloatArray
    inner: FloatArray
    added: tuple[FloatArray, ...]

    @classmethod
    def of(
        cls,
        blocks: Sequence[Block],
        levels: Sequence[VarianceLevel],
        *,
        heads: int,
        beyond: FloatArray | None = None,
    ) -> EstimatedCovariances | None:
        """At estimated covariances; None where rows say nothing of some, or that is too much work.

        Parameters
        ----------
        blocks : sequence of Block
        levels : sequence of VarianceLevel
        heads : int
            Number of first levels whose units are predicted.
        beyond : ndarray of shape (P, P), optional
            Information of the coefficients from rows whose covariance is known.
        """
        m, P = sum(len(level.basis) for level in levels), blocks[0].features.shape[2]
        widest = max(level.basis.shape[1] for level in levels)
        work = sum(block.width**2 * widest**2 + block.features.size * P for block in blocks)
        if work + m**2 * P**2 > MOST_WORK:
            return None
        seen = [_Seen.of(block, levels) for block in blocks]
        gram = sum((one.gram for one in seen), np.zeros((P, P)) if beyond is None else beyond)
        C = np.asarray(np.linalg.inv(gram), dtype=np.float64)
        slopes = np.concatenate([_slopes(seen, g, level.basis) for g, level in enumerate(levels)])
        whole, taken = _traces(seen, levels, C)
        turned = slopes @ C
        info = whole - taken - taken.T + turned.reshape(m, -1) @ turned.transpose(0, 2, 1).reshape(m, -1).T
        if not informed(info, whole):
            return None
        errors = np.asarray(2 * np.linalg.inv(info), dtype=np.float64)
        moved = np.tensordot(np.linalg.cholesky(errors).T, slopes, axes=1)
        inner = -np.einsum("tij,tlj->il", moved @ C, moved, optimize=True)
        spread = _between_entries(levels, errors)
        added = []
        for one in seen:
            Y = one.varied(spread)
            inner += np.einsum("niP,ij,njQ->PQ", one.F, Y, one.F, optimize=True)
            own = list(zip(one.units, levels[:heads], strict=False))
            G = block_diag(np.zeros((0, 0)), *[np.kron(np.eye(n), level.covariance) for n, level in own])
            M = np.eye(len(G), len(one.T)) - G @ one.T[: len(G)]
            held = [np.eye(len(x.covariance)) if x.held is None else x.held for _, x in own]
            Q = block_diag(np.zeros((0, 0)), *[np.kron(np.eye(n), x) for (n, _), x in zip(own, held, strict=True)])
            varies = M @ Y @ M.T
            added.append(varies + Q @ varies @ Q.T)
        return cls(C, slopes, errors, inner, tuple(added))

    def degrees(self, rows: FloatArray) -> float:
        """Satterthwaite's degrees of freedom of a mean curve, over all t, by the rows (T, P) that make it."""
        own = rows @ self.covariance
        changes = np.einsum("ti,aij,tj->ta", own, self.slopes, own, optimize=True)
        variance = (own * rows).sum(axis=1)
        return float(2 * (variance**2).sum() / np.einsum("ta,ab,tb->", changes, self.errors, changes, optimize=True))


def informed(information: FloatArray, whole: FloatArray) -> bool:
    """Whether an information matrix (m, m) knows of all directions, beyond what rounds in the `whole` one."""
    size = np.sqrt(np.abs(np.diag(whole)))
    return bool(size.all() and np.linalg.eigvalsh(information / size[:, None] / size).min() > 1e-9)


@dataclass(frozen=True, eq=False)
class _Seen:
    """Products of a block: T (w, w), F (n, w, P), X'V⁻¹X (P, P); units of each level, and where their loads stand."""

    T: FloatArray
    F: FloatArray
    gram: FloatArray
    units: tuple[int, ...]
    at: tuple[slice, ...]
    count: float

    @classmethod
    def of(cls, block: Block, levels: Sequence[VarianceLevel]) -> _Seen:
        V = np.zeros((block.features.shape[1],) * 2)
        for load, level in zip(block.loads, levels, strict=True):
            V += np.einsum("ubk,kl,ucl->bc", load, level.covariance, load, optimize=True)
        Z = np.hstack([load.transpose(1, 0, 2).reshape(len(V), -1) for load in block.loads])
        left, X = np.linalg.solve(V, np.hstack((Z, *block.features))), block.features
        W, own = left[:, : Z.shape[1]], left[:, Z.shape[1] :].reshape(len(V), len(X), X.shape[2])
        ends = np.cumsum([0, *(load.shape[0] * load.shape[2] for load in block.loads)]).tolist()
        gram = np.einsum("nbP,bnQ->PQ", X, own, optimize=True)
        units, at = tuple(len(load) for load in block.loads), tuple(map(slice, ends, ends[1:]))
        return cls(Z.T @ W, W.T @ X, gram, units, at, block.count)

    def products(self, values: FloatArray, g: int, h: int) -> FloatArray:
        """Of values (w, w) those of two levels, entries of each pair of units in a column: (k m, u v) of (u k, v m)."""
        u, v = self.units[g], self.units[h]
        own = values[self.at[g], self.at[h]]
        shape = u, len(own) // max(u, 1), v, own.shape[1] // max(v, 1)
        return np.asarray(own.reshape(shape).transpose(1, 3, 0, 2).reshape(shape[1] * shape[3], u * v))

    def varied(self, spread: Sequence[Sequence[FloatArray]]) -> FloatArray:
        """``Σ_rs ψ_rs E_r T E_s`` of all pairs of units, ψ the covariance of the estimates; shape (w, w)."""
        out = np.zeros_like(self.T)
        for g, u in enumerate(self.units):
            for h, v in enumerate(self.units):
                if u and v:
                    k, m = (self.at[i].stop - self.at[i].start for i in (g, h))
                    found = spread[g][h] @ self.products(self.T, g, h)
                    found = found.reshape(k // u, m // v, u, v).transpose(2, 0, 3, 1)
                    out[self.at[g], self.at[h]] = found.reshape(k, m)
        return out


def _traces(seen: Sequence[_Seen], levels: Sequence[VarianceLevel], C: FloatArray) -> tuple[FloatArray, FloatArray]:
    """``tr W K_r W K_s`` and ``tr C X'W K_r W K_s W X`` of all derivatives, two of shape (m, m)."""
    fixed = [np.einsum("niP,PQ,njQ->ij", one.F, C, one.F, optimize=True) for one in seen]
    rows: list[list[FloatArray]] = []
    for g, first in enumerate(levels):
        rows.append([])
        for h, second in enumerate(levels):
            k, m = first.basis.shape[1], second.basis.shape[1]
            both = np.zeros((2, k * m, k * m))
            for one, Q in zip(seen, fixed, strict=True):
                if one.units[g] and one.units[h]:
                    T = one.products(one.T, g, h)
                    both += np.stack((one.count * T @ T.T, one.products(Q, g, h) @ T.T))
            four = both.reshape(2, k, m, k, m)
            rows[-1].append(np.einsum("rab,scd,iacbd->irs", first.basis, second.basis, four, optimize=True))
    whole, taken = np.block(rows)
    return whole, taken


def _slopes(seen: Sequence[_Seen], g: int, basis: FloatArray) -> FloatArray:
    """``X'V⁻¹ K V⁻¹X`` of the derivatives of one level, shape (m, P, P)."""
    k, P = basis.shape[1], seen[0].F.shape[2]
    own = np.concatenate([one.F[:, one.at[g]].reshape(-1, k * P) for one in seen])
    four = (own.T @ own).reshape(k, P, k, P)
    return np.asarray(np.einsum("rab,aPbQ->rPQ", basis, four, optimize=True))


def _between_entries(levels: Sequence[VarianceLevel], errors: FloatArray) -> list[list[FloatArray]]:
    """ψ of two levels, as the matrices (k m, k m) by which entries ``T_bc`` go to ``Σ ψ_ab,cd T_bc`` at (a, d)."""
    ends, out = np.cumsum([0, *(len(level.basis) for level in levels)]).tolist(), []
    places = list(map(slice, ends, ends[1:]))
    for mine, first in zip(places, levels, strict=True):
        pairs = zip(places, levels, strict=True)
        found = [
            np.einsum("rs,rab,scd->adbc", errors[mine, own], first.basis, second.basis, optimize=True)
            for own, second in pairs
        ]
        out.append([psi.reshape(psi.shape[0] * psi.shape[1], -1) for psi in found])
    return out


# Blocks of each kind of rows.


def blocks_of_designs(
    sums: PersonSums, designs: FloatArray, design_of: IntArray, vectors: FloatArray, *, responses: bool = False
) -> list[Block]:
    """A block of q rows for each design ``Z'Z`` (E, q, q), of all its persons; and one of rows beyond these.

    Parameters
    ----------
    sums : PersonSums
    designs : ndarray of shape (E, q, q)
    design_of : ndarray of shape (I,)
    vectors : ndarray of shape (I, q, d)
        ``Z'(X, C)`` of each person, loads after them where there are some.
    responses : bool
        Whether the responses C are a last column of the features.
    """
    p, k, q, blocks = sums.p, sums.k, designs.shape[1], []
    loads = np.arange(p + k, vectors.shape[2]).reshape(k, -1)
    loads = np.hstack((loads, np.arange(p, p + k)[:, None])) if responses else loads
    used = np.concatenate((np.arange(p), loads.ravel()))
    left = sums.total[np.ix_(used, used)]
    for e, design in enumerate(designs):
        root = root_of(design)
        X = np.linalg.pinv(root, rcond=1e-7) @ vectors[design_of == e][:, :, used]
        left -= np.einsum("iqa,iqb->ab", X, X)
        pooled = X.reshape(len(X), -1)
        if len(X) > pooled.shape[1]:
            pooled = np.asarray(np.linalg.qr(pooled, mode="r"))
        units = _on_all(root.T[None], k), _on_all(np.eye(q)[:, :, None], k)
        blocks.append(Block(units, _on_functions(pooled.reshape(-1, q, used.size), p, k), float(len(X))))
    return [*blocks, _plain_rows(left, p, k, (q * k,), sums.n_rows - q * len(vectors))]


def blocks_of_sites(own: SiteSums) -> list[Block]:
    """A block of the means of all persons of a site, for each; and one of the contrasts within persons."""
    sums, p, blocks = own.sums, own.sums.p, []
    for site in range(len(own.sites)):
        here = own.site_of == site
        root, eye = np.sqrt(sums.counts[here]), np.eye(int(here.sum()))
        loads = [_on_all(load, sums.k) for load in (root[None, :, None], (root * eye)[:, :, None], eye[:, :, None])]
        blocks.append(Block(tuple(loads), _on_all((root[:, None] * sums.means[here, :p])[None], sums.k)))
    within = sums.split(sums.within)[0]
    return [*blocks, _plain_rows(within, p, sums.k, (sums.k, sums.k), sums.n_rows - sums.n_persons)]


def blocks_of_gaps(rows: GapRows, k: int) -> list[Block]:
    """A block for each person, of what rows say of their own functions; and one of the noise beyond these.

    `k` is the number of first functions that covariances are of.
    """
    K, p = rows.a.shape[1], rows.X.shape[1]
    roots = []
    for A in rows.A:
        values, vectors = eigh(A, driver="ev")  # of ones and zeros, for which divide and conquer may not converge
        some = values > 1e-10 * values[-1]
        roots.append((vectors[:, some] * np.sqrt(values[some])).T)
    person, pattern = rows.person[rows.pair_of], rows.pattern[rows.pair_of]
    blocks = []
    for i in range(rows.persons):
        here = np.flatnonzero(person == i)
        own = [roots[e] for e in pattern[here]]
        b = sum(len(root) for root in own)
        features = np.concatenate([np.einsum("a,bj->baj", x, z) for x, z in zip(rows.X[here], own, strict=True)])
        of_rows, start = np.zeros((len(own), b, k)), 0
        for load, root in zip(of_rows, own, strict=True):
            load[start : start + len(root)] = root[:, :k]
            start += len(root)
        loads = of_rows.sum(axis=0)[None], of_rows, np.eye(b)[:, :, None]
        blocks.append(Block(loads, features.reshape(1, b, p * K)))
    beyond = float(rows.points[pattern].sum()) - sum(block.features.shape[1] for block in blocks)
    empty = np.zeros((0, 1, k))
    return [*blocks, Block((empty, empty, np.ones((1, 1, 1))), np.zeros((0, 1, p * K)), beyond)]


def _on_all(rows: FloatArray, k: int) -> FloatArray:
    """Matrices (n, r, c) of rows as those of k functions each, (n, r k, c k)."""
    return np.asarray(np.kron(rows, np.eye(k)[None]), dtype=np.float64)


def _on_functions(rows: FloatArray, p: int, k: int) -> FloatArray:
    """What p features of rows, and loads of P coefficients after them, do to k functions each: (n, r k, p k + P)."""
    n, r, size = rows.shape
    return np.concatenate((_on_all(rows[:, :, :p], k), rows[:, :, p:].reshape(n, r * k, (size - p) // k)), axis=2)


def _plain_rows(xx: FloatArray, p: int, k: int, above: Sequence[int], count: int) -> Block:
    """Rows with the scatter xx of their p features, and of loads, that no level but that of rows has a share in."""
    none = tuple(np.zeros((0, k, size)) for size in above)
    return Block((*none, np.eye(k)[None]), _on_functions(root_of(xx).T[:, None], p, k), float(count))
