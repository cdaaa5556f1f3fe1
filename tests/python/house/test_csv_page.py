"""Pages for files of one's own: "From your CSV to a private result" is short; commands of the shell run as they are.

Their Python runs in `test_readme.py`, their R when the site is built (`docs/_ext/r_pages.R`).
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fdadp.cli.main import app

ROOT = next(folder for folder in Path(__file__).resolve().parents if (folder / "setup.cfg").exists())


def test_the_page_is_short_and_the_readme_too() -> None:
    assert len(page("your-csv").split()) <= 900
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 90


def test_the_front_page_shows_the_lines_of_the_readme() -> None:
    front, readme = ((ROOT / name).read_text(encoding="utf-8") for name in ("docs/_site/index.md", "README.md"))
    lines = re.search(r"```python\n.*?```\n\n```text\n.*?```", readme, re.DOTALL)
    assert lines is not None and lines[0] in front  # so that they run, in test_readme.py


@pytest.mark.parametrize(("name", "sets"), [("your-csv", 6), ("files", 7)])
def test_every_step_has_three_tabs(name: str, sets: int) -> None:
    found = page(name).split("::::{tab-set}")[1:]
    assert len(found) == sets
    for own in found:
        assert re.findall(r":sync: (\w+)", own) == ["python", "r", "shell"]


def page(name: str) -> str:
    return (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "printed", "file"),
    [
        ("your-csv", "epsilon = 1 of its study's epsilon = 2", "certificate.html"),
        ("files", "joined 300 of 300 by id", "private.ledger.json"),
        ("start", "Regression of curves", "private.ledger.json"),
    ],
)
@pytest.mark.usefixtures("four_cohorts")
def test_commands_of_the_shell_run(
    name: str, printed: str, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = page(name)
    exec(re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)[0], {})  # makes the files
    commands = "".join(re.findall(r"^```bash\n(.*?)^```", text, re.DOTALL | re.MULTILINE)).replace("\\\n", " ")
    shown = ""
    for command in (line for line in commands.splitlines() if "fdadp " in line):
        start, *arguments = shlex.split(command)[2:]
        assert start == "fdadp"
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, result.output
        shown += result.output
    assert printed in shown and Path(file).stat().st_size > 5000
