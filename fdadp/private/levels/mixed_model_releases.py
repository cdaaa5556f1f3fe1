"""Releases of a private mixed model: effects, and covariances between and within persons.

All rows of a person stand side by side, and each release takes one clipped contribution of a person. In this order: how
many persons have a row, how many rows they have, the share of values beyond the bounds, the size of their means and a
rough mean; products of the features' means, and of what varies within persons; two rounds of the equations of effects,
each clipped at its released size; and of what is left the covariances of means and of rows.

Effects solve equations of two kinds. Of means: ``Σ_i γ_i x̄_i (c̄_i - B'x̄_i)' = 0``; and of what varies within persons:
``Σ_i Σ_j (x_ij - x̄_i)(c_ij - B'x_ij)' = 0``. By default a column that varies within persons has its effect from the
second kind alone, and the others have theirs from means, where each person counts once (γ = 1). "exchangeable" adds
both kinds with γ = n/(1 + n): generalised least squares with as much variance between persons as within them.

Proofs, and the covariance of the effects: ``docs/theory/summaries.md#mixed``.

References
----------
Pepe & Anderson (1994), Communications in Statistics B 23, doi:10.1080/03610919408813210: when pooled equations are
consistent. Liang & Zeger (1986), Biometrika 73, doi:10.1093/biomet/73.1.13.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from fdadp._common.symmetric_matrices import positive_part
from fdadp._common.typing import BoolArray, FloatArray
from fdadp.privacy import Cohort, Ledger, Noisy
from fdadp.privacy.clipped_shares import release_shares
from fdadp.privacy.rows._sealed_row_functions import RowFunction
from fdadp.private.denoise.empirical_bayes import shrunk_coefficients, shrunk_scale
from fdadp.private.levels.between_within_covariances import (
    LevelMoments,
    WithinShares,
    release_row_shares,
    release_within,
    with_several,
)
from fdadp.private.levels.mixed_model_rows import CENTRED, MixedCoordinates, MixedRows
from fdadp.private.levels.observed_counts import L1_OVER_L2, release_observed, release_rest
from fdadp.private.levels.tail_law_and_clip import EDGES, PRIOR, TINY, Tail, clip_of, covariance_of
from fdadp.rounds.budget_plan import Aux
from fdadp.rounds.posterior_means import shrunk

SHARES = {
    "persons": 0.005,
    "outside": 0.005,
    "rows": 0.015,
    "size": 0.015,
    "rough mean": 0.03,
    "means of features": 0.04,
    "features within": 0.03,
    "size of equations, round 1": 0.015,
    "size within, round 1": 0.015,
    "equations of means, round 1": 0.05,
    "equations within, round 1": 0.03,
    "size of equations, round 2": 0.015,
    "equations of means, round 2": 0.22,
    "equations within, round 2": 0.12,
    "size of residuals": 0.015,
    "tail of residuals": 0.025,
    "covariance of means": 0.155,
    "size of rows": 0.015,
    "tail of rows": 0.025,
    "covariance within": 0.13,
    "rest": 0.03,
}
"""Shares of the budget of all releases; they add up to one."""
PURE = SHARES | {
    "persons": 0.01,
    "outside": 0.01,
    "rows": 0.02,
    "means of features": 0.06,
    "features within": 0.05,
    "equations of means, round 2": 0.19,
    "equations within, round 2": 0.09,
    "tail of residuals": 0.035,
    "tail of rows": 0.035,
    "covariance of means": 0.15,
    "covariance within": 0.12,
}
"""The same in pure ε, where noise is as one over a share and not over its root."""
OF_WITHIN = ("features within", "size within, round 1", "equations within, round 1", "equations within, round 2")
"""Releases that are there where a column varies within persons."""
EQUATION_CLIP, SIZE_CLIP = 2.5, 1.5
"""Clips over a released size: of equations, and of means and moments whose tails are not known."""
PURE_CLIP = 1.75
"""The first of these for pure equations within persons: sums of sizes differ less between persons than norms."""
BELOW, ABOVE, GUESS = 64.0, 32.0, 4.0
"""Sizes are looked for down to the bounds over the first, and up to a size times the second; the half-width of the
bounds over the size that curves are guessed to have."""
FEATURES_SD = 0.6
"""Prior sd of an entry of the features' second moment over the prior mean squares of both."""
WITHIN_PART = 0.5
"""Share of a feature's mean square that the prior expects within persons."""
FAR = -8.0
"""Sds below 0 from which the mean of a normal law that is cut at 0 is taken by its asymptote."""
PRODUCTS = Aux(target=0.05, cap=0.15)
"""Either of the products of features: noise in an entry."""


