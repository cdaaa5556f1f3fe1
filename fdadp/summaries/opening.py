"""From a column and a guarantee to a cohort: what the summaries of numbers and classes check before the first read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from fdadp._common.checks import flag, fraction
from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.functional.tables.alignment import same_rows
from fdadp.functional.tables.kinds import names_of
from fdadp.privacy.boundary import Table, check_ids, table
from fdadp.private.public.columns import Range, public_range
from fdadp.summaries.questions.questions import Question, ask

if TYPE_CHECKING:
    from fdadp.privacy import Cohort, Privacy

A = TypeVar("A")

MISSING_COUNTS = {"a missing value": "counts as an answer: a row of missing values is a value, not a blanked-out row"}
"""For the ledger of what counts missing values."""


def check(privacy: Any, level: Any, sampling: Any = True) -> None:
    """Refuse a wrong guarantee, level or kind of interval."""
    from fdadp.privacy import Privacy

    if not isinstance(privacy, Privacy):
        raise InputError(f"privacy must be a Privacy, got {type(privacy).__name__}")
    fraction(level, "level")
    flag(sampling, "sampling")
    privacy.check()


def bounds_of(x: Any, bounds: Any, privacy: Privacy) -> Range:
    """Public range of a column: as given, else as a study has fixed it."""
    names = names_of(x, "x")
    given = {} if bounds is None else dict.fromkeys(names, public_range(bounds, of="x"))
    fixed = privacy.hold(given.items())
    own = next((fixed[name] for name in reversed(names) if name in fixed), None)
    return public_range(own if bounds is None else bounds, of="x")


def numbers_of(x: Any) -> Table:
    """One column of numbers, of which only the shape is looked at."""
    refuse_curves(x)
    found = table(x, "x")
    if found.shape[1:] not in ((), (1,)):
        raise InputError(f"x must be one column of numbers, got {len(found.shape)} dimensions")
    return found


def refuse_curves(x: Any) -> None:
    """Refuse scikit-fda's curves where a column is wanted, whose entries would all be missing; raises InputError."""
    if hasattr(x, "coordinate_names"):
        raise InputError(f"x must be one column of numbers or classes, got curves ({type(x).__name__})")


def flat(block: tuple[Any, ...]) -> FloatArray:
    """The one column (m,) of a block."""
    return np.asarray(block[0]).reshape(len(block[0]))


def open_cohort(
    privacy: Privacy, rows: Mapping[str, Any], private: Table, groups: Any, mechanism: str, public: Mapping[str, Any]
) -> Cohort:
    """Put a column behind a cohort that has reserved the budget; `rows` is what was given, by the argument's name."""
    if groups is not None:
        check_ids(groups, len(private), "groups")
    if privacy.labels == "public":
        same_rows(**rows, groups=groups)
    return privacy.cohort((private,), groups=groups, mechanism=mechanism, public=public)


def declared_n(cohort: Cohort) -> float | None:
    """Declared number of persons, None where it is private."""
    return None if cohort.n is None else float(cohort.n)


def answer_to(cohort: Cohort, question: Question[A], name: str, column: Any = flat) -> A:
    """Ask one question for the whole budget of a cohort."""
    noisy, sd = ask(cohort, question, column, share=1.0, name=name)
    return question.answer(noisy[0], sd, 1)
