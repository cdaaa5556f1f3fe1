"""Audits: what a private procedure gives away, measured from outside. Knows nothing of curves.

* :func:`replay_audit`: the exact privacy loss. The releases of a run on one data set are forced on a run on a neighbour
  (:class:`fdadp.privacy.TapeNoise`); all that an observer sees must then be the same, and the distances of the exact
  sums, in units of the noise, may cost no more than the budget. Finds errors of sensitivity at once.
* :func:`black_box_audit`: a lower bound on ε from scores of many outputs with and without one person.
* :func:`one_run_audit`: a lower bound on ε from one output and many persons who were included by the toss of a coin.

An audit can show that a claim is false; that it finds nothing is no proof. The proofs stand with the kernel.
"""

from __future__ import annotations

import contextlib
import io
import logging
import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.errors import InputError, PrivacyError
from fdadp.privacy._fingerprint import difference, fingerprint
from fdadp.privacy.noise import Noise, OpenDPNoise, SeededNoise
from fdadp.privacy.replay import Loss, TapeEntry, TapeNoise, losses, wishart_delta

__all__ = [
    "BlackBoxAudit",
    "Neighbours",
    "OneRunAudit",
    "ReplayAudit",
    "black_box_audit",
    "one_run_audit",
    "replay_audit",
]


# ------------------------------------------------------------------ replay


@dataclass(frozen=True)
class Neighbours:
    """A procedure, two neighbouring data sets, and what the procedure may spend.

    Attributes
    ----------
    name : str
    run : callable
        From (data, noise) to everything that an observer gets, its ledger included.
    first, second : object
        The data sets: one person deleted, blanked out or replaced.
    total : float
        ρ or ε, in the measure of the releases.
    promise : (float, float), optional
        (ε, δ), wanted where a release is accounted for by itself (Wishart noise): its own δ at this ε takes the place
        of its cost in the measure of the others.
    """

    name: str
    run: Callable[[Any, Noise], Any]
    first: Any = field(repr=False)
    second: Any = field(repr=False)
    total: float
    promise: tuple[float, float] | None = None


@dataclass(frozen=True)
class ReplayAudit:
    """What the replays showed.

    Attributes
    ----------
    ratios : ndarray of shape (tapes,)
        Cost of the exact sums' distances over the budget.
    changes : ndarray of shape (tapes,)
        Largest distance of the exact sums over the declared sensitivity, over the releases of a tape.
    pure_losses : ndarray of shape (tapes,)
        Where ε is pure: the realised loss over ε; else NaN.
    releases : int
    finished : int
        Tapes whose run ended without an error.
    problems : tuple of str
        What differed between neighbours, or cost too much.
    worst_map : float
        Largest privacy map of a release, as OpenDP computes it for the scale on the tape, over the release's share.
    """

    ratios: FloatArray
    changes: FloatArray
    pure_losses: FloatArray
    releases: int
    finished: int
    problems: tuple[str, ...] = ()
    worst_map: float = math.nan

    @property
    def passed(self) -> bool:
        """Whether nothing was found."""
        return not self.problems

    def __str__(self) -> str:
        worst = f"worst loss/budget {self.ratios.max():.6f}, worst change/sensitivity {self.changes.max():.6f}"
        verdict = "same sequence, output, ledger, warnings and errors" if self.passed else "VIOLATION"
        lines = [
            f"replay audit: {verdict}; {len(self.ratios)} tapes ({self.finished} to the "
            f"end), {self.releases} releases, {worst}, worst OpenDP map/share {self.worst_map:.9f}"
        ]
        lines += [f"  {text}" for text in self.problems[:5]]
        if len(self.problems) > 5:
            lines.append(f"  and {len(self.problems) - 5} more")
        return "\n".join(lines)


