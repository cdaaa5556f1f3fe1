"""One cohort drawn from the public prior, fitted as a user's would be: what is explained, and what intervals hold."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from fdadp._common.threads import one_blas_thread
from fdadp._common.typing import FloatArray, IntArray
from fdadp.functional.tables.curve_sample import Curves
from fdadp.planner.simulated_fit_of_one_curve import LEAST_MULTIPLIER, noisy_budget
from fdadp.privacy import Cohort, SeededNoise
from fdadp.privacy.rows._person_row_caps import MEAN, Law
from fdadp.private.model_from_releases import as_terms, draw_column, importances, released_variance
from fdadp.private.plan.budget_plan import Plan
from fdadp.private.plan.private_design import PrivateDesign
from fdadp.private.public.column_ranges import Column, CurvesColumn, LabelColumn, NumberColumn
from fdadp.private.public.gaussian_process_prior import CurvePrior
from fdadp.private.release.dp_aff import fit_dp_aff
from fdadp.private.release.dp_aff_of_families import ATTENUATION, DPAFFOfFamily
from fdadp.private.release.mechanisms import DPAFF
from fdadp.private.rows.anchored_forecasts import SIGNAL
from fdadp.private.rows.count_and_binary_rows import BoundedResponse
from fdadp.private.rows.pointwise_gradients import added
from fdadp.private.rows.row_functions import RowFunctions
from fdadp.terms.records import Records

EXPLAINABLE, WHITE = 0.6, 0.1
"""Share of the variance of responses that the terms explain, unless told; of the rest, what is white."""
OF_PERSON = 0.5
"""Of the smooth errors of a person's rows, the share that its rows have in common."""
OF_THE_REST = SIGNAL / (1 + SIGNAL)
"""The same of what an anchor leaves."""
TEST_ROWS = 500
"""Rows that predictions are judged on."""
OFF_MIDDLE, OF_HALF = 0.5, (0.15, 0.4)
"""Of half the public range of a number: how far its mean is from the middle, at most, and between what its sd is."""
USUAL_HALF = math.sqrt(sum(a * b for a in OF_HALF for b in OF_HALF if a <= b) / 3)
"""Root mean square of these sds: numbers spread as much have on average the importance that the prior says."""
EFFECTS = {"rough": 1.0, "smooth": 1.5, "level": 6.0}
"""Power of the prior shares of features within a term, and of response functions, that effects fall off with."""
USUAL_EFFECTS = (EFFECTS["rough"], EFFECTS["smooth"])
"""Between which it is drawn where it is not told."""
LOGIT_SCALE = 0.35
"""Of the logistic law of log-odds of an explained share that was not said: .6 becomes .41 to .76 in eight of ten."""
EVENLY = (0.7548776662466927, 0.5698402909980532)
"""Steps of the R2 sequence, which spreads over the unit square what was not said (Roberts 2018)."""
UNEVEN = 2.0
"""Of Dirichlet's law of the shares of labels: three of them have .54, .30 and .16 of the persons on average."""
ZERO, SHAPE, PART = 0.8, 2.0, 0.1
"""Of numbers that are mostly zero: the share that is, and the gamma law of the others, as parts of the range."""
AT_ENDS = 1e-3
"""Least sum of both parameters of a beta law: numbers are at the ends of their range, as zeros and ones are."""
NORMAL_SHARES = np.linspace(0.05, 1.0, 20)
"""Of the variance of curves that were told: what may be drawn of the normal law."""
MOST_TOLD = 1000
"""Curves of an earlier study by which that share is chosen, at most: products of any two are taken."""
ROUNDING = 1e-9
"""Of a number of directions that would be whole."""
Y_HALF = 8.0
"""Half-width of the public range of responses, which have variance one."""
LATENT = math.pi**2 / 3
"""Variance of the logistic law: what log-odds leave unexplained of the propensity that they are of."""
NORMAL = 1.96
TINY = 1e-300
"""Keeps 0/0 from arising."""


