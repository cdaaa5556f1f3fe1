"""Shared fixtures: the recorded refund/mgcv cases, where they are present."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# On a busy machine examples may be slow to make; no test depends on time.
settings.register_profile("fdadp", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("fdadp")


@pytest.fixture(scope="session")
def reference(refund_reference: Any) -> Any:
    """``reference("affr_dti2")`` is the recorded case as nested dicts of arrays; r_bridge's plugin reads it."""
    return refund_reference
