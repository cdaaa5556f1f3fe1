"""The guarantee of a local regression for each user, as a ledger.

*Privacy amplification by shuffling*: the central guarantee of local reports whose senders a trusted shuffler removed.

Whatever the n reports of one round are, as long as all come from one ε0-locally private mechanism, exchanging one
user's record changes the shuffled reports by no more than (A + Δ, C - A + 1 - Δ) differs from (A + 1 - Δ, C - A + Δ).
Here C ~ Bin(n - 1, 2/(e^ε0 + 1)) counts the reports that might be anybody's, A ~ Bin(C, ½), and Δ ~
Bernoulli(e^ε0/(e^ε0 + 1)). Proof: ``docs/theory/federated.md#shuffling``. For each value of C the two sides are
mixtures of binomials shifted by one, whose likelihood ratio grows with the first count, so that their divergence is a
difference of two tail probabilities. It is summed over C numerically, and every step rounds up.

References
----------
Feldman, McMillan & Talwar (2023), Stronger privacy amplification by shuffling, SODA, arXiv:2208.04591; they had
e^-ε0 for 2/(e^ε0 + 1) in 2021 (Hiding among the clones, FOCS, arXiv:2012.12803).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fdadp._common.argument_checks import whole
from fdadp._common.guarantee_in_words import promised
from fdadp._common.typing import FloatArray, IntArray
from fdadp.federated.local_dp.gradient_randomizers import CondensedLocal
from fdadp.federated.local_dp.parameters_and_server import LocalParameters
from fdadp.learners.shared.public_inputs import positive
from fdadp.privacy import Ledger, Release
from fdadp.privacy.account.epsilon_mu_rho import bisected, epsilon_from
from fdadp.privacy.noise.sources import NOT_PROVED

_NOT_COVERED = (
    "who takes part, in which round, and how many (public here)",
    "timing, addresses and other traffic of a client",
    "several records of one person, or several fits: their epsilon adds up",
    "bounds, classes or settings that were chosen by looking at these records",
    "fit() itself, which plays all users and the server in one process: whoever runs it holds the records",
)


def user_guarantee(params: LocalParameters, delta: float | None) -> float:
    """ε of all reports of one user together: they add up; with a δ, by zCDP where that is less."""
    mechanism, times = params.randomizer, params.reports_per_user
    pure = times * mechanism.epsilon
    return pure if delta is None else min(pure, epsilon_from(times * mechanism.rho, delta))


def ledger(params: LocalParameters, users: int, delta: float | None, *, shuffle_delta: float, secure: bool) -> Ledger:
    """Ledger of a local regression with so many reports a round."""
    mechanism = params.randomizer
    total, pure = user_guarantee(params, delta), params.reports_per_user * mechanism.epsilon
    promise = promised(total, delta if total < pure else None)
    text = (
        f"Local model: each user randomises before anything leaves the device. All that the server, or anyone else, "
        f"sees of one user is ({promise})-differentially private for any two records of that user, whatever the server "
        f"sends. "
        f"Not covered: {'; '.join(_NOT_COVERED)}."
    )
    if not secure:
        text += " NOT FOR RELEASE: the users' coins were seeded, for simulation, and can be undone."
    if not mechanism.proved:
        text += " NOT FOR RELEASE: that the directions drawn in floating point have exactly their law is not proved."
    return Ledger(
        mechanism="LDPLogisticRegression",
        private=True,
        statement=text,
        releases=[_release(params, pure, secure)],
        for_release=secure and mechanism.proved,
        details=_details(params, users, delta, shuffle_delta),
        epsilon=total,
        delta=delta if delta is not None and total < pure else None,
    )


def _details(params: LocalParameters, users: int, delta: float | None, shuffle_delta: float) -> dict[str, Any]:
    """What the ledger says beside the guarantee."""
    mechanism, times = params.randomizer, params.reports_per_user
    total, pure = user_guarantee(params, delta), times * mechanism.epsilon
    details: dict[str, Any] = {
        "draws (docs/theory/noise.md#exactness)": "exact" if mechanism.proved else NOT_PROVED,
        "model": "local; adjacency: any two records of one user",
        "mechanism": f"{params.mechanism}: {mechanism.noise}",
        "epsilon_LDP of one report": mechanism.epsilon,
        "reports of one user": times,
        "epsilon_LDP of one user, pure": pure,
        "zCDP of one user": times * mechanism.rho,
    }
    if delta is not None:
        details["epsilon_LDP of one user at delta"] = f"{total:.6g} at {delta:g} (the least of pure and zCDP)"
    if isinstance(mechanism, CondensedLocal):
        details |= _condensed(params, mechanism)
    details["if a trusted shuffler takes the senders off"] = _shuffled(params, users, shuffle_delta)
    details |= {
        "users in a round (the smallest)": users,
        "rounds": params.n_rounds,
        "bytes of a report": f"{mechanism.width}: {mechanism.format}",
        "public": f"classes {list(params.classes)!r}, bounds {list(params.low)!r} to {list(params.high)!r}, "
        f"step size {params.lr:.4g}, ball of radius {params.radius:g}",
    }
    return details


def _release(params: LocalParameters, pure: float, secure: bool) -> Release:
    """All reports of one user, as one release."""
    mechanism, times = params.randomizer, params.reports_per_user
    signs = params.mechanism in ("cldp", "one_coordinate")
    D = mechanism.dimensions
    return Release(
        name="gradient of each user" + ("" if times == 1 else f", {times} times"),
        size=D,
        noise=mechanism.noise,
        scale=mechanism.length,
        sensitivity=2.0 if signs else 2 * math.sqrt(D),
        epsilon=pure,
        sd=mechanism.length / math.sqrt(D),
        clip=1.0 if signs else math.sqrt(D),
        norm="Linf" if signs else "L2",
        adjacency="replace",
        unit="record of one user",
        secure=secure,
        draw=("exact" if mechanism.proved else NOT_PROVED) if secure else "",
    )


def _condensed(params: LocalParameters, mechanism: CondensedLocal) -> dict[str, Any]:
    alpha = mechanism.kappa * (2 if params.half_exponent else 1)
    reading = "kappa = alpha/2, as published" if params.half_exponent else "kappa = alpha"
    return {
        "kappa": mechanism.kappa,
        "condensed-local claim": f"alpha = {alpha:g} ({reading}), for the metric Hamming distance between the "
        f"{mechanism.dimensions} signs that a gradient is rounded to: records whose signs differ in h places are told "
        f"apart by at most epsilon = {mechanism.kappa:g} h",
        "what that claim leaves out": f"records far apart in this metric: with all {mechanism.dimensions} signs "
        f"different it is epsilon = {mechanism.epsilon:g}, which is why epsilon_LDP is given",
    }


def _shuffled(params: LocalParameters, users: int, delta: float) -> str:
    """Central guarantee if the reports are shuffled, in words."""
    times = params.reports_per_user
    one = shuffled_epsilon(params.randomizer.epsilon, users, delta / times)
    return (
        f"central epsilon = {times * one:.4g} at delta = {delta:g} for exchanging one record, against those who see "
        f"only the shuffled reports, {users} in a round (Feldman et al. 2023)"
    )


_BLOCKS = 2000
"""Groups of values of C: the smallest stands for its group, for fewer clones hide less."""
_TAIL = 1e-6
"""Part of δ that values of C may have that are not looked at; it is added."""
_FEWER = 1 - 2.0**-50
"""Factor on the share of clones: with its own rounding it is never above the exact one, and fewer clones hide less."""
_ROUNDING = 1e-9
"""Relative error of a sum of probabilities, and 10^6 times the absolute one of a weight; SciPy's are far below."""


