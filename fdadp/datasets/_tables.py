"""Tables for classifiers (Adult, Bank Marketing) and for principal components: found in a folder or downloaded."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fdadp.datasets._places import Columns, Place, data_dir, data_dir_label, find_data
from fdadp.datasets._places import download as fetch
from fdadp.errors import FileFormatError, InputError

ADULT_COLUMNS = (
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship"),
    *("race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country", "income"),
)
ADULT_SHA256 = "eeef6bebeaaeb929b615b4ce264dd1723c33fca598ddc4fba16aba919bc6bf36"
BANK_SHA256 = "e4f065553fa35aba62b6c61321c68d518c9897917365c124bb30613d5d5382f8"
SITE = "https://archive.ics.uci.edu/ml/machine-learning-databases/"


@dataclass(frozen=True, eq=False, repr=False)
class TableDataset:
    """A table of people and what is to be predicted.

    Attributes
    ----------
    name : str
    X : DataFrame of shape (n, d)
    y : ndarray of shape (n,)
    X_test, y_test : as X and y, or None where the source has no split
    units : mapping
    source : str
    """

    name: str
    X: pd.DataFrame
    y: npt.NDArray[np.object_]
    X_test: pd.DataFrame | None
    y_test: npt.NDArray[np.object_] | None
    units: dict[str, str]
    source: str

    def __repr__(self) -> str:
        return f"<TableDataset {self.name}: {len(self.X)} rows, {self.X.shape[1]} columns>"


def load_adult(*, download: bool = True) -> TableDataset:
    """Census income of 32561 people and, to test, of 16281 (1994 US census).

    The data are not part of fdadp. They are looked for in the folder ``FDADP_DATA`` (default: ``data`` in the user's
    cache folder; ``../shared/data`` beside a copy of the repository) as ``adult_train.csv.gz`` and
    ``adult_test.csv.gz`` or as ``adult.data`` and ``adult.test``, and then downloaded from the UCI repository.
    Whatever is found has to have the published values (a checksum of them).

    Parameters
    ----------
    download : bool
        Whether the internet may be asked.

    Returns
    -------
    TableDataset
        ``X``: 14 columns, ``"?"`` where a label is missing; ``y``: ``"<=50K"`` or ``">50K"``; the source's own split.

    Raises
    ------
    MissingDataError, FileFormatError
        Found nowhere, where the message names the places searched; or the file in ``FDADP_DATA`` is something else.

    Notes
    -----
    The download could not be tried against the live site when this was written; the checksum decides.

    References
    ----------
    Becker, B. and Kohavi, R. (1996). Adult. UCI Machine Learning Repository, doi:10.24432/C5XW20.

    Examples
    --------
    >>> adult = load_adult()  # doctest: +SKIP
    >>> adult.X.shape  # doctest: +SKIP
    """
    parts = ("train", "test")
    columns = find_data(
        "Adult",
        _places(
            [f"adult_{part}.csv.gz" for part in parts],
            ["adult.data", "adult.test"],
            "adult/",
            _adult,
            ADULT_SHA256,
            download,
        ),
        ADULT_SHA256,
        "Put adult.data and adult.test into a folder and set FDADP_DATA to it, or allow the download (download=True).",
    )
    frames = {part: pd.DataFrame({name: columns[f"{part} {name}"] for name in ADULT_COLUMNS}) for part in parts}
    (X, y), (X_test, y_test) = (_split(frames[part], "income") for part in parts)
    units = {"age": "years", "capital-gain": "dollars", "capital-loss": "dollars", "hours-per-week": "hours"}
    source = "B. Becker & R. Kohavi (1996), UCI Machine Learning Repository, doi:10.24432/C5XW20 (CC BY 4.0)."
    return TableDataset("Adult", X, y, X_test, y_test, units, source)


def load_bank_marketing(*, download: bool = True) -> TableDataset:
    """41188 telephone calls of a bank's campaign, and whether a deposit was subscribed (bank-additional-full).

    Looked for as ``bank_marketing.csv.gz`` or ``bank-additional.zip`` in ``FDADP_DATA``, else downloaded; see
    :func:`load_adult`.

    Parameters
    ----------
    download : bool
        As of :func:`load_adult`.

    Returns
    -------
    TableDataset
        ``X``: 20 columns, ``"unknown"`` where a label is missing; ``y``: ``"no"`` or ``"yes"``; no split. ``duration``
        is known only after the call.

    Raises
    ------
    MissingDataError, FileFormatError
        As :func:`load_adult`.

    References
    ----------
    Moro, S., Cortez, P. and Rita, P. (2014). A data-driven approach to predict the success of bank telemarketing.
    *Decision Support Systems* 62:22-31. doi:10.1016/j.dss.2014.03.001

    Examples
    --------
    >>> bank = load_bank_marketing()  # doctest: +SKIP
    >>> bank.X.shape  # doctest: +SKIP
    """
    columns = find_data(
        "Bank Marketing",
        _places(["bank_marketing.csv.gz"], ["bank-additional.zip"], "00222/", _bank, BANK_SHA256, download),
        BANK_SHA256,
        "Put bank-additional.zip into a folder and set FDADP_DATA to it, or allow the download (download=True).",
    )
    X, y = _split(pd.DataFrame(dict(columns)), "y")
    source = "S. Moro, P. Cortez & P. Rita (2014), UCI Machine Learning Repository, doi:10.24432/C5K306 (CC BY 4.0)."
    return TableDataset("Bank Marketing", X, y, None, None, {"age": "years", "duration": "seconds"}, source)


def _split(frame: pd.DataFrame, target: str) -> tuple[pd.DataFrame, npt.NDArray[np.object_]]:
    return frame.drop(columns=target), frame[target].to_numpy(dtype=object)


Decode = Callable[[list[Path]], Columns]


def _places(own: list[str], raw: list[str], path: str, decode: Decode, sha256: str, online: bool) -> list[Place]:
    label = data_dir_label()
    places = [
        Place(f"{' and '.join(names)} in {label}", partial(_from_folder, names, decode), own=True)
        for names in (own, raw)
    ]
    if online:
        urls = [f"{SITE}{path}{name}" for name in raw]
        places.append(Place(urls[0], partial(fetch, urls, decode, sha256)))
    return places


def _from_folder(names: list[str], decode: Decode) -> Columns | None:
    paths = [data_dir() / name for name in names]
    return decode(paths) if all(path.is_file() for path in paths) else None


def _adult(paths: list[Path]) -> Columns:
    """Read our CSV files, or the source's: no header, blanks after commas, in the test file a remark and dots."""
    columns: dict[str, npt.NDArray[np.generic]] = {}
    for part, path in zip(("train", "test"), paths, strict=True):
        ours = path.suffix == ".gz"
        try:
            frame = pd.read_csv(
                path,
                header=0 if ours else None,
                names=None if ours else list(ADULT_COLUMNS),
                skipinitialspace=True,
                keep_default_na=False,
                comment=None if ours else "|",
            )
            frame["income"] = frame["income"].str.rstrip(".")
            columns |= {f"{part} {name}": _plain(frame[name]) for name in ADULT_COLUMNS}
        except (ValueError, KeyError, EOFError, OSError, AttributeError) as exc:
            raise FileFormatError(f"{path} must be a table of Adult, got {exc}") from exc
    return columns


