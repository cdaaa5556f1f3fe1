"""White features of any term, derived from the term's own design: the private version of terms that have no other.

The design is fixed on covariates that are drawn from the public prior, never on private rows: curves, numbers and
labels in standard units, on the public domain and with the public levels. Its coefficient function has a Gaussian
process prior. Features of a row are those of the design, which must compute each row by itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp._common.typing import BoolArray, FloatArray
from fdadp.errors import InputError, PrivacyError
from fdadp.functional.quadrature import quadrature_weights
from fdadp.functional.tables.curve_sample import Curves
from fdadp.privacy import rowwise_matmul
from fdadp.private.public.column_ranges import HALF_WIDTH, Column, CurvesColumn, LabelColumn, NumberColumn, unit_grid
from fdadp.private.whitened.of_labels_and_numbers import places_of_levels
from fdadp.private.whitened.white_term import NEGLIGIBLE, OF_NUMBERS, WhiteTerm, white_axes, white_directions
from fdadp.terms.records import Records, TrainingSummary
from fdadp.terms.spec import TermDesign, TermSpec

if TYPE_CHECKING:
    from fdadp.private.public.gaussian_process_prior import PublicPrior
    from fdadp.private.whitened.term_registry import TermRequest


# Covariates of the public prior in standard units, and terms fixed on them: what stands for private rows in public.
#
# Curves are on their domain, with values in released standard deviations about the released location; so are numbers.
# Labels are the public levels.


REACH = 3.0
"""Standard deviations of numbers within which functions of them have knots; they are linear beyond."""
FINE, UNIFORM_WIDTH = 4001, math.sqrt(12)
"""Points of a grid; width of a uniform law of variance one."""
RARE = 0.05
"""Share of numbers that may be anywhere."""
N_LAW = 4000
"""Points that stand for the law of a number."""
ROWS = 1000
"""Rows of chance that show how features change with the units of their columns."""

Affine = tuple[float, float]
"""Location and scale of a column."""


def entries(column: Column, seen: Any) -> tuple[Any, BoolArray]:
    """What a term sees of a column, and which rows have no public level."""
    if isinstance(column, CurvesColumn):
        start, end = column.grid[0], column.grid[-1]
        same = np.array_equal(seen.grid, unit_grid(column.grid))
        grid = column.grid if same else start + (end - start) * seen.grid
        return Curves(seen.values, grid), np.zeros(len(seen.values), dtype=bool)
    if isinstance(column, NumberColumn):
        return seen.standard, np.zeros(len(seen.standard), dtype=bool)
    known = (seen[:, None] == np.arange(len(column.levels))).any(axis=1)
    return labels_of(column, np.where(known, seen, 0.0)), ~known


def labels_of(column: LabelColumn, codes: FloatArray) -> Any:
    """Labels of codes (m,)."""
    levels = np.empty(len(column.levels), dtype=object)
    levels[:] = column.levels
    return levels[codes.astype(np.int64)]


def records_of(values: Mapping[str, Any]) -> Records:
    """Rows of columns."""
    return Records(len(next(iter(values.values()))), values)


def law_of_covariates(public: tuple[Column, ...], prior: PublicPrior) -> dict[str, Any]:
    """Covariates of the prior by column; independent of each other, as far as is known."""
    curves = [prior.x.standard(unit_grid(column.grid)) for column in public if isinstance(column, CurvesColumn)]
    n = len(curves[0]) if curves else N_LAW
    values: dict[str, Any] = {}
    for i, column in enumerate(public):
        order = np.random.default_rng([prior.seed, i]).permutation(n) if i else np.arange(n)
        if isinstance(column, CurvesColumn):
            values[column.name] = Curves(curves.pop(0)[order], column.grid)
        elif isinstance(column, NumberColumn):
            values[column.name] = law_of_numbers(n)[order]
        else:
            values[column.name] = labels_of(column, (order % len(column.levels)).astype(np.float64))
    return values


def rows_of_chance(public: tuple[Column, ...]) -> dict[str, Any]:
    """Rows that move all coefficients of a term alike."""
    rng = np.random.default_rng(0)
    values: dict[str, Any] = {}
    for column in public:
        if isinstance(column, CurvesColumn):
            values[column.name] = Curves(rng.uniform(-HALF_WIDTH, HALF_WIDTH, (ROWS, column.grid.size)), column.grid)
        elif isinstance(column, NumberColumn):
            values[column.name] = rng.uniform(-REACH, REACH, ROWS)
        else:
            values[column.name] = labels_of(column, rng.integers(0, len(column.levels), ROWS).astype(np.float64))
    return values


def fixed_on(
    spec: TermSpec, public: tuple[Column, ...], law: Mapping[str, Any], t: FloatArray | None, affine: list[Affine]
) -> TermDesign:
    """The design on covariates of the prior, in units: curves reach ±4 and numbers ±3 standard deviations."""
    reaching: dict[str, Any] = {}
    for column in public:
        own = law[column.name]
        if isinstance(column, CurvesColumn):
            ends = np.repeat([[-HALF_WIDTH], [HALF_WIDTH]], column.grid.size, axis=1)
            reaching[column.name] = Curves(np.vstack((own.values, ends)), column.grid)
        elif isinstance(column, NumberColumn):
            reaching[column.name] = np.append(np.clip(own, -REACH, REACH), (-REACH, REACH))
        else:
            reaching[column.name] = np.append(own, own[:2])
    order = {column.name: column.levels for column in public if isinstance(column, LabelColumn)}
    records = replace(records_of(placed_in(public, reaching, affine)), order=order)
    design = spec.fixed(TrainingSummary.of([records]), t)
    return design.learned(design.trained(records)[1], records.n) if design.separable else design


def law_of_numbers(count: int) -> FloatArray:
    """Standardised numbers at even probabilities of a law: half uniform, half Gaussian, and some anywhere.

    The last part keeps features of rare numbers within bounds.
    """
    from scipy.special import ndtr

    at = (np.arange(count) + 0.5) / count
    grid = np.linspace(-HALF_WIDTH, HALF_WIDTH, FINE)
    inside = np.clip(grid / UNIFORM_WIDTH + 0.5, 0, 1)
    gaussian = ndtr(grid)
    anywhere = grid / (2 * HALF_WIDTH) + 0.5
    law = np.interp(at, (1 - RARE) * (inside + gaussian) / 2 + RARE * anywhere, grid)
    return np.asarray(law / law.std())


def affine_of(column: Column, *, about: bool) -> Affine:
    """From standard units to those of a column; `about`: less its location."""
    if isinstance(column, CurvesColumn):
        return (0.0 if about else column.location), column.scale
    if isinstance(column, NumberColumn):
        return (0.0 if about else column.mid + column.half * column.location), column.half * column.scale
    return 0.0, 1.0


def placed_in(public: tuple[Column, ...], values: Mapping[str, Any], affine: list[Affine]) -> dict[str, Any]:
    """Covariates in other units."""
    placed = dict(values)
    for column, (location, scale) in zip(public, affine, strict=True):
        own = values[column.name]
        if isinstance(column, CurvesColumn):
            placed[column.name] = replace(own, values=location + scale * own.values)
        elif isinstance(column, NumberColumn):
            placed[column.name] = location + scale * own
    return placed


# Prior of the coefficients of a term: a Gaussian process on the axes of its coefficient function.


POINTS_OF_AXES = {1: 60, 2: 25, 3: 13}
"""Points of each axis at which the prior of the coefficient function is taken, by the number of axes."""
RANK = 1e-6
"""Coefficients that change the coefficient function by less than this share have no prior variance."""
OUTSIDE = 1e-3
"""Distance of the constant from functions that do not have it, at least."""
SMOOTHER = 1.1
"""Correlation length of a function over that of the coefficients of its B-splines, which the prior's lengths are of.

