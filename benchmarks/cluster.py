"""One process beside two workers of a Dask cluster on this machine: time and memory of an ordinary fit.

``python cluster.py [--sizes 100000 1000000 10000000] [--out results]`` makes pairs of curves X and Y at 101 points in
blocks of 20,000 pairs, never all of them, and fits ``AdditiveFunctionOnFunction()`` to them in turn

* in one process that reads the blocks one after the other (``fit_chunks``), with all its threads and with one;
* with ``LocalCluster(n_workers=2, threads_per_worker=1)``, whose workers make the blocks.

Each run is a process of its own. Both passes make the curves again, so that making them is part of all times; its share
is said. Memory is the peak of the resident set (VmHWM) of the client and of each worker.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1])]

import numpy as np  # noqa: E402

POINTS = 101
BLOCK = 20_000
WITHOUT_TRIMMING = {"OMP_NUM_THREADS": 1, "OPENBLAS_NUM_THREADS": 1}
"""Environment of the workers, in the place of Dask's own, whose MALLOC_TRIM_THRESHOLD_ costs half as much again."""
WAYS = {"one process": None, "one process, one thread": "1", "two workers": None}


def curves(block: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Curves of a block: X of six smooth shapes, Y an additive surface of X with smooth and white errors."""
    rng = np.random.default_rng((1, block))
    s = np.linspace(0, 1, POINTS)
    shapes = np.array([np.cos(np.pi * k * s) / (k + 1) for k in range(6)])
    x = rng.normal(size=(n, 6)) @ shapes
    y = np.sin(x[:, ::5]) @ np.outer(np.linspace(0, 1, 21), np.sin(np.pi * s)) / 21
    y += rng.normal(size=(n, 3)) @ shapes[:3] / 10
    y += rng.standard_normal(size=(n, POINTS), dtype=np.float32) / 10
    return x, y


def blocks(n: int) -> list[tuple[int, int]]:
    """Number and size of each block."""
    return [(i, min(BLOCK, n - start)) for i, start in enumerate(range(0, n, BLOCK))]


def peak_memory() -> float:
    """Of this process, in megabytes."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1000


def run(way: str, n: int) -> dict[str, float]:
    """One fit in this process, and what it took."""
    from fdadp import AdditiveFunctionOnFunction

    model = AdditiveFunctionOnFunction(progress=False)
    model.fit_chunks([curves(0, 500)])  # imports, compilation
    start = time.perf_counter()
    for block, size in blocks(BLOCK * 5):
        curves(block, size)
    made = (time.perf_counter() - start) / (BLOCK * 5)
    if way != "two workers":
        start, before = time.perf_counter(), time.process_time()
        model.fit_chunks(lambda: (curves(*block) for block in blocks(n)))
        seconds, of_workers, cpu = time.perf_counter() - start, [], [time.process_time() - before]
    else:
        import dask
        from dask import delayed
        from distributed import Client, LocalCluster

        with (
            dask.config.set({"distributed.nanny.pre-spawn-environ": WITHOUT_TRIMMING}),
            LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
            Client(cluster) as client,
        ):
            client.run(run, "one process, one thread", 500)  # imports
            make = delayed(curves, pure=False)
            start, before = time.perf_counter(), client.run(time.process_time)
            model.fit_chunks([make(*block) for block in blocks(n)])
            seconds = time.perf_counter() - start
            cpu = [now - before[worker] for worker, now in client.run(time.process_time).items()]
            of_workers = list(client.run(peak_memory).values())
    return {
        "seconds": seconds,
        "cpu": cpu,
        "making": 2 * made * n,
        "memory": peak_memory(),
        "workers": of_workers,
        "load": os.getloadavg()[0],
        "r2": float(model.r2_),
    }


def in_process_of_its_own(way: str, n: int) -> dict[str, float]:
    """The same in a fresh Python."""
    threads = {"NUMBA_NUM_THREADS": WAYS[way]} if WAYS[way] else {}
    command = [sys.executable, __file__, "--way", way, "--sizes", str(n)]
    done = subprocess.run(command, env={**os.environ, **threads}, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return json.loads(done.stdout.splitlines()[-1])


def table(results: list[dict]) -> str:
    """The results as a page."""
    cpu, cores = platform.processor() or platform.machine(), os.cpu_count()
    lines = [
        f"{cores} cores ({cpu}), Python {platform.python_version()}; blocks of {BLOCK:,} pairs of curves at {POINTS}",
        "points, made anew in both passes of a fit. Times are the shortest of the runs, ratios those of runs one after",
        "the other; memory is the peak in MB. Load is that of the machine after the run.",
        "",
        "| curves | | seconds | per million | client | each worker | times as fast | load |",
        "|---:|---|---:|---:|---:|---:|---|---:|",
    ]
    for n in dict.fromkeys(row["n"] for row in results):
        of_n = [row for row in results if row["n"] == n]
        pairs = {way: [row[way]["seconds"] for row in of_n] for way in WAYS}
        for way in WAYS:
            best = min((row[way] for row in of_n), key=lambda found: found["seconds"])
            ratios = ", ".join(f"{a / b:.2f}" for a, b in zip(pairs[way], pairs["two workers"], strict=True))
            workers = ", ".join(f"{memory:.0f}" for memory in best["workers"])
            faster = "" if way == "two workers" else f"two workers: {ratios}"
            seconds = best["seconds"]
            lines.append(
                f"| {n:,} | {way} | {seconds:.1f} | {seconds / n * 1e6:.1f} | {best['memory']:.0f} | {workers} "
                f"| {faster} | {best['load']:.1f} |"
            )
        shares = [row["two workers"]["making"] / 2 / row["two workers"]["seconds"] for row in of_n]
        lines.append(f"| | *making the curves, of the time of two workers* | {100 * min(shares):.0f} % | | | | | |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    asked = parser.parse_args()
    if asked.way:
        print(json.dumps(run(asked.way, asked.sizes[0])))
        return
    results = []
    for n in asked.sizes:
        for _ in range(asked.repeats):
            results.append({"n": n, **{way: in_process_of_its_own(way, n) for way in WAYS}})
            asked.out.mkdir(exist_ok=True)
            (asked.out / "cluster.json").write_text(json.dumps(results, indent=1))
            (asked.out / "cluster.md").write_text(table(results))
            print(table(results), flush=True)


if __name__ == "__main__":
    main()
