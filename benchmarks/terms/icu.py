"""Heart rate of the second day in intensive care from the first: share explained, and what intervals cover.

    python benchmarks/terms/icu.py [--splits 20]

5,500 stays to fit and the rest to judge, on observed hours only; gaps are filled linearly within a stay. Coverage of
95 % prediction intervals by quarters of the roughness of the first day. Needs the ICU stays in FDADP_DATA.
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd

from fdadp import FunctionalRegression, load_icu
from fdadp.functional.gap_filling import fill_linear

FORMULAS = ("day2 ~ ff(day1, k=(12, 8))", "day2 ~ ff(day1)")
N_TRAIN = 5500


def stays() -> tuple[dict[str, np.ndarray], dict[str, np.ndarray], np.ndarray]:
    """Columns, their grids, and the second day as observed (with gaps)."""
    icu = load_icu(as_frame=True)
    enough = (icu.X.notna().sum(axis=1) >= 18) & (icu.Y.notna().sum(axis=1) >= 18)
    hours = {"day1": icu.X.columns.to_numpy(dtype=float), "day2": icu.Y.columns.to_numpy(dtype=float)}
    observed = icu.Y[enough].to_numpy()
    columns = {
        "day1": fill_linear(icu.X[enough].to_numpy(), hours["day1"]),
        "day2": fill_linear(observed, hours["day2"]),
    }
    return columns, hours, observed


def main(arguments: list[str] | None = None) -> pd.DataFrame:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--variances", nargs="+", default=["constant", "t", "model"])
    asked = parser.parse_args(arguments)
    columns, grids, observed = stays()
    rows = []
    for seed in range(asked.splits):
        order = np.random.default_rng(seed).permutation(len(observed))
        train, test = order[:N_TRAIN], order[N_TRAIN:]
        data, new = ({name: value[part] for name, value in columns.items()} for part in (train, test))
        truth = observed[test]
        spread = np.nansum((truth - np.nanmean(observed[train], axis=0)) ** 2)
        roughness = np.abs(np.diff(new["day1"], axis=1)).mean(axis=1)
        quarter = np.searchsorted(np.quantile(roughness, [0.25, 0.5, 0.75]), roughness)
        for formula in FORMULAS:
            for variance in asked.variances if formula == FORMULAS[0] else asked.variances[:1]:
                model = FunctionalRegression(formula, variance=variance).fit(data, grids=grids)
                explained = 1 - np.nansum((truth - model.predict(new)) ** 2) / spread
                lower, upper = model.predict_interval(new)
                inside = np.where(np.isnan(truth), np.nan, (truth >= lower) & (truth <= upper))
                covered = {f"quarter {q + 1}": np.nanmean(inside[quarter == q]) for q in range(4)}
                rows.append({"formula": formula, "variance": variance, "explained": explained, **covered})
    return pd.DataFrame(rows).groupby(["formula", "variance"], sort=False).mean()


if __name__ == "__main__":
    print(main().to_string(float_format="{:.3f}".format))
