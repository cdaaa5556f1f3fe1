"""Errors of a fit: residuals, and covariances and variances that are computed from them on request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp._common.argument_checks import one_of
from fdadp._common.student_and_f import ndtri
from fdadp._common.threads import one_blas_thread
from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import InputError
from fdadp.functional.quadrature import quadrature_weights
from fdadp.regression.fitted.coefficient_functions import place_of
from fdadp.regression.fitted.person_curves import PersonCurves
from fdadp.regression.model_settings import ModelSettings
from fdadp.repeated.icc_and_tests import VarianceTest
from fdadp.solve.errors.leave_one_curve_out import changes_with_smoothing
from fdadp.solve.errors.leave_one_out_residuals import Residuals
from fdadp.solve.errors.sandwich import ClusterErrors, cluster_errors, left_out, unconditional_covariance_of_fit
from fdadp.solve.errors.term_tests import TermTest
from fdadp.solve.errors.variance_function import ResidualVariance, looks, residual_variance
from fdadp.solve.fit.additive_fit import AdditiveFit
from fdadp.solve.form.long_form_design import LongForm
from fdadp.terms.records import Records

if TYPE_CHECKING:
    from fdadp.regression.mixed_models.mixed_model_fit import MixedFit

KINDS = ("curve", "cluster", "iid", "unconditional")

BY_CLUSTERS = ("curve", "cluster")


@dataclass(frozen=True, kw_only=True)
class CoefficientErrors:
    """Errors of the coefficients of a fit, and the variance of new responses.

    The mappings keep what was computed once, and files hold them.

    Attributes
    ----------
    settings : ModelSettings
    fit : AdditiveFit
    loglik : float
        Log-likelihood. NaN in private fits.
    residuals : Residuals or None
        None in private fits, and in fits from chunks and files.
    groups : ndarray of int, or None
        Number of the group of each training row.
    beyond : mapping of ndarray, or None
        Variance of mean curves outside of the basis, by kind of standard error.
    clusters : dict of str to ClusterErrors
        By kind, "curve" or "cluster".
    variances : dict of str
        Variance of new responses by kind. "released" is the kind of private fits.
    random_tests : dict of str to TermTest
        Tests of random effects on curves, by term.
    variance_tests : dict of (str, int) to VarianceTest
        Tests of random functions of persons and sites, by name and largest number of draws.
    scores : list of (float, float)
        Mean error of curves left out, with its standard error, after the first request.
    changes : list of ndarray
        Changes of the coefficients without each curve, after the first request.
    persons : PersonCurves or None
        Curves of persons and covariances of both levels, where a term has ``covariance="free"``.
    """

    settings: ModelSettings
    fit: AdditiveFit
    loglik: float = float("nan")
    residuals: Residuals | None = None
    groups: IntArray | None = None
    beyond: Mapping[str, FloatArray] | None = None
    clusters: dict[str, ClusterErrors] = field(default_factory=dict)
    variances: dict[str, Any] = field(default_factory=dict)
    random_tests: dict[str, TermTest] = field(default_factory=dict)
    variance_tests: dict[tuple[str, int], VarianceTest] = field(default_factory=dict)
    scores: list[tuple[float, float]] = field(default_factory=list)
    changes: list[FloatArray] = field(default_factory=list)
    persons: PersonCurves | None = None

    @classmethod
    def by_persons(cls, settings: ModelSettings, own: MixedFit) -> CoefficientErrors:
        """Of a fit with random functions of persons, whose covariances are known without residuals."""
        clusters = {} if own.by_person is None else {"cluster": own.by_person}
        return cls(settings=settings, fit=own.fit, loglik=own.loglik, persons=own.persons, clusters=clusters)

    # --- covariances of coefficients ---

    @property
    def grouped(self) -> bool:
        """Whether the fit had groups."""
        return self.groups is not None or "cluster" in self.clusters

    @property
    def weighs_rows_alike(self) -> bool:
        """Whether groups leave all rows the same weight: rows count once each, or all groups have as many."""
        if self.settings.person_rows == "sum" or not self.grouped:
            return True
        return self.groups is not None and np.ptp(np.bincount(self.groups)) == 0

    @property
    def has_rows(self) -> bool:
        """Whether the residuals of two records or more are kept."""
        return self.residuals is not None and self.fit.n > 1

    def by_clusters(self, kind: str) -> ClusterErrors:
        """Errors that allow any dependence within a curve, or within a group."""
        if kind not in self.clusters and self.residuals is not None:
            with one_blas_thread():
                if self.settings.smooths_by_curves:
                    changes = changes_with_smoothing(self.fit, self.residuals, self.groups)
                else:
                    changes = self.left_out(kind)
                self.clusters[kind] = cluster_errors(self.fit, changes)
        return self.clusters[kind]

    def left_out(self, kind: str) -> FloatArray:
        """Changes of the coefficients without each curve, or each group."""
        own = self.residuals
        assert own is not None
        if kind == "cluster":
            return left_out(self.fit.form, self.fit.inverse, own, self.groups)
        if not self.changes:
            self.changes.append(left_out(self.fit.form, self.fit.inverse, own))
        return self.changes[0]

    def kind_of(self, kind: str | None) -> str:
        """Assumption about the errors: the given one, or the default of the model."""
        known = self.fit.n > 1 and (self.residuals is not None or "curve" in self.clusters)
        if kind is None:
            own = self.settings.se  # None if the response is a number
            if self.grouped and own != "iid":
                return "cluster"
            if self.persons is not None:
                return "iid" if own == "iid" else "unconditional"
            return "curve" if own == "curve" and known else "iid"
        one_of(kind, "kind", KINDS)
        if kind == "cluster" and not self.grouped:
            raise InputError("kind='cluster' needs groups, got a model without; fit(data, groups=...)")
        if kind == "curve" and not known:
            raise InputError("kind='curve' needs residuals of two training rows or more, which this model has not")
        if kind == "curve" and self.settings.smooths_by_curves and self.settings.smoothing == "groups":
            raise InputError("kind must be 'cluster' or 'iid' with smoothing='groups', got 'curve'")
        if kind == "unconditional" and self.fit.on_eigenfunctions:
            raise InputError("kind='unconditional' is there for response_basis='splines', got 'eigen'")
        if kind == "unconditional" and self.settings.family.name != "gaussian" and self.fit.chosen is None:
            raise InputError(
                "kind='unconditional' needs an ordinary fit by smoothing='reml', got smoothing parameters of "
                f"family={self.settings.family.name!r} that were not chosen so"
            )
        return kind

    def covariance(self, kind: str | None) -> FloatArray:
        """Covariance of all coefficients, shape (p, p)."""
        wanted = self.kind_of(kind)
        if self.persons is not None and wanted != "iid":
            if wanted == "cluster":
                return self.clusters[wanted].covariance
            return np.asarray(self.fit.bayesian_covariance + self.persons.weights + self.persons.unsure)
        if wanted in BY_CLUSTERS:
            return self.by_clusters(wanted).covariance
        return self.fit.bayesian_covariance if wanted == "iid" else unconditional_covariance_of_fit(self.fit)

    def of_mean(self, records: Records, kind: str | None, t: FloatArray | None = None) -> FloatArray:
        """Standard errors of the linear predictor from those of the coefficients, shape (n, T)."""
        if self.persons is not None:
            few = self.kind_of(kind) != "iid"
            return self.persons.standard_errors(self.fit.form, records, self.covariance(kind), t, few=few)
        if self.kind_of(kind) == "iid":
            return self.fit.standard_errors(records, t)
        return self.fit.form.standard_errors(records, self.covariance(kind), t)

    def of_predictor(self, records: Records, kind: str | None, points: FloatArray) -> FloatArray:
        """Standard errors of the linear predictor at points, with the variance outside of the basis; shape (n, T')."""
        se = self.of_mean(records, kind, points)
        if self.beyond is None:
            return se
        beyond = self.beyond["iid" if self.kind_of(kind) == "iid" else "curve"]
        return np.asarray(np.sqrt(np.maximum(se**2 + np.interp(points, self.fit.form.t, beyond), 0.0)))

    def degrees(self, kind: str | None, name: str | None = None) -> float:
        """Degrees of freedom of the covariance, or of one term's: from clusters, or from the observations."""
        wanted = self.kind_of(kind)
        if self.persons is not None and wanted not in BY_CLUSTERS:
            own = self.persons.degrees
            return float(own.min() if name is None else own[place_of(self.fit.form, name)])
        if wanted not in BY_CLUSTERS:
            return max(self.fit.n_rows - self.fit.edf_total, 1.0)
        errors = self.by_clusters(wanted)
        return float(errors.n_clusters - 1 if name is None else errors.degrees[place_of(self.fit.form, name)])

    def student(self, kind: str | None, name: str) -> float:
        """Degrees of freedom of pointwise intervals of a term: infinite but where persons are few."""
        return np.inf if self.persons is None else self.degrees(kind, name)

    # --- variance of new responses ---

    def _on_grid(self, points: FloatArray) -> FloatArray:
        """Points of a circle less whole periods, so that they are near the grid of the fit."""
        low, period = float(self.fit.form.t.min()), self.settings.t_period
        return points if period is None else low + (points - low) % period

    def variance_of(self, kind: str) -> ResidualVariance:
        """Variance of new responses about their means: along the response ("t"), and also by covariates ("model")."""
        if kind not in self.variances and self.residuals is not None:
            own, groups = self.residuals, self.groups
            with one_blas_thread():
                changes = self.left_out("curve" if groups is None else "cluster")
                self.variances[kind] = variance_from(self.fit, own, changes, kind, groups)
        found: ResidualVariance = self.variances[kind]
        return found

    def half_width(
        self, records: Records, points: FloatArray, se: FloatArray, level: float, *, simultaneous: bool = False
    ) -> FloatArray:
        """Half-widths of prediction intervals of records at points, shape (n, T'); `se` is of the means."""
        kind = self.settings.variance
        law: Any = self.variances.get("released", self.variances.get("pointwise"))
        if law is not None:
            quantile = law.whole_curve_quantile(level) if simultaneous else law.quantile(level)
            return np.asarray(quantile * np.sqrt(law.of_records(records, points) + se**2))
        if simultaneous and (self.persons is not None or kind == "constant" or not self.settings.of_curves):
            raise InputError(
                "simultaneous must be False with variance='constant', with random curves of persons, and where "
                "responses are numbers, got True"
            )
        if self.persons is not None:
            new = self.persons.variance_of_rows(records, points)
            return np.asarray(ndtri((1 + level) / 2) * np.sqrt(se**2 + new))
        if not self.has_rows and not self.variances:
            if kind in ("t", "model") or simultaneous:
                what = "simultaneous=True" if simultaneous else f"variance={kind!r}"
                raise InputError(f"{what} needs residuals of single curves, which this model has not")
            kind = "constant"
        if kind == "constant":
            return np.asarray(ndtri((1 + level) / 2) * np.sqrt(se**2 + self.fit.sigma2))
        fit = self.fit
        kind = "model" if kind in ("auto", None) else kind
        model = self.variance_of(kind)
        known = np.zeros((records.n, 0))
        if kind == "model":
            known = looks(records, fit.form.predictor(records, fit.coefficients), fit.form.designs)
        # Residuals of curves left out contain the variance of the mean already, on average.
        usual = fit.mean_variance(self.covariance(None))
        variance = model.variance(known, self._on_grid(points)) + np.maximum(se**2 - usual, 0.0)
        quantile = model.whole_curve_quantile(level) if simultaneous else model.quantile(level)
        return np.asarray(quantile * np.sqrt(variance))


def variance_from(
    fit: AdditiveFit, own: Residuals, changes: FloatArray, kind: str, groups: IntArray | None = None
) -> ResidualVariance:
    """Variance of new responses, from the residuals of each record in the fit without it, or without its person.

    Parameters
    ----------
    fit : AdditiveFit
    own : Residuals
    changes : ndarray of shape (n, p) or (G, p)
        Changes of the coefficients without each record, or without each group.
    kind : {"t", "model"}
    groups : ndarray of shape (n,) of int, optional
        Whose each record is.
    """
    form: LongForm = fit.form
    alone = own.without(form, changes if groups is None else changes[groups])
    if own.points is None:
        record, t = np.repeat(np.arange(len(alone)), form.t.size), np.tile(form.t, len(alone))
    else:
        record, t = own.points.record, own.points.t
    seen = np.ones(alone.size, dtype=bool) if own.weights is None else own.weights.ravel() > 0
    known = None
    if kind == "model":
        known = looks(own.records, form.predictor(own.records, fit.coefficients), form.designs)
    return residual_variance(record[seen], t[seen], alone.ravel()[seen], known, groups)


# Private predictions far from the mean curve are pulled back towards it; post-processing, which costs no privacy.


FARTHEST = 2.5
"""Standard deviations of Y from its mean curve beyond which a private prediction is pulled back."""
NOISE_FAR_OUT = 0.25
"""Of a prediction's variance there: the share that pulls it back. Standard errors count on rougher effects besides."""


def near_the_mean(errors: CoefficientErrors, records: Records, eta: FloatArray, t: FloatArray) -> FloatArray:
    """Pull back predictions that are far from the mean curve, where noise is largest.

    Beyond `FARTHEST` standard deviations of the response, of which an excess e keeps ``e³ / (e² + v)``, v a quarter of
    the variance of the prediction. L2 norms over the grid of the fit, whatever points are asked for.

    Parameters
    ----------
    errors : CoefficientErrors
        Of a private fit.
    records : Records
        New rows.
    eta : ndarray of shape (n, T')
        Their linear predictor.
    t : ndarray of shape (T',)
    """
    law, form, coefficients = errors.variances["released"], errors.fit.form, errors.fit.coefficients
    grid = form.t
    weights = quadrature_weights(grid) / (grid[-1] - grid[0]) if grid.size > 1 else np.ones(1)
    own = eta if np.array_equal(t, grid) else form.predictor(records, coefficients, grid)
    norms = np.sqrt((own - form.mean(coefficients)) ** 2 @ weights)
    excess = norms - FARTHEST * np.sqrt(law.total)
    far = excess > 0
    if far.any():
        variance = NOISE_FAR_OUT * errors.of_mean(records[far], None, grid) ** 2 @ weights
        kept = norms[far] - excess[far] + excess[far] ** 3 / (excess[far] ** 2 + variance)
        mean = form.mean(coefficients, t)
        eta = np.array(eta)
        eta[far] = mean + (eta[far] - mean) * (kept / norms[far])[:, None]
    return eta
