"""The Python in README.md and on the pages of docs/ runs as it stands there, block after block, each page by itself."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest

from fdadp.errors import FdadpWarning

ROOT = next(folder for folder in Path(__file__).resolve().parents if (folder / "setup.cfg").exists())
PAGES = {
    "README.md": 1,
    "docs/_site/index.md": 1,
    "docs/choosing.md": 1,
    "docs/cluster.md": 1,
    "docs/containers.md": 6,
    "docs/deploy.md": 2,
    "docs/from-diffprivlib.md": 1,
    "docs/from-lme4.md": 1,
    "docs/from-mgcv.md": 1,
    "docs/from-scikit-fda.md": 1,
    "docs/after-the-fit.md": 2,
    "docs/files.md": 6,
    "docs/how-many.md": 3,
    "docs/ledger.md": 1,
    "docs/start.md": 4,
    "docs/which-model.md": 1,
    "docs/your-csv.md": 6,
    "docs/forecasts.md": 1,
    "docs/private.md": 4,
    "docs/repeated.md": 4,
    "docs/survival.md": 2,
    "docs/study.md": 1,
    "docs/table1.md": 2,
    "docs/choice.md": 1,
    "docs/learners.md": 4,
    "docs/missing.md": 1,
    "docs/owners.md": 2,
    "docs/r.md": 1,
    "docs/terms.md": 6,
    "docs/extend/a-fit.md": 1,
    "docs/extend/term.md": 2,
    "docs/extend/mechanism.md": 1,
    "docs/extend/learner.md": 1,
}
"""Pages with code, and how many blocks each has at least."""


BLOCK = re.compile(r"^```python\n(.*?)^```(?:\n\n^```text\n(.*?)^```)?", re.DOTALL | re.MULTILINE)
"""Code, and the text that follows it at once: what it printed, or the last lines of that."""


def python_blocks(page: Path) -> list[tuple[str, str]]:
    """Code, and what the page says that it prints ("" where it says nothing)."""
    return BLOCK.findall(page.read_text(encoding="utf-8"))


SIMULATED = {"docs/how-many.md"}
"""Pages whose code simulates hundreds of cohorts: in `make audits`."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.statistics] * (name in SIMULATED)) for name in PAGES]
)
def test_python_blocks_run(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    writes = name in ("docs/files.md", "docs/missing.md", "docs/repeated.md", "docs/start.md", "docs/your-csv.md")
    monkeypatch.chdir(tmp_path if writes else ROOT)
    blocks = python_blocks(ROOT / name)
    assert len(blocks) >= PAGES[name]
    names: dict[str, object] = {}
    printed = ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FdadpWarning)
        for block, shown in blocks:
            exec(compile(block, name, "exec"), names)
            output = capsys.readouterr().out
            assert output.rstrip().endswith(shown.rstrip()), name
            printed += output
    assert printed
    if name == "docs/private.md":
        assert "published: NOT differentially private end to end" in printed


def test_pages_that_are_new_show_what_is_printed() -> None:
    shown = {name for name in PAGES if any(text for _, text in python_blocks(ROOT / name))}
    assert len(shown) >= 10


def test_no_page_with_code_of_r_is_left_out() -> None:
    """tests/testthat/test-docs.R runs them: before, all but one page were never run, and one failed."""
    run = set(re.findall(r'run_page\("([\w.-]+)"', (ROOT / "tests/testthat/test-docs.R").read_text(encoding="utf-8")))
    pages = (ROOT / "docs").glob("*.md")
    assert {page.name for page in pages if "\n```r\n" in page.read_text(encoding="utf-8")} == run


def test_no_page_with_code_is_left_out() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    pages = [page for page in pages if "_build" not in page.parts]
    assert {page.relative_to(ROOT).as_posix() for page in pages if python_blocks(page)} == set(PAGES)
