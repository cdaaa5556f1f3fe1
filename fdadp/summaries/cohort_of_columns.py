"""From columns and a guarantee to a cohort: what the summaries of numbers and classes check before the first read."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from fdadp._common.argument_checks import flag, fraction
from fdadp._common.loaded_later import pd
from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.functional.containers.opened_tables import OpenedTable
from fdadp.functional.tables.curve_inputs import row_labels
from fdadp.functional.tables.curve_sample import names_of
from fdadp.functional.tables.row_and_grid_labels import same_rows
from fdadp.privacy.private_entries import Table, check_ids, column_names, columns, index_of, labels, numbers, table
from fdadp.private.public.column_ranges import Range, public_range
from fdadp.summaries.questions.column_questions import NoisyEstimate, Question, ask

if TYPE_CHECKING:
    from pandas import DataFrame

    from fdadp.privacy import Cohort, Ledger, Privacy


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


def codes_table(X: Any, facts: Mapping[str, Any]) -> Table:
    """The columns that facts are of, in their order: numbers as they are, classes as indices, NaN for what is neither.

    Parameters
    ----------
    X : data frame, mapping of columns without row labels or table that was opened; or array_like of as many columns
    facts : mapping of name to (low, high), a tuple, or to a list of classes

    Raises
    ------
    InputError
        X has not these columns, or has two of one name. No value was looked at.
    """
    if isinstance(X, Mapping | OpenedTable):
        return _side_by_side(X, facts)
    at = None
    if there := column_names(X):
        missing = [name for name in facts if name not in there]
        if missing:
            raise InputError(f"X must have the columns {list(facts)!r}, but has no {missing!r}")
        twice = [name for name in facts if there.count(name) > 1]
        if twice:
            raise InputError(f"X must have each of the columns {list(facts)!r} once, but has more of {twice!r}")
        at = [there.index(name) for name in facts]
    else:
        shape = table(X, "X", len(facts)).shape
        if len(shape) != 2 or shape[1] != len(facts):
            width = f"{shape[1]} columns" if len(shape) == 2 else f"{len(shape)} dimension(s)"
            raise InputError(f"X must have two dimensions and {len(facts)} columns, got {width}")
    categories: list[Sequence[Hashable] | None] = [
        list(fact) if isinstance(fact, list) else None for fact in facts.values()
    ]
    return columns(X, categories, at)


@dataclass(frozen=True)
class _SideBySide:
    """Rows of columns of one entry a row, of which the kernel takes slices."""

    columns: Sequence[Table]

    def __getitem__(self, at: slice) -> FloatArray:
        return np.stack([own.convert(own.rows[at]).reshape(-1) for own in self.columns], axis=1)


def _side_by_side(X: Mapping[str, Any] | OpenedTable, facts: Mapping[str, Any]) -> Table:
    """Columns by name as one table, as :func:`codes_table`."""
    missing = [name for name in facts if name not in X]
    if missing:
        raise InputError(f"X must have the columns {list(facts)!r}, but has no {missing!r}")
    held: dict[str, Any] = {name: X[name] for name in facts}
    labelled = [name for name, own in held.items() if not isinstance(row_labels(own), pd.RangeIndex | None)]
    if labelled:
        raise InputError(
            f"X must be one data frame, or a mapping of columns without row labels, got labels of {labelled!r}: rows "
            "belong together by position"
        )
    own = [
        labels(held[name], fact, str(name)) if isinstance(fact, list) else table(held[name], str(name))
        for name, fact in facts.items()
    ]
    lengths = [len(one) for one in own]
    if len(set(lengths)) > 1 or any(one.shape[1:] not in ((), (1,)) for one in own):
        raise InputError(f"X must have columns of one entry a row, as many in each, got {list(facts)!r}")
    return Table(_SideBySide(own), (lengths[0], len(own)), numbers, all(one.in_memory for one in own), X)


def level_list(levels: Any, name: str) -> list[Any]:
    """Public classes, checked."""
    if isinstance(levels, (str, bytes)) or not hasattr(levels, "__iter__"):
        raise InputError(f"{name} must be a sequence of classes, got {levels!r}")
    listed = list(levels)
    if not listed:
        raise InputError(f"{name} must be at least one class, got none")
    index_of(listed)
    return listed


# ``Estimates``: released summaries of numbers and classes, each with an interval, and the ledger.


NOISE, BOTH = "noise", "noise and sampling"
"""What an interval holds."""

Row = tuple[Any, NoisyEstimate, bool]
"""What is estimated (of several parts: a tuple), the estimate, and whether sampling is in its interval."""


@dataclass(frozen=True, repr=False)
class Estimates:
    """Released summaries with intervals: what the ``private_`` functions of :mod:`fdadp.summaries` give.

    Attributes
    ----------
    what : str
    ledger : Ledger
        What was released, and what it cost.
    level : float
        Of the intervals.
    sampling : bool
        Whether intervals are for the population that the persons were drawn from; else for the persons in the data.

    Notes
    -----
    Computed from what was released: other levels cost nothing more (:meth:`at`).

    Examples
    --------
    >>> import numpy as np
    >>> from fdadp import Privacy
    >>> from fdadp.summaries import private_mean
    >>> ages = np.random.default_rng(0).normal(50, 10, 3000)
    >>> mean = private_mean(ages, bounds=(18, 100), privacy=Privacy(1.0, n=3000, random_state=0))
    >>> low, high = mean.interval
    >>> bool(low < 50 < high), bool(mean.at(0.5).interval[0] > low)
    (True, True)
    """

    what: str
    ledger: Ledger
    rows: Callable[[float, bool], list[Row]]
    level: float = 0.95
    sampling: bool = True

    def at(self, level: float, *, sampling: bool | None = None) -> Estimates:
        """The same with other intervals: costs no privacy.

        Parameters
        ----------
        level : float
            In (0, 1).
        sampling : bool, optional
            Default: as it is.
        """
        how = self.sampling if sampling is None else flag(sampling, "sampling")
        return Estimates(self.what, self.ledger, self.rows, fraction(level, "level"), how)

    @property
    def frame(self) -> DataFrame:
        """All of it: ``value``, ``low``, ``high``, ``noise_sd``, and what the ``interval`` holds; a row each."""
        found = self.rows(self.level, self.sampling)
        columns = pd.DataFrame([(*estimate, BOTH if drawn else NOISE) for _, estimate, drawn in found])
        columns.columns = pd.Index(["value", "low", "high", "noise_sd", "interval"])
        names = [name if isinstance(name, tuple) else (name,) for name, _, _ in found]
        parts = [pd.Index([name[k] for name in names]) for k in range(len(names[0]))]
        return columns.set_index(pd.MultiIndex.from_arrays(parts) if len(parts) > 1 else parts[0].rename(self.what))

    @property
    def value(self) -> float:
        """The one estimate.

        Raises
        ------
        InputError
            There are several: see :attr:`frame`.
        """
        return self._one.value

    @property
    def interval(self) -> tuple[float, float]:
        """Ends of the interval of the one estimate."""
        return self._one.low, self._one.high

    @property
    def noise_sd(self) -> float:
        """Sd of the privacy noise in the one estimate, about."""
        return self._one.noise_sd

    @property
    def _one(self) -> NoisyEstimate:
        found = self.rows(self.level, self.sampling)
        if len(found) != 1:
            raise InputError(f"{self.what} must be a single estimate to have one value, got {len(found)}: see .frame")
        return found[0][1]

    def _repr_html_(self) -> str:
        return str(self.frame.to_html(float_format="{:.4g}".format)) + f"<p>{self._note}</p>"

    @property
    def _note(self) -> str:
        return f"Intervals at {100 * self.level:g} %. {self.ledger.headline}"

    def __str__(self) -> str:
        return f"{self.frame.to_string(float_format='{:.4g}'.format)}\n{self._note}"

    def __repr__(self) -> str:
        found: list[Any] = self.rows(self.level, self.sampling)
        parts = [f"{name} {e.value:.4g} [{e.low:.4g}, {e.high:.4g}]" for name, e, _ in found[:4]]
        return f"Estimates({'; '.join(parts)}{'; ...' if len(found) > 4 else ''})"
