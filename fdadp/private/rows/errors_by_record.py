"""How errors of a fit hang on what records look like: the level and the roughness of their curves.

A few means of clipped products are released of it (docs/theory/dp-aff.md#forecasts); prediction intervals then vary by
record.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.functional.tables.curve_sample import Curves
from fdadp.privacy import rowwise_exp, rowwise_matmul
from fdadp.privacy.rows._rowwise_arithmetic import log_positions
from fdadp.private.denoise.empirical_bayes import Measurement, combine
from fdadp.private.plan.budget_plan import Plan
from fdadp.private.public.column_ranges import CurvesColumn, unit_grid
from fdadp.private.rows.projected_responses import observed_mean
from fdadp.rounds.budget_plan import Aux
from fdadp.rounds.posterior_means import shrunk

if TYPE_CHECKING:
    from fdadp.private.public.gaussian_process_prior import PublicPrior
    from fdadp.private.release.planned_releases import Releases
    from fdadp.private.rows.row_functions import ResidualRows

ROUGH, BEND = 0.17, 0.03
"""Of forecasts, prior means of what a standard deviation of log roughness, and its square less 1 over √2, add to the
logarithm of the sd of errors: as for heart rates in intensive care. Elsewhere nothing is believed to hang on looks."""
ROUGH_SD, BEND_SD = 0.2, 0.05
"""Their prior sds."""
LEVEL_SD = 0.1
"""The same of the level, of mean 0."""
SIZE, SIZE_SD = -0.2, 0.3
"""Prior mean and sd of the logarithm of a record's error over its spread: a geometric mean is below a mean square."""
SLOPES_CLIP = 1.5
"""Norm at which a record's logarithm of its error, times its looks, is clipped."""
MOMENT_OF_LOOKS = 0.1
"""Variance of an entry of the second moment of looks, clipped with the errors, about the identity."""
ROUGHNESSES = (0.01, 3.0)
"""Range of the roughness of a standardised curve, the mean absolute difference of neighbouring values."""
PLACE_SD = 0.3
"""Prior sd of the mean of its place between them, on a log scale from -1 to 1, about that of the prior's curves."""
SPREAD = 0.2
"""What counts as a standard deviation of the place: records differ in roughness by a factor of 1.8."""
CALMEST, REACH = -1.0, 2.5
"""Standard deviations of roughness between which it says more: calm records are much alike; of levels `REACH`."""
ERRORS = 4.0
"""Factor within which errors over their spread are looked for."""
ONE_ERROR = 0.5
"""Sd of the logarithm of one record's error over its spread."""
TAIL, SATURATION = 1.27, 0.75
"""The 95 % quantile of a t law of 1/ν = .15 whose scale has a logarithm of variance v is larger by a factor with the
logarithm `TAIL` v / (1 + `SATURATION` v): the first is ((ν + 1) q²/(ν + q²) - 1)/2, half the second derivative over the
first of the law's distribution in log q; the second is computed."""
FARTHEST_LOG = 20.0
"""Of what residual variances are multiplied by."""
LOOKS = Aux(target=0.02, cap=0.015, max_error=0.25)
PLACES = Aux(target=0.02, cap=0.005, max_error=0.3)


@dataclass(frozen=True)
class Probe:
    """How the errors of a record hang on the level and the roughness of one of its curves.

    Attributes
    ----------
    name : str
        Of the column.
    centre : float
        Mean place of the roughness, as released.
    of_level, of_roughness, of_square : float
        What a standard deviation of each adds to the logarithm of the sd of errors; `of_square`: and the square of that
        of the roughness less 1, over √2.
    unknown : (float, float, float)
        Variances of the three: what the releases leave open. Errors of unusual records count as larger by it.
    """

    name: str
    centre: float
    of_level: float = 0.0
    of_roughness: float = 0.0
    of_square: float = 0.0
    unknown: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def standard(self, looks: FloatArray) -> FloatArray:
        """Level and place of roughness (m, 2) in standard deviations, within reach, and the square; shape (m, 3)."""
        u = np.clip((looks - [0.0, self.centre]) / [1.0, SPREAD], [-REACH, CALMEST], REACH)
        return np.hstack((u, (u[:, 1:] ** 2 - 1) / math.sqrt(2)))

    def log_factor(self, looks: FloatArray) -> FloatArray:
        """What is added to the logarithm of the sd, shape (m,)."""
        u = self.standard(looks)
        return np.asarray(u[:, 0] * self.of_level + u[:, 1] * self.of_roughness + u[:, 2] * self.of_square)

    def variance(self, looks: FloatArray) -> FloatArray:
        """Of what that is off by, shape (m,)."""
        u = self.standard(looks)
        return np.asarray(sum(u[:, i] ** 2 * self.unknown[i] for i in range(3)))


def row_means(values: FloatArray) -> FloatArray:
    """Means of rows, shape (m,)."""
    size = values.shape[1]
    return rowwise_matmul(values, np.full((size, 1), 1 / size))[:, 0]


def roughness_of(curves: Curves) -> FloatArray:
    """Places of the roughness of standardised curves on a log scale from -1 to 1, shape (m,)."""
    steps = np.ascontiguousarray(np.abs(np.diff(curves.values, axis=1)))
    return log_places(row_means(steps), *ROUGHNESSES)


def looks_of(column: CurvesColumn, values: FloatArray, grid: FloatArray | None = None) -> FloatArray:
    """Level and place of the roughness of rows of curves, shape (m, 2); 0 of what was never observed."""
    curves, never = column.seen(values, grid)
    if grid is not None and not np.array_equal(grid, column.grid):
        unit = unit_grid(column.grid)
        curves = Curves(np.stack([np.interp(unit, curves.grid, row) for row in curves.values]), unit)
    looks = np.stack((row_means(curves.values), roughness_of(curves)), axis=1)
    looks[never] = 0.0
    return looks


