"""The first 48 hours of 8,000 stays in intensive care."""

from __future__ import annotations

import numpy as np
import pandas as pd

from fdadp.datasets._container import FunctionalDataset, make_curves
from fdadp.datasets._content import Columns, content_sha256
from fdadp.datasets._places import data_dir, data_dir_label
from fdadp.errors import FileFormatError, MissingDataError

__all__ = ["load_icu"]

FILES = {"heart_rate": "icu_heart_rate.csv.gz", "pressure": "icu_mean_arterial_pressure.csv.gz"}

SHA256 = {
    "heart_rate": "a679185d51f168c8517ac70cda47d0491a0de6fb828ac6f5afd2b6c2b4d0f01d",
    "pressure": "0a03eccda46db17ddd01d13d31440698e460eddefb238bd6b7a48237b4b146af",
    "stays": "db00be1effce062148470705d2c1b34454888683f8fed96050dc75798337b661",
}
"""Of the values (:func:`fdadp.datasets._content.content_sha256`)."""

UNITS = {
    "heart_rate": "beats/min",
    "pressure": "mmHg, mean arterial",
    "argument": "hours since admission",
    "age": "years, 90 = 90 and over",
}

HALF = 24
"""Hours of a day, one column each."""


def load_icu(curves: str = "heart_rate", *, as_frame: bool = False) -> FunctionalDataset:
    """Hourly heart rate or blood pressure of 8,000 adults in intensive care: day 1, day 2, and who they are.

    The data are not part of fdadp. They are looked for in the folder ``FDADP_DATA`` (see :func:`load_dti2`), as hourly
    means made from PhysioNet's files, which are open to all.

    Parameters
    ----------
    curves : {"heart_rate", "pressure"}
    as_frame : bool
        Return the curves as data frames (default: ``FDataGrid``).

    Returns
    -------
    FunctionalDataset
        ``X``: hours 0 to 24 (8000, 24); ``Y``: hours 24 to 48 (8000, 24); hours without a measurement are NaN;
        ``covariates``: age, male, icu_type, saps1, sofa, died_in_hospital and others (-1 = missing in the scores);
        ``groups``: the stay, of one person each; ``units``; ``source``.

    Raises
    ------
    MissingDataError
        The files are not in that folder.
    FileFormatError
        They hold other values.
    InputError
        Unknown `curves`.
    """
    from fdadp._common.checks import one_of

    one_of(curves, "curves", tuple(FILES))
    hours, stays = _read(FILES[curves], curves), _read("icu_stays.csv.gz", "stays")
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


def _read(file: str, what: str) -> pd.DataFrame:
    path = data_dir() / file
    if not path.is_file():
        raise MissingDataError(f"the ICU stays are not bundled with fdadp: {file} is not in {data_dir_label()}")
    frame = pd.read_csv(path, index_col="stay")
    found = content_sha256(_columns(frame))
    if found != SHA256[what]:
        raise FileFormatError(
            f"{path} must hold the published values (content SHA-256 {SHA256[what][:12]}...), got {found[:12]}..."
        )
    return frame


def _columns(frame: pd.DataFrame) -> Columns:
    return {"stay": frame.index.to_numpy(), **{str(name): frame[name].to_numpy() for name in frame}}
