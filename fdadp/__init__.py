"""Functional data regression with differential privacy.

Names and packages are loaded on first use, so that ``import fdadp`` stays fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fdadp._common.lazy import lazy_exports
from fdadp._version import __version__

if TYPE_CHECKING:
    from fdadp.choice.choose import choose_privately as choose_privately
    from fdadp.choice.plan import plan_choice as plan_choice
    from fdadp.datasets import load_canadian_weather as load_canadian_weather
    from fdadp.datasets import load_dti as load_dti
    from fdadp.datasets import load_dti2 as load_dti2
    from fdadp.datasets import load_icu as load_icu
    from fdadp.datasets import load_lip_emg as load_lip_emg
    from fdadp.datasets import simulate_affr as simulate_affr
    from fdadp.datasets import simulate_cosine as simulate_cosine
    from fdadp.functional.containers.open import open_curves as open_curves
    from fdadp.functional.fpca import FPCA as FPCA
    from fdadp.functional.metrics import coverage as coverage
    from fdadp.functional.metrics import rmspe as rmspe
    from fdadp.planner import plan as plan
    from fdadp.privacy import Privacy as Privacy
    from fdadp.privacy.study import Study as Study
    from fdadp.private.mechanisms import DPAFF as DPAFF
    from fdadp.private.mechanisms import MomentPerturbation as MomentPerturbation
    from fdadp.private.mechanisms import OutputPerturbation as OutputPerturbation
    from fdadp.private.prior import PublicPrior as PublicPrior
    from fdadp.regression import AdditiveFunctionOnFunction as AdditiveFunctionOnFunction
    from fdadp.regression.functional import FunctionalRegression as FunctionalRegression
    from fdadp.regression.scalar import ScalarRegression as ScalarRegression
    from fdadp.solve.moments import Moments as Moments
    from fdadp.summaries import PrivateFPCA as PrivateFPCA
    from fdadp.summaries import PrivateMean as PrivateMean

_EXPORTS = {
    "AdditiveFunctionOnFunction": "fdadp.regression",
    "FPCA": "fdadp.functional.fpca",
    "Moments": "fdadp.solve.moments",
    "DPAFF": "fdadp.private.mechanisms",
    "MomentPerturbation": "fdadp.private.mechanisms",
    "OutputPerturbation": "fdadp.private.mechanisms",
    "Privacy": "fdadp.privacy",
    "PrivateFPCA": "fdadp.summaries",
    "PrivateMean": "fdadp.summaries",
    "Study": "fdadp.privacy.study",
    "FunctionalRegression": "fdadp.regression.functional",
    "ScalarRegression": "fdadp.regression.scalar",
    "PublicPrior": "fdadp.private.prior",
    "load_canadian_weather": "fdadp.datasets",
    "load_dti": "fdadp.datasets",
    "load_dti2": "fdadp.datasets",
    "load_icu": "fdadp.datasets",
    "load_lip_emg": "fdadp.datasets",
    "simulate_affr": "fdadp.datasets",
    "simulate_cosine": "fdadp.datasets",
    "rmspe": "fdadp.functional.metrics",
    "choose_privately": "fdadp.choice.choose",
    "plan_choice": "fdadp.choice.plan",
    "coverage": "fdadp.functional.metrics",
    "open_curves": "fdadp.functional.containers.open",
    "plan": "fdadp.planner",
}

__all__ = ["__version__", *sorted(_EXPORTS)]

ROOMS = (
    "audit",
    "datasets",
    "errors",
    "federated",
    "functional",
    "learners",
    "planner",
    "plot",
    "privacy",
    "published",
    "regression",
    "studies",
    "summaries",
    "terms",
)
"""Packages and modules that users reach as ``fdadp.plot``; each is loaded on first use."""

__getattr__, __dir__ = lazy_exports(__name__, _EXPORTS, ROOMS)
