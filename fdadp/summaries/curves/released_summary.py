"""Mean and covariance of curves from the kernel: the releases behind :mod:`fdadp.summaries`.

A curve is described by its coefficients c on orthonormal functions that a public prior gives. In this order are
released: the number of persons with an observed curve,
the share of values beyond the bounds, the level of the curves (a histogram), the size of c about it (log
scale), a rough mean, the spread about it (log scale), the shares of persons beyond four multiples of that, the mean of
c about the rough one, clipped where noise and what the tail loses balance, and the second moment about the mean,
likewise. All of it are sums of clipped, noised contributions, and everything else is post-processing of them.

Sensitivities: those of :meth:`Cohort.sum`, :meth:`Cohort.histogram`, :meth:`Cohort.geometric_mean` and
:func:`~fdadp.privacy.clipped_shares.release_shares` (a clip bounds a person's contribution). The triangle of r r',
off-diagonals times sqrt(2), has the L2 norm |r|², in pure form the L1 norm (|r|₁² + |r|²)/2
(``docs/theory/kernel.md#second-moments``). Proofs, and what the bands hold: docs/theory/summaries.md.

References
----------
Hall, Rinaldo & Wasserman (2013), Differential Privacy for Functions and Functional Data, JMLR 14, 703-727: noise on a
function is noise on its coefficients. Lin & Reimherr (2023), Pure Differential Privacy for Functional Summaries via a
Laplace-like Process, arXiv:2309.00125: noise in proportion to the prior size of each coefficient, in pure ε. Here the
noise is that of one clipped vector, and what the prior knows enters as shrinkage by the known noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fdadp._common.calling_language import advice
from fdadp._common.loaded_later import pd
from fdadp._common.typing import ArrayLike, CurveData, FloatArray
from fdadp.errors import InputError, PrivacyError
from fdadp.functional.quadrature import quadrature_weights
from fdadp.functional.tables.curve_sample import Curves, Kind, as_grid
from fdadp.functional.tables.row_and_grid_labels import same_rows
from fdadp.privacy import Cohort, Ledger, Privacy
from fdadp.privacy.account.epsilon_mu_rho import noise_multiplier, unit_noise
from fdadp.privacy.clipped_shares import release_shares
from fdadp.privacy.guarantee_checks import check_delta
from fdadp.privacy.noise.sources import Noise
from fdadp.private.levels.between_within_covariances import (
    LevelMoments,
    PersonRows,
    release_row_shares,
    release_within,
    with_several,
)
from fdadp.private.levels.observed_counts import release_observed, release_rest
from fdadp.private.levels.tail_law_and_clip import ReleasedCovariance
from fdadp.private.plan.budget_sharing import release_n
from fdadp.private.public.column_ranges import Range, public_range
from fdadp.private.public.curve_shapes import LEAST_POINTS, PrivateChunks, check_groups, private_curves
from fdadp.private.public.gaussian_process_prior import PublicPrior
from fdadp.private.release.mechanisms import check_allow_useless, check_prior
from fdadp.summaries.curves.mean_and_covariance import (
    CurveRowFunctions,
    SummaryTuning,
    release_covariance,
    release_mean,
)

OUTSIDE = 0.02
"""A warning is given where more than this share of the values is beyond the bounds."""
WIDEN = "widen bounds=(low, high), or check their units"
MOST_NOISE = 0.5
"""A request is refused where the noise would be more than this share of the curves' spread."""


@dataclass(frozen=True)
class Declared:
    """What a summary is told in public, checked.

    Attributes
    ----------
    privacy : Privacy
    bounds : (float, float)
        Range of the curves' values.
    prior : PublicPrior
        Its functions carry the summary.
    allow_useless : bool
        Release even where the noise is more than half of the curves' spread.
    """

    privacy: Privacy
    bounds: Range
    prior: PublicPrior
    allow_useless: bool


@dataclass(frozen=True)
class HandedCurves:
    """Curves as they were handed over, of which only what is public was looked at.

    Attributes
    ----------
    declared : Declared
    data : curves (n, T) as they are, or PrivateChunks
    groups : sequence of ids (n,), True or None
        As a :class:`~fdadp.privacy.Cohort` takes them.
    form : Curves or PrivateChunks
        Their grid, and the kind and labels that results are given back with.
    noise : Noise, optional
        For audits.
    """

    declared: Declared
    data: Any = field(repr=False)
    groups: Any = field(repr=False)
    form: Curves | PrivateChunks = field(repr=False)
    noise: Noise | None = None


