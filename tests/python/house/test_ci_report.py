"""Reports of .ci/run: a run in which nothing was tested has failed."""

from __future__ import annotations

import importlib.util
import os
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
