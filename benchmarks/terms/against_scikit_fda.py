"""scikit-fda's regressions beside ours on the same simulated curves: error of the mean, and time.

    python benchmarks/terms/against_scikit_fda.py [--rounds 3]

A historical model, numbers on curves, and curves on numbers; sizes of scikit-fda's bases as in its own examples.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
from skfda import FDataGrid
from skfda.ml.regression import HistoricalLinearRegression, LinearRegression
from skfda.representation.basis import BSplineBasis
from threadpoolctl import threadpool_limits

from fdadp import FunctionalRegression, ScalarRegression, terms

S = np.linspace(0, 1, 41)
WEIGHTS = np.r_[0.5, np.ones(39), 0.5] / 40


def predictors(n: int, rng: np.random.Generator) -> np.ndarray:
    """Curves of six random waves."""
    waves = [np.ones(41), S] + [np.sqrt(2) * f(k * np.pi * S) for k in (1, 2) for f in (np.sin, np.cos)]
    return (rng.normal(size=(n, 6)) * [1, 0.3, 0.8, 0.6, 0.5, 0.4]) @ np.stack(waves)


def timed(call: Callable[[], object], rounds: int) -> tuple[object, float]:
    """What a call returns, and its least time."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        value = call()
        times.append(time.perf_counter() - start)
    return value, min(times)


def error(predicted: np.ndarray, truth: np.ndarray) -> float:
    """Root mean squared error, relative to the truth's standard deviation about its mean."""
    return float(np.sqrt(np.mean((predicted - truth) ** 2) / np.mean((truth - truth.mean(axis=0)) ** 2)))


def historical(rng: np.random.Generator, rounds: int) -> list[tuple]:
    """``Y(t) = ∫_0^t X(s) β(s, t) ds + ε``, n = 100."""
    beta = 2 * np.sin(np.pi * S[:, None]) * np.cos(np.pi * S) + 1
    below = np.array([[WEIGHTS[i] if i < j else WEIGHTS[i] / 2 if i == j else 0 for j in range(41)] for i in range(41)])
    x, new = predictors(100, rng), predictors(200, rng)
    truth = new @ (beta * below)
    y = x @ (beta * below) + 0.2 * rng.normal(size=(100, 41))
    other, theirs = timed(
        lambda: HistoricalLinearRegression(n_intervals=8).fit(FDataGrid(x, S), FDataGrid(y, S)), rounds
    )
    model = [terms.ff("X", k=(8, 8), m=((2, 2), (2, 2)), limits="s<=t")]
    own, ours = timed(lambda: FunctionalRegression(model).fit({"X": x, "Y": y}, grids={"X": S, "Y": S}), rounds)
    return [
        ("historical, n = 100", "scikit-fda", error(other.predict(FDataGrid(new, S))(S)[..., 0], truth), theirs),
        ("historical, n = 100", "fdadp", error(own.predict({"X": new}), truth), ours),
    ]


def scalar_response(rng: np.random.Generator, rounds: int) -> list[tuple]:
    """``y = ∫ X(s) β(s) ds + ε``, n = 100."""
    weights = WEIGHTS * 3 * np.sin(2 * np.pi * S)
    x, new = predictors(100, rng), predictors(200, rng)
    y, truth = x @ weights + 0.3 * rng.normal(size=100), new @ weights
    basis = BSplineBasis(n_basis=12)
    other, theirs = timed(
        lambda: LinearRegression(coef_basis=[BSplineBasis(n_basis=8)]).fit(FDataGrid(x, S).to_basis(basis), y), rounds
    )
    own, ours = timed(lambda: ScalarRegression([terms.lf("X", k=20)]).fit({"X": x, "y": y}, grids={"X": S}), rounds)
    return [
        (
            "number on a curve, n = 100",
            "scikit-fda",
            error(other.predict(FDataGrid(new, S).to_basis(basis)), truth),
            theirs,
        ),
        ("number on a curve, n = 100", "fdadp", error(own.predict({"X": new}), truth), ours),
    ]


def scalar_covariates(rng: np.random.Generator, rounds: int) -> list[tuple]:
    """``Y(t) = 1 + a sin(3t) + b t² + ε``, n = 1,000."""
    z = rng.normal(size=(1000, 2))
    truth = 1 + np.outer(z[:, 0], np.sin(3 * S)) + np.outer(z[:, 1], S**2)
    y = truth + 0.3 * rng.normal(size=truth.shape)
    basis = BSplineBasis(n_basis=12)
    frame = pd.DataFrame(z, columns=["a", "b"])
    other, theirs = timed(
        lambda: LinearRegression(coef_basis=[BSplineBasis(n_basis=8)] * 2).fit(frame, FDataGrid(y, S).to_basis(basis)),
        1,
    )
    data = {"a": z[:, 0], "b": z[:, 1], "Y": y}
    own, ours = timed(
        lambda: FunctionalRegression([terms.linear("a"), terms.linear("b")]).fit(data, grids={"Y": S}), rounds
    )
    return [
        ("curves on two numbers, n = 1,000", "scikit-fda", error(other.predict(frame)(S)[..., 0], truth), theirs),
        ("curves on two numbers, n = 1,000", "fdadp", error(own.predict(data), truth), ours),
    ]


def main(arguments: list[str] | None = None) -> pd.DataFrame:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args(arguments).rounds
    rng = np.random.default_rng(0)
    with threadpool_limits(1, "blas"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = [row for part in (historical, scalar_response, scalar_covariates) for row in part(rng, rounds)]
    return pd.DataFrame(rows, columns=["model", "program", "relative error", "seconds"])


if __name__ == "__main__":
    print(main().to_string(index=False, float_format="{:.3g}".format))
