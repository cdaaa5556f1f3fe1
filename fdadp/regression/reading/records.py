"""Responses of a regression: a column of a table, or a long table of observations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.functional.tables.curves import read_column
from fdadp.regression.reading.columns import ColumnTable, Grids, Response
from fdadp.responses import PointwiseResponse


def read_response(
    data: Any,
    name: str,
    grids: Grids | None = None,
    *,
    index: pd.Index[Any] | None = None,
    n: int | None = None,
    first: int = 0,
    defaults: Mapping[str, FloatArray] | None = None,
) -> Response:
    """Read the response of a regression, which may have gaps.

    Parameters
    ----------
    data : DataFrame or mapping of columns by name
    name : str
        A column, or a function of one: ``"log(Y)"``.
    grids : mapping of array_like, optional
        Points of curves that are plain arrays.
    index : Index, optional
        Labels of the rows of the covariates, which those of the response must not contradict.
    n : int, optional
        Number of rows of the covariates.
    first : int
        Number of the first row, for messages.
    defaults : mapping of ndarray, optional
        Points of the training curves, for curves that come without any.

    Returns
    -------
    Curves, ndarray of shape (n,) or PointwiseResponse
        Curves have NaN where they were not observed; irregular curves keep points of their own.

    Raises
    ------
    InputError
        No such column, another number of rows or other labels than the covariates, a missing or infinite number, an
        infinite value of a curve, a label that is missing, nothing observed at all.
    """
    return ColumnTable(data, grids, defaults=defaults, first=first, gaps=True).response(name, n=n, index=index)


# A response given as a long table, one observation a row: record, point, value.


def read_long_response(frame: Any, n: int, index: pd.Index[Any] | None = None, name: str = "Y") -> PointwiseResponse:
    """Read a long table of observations, as of ``fit(data, response=frame)``.

    Parameters
    ----------
    frame : DataFrame of three columns
        In this order, whatever their names: the record (a row label of the covariates; the number of the row, from 0,
        where these have no labels), the point t, the value. Rows in any order; a missing value was not observed.
    n : int
        Number of rows of the covariates.
    index : Index, optional
        Labels of the rows of the covariates.
    name : str
        Of the response, for messages.

    Raises
    ------
    InputError
        Another number of columns, text in numbers, a record that the covariates do not have, labels of covariates
        that repeat.
    """
    if not isinstance(frame, pd.DataFrame) or frame.shape[1] != 3:
        got = f"{frame.shape[1]} columns" if isinstance(frame, pd.DataFrame) else type(frame).__name__
        raise InputError(f"{name} as a long table must be a data frame of three columns (record, t, value), got {got}")
    labels = pd.RangeIndex(n) if index is None else index
    if not labels.is_unique:
        again = labels[labels.duplicated()][0]
        raise InputError(f"row labels of data must differ where {name} is a long table, got {again!r} more than once")
    record = labels.get_indexer(pd.Index(frame.iloc[:, 0]))
    unknown = np.flatnonzero(record < 0)
    if unknown.size:
        i = int(unknown[0])
        raise InputError(
            f"{name} must be of records that data have, by their row labels such as {labels[0]!r}, "
            f"got {frame.iloc[:, 0].tolist()[i]!r} in row {i} of column {frame.columns[0]!r}"
        )
    columns = []
    for j in (1, 2):
        column = read_column(frame.iloc[:, j], str(frame.columns[j]))
        if column.kind != "numbers":
            raise InputError(f"column {frame.columns[j]!r} of {name} must hold numbers, got {column.kind}")
        columns.append(np.asarray(column.values))
    t, y = columns
    return PointwiseResponse.of(record, t, y, n, name)
