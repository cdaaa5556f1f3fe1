"""Random effects of groups: a number for each group, or a curve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.functional.tables.records import Records, TrainingSummary
from fdadp.terms.levels import Levels
from fdadp.terms.spec import TermDesign, TermSpec, along_response


@dataclass(frozen=True)
class RandomEffect(TermSpec):
    """A random effect of each level of a factor; a level that was not seen in training has effect zero.

    Parameters
    ----------
    column : str
        Column of labels, or of whole numbers that are codes.
    k : int, optional
        A curve for each level, with that many B-splines along the response; default: a number, the same at all t.
        Every level has coefficients of its own, so that time grows with the third power of their number p and memory
        with the second: some hundreds of levels are no trouble. A fit that would take more memory than is free, some
        90 p² bytes, is refused.
    m : (int, int)
        Degree less one of the B-splines, and order of the difference penalty.

    References
    ----------
    Wood (2017), Generalized Additive Models, section 5.8, doi:10.1201/9781315370279. refund's ``pffr``:
    ``c(s(g, bs = "re"))`` for numbers, ``s(g, bs = "re")`` for curves. Of curves mgcv deletes coordinates that the mean
    curve has too; here all stay, because their penalties tell them apart.

    Examples
    --------
    >>> from fdadp import terms
    >>> terms.re("person").name
    're(person)'
    """

    column: str
    k: int | None = None
    m: tuple[int, int] = (1, 1)

    @property
    def name(self) -> str:
        """As in a formula."""
        return f"re({self.column})"

    @property
    def columns(self) -> tuple[str, ...]:
        """The column."""
        return (self.column,)

    def fixed(self, seen: TrainingSummary, t: FloatArray | None) -> TermDesign:
        """A feature for each level, with the identity as penalty."""
        levels = Levels.of(seen, self.column)
        along = along_response(t, self.k or 1, self.m, values=True, constant=self.k is None, name=f"k of {self.name}")
        return _Groups(
            name=self.name, columns=self.columns, levels=levels, own_penalties=np.ones((1, len(levels))), **along
        )


def levels_of(design: TermDesign) -> Levels | None:
    """The levels of a random effect; None of another term."""
    return design.levels if isinstance(design, _Groups) else None


@dataclass(frozen=True, kw_only=True)
class _Groups(TermDesign):
    levels: Levels

    def features(self, records: Records, t: FloatArray | None = None) -> FloatArray:
        return self.levels.indicators(records, unseen=True)

    @property
    def axes(self) -> dict[str, FloatArray | tuple[Any, ...]]:
        return {self.columns[0]: self.levels.levels}

    def effect(self, *points: Any) -> FloatArray:
        return np.eye(len(self.levels))[self.levels.codes(points[0])]
