"""LDPLogisticRegression, its clients and its server: who sees what, what it costs, and that it learns."""

from __future__ import annotations

import inspect
import json
import logging
import math
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from learner_registry import COMMON
from privacy_tools import Guarded
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import check_estimator
from studies import local_logistic as logistic_experiment
from studies.learner_tasks import Task
from typer.testing import CliRunner

from fdadp import federated
from fdadp.errors import FdadpError, InputError, MissingDataError, PrivacyError, PublicParameterMissing
from fdadp.federated import LDPLogisticRegression, LocalClient, LocalParameters, LocalServer
from fdadp.federated.local_dp.gradient_randomizers import MECHANISMS, Coins
from fdadp.federated.local_dp.user_gradients import LocalUsers, _gradients
from fdadp.federated.local_dp_logistic import default_lr, division
from fdadp.learners import Numeric
from fdadp.privacy import Ledger
from fdadp.privacy.account.epsilon_mu_rho import epsilon_from, epsilon_from_closed_form

every = pytest.mark.parametrize("name", list(MECHANISMS))
D = 3


def toy(n=3_000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform([0, -10], [4, 10], (n, 2))
    return X, np.where(X @ [1.5, 0.4] - 3 + 0.5 * rng.standard_normal(n) > 0, "yes", "no")


def params(**changes):
    settings = {"mechanism": "cldp", "epsilon": 2.0, "n_rounds": 2}
    return LocalParameters(["no", "yes"], [0.0, -10.0], [4.0, 10.0], **settings | changes)


def model(**changes):
    settings = {"classes": ["no", "yes"], "bounds": ([0, -10], [4, 10]), "n_rounds": 5, "random_state": 0}
    return LDPLogisticRegression(**settings | changes)


# ------------------------------------------------------------------ clients


def loss(theta, z, y):
    return np.logaddexp(0, z @ theta) - y * (z @ theta)


def test_the_gradient_is_that_of_the_log_loss_and_bounded():
    p, theta = params(), np.array([0.3, -1.0, 2.0])
    X, y = toy(50)
    z = np.column_stack([np.ones(50), X[:, 0] / 2 - 1, X[:, 1] / 10])
    np.testing.assert_allclose(p.scaled(X), z)
    g = _gradients(p, X, (y == "yes") * 1.0, theta)
    h = 1e-6 * np.eye(D)
    by_differences = [(loss(theta + e, z, y == "yes") - loss(theta - e, z, y == "yes")) / 2e-6 for e in h]
    np.testing.assert_allclose(g, np.transpose(by_differences), atol=1e-8)
    steep = _gradients(p, X * 1e9, (y == "no") * 1.0, 1e6 * theta)
    assert np.abs(steep).max() == 1.0


@pytest.mark.parametrize("name", ["cldp", "one_coordinate", "l2_ball"])
def test_many_users_are_as_many_clients(name):
    p, (X, y) = params(mechanism=name), toy(40)
    theta = np.array([0.1, 0.2, -0.3])
    coins = Coins(4)
    each = [LocalClient(p, coins).report(list(x), label, theta) for x, label in zip(X, y, strict=True)]
    assert all(isinstance(r, bytes) and len(r) == p.randomizer.width for r in each)
    together = LocalUsers(p, X, y, Coins(4)).reports(np.arange(40), theta)
    assert [row.tobytes() for row in together] == each


@pytest.mark.parametrize("times", [1, 3])
def test_a_client_answers_as_often_as_agreed(times):
    p, (X, y) = params(reports_per_user=times), toy(5)
    client, users = LocalClient(p), LocalUsers(p, X, y)
    for _ in range(times):
        client.report(X[0], y[0], np.zeros(D))
        users.reports(np.array([0, 3]), np.zeros(D))
    with pytest.raises(PrivacyError, match=f"reports_per_user must be more than {times}"):
        client.report(X[0], y[0], np.zeros(D))
    with pytest.raises(PrivacyError, match="reports_per_user"):
        users.reports(np.array([1, 3]), np.zeros(D))
    users.reports(np.array([1]), np.zeros(D))
    with pytest.raises(PrivacyError):
        users.reports(np.array([2, 2]), np.zeros(D))


class Hostile:
    __hash__ = None

    def __float__(self):
        raise RuntimeError("private")

    def __eq__(self, other):
        raise RuntimeError("private")


HOSTILE = [
    ([np.nan, 0.0], "yes"),
    ([1.0, np.inf], "yes"),
    (["a", 1.0], "no"),
    ([None, None], "no"),
    ([Hostile(), 2.0], "yes"),
    ([1.0, 1.0], "perhaps"),
    ([1.0, 1.0], None),
    ([1.0, 1.0], np.nan),
    ([1.0, 1.0], Hostile()),
    ([1.0, 1.0], ["yes"]),
    ([1 + 2j, 1.0], "yes"),
    ([[1.0, 2.0], 1.0], "yes"),
    ([{}, 10**400], "yes"),
]


@every
def test_what_is_no_record_is_noise_alone_and_says_nothing(name, recwarn, capsys, caplog):
    caplog.set_level(logging.DEBUG)
    p, theta = params(mechanism=name), np.array([0.5, 1.0, -2.0])
    zero = p.randomizer(np.zeros((1, D)), Coins(9)).tobytes()
    for x, label in HOSTILE:
        assert LocalClient(p, Coins(9)).report(x, label, theta) == zero
    far = LocalClient(p, Coins(9)).report([1e300, -1e300], "yes", theta)
    assert far == LocalClient(p, Coins(9)).report([4.0, -10.0], "yes", theta)  # clipped to the bounds
    table = np.empty((len(HOSTILE), 2), dtype=object)
    labels = np.empty(len(HOSTILE), dtype=object)
    for i, (x, label) in enumerate(HOSTILE):
        table[i, 0], table[i, 1], labels[i] = *x, label
    users = LocalUsers(p, table, labels, Coins(9))
    np.testing.assert_array_equal(
        users.reports(np.arange(len(HOSTILE)), theta), p.randomizer(np.zeros((len(HOSTILE), D)), Coins(9))
    )
    assert not recwarn.list and not caplog.records and capsys.readouterr() == ("", "")


@pytest.mark.parametrize("theta", [np.zeros(2), np.zeros(4), np.full(D, np.nan), [0, np.inf, 0], np.zeros((D, 1))])
def test_a_wrong_model_is_refused_before_the_record_is_read(theta):
    x, y = Guarded(np.zeros((4, 2)), reader=CLIENT), Guarded(np.array(["no"] * 4), reader=CLIENT)
    users = LocalUsers(params(), x, y)
    with pytest.raises(InputError, match="theta must be 3 finite numbers"):
        users.reports(np.arange(4), theta)
    with pytest.raises(InputError, match="theta must be 3 finite numbers"):
        LocalClient(params()).report([0.0, 0.0], "no", theta)
    assert x.reads == y.reads == 0
    users.reports(np.arange(4), np.zeros(D))  # nor was a report used up


def test_wrong_shapes_of_records_are_named():
    with pytest.raises(InputError, match="x must be one record of 2 features, got 3"):
        LocalClient(params()).report([0.0, 0.0, 1.0], "no", np.zeros(D))
    with pytest.raises(InputError, match="X must have 2 features"):
        LocalUsers(params(), np.zeros((4, 3)), ["no"] * 4)
    with pytest.raises(InputError, match="y must have one entry for each of 4 rows"):
        LocalUsers(params(), np.zeros((4, 2)), ["no"] * 3)


# ------------------------------------------------------------------ parameters and server


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"n_rounds": 0}, "n_rounds must be a whole number"),
        ({"n_rounds": 2.5}, "n_rounds must be a whole number"),
        ({"reports_per_user": 0}, "reports_per_user must be a whole number"),
        ({"lr": 0.0}, "lr must be a finite number above 0"),
        ({"radius": math.inf}, "radius must be a finite number above 0"),
        ({"momentum": 1.0}, "momentum must be at least 0 and below 1"),
        ({"classes": ["no", "no"]}, "classes must be two distinct labels"),
        ({"classes": ["a", "b", "c"]}, "classes must be two distinct labels"),
        ({"low": [0.0], "high": [1.0, 2.0]}, None),
        ({"low": [], "high": []}, "bounds must be"),
        ({"low": [-1e308], "high": [1e308]}, "of finite width"),
    ],
)
def test_wrong_parameters_are_named(changes, text):
    settings = {"classes": ["no", "yes"], "low": [0.0], "high": [1.0], "epsilon": 1.0}
    if text is None:  # one number holds for all features
        assert LocalParameters(**settings | changes).low == (0.0, 0.0)
        return
    with pytest.raises(InputError, match=text):
        LocalParameters(**settings | changes)


