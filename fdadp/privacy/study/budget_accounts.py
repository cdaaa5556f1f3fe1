"""The accounts of a budget that is kept in a study's file, and what drew on them: one line a fit."""

from __future__ import annotations

import atexit
import html
import os
import socket
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from typing import Any

from fdadp._version import __version__
from fdadp.errors import PrivacyError
from fdadp.privacy.account._reservations import (
    Binding,
    Release,
    Reservation,
    check_charge,
    gone,
    left_of,
    plain,
    process,
    taken_of,
)
from fdadp.privacy.account.budget import Budget
from fdadp.privacy.guarantee_checks import UNITS
from fdadp.privacy.study._append_only_file import Opened, reading, transaction
from fdadp.privacy.study._chained_entries import Entry, finite, now, replayed

STATES = {"reserved": "waiting: nothing was read", "open": "spent", "closed": "spent, the rest given back"}
RETURNED = "given back: nothing was read"


@dataclass(frozen=True)
class Fit:
    """One reservation of a study, and what came of it.

    Attributes
    ----------
    number : int
    time : str
        UTC.
    mechanism, purpose : str
    public : dict
        What the fit took as public: bounds, priors, grids.
    share : float
        Of the study's total that it has taken.
    epsilon : float
        What that is by itself at the study's δ.
    state : str
        In words.
    releases : tuple of Release
    models : tuple of str
        SHA-256 of the files that were saved of it.
    host, version : str
        Where, and by which version of fdadp.
    """

    number: int
    time: str
    mechanism: str
    purpose: str
    public: dict[str, Any]
    share: float
    epsilon: float
    state: str
    releases: tuple[Release, ...] = ()
    models: tuple[str, ...] = ()
    host: str = ""
    version: str = ""
    process: int = field(default=0, repr=False)


def fits_of(lines: Sequence[Entry], epsilon_of: Any) -> tuple[Fit, ...]:
    """Fits in the order of their reservations; `epsilon_of` turns a share of the total into ε."""
    held = replayed(lines)
    made: dict[int, Fit] = {}
    for line in lines:
        at, content = line.reservation, line.content
        if at is None:
            continue
        if line.kind == "reserved":
            r, public = held[at], dict(content.get("public", {}))
            made[at] = Fit(
                at,
                line.time,
                str(content.get("mechanism", "")),
                str(public.pop("purpose", "")),
                public,
                r.share,
                epsilon_of(r.share) if r.share else 0.0,
                _state(r),
                host=str(content.get("host", "")),
                version=str(content.get("fdadp", "")),
                process=int(content.get("process", 0)),
            )
        elif line.kind == "restored":
            r, lost = held[at], "releases of which the entries are lost"
            made[at] = Fit(at, line.time, lost, str(content["reason"]), {}, r.share, epsilon_of(r.share), _state(r))
        elif line.kind == "released":
            made[at] = replace(made[at], releases=(*made[at].releases, _release(content.get("release", {}))))
        elif line.kind == "model":
            made[at] = replace(made[at], models=(*made[at].models, str(content["sha256"])))
    return tuple(made[at] for at in sorted(made))


def _state(r: Reservation) -> str:
    return RETURNED if r.state == "closed" and not r.shares and not r.share else STATES[r.state]


def _release(content: dict[str, Any]) -> Release:
    """A release as it was written; of what is not said, nothing is made up."""
    known = {f.name for f in fields(Release)}
    unknown: dict[str, Any] = {"name": "", "size": 0, "noise": "", "scale": float("nan"), "sensitivity": float("nan")}
    return Release(**unknown | {k: v for k, v in content.items() if k in known})


COLUMNS = ("fit", "when (UTC)", "mechanism", "purpose", "epsilon alone", "share", "releases", "state", "models")


def _cells(fit: Fit) -> tuple[str, ...]:
    models = ", ".join(m[:12] for m in fit.models)
    numbers = f"{fit.epsilon:.4g}", f"{fit.share:.2%}", str(len(fit.releases))
    return (str(fit.number), fit.time[:19].replace("T", " "), fit.mechanism, fit.purpose, *numbers, fit.state, models)


def as_text(fits: Iterable[Fit]) -> str:
    """A table in plain text."""
    rows = [COLUMNS, *map(_cells, fits)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows)


def as_html(fits: Iterable[Fit]) -> str:
    """A table in HTML."""
    head = "".join(f"<th>{html.escape(c)}</th>" for c in COLUMNS)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(c)}</td>" for c in _cells(fit)) + "</tr>" for fit in fits)
    return f"<table><tr>{head}</tr>{body}</table>"


