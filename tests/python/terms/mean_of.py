"""A term of a user's own, by docs/extend/term.md alone: the mean of a curve over its domain, private too."""

from dataclasses import dataclass

import numpy as np

from fdadp.functional.quadrature import quadrature_weights
from fdadp.privacy import rowwise_matmul
from fdadp.private.public.column_ranges import unit_grid
from fdadp.private.whitened.white_term import WhiteTerm
from fdadp.terms.spec import TermDesign, TermSpec, along_response, no_penalties


def means(x):
    weights = quadrature_weights((x.grid - x.grid[0]) / (x.grid[-1] - x.grid[0]))
    return rowwise_matmul(x.values, weights[:, None])


@dataclass(frozen=True)
class MeanOf(TermSpec):
    """The mean of a curve over its domain, times a function of t."""

    column: str

    function = "mean_of"

    def fixed(self, seen, t):
        seen.curves_of(self.column)
        along = along_response(t, k=5, m=(2, 1))
        return MeanDesign(name=self.name, columns=self.columns, own_penalties=no_penalties(1), **along)


@dataclass(frozen=True, kw_only=True)
class MeanDesign(TermDesign):
    def features(self, records, t=None):
        return means(records.curves(self.columns[0]))


@dataclass(frozen=True, kw_only=True)
class WhiteMean(WhiteTerm):
    sd: float

    def features(self, seen, count):
        return (means(seen[self.columns[0]]) / self.sd)[:, :count]

    def effect(self, columns, count, *points):
        return np.full((1, 1), 1 / (self.sd * columns[self.columns[0]].scale))[:, :count]


def white_mean(asked, spec):
    grid = unit_grid(asked.curves_of(spec.column).grid)
    sd = (asked.prior.x.standard(grid) @ quadrature_weights(grid)).std()
    return WhiteMean(name=spec.name, columns=spec.columns, shares=np.ones(1), sd=sd)
