"""The releases of a private fit, made as planned: budget, name and clipping in one call."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.privacy import Cohort
from fdadp.privacy.clipped_shares import ReleasedShares, release_shares
from fdadp.privacy.rows._sealed_row_functions import RowFunction
from fdadp.private.denoise.empirical_bayes import level_and_spread, shrunk_coefficients, shrunk_scale, shrunk_shift
from fdadp.private.plan.budget_plan import Plan
from fdadp.private.plan.budget_sharing import norm_of_numbers
from fdadp.private.public.column_ranges import NUMBERS_HALF_WIDTH, REACH, UNIFORM_VARIANCE, CurvesColumn
from fdadp.private.rows.anchored_forecasts import MEAN, about_anchor, near_anchor
from fdadp.private.rows.curve_roughness import seen_curves, seen_response
from fdadp.private.rows.location_and_scale import CELLS, Counted, beyond, error_of_moments, part_about, settled
from fdadp.private.rows.row_functions import RowFunctions
from fdadp.rounds.location_scale_histograms import norm_of

TOGETHER = 2.0
"""Clip of the sum of a person's gradients over that of one row, per square root of the rows."""


def rows_together(max_rows: int) -> float:
    """Clip of a sum of a person's gradients over that of one row: rows have signs, and seldom all the same."""
    return 1.0 if max_rows == 1 else min(float(max_rows), TOGETHER * math.sqrt(max_rows))


@dataclass(frozen=True)
class Releases:
    """A cohort with a plan of what to ask it: each release has its share of the budget and its name from there.

    Where the rows of persons are added up, sums are per person of the released mean number of rows: over `plan.n` they
    are means over rows. A row adds at most what a clip says, and a person `plan.max_rows` times that.

    Where a method takes a `share`, it is that of the plan unless it is given; `of` is the column that is looked at.

    Parameters
    ----------
    cohort : Cohort
    plan : Plan
    """

    cohort: Cohort
    plan: Plan

    def affords(self, key: str) -> bool:
        """Whether the plan has a share for a release."""
        return bool(self.plan.budget_shares.get(key))

    def derive(self, rows: RowFunctions) -> Releases:
        """Ask further about features and residuals, which are computed now and kept inside the cohort."""
        return Releases(self.cohort.derive(rows.derived, name="features and response coefficients"), self.plan)

    def size(
        self,
        key: str,
        f: RowFunction,
        between: tuple[float, float],
        *,
        share: float | None = None,
        number: str = "",
        of: str | None = None,
    ) -> tuple[float, float]:
        """Geometric mean of a size that is looked for in a range, and the sd of the noise in its logarithm."""
        share = self.plan.budget_shares[key] if share is None else share
        return self.cohort.geometric_mean(
            f, *between, share=share, name=self.plan.name(key, of) + number, n=self.plan.n * self.plan.rows
        )

    def sum(
        self,
        key: str,
        f: RowFunction,
        *,
        clip: float,
        size: int = 1,
        share: float | None = None,
        of: str | None = None,
        number: str = "",
        nonnegative: bool = False,
    ) -> tuple[FloatArray, float]:
        """Sum over persons of a clipped vector, and the sd of the noise in each entry."""
        share = self.plan.budget_shares[key] if share is None else share
        most = clip * self.plan.max_rows
        name = self.plan.name(key, of) + number
        total, sd = self.cohort.sum(f, clip=most, size=size, share=share, name=name, nonnegative=nonnegative)
        return np.asarray(total) / self.plan.rows, float(sd) / self.plan.rows

    def mean(self, key: str, f: RowFunction, **how: Any) -> tuple[FloatArray, float]:
        """The same over persons: arguments are those of :meth:`sum`."""
        total, sd = self.sum(key, f, **how)
        return total / self.plan.n, sd / self.plan.n

    def sum_outer(
        self, key: str, f: RowFunction, *, weights: FloatArray | None = None, clip: float, number: str
    ) -> tuple[FloatArray, float]:
        """Sum over persons of clipped ``weights * outer(f)``, and the sd of the noise in each entry.

        In pure ε clipped in the nuclear norm, without weights.
        """
        share, name = self.plan.budget_shares[key], self.plan.name(key) + number
        norm = "nuclear" if self.plan.pure else None  # of which each row is clipped, else the sum of a person's rows
        most = clip if self.plan.pure else clip * rows_together(self.plan.max_rows)
        total, sd = self.cohort.sum_outer(f, weights=weights, norm=norm, clip=most, share=share, name=name)
        return np.asarray(total) / self.plan.rows, float(sd) / self.plan.rows

    def second_moment(
        self, key: str, f: RowFunction, *, clip: float, share: float | None = None
    ) -> tuple[FloatArray, float]:
        """Mean over persons of f f', clipped, and the sd of the noise on its diagonal."""
        share = self.plan.budget_shares[key] if share is None else share
        most = clip if self.plan.pure else clip * self.plan.max_rows
        total, sd = self.cohort.second_moment(f, clip=most, share=share, name=self.plan.name(key))
        n = self.plan.n * self.plan.rows
        return np.asarray(total / n), float(sd / n)

    def shares(self, key: str, f: RowFunction, *, size: int) -> ReleasedShares:
        """Means over persons of `size` quantities in [0, 1]."""
        n = self.plan.n * self.plan.rows
        return release_shares(
            self.cohort, f, n=n, share=self.plan.budget_shares[key], name=self.plan.name(key), size=size
        )

    def histogram(self, key: str, f: RowFunction, *, of: str | None = None) -> tuple[FloatArray, float]:
        """Number of persons in each bin, and the sd of the noise in it."""
        masses, sd = self.cohort.histogram(f, share=self.plan.budget_shares[key], name=self.plan.name(key, of))
        return np.asarray(masses) / self.plan.rows, float(sd) / self.plan.rows


