"""Sparse curves as covariates: error of surfaces and predictions by how they are completed.

    python benchmarks/terms/sparse_covariates.py [--runs 10]

Simulated: 8 of 41 points of a curve, with noise; complete curves beside them. Real, where the ICU stays are in
FDADP_DATA: the second day's heart rate from the first day's, of which all observed hours, six or three are left; share
explained on observed hours of 1,500 new stays, 2,000 stays to fit.
"""

from __future__ import annotations

import argparse
from functools import partial

import numpy as np
import pandas as pd

from fdadp import FunctionalRegression, load_icu, terms
from fdadp.errors import MissingDataError
from fdadp.functional.gap_filling import fill_linear
from fdadp.functional.quadrature import quadrature_weights
from fdadp.regression.reading import missing_entries

S = np.linspace(0, 1, 41)
SHAPES = np.stack([np.ones(S.size), *(np.sqrt(2) * wave(2 * np.pi * S) for wave in (np.sin, np.cos))])
SURFACE = 2 * np.sin(np.pi * S)[:, None] * np.cos(np.pi * S) + np.outer(S, S)
WAYS = [("linear", None), ("smooth", None)]
WAYS += [(how, share) for how in ("fpca", "pace") for share in (0.9, 0.95, 0.99)]


def thinned(values: np.ndarray, points: int, noise: float, rng: np.random.Generator) -> np.ndarray:
    """Some observed points of each curve, with noise."""
    out = np.full(values.shape, np.nan)
    for row, curve in enumerate(values):
        seen = np.flatnonzero(~np.isnan(curve))
        at = rng.choice(seen, min(points, seen.size), replace=False)
        out[row, at] = curve[at] + noise * rng.normal(size=at.size)
    return out


def fit(how: str, share: float | None, term: terms.ff, data: dict, grids: dict) -> FunctionalRegression:
    """A model whose components explain another share than the default."""
    before = dict(missing_entries.SHARES)
    try:
        missing_entries.SHARES.update({} if share is None else {how: share})
        return FunctionalRegression([term], missing=how).fit(data, grids=grids)
    finally:
        missing_entries.SHARES.update(before)


def simulated(runs: int) -> pd.DataFrame:
    rows = []
    for run in range(runs):
        for n in (200, 1000):
            rng = np.random.default_rng(run)
            x = (rng.normal(size=(n, 3)) * [1, 0.8, 0.5]) @ SHAPES
            mean = 1 + (x * quadrature_weights(S)) @ SURFACE
            y = mean + 0.2 * rng.normal(size=mean.shape)
            few = thinned(x, 8, 0.3, rng)
            for how, share in [("complete", None), *WAYS]:
                make = partial(fit, how if how != "complete" else "raise", share, terms.ff("X"))
                model = make({"X": x if how == "complete" else few, "Y": y}, {"X": S, "Y": S})
                found = np.asarray(model.coef("ff(X)", s=S, t=S)["value"]).reshape(SURFACE.shape)
                off = np.linalg.norm(found - SURFACE) / np.linalg.norm(SURFACE)
                far = np.sqrt(((model.fitted_values_ - mean) ** 2).mean() / mean.var(axis=0).mean())
                rows.append({"how": how, "share": share or 1, "n": n, "surface": off, "means": far})
    return pd.DataFrame(rows).groupby(["how", "share", "n"], sort=False).median().unstack("n")


def expected(seen: np.ndarray) -> np.ndarray:
    """Simulated curves given what was seen of them, by the law that they were drawn from."""
    out = np.empty(seen.shape)
    for row, curve in enumerate(seen):
        at = ~np.isnan(curve)
        weighted = np.diag([1, 0.64, 0.25]) @ SHAPES[:, at]
        out[row] = (
            np.linalg.solve(SHAPES[:, at].T @ weighted + 0.09 * np.eye(at.sum()), curve[at]) @ weighted.T @ SHAPES
        )
    return out


def coverage(runs: int) -> pd.DataFrame:
    """What nominal 95 % cover with "pace": intervals of new responses, the surface, means given what was seen of X."""
    rows = []
    for run in range(runs):
        for n in (200, 1000):
            rng = np.random.default_rng(run)
            x = (rng.normal(size=(n + 400, 3)) * [1, 0.8, 0.5]) @ SHAPES
            y = 1 + (x * quadrature_weights(S)) @ SURFACE + 0.2 * rng.normal(size=x.shape)
            few = thinned(x, 8, 0.3, rng)
            model = fit("pace", None, terms.ff("X"), {"X": few[:n], "Y": y[:n]}, {"X": S, "Y": S})
            lower, upper = model.predict_interval({"X": few[n:]})
            found = model.coef("ff(X)", s=S, t=S, se=True)
            off = np.abs(np.asarray(found["value"]) - SURFACE.ravel()) < 1.96 * np.asarray(found["se"])
            mean = 1 + (expected(few[n:]) * quadrature_weights(S)) @ SURFACE
            near = np.abs(model.predict({"X": few[n:]}) - mean) < 1.96 * model.predict_se({"X": few[n:]})
            inside = (y[n:] > lower) & (y[n:] < upper)
            rows.append({"n": n, "intervals": inside.mean(), "surface": off.mean(), "means": near.mean()})
    return pd.DataFrame(rows).groupby("n").mean()


def icu(runs: int) -> pd.DataFrame:
    stays = load_icu(as_frame=True)
    enough = (stays.X.notna().sum(axis=1) >= 8) & (stays.Y.notna().sum(axis=1) >= 8)
    x, y = stays.X[enough].to_numpy(), stays.Y[enough].to_numpy()
    grids = {"X": stays.X.columns.to_numpy(dtype=float), "Y": stays.Y.columns.to_numpy(dtype=float)}
    filled = fill_linear(y, grids["Y"])
    rows = []
    for run in range(runs):
        rng = np.random.default_rng(run)
        order = rng.permutation(len(x))
        train, test = order[:2000], order[-1500:]
        spread = np.nansum((y[test] - np.nanmean(y[train], axis=0)) ** 2)
        for hours in (24, 6, 3):
            left = thinned(x, hours, 0.0, rng)
            for how, share in WAYS if hours > 3 else [way for way in WAYS if way[0] != "smooth"]:
                model = fit(how, share, terms.ff("X", k=(8, 8)), {"X": left[train], "Y": filled[train]}, grids)
                explained = 1 - np.nansum((y[test] - model.predict({"X": left[test]})) ** 2) / spread
                rows.append({"how": how, "share": share or 1, "hours": hours, "explained": explained})
    return pd.DataFrame(rows).groupby(["how", "share", "hours"], sort=False).mean().unstack("hours")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=10)
    asked = parser.parse_args(arguments)
    for table in (simulated, coverage):
        print(table(asked.runs).to_string(float_format="{:.3f}".format))
    try:
        print(icu(asked.runs).to_string(float_format="{:.3f}".format))
    except MissingDataError as exc:
        print(f"without the ICU stays: {exc}")


if __name__ == "__main__":
    main()
