"""Where data sets that are not bundled are found, what is said when they are nowhere, and what loaders return."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from fdadp._common.loaded_later import pd
from fdadp._common.typing import FloatArray
from fdadp.errors import FileFormatError, InputError, MissingDataError

DATA_VARIABLE = "FDADP_DATA"


@dataclass(frozen=True)
class Place:
    """One place to look.

    Attributes
    ----------
    label : str
        What the user is told was searched.
    read : callable
        Returns the decoded data set, or ``None`` where it is not there.  Raises OSError where it could not
        be reached, ``FileFormatError`` where it is there but is something else.
    own : bool
        The user put the file there: then a wrong file is an error. Elsewhere (an R library of another version,
        a changed download) the search goes on and the reason is reported at its end.
    """

    label: str
    read: Callable[[], Columns | None]
    own: bool = False


def find_data(name: str, places: Iterable[Place], sha256: str, advice: str) -> Columns:
    """Return the first copy of a data set whose values are those published.

    Parameters
    ----------
    name : str
        The data set, for messages.
    places : iterable of Place
        In the order to look.
    sha256 : str
        :func:`content_sha256` of the published values.
    advice : str
        What to do where no place has it.

    Raises
    ------
    MissingDataError
        Found nowhere; names the places searched.
    FileFormatError
        A file in the user's own data folder does not hold the published values.
    """
    reasons = []
    for place in places:
        try:
            columns = place.read()
            if columns is None:
                reasons.append(f"{place.label}: not there")
                continue
            found = content_sha256(columns)
            if found == sha256:
                return columns
            raise FileFormatError(
                f"{name} from {place.label} must have the published values (content SHA-256 {sha256[:12]}...), "
                f"got other values ({found[:12]}...)"
            )
        except FileFormatError as exc:
            if place.own:
                raise
            reasons.append(f"{place.label}: {exc}")
        except OSError as exc:
            reasons.append(f"{place.label}: {type(exc).__name__}: {exc}")
    searched = "\n".join(f"  - {reason}" for reason in reasons) or "  (nowhere)"
    raise MissingDataError(f"{name} is not bundled with fdadp and was not found. Searched:\n{searched}\n{advice}")


def in_folder(
    names: Sequence[str], decode: Callable[[list[Path]], Columns], folder: Path | None = None, label: str | None = None
) -> Place:
    """Files of the user that belong together, which are decoded where all are there.

    Parameters
    ----------
    names : sequence of str
    decode : callable
        Turns the files, in the order of `names`, into a data set.
    folder, label : Path and str, optional
        The folder, and how messages name it; default :func:`data_dir`.
    """
    paths = [(folder or data_dir()) / name for name in names]

    def read() -> Columns | None:
        return decode(paths) if all(path.is_file() for path in paths) else None

    return Place(f"{' and '.join(names)} in {label or data_dir_label()}", read, own=True)


def on_site(
    urls: Sequence[str], decode: Callable[[list[Path]], Columns], sha256: str, label: str | None = None
) -> Place:
    """Files that :func:`download` fetches; by default the first address is what the user is told."""
    return Place(label or urls[0], lambda: download(urls, decode, sha256))


def data_dir() -> Path:
    """Return the user's data folder.

    ``FDADP_DATA``; else, in a copy of the repository, ``../shared/data`` beside it; else ``data`` in the user's cache
    folder of fdadp (:func:`cache_dir`).
    """

    given = os.environ.get(DATA_VARIABLE)
    if given:
        return Path(given)
    repository = Path(__file__).resolve().parents[2]
    if (repository / "pyproject.toml").is_file():  # of an installed package this is lib/python3.x/site-packages
        return repository.parent / "shared" / "data"
    return cache_dir() / "data"


def data_dir_label() -> str:
    """Return the data folder as it is named in messages."""
    given = "" if os.environ.get(DATA_VARIABLE) else f", the default as {DATA_VARIABLE} is not set"
    absent = "" if data_dir().is_dir() else "; no such folder"
    return f"{data_dir()} ({DATA_VARIABLE}{given}{absent})"


def r_libraries() -> list[Path]:
    """Return the folders where R keeps packages, without starting R itself (only its ``RHOME`` script)."""
    folders = []
    for variable in ("R_LIBS", "R_LIBS_USER", "R_LIBS_SITE"):
        folders += [Path(p).expanduser() for p in os.environ.get(variable, "").split(os.pathsep) if p]
    if os.environ.get("R_HOME"):
        folders.append(Path(os.environ["R_HOME"]) / "library")
    if r := shutil.which("R"):
        try:
            home = subprocess.run([r, "RHOME"], capture_output=True, text=True, timeout=10, check=True).stdout.strip()
            folders.append(Path(home) / "library")
        except (OSError, subprocess.SubprocessError):
            pass  # a broken R is no reason to stop looking
    folders += [Path(p) for p in ("/usr/local/lib/R/site-library", "/usr/lib/R/site-library", "/usr/lib/R/library")]
    folders += sorted((Path.home() / "R").glob("*-library/*"), reverse=True)
    return [folder for folder in dict.fromkeys(folders) if folder.is_dir()]


# Several data sets at once, of which some may not be here.


T = TypeVar("T")


def load_present(
    names: Sequence[str], loaders: Mapping[str, Callable[[bool], T]], *, download: bool = False
) -> tuple[list[T], dict[str, str]]:
    """Load the data sets that are present.

    Parameters
    ----------
    names : sequence of str
        Keys of `loaders`.
    loaders : mapping of name to function
        Each is told whether the internet may be asked.
    download : bool
        Whether it may, for those that are not here.

    Returns
    -------
    data : list
    absent : dict
        Name of each data set that was not found, and why.

    Raises
    ------
    InputError
        An unknown name.
    """
    data, absent = [], {}
    for name in names:
        if name not in loaders:
            raise InputError(f"dataset must be one of {', '.join(loaders)}, got {name!r}")
        try:
            data.append(loaders[name](download))
        except MissingDataError as exc:
            absent[name] = str(exc)
    return data, absent


# Downloads, kept in a cache folder.


# Is this the published data set? Checksums of decoded values, whatever file they came in.


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


TIMEOUT = 20.0
"""Seconds without an answer before the next address is tried."""


def cache_dir() -> Path:
    """Return where downloads are kept: ``FDADP_CACHE``, else the user's cache folder."""
    import pooch

    return Path(os.environ.get("FDADP_CACHE") or pooch.os_cache("fdadp"))


