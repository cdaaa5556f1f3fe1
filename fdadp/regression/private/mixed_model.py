"""Private mixed models, ``re(id, covariance="free")``: what is public of them, and the fitted model that releases make.

Effects of the population and covariances of both levels are released, never those of persons
(:mod:`fdadp.private.levels.mixed_model_releases`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp._common.threads import one_blas_thread
from fdadp._common.typing import FloatArray
from fdadp.errors import InputError, PrivacyError
from fdadp.functional.quadrature import quadrature_weights
from fdadp.functional.splines.diagonal_margins import margin_of
from fdadp.privacy import Cohort, Privacy
from fdadp.privacy.account.epsilon_mu_rho import noise_multiplier, unit_noise
from fdadp.privacy.guarantee_checks import check_delta
from fdadp.privacy.rows._person_row_caps import check_most
from fdadp.private.levels.mixed_model_releases import EQUATION_CLIP, MixedReleases, fit_mixed, shares_of
from fdadp.private.levels.mixed_model_rows import BoundedTerm, MixedCoordinates
from fdadp.private.model_from_releases import ReleasedMean, ReleasedVariance, WhiteDesign
from fdadp.private.plan.budget_plan import Plan
from fdadp.private.plan.budget_sharing import expected_left, release_n
from fdadp.private.public.column_ranges import NumberColumn
from fdadp.private.public.gaussian_process_prior import PublicPrior
from fdadp.private.public.tuned_constants import GAUSSIAN, PURE
from fdadp.private.whitened.of_labels_and_numbers import WhiteLevels, WhiteNumbers
from fdadp.private.whitened.white_term import WhiteTerm
from fdadp.regression.fitted.released_person_covariances import ReleasedPersons
from fdadp.regression.model_settings import ModelSettings
from fdadp.regression.private.columns_read_privately import indicator_of
from fdadp.solve.fit.additive_fit import AdditiveFit
from fdadp.solve.form.long_form_design import LongForm
from fdadp.terms.numbers.factors_and_random_effects import RandomEffect
from fdadp.terms.numbers.scalar_linear import Intercept
from fdadp.terms.records import TrainingSummary
from fdadp.terms.spec import TermDesign, TermSpec, no_penalties

if TYPE_CHECKING:
    from fdadp.private.public.column_ranges import Column, Range
    from fdadp.private.release.mechanisms import EndToEnd

PRIOR = PublicPrior(n_response=12, y_length=0.2)
"""Of the functions that carry effects and covariances, as of private components."""
LEAST_VARIANCE = 0.005
"""Of a number on [-1, 1]."""
OUTSIDE, GUESSED = 0.02, 0.5
"""Shares from which it is worth a warning: of values surely beyond the bounds, of variance beyond the clip."""
FEW = 1000.0
"""n ε below which covariances are much of the prior's."""
LAWS = ("mean", "exchangeable")
TINY = 1e-300


@dataclass(frozen=True)
class PersonsAsked:
    """What a formula asks of persons, checked; no row was read.

    Attributes
    ----------
    term : RandomEffect
        With the column that says whose a row is, and the number of functions of t, where it was given.
    within : tuple of str
        Columns that vary within persons.
    max_rows : int
    pooled : bool
        Rows are weighed by a working covariance; else each person counts once.
    """

    term: RandomEffect
    within: tuple[str, ...]
    max_rows: int
    pooled: bool

    @property
    def name(self) -> str:
        """Of the term."""
        return self.term.name

    @property
    def column(self) -> str:
        """Says whose a row is."""
        return self.term.column

    def prior(self, mechanism: EndToEnd[Any]) -> PublicPrior:
        """The public prior, by default that of private components."""
        if isinstance(mechanism.prior, PublicPrior):
            return mechanism.prior
        return replace(PRIOR, n_response=self.term.k or PRIOR.n_response)

    @property
    def law(self) -> str:
        """How the rows of a person count, in words."""
        if self.pooled:
            return f"rows of a person are weighed as exchangeable, at most {self.max_rows}"
        own = f"; effects of {', '.join(self.within)} come from what differs within persons" if self.within else ""
        return f"each person counts once, by the means of at most {self.max_rows} rows{own}"

    def groups(self, given: Any) -> str:
        """Column of the persons, for the kernel.

        Raises
        ------
        InputError
            Others were given: one person, one guarantee.
        """
        if given is not None and not (isinstance(given, str) and given == self.column):
            shown = repr(given) if isinstance(given, str) else type(given).__name__
            raise InputError(
                f"groups must be left out, or {self.column!r}, with {self.name} in a private fit: the persons of the "
                f"term are those whom the guarantee protects; got {shown}"
            )
        return self.column


