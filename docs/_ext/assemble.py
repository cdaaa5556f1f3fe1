"""The pages of the site, put together in one folder: those of docs/, and those of the repository that they link to.

Pages are written for GitHub first: relative links, ``<a id="">`` anchors, tables. Here they are copied as they are, but
for three things that Sphinx wants otherwise: a link to a file that lies elsewhere in the site is turned to its place
there, an anchor becomes a MyST target, and a page without a heading gets one. What has not changed is not
written again, so that Sphinx reads only what did.
"""

from __future__ import annotations

import inspect
import json
import os
import re
from functools import cache
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"

SOURCE = DOCS / "_build" / "source"

ELSEWHERE = {
    "docs/index.md": "project/pages.md",
    "README.md": "project/readme.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changes.md",
    "NEWS.md": "r/news.md",
    "CODE_OF_CONDUCT.md": "project/conduct.md",
    "SECURITY.md": "project/security.md",
    "notebooks": "notebooks/index.md",
    "docs/decisions": "decisions/README.md",
    "vignettes/fdadp.Rmd": "r/vignette.md",
    "docs/examples": "gallery/index.rst",
}
"""Files of the repository (and folders that are linked to), and their place in the site."""

LINK = re.compile(r"(\]\()([^()\s#]*)((?:#[\w-]+)?)\)")
DOI = re.compile(r"(?<![\w`\[/])doi:(10\.\d{4,9}/[^\s;,)\]`|]*\w)")
DATA = re.compile(r"^# data: (load_\w+)$", re.MULTILINE)
ANCHOR = re.compile(r'^<a id="([^"]+)"></a>', re.MULTILINE)
FENCED = re.compile(r"(^ *(?:```|~~~).*?^ *(?:```|~~~)\s*?$|`[^`\n]+`)", re.DOTALL | re.MULTILINE)


def place(file: str) -> str | None:
    """Where a file of the repository, as ``docs/terms.md``, lies in the site; None if it is no page there."""
    if file in ELSEWHERE:
        return ELSEWHERE[file]
    if file.startswith("docs/_site/"):
        return file.removeprefix("docs/_site/")
    if re.match(r"docs/(_|requirements)", file):
        return None
    if file.startswith("docs/"):
        return file.removeprefix("docs/")
    if file.startswith("notebooks/") and file.endswith(".py"):
        file = file.removesuffix(".py") + ".ipynb"  # its pair
    return file if re.fullmatch(r"notebooks/[\w-]+\.ipynb|benchmarks/.*\.md", file) else None


def pages() -> dict[str, Path]:
    """All files of the site that are in the repository, by their place in it."""
    found = {}
    folders = ("docs", "notebooks", "benchmarks")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*")] + list(ROOT.glob("*.md"))
    for path in files:
        file = path.relative_to(ROOT).as_posix()
        if (
            path.is_file()
            and not file.startswith("docs/_build")
            and not {"__pycache__", ".ipynb_checkpoints"} & set(path.parts)
        ):
            where = place(file)
            if file.startswith("docs/examples/") and not here(path):
                continue
            if where is not None and not (file.startswith("notebooks/") and path.suffix == ".py"):
                found[where] = path
    return found


def here(example: Path) -> bool:
    """Whether the data that an example needs, as a line ``# data: load_icu`` says, are on this machine."""
    needed = DATA.findall(example.read_text(encoding="utf-8"))
    return all(_found(loader) for loader in needed)


def _found(loader: str) -> bool:
    from fdadp import datasets
    from fdadp.errors import MissingDataError

    load = getattr(datasets, loader)
    try:
        load(**({"download": False} if "download" in inspect.signature(load).parameters else {}))
    except MissingDataError:
        return False
    return True


def turned(target: str, file: str, where: str) -> str:
    """A link that stands in ``file``, as it must be at ``where`` in the site."""
    if re.match(r"[a-z]+:|/", target):
        return target
    linked = os.path.normpath(PurePosixPath(file).parent / target)
    if file.startswith("docs/_site/") and not (ROOT / linked).exists():
        return target  # within the site already
    there = place(linked)
    if there is None:
        if not (ROOT / linked).is_file():
            return target  # Sphinx will complain
        path = os.path.relpath(ROOT / linked, SOURCE / PurePosixPath(where).parent)
        return path if path.endswith((".png", ".svg")) else f"path:{path}"  # a picture; or to be downloaded
    if there.endswith(".py"):  # an example: its page
        there = re.sub(r"^examples/(.*)\.py$", r"gallery/\1.rst", there)
    return os.path.relpath(there, PurePosixPath(where).parent)


def label(place: str, anchor: str) -> str:
    """The label of an anchor of a page: anchors are a page's own, labels are the whole site's."""
    return f"{place.rpartition('.')[0].replace('/', '-')}-{anchor}"


