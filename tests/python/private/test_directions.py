"""The look at directions of features: along which shapes curves vary, and what a private fit knows of the others."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from term_audit_tools import GRID, people, term_model

from fdadp import DPAFF, Privacy, ScalarRegression, simulate_affr
from fdadp.private.public.tuned_constants import GAUSSIAN
from fdadp.private.release import dp_aff
from fdadp.private.release.dp_aff import _shown_by_directions, directions_of

S = np.linspace(0, 1, 41)
GRIDS = {"X": GRID, "V": GRID, "Y": GRID}
LINE = "directions of features"
NEVER = replace(GAUSSIAN, directions=replace(GAUSSIAN.directions, max_error=0.0))


def effect(s):
    return 2 * np.sin(2 * np.pi * s)


def six_shapes(n, seed):
    """Curves of six periodic shapes, and a number that they explain."""
    rng = np.random.default_rng(seed)
    x = simulate_affr(1, n, rng, n_points=S.size).X(S)[..., 0]
    mean = x @ effect(S) / S.size
    return {"X": x, "y": mean + 0.3 * rng.normal(size=n)}, mean


def fit(n, seed, tuning=GAUSSIAN, formula="y ~ lf(X)", **privacy):
    data, mean = six_shapes(n, seed)
    asked = Privacy(**{"epsilon": 1.0, "delta": 1e-6, "n": n, "random_state": seed} | privacy)
    bounds = {"X": (-5, 5), "y": (-6, 6)}
    model = ScalarRegression(formula, privacy=asked, bounds=bounds, mechanism=DPAFF(tuning=tuning))
    return model.fit(data, grids={"X": S}), data, mean


def lines(model):
    return [release for release in model.ledger_.releases if release.name == LINE]


def test_bands_and_predictions_know_which_shapes_curves_have():
    """On four cohorts of 3,000; bands held half of the function, and predictions missed five times as much."""
    held, off = np.zeros((4, 2)), np.zeros((4, 2))
    for seed in range(4):
        for k, tuning in enumerate((NEVER, GAUSSIAN)):
            model, data, mean = fit(3000, 100 + seed, tuning)
            frame = model.coef("lf(X)", se=True, s=S)
            held[seed, k] = (np.abs(frame["value"] - effect(S)) < 1.96 * frame["se"]).mean()
            off[seed, k] = ((model.predict(data) - mean) ** 2).mean() / mean.var()
    assert held[:, 1].mean() > 0.9 > 0.75 > held[:, 0].mean()
    assert off[:, 1].max() < 0.4 * off[:, 0].mean()


def test_bands_are_wide_along_shapes_that_no_curve_has():
    """Of a fit whose A was thought to be .1 there at least: bands held .59 of the function."""
    model, _, _ = fit(10_000, 306)
    frame = model.coef("lf(X)", se=True, s=S)
    assert (np.abs(frame["value"] - effect(S)) < 1.96 * frame["se"]).mean() > 0.9


@pytest.mark.parametrize(("adjacency", "moves"), [("zero-out", 1.0), ("replace", np.sqrt(2))])
def test_it_is_a_line_of_the_ledger_of_sensitivity_one(adjacency, moves):
    model, _, _ = fit(3000 if moves == 1 else 6000, 0, adjacency=adjacency)
    (line,) = lines(model)
    assert line.sensitivity == pytest.approx(moves, rel=1e-3) and line.clip == 1
    assert "Bands of coefficient functions believe" not in str(model.summary())


def test_it_is_left_out_where_it_says_nothing_and_the_summary_says_so():
    model, _, _ = fit(1000, 0)
    assert not lines(model)
    text = str(model.summary())
    assert "Bands of coefficient functions believe that curves vary as the public prior says" in text


@pytest.fixture
def seen(monkeypatch):
    """Row functions of each fit that looks."""
    kept = []

    def shown(releases, rows):
        kept.append(rows)
        return _shown_by_directions(releases, rows)

    monkeypatch.setattr(dp_aff, "_shown_by_directions", shown)
    return kept


def test_directions_have_norm_one_each_row_by_itself(seen):
    _, data, _ = fit(3000, 0)
    rows = seen[0]
    block = rows.derived((data["X"][:20] * np.logspace(-3, 3, 20)[:, None], data["y"][:20, None]))
    found = directions_of(rows, block)
    np.testing.assert_allclose((found**2).sum(axis=1), 1.0, rtol=1e-12)
    alone = directions_of(rows, tuple(part[7:8] for part in block))
    np.testing.assert_array_equal(found[7:8], alone)


def test_other_features_are_no_part_of_them(seen):
    model = term_model("Y ~ ff(X) + z + C(g)", Privacy(400.0, 1e-6, n=60))
    table = people(60, np.random.default_rng(1))
    model.fit(table, grids=GRIDS)
    design = seen[0].design
    count = model.plan_.n_features - 1
    linear = design.linear_in_curves(count)
    assert linear.sum() == design.groups.counts(count)[0] and not linear.all()


@pytest.mark.parametrize(
    ("formula", "there"),
    [
        ("Y ~ ff(X)", True),
        ("Y ~ ff(X) + ff(V) + z", True),
        ("Y ~ s(z)", False),
        ("Y ~ C(g) + z", False),
        ("Y ~ concurrent(X)", False),
        ("Y ~ sff(X)", False),
    ],
)
def test_terms_that_are_linear_in_curves_have_it(formula, there):
    table = people(60, np.random.default_rng(2))
    model = term_model(formula, Privacy(400.0, 1e-6, n=60))
    model.fit(table, grids=GRIDS)
    assert len(lines(model)) == there and str(model.plan_).count(LINE) == there


@pytest.mark.parametrize(("sd", "expected"), [(0.0, [2.4, 0.3, 0.3]), (1e-9, [2.4, 0.3, 0.3]), (1e3, [1.0, 1.0, 1.0])])
def test_what_is_shown_is_believed_as_far_as_its_noise_allows(sd, expected):
    released = np.diag([0.8, 0.1, 0.1])
    releases = SimpleNamespace(plan=SimpleNamespace(n_features=5), second_moment=lambda *a, **k: (padded(released), sd))
    design = SimpleNamespace(linear_in_curves=lambda count: np.array([True, True, False, True]))
    variance, start, _ = _shown_by_directions(releases, SimpleNamespace(design=design))
    at = np.array([1, 2, 4])
    np.testing.assert_allclose(start[at, at], expected, atol=1e-4)
    assert start[0, 0] == pytest.approx(1) and start[3, 3] == pytest.approx(1)
    assert (variance[np.ix_(at, at)] < variance[3, 3]).all() and (start[3, at] == 0).all()


@pytest.mark.parametrize(("sd", "least"), [(0.01, 0.03), (1.0, 0.1)])
def test_eigenvalues_end_at_the_noise_of_an_entry(sd, least):
    releases = SimpleNamespace(
        plan=SimpleNamespace(n_features=4), second_moment=lambda *a, **k: (np.diag([1.4, -0.2, -0.2]), sd)
    )
    design = SimpleNamespace(linear_in_curves=lambda count: np.full(count, True))
    _, start, floor = _shown_by_directions(releases, SimpleNamespace(design=design))
    assert floor == pytest.approx(least)
    assert np.linalg.eigvalsh(start)[0] == pytest.approx(least if sd < 1 else 1.0, abs=0.01)


def padded(of_three):
    """With a feature that is not of a curve between the second and the third."""
    out = np.zeros((4, 4))
    out[np.ix_([0, 1, 3], [0, 1, 3])] = of_three
    return out