def persons_asked(terms: Sequence[TermSpec], settings: ModelSettings, mechanism: EndToEnd[Any]) -> PersonsAsked | None:
    """What the term with a curve for each person asks, where there is one.

    Raises
    ------
    InputError, PrivacyError
        Settings that such a term needs and lacks, or that have no meaning with it.
    """
    own = next((t for t in terms if isinstance(t, RandomEffect) and settings.of_curves and t.by_person), None)
    if own is None:
        if settings.within:
            raise InputError("within must be left out but for re(id, covariance='free') in a private fit")
        return None
    called = f"{own.name} with covariance='free'"
    if own.slopes:
        raise InputError(
            f"slopes of {own.name} must be left out in a private fit: covariances of slopes are not released"
        )
    if own.white:
        raise InputError(f"covariance of {own.name} must be 'free' in a private fit, got {own.covariance!r}")
    if mechanism.anchor is not None or getattr(mechanism, "errors_by_record", False):
        raise InputError(f"prior='persistence' and errors_by_record must be left out with {called}")
    law = settings.person_rows or "mean"
    if law not in LAWS:
        raise InputError(f"person_rows must be 'mean' or 'exchangeable' with {called} in a private fit, got {law!r}")
    most = check_most(settings.max_rows, f"with {called} in a private fit")
    if most < 2:
        raise PrivacyError(f"levels are learned from at least 2 rows a person: max_rows={most}")
    if isinstance(settings.within, str) or not all(isinstance(name, str) for name in settings.within):
        raise InputError(f"within must be a tuple of columns that vary within persons, got {settings.within!r}")
    used = {name for term in terms if term is not own for name in term.columns}
    unknown = next((name for name in settings.within if name not in used), None)
    if unknown is not None:
        raise InputError(f"within must name columns of terms, got {unknown!r}")
    if own.k is not None and (isinstance(own.k, bool) or not isinstance(own.k, int) or own.k < 2):
        raise InputError(f"k of {own.name} must be a number of functions, at least 2, got {own.k!r}")
    return PersonsAsked(own, tuple(settings.within), most, law == "exchangeable")


def coordinates(
    asked: PersonsAsked,
    columns: Sequence[Column],
    terms: Sequence[WhiteTerm],
    prior: PublicPrior,
    t: FloatArray,
    y_bounds: Range,
) -> MixedCoordinates:
    """Public coordinates.

    Raises
    ------
    InputError
        A term of curves, or of more than two numbers.
    """
    by_name = {column.name: column for column in columns}
    bounded: list[WhiteTerm] = []
    for term in terms:
        own = term if isinstance(term, WhiteNumbers | WhiteLevels) else BoundedTerm.bounded(term, by_name)
        if own is None:
            raise InputError(
                f"terms beside {asked.name} must be of labels, and of one or two numbers, in a private fit, got "
                f"{term.name}. Effects of curves need a public bound for all rows of a person together, which would be "
                "far above what curves are"
            )
        bounded.append(own)
    unit = (t - t[0]) / (t[-1] - t[0])
    weights = quadrature_weights(unit)
    functions, shares = prior.response_functions(unit, weights)
    varying = {*asked.within, *map(indicator_of, asked.within)}
    return MixedCoordinates(
        columns=tuple(c.placed(0.0, 1.0) if isinstance(c, NumberColumn) else c for c in columns),
        terms=tuple(bounded),
        within=tuple(bool(varying & set(term.columns)) for term in bounded),
        response=functions,
        shares=np.maximum(shares, TINY),
        weights=weights,
        y_bounds=y_bounds,
        pooled=asked.pooled,
        max_rows=asked.max_rows,
    )


def mixed_inputs(asked: PersonsAsked, columns: Sequence[Column]) -> dict[str, Any]:
    """Public inputs, for the ledger, beside those of every private fit."""
    numbers = [column.name for column in columns if isinstance(column, NumberColumn)]
    missing = {f"missing {name}": "taken to be the middle of its range" for name in numbers}
    within = {"vary within persons": ", ".join(asked.within)} if asked.within else {}
    return {"persons": f"{asked.name}: {asked.law}", **within, **missing}


# The plan, and what is spent by it.


def plan_mixed(n: float, eta: float, public: MixedCoordinates, left: float, *, pure: bool) -> Plan:
    """Shares of the budget, from public values."""
    p, k = public.varying.size, public.shares.size
    plan = Plan(
        n=n,
        pure=pure,
        eta=eta,
        budget_shares=shares_of(public, eta, pure=pure),
        rounds=2,
        weights=np.ones((p, k)),
        clip_factor=EQUATION_CLIP,
        feature_clip=math.sqrt(float(public.squares.sum())),
        signal_to_noise=0.0,
        y_range=1.0,
        tuning=PURE if pure else GAUSSIAN,
    )
    return plan.scaled(left)


