"""The five simulated cohorts of the frontier: S1 to S3 of ``simulate_affr``, and two rough ones with heavy tails.

A has rough curves with heavy-tailed levels and thresholds in F; B smooth, skewed curves. Both are unlike the public
prior, and their errors have t₃ tails. They stand here and not in the package because they are made to be awkward.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from fdadp import simulate_affr
from fdadp.datasets._simulated_curves import SCENARIO_ERROR_SD
from fdadp.functional.quadrature import quadrature_weights

SCENARIOS = ("S1", "S2", "S3", "A", "B")
RANGES = {"ok": 1.0, "wide": 2.0, "narrow": 0.5}
TEST_CURVES = 2000
POINTS = 51
GRID = np.linspace(0.0, 1.0, POINTS)
WEIGHTS = quadrature_weights(GRID)
WHITE_NOISE = 0.25


class Sample(NamedTuple):
    """Curves X, Y and the true mean functions f = E[Y | X], (n, 51) each."""

    X: np.ndarray
    Y: np.ndarray
    f: np.ndarray


def cohort(scenario: str, n: int, seed: int) -> tuple[Sample, Sample]:
    """Training and test curves, independent."""
    rng = np.random.default_rng([seed, n, SCENARIOS.index(scenario)])
    return draw(scenario, n, rng), draw(scenario, TEST_CURVES, rng)


def draw(scenario: str, n: int, rng: np.random.Generator, *, x_noise: bool = True) -> Sample:
    """n people. Without noise in X, f is E[Y | X] of the curves X as they are seen."""
    if scenario in ROUGH:
        return draw_rough(scenario, n, rng, x_noise=x_noise)
    without = {} if x_noise else {"x_noise": 0.0}
    simulated = simulate_affr(int(scenario[1]), n, rng, n_points=POINTS, **without)
    return Sample(simulated.X.data_matrix[..., 0], simulated.Y.data_matrix[..., 0], simulated.mean_function)


@functools.cache
def bounds(scenario: str, width: str) -> dict[str, tuple[float, float]]:
    """Public ranges: of X four standard deviations to each side, times the error of judgement."""
    middle, half = 0.0, 4.5
    if scenario in ROUGH:
        x = ROUGH[scenario][0](20_000, np.random.default_rng(6))
        middle, half = float(x.mean()), 4 * float(x.std())
    half *= RANGES[width]
    return {"X": (middle - half, middle + half), "Y": (-8.0, 8.0)}


def rough_curves(n: int, rng: np.random.Generator) -> np.ndarray:
    covariance = np.exp(-np.abs(GRID[:, None] - GRID) / 0.06) + 1e-9 * np.eye(POINTS)
    level = 0.54 * rng.standard_t(3, (n, 1)) / np.sqrt(3)
    size = 0.9 * np.exp(0.3 * rng.normal(size=(n, 1)))
    return level + size * (rng.normal(size=(n, POINTS)) @ np.linalg.cholesky(covariance).T)


def smooth_skewed_curves(n: int, rng: np.random.Generator) -> np.ndarray:
    level = np.exp(0.5 * rng.normal(size=(n, 1))) - 1.13
    slope = 0.5 * rng.normal(size=(n, 1)) * (GRID - 0.5)
    return level + slope + 0.15 * rng.normal(size=(n, 1)) * np.cos(2 * np.pi * GRID)


def thresholds(x: np.ndarray) -> np.ndarray:
    s = t = GRID
    steps = (1 / (1 + np.exp(-4 * (x - 0.5))) * (s > 0.5)) @ WEIGHTS
    kinks = (np.maximum(x, 0) * np.cos(3 * np.pi * s)) @ WEIGHTS
    return (
        np.outer(steps, 2 * np.cos(2 * np.pi * t))
        + np.outer(kinks, 1 + t**2)
        + np.outer(0.5 * x @ WEIGHTS, np.sin(np.pi * t))
    )


def waves(x: np.ndarray) -> np.ndarray:
    s = t = GRID
    return (
        np.outer((np.sin(3 * x) * s) @ WEIGHTS, np.ones(POINTS))
        + np.outer((np.tanh(2 * x) * (1 - s)) @ WEIGHTS, 3 * (t - 0.3))
        + np.outer((0.3 * x**2 * np.sin(2 * np.pi * s)) @ WEIGHTS, np.cos(3 * np.pi * t))
    )


ROUGH = {"A": (rough_curves, thresholds), "B": (smooth_skewed_curves, waves)}


@functools.cache
def norming(scenario: str) -> tuple[np.ndarray, float]:
    """Mean and scale of the signal, which is standardised as that of S1 to S3 is."""
    curves, signal = ROUGH[scenario]
    values = signal(curves(20_000, np.random.default_rng(5)))
    mean = values.mean(axis=0)
    return mean, float(np.sqrt((((values - mean) ** 2) @ WEIGHTS).mean()))


def draw_rough(scenario: str, n: int, rng: np.random.Generator, *, x_noise: bool = True) -> Sample:
    curves, signal = ROUGH[scenario]
    x = curves(n, rng)
    mean, scale = norming(scenario)
    f = 1 + GRID + (signal(x) - mean) / scale
    heavy = rng.standard_t(3, size=(n, 3 + POINTS)) / np.sqrt(3)
    cosines = np.stack([np.ones(POINTS), *(np.sqrt(2) * np.cos(np.pi * k * GRID) for k in (1, 2))])
    y = f + (heavy[:, :3] * SCENARIO_ERROR_SD) @ cosines + WHITE_NOISE * heavy[:, 3:]
    return Sample(x + 0.1 * rng.normal(size=(n, POINTS)) if x_noise else x, y, f)
