"""A total that releases draw on: μ²/2 or ρ for (ε, δ), ε for pure privacy. Never more than was promised.

Shares may be chosen adaptively, from earlier releases, as long as their sum stays below a fixed total: that is a
privacy filter. For Gaussian DP: ``docs/theory/gaussian-dp.md#filter``, Smith & Thakurta (2022), arXiv:2210.17520, and
Koskela, Tobaben & Honkela (2022), arXiv:2209.15596. For zCDP: Feldman & Zrnic (2021), Individual Privacy Accounting via
a Rényi Filter, and Whitehouse, Ramdas, Rogers & Wu (2023), Fully-Adaptive Composition in Differential Privacy, Theorem
1 (arXiv:2203.05481). For pure ε the sum of adaptively chosen ε is bounded in the same way (Rogers, Roth, Ullman &
Vadhan 2016).

*Rehearsals* are fits up to their first read: all that is public of them is checked, and then they end, with nothing
read or spent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from fdadp.errors import PrivacyError
from fdadp.privacy.account._reservations import SAFETY, TOLERANCE, Binding, Book, MemoryBook, Release, Reservation, gone
from fdadp.privacy.account.epsilon_mu_rho import MEASURES, epsilon_from, epsilon_from_mu, mu_from, rho_from
from fdadp.privacy.guarantee_checks import as_float, said_delta

ROUNDING = 1e-12
"""Of a total that another version or machine has computed."""


class Budget:
    """A privacy budget that several fits may share.

    Parameters
    ----------
    epsilon : float
        Above 0.
    delta : float, optional
        In (0, 1). Left out or 0: pure ε.
    accounting : {"gdp", "zcdp"}
        How what is spent with a δ adds up: in Gaussian DP, with the largest μ that implies (ε, δ), or in zCDP, with the
        largest ρ. Sums have 5 to 13 % less noise in the first; selections have 17 % less in the second, which is worth
        it where they take more than a quarter of the budget. Fixed for good: a choice of the better of two totals
        later would be covered by the theorem of neither.

    Attributes
    ----------
    epsilon, delta : as given
    accounting : str
        As given; "pure" where δ is None.
    total : float
        μ²/2, ρ, or ε where pure.
    mu : float or None
        Of "gdp": what all releases together are at most.
    spent, reserved, left : float
        In the same measure. From the first read of a cohort on, all that it had reserved is spent.

    Raises
    ------
    PrivacyError
        ε or δ out of range, or an unknown accounting.

    Notes
    -----
    A copy would double the budget: ``copy`` and ``deepcopy`` (hence scikit-learn's ``clone``) return the budget
    itself. It belongs to the process that made it: a forked process, and one that got it pickled, can look at a copy
    (as the budget was then), and nothing can be spent from that. Threads may share it.

    Frozen: attributes cannot be assigned, and ``__init__`` cannot run a second time.

    Examples
    --------
    >>> budget = Budget(epsilon=1.0)
    >>> budget
    Budget(epsilon=1, pure; spent 0.0000%, reserved 0.0000%)
    """

    __slots__ = ("__weakref__", "_book", "accounting", "delta", "epsilon", "total")
    epsilon: float
    delta: float | None
    accounting: str
    total: float
    _book: Book

    def __init__(self, epsilon: float, delta: float | None = None, *, accounting: str = "gdp") -> None:
        number = as_float(epsilon)
        if not 0 < number < math.inf:
            raise PrivacyError(f"epsilon must be a finite number above 0, got {epsilon!r}")
        delta = said_delta(delta)
        if accounting not in ("gdp", "zcdp", "pure") or (accounting == "pure" and delta is not None):
            raise PrivacyError(f"accounting must be 'gdp' or 'zcdp', got {accounting!r}")
        if hasattr(self, "_book"):
            raise PrivacyError("a Budget cannot be made anew: what it promises would change; make another Budget")
        measure = "pure" if delta is None else accounting
        total = number
        if delta is not None:
            total = mu_from(total, delta) ** 2 / 2 if measure == "gdp" else rho_from(total, delta)
        self._fix(epsilon=number, delta=delta, accounting=measure)
        self._fix(total=total, _book=MemoryBook(total))

    def _fix(self, **values: Any) -> None:
        """Set attributes: for the constructors here alone."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise PrivacyError(f"{name} of a Budget must stay as it is, got {value!r}: make another Budget")

    def __delattr__(self, name: str) -> None:
        raise PrivacyError(f"{name} of a Budget must stay as it is: it cannot be deleted")

    @classmethod
    def kept(cls, book: Book, epsilon: float, delta: float | None, accounting: str, total: float) -> Budget:
        """A budget whose accounts are elsewhere, with the total that was fixed there.

        Raises
        ------
        PrivacyError
            The total is more than ε and δ allow.
        """
        budget = cls(epsilon, delta, accounting="gdp" if accounting == "pure" else accounting)
        if budget.accounting != accounting or not 0 < total <= budget.total * (1 + ROUNDING):
            raise PrivacyError(
                f"total must be at most what epsilon and delta allow, {budget.total:g} ({budget.measure}), got "
                f"{total:g} in {accounting!r}"
            )
        budget._fix(total=total, _book=book)
        return budget

    @property
    def columns(self) -> dict[str, Any]:
        """What a study that keeps it has fixed of columns: (low, high), or a list of levels, by name."""
        return self._book.columns

    @property
    def in_memory(self) -> bool:
        """Whether its accounts are in memory, and in no study."""
        return isinstance(self._book, MemoryBook)

    @property
    def pure(self) -> bool:
        """Whether the budget is in pure ε."""
        return self.delta is None

    @property
    def measure(self) -> str:
        """Name of what adds up."""
        return MEASURES[self.accounting]

    @property
    def mu(self) -> float | None:
        """Gaussian DP of everything that draws on it together; None in other measures."""
        return math.sqrt(2 * self.total) if self.accounting == "gdp" else None

    @property
    def spent(self) -> float:
        """What cohorts that were read have taken."""
        return self.total * self._book.taken()[0]

    @property
    def reserved(self) -> float:
        """What cohorts hold that were not read yet."""
        return self.total * self._book.taken()[1]

    @property
    def cost(self) -> float:
        """What all releases cost: at most ``spent``, and at most ``total``, or the promise is broken."""
        return self._book.taken()[2]

    @property
    def left(self) -> float:
        """What can still be reserved."""
        return max(self.total - self.spent - self.reserved, 0.0)

    @property
    def spent_epsilon(self) -> float:
        """What was spent, as ε at the budget's δ."""
        return self.epsilon_of(self.spent)

    def epsilon_of(self, amount: float) -> float:
        """ε at the budget's δ of an amount in its measure."""
        if self.delta is None:
            return amount
        if self.accounting == "gdp":
            return epsilon_from_mu(math.sqrt(2 * amount), self.delta)
        return epsilon_from(amount, self.delta)

    def reserve(self, share: float, binding: Binding, about: Mapping[str, Any] | None = None) -> Account:
        """Set aside a share of the total for one cohort, before any of its rows are read.

        Parameters
        ----------
        share : float
            In (0, 1].
        binding : Binding
            The first reservation binds the budget to it.
        about : mapping, optional
            For what, in public: budgets that are kept in a file write it down.

        Raises
        ------
        PrivacyError
            The share is not left, or the budget is bound to another data set, unit or adjacency.
        """
        share = _share(share)
        return Account(self, self._book, self._book.reserve(share, binding, about or {}), share)

    def __repr__(self) -> str:
        delta = "pure" if self.delta is None else f"delta={self.delta:g}"
        delta += ", zCDP" if self.accounting == "zcdp" else ""
        spent, reserved, _ = self._book.taken()
        where = "" if self._book.here else "; a copy from another process, nothing can be spent from it"
        return f"Budget(epsilon={self.epsilon:g}, {delta}; spent {spent:.4%}, reserved {reserved:.4%}{where})"

    def __copy__(self) -> Budget:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Budget:
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._book.recipe() or (
            _as_seen,
            (self.epsilon, self.delta, self.accounting, math.fsum(self._book.taken()[:2])),
        )


def _as_seen(epsilon: float, delta: float | None, accounting: str, spent: float) -> Budget:
    """Copy of a budget as it was when it was pickled: to look at only."""
    budget = Budget(epsilon, delta, accounting=accounting)
    budget._fix(_book=MemoryBook(budget.total, spent=spent))
    return budget


class Account:
    """What one cohort has reserved. Its releases take shares of it; the first read spends the whole of it."""

    __slots__ = ("_at", "_book", "amount", "share")

    def __init__(self, budget: Budget, book: Book, at: int, share: float) -> None:
        self._book, self._at = book, at
        self.share = share
        self.amount = budget.total * share

    @property
    def facts(self) -> Mapping[str, Any]:
        """Where it is written down, for ledgers."""
        return self._book.facts(self._at)

    @property
    def used(self) -> float:
        """Sum of the shares of the releases, of 1."""
        return self._book.look(self._at).used

    @property
    def opened(self) -> bool:
        """Whether rows were read."""
        return self._book.look(self._at).state == "open"

    def check(self, share: float) -> float:
        """Amount (μ²/2, ρ or ε) of a share, if it is left; nothing is spent.

        Raises
        ------
        PrivacyError
            The share is not in (0, 1], is not left, or the account was closed.
        """
        share = _share(share)
        held = self._book.look(self._at)
        if held.state == "closed":
            raise gone()
        if self.used + share > 1 + TOLERANCE:
            raise PrivacyError(
                f"share must be at most what this cohort has left, {max(1 - self.used, 0.0):.6g}, got {share:g}; "
                "nothing was read for this release and nothing was spent on it"
            )
        return self.amount * share * SAFETY

    def open(self) -> None:
        """Spend the whole reservation: called just before the first row is read."""
        self._book.open(self._at)

    def spend(self, share: float, cost: float, *, whole: bool = False, release: Release | None = None) -> None:
        """Take a share for a release, just before it reads; from here on it is gone whatever happens.

        Parameters
        ----------
        share : float
            Of the reservation.
        cost : float
            What the noise of the release costs: μ²/2, ρ or ε.
        whole : bool
            Accounted for in (ε, δ) by itself: takes a whole budget, of which nothing was reserved by anybody else.
        release : Release, optional
            What it is, for books that keep that.

        Raises
        ------
        PrivacyError
            The share is not left, or the costs add up to more than was reserved. Nothing was charged.
        """
        self._book.spend(self._at, _share(share), cost, whole=whole, release=release)

    def close(self) -> None:
        """Give the reservation back if nothing was read; else do nothing, for it is spent."""
        self._book.close(self._at)

    def stop(self) -> None:
        """Give back what no release has used. When this is called may depend on released values only."""
        self._book.stop(self._at)

    def __del__(self) -> None:
        book = getattr(self, "_book", None)
        if book is not None:
            book.forget(self._at)


def _share(share: float) -> float:
    number = as_float(share)
    if not 0 < number <= 1 + TOLERANCE:
        raise PrivacyError(f"share must be a number above 0 and at most 1, got {share!r}")
    return number


class _PartBook(MemoryBook):
    """Accounts of what is done with one part of the persons: see :func:`apart`."""

    __slots__ = ("_of", "_share", "_taken")

    def __init__(self, of: Budget, share: float, taken: list[Account]) -> None:
        super().__init__(of.total)
        self._of, self._share, self._taken = of, share, taken
        self._reservations[0] = Reservation(1 - share, state="open")

    def admit(self, binding: Binding) -> None:
        """Refuse what protects something else than the budget, or than was reserved before."""
        super().admit(binding)
        self._of._book.admit(binding)

    def reserve(self, share: float, binding: Binding, about: Mapping[str, Any] | None = None) -> int:
        """Set a share aside; the first time the share of all parts, too."""
        if not self._taken:
            self._taken.append(self._of.reserve(self._share, binding, about))
        return super().reserve(share, binding, about)

    def open(self, at: int) -> None:
        """Count a reservation, and the share of all parts, as spent."""
        super().open(at)
        self._taken[0].open()

    def spend(self, at: int, share: float, cost: float, *, whole: bool = False, release: Release | None = None) -> None:
        """Charge a release; the first time the share of all parts, too."""
        super().spend(at, share, cost, whole=whole, release=release)
        if not self._taken[0].used:
            self._taken[0].spend(1.0, self._taken[0].amount * SAFETY)


def apart(budget: Budget, share: float, parts: int = 2) -> tuple[Budget, ...]:
    """Budgets for disjoint parts of the persons, on one share of a budget: together they cost what the dearest costs.

    Which part a person is in must be the same in all neighbouring data (``docs/theory/accounting.md#parallel``). Each
    has the total of `budget`, of which all but `share` is gone; the budget has spent the share with the first read. In
    memory alone: a study writes down every release.

    Parameters
    ----------
    budget : Budget
    share : float
        In (0, 1].
    parts : int

    Returns
    -------
    tuple of Budget
    """
    taken: list[Account] = []
    books = [_PartBook(budget, _share(share), taken) for _ in range(parts)]
    return tuple(Budget.kept(book, budget.epsilon, budget.delta, budget.accounting, budget.total) for book in books)


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

    The kernel reads rows after its book has let it (:meth:`fdadp.privacy.account._reservations.Book.spend`), and never
    else.
    """
    book = _RehearsalBook(budget._book, budget.total)
    return Budget.kept(book, budget.epsilon, budget.delta, budget.accounting, budget.total)