def shares_of(public: MixedCoordinates, eta: float, *, pure: bool) -> dict[str, float]:
    """Shares of the budget, from public values.

    Without columns that vary within persons theirs go to the equations of means. Products of features get what makes
    their noise small, at most :data:`PRODUCTS`' cap, for effects are divided by them; all others have the rest.

    Parameters
    ----------
    public : MixedCoordinates
    eta : float
        Noise per person: sd of a sum of sensitivity 1 at the whole budget, over the number of persons.
    pure : bool
    """
    shares = dict(PURE if pure else SHARES)
    p_w = int(public.varying.sum())
    if not p_w:
        shares["equations of means, round 2"] += sum(shares.pop(name) for name in OF_WITHIN)
    needs = {"means of features": (public.most_of_means, public.varying.size)}
    if p_w:  # of about half of the rows beyond one that a person may have
        needs["features within"] = (public.most_within / max((public.max_rows - 1) / 2, 1.0), p_w)
    own = {}
    for name, (clip, size) in needs.items():
        noise = clip * eta * (math.sqrt((size + 1) / 2) if pure else 1.0)
        own[name] = replace(PRODUCTS, least=shares[name] / 2).share(noise, pure=pure)
    left = (1 - sum(own.values())) / (1 - sum(shares[name] for name in own))
    return {name: own.get(name, share * left) for name, share in shares.items()}


@dataclass(frozen=True)
class MixedReleases:
    """What was released of a mixed model, and what follows from it.

    Attributes
    ----------
    effects : ndarray of shape (p, K)
        Of the features, the constant first, on the K functions; about the middle of the range of the response.
    covariance : ndarray of shape (p K, p K)
        Of the effects: of who is in the sample, and of the noise.
    features : ndarray of shape (p, p)
        Second moment of the features of rows.
    levels : LevelMoments
        Of what is left.
    rest : float
        Mean square of curves outside the functions.
    outside : float
        Share of the values of the response that is surely beyond its bounds.
    ledger : Ledger
    """

    effects: FloatArray
    covariance: FloatArray
    features: FloatArray
    levels: LevelMoments
    rest: float
    outside: float
    ledger: Ledger


class FeatureMoments(NamedTuple):
    """Products of features, the sum over persons, and the sd of the noise that is left in each entry."""

    matrix: FloatArray
    unsure: FloatArray


class FeatureProducts(NamedTuple):
    """Of the means of features (p, p), and of features about them (p_w, p_w)."""

    of_means: FeatureMoments
    within: FeatureMoments


class NoisyEquations(NamedTuple):
    """Sums over persons of both kinds of equations at some effects, and the sds of their noise before scaling."""

    of_means: FloatArray
    within: FloatArray
    means_sd: float
    within_sd: float


