"""DTI and DTI2: diffusion-tensor tract profiles of people with multiple sclerosis. Never bundled (GPL)."""

from __future__ import annotations

import bz2
import lzma
import tarfile
import warnings
import zlib
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from fdadp._common.argument_checks import one_of
from fdadp._common.loaded_later import pd
from fdadp.datasets import _data_locations
from fdadp.datasets._data_locations import Columns, FunctionalDataset, Place
from fdadp.errors import FileFormatError

# Read data frames out of R's files: ``.rda`` (or ``.RData``), installed packages (``Rdata.rdb``) and source tarballs.
#
# R itself is not needed.


ENDINGS = ("RData", "rda", "rdata")
"""Of the same kind of file; refund 0.1-38 has DTI.RData."""


def from_rda_bytes(content: bytes, name: str) -> dict[str, Any]:
    """Return object `name` of an ``.rda`` file; a data frame becomes a dict of its columns.

    Raises
    ------
    FileFormatError
        Not an ``.rda`` file, or without that object.
    """
    objects = _convert(content, f"R's file of {name}")
    if not isinstance(objects, dict) or name not in objects:
        raise FileFormatError(f"R's file of {name} must hold an object of that name, got {_names(objects)}")
    return dict(objects[name])


def from_tarball(path: Path, package: str, name: str) -> dict[str, Any]:
    """Return ``<package>/data/<name>.RData`` (or ``.rda``) of a package's source tarball.

    Raises
    ------
    FileFormatError
        Not a tarball, or without that file.
    """
    wanted = [f"{package}/data/{name}.{ending}" for ending in ENDINGS]
    try:
        with tarfile.open(path) as tar:
            member = next((m for m in tar if m.isfile() and m.name in wanted), None)
            file = tar.extractfile(member) if member else None  # read in memory: nothing is unpacked to disk
            content = file.read() if file else None
    except (tarfile.TarError, EOFError, zlib.error) as exc:
        raise FileFormatError(f"{path} must be a tarball with {wanted[0]}, got {exc}") from exc
    if content is None:
        raise FileFormatError(f"{path} must be a tarball with {wanted[0]}, got one without it")
    return from_rda_bytes(content, name)


def from_library(folder: Path, name: str) -> dict[str, Any] | None:
    """Return data set `name` of an installed package, or ``None`` where the folder does not hold it.

    Parameters
    ----------
    folder : Path
        The installed package, e.g. ``/usr/lib/R/site-library/refund``.
    name : str
        The object.

    Raises
    ------
    FileFormatError
        The package's files cannot be read.
    """
    data = folder / "data"
    for ending in ENDINGS:
        if (data / f"{name}.{ending}").is_file():
            return from_rda_bytes((data / f"{name}.{ending}").read_bytes(), name)
    if not (data / "Rdata.rdx").is_file():
        return None
    index = _convert((data / "Rdata.rdx").read_bytes(), "Rdata.rdx")
    if name not in index["variables"]:
        return None
    offset, length = (int(v) for v in index["variables"][name])
    with (data / "Rdata.rdb").open("rb") as file:
        file.seek(offset)
        chunk = file.read(length)
    return dict(_convert(_inflate(chunk, int(index["compressed"][0])), f"{name} in Rdata.rdb"))


def _inflate(chunk: bytes, kind: int) -> bytes:
    """Undo the compression of R's lazy-load data base (R sources, src/main/serialize.c, R_compress1 to 3).

    A chunk starts with its full length (4 bytes); kinds 2 and 3 then have a letter for the method used.
    """
    method, body = (b"z", chunk[4:]) if kind == 1 else (chunk[4:5], chunk[5:])
    try:
        if kind == 0 or method == b"0":
            return chunk if kind == 0 else body
        if method == b"z":
            return zlib.decompress(body)
        if method == b"2":
            return bz2.decompress(body)
        if method == b"Z":
            filters = [{"id": lzma.FILTER_LZMA2, "preset": 6}]
            return lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=filters).decompress(body)
    except (zlib.error, lzma.LZMAError, OSError, EOFError) as exc:
        raise FileFormatError(f"Rdata.rdb must hold a compressed object, got {exc}") from exc
    raise FileFormatError(f"Rdata.rdb must be compressed by one of R's methods '2', 'Z', '0', got {method!r}")


