"""Mechanisms beside the defaults: when is another one worth taking?

    python benchmarks/learners/mechanisms.py [--seeds 20] [--only k-means]

Linear regression (R² on other rows), logistic regression (AUC on other rows), principal components (variance
captured, over that of as many exact ones) and k-means (inertia over that of twenty exact fits), with public bounds,
pure ε and (ε, 1e-6). Data of scikit-learn, and simulated ones.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.metrics import r2_score, roc_auc_score

from fdadp.errors import PublicInputWarning
from fdadp.learners import DPPCA, DPKMeans, DPLinearRegression, DPLogisticRegression

EPSILONS = (0.1, 0.5, 1.0, 5.0)


def linear(mechanism: str) -> Callable[..., float]:
    """R² on a fifth of diabetes (442 × 10), or of 3,000 simulated rows."""

    def score(seed: int, **settings: Any) -> float:
        X, y = load_diabetes(return_X_y=True)
        test = np.random.default_rng(seed).permutation(len(X)) < len(X) // 5
        bounds = {"bounds": (-0.2, 0.2), "bounds_y": (0, 350)}
        model = DPLinearRegression(mechanism=mechanism, random_state=seed, **bounds, **settings)
        return float(r2_score(y[test], model.fit(X[~test], y[~test]).predict(X[test])))

    return score


def simulated(mechanism: str) -> Callable[..., float]:
    """R² on other rows of 8 uniform features; .92 without noise."""

    def score(seed: int, **settings: Any) -> float:
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1, 1, (4000, 8))
        y = X @ np.array([1.0, -1, 0.5, 0.5, -0.25, 0, 0, 0]) + 0.25 * rng.standard_normal(4000)
        bounds = {"bounds": (-1, 1), "bounds_y": (-4, 4)}
        model = DPLinearRegression(mechanism=mechanism, random_state=seed, **bounds, **settings).fit(X[:3000], y[:3000])
        return float(r2_score(y[3000:], model.predict(X[3000:])))

    return score


def logistic(mechanism: str) -> Callable[..., float]:
    """AUC on a fifth of breast cancer (569 × 30)."""

    def score(seed: int, **settings: Any) -> float:
        X, y = load_breast_cancer(return_X_y=True)
        X = np.log1p(X)
        test = np.random.default_rng(seed).permutation(len(X)) < len(X) // 5
        model = DPLogisticRegression(mechanism=mechanism, classes=[0, 1], bounds=(0, 9), random_state=seed, **settings)
        return float(roc_auc_score(y[test], model.fit(X[~test], y[~test]).decision_function(X[test])))

    return score


def components(mechanism: str, k: int) -> Callable[..., float]:
    """Variance of the digits (1797 × 64) that k components capture."""

    def score(seed: int, **settings: Any) -> float:
        X = load_digits().data / 16
        model = DPPCA(mechanism=mechanism, n_components=k, data_norm=3.0, center=0.3, random_state=seed, **settings)
        found = model.fit(X).components_
        cov = np.cov(X.T)
        return float(np.trace(found @ cov @ found.T) / np.linalg.eigvalsh(cov)[-k:].sum())

    return score


@cache
def six_clouds(n: int, d: int, seed: int) -> tuple[np.ndarray, float]:
    """Rows in six clouds with sd 1/2 about uniform points, other points by seed; their exact inertia."""
    rng = np.random.default_rng([d, seed])
    X = rng.uniform(-3, 3, (6, d))[rng.integers(0, 6, n)] + 0.5 * rng.standard_normal((n, d))
    return X, float(KMeans(6, n_init=20, random_state=0).fit(X).inertia_)


def clouds(init: str, n: int, d: int) -> Callable[..., float]:
    """Inertia of n rows in six clouds over the exact one."""

    def score(seed: int, **settings: Any) -> float:
        X, exact = six_clouds(n, d, seed)
        model = DPKMeans(n_clusters=6, bounds=(-4.5, 4.5), init=init, random_state=seed, **settings).fit(X)
        return float(-model.score(X) / exact)

    return score


TABLES: dict[str, dict[str, Callable[..., float]]] = {
    "Linear regression, diabetes, R²": {m: linear(m) for m in ("moments", "adassp", "functional", "wishart")},
    "Linear regression, 3,000 simulated rows, R²": {
        m: simulated(m) for m in ("moments", "adassp", "functional", "wishart")
    },
    "Logistic regression, breast cancer, AUC": {m: logistic(m) for m in ("objective", "output", "gradient")},
    "Ten components of the digits, share captured": {m: components(m, 10) for m in ("moments", "power", "bingham")},
    "One component of the digits, share captured": {m: components(m, 1) for m in ("moments", "power", "bingham")},
    **{
        f"k-means, six clouds, n = {n:,}, {d} features, inertia over the exact one": {
            init: clouds(init, n, d) for init in ("auto", "sphere_packing")
        }
        for n, d in ((20_000, 2), (10_000, 10), (10_000, 30))
    },
}
ONLY = {"adassp": (1e-6,), "wishart": (1e-6,), "functional": (None,)}


def lines(seeds: int, only: str) -> Iterator[str]:
    """The tables whose title contains `only`: means and (standard errors)."""
    for title, rows in TABLES.items():
        if only not in title:
            continue
        yield f"\n{title}:\n"
        yield f"| mechanism | δ | {' | '.join(f'ε = {epsilon:g}' for epsilon in EPSILONS)} |"
        yield f"|---|---|{'---|' * len(EPSILONS)}"
        for name, score in rows.items():
            for delta in ONLY.get(name, (None, 1e-6)):
                cells = []
                for epsilon in EPSILONS:
                    found = [score(seed, epsilon=epsilon, delta=delta) for seed in range(seeds)]
                    cells.append(f"{np.mean(found):.3f} ({np.std(found) / np.sqrt(seeds):.3f})")
                yield f"| {name} | {'' if delta is None else '10⁻⁶'} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--only", default="", help="tables with this in their title")
    given = parser.parse_args()
    warnings.simplefilter("ignore", PublicInputWarning)
    print("# Mechanisms beside the defaults\n")
    print(f"`python benchmarks/learners/mechanisms.py --seeds {given.seeds}`; means and (standard errors).")
    for line in lines(given.seeds, given.only):
        print(line, flush=True)


if __name__ == "__main__":
    main()
