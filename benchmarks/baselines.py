"""What the literature would do with the same public features: four mechanisms, for the table beside DP-AFF.

As they are usually implemented: public clips, no private scales, no empirical Bayes. All but output perturbation ask a
``Cohort``; that one adds noise to the exact solution here, for simulation only (see ``output``).

Sources: gradient descent with a public preconditioner, cf. Brown, Hayase, Hopkins, Kong, Liu, Oh, Perdomo & Smith
(2024); functional mechanism, Zhang, Zhang, Xiao, Yang & Winslett (2012); AdaSSP, Wang (2018); output perturbation,
Chaudhuri, Monteleoni & Sarwate (2011), with the
bound without a ball of ``docs/theory/learners.md#output-perturbation``.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from fdadp import PublicPrior
from fdadp.privacy import Budget, Cohort, SeededNoise
from fdadp.privacy.account.epsilon_mu_rho import noise_multiplier
from fdadp.private.plan.private_design import PrivateDesign
from fdadp.private.public.column_ranges import Range
from fdadp.private.release.noisy_moments import plan_moments
from fdadp.private.rows.row_functions import RowFunctions

Predict = Callable[[np.ndarray], np.ndarray]
STEP, ROUNDS = 0.45, 8


class Problem:
    """Public features and response coefficients of private curves, and a cohort of them."""

    def __init__(self, x: np.ndarray, y: np.ndarray, bounds: dict[str, Range], budget: Budget, seed: int) -> None:
        grid = np.linspace(0, 1, x.shape[1])
        self.design: PrivateDesign = PublicPrior().design(grid, grid, bounds=bounds["X"])
        self.rows = RowFunctions(self.design, bounds["Y"])
        self.n = len(x)
        self.curves = x, y
        self.cohort = Cohort((x, y), budget=budget, n=self.n, noise=SeededNoise(seed), mechanism="baseline")
        self.multiplier = noise_multiplier(self.cohort.amount, "zero-out", pure=budget.pure)
        self.response_clip = self.rows.y_half / 2.5

    def start(self, d: int, k: int, feature_clip: float) -> None:
        """Derive clipped features and responses; the cohort's rows are then (f, c)."""
        self.d, self.k, self.feature_clip = d, k, feature_clip
        self.cohort = self.cohort.derive(self.pair, name="features and response coefficients")

    def pair(self, block: tuple[np.ndarray, ...]) -> tuple[np.ndarray, np.ndarray]:
        f = self.rows.features_of(block, self.d)
        c = self.rows.response(block)[:, : self.k]
        f = f * np.minimum(1, self.feature_clip / norms(f))[:, None]
        return f, c * np.minimum(1, self.response_clip / np.maximum(norms(c), 1e-12))[:, None]

    def predict(self, theta: np.ndarray) -> Predict:
        functions = self.design.response[:, : theta.shape[1]].T
        return lambda x: self.rows.y_mid + self.rows.features_of((x,), len(theta)) @ theta @ functions


def norms(values: np.ndarray) -> np.ndarray:
    return np.array([math.sqrt(math.fsum(v * v)) for v in values])


def gradient_descent(problem: Problem) -> np.ndarray:
    """Eight noisy gradient steps; the public whitening is the preconditioner. Step and clip did best on one cohort."""
    d, k = plan_moments(float(problem.n), problem.multiplier, problem.design, pure=False).weights.shape
    k = min(k, 4)
    problem.start(d, k, 1e9)
    theta = np.zeros((d, k))
    clip = math.sqrt(d)
    for t in range(ROUNDS):
        at = theta.copy()

        def residual(block: tuple[np.ndarray, ...], at: np.ndarray = at) -> np.ndarray:
            return block[1] - np.einsum("id,dk->ik", block[0], at)

        total, _ = problem.cohort.sum_outer(
            lambda block: block[0], residual, clip=clip, share=1 / ROUNDS, name=f"gradient {t + 1}"
        )
        theta = theta + STEP * total / problem.n
    return theta


