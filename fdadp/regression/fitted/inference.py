"""Inference in a model of many terms: covariances, tests of terms, bands, likelihood."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp._common.checks import flag, fraction, one_of, whole
from fdadp._common.threads import one_blas_thread
from fdadp._common.typing import ArrayLike, FloatArray, IntArray
from fdadp.errors import InputError
from fdadp.regression.fitted.coefficient_functions import effect_of, effect_rows
from fdadp.regression.fitted.curves_left_out import errors_left_out, mean_and_se
from fdadp.regression.fitted.errors import BY_CLUSTERS, CoefficientErrors
from fdadp.regression.fitted.random_effects import curves_tested, numbers_tested
from fdadp.regression.reading.person_rows import clusters_of
from fdadp.solve.errors.leave_one_out import Residuals
from fdadp.solve.errors.sandwich import corrected_edf, resampled
from fdadp.solve.errors.term_tests import TermTest, largest_ratio, wald, wald_by_clusters
from fdadp.solve.fit.additive_fit import AdditiveFit

if TYPE_CHECKING:
    import pandas as pd

    from fdadp.regression.fitted.fitted import Fitted

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
    edf = corrected_edf(errors.fit, first_order=family.name != "gaussian")
    return -2 * errors.loglik + 2 * (edf + (not family.known_scale))


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


def terms_tested(errors: CoefficientErrors, kind: str | None) -> pd.DataFrame:
    """A test for each term but the constant."""
    import pandas as pd

    fit, rows = errors.fit, {}
    for design, place in zip(fit.form.designs, fit.form.slices, strict=True):
        if not design.columns and design.size == 1:
            continue
        found = tested(errors, np.arange(place.start, place.stop), kind)
        rows[design.name] = (float(fit.edf[place].sum()), found.statistic, found.df, found.p)
    columns = ["edf", "statistic", "df", "p"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("term")


def nested_models(one: Fitted, other: Fitted, kind: str | None) -> pd.DataFrame:
    """Compare two models of which one has all terms of the other, by a Wald test in the larger one."""
    import pandas as pd

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
    special = tested_as_random(errors, which, wanted, kind)
    if special is not None:
        return special
    if wanted in BY_CLUSTERS:
        found = errors.by_clusters(wanted)
        return wald_by_clusters(fit, which, found.sampling, found.n_clusters)
    both = np.ix_(which, which)
    covariance, edf = errors.covariance(kind)[both], float(fit.edf[which].sum())
    return wald(fit.gram[both], fit.coefficients[which], covariance, edf, errors.degrees(kind))


def tested_as_random(errors: CoefficientErrors, which: IntArray, wanted: str, kind: str | None) -> TermTest | None:
    """The test of a single random effect; None for other terms."""
    form = errors.fit.form
    places = zip(form.designs, form.slices, strict=True)
    design = next((d for d, p in places if np.array_equal(which, np.arange(p.start, p.stop))), None)
    if design is None:
        return None
    if not errors.settings.of_curves:
        return None if wanted in BY_CLUSTERS else numbers_tested(errors, design, which)
    if kind in ("iid", "unconditional"):
        return None
    if design.name not in errors.random_tests:
        found = curves_tested(errors, design)
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
    from scipy.stats import t as student

    flag(simultaneous, "simultaneous")
    fraction(level, "level")
    covariance, left = errors.covariance(kind), errors.degrees(kind)
    rows = effect_rows(errors.fit.form, name, points)
    frame = effect_of(errors.fit, rows, covariance, level).to_frame()
    wide = student.ppf((1 + level) / 2, left)
    if simultaneous:
        here = rows.rows[~rows.absent]
        left = errors.degrees(kind, name)
        wide = largest_ratio(here, covariance[rows.place, rows.place], level, left, seed)
    frame["lower"], frame["upper"] = frame["value"] - wide * frame["se"], frame["value"] + wide * frame["se"]
    return frame


def bootstrapped(errors: CoefficientErrors, n_samples: int, groups: ArrayLike | None, seed: int) -> Bootstrap:
    """Fit to curves, or groups of them, that are drawn with replacement."""
    own = errors.residuals
    if not isinstance(own, Residuals):
        raise InputError("bootstrap needs the training rows, of which models from files and chunks keep none")
    chosen = errors.groups if groups is None else clusters_of(groups, {}, own.n)
    with one_blas_thread():
        samples = resampled(errors.fit, own, chosen, whole(n_samples, "n_samples", least=2), seed)
    return Bootstrap(errors.fit, samples)
