"""Regression of curves on any terms: ``E[Y_i(t)] = μ(t) + Σ_j f_j(X_ij, t)``, with penalised splines along t."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp._common.argument_checks import flag, fraction, one_of
from fdadp._common.estimators import Regressor
from fdadp._common.loaded_later import pd
from fdadp._common.typing import ArrayLike
from fdadp.errors import InputError
from fdadp.privacy import Privacy
from fdadp.privacy._unaccounted_fits import score_is_not_private
from fdadp.private.release.mechanisms import Mechanism
from fdadp.regression.estimator_base import TermModel
from fdadp.regression.fitted.fitted_model import explained_share
from fdadp.solve.form.response_families import Family
from fdadp.terms.spec import TermSpec

if TYPE_CHECKING:
    from fdadp.functional.fpca import Eigenbasis
    from fdadp.regression.fitted.released_person_covariances import LocalBlups


@dataclass(kw_only=False, eq=False, repr=False)
class FunctionalRegression(Regressor, TermModel):
    """Regression of a curve on curves, numbers and labels, by terms.

    Parameters
    ----------
    formula : str or sequence of TermSpec
        A formula, ``"Y ~ ff(X) + s(age) + region"``, or terms, ``[terms.ff("X"), terms.linear("x")]``. A constant and
        the mean curve ``μ(t)`` (``terms.numbers.scalar_linear.MeanCurve``) are added.
    response : str, optional
        Column of the response where `formula` is not text; default ``"Y"``.
    smoothing : {"reml", "gcv", "curves", "groups"} or array_like of shape (M,)
        How smoothing parameters are chosen, or their values on mgcv's scale: the mean curve's first, then those of each
        term in order, as in refund. Of several minima of REML the one is taken that suits errors along the curve
        (docs/decisions/0036-minima-of-reml-under-dependence.md). On eigenfunctions those of the terms, (M,) for all or
        (K, M) for each. ``"curves"`` takes those that predict curves left out of the fit best, and ``"groups"`` whole
        persons (``fit(data, groups=)``), exactly and without refits (:mod:`fdadp.solve.errors.leave_one_curve_out`):
        for predictions from fewer than 300 curves with smooth errors. These are there for Gaussian rows in memory,
        without privacy, ``errors="curve"`` or eigenfunctions.
    family : {"gaussian", "binomial", "poisson", "gamma", "negative_binomial", "scaled_t"} or Family
        Of the responses (:mod:`fdadp.solve.form.response_families`); all but the first are fitted by Laplace's
        approximation to REML. Binomial responses are 0 or 1, or shares with numbers of trials as weights.
        REML chooses θ of negative binomial counts, whose variance is ``μ + μ²/θ``; ``"negative_binomial(2.5)"`` gives
        it. So it does ν and σ of errors ``σ t`` with ν degrees of freedom, whose outliers hardly pull;
        ``"scaled_t(4, 0.5)"`` gives them.
    intercept : bool
        Add the constant and the mean curve; a formula says so itself.
    missing : {"auto", "raise", "linear", "smooth", "fpca", "pace", "indicator"} or mapping of str to str
        What to do about entries that covariates lack: for all columns of its kind, or by column. Of curves: fill gaps
        by straight lines, by penalised splines curve by curve, or by their conditional expectations given the
        components of the training curves (``"fpca"``, for curves that are mostly observed). Or replace sparse, noisy
        curves as a whole by their conditional expectations (``"pace"``, Yao, Müller & Wang 2005,
        doi:10.1198/016214504000001745). Of numbers: fill in the mean, and add a term ``missing(x)``, 1 where x was
        missing and 0 elsewhere (``"indicator"``). Standard errors take what was filled in as known, but for those of
        predictions with ``"pace"`` (docs/decisions/0028-incomplete-covariates.md). ``"auto"`` is ``"raise"``, in a
        private fit ``"linear"``; there only what stays within a row is allowed.
    progress : bool or "auto"
        Progress bars: always, never, or on work of more than two seconds.
    errors : {"iid", "curve"}
        What estimates believe of the errors along a curve: independent, as refund takes them; or smooth and white, with
        a covariance estimated from the curves (generalised least squares).
    se : {"curve", "cluster", "iid"}
        What standard errors, tests and bands assume of the errors. ``"curve"`` allows any dependence within a curve.
        ``"cluster"`` allows it within a group, and needs the groups at the fit; with groups it is the default.
        ``"iid"`` takes errors as independent at all points, as refund does.
    variance : {"auto", "t", "model", "constant"}
        Of new responses about their means, in prediction intervals. ``"t"`` varies over t. ``"model"``, the default,
        varies over t and with a record's numbers, levels and curves where these matter. ``"constant"`` is the same
        everywhere, with Gaussian errors. All but the last take the distribution of residuals as it is, of each curve
        without itself in the fit.
    response_basis : {"splines", "eigen"}
        What effects are of t: penalised splines, each term its own, as in refund; or combinations of the leading
        eigenfunctions φ_k of the responses, ``β(s, t) = Σ_k b_k(s) φ_k(t)``. Then the scores of the responses on each
        are a regression of numbers on the same terms. Each has smoothing parameters and a residual variance of its own,
        and there is no basis along t to choose. What of an effect lies outside the φ_k is lost; standard errors of
        predictions know of that, those of `coef` do not (docs/decisions/0035-responses-on-eigenfunctions.md). Terms are
        as for numbers: k and penalties over t are not used, and ``re(g)`` is a curve for each level. Concurrent and
        historical terms, ``fosr`` and ``c()`` are refused, and so are weights, other families and ``errors="curve"``.
        Curves with gaps are fitted by their observed points, under a smooth covariance of errors.
    n_components : int, float or Eigenbasis
        With ``response_basis="eigen"`` the number K of eigenfunctions, or the share of variance that they must explain,
        in (0, 1]; or orthonormal functions given on the grid of the response. It is about the response alone: ``ffpc``
        and ``fpcr`` have an `n_components` of their own, about a covariate. The default share, .99, is larger than that
        of :class:`fdadp.AdditiveFunctionOnFunction`, .95.
    k : {"auto", "refund"}
        Numbers of functions along the response, of terms that do not give them, and what curves are measured from.
        ``"auto"`` takes 15, or one for each point of the response, and the mean of the training curves. ``"refund"``
        takes 5, and zero. The first finds effects that change within a tenth of the domain, and does not depend on the
        zero of the curves' unit.
    privacy : Privacy, optional
        The guarantee of a private fit, as ``Privacy(epsilon=, delta=, n=)``. In one, smoothing follows from the public
        prior and what was released, effects are combinations of public functions of t, and `smoothing`, `errors`, `se`,
        `variance`, `response_basis` and `n_components` are not used.
    bounds : mapping of str, optional
        What is public of each column of a private fit, and of the response, chosen without looking at the data: ``(low,
        high)`` of curves and numbers, a list of levels of labels. Ranges of curves are hints of location and size.
        Numbers count as the ends beyond them. Labels that are no level have no effect.
    mechanism : {"dp-aff"} or DPAFF
        How a private fit is made; the object has settings (:class:`fdadp.DPAFF`).
    person_rows, max_rows
        With groups, how the rows of a person count, as of :class:`ScalarRegression`. In a private fit with
        ``re(id, covariance="free")`` `max_rows` is required, at least 2, and `person_rows` is ``"mean"`` (each person
        counts once) or ``"exchangeable"`` (generalised least squares with as much variance between persons as within
        them): docs/repeated.md.
    within : sequence of str
        Of such a fit: columns that vary within persons. Their effects are found by comparing rows of one person, with
        little noise; with ``"exchangeable"`` all rows are compared.
    t_period : float, optional
        Makes the mean curve and all effects periodic in t: t and t + period are the same point, 24 for hours of a day.
        They are then periodic cubic splines, mgcv's ``bs = "cc"`` with k + 1 even knots from the least t on, whose
        penalty is the integrated squared second derivative; `m` of terms is not used along t. All points of the
        response must lie within one period; predictions are there at any t, of ``concurrent(X)`` where X is. A term may
        have a `period` of its own along t (``linear``, ``concurrent``, factors). Refused in private fits, whose effects
        are combinations of the prior's functions of t, on eigenfunctions, with ``fosr``, and with persons' curves of
        free or given covariances.

    Attributes
    ----------
    fitted_values_, residuals_ : as the response came, shape (n, T)
        Means, and responses less means, NaN where nothing was observed. Where responses have points of their own:
        ndarray of shape (N,), in the order of `observed_at_`.
    observed_at_ : PointwiseResponse or None
        Records, points and values of such responses.
    smoothing_parameters_ : ndarray of shape (M,), or (K, M) on eigenfunctions
    smoothing_names_ : tuple of str
    edf_ : float
        Effective degrees of freedom of the whole model; :attr:`term_edf_` has those of each term.
    criterion_ : float
        REML (the negative restricted log-likelihood) or GCV; on eigenfunctions the sum of those of all scores. With
        ``smoothing="curves"`` or ``"groups"`` the mean squared error of what is left out, over observations.
    eigenbasis_ : Eigenbasis or None
        Mean and eigenfunctions of the responses, of ``response_basis="eigen"``.
    sigma2_ : float
        Residual variance; of other families the scale, 1 where it is known.
    deviance_ : float
        Residual sum of squares; of other families the deviance.
    t_ : ndarray of shape (T,)
        Grid of the response; where responses have many points of their own, 101 points of their domain.

    Examples
    --------
    >>> from fdadp import FunctionalRegression, load_canadian_weather, terms
    >>> weather = load_canadian_weather()
    >>> data = {"X": weather.X, "Y": weather.Y}
    >>> model = FunctionalRegression([terms.ff("X")]).fit(data)
    >>> model.predict({"X": weather.X[:3]})
    FDataGrid(...)
    """

    formula: str | Sequence[TermSpec]
    response: str | None = None
    smoothing: str | ArrayLike = "reml"
    family: str | Family = "gaussian"
    intercept: bool = True
    missing: str | Mapping[str, str] = "auto"
    progress: bool | str = "auto"
    errors: str = "iid"
    se: str = "curve"
    variance: str = "auto"
    response_basis: str = "splines"
    n_components: float | Eigenbasis = 0.99
    k: str = "auto"
    privacy: Privacy | None = None
    bounds: Mapping[str, Any] | None = None
    mechanism: str | Mechanism = "dp-aff"
    person_rows: str | None = None
    max_rows: int | None = None
    within: Sequence[str] = ()
    t_period: float | None = None

    _default_response = "Y"
    _of_curves = True
    eigenbasis_: Eigenbasis | None = None

    def fit(
        self,
        data: Mapping[str, Any] | pd.DataFrame,
        y: Any = None,
        *,
        grids: Mapping[str, ArrayLike] | None = None,
        weights: ArrayLike | str | None = None,
        offset: ArrayLike | str | None = None,
        response: pd.DataFrame | None = None,
        groups: ArrayLike | str | None = None,
        by: str | None = None,
    ) -> FunctionalRegression:
        """Fit the model.

        Parameters
        ----------
        data : DataFrame or mapping of str
            Columns: FDataGrid or arrays (n, S) for curves, arrays (n,) for numbers and labels. A Dask data frame, and
            a mapping with Dask's arrays, are fitted as by :meth:`fit_chunks`.
        y : curves, optional
            The response, where it is no column of `data`. NaN is what was not observed; curves with points of their
            own come as FDataIrregular.
        grids : mapping of str to array_like, optional
            Grids of plain arrays, by column.
        weights : array_like of shape (n,) or (n, T), or str, optional
            Of the observations: one with weight 2 has half the variance. Of binomial responses numbers of trials. A
            name is that of a column of `data`.
        offset : array_like of shape (n,) or (n, T), or str, optional
            What is added to the linear predictor, such as the logarithm of an exposure. An expression of columns, such
            as ``"0.5 * last(X) + 0.5 * mean(X)"``, belongs to the model: predictions have it too. In a private fit all
            do, and an offset is a column with bounds or an expression of such columns.
        response : DataFrame of three columns, optional
            The response as a long table: row (its label in `data`), point t, value.
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
        beside = {"weights": weights, "offset": offset, "groups": groups}
        self._train(data, y, grids, by=by, long=response, **beside)
        return self

    def predict(
        self,
        data: Any,
        *,
        t: ArrayLike | None = None,
        type: str = "response",
        offset: ArrayLike | str | None = None,
        grids: Mapping[str, ArrayLike] | None = None,
    ) -> Any:
        """Predict mean curves of new rows.

        Parameters
        ----------
        data : DataFrame or mapping
            As in :meth:`fit`, without the response.
        t : array_like of shape (T',), optional
            Where to predict, within the domain of the response; default its grid. Anywhere with `t_period`.
        type : {"response", "link", "terms"}
            The mean, the linear predictor, or what each term adds to that.
        offset : array_like of shape (n,) or (n, T'), or str, optional
            What is added to the linear predictor; default what belongs to the model, or else nothing.
        grids : mapping of str to array_like, optional
            Grids of plain arrays; default those of the training curves.

        Returns
        -------
        FDataGrid, DataFrame or ndarray of shape (n, T')
            The kind that the response was, a data frame with the labels of the rows of `data`; with ``type="terms"``
            a dict of them by the names of the terms.

        Raises
        ------
        InputError
            As :meth:`fit`; or points outside the domain.
        """
        one_of(type, "type", ("response", "link", "terms"))
        fitted = self._asked()
        records, points = fitted.records(data, grids), fitted.response.points(t)
        family, shown = fitted.family, fitted.response.kind(points, records)
        if type != "terms":
            eta = fitted.predictor(records, data, offset, points)
            return shown(family.mean(eta) if type == "response" else eta)
        form = fitted.fit.form
        parts = form.contributions(form.features(records, points), fitted.fit.coefficients, points)
        if fitted.persons is not None:
            parts += fitted.persons.contributions(records, points)
        size = np.zeros((records.n, points.size))
        return {name: shown(part + size) for name, part in zip(self.term_names_, parts, strict=True)}

    def predict_se(
        self,
        data: Any,
        *,
        t: ArrayLike | None = None,
        kind: str | None = None,
        type: str = "response",
        offset: ArrayLike | str | None = None,
        grids: Mapping[str, ArrayLike] | None = None,
    ) -> Any:
        """Pointwise standard errors of the predicted mean curves, or of the linear predictor.

        Parameters
        ----------
        data, t, type, offset, grids
            As in :meth:`predict`. Of means they are those of the linear predictor times its slope (the delta method).
        kind : {"curve", "cluster", "iid", "unconditional"}, optional
            What is assumed of the errors: any dependence within a curve, or within a group of curves, or independence;
            as in :meth:`vcov`. Default: `se` of the constructor, or ``"cluster"`` if the fit had groups.

        Returns
        -------
        FDataGrid, DataFrame or ndarray of shape (n, T')

        Warns
        -----
        CompletedCurvesWarning
            With ``missing="pace"`` where they take completed curves as known: of families other than the Gaussian, of
            generalised least squares, on eigenfunctions. Else a jackknife counts that components were estimated.
        """
        one_of(type, "type", ("response", "link"))
        fitted = self._asked()
        records, points = fitted.records(data, grids), fitted.response.points(t)
        shown = fitted.response.kind(points, records)
        se = fitted.standard_errors(records, data, grids, kind, points)
        if type == "response":
            se = se * fitted.family.mean_slope(fitted.predictor(records, data, offset, points))
        return shown(se)

    def predict_interval(
        self,
        data: Any,
        level: float = 0.95,
        *,
        t: ArrayLike | None = None,
        offset: ArrayLike | str | None = None,
        grids: Any = None,
        simultaneous: bool = False,
    ) -> tuple[Any, Any]:
        """Prediction intervals of new response curves: lower and upper ends.

        Parameters
        ----------
        data, t, offset, grids
            As in :meth:`predict`.
        level : float
            Nominal coverage at each point, in (0, 1). The variance about the mean is that of ``variance``, of counts
            and positive numbers that of the family; binomial responses have no intervals.
        simultaneous : bool
            `level` holds for a whole curve at the grid points of the fit at once. Default: point by point. In an
            ordinary fit the band comes from the largest residual of each curve in the fit without it (conformal
            prediction). With groups it is the fit without the person, and persons count alike. It takes level / (1 -
            level) curves or persons. In a private fit it comes from the released distribution of its errors.

        Returns
        -------
        lower, upper : FDataGrid, DataFrame or ndarray of shape (n, T')

        Raises
        ------
        InputError
            As :meth:`predict`. Binomial responses, or `simultaneous` of a family other than the Gaussian.
        """
        fraction(level, "level")
        flag(simultaneous, "simultaneous")
        fitted = self._asked()
        if simultaneous:
            fitted.settings.refuse_other_families("predict_interval(simultaneous=True)")
        records, points = fitted.records(data, grids), fitted.response.points(t)
        shown = fitted.response.kind(points, records)
        mean = fitted.predictor(records, data, offset, points)
        se = fitted.errors.of_mean(records, None, points)
        if fitted.family.name != "gaussian":
            lower, upper = fitted.family.interval(mean, se, fitted.fit.sigma2, level)
            return shown(lower), shown(upper)
        half = fitted.errors.half_width(records, points, se, level, simultaneous=simultaneous)
        return shown(mean - half), shown(mean + half)

    def local_blups(self, data: Any, *, grids: Mapping[str, ArrayLike] | None = None) -> LocalBlups:
        """Curves of persons, for who holds their rows: a private mixed model combined with rows that are handed in.

        Nothing of it is released: it is as private as these rows, and cannot be saved.

        Parameters
        ----------
        data : DataFrame or mapping
            Rows with the response, the covariates and the column of the persons.
        grids : mapping of str to array_like, optional
            As in :meth:`predict`.

        Returns
        -------
        LocalBlups
            Deviations of persons from the population's curves, with standard errors given the released covariances.

        Raises
        ------
        InputError
            A model that is no private fit with ``re(id, covariance="free")``, or columns that are not there.
        """
        from fdadp.regression.fitted.released_person_covariances import local_blups

        fitted = self._asked()
        persons = None if fitted.released is None else fitted.released.persons
        if persons is None:
            raise InputError("local_blups needs a private fit with re(id, covariance='free'), got another model")
        return local_blups(fitted, persons, data, grids)

    def score(self, data: Any, y: Any = None, sample_weight: None = None) -> float:
        """Share of the variance of the response (about its mean curve, integrated over t) that is explained.

        Where responses have gaps, of what was observed. Of other families than the Gaussian, and of responses at points
        of their own: of the deviance about one mean.
        """
        fitted = self._asked()
        score_is_not_private(self)
        return explained_share(fitted, data, y)
