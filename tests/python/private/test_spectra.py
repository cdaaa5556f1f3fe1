"""Looks at how rough curves are before a regression on them is planned: what they cost, and what follows."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from privacy_tools import distance

from fdadp import AdditiveFunctionOnFunction, FunctionalRegression, Privacy, PublicPrior, ScalarRegression
from fdadp.audit import black_box_audit
from fdadp.audit.private_regression_audits import CANARIES, MODES, Data, canary, observe_fit
from fdadp.audit.replay import Neighbours, replay_audit
from fdadp.privacy import Budget, Cohort, SeededNoise, TapeNoise
from fdadp.privacy.account.epsilon_mu_rho import unit_noise
from fdadp.privacy.kernel._kernel import Kernel
from fdadp.private.public.tuned_constants import GAUSSIAN, PURE
from fdadp.private.release.mechanisms import DPAFF
from fdadp.private.release.planned_releases import Releases
from fdadp.private.rows.curve_roughness import (
    CurveEnergies,
    ResponseEnergies,
    seen_curves,
    seen_response,
    shapeless,
    spectral,
)
from fdadp.private.rows.row_functions import RowFunctions

pytestmark = pytest.mark.filterwarnings("ignore::fdadp.errors.ExtrapolationWarning")
S = np.linspace(0, 1, 15)
KINDS = ("zero-out", "add-remove", "replace")
LINE = "energy of Y by roughness"


def smooth(n, t, rng, length=0.3):
    root = np.linalg.cholesky(np.exp(-0.5 * ((t[:, None] - t) / length) ** 2) + 1e-8 * np.eye(t.size))
    return rng.normal(size=(n, t.size)) @ root.T


def peak(t, width=0.03):
    return np.exp(-0.5 * ((t - 0.6) / width) ** 2)


def peaked(n, seed, points=41, mean=0.0):
    """Curves whose responses are a narrow peak, with smooth errors, perhaps about a smooth mean; and its true mean."""
    rng, t = np.random.default_rng(seed), np.linspace(0, 1, points)
    x = smooth(n, S, rng)
    truth = 2 * np.sin(x).mean(axis=1)[:, None] * peak(t) + mean * np.sin(2 * np.pi * t)
    return x, truth + 0.2 * smooth(n, t, rng), truth


def model(n, points, *, tuning=None, **privacy):
    asked = Privacy(**{"epsilon": 1.0, "delta": 1e-6, "n": n, "random_state": 0} | privacy)
    mechanism = DPAFF(tuning=tuning, allow_useless=True)
    return AdditiveFunctionOnFunction(
        privacy=asked, bounds={"X": (-4.5, 4.5), "Y": (-8, 8)}, mechanism=mechanism, progress=False
    )


def without(tuning):
    never = replace(tuning.y_spectrum, max_error=0.0)
    return replace(tuning, x_spectrum=never, y_spectrum=never)


def explained(fitted, x, truth):
    return 1 - ((fitted.predict(x) - truth) ** 2).mean() / ((truth - truth.mean(axis=0)) ** 2).mean()


def looked(y, t, *, seed=0, epsilon=1.0, delta=1e-6):
    """Row functions after the look alone, of responses about a released mean of zero."""
    n, design = len(y), PublicPrior().design(S, t)
    cohort = Cohort((np.zeros((n, S.size)), y), budget=Budget(epsilon, delta), n=n, noise=SeededNoise(seed))
    plan = DPAFF().plan(n, unit_noise(cohort, 1.0), design, pure=cohort.pure)
    rows = RowFunctions(design, (-8.0, 8.0))
    seen_response(Releases(cohort, plan), rows, np.ones(8), 1.0)
    return rows


# --- the release ---


@pytest.mark.parametrize("points", [32, 41, 200])
def test_energies_are_shares_of_orthonormal_functions(points):
    t = np.linspace(0, 1, points)
    rows = RowFunctions(PublicPrior().design(S, t), (-8.0, 8.0))
    of = ResponseEnergies(rows).shares
    rng = np.random.default_rng(0)
    y = np.vstack((smooth(5, t, rng), peak(t)[None], rng.normal(size=(2000, points))))
    found = of((y[:, :1], y))
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
    assert (found >= 0).all() and (found[:5, 0] > 0.99).all() and found[5, 1] > 0.3
    white = found[6:].mean(axis=0)
    assert white[1] - shapeless(rows.design) * white[2] == pytest.approx(0.0, abs=0.02)
    np.testing.assert_array_equal(found[3:4], of((y[3:4, :1], y[3:4])))  # each row by itself, bit for bit


def test_rows_that_say_nothing_of_roughness_count_as_nothing():
    """A gap, no observation, the mean itself; wild values are cut to the reach of the range."""
    t = np.linspace(0, 1, 41)
    rows = RowFunctions(PublicPrior().design(S, t), (-8.0, 8.0))
    y = np.tile(peak(t), (5, 1))
    y[0, 3], y[1], y[2], y[3], y[4, 7] = np.nan, np.nan, 0.0, 1e300, -np.inf
    found = ResponseEnergies(rows).shares((y[:, :1], y))
    assert np.isnan(found[[0, 1, 4]]).all() and (found[2] == 0).all() and found[3].sum() == pytest.approx(1.0)


def people(points=33):
    """Rows as unlike each other as can be, one of them each function that is looked at."""
    t = np.linspace(0, 1, points)
    design = PublicPrior().design(t, t)
    energies = ResponseEnergies(RowFunctions(design, (-8.0, 8.0)))
    odd = np.stack([canary(kind, t)[1] for kind in CANARIES])
    alternating = (-1.0) ** np.arange(points)[None]
    return design, np.vstack((design.response.T[:2], energies._onto.T[8:10] * points, alternating, odd))


@pytest.mark.each_once(("look", "adjacency"), ("look", "how"))
@pytest.mark.parametrize(("pure", "adjacency"), list(itertools.product((False, True), KINDS)))
@pytest.mark.parametrize(("look", "how"), list(itertools.product("XY", ("rows", "groups", "chunks"))))
def test_no_person_moves_the_energies_by_more_than_declared(look, how, pure, adjacency):
    """Brute force: 1; exchanged √2 in L2 and 2 in L1; some persons move it as far."""
    design, y = people()
    ids = np.arange(len(y)) // (2 if how == "groups" else 1)

    def entry(y, ids):
        noise, n = TapeNoise(), None if adjacency == "add-remove" else len(people()[1])
        data = (y, y) if how != "chunks" else [(y[i : i + 4], y[i : i + 4]) for i in range(0, len(y), 4)]
        cohort = Cohort(
            data,
            groups=ids if how == "groups" else None,
            budget=Budget(1.0, None if pure else 1e-6),
            n=n,
            adjacency=adjacency,
            noise=noise,
        )
        of = CurveEnergies(design.curves[0]) if look == "X" else ResponseEnergies(RowFunctions(design, (-8.0, 8.0)))
        cohort.histogram(of.shares, share=0.5, name=LINE)
        return noise.entries[-1]

    first, moves = entry(y, ids), []
    for who in np.unique(ids):
        if adjacency != "replace":
            moves.append(distance(first, entry(y[ids != who], ids[ids != who])))
            continue
        for row in range(5):
            other = y.copy()
            other[ids == who] = y[row]
            moves.append(distance(first, entry(other, ids)))
    assert max(moves) <= first.sensitivity * (1 + 1e-12)
    assert max(moves) > 0.99 * first.sensitivity if how != "groups" else max(moves) > 0.5 * first.sensitivity


@pytest.mark.each_once(("look", "adjacency"), ("delta", "grouped"))
@pytest.mark.parametrize(("delta", "adjacency", "grouped"), MODES)
@pytest.mark.parametrize("look", "YX")
def test_replays_of_fits_that_look(look, delta, adjacency, grouped):
    """The same releases on neighbouring data give the same fit, whoever the person is, at a cost within the budget."""
    n, epsilon = 120, 40.0 if delta else 120.0
    x, y, _ = peaked(n, 1, 33) if look == "Y" else local(n, 1, 33)
    persons = np.arange(n) // 2 if grouped else np.arange(n)
    ids, budget = persons.astype(object) if grouped else None, Budget(epsilon, delta)
    declared = None if adjacency == "add-remove" else len(np.unique(persons))
    privacy = {"epsilon": epsilon, "delta": delta, "adjacency": adjacency, "random_state": None}
    own = model(declared, y.shape[1], **privacy)

    def run(data, noise):
        found = observe_fit(data, own, noise)
        assert (LINE if look == "Y" else "energy of X by frequency") in found["texts"][0]
        return found

    pairs = []
    for who, kind in enumerate(CANARIES[int(grouped) :: 3]):
        first, mine = (x.copy(), y.copy()), persons == who
        for at, values in enumerate(first):
            values[mine] = canary(kind, np.linspace(0, 1, values.shape[1]))[at]
        other: Data = (first[0][~mine], first[1][~mine], None if ids is None else ids[~mine])
        if adjacency == "replace":
            other = (np.where(mine[:, None], x[5], first[0]), np.where(mine[:, None], -y[5], first[1]), ids)
        pairs.append(Neighbours(kind, run, (*first, ids), other, budget.total, accounting=budget.accounting))
    result = replay_audit(pairs, seed=2)
    assert result.passed and result.finished == len(pairs), str(result)


@pytest.mark.statistics
@pytest.mark.each_once
@pytest.mark.parametrize(("delta", "adjacency"), [(1e-6, "zero-out"), (None, "add-remove"), (1e-6, "replace")])
@pytest.mark.parametrize(("look", "row", "at"), [("Y", 2, 1), ("X", 4, -1)])
def test_a_black_box_sees_no_more_than_the_claim(monkeypatch, look, row, at, delta, adjacency):
    """One person who alone is rough among twelve: the released rough share with and without it, in 200 draws: gross
    faults alone, as a quarter of the noise."""
    design, y = people()
    of = CurveEnergies(design.curves[0]) if look == "X" else ResponseEnergies(RowFunctions(design, (-8.0, 8.0)))
    y = np.vstack((np.tile(y[0], (11, 1)), y[row : row + 1]))
    assert of.shares((y, y))[-1, at] > 0.9 and of.shares((y, y))[0, at] < 0.1

    n, epsilon = None if adjacency == "add-remove" else 12, 1.0 if delta is None else 4.0
    mu = None if delta is None else math.sqrt(2 * Budget(epsilon, delta).total)

    def attacked():
        def drawn(y, seed):
            budget = Budget(epsilon, delta)
            cohort = Cohort((y, y), budget=budget, n=n, adjacency=adjacency, noise=SeededNoise(seed))
            masses, _ = cohort.histogram(of.shares, share=1.0, name=LINE)
            return masses[at] - masses[0]

        tables = y, y[[*range(11), 0]] if adjacency == "replace" else y[:-1]
        scores = (np.array([drawn(rows, [i, side]) for i in range(200)]) for side, rows in enumerate(tables))
        return black_box_audit(*scores, epsilon=epsilon, delta=delta or 0.0, mu=mu)

    result = attacked()
    assert result.passed, str(result)
    right = Kernel.sensitivity
    monkeypatch.setattr(Kernel, "sensitivity", lambda self, *a: right(self, *a) / 4)
    result = attacked()
    assert not result.passed, str(result)


# --- the choice ---


@pytest.mark.parametrize("points", [12, 24, 25, 31, 32, 41, 200])
def test_there_is_a_look_where_the_grid_carries_one(points):
    t = np.linspace(0, 1, points)
    plan = model(1000, points).plan(s=S.size, t=points)
    assert (plan.budget_shares.get("y spectrum", 0) > 0) == (points >= 32)
    assert sum(share * plan.times(key) for key, share in plan.budget_shares.items()) == pytest.approx(1.0)
    assert (LINE in str(plan)) == (points >= 32)
    assert shapeless(PublicPrior().design(S, t**1.01)) is None  # steps that are not even
    fitted = model(400, points, epsilon=2.5).fit(*peaked(400, 0, points)[:2], s=S, t=t)
    assert any("no look at how rough responses" in note for note in fitted.notes_) == (points < 32)
    assert (LINE in str(fitted.ledger_)) == (points >= 32)


@pytest.mark.parametrize(
    ("n", "delta", "there"), [(400, 1e-6, False), (600, 1e-6, True), (1000, None, False), (1500, None, True)]
)
def test_a_look_is_left_out_where_it_would_say_nothing(n, delta, there):
    """Noise of a share above .065."""
    plan = model(n, 41, delta=delta).plan(s=S.size, t=41)
    assert (plan.budget_shares["y spectrum"] > 0) == there


def test_a_large_n_spends_little_on_it():
    assert model(10_000, 41).plan(s=S.size, t=41).budget_shares["y spectrum"] < 0.003


@pytest.mark.each_once
@pytest.mark.parametrize("points", [32, 41, 200])
@pytest.mark.parametrize("delta", [1e-6, None])
def test_white_responses_stay_as_they_are(points, delta):
    """Of pure noise at least 98 % of looks add nothing."""
    t, n = np.linspace(0, 1, points), 1000 if delta else 2000
    fired = [
        looked(
            np.random.default_rng([i, points]).normal(size=(n, points)), t, seed=i, delta=delta
        ).design.response.shape
        for i in range(100)
    ]
    assert sum(shape[1] > 8 for shape in fired) <= 2


def test_functions_are_added_about_a_released_mean():
    t = np.linspace(0, 1, 41)
    y = np.random.default_rng(0).normal(size=(1000, 1)) * peak(t)
    rows = looked(y, t)
    functions, weights = rows.design.response, rows.design.t_weights
    assert functions.shape == (41, 24)
    np.testing.assert_allclose(functions.T @ (functions * weights[:, None]), np.eye(24), atol=1e-10)
    away = y - (y @ (functions * weights[:, None])) @ functions.T
    assert (away**2).sum() < 0.02 * (y**2).sum()
    assert any("were added" in note for note in rows.notes)


def test_the_mean_is_carried_over():
    t = np.linspace(0, 1, 41)
    n, design = 2000, PublicPrior().design(S, t)
    mean = np.array([0.5, -0.2, 0.1, 0, 0, 0, 0, 0])
    before = design.response @ mean
    y = before + np.random.default_rng(0).normal(size=(n, 1)) * peak(t)
    cohort = Cohort((np.zeros((n, S.size)), y), budget=Budget(1.0, 1e-6), n=n, noise=SeededNoise(0))
    plan = DPAFF().plan(n, unit_noise(cohort, 1.0), design, pure=False)
    rows = RowFunctions(design, (-8.0, 8.0))
    rows.mean = mean
    releases, variance, energy = seen_response(Releases(cohort, plan), rows, np.full(8, 0.01), 1.0)
    np.testing.assert_allclose(rows.design.response @ rows.mean, before, atol=0.02)
    assert variance.shape == (24,) and variance.sum() == pytest.approx(0.08, rel=0.05) and energy > 1
    assert releases.plan.n_outputs > plan.n_outputs and releases.plan.budget_shares == plan.budget_shares


# --- what it is for ---


@pytest.mark.parametrize("mean", [0.0, 2.0])
def test_narrow_responses_are_learned(mean):
    """Without the look the fit explains what eight smooth functions can: half."""
    n, t = 1500, np.linspace(0, 1, 41)
    x, y, _ = peaked(n, 5, mean=mean)
    new, late, truth = peaked(1000, 6, mean=mean)
    fitted = model(n, 41).fit(x, y, s=S, t=t)
    plain = model(n, 41, tuning=without(GAUSSIAN)).fit(x, y, s=S, t=t)
    assert explained(fitted, new, truth) > 0.93 and explained(plain, new, truth) < 0.65
    assert any("were added" in note for note in fitted.notes_) and not any("added" in note for note in plain.notes_)
    assert fitted.plan_.n_outputs > 8 and LINE in str(fitted.ledger_)
    low, high = fitted.predict_interval(new)
    assert 0.92 < ((late >= low) & (late <= high)).mean() < 0.99


def test_narrow_responses_are_learned_in_pure_epsilon():
    n, t = 4000, np.linspace(0, 1, 41)
    x, y, _ = peaked(n, 5)
    new, _, truth = peaked(1000, 6)
    found = [
        explained(model(n, 41, delta=None, tuning=tuning).fit(x, y, s=S, t=t), new, truth)
        for tuning in (PURE, without(PURE))
    ]
    assert found[0] > 0.85 and found[1] < 0.6


@pytest.mark.parametrize("formula", ["Y ~ ff(X) + z", "Y ~ concurrent(V) + z"])
def test_regressions_of_several_terms_look_too(formula):
    """Also where features differ between points of the response."""
    n, t = 2000, np.linspace(0, 1, 41)
    rng = np.random.default_rng(3)
    x, z = smooth(n, S, rng), rng.uniform(-1, 1, n)
    v = smooth(n, t, rng)
    y = 2 * z[:, None] * peak(t) + 0.2 * smooth(n, t, rng)
    bounds = {"X": (-4, 4), "V": (-4, 4), "z": (-1, 1), "Y": (-6, 6)}
    names = {"z", "Y", "X" if "X" in formula else "V"}
    found = FunctionalRegression(
        formula, privacy=Privacy(1.0, 1e-6, n=n, random_state=1), bounds={k: bounds[k] for k in names}
    ).fit(
        {k: {"X": x, "V": v, "z": z}[k] for k in names - {"Y"}},
        y,
        grids={"X": S, "V": t, "Y": t} if "X" in formula else {"V": t, "Y": t},
    )
    truth = 2 * z[:, None] * peak(t)
    records = {k: {"X": x, "V": v, "z": z}[k] for k in names - {"Y"}}
    assert any("were added" in note for note in found.notes_)
    assert ((found.predict(records) - truth) ** 2).mean() < 0.15 * (truth**2).mean()


def test_chunks_and_groups_are_seen_alike():
    n, t = 900, np.linspace(0, 1, 41)
    x, y, _ = peaked(n, 2)
    whole = model(n, 41).fit(x, y, s=S, t=t)
    parts = model(n, 41).fit_chunks([(x[:400], y[:400]), (x[400:], y[400:])], s=S, t=t)
    np.testing.assert_allclose(whole.predict(x[:5]), parts.predict(x[:5]), atol=1e-8)
    twice = model(n, 41).fit(
        np.repeat(x, 2, axis=0), np.repeat(y, 2, axis=0), s=S, t=t, groups=np.repeat(np.arange(n), 2)
    )
    np.testing.assert_allclose(whole.predict(x[:5]), twice.predict(x[:5]), atol=1e-6)
    assert math.isclose(whole.plan_.n_outputs, twice.plan_.n_outputs)


# --- curves X ---


def local(n, seed, points=41, *, length=0.04):
    """Rough curves of which a short stretch acts."""
    rng, s = np.random.default_rng(seed), np.linspace(0, 1, points)
    x = smooth(n, s, rng, length)
    short = (s > 0.65) & (s < 0.73)
    truth = x[:, short].mean(axis=1)[:, None] * np.sin(np.pi * S)
    return x, truth + 0.4 * smooth(n, S, rng), truth


def test_energies_of_curves_are_shares_of_their_bands():
    s = np.linspace(0, 1, 51)
    design = PublicPrior().design(s, S, bounds=(-4.0, 4.0))
    of = CurveEnergies(design.curves[0])
    x = np.stack([np.ones(51), *(np.cos(np.pi * k * s) for k in (1, 2, 4, 7, 12, 25))])
    found = of.shares((x, x))
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
    assert (np.diag(found) > 0.9).all()
    np.testing.assert_array_equal(found[3:4], of.shares((x[3:4], x[3:4])))
    odd = np.stack([np.full(51, np.nan), np.zeros(51), np.full(51, 1e300), np.where(s > 0.5, np.nan, 1.0)])
    found = of.shares((odd, odd))
    assert np.isnan(found[0]).all() and (found[1] == 0).all() and (found[2:, 0] > 0.99).all()


def test_curves_of_the_prior_are_tilted_to_released_shares():
    s = np.linspace(0, 1, 41)
    of = CurveEnergies(PublicPrior().design(s, S).curves[0])
    wanted = np.array([0.1, 0.1, 0.1, 0.2, 0.2, 0.2, 0.1])
    made = of.tilted(PublicPrior().x.curves(s), wanted)
    np.testing.assert_allclose(of.of_curves(made).mean(axis=0), wanted, atol=0.01)
    assert made.std() == pytest.approx(1.0)


def test_curves_are_looked_at_where_one_surface_is_fitted_on_a_grid_that_carries_it():
    prior = PublicPrior()
    assert [spectral(prior.design(np.linspace(0, 1, p), S)) for p in (12, 24, 31, 32, 200)] == [False] * 3 + [True] * 2
    assert not spectral(prior.design(np.linspace(0, 1, 41) ** 1.01, S))
    pilot = PublicPrior.from_pilot(smooth(30, S, np.random.default_rng(0)))
    assert not spectral(pilot.design(np.linspace(0, 1, 41), S))
    for points, said in ((31, True), (32, False)):  # and where there is none the fit says so
        s, rng = np.linspace(0, 1, points), np.random.default_rng(0)
        fitted = model(400, 15, epsilon=2.5).fit(smooth(400, s, rng), smooth(400, S, rng), s=s, t=S)
        assert any("no look at how rough curves" in note for note in fitted.notes_) == said
    grids = {"X": 41, "V": 41, "Y": 15}
    bounds = dict.fromkeys(("X", "V", "Y"), (-4, 4))
    privacy = Privacy(1.0, 1e-6, n=1000)
    for formula, there in (("Y ~ sff(X)", True), ("Y ~ ff(X)", False), ("Y ~ sff(X) + ff(V)", False)):
        own = {k: bounds[k] for k in bounds if k in formula}
        plan = FunctionalRegression(formula, privacy=privacy, bounds=own).plan({k: grids[k] for k in own})
        assert ("energy of X by frequency" in str(plan)) == there


def test_smooth_curves_stay_as_they_are():
    """At least 98 % of looks change nothing."""
    s, n = np.linspace(0, 1, 41), 1000
    design, changed = PublicPrior().design(s, S, bounds=(-4.0, 4.0)), 0
    for seed in range(60):
        x = smooth(n, s, np.random.default_rng(seed), 0.2)
        cohort = Cohort((x, x), budget=Budget(1.0, 1e-6), n=n, noise=SeededNoise(seed))
        plan = DPAFF().plan(n, unit_noise(cohort, 1.0), design, pure=False)
        rows = RowFunctions(design, (-8.0, 8.0))
        seen_curves(Releases(cohort, plan), rows)
        changed += rows.design is not design
    assert changed <= 1


def test_effects_of_a_short_stretch_of_rough_curves_are_learned(tmp_path):
    """Seven smooth splines over s cannot say where; sixteen of a prior that follows the curves can."""
    n, s = 3000, np.linspace(0, 1, 41)
    x, y, _ = local(n, 3)
    new, late, truth = local(1000, 4)
    fitted = model(n, 15).fit(x, y, s=s, t=S)
    plain = model(n, 15, tuning=without(GAUSSIAN)).fit(x, y, s=s, t=S)
    assert explained(fitted, new, truth) > explained(plain, new, truth) + 0.1
    assert explained(fitted, new, truth) > 0.75
    assert "energy of X by frequency" in str(fitted.ledger_) and any("X is rough" in note for note in fitted.notes_)
    assert fitted.coef_.shape[2] == 16 and plain.coef_.shape[2] == 7
    low, high = fitted.predict_interval(new)
    assert 0.92 < ((late >= low) & (late <= high)).mean() < 0.99
    again = AdditiveFunctionOnFunction.load(fitted.save(tmp_path / "fit.npz"))
    np.testing.assert_array_equal(again.predict(new[:5]), fitted.predict(new[:5]))


def test_numbers_from_rough_curves_too():
    n, s = 3000, np.linspace(0, 1, 41)
    x, _, truth = local(n, 3)
    y = truth[:, 7] + 0.3 * np.random.default_rng(0).normal(size=n)
    bounds = {"X": (-4, 4), "y": (-6, 6)}
    found = ScalarRegression("y ~ af(X)", privacy=Privacy(1.0, 1e-6, n=n, random_state=0), bounds=bounds)
    found.fit({"X": x}, y, grids={"X": s})
    assert any("X is rough" in note for note in found.notes_)
    assert ((found.predict({"X": x}) - truth[:, 7]) ** 2).mean() < 0.4 * truth[:, 7].var()
