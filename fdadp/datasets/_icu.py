"""The first 48 hours of 8,000 stays in intensive care."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from fdadp.datasets._container import FunctionalDataset, make_curves
from fdadp.datasets._content import Columns, content_sha256
from fdadp.datasets._download import download as fetch
from fdadp.datasets._icu_records import prepare
from fdadp.datasets._places import Place, data_dir, data_dir_label, find_data
from fdadp.errors import FileFormatError

FILES = {
    "heart_rate": "icu_heart_rate.csv.gz",
    "pressure": "icu_mean_arterial_pressure.csv.gz",
    "stays": "icu_stays.csv.gz",
}
"""Tables that were prepared before."""

SHA256 = {
    "heart_rate": "a679185d51f168c8517ac70cda47d0491a0de6fb828ac6f5afd2b6c2b4d0f01d",
    "pressure": "0a03eccda46db17ddd01d13d31440698e460eddefb238bd6b7a48237b4b146af",
    "stays": "db00be1effce062148470705d2c1b34454888683f8fed96050dc75798337b661",
}
"""Of the values of these tables (:func:`fdadp.datasets._content.content_sha256`)."""

SITE = "https://physionet.org/files/challenge-2012/1.0.0/"
ARCHIVES = ("set-a.tar.gz", "Outcomes-a.txt", "set-b.tar.gz", "Outcomes-b.txt")
PREPARED_SHA256 = "ca03f93e8fe608e6597fb78b615d7fd8d54977381b7cfeebbbccbeac378f2cd5"
"""Of all values that are prepared from the archives. From public copies of their records, not from PhysioNet's own
archives, which could not be reached when this was written: two copies of set a, which agree, and one of set b."""

UNITS = {
    "heart_rate": "beats/min",
    "pressure": "mmHg, mean arterial",
    "argument": "hours since admission",
    "age": "years, 90 = 90 and over",
}

CURVES = ("heart_rate", "pressure")
HALF = 24
"""Hours of a day, one column each."""


def load_icu(
    curves: str = "heart_rate", *, as_frame: bool = False, download: bool = True, sha256: str | None = None
) -> FunctionalDataset:
    """Hourly heart rate or blood pressure of 8,000 adults in intensive care: day 1, day 2, and who they are.

    The data are not part of fdadp. In the folder ``FDADP_DATA`` (see :func:`load_dti2`) are looked for tables that were
    prepared before, ``icu_heart_rate.csv.gz``, ``icu_mean_arterial_pressure.csv.gz`` and ``icu_stays.csv.gz``, then the
    archives ``set-a.tar.gz``, ``set-b.tar.gz``, ``Outcomes-a.txt`` and ``Outcomes-b.txt`` of the challenge, which are
    downloaded from PhysioNet otherwise, and prepared here (five seconds).

    Parameters
    ----------
    curves : {"heart_rate", "pressure"}
    as_frame : bool
        Return the curves as data frames (default: ``FDataGrid``).
    download : bool
        Whether the internet may be asked.
    sha256 : str, optional
        Content checksum that tables prepared from archives must have, if it is not that of fdadp: to accept archives
        that you have compared with PhysioNet's ``SHA256SUMS.txt`` yourself. The error that refuses others names theirs.

    Returns
    -------
    FunctionalDataset
        ``X``: hours 0 to 24 (8000, 24); ``Y``: hours 24 to 48 (8000, 24); hours without a measurement are NaN;
        ``covariates``: age, male, icu_type, saps1, sofa, died_in_hospital and others (-1 = missing in the scores);
        ``groups``: the stay, of one person each; ``units``; ``source``.

    Raises
    ------
    MissingDataError
        Found nowhere, or archives from the internet that hold other values than those known here.
    FileFormatError
        Files in the folder hold other values.
    InputError
        Unknown `curves`.

    Notes
    -----
    The tables lack the last measurement of each curve of set a, and the last two of set b: they were made from a copy
    of the records that had lost them. All else is the same as from full records, value by value. So 92 % of stays have
    no heart rate in the last hour in the tables, and 11 % from the archives. The figures of this project were measured
    on the tables.

    References
    ----------
    Silva, Moody, Scott, Celi & Mark (2012), Computing in Cardiology 39:245-248; Goldberger et al. (2000),
    doi:10.1161/01.CIR.101.23.e215. Open Data Commons Attribution License 1.0: name the source.

    Examples
    --------
    >>> icu = load_icu("pressure")  # doctest: +SKIP
    >>> icu.X, icu.Y, icu.covariates["age"]  # doctest: +SKIP
    """
    from fdadp._common.checks import one_of

    one_of(curves, "curves", tuple(CURVES))
    hours, stays = _tables(curves, download, sha256)
    grid = hours.columns.to_numpy(dtype=np.float64)
    index = hours.index if as_frame else None
    x, y = (
        make_curves(hours.iloc[:, part].to_numpy(), grid[part], name=curves, argument="hour", index=index)
        for part in (slice(0, HALF), slice(HALF, None))
    )
    return FunctionalDataset(
        "icu",
        x,
        y,
        stays if as_frame else stays.reset_index(drop=True),
        stays.index.to_numpy(),
        UNITS,
        "PhysioNet/Computing in Cardiology Challenge 2012, sets a and b, version 1.0.0 (ODC-BY 1.0): Silva, Moody, "
        "Scott, Celi & Mark (2012), Computing in Cardiology 39:245-248; Goldberger et al. (2000), "
        "doi:10.1161/01.CIR.101.23.e215; hourly means of plausible values, nothing filled in",
    )


def _tables(curves: str, download: bool, sha256: str | None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Table of curves, and of stays."""
    folder, wanted = data_dir(), sha256 or PREPARED_SHA256
    if (folder / FILES[curves]).is_file():
        return _read(folder, curves), _read(folder, "stays")
    kept: dict[str, pd.DataFrame] = {}
    own = [folder / name for name in ARCHIVES]
    places = [
        Place(f"{FILES[curves]} and {FILES['stays']} in {data_dir_label()}", lambda: None),
        Place(
            f"{' and '.join(ARCHIVES)} in {folder}",
            lambda: _prepared(kept, wanted, own) if all(path.is_file() for path in own) else None,
            own=True,
        ),
    ]
    if download:
        urls = [f"{SITE}{name}" for name in ARCHIVES]
        places.append(Place(SITE, partial(fetch, urls, partial(_prepared, kept, wanted), wanted)))
    find_data(
        "The set of ICU stays",
        places,
        wanted,
        f"Put {', '.join(ARCHIVES)} from {SITE} into a folder and set FDADP_DATA to it, or allow the download "
        "(download=True).",
    )
    return kept[curves], kept["stays"]


