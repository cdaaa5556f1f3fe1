"""Private summaries of a sample of curves: mean with bands, covariance and eigenfunctions."""

from fdadp.summaries.components import PrivateFPCA
from fdadp.summaries.mean import PrivateMean

__all__ = ["PrivateFPCA", "PrivateMean"]
