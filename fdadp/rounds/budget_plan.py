"""What places, and each release of a fit by rounds, get of the budget: known before a read, but for a private n."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from fdadp.privacy import Cohort
from fdadp.rounds.location_scale_histograms import CELLS, norm_of


@dataclass(frozen=True, kw_only=True)
class Aux:
    """An auxiliary release: it gets the smallest share of the budget that makes it accurate enough.

    Attributes
    ----------
    target : float
        Sd of the noise that is aimed at, in units of what is released.
    cap : float
        Largest share of the budget.
    max_error : float
        The release is left out where the cap leaves it less accurate than this.
    least : float
        Smallest share of a release that is made: its error falls with n however many there are.
    """

    target: float
    cap: float
    max_error: float = math.inf
    least: float = 0.0

    def share(self, noise: float, *, pure: bool) -> float:
        """Share of the budget; `noise` is its sd where the release takes all of the budget."""
        if noise / (self.cap if pure else math.sqrt(self.cap)) > self.max_error:
            return 0.0
        return min(self.cap, max(self.least, noise / self.target if pure else (noise / self.target) ** 2))

    def scaled(self, factor: float) -> Aux:
        """The same with a cap so many times as large."""
        return replace(self, cap=self.cap * factor)


IN_CELLS, DISTANCES = Aux(target=0.03, cap=0.02), Aux(target=0.004, cap=0.02)
"""Counts in cells, and of distances from places: noise on a share of persons."""
TAIL = 0.02
"""Share of each histogram of tails."""
FIRST, ROUNDS = 0.5, 2
"""Of what is left, for the second moment; and how many rounds have the rest."""
LEAST_ROWS, LOUDEST = 500.0, 0.1
"""n ε from which on rounds pay, and the noise on a cell at its cap up to which places can be told."""
COUNT = 0.02
"""Share of the number of persons, where that is private."""


def counted_persons(cohort: Cohort) -> tuple[float, float]:
    """Number of persons, declared or released, and what that leaves of the budget."""
    if cohort.n is not None:
        return float(cohort.n), 1.0
    return float(cohort.count(share=COUNT).value), 1 - COUNT


@dataclass(frozen=True)
class PlacesPlan:
    """Shares of the budget for places and sizes of columns.

    Attributes
    ----------
    n : float
        Declared or released number of persons.
    features : int
        Columns of which distances are released beside the counts.
    targets : int
        Further columns that are only counted.
    noise : float
        Sd of the noise that the whole budget leaves on a mean of sensitivity 1/n.
    pure : bool
        Pure ε.
    left : float
        Of the budget, once a private n was released.
    """

    n: float
    features: int
    targets: int
    noise: float
    pure: bool
    left: float

    @property
    def counts(self) -> float:
        """Share of each of the counts in cells."""
        return IN_CELLS.scaled(self.left).share(self._noise(self.features + self.targets, 1.0), pure=self.pure)

    @property
    def distances(self) -> float:
        """Share of the distances from places."""
        return DISTANCES.scaled(self.left).share(self._noise(self.features, 1.0), pure=self.pure)

    @property
    def rest(self) -> float:
        """What counts and distances leave."""
        return self.left - len(CELLS) * self.counts - self.distances

    @property
    def cell_noise(self) -> float:
        """Noise on the share of persons in a cell, as far as the cap lets a count go."""
        return self._noise(self.features + self.targets, IN_CELLS.cap * self.left)

    def worth(self, epsilon: float, loudest: float = LOUDEST) -> bool:
        """Whether places pay, from public numbers alone: enough rows, and cells no louder than that."""
        return self.n * epsilon >= LEAST_ROWS and self.cell_noise <= loudest

    def noise_at(self, share: float, norm: float = 1.0) -> float:
        """Noise on a mean of sensitivity norm/n at a share."""
        return norm * self.noise / (share if self.pure else math.sqrt(share))

    def _noise(self, columns: int, share: float) -> float:
        return self.noise_at(share, norm_of(columns, pure=self.pure))


@dataclass(frozen=True)
class RoundsPlan(PlacesPlan):
    """Shares of the budget of a regression by rounds.

    Attributes
    ----------
    n, features, targets, noise, pure, left
        As of :class:`PlacesPlan`.
    moment_norm : float
        Sensitivity of the second moment.
    """

    moment_norm: float

    @property
    def tail(self) -> float:
        """Share of each histogram of tails."""
        return TAIL * self.left

    @property
    def moments(self) -> float:
        """Share of the second moment."""
        return FIRST * (self.rest - self.tail)

    @property
    def gradient(self) -> float:
        """Share of each gradient."""
        return (1 - FIRST) * (self.rest - self.tail) / ROUNDS - self.tail

    def __str__(self) -> str:
        q = self.features + self.targets
        lines = [
            ("number of persons", 1 - self.left, 1.0) if self.left < 1 else None,
            *((f"counts in cells {t + 1}", self.counts, norm_of(q, pure=self.pure)) for t in range(len(CELLS))),
            ("distances from places", self.distances, norm_of(self.features, pure=self.pure)),
            ("tail of targets", self.tail, norm_of(self.targets, pure=self.pure)),
            ("second moment of features and targets", self.moments, self.moment_norm),
        ]
        for t in range(ROUNDS):
            lines.append((f"tail of residuals {t + 1}", self.tail, norm_of(self.targets, pure=self.pure)))
            lines.append((f"gradient {t + 1}", self.gradient, 1.0))
        noise = "pure epsilon" if self.pure else "Gaussian noise"
        head = f"Rounds on residuals, n = {self.n:,.0f}, {self.features} features, {self.targets} target(s), {noise}"
        rows = [
            f"{name:<40}{share:>8.3f}{self.noise_at(share, norm):>14.4g}" for name, share, norm in filter(None, lines)
        ]
        return "\n".join([head, "", f"{'release':<40}{'share':>8}{'noise of mean':>14}", *rows])