@dataclass(frozen=True)
class MixedCohort:
    """Persons with rows, what is asked of them, and with which shares of the budget.

    Attributes
    ----------
    persons, means : Cohort
        Rows of each person side by side, and the means of each.
    rows : MixedRows
    shares : dict
        As of :func:`shares_of`, times what is left of the budget.
    n : float
        Persons with a row, as released.
    row_shares : ndarray of shape (max_rows,)
        Shares of persons with 1, 2, ... rows, as released.
    """

    persons: Cohort
    means: Cohort
    rows: MixedRows
    shares: dict[str, float]
    n: float
    row_shares: FloatArray

    @property
    def public(self) -> MixedCoordinates:
        """Public coordinates."""
        return self.rows.public

    @property
    def numbers(self) -> FloatArray:
        """1, 2, ..., the most rows."""
        return np.arange(1.0, self.row_shares.size + 1)

    @property
    def spare(self) -> float:
        """Rows beyond one a person."""
        return max(self.n * float(self.row_shares @ (self.numbers - 1)), 1.0)

    @property
    def weight(self) -> float:
        """What the means of all persons count together."""
        return self.n * float(self.row_shares @ self.public.weight_of(self.numbers))

    def size(
        self, cohort: Cohort, f: RowFunction, between: tuple[float, float], key: str, name: str
    ) -> tuple[float, float]:
        """Geometric mean of a size of persons, and the error of its logarithm."""
        n = self.n if cohort is self.means else with_several(self.n, self.row_shares)
        return cohort.geometric_mean(f, *between, share=self.shares[key], name=name, n=n)


def fit_mixed(cohort: Cohort, public: MixedCoordinates, shares: dict[str, float], n: float) -> MixedReleases:
    """Spend the budget.

    Parameters
    ----------
    cohort : Cohort
        Of rows: a block is the columns and the response.
    public : MixedCoordinates
    shares : dict
        As of :func:`shares_of`, times what is left of the budget.
    n : float
        Persons, declared or released.
    """
    rows = MixedRows(public, pure=cohort.pure)
    persons = cohort.by_person(rows.coordinates, max_rows=public.max_rows, name="rows of persons")
    means = persons.derive(rows.means, name="means of persons")
    n = release_observed(means, rows.observed, n, shares["persons"])
    outside = release_shares(
        means, rows.outside, n=n, share=shares["outside"], name="share of values beyond the bounds"
    )
    row_shares = release_row_shares(persons, shares["rows"], "rows a person")
    own = MixedCohort(persons, means, rows, shares, n, row_shares)
    size = _rough_mean(own)
    products = _products(own)
    rounds = _rounds(own, products, size)
    levels, size = _levels(own, size)
    covariance, levels = _with_covariance(own, products, rounds, levels)
    return MixedReleases(
        effects=rows.effects,
        covariance=covariance,
        features=_second_moment(own, products),
        levels=levels,
        rest=release_rest(means, rows.rest, size, shares["rest"], n),
        outside=float(outside.surely[0]),
        ledger=persons.ledger,
    )


def _rough_mean(own: MixedCohort) -> float:
    """Start with a rough mean; returns the size of means of persons about the middle of the range."""
    rows, n, half = own.rows, own.n, own.rows.half
    size, error = own.size(own.means, rows.size, (half / BELOW, 2 * half), "size", "size of means of persons")
    size = shrunk_scale(size, error, half / GUESS, PRIOR)
    wide = L1_OVER_L2 if own.means.pure else 1.0
    m, share = own.public.shares.size, own.shares["rough mean"]
    total, sd = own.means.sum(rows.left, clip=SIZE_CLIP * wide * size, size=m, share=share, name="rough mean")
    rows.effects = rows.effects.copy()
    rows.effects[0] = shrunk_coefficients(np.asarray(total) / n, sd / n, own.public.shares)[0]
    return size


def _products(own: MixedCohort) -> FeatureProducts:
    """Products of means of features, and of features about them; clips are bounds, which no person exceeds."""
    public, varying = own.public, own.public.varying
    seen = own.means.second_moment(
        own.rows.of_means,
        clip=public.most_of_means,
        share=own.shares["means of features"],
        name="products of means of features",
    )
    of_means = _moments(seen, own.weight, public.usual, np.diag(public.usual))
    of_means.matrix[0, 0], of_means.unsure[0, 0] = own.weight, 0.0  # the constant's is known
    of_means = _steady(of_means)
    if not varying.any():
        return FeatureProducts(of_means, FeatureMoments(np.zeros((0, 0)), np.zeros((0, 0))))
    seen = own.persons.person_moment(
        own.rows.varying,
        law=CENTRED,
        clip=public.most_within,
        share=own.shares["features within"],
        name="products of features within persons",
    )
    usual = public.usual[varying]
    return FeatureProducts(of_means, _steady(_moments(seen, own.spare, usual, WITHIN_PART * np.diag(usual))))


