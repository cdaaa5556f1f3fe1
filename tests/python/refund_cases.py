"""Public models beside recorded fits of refund: at refund's smoothing parameters, and at their own optimum."""

from __future__ import annotations

from typing import Any

import numpy as np


def rows(case: dict[str, Any], which: str) -> Any:
    """Numbers of training or test rows from 0."""
    return np.ravel(case[which]).astype(int) - 1


def far(ours: Any, theirs: Any) -> float:
    """Largest difference, relative to the largest recorded value."""
    a, b = np.ravel(np.asarray(ours, dtype=float)), np.ravel(np.asarray(theirs, dtype=float))
    assert a.shape == b.shape
    return float(np.abs(a - b).max() / np.abs(b).max())


def one(value: Any) -> float:
    """A recorded number."""
    return float(np.ravel(value)[0])


def differences(make: Any, data: Any, grids: Any, recorded: Any, new: Any = None, **fit: Any) -> dict[str, float]:
    """How far a model is from a recorded one at its smoothing parameters, and by how much its own score is above.

    Parameters
    ----------
    make : callable
        ``make(smoothing=...)`` returns a public estimator.
    data, grids
        Training data of its `fit`.
    recorded : dict
        A recorded gam.
    new : mapping, optional
        Rows to predict, where predictions were recorded.
    """
    same = make(smoothing=np.ravel(recorded["sp"])).fit(data, grids=grids, **fit)
    found = {
        "fitted": far(same.fitted_values_, recorded["fitted"]),
        "edf": abs(same.edf_ / one(recorded["edf_total"]) - 1),
        "sigma2": abs(same.sigma2_ / one(recorded["sig2"]) - 1),
        "score": abs(same.criterion_ - one(recorded["score"])),
    }
    if new is not None and "predicted" in recorded:
        found["predicted"] = far(same.predict(new), recorded["predicted"])
        found["se"] = far(same.predict_se(new, kind="iid"), recorded["predicted_se"])
    own = make(smoothing="reml").fit(data, grids=grids, **fit)
    found["above"] = (own.criterion_ - same.criterion_) / (1 + abs(same.criterion_))
    return found
