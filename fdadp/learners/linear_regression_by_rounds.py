"""Linear regression by rounds: places and sizes first, then one second moment, then gradients on residuals.

A row that is longer than some sizes is shortened whole, its constant and its target with it. So the fit is least
squares with weights that depend on features alone, of which the solution is that of the linear model wherever rows are
shortened: no wall is needed against heavy tails, and each row adds a bounded amount (docs/theory/rounds.md).

Sources: Vu & Slavkovic (2009), doi:10.1109/ICDMW.2009.52 (sufficient statistics); Tang et al. (2024), arXiv:2310.09647
(boosting on residuals after a private second moment); Mallows (1975) (weights by features).
"""

from __future__ import annotations

import math

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.learners.coefficient_intervals import Equations
from fdadp.learners.shared._declared_vs_released import Doubts
from fdadp.learners.shared.noisy_second_moments import (
    CLIP,
    RowMoments,
    believed_moment,
    posterior_coefficients,
    release_moments,
)
from fdadp.learners.shared.public_inputs import UnitRows
from fdadp.privacy import Cohort, rowwise_matmul, rowwise_norm
from fdadp.privacy.rows._sealed_row_functions import RowFunction, Rows
from fdadp.rounds.budget_plan import ROUNDS, PlacesPlan, RoundsPlan
from fdadp.rounds.clips_for_tails import Clips, find_clips
from fdadp.rounds.location_scale_histograms import CELLS, Places, find_places, reach
from fdadp.rounds.posterior_means import gaussian_update

LONGEST = 1.0
"""Length of a row from which on it is shortened, in sizes times √d."""
OF_ROWS = 1.8
"""Squared error of predictions over that of coefficients of rows of length 1."""
START = 0.12
"""Where the histogram of residuals starts, in units of the target's clip."""
KEPT = 0.97
"""Of a gradient, what its clip leaves."""


class PlacedRows(UnitRows):
    """The map x -> (s, b0)/√(1 + b0²), s = (x - at)/(R size), with walls instead of a ball; public, and row-local.

    Parameters
    ----------
    bottom, top : ndarray of shape (d,)
        Walls.
    at, size : ndarray of shape (d,)
        Released places and sizes.
    intercept : float
        b0.
    """

    def __init__(self, bottom: FloatArray, top: FloatArray, at: FloatArray, size: FloatArray, intercept: float) -> None:
        super().__init__(len(at), bounds=(bottom, top), intercept=intercept)
        self.bottom, self.top = bottom, top
        self.center, self.scale = at, LONGEST * math.sqrt(len(at)) * size

    def whole(self, x: FloatArray) -> FloatArray:
        """Rows (m, d) as vectors (m, d + 1) of any length; a row that is not finite stays so."""
        s = (self.inside(x) + 0.0 * x - self.center) / self.scale
        return np.concatenate((s, np.full((len(s), 1), self.intercept)), axis=1) / self.length

    def weight(self, x: FloatArray) -> FloatArray:
        """What a row is multiplied by, (m, 1), so that its features are no longer than 1."""
        norm: FloatArray = rowwise_norm(self.whole(x)[:, :-1] * self.length)
        return np.asarray(1.0 / np.maximum(1.0, norm))[:, None]

    def __call__(self, x: FloatArray) -> FloatArray:
        """Rows (m, d) as vectors (m, d + 1) of norm at most 1, the constant shortened with the features."""
        return np.asarray(self.whole(x) * self.weight(x))

    def inside(self, x: FloatArray) -> FloatArray:
        """Rows (m, d) moved to their walls."""
        return np.asarray(np.clip(x, self.bottom, self.top))


