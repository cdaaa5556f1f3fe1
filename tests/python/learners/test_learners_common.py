"""What every private learner keeps, whatever it learns: public parameters first, one person's influence, nothing exact.

The learners stand in ``learner_registry.LEARNERS``.
"""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from learner_registry import COMMON, LEARNERS, N_PERSONS, exact, fit, toy
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, get_scorer
from sklearn.utils.estimator_checks import check_estimator

from fdadp.audit import Neighbours, replay_audit
from fdadp.audit.private_regression_audits import HANDED, handed
from fdadp.errors import InputError, PrivacyError, PublicParameterMissing
from fdadp.learners import DPGaussianNB
from fdadp.learners.shared._estimator_base import PrivateClassifier, PrivateLearner
from fdadp.privacy import Budget, SeededNoise, TapeNoise

every = pytest.mark.parametrize("learner", LEARNERS, ids=str)
on_tape = pytest.mark.parametrize("learner", [x for x in LEARNERS if x.sums], ids=str)
MODES = [(x, pure, a) for x in LEARNERS for pure, a in x.modes]
every_mode = pytest.mark.parametrize(("learner", "pure", "adjacency"), MODES, ids=str)
every_mode_on_tape = pytest.mark.parametrize(
    ("learner", "pure", "adjacency", "grouped"),
    [(*mode, grouped) for mode in MODES if mode[0].sums for grouped in (False, True)[: 1 + mode[0].grouped]],
    ids=str,
)


@pytest.fixture(autouse=True)
def few_starts(monkeypatch):
    """Of k-means on the cells of a histogram, 20 else: no test here asks how good its clusters are."""
    monkeypatch.setattr("fdadp.learners.kmeans._RESTARTS", 2)


def predictions(model, X):
    """What the model says about new rows, whatever it can say."""
    names = ("predict", "predict_proba", "transform", "decision_function")
    return {name: getattr(model, name)(X) for name in names if hasattr(model, name)}


def assert_same(ours, theirs):
    """Predictions of two models, but for last bits of numbers: products round as their memory lies."""
    assert ours.keys() == theirs.keys() != set()
    for name in ours:
        kind = np.asarray(ours[name]).dtype.kind
        compare = np.testing.assert_allclose if kind == "f" else np.testing.assert_array_equal
        compare(ours[name], theirs[name], **({"rtol": 1e-12, "atol": 1e-12} if kind == "f" else {}))


# ------------------------------------------------------------------ public parameters and the budget


@pytest.mark.parametrize(("learner", "name"), [(x, name) for x in LEARNERS for name in x.required], ids=str)
def test_a_missing_public_parameter_stops_it_before_any_read(learner, name):
    X, y = toy(learner.kind)
    X[0] = np.nan
    settings = learner.make()
    budget = Budget(settings.epsilon, settings.delta)
    settings.set_params(**{name: None}, budget=budget)
    with pytest.raises(PublicParameterMissing, match=name):
        settings.fit(X, y)
    assert budget.spent == budget.reserved == 0
    assert not hasattr(settings, "ledger_")


@every_mode
def test_the_ledger_adds_up_to_the_budget(learner, pure, adjacency):
    X, y = toy(learner.kind)
    model = learner.make(pure=pure, adjacency=adjacency).fit(X, y)
    spent = model.privacy_spent_
    assert spent["adjacency"] == adjacency
    delta = None if learner.stronger else model.delta
    assert (spent["epsilon"], spent["delta"]) == (model.epsilon, delta)
    assert 0 < spent["spent"] <= model.epsilon * (1 + 1e-9)
    if learner.whole:
        assert spent["spent"] == pytest.approx(model.epsilon, rel=1e-3)
    releases = model.ledger_.releases
    assert releases
    assert all(r.adjacency == adjacency and r.scale > 0 for r in releases)
    assert not model.ledger_.for_release  # seeded noise
    if all(r.delta is None for r in releases):
        total = Budget(model.epsilon, delta, accounting=model._accounting).total
        assert sum(r.share for r in releases) <= 1 + 1e-9
        assert sum(r.spent for r in releases) <= total


@pytest.mark.parametrize("learner", [x for x in LEARNERS if x.shared], ids=str)
def test_a_shared_budget_is_charged_and_refuses_what_is_too_much(learner):
    X, y = toy(learner.kind)
    model = learner.make()
    budget = Budget(2 * model.epsilon, model.delta)
    model.set_params(budget=budget).fit(X, y)
    assert budget.spent_epsilon == pytest.approx(model.epsilon, rel=1e-6)
    model.set_params(epsilon=1.5 * model.epsilon)
    if model.delta is None:
        with pytest.raises(PrivacyError, match="has left"):
            model.fit(X, y)