def planned_mixed(privacy: Privacy, mechanism: EndToEnd[Any], public: MixedCoordinates, n: Any) -> Plan:
    """The plan of a fit before any data are there.

    Raises
    ------
    InputError, PrivacyError
        No number of persons to plan for, or one for which nothing is afforded.
    """
    people = privacy.n if n is None else n
    if not isinstance(people, int | float | np.number) or isinstance(people, bool) or not 1 <= people < math.inf:
        raise InputError(f"n must be a number of persons to plan for, as none is declared, got {n!r}")
    check_delta(privacy.delta, float(people))
    mechanism.check_n(privacy, float(people))
    pure = privacy.delta is None
    budget, share = privacy.budget_share()
    noise = noise_multiplier(share * budget.total, privacy.stated_adjacency, pure=pure)
    left = 1.0 if privacy.n is not None else expected_left(float(people), noise, pure=pure)
    noise /= left if pure else math.sqrt(left)
    return plan_mixed(float(people), noise / float(people), public, left, pure=pure)


def spend_mixed(
    cohort: Cohort, privacy: Privacy, mechanism: EndToEnd[Any], public: MixedCoordinates, prepare: Any
) -> tuple[MixedReleases, Plan]:
    """Spend the budget of a cohort of rows; all validation of public things came before.

    Parameters
    ----------
    cohort : Cohort
    privacy : Privacy
    mechanism : EndToEnd
    public : MixedCoordinates
    prepare : callable or None
        From the columns that were given to those of the design and the response.
    """
    n, left = (float(privacy.n), 1.0) if privacy.n is not None else release_n(cohort)
    with cohort.refusing():
        check_delta(privacy.delta, n)
        mechanism.check_n(privacy, n)
    plan = plan_mixed(n, unit_noise(cohort, left) / n, public, left, pure=cohort.pure)
    if prepare is not None:
        cohort = cohort.derive(prepare, name="columns computed within each row")
    with one_blas_thread():
        found = fit_mixed(cohort, public, plan.budget_shares, n)
    return found, plan


# The fitted model: post-processing, which costs no privacy.


@dataclass(frozen=True)
class MixedModel:
    """A mixed model that releases make.

    Attributes
    ----------
    fit : AdditiveFit
    persons : ReleasedPersons
    variance : ReleasedVariance
        Of new rows of new persons.
    columns : tuple of Column
        With released locations and scales.
    explained : float
        Share of the variance of the response that effects explain.
    importances : dict of str to float
    warned, notes : tuple of str
    """

    fit: AdditiveFit
    persons: ReleasedPersons
    variance: ReleasedVariance
    columns: tuple[Column, ...]
    explained: float
    importances: Mapping[str, float]
    warned: tuple[str, ...]
    notes: tuple[str, ...]


def mixed_model(
    asked: PersonsAsked, public: MixedCoordinates, found: MixedReleases, t: FloatArray, n_epsilon: float
) -> MixedModel:
    """Effects in units of the columns, persons, and what the releases say."""
    columns, turn = _located(public, found)
    p, k = found.effects.shape
    effects, wide = turn @ found.effects, np.kron(turn, np.eye(k))
    covariance = wide @ found.covariance @ wide.T
    back = np.linalg.inv(turn)
    moments = back.T @ found.features @ back
    persons = _persons(asked, public, found, t)
    K = persons.G + persons.smooth_rows
    rows = np.einsum("tk,kl,tl->t", public.response, K, public.response) + persons.noise_variance
    about = moments - np.outer(moments[0], moments[0])
    explained = max(float(np.einsum("ak,ab,bk->", effects, about, effects)), 0.0)
    total = explained + float(rows @ public.weights)
    variance = ReleasedVariance(
        functions=public.response, covariance=K, values=rows, scale=1.0, inverse_dof=0.0, grid=t, total=total
    )
    own = {}
    places = np.split(np.arange(1, p), np.cumsum(public.counts)[:-1]) if public.terms else []
    for term, at in zip(public.terms, places, strict=True):
        own[term.name] = max(float(np.einsum("ak,ab,bk->", effects[at], about[np.ix_(at, at)], effects[at])), 0.0)
    sum_own = max(sum(own.values()), TINY)
    fit = _additive(public, columns, effects, covariance, moments, float(rows @ public.weights), found.levels.n, t)
    return MixedModel(
        fit,
        persons,
        variance,
        columns,
        explained / max(total, TINY),
        {name: value / sum_own for name, value in own.items()},
        _warnings(found, n_epsilon),
        (*persons.notes(), f"Rows of a person: {asked.law}."),
    )


