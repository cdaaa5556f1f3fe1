"""Released shares: sensitivity by brute force, value, noise, ledger, and the warning made of them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from privacy_tools import MODES, worst_ratio

from fdadp.errors import PrivacyError, PublicInputWarning
from fdadp.privacy import Budget, Cohort, SeededNoise
from fdadp.privacy.clipped_shares import ReleasedShares, release_shares, warn_of_clipping

ROWS = np.random.default_rng(0).uniform(size=(4000, 2))


def cohort(epsilon=1.0, *, pure=False, adjacency="zero-out", noise=None, rows=ROWS, persons=None):
    n = None if adjacency == "add-remove" else 4000
    budget = Budget(epsilon, None if pure else 1e-6)
    return Cohort(rows, groups=persons, budget=budget, adjacency=adjacency, n=n, noise=noise or SeededNoise(0))


def beyond(rows):
    return rows[0] > 0.75


@pytest.mark.parametrize(("pure", "adjacency"), MODES)
@pytest.mark.parametrize("grouped", [False, True])
def test_nobody_moves_them_by_more_than_declared(pure, adjacency, grouped):
    """Rows with NaN, infinity and 1e30 among them; functions that leave [0, 1]; people deleted, blanked, exchanged."""
    functions = {
        "inside": (lambda rows: np.abs(rows[0]) > 0.9, 2),
        "outside [0, 1]": (lambda rows: rows[0], 2),
        "one a row": (lambda rows: rows[0][:, 0], 1),
    }
    ratios = {
        name: worst_ratio(
            lambda c, f=f, k=k: release_shares(c, f, n=9, share=0.1, name="b", size=k),
            pure=pure,
            adjacency=adjacency,
            grouped=grouped,
        )
        for name, (f, k) in functions.items()
    }
    assert max(ratios.values()) <= 1
    assert ratios["inside"] > 0.9  # the bound is attained: no noise is wasted


@pytest.mark.parametrize(("pure", "adjacency"), MODES)
def test_shares_are_the_true_ones_up_to_the_noise_that_they_state(pure, adjacency):
    true = (ROWS > 0.75).mean(axis=0)
    errors = []
    for seed in range(60):
        found = release_shares(
            cohort(pure=pure, adjacency=adjacency, noise=SeededNoise(seed)), beyond, n=4000, share=0.5, name="b", size=2
        )
        errors.append((found.value - true) / found.sd)
        assert found.sd > 0
    assert 0.85 < np.std(errors) < 1.15 and abs(np.mean(errors)) < 0.3


@pytest.mark.parametrize("pure", [False, True])
def test_without_privacy_they_are_exact_and_with_it_never(pure):
    true = (ROWS > 0.75).mean(axis=0)
    exact = release_shares(cohort(1e9 if pure else 3e3, pure=pure), beyond, n=4000, share=1.0, name="b", size=2)
    np.testing.assert_allclose(exact.value, true, atol=1e-9 if pure else 1e-5)
    noisy = release_shares(cohort(pure=pure), beyond, n=4000, share=1.0, name="b", size=2)
    assert (np.abs(noisy.value - true) > 1e-9).all()


def test_the_centre_halves_the_noise():
    centred = release_shares(cohort(), beyond, n=4000, share=0.1, name="b", size=2)
    plain = cohort().histogram(lambda rows: (rows[0] > 0.75) / 2, share=0.1, name="h")
    assert centred.sd * 4000 == pytest.approx(plain.sd * np.sqrt(2) / 2)


def test_people_count_once_and_useless_rows_as_half():
    rows = np.array([[0.0], [1.0], [1.0], [np.nan], [np.inf], [1e30]])
    persons = ["a", "a", "b", "c", "d", "e"]
    c = Cohort(rows, groups=persons, budget=Budget(1e9, None), n=5, noise=SeededNoise(0))
    value = release_shares(c, lambda r: r[0], n=5, share=1.0, name="v").value
    assert value[0] == pytest.approx((0.5 + 1 + 0.5 + 1 + 1) / 5, abs=1e-6)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"n": 0}, "n must be"),
        ({"n": None}, "n must be"),
        ({"size": 0}, "size must be"),
        ({"size": 3}, "size must be"),
        ({"share": 2.0}, "share"),
    ],
)
def test_bad_settings_spend_nothing(settings, text):
    c = cohort()
    with pytest.raises(PrivacyError, match=text):
        release_shares(c, beyond, **{"n": 4000, "share": 0.1, "name": "b", "size": 2} | settings)
    assert c.reads == 0 and c.left == 1


def test_one_entry_in_the_ledger_and_its_share_is_spent():
    c = cohort()
    release_shares(c, beyond, n=4000, share=0.25, name="share beyond the bounds", size=2)
    [entry] = c.releases
    assert entry.name == "share beyond the bounds" and entry.share == 0.25 and entry.clip == pytest.approx(0.5**0.5)
    assert c.left == pytest.approx(0.75) and entry.spent <= 0.25 * c.amount


def test_a_warning_comes_from_what_is_surely_there():
    shares = ReleasedShares(np.array([0.31, 0.07, -0.1]), 0.02)
    np.testing.assert_allclose(shares.surely, [0.25, 0.01, 0.0])
    with pytest.warns(PublicInputWarning, match="at least 25 % of the values of Y were clipped: widen"):
        warn_of_clipping(shares.surely[0], "the values of Y", "widen the bounds")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_clipping(shares.surely[1], "the values of Y", "widen the bounds")


@pytest.mark.parametrize("delta", [1e-6, None])
def test_chance_warns_of_clipping_once_in_a_thousand_releases(delta):
    alarms, k = 0, 500
    for seed in range(40):
        made = Cohort(np.zeros(400), budget=Budget(1.0, delta), n=400, noise=SeededNoise(seed))
        shares = release_shares(made, lambda rows: np.zeros((len(rows[0]), k)), n=400, share=0.5, name="none", size=k)
        alarms += int((shares.surely > 0).sum())
    assert 0 < alarms <= 40  # the normal law says 27, Laplace's 17; 2.5 sds of Laplace noise gave 292
