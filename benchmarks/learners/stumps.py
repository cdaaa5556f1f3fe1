"""Boosted stumps by the number of features: memory and time of a fit, here and in another checkout.

    python benchmarks/learners/stumps.py [CHECKOUT] [--features 25 50 100 200 400] [--rows 1000] [--rounds 5]

Each fit runs in a process of its own, after a fit of two features, so that what Python and the packages hold is not
counted: "memory" is by how much the fit raises the largest resident size, "time" its processor time a round. A checkout
is left out from the first size on at which it holds more than 2 GB. Results: results/stumps.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
MOST = 2000
FIT = """
import json, resource, sys, time
import numpy as np
from fdadp.learners import DPBoostedStumps, Numeric
rows, features, rounds = map(int, sys.argv[1:])
def fit(d):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (rows, d))
    model = DPBoostedStumps(epsilon=1.0, classes=[0, 1], features=Numeric(0, 1), n_rounds=rounds, random_state=0)
    started = time.process_time()
    model.fit(X, (X[:, 0] > 0.5).astype(int))
    return time.process_time() - started
def held():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
fit(2)
before = held()
seconds = fit(features)
print(json.dumps({"memory": held() - before, "seconds": seconds / rounds}))
"""


def measured(checkout: Path, rows: int, features: int, rounds: int) -> dict[str, float]:
    """Megabytes and seconds a round of one fit with the fdadp of a checkout."""
    command = [sys.executable, "-c", FIT, str(rows), str(features), str(rounds)]
    environment = os.environ | {"PYTHONPATH": str(checkout)}
    done = subprocess.run(command, env=environment, cwd=checkout, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main(argv: list[str] | None = None) -> str:
    """Measure, and write the table; returns it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path, nargs="?", help="folder of another version of fdadp")
    parser.add_argument("--features", type=int, nargs="+", default=[25, 50, 100, 200, 400])
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=HERE / "results")
    args = parser.parse_args(argv)
    versions = {"here": HERE.parents[1]} | ({"before": args.checkout} if args.checkout else {})
    lines = [
        f"{args.rows} rows, 39 bins a feature, {args.rounds} rounds; memory of a fit in MB, processor time of a round",
        "in ms, and of each the ratio to the row above, which has half the features.",
        "",
        "| features | " + " | ".join(f"memory, {v} | ratio | time, {v} | ratio" for v in versions) + " |",
        "|---" * (1 + 4 * len(versions)) + "|",
    ]
    last: dict[str, dict[str, float]] = {}
    for features in args.features:
        cells = []
        for name, checkout in list(versions.items()):
            if last.get(name, {"memory": 0.0})["memory"] > MOST:
                cells.append("- | | - | ")
                continue
            found = measured(checkout, args.rows, features, args.rounds)
            old = last.get(name)
            for key, scale in (("memory", 1), ("seconds", 1000)):
                ratio = "" if old is None else f"{found[key] / old[key]:.1f}"
                cells.append(f"{found[key] * scale:.0f} | {ratio}")
            last[name] = found
        lines.append(f"| {features} | " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
    text = "\n".join(lines) + "\n"
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "stumps.md").write_text(text, encoding="utf-8")
    return text


if __name__ == "__main__":
    main()
