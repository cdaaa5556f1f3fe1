"""Cohorts drawn from what a private fit released: no person's data, and no further cost.

Columns are drawn independently: curves from the public prior at their released location and scale, numbers from a
normal law of released mean and spread within their public bounds, labels evenly from their public levels. Of how
columns hang together, and of the shapes of curves, the fit released nothing. Responses have the fitted means and errors
of the released covariance, profile and tails.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.functional.tables.sample import Curves
from fdadp.private.public.columns import Column, CurvesColumn, LabelColumn, NumberColumn, unit_grid
from fdadp.private.public.prior import CurvePrior
from fdadp.solve.fit.residuals import PointwiseVariance

TINY, SEEDS = 1e-300, 2**31
"""Keeps 0/0 from arising; number of seeds."""
PER_LENGTH = 10
"""Curves of each correlation length."""


@dataclass(frozen=True, kw_only=True)
class ResidualLaw(PointwiseVariance):
    """Law of responses about their means.

    Attributes
    ----------
    functions : ndarray of shape (T, K)
        Response functions.
    covariance : ndarray of shape (K, K)
        Of the coefficients of errors on them.
    """

    functions: FloatArray
    covariance: FloatArray

    def draw(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Errors of n responses, shape (n, T): smooth and white parts, with the released variance at each point."""
        values, vectors = np.linalg.eigh(self.covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        smooth = self.functions @ root
        within = np.einsum("tk,tk->t", smooth, smooth)
        share = np.minimum(1.0, self.values / np.maximum(within, TINY))
        errors = rng.normal(size=(n, root.shape[1])) @ smooth.T * np.sqrt(share)
        white = np.sqrt(np.maximum(self.values - within * share, 0.0))
        errors = errors + rng.normal(size=errors.shape) * white
        if self.inverse_dof > 0:  # one factor a curve: its values at all points are extreme together
            dof = 1 / self.inverse_dof
            errors = errors / np.sqrt(rng.chisquare(dof, (n, 1)) / dof)
        return np.asarray(errors * self.scale)


def draw_column(column: Column, prior: CurvePrior, n: int, rng: np.random.Generator) -> Any:
    """Entries of one column: Curves, numbers (n,), or labels (n,)."""
    if isinstance(column, CurvesColumn):
        # Lengths are drawn anew for each batch of curves: as many laws as in the prior.
        own = replace(prior, seed=int(rng.integers(SEEDS)))
        lengths = max(math.ceil(n / PER_LENGTH), 1)
        drawn = own.curves(unit_grid(column.grid), PER_LENGTH, lengths)
        chosen = rng.permutation(len(drawn))[:n] if len(drawn) >= n else rng.integers(len(drawn), size=n)
        return Curves(column.location + column.scale * drawn[chosen], column.grid, gridded=True)
    if isinstance(column, NumberColumn):
        mid, half = sum(column.bounds) / 2, (column.bounds[1] - column.bounds[0]) / 2
        unit = rng.normal(column.location, column.scale, n)
        return mid + half * np.clip(unit, -1.0, 1.0)
    assert isinstance(column, LabelColumn)
    return np.array(column.levels, dtype=object)[rng.integers(len(column.levels), size=n)]
