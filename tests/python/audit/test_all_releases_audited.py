"""Each place of the package that asks for a release is reached by a fit that an audit replays: by running them."""

from __future__ import annotations

import ast
import contextlib
import sys
from pathlib import Path

import pytest
from learner_registry import LEARNERS, toy
from term_audit_tools import term_pairs

from fdadp.audit.private_regression_audits import replay_pairs
from fdadp.errors import PrivacyError
from fdadp.privacy import SeededNoise, TapeNoise
from fdadp.privacy.kernel._kernel import Kernel

ROOT = Path(__file__).resolve().parents[3]
ROOMS = ("learners", "rounds", "private")
ASKING = {"size", "sum", "mean", "sum_outer", "second_moment", "shares", "histogram"}
"""Methods of ``Releases``, which take the share from their plan."""
ELSEWHERE = {
    "private/levels/": "repeated/test_private_mixed_audit.py",
    "private/release/dp_aff_of_families.py": "private/test_families_replayed.py",
    "private/rows/anchored_forecasts.py": "regression/test_private_forecasts.py",
    "private/rows/errors_by_record.py": "regression/test_private_forecasts.py",
    "private/release/residual_sizes.py:_closer": "regression/test_private_forecasts.py",
}
"""Of models with audits of their own, by file, or by function."""


def places():
    """First and last line of each call that asks for a release, by file and function."""
    for room in ROOMS:
        for path in sorted((ROOT / "fdadp" / room).rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
                for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
                    of_plan = isinstance(call.func, ast.Attribute) and call.func.attr in ASKING
                    of_plan = of_plan and isinstance(call.func.value, ast.Name) and call.func.value.id == "releases"
                    if of_plan or "share" in {keyword.arg for keyword in call.keywords}:
                        name = path.relative_to(ROOT / "fdadp").as_posix()
                        yield name, function.name, range(call.lineno, (call.end_lineno or call.lineno) + 1)


@pytest.fixture
def reached(monkeypatch):
    """Files and lines that ask for releases which are made meanwhile."""
    found, right = set(), Kernel.charge

    def charge(self, *args, **how):
        frame = sys._getframe(1)
        while frame is not None:
            found.add((frame.f_code.co_filename, frame.f_lineno))
            frame = frame.f_back
        return right(self, *args, **how)

    monkeypatch.setattr(Kernel, "charge", charge)
    return found


@pytest.mark.statistics
@pytest.mark.filterwarnings("ignore::fdadp.errors.FdadpWarning")
def test_every_release_is_replayed(reached):
    for learner in LEARNERS:  # test_learners_common.py
        for pure, adjacency in learner.modes:
            learner.make(pure=pure, adjacency=adjacency).fit(*toy(learner.kind))
    for number, pair in enumerate(
        (*replay_pairs(14, seed=1), *replay_pairs(2, mechanism="moments"), *term_pairs(24, seed=1))
    ):
        with contextlib.suppress(PrivacyError):  # of a request that is hopeless
            pair.run(pair.first, TapeNoise(SeededNoise(number)))
    missing = set()
    for name, function, lines in places():
        at = str(ROOT / "fdadp" / name)
        if not any((at, line) in reached for line in lines):
            missing.add(f"{name}:{function}")
    unaudited = {place for place in missing if not place.startswith(tuple(ELSEWHERE))}
    assert unaudited == set()
    for place, audit in ELSEWHERE.items():
        assert "replay_audit(" in (ROOT / "tests" / "python" / audit).read_text(encoding="utf-8")
        assert any(one.startswith(place) for one in missing), f"{place} is reached here, too"
