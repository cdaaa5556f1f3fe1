"""What a contract fixes and parties insist on: the cap on persons, and that seeded runs are no releases."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("cryptography", reason="cryptography is not installed: pip install '.[federated]'")

from federation_tools import contract

from fdadp.errors import PrivacyError
from fdadp.federated import Contract, federated_models, fit_in_clear, fit_together
from fdadp.federated.owners.data_owner import ContractProgram
from fdadp.federated.owners.one_process import owners_of, run_to_end
from fdadp.learners import DPPCA
from fdadp.privacy.noise.distributed import DistributedNoise, NextRound, noise_source

D = 3
PCA = {"epsilon": 1.0, "delta": 1e-6, "n_components": 1, "data_norm": 3.0, "n_features": D}
ROWS = np.random.default_rng(0).normal(size=(600, D)) * [1.5, 0.3, 0.3]


def parts(X: np.ndarray = ROWS, owners: int = 3) -> list[tuple[Any, ...]]:
    return [(part,) for part in np.array_split(X, owners)]


# ---------------------------------------------------------------- seeds


def test_a_seeded_run_is_no_release_for_any_party() -> None:
    owners = owners_of(contract(), parts(), random_state=0)
    run = run_to_end(owners)
    model = federated_models.fit(run.contract, None, run.totals_)
    assert not model.ledger_.for_release
    assert "not for release" in model.ledger_.headline
    assert "NOT FOR RELEASE" in model.ledger_.statement
    for party in owners:
        assert party.result_.ledger_.to_dict() == model.ledger_.to_dict()
        assert not any(release.secure for release in party.result_.ledger_.releases)


@pytest.mark.parametrize("seed", [None, 0])
def test_a_run_in_clear_is_no_release(seed: int | None) -> None:
    """Seeded or not: whoever calls it has seen every row and every share."""
    terms = Contract("pca", PCA, 3, n_max=1000)
    model = fit_in_clear(terms, parts(), random_state=seed)
    assert not model.ledger_.for_release and "not for release" in model.ledger_.headline


def test_an_owner_seeds_no_share_under_terms_for_release() -> None:
    with pytest.raises(PrivacyError, match="random_state must be None unless the contract is a simulation"):
        ContractProgram(contract(), parts()[0], random_state=0)


def test_simulation_is_part_of_the_terms() -> None:
    """Nobody can be made to believe that a simulation was none: messages hold the digest."""
    one = contract(run="one", simulation=True)
    assert replace(one, simulation=False).digest != one.digest


def test_real_runs_are_for_release_and_say_what_they_rest_on() -> None:
    model = fit_together(contract(), parts())
    assert model.ledger_.for_release and "not for release" not in model.ledger_.headline
    for words in (
        "Owners who collude",
        "under this contract alone",
        "Only an owner's own study keeps that account",
        "breaks X25519 later",
    ):
        assert words in model.ledger_.statement


# ---------------------------------------------------------------- the cap on persons


def limited(rows: np.ndarray, n_max: int, **settings: Any) -> np.ndarray:
    """An owner's exact sum, as its share would carry it, from the kernel."""

    class Silent(DistributedNoise):
        def _share(self, sd: float, size: int) -> np.ndarray:
            return np.zeros(size, dtype=np.int64)

    estimator = DPPCA(**{k: v for k, v in {**PCA, **settings}.items() if k != "n_features"})
    with pytest.raises(NextRound) as waits, noise_source(Silent(owners=3, honest=2, n_max=n_max)):
        estimator.fit(rows)
    assert waits.value.share is not None
    return waits.value.share


corners = st.sampled_from([-3.0, 3.0, 0.0, 1e30, -1.7, np.nan])


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(corners, corners, corners), min_size=2, max_size=12),
    person=st.tuples(corners, corners, corners),
    n_max=st.integers(1, 6),
    at=st.integers(0, 12),
)
def test_the_cap_moves_no_two_sums_further_apart(rows: Any, person: Any, n_max: int, at: int) -> None:
    """One person more, anywhere in the table of an owner that has more than n_max: within the declared sensitivity."""
    X = np.array(rows)
    with_person = np.insert(X, min(at, len(X)), person, axis=0)
    moved = (limited(with_person, n_max) - limited(X, n_max)).tolist()
    assert sum(v * v for v in moved) <= 4**24
    assert max(map(abs, limited(with_person, n_max).tolist())) <= n_max * 2**24


def shares_of(terms: Contract, data: list[tuple[Any, ...]]) -> list[np.ndarray]:
    return [
        federated_models.fit(replace(terms, simulation=True), one, [], 1000 + i).share for i, one in enumerate(data)
    ]


def test_with_a_declared_n_rows_beyond_the_cap_are_left_out_by_position() -> None:
    """Bit for bit the shares of an owner that has the first n_max rows only: never garbage, never an error."""
    terms = contract(n_max=50, settings={**PCA, "n": 150})
    data, few = parts(), [(X[:50],) for (X,) in parts()]
    for share, other in zip(shares_of(terms, data), shares_of(terms, few), strict=True):
        assert share.tolist() == other.tolist()
    blanked = [X.copy() for (X,) in data]
    blanked[0][10] = np.nan
    moved = (shares_of(terms, [(X,) for X in blanked])[0] - shares_of(terms, data)[0]).tolist()
    assert 0 < sum(v * v for v in moved) <= 4**24
    model = fit_together(terms, data, random_state=0)
    assert abs(model.components_[0, 0]) > 0.9
    assert model.noisy_n_ == pytest.approx(150, abs=6 * model.ledger_.releases[0].sd / (3 / 4) ** 2)


@pytest.mark.filterwarnings("ignore:what was released speaks against:fdadp.errors.PublicInputWarning")  # they are far
@pytest.mark.parametrize("n_max", [1, 20, 100])
def test_more_persons_than_the_cap_never_wrap_around(n_max: int) -> None:
    """Where n is private: 600 persons of three owners and a cap of few; totals fit their slot, and keep their sign."""
    settings = {**PCA, "epsilon": 100.0}  # so that noise hides nothing here
    terms = contract(n_max=n_max, settings=settings)
    waits = federated_models.fit(terms, None, [])
    most, far = 3 * n_max * 2**24, ROWS + np.array([3.0, 0, 0])
    run = run_to_end(owners_of(terms, parts(far), random_state=0))
    (total,) = run.totals_
    (release,) = federated_models.fit(run.contract, None, run.totals_).ledger_.releases
    sd = release.sd / release.clip * 2**24
    assert np.abs(total).max() <= most + 6 * sd < 2 ** (waits.width - 1)
    exact = np.sum([limited(X, n_max, epsilon=100.0) for (X,) in parts(far)], axis=0)
    assert np.abs(total - exact).max() < 6 * sd
    assert total[0] > most / 4  # of squares: 0.1 gave what was left of it modulo a power of two


def test_totals_always_fit_their_slot() -> None:
    """The worst sums of all owners, and noise ten standard deviations off: w bits are enough, and not many too many."""
    for owners, n_max, amount in ((2, 1, 1.0), (3, 1000, 0.02), (100, 17, 1e-4), (1000, 10**6, 5.0)):
        noise = DistributedNoise(owners=owners, honest=owners - 1, n_max=n_max, listen=True)
        sampler = noise.prepare("gaussian", 2, 2.0**24, amount)
        with pytest.raises(NextRound) as waits:
            sampler(np.zeros(2, dtype=np.int64))
        worst = owners * n_max * 2**24 + 10 * sampler.sd
        assert worst <= 2 ** (waits.value.width - 1) < 2 * worst + 1 and math.log2(worst) < 61
