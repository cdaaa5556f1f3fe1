"""What a loader returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fdadp._common.typing import FloatArray


@dataclass(frozen=True, eq=False, repr=False)
class FunctionalDataset:
    """Paired curves with what else is known about each pair.

    Attributes
    ----------
    name : str
    X, Y : FDataGrid, or DataFrame where ``as_frame=True`` was asked for
        Predictor curves (n, S) and response curves (n, T), rows in the same order.
    covariates : DataFrame of shape (n, q)
        Scalar columns, one row per pair of curves; its index is that of the frames.
    groups : ndarray of shape (n,) or None
        The person a row belongs to: the privacy unit. ``None`` where rows are not people.
    units : mapping
        The unit of the curves, of their arguments and of the covariates.
    source : str
        Where the data come from and how to cite them.
    """

    name: str
    X: Any
    Y: Any
    covariates: pd.DataFrame
    groups: npt.NDArray[Any] | None
    units: Mapping[str, str]
    source: str

    def __repr__(self) -> str:
        people = "" if self.groups is None else f" of {len(np.unique(self.groups))} people"
        return f"<{type(self).__name__} {self.name}: {len(self.covariates)} pairs of curves{people}>"


@dataclass(frozen=True, eq=False, repr=False)
class WeatherDataset(FunctionalDataset):
    """Canadian weather: a :class:`FunctionalDataset` with the precipitation in mm.

    Attributes
    ----------
    precipitation : FDataGrid or DataFrame
        Mean daily precipitation in mm, the zeros as they are (35, 365).
    """

    precipitation: Any

    @property
    def stations(self) -> pd.DataFrame:
        """Place, province, region, latitude and longitude of each station: the covariates."""
        return self.covariates


def make_curves(
    values: FloatArray, grid: FloatArray, *, name: str, argument: str, index: pd.Index[Any] | None = None
) -> Any:
    """Return an ``FDataGrid`` with labels, or a data frame where an `index` is given."""
    if index is not None:
        return pd.DataFrame(values, index=index, columns=pd.Index(grid, name=argument))
    from skfda import FDataGrid

    return FDataGrid(values, grid_points=grid, dataset_name=name, argument_names=(argument,), coordinate_names=(name,))
