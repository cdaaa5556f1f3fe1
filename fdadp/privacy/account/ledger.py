"""The ledger: what was released, with which noise, under which assumptions. Text, HTML and JSON."""

from __future__ import annotations

import html
import json
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from fdadp._common.guarantee_in_words import promised, rounded_up, shown_up
from fdadp.files.regular_files import reading
from fdadp.privacy.account._reservations import Release

if TYPE_CHECKING:
    from fdadp.privacy.certificate import Certificate
    from fdadp.privacy.certificate.forecasts_and_r2 import Expected


@dataclass(frozen=True, repr=False)
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
        False where the noise was seeded (simulation), or where it is not proved that a draw has the distribution of its
        noise (``docs/theory/noise.md#exactness``).
    details : dict
        Adjacency, privacy unit, public inputs, versions, readings of undefined points.
    epsilon, delta : float or None
        The guarantee, of everything that drew on the budget together; delta None means pure ε.
    mu : float or None
        The guarantee in Gaussian DP, where it has one: (ε, δ) is one point of its curve.
    others : int
        Known earlier fits to the same data, or of the same estimator, that drew on other budgets.
    """

    mechanism: str
    private: bool
    statement: str
    releases: Sequence[Release] = ()
    unnoised: Sequence[str] = ()
    for_release: bool = False
    details: dict[str, Any] = field(default_factory=dict)
    epsilon: float | None = None
    delta: float | None = None
    others: int = 0
    mu: float | None = None

    @property
    def headline(self) -> str:
        """First line of every form of the ledger."""
        verdict = "differentially private end to end" if self.private else "NOT differentially private end to end"
        if self.epsilon is not None:
            verdict += f", {self.promise}"
        if self.others:
            before = "1 fit before it is" if self.others == 1 else f"{self.others} fits before it are"
            verdict += f", for this fit alone; {before} not accounted for"
        return f"{self.mechanism}: {verdict}" + ("" if self.for_release else "; not for release")

    @property
    def promise(self) -> str:
        """What is promised; of a fit on a study what it took by itself, and what the study promises of all fits."""
        if self.epsilon is None:
            return ""
        own = self.details.get("spent by its releases, as epsilon")
        alone = "" if "study" not in self.details or own is None else f"epsilon = {shown_up(own)} of its study's "
        return alone + promised(self.epsilon, self.delta)

    @property
    def curve(self) -> str:
        """The guarantee in Gaussian DP, and what it is at some δ, rounded up; empty where it has none."""
        from fdadp.privacy.account.epsilon_mu_rho import epsilon_from_mu

        if self.mu is None or self.epsilon is None or self.delta is None:
            return ""
        points = [(self.epsilon, self.delta)] + [
            (rounded_up(epsilon_from_mu(self.mu, delta)), delta) for delta in DELTAS if delta != self.delta
        ]
        said = ", ".join(f"({epsilon:g}, {delta:g})" for epsilon, delta in points)
        return f"mu = {rounded_up(self.mu, 4):g} (Gaussian DP), which is (epsilon, delta) = {said}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {"headline": self.headline} | asdict(self)

    def to_json(self) -> str:
        """JSON text; :meth:`from_json` reads it back."""
        return json.dumps(self.to_dict(), indent=2)

    @classmethod
    def from_json(cls, text: str) -> Ledger:
        """Read what :meth:`to_json` wrote.

        Raises
        ------
        InputError
            No ledger.
        """
        with reading("a ledger", text):
            data = json.loads(text)
            data.pop("headline", None)
            data["releases"] = [Release(**r) for r in data["releases"]]
            return cls(**data)

    def certificate(self, forecasts: Sequence[Expected] = (), **about: str) -> Certificate:
        """Certificate of this fit; parameters as of :meth:`fdadp.privacy.certificate.Certificate.of_ledger`."""
        from fdadp.privacy.certificate import Certificate

        return Certificate.of_ledger(self, forecasts, **about)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        parts = [self.headline, *filter(None, [self.curve]), *textwrap.wrap(self.statement, WIDTH)]
        if self.releases:
            rows = [COLUMNS, *(_cells(r) for r in self.releases)]
            widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
            parts += ["", "Released, with noise:"]
            for row in rows:
                cells = (
                    c.rjust(w) if j in NUMBERS else c.ljust(w) for j, (c, w) in enumerate(zip(row, widths, strict=True))
                )
                parts.append("  " + "  ".join(cells).rstrip())
        if self.unnoised:
            parts += ["", "Part of the output WITHOUT noise:", *(f"  {item}" for item in self.unnoised)]
        if self.details:
            parts += ["", "Assumptions and settings:", *(f"  {k}: {_text(v)}" for k, v in self.details.items())]
        return "\n".join(parts)

    def _repr_html_(self) -> str:
        good = self.private and self.for_release
        curve = f"<br>{html.escape(self.curve)}" if self.curve else ""
        colour, ground = ("#1a7f37", "#e9f5ec") if good else ("#b42318", "#fdecea")
        head = "".join(_cell(c, "th", j) for j, c in enumerate(COLUMNS))
        rows = "".join(f"<tr>{''.join(_cell(c, 'td', j) for j, c in enumerate(_cells(r)))}</tr>" for r in self.releases)
        released = f"<p><b>Released, with noise</b></p><table><tr>{head}</tr>{rows}</table>" if self.releases else ""
        items = "".join(f"<li>{html.escape(item)}</li>" for item in self.unnoised)
        unnoised = f"<p><b>Part of the output without noise</b></p><ul>{items}</ul>" if items else ""
        details = "".join(
            f"<tr><th style='text-align:left'>{html.escape(str(k))}</th>"
            f"<td style='text-align:left'>{html.escape(_text(v))}</td></tr>"
            for k, v in self.details.items()
        )
        settings = f"<p><b>Assumptions and settings</b></p><table>{details}</table>" if details else ""
        return (
            f"<div style='max-width:70em'><p style='color:{colour};background:{ground};padding:.5em;"
            f"border-left:4px solid {colour}'><strong>{html.escape(self.headline)}</strong>{curve}</p>"
            f"<p>{html.escape(self.statement)}</p>{released}{unnoised}{settings}</div>"
        )


DELTAS = (1e-4, 1e-6, 1e-8)
"""At which a ledger says what its μ is in ε."""
WIDTH = 110
COLUMNS = ("release", "values", "clip", "sensitivity", "noise", "noise sd", "cost")
NUMBERS = (1, 2, 3, 5)


def _cells(release: Release) -> tuple[str, ...]:
    """One line of the table of releases."""
    clip = "none" if release.clip is None else f"{release.clip:.4g} ({release.norm})"
    spread = f"scale {release.scale:.4g}" if release.sd is None else f"{release.sd:.4g}"
    share = "" if release.share is None else f", share {release.share:.3g}"
    kind = release.noise.split(",")[0]  # its source stands once, in the settings
    return release.name, str(release.size), clip, f"{release.sensitivity:.4g}", kind, spread, release.cost + share


def _cell(text: str, tag: str, column: int) -> str:
    side = "right" if column in NUMBERS else "left"
    return f"<{tag} style='text-align:{side};padding:1px 8px'>{html.escape(text)}</{tag}>"


def _text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
