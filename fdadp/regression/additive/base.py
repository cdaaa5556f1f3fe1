"""The additive model from settings to sums over curves, to a fit, and to attributes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, RegressorMixin

from fdadp._common.checks import flag, one_of
from fdadp._common.parameters import NestedParameters
from fdadp._common.threads import one_blas_thread
from fdadp._common.typing import ArrayLike, BoolArray, FloatArray, IntArray
from fdadp.errors import IdentificationWarning, InputError
from fdadp.functional.fpca.sparse import check_observed
from fdadp.functional.tables.records import Records
from fdadp.functional.tables.sample import Curves
from fdadp.privacy import Ledger, Privacy
from fdadp.private.public.columns import public_ranges
from fdadp.private.release.mechanisms import EndToEnd, NoiseAfterFit, mechanism_of
from fdadp.regression.additive.predictions import Predictions
from fdadp.regression.private.surface import NAMES, PrivateSurface
from fdadp.regression.reading.chunked_records import CurvePairs
from fdadp.regression.reading.completion import MissingValues
from fdadp.responses.functional import Functional
from fdadp.solve.eigen.surface_fit import SurfaceFit
from fdadp.solve.eigen.surface_of_gaps import surface_of_gaps
from fdadp.solve.fit.least_squares import ScoresFit, fit_scores, vary
from fdadp.solve.fit.observations import Observations
from fdadp.solve.form.chunks import without_curves
from fdadp.solve.form.sums import TrainingSums, add_up
from fdadp.solve.linear.moments import Moments
from fdadp.terms.quantiles import QuantileTransform
from fdadp.terms.spec import TermDesign
from fdadp.terms.surface import Surface

if TYPE_CHECKING:
    from fdadp.functional.fpca import Eigenbasis
    from fdadp.private.plan.plan import Plan

Model = TypeVar("Model", bound="FunctionalModel")


class FunctionalModel(NestedParameters, PrivateSurface, Predictions, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the additive model, which says what its term is (:meth:`_surface`) and how it reads curves."""

    n_components: float | Eigenbasis
    smoothing: str | ArrayLike
    quadrature: str
    fpca: str
    progress: bool | str

    _n_unpenalized: ClassVar[int | None] = None
    """Dimension that REML counts as unpenalised, for comparisons with programs that count otherwise."""

    def _surface(
        self, grid: FloatArray, x_range: tuple[float, float], n: int | None, transform: QuantileTransform | None = None
    ) -> Surface:
        """The term of curves whose range is known, n of them where that is."""
        raise NotImplementedError

    def _check_settings(self) -> None:
        """Public validation: of settings only, before the first curve is read."""
        if isinstance(self.smoothing, str) and self.smoothing not in ("reml", "gcv"):
            raise InputError(f"smoothing must be 'reml', 'gcv' or smoothing parameters, got {self.smoothing!r}")
        one_of(self.fpca, "fpca", ("face", "dense"))
        if not isinstance(self.progress, str):
            flag(self.progress, "progress")
        else:
            one_of(self.progress, "progress", ("auto",))
        public_ranges(self.bounds, NAMES, required=False)
        mechanism = mechanism_of(self.mechanism)
        if self.privacy is None:
            return
        if not isinstance(self.privacy, Privacy):
            raise InputError(f"privacy must be a Privacy or None, got {type(self.privacy).__name__}")
        if isinstance(mechanism, EndToEnd):
            self._public_ranges()
            self.privacy.check()
            if self.privacy.n is not None:
                mechanism.check_n(self.privacy, self.privacy.n)

    @property
    def _least_curves(self) -> int:
        """Training curves without which there is nothing to fit."""
        return 5

    # --- without privacy, from curves down to coefficients ---

    def _estimated(
        self,
        chunks: CurvePairs,
        x_range: tuple[float, float] | None = None,
        transform: QuantileTransform | None = None,
    ) -> SurfaceFit:
        """Fit to complete curves.

        Parameters
        ----------
        chunks : Pairs
        x_range : (float, float), optional
            Range of X, where it is known.
        transform : QuantileTransform, optional
            Of X.
        """
        sums = self._sums(chunks, x_range, transform)
        with one_blas_thread():
            return SurfaceFit.of(self._scores(sums))

    def _scores(self, sums: TrainingSums) -> ScoresFit:
        """The scores of the response, fitted."""
        basis, (term,), smoothing = self._basis(sums), sums.designs, self.smoothing
        if not isinstance(smoothing, str):
            smoothing = _given(smoothing, (basis.n_components, len(term.penalties)))
        refuse_same_curves("X", sums.x)
        scores = fit_scores(sums, basis, smoothing, self._n_unpenalized)
        _say_what_is_not_identified(term, scores.identified)
        return scores

    def _of_gaps(self, x: Curves, y: Curves, transform: QuantileTransform | None = None) -> SurfaceFit:
        """Fit to complete curves X, and to what was observed of the responses."""
        check_observed(y.values, "Y")
        sums = self._sums(CurvePairs.of(x, replace(y, values=np.nan_to_num(y.values)), self.progress), None, transform)
        refuse_same_curves("X", sums.x)
        (term,), observed = sums.designs, Observations(Records(len(x), {"X": x}), y.values)
        assert isinstance(term, Surface)
        response = Functional(self.n_components, self.fpca)
        found = surface_of_gaps(term, sums.x, observed, y.grid, response, self.smoothing, self._n_unpenalized)
        slopes = found.fit.identified[len(found.by_function.rest) :].reshape(-1, len(found.values))
        _say_what_is_not_identified(term, np.asarray(slopes.all(axis=1)))
        return found

    def _sums(
        self,
        chunks: CurvePairs,
        x_range: tuple[float, float] | None = None,
        transform: QuantileTransform | None = None,
    ) -> TrainingSums:
        """Sums over the training curves."""
        x_range = x_range or chunks.range()
        s, t, known = chunks.head["X"].grid, chunks.head["Y"].grid, chunks.n
        term = self._surface(s, x_range, known or None, transform)
        sums = _added_up(chunks, term, t)
        if chunks.n == known:
            return sums
        again = self._surface(s, x_range, chunks.n)
        return sums if again.shape == term.shape else _added_up(chunks, again, t)  # few: only now known how many

    def _basis(self, sums: TrainingSums) -> Eigenbasis:
        """Mean and eigenfunctions of the response."""
        y = sums.y
        if y.n < self._least_curves:
            raise InputError(f"X and Y must hold at least {self._least_curves} curves, got {y.n}")
        refuse_same_curves("Y", y)
        return Functional(self.n_components, self.fpca).fixed(y.n, y.mean, y.scatter, sums.t)

    def _publish(self, found: SurfaceFit, chunks: CurvePairs, persons: IntArray | None = None) -> SurfaceFit:
        """Let a mechanism that is not private end to end add its noise to the fit."""
        self._fitted_with = {"privacy": None}
        if self.privacy is None:
            return found
        self._fitted_with = {"privacy": replace(self.privacy), "mechanism": self.mechanism}
        mechanism = mechanism_of(self.mechanism)
        assert isinstance(mechanism, NoiseAfterFit)
        return mechanism.perturb(found, chunks.read, self.privacy, persons)

    # --- attributes ---

    def _adopt(self, found: SurfaceFit) -> None:
        """Publish a fit as attributes."""
        self._surface_fit, self._fit, self._beyond = found, found.fit, found.beyond
        self._spread = {"released" if found.limited else "pointwise": found.law}
        self.smoothing_parameters_, self.edf_ = found.smoothing_parameters, found.edf
        self.criterion_, self.eigenbasis_ = found.criterion, found.basis
        self.eigenfunctions_, self.eigenvalues_ = found.basis.functions, found.basis.values
        self.explained_variance_ratio_ = found.basis.explained_ratio
        self.mean_, self.t_ = found.basis.mean, found.basis.grid
        self.residual_variance_, self.noise_variance_ = found.law.values, found.noise_variance
        self.r2_ = found.r2
        self.n_curves_, self.notes_ = found.fit.n, found.notes
        self.plan_ = cast("Plan | None", found.plan)
        self.ledger_: Ledger | None = found.ledger
        self.privacy_ = found.privacy
        self.moments_ = None

    @classmethod
    def made_of(cls: type[Model], found: SurfaceFit, x: Curves, y: Curves) -> Model:
        """A model with default settings of a fit that was made elsewhere, and what its curves were like."""
        model = cls()
        model._missing = MissingValues("raise")
        model._adopt(found)
        model._remember(x, y)
        return model

    def _remember(self, x: Curves, y: Curves) -> None:
        """Remember what predictions are to come as, and what new curves must be like."""
        names = None if x.gridded or x.columns is None else pd.Index([str(name) for name in x.columns])
        self._x, self._y = replace(without_curves(x), columns=names), without_curves(y)