STUDY, RESERVATION, LAST = "study", "reservation of the study", "last entry of the study"
"""Details of a ledger that say where its releases are written down."""

_FORGOTTEN: defaultdict[str, deque[tuple[int, object]]] = defaultdict(deque)
"""By file: reservations whose cohorts nobody holds any more, and the process that made them."""


class StudyBook:
    """Accounts in a file: every step is one line, and has happened when it is on the disk.

    Parameters
    ----------
    path : str
        Absolute.
    total : float
        Of the study: μ²/2, ρ or ε.
    facts : mapping
        What the study is, as written when it was created.
    """

    __slots__ = ("facts_of_study", "path", "total")

    def __init__(self, path: str, total: float, facts: Mapping[str, Any]) -> None:
        self.path, self.total, self.facts_of_study = path, total, facts

    @property
    def here(self) -> bool:
        """Any process may write to it."""
        return True

    def reserve(self, share: float, binding: Binding, about: Mapping[str, Any]) -> int:
        """Set a share aside, on the disk; raises PrivacyError if it is not left, or the study is of something else."""
        self._check(binding, about)
        with transaction(self.path) as file:
            return self._reserved(file, share, about)

    def charge_once(self, share: float, binding: Binding, about: Mapping[str, Any], name: str, by: str) -> None:
        """Take a share for good, for what bears a name that is public; nothing where the same one asks again.

        Parameters
        ----------
        share, binding, about
            As of :meth:`reserve`.
        name : str
            Of what is charged. It stands once in the file.
        by : str
            Who asks. Another one is refused.

        Raises
        ------
        PrivacyError
            As of :meth:`reserve`, or the name was charged by somebody else.
        """
        self._check(binding, about)
        with transaction(self.path) as file:
            charged = (e for e in file.entries if e.kind == "reserved" and e.content.get("charge", [""])[0] == name)
            found = next(charged, None)
            if found is None:
                at = self._reserved(file, share, {**about, "charge": [name, by]})
            elif found.content["charge"] == [name, by] and found.reservation is not None:
                at = found.reservation
            else:
                raise PrivacyError(
                    f"study must be charged for {name} once, and entry {found.position} did it for somebody else"
                )
            if _live(file, at).state == "reserved":
                file.append("opened", at, {})

    def _check(self, binding: Binding, about: Mapping[str, Any]) -> None:
        """Refuse noise that is not secure, another unit or another adjacency; give back what nobody holds any more."""
        if not about.get("secure", False):
            raise PrivacyError(
                "noise must be secure where a study counts it, got a source for simulation or audit (random_state=, "
                "noise=): give simulations a budget of their own. Nothing was read and nothing was spent"
            )
        self.admit(binding)
        self.sweep()

    def _reserved(self, file: Opened, share: float, about: Mapping[str, Any]) -> int:
        """Write a reservation; raises PrivacyError where the share is not left."""
        check_running(file, self.facts_of_study)
        held = file.told.held
        left, enough = left_of(held.values(), share)
        if not enough:
            raise PrivacyError(self._refusal(left, share))
        at = max(held, default=0) + 1
        content = {
            "share": share,
            "amount": share * self.total,
            **{key: finite(value) for key, value in about.items()},
            "process": os.getpid(),
            "host": socket.gethostname(),
            "fdadp": __version__,
        }
        file.append("reserved", at, content)
        return at

    def look(self, at: int) -> Reservation:
        """Give a copy of a reservation."""
        with reading(self.path) as file:
            return file.told.held.get(at, Reservation(0.0, state="closed"))

    def open(self, at: int) -> None:
        """Count a reservation as spent; raises PrivacyError if it was given back."""
        with transaction(self.path) as file:
            if _live(file, at).state == "reserved":
                file.append("opened", at, {})

    def spend(self, at: int, share: float, cost: float, *, whole: bool = False, release: Release | None = None) -> None:
        """Charge a release; raises PrivacyError, and charges nothing, if it is more than there is."""
        with transaction(self.path) as file:
            r = _live(file, at)
            check_charge(r, file.told.held.values(), self.total, share, cost, whole=whole)
            what = {} if release is None else written(release)
            file.append("released", at, {"share": share, "cost": cost, "whole": whole, "release": what})

    def close(self, at: int) -> None:
        """Give a reservation back that was not opened; else do nothing."""
        with transaction(self.path) as file:
            r = file.told.held.get(at)
            if r is not None and r.state == "reserved":
                file.append("returned", at, {})

    def stop(self, at: int) -> None:
        """Give back what the releases of a reservation have not used; no more releases."""
        with transaction(self.path) as file:
            r = file.told.held.get(at)
            if r is None or r.state == "closed":
                return
            if r.state == "reserved":
                file.append("returned", at, {})
            else:
                stopped = replace(r)
                stopped.stop()
                file.append("stopped", at, {"share": stopped.share})

    def forget(self, at: int) -> None:
        """Note that nobody holds a reservation; writes nothing: a garbage collector may run inside a transaction."""
        _FORGOTTEN[self.path].append((at, process()))

    def sweep(self) -> None:
        """Give back what cohorts held that are gone; where the file cannot be written, the next time."""
        waiting = _FORGOTTEN[self.path]
        while waiting:
            at, made_by = waiting.popleft()
            if made_by == process():  # a fork has copies of its parent's cohorts
                try:
                    self.close(at)
                except PrivacyError:
                    waiting.append((at, made_by))
                    return

    def taken(self) -> tuple[float, float, float]:
        """Shares that are spent and reserved, and the sum of all costs."""
        self.sweep()
        with reading(self.path) as file:
            return taken_of(file.told.held.values())

    @property
    def columns(self) -> dict[str, Any]:
        """(low, high), or a list of levels, by name."""
        said = self.facts_of_study["bounds"].items()
        return {name: tuple(what["range"]) if "range" in what else list(what["levels"]) for name, what in said}

    def facts(self, at: int) -> Mapping[str, Any]:
        """Where a reservation is written down, for ledgers: the hash stands for everything that was spent before."""
        with reading(self.path) as file:
            last = file.told.last
        of = self.facts_of_study
        return {STUDY: f"{of['name']} ({of['id']})", RESERVATION: at, LAST: f"{last.position}, {last.hash}"}

    def recipe(self) -> tuple[Any, ...] | None:
        """Opened again by its path."""
        return budget_of, (self.path,)

    def _refusal(self, left: float, share: float) -> str:
        """Say that the study has not got what is asked of it."""
        budget = budget_of(self.path, self.facts_of_study)
        has, asked, all_of_it = (f"{budget.epsilon_of(s * self.total):.4g}" for s in (left, share, 1.0))
        return (
            f"epsilon must be at most what study {self.facts_of_study['name']!r} has left, {has} ({left:.2%} of all "
            f"that may ever be spent, epsilon {all_of_it}; {1 - left:.2%} is taken), got {asked} ({share:.2%}); "
            "nothing was read and nothing was spent"
        )

    def admit(self, binding: Binding) -> None:
        """Refuse another unit or adjacency than the study's; writes nothing."""
        of = self.facts_of_study
        if binding.unit != UNITS[of["unit"] == "person"] or binding.adjacency != of["adjacency"]:
            raise PrivacyError(
                f"unit and adjacency must be those of the study, {of['unit']} and {of['adjacency']}, got "
                f"{binding.unit.split(' ')[0]} and {binding.adjacency}; nothing was read and nothing was spent"
            )