def factors(looks: Sequence[Probe], seen: FloatArray | None) -> FloatArray:
    """What the residual variance of rows is multiplied by, (m,), by their looks (m, 2 q)."""
    seen = np.asarray(seen)
    own = [(look, seen[:, 2 * i : 2 * i + 2]) for i, look in enumerate(looks)]
    unknown = np.asarray(sum(look.variance(each) for look, each in own))
    logs = sum(look.log_factor(each) for look, each in own) + TAIL * unknown / (1 + SATURATION * unknown)
    return rowwise_exp(2 * logs, FARTHEST_LOG)


def with_looks(plan: Plan) -> Plan:
    """The plan with releases of how errors hang on looks, whose shares are taken from all others alike.

    Raises
    ------
    InputError
        There is no column of curves.
    """
    if not plan.located.curves:
        raise InputError("errors_by_record needs a column of curves among the terms, got none")
    errors = LOOKS.share(SLOPES_CLIP * plan.eta, pure=plan.pure)
    places = PLACES.share(plan.eta, pure=plan.pure)
    return plan.beside({"looks": places, "errors by looks": errors, "errors again": errors})


def _usual(column: CurvesColumn, prior: PublicPrior) -> Probe:
    """What is believed in public, by the prior's curves."""
    unit = unit_grid(column.grid)
    places = roughness_of(Curves(prior.x.standard(unit), unit))
    return Probe(column.name, float(places.mean()))


def place_looks(
    releases: Releases, residuals: ResidualRows, columns: Mapping[str, Any], prior: PublicPrior, *, forecasts: bool
) -> tuple[Probe, ...]:
    """Release the mean place of the roughness of each column of curves; slopes are as the public prior believes."""
    plan = releases.plan
    looks = [_usual(c, prior) for c in columns.values() if isinstance(c, CurvesColumn)]
    m = len(looks)
    if plan.budget_shares["looks"]:
        found, sd = releases.mean("looks", residuals.places, clip=float(m) if plan.pure else math.sqrt(m), size=m)
        for i, look in enumerate(looks):
            centre = float(shrunk(found[i], sd, look.centre, PLACE_SD))
            looks[i] = replace(look, centre=float(np.clip(centre, -1, 1)))
    return _sloped(looks, _believed(m, forecasts=forecasts))


def learn_looks(releases: Releases, residuals: ResidualRows, *, forecasts: bool) -> None:
    """Release how the errors hang on the looks of rows that were placed, each a mean of clipped products, if afforded.

    Twice ``E[(1, u) e]``, u the standardised looks and e the logarithm of a record's error over its spread by what is
    known so far: first by the public prior, then by the first release, so that what clipping and an odd law of u take
    from the first step the second one finds (docs/theory/dp-aff.md#forecasts).
    """
    looks, m = residuals.looks, len(residuals.looks)
    believed = _believed(m, forecasts=forecasts)
    uncertain = np.array([SIZE_SD, *[LEVEL_SD, ROUGH_SD, BEND_SD] * m])
    slopes, steps, unknown = believed, list[Measurement](), uncertain**2
    for key in ("errors by looks", "errors again") if releases.affords("errors by looks") else ():
        residuals.size, residuals.looks = math.exp(slopes[0]), _sloped(looks, slopes)
        seen, sd = releases.mean(key, residuals.errors_by_looks, clip=SLOPES_CLIP, size=slopes.size)
        steps.append((seen[:, None], slopes[:, None], np.array([sd**2 + ONE_ERROR**2 / releases.plan.n])))
        target, noise = combine(steps, slopes[:, None], np.eye(slopes.size), MOMENT_OF_LOOKS)
        slopes = shrunk(target[:, 0], np.sqrt(noise[:, 0]), believed, uncertain)
        unknown = uncertain**2 * noise[:, 0] / (uncertain**2 + noise[:, 0])
    left = [(float(level), float(rough), float(square)) for level, rough, square in unknown[1:].reshape(m, -1)]
    residuals.looks = tuple(
        replace(look, unknown=part) for look, part in zip(_sloped(looks, slopes), left, strict=True)
    )


def _believed(m: int, *, forecasts: bool) -> FloatArray:
    """Prior means of the constant and of the slopes of the looks of `m` columns, shape (1 + 3 m,)."""
    return np.array([SIZE, *[0.0, *((ROUGH, BEND) if forecasts else (0.0, 0.0))] * m])


def _sloped(looks: Sequence[Probe], slopes: FloatArray) -> tuple[Probe, ...]:
    """Looks with slopes (1 + 3 q), of which the first is of no look."""
    parts = slopes[1:].reshape(len(looks), -1)
    return tuple(
        replace(look, of_level=float(level), of_roughness=float(rough), of_square=float(square))
        for look, (level, rough, square) in zip(looks, parts, strict=True)
    )


def error_logs(ratio: FloatArray, weights: FloatArray) -> FloatArray:
    """Logarithms of the errors of rows over their spread (m, T), within their range; shape (m,)."""
    sizes = np.sqrt(observed_mean(ratio * ratio, weights))
    return math.log(ERRORS) * log_places(sizes, 1 / ERRORS, ERRORS)


def log_places(sizes: FloatArray, low: float, high: float) -> FloatArray:
    """Places of sizes (m,) between two on a log scale, from -1 to 1."""
    out = np.empty(len(sizes))
    log_positions(np.ascontiguousarray(sizes), low, high, math.sqrt(low * high), math.log(high / low) / 2, out)
    return out