@every
def test_noise_for_release_is_opendp_unless_seeded(learner):
    X, y = toy(learner.kind)
    model = learner.make(random_state=None).fit(X, y)
    assert all(release.secure for release in model.ledger_.releases)
    assert model.ledger_.for_release == all(release.draw != "not proved" for release in model.ledger_.releases)
    assert model.ledger_.for_release == ("bingham" not in str(learner))


# ------------------------------------------------------------------ one person's influence


def neighbours(learner, pure, adjacency, monkeypatch, grouped):
    """Pairs that differ in one person, odd ones among them, and a run that gives out all that a user gets."""
    X, y = toy(learner.kind, n=40)
    hostile = [[np.nan] * 3, [np.inf] * 3, [1e30, -1e30, 1e200], [-1.0, 1.0, 1.0], [0.0, 0.0, 0.0]]
    X[: len(hostile)] = hostile
    groups = np.arange(40) // 2 if grouped else None
    X_new, _ = toy(learner.kind, seed=9, n=20)
    X_new = np.clip(X_new, -1, 1)

    def run(data, noise):
        X, y, groups = data
        model = learner.make(pure=pure, adjacency=adjacency, n=20 if grouped else 40)
        fit(monkeypatch, noise, model, X, y, groups)
        return vars(model), predictions(model, X_new), repr(model)

    budget = Budget(2.0, None if pure else 1e-6, accounting=learner.make(pure=pure)._accounting)
    for number, i in enumerate((0, 1, 2, 3, 4, 7, 20, 33)):
        how = HANDED[number % len(HANDED)]
        mine = np.arange(40) == i if groups is None else groups == i // 2
        changed, labels = X.copy(), None if y is None else y.copy()
        if adjacency == "replace":
            changed[mine] = [9.0, -9.0, 0.5]
            if labels is not None:
                labels[mine] = 1 - labels[mine]
            other = (changed, labels, groups)
        elif adjacency == "zero-out":
            changed[mine] = np.nan
            other = (changed, labels, groups)
        else:
            keep = ~mine
            other = tuple(None if a is None else a[keep] for a in (X, y, groups))
        first = handed(X, np.flatnonzero(mine), how), y, groups
        other = handed(other[0], np.empty(0, dtype=int), how), *other[1:]
        name = f"{learner} person {i}, {how}"
        promise = None if pure else (2.0, 1e-6)
        yield Neighbours(name, run, first, other, budget.total, promise, accounting=budget.accounting)


@pytest.mark.each_once(("learner", "adjacency"), ("learner", "pure"), ("learner", "grouped"))
@every_mode_on_tape
def test_exact_privacy_loss_by_replay(learner, pure, adjacency, grouped, monkeypatch):
    """The same releases forced on neighbours: the loss within the budget, all else the same bit for bit."""
    audit = replay_audit(neighbours(learner, pure, adjacency, monkeypatch, grouped))
    assert audit.passed, str(audit)
    assert audit.finished == len(audit.ratios)
    assert 0 < audit.changes.max() <= 1


def test_a_learner_that_keeps_the_type_of_its_table_goes_red(monkeypatch):
    """It told whether somebody's entry is text, masked or a long double, and no audit saw it."""
    learner, right = LEARNERS[0], PrivateLearner._open

    def mutant(self, X, *args, **kwargs):
        self.kind_ = str(np.asarray(X).dtype)
        return right(self, X, *args, **kwargs)

    monkeypatch.setattr(PrivateLearner, "_open", mutant)
    audit = replay_audit(neighbours(learner, True, "add-remove", monkeypatch, grouped=False))
    assert not audit.passed and "kind_" in str(audit)
    assert len(audit.problems) >= 4  # text, objects, long doubles and frames, each


@on_tape
def test_order_of_rows_does_not_matter(learner, monkeypatch):
    X, y = toy(learner.kind)
    order = np.random.default_rng(3).permutation(len(X))
    one, entries, _ = exact(monkeypatch, learner, X, y)
    replayed = TapeNoise(tape=entries)
    fit(monkeypatch, replayed, learner.make(), X[order], None if y is None else y[order])
    assert [entry.exact for entry in replayed.entries] == one


@on_tape
def test_rows_that_are_no_numbers_count_as_no_rows_and_say_nothing(learner, monkeypatch, recwarn):
    X, y = toy(learner.kind)
    one, entries, _ = exact(monkeypatch, learner, X, y, adjacency="zero-out")
    said = [str(one.message) for one in recwarn.list]  # of releases alone
    recwarn.clear()
    bad = np.full((2, X.shape[1]), [[np.nan], [np.inf]])
    label = None if y is None else np.concatenate([y, [np.nan, np.nan]])
    replayed = TapeNoise(tape=entries)
    fit(monkeypatch, replayed, learner.make(adjacency="zero-out"), np.vstack([X, bad]), label)
    assert [entry.exact for entry in replayed.entries] == one
    assert [str(one.message) for one in recwarn.list] == said


