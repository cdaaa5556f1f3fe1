"""Replay audit of private regressions of times to an event: a person's periods, all together, cost the budget."""

from __future__ import annotations

import itertools
from unittest import mock

import numpy as np
import pytest
from covering import few

from fdadp import Privacy, SurvivalRegression
from fdadp.audit.replay import Neighbours, replay_audit
from fdadp.privacy import Budget
from fdadp.privacy.kernel._kernel import Kernel

pytestmark = pytest.mark.filterwarnings("ignore:n \\* epsilon is", "ignore:what was released speaks against")
PERSONS, WHO = 60, 17
s, TIMES = np.linspace(0, 1, 12), range(6)
BOUNDS = {"X": (-4, 4), "age": (-1, 1), "arm": ["drug", "placebo"]}
FORMULA = "Surv(entry, time, died) ~ lf(X) + age + C(arm) + age:period"
VARIANTS = {"zero-out": {}, "replace": {"adjacency": "replace"}, "add-remove": {"n": None}, "pure": {"delta": None}}
CANARIES = {"early": 0.5, "never": 1e300, "missing": np.nan}
"""When the person who stands out has the event."""


def sample(seed):
    """A row for each stay of persons who have one or two, as objects."""
    rng = np.random.default_rng(seed)
    ids = np.sort(np.append(np.arange(PERSONS), rng.choice(PERSONS, PERSONS // 2, replace=False)))
    n = ids.size
    return {
        "X": (rng.normal(size=(n, 1)) + 0.3 * rng.normal(size=(n, s.size))).astype(object),
        "age": rng.uniform(-1, 1, n).astype(object),
        "arm": np.array(["drug", "placebo"], dtype=object)[rng.integers(0, 2, n)],
        "entry": (entry := rng.choice([-1.0, 0.0, 0.3, 1.2], n)).astype(object),
        "time": (entry.clip(0) + rng.exponential(4, n)).astype(object),
        "died": (rng.random(n) < 0.8).astype(float).astype(object),
        "id": ids.astype(object),
    }


def with_canary(data, when):
    """The same, of whom one person stands out in all columns and has six stays; and which rows are its."""
    keep = data["id"] != WHO
    out = {name: np.concatenate([column[keep], np.repeat(column[~keep][:1], 6, 0)]) for name, column in data.items()}
    rows = np.arange(keep.sum(), keep.sum() + 6)
    sign = np.where(np.arange(6) % 2, 1.0, -1.0)
    out["X"][rows] = 1e9 * sign[:, None]
    out["age"][rows], out["time"][rows], out["died"][rows] = 1e9 * sign, when, 1.0
    out["entry"][rows] = [-1e300, 0.0, 0.2, 0.4, 2.5, np.nan]
    return out, rows


def other(data, rows, variant):
    """The neighbour: without the person, with nobody's rows, or with somebody else's."""
    if variant == "add-remove":
        return {name: np.delete(column, rows, axis=0) for name, column in data.items()}
    out = {name: column.copy() for name, column in data.items()}
    if variant == "replace":
        for name, value in (("X", 0.0), ("age", 0.0), ("arm", "drug"), ("time", 3.5), ("died", 0.0), ("entry", 0.0)):
            out[name][rows] = value
        return out
    out["id"][rows] = None  # nobody's rows add nothing
    return out


def neighbours(variants=tuple(VARIANTS), families=("binomial", "poisson"), kinds=tuple(CANARIES)):
    for number, (variant, family, kind) in enumerate(itertools.product(variants, families, kinds)):
        first, rows = with_canary(sample(number), CANARIES[kind])
        how = {"epsilon": 8.0, "delta": 1e-6, "n": PERSONS} | VARIANTS[variant]

        def run(data, noise, how=how, family=family):
            columns = {name: column for name, column in data.items() if name != "id"}
            with mock.patch("fdadp.privacy.noise.sources.SeededNoise", lambda *_: noise):
                model = SurvivalRegression(
                    FORMULA,
                    times=TIMES,
                    family=family,
                    bounds=BOUNDS,
                    privacy=Privacy(**how, random_state=0),
                    progress=False,
                ).fit(columns, groups=data["id"], grids={"X": s})
            new = {"X": np.zeros((2, s.size)), "age": np.zeros(2), "arm": np.array(["drug", "placebo"])}
            seen = {name: value for name, value in vars(model.model_).items() if name not in ("privacy", "_kin")}
            return {
                "numbers": [
                    model.predict(new, type="hazard", grids={"X": s}),
                    model.predict_survival(new, grids={"X": s}),
                ],
                "attributes": seen,
                "texts": [str(model.summary()), str(model.ledger_), *model.model_.notes_],
            }

        budget = Budget(8.0, how["delta"]).total
        yield Neighbours(f"{variant}, {family}, {kind}", run, first, other(first, rows, variant), budget)


@pytest.mark.parametrize("count", [4, pytest.param(24, marks=pytest.mark.statistics)])
def test_hazards_cost_at_most_their_budget_and_show_nothing_else(count):
    """Four pairs have each variant, family and kind; twenty-four are all."""
    product = list(itertools.product(VARIANTS, ("binomial", "poisson"), CANARIES))
    chosen = few(product) if count < len(product) else range(len(product))
    result = replay_audit((pair for place, pair in enumerate(neighbours()) if place in chosen), seed=5)
    assert result.passed, str(result)
    assert 0.5 < result.changes.max() <= 1 and result.finished == count


def test_the_audit_notices_hazards_that_count_each_period_for_itself(monkeypatch):
    right = Kernel.sensitivity
    monkeypatch.setattr(Kernel, "sensitivity", lambda self, *a: right(self, *a) / 5)  # of five periods in one
    assert not replay_audit(neighbours(("zero-out",), ("binomial",), ("never",)), seed=1).passed
