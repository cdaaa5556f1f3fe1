"""Inference in a model of many terms: covariances, tests of terms, bands, likelihood."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp._common.argument_checks import flag, fraction, one_of, whole
from fdadp._common.student_and_f import student_quantile
from fdadp._common.threads import one_blas_thread
from fdadp._common.typing import ArrayLike, FloatArray, IntArray
from fdadp.errors import InputError
from fdadp.functional.quadrature import quadrature_weights
from fdadp.regression.fitted.coefficient_errors import BY_CLUSTERS, CoefficientErrors
from fdadp.regression.fitted.coefficient_functions import effect_of, effect_rows
from fdadp.regression.reading.training_rows import clusters_of
from fdadp.solve.errors.leave_one_out_residuals import Residuals
from fdadp.solve.errors.sandwich import corrected_edf, resampled
from fdadp.solve.errors.term_tests import (
    EffectSpectrum,
    LargestRatio,
    TermTest,
    flip_test,
    score_test,
    wald,
    wald_by_clusters,
)
from fdadp.solve.fit.additive_fit import AdditiveFit
from fdadp.terms.numbers.factors_and_random_effects import levels_of
from fdadp.terms.on_response_functions import OnFunctions
from fdadp.terms.records import Records
from fdadp.terms.spec import TermDesign

if TYPE_CHECKING:
    import pandas as pd

    from fdadp.regression.fitted.fitted_model import Fitted


# The bootstrap over persons, and its intervals of coefficient functions.


@dataclass(frozen=True)
class Bootstrap:
    """Coefficients of samples drawn with replacement.

    Attributes
    ----------
    fit : AdditiveFit
        To all rows.
    samples : ndarray of shape (B, p)
        Coefficients of each sample.
    """

    fit: AdditiveFit
    samples: FloatArray

    @property
    def covariance(self) -> FloatArray:
        """Covariance of all coefficients, shape (p, p), without the bias from penalties."""
        return np.asarray(np.cov(self.samples, rowvar=False))

    def coef(
        self,
        name: str,
        level: float = 0.95,
        *,
        interval: str = "percentile",
        t: ArrayLike | None = None,
        at: Mapping[str, ArrayLike] | None = None,
        **points: ArrayLike,
    ) -> pd.DataFrame:
        """Coefficient function of a term with pointwise bootstrap intervals.

        Parameters
        ----------
        name : str
            Of the term.
        level : float
            Of the intervals, in (0, 1).
        interval : {"percentile", "normal"}
            Quantiles of the samples; or the estimate and so many standard deviations of the samples.
        t, at, **points
            Grid, as in the model's ``coef``.

        Returns
        -------
        DataFrame
            As of the model's ``coef``, with ``se``, ``lower`` and ``upper``.
        """
        fraction(level, "level")
        one_of(interval, "interval", ("percentile", "normal"))
        rows = effect_rows(self.fit.form, name, {"t": t, **(at or {}), **points})
        frame = effect_of(self.fit, rows, self.covariance, level).to_frame()
        if interval == "percentile":
            values = self.samples[:, rows.place] @ rows.rows.T
            ends = np.quantile(values, [(1 - level) / 2, (1 + level) / 2], axis=0)
            frame["lower"], frame["upper"] = np.where(rows.absent, np.nan, ends)
        return frame


def named_covariance(errors: CoefficientErrors, kind: str | None) -> pd.DataFrame:
    """Covariance of all coefficients, numbered within each term."""
    import pandas as pd

    covariance, names = errors.covariance(kind), coefficient_names(errors.fit)
    return pd.DataFrame(covariance, index=names, columns=names)


def coefficient_names(fit: AdditiveFit) -> list[str]:
    """Names of all coefficients: that of the term, and a number within it."""
    return [f"{design.name}.{i + 1}" for design in fit.form.designs for i in range(design.size)]


def aic(errors: CoefficientErrors) -> float:
    """Akaike's information criterion as in mgcv, see :attr:`fdadp.FunctionalRegression.aic_`."""
    family = errors.settings.family
    errors.settings.refuse_variance_terms("aic_")
    edf = corrected_edf(errors.fit, first_order=family.name != "gaussian" and errors.fit.chosen is None)
    if errors.persons is not None:
        edf += errors.persons.n_parameters
    return -2 * errors.loglik + 2 * (edf + (not family.known_scale) + family.n_estimated)


