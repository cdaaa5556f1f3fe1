"""Cross references by any public path: ``fdadp.privacy.Privacy`` is the page of ``fdadp.Privacy``, the same object.

A reference to something of ours that is not public is shown as code, without a link; one to what does not exist warns.
"""

from __future__ import annotations

import importlib
from typing import Any

from api_pages import PATHS
from sphinx.util.nodes import make_refnode


def exists(path: str) -> bool:
    """Whether a dotted path is a module of ours, or something in one."""
    parts = path.split(".")
    if parts[0] not in ("fdadp", "r_bridge"):
        return False
    for i in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:i]))
        except ModuleNotFoundError:
            continue
        for part in parts[i:]:
            if not hasattr(found, part) and part not in getattr(found, "__annotations__", ()):
                return False
            found = getattr(found, part, None)
        return True
    return False


def resolve(app: Any, env: Any, node: Any, contnode: Any) -> Any:
    """The page of a name that Sphinx does not know by this path."""
    if node.get("refdomain") != "py":
        return None
    target = node["reftarget"]
    for scope in ("", f"{node.get('py:module')}.", "fdadp."):
        path, _, rest = (scope + target).rpartition(".")
        home = PATHS.get(scope + target) or (f"{PATHS[path]}.{rest}" if path in PATHS else None)
        found = env.domains["py"].objects.get(home)
        if found is not None:
            return make_refnode(app.builder, node["refdoc"], found.docname, found.node_id, contnode, home)
    return contnode if exists(target) else None


def skip(app: Any, what: str, name: str, value: Any, skipped: bool, options: Any) -> bool | None:
    """Leave out what scikit-learn puts into every estimator: it is described there."""
    return True if str(getattr(value, "__module__", "")).startswith("sklearn.") else None


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("autodoc-skip-member", skip)
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
