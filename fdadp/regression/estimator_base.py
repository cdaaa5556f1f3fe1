"""The base of regressions of curves and of numbers on many terms: fits, and methods of a fitted model."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from fdadp._common.argument_checks import flag, whole
from fdadp._common.dask_tasks import is_dask
from fdadp._common.estimators import Estimator, ShownByTable, check_is_fitted
from fdadp._common.loaded_later import pd
from fdadp._common.typing import ArrayLike
from fdadp.errors import InputError
from fdadp.privacy._unaccounted_fits import Kin
from fdadp.regression.fitted import tests_and_bands
from fdadp.regression.fitted.coefficient_functions import effect_of, effect_rows
from fdadp.regression.fitted.fitted_model import Fitted, residuals_of
from fdadp.regression.fitted.tests_and_bands import compared
from fdadp.regression.model_settings import ModelSettings
from fdadp.solve.form.response_families import Family
from fdadp.terms.spec import TermSpec

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fdadp.functional.tables.printed_tables import PrintedSummary
    from fdadp.privacy import Privacy
    from fdadp.privacy.account.ledger import Ledger
    from fdadp.privacy.noise.sources import Noise
    from fdadp.private.plan.budget_plan import Plan
    from fdadp.regression.fitted.person_curves import PersonCurves
    from fdadp.regression.fitted.released_person_covariances import ReleasedPersons
    from fdadp.regression.fitted.tests_and_bands import Bootstrap
    from fdadp.regression.reading.table_columns import Grids

Model = TypeVar("Model", bound="TermModel")


class TermModel(ShownByTable, Kin, Estimator):
    """Base of :class:`fdadp.FunctionalRegression` and :class:`fdadp.ScalarRegression`.

    An estimator stores its settings. A fit makes one value, `fitted_`, and all methods read it.

    Attributes
    ----------
    fitted_ : Fitted
        The fitted model.
    ledger_ : Ledger or None
        Releases and their assumptions. None without privacy.
    plan_ : Plan or None
        Budget shares of a private fit.
    privacy_ : Privacy or None
        Guarantee of the fit. Later changes of `privacy` do not alter it.
    notes_ : tuple of str
        Comments of a private fit on its bounds, on n and on the variance that it explains.
    importances_ : dict of str to float, or None
        Share of the explained variance that each term of a private fit has by itself, from released values.
    joined_ : str or None
        Number of rows that were joined, and the key. None if rows belong together by position.
    persons_ : PersonCurves, ReleasedPersons or None
        Curves of persons, covariances of both levels and intraclass correlations, of ``re(id, covariance="free")``. In
        a private fit no curves of persons: :mod:`fdadp.regression.fitted.released_person_covariances`.
    """

    formula: str | Sequence[TermSpec]
    family: str | Family
    privacy: Privacy | None
    k: str = "auto"
    """Default sizes of terms: ours, or refund's for comparisons."""

    fitted_: Fitted
    ledger_: Ledger | None = None
    plan_: Plan | None = None
    privacy_: Privacy | None = None
    notes_: tuple[str, ...] = ()
    importances_: Mapping[str, float] | None = None
    joined_: str | None = None
    persons_: PersonCurves | ReleasedPersons | None = None

    _fitted: ClassVar[str] = "fitted_"
    _of_curves: ClassVar[bool]
    _default_response: ClassVar[str]
    _n_unpenalized: int | None = None
    """Dimension of the unpenalised space in REML, to repeat programs that count otherwise."""
    _noise: Noise | None = None
    """Source of the noise of private fits, for audits."""
    _published: tuple[str, ...] = ()
    """Attributes that the last fit made."""

    # --- fits ---

    def _train(self, data: Any, y: Any, grids: Grids | None, *, long: Any = None, **beside: Any) -> None:
        """Fit to a table: privately, in partitions of Dask, or to rows in memory."""
        from fdadp.regression.fit_in_memory import fit_whole

        settings = ModelSettings.of(self)
        settings.check_groups(beside["groups"], "fit(data, groups=...)")
        by = beside.pop("by")
        if self.privacy is not None:
            from fdadp.regression.private.fit import PrivateSettings, fit_private, say_of_public_inputs

            groups = beside.pop("groups")
            only = {} if long is None else {"response": long}
            private = PrivateSettings.of(self)
            self._keep(fit_private(self, private, data, y, grids, groups, by=by, noise=self._noise, **beside, **only))
            say_of_public_inputs(self._warned())
        elif _in_partitions(data, {"y": y, "response": long}):
            self.fit_chunks(data, grids=grids, **beside)
        else:
            from fdadp.regression.location_and_scale import fit_location_and_scale

            fit = fit_location_and_scale if settings.models_variance else fit_whole
            self._keep(fit(settings, data, y, grids, by=by, long=long, **beside))

    def fit_chunks(
        self: Model,
        chunks: Sequence[Any] | Callable[[], Iterable[Any]],
        *,
        grids: Mapping[str, ArrayLike] | None = None,
        weights: str | None = None,
        offset: str | None = None,
        groups: str | None = None,
    ) -> Model:
        """Fit the model from chunks that need not fit into memory together. The result is that of :meth:`fit`.

        Parameters
        ----------
        chunks : sequence of tables, function returning an iterator over tables, or one table of dask's
            Each is a table as :meth:`fit` takes it, with the response among its columns. The first chunk is read by
            itself. Then all chunks are read four times: for ranges and levels, for errors along curves, for sums and
            for residuals. Responses with gaps take one pass more, and other families one for each step. Columns of
            numbers stay in memory, and so do residuals of few rows.
            A table in Dask's partitions, or a sequence of ``dask.delayed`` tables, is read where Dask's active
            scheduler computes it (docs/cluster.md). Sums and columns of numbers come back, never curves.
            In a private fit only the kernel reads chunks
            (:class:`fdadp.regression.private.chunked_tables.DeclaredTable`). It reads them once if they take at most
            256 MiB, else once for every release. For the same noise the result is that of :meth:`fit`, bit for bit,
            whatever the chunks. Predictions are then arrays.
        grids : mapping of str to array_like, optional
            Grids of plain arrays, by column; of a private fit those of all columns of curves.
        weights, offset, groups : str, optional
            Columns of the chunks. Weights and offset are numbers, or curves on the grid of the response; groups are
            the person of each row. Rows of a person may be in several chunks.

        Returns
        -------
        self
            Without `fitted_values_` and `residuals_`.

        Raises
        ------
        InputError
            As :meth:`fit`; chunks that differ in the kinds or grids of their columns, or from one pass to the next;
            `missing` other than ``"raise"``, ``"linear"`` and ``"smooth"``, which need a row alone; `errors` other than
            ``"iid"``; responses at points of each row's own.
        PrivacyError
            Of a private fit: as :meth:`fit`; also a source that fails while it is read: the budget is then spent.
        """
        columns = {"weights": weights, "offset": offset, "groups": groups}
        if self.privacy is not None:
            from fdadp.regression.private.fit import PrivateSettings, fit_private_chunks, say_of_public_inputs

            private = PrivateSettings.of(self)
            self._keep(fit_private_chunks(self, private, chunks, grids, columns, self._noise))
            say_of_public_inputs(self._warned())
        else:
            from fdadp.regression.fit_in_chunks import fit_chunks

            self._keep(fit_chunks(ModelSettings.of(self), chunks, grids, columns))
        return self

    def _warned(self) -> tuple[str, ...]:
        released = self.fitted_.released
        return () if released is None else released.warned

    def _keep(self, fitted: Fitted) -> None:
        """Publish a fitted model as attributes, in place of an earlier one."""
        fit, released, response = fitted.fit, fitted.released, fitted.response
        found: dict[str, Any] = {
            "fitted_": fitted,
            "response_name_": response.name,
            "term_names_": fitted.names if fitted.persons is None else (*fitted.names, *fitted.persons.names),
            "persons_": fitted.levels,
            "edf_": fit.edf_total,
            "criterion_": fit.criterion,
            "sigma2_": fit.sigma2,
            "scale_": fit.scale,
            "deviance_": fit.rss,
            "null_deviance_": fitted.null_deviance,
            "loglik_": fitted.errors.loglik,
            "joined_": fitted.joined,
        }
        found["smoothing_parameters_"], found["smoothing_names_"] = fitted.smoothing
        if (rows := fitted.rows) is not None:
            (found["residuals_"],) = rows.shown(rows.residuals)
        if released is not None:
            own = ("ledger", "plan", "privacy", "notes", "importances")
            found |= {f"{name}_": getattr(released, name) for name in own}
        if response.curves is not None:
            found |= {"t_": response.curves.grid, "observed_at_": response.observed_at, "eigenbasis_": fitted.basis}
        for name in self._published:
            delattr(self, name)
        for name, value in found.items():
            setattr(self, name, value)
        self._published = tuple(found)

    def _asked(self) -> Fitted:
        """The fitted model; raises NotFittedError before the fit."""
        check_is_fitted(self, "fitted_")
        return self.fitted_

    def plan(
        self,
        grids: Mapping[str, ArrayLike | int] | None = None,
        *,
        groups: str | bool | None = None,
        offset: str | None = None,
        n: float | None = None,
    ) -> Plan:
        """Plan a private fit from public values alone: releases with their shares, features and rounds.

        Nothing is read and nothing spent. ``print`` shows the plan. :func:`fdadp.plan` forecasts the accuracy.

        Parameters
        ----------
        grids : mapping of str to (array_like or int)
            Points of all columns of curves, or their number.
        groups : str or True, optional
            That rows belong to persons, as ``Privacy(unit="person")`` requires.
        offset : str, optional
            As of :meth:`fit`.
        n : float, optional
            Number of persons to plan for, where ``privacy`` does not declare one.

        Raises
        ------
        PrivacyError, InputError
            As :meth:`fit` would before it reads the data.
        """
        from fdadp.regression.private.fit import PrivateSettings, plan_private

        return plan_private(PrivateSettings.of(self), grids, groups, offset, n)

    # --- coefficients ---

    def coef(
        self,
        name: str,
        se: bool = False,
        level: float | None = None,
        *,
        t: ArrayLike | None = None,
        at: Mapping[str, ArrayLike] | None = None,
        kind: str | None = None,
        with_mean: bool = False,
        **points: ArrayLike,
    ) -> pd.DataFrame:
        """Coefficient function of a term on a grid: ``β(s, t)`` of ``ff(X)``, ``f(age, t)`` of ``s(age)``.

        Parameters
        ----------
        name : str
            Of the term, one of ``term_names_``; ``"s(t)"`` is the mean curve, centred, ``"(Intercept)"`` its mean.
        se : bool
            Also standard errors, and pointwise intervals. Those of a private fit do not hold where curves vary along
            few shapes, the less the more people there are (.33 of a 95 % band at n = 10,000, docs/limits.md).
        level : float, optional
            Level of these intervals, in (0, 1); default 0.95. If given, `se` is True.
        t, **points : array_like, optional
            Points of the axes, such as ``coef("ff(X)", s=[0, 0.5], t=[0.2])``: ``s`` of a curve's domain, ``x`` of its
            values, a column's name for its numbers or levels. Default: even points over what was seen, and all levels.
        at : mapping, optional
            The same by name, for columns whose names are those of other arguments.
        kind : str, optional
            Assumption about the errors, as in :meth:`predict_se`.
        with_mean : bool
            Of terms that are centred (the mean curve, ``s(age)``): standard errors of their sum with the mean of all
            other terms, as refund's ``coef`` gives them.

        Returns
        -------
        DataFrame
            A row for each point of the product of the axes: its coordinates, ``value``, and where wanted ``se``,
            ``lower`` and ``upper``. ``value`` is missing where the model has no coefficient (beyond ``limits``).
            ``frame.pivot(index="s", columns="t", values="value")`` is a surface as a table.

        Raises
        ------
        InputError
            No such term, axis or level, or points outside a curve's domain.

        Examples
        --------
        >>> from fdadp import FunctionalRegression, load_canadian_weather, terms
        >>> weather = load_canadian_weather()
        >>> model = FunctionalRegression([terms.ff("X")]).fit({"X": weather.X, "Y": weather.Y})
        >>> model.coef("ff(X)", se=True, s=[0.25, 0.5], t=[0.5]).columns.tolist()
        ['s', 't', 'value', 'se', 'lower', 'upper']
        """
        fitted = self._asked()
        wanted = {"t": t, **(at or {}), **points}
        covariance = fitted.errors.covariance(kind) if flag(se, "se") or level is not None else None
        level = 0.95 if level is None else level
        if fitted.persons is not None and name in fitted.persons.names:
            few = covariance is not None and fitted.errors.kind_of(kind) != "iid"
            return fitted.persons.effect(name, fitted.fit.form, wanted, covariance, level, few=few).to_frame()
        rows, degrees = effect_rows(fitted.fit.form, name, wanted), fitted.errors.student(kind, name)
        return effect_of(fitted.fit, rows, covariance, level, with_mean=with_mean, degrees=degrees).to_frame()

    @property
    def coefficients_(self) -> pd.Series[float]:
        """All coefficients, numbered within each term, in coordinates where penalties are diagonal; of :meth:`vcov`."""
        fit = self._asked().fit
        return pd.Series(fit.coefficients, index=tests_and_bands.coefficient_names(fit))

    @property
    def fitted_values_(self) -> Any:
        """Means of the training rows, as the response came.

        Those of whole curves are computed whenever they are asked for, from the covariates that were given: who changes
        these in place changes them. A model from a file has none, nor one that was fitted from chunks.
        """
        rows = self._asked().rows
        if rows is None:
            raise AttributeError("a model without training rows has no fitted_values_")
        return rows.shown(rows.means)[0]

    @property
    def term_edf_(self) -> dict[str, float]:
        """Effective degrees of freedom of each term, by its name."""
        return self._asked().edf

    @property
    def r2_(self) -> float:
        """Adjusted R²: one minus the ratio of the residual variance to that about one mean, mgcv's ``r.sq``.

        NaN where it is not defined: responses are all equal, no degrees of freedom are left, or a family other than the
        Gaussian was fitted from chunks.
        """
        return self._asked().r2

    @property
    def explained_deviance_(self) -> float:
        """Share of the deviance about one mean that is explained; of gaussian responses of the sum of squares."""
        return self._asked().explained_deviance

    def vcov(self, kind: str | None = None) -> pd.DataFrame:
        """Covariance of all coefficients.

        Parameters
        ----------
        kind : {"curve", "cluster", "iid", "unconditional"}, optional
            Assumption about the errors. "curve" allows any dependence within a curve. "cluster" allows it within a
            group of curves (``fit(data, groups=)``). "iid" takes errors as independent and smoothing parameters as
            known, as refund does. "unconditional" adds the uncertainty of smoothing parameters, as mgcv's
            ``unconditional=TRUE``; it needs an ordinary fit by REML. Default: ``se``. The first two kinds always
            include the uncertainty of smoothing parameters.

        Returns
        -------
        DataFrame of shape (p, p)
            Rows and columns are numbered within each term; coefficients are in coordinates where penalties are
            diagonal.

        Raises
        ------
        InputError
            An unknown kind, or one that this model has not: without groups, or with smoothing parameters that REML did
            not choose.

        References
        ----------
        Wood, Pya & Säfken (2016), doi:10.1080/01621459.2016.1180986, section 4, on the last kind.
        """
        return tests_and_bands.named_covariance(self._asked().errors, kind)

    @property
    def aic_(self) -> float:
        """``-2 loglik + 2 edf``, one more for a scale that is estimated: mgcv's ``AIC``.

        If REML chose the smoothing parameters, degrees of freedom include their uncertainty: ``tr(Vc G)/σ²``, at most
        ``tr(2F - FF)``, with F = A⁻¹G (Wood, Pya & Säfken 2016, doi:10.1080/01621459.2016.1180986). Parameters of
        families that REML chose, such as θ or cut points, add 1 each, and Vc knows that they were chosen. Of the gamma
        family mgcv estimates another scale, and its AIC differs by up to .4.

        Do not choose models of curves by AIC. It counts points of a curve as independent observations, and so prefers
        a covariate without effect in most samples. Use :meth:`compare`, or :meth:`anova`.
        """
        return tests_and_bands.aic(self._asked().errors)

    @property
    def loo_(self) -> float:
        """Mean over curves of the integrated squared error without the curve, at the smoothing parameters of the fit.

        If the response is a number it is the mean squared error. With groups whole persons are left out. By
        `person_rows` a person counts once, or as often as it has rows. It needs the Gaussian family and rows in memory.
        """
        return tests_and_bands.error_left_out(self._asked().errors)[0]

    @property
    def loo_se_(self) -> float:
        """Standard error of :attr:`loo_`, over curves or persons."""
        return tests_and_bands.error_left_out(self._asked().errors)[1]

    def compare(self, other: Any) -> pd.DataFrame:
        """Compare the predictions of two models by their errors of curves, or persons, left out, in pairs.

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
        compared by curves held out (:func:`fdadp.functional.probability_scores.compare_over_splits`).
        """
        own = self._asked()
        if not isinstance(other, type(self)):
            raise InputError(f"other must be a {type(self).__name__}, got {type(other).__name__}")
        return compared(own.errors, other._asked().errors)

    def test_terms(self, kind: str | None = None, *, draws: int = 199) -> pd.DataFrame:
        """Test for each term that its values at the training rows are all 0.

        Parameters
        ----------
        kind : {"curve", "cluster", "iid", "unconditional"}, optional
            As in :meth:`vcov`.
        draws : int
            Simulated samples, at most, of tests that curves of persons or sites with ``covariance="free"`` are 0; 0:
            without these tests, which fit each sample twice.

        Returns
        -------
        DataFrame
            A row for each term but the constant: ``edf``, ``statistic`` (Wald's, on ``df`` directions), ``df`` and
            ``p``. By curves or clusters directions are the smoothest ones, without what smoothing takes away
            (:func:`fdadp.solve.errors.term_tests.wald_by_clusters`); else those in which the term varies most. Of
            ``re(g)`` the test is that its variance is 0: on numbers the exact score test, NaN where
            ``person_rows="mean"`` weighs rows of large groups less; on curves one by flipped
            signs of curves, or of groups of them (:mod:`fdadp.solve.errors.term_tests`), except where `kind` asks
            for refund's; with ``covariance="free"`` the restricted likelihood ratio by its law in samples simulated
            without the curves, seeded: all of a person in the row of ``re(id)``, slopes and sites in rows of their own.
            ``draws`` are those samples, and ``p_error`` is the error of p that comes of their number.

        References
        ----------
        Wood (2013), doi:10.1093/biomet/ass048; Hotelling (1931), doi:10.1214/aoms/1177732979, by clusters.
        """
        return tests_and_bands.terms_tested(self._asked().errors, kind, draws=draws)

    def anova(self, other: Any, kind: str | None = None) -> pd.DataFrame:
        """Compare with a model nested in this one, or of which this one is a part.

        It is a Wald test in the larger model, with the covariance of `kind`. The hypothesis is that all terms are 0
        which the smaller model lacks. The law of a likelihood ratio is unknown where errors depend along a curve.

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
        if not isinstance(other, TermModel):
            raise InputError(f"other must be a model of many terms, got {type(other).__name__}")
        return tests_and_bands.nested_models(self._asked(), other._asked(), kind)

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

        Raises
        ------
        InputError
            As :meth:`coef`; `simultaneous` of curves of persons.
        """
        wanted = {"t": t, **(at or {}), **points}
        persons = self._asked().persons
        if persons is not None and name in persons.names:
            if simultaneous:
                raise InputError(
                    f"simultaneous must be False for {name}, whose bands hold a person's curve at each point"
                )
            return self.coef(name, level=level, t=t, at={**(at or {}), **points}, kind=kind)
        return tests_and_bands.band(self._asked().errors, name, wanted, level, kind, seed, simultaneous=simultaneous)

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
            With :meth:`~fdadp.regression.fitted.tests_and_bands.Bootstrap.coef` for percentile and normal intervals.

        Raises
        ------
        InputError
            Of loaded models and those fitted to chunks, which keep no rows.

        References
        ----------
        Efron & Tibshirani (1993), An Introduction to the Bootstrap, doi:10.1201/9780429246593.
        """
        return tests_and_bands.bootstrapped(self._asked().errors, n_samples, groups, seed)

    # --- diagnostics ---

    def residuals(self, type: str = "deviance") -> Any:
        """Residuals of the training rows, in the form of ``fitted_values_``.

        Parameters
        ----------
        type : {"deviance", "pearson", "response"}
            Signed square roots of what each observation adds to the deviance; differences from the mean over their
            standard deviation but for the scale; or the differences themselves, which are ``residuals_``. Of gaussian
            responses without weights all are the same.

        Raises
        ------
        InputError
            Another type, or a model that was loaded from a file, which holds no training rows.
        """
        return residuals_of(self._asked(), type)

    def check(
        self,
        data: Any,
        y: Any = None,
        *,
        grids: Mapping[str, ArrayLike] | None = None,
        weights: ArrayLike | str | None = None,
        offset: ArrayLike | str | None = None,
        response: pd.DataFrame | None = None,
        n_draws: int = 400,
        random_state: int = 0,
    ) -> pd.DataFrame:
        """Check whether the bases of the terms are large enough, as mgcv's ``k.check``, by records and along t.

        Parameters
        ----------
        data, y, grids, weights, offset, response
            The training rows, as :meth:`fit` takes them. If there are more than 2,000, so many are drawn at random.
        n_draws : int
            Random arrangements of the records that the real one is compared with.
        random_state : int
            Their seed.

        Returns
        -------
        DataFrame
            A row for each term that is not a number. ``k`` is the largest possible number of degrees of freedom, and
            ``edf`` the effective one. ``k_index`` is half the mean squared difference between deviance residuals of
            neighbours in the covariates, over their variance. Below 1, with a small ``p_value``, the residuals still
            depend on the covariates. The p-value is the share of random arrangements with a smaller index.
            ``p_value_t``, for curves, tests for structure along t in splines of twice the size. Random signs apply to
            whole residual curves, so errors may depend along the curve. Rows of one person count as independent.

        References
        ----------
        mgcv's ``k.check``; Wood (2017), Generalized Additive Models, section 5.9, doi:10.1201/9781315370279.
        """
        from fdadp.regression.fitted.summary_tables import check_model

        fitted = self._asked()
        whole(n_draws, "n_draws")
        return check_model(fitted, (data, y, grids, weights, offset, response), n_draws, random_state)

    def concurvity(self, pairwise: bool = False) -> pd.DataFrame:
        """Measure how well each term can be written by the others: the collinearity of smooth terms.

        Parameters
        ----------
        pairwise : bool
            By each other term, not by all of them together.

        Returns
        -------
        DataFrame
            A row for each term (all coefficients that are numbers without a penalty are one), three measures between
            0, nothing in common, and 1, not identified: ``worst`` of all functions in the span of its basis;
            ``observed``, of the estimated one; ``estimate``, of its basis functions on average.

        References
        ----------
        mgcv's ``concurvity``.
        """
        from fdadp.regression.fitted.summary_tables import concurvity_table

        return concurvity_table(self._asked().fit, flag(pairwise, "pairwise"))

    # --- tables and pictures ---

    def summary(self) -> PrintedSummary:
        """Tables of the fit, as text (``print``) and HTML (in a notebook).

        Notes below the tables say how many functions along t terms have. With 30 to 299 curves, Gaussian responses on a
        grid and ``errors="iid"`` they say, too, where errors depend along t, so that ``errors="curve"`` helps: there
        Box's effective number of points, tr(K)² / tr(K²) of the covariance K of the residuals, is below a third of the
        points. Levels of ``re(g)`` are then shrunk too little, and the notes say so.
        """
        from fdadp.regression.fitted.summary_tables import summarise

        return summarise(self._asked())

    def plot(self, name: str | None = None, **kwargs: Any) -> Figure:
        """Picture of every term, or of one: curves with bands, surfaces, levels; see :func:`fdadp.plot.terms`."""
        from fdadp.plot import terms

        self._asked()
        return terms(self, name, **kwargs)

    def plot_residuals(self, **kwargs: Any) -> Figure:
        """Pictures of the residuals, see :func:`fdadp.plot.residuals`."""
        from fdadp.plot import residuals

        self._asked()
        return residuals(self, **kwargs)

    # --- synthetic cohorts and files ---

    def sample(self, n: int, random_state: int | None = None) -> pd.DataFrame:
        """Draw a synthetic cohort from a private fit, at no further cost of privacy.

        Parameters
        ----------
        n : int
            Number of rows.
        random_state : int, optional
            Seed of the draws. It does not affect the noise of the fit, which was drawn before.

        Returns
        -------
        DataFrame of n rows
            Columns of the model and the response; curves as FDataGrid. ``attrs["synthetic"]`` says where it is from.

        Raises
        ------
        InputError
            A fit without privacy, whose draws might disclose its rows. Or a column that only an offset or an expression
            reads, so that nothing about it was released.

        Notes
        -----
        Columns are drawn independently of each other, and curves have the shapes of the public prior. A private fit
        releases nothing about shapes or about dependence between covariates (:mod:`fdadp.private.model_from_releases`).
        The same model fitted to a large cohort returns this fit. Its standard errors are wrong, since they ignore the
        noise and the number of persons of this fit. Take standard errors from this fit.
        """
        from fdadp.regression.private.fit import synthetic_cohort

        return synthetic_cohort(self._asked(), n, random_state)

    def save(self, path: str | os.PathLike[str], *, people: bool = True) -> Path:
        """Write the fitted model to a pickle-free file; return its path.

        :mod:`fdadp.regression.fitted.model_files` documents the content. Training rows are not stored, so a loaded
        model has no ``fitted_values_`` and ``residuals_``.

        Parameters
        ----------
        path : str or path
        people : bool
            Whether the file holds the curves of persons of ``re(id, covariance="free")``. Without them predictions are
            those of new persons.

        Raises
        ------
        InputError
            Settings that no file can hold, such as a function as ``limits``.
        """
        from fdadp.regression.fitted.model_files import save

        return save(self._asked(), self, path, people=flag(people, "people"))

    @classmethod
    def load(cls: type[Model], path: str | os.PathLike[str]) -> Model:
        """Read a model that :meth:`save` wrote; modules of terms of your own must be imported before.

        Raises
        ------
        FileFormatError
            Not such a file, or one of another class or version.
        """
        from fdadp.regression.fitted.model_files import load

        model, fitted = load(path, cls)
        model._keep(fitted)
        own: Model = model
        return own


def _in_partitions(data: Any, not_columns: Mapping[str, Any]) -> bool:
    """Whether a table is in Dask's partitions.

    Raises
    ------
    InputError
        Something beside such a table that must be one of its columns.
    """
    held = [data, *(data.values() if isinstance(data, Mapping) else ())]
    if not any(hasattr(own, "__dask_graph__") and is_dask(own) for own in held):
        return False
    odd = next((name for name, value in not_columns.items() if value is not None), None)
    if odd is not None:
        raise InputError(f"{odd} must be None where data are Dask's: the response is one of their columns")
    return True
