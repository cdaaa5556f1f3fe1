"""What a model of many terms keeps of its training rows: residuals, and covariances and variances from them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fdadp._common.checks import one_of
from fdadp._common.threads import one_blas_thread
from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import InputError
from fdadp.functional.tables.records import Records
from fdadp.regression.fitted.coefficient_functions import place_of
from fdadp.solve.covariance.low_rank import LowRankPrecision
from fdadp.solve.errors.gls import ErrorCovariance
from fdadp.solve.errors.leave_one_out import RecordScores, Residuals
from fdadp.solve.errors.residual_variance import ResidualVariance, looks, residual_variance
from fdadp.solve.errors.sandwich import ClusterErrors, cluster_errors, left_out
from fdadp.solve.errors.smoothing_uncertainty import unconditional_covariance_of_fit
from fdadp.solve.errors.term_tests import TermTest
from fdadp.solve.fit.additive_fit import AdditiveFit
from fdadp.solve.fit.observations import Observations
from fdadp.solve.form.family import Family
from fdadp.solve.form.long_form import LongForm

KINDS = ("curve", "cluster", "iid", "unconditional")

BY_CLUSTERS = ("curve", "cluster")


class LearnedErrors:
    """Part of every model of many terms: its residuals, and covariances and variances from them."""

    loglik_: float
    _of_curves: ClassVar[bool]
    _fit: AdditiveFit
    _residuals: Residuals | RecordScores | None = None
    _groups: IntArray | None = None
    """Numbers of groups of the training rows."""
    _found: Mapping[str, ClusterErrors] = MappingProxyType({})
    _spread: Mapping[str, Any] = MappingProxyType({})
    _flipped: Mapping[str, TermTest] = MappingProxyType({})
    """Tests of random effects on curves that were made."""
    _changes: FloatArray | None = None
    _held_score: tuple[float, float] | None = None
    """Error of curves left out and its standard error, of a model from a file."""
    _precision: LowRankPrecision | None = None
    """Along the response, where the fit is to the scores on eigenfunctions."""
    _beyond: Mapping[str, FloatArray] | None = None
    """Variance of mean curves that no coefficient knows of (:class:`fdadp.solve.eigen.components.ComponentsFit`)."""

    def _learn_errors(
        self,
        form: LongForm,
        observed: Observations,
        groups: IntArray | None,
        working: ErrorCovariance | None,
    ) -> None:
        """Keep what covariances need; they are computed when they are asked for."""
        family = self._family
        eta, seen = observed.predictor(form, self._fit.coefficients), observed.used > 0
        y = np.where(seen, observed.y, family.placeholder)
        believed = (self._precision, None) if working is None else (working.precision, working.learned)
        self._residuals = Residuals.of(observed, eta, family, *believed)
        self._groups = groups
        self._found, self._spread, self._changes, self._flipped, self._held_score = {}, {}, None, {}, None
        scale = 1.0 if family.known_scale else self._fit.rss / self._fit.n_rows
        if working is not None:
            rows = self._fit.n_rows
            weighted = self._fit.sigma2 * (rows - self._fit.edf_total)
            self.loglik_ = working.log_det / 2 - rows / 2 * (1 + float(np.log(2 * np.pi * weighted / rows)))
            return
        self.loglik_ = family.log_likelihood(y[seen], eta[seen], observed.used[seen], max(scale, 1e-300))

    @property
    def _family(self) -> Family:
        raise NotImplementedError

    @property
    def _clusters(self) -> Mapping[str, ClusterErrors]:
        """Of every kind that there is."""
        if self._residuals is not None:
            for kind in ("curve",) if self._groups is None else ("curve", "cluster"):
                self._errors_of(kind)
        return self._found

    @_clusters.setter
    def _clusters(self, found: Mapping[str, ClusterErrors]) -> None:
        self._found, self._residuals, self._groups = found, None, None

    def _errors_of(self, kind: str) -> ClusterErrors:
        if kind not in self._found and self._residuals is not None:
            with one_blas_thread():
                of = cluster_errors(self._fit, self._left_out(self._residuals, kind))
            self._found = {**self._found, kind: of}
        return self._found[kind]

    def _left_out(self, own: Residuals | RecordScores, kind: str) -> FloatArray:
        """Changes of coefficients without each curve, kept for who asks next, or each group."""
        if kind == "cluster":
            return left_out(self._fit.form, self._fit.inverse, own, self._groups)
        if self._changes is None:
            self._changes = left_out(self._fit.form, self._fit.inverse, own)
        return self._changes

    @property
    def _grouped(self) -> bool:
        """Whether the fit was told whose each row is."""
        return self._groups is not None or "cluster" in self._found

    def _kind_of(self, kind: str | None) -> str:
        """What is believed of the errors, when told and when not."""
        check_is_fitted(self, "_fit")
        grouped = self._grouped
        known = self._fit.n > 1 and (self._residuals is not None or "curve" in self._found)
        if kind is None:
            own = getattr(self, "_settled", {}).get("se")  # of curves; numbers have no errors along a curve
            if grouped and own != "iid":
                return "cluster"
            return "curve" if own == "curve" and known else "iid"
        one_of(kind, "kind", KINDS)
        if kind == "cluster" and not grouped:
            raise InputError("kind='cluster' needs groups, got a model without; fit(data, groups=...)")
        if kind == "curve" and not known:
            raise InputError("kind='curve' needs residuals of two training rows or more, which this model has not")
        if kind == "unconditional" and self._fit.on_eigenfunctions:
            raise InputError("kind='unconditional' is there for response_basis='splines', got 'eigen'")
        if kind == "unconditional" and self._family.name != "gaussian":
            raise InputError(f"kind='unconditional' is there for family='gaussian', got {self._family.name!r}")
        return kind

    def _covariance_of(self, kind: str | None) -> FloatArray:
        """Covariance of all coefficients, by what is believed of the errors."""
        wanted = self._kind_of(kind)
        if wanted in BY_CLUSTERS:
            return self._errors_of(wanted).covariance
        return self._fit.bayesian_covariance if wanted == "iid" else unconditional_covariance_of_fit(self._fit)

    def _of_mean(self, records: Records, kind: str | None, t: FloatArray | None = None) -> FloatArray:
        """Standard errors of the linear predictor that coefficients know of, shape (n, T)."""
        if self._kind_of(kind) == "iid":
            return self._fit.standard_errors(records, t)
        return self._fit.form.standard_errors(records, self._covariance_of(kind), t)

    def _standard_errors(self, records: Records, kind: str | None, points: FloatArray) -> FloatArray:
        """Of the linear predictor at points, with what no coefficient knows of; shape (n, T')."""
        return self._with_beyond(self._of_mean(records, kind, points), kind, points)

    def _with_beyond(self, se: FloatArray, kind: str | None, points: FloatArray) -> FloatArray:
        if self._beyond is None:
            return se
        beyond = self._beyond["iid" if self._kind_of(kind) == "iid" else "curve"]
        more = np.interp(points, self._fit.form.t, beyond)
        return np.asarray(np.sqrt(np.maximum(se**2 + more, 0.0)))

    def _degrees_of(self, kind: str | None, name: str | None = None) -> float:
        """Degrees of freedom of that covariance, or of a term's: of clusters, or what is left of the observations."""
        wanted = self._kind_of(kind)
        if wanted not in BY_CLUSTERS:
            return max(self._fit.n_rows - self._fit.edf_total, 1.0)
        errors = self._errors_of(wanted)
        return float(errors.n_clusters - 1 if name is None else errors.degrees[place_of(self._fit.form, name)])

    # --- variance of new responses ---

    @property
    def _variances(self) -> Mapping[str, ResidualVariance]:
        """Of every kind that there is."""
        if self._has_rows and hasattr(self, "variance") and self._family.name == "gaussian":
            for kind in ("t", "model"):
                self._variance_of(kind)
        return self._spread

    @_variances.setter
    def _variances(self, spread: Mapping[str, ResidualVariance]) -> None:
        self._spread, self._residuals = spread, None

    @property
    def _has_rows(self) -> bool:
        """Whether residuals of two curves or more are there one by one."""
        return isinstance(self._residuals, Residuals) and self._fit.n > 1

    def _variance_of(self, kind: str) -> ResidualVariance:
        own = self._residuals
        if kind not in self._spread and isinstance(own, Residuals):
            with one_blas_thread():
                self._spread = {**self._spread, kind: self._learned_variance(own, self._left_out(own, "curve"), kind)}
        found: ResidualVariance = self._spread[kind]
        return found

    def _learned_variance(self, own: Residuals, changes: FloatArray, kind: str) -> ResidualVariance:
        form = self._fit.form
        alone = own.without(form, changes)
        if own.points is None:
            record, t = np.repeat(np.arange(len(alone)), form.t.size), np.tile(form.t, len(alone))
        else:
            record, t = own.points.record, own.points.t
        seen = np.ones(alone.size, dtype=bool) if own.weights is None else own.weights.ravel() > 0
        known = None
        if kind == "model":
            known = looks(own.records, form.predictor(own.records, self._fit.coefficients), form.designs)
        return residual_variance(record[seen], t[seen], alone.ravel()[seen], known)

    def _half_width(
        self,
        records: Records,
        points: FloatArray,
        se: FloatArray,
        level: float,
        kind: str,
        *,
        simultaneous: bool = False,
    ) -> FloatArray:
        """Of prediction intervals of records at points, shape (n, T'); `se` is that of the means."""
        law: Any = self._spread.get("released", self._spread.get("pointwise"))
        if law is not None:  # of a private fit, or of one surface
            quantile = law.whole_curve_quantile(level) if simultaneous else law.quantile(level)
            return np.asarray(quantile * np.sqrt(law.of_records(records, points) + se**2))
        if simultaneous:
            raise InputError("simultaneous must be False without privacy, where intervals are pointwise, got True")
        if not self._has_rows and not self._spread:
            if kind in ("t", "model"):
                raise InputError(f"variance={kind!r} needs residuals of single curves, which this model has not")
            kind = "constant"
        if kind == "constant":
            from scipy.stats import norm

            return np.asarray(norm.ppf((1 + level) / 2) * np.sqrt(se**2 + self._fit.sigma2))
        fit = self._fit
        kind = "model" if kind == "auto" else kind
        model = self._variance_of(kind)
        known = np.zeros((records.n, 0))
        if kind == "model":
            known = looks(records, fit.form.predictor(records, fit.coefficients), fit.form.designs)
        # Residuals of curves that the fit does not know have the mean's own variance in them already, on average.
        usual = fit.mean_variance(self._covariance_of(None))
        variance = model.variance(known, points) + np.maximum(se**2 - usual, 0.0)
        return np.asarray(model.quantile(level) * np.sqrt(variance))
