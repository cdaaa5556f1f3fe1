"""Data sets of the experiments with many owners' principal components, and what is public about each.

Ranges are round numbers about those in the data sets' descriptions, and map each feature to [-1, 1]; rows are then
clipped to the ball of radius 0.7 √d about 0, one rule for all that was not tuned (a feature that is uniform on its
range has a root mean square of 0.58).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fdadp._common.typing import FloatArray
from studies.federated_pca_tables import load_component_table

_FLAG = (0, 1)
RANGES: Mapping[str, tuple[tuple[float, float], ...]] = {
    "australian": (
        *(_FLAG, (0, 100), (0, 30), (1, 3), (1, 14), (1, 9), (0, 30)),
        *(_FLAG, _FLAG, (0, 70), _FLAG, (1, 3), (0, 2000), (0, 12)),
    ),
    "diabetes": ((0, 20), (0, 200), (0, 140), (0, 100), (0, 900), (0, 70), (0, 3), (0, 100)),
    "german": (
        *((1, 4), (0, 72), (0, 4), (0, 200), (1, 5), (1, 5), (1, 4), (1, 4), (1, 4), (0, 100), (1, 3), (1, 4)),
        *((1, 2), (1, 2), (1, 2), *[_FLAG] * 9),
    ),
    "ionosphere": ((-1, 1),) * 34,
    "isolet": ((-1, 1),) * 617,
}
"""Lowest and highest value of each feature; of Australian's last one, an income, those of log(1 + x)."""


@dataclass(frozen=True)
class PCATask:
    """One data set, its features already mapped by public functions of one row.

    Attributes
    ----------
    name : str
    X, y : ndarray of shape (n, d) and (n,)
    X_test, y_test : as X and y, or None
    data_norm, center : float
        Public, for the private estimators.
    about : str
        What was done to the rows.
    delta : float
    """

    name: str
    X: FloatArray
    y: Any
    X_test: FloatArray | None
    y_test: Any
    data_norm: float
    center: float
    about: str
    delta: float = 1e-5

    @property
    def public(self) -> dict[str, Any]:
        """Settings of DPPCA that go with these rows."""
        common = {"data_norm": self.data_norm, "center": self.center, "delta": self.delta}
        return {**common, "const": self.data_norm / 4}  # fixed, so that recorded results stay those of these settings


def _table(name: str) -> PCATask:
    data = load_component_table(name)
    low, high = np.array(RANGES[name], dtype=np.float64).T

    def mapped(frame: Any) -> FloatArray:
        x = frame.to_numpy(dtype=np.float64)
        if name == "australian":
            x = np.concatenate((x[:, :-1], np.log1p(x[:, -1:])), axis=1)
        return np.asarray(2 * (x - low) / (high - low) - 1)

    return PCATask(
        name,
        mapped(data.X),
        data.y,
        None if data.X_test is None else mapped(data.X_test),
        data.y_test,
        data_norm=0.7 * math.sqrt(len(low)),
        center=0.0,
        about="features to [-1, 1] from public ranges; rows clipped to 0.7 √d",
    )


def _cnae9() -> PCATask:
    data = load_component_table("cnae9")
    counts = data.X.to_numpy(dtype=np.float64)
    rows = counts / np.maximum(np.linalg.norm(counts, axis=1), 1.0)[:, None]
    return PCATask("cnae9", rows, data.y, None, None, 1.0, 0.0, "word counts, rows scaled to length 1")


def _digits() -> PCATask:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return PCATask("digits", X / 16, y, None, None, 3.0, 0.3, "pixels/16; rows clipped to 3 about 0.3")


TASKS: Mapping[str, Callable[[bool], PCATask]] = {
    "digits": lambda download: _digits(),
    **{name: lambda download, name=name: _table(name) for name in RANGES},  # type: ignore[misc]
    "cnae9": lambda download: _cnae9(),
}
"""By name, as :func:`fdadp.datasets._data_locations.load_present` takes them. None of them is downloaded."""
