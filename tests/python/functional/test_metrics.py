"""RMSPE, coverage, functional R² and concordance: by hand, by definition, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from skfda import FDataGrid

from fdadp.errors import InputError
from fdadp.functional.metrics import concordance, coverage, functional_r2, rmspe

NUMBERS = st.floats(-1e3, 1e3, allow_nan=False).map(lambda v: round(v, 3))
PAIRS = st.tuples(st.integers(1, 6), st.integers(2, 8)).flatmap(
    lambda shape: st.tuples(arrays(float, shape, elements=NUMBERS), arrays(float, shape, elements=NUMBERS))
)


@given(PAIRS)
def test_rmspe_is_its_definition(pair: tuple[np.ndarray, np.ndarray]) -> None:
    y, fit = pair
    n, m = y.shape
    total = sum((y[i, j] - fit[i, j]) ** 2 for i in range(n) for j in range(m))
    assert rmspe(y, fit) == pytest.approx(np.sqrt(total / (n * m)), abs=1e-9)
    assert rmspe(y, y) == 0


@given(PAIRS, st.floats(0, 100))
def test_coverage_is_a_share_and_grows_with_the_width(pair: tuple[np.ndarray, np.ndarray], width: float) -> None:
    y, fit = pair
    share = coverage(y, fit - width, fit + width)
    assert share == pytest.approx(np.mean(np.abs(y - fit) <= width), abs=1 / y.size)  # a value on the limit may round
    assert share <= coverage(y, fit - 2 * width, fit + 2 * width)
    assert coverage(y, np.full_like(y, -np.inf), np.full_like(y, np.inf)) == 1
    assert coverage(y, y, y) == 1


def test_functional_r2_by_hand() -> None:
    t = np.array([0.0, 1.0, 3.0])  # trapezoidal weights 0.5, 1.5, 1
    y = np.array([[0.0, 0.0, 0.0], [2.0, 2.0, 2.0]])
    fit = y + np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    assert functional_r2(y, fit, t=t) == pytest.approx(1 - (0.5 + 1.5) / (2 * 3.0))
    assert functional_r2(y, fit) == pytest.approx(1 - (0.25 + 0.5) / 2)  # even grid: weights 0.25, 0.5, 0.25
    assert functional_r2(y, y) == 1
    assert functional_r2(y, np.broadcast_to(y.mean(axis=0), y.shape), t=t) == pytest.approx(0)


def test_kinds_of_curves_may_be_mixed() -> None:
    rng = np.random.default_rng(0)
    t = np.sort(rng.uniform(size=9))
    y, fit = rng.normal(size=(2, 5, 9))
    kinds: list[Any] = [y, pd.DataFrame(y), pd.DataFrame(y, columns=t), FDataGrid(y, grid_points=t)]
    fits: list[Any] = [fit, pd.DataFrame(fit), pd.DataFrame(fit, columns=t), FDataGrid(fit, grid_points=t)]
    for observed in kinds:
        for predicted in fits:
            assert rmspe(observed, predicted) == pytest.approx(rmspe(y, fit), rel=1e-14)
            assert coverage(observed, predicted, predicted) == 0
    expected = pytest.approx(functional_r2(y, fit, t=t), rel=1e-12)
    assert functional_r2(kinds[3], fits[3]) == expected
    assert functional_r2(kinds[2], fit) == expected


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda y: rmspe(y, y[:2]), r"Y_hat must have the shape of Y, \(3, 4\), got \(2, 4\)"),
        (lambda y: rmspe(y[0], y), r"Y must be two-dimensional \(curves, points\), got shape \(4,\)"),
        (lambda y: rmspe(y, y * np.nan), "Y_hat must be finite, got nan in curve 0 at position 0"),
        (lambda y: rmspe(y * np.inf, y), "Y must be finite"),
        (lambda y: coverage(y, y, y[:, :3]), r"upper must have the shape of Y, \(3, 4\), got \(3, 3\)"),
        (lambda y: coverage(y, y + 1, y), "lower must not exceed upper, got 2 > 1 in curve 0 at position 0"),
        (lambda y: coverage(y, y * np.nan, y), "lower must have no missing values, got nan in curve 0 at position 0"),
        (lambda y: functional_r2(y * 0.1, y), "Y must hold at least two different curves, got 3 that are all equal"),
        (lambda y: functional_r2(y, y, t=[0, 1]), "grid of Y must have 4 points"),
    ],
)
def test_refusals(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call(np.ones((3, 4)))


def test_other_grids_are_refused() -> None:
    y = np.ones((2, 3))
    a, b = FDataGrid(y, grid_points=[0, 0.5, 1]), FDataGrid(y, grid_points=[0, 0.4, 1])
    with pytest.raises(InputError, match=r"Y_hat must be on the grid of Y, got 0.4 instead of 0.5 at position 1"):
        rmspe(a, b)


def test_concordance_is_the_share_of_pairs(monkeypatch):
    rng = np.random.default_rng(0)
    time, event, risk = rng.integers(1, 9, 60), rng.integers(0, 2, 60), rng.integers(0, 5, 60)
    pairs = agreed = 0.0
    for i in range(60):
        for j in range(60):
            if event[i] and (time[i] < time[j] or (time[i] == time[j] and not event[j])):
                pairs += 1
                agreed += 1.0 if risk[i] > risk[j] else 0.5 if risk[i] == risk[j] else 0.0
    assert concordance(time, event, risk) == pytest.approx(agreed / pairs, rel=1e-14)
    monkeypatch.setattr("fdadp.functional.metrics.AT_A_TIME", 100)
    assert concordance(time, event == 1, risk) == pytest.approx(agreed / pairs, rel=1e-14)
    assert concordance(time, event, -risk) == pytest.approx(1 - agreed / pairs, rel=1e-14)
    entry = time - rng.integers(1, 5, 60)
    there = [(i, j) for i in range(60) for j in range(60) if event[i] and entry[j] < time[i]]
    there = [(i, j) for i, j in there if time[i] < time[j] or (time[i] == time[j] and not event[j])]
    agreed = sum(1.0 if risk[i] > risk[j] else 0.5 * (risk[i] == risk[j]) for i, j in there)
    assert len(there) < pairs
    assert concordance(time, event, risk, entry) == pytest.approx(agreed / len(there), rel=1e-14)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (([1, 2], [1, 0], [1, 2, 3]), "one length"),
        (([1, np.nan], [1, 0], [1, 2]), "time must be known"),
        (([1, 2], [1, 0], [1, 2], [0, 0, 0]), "one length"),
        (([1, 2], [1, 0], [1, 2], [0, np.nan]), "entry must be known"),
        (([1, 2], [1, 3], [1, 2]), "event must be 0 or 1"),
        (([1, 2], [0, 0], [1, 2]), "comparable"),
        ((["a", 2], [0, 0], [1, 2]), "time must be numbers"),
    ],
)
def test_concordance_refuses(given, message):
    with pytest.raises(InputError, match=message):
        concordance(*given)