class LinearRounds:
    """A fit by rounds: row functions, each of a row, public values and what was released before; and what was released.

    Parameters
    ----------
    d : int
    low, high : ndarray of shape (d + q,)
        Public ranges of features, then of targets.

    Attributes
    ----------
    encode : PlacedRows
    places : Places
        Of features and targets.
    middle, unit : ndarray of shape (q,)
        Targets are in units of `unit` about `middle`.
    moments : RowMoments
    theta : ndarray of shape (d + 1, q)
        Coefficients of encoded rows.
    equations : tuple of Equations
        One for each target.
    """

    encode: PlacedRows
    places: Places
    middle: FloatArray
    unit: FloatArray
    moments: RowMoments
    theta: FloatArray
    equations: tuple[Equations, ...]

    def __init__(self, d: int, low: FloatArray, high: FloatArray) -> None:
        self.d, self.low, self.high = d, low, high

    def values(self, rows: Rows) -> FloatArray:
        """Features and targets side by side, within their ranges, (m, d + q)."""
        both = np.concatenate((rows[0], rows[1].reshape(len(rows[0]), -1)), axis=1)
        return np.asarray(np.clip(both, self.low, self.high) + 0.0 * both)

    def features(self, rows: Rows) -> FloatArray:
        """Features within their ranges, (m, d); NaN where a target is not finite."""
        both = self.values(rows)
        out: FloatArray = both[:, : self.d] + 0.0 * both.sum(axis=1, keepdims=True)
        return out

    def placed(self, rows: Rows) -> FloatArray:
        """Targets about their places, shortened with their row; (m, q)."""
        return np.asarray((self.values(rows)[:, self.d :] - self.middle) * self.encode.weight(rows[0]))

    def pair(self, rows: Rows) -> FloatArray:
        """Features and targets of norm 1 at most each, (m, d + 1 + q)."""
        t = np.clip(self.placed(rows) / self.unit, -1.0, 1.0) / math.sqrt(len(self.unit))
        return np.concatenate((self.encode(rows[0]), t), axis=1)

    def residuals(self, theta: FloatArray) -> RowFunction:
        """Residuals in units of the targets, shortened with their row; (m, q)."""
        return lambda rows: np.asarray(self.placed(rows) / self.unit - rowwise_matmul(self.encode(rows[0]), theta))


def placed_rows(
    cohort: Cohort,
    plan: PlacesPlan,
    values: RowFunction,
    features: RowFunction,
    low: FloatArray,
    high: FloatArray,
    intercept: float,
) -> tuple[PlacedRows, Places]:
    """Release where columns are, and what is far out of the features; the map of rows, and the places.

    Parameters
    ----------
    cohort : Cohort
    plan : PlacesPlan
    values, features : callable
        Row functions: all columns (m, d + q), and the first d of them, within their ranges.
    low, high : ndarray of shape (d + q,)
    intercept : float
        b0.
    """
    n, d = plan.n, plan.features
    places = find_places(cohort, values, low, high, n=n, shares=[plan.counts] * len(CELLS))
    size, bottom, top = reach(cohort, features, low[:d], high[:d], places.first(d), n=n, share=plan.distances)
    return PlacedRows(bottom, top, places.at[:d], size, intercept), places


def fit_rounds(cohort: Cohort, plan: RoundsPlan, low: FloatArray, high: FloatArray, intercept: float) -> LinearRounds:
    """Spend the budget of a cohort as planned.

    Parameters
    ----------
    cohort : Cohort
        Over features (n, d) and targets (n, q) or (n,).
    plan : RoundsPlan
    low, high : ndarray of shape (d + q,)
        Public ranges of features, then of targets.
    intercept : float
        b0 of :class:`PlacedRows`.
    """
    n, d, q = plan.n, plan.features, plan.targets
    rows = LinearRounds(d, low, high)
    rows.encode, rows.places = placed_rows(cohort, plan, rows.values, rows.features, low, high, intercept)
    rows.middle = rows.places.at[d:]
    loud = math.sqrt(OF_ROWS * q) * (d + 1)
    rows.unit = find_clips(
        cohort,
        rows.placed,
        2 * rows.places.size[d:],
        high[d:] - low[d:],
        n=n,
        noise=CLIP * loud * plan.noise_at(plan.moments),
        share=plan.tail,
        name="tail of targets",
    ).at

    rows.moments = release_moments(cohort, rows.pair, d + 1, q, share=plan.moments)
    _rounds(cohort, plan, rows, loud)
    return rows


