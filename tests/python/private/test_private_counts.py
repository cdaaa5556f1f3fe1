"""The histogram of counts that a private fit starts from: its sensitivity, its noise, and what it decides."""

from __future__ import annotations

import itertools
import math
import weakref

import numpy as np
import pytest
from test_families_replayed import BOUNDS, GRID, NASTY, model_of, pair

from fdadp import Privacy, ScalarRegression
from fdadp.audit import black_box_audit
from fdadp.audit.replay import replay_audit
from fdadp.privacy import Budget, Cohort, SeededNoise
from fdadp.privacy.kernel._kernel import Kernel
from fdadp.private.release import dp_aff_of_families
from fdadp.private.rows.count_and_binary_rows import BoundedResponse, BoundedRows, bins_of
from fdadp.solve.form.families_by_name import FAMILIES

POISSON = FAMILIES["poisson"]


def rows_of(bounds):
    rows = BoundedRows.__new__(BoundedRows)
    rows.bounded = BoundedResponse(POISSON, bounds)
    return rows


@pytest.mark.parametrize("bounds", [(0.0, 1.0), (0.0, 20.0), (3.0, 9.0), (0.0, 1e6)])
def test_a_person_is_in_one_bin_or_in_none(bounds):
    """Whatever the row holds: entries add to 1 or are NaN, which the kernel counts as no mass."""
    y = np.array([*NASTY["poisson"], -0.0, 1e308, 0.5, 3.0, 9.0, bounds[1], bounds[1] + 1])
    found = rows_of(bounds).count_bins((y,))
    lost = np.isnan(found).any(axis=1)
    np.testing.assert_array_equal(lost, (y < 0) | (y != np.floor(y)) | ~np.isfinite(y))
    np.testing.assert_array_equal(np.nan_to_num(found).sum(axis=1), ~lost)
    changes = [np.abs(a - b).sum() for a, b in itertools.combinations(np.nan_to_num(found), 2)]
    assert max(changes) <= 2


class EnoughError(Exception):
    """Of a fit, for a test."""


def stop(*_):
    raise EnoughError


def fit(bound, epsilon, seed=0, n=400, mean=1.5, **settings):
    rng = np.random.default_rng(3)
    x = rng.normal(size=(n, 1)) + rng.normal(size=(n, 1)) * GRID
    data = {"X": x, "z": rng.uniform(size=n), "y": rng.poisson(mean, n).astype(float)}
    privacy = Privacy(epsilon, 1e-6, n=n, random_state=seed)
    model = ScalarRegression("y ~ lf(X) + z", family="poisson", privacy=privacy, bounds=BOUNDS | {"y": (0, bound)})
    return model.fit(data, grids={"X": GRID}), data["y"]


def test_the_noise_is_above_zero_and_as_declared(monkeypatch):
    """Over seeds: what was released less the exact histogram is normal with the sd of the ledger."""
    seen = []
    right = dp_aff_of_families.level_of
    monkeypatch.setattr(
        dp_aff_of_families, "level_of", lambda m, sd, *rest: (seen.append((m, sd)), right(m, sd, *rest))[1]
    )
    monkeypatch.setattr(dp_aff_of_families, "_best_cut", stop)
    edges = bins_of(0.0, 20.0)
    for seed in range(40):
        with pytest.raises(EnoughError):
            fit(20, 2.0, seed)
    rng = np.random.default_rng(3)
    rng.normal(size=(400, 1)), rng.normal(size=(400, 1)), rng.uniform(size=400)
    y = rng.poisson(1.5, 400)
    exact = np.array([((y >= a) & (y < b)).sum() for a, b in zip(edges, [*edges[1:], np.inf], strict=True)])
    z = np.array([(masses - exact) / sd for masses, sd in seen])
    assert all(sd > 1 for _, sd in seen) and abs(z.mean()) < 0.2 and 0.88 < z.std() < 1.12
    assert np.abs(z).min() > 0


@pytest.mark.parametrize("bound", [1, 20, 1000, 10**6])
def test_every_release_has_noise_and_the_cut_follows_the_counts_not_the_bound(bound):
    model, y = fit(bound, 40.0)
    names = [release.name for release in model.ledger_.releases]
    assert "histogram of counts" in names and "base rate" not in names and names[-1] == "sum of residuals"
    assert all(release.sd > 0 for release in model.ledger_.releases)
    assert abs(np.log(model.predict({"X": np.zeros((1, GRID.size)), "z": [0.5]})[0] / np.minimum(y, bound).mean())) < (
        0.7 if bound == 1 else 0.35
    )


