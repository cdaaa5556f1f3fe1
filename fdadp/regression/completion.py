"""Covariates that lack entries, completed: what was learned from the training rows completes new ones.

Curves with gaps, sparse or noisy ones; and numbers that are missing, beside which an indicator says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fdadp._common.checks import one_of
from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.functional.fpca import Eigenbasis, sc_eigenbasis
from fdadp.functional.records import Column, Records
from fdadp.functional.sample import Curves
from fdadp.functional.smoothing import MIN_POINTS
from fdadp.regression.missing import filled

CURVES = ("linear", "smooth", "fpca", "pace")
MISSING = ("raise", *CURVES, "indicator")
"""What to do about missing entries: the first refuses them, the last is for numbers, the others are for curves."""

SHARES = {"fpca": 0.99, "pace": 0.95}
"""Of variance that components explain (decision 0028): noise among them spoils the surfaces of sparse curves."""
POINTS = 101
"""Of the grid on which components are learned where curves have more points: those of irregular curves add up."""


def treatments(missing: str | Mapping[str, str], kinds: Mapping[str, str]) -> dict[str, str]:
    """What is done about missing entries of each column; columns that may lack none are left out.

    Parameters
    ----------
    missing : str or mapping of str to str
        One of :data:`MISSING` for all columns of its kind, or by column.
    kinds : mapping of str to str
        ``"curves"``, ``"numbers"`` or ``"labels"``, by column of the terms.

    Raises
    ------
    InputError
        An unknown treatment or column, or one that is not for the kind of column.
    """
    if isinstance(missing, str):
        one_of(missing, "missing", MISSING)
        kind = "numbers" if missing == "indicator" else "curves"
        return {} if missing == "raise" else {name: missing for name, k in kinds.items() if k == kind}
    if not isinstance(missing, Mapping):
        raise InputError(f"missing must be one of {', '.join(map(repr, MISSING))}, or a mapping, got {missing!r}")
    for name, how in missing.items():
        if name not in kinds:
            raise InputError(f"missing must name columns of the terms ({', '.join(kinds) or 'none'}), got {name!r}")
        fit = CURVES if kinds[name] == "curves" else ("indicator",) if kinds[name] == "numbers" else ()
        one_of(how, f"missing[{name!r}] ({kinds[name]})", ("raise", *fit))
    return {name: how for name, how in missing.items() if how != "raise"}


@dataclass(frozen=True)
class Completion:
    """How rows that lack entries are completed.

    Attributes
    ----------
    how : mapping of str to str
        By column.
    bases : mapping of str to Eigenbasis
        Components of the training curves.
    means : mapping of str to float
        Of the training numbers that are there.
    indicators : mapping of str to str
        By column of numbers, of which training rows lack some, the column that says which: 1, or else 0.
    """

    how: Mapping[str, str]
    bases: Mapping[str, Eigenbasis]
    means: Mapping[str, float]
    indicators: Mapping[str, str]

    @classmethod
    def learned(cls, records: Records, how: Mapping[str, str]) -> Completion:
        """Learn from training rows.

        Raises
        ------
        InputError
            Entries that are infinite, curves without any value, part of a domain where no curve was observed.
        """
        bases, means, indicators = {}, {}, {}
        for name, what in how.items():
            if what == "indicator":
                values = _finite_or_nan(records.numbers(name), name, records.first)
                there = values[~np.isnan(values)]
                if there.size == 0:
                    raise InputError(f"{name} must have at least one number, got none")
                means[name] = float(there.mean())
                if there.size < values.size:
                    indicators[name] = f"missing({name})"
            else:
                curves = _observed(records.curves(name), name, records.first)
                _refuse_unobserved(curves, name, what)
                if what in SHARES:
                    bases[name] = _components(curves, SHARES[what])
        return cls(dict(how), bases, means, indicators)

    def __call__(self, records: Records) -> Records:
        """Rows whose columns lack nothing, with the indicators.

        Raises
        ------
        InputError
            As :meth:`learned`; a missing number where no training row lacked one.
        """
        columns: dict[str, Column] = {}
        for name in self.how:
            if name in self.means:
                columns |= self._numbers(records, name)
            else:
                columns[name] = self._curves(_observed(records.curves(name), name, records.first), name, records.first)
        return records.with_columns(**columns)

    def _numbers(self, records: Records, name: str) -> dict[str, Column]:
        values = _finite_or_nan(records.numbers(name), name, records.first)
        gone = np.isnan(values)
        if gone.any() and name not in self.indicators:
            row = records.first + int(np.argmax(gone))
            raise InputError(f"{name} must have a number in every row, as the training rows had, got none in row {row}")
        filled: dict[str, Column] = {name: np.where(gone, self.means[name], values)}
        if name in self.indicators:
            filled[self.indicators[name]] = gone.astype(np.float64)
        return filled

    def _curves(self, curves: Curves, name: str, first: int) -> Curves:
        how, basis = self.how[name], self.bases.get(name)
        if how == "pace":
            assert basis is not None
            values = basis.reconstruct(_on(basis, curves.grid, name).conditional_scores(curves.values))
            return Curves(values, basis.grid, "array", curves.index, gridded=True, unit=curves.unit)
        count = (~np.isnan(curves.values)).sum(axis=1)
        if count.min(initial=curves.grid.size) == curves.grid.size:
            return curves
        if how == "smooth" and count.min() < MIN_POINTS:
            raise InputError(
                f"{name} must be observed at {MIN_POINTS} points in every row with missing='smooth', "
                f"got {count.min()} in row {first + int(count.argmin())}"
            )
        return filled(curves, how, None if basis is None else _on(basis, curves.grid, name), name=name)


def _on(basis: Eigenbasis, grid: FloatArray, name: str) -> Eigenbasis:
    if np.array_equal(grid, basis.grid):
        return basis
    low, high = basis.grid[0], basis.grid[-1]
    if grid[0] < low or grid[-1] > high:
        raise InputError(
            f"{name} must lie within the training domain [{low:g}, {high:g}], got [{grid[0]:g}, {grid[-1]:g}]"
        )
    return basis.on_grid(grid)


def _components(curves: Curves, share: float) -> Eigenbasis:
    """Components of incomplete curves; of more points than :data:`POINTS`, of their means in bins about even points."""
    values, grid = curves.values, curves.grid
    if grid.size > 2 * POINTS:
        even = np.linspace(grid[0], grid[-1], POINTS)
        place = np.rint((grid - grid[0]) / (even[1] - even[0])).astype(int)
        seen = ~np.isnan(values)
        to_bins = np.zeros((grid.size, POINTS))
        to_bins[np.arange(grid.size), place] = 1.0
        count = seen @ to_bins
        sums = np.where(seen, values, 0.0) @ to_bins
        values, grid = np.where(count > 0, sums / np.maximum(count, 1), np.nan), even
    return sc_eigenbasis(values, grid, n_components=share)


def _finite_or_nan(values: FloatArray, name: str, first: int) -> FloatArray:
    bad = np.flatnonzero(np.isinf(values))
    if bad.size:
        raise InputError(f"{name} must be finite where it is there, got {values[bad[0]]} in row {first + bad[0]}")
    return values


def _observed(curves: Curves, name: str, first: int) -> Curves:
    if np.isinf(curves.values).any():
        row = int(np.argmax(np.isinf(curves.values).any(axis=1)))
        raise InputError(f"{name} must be finite where it was observed, got an infinite value in row {first + row}")
    dark = np.isnan(curves.values).all(axis=1)
    if dark.any():
        raise InputError(f"{name} must have a value in every row, got a curve of none in row {first + np.argmax(dark)}")
    return curves


def _refuse_unobserved(curves: Curves, name: str, how: str) -> None:
    """Nothing is known of points where nobody was observed."""
    dark = np.isnan(curves.values).all(axis=0)
    if dark.any():
        at = ", ".join(f"{point:g}" for point in curves.grid[dark][:5])
        raise InputError(
            f"{name} must be observed by some curve at each grid point with missing={how!r}, got none at {at}"
            f"{', ...' if dark.sum() > 5 else ''} ({int(dark.sum())} of {dark.size} points): leave these columns out"
        )
