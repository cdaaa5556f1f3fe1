"""A curve that acts through the integral of a smooth surface, on a number: ``∫ F{X_i(s), s} ds``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.functional.records import Seen
from fdadp.terms.functional_additive import additive
from fdadp.terms.spec import TermDesign, TermSpec
from fdadp.terms.times_column import multiplied


@dataclass(frozen=True)
class AdditiveFunctional(TermSpec):
    """Effect ``∫ F{X(s), s} ds`` of a curve on a number, refund's ``af``.

    Parameters
    ----------
    column : str
        Column of curves.
    k : (int, int)
        Numbers of B-splines over s and x.
    m : (int, int)
        Of both, degree less one and order of the difference penalty.
    rule : {"trapezoid", "simpson", "riemann", "simpson_legacy"}
        See :func:`fdadp.functional.quadrature.quadrature_weights`; ``"simpson_legacy"`` is refund's default, which
        ``af`` keeps on uneven grids.
    by : str, optional
        Column of numbers that multiplies the effect, or of labels: a surface for each level.
    period : float, optional
        Makes F periodic in s, as in :class:`~fdadp.terms.functional_additive.FunctionalAdditive`.
    x_transform : {None, "quantile"}
        ``"quantile"`` takes X(s) by its rank among the training curves at s: refund's ``Qtransform``.

    References
    ----------
    McLean, Hooker, Staicu, Scheipl & Ruppert (2014), Functional generalized additive models,
    doi:10.1080/10618600.2012.729985.

    Examples
    --------
    >>> from fdadp import terms
    >>> terms.af("X", k=(10, 8)).name
    'af(X)'
    """

    column: str
    k: tuple[int, int] = (8, 8)
    m: tuple[int, int] = (2, 2)
    rule: str = "trapezoid"
    by: str | None = None
    period: float | None = None
    x_transform: str | None = None

    @property
    def name(self) -> str:
        """As in a formula."""
        return f"af({self.column})" + (f":{self.by}" if self.by else "")

    @property
    def columns(self) -> tuple[str, ...]:
        """The column, and the one that multiplies."""
        return (self.column, self.by) if self.by else (self.column,)

    def fixed(self, seen: Seen, t: FloatArray | None) -> TermDesign:
        """P-splines over s and the range of X; the scale of their penalties takes a pass over the curves."""
        if t is not None:
            raise InputError(f"{self.name} must have a response that is a number; for curves use sff()")
        options: Any = {"period": self.period, "x_transform": self.x_transform, "uneven_simpson": True}
        design = additive(f"af({self.column})", self.column, seen, self.k, self.m, self.rule, **options)
        return multiplied(design, seen, self.by, name=self.name)
