"""What the pages load lies beside them: MathJax, of its wheel only the parts that formulas in TeX need (2 of 24 MB)."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from typing import Any

PARTS = ("tex-chtml.js", "output/chtml/fonts/woff-v2", "input/tex/extensions")


def copy_mathjax(app: Any, exception: Exception | None) -> None:
    """Copy MathJax beside the pages."""
    if exception is not None or app.builder.format != "html":
        return
    found = importlib.util.find_spec("sphinx-mathjax-offline")
    assert found is not None and found.origin is not None, "pip install sphinx-mathjax-offline"
    wheel = Path(found.origin).parent / "static" / "mathjax"
    target = Path(app.outdir) / "_static" / "mathjax"
    for part in PARTS:
        (target / part).parent.mkdir(parents=True, exist_ok=True)
        if (wheel / part).is_dir():
            shutil.copytree(wheel / part, target / part, dirs_exist_ok=True)
        else:
            shutil.copy(wheel / part, target / part)


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.config.mathjax_path = "mathjax/tex-chtml.js"
    app.connect("build-finished", copy_mathjax)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
