"""What learners gain where public ranges are first narrowed to where numbers are, and what that costs ranges that fit.

    python benchmarks/learners/narrowed.py [--seeds 24] [--only additive logistic]

Share of the variance of E[y | x], of a class that of its probability, that predictions explain on 4,000 new persons:
mean and worst over seeds that chose no constant, and the paired difference with its standard error. ε = 1, δ = 1e-6 or
pure ε, n declared; six features, effects curved (a class: lines of the logit). "Default": whether the public rule
narrows. Results: results/narrowed.md and .json; a part that is run again replaces its own rows.
"""

from __future__ import annotations

import argparse
import json
import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fdadp.learners import DPAdditiveRegressor, DPLogisticRegression

HERE = Path(__file__).resolve().parent
FIRST, NEW, D = 47_000, 4000, 6
SIZES = (1000, 5000, 20_000)


class Cell(NamedTuple):
    """Columns, and their public ranges."""

    name: str
    columns: Callable[[Any, int], Any]
    unit: float
    bounds: tuple[float, float]
    bounds_y: tuple[float, float]
    at: float = 0.0
    only_y: bool = False


def uniform(rng: Any, m: int) -> Any:
    return rng.uniform(-1, 1, (m, D))


def normal(rng: Any, m: int) -> Any:
    return rng.normal(size=(m, D)) / 3


def heavy(rng: Any, m: int) -> Any:
    """A t law with three degrees of freedom."""
    return np.clip(rng.standard_t(3, (m, D)), -200, 200)


def lognormal(rng: Any, m: int) -> Any:
    """σ 1.5."""
    return np.clip(np.exp(1.5 * rng.normal(size=(m, D))), 0, 1000)


def rare(rng: Any, m: int) -> Any:
    """Three columns of 1 % ones among six."""
    X = uniform(rng, m)
    X[:, :3] = rng.random((m, 3)) < 0.01
    return X


def shifted(rng: Any, m: int) -> Any:
    """Far to one side of (0, 100)."""
    return 90 + 3 * uniform(rng, m)


CELLS = (
    Cell("x ±2 sd, y ±4 sd", uniform, 1.0, (-1, 1), (-4, 4)),
    Cell("normal x ±3 sd, y ±4 sd", normal, 0.6, (-1, 1), (-4, 4)),
    Cell("x ±2 sd, y ±28 sd", uniform, 1.0, (-1, 1), (-28, 28), only_y=True),
    Cell("x ±21 sd, y ±28 sd", uniform, 1.0, (-12, 12), (-28, 28)),
    Cell("x ±21 sd, y ±3,500 sd", uniform, 1.0, (-12, 12), (-3500, 3500), only_y=True),
    Cell("x 90 ± 3 in (0, 100), y at 50 in ±100", shifted, 3.0, (0, 100), (-100, 100), 50.0),
    Cell("t₃ columns in ±200, y ±100 sd", heavy, 2.0, (-200, 200), (-100, 100)),
    Cell("lognormal columns in (0, 1,000), y ±100 sd", lognormal, 0.0, (0, 1000), (-100, 100)),
    Cell("three columns of 1 % ones, y ±10 sd", rare, 1.0, (-1, 1), (-10, 10)),
)


def standard(cell: Cell, X: Any) -> Any:
    """Columns about 0 and of size about 1, as effects take them."""
    if cell.columns is lognormal:
        return np.log(np.maximum(X, 1e-9)) / 1.5
    return (X - (90 if cell.columns is shifted else 0)) / cell.unit


def additive(cell: Cell, n: int, delta: float | None, seed: int) -> tuple[float, float, bool]:
    """Shares explained by declared and by narrowed ranges; and, of the first seed, whether the default narrows."""
    rng = np.random.default_rng(seed)
    X = cell.columns(rng, n + NEW)
    z = standard(cell, X)
    f = np.sin(3 * z[:, 0]) + 1.5 * np.abs(z[:, 1]) + z[:, 2] + 3 * np.tanh(z[:, 3]) ** 2 - 0.7 * z[:, 4]
    f = (f - f.mean()) / f.std() + cell.at
    y = f + 0.7 * rng.normal(size=len(f))
    public = {"epsilon": 1.0, "delta": delta, "n": n, "bounds": cell.bounds, "bounds_y": cell.bounds_y}
    scores = []
    for narrow in (False, True):
        model = DPAdditiveRegressor(**public, narrow=narrow, random_state=seed + 10**6).fit(X[:n], y[:n])
        scores.append(share(model.predict(X[n:]), f[n:]))
    if seed > FIRST:
        return *scores, False
    model = DPAdditiveRegressor(**public, n_passes=1, random_state=0).fit(X[:n], y[:n])
    return *scores, model.ledger_.releases[0].name == "counts in cells 1"


