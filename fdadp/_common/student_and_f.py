"""Laws of t and F statistics by functions of ``scipy.special``; ``scipy.stats`` takes half a second to load."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import chdtrc, fdtrc, ndtr, ndtri, stdtr, stdtrit

__all__ = ["f_beyond", "ndtr", "ndtri", "student_beyond", "student_quantile"]


def student_quantile(probability: float, degrees: Any) -> Any:
    """Quantile of Student's law, of the normal law where `degrees` are infinite."""
    normal = np.isinf(degrees)
    return np.where(normal, ndtri(probability), stdtrit(np.where(normal, 1.0, degrees), probability))


def student_beyond(value: Any, degrees: Any) -> Any:
    """Probability of a larger value by Student's law, by the normal law where `degrees` are infinite."""
    normal = np.isinf(degrees)
    return np.where(normal, ndtr(-np.asarray(value)), stdtr(np.where(normal, 1.0, degrees), -np.asarray(value)))


def f_beyond(value: float, rank: int, degrees: float) -> float:
    """Probability of a larger F statistic; of χ² over its rank where `degrees` are infinite."""
    return float(chdtrc(rank, rank * value) if np.isinf(degrees) else fdtrc(rank, degrees, value))
