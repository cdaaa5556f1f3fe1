"""Missing values and irregular curves: fill the gaps of each curve, leave what was observed as it is."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from fdadp._common.door import argument
from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.functional.curves import Curves, check_finite
from fdadp.functional.fpca import FPCA, Eigenbasis
from fdadp.functional.gaps import fill_linear, fill_smooth
from fdadp.functional.smoothing import smooth_curves

__all__ = ["MISSING", "MissingValues", "cure_of", "filled"]

MISSING = ("auto", "raise", "linear", "smooth", "fpca")
"""What the estimators take; \"auto\" is theirs to resolve."""


@dataclass(eq=False, repr=False)
class MissingValues:
    """The treatment of missing values that a model was fitted with.

    Parameters
    ----------
    how : {"raise", "linear", "smooth", "fpca"}
        ``"linear"``: straight lines within a curve. ``"smooth"``: penalised B-splines, curve by curve. ``"fpca"``:
        conditional expectation under an FPCA for sparse curves (Yao, Müller & Wang 2005,
        doi:10.1198/016214504000001745), for X that of the training curves.
    x_basis : Eigenbasis, optional
        Of X, where it was fitted.
    within_rows : bool
        ``"smooth"`` is the smoother with public settings (:func:`fdadp.functional.gaps.fill_smooth`), as in a private
        fit.
    """

    how: str
    x_basis: Eigenbasis | None = None
    within_rows: bool = field(default=False, kw_only=True)

    def fit_x(self, x: Curves) -> Curves:
        """Return the training predictors without gaps; remember what new curves will need.

        Raises
        ------
        InputError
            A part of the grid on which no curve was observed, by name; also from :meth:`complete_y`.
        """
        self.refuse_unobserved(x, "X")
        if self.how == "fpca" and np.isnan(x.values).any():
            self.x_basis = _sparse_basis(x)
        return self.complete_x(x)

    def complete_x(self, x: Curves) -> Curves:
        """Return predictor curves without gaps."""
        return self._complete(x, self.x_basis, "X")

    def complete_y(self, y: Curves, about: FloatArray | None = None) -> Curves:
        """Return the training responses without gaps.

        Parameters
        ----------
        y : Curves
        about : ndarray of shape (n, T), optional
            Predictions about which an FPCA fills gaps: with what a curve's residuals let expect of its others.
        """
        self.refuse_unobserved(y, "Y")
        if self.how != "fpca" or not np.isnan(y.values).any():
            return self._complete(y, None, "Y")
        offset = np.zeros_like(y.values) if about is None else about
        residuals = replace(y, values=y.values - offset)
        complete = self._complete(residuals, _sparse_basis(residuals), "Y")
        return replace(y, values=complete.values + offset)

    def refuse_unobserved(self, curves: Curves, name: str) -> None:
        """Nothing is known of curves where nobody was observed; a smoother would go on in a straight line."""
        if self.how == "raise":
            return
        dark = np.isnan(curves.values).all(axis=0)
        if dark.any():
            edges = np.flatnonzero(np.diff(np.concatenate(([False], dark, [False]))))
            parts = ", ".join(_interval(curves.grid[a], curves.grid[b - 1]) for a, b in edges.reshape(-1, 2))
            raise InputError(
                f"{name} must be observed by at least one curve at each grid point with missing={self.how!r}, got none "
                f"at {parts} ({int(dark.sum())} of {dark.size} points): leave these columns out"
            )

    def _complete(self, curves: Curves, basis: Eigenbasis | None, name: str) -> Curves:
        if self.how == "raise":
            check_finite(curves, name, cure=cure_of(curves=(name,)))
            return curves
        own = basis if basis is None or np.array_equal(basis.grid, curves.grid) else basis.on_grid(curves.grid)
        complete = filled(curves, self.how, own, within_rows=self.within_rows)
        check_finite(complete, name)
        return complete


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
        As of :class:`MissingValues`.
    basis : Eigenbasis, optional
        On the grid of the curves, for conditional expectations.
    within_rows : bool
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


def _sparse_basis(curves: Curves) -> Eigenbasis:
    basis: Eigenbasis = FPCA(n_components=0.99, method="sc").fit(curves.values, t=curves.grid).basis_
    return basis
