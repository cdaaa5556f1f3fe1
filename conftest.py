"""Settings of all tests and doctests; at the end of a run: CPU time by file, and processes that outlived their test."""

from __future__ import annotations

import gc
import os
import statistics
import time
from collections import Counter
from collections.abc import Generator, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytest_plugins = ["r_bridge.pytest_plugin"]

# Doctests of modules that need an extra are not collected where it is not installed.
collect_ignore = [
    path
    for package, path in {
        "flwr": "fdadp/federated/flower/apps.py",
        "uvicorn": "fdadp/federated/service",
        "marginaleffects": "fdadp/inference/marginaleffects_model.py",
    }.items()
    if find_spec(package) is None
]

SHOWN = 8  # files
LOOP = 0.0032
"""CPU seconds of `loop` on the machine whose minutes --most-cpu counts."""
BETWEEN_LOOPS = 5.0
"""CPU seconds of tests after which a process measures the loop again."""


def loop() -> float:
    """CPU seconds of a fixed piece of work, of Python and of small products as tests have them."""
    import numpy as np

    matrix = np.full((60, 60), 0.01)
    start = time.process_time()
    total = 0
    for i in range(40_000):
        total += i % 7
    for _ in range(100):
        np.linalg.eigvalsh(matrix[:10, :10])
        matrix @ matrix
    return time.process_time() - start


def pytest_addoption(parser: pytest.Parser) -> None:
    help_text = "fail a run that takes more CPU: minutes of a machine on which conftest.py's loop takes LOOP seconds"
    parser.addoption("--most-cpu", type=float, metavar="MINUTES", help=help_text)


def left_running(home: str | None) -> Iterator[tuple[str, float]]:
    """Processes that tests of a run started and that still run: the test, and CPU seconds (Linux only).

    pytest writes the name of the test that runs into the environment, which children inherit; `home`, its
    XDG_STATE_HOME, is of one run. Python's trackers of what processes share end with the process that started them.
    """
    mine = f"XDG_STATE_HOME={home}"
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            known = (entry / "environ").read_bytes().decode(errors="replace").split("\0")
            tracker = b"resource_tracker import main" in (entry / "cmdline").read_bytes()
            times = (entry / "stat").read_text().rpartition(")")[2].split()[11:13]
        except OSError:  # it ended, or is somebody else's
            continue
        test = next((one.partition("=")[2] for one in known if one.startswith("PYTEST_CURRENT_TEST=")), None)
        if test is not None and mine in known and not tracker and int(entry.name) != os.getpid():
            yield test, sum(map(int, times)) / os.sysconf("SC_CLK_TCK")


@pytest.fixture(autouse=True)
def few_cohorts_in_examples(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forecasts in docstrings are of 4 cohorts, 12 to 64 else."""
    if isinstance(request.node, pytest.DoctestItem) and request.node.path.name.startswith("forecast_of_"):
        from fdadp.planner import forecast_of_mixed_models, forecast_of_multilevel_fpca, forecast_of_survival

        for of_several in (forecast_of_mixed_models, forecast_of_survival):
            monkeypatch.setattr(of_several, "COHORTS", of_several.Cohorts(4, 4, 1.0))
        monkeypatch.setattr(forecast_of_multilevel_fpca, "COHORTS", 4)


class CPUTime:
    """CPU seconds per file of tests, of this process and the processes it waited for; workers' reports carry theirs."""

    def __init__(self, config: pytest.Config) -> None:
        self.start, self.last, self.files = time.monotonic(), self.now(), Counter[str]()
        self.config, self.most = config, config.getoption("--most-cpu")
        self.loops: list[float] = []
        self.since_loop = BETWEEN_LOOPS
        self.home: str | None = None  # of the tests; a fixture takes it back at the end
        self.left: list[tuple[str, float]] = []

    @staticmethod
    def now() -> float:
        return sum(os.times()[:4])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report: Any = yield
        self.home = os.environ.get("XDG_STATE_HOME", self.home)
        now = self.now()
        report.cpu_seconds = now - self.last
        item.user_properties.append(("cpu_seconds", round(report.cpu_seconds, 3)))  # for --junitxml
        self.since_loop += report.cpu_seconds
        if self.most is not None and self.since_loop > BETWEEN_LOOPS:
            report.cpu_loop, self.since_loop, now = loop(), 0.0, self.now()
        self.last = now
        return report

    def pytest_runtest_logreport(self, report: Any) -> None:
        # Of a test whose worker died there is a report without.
        self.files[report.nodeid.split("::")[0]] += getattr(report, "cpu_seconds", 0.0)
        if hasattr(report, "cpu_loop"):
            self.loops.append(report.cpu_loop)

    def pytest_runtest_logstart(self) -> None:
        if not self.files:  # imports and collection are nobody's
            self.last = self.now()

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self.left += getattr(node, "workeroutput", {}).get("left_running", [])

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        left = list(left_running(self.home)) if self.home else []
        if hasattr(self.config, "workeroutput"):
            self.config.workeroutput["left_running"] = left
            return
        self.left += left
        if self.too_much() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def minutes(self) -> float:
        """CPU minutes, as the machine of LOOP would take."""
        return self.files.total() / 60 * LOOP / statistics.median(self.loops or [LOOP])

    def too_much(self) -> bool:
        return self.most is not None and self.minutes() > self.most

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        write = terminalreporter.write_line
        for test, seconds in self.left:
            write(f"A process outlived its test, {seconds:.1f} s of CPU: {test}")
        if self.too_much():
            what = f"{self.minutes():.2f} minutes of CPU on the machine of LOOP, more than {self.most}"
            write(f"FAILED: {what} (conftest.py; where they went is below)", red=True)
        if self.files.total() < 60 and not self.too_much():
            return
        slowest = [f"{seconds:6.0f} s  {name}" for name, seconds in self.files.most_common(SHOWN)]
        terminalreporter.section("CPU time by file")
        write("\n".join(slowest))
        total, wall = self.files.total() / 60, (time.monotonic() - self.start) / 60
        of_loop = f"; {self.minutes():.1f} on the machine of LOOP" if self.loops else ""
        write(f"{total:.1f} minutes of CPU in {wall:.1f} minutes{of_loop}")


def pytest_collection_finish() -> None:
    """Let the collector of garbage run seldom: tests and modules all stay, to look at them was a tenth of the CPU."""
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(CPUTime(config), "cpu-time")