# Where the curves are and how large: a public range is a hint of both, and these releases find them.
#
# Size about the middle of the range, then the level, then the size about that level: each step is clipped at what the
# step before released, so that a range which is too wide, or to one side of the curves, costs little
# (docs/theory/dp-aff.md#location).


X_PRIOR, Y_PRIOR = 0.36, 1.0
"""Variances of the logarithms of the sizes of X and Y about their public guesses."""
FAR, FAR_BEYOND, MOST_PLACES = 0.3, 0.6, 3
"""Scale of Y about its released level over that before, below which Y is looked for again; how often at most."""
Y_GUESS = 3.75
"""Half-width of the public range of Y over the size that Y is guessed to have."""
NUMBERS_PRIOR, LEAST_VARIANCE = 0.09, 0.005
"""Prior variance of the variance of a number on [-1, 1] about that of a uniform law; its least value."""
TOO_WIDE = 0.75
"""Sds of its noise by which a spread that is looked for once is taken smaller: curves thought too wide cost more."""
LEAST_SPREAD = 0.3
"""Spread of X over its root mean square about another point, at least."""


def start_regression(
    cohort: Cohort, plan: Plan, rows: RowFunctions
) -> tuple[Releases, FloatArray, FloatArray, float, ReleasedShares | None]:
    """Locate covariates and response, and derive the rows of the regression.

    Returns
    -------
    releases : Releases
        From the derived rows; its plan may measure more than the one that was given, as that of `rows` does.
    energies : ndarray of shape (K,)
        That outputs are expected to have.
    mean_variance, energy, outside
        As of a :class:`~fdadp.private.release.residual_sizes.Regression`.
    """
    releases = Releases(cohort, plan)
    locate(releases, rows)
    releases = seen_curves(releases, rows)
    releases, mean_variance, energy = mean_response(releases, rows)
    releases, mean_variance, energy = seen_response(releases, rows, mean_variance, energy)
    size = len(rows.design.curves) + 1
    outside = releases.shares("outside", rows.outside, size=size) if releases.affords("outside") else None
    plan = releases.plan
    shares = rows.design.response_shares[: plan.n_outputs]
    rows.begin_regression(plan)
    return releases.derive(rows), shares / shares.sum() * energy, mean_variance, energy, outside


def locate(releases: Releases, rows: RowFunctions) -> None:
    """Location and scale of covariates: the public range of curves is a hint, not a wall."""
    for column in rows.design.curves:
        _locate_curves(releases, rows, column)
    if rows.design.numbers and releases.affords("scalars"):
        _locate_numbers(releases, rows)


def _locate_curves(releases: Releases, rows: RowFunctions, column: CurvesColumn) -> None:
    if not releases.affords("x rms"):
        return
    tuning, of = releases.plan.tuning, column.name
    seen, error = releases.size("x rms", column.rms, tuning.x_rms.range(column.half), of=of)
    rms = shrunk_scale(seen, error, column.scale * column.geometric_scale, X_PRIOR)
    shift = 0.0
    if releases.affords("x location"):
        if releases.plan.pure and not releases.affords("x scale"):
            level, sd = _level(releases, "x location", column, rms)
            guess = column.scale * column.geometric_scale
            shift, spread = level_and_spread(seen, error, level, sd, guess, X_PRIOR)
            spread *= math.exp(-TOO_WIDE * error)
            rows.columns[of] = column.placed(column.location + shift, spread / column.geometric_scale)
            return
        column, shift = _shifted(releases, "x location", column, rms)
    if releases.affords("x scale"):
        spread, _ = releases.size("x scale", column.rms, tuning.x_scale.range(rms), of=of)
        if releases.affords("x centre"):  # noise of the location may be larger than the curves, if the range is far off
            column, _ = _shifted(releases, "x centre", column, spread)
            spread, _ = releases.size("x size", column.rms, tuning.x_scale.range(spread), of=of)
    else:
        spread = math.sqrt(max(rms**2 - shift**2, (LEAST_SPREAD * rms) ** 2))
    rows.columns[column.name] = column.placed(column.location, spread / column.geometric_scale)


def _shifted(releases: Releases, key: str, column: CurvesColumn, size: float) -> tuple[CurvesColumn, float]:
    """The column at its released level, and by how much that moved it."""
    level, sd = _level(releases, key, column, size)
    shift = shrunk_shift(level, sd, size, releases.plan.tuning.size_clip)
    return column.placed(column.location + shift, column.scale), shift


def _level(releases: Releases, key: str, column: CurvesColumn, size: float) -> tuple[float, float]:
    """Released mean of curves about the location so far, clipped at a multiple of their size, and its noise."""
    level, sd = releases.mean(key, column.level, clip=releases.plan.tuning.size_clip * size, of=column.name)
    return float(level[0]), sd


def _locate_numbers(releases: Releases, rows: RowFunctions) -> None:
    """Means and variances of all numbers, in one release of (u, u² - 1/3), |u| <= 1, of norm √(q (1 + 4/9)) at most.

    Where numbers may fill a small part of their range they are then counted in cells, twice: q counts a person, none
    negative, of norm √q, or q where pure; replaced √2 √q, or 2 q.
    """
    columns, q = rows.design.numbers, len(rows.design.numbers)
    clip = norm_of_numbers(q, pure=releases.plan.pure)
    found, sd = releases.mean("scalars", rows.units, clip=clip, size=2 * q)
    counts: list[list[Counted]] = [[] for _ in columns]
    for key in ("places", "places again"):
        if releases.affords(key):
            norm = norm_of(q, pure=releases.plan.pure)
            cells, noise = releases.mean(key, rows.cells, clip=norm, size=q * CELLS, nonnegative=True)
            places = []
            for i, part in enumerate(rows.parts):
                counts[i].append(Counted(part, cells[i * CELLS : (i + 1) * CELLS], noise))
                places.append(settled(found[i], found[q + i], sd, counts[i], releases.plan.n, pure=releases.plan.pure))
            rows.parts = tuple(part_about(at, scale) for at, scale, _ in places)
    for i, column in enumerate(columns):
        if counts[i]:
            at, scale, error = places[i]
            far = beyond(counts[i][0], at, NUMBERS_HALF_WIDTH * scale)
            placed = replace(column.placed(at, scale, error), beyond=far)
        else:
            at, scale = _of_moments(found[i], found[q + i], sd)
            placed = column.placed(at, scale, error_of_moments(scale, sd))
        rows.columns[column.name] = placed


