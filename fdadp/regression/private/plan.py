"""The plan of a private fit: how the budget is shared out, from public values only, before anything is read."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from fdadp._typing import FloatArray
from fdadp.regression.private.prior import WhiteDesign

__all__ = ["Plan", "make_plan", "water_fill"]

RESIDUAL_RANGE = 4.0
"""The size of residuals is looked for within this factor of the guess."""
GAUSSIAN = ((0.1, 0.045, 0.49), (0.1, 0.02, 0.354), (0.14, 0.025, 0.7), (0.11, 0.015), 0.45, 0.05)
PURE = ((0.12, 0.03, 0.6), (0.1, 0.01, 0.5), (0.1, 0.05, 0.5), (0.08, 0.03), 0.5, 0.2)
"""Root mean square of X, its location, scale of Y: target, cap, hopeless; scale of residuals: target, cap.

Then the power at which signals are taken to fall off with the prior's shares, and the weight of the mean of Y.
"""


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
    ridge: float | None = None

    def scaled(self, left: float) -> Plan:
        """Return the plan with shares of the whole budget, of which `left` was left to plan with."""
        return replace(self, shares={name: share * left for name, share in self.shares.items()})

    def __str__(self) -> str:
        from fdadp.regression.private.preview import plan_text

        return plan_text(self)

    def _repr_html_(self) -> str:
        from fdadp.regression.private.preview import plan_html

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
    cap would not make it useful. Constants as measured on simulators (see CONTRIBUTING.md).
    """
    eta = noise_multiplier / n

    def share(coefficient: float, target: float, cap: float, hopeless: float) -> float:
        # Accuracy of a release with share h is coefficient * eta / sqrt(h); in pure form / h.
        reach = coefficient * eta / (cap if pure else math.sqrt(cap))
        if reach > hopeless:
            return 0.0
        return min(cap, coefficient * eta / target if pure else (coefficient * eta / target) ** 2)

    m = design.response_shares.size
    # Target accuracy, cap, and accuracy that is hopeless: in pure form half a share is twice the noise, not 1.4 times.
    rms, location, scale_y, residual, fall_off, mean = PURE if pure else GAUSSIAN
    shares = {"x rms": share(0.5 * math.log(64), *rms)}
    shares["x location"] = share(1.5, *location) if shares["x rms"] else 0.0
    shares["x scale"] = share(0.5 * math.log(24), 0.1, 0.01, 0.1001) if shares["x rms"] else 0.0
    shares["y scale"] = share(0.5 * math.log(16), *scale_y)
    flat = design.feature_shares**fall_off
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
    shares["residual scale"] = share(math.log(RESIDUAL_RANGE), *residual, math.inf)
    shares["residual"] = 0.02 if pure else max(0.01, min(0.02, (eta / 0.006) ** 2))
    shares["calibration"] = 0.03 if pure else max(0.01, min(0.03, (eta / 0.0165) ** 2))
    rest = 1 - sum(shares.values()) - shares["gradient scale"] * (rounds - 1)
    mean_cost, slope_cost = math.sqrt(mean * m * 3), math.sqrt(d * pairs * 1.5)
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
    )
