"""The Python in README.md runs as it stands there, block after block."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

from fdadp.errors import FdadpWarning

README = Path(__file__).resolve().parents[2] / "README.md"


def test_python_blocks_run(capsys) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 2
    names: dict[str, object] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FdadpWarning)
        for block in blocks:
            exec(compile(block, str(README), "exec"), names)
    printed = capsys.readouterr().out
    assert "published: NOT differentially private end to end" in printed
