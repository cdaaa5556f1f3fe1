"""Shared fixtures: the recorded refund/mgcv cases and the data sets, where they are present."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


def reference_dir() -> Path:
    """Where the recorded cases are: FDADP_REFERENCE, ../shared/reference, else tests/reference."""
    here = [ROOT.parent / "shared" / "reference", ROOT / "tests" / "reference"]
    candidates = [os.environ.get("FDADP_REFERENCE"), *here]
    return next(Path(c) for c in candidates if c and Path(c).is_dir())


@functools.cache
def read_case(name: str) -> dict[str, Any]:
    path = reference_dir() / f"{name}.rds"
    if not path.exists():
        path = ROOT / "tests" / "reference" / f"{name}.rds"
    if not path.exists():
        pytest.skip(f"recorded case {name} is not here: set FDADP_REFERENCE to the folder with {name}.rds")
    import rdata

    return dict(rdata.read_rds(path))


@pytest.fixture(scope="session")
def reference() -> Any:
    """``reference("affr_dti2")`` is the recorded case as nested dicts of arrays."""
    return read_case
