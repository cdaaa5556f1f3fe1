"""All parties in one process, for tests, notebooks and small studies; they still exchange bytes only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from fdadp.errors import InputError
from fdadp.federated.contract import USER, Contract
from fdadp.federated.models import seed_of
from fdadp.federated.paillier import SecretKey, keys
from fdadp.federated.parties import DataUser, Owner, Party
from fdadp.federated.proxy import Proxy


class Federation:
    """Owners, proxy and user of one run, in memory.

    Parameters
    ----------
    contract : Contract
        A draft, too: the user's key is put in.
    data : sequence of tuples of arrays
        One for each owner.
    key : SecretKey, optional
        The user's; by default a new one.
    n_jobs
        See :class:`~fdadp.federated.Proxy` and :class:`~fdadp.federated.Owner`.
    random_state : int, optional
        Seeded shares: makes the contract a simulation, whose results are not for release.

    Attributes
    ----------
    contract : Contract
        What the parties have agreed on.
    owners, user, proxy : the parties
    traffic : list of (str, str, bytes)
        Every message: from, to, bytes. What a party got is all that it saw.
    """

    def __init__(
        self,
        contract: Contract,
        data: Sequence[tuple[Any, ...]],
        *,
        key: SecretKey | None = None,
        n_jobs: int = 1,
        random_state: int | None = None,
    ) -> None:
        if len(data) != contract.owners:
            raise InputError(f"data must be of {contract.owners} owners, got {len(data)}")
        if random_state is not None:
            contract = replace(contract, simulation=True)
        if contract.key is None:
            key = keys(contract.key_bits) if key is None else key
            contract = contract.with_key(key.public)
        elif key is None:
            raise InputError("key must be the one whose SHA-256 is in the contract, got None")
        self.contract = contract
        self.owners = [
            Owner(contract, name, rows, n_jobs=n_jobs, random_state=seed_of(random_state, i))
            for i, (name, rows) in enumerate(zip(contract.names, data, strict=True))
        ]
        self.user = DataUser(contract, key=key, n_jobs=n_jobs)
        self.proxy = Proxy(contract, n_jobs=n_jobs)
        self.traffic: list[tuple[str, str, bytes]] = []

    def exchange(self, requests: Mapping[str, bytes], timeout: float | None = None) -> dict[str, list[bytes]]:
        """Deliver requests and collect the answers."""
        parties: dict[str, Party] = {USER: self.user, **{owner.name: owner for owner in self.owners}}
        replies = {}
        for name, request in requests.items():
            answer = parties[name].answer(request)
            self.traffic += [("proxy", name, request), (name, "proxy", answer)]
            replies[name] = [answer]
        return replies

    def run(self) -> Any:
        """Carry the run through; return the fitted model."""
        self.proxy.run(self.exchange)
        return self.user.result_


def fit_together(contract: Contract, data: Sequence[tuple[Any, ...]], **options: Any) -> Any:
    """Fit one model to the rows of all owners, in memory.

    Parameters
    ----------
    contract : Contract
    data : sequence of tuples of arrays
    **options
        See :class:`Federation`.

    Returns
    -------
    The fitted estimator.

    Examples
    --------
    >>> import numpy as np
    >>> from fdadp.federated import Contract
    >>> from fdadp.federated.paillier import keys
    >>> settings = {"epsilon": 1.0, "delta": 1e-6, "data_norm": 5.0, "n_features": 4}
    >>> terms = Contract("pca", settings, 3, n_max=10_000, simulation=True, key_bits=512)
    >>> X = np.random.default_rng(0).normal(size=(5000, 4)) * [2.0, 0.3, 0.3, 0.3]
    >>> model = fit_together(terms, [(part,) for part in np.array_split(X, 3)], key=keys(512), random_state=0)
    >>> abs(model.components_[0]).round(1)
    array([1., 0., 0., 0.])
    """
    return Federation(contract, data, **options).run()
