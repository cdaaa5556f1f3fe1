"""Private summaries: of curves (mean with bands, covariance and eigenfunctions), and of numbers and classes."""

from fdadp.summaries.curve_summaries import PrivateFPCA, PrivateMean
from fdadp.summaries.multilevel import PrivateMultilevelFPCA
from fdadp.summaries.opening import Estimates
from fdadp.summaries.scalars import (
    SuggestedBounds,
    private_count,
    private_cross_table,
    private_histogram,
    private_mean,
    private_quantiles,
    private_variance,
    suggest_bounds,
)
from fdadp.summaries.survival import private_survival
from fdadp.summaries.table1 import PrivateTable1

__all__ = [
    "Estimates",
    "PrivateFPCA",
    "PrivateMean",
    "PrivateMultilevelFPCA",
    "PrivateTable1",
    "SuggestedBounds",
    "private_count",
    "private_cross_table",
    "private_histogram",
    "private_mean",
    "private_quantiles",
    "private_survival",
    "private_variance",
    "suggest_bounds",
]
