"""Covariates that lack entries, completed: what was learned from the training rows completes new ones.

Curves with gaps, sparse or noisy ones; and numbers that are missing, beside which an indicator says so.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fdadp._common.argument_checks import one_of
from fdadp._common.calling_language import argument
from fdadp._common.threads import one_blas_thread
from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.functional.fpca import Eigenbasis, sc_eigenbasis
from fdadp.functional.gap_filling import fill_linear, fill_smooth
from fdadp.functional.smoothing import MIN_POINTS, smooth_curves
from fdadp.functional.tables.curve_inputs import Column, check_finite
from fdadp.functional.tables.curve_sample import Curves
from fdadp.solve.fit.additive_fit import AdditiveFit, fit_gaussian
from fdadp.solve.fit.observations import Observations
from fdadp.solve.form.long_form_design import LongForm
from fdadp.terms.records import Records

MISSING_CURVES = ("auto", "raise", "linear", "smooth", "fpca")
"""What the estimators take; \"auto\" is theirs to resolve."""


def completed_response(y: Curves, how: str, about: FloatArray | None = None) -> Curves:
    """Training responses without gaps, of a fit that takes what is filled in for observed.

    Parameters
    ----------
    y : Curves
    how : {"raise", "linear", "smooth", "fpca", "gaps"}
        The last leaves gaps.
    about : ndarray of shape (n, T), optional
        Predictions about which an FPCA fills gaps: with what a curve's residuals let expect of its others.

    Raises
    ------
    InputError
        Gaps, or values that are infinite; a part of the grid on which no curve was observed, by name.
    """
    if how == "raise":
        check_finite(y, "Y", cure=cure_of(curves=("Y",)))
        return y
    _refuse_unobserved(y, "Y", "fpca" if how == "gaps" else how)
    if how == "gaps":
        return y
    offset = np.zeros_like(y.values) if about is None else about
    left = replace(y, values=y.values - offset)
    basis = _components(left, SHARES["fpca"]) if how == "fpca" and np.isnan(y.values).any() else None
    complete = filled(left, how, basis, name="Y")
    check_finite(complete, "Y")
    return replace(y, values=complete.values + offset)


def cure_of(curves: Sequence[str], numbers: Sequence[str] = (), *, others: Collection[str] = ()) -> str:
    """What to say of gaps: the treatment of curves and of numbers that lack entries, by column where both do.

    Beside `others`, columns that have a treatment already, each is named, too, and keeps its own.
    """
    lines = "fills gaps by straight lines ('smooth' and 'fpca' in other ways)"
    means = "fills in the mean and adds a term that says where"
    if others or (curves and numbers):
        own = dict(others) if isinstance(others, Mapping) else {}
        treatments = own | dict.fromkeys(curves, "linear") | dict.fromkeys(numbers, "indicator")
        said = [f"'linear' {lines}"] * bool(curves) + [f"'indicator' {means}"] * bool(numbers)
        return f"Fit with {argument('missing', treatments)}: {', '.join(said)}" if said else ""
    if curves:
        return f"Fit with {argument('missing', 'linear')}, which {lines}"
    return f"Fit with {argument('missing', 'indicator')}, which {means}" if numbers else ""


def filled(
    curves: Curves, how: str, basis: Eigenbasis | None = None, *, within_rows: bool = False, name: str = "values"
) -> Curves:
    """Curves whose gaps are filled; what was observed stays as it is.

    Parameters
    ----------
    curves : Curves
    how : str
        ``"linear"``: straight lines within a curve. ``"smooth"``: penalised B-splines, curve by curve. ``"fpca"``:
        conditional expectation under an FPCA for sparse curves (Yao, Müller & Wang 2005,
        doi:10.1198/016214504000001745).
    basis : Eigenbasis, optional
        On the grid of the curves, for conditional expectations.
    within_rows : bool
        ``"smooth"`` is the smoother with public settings (:func:`fdadp.functional.gap_filling.fill_smooth`), as in a
        private fit.
    name : str
        For messages.
    """
    gaps = np.isnan(curves.values)
    rows = gaps.any(axis=1)
    if not rows.any():
        return curves
    part = curves.values[rows]
    if how == "linear":
        found = fill_linear(part, curves.grid)
    elif within_rows:
        found = fill_smooth(part, curves.grid)
    elif basis is None:
        found = smooth_curves(part, curves.grid, name=name)
    else:
        found = basis.reconstruct(basis.conditional_scores(part))
    values: FloatArray = curves.values.copy()
    values[rows] = np.where(gaps[rows], found, part)
    return replace(curves, values=values)


