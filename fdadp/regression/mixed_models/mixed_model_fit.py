"""Fits with random functions of persons, ``re(id, covariance="free")``: sums over rows, REML, then the terms.

Covariances of persons and of rows are found first, with mean curves on the smooth functions and unpenalised. The terms
are then fitted with these covariances known, each on its own bases, and smoothed (:class:`SmoothedTerms`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import qr

from fdadp._common.threads import one_blas_thread
from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import InputError
from fdadp.regression.fitted.person_curves import PersonCurves
from fdadp.regression.mixed_models.curves_with_gaps import GapLaw, filled
from fdadp.regression.mixed_models.person_covariances import PersonLaw, law_of, law_of_levels, law_of_white
from fdadp.regression.mixed_models.smoothed_terms import SmoothedTerms, alike_along
from fdadp.regression.mixed_models.terms_that_vary import VaryingTerms, alike_beside_loads, loads_of
from fdadp.regression.model_settings import ModelSettings
from fdadp.repeated.fixed_effects import (
    MeanTerm,
    NormalOfTerms,
    TermParts,
    normal_of_terms,
    slopes_within_and_between,
    varying,
    white_levels,
)
from fdadp.repeated.icc_and_tests import NoPersonsWithGaps, SuccessiveRows
from fdadp.repeated.nested_sites import sites_of_persons
from fdadp.repeated.person_sums import LEAST_K, PersonPass, PersonSums, smooth_functions
from fdadp.repeated.reml_search import ChosenFunctions, choose_functions, warn_of_rough_rows
from fdadp.repeated.two_level_components import MOST
from fdadp.solve.errors.sandwich import ClusterErrors
from fdadp.solve.fit.additive_fit import AdditiveFit, fit_gaussian
from fdadp.solve.fit.observations import ChunkedObservations, Observations
from fdadp.solve.form.long_form_design import LongForm, LongSums, System, kept_of
from fdadp.terms.numbers.factors_and_random_effects import RandomEffect, levels_of
from fdadp.terms.numbers.levels import Levels
from fdadp.terms.records import TrainingSummary
from fdadp.terms.spec import TermSpec

REPEATS = 1e-5
"""Share of a feature's size beyond the other features below which it repeats them."""
EXACT = 1e-9
"""Share below which it does so up to rounding."""
FLOOR = 1e-6
"""Noise that is taken for curves without any, as a share of the variance of rows."""
STACKED = 2000
"""Coefficients of curves of levels up to which these are terms like others: time grows with their third power."""


@dataclass(frozen=True)
class MixedFit:
    """Fitted terms, curves of persons, the log-likelihood, and errors by person where wanted."""

    fit: AdditiveFit
    persons: PersonCurves
    loglik: float
    by_person: ClusterErrors | None


def person_terms(terms: Sequence[TermSpec], settings: ModelSettings) -> tuple[RandomEffect, ...]:
    """The term with random functions of persons, or those of persons and of the sites that they belong to.

    Raises
    ------
    InputError
        Another random effect, or settings that leave such a term no meaning.
    """
    random = [term for term in terms if isinstance(term, RandomEffect)]
    own = tuple(term for term in random if term.by_person)
    if not own or not settings.of_curves:
        return ()
    called = f"{own[0].name} with {own[0].said}"
    other = next((term for term in random if not term.by_person), None)
    if other is not None:
        raise InputError(
            f"{called} must be the only random effect, got {other.name} too; make it a fixed factor, or say "
            "covariance='free' of both where one belongs to the other"
        )
    odd = any(term.slopes or term.white for term in own) or own[0].column == own[-1].column
    if len(own) > 2 or (len(own) == 2 and odd):
        raise InputError(f"{called} must be the only random effect, or persons within sites without slopes, got others")
    if settings.family.name != "gaussian":
        raise InputError(f"{called} needs family='gaussian', got {settings.family.name!r}")
    if settings.on_eigenfunctions or settings.errors != "iid":
        raise InputError(f"{called} needs response_basis='splines' and errors='iid': it has errors of its own")
    if settings.t_period is not None:
        raise InputError(f"t_period must be None with {called}, whose curves do not go round a circle")
    if isinstance(settings.smoothing, str) and settings.smoothing != "reml":
        raise InputError(f"smoothing must be 'reml' or numbers with {called}, got {settings.smoothing!r}")
    return own


