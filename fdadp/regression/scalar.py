"""Regression of a number on any terms: ``E[y_i] = β₀ + Σ_j f_j(X_ij)``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fdadp._common.argument_checks import fraction, one_of
from fdadp._common.estimators import Regressor
from fdadp._common.loaded_later import pd
from fdadp._common.student_and_f import student_quantile
from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.functional.tables.curve_inputs import Labels
from fdadp.privacy import Privacy
from fdadp.privacy._unaccounted_fits import score_is_not_private
from fdadp.private.release.mechanisms import Mechanism
from fdadp.regression.estimator_base import TermModel
from fdadp.regression.fitted.fitted_model import as_classes, explained_share_of_numbers, refuse_without_classes
from fdadp.solve.form.families_by_name import family_of
from fdadp.solve.form.ordered_categories import probabilities, probability_slopes
from fdadp.solve.form.response_families import Family
from fdadp.terms.spec import TermSpec


@dataclass(kw_only=False, eq=False, repr=False)
class ScalarRegression(Regressor, TermModel):
    """Regression of a number on curves, numbers and labels, by terms.

    Parameters
    ----------
    formula : str or sequence of TermSpec
        A formula, ``"y ~ lf(X) + age"``, or terms, ``[terms.lf("X"), terms.linear("age")]``. A constant is added.
    response : str, optional
        Column of the response where `formula` is not text; default ``"y"``.
    smoothing : {"reml", "gcv"} or array_like of shape (M,)
        How smoothing parameters are chosen, or their values on mgcv's scale in the order of the terms.
    family : {"gaussian", "binomial", "poisson", "gamma", "negative_binomial", "scaled_t", "ordered"} or Family
        Of the responses (:mod:`fdadp.solve.form.response_families`); all but the first are fitted by Laplace's
        approximation to REML. Binomial responses are 0 or 1, two labels, or shares with numbers of trials as weights.
        REML chooses θ of negative binomial counts, whose variance is ``μ + μ²/θ``; ``"negative_binomial(2.5)"`` gives
        it. So it does ν and σ of errors ``σ t`` with ν degrees of freedom, whose outliers hardly pull;
        ``"scaled_t(4, 0.5)"`` gives them. Ordered categories are numbers from 1 to R or an ordered categorical: REML
        chooses where a latent logistic variable is cut, the first point at -1
        (:class:`fdadp.solve.form.ordered_categories.Ordered`); ``"ordered(-1, 0.5, 2)"`` gives cut points.
    intercept : bool
        Add the constant; a formula says so itself.
    missing : {"auto", "raise", "linear", "smooth", "fpca", "pace", "indicator"} or mapping of str to str
        What to do about entries that covariates lack: for all columns of its kind, or by column. Of curves: fill gaps
        by straight lines, by penalised splines curve by curve, or by their conditional expectations given the
        components of the training curves (``"fpca"``, for curves that are mostly observed). Or replace sparse, noisy
        curves as a whole by their conditional expectations (``"pace"``, Yao, Müller & Wang 2005,
        doi:10.1198/016214504000001745). Of numbers: fill in the mean, and add a term ``missing(x)``, 1 where x was
        missing and 0 elsewhere (``"indicator"``). Standard errors take what was filled in as known
        (docs/decisions/0028-incomplete-covariates.md). ``"auto"`` is ``"raise"``, in a private fit ``"linear"``; there
        only what stays within a row is allowed.
    progress : bool or "auto"
        Progress bars: always, never, or on work of more than two seconds.
    privacy : Privacy, optional
        The guarantee of a private fit, as ``Privacy(epsilon=, delta=, n=)``. In one, smoothing follows from the public
        prior and what was released, and `smoothing`, `errors`, `se` and `variance` are not used.
    bounds : mapping of str, optional
        What is public of each column of a private fit, and of the response, chosen without looking at the data: ``(low,
        high)`` of curves and numbers, a list of levels of labels. Ranges of curves are hints of location and size.
        Numbers count as the ends beyond them. Labels that are no level have no effect.
    mechanism : {"dp-aff"} or DPAFF
        How a private fit is made; the object has settings (:class:`fdadp.DPAFF`).
    person_rows : {"mean", "sum"}, optional
        With groups, what the fit is about. ``"mean"``: each person counts once, by the mean of its rows (in an ordinary
        fit a row weighs 1 over the rows of its person). ``"sum"``: each row counts once, as events and hazards want.
        The two differ where the number of rows has to do with the response. Default ``"mean"``.
    max_rows : int, optional
        With ``person_rows="sum"`` in a private fit: rows of a person that count at most, a public number. It should
        hold all rows of nearly everybody: those beyond it are left out. An ordinary fit leaves out none, and refuses a
        number below that of a person's rows.
    variance : str, optional
        Terms of the logarithm of the variance, ``"~ s(x)"``, for Gaussian rows in memory without groups. Mean and
        variance are fitted in turn (:mod:`fdadp.regression.location_and_scale`), so that AIC and `anova` are refused;
        ``predict(type="sd")`` and `predict_interval` follow it. Standard errors take the variance as known.

    Attributes
    ----------
    fitted_values_, residuals_ : ndarray of shape (n,)
        Means, and responses less means.
    smoothing_parameters_ : ndarray of shape (M,)
    smoothing_names_ : tuple of str
    edf_ : float
        Effective degrees of freedom of the whole model.
    criterion_ : float
        REML (the negative restricted log-likelihood) or GCV.
    sigma2_ : float
        Residual variance; of other families the scale, 1 where it is known.
    deviance_ : float
        Residual sum of squares; of other families the deviance.
    """

    formula: str | Sequence[TermSpec]
    response: str | None = None
    smoothing: str | ArrayLike = "reml"
    family: str | Family = "gaussian"
    intercept: bool = True
    missing: str | Mapping[str, str] = "auto"
    progress: bool | str = "auto"
    privacy: Privacy | None = None
    bounds: Mapping[str, Any] | None = None
    mechanism: str | Mechanism = "dp-aff"
    person_rows: str | None = None
    max_rows: int | None = None
    variance: str | None = None

    _default_response = "y"
    _of_curves = False

    def fit(
        self,
        data: Mapping[str, Any] | pd.DataFrame,
        y: Any = None,
        *,
        grids: Mapping[str, ArrayLike] | None = None,
        weights: ArrayLike | str | None = None,
        offset: ArrayLike | str | None = None,
        groups: ArrayLike | str | None = None,
        by: str | None = None,
    ) -> ScalarRegression:
        """Fit the model.

        Parameters
        ----------
        data : DataFrame or mapping of str
            Columns: FDataGrid or arrays (n, S) for curves, arrays (n,) for numbers and labels. A Dask data frame, and
            a mapping with Dask's arrays, are fitted as by :meth:`fit_chunks`.
        y : array_like of shape (n,), optional
            The response, where it is no column of `data`.
        grids : mapping of str to array_like, optional
            Grids of plain arrays, by column.
        weights : array_like of shape (n,) or str, optional
            Of the responses: one with weight 2 has half the variance. Of binomial responses numbers of trials. A name
            is that of a column of `data`.
        offset : array_like of shape (n,) or str, optional
            What is added to the linear predictor, such as the logarithm of an exposure. An expression of columns, such
            as ``"0.5 * last(X) + 0.5 * mean(X)"``, belongs to the model: predictions have it too. In a private fit all
            do, and an offset is a column with bounds or an expression of such columns.
        groups : array_like of shape (n,) or str, optional
            The person of every row, where persons have several rows. Rows of a group may have errors in common. A name
            is that of a column of `data`. Standard errors, tests and bands then take groups as independent, not rows.
            In an ordinary fit this also weighs rows, so that each person counts once, and estimates change. For
            clustered standard errors alone add ``person_rows="sum"``.
        by : {"label", "position"}, optional
            How rows of several tables belong together. Default: by label where all that was given has row labels, as
            data frames and series have; else by position. A label is the person's id (of a MultiIndex the first level;
            the others are the visit). See docs/theory/kernel.md, rule J.

        Returns
        -------
        self

        Raises
        ------
        InputError
            A column that is not there or of another kind, of another number of rows, or not finite; settings that are
            unknown.

        Warns
        -----
        IdentificationWarning
            Naming terms that the data do not identify.
        """
        self._train(data, y, grids, by=by, weights=weights, offset=offset, groups=groups)
        return self

    def predict(
        self,
        data: Any,
        *,
        type: str = "response",
        offset: ArrayLike | str | None = None,
        grids: Mapping[str, ArrayLike] | None = None,
    ) -> Any:
        """Predict the means of new rows, shape (n,): a series where the rows of `data` have labels, else an array.

        Parameters
        ----------
        data : DataFrame or mapping
            As in :meth:`fit`, without the response.
        type : {"response", "link", "terms", "class", "sd"}
            Means, the linear predictor, a dict of what each term adds to that by the names of the terms, the most
            probable class, or standard deviations of Gaussian responses of weight 1. Means of binomial responses are
            probabilities of the second class. Those of ordered categories are the expected number, 1 to R.
        offset : array_like of shape (n,) or str, optional
            What is added to the linear predictor; default what belongs to the model, or else nothing.
        grids : mapping of str to array_like, optional
            Grids of plain arrays; default those of the training curves.

        Raises
        ------
        InputError
            As :meth:`fit`.
        """
        one_of(type, "type", ("response", "link", "terms", "class", "sd"))
        fitted = self._asked()
        records, t = fitted.records(data, grids), fitted.fit.form.t
        shown = fitted.response.kind(t, records)
        if type == "terms":
            form = fitted.fit.form
            parts = form.contributions(form.features(records), fitted.fit.coefficients)
            if fitted.persons is not None:
                parts += fitted.persons.contributions(records, t)
            return {name: shown(part[:, 0]) for name, part in zip(self.term_names_, parts, strict=True)}
        if type == "sd":
            fitted.settings.refuse_other_families("type='sd'")
            return shown(np.sqrt(fitted.fit.sigma2 * self._variances(data, grids, records.n)))
        eta = fitted.predictor(records, data, offset, t)[:, 0]
        if type == "class":
            refuse_without_classes(fitted.family, "type='class'")
            return shown(self.classes_[probabilities(fitted.family, eta).argmax(axis=1)])
        return shown(fitted.family.mean(eta) if type == "response" else eta)

    def _variances(self, data: Any, grids: Mapping[str, ArrayLike] | None, n: int) -> FloatArray:
        """By the terms of the variance, (n,); 1 where there are none."""
        own = self._asked().variance
        return np.ones(n) if own is None else own.of(data, grids)

    def predict_proba(
        self, data: Any, *, offset: ArrayLike | str | None = None, grids: Mapping[str, ArrayLike] | None = None
    ) -> FloatArray:
        """Probabilities of all classes for new rows, in the order of `classes_`, shape (n, K)."""
        refuse_without_classes(family := self._asked().family, "predict_proba")
        return probabilities(family, np.asarray(self.predict(data, type="link", offset=offset, grids=grids)))

    @property
    def classes_(self) -> Labels:
        """The two classes of binomial responses, or the categories. Means are probabilities of the second class."""
        classes = self.fitted_.response.classes if hasattr(self, "fitted_") else None
        if classes is None:
            raise AttributeError("classes_ is there once a model with family='binomial' or 'ordered' has been fitted")
        return as_classes(classes)

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags

        tags = super().__sklearn_tags__()
        family = self.fitted_.family if hasattr(self, "fitted_") else family_of(self.family)
        if family.first_class is not None:  # scikit-learn then asks for probabilities
            tags.estimator_type, tags.regressor_tags = "classifier", None
            tags.classifier_tags = ClassifierTags(multi_class=family.name == "ordered")
        return tags

    def score(self, data: Any, y: Any = None, sample_weight: None = None) -> float:
        """Share of the variance of new responses that is explained; of other families, of the deviance."""
        fitted = self._asked()
        score_is_not_private(self)
        return explained_share_of_numbers(fitted, data, y)

    def predict_se(
        self,
        data: Any,
        *,
        kind: str | None = None,
        type: str = "response",
        offset: ArrayLike | str | None = None,
        grids: Mapping[str, ArrayLike] | None = None,
    ) -> Any:
        """Standard errors of the predicted means, of the linear predictor, or of the probabilities of classes.

        Those of means and probabilities are those of the linear predictor times their slopes in it (the delta method).

        Parameters
        ----------
        data, offset, grids
            As in :meth:`predict`.
        kind : {"curve", "cluster", "iid", "unconditional"}, optional
            As in :meth:`vcov`.
        type : {"response", "link", "probs"}
            Of means or of the linear predictor, shape (n,), or of probabilities as :meth:`predict_proba` gives them,
            shape (n, K). Cut points of ordered categories are taken as known, as in mgcv.

        Raises
        ------
        InputError
            As :meth:`predict`; ``type="probs"`` where responses are no classes.

        Warns
        -----
        CompletedCurvesWarning
            With ``missing="pace"`` and a family that is not Gaussian: completed curves are taken as known. Else a
            jackknife counts that components were estimated.
        """
        one_of(type, "type", ("response", "link", "probs"))
        fitted = self._asked()
        if type == "probs":
            refuse_without_classes(fitted.family, "type='probs'")
        records, t = fitted.records(data, grids), fitted.fit.form.t
        shown = fitted.response.kind(t, records)
        se = fitted.standard_errors(records, data, grids, kind, t)[:, 0]
        if type == "link":
            return shown(se)
        eta = fitted.predictor(records, data, offset, t)[:, 0]
        if type == "probs":
            return se[:, None] * np.abs(probability_slopes(fitted.family, eta))
        return shown(se * fitted.family.mean_slope(eta))

    def predict_interval(
        self,
        data: Any,
        level: float = 0.95,
        *,
        offset: ArrayLike | str | None = None,
        grids: Mapping[str, ArrayLike] | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Prediction intervals of new responses of weight 1: lower and upper ends, shapes (n,).

        Of counts they hold at least `level`, for ends are whole numbers. Binomial responses have none.

        Parameters
        ----------
        data, offset, grids
            As in :meth:`predict`.
        level : float
            Nominal coverage, in (0, 1).
        """
        fraction(level, "level")
        fitted = self._asked()
        fit = fitted.fit
        records, t = fitted.records(data, grids), fit.form.t
        shown = fitted.response.kind(t, records)
        mean, se = fitted.predictor(records, data, offset, t)[:, 0], fitted.errors.of_mean(records, None)[:, 0]
        if fitted.private:
            fitted.settings.refuse_other_families("predict_interval of a private fit")
        if fitted.family.name != "gaussian":
            lower, upper = fitted.family.interval(mean, se, fit.sigma2, level)
            return shown(lower), shown(upper)
        left = max(fit.n_rows - fit.edf_total, 1.0)
        half = student_quantile((1 + level) / 2, left) * np.sqrt(
            se**2 + fit.sigma2 * self._variances(data, grids, records.n)
        )
        return shown(mean - half), shown(mean + half)
