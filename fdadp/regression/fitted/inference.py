"""How sure a model of many terms is: covariances, tests of terms, bands, likelihood."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fdadp._common.checks import flag, fraction, one_of, whole
from fdadp._common.threads import one_blas_thread
from fdadp._common.typing import ArrayLike, FloatArray, IntArray
from fdadp.errors import InputError
from fdadp.regression.fitted.coefficient_functions import effect_of, effect_rows
from fdadp.regression.fitted.curves_left_out import compared, errors_left_out, mean_and_se
from fdadp.regression.fitted.learned_errors import BY_CLUSTERS, LearnedErrors, clusters_of
from fdadp.regression.fitted.random_effects import curves_tested, numbers_tested
from fdadp.solve.errors.leave_one_out import Residuals
from fdadp.solve.errors.resampling import resampled
from fdadp.solve.errors.sandwich import corrected_edf
from fdadp.solve.errors.term_tests import TermTest, largest_ratio, wald, wald_by_clusters
from fdadp.solve.fit.additive_fit import AdditiveFit

if TYPE_CHECKING:
    import pandas as pd

# What a bootstrap over persons says of the coefficient functions of a model.


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
        """Of all coefficients, shape (p, p); what penalties take away is not in it."""
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


class Inference(LearnedErrors):
    """Part of every model of many terms: how sure it is."""

    # --- numbers ---

    def vcov(self, kind: str | None = None) -> pd.DataFrame:
        """Covariance of all coefficients.

        Parameters
        ----------
        kind : {"curve", "cluster", "iid", "unconditional"}, optional
            Errors of any law within a curve; within a group of curves (``fit(data, groups=)``); or independent, as
            refund takes them, with smoothing parameters as known or (mgcv's ``unconditional=TRUE``, of Gaussian fits by
            REML) as estimated. Default: ``se``. What goes by curves always knows that they are estimated.

        Returns
        -------
        DataFrame of shape (p, p)
            Rows and columns are numbered within each term; coefficients are in coordinates where penalties are
            diagonal.

        Raises
        ------
        InputError
            An unknown kind, or one that this model has not: without groups, of another family, or with smoothing
            parameters that REML did not choose.

        References
        ----------
        Wood, Pya & Säfken (2016), doi:10.1080/01621459.2016.1180986, section 4, on the last kind.
        """
        import pandas as pd

        covariance, form = self._covariance_of(kind), self._fit.form
        names = [f"{d.name}.{i + 1}" for d in form.designs for i in range(d.size)]
        return pd.DataFrame(covariance, index=names, columns=names)

    @property
    def aic_(self) -> float:
        """``-2 loglik + 2 edf``, one more for a scale that is estimated: mgcv's ``AIC``.

        Where REML chose the smoothing parameters, that counts in the degrees of freedom: ``tr(Vc G)/σ²``, at most
        ``tr(2F - FF)``, with F = A⁻¹G (Wood, Pya & Säfken 2016, doi:10.1080/01621459.2016.1180986). Of families other
        than the Gaussian Vc is to first order, and so the number is within about 1 of mgcv's.

        Do not choose models of curves by it: points of a curve count as independent observations, so that a covariate
        without effect is taken in most samples. Use :meth:`compare`, or :meth:`anova`.
        """
        check_is_fitted(self, "_fit")
        edf = corrected_edf(self._fit, first_order=self._family.name != "gaussian")
        return -2 * self.loglik_ + 2 * (edf + (not self._family.known_scale))

    # --- errors of curves left out ---

    @property
    def loo_(self) -> float:
        """Mean over curves of the integrated squared error without the curve, at the smoothing parameters of the fit.

        Of numbers the mean squared error. With groups whole persons are left out, and each counts once, or as often as
        it has rows, as `person_rows` says. Of the Gaussian family, of fits that were not made in chunks.
        """
        check_is_fitted(self, "_fit")
        return (self._score or mean_and_se(*errors_left_out(self)))[0]

    @property
    def loo_se_(self) -> float:
        """Standard error of :attr:`loo_`, over curves or persons."""
        check_is_fitted(self, "_fit")
        return (self._score or mean_and_se(*errors_left_out(self)))[1]

    @property
    def _score(self) -> tuple[float, float] | None:
        """Both, where they are known; files hold them."""
        if self._held_score is None and self._has_rows and self._family.name == "gaussian":
            self._held_score = mean_and_se(*errors_left_out(self))
        return self._held_score

    @_score.setter
    def _score(self, found: tuple[float, float] | None) -> None:
        self._held_score = found

    def compare(self, other: Any) -> pd.DataFrame:
        """Which of two models predicts new curves, or persons, better: their errors of curves left out, in pairs.

        Parameters
        ----------
        other : model of the same class
            Fitted to the same rows, with any terms.

        Returns
        -------
        DataFrame
            A row for each model, that of fewer degrees of freedom first: ``edf``, ``loo`` and ``se``; in the second the
            ``gain`` over the first and its standard error ``gain_se``, over curves; and which is ``preferred``: the
            first, unless the gain is larger than its standard error.

        Raises
        ------
        InputError
            Other responses or groups, families other than the Gaussian, models without their training rows.

        Notes
        -----
        Smoothing parameters are those of the fit to all curves. Models whose smoothing the same error chose are
        compared by curves held out (:func:`fdadp.functional.probabilities.compare_over_splits`).
        """
        check_is_fitted(self, "_fit")
        return compared(self, other)

    # --- tests ---

    def test_terms(self, kind: str | None = None) -> pd.DataFrame:
        """Test for each term that its values at the training rows are all 0.

        Parameters
        ----------
        kind : {"curve", "cluster", "iid", "unconditional"}, optional
            As in :meth:`vcov`.

        Returns
        -------
        DataFrame
            A row for each term but the constant: ``edf``, ``statistic`` (Wald's, on ``df`` directions), ``df`` and
            ``p``. By curves or clusters directions are the smoothest ones, without what smoothing takes away
            (:func:`fdadp.solve.errors.term_tests.wald_by_clusters`); else those in which the term varies most. Of
            ``re(g)`` the test is that its variance is 0: on numbers the exact score test, on curves one by flipped
            signs of curves, or of groups of them (:mod:`fdadp.solve.errors.variance_tests`), except where `kind` asks
            for refund's.

        References
        ----------
        Wood (2013), doi:10.1093/biomet/ass048; Hotelling (1931), doi:10.1214/aoms/1177732979, by clusters.
        """
        import pandas as pd

        check_is_fitted(self, "_fit")
        fit, rows = self._fit, {}
        for design, place in zip(fit.form.designs, fit.form.slices, strict=True):
            if not design.columns and design.size == 1:
                continue
            found = self._tested(np.arange(place.start, place.stop), kind)
            rows[design.name] = (float(fit.edf[place].sum()), found.statistic, found.df, found.p)
        columns = ["edf", "statistic", "df", "p"]
        return pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("term")

    def anova(self, other: Any, kind: str | None = None) -> pd.DataFrame:
        """Compare with a model nested in this one, or of which this one is a part.

        A Wald test in the larger model that the terms which the smaller one lacks are all 0, with the covariance of
        `kind`; no likelihood ratio, whose law is unknown where errors depend along a curve.

        Parameters
        ----------
        other : model of the same class
            Fitted to the same rows.
        kind : {"curve", "cluster", "iid", "unconditional"}, optional
            As in :meth:`vcov`.

        Returns
        -------
        DataFrame
            A row for each model, the smaller one first: ``edf``, ``rss``, ``aic``; in the second ``statistic``, ``df``
            and ``p`` of the terms by which they differ.

        Raises
        ------
        InputError
            Neither model has all terms of the other, or they were fitted to different numbers of observations.
        """
        import pandas as pd

        if not isinstance(other, Inference):
            raise InputError(f"other must be a model of many terms, got {type(other).__name__}")
        check_is_fitted(self, "_fit")
        check_is_fitted(other, "_fit")
        mine, theirs = ({d.name for d in model._fit.form.designs} for model in (self, other))
        if not (mine < theirs or theirs < mine):
            raise InputError(
                f"other must have some of the terms of this model, or all and more, got {', '.join(sorted(theirs))} "
                f"beside {', '.join(sorted(mine))}"
            )
        if self._fit.n_rows != other._fit.n_rows:
            raise InputError(
                f"other must be fitted to the same rows, got {other._fit.n_rows} observations, not {self._fit.n_rows}"
            )
        small, large = (self, other) if mine < theirs else (other, self)
        form = large._fit.form
        more = [p for d, p in zip(form.designs, form.slices, strict=True) if d.name in mine ^ theirs]
        which = np.concatenate([np.arange(p.start, p.stop) for p in more])
        found = large._tested(which, kind)
        rows = [(m._fit.edf_total, m._fit.rss, m.aic_) for m in (small, large)]
        table = pd.DataFrame(rows, columns=["edf", "rss", "aic"], index=["smaller", "larger"])
        table["statistic"], table["df"], table["p"] = [np.nan, found.statistic], [np.nan, found.df], [np.nan, found.p]
        return table

    def _tested(self, which: IntArray, kind: str | None) -> TermTest:
        """Test that some coefficients are all 0, by what is believed of the errors."""
        wanted, fit = self._kind_of(kind), self._fit
        special = self._tested_as_random(which, wanted, kind)
        if special is not None:
            return special
        if wanted in BY_CLUSTERS:
            errors = self._errors_of(wanted)
            return wald_by_clusters(fit, which, errors.sampling, errors.n_clusters)
        both = np.ix_(which, which)
        covariance, edf = self._covariance_of(kind)[both], float(fit.edf[which].sum())
        return wald(fit.gram[both], fit.coefficients[which], covariance, edf, self._degrees_of(kind))

    def _tested_as_random(self, which: IntArray, wanted: str, kind: str | None) -> TermTest | None:
        """The test of a single random effect; None of all else."""
        places = zip(self._fit.form.designs, self._fit.form.slices, strict=True)
        design = next((d for d, p in places if np.array_equal(which, np.arange(p.start, p.stop))), None)
        if design is None:
            return None
        if not self._of_curves:
            return None if wanted in BY_CLUSTERS else numbers_tested(self, design, which)
        if kind in ("iid", "unconditional"):
            return None
        if design.name not in self._flipped:
            found = curves_tested(self, design)
            if found is None:
                return None
            self._flipped = {**self._flipped, design.name: found}
        return self._flipped[design.name]

    @property
    def _random_tests(self) -> Mapping[str, TermTest]:
        """Of all random effects on curves, for files, which hold no residuals."""
        for place in self._fit.form.slices if self._of_curves else ():
            self._tested_as_random(np.arange(place.start, place.stop), self._kind_of(None), None)
        return self._flipped

    @_random_tests.setter
    def _random_tests(self, found: Mapping[str, TermTest]) -> None:
        self._flipped = found

    # --- bands ---

    def bands(
        self,
        name: str,
        level: float = 0.95,
        simultaneous: bool = True,
        *,
        t: ArrayLike | None = None,
        at: Mapping[str, ArrayLike] | None = None,
        kind: str | None = None,
        seed: int = 0,
        **points: ArrayLike,
    ) -> pd.DataFrame:
        """Bands of a term's coefficient function, such as ``β(s, t)`` of ``ff(X)``.

        Parameters
        ----------
        name : str
            Of the term.
        level : float
            Probability that the band holds the function: all of it, or at each point.
        simultaneous : bool
            All of it, on the grid of the band.
        t, at, **points
            Grid, as in :meth:`coef`.
        kind : {"curve", "cluster", "iid", "unconditional"}, optional
            As in :meth:`vcov`.
        seed : int
            Of the draws of which the largest deviation is taken.

        Returns
        -------
        DataFrame
            As of :meth:`coef`, with ``se``, ``lower`` and ``upper``.
        """
        from scipy.stats import t as student

        flag(simultaneous, "simultaneous")
        fraction(level, "level")
        covariance, left = self._covariance_of(kind), self._degrees_of(kind)
        rows = effect_rows(self._fit.form, name, {"t": t, **(at or {}), **points})
        frame = effect_of(self._fit, rows, covariance, level).to_frame()
        wide = student.ppf((1 + level) / 2, left)
        if simultaneous:
            here = rows.rows[~rows.absent]
            left = self._degrees_of(kind, name)
            wide = largest_ratio(here, covariance[rows.place, rows.place], level, left, seed)
        frame["lower"], frame["upper"] = frame["value"] - wide * frame["se"], frame["value"] + wide * frame["se"]
        return frame

    # --- bootstrap ---

    def bootstrap(self, n_samples: int = 200, *, groups: ArrayLike | None = None, seed: int = 0) -> Bootstrap:
        """Draw curves, or groups of them, with replacement and fit again, at the same smoothing parameters.

        Families other than the Gaussian take one step of the fit from the estimates.

        Parameters
        ----------
        n_samples : int
        groups : array_like of shape (n,), optional
            Whose each training row is; default: as `fit` was told.
        seed : int

        Returns
        -------
        Bootstrap
            With :meth:`~fdadp.regression.fitted.inference.Bootstrap.coef` for percentile and normal intervals.

        Raises
        ------
        InputError
            Of loaded models and those fitted to chunks, which keep no rows.

        References
        ----------
        Efron & Tibshirani (1993), An Introduction to the Bootstrap, doi:10.1201/9780429246593.
        """
        check_is_fitted(self, "_fit")
        own = self._residuals
        if not isinstance(own, Residuals):
            raise InputError("bootstrap needs the training rows, of which models from files and chunks keep none")
        chosen = self._groups if groups is None else clusters_of(groups, {}, own.n)
        with one_blas_thread():
            samples = resampled(self._fit, own, chosen, whole(n_samples, "n_samples", least=2), seed)
        return Bootstrap(self._fit, samples)
