"""Differentially private learners on the privacy kernel, with scikit-learn's interface.

Everything that depends on private rows comes from a :class:`fdadp.privacy.Cohort`; what a learner needs to know
besides (classes, bounds, bins, iterations) is public and must be given. Names are loaded on first use.
"""

from __future__ import annotations

from fdadp._common.lazy import lazy_exports

_EXPORTS = {
    "Categorical": "fdadp.learners.encoding",
    "DPAdditiveHistograms": "fdadp.learners.additive_histograms",
    "DPBoostedStumps": "fdadp.learners.boosting",
    "DPCategoricalNB": "fdadp.learners.histogram_bayes",
    "DPGaussianNB": "fdadp.learners.naive_bayes",
    "DPHistogramNB": "fdadp.learners.histogram_bayes",
    "DPKMeans": "fdadp.learners.cluster",
    "DPLinearRegression": "fdadp.learners.linear_regression",
    "DPLogisticRegression": "fdadp.learners.logistic",
    "DPPCA": "fdadp.learners.decomposition",
    "Numeric": "fdadp.learners.encoding",
    "PublicEncoder": "fdadp.learners.encoding",
}

__all__ = sorted(_EXPORTS)

__getattr__, __dir__ = lazy_exports(__name__, _EXPORTS)
