"""Private survival: exact without noise, limits that hold, groups compared; a person is one unit in one cell."""

from __future__ import annotations

import warnings
from dataclasses import replace
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from neighbour_tools import change
from statsmodels.duration.survfunc import SurvfuncRight, survdiff

from fdadp import Privacy
from fdadp.audit.replay import Neighbours, replay_audit
from fdadp.errors import InputError, PrivacyError
from fdadp.privacy import Budget
from fdadp.summaries import private_survival
from fdadp.summaries.survival_curves import SurvivalCounts, log_rank

EDGES = np.arange(0.0, 13.0)


def people(n=600, seed=0, effect=0.0):
    rng = np.random.default_rng(seed)  # or a generator
    arm = rng.integers(0, 2, n)
    t, c = rng.weibull(1.3, n) * 8 * np.exp(effect * arm), rng.uniform(3, 16, n)
    return pd.DataFrame({"months": np.minimum(t, c), "died": t <= c, "arm": np.where(arm == 1, "drug", "placebo")})


def told(n=600, epsilon=1.0, delta=1e-6, seed=0):
    return Privacy(epsilon, delta, n=n, random_state=seed)


def curve(X, epsilon=1.0, by=None, **more):
    found = private_survival(X, "months", "died", edges=EDGES, by=by, privacy=told(len(X), epsilon), **more)
    return found.frame.sort_index()


def exact_counts(X):
    """Cells of persons without noise."""
    at = np.searchsorted(EDGES[1:], X["months"], side="left")
    died = X["died"].to_numpy()
    K = len(EDGES) - 1
    return np.bincount(np.where(at >= K, 2 * K, np.where(died, at, K + at)), minlength=2 * K + 1).astype(float)


def test_with_little_noise_it_is_the_actuarial_estimate():
    X = people()
    d, q = np.split(exact_counts(X)[:-1], 2)
    risk = len(X) - np.concatenate(([0], np.cumsum(d + q)[:-1])) - q / 2
    assert np.abs(curve(X, 1e4)["value"].to_numpy() - np.cumprod(1 - d / risk)).max() < 3e-3


def test_without_censoring_inside_intervals_it_is_kaplan_and_meiers():
    X = people()
    X["months"] = np.ceil(X["months"])
    X.loc[~X["died"], "months"] += 0.0
    own = SurvivalCounts.of(exact_counts(X), 0.0, float(len(X)))
    # Censored persons of an interval count as seen to its end here, and for half of it there.
    whole = replace(own, risk=own.risk + own.q / 2)
    theirs = SurvfuncRight(X["months"], X["died"].astype(int))
    at = {float(t): s for t, s in zip(theirs.surv_times, theirs.surv_prob, strict=True)}
    assert [round(s, 12) for s in whole.survival] == [round(at[float(t)], 12) for t in EDGES[1:]]
    se = dict(zip(map(float, theirs.surv_times), theirs.surv_prob_se, strict=True))
    ours = whole.survival * np.sqrt(whole.log_variance)
    assert np.allclose(ours, [se[float(t)] for t in EDGES[1:]], rtol=1e-9)


def test_the_log_rank_statistic_is_mantels_without_noise():
    X = people(effect=0.4)
    X["months"], inside = np.ceil(X["months"]), X["months"] <= 12
    X = X[inside]
    groups = [X[X["arm"] == arm] for arm in ("drug", "placebo")]
    own = [SurvivalCounts.of(exact_counts(g), 0.0, float(len(g))) for g in groups]
    whole = [replace(c, risk=c.risk + c.q / 2) for c in own]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        chi2, _ = survdiff(X["months"], X["died"].astype(int), X["arm"])
    assert log_rank(*whole) ** 2 == pytest.approx(chi2, rel=1e-9)
    assert log_rank(*whole) == pytest.approx(-log_rank(*whole[::-1]))


@pytest.mark.statistics
def test_limits_and_the_test_hold_their_level():
    rng = np.random.default_rng(0)
    held, apart, rejected = [], [], []
    truth = np.exp(-((EDGES[1:] / 8) ** 1.3))
    for seed in range(120):
        X = people(2000, int(rng.integers(2**31)))
        found = private_survival(X, "months", "died", edges=EDGES, privacy=told(2000, seed=seed)).frame
        held.append(((found["low"] <= truth) & (truth <= found["high"])).mean())
        by = {"arm": ["drug", "placebo"]}
        found = private_survival(
            X, "months", "died", edges=EDGES, by=by, privacy=told(2000, seed=seed)
        ).frame.sort_index()
        gap = found.loc[("difference", "survival")]
        apart.append(((gap["low"] <= 0) & (gap["high"] >= 0)).mean())
        rejected.append(abs(found.loc[("difference", "log-rank z"), "value"].iloc[0]) > 1.96)
    assert 0.925 < np.mean(held) < 0.98 and 0.92 < np.mean(apart) < 0.985 and np.mean(rejected) < 0.12


