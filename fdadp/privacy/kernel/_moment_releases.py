"""Second moments of rows: with Gaussian, Laplace or Wishart noise, or only their principal directions."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import PrivacyError
from fdadp.privacy.kernel._kernel import Kernel, Noisy, check_clip, check_name
from fdadp.privacy.kernel._sums import Contributions, Products, exact_sum
from fdadp.privacy.noise._bingham import order_of, triangle
from fdadp.privacy.noise._wishart import BITS, LARGEST_ORDER, degrees, exact_moment
from fdadp.privacy.rows._laws import Exchangeable, moment_weights
from fdadp.privacy.rows._local import RowFunction, Rows, evaluate
from fdadp.privacy.rows._rows import L2
from fdadp.privacy.rows._rowwise import person_moments


class MomentReleases:
    """Second moments with three kinds of noise, and directions by the exponential mechanism."""

    __slots__ = ()

    _kernel: Kernel

    def second_moment(
        self,
        f: RowFunction,
        *,
        clip: float,
        share: float,
        name: str,
        norm: str | None = None,
        bits: int = 24,
    ) -> Noisy:
        """Release the symmetric matrix Σ over persons of clip(f(row) f(row)').

        Parameters
        ----------
        f : callable
            Row-local, with values (m, D).
        clip : float
            Bound on ‖f‖², the Frobenius and the nuclear norm of f f'.
        share, name, bits
            As in :meth:`sum`. Of a person with several rows the mean (sum) of the products is clipped once, in the
            Frobenius norm. With pure ε bits must be left out: each product is clipped, then their mean (sum) is taken,
            and an unusable row counts as 0 in it.
        norm : {"nuclear"}, optional
            A pure release that takes the whole of a budget with a δ (see :meth:`Cohort.pure_is_quieter`); what pure
            budgets do anyway.

        Returns
        -------
        Noisy
            ``value`` (D, D), symmetric, and the ``sd`` of the noise on its diagonal; that of the other entries is
            sd/√2. Pure ε: sd = clip √(D + 1)/ε.

        Notes
        -----
        *Gaussian.* The N = D (D + 1)/2 coordinates (S_ii, √2 S_ij) have the Frobenius norm as their Euclidean one, so
        noise of one sd on them is the Gaussian mechanism for the Frobenius norm: half the variance off the diagonal of
        Analyze Gauss (Dwork et al. 2014, doi:10.1145/2591796.2591883), which adds one sd to all entries.

        *Pure ε.* Matrix Laplace noise, the difference of two Wishart matrices
        (:mod:`fdadp.privacy.noise._matrix_laplace`). A person adds positive semidefinite integer matrices of traces
        that add up to 4^18, one step being clip 4^-18: that is the sensitivity in the nuclear norm, and twice that
        where a person is replaced (``docs/theory/kernel.md#rank-one``).

        *Gaussian, replacing a person.* S and S' are positive semidefinite, hence tr(SS') >= 0 and ‖S - S'‖² <= 2
        clip². On the lattice q = u - δ, ‖δ‖ <= √N, so ⟨q, q'⟩ >= -√N (‖u‖ + ‖q'‖) and ‖q - q'‖² <= 2·4^bits + 4 √N
        2^bits: this, with 1 % on its second term for rounding in u, is the sensitivity used
        (``docs/theory/kernel.md#second-moments``).
        """
        (shape,) = self._kernel.probe(f, name, 1)
        if len(shape) > 1:
            raise PrivacyError(f"{name}: f must give one vector a row, got shape {shape}")
        D = math.prod(shape)
        if norm not in (None, "nuclear"):
            raise PrivacyError(f"{name}: norm must be 'nuclear' or left out, got {norm!r}")
        if self._kernel.pure or norm == "nuclear":
            if bits != 24:
                raise PrivacyError(f"{name}: bits must be left out with pure noise")

            def factors(rows: Rows, m: int) -> tuple[FloatArray, FloatArray]:
                a = evaluate(f, rows, m, [shape])[0].reshape(-1, D)
                return a, a  # the same integers for both

            entries, sd = self._kernel.products(factors, D, D, clip, share, name, symmetric=True)
            return Noisy(_symmetric(entries), sd)
        W = _doubled(D)
        value, sd = self._kernel.sum(
            _products(f, shape, W),
            D * (D + 1) // 2,
            clip,
            share,
            name,
            self._kernel.norm(None, name),
            bits,
            factor=_exchange(D * (D + 1) // 2, bits),
        )
        return Noisy(_symmetric(value / W[triangle(D)]), sd)

    def person_moment(
        self,
        f: RowFunction,
        g: RowFunction | None = None,
        *,
        law: str | Exchangeable,
        clip: float,
        share: float,
        name: str,
        bits: int = 24,
    ) -> Noisy:
        """Release Σ over persons of the clipped moment of a person's rows, centred inside the person.

        Parameters
        ----------
        f, g : callable
            From the rows of :meth:`Cohort.by_person` to (m, rows, D) and (m, rows, K); row-local. Without g the moment
            is that of f with itself.
        law : {"mean", "sum", "between", "within"} or Exchangeable
            How rows are weighed (:func:`fdadp.privacy.person_moments`).
        clip : float
            Bound on the Frobenius norm of a person's moment, public or released.
        share, name, bits
            As in :meth:`sum`.

        Returns
        -------
        Noisy
            ``value`` (D, D), symmetric, and the ``sd`` of the noise on its diagonal; that of the other entries is
            sd/√2. With g: (D, K) and the sd of each entry.

        Raises
        ------
        PrivacyError
            The cohort is not one of :meth:`Cohort.by_person`, or an argument is wrong. Nothing was read or spent.

        Notes
        -----
        *Sensitivity* in the Frobenius norm: clip. Where a person is replaced 2 clip with g, and √2 clip without, as a
        moment of f alone is positive semidefinite (``docs/theory/kernel.md#person-moments``).
        """
        if self._kernel.law.name != "person":
            raise PrivacyError(f"{name}: moments of persons want their rows side by side: call by_person first")
        if self._kernel.pure:
            raise PrivacyError(f"{name}: moments of persons are released with Gaussian noise: the budget needs a delta")
        shapes = [self._kernel.probe(h, name, 1)[0] for h in (f, g) if h is not None]
        most = self._kernel.law.max_rows
        if any(len(shape) != 2 or shape[0] != most for shape in shapes):
            raise PrivacyError(f"{name}: f and g must give arrays (m, {most}, ...) for m persons, got shapes {shapes}")
        assert most is not None
        moment_weights(law, most)
        D, K = shapes[0][1], shapes[-1][1]

        def contributions(rows: Rows, m: int) -> FloatArray:
            left = evaluate(f, rows, m, shapes[:1])[0]
            return person_moments(left, law, None if g is None else evaluate(g, rows, m, shapes[1:])[0])

        how = (clip, share, name, self._kernel.norm(None, name), bits)
        if g is not None:
            value, sd = self._kernel.sum(contributions, D * K, *how)
            return Noisy(value.reshape(D, K), sd)
        size = D * (D + 1) // 2
        value, sd = self._kernel.sum(contributions, size, *how, factor=_exchange(size, bits))
        return Noisy(_symmetric(value / _doubled(D)[triangle(D)]), sd)

    def principal_directions(self, f: RowFunction, k: int, *, clip: float, share: float, name: str) -> FloatArray:
        """Release k orthonormal directions u along which Σ over persons of clip((u'f(row))²) is large.

        The exponential mechanism over the sphere, one direction after the other, each in the orthogonal complement of
        those before and at the k-th part of the share (Chaudhuri, Sarwate & Sinha 2013, JMLR 14; Amin et al. 2019,
        arXiv:1902.04173). The matrix itself is not released and does not leave the kernel.

        Parameters
        ----------
        f : callable
            Row-local, with values (m, D).
        k : int
            From 1 to D.
        clip : float
            Bound on ‖f‖² (of a person with several rows on the Frobenius norm of the mean of f f').
        share, name
            As in :meth:`sum`.

        Returns
        -------
        ndarray of shape (k, D)
            Orthonormal rows, of arbitrary sign.

        Notes
        -----
        *Sensitivity.* A person adds u'Qu/2^24, Q on the lattice: Q is positive semidefinite but for truncation, so this
        lies in [-√N, 2^24]/2^24, a range of 1 + √N 2⁻²⁴ between neighbours, N = D (D + 1)/2; twice that where a person
        is replaced. A score of range r costs r-pure DP and r²/8-zCDP (the normaliser moves by at most e^r: bounded
        range). Rounding of the matrix in the complement adds at most 4 D units of the lattice, and 0.1 % more is taken
        for the floating point of the draw. That last step is not proved exact, and takes a time that depends on the
        data; see :mod:`fdadp.privacy.noise._bingham`.
        """
        (shape,) = self._kernel.probe(f, name, 1)
        D = math.prod(shape)
        if len(shape) > 1 or isinstance(k, bool) or not isinstance(k, (int, np.integer)) or not 1 <= k <= D:
            raise PrivacyError(f"{name}: k must be an integer from 1 to the number of values a row, {D}, got {k!r}")
        check_name(name)
        check_clip(clip, name)
        amount = self._kernel.account.check(share) / k
        size = D * (D + 1) // 2
        bounded = 1.001 * (2.0**24 + math.sqrt(size) + 4 * D) * (2 if self._kernel.adjacency == "replace" else 1)
        kind = "bingham" if self._kernel.pure else "bingham-zcdp"
        samplers = []
        for j in range(k):
            sampler, cost = self._kernel.prepare(kind, (D - j) * (D - j + 1) // 2, bounded, amount, name)
            self._kernel.charge(
                sampler, clip * 2.0**-24, share / k, f"{name}, {j + 1} of {k}", cost=cost, clip=float(clip)
            )
            samplers.append(sampler)
        W = _doubled(D)
        own: dict[str, Any] = {"contributions": _products(f, shape, W), "size": size, "clip": float(clip)}
        total = self._kernel.vault.total(partial(exact_sum, **own, bits=24, norm=L2, law=self._kernel.law))
        S = _symmetric(total / W[triangle(D)])
        found = np.zeros((0, D))
        for j in range(k):
            entries, basis = total, np.eye(D)
            if j:
                basis = np.linalg.qr(np.vstack([found, np.eye(D)]).T)[0][:, j:]  # public: from what was released
                inner, at = basis.T @ S @ basis, triangle(D - j)
                entries = np.rint((inner + inner.T)[at] / 2 * W[at]).astype(np.int64)
            u = basis @ np.asarray(samplers[j](entries), dtype=np.float64)
            u -= found.T @ (found @ u)
            found = np.vstack([found, u / np.linalg.norm(u)])
        return found

    def wishart_moment(self, f: RowFunction, *, clip: float, share: float, name: str) -> Noisy:
        """Release Σ over persons of aa' with Wishart noise, a = f(row) clipped to ‖a‖ <= clip.

        The noise is positive semidefinite before its mean is taken off, which is done here. Accounted for in (ε, δ) by
        itself, with the exact number of degrees (see :mod:`fdadp.privacy.noise._wishart`): it takes a whole budget, and
        every row must be a person. Replace: two steps of adding or removing.

        Returns
        -------
        Noisy
            ``value`` (p, p), symmetric; ``sd`` on the diagonal, 1/√2 of that off it.
        """
        check_name(name)
        (shape,) = self._kernel.probe(f, name, 1)
        check_clip(clip, name)
        if self._kernel.vault.grouped:
            raise PrivacyError(f"{name}: Wishart noise wants one row a person; sum_outer takes several")
        if self._kernel.budget.delta is None:
            raise PrivacyError(f"{name}: Wishart noise wants a delta, got a budget of pure epsilon")
        self._kernel.account.check(share)
        self._kernel.whole_budget(share, name, "Wishart noise")
        if math.prod(shape) > LARGEST_ORDER:
            raise PrivacyError(f"{name}: Wishart noise is for at most {LARGEST_ORDER} values a row, got shape {shape}")
        nu = degrees(*self._kernel.for_one(self._kernel.budget.epsilon, self._kernel.budget.delta))
        p = math.prod(shape)
        sampler = self._kernel.noise.prepare("wishart", p * (p + 1) // 2, 4.0**BITS, 1 / (4 * nu))
        unit = (clip * 2.0**-BITS) ** 2
        cost = self._kernel.account.amount
        self._kernel.charge(sampler, unit, share, name, cost=cost, clip=float(clip), whole=True)
        noisy = sampler(self._kernel.vault.total(partial(exact_moment, f=f, shape=shape, clip=float(clip))))
        upper = np.zeros((p, p))
        upper[np.triu_indices(p)] = noisy * unit
        m = nu + p - 1
        moment = upper + np.triu(upper, 1).T - m * clip**2 * np.eye(p)
        return Noisy(moment, math.sqrt(2 * m) * clip**2)


def _products(f: RowFunction, shape: tuple[int, ...], W: FloatArray) -> Contributions:
    """Contributions ``W * outer(f, f)`` of the rows of a block, W upper triangular."""
    active: IntArray = np.flatnonzero(W.ravel()).astype(np.int64)

    def contributions(rows: Rows, m: int) -> Products:
        a = evaluate(f, rows, m, [shape])[0].reshape(-1, len(W))
        return Products(a, a, W, active)

    return contributions


def _doubled(D: int) -> FloatArray:
    """Weights, (D, D), with which the entries on and above a diagonal have the matrix's Frobenius norm as their own."""
    return np.triu(np.full((D, D), math.sqrt(2)), 1) + np.eye(D)


def _exchange(size: int, bits: int) -> float:
    """What replacing a person costs, in clips, where contributions are positive semidefinite: a little above √2."""
    return math.sqrt(2 + 4.04 * math.sqrt(size) * 2.0**-bits)


def _symmetric(entries: FloatArray) -> FloatArray:
    """Matrix of the entries on and above the diagonal, row by row."""
    D = order_of(len(entries))
    rows, columns = triangle(D)
    out = np.zeros((D, D))
    out[rows, columns] = out[columns, rows] = entries
    return out
