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

One release is no sum: ``perturbed_minimum`` solves a regularised problem on the rows, for the mechanisms that perturb
a minimiser or its objective. What it relies on instead is proved in ``_minima``.
"""

from __future__ import annotations

import importlib.metadata
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn

import numpy as np

from fdadp._typing import FloatArray, IntArray
from fdadp._version import __version__
from fdadp.errors import PrivacyError
from fdadp.privacy._local import BLOCK, RowFunction, Rows, evaluate, probe, silence
from fdadp.privacy._minima import GRADIENT_ERROR, SMALLEST_RIDGE, gaussian_multiplier, least_squares, logistic
from fdadp.privacy._rows import L1, L2, LINF, log_positions
from fdadp.privacy._statement import UNITS, statement
from fdadp.privacy._sums import Contributions, Products, count_persons, exact_sum
from fdadp.privacy._vault import Vault
from fdadp.privacy._wishart import BITS, degrees, exact_moment
from fdadp.privacy.accounting import epsilon_from, rho_from
from fdadp.privacy.budget import Binding, Budget
from fdadp.privacy.ledger import Ledger, Release
from fdadp.privacy.noise import Noise, OpenDPNoise, Sampler
from fdadp.privacy.settings import ADJACENCIES

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
        if n is not None and budget.delta is not None and budget.delta * int(n) >= 1:
            raise PrivacyError(f"delta must be below 1/n = {1 / int(n):g}, got {budget.delta:g}")
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
        """Whether the noise may be used for a release: exactly OpenDPNoise, no subclass."""
        return type(self.__noise) is OpenDPNoise

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
            statement=statement(budget, self.adjacency, self.unit, secure=self.secure),
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
            return evaluate(f, rows, m, [shape])[0].reshape(-1, d)

        return self.__sum(contributions, d, clip, share, name, self.__norm(norm, name), per_person, bits)

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
        shape = self.__probe(h, name, 1)[0]
        d = math.prod(shape)

        def contributions(rows: Rows, m: int) -> FloatArray:
            values = evaluate(h, rows, m, [shape])[0].reshape(-1, d)
            return np.where(values < 0, 0.0, values)

        factor = math.sqrt(2) if not self.pure and self.adjacency == "replace" else None
        return self.__sum(contributions, d, 1.0, share, name, L1, "mean", 24, factor=factor)

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

        The kernel clips each person's utilities to [0, 1] itself, so the sums have L∞ sensitivity 1 for each
        adjacency. (ε, δ): Gumbel noise of scale s, the exponential mechanism, ρ = ½ (1/s)², without using monotonicity;
        pure ε: permute-and-flip, ε = 2/s. See :mod:`fdadp.privacy.noise`.
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
        from it by at most a public bound. Replace: two steps of adding or removing for (ε, δ), |b| doubled for pure ε.
        """
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
        sensitivity = math.ceil(slack * 2.0**24) + math.ceil(math.sqrt(size))
        kind = "gaussian"
        if self.pure:
            kind, sensitivity = "laplace", math.ceil(sensitivity * math.sqrt(size))
        sampler = self.__noise.prepare(kind, size, float(sensitivity), amount)
        self.__account.spend(share)
        noisy = np.asarray(sampler(_to_lattice(solve(), step)), dtype=np.float64)
        return noisy * step, sampler, step

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
        replace = self.adjacency == "replace"
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
            of_term, of_delta = 0.99 * whole, 0.99 * delta
            if replace:  # two neighbouring steps
                of_term, of_delta = of_term / 2, of_delta / (1 + math.exp(of_term / 2))
            multiplier = gaussian_multiplier(of_term, of_delta, ridge, K)
            kind, cost, extra = "gaussian", multiplier**2 / 2, rho_from(0.01 * whole, 0.01 * delta)
        both = 2.0 if replace and self.pure else 1.0
        lattice = 2.0**-40
        linear = [self.__noise.prepare(kind, D, both / lattice, cost) for _ in range(K)]
        # The point computed is at most this far from the exact minimiser for the real b, in each problem.
        away = (GRADIENT_ERROR + lattice * math.sqrt(D)) / ridge
        step = away * 2.0**-12
        size = D * K
        sensitivity = math.ceil(2 * math.sqrt(K) * 2.0**12) + math.ceil(math.sqrt(size))
        point = self.__noise.prepare(
            "laplace" if self.pure else "gaussian",
            size,
            float(math.ceil(sensitivity * math.sqrt(size)) if self.pure else sensitivity),
            extra,
        )
        self.__account.spend(share)
        b = np.stack([sampler(np.zeros(D, dtype=np.int64)) * lattice for sampler in linear], axis=1)
        w = logistic(self.__vault, f, shapes, ridge=ridge, linear=b)
        noisy = point(_to_lattice(w, step)) * step
        self.__record(linear[0], lattice, share, name, clip=1.0, where=" in the objective", whole=not self.pure)
        return Noisy(noisy.reshape(D, K), linear[0].sd * lattice)

    def __whole_budget(self, share: float, name: str, what: str) -> None:
        if self.__account.used or not math.isclose(self.amount, self.budget.total) or not math.isclose(share, 1):
            raise PrivacyError(
                f"{name}: share must be 1 of a cohort that has reserved a whole budget, got {share:g}: {what} is "
                "accounted for in (epsilon, delta) by itself"
            )

    def __record(
        self, sampler: Sampler, step: float, share: float, name: str, *, clip: float, where: str, whole: bool = False
    ) -> None:
        spent = sampler.spent if sampler.kind != "spherical" else self.__account.amount * share
        kind = _NOISE_NAMES[sampler.kind] + where
        self.__releases.append(
            Release(
                name=name,
                size=sampler.size,
                noise=f"{kind}, {self.__noise.description}",
                scale=sampler.scale * step,
                sensitivity=sampler.sensitivity * step,
                epsilon=self.budget.epsilon if whole else spent if self.pure else None,
                rho=None if self.pure or whole else spent,
                share=float(share),
                sd=sampler.sd * step,
                clip=clip,
                norm="L1" if sampler.kind == "laplace" else "L2",
                adjacency=self.adjacency,
                unit=self.unit,
                secure=self.secure,
                delta=self.budget.delta if whole else None,
            )
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
        (shape,) = self.__probe(f, name, 1)
        if not isinstance(clip, (int, float, np.number)) or not 1e-100 < clip < 1e100:
            raise PrivacyError(f"{name}: clip must be a finite number above 0 (public or released), got {clip!r}")
        if self.__vault.grouped:
            raise PrivacyError(f"{name}: Wishart noise wants one row a person; sum_outer takes several")
        if self.budget.delta is None:
            raise PrivacyError(f"{name}: Wishart noise wants a delta, got a budget of pure epsilon")
        self.__account.check(share)
        self.__whole_budget(share, name, "Wishart noise")
        epsilon, delta = self.budget.epsilon, self.budget.delta
        if self.adjacency == "replace":
            epsilon, delta = epsilon / 2, delta / (1 + math.exp(epsilon / 2))
        nu = degrees(epsilon, delta)
        p = math.prod(shape)
        sampler = self.__noise.prepare("wishart", p * (p + 1) // 2, 4.0**BITS, 1 / (4 * nu))
        self.__account.spend(share)
        noisy = sampler(exact_moment(self.__vault, f, shape, float(clip)))
        unit = (clip * 2.0**-BITS) ** 2
        self.__record(sampler, unit, share, name, clip=float(clip), where="", whole=True)
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
        if not isinstance(clip, (int, float, np.number)) or not 1e-100 < clip < 1e100:
            raise PrivacyError(f"{name}: clip must be a finite number above 0 (public or released), got {clip!r}")
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
    ) -> tuple[IntArray, Sampler]:
        """Validate, fix the noise, spend, read, add noise: in this order."""
        if not isinstance(name, str) or not name:
            raise PrivacyError(f"name must say what is released, for the ledger, got {name!r}")
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
        if contributions is None:
            total = count_persons(self.__vault, bits)
        else:
            mean = per_person == "mean"
            total = exact_sum(self.__vault, contributions, size, clip=clip, bits=bits, norm=norm, mean=mean)
        noisy = sampler(total)
        gamma = clip * 2.0**-bits
        self.__releases.append(
            Release(
                name=name,
                size=1 if what == "select" else size,
                noise=f"{_NOISE_NAMES[kind]}, {self.__noise.description}",
                scale=sampler.scale * gamma,
                sensitivity=sensitivity * gamma,
                epsilon=sampler.spent if self.pure else None,
                rho=None if self.pure else sampler.spent,
                share=float(share),
                sd=sampler.sd * gamma,
                clip=clip,
                norm=_NORMS[norm],
                adjacency=self.adjacency,
                unit=self.unit,
                secure=self.secure,
                lattice_bits=bits,
            )
        )
        return noisy, sampler

    def __sensitivity(self, what: str, bits: int, factor: float | None) -> float:
        """Of the integer sum: one person's bound, doubled where a person is replaced (except as said)."""
        one = float(2**bits)
        if self.adjacency != "replace" or what == "select":  # utilities in [0, 1] differ by at most 1
            return one
        return 2 * one if factor is None else math.nextafter(factor * one, math.inf)

    def __repr__(self) -> str:
        n = "private" if self.n is None else self.n
        return f"Cohort(adjacency={self.adjacency!r}, n={n}, unit={self.unit!r}, releases={len(self.__releases)})"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise PrivacyError("a Cohort cannot be copied or pickled: it holds private rows")


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
    "wishart": "Wishart",
}


def _plain(value: Any) -> Any:
    """Make a public input ready for JSON."""
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)