def adassp(problem: Problem) -> np.ndarray:
    """Noisy second moments, a ridge that outweighs their noise where the smallest eigenvalue does not."""
    d, k = plan_moments(float(problem.n), problem.multiplier, problem.design, pure=False).weights.shape
    problem.start(d, k, math.sqrt(1 + 1.3**2 * d))
    a, sd = triangle_sum(problem, 0.5)
    b, _ = problem.cohort.sum_outer(
        lambda block: block[0],
        lambda block: block[1],
        clip=problem.feature_clip * problem.response_clip,
        share=0.5,
        name="cross moment",
    )
    spread = sd * math.sqrt(d * math.log(2 * d * d / 0.05))
    ridge = max(0.0, spread - max(float(np.linalg.eigvalsh(a)[0]) - spread, 0.0))
    return np.linalg.solve(a + ridge * np.eye(d), b)


def functional_mechanism(problem: Problem) -> np.ndarray:
    """Laplace noise on the coefficients of the quadratic objective; negative eigenvalues trimmed, ridge."""
    d, k = plan_moments(float(problem.n), problem.multiplier, problem.design, pure=True).weights.shape
    problem.start(min(d, 13), k, math.sqrt(1 + 1.3**2 * d))
    d = problem.d
    a, sd = triangle_sum(problem, 0.5)
    b, _ = problem.cohort.sum_outer(
        lambda block: block[0],
        lambda block: block[1],
        clip=0.64 * problem.feature_clip * problem.response_clip * math.sqrt(d * k),
        share=0.5,
        name="cross moment",
    )
    values, vectors = np.linalg.eigh(a)
    a = (vectors * np.maximum(values, 0)) @ vectors.T
    return np.linalg.solve(a + sd * math.sqrt(d) * np.eye(d), b)


def triangle_sum(problem: Problem, share: float) -> tuple[np.ndarray, float]:
    """Noisy Σ f f', by its upper triangle (docs/theory/kernel.md#second-moments), and the sd of its off-diagonals."""
    d, pure = problem.d, problem.cohort.pure
    upper = np.triu_indices(d)
    off = 1.0 if pure else math.sqrt(2)
    scale = np.where(upper[0] == upper[1], 1.0, off)
    clip = problem.feature_clip**2 * ((0.64 * d + 1) / 2 if pure else 1.0)
    total, sd = problem.cohort.sum(
        lambda block: block[0][:, upper[0]] * block[0][:, upper[1]] * scale, clip=clip, share=share, name="moment"
    )
    a = np.zeros((d, d))
    a[upper] = total / scale
    return a + a.T - np.diag(np.diag(a)), sd / off


def output(problem: Problem, rng: np.random.Generator) -> np.ndarray:
    """Noise on the ridge solution with its global sensitivity C R (1 + C/√λ)/(n λ); λ, d chosen in public.

    Not through the kernel: an exact solution is no sum. Simulation only.
    """
    best, choice = math.inf, (2, 1.0, 1.0)
    shares, k = problem.design.feature_shares, 4
    for d in (2, 3, 5, 8, 12, 20, 30):
        for ridge in 10.0 ** np.arange(-3, 2.1, 0.25):
            c = math.sqrt(1 + 1.3**2 * d)
            sensitivity = c * problem.response_clip * (1 + c / math.sqrt(ridge)) / (problem.n * ridge)
            tail = 1 - np.sqrt(shares)[: d - 1].sum() / np.sqrt(shares).sum()
            loss = tail + (ridge / (1 + ridge)) ** 2 + d * k * (sensitivity * problem.multiplier) ** 2
            if loss < best:
                best, choice = loss, (d, float(ridge), sensitivity)
    d, ridge, sensitivity = choice
    problem.d, problem.k, problem.feature_clip = d, k, math.sqrt(1 + 1.3**2 * d)
    f, c = problem.pair(problem.curves)
    exact = np.linalg.solve(f.T @ f / problem.n + ridge * np.eye(d), f.T @ c / problem.n)
    return exact + sensitivity * problem.multiplier * rng.normal(size=exact.shape)


METHODS = ("gradient descent", "functional mechanism", "AdaSSP", "output")


def fit(
    method: str, x: np.ndarray, y: np.ndarray, bounds: dict[str, Range], epsilon: float, delta: float | None, seed: int
) -> Predict:
    """Fit a baseline; the functional mechanism is in pure ε, which is its only form."""
    budget = Budget(epsilon, None if method == "functional mechanism" else delta)
    problem = Problem(x, y, bounds, budget, seed)
    if method == "output":
        return problem.predict(output(problem, np.random.default_rng(seed)))
    solve = {"gradient descent": gradient_descent, "functional mechanism": functional_mechanism, "AdaSSP": adassp}
    return problem.predict(solve[method](problem))
