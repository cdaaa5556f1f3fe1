"""The page "From your CSV to a private result" is short, and its commands of the shell run as they stand there.

Its Python runs in `test_readme.py`, its R when the site is built (`docs/_ext/r_pages.R`).
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fdadp.cli.main import app
from fdadp.demo.people_file import write_people

ROOT = next(folder for folder in Path(__file__).resolve().parents if (folder / "setup.cfg").exists())
PAGE = (ROOT / "docs" / "your-csv.md").read_text(encoding="utf-8")


def test_the_page_is_short_and_the_readme_too() -> None:
    assert len(PAGE.split()) <= 900
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 90


def test_the_front_page_shows_the_lines_of_the_readme() -> None:
    front, readme = ((ROOT / name).read_text(encoding="utf-8") for name in ("docs/_site/index.md", "README.md"))
    lines = re.search(r"```python\n.*?```\n\n```text\n.*?```", readme, re.DOTALL)
    assert lines is not None and lines[0] in front  # so that they run, in test_readme.py


def test_every_step_has_three_tabs() -> None:
    sets = PAGE.split("::::{tab-set}")[1:]
    assert len(sets) == 6
    for own in sets:
        assert re.findall(r":sync: (\w+)", own) == ["python", "r", "shell"]


def test_commands_of_the_shell_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_people("people.csv")
    commands = "".join(re.findall(r"^```bash\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)).replace("\\\n", " ")
    printed = ""
    for command in commands.splitlines():
        start, *arguments = shlex.split(command)[2:]
        assert start == "fdadp"
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, result.output
        printed += result.output
    assert "epsilon = 1 of its study's epsilon = 2" in printed and Path("certificate.html").stat().st_size > 5000
