"""Where in a formula an error is."""

from __future__ import annotations

import re

_COLOURS = re.compile("\x1b\\[[0-9;]*m")


def pointing_at(formula: str, part: str) -> str:
    """Two lines to end an error's text: the formula, and marks below the part; nothing where it is not found.

    Blanks in `part` need not be those of the formula, which parsers set anew.
    """
    pattern = r"\s*".join(re.escape(c) for c in re.sub(r"[\s`]", "", part).replace('"', "'"))
    edge = r"(?<!\w)" if part[:1].isidentifier() else ""
    found = re.search(edge + pattern, formula.replace("`", " ").replace('"', "'")) if pattern else None
    return _marked(formula, found.start(), found.end()) if found else f"\n  {formula}"


def position_shown(formula: str, error: Exception) -> str:
    """An error of formulaic: its first sentence, and the place that it marks in the formula; or of Python's parser."""
    if isinstance(error, SyntaxError) and error.text:
        return f"{error.msg} in {error.text.strip()}{pointing_at(formula, error.text.strip())}"
    text = _COLOURS.sub("", str(error))
    what, _, place = text.partition("\n")
    if "⧛" not in place:
        return f"{what or type(error).__name__}\n  {formula}"
    shown = place.strip()
    start, end = shown.index("⧛"), shown.index("⧚") - 1
    if shown.replace("⧛", "").replace("⧚", "") != formula:
        return f"{what}\n  {formula}"
    return what + _marked(formula, start, end)


def _marked(formula: str, start: int, end: int) -> str:
    return f"\n  {formula}\n  {' ' * start}{'^' * max(1, end - start)}"
