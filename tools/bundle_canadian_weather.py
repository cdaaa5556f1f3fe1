"""Make the bundled Canadian weather files from the MIT-licensed PyPI package fdars.

Usage: ``python tools/bundle_canadian_weather.py`` (needs ``pip install fdars==0.13.0``).

The numbers are copied as text, so that nothing is rounded; gzip gets no time stamp, so that the files are
the same byte for byte whenever they are made.  Values are kept as in the source, oddities included: they are
converted when loaded (``fdadp/datasets/_canadian_weather.py``).
"""

from __future__ import annotations

import csv
import gzip
import importlib.util
from pathlib import Path

TARGET = Path(__file__).resolve().parents[1] / "fdadp" / "datasets" / "data"


def fdars_data() -> Path:
    """Return the data folder of fdars, found without importing its compiled part."""
    spec = importlib.util.find_spec("fdars")
    if spec is None or spec.origin is None:
        raise SystemExit("fdars must be installed: pip install fdars==0.13.0")
    return Path(spec.origin).parent / "data"


def transpose(source: Path) -> str:
    """One day a row, one station a column -> one station a row, as text."""
    with source.open(newline="", encoding="utf-8") as file:
        columns = list(zip(*csv.reader(file), strict=True))
    days, stations = columns[0][1:], columns[1:]
    if len(days) != 365 or len(stations) != 35:
        raise SystemExit(f"{source} must hold 365 days of 35 stations, got {len(days)} of {len(stations)}")
    lines = [",".join(("place", *days)), *(",".join(station) for station in stations)]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the three files and the licence."""
    source = fdars_data()
    for name, file in (("temperature", "canadian_weather.csv"), ("precipitation", "canadian_weather_precip.csv")):
        packed = gzip.compress(transpose(source / file).encode(), compresslevel=9, mtime=0)
        (TARGET / f"canadian_weather_{name}.csv.gz").write_bytes(packed)
    stations = (source / "canadian_weather_meta.csv").read_text(encoding="utf-8").replace('"', "")
    (TARGET / "canadian_weather_stations.csv").write_text(stations, encoding="utf-8", newline="\n")
    licence = next(source.parent.parent.glob("fdars-*.dist-info/licenses/LICENSE"))
    (TARGET / "LICENSE-fdars").write_text(licence.read_text(encoding="utf-8"), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
