"""Accuracy against privacy of the private learners, and of the published boosting schemes, on public data sets.

Behind ``python -m fdadp learners``. Base lines go with every table: the same kind of learner without privacy, and what
needs no learner (the larger class, the mean, a random subspace, one cluster). The noise is seeded: these are
simulations.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from fdadp import learners
from fdadp._common.typing import FloatArray
from fdadp.datasets._present import load_present
from fdadp.errors import InputError, NotPrivateWarning
from fdadp.published.boosting import SCHEMES, VARIANTS, PublishedDPAda, PublishedNoisyAdaBoost
from fdadp.studies.learner_pairs import LEARNERS, adaboost, one_hot_codes
from fdadp.studies.learner_tasks import TASKS, Task

__all__ = ["NO_PRIVACY", "TASKS", "TRIVIAL", "captured", "load", "published", "run", "summarise"]

NO_PRIVACY, TRIVIAL = "no privacy", "trivial"


def load(names: Sequence[str], *, download: bool = False) -> tuple[list[Task], dict[str, str]]:
    """Load those of :data:`TASKS` that are present, and say why others are missing; raises InputError."""
    return load_present(names, TASKS, download=download)


def run(
    task: Task,
    *,
    epsilons: Sequence[float] = (0.01, 0.1, 0.5, 1.0, 5.0),
    repeats: int = 10,
    only: Sequence[str] | None = None,
    seed: int = 0,
    progress: bool = False,
) -> pd.DataFrame:
    """Fit every private learner for this kind of task, at every ε, and score it on held-out rows.

    Parameters
    ----------
    task : Task
    epsilons : sequence of float
        δ is the task's.
    repeats : int
        Draws of the noise and, where the data set has no split of its own, random splits.
    only : sequence of str, optional
        Names of learners; default: all that there are.
    seed : int
    progress : bool
        Show a progress bar.

    Returns
    -------
    DataFrame
        One row per repeat, learner and ε: ``dataset``, ``repeat``, ``learner``, ``scheme`` (``"private"``,
        :data:`NO_PRIVACY` or :data:`TRIVIAL`), ``epsilon``, ``delta``, ``metric``, ``score``, ``auc`` (classifiers with
        two classes) and ``seconds`` of the fit.

    Raises
    ------
    InputError
        Settings out of range, or no learner for this task.
    """
    _check(epsilons, repeats)
    known = [item for item in LEARNERS if task.kind in item.kinds]
    there = [item for item in known if item.name in learners.__all__ and (only is None or item.name in only)]
    if not there:
        raise InputError(f"learner must be among {', '.join(item.name for item in known)} for {task.name}, got {only}")
    rows: list[dict[str, Any]] = []
    total = repeats * len(there) * (1 + len(epsilons))
    with tqdm(total=total, desc=task.name, unit="fit", disable=not progress) as bar:
        for repeat in range(repeats):
            split = _split(task, repeat, seed)
            common = {"dataset": task.name, "repeat": repeat}
            rows += [
                common | {"learner": "", "scheme": TRIVIAL, "epsilon": np.nan} | one for one in _trivial(task, split)
            ]
            for item in there:
                if repeat == 0 or task.X_test is None:
                    scored = _fit_and_score(task, item.without_privacy(task), item.encode_plain(task), split)
                    rows.append(common | {"learner": item.name, "scheme": NO_PRIVACY, "epsilon": np.nan} | scored)
                bar.update()
                for epsilon in epsilons:
                    model = getattr(learners, item.name)(
                        epsilon=float(epsilon),
                        delta=task.delta,
                        random_state=_seed(seed, repeat),
                        **item.public(task),
                    )
                    scored = _fit_and_score(task, model, item.encode(task), split)
                    rows.append(
                        common
                        | {"learner": item.name, "scheme": "private", "epsilon": float(epsilon), "delta": task.delta}
                        | scored
                    )
                    bar.update()
    return pd.DataFrame(rows)


def published(
    task: Task,
    *,
    epsilons: Sequence[float] = (0.1, 0.5, 1.0, 2.0, 5.0),
    rounds: Sequence[int] = (30, 50, 70, 90, 100),
    repeats: int = 3,
    seed: int = 0,
    progress: bool = False,
) -> pd.DataFrame:
    """Run the published experiment of the DPAda family: accuracy by ε and number of rounds m.

    Parameters
    ----------
    task : Task
        Of classification.
    epsilons : sequence of float
        Claimed by the published schemes, **none of which is private**, and kept by our boosting beside them.
    rounds : sequence of int
        m.
    repeats, seed, progress
        As in :func:`run`.

    Returns
    -------
    DataFrame
        As of :func:`run`, with ``rounds`` and the scheme ``"published"``. Beside it: AdaBoost of scikit-learn with m
        stumps, the larger class, and our private boosting: DPBoostedStumps with m rounds, and DPAdditiveHistograms,
        which has no m. These vary little and take most of the time, so they have one repeat.

    Raises
    ------
    InputError
        Settings out of range, or no task of classification.
    """
    _check(epsilons, repeats)
    if task.kind != "classification":
        raise InputError(f"dataset must be one of classification for this experiment, got {task.name!r}")
    encode = one_hot_codes(task)
    numbers = replace(task, classes=(0, 1))  # comparing labels as text would take half of the time
    rows: list[dict[str, Any]] = []
    public: dict[str, Any] = {"classes": list(task.classes), "features": dict(task.features), "delta": task.delta}
    each = 1 + len(epsilons) * (1 + repeats * (len(VARIANTS) + len(SCHEMES)))
    total = len(rounds) * each + len(epsilons)
    with tqdm(total=total, desc=task.name, unit="fit", disable=not progress) as bar:

        def add(split: tuple[Any, Any, Any, Any], which: Task, model: Any, **labels: Any) -> None:
            rows.append({"dataset": task.name} | labels | _fit_and_score(which, model, lambda X: X, split))
            bar.update()

        for repeat in range(repeats):
            split = _split(task, repeat, seed)
            X, y, X_test, y_test = split
            plain = encode(X), _second(task, y), encode(X_test), _second(task, y_test)
            rows += [
                {"dataset": task.name, "repeat": repeat, "learner": "", "scheme": TRIVIAL, "epsilon": np.nan} | one
                for one in _trivial(task, split)
            ]
            for m in rounds:
                labels: dict[str, Any] = {"repeat": repeat, "rounds": m}
                if repeat == 0:
                    add(plain, numbers, adaboost(task, m), learner="AdaBoost", scheme=NO_PRIVACY, **labels)
                for epsilon in map(float, epsilons):
                    settings: dict[str, Any] = {"epsilon": epsilon, "random_state": _seed(seed, repeat)}
                    labels |= {"epsilon": epsilon, "scheme": "published"}
                    for variant in VARIANTS:
                        model: Any = PublishedDPAda(variant=variant, n_rounds=m, **settings)
                        add(plain, numbers, model, learner=variant, **labels)
                    for scheme in SCHEMES:
                        model = PublishedNoisyAdaBoost(scheme=scheme, n_rounds=m, **settings)
                        add(plain, numbers, model, learner=scheme, **labels)
                    if repeat == 0:
                        labels |= {"scheme": "private"}
                        model = learners.DPBoostedStumps(n_rounds=m, **settings, **public)
                        add(split, task, model, learner="DPBoostedStumps", delta=task.delta, **labels)
            for epsilon in map(float, () if repeat else epsilons):
                model = learners.DPAdditiveHistograms(epsilon=epsilon, random_state=_seed(seed, repeat), **public)
                labels = {"repeat": repeat, "epsilon": epsilon, "scheme": "private", "delta": task.delta}
                add(split, task, model, learner="DPAdditiveHistograms", **labels)
    return pd.DataFrame(rows)


def _second(task: Task, y: Any) -> Any:
    """1 where the label is the second class, else 0."""
    return (np.asarray(y) == task.classes[1]).astype(np.int64)


def summarise(results: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard deviation over repeats.

    Parameters
    ----------
    results : DataFrame
        Of :func:`run` or :func:`published`, of one or several data sets.

    Returns
    -------
    DataFrame
        One row per data set, metric, scheme, learner, number of rounds and ε: ``score`` (mean), ``score_sd``,
        ``score_median``, ``auc``, ``seconds`` (medians), ``repeats``, and ``no_privacy``, the score of its counterpart
        without privacy.
    """
    results = results.assign(**{name: np.nan for name in ("rounds", "auc", "delta") if name not in results})
    keys = ["dataset", "metric", "scheme", "learner", "rounds", "epsilon", "delta"]
    table = (
        results.groupby(keys, dropna=False, sort=False)
        .agg(
            score=("score", "mean"),
            score_sd=("score", "std"),
            score_median=("score", "median"),
            auc=("auc", "mean"),
            seconds=("seconds", "median"),
            repeats=("score", "size"),
        )
        .reset_index()
    )
    plain = table[table["scheme"] == NO_PRIVACY].set_index(["dataset", "metric", "learner"])["score"].to_dict()
    same = zip(table["dataset"], table["metric"], table["learner"], strict=True)
    table["no_privacy"] = [plain.get(key, np.nan) for key in same]
    return table


