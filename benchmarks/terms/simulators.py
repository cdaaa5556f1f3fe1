"""Simulated regressions of curves with known effects, and with errors that are independent, smooth, or both.

Each simulator takes the number of records, a generator and the share of the errors' variance that is smooth along the
curve, and returns a :class:`Simulated`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fdadp import terms
from fdadp.functional.quadrature import quadrature_weights

T = np.linspace(0, 1, 41)


@dataclass(frozen=True)
class Simulated:
    """A data set with its truth.

    Attributes
    ----------
    data : dict
        Columns, the response ``Y`` among them; all curves on the grid :data:`T`.
    model : list
        Terms to fit.
    term : str
        The term whose coefficient function is judged.
    effect : callable
        Its truth, of the points of its axes and t, broadcast.
    mean : ndarray of shape (n, 41)
        ``E[Y | X]``.
    null : str
        A scalar without effect.
    """

    data: dict[str, Any]
    model: list[Any]
    term: str
    effect: Callable[..., Any]
    mean: Any
    null: str = "w"


def _white(n: int, rng: np.random.Generator) -> Any:
    return rng.normal(size=(n, T.size))


def waves(n: int, rng: np.random.Generator, smooth: float) -> Simulated:
    """Five components of X, a surface of sines, errors of three waves: the design's own simulator."""
    waves = np.stack([np.ones(T.size)] + [np.sqrt(2) * f(k * np.pi * T) for k in (2, 4) for f in (np.sin, np.cos)], 1)
    x = rng.normal(size=(n, 5)) * [1, 0.8, 0.6, 0.4, 0.3] @ waves.T + 0.2 * _white(n, rng)

    def effect(s: Any, t: Any) -> Any:
        return 2 * np.sin(np.pi * s) * np.cos(np.pi * t) + s * t

    mean = 1 + np.sin(np.pi * T) + (x * quadrature_weights(T, "trapezoid")) @ effect(T[:, None], T[None])
    errors = rng.normal(size=(n, 3)) * [1, 0.7, 0.5] @ waves[:, :3].T / np.sqrt(1.74)
    y = mean + 0.5 * (np.sqrt(smooth) * errors + np.sqrt(1 - smooth) * _white(n, rng))
    model = [terms.ff("X", k=(7, 7), m=((2, 2), (2, 2))), terms.linear("w")]
    return Simulated({"X": x, "w": rng.normal(size=n), "Y": y}, model, "ff(X)", effect, mean)


def ridge(n: int, rng: np.random.Generator, smooth: float) -> Simulated:
    """A ridge along s = t, Matérn errors whose size doubles from small to large x."""
    k = np.arange(1, 9)
    x = rng.normal(size=(n, 8)) / k @ (np.sqrt(2) * np.cos(np.pi * np.outer(k - 1, T)))

    def effect(s: Any, t: Any) -> Any:
        return 3 * np.exp(-((s - t) ** 2) / (2 * 0.2**2))

    z = rng.uniform(-1, 1, size=n)
    mean = np.cos(2 * T) + np.outer(z, T**2) + (x * quadrature_weights(T, "trapezoid")) @ effect(T[:, None], T[None])
    apart = np.abs(T[:, None] - T) / 0.25
    root = np.linalg.cholesky((1 + np.sqrt(3) * apart) * np.exp(-np.sqrt(3) * apart) + 1e-9 * np.eye(T.size))
    errors = np.sqrt(smooth) * rng.normal(size=(n, T.size)) @ root.T + np.sqrt(1 - smooth) * _white(n, rng)
    y = mean + 0.7 * errors * (2 ** (z / 2))[:, None]
    model = [terms.ff("X", k=(8, 8), m=((2, 2), (2, 2))), terms.linear("z"), terms.linear("w")]
    return Simulated({"X": x, "z": z, "w": rng.normal(size=n), "Y": y}, model, "ff(X)", effect, mean)


def ages(n: int, rng: np.random.Generator, smooth: float) -> Simulated:
    """A smooth effect of a number; errors are skewed levels and slopes."""
    z = rng.uniform(size=n)

    def effect(at: Any, t: Any) -> Any:
        return (np.sin(2 * np.pi * at) - np.sin(2 * np.pi * z).mean()) * (0.5 + t)

    mean = T**2 + effect(z[:, None], T[None])
    level, slope = rng.gamma(2, size=(2, n, 1)) - 2
    errors = np.sqrt(smooth) * (0.6 * level + 0.4 * slope * (2 * T - 1)) / np.sqrt(2 * (0.36 + 0.16 / 3))
    y = mean + 0.6 * (errors + np.sqrt(1 - smooth) * _white(n, rng))
    model = [terms.s("z", k=(8, 5), bs="ps", m=(2, 2)), terms.linear("w")]
    return Simulated({"z": z, "w": rng.normal(size=n), "Y": y}, model, "s(z)", effect, mean)


def walks(n: int, rng: np.random.Generator, smooth: float) -> Simulated:
    """Random walks, a plane with a fold, errors of Ornstein and Uhlenbeck with heavy tails."""
    x = np.cumsum(rng.normal(size=(n, T.size)), axis=1) / np.sqrt(T.size)

    def effect(s: Any, t: Any) -> Any:
        return 1.5 * (s - 0.5) * (1 + t) + np.maximum(t - 0.5, 0) * s

    mean = np.sin(3 * T) + (x * quadrature_weights(T, "trapezoid")) @ effect(T[:, None], T[None])
    root = np.linalg.cholesky(np.exp(-np.abs(T[:, None] - T) / 0.3) + 1e-9 * np.eye(T.size))
    sizes = np.sqrt(3 / rng.chisquare(5, size=(n, 1)))
    errors = sizes * (np.sqrt(smooth) * rng.normal(size=(n, T.size)) @ root.T + np.sqrt(1 - smooth) * _white(n, rng))
    model = [terms.ff("X", k=(7, 7), m=((2, 2), (2, 2))), terms.linear("w")]
    return Simulated({"X": x, "w": rng.normal(size=n), "Y": mean + 0.4 * errors}, model, "ff(X)", effect, mean)


SIMULATORS = {"waves": waves, "ridge": ridge, "ages": ages}

UNSEEN = {"walks": walks}
"""Nothing was chosen on these."""
