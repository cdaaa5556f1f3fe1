"""Black-box audits of learners and summaries: many fits of two neighbouring tables, and what an attacker can tell.

The attacker knows both tables and the law of the noise, and sees what a user sees: the fitted object. It scores what it
sees by the likelihood ratio, about what the fit gives where the noise happens to be 0, and ``black_box_audit`` bounds ε
from the scores. Each audit is shown to fail where the noise is half of what it should be, or where a person counts as
often as it has rows. Learners and summaries of other kinds are audited with their own tests.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from mutants import mutate
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis

import fdadp.privacy.kernel._kernel as kernel_module
from fdadp import Privacy
from fdadp.audit import black_box_audit
from fdadp.learners import (
    DPAdditiveHistograms,
    DPAdditiveRegressor,
    DPForestClassifier,
    DPForestRegressor,
    DPGaussianNB,
    DPLogisticRegression,
    Numeric,
)
from fdadp.learners import logistic_regression as logistic_module
from fdadp.privacy import Exchangeable, SeededNoise
from fdadp.privacy.kernel._kernel import Kernel
from fdadp.privacy.rows._person_row_caps import Law
from fdadp.regression.reading.person_periods import Periods, expanded_privately
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
from fdadp.summaries.questions.moments_and_quantiles import WEIGHTS

pytestmark = pytest.mark.filterwarnings("ignore:what was released speaks against")
"""Of tables of eight persons fits say so."""

PURE = {"epsilon": 2.0}
GAUSSIAN = {"epsilon": 1.0, "delta": 0.1, "n": 8}
"""A δ so large that few draws can tell too little noise."""
DRAWS, ROWS, LEVEL = 500, 30, 0.999


class Silent(SeededNoise):
    """Noise of the right scale that is not added."""

    __slots__ = ()

    def prepare(self, *args, **kwargs):
        sampler = super().prepare(*args, **kwargs)
        return dataclasses.replace(sampler, draw=lambda exact: exact)


class Target(NamedTuple):
    """What is attacked: a fit of a table and the persons of its rows, and what the attacker makes of the fitted."""

    fit: Callable[..., Any]
    seen: Callable[[Any], Any]
    columns: dict[str, Any]
    """Of seven persons, or as many as there are, of one row each."""
    person: dict[str, Any]
    """The eighth."""
    settings: tuple[dict[str, Any], ...]

    def table(self, present, rows, n):
        """The table with or without the person, who has so many rows; without n the person's rows are left out."""
        frame = pd.DataFrame(self.columns)
        more = pd.DataFrame([self.person if present else dict.fromkeys(self.person)] * rows)
        ids = np.append(np.arange(len(frame)), np.full(len(more), len(frame)))
        if n is None and not present:
            return frame, ids[: len(frame)]
        return pd.concat([frame, more.astype(frame.dtypes)], ignore_index=True), ids


# ------------------------------------------------------------------ the attack


def ratio(values, absent, present, sds, *, pure):
    """Log-likelihood ratio of Laplace or normal noise of known sds, (draws,), of values (draws, k)."""
    a, b = np.abs(values - absent), np.abs(values - present)
    return ((a - b) * math.sqrt(2) / sds if pure else (a**2 - b**2) / (2 * sds**2)).sum(axis=1)


def attack(target, settings, draws=DRAWS, rows=1):
    """The audit of a target, of whom one person has so many rows."""
    tables = [target.table(present, rows, settings.get("n")) for present in (False, True)]

    def fit(present, seed):
        return target.fit(tables[present], random_state=seed, **settings)

    with mock.patch("fdadp.privacy.noise.sources.SeededNoise", Silent):
        absent, present = (fit(side, 0) for side in (0, 1))
    ledger = absent.ledger if hasattr(absent, "ledger") else absent.ledger_
    absent, present = np.asarray(target.seen(absent)), np.asarray(target.seen(present))
    sds = np.concatenate([np.full(release.size, release.sd) for release in ledger.releases])
    sds = sds if len(sds) == len(absent) else np.full(len(absent), sds[0])
    scores = []
    for side in (1, 0):
        values = np.array([target.seen(fit(side, seed)) for seed in range(side * draws, (side + 1) * draws)])
        scores.append(ratio(values, absent, present, sds, pure="delta" not in settings))
    return black_box_audit(*scores, epsilon=settings["epsilon"], delta=settings.get("delta", 0.0), level=LEVEL)