def _second_moment(own: MixedCohort, products: FeatureProducts) -> FloatArray:
    """Of rows: that of means, and what varies about them."""
    varying, out = own.public.varying, products.of_means.matrix / own.weight
    out[np.ix_(varying, varying)] += products.within.matrix / (own.spare + own.n)
    return np.asarray(out)


def _moments(seen: Noisy, weight: float, usual: FloatArray, expected: FloatArray) -> FeatureMoments:
    """A second moment, shrunk by its noise to what the prior expects."""
    noise = np.where(np.eye(usual.size, dtype=bool), 1.0, math.sqrt(0.5)) * float(seen.sd) / weight
    prior = FEATURES_SD * np.sqrt(np.outer(usual, usual))
    matrix = shrunk(np.asarray(seen.value) / weight, noise, expected, prior)
    unsure = 1 / np.sqrt(1 / noise**2 + 1 / prior**2)
    return FeatureMoments(weight * matrix, weight * unsure)


def _steady(moments: FeatureMoments) -> FeatureMoments:
    """With eigenvalues that can be divided by: means of normal laws of the noise that is left, cut at 0."""
    values, vectors = np.linalg.eigh(moments.matrix)
    sds = np.sqrt(np.maximum(np.einsum("ai,ab,bi->i", vectors**2, moments.unsure**2, vectors**2), TINY))
    place = values / sds
    kept = sds * (place + np.exp(-(place**2) / 2) / math.sqrt(2 * math.pi) / np.maximum(ndtr(place), TINY))
    far = values < FAR * sds  # where that is not computed well; it goes to sds² / |values|
    kept[far] = sds[far] ** 2 / -values[far]
    return moments._replace(matrix=(vectors * kept) @ vectors.T)


# Rounds of equations, and the effects that solve them.


def system(products: FeatureProducts, varying: BoolArray, *, pooled: bool) -> FloatArray:
    """Matrix (p, p) of the equations: rows of columns that vary within persons are of the second kind, or of both."""
    own = np.ix_(varying, varying)
    matrix = products.of_means.matrix.copy()
    if not pooled:
        matrix[varying] = 0.0
    matrix[own] += products.within.matrix
    return matrix


def right_side(found: NoisyEquations, varying: BoolArray, *, pooled: bool) -> FloatArray:
    """Right side (p, K) of the same equations."""
    out = found.of_means.copy()
    if not pooled:
        out[varying] = 0.0
    out[varying] += found.within
    return out


class MixedRounds(NamedTuple):
    """Both rounds of equations, and the steps (p, K) that they asked for; the second counts by `weight` alone."""

    equations: tuple[NoisyEquations, ...]
    steps: tuple[FloatArray, ...]
    weight: float


def _rounds(own: MixedCohort, products: FeatureProducts, size: float) -> MixedRounds:
    """Two rounds; the second starts where the first ends, and is weighed by the noise of both.

    The first one's equations are solved at its end, so that the weighted mean of both solutions is a shorter step.
    """
    rows, varying, pooled = own.rows, own.public.varying, own.public.pooled
    matrix = system(products, varying, pooled=pooled)
    typical = (size * math.sqrt(float(np.trace(products.of_means.matrix)) / own.n), math.nan)
    spread = float(np.trace(products.within.matrix)) / with_several(own.n, own.row_shares)
    found: list[NoisyEquations] = []
    steps: list[FloatArray] = []
    weight = 1.0
    for number in (1, 2):
        typical = _sizes(own, typical, number, spread)
        found.append(_equations(own, typical, number))
        steps.append(np.asarray(np.linalg.solve(matrix, right_side(found[-1], varying, pooled=pooled))))
        if number > 1:
            first, second = (one.means_sd**2 for one in found)
            weight = first / (first + second)
        rows.effects = rows.effects + weight * steps[-1]
    return MixedRounds(tuple(found), tuple(steps), weight)


