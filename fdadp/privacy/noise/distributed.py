"""Noise that many owners add together: each one a share, of which any few honest ones are enough for the guarantee.

A :class:`~fdadp.privacy.Cohort` of one owner's persons, given this noise, computes its exact integer sum as ever and
adds a discrete Gaussian share to it. What leaves the kernel is that noisy share, an integer vector that never wraps
around. Who adds up the shares of all owners, and learns nothing else, has the sum over all persons with at least the
noise that one cohort of all of them would have added. A fit is a program of several such releases. It is run again from
the start for each of them, with the totals that are public by then in place of its first releases (these read no rows),
up to the release whose total is not known yet: there the program ends with :class:`NextRound`, which carries the share.

*Cap.* An owner's exact sum is limited, entry by entry, to what ``n_max`` persons can give. That moves no two sums
further apart, so the sensitivity is what it was under every adjacency. (To leave out the persons beyond the cap by
their position would not do where persons come and go: with one more at the front another one drops out at the end,
twice the sensitivity.) Totals then need a number of bits that is public beforehand.

*Cost.* With h honest shares of standard deviation σ on vectors of size d and sensitivity Δ, the sum is in Gaussian DP
with μ = Δ/√(hσ² - 16) (``docs/theory/gaussian-dp.md#shares``), which the kernel computes, and it is ½ε²-zCDP with
ε = min(√(Δ²/(hσ²) + τd/2), Δ/(√h σ) + τ√d), τ = 10 Σ_{k<h} exp(-2π²σ² k/(k + 1)): sums of discrete Gaussians are not
quite discrete Gaussian (Kairouz, Liu & Steinke 2021, Proposition 14, arXiv:2102.06387). For σ of thousands of lattice
steps, as here, τ is 0 in floating point. More shares than h only add independent noise. Who sees the share of one owner
alone has that owner's persons at μ = Δ/√(σ² - 16), √h times as much and a hair; over a fit the squares add up.

Proofs, and what each party sees: ``docs/theory/federated.md#noise``.
"""

from __future__ import annotations

import contextlib
import contextvars
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from fdadp._common.typing import IntArray
from fdadp.errors import PrivacyError
from fdadp.privacy.account.epsilon_mu_rho import LATTICE_VARIANCE
from fdadp.privacy.noise.sources import Noise, Sampler, analytic_scale, measurement

_SMALLEST_SHARE = 64.0
"""Standard deviation of a share, in lattice steps, below which a release is refused: far above where τ matters."""
_WIDEST = 62
"""Bits of a total: an owner's exact sum is below 2^61 then, and with noise below 2^62 its share is an int64."""
_TAIL = 10.0
"""Standard deviations of a total's noise that its slot has room for: exceeded with a chance of 4e-22 an entry, and
then the total is read wrongly, and is as private as ever."""


def distributed_cost(sensitivity: float, share_sd: float, honest: int, size: int) -> float:
    """ρ of a sum of `honest` discrete Gaussian shares (see the module for the formula).

    Parameters
    ----------
    sensitivity : float
        L2, in lattice steps.
    share_sd : float
        σ of each share, in lattice steps; at least ½.
    honest, size : int
        Number of shares h, and of entries d.
    """
    tau = 10 * math.fsum(math.exp(-2 * (math.pi * share_sd) ** 2 * k / (k + 1)) for k in range(1, honest))
    whole = sensitivity / (math.sqrt(honest) * share_sd)
    return min(math.sqrt(whole**2 + tau * size / 2), whole + tau * math.sqrt(size)) ** 2 / 2


class NextRound(Exception):
    """The program waits for the total of its next release: no error.

    Attributes
    ----------
    index : int
        Number of totals that it has used, from 0.
    size : int
        Entries of the total.
    width : int
        Bits of an entry, w: totals lie in [-2^(w-1), 2^(w-1)).
    share : ndarray of int64, or None
        This owner's noisy share (d,). None where the noise only listens.
    sd : float
        Standard deviation of the noise in each share, in lattice steps.
    """

    def __init__(self, index: int, size: int, width: int, share: IntArray | None, sd: float) -> None:
        super().__init__(f"release {index} waits for its total")
        self.index, self.size, self.width, self.share, self.sd = index, size, width, share, sd


