"""A small federation for tests: rows of several owners, and a contract."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("cryptography", reason="cryptography is not installed: pip install '.[federated]'")

from fdadp.federated import Contract

D = 3
PCA = {"epsilon": 1.0, "delta": 1e-6, "n_components": 1, "data_norm": 3.0, "n_features": D}

CURVES = {"epsilon": 1.0, "delta": 1e-6, "bounds": {"X": [0, 1], "Y": [0, 1]}}
GRIDS = {"s": [0.0, 0.25, 0.5, 1.0], "t": [0.0, 0.5, 1.0]}


def rows(n: int = 600, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, D)) * [1.5, 0.3, 0.3]


def parts(X: np.ndarray, owners: int) -> list[tuple[Any, ...]]:
    return [(part,) for part in np.array_split(X, owners)]


def contract(owners: int = 3, **changes: Any) -> Contract:
    return Contract(**{"model": "pca", "settings": PCA, "owners": owners, "n_max": 1000, **changes})
