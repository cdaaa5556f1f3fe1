"""Differentially private learners on the privacy kernel, with scikit-learn's interface.

Everything that depends on private rows comes from a :class:`fdadp.privacy.Cohort`; what a learner needs to know
besides (classes, bounds, bins, iterations) is public and must be given. Names are loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fdadp._common.lazy import lazy_exports

if TYPE_CHECKING:
    from fdadp.learners.additive_histograms import DPAdditiveHistograms as DPAdditiveHistograms
    from fdadp.learners.additive_regressor import DPAdditiveRegressor as DPAdditiveRegressor
    from fdadp.learners.boosting import DPBoostedStumps as DPBoostedStumps
    from fdadp.learners.cluster import DPKMeans as DPKMeans
    from fdadp.learners.decomposition import DPPCA as DPPCA
    from fdadp.learners.forest import DPForestClassifier as DPForestClassifier
    from fdadp.learners.forest import DPForestRegressor as DPForestRegressor
    from fdadp.learners.linear_regression import DPLinearRegression as DPLinearRegression
    from fdadp.learners.logistic import DPLogisticRegression as DPLogisticRegression
    from fdadp.learners.naive_bayes import DPCategoricalNB as DPCategoricalNB
    from fdadp.learners.naive_bayes import DPGaussianNB as DPGaussianNB
    from fdadp.learners.naive_bayes import DPHistogramNB as DPHistogramNB
    from fdadp.learners.shared.encoding import Categorical as Categorical
    from fdadp.learners.shared.encoding import Numeric as Numeric
    from fdadp.learners.shared.encoding import PublicEncoder as PublicEncoder
    from fdadp.learners.shared.pipelines import check_pipeline as check_pipeline

_EXPORTS = {
    "Categorical": "fdadp.learners.shared.encoding",
    "DPAdditiveHistograms": "fdadp.learners.additive_histograms",
    "DPAdditiveRegressor": "fdadp.learners.additive_regressor",
    "DPBoostedStumps": "fdadp.learners.boosting",
    "DPCategoricalNB": "fdadp.learners.naive_bayes",
    "DPForestClassifier": "fdadp.learners.forest",
    "DPForestRegressor": "fdadp.learners.forest",
    "DPGaussianNB": "fdadp.learners.naive_bayes",
    "DPHistogramNB": "fdadp.learners.naive_bayes",
    "DPKMeans": "fdadp.learners.cluster",
    "DPLinearRegression": "fdadp.learners.linear_regression",
    "DPLogisticRegression": "fdadp.learners.logistic",
    "DPPCA": "fdadp.learners.decomposition",
    "Numeric": "fdadp.learners.shared.encoding",
    "PublicEncoder": "fdadp.learners.shared.encoding",
    "check_pipeline": "fdadp.learners.shared.pipelines",
}

__all__ = sorted(_EXPORTS)

__getattr__, __dir__ = lazy_exports(__name__, _EXPORTS)