class EffectLaw(NamedTuple):
    """Of one cohort: share of the variance of responses that terms explain, and the power of effects."""

    explained: float
    power: float


class OfTerms(NamedTuple):
    """Of one simulated fit: explained share of the explainable variance, coverage, importances of terms."""

    share: float
    coverage: float
    importances: dict[str, float]


@dataclass(frozen=True)
class CurvesOfPilot:
    """Curves of an earlier study, and new ones like them: a smooth bootstrap that keeps mean and covariance.

    Drawn again and again, a few hundred persons have nobody far out, where rates are worst known. A new curve is one of
    them, drawn towards their mean, and a normal curve of their covariance. The share of the latter is the largest that
    is as likely as the best, within a standard error, each curve being left out of what it is judged by.

    Attributes
    ----------
    mean : ndarray of shape (S,)
    away : ndarray of shape (m, S)
        Curves less their mean.
    root : ndarray of shape (r, S)
        Of their covariance, ``root' root``.
    normal : float
        Share of the variance that is drawn of the normal law.

    References
    ----------
    Silverman & Young (1987), The bootstrap: to smooth or not to smooth?, doi:10.1093/biomet/74.3.469: the bootstrap.
    Habbema, Hermans & van den Broek (1974), A stepwise discriminant analysis program using density estimation, and
    Duin (1976), doi:10.1109/TC.1976.1674577: the likelihood. Breiman, Friedman, Olshen & Stone (1984), Classification
    and Regression Trees: the standard error.
    """

    mean: FloatArray
    away: FloatArray
    root: FloatArray
    normal: float

    @classmethod
    def of(cls, told: FloatArray) -> CurvesOfPilot:
        """Of curves (m, S)."""
        mean = told.mean(axis=0)
        scores, sizes, directions = np.linalg.svd(told - mean, full_matrices=False)
        few, root = math.sqrt(len(told)), directions * (sizes / math.sqrt(len(told)))[:, None]
        if not (sizes > 0).any():
            return cls(mean, told - mean, root, 1.0)
        own = scores[:, : math.ceil(_directions(sizes**2) - ROUNDING)] * few
        return cls(mean, told - mean, root, _normal_share(own[:: math.ceil(len(own) / MOST_TOLD)]))

    def draw(self, n: int, rng: np.random.Generator) -> FloatArray:
        """New curves (n, S)."""
        chosen = self.away[rng.integers(len(self.away), size=n)]
        drawn = rng.normal(size=(n, len(self.root))) @ self.root
        return np.asarray(self.mean + math.sqrt(1 - self.normal) * chosen + math.sqrt(self.normal) * drawn)


def _directions(variances: FloatArray) -> float:
    """How many directions would have as much in common, were all variances alike.

    References
    ----------
    Bretherton et al. (1999), The effective number of spatial degrees of freedom of a time-varying field,
    doi:10.1175/1520-0442(1999)012<1990:TENOSD>2.0.CO;2.
    """
    return float(variances.sum() ** 2 / (variances**2).sum())


def _normal_share(scores: FloatArray) -> float:
    """The largest of :data:`NORMAL_SHARES` at which scores (m, d) of unit variance are as likely as at the best."""
    m, d = scores.shape
    squares, products = (scores**2).sum(axis=1), scores @ scores.T
    likely = np.empty((NORMAL_SHARES.size, m))
    for i, share in enumerate(NORMAL_SHARES):
        away = squares[:, None] + (1 - share) * squares - 2 * math.sqrt(1 - share) * products
        np.fill_diagonal(away, math.inf)
        likely[i] = logsumexp(-away / (2 * share), axis=1) - d / 2 * math.log(share)
    less = likely[likely.sum(axis=1).argmax()] - likely
    return float(NORMAL_SHARES[less.sum(axis=1) <= math.sqrt(m) * less.std(axis=1)].max())


