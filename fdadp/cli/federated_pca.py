"""``python -m fdadp federated pca``: many owners' principal components, encrypted once, then studied in clear."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fdadp._common.terminal import console, no_window, plain_messages, say_absent, say_paths

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table


def pca(
    dataset: Annotated[
        list[str], typer.Option(help="digits, australian, diabetes, german, ionosphere, isolet, cnae9.")
    ] = ["digits"],  # noqa: B006
    owners: Annotated[list[int], typer.Option(help="How many there are, one or several.")] = [10],  # noqa: B006
    epsilon: Annotated[list[float], typer.Option(help="One or several.")] = [0.1, 0.5, 1.0, 5.0, 10.0],  # noqa: B006
    components: Annotated[int, typer.Option(help="Number of components.")] = 5,
    repeats: Annotated[int, typer.Option(help="Random splits over owners, and draws of the noise.")] = 5,
    encrypt: Annotated[bool, typer.Option(help="Carry one run out with encryption too.")] = True,
    key_bits: Annotated[int, typer.Option(help="Of the data user's key, 2048 or 3072.")] = 3072,
    out: Annotated[Path, typer.Option(help="Folder for tables and figure.")] = Path("fdadp-federated-pca"),
    seed: Annotated[int, typer.Option(help="Seed of splits and noise.")] = 0,
) -> None:
    """Principal components of many owners: variance captured by DPDPCA, PrivateLocalPCA and one trusted place.

    First one run of DPDPCA with encryption, between owners, proxy and data user; then many without it, of the same
    integers. The noise of the latter is seeded, for simulation.
    """
    no_window()
    with plain_messages():
        from fdadp.studies import federated_pca as study
        from fdadp.studies.report import run_each, write_results

        tasks, absent = study.load(dataset)
        say_absent(tasks, absent, dataset)
        screen = console()
        if encrypt:
            for task in tasks:
                typer.echo(_one_run(study.contract(task, epsilon[-1], components, owners[0], key_bits=key_bits), task))
        sizes = {"owners": owners, "n_components": components, "repeats": repeats}
        drawn = {"seed": seed, "progress": sys.stderr.isatty()}
        results = run_each(tasks, study.captured, epsilons=epsilon, **sizes, **drawn)
        table = study.summarise(results)
        for task in tasks:
            screen.print(_table(table[table["dataset"] == task.name], task.about))
        settings = {
            "datasets": {task.name: {"public": task.public, "rows": task.about} for task in tasks},
            "epsilon": epsilon,
            "owners": owners,
            "repeats": repeats,
            "seed": seed,
            "note": "totals added up in clear, the same integers as with encryption; seeded noise, for simulation",
        }
        named = table.assign(scheme=table["scheme"] + table["owners"].map(_of_owners))

        def figure() -> Any:
            from fdadp.studies.federated_pca_plot import lines

            return lines(named, "epsilon", "captured", labels=("ε", "captured variance"))

        say_paths(write_results(out, results, table, settings, figure, "pca.png"))


def _one_run(terms: Any, task: Any) -> str:
    """Carry out one run with encryption and randomness of the system, and say what it took."""
    import numpy as np

    from fdadp.federated import Federation
    from fdadp.studies.federated_pca import split_rows
    from fdadp.studies.scores import captured

    parts = split_rows(task.X, terms.owners, np.random.default_rng())
    start = time.perf_counter()
    federation = Federation(terms, [(part,) for part in parts])
    model = federation.run()
    seconds = time.perf_counter() - start
    sent = max(len(data) for sender, _, data in federation.traffic if sender == "owner-1")
    share = captured(np.cov(task.X.T), model.components_)
    return (
        f"{task.name}, with encryption: {terms.owners} owners, {terms.key_bits} bits, {seconds:.1f} s for all parties "
        f"together, {sent / 1e3:.0f} kB from an owner, captured {share:.3f} at epsilon = {model.epsilon:g}\n"
        f"{model.ledger_.headline}"
    )


def _table(part: pd.DataFrame, about: str) -> Table:
    """ε across, schemes and owners down."""
    from rich import box
    from rich.table import Table

    first = part.iloc[0]
    title = (
        f"{first['dataset']}: variance in {first['components']} components, as a share of that in exact ones; "
        f"{int(first['repeats'])} repeats, mean (sd); {about}"
    )
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("scheme")
    table.add_column("owners", justify="right")
    epsilons = sorted(part["epsilon"].dropna().unique())
    for e in epsilons:
        table.add_column(f"ε = {e:g}", justify="right")
    for (scheme, owners), line in part.groupby(["scheme", "owners"], sort=False, dropna=False):
        cells = [line[line["epsilon"].isna() | (line["epsilon"] == e)] for e in epsilons]
        texts = (f"{c['captured'].iloc[0]:.3f} ({c['captured_sd'].fillna(0).iloc[0]:.3f})" for c in cells)
        table.add_row(str(scheme), "" if owners != owners else f"{owners:.0f}", *texts)
    return table


def _of_owners(owners: float) -> str:
    return "" if owners != owners else f", {owners:.0f} owners"