def _rounds(cohort: Cohort, plan: RoundsPlan, rows: LinearRounds, loud: float) -> None:
    """Coefficients by the second moment and gradients, and noisy equations of each target."""
    q, moments = plan.targets, rows.moments
    A = believed_moment(moments)
    believed = [posterior_coefficients(moments, A, k) for k in range(q)]
    theta = np.stack([mean for mean, _ in believed], axis=1) * math.sqrt(q)
    covariance = [one * q for _, one in believed]
    released: list[tuple[FloatArray, FloatArray, FloatArray]] = []
    for t in range(ROUNDS):
        residuals = rows.residuals(theta.copy())
        clips = find_clips(
            cohort,
            residuals,
            np.full(q, START),
            1 + np.abs(theta).sum(axis=0),
            n=plan.n,
            noise=loud * plan.noise_at(plan.gradient),
            share=plan.tail,
            name=f"tail of residuals {t + 1}",
        )
        gradient, sd = _gradient(cohort, rows.encode, residuals, clips, plan.gradient, f"gradient {t + 1}")
        released.append((theta, gradient, sd))
        moved = [gaussian_update(theta[:, k], covariance[k], gradient[:, k], A, float(sd[k])) for k in range(q)]
        theta, covariance = np.stack([one[0] for one in moved], axis=1), [one[1] for one in moved]
    rows.theta, rows.equations = theta, tuple(_equations(moments, released, clips.square, k) for k in range(q))


def _gradient(
    cohort: Cohort, encode: PlacedRows, residuals: RowFunction, clips: Clips, share: float, name: str
) -> tuple[FloatArray, FloatArray]:
    """Released Σ z r' (d + 1, q), r clipped, and the sds (q,) of its noise.

    *Sensitivity.* |z| <= 1 and the q residuals over their clips are divided by √q: the outer product has Frobenius and
    nuclear norm 1 at most.
    """
    root = math.sqrt(len(clips.at))

    def factors(rows: Rows) -> tuple[FloatArray, FloatArray]:
        return encode(rows[0]), np.clip(residuals(rows) / clips.at, -1.0, 1.0) / root

    norm = "nuclear" if cohort.pure else None
    value, sd = cohort.sum_outer(factors, clip=1.0, norm=norm, share=share, name=name)
    scale = clips.at * root / KEPT
    return value * scale, sd * scale


def _equations(
    m: RowMoments, released: list[tuple[FloatArray, FloatArray, FloatArray]], square: FloatArray, k: int
) -> Equations:
    """Noisy normal equations of target k: the mean of those of all rounds, each by the inverse of its noise.

    That of a round is g = A (θ - θ_t) + noise, θ_t what the gradient was taken at; a mean of them is of the same form
    at the mean of the θ_t. The noise on A acts on the last step alone.
    """
    weights = np.array([1 / sd[k] ** 2 for _, _, sd in released])
    weights = weights / weights.sum()
    score = sum(w * g[:, k] for w, (_, g, _) in zip(weights, released, strict=True))
    at = sum(w * theta[:, k] for w, (theta, _, _) in zip(weights, released, strict=True))
    noise = math.sqrt(sum((w * float(sd[k])) ** 2 for w, (_, _, sd) in zip(weights, released, strict=True)))
    return Equations(m.gram, np.asarray(score), np.asarray(at), float(square[k]), m.sd_off, noise)


def doubts_of_rounds(cohort: Cohort, m: RowMoments, places: Places, names: list[str], b0: float) -> tuple[str, ...]:
    """What places and moments say against what was declared: too few rows, places that cannot be told.

    Parameters
    ----------
    cohort : Cohort
    m : RowMoments
        Of placed rows, the constant last.
    places : Places
        Of columns with these names.
    names : list of str
    b0 : float
        Intercept of :class:`PlacedRows`.
    """
    doubts = Doubts(cohort, 1 + len(names))
    per_row = b0**2 / (1 + b0**2)
    used = doubts.rows(float(m.gram[-1, -1]) / per_row, m.sd / per_row, m.in_noise)
    if used or not doubts.said:
        doubts.placed(names, places.still, places.unsure)
    return doubts.said
