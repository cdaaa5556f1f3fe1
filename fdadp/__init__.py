"""Functional data regression with differential privacy.

Names and packages are loaded on first use, so that ``import fdadp`` stays fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fdadp._common.lazy import lazy_exports
from fdadp._version import __version__

if TYPE_CHECKING:
    from fdadp import terms as terms
    from fdadp.choice.choose import choose_privately as choose_privately
    from fdadp.datasets import load_canadian_weather as load_canadian_weather
    from fdadp.datasets import load_dti as load_dti
    from fdadp.datasets import load_dti2 as load_dti2
    from fdadp.datasets import load_icu as load_icu
    from fdadp.datasets import simulate_affr as simulate_affr
    from fdadp.functional.containers.open import open_curves as open_curves
    from fdadp.functional.files.curve_files import read_curves as read_curves
    from fdadp.functional.fpca import FPCA as FPCA
    from fdadp.functional.metrics import concordance as concordance
    from fdadp.functional.metrics import coverage as coverage
    from fdadp.functional.metrics import rmspe as rmspe
    from fdadp.planner import plan as plan
    from fdadp.privacy import Budget as Budget
    from fdadp.privacy import Privacy as Privacy
    from fdadp.privacy.study import Study as Study
    from fdadp.private.public.prior import PublicPrior as PublicPrior
    from fdadp.private.release.mechanisms import DPAFF as DPAFF
    from fdadp.regression import AdditiveFunctionOnFunction as AdditiveFunctionOnFunction
    from fdadp.regression.functional import FunctionalRegression as FunctionalRegression
    from fdadp.regression.scalar import ScalarRegression as ScalarRegression
    from fdadp.regression.survival import SurvivalRegression as SurvivalRegression
    from fdadp.repeated.multilevel_fpca import MultilevelFPCA as MultilevelFPCA
    from fdadp.summaries import PrivateFPCA as PrivateFPCA
    from fdadp.summaries import PrivateMean as PrivateMean
    from fdadp.summaries import PrivateTable1 as PrivateTable1
    from fdadp.summaries import private_mean as private_mean
    from fdadp.summaries import suggest_bounds as suggest_bounds

_EXPORTS = {
    # The first day, with `terms`.
    "FunctionalRegression": "fdadp.regression.functional",
    "ScalarRegression": "fdadp.regression.scalar",
    "AdditiveFunctionOnFunction": "fdadp.regression",
    "Privacy": "fdadp.privacy",
    "plan": "fdadp.planner",
    "read_curves": "fdadp.functional.files.curve_files",
    "PrivateMean": "fdadp.summaries",
    "PrivateTable1": "fdadp.summaries",
    "simulate_affr": "fdadp.datasets",
    # After the first day.
    "Study": "fdadp.privacy.study",
    "Budget": "fdadp.privacy",
    "DPAFF": "fdadp.private.release.mechanisms",
    "PublicPrior": "fdadp.private.public.prior",
    "choose_privately": "fdadp.choice.choose",
    "FPCA": "fdadp.functional.fpca",
    "MultilevelFPCA": "fdadp.repeated.multilevel_fpca",
    "SurvivalRegression": "fdadp.regression.survival",
    "PrivateFPCA": "fdadp.summaries",
    "private_mean": "fdadp.summaries",
    "suggest_bounds": "fdadp.summaries",
    "open_curves": "fdadp.functional.containers.open",
    "concordance": "fdadp.functional.metrics",
    "coverage": "fdadp.functional.metrics",
    "rmspe": "fdadp.functional.metrics",
    "load_canadian_weather": "fdadp.datasets",
    "load_dti": "fdadp.datasets",
    "load_dti2": "fdadp.datasets",
    "load_icu": "fdadp.datasets",
}

__all__ = ["terms", *_EXPORTS, "__version__"]

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
    "summaries",
    "terms",
)
"""Packages and modules that users reach as ``fdadp.plot``; each is loaded on first use."""

__getattr__, __dir__ = lazy_exports(__name__, _EXPORTS, ROOMS)
