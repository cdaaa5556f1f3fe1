"""Arguments of private estimators from flat settings, as tests vary them."""

from __future__ import annotations

import inspect
from typing import Any

from fdadp import Privacy
from fdadp.private.release.mechanisms import SHORT

GUARANTEE = tuple(inspect.signature(Privacy).parameters)


def summary_settings(**settings: Any) -> dict[str, Any]:
    """Put those of the guarantee into a Privacy; leave the others as they are."""
    guarantee = {name: settings.pop(name) for name in GUARANTEE if name in settings}
    return {"privacy": Privacy(**guarantee), **settings}


def regression_settings(**settings: Any) -> dict[str, Any]:
    """Put those of the guarantee into a Privacy, prior and allow_useless into the mechanism named."""
    own = {name: settings.pop(name) for name in ("prior", "allow_useless") if name in settings}
    if own:
        settings["mechanism"] = SHORT[settings.get("mechanism", "dp-aff")](**own)
    return summary_settings(**settings)
