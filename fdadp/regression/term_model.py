"""What regressions of curves and of numbers on many terms share: terms, the fit, and what it says of its terms."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from fdadp._common.checks import flag, one_of
from fdadp._common.parameters import NestedParameters
from fdadp._common.typing import ArrayLike, FloatArray, IntArray
from fdadp.errors import CompletedCurvesWarning, IdentificationWarning, InputError
from fdadp.functional.tables.records import Records, TrainingSummary
from fdadp.functional.tables.sample import Curves
from fdadp.regression.fitted.inference import Inference
from fdadp.regression.fitted.learned_errors import clusters_of
from fdadp.regression.fitted.term_views import TermViews
from fdadp.regression.formula.parse import ParsedFormula, parse
from fdadp.regression.memory import refuse_too_large
from fdadp.regression.private.fit import PrivateTerms
from fdadp.regression.reading.columns import Grids, check_grids
from fdadp.regression.reading.completion import CompletedAgain
from fdadp.regression.reading.joined_columns import aligned_columns, positioned
from fdadp.regression.reading.person_rows import check_max_rows, check_person_rows, person_weights, warn_of_rows
from fdadp.regression.reading.records import kinds_of
from fdadp.regression.reading.training import (
    Covariates,
    Training,
    TrainingSpec,
    along,
    beside,
    is_expression,
    read_training,
)
from fdadp.regression.terms_from_chunks import TermsFromChunks
from fdadp.solve.errors.gls import fit_along_curves, judging_system
from fdadp.solve.fit.additive_fit import AdditiveFit
from fdadp.solve.fit.chunked_observations import ChunkedObservations
from fdadp.solve.fit.observations import Observations, fit_terms
from fdadp.solve.form.family import Family, family_of
from fdadp.solve.form.long_form import LongForm
from fdadp.terms.along import with_refund_sizes
from fdadp.terms.intercept import Intercept, MeanCurve
from fdadp.terms.numbers.scalar_factor import Factor
from fdadp.terms.numbers.scalar_linear import Linear
from fdadp.terms.spec import TermDesign, TermSpec
from fdadp.terms.times_column import multiplier_of


class AdditiveModel(NestedParameters, PrivateTerms, TermsFromChunks, Inference, TermViews, BaseEstimator):  # type: ignore[misc]
    """Base of :class:`fdadp.FunctionalRegression` and :class:`fdadp.ScalarRegression`."""

    formula: str | Sequence[TermSpec]
    smoothing: str | ArrayLike
    intercept: bool
    response: str | None
    family: str | Family
    person_rows: str | None
    max_rows: int | None
    k: str = "auto"
    """Whose choices hold where terms make none: ours or, for comparisons, refund's."""

    response_name_: str
    _grids_of_fit: frozenset[str] = frozenset()
    """Columns that `fit` was told grids of, which new rows need not have where no term reads them."""
    _parsed: ParsedFormula
    _default_response: str
    _fit: AdditiveFit
    missing: str | Mapping[str, str]
    _covariates: Covariates
    """How new rows are read."""
    _offset: str | None = None
    """Column of rows, or an expression of them, that belongs to the model and is added to what it predicts."""
    _again: CompletedAgain | None = None
    """The fit with sparse curves completed anew."""
    joined_: str | None = None
    """How many rows were joined, and by what; None where rows belong together by position."""
    _settled: Mapping[str, Any] = MappingProxyType({})
    """Settings as they were at the fit."""
    _fitted_family: Family | None = None
    _n_unpenalized: int | None = None
    """Dimension that REML counts as unpenalised, for comparisons with programs that count otherwise."""

    def _check_settings(self) -> None:
        family_of(self.family)
        flag(self.intercept, "intercept")
        if self.response is not None and not isinstance(self.response, str):
            raise InputError(f"response must be the name of a column, got {self.response!r}")
        if isinstance(self.smoothing, str) and self.smoothing not in ("reml", "gcv"):
            raise InputError(f"smoothing must be 'reml', 'gcv' or smoothing parameters, got {self.smoothing!r}")

    def _asked(self, data: Any, y: Any, grids: Grids | None, *, by: str | None = None, **beside: Any) -> TrainingSpec:
        """What to train on, by the formula or the terms."""
        self._check_settings()
        data = positioned(by, data)
        self._parsed = self._read_model(data, grids)
        if self._as_refund:
            sizes = tuple(map(with_refund_sizes, self._parsed.terms))
            self._parsed = self._parsed._replace(terms=sizes)
        if self.response is not None and self._parsed.response not in (None, self.response):
            raise InputError(f"response must be left out where a formula has one, got {self.response!r}")
        self.response_name_ = self._parsed.response or self.response or self._default_response
        columns = columns_of(self._parsed.terms)
        now = [term for term in self._parsed.terms if getattr(term, "limits", None) is None]
        if y is None and not isinstance(self.formula, str) and self.response_name_ in columns_of(now):  # not its past
            raise InputError(
                f"formula must not explain {self.response_name_} by itself; if that is meant, copy the column under "
                "another name"
            )
        check_grids(grids, data, self.response_name_)
        self._grids_of_fit = frozenset(grids or ())
        offset = self._parsed.one_offset(beside.get("offset"))
        computed = self._parsed.offset is not None or (isinstance(offset, str) and is_expression(offset, data))
        self._offset = f"I({offset})" if computed else None
        if self._offset is not None:
            beside["offset"], columns = self._offset, (*columns, self._offset)
        asked, self.joined_ = aligned_columns(
            by, TrainingSpec(data, y, self.response_name_, columns, grids, missing=self._gaps, **beside)
        )
        return asked

    def _read_model(self, data: Any, grids: Grids | None) -> ParsedFormula:
        """Terms, and whether there are a constant and a mean curve."""
        if isinstance(self.formula, str):
            return parse(self.formula, kinds_of(data, grids))
        wanted = "a formula, or a sequence of terms such as [terms.ff('X')]"
        specs: tuple[Any, ...] = tuple(self.formula) if isinstance(self.formula, Sequence) else (None,)
        if not all(isinstance(spec, TermSpec) for spec in specs):
            raise InputError(f"formula must be {wanted}, got {self.formula!r}")
        odd = next((name for name in columns_of(specs) if not isinstance(name, str)), None)
        if odd is not None:
            raise InputError(f"columns of terms must be named by text, got {odd!r}")
        return ParsedFormula(None, specs, self.intercept, self.intercept)

    def _trained_on(self, asked: TrainingSpec, *, curves: bool) -> tuple[Training, LongForm, IntArray | None]:
        """Training rows with their responses, the terms on bases that suit them, and numbers of groups of rows."""
        training = read_training(asked, self._family, curves=curves)
        groups = clusters_of(asked.groups, asked.data, training.observed.records.n)
        training = replace(training, observed=self._by_person(training.observed, groups))
        self._covariates = training.covariates
        indicators = map(Linear, training.covariates.completion.indicators.values())
        specs = (*self._parsed.terms, *indicators)
        records = training.observed.records
        made = training.observed.made(training.points)
        seen = TrainingSummary.of(
            lambda: (records[rows] for rows in records.blocks()), made, training.observed.of_records
        )
        form = self._designs(specs, seen, training.points)
        if training.curves is not None:
            _check_axes(form, records, training.curves.unit, asked.response)
        return training, form, groups

    @property
    def _as_refund(self) -> bool:
        """Whether terms are to be as refund has them where they leave a choice."""
        return one_of(self.k, "k", ("auto", "refund")) == "refund"

    @property
    def _along_curves(self) -> bool:
        """Whether generalised least squares was asked for."""
        if getattr(self, "errors", "iid") == "iid":
            return False
        if self._family.name != "gaussian":
            raise InputError(f"errors='curve' is there for family='gaussian', got {self._family.name!r}")
        return True

    @property
    def _gaps(self) -> str | Mapping[str, str]:
        """What to do about entries that covariates lack."""
        return "raise" if self.missing == "auto" else self.missing

    @property
    def _family(self) -> Family:
        """Of the fit, or else the one that was asked for."""
        return self._fitted_family or family_of(self.family)

    def _new(self, data: Any, grids: Mapping[str, ArrayLike] | None) -> Records:
        """New rows, read as the training rows were."""
        check_is_fitted(self, "_fit")
        others = {name: grid for name, grid in (grids or {}).items() if name not in self._grids_of_fit}
        check_grids(others, data, self.response_name_)
        kept = () if self._offset is None else (self._offset,)
        return self._covariates.read(data, (*columns_of(self._fit.form.designs), *kept), grids)

    def _complete_again(self, training: Training) -> None:
        """Learn how far the fit depends on the components that completed sparse curves."""
        sparse = "pace" in self._covariates.completion.how.values()
        self._again = None
        if sparse and training.loose is not None and self._least_squares:
            with contextlib.suppress(InputError):  # too few curves: standard errors say so
                own = training.loose, self._covariates.completion, training.observed, self._fit
                self._again = CompletedAgain.of(*own)

    @property
    def _least_squares(self) -> bool:
        """Whether the fit is by least squares with splines along the response."""
        splines = getattr(self, "response_basis", "splines") == "splines"
        return self._family.name == "gaussian" and getattr(self, "errors", "iid") == "iid" and splines

    def _with_completion(self, se: FloatArray, data: Any, grids: Grids | None, t: FloatArray) -> FloatArray:
        """Standard errors of linear predictors (n, T') that know that components of sparse curves were estimated."""
        sparse = [name for name, how in self._covariates.completion.how.items() if how == "pace"]
        if not sparse:
            return se
        if self._again is None:
            warnings.warn(
                f"standard errors take {', '.join(sparse)} as known, which missing='pace' completed: in simulations "
                "nominal 95 % held the mean given what was seen of a curve in 57 to 64 % "
                "(docs/decisions/0028-incomplete-covariates.md)",
                CompletedCurvesWarning,
                stacklevel=3,
            )
            return se
        loose = self._covariates.loose(data, columns_of(self._fit.form.designs), grids)
        return np.asarray(np.sqrt(se**2 + self._again.variance(loose, self._fit.form, t)))

    def _designs(self, specs: Sequence[TermSpec], seen: TrainingSummary, t: FloatArray | None) -> LongForm:
        """Terms on bases that suit the training records."""
        mean: list[TermSpec] = [Intercept()] if self._parsed.intercept else []
        if t is not None and self._parsed.mean_curve and not any(isinstance(spec, MeanCurve) for spec in specs):
            mean.append(MeanCurve())
        designs = self._about_means([spec.fixed(seen, t) for spec in [*mean, *specs]], specs, seen, t)
        if not designs:
            raise InputError("formula must have at least one term, or an intercept, got none")
        refuse_same_names(designs)
        form = LongForm(designs, np.zeros(1) if t is None else t)
        refuse_too_large(form)
        return form

    def _about_means(
        self, designs: Sequence[TermDesign], specs: Sequence[TermSpec], seen: TrainingSummary, t: FloatArray | None
    ) -> tuple[TermDesign, ...]:
        """Curves and numbers less their means, where the model has what this takes: a mean curve, or a constant.

        Of a product with a column that is the column itself, as a term. The fit then does not depend on the zero of
        their units, which a penalised mean curve cannot make up for.
        """
        if self._as_refund or not self._parsed.intercept or (t is not None and not self._parsed.mean_curve):
            return tuple(designs)
        alone = {s.column for s in specs if isinstance(s, Linear | Factor) and (t is None or not s.constant)}
        return tuple(d.about(seen) if multiplier_of(d) in (None, *alone) else d for d in designs)

    def _fitted(self, form: LongForm, observed: Observations, groups: IntArray | None = None) -> None:
        """Fit all terms, and publish what was found."""
        working = None
        if self._along_curves:
            fit, working = fit_along_curves(form, observed, self.smoothing, self._n_unpenalized)
        else:
            fit = self._estimated(form, observed)
        self._adopt(fit, observed.null_deviance(self._family))
        self._prior_weights = observed.weights
        self._learn_errors(fit.form, observed, groups, working)

    def _by_person(self, observed: Observations, groups: IntArray | None) -> Observations:
        """Rows with the weights that let each person count once, unless each row is to."""
        check_person_rows(self.person_rows, grouped=groups is not None)
        check_max_rows(self.person_rows, self.max_rows, 1 if groups is None else int(np.bincount(groups).max()))
        by_person = person_weights(groups)
        if by_person is None:
            return observed
        warn_of_rows(self.person_rows, self._family.name)
        if self.person_rows == "sum":
            return observed
        if getattr(self, "response_basis", None) == "eigen":
            raise InputError(
                "person_rows must be 'sum' with response_basis='eigen', which takes no weights, where persons have "
                f"different numbers of rows, got {self.person_rows!r}"
            )
        own = by_person[:, None] if observed.points is None else by_person[observed.points.record]
        given = np.ones_like(observed.y) if observed.weights is None else observed.weights
        return replace(observed, weights=own * given)

    def _as_fitted(self, name: str) -> Any:
        """A setting as it was at the fit, whatever it is set to since."""
        return self._settled.get(name, getattr(self, name, None))

    def _estimated(self, form: LongForm, observed: Observations | ChunkedObservations) -> AdditiveFit:
        """The fit of the terms to observations, all at hand or in chunks."""
        believed = judging_system(form, observed, self._family, self.smoothing)
        return fit_terms(form, observed, self._family, self.smoothing, self._n_unpenalized, believed)

    def _adopt(self, fit: AdditiveFit, null_deviance: float) -> None:
        """Publish a fit as attributes."""
        self._fit, self.null_deviance_, self._fitted_family = fit, null_deviance, family_of(self.family)
        self._shares = self._held_score = None
        self._settled = {name: getattr(self, name, None) for name in ("formula", "smoothing", "se", "variance")}
        self.smoothing_parameters_ = fit.smoothing_parameters
        self.smoothing_names_ = fit.form.penalty_names
        self.edf_ = fit.edf_total
        self.criterion_ = fit.criterion
        self.sigma2_, self.scale_, self.deviance_ = fit.sigma2, fit.scale, fit.rss
        self.term_names_ = tuple(design.name for design in fit.form.designs)
        lost = fit.unidentified()
        if lost:
            warnings.warn(
                f"the data do not identify all of {', '.join(lost)}: what is not identified was set to 0. "
                + "; ".join(f"{name} {why}" for name, why in lost.items()),
                IdentificationWarning,
                stacklevel=4,
            )

    def _predictor(self, records: Records, data: Any, offset: ArrayLike | str | None, t: FloatArray) -> FloatArray:
        """The linear predictor of new rows at points, shape (n, T'), by default with the model's own offset."""
        eta = self._limited(records, self._fit.form.predictor(records, self._fit.coefficients, t), t)
        if offset is None and self._offset is not None:
            return np.asarray(eta + along(records.columns[self._offset], t))
        added = beside(offset, "offset", data, eta.shape)
        return eta if added is None else eta + added

    def _deviance_explained(self, y: FloatArray, eta: FloatArray) -> float:
        """Share of the deviance about one mean, where responses were observed."""
        seen = ~np.isnan(y)
        family, y, name = self._family, y[seen], self.response_name_
        family.check(y, name=name)
        family.check_mean(float(y.mean()), name)
        if (y == y[0]).all():
            raise InputError(f"{name} must have two different values or more for a score, got {y[0]:g} alone")
        about = family.half_deviance(y, np.full(y.size, family.predictor(np.array(y.mean()))))
        return 1 - float(family.half_deviance(y, eta[seen]).sum() / about.sum())

    def _refuse_other_families(self, what: str) -> None:
        if self._family.name != "gaussian":
            raise InputError(
                f"{what} is there for family='gaussian', got {self._family.name!r}; predict_se has standard errors of "
                "the means"
            )


def _check_axes(form: LongForm, records: Records, unit: str | None, response: str) -> None:
    """Refuse curves that act at the response's t, and are dated from another day or in another unit."""
    for design in form.designs:
        columns = () if design.separable else design.columns
        for name, column in ((name, records.columns[name]) for name in columns):
            if isinstance(column, Curves) and None not in (unit, column.unit) and unit != column.unit:
                raise InputError(
                    f"{name} must be on the axis of {response} in {design.name}, got {column.unit} and {unit}; label "
                    "their points with numbers on one axis"
                )


def refuse_same_names(designs: Sequence[TermDesign]) -> None:
    """Refuse two terms of one name."""
    names = [design.name for design in designs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"terms must be different, got {twice} twice")


def columns_of(terms: Sequence[TermSpec] | Sequence[TermDesign]) -> tuple[str, ...]:
    """Columns that terms read, each once."""
    return tuple(dict.fromkeys(name for term in terms for name in term.columns))