def error_left_out(errors: CoefficientErrors) -> tuple[float, float]:
    """Mean squared error of curves left out, and its standard error. Both are kept, and files hold them.

    Raises
    ------
    InputError
        Of families other than the Gaussian, and of models without their training rows.
    """
    if not errors.scores:
        errors.scores.append(mean_and_se(*errors_left_out(errors)))
    return errors.scores[0]


# --- tests ---


def each_tested(errors: CoefficientErrors, kind: str | None) -> dict[str, tuple[float, TermTest]]:
    """Degrees of freedom of each term but the constant, and its test."""
    fit, found = errors.fit, {}
    for design, place in zip(fit.form.designs, fit.form.slices, strict=True):
        if design.columns or design.size > 1:
            test = tested(errors, np.arange(place.start, place.stop), kind)
            found[design.name] = (float(fit.edf[place].sum()), test)
    return found


def terms_tested(errors: CoefficientErrors, kind: str | None, *, draws: int = 0) -> pd.DataFrame:
    """A test for each term but the constant; and with draws, that curves of persons and sites are 0."""
    import pandas as pd

    rows = {name: (edf, test.statistic, test.df, test.p) for name, (edf, test) in each_tested(errors, kind).items()}
    persons = errors.persons
    table = pd.DataFrame.from_dict(rows, orient="index", columns=["edf", "statistic", "df", "p"])
    if draws and persons is not None:
        for name in persons.names:
            test = errors.variance_tests.get((name, draws)) or persons.tested(name, draws)
            errors.variance_tests[name, draws] = test
            edf = persons.edf if name == persons.names[0] else np.nan
            table.loc[name, ["edf", "statistic"]] = edf, test.statistic
            table.loc[name, ["df", "p"]] = persons.phi.shape[1], test.p_value
            table.loc[name, ["p_error", "draws"]] = test.error, test.simulated.size
    return table.rename_axis("term")


def nested_models(one: Fitted, other: Fitted, kind: str | None) -> pd.DataFrame:
    """Compare two models of which one has all terms of the other, by a Wald test in the larger one."""
    import pandas as pd

    for model in (one, other):
        model.settings.refuse_variance_terms("anova")
    mine, theirs = set(one.names), set(other.names)
    if not (mine < theirs or theirs < mine):
        raise InputError(
            f"other must have some of the terms of this model, or all and more, got {', '.join(sorted(theirs))} "
            f"beside {', '.join(sorted(mine))}"
        )
    if one.fit.n_rows != other.fit.n_rows:
        raise InputError(
            f"other must be fitted to the same rows, got {other.fit.n_rows} observations, not {one.fit.n_rows}"
        )
    small, large = (one, other) if mine < theirs else (other, one)
    form = large.fit.form
    more = [p for d, p in zip(form.designs, form.slices, strict=True) if d.name in mine ^ theirs]
    which = np.concatenate([np.arange(p.start, p.stop) for p in more])
    found = tested(large.errors, which, kind)
    rows = [(m.fit.edf_total, m.fit.rss, aic(m.errors)) for m in (small, large)]
    table = pd.DataFrame(rows, columns=["edf", "rss", "aic"], index=["smaller", "larger"])
    table["statistic"], table["df"], table["p"] = [np.nan, found.statistic], [np.nan, found.df], [np.nan, found.p]
    return table


