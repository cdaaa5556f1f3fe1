"""CPU time of a fit beside the same fit of another checkout: ``python benchmarks/fit_time.py PATH``.

Each checkout answers in a process of its own, with one BLAS thread, in turn and on the same curves (S1 to S3 with
51 points, other curves each round), so that a machine that slows down slows both. Printed are the medians over rounds,
and the median of the ratios round by round: with the default sizes of the bases of each, and with 7 x 7 splines.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve()
POINTS = 51


def answer() -> None:
    """Fit on demand: a line ``n seed times basis`` on stdin, the CPU seconds of a fit on stdout."""
    import numpy as np

    import fdadp

    warnings.simplefilter("ignore")
    for line in sys.stdin:
        n, seed, times, basis = map(int, line.split())
        sizes = {"n_basis_x": basis, "n_basis_s": basis} if basis else {}
        spent = 0.0
        for k in range(times):
            data = fdadp.simulate_affr(1 + k % 3, n, np.random.default_rng([seed, k]), n_points=POINTS)
            x, y = (np.ascontiguousarray(curves.data_matrix[..., 0]) for curves in (data.X, data.Y))
            start = time.process_time()
            fdadp.AdditiveFunctionOnFunction(progress=False, **sizes).fit(x, y)
            spent += time.process_time() - start
        print(json.dumps([spent / times, fdadp.__file__]), flush=True)


class Checkout:
    """A process that fits with the package in a folder."""

    def __init__(self, folder: Path) -> None:
        env = {**os.environ, "PYTHONPATH": str(folder), "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
        command = [sys.executable, "-P", str(HERE), "--answer"]
        self.folder = folder
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)

    def seconds(self, n: int, seed: int, times: int, basis: int) -> float:
        assert self.process.stdin is not None and self.process.stdout is not None
        print(n, seed, times, basis, file=self.process.stdin, flush=True)
        seconds, file = json.loads(self.process.stdout.readline())
        if not Path(file).is_relative_to(self.folder):
            raise RuntimeError(f"{self.folder} has no fdadp: {file} was imported")
        return float(seconds)


def main(arguments: list[str] | None = None) -> list[dict[str, Any]]:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path, help="folder of the other checkout")
    parser.add_argument("--sizes", type=int, nargs="*", default=[100, 1000, 10_000])
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args(arguments)
    here, other = Checkout(HERE.parents[1]), Checkout(options.other.resolve())
    rows = []
    for n, basis in product(options.sizes, (0, 7)):
        times = 3 if n > 1000 else 12
        pairs = []
        for seed in range(options.rounds + 1):
            order = (here, other) if seed % 2 else (other, here)
            took = {checkout: checkout.seconds(n, seed, times, basis) for checkout in order}
            pairs.append((took[here], took[other]))
        own, others = zip(*pairs[1:], strict=True)  # the first round warms up
        ratio = median(a / b for a, b in pairs[1:])
        rows.append(
            {
                "n": n,
                "basis": f"{basis} x {basis}" if basis else "default",
                "here": median(own),
                "other": median(others),
                "ratio": ratio,
            }
        )
        print(
            "n = {n:>6}, {basis:>7}: {here:.4f} s here, {other:.4f} s there, ratio {ratio:.2f}".format(**rows[-1]),
            flush=True,
        )
    return rows


if __name__ == "__main__":
    if sys.argv[1:] == ["--answer"]:
        answer()
    else:
        main()
