"""What a private fit was tuned to: accuracies aimed at, caps on the budget, clips, all by name and public.

The defaults were chosen on simulated cohorts, see docs/decisions. To try others, hand a fit ``replace(GAUSSIAN, ...)``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from fdadp.rounds.budget_plan import Aux


@dataclass(frozen=True, kw_only=True)
class Size(Aux):
    """A size that is released on a log scale, where it is looked for within a range about a guess.

    Attributes
    ----------
    below, above : float
        From ``guess / below`` to ``guess * above``. Accuracies are those of its logarithm.
    """

    below: float
    above: float

    @property
    def reach(self) -> float:
        """Half the width of the range, in logarithms: what a person moves the release by, times n."""
        return 0.5 * math.log(self.below * self.above)

    def range(self, guess: float) -> tuple[float, float]:
        """Where the size is looked for."""
        return guess / self.below, guess * self.above


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Of a private fit.

    Attributes
    ----------
    x_rms, x_location, x_scale, x_centre
        Size of X about the middle of its public range, its level, its size about that level, and the level once more.
    numbers
        Means and variances of numbers on their public bounds; its cap is for each of them.
    places
        Counts of numbers in cells of their public bounds, twice; its cap is for each of them.
    y_rms, y_location, y_scale, y_spread
        Size of Y about the middle of its public range, its level, its sizes about that level and about the mean curve.
    x_spectrum, y_spectrum
        Shares of a person's energy of X by frequency, and of Y, about the mean curve, by roughness.
    directions
        Second moment of the directions of features.
    y_range_if_dear : float
        ``y_rms.below`` where the wider one is too dear.
    outside
        Shares of the values outside the public ranges.
    gradient_scale, residual_scale, residual_again, residual_profile
        Size of a person's gradient; size of residuals, that once more near what was found first (of forecasts), and
        that in blocks of time.
    level
        Means of residuals with a wide clip: what clips of gradients take of the level where errors are skewed.
    residual, calibration
        Covariance of residuals; histogram of standardised residuals. Their shares are those of Gaussian noise.
    residual_split : float
        Share of `residual` that goes to the covariance; the rest to the energy outside the response functions.
    water_noise : float
        Variance of one gradient's noise over that of a sum of sensitivity 1, of which weights are planned.
    fall_off : float
        Power of the prior's shares at which signals are taken to fall off.
    signal, planned_signal : float
        Energy of what is explained over that of responses: as expected, by which coefficients are shrunk, and as the
        plan counts on: pairs of feature and output that are not worth their noise then get nothing.
    intercept_floor : float
        Weight of the constant in outputs after the first, relative to that in the first, at least.
    rounds : int
        Gradient rounds.
    fewer_rounds : tuple of (float, int)
        Noise per person from which on there are fewer, and how many; the largest first.
    twice_from : float
        Noise per person down from which there are twice as many: steps, and no longer noise, are what is lost then.
    mean_weight, mean_cost, slope_cost : float
        What errors of the mean of Y and of the coefficients cost; the rest of the budget is split by it.
    mean_target, mean_least : float
        Accuracy of the mean of Y beyond which no budget is spent on it, and the share that it gets all the same.
    clip_noisy, clip_more : float
        Clip of a gradient over its released size: the first where there is much noise, by the second more where there
        is little.
    first_clip : float
        Clip of a gradient over its prior size, where its size is not released.
    feature_clip : float
        Norm of features from which on a person is down-weighted, over what the prior expects.
    size_clip : float
        Clip of levels and of responses over their released size.
    mean_clip : float
        The same of the vector of responses, in its own norm: L1 norms are longer.
    mean_square : float
        Of residuals, over their squared geometric mean, as expected.
    residual_clip, residual_clip_more : float
        Clip of residuals over their released size, where there is much noise; how much more where
        there is little.
    """

    x_rms: Size = Size(target=0.1, cap=0.045, max_error=0.49, below=32.0, above=2.0)
    x_location: Aux = Aux(target=0.1, cap=0.02, max_error=0.354)
    x_scale: Size = Size(target=0.1, cap=0.01, max_error=0.1001, below=16.0, above=1.5)
    x_centre: Aux = Aux(target=0.1, cap=0.01, max_error=0.354)
    numbers: Aux = Aux(target=0.01, cap=0.02, max_error=0.3, least=0.002)
    places: Aux = Aux(target=0.005, cap=0.01, max_error=0.2, least=0.001)
    y_rms: Size = Size(target=0.2, cap=0.015, max_error=0.5, below=1000.0, above=1.0)
    y_range_if_dear: float = 48.0
    y_location: Aux = Aux(target=0.05, cap=0.01, max_error=0.3)
    y_scale: Size = Size(target=0.1, cap=0.015, max_error=0.354, below=16.0, above=1.5)
    y_spread: Size = Size(target=0.15, cap=0.0075, max_error=0.2, below=32.0, above=1.5)
    x_spectrum: Aux = Aux(target=0.01, cap=0.012, max_error=0.085)
    y_spectrum: Aux = Aux(target=0.01, cap=0.02, max_error=0.065)
    directions: Aux = Aux(target=0.02, cap=0.05, max_error=0.1)
    outside: Aux = Aux(target=0.02, cap=0.01)
    gradient_scale: Size = Size(target=0.1, cap=0.01, max_error=0.2, below=10.0, above=3.0)
    residual_scale: Size = Size(target=0.11, cap=0.015, below=4.0, above=4.0)
    residual_again: Size = Size(target=0.03, cap=0.06, below=2.0, above=2.0)
    residual_profile: Aux = Aux(target=0.1, cap=0.02, max_error=0.45)
    level: Aux = Aux(target=0.002, cap=0.02, max_error=0.035)
    residual: Aux = Aux(target=0.006, cap=0.02, least=0.01)
    calibration: Aux = Aux(target=0.0165, cap=0.03, least=0.01)
    residual_split: float = 0.75
    water_noise: float = 3.0
    fall_off: float = 0.45
    signal: float = 1.0
    planned_signal: float = 1.0
    intercept_floor: float = 0.25
    rounds: int = 8
    fewer_rounds: tuple[tuple[float, int], ...] = ()
    twice_from: float = 8e-4
    mean_weight: float = 0.05
    mean_cost: float = 3.0
    slope_cost: float = 1.5
    mean_target: float = 0.03
    mean_least: float = 0.01
    clip_noisy: float = 1.2
    clip_more: float = 1.5
    first_clip: float = 0.62
    feature_clip: float = 3.0
    size_clip: float = 1.5
    mean_clip: float = 1.0
    mean_square: float = 1.3
    residual_clip: float = 2.3
    residual_clip_more: float = 2.2

    def each_of(self, count: int) -> Tuning:
        """The same with the caps of one of so many columns of curves."""
        if count < 2:
            return self
        parts = {name: getattr(self, name) for name in ("x_rms", "x_location", "x_scale", "x_centre")}
        return replace(self, **{name: replace(part, cap=part.cap / count) for name, part in parts.items()})

    def rounds_at(self, eta: float) -> int:
        """Gradient rounds at this noise per person."""
        rounds = next((rounds for least, rounds in self.fewer_rounds if eta >= least), self.rounds)
        return 2 * rounds if eta <= self.twice_from else rounds


