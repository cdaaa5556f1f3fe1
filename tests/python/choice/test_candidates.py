"""What may be chosen among, what is refused before anything is read, and what the plan says."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from fdadp import (
    DPAFF,
    AdditiveFunctionOnFunction,
    FunctionalRegression,
    Privacy,
    ScalarRegression,
    Study,
    choose_privately,
)
from fdadp.choice.budget_plan import plan_choice
from fdadp.errors import InputError, PrivacyError, PublicInputWarning, PublicParameterMissing
from fdadp.learners import DPBoostedStumps, DPGaussianNB, DPLinearRegression, DPLogisticRegression, Numeric
from fdadp.privacy import Budget, Cohort, SeededNoise
from fdadp.published import PublishedNoise

S = np.linspace(0, 1, 9)
BOUNDS = {"X": (-3, 3), "age": (20, 80), "ward": ["a", "b"], "y": (-4, 4), "Y": (-4, 4)}


def line(**more):
    return DPLinearRegression(**{"bounds": (-1, 1), "bounds_y": (-1, 1), **more})


def rows(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    return X, X @ [0.6, 0.3] + 0.05 * rng.standard_normal(n)


def table(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 1)) + 0.3 * rng.normal(size=(n, S.size))
    age, ward = rng.uniform(20, 80, n), rng.choice(["a", "b"], n)
    y = X.mean(axis=1) + np.where(ward == "a", 0.5, -0.5) + 0.3 * rng.normal(size=n)
    return {"X": X, "age": age, "ward": ward, "y": y, "Y": y[:, None] + 0.2 * rng.normal(size=(n, S.size))}


def scalar(formula, **more):
    return ScalarRegression(formula, bounds=BOUNDS, **more)


# ------------------------------------------------------------------ models of columns


def test_models_of_columns_are_judged_row_by_row():
    data = table(600)
    data["X"][5, 2], data["age"][6], data["ward"][7], data["y"][8] = np.nan, np.nan, "elsewhere", np.inf
    candidates = [scalar("y ~ age"), scalar("y ~ lf(X) + ward")]
    found = choose_privately(candidates, data, None, Privacy(4.0, 1e-6, n=600, random_state=0), grids={"X": S})
    assert found.index == 1
    assert found.plan.pays
    assert {r.name.split(":")[0] for r in found.ledger.releases} == {"candidate 1", "candidate 2", "choice", "chosen"}
    assert found.ledger.epsilon == 4.0
    assert "candidates" in str(found.ledger)
    assert np.corrcoef(found.estimator.predict(data)[:5], data["y"][:5])[0, 1] > 0.5


@pytest.mark.long
def test_series_with_ids_in_a_column_and_a_response_of_curves():
    data = table(800)
    columns = dict(pd.DataFrame({"ward": data["ward"], "age": data["age"], "id": np.arange(800) // 2})) | {
        "Y": data["Y"]
    }
    candidates = [FunctionalRegression(model, bounds=BOUNDS) for model in ("Y ~ age", "Y ~ ward")]
    privacy = Privacy(9.0, 1e-4, random_state=0, unit="person")
    found = choose_privately(candidates, columns, None, privacy, "id", grids={"Y": S}, clip=2.0)
    assert found.index == 1
    assert found.ledger.details["unit"].startswith("person")
    assert found.plan.difference is None  # n is private


def test_probabilities_are_judged_by_their_squared_error():
    data = table(700)
    data["z"] = np.where(data["ward"] == "a", "yes", "no")
    bounds = BOUNDS | {"z": ["no", "yes"]}
    candidates = [ScalarRegression(m, family="binomial", bounds=bounds) for m in ("z ~ age", "z ~ ward")]
    found = choose_privately(candidates, data, None, Privacy(3.0, 1e-6, n=700, random_state=0))
    assert found.index == 1
    assert found.ledger.details["public input: error cut off at"] == 1.0


# ------------------------------------------------------------------ what is refused, and costs nothing


def dear():
    """Affordable with the whole budget, not with the part of a trial."""
    return AdditiveFunctionOnFunction(bounds={"X": (-3, 3), "Y": (-4, 4)}, privacy=Privacy(1.0, 1e-6, n=200))


@pytest.mark.parametrize(
    ("candidates", "kind", "text"),
    [
        (
            [line(), line(bounds=None)],
            PublicParameterMissing,
            "candidate 2, DPLinearRegression: bounds or data_norm must be given",
        ),
        ([line(), line(bounds=(1, -1))], InputError, "candidate 2, DPLinearRegression: bounds must be finite"),
        ([line(bounds=([-1] * 3, [1] * 3)), line()], InputError, "candidate 1, DPLinearRegression: bounds"),
        ([scalar("y ~ age"), line()], InputError, "one kind of data|all classifiers"),
        ([line(), AdditiveFunctionOnFunction(mechanism=PublishedNoise())], PrivacyError, "private end to end"),
    ],
)
def test_a_candidate_that_cannot_be_fitted_is_named_before_anything_is_read(candidates, kind, text):
    X, y = rows()
    budget = Budget(1.0)
    with pytest.raises(kind, match=text):
        choose_privately(candidates, X, y, Privacy(1.0, n=2000, budget=budget, dataset="rows"), clip=1.0)
    assert budget.spent == budget.reserved == 0


def test_a_candidate_that_a_trial_cannot_carry_is_named():
    data = table(200)
    budget = Budget(1.0, 1e-6)
    privacy = Privacy(1.0, 1e-6, n=200, budget=budget, dataset="stays")
    with pytest.raises(PrivacyError, match="candidate 1, AdditiveFunctionOnFunction: n and eps"):
        choose_privately([dear()] * 2, data["X"], data["Y"], privacy, clip=1.0, allow_useless=True)
    useless = AdditiveFunctionOnFunction(bounds=dear().bounds, mechanism=DPAFF(allow_useless=True))
    with pytest.raises(PrivacyError, match="candidate 2, AdditiveFunctionOnFunction: n and epsilon"):
        choose_privately([useless, dear()], data["X"], data["Y"], privacy, clip=1.0, allow_useless=True)
    many = [scalar("y ~ lf(X)", mechanism=DPAFF(allow_useless=True)), scalar("y ~ lf(X) + ward")]
    with pytest.raises(PrivacyError, match="candidate 2, ScalarRegression: n and epsilon"):
        choose_privately(many, data, None, privacy, grids={"X": S}, allow_useless=True)
    assert budget.spent == budget.reserved == 0


def test_responses_must_be_one():
    data = table(800)
    with pytest.raises(InputError, match="candidates must have one response, got age, y"):
        choose_privately(
            [scalar("y ~ ward"), scalar("age ~ ward")], data, None, Privacy(9.0, 1e-6, n=800, random_state=0), clip=1.0
        )


def test_what_candidates_say_of_the_guarantee_is_not_used():
    """Not of n, which one declares although it is private here, nor of budgets: theirs stay whole."""
    X, y = rows(400)
    own = Budget(5.0)
    candidates = [
        line(epsilon=50.0, n=7, adjacency="replace", budget=own, dataset="another", unit="row", random_state=3),
        line(mechanism="moments", bounds=(-2, 2)),
    ]
    found = choose_privately(candidates, X, y, Privacy(4.0, random_state=0), np.arange(400))
    assert own.spent == own.reserved == 0
    assert found.ledger.details["n"] == "private"
    assert {r.adjacency for r in found.ledger.releases} == {"add-remove"}
    assert all(not hasattr(one, "ledger_") for one in candidates)
    assert found.ledger.epsilon == 4.0


def test_equal_candidates_have_noise_of_their_own(monkeypatch):
    X, y = rows(1500)
    same = line()
    fitted = []
    fit = DPLinearRegression.fit

    def note(self, *args, **kwargs):
        fitted.append(fit(self, *args, **kwargs))
        return self

    monkeypatch.setattr(DPLinearRegression, "fit", note)
    choose_privately([same, same], X, y, Privacy(2.0, 1e-6, n=1500, random_state=0))
    choose_privately([same, same], X, y, Privacy(2.0, 1e-6, n=1500, random_state=1))
    assert len(fitted) == 6
    assert len({one.coef_.tobytes() for one in fitted}) == 6
    with pytest.raises(InputError, match="at least two"):
        choose_privately([same], X, y, Privacy(2.0, n=1500))


def test_a_candidate_that_predicts_nothing_is_not_chosen_and_what_it_says_is_not_heard(monkeypatch):
    X, y = rows(3000)
    broken = line(bounds=(-2, 2))
    predict = DPLinearRegression.predict

    def fail(self, rows):
        if self.bounds == (-2, 2) and len(rows) == 1:
            warnings.warn(f"{rows} is out of range", stacklevel=1)
            raise RuntimeError(f"cannot predict for {rows}")
        return predict(self, rows)

    monkeypatch.setattr(DPLinearRegression, "predict", fail)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        found = choose_privately([broken, line()], X, y, Privacy(4.0, 1e-6, n=3000, random_state=0))
    assert found.index == 1
    assert [str(one.message) for one in heard] == []


# ------------------------------------------------------------------ a choice that does not pay


def test_a_choice_that_does_not_pay_takes_the_first_and_says_so():
    X, y = rows(200)
    budget = Budget(0.5)
    privacy = Privacy(0.5, n=200, random_state=0, budget=budget, dataset="few")
    candidates = [line(), line(mechanism="moments")]
    plan = plan_choice(candidates, privacy)
    assert not plan.pays
    assert "does not pay" in str(plan)
    assert [step.share for step in plan.steps] == [1.0]
    with pytest.warns(PublicInputWarning, match="a choice among 2 candidates does not pay"):
        found = choose_privately(candidates, X, y, privacy)
    assert found.index == 0
    assert found.plan == plan
    assert found.ledger.epsilon == 0.5
    assert budget.spent == pytest.approx(budget.total, rel=1e-6)
    assert not any("trial" in r.name or "choice" in r.name for r in found.ledger.releases)


@pytest.mark.statistics
@pytest.mark.parametrize("seed", [1, 2])
def test_a_thousand_persons_are_enough_to_find_a_term_that_the_first_candidate_lacks(seed):
    """0.2 took the first (share .86 of what can be explained, .996 with the term): its selection had .05 at any n."""
    rng = np.random.default_rng(seed)
    age = rng.normal(55, 14, 1000).clip(18, 100)
    X = rng.normal(size=(1000, 1)) + rng.normal(size=(1000, 1)) * np.linspace(-1, 1, 40)
    data = {"X": X, "age": age, "y": X.mean(1) + 0.03 * (age - 55) + 0.6 * rng.normal(size=1000)}
    bounds = {"X": (-4, 4), "age": (18, 100), "y": (-8, 8)}
    candidates = [ScalarRegression(formula, bounds=bounds) for formula in ("y ~ lf(X)", "y ~ lf(X) + age")]
    found = choose_privately(candidates, data, None, Privacy(1.0, 1e-6, n=1000, random_state=seed))
    assert found.index == 1
    assert sum(found.plan.share(name) for name in ("size of differences", "choice")) == pytest.approx(0.2)
    assert found.plan.share("fit of the chosen one") == pytest.approx(0.8)


@pytest.mark.parametrize(("delta", "adjacency"), [(None, None), (1e-6, None), (1e-6, "replace"), (None, "replace")])
def test_the_plan_says_how_large_a_difference_is_found(delta, adjacency):
    """Nine of ten draws find a candidate that is better by what the plan says, or a few more."""
    plan = plan_choice([line(), line()], Privacy(3.0, delta, n=4000, adjacency=adjacency))
    assert plan.pays and plan.parallel == (adjacency is None)
    assert sum(step.share for step in plan.steps) == pytest.approx(1.2 if plan.parallel else 1.0)
    votes = np.zeros((1000, 2))
    votes[: round(plan.difference * 1000), 1] = 1.0

    def draw(seed):
        settings = {"n": 1000, "adjacency": adjacency, "noise": SeededNoise(seed), "share": plan.share("choice")}
        cohort = Cohort(votes, budget=Budget(3.0, delta), **settings)
        return cohort.select(lambda block: block[0], share=1.0, name="choice")

    assert 0.8 < np.mean([draw(seed) for seed in range(150)]) < 0.98


def test_trials_and_choice_grow_together_where_persons_are_few():
    """670 persons were the fewest: the choice, whose share came on top of the trials', had .15 at most."""
    two = [line(), line()]
    plans = {n: plan_choice(two, Privacy(1.0, 1e-6, n=n)) for n in (400, 450, 500, 1000)}
    assert [plan.pays for plan in plans.values()] == [False, True, True, True]
    assert [plan.taken for plan in plans.values()] == pytest.approx([0.0, 0.34, 0.28, 0.2])
    assert plans[500].share("trial of candidate 1") == pytest.approx(0.14)
    assert not plan_choice(two, Privacy(1.0, 1e-6, n=1300, adjacency="replace")).parallel
    assert plan_choice(two, Privacy(1.0, 1e-6, n=1000), trial_share=0.3).share("choice") == pytest.approx(0.24)
    assert not plan_choice(two, Privacy(1.0, 1e-6, n=500), trial_share=0.2).pays


