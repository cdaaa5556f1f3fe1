"""Private summaries of numbers, one release each, with intervals: mean, variance, quantiles.

What each releases, and why it is private: ``docs/theory/summaries.md#moments`` and ``#cumulative``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp._common.argument_checks import flag, fraction, is_number
from fdadp._common.calling_language import warn
from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError, PrivacyError, PublicInputWarning
from fdadp.functional.tables.curve_sample import names_of
from fdadp.privacy.private_entries import RAGGED, Table, column_names, labels, table
from fdadp.private.public.column_ranges import Range, public_range
from fdadp.private.public.curve_shapes import private_curves
from fdadp.summaries import cohort_of_columns
from fdadp.summaries.cohort_of_columns import MISSING_COUNTS, Estimates, Row, answer_to, declared_n, flat, open_cohort
from fdadp.summaries.questions.column_questions import AskCells, CellCounts, NoisyEstimate, ask, half_width
from fdadp.summaries.questions.moments_and_quantiles import (
    AskDistribution,
    AskMoments,
    Distribution,
    NumberMoments,
    cell_edges,
)

if TYPE_CHECKING:
    from pandas import DataFrame

    from fdadp.privacy import Ledger, Privacy


def private_mean(
    x: ArrayLike,
    *,
    bounds: Range | None = None,
    privacy: Privacy,
    groups: Any = None,
    level: float = 0.95,
    sampling: bool = True,
) -> Estimates:
    """Mean of numbers within public bounds, with an interval that holds noise and sampling.

    Parameters
    ----------
    x : array_like or Series of shape (n,)
        What is no finite number is missing, and counts in neither sum nor number.
    bounds : (float, float)
        Public range, in the units of x; required unless a study has fixed that of the series' name. Numbers beyond are
        moved to its ends, and the mean is that of the moved numbers.
    privacy : Privacy
        The guarantee.
    groups : array_like of shape (n,), optional
        Person of each row: each counts once, by the mean over its rows, and the interval is too wide rather than too
        narrow.
    level : float
        Of the interval.
    sampling : bool
        True: the interval is for the mean of the population that the persons are a random sample of. False: for the
        mean of the persons in the data; only noise is in it.

    Returns
    -------
    Estimates

    Raises
    ------
    InputError, PrivacyError
        A setting is missing or wrong. Nothing was read or spent.

    Notes
    -----
    One sum of a flag, u, u² - ½ and two higher powers, with u in [-1, 1] the place in the bounds
    (``docs/theory/summaries.md#moments``): :func:`~fdadp.summaries.private_variance` releases the same. Both are at
    once in :class:`PrivateTable1`.

    Examples
    --------
    >>> import numpy as np
    >>> from fdadp import Privacy
    >>> ages = np.random.default_rng(0).normal(50, 10, 3000)
    >>> private_mean(ages, bounds=(18, 100), privacy=Privacy(1.0, 1e-6, n=3000, random_state=0)).value.__round__()
    50
    """
    return _moments("mean", ("mean",), x, bounds, privacy, groups, level, sampling)


def private_variance(
    x: ArrayLike,
    *,
    bounds: Range | None = None,
    privacy: Privacy,
    groups: Any = None,
    level: float = 0.95,
    sampling: bool = True,
) -> Estimates:
    """Variance and standard deviation of numbers within public bounds, with intervals.

    Parameters
    ----------
    x, bounds, privacy, groups, level, sampling
        As of :func:`private_mean`. With `groups`: of one row drawn from each person.

    Returns
    -------
    Estimates
        Rows ``variance`` and ``sd``.

    Raises
    ------
    InputError, PrivacyError
        As :func:`private_mean`.

    Examples
    --------
    >>> import numpy as np
    >>> from fdadp import Privacy
    >>> ages = np.random.default_rng(0).normal(50, 10, 30_000)
    >>> found = private_variance(ages, bounds=(18, 100), privacy=Privacy(1.0, 1e-6, n=30_000, random_state=0))
    >>> round(found.frame.loc["sd", "value"])
    10
    """
    return _moments("spread", ("variance", "sd"), x, bounds, privacy, groups, level, sampling)


def private_quantiles(
    x: ArrayLike,
    q: float | Sequence[float] = (0.25, 0.5, 0.75),
    *,
    bounds: Range | None = None,
    step: float | None = None,
    privacy: Privacy,
    groups: Any = None,
    level: float = 0.95,
    sampling: bool = True,
) -> Estimates:
    """Quantiles of numbers within public bounds, all from one release, with intervals.

    Parameters
    ----------
    x, bounds, privacy, groups, level, sampling
        As of :func:`private_mean`.
    q : float or sequence of float
        In (0, 1).
    step : float, optional
        Numbers are multiples of it from the lower bound on (1 for counts, scores, whole years): quantiles and ends of
        intervals then are such values. Default: 1,024 cells of equal width (512 for pure ε).

    Returns
    -------
    Estimates
        A row each quantile.

    Raises
    ------
    InputError, PrivacyError
        As :func:`private_mean`.

    Notes
    -----
    Cumulative counts in the cells have noise of about 3 (Gaussian) or 7 (pure ε, 512 cells) single counts
    (``docs/theory/summaries.md#cumulative``). Intervals are of whole cells, for all numbers of a cell may be the same:
    `step` makes them shorter where it is known. Where the noise is as large as the number of persons they are the whole
    range.

    Examples
    --------
    >>> import numpy as np
    >>> from fdadp import Privacy
    >>> visits = np.random.default_rng(0).poisson(3, 3000)
    >>> privacy = Privacy(1.0, 1e-6, n=3000, random_state=0)
    >>> private_quantiles(visits, bounds=(0, 20), step=1, privacy=privacy).frame["value"].tolist()
    [2.0, 3.0, 4.0]
    """
    cohort_of_columns.check(privacy, level, sampling)
    wanted = quantile_list(q)
    pair = cohort_of_columns.bounds_of(x, bounds, privacy)
    edges = cell_edges(pair, step, pure=privacy.delta is None)
    public = {"bounds": pair, "cells": len(edges) - 1, "quantiles": list(wanted)}
    cohort = open_cohort(privacy, {"x": x}, cohort_of_columns.numbers_of(x), groups, "private quantiles", public)
    values = None if step is None else (edges[1:] + edges[:-1]) / 2
    question = AskDistribution(edges, None, pure=cohort.pure, values=values)
    found = answer_to(cohort, question, "cumulative counts")
    return Estimates("quantile", cohort.ledger, partial(_quantiles, found, wanted), level, sampling)


def _quantiles(found: Distribution, wanted: Sequence[float], level: float, sampling: bool) -> list[Row]:
    return [(q, found.quantile(q, level, sampling=sampling), sampling) for q in wanted]


def quantile_list(q: Any, name: str = "q") -> tuple[float, ...]:
    """Quantiles that are asked for, by an argument of this name, checked."""
    listed = [q] if is_number(q) else list(q) if isinstance(q, (list, tuple)) or np.ndim(q) == 1 else []
    if not listed:
        raise InputError(f"{name} must be a number between 0 and 1, or several, got {q!r}")
    return tuple(fraction(one, name) for one in listed)


def _moments(
    what: str, names: Sequence[str], x: Any, bounds: Any, privacy: Any, groups: Any, level: Any, sampling: Any
) -> Estimates:
    """Statistics of these names, all from one release of moments."""
    cohort_of_columns.check(privacy, level, sampling)
    pair = cohort_of_columns.bounds_of(x, bounds, privacy)
    public, private = {"bounds": pair}, cohort_of_columns.numbers_of(x)
    cohort = open_cohort(privacy, {"x": x}, private, groups, f"private {names[0]}", public)
    moments = answer_to(cohort, AskMoments(pair, None, pure=cohort.pure), "moments")
    return Estimates(what, cohort.ledger, partial(_named, moments, names), level, sampling)


def _named(moments: NumberMoments, names: Sequence[str], level: float, sampling: bool) -> list[Row]:
    return [(name, getattr(moments, name)(level, sampling=sampling), sampling) for name in names]


# Private counts, one release each, with intervals: of persons, classes, bins, and cells of a table.
#
# What each releases, and why it is private: ``docs/theory/summaries.md#cells``.


LARGEST_TABLE = 4096
"""Cells of a cross-table."""


def private_count(data: Any, *, privacy: Privacy, groups: Any = None, level: float = 0.95) -> Estimates:
    """Number of persons, where it is private.

    Parameters
    ----------
    data : array_like or data frame, rows along the first axis
    privacy : Privacy
        The guarantee, without a declared n.
    groups : array_like of shape (n,), optional
        Person of each row; else each row is a person.
    level : float
        Of the interval, which holds the noise alone.

    Returns
    -------
    Estimates

    Raises
    ------
    InputError, PrivacyError
        n is declared, hence public, or another setting is wrong. Nothing was read or spent.

    Examples
    --------
    >>> import numpy as np
    >>> from fdadp import Privacy
    >>> count = private_count(np.zeros(500), privacy=Privacy(1.0, random_state=0))
    >>> bool(abs(count.value - 500) < 10)
    True
    """
    cohort_of_columns.check(privacy, level)
    if privacy.n is not None:
        raise PrivacyError(f"n must be left out where persons are counted, got {privacy.n}: a declared n is public")
    private = table(data, "data")
    cohort = open_cohort(privacy, {"data": data}, private, groups, "private count", {})
    value, sd = cohort.count(share=1.0, floor=0.0)
    return Estimates("count", cohort.ledger, partial(_count, float(value), float(sd), cohort.pure), level)


def _count(value: float, sd: float, pure: bool, level: float, sampling: bool) -> list[Row]:
    half = half_width(level, 0.0, [sd], pure=pure)
    return [("persons", NoisyEstimate(value, max(value - half, 0.0), value + half, sd), False)]


def private_histogram(
    x: ArrayLike,
    *,
    levels: Sequence[Hashable] | None = None,
    edges: Sequence[float] | None = None,
    privacy: Privacy,
    groups: Any = None,
    level: float = 0.95,
    sampling: bool = True,
) -> Estimates:
    """Counts and shares of public classes, or of numbers in public bins, with intervals.

    Parameters
    ----------
    x : array_like or Series of shape (n,)
    levels : sequence
        Public classes; what is none of them counts as ``none``.
    edges : sequence of float
        Increasing: bins [a, b), the last one with its end. Numbers beyond are in none. One of both must be given.
    privacy, groups, level, sampling
        As of :func:`private_mean`. Intervals of counts hold the noise alone, those of shares sampling too.

    Returns
    -------
    Estimates
        Rows ``("count", class)`` and ``("share", class)``; ``("count", "none")`` is of rows in none of them, and shares
        are of all others.

    Raises
    ------
    InputError, PrivacyError
        As :func:`private_mean`.

    Examples
    --------
    >>> from fdadp import Privacy
    >>> arm = ["drug"] * 300 + ["placebo"] * 200
    >>> found = private_histogram(arm, levels=["drug", "placebo"], privacy=Privacy(1.0, n=500, random_state=0))
    >>> bool(abs(found.frame.loc[("share", "drug"), "value"] - 0.6) < 0.05)
    True
    """
    cohort_of_columns.check(privacy, level, sampling)
    if (levels is None) is (edges is None):
        raise InputError(f"levels or edges must be given, one of them, got {levels!r} and {edges!r}")
    cohort_of_columns.refuse_curves(x)
    if levels is not None:
        names: list[Any] = cohort_of_columns.level_list(levels, "levels")
        privacy.hold((name, names) for name in names_of(x, "x"))
        private, cuts = labels(x, names, "x"), None
    else:
        cuts = edge_list(edges)
        said = [f"{cut:g}" for cut in cuts]
        said = said if len(set(said)) == len(cuts) else [repr(float(cut)) for cut in cuts]
        names = [f"[{a}, {b}{']' if k == len(cuts) - 2 else ')'}" for k, (a, b) in enumerate(itertools.pairwise(said))]
        private = cohort_of_columns.numbers_of(x)
    public = {"levels": names} if cuts is None else {"edges": cuts.tolist()}
    cohort = open_cohort(privacy, {"x": x}, private, groups, "private histogram", public | MISSING_COUNTS)

    def code(block: tuple[Any, ...]) -> FloatArray:
        values = flat(block)
        if cuts is None:
            return values
        inside = (values >= cuts[0]) & (values <= cuts[-1])
        return np.where(inside, np.searchsorted(cuts[1:-1], values, side="right"), np.nan)

    found = answer_to(cohort, AskCells(len(names), declared_n(cohort), pure=cohort.pure), "counts", code)
    return Estimates("cell", cohort.ledger, partial(_cells, found, tuple(names)), level, sampling)


def private_cross_table(
    X: Any,
    columns: Mapping[str, Sequence[Hashable]],
    *,
    privacy: Privacy,
    groups: Any = None,
    level: float = 0.95,
    sampling: bool = True,
) -> Estimates:
    """Counts and shares in the cells of two or more columns of public classes, with intervals.

    Parameters
    ----------
    X : data frame, or array_like of as many columns
    columns : mapping of name to classes
        At least two; names of columns of a frame, any names for those of an array in their order.
    privacy, groups, level, sampling
        As of :func:`private_histogram`.

    Returns
    -------
    Estimates
        Rows ``("count", class, class)`` and ``("share", class, class)``, else as of :func:`private_histogram`.

    Raises
    ------
    InputError, PrivacyError
        As :func:`private_mean`.

    Examples
    --------
    >>> import pandas as pd
    >>> from fdadp import Privacy
    >>> people = pd.DataFrame({"arm": ["a", "b"] * 500, "died": [0, 0, 0, 1] * 250})
    >>> columns = {"arm": ["a", "b"], "died": [0, 1]}
    >>> found = private_cross_table(people, columns, privacy=Privacy(1.0, n=1000, random_state=0))
    >>> bool(abs(found.frame.loc[("count", "b", 1), "value"] - 250) < 10)
    True
    """
    cohort_of_columns.check(privacy, level, sampling)
    if not isinstance(columns, Mapping) or len(columns) < 2:
        raise InputError(f"columns must be the classes of at least two columns by name, got {columns!r}")
    facts = {name: cohort_of_columns.level_list(classes, f"columns[{name!r}]") for name, classes in columns.items()}
    sizes = [len(classes) for classes in facts.values()]
    cells = int(np.prod(sizes))
    if cells > LARGEST_TABLE:
        raise InputError(f"columns must make at most {LARGEST_TABLE} cells, got {cells}")
    privacy.hold(facts.items())
    private, public = cohort_of_columns.codes_table(X, facts), {"columns": facts} | MISSING_COUNTS
    cohort = open_cohort(privacy, {"X": X}, private, groups, "private cross-table", public)

    def code(block: tuple[Any, ...]) -> FloatArray:
        out = np.zeros(len(block[0]))
        for j, size in enumerate(sizes):
            out = out * size + block[0][:, j]
        return out

    found = answer_to(cohort, AskCells(cells, declared_n(cohort), pure=cohort.pure), "counts", code)
    names = tuple(tuple(facts[name][k] for name, k in zip(facts, at, strict=True)) for at in np.ndindex(*sizes))
    return Estimates("cell", cohort.ledger, partial(_cells, found, names), level, sampling)


def _cells(found: CellCounts, names: Sequence[Hashable], level: float, sampling: bool) -> list[Row]:
    parts = [name if isinstance(name, tuple) else (name,) for name in names]
    none = ("count", *["none"] * len(parts[0]))
    counts = [(("count", *part), found.count(k, level), False) for k, part in enumerate(parts)]
    shares = [(("share", *part), found.share(k, level, sampling=sampling), sampling) for k, part in enumerate(parts)]
    return [*counts, (none, found.count(-1, level), False), *shares]


def edge_list(edges: Any) -> FloatArray:
    """Edges of bins, checked."""
    if np.asarray(edges).dtype.kind in "mM":
        raise InputError(f"edges must be increasing numbers, as days since a date, got {edges!r}")
    try:
        cuts: FloatArray = np.array(edges, dtype=np.float64)
    except (TypeError, ValueError) as exc:
        raise InputError(f"edges must be increasing numbers, got {edges!r}") from exc
    if cuts.ndim != 1 or cuts.size < 2 or not np.isfinite(cuts).all() or not (np.diff(cuts) > 0).all():
        raise InputError(f"edges must be at least two increasing numbers, got {edges!r}")
    return np.asarray(cuts)


# ``suggest_bounds``: ranges for ``bounds=`` from private quantiles, where subject knowledge gives none.
#
# Proof: ``docs/theory/summaries.md#cumulative``; the rule by which quantiles become bounds: ``#suggested``.


SURE = 2.0
"""A tail is looked at where it has so many sds of the noise in a cumulative count."""
LARGEST_TAIL = 0.25
"""Where noise wants more than this of the persons in each tail, nothing can be said."""
DECADES = range(-6, 10)
STEPS = (1.0, 2.0, 5.0)
"""Edges of cells where no range is given: these numbers times powers of 10, of both signs, and 0."""
LEVEL = 0.95
FINENESS = 25
"""Suggested bounds are rounded outward to 1, 2 or 5 times a power of 10 that is at most the width over this."""


@dataclass(frozen=True)
class SuggestedBounds:
    """Ranges that private quantiles suggest.

    Attributes
    ----------
    by_column : dict of name to (low, high)
    beyond : dict of name to float
        Released share of the numbers beyond the range, with noise.
    coverage : float
        That was asked for.
    ledger : Ledger
    """

    by_column: dict[str, Range]
    beyond: dict[str, float]
    coverage: float
    ledger: Ledger

    @property
    def bounds(self) -> Range | dict[str, Range]:
        """The one range, or ranges by column: for ``bounds=`` of summaries and regressions."""
        found = list(self.by_column.values())
        return found[0] if len(found) == 1 else dict(self.by_column)

    @property
    def box(self) -> tuple[list[float], list[float]]:
        """Lower and upper bounds, in the order of the columns: for ``bounds=`` of learners."""
        return [low for low, _ in self.by_column.values()], [high for _, high in self.by_column.values()]

    @property
    def frame(self) -> DataFrame:
        """``low``, ``high`` and the released share ``beyond``, a row each column."""
        import pandas as pd

        rows = [(*pair, self.beyond[name]) for name, pair in self.by_column.items()]
        return pd.DataFrame(rows, columns=["low", "high", "beyond"], index=list(self.by_column))

    def __str__(self) -> str:
        return f"{self.frame.to_string(float_format='{:.4g}'.format)}\n{self.ledger.headline}"


def suggest_bounds(
    X: Any,
    *,
    within: Range | Mapping[str, Range] | None = None,
    coverage: float = 0.99,
    together: bool = False,
    privacy: Privacy,
    groups: Any = None,
) -> SuggestedBounds:
    """Suggest public ranges from private quantiles, charged to a budget or a study.

    Bounds from subject knowledge cost nothing and are better: heart rates of living persons are within 20 and 300. Take
    this where nobody knows the units or the scale, or where the known range is ten times too wide. Spend a tenth of the
    budget on it, and the rest on the fit.

    Parameters
    ----------
    X : array_like of shape (n,) or (n, d), Series, data frame, or FDataGrid
        A range for each column; one range for all where `together`, and for curves.
    within : (low, high), or mapping of name to (low, high), optional
        Public range that is surely too wide: bounds are sought in 1,024 cells of it (512 for pure ε). With a mapping
        only these columns of a data frame are looked at. Default: bounds are 0 or ±1, ±2, ±5 times powers of 10 from
        1e-6 to 5e9.
    coverage : float
        Share of the numbers that should be within.
    together : bool
        One range for all columns: for curves, or numbers in the same units.
    privacy : Privacy
        The guarantee; it may draw on a ``budget`` or a ``study`` that the fit draws on as well.
    groups : array_like of shape (n,), optional
        Person of each row.

    Returns
    -------
    SuggestedBounds

    Raises
    ------
    InputError, PrivacyError
        A setting is wrong, or n ε is too small to say anything. Nothing was read or spent.

    Warns
    -----
    PublicInputWarning
        With a private n: the noise was too large, and a range is the one that was given.

    Notes
    -----
    Where a tail of (1 - coverage)/2 is lost in the noise, the larger tail that is not is looked at, and the bounds are
    as far out as they would be for normal numbers. The columns share the budget evenly.

    Examples
    --------
    >>> import numpy as np
    >>> from fdadp import Privacy
    >>> from fdadp.privacy import Budget
    >>> heart_rates = np.random.default_rng(0).normal(80, 12, 5000)
    >>> budget = Budget(1.0)  # for all that is done with these rows
    >>> first = Privacy(0.1, n=5000, budget=budget, dataset="ward", random_state=0)
    >>> suggest_bounds(heart_rates, within=(0, 1000), privacy=first).bounds
    (48.0, 108.0)
    >>> round(budget.left / budget.total, 2)
    0.9
    """
    coverage, together = fraction(coverage, "coverage"), flag(together, "together")
    cohort_of_columns.check(privacy, LEVEL)
    given = X
    if hasattr(X, "data_matrix"):
        X, together = private_curves(X, None, "X").values, True
    private, names, ranges = _columns(X, within, together)
    pure = privacy.delta is None
    edges = [_grid() if pair is None else cell_edges(pair, None, pure=pure) for pair in ranges]
    shown = {"columns": names, "within": [list(map(float, e[[0, -1]])) for e in edges], "coverage": coverage}
    tail = (1 - coverage) / 2
    if privacy.n is not None:
        budget, part = privacy.budget_share()
        amount = part * budget.total / len(names)
        for name, cells in zip(names, edges, strict=True):
            question = AskDistribution(cells, float(privacy.n), pure=budget.pure)
            sd = question.planned_sd(amount, privacy.stated_adjacency, pure=budget.pure)
            wanted = SURE * sd * question.typical / privacy.n
            if wanted > LARGEST_TAIL:
                needed = math.ceil(privacy.n * wanted / LARGEST_TAIL)
                raise PrivacyError(
                    f"n and epsilon must let a quarter of the persons stand out from the noise, got {privacy.n} and "
                    f"{privacy.epsilon:g} for {len(names)} column(s), {name!r} among them. It takes {needed} persons, "
                    "or bounds from subject knowledge, which cost nothing"
                )
    cohort = open_cohort(privacy, {"X": given}, private, groups, "suggested bounds", shown)
    found, beyond = {}, {}
    for j, (name, cells) in enumerate(zip(names, edges, strict=True)):
        question = AskDistribution(cells, None, pure=cohort.pure)

        def column(block: tuple[Any, ...], j: int = j) -> FloatArray:
            values = np.asarray(block[0])
            return values if together or values.ndim == 1 else values[:, j]

        noisy, sd = ask(cohort, question, column, share=1 / len(names), name=f"cumulative counts of {name}")
        answer = question.answer(noisy[0], sd, 1)
        found[name] = _bounds(answer, tail, name)
        below, inside = answer.shares_below(np.array(found[name]))
        beyond[name] = float(1 - (inside - below))
    return SuggestedBounds(found, beyond, coverage, cohort.ledger)


def _columns(X: Any, within: Any, together: bool) -> tuple[Table, list[str], list[Range | None]]:
    """The private columns, their names, and the public range of each."""
    if isinstance(within, Mapping):
        if together or not column_names(X):
            raise InputError(
                "within must be one pair (low, high) unless X is a data frame with a range for each column"
            )
        pairs: dict[str, Range | None] = {
            name: public_range(pair, f"within of {name}", of=str(name)) for name, pair in within.items()
        }
        if not pairs:
            raise InputError("within must name at least one column, got none")
        return cohort_of_columns.codes_table(X, pairs), [str(name) for name in pairs], list(pairs.values())
    pair = None if within is None else public_range(within, "within", of="X")
    if together and isinstance(X, list | tuple):
        raise InputError(f"X must be an array or a data frame, {RAGGED}")
    whole = table(X, "X")
    if len(whole.shape) == 1 or together:
        if len(whole.shape) > 2:
            raise InputError(f"X must have one or two dimensions, got {len(whole.shape)}")
        name = getattr(X, "name", None)
        return (
            whole if together else cohort_of_columns.numbers_of(X),
            [name if isinstance(name, str) and name else "x"],
            [pair],
        )
    if len(whole.shape) != 2 or whole.shape[1] == 0:
        raise InputError(f"X must have one or two dimensions and at least one column, got shape (n, {whole.shape[1:]})")
    own = [str(name) for name in column_names(X)] or [f"x{j}" for j in range(whole.shape[1])]
    twice = [name for name in own if own.count(name) > 1]
    if twice:
        raise InputError(f"X must have columns of different names, got {twice[0]!r} {len(twice)} times")
    return whole, own, [pair] * whole.shape[1]


def _grid() -> FloatArray:
    sizes = [step * 10.0**power for power in DECADES for step in STEPS]
    return np.array([-size for size in reversed(sizes)] + [0.0, *sizes])


def _bounds(answer: Distribution, tail: float, name: str) -> Range:
    """A range from the tails that stand out from the noise, as far out as normal tails of the wanted size would be."""
    from scipy.special import ndtri

    edges = answer.asked.edges
    whole = float(edges[0]), float(edges[-1])
    at = max(tail, SURE * answer.sd * answer.asked.typical / answer.persons)
    if at > LARGEST_TAIL:
        warn(
            f"the noise is too large to suggest bounds of {name}: they are the range that was given, {whole}",
            PublicInputWarning,
        )
        return whole
    low, middle, high = (answer.quantile(q, LEVEL).value for q in (at, 0.5, 1 - at))
    further = float(ndtri(tail) / ndtri(at))
    low, high = middle - further * (middle - low), middle + further * (high - middle)
    if not high > low:
        k = min(int(np.searchsorted(edges, middle, side="right")), edges.size - 1)
        low, high = float(edges[k - 1]), float(edges[k])
    unit = (high - low) / FINENESS
    power = 10.0 ** math.floor(math.log10(unit))
    unit = max(step for step in STEPS if step * power <= unit * (1 + 1e-12)) * power
    low, high = math.floor(low / unit) * unit, math.ceil(high / unit) * unit
    digits = max(0, -math.floor(math.log10(unit)))
    return max(round(low, digits), whole[0]), min(round(high, digits), whole[1])
