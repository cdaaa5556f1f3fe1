"""Who has taken what of a budget: reservations, and what their releases cost, in the memory of one process.

Four steps, in this order: ``reserve`` (before anything is read), ``open`` (just before the first read: from here on the
whole reservation is spent), ``spend`` (just before each release: its share and its cost), and ``close`` (nothing was
read) or ``stop`` (what no release has used goes back). :class:`Book` is what a :class:`~fdadp.privacy.Budget` asks for;
:class:`MemoryBook` keeps it in memory. What is promised, and what a thread or a fork can do to it, is in
``docs/theory/accounting.md#filter``.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import secrets
import threading
from collections import deque
from dataclasses import dataclass, field
from typing import Protocol

from fdadp.errors import PrivacyError

__all__ = ["SAFETY", "TOLERANCE", "Binding", "Book", "MemoryBook", "Reservation"]

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


class Book(Protocol):
    """What a budget keeps its accounts in. Each method is one transaction, and raises PrivacyError or happens."""

    def reserve(self, share: float, binding: Binding) -> int:
        """Set a share of the total aside; returns the number of the reservation."""

    def look(self, at: int) -> Reservation:
        """Give a copy of a reservation."""

    def open(self, at: int) -> None:
        """Count a reservation as spent."""

    def spend(self, at: int, share: float, cost: float, *, whole: bool) -> None:
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
        self._process = _process() if spent is None else None
        if spent:
            self._reservations[0] = Reservation(spent, state="open")

    @property
    def here(self) -> bool:
        """Whether this is the process that opened it."""
        return self._process == _process()

    def reserve(self, share: float, binding: Binding) -> int:
        """Set a share aside; raises PrivacyError if it is not left, or if the budget protects something else."""
        self._check_process()
        with self._lock:
            self._sweep()
            held = self._reservations.values()
            if self._binding is not None and self._binding != binding:
                names = {"dataset": "data set", "unit": "unit", "adjacency": "adjacency"}
                differs = [text for k, text in names.items() if getattr(self._binding, k) != getattr(binding, k)]
                raise PrivacyError(
                    f"this budget is bound to another {' and '.join(differs)}: it protects one unit of one data set "
                    "under one adjacency; use a new Budget, or name the data with dataset= if they are the same"
                )
            left = 0.0 if any(r.whole for r in held) else 1 - math.fsum(r.share for r in held)
            if share > left + TOLERANCE or left <= 0:
                raise PrivacyError(
                    f"share must be at most what the budget has left, {max(left, 0.0):.6g} of its total, "
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

    def spend(self, at: int, share: float, cost: float, *, whole: bool = False) -> None:
        """Charge a release; raises PrivacyError, and charges nothing, if it is more than there is."""
        self._check_process()
        with self._lock:
            r = self._held(at)
            used = math.fsum(r.shares)
            if r.whole or used + share > 1 + TOLERANCE:
                raise PrivacyError(
                    f"share must be at most what this cohort has left, {0.0 if r.whole else max(1 - used, 0.0):.6g}, "
                    f"got {share:g}; nothing was read for this release and nothing was spent on it"
                )
            others = math.fsum(o.share for o in self._reservations.values() if o is not r)
            if whole and (r.shares or others > 0):
                raise PrivacyError("a release that is accounted for in (epsilon, delta) takes a whole budget by itself")
            reserved = self.total * r.share
            everything = math.fsum(c for o in self._reservations.values() for c in o.costs)
            if not 0 < cost <= reserved or math.fsum([*r.costs, cost]) > reserved or everything + cost > self.total:
                raise PrivacyError(
                    f"the noise of this release costs {cost:g}, and with what was spent before that is more than the "
                    f"{reserved:g} that were reserved; nothing was read for it"
                )
            r.state, r.whole = "open", whole
            r.shares.append(share)
            r.costs.append(cost)

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
                r.share, r.state = min(r.share, r.share * math.fsum(r.shares)), "closed"

    def forget(self, at: int) -> None:
        """Note that nobody holds a reservation; takes no lock, for a garbage collector may run inside one."""
        self._forgotten.append(at)

    def taken(self) -> tuple[float, float, float]:
        """Shares that are spent and reserved, and the sum of all costs."""
        with self._looking():
            self._sweep()
            held = self._reservations.values()
            return (
                math.fsum(r.share for r in held if r.state != "reserved"),
                math.fsum(r.share for r in held if r.state == "reserved"),
                math.fsum(c for r in held for c in r.costs),
            )

    def _looking(self) -> contextlib.AbstractContextManager[object]:
        """The lock; in a fork none, for a thread that is not there may hold it."""
        return self._lock if self.here else contextlib.nullcontext()

    def _held(self, at: int) -> Reservation:
        r = self._reservations.get(at)
        if r is None or r.state == "closed":
            raise PrivacyError("this cohort was closed and gave its budget back: make a new one")
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
                "this budget belongs to the process that made it; this is another process (a fork, or a worker that "
                "got a copy), and what is spent in one is unknown to the other. Nothing was read and nothing was "
                "spent: fit in the process of the budget, in threads if in parallel"
            )


_TOKEN = [secrets.token_bytes(16)]
"""Of this process: a process id alone may come again."""


def _process() -> tuple[int, bytes]:
    return os.getpid(), _TOKEN[0]


def _renew() -> None:
    _TOKEN[0] = secrets.token_bytes(16)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