def test_parameters_cross_the_wire_and_both_ends_agree():
    """A client in another process, which knows nothing but the parameters' text."""
    p = LocalParameters([0, 1], [0.0, -10.0], [4.0, 10.0], epsilon=3.0, n_rounds=1)
    code = (
        "import sys, numpy as np\n"
        "from fdadp.federated import LocalClient, LocalParameters\n"
        "p = LocalParameters.from_json(sys.stdin.read())\n"
        "sys.stdout.write(LocalClient(p).report([1.0, 2.0], 1, np.zeros(p.dimensions)).hex())\n"
    )
    run = subprocess.run([sys.executable, "-c", code], input=p.to_json(), capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    server = LocalServer(LocalParameters.from_json(p.to_json()))
    server.step([bytes.fromhex(run.stdout)])
    assert server.rounds == 1 and np.count_nonzero(server.theta) == 1


def test_the_servers_arithmetic():
    p = params(mechanism="l2_ball", n_rounds=5, lr=0.01, momentum=0.5, radius=100.0)
    length = p.randomizer.length
    e = np.eye(D)
    server = LocalServer(p)
    theta, step, points = np.zeros(D), np.zeros(D), []
    for who in ([0, 1], [1], [2, 2, 0], [1], [0]):
        assert np.array_equal(server.step([e[j].astype("<f8").tobytes() for j in who]), server.theta)
        step = 0.5 * step - 0.01 * length * e[who].mean(axis=0)
        theta = theta + step
        points.append(theta)
        np.testing.assert_allclose(server.theta, theta)
    np.testing.assert_allclose(server.model, np.mean(points[2:], axis=0))
    with pytest.raises(InputError, match="n_rounds must be more than 5"):
        server.step([e[0].astype("<f8").tobytes()])


def test_theta_stays_in_the_public_ball():
    server = LocalServer(
        params(mechanism="one_coordinate", epsilon=0.01, n_rounds=20, lr=10.0, radius=2.0, average=False)
    )
    for _ in range(20):
        server.step([(1).to_bytes(4, "little")])
        assert np.linalg.norm(server.theta) <= 2.0 * (1 + 1e-12)
    np.testing.assert_allclose(server.model, [-2.0, 0.0, 0.0])


def test_there_is_no_model_before_the_last_round():
    server = LocalServer(params())
    server.step([b"\x01"])
    with pytest.raises(InputError, match="rounds must be 2 before there is a model, got 1"):
        _ = server.model


@every
def test_reports_that_are_none_are_refused(name):
    p = params(mechanism=name)
    width = p.randomizer.width
    bad = [[], [b""], [bytes(width + 1)], [bytes(width), "text"], np.zeros((3, width)), np.zeros(width, np.uint8)]
    if name == "one_coordinate":
        bad.append([(2 * D).to_bytes(4, "little")])
    if name in ("l2_ball", "privunit"):
        vectors = ([np.nan, 0, 0], [1e300, 0, 0], [1, 1, 0], [0, 0, 0], [np.inf, 0, 0])
        bad += [[np.array(v, dtype="<f8").tobytes()] for v in vectors]
    for reports in bad:
        server = LocalServer(p)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(InputError, match="reports"):
                server.step(reports)
        assert server.rounds == 0 and not server.theta.any()


# ------------------------------------------------------------------ who sees what

CLIENT = "fdadp.federated.local_dp.user_gradients"


@pytest.mark.parametrize("participation", ["disjoint", "all"])
@every
def test_only_the_clients_read_records(name, participation):
    """Neither the estimator nor the server nor the ledger: the module of the clients alone."""
    X, y = toy(60)
    x, labels = Guarded(X, reader=CLIENT), Guarded(y, reader=CLIENT)
    settings = {"mechanism": name, "participation": participation, "total_epsilon": 5.0, "n_rounds": 3}
    guarded = model(**settings).fit(x, labels)
    assert x.reads == labels.reads == 3
    np.testing.assert_array_equal(guarded.theta_, model(**settings).fit(X, y).theta_)
    with pytest.raises(AssertionError, match="reads private rows"):
        x[:3]


def test_the_server_is_given_nothing_but_reports():
    assert list(inspect.signature(LocalServer.step).parameters) == ["self", "reports"]
    assert list(inspect.signature(LocalServer.__init__).parameters) == ["self", "params"]


def test_what_the_estimator_says_is_public_but_for_the_model(monkeypatch):
    """Other records and the same reports: the same bits everywhere."""
    X, y = toy(200)
    sent = []
    right = LocalUsers.reports

    def record(self, users, theta):
        sent.append(right(self, users, theta))
        return sent[-1]

    monkeypatch.setattr(LocalUsers, "reports", record)
    first = model().fit(X, y)
    monkeypatch.setattr(LocalUsers, "reports", lambda self, users, theta: sent.pop(0))
    other = model().fit(np.full_like(X, np.nan), y[::-1].copy())
    assert not sent
    assert pickle.dumps(first) == pickle.dumps(other)


def test_users_are_divided_without_a_look_at_them():
    parts = division(103, 20, "disjoint", Coins(0))
    assert sorted(np.concatenate(parts).tolist()) == list(range(103))
    assert {len(part) for part in parts} == {5, 6}
    places = np.array([division(40, 4, "disjoint", Coins(seed))[0] for seed in range(400)])
    shares = np.bincount(places.ravel(), minlength=40) / 400  # each user is in the first part in a quarter of cases
    assert np.abs(shares - 0.25).max() < 4.75 * math.sqrt(0.25 * 0.75 / 400)
    assert all(part.tolist() == list(range(7)) for part in division(7, 3, "all", Coins(0)))


# ------------------------------------------------------------------ composition and refusals


@every
def test_each_user_once_costs_one_report(name):
    spent = model(mechanism=name, epsilon=0.7).fit(*toy(100)).privacy_spent_
    assert spent["epsilon"] == pytest.approx(0.7) == spent["epsilon_report"] and spent["delta"] is None
    assert spent["reports"] == 1 and "any two records" in spent["adjacency"]
    expected = 0.7**2 / 2 if name != "cldp" else 0.7**2 / 2 / D
    assert spent["rho"] == pytest.approx(expected)


def test_all_users_in_all_rounds_add_up():
    X, y = toy(100)
    every_round = {"participation": "all", "n_rounds": 10, "mechanism": "cldp", "epsilon": None, "alpha": 0.2}
    fitted = model(**every_round, total_epsilon=3.0).fit(X, y)  # κ = 0.1, ε = 0.3 a report
    assert fitted.privacy_spent_["epsilon"] == pytest.approx(10 * 0.1 * D)
    assert fitted.privacy_spent_["kappa"] == pytest.approx(0.1)
    assert fitted.privacy_spent_["rho"] == pytest.approx(10 * D * 0.1**2 / 2)
    rho = 10 * D * 0.1**2 / 2
    by_zcdp = model(**every_round, delta=0.01, total_epsilon=2.9).fit(X, y).privacy_spent_
    assert by_zcdp["delta"] == 0.01
    assert by_zcdp["epsilon"] == pytest.approx(epsilon_from(rho, 0.01))
    assert by_zcdp["epsilon"] == pytest.approx(epsilon_from_closed_form(rho, 0.01), rel=1e-3)
    assert by_zcdp["epsilon"] < 3.0


def unread(n=100):
    X, y = toy(n)
    return Guarded(X, reader="nobody"), Guarded(y, reader="nobody")


@pytest.mark.parametrize("total", [None, 0.99])
def test_all_rounds_are_refused_without_the_whole_total(total):
    x, y = unread()
    with pytest.raises(PrivacyError, match=r'total_epsilon must be given with participation="all".* at least 1, .*5'):
        model(participation="all", epsilon=0.2, total_epsilon=total).fit(x, y)
    assert x.reads == y.reads == 0


REFUSED = {
    "no bounds": ({"bounds": None}, PublicParameterMissing, "bounds must be given"),
    "no classes": ({"classes": None}, PublicParameterMissing, "classes must be given"),
    "bounds upside down": ({"bounds": (1, 0)}, InputError, "low < high"),
    "bounds of another width": ({"bounds": ([0] * 3, [1] * 3)}, InputError, "bounds must be a pair"),
    "one class": ({"classes": ["no"]}, InputError, "at least two"),
    "three classes": ({"classes": ["a", "b", "c"]}, InputError, "two distinct labels"),
    "epsilon 0": ({"epsilon": 0.0}, InputError, "epsilon"),
    "epsilon below 0": ({"epsilon": -1.0}, InputError, "epsilon"),
    "no epsilon": ({"epsilon": None}, InputError, "epsilon or alpha"),
    "epsilon and alpha": ({"alpha": 1.0, "mechanism": "cldp"}, InputError, "not both"),
    "mechanism": ({"mechanism": "gauss"}, InputError, "mechanism must be one of"),
    "participation": ({"participation": "some"}, InputError, "participation must be"),
    "too many rounds": ({"n_rounds": 101}, InputError, "n_rounds must be at most the number of users, n_samples = 100"),
    "step": ({"lr": -1.0}, InputError, "lr must be"),
    "delta": ({"delta": 1.0}, InputError, "delta must be"),
    "shuffle_delta": ({"shuffle_delta": 0.0}, InputError, "shuffle_delta must be"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_before_anything_is_read(case):
    changes, error, text = REFUSED[case]
    x, y = unread()
    with pytest.raises(error, match=text):
        model(**changes).fit(x, y)
    assert x.reads == y.reads == 0


def test_wrong_shapes_are_named():
    X, y = toy(50)
    with pytest.raises(InputError, match="two-dimensional"):
        model().fit(X[:, 0], y)
    with pytest.raises(InputError, match="one entry for each"):
        model().fit(X, y[:-1])
    with pytest.raises(FdadpError, match="one-dimensional"):
        model().fit(X, y[:, None, None])


def test_hostile_records_never_stop_a_fit(recwarn):
    X, y = toy(200)
    table, labels = X.astype(object), y.astype(object)
    for i, (x, label) in enumerate(HOSTILE):
        table[i, 0], table[i, 1], labels[i] = *x, label
    fitted = model(n_rounds=2).fit(table, labels)
    assert np.isfinite(fitted.theta_).all() and not recwarn.list


# ------------------------------------------------------------------ what it learns


@every
def test_without_noise_it_is_logistic_regression(name):
    """At an enormous ε and with many steps: the accuracy of scikit-learn's fit."""
    X, y = toy(20_000)
    epsilon = 600.0 if name == "cldp" else 20.0
    fitted = model(mechanism=name, epsilon=epsilon, n_rounds=40, radius=20.0).fit(X, y)
    assert fitted.score(X, y) > LogisticRegression().fit(X, y).score(X, y) - 0.01
    assert fitted.coef_[0, 0] > 0 < fitted.coef_[0, 1]


def test_one_round_is_the_noisy_mean_gradient():
    """θ after one step from zero is off -lr times the exact mean by the error that the length says."""
    X, y = toy(4_000)
    for name in MECHANISMS:
        fitted = model(mechanism=name, epsilon=4.0, n_rounds=1, lr=1.0, radius=100.0).fit(X, y)
        p = fitted.parameters_
        z = p.scaled(X)
        exact = ((0.5 - (y == "yes"))[:, None] * z).mean(axis=0)
        error = np.linalg.norm(fitted.theta_ + exact) / (p.randomizer.length / math.sqrt(4_000))
        assert 0.05 < error < 2.5


def test_coefficients_are_in_units_of_the_features():
    X, y = toy()
    fitted = model(epsilon=5.0).fit(X, y)
    inside, far = X[:20], np.array([[100.0, -100.0]])
    np.testing.assert_allclose(fitted.decision_function(inside), inside @ fitted.coef_[0] + fitted.intercept_[0])
    np.testing.assert_allclose(fitted.decision_function(far), fitted.decision_function([[4.0, -10.0]]))
    chances = fitted.predict_proba(inside)
    np.testing.assert_allclose(chances[:, 1], expit(fitted.decision_function(inside)))
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    np.testing.assert_allclose(np.exp(fitted.predict_log_proba(inside)), chances)
    assert (fitted.predict(inside) == np.where(chances[:, 1] > 0.5, "yes", "no")).all()


def test_the_default_step_is_public_and_shrinks_with_the_noise():
    p = params().randomizer
    assert default_lr(p, 10**9, 20, 5.0) == pytest.approx(2.0)
    small = default_lr(p, 100, 20, 5.0)
    assert small == pytest.approx(0.2 * 5 / (p.length / 10 * math.sqrt(20)))
    X, y = toy(1000)
    fitted = model(n_rounds=4).fit(X, y)
    assert fitted.parameters_.lr == default_lr(fitted.parameters_.randomizer, 250, 4, 5.0)
    assert model(lr=0.3).fit(X, y).parameters_.lr == 0.3


# ------------------------------------------------------------------ what it says


def test_the_ledger_says_what_is_promised_and_what_is_not():
    fitted = model(mechanism="cldp", epsilon=None, alpha=0.6, n_rounds=2).fit(*toy(6_000))
    ledger = fitted.ledger_
    text = str(ledger)
    for part in (
        "LDPLogisticRegression: differentially private end to end, epsilon = 0.9; not for release",
        "Local model: each user randomises before anything leaves the device",
        "for any two records of that user",
        "kappa: 0.3",
        "alpha = 0.6 (kappa = alpha/2, as published)",
        "Hamming distance between the 3 signs",
        "records far apart in this metric: with all 3 signs different it is epsilon = 0.9",
        "epsilon_LDP of one report: 0.9",
        "if a trusted shuffler takes the senders off: central epsilon = ",
        "at delta = 1e-06 for exchanging one record",
        "3000 in a round",
        "NOT FOR RELEASE",
    ):
        assert part in text.replace("\n", " ")
    assert "alpha" in ledger._repr_html_() and ledger._repr_html_().startswith("<div")
    assert str(Ledger.from_json(ledger.to_json())) == text
    assert not ledger.for_release and ledger.epsilon == pytest.approx(0.9)


def test_the_shuffled_figure_is_that_of_the_users_in_one_round():
    few = model(n_rounds=5).fit(*toy(1_000)).privacy_spent_["shuffled"]
    assert f"central epsilon = {federated.shuffled_epsilon(1.0, 200, 1e-6):.4g} " in few and "200 in a round" in few
    enough = model(n_rounds=1).fit(*toy(1_000)).privacy_spent_["shuffled"]
    assert enough.startswith("central epsilon = ") and "1000 in a round" in enough
    every_round = model(participation="all", total_epsilon=5.0).fit(*toy(1_000)).privacy_spent_["shuffled"]
    one = federated.shuffled_epsilon(1.0, 1_000, 1e-6 / 5)
    assert f"central epsilon = {5 * one:.4g} at delta = 1e-06" in every_round


def test_coins_for_use_are_the_systems():
    X, y = toy(100)
    fitted = model(random_state=None).fit(X, y)
    assert fitted.ledger_.for_release and "not for release" not in fitted.ledger_.headline
    assert fitted.ledger_.releases[0].draw == "exact"
    unproved = model(random_state=None, mechanism="privunit").fit(X, y).ledger_
    assert not unproved.for_release and "NOT FOR RELEASE" in unproved.statement
    assert (fitted.theta_ != model(random_state=None).fit(X, y).theta_).any()


# ------------------------------------------------------------------ scikit-learn's ways

MORE = {
    "check_classifier_not_supporting_multiclass": "a label beyond the two public ones is a private value: no gradient",
    "check_classifiers_one_label": "the coins on ten rows decide; that all have one label is private",
}


def test_scikit_learns_own_checks():
    estimator = LDPLogisticRegression(epsilon=5.0, classes=[0, 1], bounds=(-1, 1), n_rounds=2, random_state=0)
    results = check_estimator(estimator, expected_failed_checks=COMMON | MORE, on_fail=None)
    assert {r["check_name"]: str(r["exception"])[:300] for r in results if r["status"] == "failed"} == {}


def test_clone_pickle_frames():
    X, y = toy(300)
    fitted = model().fit(X, y)
    again = clone(fitted)
    with pytest.raises(NotFittedError):
        again.predict(X)
    np.testing.assert_array_equal(again.fit(X, y).theta_, fitted.theta_)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict_proba(X), fitted.predict_proba(X))
    frame = pd.DataFrame(X, columns=["a", "b"])
    named = model().fit(frame, pd.Series(y))
    assert list(named.feature_names_in_) == ["a", "b"]
    np.testing.assert_allclose(named.decision_function(frame), fitted.decision_function(X), atol=1e-12)
    for value in vars(fitted).values():
        assert 300 not in np.shape(value)


# ------------------------------------------------------------------ the command


def small(split=True):
    X, y = toy(1_500)
    frame = pd.DataFrame(X, columns=["a", "b"])
    features = {"a": Numeric(0, 4), "b": Numeric(-10, 10)}
    return Task("small", "classification", frame[:1000], y[:1000], frame[1000:], y[1000:], features, ("no", "yes"))


@pytest.fixture
def fake(monkeypatch):
    def missing(download):
        raise MissingDataError("Bank Marketing was found nowhere")

    monkeypatch.setattr(logistic_experiment, "TASKS", {"adult": lambda download: small(), "bank": missing})


try:
    RUNNER = CliRunner(mix_stderr=False)  # click before 8.2
except TypeError:
    RUNNER = CliRunner()


def run(*args):
    return RUNNER.invoke(logistic_experiment.app, [str(a) for a in args])


def test_the_command_writes_tables_and_a_figure(fake, tmp_path):
    options = ["--owners", 900, "--rounds", 3, "--epsilon", 1, 20, "--kappa", 0.5, "--repeats", 2]
    result = run("--dataset", "adult", "bank", *options, "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert "Skipped bank: Bank Marketing was found nowhere" in result.stderr
    written = {"results.csv", "table.csv", "table.txt", "settings.json", "learners.png"}
    assert {p.name for p in tmp_path.iterdir()} == written
    table = pd.read_csv(tmp_path / "table.csv", keep_default_na=False, na_values=[""])
    assert set(table["dataset"]) == {"small, 3 rounds of 300 users", "small, 3 rounds of all 900 users"}
    noisy = table[table["scheme"] == "private"]
    assert len(noisy) == 4 * (2 * 2 + 1) and set(noisy["repeats"]) == {2}
    assert set(noisy[noisy["dataset"].str.contains("of all")]["epsilon"]) == {3 * 0.5 * D}
    errors = noisy[(noisy["metric"] == logistic_experiment.ERROR) & (noisy["learner"] == "cldp")]
    for epsilon, error in zip(errors["epsilon"], errors["score"], strict=True):
        theory = federated.randomizer("cldp", D, epsilon=epsilon).length / math.sqrt(300)
        assert error == pytest.approx(theory, rel=0.5)
    settings = json.loads((tmp_path / "settings.json").read_text())
    assert settings["owners"] == 900 and settings["skipped"] == ["bank"]
    assert "privunit" in result.output and "scikit-learn" in result.output


@pytest.mark.parametrize(
    ("args", "what"),
    [
        (["--dataset", "iris"], "dataset must be one of adult, bank"),
        (["--mechanism", "gauss"], "mechanism must be among cldp"),
        (["--owners", 5000], "owners must be from 1 to the number of training rows, 1000"),
        (["--owners", 3], "n_rounds must be at most the number of users"),
        (["--kappa", -1], "kappa must be finite numbers above 0"),
        (["--epsilon", 0], "epsilon must be finite numbers above 0"),
        (["--repeats", 0], "repeats must be a whole number"),
        (["--dataset", "bank"], "dataset must be one that is present"),
    ],
)
def test_mistakes_are_one_line(fake, tmp_path, args, what):
    result = run(*args, "--out", tmp_path / "out")
    assert result.exit_code == 2
    lines = [line for line in result.stderr.splitlines() if line.startswith("Error")]
    assert len(lines) == 1 and what in lines[0]
    assert not (tmp_path / "out").exists()


def test_labels_of_two_types_stay_what_they_are():
    """NumPy makes text of a number beside a text."""
    X, y = toy(100)
    labels = np.array([0, "one"], dtype=object)
    fitted = model(classes=[0, "one"]).fit(X, labels[(y == np.unique(y)[1]).astype(int)])
    assert fitted.classes_.tolist() == [0, "one"]
    assert set(fitted.predict(X).tolist()) <= {0, "one"}
