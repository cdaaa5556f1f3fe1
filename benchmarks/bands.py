"""How often the bands of ``PrivateMean`` hold the whole mean curve, for light and heavy tails.

    python benchmarks/bands.py [--n 1000 5000] [--samples 40] [--pure]

Seven laws of curves on 31 points with known means; nominal 95 %, ε = 1, δ = 1e-6 (``--pure``: none), declared n, seeded
noise: for simulation only. The table of ``docs/theory/summaries.md``.
"""

from __future__ import annotations

import argparse
import functools
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fdadp import Privacy, PrivateMean, simulate_affr
from fdadp.errors import FdadpWarning

T = np.linspace(0, 1, 31)
Law = tuple[Callable[[int, np.random.Generator], np.ndarray], np.ndarray | None, tuple[float, float]]
"""How curves are drawn, their mean (None: that of 200,000), and their public range."""


def process(n: int, rng: np.random.Generator, length: float = 0.2) -> np.ndarray:
    """Smooth Gaussian curves of variance 1."""
    values, vectors = np.linalg.eigh(np.exp(-0.5 * ((T[:, None] - T) / length) ** 2))
    return rng.normal(size=(n, T.size)) @ (vectors * np.sqrt(np.maximum(values, 0))).T


def scenario(n: int, rng: np.random.Generator) -> np.ndarray:
    """Responses of scenario 1."""
    return simulate_affr(1, n, rng, n_points=T.size).Y.data_matrix[..., 0]


WAVE = 1 + 0.3 * np.sin(2 * np.pi * T)
LAWS: dict[str, Law] = {
    "Gaussian process, length .2": (process, np.zeros(T.size), (-4, 4)),
    "simulated, scenario 1": (scenario, None, (-8, 8)),
    "Gaussian, one component": (lambda n, rng: rng.normal(size=(n, 1)) * WAVE, np.zeros(T.size), (-4, 4)),
    "exp of a Gaussian process, length .5": (
        lambda n, rng: np.exp(process(n, rng, 0.5)),
        np.full(T.size, np.exp(0.5)),
        (0, 20),
    ),
    "log-normal level": (
        lambda n, rng: np.exp(rng.normal(size=(n, 1))) + 0.3 * process(n, rng),
        np.full(T.size, np.exp(0.5)),
        (0, 20),
    ),
    "exponential size": (lambda n, rng: rng.exponential(size=(n, 1)) * WAVE, WAVE, (0, 10)),
    "t with 3 degrees of freedom": (
        lambda n, rng: process(n, rng) / np.sqrt(rng.chisquare(3, (n, 1))),
        np.zeros(T.size),
        (-8, 8),
    ),
}


@functools.cache
def mean_of_many(draw: Callable[[int, np.random.Generator], np.ndarray]) -> np.ndarray:
    """Mean of 200,000 curves."""
    return draw(200_000, np.random.default_rng(99)).mean(axis=0)


def covered(law: Law, n: int, seed: int, delta: float | None) -> tuple[bool, float]:
    """Whether the band holds the whole mean curve, and half its mean width."""
    draw, mean, bounds = law
    if mean is None:
        mean = mean_of_many(draw)
    curves = draw(n, np.random.default_rng([seed, n]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FdadpWarning)
        privacy = Privacy(1.0, delta, n=n, random_state=seed)
        low, high = (np.asarray(b)[0] for b in PrivateMean(privacy=privacy, bounds=bounds).fit(curves, T).band(0.95))
    return bool(((low <= mean) & (mean <= high)).all()), float((high - low).mean() / 2)


def main(arguments: list[str] | None = None) -> str:
    """Print the table, and return it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, nargs="+", default=[1000, 5000])
    parser.add_argument("--samples", type=int, default=40)
    parser.add_argument("--pure", action="store_true")
    parser.add_argument("--laws", nargs="+", default=list(LAWS), choices=list(LAWS), metavar="LAW")
    options = parser.parse_args(arguments)
    delta = None if options.pure else 1e-6
    rows = [f"| curves | {' | '.join(f'n = {n:,}' for n in options.n)} |", "|---" * (len(options.n) + 1) + "|"]
    for name in options.laws:
        cells = []
        for n in options.n:
            found = np.array([covered(LAWS[name], n, seed, delta) for seed in range(options.samples)])
            cells.append("{:.2f}, {:.3f}".format(*found.mean(axis=0)))
        rows.append(f"| {name} | {' | '.join(cells)} |")
    table = "\n".join(rows)
    print(table)
    return table


if __name__ == "__main__":
    main()
