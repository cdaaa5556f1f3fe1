"""Reports of .ci/run: a run in which nothing was tested has failed."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import scipy.linalg  # noqa: F401  (loads the libraries that are looked for)
from threadpoolctl import threadpool_info

REPORT = Path(__file__).resolve().parents[3] / ".ci" / "report.py"


@pytest.fixture(scope="module")
def report():
    if not REPORT.exists():
        pytest.skip("this is no copy of the repository")
    spec = importlib.util.spec_from_file_location("ci_report", REPORT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("counts", "status"),
    [
        ('tests="0" failures="0" errors="0" skipped="0"', 1),
        ('tests="5" failures="0" errors="0" skipped="5"', 1),
        ('tests="3" failures="2" errors="1" skipped="0"', 1),
        ('tests="5" failures="0" errors="0" skipped="4"', 0),
    ],
)
def test_no_test_passed_is_a_failure(report, tmp_path, counts, status):
    path = tmp_path / "main.xml"
    path.write_text(f"<testsuites><testsuite {counts}/></testsuites>")
    assert report.tests(path) == status


def test_no_report_is_a_failure(report, tmp_path):
    assert report.tests(tmp_path / "main.xml") == 1


def test_what_is_slow_is_left_out_but_for_one_test_of_each_file(report, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    times = {"all_slow": {"a": 3.0, "b[x::y]": 2.0}, "mixed": {"c": 0.1, "d": 0.3}, "quick": {"e": 0.1, "f": 0.2}}
    for name in times:
        (tmp_path / f"{name}.py").touch()
    parts = '<property name="cpu_seconds" value="0.05"/><property name="cpu_seconds" value="{}"/>'  # setup and call
    cases = [
        f'<testcase classname="{k}" name="{n}" time="9"><properties>{parts.format(v - 0.05)}</properties></testcase>'
        for k, of in times.items()
        for n, v in of.items()
    ]
    (tmp_path / "main.xml").write_text(f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>")
    assert report.slow(tmp_path / "main.xml", 0.3, 0.0) == 0
    assert capsys.readouterr().out.split() == ["all_slow.py::a", "mixed.py::d"]
    assert report.slow(tmp_path / "main.xml", 0.3, 0.5) == 0
    assert capsys.readouterr().out.split() == ["all_slow.py::a"]  # d is the quickest case of its function, below .5 s


def test_tests_of_seconds_are_there() -> None:
    """A name that is no test any more would stay in the list for ever."""
    root = next(folder for folder in Path(__file__).resolve().parents if (folder / "setup.cfg").exists())
    listed = (root / "tests" / "python" / "of_seconds.txt").read_text(encoding="utf-8").splitlines()
    assert listed == sorted(set(listed))
    for name in sorted({line.partition("[")[0] for line in listed}):
        file, _, function = name.partition("::")
        assert f"def {function.rpartition('::')[2]}(" in (root / file).read_text(encoding="utf-8"), name


def test_the_kernels_asked_for_must_be_in_use(report):
    """OPENBLAS_CORETYPE is read when the library is loaded: in a process of its own."""
    if not any(library["internal_api"] == "openblas" for library in threadpool_info()):
        pytest.skip("NumPy has no OpenBLAS here")
    architectures = {library.get("architecture") for library in threadpool_info()}
    assert report.kernel("Katmai") == int("Katmai" not in architectures)
    if "Nehalem" in architectures or not {"Haswell", "SkylakeX", "Zen"} & architectures:
        return
    environment = os.environ | {"OPENBLAS_CORETYPE": "Nehalem"}
    for name, status in (("Nehalem", 0), ("own", 0), ("Haswell", 1)):
        run = subprocess.run([sys.executable, REPORT, "kernel", name], env=environment, check=False)
        assert run.returncode == status
    shown = subprocess.check_output([sys.executable, REPORT, "kernels"], env=environment, text=True)
    assert shown.split() == ["Nehalem"]


CONFTEST = REPORT.parents[1] / "conftest.py"
LEAVES_ONE = """
import os, subprocess, sys, time, pytest

@pytest.fixture(autouse=True, scope="session")
def home(tmp_path_factory):
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))

def test_of_little_work():
    start = time.process_time()
    while time.process_time() < start + 0.05:
        assert sum(range(1000))

def test_that_leaves_a_process():
    started = subprocess.Popen([sys.executable, "-c", "import time; print(flush=True); time.sleep(60)"], stdout=-1)
    started.stdout.readline()
    (open(os.environ["PID"], "w")).write(str(started.pid))
"""


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are looked for in /proc")
@pytest.mark.parametrize("processes", ["0", "1"])
def test_a_run_that_computes_too_much_fails_and_what_it_leaves_running_is_named(processes, tmp_path):
    (tmp_path / "conftest.py").write_text(CONFTEST.read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "test_one.py").write_text(LEAVES_ONE, encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # they load packages for a second
    found = {}
    for most in ("1e-9", "9"):
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "xdist",
            "-n",
            processes,
            "-p",
            "no:cacheprovider",
            "--most-cpu",
            most,
        ]
        command += ["--rootdir", str(tmp_path), "-c", os.devnull, str(tmp_path)]
        more = {"PID": str(tmp_path / "pid"), "PYTHONPATH": ""}
        run = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment | more)
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
        found[most] = run.returncode
        assert "2 passed" in run.stdout, run.stdout + run.stderr
        outlived = [line for line in run.stdout.splitlines() if line.startswith("A process outlived its test")]
        assert len(outlived) == 1 and "test_that_leaves_a_process" in outlived[0]
        assert ("more than 1e-09" in run.stdout) == (most == "1e-9")
    assert found == {"1e-9": 1, "9": 0}
