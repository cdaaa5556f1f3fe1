"""A curve that acts through an integral, on a number: ``∫ X_i(s) β(s) ds``."""

from __future__ import annotations

from dataclasses import dataclass

from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.functional.records import Seen
from fdadp.functional.smooths import SmoothMargin
from fdadp.terms.functional_linear import Integral
from fdadp.terms.spec import TermDesign, TermSpec
from fdadp.terms.times_column import multiplied


@dataclass(frozen=True)
class LinearFunctional(TermSpec):
    """Effect ``∫ X(s) β(s) ds`` of a curve on a number, refund's ``lf``.

    Parameters
    ----------
    column : str
        Column of curves.
    k : int
        Number of B-splines; the penalty makes up for too many. Of 10, 15, 20, 30 and 40, twenty are the fewest that
        miss little of peaks as wide as a tenth of the domain (benchmarks/terms/lf_size.py).
    m : (int, int)
        Their degree less one, and the order of the difference penalty.
    rule : {"trapezoid", "simpson", "riemann", "simpson_legacy"}
        See :func:`fdadp.functional.quadrature.quadrature_weights`; ``"simpson_legacy"`` is refund's default, which
        ``lf`` keeps on uneven grids.
    by : str, optional
        Column of numbers that multiplies the effect, or of labels: a function for each level, with a smoothing
        parameter of its own.

    References
    ----------
    Goldsmith, Bobb, Crainiceanu, Caffo & Reich (2011), Penalized functional regression,
    doi:10.1198/jcgs.2010.10007.

    Examples
    --------
    >>> from fdadp import terms
    >>> terms.lf("X", k=30).name
    'lf(X)'
    """

    column: str
    k: int = 20
    m: tuple[int, int] = (2, 2)
    rule: str = "trapezoid"
    by: str | None = None

    @property
    def name(self) -> str:
        """As in a formula."""
        return f"lf({self.column})" + (f":{self.by}" if self.by else "")

    @property
    def columns(self) -> tuple[str, ...]:
        """The column, and the one that multiplies."""
        return (self.column, self.by) if self.by else (self.column,)

    def fixed(self, seen: Seen, t: FloatArray | None) -> TermDesign:
        """P-splines over s, on mgcv's coordinates of ``s(..., by=)``."""
        if t is not None:
            raise InputError(f"{self.name} must have a response that is a number; for curves use ff()")
        grid = seen.curves_of(self.column).grid
        over_s = SmoothMargin.pspline(grid, self.k, self.m, name=f"k of {self.name}")
        norm = over_s.row_norm(grid)
        design = Integral(
            name=f"lf({self.column})",
            columns=(self.column,),
            over_s=over_s,
            grid=grid,
            rule=self.rule,
            uneven_simpson=True,
            own_norm=norm,
            own_penalties=over_s.eigenvalues[None] * norm**2 / over_s.penalty_norm,
        )
        return multiplied(design, seen, self.by, name=self.name)
