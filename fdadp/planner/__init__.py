"""What a private fit will be worth, before any data are touched: simulation from the public prior."""

from __future__ import annotations

from fdadp.planner.forecast import Forecast, plan
from fdadp.planner.forecast_of_mixed_models import MixedForecast, plan_mixed
from fdadp.planner.forecast_of_multilevel_fpca import LevelsForecast, plan_levels
from fdadp.planner.forecast_of_survival import HazardsForecast, SurvivalForecast, plan_hazards, plan_survival

__all__ = [
    "Forecast",
    "HazardsForecast",
    "LevelsForecast",
    "MixedForecast",
    "SurvivalForecast",
    "plan",
    "plan_hazards",
    "plan_levels",
    "plan_mixed",
    "plan_survival",
]
