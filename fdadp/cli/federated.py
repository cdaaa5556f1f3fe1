"""``python -m fdadp federated ...``: many owners of data; one command a protocol."""

from __future__ import annotations

import sys
from collections.abc import Hashable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fdadp._common.terminal import Variadic, console, no_window, plain_messages, say_absent, say_paths
from fdadp.cli.federated_pca import pca
from fdadp.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="Many owners of data, and nobody trusted with all of it.")


@app.callback()
def federated() -> None:
    """Many owners of data, and nobody trusted with all of it."""


app.command(cls=Variadic)(pca)


@app.command()
def demo(
    owners: Annotated[int, typer.Option(help="Owners, each in processes of its own.")] = 5,
    lost: Annotated[int, typer.Option(help="Owners that may fail without ending the run.")] = 1,
    epsilon: Annotated[float, typer.Option(help="Of the released components; delta is 1e-5.")] = 1.0,
    timeout: Annotated[float, typer.Option(help="Seconds for a round; 0: as long as nodes are online.")] = 0.0,
    out: Annotated[Path | None, typer.Option(help="Folder to keep: terms, totals, logs. (default: none)")] = None,
) -> None:
    """Many owners on Flower, on this machine alone: private PCA of digits by owners, a proxy and a data user.

    Starts a SuperLink and a SuperNode for each party on 127.0.0.1, without TLS and without the internet, runs the
    protocol, and ends all processes.
    """
    with plain_messages():
        from fdadp.studies import flower_demo

        flower_demo.run(out, typer.echo, owners=owners, lost=lost, epsilon=epsilon, timeout=timeout)


@app.command()
def key(
    draft: Annotated[Path, typer.Argument(help="Contract that all parties want, without a key: a file.")],
    contract: Annotated[Path, typer.Argument(help="File for the final contract, which names the key.")],
    store: Annotated[Path, typer.Option(help="Folder of the data user's node, in which the secret key stays.")],
    owner: Annotated[
        list[Path] | None, typer.Option(metavar="PUB", help="Public key of an owner, once for each, in their order.")
    ] = None,
) -> None:
    """At the data user: make a new key, and the contract that names it and goes to all parties."""
    with plain_messages():
        from fdadp.errors import InputError
        from fdadp.federated.contract import Contract
        from fdadp.federated.flower.store import new_key
        from fdadp.federated.signed import public_key_of
        from fdadp.files.atomic import PUBLIC, replacing
        from fdadp.files.regular import text_of

        terms = Contract.from_json(text_of(draft))
        if terms.key is not None:
            raise InputError(f"{draft} must be a draft, and has a key already: {terms.key}")
        if owner:
            terms = replace(terms, owner_keys=tuple(map(public_key_of, owner)))
        final = terms.with_key(new_key(store, terms.key_bits))
        with replacing(contract, PUBLIC) as stream:
            stream.write(final.to_json().encode())
        typer.echo(f"SHA-256 of the public key: {final.key}")
        typer.echo(f"contract: {contract}")


@app.command()
def rows(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="X, or X and Y: one row a curve or person.")],
    out: Annotated[Path, typer.Option(help="File to write, .npz, for this owner alone.")],
) -> None:
    """At an owner: put rows of files, joined by the labels in their first columns, into the file for its node."""
    with plain_messages():
        import numpy as np

        from fdadp.cli.inputs import Reading, read_file
        from fdadp.errors import InputError
        from fdadp.files.atomic import SECRET, replacing

        if out.suffix != ".npz":
            raise InputError(f"--out must end in .npz, got {out.name!r}")
        frames = [read_file(file, Reading()) for file in files]
        places = [
            {} if len(frames) == 1 else _rows_by_id(file, frame) for file, frame in zip(files, frames, strict=True)
        ]
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
    from fdadp.cli.inputs import has_ids
    from fdadp.privacy.boundary import person_of

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
    with plain_messages():
        from fdadp.errors import InputError
        from fdadp.federated import models
        from fdadp.federated.contract import Contract
        from fdadp.federated.wire import Totals
        from fdadp.files.regular import bytes_of, text_of
        from fdadp.privacy.distributed import NextRound

        terms = Contract.from_json(text_of(contract))
        fitted = models.fit(terms, None, Totals.from_bytes(bytes_of(totals)))
        if isinstance(fitted, NextRound):
            raise InputError(f"{totals} must hold the totals of a run that was finished, and does not")
        if out is not None and not hasattr(fitted, "save"):
            raise InputError(f"--out is for regressions, got a model of {terms.model!r}")
        typer.echo(str(fitted.ledger_))
        if out is not None:
            typer.echo(f"Model written to {fitted.save(out)}.")