@cache
def anchors(path: Path) -> set[str]:
    """Anchors that a page of the repository sets itself, beside those of its headings."""
    return set(ANCHOR.findall(path.read_text(encoding="utf-8"))) if path.suffix == ".md" and path.is_file() else set()


def converted(text: str, file: str, where: str) -> str:
    """The text of a page of the repository, as MyST for the site."""

    def link(match: re.Match[str]) -> str:
        target, anchor = match[2] or PurePosixPath(file).name, match[3][1:]
        linked = os.path.normpath(PurePosixPath(file).parent / target)
        there = place(linked)
        if anchor and there and anchor in anchors(ROOT / linked):
            return f"](#{label(there, anchor)})"
        return f"]({turned(match[2], file, where) if match[2] else ''}{match[3]})"

    parts = FENCED.split(text)
    text = "".join(
        part if i % 2 else DOI.sub(r"[doi:\1](https://doi.org/\1)", LINK.sub(link, part))
        for i, part in enumerate(parts)
    )
    text = ANCHOR.sub(lambda match: f'<a id="{match[1]}"></a>\n\n({label(where, match[1])})=\n', text)
    if file.startswith("benchmarks/") and not text.startswith("# "):
        name = PurePosixPath(file).stem.replace("-", " ").replace("_", " ")
        text = f"# {name.capitalize()}\n\n" + re.sub(r"^##+ ", "## ", text, flags=re.MULTILINE)
    return text


def notebook(text: str, file: str, where: str) -> str:
    """A notebook with the links of its text turned."""
    book = json.loads(text)
    for cell in book["cells"]:
        if cell["cell_type"] == "markdown":
            source = cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])
            cell["source"] = converted(source, file, where)
    return json.dumps(book)


def rest(where: str, places: set[str]) -> list[str]:
    """Pages in the folder of a page of contents that no such page names."""
    named = guide() + "".join(path.read_text(encoding="utf-8") for path in (DOCS / "_site").rglob("*.md"))
    known = set(re.findall(r"^(?:[./\w-]+/)?([\w.-]+)$", named, re.MULTILINE))
    folder = PurePosixPath(where).parent
    beside = {
        PurePosixPath(place).stem
        for place in places
        if PurePosixPath(place).match("*.md") and PurePosixPath(place).parent == folder
    }
    return sorted(beside - known - {path.stem for path in (DOCS / "_site").rglob("*.md")})


GROUPS = ("start", "models", "privacy", "many owners and scale", "from other packages")
"""Tables of docs/index.md that make the guide."""


def guide() -> str:
    """The guide: of each group of docs/index.md its pages, each with its line, and the contents beside."""
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    parts = []
    for group in GROUPS:
        table = text.partition(f"| {group} | |\n|---|---|\n")[2].partition("\n\n")[0]
        found = re.findall(r"^\| \[[\w.-]+\]\(([\w-]+)\.md\) \| (.+) \|$", table, re.MULTILINE)
        lines = "\n".join(f"* [](./{page}.md): {what}" for page, what in found)
        contents = "\n".join(page for page, _ in found)
        title = group[0].upper() + group[1:]
        parts.append(
            f"## {title}\n\n{lines}\n\n```{{toctree}}\n:hidden:\n:maxdepth: 1\n:caption: {title}\n\n{contents}\n```\n"
        )
    return "\n".join(parts)


def write(path: Path, content: bytes) -> None:
    """Write a file, if it is not the same already."""
    if not (path.is_file() and path.read_bytes() == content):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def assemble(made: dict[str, bytes]) -> None:
    """Put all pages into `SOURCE`, with those that were ``made`` (by their place); delete what is no longer there."""
    from_repository = pages()
    for where, path in from_repository.items():
        file = path.relative_to(ROOT).as_posix()
        content = path.read_bytes()
        if path.suffix == ".md":
            text = converted(content.decode(), file, where)
            if file.startswith("docs/_site/"):
                text = text.replace("THE REST", "\n".join(rest(where, {*from_repository, *made})))
                text = text.replace("THE GUIDE", guide())
            content = text.encode()
        elif path.suffix == ".ipynb":
            content = notebook(content.decode(), file, where).encode()
        write(SOURCE / where, content)
    for where, content in made.items():
        write(SOURCE / where, content)
    kept = {*from_repository, *made}
    by_sphinx = ("gallery/", "api/generated/", "api/backreferences/", "sg_")
    for path in SOURCE.rglob("*"):
        where = path.relative_to(SOURCE).as_posix()
        if path.is_file() and where not in kept and not where.startswith(by_sphinx):
            path.unlink()
    built = (path.relative_to(SOURCE).with_suffix("") for path in (SOURCE / "gallery").rglob("plot_*.rst"))
    gone = {path.as_posix() for path in built} - {
        where.removesuffix(".py").replace("examples/", "gallery/", 1) for where in from_repository
    }
    for name in gone:  # an example that was taken away, or whose data were
        for path in (SOURCE / name).parent.glob(PurePosixPath(name).name + ".*"):
            path.unlink()
