"""Theorems and lemmas of a page of theory have numbers of their own."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

PAGES = sorted((Path(__file__).parents[3] / "docs" / "theory").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_numbers_are_given_once(page: Path) -> None:
    named = re.findall(r"\*\*((?:Theorem|Lemma) \d+)", page.read_text(encoding="utf-8"))
    assert [name for name, times in Counter(named).items() if times > 1] == []
