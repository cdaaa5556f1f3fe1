"""Fit time and peak memory of fdadp beside its peers, in one run: ``python benchmarks/run.py --help``."""

from __future__ import annotations

import argparse
import datetime
import importlib.util
import json
import os
import platform
import shutil
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

import curves  # noqa: E402
import numpy as np  # noqa: E402
import report  # noqa: E402
from process import Worker  # noqa: E402

PEERS = {"fdars": "fdars", "fdatools": "fdatools", "scikit-fda": "skfda"}
POINTS = 101


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    options = parse(arguments)
    sizes, chunk_sizes, repeats = options.sizes, options.chunk_sizes, options.repeats
    if options.quick:
        sizes, chunk_sizes, repeats = [100, 1000], [2000, 20000], 2
    result: dict[str, Any] = {"machine": machine(), "points": POINTS, "repeats": repeats, "fits": [], "chunks": []}
    with tempfile.TemporaryDirectory(dir=options.scratch) as name:
        folder = Path(name)
        curves.simulate(folder, max([*sizes, *chunk_sizes]), POINTS)
        for n in sizes:
            result["fits"] += side_by_side(folder, n, repeats, options)
        for n in chunk_sizes:
            result["chunks"].append(from_chunks(folder, n, repeats))
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "latest.json").write_text(json.dumps(result, indent=1) + "\n")
    text = report.markdown(result, json.loads((HERE / "recorded.json").read_text()))
    (options.out / "latest.md").write_text(text)
    if options.page:
        report.into_page(HERE.parent / "docs" / "benchmarks.md", text)
    print(text)
    return result


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=[100, 1000, 10_000, 100_000], help="n of the peers")
    parser.add_argument("--chunk-sizes", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--repeats", type=int, default=5, help="rounds; each method once a round, in turn")
    parser.add_argument("--quick", action="store_true", help="small sizes, two rounds")
    parser.add_argument("--peers", nargs="*", default=list(PEERS), choices=list(PEERS))
    parser.add_argument("--no-r", action="store_true", help="leave out mgcv even where R is")
    parser.add_argument("--mgcv-limit", type=int, default=10_000, help="largest n for mgcv")
    parser.add_argument("--r-preload", default="", help="libraries of another BLAS: a second row of mgcv with them")
    parser.add_argument("--out", type=Path, default=HERE / "results", help="folder of latest.json and latest.md")
    parser.add_argument("--scratch", type=Path, help="folder for the curves (1.7 GB at a million)")
    parser.add_argument("--page", action="store_true", help="put the tables into docs/benchmarks.md")
    return parser.parse_args(arguments)


def side_by_side(folder: Path, n: int, repeats: int, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Every method on the same n curves, in turn, `repeats` times."""
    rows = [{"n": n, "method": name, "skipped": "not installed"} for name in options.peers if not installed(name)]
    with ExitStack() as stack:
        workers: dict[str, Worker] = {}

        def start(name: str, worker: Worker) -> None:
            stack.callback(worker.close)
            workers[name] = worker

        for name in ("fdadp", "private"):
            start(name, Worker.python(name, folder, n))
        if options.no_r or shutil.which("Rscript") is None:
            rows.append({"n": n, "method": "mgcv", "skipped": "no R"})
        elif n > options.mgcv_limit:
            rows.append({"n": n, "method": "mgcv", "skipped": "too slow, too large"})
        else:
            curves.write_scores(folder, n)
            start("mgcv", Worker.mgcv(folder, n, POINTS))
            if options.r_preload:
                start("mgcv-blas", Worker.mgcv(folder, n, POINTS, options.r_preload))
        for name in filter(installed, options.peers):
            start(name, Worker.python(name, folder, n))
        load = os.getloadavg()[0]
        for turn in range(repeats):
            for name, worker in workers.items():
                worker.round()
                done = f"{worker.rounds[-1]:.4g} s" if worker.error is None else worker.error
                print(f"n = {n}, round {turn + 1}: {name} {done}", file=sys.stderr, flush=True)
        for name, worker in workers.items():
            rows.append(row_of(worker, workers["fdadp"], n=n, method=name, load=load))
            if name.startswith("mgcv") and worker.error is None:
                rows[-1]["difference"] = difference(folder, workers["fdadp"], worker)
    return rows


def row_of(worker: Worker, ours: Worker, **more: Any) -> dict[str, Any]:
    row = {**more, "version": worker.version, "rounds": worker.rounds, "memory": worker.peak}
    if worker.error is not None:
        return {**row, "skipped": worker.error}
    ratios = [a / b for a, b in zip(worker.rounds, ours.rounds, strict=True)]
    cpu_ratios = [a / max(b, 1e-9) for a, b in zip(worker.cpu, ours.cpu, strict=True)]
    row |= {"seconds": median(worker.rounds), "cpu": median(worker.cpu)}
    return {**row, "ratio": median(ratios), "ratios": ratios, "cpu_ratio": median(cpu_ratios)}


def difference(folder: Path, ours: Worker, theirs: Worker) -> dict[str, list[float]]:
    """Largest difference of the fitted scores of each component, relative to their range."""
    file = folder / "compare"
    expected = theirs.save(file)
    found = {"at own smoothing parameters": ours.save(file), "at mgcv's smoothing parameters": ours.save(file, "at")}
    span = np.ptp(expected, axis=0)
    return {name: (np.abs(fitted - expected).max(axis=0) / span).tolist() for name, fitted in found.items()}


def from_chunks(folder: Path, n: int, repeats: int) -> dict[str, Any]:
    """Fit out of memory, from files."""
    worker = Worker.python("chunks", folder, n)
    try:
        load = os.getloadavg()[0]
        for turn in range(repeats):
            worker.round(least=0.0001)
            print(f"chunks, n = {n}, round {turn + 1}: {worker.rounds[-1]:.4g} s", file=sys.stderr, flush=True)
    finally:
        worker.close()
    reading = [answer["reading"] for answer in worker.answers]
    fitting = [answer["seconds"] - answer["reading"] for answer in worker.answers]
    row = {"n": n, "seconds": median(worker.rounds), "reading": median(reading), "fitting": median(fitting)}
    return {**row, "rounds": worker.rounds, "cpu": median(worker.cpu), "memory": worker.peak, "load": load}


def installed(peer: str) -> bool:
    return importlib.util.find_spec(PEERS[peer]) is not None


def machine() -> dict[str, Any]:
    cpu = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), cpu)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "cpu": cpu,
        "cores": cores,
        "system": platform.system(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "date": datetime.date.today().isoformat(),
    }


if __name__ == "__main__":
    main()
