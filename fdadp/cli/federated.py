"""``python -m fdadp federated ...``: many owners of data; one command a protocol."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fdadp.cli.input_files import CurvesFile, FileFormat, has_ids, read_file
from fdadp.cli.shared_options import check_suffix
from fdadp.errors import InputError
from fdadp.files.atomic_writes import SECRET, replacing, write_text
from fdadp.files.regular_files import bytes_of, text_of

if TYPE_CHECKING:
    import pandas as pd

app = typer.Typer(no_args_is_help=True, help="Many owners of data, and nobody trusted with all of it.")


def _terms(file: Path) -> Any:
    """The contract in a file."""
    from fdadp.federated import Contract

    return Contract.from_json(text_of(file))


@app.callback()
def federated() -> None:
    """Many owners of data, and nobody trusted with all of it."""


@app.command()
def demo(
    owners: Annotated[int, typer.Option(help="Owners, each in processes of its own.")] = 5,
    epsilon: Annotated[float, typer.Option(help="Of the released components; delta is 1e-5.")] = 1.0,
    timeout: Annotated[float, typer.Option(help="Seconds for a round; 0: as long as nodes are online.")] = 0.0,
    out: Annotated[Path | None, typer.Option(help="Folder to keep: terms, totals, logs. (default: none)")] = None,
) -> None:
    """Many owners on Flower, on this machine alone: private PCA of digits by owners and a coordinator.

    Starts a SuperLink and a SuperNode for each owner on 127.0.0.1, without TLS and without the internet, runs the
    protocol, and ends all processes.
    """
    from fdadp.demo import digits_on_flower

    digits_on_flower.run(out, typer.echo, owners=owners, epsilon=epsilon, timeout=timeout)


@app.command()
def contract(
    draft: Annotated[Path, typer.Argument(help="Contract that all parties want, without keys: a file.")],
    out: Annotated[Path, typer.Argument(help="File for the final contract, which goes to all parties.")],
    owner: Annotated[list[Path], typer.Option(metavar="PUB", help="Public key of an owner, for each, in their order.")],
    expires: Annotated[
        str | None, typer.Option(metavar="DAY", help="First day on which owners answer nothing. (default: never)")
    ] = None,
) -> None:
    """The contract that names the owners' keys. All read its digest to each other by telephone."""
    from fdadp.federated.run_contract import Contract, public_key_of

    terms = Contract.from_json(text_of(draft))
    final = replace(terms, owner_keys=tuple(map(public_key_of, owner)), expires=expires or terms.expires)
    final.check_final()
    write_text(out, final.to_json())
    typer.echo(f"digest: {final.digest.hex()}")


@app.command()
def certificates(
    contract: Annotated[Path, typer.Argument(help="The contract of the run.")],
    host: Annotated[str, typer.Argument(help="Name or address under which owners reach the coordinator.")],
    folder: Annotated[Path, typer.Argument(help="Folder to write: ca.crt, coordinator.*, owner-1.crt and so on.")],
    days: Annotated[int, typer.Option(help="Days for which they are valid.")] = 365,
) -> None:
    """At the coordinator: certificates of the run, for itself and the owners. The authority's key is not kept."""
    from fdadp.federated.service.run_certificates import new_certificates

    for file in new_certificates(_terms(contract), host, folder, days=days):
        typer.echo(file)


@app.command()
def coordinator(
    contract: Annotated[Path, typer.Argument(help="The contract of the run.")],
    tls: Annotated[Path, typer.Option(help="Folder with ca.crt, coordinator.crt and coordinator.key.")],
    store: Annotated[Path, typer.Option(help="Folder, this user's alone, for what was received.")],
    out: Annotated[Path, typer.Option(help="File for the totals, which are public.")],
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "0.0.0.0",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen at; 0: one that is free.")] = 8443,
    linger: Annotated[float, typer.Option(help="Seconds to stay after the end, for owners that ask again.")] = 600.0,
) -> None:
    """At the coordinator: collect the owners' signed messages and forward them, until all have the model.

    Start it again with the same command, whatever happens: it goes on where it was.
    """
    from fdadp.federated.owners.owner_folder import OwnerFolder
    from fdadp.federated.service.coordinator_service import coordinate, listening
    from fdadp.federated.service.run_certificates import server_connections

    terms, connections = _terms(contract), server_connections(tls)
    listener = listening(host, port)
    typer.echo(f"contract {terms.digest.hex()}, port {listener.getsockname()[1]}", err=True)
    coordinate(terms, OwnerFolder(store), listener, connections, out, linger=linger)
    typer.echo(f"totals: {out}")


