"""Where a budget keeps its accounts: in the memory of one process (here), or in a study (:mod:`fdadp.privacy.study`).

The rules are those of :mod:`fdadp.privacy.account._reservations`. What a thread or a fork can do to accounts in memory
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
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from fdadp.errors import PrivacyError
from fdadp.privacy.account._reservations import Binding, Reservation, check_charge, gone, left_of

if TYPE_CHECKING:
    from fdadp.privacy.account.releases import Release


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
                f"under one adjacency; {same if 'data set' in differs else 'keep to these'}, or use a new Budget"
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
            held = self._reservations.values()
            return (
                math.fsum(r.share for r in held if r.state != "reserved"),
                math.fsum(r.share for r in held if r.state == "reserved"),
                math.fsum(c for r in held for c in r.costs),
            )

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
                "this budget belongs to the process that made it; this is another process (a fork, or a worker that "
                "got a copy), and what is spent in one is unknown to the other. Nothing was read and nothing was "
                "spent: fit in the process of the budget, in threads if in parallel"
            )


_TOKEN = [secrets.token_bytes(16)]
"""Of this process: a process id alone may come again."""


def process() -> tuple[int, bytes]:
    return os.getpid(), _TOKEN[0]


def _renew() -> None:
    _TOKEN[0] = secrets.token_bytes(16)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