def replay_audit(pairs: Iterable[Neighbours], *, seed: int = 0) -> ReplayAudit:
    """Measure the exact privacy loss on one tape a pair, and require that nothing else differs.

    The tape comes from either data set in turn, with seeded noise. Compared are the sequence of releases (kind, size,
    sensitivity, scale, amount), and what :func:`fdadp.privacy._fingerprint.fingerprint` sees of the result, bit for
    bit: arrays, numbers, texts, what functions close over; the ledger (names, clips, sd, shares) if it is part of it;
    warnings, log records, what was printed, and the error if there was one, with all that it hangs on and keeps alive.

    Parameters
    ----------
    pairs : iterable of Neighbours
    seed : int

    Returns
    -------
    ReplayAudit

    Raises
    ------
    InputError
        No pairs.

    Notes
    -----
    *Budget.* Along any fixed sequence of outputs the losses of adaptive releases add up. For zCDP the sum of
    ``|q(D) - q(D')|²/(2 σ²)`` must not exceed ρ, for pure ε the sum of ``|q(D) - q(D')|₁/b`` not ε; both are exact here
    (integers), whatever was drawn. Besides, OpenDP's own map at the scale of each release must not exceed its share.

    Examples
    --------
    >>> from fdadp.privacy import Budget, Cohort
    >>> def total(rows, noise):
    ...     cohort = Cohort(rows, budget=Budget(1.0), n=3, noise=noise)
    ...     return cohort.sum(lambda r: r[0], clip=2.0, share=1.0, name="sum").value, cohort.ledger
    >>> rows = np.array([[0.5], [9.0], [-1.0]])
    >>> audit = replay_audit([Neighbours("delete", total, rows, rows[[0, 2]], total=1.0)])
    >>> audit.passed, bool(0.99 < audit.ratios.max() <= 1)
    (True, True)
    """
    ratios, changes, pure_losses, maps, problems = [], [], [], [], []
    releases = finished = 0
    for number, pair in enumerate(pairs):
        order = (pair.first, pair.second) if number % 2 else (pair.second, pair.first)
        tape = TapeNoise(SeededNoise(np.random.default_rng([seed, number])))
        seen = _observe(pair.run, order[0], tape)
        finished += seen["error"] is None
        again = TapeNoise(tape=tape.entries)
        differs = difference(seen, _observe(pair.run, order[1], again))
        if differs:
            problems.append(f"{pair.name}: {differs}")
        shared = min(len(tape.entries), len(again.entries))
        try:
            each = losses(tape.entries[:shared], again.entries[:shared])
        except PrivacyError as exc:
            problems.append(f"{pair.name}: {exc}")
            each = []
        if len(tape.entries) != len(again.entries):
            problems.append(f"{pair.name}: {len(tape.entries)} and {len(again.entries)} releases")
        releases += len(each)
        maps.append(max(map(_map_over_share, tape.entries), default=0.0))
        if maps[-1] > 1:
            problems.append(f"{pair.name}: OpenDP's map of a release is above its share")
        pure = all(e.kind in ("laplace", "exponential") for e in tape.entries[:shared])
        ratio = _cost(pair, each, tape.entries[:shared], again.entries[:shared])
        realised = abs(math.fsum(x.loss for x in each)) / pair.total if pure else math.nan
        change = max((x.change for x in each), default=0.0)
        if ratio > 1 or realised > 1:
            problems.append(f"{pair.name}: loss/budget {max(ratio, realised if pure else 0):.6f}")
        if change > 1 or any(x.spent > x.amount for x in each):
            problems.append(f"{pair.name}: a change of {change:.6f} times the sensitivity, or a cost above its share")
        ratios.append(ratio)
        changes.append(change)
        pure_losses.append(realised)
    if not ratios:
        raise InputError("pairs must hold at least one pair of neighbours, got none")
    return ReplayAudit(
        np.array(ratios),
        np.array(changes),
        np.array(pure_losses),
        releases,
        finished,
        tuple(problems),
        max(maps),
    )


def _cost(pair: Neighbours, each: list[Loss], one: list[TapeEntry], other: list[TapeEntry]) -> float:
    """Cost of the distances over the budget: sums of ρ or ε, or δ over the promised one for what has its own law."""
    own = [i for i in range(len(each)) if one[i].kind == "wishart"]
    ratio = math.fsum(x.spent for i, x in enumerate(each) if i not in own) / pair.total
    if own and pair.promise is None:
        raise InputError("promise must be (epsilon, delta) for releases that are accounted for by themselves")
    for i in own:
        assert pair.promise is not None
        ratio += wishart_delta(one[i], other[i], pair.promise[0]) / pair.promise[1]
    return ratio


def _map_over_share(entry: TapeEntry) -> float:
    """OpenDP's privacy map over the amount, for the scale on the tape; infinite where OpenDP would add more noise."""
    secure = OpenDPNoise().prepare(entry.kind, entry.size, entry.sensitivity, entry.amount)
    return secure.spent / entry.amount if entry.scale >= secure.scale else math.inf


class _Records(logging.Handler):
    def __init__(self) -> None:
        super().__init__(level=1)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(f"{record.name} {record.levelname} {record.getMessage()}")


