"""Functional data regression with differential privacy.

Names are loaded on first use, so that ``import fdadp`` stays fast.
"""

from __future__ import annotations

from fdadp._common.lazy import lazy_exports
from fdadp._version import __version__

_EXPORTS = {
    "AdditiveFunctionOnFunction": "fdadp.regression",
    "FPCA": "fdadp.functional.fpca",
    "Moments": "fdadp.solve.moments",
    "Bounds": "fdadp.privacy",
    "Privacy": "fdadp.privacy",
    "PrivateFPCA": "fdadp.summaries",
    "PrivateMean": "fdadp.summaries",
    "PublicPrior": "fdadp.private.prior",
    "load_canadian_weather": "fdadp.datasets",
    "load_dti": "fdadp.datasets",
    "load_dti2": "fdadp.datasets",
    "load_lip_emg": "fdadp.datasets",
    "simulate_affr": "fdadp.datasets",
    "simulate_cosine": "fdadp.datasets",
    "rmspe": "fdadp.functional.metrics",
    "choose_privately": "fdadp.learners.choice",
    "coverage": "fdadp.functional.metrics",
    "plan": "fdadp.planner",
}

__all__ = ["__version__", *sorted(_EXPORTS)]

__getattr__, __dir__ = lazy_exports(__name__, _EXPORTS)
