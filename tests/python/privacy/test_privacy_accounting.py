"""Accounting, budgets and sources of noise: what is promised is what is spent, and the noise is what it says."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import stats

from fdadp.errors import PrivacyError
from fdadp.privacy import Budget, OpenDPNoise, SeededNoise, epsilon_from, rho_from
from fdadp.privacy.account._reservations import SAFETY, TOLERANCE, Binding
from fdadp.privacy.account.epsilon_mu_rho import cost_of, epsilon_from_closed_form
from fdadp.privacy.noise.sources import KINDS
from fdadp.privacy.replayed_loss import TapeEntry, _log_selection

BIND = Binding("data", "person", "zero-out")
S = 2.0**24


@pytest.mark.parametrize(("epsilon", "rho"), [(0.1, 3.21e-4), (0.5, 6.64e-3), (1, 0.02436), (2, 0.0882), (8, 1.0524)])
def test_rho_is_that_of_the_design(epsilon, rho):
    assert rho_from(epsilon, 1e-6) == pytest.approx(rho, rel=2e-3)


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 20.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-10])
def test_rho_is_the_largest_that_does_not_exceed_epsilon(epsilon, delta):
    rho = rho_from(epsilon, delta)
    assert epsilon_from(rho, delta) <= epsilon < epsilon_from(rho * (1 + 1e-5), delta)


@pytest.mark.parametrize("rho", [1e-5, 1e-3, 0.0243558757691, 0.3, 5.0])
@pytest.mark.parametrize("delta", [1e-4, 1e-6, 1e-9])
def test_opendp_converts_as_the_closed_form(rho, delta):
    assert epsilon_from(rho, delta) == pytest.approx(epsilon_from_closed_form(rho, delta), rel=1e-6)


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), "1", True])
def test_bad_epsilon_raises(epsilon):
    with pytest.raises(PrivacyError, match="epsilon must"):
        Budget(epsilon)


def test_hopelessly_large_epsilon_raises():
    with pytest.raises(PrivacyError, match="epsilon must be at most"):
        Budget(1e5, 1e-6)


@pytest.mark.parametrize("delta", [1, -0.1, float("nan"), "1e-6"])
def test_bad_delta_raises(delta):
    with pytest.raises(PrivacyError, match="delta must"):
        Budget(1.0, delta)


def test_a_shared_budget_refuses_the_fit_that_would_overspend():
    budget = Budget(1.0, 1e-6)
    first = budget.reserve(0.6, BIND)
    with pytest.raises(PrivacyError, match="nothing was spent"):
        budget.reserve(0.5, BIND)
    first.open()
    assert (budget.spent, budget.reserved) == (pytest.approx(0.6 * budget.total), 0)
    second = budget.reserve(0.4, BIND)
    second.close()  # never read: given back
    assert budget.left == pytest.approx(0.4 * budget.total)
    first.close()  # read: gone
    assert budget.spent == pytest.approx(0.6 * budget.total)
    with pytest.raises(PrivacyError, match="closed"):
        second.check(0.1)
    assert budget.spent_epsilon < 1
    for share in (0, -1, 1.5, float("nan"), "1", True):
        with pytest.raises(PrivacyError, match="share must"):
            budget.reserve(share, BIND)


def test_forgotten_reservations_come_back():
    budget = Budget(1.0)
    budget.reserve(1.0, BIND)
    assert budget.left == 1.0


def test_ten_tenths_fit_and_never_exceed_the_total():
    account = Budget(1.0).reserve(1.0, BIND)
    spent = 0.0
    for _ in range(10):
        spent += account.check(0.1)
        account.spend(0.1, 0.1 * SAFETY)
    assert spent <= 1.0
    with pytest.raises(PrivacyError, match="has left"):
        account.check(1e-6)
    assert (1 + TOLERANCE) ** 2 * SAFETY < 1


@pytest.mark.parametrize(
    "other", [("x", "person", "zero-out"), ("data", "row", "zero-out"), ("data", "person", "replace")]
)
def test_a_budget_is_bound_to_data_unit_and_adjacency(other):
    budget = Budget(1.0)
    budget.reserve(0.1, BIND).open()
    with pytest.raises(PrivacyError, match="bound to another"):
        budget.reserve(0.1, Binding(*other))


def test_copies_do_not_double_a_budget():
    budget = Budget(1.0)
    assert copy.deepcopy(budget) is budget
    assert copy.copy(budget) is budget
    budget.reserve(0.25, BIND).open()
    seen = pickle.loads(pickle.dumps(budget))  # fits that share it can be saved; the copy can only be looked at
    assert (seen.epsilon, seen.spent, seen.left) == (1.0, 0.25, 0.75)
    with pytest.raises(PrivacyError, match="belongs to the process"):
        seen.reserve(0.1, BIND)
    assert "copy from another process" in repr(seen)
    assert budget.spent == 0.25
    assert "Binding(unit" in repr(BIND)  # the identity of the data is not shown


# ------------------------------------------------------------------ noise


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("amount", [1e-6, 3e-4, 0.0243, 1.0, 8.0])
@pytest.mark.parametrize("sensitivity", [S, 2 * S, 3.0, 2.0**8])
def test_the_map_is_at_most_the_amount_and_close(kind, amount, sensitivity):
    columns = 2 if kind == "symmetric" else 1
    secure = OpenDPNoise().prepare(kind, 3, sensitivity, amount, columns)
    seeded = SeededNoise(0).prepare(kind, 3, sensitivity, amount, columns)
    sizes = {"sensitivity": sensitivity, "scale": secure.scale, "spent": secure.spent}
    spent = cost_of("gdp", kind, **sizes) if kind == "gaussian" else secure.spent  # its ρ is lower by the lattice's 16
    assert amount * (1 - 1e-5 if kind in ("gaussian", "laplace") else 0.98) < spent <= amount
    assert secure.spent <= amount
    assert seeded.scale == pytest.approx(secure.scale, rel=1e-7)
    assert seeded.spent <= amount
    assert secure.sd > 0


@pytest.mark.parametrize("source", [OpenDPNoise(), SeededNoise(0)])
def test_senseless_noise_is_refused(source):
    for args in [("cauchy", 1, S, 1.0), ("gaussian", 0, S, 1.0), ("gaussian", 1, 0.0, 1.0), ("laplace", 1, S, np.nan)]:
        with pytest.raises(PrivacyError):
            source.prepare(*args)
    with pytest.raises(PrivacyError, match="does not fit"):
        source.prepare("gaussian", 1, S, 1e-30)


LAWS = {"gaussian": stats.norm(), "laplace": stats.laplace()}


@pytest.mark.parametrize("kind", LAWS)
def test_seeded_noise_has_its_law(kind):
    sampler = SeededNoise(1).prepare(kind, 20_000, S, 0.5)
    centre = np.arange(20_000) * 1000
    noise = (sampler(centre) - centre) / sampler.scale
    assert stats.kstest(noise, LAWS[kind].cdf).pvalue > 0.001
    assert noise.std() * sampler.scale == pytest.approx(sampler.sd, rel=0.03)
    again = SeededNoise(1).prepare(kind, 20_000, S, 0.5)
    np.testing.assert_array_equal(again(centre), sampler.scale * 0 + (noise * sampler.scale).round() + centre)


@pytest.mark.parametrize("kind", LAWS)
def test_opendp_noise_has_its_law(kind):
    """Fresh randomness: the limit is so wide that it fails by chance once in 10^9 runs."""
    sampler = OpenDPNoise().prepare(kind, 3000, S, 0.5)
    noise = sampler(np.full(3000, 5 * 10**12)) - 5 * 10**12
    assert stats.kstest(noise / sampler.scale, LAWS[kind].cdf).pvalue > 1e-9
    assert len(set(noise.tolist())) > 2900


@pytest.mark.parametrize("kind", LAWS)
def test_a_mechanism_that_was_made_before_draws_anew(kind):
    """Releases of one size and scale have one mechanism of OpenDP, in all threads."""

    def drawn(_):
        return OpenDPNoise().prepare(kind, 3, 1e9, 0.01)(np.zeros(3, dtype=np.int64)).tolist()

    with ThreadPoolExecutor(4) as pool:
        found = [value for values in pool.map(drawn, range(40)) for value in values]
    assert len(set(found)) > 115  # of 120 in some 10^10


@pytest.mark.parametrize("source", [OpenDPNoise(), SeededNoise(3)])
@pytest.mark.parametrize("kind", ["gumbel", "exponential"])
def test_selection_has_its_law(source, kind):
    exact = np.array([0, 2**23, 2**24, 3 * 2**22])
    sampler = source.prepare(kind, 4, S, 1.5)
    draws = np.bincount([int(sampler(exact)[0]) for _ in range(2000)], minlength=4)
    entry = TapeEntry(kind, 4, S, 1.5, sampler.scale, tuple(exact.tolist()), (0,))
    p = np.exp(_log_selection(entry))
    assert p.sum() == pytest.approx(1, abs=1e-12)
    assert stats.chisquare(draws, 2000 * p).pvalue > 1e-9
