"""Pages and what cites them: links between pages resolve, and every page and anchor that code cites is there."""

from __future__ import annotations

import importlib
import re
from functools import cache
from pathlib import Path

import pytest

import fdadp

ROOT = next(folder for folder in Path(__file__).resolve().parents if (folder / "setup.cfg").exists())
FOLDERS = [
    "fdadp",
    "r_bridge",
    "R",
    "man",
    "inst",
    "vignettes",
    "notebooks",
    "tests",
    "benchmarks",
    "tools",
    "docs",
    "paper",
]
KINDS = {".py", ".R", ".Rd", ".Rmd", ".md", ".ipynb", ".sh", ".toml", ".cfg"}
FILES = sorted(
    [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in KINDS and path.is_file()]
    + [path for path in ROOT.glob("*") if path.suffix in KINDS]
)
NOT_PAGES = {".ipynb_checkpoints", "_build", "_site"}
"""Parts of paths: what is built, and the contents of the site, which only Sphinx reads."""
FILES = [path for path in FILES if "_build" not in path.parts]
PAGES = [path for path in FILES if path.suffix == ".md" and not NOT_PAGES & set(path.parts)]

LINK = re.compile(r"\[[^\]\n]*\]\(([^()\s]+)\)")
CITATION = re.compile(r"\bdocs/[\w./-]+\.md(?:#[\w-]+)?")
ELSEWHERE = re.compile(r"\b0" + r"2[bc]\b|\b03" + r"-learners|\b0\d[a-c]?, (?:L\d|section \d)")
"""Documents that are not in the repository, as docstrings used to cite them (in parts, so that this file has none)."""


@cache
def anchors(page: Path) -> set[str]:
    """Explicit anchors of a page, and those that GitHub makes of its headings."""
    text = page.read_text(encoding="utf-8")
    found = set(re.findall(r'<a id="([^"]+)"', text))
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    for heading in re.findall(r"^#+ (.+)$", prose, re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.replace("`", ""))
        found.add(re.sub(r"[^\w\- ]", "", plain.lower()).strip().replace(" ", "-"))
    return found


def missing(base: Path, target: str) -> str | None:
    """What is wrong with a link from a folder; None if nothing is."""
    name, _, anchor = target.partition("#")
    path = base / name
    if not path.exists():
        return f"no file {name}"
    return f"no anchor #{anchor} in {name}" if anchor and anchor not in anchors(path.resolve()) else None


def links(page: Path) -> list[str]:
    """Targets of a page within the repository, each as ``name#anchor``; the page itself is its own name."""
    text = re.sub(r"^```.*?^```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    targets = [target for target in LINK.findall(text) if not re.match(r"[a-z]+:", target)]
    return [page.name + target if target.startswith("#") else target for target in targets]


def test_links_between_pages_resolve() -> None:
    found = [(page, target) for page in PAGES for target in links(page)]
    assert len(found) > 100
    wrong = [f"{page.relative_to(ROOT)}: {why}" for page, target in found if (why := missing(page.parent, target))]
    assert wrong == []


def test_what_is_cited_is_there() -> None:
    cited = [(path, text) for path in FILES for text in CITATION.findall(path.read_text(encoding="utf-8"))]
    assert len(cited) > 40
    wrong = [f"{path.relative_to(ROOT)}: {why}" for path, text in cited if (why := missing(ROOT, text))]
    assert wrong == []


def test_nothing_cites_a_document_that_is_not_here() -> None:
    texts = [(path, path.read_text(encoding="utf-8")) for path in FILES if path.suffix != ".ipynb"]
    assert [f"{path.relative_to(ROOT)}: {hit[0]}" for path, text in texts for hit in ELSEWHERE.finditer(text)] == []


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("docs/theory/kernel.md#truncation", None),
        ("docs" + "/theory/kernel.md#no-such-lemma", "no anchor"),
        ("docs" + "/theory/none.md", "no file"),
        ("docs/extend/mechanism.md#the-seven-tests", None),
    ],
)
def test_a_wrong_link_is_noticed(target: str, why: str | None) -> None:
    found = missing(ROOT, target)
    assert found is None if why is None else found is not None and found.startswith(why)


def test_every_page_can_be_found_from_the_index() -> None:
    seen: set[Path] = set()
    queue = [ROOT / "docs" / "index.md"]
    while queue:
        page = queue.pop()
        if page not in seen and page.suffix == ".md":
            seen.add(page)
            queue += [(page.parent / target.partition("#")[0]).resolve() for target in links(page)]
    assert [
        str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md") if page in PAGES and page not in seen
    ] == []


def test_pages_at_the_door_are_short() -> None:
    lines = {
        name: len((ROOT / name).read_text(encoding="utf-8").splitlines()) for name in ("README.md", "CONTRIBUTING.md")
    }
    assert max(lines.values()) <= 150, lines


