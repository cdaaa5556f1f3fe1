"""The mean of a response: a constant, and a centred curve ``μ(t)``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.functional.tables.records import Records, TrainingSummary
from fdadp.terms.spec import TermDesign, TermSpec, along_response, no_penalties


@dataclass(frozen=True, kw_only=True)
class _Ones(TermDesign):
    """The feature 1."""

    def features(self, records: Records, t: FloatArray | None = None) -> FloatArray:
        return np.ones((records.n, 1))


def ones(name: str) -> TermDesign:
    """The feature 1, the same at all t."""
    return _Ones(name=name, columns=(), own_penalties=no_penalties(1))


@dataclass(frozen=True)
class Intercept(TermSpec):
    """A constant."""

    name = "(Intercept)"
    columns = ()

    def fixed(self, seen: TrainingSummary, t: FloatArray | None) -> TermDesign:
        """The feature 1, the same at all t."""
        return ones(self.name)


@dataclass(frozen=True)
class MeanCurve(TermSpec):
    """The mean curve ``μ(t)`` less its mean: refund's ``s(t, bs="ps", k=20, m=c(2, 1))``.

    Parameters
    ----------
    k : int
        Number of B-splines.
    m : (int, int)
        Degree less one, and order of the difference penalty.
    """

    k: int = 20
    m: tuple[int, int] = (2, 1)

    name = "s(t)"
    columns = ()

    def fixed(self, seen: TrainingSummary, t: FloatArray | None) -> TermDesign:
        """A P-spline that sums to zero over the points of the response."""
        return _Ones(
            name=self.name,
            columns=(),
            own_penalties=no_penalties(1),
            **along_response(t, self.k, self.m, centred=True, name="k of the mean curve"),
        )
