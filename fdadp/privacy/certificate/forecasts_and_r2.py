"""How accurate what was released is: what planners expected, and what models say of themselves by released values."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Protocol

from fdadp.errors import PrivacyError
from fdadp.files.npz_files import sealed


class Expected(Protocol):
    """A forecast, as :func:`fdadp.plan` makes it from public values alone."""

    @property
    def n(self) -> int:
        """Number of persons that it is for."""

    @property
    def epsilon(self) -> float:
        """ε of the fit that it is for."""

    @property
    def delta(self) -> float | None:
        """δ of the fit that it is for."""

    @property
    def mechanism(self) -> str:
        """Name of the mechanism that it is for, as ledgers have it."""

    @property
    def sentence(self) -> str:
        """What is expected."""


def expected_lines(
    forecasts: Sequence[Expected], n: int | None, delta: float | None, fits: Sequence[tuple[str, float]]
) -> list[str]:
    """What was expected of fits before they were made.

    Parameters
    ----------
    forecasts : sequence
    n : int or None
        Number of persons, where it is public.
    delta : float or None
    fits : sequence of (str, float)
        Mechanism and ε of each.

    Raises
    ------
    PrivacyError
        A forecast is of other settings than any fit.
    """
    for f in forecasts:
        there = any(f.mechanism == name and math.isclose(f.epsilon, epsilon, rel_tol=1e-6) for name, epsilon in fits)
        if not there or f.delta != delta or n not in (None, f.n):
            raise PrivacyError(
                f"forecasts must be of fits that are certified ({f.mechanism}), with their n, epsilon and delta, got: "
                f"{f.sentence}"
            )
    return [f"Expected before the fit: {f.sentence}" for f in forecasts]


def model_lines(path: str | os.PathLike[str]) -> list[str]:
    """What a model's file says of itself, from released values."""
    found = sealed(path)
    name, notes, r2 = os.path.basename(path), found.content.get("notes") or (), found.content.get("r2")
    lines = [f"{name}: {note}" for note in notes]
    if isinstance(r2, float) and math.isfinite(r2):
        lines.insert(0, f"{name}: explains {r2:.0%} of the variance, as released")
    return lines
