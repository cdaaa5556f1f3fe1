"""Private settings in files: what a fit was declared with, without live objects."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from fdadp.privacy.settings import Bounds, Privacy

__all__ = ["settings_from_json", "settings_to_json"]


def settings_to_json(privacy: Privacy) -> dict[str, Any]:
    """Settings without budget, a live object of one session, and prior, whose pilot curves may be large."""
    return asdict(replace(privacy, budget=None, prior=None))


def settings_from_json(stored: dict[str, Any]) -> Privacy:
    """Read what :func:`settings_to_json` made."""
    bounds = stored["bounds"]
    if bounds is not None:
        bounds = Bounds(**{name: pair and tuple(pair) for name, pair in bounds.items()})
    return Privacy(**{**stored, "bounds": bounds})
