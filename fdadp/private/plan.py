"""The plan of a private fit: how the budget is shared out, from public values only, before anything is read."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from fdadp._common.typing import FloatArray, IntArray
from fdadp.private.prior import WhiteDesign

__all__ = ["SPREADS", "Plan", "make_plan", "time_blocks", "water_fill"]

RESIDUAL_RANGE = 4.0
"""The size of residuals is looked for within this factor of the guess."""
Y_RANGES = (1000.0, 48.0)
"""The size of Y is looked for within the first factor of the largest it may have; the second where that is too dear."""

MOST_BLOCKS = 10
"""Blocks of the domain of Y in which the size of residuals is looked at."""
SPREADS = (0.06, 3.0)
"""Range of a block's residual over what is expected of it."""


class Constants(NamedTuple):
    """Of one kind of noise: target, cap and hopeless accuracy of each auxiliary release, and what else is planned by.

    Attributes
    ----------
    x_rms, x_location, x_scale, x_centre : (float, float, float)
    y_rms, y_location, y_scale, y_spread, residual, profile : (float, float, float)
        A release gets the smallest share that reaches the target accuracy, at most the cap, and nothing where the cap
        leaves an accuracy that is hopeless.
    outside : (float, float)
        Target accuracy and cap.
    fall_off : float
        Power at which signals are taken to fall off with the prior's shares.
    mean : float
        Weight of the mean of Y.
    """

    x_rms: tuple[float, float, float]
    x_location: tuple[float, float, float]
    x_scale: tuple[float, float, float]
    x_centre: tuple[float, float, float]
    y_rms: tuple[float, float, float]
    y_location: tuple[float, float, float]
    y_scale: tuple[float, float, float]
    y_spread: tuple[float, float, float]
    residual: tuple[float, float, float]
    profile: tuple[float, float, float]
    outside: tuple[float, float]
    fall_off: float
    mean: float


GAUSSIAN = Constants(
    x_rms=(0.1, 0.045, 0.49),
    x_location=(0.1, 0.02, 0.354),
    x_scale=(0.1, 0.01, 0.1001),
    x_centre=(0.1, 0.01, 0.354),
    y_rms=(0.2, 0.015, 0.5),
    y_location=(0.05, 0.01, 0.3),
    y_scale=(0.1, 0.015, 0.354),
    y_spread=(0.15, 0.0075, 0.2),
    residual=(0.11, 0.015, math.inf),
    profile=(0.1, 0.02, 0.45),
    outside=(0.02, 0.01),
    fall_off=0.45,
    mean=0.05,
)
PURE = Constants(
    x_rms=(0.12, 0.03, 0.6),
    x_location=(0.1, 0.01, 0.5),
    x_scale=(0.1, 0.01, 0.1001),
    x_centre=(0.15, 0.01, 0.5),
    y_rms=(0.2, 0.05, 0.25),
    y_location=(0.1, 0.01, 0.3),
    y_scale=(0.1, 0.02, 0.5),
    y_spread=(0.15, 0.01, 0.2),
    residual=(0.08, 0.03, math.inf),
    profile=(0.1, 0.02, 0.45),
    outside=(0.02, 0.01),
    fall_off=0.5,
    mean=0.2,
)


