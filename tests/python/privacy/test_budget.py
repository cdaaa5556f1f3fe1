"""A budget that threads share and processes cannot copy, and a ledger that adds up what releases cost."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import select
import sys
import threading

import joblib
import numpy as np
import pytest
from mutants import mutate

from fdadp.errors import PrivacyError
from fdadp.learners import DPGaussianNB
from fdadp.privacy import Budget, Cohort, SeededNoise
from fdadp.privacy.account import _reservations
from fdadp.privacy.account._reservations import Binding, MemoryBook
from fdadp.privacy.account.budget import Account

BIND = Binding("data", "person", "zero-out")
ROWS = np.random.default_rng(0).uniform(-1, 1, (50, 2))
LABELS = (ROWS[:, 0] > 0).astype(int)
SHARED = {}
"""What forked workers find as they were left."""


def total(cohort, share=0.5):
    return cohort.sum(lambda r: r[0], clip=1.0, share=share, name="sum")


# ------------------------------------------------------------------ processes


def attempts():
    """What a process can try with budgets and cohorts that it got by a fork; the texts of the errors."""
    texts = []
    for attempt in (
        lambda: SHARED["budget"].reserve(0.1, BIND),
        lambda: Cohort(ROWS, budget=SHARED["budget"], n=50, noise=SeededNoise(0), share=0.1),
        lambda: total(SHARED["cohort"]),
        lambda: SHARED["cohort"].derive(lambda r: r[0]),
        lambda: SHARED["opened"].derive(lambda r: r[0]),
        lambda: total(SHARED["opened"]),
        lambda: SHARED["model"].fit(ROWS, LABELS),
    ):
        try:
            attempt()
        except PrivacyError as exc:
            texts.append(str(exc))
        else:
            texts.append("NOTHING WAS REFUSED")
    return texts


@pytest.fixture
def shared():
    budget = Budget(1.0)
    model = DPGaussianNB(epsilon=0.1, classes=[0, 1], bounds=(-1, 1), budget=budget, n=50, dataset="rows")
    settings = {"budget": budget, "n": 50, "noise": SeededNoise(0), "dataset": "rows", "share": 0.2}
    SHARED.update(budget=budget, model=model, cohort=Cohort(ROWS, **settings), opened=Cohort(ROWS, **settings))
    total(SHARED["opened"], 0.1)
    yield budget
    SHARED.clear()


def refused(texts):
    return len(texts) == 7 and all("belongs to the process that made it" in text for text in texts)


def test_a_fork_cannot_spend_the_budget_again(shared):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:  # no assertion, no exit handlers: this is still pytest
        try:
            os.write(writer, "\n".join(attempts()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        assert select.select([pipe], [], [], 60)[0], "the child hangs"
        texts = pipe.read().splitlines()
    os.waitpid(child, 0)
    assert refused(texts), texts
    assert shared.spent == pytest.approx(0.2)  # and what the fork forgot did not come back here
    assert shared.reserved == pytest.approx(0.2)
    total(SHARED["cohort"])


def in_worker(call, *args):
    """What a call gives in a forked worker of a pool, which gets it and its arguments pickled.

    The worker ends by itself: terminating a pool whose worker has just answered, as its context manager and joblib's
    "multiprocessing" do, waits for ever now and then (https://github.com/python/cpython/issues/96995).
    """
    pool = multiprocessing.get_context("fork").Pool(1)
    answer = pool.apply_async(call, args)
    pool.close()
    given = answer.get(timeout=60)
    pool.join()
    return given


def test_a_fork_while_another_thread_holds_the_lock_is_refused_and_does_not_hang(shared):
    with shared._book._lock:
        assert refused(in_worker(attempts))


def test_workers_that_are_forked_are_refused(shared):
    assert refused(in_worker(attempts))


def fit(model):
    return model.fit(ROWS, LABELS)


def refusal(call, *args):
    """What it said."""
    try:
        call(*args)
    except PrivacyError as exc:
        return str(exc)
    return "NOTHING WAS REFUSED"


@pytest.mark.usefixtures("loky")
def test_workers_that_get_a_budget_pickled_are_refused(shared):
    """As scikit-learn sends it: ``GridSearchCV(model, n_jobs=2)``; loky's workers are spawned."""
    assert "belongs to the process" in in_worker(refusal, fit, SHARED["model"])
    texts = joblib.Parallel(2, backend="loky", timeout=120)(
        joblib.delayed(refusal)(Budget.reserve, shared, 0.1, BIND) for _ in range(2)
    )
    assert all("belongs to the process" in text for text in texts), texts


def test_threads_of_joblib_share_it(shared):
    joblib.Parallel(n_jobs=2, backend="threading", timeout=60)(joblib.delayed(fit)(SHARED["model"]) for _ in range(2))
    assert shared.spent == pytest.approx(0.4)


# ------------------------------------------------------------------ threads


class Meeting:
    """Noise whose users wait for each other between the check of their share and its charge."""

    description = "seeded"

    def __init__(self, users):
        self._inner, self._barrier = SeededNoise(0), threading.Barrier(users)

    def prepare(self, *args):
        self._barrier.wait(timeout=30)
        return self._inner.prepare(*args)


def together(*calls):
    """Run calls at once; their errors."""
    errors = []

    def guarded(call):
        try:
            call()
        except PrivacyError as exc:
            errors.append(str(exc))

    threads = [threading.Thread(target=guarded, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return errors


def test_two_threads_cannot_take_one_share_twice():
    cohort = Cohort(ROWS, budget=Budget(1.0, 1e-6), n=50, noise=Meeting(2))
    errors = together(*[lambda: total(cohort, 0.6)] * 2)
    assert len(errors) == 1
    assert "nothing was spent on it" in errors[0]
    assert sum(r.spent for r in cohort.ledger.releases) <= cohort.amount
    assert cohort.reads == 1


@pytest.mark.parametrize("accounting", ["gdp", "zcdp"])
def test_the_check_inside_the_lock_is_what_stops_them(monkeypatch, accounting):
    """Both threads pass the first check; without those on shares the one on costs finds it, and without any nobody."""

    def race():
        budget = Budget(1.0, 1e-6, accounting=accounting)
        cohort = Cohort(ROWS, budget=budget, n=50, noise=Meeting(2))
        return cohort, together(*[lambda: total(cohort, 0.6)] * 2)

    def unchecked(book, at, share, cost, *, whole=False, release=None):
        book._reservations[at].shares.append(share)
        book._reservations[at].costs.append(cost)

    with monkeypatch.context() as patch:
        mutate(patch, _reservations, "r.whole or r.used + share > 1 + TOLERANCE", "r.whole")
        cohort, errors = race()
        assert len(errors) == 1 and "that were reserved" in errors[0]
        assert cohort.budget.cost <= cohort.amount
    monkeypatch.setattr(_reservations.MemoryBook, "spend", unchecked)
    cohort, errors = race()
    assert errors == [] and cohort.budget.cost > 1.19 * cohort.amount
    assert "GUARANTEE BROKEN" in cohort.ledger.statement and cohort.ledger.mu is None


def test_nobody_is_checked_while_another_who_was_checked_is_not_charged_yet(monkeypatch):
    """Whoever has passed the check waits a moment for another one to pass it too, which nobody does."""
    meeting, right = threading.Barrier(2), _reservations.check_charge

    def slowly(*args, **kwargs):
        right(*args, **kwargs)
        with contextlib.suppress(threading.BrokenBarrierError):
            meeting.wait(timeout=0.2)

    monkeypatch.setattr(_reservations, "check_charge", slowly)
    account = Budget(1.0).reserve(1.0, BIND)
    errors = together(*[lambda: account.spend(0.6, 0.6)] * 2)
    assert len(errors) == 1 and "nothing was spent on it" in errors[0]
    assert meeting.broken


def test_thousands_of_races_never_overspend():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(1000):
            budget = Budget(1.0)
            account = budget.reserve(0.6, BIND)
            errors = together(
                lambda account=account: account.spend(account.check(0.6) and 0.6, 0.36),
                lambda account=account: account.spend(account.check(0.6) and 0.6, 0.36),
                lambda budget=budget: budget.reserve(0.4, BIND).spend(1.0, 0.4),
                lambda budget=budget: budget.reserve(0.4, BIND).spend(1.0, 0.4),
            )
            assert len(errors) == 2
            assert budget.cost == pytest.approx(0.76)
            assert budget.left == 0
    finally:
        sys.setswitchinterval(interval)


def test_a_collector_that_runs_inside_a_transaction_does_not_hang():
    """Cohorts that nobody holds are given back by the garbage collector, which may run in a thread with the lock."""
    budget = Budget(1.0)
    account = budget.reserve(0.5, BIND)
    with budget._book._lock:
        del account
    assert budget.left == 1.0
    again = budget.reserve(1.0, BIND)
    again.close()
    other = budget.reserve(1.0, BIND)
    del again  # closed before: what was reserved since then is not its own
    assert budget.left == 0
    other.open()


# ------------------------------------------------------------------ costs


def test_costs_are_added_up_not_only_shares():
    budget = Budget(1.0)
    account = budget.reserve(0.5, BIND)
    account.spend(0.1, 0.3)
    for cost in (0.3, -0.1, float("nan"), float("inf")):
        with pytest.raises(PrivacyError, match="that were reserved"):
            account.spend(0.1, cost)
    assert (budget.cost, account.used) == (0.3, 0.1)


def test_noise_that_costs_more_than_its_share_is_not_drawn(monkeypatch):
    """A mutant that halves the noise is stopped at run time, before it reads."""
    monkeypatch.setattr(Account, "check", lambda self, share: 4 * self.amount * share)
    cohort = Cohort(ROWS, budget=Budget(1.0, 1e-6), n=50, noise=SeededNoise(0))
    with pytest.raises(PrivacyError, match="that were reserved"):
        total(cohort, 1.0)
    assert cohort.reads == 0


@pytest.mark.parametrize("delta", [None, 1e-6])
def test_a_ledger_that_does_not_add_up_promises_nothing(monkeypatch, delta):
    """Without the checks of the account (here taken away) the ledger still finds it."""
    monkeypatch.setattr(MemoryBook, "spend", lambda *a, **k: None)
    monkeypatch.setattr(Account, "check", lambda self, share: self.amount * share)
    cohort = Cohort(ROWS, budget=Budget(1.0, delta), n=50, noise=SeededNoise(0))
    total(cohort, 0.6)
    assert cohort.ledger.private
    total(cohort, 0.6)
    ledger = cohort.ledger
    assert not ledger.private
    assert not ledger.for_release
    assert ledger.epsilon is None
    assert ledger.statement.startswith("GUARANTEE BROKEN")
    assert "epsilon = 1" not in ledger.headline
    model = DPGaussianNB(epsilon=1.0, delta=delta, classes=[0, 1], bounds=(-1, 1), n=50, random_state=0)
    monkeypatch.setattr(Account, "check", lambda self, share: 1.5 * self.amount * share)
    assert model.fit(ROWS, LABELS).privacy_spent_["epsilon"] is None
    assert "NOT differentially private" in ledger.headline


# ------------------------------------------------------------------ what it promises stays


@pytest.mark.parametrize("name", ["epsilon", "delta", "accounting", "total", "_book"])
def test_a_budget_is_frozen(name):
    """Twice the total was one assignment away, and the ledger said what was promised at first."""
    budget = Budget(1.0, 1e-6)
    before = (budget.epsilon, budget.delta, budget.accounting, budget.total, budget._book)
    with pytest.raises(PrivacyError, match=f"{name} of a Budget must stay"):
        setattr(budget, name, 2.0)
    with pytest.raises(PrivacyError, match=f"{name} of a Budget must stay"):
        delattr(budget, name)
    with pytest.raises(PrivacyError, match="cannot be made anew"):
        budget.__init__(8.0, 1e-3)
    assert before == (budget.epsilon, budget.delta, budget.accounting, budget.total, budget._book)
