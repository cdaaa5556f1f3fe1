"""A total that releases draw on: ρ for (ε, δ), ε for pure privacy. Never more than was promised.

Shares may be chosen adaptively, from earlier releases, as long as their sum stays below a fixed total: that is a
privacy filter. For zCDP: Feldman & Zrnic (2021), Individual Privacy Accounting via a Rényi Filter, and Whitehouse,
Ramdas, Rogers & Wu (2023), Fully-Adaptive Composition in Differential Privacy, Theorem 1 (arXiv:2203.05481); for pure ε
the sum of adaptively chosen ε is bounded in the same way (Rogers, Roth, Ullman & Vadhan 2016).
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, field
from typing import Any, NoReturn

from fdadp.errors import PrivacyError
from fdadp.privacy.accounting import epsilon_from, rho_from

__all__ = ["Account", "Binding", "Budget"]

TOLERANCE = 1e-9
"""Shares such as ten times 0.1 may add up to a hair above 1 ..."""
SAFETY = 1 - 3e-9
"""... and this factor on every amount keeps their true sum below the total: (1 + 1e-9)² (1 - 3e-9) < 1."""


@dataclass(frozen=True)
class Binding:
    """What a budget protects. Spending on another data set, unit or adjacency would have no common meaning."""

    dataset: object = field(repr=False)
    unit: str
    adjacency: str


class Budget:
    """A privacy budget that several fits may share.

    Parameters
    ----------
    epsilon : float
        Above 0.
    delta : float, optional
        In (0, 1): accounting is in zCDP, with the largest ρ that implies (ε, δ). None: pure ε.

    Attributes
    ----------
    epsilon, delta : as given
    total : float
        ρ, or ε where pure.
    spent, reserved, left : float
        In the same measure. From the first read of a cohort on, all that it had reserved is spent.

    Raises
    ------
    PrivacyError
        ε or δ out of range.

    Notes
    -----
    A copy would double the budget: ``copy`` and ``deepcopy`` (hence scikit-learn's ``clone``) return the budget
    itself, and it cannot be pickled.

    Examples
    --------
    >>> budget = Budget(epsilon=1.0)
    >>> budget
    Budget(epsilon=1, pure; spent 0.0000%, reserved 0.0000%)
    """

    __slots__ = ("__weakref__", "_binding", "_lock", "_reserved", "_spent", "delta", "epsilon", "total")

    def __init__(self, epsilon: float, delta: float | None = None) -> None:
        if isinstance(epsilon, bool) or not isinstance(epsilon, (int, float)) or not 0 < epsilon < math.inf:
            raise PrivacyError(f"epsilon must be a finite number above 0, got {epsilon!r}")
        if delta is not None and not (isinstance(delta, (int, float)) and 0 < delta < 1):
            raise PrivacyError(f"delta must lie between 0 and 1, or be None for pure epsilon, got {delta!r}")
        self.epsilon = float(epsilon)
        self.delta = None if delta is None else float(delta)
        self.total = self.epsilon if self.delta is None else rho_from(self.epsilon, self.delta)
        self._spent: list[float] = []  # shares of the total
        self._reserved: list[float] = []
        self._binding: Binding | None = None
        self._lock = threading.Lock()

    @property
    def pure(self) -> bool:
        """Whether the budget is in pure ε."""
        return self.delta is None

    @property
    def measure(self) -> str:
        """Name of what adds up."""
        return "epsilon" if self.pure else "rho (zCDP)"

    @property
    def spent(self) -> float:
        """What cohorts that were read have taken."""
        return self.total * math.fsum(self._spent)

    @property
    def reserved(self) -> float:
        """What cohorts hold that were not read yet."""
        return self.total * math.fsum(self._reserved)

    @property
    def left(self) -> float:
        """What can still be reserved."""
        return max(self.total - self.spent - self.reserved, 0.0)

    @property
    def spent_epsilon(self) -> float:
        """What was spent, as ε at the budget's δ."""
        return self.spent if self.delta is None else epsilon_from(self.spent, self.delta)

    def reserve(self, share: float, binding: Binding) -> Account:
        """Set aside a share of the total for one cohort, before any of its rows are read.

        Parameters
        ----------
        share : float
            In (0, 1].
        binding : Binding
            The first reservation binds the budget to it.

        Raises
        ------
        PrivacyError
            The share is not left, or the budget is bound to another data set, unit or adjacency.
        """
        share = _share(share)
        with self._lock:
            if self._binding is not None and self._binding != binding:
                names = {"dataset": "data set", "unit": "unit", "adjacency": "adjacency"}
                differs = [text for k, text in names.items() if getattr(self._binding, k) != getattr(binding, k)]
                raise PrivacyError(
                    f"this budget is bound to another {' and '.join(differs)}: it protects one unit of one data set "
                    "under one adjacency; use a new Budget, or name the data with dataset= if they are the same"
                )
            left = 1 - math.fsum(self._spent) - math.fsum(self._reserved)
            if share > left + TOLERANCE:
                raise PrivacyError(
                    f"share must be at most what the budget has left, {max(left, 0.0):.6g} of its total, "
                    f"got {share:g}; nothing was read and nothing was spent"
                )
            self._binding = binding
            self._reserved.append(share)
        return Account(self, share)

    def _settle(self, share: float, *, spent: bool) -> None:
        with self._lock:
            self._reserved.remove(share)
            if spent:
                self._spent.append(share)
            elif not self._spent and not self._reserved:
                self._binding = None

    def __repr__(self) -> str:
        delta = "pure" if self.delta is None else f"delta={self.delta:g}"
        spent, reserved = math.fsum(self._spent), math.fsum(self._reserved)
        return f"Budget(epsilon={self.epsilon:g}, {delta}; spent {spent:.4%}, reserved {reserved:.4%})"

    def __copy__(self) -> Budget:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Budget:
        return self

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise PrivacyError("a Budget cannot be pickled: a copy would double it")


class Account:
    """What one cohort has reserved. Its releases take shares of it; the first read spends the whole of it."""

    __slots__ = ("_budget", "_closed", "_opened", "_shares", "amount", "share")

    def __init__(self, budget: Budget, share: float) -> None:
        self._budget = budget
        self.share = share
        self.amount = budget.total * share
        self._shares: list[float] = []
        self._opened = False
        self._closed = False

    @property
    def used(self) -> float:
        """Sum of the shares of the releases, of 1."""
        return math.fsum(self._shares)

    @property
    def opened(self) -> bool:
        """Whether rows were read."""
        return self._opened

    def check(self, share: float) -> float:
        """Amount (ρ or ε) of a share, if it is left; nothing is spent.

        Raises
        ------
        PrivacyError
            The share is not in (0, 1], is not left, or the account was closed.
        """
        share = _share(share)
        if self._closed:
            raise PrivacyError("this cohort was closed and gave its budget back: make a new one")
        if math.fsum([*self._shares, share]) > 1 + TOLERANCE:
            raise PrivacyError(
                f"share must be at most what this cohort has left, {max(1 - self.used, 0.0):.6g}, got {share:g}; "
                "nothing was read for this release and nothing was spent on it"
            )
        return self.amount * share * SAFETY

    def open(self) -> None:
        """Spend the whole reservation: called just before the first row is read."""
        if self._closed:
            raise PrivacyError("this cohort was closed and gave its budget back: make a new one")
        if not self._opened:
            self._opened = True
            self._budget._settle(self.share, spent=True)

    def spend(self, share: float) -> None:
        """Take a share for a release, just before it reads; from here on it is gone whatever happens."""
        self.check(share)
        self.open()
        self._shares.append(float(share))

    def close(self) -> None:
        """Give the reservation back if nothing was read; else do nothing, for it is spent."""
        if not self._opened and not self._closed:
            self._closed = True
            self._budget._settle(self.share, spent=False)

    def __del__(self) -> None:
        if getattr(self, "_closed", True) is False:
            self.close()


def _share(share: float) -> float:
    if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share <= 1 + TOLERANCE:
        raise PrivacyError(f"share must be a number above 0 and at most 1, got {share!r}")
    return float(share)
