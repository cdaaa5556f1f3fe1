"""The proxy as a Flower server app: finds the parties, runs the protocol, writes the totals."""

from __future__ import annotations

from typing import Any

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from fdadp.errors import InputError
from fdadp.federated.contract import USER, Contract
from fdadp.federated.flower.transport import GridExchange
from fdadp.federated.parties import Proxy
from fdadp.federated.wire import Totals
from fdadp.files.atomic import PUBLIC, replacing
from fdadp.files.regular import text_of


def serve(grid: Grid, context: Context) -> None:
    """Carry the run of the contract through.

    Raises
    ------
    InputError
        The run configuration lacks something.
    ProtocolError
        Too few owners, no data user, two nodes of one name.
    """
    config: dict[str, Any] = dict(context.run_config)
    for name in ("contract", "out"):
        if not config.get(name):
            raise InputError(f"the run configuration must give {name}, a file, got {config.get(name)!r}")
    contract = Contract.from_json(text_of(config["contract"]))
    if not contract.owner_keys:
        raise InputError("the contract must name owner_keys: without them an owner is whoever says so")
    exchange = GridExchange(grid, at_once=config["at_once"], contract=contract)
    exchange.meet([USER, *contract.names], config["patience"])
    print(f"parties: {', '.join(sorted(exchange.nodes))}", flush=True)

    def progress(index: int, shares: int) -> None:
        print(f"release {index}: sum of {shares} shares", flush=True)

    proxy = Proxy(
        contract,
        timeout=config["timeout"] or None,
        n_jobs=config["n_jobs"],
        progress=progress,
        retries=config["retries"],
        pause=config["pause"],
    )
    try:
        totals = proxy.run(exchange)
    finally:
        for party, reason in proxy.refused_:
            print(f"left out: {party}: {reason}", flush=True)
    with replacing(config["out"], PUBLIC) as stream:  # the file says that the run is over: it is there whole, or not
        stream.write(Totals.to_bytes(totals))


app = ServerApp()
app.main()(serve)
