"""Private forecasts of the second day in intensive care from the first: share explained, and what intervals cover.

    python benchmarks/icu_private.py [--first-split 5] [--splits 5] [--seeds 10] [--out benchmarks/results/icu-private]

Heart rate, fitted about what is known without a fit (``prior="persistence"``: half the last value, half the mean of the
first day), at several numbers of stays and budgets with delta = 1e-6. Judged on stays that nobody used, on observed
hours only. Coverage of 95 % intervals by quarters of the first day's roughness and by two hours of the second day.
Needs the ICU stays in FDADP_DATA.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fdadp import DPAFF, FunctionalRegression, Privacy, load_icu
from fdadp.functional.gaps import fill_linear

CELLS = ((300, 0.5), (300, 1.0), (1000, 0.1), (1000, 1.0), (5500, 0.1), (5500, 1.0))
WANTED = (0.51, 0.525, 0.515, 0.535, 0.53, 0.545)
"""Shares explained that were set as targets, of the cells."""
BOUNDS = {"day1": (30.0, 180.0), "day2": (30.0, 180.0)}
N_TRAIN = 5500


def stays() -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Columns, with their gaps, and their grids; stays that were observed in 18 hours of each day or more."""
    icu = load_icu(as_frame=True)
    enough = (icu.X.notna().sum(axis=1) >= 18) & (icu.Y.notna().sum(axis=1) >= 18)
    hours = {"day1": icu.X.columns.to_numpy(dtype=float), "day2": icu.Y.columns.to_numpy(dtype=float)}
    return {"day1": icu.X[enough].to_numpy(), "day2": icu.Y[enough].to_numpy()}, hours


def judged(model: Any, new: dict[str, np.ndarray], mean: np.ndarray) -> dict[str, float]:
    """Shares explained by a model and by the anchor alone, and coverage."""
    truth = new["day2"]
    spread = np.nansum((truth - mean) ** 2)
    first = fill_linear(new["day1"], np.arange(24.0))
    weights = np.full(24, 1 / 23)
    weights[[0, -1]] /= 2
    anchor = (0.5 * first[:, -1] + 0.5 * first @ weights)[:, None]
    lower, upper = model.predict_interval(new)
    inside = np.where(np.isnan(truth), np.nan, (truth >= lower) & (truth <= upper))
    roughness = np.abs(np.diff(first, axis=1)).mean(axis=1)
    quarter = np.searchsorted(np.quantile(roughness, [0.25, 0.5, 0.75]), roughness)
    found = {
        "explained": 1 - np.nansum((truth - model.predict(new)) ** 2) / spread,
        "anchor": 1 - np.nansum((truth - anchor) ** 2) / spread,
        "covered": np.nanmean(inside),
        "width": np.nanmean(upper - lower),
    }
    found |= {f"quarter {q + 1}": np.nanmean(inside[quarter == q]) for q in range(4)}
    found |= {f"hours {h} to {h + 2}": np.nanmean(inside[:, h : h + 2]) for h in range(0, 24, 2)}
    return found


def main(arguments: list[str] | None = None) -> pd.DataFrame:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--first-split", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--formula", default="day2 ~ ff(day1)")
    parser.add_argument("--cells", type=int, nargs="+", default=list(range(len(CELLS))))
    parser.add_argument("--out", type=Path, help="where tables are written, without their suffix")
    asked = parser.parse_args(arguments)
    columns, grids = stays()
    rows = []
    for split in range(asked.first_split, asked.first_split + asked.splits):
        order = np.random.default_rng(split).permutation(len(columns["day1"]))
        train, test = order[:N_TRAIN], order[N_TRAIN:]
        mean = np.nanmean(columns["day2"][train], axis=0)
        new = {name: value[test] for name, value in columns.items()}
        for cell in asked.cells:
            n, epsilon = CELLS[cell]
            data = {name: value[train[:n]] for name, value in columns.items()}
            for seed in range(asked.seeds):
                privacy = Privacy(epsilon, 1e-6, n=n, random_state=asked.seeds * split + seed)
                model = FunctionalRegression(
                    asked.formula, privacy=privacy, bounds=BOUNDS, mechanism=DPAFF(prior="persistence")
                )
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    model.fit(data, grids=grids)
                    found = judged(model, new, mean)
                rows.append({"n": n, "epsilon": epsilon, "wanted": WANTED[cell], "split": split, "seed": seed, **found})
    runs = pd.DataFrame(rows)
    below = (runs["explained"] < runs["anchor"] - 0.005).groupby([runs["n"], runs["epsilon"]], sort=False).mean()
    table = runs.drop(columns=["split", "seed"]).groupby(["n", "epsilon"], sort=False).mean()
    worst = runs.groupby(["n", "epsilon"], sort=False)["explained"].min()
    table.insert(2, "worst", worst)
    table.insert(4, "below the anchor", below)
    table["error of covered"] = runs.groupby(["n", "epsilon"], sort=False)["covered"].sem()
    if asked.out is not None:
        asked.out.parent.mkdir(parents=True, exist_ok=True)
        settings = {
            "first split": asked.first_split,
            "splits": asked.splits,
            "seeds": asked.seeds,
            "formula": asked.formula,
        }
        record = {"settings": settings, "rows": table.reset_index().round(4).to_dict("records")}
        asked.out.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n")
    return table


if __name__ == "__main__":
    print(main().T.to_string(float_format="{:.3f}".format))
