"""The sources of the package for the tests of this folder: read, parsed and walked once a process."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "fdadp"
SOURCES = sorted(PACKAGE.rglob("*.py"))

Trees = Mapping[str, ast.Module]
"""Modules by their paths from the root."""


@cache
def sources() -> dict[str, str]:
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in SOURCES}


@cache
def trees() -> dict[str, ast.Module]:
    """Half the time would be the collector's, which looks again and again at nodes that all stay."""
    collects = gc.isenabled()
    gc.disable()
    try:
        return {path: ast.parse(text) for path, text in sources().items()}
    finally:
        gc.freeze()
        if collects:
            gc.enable()


def parsed(path: Path) -> ast.Module:
    return trees()[path.relative_to(ROOT).as_posix()]


@cache
def nodes(tree: ast.AST) -> tuple[ast.AST, ...]:
    """All nodes of a tree, as ``ast.walk`` gives them."""
    return tuple(ast.walk(tree))


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Statements one level below a node: imports, classes and functions stand nowhere else."""
    for block in ("body", "orelse", "finalbody", "handlers", "cases"):
        below = getattr(node, block, ())
        if isinstance(below, list):  # not the body of a lambda or of `x if y else z`
            yield from below