By h²/3, the variance of a cubic B-spline with knots h apart: 1.10 of 10 on a domain, 1.12 of 14 on ±3.
"""
MAIN = 1.0
"""Of functions of several numbers, prior variance of what each does by itself over that of what they do together."""


def prior_covariance(
    design: TermDesign, other: TermDesign, public: tuple[Column, ...], prior: PublicPrior, rows: FloatArray
) -> FloatArray:
    """Prior covariance of the coefficients (q, q): of a Gaussian process on the axes of the coefficient function.

    Without axes each feature has an effect of its own, as large as those of the others.
    """
    if not design.axes:
        variances = rows.reshape(-1, rows.shape[-1]).var(axis=0)
        varies = variances > NEGLIGIBLE * variances.max()
        return np.diag(np.where(varies, 1 / np.where(varies, variances, 1.0), 0.0))
    count = POINTS_OF_AXES[min(len(design.axes), max(POINTS_OF_AXES))]
    points: list[Any] = []
    kernels: list[FloatArray] = []
    for name, own in design.axes.items():
        if isinstance(own, tuple):
            points.append(own)
            kernels.append(np.eye(len(own)))
            continue
        points.append(np.linspace(own[0], own[-1], count))
        moves = not np.allclose(own, np.asarray(other.axes[name]))
        of_curves = _on_domain(points[-1], prior, design.periods.get(name))
        kernels.append(_kernel(points[-1], name, public, prior) if moves else of_curves)
    effect = np.asarray(design.effect(*points))
    half = _projection(effect)
    spread = half.reshape(len(half), *(len(kernel) for kernel in kernels))
    for axis, kernel in enumerate(kernels):
        spread = np.moveaxis(np.tensordot(spread, kernel, axes=(1 + axis, 0)), -1, 1 + axis)
    return np.asarray(half @ spread.reshape(half.shape).T)


def _projection(effect: FloatArray) -> FloatArray:
    """From values at points (m,) to coefficients (q, m) of the functions (m, q) that come closest.

    The mean of the response has the constant, where the functions do not have it.
    """
    constant = np.ones((len(effect), 1))
    away = constant - effect @ np.linalg.lstsq(effect, constant, rcond=RANK)[0]
    if np.abs(away).max() < OUTSIDE:
        return np.asarray(np.linalg.pinv(effect, rcond=RANK), dtype=np.float64)
    return np.asarray(np.linalg.pinv(np.hstack((effect, constant)), rcond=RANK)[:-1], dtype=np.float64)


def _on_domain(at: FloatArray, prior: PublicPrior, period: float | None) -> FloatArray:
    """Of an axis that is the domain of curves; on a circle by the length of chords."""
    length, apart = prior.surface_s * (at[-1] - at[0]), at[:, None] - at
    if period is not None:
        apart = np.sin(np.pi * apart / period) * period / np.pi
    return _gaussian(apart, length) + prior.main


def _kernel(at: FloatArray, name: str, public: tuple[Column, ...], prior: PublicPrior) -> FloatArray:
    """Of an axis that has the values of a column, in standard units."""
    numbers = {column.name for column in public if isinstance(column, NumberColumn)}
    if name in numbers or len(numbers) == len(public):
        return _gaussian(at[:, None] - at, prior.surface_s * math.sqrt(3) * 2) + MAIN
    share, length = at / (2 * HALF_WIDTH), prior.surface_x * 2 * HALF_WIDTH
    return _gaussian(at[:, None] - at, length) + prior.linear * np.outer(share, share)


def _gaussian(apart: FloatArray, length: float) -> FloatArray:
    return np.asarray(np.exp(-0.5 * (apart / (SMOOTHER * length)) ** 2))


POINTS_OF_T = 30
"""Points of a response that stand for its grid where no term needs the grid."""
FEW = 37
"""Rows that are tried alone, and together."""
MOST_OF_NUMBERS = 40
"""Features kept at most of a term without curves: of 20, 30, 40 and 60 the fewest that lose little (``te``)."""
PLACED = (0.7, 1.7), (0.0, 1.7)
"""Locations and scales, in standard units, that features are tried at: at another location, and at the same."""
SAME = 1e-6
"""Share of the features' size by which features in other units may differ."""


