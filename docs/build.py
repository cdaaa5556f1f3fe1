"""Build the site: ``make docs``, or ``.venv/bin/python docs/build.py``. Nothing is asked of the network.

    --fast      to look at a page: the gallery is not run, pages of R stay as they are, nothing is checked
    OPTIONS     what else is given goes to sphinx-build

The pages are put together in docs/_build/source, the site is docs/_build/html. What did not change since the last build
is neither read nor run again. At the end two programs check the site (_ext/check_site.py) and the English of pages,
docstrings, errors, notebooks, R's pages, help and certificates (_ext/plain_english.py). See it:
``python -m http.server -d docs/_build/html``.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

import api_pages
import check_site
import example_certificate
import plain_english
import r_pages
from assemble import DOCS, SOURCE, assemble


def main(arguments: list[str]) -> int:
    """Assemble, build, check; 0 where nothing is wrong."""
    from sphinx.cmd.build import main as sphinx_build

    start = time.monotonic()
    fast = "--fast" in arguments
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ["MPLBACKEND"] = "agg"
    assemble(api_pages.made() | r_pages.made(fast) | example_certificate.made())
    options = ["-b", "html", "-W", "-n", "--keep-going", "-q", "-c", str(DOCS), "-d", str(DOCS / "_build" / "doctrees")]
    options += ["-D", "plot_gallery=0"] if fast else []
    options += [argument for argument in arguments if argument != "--fast"]
    html = DOCS / "_build" / "html"
    status = sphinx_build([*options, str(SOURCE), str(html)])
    pages = sum(1 for _ in html.rglob("*.html"))
    print(f"{html.relative_to(DOCS.parent)}: {pages} pages, {time.monotonic() - start:.0f} s")
    return status or (0 if fast else check_site.main() | plain_english.main([]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
