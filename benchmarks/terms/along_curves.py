"""Least squares or generalised least squares along curves, on real data: errors of predicted curves.

Random splits, four fifths to fit (whole persons, where they have several curves); rmse on the rest of the mean curve,
of ``errors="iid"`` with refund's sizes of bases and with 15 functions along t, and of ``errors="curve"``.

    FDADP_DATA=... python benchmarks/terms/along_curves.py [--splits 8]
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from fdadp import FunctionalRegression, load_canadian_weather, load_dti, load_dti2, load_icu, terms
from fdadp.datasets import load_lip_emg
from fdadp.functional.gap_filling import fill_linear


def numbers(curves: Any, every: int = 1) -> tuple[Any, Any]:
    """Values and grid, thinned."""
    return curves.data_matrix[::, ::every, 0], curves.grid_points[0][::every]


def cases() -> Iterator[tuple[str, dict[str, Any], dict[str, Any], list[Any], Any]]:
    """Name, columns, grids, terms, and persons."""
    weather = load_canadian_weather()
    (x, s), (y, t), (rain, _) = (numbers(c, 7) for c in (weather.X, weather.Y, weather.precipitation))
    alone = np.arange(len(x))
    place = weather.covariates["region"].to_numpy(dtype=object)
    grids = {"X": s, "Y": t}
    yield "weather: temperature, log rain", {"X": x, "Y": y}, grids, [terms.ff("X")], alone
    yield "weather: the same, concurrent", {"X": x, "Y": y}, grids, [terms.concurrent("X")], alone
    yield "weather: the same, sff", {"X": x, "Y": y}, grids, [terms.sff("X")], alone
    yield "weather: rain from temperature", {"X": x, "Y": rain}, grids, [terms.ff("X")], alone
    yield "weather: temperature by region", {"g": place, "Y": x}, {"Y": s}, [terms.factor("g")], alone
    yield "weather: log rain by region", {"g": place, "Y": y}, {"Y": t}, [terms.factor("g")], alone
    for name, load in (("dti", load_dti), ("dti2", load_dti2)):
        bunch = load()
        (x, s), (y, t) = numbers(bunch.X), numbers(bunch.Y)
        who = np.asarray(bunch.groups)
        yield f"{name}: rcst from cca", {"X": x, "Y": y}, {"X": s, "Y": t}, [terms.ff("X")], who
        yield f"{name}: cca from rcst", {"X": y, "Y": x}, {"X": t, "Y": s}, [terms.ff("X")], who
        yield f"{name}: rcst from cca, sff", {"X": x, "Y": y}, {"X": s, "Y": t}, [terms.sff("X")], who
    lip = load_lip_emg()
    (x, s), (y, t) = numbers(lip.X, 10), numbers(lip.Y, 10)
    grids = {"X": s, "Y": t}
    yield "lip from emg", {"X": x, "Y": y}, grids, [terms.ff("X")], np.arange(len(x))
    yield "lip from emg so far", {"X": x, "Y": y}, grids, [terms.ff("X", limits="s<=t")], np.arange(len(x))
    yield "lip from emg, concurrent", {"X": x, "Y": y}, grids, [terms.concurrent("X")], np.arange(len(x))
    icu = load_icu(as_frame=True)
    enough = np.flatnonzero((icu.X.notna().sum(axis=1) >= 20) & (icu.Y.notna().sum(axis=1) >= 20))
    hours = np.arange(24.0)
    for n in (100, 400, 1600):
        some = enough[:: len(enough) // n][:n]
        data = {"X": fill_linear(icu.X.to_numpy()[some], hours), "Y": fill_linear(icu.Y.to_numpy()[some], hours)}
        yield f"icu: second day from first, {n}", data, {"X": hours, "Y": hours}, [terms.ff("X")], np.arange(n)
        grids = {"X": hours, "Y": hours}
        yield f"icu: the same hour a day before, {n}", data, grids, [terms.concurrent("X")], np.arange(n)


def split(who: Any, seed: int) -> Any:
    """Which rows to fit."""
    persons = np.unique(who)
    chosen = np.random.default_rng(seed).permutation(persons)[: int(0.8 * len(persons))]
    return np.isin(who, chosen)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--splits", type=int, default=8)
    splits = asked.parse_args().splits
    print("| data | curves to fit | mean curve | iid | iid, 15 along t | curve | wins of curve | edf iid | edf curve |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, data, grids, model, who in cases():
        found = []
        for seed in range(splits):
            fit = split(who, seed)
            train, test = ({k: v[rows] for k, v in data.items()} for rows in (fit, ~fit))
            off = [np.sqrt(np.mean((test["Y"] - train["Y"].mean(axis=0)) ** 2))]
            edf = []
            for of, errors in (([term.with_refund_sizes() for term in model], "iid"), (model, "iid"), (model, "curve")):
                fitted = FunctionalRegression(of, errors=errors).fit(train, grids=grids)
                off.append(np.sqrt(np.mean((test["Y"] - fitted.predict(test)) ** 2)))
                edf.append(fitted.edf_)
            found.append([*off, off[3] < off[1], edf[0], edf[2]])
        row = np.mean(found, axis=0)
        shown = [f"{v:.4g}" for v in row[:4]] + [
            f"{round(row[4] * splits)} of {splits}",
            f"{row[5]:.0f}",
            f"{row[6]:.0f}",
        ]
        print(f"| {name} | {int(fit.sum())} | " + " | ".join(shown) + " |", flush=True)