GAUSSIAN = Tuning()
"""For (ε, δ), with Gaussian noise and L2 norms."""
PURE = replace(
    GAUSSIAN,
    x_rms=Size(target=0.08, cap=0.05, max_error=0.6, below=32.0, above=1.0),
    x_location=Aux(target=0.05, cap=0.03, max_error=0.5),
    x_centre=Aux(target=0.15, cap=0.01, max_error=0.5),
    y_rms=replace(GAUSSIAN.y_rms, cap=0.05, max_error=0.25),
    y_location=Aux(target=0.1, cap=0.04, max_error=0.15),
    y_scale=replace(GAUSSIAN.y_scale, cap=0.02, max_error=0.5),
    y_spread=replace(GAUSSIAN.y_spread, cap=0.01, max_error=0.3),
    residual_scale=replace(GAUSSIAN.residual_scale, target=0.08, cap=0.03),
    residual=replace(GAUSSIAN.residual, least=0.02),
    calibration=replace(GAUSSIAN.calibration, least=0.03),
    fall_off=0.5,
    fewer_rounds=((7e-3, 2), (1e-3, 3), (5.5e-4, 4), (3e-4, 6)),
    twice_from=5e-5,
    mean_weight=0.2,
    clip_noisy=0.9,
    clip_more=1.5,
    first_clip=0.8,
    mean_clip=1.6,
)
"""For pure ε, with Laplace noise and L1 norms."""