def large_effect(
    terms: Sequence[TermSpec], settings: ModelSettings, seen: TrainingSummary, observed: Observations
) -> tuple[RandomEffect, ...]:
    """Curves of levels, ``re(id, k=8)``, or numbers, that are too many to stack, as ``covariance="spline"``.

    None where such a fit is refused: other random effects, weights, gaps, errors of another kind.
    """
    random = [term for term in terms if isinstance(term, RandomEffect)]
    if len(random) != 1 or random[0].by is not None or observed.weighted or not observed.whole:
        return ()
    k = random[0].k if settings.of_curves else 1
    if k is None:
        return ()
    if settings.family.name != "gaussian" or settings.on_eigenfunctions or settings.errors != "iid":
        return ()
    if settings.t_period is not None:
        return ()
    if not isinstance(settings.smoothing, str) or settings.smoothing != "reml":
        return ()
    if k * len(Levels.of(seen, random[0].column)) <= STACKED:
        return ()
    return (replace(random[0], k=k, covariance="spline"),)


def fit_by_person(
    own: Sequence[RandomEffect],
    settings: ModelSettings,
    form: LongForm,
    observed: Observations | ChunkedObservations,
    seen: TrainingSummary,
    *,
    groups: IntArray | None = None,
    by_person: bool = False,
) -> MixedFit:
    """Fit terms and random functions of persons, in two passes over the rows.

    Parameters
    ----------
    own : sequence of RandomEffect
        The term of persons; or those of persons and of their sites, in any order.
    settings : ModelSettings
    form : LongForm
        All other terms.
    observed : Observations or ChunkedObservations
    seen : TrainingSummary
        Of the rows.
    groups : ndarray of shape (n,) or None
        Of rows in memory; they must be the persons, or the sites where there are any.
    by_person : bool
        Whether errors by person (by site where there are any) are computed.

    Raises
    ------
    InputError
        Weights, other groups, too few rows beyond one a person; gaps beside slopes or sites; terms whose covariates
        vary with t beside gaps or sites.
    """
    _refuse(own[0], len(own) > 1, form, observed)
    if not observed.whole:
        return _fit_with_gaps(own, settings, form, observed, seen, groups)
    labels = sorted((Levels.of(seen, term.column) for term in own), key=len, reverse=True)
    term = next(term for term in own if term.column == labels[0].column)
    k = next((t.k for t in own if t.k is not None), None)
    level = observed.level if form.has_intercept else 0.0
    phi, precisions = _functions(term, form, k)
    look = _PersonLook(form, phi, tuple(each.column for each in labels), tuple(term.slopes or ()), level)
    with one_blas_thread():
        rows: _PersonRows = observed.over(partial(_looked, look), _PersonRows.merge)
        kept = rows.kept(look)
        sums = rows.person_sums(look, kept)
        chosen = ChosenFunctions(sums, {}, None, False) if precisions or k is not None else _chosen(sums, term)
        sums = chosen.sums
        mix, random = rows.mixes(look, kept, sums, term)
        terms = _mean_terms(form, mix, penalised=True)
        parts = TermParts.of(sums, terms, level) if look.varying is None else rows.parts(look, sums, mix)
        if precisions:
            law = _white_law(settings, form, sums, terms, precisions, parts)
        else:
            law = law_of(sums, random, term.name, rows.sites(look))
        law = replace(law, varying=look.varying)
        if law.levels.noise_variance == 0:  # smoothed curves
            floor = FLOOR * float(np.trace(law.levels.R)) / form.t.size
            law = replace(law, levels=replace(law.levels, noise_variance=floor))
        scale = law.levels.noise_variance
        normal = normal_of_terms(sums, law.levels, terms, law.inner, parts=parts)
        system = _system(form, normal, sums.n_rows * form.t.size, scale)
        if precisions:  # white errors are alike along t
            weights = system.gram / scale
        elif look.varying is None:
            white = np.asarray(scale * np.linalg.inv(sums.split(sums.total)[0]), dtype=np.float64)
            weights = alike_along(form, terms, law.inner, white)
        else:
            keep = kept_of(form.designs)
            weights = alike_beside_loads(sums, law.levels, law.moment, parts)[np.ix_(keep, keep)]
        smoothed = SmoothedTerms.of(settings, form, weights, system, sums.n_rows, scale)
        fit = _outcome(smoothed, rows, look, level)
        found = _person_curves(term, labels, law, fit, smoothed, mix, kept, chosen)
        outer = labels[-1]
        # White errors are the model's, and are not trusted but where the user says so.
        asked = by_person or groups is not None or (term.white and settings.se == "curve")
        left: _PersonResiduals = observed.over(
            partial(_left_over, fit, found, outer if asked else None), _PersonResiduals.merge
        )
    if groups is not None and isinstance(observed, Observations):
        _same_groups(outer, observed, groups)
    found = replace(found, successive=0.0 if found.numbers else left.successive.correlation())
    return _finished(replace(fit, rss=left.rss), smoothed, found, normal, _log_determinant(law), law, left.scores)


