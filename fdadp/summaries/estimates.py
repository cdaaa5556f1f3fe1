"""``Estimates``: released summaries of numbers and classes, each with an interval, and the ledger."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fdadp._common.checks import flag, fraction
from fdadp.errors import InputError
from fdadp.summaries.questions.laws import NoisyEstimate

if TYPE_CHECKING:
    from pandas import DataFrame

    from fdadp.privacy import Ledger

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
        import pandas as pd

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
