"""Simulated curves whose errors are smooth, uneven, and shared within groups; and the model that fits them."""

from __future__ import annotations

import numpy as np

from fdadp import FunctionalRegression, terms

T = np.linspace(0, 1, 21)
GRIDS = {"X": T, "Y": T}


def cohort(n, seed, smooth=0.8, group=1):
    """Curves with a scalar's effect; errors of levels and slopes along the curve, larger where |z| is, and white ones.

    With `group` above 1, as many curves in a row share their smooth error.
    """
    rng = np.random.default_rng(seed)
    waves = np.stack([np.ones(T.size), np.sin(2 * np.pi * T), np.cos(2 * np.pi * T)])
    x = rng.normal(size=(n, 3)) @ waves
    z = np.repeat(rng.normal(size=-(-n // group)), group)[:n]
    w = np.repeat(rng.normal(size=-(-n // group)), group)[:n]
    mean = T + np.outer(z, 1 - T) + (x / T.size) @ np.outer(np.sin(np.pi * T), T)
    level = np.repeat(rng.normal(size=(-(-n // group), 2)), group, axis=0)[:n]
    errors = np.sqrt(smooth) * level @ np.stack([np.ones(T.size), 2 * T - 1]) * (0.5 + np.abs(z))[:, None]
    y = mean + 0.5 * (errors + np.sqrt(1 - smooth) * rng.normal(size=(n, T.size)))
    return {"X": x, "z": z, "w": w, "Y": y, "who": np.arange(n) // group}, mean


def model(*more, **settings):
    return FunctionalRegression([terms.ff("X"), terms.linear("z"), terms.linear("w"), *more], **settings)


def rows(data, which):
    return {name: v[which] for name, v in data.items()}
