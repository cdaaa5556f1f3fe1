"""What places, and each release of a fit by rounds, get of the budget: known before a read, but for a private n."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fdadp.rounds.location_scale_histograms import CELLS, norm_of

CELL_NOISE, CELL_CAP = 0.03, 0.02
"""Sd of the noise on a share of persons in a cell that a count is given, and the most of the budget it may take."""
FAR_NOISE, FAR_CAP = 0.004, 0.02
"""The same of distances from places."""
TAIL = 0.02
"""Share of each histogram of tails."""
FIRST, ROUNDS = 0.5, 2
"""Of what is left, for the second moment; and how many rounds have the rest."""
LEAST_ROWS, LOUDEST = 500.0, 0.1
"""n ε from which on rounds pay, and the noise on a cell at its cap up to which places can be told."""
COUNT = 0.02
"""Share of the number of persons, where that is private."""


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
        return self._least(self.features + self.targets, CELL_NOISE, CELL_CAP)

    @property
    def distances(self) -> float:
        """Share of the distances from places."""
        return self._least(self.features, FAR_NOISE, FAR_CAP)

    @property
    def rest(self) -> float:
        """What counts and distances leave."""
        return self.left - len(CELLS) * self.counts - self.distances

    @property
    def cell_noise(self) -> float:
        """Noise on the share of persons in a cell, as far as the cap lets a count go."""
        return self._noise(self.features + self.targets, CELL_CAP * self.left)

    def worth(self, epsilon: float, loudest: float = LOUDEST) -> bool:
        """Whether places pay, from public numbers alone: enough rows, and cells no louder than that."""
        return self.n * epsilon >= LEAST_ROWS and self.cell_noise <= loudest

    def noise_at(self, share: float, norm: float = 1.0) -> float:
        """Noise on a mean of sensitivity norm/n at a share."""
        return norm * self.noise / (share if self.pure else math.sqrt(share))

    def _noise(self, columns: int, share: float) -> float:
        return self.noise_at(share, norm_of(columns, pure=self.pure))

    def _least(self, columns: int, wanted: float, cap: float) -> float:
        """Least share that has the noise wanted, and no more than a cap."""
        ratio = self._noise(columns, 1.0) / wanted
        return min(cap * self.left, ratio if self.pure else ratio**2)


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
