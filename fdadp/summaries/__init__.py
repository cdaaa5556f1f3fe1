"""Private summaries: of curves (mean with bands, covariance and eigenfunctions), and of numbers and classes."""

from fdadp.summaries.cohort_of_columns import Estimates
from fdadp.summaries.mean_and_fpca import PrivateFPCA, PrivateMean
from fdadp.summaries.means_quantiles_counts import (
    SuggestedBounds,
    private_count,
    private_cross_table,
    private_histogram,
    private_mean,
    private_quantiles,
    private_variance,
    suggest_bounds,
)
from fdadp.summaries.multilevel_fpca import PrivateMultilevelFPCA
from fdadp.summaries.survival_curves import private_survival
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
