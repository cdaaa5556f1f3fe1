"""Private summaries: of curves (mean with bands, covariance and eigenfunctions), and of numbers and classes."""

from fdadp.summaries.components import PrivateFPCA
from fdadp.summaries.counts import private_count, private_cross_table, private_histogram
from fdadp.summaries.estimates import Estimates
from fdadp.summaries.mean import PrivateMean
from fdadp.summaries.scalars import private_mean, private_quantiles, private_variance
from fdadp.summaries.suggested import SuggestedBounds, suggest_bounds
from fdadp.summaries.survival import private_survival
from fdadp.summaries.table1 import PrivateTable1

__all__ = [
    "Estimates",
    "PrivateFPCA",
    "PrivateMean",
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
