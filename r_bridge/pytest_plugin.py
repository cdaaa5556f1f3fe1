"""Pytest plugin: recorded results of R as a fixture, and markers for tests that call R.

A project asks for it by name, ``pytest -p r_bridge.pytest_plugin``, or in its settings::

    [tool.pytest.ini_options]
    addopts = "-p r_bridge.pytest_plugin"

Then a test may say::

    def test_my_smoother(refund_reference):
        record = refund_reference("affr_dti2")  # nested dicts of arrays: meta, input, output
        ...


    @pytest.mark.refund  # skipped, with the reason and the remedy, where R, rpy2 or refund is missing
    def test_live(): ...

Cases are looked for in ``--refund-reference DIR``, the environment variable ``FDADP_REFERENCE`` and the folders of the
ini option ``refund_reference`` (relative to the root of the project); a test whose case is not there is skipped and
names it. Markers: ``mgcv``, ``refund``, ``fda``, ``vgam``, ``lme4``, ``nlme``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

MARKERS = {"mgcv": "mgcv", "refund": "refund", "fda": "fda", "vgam": "VGAM", "lme4": "lme4", "nlme": "nlme"}
"""Marker and R package."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Option and ini setting for the folders of recorded cases."""
    parser.addoption("--refund-reference", metavar="DIR", help="folder with recorded results of R (<case>.rds)")
    parser.addini("refund_reference", "folders with recorded results of R", type="paths", default=[])


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers."""
    for marker, package in MARKERS.items():
        config.addinivalue_line("markers", f"{marker}: calls R's {package}; skipped where it is missing")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests whose R package is missing, with the reason."""
    packages = [package for marker, package in MARKERS.items() if item.get_closest_marker(marker)]
    if packages:
        missing = _status().missing(*packages)
        if missing is not None:
            pytest.skip(f"needs {' and '.join(packages)} through R: {missing}")


@functools.cache
def _status() -> Any:
    from r_bridge._status import status

    return status()


@pytest.fixture(scope="session")
def refund_reference(request: pytest.FixtureRequest) -> Callable[[str], dict[str, Any]]:
    """``refund_reference("affr_dti2")`` is the recorded case; the test is skipped where it is not there."""
    from fdadp.errors import MissingDataError
    from r_bridge.reference import find_case, read_case, reference_dirs

    asked = request.config.getoption("--refund-reference")
    folders = [Path(asked)] if asked else []
    folders += reference_dirs(request.config.getini("refund_reference"))

    def read(name: str) -> dict[str, Any]:
        try:
            path = find_case(name, folders)
        except MissingDataError as exc:
            pytest.skip(f"{exc}; set FDADP_REFERENCE")
        return read_case(path)

    return read
