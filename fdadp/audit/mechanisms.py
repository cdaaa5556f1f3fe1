"""Audits of the mechanisms of the additive regression: what they claim, and what a determined observer finds.

``audit("published")`` breaks the published scheme; ``audit("dp-aff")`` tries the same, and more, on the private fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fdadp.audit.black_box import BlackBoxAudit, black_box_audit
from fdadp.audit.dp_aff import loss_scores, one_run, replay_pairs
from fdadp.audit.one_run import OneRunAudit, one_run_audit
from fdadp.audit.published import COMPONENTS, published_scores
from fdadp.audit.replay import ReplayAudit, replay_audit
from fdadp.errors import InputError
from fdadp.privacy.account.gaussian_dp import mu_from

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MECHANISMS = ("published", "dp-aff")


@dataclass(frozen=True)
class MechanismAudit:
    """What the audits of one mechanism found.

    Attributes
    ----------
    mechanism : str
    black_box : dict of int to BlackBoxAudit
        By number of persons.
    replay : ReplayAudit or None
    one_run : OneRunAudit or None
    """

    mechanism: str
    black_box: dict[int, BlackBoxAudit]
    replay: ReplayAudit | None = None
    one_run: OneRunAudit | None = None

    @property
    def passed(self) -> bool:
        """Whether every claim stands."""
        others = [a.passed for a in (self.replay, self.one_run) if a is not None]
        return all([a.passed for a in self.black_box.values()] + others)

    def plot(self, *, axes: Any = None) -> Figure:
        """Histograms of the scores on both sides, and of the exact losses where tapes were replayed.

        Parameters
        ----------
        axes : array_like of Axes, optional
            One for each number of persons, and one for the replays.

        Raises
        ------
        InputError
            Nothing to draw, or too few axes.
        """
        from fdadp.audit._picture import picture

        return picture(self, axes)

    def __str__(self) -> str:
        lines = [f"{self.mechanism}: {'no violation found' if self.passed else 'VIOLATION: the claim is false'}"]
        lines += [str(a) for a in (self.replay, self.one_run) if a is not None]
        lines += [f"n = {n}, {a}" for n, a in self.black_box.items()]
        return "\n  ".join("\n".join(lines).split("\n"))


def audit(
    mechanism: str,
    n: int | tuple[int, ...] | None = None,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    draws: int | None = None,
    tapes: int = 60,
    level: float = 0.95,
    seed: int = 0,
    progress: bool = False,
) -> MechanismAudit:
    """Audit a mechanism on simulated curves with one extreme, but legal, person among them.

    Parameters
    ----------
    mechanism : {"published", "dp-aff"}
    n : int or tuple of int, optional
        Numbers of persons; default 35 and 100, or 100 for ``"dp-aff"``.
    epsilon : float, optional
        Claimed in total. Default 0.6 (three components of 0.2), or 1 for ``"dp-aff"``.
    delta : float
        Claimed; 0: pure ε.
    draws : int, optional
        Outputs on each side of the black-box audit; default 20,000, or 40 for ``"dp-aff"``, where each takes two fits.
    tapes : int
        Of the replay audit of ``"dp-aff"``.
    level : float
        Confidence of lower bounds.
    seed : int
    progress : bool
        Show progress bars.

    Returns
    -------
    MechanismAudit

    Raises
    ------
    InputError
        Unknown mechanism or nonsensical numbers.

    Examples
    --------
    >>> found = audit("published", n=35, draws=50)
    >>> found.black_box[35].found > found.black_box[35].epsilon  # it costs more than it claims
    True
    """
    if mechanism not in MECHANISMS:
        raise InputError(f"mechanism must be one of {', '.join(MECHANISMS)}, got {mechanism!r}")
    published = mechanism == "published"
    if n is None:
        n = (35, 100) if published else (100,)
    sizes = (n,) if isinstance(n, int) else tuple(n)
    claim = (0.6 if published else 1.0) if epsilon is None else epsilon
    draws = (20_000 if published else 40) if draws is None else draws
    if min(sizes, default=0) < 20 or not claim > 0 or not 0 <= delta < 1 or draws < 20 or tapes < 1:
        raise InputError(
            f"n must be at least 20, epsilon above 0, delta in [0, 1), draws at least 20 and tapes at least 1, got "
            f"n={n}, epsilon={claim}, delta={delta}, draws={draws}, tapes={tapes}"
        )
    mu = None if published or not delta else mu_from(claim, delta)  # what the fit spends in Gaussian DP
    results = {}
    for size in sizes:
        if published:
            present, absent = published_scores(size, epsilon=claim / COMPONENTS, draws=draws, seed=seed)
        else:
            present, absent = loss_scores(
                size, epsilon=claim, delta=delta or None, draws=draws, seed=seed, progress=progress
            )
        results[size] = black_box_audit(present, absent, epsilon=claim, delta=delta, mu=mu, level=level)
    if published:
        return MechanismAudit(mechanism, results)
    included, scores = one_run(max(sizes), epsilon=claim, delta=delta or None, seed=seed)
    return MechanismAudit(
        mechanism,
        results,
        replay_audit(replay_pairs(tapes, seed=seed, progress=progress), seed=seed),
        one_run_audit(included, scores, epsilon=claim, delta=delta, level=level),
    )