def _finished(
    fit: AdditiveFit,
    smoothed: SmoothedTerms,
    found: PersonCurves,
    normal: NormalOfTerms,
    log_det: float,
    law: PersonLaw,
    scores: FloatArray | None,
) -> MixedFit:
    fit = replace(fit, criterion=fit.criterion + (log_det - fit.n_rows * np.log(fit.sigma2)) / 2)
    errors = None
    if scores is not None:  # times I / (I - p_b), p_b features that are constant within persons
        n, constant = len(scores), int((~varying(law.sums)[0]).sum())
        errors = smoothed.by_person(np.sqrt(n / max(n - constant, 1)) * scores)
    return MixedFit(fit, found, _log_likelihood(smoothed.fit, normal, log_det), errors)


def _fit_with_gaps(
    own: Sequence[RandomEffect],
    settings: ModelSettings,
    form: LongForm,
    observed: Observations | ChunkedObservations,
    seen: TrainingSummary,
    groups: IntArray | None,
) -> MixedFit:
    """The same where curves have gaps or points of their own: each row has matrices of its own."""
    term = own[0]
    if len(own) > 1 or term.slopes or term.white or not isinstance(observed, Observations):
        called = "rows in chunks" if not isinstance(observed, Observations) else f"{term.name} with {term.said}"
        called = "persons within sites" if len(own) > 1 else called
        raise InputError(
            f"curves must be observed at all points of one grid with {called}, got gaps; fill them before the fit, or "
            f"take {term.name} with covariance='free' alone and rows in memory, which knows gaps"
        )
    level = observed.level if form.has_intercept else 0.0
    observed, labels = observed.below(level), Levels.of(seen, term.column)
    codes = labels.codes(observed.records.labels(term.column).tolist())
    if groups is not None:
        _same_groups(labels, observed, groups)
    grid = form.t if observed.points is None else observed.points.grid()
    on_grid, F = LongForm(form.designs, grid), np.hstack(form.features(observed.records))
    look = _PersonLook(on_grid, _functions(term, on_grid, term.k)[0], (term.column,), (), 0.0)
    with one_blas_thread():
        rows = _looked(look, Observations(observed.records, filled(observed, grid)))
        kept = rows.kept(look)
        chosen = ChosenFunctions(rows.sums.sums(kept), {}, None, False)
        chosen = chosen if term.k is not None else replace(_chosen(chosen.sums, term), whiteness=None)
        sums, (mix, _) = chosen.sums, rows.mixes(look, kept, chosen.sums, term)
        X = np.column_stack((np.ones(len(F)), F[:, kept] - sums.shift_x[1:])) if sums.intercept else F[:, kept]
        first = fit_gaussian(form, observed.system(form), settings.smoothing, observed.n, settings.n_unpenalized)
        means = on_grid.predictor(observed.records, first.coefficients)
        at = GapLaw.of(on_grid, sums, X, means, observed, codes, term.name)
        scale = at.levels.noise_variance
        normal, inner = at.normal(on_grid, mix)
        weights = alike_along(on_grid, _mean_terms(on_grid, mix), inner, at.white)
        smoothed = SmoothedTerms.of(
            settings, on_grid, weights, _system(form, normal, at.y.size, scale), observed.n, scale
        )
        fit = _outcome(smoothed, rows, look, level)
        effects, left = at.predicted(on_grid, smoothed.fit.coefficients, F)
        scores = None
        if groups is not None:
            scores = np.zeros((len(labels), form.size))
            np.add.at(scores, codes, at.scores(on_grid, effects, left, F))
    law, k = at.counted(law_of_levels(sums, at.levels)), sums.k
    found = _person_curves(term, (labels,), law, fit, smoothed, mix, kept, chosen)
    apart = effects.smooth[:, :k] + effects.effects[codes, :k]
    successive = SuccessiveRows.of(apart, codes, len(labels)).correlation()
    known = at.known(labels, on_grid, effects, F, law.few)
    nulls = {term.name: NoPersonsWithGaps(at.inner, at.levels)}
    found = replace(found, known=known, edf=effects.edf, successive=successive, compared=(), nulls=nulls)
    fit = replace(fit, form=form, rss=float(left @ left))
    return _finished(fit, smoothed, found, normal, inner.log_det, law, scores)