# ------------------------------------------------------------------ what is attacked


def of_privacy(function, **arguments):
    """A summary of the one column, or of the table."""

    def fit(table, *, random_state, **settings):
        frame, persons = table
        data = frame if function in (private_cross_table, private_survival) else frame["x"]
        privacy = Privacy(**settings, random_state=random_state)
        return function(data, **arguments, privacy=privacy, groups=persons)

    return fit


def table1(table, *, random_state, **settings):
    facts = {"arm": [0, 1], "x": (0, 100), "sex": [0, 1]}
    privacy = Privacy(**settings, random_state=random_state)
    return PrivateTable1(privacy=privacy, columns=facts, by="arm", quantiles=(0.5,), steps={"x": 10}).fit(
        table[0], groups=table[1]
    )


class Moment(NamedTuple):
    """A released moment of persons, and its ledger."""

    value: Any
    ledger: Any


def person_moment(table, *, random_state, **settings):
    """The second moments within the persons' rows together, clipped at the largest that two numbers have."""
    frame, persons = table
    cohort = Privacy(**settings, random_state=random_state).cohort(
        (frame[["x"]].to_numpy(dtype=float),), groups=persons, mechanism="moment", public={}
    )
    rows = cohort.by_person(lambda block: block[0], max_rows=4)
    found = rows.person_moment(lambda block: block[0], law="sum", clip=100.0, share=1.0, name="moment")
    return Moment(found.value.ravel(), rows.ledger)


def level_moments(table, *, random_state, **settings):
    """What models of curves of levels release: moments between and within persons, and equations within them.

    Each row is two days, of which the second is the first one's reverse at half its size, with a column that differs.
    """
    frame, persons = table
    x = frame["x"].to_numpy(dtype=float)
    days, weekend = np.column_stack((x, -x / 2)).reshape(-1, 1), np.tile([[1.0], [-1.0]], (len(x), 1))
    privacy = Privacy(**settings, random_state=random_state)
    cohort = privacy.cohort((days, weekend), groups=np.repeat(persons, 2), mechanism="levels", public={})
    rows = cohort.by_person(lambda block: block, max_rows=4)
    parts = [
        rows.person_moment(lambda block: block[0], law="between", clip=25.0, share=0.4, name="between"),
        rows.person_moment(lambda block: block[0], law="within", clip=50.0, share=0.4, name="within"),
        rows.person_moment(
            lambda block: block[1],
            lambda block: block[0],
            law=Exchangeable(math.inf),
            clip=10.0,
            share=0.2,
            name="both",
        ),
    ]
    return Moment(np.concatenate([part.value.ravel() for part in parts]), rows.ledger)


def hazard_sums(table, *, random_state, **settings):
    """What private hazards add up: of each period that a person was seen in, that it was, and whether it ended it."""
    frame, persons = table
    data = {"time": frame["x"].to_numpy(dtype=float), "died": frame["arm"].to_numpy(dtype=float)}
    periods = Periods.given([0.0, 25.0, 50.0, 75.0, 100.0], "half")
    rows, whose = expanded_privately(data, None, {"died": (0, 1)}, periods, ("time", "died"), persons)
    cohort = Privacy(**settings, random_state=random_state).cohort(
        (rows["period"], rows["died"]),
        groups=whose,
        mechanism="hazards",
        public={},
        person_rows="sum",
        max_rows=periods.count,
    )

    def seen(block):
        number, ended = (np.reshape(column, (-1, 1)) for column in block)
        return np.hstack(((number == np.arange(1, 5)) * 1.0, ended))

    found = cohort.sum(seen, clip=1.0, share=1.0, name="hazards")
    return Moment(found.value, cohort.ledger)


def learner(cls, **arguments):
    def fit(table, **settings):
        frame, persons = table
        return cls(**arguments, **settings).fit(frame[["x"]], frame["y"], groups=persons)

    return fit


