"""Figures of a certificate: odds, what releases cost when they are added up again, and accuracy.

What a guarantee means for one person: what anybody may conclude, odds, and tests of an attacker.

Everything compares two worlds: the one in which the person's data are in, and the one in which they were left out.
That holds for everybody, whatever they believe or know besides. Odds are said of somebody who knows all other persons'
data: to others, one person's data may be tied to another's. Proofs: ``docs/theory/accounting.md#odds``; Kasiviswanathan
& Smith 2014 (doi:10.29012/jpc.v6i1.634), Wasserman & Zhou 2010 (doi:10.1198/jasa.2009.tm08651), Kifer &
Machanavajjhala 2011 (doi:10.1145/1989323.1989345).

What releases spent, added up by somebody else: Google's dp_accounting, where it is installed.

A certificate states ε as Gaussian differential privacy gives it, exactly but for rounding up. Privacy loss
distributions (Sommer, Meiser & Mohammadi 2019, doi:10.2478/popets-2019-0029; here by "connecting the dots", Doroshenko,
Ghazi, Kamath, Kumar & Manurangsi 2022, arXiv:2207.04380) reach the same number without it: by convolving, release by
release, on a lattice of losses. Their ε is never below the truth, and above it by less than :data:`ABOVE`.

How accurate what was released is: what planners expected, and what models say of themselves by released values.

Whether a ledger adds up: what its noise costs against what is written, and the sum against ε and δ.
"""

from __future__ import annotations

import functools
import math
import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

from fdadp.errors import PrivacyError
from fdadp.files.container import sealed
from fdadp.privacy.account._book import Release
from fdadp.privacy.account.accounting import delta_from_mu, epsilon_from

if TYPE_CHECKING:
    from fdadp.privacy.account.ledger import Ledger

PRIORS = (0.01, 0.1, 0.5)
"""Probabilities before the release, for tables."""
FALSE_ALARMS = 0.05
"""Of the tests whose power is said."""
SPARE = math.log(1.1)
"""Added to ε where nothing but one pair (ε, δ) is known: the exceptions are then finite in probability."""
POINTS = 400
"""Values of ε' among which the smallest bound is looked for; each is a bound."""


@dataclass(frozen=True)
class Odds:
    """What somebody who knows all other persons' data can learn of one person.

    Attributes
    ----------
    factor : float
        The odds that the person took part change at most by this factor. Under "replace": the odds between two values
        of the person's data.
    exception : float
        Probability of all outcomes together in which they change more, up or down; 0 in pure ε.
    power : float
        Of the best test of whether a person's data are in, which raises a false alarm in one case of twenty.
    values_factor, values_exception : float
        The same of the odds between two values of the person's data. They are two steps apart where neighbours differ
        by a person's presence, and one step under "replace".
    """

    factor: float
    exception: float
    power: float
    values_factor: float
    values_exception: float

    @staticmethod
    def after(prior: float, factor: float) -> tuple[float, float]:
        """Least and largest probability after the release of what had probability `prior` before it."""
        return prior / (prior + (1 - prior) * factor), prior * factor / (prior * factor + 1 - prior)


def odds_of(epsilon: float, delta: float | None, mu: float | None, adjacency: str = "zero-out") -> Odds:
    """What (ε, δ) means, or μ where the guarantee is in Gaussian DP.

    Parameters
    ----------
    epsilon : float
    delta : float or None
        None: pure ε.
    mu : float or None
    adjacency : {"zero-out", "add-remove", "replace"}
        How neighbours differ.

    Notes
    -----
    Let P and Q be the laws of all releases in two worlds, and δ(·) a curve of the guarantee. The outcomes S that are
    more than e^ε times as probable under P have ``P(S) <= δ(ε')/(1 - e^(ε' - ε))`` for each ε' below ε. So have, under
    Q, those that are more than e^ε times as probable under Q, and under P e^-ε of that: (1 + e^-ε) times the bound
    covers both sides. Two steps cost 2ε, (2ε, (1 + e^ε) δ), or 2μ. The power at level α is at most
    ``min(e^ε α + δ, 1 - e^-ε (1 - α - δ))``, and Φ(Φ⁻¹(α) + μ) in Gaussian DP.

    Examples
    --------
    >>> pure = odds_of(0.5, None, None)
    >>> round(pure.factor, 2), pure.exception, [round(p, 3) for p in pure.after(0.1, pure.factor)]
    (1.65, 0.0, [0.063, 0.155])
    >>> round(pure.values_factor, 2)
    2.72
    """
    steps = 1 if adjacency == "replace" else 2
    alpha = FALSE_ALARMS
    if delta is None:
        return Odds(math.exp(epsilon), 0.0, _power(alpha, epsilon, 0.0), math.exp(steps * epsilon), 0.0)
    if mu is None:
        apart = delta if steps == 1 else delta * (1 + math.exp(epsilon))
        one, values = _of_pair(epsilon, delta), _of_pair(steps * epsilon, apart)
        return Odds(*one, _power(alpha, epsilon, delta), *values)
    from scipy.special import ndtr, ndtri

    one, values = (_of_curve(k * epsilon, partial(delta_from_mu, k * mu)) for k in (1, steps))
    return Odds(*one, float(ndtr(ndtri(alpha) + mu)), *values)


