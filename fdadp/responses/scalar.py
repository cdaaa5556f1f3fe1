"""A response that is a number: one output, and a function of no t."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError
from fdadp.functional.curves import Curves
from fdadp.functional.fpca import Eigenbasis
from fdadp.responses.functional import FunctionalResponse

__all__ = ["Scalar"]


@dataclass(frozen=True)
class Scalar:
    """Numbers as curves on one point, on the basis 1: what fits curves then fits them, and predictions have one column.

    Examples
    --------
    >>> Scalar.curves([1.0, 2.0]).values
    array([[1.],
           [2.]])
    """

    @staticmethod
    def curves(y: ArrayLike) -> Curves:
        """Numbers (n,) as curves (n, 1).

        Raises
        ------
        InputError
            More dimensions.
        """
        values = np.asarray(y, dtype=np.float64)
        if values.ndim != 1:
            raise InputError(f"y must be one-dimensional, one number a curve, got shape {values.shape}")
        return Curves(values[:, None], np.zeros(1))

    def fixed(self, n: int, mean: FloatArray, scatter: FloatArray, t: FloatArray) -> FunctionalResponse:
        """The response on its basis, as :meth:`fdadp.responses.functional.Functional.fixed`."""
        one = np.ones(1)
        basis = Eigenbasis(t, one, mean, np.ones((1, 1)), scatter[0] / n, 0.0, one)
        return FunctionalResponse(basis, basis.functions)
