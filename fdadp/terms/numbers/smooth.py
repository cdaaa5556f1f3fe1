"""A smooth function of a number: ``f(z, t)``, ``f(z)``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from fdadp._common.checks import whole
from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.functional.splines.covariate_margins import Order, covariate_margin
from fdadp.functional.splines.margins import SmoothMargin
from fdadp.functional.tables.records import Records, TrainingSummary
from fdadp.terms.spec import TermDesign, TermSpec, along_response, margin_rows, own_norm, size_along, unsized
from fdadp.terms.times_column import is_numeric, multiplied


@dataclass(frozen=True)
class Smooth(TermSpec):
    """Effect ``f(z, t)`` of a number that sums to zero over the training rows at each t; of a scalar response ``f(z)``.

    Parameters
    ----------
    column : str
        Column of numbers.
    k : int or (int, int), optional
        Number of functions of z, before the constraint, and of B-splines along the response; one number is of z.
        Default: 8, and 15 along the response, or as many as it has points; ``"refund"``: 8 and 5. Where the effect is
        the same at all t: 10, as in mgcv.
    bs : {"tp", "ps", "cr", "cc"}
        Basis in z: thin plate, P-spline, cubic regression spline, cyclic.
    m : int or pair, optional
        Orders as in mgcv: for z and for the response, each a number or, of P-splines, a pair of degree less one and
        order of differences; one number is for both. Default: 2 and 1, refund's. Where the effect is the same at all
        t, of z alone.
    by : str, optional
        Column that multiplies the effect: of numbers (then there is no constraint: ``f(z, t)`` is the slope), or of
        labels: a function for each level, each with smoothing parameters of its own.
    constant : bool
        The same at all t, refund's ``c(s(z))``.
    period : (float, float), optional
        With ``bs="cc"``: the two ends that meet; default: the least and the largest value.

    References
    ----------
    Wood (2017), Generalized Additive Models, chapter 5, doi:10.1201/9781315370279. refund's ``pffr``: ``s(z)``, which
    is mgcv's ``ti(z, t, mc = c(TRUE, FALSE))``.

    Examples
    --------
    >>> from fdadp import terms
    >>> terms.s("age", k=8, bs="cr").name
    's(age)'
    """

    column: str
    k: int | tuple[int, int] | Literal["refund"] | None = None
    bs: str = "tp"
    m: Any = None
    by: str | None = None
    constant: bool = False
    period: tuple[float, float] | None = None

    @property
    def name(self) -> str:
        """As in a formula."""
        effect = f"s({self.column})" + (f":{self.by}" if self.by else "")
        return f"c({effect})" if self.constant else effect

    @property
    def columns(self) -> tuple[str, ...]:
        """The column, and the one that multiplies."""
        return (self.column, self.by) if self.by else (self.column,)

    def fixed(self, seen: TrainingSummary, t: FloatArray | None) -> TermDesign:
        """A margin of mgcv's in z; sums to zero unless a number multiplies it."""
        z = seen.observed_numbers(self.column)
        varies = t is not None and not self.constant
        centred = self.by is None or not is_numeric(seen, self.by)
        k, m, k_t, m_t = self._sizes(t if varies else None)
        over_z = covariate_margin(
            z, k, self.bs, m, name=self.name, tensor=varies, sums_to_zero=varies and centred, period=self.period
        )
        along = along_response(t, k_t, m_t, values=True, constant=not varies, name=f"k of {self.name}")
        norm = own_norm(over_z.row_sums(z), seen, **along)
        if centred and not varies:
            over_z = over_z.centred(z)
        design = _SmoothDesign(
            name=f"s({self.column})",
            columns=(self.column,),
            over_z=over_z,
            own_norm=norm,
            own_penalties=over_z.eigenvalues[None] * norm**2 / over_z.penalty_norm,
            range=(float(z.min()), float(z.max())),
            **along,
        )
        return multiplied(design, seen, self.by, name=self.name)

    def with_refund_sizes(self) -> Smooth:
        """The same with refund's numbers of functions, where it does not give its own."""
        own: Any = 8 if unsized(self.k) else self.k
        return self if self.constant or isinstance(own, tuple | list) else replace(self, k=(own, 5))

    def _sizes(self, t: FloatArray | None) -> tuple[int, Order, int, tuple[int, int]]:
        if t is None:
            if isinstance(self.k, tuple):
                raise InputError(
                    f"k of {self.name} must be one number where the effect is the same at all t, got {self.k}"
                )
            return 10 if unsized(self.k) else self.k, self.m, 5, (1, 1)  # type: ignore[return-value]
        pairs = [("k", None if unsized(self.k) else self.k), ("m", self.m)]
        for argument, value in pairs:
            if isinstance(value, (tuple, list)) and len(value) != 2:
                raise InputError(
                    f"{argument} of {self.name} must be a number or a pair, for z and for t, got {value!r}"
                )
            if not isinstance(value, (tuple, list)) and value is not None:
                whole(value, f"{argument} of {self.name}", least=None)
        own: Any = self.with_refund_sizes().k
        k, k_t = (
            own if isinstance(self.k, tuple | list) or self.k == "refund" else (own[0], size_along(None, own[1], t))
        )
        m, m_t = self.m if isinstance(self.m, (tuple, list)) else (2, 1) if self.m is None else (self.m, self.m)
        return k, tuple(m) if isinstance(m, list) else m, k_t, (m_t, m_t) if isinstance(m_t, int) else tuple(m_t)


@dataclass(frozen=True, kw_only=True)
class _SmoothDesign(TermDesign):
    over_z: SmoothMargin
    range: tuple[float, float]

    @property
    def own_margins(self) -> tuple[SmoothMargin, ...]:
        return (self.over_z,)

    def features(self, records: Records, t: FloatArray | None = None) -> FloatArray:
        return margin_rows(self.over_z, records.numbers(self.columns[0]))

    @property
    def axes(self) -> dict[str, FloatArray | tuple[Any, ...]]:
        return {self.columns[0]: np.linspace(*self.range, 100)}

    def effect(self, *points: Any) -> FloatArray:
        return self.over_z.design(points[0])
