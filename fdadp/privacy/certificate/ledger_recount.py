"""Whether a ledger adds up: by its own figures, and by somebody else's, Google's dp_accounting, where it is installed.

A certificate states ε as Gaussian differential privacy gives it, exactly but for rounding up. Privacy loss
distributions (Sommer, Meiser & Mohammadi 2019, doi:10.2478/popets-2019-0029; here by "connecting the dots", Doroshenko,
Ghazi, Kamath, Kumar & Manurangsi 2022, arXiv:2207.04380) reach the same number without it: by convolving, release by
release, on a lattice of losses. Their ε is never below the truth, and above it by less than :data:`ABOVE`.

A ledger by itself: what its noise costs against what is written, and the sum against ε and δ.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fdadp.errors import PrivacyError
from fdadp.privacy.account._reservations import Release, counted
from fdadp.privacy.account.epsilon_mu_rho import delta_from_mu, epsilon_from

if TYPE_CHECKING:
    from fdadp.privacy.account.ledger import Ledger

ABOVE = 1e-6
"""Of ε (or of 1, if ε is smaller): what the lattice of losses may add."""
FINE = 2.5e4
"""Points of the lattice from 0 to ε, for up to FEW releases; of more, what it adds grows with their number."""
FEW, MOST = 40, 100
"""Releases for which that is fine enough; kinds of noise and scale that are recounted at most (a second or two)."""
TINY = 1e-12
"""δ at which the loss of a pure release is looked up: at 0 one rounded point would make it infinite."""


def recounted(releases: Sequence[Release], delta: float | None, spent: float) -> float | None:
    """Return ε of releases at δ as dp_accounting has it; None where it is not installed or does not know the noise.

    Parameters
    ----------
    releases : sequence of Release
        Gaussian or Laplace noise, of which the scale and the sensitivity tell.
    delta : float or None
        None: pure ε, which adds up.
    spent : float
        ε that is said to be spent.

    Raises
    ------
    PrivacyError
        dp_accounting finds more than that: nothing may be certified.
    """
    kinds = Counter((r.noise.partition(",")[0], r.sensitivity / r.scale) for r in counted(releases))
    known = ("Gaussian", "Laplace") if delta is not None else ("Laplace",)
    if not 0 < len(kinds) <= MOST or any(r.delta is not None for r in releases):
        return None
    if any(kind not in known for kind, _ in kinds):
        return None
    found = _recounted_epsilon(tuple(sorted(kinds.items())), delta, spent)
    if found is not None and found > spent + ABOVE * max(1.0, spent):
        raise PrivacyError(
            f"releases must cost what is said, epsilon {spent:.9g}, got {found:.9g} by dp_accounting's privacy loss "
            "distributions. This is an error in the program. Certify nothing, and report it"
        )
    return found


@functools.lru_cache(maxsize=64)
def _recounted_epsilon(
    kinds: tuple[tuple[tuple[str, float], int], ...], delta: float | None, spent: float
) -> float | None:
    try:
        from dp_accounting.pld import privacy_loss_distribution as pld
    except ImportError:
        return None
    step = spent / (FINE * math.sqrt(max(1.0, sum(times for _, times in kinds) / FEW)))

    def one(kind: str, ratio: float, step: float) -> pld.PrivacyLossDistribution:
        make = pld.from_gaussian_mechanism if kind == "Gaussian" else pld.from_laplace_mechanism
        return make(1 / ratio, value_discretization_interval=step)

    if delta is None:
        losses = (times * one(kind, ratio, ratio / 64).get_epsilon_for_delta(TINY) for (kind, ratio), times in kinds)
        return math.fsum(float(loss) for loss in losses)
    whole = None
    for (kind, ratio), times in kinds:
        own = one(kind, ratio, step)
        own = own.self_compose(times) if times > 1 else own
        whole = own if whole is None else whole.compose(own)
    return None if whole is None else float(whole.get_epsilon_for_delta(delta))


COST_SLACK = 1e-9
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
    releases = counted(ledger.releases)
    whole = [r for r in releases if r.delta is not None]
    if whole:
        if len(releases) > 1 or (whole[0].epsilon or math.inf) > epsilon or (whole[0].delta or 0) > (delta or 0):
            found.append("a release that takes a whole budget is not alone in it, or is larger")
    elif delta is None:
        if math.fsum(r.epsilon or math.inf for r in releases) > epsilon:
            found.append("the releases cost more than epsilon")
    elif all(r.mu is not None for r in releases):
        mu = math.sqrt(math.fsum((r.mu or 0.0) ** 2 for r in releases))
        if mu > 0 and delta_from_mu(mu, epsilon) > delta * (1 + COST_SLACK):
            found.append("the releases cost more than epsilon and delta")
    elif epsilon_from(math.fsum(r.rho or math.inf for r in releases), delta) > epsilon * (1 + COST_SLACK):
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
        return r.epsilon is not None and r.sensitivity / r.scale <= r.epsilon * (1 + COST_SLACK)
    return True
