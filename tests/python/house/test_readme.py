"""The Python in README.md and on the pages of docs/ runs as it stands there, block after block, each page by itself."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest

from fdadp.errors import FdadpWarning

ROOT = next(folder for folder in Path(__file__).resolve().parents if (folder / "setup.cfg").exists())
PAGES = {
    "README.md": 2,
    "docs/forecasts.md": 1,
    "docs/private.md": 4,
    "docs/study.md": 1,
    "docs/choice.md": 1,
    "docs/learners.md": 1,
    "docs/owners.md": 2,
    "docs/r.md": 1,
    "docs/terms.md": 2,
    "docs/extend/term.md": 2,
    "docs/extend/mechanism.md": 1,
    "docs/extend/learner.md": 1,
}
"""Pages with code, and how many blocks each has at least."""


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("name", PAGES)
def test_python_blocks_run(name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    blocks = python_blocks(ROOT / name)
    assert len(blocks) >= PAGES[name]
    names: dict[str, object] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FdadpWarning)
        for block in blocks:
            exec(compile(block, name, "exec"), names)
    printed = capsys.readouterr().out
    assert printed
    if name == "docs/private.md":
        assert "published: NOT differentially private end to end" in printed


def test_no_page_with_code_is_left_out() -> None:
    pages = [ROOT / "README.md", *(page for page in (ROOT / "docs").rglob("*.md") if "_build" not in page.parts)]
    assert {page.relative_to(ROOT).as_posix() for page in pages if python_blocks(page)} == set(PAGES)
