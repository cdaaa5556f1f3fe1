"""Parameters of private estimators in files: plain JSON, without live objects.

``privacy`` is a dict of the guarantee's settings without the budget, ``bounds`` one of ranges, and a mechanism that is
an object ``{"class": "fdadp.private.mechanisms.DPAFF", ...}`` with its own. Prior and tuning are not kept.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from typing import Any

from fdadp.errors import FileFormatError
from fdadp.files.container import plain
from fdadp.privacy._stored import privacy_from_json, privacy_to_json
from fdadp.private.mechanisms import Mechanism

NOT_KEPT = ("prior", "tuning")
"""Parameters that a file does not hold: objects, of which the first may be large."""


def params_to_json(model: Any, fitted_with: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The constructor's arguments as JSON.

    Parameters
    ----------
    model : estimator with ``privacy``
    fitted_with : mapping, optional
        Those of the fit, whatever was set since.

    Raises
    ------
    InputError
        JSON cannot hold one of them.
    """
    params = model.get_params(deep=False) | dict(fitted_with or {})
    params["privacy"] = privacy_to_json(params["privacy"])
    if isinstance(params.get("mechanism"), Mechanism):
        params["mechanism"] = _mechanism_to_json(params["mechanism"])
    return {name: plain(None if name in NOT_KEPT else value, name) for name, value in params.items()}


def guarantee_to_json(params: Mapping[str, Any]) -> dict[str, Any]:
    """``privacy`` and ``mechanism`` of an estimator's parameters as JSON."""
    mechanism = params["mechanism"]
    how = _mechanism_to_json(mechanism) if isinstance(mechanism, Mechanism) else mechanism
    return {"privacy": privacy_to_json(params["privacy"]), "mechanism": plain(how, "mechanism")}


def guarantee_from_json(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Read what :func:`guarantee_to_json` made."""
    how = stored["mechanism"]
    mechanism = _mechanism_from_json(how) if isinstance(how, Mapping) else how
    return {"privacy": privacy_from_json(stored["privacy"]), "mechanism": mechanism}


def params_from_json(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Read what :func:`params_to_json` made."""
    params = dict(stored) | {"privacy": privacy_from_json(stored["privacy"])}
    if isinstance(params.get("mechanism"), Mapping):
        params["mechanism"] = _mechanism_from_json(params["mechanism"])
    if isinstance(params.get("bounds"), Mapping):
        params["bounds"] = {name: tuple(pair) for name, pair in params["bounds"].items()}
    elif params.get("bounds") is not None:
        params["bounds"] = tuple(params["bounds"])
    return params


def _mechanism_to_json(mechanism: Mechanism) -> dict[str, Any]:
    kept = mechanism.get_params()
    settings = {n: None if n in NOT_KEPT and not isinstance(value, str) else value for n, value in kept.items()}
    return {"class": f"{type(mechanism).__module__}.{type(mechanism).__qualname__}", **settings}


def _mechanism_from_json(stored: Mapping[str, Any]) -> Mechanism:
    """Make a mechanism of a class of this package, or of a module that is imported already."""
    module, _, name = str(stored["class"]).rpartition(".")
    if module.startswith(("fdadp.private.", "fdadp.published.")):
        importlib.import_module(module)
    kind = getattr(sys.modules.get(module), name, None)
    if not (isinstance(kind, type) and issubclass(kind, Mechanism)):
        raise FileFormatError(f"mechanism must be a class that can be found, got {stored['class']!r}: import it first")
    made: Mechanism = kind(**{name: value for name, value in stored.items() if name != "class"})
    return made
