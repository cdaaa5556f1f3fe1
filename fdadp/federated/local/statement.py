"""The guarantee of a local regression for each user, as a ledger."""

from __future__ import annotations

import math
from typing import Any

from fdadp._common.promised import promised
from fdadp.federated.local.parameters import LocalParameters
from fdadp.federated.local.shuffle import shuffled_epsilon
from fdadp.federated.local.signs import CondensedLocal
from fdadp.privacy import Ledger, Release
from fdadp.privacy.account.accounting import epsilon_from
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
        f"only the shuffled reports, {users} in a round (Feldman et al. 2021, Theorem 3.2)"
    )
