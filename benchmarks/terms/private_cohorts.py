"""Simulated cohorts for private fits of several terms, with public bounds and the mean that is to be found.

Curves are smooth waves of two lengths about a level of their own, some people's larger than others'; numbers are skewed
within their public bounds; errors are smooth along t and rough at once, of a scalar response heavy-tailed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fdadp.functional.quadrature import quadrature_weights

S = np.linspace(0, 1, 60)
W = quadrature_weights(S)


@dataclass(frozen=True)
class PrivateCohort:
    """A table, its response as the last column, and the mean given the covariates, (n, T) or (n,)."""

    data: dict[str, Any]
    mean: Any


@dataclass(frozen=True)
class Scenario:
    """How to draw a cohort, the model to fit, and what is public."""

    draw: Callable[[int, np.random.Generator], PrivateCohort]
    model: str
    bounds: dict[str, Any]
    family: str = "gaussian"
    factors: bool = True
    """Whether features are the same at all points of the response, so that second moments of them say all."""

    @property
    def response(self) -> str:
        """Name of the response."""
        return self.model.split("~")[0].strip()


def curves(n: int, rng: np.random.Generator) -> Any:
    """Levels, waves of lengths 0.3 and 0.08, and a size for each person; shape (n, 60)."""
    x = 0.6 * rng.normal(size=(n, 1)) + 0.7 * _waves(n, rng, 0.3) + 0.4 * _waves(n, rng, 0.08)
    return x * np.exp(0.2 * rng.normal(size=(n, 1)))


def _waves(n: int, rng: np.random.Generator, length: float) -> Any:
    covariance = np.exp(-0.5 * ((S[:, None] - S) / length) ** 2) + 1e-8 * np.eye(S.size)
    return rng.normal(size=(n, S.size)) @ np.linalg.cholesky(covariance).T


def _errors(n: int, rng: np.random.Generator) -> Any:
    return 0.5 * np.sqrt(0.5) * _waves(n, rng, 0.2) + 0.25 * rng.normal(size=(n, S.size))


def _number(n: int, rng: np.random.Generator) -> Any:
    return rng.beta(2, 3, n) * 60 + 20


def _seen(x: Any, rng: np.random.Generator) -> Any:
    return x + 0.1 * rng.normal(size=x.shape)


def with_factor(n: int, rng: np.random.Generator) -> PrivateCohort:
    """A curve, a number and labels of unequal frequency act on a curve."""
    x, z, g = curves(n, rng), _number(n, rng), rng.choice(3, n, p=[0.5, 0.3, 0.2])
    beta = 2.2 * np.sin(np.pi * S)[:, None] * np.cos(np.pi * S) + 1.5 * np.exp(-((S[:, None] - S) ** 2) / 0.05)
    mean = (x * W) @ beta + ((z - 44) / 12)[:, None] * (0.35 * np.sin(2 * np.pi * S) + 0.2)
    mean = 0.9 * (mean + np.array([[0.3], [-0.2], [-0.4]])[g] * (1 - S)) + np.sin(2 * np.pi * S)
    y = mean + _errors(n, rng)
    return PrivateCohort({"X": _seen(x, rng), "z": z, "g": np.array(["a", "b", "c"])[g], "Y": y}, mean)


def of_number(n: int, rng: np.random.Generator) -> PrivateCohort:
    """A curve and a number act on a number in units far from 1; its errors have five degrees of freedom."""
    x, z = curves(n, rng), _number(n, rng)
    beta = 2 * np.sin(2 * np.pi * S) + 1.2 * np.exp(-((S - 0.7) ** 2) / 0.02)
    f = (x * W) @ beta + 0.25 * (z - 44) / 12
    return PrivateCohort({"X": _seen(x, rng), "z": z, "Y": 50 + 10 * (f + 0.45 * rng.standard_t(5, n))}, 50 + 10 * f)


def two_curves(n: int, rng: np.random.Generator) -> PrivateCohort:
    """Two curves, one in units far from 1, and two numbers act on a curve."""
    x, v, z, a = curves(n, rng), curves(n, rng), _number(n, rng), rng.normal(size=n)
    mean = (x * W) @ (2 * np.sin(np.pi * S)[:, None] * np.cos(np.pi * S))
    mean = mean + (v * W) @ (1.5 * np.exp(-((S[:, None] - S) ** 2) / 0.05))
    mean = mean + ((z - 44) / 12)[:, None] * 0.3 * (1 - S) + a[:, None] * 0.2 * np.sin(2 * np.pi * S)
    mean = mean + np.sin(2 * np.pi * S)
    return PrivateCohort({"X": x, "V": 30 + 10 * v, "z": z, "a": a, "Y": mean + _errors(n, rng)}, mean)


def _log_scale(x: Any, z: Any) -> Any:
    """What a curve and a number add to a linear predictor."""
    beta = 2 * np.sin(2 * np.pi * S) + 1.2 * np.exp(-((S - 0.7) ** 2) / 0.02)
    return (x * W) @ beta + 0.25 * (z - 44) / 12


def of_zeros_and_ones(n: int, rng: np.random.Generator) -> PrivateCohort:
    """A curve and a number act on the log-odds; the mean is the probability."""
    x, z = curves(n, rng), _number(n, rng)
    mean = 1 / (1 + np.exp(-0.3 - 3 * _log_scale(x, z)))
    return PrivateCohort({"X": _seen(x, rng), "z": z, "y": rng.binomial(1, mean).astype(float)}, mean)


def of_counts(n: int, rng: np.random.Generator) -> PrivateCohort:
    """The same act on the logarithm of an expected count, 1.6 on average and above 9 for one person in a thousand."""
    x, z = curves(n, rng), _number(n, rng)
    mean = np.exp(0.3 + _log_scale(x, z))
    return PrivateCohort({"X": _seen(x, rng), "z": z, "y": rng.poisson(mean).astype(float)}, mean)


def concurrent(n: int, rng: np.random.Generator) -> PrivateCohort:
    """A curve acts at the same point, and a number."""
    x, z = curves(n, rng), _number(n, rng)
    mean = x * (0.8 + 0.6 * np.sin(2 * np.pi * S)) + ((z - 44) / 12)[:, None] * 0.4 * (1 - S) + np.cos(2 * np.pi * S)
    return PrivateCohort({"X": _seen(x, rng), "z": z, "Y": mean + _errors(n, rng)}, mean)


def historical(n: int, rng: np.random.Generator) -> PrivateCohort:
    """A curve acts from its start up to each point, most what was just before, and a number."""
    x, z = curves(n, rng), _number(n, rng)
    before = S[:, None] <= S
    beta = 3.25 * np.exp(-(S - S[:, None]) / 0.3) * np.cos(np.pi * S)[:, None] + 1.3 * np.sin(np.pi * S)[:, None]
    mean = (x * W) @ np.where(before, beta, 0.0) + ((z - 44) / 12)[:, None] * 0.3 * (1 - S) + np.cos(2 * np.pi * S)
    return PrivateCohort({"X": _seen(x, rng), "z": z, "Y": mean + _errors(n, rng)}, mean)


def whole_and_concurrent(n: int, rng: np.random.Generator) -> PrivateCohort:
    """One curve acts as a whole, another one at the same point."""
    x, v = curves(n, rng), curves(n, rng)
    beta = 2.2 * np.sin(np.pi * S)[:, None] * np.cos(np.pi * S) + 1.5 * np.exp(-((S[:, None] - S) ** 2) / 0.05)
    mean = (x * W) @ beta + v * (0.6 * np.sin(2 * np.pi * S) + 0.3) + np.sin(2 * np.pi * S)
    return PrivateCohort({"X": _seen(x, rng), "V": 30 + 10 * v, "Y": mean + _errors(n, rng)}, mean)


SCENARIOS = {
    "ff + number + factor": Scenario(
        with_factor,
        "Y ~ ff(X) + z + C(g)",
        {"X": (-4.0, 4.0), "z": (0.0, 100.0), "g": ["a", "b", "c"], "Y": (-6.0, 6.0)},
    ),
    "lf + number": Scenario(of_number, "Y ~ lf(X) + z", {"X": (-4.0, 4.0), "z": (0.0, 100.0), "Y": (0.0, 100.0)}),
    "two curves + two numbers": Scenario(
        two_curves,
        "Y ~ ff(X) + ff(V) + z + a",
        {"X": (-5.0, 5.0), "V": (0.0, 100.0), "z": (0.0, 100.0), "a": (-5.0, 5.0), "Y": (-8.0, 8.0)},
    ),
    "zeros and ones: lf + number": Scenario(
        of_zeros_and_ones, "y ~ lf(X) + z", {"X": (-4.0, 4.0), "z": (0.0, 100.0), "y": (0.0, 1.0)}, "binomial"
    ),
    "counts: lf + number": Scenario(
        of_counts, "y ~ lf(X) + z", {"X": (-4.0, 4.0), "z": (0.0, 100.0), "y": (0.0, 50.0)}, "poisson"
    ),
    "concurrent + number": Scenario(
        concurrent,
        "Y ~ concurrent(X) + z",
        {"X": (-4.0, 4.0), "z": (0.0, 100.0), "Y": (-6.0, 6.0)},
        factors=False,
    ),
    "historical + number": Scenario(
        historical,
        "Y ~ ff(X, limits='s<=t') + z",
        {"X": (-4.0, 4.0), "z": (0.0, 100.0), "Y": (-6.0, 6.0)},
        factors=False,
    ),
    "ff + concurrent": Scenario(
        whole_and_concurrent,
        "Y ~ ff(X) + concurrent(V)",
        {"X": (-4.0, 4.0), "V": (0.0, 100.0), "Y": (-6.0, 6.0)},
        factors=False,
    ),
}
"""By name; bounds hold all but a few values, and are wide about the numbers."""