@dataclass(frozen=True)
class Plan:
    """Shares of the budget and the sizes that they can afford.

    Attributes
    ----------
    n : float
        Declared or released number of persons.
    pure : bool
        Pure ε (Laplace noise, L1 norms) instead of (ε, δ).
    eta : float
        Noise per person: sd of a sum of sensitivity 1 at the whole budget, divided by n.
    shares : dict
        Share of the budget of each kind of release; 0 means that it is left out.
    rounds : int
        T, number of gradient rounds.
    weights : ndarray of shape (D, K)
        Weights of the pairs (feature, output) in the gradients; 0: not measured.
    clip_factor : float
        Clip of a gradient relative to its released geometric-mean norm.
    feature_clip : float
        Norm beyond which a person's features are down-weighted, the constant left out.
    clarity : float
        From 0 (all noise) to 1 (little).
    y_range : float
        Factor within which the size of Y is looked for.
    ridge : float or None
        Ridge penalty over n, of ``mechanism="output"``.
    """

    n: float
    pure: bool
    eta: float
    shares: dict[str, float]
    rounds: int
    weights: FloatArray
    clip_factor: float
    feature_clip: float
    clarity: float
    y_range: float
    ridge: float | None = None

    def scaled(self, left: float) -> Plan:
        """Return the plan with shares of the whole budget, of which `left` was left to plan with."""
        return replace(self, shares={name: share * left for name, share in self.shares.items()})

    def __str__(self) -> str:
        from fdadp.private.preview import plan_text

        return plan_text(self)

    def _repr_html_(self) -> str:
        from fdadp.private.preview import plan_html

        return plan_html(self)

    @property
    def n_features(self) -> int:
        """D, features used, the constant among them."""
        return int(self.weights.shape[0])

    @property
    def n_outputs(self) -> int:
        """K, basis functions of Y used by the regression."""
        return int(self.weights.shape[1])

    @property
    def n_pairs(self) -> int:
        """N, pairs that are measured."""
        return int((self.weights > 0).sum())


