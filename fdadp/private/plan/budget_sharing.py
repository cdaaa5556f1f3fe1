"""How the budget of a private fit is shared out, from public values only, before anything is read."""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp._common.typing import FloatArray, IntArray
from fdadp.privacy import Cohort
from fdadp.private.plan.budget_plan import Located, Plan
from fdadp.private.public.column_ranges import UNIFORM_VARIANCE
from fdadp.private.public.tuned_constants import GAUSSIAN, PURE, Size, Tuning
from fdadp.rounds.budget_plan import Aux
from fdadp.rounds.location_scale_histograms import norm_of

if TYPE_CHECKING:
    from fdadp.private.plan.private_design import PrivateDesign

# How many persons there are, where that is private, what counting them leaves of the budget, and how many it takes.


LEAST_N = 20.0
"""A released number of persons is never taken below this."""
FIRST = 0.01
"""Share of the budget of the first count."""
ACCURATE = 0.02
"""Relative error that is good enough; where the first count has more, a second one follows."""
MOST_AGAIN = 0.09
"""Share of the budget of the second count, at most."""
LEAST_N_EPSILON = 50.0
"""n ε below which a private regression explains no more than the mean curve."""


def least_n_epsilon(adjacency: str) -> float:
    """Least n ε of a regression that is worth fitting; where persons are replaced the noise is twice as large."""
    return LEAST_N_EPSILON * (2 if adjacency == "replace" else 1)


def release_n(cohort: Cohort) -> tuple[float, float]:
    """Private number of persons, or of rows that are added up, and the share of the budget that is left.

    The second count has the share that would make the error small enough, or `MOST_AGAIN`; the two are combined by
    inverse variance.
    """
    what = f"number of {'persons' if cohort.law.name == 'mean' else 'rows'}"
    first = cohort.count(share=FIRST, floor=LEAST_N, name=what)
    again = _again(first.sd / first.value, pure=cohort.pure)
    if not again:
        return float(first.value), 1 - FIRST
    second = cohort.count(share=again, floor=LEAST_N, name=f"{what}, again")
    weights = np.array([first.sd**-2, second.sd**-2])
    n = float(np.average([first.value, second.value], weights=weights))
    return max(n, LEAST_N), 1 - FIRST - again


def expected_left(n: float, multiplier: float, *, pure: bool) -> float:
    """Share of the budget that :func:`release_n` is expected to leave.

    Parameters
    ----------
    n : float
    multiplier : float
        Sd of the noise of a count that spends the whole budget.
    pure : bool
    """
    return 1 - FIRST - _again(multiplier / (FIRST if pure else math.sqrt(FIRST)) / n, pure=pure)


def _again(relative: float, *, pure: bool) -> float:
    """Share of a second count after a first one with this relative error; 0 where none is needed."""
    if relative <= ACCURATE:
        return 0.0
    ratio = relative / ACCURATE
    return min(MOST_AGAIN, FIRST * (ratio if pure else ratio**2))


# Which features and outputs a gradient in pure ε measures, and with which weights: those of a matrix of rank one.
#
# Noise for contributions of bounded nuclear norm costs √(D + K) for any D x K rectangle, not √(D K) as Laplace noise
# does; but weights must keep a person's contribution of rank one, so that they are products: ``W = u v'``. From public
# values only (docs/theory/dp-aff.md#rank-one).


HALVINGS = 50
PRECISIONS = np.concatenate(([0.0], np.geomspace(1e-3, 1e9, 481)))
"""Precisions of a feature, over those of its prior, at which the worth of more precision is tabulated."""

REMEMBERED = 64
"""Plans kept in memory."""
LEAST_SHARE = 1e-12
"""Outputs of no larger prior share are not measured."""


def rank_one_weights(noise: float, feature_scale: FloatArray, output_shares: FloatArray) -> FloatArray:
    """Weights u v' of the rectangle of features and outputs with the least expected loss.

    Parameters
    ----------
    noise : float
        Variance of the mean of all rounds in one entry, for a clip of 1 and where √(D + K) is 1.
    feature_scale : ndarray of shape (d,)
        Prior shares τ² of the features, the constant first; falling, d >= 2.
    output_shares : ndarray of shape (m,)
        Prior shares λ of the response functions; falling, the first above 0.

    Returns
    -------
    ndarray of shape (D, K)
        Largest entry 1.

    Notes
    -----
    With ``v_k = λ_k^(-1/4)``, ``u_j = √p_j`` and Σ p = 1 a typical |u∘f||v∘r| is √(Σ √λ_k), so that the pair (j, k) is
    measured with variance ``N √λ_k / p_j``, ``N = noise (D + K) Σ √λ_k``, and the expected loss is
    ``Σ λ_k τ_j² / (1 + √λ_k q_j)`` with ``q_j = τ_j² p_j / N``, the precision of a feature. At its minimum over p the
    derivatives ``τ_j⁴/N g(q_j)``, ``g(q) = Σ_k λ_k^(3/2) / (1 + √λ_k q)²``, are the same for all features that get
    anything: their common level is found by bisection, for all D at once, and g is inverted from a table.
    """
    return _cached(float(noise), tuple(map(float, feature_scale)), tuple(map(float, output_shares))).copy()


