"""The learners of the learners' experiment: each with its public parameters, and its counterpart without privacy."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fdadp.learners.shared.public_encoding import Numeric, PublicEncoder
from studies.learner_tasks import Task


@dataclass(frozen=True)
class Learner:
    """One private learner and its counterpart without privacy.

    Attributes
    ----------
    name : str
        In :mod:`fdadp.learners`.
    kinds : tuple of str
        Kinds of tasks that it is for.
    public : callable
        From the task to its public parameters.
    encode : callable
        From the task to a function of the rows: what the learner is given.
    without_privacy : callable
        From the task to an estimator of scikit-learn for the same rows, encoded by ``encode_plain``.
    encode_plain : callable
    """

    name: str
    kinds: tuple[str, ...]
    public: Callable[[Task], dict[str, Any]]
    encode: Callable[[Task], Callable[[Any], Any]]
    without_privacy: Callable[[Task], Any]
    encode_plain: Callable[[Task], Callable[[Any], Any]]


def _same(task: Task) -> Callable[[Any], Any]:
    return lambda X: X


def _numbers(task: Task) -> Callable[[Any], Any]:
    return lambda X: X[task.numbers].to_numpy(dtype=np.float64)


def _one_hot(task: Task) -> Callable[[Any], Any]:
    specs = {
        name: Numeric(spec.low, spec.high, log1p=spec.high > 1000 * (spec.low + 1) and spec.low >= 0)
        if isinstance(spec, Numeric)
        else spec
        for name, spec in task.features.items()
    }
    return PublicEncoder(specs).transform


def binned(task: Task) -> Any:
    """The bins that the boosted learners make of the task's features."""
    from fdadp.learners.shared._public_bins import Bins

    return Bins(task.features, len(task.features))


def _codes(task: Task) -> Callable[[Any], Any]:
    encoder: PublicEncoder = binned(task).encoder
    return encoder.transform


def one_hot_codes(task: Task) -> Callable[[Any], Any]:
    """Bins of numbers, in order, and a column for each label: what a threshold on one column can test."""
    bins = binned(task)
    at = {name: j for j, name in enumerate(bins.names)}

    def encode(X: pd.DataFrame) -> Any:
        codes = bins.encoder.transform(X)
        parts = []
        for name, spec in task.features.items():
            column = codes[:, at[name]]
            numeric = isinstance(spec, Numeric)
            parts.append(column[:, None] if numeric else column[:, None] == np.arange(spec.n_bins))
        return np.concatenate(parts, axis=1).astype(np.float64)

    return encode


def _bounds(task: Task) -> dict[str, Any]:
    specs = [task.features[name] for name in task.numbers]
    return {
        "classes": list(task.classes),
        "bounds": (np.array([float(s.low) for s in specs]), np.array([float(s.high) for s in specs])),
    }


def _declared(task: Task) -> dict[str, Any]:
    return {"classes": list(task.classes), "features": dict(task.features)}


def _gaussian_nb(task: Task) -> Any:
    from sklearn.naive_bayes import GaussianNB

    return GaussianNB()


def _categorical_nb(task: Task) -> Any:
    from sklearn.naive_bayes import CategoricalNB

    return CategoricalNB(min_categories=binned(task).sizes)


def _logistic(task: Task) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=2000)


def adaboost(task: Task, rounds: int = 50) -> Any:
    """scikit-learn's AdaBoost of stumps."""
    from sklearn.ensemble import AdaBoostClassifier
    from sklearn.tree import DecisionTreeClassifier

    return AdaBoostClassifier(DecisionTreeClassifier(max_depth=1), n_estimators=rounds)


def _additive(task: Task) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(interaction_cst="no_interactions", max_leaf_nodes=3, random_state=0)


def _least_squares(task: Task) -> Any:
    from sklearn.linear_model import LinearRegression

    return LinearRegression()


def _k_means(task: Task) -> Any:
    from sklearn.cluster import KMeans

    return KMeans(10, n_init=10, random_state=0)


def _pca(task: Task) -> Any:
    from sklearn.decomposition import PCA

    return PCA(10)


_CLASSES = ("classification",)
LEARNERS = (
    Learner("DPGaussianNB", _CLASSES, _bounds, _numbers, _gaussian_nb, _numbers),
    Learner("DPHistogramNB", _CLASSES, _declared, _same, _categorical_nb, _codes),
    Learner(
        "DPLogisticRegression",
        _CLASSES,
        lambda task: {"classes": list(task.classes), "data_norm": math.sqrt(len(task.features))},
        _one_hot,
        _logistic,
        _one_hot,
    ),
    Learner("DPBoostedStumps", _CLASSES, _declared, _same, adaboost, one_hot_codes),
    Learner("DPAdditiveHistograms", _CLASSES, _declared, _same, _additive, one_hot_codes),
    Learner(
        "DPLinearRegression",
        ("regression",),
        lambda task: {"data_norm": 0.25, "bounds_y": (0, 400)},
        _same,
        _least_squares,
        _same,
    ),
    Learner(
        "DPKMeans",
        ("components",),
        lambda task: {"n_clusters": 10, "data_norm": 3.0, "center": 0.3, "projection": 6},
        _same,
        _k_means,
        _same,
    ),
    Learner(
        "DPPCA",
        ("components",),
        lambda task: {"n_components": 10, "data_norm": 3.0, "center": 0.3},
        _same,
        _pca,
        _same,
    ),
)
