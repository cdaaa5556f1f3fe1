"""What `docs/_ext/plain_english.py` counts as a sentence, and what it finds wrong with one."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import numpy as np
import pytest

from fdadp.privacy import Budget, Cohort

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


NOTEBOOK = """# ---
# jupyter: not; a; sentence
# ---

# %% [markdown]
# # A heading
#
# Text of a cell that goes
# on here.

# %%
# A comment of code; no; text
x = 1

# %% [markdown] tags=["load_icu"]
# * An item.
#
#     python -m fdadp
"""


def test_sentences_of_a_notebook_are_those_of_its_cells_in_markdown() -> None:
    assert english.of_notebook(NOTEBOOK) == ["Text of a cell that goes on here.", "An item."]


ROXYGEN = """#' The title of a page
#'
#' \\code{x} is \\eqn{\\int F\\{X(s)\\}\\,ds}: see [the methods][fit-methods] and [fit()].
#' | a | table |
#'
#' @section Terms:
#' Several of them.
#' @param x,y Two things:
#'   * `"a"`: the first;
#'   * `"b"`: the second.
#' @inheritParams other
#' @return A list.
#' @references Somebody (2000); a title; a journal.
#' @examples
#' # A comment; of; code
#' fit(1)
#' @export
fit <- function(x) x # a comment; of; code
#' Another page
"""


def test_sentences_of_r_are_those_of_its_pages_and_each_item_of_a_list_is_one() -> None:
    assert english.of_r(ROXYGEN) == [
        "The title of a page",
        "LITERAL is FORMULA: see LITERAL and LITERAL.",
        "Several of them.",
        "Two things:",
        "LITERAL: the first;",
        "LITERAL: the second.",
        "A list.",
        "Another page",
    ]


def test_sentences_of_help_leave_defaults_examples_and_json_out() -> None:
    assert english.of_help("Of a formula: this one. (default: all (of it); none)") == ["Of a formula: this one."]
    assert english.of_help('Facts: {"a": {"b": 1}}.\n\n\b\nfdadp fit; a; b\n\nMore of it.') == [
        "Facts: LITERAL.",
        "More of it.",
    ]
    helps = {own.name: own.sentences for own in english.helps()}
    assert {"Functional data regression with differential privacy.", "Show the version and end."} <= {
        *helps["help of fdadp"]
    }
    assert {"help of fdadp fit", "help of fdadp study new"} <= set(helps)


def test_sentences_of_a_certificate_are_its_texts_cut_at_the_marks_of_html() -> None:
    code = (
        '"""A docstring; of; a module."""\nx = {"a key; no; text": f"<p>It is {y} <b>here</b>.</p><p>And there.</p>"}\n'
        'raise ValueError("an error; of; it")'
    )
    assert english.of_certificate(code) == ["It is LITERAL here.", "And there."]


@pytest.mark.parametrize("kind", english.FILES)
def test_each_kind_of_file_is_there_to_be_read(kind: str) -> None:
    assert sum(len(own.sentences) for own in english.of_files(kind, *english.FILES[kind])) > 100


@pytest.mark.parametrize("adjacency", ["zero-out", "add-remove", "replace"])
def test_what_a_certificate_means_is_plain_english_with_its_values_too(adjacency: str) -> None:
    cohort = Cohort(
        np.zeros((400, 1)),
        groups=np.arange(400),
        budget=Budget(1, 1e-6),
        n=None if adjacency == "add-remove" else 400,
        adjacency=adjacency,
    )
    cohort.sum(lambda row: row[0], clip=1.0, share=1.0, name="sum")
    made = cohort.ledger.certificate()
    said = english.Measured("certificate", english.of_texts([made.promise, *made.meaning, *made.not_covered]))
    assert len(said.sentences) >= 10 and said.faults() == []


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
