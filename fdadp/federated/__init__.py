"""Learning from the data of many owners, none of whom trusts anyone with all of it.

*Sums of many owners*: a private estimator whose releases are sums with Gaussian noise is fitted by owners who add their
own noise to their own integer sums, and hide them by masks that cancel in the sum over owners (:class:`Contract`,
:func:`fit_together`, :mod:`fdadp.federated.owners`): in one process, between machines by HTTP
(:mod:`fdadp.federated.service`), or on Flower (:mod:`fdadp.federated.flower`).

*Local differential privacy*: each user randomises before anything leaves the device (:class:`LDPLogisticRegression`,
and :class:`LocalClient` and :class:`LocalServer`, of which it is made). Names are loaded on first use.

*For comparison*: :class:`PrivateLocalPCA`, in which owners pass components on, each with noise of its own;
:mod:`fdadp.published.pca`, the published encrypted PCA, which is not private.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
