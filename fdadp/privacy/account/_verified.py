"""Whether a ledger adds up: what its noise costs against what is written, and the sum against ε and δ."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from fdadp.privacy.account.accounting import epsilon_from
from fdadp.privacy.account.gaussian_dp import delta_from_mu

if TYPE_CHECKING:
    from fdadp.privacy.account.ledger import Ledger
    from fdadp.privacy.account.releases import Release

SLACK = 1e-9
LATTICE = 1e-6
"""Between the scale of noise on a lattice, as it is charged, and in the units of a release."""


def verify_ledger(ledger: Ledger) -> tuple[str, ...]:
    """What is wrong with a ledger by itself, in words: costs against noise, and their sum against ε and δ."""
    if not ledger.private:
        return ("the ledger promises nothing",)
    found = [f"release {r.name!r}: its noise costs more than is written" for r in ledger.releases if not _paid(r)]
    epsilon, delta = ledger.epsilon, ledger.delta
    if epsilon is None:
        return (*found, "the ledger states no epsilon")
    whole = [r for r in ledger.releases if r.delta is not None]
    if whole:
        if len(ledger.releases) > 1 or (whole[0].epsilon or math.inf) > epsilon or (whole[0].delta or 0) > (delta or 0):
            found.append("a release that takes a whole budget is not alone in it, or is larger")
    elif delta is None:
        if math.fsum(r.epsilon or math.inf for r in ledger.releases) > epsilon:
            found.append("the releases cost more than epsilon")
    elif all(r.mu is not None for r in ledger.releases):
        mu = math.sqrt(math.fsum((r.mu or 0.0) ** 2 for r in ledger.releases))
        if mu > 0 and delta_from_mu(mu, epsilon) > delta * (1 + SLACK):
            found.append("the releases cost more than epsilon and delta")
    elif epsilon_from(math.fsum(r.rho or math.inf for r in ledger.releases), delta) > epsilon * (1 + SLACK):
        found.append("the releases cost more than epsilon and delta")
    return tuple(found)


def _paid(r: Release) -> bool:
    """Whether the noise of a release costs no more than is written; sums of which scale and sensitivity tell."""
    if r.delta is not None:
        return True
    if r.noise.startswith("Gaussian"):
        written = r.mu if r.mu is not None else None if r.rho is None else math.sqrt(2 * r.rho)
        return written is not None and r.sensitivity / r.scale <= written * (1 + LATTICE)
    if r.noise.startswith(("Laplace", "matrix Laplace")):
        return r.epsilon is not None and r.sensitivity / r.scale <= r.epsilon * (1 + SLACK)
    return True
