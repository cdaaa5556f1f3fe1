"""What a private fit will be worth, before any data are touched: simulation from the public prior."""

from __future__ import annotations

from fdadp.planner.forecast import Forecast, plan

__all__ = ["Forecast", "plan"]
