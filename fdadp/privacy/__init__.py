"""Privacy: settings, mechanisms and the ledger of what was released. Knows nothing of curves."""

from __future__ import annotations

from fdadp.privacy.ledger import Ledger, Release
from fdadp.privacy.settings import Bounds, Privacy

__all__ = ["Bounds", "Ledger", "Privacy", "Release"]