def test_a_plan_without_data_prints_every_step():
    plan = plan_choice([line(), line(), line()], Privacy(1.0, 1e-6, n=3000))
    text = str(plan)
    for part in ("trial of candidate 3", "size of differences", "fit of the chosen one", "2,250", "80.00%"):
        assert part in text
    stumps = [DPBoostedStumps(classes=[0, 1], features=Numeric(-1, 1, edges=4), n_rounds=r) for r in (1, 2)]
    assert plan_choice(stumps, Privacy(1.0, 1e-6, n=3000)).accounting == "zcdp"
    assert plan_choice([line(), line()], Privacy(1.0), n=3000).difference > 0
    for wrong, match in (
        ({"trial_share": 0.9, "select_share": 0.2}, "must leave something"),
        ({"allow_useless": 1}, "allow_useless must be True or False"),
        ({"n": 10}, "n must be left out where 3000 is declared"),
    ):
        with pytest.raises(InputError, match=match):
            plan_choice([line(), line()], Privacy(1.0, 1e-6, n=3000), **wrong)


# ------------------------------------------------------------------ studies


@pytest.mark.filterwarnings("ignore:what was released speaks against:fdadp.errors.PublicInputWarning")  # wrong bounds
@pytest.mark.parametrize("unit", ["row", pytest.param("person", marks=pytest.mark.long)])
def test_every_step_is_an_entry_of_the_study(tmp_path, unit):
    X, y = rows(1000)
    path = tmp_path / "rows"
    Study.new(path, name="rows", epsilon=4.0, delta=1e-6, unit=unit, n=1000)
    groups = None if unit == "row" else np.arange(1000)
    privacy = Privacy(study=path, epsilon=3.5, purpose="a choice")
    found = choose_privately([line(bounds=(50.0, 60.0)), line()], X, y, privacy, groups, clip=0.2)
    of = Study(path)
    assert found.index == 1
    assert len(of.fits) == 4  # two trials, the choice, the fit
    assert of.verify() == ()
    assert of.budget.spent_epsilon == pytest.approx(3.5, rel=1e-6)
    assert found.ledger.details["unit"].startswith(unit)
    page = of.report(region="here", data="rows")
    assert page is not None
    with pytest.raises(PrivacyError, match="must have what the choice takes"):
        choose_privately([line(), line()], X, y, privacy, groups)
    assert of.budget.spent_epsilon == pytest.approx(3.5, rel=1e-6)


