"""A fitted model of many terms: the one value that ordinary, chunked and private fits return and files hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp._common.argument_checks import one_of
from fdadp._common.calling_language import warn
from fdadp._common.loaded_later import pd
from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import CompletedCurvesWarning, InputError
from fdadp.functional.metrics import functional_r2
from fdadp.functional.quadrature import quadrature_weights
from fdadp.functional.tables.curve_sample import Curves, as_grid
from fdadp.regression.fitted.coefficient_errors import CoefficientErrors, near_the_mean
from fdadp.regression.fitted.person_curves import PersonCurves
from fdadp.regression.fitted.variance_model import VarianceModel
from fdadp.regression.model_settings import ModelSettings
from fdadp.regression.reading.missing_entries import CompletedAgain
from fdadp.regression.reading.table_columns import Covariates, Grids, check_grids, columns_of, grids_of, read_response
from fdadp.regression.reading.training_rows import TrainingSpec, along, beside, numbers_of_classes
from fdadp.responses import PointwiseResponse
from fdadp.solve.fit.additive_fit import AdditiveFit
from fdadp.solve.fit.observations import Observations
from fdadp.solve.form.ordered_categories import one_constant
from fdadp.solve.form.response_families import Family
from fdadp.terms.on_response_functions import OnFunctions, by_function
from fdadp.terms.records import Records

if TYPE_CHECKING:
    from fdadp.functional.fpca import Eigenbasis
    from fdadp.functional.tables.curve_inputs import Labels
    from fdadp.privacy import Privacy
    from fdadp.privacy.account.ledger import Ledger
    from fdadp.private.plan.budget_plan import Plan
    from fdadp.private.public.column_ranges import Column
    from fdadp.private.public.gaussian_process_prior import CurvePrior
    from fdadp.regression.fitted.released_person_covariances import ReleasedPersons
    from fdadp.regression.private.columns_read_privately import PrivateColumns


@dataclass(frozen=True, kw_only=True)
class FittedResponse:
    """Name, grid and kind of the response. Predictions have the same kind.

    Attributes
    ----------
    name : str
    curves : Curves or None
        Grid and kind, without rows. None if the response is a number.
    classes : sequence or None
        The two classes of a binomial number, or ordered categories.
    observed_at : PointwiseResponse or None
        Records and points, if each record has points of its own.
    periodic : bool
        Whether t is a circle, so that there are means at all t.
    """

    name: str
    curves: Curves | None = None
    classes: Any = None
    observed_at: PointwiseResponse | None = None
    periodic: bool = False

    def points(self, t: ArrayLike | None) -> FloatArray:
        """Points of the response, within its domain, or anywhere on a circle; default its own grid.

        Raises
        ------
        InputError
            Dates, points that do not increase, or some outside the domain.
        """
        assert self.curves is not None
        own, unit = self.curves.grid, self.curves.unit
        if t is None:
            return own
        if np.asarray(t).dtype.kind in "mM":
            raise InputError(f"t must be numbers in the unit of the response, {unit or 'its grid'}, got dates")
        points = as_grid(np.atleast_1d(np.asarray(t)), np.size(t), "t")
        if not self.periodic and (points[0] < own[0] or points[-1] > own[-1]):
            raise InputError(f"t must lie within [{own[0]:g}, {own[-1]:g}], got [{points[0]:g}, {points[-1]:g}]")
        return points

    def kind(self, points: FloatArray, records: Records) -> Callable[[Any], Any]:
        """From values at points (n, T') to the kind of the response; from numbers (n,) to a series of labelled rows."""
        labels = records.index
        if self.curves is not None:
            return partial(self.curves.wrap, grid=points, index=labels)
        if labels is None or isinstance(labels, pd.RangeIndex):
            return np.asarray
        return partial(pd.Series, index=labels, name=self.name)


@dataclass(frozen=True, kw_only=True)
class TrainedRows:
    """Training rows after the fit.

    Attributes
    ----------
    residuals : ndarray of shape (n, T), (n,) or (N,)
        On the grid of the response, numbers, or at points of each record's own.
    known : ndarray of the same shape, or callable
        Means; or what computes them, where they would be as large as the curves again.
    weights : ndarray or None
        Weights of the observations, if the fit had any.
    curves : Curves or None
        Labels of the rows of responses on a grid.
    """

    residuals: FloatArray
    known: FloatArray | Callable[[], FloatArray]
    weights: FloatArray | None = None
    curves: Curves | None = None

    @property
    def means(self) -> FloatArray:
        """In the shape of the residuals."""
        return self.known() if callable(self.known) else self.known

    def shown(self, *values: FloatArray) -> tuple[Any, ...]:
        """Values of the shape of the means in the form in which the response came."""
        own = self.curves
        return values if own is None else tuple(own.wrap(one, own.grid, rows=own) for one in values)


@dataclass(frozen=True, kw_only=True)
class Released:
    """Releases of a private fit, and comments on them.

    Attributes
    ----------
    notes : tuple of str
        Comments on the bounds, on n and on the variance that is explained.
    warned : tuple of str
        Notes that are warnings.
    importances : mapping of str to float
        Share of the explained variance that each term has by itself.
    curve_prior : CurvePrior
        Prior of the shapes of curves, for synthetic cohorts.
    columns : tuple of Column
        Columns with released locations and scales.
    ledger : Ledger or None
        None only inside a file, which holds the ledger separately.
    privacy : Privacy or None
        Guarantee of the fit. None if the fit is not private.
    plan : Plan or None
        None if the model comes from a file.
    persons : ReleasedPersons or None
        Covariances of persons and rows, of ``re(id, covariance="free")``.
    """

    notes: tuple[str, ...]
    warned: tuple[str, ...]
    importances: Mapping[str, float]
    curve_prior: CurvePrior
    columns: tuple[Column, ...]
    ledger: Ledger | None = None
    privacy: Privacy | None = None
    plan: Plan | None = None
    persons: ReleasedPersons | None = None


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """A fitted model.

    Attributes
    ----------
    response : FittedResponse
    errors : CoefficientErrors
        The fit, its settings, and its standard errors.
    covariates : Covariates or PrivateColumns
        How new rows are read.
    null_deviance : float
        Deviance about one mean. NaN in private fits.
    offset : str or None
        A column, or an expression of columns, that the model adds to its predictions.
    grids : tuple of str
        Columns whose grids the user gave.
    joined : str or None
        Number of rows that were joined, and the key.
    shares : (float, float) or None
        Adjusted R² and explained share of the deviance, if the fit computed them.
    advice : tuple of str
        What else may estimate or predict better, by what the fit saw of errors and covariates.
    again : CompletedAgain or None
        Fits with sparse curves completed by components that were estimated without part of the curves.
    basis : Eigenbasis or None
        Eigenfunctions of the response, with ``response_basis="eigen"``.
    rows : TrainedRows or None
        None in private fits, and in fits from chunks and files.
    released : Released or None
        None without privacy.
    steps : ndarray of shape (2, K) or None
        Of Cox's regression: times of events, and the share of the cumulated hazard at each.
    variance : VarianceModel or None
        Of a number whose variance has terms.
    """

    response: FittedResponse
    errors: CoefficientErrors
    covariates: Covariates | PrivateColumns
    null_deviance: float
    offset: str | None = None
    grids: tuple[str, ...] = ()
    joined: str | None = None
    shares: tuple[float, float] | None = None
    advice: tuple[str, ...] = ()
    again: CompletedAgain | None = None
    basis: Eigenbasis | None = None
    rows: TrainedRows | None = None
    released: Released | None = None
    steps: FloatArray | None = None
    variance: VarianceModel | None = None

    @property
    def settings(self) -> ModelSettings:
        """Settings as they were at the fit."""
        return self.errors.settings

    @property
    def fit(self) -> AdditiveFit:
        """Coefficients, and the terms on their bases."""
        return self.errors.fit

    @property
    def family(self) -> Family:
        """Family of the responses."""
        return self.settings.family

    @property
    def private(self) -> bool:
        """Whether the coefficients come from noisy releases."""
        return self.released is not None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the terms."""
        return tuple(design.name for design in self.fit.form.designs)

    @property
    def persons(self) -> PersonCurves | None:
        """Curves of persons, where a term has ``covariance="free"``."""
        return self.errors.persons

    @property
    def levels(self) -> PersonCurves | ReleasedPersons | None:
        """Covariances of persons and of their rows, of such a term: with curves of persons, or as released."""
        return self.persons if self.released is None else self.released.persons

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that terms read."""
        own = columns_of(self.fit.form.designs)
        return own if self.persons is None else tuple(dict.fromkeys((*own, *self.persons.columns)))

    # --- figures of the fit ---

    @property
    def smoothing(self) -> tuple[FloatArray, tuple[str, ...]]:
        """Smoothing parameters and their names: shape (M,), or (K, M) on eigenfunctions."""
        fit = self.fit
        terms = [design for design in fit.form.designs if isinstance(design, OnFunctions)]
        if not terms:
            return fit.smoothing_parameters, fit.form.penalty_names
        return by_function(terms, fit.smoothing_parameters), tuple(n for d in terms for n in d.of.penalty_names)

    @property
    def edf(self) -> dict[str, float]:
        """Effective degrees of freedom of each term, by its name."""
        fit = self.fit
        places = zip(self.names, fit.form.slices, strict=True)
        return {name: float(fit.edf[place].sum()) for name, place in places}

    @property
    def r2(self) -> float:
        """Adjusted R²; NaN where it is not defined."""
        if self.shares is not None:
            return self.shares[0]
        fit = self.fit
        left, gaussian = fit.n_rows - fit.edf_total, self.family.name == "gaussian"
        if not gaussian or self.null_deviance <= 0 or left <= 0:
            return float("nan")
        return 1 - fit.rss / left / (self.null_deviance / (fit.n_rows - 1))

    @property
    def explained_deviance(self) -> float:
        """Share of the deviance about one mean that is explained."""
        if self.shares is not None:
            return self.shares[1]
        return 1 - self.fit.rss / self.null_deviance if self.null_deviance > 0 else float("nan")

    # --- new rows ---

    def records(self, data: Any, grids: Grids | None) -> Records:
        """Read new rows in the way of the training rows."""
        others = {name: grid for name, grid in grids_of(grids).items() if name not in self.grids}
        if others:
            check_grids(others, data, self.response.name)
        kept = () if self.offset is None else (self.offset,)
        return self.covariates.read(data, (*self.columns, *kept), grids)

    def predictor(self, records: Records, data: Any, offset: Any, t: FloatArray) -> FloatArray:
        """The linear predictor of new rows at points, shape (n, T'), by default with the model's own offset."""
        fit, persons = self.fit, self.persons
        eta = fit.form.predictor(records, fit.coefficients, t)
        if persons is not None:
            eta = eta + persons.curves(records, t)
        if "released" in self.errors.variances:
            eta = near_the_mean(self.errors, records, eta, t)
        if offset is None and self.offset is not None:
            return np.asarray(eta + along(records.columns[self.offset], t))
        if offset is None:
            return eta
        added = beside(offset, "offset", data, eta.shape)
        return eta if added is None else eta + added

    def standard_errors(
        self, records: Records, data: Any, grids: Grids | None, kind: str | None, t: FloatArray
    ) -> FloatArray:
        """Standard errors of the linear predictor, (n, T'), with the error of estimated components of sparse curves.

        Warns
        -----
        CompletedCurvesWarning
            If they treat completed curves as known.
        """
        se = self.errors.of_predictor(records, kind, t)
        sparse = [name for name, how in self.covariates.completion.how.items() if how == "pace"]
        if not sparse:
            return se
        if self.again is None:
            warn(
                f"standard errors take {', '.join(sparse)} as known, which missing='pace' completed: in simulations "
                "nominal 95 % held the mean given what was seen of a curve in 57 to 64 % "
                "(docs/decisions/0028-incomplete-covariates.md)",
                CompletedCurvesWarning,
            )
            return se
        assert isinstance(self.covariates, Covariates)
        loose = self.covariates.loose(data, columns_of(self.fit.form.designs), grids)
        return np.asarray(np.sqrt(se**2 + self.again.variance(loose, self.fit.form, t)))

    def deviance_explained(self, y: FloatArray, eta: FloatArray) -> float:
        """Share of the deviance about one mean, where responses were observed."""
        seen = ~np.isnan(y)
        family, y, name = self.family, y[seen], self.response.name
        family.check(y, name=name)
        family.check_mean(float(y.mean()), name)
        if (y == y[0]).all():
            raise InputError(f"{name} must have two different values or more for a score, got {y[0]:g} alone")
        about = family.half_deviance(y, np.full(y.size, one_constant(family, y, np.ones(y.size))))
        return 1 - float(family.half_deviance(y, eta[seen]).sum() / about.sum())


# Residuals of a model of many terms: deviance, Pearson and response residuals, and shares explained.


def residuals_of(fitted: Fitted, kind: str) -> Any:
    """Residuals of the training rows, in the form of the fitted values."""
    one_of(kind, "type", ("deviance", "pearson", "response"))
    rows, family = fitted.rows, fitted.family
    if rows is None:
        raise InputError("residuals must be those of a fit, got a model without training rows: a file holds none")
    means, left = rows.means, rows.residuals
    weights = None if rows.weights is None else rows.weights.reshape(means.shape)
    if kind == "deviance":
        left = family.deviance_residuals(means + left, means, weights)
    elif kind == "pearson":
        left = left / np.sqrt(family.variance(means)) * (1.0 if weights is None else np.sqrt(weights))
    return rows.shown(left)[0]


# Share of the variance of new responses that a model explains.


def explained_share(fitted: Fitted, data: Any, y: Any) -> float:
    """Share explained of new curves: a column of `data`, or `y`, in any form that `fit` takes."""
    name, shape = fitted.response.name, fitted.response
    assert shape.curves is not None
    data, y = aligned_rows(fitted.columns, name, data, y)
    held = data if y is None else {name: getattr(y, "array", y)}  # an FDataGrid in a Series
    observed = read_response(held, name)
    if isinstance(observed, Curves) and not observed.gridded:  # they came without points
        observed = replace(observed, grid=as_grid(shape.curves.grid, observed.grid.size, f"grid of {name}"))
    records, fit = fitted.records(data, None), fitted.fit
    if isinstance(observed, PointwiseResponse):
        shape.points(np.unique([observed.t.min(), observed.t.max()]))
        eta = Observations(records, observed.y, points=observed).predictor(fit.form, fit.coefficients)
        return fitted.deviance_explained(observed.y, eta)
    if not isinstance(observed, Curves):
        raise InputError(f"{name} must hold curves, got one entry a row")
    eta = fitted.predictor(records, data, None, shape.points(observed.grid))
    if fitted.family.name != "gaussian":
        return fitted.deviance_explained(observed.values, eta)
    if observed.grid.size > 1 and np.isfinite(observed.values).all():
        return functional_r2(observed.values, eta, t=observed.grid)
    return _of_observed(observed, eta)


def explained_share_of_numbers(fitted: Fitted, data: Any, y: Any) -> float:
    """Share explained of new numbers: a column of `data`, or `y`. Other families use the deviance."""
    name, classes = fitted.response.name, fitted.response.classes
    data, y = aligned_rows(columns_of(fitted.fit.form.designs), name, data, y)
    observed = read_response(data if y is None else {name: y}, name)
    if isinstance(observed, Curves | PointwiseResponse):
        raise InputError(f"{name} must hold one number a row, got curves")
    if observed.dtype.kind != "f":
        refuse_without_classes(fitted.family, "a score of labels")
        observed = numbers_of_classes(observed, as_classes(classes), fitted.family, name)
    records = fitted.records(data, None)
    return fitted.deviance_explained(observed, fitted.predictor(records, data, None, fitted.fit.form.t)[:, 0])


def as_classes(classes: Sequence[Any]) -> Labels:
    """Classes of responses, in their order."""
    return np.array(classes, dtype=None if isinstance(classes[0], int | str) else object)


def refuse_without_classes(family: Family, what: str) -> None:
    """Raise an error for families whose responses are no classes."""
    if family.first_class is None:
        raise InputError(f"{what} is there for family='binomial' and 'ordered', got {family.name!r}")


def _of_observed(observed: Curves, eta: FloatArray) -> float:
    """Share explained about the mean of the observed values at each point."""
    weights = quadrature_weights(observed.grid) if observed.grid.size > 1 else np.ones(1)
    seen = ~np.isnan(observed.values)
    values, counts = np.where(seen, observed.values, 0.0), seen.sum(axis=0)
    about = np.where(seen, values - values.sum(axis=0) / np.maximum(counts, 1), 0.0)
    left = np.where(seen, values - eta, 0.0)
    return 1 - float(((left**2) @ weights).sum() / ((about**2) @ weights).sum())


# Rows of a table for a fitted model, joined with the response beside it.


def aligned_rows(columns: Sequence[str], response: str, data: Any, y: Any) -> tuple[Any, Any]:
    """A table for a fitted model, and the response beside it or in it, with their rows joined."""
    found, _ = TrainingSpec(data, y, response, columns).joined(None)
    return found.data, found.y
