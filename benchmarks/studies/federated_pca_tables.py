"""Tables for principal components (Australian, CNAE-9, Diabetes, German, Ionosphere, ISOLET). Never bundled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fdadp.datasets import TableDataset
from fdadp.datasets._data_locations import Columns, find_data, in_folder
from fdadp.errors import FileFormatError, InputError

COMPONENT_TABLES = {
    "australian": (
        "J. R. Quinlan, Statlog (Australian Credit Approval), UCI Machine Learning Repository.",
        "2c8d155cafaa79b3290396901b9ff5442b5595e2bb52de0a72b16bf449ee3e19",
    ),
    "cnae9": (
        "P. M. Ciarelli, E. Oliveira & E. O. T. Salles (2012), CNAE-9, UCI Machine Learning Repository.",
        "4459bc78105afb19b220c1747fb5884c2510958cfaa810010db303a1b040d35a",
    ),
    "diabetes": (
        "National Institute of Diabetes and Digestive and Kidney Diseases, V. Sigillito (1990).",
        "12c7518785c1bb34ffa0322105b42fe99169f0a2b9a4d6b437db0e8996221870",
    ),
    "german": (
        "H. Hofmann, Statlog (German Credit Data), numeric form, UCI Machine Learning Repository.",
        "c29daffc434e8fe6fa72df45d43ae5439f540604caef24315c1c27a75593bf4d",
    ),
    "ionosphere": (
        "V. Sigillito et al. (1989), Ionosphere, UCI Machine Learning Repository, scaled to -1, 1.",
        "b80216a8ff68bab7f3d3f9fc5f3b718495155d806fcbcef2901f62e84c05c499",
    ),
    "isolet": (
        "R. Cole & M. Fanty (1994), ISOLET, doi:10.24432/C51G69.",
        "c6a6afadd5f1b40e1aa83ff504b85445fb3e733b75a189167cabc3bc593b3a39",
    ),
}
"""Source, and the checksum of the values (:func:`fdadp.datasets._data_locations.content_sha256`)."""


def load_component_table(name: str) -> TableDataset:
    """Numbers and labels of one of :data:`COMPONENT_TABLES`.

    Looked for in the folder ``FDADP_DATA`` (default: ``data`` in the user's cache folder; ``../shared/data`` beside a
    copy of the repository) as ``<name>.csv.gz``, a table with a header and the column ``label``; ISOLET as
    ``isolet_train.csv.gz`` and ``isolet_test.csv.gz``. They are not downloaded.

    Parameters
    ----------
    name : str

    Returns
    -------
    TableDataset
        ``y`` holds integers. Only ISOLET has a split of its own.

    Raises
    ------
    MissingDataError
        Not in the folder.
    FileFormatError
        The file is something else.
    InputError
        An unknown name.
    """
    if name not in COMPONENT_TABLES:
        raise InputError(f"name must be one of {', '.join(COMPONENT_TABLES)}, got {name!r}")
    source, sha256 = COMPONENT_TABLES[name]
    files = ["isolet_train.csv.gz", "isolet_test.csv.gz"] if name == "isolet" else [f"{name}.csv.gz"]
    columns = find_data(
        name,
        [in_folder(files, _component_columns)],
        sha256,
        f"Put {' and '.join(files)} into a folder and set FDADP_DATA to it.",
    )
    (X, y), *test = ((pd.DataFrame(columns[f"X{i}"]), columns[f"y{i}"]) for i in range(len(files)))
    X_test, y_test = test[0] if test else (None, None)
    return TableDataset(name, X, y, X_test, y_test, {}, source)


def _component_columns(paths: list[Path]) -> Columns:
    columns: dict[str, npt.NDArray[Any]] = {}
    for i, path in enumerate(paths):
        try:
            frame = pd.read_csv(path)
            columns[f"y{i}"] = frame["label"].to_numpy(dtype=np.int64)
            columns[f"X{i}"] = frame.drop(columns=["label", "set"], errors="ignore").to_numpy(dtype=np.float64)
        except (ValueError, KeyError, EOFError, OSError) as exc:
            raise FileFormatError(f"{path} must be a table of numbers with a column 'label', got {exc}") from exc
    return columns
