"""The demonstration: principal components of handwritten digits that five owners hold, in processes of their own."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.federated import Contract, federated_models
from fdadp.federated.flower import require_flower
from fdadp.federated.flower.localhost_run import run_local

COMPONENTS = 5
TERMS = {"delta": 1e-5, "data_norm": 3.0, "center": 0.3, "n_features": 64, "n_components": COMPONENTS}
"""Public: grey values are in [0, 1]; a ball of radius 3 about 0.3 cuts the rows of few digits."""


def digits() -> FloatArray:
    """1797 handwritten digits of 8 x 8 pixels, grey values in [0, 1]: (1797, 64), in a fixed random order."""
    from sklearn.datasets import load_digits

    X: FloatArray = load_digits().data / 16
    return X[np.random.default_rng(0).permutation(len(X))]


def run(
    out: Path | None,
    say: Callable[[str], None],
    *,
    owners: int = 5,
    epsilon: float = 1.0,
    timeout: float = 0.0,
) -> None:
    """Run the protocol in processes on this machine, and say what came of it.

    Parameters
    ----------
    out : Path, optional
        Folder to keep: terms, totals, logs. Default: none is kept, but after an error.
    say : callable
        Takes a line of text.
    owners : int
        Each in processes of its own.
    epsilon : float
        Of the released components; δ is 1e-5.
    timeout : float
        Seconds for a round; 0: as long as nodes are online.
    """
    require_flower()
    folder = Path(tempfile.mkdtemp(prefix="fdadp-flower-")) if out is None else out
    _run(folder, say, owners, epsilon, timeout)
    if out is None:  # after an error the logs stay
        shutil.rmtree(folder)


def _run(folder: Path, say: Callable[[str], None], owners: int, epsilon: float, timeout: float) -> None:
    if folder.exists() and any(folder.iterdir()):
        raise InputError(f"--out must be a new or empty folder, got {folder}")
    X = digits()
    contract = Contract("pca", {**TERMS, "epsilon": epsilon}, owners, n_max=2000, transport="flower", pause=0.0)
    say(f"{len(X)} digits of {owners} owners; each in processes of its own; logs in {folder}")
    totals = run_local(contract, [(part,) for part in np.array_split(X, owners)], folder, timeout=timeout or None)
    for line in (folder / "logs" / "run.log").read_text().splitlines():
        if line.startswith(("owner-", "release ", "left out:")):
            say(line)
    model: Any = federated_models.fit(contract, None, totals)  # by anyone: the totals are public
    share = captured(np.cov(X.T), model.components_)
    say(
        f"{COMPONENTS} private components capture {share:.3f} of the variance that the exact "
        f"ones capture (in this demonstration the rows are known)"
    )
    say(model.ledger_.statement)


def captured(covariance: FloatArray, components: FloatArray) -> float:
    """Variance in the span of components (k, d), as a share of that in as many exact ones; of a covariance (d, d)."""
    Q = np.linalg.qr(components.T)[0]
    return float(np.trace(Q.T @ covariance @ Q) / np.linalg.eigvalsh(covariance)[::-1][: len(components)].sum())
