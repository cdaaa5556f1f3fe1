"""Data sets: CanadianWeather is bundled, others are found or downloaded, simulators return the truth."""

from __future__ import annotations

from fdadp.datasets._canadian import load_canadian_weather
from fdadp.datasets._icu import load_icu
from fdadp.datasets._lip import load_lip_emg
from fdadp.datasets._nhanes import load_nhanes_wear
from fdadp.datasets._places import FunctionalDataset, WeatherDataset
from fdadp.datasets._simulate import SimulatedCurves, simulate_affr, simulate_cosine
from fdadp.datasets._tables import TableDataset, load_adult, load_bank_marketing
from fdadp.datasets._tracts import load_dti, load_dti2

__all__ = [
    "FunctionalDataset",
    "SimulatedCurves",
    "TableDataset",
    "WeatherDataset",
    "load_adult",
    "load_bank_marketing",
    "load_canadian_weather",
    "load_dti",
    "load_dti2",
    "load_icu",
    "load_lip_emg",
    "load_nhanes_wear",
    "simulate_affr",
    "simulate_cosine",
]
