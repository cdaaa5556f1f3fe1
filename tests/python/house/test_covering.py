"""What `make test` has of a product of settings: every value, and `make audits` the rest."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections import Counter

import pytest
from covering import few


def test_each_value_is_there_and_no_more_cases_than_needed():
    cases = list(itertools.product("abc", [1, 2]))
    assert few(cases) == {0, 3, 4}
    assert few([(a, i, (a, i)) for a, i in cases]) == set(range(6))
    assert few([]) == set()


@pytest.mark.each_once
@pytest.mark.parametrize(("x", "y"), [("a", 1), ("b", 1)])
@pytest.mark.parametrize("z", [0, 1, 2])
def test_some_settings(x, y, z):
    assert x in "ab" and y == 1 and z in (0, 1, 2)


@pytest.mark.each_once(("x", "z"))
@pytest.mark.parametrize("x", "ab")
@pytest.mark.parametrize("y", [0, 1])
@pytest.mark.parametrize("z", [0, 1])
def test_pairs_of_settings(x, y, z):
    assert x in "ab" and {y, z} <= {0, 1}


COLLECTIONS = """
import sys
import pytest

class Names:
    def pytest_collection_finish(self, session):
        print("\\nkept:", *[item.originalname for item in session.items if "settings[" in item.name])

for marked in ("not statistics", "statistics", "statistics or not statistics"):
    options = ["-q", "-s", "--collect-only", "-p", "no:cacheprovider", "-m", marked]
    assert pytest.main([*options, sys.argv[1]], plugins=[Names()]) == 0
"""


def test_runs_share_the_product(pytestconfig):
    """No case is lost, and none runs twice."""
    command, environment = (
        [sys.executable, "-c", COLLECTIONS, __file__],
        os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )
    run = subprocess.run(
        command, capture_output=True, text=True, timeout=300, cwd=pytestconfig.rootpath, env=environment
    )
    assert run.returncode == 0, run.stdout + run.stderr
    kept = [line.split()[1:] for line in run.stdout.splitlines() if line.startswith("kept:")]
    quick, audits, both = map(Counter, kept)
    assert quick == {"test_some_settings": 3, "test_pairs_of_settings": 4}
    assert quick + audits == both == {"test_some_settings": 6, "test_pairs_of_settings": 8}
