"""Privacy: the kernel (`Cohort`), budget, noise, ledger, and settings. Knows nothing of curves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fdadp._common.lazy import lazy_exports
from fdadp.privacy.account._book import Release as Release
from fdadp.privacy.account.ledger import Ledger as Ledger
from fdadp.privacy.settings import Privacy as Privacy

if TYPE_CHECKING:
    from fdadp.privacy.account.accounting import delta_from_mu as delta_from_mu
    from fdadp.privacy.account.accounting import epsilon_from as epsilon_from
    from fdadp.privacy.account.accounting import epsilon_from_mu as epsilon_from_mu
    from fdadp.privacy.account.accounting import mu_from as mu_from
    from fdadp.privacy.account.accounting import rho_from as rho_from
    from fdadp.privacy.account.budget import Budget as Budget
    from fdadp.privacy.cohort import Cohort as Cohort
    from fdadp.privacy.cohort import Noisy as Noisy
    from fdadp.privacy.noise.sources import OpenDPNoise as OpenDPNoise
    from fdadp.privacy.noise.sources import SeededNoise as SeededNoise
    from fdadp.privacy.replay import TapeNoise as TapeNoise
    from fdadp.privacy.rows._laws import Exchangeable as Exchangeable
    from fdadp.privacy.rows._rowwise import person_moments as person_moments
    from fdadp.privacy.rows._rowwise import rowwise_exp as rowwise_exp
    from fdadp.privacy.rows._rowwise import rowwise_matmul as rowwise_matmul
    from fdadp.privacy.rows._rowwise import rowwise_norm as rowwise_norm

_MODULES = {
    "account.accounting": "delta_from_mu epsilon_from epsilon_from_mu mu_from rho_from",
    "account.budget": "Budget",
    "cohort": "Cohort Noisy",
    "noise.sources": "OpenDPNoise SeededNoise",
    "replay": "TapeNoise",
    "rows._laws": "Exchangeable",
    "rows._rowwise": "person_moments rowwise_exp rowwise_matmul rowwise_norm",
}
_EXPORTS = {name: f"{__name__}.{module}" for module, names in _MODULES.items() for name in names.split()}
"""Numba is loaded with the first of these, not with the settings."""

__all__ = sorted({"Ledger", "Privacy", "Release", *_EXPORTS})

__getattr__, __dir__ = lazy_exports(__name__, _EXPORTS)