def tested(errors: CoefficientErrors, which: IntArray, kind: str | None) -> TermTest:
    """Test that some coefficients are all 0, under an assumption about the errors."""
    wanted, fit = errors.kind_of(kind), errors.fit
    places = zip(fit.form.designs, fit.form.slices, strict=True)
    design = next((d for d, p in places if np.array_equal(which, np.arange(p.start, p.stop))), None)
    special = None if design is None else tested_as_random(errors, design, which, wanted, kind)
    if special is not None:
        return special
    if wanted in BY_CLUSTERS:
        found = errors.by_clusters(wanted)
        left = errors.degrees(wanted, design.name) if design is not None and which.size == 1 else None  # as its t test
        return wald_by_clusters(fit, which, found.sampling, found.n_clusters, left)
    both = np.ix_(which, which)
    covariance, edf = errors.covariance(kind)[both], float(fit.edf[which].sum())
    return wald(fit.gram[both], fit.coefficients[which], covariance, edf, errors.degrees(kind))


def tested_as_random(
    errors: CoefficientErrors, design: TermDesign, which: IntArray, wanted: str, kind: str | None
) -> TermTest | None:
    """The test of a single random effect; None for other terms."""
    curves = errors.settings.of_curves
    if not curves and wanted not in BY_CLUSTERS:
        return numbers_tested(errors, design, which)
    if curves and kind in ("iid", "unconditional"):
        return None
    if design.name not in errors.random_tests:
        found = curves_tested(errors, design) if curves else numbers_of_groups_tested(errors, design, which)
        if found is None:
            return None
        errors.random_tests[design.name] = found
    return errors.random_tests[design.name]


# --- bands and bootstrap ---


def band(
    errors: CoefficientErrors,
    name: str,
    points: Mapping[str, Any],
    level: float,
    kind: str | None,
    seed: int,
    *,
    simultaneous: bool,
) -> pd.DataFrame:
    """Band of a term's coefficient function."""
    flag(simultaneous, "simultaneous")
    fraction(level, "level")
    covariance, left = errors.covariance(kind), errors.degrees(kind, None if errors.persons is None else name)
    rows = effect_rows(errors.fit.form, name, points)
    frame = effect_of(errors.fit, rows, covariance, level).to_frame()
    wide = student_quantile((1 + level) / 2, left)
    if simultaneous:
        here = rows.rows[~rows.absent]
        left = errors.degrees(kind, name)
        wide = LargestRatio.of(here, covariance[rows.place, rows.place], seed).quantile(level, left)
    frame["lower"], frame["upper"] = frame["value"] - wide * frame["se"], frame["value"] + wide * frame["se"]
    return frame


def bootstrapped(errors: CoefficientErrors, n_samples: int, groups: ArrayLike | None, seed: int) -> Bootstrap:
    """Fit to curves, or groups of them, that are drawn with replacement."""
    own = errors.residuals
    if own is None:
        raise InputError("bootstrap needs the training rows, and models from files and chunks keep none")
    chosen = errors.groups if groups is None else clusters_of(groups, {}, own.n)
    with one_blas_thread():
        samples = resampled(errors.fit, own, chosen, whole(n_samples, "n_samples", least=2), seed)
    return Bootstrap(errors.fit, samples)


# Errors of curves left out of the fit, by which models of curves are compared.


def errors_left_out(errors: CoefficientErrors) -> tuple[FloatArray, FloatArray]:
    """Mean squared error of each curve or person in the fit without it, integrated along t, and its weight, (G,).

    A fit with groups leaves out all curves of a person. By `person_rows` a person counts once, or as often as it has
    curves. The mean square of a curve with gaps is taken over its observed points.

    Raises
    ------
    InputError
        Of families other than the Gaussian, and of models without their training rows.
    """
    own, form, settings = errors.residuals, errors.fit.form, errors.settings
    if settings.family.name != "gaussian":
        raise InputError(f"loo_ is there for family='gaussian', got {settings.family.name!r}; hold curves out instead")
    if own is None or errors.fit.n < 2:
        raise InputError(
            "loo_ needs two training rows or more, and private fits and models from files and chunks keep none"
        )
    groups = errors.groups
    changes = errors.left_out("curve" if groups is None else "cluster")
    left = own.without(form, changes if groups is None else changes[groups])
    each = _mean_square(own, left, form.t, along=settings.of_curves)
    if groups is None:
        return each, np.ones(len(each))
    counts = np.bincount(groups).astype(np.float64)
    return np.bincount(groups, each) / counts, counts if settings.person_rows == "sum" else np.ones(len(counts))


