"""The built site in a browser: does its search find, are its formulas typeset? Chromium sees this machine alone."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import quote

PLACES = ("chromium", "chromium-browser", "google-chrome")

SEARCHES = {
    "missing values": "missing",
    "csv": "your-csv",
    "mixed model": "repeated",
    "confidence band": "after-the-fit",
    "sample size": "how-many",
    "federated": "owners",
    "install": "install",
    "refund": "refund",
    "mgcv": "from-mgcv",
    "diffprivlib": "from-diffprivlib",
    "certificate": "ledger",
    "random effects": "repeated",
    "epsilon": "choosing",
    "predict_interval": "api/generated/",
}
"""What people ask, and how the address of the page begins that must come first."""

FORMULAS = "api/generated/fdadp.AdditiveFunctionOnFunction.html"


class Quiet(SimpleHTTPRequestHandler):
    """Serves files, says nothing."""

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def browser() -> str | None:
    """The Chromium that is there: ``$CHROMIUM``, or one on the path."""
    return os.environ.get("CHROMIUM") or next((found for name in PLACES if (found := shutil.which(name))), None)


def run(chromium: str, *options: str) -> str:
    """What Chromium prints; it resolves no name and keeps nothing."""
    with tempfile.TemporaryDirectory() as profile:
        fixed = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={profile}"]
        alone = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
        command = [chromium, *fixed, alone, "--virtual-time-budget=20000", *options]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False).stdout


def look(html: Path) -> tuple[str, list[str]]:
    """What was looked at (or that it was not), and what was not as it should be."""
    chromium = browser()
    if chromium is None:
        return "search: not run, for want of Chromium", []
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(html)))
    Thread(target=server.serve_forever, daemon=True).start()
    site, wrong = f"http://127.0.0.1:{server.server_port}", []
    try:
        for words, page in SEARCHES.items():
            text = run(chromium, "--dump-dom", f"{site}/search.html?q={quote(words)}")
            first = re.search(r'<li[^>]*class="[^"]*kind-[^"]*"[^>]*>\s*<a href="([^"]+)"', text)
            if first is None or not first[1].startswith(page):
                wrong.append(f"search for {words!r} must find {page} first, got {first[1] if first else 'nothing'}")
        text = run(chromium, "--dump-dom", f"{site}/{FORMULAS}")
        if "<mjx-container" not in text or "<mjx-merror" in text:
            wrong.append(f"formulas of {FORMULAS} are not typeset")
    finally:
        server.shutdown()
    return f"{len(SEARCHES)} searches and a page of formulas in {Path(chromium).name}", wrong
