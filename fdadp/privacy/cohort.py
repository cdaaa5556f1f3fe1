"""The kernel: the one object that reads private rows, and gives out nothing but clipped sums with noise.

Why the sensitivity holds, for every release: a person's contribution is a function of that person's rows and of public
or released values (see ``_local``); it is clipped and truncated toward zero onto a lattice of 2^bits steps per clip,
where its norm is checked on the integers themselves (``_rows.quantise``; truncation never increases a norm: 02b, L7);
the integers are added exactly. So blanking out, adding or removing a person changes the sum by an integer vector of
norm at most 2^bits, and exchanging one by at most twice that. The noise is drawn on the integers, from a sampler whose
privacy map at this sensitivity was checked before the first row was read.

*Errors are releases too.* All validation is public and comes first. From the first read on the budget is spent whatever
happens, and what happens does not depend on private values: rows that cannot be evaluated contribute zero. (One
exception: a source of chunks that fails while it is read, for then no sum with a bounded sensitivity is left.)

Two releases are no sums with integer noise: ``perturbed_minimum`` solves a regularised problem on the rows, for the
mechanisms that perturb a minimiser or its objective, and ``wishart_moment`` adds Wishart noise to a second moment. What
they rely on instead is proved in ``_minima`` and ``_wishart``.
"""

from __future__ import annotations

import importlib.metadata
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from fdadp._typing import FloatArray, IntArray
from fdadp._version import __version__
from fdadp.errors import PrivacyError
from fdadp.privacy._bingham import order_of, triangle
from fdadp.privacy._local import BLOCK, RowFunction, Rows, evaluate, probe, silence
from fdadp.privacy._minima import GRADIENT_ERROR, SMALLEST_RIDGE, gaussian_multiplier, least_squares, logistic
from fdadp.privacy._rows import L1, L2, LINF, log_positions, test_utilities
from fdadp.privacy._statement import UNITS, statement
from fdadp.privacy._sums import Contributions, Products, cell_sums, count_persons, exact_sum
from fdadp.privacy._vault import Vault
from fdadp.privacy._wishart import BITS, degrees, exact_moment
from fdadp.privacy.accounting import epsilon_from, rho_from
from fdadp.privacy.budget import Binding, Budget
from fdadp.privacy.distributed import DistributedNoise
from fdadp.privacy.ledger import Ledger, Release
from fdadp.privacy.noise import SELECTIONS, Noise, OpenDPNoise, Sampler
from fdadp.privacy.settings import ADJACENCIES, check_delta

__all__ = ["Cohort", "Noisy"]

_NORMS = {L1: "L1", L2: "L2", LINF: "L-infinity"}


class Noisy(NamedTuple):
    """A released value and the standard deviation of its noise."""

    value: Any
    sd: float