def _refuse(own: RandomEffect, sites: bool, form: LongForm, observed: Observations | ChunkedObservations) -> None:
    called = f"{own.name} with {own.said}"
    if observed.weighted:
        raise InputError(f"weights must be None with {called}")
    if form.t.size <= LEAST_K and not own.white:
        raise InputError(f"{called} needs curves of more than {LEAST_K} points, got {form.t.size}")
    odd = next((d.name for d in form.designs if levels_of(d) is not None), None)
    if odd is not None:
        raise InputError(f"{called} needs terms without levels that are penalised, got {odd}; make it a fixed factor")
    varying = next((d.name for d in form.designs if not d.separable), None)
    beside = "persons within sites" if sites else ""
    beside = beside or ("" if observed.whole else "curves with gaps or points of their own")
    if varying is not None and beside:
        raise InputError(
            f"{called} must have terms whose covariates are the same at all t beside {beside}, got {varying}; take its "
            f"mean over t, or {_instead(beside, own.column)}"
        )


def _instead(beside: str, column: str) -> str:
    if beside.startswith("curves"):
        return "fill the curves before the fit"
    return f"a curve for each person alone, re({column}, covariance='free')"


def _same_groups(outer: Levels, observed: Observations, groups: IntArray) -> None:
    codes = outer.codes(observed.records.labels(outer.column).tolist())
    if not len(set(zip(codes, groups, strict=True))) == len(outer) == len(set(groups)):
        raise InputError(f"groups must be the levels of re({outer.column}), got others")


# The pass over rows: sums by person, and a triangle of all features that tells which of them repeat others.


@dataclass(frozen=True)
class _PersonLook:
    form: LongForm
    phi: FloatArray
    columns: tuple[str, ...]
    slopes: tuple[str, ...]
    level: float

    @property
    def varying(self) -> VaryingTerms | None:
        """Terms whose covariates vary with t."""
        return VaryingTerms.of(self.form)

    @property
    def constant(self) -> bool:
        """Whether a term is the constant: then sums are about a shift."""
        return any(not design.columns and design.n_features == 1 for design in self.form.designs)


