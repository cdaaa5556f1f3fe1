"""Hourly tables of stays in intensive care from the records of the PhysioNet/CinC Challenge 2012.

A record is a text file of lines ``time,parameter,value``, of one stay; a set is a tarball of 4,000 of them, and its
outcomes are a table. What is made of them:

* a curve's entry is the mean of the plausible values within the hour, rounded to two decimals, NaN where there is none;
* pressure is the mean of invasive and cuff measurements of the mean arterial pressure;
* of age, sex, height and weight the first entry counts; -1, which stands for missing, is NaN, but in the scores.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fdadp._common.typing import FloatArray
from fdadp.errors import FileFormatError

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
                people[stay] = {
                    "set": name,
                    **_descriptors(first),
                    **dict(zip(ends.columns, ends.loc[stay], strict=True)),
                }
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
