"""What must hold of a built site, beside that Sphinx did not warn: ``python docs/_ext/check_site.py``.

Every link and anchor within it resolves, nothing is loaded from elsewhere, every public name has its page with an
example, known sentences stand where they should (a build without warnings can still show nothing), and where Chromium
is there, a search finds what it should and formulas are typeset.
"""

from __future__ import annotations

import re
import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from api_pages import MODULES, OWN, PATHS
from in_browser import look

HTML = Path(__file__).resolve().parents[1] / "_build" / "html"

SENTENCES = {
    "index.html": "differential-privacy guarantee that holds end to end",
    "terms.html": "The mean of the response is a sum of terms",
    "private.html": "mechanism",
    "theory/kernel.html": "truncation toward zero",
    "api/generated/fdadp.Privacy.html": "adjacency",
    "api/generated/fdadp.privacy.Cohort.html": "second_moment",
    "api/generated/fdadp.terms.ff.html": "of a curve on a curve, refund’s ff",
    "api/generated/fdadp.privacy.certificate.ABOUT.html": "Examples",
    "api/fdadp.errors.html": "PublicParameterMissing",
    "notebooks/01-canadian-weather.html": "stations",
    "r/vignette.html": "Fitted without privacy: do not release",
    "r/dp_affr.html": "set.seed",
    "gallery/curves/plot_weather.html": "Total running time of the script",
    "decisions/0031-gaussian-dp.html": "What would change it",
    "project/changes.html": "Semantic Versioning",
}
"""Pages and words that must be on them."""


class Page(HTMLParser):
    """Anchors of a page, where its links lead, what it loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag names and where it leads."""
        given = {name: value for name, value in attrs if value}
        self.anchors |= {given[name] for name in ("id", "name") if name in given and (name == "id" or tag == "a")}
        if "href" in given:
            is_loaded = tag == "link" and given.get("rel") in ("stylesheet", "preload", "icon", "shortcut icon")
            (self.loaded if is_loaded else self.links).add(given["href"])
        if "src" in given:
            self.loaded.add(given["src"])


@cache
def page(path: Path) -> Page:
    """A page that was read."""
    return Page(path)


def wrong_links() -> tuple[int, list[str]]:
    """How many links within the site were checked, and which lead nowhere or load from elsewhere."""
    wrong, checked = [], 0
    for path in sorted(HTML.rglob("*.html")):
        if path.name == "404.html" or "_static" in path.parts:
            continue  # its links are absolute; the theme's template is no page
        where = path.relative_to(HTML).as_posix()
        wrong += [f"{where} loads {src}" for src in page(path).loaded if re.match(r"(https?:)?//", src)]
        for link in page(path).links | page(path).loaded:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            checked += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target = target / "index.html"
            anchor = unquote(parts.fragment)
            if not target.is_file():
                wrong.append(f"{where}: no file {link}")
            elif anchor and target.suffix == ".html" and anchor not in page(target).anchors:
                wrong.append(f"{where}: no anchor {link}")
    return checked, wrong


def missing_names() -> list[str]:
    """Public names without an entry in the inventory."""
    from sphinx.util.inventory import InventoryFile

    with (HTML / "objects.inv").open("rb") as file:
        inventory = InventoryFile.loads(file.read(), uri="")
    known = {name for domain in inventory.data.values() for name in domain}
    return [f"{path} has no page" for path in [*MODULES, *PATHS.values()] if path not in known]


def without_example() -> list[str]:
    """Public names whose page shows no code that ran."""
    wrong = []
    for module, names in OWN.items():
        for name in names:
            path = HTML / "api" / "generated" / f"{module}.{name}.html"
            if path.is_file() and not has_example(path.read_text(encoding="utf-8")):
                wrong.append(f"{module}.{name}")
    return wrong


def has_example(text: str) -> bool:
    """Whether a page of a name shows code that ran: a doctest, or an example of the gallery."""
    return "&gt;&gt;&gt; </span>" in text or "sphx-glr-thumbcontainer" in text


def missing_sentences() -> list[str]:
    """Pages that do not say what they should."""
    return [
        f"{name} does not say {words!r}"
        for name, words in SENTENCES.items()
        if not (HTML / name).is_file()
        or words not in re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", (HTML / name).read_text(encoding="utf-8")))
    ]


def main() -> int:
    """Print what is wrong; 1 if anything is."""
    checked, wrong = wrong_links()
    wrong += missing_names() + missing_sentences() + [f"{name} has no example" for name in without_example()]
    seen, not_seen = look(HTML)
    wrong += not_seen
    print(*wrong, sep="\n")
    print(f"site: {checked} links and anchors, {len(set(PATHS.values()))} public names; {seen}")
    print("site: ok" if not wrong else f"site: {len(wrong)} faults")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
