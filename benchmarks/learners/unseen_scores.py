"""Scores of unseen data sets; NumPy and scikit-learn alone, as the peers' environments use it, too."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

BINS = 10


def classified(y: Any, proba: Any) -> dict[str, float]:
    """Accuracy, AUC (mean of one class against the rest), log-loss and expected calibration error of the top class."""
    y, proba = np.asarray(y), np.nan_to_num(np.asarray(proba, dtype=float), nan=1 / np.shape(proba)[1])
    K = proba.shape[1]
    share = np.clip(proba, 1e-15, 1)
    share = share / share.sum(axis=1, keepdims=True)
    auc = [roc_auc_score(y == k, share[:, k]) for k in range(1 if K == 2 else 0, K) if 0 < (y == k).sum() < len(y)]
    top, right = share.max(axis=1), share.argmax(axis=1) == y
    at = np.minimum((top * BINS).astype(int), BINS - 1)
    ece = sum(abs((right[at == b] - top[at == b]).sum()) for b in range(BINS)) / len(y)
    loss = -np.log(share[np.arange(len(y)), y])
    return {
        "accuracy": float(right.mean()),
        "AUC": float(np.mean(auc)),
        "log-loss": float(loss.mean()),
        "calibration": float(ece),
    }


def r2(y: Any, predicted: Any) -> dict[str, float]:
    """Share of the variance, of predictions within what floats hold."""
    y = np.asarray(y, dtype=float)
    off = np.clip(np.nan_to_num(np.asarray(predicted, dtype=float).ravel()), -1e9, 1e9) - y
    return {"R2": float(1 - (off**2).sum() / ((y - y.mean()) ** 2).sum())}


def inertia(X: Any, centers: Any) -> float:
    """Mean squared distance from the nearest centre."""
    X, centers = np.asarray(X, dtype=float), np.asarray(centers, dtype=float)
    return float(np.mean(np.min([((X - c) ** 2).sum(axis=1) for c in centers], axis=0)))


def captured(X: Any, components: Any) -> float:
    """Variance in the span of the components over that of as many exact ones."""
    S = np.cov(np.asarray(X, dtype=float).T)
    Q = np.linalg.qr(np.asarray(components).T)[0]
    return float(np.trace(Q.T @ S @ Q) / np.linalg.eigvalsh(S)[::-1][: len(components)].sum())