def _mean_square(own: Residuals, left: FloatArray, t: FloatArray, *, along: bool) -> FloatArray:
    """Of each record, integrated over the domain of t."""
    if own.points is not None:
        record: IntArray = own.points.record
        seen = np.ones(len(left)) if own.weights is None else (own.weights > 0).astype(np.float64)
        total, counts = np.bincount(record, seen * left**2, own.n), np.bincount(record, seen, own.n)
        return np.asarray(total / np.maximum(counts, 1.0) * np.ptp(t))
    weights = quadrature_weights(t) if along and t.size > 1 else np.ones(left.shape[1])
    seen = weights if own.weights is None else np.where(own.weights > 0, weights, 0.0)
    total = (np.where(seen > 0, left, 0.0) ** 2 * seen).sum(axis=1)
    return np.asarray(total / np.maximum(np.sum(np.broadcast_to(seen, left.shape), axis=1), 1e-300) * weights.sum())


def mean_and_se(values: FloatArray, counts: FloatArray) -> tuple[float, float]:
    """Weighted mean over curves or persons, and its standard error."""
    mean = float(counts @ values / counts.sum())
    away = counts * (values - mean) / counts.sum()
    return mean, float(np.sqrt(len(values) / (len(values) - 1) * (away @ away)))


def compared(one: CoefficientErrors, other: CoefficientErrors) -> pd.DataFrame:
    """Two models of the same curves by their errors of curves left out, as a row each, the smaller one first."""
    import pandas as pd

    (small, own), (large, theirs) = sorted(
        ((m, errors_left_out(m)) for m in (one, other)), key=lambda pair: pair[0].fit.edf_total
    )
    if len(own[0]) != len(theirs[0]) or not np.array_equal(own[1], theirs[1]) or not _same_responses(small, large):
        raise InputError("other must be fitted to the same responses and groups, got others")
    gain, se = mean_and_se(own[0] - theirs[0], own[1])
    table = pd.DataFrame(
        [(m.fit.edf_total, *mean_and_se(*found)) for m, found in ((small, own), (large, theirs))],
        columns=["edf", "loo", "se"],
        index=["smaller", "larger"],
    )
    table["gain"], table["gain_se"] = [np.nan, gain], [np.nan, se]
    table["preferred"] = [gain <= se, gain > se]
    return table


def _same_responses(one: CoefficientErrors, two: CoefficientErrors) -> bool:
    """Whether two fits had the same responses, by means and residuals of the training rows."""
    own = [m.residuals for m in (one, two) if m.residuals is not None]
    found = [m.fit.form.predictor(r.records, m.fit.coefficients) for m, r in zip((one, two), own, strict=True)]
    if any(r.points is not None for r in own) or found[0].shape != found[1].shape:
        return bool(one.fit.n_rows == two.fit.n_rows)
    y = [f + r.values for f, r in zip(found, own, strict=True)]
    seen = [np.ones(v.shape) if r.weights is None else r.weights > 0 for v, r in zip(y, own, strict=True)]
    both = (seen[0] > 0) & (seen[1] > 0)
    size = float(np.abs(y[0][both]).max(initial=0.0))
    return np.array_equal(seen[0] > 0, seen[1] > 0) and np.allclose(y[0][both], y[1][both], atol=1e-8 * size)


# Tests of random effects in fitted models: the fit and its residuals as input for the solver's tests.


FEW = 3
"""Least number of curves for each direction that is projected out for the other terms."""


def numbers_tested(errors: CoefficientErrors, design: TermDesign, which: IntArray) -> TermTest | None:
    """The exact score test of a term whose one penalty has no null space; None for other terms."""
    penalties = design.penalties
    if len(penalties) != 1 or not (penalties > 0).all():
        return None
    with one_blas_thread():
        known = errors.settings.family.known_scale
        return score_test(EffectSpectrum.of(errors.fit, which, known), known)


