"""Metrics of probabilities against their definitions, and comparisons of models that hold their level."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdadp.errors import InputError
from fdadp.functional.probability_scores import (
    auc,
    brier_score,
    calibration_line,
    calibration_table,
    compare_over_splits,
)


def draws(n=4000, seed=0, slope=1.0):
    rng = np.random.default_rng(seed)
    odds = rng.normal(size=n)
    return (rng.uniform(size=n) < 1 / (1 + np.exp(-odds))).astype(float), 1 / (1 + np.exp(-slope * odds))


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=4, max_size=40))
def test_the_area_is_a_share_of_pairs(rows):
    y, p = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    if y.min() == y.max():
        with pytest.raises(InputError, match="both 0 and 1"):
            auc(y, p)
        return
    hits, misses = p[y == 1][:, None], p[y == 0][None]
    assert auc(y, p) == pytest.approx(((hits > misses) + 0.5 * (hits == misses)).mean())


def test_brier_score_is_a_mean_square():
    y, p = draws(50)
    assert brier_score(y, p) == pytest.approx(np.mean((y - p) ** 2))
    assert brier_score(np.ones(3), np.ones(3)) == 0


def test_calibrated_probabilities_are_within_their_intervals():
    y, p = draws()
    table = calibration_table(y, p)
    assert len(table) == 10
    assert table["n"].sum() == 4000
    assert ((table["lower"] <= table["predicted"]) & (table["predicted"] <= table["upper"])).sum() >= 8
    assert np.average(table["observed"], weights=table["n"]) == pytest.approx(y.mean())
    assert table["predicted"].is_monotonic_increasing
    extreme = calibration_table(*draws(slope=3.0))
    assert not ((extreme["lower"] <= extreme["predicted"]) & (extreme["predicted"] <= extreme["upper"])).all()


def test_equal_probabilities_are_one_group():
    table = calibration_table([0, 1, 1, 0], [0.3, 0.3, 0.3, 0.6], bins=4)
    assert table["n"].tolist() == [3, 1]
    assert calibration_table([0, 1], [0.5, 0.5]).shape == (1, 5)


def test_the_line_tells_extreme_predictions():
    intercept, slope = calibration_line(*draws(20000))
    assert abs(intercept) < 0.05
    assert abs(slope - 1) < 0.05
    assert calibration_line(*draws(20000, slope=2.0))[1] == pytest.approx(slope / 2)


def test_comparisons_over_splits_hold_their_level():
    """Of two useless rules on 60 rows, 15 splits: a plain t test rejects far too often, this one does not."""
    rng = np.random.default_rng(0)
    plain = corrected = 0
    runs = 400
    for _ in range(runs):
        a, b = rng.normal(size=(2, 60))  # losses of each row under two models that are equally good
        rows = [rng.permutation(60)[:12] for _ in range(15)]
        scores = np.array([[a[r].mean(), b[r].mean()] for r in rows])
        found = compare_over_splits(*scores.T, n_train=48, n_test=12)
        corrected += found.p_value < 0.05
        apart = scores[:, 0] - scores[:, 1]
        plain += abs(apart.mean()) > 2.145 * apart.std(ddof=1) / np.sqrt(15)
    assert plain / runs > 0.2
    assert corrected / runs < 0.12


def test_a_comparison_is_its_formula():
    a, b = np.array([0.71, 0.74, 0.72]), np.array([0.70, 0.71, 0.70])
    found = compare_over_splits(a, b, 800, 200)
    assert found.se == pytest.approx(np.sqrt((1 / 3 + 0.25) * (a - b).var(ddof=1)))
    assert found.upper - found.difference == pytest.approx(4.302653 * found.se, rel=1e-6)
    assert found.difference - found.lower == pytest.approx(found.upper - found.difference)
    same = compare_over_splits(a, a, 800, 200)
    assert (same.difference, same.se, same.p_value) == (0, 0, 1)
    assert compare_over_splits(a + 1, a, 800, 200).p_value < 1e-3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: auc([0, 2], [0.1, 0.2]), "y must be 0 or 1, got 2 in row 1"),
        (lambda: auc([0, 1], [0.1, np.nan]), "probability must be finite, got nan in row 1"),
        (lambda: brier_score([0, 1], [0.1, 1.2]), r"probability must lie in \[0, 1\], got 1\.2 in row 1"),
        (lambda: brier_score([0, 1], [0.1]), r"one shape \(n,\), got \(2,\) and \(1,\)"),
        (lambda: brier_score(["a"], [0.1]), "must be numbers"),
        (lambda: calibration_table([0, 1], [0.1, 0.2], bins=0), "bins must be a whole number of at least 1, got 0"),
        (lambda: calibration_line([0, 1], [0.0, 0.2]), r"within \(0, 1\)"),
        (lambda: calibration_line([1, 1], [0.1, 0.2]), "both 0 and 1"),
        (lambda: compare_over_splits([1.0], [2.0], 5, 5), "two or more"),
        (lambda: compare_over_splits([1.0, np.inf], [2.0, 1.0], 5, 5), "finite"),
        (lambda: compare_over_splits([1.0, 2.0], [2.0, 1.0], 0, 5), "at least 1, got 0 and 5"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(InputError, match=message):
        call()
