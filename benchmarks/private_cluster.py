"""A private fit on a cluster's workers beside the one in one process: equal in every bit over five partitionings.

``python benchmarks/private_cluster.py --n 1000000`` prints a row a partitioning: whether all coefficients and the
ledger are equal, seconds, and the peak memory of a worker. Curves are made where they are used, in blocks of their own
seeds, so that all partitionings hold the same people. ``--rows-per-person 2``: the rows of a person lie far apart.
"""

from __future__ import annotations

import argparse
import functools
import time
import warnings
from itertools import pairwise

import numpy as np
from dask import delayed
from distributed import Client, LocalCluster

from fdadp import AdditiveFunctionOnFunction, Privacy

BLOCK, POINTS = 10_000, 51
GRID = np.linspace(0, 1, POINTS)


def block(number, rows_per_person):
    """Curves of one block, and the persons of its rows."""
    rng = np.random.default_rng([7, number])
    waves = np.array([np.sin(k * np.pi * GRID) / k for k in range(1, 6)])
    x = rng.normal(size=(BLOCK, 5)) @ waves
    y = np.cumsum(np.tanh(x), axis=1) / POINTS * (1 + GRID) + rng.normal(size=(BLOCK, 3)) @ waves[:3] / 4
    return x, y, np.arange(BLOCK) * 1000 + number // rows_per_person


def rows(start, stop, rows_per_person):
    """Rows from one block up to another."""
    made = [block(number, rows_per_person) for number in range(start, stop)]
    if not made:
        made = [tuple(a[:0] for a in block(0, rows_per_person))]
    x, y, who = (np.concatenate(parts) for parts in zip(*made, strict=True))
    return (x, y) if rows_per_person == 1 else (x, y, who)


def peak():
    """MiB of this process; ``getrusage`` would give those of the one that started it, where they are more."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) / 1024


def fit(chunks, n, rows_per_person):
    model = AdditiveFunctionOnFunction(
        privacy=Privacy(1.0, 1e-7, n=n // rows_per_person, random_state=1),
        bounds={"X": (-4, 4), "Y": (-3, 3)},
        progress=False,
    )
    return model.fit_chunks(chunks, s=GRID, t=GRID, groups=None if rows_per_person == 1 else True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=100_000)
    parser.add_argument("--rows-per-person", type=int, default=1)
    parser.add_argument("--only", type=int, nargs="*", help="numbers of the partitionings")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    blocks, each = args.n // BLOCK, args.rows_per_person
    cuts = [
        np.linspace(0, blocks, 3),
        np.linspace(0, blocks, 5),
        np.linspace(0, blocks, 11),
        np.array([0, 1, 1, blocks // 2, blocks - 1, blocks]),
        np.linspace(0, 1, 8) ** 2 * blocks,
    ]
    make = functools.partial(rows, rows_per_person=each)
    start = time.perf_counter()
    one = fit([make(a, a + 1) for a in range(blocks)], args.n, each)
    print(f"one process: {time.perf_counter() - start:.1f} s, peak {peak():.0f} MiB", flush=True)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit=0) as cluster,
        Client(cluster) as client,
    ):
        for number, cut in enumerate(cuts):
            if args.only and number not in args.only:
                continue
            ends = cut.astype(int)  # with empty partitions, where two are the same
            chunks = [delayed(make, pure=False)(int(a), int(b)) for a, b in pairwise(ends)]
            start = time.perf_counter()
            other = fit(chunks, args.n, each)
            seconds = time.perf_counter() - start
            equal = np.array_equal(one.coef_, other.coef_) and one.ledger_.releases == other.ledger_.releases
            print(
                f"{number}: {len(chunks)} partitions of {np.diff(ends).tolist()} blocks: "
                f"{'equal in every bit' if equal else 'DIFFERENT'}, {seconds:.1f} s, "
                f"a worker's peak {max(client.run(peak).values()):.0f} MiB",
                flush=True,
            )


if __name__ == "__main__":
    main()
