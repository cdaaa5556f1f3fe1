"""Bad input of private fits: refused from public values before the first read, or taken without a word."""

from __future__ import annotations

import logging
import warnings

import numpy as np
import pandas as pd
import pytest
from privacy_tools import Guarded
from private_settings import regression_settings

from fdadp import AdditiveFunctionOnFunction
from fdadp.audit.private_regression_audits import X_BOUNDS, Y_BOUNDS, simulated
from fdadp.audit.replay import fingerprint
from fdadp.errors import FdadpError, InputError, PrivacyError
from fdadp.privacy import Budget
from fdadp.private.public.column_ranges import public_ranges

BOUNDS = {"X": X_BOUNDS, "Y": Y_BOUNDS}
N = 60
X, Y, _ = simulated(1, N, 0)


def setting(**changes):
    return regression_settings(
        **({"epsilon": 4.0, "delta": 1e-6, "bounds": BOUNDS, "n": N, "random_state": 0} | changes)
    )


def fit(settings, x=X, y=Y, **kwargs):
    return AdditiveFunctionOnFunction(**settings, progress=False).fit(x, y, **kwargs)


# ------------------------------------------------------------------ only the kernel reads


@pytest.mark.parametrize("adjacency", ["zero-out", "add-remove", "replace"])
@pytest.mark.parametrize("delta", [1e-6, None])
def test_only_the_kernel_reads_private_rows(delta, adjacency):
    budget = Budget(4.0, delta)
    n = None if adjacency == "add-remove" else N
    x, y = Guarded(X, budget), Guarded(Y, budget)
    groups = np.arange(N) if adjacency == "replace" else None
    privacy = setting(delta=delta, adjacency=adjacency, n=n, budget=budget, epsilon=4.0)
    guarded = fit(privacy, x, y, groups=groups)
    assert x.reads == y.reads > 0
    plain = fit(setting(delta=delta, adjacency=adjacency, n=n), groups=groups)
    assert guarded.coef_.tobytes() == plain.coef_.tobytes()
    held = fingerprint(vars(guarded))
    assert x.reads == y.reads and "Guarded" not in str(held)
    with pytest.raises(AssertionError, match="reads private rows"):
        x[:3]


def test_reading_beside_the_kernel_shows(monkeypatch):
    from fdadp.private.release import mechanisms as module

    right = module.make_plan
    x = Guarded(X)

    def peeking(n, *args, **kwargs):
        float(np.asarray(x).max())
        return right(n, *args, **kwargs)

    monkeypatch.setattr(module, "make_plan", peeking)
    with pytest.raises(AssertionError, match="reads private rows"):
        fit(setting(), x, Guarded(Y))


# ------------------------------------------------------------------ refused before the first read


BAD_SETTINGS = {
    "no bounds": ({"bounds": None}, "bounds must give a public range for X"),
    "no bounds of x": ({"bounds": {"Y": Y_BOUNDS}}, "public range for X"),
    "no bounds of y": ({"bounds": {"X": X_BOUNDS}}, "public range for Y"),
    "delta of 1/n": ({"delta": 1 / N}, "delta must be below 1/n"),
    "hopeless": ({"epsilon": 0.5}, "n >= 100 or epsilon >= 0.833"),
    "hopeless, replace": ({"epsilon": 1.2, "adjacency": "replace"}, "at least 100"),
    "no n": ({"n": None, "adjacency": "zero-out"}, "n must be declared"),
    "n with add-remove": ({"adjacency": "add-remove"}, "n must be left out"),
    "prior": ({"prior": "mine"}, "prior must be a PublicPrior"),
}


@pytest.mark.parametrize("case", BAD_SETTINGS)
def test_bad_settings_spend_nothing(case):
    changes, text = BAD_SETTINGS[case]
    # A larger epsilon: what is refused must not be the shared budget.
    budget = Budget(8.0, changes.get("delta", 1e-6))
    x, y = Guarded(X, budget), Guarded(Y, budget)
    with pytest.raises(FdadpError, match=text):
        fit(setting(**{"budget": budget} | changes), x, y)
    assert (budget.spent, budget.reserved, x.reads, y.reads) == (0, 0, 0, 0)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: setting(epsilon=0.0), "epsilon must be a number above 0"),
        (lambda: setting(epsilon=-1.0), "epsilon must be a number above 0"),
        (lambda: setting(epsilon=np.inf), "epsilon must be at most 1e.15, got inf"),
        (lambda: setting(epsilon=np.nan), "epsilon"),
        (lambda: setting(delta=-1e-6), "delta must lie between 0 and 1"),
        (lambda: setting(delta=1.0), "delta must lie between 0 and 1"),
        (lambda: setting(n=0), "n must be a positive integer"),
        (lambda: setting(n=60.5), "n must be a positive integer"),
        (lambda: public_ranges({"X": (1.0, 1.0)}, required=False), "low < high"),
        (lambda: public_ranges({"X": (2.0, 1.0)}, required=False), "low < high"),
        (lambda: public_ranges({"Y": (0.0, np.inf)}, required=False), "finite"),
        (lambda: public_ranges({"Y": (np.nan, 1.0)}, required=False), "finite"),
        (lambda: public_ranges({"X": (0.0, 1e-40)}, required=False), "width"),
        (lambda: public_ranges({"X": (-1e200, 1e200)}, required=False), "width"),
        (lambda: public_ranges({"X": (1e12, 1e12 + 1e-3)}, required=False), "width"),
        (lambda: public_ranges({"X": 3.0}, required=False), "pair"),
    ],
)
def test_bad_settings_are_refused_when_made(make, text):
    with pytest.raises(PrivacyError, match=text):
        make()


