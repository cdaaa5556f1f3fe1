"""Shared fixtures: the recorded refund/mgcv cases, where they are present."""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from collections.abc import Hashable, Iterator
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import pytest
from covering import few
from hypothesis import HealthCheck, settings

# The experiments of benchmarks/studies, which tests import as `studies`.
sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

# Dask logs how slow its event loop is, at any moment while a cluster is alive: tests compare what is logged, not paces.
os.environ.setdefault("DASK_DISTRIBUTED__ADMIN__TICK__LIMIT", "1 hour")
# Nor does a cluster that waits for the next test look at its own stacks and memory: that was a tenth of a core each.
for setting, value in {
    "WORKER__PROFILE__ENABLED": "False",
    "ADMIN__TICK__INTERVAL": "1s",
    "ADMIN__SYSTEM_MONITOR__INTERVAL": "10s",
}.items():
    os.environ.setdefault(f"DASK_DISTRIBUTED__{setting}", value)

# On a busy machine examples may be slow to make; no test depends on time.
settings.register_profile("fdadp", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("fdadp")


@pytest.fixture(scope="session")
def reference(refund_reference: Any) -> Any:
    """``reference("affr_dti2")`` is the recorded case as nested dicts of arrays; r_bridge's plugin reads it."""
    return refund_reference


@pytest.fixture(scope="session")
def two_workers() -> Iterator[Any]:
    """A client of two worker processes of one thread each, active only where a test says ``client.as_current()``."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", memory_limit=0
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def loky() -> Iterator[None]:
    """The workers that joblib starts and keeps end with the test."""
    from joblib.externals.loky import get_reusable_executor

    yield
    get_reusable_executor().shutdown(wait=True)


@pytest.fixture
def on_workers(two_workers: Any) -> Iterator[Any]:
    """The client of two workers, active."""
    with two_workers.as_current():
        yield two_workers


@pytest.fixture
def four_cohorts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forecasts of formulas are of four cohorts, 16 to 128 else: for tests that do not ask how near they are."""
    from fdadp.planner import forecast_of_formulas
    from fdadp.planner.forecast_settings import Cohorts

    monkeypatch.setattr(forecast_of_formulas, "COHORTS", Cohorts(4, 4, 1.0))


UNSEEDED = ("test_study", "test_certificate", "test_composition_said")
"""Tests of studies and certificates, whose noise nobody can repeat: of their fits up to 2 in 1,000 warn by chance."""
OF_DOUBTS = ("test_doubts", "test_warned_lines", "test_private_ranges", "test_private_regression.py")
"""Tests that ask when a fit warns of what was released, and how often it does so by chance."""
BY_CHANCE = ("what was released speaks against", "the releases say that at least")
"""How such warnings begin. One fit in a thousand gives one by its noise, and thousands are made here without a seed."""
LET_PASS = [pytest.mark.filterwarnings(f"ignore:{text}:fdadp.errors.PublicInputWarning") for text in BY_CHANCE]


def pytest_itemcollected(item):
    """Warnings that noise alone can give fail only the tests that ask for them."""
    if not item.path.name.startswith(OF_DOUBTS):
        for mark in LET_PASS:
            item.add_marker(mark)
    if item.path.name.startswith(UNSEEDED):
        item.add_marker(pytest.mark.filterwarnings("ignore::fdadp.errors.PublicInputWarning"))


def known(value):
    """A value of a parameter as something that can be looked up."""
    return value if isinstance(value, Hashable) and not is_dataclass(value) else id(value)


OF_SECONDS = Path(__file__).with_name("of_seconds.txt")
"""Tests that take .15 s of CPU or more, but for one of each file, and one of each function that has one below .25 s.

Written by ``python .ci/report.py slow REPORT 0.15 0.25``, of a report of ``make test``. They run with the audits.
"""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Tests of seconds are audits. So are cases of an `each_once` with no value for the first time."""
    of_seconds = set(OF_SECONDS.read_text(encoding="utf-8").splitlines())
    for item in items:
        if item.nodeid in of_seconds:
            item.add_marker("statistics")
    marked = defaultdict(list)
    for item in items:
        apart = item.get_closest_marker("long") or item.get_closest_marker("statistics")
        if item.get_closest_marker("each_once") and not apart:
            marked[item.path, item.originalname].append(item)
    for cases in marked.values():
        meet = cases[0].get_closest_marker("each_once").args
        at = [{name: known(value) for name, value in item.callspec.params.items()} for item in cases]
        quick = few([(*values.values(), *(tuple(values[name] for name in names) for names in meet)) for values in at])
        for place in set(range(len(cases))) - quick:
            cases[place].add_marker("statistics")


@pytest.fixture(scope="session", autouse=True)
def state_home(tmp_path_factory):
    """What is remembered of studies, by this process and its children, in a folder of this run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield
