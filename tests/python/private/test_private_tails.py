"""Noise in pure ε has exponential tails: no single release far out may spoil a fit, and no seed that once did."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from fdadp import AdditiveFunctionOnFunction, Privacy, simulate_affr
from fdadp.audit.replay import drawing_from
from fdadp.privacy import SeededNoise

GRID = np.linspace(0, 1, 31)
SIZES = (
    *("root mean square of X", "location of X", "root mean square of Y", "location of Y", "scale of Y"),
    *("shares outside the bounds", "scale of residuals"),
)


class FarOut(SeededNoise):
    """Noise of one release, and of no other, that is so many standard deviations off."""

    __slots__ = ("at", "count", "sds")

    def __init__(self, at, sds):
        super().__init__(3)
        self.at, self.sds, self.count = at, sds, 0

    def prepare(self, *args, **more):
        sampler = super().prepare(*args, **more)
        self.count += 1
        if self.count - 1 != self.at:
            return sampler
        off = np.int64(np.rint(self.sds * sampler.sd))
        return dataclasses.replace(sampler, draw=lambda exact: np.asarray(exact + off))


def explained(scenario, n, seed, noise=None, **privacy):
    """Share of the explainable variance, and the names of the releases."""
    sim = simulate_affr(scenario, n + 500, np.random.default_rng(seed), n_points=31)
    x, y, f = sim.X.data_matrix[..., 0], sim.Y.data_matrix[..., 0], sim.mean_function[n:]
    model = AdditiveFunctionOnFunction(
        privacy=Privacy(1.0, n=n, random_state=seed, **privacy), bounds={"X": (-4.5, 4.5), "Y": (-8, 8)}, progress=False
    )
    with drawing_from(model, noise):
        model.fit(x[:n], y[:n], s=GRID, t=GRID)
    error = ((model.predict(np.clip(x[n:], -4.4, 4.4)) - f) ** 2).sum()
    return 1 - error / ((f - f.mean(axis=0)) ** 2).sum(), [release.name for release in model.ledger_.releases]


@pytest.mark.statistics
@pytest.mark.filterwarnings("ignore::fdadp.errors.FdadpWarning")
@pytest.mark.parametrize("sds", [-6.0, 6.0])
@pytest.mark.parametrize(("scenario", "n"), [(2, 300), (3, 300), (3, 1000)])
def test_no_size_or_place_that_is_six_sds_off_spoils_a_fit(scenario, n, sds):
    """Shrunk too little, a shift four sds off once left -9.5 of a fit like these."""
    _, names = explained(scenario, n, 5)
    spoiled = {name: explained(scenario, n, 5, FarOut(names.index(name), sds))[0] for name in SIZES if name in names}
    assert len(spoiled) >= 5 and min(spoiled.values()) > 0, spoiled
    assert spoiled["shares outside the bounds"] > 0.3  # which no prediction needs


@pytest.mark.filterwarnings("ignore::fdadp.errors.FdadpWarning")
@pytest.mark.parametrize(
    ("scenario", "n", "seed", "least"), [(3, 300, 21011, 0.5), (1, 1000, 30005, 0.8), (2, 1000, 30003, 0.7)]
)
def test_cohorts_whose_fits_once_failed(scenario, n, seed, least):
    assert explained(scenario, n, seed)[0] > least


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::fdadp.errors.FdadpWarning")
@pytest.mark.parametrize("scenario", [1, 2, 3])
def test_the_worst_of_forty_fits_is_better_than_a_mean_curve(scenario):
    assert min(explained(scenario, 300, seed)[0] for seed in range(5000, 5040)) > 0
