"""Sums of clipped contributions, and what is made of them: the releases that most of the package asks for."""

from __future__ import annotations

import math

import numpy as np

from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import PrivacyError
from fdadp.privacy.kernel._kernel import Kernel, Noisy
from fdadp.privacy.kernel._sums import Products
from fdadp.privacy.rows._local import BLOCK, RowFunction, Rows, evaluate
from fdadp.privacy.rows._rows import L1
from fdadp.privacy.rows._rowwise import log_positions


class SumReleases:
    """Sums, sums of outer products, histograms, scales and the number of persons."""

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
    ) -> Noisy:
        """Release Σ over persons of clip(mean, or sum, over the person's rows of f(row)), by the law of the cohort.

        Parameters
        ----------
        f : callable
            From a tuple of arrays of m rows to an array (m, d) or (m,); row-local (see
            :mod:`fdadp.privacy.rows._local`).
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

        Returns
        -------
        Noisy
            ``value`` (d,) and the ``sd`` of the noise on each entry.

        Raises
        ------
        PrivacyError
            From public validation: nothing was read or spent.
        """
        shape = self._kernel.probe(f, name, 1)[0]
        d = math.prod(shape)
        if size is not None and size != d:
            raise PrivacyError(f"{name}: size must be what f gives for a row, {d}, got {size}")

        def contributions(rows: Rows, m: int) -> FloatArray:
            values = evaluate(f, rows, m, [shape])[0].reshape(-1, d)
            return np.where(values < 0, 0.0, values) if nonnegative else values

        kind = self._kernel.norm(norm, name)
        factor = math.sqrt(2) if nonnegative and not self._kernel.pure else None
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

        With pure ε, norm "nuclear" has by far the least noise (:mod:`fdadp.privacy.noise._matrix_laplace`): in an entry
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
        if not (0 < lo < hi < math.inf):
            raise PrivacyError(f"{name}: lo and hi must be finite with 0 < lo < hi, got {lo!r} and {hi!r}")
        persons = self._kernel.n if n is None else n
        if persons is None or not 0 < persons < math.inf:
            raise PrivacyError(
                f"{name}: n must be a released number of persons above 0 with private n, got {persons!r}"
            )
        shape = self._kernel.probe(norms, name, 1)[0]
        if math.prod(shape) != 1:
            raise PrivacyError(f"{name}: norms must give one value a row, got shape {shape}")
        half, centre = math.log(hi / lo) / 2, math.sqrt(lo) * math.sqrt(hi)

        def contributions(rows: Rows, m: int) -> FloatArray:
            out = np.empty((BLOCK, 1))
            log_positions(evaluate(norms, rows, m, [shape])[0].ravel(), lo, hi, centre, half, out[:, 0])
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
        noisy, sampler = self._kernel.release("count", 1, float(law.most), share, name, L1, 24, None, factor=1.0)
        gamma = 2.0**-24 * law.most
        return Noisy(max(float(noisy[0]) * gamma, float(floor)), sampler.sd * gamma)
