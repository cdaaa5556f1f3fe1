"""Survival from private counts: Kaplan and Meier's curve by intervals of time, with limits; two groups compared.

What is released, and why it is private: ``docs/theory/summaries.md#survival``.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.summaries.cohort_of_columns import (
    Estimates,
    Row,
    answer_to,
    check,
    codes_table,
    declared_n,
    level_list,
    open_cohort,
)
from fdadp.summaries.means_quantiles_counts import edge_list
from fdadp.summaries.questions.column_questions import TINY, AskCells, NoisyEstimate

if TYPE_CHECKING:
    from fdadp.privacy import Privacy

MOST_INTERVALS = 500
LARGEST_HAZARD = 0.999
WIDEST = 50.0
"""Largest half width on the scale of log(-log S), for times at which noise is all there is."""


def private_survival(
    X: Any,
    time: str,
    event: str,
    *,
    edges: Sequence[float],
    by: Mapping[str, Sequence[Hashable]] | None = None,
    privacy: Privacy,
    groups: Any = None,
    level: float = 0.95,
) -> Estimates:
    """Survival curve (Kaplan and Meier 1958) from one private histogram, with limits; also by group.

    Parameters
    ----------
    X : data frame, mapping of columns, table that was opened, or array_like of time, event and perhaps the group
    time, event : name of a column
        How long each person was seen, and whether that ended with the event (1 or True) or not (0 or False: censored).
    edges : sequence of float
        Public, increasing: where time begins, and the ends of intervals. Survival is estimated at the ends. Times
        beyond the last one count as censored there, times before the first one as missing.
    by : mapping of one column to its public classes, optional
        A curve for each class. Of two classes also the differences, and the log-rank test.
    privacy : Privacy
        The guarantee.
    groups : array_like of shape (n,), optional
        Person of each row; else each row is a person.
    level : float
        Of the limits, which hold noise and sampling.

    Returns
    -------
    Estimates
        Rows ``("survival", end)``, or ``(class, "survival", end)``; of two classes also ``("difference", "survival",
        end)``, the first less the second, and ``("difference", "log-rank z", last end)``.

    Raises
    ------
    InputError, PrivacyError
        A setting is missing or wrong. Nothing was read or spent.

    Notes
    -----
    Each person adds one unit to one of 2K + 1 cells: sensitivity 1. In interval k, d_k events and q_k censored, the
    hazard is d_k over the number at risk less q_k/2 (actuarial). Limits are on the scale of log(-log S); the variance
    is Greenwood's and that of the known noise, which reaches S through events and through all later numbers at risk.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from fdadp import Privacy
    >>> from fdadp.summaries import private_survival
    >>> rng = np.random.default_rng(0)
    >>> t, c = rng.exponential(10, 2000), rng.uniform(5, 20, 2000)
    >>> people = pd.DataFrame({"months": np.minimum(t, c), "died": t <= c})
    >>> found = private_survival(
    ...     people, "months", "died", edges=range(0, 13), privacy=Privacy(1.0, n=2000, random_state=0)
    ... )
    >>> bool(abs(found.frame.loc[("survival", 10.0), "value"] - np.exp(-1)) < 0.05)
    True
    """
    check(privacy, level)
    cuts = survival_edges(edges)
    if by is not None and (not isinstance(by, Mapping) or len(by) != 1):
        raise InputError(f"by must be the classes of one column by its name, got {by!r}")
    classes = {name: level_list(own, f"by[{name!r}]") for name, own in (by or {}).items()}
    facts: dict[str, Any] = {time: (float(cuts[0]), float(cuts[-1])), event: [0, 1], **classes}
    if len(facts) < 2 + len(classes):
        raise InputError(f"time, event and by must be different columns, got {time!r}, {event!r} and {by!r}")
    privacy.hold(classes.items())
    names: list[Any] = next(iter(classes.values()), [None])
    public = {"edges": cuts.tolist(), **({"by": {str(name): own for name, own in classes.items()}} if classes else {})}
    cohort = open_cohort(privacy, {"X": X}, codes_table(X, facts), groups, "private survival", public)
    K = cuts.size - 1
    cells = 2 * K + 1

    def code(block: tuple[Any, ...]) -> FloatArray:
        """Of an event 0 to K - 1, censored K to 2K - 1, seen beyond the last edge 2K; each group's after another's."""
        t, died = block[0][:, 0], block[0][:, 1]
        at = np.searchsorted(cuts[1:], t, side="left")
        out = np.where(at >= K, 2 * K, np.where(died == 1, at, K + at))
        known = (t >= cuts[0]) & np.isfinite(died)
        if by is not None:
            out = out + cells * block[0][:, 2]
            known &= np.isfinite(block[0][:, 2])
        return np.where(known, out, np.nan)

    n = declared_n(cohort)
    found = answer_to(cohort, AskCells(cells * len(names), n, pure=cohort.pure), "events and censored times", code)
    counts = found.counts[:-1].reshape(len(names), cells)
    total = None if n is None or by is not None else n - float(found.counts[-1])
    curves = [SurvivalCounts.of(own, found.sd * math.sqrt(found.copies), total) for own in counts]
    rows = partial(_rows, curves, cuts[1:], names if by is not None else None)
    return Estimates("survival", cohort.ledger, rows, level)


def survival_edges(edges: Any) -> FloatArray:
    """Where time begins and the ends of intervals, (K + 1,); raises InputError where they are wrong or too many."""
    cuts = edge_list(edges)
    if cuts.size - 1 > MOST_INTERVALS:
        raise InputError(f"edges must make at most {MOST_INTERVALS} intervals, got {cuts.size - 1}")
    return cuts


@dataclass(frozen=True)
class SurvivalCounts:
    """Noisy events d and censored q of K intervals, and numbers at risk that are linear in them.

    Attributes
    ----------
    d, q, risk : ndarray of shape (K,)
        `risk` at the start of each interval, less half of its censored.
    through_d, through_rest : ndarray of shape (K, K), (K,)
        Derivatives of `risk`; the last one by the two counts outside (beyond the last edge, missing): its norm.
    sd : float
        Of the noise in each count.
    """

    d: FloatArray
    q: FloatArray
    risk: FloatArray
    through_d: FloatArray
    through_rest: FloatArray
    sd: float

    @classmethod
    def of(cls, counts: FloatArray, sd: float, total: float | None) -> SurvivalCounts:
        """From counts (2K + 1,), and the persons there are in all where their number is known but for one noise.

        Who is at risk is counted from both ends where the total is known: all less those who left before, and those
        who leave later; the mean weighs them by their noise.
        """
        K = (counts.size - 1) // 2
        d, q, beyond = counts[:K], counts[K : 2 * K], float(counts[2 * K])
        k = np.arange(K)
        later = beyond + np.cumsum((d + q)[::-1])[::-1]
        weight = np.zeros(K)  # of the count from the start
        risk = later
        if total is not None:
            from_start, from_end = 2.0 * k + 1, 2.0 * (K - k) + 1
            weight = from_end / (from_start + from_end)
            before = total - np.concatenate(([0.0], np.cumsum(d + q)[:-1]))
            risk = weight * before + (1 - weight) * later
        both = (1 - weight)[:, None] * (k[None] >= k[:, None]) - weight[:, None] * (k[None] < k[:, None])
        rest = np.sqrt((1 - weight) ** 2 + weight**2)
        return cls(d, q, np.maximum(risk - q / 2, 1.0), both, rest, sd)

    @property
    def through_q(self) -> FloatArray:
        """Derivatives of `risk` by the censored, (K, K): who is censored in an interval is at risk for half of it."""
        return self.through_d - np.eye(self.d.size) / 2

    @property
    def hazard(self) -> FloatArray:
        """Share of those at risk with an event in each interval, (K,)."""
        return np.clip(self.d / self.risk, 0.0, LARGEST_HAZARD)

    @property
    def survival(self) -> FloatArray:
        """At the end of each interval, (K,)."""
        return np.asarray(np.cumprod(1 - self.hazard), dtype=np.float64)

    @property
    def log_variance(self) -> FloatArray:
        """Variance of log survival: Greenwood's, and the known noise by the delta method."""
        h, K = self.hazard, self.d.size
        inverse = 1 / np.maximum(self.risk * (1 - h), 1.0)
        through = np.tril(np.ones((K, K))) * (h * inverse)
        of_d = through @ self.through_d - np.tril(np.ones((K, K))) * inverse
        of_q, of_rest = through @ self.through_q, through @ self.through_rest
        noise = self.sd**2 * ((of_d**2).sum(axis=1) + (of_q**2).sum(axis=1) + of_rest**2)
        return np.asarray(np.cumsum(h * inverse) + noise)

    def limits(self, level: float) -> list[NoisyEstimate]:
        """Survival with limits on the scale of log(-log S)."""
        below = np.maximum(-np.log(self.survival), 1e-9)
        half = np.exp(np.minimum(float(ndtri((1 + level) / 2)) * np.sqrt(self.log_variance) / below, WIDEST))
        low, high = np.exp(-below * half), np.exp(-below / half)
        noise = self.survival * self.sd * math.sqrt(2) / self.risk
        return [NoisyEstimate(*map(float, row)) for row in zip(self.survival, low, high, noise, strict=True)]


