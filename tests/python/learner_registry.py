"""The private learners that tests/python/learners/test_learners_common.py runs through what all of them must keep.

A new learner adds one ``Learner`` to :data:`LEARNERS`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fdadp import learners
from fdadp.privacy import SeededNoise, TapeNoise

N_PERSONS, N_FEATURES = 120, 3


def toy(kind: str, seed: int = 0, n: int = N_PERSONS) -> tuple[Any, Any]:
    """X (n, 3) mostly in [-1, 1], a few rows beyond, and the y that this kind of learner wants: labels 0 and 1 with
    the sign of a linear function, that function with noise, or None."""
    rng = np.random.default_rng(seed)
    X = np.clip(rng.normal(0, 0.5, (n, N_FEATURES)), -1.2, 1.2)
    signal = X @ [1.0, -0.5, 0.25] + 0.1 * rng.standard_normal(n)
    return X, {"classifier": (signal > 0).astype(int), "regressor": signal / 2}.get(kind)


def odd_columns(kind: str, n: int, d: int) -> tuple[Any, tuple[int, int], Any]:
    """X (n, d) uniform in [-1, 1], its public bounds, and the generator of what comes after.

    "heavy": all columns of a t law with 3 degrees of freedom; else the first has 1 % ones ("rare") or is "constant".
    """
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (n, d))
    if kind == "heavy":
        return np.clip(rng.standard_t(3, X.shape), -100, 100), (-100, 100), rng
    X[:, 0] = rng.random(n) < 0.01 if kind == "rare" else 0.25
    return X, (-1, 1), rng


@dataclass(frozen=True)
class Learner:
    """One learner, with public parameters that suit ``toy``.

    Attributes
    ----------
    cls : class
    kind : {"classifier", "regressor", "clusterer", "transformer"}
    public : dict
        Public parameters, beyond those of every learner.
    required : tuple of str
        Public parameters without which nothing may be read; each is left out in turn.
    pure, gaussian : bool
        Whether it runs with pure ε, and with a δ.
    adjacencies : tuple of str
    grouped : bool
        Whether persons may have several rows.
    sums : bool
        Whether all that it releases are sums and selections on a tape (not so: perturbed minimisers, Bingham).
    whole : bool
        Whether the releases use the whole reservation (not so, if a part is kept for what was not needed).
    shared : bool
        Whether several fits may share a budget (not so: releases that are accounted for in (ε, δ) by themselves).
    stronger : bool
        Whether it spends pure ε although it is given a δ, where that has less noise and the budget is its own.
    failing : dict
        Checks of scikit-learn that cannot hold for this learner, each with the reason, beyond those in ``COMMON``.
    name : str
        For the test's id; default the name of the class.
    """

    cls: type
    kind: str
    public: dict[str, Any]
    required: tuple[str, ...]
    pure: bool = True
    gaussian: bool = True
    adjacencies: tuple[str, ...] = ("zero-out", "add-remove", "replace")
    grouped: bool = True
    sums: bool = True
    whole: bool = True
    shared: bool = True
    stronger: bool = False
    failing: dict[str, str] = field(default_factory=dict)
    name: str = ""

    def __str__(self) -> str:
        return self.name or self.cls.__name__

    def make(self, *, pure: bool | None = None, adjacency: str = "add-remove", n: int = N_PERSONS, **more: Any) -> Any:
        """An estimator; pure ε where it can be, unless said otherwise."""
        pure = self.pure if pure is None else pure
        settings = {
            "epsilon": 2.0,
            "delta": None if pure else 1e-6,
            "adjacency": adjacency,
            "n": None if adjacency == "add-remove" else n,
            "random_state": 0,
        }
        return self.cls(**{**settings, **self.public, **more})

    @property
    def modes(self) -> list[tuple[bool, str]]:
        """(pure, adjacency) that it supports."""
        return [(pure, a) for pure, has in ((True, self.pure), (False, self.gaussian)) if has for a in self.adjacencies]


NO_LABELS = "labels_ of the training rows are exact functions of them, and not kept"
CLASSES = {"classes": [0, 1]}

LINE = {"bounds": (-1, 1), "bounds_y": (-1, 1)}
RANGE = {"check_regressors_train": "ranges are public and given, here [-1, 1]; the check has others"}
ONE = {"check_classifiers_one_label": "the noise on ten rows decides; that all have one label is private"}

LEARNERS = [
    Learner(learners.DPGaussianNB, "classifier", CLASSES | {"bounds": (-1, 1)}, ("classes", "bounds")),
    Learner(
        learners.DPHistogramNB,
        "classifier",
        CLASSES | {"features": learners.Numeric(-1, 1, edges=4)},
        ("classes", "features"),
    ),
    Learner(
        learners.DPCategoricalNB,
        "classifier",
        CLASSES | {"categories": learners.Categorical([-1, 0, 1])},
        ("classes", "categories"),
    ),
    *(
        Learner(
            learners.DPPCA,
            "transformer",
            {"data_norm": 2.0, "n_components": k, "mechanism": mechanism},
            ("data_norm",),
            name=f"DPPCA-{mechanism}",
        )
        for mechanism, k in (("moments", None), ("power", 1), ("bingham", 1))
    ),
    Learner(
        learners.DPKMeans,
        "clusterer",
        {"n_clusters": 3, "bounds": (-1, 1)},
        ("bounds",),
        failing={"check_clustering": NO_LABELS},
        name="DPKMeans-box",
    ),
    Learner(
        learners.DPKMeans,
        "clusterer",
        {"n_clusters": 2, "data_norm": 2.0, "projection": 1, "n_iter": 2},
        ("data_norm",),
        failing={"check_clustering": NO_LABELS},
        name="DPKMeans-projection",
    ),
    Learner(
        learners.DPKMeans,
        "clusterer",
        {"n_clusters": 2, "data_norm": 2.0, "init": "sphere_packing"},
        ("data_norm",),
        failing={"check_clustering": NO_LABELS},
        name="DPKMeans-ball",
    ),
    Learner(learners.DPLinearRegression, "regressor", LINE, ("bounds", "bounds_y"), failing=RANGE),
    Learner(
        learners.DPLinearRegression,
        "regressor",
        LINE | {"mechanism": "rounds"},
        ("bounds", "bounds_y"),
        failing=RANGE,
        name="DPLinearRegression, rounds",
    ),
    Learner(
        learners.DPLinearRegression,
        "regressor",
        LINE | {"mechanism": "adassp"},
        ("bounds", "bounds_y"),
        pure=False,
        failing=RANGE,
        name="DPLinearRegression, AdaSSP",
    ),
    Learner(
        learners.DPLinearRegression,
        "regressor",
        LINE | {"mechanism": "functional"},
        ("bounds", "bounds_y"),
        gaussian=False,
        failing=RANGE,
        name="DPLinearRegression, functional",
    ),
    Learner(
        learners.DPLinearRegression,
        "regressor",
        LINE | {"mechanism": "wishart"},
        ("bounds", "bounds_y"),
        pure=False,
        grouped=False,
        sums=False,
        shared=False,
        failing=RANGE,
        name="DPLinearRegression, Wishart",
    ),
    *(
        Learner(
            learners.DPLogisticRegression,
            "classifier",
            CLASSES | {"data_norm": 2.0, "mechanism": mechanism},
            ("classes", "data_norm"),
            grouped=mechanism != "objective",
            sums=mechanism == "gradient",
            stronger=mechanism == "objective",
            failing={} if mechanism == "objective" else ONE,
            name=f"DPLogisticRegression, {mechanism}",
        )
        for mechanism in ("objective", "output", "gradient")
    ),
    Learner(
        learners.DPLogisticRegression,
        "classifier",
        CLASSES | {"data_norm": 2.0, "inference": True},
        ("classes", "data_norm"),
        gaussian=False,
        grouped=False,
        sums=False,
        name="DPLogisticRegression, with intervals",
    ),
    Learner(
        learners.DPLogisticRegression,
        "classifier",
        CLASSES | {"bounds": (-1, 1), "mechanism": "rounds"},
        ("classes", "bounds"),
        name="DPLogisticRegression, rounds",
    ),
    Learner(
        learners.DPBoostedStumps,
        "classifier",
        CLASSES | {"features": learners.Numeric(-1, 1, edges=4), "n_rounds": 3},
        ("classes", "features"),
    ),
    Learner(
        learners.DPForestClassifier,
        "classifier",
        CLASSES | {"bounds": (-1, 1), "n_trees": 3, "depth": 2},
        ("classes", "bounds"),
    ),
    Learner(
        learners.DPForestRegressor,
        "regressor",
        LINE | {"n_trees": 3, "depth": 2},
        ("bounds", "bounds_y"),
        failing=RANGE,
    ),
    Learner(
        learners.DPAdditiveHistograms,
        "classifier",
        CLASSES | {"features": learners.Numeric(-1, 1, edges=4), "n_passes": 1},
        ("classes", "features"),
    ),
    Learner(
        learners.DPAdditiveRegressor,
        "regressor",
        {"features": learners.Numeric(-1, 1, edges=4), "bounds_y": (-1, 1), "n_passes": 2},
        ("features", "bounds_y"),
        failing=RANGE,
    ),
    Learner(
        learners.DPAdditiveRegressor,
        "regressor",
        LINE | {"n_passes": 1, "narrow": True},
        ("bounds", "bounds_y"),
        failing=RANGE,
        name="DPAdditiveRegressor, narrowed",
    ),
]


def fit(monkeypatch, noise, model, X, y=None, groups=None):
    """Fit with a given source of noise in place of the seeded one."""
    with monkeypatch.context() as patch:
        patch.setattr("fdadp.privacy.noise.sources.SeededNoise", lambda seed: noise)
        return model.fit(X, y, groups=groups)


def exact(monkeypatch, learner, X, y, groups=None, noise=None, **settings):
    """Exact integers of the releases, and the model."""
    tape = TapeNoise(SeededNoise(0) if noise is None else noise)
    model = fit(monkeypatch, tape, learner.make(**settings), X, y, groups)
    return [entry.exact for entry in tape.entries], tape.entries, model


SILENT = "an error that depends on private values would be a release: such rows count as no rows"
LISTS = "a list is no table: how wide its rows are would be found in the data"
COMMON: dict[str, str] = {
    "check_complex_data": SILENT,
    "check_dtype_object": SILENT,
    "check_estimators_nan_inf": SILENT,
    "check_supervised_y_no_nan": SILENT,
    "check_classifiers_regression_target": SILENT,
    "check_supervised_y_2d": "labels are taken as they are, in a column too; what they hold is not looked at",
    "check_classifiers_classes": "classes are public and given, here 0 and 1; the check has others",
    "check_transformer_general": LISTS,
    "check_transformer_data_not_an_array": LISTS,
    "check_classifiers_train": "classes and ranges are public and given, here 0, 1 and [-1, 1]; the check has others",
}
"""Checks of scikit-learn that no private learner can pass, and why."""