@dataclass(frozen=True)
class Said:
    """What is said of the persons to simulate; what is not said is drawn.

    Attributes
    ----------
    mostly_zero : tuple of str
        Numbers that are zero for most persons.
    numbers : dict of str to (float, float)
        Means and standard deviations of numbers, in their units.
    importances : dict of str to float
        Shares of the explained variance by name of term, of all terms or of none.
    effects : {"rough", "smooth", "level"}, optional
        As rough as fits are prepared for, smoother, or nearly constant; else drawn between the first two.
    explained : float, optional
        Share of the variance of responses that terms explain; else drawn about `usual`.
    usual : float
    curves : dict of str to CurvesOfPilot
        Curves of persons of an earlier study; others are drawn from the prior.
    """

    mostly_zero: tuple[str, ...] = ()
    numbers: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    importances: Mapping[str, float] = field(default_factory=dict)
    effects: str | None = None
    explained: float | None = None
    usual: float = EXPLAINABLE
    curves: Mapping[str, CurvesOfPilot] = field(default_factory=dict)

    def people(self, seed: int) -> EffectLaw:
        """What one cohort has of what was not said: over cohorts, evenly between what is plausible."""
        u, v = ((0.5 + (seed + 1) * step) % 1 for step in EVENLY)
        low, high = USUAL_EFFECTS
        odds = self.usual / (1 - self.usual) * (u / (1 - u)) ** LOGIT_SCALE
        return EffectLaw(
            odds / (1 + odds) if self.explained is None else self.explained,
            low + (high - low) * v if self.effects is None else EFFECTS[self.effects],
        )

    def untold(self, design: PrivateDesign) -> tuple[str, ...]:
        """Arguments of :func:`fdadp.plan` that were not told and might have been."""
        said = {"explained": self.explained is not None, "effects": self.effects is not None}
        free = {column.name for column in design.numbers} - {*self.mostly_zero, *self.numbers}
        said |= {"numbers": not free, "importances": bool(self.importances) or len(design.groups.terms) == 1}
        return tuple(name for name, told in said.items() if not told)

    def placed(self, column: NumberColumn, rng: np.random.Generator) -> NumberColumn:
        """The column with its location and scale.

        Numbers of which nothing is said fill a part of their range, and not its middle: bounds hold all, not most.
        """
        if column.name in self.mostly_zero:
            return _at_zero(column)
        if column.name in self.numbers:
            mean, sd = self.numbers[column.name]
            return column.placed((mean - column.mid) / column.half, sd / column.half)
        return column.placed(rng.uniform(-OFF_MIDDLE, OFF_MIDDLE), rng.uniform(*OF_HALF))


NOTHING_SAID = Said()