BAD_DATA = {
    "other n": ((X[:-1], Y), {}, "same number of rows"),
    "one-dimensional": ((X[0], Y), {}, "two-dimensional"),
    "empty": ((X[:0], Y[:0]), {}, "two-dimensional"),
    "two points": ((X[:, :2], Y), {}, "at least 3 points"),
    "grid of other length": ((X, Y), {"s": [0.0, 1.0]}, "grid of X"),
    "groups too short": ((X, Y), {"groups": np.arange(N - 1)}, "groups must have one entry per curve"),
    "groups too deep": ((X, Y), {"groups": np.zeros((N, 2))}, "groups must have one entry per curve"),
}


@pytest.mark.parametrize("case", BAD_DATA)
def test_bad_shapes_spend_nothing(case):
    (x, y), kwargs, text = BAD_DATA[case]
    budget = Budget(4.0, 1e-6)
    x, y = Guarded(x, budget), Guarded(y, budget)
    with pytest.raises(InputError, match=text) as error:
        fit(setting(budget=budget), x, y, **kwargs)
    assert (budget.spent, budget.reserved, x.reads, y.reads) == (0, 0, 0, 0)
    assert str(N - 1) not in str(error.value)  # how many curves there are may be private


def test_without_delta_the_plan_is_a_pure_one():
    """No δ is no mistake: Laplace noise, of numbers and of matrices, and ε that adds up, as `Privacy` documents."""
    model = fit(setting(delta=None))
    laws = {"Laplace", "matrix Laplace (product of Gaussians)", "matrix Laplace (difference of Wisharts)"}
    assert {release.noise.split(",")[0] for release in model.ledger_.releases} == laws
    assert model.ledger_.details["accounting"] == "epsilon"
    assert sum(release.epsilon for release in model.ledger_.releases) <= 4.0


# ------------------------------------------------------------------ shared budgets


def test_fits_share_a_budget_until_it_is_spent():
    budget = Budget(2.5, 1e-6)
    first = fit(setting(epsilon=1.5, budget=budget))
    assert budget.spent_epsilon == pytest.approx(1.5, rel=1e-6)  # as much as was asked for, not all there is
    assert sum(r.spent for r in first.ledger_.releases) <= budget.spent
    spent = budget.spent
    x, y = Guarded(X), Guarded(Y)
    with pytest.raises(PrivacyError, match="share must be at most what the budget has left"):
        AdditiveFunctionOnFunction(**setting(epsilon=2.2, budget=budget)).fit(X, Y)
    assert budget.spent == spent and budget.reserved == 0
    with pytest.raises(PrivacyError, match="bound to another data set"):
        fit(setting(epsilon=1.0, budget=budget), x, y)
    assert x.reads == y.reads == 0
    fit(setting(epsilon=1.0, budget=budget))
    assert budget.spent_epsilon <= 2.5


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"epsilon": 5.0}, "epsilon must be at most that of the shared budget"),
        ({"delta": 1e-7}, "delta must be that of the shared budget"),
        ({"delta": None}, "delta must be that of the shared budget"),
        ({"budget": 4.0}, "budget must be a Budget"),
    ],
)
def test_a_budget_that_does_not_fit_is_refused(changes, text):
    budget = Budget(4.0, 1e-6)
    x, y = Guarded(X, budget), Guarded(Y, budget)
    with pytest.raises(PrivacyError, match=text):
        fit(setting(**{"budget": budget} | changes), x, y)
    assert (budget.spent, budget.reserved, x.reads) == (0, 0, 0)


def test_a_released_n_that_is_hopeless_costs_what_was_released():
    """The refusal tells no more than the released n; the rest of the budget is as good as never asked for."""
    budget = Budget(0.5, 1e-6)
    with pytest.raises(PrivacyError, match="n and epsilon must give"):
        fit(setting(epsilon=0.5, n=None, budget=budget), random_rows(20), random_rows(20))
    assert budget.left == pytest.approx(0.9 * budget.total)  # 1 % for a first look at n, up to 9 % for a better one
    assert 0 < budget.cost <= budget.spent == pytest.approx(0.1 * budget.total)


def random_rows(n):
    return np.random.default_rng(n).normal(size=(n, 11))


def test_delta_is_held_against_a_released_n():
    budget = Budget(8.0, 1e-3)
    with pytest.raises(PrivacyError, match="delta must be below 1/n"):
        fit(setting(epsilon=8.0, delta=1e-3, n=None, budget=budget), random_rows(1500), random_rows(1500))
    assert budget.left > 0.9 * budget.total


def test_delta_has_a_limit_where_n_is_private():
    budget = Budget(8.0, 0.04)
    x, y = Guarded(X, budget), Guarded(Y, budget)
    with pytest.raises(PrivacyError, match=r"delta must be at most 0\.001 where n is private"):
        fit(setting(epsilon=8.0, delta=0.04, n=None, budget=budget), x, y)
    assert (budget.spent, budget.reserved, x.reads) == (0, 0, 0)


# ------------------------------------------------------------------ taken without a word


def odd(kind):
    x, y = X.copy(), Y.copy()
    if kind == "text":
        x, y = x.astype(object), y.astype(object)
        x[3, 2], y[3], x[3, 4], y[3, 0] = "n/a", "no curve", None, [1, 2]
    elif kind == "complex":
        x = x.astype(complex)
        x[3] = 1j
    elif kind == "whole numbers too large":
        x = x.astype(object)
        x[3], x[3, 1] = 2**70, -1
    elif kind == "outside the bounds":
        x[3], y[3] = 40.0, -900.0
    else:
        value = {"NaN": np.nan, "infinity": -np.inf, "1e30": 1e30}[kind]
        x[3], y[3, ::2] = value, value
    return x, y


KINDS = ("NaN", "infinity", "1e30", "outside the bounds", "text", "complex", "whole numbers too large")


def form(model):
    """What is left of an output when the numbers are taken out: names, types, shapes."""

    def walk(value):
        if isinstance(value, np.ndarray):
            return value.dtype.kind, value.shape
        if isinstance(value, float | int):
            return "number"
        if isinstance(value, dict):
            return {key: walk(v) for key, v in value.items()}
        if isinstance(value, list | tuple):
            return [walk(v) for v in value]
        return type(value).__name__

    releases = [(r.name, r.size, r.share, r.norm) for r in model.ledger_.releases]
    return walk(vars(model)), releases, sorted(model.ledger_.details)


@pytest.mark.parametrize("kind", KINDS)
def test_odd_private_rows_are_taken_without_a_word(kind, caplog, capsys):
    x, y = odd(kind)
    with warnings.catch_warnings(), caplog.at_level(logging.DEBUG):
        warnings.simplefilter("error")
        model = fit(setting(), x, y)
    assert (caplog.text, *capsys.readouterr()) == ("", "", "")
    assert np.isfinite(model.coef_).all() and np.isfinite(model.predict(np.zeros((1, X.shape[1])))).all()
    assert form(model) == form(fit(setting()))


@pytest.mark.parametrize("kind", ["text", "complex", "whole numbers too large"])
def test_one_persons_entries_change_nobody_elses(kind):
    """The same fit as where that person's rows were missing entries to begin with: same noise, same bits."""
    x, y = odd(kind)
    clean_x, clean_y = X.copy(), Y.copy()
    if kind == "text":
        clean_x[3, [2, 4]], clean_y[3] = np.nan, np.nan
    elif kind == "complex":
        clean_x[3] = np.nan
    else:
        clean_x[3], clean_x[3, 1] = 2.0**70, -1
    assert fit(setting(), x, y).coef_.tobytes() == fit(setting(), clean_x, clean_y).coef_.tobytes()


def test_a_person_without_usable_rows_says_nothing():
    groups = np.repeat(np.arange(N // 2), 2).astype(object)
    x, y = X.copy(), Y.copy()
    x[groups == 5], y[groups == 5] = np.nan, np.nan
    blank = groups.copy()
    blank[groups == 5] = None
    settings = setting(n=N // 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        models = [fit(settings, x, y, groups=groups), fit(settings, x, y, groups=blank), fit(settings, groups=groups)]
    assert form(models[0]) == form(models[1]) == form(models[2])


def test_frames_and_lists_are_read_as_arrays_are():
    columns = np.linspace(0.0, 1.0, X.shape[1])
    wanted = fit(setting()).coef_.tobytes()
    frame_x, frame_y = pd.DataFrame(X, columns=columns), pd.DataFrame(Y, columns=columns)
    assert fit(setting(), frame_x, frame_y).coef_.tobytes() == wanted
    assert fit(setting(), frame_x.astype(object), frame_y).coef_.tobytes() == wanted
    with pytest.raises(InputError, match="X must be an array or a data frame, or come with its grid, got a list"):
        fit(setting(), X.tolist(), Y.tolist())
    predicted = fit(setting(), frame_x, frame_y).predict(frame_x[:2].clip(-2, 2))
    assert isinstance(predicted, pd.DataFrame)


def test_masked_values_are_missing():
    mask = np.zeros(X.shape, dtype=bool)
    mask[3] = True
    missing = X.copy()
    missing[3] = np.nan
    one = fit(setting(), np.ma.MaskedArray(X, mask), Y).coef_
    assert one.tobytes() == fit(setting(), missing, Y).coef_.tobytes()
