"""Canadian weather, the bundled data set."""

from __future__ import annotations

from importlib.resources import files

import numpy as np

from fdadp._common.loaded_later import pd
from fdadp._common.typing import FloatArray
from fdadp.datasets._data_locations import WeatherDataset, make_curves

ZERO_PRECIPITATION = 0.05
"""mm. Half the rounding step of the source: what Ramsay & Silverman put for the 27 zeros before the logarithm."""

SOURCE = (
    "Daily averages over 1960-1994 at 35 Canadian weather stations. J. O. Ramsay & B. W. Silverman (2005), "
    "Functional Data Analysis, 2nd ed., Springer; R package fda, CanadianWeather. "
    "Bundled from the PyPI package fdars 0.13.0 (MIT licence)."
)


def load_canadian_weather(*, as_frame: bool = False) -> WeatherDataset:
    """Temperature and precipitation of 35 Canadian weather stations, 365 days (bundled).

    Parameters
    ----------
    as_frame : bool
        Return the curves as data frames with the place as index and the grid as columns
        (default: ``FDataGrid``).

    Returns
    -------
    WeatherDataset
        ``X`` is the temperature in degrees C (35, 365). ``Y`` is log10 of the precipitation in mm, its 27 zeros first
        replaced by 0.05 mm, as in R's ``fda``. Both are on the grid ``(day - 0.5) / 365`` of [0, 1]. ``precipitation``
        is in mm, with its zeros. ``stations`` (also ``covariates``) has place, province, region, latitude (degrees
        north) and longitude (degrees east, so all are negative), in decimal degrees. There are ``units`` and
        ``source``. ``groups`` is None, as the rows are places, not people.

    Notes
    -----
    The source writes coordinates as degrees.minutes, Pr. George's alone in decimal degrees; they are
    converted here. Those of "Charlottvl" (and its province, Ontario) look wrong in the source and are kept.

    References
    ----------
    Ramsay, J. O. and Silverman, B. W. (2005). *Functional Data Analysis*, 2nd ed. Springer.
    doi:10.1007/b98888

    Examples
    --------
    >>> weather = load_canadian_weather()
    >>> weather.X.data_matrix.shape
    (35, 365, 1)
    >>> weather.stations.loc[0, ["place", "region"]].tolist()
    ['St. Johns', 'Atlantic']
    """
    temperature, precipitation = _read_curves("temperature"), _read_curves("precipitation")
    stations = _read_stations()
    grid = (np.arange(1, 366) - 0.5) / 365
    logged = np.log10(np.where(precipitation == 0, ZERO_PRECIPITATION, precipitation))
    index = None
    if as_frame:
        stations = stations.set_index("place", drop=False)
        stations.index.name = None
        index = stations.index
    return WeatherDataset(
        name="Canadian weather",
        X=make_curves(temperature, grid, name="temperature", argument="time", index=index),
        Y=make_curves(logged, grid, name="log10 precipitation", argument="time", index=index),
        precipitation=make_curves(precipitation, grid, name="precipitation", argument="time", index=index),
        covariates=stations,
        groups=None,
        units={
            "X": "degrees C, mean of the day over 1960-1994",
            "Y": "log10 of mm per day, zeros first replaced by 0.05 mm",
            "precipitation": "mm per day, mean over 1960-1994",
            "time": "years since 1 January, (day - 0.5) / 365",
            "latitude": "decimal degrees north",
            "longitude": "decimal degrees east",
        },
        source=SOURCE,
    )


def _read_curves(name: str) -> FloatArray:
    with (files("fdadp.datasets") / "data" / f"canadian_weather_{name}.csv.gz").open("rb") as file:
        frame = pd.read_csv(file, compression="gzip", index_col="place")
    return frame.to_numpy(dtype=np.float64)


def _read_stations() -> pd.DataFrame:
    with (files("fdadp.datasets") / "data" / "canadian_weather_stations.csv").open("rb") as file:
        raw = pd.read_csv(file)
    decimal = (raw["station"] == "Pr. George").to_numpy()
    coordinates = {name: raw[name].to_numpy(dtype=np.float64) for name in ("lat", "lon")}
    latitude, longitude = (np.where(decimal, c, degrees_minutes(c)) for c in coordinates.values())
    return pd.DataFrame(
        {
            "place": raw["station"],
            "province": raw["province"],
            "region": raw["region"],
            "latitude": latitude,
            "longitude": longitude,
        }
    )


def degrees_minutes(coordinate: FloatArray) -> FloatArray:
    """Convert degrees.minutes to decimal degrees, sign kept: 47.34 (47 deg 34 min) is 47.5667."""
    size = np.abs(coordinate)
    degrees = np.floor(size)
    minutes = np.rint((size - degrees) * 100)  # 0.34 is not exact in binary
    return np.asarray(np.copysign(degrees + minutes / 60, coordinate))
