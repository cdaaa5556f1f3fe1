"""A term: what one covariate contributes to the mean of a response, linear in coefficients."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from fdadp._common.typing import FloatArray
from fdadp.functional.curves import Curves

__all__ = ["Term"]


class Term(ABC):
    """What one covariate contributes: a row of features for each curve, times coefficients.

    Attributes
    ----------
    column : str
        Name of the covariate.
    separable : bool
        Whether the features are the same for every t, so that a contribution is ``rows @ coefficients @ functions``.
    """

    column: str
    separable: ClassVar[bool] = True

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Length of a feature row, q."""

    @abstractmethod
    def rows(self, x: Curves) -> FloatArray:
        """Feature rows of complete curves, shape (n, q): each from its own curve alone, on any grid over the domain."""

    @abstractmethod
    def to_features(self, coefficients: FloatArray) -> FloatArray:
        """Coefficients of the features (q, K), from those that the term publishes (K, ...)."""
