"""A choice among private models: one budget, one ledger, persons in one part each, and nothing else that tells."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from mutants import mutate
from output_perturbation import OutputPerturbation

from fdadp import AdditiveFunctionOnFunction, Privacy, choose_privately
from fdadp.audit import Neighbours, replay_audit
from fdadp.choice import choose
from fdadp.choice.choose import _held
from fdadp.errors import InputError, PrivacyError
from fdadp.learners import (
    DPBoostedStumps,
    DPCategoricalNB,
    DPGaussianNB,
    DPLinearRegression,
    DPLogisticRegression,
    Numeric,
)
from fdadp.privacy import Budget, Cohort, SeededNoise
from fdadp.privacy.account._reservations import Release, counted
from fdadp.privacy.account.budget import apart
from fdadp.privacy.certificate.ledger_recount import verify_ledger
from fdadp.privacy.noise.distributed import noise_source


def line(**more):
    return DPLinearRegression(**{"bounds": (-1, 1), "bounds_y": (-1, 1), **more})


def bayes(**more):
    return DPGaussianNB(classes=["no", "yes"], bounds=(-1, 1), **more)


def people(n=600, kind="numbers", seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    y = X @ [0.6, 0.3] + 0.05 * rng.standard_normal(n)
    return X, y if kind == "numbers" else np.where(y > 0, "yes", "no")


LATER = pytest.mark.long


@pytest.mark.statistics
@pytest.mark.parametrize(
    ("delta", "kind"),
    [
        (None, "labels"),
        (1e-6, "numbers"),
        pytest.param(None, "numbers", marks=LATER),
        pytest.param(1e-6, "labels", marks=LATER),
    ],
)
def test_it_finds_the_better_one_within_one_budget(kind, delta):
    X, y = people(3000, kind)
    lines = [line(bounds=(50.0, 60.0)), line()]  # the first one sees all rows at its border
    candidates = lines if kind == "numbers" else [bayes(priors=[0.999, 0.001]), bayes()]
    budget = Budget(2.0, delta)
    privacy = Privacy(2.0, delta, n=3000, random_state=1, budget=budget, dataset="people")
    found = choose_privately(candidates, X, y, privacy, clip=0.1 if kind == "numbers" else None)
    assert found.index == 1
    predicted = found.estimator.predict(X)
    assert (np.mean(predicted == y) > 0.8) if kind == "labels" else (np.corrcoef(predicted, y)[0, 1] > 0.8)
    ledger = found.ledger
    assert ledger.private and not ledger.for_release
    assert (ledger.epsilon, ledger.delta) == (2.0, delta)
    steps = {
        step: sum(r.spent for r in ledger.releases if r.name.startswith(step)) for step in ("ca", "choice", "chosen")
    }
    trials, choice, fit = steps.values()
    assert 0.99 * budget.total < max(trials, choice) + fit <= budget.cost <= budget.total
    assert trials == pytest.approx(choice, rel=0.01) and trials == pytest.approx(0.2 * budget.total, rel=0.01)
    assert ledger.details["spent by its releases"] == pytest.approx(max(trials, choice) + fit)
    assert {r.name.split(":")[0] for r in ledger.releases} == {"candidate 1", "candidate 2", "choice", "chosen"}
    assert found.estimator.ledger_.others == 0
    for one in (ledger, found.estimator.ledger_):  # no groups: nobody said that rows are persons
        assert one.details["unit"].startswith("row")
        assert "Protected unit: row" in one.statement
        assert all(r.unit.startswith("row") for r in one.releases)
    part, ids = slice(900), np.arange(900) // 2
    grouped = choose_privately(candidates, X[part], y[part], Privacy(2.0, delta, random_state=1), ids, clip=0.1)
    assert grouped.ledger.details["unit"].startswith("person")
    assert all(not hasattr(candidate, "ledger_") for candidate in candidates)


def test_a_person_is_in_one_part_whatever_the_others_are():
    ids = ["a", 1, 1.0, "1", ("H1", 7), 2**60]
    assert _held(1, 0.5) == _held(1.0, 0.5) == _held("1", 0.5)
    parts = {repr(one): _held(one, 0.5) for one in ids}
    assert len(set(parts.values())) == 2
    share = np.mean([_held(i, 0.25) for i in range(4000)])
    assert share == pytest.approx(0.25, abs=0.03)


@pytest.mark.parametrize(("delta", "adjacency"), [(1e-6, "zero-out"), (None, "add-remove"), (1e-6, "replace")])
def test_trials_and_choice_cost_together_what_the_dearer_costs(delta, adjacency):
    """Not where persons are replaced. The budget holds to it, and whoever adds up the ledger finds the same."""
    X, y = people(600)
    budget = Budget(4.0, delta)
    n = None if adjacency == "add-remove" else 300
    privacy = Privacy(4.0, delta, n=n, adjacency=adjacency, random_state=0, budget=budget, dataset="them")
    told = {"groups": np.arange(600) // 2, "clip": 0.1, "allow_useless": True, "select_share": 0.1}
    found = choose_privately([line(), line(mechanism="moments")], X, y, privacy, **told)
    together = found.plan.parallel
    assert together == (adjacency != "replace") and ("larger of the two" in str(found.plan)) == together
    assert found.plan.share("fit of the chosen one") == pytest.approx(0.8 if together else 0.7)
    assert verify_ledger(found.ledger) == ()
    assert 0.99 * budget.total < budget.cost <= budget.total
    assert {r.part for r in found.ledger.releases} == ({"trials", "choice", ""} if together else {""})
    if together:
        summed = [dataclasses.replace(r, part="") for r in found.ledger.releases]
        assert "the releases cost more" in str(verify_ledger(dataclasses.replace(found.ledger, releases=summed)))
    with pytest.raises(PrivacyError, match="budget must have"):
        choose_privately([line(), line()], X, y, privacy, **told)


def test_parts_of_a_budget_share_what_one_of_them_may_spend():
    X = np.ones((40, 2))
    budget = Budget(1.0)
    first, second = apart(budget, 0.3)
    told = {"n": 40, "noise": SeededNoise(0), "dataset": "them"}

    def spend(of, share):
        cohort = Cohort(X, budget=of, share=share, **told)
        cohort.sum(lambda r: r[0], clip=1.0, share=1.0, name="s")
        return cohort.releases[0].epsilon

    assert budget.reserved == 0
    assert spend(first, 0.2) == pytest.approx(0.2) and budget.spent == pytest.approx(budget.cost) == pytest.approx(0.3)
    assert spend(second, 0.3) == pytest.approx(0.3) and budget.spent == pytest.approx(0.3)
    for of, share in ((second, 0.01), (first, 0.11), (budget, 0.71)):
        with pytest.raises(PrivacyError, match="has left"):
            spend(of, share)
    with pytest.raises(PrivacyError, match="another data set"):
        Cohort(X, budget=first, share=0.05, **(told | {"dataset": "others"}))
    assert spend(first, 0.1) and spend(budget, 0.7) and budget.cost <= budget.total
    assert budget.left == pytest.approx(0, abs=1e-12)


SETTINGS = [("zero-out", True), ("zero-out", False), ("add-remove", True), ("replace", True), ("replace", False)]


def pairs(adjacency, grouped, delta, kind, who=(3, 7)):
    X, y = people(40, kind)
    X[3] = [np.nan, 1.0]
    X[10:12] = [[1.0, 1.0], [-1.0, 1.0]]  # a person at the bounds
    y[10:12] = [1.0, -1.0] if kind == "numbers" else "yes"
    ids = [f"person {i // 2}" for i in range(40)] if grouped else None
    candidates = [line(), line(mechanism="moments")] if kind == "numbers" else [bayes(), bayes(var_floor=0.1)]
    n = None if adjacency == "add-remove" else 20 if grouped else 40
    privacy = Privacy(2.0, delta, n=n, adjacency=adjacency, dataset=f"{adjacency} {grouped} {delta} {kind}")

    def run(data, noise):
        with noise_source(noise):
            found = choose_privately(candidates, *data[:2], privacy, groups=data[2], allow_useless=True)
        return found.index, found.ledger, vars(found.estimator), found.estimator.predict(X[4:9])

    for i in who:
        mine = np.arange(40) // 2 == i // 2 if grouped else np.arange(40) == i
        if adjacency == "add-remove":
            keep = np.flatnonzero(~mine)
            yield Neighbours(f"{i}", run, (X, y, ids), (X[keep], y[keep], [ids[k] for k in keep]), **total(delta))
            continue
        other, others = X.copy(), ids
        other[mine] = np.nan if adjacency == "zero-out" else [1.0, -1.0]
        labels = y.copy()
        if adjacency == "replace":
            labels[mine] = 1.0 if kind == "numbers" else "yes"
            if grouped:  # by somebody with another id, who may be in the other part
                others = [f"new {i}" if m else one for one, m in zip(ids, mine, strict=True)]
        yield Neighbours(f"{i}", run, (X, y, ids), (other, labels, others), **total(delta))


def total(delta):
    budget = Budget(2.0, delta)
    return {"total": budget.total, "accounting": budget.accounting}


KINDS = [(None, "labels"), (1e-6, "numbers"), (None, "numbers"), (1e-6, "labels"), (1e-6, "numbers")]


@pytest.mark.parametrize(
    ("adjacency", "grouped", "delta", "kind"), [(*s, *k) for s, k in zip(SETTINGS, KINDS, strict=True)]
)
def test_exact_privacy_loss_of_the_whole_procedure_by_replay(adjacency, grouped, delta, kind):
    audit = replay_audit(pairs(adjacency, grouped, delta, kind))
    assert audit.passed, str(audit)
    assert audit.finished == len(audit.ratios)
    assert 0.01 < audit.changes.max() <= 1


@pytest.mark.long
@pytest.mark.parametrize(("adjacency", "grouped"), SETTINGS)
@pytest.mark.parametrize(("delta", "kind"), [(None, "labels"), (1e-6, "numbers"), (None, "numbers"), (1e-6, "labels")])
def test_every_person(adjacency, grouped, delta, kind):
    audit = replay_audit(pairs(adjacency, grouped, delta, kind, who=range(0, 40, 2)))
    assert audit.passed, str(audit)
    assert audit.changes.max() > 0.4  # the person at the bounds: half and more of what the noise is made for


def test_mutant_that_splits_by_place_where_a_person_may_be_absent(monkeypatch):
    """Then everybody after that person changes sides: the audit finds it, and the product refuses such data."""
    mutate(monkeypatch, choose, "_held(one, holdout) for one in ids", "at % 4 == 0 for at, _ in enumerate(ids)")
    assert not replay_audit(pairs("add-remove", True, 1e-6, "numbers")).passed
    with pytest.raises(PrivacyError, match="groups must name persons"):
        choose_privately([line(), line()], *people(), Privacy(1.0))


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"candidates": [line()]}, "at least two"),
        ({"candidates": [line(), bayes()]}, "all classifiers or none"),
        ({"candidates": [line(), object()]}, r"clone|private estimators"),
        ({"candidates": [line(), line(bounds_y=(-2, 1))]}, "clip must be given"),
        ({"candidates": [DPCategoricalNB(classes=["no", "yes"], categories=[[0]] * 2)] * 2}, "tables of numbers"),
        ({"clip": 0.0}, "clip must be a finite number above 0"),
        ({"holdout": 1.0}, "holdout must lie between 0 and 1"),
        ({"select_share": 0.0}, "select_share must lie between 0 and 1"),
        ({"groups": [1, 2]}, "one id for each row"),
        ({"privacy": 1.0}, "privacy must be a Privacy"),
    ],
)
def test_what_is_refused_costs_nothing(changes, text):
    X, y = people()
    budget = Budget(1.0)
    arguments = {
        "candidates": [line(), line()],
        "privacy": Privacy(1.0, n=600, budget=budget, dataset="people"),
        **changes,
    }
    with pytest.raises((InputError, PrivacyError, TypeError), match=text):
        choose_privately(X=X, Y=y, **arguments)
    assert budget.spent == budget.reserved == 0


def test_a_budget_that_is_partly_spent_is_refused_before_the_first_fit():
    X, y = people()
    budget = Budget(1.0)
    line(epsilon=0.5, n=450, adjacency="zero-out", budget=budget, dataset="people", unit="person", random_state=0).fit(
        X, y, groups=range(600)
    )
    with pytest.raises(PrivacyError, match="must have what the choice takes"):
        choose_privately([line(), line()], X, y, Privacy(1.0, n=600, budget=budget, dataset="people"))
    assert budget.spent == pytest.approx(0.5)


def test_mechanisms_that_want_a_whole_budget_are_refused():
    X, y = people(kind="labels")
    objective = [DPLogisticRegression(classes=["no", "yes"], data_norm=norm) for norm in (1.0, 2.0)]
    with pytest.raises((InputError, PrivacyError), match="one row a person"):
        choose_privately(objective, X, y, Privacy(1.0, 1e-6, n=600), range(600))


def test_curves():
    rng = np.random.default_rng(0)
    X = np.cumsum(rng.normal(size=(1000, 15)), axis=1) / 4
    Y = X + 0.1 * rng.normal(size=X.shape)
    privacy = Privacy(4.0, 1e-6, n=1000, random_state=0)
    bounds = {"X": (-4, 4), "Y": (-5, 5)}
    candidates = [
        AdditiveFunctionOnFunction(privacy=Privacy(1.0, 1e-6, n=1500), bounds=bounds, mechanism=mechanism)
        for mechanism in (OutputPerturbation(), "dp-aff")
    ]
    found = choose_privately(candidates, X, Y, privacy, clip=1.0)
    assert found.index == 1
    assert found.estimator.mechanism == "dp-aff"
    assert found.ledger.epsilon == 4.0
    frames = choose_privately(candidates, pd.DataFrame(X), pd.DataFrame(Y), privacy, clip=1.0)  # with labels of rows
    np.testing.assert_array_equal(frames.estimator.coef_, found.estimator.coef_)


def test_a_budget_for_candidates_that_select_most_of_the_time_is_in_zcdp():
    X, y = people(300, "labels")
    stumps = [DPBoostedStumps(classes=["no", "yes"], features=Numeric(-1, 1, edges=4), n_rounds=r) for r in (1, 2)]
    privacy = Privacy(4.0, 1e-6, n=300, random_state=1)
    for candidates, measure in ((stumps, "rho (zCDP)"), ([bayes(), stumps[1]], "mu squared / 2 (Gaussian DP)")):
        assert choose_privately(candidates, X, y, privacy, allow_useless=True).ledger.details["accounting"] == measure


def test_parts_of_the_same_name_are_disjoint_within_one_split_alone():
    costs = (("trials", "a", 3.0), ("choice", "a", 1.0), ("trials", "b", 1.0), ("choice", "b", 3.0), ("", "", 0.5))
    made = [Release("x", 1, "", 1.0, 1.0, epsilon=cost, part=part, split=split) for part, split, cost in costs]
    assert sum(r.spent for r in counted(made)) == 6.5
    alike = [dataclasses.replace(r, split="a" if r.part else "") for r in made]
    assert sum(r.spent for r in counted(alike)) == 4.5
