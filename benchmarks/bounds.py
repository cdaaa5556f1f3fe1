"""What public ranges that are too wide, too narrow or off to one side cost a private fit: a table, docs/bounds.md.

``python benchmarks/bounds.py`` writes ``results/bounds.json``, ``results/bounds.md`` and the table of that page.
Cohorts are those of the frontier (S2, which needs the scale of X most, and S1); seeded noise, for simulation only.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import sys
import warnings
from pathlib import Path
from statistics import mean
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

PAGE = HERE.parent / "docs" / "bounds.md"
MARKS = ("<!-- table -->", "<!-- end of table -->")
FACTORS = (0.25, 0.5, 1, 2, 10, 50, 200)
ONE_SIDED = {"X": ((0, 20), (-40, 0), (0, 100)), "Y": ((0, 20), (-20, 0), (0, 100))}
RIGHT = {"X": (-4.5, 4.5), "Y": (-8.0, 8.0)}
CELLS = ((300, 1.0), (1000, 1.0), (10_000, 1.0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5, help="cohorts a cell and scenario")
    parser.add_argument("--cells", type=int, nargs="+", help="only these n")
    parser.add_argument("--out", type=Path, default=HERE / "results", help="folder of JSON and Markdown")
    options = parser.parse_args()
    cells = [cell for cell in CELLS if cell[0] in (options.cells or [cell[0]])]
    rows = []
    for name in ("X", "Y"):
        low, high = RIGHT[name]
        ranges = [(f"× {f:g}", (f * low, f * high)) for f in FACTORS]
        ranges += [(f"({low:g}, {high:g})", (low, high)) for low, high in ONE_SIDED[name]]
        for label, bounds in ranges:
            for n, epsilon in cells:
                fits = [fit(s, n, epsilon, k, {name: bounds}) for s in ("S1", "S2") for k in range(options.seeds)]
                row = {"range of": name, "range": label, "n": n, "epsilon": epsilon}
                row |= {key: mean(one[key] for one in fits) for key in fits[0]}
                rows.append(row)
                print(row, flush=True)
    text = table(rows, cells, options.seeds)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "bounds.json").write_text(json.dumps({"seeds": options.seeds, "rows": rows}, indent=1) + "\n")
    (options.out / "bounds.md").write_text(text, encoding="utf-8")
    if PAGE.exists() and options.out == HERE / "results":
        before, rest = PAGE.read_text(encoding="utf-8").split(MARKS[0])
        after = rest.split(MARKS[1])[1]
        PAGE.write_text(f"{before}{MARKS[0]}\n{text}{MARKS[1]}{after}", encoding="utf-8")


def fit(scenario: str, n: int, epsilon: float, seed: int, changed: dict[str, tuple[float, float]]) -> dict[str, float]:
    """Share explained, coverage of 95 % intervals, and whether the fit warned of a range."""
    from cohorts import GRID, WEIGHTS, cohort

    from fdadp import AdditiveFunctionOnFunction, Privacy
    from fdadp.errors import PublicInputWarning

    train, test = cohort(scenario, n, 5000 + seed)
    privacy = Privacy(epsilon, 1e-6, n=n, random_state=100 * n + seed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = AdditiveFunctionOnFunction(privacy=privacy, bounds=RIGHT | changed, progress=False)
        model.fit(train.X, train.Y, s=GRID, t=GRID)
        predicted = model.predict(test.X)
        low, high = model.predict_interval(test.X, 0.95)
    loss = (((predicted - test.f) ** 2) @ WEIGHTS).mean()
    explainable = (((test.f - test.f.mean(axis=0)) ** 2) @ WEIGHTS).mean()
    return {
        "share": float(1 - loss / explainable),
        "coverage": float(((low <= test.Y) & (high >= test.Y)).mean()),
        "warned": float(any(issubclass(w.category, PublicInputWarning) for w in caught)),
    }


def table(rows: list[dict[str, Any]], cells: list[tuple[int, float]], seeds: int) -> str:
    """Ranges as rows, cells as columns: share explained, coverage, how many fits warned."""
    known = {(r["range of"], r["range"], r["n"]): r for r in rows}
    head = " | ".join(f"n = {n:,}, ε = {epsilon:g}" for n, epsilon in cells)
    lines = [
        "Share of the explainable variance, coverage of 95 % intervals in percent, percentage of fits that warned; "
        f"means of scenarios S1 and S2, {seeds} cohorts each, (ε, 10⁻⁶).",
        "",
        f"| range of | declared | {head} |",
        "|---|---|" + "---|" * len(cells),
    ]
    for name, label in dict.fromkeys((r["range of"], r["range"]) for r in rows):
        found = [known[name, label, n] for n, _ in cells]
        texts = [f"{r['share']:.2f}, {100 * r['coverage']:.0f}, {100 * r['warned']:.0f}" for r in found]
        lines.append(f"| {name} | {label} | {' | '.join(texts)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