@functools.lru_cache(maxsize=REMEMBERED)
def _cached(noise: float, feature_scale: tuple[float, ...], output_shares: tuple[float, ...]) -> FloatArray:
    tau2, best, weights = np.array(feature_scale), -math.inf, np.ones((1, 1))
    for k in range(1, sum(share > LEAST_SHARE for share in output_shares) + 1):
        roots = np.sqrt(output_shares[:k])
        kept, precisions = _kept(noise, tau2, roots)
        at = int(kept.argmax())
        if kept[at] > best:
            best = float(kept[at])
            d = at + 2
            weights = np.outer(np.sqrt(precisions[at, :d] / tau2[:d]), 1 / np.sqrt(roots))
    return np.asarray(weights / weights.max())


def _kept(noise: float, tau2: FloatArray, roots: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Signal that is kept with the first D = 2, ..., d features, shape (d - 1,), and their precisions (d - 1, d)."""
    worth = (roots**3 / (1 + np.outer(PRECISIONS, roots)) ** 2).sum(axis=1)
    falling, precisions = np.log(worth[::-1]), PRECISIONS[::-1]
    counts = np.arange(2, tau2.size + 1)
    inside = np.arange(tau2.size) < counts[:, None]
    budget = 1 / (noise * (counts + roots.size) * roots.sum())  # Σ q_j/τ_j² where Σ p = 1
    steep = 2 * np.log(tau2)
    low, high = np.full(counts.size, falling[0] + steep.min()), np.full(counts.size, falling[-1] + steep.max())
    for _ in range(HALVINGS):
        level = (low + high) / 2
        used = np.where(inside, np.interp(level[:, None] - steep, falling, precisions) / tau2, 0.0).sum(axis=1)
        low, high = np.where(used > budget, level, low), np.where(used > budget, high, level)
    q = np.where(inside, np.interp(high[:, None] - steep, falling, precisions), 0.0)
    kept = tau2 * (roots**2 * (1 - 1 / (1 + q[..., None] * roots))).sum(axis=-1)
    return np.asarray(kept.sum(axis=1)), q


MOST_BLOCKS, LEAST_IN_BLOCK = 10, 4
"""Blocks of the domain of Y in which the size of residuals is looked at; points in one on an even grid."""
SPREADS = (0.06, 3.0)
"""Range of a block's residual over what is expected of it."""
COUNTS = 10
"""Steps of the search for how many pairs are measured."""
BISECTIONS = 100
"""Steps of the search for the level of the water."""
GRADIENT_SHARE = 0.8
"""Of the budget, that gradients are taken to have."""
DECADES, CLEAR_FROM = 3, 0.4
"""Signal to noise counts as high from 10 to the power of the first on, as low below the second on a scale of 0 to 1."""
TINY = 1e-9


def time_blocks(unit_t: FloatArray) -> IntArray:
    """Block of each point of a grid on [0, 1]: equal parts of four points or more on an even grid; shape (T,)."""
    count = min(max(unit_t.size // LEAST_IN_BLOCK, 1), MOST_BLOCKS)
    return np.asarray(np.minimum((unit_t * count).astype(np.int64), count - 1))


def water_fill(
    noise: float, feature_scale: FloatArray, output_shares: FloatArray, gradient_shares: FloatArray | None = None
) -> FloatArray:
    """Budget of each pair (feature j, output k): ``p_jk = (L sqrt(λ_k) - noise/τ_j²)_+`` with ``Σ p = 1``.

    It minimises the expected loss ``Σ λ_k τ_j² / (1 + τ_j² p_jk / noise)``; pairs not worth their noise get nothing.

    Parameters
    ----------
    noise : float
    feature_scale : ndarray of shape (d,)
        Prior variances τ².
    output_shares : ndarray of shape (K,)
        Prior shares λ.
    gradient_shares : ndarray of shape (d, K), optional
        Energy γ of what is released of each pair; default λ. Then ``p_jk = (L sqrt(γ_jk) - noise γ_jk/(λ_k τ_j²))_+``.

    Returns
    -------
    ndarray of shape (d, K)
    """
    cost = noise / feature_scale[:, None]
    gain = np.sqrt(output_shares)[None]
    if gradient_shares is not None:
        cost, gain = cost * gradient_shares / output_shares, np.sqrt(gradient_shares)
    low, high = 0.0, (1 + cost.max()) / gain.min()
    for _ in range(BISECTIONS):
        level = (low + high) / 2
        if np.maximum(level * gain - cost, 0).sum() > 1:
            high = level
        else:
            low = level
    return np.asarray(np.maximum(high * gain - cost, 0))


def make_plan(
    n: float,
    noise_multiplier: float,
    design: PrivateDesign,
    *,
    pure: bool,
    tuning: Tuning | None = None,
) -> Plan:
    """Plan a fit of `n` persons.

    Parameters
    ----------
    n : float
        Declared number of persons, or the released one.
    noise_multiplier : float
        Sd of the noise of a sum of sensitivity 1 that spends the whole budget: 1/μ, or ``sqrt(2)/ε``.
    design : PrivateDesign
    pure : bool
    tuning : Tuning, optional
        Default: `GAUSSIAN`, or `PURE`.

    Notes
    -----
    M columns of curves have a share of 1/M each of what one would have.

    An auxiliary release gets the smallest share that reaches its target accuracy, capped; it is left out where even the
    cap would not make it useful. Constants as measured on simulators (see docs/decisions).
    """
    tuning = tuning or (PURE if pure else GAUSSIAN)
    eta, m = noise_multiplier / n, design.response_shares.size
    rounds = tuning.rounds_at(eta)
    located = design.located
    shares, y_range = _auxiliary(eta, design, tuning, located, pure=pure)
    sizes = _sizes(eta, rounds, design, tuning, pure=pure)
    d, pairs = sizes["weights"].shape[0], int((sizes["weights"] > 0).sum())
    curves = sum(share for key, share in shares.items() if key.startswith("x "))
    rest = 1 - sum(shares.values()) - shares["gradient scale"] * (rounds - 1) - curves * (len(located.curves) - 1)
    mean_cost = math.sqrt(tuning.mean_weight * m * tuning.mean_cost)
    slope_cost = math.sqrt(d * pairs * tuning.slope_cost)
    wanted = max(tuning.mean_least, (math.sqrt(m) * 2 * eta / tuning.mean_target) ** 2)
    shares["y mean"] = min(rest * mean_cost / (mean_cost + slope_cost), wanted)
    shares["gradient"] = (rest - shares["y mean"]) / rounds
    return Plan(
        n=n,
        pure=pure,
        eta=eta,
        budget_shares=shares,
        rounds=rounds,
        y_range=y_range,
        tuning=tuning,
        located=located,
        **sizes,
    )


def replanned(plan: Plan, design: PrivateDesign) -> Plan:
    """The plan with what is measured in other coordinates; shares stay as they are."""
    return replace(plan, **_sizes(plan.eta, plan.rounds, design, plan.tuning, pure=plan.pure))


def _sizes(eta: float, rounds: int, design: PrivateDesign, tuning: Tuning, *, pure: bool) -> dict[str, Any]:
    """What of a plan depends on the coordinates: weights of pairs, and clips."""
    weights = _weights(eta, rounds, design, tuning, pure=pure)
    d, pairs = weights.shape[0], int((weights > 0).sum())
    difficulty = math.sqrt(pairs * d) * eta
    signal_to_noise = float(np.clip(-math.log10(max(difficulty, TINY)), 0, DECADES)) / DECADES
    clear = float(np.clip((signal_to_noise - CLEAR_FROM) / (1 - CLEAR_FROM), 0, 1))
    return {
        "weights": weights,
        "clip_factor": tuning.clip_noisy + tuning.clip_more * clear,
        "feature_clip": tuning.feature_clip * math.sqrt(d - 1),
        "signal_to_noise": signal_to_noise,
    }


def _auxiliary(
    eta: float, design: PrivateDesign, tuning: Tuning, located: Located, *, pure: bool
) -> tuple[dict[str, float], float]:
    """Shares of all releases but the gradients and the mean of Y; factor within which the size of Y is looked for."""

    def size(of: Size) -> float:
        return of.share(of.reach * eta, pure=pure)

    def level(of: Aux) -> float:
        return of.share(tuning.size_clip * eta, pure=pure)

    m, q = len(located.curves), len(located.numbers)
    one = tuning.each_of(m)
    shares = {"x rms": size(one.x_rms) if m else 0.0}
    shares["x location"] = level(one.x_location) if shares["x rms"] else 0.0
    shares["x scale"] = size(one.x_scale) if shares["x rms"] else 0.0
    shares["x centre"] = level(one.x_centre) if shares["x scale"] else 0.0
    shares["x size"] = shares["x scale"] if shares["x centre"] else 0.0
    if q:
        shares["scalars"] = tuning.numbers.scaled(q).share(norm_of_numbers(q, pure=pure) * eta, pure=pure)
        places = tuning.places.scaled(q).share(norm_of(q, pure=pure) * eta, pure=pure)
        each = places if shares["scalars"] else 0.0
        shares |= {"places": each, "places again": each}
    y_rms = tuning.y_rms if size(tuning.y_rms) else replace(tuning.y_rms, below=tuning.y_range_if_dear)
    shares["y rms"] = size(y_rms)
    shares["y location"] = level(tuning.y_location)
    shares["y scale"] = size(tuning.y_scale) if shares["y location"] else 0.0
    shares["y spread"] = size(tuning.y_spread)
    shares["outside"] = tuning.outside.share((1.0 if pure else math.sqrt(0.5)) * eta, pure=pure)
    shares["gradient scale"] = size(tuning.gradient_scale)
    shares["residual scale"] = size(tuning.residual_scale)
    shares["level"] = tuning.level.share(eta, pure=pure)
    shares["residual"] = tuning.residual.share(eta, pure=False)
    blocks = int(time_blocks(design.unit_t)[-1]) + 1
    reach = 0.5 * math.log(SPREADS[1] / SPREADS[0]) * (blocks if pure else math.sqrt(blocks))
    shares["residual profile"] = tuning.residual_profile.share(reach * eta, pure=pure) if blocks > 1 else 0.0
    shares["calibration"] = tuning.calibration.share(eta, pure=False)
    return shares, y_rms.below


def norm_of_numbers(q: int, *, pure: bool) -> float:
    """Largest norm of q numbers on [-1, 1] and their squares less 1/3: L1 where pure, else L2."""
    square = 1 - UNIFORM_VARIANCE
    return q * (1 + square) if pure else math.sqrt(q * (1 + square**2))


def _weights(eta: float, rounds: int, design: PrivateDesign, tuning: Tuning, *, pure: bool) -> FloatArray:
    """Weights (D, K) of pairs of feature and output in the gradients: what each is worth at this noise."""
    flat = design.feature_shares**tuning.fall_off
    feature_scale = np.concatenate(([flat[0]], flat)) / flat.sum()  # the intercept as large as the largest
    output_shares = design.response_shares
    noise = ((rounds * eta) ** 2 / 2 if pure else tuning.water_noise * eta**2 / GRADIENT_SHARE) / tuning.planned_signal
    if design.shares_of_pairs is not None:
        return _weights_of_pairs(noise, feature_scale, output_shares, design.shares_of_pairs, pure=pure)
    if pure:  # the rounds share ε linearly, and each is to be good for something by itself
        return rank_one_weights(noise, feature_scale, output_shares)
    filled = water_fill(noise, feature_scale, output_shares)
    k = max(1, int((filled.sum(axis=0) > 0).sum()))
    d = max(2, int((filled[:, 0] > 0).sum()))
    filled = filled[:d, :k]
    filled[0] = np.maximum(filled[0], filled[0, 0] * tuning.intercept_floor)
    weights = np.sqrt(filled / output_shares[:k])
    return np.asarray(weights / weights.max())


def _weights_of_pairs(
    noise: float, feature_scale: FloatArray, output_shares: FloatArray, gradient_shares: FloatArray, *, pure: bool
) -> FloatArray:
    """Weights (D, K) of pairs that are released as one vector; 0 of those not worth their noise.

    In pure ε the noise in P numbers of bounded L2 norm has P + 1 times the variance of Laplace noise in one, over 2.
    """
    filled = np.ones(gradient_shares.shape)
    for _ in range(COUNTS if pure else 1):
        own = noise * ((filled > 0).sum() + 1) if pure else noise
        filled = water_fill(own, feature_scale, output_shares, gradient_shares)
    d, k = (int(np.flatnonzero((filled > 0).any(axis=1 - axis)).max()) + 1 for axis in (0, 1))
    weights = np.sqrt(filled[:d, :k] / gradient_shares[:d, :k])
    return np.asarray(weights / weights.max())