def _convert(content: bytes, label: str) -> Any:
    import rdata

    plain = {"data.frame": lambda columns, attributes: columns, "AsIs": lambda column, attributes: column}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about classes we do not need
        try:
            parsed = rdata.parser.parse_data(content)
            return rdata.conversion.convert(parsed, constructor_dict={**rdata.conversion.DEFAULT_CLASS_MAP, **plain})
        except Exception as exc:  # rdata raises many kinds on files that are not R's
            raise FileFormatError(f"{label} must be a file written by R, got {type(exc).__name__}: {exc}") from exc


def _names(objects: Any) -> str:
    return ", ".join(map(str, objects)) if isinstance(objects, dict) else type(objects).__name__


Complete = Literal["both", "cca", "rcst", "none"]
Visit = Literal["all", "first"]

BLOCKS = {"cca": 93, "rcst": 55}
"""Curves of a scan and their numbers of points."""

CRAN = "https://cran.r-project.org/src/contrib/"
TARBALLS = (f"{CRAN}refund_0.1-38.tar.gz", f"{CRAN}Archive/refund/refund_0.1-38.tar.gz")
"""refund 0.1-38, while it is the current version and after it has been archived."""

ACKNOWLEDGEMENT = (
    "R package refund 0.1-38 (GPL >= 2). If used in written work, its authors ask for: 'The MRI/DTI data were "
    "collected at Johns Hopkins University and the Kennedy-Krieger Institute'."
)


@dataclass(frozen=True)
class _TractStudy:
    """What differs between the two data sets."""

    name: str
    person: str
    scalars: tuple[str, ...]
    # Made with content_sha256 from dti.csv.gz and dti2.csv.gz, which were exported from refund 0.1-38.
    sha256: str
    units: dict[str, str]
    source: str


DTI = _TractStudy(
    name="DTI",
    person="ID",
    scalars=("ID", "visit", "visit_time", "Nscans", "case", "sex", "pasat"),
    sha256="089ed4b5986e73adff56a68169a0fc1b178c5b7547a573b82dc46beb4d345476",
    units={
        "X": "fractional anisotropy along the corpus callosum",
        "Y": "fractional anisotropy along the right corticospinal tract (some values exceed 1 in the source)",
        "argument": "relative position along the tract, 0 to 1",
        "visit_time": "days since the first visit",
        "pasat": "points of the Paced Auditory Serial Addition Test, 0 to 60",
    },
    source="Goldsmith, Bobb, Crainiceanu, Caffo & Reich (2011), J. Comput. Graph. Statist. 20:830-851; Goldsmith, "
    f"Crainiceanu, Caffo & Reich (2012), J. R. Stat. Soc. C 61:453-469. {ACKNOWLEDGEMENT}",
)
DTI2 = _TractStudy(
    name="DTI2",
    person="id",
    scalars=("id", "visit", "pasat"),
    sha256="f26f1326673086db3fc915d60bf7ddbdf73ca10784892fe9fd58a8f76a157c3d",
    units={
        "X": "mean diffusivity along the corpus callosum (unit not given in the source)",
        "Y": "parallel diffusivity along the right corticospinal tract (unit not given in the source)",
        "argument": "relative position along the tract, 0 to 1",
        "pasat": "points of the Paced Auditory Serial Addition Test, 0 to 60",
    },
    source=f"Swihart, Goldsmith & Crainiceanu (2014), Technometrics 56:483-493. {ACKNOWLEDGEMENT}",
)


