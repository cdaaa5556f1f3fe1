"""The restricted likelihood ratio of a random effect on numbers: beside dense matrices, its law, level and power."""

from __future__ import annotations

import numpy as np
import pytest

from fdadp import FunctionalRegression, Privacy, ScalarRegression, inference
from fdadp.errors import InputError

UNEQUAL = (1, 1, 1, 1, 2, 2, 2, 3, 3, 4, 5, 5, 6, 7, 8, 9, 10, 12, 15, 23)


def groups(seed, sd, counts=(5,) * 20):
    """Numbers of groups with a level in common of standard deviation `sd`, beside errors of .6."""
    draw = np.random.default_rng(seed)
    g = np.repeat(np.arange(len(counts)), counts)
    x = draw.normal(size=len(g))
    y = x + draw.normal(size=len(counts))[g] * sd + draw.normal(size=len(g)) * 0.6
    return {"x": x, "g": np.array([f"p{i}" for i in g]), "y": y}


def fitted(data, formula="y ~ x + re(g)", **settings):
    return ScalarRegression(formula, progress=False, **settings).fit(data)


def dense_ratio(y, x, z):
    """By the definition, over a grid: -2 log restricted likelihood ratio of y (m, n)."""
    n = len(x)

    def criterion(size):
        v = np.eye(n) + size * z @ z.T
        solved = np.linalg.solve(v, x)
        inner = x.T @ solved
        p = np.linalg.solve(v, np.eye(n)) - solved @ np.linalg.solve(inner, solved.T)
        squares = ((y @ p) * y).sum(axis=1)
        return (n - x.shape[1]) * np.log(squares) + np.linalg.slogdet(v)[1] + np.linalg.slogdet(inner)[1]

    return criterion(0.0) - np.min([criterion(size) for size in np.r_[0.0, np.logspace(-4, 2, 120)]], axis=0)


def test_it_is_the_ratio_of_dense_matrices_and_its_law_in_the_design():
    counts = (1, 1, 2, 3, 5, 8, 13)
    data = groups(4, 0.3, counts)
    codes = np.repeat(np.arange(7), counts)
    x, z = np.column_stack((np.ones(33), data["x"])), np.eye(7)[codes]
    found = inference.variance_test(fitted(data), "re(g)")
    assert found.statistic == pytest.approx(float(dense_ratio(data["y"][None], x, z)[0]), abs=0.01)
    others = dense_ratio(np.random.default_rng(0).normal(size=(20_000, 33)), x, z)
    assert found.p_value == pytest.approx(np.mean(others >= found.statistic), abs=0.015)
    assert np.mean(found.simulated == 0) == pytest.approx(np.mean(others < 1e-9), abs=0.015)
    assert found.simulated.size == 9999
    assert found.error == pytest.approx((found.p_value * (1 - found.p_value) / 9999) ** 0.5)


def test_units_and_the_mean_are_of_no_effect():
    data = groups(1, 0.2)
    first = inference.variance_test(fitted(data), "re(g)")
    second = inference.variance_test(fitted(data | {"y": 1e4 + 1e3 * data["y"]}), "re(g)")
    assert second.statistic == pytest.approx(first.statistic, rel=1e-4)
    assert second.p_value == pytest.approx(first.p_value, abs=1e-3)


@pytest.mark.statistics
@pytest.mark.parametrize("counts", [(5,) * 20, UNEQUAL])
@pytest.mark.parametrize("formula", ["y ~ x + re(g)", "y ~ s(x) + re(g)"])
def test_level(formula, counts):
    """Of 300 samples, of the ratio and of the score test of the same fits."""
    ps = []
    for seed in range(300):
        model = fitted(groups(seed, 0.0, counts), formula)
        ps.append([inference.variance_test(model, "re(g)", draws=999).p_value, model.test_terms().loc["re(g)", "p"]])
    ratio, score = np.mean(np.array(ps) < 0.05, axis=0)
    assert 0.02 <= ratio <= 0.085
    assert 0.02 <= score <= 0.085


@pytest.mark.statistics
def test_it_finds_more_than_the_score_test_where_groups_are_unequal():
    """Of 200 samples; where groups are alike both find as many."""
    found = {}
    for counts, sd in (((5,) * 20, 0.15), ((5,) * 20, 0.3), (UNEQUAL, 0.3)):
        ps = []
        for seed in range(200):
            model = fitted(groups(seed, sd, counts))
            ps.append(
                [inference.variance_test(model, "re(g)", draws=999).p_value, model.test_terms().loc["re(g)", "p"]]
            )
        found[counts, sd] = np.mean(np.array(ps) < 0.05, axis=0)
    assert found[(5,) * 20, 0.15].min() >= 0.12
    assert found[(5,) * 20, 0.3].min() >= 0.65
    assert abs(np.subtract(*found[(5,) * 20, 0.3])) <= 0.04
    ratio, score = found[UNEQUAL, 0.3]
    assert ratio >= score + 0.01


def test_counts_have_it_too():
    draw, ps = np.random.default_rng(0), {0.0: [], 0.6: []}
    g = np.repeat(np.arange(20), 5)
    for _ in range(15):
        for sd, found in ps.items():
            y = draw.poisson(np.exp(1 + sd * draw.normal(size=20)[g])).astype(float)
            model = fitted({"g": g.astype(str), "y": y}, "y ~ re(g)", family="poisson")
            found.append(inference.variance_test(model, "re(g)", draws=999).p_value)
    assert np.mean(np.array(ps[0.0]) < 0.05) <= 0.2
    assert np.mean(np.array(ps[0.6]) < 0.05) >= 0.9


def test_other_models_and_terms_are_refused():
    data = groups(0, 0.3)
    with pytest.raises(InputError, match="name must be of a random effect"):
        inference.variance_test(fitted(data, "y ~ s(x) + re(g)"), "s(x)")
    with pytest.raises(InputError, match="name must be a term"):
        inference.variance_test(fitted(data), "re(h)")
    with pytest.raises(InputError, match="model must be without groups"):
        inference.variance_test(ScalarRegression("y ~ re(g)").fit(data, groups=np.arange(100) // 2), "re(g)")
    with pytest.raises(InputError, match="draws must be"):
        inference.variance_test(fitted(data), "re(g)", draws=5)
    curves = {"g": data["g"], "Y": np.random.default_rng(0).normal(size=(100, 12))}
    with pytest.raises(InputError, match="model must be one of numbers"):
        inference.variance_test(FunctionalRegression("Y ~ re(g)").fit(curves), "re(g)")
    private = ScalarRegression(
        "y ~ x", privacy=Privacy(5.0, 1e-6, n=100, random_state=0), bounds={"x": (-3, 3), "y": (-5, 5)}
    )
    with pytest.raises(InputError, match="model must be without privacy"):
        inference.variance_test(private.fit(data), "x")
