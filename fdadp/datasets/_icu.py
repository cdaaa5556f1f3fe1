"""The first 48 hours of 8,000 stays in intensive care."""

from __future__ import annotations

import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fdadp._common.argument_checks import one_of
from fdadp._common.loaded_later import pd
from fdadp._common.typing import FloatArray
from fdadp.datasets import _data_locations
from fdadp.datasets._data_locations import Columns, FunctionalDataset, Place
from fdadp.errors import FileFormatError

# Hourly tables of stays in intensive care from the records of the PhysioNet/CinC Challenge 2012.
#
# A record is a text file of lines ``time,parameter,value``, of one stay; a set is a tarball of 4,000 of them, and its
# outcomes are a table. What is made of them:
#
# * a curve's entry is the mean of the plausible values within the hour, rounded to two decimals, NaN where there is
# none;
# * pressure is the mean of invasive and cuff measurements of the mean arterial pressure;
# * of age, sex, height and weight the first entry counts; -1, which stands for missing, is NaN, but in the scores.


HOURS = 48
RECORDED: Mapping[str, tuple[tuple[str, ...], float, float]] = {
    "heart_rate": (("HR",), 20.0, 220.0),
    "pressure": (("MAP", "NIMAP"), 20.0, 200.0),
}
"""Parameters of a curve, and the least and the largest plausible value."""

WARDS = {1: "coronary", 2: "cardiac surgery", 3: "medical", 4: "surgical"}
DESCRIPTORS = {"Age": "age", "Gender": "male", "Height": "height_cm", "Weight": "weight_kg", "ICUType": "icu_type"}
OUTCOMES = {
    "SAPS-I": "saps1",
    "SOFA": "sofa",
    "Length_of_stay": "length_of_stay_days",
    "In-hospital_death": "died_in_hospital",
}


def prepare(sets: Mapping[str, tuple[Path, Path]]) -> dict[str, pd.DataFrame]:
    """Tables of curves and of stays.

    Parameters
    ----------
    sets : mapping
        Tarball of records, and table of outcomes, by the name of a set.

    Returns
    -------
    dict of DataFrame
        ``heart_rate`` and ``pressure``: stays x 48 hours, columns the middles of the hours; ``stays``: who they are.
        Rows are in the order of the stays' numbers.

    Raises
    ------
    FileFormatError
        A file is something else, or a stay has no outcome.
    """
    curves: dict[str, dict[int, FloatArray]] = {name: {} for name in RECORDED}
    people: dict[int, dict[str, Any]] = {}
    for name, (records, outcomes) in sets.items():
        try:
            ends = pd.read_csv(outcomes, index_col="RecordID")[list(OUTCOMES)].rename(columns=OUTCOMES)
            for stay, lines in _records(records):
                first, series = _parse(lines)
                for curve, (minutes, values) in series.items():
                    curves[curve][stay] = _hourly(minutes, values, *RECORDED[curve][1:])
                people[stay] = {"set": name, **_descriptors(first), **ends.loc[stay]}
        except (ValueError, KeyError, EOFError, tarfile.TarError) as exc:
            raise FileFormatError(
                f"{records} and {outcomes} must be a set of the challenge and its outcomes, got {exc!r}"
            ) from exc
    index = pd.Index(sorted(people), name="stay")
    hours = np.arange(HOURS) + 0.5
    tables = {
        curve: pd.DataFrame([found[stay] for stay in index], index=index, columns=hours)
        for curve, found in curves.items()
    }
    return tables | {"stays": pd.DataFrame([people[stay] for stay in index], index=index)}