def check(privacy: Any, bounds: Any, prior: Any, allow_useless: Any) -> Declared:
    """Refuse what cannot be had, from public values alone.

    Raises
    ------
    InputError
        Not a Privacy, or not a PublicPrior.
    PrivacyError
        No public range of Y, an adjacency that does not suit n, or a budget that is spent.
    """
    if not isinstance(privacy, Privacy):
        raise InputError(f"privacy must be a Privacy, got {type(privacy).__name__}")
    pair = public_range(bounds)
    check_prior(prior)
    check_allow_useless(allow_useless)
    privacy.check_adjacency()
    privacy.budget_share()
    return Declared(privacy, pair, PublicPrior(n_response=12, y_length=0.2) if prior is None else prior, allow_useless)


def public_input(privacy: Privacy, Y: CurveData, t: ArrayLike | None, groups: Any) -> Curves:
    """Check what is public of curves: their grid and shapes; the values are not looked at."""
    if privacy.labels == "public":
        same_rows(Y=Y, groups=groups)
    curves = private_curves(Y, t, "Y", streamed=True)
    if groups is not None and getattr(groups, "n", 0) is not None:
        check_groups(groups, len(curves))
    return curves


def public_chunks(chunks: Any, t: ArrayLike, groups: Any, kind: Kind = "array") -> PrivateChunks:
    """Check what is public of chunks of curves: the grid, and the source."""
    if t is None:
        raise InputError(
            "t must be the grid of the curves when fitting from chunks, got None: chunks are not looked at"
        )
    grid = as_grid(t, np.size(t), "t")
    if grid.size < LEAST_POINTS:
        raise InputError(f"t must have at least {LEAST_POINTS} points, got {grid.size}")
    columns = t if isinstance(t, pd.Index) else None
    return PrivateChunks(chunks, {"Y": grid}, groups=groups, kind=kind, columns=columns)


def _check_noise(declared: Declared, n: float, relative: float) -> None:
    check_delta(declared.privacy.delta, n)
    if relative > MOST_NOISE and not declared.allow_useless:
        raise PrivacyError(
            f"n and epsilon must leave noise of at most {MOST_NOISE:g} of the curves' spread, got {relative:.2g} with "
            f"{n:.0f} persons and epsilon {declared.privacy.epsilon:g}; it takes some {relative / MOST_NOISE:.2g} "
            f"times the persons{advice(', or allow_useless=True', r=', or allow_useless = TRUE', shell='')}"
        )


@dataclass(frozen=True)
class PrivateCurves:
    """Private curves behind the wall, and what is known of them before the first release but for their number.

    Attributes
    ----------
    cohort : Cohort
    rows : CurveRowFunctions
    functions : ndarray of shape (T, m)
    weights : ndarray of shape (T,)
    prior_shares : ndarray of shape (m,)
    n : float
        Declared, or released.
    tuning : SummaryTuning
        Shares of what is left of the budget.
    """

    cohort: Cohort
    rows: CurveRowFunctions
    functions: FloatArray
    weights: FloatArray
    prior_shares: FloatArray
    n: float
    tuning: SummaryTuning


def opened(handed: HandedCurves, tuning: SummaryTuning) -> PrivateCurves:
    """Make a cohort of curves and settle n. All validation comes before the first read."""
    declared, grid = handed.declared, handed.form.grid
    privacy, prior = declared.privacy, declared.prior
    unit = (grid - grid[0]) / (grid[-1] - grid[0])
    weights = quadrature_weights(unit)
    functions, prior_shares = prior.response_functions(unit, weights)
    rows = CurveRowFunctions(functions, weights, declared.bounds, grid)
    budget, share = privacy.budget_share()
    if privacy.n is not None:  # before anything is reserved
        whole = noise_multiplier(share * budget.total, privacy.stated_adjacency, pure=budget.pure)
        _check_noise(declared, privacy.n, _relative_noise(whole / privacy.n, tuning, pure=budget.pure))
    cohort = privacy.cohort(
        handed.data,
        groups=handed.groups,
        mechanism=f"private {tuning.goal}",
        noise=handed.noise,
        public={
            "bounds of the curves": declared.bounds,
            "grid": f"{grid.size} points on [{grid[0]:g}, {grid[-1]:g}]",
            "functions": f"{functions.shape[1]}, of correlation length {prior.y_length:g}",
        },
    )
    n, left = (float(privacy.n), 1.0) if privacy.n is not None else release_n(cohort)
    eta = unit_noise(cohort, left) / n  # with what many owners add
    with cohort.refusing():
        _check_noise(declared, n, _relative_noise(eta, tuning, pure=cohort.pure))
    return PrivateCurves(cohort, rows, functions, weights, prior_shares, n, tuning.scaled(left))