# ------------------------------------------------------------------ nothing exact, and scikit-learn's ways


@every
def test_nothing_exact_is_kept(learner):
    X, y = toy(learner.kind)
    model = learner.make().fit(X, y)
    forbidden = {"labels_", "inertia_", "class_count_", "n_samples_", "n_samples_seen_", "X_fit_", "n_iter_", "score_"}
    assert not forbidden & set(vars(model))

    def parts(value):
        return [p for each in value for p in parts(each)] if isinstance(value, tuple) else [value]

    assert all(N_PERSONS not in np.shape(part) for part in parts(tuple(vars(model).values())))


@every
def test_cloning_keeps_the_parameters_and_not_the_fit(learner):
    X, y = toy(learner.kind)
    model = learner.make().fit(X, y)
    other = clone(model)
    assert other.get_params().keys() == model.get_params().keys()
    assert not hasattr(other, "ledger_")
    with pytest.raises(NotFittedError):
        predictions(other, np.clip(X, -1, 1))


@every
def test_frames_give_what_arrays_give_and_their_names(learner):
    X, y = toy(learner.kind)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    one, other = learner.make().fit(X, y), learner.make().fit(frame, None if y is None else pd.Series(y))
    assert list(other.feature_names_in_) == ["a", "b", "c"]
    new = np.clip(X, -1, 1)
    ours, theirs = predictions(one, new), predictions(other, pd.DataFrame(new, columns=["a", "b", "c"]))
    assert_same(ours, theirs)


@every
def test_a_fit_can_be_pickled(learner):
    X, y = toy(learner.kind)
    model = learner.make().fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    new = np.clip(X, -1, 1)
    for name, value in predictions(model, new).items():
        np.testing.assert_array_equal(value, getattr(again, name)(new))


@every
def test_wrong_shapes_are_named(learner):
    X, y = toy(learner.kind)
    with pytest.raises(InputError, match="two-dimensional"):
        learner.make().fit(X[:, 0], y)
    if y is not None:
        with pytest.raises(InputError, match="one entry for each"):
            learner.make().fit(X, y[:-1])


@pytest.mark.parametrize(
    "learner",
    [
        pytest.param(x, marks=[pytest.mark.statistics] * (x.cls in [y.cls for y in LEARNERS[:i]]))
        for i, x in enumerate(LEARNERS)
    ],
    ids=str,
)
def test_scikit_learns_own_checks(learner):
    model = learner.make(random_state=0)
    expected = COMMON | learner.failing
    results = check_estimator(model, expected_failed_checks=expected, on_fail=None)
    failed = {r["check_name"]: str(r["exception"])[:300] for r in results if r["status"] == "failed"}
    assert failed == {}
    xfailed = {r["check_name"] for r in results if r["status"] == "xfail"}
    assert set(learner.failing) <= xfailed | {r["check_name"] for r in results if r["status"] == "skipped"}


def test_labels_are_scored_by_what_they_mean_as_they_are_fitted():
    """A table whose labels a reader made text of was fitted, and score refused it."""
    X, y = toy("classifier")
    model = DPGaussianNB(epsilon=9.0, classes=[0, 1], bounds=(-1, 1), random_state=0).fit(X, y.astype(str))
    plain = accuracy_score(y, model.predict(X))
    for same in (y, y.astype(float), y == 1, y.astype(str), pd.Series(y, dtype="string"), [*y[:9].astype(str), *y[9:]]):
        assert model.score(X, same) == plain
    weights = np.arange(len(y))
    assert model.score(X, y.astype(str), weights) == accuracy_score(y, model.predict(X), sample_weight=weights)
    assert model.score(X, ["no class"] * len(y)) == 0
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.score(X, y[:-1])


CLASSIFIERS = pytest.mark.parametrize("learner", [x for x in LEARNERS if x.kind == "classifier"], ids=str)


@CLASSIFIERS
def test_labels_are_predicted_as_they_were_declared(learner):
    """0 beside a text became "0"."""
    X, y = toy(learner.kind)
    model = learner.make(classes=[0, "one"]).fit(X, np.where(y == 1, "one", "0"))
    assert model.classes_.tolist() == [0, "one"]
    assert {type(label) for label in model.predict(X).tolist()} <= {int, str}


@CLASSIFIERS
def test_the_order_of_classes_changes_nothing(learner):
    """With classes=["yes", "no"] scikit-learn's roc_auc scored the other class."""
    X, y = toy(learner.kind)
    named = np.where(y == 1, "yes", "no")
    either, other = (learner.make(classes=order).fit(X, named) for order in (["no", "yes"], ["yes", "no"]))
    assert either.classes_.tolist() == other.classes_.tolist() == ["no", "yes"]
    assert get_scorer("neg_log_loss")(either, X, named) == get_scorer("neg_log_loss")(other, X, named)
    np.testing.assert_array_equal(either.predict(X), other.predict(X))