def _check(epsilons: Sequence[float], repeats: int) -> None:
    if isinstance(repeats, bool) or not isinstance(repeats, int) or repeats < 1:
        raise InputError(f"repeats must be a whole number of at least 1, got {repeats!r}")
    if not epsilons or not all(0 < e < np.inf for e in epsilons):
        raise InputError(f"epsilon must be finite numbers above 0, got {list(epsilons)!r}")


def _seed(seed: int, repeat: int) -> int:
    return int(np.random.SeedSequence([seed, repeat]).generate_state(1)[0])


def _split(task: Task, repeat: int, seed: int) -> tuple[Any, Any, Any, Any]:
    if task.X_test is not None:
        return task.X, task.y, task.X_test, task.y_test
    if task.kind == "components":  # scored on the rows that they describe
        return task.X, task.y, task.X, task.y
    order = np.random.default_rng([seed, repeat]).permutation(len(task.y))
    cut = len(order) // 5
    test, train = np.sort(order[:cut]), np.sort(order[cut:])
    rows = task.X.iloc if hasattr(task.X, "iloc") else task.X
    return rows[train], task.y[train], rows[test], task.y[test]


def _fit_and_score(task: Task, model: Any, encode: Any, split: tuple[Any, Any, Any, Any]) -> dict[str, Any]:
    X, y, X_test, y_test = split
    X, X_test = encode(X), encode(X_test)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)  # said once, by the tables
        model.fit(X) if task.kind == "components" else model.fit(X, y)
    return {"seconds": time.perf_counter() - start} | _score(task, model, X_test, y_test)