@dataclass(frozen=True, kw_only=True)
class DerivedTerm(WhiteTerm):
    """Features ``(z(row) - centre) @ whitening``, z those of the term's own design in standard units.

    Attributes
    ----------
    spec : TermSpec
        As the user wrote it.
    public : tuple of Column
        Its columns as they are in public: domains, ranges and levels.
    design : TermDesign
        On covariates of the prior.
    centre : ndarray of shape (q,)
    whitening : ndarray of shape (q, d)
    t : ndarray of shape (T,) or None
        Points of the response; None: it is a number.
    prior : PublicPrior
    about : bool
        Whether coefficients are those of columns less their released locations, not of columns as they are.
    """

    spec: TermSpec
    public: tuple[Column, ...]
    design: TermDesign
    centre: FloatArray
    whitening: FloatArray
    t: FloatArray | None
    prior: PublicPrior
    about: bool = False

    @property
    def separable(self) -> bool:
        """Whether features are the same at all points of the response."""
        return self.design.separable

    def at(self, t: FloatArray) -> DerivedTerm:
        """The term at other points of the response."""
        return replace(self, t=t)

    def features(self, seen: Mapping[str, Any], count: int) -> FloatArray:
        """White features of standardised rows, each row by itself; zero of a row without a public level."""
        values, lost = {}, np.zeros(0, dtype=bool)
        for column in self.public:
            values[column.name], never = entries(column, seen[column.name])
            lost = never if not lost.size else lost | never
        out = self._white(records_of(values), count)
        out[lost] = 0.0
        return out

    def _white(self, records: Records, count: int) -> FloatArray:
        rows = rows_of(self.design, records, self.t)
        flat = rows.reshape(-1, rows.shape[-1]) - self.centre
        white = rowwise_matmul(flat, np.ascontiguousarray(self.whitening[:, :count]))
        white = white.reshape(*rows.shape[:-1], count)
        return white if self.separable else np.ascontiguousarray(np.moveaxis(white, 1, 2))

    def drawn(self, prior: PublicPrior, count: int) -> FloatArray:
        """Features of covariates of the prior, at all points of the response."""
        return self._white(records_of(law_of_covariates(self.public, prior)), count)

    @property
    def _of_entries(self) -> bool:
        """Whether the coefficient function is that of the columns' own entries: numbers and levels."""
        return tuple(self.design.axes) == self.columns

    @property
    def of_values(self) -> bool:
        """Whether it is a function of numbers."""
        return self._of_entries and all(isinstance(column, NumberColumn) for column in self.public)

    def axes(self, columns: Mapping[str, Column]) -> dict[str, FloatArray | tuple[Any, ...]]:
        """Those of the term's own design, in units of the columns; numbers on their public ranges."""
        found = self.design.axes if self._of_entries else self._in_units(columns)[0].axes
        for column in self.public:
            if isinstance(column, NumberColumn) and column.name in found:
                found[column.name] = np.linspace(*column.bounds, len(found[column.name]))
        return found

    def acts(self, columns: Mapping[str, Column], axes: Mapping[str, Any]) -> BoolArray | None:
        """Where the coefficient function is part of the model."""
        return self.design.acts(axes)

    def effect(self, columns: Mapping[str, Column], count: int, *points: Any) -> FloatArray:
        """Features of the term's own coefficient function, in units of the columns; of numbers those of rows."""
        if self._of_entries:
            return self._at_entries(columns, count, *points)
        design, turn = self._in_units(columns)
        return np.asarray(design.effect(*points) @ turn[:, :count])

    def _at_entries(self, columns: Mapping[str, Column], count: int, *points: Any) -> FloatArray:
        shape = tuple(len(own) for own in points)
        seen: dict[str, Any] = {}
        for axis, (name, own) in enumerate(zip(self.columns, points, strict=True)):
            column, at = columns[name], np.indices(shape)[axis].ravel()
            if isinstance(column, NumberColumn):
                seen[name] = column.seen(np.asarray(own, dtype=np.float64)[at])[0]
            else:
                assert isinstance(column, LabelColumn)
                seen[name] = places_of_levels(column, own)[at].astype(np.float64)
        return self.features(seen, count)

    def _in_units(self, columns: Mapping[str, Column]) -> tuple[TermDesign, FloatArray]:
        """The design in units of the columns, and its coefficients (q, d) that give the white features."""
        placed = [columns[column.name] for column in self.public]
        affine = [affine_of(column, about=self.about) for column in placed]
        design = fixed_on(self.spec, self.public, law_of_covariates(self.public, self.prior), self.t, affine)
        return design, _turn(self.design, design, self.public, affine, self.t, self.whitening)[0]


