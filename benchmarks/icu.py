"""Heart rate of the second day in intensive care from the first: share explained and coverage, by ε and n.

    python benchmarks/icu.py [--draws 10] [--n 300 1000 2500 5500] [--epsilon 0.05 0.1 0.25 0.5 1 3]
                             [--out benchmarks/results/icu]

Private fits at delta = 1e-6, with the anchor of ``prior="persistence"`` (half the last value, half the mean of the
first day) and without, beside the mean curve, the last value, the anchor alone, and fits of the same formula without
privacy. A draw is a split of the stays and its own noise; all is judged on observed hours of stays that no fit of the
draw used. Coverage of 95 % intervals also by quarters of the first day's roughness and by two hours of the second.
Needs the ICU stays (``fdadp.load_icu``).
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
from fdadp.functional.gap_filling import fill_linear

FORMULA = "day2 ~ ff(day1)"
ANCHOR = "0.5 * last(day1) + 0.5 * mean(day1)"
BOUNDS = {"day1": (30.0, 180.0), "day2": (30.0, 180.0)}
N_TRAIN = 5500
FIRST_SPLIT = 5
"""Splits 0 to 4 were looked at while the mechanism was built."""

Table = dict[str, np.ndarray]


def stays() -> tuple[Table, Table]:
    """Columns, with their gaps, and their grids; stays that were observed in 18 hours of each day or more."""
    icu = load_icu(as_frame=True)
    enough = (icu.X.notna().sum(axis=1) >= 18) & (icu.Y.notna().sum(axis=1) >= 18)
    hours = {"day1": icu.X.columns.to_numpy(dtype=float), "day2": icu.Y.columns.to_numpy(dtype=float)}
    return {"day1": icu.X[enough].to_numpy(), "day2": icu.Y[enough].to_numpy()}, hours


class Judge:
    """Judges predictions of held-out stays on the hours that were observed.

    Parameters
    ----------
    new : dict
        Columns of held-out stays.
    mean : ndarray of shape (24,)
        Mean curve of those to fit, about which the share explained is counted.
    """

    def __init__(self, new: Table, mean: np.ndarray) -> None:
        self.new, self.mean, self.truth = new, mean, new["day2"]
        self.first = fill_linear(new["day1"], np.arange(24.0))
        roughness = np.abs(np.diff(self.first, axis=1)).mean(axis=1)
        self.quarter = np.searchsorted(np.quantile(roughness, [0.25, 0.5, 0.75]), roughness)

    def explained(self, predicted: np.ndarray) -> float:
        """Share of the variance about the mean curve."""
        return float(1 - np.nansum((self.truth - predicted) ** 2) / np.nansum((self.truth - self.mean) ** 2))

    def without_a_fit(self) -> dict[str, dict[str, float]]:
        """What is explained by what needs no fit."""
        weights = np.full(24, 1 / 23)
        weights[[0, -1]] /= 2
        last, level = self.first[:, -1:], (self.first @ weights)[:, None]
        guesses = {"mean curve": self.mean, "last value": last, "anchor": 0.5 * last + 0.5 * level}
        return {name: {"explained": self.explained(guess)} for name, guess in guesses.items()}

    def of(self, model: Any, *, filled: bool = False) -> dict[str, float]:
        """Share explained, coverage and mean width of intervals of a fitted model, which may want filled first days."""
        new = {"day1": self.first if filled else self.new["day1"]}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            lower, upper = model.predict_interval(new)
            predicted = model.predict(new)
        inside = np.where(np.isnan(self.truth), np.nan, (self.truth >= lower) & (self.truth <= upper))
        found = {"explained": self.explained(predicted)}
        found |= {"covered": float(np.nanmean(inside)), "width": float(np.nanmean(upper - lower))}
        found |= {f"quarter {q + 1}": float(np.nanmean(inside[self.quarter == q])) for q in range(4)}
        return found | {f"hours {h} to {h + 2}": float(np.nanmean(inside[:, h : h + 2])) for h in range(0, 24, 2)}


def not_private(data: Table, grids: Table, *, anchored: bool) -> Any:
    """Fit of the same formula without privacy; gaps of the first day are filled within a stay, as in a private fit."""
    data = {"day1": fill_linear(data["day1"], grids["day1"]), "day2": data["day2"]}
    offset = {"offset": ANCHOR} if anchored else {}
    return FunctionalRegression(FORMULA, missing="linear").fit(data, grids=grids, **offset)


def private(data: Table, grids: Table, epsilon: float, seed: int, *, anchored: bool) -> Any:
    """Private fit, with seeded noise, for simulation."""
    privacy = Privacy(epsilon, 1e-6, n=len(data["day1"]), random_state=seed)
    how = DPAFF(prior="persistence" if anchored else None, allow_useless=True)  # n ε below 50 is refused otherwise
    model = FunctionalRegression(FORMULA, privacy=privacy, bounds=BOUNDS, mechanism=how)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(data, grids=grids)


def runs(sizes: list[int], epsilons: list[float], draws: int, seeds: int, first_split: int) -> pd.DataFrame:
    """One row for each fit, and for each guess without one."""
    columns, grids = stays()
    rows: list[dict[str, Any]] = []
    for split in range(first_split, first_split + draws):
        order = np.random.default_rng(split).permutation(len(columns["day1"]))
        train, test = order[:N_TRAIN], order[N_TRAIN:]
        judge = Judge({k: v[test] for k, v in columns.items()}, np.nanmean(columns["day2"][train], axis=0))
        rows += [{"method": name, "split": split, **found} for name, found in judge.without_a_fit().items()]
        for n in sizes:
            data = {name: value[train[:n]] for name, value in columns.items()}
            for anchored, named in ((True, "with anchor"), (False, "without anchor")):
                cell = {"n": n, "split": split}
                fitted = not_private(data, grids, anchored=anchored)
                rows.append({"method": f"no privacy, {named}", **cell, **judge.of(fitted, filled=True)})
                for epsilon in epsilons:
                    for seed in range(seeds * split, seeds * (split + 1)):
                        model = private(data, grids, epsilon, seed, anchored=anchored)
                        rows.append({"method": f"private, {named}", "epsilon": epsilon, **cell, **judge.of(model)})
    return pd.DataFrame(rows)


def summary(found: pd.DataFrame) -> pd.DataFrame:
    """Means over draws; lowest and highest share explained, and lowest and highest coverage, of single draws."""
    by = found.drop(columns="split").groupby(["method", "n", "epsilon"], sort=False, dropna=False)
    table = by.mean()
    for name, of in (("worst", by["explained"].min()), ("best", by["explained"].max())):
        table.insert(1, name, of)
    table.insert(4, "covered least", by["covered"].min())
    table.insert(5, "covered most", by["covered"].max())
    table.insert(6, "error of covered", by["covered"].sem())
    return table.reset_index()


def main(arguments: list[str] | None = None) -> pd.DataFrame:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, nargs="+", default=[300, 1000, 2500, 5500])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.05, 0.1, 0.25, 0.5, 1.0, 3.0])
    parser.add_argument("--draws", type=int, default=10, help="splits of the stays")
    parser.add_argument("--seeds", type=int, default=1, help="draws of the noise on each split")
    parser.add_argument("--first-split", type=int, default=FIRST_SPLIT)
    parser.add_argument("--out", type=Path, help="where the table is written, without its suffix")
    asked = parser.parse_args(arguments)
    table = summary(runs(asked.n, asked.epsilon, asked.draws, asked.seeds, asked.first_split))
    if asked.out is not None:
        asked.out.parent.mkdir(parents=True, exist_ok=True)
        settings = {"draws": asked.draws, "seeds": asked.seeds, "first split": asked.first_split, "formula": FORMULA}
        rows = [{k: v for k, v in row.items() if v == v} for row in table.round(4).to_dict("records")]
        asked.out.with_suffix(".json").write_text(json.dumps({"settings": settings, "rows": rows}, indent=1) + "\n")
    return table


if __name__ == "__main__":
    shown = ["method", "n", "epsilon", "explained", "worst", "best", "covered", "covered least", "covered most"]
    print(main()[shown].to_string(index=False, float_format="{:.3f}".format, na_rep=""))
