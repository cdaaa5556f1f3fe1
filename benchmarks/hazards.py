"""Persons with curves whose log-odds of an event in each period are known: for benchmarks and tests alike."""

from __future__ import annotations

import numpy as np

PERIODS, S = 8, np.linspace(0, 1, 25)


def followed_by_period(n: int, rng: np.random.Generator) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """Log-odds are linear in the mean of a curve and in age, and grow in time.

    Returns
    -------
    table : dict of ndarray
        Curves X (n, 25), ages (n,), times from 1 to 8 and whether they ended with the event (n,).
    hazards : ndarray of shape (n, 8)
    seen : ndarray of shape (n, 8)
        Periods in which each person was followed.
    """
    scores = rng.normal(size=(n, 3)) / np.array([1, 1.5, 2.5])
    X = scores @ np.stack([np.ones(S.size), np.sin(2 * np.pi * S), np.cos(2 * np.pi * S)])
    age, period = rng.uniform(-1, 1, n), np.arange(PERIODS)
    hazards = 1 / (1 + np.exp(-((0.9 * X.mean(axis=1) + 0.6 * age)[:, None] - 1.85 + 0.1 * period)))
    event = rng.uniform(size=hazards.shape) < hazards
    died = event.any(axis=1)
    time = np.where(died, event.argmax(axis=1) + 1.0, PERIODS)
    return {"X": X, "age": age, "time": time, "died": died * 1.0}, hazards, period < time[:, None]