def shuffled_delta(epsilon0: float, n: int, epsilon: float, *, tail: float = 1e-30) -> float:
    """δ with which n reports of ε0 are (ε, δ)-private once they are shuffled, from above.

    Parameters
    ----------
    epsilon0, n
        As of :func:`shuffled_epsilon`.
    epsilon : float
        At least 0.
    tail : float
        Probability on either side that the number of clones may have, instead of which all is taken for lost.

    Returns
    -------
    float
    """
    from scipy.stats import binom

    if epsilon >= epsilon0:
        return 0.0
    others, clone = n - 1, 2 / (math.exp(epsilon0) + 1) * _FEWER
    least, most = (int(k) for k in (binom.ppf(tail, others, clone), binom.isf(tail, others, clone)))
    least, most = max(least - 1, 0), min(most + 1, others)
    edges = np.unique(np.linspace(least, most + 1, _BLOCKS + 1).astype(np.int64))
    below, above = binom.cdf(edges - 1, others, clone), binom.sf(edges - 1, others, clone)
    weights = np.where(below[1:] < 0.5, np.diff(below), -np.diff(above)) + 1e-6 * _ROUNDING
    inside = float((weights * _divergence(edges[:-1], epsilon0, epsilon)).sum())
    return inside * (1 + _ROUNDING) + float(below[0] + above[-1])


def _divergence(c: IntArray, epsilon0: float, epsilon: float) -> FloatArray:
    """Hockey-stick divergence of order e^ε of the two sides where C = c, from above.

    The first count is larger on one side; the event is that it exceeds ``cut``, from where on the ratio exceeds e^ε.
    """
    from scipy.stats import binom

    truth = 1 / (1 + math.exp(-epsilon0))  # P(Δ = 1)
    part = -math.expm1(-epsilon - epsilon0) / ((1 + math.exp(-epsilon)) * -math.expm1(-epsilon0))
    cut = np.floor((c + 1) * part)
    at_least, more = binom.sf(cut - 1, c, 0.5), binom.sf(cut, c, 0.5)
    one = truth * at_least + (1 - truth) * more
    other = (1 - truth) * at_least + truth * more
    found: FloatArray = np.maximum(one * (1 + _ROUNDING) - math.exp(epsilon) * other, 0.0)
    return found


def shuffled_epsilon(epsilon0: float, n: int, delta: float) -> float:
    """ε of the shuffled reports of one round, for replacing one user's record.

    The smallest ε at which ``shuffled_delta`` is at most δ, or ε0 where that is less. The closed form of Feldman et al.
    (2021), Theorem 3.1, gives four to five times as much, for any number of users.

    Parameters
    ----------
    epsilon0 : float
        ε_LDP of one report.
    n : int
        Users who report in this **one** round, all with the same mechanism.
    delta : float
        In (0, 1).

    Returns
    -------
    float
        Of (ε, δ), in the sense that n is public and one record is exchanged for another. It holds for those who see
        nothing but the shuffled reports: the shuffler must be trusted, and the n users must really take part.

    Raises
    ------
    InputError
        Numbers out of range.

    Examples
    --------
    >>> round(shuffled_epsilon(1.0, 10_000, 1e-6), 3)
    0.043
    """
    positive(epsilon0, "epsilon0", below=700.0)
    positive(delta, "delta", below=1.0)
    n = whole(n, "n")

    def too_much(epsilon: float) -> bool:
        return shuffled_delta(epsilon0, n, epsilon, tail=delta * _TAIL) > delta

    return bisected(too_much, 0.0, float(epsilon0), digits=9)[1]
