"""How pages of the repository become pages of the site; that no public name is left out of it. Sphinx is not needed."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from pathlib import Path

import pytest

import fdadp

ROOT = next(folder for folder in Path(__file__).resolve().parents if (folder / "setup.cfg").exists())
sys.path.insert(0, str(ROOT / "docs" / "_ext"))

import api_pages  # noqa: E402
import assemble  # noqa: E402


@pytest.mark.parametrize(
    ("written", "file", "there"),
    [
        ("[a](private.md)", "docs/terms.md", "[a](private.md)"),
        ("[a](../README.md)", "docs/terms.md", "[a](project/readme.md)"),
        ("[a](docs/terms.md#which-term)", "README.md", "[a](../terms.md#which-term)"),
        ("[a](../theory/kernel.md#truncation)", "docs/extend/term.md", "[a](#theory-kernel-truncation)"),
        ("[a](#truncation)", "docs/theory/kernel.md", "[a](#theory-kernel-truncation)"),
        ("[a](../notebooks)", "docs/terms.md", "[a](notebooks/index.md)"),
        ("[a](../notebooks/07-terms.py)", "docs/terms.md", "[a](notebooks/07-terms.ipynb)"),
        ("[a](../fdadp/terms/numbers/smooth.py)", "docs/terms.md", "[a](path:../../../fdadp/terms/numbers/smooth.py)"),
        ("`[a](../README.md)`", "docs/terms.md", "`[a](../README.md)`"),
        ("[a](https://example.org/README.md)", "docs/terms.md", "[a](https://example.org/README.md)"),
    ],
)
def test_links_lead_to_the_same_page_of_the_site(written: str, file: str, there: str) -> None:
    where = assemble.place(file)
    assert where is not None
    assert assemble.converted(written, file, where) == there


def test_an_anchor_becomes_a_label_and_stays() -> None:
    text = assemble.converted('<a id="odds"></a>\n## Odds', "docs/theory/accounting.md", "theory/accounting.md")
    assert text.startswith('<a id="odds"></a>') and "(theory-accounting-odds)=\n\n## Odds" in text


def test_pages_that_no_contents_name_are_found() -> None:
    assert assemble.rest("guide.md", {"terms.md", "brand-new.md", "index.md", "theory/kernel.md"}) == ["brand-new"]


def test_the_guide_has_five_groups_with_a_line_for_each_page() -> None:
    text = assemble.guide()
    assert text.count("## ") == len(assemble.GROUPS) == text.count(":caption:") == 5
    named = re.findall(r"^\* \[\]\(\./([\w-]+)\.md\): .{10,}$", text, re.MULTILINE)
    assert named[0] == "your-csv" and len(named) == len(set(named)) > 30
    assert all((assemble.DOCS / f"{name}.md").is_file() for name in named)


def test_every_public_package_has_its_pages() -> None:
    without_names = {"functional"}  # a room that exports nothing itself
    assert {f"fdadp.{room}" for room in fdadp.ROOMS if room not in without_names} <= api_pages.MODULES.keys()
    for path in ("fdadp", "fdadp.privacy", "r_bridge"):
        module = importlib.import_module(path)
        assert {f"{path}.{name}" for name in api_pages.names_of(module)} <= api_pages.PATHS.keys()


def test_examples_that_pages_borrow_are_there() -> None:
    for name, source in api_pages.EXAMPLES_OF.items():
        assert name in api_pages.PATHS, name
        module, _, function = source.rpartition(".")
        assert ">>>" in (inspect.getdoc(getattr(importlib.import_module(module), function)) or ""), source
