"""Keys for the tests of federations, made once."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(scope="session")
def key() -> Any:
    """Secret key of 2048 bits, the one that ``federation_tools.contract`` names."""
    from federation_tools import the_key

    return the_key()


@pytest.fixture(scope="session")
def large_key() -> Any:
    """Secret key of 3072 bits."""
    from fdadp.federated.paillier import keys

    return keys(3072)