def _score(task: Task, model: Any, X: Any, y: Any) -> dict[str, Any]:
    if task.kind == "classification":
        from sklearn.metrics import roc_auc_score

        positive = np.asarray(y) == task.classes[1]
        predicted = np.asarray(model.predict(X)) == task.classes[1]
        if hasattr(model, "decision_function"):
            ranking = model.decision_function(X)
        else:
            ranking = model.predict_proba(X)[:, list(model.classes_).index(task.classes[1])]
        return {
            "metric": "accuracy",
            "score": float((predicted == positive).mean()),
            "auc": float(roc_auc_score(positive, ranking)),
        }
    if task.kind == "regression":
        from sklearn.metrics import r2_score

        return {"metric": "R2", "score": float(r2_score(y, model.predict(X)))}
    if hasattr(model, "components_"):
        return {"metric": "captured variance", "score": captured(np.cov(X.T), model.components_)}
    from sklearn.metrics import adjusted_rand_score

    return {"metric": "ARI", "score": float(adjusted_rand_score(y, model.predict(X)))}


def captured(covariance: FloatArray, components: FloatArray) -> float:
    """Variance in the span of components (k, d), as a share of that in as many exact ones; of a covariance (d, d)."""
    Q = np.linalg.qr(components.T)[0]
    return float(np.trace(Q.T @ covariance @ Q) / np.linalg.eigvalsh(covariance)[::-1][: len(components)].sum())


def _trivial(task: Task, split: tuple[Any, Any, Any, Any]) -> Iterator[dict[str, Any]]:
    X, y, _, y_test = split
    if task.kind == "classification":
        values, counts = np.unique(np.asarray(y, dtype=str), return_counts=True)
        share = float((np.asarray(y_test, dtype=str) == values[counts.argmax()]).mean())
        yield {"metric": "accuracy", "score": share, "auc": 0.5}
    elif task.kind == "regression":
        yield {
            "metric": "R2",
            "score": 1 - float(((y_test - y.mean()) ** 2).sum() / ((y_test - y_test.mean()) ** 2).sum()),
        }
    else:
        rng = np.random.default_rng(0)
        S = np.cov(X.T)
        each = [captured(S, rng.standard_normal((10, X.shape[1]))) for _ in range(20)]
        yield {"metric": "captured variance", "score": float(np.mean(each))}
        yield {"metric": "ARI", "score": 0.0}
