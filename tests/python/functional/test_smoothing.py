"""Incomplete curves made complete: smoothing curve by curve, and imputation by conditional expectation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from fdadp.errors import InputError
from fdadp.functional.fpca import sc_eigenbasis
from fdadp.functional.smoothing import smooth_curves
from fdadp.functional.splines.bsplines import BSplines
from fdadp.functional.tables.curve_sample import Curves
from fdadp.regression.reading.missing_entries import filled


def sample(n: int, missing: float, seed: int = 0, noise: float = 0.2, size: int = 81) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    t = np.linspace(0, 1, size)
    truth = rng.normal(size=(n, 2)) @ np.array([np.sin(2 * np.pi * t), np.cos(2 * np.pi * t)]) * 2 + t
    Y = truth + noise * rng.normal(size=truth.shape)
    Y[rng.random(Y.shape) < missing] = np.nan
    return t, truth, Y


def expected(Y: np.ndarray, t: np.ndarray, **settings: Any) -> np.ndarray:
    """What the observed points of a curve, and the covariance of all curves, let expect."""
    basis = sc_eigenbasis(Y, t, n_components=0.99, **settings)
    return basis.reconstruct(basis.conditional_scores(Y))


def error(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.sqrt(((a - b) ** 2).mean()))


@pytest.mark.parametrize("missing", [0.0, 0.3, 0.7])
@pytest.mark.parametrize("criterion", ["reml", "gcv"])
def test_noise_is_taken_away(missing: float, criterion: str) -> None:
    t, truth, Y = sample(100, missing)
    errors = np.sqrt(((smooth_curves(Y, t, criterion=criterion) - truth) ** 2).mean(axis=1))
    assert np.median(errors) < 0.15
    if criterion == "reml":  # GCV interpolates a curve now and then where points are few
        assert errors.max() < 0.6


def test_curves_without_noise_are_kept() -> None:
    t, truth, Y = sample(20, 0.3, noise=0.0)
    assert error(smooth_curves(Y, t), truth) < 2e-3


@pytest.mark.parametrize("criterion", ["reml", "gcv"])
def test_smoothing_parameter_is_the_best_of_a_direct_search(criterion: str) -> None:
    t, _, Y = sample(4, 0.5, seed=3, noise=0.6)
    got = smooth_curves(Y, t, criterion=criterion, n_basis=20)
    basis = BSplines.uniform(0.0, 1.0, 20, margin=0.0)
    S = basis.difference_penalty(2)
    for curve, fitted in zip(Y, got, strict=True):
        seen = ~np.isnan(curve)
        X, y, m = basis.design(t[seen]), curve[seen], int(seen.sum())

        def score(log_lambda: np.ndarray, X: Any = X, y: Any = y, m: int = m) -> float:
            lam = float(np.exp(log_lambda[0]))
            A = X.T @ X + lam * S
            beta = np.linalg.solve(A, X.T @ y)
            rss = ((y - X @ beta) ** 2).sum()
            if criterion == "gcv":
                return float(np.log(m * rss / (m - np.trace(np.linalg.solve(A, X.T @ X))) ** 2))
            # the README's REML with the scale profiled out; log|λS|_+ = 18 log λ + constant
            return float((m - 2) * np.log(rss + lam * beta @ S @ beta) + np.linalg.slogdet(A)[1] - 18 * np.log(lam))

        starts = [minimize(score, [x], method="Nelder-Mead", options={"xatol": 1e-6}) for x in (-4, 0, 4)]
        best = np.exp(min(starts, key=lambda s: s.fun).x[0])
        want = basis.design(t) @ np.linalg.solve(X.T @ X + best * S, X.T @ y)
        assert np.abs(fitted - want).max() < 0.02 * np.ptp(want)


@given(seed=st.integers(0, 1000), i=st.integers(0, 11))
@settings(max_examples=15, deadline=None)
def test_nothing_passes_between_curves(seed: int, i: int) -> None:
    t, _, Y = sample(12, 0.2, seed=seed)
    Y[:6] = np.where(np.isnan(Y[:6]), 0.0, Y[:6])
    np.testing.assert_allclose(smooth_curves(Y, t)[i], smooth_curves(Y[[i]], t)[0], atol=1e-9)


def test_straight_lines_and_constants_come_back_as_they_are() -> None:
    t = np.linspace(3, 5, 40)
    Y = np.vstack((2 * t - 1, np.full(40, 7.0)))
    Y[:, 5:20] = np.nan
    np.testing.assert_allclose(smooth_curves(Y, t), np.vstack((2 * t - 1, np.full(40, 7.0))), atol=1e-8)


def test_equivariant_in_values_and_grid() -> None:
    t, _, Y = sample(10, 0.3)
    base = smooth_curves(Y, t)
    np.testing.assert_allclose(smooth_curves(5 + 1e3 * Y, 10 * t - 3), 5 + 1e3 * base, rtol=1e-6, atol=1e-3)


def test_new_grid_and_four_points() -> None:
    t, _, Y = sample(5, 0.3)
    fine = np.linspace(0.1, 0.9, 200)
    assert smooth_curves(Y, t, fine).shape == (5, 200)
    np.testing.assert_allclose(smooth_curves(Y, t, t[::4]), smooth_curves(Y, t)[:, ::4], atol=1e-12)
    few = np.full((1, 81), np.nan)
    few[0, [3, 30, 50, 70]] = [1.0, 2.0, 2.5, 4.0]
    assert np.abs(smooth_curves(few, t)).max() < 6


def test_imputation_keeps_what_was_observed() -> None:
    t, truth, Y = sample(150, 0.4)
    complete = filled(Curves(Y, t), "fpca", sc_eigenbasis(Y, t, n_components=0.99)).values
    seen = ~np.isnan(Y)
    np.testing.assert_array_equal(complete[seen], Y[seen])
    assert error(complete[~seen], truth[~seen]) < 0.12
    assert error(expected(Y, t), truth) < 0.12


def test_imputation_borrows_strength_where_curves_are_sparse() -> None:
    t, truth, Y = sample(400, 0.94, seed=2)
    Y[np.arange(400)[:, None], [5, 25, 45, 65]] = truth[:, [5, 25, 45, 65]]
    assert error(expected(Y, t), truth) < 0.7 * error(smooth_curves(Y, t), truth)


def test_the_recorded_gaps(reference: Any) -> None:
    case = reference("fpca_dti_missing")
    Y, t = case["input"]["Y"], case["input"]["argvals"]
    incomplete = np.isnan(Y).any(axis=1)
    want = case["output"]["sc"][1]["Yhat_incomplete"]
    got = expected(Y, t, noise="diagonal")[incomplete]
    assert np.abs(got - want).max() < 1e-4 * np.abs(want).max()
    alone = smooth_curves(Y, t)
    assert np.isfinite(alone).all() and np.nanmax(np.abs(alone - Y)) < 0.2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"values": np.ones(20)}, r"values must have shape \(n, S\) with S of at least 4, got \(20,\)"),
        ({"values": np.ones((2, 3))}, "S of at least 4"),
        ({"grid": np.arange(7)}, "must have 81 points"),
        ({"new_grid": [0.5, 1.5]}, r"new_grid must be points within \[0, 1\]"),
        ({"new_grid": [np.nan]}, r"new_grid must be points within \[0, 1\]"),
        ({"new_grid": []}, r"new_grid must be points within \[0, 1\]"),
        ({"criterion": "aic"}, "criterion must be one of 'reml', 'gcv', got 'aic'"),
        ({"n_basis": 2}, "n_basis must be an integer of at least"),
    ],
)
def test_bad_arguments(change: dict[str, Any], message: str) -> None:
    t, _, Y = sample(3, 0.1)
    with pytest.raises(InputError, match=message):
        smooth_curves(**{"values": Y, "grid": t, **change})


def test_bad_curves_are_named() -> None:
    t, _, Y = sample(5, 0.1)
    Y[3, 3:] = np.nan
    with pytest.raises(InputError, match=r"X must have at least 4 observed point\(s\) each, got \d in curve 3"):
        smooth_curves(Y, t, name="X")
    Y[3] = np.nan
    with pytest.raises(InputError, match=r"curves must have at least 1 observed .* got 0 in curve 3"):
        sc_eigenbasis(Y, t)
    Y[3] = np.inf
    with pytest.raises(InputError, match=r"X must be finite or NaN .* got inf in curve 3 at position 0"):
        smooth_curves(Y, t, name="X")
