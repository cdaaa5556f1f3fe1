"""The demonstration: principal components of handwritten digits that five owners hold, in processes of their own."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from fdadp._common.terminal import plain_messages
from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.federated.flower import require_flower

__all__ = ["demo", "digits"]

COMPONENTS = 5
TERMS = {"delta": 1e-5, "data_norm": 3.0, "center": 0.3, "n_features": 64, "n_components": COMPONENTS}
"""Public: grey values are in [0, 1]; a ball of radius 3 about 0.3 cuts the rows of few digits."""


def digits() -> FloatArray:
    """1797 handwritten digits of 8 x 8 pixels, grey values in [0, 1]: (1797, 64), in a fixed random order."""
    from sklearn.datasets import load_digits

    X: FloatArray = load_digits().data / 16
    return X[np.random.default_rng(0).permutation(len(X))]


def demo(
    owners: Annotated[int, typer.Option(help="Owners, each in processes of its own.")] = 5,
    lost: Annotated[int, typer.Option(help="Owners that may fail without ending the run.")] = 1,
    epsilon: Annotated[float, typer.Option(help="Of the released components; delta is 1e-5.")] = 1.0,
    timeout: Annotated[float, typer.Option(help="Seconds for a round; 0: as long as nodes are online.")] = 0.0,
    out: Annotated[Path | None, typer.Option(help="Folder to keep: terms, totals, logs. [default: none]")] = None,
) -> None:
    """Many owners on Flower, on this machine alone: private PCA of digits by owners, a proxy and a data user.

    Starts a SuperLink and a SuperNode for each party on 127.0.0.1, without TLS and without the internet, runs the
    protocol, and ends all processes.
    """
    with plain_messages():
        require_flower()
        folder = Path(tempfile.mkdtemp(prefix="fdadp-flower-")) if out is None else out
        _run(folder, owners, lost, epsilon, timeout)
        if out is None:  # after an error the logs stay
            shutil.rmtree(folder)


def _run(folder: Path, owners: int, lost: int, epsilon: float, timeout: float) -> None:
    from fdadp.federated import Contract, models
    from fdadp.federated.flower.local import run_local
    from fdadp.studies.learners import captured

    if folder.exists() and any(folder.iterdir()):
        raise InputError(f"--out must be a new or empty folder, got {folder}")
    X = digits()
    contract = Contract("pca", {**TERMS, "epsilon": epsilon}, owners, n_max=2000, lost=lost)
    typer.echo(f"{len(X)} digits of {owners} owners; {owners + 2} parties in processes of their own; logs in {folder}")
    totals = run_local(contract, [(part,) for part in np.array_split(X, owners)], folder, timeout=timeout or None)
    for line in (folder / "logs" / "run.log").read_text().splitlines():
        if line.startswith(("parties:", "release ", "left out:")):
            typer.echo(line)
    model: Any = models.fit(contract, None, totals)  # by anyone: the totals are public
    share = captured(np.cov(X.T), model.components_)
    typer.echo(
        f"{COMPONENTS} private components capture {share:.3f} of the variance that the exact "
        f"ones capture (in this demonstration the rows are known)"
    )
    typer.echo(model.ledger_.statement)
