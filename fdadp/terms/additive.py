"""The additive term ``∫ F{X(s), s, t} ds`` as a user asks for it; :mod:`fdadp.terms.surface` is it on known bases."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fdadp._common.checks import one_of, whole
from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.functional.margins import Margin
from fdadp.functional.quadrature import RULES
from fdadp.terms.sizes import basis_sizes, check_size
from fdadp.terms.surface import AdditiveTerm

__all__ = ["Additive", "AdditiveTerm"]


@dataclass(frozen=True)
class Additive:
    """The additive term before the range of its covariate is known.

    Parameters
    ----------
    column : str
        Name of the covariate.
    n_basis_x, n_basis_s : int or "auto"
        Numbers of B-splines over its values and its domain (:func:`fdadp.terms.sizes.basis_sizes`).
    degree, penalty_order : int
        Of the splines, and of the differences that are penalised.
    quadrature : str
        Rule for ∫ ds, see :func:`fdadp.functional.quadrature.quadrature_weights`.
    period : float, optional
        Length of a periodic domain.

    Raises
    ------
    InputError
        Sizes, degree or order that do not fit together, an unknown rule, a period that is not positive.
    """

    column: str = "X"
    n_basis_x: int | str = "auto"
    n_basis_s: int | str = "auto"
    degree: int = 3
    penalty_order: int = 2
    quadrature: str = "trapezoid"
    period: float | None = None

    def __post_init__(self) -> None:
        one_of(self.quadrature, "quadrature", RULES)
        for name in ("n_basis_x", "n_basis_s"):
            least = check_size(getattr(self, name), name, self.degree)
            if not 1 <= whole(self.penalty_order, "penalty_order") < least:
                raise InputError(f"penalty_order must be at least 1 and below {name}, got {self.penalty_order!r}")
        period = self.period
        if period is not None and not (isinstance(period, (int, float, np.number)) and 0 < period < np.inf):
            raise InputError(f"period_s must be a number above 0 or None, got {period!r}")

    def fixed(self, grid: FloatArray, x_range: tuple[float, float], n: int | None = None) -> AdditiveTerm:
        """The term on splines over the range and the domain of its curves, `n` of them where that is known."""
        over_x, over_s = basis_sizes((self.n_basis_x, self.n_basis_s), n, grid.size, self.degree)
        x = Margin.pspline(*x_range, over_x, degree=self.degree, order=self.penalty_order, name="n_basis_x")
        s = self._over_s(grid, over_s)
        return AdditiveTerm(x, s, grid, x_range, self.quadrature, self.period, column=self.column)

    def standard(self, grid: FloatArray, x_range: tuple[float, float], over_x: int, over_s: int) -> AdditiveTerm:
        """The term on standardised curves on [0, 1], for a private fit: on numbers of splines that are public."""
        x = Margin.pspline(*x_range, over_x, margin=0.0)
        s = Margin.pspline(0.0, 1.0, over_s, margin=0.0)
        return AdditiveTerm(x, s, grid, x_range, column=self.column)

    def _over_s(self, grid: FloatArray, size: int) -> Margin:
        if self.period is None:
            return Margin.pspline(
                grid[0], grid[-1], size, degree=self.degree, order=self.penalty_order, name="n_basis_s"
            )
        length = float(grid[-1] - grid[0])
        if not self.period >= length * (1 - 1e-9):
            raise InputError(f"period_s must be at least the length of the grid of X, {length:g}, got {self.period:g}")
        return Margin.cyclic(grid[0], float(self.period), size, degree=self.degree, name="n_basis_s")
