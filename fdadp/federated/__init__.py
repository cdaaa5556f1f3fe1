"""Learning from the data of many owners, none of whom trusts anyone with all of it.

*Sums of many owners*: a private estimator whose releases are sums with Gaussian noise is fitted by owners who add their
own noise to their own integer sums and encrypt them; only the sum over owners is ever decrypted (:class:`Contract`,
:class:`Owner`, :class:`Proxy`, :class:`DataUser`).

*Local differential privacy*: each user randomises before anything leaves the device (:class:`LDPLogisticRegression`,
and :class:`LocalClient` and :class:`LocalServer`, of which it is made). Names are loaded on first use.

*For comparison*: :class:`PrivateLocalPCA`, in which owners pass components on, each with noise of its own;
:mod:`fdadp.published.components`, the published encrypted PCA, which is not private.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fdadp._common.lazy import lazy_exports

if TYPE_CHECKING:
    from fdadp.federated.contract import Contract as Contract
    from fdadp.federated.local.client import LocalClient as LocalClient
    from fdadp.federated.local.parameters import LocalParameters as LocalParameters
    from fdadp.federated.local.parameters import LocalServer as LocalServer
    from fdadp.federated.local.randomizers import randomizer as randomizer
    from fdadp.federated.local.statement import shuffled_epsilon as shuffled_epsilon
    from fdadp.federated.local_pca import PrivateLocalPCA as PrivateLocalPCA
    from fdadp.federated.logistic import LDPLogisticRegression as LDPLogisticRegression
    from fdadp.federated.models import fit_in_clear as fit_in_clear
    from fdadp.federated.parties import DataUser as DataUser
    from fdadp.federated.parties import Federation as Federation
    from fdadp.federated.parties import Owner as Owner
    from fdadp.federated.parties import Proxy as Proxy
    from fdadp.federated.parties import fit_together as fit_together
    from fdadp.federated.wire import ProtocolError as ProtocolError

_EXPORTS = {
    "Contract": "fdadp.federated.contract",
    "DataUser": "fdadp.federated.parties",
    "Federation": "fdadp.federated.parties",
    "LDPLogisticRegression": "fdadp.federated.logistic",
    "LocalClient": "fdadp.federated.local.client",
    "LocalParameters": "fdadp.federated.local.parameters",
    "LocalServer": "fdadp.federated.local.parameters",
    "Owner": "fdadp.federated.parties",
    "PrivateLocalPCA": "fdadp.federated.local_pca",
    "ProtocolError": "fdadp.federated.wire",
    "Proxy": "fdadp.federated.parties",
    "fit_in_clear": "fdadp.federated.models",
    "fit_together": "fdadp.federated.parties",
    "randomizer": "fdadp.federated.local.randomizers",
    "shuffled_epsilon": "fdadp.federated.local.statement",
}

__all__ = sorted(_EXPORTS)

__getattr__, __dir__ = lazy_exports(__name__, _EXPORTS)