def load_dti2(
    *, visit: Visit = "all", complete: Complete = "both", as_frame: bool = False, download: bool = True
) -> FunctionalDataset:
    """Tract profiles of 100 people with multiple sclerosis, 340 scans (DTI2 of R's ``refund``).

    The data are not part of fdadp. The function looks in the folder ``FDADP_DATA`` for ``dti2.csv.gz`` or
    ``refund_*.tar.gz``, then for ``refund`` in R's libraries (R is not started). Then it downloads them from CRAN. The
    default folder is ``data`` in the user's cache folder, or ``../shared/data`` beside a copy of the repository.
    Whatever is found has to have the published values (a checksum of the decoded numbers).

    Parameters
    ----------
    visit : {"all", "first"}
        All scans, or of each person the first scan that is complete.
    complete : {"both", "cca", "rcst", "none"}
        Which curves must have no missing value. ``"both"`` leaves 229 scans of 95 people;
        ``"none"`` keeps all, missing values as NaN.
    as_frame : bool
        Return the curves as data frames (default: ``FDataGrid``).
    download : bool
        Whether the internet may be asked.

    Returns
    -------
    FunctionalDataset
        ``X`` is the corpus callosum (n, 93), ``Y`` the right corticospinal tract (n, 55), both on even grids of [0, 1].
        ``covariates`` has id, visit and pasat. ``groups`` is the id of the person, who has several scans: a privacy
        guarantee has to protect people, not scans. There are ``units`` and ``source``.

    Raises
    ------
    MissingDataError, FileFormatError
        Found nowhere, where the message names the places searched; or the file in ``FDADP_DATA`` is something else.
    InputError
        Unknown `visit` or `complete`.

    Notes
    -----
    The download could not be tried against CRAN itself when this was written; it is tested with a
    server on the same machine. The data files of refund 0.1-38, taken from CRAN's mirror on GitHub, were read
    by this code once, from a tarball and from an installed package, and have the published values.

    References
    ----------
    Swihart, B. J., Goldsmith, J. and Crainiceanu, C. M. (2014). Restricted likelihood ratio tests for
    functional effects in the functional linear model. *Technometrics* 56:483-493.

    Examples
    --------
    >>> dti2 = load_dti2()  # doctest: +SKIP
    >>> dti2.groups  # doctest: +SKIP
    """
    return _load(DTI2, visit, complete, as_frame, download)


def load_dti(
    *, visit: Visit = "all", complete: Complete = "both", as_frame: bool = False, download: bool = True
) -> FunctionalDataset:
    """Tract profiles of 100 people with multiple sclerosis and 42 controls, 382 scans (DTI of R's ``refund``).

    Found as :func:`load_dti2` describes (``dti.csv.gz``).

    Parameters
    ----------
    visit : {"all", "first"}
        All scans, or of each person the first scan that is complete.
    complete : {"both", "cca", "rcst", "none"}
        Which curves must have no missing value: ``"both"`` leaves 255 scans, ``"cca"`` 376, ``"rcst"`` 257;
        ``"none"`` keeps all 382, missing values as NaN.
    as_frame, download : bool
        As of :func:`load_dti2`.

    Returns
    -------
    FunctionalDataset
        ``X`` is the corpus callosum (n, 93), ``Y`` the right corticospinal tract (n, 55), both on even grids of [0, 1].
        ``covariates`` has ID, visit, visit_time (days), Nscans, case (1 is multiple sclerosis), sex and pasat (NaN for
        controls). ``groups`` is the ID of the person. There are ``units`` and ``source``.

    Raises
    ------
    MissingDataError, FileFormatError, InputError
        As :func:`load_dti2`.

    Notes
    -----
    As in :func:`load_dti2`, the download is tested only with a server on the same machine.

    References
    ----------
    Goldsmith, J., Bobb, J., Crainiceanu, C. M., Caffo, B. and Reich, D. (2011). Penalized functional regression.
    *J. Comput. Graph. Statist.* 20:830-851. doi:10.1198/jcgs.2010.10007

    Examples
    --------
    >>> dti = load_dti(visit="first")  # doctest: +SKIP
    >>> dti.X, dti.Y  # doctest: +SKIP
    """
    return _load(DTI, visit, complete, as_frame, download)