def _sizes(own: MixedCohort, before: tuple[float, float], number: int, spread: float) -> tuple[float, float]:
    """Typical sizes of a person's equations of both kinds; those within persons change little after the first round.

    Of the second kind many persons have none, whose rows are alike in what varies within persons; so the size is that
    of rows, times the root of `spread`, the mean over persons of the features' squares.
    """
    rows, varying = own.rows, own.public.varying
    key = f"size of equations, round {number}"
    between = (before[0] / BELOW, before[0] * SIZE_CLIP)
    size, error = own.size(
        own.means, rows.size_of_equations, between, key, f"size of equations of means, round {number}"
    )
    of_means = shrunk_scale(size, error, before[0] / 2, PRIOR)
    if number > 1 or not varying.any():
        return of_means, before[1]
    guess, name = of_means, "size of rows about the mean of their person"
    sizes = own.persons.derive(lambda block: (rows.size_within(block),), name=name)
    between = (guess / BELOW, guess * ABOVE)
    size, error = own.size(sizes, lambda block: block[0], between, "size within, round 1", name)
    wide = own.public.sum_of_sizes if own.persons.pure else 1.0
    return of_means, wide * shrunk_scale(size, error, guess, PRIOR) * math.sqrt(spread)


def _equations(own: MixedCohort, typical: tuple[float, float], number: int) -> NoisyEquations:
    """Sums of both kinds of equations at the effects so far."""
    rows, varying, scales = own.rows, own.public.varying, own.public.scales
    of_means, sd = own.means.sum_outer(
        rows.equations,
        norm="nuclear" if own.means.pure else None,
        clip=EQUATION_CLIP * typical[0],
        share=own.shares[f"equations of means, round {number}"],
        name=f"equations of means, round {number}",
    )
    if not varying.any():
        return NoisyEquations(np.asarray(of_means) / scales, np.zeros((0, scales.size)), float(sd), 0.0)
    within, sd_within = own.persons.person_moment(
        rows.varying,
        rows.scaled,
        law=CENTRED,
        clip=(PURE_CLIP if own.persons.pure else EQUATION_CLIP) * typical[1],
        share=own.shares[f"equations within, round {number}"],
        name=f"equations within persons, round {number}",
    )
    return NoisyEquations(np.asarray(of_means) / scales, np.asarray(within) / scales, float(sd), float(sd_within))


# What is left: covariances of both levels.


def _levels(own: MixedCohort, size: float) -> tuple[LevelMoments, float]:
    """Covariances of the means of persons and of their rows, and the typical size of the first."""
    rows, means, n, shares, prior_shares = own.rows, own.means, own.n, own.shares, own.public.shares
    between = (size / BELOW, SIZE_CLIP * size)
    typical, error = own.size(means, rows.size, between, "size of residuals", "size of residuals")
    typical = shrunk_scale(typical, error, size / SIZE_CLIP, PRIOR)
    rows.edges = typical * EDGES
    name = "shares of persons with large residuals"
    largest = 2 * rows.half + float(np.linalg.norm(rows.effects, axis=1).sum())
    tail = Tail.released(means, rows.beyond, typical, largest, n, share=shares["tail of residuals"], name=name)

    share = shares["covariance of means"]
    rows.leading, rows.reach = clip_of(means, prior_shares, share, n, tail, SIZE_CLIP)
    name = "covariance of means of persons"
    seen = means.second_moment(rows.within_reach, clip=rows.reach**2, share=share, name=name)
    of_means = covariance_of(seen, rows.reach, prior_shares, n, tail)
    of_rows = shares["size of rows"], shares["tail of rows"], shares["covariance within"]
    left = own.persons.derive(rows.residuals, name="residuals of rows")
    within = release_within(
        left,
        prior_shares,
        WithinShares(*of_rows, BELOW, ABOVE, SIZE_CLIP),
        with_several(own.n, own.row_shares),
        typical=typical,
        largest=largest,
    )
    return LevelMoments(of_means, within, own.row_shares, n), typical