class Cohort:
    """Private rows behind a wall: questions in, noisy answers out, each of them charged and written down.

    Parameters
    ----------
    data : array, tuple of arrays, or re-iterable of such tuples
        Rows along the first axis. Functions see them as float64, in blocks, on several threads at once; what is no
        number is NaN. Chunks must be iterable several times. The shape of a row is public.
    persons : sequence or callable, optional
        Id of the person of each row; without it every row is a person. A row without an id is never used. With chunks
        also a function that returns an iterator over the ids of each chunk, called at the first read.
    budget : Budget
        What may be spent, perhaps shared with other cohorts of the same data.
    adjacency : {"zero-out", "add-remove", "replace"}, optional
        Default: ``"zero-out"`` where n is declared, else ``"add-remove"``, the only one under which the number of
        persons is private.
    n : int, optional
        Declared number of persons: a public constant, never compared with the data. Required unless "add-remove".
    noise : Noise, optional
        Default :class:`OpenDPNoise`. With any other the ledger says "not for release".
    share : float
        Share of the budget that this cohort reserves; the shares of its releases refer to it.
    dataset : str, optional
        Public name of the data, by which a shared budget knows them again; default: their place in memory.
    mechanism : str
        Name for the ledger.
    public : mapping, optional
        Public inputs for the ledger.

    Attributes
    ----------
    reads : int
        Passes over private rows so far.

    Raises
    ------
    PrivacyError
        Some argument is wrong, or the budget has not got the share. No row was read.

    Examples
    --------
    >>> import numpy as np
    >>> from fdadp.privacy import Budget, Cohort, SeededNoise
    >>> ages = np.random.default_rng(0).uniform(20, 80, 1000)
    >>> cohort = Cohort(ages, budget=Budget(1.0, 1e-6), n=1000, noise=SeededNoise(0))
    >>> total, sd = cohort.sum(lambda rows: rows[0], clip=100.0, share=0.5, name="sum of ages")
    >>> bool(abs(total[0] - ages.sum()) < 4 * sd)
    True
    >>> cohort.ledger.for_release
    False
    """

    __slots__ = (
        "__account",
        "__noise",
        "__releases",
        "__vault",
        "__weakref__",
        "adjacency",
        "budget",
        "mechanism",
        "n",
        "public",
        "unit",
    )

    def __init__(
        self,
        data: Any,
        *,
        persons: Any = None,
        budget: Budget,
        adjacency: str | None = None,
        n: int | None = None,
        noise: Noise | None = None,
        share: float = 1.0,
        dataset: str | None = None,
        mechanism: str = "cohort",
        public: Mapping[str, Any] | None = None,
    ) -> None:
        if not isinstance(budget, Budget):
            raise PrivacyError(f"budget must be a Budget, got {type(budget).__name__}")
        if n is not None and (isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1):
            raise PrivacyError(f"n must be a positive integer, the declared number of persons, got {n!r}")
        adjacency = adjacency or ("add-remove" if n is None else "zero-out")
        if adjacency not in ADJACENCIES:
            raise PrivacyError(f"adjacency must be one of {', '.join(ADJACENCIES)}, got {adjacency!r}")
        if (n is None) != (adjacency == "add-remove"):
            raise PrivacyError(
                f"n must be {'left out' if n else 'declared'} with adjacency {adjacency!r}, got {n}: a declared n is "
                "public, and only under 'add-remove' is the number of persons private"
            )
        check_delta(budget.delta, n)
        if noise is not None and not (hasattr(noise, "prepare") and hasattr(noise, "description")):
            raise PrivacyError(f"noise must be OpenDPNoise() or SeededNoise(random_state), got {type(noise).__name__}")
        self.__vault = Vault(data, persons)
        self.adjacency = adjacency
        self.n = None if n is None else int(n)
        self.unit = UNITS[self.__vault.grouped]
        self.budget = budget
        self.mechanism = mechanism
        self.public = dict(public or {})
        self.__noise: Noise = OpenDPNoise() if noise is None else noise
        self.__releases: list[Release] = []
        token = self.__vault.identity() if dataset is None else ("named", dataset)
        self.__account = budget.reserve(share, Binding(token, self.unit, adjacency))

    # ------------------------------------------------------------------ what is public

    @property
    def reads(self) -> int:
        """Passes over private rows so far."""
        return self.__vault.passes

    @property
    def pure(self) -> bool:
        """Whether the budget is in pure ε: L1 clips and Laplace noise; else zCDP, L2 and Gaussian."""
        return self.budget.pure

    @property
    def amount(self) -> float:
        """ρ or ε that this cohort reserved."""
        return self.__account.amount

    @property
    def left(self) -> float:
        """Share that its releases have not used."""
        return max(1 - self.__account.used, 0.0)

    @property
    def secure(self) -> bool:
        """Whether the noise may be used for a release: exactly the kernel's own classes, no subclass."""
        noise = self.__noise
        return type(noise) is OpenDPNoise or (type(noise) is DistributedNoise and noise.secure)

    @property
    def inflation(self) -> float:
        """Factor on the noise that the amounts stand for: 1, more where owners may fail to deliver their shares."""
        return self.__noise.inflation if isinstance(self.__noise, DistributedNoise) else 1.0

    @property
    def releases(self) -> tuple[Release, ...]:
        """What was released so far."""
        return tuple(self.__releases)

    @property
    def ledger(self) -> Ledger:
        """What was released, under which assumptions, and what it protects; depends on no private value."""
        budget = self.budget
        used = math.fsum(self.amount if r.delta else r.rho or r.epsilon or 0.0 for r in self.__releases)
        details = {
            "budget": f"epsilon {budget.epsilon:g}" + ("" if budget.delta is None else f", delta {budget.delta:g}"),
            "accounting": budget.measure,
            "total": budget.total,
            "reserved by this fit": self.amount,
            "spent by its releases": used,
            "spent by its releases, as epsilon": used if budget.delta is None else epsilon_from(used, budget.delta),
            "adjacency": self.adjacency,
            "unit": self.unit,
            "n": "private" if self.n is None else f"{self.n}, declared and public",
            "noise": self.__noise.description,
            **{f"public input: {key}": _plain(value) for key, value in self.public.items()},
            "fdadp": __version__,
            "numpy": np.__version__,
            "opendp": importlib.metadata.version("opendp"),
        }
        return Ledger(
            mechanism=self.mechanism,
            private=True,
            statement=statement(budget, self.adjacency, self.unit, secure=self.secure, if_only=self.__assumption()),
            releases=list(self.__releases),
            unnoised=[],
            for_release=self.secure,
            details=details,
            epsilon=budget.epsilon,
            delta=budget.delta,
        )

    # ------------------------------------------------------------------ releases

    def sum(
        self,
        f: RowFunction,
        *,
        clip: float,
        share: float,
        name: str,
        norm: int | None = None,
        size: int | None = None,
        per_person: str = "mean",
        bits: int = 24,
        nonnegative: bool = False,
    ) -> Noisy:
        """Release Σ over persons of clip(mean, or sum, over the person's rows of f(row)).

        Parameters
        ----------
        f : callable
            From a tuple of arrays of m rows to an array (m, d) or (m,); row-local (see :mod:`fdadp.privacy._local`).
        clip : float
            Bound on the norm of a person's contribution; public or released.
        share : float
            Of this cohort's reservation.
        name : str
            For the ledger.
        norm : {1, 2}, optional
            Default: 2 with Gaussian noise, 1 with pure ε. Norm 1 is also valid with Gaussian noise (it bounds norm 2).
        size : int, optional
            d, to be checked.
        per_person : {"mean", "sum"}
            How the rows of a person are combined before the one clip. Rows that are not finite do not count.
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
        shape = self.__probe(f, name, 1)[0]
        d = math.prod(shape)
        if size is not None and size != d:
            raise PrivacyError(f"{name}: size must be what f gives for a row, {d}, got {size}")

        def contributions(rows: Rows, m: int) -> FloatArray:
            values = evaluate(f, rows, m, [shape])[0].reshape(-1, d)
            return np.where(values < 0, 0.0, values) if nonnegative else values

        kind = self.__norm(norm, name)
        factor = math.sqrt(2) if nonnegative and not self.pure else None
        return self.__sum(contributions, d, clip, share, name, kind, per_person, bits, factor=factor)

    def sum_outer(
        self,
        f: RowFunction,
        g: RowFunction | None = None,
        *,
        clip: float,
        share: float,
        name: str,
        weights: FloatArray | None = None,
        norm: int | None = None,
        per_person: str = "mean",
        bits: int = 24,
    ) -> Noisy:
        """Release Σ over persons of clip(W ∘ f(row) g(row)').

        Parameters
        ----------
        f, g : callable
            Row-local functions with values (m, D) and (m, K); or f alone, which gives the pair.
        clip : float
            Bound on the norm of W ∘ f g'.
        weights : ndarray of shape (D, K), optional
            W >= 0, public. A pair of weight 0 is inactive: it is not released, and is 0 in the result.
        share, name, norm, per_person, bits
            As in :meth:`sum`. Of a person with several rows the mean of the products is clipped once.

        Returns
        -------
        Noisy
            ``value`` (D, K) in the weighted coordinates and the ``sd`` of its active entries. Dividing by W
            is post-processing.

        Notes
        -----
        *Sensitivity.* The contribution is the vector v of the N active entries W_jk f_j g_k, clipped to |v| <= C and
        truncated in these coordinates to q = trunc(v 2^bits / C), with |q| <= 2^bits checked on the integers. So the
        integer sum, in W-weighted coordinates, has the sensitivity 2^bits of any other sum (02b, L5 and L7), whatever
        the rank of W; rescaling by C 2^-bits gives C. There is no need for lattices of f and g apart: forming and
        adding the N products of one row at a time costs no more than the two truncations would save, and no n outer
        products are ever held (one block of rows is).
        """
        if g is None:
            left, right = self.__probe(f, name, 2)
        else:
            (left,), (right,) = self.__probe(f, name, 1), self.__probe(g, name, 1)
        if len(left) > 1 or len(right) > 1:
            raise PrivacyError(f"{name}: f and g must give one vector a row, got shapes {left} and {right}")
        D, K = math.prod(left), math.prod(right)
        W = np.ones((D, K)) if weights is None else np.array(weights, dtype=np.float64)
        if W.shape != (D, K) or not np.isfinite(W).all() or (W < 0).any() or not W.any():
            raise PrivacyError(
                f"{name}: weights must be finite, >= 0, not all 0, of shape {(D, K)}, got shape {W.shape}"
            )
        active: IntArray = np.flatnonzero(W.ravel()).astype(np.int64)

        def contributions(rows: Rows, m: int) -> Products:
            if g is None:
                a, b = evaluate(f, rows, m, [left, right])
            else:
                a, b = evaluate(f, rows, m, [left])[0], evaluate(g, rows, m, [right])[0]
            return Products(a.reshape(-1, D), b.reshape(-1, K), W, active)

        value, sd = self.__sum(contributions, len(active), clip, share, name, self.__norm(norm, name), per_person, bits)
        out = np.zeros(D * K)
        out[active] = value
        return Noisy(out.reshape(D, K), sd)

    def second_moment(
        self,
        f: RowFunction,
        *,
        clip: float,
        share: float,
        name: str,
        per_person: str = "mean",
        bits: int = 24,
    ) -> Noisy:
        """Release the symmetric matrix Σ over persons of clip(f(row) f(row)').

        Parameters
        ----------
        f : callable
            Row-local, with values (m, D).
        clip : float
            Bound on a person's Frobenius norm, which is |f|² for one row; with pure ε on Σ_{i<=j} |f_i f_j|.
        share, name, per_person, bits
            As in :meth:`sum`. Of a person with several rows the mean of the products is clipped once.

        Returns
        -------
        Noisy
            ``value`` (D, D), symmetric, and the ``sd`` of the noise on its diagonal. Gaussian: that of the other
            entries is sd/√2 (the Gaussian orthogonal ensemble); Laplace: it is the same.

        Notes
        -----
        *Gaussian.* The N = D (D + 1)/2 coordinates (S_ii, √2 S_ij) have the Frobenius norm as their Euclidean one, so
        noise of one sd on them is the Gaussian mechanism for the Frobenius norm: half the variance off the diagonal of
        Analyze Gauss (Dwork et al. 2014, doi:10.1145/2591796.2591883), which adds one sd to all entries.

        *Replacing a person.* S and S' are positive semidefinite, hence tr(SS') >= 0 and |S - S'|² <= 2 clip². On the
        lattice q = u - δ, |δ| <= √N, so ⟨q, q'⟩ >= -√N (|u| + |q'|) and |q - q'|² <= 2·4^bits + 4 √N 2^bits: this,
        with 1 % on its second term for rounding in u, is the sensitivity used.
        """
        (shape,) = self.__probe(f, name, 1)
        if len(shape) > 1:
            raise PrivacyError(f"{name}: f must give one vector a row, got shape {shape}")
        D = math.prod(shape)
        W = np.triu(np.full((D, D), 1.0 if self.pure else math.sqrt(2)), 1) + np.eye(D)
        value, sd = self.__sum(
            _products(f, shape, W),
            D * (D + 1) // 2,
            clip,
            share,
            name,
            self.__norm(None, name),
            per_person,
            bits,
            factor=None if self.pure else math.sqrt(2 + 4.04 * math.sqrt(D * (D + 1) / 2) * 2.0**-bits),
        )
        return Noisy(_symmetric(value / W[triangle(D)]), sd)

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
            Bound on |f|² (of a person with several rows on the Frobenius norm of the mean of f f').
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
        data; see :mod:`fdadp.privacy._bingham`.
        """
        (shape,) = self.__probe(f, name, 1)
        D = math.prod(shape)
        if len(shape) > 1 or isinstance(k, bool) or not isinstance(k, (int, np.integer)) or not 1 <= k <= D:
            raise PrivacyError(f"{name}: k must be an integer from 1 to the number of values a row, {D}, got {k!r}")
        _check_name(name)
        _check_clip(clip, name)
        amount = self.__account.check(share) / k
        size = D * (D + 1) // 2
        bounded = 1.001 * (2.0**24 + math.sqrt(size) + 4 * D) * (2 if self.adjacency == "replace" else 1)
        kind = "bingham" if self.pure else "bingham-zcdp"
        sampler = self.__noise.prepare(kind, size, bounded, amount)  # those that follow cost the same
        self.__account.spend(share)
        W = np.triu(np.full((D, D), math.sqrt(2)), 1) + np.eye(D)
        total = exact_sum(self.__vault, _products(f, shape, W), size, clip=float(clip), bits=24, norm=L2, mean=True)
        S = _symmetric(total / W[triangle(D)])
        found = np.zeros((0, D))
        for j in range(k):
            entries, basis = total, np.eye(D)
            if j:
                basis = np.linalg.qr(np.vstack([found, np.eye(D)]).T)[0][:, j:]  # public: from what was released
                inner, at = basis.T @ S @ basis, triangle(D - j)
                entries = np.rint((inner + inner.T)[at] / 2 * W[at]).astype(np.int64)
                sampler = self.__noise.prepare(kind, len(entries), bounded, amount)
            u = basis @ np.asarray(sampler(entries), dtype=np.float64)
            u -= found.T @ (found @ u)
            found = np.vstack([found, u / np.linalg.norm(u)])
            self.__record(sampler, clip * 2.0**-24, share / k, f"{name}, {j + 1} of {k}", clip=float(clip))
        return found

    def log_scale(
        self, norms: RowFunction, lo: float, hi: float, *, share: float, name: str, n: float | None = None
    ) -> Noisy:
        """Release the geometric mean over persons of a positive size, on the public range [lo, hi].

        A person adds v = clip(log(x/c), ±H)/H in [-1, 1], c = √(lo hi), H = ½ log(hi/lo), averaged over its rows; the
        null record adds 0. Hence sensitivity 1, or 2 where a person is replaced (02c, "log_scale, centred").

        Parameters
        ----------
        norms : callable
            Row-local, one value a row. Zero counts as lo; NaN, infinity and negative values as no value.
        lo, hi : float
            Public or released, 0 < lo < hi.
        n : float, optional
            Number of persons: the declared one by default; under "add-remove" a released one must be given.

        Returns
        -------
        Noisy
            The estimate, and the standard deviation of its **logarithm**.
        """
        if not (0 < lo < hi < math.inf):
            raise PrivacyError(f"{name}: lo and hi must be finite with 0 < lo < hi, got {lo!r} and {hi!r}")
        persons = self.n if n is None else n
        if persons is None or not 0 < persons < math.inf:
            raise PrivacyError(
                f"{name}: n must be a released number of persons above 0 with private n, got {persons!r}"
            )
        shape = self.__probe(norms, name, 1)[0]
        if math.prod(shape) != 1:
            raise PrivacyError(f"{name}: norms must give one value a row, got shape {shape}")
        half, centre = math.log(hi / lo) / 2, math.sqrt(lo) * math.sqrt(hi)

        def contributions(rows: Rows, m: int) -> FloatArray:
            out = np.empty((BLOCK, 1))
            log_positions(evaluate(norms, rows, m, [shape])[0].ravel(), lo, hi, centre, half, out[:, 0])
            return out

        total, sd = self.__sum(contributions, 1, 1.0, share, name, self.__norm(None, name), "mean", 24)
        v = min(max(float(total[0]) / persons, -1.0), 1.0)
        return Noisy(centre * math.exp(half * v), half * sd / persons)

    def histogram(self, h: RowFunction, *, share: float, name: str) -> Noisy:
        """Release Σ over persons of h(row), h >= 0 with Σ_b h_b <= 1 a person: how a mass of 1 falls into bins.

        Negative entries count as 0, larger sums are scaled down to 1. Sensitivity 1 in both norms; where a person is
        replaced √2 in L2, since ⟨h, h'⟩ >= 0 also on the lattice, and 2 in L1 (02c, "Histogram").
        """
        return self.sum(h, clip=1.0, share=share, name=name, norm=1, nonnegative=True)

    def count(self, *, share: float, floor: float = 1.0, name: str = "number of persons") -> Noisy:
        """Release the number of persons, usable or not; only with adjacency "add-remove", where it is private.

        Never below the public ``floor``.
        """
        if self.adjacency != "add-remove":
            raise PrivacyError(
                f"n is declared and public with adjacency {self.adjacency!r}: use it, nothing to release"
            )
        noisy, sampler = self.__release("count", 1, 1.0, share, name, L1, 24, None, None)
        gamma = 2.0**-24
        return Noisy(max(float(noisy[0]) * gamma, float(floor)), sampler.sd * gamma)

    def select(self, utilities: RowFunction, *, share: float, name: str) -> int:
        """Release the index of a candidate with a large sum of utilities over persons.

        The kernel clips each person's utilities to [0, 1] itself. The law of the selected index does not change when
        the same constant is added to all sums. So a person who is added, removed or blanked out, who moves each sum by
        something in [0, 1], moves them in effect by something in [-½, ½]: L∞ sensitivity Δ = ½; where a person is
        replaced, Δ = 1. (ε, δ): Gumbel noise of scale s, the exponential mechanism, ρ = ½ (Δ/s)²; pure ε:
        permute-and-flip, ε = 2Δ/s. See :mod:`fdadp.privacy.noise`.
        """
        shape = self.__probe(utilities, name, 1)[0]
        k = math.prod(shape)
        if k < 2:
            raise PrivacyError(f"{name}: at least two candidates are wanted, got {k}")

        def contributions(rows: Rows, m: int) -> FloatArray:
            values = evaluate(utilities, rows, m, [shape])[0].reshape(-1, k)
            finite = np.isfinite(values).all(axis=1, keepdims=True)
            return np.where(finite, np.clip(values, 0.0, 1.0), np.nan)

        noisy, _ = self.__release("select", k, 1.0, share, name, LINF, 24, contributions, "mean")
        return int(noisy[0])

    def select_test(
        self, cells: RowFunction, tests: npt.ArrayLike, sizes: npt.ArrayLike, *, share: float, name: str
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
        tests : array_like of shape (C, sum of sizes)
            0 and 1: which cells pass. A test may let cells of one feature pass only, so that a person's utility is at
            most its weight.
        sizes : array_like of int
            Number of cells of each feature.
        """
        shapes = self.__probe(cells, name, 2)
        starts: IntArray = np.concatenate([[0], np.cumsum(np.asarray(sizes, dtype=np.int64))]).astype(np.int64)
        passing: IntArray = np.array(tests, dtype=np.int64)
        if shapes != [(len(starts) - 1,), ()]:
            raise PrivacyError(
                f"{name}: the function must give {len(starts) - 1} codes and one weight a row, got shapes {shapes}"
            )
        if (
            passing.ndim != 2
            or passing.shape[1] != starts[-1]
            or len(passing) < 2
            or not np.isin(passing, (0, 1)).all()
        ):
            raise PrivacyError(
                f"{name}: tests must be 0 and 1, at least two rows of {starts[-1]}, got shape {passing.shape}"
            )
        by_feature = np.add.reduceat(passing, starts[:-1], axis=1) > 0
        if (by_feature.sum(axis=1) > 1).any():
            raise PrivacyError(f"{name}: a test must be of one feature; some let cells of several pass")
        if self.__vault.grouped:
            feature = by_feature.argmax(axis=1)

            def utilities(rows: Rows) -> FloatArray:
                codes, weights = cells(rows)
                out = np.empty((len(codes), len(passing)))
                test_utilities(codes, weights, starts, passing, feature, out)
                return out

            return self.select(utilities, share=share, name=name)

        def sums(bits: int) -> IntArray:
            return passing @ cell_sums(self.__vault, cells, shapes, starts, bits=bits)

        noisy, _ = self.__release("select", len(passing), 1.0, share, name, LINF, 24, None, None, exact=sums)
        return int(noisy[0])

    def perturbed_minimum(
        self,
        f: RowFunction,
        *,
        loss: str,
        perturb: str = "output",
        ridge: float,
        share: float,
        name: str,
        clip: float = 1.0,
        target_clip: float | None = None,
        radius: float | None = None,
    ) -> Noisy:
        """Release a minimiser of ``Σ over persons of loss + (ridge/2) |θ|²`` with noise on it, or in its objective.

        Parameters
        ----------
        f : callable
            Row-local; gives the pair (features (m, D), targets (m, K)). Columns of the targets are K problems on the
            same features. All coordinates are regularised: a constant feature is a column like any other.
        loss : {"squared", "logistic"}
            ``½ |θ'f - r|²`` with |f| <= clip, |r| <= target_clip, over |θ|_F <= radius; or
            ``Σ_k log(1 + exp(-t_k z'w_k))`` with |z| <= 1 and the signs of the targets as labels (0: left out).
        perturb : {"output", "objective"}
            Noise on the minimiser (any loss), or a random linear term in the objective (logistic only). The latter is
            accounted for in (ε, δ) by itself, so with a δ it takes a whole budget, and every row must be a person.
        ridge : float
            Λ above 0: public, of the **sum** of losses.
        share, name
            As in :meth:`sum`.
        clip, target_clip, radius : float
            Public or released; ``target_clip`` and ``radius`` for the squared loss only.

        Returns
        -------
        Noisy
            ``value`` (D, K). ``sd``: of the noise on each entry; with "objective" of each entry of the linear term.

        Raises
        ------
        PrivacyError
            From public validation: nothing was read or spent.

        Notes
        -----
        *Output.* Sensitivity in L2: clip (radius · clip + target_clip)/Λ (squared), √K/Λ (logistic), twice that
        where a person is replaced; times √(DK) in L1. Rounding of the solution and of its lattice is added to it.

        *Objective.* ε, δ are 99 % for the linear term b (see :func:`fdadp.privacy._minima.gaussian_multiplier`; pure:
        |b| ~ Gamma(D, 1/ε'), ε' = ε/K - log(1 + 1/(4Λ))) and 1 % for noise on the minimiser, which covers that it was
        computed in floating point and that b lies on a lattice: given the exact minimiser, what was computed differs
        from it by at most a public bound. (A discrete Gaussian of some 2^40 steps is a continuous one rounded, but for
        a relative difference below 10^-20 of its probabilities.) Replace: two steps of adding or removing for (ε, δ),
        |b| doubled for pure ε.
        """
        if isinstance(self.__noise, DistributedNoise):
            raise PrivacyError(f"{name}: a minimiser is no sum: all rows must be in one place, not with several owners")
        _check_name(name)
        shapes = self.__probe(f, name, 2)
        D, K = (math.prod(shape) for shape in shapes)
        if loss not in ("squared", "logistic") or perturb not in ("output", "objective"):
            raise PrivacyError(
                f"{name}: loss must be 'squared' or 'logistic' and perturb 'output' or 'objective', got {loss!r}, "
                f"{perturb!r}"
            )
        squared = loss == "squared"
        if squared and perturb == "objective":
            raise PrivacyError(f"{name}: perturb must be 'output' with the squared loss, got 'objective'")
        wanted = {"ridge": ridge, "clip": clip} | ({"target_clip": target_clip, "radius": radius} if squared else {})
        for key, number in wanted.items():
            if not isinstance(number, (int, float, np.number)) or not 1e-100 < number < 1e100:
                raise PrivacyError(f"{name}: {key} must be a finite number above 0, got {number!r}")
        if not squared and (clip != 1 or target_clip is not None or radius is not None):
            raise PrivacyError(f"{name}: the logistic loss takes features in the unit ball: clip 1, no other bounds")
        if not squared and not SMALLEST_RIDGE <= ridge <= 1e9:
            raise PrivacyError(
                f"{name}: ridge must be from {SMALLEST_RIDGE} to 1e9 with the logistic loss, got {ridge:g}"
            )
        if squared and ridge > 1e9 * clip**2:
            raise PrivacyError(f"{name}: ridge must be at most 1e9 clip^2, got {ridge:g}")
        if perturb == "objective":
            return self.__objective(f, shapes, float(ridge), share, name)
        both = 2.0 if self.adjacency == "replace" else 1.0
        if squared:
            assert target_clip is not None and radius is not None
            bound = clip * (radius * clip + target_clip) / ridge

            def solve() -> FloatArray:
                return least_squares(
                    self.__vault, f, shapes, clip=clip, target_clip=target_clip, ridge=ridge, radius=radius
                )
        else:
            bound = math.sqrt(K) / ridge

            def solve() -> FloatArray:
                return logistic(self.__vault, f, shapes, ridge=ridge, linear=np.zeros((D, K)))

        # 0.1 % more than a person's influence for rounding in the solution (_minima), and a lattice step for its own.
        slack = both * 1.001 + (0 if squared else 2 * GRADIENT_ERROR)
        value, sampler, step = self.__noisy_point(solve, D * K, bound, slack, share, name)
        self.__record(sampler, step, share, name, clip=float(clip), where=" on the minimiser")
        return Noisy(value.reshape(D, K), sampler.sd * step)

    def __noisy_point(
        self, solve: Callable[[], FloatArray], size: int, unit: float, slack: float, share: float, name: str
    ) -> tuple[FloatArray, Sampler, float]:
        """Noise on a point that neighbouring data move by at most unit · slack in L2; charges the share."""
        amount = self.__account.check(share)
        step = unit * 2.0**-24
        sampler = self.__point_noise(size, math.ceil(slack * 2.0**24), amount)
        self.__account.spend(share)
        noisy = np.asarray(sampler(_to_lattice(solve(), step)), dtype=np.float64)
        return noisy * step, sampler, step

    def __point_noise(self, size: int, moves: int, amount: float) -> Sampler:
        """Noise on the lattice point nearest to one that moves by at most so many steps in L2."""
        sensitivity = moves + math.ceil(math.sqrt(size))  # each end is rounded by √size/2
        if self.pure:
            return self.__noise.prepare("laplace", size, float(math.ceil(sensitivity * math.sqrt(size))), amount)
        return self.__noise.prepare("gaussian", size, float(sensitivity), amount)

    def __objective(
        self, f: RowFunction, shapes: list[tuple[int, ...]], ridge: float, share: float, name: str
    ) -> Noisy:
        """Objective perturbation of K logistic problems; see :meth:`perturbed_minimum`."""
        D, K = (math.prod(shape) for shape in shapes)
        if self.__vault.grouped:
            raise PrivacyError(
                f"{name}: perturb must be 'output' where a person may have several rows: the proof for 'objective' "
                "needs one row a person"
            )
        amount = self.__account.check(share)
        delta = self.budget.delta
        if delta is None:
            epsilon = 0.99 * amount / K - math.log1p(1 / (4 * ridge))
            if epsilon <= 0:
                raise PrivacyError(
                    f"{name}: ridge must be above {1 / (4 * math.expm1(0.99 * amount / K)):.3g} at this share of "
                    f"epsilon, got {ridge:g}"
                )
            kind, cost, extra = "spherical", epsilon, 0.01 * amount
        else:
            self.__whole_budget(share, name, "objective perturbation")
            whole = self.budget.epsilon
            multiplier = gaussian_multiplier(*self.__for_one(0.99 * whole, 0.99 * delta), ridge, K)
            kind, cost, extra = "gaussian", multiplier**2 / 2, rho_from(0.01 * whole, 0.01 * delta)
        both = 2.0 if self.adjacency == "replace" and self.pure else 1.0
        lattice = 2.0**-40
        linear = [self.__noise.prepare(kind, D, both / lattice, cost) for _ in range(K)]
        # The point computed is at most this far from the exact minimiser for the real b, in each problem.
        away = (GRADIENT_ERROR + lattice * math.sqrt(D)) / ridge
        step = away * 2.0**-12
        point = self.__point_noise(D * K, math.ceil(2 * math.sqrt(K) * 2.0**12), extra)
        self.__account.spend(share)
        b = np.stack([sampler(np.zeros(D, dtype=np.int64)) * lattice for sampler in linear], axis=1)
        w = logistic(self.__vault, f, shapes, ridge=ridge, linear=b)
        noisy = point(_to_lattice(w, step)) * step
        cost_of_all = self.__account.amount * share if self.pure else None
        self.__record(
            linear[0], lattice, share, name, clip=1.0, where=" in the objective", whole=not self.pure, spent=cost_of_all
        )
        return Noisy(noisy.reshape(D, K), linear[0].sd * lattice)

    def __for_one(self, epsilon: float, delta: float) -> tuple[float, float]:
        """(ε, δ) for one person more or less, so that exchanging one, which is two such steps, costs what is given."""
        return (epsilon / 2, delta / (1 + math.exp(epsilon / 2))) if self.adjacency == "replace" else (epsilon, delta)

    def __whole_budget(self, share: float, name: str, what: str) -> None:
        if self.__account.used or not math.isclose(self.amount, self.budget.total) or not math.isclose(share, 1):
            raise PrivacyError(
                f"{name}: share must be 1 of a cohort that has reserved a whole budget, got {share:g}: {what} is "
                "accounted for in (epsilon, delta) by itself"
            )

    def wishart_moment(self, f: RowFunction, *, clip: float, share: float, name: str) -> Noisy:
        """Release Σ over persons of aa' with Wishart noise, a = f(row) clipped to |a| <= clip.

        The noise is positive semidefinite before its mean is taken off, which is done here. Accounted for in (ε, δ) by
        itself, with the exact number of degrees (see :mod:`fdadp.privacy._wishart`): it takes a whole budget, and every
        row must be a person. Replace: two steps of adding or removing.

        Returns
        -------
        Noisy
            ``value`` (p, p), symmetric; ``sd`` on the diagonal, 1/√2 of that off it.
        """
        _check_name(name)
        (shape,) = self.__probe(f, name, 1)
        _check_clip(clip, name)
        if self.__vault.grouped:
            raise PrivacyError(f"{name}: Wishart noise wants one row a person; sum_outer takes several")
        if self.budget.delta is None:
            raise PrivacyError(f"{name}: Wishart noise wants a delta, got a budget of pure epsilon")
        self.__account.check(share)
        self.__whole_budget(share, name, "Wishart noise")
        nu = degrees(*self.__for_one(self.budget.epsilon, self.budget.delta))
        p = math.prod(shape)
        sampler = self.__noise.prepare("wishart", p * (p + 1) // 2, 4.0**BITS, 1 / (4 * nu))
        self.__account.spend(share)
        noisy = sampler(exact_moment(self.__vault, f, shape, float(clip)))
        unit = (clip * 2.0**-BITS) ** 2
        self.__record(sampler, unit, share, name, clip=float(clip), whole=True)
        upper = np.zeros((p, p))
        upper[np.triu_indices(p)] = noisy * unit
        m = nu + p - 1
        moment = upper + np.triu(upper, 1).T - m * clip**2 * np.eye(p)
        return Noisy(moment, math.sqrt(2 * m) * clip**2)

    def derive(self, f: RowFunction, *, name: str = "derived rows") -> Cohort:
        """Give a cohort whose rows are f(row), of the same persons, on the same account and ledger.

        Saves work that several releases share (features, residuals). The new rows are as private as the old ones: they
        stay inside. Computed now for arrays in memory (a read), else on each pass; the reservation is spent.

        Parameters
        ----------
        f : callable
            Row-local; gives an array or a tuple of arrays.
        """
        shapes = self.__probe(f, name, None)
        self.__account.open()
        new = Cohort.__new__(Cohort)
        with silence():
            new.__vault = self.__vault.derive(f, shapes)
        new.__account, new.__noise, new.__releases = self.__account, self.__noise, self.__releases
        for key in ("adjacency", "n", "unit", "budget", "mechanism", "public"):
            setattr(new, key, getattr(self, key))
        return new

    def close(self) -> None:
        """Give the reservation back to the budget, if nothing was read; else it is spent and stays so."""
        self.__account.close()

    # ------------------------------------------------------------------ inside

    def __assumption(self) -> str | None:
        return self.__noise.assumption if isinstance(self.__noise, DistributedNoise) else None

    def __probe(self, f: RowFunction, name: str, outputs: int | None) -> list[tuple[int, ...]]:
        shapes = probe(f, self.__vault.spec, name)
        if outputs is not None and len(shapes) != outputs:
            raise PrivacyError(f"{name}: the function must give {outputs} array(s), got {len(shapes)}")
        if any(math.prod(shape) == 0 for shape in shapes):
            raise PrivacyError(f"{name}: the function must give at least one value a row, got shapes {shapes}")
        return shapes

    def __norm(self, norm: int | None, name: str) -> int:
        natural = L1 if self.pure else L2
        if norm not in (None, 1, 2):
            raise PrivacyError(f"{name}: norm must be 1 or 2, got {norm!r}")
        if norm == 2 and self.pure:
            raise PrivacyError(f"{name}: norm must be 1 with pure epsilon (Laplace noise), got 2")
        return natural if norm is None else {1: L1, 2: L2}[norm]

    def __sum(
        self,
        contributions: Contributions,
        d: int,
        clip: float,
        share: float,
        name: str,
        norm: int,
        per_person: str,
        bits: int,
        factor: float | None = None,
    ) -> Noisy:
        _check_clip(clip, name)
        if per_person not in ("mean", "sum"):
            raise PrivacyError(f"{name}: per_person must be 'mean' or 'sum', got {per_person!r}")
        if isinstance(bits, bool) or not isinstance(bits, int) or not 8 <= bits <= 26:
            raise PrivacyError(f"{name}: bits must be an integer from 8 to 26, got {bits!r}")
        noisy, sampler = self.__release(
            "sum", d, float(clip), share, name, norm, bits, contributions, per_person, factor=factor
        )
        gamma = float(clip) * 2.0**-bits
        return Noisy(noisy * gamma, sampler.sd * gamma)

    def __release(
        self,
        what: str,
        size: int,
        clip: float,
        share: float,
        name: str,
        norm: int,
        bits: int,
        contributions: Contributions | None,
        per_person: str | None,
        factor: float | None = None,
        exact: Callable[[int], IntArray] | None = None,
    ) -> tuple[IntArray, Sampler]:
        """Validate, fix the noise, spend, read, add noise: in this order."""
        _check_name(name)
        amount = self.__account.check(share)
        sensitivity = self.__sensitivity(what, bits, factor)
        if what == "select":
            kind = "exponential" if self.pure else "gumbel"
        else:
            kind = "laplace" if self.pure else "gaussian"
        sampler = self.__noise.prepare(kind, size, sensitivity, amount)
        if not (sampler.spent <= amount and sampler.scale > 0 and sampler.sensitivity >= sensitivity):
            raise PrivacyError(
                f"{name}: the noise costs {sampler.spent:g}, above its share {amount:g}; nothing was read"
            )
        self.__account.spend(share)  # from here on it is gone, whatever happens
        if sampler.known is not None:
            noisy = sampler.known
        else:
            if exact is not None:
                total = exact(bits)
            elif contributions is None:
                total = count_persons(self.__vault, bits)
            else:
                mean = per_person == "mean"
                total = exact_sum(self.__vault, contributions, size, clip=clip, bits=bits, norm=norm, mean=mean)
            noisy = sampler(total)
        self.__record(sampler, clip * 2.0**-bits, share, name, clip=clip, norm=norm, bits=bits)
        return noisy, sampler

    def __record(
        self,
        sampler: Sampler,
        step: float,
        share: float,
        name: str,
        *,
        clip: float,
        norm: int | None = None,
        bits: int | None = None,
        where: str = "",
        whole: bool = False,
        spent: float | None = None,
    ) -> None:
        """Write a release down, one unit of the sampler's integers being `step` of its own.

        ``norm``: by default that of the noise. ``whole``: accounted for in (ε, δ) by itself. ``spent``: where it is not
        what the sampler cost.
        """
        spent = sampler.spent if spent is None else spent
        norm = norm if norm is not None else L1 if sampler.kind == "laplace" else L2
        self.__releases.append(
            Release(
                name=name,
                size=1 if sampler.kind in SELECTIONS else sampler.size,
                noise=f"{_NOISE_NAMES[sampler.kind]}{where}, {self.__noise.description}",
                scale=sampler.scale * step,
                sensitivity=sampler.sensitivity * step,
                epsilon=self.budget.epsilon if whole else spent if self.pure else None,
                rho=None if self.pure or whole else spent,
                share=float(share),
                sd=sampler.sd * step,
                clip=clip,
                norm=_NORMS[norm],
                adjacency=self.adjacency,
                unit=self.unit,
                secure=self.secure,
                lattice_bits=bits,
                delta=self.budget.delta if whole else None,
            )
        )

    def __sensitivity(self, what: str, bits: int, factor: float | None) -> float:
        """Of the integer sum: one person's bound, doubled where a person is replaced (except as said)."""
        one = float(2 ** (bits - 1) if what == "select" else 2**bits)  # select: up to a constant, see there
        if self.adjacency != "replace":
            return one
        return 2 * one if factor is None else math.nextafter(factor * one, math.inf)

    def __repr__(self) -> str:
        n = "private" if self.n is None else self.n
        return f"Cohort(adjacency={self.adjacency!r}, n={n}, unit={self.unit!r}, releases={len(self.__releases)})"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise PrivacyError("a Cohort cannot be copied or pickled: it holds private rows")


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not name:
        raise PrivacyError(f"name must say what is released, for the ledger, got {name!r}")


def _check_clip(clip: Any, name: str) -> None:
    if not isinstance(clip, (int, float, np.number)) or not 1e-100 < clip < 1e100:
        raise PrivacyError(f"{name}: clip must be a finite number above 0 (public or released), got {clip!r}")


def _products(f: RowFunction, shape: tuple[int, ...], W: FloatArray) -> Contributions:
    """Contributions ``W * outer(f, f)`` of the rows of a block, W upper triangular."""
    active: IntArray = np.flatnonzero(W.ravel()).astype(np.int64)

    def contributions(rows: Rows, m: int) -> Products:
        a = evaluate(f, rows, m, [shape])[0].reshape(-1, len(W))
        return Products(a, a, W, active)

    return contributions


def _symmetric(entries: FloatArray) -> FloatArray:
    """Matrix of the entries on and above the diagonal, row by row."""
    D = order_of(len(entries))
    rows, columns = triangle(D)
    out = np.zeros((D, D))
    out[rows, columns] = out[columns, rows] = entries
    return out


def _to_lattice(point: FloatArray, step: float) -> IntArray:
    """Nearest multiples of a step, as integers; what is out of reach of int64 is cut off, which moves nothing apart."""
    with silence():
        return np.rint(np.clip(np.nan_to_num(point.ravel() / step), -(2.0**61), 2.0**61)).astype(np.int64)


_NOISE_NAMES = {
    "gaussian": "Gaussian",
    "laplace": "Laplace",
    "gumbel": "Gumbel (largest)",
    "exponential": "exponential (permute-and-flip)",
    "spherical": "spherical Laplace",
    "bingham": "Bingham (exponential)",
    "bingham-zcdp": "Bingham (exponential)",
    "wishart": "Wishart",
}


def _plain(value: Any) -> Any:
    """Make a public input ready for JSON."""
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)
