"""Domains that are circles: 24 hours, 365 days. Where a term has one, its functions meet at the ends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fdadp._common.argument_checks import is_number
from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.functional.splines.diagonal_margins import SmoothMargin
from fdadp.functional.tables.curve_sample import Curves

SLACK = 1e-9
"""Share of the period by which points may be further apart."""


@dataclass(frozen=True)
class Cycle:
    """A period, and the argument that says it.

    Attributes
    ----------
    period : float
        Points that are so far apart are the same.
    name : str
        Of the argument, for messages.
    """

    period: float
    name: str

    @classmethod
    def of(cls, period: float | None, name: str) -> Cycle | None:
        """None where there is no period.

        Raises
        ------
        InputError
            A period that is no number above 0.
        """
        if period is None:
            return None
        if not (is_number(period) and 0 < period < np.inf):
            raise InputError(f"{name} must be a number above 0 or None, got {period!r}")
        return cls(float(period), name)

    def margin(self, points: FloatArray, what: str, k: int, degree: int = 3, *, name: str = "k") -> SmoothMargin:
        """Periodic splines that begin at the least of the points; arguments as of :meth:`SmoothMargin.periodic`.

        Parameters
        ----------
        points : ndarray
        what : str
            That they are of, for messages.
        k, degree : int
        name : str

        Raises
        ------
        InputError
            Points that do not lie within one period, or a basis that is too small.
        """
        low, high = float(points.min()), float(points.max())
        if not self.period >= (high - low) * (1 - SLACK):
            raise InputError(f"{self.name} must be at least the length of {what}, {high - low:g}, got {self.period:g}")
        return SmoothMargin.periodic(low, self.period, k, degree, name=name)


def refuse_other_circle(curves: Curves, grid: FloatArray, period: float, name: str) -> None:
    """Refuse curves that do not go once round a circle, wherever they begin.

    Parameters
    ----------
    curves : Curves
    grid : ndarray of shape (S,)
        Of the training curves.
    period : float
    name : str
        Of the column.

    Raises
    ------
    InputError
        A grid longer than the period; or one whose way from the last point to the first is longer than that of the
        training grid and than all its other steps.
    """
    own = curves.grid
    length = own[-1] - own[0]
    allowed = max(period - (grid[-1] - grid[0]), np.diff(own).max()) + 1e-6 * period
    if length > period * (1 + SLACK) or period - length > allowed:
        raise InputError(
            f"{name} must go once round its period, {period:g}, as the training curves do on "
            f"[{grid[0]:g}, {grid[-1]:g}], got [{own[0]:g}, {own[-1]:g}]"
        )
