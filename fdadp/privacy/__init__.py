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

_LAZY = {
    "Budget": "account.budget",
    "Cohort": "cohort",
    "Exchangeable": "rows._laws",
    "Noisy": "cohort",
    "OpenDPNoise": "noise.sources",
    "SeededNoise": "noise.sources",
    "TapeNoise": "replay",
    "delta_from_mu": "account.accounting",
    "epsilon_from": "account.accounting",
    "epsilon_from_mu": "account.accounting",
    "mu_from": "account.accounting",
    "person_moments": "rows._rowwise",
    "rho_from": "account.accounting",
    "rowwise_exp": "rows._rowwise",
    "rowwise_matmul": "rows._rowwise",
    "rowwise_norm": "rows._rowwise",
}
"""Numba is loaded with the first of these, not with the settings."""

__all__ = sorted({"Ledger", "Privacy", "Release", *_LAZY})

__getattr__, __dir__ = lazy_exports(__name__, {name: f"{__name__}.{module}" for name, module in _LAZY.items()})
