"""Functional data regression with differential privacy.

Names are loaded on first use, so that ``import fdadp`` stays fast.
"""

from __future__ import annotations

import importlib
from typing import Any

from fdadp._version import __version__

_EXPORTS = {
    "AdditiveFunctionOnFunction": "fdadp.regression",
    "FPCA": "fdadp.fpca",
    "Moments": "fdadp.moments",
    "Bounds": "fdadp.privacy",
    "Privacy": "fdadp.privacy",
    "PrivateFPCA": "fdadp.summaries",
    "PrivateMean": "fdadp.summaries",
    "PublicPrior": "fdadp.regression.private.prior",
    "load_canadian_weather": "fdadp.datasets",
    "load_dti": "fdadp.datasets",
    "load_dti2": "fdadp.datasets",
    "load_lip_emg": "fdadp.datasets",
    "simulate_affr": "fdadp.datasets",
    "simulate_cosine": "fdadp.datasets",
    "rmspe": "fdadp.metrics",
    "coverage": "fdadp.metrics",
    "plan": "fdadp.planner",
}

__all__ = ["__version__", *sorted(_EXPORTS)]


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'fdadp' has no attribute {name!r}")
    value = getattr(importlib.import_module(_EXPORTS[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_EXPORTS))
