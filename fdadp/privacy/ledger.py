"""The ledger: what was released, with which noise, under which assumptions. Text, HTML and JSON."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = ["Ledger", "Release"]


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
        The ε claimed for it; None where it is accounted for in ρ.
    rho : float or None
        The ρ (zCDP) spent on it.
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

    @property
    def cost(self) -> str:
        """The privacy cost in words."""
        if self.rho is not None:
            return f"rho {self.rho:.4g}"
        return "" if self.epsilon is None else f"claimed epsilon {self.epsilon:g}"


@dataclass(frozen=True)
class Ledger:
    """Everything a data custodian needs to judge a fit.

    Attributes
    ----------
    mechanism : str
    private : bool
        Whether the whole output is differentially private, end to end.
    statement : str
        In plain words, what is protected and what is not.
    releases : sequence of Release
    unnoised : sequence of str
        What was computed from the data and is part of the output without noise.
    for_release : bool
        False where the noise was seeded (simulation).
    details : dict
        Adjacency, privacy unit, versions, readings of undefined points.
    """

    mechanism: str
    private: bool
    statement: str
    releases: Sequence[Release] = ()
    unnoised: Sequence[str] = ()
    for_release: bool = False
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def headline(self) -> str:
        """First line of every form of the ledger."""
        verdict = "differentially private end to end" if self.private else "NOT differentially private end to end"
        return f"{self.mechanism}: {verdict}" + ("" if self.for_release else "; not for release")

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return asdict(self) | {"headline": self.headline}

    def to_json(self) -> str:
        """JSON text; :meth:`from_json` reads it back."""
        return json.dumps(self.to_dict(), indent=2)

    @classmethod
    def from_json(cls, text: str) -> Ledger:
        """Read what :meth:`to_json` wrote."""
        data = json.loads(text)
        data.pop("headline", None)
        data["releases"] = [Release(**r) for r in data["releases"]]
        return cls(**data)

    def __str__(self) -> str:
        lines = [self.headline, self.statement]
        lines += [
            f"  released  {r.name}: {r.size} values + {r.noise}(scale {r.scale:.4g}), "
            f"sensitivity {r.sensitivity:.4g}{_norm(r)}, {r.cost}{_share(r)}"
            for r in self.releases
        ]
        lines += [f"  no noise  {item}" for item in self.unnoised]
        lines += [f"  {key}: {value}" for key, value in self.details.items()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        colour = "#1a7f37" if self.private and self.for_release else "#b42318"
        rows = "".join(
            f"<tr><td>{html.escape(r.name)}</td><td>{r.size}</td><td>{html.escape(r.noise)}</td><td>{r.scale:.4g}</td>"
            f"<td>{r.sensitivity:.4g}{html.escape(_norm(r))}</td><td>{html.escape(r.cost + _share(r))}</td></tr>"
            for r in self.releases
        )
        unnoised = "".join(f"<li>{html.escape(item)}</li>" for item in self.unnoised)
        details = "".join(
            f"<tr><th>{html.escape(str(k))}</th><td>{html.escape(str(v))}</td></tr>" for k, v in self.details.items()
        )
        return (
            f"<div><strong style='color:{colour}'>{html.escape(self.headline)}</strong>"
            f"<p>{html.escape(self.statement)}</p>"
            "<table><tr><th>released</th><th>values</th><th>noise</th><th>scale</th><th>sensitivity</th>"
            f"<th>cost</th></tr>{rows}</table>"
            f"<p>Part of the output without noise:{'' if unnoised else ' nothing.'}</p><ul>{unnoised}</ul>"
            f"<table>{details}</table></div>"
        )


def _norm(release: Release) -> str:
    return f" ({release.norm})" if release.norm else ""


def _share(release: Release) -> str:
    return "" if release.share is None else f", share {release.share:.4g}"
