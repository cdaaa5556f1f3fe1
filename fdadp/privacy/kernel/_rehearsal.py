"""Fits up to their first read: all that is public of them is checked, and then they end, with nothing read or spent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fdadp.privacy.account._book import Book, MemoryBook
from fdadp.privacy.account.budget import Budget

if TYPE_CHECKING:
    from fdadp.privacy.account._reservations import Binding
    from fdadp.privacy.account.releases import Release


class FirstReadError(Exception):
    """A fit has come to its first read: no error of the fit."""


class _RehearsalBook(MemoryBook):
    """Accounts that end a fit where they would let it read rows, and refuse what another book would refuse."""

    __slots__ = ("_for",)

    def __init__(self, book: Book, total: float) -> None:
        super().__init__(total)
        self._for = book

    @property
    def columns(self) -> dict[str, Any]:
        """What the other holds fits to."""
        return self._for.columns

    def admit(self, binding: Binding) -> None:
        """Refuse what the other would."""
        self._for.admit(binding)

    def open(self, at: int) -> None:
        """Before the rows that others are computed from are read."""
        super().open(at)
        raise FirstReadError("rows would be read now")

    def spend(self, at: int, share: float, cost: float, *, whole: bool = False, release: Release | None = None) -> None:
        """Before the rows of a release are read, once it was checked."""
        super().spend(at, share, cost, whole=whole, release=release)
        raise FirstReadError("rows would be read now")


def rehearsal_of(budget: Budget) -> Budget:
    """A budget as large as another, of its own, from which nothing can be read: the first fit to try raises.

    The kernel reads rows after its book has let it (:meth:`fdadp.privacy.account._book.Book.spend`), and never else.
    """
    book = _RehearsalBook(budget._book, budget.total)
    return Budget.kept(book, budget.epsilon, budget.delta, budget.accounting, budget.total)
