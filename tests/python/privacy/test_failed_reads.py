"""A read that fails is paid for in full, whatever was asked and wherever the budget is kept."""

from __future__ import annotations

import ast
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from study_tools import study_at

import fdadp
from fdadp import DPAFF, FunctionalRegression, Privacy, PrivateMean, ScalarRegression
from fdadp.audit.replay import Neighbours, replay_audit
from fdadp.errors import FailedReadError, PrivacyError
from fdadp.privacy import Budget, Cohort, SeededNoise

N, S = 60, np.linspace(0, 1, 11)
BOUNDS = {"X": (-4, 4), "y": (-6, 6), "Y": (-6, 6), "z": (0, 1)}


class Source:
    """Chunks of a table; reading fails at the first one that holds `trigger`, or never."""

    def __init__(self, table, trigger=None):
        self.table, self.trigger = table, trigger

    def __call__(self):
        for start in range(0, N, 20):
            chunk = {k: v[start : start + 20] for k, v in self.table.items()}
            if self.trigger in chunk["z"]:
                raise RuntimeError("an entry could not be read")
            yield chunk


def people(entry):
    rng = np.random.default_rng(0)
    table = {"X": rng.normal(size=(N, S.size)), "Y": rng.normal(size=(N, S.size)), "y": rng.normal(size=N)}
    return table | {"z": np.r_[np.full(30, 0.5), entry, np.full(N - 31, 0.5)]}


def terms(kind, formula):
    grids = {"X": S} | ({"Y": S} if kind is FunctionalRegression else {})

    def fit(source, privacy):
        model = kind(formula, privacy=privacy, bounds=BOUNDS, mechanism=DPAFF(allow_useless=True))
        return model.fit_chunks(source, grids=grids)

    return fit


class Rows:
    """The curves of a source, as chunks that can be read several times."""

    def __init__(self, source):
        self.source = source

    def __iter__(self):
        return (np.asarray(c["Y"]) for c in self.source())


ENTRIES = {
    "terms": terms(ScalarRegression, "y ~ lf(X) + z"),
    "functions of rows": terms(ScalarRegression, "y ~ lf(X) + mean(X)"),
    "offset": terms(FunctionalRegression, "Y ~ ff(X) + offset(z)"),
    "mean": lambda source, privacy: PrivateMean(privacy=privacy, bounds=(-6, 6)).fit_chunks(Rows(source), t=S),
}
every_entry = pytest.mark.parametrize("entry", ENTRIES)
pytestmark = pytest.mark.filterwarnings("ignore::fdadp.errors.PublicInputWarning")


@every_entry
def test_nothing_is_given_back_after_a_read_that_failed(entry):
    """A row that a source fails at told of itself again and again, for "the budget is spent" left it whole."""
    budget = Budget(2.0, 1e-6)
    privacy = Privacy(2.0, 1e-6, n=N, budget=budget, random_state=0, dataset="people")
    with pytest.raises(FailedReadError, match="the budget is spent"):
        ENTRIES[entry](Source(people(0.75), trigger=0.75), privacy)
    assert budget.left == 0
    with pytest.raises(PrivacyError, match="share must be at most") as refused:
        ENTRIES[entry](Source(people(0.75), trigger=0.75), privacy)
    assert not isinstance(refused.value, FailedReadError)


@every_entry
def test_nothing_is_given_back_in_a_study(entry, tmp_path):
    study = study_at(tmp_path / "study", n=N)
    for _ in range(2):
        with pytest.raises(PrivacyError):
            ENTRIES[entry](Source(people(0.75), trigger=0.75), Privacy(2.0, study=str(study.path)))
    kinds = [line.kind for line in study.entries]
    assert kinds.count("reserved") == 1 and not {"stopped", "returned"} & set(kinds)
    assert study.budget.left == 0


@every_entry
@pytest.mark.parametrize("triggers", [(0.75, 0.75), (None, 0.75), (0.75, None)], ids=["both", "second", "first"])
def test_neighbours_leave_the_same_budget_whether_or_not_a_read_fails(entry, triggers):
    budgets = []

    def run(source, noise):
        budgets.append(Budget(2.0, 1e-6))
        with mock.patch("fdadp.privacy.noise.sources.SeededNoise", lambda seed: noise):
            fitted = ENTRIES[entry](source, Privacy(2.0, 1e-6, n=N, budget=budgets[-1], random_state=0))
        return fitted.ledger_.releases

    sources = [Source(people(0.75), trigger) for trigger in triggers]
    pair = Neighbours("fails", run, *sources, total=1.0, left=lambda: (budgets[-1].left, budgets[-1].spent))
    audit = replay_audit([pair])
    assert audit.passed, audit


def test_whoever_stops_a_cohort_after_a_read_that_failed_gets_nothing_back():
    budget = Budget(1.0)
    cohort = Cohort(Rows(Source(people(0.75), 0.75)), budget=budget, n=N, noise=SeededNoise(0), dataset="rows")
    with pytest.raises(FailedReadError):
        cohort.sum(lambda r: r[0], clip=1.0, share=0.1, name="sum")
    cohort.stop()
    assert budget.left == 0


def test_no_read_stands_under_a_check_that_gives_back():
    """Under ``with cohort.refusing():`` stand checks of public and released values, and nothing of the cohort."""
    seen = 0
    for path in Path(fdadp.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.With) and "refusing()" in ast.unparse(node.items[0].context_expr):
                seen += 1
                called = [ast.unparse(c.func) for s in node.body for c in ast.walk(s) if isinstance(c, ast.Call)]
                assert not [name for name in called if name.split(".")[0] == "cohort"], f"{path.name}: {called}"
    assert seen > 2


def test_a_source_that_fails_at_its_first_chunk_costs_what_was_reserved():
    """The look at its shape read the row: refusing it would say so for nothing."""

    class Source:
        def __iter__(self):
            raise OSError("private row 17")
            yield  # pragma: no cover

    budget = Budget(1.0)
    with pytest.raises(FailedReadError, match="the budget is spent") as failed:
        Cohort(Source(), n=4, budget=budget, share=0.5)
    assert "private row" not in str(failed.value) + repr(failed.value.__cause__) + repr(failed.value.__context__)
    assert budget.spent == pytest.approx(0.5 * budget.total)
