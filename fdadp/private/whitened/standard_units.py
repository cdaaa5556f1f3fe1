"""Covariates of the public prior in standard units, and terms fixed on them: what stands for private rows in public.

Curves are on their domain, with values in released standard deviations about the released location; so are numbers.
Labels are the public levels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp._common.typing import BoolArray, FloatArray
from fdadp.functional.tables.records import Records, TrainingSummary
from fdadp.functional.tables.sample import Curves
from fdadp.private.public.columns import HALF_WIDTH, Column, CurvesColumn, LabelColumn, NumberColumn, unit_grid
from fdadp.terms.spec import TermDesign, TermSpec

if TYPE_CHECKING:
    from fdadp.private.public.prior import PublicPrior

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
    design = spec.fixed(TrainingSummary.of(lambda: iter([records])), t)
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
        middle, half = sum(column.bounds) / 2, (column.bounds[1] - column.bounds[0]) / 2
        return (0.0 if about else middle + half * column.location), half * column.scale
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