def _observe(run: Callable[[Any, Noise], Any], data: Any, noise: Noise) -> dict[str, Any]:
    """Everything that comes out of a run."""
    out, err, records = io.StringIO(), io.StringIO(), _Records()
    result, error = None, None
    logging.getLogger().addHandler(records)
    try:
        with (
            warnings.catch_warnings(record=True) as caught,
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            warnings.simplefilter("always")
            try:
                result = run(data, noise)
            except Exception as exc:
                error = fingerprint(exc, given=data)
    finally:
        logging.getLogger().removeHandler(records)
    return {
        "error": error,
        "result": fingerprint(result),
        "warnings": [f"{w.category.__name__}: {w.message}" for w in caught],
        "log": records.texts,
        "printed": out.getvalue() + err.getvalue(),
    }


# ------------------------------------------------------------------ lower bounds on epsilon


@dataclass(frozen=True)
class BlackBoxAudit:
    """A lower bound on ε from outside.

    Attributes
    ----------
    epsilon, delta : float
        What is claimed.
    found : float
        Lower bound on ε at this δ, at the confidence `level`; never below 0.
    level : float
    threshold : float
        Of the score, at which the bound was found.
    ceiling : float
        What the number of draws allows to find at most.
    present, absent : ndarray
        The scores with and without the person.
    """

    epsilon: float
    delta: float
    found: float
    level: float
    threshold: float
    ceiling: float
    present: FloatArray = field(repr=False)
    absent: FloatArray = field(repr=False)

    @property
    def passed(self) -> bool:
        """Whether the claim stands."""
        return self.found <= self.epsilon

    def __str__(self) -> str:
        verdict = "no violation" if self.passed else "VIOLATION"
        return (
            f"black-box audit: {verdict}; claimed epsilon {self.epsilon:g} (delta {self.delta:g}), found at least "
            f"{self.found:.2f} at {self.level:.0%} confidence ({len(self.present)} draws a side can show "
            f"{self.ceiling:.2f})"
        )


def black_box_audit(
    present: FloatArray, absent: FloatArray, *, epsilon: float, delta: float = 0.0, level: float = 0.95
) -> BlackBoxAudit:
    """Bound ε from below, from scores of independent outputs with and without one person.

    (ε, δ) implies ``P(score > c | present) <= e^ε P(score > c | absent) + δ`` for every c, and three more of the kind.
    The first half of the draws chooses c, in each direction; the second half bounds both probabilities (Clopper &
    Pearson 1934), each at a quarter of ``1 - level``, so that all four hold together.

    Parameters
    ----------
    present, absent : ndarray
        One score an output, of any meaning; at least 20 each. A log-likelihood ratio is the strongest.
    epsilon, delta : float
        The claim.
    level : float
        Confidence.

    Returns
    -------
    BlackBoxAudit

    Raises
    ------
    InputError
        Too few scores, NaN among them, or a level outside (0, 1).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> laplace = rng.laplace(size=(2, 4000))  # a count with epsilon = 1
    >>> audit = black_box_audit(laplace[0] + 1, laplace[1], epsilon=1.0)
    >>> audit.passed, bool(0.7 < audit.found)
    (True, True)
    >>> black_box_audit(3 * laplace[0] + 9, 3 * laplace[1], epsilon=1.0).passed
    False
    """
    scores = [np.asarray(a, dtype=np.float64).ravel() for a in (present, absent)]
    if min(len(a) for a in scores) < 20 or any(np.isnan(a).any() for a in scores):
        raise InputError(f"present and absent must be 20 scores or more without NaN, got {[len(a) for a in scores]}")
    if not 0 < level < 1:
        raise InputError(f"level must lie between 0 and 1, got {level!r}")
    alpha = (1 - level) / 4
    found, threshold = 0.0, math.nan
    first = [a[: len(a) // 2] for a in scores]
    last = [a[len(a) // 2 :] for a in scores]
    candidates = np.quantile(np.concatenate(first), np.linspace(0.002, 0.998, 400))
    for here, there in ((0, 1), (1, 0)):
        sign = 1.0 if here == 0 else -1.0  # each direction with its own tail
        bounds = _bounds(first[here] * sign, first[there] * sign, candidates * sign, delta, alpha)
        best = candidates[int(np.argmax(bounds))]
        bound = float(_bounds(last[here] * sign, last[there] * sign, np.array([best * sign]), delta, alpha)[0])
        if bound > found:
            found, threshold = bound, float(best)
    ceiling = max(
        float(_log_ratio(np.array([len(a)]), len(a), np.array([0]), len(b), delta, alpha)[0])
        for a, b in (last, last[::-1])
    )
    return BlackBoxAudit(epsilon, delta, found, level, threshold, ceiling, scores[0], scores[1])


def _bounds(here: FloatArray, there: FloatArray, at: FloatArray, delta: float, alpha: float) -> FloatArray:
    """Lower bound on ε at each threshold, from scores above it."""
    hits, false = ((a[None] > at[:, None]).sum(axis=1) for a in (here, there))
    return _log_ratio(hits, len(here), false, len(there), delta, alpha)


def _log_ratio(hits: Any, n: int, false: Any, m: int, delta: float, alpha: float) -> FloatArray:
    from scipy.stats import beta

    low = np.where(hits > 0, beta.ppf(alpha, np.maximum(hits, 1), n - hits + 1), 0.0)
    high = np.where(false < m, beta.ppf(1 - alpha, false + 1, np.maximum(m - false, 1)), 1.0)
    return np.asarray(np.log(np.maximum(low - delta, 1e-300) / high))


@dataclass(frozen=True)
class OneRunAudit:
    """A lower bound on ε from one output.

    Attributes
    ----------
    epsilon, delta : float
        What is claimed.
    found : float
        Lower bound on ε at this δ; 0 where nothing was found.
    level : float
    canaries, guesses, correct : int
        Persons included at random, those guessed about, and those guessed rightly.
    p_value : float
        Probability of so many right guesses if the claim were true, at most.
    """

    epsilon: float
    delta: float
    found: float
    level: float
    canaries: int
    guesses: int
    correct: int
    p_value: float

    @property
    def passed(self) -> bool:
        """Whether the claim stands."""
        return self.found <= self.epsilon

    def __str__(self) -> str:
        verdict = "no violation" if self.passed else "VIOLATION"
        return (
            f"one-run audit: {verdict}; claimed epsilon {self.epsilon:g} (delta {self.delta:g}), found at least "
            f"{self.found:.2f} at {self.level:.0%} confidence ({self.correct} of {self.guesses} guesses about "
            f"{self.canaries} canaries were right)"
        )


def one_run_audit(
    included: Any,
    scores: FloatArray,
    *,
    epsilon: float,
    delta: float = 0.0,
    guesses: int | None = None,
    level: float = 0.95,
) -> OneRunAudit:
    """Bound ε from below from a single run on data with many canaries.

    Each canary was included with probability 1/2, independently; excluded ones are absent in the sense of the
    adjacency. The `guesses` canaries of most extreme score are guessed, half of them as included.

    Parameters
    ----------
    included : array_like of bool, shape (m,)
    scores : ndarray of shape (m,)
        From the output alone; larger for canaries that look included.
    epsilon, delta : float
        The claim.
    guesses : int, optional
        Fixed before looking; default m / 2, at least 2.
    level : float

    Returns
    -------
    OneRunAudit

    Raises
    ------
    InputError
        Scores that do not fit, or another number of guesses than 2 to m.

    Notes
    -----
    Steinke, Nasr & Jagielski (2023), Privacy Auditing with One (1) Training Run, arXiv:2305.08846, Theorem 5.2: with r
    guesses the number of right ones is, under pure ε, stochastically at most ``W ~ Binomial(r, e^ε/(1 + e^ε))``; under
    (ε, δ) ``P(right >= v) <= P(W >= v) + 2 m δ max_i P(v > W >= v - i)/i``.

    Examples
    --------
    >>> included = np.random.default_rng(0).random(400) < 0.5
    >>> one_run_audit(included, included + 0.0, epsilon=1.0).passed  # an output that shows who is in
    False
    """
    truth = np.asarray(included, dtype=bool).ravel()
    values = np.asarray(scores, dtype=np.float64).ravel()
    m = len(truth)
    if values.shape != truth.shape or np.isnan(values).any():
        raise InputError(f"scores must be {m} numbers, one per canary, got shape {values.shape}")
    r = max(2, m // 2) if guesses is None else guesses
    if not 2 <= r <= m:
        raise InputError(f"guesses must be from 2 to the number of canaries, {m}, got {r}")
    order = np.argsort(values, kind="stable")
    correct = int((~truth[order[: r // 2]]).sum() + truth[order[m - (r - r // 2) :]].sum())
    p_value = _chance(m, r, correct, epsilon, delta)
    low, high = 0.0, 1.0
    if _chance(m, r, correct, 0.0, delta) <= 1 - level:
        while high < 64 and _chance(m, r, correct, high, delta) <= 1 - level:
            low, high = high, 2 * high
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if _chance(m, r, correct, middle, delta) <= 1 - level else (low, middle)
    return OneRunAudit(epsilon, delta, low, level, m, r, correct, p_value)


def _chance(m: int, r: int, v: int, epsilon: float, delta: float) -> float:
    """Largest probability of v or more right guesses under (ε, δ)."""
    from scipy.stats import binom

    rate = 1 / (1 + math.exp(-epsilon))
    beta = float(binom.sf(v - 1, r, rate))
    if delta == 0 or v == 0:
        return min(beta, 1.0)
    below = np.cumsum(binom.pmf(np.arange(v - 1, -1, -1), r, rate))
    return min(beta + 2 * m * delta * float((below / np.arange(1, v + 1)).max()), 1.0)