def difference(one: SurvivalCounts, other: SurvivalCounts, level: float) -> list[NoisyEstimate]:
    """Survival of one less that of another, normal limits within [-1, 1]."""
    value = one.survival - other.survival
    sd = np.sqrt(sum(of.survival**2 * of.log_variance for of in (one, other)))
    half = float(ndtri((1 + level) / 2)) * sd
    return [
        NoisyEstimate.about(float(v), float(h), (-1.0, 1.0), float(s)) for v, h, s in zip(value, half, sd, strict=True)
    ]


def log_rank(one: SurvivalCounts, other: SurvivalCounts) -> float:
    """Standard normal statistic of equal hazards (Mantel 1966), the noise of the counts in its variance."""
    d, risk = one.d + other.d, one.risk + other.risk
    share = one.risk / risk
    moved = np.maximum(d, 0.0) / risk
    finite = np.clip((risk - d) / np.maximum(risk - 1, 1.0), 0.0, 1.0)
    variance = float((np.maximum(d, 0.0) * share * (1 - share) * finite).sum())
    for of, own in ((one, 1 - share), (other, share)):  # derivatives by all counts of a group, but for a common sign
        by_risk = own * moved
        parts = (own - by_risk @ of.through_d, by_risk @ of.through_q, np.atleast_1d(by_risk @ of.through_rest))
        variance += of.sd**2 * sum(float(part @ part) for part in parts)
    return float((one.d - share * d).sum()) / math.sqrt(max(variance, TINY))


def _rows(
    curves: list[SurvivalCounts], ends: FloatArray, names: list[Any] | None, level: float, sampling: bool
) -> list[Row]:
    if names is None:
        return [(("survival", float(t)), e, True) for t, e in zip(ends, curves[0].limits(level), strict=True)]
    rows: list[Row] = []
    for name, curve in zip(names, curves, strict=True):
        rows += [((name, "survival", float(t)), e, True) for t, e in zip(ends, curve.limits(level), strict=True)]
    if len(curves) == 2:
        apart = difference(curves[0], curves[1], level)
        rows += [(("difference", "survival", float(t)), e, True) for t, e in zip(ends, apart, strict=True)]
        z, half = log_rank(curves[0], curves[1]), float(ndtri((1 + level) / 2))
        rows.append(
            (("difference", "log-rank z", float(ends[-1])), NoisyEstimate(z, z - half, z + half, math.nan), True)
        )
    return rows
