"""NOT PRIVATE: schemes as they were published, kept to compare with; their ledgers say what they lack.

Each warns when it is fitted, has ``privacy_spent_ = None`` and a ledger that says in its first line that it is not
private and lists what is released without noise. They read plain arrays, not a :class:`fdadp.privacy.Cohort`: what they
do to the data cannot be had from it. The private counterparts are in :mod:`fdadp.regression`, :mod:`fdadp.learners` and
:mod:`fdadp.federated`. Names are loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fdadp._common.lazy import lazy_exports

if TYPE_CHECKING:
    from fdadp.published.adaboost_and_naive_bayes import PublishedDPAda as PublishedDPAda
    from fdadp.published.adaboost_and_naive_bayes import PublishedGaussianNB as PublishedGaussianNB
    from fdadp.published.adaboost_and_naive_bayes import PublishedNoisyAdaBoost as PublishedNoisyAdaBoost
    from fdadp.published.laplace_on_regression import PublishedNoise as PublishedNoise
    from fdadp.published.pca import PublishedDPDPCA as PublishedDPDPCA
    from fdadp.published.pca import PublishedPCA as PublishedPCA

_MODULES = {
    "adaboost_and_naive_bayes": "PublishedDPAda PublishedGaussianNB PublishedNoisyAdaBoost",
    "pca": "PublishedDPDPCA PublishedPCA",
    "laplace_on_regression": "PublishedNoise",
}
_EXPORTS = {name: f"{__name__}.{module}" for module, names in _MODULES.items() for name in names.split()}

__all__ = sorted(_EXPORTS)

__getattr__, __dir__ = lazy_exports(__name__, _EXPORTS)