@dataclass(frozen=True)
class Responses:
    """Zeros and ones, or counts, that are simulated.

    Attributes
    ----------
    bounded : BoundedResponse
    rate : float
        Their mean.
    """

    bounded: BoundedResponse
    rate: float

    def draw(self, signal: FloatArray, explained: float, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Means and responses from effects (n, 1) of any size, both (n, 1).

        Of the variance of counts, or of the propensity of ones, `explained` is the share that effects explain.
        """
        odds = explained / (1 - explained)
        energy = math.log1p(odds / self.rate) if self.bounded.counts else LATENT * odds
        eta = (signal - signal.mean()) * math.sqrt(energy / max(float(signal.var()), 1e-300))
        if self.bounded.counts:
            mean = np.exp(eta + math.log(self.rate) - energy / 2)
            return mean, rng.poisson(mean).astype(np.float64)
        level = math.log(self.rate / (1 - self.rate)) * math.sqrt(1 + ATTENUATION * energy)
        mean = 1 / (1 + np.exp(-eta - level))
        return mean, rng.binomial(1, mean).astype(np.float64)


def outcome(
    design: PrivateDesign,
    mechanism: DPAFF,
    n: int,
    multiplier: float,
    seed: int,
    *,
    pure: bool,
    skewed: bool = False,
    said: Said = NOTHING_SAID,
    law: Law = MEAN,
) -> OfTerms:
    """Explained share, coverage of prediction intervals and importances in one simulated cohort.

    `skewed`: errors are as large for each person as a log-normal law has it, to one side. `law`: where it adds rows up,
    persons have one to as many as count, of the same covariates.
    """
    rng, (explained, power) = np.random.default_rng([seed, n]), said.people(seed)
    block, signal = _drawn(design, (-Y_HALF, Y_HALF), n, rng, said, power)
    ids, block, signal = _persons(law, n, block, signal, rng)
    m = design.response_shares.size
    away = (signal - signal.mean(axis=0)) ** 2 @ design.t_weights
    signal *= math.sqrt(explained / max(float(away.mean()), TINY))
    mean = rng.normal(size=m) * np.sqrt(design.response_shares)
    f = signal + mean @ design.response.T
    rest = 1 - explained
    errors = rng.normal(size=(len(f), m)) * np.sqrt(rest * (1 - WHITE) * design.response_shares)
    if skewed:
        size = (rng.lognormal(size=(len(f), 1)) - math.exp(0.5)) / math.sqrt(math.expm1(1.0) * math.e)
        errors = size * np.sqrt(rest * (1 - WHITE) * design.response_shares)
    if law.most > 1:
        errors[: len(ids)] = math.sqrt(1 - OF_PERSON) * errors[: len(ids)] + math.sqrt(OF_PERSON) * errors[ids]
    y = f + errors @ design.response.T + math.sqrt(rest * WHITE) * rng.normal(size=f.shape)
    multiplier = max(multiplier, LEAST_MULTIPLIER)
    cohort = _cohort(block, y, ids, n, multiplier, seed, pure=pure, law=law)
    plan = planned(mechanism, n, multiplier, design, len(ids) / n, pure=pure, law=law)
    with one_blas_thread():
        rows = RowFunctions(design, (-Y_HALF, Y_HALF))
        fit = fit_dp_aff(cohort, plan, rows)
        design = rows.design
        fitted = as_terms(fit, design, rows.plan)
    new, after = _records(design, [values[len(ids) :] for values in block]), len(ids)
    predicted = fitted.form.predictor(new, fitted.coefficients)
    se = fitted.standard_errors(new)
    released = released_variance(fit, design)
    half = released.quantile(0.95) * np.sqrt(released.of_records(new, design.t) + se**2)
    covered = float((np.abs(predicted - y[after:]) < half).mean())
    return OfTerms(_share(predicted, f[after:]), covered, importances(fit, design))


def outcome_of_family(
    design: PrivateDesign,
    mechanism: DPAFF,
    responses: Responses,
    n: int,
    multiplier: float,
    seed: int,
    *,
    pure: bool,
    said: Said = NOTHING_SAID,
    law: Law = MEAN,
) -> OfTerms:
    """Explained share of the variance of means, coverage of intervals of the linear predictor, and importances."""
    rng, (explained, power) = np.random.default_rng([seed, n]), said.people(seed)
    bounded = responses.bounded
    drawn = _drawn(design, bounded.bounds, n, rng, said, power)
    ids, block, signal = _persons(law, n, *drawn, rng)
    mean, y = responses.draw(signal, explained, rng)
    multiplier = max(multiplier, LEAST_MULTIPLIER)
    spending = DPAFFOfFamily.of(mechanism, bounded)
    cohort = _cohort(block, y, ids, n, multiplier, seed, pure=pure, law=law)
    plan = planned(spending, n, multiplier, design, len(ids) / n, pure=pure, law=law)
    with one_blas_thread():
        fit, _ = spending.spend(cohort, plan, spending.rows(design, bounded.bounds))
        fitted = as_terms(fit, design, plan)
    new, truth = _records(design, [values[len(ids) :] for values in block]), mean[len(ids) :]
    eta = fitted.form.predictor(new, fitted.coefficients)
    se = fitted.standard_errors(new)
    covered = float((np.abs(eta - bounded.family.predictor(truth)) < NORMAL * se).mean())
    return OfTerms(_share(bounded.family.mean(eta), truth), covered, importances(fit, design))


def _drawn(
    design: PrivateDesign, bounds: tuple[float, float], n: int, rng: np.random.Generator, said: Said, power: float
) -> tuple[tuple[FloatArray, ...], FloatArray]:
    """Entries of all columns of a cohort and of rows to judge by, and the effects of all terms (n + 500, T)."""
    rows = RowFunctions(design, bounds)
    placed = {column.name: said.placed(column, rng) for column in design.numbers}
    rows.columns |= placed
    block = _block(tuple(rows.columns.values()), design.prior.x, n + TEST_ROWS, rng, said)
    return block, signal_of(rows, block, placed, rng, said, power)


def signal_of(
    rows: RowFunctions,
    block: tuple[FloatArray, ...],
    placed: Mapping[str, NumberColumn],
    rng: np.random.Generator,
    said: Said,
    power: float,
) -> FloatArray:
    """Effects of all terms (rows, T) on rows of these entries, of coefficients that are drawn."""
    design = rows.design
    count = design.feature_shares.size
    features = rows.features_of(block, count + 1)[:, 1:]
    spread = {name: column for name, column in placed.items() if name not in said.mostly_zero}
    theta = _coefficients(design, spread, rng, power)

    def signal(theta: FloatArray) -> FloatArray:
        common = features @ theta @ design.response.T
        if design.groups.separable:
            return np.asarray(common)
        effects = theta[design.groups.varying(count)] @ design.response.T
        return np.asarray(added(common, rows.varying_of(block, count + 1), effects))

    if said.importances:
        theta = theta.copy()
        for i, term in enumerate(design.groups.terms):
            own = design.groups.owner == i
            effect = signal(np.where(own[:, None], theta, 0.0))
            away = float(((effect - effect.mean(axis=0)) ** 2 @ design.t_weights).mean())
            theta[own] *= math.sqrt(said.importances[term.name] / max(away, TINY))
    return signal(theta)


def _coefficients(
    design: PrivateDesign, spread: Mapping[str, NumberColumn], rng: np.random.Generator, power: float
) -> FloatArray:
    """Coefficients (d, m) of all features by the prior, of which effects fall off with this power.

    A slope does not know how far its number is spread: numbers that fill little of their range explain little. `spread`
    are those of which that is known.
    """
    features, responses = design.feature_shares**power, design.response_shares**power
    responses = responses / responses.sum()
    for i, term in enumerate(design.groups.terms):
        own = design.groups.owner == i
        away = math.prod(spread[name].scale / USUAL_HALF for name in term.columns if name in spread)
        features[own] *= away**2 * design.feature_shares[own].sum() / max(float(features[own].sum()), TINY)
    return rng.normal(size=(features.size, responses.size)) * np.sqrt(np.outer(features, responses))


def _persons(
    law: Law, n: int, block: tuple[FloatArray, ...], signal: FloatArray, rng: np.random.Generator
) -> tuple[IntArray, tuple[FloatArray, ...], FloatArray]:
    """The person of each row of a cohort, and its rows, those to judge by last: one a person, unless rows are added."""
    ids = np.arange(n)
    if law.most == 1:
        return ids, block, signal
    ids = np.repeat(ids, rng.integers(1, law.most + 1, n))
    rows = np.append(ids, np.arange(n, len(signal)))
    return ids, tuple(values[rows] for values in block), signal[rows]


def _cohort(
    block: Sequence[FloatArray],
    y: FloatArray,
    ids: IntArray,
    n: int,
    multiplier: float,
    seed: int,
    *,
    pure: bool,
    law: Law,
) -> Cohort:
    """The rows of persons as the kernel would have them, with a budget of which a sum has noise of this size."""
    data = (*(values[: len(ids)] for values in block), y[: len(ids)])
    budget = noisy_budget(multiplier, pure=pure)
    how: dict[str, Any] = {"n": n, "noise": SeededNoise(seed), "mechanism": "simulation"}
    if law.name == "sum":
        how |= {"groups": ids, "person_rows": law.name, "max_rows": law.max_rows}
    return Cohort(data, budget=budget, **how)


def planned(
    spending: Any, n: int, multiplier: float, design: PrivateDesign, rows: float, *, pure: bool, law: Law
) -> Plan:
    """The plan of a fit of n persons with so many rows each, on average, and noise of a sum as large as this."""
    plan: Plan = spending.plan(float(n), multiplier * law.most / rows, design, pure=pure)
    return replace(plan, rows=rows, max_rows=law.most)


def _share(predicted: FloatArray, truth: FloatArray) -> float:
    return float(1 - ((predicted - truth) ** 2).mean() / ((truth - truth.mean(axis=0)) ** 2).mean())


def _zero_is_high(column: NumberColumn) -> bool:
    """Whether the end of the range nearest to zero is the upper one."""
    low, high = column.bounds
    return abs(high) < abs(low)


def _at_zero(column: NumberColumn) -> NumberColumn:
    """The column with the location and scale of numbers that are mostly zero."""
    part = 2 * PART  # of [-1, 1]
    mean, square = (1 - ZERO) * SHAPE * part, (1 - ZERO) * SHAPE * (1 + SHAPE) * part**2
    return column.placed(1 - mean if _zero_is_high(column) else mean - 1, math.sqrt(square - mean**2))


def _mostly_zero(column: NumberColumn, n: int, rng: np.random.Generator) -> FloatArray:
    """Numbers at the end of their range nearest to zero, but for some that are away from it."""
    low, high = column.bounds
    away = np.where(rng.random(n) < ZERO, 0.0, rng.gamma(SHAPE, PART, n).clip(0, 1)) * (high - low)
    return high - away if _zero_is_high(column) else low + away


def _as_told(column: NumberColumn, n: int, rng: np.random.Generator) -> FloatArray:
    """Numbers of the mean and standard deviation that were told: of the beta law that has them, on their range.

    A normal law that is cut at the ends of the range has less: .53 where .577 of half the range was told.
    """
    most = 1 - column.location**2  # the variance of a number that is at one end or the other
    both = max(most / column.scale**2 - 1, AT_ENDS)
    high = (1 + column.location) / 2
    return np.asarray(column.mid + column.half * (2 * rng.beta(both * high, both * (1 - high), n) - 1))


def _block(
    columns: Sequence[Column], prior: CurvePrior, n: int, rng: np.random.Generator, said: Said
) -> tuple[FloatArray, ...]:
    """Entries of all columns as the kernel would hand them over."""
    out: list[FloatArray] = []
    for column in columns:
        if isinstance(column, LabelColumn):
            shares = rng.dirichlet(np.full(len(column.levels), UNEVEN))
            out.append(rng.choice(len(column.levels), n, p=shares).astype(np.float64))
        elif isinstance(column, NumberColumn) and column.name in said.mostly_zero:
            out.append(_mostly_zero(column, n, rng))
        elif isinstance(column, NumberColumn) and column.name in said.numbers:
            out.append(_as_told(column, n, rng))
        elif column.name in said.curves:
            out.append(said.curves[column.name].draw(n, rng))
        else:
            drawn = draw_column(column, prior, n, rng)
            out.append(drawn.values if isinstance(drawn, Curves) else drawn)
    return tuple(out)


def _records(design: PrivateDesign, block: Sequence[FloatArray]) -> Records:
    """The same as records of a table."""
    columns: dict[str, Any] = {}
    for column, values in zip(design.columns, block, strict=True):
        if isinstance(column, CurvesColumn):
            columns[column.name] = Curves(values, column.grid)
        elif isinstance(column, LabelColumn):
            columns[column.name] = np.array(column.levels, dtype=object)[values.astype(int)]
        else:
            columns[column.name] = values
    return Records(len(block[0]), columns)
