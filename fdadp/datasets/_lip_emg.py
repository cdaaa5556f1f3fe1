"""Lip EMG: muscle activity and lower-lip acceleration in speech. Never bundled (no licence stated)."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from fdadp._common.argument_checks import whole
from fdadp._common.loaded_later import pd
from fdadp.datasets._data_locations import Columns, FunctionalDataset, Place, find_data, in_folder, make_curves, on_site
from fdadp.errors import FileFormatError, InputError

RECORDS, POINTS, DURATION = 32, 501, 0.69

# Made with content_sha256 from lip_emg_emg.csv.gz and lip_emg_lipacc.csv.gz (HisFunLiM, below).
SHA256 = "46952f9edbe93cf882b52dcf223700a466146f07cae36125b72fec53a76891ed"

RAW = {"emg": "EMG.dat", "lipacc": "LipAcc.dat"}
SITES = (
    "https://raw.githubusercontent.com/caojiguo/HisFunLiM/59a39952e68d6b61b339998d867a37dcfc8098ae/speech/",
    "http://www.stats.ox.ac.uk/~silverma/fdacasebook/",
)
"""The code of a paper that uses the data, at a fixed commit; and the site of the book, which may be gone."""

SOURCE = (
    "32 records of an utterance ('Say bob again'). N. Malfait & J. O. Ramsay (2003), The historical functional "
    "linear model, Canad. J. Statist. 31:115-128; J. O. Ramsay & B. W. Silverman (2002), "
    "Applied Functional Data Analysis, Springer, chapter 10. Files: GitHub caojiguo/HisFunLiM, speech/. "
    "No licence is stated."
)


def load_lip_emg(*, n_points: int = POINTS, as_frame: bool = False, download: bool = True) -> FunctionalDataset:
    """EMG of a lip muscle and acceleration of the lower lip, 32 records over 0.69 s.

    The data are not part of fdadp and in no R package. The function looks in the folder ``FDADP_DATA`` for
    ``lip_emg_emg.csv.gz`` and ``lip_emg_lipacc.csv.gz``, then there and in ``LIP_DATA_DIR`` for ``EMG.dat`` and
    ``LipAcc.dat`` (one record a column). Then it downloads them. The default folder is ``data`` in the user's cache
    folder, or ``../shared/data`` beside a copy of the repository. Whatever is found has to have the published values (a
    checksum of the decoded numbers).

    Parameters
    ----------
    n_points : int
        Points per curve, evenly thinned: 501 (default) or a number with 500 / (n_points - 1) whole, e.g. 101
        for every fifth point.
    as_frame : bool
        Return the curves as data frames (default: ``FDataGrid``).
    download : bool
        Whether the internet may be asked.

    Returns
    -------
    FunctionalDataset
        ``X`` is the EMG (32, n_points), ``Y`` the acceleration (32, n_points), both over time in seconds, 0 to 0.69.
        ``covariates`` has the record's number. ``groups`` is None, as the files do not say who speaks. There are
        ``units`` and ``source``.

    Raises
    ------
    MissingDataError, FileFormatError
        Found nowhere, where the message names the places searched; or the file found is something else.
    InputError
        `n_points` does not thin 501 points evenly.

    Notes
    -----
    The download could not be tried against the live sites when this was written; it is tested with a server on
    the same machine. The two files of the GitHub repository, from a stored copy of it, were read by this code once
    and have the published values. Whether the book's site has the same is unknown; the checksum decides.

    References
    ----------
    Malfait, N. and Ramsay, J. O. (2003). The historical functional linear model. *Canad. J. Statist.*
    31:115-128.

    Examples
    --------
    >>> lip = load_lip_emg()  # doctest: +SKIP
    >>> lip.X, lip.Y  # doctest: +SKIP
    """
    step, rest = divmod(POINTS - 1, whole(n_points, "n_points", least=2, most=POINTS) - 1)
    if rest:
        raise InputError(
            f"n_points must thin {POINTS} points evenly: {POINTS - 1} / (n_points - 1) must be whole, got {n_points}"
        )
    columns = find_data(
        "Lip EMG",
        _places(download),
        SHA256,
        "Put EMG.dat and LipAcc.dat into a folder and set LIP_DATA_DIR to it, or the two lip_emg_*.csv.gz and set "
        "FDADP_DATA, or allow the download (download=True).",
    )
    time = np.linspace(0.0, DURATION, POINTS)[::step]
    covariates = pd.DataFrame({"record": np.arange(1, RECORDS + 1)}, index=pd.RangeIndex(RECORDS))
    index = covariates.index if as_frame else None
    return FunctionalDataset(
        name="Lip EMG",
        X=make_curves(columns["emg"][:, ::step], time, name="EMG", argument="time", index=index),
        Y=make_curves(columns["lipacc"][:, ::step], time, name="lip acceleration", argument="time", index=index),
        covariates=covariates,
        groups=None,
        units={
            "X": "EMG activity (unit not stated in the source)",
            "Y": "acceleration of the lower lip (unit not stated in the source)",
            "time": "seconds",
        },
        source=SOURCE,
    )


def _places(online: bool) -> list[Place]:
    raw, given = list(RAW.values()), os.environ.get("LIP_DATA_DIR")
    return [
        in_folder([f"lip_emg_{block}.csv.gz" for block in RAW], _from_csv),
        in_folder(raw, _from_raw),
        in_folder(raw, _from_raw, Path(given), f"{given} (LIP_DATA_DIR)")
        if given
        else Place("LIP_DATA_DIR (not set)", lambda: None),
        *(
            on_site([site + file for file in raw], _from_raw, SHA256, f"{site} (EMG.dat, LipAcc.dat)")
            for site in (SITES if online else ())
        ),
    ]


def _from_csv(paths: list[Path]) -> Columns:
    try:
        read = [pd.read_csv(path, index_col="record").to_numpy(dtype=np.float64) for path in paths]
    except (ValueError, EOFError, OSError) as exc:
        named = " and ".join(map(str, paths))
        raise FileFormatError(f"{named} must be gzip-compressed CSV, one record a row, got {exc}") from exc
    return dict(zip(RAW, read, strict=True))


def _from_raw(paths: list[Path]) -> Columns:
    """Read EMG.dat and LipAcc.dat: one record a column, one time point a row, blanks between."""
    columns = {}
    for block, path in zip(RAW, paths, strict=True):
        try:
            columns[block] = np.loadtxt(path, dtype=np.float64, ndmin=2).T
        except (ValueError, UnicodeDecodeError) as exc:
            raise FileFormatError(f"{path} must be {POINTS} rows of {RECORDS} numbers, got {exc}") from exc
        if columns[block].shape != (RECORDS, POINTS):
            got = " x ".join(map(str, columns[block].T.shape))
            raise FileFormatError(f"{path} must be {POINTS} rows of {RECORDS} numbers, got {got}")
    return columns