def numbers_of_groups_tested(errors: CoefficientErrors, design: TermDesign, which: IntArray) -> TermTest | None:
    """The same of a random effect in a fit with groups; None for other terms. NaN where groups weigh rows unequally.

    A covariance from clusters says nothing of as many effects as there are clusters. The score test takes rows as
    independent where the random effect is 0, and their weights as those of their variances.
    """
    levels = levels_of(_term_of_number(design))
    if levels is None:
        return None
    alike = errors.weighs_rows_alike
    return numbers_tested(errors, design, which) if alike else TermTest(np.nan, len(levels) - 1, np.nan)


def curves_tested(errors: CoefficientErrors, design: TermDesign) -> TermTest | None:
    """The test by flipped signs of a random effect on curves; None for other terms.

    NaN if the model keeps no residuals of single curves, for example after a fit to chunks.
    """
    levels = levels_of(_term_of_number(design))
    if levels is None:
        return None
    own, form = errors.residuals, errors.fit.form
    if own is None:
        return TermTest(np.nan, len(levels) - 1, np.nan)
    tested = _codes(design, own.records)
    units, added = np.arange(own.n) if errors.groups is None else errors.groups, [design]
    if not _within(units, tested):
        units = np.arange(own.n)
    for other in form.designs:  # a finer random effect is part of the errors
        if other is not design and levels_of(_term_of_number(other)) is not None:
            finer = _codes(other, own.records)
            if _within(finer, tested) and finer.max() < units.max():
                units, added = finer, [design, other]
    with one_blas_thread():
        left = _along_term(errors, own, design, added)
        return flip_test(left, _known(form.designs, own.records), tested, units)


def _term_of_number(design: TermDesign) -> TermDesign:
    return design.of if isinstance(design, OnFunctions) else design


def _codes(design: TermDesign, records: Records) -> IntArray:
    """Number of the level of each record."""
    levels = levels_of(_term_of_number(design))
    assert levels is not None
    return np.asarray(levels.codes(records.labels(levels.column).tolist()), dtype=np.int64)


def _within(finer: IntArray, coarser: IntArray) -> bool:
    """Whether all records of a number of the one have the same number of the other, and some numbers of it have two."""
    pairs = len({*zip(finer.tolist(), coarser.tolist(), strict=True)})
    return len(set(coarser.tolist())) < len(set(finer.tolist())) == pairs


def _along_term(errors: CoefficientErrors, own: Residuals, design: TermDesign, added: list[TermDesign]) -> FloatArray:
    """Residuals without the added terms, in the directions along t in which the term varies, (n, r)."""
    fit, form = errors.fit, errors.fit.form
    of = [(d, form.functions(d, fit.coefficients[form.slices[form.designs.index(d)]])) for d in added]
    turn = np.linalg.qr(np.ascontiguousarray(design.along.design(form.t)))[1]
    weights = 1.0 if own.weights is None else own.weights
    if own.points is None:
        back = sum(d.features(own.records) @ b @ d.along.design(form.t).T for d, b in of)
        along = np.linalg.solve(turn.T, design.along.design(form.t).T).T
        return np.asarray(((own.values + back) * weights) @ along)
    record, t = own.points.record, own.points.t
    back = sum(np.einsum("ij,ij->i", (d.features(own.records) @ b)[record], d.along.design(t)) for d, b in of)
    along = np.linalg.solve(turn.T, design.along.design(t).T).T
    out = np.zeros((own.n, along.shape[1]))
    np.add.at(out, record, ((own.values + back) * weights)[:, None] * along)
    return out


def _known(designs: tuple[TermDesign, ...], records: Records) -> FloatArray:
    """Features of the terms, the constant first. Many penalised features are reduced to their largest directions."""
    sure: list[FloatArray] = [np.ones((records.n, 1))]
    smooth: list[FloatArray] = []
    for design in designs:
        if design.columns and design.separable and levels_of(_term_of_number(design)) is None:
            (smooth if len(design.own_penalties) else sure).append(design.features(records))
    most = max(records.n // FEW - sum(own.shape[1] for own in sure), len(smooth))
    if sum(own.shape[1] for own in smooth) > most:
        smooth = [np.linalg.svd(own, full_matrices=False)[0][:, : most // len(smooth)] for own in smooth]
    return np.hstack([*sure, *smooth])