def download(urls: Sequence[str], decode: Callable[[list[Path]], Columns], sha256: str) -> Columns:
    """Fetch files that belong together and decode them.

    Parameters
    ----------
    urls : sequence of str
        One address per file.
    decode : callable
        Turns the local files, in the order of `urls`, into a data set.
    sha256 : str
        Content checksum of the values wanted. Files with others are thrown out of the cache, so that a later
        call fetches again.

    Raises
    ------
    OSError
        Not reachable.
    FileFormatError
        Fetched, but not what it should be.
    """
    import pooch

    files = []
    for url in urls:
        # No checksum of the file: compression and packaging may change; the values are checked instead.
        fetch = pooch.HTTPDownloader(timeout=TIMEOUT)
        files.append(
            Path(pooch.retrieve(url, known_hash=None, fname=url.rsplit("/", 1)[1], path=cache_dir(), downloader=fetch))
        )
    try:
        columns = decode(files)
        if content_sha256(columns) == sha256:
            return columns
        raise FileFormatError(f"must hold the published values, got others (content SHA-256 is not {sha256[:12]}...)")
    except FileFormatError:
        for file in files:
            file.unlink(missing_ok=True)
        raise


# What a loader returns.


@dataclass(frozen=True, eq=False, repr=False)
class FunctionalDataset:
    """Paired curves with what else is known about each pair.

    Attributes
    ----------
    name : str
    X, Y : FDataGrid, or DataFrame where ``as_frame=True`` was asked for
        Predictor curves (n, S) and response curves (n, T), rows in the same order; X None where there are none.
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
        what = "curves" if self.X is None else "pairs of curves"
        return f"<{type(self).__name__} {self.name}: {len(self.covariates)} {what}{people}>"


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