def held(found):
    """Noisy sums that an ``Estimates`` holds, of whatever kind."""
    part = found.rows.args[0]
    if isinstance(part, list):  # curves by group
        return np.concatenate([np.append(curve.d, curve.q) for curve in part])
    for name, weights in (("sums", WEIGHTS), ("counts", 1.0), ("noisy", 1.0)):
        if hasattr(part, name):
            return getattr(part, name) * weights
    return np.array([part])


def odds_in_leaf(model):
    """Rows of the rare class in a leaf with many of the other."""
    rare, often = np.exp(model.leaf_log_share_[:, 0, 1])
    return [rare / often * OFTEN]


def moments_of_class(model):
    """Number of rows, sum and sum of squares of the rare class, about, of what naive Bayes says of it."""
    count = model.class_prior_[1] / model.class_prior_[0] * OFTEN
    mean = model.theta_[1, 0]
    return [count, mean * count, (model.var_[1, 0] + mean**2 - 0.5) * count]


OFTEN = 400
NUMBERS = {"x": [50.0, 40.0, 60.0, 55.0, 45.0, 50.0, 52.0]}
TABLE = NUMBERS | {"arm": [0.0, 1, 0, 1, 0, 1, 0], "sex": [0.0, 1, 1, 0, 0, 1, 1]}
BOUNDS, BOTH = {"bounds": (0.0, 100.0)}, (PURE, GAUSSIAN)
SKEWED = {
    "x": np.append(np.linspace(-1, 1, 2 * OFTEN), np.full(30, 0.5)),
    "y": np.append(np.zeros(2 * OFTEN), np.ones(30)),
}

TARGETS = {
    "count": Target(of_privacy(private_count), held, NUMBERS, {"x": 50.0}, (PURE,)),
    "mean": Target(of_privacy(private_mean, **BOUNDS), held, NUMBERS, {"x": 1e9}, BOTH),
    "variance": Target(of_privacy(private_variance, **BOUNDS), held, NUMBERS, {"x": 1e9}, BOTH),
    "quantiles": Target(of_privacy(private_quantiles, **BOUNDS), held, NUMBERS, {"x": 1e9}, BOTH),
    "histogram": Target(of_privacy(private_histogram, edges=[0, 50, 100]), held, NUMBERS, {"x": 70.0}, BOTH),
    "cross-table": Target(
        of_privacy(private_cross_table, columns={"arm": [0, 1], "sex": [0, 1]}),
        held,
        {k: v for k, v in TABLE.items() if k != "x"},
        {"arm": 1.0, "sex": 1.0},
        BOTH,
    ),
    "survival": Target(
        of_privacy(private_survival, time="x", event="arm", edges=[0, 30, 60, 90], by={"sex": [0, 1]}),
        held,
        TABLE,
        {"x": 70.0, "arm": 1.0, "sex": 1.0},
        BOTH,
    ),
    "person moment": Target(person_moment, lambda found: found.value, NUMBERS, {"x": 50.0}, BOTH),
    "moments of levels": Target(level_moments, lambda found: found.value, NUMBERS, {"x": 40.0}, BOTH),
    "hazards": Target(
        hazard_sums,
        lambda found: found.value,
        {name: TABLE[name] for name in ("x", "arm")},
        {"x": 90.0, "arm": 1.0},
        BOTH,
    ),
    "table 1": Target(
        table1,
        lambda model: np.concatenate([values.ravel() for values, _ in model._released]),
        TABLE,
        {"x": 1e9, "arm": 1.0, "sex": 0.0},
        BOTH,
    ),
    "forest, classes": Target(
        learner(DPForestClassifier, classes=[1, 0], bounds=(-1, 1), n_trees=1, depth=1),
        odds_in_leaf,
        SKEWED,
        {"x": 0.9, "y": 1.0},
        (PURE,),
    ),
    "forest, numbers": Target(
        learner(DPForestRegressor, bounds=(-1, 1), bounds_y=(0, 100), n_trees=2, depth=1),
        lambda model: np.concatenate([model.leaf_count_.ravel(), model.leaf_sum_.ravel()]),
        {"x": np.linspace(-1, 1, 7), "y": np.full(7, 50.0)},
        {"x": 0.9, "y": 1e9},
        BOTH,
    ),
    "naive Bayes": Target(
        learner(DPGaussianNB, classes=[0, 1], bounds=(-1, 1), correlation=0),
        moments_of_class,
        SKEWED,
        {"x": 7.0, "y": 1.0},
        (PURE,),
    ),
}
CASES = [
    pytest.param(name, how, id=f"{name}, {'pure' if how is PURE else 'with a delta'}")
    for name, target in TARGETS.items()
    for how in target.settings
]
CLEAREST = [case for case in CASES if case.values[1] is TARGETS[case.values[0]].settings[-1]]
TOLD = [case for case in CLEAREST if case.values[0] not in ("naive Bayes", "quantiles")]
"""Where twice the loss stands out in so few draws. What the others show is spread over several numbers."""


