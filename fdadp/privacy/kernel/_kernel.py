"""What every release goes through: public checks, noise, account, rows, ledger, in this order.

:class:`fdadp.privacy.Cohort` says what can be asked; the questions stand in ``_sum_releases`` and
``_perturbed_minimisers``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, NoReturn

import numpy as np

from fdadp._common.typing import IntArray
from fdadp.errors import PrivacyError
from fdadp.privacy.account._reservations import Release
from fdadp.privacy.account.budget import Account, Budget
from fdadp.privacy.account.epsilon_mu_rho import IN_RHO, amount_for, cost_of
from fdadp.privacy.guarantee_checks import UNITS
from fdadp.privacy.kernel._exact_sums import (
    Contributions,
    Factors,
    contrast_sum,
    count_persons,
    exact_sum,
    rank_one_sum,
)
from fdadp.privacy.noise._matrix_noise import BITS
from fdadp.privacy.noise.distributed import DistributedNoise
from fdadp.privacy.noise.sources import DRAWS, MATRICES, SELECTIONS, Noise, OpenDPNoise, Sampler
from fdadp.privacy.rows._clipped_sums import L1, L2, LINF, NUCLEAR
from fdadp.privacy.rows._dask_partitions import AnyVault
from fdadp.privacy.rows._person_row_caps import MEAN, Exchangeable, Law, moment_weights
from fdadp.privacy.rows._sealed_row_functions import RowFunction, probe, silence

_NORMS = {L1: "L1", L2: "L2", LINF: "L-infinity", NUCLEAR: "nuclear"}
_NOISE_NAMES = {
    "gaussian": "Gaussian",
    "laplace": "Laplace",
    "gumbel": "Gumbel (largest)",
    "exponential": "exponential (permute-and-flip)",
    "spherical": "spherical Laplace",
    "bingham": "Bingham (exponential)",
    "bingham-zcdp": "Bingham (exponential)",
    "wishart": "Wishart",
    "product": "matrix Laplace (product of Gaussians)",
    "symmetric": "matrix Laplace (difference of Wisharts)",
}


_FLOATS = "drawn in floating point from the system's randomness"
_OURS = {
    "bingham": _FLOATS,
    "bingham-zcdp": _FLOATS,
    "wishart": "to 130 digits from the system's randomness",
    "spherical": "exact, from the system's randomness",
    "product": "exact, from the system's randomness",
    "symmetric": "exact, from the system's randomness",
}
"""What :class:`OpenDPNoise` draws itself, because OpenDP does not."""


class Noisy(NamedTuple):
    """A released value and the standard deviation of its noise."""

    value: Any
    sd: float


class Kernel:
    """Private rows, what may be spent on them, the source of noise, and what was released so far.

    Parameters
    ----------
    vault : Vault or PartitionedVault
    account : Account
        The reservation that releases draw on.
    noise : Noise
    budget : Budget
        That the account is of.
    adjacency : str
    n : int, optional
        Declared number of persons.
    releases : list of Release
        Written to; kernels of derived rows share it.
    law : Law
        How a person's rows are combined.
    """

    __slots__ = ("account", "adjacency", "budget", "law", "n", "noise", "releases", "vault")

    def __init__(
        self,
        vault: AnyVault,
        account: Account,
        noise: Noise,
        budget: Budget,
        adjacency: str,
        n: int | None,
        releases: list[Release],
        law: Law = MEAN,
    ) -> None:
        self.vault, self.account, self.noise, self.budget = vault, account, noise, budget
        self.adjacency, self.n, self.releases, self.law = adjacency, n, releases, law

    @property
    def pure(self) -> bool:
        """Whether the budget is in pure ε."""
        return self.budget.pure

    @property
    def unit(self) -> str:
        """Whom the budget protects, in words."""
        return UNITS[self.vault.grouped]

    @property
    def secure(self) -> bool:
        """Whether the noise may be used for a release: exactly the kernel's own classes, no subclass."""
        return is_secure(self.noise)

    def derive(self, f: RowFunction, name: str) -> Kernel:
        """Kernel of the rows f(row), on the same account and list of releases."""
        shapes = self.probe(f, name, None)
        self.account.open()
        with silence():
            vault = self.vault.derive(f, shapes)
        return Kernel(vault, self.account, self.noise, self.budget, self.adjacency, self.n, self.releases, self.law)

    def by_person(self, f: RowFunction, most: int, name: str) -> Kernel:
        """Kernel of one row a person, its rows f(row) side by side, on the same account and list of releases."""
        shapes = self.probe(f, name, None)
        self.account.open()
        with silence():
            vault = self.vault.by_person(f, shapes, most)
        law = Law("person", most)
        return Kernel(vault, self.account, self.noise, self.budget, self.adjacency, self.n, self.releases, law)

    def stop(self) -> None:
        """Give back what no release has used, unless a read has failed: that may tell of a row."""
        if not self.vault.failed:
            self.account.stop()

    def probe(self, f: RowFunction, name: str, outputs: int | None) -> list[tuple[int, ...]]:
        """Shapes of what f gives for a row, after the check on public rows."""
        shapes = probe(f, self.vault.spec, name)
        self.vault.check(f, name)
        if outputs is not None and len(shapes) != outputs:
            raise PrivacyError(f"{name}: the function must give {outputs} array(s), got {len(shapes)}")
        if any(math.prod(shape) == 0 for shape in shapes):
            raise PrivacyError(f"{name}: the function must give at least one value a row, got shapes {shapes}")
        return shapes

    def norm(self, norm: int | str | None, name: str) -> int:
        """Norm that contributions are clipped in, from what was asked for."""
        natural = L1 if self.pure else L2
        if norm not in (None, 1, 2):
            raise PrivacyError(f"{name}: norm must be 1 or 2, got {norm!r}")
        if norm == 2 and self.pure:
            raise PrivacyError(f"{name}: norm must be 1 with pure epsilon (Laplace noise), got 2")
        return natural if norm is None else L1 if norm == 1 else L2

    def for_one(self, epsilon: float, delta: float) -> tuple[float, float]:
        """(ε, δ) for one person more or less, so that exchanging one, which is two such steps, costs what is given."""
        return (epsilon / 2, delta / (1 + math.exp(epsilon / 2))) if self.adjacency == "replace" else (epsilon, delta)

    def whole_budget(self, share: float, name: str, what: str) -> None:
        """Refuse what has an accounting of its own unless it has a whole budget to itself."""
        if self.account.used or not math.isclose(self.account.amount, self.budget.total) or not math.isclose(share, 1):
            raise PrivacyError(
                f"{name}: share must be 1 of a cohort that has reserved a whole budget, got {share:g}; {what} is "
                "accounted for in (epsilon, delta) by itself"
            )

    def prepare(
        self,
        kind: str,
        size: int,
        sensitivity: float,
        amount: float,
        name: str,
        *,
        columns: int = 1,
        accounting: str | None = None,
    ) -> tuple[Sampler, float]:
        """Noise for an amount in the measure of the budget (or another), and its cost there; no row is read.

        The cost is that of the scale which the noise has, whoever chose it, and checked here.
        """
        accounting = accounting or self.budget.accounting
        own = amount_for(accounting, kind, amount)
        sampler = self.noise.prepare(kind, size, sensitivity, own, columns)
        cost = _cost(accounting, sampler)
        kept = sampler.spent <= own and 0 < cost <= amount
        if not (kept and sampler.scale > 0 and sampler.sensitivity >= sensitivity):
            raise PrivacyError(f"{name}: the noise costs {cost:g}, above its share {amount:g}; nothing was read")
        return sampler, cost

    def sum(
        self,
        contributions: Contributions,
        d: int,
        clip: float,
        share: float,
        name: str,
        norm: int,
        bits: int,
        factor: float | None = None,
    ) -> Noisy:
        """Release a clipped sum, in units of its contributions; arguments as of :meth:`SumReleases.sum`."""
        check_clip(clip, name)
        if isinstance(bits, bool) or not isinstance(bits, int) or not 8 <= bits <= 26:
            raise PrivacyError(f"{name}: bits must be an integer from 8 to 26, got {bits!r}")
        noisy, sampler = self.release("sum", d, float(clip), share, name, norm, bits, contributions, factor=factor)
        gamma = float(clip) * 2.0**-bits
        return Noisy(noisy * gamma, sampler.sd * gamma)

    def contrasts(
        self, f: RowFunction, shape: tuple[int, ...], law: str | Exchangeable, clip: float, share: float, name: str
    ) -> Noisy:
        """Release the entries on and above the diagonal of Σ over persons of their moments, with matrix Laplace noise.

        Each is clipped in the nuclear norm, which is its trace.
        """
        check_clip(clip, name)
        D, weights = shape[1], moment_weights(law, shape[0])

        def exact(bits: int) -> IntArray:
            task = partial(contrast_sum, f=f, shape=shape, weights=weights, clip=float(clip), bits=bits // 2)
            return self.vault.total(task).reshape(D, D)[np.triu_indices(D)]

        return self._nuclear(exact, (D * (D + 1) // 2, "symmetric"), D, float(clip), share, name)

    def products(
        self, factors: Factors, D: int, K: int, clip: float, share: float, name: str, *, symmetric: bool = False
    ) -> Noisy:
        """Release Σ over persons of a b', clipped in the nuclear norm, with matrix Laplace noise.

        Each row is clipped; a person whose rows are added up may add `clip` for each.

        `factors` gives a (m, D) and b (m, K) of a block of rows; `symmetric` says that b is a, and releases the
        entries on and above the diagonal, row by row. Sensitivity: ``docs/theory/kernel.md#rank-one``.
        """
        check_clip(clip, name)

        def exact(bits: int) -> IntArray:
            task = partial(rank_one_sum, factors=factors, D=D, K=K, clip=float(clip), bits=bits // 2, law=self.law)
            total = self.vault.total(task)
            return total.reshape(D, K)[np.triu_indices(D)] if symmetric else total

        kind = (D * (D + 1) // 2, "symmetric") if symmetric else (D * K, "product")
        value, sd = self._nuclear(exact, kind, K, float(clip) * self.law.most, share, name)
        return Noisy(value if symmetric else value.reshape(D, K), sd)

    def _nuclear(
        self,
        exact: Callable[[int], IntArray],
        kind: tuple[int, str],
        columns: int,
        clip: float,
        share: float,
        name: str,
    ) -> Noisy:
        """Release integers of which a person adds 4^BITS in the nuclear norm, in steps of clip 4^-BITS."""
        size, matrix = kind
        noisy, sampler = self.release(
            "sum", size, clip, share, name, NUCLEAR, 2 * BITS, None, exact=exact, matrix=matrix, columns=columns
        )
        return Noisy(noisy * clip * 4.0**-BITS, sampler.sd * clip * 4.0**-BITS)

    def release(
        self,
        what: str,
        size: int,
        clip: float,
        share: float,
        name: str,
        norm: int,
        bits: int,
        contributions: Contributions | None,
        factor: float | None = None,
        exact: Callable[[int], IntArray] | None = None,
        matrix: str | None = None,
        columns: int = 1,
    ) -> tuple[IntArray, Sampler]:
        """Validate, fix the noise, spend, read, add noise: in this order.

        What is summed are `contributions`, or what `exact` gives for `bits`, or persons where neither is given. The
        noise is Gaussian or Laplace, or the kind of matrix Laplace noise that `matrix` names, which is pure: with a
        budget that has a δ it takes the whole of it, at its ε.
        """
        check_name(name)
        amount, accounting, whole = self.account.check(share), self.budget.accounting, False
        if matrix and not self.pure:
            self.whole_budget(share, name, "matrix Laplace noise")
            amount, accounting, whole = self.budget.epsilon, "pure", True
        sensitivity = self.sensitivity(what, bits, factor)
        if what == "select":
            kind = "exponential" if self.pure else "gumbel"
        else:
            kind = matrix or ("laplace" if self.pure else "gaussian")
        sampler, cost = self.prepare(kind, size, sensitivity, amount, name, columns=columns, accounting=accounting)
        self.charge(
            sampler,
            clip * 2.0**-bits,
            share,
            name,
            cost=self.account.amount if whole else cost,
            clip=clip,
            norm=norm,
            bits=bits,
            whole=whole,
        )
        if sampler.known is not None:
            noisy = sampler.known
        else:
            if exact is not None:
                total = exact(bits)
            elif contributions is None:
                total = self.vault.total(partial(count_persons, bits=bits, law=self.law))
            else:
                how: dict[str, Any] = {"clip": clip, "bits": bits, "norm": norm, "law": self.law}
                total = self.vault.total(partial(exact_sum, contributions=contributions, size=size, **how))
            noisy = sampler(total)
        return noisy, sampler

    def charge(
        self,
        sampler: Sampler,
        step: float,
        share: float,
        name: str,
        *,
        cost: float,
        clip: float,
        norm: int | None = None,
        bits: int | None = None,
        where: str = "",
        whole: bool = False,
        spent: float | None = None,
    ) -> None:
        """Spend on a release and write it down, just before it reads: from here on it is gone whatever happens.

        Parameters
        ----------
        sampler : Sampler
        step : float
            One unit of the sampler's integers, in units of what is released.
        share, cost : float
            Of the reservation, and in the measure of the budget.
        norm : int, optional
            By default that of the noise.
        whole : bool
            Accounted for in (ε, δ) by itself.
        spent : float, optional
            The ε of a pure release where it is not what the sampler cost.
        """
        accounting = self.budget.accounting
        epsilon = self.budget.epsilon if whole else sampler.spent if spent is None else spent
        counted = not (self.pure or whole)
        norm = norm if norm is not None else L1 if sampler.kind == "laplace" else L2
        source = _OURS.get(sampler.kind) if type(self.noise) is OpenDPNoise else None
        release = Release(
            name=name,
            size=1 if sampler.kind in SELECTIONS else sampler.size,
            noise=f"{_NOISE_NAMES[sampler.kind]}{where}, {source or self.noise.description}",
            scale=sampler.scale * step,
            sensitivity=sampler.sensitivity * step,
            epsilon=None if counted and sampler.kind in IN_RHO else epsilon,
            rho=_cost("zcdp", sampler) if counted else None,
            mu=math.sqrt(2 * _cost("gdp", sampler)) if counted and accounting == "gdp" else None,
            share=float(share),
            sd=sampler.sd * step,
            clip=clip,
            norm=_NORMS[norm],
            adjacency=self.adjacency,
            unit=self.unit,
            secure=self.secure,
            lattice_bits=bits,
            delta=None if not whole else 0.0 if sampler.kind in MATRICES else self.budget.delta,
            draw=DRAWS[sampler.kind] if self.secure else "",
        )
        self.account.spend(share, cost, whole=whole, release=release)
        self.releases.append(release)

    def sensitivity(self, what: str, bits: int, factor: float | None) -> float:
        """Of the integer sum: one person's bound, doubled where a person is replaced (except as said)."""
        one = float(2 ** (bits - 1) if what == "select" else 2**bits)  # select: up to a constant, see there
        if self.adjacency != "replace":
            return one
        return 2 * one if factor is None else math.nextafter(factor * one, math.inf)

    def __repr__(self) -> str:
        return "<private rows>"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise PrivacyError("private rows cannot be copied or pickled")


def is_secure(noise: Noise) -> bool:
    """Whether noise may be used for a release: exactly the kernel's own classes, no subclass."""
    return type(noise) is OpenDPNoise or (type(noise) is DistributedNoise and noise.secure)


def _cost(accounting: str, sampler: Sampler) -> float:
    """Cost of a release in the measure of a budget, from the scale that its noise has for sure."""
    scale = sampler.guaranteed or sampler.scale
    return cost_of(accounting, sampler.kind, sensitivity=sampler.sensitivity, scale=scale, spent=sampler.spent)


def check_name(name: Any) -> None:
    """Refuse what is no name for the ledger."""
    if not isinstance(name, str) or not name:
        raise PrivacyError(f"name must say what is released, for the ledger, got {name!r}")


def check_clip(clip: Any, name: str) -> None:
    """Refuse what is no clip."""
    if not isinstance(clip, (int, float, np.number)) or not 1e-100 < clip < 1e100:
        raise PrivacyError(f"{name}: clip must be a finite number above 0 (public or released), got {clip!r}")