def test_the_map_names_every_room_and_folder() -> None:
    rows = re.findall(
        r"^\| \d+ \| (.+?) \| (.+) \|$", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    folders = [path.parent.relative_to(ROOT / "fdadp") for path in (ROOT / "fdadp").glob("*/**/__init__.py")]
    assert len(folders) > 50 and len(rows) > 12
    for folder in folders:
        room, *below = folder.parts
        (row,) = ((rooms, text) for rooms, text in rows if f"`{room}`" in rooms)
        assert not below or {f"`{below[-1]}`", f"`{folder.as_posix()}`"} & set(re.findall(r"`[^`]+`", row[1])), folder


def test_badges_say_what_the_package_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    pictures = importlib.import_module("readme_pictures")
    facts = pictures.facts()
    assert facts.keys() == {"python", "licence", "status"} and "BSD" in facts["licence"]
    for name, value in facts.items():
        assert (pictures.STATIC / f"badge-{name}.svg").read_text(encoding="utf-8") == pictures.badge(name, value)


def test_issue_templates_and_the_citation_are_yaml_of_the_right_kind() -> None:
    yaml = pytest.importorskip("yaml")
    for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"):
        form = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert path.name == "config.yml" or {"name", "description", "body"} <= form.keys()
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["preferred-citation"]["year"] >= 2026 and cited["preferred-citation"]["version"] == cited["version"]


def test_decisions_have_a_date_and_say_how_to_repeat_them() -> None:
    pages = sorted((ROOT / "docs" / "decisions").glob("0*.md"))
    assert len(pages) >= 20
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert re.search(r"^20\d\d-\d\d-\d\d", text, re.MULTILINE), page.name
        missed = [
            part for part in ("Context", "Decision", "What would change it", "Repeat") if f"**{part}.**" not in text
        ]
        assert missed == [], page.name


def test_files_and_names_of_the_package_that_pages_name_are_there() -> None:
    pages = [page for page in PAGES if page.name not in ("CHANGELOG.md", "NEWS.md") and "results" not in page.parts]
    files, names = set(), set()
    for page in pages:
        text = page.read_text(encoding="utf-8")
        files |= {(page.name, name) for name in re.findall(r"`([\w-]+/[\w/.-]+\.(?:py|R))\b", text)}
        files |= {(page.name, name) for name in re.findall(r"(?:python|pytest)[^`\n]* ([\w-]+/[\w/.-]+\.py)\b", text)}
        names |= {(page.name, name) for name in re.findall(r"`(fdadp(?:\.\w+)+)", text)}
    assert len(files) > 30 and len(names) > 10
    assert [found for found in sorted(files) if not (ROOT / found[1]).exists()] == []
    assert [found for found in sorted(names) if not known(found[1])] == []


def known(name: str) -> bool:
    """Whether a dotted name is a module, or something in one."""
    parts = name.split(".")
    for i in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:i]))
        except ModuleNotFoundError:
            continue
        return all((found := getattr(found, part, None)) is not None for part in parts[i:])
    return False


DEFINED = re.compile(r"\| `(fdadp/[\w/]+\.py)` \| ([^|]+) \||\| (`\w+`) \| `(fdadp/[\w/]+\.py)` \|")
"""A file with what it defines in the next cell, or a name with its file in the next cell."""


@pytest.mark.parametrize(("name", "least"), [("a-fit.md", 30), ("nouns.md", 50)])
def test_tables_of_steps_and_of_nouns_name_what_the_files_define(name: str, least: int) -> None:
    rows = DEFINED.findall((ROOT / "docs" / "extend" / name).read_text(encoding="utf-8"))
    named = {(a or b, found) for a, text, one, b in rows for found in re.findall(r"`([A-Za-z_][\w.]*)`", text or one)}
    assert len(named) >= least
    assert [
        row for row in sorted(named) if not known(row[0].removesuffix(".py").replace("/", ".") + "." + row[1])
    ] == []


def test_tables_of_the_private_page_and_of_the_limits_are_the_recorded_ones() -> None:
    page, limits = ((ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("private.md", "limits.md"))
    results = ROOT / "benchmarks" / "results"
    other = (results / "other-scenarios.md").read_text(encoding="utf-8")
    recorded = re.findall(r"^\| (.+?) \| ([\d.]+) \((-?[\d.]+)\) \| [^|]+ \| ([\d.]+) \(", other, re.MULTILINE)
    shown = re.findall(r"^\| ([a-zA-Z].+?) \| ([\d.]+) \| (-?[\d.]+) \| ([\d.]+) \|$", limits, re.MULTILINE)
    assert len(shown) == len(recorded) == 13
    for name, *figures in shown:
        longest = max((row for row in recorded if name.startswith(row[0])), key=lambda row: len(row[0]))
        assert figures == list(longest[1:]), name
    table = re.findall(r"^\| ([\d,]+, [\d.]+) \| (.+?) \| (.*?) ?\|$", limits, re.MULTILINE)
    assert len(table) == 6
    for cell, *both in table:
        for part, text in zip(("main", "pure"), both, strict=True):
            row = rf"^\| {cell} \| ok \| ([\d.]+)[^|]* \| ([\d.]+) \| [\d.]+ \| ([\d.]+) \|$"
            found = re.findall(row, (results / f"frontier-{part}.md").read_text(encoding="utf-8"), re.MULTILINE)
            assert [text] == ["{}, {}, {} %".format(*figures) for figures in found] or not (text or found), (part, cell)
    main, pure = ((results / f"frontier-{part}.md").read_text(encoding="utf-8") for part in ("main", "pure"))
    cells = re.findall(r"^\| ([\d,]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|", page, re.MULTILINE)
    assert len(cells) == 6
    one = r"([\d.]+) [^|]*\d/\d+ \| "  # share, and coverages
    for (n, *figures), table in zip(cells, [main] * 2 + [pure] * 4, strict=True):
        (row,) = re.findall(rf"^\| {n}, 1 \| ok \| {one * 3}", table, re.MULTILINE)
        assert [abs(float(a) - float(b)) <= 0.0051 for a, b in zip(figures, row, strict=True)] == [True] * 3


def test_pages_quote_figures_of_this_version():
    pages = [ROOT / "docs" / "benchmarks.md", *(ROOT / "benchmarks").glob("**/results/**/*.md")]
    quoted = {page: set(re.findall(r"\bfdadp (\d+\.\d+\.\d+)", page.read_text(encoding="utf-8"))) for page in pages}
    assert quoted[pages[0]], "the page of benchmarks says no version"
    assert not {page for page, versions in quoted.items() if versions - {fdadp.__version__}}
