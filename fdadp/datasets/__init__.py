"""Data sets: CanadianWeather is bundled, others are found or downloaded, simulators return the truth."""

from __future__ import annotations

from fdadp.datasets._adult_and_bank import TableDataset, load_adult, load_bank_marketing
from fdadp.datasets._canadian_weather import load_canadian_weather
from fdadp.datasets._data_locations import FunctionalDataset, WeatherDataset
from fdadp.datasets._dti_tracts import load_dti, load_dti2
from fdadp.datasets._icu import load_icu
from fdadp.datasets._lip_emg import load_lip_emg
from fdadp.datasets._nhanes_wear_time import load_nhanes_wear
from fdadp.datasets._simulated_curves import SimulatedCurves, simulate_affr, simulate_cosine

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
