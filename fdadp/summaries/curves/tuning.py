"""What private summaries were tuned to: shares of the budget and clips, by name and public."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class SummaryTuning:
    """Of a private summary of curves; :data:`SHARES` are shares of the budget, which add up to one.

    Attributes
    ----------
    goal : {"mean", "covariance"}
        What is wanted. With the covariance also the energy outside the functions is released.
    observed, outside, level, size, rough_mean, spread, tail, mean, covariance, rest : float
        Number of persons with an observed curve;
        share of values beyond the bounds; levels of curves; their size about the level; a rough mean; their size about
        that; shares of large curves; mean; covariance; energy outside the functions.
    rows, within_size, within_tail, within : float
        Where persons have several curves: how many; the size of what differs within a person; shares of persons that
        vary much; the covariance within persons.
    size_below, spread_below : float
        The sizes are looked for from the bounds, and from the size about the level, divided by this.
    size_clip : float
        Clip of curves over their released size, where no tail was looked at.
    size_guess : float
        Half-width of the bounds over the size that curves are guessed to have.
    half_band : float
        Half a simultaneous band over the sd of the mean.
    """

    goal: Literal["mean", "covariance"]
    observed: float = 0.01
    outside: float = 0.01
    level: float = 0.02
    size: float
    rough_mean: float
    spread: float
    tail: float
    mean: float
    covariance: float
    rest: float = 0.0
    rows: float = 0.0
    within_size: float = 0.0
    within_tail: float = 0.0
    within: float = 0.0
    size_below: float = 64.0
    spread_below: float = 32.0
    size_clip: float = 1.5
    size_guess: float = 4.0
    half_band: float = 2.8

    @property
    def share(self) -> float:
        """Share of the budget of what is wanted."""
        return self.mean if self.goal == "mean" else self.covariance

    @property
    def clip_of_goal(self) -> float:
        """Clip of what is wanted over the size of curves, or its square."""
        return self.size_clip if self.goal == "mean" else self.size_clip**2

    def scaled(self, left: float) -> SummaryTuning:
        """Return shares of the whole budget, of which `left` is left."""
        return replace(self, **{name: getattr(self, name) * left for name in SHARES})


_OF_CURVES = ("observed", "outside", "level", "size", "rough_mean", "spread", "tail", "mean", "covariance", "rest")
SHARES = (*_OF_CURVES, "rows", "within_size", "within_tail", "within")
MEAN = SummaryTuning(goal="mean", size=0.03, rough_mean=0.07, spread=0.04, tail=0.06, mean=0.64, covariance=0.12)
COVARIANCE = SummaryTuning(
    goal="covariance", size=0.04, rough_mean=0.06, spread=0.05, tail=0.05, mean=0.10, covariance=0.58, rest=0.08
)
LEVELS = SummaryTuning(
    goal="covariance",
    size=0.03,
    rough_mean=0.05,
    spread=0.04,
    tail=0.04,
    mean=0.08,
    covariance=0.31,
    rest=0.05,
    rows=0.02,
    within_size=0.04,
    within_tail=0.04,
    within=0.26,
)
