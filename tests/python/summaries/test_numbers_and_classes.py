"""Private counts, means, variances, quantiles, histograms, cross-tables: what they release, and what intervals hold."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import pickle
import warnings
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from privacy_tools import Guarded
from scipy.stats import lognorm, norm, poisson
from skfda import FDataGrid

from fdadp import Privacy, Study
from fdadp.audit import Neighbours, replay_audit
from fdadp.errors import FdadpError, InputError, PrivacyError
from fdadp.privacy import Budget, Cohort, TapeNoise
from fdadp.privacy.rows._rowwise_arithmetic import diameter_of
from fdadp.summaries import (
    PrivateTable1,
    private_count,
    private_cross_table,
    private_histogram,
    private_mean,
    private_quantiles,
    private_survival,
    private_variance,
    suggest_bounds,
)
from fdadp.summaries.questions.column_questions import ask, fieller, half_width, within
from fdadp.summaries.questions.moments_and_quantiles import LARGEST, AskDistribution, AskMoments, strategy

RANGE = {"bounds": (0.0, 100.0)}
ASKED = {
    "mean": functools.partial(private_mean, **RANGE),
    "variance": functools.partial(private_variance, **RANGE),
    "quantiles": functools.partial(private_quantiles, **RANGE),
    "histogram": functools.partial(private_histogram, edges=[0, 40, 60, 100]),
    "classes": functools.partial(private_histogram, levels=[40, 50, 60]),
}
EVERY = pytest.mark.parametrize("name", ASKED)
MODES = {
    "zero-out": {"n": 200},
    "replace": {"n": 200, "adjacency": "replace"},
    "add-remove": {},
}


def ages(n=200, seed=0):
    return np.random.default_rng(seed).normal(50, 10, n).round()


def privacy(epsilon=1.0, delta=1e-6, **more):
    return Privacy(epsilon, delta, **{"n": 200, "random_state": 0} | more)


# --- what is promised and released ---


@EVERY
@pytest.mark.parametrize("delta", [None, 1e-6])
@pytest.mark.parametrize("mode", MODES)
def test_one_release_spends_the_budget(name, mode, delta):
    settings = Privacy(1.0, delta, random_state=0, **MODES[mode])
    found = ASKED[name](ages(), privacy=settings)
    [release] = found.ledger.releases
    assert release.share == 1 and release.sd > 0 and release.adjacency == mode
    assert found.ledger.private and found.ledger.epsilon == 1.0 and "not for release" in found.ledger.headline
    assert (release.epsilon if delta is None else release.mu) > 0
    frame = found.frame
    assert (frame["low"] <= frame["value"]).all() and (frame["value"] <= frame["high"]).all()
    assert (frame["noise_sd"] > 0).all() and np.isfinite(frame[["value", "noise_sd"]]).all(axis=None)
    one = 1.0 if mode != "replace" else 2.0 if delta is None or name in ("mean", "variance") else math.sqrt(2)
    if mode == "replace" and delta is not None and name == "quantiles":
        one = diameter_of(strategy(1025, pure=False).rows) / release.clip
        assert one < math.sqrt(2) - 0.1
    assert release.sensitivity == pytest.approx(one * release.clip, rel=1e-5)


@pytest.mark.parametrize("declared", [False, True])
@pytest.mark.parametrize("pure", [False, True])
def test_clips_of_moments_are_the_largest_norms_of_rows(pure, declared):
    asked = AskMoments((-3.0, 5.0), 9.0 if declared else None, pure=pure)
    values = np.concatenate([np.linspace(-3, 5, 4001), [np.nan, np.inf, -np.inf, 1e300, -1e300]])
    rows = asked.rows(values)
    assert np.isfinite(rows).all()
    norms = np.abs(rows).sum(axis=1) if pure else np.sqrt((rows**2).sum(axis=1))
    assert norms.max() == pytest.approx(asked.clip, rel=1e-12) and (np.abs(rows) <= LARGEST + 1e-12).all()


@pytest.mark.parametrize("total", [False, True])
@pytest.mark.parametrize(("cells", "pure"), [(513, False), (257, True), (22, False), (22, True), (3, True), (2, False)])
def test_strategies_decode_cumulative_counts_exactly(cells, pure, total):
    found = strategy(cells, pure=pure, total=total)
    counts = np.random.default_rng(0).integers(1, 9, cells)
    matrix, vector = found.cumulate()
    answer = matrix @ (found.rows.T @ counts) + vector * counts.sum()
    np.testing.assert_allclose(answer, np.cumsum(counts), atol=1e-8 * counts.sum())
    np.testing.assert_allclose(found.decode @ (found.rows + found.centre).T, np.tri(cells), atol=1e-9)
    assert (vector != 0).any() == total and (found.centre != 0).any() == (total and not pure)
    plain = np.sqrt(np.arange(1, cells + 1)).mean()
    assert found.noise <= plain * (1 + 1e-9) and (cells < 30 or found.noise < 0.6 * plain)
    norms = np.abs(found.rows).sum(axis=1) if pure else np.sqrt((found.rows**2).sum(axis=1))
    assert norms.max() <= found.clip <= norms.max() * (1 + 1e-11)


@pytest.mark.parametrize(
    ("cells", "before", "after", "apart"),
    [(16, 1.394, 1.010, 1.663), (64, 1.546, 1.209, 1.912), (256, 1.683, 1.379, 2.131)],
)
def test_a_public_number_of_persons_moves_rows_to_the_centre_of_their_ball(cells, before, after, apart):
    """The clip, which noise goes with; and what exchanging a person costs, less than √2 times the clip before."""
    plain, found = (strategy(cells, pure=False, total=total) for total in (False, True))
    assert (plain.clip, found.clip) == pytest.approx((before, after), abs=1e-3)
    assert found.noise < 0.84 * dataclasses.replace(plain, total=True).noise
    for one in (plain, found):
        assert diameter_of(one.rows) == pytest.approx(apart, abs=1e-3) and apart < math.sqrt(2) * before


def test_the_diameter_that_is_kept_is_that_of_the_numbers_in_the_table():
    table = np.eye(40)
    once = diameter_of(table)
    assert diameter_of(np.eye(40)) == once == pytest.approx(math.sqrt(2))
    assert diameter_of(np.eye(40), blocks=2) == once
    table[0, 1] = 3.0  # the first and the last row alone do not tell tables apart
    table[7, 7] = 9.0
    assert diameter_of(table) == pytest.approx(math.sqrt(81 + 10))
    table[7, 7] = 1.0
    assert diameter_of(table) == pytest.approx(math.sqrt(11))


@pytest.mark.parametrize("cells", [2, 3, 16, 64])
def test_no_two_persons_are_farther_apart_than_noise_is_drawn_for(cells):
    """Brute force on the integers of the lattice: every cell against every other, and against nobody."""
    asked = AskDistribution(np.linspace(0.0, 1.0, cells), 9.0, pure=False)
    values = np.append((asked.edges[1:] + asked.edges[:-1]) / 2, [np.nan, -3.0, 7.0])
    for adjacency in ("zero-out", "replace"):
        entries = []
        for value in values:
            noise = TapeNoise()
            cohort = Cohort(np.array([value]), budget=Budget(1.0, 1e-6), adjacency=adjacency, n=9, noise=noise)
            ask(cohort, asked, lambda block: block[0], share=1.0, name="counts")
            entries.append(noise.entries[-1])
        points = [[0] * asked.size, *(entry.exact for entry in entries)]
        drawn = entries[0].sensitivity
        if adjacency == "replace":
            moves = [math.dist(a, b) for a, b in itertools.combinations(points, 2)]
        else:
            moves = [math.hypot(*one) for one in points]
        assert 0.9999 * drawn < max(moves) <= drawn


def test_missing_numbers_and_several_rows_are_in_the_centred_counts():
    """Without noise to speak of: a table 1 with a declared n, of persons with 1 to 3 rows, some of them missing."""
    rng = np.random.default_rng(0)
    ids = np.repeat(np.arange(4000), rng.integers(1, 4, 4000))
    x = rng.normal(50, 10, len(ids))
    x[rng.random(len(ids)) < 0.2] = np.nan
    privacy = Privacy(1e3, 1e-4, n=4000, random_state=0)
    table = PrivateTable1(privacy=privacy, columns={"x": (0, 100)}, quantiles=(0.1, 0.5, 0.9))
    found = table.fit(pd.DataFrame({"x": x}), groups=ids).table_
    weight = 1 / np.bincount(ids)[ids]
    there = np.isfinite(x)
    order = np.argsort(x[there])
    below = np.cumsum(weight[there][order]) / weight[there].sum()
    true = np.interp([0.1, 0.5, 0.9], below, x[there][order])
    values = [found["value"].xs(f"quantile {q:g}", level="statistic").item() for q in (0.1, 0.5, 0.9)]
    np.testing.assert_allclose(values, true, atol=0.3)


@pytest.mark.each_once
@EVERY
@pytest.mark.parametrize("delta", [None, 1e-6])
def test_replays_of_neighbours_show_the_sums_alone(name, delta):
    odd = (np.nan, 1e30, -np.inf, 37.0)
    pairs = []
    for (mode, settings), value in itertools.product(MODES.items(), odd):
        first, more = ages().astype(object), ages().astype(object)
        first[17] = value
        second = np.delete(first, 17) if mode != "replace" else more

        def run(x, noise, settings=settings):
            with mock.patch("fdadp.privacy.noise.sources.SeededNoise", lambda seed: noise):
                found = ASKED[name](x, privacy=Privacy(1.0, delta, random_state=0, dataset="ages", **settings))
            return found.frame, found.ledger

        total, measure = Budget(1.0, delta).total, "pure" if delta is None else "gdp"
        pairs.append(Neighbours(f"{mode}, {value}", run, first, second, total, accounting=measure))
    result = replay_audit(pairs)
    assert result.passed, str(result)
    assert 0.1 < result.ratios.max() <= 1 and result.finished == len(pairs)


@pytest.mark.parametrize("delta", [None, 1e-6])
def test_replays_of_a_count_show_the_count_alone(delta):
    def run(x, noise):
        with mock.patch("fdadp.privacy.noise.sources.SeededNoise", lambda seed: noise):
            found = private_count(x, privacy=Privacy(1.0, delta, random_state=0, dataset="ages"))
        return found.frame, found.ledger

    total, measure = Budget(1.0, delta).total, "pure" if delta is None else "gdp"
    pair = Neighbours("one person more", run, ages(200), ages(199), total, accounting=measure)
    result = replay_audit([pair])
    assert result.passed and 0.1 < result.ratios.max() <= 1, str(result)


@EVERY
def test_a_broken_sensitivity_shows(name, monkeypatch):
    from fdadp.privacy.kernel._kernel import Kernel

    original = Kernel.sensitivity
    monkeypatch.setattr(Kernel, "sensitivity", lambda *a: original(*a) / 2)
    first, second = ages(), ages()
    first[3], second[3] = (40.0, 60.0) if name == "classes" else (0.0, 100.0)

    def run(x, noise):
        with mock.patch("fdadp.privacy.noise.sources.SeededNoise", lambda seed: noise):
            return ASKED[name](x, privacy=privacy(adjacency="replace", dataset="ages")).frame

    result = replay_audit([Neighbours("one", run, first, second, Budget(1.0, 1e-6).total, accounting="gdp")])
    assert result.changes.max() > 1 and not result.passed


@EVERY
def test_rows_are_read_by_the_kernel_after_the_budget_was_spent(name):
    budget = Budget(1.0, 1e-6)
    guarded = Guarded(ages(), budget)
    ASKED[name](guarded, privacy=privacy(budget=budget))
    assert guarded.reads and budget.left == 0
    with pytest.raises(PrivacyError, match="share"):
        ASKED[name](guarded, privacy=privacy(budget=budget))


@pytest.mark.parametrize(
    ("of", "arguments", "text"),
    [
        (private_mean, {}, "bounds must give a public range"),
        (private_mean, {"bounds": (1, 0)}, "bounds must be finite with low < high"),
        (private_mean, {**RANGE, "privacy": None}, "privacy must be a Privacy"),
        (private_mean, {**RANGE, "level": 1.0}, "level must lie between 0 and 1"),
        (private_mean, {**RANGE, "sampling": "no"}, "sampling must be True or False"),
        (private_mean, {**RANGE, "groups": [1, 2]}, "groups must have one id"),
        (private_mean, {**RANGE, "x": np.zeros((4, 2))}, "x must be one column"),
        (private_mean, {**RANGE, "x": FDataGrid(np.zeros((200, 5)))}, r"x must be one column .*, got curves"),
        (private_histogram, {"levels": [1, 2], "x": FDataGrid(np.zeros((200, 5)))}, "x must be one column"),
        (private_quantiles, {**RANGE, "q": np.array(0.5)}, "q must be a number between 0 and 1"),
        (private_variance, {}, "bounds must give a public range"),
        (private_quantiles, {**RANGE, "q": 1.5}, "q must lie between 0 and 1"),
        (private_quantiles, {**RANGE, "q": "median"}, "q must be a number between 0 and 1"),
        (private_quantiles, {**RANGE, "step": 3.0}, "step must divide the bounds"),
        (private_quantiles, {**RANGE, "step": 0}, "step must divide the bounds"),
        (private_quantiles, {**RANGE, "step": 1e-3}, "step must divide the bounds"),
        (private_histogram, {}, "levels or edges must be given"),
        (private_histogram, {"levels": [1], "edges": [1, 2]}, "levels or edges must be given"),
        (private_histogram, {"levels": [1, "1"]}, "distinct"),
        (private_histogram, {"levels": []}, "levels must be at least one"),
        (private_histogram, {"levels": "ab"}, "levels must be a sequence"),
        (private_histogram, {"edges": [1, 1]}, "edges must be at least two increasing"),
        (private_histogram, {"edges": ["a", "b"]}, "edges must be increasing numbers"),
        (private_count, {}, "n must be left out"),
        (private_cross_table, {"columns": {"a": [1]}}, "columns must be the classes of at least two"),
        (private_cross_table, {"columns": {"a": [1], "b": 3}}, r"columns\['b'\] must be a sequence"),
        (private_cross_table, {"columns": {"a": range(100), "b": range(100)}}, "columns must make at most 4096"),
        (private_cross_table, {"columns": {"a": [1], "b": [2]}}, "X must have the columns"),
    ],
)
def test_bad_input_is_refused_and_nothing_is_spent(of, arguments, text):
    budget = Budget(1.0, 1e-6)
    given = {"x": Guarded(ages()), "privacy": privacy(budget=budget)} | arguments
    first = given.pop("x")
    if of is private_cross_table:
        first = pd.DataFrame({"x": ages()})
    with pytest.raises((InputError, PrivacyError), match=text) as error:
        of(first, **given)
    assert isinstance(error.value, FdadpError)
    assert budget.spent == budget.reserved == 0


def test_a_study_gives_bounds_and_is_charged(tmp_path):
    path = tmp_path / "s.fdadp"
    Study.new(path, epsilon=1.0, name="ages", unit="row", n=200, bounds={"age": (0, 100)}, sources="passports")
    column = pd.Series(ages(), name="age")
    found = private_mean(column, privacy=Privacy(0.25, study=path, purpose="mean age"))
    assert found.ledger.details["public input: bounds"] == "(0.0, 100.0)"
    private_quantiles(column, privacy=Privacy(0.25, study=path))
    assert Study(path).budget.left == pytest.approx(0.5)
    with pytest.raises(PrivacyError, match="bounds of age"):
        private_mean(column, bounds=(0, 90), privacy=Privacy(0.25, study=path))


# --- how good it is ---


def test_large_samples_give_the_statistics_of_the_data():
    x = ages(200_000)
    people = pd.DataFrame({"age": x, "old": np.where(x > 60, "yes", "no"), "arm": np.arange(x.size) % 2})
    people.loc[::4, "age"] = np.nan
    told = functools.partial(Privacy, 1.0, 1e-6, random_state=1)
    there = people["age"].dropna()
    for n in (x.size, None):
        mean = private_mean(people["age"], **RANGE, privacy=told(n=n))
        assert mean.value == pytest.approx(there.mean(), abs=0.05)
        spread = private_variance(people["age"], **RANGE, privacy=told(n=n)).frame["value"]
        assert spread["variance"] == pytest.approx(there.var(), rel=0.02) and spread["sd"] == math.sqrt(
            spread["variance"]
        )
        quantiles = private_quantiles(people["age"], (0.1, 0.5), bounds=(0, 100), step=1, privacy=told(n=n)).frame
        assert quantiles["value"].tolist() == np.quantile(there, [0.1, 0.5]).tolist()
        counts = private_histogram(people["age"], edges=[40, 50, 60], privacy=told(n=n)).frame
        exact = [((there >= 40) & (there < 50)).sum(), ((there >= 50) & (there <= 60)).sum()]
        np.testing.assert_allclose(counts.loc["count", "value"].iloc[:2], exact, atol=40)
        assert counts.loc[("count", "none"), "value"] == pytest.approx(x.size - sum(exact), abs=40)
        cells = private_cross_table(people, {"old": ["no", "yes"], "arm": [0, 1]}, privacy=told(n=n)).frame
        wanted = pd.crosstab(people["old"], people["arm"], normalize=True)
        assert cells.loc[("share", "yes", 1), "value"] == pytest.approx(wanted.loc["yes", 1], abs=1e-3)
        assert cells.loc[("count", "none", "none"), "high"] < 80
    assert private_count(people, privacy=told(n=None)).value == pytest.approx(x.size, abs=30)


def test_persons_count_once():
    x, ids = np.repeat([20.0, 80.0], [900, 100]), np.concatenate([np.arange(900) // 9, 100 + np.arange(100)])
    settings = Privacy(20.0, 1e-6, n=200, random_state=0, unit="person")
    assert private_mean(x, **RANGE, groups=ids, privacy=settings).value == pytest.approx(50, abs=2)
    shares = private_histogram(x, levels=[20, 80], groups=ids, privacy=settings).frame
    assert shares.loc[("share", 20), "value"] == pytest.approx(0.5, abs=0.05)
    with pytest.raises(PrivacyError, match="groups"):
        private_mean(x, **RANGE, privacy=settings)


def test_results_can_be_kept_and_asked_for_other_levels():
    found = private_quantiles(ages(), privacy=privacy(), **RANGE)
    again = pickle.loads(pickle.dumps(found))
    pd.testing.assert_frame_equal(again.frame, found.frame)
    wide, narrow = found.at(0.99).frame, found.at(0.5, sampling=False).frame
    assert (wide["low"] <= narrow["low"]).all() and (wide["high"] >= narrow["high"]).all()
    assert set(narrow["interval"]) == {"noise"} and set(wide["interval"]) == {"noise and sampling"}
    assert "0.5" in str(found) and "<table" in found._repr_html_() and repr(found).startswith("Estimates(0.25 ")
    with pytest.raises(InputError, match="single"):
        _ = found.value
    with pytest.raises(InputError, match="level"):
        found.at(2.0)


LABELLED = {
    "mean": lambda X, **more: private_mean(X["age"], **RANGE, **more),
    "variance": lambda X, **more: private_variance(X["age"], **RANGE, **more),
    "quantiles": lambda X, **more: private_quantiles(X["age"], **RANGE, **more),
    "bins": lambda X, **more: private_histogram(X["age"], edges=[0, 50, 100], **more),
    "classes": lambda X, **more: private_histogram(X["old"], levels=[0, 1], **more),
    "cross-table": lambda X, **more: private_cross_table(X, {"old": [0, 1], "arm": [0, 1]}, **more),
    "survival": lambda X, **more: private_survival(X, "age", "old", edges=[0, 50, 100], **more),
    "table 1": lambda X, privacy, groups: PrivateTable1(privacy=privacy, columns={"age": (0, 100)}).fit(
        X, groups=groups
    ),
    "bounds": lambda X, **more: suggest_bounds(X[["age"]], within=(0, 200), **more),
    "bounds of curves": lambda X, **more: suggest_bounds(
        FDataGrid(np.zeros((200, 3)), sample_names=X.index), within=(0, 200), **more
    ),
}


@pytest.mark.parametrize("name", LABELLED)
def test_labels_declared_public_are_compared_before_anything_is_spent(name):
    """The ledger says that they were found equal."""
    people = pd.DataFrame({"age": ages(), "old": 0, "arm": 1}, index=[f"p{i}" for i in range(200)])
    ids, budget = pd.Series(np.arange(200), index=people.index), Budget(20.0, 1e-6)
    told = Privacy(20.0, 1e-6, n=200, labels="public", budget=budget)
    with pytest.raises(InputError, match="must have the same row labels in the same order"):
        LABELLED[name](people, groups=ids.iloc[::-1], privacy=told)
    assert budget.spent == budget.reserved == 0
    LABELLED[name](people, groups=ids, privacy=told)
    assert budget.left == 0


def test_labels_of_persons_who_are_counted_are_not_public():
    ids = pd.Series(np.arange(200), index=[f"p{i}" for i in range(200)])
    with pytest.raises(PrivacyError, match="labels must be None where the number of persons is private"):
        private_count(ids, groups=ids.iloc[::-1], privacy=Privacy(1.0, labels="public", random_state=0))


def test_bins_have_names_of_their_own():
    found = private_histogram(ages() + 1e6, edges=[1e6, 1e6 + 50.5, 1e6 + 51, 1e6 + 99], privacy=privacy()).frame
    assert found.index.is_unique and ("count", "[1000050.5, 1000051.0)") in found.index


def test_quantiles_take_numbers_of_numpy_and_pandas():
    wanted = private_quantiles(ages(), [0.5], privacy=privacy(), **RANGE).frame
    for q in (np.float32(0.5), np.array([0.5]), pd.Series([0.5]), (0.5,)):
        pd.testing.assert_frame_equal(private_quantiles(ages(), q, privacy=privacy(), **RANGE).frame, wanted)


def test_laws_of_noise_and_error():
    rng = np.random.default_rng(0)
    draws = rng.normal(0, 0.6, 400_000) + rng.laplace(0, 0.5, (2, 400_000)).sum(axis=0) + rng.laplace(0, 1, 400_000)
    parts = [math.sqrt(2) * b for b in (0.5, 0.5, 1.0)]
    for level in (0.5, 0.95, 0.99):
        q = half_width(level, 0.6, parts, pure=True)
        assert (np.abs(draws) <= q).mean() == pytest.approx(level, abs=0.002)
    assert half_width(0.95, 0.0, [1.0], pure=True, copies=50) == pytest.approx(1.96 * math.sqrt(50), rel=0.01)
    assert half_width(0.95, 3.0, [4.0], pure=False) == pytest.approx(1.96 * 5, rel=1e-3)
    assert half_width(0.95, 0.0, [], pure=False) == 0
    clipped = rng.normal(-0.3, 0.5, 2_000_000)
    inside = clipped[(clipped > 0) & (clipped < 1)].mean()
    assert within(-0.3, 0.5, 0, 1) == pytest.approx(inside, abs=2e-3)
    assert within(-0.3, 0, 0, 1) == 0 and within(1.3, 0.5, 0, 1) == pytest.approx(1 - inside, abs=2e-3)
    assert 0 < within(-1e3, 1.0, 0, 1) < 0.01 and within(5.0, 1.0, 2.0, 2.0) == 2.0
    assert fieller(5.0, 10.0, 2.0, (1.0, 0.0, 0.0), (0, 1)) == pytest.approx((0.3, 0.7))
    assert fieller(5.0, 10.0, 2.0, (1.0, 0.0, 1e4), (0, 1)) == (0, 1) == fieller(5.0, -1.0, 2.0, (1, 0, 0), (0, 1))


LAWS = {
    "normal": (norm(50, 10), (0.0, 100.0), None),
    "lognormal": (lognorm(0.8), (0.0, 20.0), None),
    "discrete": (poisson(3), (0.0, 20.0), 1.0),
}


@pytest.mark.each_once
@pytest.mark.statistics
@pytest.mark.parametrize(("epsilon", "delta", "n"), [(1.0, None, 300), (0.1, 1e-6, 3000), (1.0, 1e-6, None)])
@pytest.mark.parametrize("law", LAWS)
def test_intervals_hold_the_truth(law, epsilon, delta, n):
    """benchmarks/summaries.py in small: 100 samples, so that .95 is within .87 and 1 but for a chance of 0.1 %."""
    of, bounds, step = LAWS[law]
    true = np.clip(of.ppf((np.arange(100_000) + 0.5) / 100_000), *bounds)
    size, held = n or 1000, {"mean": 0, "variance": 0, "median": 0, "share": 0}
    for seed in range(100):
        x = of.rvs(size, random_state=seed).astype(float)
        told = functools.partial(Privacy, epsilon, delta, n=n)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = {
                "mean": (private_mean(x, bounds=bounds, privacy=told(random_state=seed)).frame, true.mean()),
                "variance": (
                    private_variance(x, bounds=bounds, privacy=told(random_state=seed)).frame.iloc[:1],
                    true.var(),
                ),
                "median": (
                    private_quantiles(x, 0.5, bounds=bounds, step=step, privacy=told(random_state=seed)).frame,
                    of.ppf(0.5),
                ),
            }
            below = np.where(x < true.mean(), "below", "above")
            shares = private_histogram(below, levels=["below", "above"], privacy=told(random_state=seed)).frame
        found["share"] = (shares.loc[[("share", "below")]], (true < true.mean()).mean())
        for name, (frame, value) in found.items():
            held[name] += frame["low"].iloc[0] <= value <= frame["high"].iloc[0]
    assert min(held.values()) >= 87, held
    assert held["mean"] < 100 or held["share"] < 100 or held["variance"] < 100


def test_tapes_record_one_release():
    tape = TapeNoise()
    with mock.patch("fdadp.privacy.noise.sources.SeededNoise", lambda seed: tape):
        private_mean(ages(), privacy=privacy(), **RANGE)
    assert [entry.size for entry in tape.entries] == [5]
