"""What drew on a study: one line a fit, from the entries."""

from __future__ import annotations

import html
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from typing import Any

from fdadp.privacy.account._reservations import Reservation
from fdadp.privacy.account.releases import Release
from fdadp.privacy.study._entries import Entry, replayed

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


def fits_of(lines: Iterable[Entry], epsilon_of: Any) -> tuple[Fit, ...]:
    """Fits in the order of their reservations; `epsilon_of` turns a share of the total into ε."""
    lines = tuple(lines)
    held = replayed(iter(lines))
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
