"""Numbers of the private fits have names: what was tuned can be found, read and tried otherwise."""

from __future__ import annotations

import ast

from house_sources import PACKAGE, SOURCES, nodes, parsed

PLAIN = {0, 1, 2, -1, 0.5}
MOST = 10


def unnamed(tree: ast.Module) -> list[ast.Constant]:
    """Numbers but the plain ones, less those of NAME = ... in a module and of defaults in a dataclass."""
    named: set[int] = set()
    for node in nodes(tree):
        dataclass = isinstance(node, ast.ClassDef) and any("dataclass" in ast.unparse(d) for d in node.decorator_list)
        for line in node.body if dataclass or isinstance(node, ast.Module) else []:
            if isinstance(line, ast.Assign | ast.AnnAssign) and line.value is not None:
                named |= {id(inner) for inner in ast.walk(line.value)}
    numbers = (n for n in nodes(tree) if isinstance(n, ast.Constant) and type(n.value) in (int, float))
    return [n for n in numbers if n.value not in PLAIN and id(n) not in named]


def test_the_numbers_of_private_fits_have_names() -> None:
    found = [
        f"{path.name}:{number.lineno}: {number.value}"
        for path in SOURCES
        if path.is_relative_to(PACKAGE / "private")
        for number in unnamed(parsed(path))
    ]
    assert len(found) <= MOST, "\n".join(found)


def test_what_counts_as_named() -> None:
    source = "CAP = 3 * 4.5\ndef f(x, y=7):\n    return 2 * x + 0.25 - 1\n@dataclass\nclass A:\n    b: int = 9\n"
    assert [n.value for n in unnamed(ast.parse(source))] == [7, 0.25]
