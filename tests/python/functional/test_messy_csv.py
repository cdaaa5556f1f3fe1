"""Files as other programs write them: semicolons, decimal commas, UTF-16, long tables with time stamps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fdadp import Privacy, PrivateMean, open_curves
from fdadp.errors import FileFormatError, InputError
from fdadp.functional.files.curve_files import read_curves
from fdadp.functional.tables.curves import as_curves

HOURS = [f"h{hour:02d}" for hour in range(6)]
VALUES = np.random.default_rng(0).normal(60, 5, (30, 6)).round(3)
GERMAN = {"sep": ";", "decimal": ","}


def written(path: Path) -> Path:
    pd.DataFrame(VALUES, columns=HOURS).rename_axis("id").to_csv(path, sep=";", decimal=",")
    return path


@pytest.mark.parametrize("read", [read_curves, open_curves])
def test_semicolons_are_detected_and_the_cure_is_named(tmp_path: Path, read: object) -> None:
    path = written(tmp_path / "x.csv")
    with pytest.raises(FileFormatError, match='got semicolons: say sep=";", and decimal=","'):
        read(path)  # type: ignore[operator]
    with pytest.raises(InputError, match="sep must be"):
        read(path, sep="|")  # type: ignore[operator]


def test_decimal_commas_are_read_as_points_are(tmp_path: Path) -> None:
    path = written(tmp_path / "x.csv")
    np.testing.assert_array_equal(read_curves(path, **GERMAN).to_numpy(), VALUES)
    opened = open_curves(path, curves={"X": "h"}, **GERMAN)["X"]
    np.testing.assert_array_equal(as_curves(opened).values, VALUES)

    def mean(data: object) -> np.ndarray:
        privacy = Privacy(8.0, 1e-6, n=30, random_state=0)
        return PrivateMean(privacy=privacy, bounds=(40, 80), allow_useless=True).fit(data, t=np.arange(6.0)).mean_

    np.testing.assert_array_equal(mean(opened), mean(VALUES))


@pytest.mark.parametrize("read", [read_curves, open_curves])
def test_utf16_is_named(tmp_path: Path, read: object) -> None:
    path = tmp_path / "x.csv"
    path.write_text("h00,h01,h02\n1,2,3\n", encoding="utf-16")
    with pytest.raises(FileFormatError, match="must be text in UTF-8, got UTF-16"):
        read(path)  # type: ignore[operator]


def test_a_long_frame_with_time_stamps_in_any_order_of_rows(tmp_path: Path) -> None:
    stamps = [f"2024-03-01 0{hour}:05" for hour in range(6)]
    rows = [(f"p{i}", stamp, VALUES[i, j]) for i in range(30) for j, stamp in enumerate(stamps)]
    frame = pd.DataFrame(rows, columns=["who", "when", "pulse"])
    frame.to_csv(tmp_path / "long.csv", index=False)
    wanted = read_curves(frame, long=("who", "when", "pulse"))
    np.testing.assert_array_equal(wanted.to_numpy(), VALUES)
    np.testing.assert_array_equal(as_curves(wanted).grid, np.arange(6))
    shuffled = frame.sample(frac=1, random_state=0)
    long = ("who", "when", "pulse")
    for found in (read_curves(tmp_path / "long.csv", long=long), read_curves(shuffled, long=long)):
        pd.testing.assert_frame_equal(found.loc[wanted.index], wanted)
