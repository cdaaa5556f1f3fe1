"""Privacy: the kernel (`Cohort`), budget, noise, ledger, and settings. Knows nothing of curves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fdadp._common.lazy import lazy_exports
from fdadp.privacy.account.ledger import Ledger
from fdadp.privacy.account.releases import Release
from fdadp.privacy.settings import Privacy

if TYPE_CHECKING:
    from fdadp.privacy.account.accounting import epsilon_from, rho_from
    from fdadp.privacy.account.budget import Budget
    from fdadp.privacy.account.gaussian_dp import delta_from_mu, epsilon_from_mu, mu_from
    from fdadp.privacy.cohort import Cohort, Noisy
    from fdadp.privacy.noise.sources import OpenDPNoise, SeededNoise
    from fdadp.privacy.replay import TapeNoise
    from fdadp.privacy.rows._laws import Exchangeable
    from fdadp.privacy.rows._rowwise import person_moments, rowwise_exp, rowwise_matmul, rowwise_norm

_LAZY = {
    "Budget": "account.budget",
    "Cohort": "cohort",
    "Exchangeable": "rows._laws",
    "Noisy": "cohort",
    "OpenDPNoise": "noise.sources",
    "SeededNoise": "noise.sources",
    "TapeNoise": "replay",
    "delta_from_mu": "account.gaussian_dp",
    "epsilon_from": "account.accounting",
    "epsilon_from_mu": "account.gaussian_dp",
    "mu_from": "account.gaussian_dp",
    "person_moments": "rows._rowwise",
    "rho_from": "account.accounting",
    "rowwise_exp": "rows._rowwise",
    "rowwise_matmul": "rows._rowwise",
    "rowwise_norm": "rows._rowwise",
}
"""Numba is loaded with the first of these, not with the settings."""

__all__ = [
    "Budget",
    "Cohort",
    "Exchangeable",
    "Ledger",
    "Noisy",
    "OpenDPNoise",
    "Privacy",
    "Release",
    "SeededNoise",
    "TapeNoise",
    "delta_from_mu",
    "epsilon_from",
    "epsilon_from_mu",
    "mu_from",
    "person_moments",
    "rho_from",
    "rowwise_exp",
    "rowwise_matmul",
    "rowwise_norm",
]

__getattr__, __dir__ = lazy_exports(__name__, {name: f"{__name__}.{module}" for name, module in _LAZY.items()})
