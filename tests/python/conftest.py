"""Shared fixtures: the recorded refund/mgcv cases and the data sets, where they are present."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# On a busy machine examples may be slow to make; no test depends on time.
settings.register_profile("fdadp", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("fdadp")

ROOT = Path(__file__).resolve().parents[2]


def reference_dirs() -> list[Path]:
    """Where recorded cases may be, in this order: FDADP_REFERENCE, ../shared/reference, tests/reference."""
    named = os.environ.get("FDADP_REFERENCE")
    here = [ROOT.parent / "shared" / "reference", ROOT / "tests" / "reference"]
    return [path for path in ([Path(named)] if named else []) + here if path.is_dir()]


@functools.cache
def read_case(name: str) -> dict[str, Any]:
    path = next((folder / f"{name}.rds" for folder in reference_dirs() if (folder / f"{name}.rds").exists()), None)
    if path is None:
        pytest.skip(f"recorded case {name} is not here: set FDADP_REFERENCE to the folder with {name}.rds")
    import rdata

    return dict(rdata.read_rds(path))


@pytest.fixture(scope="session")
def reference() -> Any:
    """``reference("affr_dti2")`` is the recorded case as nested dicts of arrays."""
    return read_case