def time_blocks(unit_t: FloatArray) -> IntArray:
    """Block of each point of a grid on [0, 1]: equal parts of four points or more on an even grid; shape (T,)."""
    count = min(max(unit_t.size // 4, 1), MOST_BLOCKS)
    return np.asarray(np.minimum((unit_t * count).astype(np.int64), count - 1))


def water_fill(noise: float, feature_scale: FloatArray, output_shares: FloatArray) -> FloatArray:
    """Budget of each pair (feature j, output k): ``p_jk = (L sqrt(λ_k) - noise/τ_j²)_+`` with ``Σ p = 1``.

    It minimises the expected loss ``Σ λ_k τ_j² / (1 + τ_j² p_jk / noise)``; pairs not worth their noise get nothing.

    Returns
    -------
    ndarray of shape (d, K)
    """
    cost = noise / feature_scale[:, None]
    gain = np.sqrt(output_shares)[None]
    low, high = 0.0, (1 + cost.max()) / gain.min()
    for _ in range(100):
        level = (low + high) / 2
        if np.maximum(level * gain - cost, 0).sum() > 1:
            high = level
        else:
            low = level
    return np.asarray(np.maximum(high * gain - cost, 0))


def make_plan(n: float, noise_multiplier: float, design: WhiteDesign, *, pure: bool) -> Plan:
    """Plan a fit of `n` persons.

    Parameters
    ----------
    n : float
        Declared number of persons, or the released one.
    noise_multiplier : float
        Sd of the noise of a sum of sensitivity 1 that spends the whole budget: ``1/sqrt(2ρ)``, or ``sqrt(2)/ε``.
    design : WhiteDesign
    pure : bool

    Notes
    -----
    An auxiliary release gets the smallest share that reaches its target accuracy, capped; it is left out where even the
    cap would not make it useful. Constants as measured on simulators:
    ``docs/decisions/0012-average-over-the-size-of-the-signal.md``, ``docs/decisions/0014-measure-more-pairs.md``.
    """
    eta = noise_multiplier / n

    def share(coefficient: float, target: float, cap: float, hopeless: float) -> float:
        # Accuracy of a release with share h is coefficient * eta / sqrt(h); in pure form / h.
        reach = coefficient * eta / (cap if pure else math.sqrt(cap))
        if reach > hopeless:
            return 0.0
        return min(cap, coefficient * eta / target if pure else (coefficient * eta / target) ** 2)

    m = design.response_shares.size
    constants = PURE if pure else GAUSSIAN
    shares = {"x rms": share(0.5 * math.log(64), *constants.x_rms)}
    shares["x location"] = share(1.5, *constants.x_location) if shares["x rms"] else 0.0
    shares["x scale"] = share(0.5 * math.log(24), *constants.x_scale) if shares["x rms"] else 0.0
    shares["x centre"] = share(1.5, *constants.x_centre) if shares["x scale"] else 0.0
    shares["x size"] = shares["x scale"] if shares["x centre"] else 0.0
    y_range = Y_RANGES[0] if share(0.5 * math.log(Y_RANGES[0]), *constants.y_rms) else Y_RANGES[1]
    shares["y rms"] = share(0.5 * math.log(y_range), *constants.y_rms)
    shares["y location"] = share(1.5, *constants.y_location)
    shares["y scale"] = share(0.5 * math.log(24), *constants.y_scale) if shares["y location"] else 0.0
    shares["y spread"] = share(0.5 * math.log(48), *constants.y_spread)
    shares["outside"] = share(1.0 if pure else math.sqrt(0.5), *constants.outside, math.inf)
    flat = design.feature_shares**constants.fall_off
    feature_scale = np.concatenate(([flat[0]], flat)) / flat.sum()  # the intercept as large as the largest
    output_shares = design.response_shares
    if pure:  # L1: the clip grows with the number of pairs, and the rounds share ε linearly
        rounds, pairs = 8 if eta < 4e-4 else 4, 10.0
        for _ in range(20):
            filled = water_fill(eta**2 * pairs * rounds, feature_scale, output_shares)
            pairs = 0.5 * pairs + 0.5 * (filled > 0).sum()
    else:
        rounds = 8
        filled = water_fill(3 * eta**2 / 0.8, feature_scale, output_shares)
    k = max(1, int((filled.sum(axis=0) > 0).sum()))
    d = max(2, int((filled[:, 0] > 0).sum()))
    filled = filled[:d, :k]
    filled[0] = np.maximum(filled[0], filled[0, 0] * 0.25)
    weights = np.sqrt(filled / output_shares[:k])
    weights /= weights.max()
    pairs = int((weights > 0).sum())
    difficulty = math.sqrt(pairs * d) * eta
    clarity = float(np.clip(-math.log10(max(difficulty, 1e-9)), 0, 3)) / 3
    clear = float(np.clip((clarity - 0.4) / 0.6, 0, 1))
    shares["gradient scale"] = share(0.5 * math.log(30), 0.1, 0.01, 0.2)
    shares["residual scale"] = share(math.log(RESIDUAL_RANGE), *constants.residual)
    shares["residual"] = 0.02 if pure else max(0.01, min(0.02, (eta / 0.006) ** 2))
    blocks = int(time_blocks(design.unit_t)[-1]) + 1
    reach = 0.5 * math.log(SPREADS[1] / SPREADS[0]) * (blocks if pure else math.sqrt(blocks))
    shares["residual profile"] = share(reach, *constants.profile) if blocks > 1 else 0.0
    shares["calibration"] = 0.03 if pure else max(0.01, min(0.03, (eta / 0.0165) ** 2))
    rest = 1 - sum(shares.values()) - shares["gradient scale"] * (rounds - 1)
    mean_cost, slope_cost = math.sqrt(constants.mean * m * 3), math.sqrt(d * pairs * 1.5)
    wanted = max(0.01, (math.sqrt(m) * 2 * eta / 0.03) ** 2)
    shares["y mean"] = min(rest * mean_cost / (mean_cost + slope_cost), wanted)
    shares["gradient"] = (rest - shares["y mean"]) / rounds
    return Plan(
        n=n,
        pure=pure,
        eta=eta,
        shares=shares,
        rounds=rounds,
        weights=weights,
        clip_factor=1.2 + 1.5 * clear,
        feature_clip=3 * math.sqrt(d - 1),
        clarity=clarity,
        y_range=y_range,
    )