def derived_term(asked: TermRequest, spec: TermSpec) -> DerivedTerm:
    """The private version of any term that is a function of each row by itself.

    Parameters
    ----------
    asked : TermRequest
    spec : TermSpec

    Raises
    ------
    InputError
        A column without public bounds or levels, an effect that is the same at all t, or features that are another
        function of rows in other units.
    PrivacyError
        Features of a row that depend on other rows.
    """
    public = tuple(asked.public_of(name) for name in spec.columns)
    t = None
    if asked.curves:
        t = np.linspace(0, 1, POINTS_OF_T) if asked.t is None else asked.t
    law = law_of_covariates(public, asked.prior)
    design = fixed_on(spec, public, law, t, [(0.0, 1.0)] * len(public))
    if t is not None and design.along.size == 1:
        raise InputError(
            f"{spec.name} cannot be the same at all t in a private fit. Each effect is measured along the response "
            "functions of the prior, and none of them is constant"
        )
    t = t if design.separable else asked.points
    _refuse_neighbours(spec, design, public, t)
    other, about = _other_units(spec, public, design, law, t)
    rows = rows_of(design, records_of(law), t)
    covariance = prior_covariance(design, other, public, asked.prior, rows)
    of_curves = any(isinstance(column, CurvesColumn) for column in public)
    most = asked.prior.max_features if of_curves else min(MOST_OF_NUMBERS, asked.prior.max_features)
    if design.separable:
        centre, whitening, variances = white_axes(rows, covariance, most)
    else:
        assert t is not None
        square = np.einsum("nta,ntb,t->ab", rows, rows, quadrature_weights(unit_grid(t)), optimize=True) / len(rows)
        centre = np.zeros(rows.shape[-1])
        whitening, variances = white_directions(square, covariance, most)
    importance = 1.0 if of_curves else OF_NUMBERS
    return DerivedTerm(
        name=spec.name,
        columns=spec.columns,
        shares=importance * variances / variances.sum(),
        spec=spec,
        public=public,
        design=design,
        centre=centre,
        whitening=whitening,
        t=t,
        prior=asked.prior,
        about=about,
    )


