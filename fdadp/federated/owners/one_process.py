"""A run with all its owners in one process: for rehearsals, studies, and who has the rows of all owners anyway."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fdadp.errors import InputError
from fdadp.federated import federated_models
from fdadp.federated.owners.coordinator import Coordinator
from fdadp.federated.owners.data_owner import ContractProgram, DataOwner
from fdadp.federated.owners.owner_folder import MemoryKeeper
from fdadp.federated.run_contract import Contract, Signer


def owners_of(
    contract: Contract, data: Sequence[tuple[Any, ...]], *, random_state: int | None = None
) -> list[DataOwner]:
    """Owners with fresh keys, which live as long as they do; the final contract is theirs.

    Parameters and errors are those of :func:`fit_together`.
    """
    federated_models.check_owners(contract, data)
    if contract.owner_keys:
        raise InputError("contract must name no keys: those of a run in one process are made by it")
    signers = [Signer.new() for _ in data]
    keys = tuple(signer.public for signer in signers)
    seeded = contract.simulation or random_state is not None
    final = replace(contract, owner_keys=keys, transport="process", simulation=seeded)
    seeds = [federated_models.seed_of(random_state, i) for i in range(len(data))]
    programs = [ContractProgram(final, rows, seed) for rows, seed in zip(data, seeds, strict=True)]
    return [
        DataOwner(final, i, program, signer=signer, folder=MemoryKeeper(), verified=keys)
        for i, (signer, program) in enumerate(zip(signers, programs, strict=True), start=1)
    ]


def run_to_end(owners: Sequence[DataOwner], coordinator: Coordinator | None = None) -> Coordinator:
    """Carry a run through, from where the coordinator stands; by default from its beginning."""
    coordinator = Coordinator(owners[0].contract) if coordinator is None else coordinator
    while not coordinator.done_:
        asked = coordinator.asked
        for number in sorted(coordinator.missing):
            party = owners[number - 1]
            coordinator.take(number, party.answer(asked) if asked else party.consent())
    return coordinator


def fit_together(contract: Contract, data: Sequence[tuple[Any, ...]], *, random_state: int | None = None) -> Any:
    """Fit one model to the rows of all owners, by masked sums, with all owners in this process.

    The bytes that owners exchange are those of a run between machines. Keys live as long as this call.

    Parameters
    ----------
    contract : Contract
        Without keys of owners.
    data : sequence of tuples of arrays
        (X,) or (X, y) or (X, Y) of each owner, as the model takes them, and the person of each row where the contract
        has groups. A person's rows must be with one owner.
    random_state : int, optional
        Seeded shares: a simulation, and the ledger says so.

    Returns
    -------
    The fitted estimator.

    Raises
    ------
    InputError
        Data of another number of owners or of other shapes, or a contract that names keys.

    Examples
    --------
    >>> import numpy as np
    >>> from fdadp.federated import Contract
    >>> terms = Contract("pca", {"epsilon": 1.0, "delta": 1e-6, "data_norm": 5.0, "n_features": 4}, 3, n_max=10_000)
    >>> X = np.random.default_rng(0).normal(size=(5000, 4)) * [2.0, 0.3, 0.3, 0.3]
    >>> model = fit_together(terms, [(part,) for part in np.array_split(X, 3)], random_state=0)
    >>> abs(model.components_[0]).round(1)
    array([1., 0., 0., 0.])
    """
    run = run_to_end(owners_of(contract, data, random_state=random_state))
    return federated_models.fit(run.contract, None, run.totals_)