@pytest.mark.statistics
@pytest.mark.parametrize("sd", [0.0, 6.0])
def test_the_log_rank_test_rejects_equal_groups_as_often_as_it_says(sd):
    """1,500 samples of 1,000 persons, without noise and with that of the counts: .05, give or take .017 (3 sds)."""
    rng = np.random.default_rng(4)
    z = []
    for _ in range(1500):
        X, groups = people(1000, rng), []
        for arm in ("drug", "placebo"):
            counts = exact_counts(X[X["arm"] == arm])
            groups.append(SurvivalCounts.of(counts + sd * rng.normal(size=counts.size), sd, None))
        z.append(log_rank(*groups))
    assert np.mean(np.abs(z) > 1.96) == pytest.approx(0.05, abs=0.017)
    assert np.std(z) == pytest.approx(1, abs=0.06)


def test_a_difference_is_found():
    found = curve(people(3000, effect=0.5), by={"arm": ["drug", "placebo"]})
    gap = found.loc[("difference", "survival")]
    assert (gap["low"].iloc[3:9] > 0).all() and found.loc[("difference", "log-rank z"), "value"].iloc[0] < -3
    assert set(found.index.get_level_values(0)) == {"drug", "placebo", "difference"}


def test_rows_permuted_and_containers_change_nothing():
    X = people()
    wanted = curve(X)
    for same in (X.sample(frac=1, random_state=1), X[["arm", "died", "months"]], X.astype({"died": int})):
        pd.testing.assert_frame_equal(curve(same), wanted)
    array = np.column_stack([X["months"], X["died"]])
    found = private_survival(array, "months", "died", edges=EDGES, privacy=told()).frame.sort_index()
    pd.testing.assert_frame_equal(found, wanted)


def test_what_is_missing_counts_nowhere():
    X = people()
    gaps = X.copy()
    gaps.loc[:99, "months"] = np.nan
    assert np.abs(curve(gaps, 1e4)["value"] - curve(X[100:], 1e4)["value"]).max() < 3e-3


@pytest.mark.each_once
@pytest.mark.parametrize("by", [None, {"arm": ["drug", "placebo"]}])
@pytest.mark.parametrize("grouped", [False, True])
def test_a_person_moves_the_counts_by_one_unit(by, grouped):
    X = people(40)
    other = X.copy()
    other.loc[:2, ["months", "died", "arm"]] = [1e300, True, "drug"]
    ids = np.repeat(np.arange(14), 3)[:40] if grouped else None
    if not grouped:
        other.loc[1:2] = X.loc[1:2]

    def fit(data):
        privacy = Privacy(1.0, 1e-6, n=40, adjacency="replace", random_state=0)
        private_survival(data, "months", "died", edges=EDGES, by=by, privacy=privacy, groups=ids)

    assert 0 < change(fit, X, other) <= 1


def neighbours():
    """A person who stands out, blanked out, replaced or taken away."""
    X = people(40).astype(object).assign(id=np.arange(40).astype(object))
    X.loc[7, ["months", "died"]] = [1e300, True]

    def blanked(Z):
        return Z.assign(id=Z["id"].where(Z.index != 7, None))  # nobody's: it adds nothing

    for name, told_, change_ in (
        ("blanked out", {"n": 40}, blanked),
        (
            "replaced",
            {"n": 40, "adjacency": "replace"},
            lambda Z: Z.assign(months=Z["months"].where(Z.index != 7, 2.0)),
        ),
        ("taken away", {}, lambda Z: Z.drop(index=7).reset_index(drop=True)),
        ("pure", {"n": 40, "delta": None}, blanked),
    ):
        how = {"epsilon": 2.0, "delta": 1e-6} | told_

        def run(data, noise, how=how):
            with mock.patch("fdadp.privacy.noise.sources.SeededNoise", lambda *_: noise):
                found = private_survival(
                    data,
                    "months",
                    "died",
                    edges=EDGES,
                    privacy=Privacy(**how, random_state=0),
                    by={"arm": ["drug", "placebo"]},
                    groups=data["id"].to_numpy(),
                )
            return {"numbers": found.frame.to_numpy(), "texts": [str(found.ledger)]}

        yield Neighbours(name, run, X, change_(X), Budget(how["epsilon"], how["delta"]).total)


def test_survival_costs_its_budget_and_shows_nothing_else():
    result = replay_audit(neighbours(), seed=1)
    assert result.passed, str(result)
    assert 0.4 < result.changes.max() <= 1 and result.finished == 4


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"edges": [3.0, 1.0]}, "edges must be at least two increasing"),
        ({"edges": pd.date_range("2020-01-01", periods=3)}, "edges must be increasing numbers, as days since a date"),
        ({"edges": range(1000)}, "edges must make at most 500 intervals"),
        ({"by": {"arm": ["a"], "b": [1]}}, "by must be the classes of one column"),
        ({"by": {"died": [0, 1]}}, "must be different columns"),
        ({"by": {"where": ["a", "b"]}}, "no \\['where'\\]"),
        ({"level": 2.0}, "level"),
    ],
)
def test_wrong_arguments_are_refused_and_nothing_is_spent(more, says):
    budget = Budget(1.0, 1e-6)
    given = {"edges": EDGES, "privacy": Privacy(1.0, 1e-6, n=600, budget=budget)} | more
    with pytest.raises((InputError, PrivacyError), match=says):
        private_survival(people(), "months", "died", **given)
    assert budget.spent == budget.reserved == 0
