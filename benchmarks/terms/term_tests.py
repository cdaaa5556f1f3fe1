"""Are 5 % tests of terms at 5 %, and what do they find?

For each simulator (:mod:`simulators`) and share of smooth errors, of the wide term (``ff(X)`` or ``s(z)``): how often
its test rejects where the term has no effect (level) and where it has a share of the simulator's (power); and of a
scalar without effect. By curves, and with errors taken as independent.

    python benchmarks/terms/term_tests.py --repeats 200            # some CPU minutes
    python benchmarks/terms/term_tests.py --repeats 100 --n 300
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
from simulators import SIMULATORS, Simulated, T

from fdadp import FunctionalRegression
from fdadp.functional.quadrature import quadrature_weights

SHARES = {"independent": 0.0, "mixed": 0.4, "smooth": 0.8}
KINDS = ("curve", "iid")


def part(made: Simulated) -> Any:
    """What the term adds to the mean."""
    if made.term == "ff(X)":
        return (made.data["X"] * quadrature_weights(T, "trapezoid")) @ made.effect(T[:, None], T[None])
    return made.effect(made.data["z"][:, None], T[None])


def rejections(made: Simulated, share: float) -> list[float]:
    """Of the wide term and of the null by each kind, with a share of the effect; and the rank by curves."""
    data = {**made.data, "Y": made.data["Y"] - (1 - share) * part(made)}
    model = FunctionalRegression(made.model).fit(data, grids={name: T for name in ("X", "Y") if name in data})
    tested = [model.test_terms(kind) for kind in KINDS]
    found = [float(table.loc[name, "p"] < 0.05) for name in (made.term, made.null) for table in tested]
    return [*found, float(tested[0].loc[made.term, "df"]), float(tested[0].loc[made.term, "edf"])]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--repeats", type=int, default=100)
    asked.add_argument("--n", type=int, nargs="+", default=[60])
    asked.add_argument("--share", type=float, default=0.1, help="of the effect, where power is asked")
    options = asked.parse_args()
    start = time.process_time()
    print("| simulator | n | errors | level, wide term | (iid) | power | (iid) | level, scalar | (iid) | rank | edf |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for name, simulate in SIMULATORS.items():
        for n in options.n:
            for law, smooth in SHARES.items():
                made = [simulate(n, np.random.default_rng([seed, n]), smooth) for seed in range(options.repeats)]
                none, some = (np.mean([rejections(m, s) for m in made], axis=0) for s in (0.0, options.share))
                shown = [*none[:2], *some[:2], *none[2:4]]
                text = " | ".join(f"{v:.3f}" for v in shown) + f" | {none[4]:.1f} | {none[5]:.1f}"
                print(f"| {name} | {n} | {law} | {text} |", flush=True)
    print(f"\n{time.process_time() - start:.0f} CPU s")