def _of_pair(epsilon: float, delta: float) -> tuple[float, float]:
    """Factor and exception where one pair alone is known."""
    return math.exp(epsilon + SPARE), _both_sides(delta / -math.expm1(-SPARE), epsilon + SPARE)


def _of_curve(epsilon: float, curve: Callable[[float], float]) -> tuple[float, float]:
    """Factor and exception where δ is known at each ε."""
    smaller = (epsilon * i / POINTS for i in range(POINTS))
    return math.exp(epsilon), _both_sides(min(curve(e) / -math.expm1(e - epsilon) for e in smaller), epsilon)


def _both_sides(one: float, epsilon: float) -> float:
    return min(one * (1 + math.exp(-epsilon)), 1.0)


def _power(alpha: float, epsilon: float, delta: float) -> float:
    return min(math.exp(epsilon) * alpha + delta, 1 - math.exp(-epsilon) * (1 - alpha - delta))


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
    kinds = Counter((r.noise.partition(",")[0], r.sensitivity / r.scale) for r in releases)
    known = ("Gaussian", "Laplace") if delta is not None else ("Laplace",)
    if not 0 < len(kinds) <= MOST or any(r.delta is not None for r in releases):
        return None
    if any(kind not in known for kind, _ in kinds):
        return None
    found = _recounted_epsilon(tuple(sorted(kinds.items())), delta, spent)
    if found is not None and found > spent + ABOVE * max(1.0, spent):
        raise PrivacyError(
            f"releases must cost what is said, epsilon {spent:.9g}, got {found:.9g} by dp_accounting's privacy loss "
            "distributions: this is an error in the program; certify nothing, and report it"
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


class Expected(Protocol):
    """A forecast, as :func:`fdadp.plan` makes it from public values alone."""

    @property
    def n(self) -> int:
        """Number of persons that it is for."""

    @property
    def epsilon(self) -> float:
        """ε of the fit that it is for."""

    @property
    def delta(self) -> float | None:
        """δ of the fit that it is for."""

    @property
    def mechanism(self) -> str:
        """Name of the mechanism that it is for, as ledgers have it."""

    @property
    def sentence(self) -> str:
        """What is expected."""


def expected_lines(
    forecasts: Sequence[Expected], n: int | None, delta: float | None, fits: Sequence[tuple[str, float]]
) -> list[str]:
    """What was expected of fits before they were made.

    Parameters
    ----------
    forecasts : sequence
    n : int or None
        Number of persons, where it is public.
    delta : float or None
    fits : sequence of (str, float)
        Mechanism and ε of each.

    Raises
    ------
    PrivacyError
        A forecast is of other settings than any fit.
    """
    for f in forecasts:
        there = any(f.mechanism == name and math.isclose(f.epsilon, epsilon, rel_tol=1e-6) for name, epsilon in fits)
        if not there or f.delta != delta or n not in (None, f.n):
            raise PrivacyError(
                f"forecasts must be of fits that are certified ({f.mechanism}), with their n, epsilon and delta, got: "
                f"{f.sentence}"
            )
    return [f"Expected before the fit: {f.sentence}" for f in forecasts]


def model_lines(path: str | os.PathLike[str]) -> list[str]:
    """What a model's file says of itself, from released values."""
    found = sealed(path)
    name, notes, r2 = os.path.basename(path), found.content.get("notes") or (), found.content.get("r2")
    lines = [f"{name}: {note}" for note in notes]
    if isinstance(r2, float) and math.isfinite(r2):
        lines.insert(0, f"{name}: explains {r2:.0%} of the variance, as released")
    return lines


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
    whole = [r for r in ledger.releases if r.delta is not None]
    if whole:
        if len(ledger.releases) > 1 or (whole[0].epsilon or math.inf) > epsilon or (whole[0].delta or 0) > (delta or 0):
            found.append("a release that takes a whole budget is not alone in it, or is larger")
    elif delta is None:
        if math.fsum(r.epsilon or math.inf for r in ledger.releases) > epsilon:
            found.append("the releases cost more than epsilon")
    elif all(r.mu is not None for r in ledger.releases):
        mu = math.sqrt(math.fsum((r.mu or 0.0) ** 2 for r in ledger.releases))
        if mu > 0 and delta_from_mu(mu, epsilon) > delta * (1 + COST_SLACK):
            found.append("the releases cost more than epsilon and delta")
    elif epsilon_from(math.fsum(r.rho or math.inf for r in ledger.releases), delta) > epsilon * (1 + COST_SLACK):
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