def _of_moments(mean: float, square: float, sd: float) -> tuple[float, float]:
    """Location and scale by mean and variance alone, shrunk by the noise towards those of a uniform law."""
    location = float(np.clip(mean, -1.0, 1.0))
    variance = float(np.clip(square + UNIFORM_VARIANCE - location**2, LEAST_VARIANCE, 1.0))
    return location, math.sqrt((variance * NUMBERS_PRIOR + sd**2 * UNIFORM_VARIANCE) / (NUMBERS_PRIOR + sd**2))


def mean_response(releases: Releases, rows: RowFunctions) -> tuple[Releases, FloatArray, float]:
    """Location and mean of Y; returns what is left to ask, the posterior variance of the mean and the squared scale.

    Where responses are far to one side of their range the noise of their level may be larger than they are. Their size
    about the released level tells: it is then looked for again, from there, at the cost of what comes last.
    """
    design, tuning = rows.design, releases.plan.tuning
    scale = rows.y_half / Y_GUESS
    if releases.affords("y rms"):
        largest = REACH * rows.y_half
        rms, error = _response_size(releases, "y rms", rows, (largest / releases.plan.y_range, largest))
        scale = shrunk_scale(rms, error, scale, Y_PRIOR)
    clip = tuning.size_clip * scale
    spread = scale / math.sqrt(2)  # half of the square is taken to be the mean's
    if releases.affords("y location"):
        spread, far = _move_response(releases, rows, scale)
    if releases.affords("y scale"):
        spread, _ = _response_size(releases, "y scale", rows, tuning.y_scale.range(scale))
        while spread < far * scale and releases.plan.places < MOST_PLACES:
            releases = replace(releases, plan=releases.plan.placed_again())
            scale, number = spread, f" {releases.plan.places}"
            _, far = _move_response(releases, rows, scale, number)
            spread, _ = _response_size(releases, "y scale", rows, tuning.y_scale.range(scale), number)
        clip = tuning.size_clip * spread
    m = design.response_shares.size
    rows.mean, variance = np.zeros(m), np.full(m, math.inf)
    if releases.affords("y mean"):
        noisy, sd = releases.mean("y mean", rows.response, clip=clip * tuning.mean_clip, size=m)
        rows.mean, variance = shrunk_coefficients(noisy, sd, design.response_shares)
    if about_anchor(releases.plan):
        rows.mean, variance = near_anchor(rows.mean, variance, design.response_shares, spread)
    if releases.affords("y spread"):
        spread, _ = _response_size(releases, "y spread", rows, tuning.y_spread.range(spread))
    return releases, variance, spread**2


def _move_response(releases: Releases, rows: RowFunctions, scale: float, number: str = "") -> tuple[float, float]:
    """Move the location of Y to its released level; the scale that is left about it, and :data:`FAR`.

    No mean is further than the root mean square. Where a level with Laplace noise is, one of the two is wrong, and less
    speaks for a response far from the middle: :data:`FAR_BEYOND`.
    """
    clip = releases.plan.tuning.size_clip * scale
    level, sd = releases.mean("y location", rows.y_level, clip=clip, number=number)
    expected = MEAN * scale if about_anchor(releases.plan) else scale
    shift = shrunk_shift(float(level[0]), sd, expected, clip / expected)
    rows.y_location += shift
    wrong = releases.plan.pure and abs(shift) > scale + sd
    return math.sqrt(max(scale**2 - shift**2, 0.5 * scale**2)), FAR_BEYOND if wrong else FAR


def _response_size(
    releases: Releases, key: str, rows: RowFunctions, between: tuple[float, float], number: str = ""
) -> tuple[float, float]:
    """Size of Y as it is so far, of numbers as large as a curve of their variance would be; and the sd of its log.

    Sizes of numbers are looked for where those of curves would be, for many are near zero, and as many far above their
    geometric mean: a range about that mean would cut these off.
    """
    size, error = releases.size(key, rows.response_norm, between, number=number)
    return size / rows.geometric, error