@CLASSIFIERS
@pytest.mark.parametrize("classes", ["01", {0, 1}, frozenset((0, 1))], ids=repr)
def test_classes_without_an_order_are_refused_before_any_read(learner, classes):
    X, y = toy(learner.kind)
    budget = Budget(2.0)
    with pytest.raises(InputError, match="classes must be a sequence of labels, in their order, got"):
        learner.make(classes=classes, budget=budget).fit(X, y)
    assert budget.spent == budget.reserved == 0


@every
def test_a_fit_that_is_refused_leaves_the_one_before_as_it_was(learner):
    """The number of columns, their names and doubts were those of the table that was refused."""
    X, y = toy(learner.kind)
    names = pd.DataFrame(X, columns=["a", "b", "c"])
    model = learner.make().fit(names, y)
    model.doubts_ = ("a doubt",)
    new = names.clip(-1, 1)
    before = predictions(model, new)
    model.set_params(budget=Budget(0.1, model.delta))
    with pytest.raises(PrivacyError, match="epsilon must be at most that of the shared budget"):
        model.fit(X[:, :2], y)
    assert (model.n_features_in_, list(model.feature_names_in_)) == (3, ["a", "b", "c"])
    assert model.doubts_ == ("a doubt",)
    for name, value in predictions(model, new).items():
        np.testing.assert_array_equal(value, before[name])


@every
def test_columns_of_one_name_are_refused_before_any_read(learner):
    """Some versions of scikit-learn do not predict for them, when all is spent."""
    X, y = toy(learner.kind)
    budget = Budget(2.0, learner.make().delta)
    with pytest.raises(InputError, match="X must have distinct column names, got 'a' more than once"):
        learner.make(budget=budget).fit(pd.DataFrame(X, columns=["a", "b", "a"]), y)
    assert budget.spent == budget.reserved == 0


@every
def test_a_table_of_arrow_is_that_of_pandas(learner):
    pa = pytest.importorskip("pyarrow")
    X, y = toy(learner.kind)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    one, other = learner.make().fit(frame, y), learner.make().fit(pa.Table.from_pandas(frame), y)
    assert list(other.feature_names_in_) == ["a", "b", "c"]
    new = frame.clip(-1, 1)
    ours, theirs = predictions(one, new), predictions(other, pa.Table.from_pandas(new))
    assert_same(ours, theirs)


class FittedElsewhere(TapeNoise):
    """While it is asked for noise, another thread fits the same object, and what that had fitted is gone."""

    def __init__(self, noise):
        super().__init__(noise)
        self.model = None

    def prepare(self, *args):
        for name in [name for name in vars(self.model) if name.endswith("_") and not name.endswith("_in_")]:
            setattr(self.model, name, None)
        return super().prepare(*args)


@pytest.mark.parametrize("learner", [learner for learner in LEARNERS if learner.sums], ids=str)
def test_what_is_released_does_not_hang_on_an_object_that_others_fit_too(monkeypatch, learner):
    """Two threads that fitted one naive Bayes took one another's means for the weight of the evidence."""
    X, y = toy(learner.kind)
    _, entries, _ = exact(monkeypatch, learner, X, y)
    noise = FittedElsewhere(SeededNoise(0))
    noise.model = learner.make()
    fit(monkeypatch, noise, noise.model, X, y)
    assert [entry.exact for entry in noise.entries] == [entry.exact for entry in entries]


@every
def test_predictions_are_those_of_the_fit_whatever_parameters_are_set_since(learner):
    """Bounds that were set after a fit moved its predictions, and a seed of trees gave other trees to old leaves."""
    X, y = toy(learner.kind)
    model = learner.make().fit(X, y)
    before = predictions(model, X[:9].clip(-1, 1))
    for name in model.get_params(deep=False):
        setattr(model, name, object())
    for name, value in predictions(model, X[:9].clip(-1, 1)).items():
        np.testing.assert_array_equal(value, before[name])


def test_a_classifier_of_ones_own_must_hand_over_its_classes():
    """Without them text labels would be missing entries, and the budget spent on nothing."""

    class Silent(PrivateClassifier):
        def fit(self, X, y):
            self._open(X, y)

    budget = Budget(1.0)
    with pytest.raises(InputError, match="classes must be given where Silent opens its rows"):
        Silent(classes=["a", "b"], epsilon=1.0, budget=budget).fit(np.zeros((4, 2)), ["a", "b", "a", "b"])
    assert budget.spent == 0
