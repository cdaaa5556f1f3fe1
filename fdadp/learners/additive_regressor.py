"""Private additive regression: a function of each feature, fitted in turn from noisy sums of residuals in public bins.

What is released are sums of clipped residuals, with noise of a known law. What a function of a feature is, given all
sums that were released of it, is then a posterior mean: under a public prior of straight lines and of functions that
move little by little, whose sizes the sums themselves tell.

Sources: Nori et al. (2021), arXiv:2106.09680 (private additive models by turns of the features); Wahba (1990),
doi:10.1137/1.9781611970128 (smoothing splines as posterior means, for a line and a Brownian path).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from fdadp._common.argument_checks import flag, fraction, whole
from fdadp._common.typing import ArrayLike, FloatArray, IntArray
from fdadp.learners.shared._declared_vs_released import Doubts
from fdadp.learners.shared._estimator_base import PrivateRegressor
from fdadp.learners.shared._public_bins import Binned, Bins, in_bins, totals
from fdadp.learners.shared.public_encoding import Categorical, Numeric
from fdadp.learners.shared.public_inputs import UnitTarget, one_target, positive
from fdadp.privacy import Cohort
from fdadp.privacy.account.epsilon_mu_rho import unit_noise
from fdadp.privacy.rows._sealed_row_functions import RowFunction, Rows
from fdadp.rounds.budget_plan import PlacesPlan, counted_persons
from fdadp.rounds.narrowed_ranges import narrowed_ranges
from fdadp.rounds.posterior_means import above_zero, empirical_bayes, posterior

_GROWTH = 2.0
"""Of the shares of the budget from pass to pass."""
_MOST_PASSES = 16
"""The first of more would have a share that buys nothing."""
_FAR = 3.0
"""Sds of noise that a believed count may be away from the released one: one bin may hold nearly all rows."""
_SQUARES = 0.5
"""Weight of the targets' squares in the first release: they tell the clip, roughly."""
_MEAN = 0.3
"""Largest variance that is believed in public of the targets' mean, whose range is [-1, 1]."""
_LINES = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0)
_PATHS = (0.0, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
"""Variances that are believed in evenly of the linear part of a feature's function and of the rest, in units of the
targets' variance."""
_VARIANCES = np.geomspace(1e-6, 1.0, 80)
_BELIEVED = np.where(_VARIANCES <= 1 / 3, 1.0, 0.01)
"""Of the target in [-1, 1], and how much they are believed in: hardly, beyond that of a target spread evenly."""
_LEAST = 0.1
"""Share of the target's variance that no function explains, at least."""
_LOUDEST = 0.025
"""Noise on a cell up to which narrowing is the default: beyond, ranges that fit would lose more than .005 of R²."""
_RANK = 40
"""Of the rest: so many of the leading functions."""


@dataclass(kw_only=True, eq=False, repr=False)
class DPAdditiveRegressor(PrivateRegressor, Binned):
    """Additive regression of one target on public bins: an intercept and a function of each feature, of any shape.

    The first choice for four features or more with a δ and 1,000 rows times ε; else, and for straight lines, take
    :class:`DPLinearRegression`. Features that act on the target only together are for :class:`DPForestRegressor`.

    Parameters
    ----------
    epsilon, delta, n, adjacency, unit, labels, budget, dataset, random_state, study, purpose
        The guarantee: the parameters of :class:`fdadp.Privacy`. With a δ the noise is several times smaller.
    features : mapping of name to Numeric or Categorical, sequence of them, or one of them
        Public; one holds for all columns. Values beyond a Numeric's range are moved to its ends; a row with a missing
        value counts as no row. A Numeric without edges gets 38 cuts of its range, half of them on a logarithmic scale.
    bounds, data_norm, center
        Instead of ``features``, where all are numbers; as of :class:`DPBoostedStumps`.
    bounds_y : (low, high)
        Public range of the target; targets, and predictions, are moved to it.
    n_passes : int
        How often each feature has its turn, at most 16 times; each pass has twice the budget of the one before.
    count_share : float
        Share of the budget for the numbers of rows in the bins, and the mean and the variance of the target.
    narrow : bool, optional
        Whether ranges of the target, and of numbers without edges, are first narrowed to where values are, for at most
        8 % of the budget: bounds may be thousands of times too wide. Default: where n is declared and it costs little,
        by public numbers (six features, ε = 1, with δ = 1e-6 from about 3,700 rows on, pure 20,000). From n ε of 500 on
        with a δ it can be asked for; a private n is then released first.
    residual_clip : float
        Residuals are moved to so many standard deviations of the target (as released) about 0. A smaller one has less
        noise. A larger one has less bias where errors are skewed.

    Attributes
    ----------
    intercept_ : float
        Prediction where all functions are 0, in the target's units.
    scores_ : ndarray of shape (number of bins,)
        The functions, in the target's units: bins of the first feature, then of the second, and so on. The mean of each
        over the rows is about 0.
    bin_counts_ : ndarray of shape (number of bins,)
        As released, with noise.
    walls_, walls_y_ : ndarray of shape (2, d) and (2,)
        Of fits that narrow: ranges of features and target, to which values are moved. NaN for labels.
    ledger_, privacy_spent_

    Notes
    -----
    *Proof* (``docs/theory/learners.md#additive-regression``). Narrowing: one cell or bin of each column in each of four
    counts. Then a row with the target t in [-1, 1] adds w to one bin of each of d features, √2 u and √2 (1 - u) with u
    = (1 + t)/2, and t²/2. Nothing is negative. The L2 norm is at most √(d w² + 2.25) and the L1 norm at most d w + √2 +
    1/2, with w = d^(-1/4), and with pure ε d^(-1/2). Then, given the model so far (released), a row adds its residual,
    moved to [-c, c], to one bin of the feature whose turn it is. The sensitivity is c, or 2 c where a person is
    replaced. c is computed from what was released. Turns compose adaptively.

    *Functions.* All sums of residuals of a feature, each with what its function explained at that time put back, tell
    the function: total = counts · function + noise, with noise of residuals and for privacy. The prior is a line and a
    Brownian path; of labels independent effects. Each has a variance among public ones, which the totals weigh by their
    marginal likelihood. Turns also tell the intercept, by the sum of all bins. All of it is post-processing.

    *Missing values.* In prediction the function of a missing value is 0.

    Examples
    --------
    >>> import numpy as np
    >>> from fdadp.learners import DPAdditiveRegressor, Numeric
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 10, (5000, 2))
    >>> y = np.abs(X[:, 0] - 5) + np.sqrt(X[:, 1]) + 0.5 * rng.normal(size=5000)
    >>> model = DPAdditiveRegressor(epsilon=1.0, delta=1e-6, features=Numeric(0, 10), bounds_y=(-2, 10), random_state=0)
    >>> bool(model.fit(X, y).score(X, y) > 0.85)
    True
    """

    bounds_y: Any = None
    n_passes: int = 4
    count_share: float = 0.2
    residual_clip: float = 1.5
    narrow: bool | None = None
    intercept_: float = field(init=False)
    bin_counts_: FloatArray = field(init=False)
    walls_: FloatArray = field(init=False)
    walls_y_: FloatArray = field(init=False)

    def _learn(self, X: Any, y: Any, groups: ArrayLike | None) -> Cohort:
        """Counts of rows in the bins with moments of the target, then feature after feature its residual sums."""
        if self.narrow is not None:
            flag(self.narrow, "narrow")
        passes = whole(self.n_passes, "n_passes", most=_MOST_PASSES)
        fraction(self.count_share, "count_share")
        clips = positive(self.residual_clip, "residual_clip")
        scale = UnitTarget(self.bounds_y)
        one_target(y)
        cohort, bins = self._start(X, y, groups, bounds_y=self.bounds_y)
        said: tuple[str, ...] = ()
        left = 1.0
        plan = _plan(cohort, bins, self.narrow, self.epsilon)
        if plan is not None:
            (bins, scale, said), left = _narrowed(cohort, bins, scale, plan), plan.rest
        binned = bins.of(cohort)
        d, starts = len(bins.sizes), bins.starts
        counts, noise, target = _first(binned, starts, scale, self.count_share * left)
        functions = [
            _FeatureFunction(spec, counts[a:b], noise, target.rows)
            for spec, (a, b) in zip(bins.specs, itertools.pairwise(starts), strict=True)
        ]
        clip = min(clips * math.sqrt(target.variance), 2.0)
        scores = np.zeros(bins.total)
        weights = _GROWTH ** np.arange(passes)
        for turn, j in np.ndindex(passes, d):
            total, sd = binned.sum(
                _residuals(starts, scores, target.mean, j, scale),
                clip=clip,
                share=left * (1 - self.count_share) * float(weights[turn] / weights.sum()) / d,
                name=f"pass {turn + 1}: residuals by {bins.names[j]}",
            )
            target, moved = target.shifted(float(total.sum()), len(total) * sd**2)
            explained = sum(each.variance for each in functions)
            own = functions[j]
            own.learn(total - moved * own.counts, sd**2, target.variance, explained)
            scores[starts[j] : starts[j + 1]] = own.scores
        doubts = Doubts(cohort, 1 + d)
        doubts.bins(bins.names, starts, bins.ordered, counts, noise)
        self.doubts_ = said + doubts.said
        if plan is not None:
            ends = [(s.low, s.high) if isinstance(s, Numeric) else (math.nan, math.nan) for s in bins.specs]
            self.walls_, self.walls_y_ = np.array(ends, dtype=np.float64).T, np.array([scale.low, scale.high])
        self._bins, self._scale, self.bin_counts_ = bins, scale, counts
        self.intercept_ = scale.middle + scale.half * target.mean
        self.scores_ = scale.half * scores
        return cohort

    def predict(self, X: Any) -> FloatArray:
        """Targets, shape (m,), within ``bounds_y``."""
        codes = self._codes(X)
        return self._scale.inside(self.intercept_ + self._bins.scores(codes, self.scores_))


def _plan(cohort: Cohort, bins: Bins, wanted: bool | None, epsilon: float) -> PlacesPlan | None:
    """Shares of what ranges are narrowed by; None where they stay as declared."""
    if wanted is False or (wanted is None and cohort.n is None):
        return None
    n, left = counted_persons(cohort)
    plan = PlacesPlan(n, len(bins.free) + 1, 0, unit_noise(cohort, 1.0) / n, cohort.pure, left)
    return plan if wanted or plan.worth(epsilon, _LOUDEST) else None


def _narrowed(
    cohort: Cohort, bins: Bins, scale: UnitTarget, plan: PlacesPlan
) -> tuple[Bins, UnitTarget, tuple[str, ...]]:
    """Release where free numbers and the target are; bins and the target's map in those ranges, and doubts."""
    free = list(bins.free)
    low, high = np.array([*bins.free.values(), (scale.low, scale.high)], dtype=np.float64).T

    def values(rows: Rows) -> FloatArray:
        y = rows[1].reshape(len(rows[1]), 1)
        both = np.clip(np.concatenate((rows[0][:, free], y), axis=1), low, high)
        return np.asarray(both + 0.0 * (bins.codes(rows[0]).sum(axis=1, keepdims=True) + y))

    found = narrowed_ranges(cohort, values, low, high, plan)
    doubts = Doubts(cohort, len(low))
    doubts.placed([*(bins.names[j] for j in free), "y"], found.places.still, found.places.unsure)
    target = UnitTarget((found.low[-1], found.high[-1]))
    return bins.within(found.low[:-1], found.high[:-1]), target, doubts.said


class _Target(NamedTuple):
    """What is believed of the target in [-1, 1] and of the number of rows: ``uncertain`` is the mean's variance."""

    rows: float
    mean: float
    uncertain: float
    variance: float

    def shifted(self, total: float, noise: float) -> tuple[_Target, float]:
        """After a sum of all residuals with noise of this variance; and by how much the mean moved."""
        moved, left = posterior(total / self.rows, noise / self.rows**2, 0.0, self.uncertain)
        return self._replace(mean=self.mean + float(moved), uncertain=float(left)), float(moved)


def _first(binned: Cohort, starts: IntArray, scale: UnitTarget, share: float) -> tuple[FloatArray, float, _Target]:
    """Release rows in the bins (total,), and Σ 1, Σ t, Σ t² in nonnegative parts; counts, their sd, the target."""
    d = len(starts) - 1
    weight = d ** (-0.5 if binned.pure else -0.25)

    def first(rows: Rows) -> FloatArray:
        t = scale(rows[1])[:, None]
        u = (1 + t) / 2
        counts = in_bins(weight + 0 * t, rows[0], starts)
        return np.concatenate([counts, math.sqrt(2) * u, math.sqrt(2) * (1 - u), _SQUARES * t**2], axis=1)

    linear, squared = d * weight + math.sqrt(2) + _SQUARES, d * weight**2 + 2 + _SQUARES**2
    clip = linear if binned.pure else math.sqrt(squared)
    value, sd = binned.sum(first, clip=clip, share=share, name="rows in the bins, and the target", nonnegative=True)
    up, down, squares = value[-3:].tolist()
    rows = max(float(above_zero((up + down) / math.sqrt(2), sd**2)), 1.0)
    found, noise = (up - down) / math.sqrt(2) / rows, (sd / rows) ** 2
    mean, uncertain = empirical_bayes(found, noise, 0.0, _MEAN)
    mean = np.clip(mean, -1.0, 1.0)
    law = (squares / _SQUARES / rows - mean**2 - _VARIANCES) / (sd / _SQUARES / rows)
    likely = _BELIEVED * np.exp(-0.5 * (law**2 - (law**2).min()))
    variance = float(likely @ _VARIANCES / likely.sum())
    return value[:-3] / weight, sd / weight, _Target(rows, float(mean), float(uncertain), variance)


def _residuals(starts: IntArray, scores: FloatArray, mean: float, feature: int, scale: UnitTarget) -> RowFunction:
    """Row function: the residual of each row in its bin of a feature, (m, bins)."""
    ends = np.array([0, starts[feature + 1] - starts[feature]])

    def residuals(rows: Rows) -> FloatArray:
        left = scale(rows[1]) - (mean + totals(rows[0], starts, scores))
        return np.asarray(in_bins(left[:, None], rows[0][:, [feature]], ends))

    return residuals


class _FeatureFunction:
    """What is believed of one feature's function of its bins, in units of the target in [-1, 1].

    Parameters
    ----------
    spec : Numeric or Categorical
        With its bins.
    counts : ndarray of shape (bins,)
        As released, with noise of standard deviation `sd`.
    rows : float
        In all bins, about.

    Attributes
    ----------
    counts : ndarray of shape (bins,)
        Expected given those released: about shares of the range before, with a spread that the release tells, and
        within three sds of the noise of what was released (limited translation, Efron & Morris 1971).
    scores : ndarray of shape (bins,)
    variance : float
        Of the scores over the rows.
    """

    def __init__(self, spec: Numeric | Categorical, counts: FloatArray, sd: float, rows: float) -> None:
        width = _widths(spec)
        even = rows * width
        believed, _ = empirical_bayes(counts, sd**2, even, even * rows)
        believed = np.clip(believed, counts - _FAR * sd, counts + _FAR * sd)
        self.counts = np.maximum(believed, 0.0)
        self._shares = self.counts / max(float(self.counts.sum()), 1.0)
        self._basis, self._sizes = _prior(spec, width, self._shares)
        self.scores, self.variance = np.zeros(len(counts)), 0.0
        self._evidence, self._precision = np.zeros(len(counts)), 0.0

    def learn(self, total: FloatArray, noise: float, variance: float, explained: float) -> None:
        """Take a turn's residual sums (bins,) with noise of a variance; and the target's variance, all and explained.

        With D the prior variances of the coefficients of the basis B, and N those of what is not the function in a
        total, the posterior mean is B D^½ (1 + D^½ A D^½)⁻¹ D^½ b, A = B'CN⁻¹CB, b = B'CN⁻¹ total.
        """
        self._evidence += (total + self.counts * self.scores) / noise
        self._precision += 1 / noise
        errors = max(variance - explained, _LEAST * variance)
        weight = self.counts / (1 / self._precision + errors * self.counts)
        A = (self._basis.T * (self.counts * weight)) @ self._basis
        b = self._basis.T @ (weight * self._evidence / self._precision)
        root = np.sqrt(variance * self._sizes)
        inner = np.eye(len(b)) + root[:, :, None] * A * root[:, None, :]
        half = root * b
        solved = np.linalg.solve(inner, half[:, :, None])[:, :, 0]
        fit = 0.5 * (half * solved).sum(axis=1) - 0.5 * np.linalg.slogdet(inner)[1]
        likely = np.exp(fit - fit.max())
        function = self._basis @ (likely @ (root * solved) / likely.sum())
        self.scores = function - self._shares @ function
        self.variance = float(self._shares @ self.scores**2)


def _widths(spec: Numeric | Categorical) -> FloatArray:
    """Shares (bins,) of the range that bins have; of labels all the same."""
    if isinstance(spec, Categorical):
        return np.full(spec.n_bins, 1 / spec.n_bins)
    return np.diff(spec.scaled([spec.low, *spec.cuts, spec.high]))


def _prior(spec: Numeric | Categorical, width: FloatArray, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Functions (bins, r) whose coefficients are independent, and their variances (priors, r).

    Of numbers their means over rows are 0, where bins have these `shares` of rows: all else is the intercept's. A mean
    over the range is another one wherever most rows are near one end, and bins with few rows then make up for it.
    """
    if isinstance(spec, Categorical):
        return np.eye(len(width)), np.multiply.outer(_PATHS, np.ones(len(width)))
    at, centre = np.cumsum(width) - width / 2, np.eye(len(width)) - shares
    sizes, paths = np.linalg.eigh(centre @ np.minimum.outer(at, at) @ centre.T)
    sizes, paths = np.maximum(sizes[::-1][:_RANK], 0.0), paths[:, ::-1][:, :_RANK]
    basis = np.column_stack([math.sqrt(12) * (centre @ at), paths])
    grid = [np.append(line, 6 * path * sizes) for line in _LINES for path in _PATHS]
    return basis, np.array(grid)