@pytest.mark.filterwarnings("ignore::fdadp.errors.PublicInputWarning")  # a study's noise has no seed
def test_bounds_of_a_study_hold_for_candidates(tmp_path):
    data = table(900)
    path = tmp_path / "stays"
    Study.new(path, name="stays", epsilon=2.0, delta=1e-6, unit="row", n=900, bounds={"age": (20, 80), "y": (-4, 4)})
    privacy = Privacy(study=path, epsilon=2.0)
    other = ScalarRegression("y ~ age", bounds=BOUNDS | {"age": (0, 200)})
    with pytest.raises(PrivacyError, match="bounds of age must be those of the study"):
        choose_privately([scalar("y ~ ward"), other], data, None, privacy, allow_useless=True)
    assert Study(path).left == 1
    Study.new(tmp_path / "other", name="other", epsilon=2.0, delta=1e-6, unit="row", n=900)
    elsewhere = Privacy(study=tmp_path / "other", epsilon=1.0)  # which is not drawn on
    own = [ScalarRegression("y ~ ward", bounds={"ward": ["a", "b"]}, privacy=elsewhere), ScalarRegression("y ~ age")]
    found = choose_privately(own, data, None, privacy, allow_useless=True)
    assert found.ledger.details["public input: error cut off at"] == 4.0  # of the study's range of y
    assert Study(path).verify() == ()
    assert Study(tmp_path / "other").left == 1


