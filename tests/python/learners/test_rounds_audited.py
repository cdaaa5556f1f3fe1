"""What one person can move in releases of rounds, and what an attacker who sees all of them can tell.

Of linear and logistic regression by rounds, and of additive regression with narrowed ranges, by which all three learn
where numbers are; and of boosted stumps, whose selections are paid for by an exact plan.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from learner_registry import fit
from privacy_tools import distance

from fdadp.audit import black_box_audit
from fdadp.learners import DPAdditiveRegressor, DPBoostedStumps, DPLinearRegression, DPLogisticRegression, Numeric
from fdadp.privacy import Budget, SeededNoise, TapeNoise
from fdadp.privacy.kernel._kernel import Kernel
from fdadp.privacy.replayed_loss import losses

pytestmark = pytest.mark.filterwarnings("ignore::fdadp.errors.PublicInputWarning")
ADJACENCIES = ("zero-out", "add-remove", "replace")
ROWS = [[0.0, 0.0], [1.0, 1.0], [-1.0, 0.2], [1e30, -1e30], [1e300, 1e300], [np.nan, 0.0], [np.inf, 0.0]]
NUMBERS, LABELS = (-9.0, 0.1, np.inf, -1e300), (0, 1, 7)


class Learner(NamedTuple):
    """A learner, how many targets it has, what these may be, and how many releases it makes where n is declared."""

    make: Callable[..., Any]
    targets: int
    odd: tuple[float, ...]
    releases: int


def linear(**how):
    return DPLinearRegression(bounds=(-1, 1), bounds_y=(-2, 2), mechanism="rounds", **how)


def logistic(**how):
    return DPLogisticRegression(classes=[0, 1], bounds=(-1, 1), mechanism="rounds", **how)


def additive(**how):
    return DPAdditiveRegressor(bounds=(-1, 1), bounds_y=(-4, 4), narrow=True, n_passes=2, **how)


def stumps(**how):
    return DPBoostedStumps(classes=[0, 1], features=Numeric(-1, 1, edges=4), n_rounds=3, **how)


LEARNERS = {
    "linear": Learner(linear, 1, NUMBERS, 10),
    "linear, two targets": Learner(linear, 2, NUMBERS, 10),
    "logistic": Learner(logistic, 1, LABELS, 8),
    "additive": Learner(additive, 1, NUMBERS, 9),
    "stumps": Learner(stumps, 1, LABELS, 6),
}


class Table(NamedTuple):
    """Rows, their targets, and the person of each row or None."""

    X: Any
    y: Any
    persons: Any = None


def taped(monkeypatch, model, table, tape=None, seed: Any = 0):
    noise = TapeNoise(SeededNoise(np.random.default_rng(seed)), tape)
    fit(monkeypatch, noise, model, table.X, table.y, table.persons)
    return noise.entries


def beside_four(learner, own, grouped):
    """Four ordinary persons of a row each, and one of these rows (features, target)."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.uniform(-1, 1, (4, 2)), *(x for x, _ in own)])
    y = rng.uniform(-1, 1, (4, learner.targets)) if learner.odd is NUMBERS else np.array([[0.0], [1.0], [1.0], [0.0]])
    y = np.vstack([y, *(np.resize([t, 0.3], learner.targets) for _, t in own)])
    persons = np.minimum(np.arange(len(X)), 4) if grouped else None
    return Table(X, y if learner.targets > 1 else y[:, 0], persons)


