"""Settings of all tests and doctests; at the end of a run: the CPU time it took, and in which files."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Generator
from importlib.util import find_spec
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


class CPUTime:
    """CPU seconds per file of tests, of this process and the processes it waited for; workers' reports carry theirs."""

    def __init__(self) -> None:
        self.start, self.last, self.files = time.monotonic(), self.now(), Counter[str]()

    @staticmethod
    def now() -> float:
        return sum(os.times()[:4])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report: Any = yield
        now = self.now()
        report.cpu_seconds, self.last = now - self.last, now
        return report

    def pytest_runtest_logreport(self, report: Any) -> None:
        # Of a test whose worker died there is a report without.
        self.files[report.nodeid.split("::")[0]] += getattr(report, "cpu_seconds", 0.0)

    def pytest_runtest_logstart(self) -> None:
        if not self.files:  # imports and collection are nobody's
            self.last = self.now()

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.files.total() < 60:
            return
        slowest = [f"{seconds:6.0f} s  {name}" for name, seconds in self.files.most_common(SHOWN)]
        terminalreporter.section("CPU time by file")
        terminalreporter.write_line("\n".join(slowest))
        total, wall = self.files.total() / 60, (time.monotonic() - self.start) / 60
        terminalreporter.write_line(f"{total:.1f} minutes of CPU in {wall:.1f} minutes")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(CPUTime(), "cpu-time")
