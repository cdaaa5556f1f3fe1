"""Differentially private learners on the privacy kernel, with scikit-learn's interface.

Everything that depends on private rows comes from a :class:`fdadp.privacy.Cohort`; what a learner needs to know
besides (classes, bounds, bins, iterations) is public and must be given. Names are loaded on first use.
"""

from __future__ import annotations

import importlib
from typing import Any

_EXPORTS = {
    "Categorical": "fdadp.learners.encoding",
    "DPAdditiveHistograms": "fdadp.learners.boosting",
    "DPBoostedStumps": "fdadp.learners.boosting",
    "DPCategoricalNB": "fdadp.learners.naive_bayes",
    "DPGaussianNB": "fdadp.learners.naive_bayes",
    "DPHistogramNB": "fdadp.learners.naive_bayes",
    "DPKMeans": "fdadp.learners.cluster",
    "DPPCA": "fdadp.learners.decomposition",
    "Numeric": "fdadp.learners.encoding",
    "PublicEncoder": "fdadp.learners.encoding",
}

__all__ = sorted(_EXPORTS)


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'fdadp.learners' has no attribute {name!r}")
    value = getattr(importlib.import_module(_EXPORTS[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_EXPORTS))