@dataclass
class _PersonRows:
    """Sums by person of some rows; the triangle of ``[1, F, slopes]``; and who is where, of persons within sites.

    With terms that vary with t, sums over all points are there too, of curves less the level and of a constant.
    """

    triangle: FloatArray
    sums: PersonPass
    pairs: set[tuple[Any, ...]]
    long: LongSums | None

    def merge(self, other: _PersonRows) -> _PersonRows:
        """With those of other rows."""
        self.triangle = _triangle(np.vstack((self.triangle, other.triangle)))
        self.sums.merge(other.sums)
        self.pairs |= other.pairs
        if self.long is not None and other.long is not None:
            self.long.merge(other.long)
        return self

    def person_sums(self, look: _PersonLook, kept: IntArray) -> PersonSums:
        """Sums of features that are kept, and of what terms that vary with t have outside of the functions."""
        if look.varying is None or self.long is None:
            return self.sums.sums(kept)
        return look.varying.sums(self.sums.sums(kept, look.varying.count), kept, self.long, look.level)

    def parts(self, look: _PersonLook, sums: PersonSums, mix: FloatArray) -> TermParts:
        """Of terms some of which vary with t: what does not depend on covariances."""
        assert look.varying is not None and self.long is not None
        return look.varying.parts(sums, mix, self.long.system(look.form), look.level)

    def kept(self, look: _PersonLook) -> IntArray:
        """Features that are no linear functions of others."""
        own = self.triangle[:, 1 : self.triangle.shape[1] - len(look.slopes)]
        return _independent(own[1:] if look.constant else own, np.linalg.norm(own, axis=0))

    def means(self, look: _PersonLook) -> FloatArray:
        """Means of all features, (P,)."""
        return np.asarray(self.triangle[0, 1 : self.triangle.shape[1] - len(look.slopes)] / self.triangle[0, 0])

    def mixes(
        self, look: _PersonLook, kept: IntArray, sums: PersonSums, term: RandomEffect
    ) -> tuple[FloatArray, FloatArray]:
        """All features as combinations of those of the sums, (p, P); and what slopes multiply, (p, q)."""
        P = self.triangle.shape[1] - 1 - len(look.slopes)
        own = self.triangle[:, 1 + kept] - self.triangle[:, :1] * sums.shift_x[int(sums.intercept) :]
        basis = np.hstack((self.triangle[:, :1], own)) if sums.intercept else own
        # R is not small where rows are fewer than columns: least squares take what there is.
        found: FloatArray = np.asarray(np.linalg.lstsq(basis, self.triangle, rcond=None)[0], dtype=np.float64)
        exact = np.eye(sums.p)[:, int(sums.intercept) :]
        if sums.intercept:
            exact[0] = sums.shift_x[1:]
        found[:, 1 + kept] = exact
        if not look.slopes:
            return found[:, 1 : 1 + P], np.zeros((sums.p, 0))
        random = ([0] if term.intercept else []) + list(range(1 + P, self.triangle.shape[1]))
        for column, name in zip(random, ["the constant"] * term.intercept + list(look.slopes), strict=True):
            away = self.triangle[:, column] - basis @ found[:, column]
            if np.linalg.norm(away) > 1e-8 * np.linalg.norm(self.triangle[:, column]):
                raise InputError(f"{term.name}: slopes need {name} among the terms, about whose effect persons vary")
        return found[:, 1 : 1 + P], found[:, random]

    def sites(self, look: _PersonLook) -> dict[Any, Any] | None:
        """The site of each person, where there are sites."""
        if len(look.columns) == 1:
            return None
        person, site = zip(*sorted(self.pairs, key=repr), strict=True)
        return sites_of_persons(person, site, *look.columns)


def _triangle(rows: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.qr(rows, mode="r"), dtype=np.float64)


def _looked(look: _PersonLook, chunk: Observations) -> _PersonRows:
    records = chunk.records
    features, y = look.form.features(records), chunk.without_offset().y
    F = np.hstack([np.zeros((len(y), 0)), *(own for own in features if own.ndim == 2)])
    slopes = [records.numbers(name) for name in look.slopes]
    triangle = _triangle(np.column_stack((np.ones(len(F)), F, *slopes)))
    ids = [records.labels(column).tolist() for column in look.columns]
    X, long = F, None
    if look.varying is not None:
        X = np.hstack((F, loads_of(look.form, look.phi, features)))
        long = LongSums.of(look.form, [*features, np.ones((len(F), 1))], y - look.level)
    cross = F.shape[1] if slopes else False
    sums = PersonPass(look.phi, X.shape[1], intercept=look.constant, cross=cross).add(X, y, ids[0])
    return _PersonRows(triangle, sums, set(zip(*ids, strict=True)) if len(ids) > 1 else set(), long)


def _independent(Z: FloatArray, norms: FloatArray) -> IntArray:
    """Columns that are no linear functions of others, nor of the constant beside which they had the given norms.

    Raises
    ------
    InputError
        Columns that almost are.
    """
    size = np.sqrt((Z**2).sum(axis=0))
    some = np.flatnonzero(size > 1e-12 * np.maximum(norms, 1e-300))
    if not some.size:
        return some
    R, order = qr(Z[:, some] / size[some], mode="r", pivoting=True)
    diagonal = np.abs(np.diag(R[: some.size]))
    if ((diagonal > EXACT) & (diagonal <= REPEATS)).any():
        raise InputError("terms must not be almost linear functions of each other, got some")
    return np.sort(some[order[: int((diagonal > REPEATS).sum())]])


