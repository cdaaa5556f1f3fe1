"""What releases cost in the measure of a budget, and the noise that an amount of it buys.

================ ================================ ======================== ==========
kind of noise    "gdp": μ²/2                      "zcdp": ρ                "pure": ε
================ ================================ ======================== ==========
gaussian         Δ²/2(σ² - 16)                    OpenDP's map, Δ²/2σ²     -
gumbel, bingham- μ(η)²/2 of its range η           η²/8                     -
zcdp
any pure law     μ²/2, μ = -2Φ⁻¹(1/(1 + e^ε))     ε²/2                     ε
================ ================================ ======================== ==========

Wishart noise and objective perturbation are accounted for in (ε, δ) by themselves and have no place here. Proofs:
``docs/theory/gaussian-dp.md``.
"""

from __future__ import annotations

import math

from fdadp.privacy.account.gaussian_dp import mu_from_epsilon, mu_from_range, range_from_mu
from fdadp.privacy.noise.sources import LATTICE_VARIANCE

MEASURES = {"gdp": "mu squared / 2 (Gaussian DP)", "zcdp": "rho (zCDP)", "pure": "epsilon"}
"""Names of what adds up."""
_RANGED = ("gumbel", "bingham-zcdp")
"""Kinds whose own cost is η²/8, of a range η."""
IN_RHO = ("gaussian", *_RANGED)
"""Kinds whose own measure is ρ; that of the others is ε."""


def amount_for(accounting: str, kind: str, amount: float) -> float:
    """Amount in a kind's own measure (ρ or ε, see ``noise.sources``) that costs so much of a budget."""
    if accounting == "pure" or kind == "gaussian":
        return amount
    if kind in _RANGED:
        return amount if accounting == "zcdp" else range_from_mu(math.sqrt(2 * amount)) ** 2 / 8
    return math.sqrt(2 * amount) if accounting == "zcdp" else range_from_mu(math.sqrt(2 * amount)) / 2


def cost_of(accounting: str, kind: str, *, sensitivity: float, scale: float, spent: float) -> float:
    """Cost of a release in the measure of a budget, where sums are so far apart and noise has this scale.

    ``spent`` is the cost in the kind's own measure.
    """
    if accounting == "pure":
        return spent
    gdp = accounting == "gdp"
    if kind == "gaussian" and gdp:
        variance = scale**2 - LATTICE_VARIANCE
        return sensitivity**2 / variance / 2 if variance > 0 else math.inf
    if kind in IN_RHO:
        return mu_from_range(math.sqrt(8 * spent)) ** 2 / 2 if gdp else spent
    return (mu_from_epsilon(spent) if gdp else spent) ** 2 / 2
