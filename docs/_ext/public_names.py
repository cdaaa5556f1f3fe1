"""Cross references by any public path: ``fdadp.privacy.Privacy`` is the page of ``fdadp.Privacy``, the same object.

A reference to something of ours that is not public is shown as code, without a link; one to what does not exist warns.
"""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

from api_pages import EXAMPLES_OF, PATHS
from assemble import DOCS, DOI, anchors, label
from sphinx.util.nodes import make_refnode

from fdadp import terms


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


def mend_docstring(app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Show the example of a function with what it gives back; make links of cited pages, as ``docs/words.md``."""

    def link(match: re.Match[str]) -> str:
        page, anchor = match[1], match[2]
        if anchor and anchor in anchors(DOCS / f"{page}.md"):
            return f":ref:`{match[0]} <{label(f'{page}.md', anchor)}>`"
        return f":doc:`{match[0]} </{page}>`" if (DOCS / f"{page}.md").is_file() else match[0]

    shown = EXAMPLES_OF.get(name)
    if shown is not None and not any(">>>" in line for line in lines):
        found: Any = inspect.getdoc(
            getattr(importlib.import_module(shown.rpartition(".")[0]), shown.rpartition(".")[2])
        )
        examples = found.partition("Examples\n--------\n")[2].splitlines()
        heading = (
            [".. rubric:: Examples", ""] if what == "data" else ["Examples", "--------"]
        )  # numpydoc leaves data alone
        lines += ["", *heading, f"Of :obj:`{shown}`:", "", *examples]
    lines[:] = [DOI.sub(r"`doi:\1 <https://doi.org/\1>`__", line) for line in lines]
    lines[:] = [re.sub(r"(?<![`\w/])docs/([\w/-]+)\.md(?:#([\w-]+))?(?!`)", link, line) for line in lines]


def example_first(app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Put the example of a class before its parameters, of which there may be thirty."""
    if what == "class" and ":Parameters:" in lines and ".. rubric:: Examples" in lines:
        example = lines.index(".. rubric:: Examples")
        rest = (k for k in range(example + 1, len(lines)) if re.match(r"\.\. rubric::|:\w", lines[k]))
        end, parameters = next(rest, len(lines)), lines.index(":Parameters:")
        moved = lines[example:end]
        del lines[example:end]
        lines[parameters:parameters] = [*moved, ""]


def mend_sources(app: Any, exception: Exception | None) -> None:
    """Ways back from highlighted sources: viewcode takes the first home of a file's names for that of all."""

    def right(match: re.Match[str]) -> str:
        page, name = match[1], match[1].rpartition(".")[2]
        rest = match[2].rpartition(f".{name}")[2] if not match[2].startswith(page) else match[2][len(page) :]
        return f'generated/{page}.html#{page}{rest}"'

    for path in (Path(app.outdir) / "_modules").rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        path.write_text(re.sub(r'generated/([\w.]+)\.html#([\w.]+)"', right, text), encoding="utf-8")


def skip(app: Any, what: str, name: str, value: Any, skipped: bool, options: Any) -> bool | None:
    """Leave out what scikit-learn puts into every estimator: it is described there."""
    return True if str(getattr(value, "__module__", "")).startswith("sklearn.") else None


def name_terms() -> None:
    """Give the classes of terms their public names, or their pages would only say ``alias of FunctionalLinear``."""
    for name in terms.KINDS:
        kind = getattr(terms, name)
        if inspect.isclass(kind):
            kind.__name__ = name


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    name_terms()
    app.connect("autodoc-skip-member", skip)
    app.connect("autodoc-process-docstring", mend_docstring, priority=400)  # before numpydoc
    app.connect("autodoc-process-docstring", example_first, priority=600)  # after numpydoc
    app.connect("build-finished", mend_sources)
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
