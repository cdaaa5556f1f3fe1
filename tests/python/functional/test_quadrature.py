"""Quadrature weights: refund's recorded ones, and what every rule promises."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdadp.errors import InputError
from fdadp.functional.quadrature import RULES, quadrature_weights

REFUND_RULES = {"simpson": "simpson_legacy", "trapezoidal": "trapezoid", "riemann": "riemann"}


@st.composite
def grids(draw: st.DrawFn, min_size: int = 3) -> np.ndarray:
    """Uneven grids anywhere near the origin, with steps that differ by up to a factor of 100."""
    steps = draw(st.lists(st.floats(0.01, 1.0), min_size=min_size - 1, max_size=40))
    return draw(st.floats(-10, 10)) + np.concatenate(([0.0], np.cumsum(steps)))


@pytest.mark.parametrize("refund_rule", REFUND_RULES)
@pytest.mark.parametrize("case", ["n30", "n31", "n55", "n93", "uneven30"])
def test_equals_refund(reference: Any, case: str, refund_rule: str) -> None:
    recorded = reference("quadrature")["output"][case]
    weights = quadrature_weights(recorded["s"], REFUND_RULES[refund_rule])
    np.testing.assert_allclose(weights, recorded[refund_rule], rtol=1e-13, atol=0)


def test_legacy_simpson_falls_short() -> None:
    """refund 0.1-38 divides by n: the reason why this rule is not the default."""
    total = quadrature_weights(np.linspace(0, 1, 93), "simpson_legacy").sum()
    assert round(total, 4) == 0.9892


@given(grids())
def test_sums_to_the_length_of_the_domain(grid: np.ndarray) -> None:
    length = grid[-1] - grid[0]
    for rule in ("trapezoid", "simpson"):
        assert quadrature_weights(grid, rule).sum() == pytest.approx(length, rel=1e-9)
    riemann = quadrature_weights(grid, "riemann").sum()
    assert riemann == pytest.approx(length * grid.size / (grid.size - 1), rel=1e-9)


@given(grids(min_size=2), st.floats(-5, 5), st.floats(-5, 5))
def test_trapezoid_is_exact_for_lines(grid: np.ndarray, level: float, slope: float) -> None:
    a, b = grid[0], grid[-1]
    exact = level * (b - a) + slope * (b**2 - a**2) / 2
    approximate = quadrature_weights(grid) @ (level + slope * grid)
    scale = (b - a) * (abs(level) + abs(slope) * np.abs(grid).max())
    assert abs(approximate - exact) <= 1e-11 * (1 + scale)


@given(grids(), st.integers(0, 2))
def test_simpson_is_exact_for_parabolas_on_any_grid(grid: np.ndarray, power: int) -> None:
    u = grid - grid[0]
    exact = u[-1] ** (power + 1) / (power + 1)
    assert quadrature_weights(grid, "simpson") @ u**power == pytest.approx(exact, rel=1e-8)


@given(st.integers(1, 50), st.floats(-3, 3), st.floats(0.1, 10))
def test_simpson_is_exact_for_cubics_on_even_grids_with_an_odd_number_of_points(
    half: int, start: float, length: float
) -> None:
    u = np.linspace(0.0, length, 2 * half + 1)
    weights = quadrature_weights(start + u, "simpson")
    assert weights @ u**3 == pytest.approx(length**4 / 4, rel=1e-9)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ([0.0], r"grid must be one-dimensional with at least 2 points, got shape \(1,\)"),
        ([[0.0, 1.0]], r"grid must be one-dimensional with at least 2 points, got shape \(1, 2\)"),
        ([0.0, np.nan, 1.0], "grid must be finite, got nan"),
        ([0.0, 1.0, np.inf], "grid must be finite, got inf"),
        ([0.0, 0.5, 0.5], "grid must be strictly increasing, got 0.5 followed by 0.5 at position 1"),
        ([1.0, 0.5, 0.0], "grid must be strictly increasing, got 1 followed by 0.5 at position 0"),
        (["a", "b", "c"], "grid must be a sequence of numbers, got"),
    ],
)
def test_bad_grids(grid: Any, message: str, rule: str) -> None:
    with pytest.raises(InputError, match=message):
        quadrature_weights(grid, rule)


def test_unknown_rule_and_grid_too_short() -> None:
    with pytest.raises(InputError, match=r"rule must be one of 'trapezoid', .* got 'gauss'"):
        quadrature_weights([0.0, 1.0], "gauss")
    with pytest.raises(InputError, match="at least 3 points for rule='simpson', got 2"):
        quadrature_weights([0.0, 1.0], "simpson")
