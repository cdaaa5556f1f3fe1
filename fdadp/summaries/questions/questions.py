"""Questions about a column that are one clipped sum each, for all persons or for the groups of a public list at once.

A row is in one group, so that what it adds to the blocks of all groups has the norm of one block: asking by group costs
what asking once does (``docs/theory/summaries.md#groups``).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.privacy import Cohort
from fdadp.privacy.account.accounting import noise_multiplier

Answer = TypeVar("Answer")
Column = Callable[[tuple[Any, ...]], FloatArray]
"""From a block of rows to the values (m,) of one column; row-local."""


class Question(ABC, Generic[Answer]):
    """What is asked of a column.

    Attributes
    ----------
    size : int
        Numbers that a row gives.
    clip : float
        Largest norm of what a person can add: L2, in pure form L1.
    nonnegative : bool
        Whether nothing that is added is negative.
    """

    size: int
    clip: float
    nonnegative: bool

    def planned_sd(self, amount: float, adjacency: str, *, pure: bool) -> float:
        """Sd of the noise in each sum, for an amount in the measure of the budget: public."""
        sd = noise_multiplier(amount, adjacency, pure=pure) * self.clip
        return sd / math.sqrt(2) if adjacency == "replace" and self.nonnegative and not pure else sd

    @abstractmethod
    def rows(self, values: FloatArray) -> FloatArray:
        """What rows add, (m, size), from their values (m,) or (m, k), row-local; NaN for a row that adds nothing."""

    @abstractmethod
    def answer(self, noisy: FloatArray, sd: float, copies: int) -> Answer:
        """What was released, from sums with so many draws of noise of this sd in each."""


def ask(
    cohort: Cohort,
    question: Question[Answer],
    column: Column,
    *,
    share: float,
    name: str,
    group: Column | None = None,
    groups: int = 0,
) -> tuple[FloatArray, float]:
    """Release the sums of a question, (1, size), or (groups + 1, size) where `group` gives the code of a row's group.

    The last block is of rows in none of the groups. Returns the sums and the sd of the noise in each.
    """

    def rows(block: tuple[Any, ...]) -> FloatArray | tuple[FloatArray, FloatArray]:
        added = question.rows(column(block))
        if group is None:
            return added
        code = group(block)
        return added, np.where(np.isfinite(code), code, float(groups))

    blocks = None if group is None else groups + 1
    noisy, sd = cohort.sum(
        rows,
        clip=question.clip,
        size=(blocks or 1) * question.size,
        share=share,
        name=name,
        nonnegative=question.nonnegative,
        blocks=blocks,
    )
    return np.asarray(noisy).reshape(-1, question.size), float(sd)