def half_the_noise(monkeypatch):
    right = Kernel.sensitivity
    monkeypatch.setattr(Kernel, "sensitivity", lambda self, *a: right(self, *a) / 2)


def no_clip(monkeypatch):
    """Rows of a person are added up, and what they add up to is not clipped."""
    right = kernel_module.exact_sum

    def mutant(*args, clip, law, **how):
        return right(*args, clip=clip * 64, law=Law("sum", 64), **how) * 64

    monkeypatch.setattr(kernel_module, "exact_sum", mutant)


@pytest.mark.statistics
@pytest.mark.parametrize(("name", "settings"), CASES)
def test_an_attacker_finds_no_more_than_was_promised(name, settings):
    """Gross faults alone: of noise that is too small by √2, 300 draws find less than one in a hundred (`power`)."""
    for rows in (1, ROWS):
        result = attack(TARGETS[name], settings, draws=300 if rows == 1 else 100, rows=rows)
        assert result.passed, str(result)


@pytest.mark.long
@pytest.mark.parametrize(("name", "settings"), CASES)
def test_an_attacker_finds_no_more_in_many_draws(name, settings):
    """Of noise that is too small by √2, 3,000 draws find most, where an attacker sees one release alone."""
    result = attack(TARGETS[name], settings, draws=3000)
    print(name, result)
    assert result.passed, str(result)
    assert result.power > 0.85
    assert result.found > 0.2 * settings["epsilon"]  # it sees the person


@pytest.mark.statistics
@pytest.mark.parametrize(("name", "settings"), TOLD)
def test_half_the_noise_is_found(name, settings, monkeypatch):
    """In 500 draws, of which the power against noise too small by √2 is .04 in pure ε and 0 with this δ."""
    half_the_noise(monkeypatch)
    result = attack(TARGETS[name], settings)
    assert not result.passed, str(result)


@pytest.mark.statistics
@pytest.mark.parametrize(("name", "settings"), [case for case in CLEAREST if case.values[0] != "count"])
def test_a_person_that_counts_as_often_as_it_has_rows_is_found(name, settings, monkeypatch):
    no_clip(monkeypatch)
    result = attack(TARGETS[name], settings, draws=250, rows=ROWS)
    assert not result.passed, str(result)


# ------------------------------------------------------------------ outputs that are no sums any more


def far_end(present, seed, rows=1):
    """The upper bound that is suggested for sixty persons about 15, and perhaps one at 900."""
    x = np.append(np.linspace(10, 20, 60), np.full(rows if present else 0, 900.0))
    persons = np.minimum(np.arange(len(x)), 60)
    found = suggest_bounds(x, within=(0, 1000), privacy=Privacy(2.0, random_state=seed), groups=persons)
    return found.bounds[1] + 1e3 * found.beyond["x"]


def ends(present, draws, rows=1):
    return np.array([far_end(present, seed + draws * present, rows) for seed in range(draws)])


@pytest.mark.statistics
@pytest.mark.filterwarnings("ignore:the noise is too large")
def test_suggested_bounds_tell_of_nobody(monkeypatch):
    assert black_box_audit(ends(1, 300), ends(0, 300), epsilon=2.0, level=LEVEL).passed
    assert black_box_audit(ends(1, 200, ROWS), ends(0, 200), epsilon=2.0, level=LEVEL).passed
    no_clip(monkeypatch)
    assert not black_box_audit(ends(1, 200, ROWS), ends(0, 200), epsilon=2.0, level=LEVEL).passed


