"""The certificate that docs/certificate.md shows: that of docs/your-csv.md, made at each build.

Its noise is real, so that no two builds show the same numbers.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import tempfile
import warnings
from pathlib import Path

from assemble import ROOT


def made() -> dict[str, bytes]:
    """The page, by its place in the sources; docs/conf.py has Sphinx copy that folder as it is."""
    page = (ROOT / "docs" / "your-csv.md").read_text(encoding="utf-8")
    names: dict[str, object] = {}
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.chdir(folder)
        try:
            for block in re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE):
                exec(compile(block, "your-csv.md", "exec"), names)
            certificate = Path("certificate.html").read_bytes()
        finally:
            os.chdir(before)
    return {"extra/example-certificate.html": certificate}
