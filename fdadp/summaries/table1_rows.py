"""From the releases of a table 1 to its rows: post-processing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from fdadp._common.typing import FloatArray
from fdadp.summaries.estimates import Row
from fdadp.summaries.plan import CLASSES, MOMENTS, QUANTILES, SIZES, Part

ALL = "all"
"""The column of the table that is of all persons."""
DIGITS, MOST_DECIMALS = 2, 6


def _answers(part: Part, noisy: FloatArray, sd: float, groups: int) -> list[Any]:
    """Of all persons, then of each group."""
    if not part.grouped:
        return [part.question.answer(noisy[0], sd, 1)]
    every = part.question.answer(noisy.sum(axis=0), sd, groups + 1)
    return [every, *(part.question.answer(block, sd, 1) for block in noisy[:-1])]


def rows_of(
    parts: Sequence[Part],
    released: Sequence[tuple[FloatArray, float]],
    groups: Sequence[Any],
    facts: Mapping[str, Any],
    quantiles: Sequence[float],
    level: float,
    sampling: bool,
) -> list[Row]:
    """All rows of the table; names are (column, class, statistic, group)."""
    out: list[Row] = []
    for part, (noisy, sd) in zip(parts, released, strict=True):
        answers = _answers(part, noisy, sd, len(groups) - 1)
        if part.kind == SIZES:
            [sizes] = answers
            if sizes.n is None:
                out.append((("", "", "n", ALL), sizes.everybody(level), False))
            out += [(("", "", "n", group), sizes.count(k, level), False) for k, group in enumerate(groups[1:])]
        elif part.kind == MOMENTS:
            for group, found in zip(groups, answers, strict=True):
                out.append(((part.column, "", "n", group), found.count(level), False))
            for name in ("mean", "sd"):
                for group, found in zip(groups, answers, strict=True):
                    estimate = getattr(found, name)(level, sampling=sampling)
                    out.append(((part.column, "", name, group), estimate, sampling))
        elif part.kind == QUANTILES:
            for q in quantiles:
                for group, found in zip(groups, answers, strict=True):
                    estimate = found.quantile(q, level, sampling=sampling)
                    out.append(((part.column, "", f"quantile {q:g}", group), estimate, sampling))
        elif part.kind == CLASSES:
            for k, of in enumerate(facts[part.column]):
                for group, found in zip(groups, answers, strict=True):
                    out.append(((part.column, of, "n", group), found.count(k, level), False))
                for group, found in zip(groups, answers, strict=True):
                    out.append(((part.column, of, "%", group), found.share(k, level, sampling=sampling), sampling))
            for group, found in zip(groups, answers, strict=True):
                out.append(((part.column, "", "missing", group), found.count(-1, level), False))
    return out


def decimals_for(width: float) -> int:
    """So many decimals that an interval has two digits."""
    if not (width > 0 and math.isfinite(width)):
        return 0
    return min(max(DIGITS - 1 - math.floor(math.log10(width)), 0), MOST_DECIMALS)
