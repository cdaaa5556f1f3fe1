"""What the published learners share: a warning, no privacy spent, and a ledger that says so. **Not private.**"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sklearn.base import BaseEstimator

from fdadp._version import __version__
from fdadp.errors import NotPrivateWarning
from fdadp.privacy.account._reservations import Release
from fdadp.privacy.account.ledger import Ledger

STATEMENT = (
    "This is a published scheme, offered for comparison. Its claimed epsilon does not hold: parts of the output are "
    "computed from the data without noise, or with noise whose scale is. Do not release this model as differentially "
    "private."
)


@dataclass(kw_only=True, eq=False, repr=False)
class Published(BaseEstimator):  # type: ignore[misc]
    """What the published schemes share: a warning, no privacy, a ledger that says so."""

    epsilon: float = 1.0
    random_state: int | None = None
    ledger_: Ledger = field(init=False)
    privacy_spent_: None = field(init=False)

    def _write(self, name: str, releases: Sequence[Release], unnoised: Sequence[str], details: dict[str, Any]) -> None:
        warnings.warn(
            f"{name} is NOT differentially private, whatever epsilon it claims; see its ledger_", NotPrivateWarning, 3
        )
        self.privacy_spent_ = None
        self.ledger_ = Ledger(
            mechanism=name,
            private=False,
            statement=STATEMENT,
            releases=releases,
            unnoised=unnoised,
            for_release=False,
            details={"claimed epsilon": float(self.epsilon), **details, "fdadp": __version__},
        )
