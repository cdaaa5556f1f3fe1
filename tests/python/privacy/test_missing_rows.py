"""A row of missing values against an extreme row: one sensitivity at most, unless missing is an answer of its own."""

from __future__ import annotations

import numpy as np
import pytest
from privacy_tools import distance

from fdadp import (
    FunctionalRegression,
    Privacy,
    PrivateFPCA,
    PrivateMean,
    ScalarRegression,
)
from fdadp.privacy import TapeNoise
from fdadp.summaries import (
    PrivateTable1,
    private_histogram,
    private_mean,
    private_quantiles,
    private_variance,
    suggest_bounds,
)

N = 60
GRID = np.linspace(0, 1, 12)


def _numbers(who, extreme):
    x = np.random.default_rng(0).uniform(-0.5, 0.5, N)
    x[who] = extreme
    return x


def _curves(who, extreme):
    Y = np.random.default_rng(0).normal(size=(N, GRID.size))
    Y[who] = extreme
    return Y


def _table(who, extreme):
    rng = np.random.default_rng(1)
    table = {"X": rng.normal(size=(N, GRID.size)), "z": rng.uniform(-0.5, 0.5, N)}
    table["Y"] = table["X"] + rng.normal(size=(N, GRID.size))
    table["y"] = table["z"] + rng.normal(size=N)
    for column in table.values():
        column[who] = extreme
    return table


def _regression(model, formula):
    bounds = {"X": (-1, 1), "Y": (-1, 1), "z": (-1, 1), "y": (-1, 1)}
    return lambda p, who, value: model(formula, privacy=p, bounds=bounds).fit(_table(who, value))


ENTRIES = {
    "PrivateMean": (lambda p, who, v: PrivateMean(privacy=p, bounds=(-1, 1)).fit(_curves(who, v)), 1.0),
    "PrivateFPCA": (lambda p, who, v: PrivateFPCA(privacy=p, bounds=(-1, 1)).fit(_curves(who, v)), 1.0),
    "private_mean": (lambda p, who, v: private_mean(_numbers(who, v), bounds=(-1, 1), privacy=p), 1.0),
    "private_variance": (lambda p, who, v: private_variance(_numbers(who, v), bounds=(-1, 1), privacy=p), 1.0),
    "private_quantiles": (lambda p, who, v: private_quantiles(_numbers(who, v), bounds=(-1, 1), privacy=p), 1.0),
    "suggest_bounds": (lambda p, who, v: suggest_bounds(_numbers(who, v), within=(-1, 1), privacy=p), 1.0),
    "FunctionalRegression": (_regression(FunctionalRegression, "Y ~ ff(X) + z"), 1.0),
    "ScalarRegression": (_regression(ScalarRegression, "y ~ lf(X) + z"), 1.0),
    # Missing is an answer of its own: such a row is a value, and two values are up to two steps apart.
    "private_histogram": (lambda p, who, v: private_histogram(_numbers(who, v), edges=[-1, 0, 1], privacy=p), 2.0),
    "PrivateTable1": (
        lambda p, who, v: PrivateTable1(columns={"x": (-1.0, 1.0)}, privacy=p).fit(_numbers(who, v)[:, None]),
        2.0,
    ),
}


def _entries(monkeypatch, fit, value, delta, tape=None):
    """Releases of a fit; with a tape the noisy values of another fit are forced, so that later releases agree."""
    noise = TapeNoise(tape=tape)
    right = Privacy.cohort
    with monkeypatch.context() as patch:
        patch.setattr(Privacy, "cohort", lambda self, *args, **told: right(self, *args, **told | {"noise": noise}))
        fit(Privacy(300.0, delta, n=N), 7, value)
    return noise.entries


@pytest.mark.each_once
@pytest.mark.filterwarnings("ignore::fdadp.errors.FdadpWarning")
@pytest.mark.parametrize("delta", [1e-3, None])
@pytest.mark.parametrize("name", ENTRIES)
def test_an_extreme_row_against_a_row_of_missing_values(monkeypatch, name, delta):
    fit, most = ENTRIES[name]
    changes = []
    for extreme in (50.0, -50.0, 0.9):
        missing = _entries(monkeypatch, fit, np.nan, delta)
        there = _entries(monkeypatch, fit, extreme, delta, missing)
        assert len(there) == len(missing)
        changes += [distance(a, b) / a.sensitivity for a, b in zip(there, missing, strict=True)]
    assert 0.5 < max(changes) <= most
    if most > 1:
        assert max(changes) > 1  # said on the ledger: test_a_missing_value_is_an_answer_where_it_is_counted


def test_a_missing_value_is_an_answer_where_it_is_counted():
    privacy = Privacy(1.0, 1e-6, n=N, random_state=0)
    found = private_histogram(_numbers(7, np.nan), edges=[-1, 0, 1], privacy=privacy)
    assert "counts as an answer" in str(found.ledger.details)
    table = PrivateTable1(columns={"x": (-1.0, 1.0)}, privacy=privacy).fit(_numbers(7, np.nan)[:, None])
    assert "counts as an answer" in str(table.ledger_.details)


def test_an_unobserved_curve_is_nobody():
    """Curves about 80, bounds (0, 200): unobserved ones once counted as the middle, and the mean was 86."""
    rng = np.random.default_rng(0)
    Y = 80 + 8 * rng.normal(size=(3000, 1)) + rng.normal(size=(3000, GRID.size))
    Y[rng.uniform(size=3000) < 0.3] = np.nan
    Y[rng.uniform(size=Y.shape) < 0.2] = np.nan  # gaps are filled within the curve
    model = PrivateMean(privacy=Privacy(1.0, 1e-6, n=3000, random_state=0), bounds=(0, 200)).fit(Y)
    assert np.abs(model.mean_ - 80).max() < 1
    assert "number of persons with an observed curve" in [release.name for release in model.ledger_.releases]
    parts = PrivateFPCA(privacy=Privacy(1.0, 1e-6, n=3000, random_state=0), bounds=(0, 200)).fit(Y)
    assert parts.eigenvalues_[0] == pytest.approx(64, rel=0.2)
