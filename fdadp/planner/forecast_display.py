"""How forecasts are shown, whatever they are of."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from fdadp.private.plan.budget_plan import Plan


def narrower(untold: Sequence[str]) -> str:
    """A sentence, with a blank, on arguments that were not told; nothing where all were."""
    if not untold:
        return ""
    names = " and ".join(filter(None, (", ".join(f"{name}=" for name in untold[:-1]), f"{untold[-1]}=")))
    return (
        f"Not told, so drawn anew for each cohort: what {names} would say; told from an earlier study, the tenths come "
        "nearer. "
    )


@dataclass(frozen=True)
class AnyForecast:
    """What every forecast says first, and its text and table.

    Attributes
    ----------
    n : int
    epsilon, delta, adjacency
        As asked for; the number of persons is private under ``"add-remove"``.
    """

    n: int
    epsilon: float
    delta: float | None
    adjacency: str

    mechanism: ClassVar[str]
    """Of the fits that it is for, as ledgers have it."""

    @property
    def _subject(self) -> str:
        """What is forecast, with a blank; for titles."""
        return ""

    def _title(self) -> str:
        kind = "pure" if self.delta is None else f"delta {self.delta:g}"
        n = f"about {self.n:,} (private)" if self.adjacency == "add-remove" else f"{self.n:,}"
        return f"Forecast{self._subject} for n = {n}, epsilon = {self.epsilon:g} ({kind}), {self.adjacency}"

    @property
    def sentence(self) -> str:
        """What is expected, in one line; for certificates."""
        facts = ", ".join(" ".join(f"{name} {value}".split()) for name, value in self._facts())
        return f"{self._title()}: {facts}. {self._closing}"

    @property
    def _closing(self) -> str:
        """What the forecast does not promise."""
        raise NotImplementedError

    def _facts(self) -> list[tuple[str, str]]:
        raise NotImplementedError

    def _curves(self) -> list[str]:
        """Lines on other n and ε."""
        return []

    def __str__(self) -> str:
        facts = [f"  {name:<52}{value:>12}" for name, value in self._facts()]
        return "\n".join([self._title(), "", *facts, "", *self._curves(), self._closing])

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><td>{html.escape(a)}</td><td>{html.escape(b)}</td></tr>" for a, b in self._facts())
        return f"<p>{html.escape(self._title())}</p><table>{rows}</table>"


class FormulaForecast:
    """A forecast's title, and what it does not promise, where it is of a formula and of some things that were told.

    Attributes
    ----------
    formula : str
    untold : tuple of str
        Arguments that were not told: what they would say was drawn for each cohort.
    """

    formula: str
    untold: tuple[str, ...]

    @property
    def _simulated(self) -> str:
        """From what cohorts were simulated."""
        return "under the public prior"

    @property
    def _subject(self) -> str:
        return f" of {self.formula}"

    @property
    def _closing(self) -> str:
        return f"{narrower(self.untold)}From simulation {self._simulated}: no promise about your data."


@dataclass(frozen=True)
class Shown(AnyForecast):
    """A forecast with the plan of the fit.

    Attributes
    ----------
    plan : Plan
        How the budget would be shared out.
    """

    plan: Plan = field(repr=False)

    mechanism: ClassVar[str] = "dp-aff"

    def __str__(self) -> str:
        return f"{super().__str__()}\n{self.plan}"

    def _repr_html_(self) -> str:
        return super()._repr_html_() + self.plan._repr_html_()