def rows_of(design: TermDesign, records: Records, t: FloatArray | None) -> FloatArray:
    """Features of a design, shape (n, q) or (n, T, q)."""
    return np.asarray(design.features(records) if design.separable else design.features(records, t))


def _refuse_neighbours(spec: TermSpec, design: TermDesign, public: tuple[Column, ...], t: FloatArray | None) -> None:
    """Refuse features of public rows that are other bits at other places, among other rows, or alone.

    The kernel compares rows as well, but those that it knows of may all be clipped to one value.
    """
    chance = records_of(rows_of_chance(public))
    every = np.arange(chance.n)
    whole = rows_of(design, chance, t)
    for some in (every[::-1], every[:FEW], every[::FEW], *every[:FEW, None]):
        if not np.array_equal(rows_of(design, chance[some], t), whole[some], equal_nan=True):
            raise PrivacyError(
                f"features of {spec.name} must be row-local, bit for bit, but those of public rows change with their "
                "neighbours. Products by BLAS do so (use fdadp.privacy.rowwise_matmul), as do statistics of all rows; "
                "nothing was read and nothing was spent"
            )


# --- units ---


def _other_units(
    spec: TermSpec, public: tuple[Column, ...], design: TermDesign, law: Mapping[str, Any], t: FloatArray | None
) -> tuple[TermDesign, bool]:
    """The design in other units, and whether it is the same function of rows about their location only.

    Raises
    ------
    InputError
        It is another function: coefficients in standard units would mean nothing in those of the columns.
    """
    for about, placed in enumerate(PLACED):
        affine = [placed] * len(public)
        other = fixed_on(spec, public, law, t, affine)
        away = _turn(design, other, public, affine, t)[1]
        if away < SAME:
            return other, bool(about)
    raise InputError(
        f"features of {spec.name} must change linearly with the units of {', '.join(spec.columns)} in a private fit, "
        "which sees columns in standard units. Transform the column first, or write a private version of the term"
    )


def _turn(
    design: TermDesign,
    other: TermDesign,
    public: tuple[Column, ...],
    affine: list[Affine],
    t: FloatArray | None,
    coefficients: FloatArray | None = None,
) -> tuple[FloatArray, float]:
    """Coefficients of the design in other units that give the same features, and how far these are apart.

    Parameters
    ----------
    design, other : TermDesign
        In standard units, and in others.
    public : tuple of Column
    affine : list of (float, float)
        The other units.
    t : ndarray of shape (T,) or None
    coefficients : ndarray of shape (q, d), optional
        In standard units; default: of each feature by itself.
    """
    chance = rows_of_chance(public)
    points = None if t is None else t[:: max(1, t.size // 5)]
    rows = _about_mean(rows_of(design, records_of(chance), points))
    wanted = rows if coefficients is None else rows @ coefficients
    found = _about_mean(rows_of(other, records_of(placed_in(public, chance, affine)), points))
    turn = np.asarray(np.linalg.lstsq(found, wanted, rcond=None)[0], dtype=np.float64)
    return turn, float(np.abs(found @ turn - wanted).max() / np.abs(wanted).max())


def _about_mean(rows: FloatArray) -> FloatArray:
    """Features about their mean, at each t by itself: the mean of the response has the rest."""
    away = rows - rows.mean(axis=0)
    return np.asarray(away.reshape(-1, away.shape[-1]))
