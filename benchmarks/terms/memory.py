"""Peak memory and time of long curves: a linear surface of 600 curves of 5,000 points, fitted with REML.

Each case runs in a process of its own; its peak is the kernel's (``ru_maxrss``), less that of a process that only makes
the data.

    python benchmarks/terms/memory.py
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

CASES = {"long responses": (600, 101, 5000), "long covariates": (600, 10_000, 101), "both": (600, 5000, 5000)}


def case(name: str, fit: bool) -> dict[str, float]:
    """Megabytes at the peak and CPU seconds of the fit."""
    import numpy as np

    from fdadp import FunctionalRegression, terms

    n, n_s, n_t = CASES[name]
    rng = np.random.default_rng(0)
    s, t = np.linspace(0, 1, n_s), np.linspace(0, 1, n_t)
    waves = [np.stack([np.cos(k * np.pi * grid) for k in range(4)]) for grid in (s, t)]
    x = rng.normal(size=(n, 4)) @ waves[0]
    y = x[:, :: max(n_s // 4, 1)][:, :4] @ waves[1]
    for row in y:
        row += 0.5 * rng.normal(size=n_t)
    start = time.process_time()
    if fit:
        FunctionalRegression([terms.ff("X")], progress=False).fit({"X": x, "Y": y}, grids={"X": s, "Y": t})
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"peak": peak, "seconds": time.process_time() - start, "data": (x.nbytes + y.nbytes) / 2**20}


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--case", choices=list(CASES), help="this one, in this process")
    asked.add_argument("--data-only", action="store_true", help="make the data, fit nothing")
    options = asked.parse_args()
    if options.case:
        print(json.dumps(case(options.case, not options.data_only)))
        sys.exit()
    print("| curves | n | S | T | CPU s | data, MB | peak above the data's, MB |\n|---|---|---|---|---|---|---|")
    for name, (n, n_s, n_t) in CASES.items():
        runs = []
        for more in ([], ["--data-only"]):
            command = [sys.executable, __file__, "--case", name, *more]
            said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            runs.append(json.loads(said))
        above = runs[0]["peak"] - runs[1]["peak"]
        print(f"| {name} | {n} | {n_s} | {n_t} | {runs[0]['seconds']:.2f} | {runs[0]['data']:.0f} | {above:.0f} |")
