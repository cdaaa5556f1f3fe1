"""CPU seconds of private fits of two or three terms with secure noise, beside fits without privacy.

``python benchmarks/terms/private_speed.py [n ...]``, by default 10,000 and 100,000 people with curves on 60 points.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import itertools
import sys
import time
import zlib
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE)]

from private_cohorts import SCENARIOS, S  # noqa: E402

NAMES = ("ff + number + factor", "concurrent + number", "historical + number", "ff + concurrent")


def seconds(model: Any, data: Any, grids: Any) -> tuple[float, float]:
    """CPU and wall-clock seconds of a fit."""
    cpu, wall = time.process_time(), time.perf_counter()
    model.fit(data, grids=grids)
    return time.process_time() - cpu, time.perf_counter() - wall


def main(sizes: list[int]) -> None:
    import numpy as np

    from fdadp import FunctionalRegression, Privacy

    for name, n in itertools.product(NAMES, [1000, *sizes]):  # the first compiles
        scenario = SCENARIOS[name]
        data = scenario.draw(n, np.random.default_rng([n, zlib.crc32(name.encode())])).data
        grids = {name: S for name, values in data.items() if values.ndim == 2}
        private = FunctionalRegression(scenario.model, privacy=Privacy(1.0, 1e-6, n=n), bounds=scenario.bounds)
        secure, wall = seconds(private, data, grids)
        plain, _ = seconds(FunctionalRegression(scenario.model), data, grids)
        if n != 1000 or not sizes:
            print(
                f"{name}, n = {n:,}: private, secure noise {secure:.2f} s CPU ({wall:.2f} s on the clock), "
                f"no privacy {plain:.2f} s CPU, ratio {secure / plain:.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main([int(v) for v in sys.argv[1:]] or [10_000, 100_000])
