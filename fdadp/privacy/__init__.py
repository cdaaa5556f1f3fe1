"""Privacy: the kernel (`Cohort`), budget, noise, ledger, and settings. Knows nothing of curves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fdadp._common.lazy import lazy_exports
from fdadp.privacy.ledger import Ledger
from fdadp.privacy.releases import Release
from fdadp.privacy.settings import Privacy

if TYPE_CHECKING:
    from fdadp.privacy._kernel import Noisy
    from fdadp.privacy._rowwise import rowwise_exp, rowwise_matmul, rowwise_norm
    from fdadp.privacy.accounting import epsilon_from, rho_from
    from fdadp.privacy.budget import Budget
    from fdadp.privacy.cohort import Cohort
    from fdadp.privacy.gaussian_dp import delta_from_mu, epsilon_from_mu, mu_from
    from fdadp.privacy.noise import OpenDPNoise, SeededNoise
    from fdadp.privacy.replay import TapeNoise

_LAZY = {
    "Budget": "budget",
    "Cohort": "cohort",
    "Noisy": "_kernel",
    "OpenDPNoise": "noise",
    "SeededNoise": "noise",
    "TapeNoise": "replay",
    "delta_from_mu": "gaussian_dp",
    "epsilon_from": "accounting",
    "epsilon_from_mu": "gaussian_dp",
    "mu_from": "gaussian_dp",
    "rho_from": "accounting",
    "rowwise_exp": "_rowwise",
    "rowwise_matmul": "_rowwise",
    "rowwise_norm": "_rowwise",
}
"""Numba is loaded with the first of these, not with the settings."""

__all__ = [
    "Budget",
    "Cohort",
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
    "rho_from",
    "rowwise_exp",
    "rowwise_matmul",
    "rowwise_norm",
]

__getattr__, __dir__ = lazy_exports(__name__, {name: f"{__name__}.{module}" for name, module in _LAZY.items()})
