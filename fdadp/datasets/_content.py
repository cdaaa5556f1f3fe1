"""Is this the published data set? Checksums of decoded values, whatever file they came in."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Columns = Mapping[str, npt.NDArray[Any]]
"""A data set as decoded: name of a column (or of a block of curves) -> array with one row per record."""

MISSING = np.iinfo(np.int64).min


def content_sha256(columns: Columns) -> str:
    """SHA-256 of the values of a data set, independent of the file format they came in.

    Numbers enter as multiples of 1e-9, little-endian 64-bit, row by row, with the shape; a missing value is the
    smallest integer; text enters as UTF-8. The rounding is needed because R's and Python's readers of
    decimal text differ in the last bit of a few numbers; 1e-9 is far below the resolution of any of the data.

    Parameters
    ----------
    columns : mapping of str to ndarray
        Taken in alphabetical order of the names.

    Returns
    -------
    str
        64 hexadecimal digits.
    """
    digest = hashlib.sha256()
    for name in sorted(columns):
        column = np.asarray(columns[name])
        digest.update(f"{name}{column.shape}".encode())
        if column.dtype.kind in "biuf":
            values = column.astype(np.float64)
            missing = np.isnan(values)
            scaled = np.rint(np.where(missing, 0.0, values) * 1e9).astype("<i8")
            digest.update(np.where(missing, MISSING, scaled).astype("<i8").tobytes(order="C"))
        else:
            digest.update("\n".join(str(value) for value in column.ravel()).encode())
    return digest.hexdigest()