def _located(public: MixedCoordinates, found: MixedReleases) -> tuple[tuple[Column, ...], FloatArray]:
    """Columns at their released locations and scales; and the matrix (p, p) that turns effects into those of them."""
    p = found.features.shape[0]
    turn, at = np.eye(p), 1
    columns = {column.name: column for column in public.columns}
    for term in public.terms:
        for i, name in enumerate(term.columns[: term.shares.size] if isinstance(term, WhiteNumbers) else ()):
            column = columns[name]
            assert isinstance(column, NumberColumn)
            location = float(np.clip(found.features[0, at + i], -1.0, 1.0))
            scale = math.sqrt(min(max(found.features[at + i, at + i] - location**2, LEAST_VARIANCE), 1.0))
            columns[name] = column.placed(location, scale)
            turn[0, at + i], turn[at + i, at + i] = location, scale
        at += term.shares.size
    return tuple(columns.values()), turn


def _persons(asked: PersonsAsked, public: MixedCoordinates, found: MixedReleases, t: FloatArray) -> ReleasedPersons:
    levels, (T, k) = found.levels, public.response.shape
    seen = ReleasedPersons(
        name=asked.name,
        column=asked.column,
        grid=t,
        functions=public.response,
        weights=public.weights,
        G=levels.between,
        R=levels.within,
        noise_variance=found.rest * T / max(T - k, 1),
        row_shares=levels.row_shares,
        n=levels.n,
        unsure=(levels.of_means.unsure, levels.of_rows.unsure),
        per_degree=levels.per_degree,
        trace_sds=levels.trace_sds,
        beyond=(levels.of_means.beyond, levels.of_rows.beyond),
    )
    return replace(seen, R=seen.smooth_rows + seen.points)  # at least the noise of single points, in all directions


def _additive(
    public: MixedCoordinates,
    columns: Sequence[Column],
    effects: FloatArray,
    covariance: FloatArray,
    moments: FloatArray,
    sigma2: float,
    n: float,
    t: FloatArray,
) -> AdditiveFit:
    """Effects as the coefficients of a long form."""
    p, k = effects.shape
    levels = public.weights @ public.response
    along, of_mean = (margin_of(t, f, smooth=True) for f in (public.response, public.response - levels))
    designs: list[TermDesign] = [
        Intercept().fixed(TrainingSummary(0, {}, {}, {}, lambda *_: None), None),
        ReleasedMean(name="s(t)", columns=(), along=of_mean, own_penalties=no_penalties(1)),
    ]
    by_name = {column.name: column for column in columns}
    for term in public.terms:
        count = int(term.shares.size)
        designs.append(
            WhiteDesign(
                name=term.name,
                columns=term.columns,
                along=along,
                own_penalties=no_penalties(count),
                term=term,
                located=tuple(by_name[name] for name in term.columns),
                count=count,
            )
        )
    wide = np.zeros((1 + p * k, p * k))  # the intercept is the mean over t of the mean curve
    wide[0, :k], wide[1:] = levels, np.eye(p * k)
    first = effects[0].copy()
    middle = sum(public.y_bounds) / 2
    form, rows = LongForm(tuple(designs), t), round(n) * t.size
    head = np.eye(1 + k) * rows
    head[1:, 1:] -= np.outer(levels, levels) * rows
    information = np.zeros((form.size, form.size))
    information[: 1 + k, : 1 + k] = head
    information[1 + k :, 1 + k :] = np.kron(moments[1:, 1:], np.eye(k)) * rows
    column_means = np.zeros(form.size)
    column_means[0] = 1.0
    return AdditiveFit(
        form=form,
        coefficients=np.concatenate([[middle + levels @ first], first, effects[1:].ravel()]),
        spread=wide @ covariance @ wide.T / sigma2,
        information=information,
        edf=np.ones(form.size),
        identified=np.ones(form.size, dtype=bool),
        smoothing_parameters=np.zeros(0),
        sigma2=sigma2,
        scale=sigma2,
        criterion=np.nan,
        rss=sigma2 * rows,
        n=round(n),
        n_rows=rows,
        column_means=column_means,
    )


def _warnings(found: MixedReleases, n_epsilon: float) -> tuple[str, ...]:
    """What is worth a warning, by released values and public ones."""
    out = []
    if found.outside > OUTSIDE:
        out.append(
            f"the releases say that at least {100 * found.outside:.0f} % of the values of the response lie outside its "
            "bounds: check their width and units"
        )
    for name, own in (("persons", found.levels.of_means), ("rows", found.levels.of_rows)):
        if own.beyond > GUESSED:
            out.append(
                f"about {100 * own.beyond:.0f} % of the variance of {name} lies beyond the clip, by released shares of "
                "large curves: these have heavy tails, and covariances depend on how the tails go on"
            )
    if n_epsilon < FEW:
        out.append(
            f"n * epsilon is {n_epsilon:.0f}: below some {FEW:.0f} covariances of persons and rows are much of the "
            "public prior's, and so are intervals that trust them"
        )
    return tuple(out)
