"""The curves of the benchmarks: simulated once, kept as raw float64 files that every worker reads, R among them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

PIECE = 10_000
"""Curves are simulated in pieces of this many, each with a seed of its own: the first n are the same for every run."""


def simulate(folder: Path, n: int, points: int = 101, seed: int = 1) -> None:
    """Write n pairs of curves of scenario 1 to ``X.f64`` and ``Y.f64``, row by row."""
    from fdadp import simulate_affr

    with open(folder / "X.f64", "wb") as x_file, open(folder / "Y.f64", "wb") as y_file:
        for piece, start in enumerate(range(0, n, PIECE)):
            rng = np.random.default_rng([seed, piece])
            pair = simulate_affr(scenario=1, n=PIECE, seed=rng, n_points=points)
            rows = min(PIECE, n - start)
            pair.X.data_matrix[:rows, :, 0].tofile(x_file)
            pair.Y.data_matrix[:rows, :, 0].tofile(y_file)
    (folder / "meta.json").write_text(json.dumps({"n": n, "points": points}))


def points_of(folder: Path) -> int:
    return int(json.loads((folder / "meta.json").read_text())["points"])


def read(folder: Path, n: int, start: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """n pairs of curves from row `start` on."""
    points = points_of(folder)
    x, y = (
        np.fromfile(folder / name, count=n * points, offset=8 * start * points).reshape(-1, points)
        for name in ("X.f64", "Y.f64")
    )
    return x, y


def chunks(folder: Path, n: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for start in range(0, n, PIECE):
        yield read(folder, min(PIECE, n - start), start)


def write_scores(folder: Path, n: int) -> None:
    """Write the scores of the first n responses on three eigenfunctions, which mgcv is handed."""
    from fdadp import AdditiveFunctionOnFunction

    x, y = read(folder, n)
    model = AdditiveFunctionOnFunction(n_basis_x=7, n_basis_s=7, n_components=3).fit(x, y)
    scores_of(model, y).tofile(folder / f"scores-{n}.f64")


def scores_of(model, y: np.ndarray) -> np.ndarray:
    """Scores of curves on a model's eigenfunctions, shape (n, 3)."""
    from fdadp.functional.quadrature import quadrature_weights

    return (y - model.mean_) @ (model.eigenfunctions_ * quadrature_weights(model.t_)).T
