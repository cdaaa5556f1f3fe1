"""The look at directions of features: along which shapes curves vary, and what a private fit knows of the others."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from privacy_tools import distance
from term_audit_tools import GRID, observe_terms, people, promised, put, term_model

from fdadp import DPAFF, Privacy, ScalarRegression, simulate_affr
from fdadp.audit import black_box_audit
from fdadp.audit.private_regression_audits import MODES, neighbours_of
from fdadp.audit.replay import Neighbours, replay_audit
from fdadp.privacy import Budget, Cohort, SeededNoise, TapeNoise
from fdadp.privacy.kernel._kernel import Kernel
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
    assert "Bands of coefficient functions assume that curves vary as the public prior says" in text


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


@pytest.fixture
def odd(seen):
    """Directions of a fit, and rows beside one another whose directions are as unlike as can be; one has gaps."""
    _, data, _ = fit(3000, 0)
    X = np.vstack((10.0 ** np.arange(-3, 5)[:, None] * np.cos(np.pi * np.arange(8)[:, None] * S), data["X"][:4]))
    X[6, 3:9], X[7] = np.nan, np.nan
    return partial(directions_of, seen[0]), seen[0].derived((X, np.zeros((len(X), 1))))


@pytest.mark.each_once(("how", "adjacency"), ("how", "grouped"), ("how", "delta"))
@pytest.mark.parametrize(("delta", "adjacency", "grouped"), MODES)
@pytest.mark.parametrize("how", ["memory", "chunks"])
def test_no_person_moves_them_by_more_than_declared(odd, how, delta, adjacency, grouped):
    of, block = odd
    ids = np.arange(len(block[0])) // (2 if grouped else 1)

    def entry(block, ids):
        data = block if how == "memory" else [tuple(part[i : i + 5] for part in block) for i in (0, 5, 10)]
        noise, n = TapeNoise(), None if adjacency == "add-remove" else 12
        told = {"groups": ids if grouped else None, "budget": Budget(1.0, delta), "adjacency": adjacency}
        Cohort(data, n=n, noise=noise, **told).second_moment(of, clip=1.0, share=0.5, name=LINE)
        return noise.entries[-1]

    first, moves = entry(block, ids), []
    for who in np.unique(ids):
        others = [tuple(part[ids != who] for part in block)]
        if adjacency == "replace":
            others = [tuple(np.where((ids == who)[:, None], p[at], p) for p in block) for at in range(6)]
        for other in others:
            moves.append(distance(first, entry(other, ids if adjacency == "replace" else ids[ids != who])))
    assert 0.6 < max(moves) / first.sensitivity <= 1 + 1e-12


@pytest.mark.each_once(("delta", "grouped"))
@pytest.mark.parametrize(("delta", "adjacency", "grouped"), MODES)
def test_replays_of_fits_that_have_it(delta, adjacency, grouped):
    n, epsilon, formula = 60, 400.0, "Y ~ ff(X) + z" if delta else "y ~ lf(X)"
    ids = np.arange(n) // 2
    table, pairs = people(n, np.random.default_rng(0)), []
    for who, kind in enumerate(("high", "gaps", "huge")):
        put(table, np.flatnonzero(ids == who), kind)
    persons = ids if grouped else np.arange(n)
    declared = None if adjacency == "add-remove" else len(np.unique(persons))
    model = term_model(formula, Privacy(epsilon, delta, n=declared, adjacency=adjacency))

    def run(data, noise):
        found = observe_terms(data, model, noise)
        assert LINE in found["texts"][0]
        return found

    for who in (0, 1) if grouped else (0, 3):
        mine = persons == who
        other = neighbours_of(table, ~mine), persons[~mine] if grouped else None
        if adjacency == "replace":
            changed = {name: values.copy() for name, values in table.items()}
            put(changed, np.flatnonzero(mine), "low")
            other = changed, persons if grouped else None
        first = table, persons if grouped else None
        pairs.append(Neighbours(f"{who}", run, first, other, promised(epsilon, delta)))
    result = replay_audit(pairs)
    assert result.passed and result.finished == len(pairs), str(result)


@pytest.mark.statistics
@pytest.mark.parametrize(("delta", "adjacency"), [(1e-6, "zero-out"), (None, "add-remove"), (1e-6, "replace")])
def test_a_black_box_sees_no_more_of_them_than_the_claim(odd, monkeypatch, delta, adjacency):
    """One person of a direction that no other has, in 200 draws: gross faults alone, as an eighth of the noise."""
    of, block = odd
    rows = tuple(part[[8, 8, 8, 1]] for part in block)
    none = tuple(part[:3] if adjacency != "replace" else part[[0, 0, 0, 0]] for part in rows)
    along, n = of(rows)[3], None if adjacency == "add-remove" else 4
    epsilon = 1.0 if delta is None else 4.0
    mu = None if delta is None else math.sqrt(2 * Budget(epsilon, delta).total)

    def attacked():
        def drawn(rows, seed):
            cohort = Cohort(rows, budget=Budget(epsilon, delta), n=n, adjacency=adjacency, noise=SeededNoise(seed))
            return float(along @ cohort.second_moment(of, clip=1.0, share=1.0, name=LINE).value @ along)

        present, absent = (np.array([drawn(part, [i, k]) for i in range(200)]) for k, part in enumerate((rows, none)))
        return black_box_audit(present, absent, epsilon=epsilon, delta=delta or 0.0, mu=mu)

    result = attacked()
    assert result.passed, str(result)
    right = Kernel.sensitivity
    monkeypatch.setattr(Kernel, "sensitivity", lambda self, *a: right(self, *a) / 8)
    result = attacked()
    assert not result.passed, str(result)


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