def _interval(low: float, high: float) -> str:
    return f"{low:g}" if low == high else f"[{low:g}, {high:g}]"


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
    within_rows : bool
        As of :func:`filled`.
    """

    how: Mapping[str, str]
    bases: Mapping[str, Eigenbasis]
    means: Mapping[str, float]
    indicators: Mapping[str, str]
    within_rows: bool = False

    @classmethod
    def none(cls) -> Completion:
        """Nothing is completed."""
        return cls({}, {}, {}, {})

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
        if how == "smooth" and not self.within_rows and count.min() < MIN_POINTS:
            raise InputError(
                f"{name} must be observed at {MIN_POINTS} points in every row with missing='smooth', "
                f"got {count.min()} in row {first + int(count.argmin())}"
            )
        own = None if basis is None else _on(basis, curves.grid, name)
        return filled(curves, how, own, within_rows=self.within_rows, name=name)


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
        edges = np.flatnonzero(np.diff(np.concatenate(([False], dark, [False]))))
        parts = ", ".join(_interval(curves.grid[a], curves.grid[b - 1]) for a, b in edges.reshape(-1, 2))
        raise InputError(
            f"{name} must be observed by at least one curve at each grid point with missing={how!r}, got none at "
            f"{parts} ({int(dark.sum())} of {dark.size} points): leave these columns out"
        )


# How far predictions depend on the components that complete sparse curves: a jackknife over training curves.


PARTS = 10
"""Of the training curves, each of which is left out once."""


@dataclass(frozen=True)
class CompletedAgain:
    """Completions with components that do not know a part of the curves, and what the fit is with them.

    Attributes
    ----------
    completions : tuple of Completion
    coefficients : ndarray of shape (G, p)
        Of all training rows, completed anew, at the same smoothing parameters.
    """

    completions: tuple[Completion, ...]
    coefficients: FloatArray

    @classmethod
    def of(cls, loose: Records, completion: Completion, observed: Observations, fit: AdditiveFit) -> CompletedAgain:
        """Complete training rows without each part of them, and fit again.

        Parameters
        ----------
        loose : Records
            Training rows as they came.
        completion : Completion
            That of the fit.
        observed : Observations
            The responses.
        fit : AdditiveFit
            By least squares.

        Raises
        ------
        InputError
            A part of a domain where no other curve was observed.
        """
        form, part = fit.form, np.arange(loose.n) % PARTS
        level = observed.level if form.has_intercept else 0.0
        sparse = {name: how for name, how in completion.how.items() if how == "pace"}
        completions, coefficients = [], []
        with one_blas_thread():
            for left in range(min(PARTS, loose.n)):
                found = Completion.learned(loose[np.flatnonzero(part != left)], sparse)
                completions.append(replace(completion, bases={**completion.bases, **found.bases}))
                again = replace(observed, records=completions[-1](loose), features=None).below(level)
                own = fit_gaussian(form, again.system(form), fit.smoothing_parameters, loose.n).coefficients
                own[0] += level
                coefficients.append(own)
        return cls(tuple(completions), np.array(coefficients))

    def variance(self, loose: Records, form: LongForm, t: FloatArray) -> FloatArray:
        """Of linear predictors of rows as they came, by not knowing the components: shape (n, T')."""
        every = [form.predictor(c(loose), b, t) for c, b in zip(self.completions, self.coefficients, strict=True)]
        apart = np.array(every) - np.mean(every, axis=0)
        return np.asarray((len(every) - 1) / len(every) * (apart**2).sum(axis=0))
