"""Write ``fdadp/planner/table.json``: simulated outcomes for the default prior. Some minutes on two cores."""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fdadp import PublicPrior
from fdadp.planner.simulated_fit_of_one_curve import outcomes
from fdadp.planner.simulation_table import ETAS, SIZES, TABLE, _key

SEEDS = range(1, 4)


def cell_row(task: tuple[str, int, int]) -> tuple[str, int, list[list[float]]]:
    """Outcomes of one population at one n, for every noise."""
    kind, i, seed = task
    return kind, i, [list(o) for o in outcomes(PublicPrior(), SIZES[i], ETAS, [seed], pure=kind == "pure")]


def main() -> None:
    """Simulate all cells and write their means."""
    tasks = [(kind, i, seed) for i in reversed(range(len(SIZES))) for kind in ("gaussian", "pure") for seed in SEEDS]
    sums: dict[str, dict[str, list[list[float]]]] = {"gaussian": {}, "pure": {}}
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        for kind, i, row in pool.imap_unordered(cell_row, tasks):
            for j, values in enumerate(row):
                if _key(i, j) == f"{SIZES[i]} {ETAS[j]:.3g}":
                    sums[kind].setdefault(_key(i, j), []).append(values)
    cells: dict[str, dict[str, Any]] = {
        kind: {
            key: [round(sum(column) / len(rows), 4) for column in zip(*rows, strict=True)]
            for key, rows in known.items()
        }
        for kind, known in sums.items()
    }
    about = f"n and noise per person: share, RMSPE ratio, width ratio, coverage; mean of {len(SEEDS)} populations"
    TABLE.write_text(json.dumps({"about": about, "cells": cells}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
