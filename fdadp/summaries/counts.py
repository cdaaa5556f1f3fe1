"""Private counts, one release each, with intervals: of persons, classes, bins, and cells of a table.

What each releases, and why it is private: ``docs/theory/summaries.md#cells``.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError, PrivacyError
from fdadp.functional.tables.kinds import names_of
from fdadp.privacy.boundary import labels, table
from fdadp.summaries.estimates import Estimates, Row
from fdadp.summaries.opening import (
    MISSING_COUNTS,
    answer_to,
    check,
    codes_table,
    declared_n,
    flat,
    level_list,
    numbers_of,
    open_cohort,
    refuse_curves,
)
from fdadp.summaries.questions.cells import AskCells, CellCounts
from fdadp.summaries.questions.laws import NoisyEstimate, half_width

if TYPE_CHECKING:
    from fdadp.privacy import Privacy

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
    check(privacy, level)
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
    check(privacy, level, sampling)
    if (levels is None) is (edges is None):
        raise InputError(f"levels or edges must be given, one of them, got {levels!r} and {edges!r}")
    refuse_curves(x)
    if levels is not None:
        names: list[Any] = level_list(levels, "levels")
        privacy.hold((name, names) for name in names_of(x, "x"))
        private, cuts = labels(x, names, "x"), None
    else:
        cuts = edge_list(edges)
        said = [f"{cut:g}" for cut in cuts]
        said = said if len(set(said)) == len(cuts) else [repr(float(cut)) for cut in cuts]
        names = [f"[{a}, {b}{']' if k == len(cuts) - 2 else ')'}" for k, (a, b) in enumerate(itertools.pairwise(said))]
        private = numbers_of(x)
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
    check(privacy, level, sampling)
    if not isinstance(columns, Mapping) or len(columns) < 2:
        raise InputError(f"columns must be the classes of at least two columns by name, got {columns!r}")
    facts = {name: level_list(classes, f"columns[{name!r}]") for name, classes in columns.items()}
    sizes = [len(classes) for classes in facts.values()]
    cells = int(np.prod(sizes))
    if cells > LARGEST_TABLE:
        raise InputError(f"columns must make at most {LARGEST_TABLE} cells, got {cells}")
    privacy.hold(facts.items())
    cohort = open_cohort(
        privacy, {"X": X}, codes_table(X, facts), groups, "private cross-table", {"columns": facts} | MISSING_COUNTS
    )

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
    try:
        cuts: FloatArray = np.array(edges, dtype=np.float64)
    except (TypeError, ValueError) as exc:
        raise InputError(f"edges must be increasing numbers, got {edges!r}") from exc
    if cuts.ndim != 1 or cuts.size < 2 or not np.isfinite(cuts).all() or not (np.diff(cuts) > 0).all():
        raise InputError(f"edges must be at least two increasing numbers, got {edges!r}")
    return np.asarray(cuts)
