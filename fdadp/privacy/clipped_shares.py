"""Released shares: how much of the data lies where a bound cuts it off, for about one hundredth of the budget.

Any bound that is too narrow, or in the wrong units, biases what is released within it, and nothing else in a ledger
shows that. So whoever clips releases with :func:`release_shares` what share was clipped, and says so with
:func:`warn_of_clipping`, which looks at released values only: a warning is post-processing.
"""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.errors import PrivacyError, PublicInputWarning
from fdadp.privacy.rows._sealed_row_functions import RowFunction, Rows

if TYPE_CHECKING:
    from fdadp.privacy.cohort import Cohort

SURE, SURE_PURE = 3.0, 4.5
"""Standard deviations of known noise, Gaussian and Laplace, that chance exceeds once in a thousand times."""


class ReleasedShares(NamedTuple):
    """Shares of persons (k,), as released and so perhaps a little below 0 or above 1, and the sd of their noise."""

    value: FloatArray
    sd: float
    pure: bool = False
    """Whether the noise is Laplace's."""

    @property
    def surely(self) -> FloatArray:
        """What they are at least, but for a chance of about one in a thousand; within [0, 1]."""
        return np.clip(self.value - (SURE_PURE if self.pure else SURE) * self.sd, 0.0, 1.0)


def release_shares(
    cohort: Cohort, f: RowFunction, *, n: float, share: float, name: str, size: int = 1
) -> ReleasedShares:
    """Release the averages over persons of k quantities in [0, 1], such as shares of time beyond a bound.

    Parameters
    ----------
    cohort : Cohort
    f : callable
        Row-local, from a tuple of arrays of m rows to (m, k) or (m,). Its values are limited to [0, 1]; a row with a
        NaN does not count, and a person without a row that counts counts as one half.
    n : float
        Number of persons, or of rows that are added up: the declared or the released one.
    share : float
        Of the cohort's reservation. With 0.01 the noise of a single share (k = 1) has an sd of 5 times that of a sum
        of sensitivity 1 at the whole budget, over n: .023 at (n, ε, δ) = (1000, 1, 1e-6), .002 at n = 10,000.
    name : str
        For the ledger.
    size : int
        k.

    Returns
    -------
    ReleasedShares

    Raises
    ------
    PrivacyError
        n is no number above 0, or what :meth:`Cohort.sum` refuses: nothing was read or spent.

    Notes
    -----
    *Sensitivity.* A person adds v - ½, v in [0, 1]^k the mean over its rows: of L2 norm at most √k/2 and L1 norm at
    most k/2, and the null record adds 0. So blanking out, adding or removing a person changes the sum by at most that,
    half of what v itself would need; exchanging one by twice that. It is the clip of :meth:`Cohort.sum`, and holds
    whatever f does. The share is the sum over n, plus ½. (``docs/theory/summaries.md#shares``)

    Examples
    --------
    >>> import numpy as np
    >>> from fdadp.privacy import Budget, Cohort, SeededNoise
    >>> ages = np.random.default_rng(0).uniform(20, 80, 1000)
    >>> cohort = Cohort(ages, budget=Budget(1.0, 1e-6), n=1000, noise=SeededNoise(0))
    >>> beyond = release_shares(
    ...     cohort, lambda rows: rows[0] > 65.0, n=1000, share=0.01, name="share of ages beyond the bounds"
    ... )
    >>> bool(abs(beyond.value[0] - 0.25) < 3 * beyond.sd)
    True
    """
    if not (isinstance(n, (int, float, np.integer, np.floating)) and 0 < n < math.inf):
        raise PrivacyError(f"{name}: n must be a declared or released number of persons above 0, got {n!r}")

    def centred(rows: Rows) -> FloatArray:
        values = np.clip(np.asarray(f(rows), dtype=np.float64), 0.0, 1.0) - 0.5
        return np.asarray(values.reshape(len(values), -1))

    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise PrivacyError(f"{name}: size must be the number of shares, a whole number of at least 1, got {size!r}")
    clip = size / 2 if cohort.pure else math.sqrt(size) / 2
    total, sd = cohort.sum(centred, clip=clip * cohort.law.most, size=size, share=share, name=name)
    return ReleasedShares(np.asarray(total) / n + 0.5, float(sd) / n, cohort.pure)


def warn_of_clipping(share: float, what: str, remedy: str, *, limit: float = 0.05) -> None:
    """Warn where a share that was released (its ``surely``) is above a limit.

    Parameters
    ----------
    share : float
        An entry of :attr:`ReleasedShares.surely`. Never one that was not released.
    what : str
        What was clipped, as in "the values of Y".
    remedy : str
        What to do.

    Warns
    -----
    PublicInputWarning
    """
    if share > limit:
        text = f"the releases say that at least {100 * share:.0f} % of {what} were clipped: {remedy}"
        warnings.warn(text, PublicInputWarning, stacklevel=3)