def test_bounds_of_a_study_hold_for_learners_before_the_first_trial(tmp_path):
    """The second one was refused at its own trial, when the first had spent, by "nothing was spent"."""
    X = np.random.default_rng(0).uniform(-1, 1, (900, 2))
    y, path = (X[:, 0] > 0).astype(int), tmp_path / "study"
    Study.new(path, name="x", epsilon=4.0, delta=1e-6, unit="person", n=900, bounds={"X": (-1, 1)})
    learners = [DPGaussianNB(classes=[0, 1], bounds=(-width, width)) for width in (1, 2)]
    with pytest.raises(PrivacyError, match=r"candidate 2.*bounds of X must be those of the study"):
        choose_privately(learners, X, y, Privacy(study=path, epsilon=3.0), np.arange(900))
    assert Study(path).left == 1
    assert Study(path).fits == ()


class Watched:
    """A table that tells when it was read."""

    def __init__(self, values):
        self.values, self.shape, self.dtype, self.reads = values, values.shape, values.dtype, 0

    def __getitem__(self, at):
        self.reads += 1
        return self.values[at]


def test_rows_are_not_read_before_every_candidate_was_checked():
    X, y = rows(300)
    seen = Watched(X)
    privacy = Privacy(2.0, 1e-6, random_state=0)
    for wrong in (line(bounds=None), line(bounds_y=(1, -1)), line(bounds=(2, 1))):
        with pytest.raises((InputError, PrivacyError), match="candidate 2"):
            choose_privately([line(), wrong], seen, y, privacy, range(300), clip=1.0)
    assert seen.reads == 0
    choose_privately([line(), line(mechanism="moments")], seen, y, privacy, range(300))
    assert seen.reads > 0


