"""The examples of pages run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[3] / "docs"

PAGES = ("terms.md", "extend/term.md")


@pytest.mark.parametrize("page", PAGES)
def test_examples_run(page):
    blocks = re.findall(r"^```python\n(.*?)^```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert blocks
    for block in blocks:
        exec(compile(block, page, "exec"), {"__name__": __name__})
