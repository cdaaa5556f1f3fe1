"""Data sets and learners of the learners' experiment, with the public parameters that each is given.

Ranges and labels are those of the data sets' own descriptions, not of the rows; missing labels ("?", "unknown") are
labels like the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fdadp.learners.encoding import Categorical, Numeric, PublicEncoder

__all__ = ["LEARNERS", "TASKS", "Learner", "Task"]


@dataclass(frozen=True)
class Task:
    """One data set.

    Attributes
    ----------
    name : str
    kind : {"classification", "regression", "clusters", "components"}
    X, y : rows and, where there are any, targets
    X_test, y_test : as X and y, or None: then splits are random, 80 % to train
    features : mapping of name to Numeric or Categorical
        Empty where all columns are numbers of one kind.
    classes : tuple
        Of which the second is the one whose score is ranked.
    delta : float
        Of the experiment's (ε, δ), far below 1/n.
    """

    name: str
    kind: str
    X: Any
    y: Any
    X_test: Any
    y_test: Any
    features: Mapping[str, Any]
    classes: tuple[Any, ...] = ()
    delta: float = 1e-6

    @property
    def numbers(self) -> list[str]:
        """Columns of numbers."""
        return [name for name, spec in self.features.items() if isinstance(spec, Numeric)]


def _labels(text: str) -> Categorical:
    return Categorical(tuple(text.split()))


ADULT = {
    "age": Numeric(0, 120),
    "education-num": Numeric(1, 16),
    "capital-gain": Numeric(0, 1e5),
    "capital-loss": Numeric(0, 5e3),
    "hours-per-week": Numeric(0, 100),
    "workclass": _labels(
        "? Federal-gov Local-gov Never-worked Private Self-emp-inc Self-emp-not-inc State-gov Without-pay"
    ),
    "marital-status": _labels(
        "Divorced Married-AF-spouse Married-civ-spouse Married-spouse-absent Never-married Separated Widowed"
    ),
    "occupation": _labels(
        "? Adm-clerical Armed-Forces Craft-repair Exec-managerial Farming-fishing Handlers-cleaners Machine-op-inspct "
        "Other-service Priv-house-serv Prof-specialty Protective-serv Sales Tech-support Transport-moving"
    ),
    "relationship": _labels("Husband Not-in-family Other-relative Own-child Unmarried Wife"),
    "race": _labels("Amer-Indian-Eskimo Asian-Pac-Islander Black Other White"),
    "sex": _labels("Female Male"),
    "native-country": _labels(
        "? Cambodia Canada China Columbia Cuba Dominican-Republic Ecuador El-Salvador England France Germany Greece "
        "Guatemala Haiti Holand-Netherlands Honduras Hong Hungary India Iran Ireland Italy Jamaica Japan Laos Mexico "
        "Nicaragua Outlying-US(Guam-USVI-etc) Peru Philippines Poland Portugal Puerto-Rico Scotland South Taiwan "
        "Thailand Trinadad&Tobago United-States Vietnam Yugoslavia"
    ),
}
"""Without ``fnlwgt`` (a sampling weight) and ``education`` (the labels of ``education-num``)."""

BANK = {
    "age": Numeric(0, 120),
    "campaign": Numeric(1, 60),
    "pdays": Numeric(0, 1000),
    "previous": Numeric(0, 20),
    "emp.var.rate": Numeric(-5, 5),
    "cons.price.idx": Numeric(90, 100),
    "cons.conf.idx": Numeric(-60, 0),
    "euribor3m": Numeric(0, 6),
    "nr.employed": Numeric(4500, 5500),
    "job": _labels(
        "admin. blue-collar entrepreneur housemaid management retired self-employed services student technician "
        "unemployed unknown"
    ),
    "marital": _labels("divorced married single unknown"),
    "education": _labels(
        "basic.4y basic.6y basic.9y high.school illiterate professional.course university.degree unknown"
    ),
    "default": _labels("no unknown yes"),
    "housing": _labels("no unknown yes"),
    "loan": _labels("no unknown yes"),
    "contact": _labels("cellular telephone"),
    "month": _labels("jan feb mar apr may jun jul aug sep oct nov dec"),
    "day_of_week": _labels("mon tue wed thu fri"),
    "poutcome": _labels("failure nonexistent success"),
}
"""Without ``duration``, which is known only after the call."""


def _adult(download: bool) -> Task:
    from fdadp.datasets import load_adult

    data = load_adult(download=download)
    columns = list(ADULT)
    assert data.X_test is not None
    return Task(
        "adult",
        "classification",
        data.X[columns],
        data.y,
        data.X_test[columns],
        data.y_test,
        ADULT,
        ("<=50K", ">50K"),
    )


def _bank(download: bool) -> Task:
    from fdadp.datasets import load_bank_marketing

    data = load_bank_marketing(download=download)
    return Task("bank", "classification", data.X[list(BANK)], data.y, None, None, BANK, ("no", "yes"))


def _diabetes(download: bool) -> Task:
    from sklearn.datasets import load_diabetes

    X, y = load_diabetes(return_X_y=True)
    return Task("diabetes", "regression", X, y, None, None, {}, delta=1e-5)


def _digits(download: bool) -> Task:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return Task("digits", "components", X / 16, y, None, None, {}, delta=1e-5)


TASKS: Mapping[str, Callable[[bool], Task]] = {"adult": _adult, "bank": _bank, "diabetes": _diabetes, "digits": _digits}


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
    from fdadp.learners._bins import Bins

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
