"""R's part of the site: a page of each Rd, and the vignette as it ran. R makes them (``.ci/r-package.sh pages``).

The R of docs/your-csv.md and docs/files.md runs then too. Without R ``.ci/r-package.sh`` says what was skipped.
"""

from __future__ import annotations

import hashlib
import html
import re
import subprocess

from assemble import ROOT

MADE = ROOT / "docs" / "_build" / "r"
SOURCES = ("man", "vignettes", "R", "inst", "docs/_ext/r_pages.R", "docs/your-csv.md", "docs/files.md")

PARTS = re.compile(
    r"<h[23][^>]*>(.*?)</h[23]>|^<pre><code class='language-R'>(.*?)</code></pre>", re.DOTALL | re.MULTILINE
)
FORMULA = re.compile(r'<code class="reqn">(.*?)</code>', re.DOTALL)
MATHJAX = '<script defer src="../_static/mathjax/tex-chtml.js"></script>'

NOT_RUN = """# {title}

R, or a package that its pages need, was not there when this site was built: `sh .ci/r-package.sh pages` says which.
"""


def state() -> str:
    """What R's pages are made of; they are made again when it changes."""
    found = hashlib.sha256()
    for source in SOURCES:
        path = ROOT / source
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and "__pycache__" not in file.parts:
                found.update(file.relative_to(ROOT).as_posix().encode() + file.read_bytes())
    return found.hexdigest()


def myst(name: str, page: str) -> str:
    """The HTML of an Rd page as MyST: headings and code are Sphinx's, so that they are in the contents and coloured."""
    title, _, body = page.partition("\n")
    parts = [f"# {name}: {title}\n"]

    def raw(text: str) -> None:
        text = re.sub(r"\n\s*\n", "\n", text).strip()
        if text:
            formulas = FORMULA.sub(r'<span class="math">\\(\1\\)</span>', text)
            parts.append(f"```{{raw}} html\n{formulas}\n```\n")

    end = 0
    for match in PARTS.finditer(body):
        raw(body[end : match.start()])
        end = match.end()
        if match[1] is not None:
            parts.append(f"## {html.unescape(re.sub('<[^>]+>', '', match[1]))}\n")
        else:
            code = html.unescape(re.sub("<[^>]+>", "", match[2])).strip("\n")
            parts.append(f"```r\n{code}\n```\n")
    raw(body[end:])
    if FORMULA.search(body):
        raw(MATHJAX)
    return "\n".join(parts)


def made(fast: bool) -> dict[str, bytes]:
    """Pages of R by their place in the site; ``fast`` takes those that are there, whatever they were made of."""
    stamp = MADE / "state"
    if not (fast and stamp.is_file()) and (not stamp.is_file() or stamp.read_text() != state()):
        subprocess.run(["sh", ".ci/r-package.sh", "pages"], cwd=ROOT, check=True)
        if MADE.is_dir():
            stamp.write_text(state())
    if not stamp.is_file():
        titles = {path.stem: path.stem for path in (ROOT / "man").glob("*.Rd")} | {"vignette": "R"}
        return {f"r/{name}.md": NOT_RUN.format(title=title).encode() for name, title in titles.items()}
    pages = {
        f"r/{path.stem}.md": myst(path.stem, path.read_text(encoding="utf-8")).encode() for path in MADE.glob("*.html")
    }
    return pages | {f"r/{path.name}": path.read_bytes() for path in MADE.glob("*.*") if path.suffix in (".md", ".png")}
