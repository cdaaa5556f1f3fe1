"""Days of NHANES 2003-2004 on which an accelerometer was worn: several curves a person. Never bundled."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fdadp._common.argument_checks import whole
from fdadp._common.loaded_later import pd
from fdadp.datasets._data_locations import Columns, FunctionalDataset, find_data, in_folder, make_curves
from fdadp.errors import FileFormatError, InputError

MINUTES, LEAST_HOURS = 1440, 10
FILES = ("nhanes_wear_c.npz", "nhanes_people_c.csv.gz")
SHA256 = "6cd4ebf34dee97a0b78a41d4d283451f8db6d960e3dd77bc06262a4169cf0314"
SOURCE = (
    "National Health and Nutrition Examination Survey 2003-2004, physical activity monitor, public use files of the US "
    "government (public domain), as prepared in the R package rnhanesdata: A. Leroux, J. Di, E. Smirnova et al. "
    "(2019), Organizing and analyzing the activity data in NHANES, Statistics in Biosciences 11:262-287, "
    "doi:10.1007/s12561-018-09229-9."
)


def load_nhanes_wear(*, minutes: int = 10, as_frame: bool = False) -> FunctionalDataset:
    """Share of each interval of the day in which an accelerometer was worn: up to seven days of 6,722 people.

    Whether the device was worn is known for each minute; the intensities are not in these files. Days of less than ten
    hours are left out, as is usual. The files are looked for in the folder ``FDADP_DATA`` (default: ``data`` in the
    user's cache folder; ``../shared/data`` beside a copy of the repository), and must have the published values.

    Parameters
    ----------
    minutes : int
        Length of an interval; 1,440 is a multiple of it. With 1 there are 1,440 points of 0 and 1, and 400 MB.
    as_frame : bool
        Return the curves as data frame (default: ``FDataGrid``).

    Returns
    -------
    FunctionalDataset
        ``Y`` is the share worn (34584, 1440 / minutes), at the middles of intervals in hours from midnight. ``X`` is
        None. ``covariates`` has weekday (1 is Sunday), weekend, age in years, sex and BMI. ``groups`` is the person
        (SEQN).

    Raises
    ------
    InputError
        1,440 is no multiple of `minutes`.
    MissingDataError, FileFormatError
        The files are nowhere, or hold something else.

    Examples
    --------
    >>> days = load_nhanes_wear(minutes=60)  # doctest: +SKIP
    >>> days.Y.data_matrix.shape, len(set(days.groups))  # doctest: +SKIP
    ((34584, 24, 1), 6722)
    """
    if MINUTES % whole(minutes, "minutes", least=1):
        raise InputError(f"minutes must divide 1440, got {minutes}")
    columns = find_data(
        "NHANES wear flags", [in_folder(FILES, _read)], SHA256, f"Put {' and '.join(FILES)} into the folder FDADP_DATA."
    )
    worn = np.unpackbits(columns["worn"], axis=1, count=MINUTES)
    kept = worn.sum(axis=1) >= 60 * LEAST_HOURS
    shares = worn[kept].reshape(int(kept.sum()), -1, minutes).mean(axis=2)
    weekday = columns["weekday"][kept].astype(np.int64)
    covariates = pd.DataFrame({"weekday": weekday, "weekend": (weekday == 1) | (weekday == 7)})
    covariates = covariates.assign(**{name: columns[name][kept] for name in ("age", "sex", "bmi")})
    hours = (np.arange(shares.shape[1]) + 0.5) * minutes / 60
    return FunctionalDataset(
        name="NHANES wear flags",
        X=None,
        Y=make_curves(shares, hours, name="share worn", argument="hour", index=covariates.index if as_frame else None),
        covariates=covariates,
        groups=columns["person"][kept],
        units={"Y": "share of the interval", "hour": "hours from midnight", "age": "years", "bmi": "kg/m²"},
        source=SOURCE,
    )


def _read(paths: list[Path]) -> Columns:
    wear, table = paths
    try:
        with np.load(wear, allow_pickle=False) as file:
            days = {name: file[name] for name in ("worn", "person", "weekday")}
        people = pd.read_csv(table, index_col="SEQN").loc[days["person"]]
    except (KeyError, ValueError, EOFError, OSError) as exc:
        named = " and ".join(map(str, paths))
        raise FileFormatError(f"{named} must be packed days and a table of their people, got {exc}") from exc
    own = {"age": people["RIDAGEYR"].to_numpy(float), "bmi": people["BMI"].to_numpy(float)}
    return {**days, **own, "sex": people["Gender"].to_numpy(str)}
