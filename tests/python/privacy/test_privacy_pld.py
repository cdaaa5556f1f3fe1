"""What ledgers say they spent, added up by another library: privacy loss distributions of Google's dp_accounting.

Its distributions are rounded up (pessimistic), so a right total is above the promised δ by rounding alone, 10⁻⁴ of it.
"""

from __future__ import annotations

import collections
import dataclasses
import math

import numpy as np
import pytest
from learner_registry import LEARNERS, toy

from fdadp import AdditiveFunctionOnFunction, Privacy, PrivateFPCA, choose_privately, simulate_affr
from fdadp.learners import DPLinearRegression
from fdadp.privacy import Budget, Cohort, Ledger, OpenDPNoise
from fdadp.privacy.account._reservations import counted

pytest.importorskip("dp_accounting", reason="dp-accounting is not installed: pip install --group dev")
from dp_accounting.pld import privacy_loss_distribution as pld

pytestmark = pytest.mark.statistics
BOUNDS = {"X": (-4.5, 4.5), "Y": (-8.0, 8.0)}


def delta_of(ledger: Ledger) -> float:
    """δ at the ledger's ε of its releases together, from the scale and the sensitivity of each."""
    kinds = collections.Counter()
    for r in counted(ledger.releases):
        assert r.delta is None
        gaussian = r.noise.startswith("Gaussian")
        kinds[gaussian, round(r.scale / r.sensitivity if gaussian else math.sqrt(8 * r.rho), 9)] += 1
    total = None
    for (gaussian, number), times in kinds.items():
        one = (
            pld.from_gaussian_mechanism(number, value_discretization_interval=1e-4) if gaussian else two_points(number)
        )
        one = one.self_compose(times) if times > 1 else one
        total = one if total is None else total.compose(one)
    return total.get_delta_for_epsilon(ledger.epsilon)


def two_points(eta: float) -> pld.PrivacyLossDistribution:
    """The worst pair of a selection of range η, in the middle: log-ratios of ±η/2."""
    high, low = (-math.log1p(math.exp(sign * eta / 2)) for sign in (-1, 1))
    return pld.from_two_probability_mass_functions({0: low, 1: high}, {0: high, 1: low})


def regression() -> Ledger:
    sim = simulate_affr(1, 300, np.random.default_rng(5), n_points=31)
    model = AdditiveFunctionOnFunction(privacy=Privacy(1.0, 1e-6, n=300, random_state=0), bounds=BOUNDS, progress=False)
    return model.fit(sim.X, sim.Y).ledger_


def components() -> Ledger:
    sim = simulate_affr(1, 300, np.random.default_rng(5), n_points=31)
    privacy = Privacy(4.0, 1e-6, adjacency="replace", n=300, random_state=0)
    return PrivateFPCA(privacy=privacy, bounds=BOUNDS["Y"]).fit(sim.Y).ledger_


def choice() -> Ledger:
    X, y = toy("regressor")
    lines = [DPLinearRegression(bounds=(-1, 1), bounds_y=(-b, b)) for b in (1, 5)]
    privacy = Privacy(1.0, 1e-6, n=len(X), random_state=0)
    return choose_privately(lines, X, y, privacy, clip=1.0, allow_useless=True).ledger


FITS = {"regression": regression, "components": components, "choice": choice}
FITS |= {
    str(entry): lambda entry=entry: entry.make(pure=False).fit(*toy(entry.kind)).ledger_
    for entry in LEARNERS
    if entry.gaussian and entry.shared and not entry.stronger
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FITS)
def test_what_a_fit_spent_is_what_it_promised(name):
    ledger = FITS[name]()
    if ledger.releases[0].delta is not None:
        pytest.skip("one release, accounted for by itself")
    delta = delta_of(ledger)
    assert delta <= ledger.delta * (1 + 1e-4)
    used = ledger.details["spent by its releases"] / ledger.details["total"]
    if ledger.mu is not None and used > 0.999 and all(r.noise.startswith("Gaussian") for r in ledger.releases):
        assert delta >= ledger.delta * 0.99  # nothing was given away


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (4.0, 1e-6), (1.0, 1e-9)])
def test_releases_of_a_cohort(epsilon, delta):
    c = Cohort(np.ones((50, 2)), budget=Budget(epsilon, delta), n=50, noise=OpenDPNoise())
    for share in (0.01, 0.09, 0.3, 0.6):
        c.sum(lambda r: r[0], clip=2.0, share=share, name=f"{share}")
    assert delta * 0.99 <= delta_of(c.ledger) <= delta * (1 + 1e-4)


def test_noise_that_is_too_small_is_seen():
    c = Cohort(np.ones((50, 2)), budget=Budget(1.0, 1e-6), n=50, noise=OpenDPNoise())
    for share in (0.25, 0.75):
        c.sum(lambda r: r[0], clip=2.0, share=share, name=f"{share}")
    less = [dataclasses.replace(r, scale=0.99 * r.scale) for r in c.releases]
    assert delta_of(dataclasses.replace(c.ledger, releases=less)) > 1.05e-6