class DistributedNoise:
    """One owner's part of the noise on sums over the persons of all owners.

    Parameters
    ----------
    owners : int
        How many there are.
    honest : int
        How many of those that deliver keep their noise to themselves; see :class:`fdadp.federated.Contract`.
    n_max : int
        Public cap on the number of persons of one owner: its sums are limited to what so many can give.
    totals : sequence of ndarray of int64
        The totals that are public so far.
    listen : bool
        Only follow the program, for a party without persons: no share is computed.
    random_state : int or numpy.random.Generator, optional
        Seeded shares, for simulation: the ledger then says "not for release".
    simulation : bool
        Whether another party's shares may be seeded, or were seen: the ledger then says so, too.
    carried : str
        What the way in which owners' messages travel means for the guarantee, for the ledger.

    Raises
    ------
    PrivacyError
        The numbers do not go together.
    """

    __slots__ = (
        "_carried",
        "_drawn",
        "_listen",
        "_n_max",
        "_rng",
        "_simulation",
        "_totals",
        "_used",
        "honest",
        "owners",
    )

    def __init__(
        self,
        *,
        owners: int,
        honest: int,
        n_max: int,
        totals: Sequence[IntArray] = (),
        listen: bool = False,
        random_state: int | np.random.Generator | None = None,
        simulation: bool = False,
        carried: str = "",
    ) -> None:
        if not 1 <= honest <= owners:
            raise PrivacyError(f"honest must be from 1 to the number of owners, {owners}, got {honest}")
        if n_max < 1:
            raise PrivacyError(f"n_max must be at least 1, got {n_max}")
        self.owners, self.honest = owners, honest
        self._n_max, self._totals, self._used, self._listen = n_max, list(totals), 0, listen
        self._rng = None if random_state is None else np.random.default_rng(random_state)
        self._simulation = simulation or random_state is not None
        self._carried = carried
        self._drawn: list[tuple[float, float]] = []

    @property
    def secure(self) -> bool:
        """Whether all shares come from OpenDP and cryptographic randomness, and nobody has seen them."""
        return not self._simulation

    def check_all_used(self) -> None:
        """Refuse more totals than the program, at its end, has asked for; raises PrivacyError."""
        if self._used < len(self._totals):
            raise PrivacyError(
                f"totals must hold the totals of a run that was finished: {self._used}, got {len(self._totals)}"
            )

    @property
    def inflation(self) -> float:
        """Factor on the standard deviation that a sum has when all owners deliver, over that of one trusted cohort."""
        return math.sqrt(self.owners / self.honest)

    @property
    def description(self) -> str:
        """For the ledger."""
        if self.secure:
            return f"in shares of {self.owners} owners, OpenDP, discrete, cryptographic randomness"
        return f"in shares of {self.owners} owners, seeded or added up in clear: for simulation only"

    @property
    def assumption(self) -> str:
        """What the guarantee needs besides the noise, for the statement of the ledger."""
        alone = f"{self._mu_of(1):.4g} (Gaussian DP)"
        rows = (
            "Every person's rows must be with one owner, and under this contract alone: each contract has a budget of "
            "its own, and what several on the same rows cost adds up. Only an owner's own study keeps that account"
        )
        few = f"; any {self.owners - 2} owners mu = {self._mu_of(2):.4g}" if self.honest > 2 else ""
        return (
            f"{self.honest} of the {self.owners} owners keep what they add to themselves. Owners who collude see the "
            f"sum of the others' shares: up to {self.owners - self.honest} of them what is promised{few}; all but one "
            f"owner have that one's persons at mu = {alone}. {rows}; a person with rows at k owners has k times the "
            "mu. It rests on masks between owners, hence on bounded computing power: who records shares and breaks "
            f"X25519 later has each owner's persons at mu = {alone}{self._carried and '. '}{self._carried}"
        )

    def _mu_of(self, shares: int) -> float:
        """Gaussian DP of all releases so far for who sees the sums of so many shares."""
        return math.sqrt(math.fsum(s**2 / (shares * sd**2 - LATTICE_VARIANCE) for s, sd in self._drawn))

    def prepare(self, kind: str, size: int, sensitivity: float, amount: float, columns: int = 1) -> Sampler:
        """Fix the scale of the shares and check their cost; see :class:`fdadp.privacy.noise.sources.Noise`.

        Raises
        ------
        PrivacyError
            Another law than the Gaussian, a total too wide for 62 bits, shares too small for the bound on their cost.
        """
        if kind != "gaussian":
            raise PrivacyError(
                f"noise of kind {kind!r} cannot be added in shares: sums with Gaussian noise can (give a delta, and a "
                "mechanism that releases sums only)"
            )
        if not (size >= 1 and 0 < sensitivity < math.inf and 0 < amount < math.inf):
            raise PrivacyError(f"sensitivity and amount must be finite and above 0, got {sensitivity:g}, {amount:g}")
        scale = analytic_scale(kind, sensitivity, amount)
        share_sd = scale / math.sqrt(self.honest)
        if share_sd < _SMALLEST_SHARE:
            raise PrivacyError(
                f"amount must be small enough for shares of at least {_SMALLEST_SHARE:g} lattice steps, got {amount:g}"
            )
        self._drawn.append((sensitivity, share_sd))
        spent = distributed_cost(sensitivity, share_sd, self.honest, size)
        index = self._used
        self._used += 1
        known = self._totals[index] if index < len(self._totals) else None
        most = self._n_max * sensitivity  # of an entry of one owner's exact sum
        largest = self.owners * most + _TAIL * share_sd * math.sqrt(self.owners)
        width = math.ceil(math.log2(largest)) + 1
        if width > _WIDEST:
            raise PrivacyError(
                f"n_max must be smaller: totals would take {width} bits, above {_WIDEST}, at n_max {self._n_max} and "
                f"noise of {share_sd:.3g} steps"
            )
        if known is not None and len(known) != size:
            raise PrivacyError(f"total {index} must have {size} entries, got {len(known)}")
        if known is not None and self._rng is not None:
            self._rng.standard_normal(size)  # drawn for it in its own round: the next release must not get the same

        def draw(exact: IntArray) -> IntArray:
            if self._listen:
                raise NextRound(index, size, width, None, share_sd)
            noise = np.clip(self._share(share_sd, size), -(2**62), 2**62)  # the law changes by less than 10^-80
            raise NextRound(index, size, width, np.clip(exact, -int(most), int(most)) + noise, share_sd)

        sd = share_sd * math.sqrt(self.owners)
        least = share_sd * math.sqrt(self.honest)
        return Sampler("gaussian", size, float(sensitivity), amount, spent, sd, draw, known, guaranteed=least)

    def _share(self, sd: float, size: int) -> IntArray:
        if self._rng is not None:
            return np.rint(sd * self._rng.standard_normal(size)).astype(np.int64)
        return np.array(measurement("gaussian", size, sd)([0] * size), dtype=np.int64)


_SOURCE: contextvars.ContextVar[Noise | None] = contextvars.ContextVar("fdadp_noise", default=None)


@contextlib.contextmanager
def noise_source(noise: Noise) -> Iterator[None]:
    """Fits inside draw from this source, whatever their settings say: how one owner's fit becomes part of a larger one.

    A fit's ``random_state`` then only seeds its public choices.
    """
    token = _SOURCE.set(noise)
    try:
        yield
    finally:
        _SOURCE.reset(token)


def current_noise() -> Any:
    """Return the source of :func:`noise_source`, or None."""
    return _SOURCE.get()