@pytest.mark.parametrize(("epsilon", "least", "most"), [(1.0, 1, 4), (2000.0, 7, 1000)])
def test_the_best_cut_is_low_where_noise_is_large_and_high_where_it_is_small(monkeypatch, epsilon, least, most):
    cuts, right = [], dp_aff_of_families._best_cut
    monkeypatch.setattr(dp_aff_of_families, "_best_cut", lambda *given: cuts.append(right(*given)) or cuts[-1])
    fit(1000, epsilon)
    assert least <= cuts[0] <= most


def test_a_cut_that_follows_the_rows_instead_of_the_release_is_found_out(monkeypatch):
    right = BoundedRows.count_bins

    def looking(self, block):
        self.secret = getattr(self, "secret", 0.0) + float(np.nansum(self.bounded.clean(block[-1])))
        return right(self, block)

    def cut(releases, rows):
        base = start(releases, rows)
        rows.bounded = BoundedResponse(POISSON, (0.0, 2.0 + rows.secret % 7))
        return base

    start = dp_aff_of_families._counts
    assert model_of("poisson", 40.0, 1e-6, "zero-out", False).family == "poisson"
    monkeypatch.setattr("fdadp.privacy.rows._sealed_row_functions._same_everywhere", lambda *_: True)
    monkeypatch.setattr("fdadp.privacy.rows._sealed_row_functions._checked", weakref.WeakKeyDictionary())
    monkeypatch.setattr(BoundedRows, "count_bins", looking)
    assert replay_audit([pair("poisson", 40.0, 1e-6, "zero-out", False, 4)]).passed
    monkeypatch.setattr(dp_aff_of_families, "_counts", cut)
    assert not replay_audit([pair("poisson", 40.0, 1e-6, "zero-out", False, 4)]).passed


COUNTS = (0.0, 20.0)
SOME = np.array([0.0, 1.0, 1.0, 2.0, 0.0, 3.0, 5.0, 1.0, 20.0, 20.0])
CLAIMS = [
    *((1.0, delta, 60) for delta in (1e-6, None)),
    *(pytest.param(e, delta, 2000, marks=pytest.mark.long) for e in (1.0, 4.0) for delta in (1e-6, None)),
]


def histogram_of(y, epsilon, delta, seed):
    """The release alone, with all of a budget."""
    cohort = Cohort((y,), budget=Budget(epsilon, delta), n=len(y), noise=SeededNoise(seed), mechanism="audit")
    masses, sd = cohort.histogram(rows_of(COUNTS).count_bins, share=1.0, name="histogram of counts")
    return np.asarray(masses), float(sd)


@pytest.mark.parametrize(("epsilon", "delta", "draws"), CLAIMS)
def test_an_audit_of_the_histogram_stays_below_the_claim_and_catches_too_little_noise(
    monkeypatch, epsilon, delta, draws
):
    """Scores are log-likelihood ratios of the bins, of whether the last person, with the largest count, is there."""
    without = np.append(SOME[:-1], np.nan)
    here, there = (np.nan_to_num(rows_of(COUNTS).count_bins((y,))).sum(axis=0) for y in (SOME, without))
    assert np.abs(here - there).sum() == 1

    def scores(y, first):
        found = []
        for seed in range(first, first + draws):
            masses, sd = histogram_of(y, epsilon, delta, seed)
            if delta is None:
                found.append((np.abs(masses - there) - np.abs(masses - here)).sum() * math.sqrt(2) / sd)
            else:
                found.append(((masses - there) ** 2 - (masses - here) ** 2).sum() / (2 * sd**2))
        return np.array(found)

    claim = {"epsilon": epsilon, "delta": delta or 0.0}
    result = black_box_audit(scores(SOME, 0), scores(without, 10_000), **claim)
    print(result)
    assert result.passed, str(result)
    if delta is None:
        assert np.abs([result.present, result.absent]).max() <= epsilon * (1 + 1e-6)
    right = Kernel.sensitivity
    monkeypatch.setattr(Kernel, "sensitivity", lambda *given, **how: right(*given, **how) / 20.0)
    assert not black_box_audit(scores(SOME, 0), scores(without, 10_000), **claim).passed