@app.command(cls=Variadic)
def logistic(
    dataset: Annotated[list[str], typer.Option(help="adult or bank.")] = ["adult"],  # noqa: B006
    owners: Annotated[int | None, typer.Option(help="Users with a record each. (default: all training rows)")] = None,
    epsilon: Annotated[list[float], typer.Option(help="epsilon_LDP of a user who answers once.")] = [  # noqa: B006
        0.5,
        1.0,
        2.0,
        4.0,
        6.0,
        12.0,
    ],
    mechanism: Annotated[
        list[str] | None, typer.Option(help="cldp, one_coordinate, l2_ball, privunit. (default: all)")
    ] = None,
    rounds: Annotated[int, typer.Option(help="Steps of the server.")] = 20,
    kappa: Annotated[
        list[float], typer.Option(help="Of cldp with all users in all rounds; the others at the same total.")
    ] = [0.05, 0.1, 0.5, 1.0],  # noqa: B006
    repeats: Annotated[int, typer.Option(help="Draws of the users' coins.")] = 10,
    out: Annotated[Path, typer.Option(help="Folder for tables and figure.")] = Path("fdadp-federated-logistic"),
    seed: Annotated[int, typer.Option(help="Seed of coins and splits.")] = 0,
    download: Annotated[bool, typer.Option(help="Download data sets that are not here.")] = False,
) -> None:
    """Logistic regression in the local model: accuracy, and error of a round's gradient, against epsilon_LDP.

    Every owner is one user with one record, who sends nothing but a randomised gradient. The coins are seeded, for
    simulation.
    """
    no_window()
    with plain_messages():
        from fdadp.federated.local.randomizers import MECHANISMS
        from fdadp.studies import local_logistic as study
        from fdadp.studies.report import print_learners, run_each, write_learners

        tasks, absent = study.load(dataset, download=download)
        say_absent(tasks, absent, dataset)
        names = mechanism or list(MECHANISMS)
        sizes = {"owners": owners, "n_rounds": rounds, "repeats": repeats}
        drawn = {"seed": seed, "progress": sys.stderr.isatty()}
        results = run_each(tasks, study.run, epsilons=epsilon, mechanisms=names, kappas=kappa, **sizes, **drawn)
        table = study.summarise(results)
        print_learners(console(), table)
        settings = {
            "datasets": [task.name for task in tasks],
            "skipped": list(absent),
            "owners": owners,
            "epsilon": epsilon,
            "mechanism": names,
            "rounds": rounds,
            "kappa": kappa,
            "repeats": repeats,
            "seed": seed,
            "note": "seeded coins, for simulation; epsilon is the total of one user, pure",
        }
        say_paths(write_learners(out, results, table, settings))


@app.command(cls=Variadic)
def regression(
    owners: Annotated[list[int], typer.Option(help="Numbers of hospitals that share the people.")] = [2, 5, 10],  # noqa: B006
    n: Annotated[int, typer.Option(help="People in all.")] = 3000,
    epsilon: Annotated[float, typer.Option(help="Budget.")] = 1.0,
    delta: Annotated[float, typer.Option(help="Of (ε, δ); must be given, as 1e-6.")] = 0.0,
    mechanism: Annotated[str, typer.Option(help="dp-aff (32 rounds), or moments (18, less accurate).")] = "dp-aff",
    lost: Annotated[int, typer.Option(help="Owners that the contract allows to be lost.")] = 0,
    key_bits: Annotated[int, typer.Option(help="Of the data user's key, 2048 or 3072.")] = 3072,
    repeats: Annotated[int, typer.Option(help="Simulated cohorts.")] = 1,
    out: Annotated[Path, typer.Option(help="Folder for tables and figure.")] = Path("fdadp-federated-regression"),
    seed: Annotated[int, typer.Option(help="Seed of the simulated curves; the noise is the real one.")] = 0,
) -> None:
    """Hospitals fit one function-on-function regression: together, each alone, and with all curves in one place."""
    no_window()
    with plain_messages():
        from fdadp.studies import federated_regression as study
        from fdadp.studies.report import write_results

        if not delta:
            raise InputError("--delta must be given, as 1e-6: sums of many owners carry Gaussian noise, got 0")
        settings = {"n": n, "epsilon": epsilon, "delta": delta, "mechanism": mechanism, "lost": lost, "seed": seed}
        common = {**settings, "key_bits": key_bits, "repeats": repeats, "progress": sys.stderr.isatty()}
        results = study.compare(owners, **common)  # type: ignore[arg-type]
        table = study.summarise(results)
        console().print(_plain_table(table, f"{n} people, {mechanism}, epsilon {epsilon:g}, delta {delta:g}"))
        figure = partial(study.plot_comparison, results)
        say_paths(write_results(out, results, None, settings, figure, "explained.png"))


def _plain_table(frame: pd.DataFrame, title: str) -> Table:
    """Numbers with three digits, gaps where there is nothing to say."""
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in frame:
        table.add_column(str(column), justify="left" if frame[column].dtype == object else "right")
    for row in frame.itertuples(index=False):
        table.add_row(*("" if v != v else v if isinstance(v, str) else f"{v:.3g}" for v in row))
    return table
