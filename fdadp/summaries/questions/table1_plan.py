"""What a table 1 asks of each column, and how the budget is shared: from public facts alone."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fdadp._common.argument_checks import is_number
from fdadp._common.calling_language import warn
from fdadp.errors import InputError, PublicInputWarning
from fdadp.private.public.column_ranges import public_range
from fdadp.summaries.cohort_of_columns import level_list
from fdadp.summaries.questions.column_questions import AskCells, Question
from fdadp.summaries.questions.moments_and_quantiles import AskDistribution, AskMoments, cell_edges

SIZES, MOMENTS, QUANTILES, CLASSES = "persons", "moments", "cumulative counts", "counts"
"""Kinds of releases."""


@dataclass(frozen=True)
class PlannedRelease:
    """One release of a table.

    Attributes
    ----------
    column : str
        Empty for the sizes of groups.
    kind : str
    question : Question
    share : float
        Of the budget.
    grouped : bool
        Asked for each group.
    """

    column: str
    kind: str
    question: Question[Any]
    share: float
    grouped: bool

    @property
    def name(self) -> str:
        """For the ledger."""
        return f"{self.kind} of {self.column}" if self.column else self.kind


def checked_facts(columns: Mapping[Any, Any]) -> dict[str, Any]:
    """Public facts of columns: (low, high) as a tuple of floats, classes as a list.

    Raises
    ------
    InputError, PrivacyError
        A name that is no text, a range that is none, classes that are not distinct.

    Warns
    -----
    PublicInputWarning
        Two classes look like a range.
    """
    facts: dict[str, Any] = {}
    for name, fact in columns.items():
        if not isinstance(name, str) or not name:
            raise InputError(f"columns must be named by texts, got {name!r}")
        if isinstance(fact, tuple) and len(fact) == 2 and all(is_number(end) for end in fact):
            facts[name] = public_range(fact, f"columns[{name!r}]", of=name)
        elif isinstance(fact, tuple) or fact is None:
            raise InputError(
                f"columns[{name!r}] must be a pair (low, high) of numbers, or a list of classes, got {fact!r}"
            )
        else:
            facts[name] = levels = level_list(fact, f"columns[{name!r}]")
            if len(levels) == 2 and all(map(is_number, levels)) and levels[1] - levels[0] > 1:
                low, high = levels
                warn(
                    f"columns[{name!r}] is a list, so that {low!r} and {high!r} are two classes; a range is a tuple: "
                    f"({low!r}, {high!r})",
                    PublicInputWarning,
                )
    if not facts:
        raise InputError("columns must name at least one column, got none")
    return facts


def parts_of(
    facts: Mapping[str, Any],
    by: str | None,
    quantiles: Sequence[float],
    steps: Mapping[str, float],
    n: float | None,
    *,
    pure: bool,
) -> list[PlannedRelease]:
    """The releases, in their order: every one has an equal share of the budget.

    Parameters
    ----------
    facts : mapping
        As :func:`checked_facts` gives them.
    by : str, optional
        One of them, of classes.
    quantiles : sequence of float
        Without any, no cumulative counts are asked for.
    steps : mapping of name to float
        Of numbers that are multiples of something.
    n : float, optional
        Declared number of persons. With groups that of each is private, and it is not used.
    pure : bool
    """
    groups: Sequence[Hashable] = () if by is None else facts[by]
    known = None if by is not None else n
    asked: list[tuple[str, str, Question[Any], bool]] = []
    if by is not None or n is None:
        asked.append(("", SIZES, AskCells(len(groups), n, pure=pure), False))
    for name, fact in facts.items():
        if name == by:
            continue
        if isinstance(fact, list):
            asked.append((name, CLASSES, AskCells(len(fact), known, pure=pure), by is not None))
            continue
        asked.append((name, MOMENTS, AskMoments(fact, known, pure=pure), by is not None))
        if quantiles:
            step = steps.get(name)
            edges = cell_edges(fact, step, pure=pure)
            values = None if step is None else (edges[1:] + edges[:-1]) / 2
            asked.append((name, QUANTILES, AskDistribution(edges, known, pure=pure, values=values), by is not None))
    return [
        PlannedRelease(column, kind, question, 1 / len(asked), grouped) for column, kind, question, grouped in asked
    ]