def _say_what_is_not_identified(term: TermDesign, identified: BoolArray) -> None:
    if identified.all():
        return
    assert isinstance(term, Surface)
    names = ", ".join(term.directions(np.flatnonzero(~identified).tolist()))
    warnings.warn(
        f"the curves X do not identify {names}: among the training curves they are functions of the other integrals of "
        "this kind, or do not vary (as for one shape times a number). They are left out; the fit is not affected, "
        "predictions for curves of another shape rest on this choice",
        IdentificationWarning,
        stacklevel=6,
    )


def refuse_same_curves(name: str, moments: Moments) -> None:
    """Refuse curves that are all the same but for rounding, from the moments of them or of their features.

    Raises
    ------
    InputError
        Naming the argument.
    """
    if not vary(moments):
        raise InputError(f"{name} must vary between curves, got the same curve every time")


def _added_up(chunks: CurvePairs, term: Surface, t: FloatArray) -> TrainingSums:
    return add_up([term], partial(_over_values, chunks), t)


def _over_values(chunks: CurvePairs, function: Callable[..., Any], merge: Callable[[Any, Any], Any]) -> Any:
    return chunks.over(partial(_of_values, function), merge, "sums over curves")


def _of_values(function: Callable[..., Any], records: Records, y: Curves) -> Any:
    return function(records, y.values)


def _given(smoothing: Any, shape: tuple[int, int]) -> FloatArray:
    try:
        return np.array(np.broadcast_to(np.asarray(smoothing, dtype=np.float64), shape))
    except (TypeError, ValueError) as exc:
        raise InputError(
            f"smoothing must be 'reml', 'gcv' or numbers of shape ({shape[1]},) or {shape}, got {smoothing!r}"
        ) from exc


def codes_of(groups: ArrayLike | None, n: int) -> IntArray | None:
    """Code of the person of each curve, from ids.

    Raises
    ------
    InputError
        Another number of ids than of curves.
    """
    if groups is None:
        return None
    if np.shape(groups) != (n,):
        raise InputError(f"groups must have shape ({n},), one entry per curve, got shape {np.shape(groups)}")
    codes = np.unique(np.asarray(groups), return_inverse=True)[1]
    return np.asarray(codes, dtype=np.int64)
