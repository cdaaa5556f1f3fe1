"""Releases made of sums of clipped contributions: sums, selections, and second moments of rows.

Selections say which candidate has a large sum of utilities. Second moments come with Gaussian, Laplace or Wishart
noise, or only as their principal directions.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import PrivacyError
from fdadp.privacy.guarantee_checks import as_float
from fdadp.privacy.kernel._exact_sums import (
    Contributions,
    Placed,
    Products,
    cell_sums,
    exact_moment,
    exact_sum,
)
from fdadp.privacy.kernel._kernel import Kernel, Noisy, check_clip, check_name
from fdadp.privacy.noise._matrix_noise import BITS, LARGEST_ORDER, degrees, symmetric, triangle
from fdadp.privacy.rows._clipped_sums import L1, L2, LINF, test_utilities
from fdadp.privacy.rows._person_row_caps import Exchangeable, moment_weights
from fdadp.privacy.rows._rowwise_arithmetic import diameter_of, log_positions, of_table, person_moments
from fdadp.privacy.rows._sealed_row_functions import BLOCK, RowFunction, Rows, evaluate


class SumReleases:
    """Sums, histograms, scales, counts, selections, second moments and directions: all but minimisers."""

    __slots__ = ()

    _kernel: Kernel

    def sum(
        self,
        f: RowFunction,
        *,
        clip: float,
        share: float,
        name: str,
        norm: int | None = None,
        size: int | None = None,
        bits: int = 24,
        nonnegative: bool = False,
        blocks: int | None = None,
        table: FloatArray | None = None,
    ) -> Noisy:
        """Release Σ over persons of clip(mean, or sum, over the person's rows of f(row)), by the law of the cohort.

        Parameters
        ----------
        f : callable
            From a tuple of arrays of m rows to an array (m, d) or (m,); row-local (see
            :mod:`fdadp.privacy.rows._sealed_row_functions`).
        clip : float
            Bound on the norm of a person's contribution, the mean or the sum of its rows; public or released. Rows that
            are not finite do not count.
        share : float
            Of this cohort's reservation.
        name : str
            For the ledger.
        norm : {1, 2}, optional
            Default: 2 with Gaussian noise, 1 with pure ε. Norm 1 is also valid with Gaussian noise (it bounds norm 2).
        size : int, optional
            d, to be checked.
        bits : int
            Contributions are truncated toward zero to multiples of clip · 2^-bits.
        nonnegative : bool
            Negative entries count as 0. Then ⟨v, v'⟩ >= 0 for any two persons, on the lattice too, and replacing one
            changes the sum by at most √2 clip in L2, not 2 clip.
        blocks : int, optional
            f gives a number (m,) from 0 to blocks - 1 besides: in which of so many blocks, of d entries each, a row's
            values stand; they are 0 in all others. A row of another number adds nothing. The norm of a contribution,
            and so the noise, are those of one block.
        table : ndarray of shape (K, d), optional
            Public. f gives numbers of its rows, (m,) or (m, k), and a row adds that row of the table, or the mean of
            several; a number that is none of 0 to K - 1 makes the row unusable. So contributions stay in the convex
            hull of the table's rows and zero: exchanging a person costs its diameter in L2, where that is less than 2
            clip and a person adds a mean (``docs/theory/kernel.md#tables``).

        Returns
        -------
        Noisy
            ``value`` (d,), or of all blocks one after the other, and the ``sd`` of the noise on each entry.

        Raises
        ------
        PrivacyError
            From public validation: nothing was read or spent.
        """
        shapes = self._kernel.probe(f, name, 1 if blocks is None else 2)
        if table is not None:
            table = _checked_table(table, shapes[0], name)
        width = math.prod(shapes[0]) if table is None else table.shape[1]
        is_whole = isinstance(blocks, (int, np.integer)) and not isinstance(blocks, bool)
        if blocks is not None and (not is_whole or blocks < 1 or shapes[1] != ()):
            raise PrivacyError(f"{name}: the function must give a row's block as one number, of 1 or more blocks")
        d = width * (blocks or 1)
        if size is not None and size != d:
            raise PrivacyError(f"{name}: size must be what f gives for a row, {d}, got {size}")

        def contributions(rows: Rows, m: int) -> FloatArray | Placed:
            found = evaluate(f, rows, m, shapes)
            values = found[0].reshape(-1, width) if table is None else of_table(table, found[0])
            values = np.where(values < 0, 0.0, values) if nonnegative else values
            if blocks is None:
                return values
            known = np.isin(found[1], np.arange(blocks))
            return Placed(values, np.where(known, found[1], -1).astype(np.int64))

        kind = self._kernel.norm(norm, name)
        factor = math.sqrt(2) if nonnegative and not self._kernel.pure else None
        if table is not None and not self._kernel.pure and self._kernel.law.name == "mean":
            factor = _exchange_of(table, blocks or 1, clip, bits)
        return self._kernel.sum(contributions, d, clip, share, name, kind, bits, factor=factor)

    def sum_outer(
        self,
        f: RowFunction,
        g: RowFunction | None = None,
        *,
        clip: float,
        share: float,
        name: str,
        weights: FloatArray | None = None,
        norm: int | str | None = None,
        bits: int = 24,
    ) -> Noisy:
        """Release Σ over persons of clip(W ∘ f(row) g(row)').

        With pure ε, norm "nuclear" has by far the least noise (:mod:`fdadp.privacy.noise._matrix_noise`): in an entry
        of D × K its sd is clip √(D + K)/ε, while for Laplace noise the L1 norm is bounded, up to √(D K) times ‖f‖ ‖g‖.

        Parameters
        ----------
        f, g : callable
            Row-local functions with values (m, D) and (m, K); or f alone, which gives the pair.
        clip : float
            Bound on the norm of W ∘ f g'.
        weights : ndarray of shape (D, K), optional
            W >= 0, public. A pair of weight 0 is inactive: it is not released, and is 0 in the result.
        norm : {1, 2, "nuclear"}, optional
            1 and 2 as in :meth:`sum`. "nuclear": the nuclear norm of f g', ‖f‖ ‖g‖, is bounded, and the release is
            pure; where the budget has a δ it takes all of it (see :meth:`Cohort.pure_is_quieter`). No
            weights (if they are u v', multiply f by u and g by v) or bits.
        share, name, bits
            As in :meth:`sum`. Of a person with several rows the mean (sum) of the products is clipped once; "nuclear":
            each product is clipped, then their mean (sum) is taken, and an unusable row counts as 0 in it.

        Returns
        -------
        Noisy
            ``value`` (D, K) in the weighted coordinates and the ``sd`` of its active entries. Dividing by W
            is post-processing.

        Notes
        -----
        *Sensitivity.* The contribution is the vector v of the N active entries W_jk f_j g_k, clipped to ‖v‖ <= C and
        truncated in these coordinates to q = trunc(v 2^bits / C), with ‖q‖ <= 2^bits checked on the integers. So the
        integer sum, in W-weighted coordinates, has the sensitivity 2^bits of any other sum
        (``docs/theory/kernel.md#outer-products``), whatever the rank of W; rescaling by C 2^-bits gives C. There is no
        need for lattices of f and g apart: forming and adding the N products of one row at a time costs no more than
        the two truncations would save, and no n outer products are ever held (one block of rows is).
        """
        if g is None:
            left, right = self._kernel.probe(f, name, 2)
        else:
            (left,), (right,) = self._kernel.probe(f, name, 1), self._kernel.probe(g, name, 1)
        if len(left) > 1 or len(right) > 1:
            raise PrivacyError(f"{name}: f and g must give one vector a row, got shapes {left} and {right}")
        D, K = math.prod(left), math.prod(right)

        def factors(rows: Rows, m: int) -> tuple[FloatArray, FloatArray]:
            if g is None:
                a, b = evaluate(f, rows, m, [left, right])
            else:
                a, b = evaluate(f, rows, m, [left])[0], evaluate(g, rows, m, [right])[0]
            return a.reshape(-1, D), b.reshape(-1, K)

        if norm == "nuclear":
            if weights is not None or bits != 24:
                raise PrivacyError(f"{name}: weights and bits must be left out with norm 'nuclear'")
            return self._kernel.products(factors, D, K, clip, share, name)
        W = np.ones((D, K)) if weights is None else np.array(weights, dtype=np.float64)
        if W.shape != (D, K) or not np.isfinite(W).all() or (W < 0).any() or not W.any():
            raise PrivacyError(
                f"{name}: weights must be finite, >= 0, not all 0, of shape {(D, K)}, got shape {W.shape}"
            )
        active: IntArray = np.flatnonzero(W.ravel()).astype(np.int64)

        def contributions(rows: Rows, m: int) -> Products:
            return Products(*factors(rows, m), W, active)

        value, sd = self._kernel.sum(contributions, len(active), clip, share, name, self._kernel.norm(norm, name), bits)
        out = np.zeros(D * K)
        out[active] = value
        return Noisy(out.reshape(D, K), sd)

    def geometric_mean(
        self, norms: RowFunction, lo: float, hi: float, *, share: float, name: str, n: float | None = None
    ) -> Noisy:
        """Release the geometric mean over persons of a positive size, on the public range [lo, hi].

        A row gives v = clip(log(x/c), ±H)/H in [-1, 1], c = √(lo hi), H = ½ log(hi/lo). A person adds their mean, or
        their sum; the null record adds 0. Hence sensitivity 1 (max_rows of a sum), or twice that where a person is
        replaced (``docs/theory/kernel.md#geometric-means``).

        Parameters
        ----------
        norms : callable
            Row-local, one value a row. Zero counts as lo; NaN, infinity and negative values as no value.
        lo, hi : float
            Public or released, 0 < lo < hi.
        n : float, optional
            Number of persons, or of rows that are added up: the declared number of persons by default; where there is
            none a released one must be given.

        Returns
        -------
        Noisy
            The estimate, and the standard deviation of its **logarithm**.
        """
        low, high = as_float(lo), as_float(hi)
        if not (0 < low < high < math.inf):
            raise PrivacyError(f"{name}: lo and hi must be finite with 0 < lo < hi, got {lo!r} and {hi!r}")
        given = self._kernel.n if n is None else n
        persons = as_float(given)
        if not 0 < persons < math.inf:
            raise PrivacyError(f"{name}: n must be a released number of persons above 0 with private n, got {given!r}")
        shape = self._kernel.probe(norms, name, 1)[0]
        if math.prod(shape) != 1:
            raise PrivacyError(f"{name}: norms must give one value a row, got shape {shape}")
        half, centre = math.log(high / low) / 2, math.sqrt(low) * math.sqrt(high)

        def contributions(rows: Rows, m: int) -> FloatArray:
            out = np.empty((BLOCK, 1))
            log_positions(evaluate(norms, rows, m, [shape])[0].ravel(), low, high, centre, half, out[:, 0])
            return out

        most = float(self._kernel.law.most)
        total, sd = self._kernel.sum(contributions, 1, most, share, name, self._kernel.norm(None, name), 24)
        v = min(max(float(total[0]) / persons, -1.0), 1.0)
        return Noisy(centre * math.exp(half * v), half * sd / persons)

    def histogram(self, h: RowFunction, *, share: float, name: str) -> Noisy:
        """Release Σ over persons of h(row), h >= 0 with Σ_b h_b <= 1 a person: how a mass of 1 falls into bins.

        Negative entries count as 0, larger sums are scaled down to 1. Sensitivity 1 in both norms; where a person is
        replaced √2 in L2, since ⟨h, h'⟩ >= 0 also on the lattice, and 2 in L1 (``docs/theory/kernel.md#histograms``).
        Where rows are added up each of them is a mass of 1, and all of this is times max_rows.
        """
        most = float(self._kernel.law.most)
        return self.sum(h, clip=most, share=share, name=name, norm=1, nonnegative=True)

    def count(self, *, share: float, floor: float = 1.0, name: str = "number of persons") -> Noisy:
        """Release the number of persons, usable or not; only with adjacency "add-remove", where it is private.

        Where rows are added up, with any adjacency: the number of rows that count. Never below the public ``floor``.
        """
        law = self._kernel.law
        if law.name != "sum" and self._kernel.adjacency != "add-remove":
            raise PrivacyError(
                f"n is declared and public with adjacency {self._kernel.adjacency!r}: use it, nothing to release"
            )
        least = as_float(floor)
        if not math.isfinite(least):
            raise PrivacyError(f"{name}: floor must be a finite number, got {floor!r}")
        noisy, sampler = self._kernel.release("count", 1, float(law.most), share, name, L1, 24, None, factor=1.0)
        gamma = 2.0**-24 * law.most
        return Noisy(max(float(noisy[0]) * gamma, least), sampler.sd * gamma)

    def select(self, utilities: RowFunction, *, share: float, name: str) -> int:
        """Release the index of a candidate with a large sum of utilities over persons.

        The kernel clips each person's utilities to [0, 1] itself. The law of the selected index does not change when
        the same constant is added to all sums. So a person who is added, removed or blanked out, who moves each sum by
        something in [0, 1], moves them in effect by something in [-½, ½]: L∞ sensitivity Δ = ½; where a person is
        replaced, Δ = 1. (ε, δ): Gumbel noise of scale s, the exponential mechanism, ρ = ½ (Δ/s)²; pure ε:
        permute-and-flip, ε = 2Δ/s. See :mod:`fdadp.privacy.noise.sources`.
        """
        shape = self._kernel.probe(utilities, name, 1)[0]
        k = math.prod(shape)
        if k < 2:
            raise PrivacyError(f"{name}: at least two candidates are wanted, got {k}")

        def contributions(rows: Rows, m: int) -> FloatArray:
            values = evaluate(utilities, rows, m, [shape])[0].reshape(-1, k)
            finite = np.isfinite(values).all(axis=1, keepdims=True)
            return np.where(finite, np.clip(values, 0.0, 1.0), np.nan)

        noisy, _ = self._kernel.release("select", k, 1.0, share, name, LINF, 24, contributions)
        return int(noisy[0])

    def select_test(
        self,
        cells: RowFunction,
        tests: npt.ArrayLike | sparse.csr_array,
        sizes: npt.ArrayLike,
        *,
        share: float,
        name: str,
    ) -> int:
        """Release the index of a test with a large sum of the weights of the persons who pass it.

        As :meth:`select`, of utilities that are a person's weight for the tests that it passes and 0 for the others,
        and as private; but where every row is a person, weights are added up by cells, in one addition a feature, and
        the sums of the tests are integer sums of cells: the integers that :meth:`select` would get, many times faster.

        Parameters
        ----------
        cells : callable
            Row-local; gives the pair (codes (m, d), weights (m,)): for each of d features which of its cells the row
            is in, and the row's weight, which is clipped to [0, 1]. A row with a code that is no cell counts as no row.
        tests : array_like or sparse array of shape (C, sum of sizes)
            0 and 1: which cells pass. A test may let cells of one feature pass only, so that a person's utility is at
            most its weight; so a sparse one takes memory, and a release time, linear in the number of features.
        sizes : array_like of int
            Number of cells of each feature.
        """
        shapes = self._kernel.probe(cells, name, 2)
        starts: IntArray = np.concatenate([[0], np.cumsum(np.asarray(sizes, dtype=np.int64))]).astype(np.int64)
        passing = _zeros_and_ones(tests)
        if shapes != [(len(starts) - 1,), ()]:
            raise PrivacyError(
                f"{name}: the function must give {len(starts) - 1} codes and one weight a row, got shapes {shapes}"
            )
        if passing is None or passing.shape[1] != starts[-1] or passing.shape[0] < 2:
            raise PrivacyError(
                f"{name}: tests must be 0 and 1, at least two rows of {starts[-1]}, got shape {np.shape(tests)}"
            )
        of = (np.searchsorted(starts, passing.indices, side="right") - 1).astype(np.int64)
        test = np.repeat(np.arange(passing.shape[0]), np.diff(passing.indptr))
        feature = np.zeros(passing.shape[0], dtype=np.int64)
        feature[test] = of
        if (feature[test] != of).any():
            raise PrivacyError(f"{name}: a test must be of one feature; some let cells of several pass")
        if self._kernel.vault.grouped:
            passes = np.zeros((passing.shape[0], int(np.diff(starts).max())), dtype=np.int64)
            passes[test, passing.indices - starts[of]] = 1

            def utilities(rows: Rows) -> FloatArray:
                codes, weights = cells(rows)
                out = np.empty((len(codes), len(passes)))
                test_utilities(codes, weights, starts, passes, feature, out)
                return out

            return self.select(utilities, share=share, name=name)

        def sums(bits: int) -> IntArray:
            task = partial(cell_sums, f=cells, shapes=shapes, starts=starts, bits=bits)
            return np.asarray(passing @ self._kernel.vault.total(task))

        noisy, _ = self._kernel.release("select", passing.shape[0], 1.0, share, name, LINF, 24, None, exact=sums)
        return int(noisy[0])

    def second_moment(
        self, f: RowFunction, *, clip: float, share: float, name: str, norm: str | None = None, bits: int = 24
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
        (:mod:`fdadp.privacy.noise._matrix_noise`). A person adds positive semidefinite integer matrices of traces
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
            return Noisy(symmetric(entries), sd)
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
        return Noisy(symmetric(value / W[triangle(D)]), sd)

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
            Bound on the Frobenius norm of a person's moment, public or released. With pure ε and without g on its
            nuclear norm, the trace; with pure ε and g on the sum of its entries' sizes.
        share, name, bits
            As in :meth:`sum`.

        Returns
        -------
        Noisy
            ``value`` (D, D), symmetric, and the ``sd`` of the noise on its diagonal; that of the other entries is
            sd/√2. With g: (D, K) and the sd of each entry. Pure ε: sd = clip √(D + 1)/ε without g.

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
            raise PrivacyError(f"{name}: moments of persons need their rows side by side: call by_person first")
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
        if self._kernel.pure:
            if bits != 24:
                raise PrivacyError(f"{name}: bits must be left out with pure noise")
            entries, sd = self._kernel.contrasts(f, shapes[0], law, clip, share, name)
            return Noisy(symmetric(entries), sd)
        size = D * (D + 1) // 2
        value, sd = self._kernel.sum(contributions, size, *how, factor=_exchange(size, bits))
        return Noisy(symmetric(value / _doubled(D)[triangle(D)]), sd)

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
        data; see :mod:`fdadp.privacy.noise._matrix_noise`.
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
        S = symmetric(total / W[triangle(D)])
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
        itself, with the exact number of degrees (see :mod:`fdadp.privacy.noise._matrix_noise`): it takes a whole
        budget, and every row must be a person. Replace: two steps of adding or removing.

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
        m = nu + p - 1
        return Noisy(
            symmetric(np.asarray(noisy * unit, dtype=np.float64)) - m * clip**2 * np.eye(p), math.sqrt(2 * m) * clip**2
        )


def _zeros_and_ones(tests: npt.ArrayLike | sparse.csr_array) -> sparse.csr_array | None:
    """Tests as a sparse array of integers that holds its ones; None if they are not 0 and 1 in two dimensions."""
    given = tests if sparse.issparse(tests) else np.asarray(tests, dtype=np.float64)
    if given.ndim != 2:
        return None
    found = sparse.csr_array(given, copy=True)
    found.sum_duplicates()
    found.eliminate_zeros()
    return found.astype(np.int64) if (found.data == 1).all() else None


def _doubled(D: int) -> FloatArray:
    """Weights, (D, D), with which the entries on and above a diagonal have the matrix's Frobenius norm as their own."""
    return np.triu(np.full((D, D), math.sqrt(2)), 1) + np.eye(D)


def _exchange(size: int, bits: int) -> float:
    """What replacing a person costs, in clips, where contributions are positive semidefinite: a little above √2."""
    return math.sqrt(2 + 4.04 * math.sqrt(size) * 2.0**-bits)


def _checked_table(table: npt.ArrayLike, shape: tuple[int, ...], name: str) -> FloatArray:
    """A public table of what rows add."""
    found = np.array(table, dtype=np.float64)
    if found.ndim != 2 or not found.size or not np.isfinite(found).all():
        raise PrivacyError(f"{name}: table must be finite, of shape (K, d), got shape {found.shape}")
    if len(shape) > 1:
        raise PrivacyError(f"{name}: with a table f must give (m,) or (m, k) numbers of its rows, got {shape} a row")
    return found


def _exchange_of(table: FloatArray, blocks: int, clip: float, bits: int) -> float:
    """What replacing a person costs, in clips, where contributions are means of rows of a table, each in a block."""
    rounding = 2.02 * math.sqrt(table.shape[1] * blocks) * 2.0**-bits
    return min(diameter_of(table, blocks) / clip + rounding, 2.0)


def _products(f: RowFunction, shape: tuple[int, ...], W: FloatArray) -> Contributions:
    """Contributions ``W * outer(f, f)`` of the rows of a block, W upper triangular."""
    active: IntArray = np.flatnonzero(W.ravel()).astype(np.int64)

    def contributions(rows: Rows, m: int) -> Products:
        a = evaluate(f, rows, m, [shape])[0].reshape(-1, len(W))
        return Products(a, a, W, active)

    return contributions