def test_tables_of_different_lengths_are_refused():
    X, y = rows()
    budget = Budget(2.0)
    privacy = Privacy(2.0, n=2000, budget=budget, dataset="rows")
    for given in (y[:5], list(y[:5])):
        with pytest.raises(InputError, match="must have the same number of rows"):
            choose_privately([line(), line()], X, given, privacy)
    short = {"age": X[:, 0], "y": y[:7], "ward": ["a"] * 2000}
    with pytest.raises(InputError, match="must have the same number of rows"):
        choose_privately([scalar("y ~ age"), scalar("y ~ ward")], short, None, privacy)
    assert budget.spent == budget.reserved == 0


def test_the_certificate_of_a_choice_holds_all_steps():
    X, y = rows(1500)
    found = choose_privately([line(), line(mechanism="moments")], X, y, Privacy(4.0, 1e-6, n=1500))
    assert found.ledger.for_release
    page = found.ledger.certificate(region="here", data="rows")
    assert "candidate 1" in page.to_html()
    assert "chosen" in page.to_html()


def test_objectives_with_a_law_of_their_own_are_refused():
    X, y = rows(2000)
    y = np.where(y > 0, 1, 0)
    budget = Budget(2.0, 1e-6)
    models = [DPLogisticRegression(classes=[0, 1], data_norm=norm) for norm in (1.0, 2.0)]
    with pytest.raises((PrivacyError, InputError), match="candidate 1, DPLogisticRegression: "):
        choose_privately(models, X, y, Privacy(2.0, 1e-6, n=2000, budget=budget, dataset="rows"))
    assert budget.spent == 0