def _bank(paths: list[Path]) -> Columns:
    path = paths[0]
    try:
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive:
                member = next(n for n in archive.namelist() if n.endswith("bank-additional-full.csv"))
                frame = pd.read_csv(io.BytesIO(archive.read(member)), sep=";", keep_default_na=False)
        else:
            frame = pd.read_csv(path, keep_default_na=False)
        return {str(name): _plain(frame[name]) for name in frame.columns}
    except (ValueError, KeyError, EOFError, OSError, StopIteration, zipfile.BadZipFile) as exc:
        raise FileFormatError(f"{path} must be a table of Bank Marketing, got {exc}") from exc


def _plain(column: pd.Series) -> npt.NDArray[np.generic]:
    return column.to_numpy(dtype=None if column.dtype.kind in "if" else object)


# Tables for principal components (Australian, CNAE-9, Diabetes, German, Ionosphere, ISOLET). Never bundled.


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
"""Source, and the checksum of the values (:func:`fdadp.datasets._places.content_sha256`)."""


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
    read = partial(_from_folder, files, _component_columns)
    place = Place(f"{' and '.join(files)} in {data_dir_label()}", read, own=True)
    columns = find_data(name, [place], sha256, f"Put {' and '.join(files)} into a folder and set FDADP_DATA to it.")
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