# How well effects are known. Of equations g with matrix A the error is ``A⁻¹ (g - Eg + noise - E d)``, E the noise in A
# and d the steps that were taken with it (docs/theory/summaries.md#mixed).


def _with_covariance(
    own: MixedCohort, products: FeatureProducts, rounds: MixedRounds, levels: LevelMoments
) -> tuple[FloatArray, LevelMoments]:
    """Covariance of the effects, and both levels without the noise of the effects."""
    public, k = own.public, own.public.shares.size
    varying, pooled = public.varying, public.pooled
    turn = np.kron(np.linalg.inv(system(products, varying, pooled=pooled)), np.eye(k))
    noise = turn @ _noise(own, products, rounds) @ turn.T
    levels = _without(own, levels, noise, products)
    weight, shares = public.weight_of(own.numbers), own.row_shares
    of_a_mean = (shares @ weight**2) * levels.between + (shares @ (weight**2 / own.numbers)) * levels.within
    means_part = products.of_means.matrix.copy()
    if not pooled:
        means_part[varying], means_part[:, varying] = 0.0, 0.0
    within_part = np.zeros_like(means_part)
    within_part[np.ix_(varying, varying)] = products.within.matrix
    sampling = np.kron(means_part, of_a_mean / (shares @ weight)) + np.kron(within_part, levels.within)
    return turn @ sampling @ turn.T + noise, levels


def _noise(own: MixedCohort, products: FeatureProducts, rounds: MixedRounds) -> FloatArray:
    """Covariance (p K, p K) of the noise in the equations, and of that in their matrix along the steps taken."""
    varying, k = own.public.varying, own.public.shares.size
    parts = (1 - rounds.weight, rounds.weight)
    used = np.where(varying & (not own.public.pooled), 0.0, 1.0)  # equations of means
    means_sd = math.hypot(*(w * one.means_sd for w, one in zip(parts, rounds.equations, strict=True)))
    within_sd = math.hypot(*(w * one.within_sd for w, one in zip(parts, rounds.equations, strict=True)))
    noise = np.kron(np.diag(used * means_sd**2 + varying * within_sd**2), np.diag(own.public.scales**-2.0))
    step = parts[0] * rounds.steps[0] + parts[1] * rounds.steps[1]
    noise += _along(products.of_means.unsure, step) * np.kron(np.outer(used, used), np.ones((k, k)))
    if varying.any():
        places = np.flatnonzero(np.repeat(varying, k))
        noise[np.ix_(places, places)] += _along(products.within.unsure, step[varying])
    return noise


def _along(unsure: FloatArray, step: FloatArray) -> FloatArray:
    """Covariance of E d, (p K, p K), where entries of the symmetric E (p, p) have these sds and d is (p, K)."""
    p, k = step.shape
    variance = unsure**2
    out = np.einsum("ab,bk,al->akbl", variance, step, step)  # entries (a, b) and (b, a) are one
    for a in range(p):
        out[a, :, a] = np.einsum("c,ck,cl->kl", variance[a], step, step)
    return np.asarray(out.reshape(p * k, p * k))


def _without(own: MixedCohort, levels: LevelMoments, noise: FloatArray, products: FeatureProducts) -> LevelMoments:
    """Both levels less what the noise of the effects adds to residuals."""
    varying, k = own.public.varying, own.public.shares.size
    blocks = noise.reshape(varying.size, k, varying.size, k)
    of_means = np.einsum("ab,akbl->kl", products.of_means.matrix / own.weight, blocks)
    within = np.zeros((k, k))
    if varying.any():
        within = np.einsum("ab,akbl->kl", products.within.matrix / own.spare, blocks[varying][:, :, varying])
    return replace(
        levels,
        of_means=levels.of_means._replace(matrix=positive_part(levels.of_means.matrix - of_means)),
        of_rows=levels.of_rows._replace(matrix=positive_part(levels.of_rows.matrix - within)),
    )
