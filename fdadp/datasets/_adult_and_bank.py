"""Adult (census income) and Bank Marketing: tables for classifiers. Never bundled; found in a folder or downloaded."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fdadp._common.loaded_later import pd
from fdadp.datasets._data_locations import Columns, Place, find_data, in_folder, on_site
from fdadp.errors import FileFormatError

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

    The data are not part of fdadp. The function looks in the folder ``FDADP_DATA`` for ``adult_train.csv.gz`` and
    ``adult_test.csv.gz``, or ``adult.data`` and ``adult.test``, and then downloads them from the UCI repository. The
    default folder is ``data`` in the user's cache folder, or ``../shared/data`` beside a copy of the repository.
    Whatever is found has to have the published values (a checksum of them).

    Parameters
    ----------
    download : bool
        Whether the internet may be asked.

    Returns
    -------
    TableDataset
        ``X`` has 14 columns, ``"?"`` where a label is missing. ``y`` is ``"<=50K"`` or ``">50K"``. The split is the
        source's own.

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
    prepared = [f"adult_{part}.csv.gz" for part in parts]
    columns = find_data(
        "Adult",
        _places(prepared, ["adult.data", "adult.test"], "adult/", _adult, ADULT_SHA256, download),
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
        ``X`` has 20 columns, ``"unknown"`` where a label is missing. ``y`` is ``"no"`` or ``"yes"``. There is no split.
        ``duration`` is known only after the call.

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


def _places(
    own: list[str], raw: list[str], path: str, decode: Callable[[list[Path]], Columns], sha256: str, online: bool
) -> list[Place]:
    site = [on_site([f"{SITE}{path}{name}" for name in raw], decode, sha256)] if online else []
    return [in_folder(own, decode), in_folder(raw, decode), *site]


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
