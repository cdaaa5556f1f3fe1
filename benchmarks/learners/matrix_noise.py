"""Pure ε before and after matrix Laplace noise: its size, principal components, linear regression, time of exact draws.

    python benchmarks/learners/matrix_noise.py [--seeds 20] [--venvs FOLDER]

"Before" is the release that fdadp made until then: Laplace noise on the triangle, with its clip in L1. Linear
regression also beside diffprivlib's, in the environment of its own that ``run.py`` makes. Results:
results/matrix_noise.md.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from run import environment
from sklearn.datasets import load_diabetes, load_digits, load_wine
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split

from fdadp.learners import DPPCA, DPLinearRegression, linear_regression
from fdadp.learners.pca import CONST
from fdadp.privacy import Budget, Cohort, SeededNoise
from fdadp.privacy.noise._matrix_noise import MatrixLaplace

sys.path.append(str(Path(__file__).resolve().parents[1]))

from studies.scores import captured

HERE = Path(__file__).resolve().parent
EPSILONS = (0.1, 0.5, 1.0)
SHAPES_OF_A_FIT = [MatrixLaplace(17, 6)] * 8 + [MatrixLaplace(6, 6, symmetric=True)]


def laplace_moment(self: Cohort, f: Any, *, clip: float, share: float, name: str, norm: Any = None) -> Any:
    """Second moment of (x, |x|'s bound over 6) with Laplace noise on the triangle, clipped in L1 as it was."""
    (p,) = self._kernel.probe(f, name, 1)[0]
    radius = math.sqrt(clip / (1 + CONST**2))
    upper = np.triu_indices(p)

    def triangle(rows: Any) -> Any:
        a = f(rows)
        return a[:, upper[0]] * a[:, upper[1]]

    in_l1 = ((math.sqrt(p - 1) + CONST) ** 2 * radius**2 + clip) / 2
    total, sd = self.sum(triangle, clip=in_l1, share=share, name=name)
    matrix = np.zeros((p, p))
    matrix[upper] = total
    return matrix + np.triu(matrix, 1).T, sd


def laplace_release(cohort: Cohort, pair: Any, p: int, q: int, *, wishart: bool = False) -> Any:
    """Second moment of features and targets as it was: weighted, with Laplace noise."""
    weights = np.zeros((p + q, p + q))
    weights[:p, :p], weights[:p, p:], weights[p:, p:] = np.triu(np.ones((p, p))), 1.0, 0.3 * np.eye(q)
    clip = (p + 1) / 2 + math.sqrt(p * q) + 0.3
    value, sd = cohort.sum_outer(
        lambda rows: (pair(rows), pair(rows)), clip=clip, weights=weights, share=1.0, name="second moment"
    )
    moment = value / np.where(weights > 0, weights, 1.0)
    upper = np.triu(moment[:p, :p])
    gram = upper + np.triu(upper, 1).T
    return linear_regression._Moments(gram, moment[:p, p:], np.diag(moment[p:, p:]), sd, sd, sd)


def sizes() -> list[str]:
    """Frobenius norm of the noise on a second moment of a row and a constant, at ε = 1 and clip 1."""
    lines = ["| columns | Laplace | matrix Laplace | ratio | sd stated, and found |", "|---|---|---|---|---|"]
    for d in (3, 6, 14, 30):
        p, rows = d + 1, np.zeros((4, d + 1))
        found: dict[str, list[float]] = {"was": [], "is": []}
        entries = []
        for seed in range(60):
            for key in found:
                c = Cohort(rows, budget=Budget(1.0), n=4, noise=SeededNoise(seed))
                release = (lambda f, c=c, **k: laplace_moment(c, f, **k)) if key == "was" else c.second_moment
                value, sd = release(lambda r: r[0], clip=1.0, share=1.0, name="m")
                found[key].append(float(np.sqrt((value**2).sum())))
            entries.append(value)
        spread = float(np.std([np.diag(v) for v in entries]))
        off = float(np.std([v[np.triu_indices(p, 1)] for v in entries]))
        assert abs(spread / sd - 1) < 0.1 and abs(off / sd * math.sqrt(2) - 1) < 0.1
        was, now = np.mean(found["was"]), np.mean(found["is"])
        assert d != 14 or now < was / 3
        lines.append(f"| {d} + 1 | {was:.1f} | {now:.1f} | {was / now:.2f} | {sd:.2f}, {spread:.2f} |")
    return lines


def components(seeds: int) -> list[str]:
    """Share of the variance of ten exact components of the digits (1797 × 64) that ten private ones capture."""
    X = load_digits().data / 16.0
    pixels = X[:, X.var(axis=0).argsort()[::-1][:14]]  # chosen for the number of columns, from a public table
    lines = ["| table | ε | Laplace | matrix Laplace |", "|---|---|---|---|"]
    for name, table, k, radius in (("digits, 64 columns", X, 10, 4.0), ("14 of them", pixels, 3, 2.0)):
        for epsilon in EPSILONS:
            scores: dict[str, list[float]] = {"was": [], "is": []}
            for seed in range(seeds):
                model = DPPCA(epsilon=epsilon, n_components=k, data_norm=radius, center=0.5, random_state=seed)
                scores["is"].append(captured(np.cov(table.T), model.fit(table).components_))
                with mock.patch.object(Cohort, "second_moment", laplace_moment):
                    scores["was"].append(captured(np.cov(table.T), model.fit(table).components_))
            lines.append(f"| {name} | {epsilon:g} | {spell(scores['was'])} | {spell(scores['is'])} |")
    return lines


def tables() -> dict[str, tuple[Any, Any, Any, Any]]:
    """Features, target, and public ranges of both."""
    diabetes = load_diabetes()
    wine = load_wine().data
    rng = np.random.default_rng(0)
    Z = rng.uniform(-1, 1, (3000, 8))
    y = Z @ np.array([2.0, -1.5, 1.0, 0.7, -0.5, 0.3, 0.0, 0.0]) + 0.5 * rng.standard_normal(3000)
    repeated = np.repeat(wine, 10, axis=0) * (1 + 0.02 * rng.standard_normal((1780, 13)))
    return {
        "diabetes (442 × 10)": (diabetes.data, diabetes.target, (-0.2, 0.2), (0.0, 400.0)),
        "uniform (3000 × 8)": (Z, y, (-1.0, 1.0), (-8.0, 8.0)),
        "wine, alcohol, ten copies with noise (1780 × 6)": (
            repeated[:, [1, 2, 6, 9, 10, 11]],
            repeated[:, 0],
            (np.zeros(6), np.array([6.0, 4.0, 6.0, 14.0, 2.0, 5.0])),
            (10.0, 16.0),
        ),
    }


def regressions(seeds: int, venvs: Path) -> list[str]:
    """R² on a third of the rows that was not fitted."""
    lines = ["| table | ε | Laplace | matrix Laplace | diffprivlib, as it claims |", "|---|---|---|---|---|"]
    for name, (X, y, bounds, bounds_y) in tables().items():
        splits = [train_test_split(X, y, test_size=1 / 3, random_state=s) for s in range(seeds)]
        peers = beside(splits, bounds, bounds_y, venvs)
        for epsilon in (0.5, 1.0, 5.0):
            scores: dict[str, list[float]] = {"was": [], "is": []}
            for seed, (a, b, target, truth) in enumerate(splits):
                model = DPLinearRegression(epsilon=epsilon, bounds=bounds, bounds_y=bounds_y, random_state=seed)
                scores["is"].append(r2_score(truth, model.fit(a, target).predict(b)))
                with mock.patch.object(linear_regression, "_release_joint", laplace_release):
                    scores["was"].append(r2_score(truth, model.fit(a, target).predict(b)))
            row = (spell(scores["was"]), spell(scores["is"]), spell(peers[epsilon]))
            lines.append(f"| {name} | {epsilon:g} | {' | '.join(row)} |")
    return lines


def beside(splits: Any, bounds: Any, bounds_y: Any, venvs: Path) -> dict[float, list[float]]:
    """R² of diffprivlib's fits, by ε."""
    python = environment("diffprivlib", venvs)
    with tempfile.TemporaryDirectory() as folder:
        arrays = {f"{k}_{s}": a for s, split in enumerate(splits) for k, a in zip("XTyt", split, strict=True)}
        d = splits[0][0].shape[1]
        low, high = (np.broadcast_to(b, d) for b in bounds)
        np.savez(Path(folder) / "rows.npz", low=low, high=high, y=np.array(bounds_y), **arrays)
        done = subprocess.run(
            [python, HERE / "peer_diffprivlib_linear.py", folder, str(len(splits))], capture_output=True, check=True
        )
    return {float(k): v for k, v in json.loads(done.stdout).items()}


def cpu() -> float:
    """CPU seconds of the exact noise of all matrix releases of one fit."""
    start = time.process_time()
    for law in SHAPES_OF_A_FIT:
        law.draw(2.0**36)
    seconds = time.process_time() - start
    assert seconds < 1.5
    return seconds


def spell(scores: list[float]) -> str:
    """Mean and standard error."""
    return f"{np.mean(scores):.3f} ({np.std(scores) / math.sqrt(len(scores)):.3f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--venvs", type=Path, default=Path(tempfile.gettempdir()))
    options = parser.parse_args()
    seconds = cpu()
    parts = [
        "# Pure ε: Laplace and matrix Laplace noise",
        "",
        f"`python benchmarks/learners/matrix_noise.py --seeds {options.seeds}`; means and (standard errors).",
        "",
        "Noise on a second moment, Frobenius norm, ε = 1, clip 1:",
        "",
        *sizes(),
        "",
        "Variance that private components capture, over that of as many exact ones:",
        "",
        *components(options.seeds),
        "",
        "Linear regression, R² on other rows:",
        "",
        *regressions(options.seeds, options.venvs),
        "",
        f"Exact noise of a fit's matrices (8 of 17 × 6, one symmetric of 6): {seconds:.2f} s of CPU in all.",
    ]
    text = "\n".join(parts) + "\n"
    (HERE / "results" / "matrix_noise.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
