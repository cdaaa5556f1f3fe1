"""The many-owner protocol without encryption: the same integers and model, faster; for studies of accuracy only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fdadp._common.typing import IntArray
from fdadp.errors import InputError
from fdadp.federated import models
from fdadp.federated.contract import Contract
from fdadp.privacy.noise.distributed import NextRound


def total_of_shares(shares: Sequence[IntArray]) -> IntArray:
    """Sum of int64 shares (d,): what a data user decrypts. Totals have at most 62 bits."""
    total: IntArray = np.sum(shares, axis=0, dtype=np.int64)
    return total


def fit_in_clear(contract: Contract, data: Sequence[tuple[Any, ...]], *, random_state: int | None = None) -> Any:
    """Fit as :class:`~fdadp.federated.Federation` does, by adding the owners' shares up in clear.

    The totals are those that the data user of an encrypted run would decrypt, bit for bit, and so is the model. But
    whoever calls this sees every owner's rows and shares: it stands for many owners in an experiment, for none in use,
    and the ledger says that nothing of it is for release.

    Parameters
    ----------
    contract : Contract
    data : sequence of tuples of arrays
        One for each owner.
    random_state : int, optional
        Seeded shares, those of a Federation with this seed.

    Returns
    -------
    The fitted estimator.

    Raises
    ------
    InputError
        Data of another number of owners, or of other shapes than the contract's.

    Examples
    --------
    >>> import numpy as np
    >>> from fdadp.federated import Contract
    >>> terms = Contract("pca", {"epsilon": 1.0, "delta": 1e-6, "data_norm": 5.0, "n_features": 4}, 5, n_max=10_000)
    >>> X = np.random.default_rng(0).normal(size=(5000, 4)) * [2.0, 0.3, 0.3, 0.3]
    >>> model = fit_in_clear(terms, [(part,) for part in np.array_split(X, 5)], random_state=0)
    >>> abs(model.components_[0]).round(1)
    array([1., 0., 0., 0.])
    """
    if len(data) != contract.owners:
        raise InputError(f"data must be of {contract.owners} owners, got {len(data)}")
    contract = replace(contract, simulation=True)
    totals: list[tuple[IntArray, int]] = []
    while True:
        waits = models.fit(contract, None, totals)
        if not isinstance(waits, NextRound):
            return waits
        shares = [_share(contract, rows, totals, random_state, i) for i, rows in enumerate(data)]
        totals.append((total_of_shares(shares), len(shares)))


def _share(
    contract: Contract, rows: tuple[Any, ...], totals: list[tuple[IntArray, int]], seed: int | None, i: int
) -> IntArray:
    waits = models.fit(contract, rows, totals, models.seed_of(seed, i))
    assert isinstance(waits, NextRound) and waits.share is not None
    return waits.share
