"""From ``fit`` to where its answer is made there is one way, and it leads down: no room above is entered again."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
from test_architecture import FLOOR, unit

from fdadp import AdditiveFunctionOnFunction, Privacy, PrivateMean, simulate_affr
from fdadp.learners import DPGaussianNB
from fdadp.privacy.kernel._kernel import Kernel
from fdadp.solve.smoothing.penalized_least_squares import PenalizedLeastSquares

DATA = simulate_affr(scenario=1, n=60, seed=0, n_points=21)
BOUNDS = {"X": (-4.5, 4.5), "Y": (-8.0, 8.0)}
PRIVACY = Privacy(50.0, 1e-6, n=60, random_state=0)
MOST_ROOMS = 8


def ordinary() -> None:
    AdditiveFunctionOnFunction(n_components=2).fit(DATA.X, DATA.Y)


def private() -> None:
    AdditiveFunctionOnFunction(privacy=PRIVACY, bounds=BOUNDS).fit(DATA.X, DATA.Y)


def learner() -> None:
    X = DATA.X.data_matrix[:, :3, 0]
    DPGaussianNB(classes=[0, 1], bounds=(-4.5, 4.5), epsilon=1.0, n=60, random_state=0).fit(
        X, (X[:, 0] > 0).astype(int)
    )


def summary() -> None:
    PrivateMean(privacy=PRIVACY, bounds=(-8.0, 8.0)).fit(DATA.Y)


@pytest.mark.parametrize(
    ("fit", "where", "name"),
    [
        (ordinary, PenalizedLeastSquares, "__init__"),
        (private, Kernel, "release"),
        (learner, Kernel, "release"),
        (summary, Kernel, "release"),
    ],
)
def test_the_way_down(fit: Callable[[], None], where: type, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ways: set[tuple[str, ...]] = set()
    original = getattr(where, name)

    def noted(*args: Any, **kwargs: Any) -> Any:
        ways.add(tuple(modules_on_stack()))
        return original(*args, **kwargs)

    monkeypatch.setattr(where, name, noted)
    fit()
    assert ways
    for way in ways:
        rooms = [unit(module) for module in way]
        floors = [FLOOR[room] for room in rooms if room]
        assert floors == sorted(floors, reverse=True), f"climbs: {' > '.join(way)}"
        assert len(set(rooms)) <= MOST_ROOMS


def modules_on_stack() -> list[str]:
    """Modules of the package whose functions are running, from the outermost; each once where it calls itself."""
    found: list[str] = []
    frame = sys._getframe(2)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.split(".")[0] == "fdadp" and (not found or found[-1] != module):
            found.append(module)
        frame = frame.f_back  # type: ignore[assignment]
    return found[::-1]
