"""Who has taken what of a budget: reservations, and the rules by which they are made and charged.

Four steps, in this order: ``reserve`` (before anything is read), ``open`` (just before the first read: from here on the
whole reservation is spent), ``spend`` (just before each release: its share and its cost), and ``close`` (nothing was
read) or ``stop`` (what no release has used goes back). The rules stand here once, for budgets in memory
(:class:`MemoryBook`) and in files (:mod:`fdadp.privacy.study`); both apply them to all reservations at
once, which nobody else may change meanwhile. What is promised is in ``docs/theory/accounting.md#filter``.

What a thread or a fork can do to accounts in memory
is in ``docs/theory/accounting.md#filter``.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import secrets
import threading
from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from fdadp.errors import PrivacyError


@dataclass(frozen=True)
class Release:
    """One noisy release.

    Attributes
    ----------
    name : str
        What was released.
    size : int
        Number of values.
    noise : str
        Distribution of the noise.
    scale : float
        Its scale, in units of the released values.
    sensitivity : float
        The sensitivity that the scale was derived from.
    epsilon : float or None
        The ε claimed for it; None where it is accounted for in μ or ρ.
    rho : float or None
        The ρ (zCDP) spent on it.
    mu : float or None
        The μ (Gaussian DP) spent on it, where that is what adds up: as squares.
    share : float or None
        Share of the fit's budget that was set aside for it.
    sd : float or None
        Standard deviation of the noise on each value, in their units.
    clip : float or None
        Bound on the norm of one person's contribution.
    norm : str
        The norm in which contributions are clipped and the sensitivity is measured.
    adjacency, unit : str
        What the guarantee compares, and what counts as one person.
    secure : bool
        Whether the noise may be used for a release.
    lattice_bits : int or None
        Contributions were truncated to multiples of clip · 2^-bits.
    delta : float or None
        The δ of a release that is accounted for in (ε, δ) by itself: it takes a whole budget. 0 of a pure one.
    draw : str
        How near the drawn noise is to its law, for noise that may be used for a release: exact, within a distance that
        is counted in δ, or not proved (``docs/theory/noise.md#exactness``).
    part : str
        Which of several disjoint parts of the persons it reads; empty: all of them.
    split : str
        What tells these parts from each other: parts of two splits are not disjoint, whatever they are called.
    """

    name: str
    size: int
    noise: str
    scale: float
    sensitivity: float
    epsilon: float | None = None
    rho: float | None = None
    share: float | None = None
    sd: float | None = None
    clip: float | None = None
    norm: str = ""
    adjacency: str = ""
    unit: str = ""
    secure: bool = False
    lattice_bits: int | None = None
    delta: float | None = None
    mu: float | None = None
    draw: str = ""
    part: str = ""
    split: str = ""

    @property
    def spent(self) -> float:
        """The privacy cost in the measure of its budget: μ²/2, ρ or ε."""
        return self.mu**2 / 2 if self.mu is not None else self.rho or self.epsilon or 0.0

    @property
    def cost(self) -> str:
        """The privacy cost in words."""
        if self.mu is not None:
            return f"mu {self.mu:.4g}"
        if self.rho is not None:
            return f"rho {self.rho:.4g}"
        if self.delta is not None:
            return f"epsilon {self.epsilon:g}, " + (
                f"delta {self.delta:g}" if self.delta else "pure (better than asked)"
            )
        return "" if self.epsilon is None else f"claimed epsilon {self.epsilon:g}"


def plain(release: Release) -> dict[str, Any]:
    """Its fields; without a part where it reads all persons, as files of before there were parts have it."""
    return {k: v for k, v in asdict(release).items() if k not in ("part", "split") or v}


def counted(releases: Collection[Release]) -> list[Release]:
    """Releases whose costs add up: of those that read disjoint parts of the persons, of each split the dearest part's.

    Examples
    --------
    >>> costs = (1, ""), (2, "x"), (3, "y"), (2, "x")
    >>> made = [Release("a", 1, "", 1.0, 1.0, epsilon=cost, part=part) for cost, part in costs]
    >>> [r.epsilon for r in counted(made)]
    [1, 2, 2]
    """
    costs: dict[tuple[str, str], float] = {}
    for r in releases:
        costs[r.split, r.part] = costs.get((r.split, r.part), 0.0) + r.spent
    dearest = {split: part for split, part in sorted(costs, key=costs.__getitem__) if part}
    return [r for r in releases if not r.part or r.part == dearest[r.split]]


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


def taken_of(held: Collection[Reservation]) -> tuple[float, float, float]:
    """Shares that are spent, and that are only reserved; and what releases have cost."""
    spent = math.fsum(r.share for r in held if r.state != "reserved")
    reserved = math.fsum(r.share for r in held if r.state == "reserved")
    return spent, reserved, math.fsum(cost for r in held for cost in r.costs)


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
            f"the noise of this release costs {cost:g}: with earlier releases more than the {reserved:g} that were "
            "reserved; nothing was read for it"
        )


def gone() -> PrivacyError:
    """Return the error of a reservation that was closed."""
    return PrivacyError("this cohort was closed and gave its budget back: make a new one")


class Book(Protocol):
    """What a budget keeps its accounts in. Each method is one transaction, and raises PrivacyError or happens."""

    def admit(self, binding: Binding) -> None:
        """Refuse what protects something else than what is there; writes nothing."""

    def reserve(self, share: float, binding: Binding, about: Mapping[str, Any]) -> int:
        """Set a share of the total aside; returns the number of the reservation. `about` says for what."""

    def look(self, at: int) -> Reservation:
        """Give a copy of a reservation."""

    def open(self, at: int) -> None:
        """Count a reservation as spent."""

    def spend(self, at: int, share: float, cost: float, *, whole: bool, release: Release | None) -> None:
        """Charge a release: its share of the reservation, and its cost in the measure of the total."""

    def close(self, at: int) -> None:
        """Give a reservation back that was not opened; else do nothing."""

    def stop(self, at: int) -> None:
        """Give back what the releases of a reservation have not used; no more releases."""

    def forget(self, at: int) -> None:
        """As ``close``, at the next opportunity: for a cohort that nobody holds any more."""

    def taken(self) -> tuple[float, float, float]:
        """Shares that are spent and reserved, and the sum of all costs."""

    @property
    def columns(self) -> dict[str, Any]:
        """What it holds fits to of columns: (low, high) or levels by name."""

    def facts(self, at: int) -> Mapping[str, Any]:
        """Say in a ledger where a reservation is written down."""

    def recipe(self) -> tuple[Any, ...] | None:
        """How pickle makes the budget again in another process; None where that gets a copy to look at."""

    @property
    def here(self) -> bool:
        """Whether it may be written to by this process."""


class MemoryBook:
    """Accounts in the memory of the process that opened them: locked between its threads, closed to any other.

    Parameters
    ----------
    total : float
        μ²/2 or ρ, or ε where pure.
    spent : float, optional
        Makes a copy that can only be looked at, of which this share is spent.
    """

    __slots__ = ("_binding", "_forgotten", "_lock", "_numbers", "_process", "_reservations", "total")

    def __init__(self, total: float, *, spent: float | None = None) -> None:
        self.total = total
        self._reservations: dict[int, Reservation] = {}
        self._binding: Binding | None = None
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._forgotten: deque[int] = deque()
        self._process = process() if spent is None else None
        if spent:
            self._reservations[0] = Reservation(spent, state="open")

    @property
    def here(self) -> bool:
        """Whether this is the process that opened it."""
        return self._process == process()

    def admit(self, binding: Binding) -> None:
        """Refuse what protects something else than what was reserved before; writes nothing."""
        if self._binding is not None and self._binding != binding:
            names = {"dataset": "data set", "unit": "unit", "adjacency": "adjacency"}
            differs = [text for k, text in names.items() if getattr(self._binding, k) != getattr(binding, k)]
            same = (
                "where they are rows of the same persons, as in the steps of a Pipeline, say so in all fits on the "
                "budget, the first one too, with the same dataset="
            )
            raise PrivacyError(
                f"this budget is bound to another {' and '.join(differs)}: it protects one unit of one data set "
                f"under one adjacency. {same if 'data set' in differs else 'keep to these'}, or use a new Budget"
            )

    def reserve(self, share: float, binding: Binding, about: Mapping[str, Any] | None = None) -> int:
        """Set a share aside; raises PrivacyError if it is not left, or if the budget protects something else."""
        self._check_process()
        with self._lock:
            self._sweep()
            held = self._reservations.values()
            self.admit(binding)
            left, enough = left_of(held, share)
            if not enough:
                raise PrivacyError(
                    f"share must be at most what the budget has left, {left:.6g} of its total, "
                    f"got {share:g}; nothing was read and nothing was spent"
                )
            self._binding = binding
            at = next(self._numbers)
            self._reservations[at] = Reservation(share)
            return at

    def look(self, at: int) -> Reservation:
        """Give a copy of a reservation."""
        with self._looking():
            r = self._reservations.get(at)
            if r is None:
                return Reservation(0.0, state="closed")
            return Reservation(r.share, list(r.shares), list(r.costs), r.state, r.whole)

    def open(self, at: int) -> None:
        """Count a reservation as spent; raises PrivacyError if it was given back."""
        self._check_process()
        with self._lock:
            self._held(at).state = "open"

    def spend(self, at: int, share: float, cost: float, *, whole: bool = False, release: Release | None = None) -> None:
        """Charge a release; raises PrivacyError, and charges nothing, if it is more than there is."""
        self._check_process()
        with self._lock:
            r = self._held(at)
            check_charge(r, self._reservations.values(), self.total, share, cost, whole=whole)
            r.charge(share, cost, whole=whole)

    def close(self, at: int) -> None:
        """Give a reservation back that was not opened; else do nothing."""
        self._check_process()
        with self._lock:
            self._give_back(at)

    def stop(self, at: int) -> None:
        """Give back what the releases of a reservation have not used; no more releases."""
        self._check_process()
        with self._lock:
            self._give_back(at)
            r = self._reservations.get(at)
            if r is not None and r.state == "open":
                r.stop()

    def forget(self, at: int) -> None:
        """Note that nobody holds a reservation; takes no lock, for a garbage collector may run inside one."""
        self._forgotten.append(at)

    def taken(self) -> tuple[float, float, float]:
        """Shares that are spent and reserved, and the sum of all costs."""
        with self._looking():
            self._sweep()
            return taken_of(self._reservations.values())

    @property
    def columns(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    def facts(self, at: int) -> Mapping[str, Any]:
        """Nothing: what is in memory is gone with it."""
        return {}

    def recipe(self) -> tuple[Any, ...] | None:
        """None: what is in memory is of one process."""
        return None

    def _looking(self) -> contextlib.AbstractContextManager[object]:
        """The lock; in a fork none, for a thread that is not there may hold it."""
        return self._lock if self.here else contextlib.nullcontext()

    def _held(self, at: int) -> Reservation:
        r = self._reservations.get(at)
        if r is None or r.state == "closed":
            raise gone()
        return r

    def _give_back(self, at: int) -> None:
        r = self._reservations.get(at)
        if r is not None and r.state == "reserved":
            del self._reservations[at]
            if not self._reservations:
                self._binding = None

    def _sweep(self) -> None:
        while self.here and self._forgotten:
            self._give_back(self._forgotten.popleft())

    def _check_process(self) -> None:
        if not self.here:
            raise PrivacyError(
                "this budget belongs to the process that made it, and this is another process (a fork, or a worker "
                "that got a copy). What is spent in one is unknown to the other. Nothing was read and nothing was "
                "spent. Fit in the process of the budget, in threads if in parallel"
            )


_TOKEN = [secrets.token_bytes(16)]
"""Of this process: a process id alone may come again."""


def process() -> tuple[int, bytes]:
    return os.getpid(), _TOKEN[0]


def _renew() -> None:
    _TOKEN[0] = secrets.token_bytes(16)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