def _prepared(kept: dict[str, pd.DataFrame], wanted: str, files: list[Path]) -> Columns:
    """Columns of all tables that are prepared from archives, which are kept."""
    records_a, outcomes_a, records_b, outcomes_b = files
    kept.update(prepare({"a": (records_a, outcomes_a), "b": (records_b, outcomes_b)}))
    columns = {f"{name} {column}": values for name, table in kept.items() for column, values in _columns(table).items()}
    found = content_sha256(columns)
    if found != wanted:
        raise FileFormatError(
            f"the archives must hold the values known here (content SHA-256 {wanted}), got others ({found}); if the "
            f"files are as PhysioNet's SHA256SUMS.txt says, accept them by load_icu(sha256={found!r})"
        )
    return columns


def _read(folder: Path, what: str) -> pd.DataFrame:
    path = folder / FILES[what]
    if not path.is_file():
        raise FileFormatError(f"{path} must be beside the curves, got no such file")
    frame = pd.read_csv(path, index_col="stay")
    found = content_sha256(_columns(frame))
    if found != SHA256[what]:
        raise FileFormatError(
            f"{path} must hold the published values (content SHA-256 {SHA256[what][:12]}...), got {found[:12]}..."
        )
    return frame


def _columns(frame: pd.DataFrame) -> Columns:
    return {"stay": frame.index.to_numpy(), **{str(name): frame[name].to_numpy() for name in frame}}