def _functions(own: RandomEffect, form: LongForm, k: int | None) -> tuple[FloatArray, tuple[FloatArray, ...]]:
    """Orthonormal functions Φ that carry curves of persons, and the parts of their precision where errors are white."""
    t, varying = form.t, VaryingTerms.of(form)
    called = f"{own.name} with {own.said}"
    if not own.white:
        most = max(min(t.size // 3, MOST), LEAST_K) if k is None else k
        if varying is not None:
            most = min(most, varying.most_functions(called, own.column, LEAST_K if k is None else k))
        return smooth_functions(t, most)[0], ()
    basis, penalties = own.penalised(t)
    if varying is not None:
        varying.most_functions(called, own.column, basis.shape[1])
    phi, turn = np.linalg.qr(basis)
    size = np.abs(np.diag(turn))
    if size.min() <= REPEATS * size.max():
        raise InputError(f"functions of {own.name} must not be linear functions of each other, got some")
    back = np.linalg.inv(turn)
    return np.ascontiguousarray(phi), tuple((back.T * penalty) @ back for penalty in penalties)


def _chosen(sums: PersonSums, own: RandomEffect) -> ChosenFunctions:
    chosen = choose_functions(sums, name=own.name)
    warn_of_rough_rows(chosen.whiteness, chosen.sums.k)
    return chosen


def _mean_terms(form: LongForm, mix: FloatArray, *, penalised: bool = False) -> list[MeanTerm]:
    out, at = [], 0
    for design, along, own in zip(form.designs, form.along, form.penalties, strict=True):
        part = np.zeros((len(mix), design.n_features))  # of terms that vary with t
        if design.separable:
            part = mix[:, at : at + design.n_features]
            at += design.n_features
        held = np.zeros((len(own) if penalised else 0, design.kept.size))
        if penalised:
            held[:, design.kept] = own
        out.append(MeanTerm(part, along, held))
    return out


def _white_law(
    settings: ModelSettings,
    form: LongForm,
    sums: PersonSums,
    terms: Sequence[MeanTerm],
    precisions: Sequence[FloatArray],
    parts: TermParts,
) -> PersonLaw:
    """Curves of penalised or given covariance, white errors, found together with the smoothing of the terms."""
    keep = kept_of(form.designs)
    given = None if isinstance(settings.smoothing, str) else np.asarray(settings.smoothing, dtype=np.float64)
    levels, _ = white_levels(sums, terms, precisions, keep=keep, smoothing=given, parts=parts)
    return law_of_white(sums, levels, precisions)


def _system(form: LongForm, normal: NormalOfTerms, size: int, scale: float) -> System:
    """Normal equations times the noise variance."""
    keep = kept_of(form.designs)
    gram = scale * normal.gram[keep][:, keep]
    return System(gram, scale * normal.right[keep], scale * normal.total, size)


def _outcome(smoothed: SmoothedTerms, rows: _PersonRows, look: _PersonLook, level: float) -> AdditiveFit:
    """The fit of the curves themselves, from that of curves less a level."""
    fit = smoothed.outcome()
    means, coefficients = rows.means(look), fit.coefficients.copy()
    coefficients[:1] += level
    varying, at, columns = [], 0, []
    if look.varying is not None and rows.long is not None:
        varying = look.varying.column_means(rows.long)
    for design, along in zip(fit.form.designs, fit.form.along, strict=True):
        if design.separable:
            columns.append(np.kron(means[at : at + design.n_features], along.mean(axis=0)))
            at += design.n_features
        else:
            columns.append(varying.pop(0))
    column_means = np.concatenate(columns)[kept_of(fit.form.designs)]
    return replace(fit, coefficients=coefficients, column_means=column_means)


def _person_curves(
    term: RandomEffect,
    labels: Sequence[Levels],
    law: PersonLaw,
    fit: AdditiveFit,
    smoothed: SmoothedTerms,
    mix: FloatArray,
    kept: IntArray,
    chosen: ChosenFunctions,
) -> PersonCurves:
    """Best linear predictions of the functions of persons, and what the sums say of them."""
    sums, form, first = law.sums, fit.form, int(law.sums.intercept)
    known, sites = law.known(labels[0], labels[1] if len(labels) > 1 else None, fit, mix)
    names = [design.name for design in form.designs if design.separable for _ in range(design.n_features)]
    plain = not term.slopes and not term.white and sites is None and law.varying is None
    slopes = slopes_within_and_between(sums, law.levels) if plain else []
    found = PersonCurves(
        name=term.name,
        kind=term.covariance or "free",
        random=(*([""] if term.intercept else []), *(term.slopes or ())),
        grid=form.t,
        phi=sums.phi,
        levels=law.levels,
        known=known,
        sites=sites,
        moment=law.moment,
        degrees=_degrees(form, mix, law),
        edf=law.edf,
        unsure=smoothed.unsure(),
        weights=law.weights(form, mix, smoothed.turn),
        chosen=bool(chosen.bic),
        whiteness=chosen.whiteness,
        successive=0.0,
        compared=tuple((names[kept[s.column - first]], s.statistic, s.p_value) for s in slopes if s.column >= first),
        sums=sums,
    )
    free = not term.white or found.numbers  # the variance of numbers is as free as a covariance
    return replace(found, nulls=law.nulls(found.names, found.random)) if free else found


def _degrees(form: LongForm, mix: FloatArray, law: PersonLaw) -> FloatArray:
    """Degrees of freedom of each term: the least of its features', the constant only where it has no other."""
    own, out, start = law.degrees(), [], 0
    varying = [] if law.varying is None else law.varying.degrees(law.sums, law.few)
    first = int(law.sums.intercept)
    for design in form.designs:
        if not design.separable:
            out.append(varying.pop(0))
            continue
        part = np.abs(mix[:, start : start + design.n_features])
        start += design.n_features
        used = first + np.flatnonzero((part[first:] > 1e-10 * max(float(part.max()), 1e-300)).any(axis=1))
        out.append(float(own[used].min()) if used.size else float(own[0]))
    return np.array(out)


def _log_determinant(law: PersonLaw) -> float:
    """Of the covariance of all responses."""
    sums, noise = law.sums, law.levels.noise_variance
    outside = sums.n_rows * (len(sums.phi) - sums.k)
    return float(law.inner.log_det + (outside * np.log(noise) if noise > 0 else 0.0))


def _log_likelihood(fit: AdditiveFit, normal: NormalOfTerms, log_det: float) -> float:
    keep, b = kept_of(fit.form.designs), fit.coefficients
    squares = normal.total - 2 * b @ normal.right[keep] + b @ normal.gram[np.ix_(keep, keep)] @ b
    return float(-(log_det + squares + fit.n_rows * np.log(2 * np.pi)) / 2)


# The second pass: residuals beside the predictions.


@dataclass
class _PersonResiduals:
    """Of some rows: squares that predictions leave, residuals of successive rows, and scores by person (or site)."""

    rss: float
    successive: SuccessiveRows
    scores: FloatArray | None

    def merge(self, other: _PersonResiduals) -> _PersonResiduals:
        """With those of the rows after these."""
        self.rss += other.rss
        self.successive.merge(other.successive)
        self.scores = None if self.scores is None or other.scores is None else self.scores + other.scores
        return self


def _left_over(fit: AdditiveFit, own: PersonCurves, outer: Levels | None, chunk: Observations) -> _PersonResiduals:
    records, phi = chunk.records, own.phi
    left = chunk.y - chunk.predictor(fit.form, fit.coefficients)
    codes = own.persons.codes(records.labels(own.persons.column).tolist())
    successive = SuccessiveRows.of(left @ phi, codes, len(own.persons))
    left = left - own.curves(records, own.grid)
    rss, scores = float((left**2).sum()), None
    if outer is not None:
        weighed, on_phi, noise = np.linalg.inv(own.levels.R), left @ phi, own.levels.noise_variance
        outside = (left - on_phi @ phi.T) / noise if noise > 0 else 0.0
        scores = np.zeros((len(outer), fit.form.size))
        at = outer.codes(records.labels(outer.column).tolist())
        np.add.at(scores, at, fit.form.scores(records, on_phi @ weighed @ phi.T + outside))
    return _PersonResiduals(rss, successive, scores)
