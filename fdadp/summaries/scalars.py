"""Private summaries of numbers, one release each, with intervals: mean, variance, quantiles.

What each releases, and why it is private: ``docs/theory/summaries.md#moments`` and ``#cumulative``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp._common.checks import fraction, is_number
from fdadp._common.typing import ArrayLike
from fdadp.errors import InputError
from fdadp.private.public.columns import Range
from fdadp.summaries.estimates import Estimates, Row
from fdadp.summaries.opening import answer_to, bounds_of, check, numbers_of, open_cohort
from fdadp.summaries.questions.distribution import AskDistribution, Distribution, cell_edges
from fdadp.summaries.questions.numbers import AskMoments, NumberMoments

if TYPE_CHECKING:
    from fdadp.privacy import Cohort, Privacy


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
    moments, cohort = _moments(x, bounds, privacy, groups, level, sampling, "private mean")
    return Estimates("mean", cohort.ledger, partial(_mean, moments), level, sampling)


def _mean(moments: NumberMoments, level: float, sampling: bool) -> list[Row]:
    return [("mean", moments.mean(level, sampling=sampling), sampling)]


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
    moments, cohort = _moments(x, bounds, privacy, groups, level, sampling, "private variance")
    return Estimates("spread", cohort.ledger, partial(_variance, moments), level, sampling)


def _variance(moments: NumberMoments, level: float, sampling: bool) -> list[Row]:
    found = {"variance": moments.variance, "sd": moments.sd}
    return [(name, of(level, sampling=sampling), sampling) for name, of in found.items()]


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
    check(privacy, level, sampling)
    wanted = quantile_list(q)
    pair = bounds_of(x, bounds, privacy)
    edges = cell_edges(pair, step, pure=privacy.delta is None)
    public = {"bounds": pair, "cells": len(edges) - 1, "quantiles": list(wanted)}
    cohort = open_cohort(privacy, {"x": x}, numbers_of(x), groups, "private quantiles", public)
    values = None if step is None else (edges[1:] + edges[:-1]) / 2
    question = AskDistribution(edges, None, pure=cohort.pure, values=values)
    found = answer_to(cohort, question, "cumulative counts")
    return Estimates("quantile", cohort.ledger, partial(_quantiles, found, wanted), level, sampling)


def _quantiles(found: Distribution, wanted: Sequence[float], level: float, sampling: bool) -> list[Row]:
    return [(q, found.quantile(q, level, sampling=sampling), sampling) for q in wanted]


def quantile_list(q: Any) -> tuple[float, ...]:
    """Quantiles that are asked for, checked."""
    listed = [q] if is_number(q) else list(q) if isinstance(q, (list, tuple)) or np.ndim(q) == 1 else []
    if not listed:
        raise InputError(f"q must be a number between 0 and 1, or several, got {q!r}")
    return tuple(fraction(one, "q") for one in listed)


def _moments(
    x: Any, bounds: Any, privacy: Any, groups: Any, level: Any, sampling: Any, mechanism: str
) -> tuple[NumberMoments, Cohort]:
    check(privacy, level, sampling)
    pair = bounds_of(x, bounds, privacy)
    cohort = open_cohort(privacy, {"x": x}, numbers_of(x), groups, mechanism, {"bounds": pair})
    return answer_to(cohort, AskMoments(pair, None, pure=cohort.pure), "moments"), cohort
