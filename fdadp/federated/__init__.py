"""Learning from the data of many owners, none of whom trusts anyone with all of it.

*Sums of many owners*: a private estimator whose releases are sums with Gaussian noise is fitted by owners who add their
own noise to their own integer sums and encrypt them; only the sum over owners is ever decrypted (:class:`Contract`,
:class:`Owner`, :class:`Proxy`, :class:`DataUser`).

*Local differential privacy*: each user randomises before anything leaves the device (:class:`LDPLogisticRegression`,
and :class:`LocalClient` and :class:`LocalServer`, of which it is made). Names are loaded on first use.

*For comparison*: :class:`PrivateLocalPCA`, in which owners pass components on, each with noise of its own;
:mod:`fdadp.published.pca`, the published encrypted PCA, which is not private.
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

_MODULES = {
    "contract": "Contract",
    "local.client": "LocalClient",
    "local.parameters": "LocalParameters LocalServer",
    "local.randomizers": "randomizer",
    "local.statement": "shuffled_epsilon",
    "local_pca": "PrivateLocalPCA",
    "logistic": "LDPLogisticRegression",
    "models": "fit_in_clear",
    "parties": "DataUser Federation Owner Proxy fit_together",
    "wire": "ProtocolError",
}
_EXPORTS = {name: f"{__name__}.{module}" for module, names in _MODULES.items() for name in names.split()}

__all__ = sorted(_EXPORTS)

__getattr__, __dir__ = lazy_exports(__name__, _EXPORTS)
