"""Functional data regression with differential privacy.

Names and packages are loaded on first use, so that ``import fdadp`` stays fast. ``__init__.pyi`` says where each is.
"""

from lazy_loader import attach_stub

from fdadp._version import __version__

ROOMS = (
    "audit",
    "datasets",
    "errors",
    "federated",
    "functional",
    "inference",
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

_FIRST_DAY = (
    "terms",
    "FunctionalRegression",
    "ScalarRegression",
    "AdditiveFunctionOnFunction",
    "Privacy",
    "plan",
    "read_curves",
    "PrivateMean",
    "PrivateTable1",
    "simulate_affr",
)

__getattr__, __dir__, _names = attach_stub(__name__, __file__)
__all__ = [*_FIRST_DAY, *(name for name in _names if name not in {*_FIRST_DAY, *ROOMS, "__version__"}), "__version__"]