def coefficients(present, seed, epsilon=2.0):
    """What a logistic regression with intervals says of forty persons, and perhaps one far out."""
    X, y = np.tile([[1.0], [1.0], [-1.0], [-1.0]], (10, 1)), np.arange(40) % 2
    if present:
        X, y = np.vstack([X, [[30.0]]]), np.append(y, 1)
    settings = {"classes": [0, 1], "data_norm": 1.0, "regularization": 5.0, "inference": True, "random_state": seed}
    model = DPLogisticRegression(epsilon=epsilon, **settings).fit(X, y)
    table = model.coef_table()
    seen = [
        *model.coef_[0],
        *model.intercept_,
        *table["estimate"],
        *table["std_error"],
        *table["lower"],
        *table["upper"],
    ]
    return np.clip([*seen, *model._at_fit.curvature[np.triu_indices(2)]], -99.0, 99.0)  # ends may be infinite


def learned(draws, of=coefficients):
    """Scores of an attacker who learns from the first half of the draws, on which thresholds are chosen, too."""
    values = [np.array([of(side, seed + draws * side) for seed in range(draws)]) for side in (1, 0)]
    half = draws // 2
    first = np.vstack([v[:half] for v in values])
    rule = QuadraticDiscriminantAnalysis(reg_param=1e-3)
    middle, spread = first.mean(axis=0), first.std(axis=0) + 1e-9
    rule.fit((first - middle) / spread, np.repeat([1, 0], half))
    return [rule.decision_function((v - middle) / spread) for v in values]


def audit_of_coefficients(draws):
    return black_box_audit(*learned(draws), epsilon=2.0, level=LEVEL)


@pytest.mark.statistics
def test_coefficients_and_their_intervals_tell_of_nobody(monkeypatch):
    assert audit_of_coefficients(300).passed
    mutate(
        monkeypatch,
        logistic_module,
        "return np.asarray(z * np.sqrt(p * (1 - p)) + 0.0 * t)",
        "return np.asarray(z * np.maximum(np.abs(rows[0]), 1.0) * np.sqrt(p * (1 - p)) + 0.0 * t)",  # out of the ball
    )
    assert audit_of_coefficients(200).passed  # the kernel clips what it is given
    right = kernel_module.rank_one_sum
    monkeypatch.setattr(
        kernel_module, "rank_one_sum", lambda *args, clip, **how: right(*args, clip=clip * 1024, **how) * 1024
    )
    assert not audit_of_coefficients(200).passed


@pytest.mark.long
def test_coefficients_and_their_intervals_tell_of_nobody_in_many_draws():
    result = audit_of_coefficients(4000)
    print(result)
    assert result.passed


def functions(kind, present, seed, rows=1):
    """What an additive model says of forty persons, and perhaps one far out in a bin that hardly anyone is in."""
    x, y = np.append(np.full(38, 0.2), [0.8, 0.8]), np.arange(40) % 2
    more = rows if present else 0
    X, y = np.append(x, np.full(more, 0.9))[:, None], np.append(y, np.ones(more, dtype=int))
    settings = {"epsilon": 2.0, "features": Numeric(0, 1, edges=2), "n_passes": 1, "count_share": 0.5}
    known = {"classes": [0, 1]} if kind is DPAdditiveHistograms else {"bounds_y": (-1, 1)}
    model = kind(**settings, **known, random_state=seed).fit(X, y, groups=np.minimum(np.arange(len(X)), 40))
    return [*model.bin_counts_, model.intercept_, *model.scores_]


@pytest.mark.statistics
@pytest.mark.parametrize("kind", [DPAdditiveHistograms, DPAdditiveRegressor])
def test_additive_models_tell_of_nobody(kind, monkeypatch):
    def audit(draws, rows=1):
        scores = learned(draws, lambda present, seed: functions(kind, present, seed, rows))
        return black_box_audit(*scores, epsilon=2.0, level=LEVEL)

    for rows in (1, ROWS):
        assert audit(300, rows).passed
    no_clip(monkeypatch)
    result = audit(300, ROWS)
    assert not result.passed, str(result)
