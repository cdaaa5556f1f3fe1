"""Private settings in files: what a fit was declared with, without live objects."""

from __future__ import annotations

from typing import Any

from fdadp.privacy.settings import Privacy


def privacy_to_json(privacy: Privacy | None) -> dict[str, Any] | None:
    """Settings without the budget, a live object of one session, and without the place of a study."""
    if privacy is None:
        return None
    return privacy.get_params() | {"budget": None, "study": None}


def privacy_from_json(stored: dict[str, Any] | None) -> Privacy | None:
    """Read what :func:`privacy_to_json` made."""
    return None if stored is None else Privacy(**stored)
