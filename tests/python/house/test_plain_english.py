"""What `docs/_ext/plain_english.py` counts as a sentence, and what it finds wrong with one."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

ROOT = next(folder for folder in Path(__file__).resolve().parents if (folder / "setup.cfg").exists())
sys.path.insert(0, str(ROOT / "docs" / "_ext"))

import plain_english as english  # noqa: E402

PAGE = """# A heading; it is no sentence; not at all

The first sentence has a [link; with; marks](a.md#b). The second has `code; x: y; z` in it, e.g. here.

| a table; of; cells |
|---|
| more: of: it |

```python
x = "no. Sentence; here; at all"
```

* An item starts. It goes on
  here.
* Another item is last.

    indented code; of; a shell
"""


def test_sentences_of_a_page_are_those_that_people_read() -> None:
    assert english.of_page(PAGE) == [
        "The first sentence has a link; with; marks.",
        "The second has LITERAL in it, e.g. here.",
        "An item starts.",
        "It goes on here.",
        "Another item is last.",
    ]


def test_sentences_of_a_docstring_leave_types_and_examples_out() -> None:
    text = (
        "Fit it.\n\nParameters\n----------\nx : int; or str; or None\n    How many there are.\n\n"
        "Examples\n--------\n>>> a; b; c\n"
    )
    assert english.of_docstring(text) == ["Fit it.", "How many there are."]


def test_texts_of_errors_are_found_with_values_as_one_word() -> None:
    code = 'raise InputError(f"x must be {low}" + " or less")\nwarn("Look here.", Kind)\nprint("not this")'
    assert list(english.texts_of_errors(ast.parse(code))) == ["x must be LITERAL or less", "Look here."]


@pytest.mark.parametrize(
    "sentence",
    [
        " ".join(["word"] * 36) + ".",
        "One; two; three.",
        "One: two: three.",
        "We say so honestly.",
        "It has standard errors that know the noise.",
        "Fits believe this.",
    ],
)
def test_each_rule_notices(sentence: str) -> None:
    assert not english.Measured("a", [sentence, *["Short one."] * 9]).passes


def test_a_long_mean_is_noticed_and_a_good_text_passes() -> None:
    long = [" ".join(["word"] * 21) + "."]
    assert not english.Measured("a", long * english.FEW).passes
    assert english.Measured("a", long).passes  # one sentence has no mean
    assert english.Measured("a", ["A model has two parts: one is linear; one is not, at 12:30 as 1:2."]).passes