def facts_of(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a study is, as written when it was made; raises PrivacyError where that is not there."""
    with reading(path) as file:
        return file.told.first.content


def budget_of(path: str, facts: Mapping[str, Any] | None = None) -> Budget:
    """The budget of the study at a path, of which the facts may have been read."""
    of = facts_of(path) if facts is None else facts
    total = float(of["total"])
    return Budget.kept(StudyBook(path, total, of), of["epsilon"], of["delta"], of["accounting"], total)


def check_running(file: Opened, of: Mapping[str, Any]) -> None:
    """Refuse a study that was closed or has expired, by the clock or by its last entry; raises PrivacyError."""
    told = file.told
    if told.closed is not None:
        raise PrivacyError(
            f"study was closed on {told.closed.time[:19]}: {told.closed.content.get('reason')}; nothing was read"
        )
    expires = of.get("expires")
    if expires and max(now(), told.last.time)[:10] > expires:
        raise PrivacyError(f"study has expired on {expires}; nothing was read and nothing was spent")


def written(release: Release) -> Any:
    """A release as entries have it."""
    return finite({k: v for k, v in plain(release).items() if v is not None})


def _live(file: Opened, at: int) -> Reservation:
    r = file.told.held.get(at)
    if r is None or r.state == "closed":
        raise gone()
    return r


def _at_exit() -> None:
    for path in list(_FORGOTTEN):
        with suppress(PrivacyError, OSError):
            StudyBook(path, 0.0, {}).sweep()


atexit.register(_at_exit)