@dataclass(frozen=True)
class Summary:
    """What was released, on functions of t and about the middle of the public range.

    Attributes
    ----------
    curves : PrivateCurves
        What it is of: number of persons, functions and their weights, the cohort with its ledger.
    observed : float
        Persons with an observed curve, as released: all averages are over them.
    outside : float
        Share of the curves' values that is surely beyond the public bounds.
    mean, mean_variance : ndarray of shape (m,)
        Coefficients and the variances that the noise leaves them.
    mean_bias : float
        What the clip took off the mean, at most: an L2 norm, expected from the released tail.
    covariance : ReleasedCovariance
        Of a curve's coefficients, shrunk by the known noise, positive semi-definite.
    rest : float
        Mean square of curves outside the functions; NaN where it was not asked for.
    """

    curves: PrivateCurves
    observed: float
    outside: float
    mean: FloatArray
    mean_variance: FloatArray
    mean_bias: float
    covariance: ReleasedCovariance
    rest: float


def summarise(handed: HandedCurves, tuning: SummaryTuning) -> Summary:
    """Spend the budget on mean and covariance: `tuning` such as `MEAN` and `COVARIANCE`.

    What is declared was checked; the first read comes after all validation.
    """
    start = opened(handed, tuning)
    rows, tuning, prior_shares = start.rows, start.tuning, start.prior_shares
    coefficients = start.cohort.derive(rows.coefficients, name="coefficients of curves")
    observed, outside = observed_curves(coefficients, rows, start.n, tuning)
    mean, variance, lost, tail = release_mean(coefficients, rows, prior_shares, tuning, observed)
    released = release_covariance(coefficients, rows, prior_shares, tuning, observed, tail)
    rest = release_rest(coefficients, rows.rest, tail.typical, tuning.rest, observed) if tuning.rest else math.nan
    return Summary(start, observed, outside, mean, variance, lost, released, rest)


def observed_curves(cohort: Cohort, rows: CurveRowFunctions, n: float, tuning: SummaryTuning) -> tuple[float, float]:
    """Number of persons with an observed curve, and the share of their values that is surely beyond the bounds."""
    observed = release_observed(cohort, rows.observed, n, tuning.observed)
    outside = release_shares(
        cohort, rows.outside, n=observed, share=tuning.outside, name="share of values beyond the bounds"
    )
    return observed, float(outside.surely[0])


@dataclass(frozen=True)
class ReleasedLevels:
    """Mean, and covariances between and within persons, of curves of which each person has several.

    All rows of a person stand side by side (:meth:`fdadp.privacy.Cohort.by_person`), and each release takes one clipped
    contribution of a person: the mean of its curves, the product of that mean with itself, and the products of its
    curves about that mean. Of persons' means B = G + E[1/n] R is estimated, G between and R within persons; so
    G = B - E[1/n] R.

    Attributes
    ----------
    curves : PrivateCurves
    outside : float
        Share of the curves' values that is surely beyond the public bounds.
    mean : ndarray of shape (m,)
    levels : LevelMoments
    rest : float
        Mean square of curves outside the functions.
    ledger : Ledger
        Of all that was released, with how the rows of a person count.

    References
    ----------
    Di, Crainiceanu, Caffo & Punjabi (2009), Annals of Applied Statistics 3, doi:10.1214/08-AOAS206. The laws "between"
    and "within" and their sensitivity: ``docs/theory/kernel.md#person-moments``.
    """

    curves: PrivateCurves
    outside: float
    mean: FloatArray
    levels: LevelMoments
    rest: float
    ledger: Ledger


def summarise_levels(handed: HandedCurves, tuning: SummaryTuning, *, max_rows: int) -> ReleasedLevels:
    """Spend the budget on both levels, as :func:`summarise`; `max_rows` of a person count.

    In this order: how many persons have a curve, the share of values beyond the bounds, how many curves persons have,
    the mean curve (:func:`release_mean`, of persons' means), the covariance of persons' means, the size of what differs
    within persons, its tail, and the covariance within persons.
    """
    start = opened(handed, tuning)
    rows, tuning, prior_shares = start.rows, start.tuning, start.prior_shares
    persons = start.cohort.by_person(rows.coefficients, max_rows=max_rows, name="curves of persons")
    means = persons.derive(PersonRows().means, name="means of persons")
    n, outside = observed_curves(means, rows, start.n, tuning)
    row_shares = release_row_shares(persons, tuning.rows, "curves a person")
    mean, _, _, tail = release_mean(means, rows, prior_shares, tuning, n)
    of_means = release_covariance(means, rows, prior_shares, tuning, n, tail)
    sizes = {"typical": tail.typical, "largest": tail.largest}
    within = release_within(persons, prior_shares, tuning.within_persons, with_several(n, row_shares), **sizes)
    rest = release_rest(means, rows.rest, tail.typical, tuning.rest, n)
    return ReleasedLevels(start, outside, mean, LevelMoments(of_means, within, row_shares, n), rest, persons.ledger)


def _relative_noise(eta: float, tuning: SummaryTuning, *, pure: bool) -> float:
    """Sd of the noise of a coefficient, or of a variance, relative to the spread of curves (its square)."""
    return tuning.clip_of_goal * (eta / tuning.share if pure else eta / math.sqrt(tuning.share))
