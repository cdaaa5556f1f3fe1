"""The gallery: every example has a title, a picture, at most a screen of code, and names that are public.

Examples run when the site is built; here they are only read.
"""

from __future__ import annotations

import ast
import importlib
import re
import sys
from pathlib import Path

import pytest

ROOT = next(folder for folder in Path(__file__).resolve().parents if (folder / "setup.cfg").exists())
EXAMPLES = sorted((ROOT / "docs" / "examples").rglob("*.py"))
LINES = 40
TERMS = ("ff", "sff", "ffpc", "concurrent", "s", "te", "re", "C", "c", "lf", "af", "fpcr")
WANTED = (
    *(rf"\b{term}\(" for term in TERMS),
    "limits=",
    "by=",
    "family=",
    "response=",
    "privacy=",
    r"plan\(",
    "PrivateMean",
    "PrivateFPCA",
    r"Study\.new",
    "fdadp.learners",
    "fdadp.federated",
    "PublishedNoise",
    "elnino",
)
"""What the gallery must show somewhere, as patterns of code."""


def code_of(path: Path) -> list[str]:
    """Lines that are code: no blank ones, no comments, no title."""
    text = path.read_text(encoding="utf-8")
    body = text.split('"""', 2)[2]
    return [line for line in body.splitlines() if line.strip() and not line.lstrip().startswith("#")]


@pytest.mark.parametrize("path", EXAMPLES, ids=[path.stem for path in EXAMPLES])
def test_an_example_is_a_screen_with_a_title_and_a_picture(path: Path) -> None:
    assert path.name.startswith("plot_"), "only plot_*.py are run when the site is built"
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    title, under, *_ = (ast.get_docstring(tree, clean=True) or "\n").splitlines()
    assert title and set(under) == {"="} and len(under) >= len(title)
    assert "\n# %%\n" in text
    assert len(code_of(path)) <= LINES
    assert "plt.show()" in code_of(path)[-1]


@pytest.mark.parametrize("path", EXAMPLES, ids=[path.stem for path in EXAMPLES])
def test_an_example_imports_what_is_public(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "fdadp":
            module = importlib.import_module(node.module or "")
            assert not any(part.startswith("_") for part in (node.module or "").split("."))
            public = {*getattr(module, "__all__", ()), *getattr(module, "ROOMS", ())}
            assert {alias.name for alias in node.names} <= public
        if isinstance(node, ast.Attribute):
            assert not node.attr.startswith("_"), f"{node.attr} is private"


def test_the_gallery_shows_every_kind() -> None:
    assert len(EXAMPLES) >= 20
    every = "\n".join(line for path in EXAMPLES for line in code_of(path))
    assert not [what for what in WANTED if not re.search(what, every)]


def test_examples_whose_data_are_not_here_are_not_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "_ext"))
    monkeypatch.delitem(sys.modules, "assemble", raising=False)
    monkeypatch.setenv("FDADP_DATA", str(tmp_path))
    assemble = importlib.import_module("assemble")
    assert not assemble.here(ROOT / "docs" / "examples" / "private" / "plot_intensive_care.py")
    assert assemble.here(ROOT / "docs" / "examples" / "curves" / "plot_weather.py")
    for path in EXAMPLES:
        loaders = set(re.findall(r"\bload_(?:icu|dti2?|lip_emg)\b", "\n".join(code_of(path))))
        assert set(re.findall(r"^# data: (\w+)$", path.read_text(encoding="utf-8"), re.MULTILINE)) == loaders
