"""Many owners of data, and nobody whom all of them trust with it.

A private estimator of fdadp whose releases are sums with Gaussian noise can be fitted so: owners add their own noise to
their own integer sums and encrypt them, and only the sum over owners is ever decrypted (:class:`Contract`,
:class:`Owner`, :class:`Proxy`, :class:`DataUser`).
"""

from __future__ import annotations

from fdadp.federated.contract import Contract
from fdadp.federated.in_memory import Federation, fit_together
from fdadp.federated.parties import DataUser, Owner, Proxy
from fdadp.federated.wire import ProtocolError

__all__ = ["Contract", "DataUser", "Federation", "Owner", "ProtocolError", "Proxy", "fit_together"]
