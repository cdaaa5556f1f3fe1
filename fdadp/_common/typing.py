"""Type aliases shared by the package."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]
ArrayLike = npt.ArrayLike
CurveData = Any
"""What users may pass as curves: FDataGrid, FDataBasis, FDataIrregular, DataFrame or array (n, S)."""
