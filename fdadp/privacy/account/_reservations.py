"""Who has taken what of a budget: reservations, and the rules by which they are made and charged.

Four steps, in this order: ``reserve`` (before anything is read), ``open`` (just before the first read: from here on the
whole reservation is spent), ``spend`` (just before each release: its share and its cost), and ``close`` (nothing was
read) or ``stop`` (what no release has used goes back). The rules stand here once, for budgets in memory
(:mod:`fdadp.privacy.account._book`) and in files (:mod:`fdadp.privacy.study`); both apply them to all reservations at
once, which nobody else may change meanwhile. What is promised is in ``docs/theory/accounting.md#filter``.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field

from fdadp.errors import PrivacyError

TOLERANCE = 1e-9
"""Shares such as ten times 0.1 may add up to a hair above 1 ..."""
SAFETY = 1 - 3e-9
"""... and this factor on every amount keeps their true sum below the total: (1 + 1e-9)² (1 - 3e-9) < 1."""


@dataclass(frozen=True)
class Binding:
    """What a budget protects. Spending on another data set, unit or adjacency would have no common meaning."""

    dataset: object = field(repr=False)
    unit: str
    adjacency: str


@dataclass
class Reservation:
    """What one cohort holds, as a share of the total; the shares of its releases are of the reservation."""

    share: float
    shares: list[float] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)
    state: str = "reserved"
    """"reserved", then "open" (rows were read), then "closed"."""
    whole: bool = False
    """Whether it went to a release that is accounted for in (ε, δ) by itself."""

    @property
    def used(self) -> float:
        """Sum of the shares of its releases, of 1."""
        return 1.0 if self.whole else math.fsum(self.shares)

    def charge(self, share: float, cost: float, *, whole: bool) -> None:
        """Write a release down, which :func:`check_charge` has let pass."""
        self.state, self.whole = "open", whole
        self.shares.append(share)
        self.costs.append(cost)

    def stop(self) -> None:
        """No more releases; keep the share that there were."""
        self.share, self.state = min(self.share, self.share * math.fsum(self.shares)), "closed"


def left_of(held: Collection[Reservation], share: float) -> tuple[float, bool]:
    """Share that nobody has taken, and whether another one of `share` is in it."""
    left = 0.0 if any(r.whole for r in held) else 1 - math.fsum(r.share for r in held)
    return max(left, 0.0), left > 0 and share <= left + TOLERANCE


def check_charge(
    r: Reservation, held: Collection[Reservation], total: float, share: float, cost: float, *, whole: bool
) -> None:
    """Refuse a release that a reservation cannot pay for.

    Parameters
    ----------
    r : Reservation
        One of `held`.
    held : collection of Reservation
        All of the budget.
    total : float
        Of the budget: μ²/2, ρ or ε.
    share, cost, whole
        Of the release, as in :meth:`fdadp.privacy.account.budget.Account.spend`.

    Raises
    ------
    PrivacyError
    """
    if r.whole or r.used + share > 1 + TOLERANCE:
        raise PrivacyError(
            f"share must be at most what this cohort has left, {max(1 - r.used, 0.0):.6g}, "
            f"got {share:g}; nothing was read for this release and nothing was spent on it"
        )
    others = math.fsum(o.share for o in held if o is not r)
    if whole and (r.shares or others > 0):
        raise PrivacyError("a release that is accounted for in (epsilon, delta) takes a whole budget by itself")
    reserved = total * r.share
    everything = math.fsum(c for o in held for c in o.costs)
    if not 0 < cost <= reserved or math.fsum([*r.costs, cost]) > reserved or everything + cost > total:
        raise PrivacyError(
            f"the noise of this release costs {cost:g}, and with what was spent before that is more than the "
            f"{reserved:g} that were reserved; nothing was read for it"
        )


def gone() -> PrivacyError:
    """Return the error of a reservation that was closed."""
    return PrivacyError("this cohort was closed and gave its budget back: make a new one")
