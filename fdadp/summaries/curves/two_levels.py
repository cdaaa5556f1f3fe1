"""Mean, and covariances between and within persons, of curves of which each person has several.

All rows of a person stand side by side (:meth:`fdadp.privacy.Cohort.by_person`), and each release takes one clipped
contribution of a person: the mean of its curves, the product of that mean with itself, and the products of its curves
about that mean. In this order: how many persons have a curve, how many curves persons have, the share of values beyond
the bounds, the mean curve (:func:`release_mean`, of persons' means), the covariance of persons' means, the size of what
differs within persons, its tail, and the covariance within persons.

Of persons' means B = G + E[1/n] R is estimated, G between and R within persons; so G = B - E[1/n] R.

References
----------
Di, Crainiceanu, Caffo & Punjabi (2009), Annals of Applied Statistics 3, doi:10.1214/08-AOAS206. The laws "between" and
"within" and their sensitivity: ``docs/theory/kernel.md#person-moments``.
"""

from __future__ import annotations

from dataclasses import dataclass

from fdadp._common.typing import FloatArray
from fdadp.privacy import Cohort, Ledger
from fdadp.private.levels.between_within_covariances import (
    LevelMoments,
    PersonRows,
    release_row_shares,
    release_within,
    with_several,
)
from fdadp.private.levels.observed_counts import release_rest
from fdadp.summaries.curves.mean_and_covariance import (
    CurveRowFunctions,
    SummaryTuning,
    release_covariance,
    release_mean,
)
from fdadp.summaries.curves.released_summary import HandedCurves, PrivateCurves, observed_curves, opened


@dataclass(frozen=True)
class ReleasedLevels:
    """Both levels of curves, as released.

    Attributes
    ----------
    outside : float
        Share of the curves' values that is surely beyond the public bounds.
    mean : ndarray of shape (m,)
    levels : LevelMoments
    rest : float
        Mean square of curves outside the functions.
    ledger : Ledger
    """

    outside: float
    mean: FloatArray
    levels: LevelMoments
    rest: float
    ledger: Ledger


def release_levels(
    persons: Cohort, means: Cohort, rows: CurveRowFunctions, prior_shares: FloatArray, tuning: SummaryTuning, n: float
) -> ReleasedLevels:
    """Spend on both levels, of `n` persons. `means` are those of :meth:`PersonRows.means` of `persons`."""
    n, outside = observed_curves(means, rows, n, tuning)
    row_shares = release_row_shares(persons, tuning.rows, "curves a person")
    several = with_several(n, row_shares)
    mean, _, _, tail = release_mean(means, rows, prior_shares, tuning, n)
    of_means = release_covariance(means, rows, prior_shares, tuning, n, tail)
    sizes = {"typical": tail.typical, "largest": tail.largest}
    within = release_within(persons, prior_shares, tuning.within_persons, several, **sizes)
    levels = LevelMoments(of_means, within, row_shares, n)
    return ReleasedLevels(
        outside, mean, levels, release_rest(means, rows.rest, tail.typical, tuning.rest, n), persons.ledger
    )


def summarise_levels(
    handed: HandedCurves, tuning: SummaryTuning, *, max_rows: int
) -> tuple[PrivateCurves, ReleasedLevels]:
    """Spend the budget on both levels, as :func:`summarise`; `max_rows` of a person count."""
    start = opened(handed, tuning)
    persons = start.cohort.by_person(start.rows.coefficients, max_rows=max_rows, name="curves of persons")
    means = persons.derive(PersonRows().means, name="means of persons")
    return start, release_levels(persons, means, start.rows, start.prior_shares, start.tuning, start.n)
