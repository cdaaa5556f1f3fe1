"""Data sets on which no constant of the learners was chosen: classification, regression, and rows without a target.

Ranges are declared as a user would who knows the units: here the range of the whole table, stretched by a tenth at each
end, the same for all methods. Splits: 70 % to fit, 30 % to judge, at most 8,000 and 4,000 rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn import datasets

from fdadp.datasets._data_locations import data_dir

__all__ = ["KINDS", "UnseenTask", "blobs", "split", "unseen"]

KINDS = ("classification", "regression", "rows")
DELTA = 1e-5


@dataclass(frozen=True)
class UnseenTask:
    """One table: rows X (n, d), labels 0, 1, ... or targets y (n,) or None, public ranges of columns and target."""

    name: str
    kind: str
    X: np.ndarray
    y: Any = None

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Ranges of the columns, two vectors (d,)."""
        low, high = self.X.min(axis=0), self.X.max(axis=0)
        room = 0.1 * np.maximum(high - low, 1e-9)
        return low - room, high + room

    @property
    def bounds_y(self) -> tuple[float, float]:
        """Range of the target."""
        low, high = float(np.min(self.y)), float(np.max(self.y))
        return low - 0.1 * (high - low), high + 0.1 * (high - low)


def split(task: UnseenTask, number: int) -> tuple[Any, Any, Any, Any]:
    """X, y to fit and X, y to judge; y is None where there is none."""
    order = np.random.default_rng([number, 12]).permutation(len(task.X))
    cut = round(0.7 * len(order))
    fit, judge = order[:cut][:8000], order[cut:][:4000]
    pick = (lambda rows: None) if task.y is None else (lambda rows: task.y[rows])
    return task.X[fit], pick(fit), task.X[judge], pick(judge)


def _shared(name: str) -> tuple[np.ndarray, np.ndarray]:
    table = pd.read_csv(data_dir() / f"{name}.csv.gz").to_numpy(dtype=np.float64)
    return table[:, 1:][:, np.ptp(table[:, 1:], axis=0) > 0], (table[:, 0] > 0).astype(int)


def _icu() -> tuple[np.ndarray, pd.DataFrame]:
    """Age, sex, type of unit (four columns) and hourly means over the first day of 8,000 stays; gaps: public values."""
    stays = pd.read_csv(data_dir() / "icu_stays.csv.gz", index_col="stay")
    columns = [stays["age"].fillna(65), stays["male"].fillna(0.5)]
    columns += [(stays["icu_type"] == kind).astype(float) for kind in sorted(stays["icu_type"].unique())]
    usual = {"heart_rate": (85, 30, 180), "mean_arterial_pressure": (80, 30, 160), "temperature": (37, 33, 41)}
    for name, (middle, low, high) in usual.items():
        day = pd.read_csv(data_dir() / f"icu_{name}.csv.gz", index_col="stay").iloc[:, :24]
        columns.append(day.mean(axis=1).reindex(stays.index).fillna(middle).clip(low, high))
    return np.column_stack(columns).astype(float), stays


def _statsmodels(name: str) -> pd.DataFrame:
    import statsmodels.api as sm

    return getattr(sm.datasets, name).load_pandas().data


def blobs(n: int = 20_000, k: int = 5, seed: int = 0) -> np.ndarray:
    """Well separated clouds in the plane: centres at least five standard deviations apart, in [-10, 10]²."""
    rng = np.random.default_rng(seed)
    centers = np.array([[-7.0, -7.0], [-7.0, 6.0], [0.0, 0.0], [6.0, 7.0], [7.0, -6.0]])[:k]
    return centers[rng.integers(0, k, n)] + rng.normal(size=(n, 2))


def _classification() -> Iterator[UnseenTask]:
    for name, load in (
        ("digits", datasets.load_digits),
        ("cancer", datasets.load_breast_cancer),
        ("wine", datasets.load_wine),
    ):
        X, y = load(return_X_y=True)
        yield UnseenTask(name, "classification", X[:, np.ptp(X, axis=0) > 0], y)
    for name in ("german", "australian", "ionosphere"):
        yield UnseenTask(name, "classification", *_shared(name))
    X, stays = _icu()
    yield UnseenTask("ICU death", "classification", X, stays["died_in_hospital"].to_numpy(int))
    long = (stays["length_of_stay_days"].to_numpy() > 10).astype(int)
    yield UnseenTask("ICU long stay", "classification", X, long)
    fair, rand, vote = (_statsmodels(name) for name in ("fair", "randhie", "anes96"))
    yield UnseenTask("fair", "classification", _but(fair, "affairs"), (fair["affairs"] > 0).to_numpy(int))
    yield UnseenTask("randhie", "classification", _but(rand, "mdvis"), (rand["mdvis"] > 2).to_numpy(int))
    yield UnseenTask("anes96", "classification", _but(vote, "vote", "popul"), vote["vote"].to_numpy(int))


def _regression() -> Iterator[UnseenTask]:
    X, stays = _icu()
    for name, column in (("ICU SAPS", "saps1"), ("ICU SOFA", "sofa")):
        known = stays[column].to_numpy() >= 0
        yield UnseenTask(name, "regression", X[known], stays[column].to_numpy(float)[known])
    rand, vote, engel = (_statsmodels(name) for name in ("randhie", "anes96", "engel"))
    visits = np.log1p(rand["mdvis"].to_numpy(float))
    yield UnseenTask("randhie visits", "regression", _but(rand, "mdvis"), visits)
    income = vote["income"].to_numpy(float)
    yield UnseenTask("anes96 income", "regression", _but(vote, "income", "popul"), income)
    yield UnseenTask("engel", "regression", _but(engel, "foodexp"), engel["foodexp"].to_numpy(float))
    for n in (300, 5000):
        X, y = datasets.make_friedman1(n, noise=1.0, random_state=0)
        yield UnseenTask(f"friedman1, n = {n}", "regression", X, y)


def _rows() -> Iterator[UnseenTask]:
    yield UnseenTask("blobs", "rows", blobs())
    for name, load in (
        ("digits", datasets.load_digits),
        ("cancer", datasets.load_breast_cancer),
        ("wine", datasets.load_wine),
    ):
        X, _ = load(return_X_y=True)
        yield UnseenTask(name, "rows", X[:, np.ptp(X, axis=0) > 0])
    yield UnseenTask("ionosphere", "rows", _shared("ionosphere")[0])
    yield UnseenTask("ICU", "rows", _icu()[0])


def _but(table: pd.DataFrame, *columns: str) -> np.ndarray:
    return table.drop(columns=list(columns)).to_numpy(dtype=np.float64)


def unseen(kind: str) -> list[UnseenTask]:
    """Tasks of one of :data:`KINDS`."""
    return list({"classification": _classification, "regression": _regression, "rows": _rows}[kind]())