def _records(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Number of each stay of a set, and the lines of its record below the first."""
    with tarfile.open(path) as archive:
        for member in archive:
            if member.isfile() and member.name.endswith(".txt"):
                stream = archive.extractfile(member)
                assert stream is not None  # of a file
                yield int(Path(member.name).stem), stream.read().decode("ascii").splitlines()[1:]


def _parse(lines: Iterable[str]) -> tuple[dict[str, float], dict[str, tuple[list[int], list[float]]]]:
    """First value of each descriptor, and minutes and values of each curve."""
    of = {parameter: curve for curve, (names, *_) in RECORDED.items() for parameter in names}
    first: dict[str, float] = {}
    series: dict[str, tuple[list[int], list[float]]] = {curve: ([], []) for curve in RECORDED}
    for line in lines:
        time, parameter, value = line.split(",")
        if parameter in of:
            minutes, values = series[of[parameter]]
            hour, minute = time.split(":")
            minutes.append(60 * int(hour) + int(minute))
            values.append(float(value))
        elif parameter in DESCRIPTORS and parameter not in first:
            first[parameter] = float(value)
    return first, series


def _hourly(minutes: Sequence[int], values: Sequence[float], least: float, most: float) -> FloatArray:
    """Means of the plausible values within each hour."""
    at, found = np.asarray(minutes, dtype=np.int64) // 60, np.asarray(values, dtype=np.float64)
    kept = (least <= found) & (found <= most) & (at < HOURS)
    numbers = np.bincount(at[kept], minlength=HOURS)
    sums = np.bincount(at[kept], found[kept], minlength=HOURS)
    return np.asarray(np.round(np.where(numbers > 0, sums / np.maximum(numbers, 1), np.nan), 2), dtype=np.float64)


def _descriptors(first: Mapping[str, float]) -> dict[str, Any]:
    found: dict[str, Any] = {
        ours: np.nan if first[theirs] == -1 else first[theirs] for theirs, ours in DESCRIPTORS.items()
    }
    return found | {"icu_type": WARDS[int(found["icu_type"])]}


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
"""Of the values of these tables (:func:`fdadp.datasets._data_locations.content_sha256`)."""

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

HALF = 24
"""Hours of a day, one column each."""


def load_icu(
    curves: str = "heart_rate", *, as_frame: bool = False, download: bool = True, sha256: str | None = None
) -> FunctionalDataset:
    """Hourly heart rate or blood pressure of 8,000 adults in intensive care: day 1, day 2, and who they are.

    The data are not part of fdadp. The function looks in the folder ``FDADP_DATA`` (see :func:`load_dti2`) for prepared
    tables, ``icu_heart_rate.csv.gz``, ``icu_mean_arterial_pressure.csv.gz`` and ``icu_stays.csv.gz``. Then it looks for
    the archives of the challenge, ``set-a.tar.gz``, ``set-b.tar.gz``, ``Outcomes-a.txt`` and ``Outcomes-b.txt``.
    Otherwise it downloads these from PhysioNet. It prepares them in five seconds.

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
        ``X`` has hours 0 to 24 (8000, 24), ``Y`` hours 24 to 48 (8000, 24). Hours without a measurement are NaN.
        ``covariates`` has age, male, icu_type, saps1, sofa, died_in_hospital and others (-1 is missing in the scores).
        ``groups`` is the stay, of one person each. There are ``units`` and ``source``.

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
    one_of(curves, "curves", tuple(RECORDED))
    hours, stays = _tables(curves, download, sha256)
    grid = hours.columns.to_numpy(dtype=np.float64)
    index = hours.index if as_frame else None
    x, y = (
        _data_locations.make_curves(
            hours.iloc[:, part].to_numpy(), grid[part], name=curves, argument="hour", index=index
        )
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
    folder, wanted = _data_locations.data_dir(), sha256 or PREPARED_SHA256
    if (folder / FILES[curves]).is_file():
        return _read(folder, curves), _read(folder, "stays")
    kept: dict[str, pd.DataFrame] = {}
    decode = partial(_prepared, kept, wanted)
    places = [
        Place(f"{FILES[curves]} and {FILES['stays']} in {_data_locations.data_dir_label()}", lambda: None),
        _data_locations.in_folder(ARCHIVES, decode, label=str(folder)),
    ]
    if download:
        places.append(_data_locations.on_site([f"{SITE}{name}" for name in ARCHIVES], decode, wanted, SITE))
    _data_locations.find_data(
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
    found = _data_locations.content_sha256(columns)
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
    found = _data_locations.content_sha256(_columns(frame))
    if found != SHA256[what]:
        raise FileFormatError(
            f"{path} must hold the published values (content SHA-256 {SHA256[what][:12]}...), got {found[:12]}..."
        )
    return frame


def _columns(frame: pd.DataFrame) -> Columns:
    return {"stay": frame.index.to_numpy(), **{str(name): frame[name].to_numpy() for name in frame}}