@pytest.mark.each_once(("name", "adjacency"), ("name", "pure"), ("name", "rows"))
@pytest.mark.parametrize("pure", [True, False])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(
    ("name", "rows"), [*((name, 1) for name in LEARNERS), *((name, 3) for name in LEARNERS if "two" not in name)]
)
def test_no_person_moves_any_release_by_more_than_its_sensitivity(monkeypatch, name, adjacency, pure, rows):
    """Every pair of persons with extreme rows, given the same releases before, on the integers; and nothing is far
    from it. Of several rows a person has three times the same, or three that are unlike."""
    learner = LEARNERS[name]
    settings = {"delta": None if pure else 1e-6, "adjacency": adjacency, "n": None if adjacency == "add-remove" else 5}
    odd = list(itertools.product(ROWS, learner.odd))
    persons = [
        [row] * rows if i % 2 or rows == 1 else [row, odd[-i], odd[5 * i % len(odd)]] for i, row in enumerate(odd)
    ]

    def releases(own, tape=None):
        model = learner.make(epsilon=1.0, random_state=0, **settings)
        return taped(monkeypatch, model, beside_four(learner, own, rows > 1), tape)

    tape = releases(persons[1])
    found = [releases(own, tape) for own in persons]
    absent = releases([] if adjacency == "add-remove" else [([np.nan, np.nan], 0.0)], tape)
    pairs = [(absent, one) for one in found] if adjacency != "replace" else itertools.combinations(found, 2)
    moves = [[distance(a, b) / a.sensitivity for a, b in zip(one, other, strict=True)] for one, other in pairs]
    largest = np.max(moves, axis=0)
    assert len(largest) == learner.releases + (adjacency == "add-remove" and name != "stumps")
    assert (largest <= 1).all()
    assert (largest > 0.2).all(), largest


def neighbours(learner, adjacency, rows):
    """Three persons with and without a fourth of so many rows, who is at the end of a range; or with its opposite."""
    labels = learner.odd is LABELS

    def table(own):
        X = np.vstack([np.linspace(-1, 1, 3)[:, None], *[[[x] for x, _ in own]] * bool(own)])
        y = np.append([0.0, 0, 1] if labels else np.linspace(-1, 1, 3), [t for _, t in own])
        y = y if learner.targets == 1 else np.column_stack([y, -y])
        return Table(X, y, np.minimum(np.arange(len(X)), 3) if rows > 1 else None)

    x = 1.0
    other = {"add-remove": [], "zero-out": [(np.nan, 0.0)], "replace": [(x, 0.0 if labels else -2.0)]}[adjacency]
    return table(other * rows), table([(x, 1.0 if labels else 2.0)] * rows)


def attacked(monkeypatch, name, adjacency, delta, rows, draws):
    """Scores are log-likelihood ratios of all releases together, whatever is made of them."""
    learner, epsilon = LEARNERS[name], 2.0
    tables = neighbours(learner, adjacency, rows)
    budget = Budget(epsilon, delta, accounting=learner.make()._accounting)

    def score(side, seed):
        make = {"epsilon": epsilon, "delta": delta, "adjacency": adjacency, "random_state": 0}
        model = learner.make(n=None if adjacency == "add-remove" else 4, **make)
        drawn = taped(monkeypatch, model, tables[side], seed=[seed, side])
        with_other = taped(monkeypatch, model, tables[1 - side], drawn)
        return (2 * side - 1) * sum(each.loss for each in losses(drawn, with_other))

    scores = [np.array([score(side, seed) for seed in range(draws)]) for side in (1, 0)]
    mu = (2 * budget.total) ** 0.5 if budget.accounting == "gdp" and delta else None
    return black_box_audit(*scores, epsilon=epsilon, delta=delta or 0.0, mu=mu, level=0.99)


ATTACKS = list(zip(ADJACENCIES, (1e-4, None, 1e-4), (1, 3, 3), strict=True))
ATTACKED = [name for name in LEARNERS if "two" not in name]


@pytest.mark.statistics
@pytest.mark.parametrize(("adjacency", "delta", "rows"), ATTACKS)
@pytest.mark.parametrize("name", ATTACKED)
def test_who_sees_all_releases_learns_no_more_than_was_promised(monkeypatch, name, adjacency, delta, rows):
    """Gross faults alone: of noise that is too small by √2, 60 draws find less than one in ten (`power`)."""
    result = attacked(monkeypatch, name, adjacency, delta, rows, 60)
    assert result.passed and result.power < 0.1, str(result)


@pytest.mark.statistics
@pytest.mark.parametrize("name", ATTACKED)
def test_the_same_attack_finds_next_to_no_noise(monkeypatch, name):
    """A sixteenth of it, where much of the budget is spent on this person; of stumps, a sixty-fourth."""
    right, stumps = Kernel.sensitivity, name == "stumps"
    monkeypatch.setattr(Kernel, "sensitivity", lambda self, *a: right(self, *a) / (64 if stumps else 16))
    result = attacked(monkeypatch, name, "zero-out", *((None, 1, 120) if stumps else (1e-4, 1, 40)))
    assert not result.passed, str(result)
