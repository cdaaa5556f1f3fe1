"""Tests of terms by clusters: what they are without penalties, and how often they reject."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t as student
from uneven_curves import GRIDS, T, cohort, model

from fdadp import FunctionalRegression, ScalarRegression, terms
from fdadp.solve.errors.term_tests import LargestRatio


def test_of_one_number_it_is_students():
    rng = np.random.default_rng(0)
    z, w = rng.normal(size=(2, 50))
    data = {"z": z, "w": w, "y": 0.3 * z + (0.5 + z**2) * rng.normal(size=50)}
    fitted = ScalarRegression([terms.linear("z"), terms.linear("w")]).fit(data)
    for name in ("z", "w"):
        row, tested = fitted.coef(name, se=True, kind="curve").iloc[0], fitted.test_terms("curve").loc[name]
        assert tested["df"] == 1
        assert tested["statistic"] == pytest.approx((row["value"] / row["se"]) ** 2)
        left = fitted.fitted_.errors.degrees("curve", name)  # as many as its t test in summary() has
        assert left < 49
        assert tested["p"] == pytest.approx(2 * student.sf(abs(row["value"] / row["se"]), left))


def test_units_of_columns_do_not_matter():
    data, _ = cohort(60, 30)
    one = model().fit(data, grids=GRIDS)
    other = model().fit({**data, "z": 1e5 * data["z"], "X": 1e-4 * data["X"]}, grids=GRIDS)
    assert np.allclose(one.test_terms()["p"], other.test_terms()["p"], rtol=1e-3)
    smaller = [FunctionalRegression([terms.linear("w")]).fit(d, grids=GRIDS) for d in (data, data)]
    together = [
        large.anova(small).loc["larger", "statistic"] for large, small in zip((one, other), smaller, strict=True)
    ]
    assert together[0] == pytest.approx(together[1], rel=1e-3)


def test_directions_follow_the_number_of_clusters():
    for n, most in ((24, 3), (90, 6), (300, 20)):
        data, _ = cohort(n, 31, group=2)
        fitted = model().fit(data, grids=GRIDS, groups="who")
        assert fitted.test_terms("curve")["df"].max() <= most
        assert fitted.test_terms("cluster")["df"].max() <= max(most // 2, 3)


@pytest.mark.long
def test_a_wide_term_is_found_and_none_is_not():
    """Sixty curves with smooth errors, which make REML spend seventeen degrees of freedom on the surface."""
    waves = np.stack([np.ones(T.size)] + [f(k * np.pi * T) for k in (2, 4) for f in (np.sin, np.cos)])
    surface = np.outer(np.sin(np.pi * T), np.cos(np.pi * T))
    found = []
    for seed in range(30):
        rng = np.random.default_rng(500 + seed)
        x = rng.normal(size=(60, 5)) @ waves + 0.2 * rng.normal(size=(60, T.size))
        errors = 0.45 * rng.normal(size=(60, 3)) @ waves[:3] + 0.2 * rng.normal(size=(60, T.size))
        for size in (0.0, 0.5):
            data = {"X": x, "Y": size * x @ surface / T.size + errors}
            fitted = FunctionalRegression([terms.ff("X", k=(7, 7), m=((2, 2), (2, 2)))]).fit(data, grids=GRIDS)
            found.append(fitted.test_terms().loc["ff(X)", "p"] < 0.05)
    assert np.sum(found[::2]) <= 4
    assert np.sum(found[1::2]) >= 18


@pytest.mark.parametrize("points", [1, 2, 20])
def test_bands_of_points_that_have_clusters_of_their_own(points):
    """Variances from different clusters err independently: the widest of as many independent t."""
    law = LargestRatio.of(np.eye(points), np.diag(np.arange(1.0, points + 1)), seed=0, draws=20000)
    width = law.quantile(0.95, 8.0)
    assert width == pytest.approx(student.ppf((1 + 0.95 ** (1 / points)) / 2, 8.0), rel=0.02)


def test_bands_do_not_depend_on_signs_of_coordinates():
    """Rounding, as another order of rows has it, had chosen the signs of directions, and these the draws: 1 in 200."""
    rng = np.random.default_rng(0)
    rows, root = np.vander(np.linspace(0, 1, 30), 6), rng.normal(size=(6, 6))
    widths = []
    for signs in (np.ones(6), *rng.choice([-1.0, 1.0], size=(4, 6))):
        covariance = (root @ root.T) * signs * signs[:, None]
        widths.append(LargestRatio.of(rows * signs, covariance, seed=0).quantile(0.95, np.inf))
    np.testing.assert_allclose(widths, widths[0], rtol=1e-9)
