"""What a fit with several rows a person is about: a typical row of each person, or all rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fdadp._common.checks import whole
from fdadp._common.door import warn
from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import InputError, PersonRowsWarning
from fdadp.privacy.rows._laws import LAWS, Law, law_of
from fdadp.regression.reading.columns import rows_beside


def check_person_rows(person_rows: Any, *, grouped: bool) -> None:
    """Refuse what is no law, and a law where nobody has several rows; raises InputError."""
    if person_rows is not None and not (isinstance(person_rows, str) and person_rows in LAWS):
        raise InputError(f"person_rows must be 'mean', 'sum' or None, got {person_rows!r}")
    if person_rows is not None and not grouped:
        raise InputError(
            f"groups must say whose each row is where person_rows is given, got person_rows={person_rows!r}"
        )


def check_max_rows(person_rows: Any, max_rows: Any, most: int) -> None:
    """Refuse an ordinary fit that would count rows which `max_rows` leaves out; `most`: rows of a person, at most.

    Raises
    ------
    InputError
    """
    if max_rows is None:
        return
    if (person_rows or "mean") == "mean":
        raise InputError(f"max_rows must be left out with person_rows='mean', got {max_rows!r}")
    if whole(max_rows, "max_rows", least=1) < most:
        raise InputError(
            f"max_rows must be at least {most}, the rows of a person, in an ordinary fit, which counts all rows, got "
            f"{max_rows}"
        )


def private_law(person_rows: Any, max_rows: Any) -> Law:
    """The law of a private fit, by default "mean".

    Raises
    ------
    InputError, PrivacyError
        Settings that do not go together. Nothing was read.
    """
    check_person_rows(person_rows, grouped=True)  # the kernel asks whether there are persons
    return law_of(person_rows or "mean", max_rows)


def person_weights(codes: IntArray | None) -> FloatArray | None:
    """Weights of rows, 1 over the rows of their person and 1 on average; None where all would be 1."""
    if codes is None:
        return None
    counts = np.bincount(codes)[codes]
    if (counts == counts[0]).all():
        return None
    weights = 1 / counts
    return np.asarray(weights / weights.mean())


@dataclass(frozen=True)
class ByPerson:
    """Weights of rows that come in chunks, so that each person counts once.

    Attributes
    ----------
    groups : str
        Column of the persons.
    counts : mapping
        Rows of each.
    """

    groups: str
    counts: Mapping[Any, int]

    def weights(self, labels: list[Any]) -> FloatArray:
        """As :func:`person_weights`, of some rows by their labels, shape (n, 1)."""
        usual = sum(self.counts.values()) / len(self.counts)
        return np.array([[usual / self.counts[label]] for label in labels])


def said_of_rows(person_rows: str | None, max_rows: int | None = None) -> str:
    """One sentence for summaries."""
    if (person_rows or "mean") == "mean":
        return "each person counts once, by the mean of its rows"
    return "each row counts once" + ("" if max_rows is None else f", at most {max_rows} rows a person")


def warn_of_rows(person_rows: str | None, family: str) -> None:
    """Of a fit with groups: say that two laws answer two questions, where that matters most and nobody has chosen.

    Warns
    -----
    PersonRowsWarning
    """
    if person_rows is not None or family not in ("binomial", "poisson"):
        return
    warn(
        "groups are given and person_rows is not: each person counts once, by the mean of its rows. "
        "person_rows='mean' asks about a typical row of each person; person_rows='sum' asks about all rows, as "
        "hazards of rows until an event and rates of events do. They differ where the number of rows has to do with "
        "the response. Say which",
        PersonRowsWarning,
    )


def clusters_of(groups: Any, data: Any, n: int) -> IntArray | None:
    """Numbers of groups from 0, shape (n,); None where there are none.

    Parameters
    ----------
    groups : array_like of shape (n,), str or None
        Labels, or the name of a column of `data`.
    data : object
        The table.
    n : int
        Number of rows.

    Raises
    ------
    InputError
        No such column, not one label a row, other row labels than the table has, missing groups, or a single one.
    """
    import pandas as pd

    if groups is None:
        return None
    rows_beside(data, "groups", groups)
    if isinstance(groups, str):
        if groups not in data:
            raise InputError(f"groups must be labels or a column of data, got {groups!r}, which is none")
        groups = data[groups]
    labels = np.asarray(groups, dtype=object)
    if labels.shape != (n,):
        raise InputError(f"groups must have one label a row, shape ({n},), got shape {labels.shape}")
    numbers, levels = pd.factorize(labels, use_na_sentinel=True)
    if (numbers < 0).any():
        raise InputError(f"groups must not be missing, got a missing one in row {int(np.argmax(numbers < 0))}")
    if len(levels) < 2:
        raise InputError(f"groups must be two or more, got only {levels[0]!r}")
    return np.asarray(numbers, dtype=np.int64)
