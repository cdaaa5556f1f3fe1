"""The kernel: the one object that reads private rows, and gives out nothing but clipped sums with noise.

Why the sensitivity holds, for every release: a person's contribution is a function of that person's rows and of public
or released values (see ``_sealed_row_functions``); it is clipped and truncated toward zero onto a lattice of 2^bits
steps per clip, where its norm is checked on the integers themselves (``_clipped_sums.quantise``;
``docs/theory/kernel.md#truncation``); the integers are added exactly. So blanking out, adding or removing a person
changes the sum by an integer vector of norm at most 2^bits, and exchanging one by at most twice that. The noise is
drawn on the integers, from a sampler whose privacy map at this sensitivity was checked before the first row was read.

*Errors are releases too.* All validation is public and comes first. From the first read on the budget is spent whatever
happens, and what happens does not depend on private values: rows that cannot be evaluated contribute zero. (One
exception: a source of chunks that fails while it is read, for then no sum with a bounded sensitivity is left.)

Two releases are no sums with integer noise: ``perturbed_minimum`` solves a regularised problem on the rows, for the
mechanisms that perturb a minimiser or its objective, and ``wishart_moment`` adds Wishart noise to a second moment. What
they rely on instead is proved in ``_loss_minimisers`` and ``_matrix_noise``.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import math
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import numpy as np

from fdadp._version import __version__
from fdadp.errors import FailedReadError, PrivacyError
from fdadp.privacy.account._reservations import Binding, Release
from fdadp.privacy.account.budget import Budget
from fdadp.privacy.account.ledger import Ledger
from fdadp.privacy.guarantee_checks import (
    ADJACENCIES,
    DIRECTIONS_IN_FLOATS,
    UNITS,
    broken,
    check_delta,
    statement,
    whole,
)
from fdadp.privacy.kernel._kernel import Kernel, is_secure
from fdadp.privacy.kernel._kernel import Noisy as Noisy
from fdadp.privacy.kernel._perturbed_minimisers import MinimumReleases
from fdadp.privacy.kernel._sum_releases import SumReleases
from fdadp.privacy.noise.distributed import DistributedNoise
from fdadp.privacy.noise.sources import NOT_PROVED, Noise, OpenDPNoise
from fdadp.privacy.rows._dask_partitions import vault_of
from fdadp.privacy.rows._person_row_caps import Law, check_most, law_of
from fdadp.privacy.rows._sealed_row_functions import FAILED, RowFunction


class Cohort(SumReleases, MinimumReleases):
    """Private rows behind a wall: questions in, noisy answers out, each of them charged and written down.

    Parameters
    ----------
    data : array, tuple of arrays, or re-iterable of such tuples
        Rows along the first axis. Functions see them as float64, in blocks, on several threads at once; what is no
        number is NaN. Chunks must be iterable several times. The shape of a row is public. Where a client of
        ``dask.distributed`` is active, Dask's arrays and frames (also tuples of them), and lists of ``dask.delayed``
        chunks, stay on its workers (``docs/theory/kernel.md#partitions``).
    groups : sequence or True, optional
        Id of the person of each row (a whole number, text, or a tuple of such); without it every row is a person. A row
        without an id is never used. True: each chunk ends with the ids of its rows. Which ids are one, and which name
        nobody: ``docs/theory/kernel.md#persons``.
    budget : Budget
        What may be spent, perhaps shared with other cohorts of the same data.
    adjacency : {"zero-out", "add-remove", "replace"}, optional
        Default: ``"zero-out"`` where n is declared, else ``"add-remove"``, the only one under which the number of
        persons is private.
    n : int, optional
        Declared number of persons: a public constant, never compared with the data. Required unless "add-remove".
    noise : Noise, optional
        Default :class:`OpenDPNoise`. With any other, but for the secure shares of many owners
        (:class:`~fdadp.privacy.noise.distributed.DistributedNoise`), the ledger says "not for release".
    person_rows : {"mean", "sum"}
        How the rows of a person are combined before the one clip: each person counts once, by the mean of its usable
        rows; or each row counts once.
    max_rows : int, optional
        With ``"sum"``: rows of a person that count at most, a public number. Of more rows those with the smallest
        public hash of their entries count (``docs/theory/kernel.md#laws``).
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
    others : int
        Known fits to the same data, or of the same estimator, before this one and not on its budget; for the ledger.

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

    __slots__ = ("__weakref__", "_kernel", "mechanism", "others", "public")

    def __init__(
        self,
        data: Any,
        *,
        groups: Any = None,
        budget: Budget,
        adjacency: str | None = None,
        n: int | None = None,
        noise: Noise | None = None,
        person_rows: str = "mean",
        max_rows: int | None = None,
        share: float = 1.0,
        dataset: str | None = None,
        mechanism: str = "cohort",
        public: Mapping[str, Any] | None = None,
    ) -> None:
        if not isinstance(budget, Budget):
            raise PrivacyError(f"budget must be a Budget, got {type(budget).__name__}")
        n = None if n is None else whole(n, "n", "the declared number of persons")
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
        law = law_of(person_rows, max_rows)
        vault = None
        with contextlib.suppress(FailedReadError):  # looking at the first chunk
            vault = vault_of(data, groups, law.max_rows)
        grouped = groups is not None if vault is None else vault.grouped
        if law.name == "sum" and not grouped:
            raise PrivacyError("person_rows must be 'mean' without groups, the person id of every row, got 'sum'")
        identity = ("chunks", id(data)) if vault is None else vault.identity()
        token = identity if dataset is None else ("named", dataset)
        source: Noise = OpenDPNoise() if noise is None else noise
        about = {"mechanism": mechanism, "public": dict(public or {}), "secure": is_secure(source)}
        account = budget.reserve(share, Binding(token, UNITS[grouped], adjacency), about)
        if vault is None:
            account.open()
            raise FailedReadError(FAILED)
        self._kernel = Kernel(vault, account, source, budget, adjacency, n, [], law)
        self.mechanism = mechanism
        self.public = dict(public or {})
        self.others = 0

    # ------------------------------------------------------------------ what is public

    @property
    def adjacency(self) -> str:
        """What neighbouring data are."""
        return self._kernel.adjacency

    @property
    def n(self) -> int | None:
        """Declared number of persons; None where it is private."""
        return self._kernel.n

    @property
    def unit(self) -> str:
        """Whom the budget protects, in words."""
        return self._kernel.unit

    @property
    def law(self) -> Law:
        """How the rows of a person are combined."""
        return self._kernel.law

    @property
    def budget(self) -> Budget:
        """The budget that this cohort draws on."""
        return self._kernel.budget

    @property
    def reads(self) -> int:
        """Passes over private rows so far."""
        return self._kernel.vault.passes

    @property
    def pure(self) -> bool:
        """Whether the budget is in pure ε: L1 clips and Laplace noise (or matrix Laplace); else L2 and Gaussian."""
        return self._kernel.pure

    def pure_is_quieter(self, variance: float, *, symmetric: bool = False) -> bool:
        """Whether a pure release of the whole (ε, δ) budget has less noise than a Gaussian one: from public numbers.

        Parameters
        ----------
        variance : float
            Of the pure noise for ε = 1 over the squared clip; Gaussian noise of unit scale has 1. It is p + 1 for a
            second moment of p values, and D + K for a sum of D × K products. It is 1.3 times that where principal
            directions are wanted, as the largest eigenvalue of the noise is up to 1.16 times as large at the same sd.
        symmetric : bool
            Of a second moment: where a person is replaced its Gaussian noise grows by √2 only, pure noise by 2.

        Notes
        -----
        The rule is variance < (ε/μ)², which is 17.8 at (1, 1e-6). False where the budget is pure already, in part used
        or shared, or the noise is added in owners' shares.
        """
        budget, account = self.budget, self._kernel.account
        if budget.pure or isinstance(self._kernel.noise, DistributedNoise):
            return False
        if account.used or not math.isclose(account.amount, budget.total):
            return False
        twice = 2 if symmetric and self.adjacency == "replace" else 1
        return variance * twice < budget.epsilon**2 / (2 * budget.total)

    @property
    def amount(self) -> float:
        """μ²/2, ρ or ε that this cohort reserved."""
        return self._kernel.account.amount

    @property
    def left(self) -> float:
        """Share that its releases have not used."""
        return max(1 - self._kernel.account.used, 0.0)

    @property
    def secure(self) -> bool:
        """Whether the noise may be used for a release: exactly the kernel's own classes, no subclass."""
        return self._kernel.secure

    @property
    def inflation(self) -> float:
        """Factor on the noise that the amounts stand for: 1, more where owners may fail to deliver their shares."""
        noise = self._kernel.noise
        return noise.inflation if isinstance(noise, DistributedNoise) else 1.0

    @property
    def releases(self) -> tuple[Release, ...]:
        """What was released so far."""
        return tuple(self._kernel.releases)

    @property
    def ledger(self) -> Ledger:
        """What was released, under which assumptions, and what it protects; depends on no private value."""
        budget = self.budget
        releases = list(self._kernel.releases)
        used = math.fsum(self.amount if r.delta is not None else r.spent for r in releases)
        details = {
            "budget": f"epsilon {budget.epsilon:g}" + ("" if budget.delta is None else f", delta {budget.delta:g}"),
            "accounting": budget.measure,
            **_by_range(releases),
            "total": budget.total,
            "reserved by this fit": self.amount,
            "spent by its releases": used,
            "spent by its releases, as epsilon": budget.epsilon_of(used),
            **self._kernel.account.facts,
            "adjacency": self.adjacency,
            "unit": self.unit,
            **({"rows of a person": str(self.law)} if self._kernel.vault.grouped else {}),
            "n": "private" if self.n is None else f"{self.n}, declared and public; not compared with the data",
            **_delta(budget.delta, self.n),
            "noise": self._kernel.noise.description,
            **_draws(releases),
            **{f"public input: {key}": _plain(value) for key, value in self.public.items()},
            "fdadp": __version__,
            "numpy": np.__version__,
            "opendp": _version_of("opendp"),
        }
        noise = self._kernel.noise
        if_only = noise.assumption if isinstance(noise, DistributedNoise) else None
        kept = used <= self.amount and budget.cost <= budget.total
        text = statement(budget, self.adjacency, self.unit, secure=self.secure, if_only=if_only)
        proved = all(r.draw != NOT_PROVED for r in releases)
        if not proved:
            text += f" {DIRECTIONS_IN_FLOATS}"
        return Ledger(
            mechanism=self.mechanism,
            private=kept,
            statement=text if kept else broken(used, self.amount, budget),
            releases=releases,
            unnoised=[],
            for_release=kept and self.secure and proved,
            details=details,
            epsilon=budget.epsilon if kept else None,
            delta=budget.delta if kept else None,
            others=self.others,
            mu=budget.mu if kept and all(r.delta is None for r in releases) else None,
        )

    # ------------------------------------------------------------------ releases

    def derive(self, f: RowFunction, *, name: str = "derived rows") -> Cohort:
        """Give a cohort whose rows are f(row), of the same persons, on the same account and ledger.

        Saves work that several releases share (features, residuals). The new rows are as private as the old ones: they
        stay inside. Computed now (a read), and kept if they fit: see ``_vault.KEPT``. The reservation is spent.

        Parameters
        ----------
        f : callable
            Row-local; gives an array or a tuple of arrays.
        """
        return self._with(self._kernel.derive(f, name))

    def by_person(self, f: RowFunction, *, max_rows: int, name: str = "rows of persons") -> Cohort:
        """Give a cohort of one row a person: its rows f(row) side by side, on the same account and ledger.

        What is asked of it is asked of persons: a function sees arrays (m, max_rows, ...), with NaN where a person has
        fewer rows, and :meth:`person_moment` takes moments. Of more rows those with the smallest public hash count.
        The rows stand in an order of their own, which neither files nor chunks change. Computed now (a read), and held
        in memory: persons × max_rows × values × 8 bytes. The reservation is spent.

        Parameters
        ----------
        f : callable
            Row-local; gives an array or a tuple of arrays. A row with an entry that is not finite is left out.
        max_rows : int
            Public.

        Raises
        ------
        PrivacyError
            No persons are known (no ``groups``), or max_rows is no number of rows. Nothing was read or spent.
        """
        if not self._kernel.vault.grouped:
            raise PrivacyError(f"{name}: rows of persons need groups, the person id of every row")
        return self._with(self._kernel.by_person(f, check_most(max_rows, "for rows of persons"), name))

    def _with(self, kernel: Kernel) -> Cohort:
        """A cohort of other rows of the same persons."""
        new = Cohort.__new__(Cohort)
        new._kernel, new.mechanism, new.public, new.others = kernel, self.mechanism, self.public, self.others
        return new

    def close(self) -> None:
        """Give the reservation back to the budget, if nothing was read; else it is spent and stays so."""
        self._kernel.account.close()

    def stop(self) -> None:
        """Release nothing more, and give what no release has used back to the budget.

        Whether and when a mechanism calls this may depend on what is public and on released values, on nothing else:
        the rest is then as good as never asked for (``docs/theory/accounting.md#given-back``). After a read that
        failed nothing is given back: that may have been because of a row.
        """
        self._kernel.stop()

    @contextlib.contextmanager
    def refusing(self) -> Iterator[None]:
        """Checks inside see public and released values only, and read nothing: a PrivacyError ends the cohort.

        It says what was spent before it.
        """
        try:
            yield
        except PrivacyError as refused:
            self.stop()
            if released := ", ".join(dict.fromkeys(release.name for release in self._kernel.releases)):
                refused.args = (f"{refused}. What was released before that is spent: {released}",)
            raise

    def __repr__(self) -> str:
        n = "private" if self.n is None else self.n
        return f"Cohort(adjacency={self.adjacency!r}, n={n}, unit={self.unit!r}, releases={len(self._kernel.releases)})"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise PrivacyError("a Cohort cannot be copied or pickled: it holds private rows")


@functools.cache
def _version_of(package: str) -> str:
    return importlib.metadata.version(package)  # reads a file


def _by_range(releases: list[Release]) -> dict[str, str]:
    """Which releases in Gaussian DP are no Gaussian sums, for the ledger."""
    names = [r.name for r in releases if r.mu is not None and not r.noise.startswith("Gaussian")]
    return {"charged by their range (docs/theory/gaussian-dp.md#range)": ", ".join(names)} if names else {}


def _draws(releases: list[Release]) -> dict[str, str]:
    """How near to their laws the noises were drawn, for the ledger."""
    kinds = list(dict.fromkeys(r.draw for r in releases if r.draw))
    names = {kind: ", ".join(r.name for r in releases if r.draw == kind) for kind in kinds}
    said = [kind if len(kinds) == 1 else f"{kind}: {names[kind]}" for kind in kinds]
    return {"draws (docs/theory/noise.md#exactness)": "; ".join(said)} if said else {}


def _delta(delta: float | None, n: int | None) -> dict[str, str]:
    """What δ allows, for the ledger: each person's data could be published as they are with this probability."""
    if delta is None:
        return {}
    if n is None:
        return {"delta against n": f"n is private: delta is below 1/n for fewer than {1 / delta:.4g} persons only"}
    return {"delta against n": f"n times delta is {n * delta:.3g}"}


def _plain(value: Any) -> Any:
    """Make a public input ready for JSON."""
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)