def _load(study: _TractStudy, visit: str, complete: str, as_frame: bool, online: bool) -> FunctionalDataset:
    one_of(visit, "visit", get_args(Visit))
    one_of(complete, "complete", get_args(Complete))
    columns = _data_locations.find_data(
        study.name,
        _sources(study, online),
        study.sha256,
        f"Put {study.name.lower()}.csv.gz or refund_0.1-38.tar.gz into a folder and set FDADP_DATA to it, "
        "or install refund in R, or allow the download (download=True).",
    )
    wanted = {"both": ("cca", "rcst"), "cca": ("cca",), "rcst": ("rcst",), "none": ()}[complete]
    keep = np.ones(len(columns[study.person]), dtype=bool)
    for block in wanted:
        keep &= ~np.isnan(columns[block]).any(axis=1)
    rows = np.flatnonzero(keep)
    if visit == "first":  # rows of a person are in the order of the visits
        rows = rows[~pd.Series(columns[study.person][rows]).duplicated().to_numpy()]
    scalars = {name: _tidy(columns[name][rows]) for name in study.scalars}
    covariates = pd.DataFrame(scalars, index=pd.Index(rows))
    index = covariates.index if as_frame else None
    curves: dict[str, Any] = {}
    for block, points in BLOCKS.items():
        grid = np.linspace(0.0, 1.0, points)
        curves[block] = _data_locations.make_curves(
            columns[block][rows], grid, name=block, argument="position", index=index
        )
    return FunctionalDataset(
        name=study.name,
        X=curves["cca"],
        Y=curves["rcst"],
        covariates=covariates,
        groups=scalars[study.person],
        units=study.units,
        source=study.source,
    )


def _tidy(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Whole numbers as integers and text as objects, whether R or CSV said so."""
    if column.dtype.kind not in "biuf":
        return column.astype(object)
    numbers = column.astype(np.float64)
    return numbers.astype(np.int64) if (numbers == np.floor(numbers)).all() else numbers


def _sources(study: _TractStudy, online: bool) -> list[Place]:
    places = [_data_locations.in_folder([f"{study.name.lower()}.csv.gz"], partial(_from_csv, study))]
    tarballs = sorted(_data_locations.data_dir().glob("refund_*.tar.gz"))
    places += [Place(str(tarball), partial(_from_tarball, study, [tarball])) for tarball in tarballs]
    libraries = _data_locations.r_libraries()
    places += [Place(f"R package refund in {lib}", partial(_from_library, study, lib)) for lib in libraries]
    if not libraries:
        places.append(Place("R libraries (R_LIBS, R RHOME, the usual folders)", lambda: None))
    if online:
        places += [_data_locations.on_site([url], partial(_from_tarball, study), study.sha256) for url in TARBALLS]
    return places


def _from_csv(study: _TractStudy, paths: list[Path]) -> Columns:
    (path,) = paths
    try:
        frame = pd.read_csv(path)
        columns: dict[str, Any] = {name: frame[name].to_numpy() for name in study.scalars}
        for block, points in BLOCKS.items():
            columns[block] = frame[[f"{block}_{j}" for j in range(1, points + 1)]].to_numpy(dtype=np.float64)
    except (ValueError, KeyError, EOFError, OSError) as exc:
        raise FileFormatError(f"{path} must be a gzip-compressed CSV of {study.name}, got {exc}") from exc
    return columns


def _from_tarball(study: _TractStudy, paths: list[Path]) -> Columns:
    return _from_r(study, from_tarball(paths[0], "refund", study.name))


def _from_library(study: _TractStudy, library: Path) -> Columns | None:
    frame = from_library(library / "refund", study.name)
    return None if frame is None else _from_r(study, frame)


def _from_r(study: _TractStudy, frame: dict[str, Any]) -> Columns:
    """Columns of R's data frame, under our names and as plain arrays."""
    columns = {}
    for name in (*study.scalars, *BLOCKS):
        r_name = name.replace("_", ".")  # visit.time
        if r_name not in frame:
            raise FileFormatError(f"{study.name} must have a column {r_name}, got {', '.join(map(str, frame))}")
        column = frame[r_name]
        if isinstance(column, np.ma.MaskedArray):  # integers with NA
            column = np.where(np.ma.getmaskarray(column), np.nan, column.data)
        columns[name] = np.asarray(column)
    return columns
