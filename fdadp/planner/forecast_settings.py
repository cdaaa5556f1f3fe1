"""What is asked of every forecast: persons, budget, adjacency; and the same noise a person in smaller cohorts."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fdadp._common.argument_checks import one_of, whole
from fdadp._common.threads import one_blas_thread
from fdadp._common.typing import FloatArray
from fdadp.planner.simulated_fit_of_one_curve import LEAST_MULTIPLIER, noisy_budget
from fdadp.privacy import Budget, Privacy
from fdadp.privacy.account.epsilon_mu_rho import noise_multiplier
from fdadp.privacy.guarantee_checks import ADJACENCIES, said_delta

TWENTIETH = 0.05
"""Standard error of the mean of errors over it, above which more cohorts are simulated."""
TENTH = 0.1
"""The worst share is this quantile of those of the simulated cohorts, and the best one that from above."""


class Spread(NamedTuple):
    """Of a share, an error or a width in simulated cohorts.

    Attributes
    ----------
    mean : float
    worst, best : float
        What the worst tenth has at most, and the best tenth at least; of errors and widths the other way round. Eight
        of ten lie between.
    error : float
        Standard error of the mean.
    """

    mean: float
    worst: float
    best: float
    error: float

    @classmethod
    def of(cls, found: Sequence[float] | FloatArray, *, least_is_best: bool = False) -> Spread:
        """From one number a cohort; of errors and widths the least is the best."""
        found = np.asarray(found)
        worst, best = np.quantile(found, (1 - TENTH, TENTH) if least_is_best else (TENTH, 1 - TENTH))
        return cls(float(found.mean()), float(worst), float(best), float(found.std(ddof=1) / np.sqrt(found.size)))

    def facts(self, what: str, cohorts: int, digits: int = 2) -> list[tuple[str, str]]:
        """What a forecast prints of it."""
        return [
            (what, f"{self.mean:.{digits}f}"),
            (f"worst tenth of {cohorts} simulated cohorts: at most", f"{self.worst:.{digits}f}"),
            ("best tenth: at least", f"{self.best:.{digits}f}"),
            ("standard error of the mean, by simulation", f"{self.error:.3f}"),
        ]

    def in_short(self, what: str, digits: int = 3) -> list[tuple[str, str]]:
        """The same in two lines."""
        low, high = sorted((self.worst, self.best))
        tenths = f"{low:.{digits}f}, {high:.{digits}f}"
        return [(what, f"{self.mean:.{digits}f}"), ("  eight cohorts of ten lie between", tenths)]


class Cohorts(NamedTuple):
    """How many cohorts are simulated: as many as it takes for the standard error of the mean share.

    Attributes
    ----------
    fewest, most : int
    error : float
        Standard error that `most` may leave; fewer have to agree better, in proportion. Shares have a long lower tail,
        which a few lucky cohorts do not show.
    """

    fewest: int
    most: int
    error: float

    def enough(self, shares: Sequence[float], *errors: Sequence[float]) -> bool:
        """Whether these are enough: of shares, and for means of errors that are known to :data:`TWENTIETH`."""
        if len(shares) < min(self.fewest, self.most):
            return False
        if len(shares) >= self.most:
            return True
        known = all((own := Spread.of(sizes)).error <= TWENTIETH * own.mean for sizes in errors)
        return known and Spread.of(shares).error <= self.error * len(shares) / self.most


@dataclass(frozen=True)
class Asked:
    """Persons and budget of a fit, checked.

    Attributes
    ----------
    n : int
    epsilon : float
    delta : float or None
    adjacency : {"zero-out", "add-remove", "replace"}
    """

    n: int
    epsilon: float
    delta: float | None
    adjacency: str

    @classmethod
    def of(cls, n: int, epsilon: float, delta: float | None, adjacency: str | None) -> Asked:
        """From arguments as of :func:`fdadp.plan`.

        Raises
        ------
        InputError, PrivacyError
            One of them is out of range.
        """
        stated = "zero-out" if adjacency is None else one_of(adjacency, "adjacency", ADJACENCIES)
        own = cls(whole(n, "n"), epsilon, said_delta(delta), stated)
        own.privacy(own.n, 0).check()
        return own

    @property
    def pure(self) -> bool:
        """Whether the noise is Laplace noise."""
        return self.delta is None

    @property
    def amount(self) -> float:
        """The whole budget in the measure of its kind."""
        return Budget(self.epsilon, self.delta).total

    def privacy(self, few: int, seed: int) -> Privacy:
        """The guarantee of a cohort of `few` persons, with as much noise a person as `n` have."""
        epsilon, delta = self.epsilon, self.delta
        if few < self.n:
            multiplier = noise_multiplier(self.amount, "zero-out", pure=self.pure) * few / self.n
            budget = noisy_budget(max(multiplier, LEAST_MULTIPLIER), pure=self.pure)
            epsilon, delta = budget.epsilon, budget.delta
        declared = None if self.adjacency == "add-remove" else few
        return Privacy(epsilon, delta, n=declared, adjacency=self.adjacency, random_state=seed)


@contextmanager
def quietly() -> Iterator[None]:
    """Fits of simulated persons: no warning, one thread."""
    with warnings.catch_warnings(), one_blas_thread():
        warnings.simplefilter("ignore")
        yield