@app.command()
def owner(
    url: Annotated[str, typer.Argument(help="The coordinator, as https://coordinator:8443.")],
    contract: Annotated[Path, typer.Argument(help="The contract of the run.")],
    rows: Annotated[Path, typer.Argument(help="File of 'federated rows', .npz.")],
    key: Annotated[Path, typer.Option(help="This owner's secret key, of 'study key'.")],
    certificate: Annotated[Path, typer.Option(help="This owner's certificate.")],
    ca: Annotated[Path, typer.Option(help="The run's authority, ca.crt.")],
    verified: Annotated[list[Path], typer.Option(metavar="PUB", help="Another owner's key that you verified.")],
    store: Annotated[Path, typer.Option(help="Folder, this user's alone, for what was answered. Never copy it.")],
    out: Annotated[Path, typer.Option(help="File for the totals, which are public.")],
    study: Annotated[
        Path | None, typer.Option(help="This owner's study, which is charged the contract. (default: none)")
    ] = None,
    proxy: Annotated[str | None, typer.Option(help="HTTP proxy on the way out, as http://proxy:3128.")] = None,
    poll: Annotated[float, typer.Option(min=0.0, help="Seconds between two questions to the coordinator.")] = 2.0,
) -> None:
    """At an owner: take part in a run of masked sums. It opens no port.

    Start it again with the same command, whatever happens: it goes on where it was.
    """
    from fdadp.federated.run_contract import public_key_of
    from fdadp.federated.service.owner_client import Waits, own_part

    own_part(
        url,
        text_of(contract),
        rows,
        key=key,
        certificates=(ca, certificate),
        verified=[public_key_of(file) for file in verified],
        store=store,
        out=out,
        study=study,
        proxy=proxy,
        waits=Waits(poll=poll),
    )
    typer.echo(f"totals: {out}")


@app.command()
def rows(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="X, or X and Y: one row a curve or person.")],
    out: Annotated[Path, typer.Option(help="File to write, .npz, for this owner alone.")],
) -> None:
    """At an owner: put rows of files, joined by the labels in their first columns, into the file for its node."""
    import numpy as np

    check_suffix(out, "--out", ".npz")
    frames = [read_file(CurvesFile(file), FileFormat()) for file in files]
    places = [{} if len(frames) == 1 else _rows_by_id(file, frame) for file, frame in zip(files, frames, strict=True)]
    for file, own in zip(files, places, strict=True):
        odd = sorted(map(str, own.keys() ^ places[0].keys()))
        if odd:
            raise InputError(f"{file} must have the labels of {files[0]}, got {odd[0]!r} in one of them only")
    orders = [[own[person] for person in places[0]] if own else slice(None) for own in places]
    out.unlink(missing_ok=True)  # a file that is there would keep its mode
    with replacing(out, SECRET) as stream:
        np.savez(stream, *(f.to_numpy(dtype=float)[order] for f, order in zip(frames, orders, strict=True)))
    joined = ", joined by their labels" if len(frames) > 1 else ""
    typer.echo(f"{len(frames[0])} rows{joined}: {out}")


def _rows_by_id(file: Path, frame: pd.DataFrame) -> dict[Hashable, int]:
    """The row of each person of a file, by the id in its first column; raises InputError."""
    from fdadp.privacy.private_entries import person_of

    if not has_ids(frame):
        raise InputError(f"{file} must have an id in its first column, by which rows are joined, and has none")
    found: dict[Hashable, int] = {}
    for row, label in enumerate(frame.index):
        person = person_of(label)
        if person is None:
            raise InputError(f"{file} must have an id in every row, got {label!r} in row {row}")
        if person in found:
            raise InputError(f"{file} must have each label once: label {label!r}")
        found[person] = row
    return found


@app.command()
def model(
    contract: Annotated[Path, typer.Argument(help="The contract of the run.")],
    totals: Annotated[Path, typer.Argument(help="File that the run wrote: the released totals, which are public.")],
    out: Annotated[
        Path | None, typer.Option(help="Model file to write (.npz), of regressions. (default: none)")
    ] = None,
) -> None:
    """Anybody: the fitted model of a run, from its contract and its totals, and what it promises."""
    from fdadp.federated import federated_models
    from fdadp.privacy.noise.distributed import NextRound

    terms = _terms(contract)
    fitted = federated_models.fit(terms, None, federated_models.totals_from_bytes(bytes_of(totals)))
    if isinstance(fitted, NextRound):
        raise InputError(f"{totals} must hold the totals of a run that was finished, and does not")
    if out is not None and not hasattr(fitted, "save"):
        raise InputError(f"--out is for regressions, got a model of {terms.model!r}")
    typer.echo(str(fitted.ledger_))
    if out is not None:
        typer.echo(f"Model written to {fitted.save(out)}.")
