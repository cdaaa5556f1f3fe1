"""Splits, seeds and scores of the learners' experiments."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from fdadp._common.argument_checks import whole
from fdadp.demo.digits_on_flower import captured
from fdadp.errors import InputError, NotPrivateWarning
from studies.learner_tasks import Task


def check_settings(epsilons: Sequence[float], repeats: int) -> None:
    """Refuse numbers of repeats and values of ε that are out of range; raises InputError."""
    whole(repeats, "repeats")
    if not epsilons or not all(0 < e < np.inf for e in epsilons):
        raise InputError(f"epsilon must be finite numbers above 0, got {list(epsilons)!r}")


def noise_seed(seed: int, repeat: int) -> int:
    """Seed of the noise of one repeat."""
    return int(np.random.SeedSequence([seed, repeat]).generate_state(1)[0])


def split_rows(task: Task, repeat: int, seed: int) -> tuple[Any, Any, Any, Any]:
    """Training rows and targets, then held-out ones: the data set's own split, or a random one."""
    if task.X_test is not None:
        return task.X, task.y, task.X_test, task.y_test
    if task.kind == "components":  # scored on the rows that they describe
        return task.X, task.y, task.X, task.y
    order = np.random.default_rng([seed, repeat]).permutation(len(task.y))
    cut = len(order) // 5
    test, train = np.sort(order[:cut]), np.sort(order[cut:])
    rows = task.X.iloc if hasattr(task.X, "iloc") else task.X
    return rows[train], task.y[train], rows[test], task.y[test]


def fit_and_score(task: Task, model: Any, encode: Any, split: tuple[Any, Any, Any, Any]) -> dict[str, Any]:
    """Fit to encoded rows; ``seconds``, ``metric``, ``score`` and, of classifiers, ``auc`` on the held-out ones."""
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


def without_a_learner(task: Task, split: tuple[Any, Any, Any, Any]) -> Iterator[dict[str, Any]]:
    """Scores of what needs no learner: the larger class, the mean, a random subspace, one cluster."""
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