def logistic(cell: Cell, n: int, delta: float | None, seed: int) -> tuple[float, float, bool]:
    """The same of a class by objective perturbation and by rounds."""
    rng = np.random.default_rng(seed)
    X = cell.columns(rng, n + NEW)
    f = standard(cell, X) @ np.array([1, -1, 0.5, 0.7, -0.3, 0])
    p = 1 / (1 + np.exp(-1.5 * (f - f.mean()) / f.std()))
    y = (rng.random(len(p)) < p).astype(int)
    public = {"epsilon": 1.0, "delta": delta, "n": n, "bounds": cell.bounds, "classes": [0, 1]}
    scores = []
    for mechanism in ("objective", "rounds"):
        model = DPLogisticRegression(**public, mechanism=mechanism, random_state=seed + 10**6).fit(X[:n], y[:n])
        scores.append(share(model.predict_proba(X[n:])[:, 1], p[n:]))
    return *scores, False


def share(found: Any, truth: Any) -> float:
    """Of the variance of the truth that is explained."""
    return float(1 - np.mean((found - truth) ** 2) / np.var(truth))


PARTS = {"additive": additive, "logistic": logistic}


def measured(part: str, cell: Cell, n: int, delta: float | None, seeds: int) -> dict[str, Any]:
    """One row of the table."""
    found = [PARTS[part](cell, n, delta, seed) for seed in range(FIRST, FIRST + seeds)]
    got = np.array([one[:2] for one in found])
    gain = got[:, 1] - got[:, 0]
    row = {"part": part, "name": cell.name, "n": n, "noise": "pure ε" if delta is None else "δ", "seeds": seeds}
    row |= {"declared": got[:, 0].mean(), "worst declared": got[:, 0].min(), "default": found[0][2]}
    row |= {"narrowed": got[:, 1].mean(), "worst narrowed": got[:, 1].min(), "gain": gain.mean()}
    return row | {"error": float(gain.std(ddof=1) / math.sqrt(seeds))}


def table(rows: list[dict[str, Any]]) -> str:
    """All rows as a page."""
    head = (
        "| n | noise | table | declared (worst) | narrowed (worst) | paired gain | default | fits |\n"
        + "|---" * 8
        + "|"
    )
    lines = ["# Ranges narrowed by counts", "", (__doc__ or "").split("\n\n", 2)[2].strip()]
    for part in dict.fromkeys(row["part"] for row in rows):
        lines += ["", f"## {part.capitalize()}", "", head]
        lines += [
            f"| {r['n']:,} | {r['noise']} | {r['name']} | {r['declared']:.3f} ({r['worst declared']:.2f}) | "
            f"{r['narrowed']:.3f} ({r['worst narrowed']:.2f}) | {r['gain']:+.4f} ± {r['error']:.4f} | "
            f"{'yes' if r['default'] else 'no'} | {r['seeds']} |"
            for r in rows
            if r["part"] == part
        ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the parts that are wanted, print their rows, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=24)
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--noise", nargs="+", choices=["δ", "pure"], default=["δ", "pure"])
    parser.add_argument("--n", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--out", type=Path, default=HERE / "results")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    stored = options.out / "narrowed.json"
    rows = json.loads(stored.read_text(encoding="utf-8")) if stored.exists() else []
    rows = {(r["part"], r["noise"], r["n"], r["name"]): r for r in rows}
    for part in options.only:
        for delta in ({"δ": 1e-6, "pure": None}[noise] for noise in options.noise):
            for n in options.n:
                for cell in CELLS:
                    if part == "logistic" and cell.only_y:
                        continue
                    row = measured(part, cell, n, delta, options.seeds)
                    rows[part, row["noise"], n, cell.name] = row
                    print(table([row]).splitlines()[-1], flush=True)
                    text = json.dumps(list(rows.values()), indent=1, ensure_ascii=False)
                    stored.write_text(text + "\n", encoding="utf-8")
                    (options.out / "narrowed.md").write_text(table(list(rows.values())), encoding="utf-8")


if __name__ == "__main__":
    main()
