"""What a fitted regression says of new curves: predictions, intervals, standard errors, the score."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fdadp._common.checks import fraction
from fdadp._common.typing import ArrayLike, CurveData, FloatArray
from fdadp.errors import ExtrapolationWarning, InputError
from fdadp.functional.curves import (
    Curves,
    as_curves,
    as_grid,
    check_finite,
    refuse_other_domain,
    same_order,
    same_rows,
)
from fdadp.functional.records import Records
from fdadp.privacy._seen import score_is_not_private
from fdadp.regression.from_releases import NearTheMean
from fdadp.regression.joined import aligned
from fdadp.regression.learned_errors import LearnedErrors
from fdadp.regression.missing import MissingValues
from fdadp.solve.surface_fit import SurfaceFit

__all__ = ["Predictions", "points_within"]


def points_within(t: ArrayLike | None, own: FloatArray, unit: str | None) -> FloatArray:
    """Points of the response, within its domain; default its own grid.

    Raises
    ------
    InputError
        Dates, points that do not increase, or some outside the domain.
    """
    if t is None:
        return own
    if np.asarray(t).dtype.kind in "mM":
        raise InputError(f"t must be numbers in the unit of the response, {unit or 'its grid'}, got dates")
    points = as_grid(np.atleast_1d(np.asarray(t)), np.size(t), "t")
    if points[0] < own[0] or points[-1] > own[-1]:
        raise InputError(f"t must lie within [{own[0]:g}, {own[-1]:g}], got [{points[0]:g}, {points[-1]:g}]")
    return points


class Predictions(LearnedErrors, NearTheMean):
    """Of a functional regression: reads curves, asks the fit, returns what Y came as."""

    t_: FloatArray
    _surface_fit: SurfaceFit
    _x: Curves
    """How X came, and Y: without any curve."""
    _y: Curves
    _missing: MissingValues

    def _read(self, X: CurveData, s: ArrayLike | None) -> Records:
        """New curves, complete and checked."""
        check_is_fitted(self, "_fit")
        own = self._x
        x = as_curves(X, s, name="X", default=own.grid)
        refuse_other_domain(x, own.grid, "X")
        if own.columns is not None and not x.gridded and x.columns is not None:
            same_order(list(own.columns), list(x.columns), "X", "the training curves")
        x = self._missing.complete_x(x)
        check_finite(x, "X")
        if self._surface_fit.limited:  # features of private fits say nothing of it
            self._surface_fit.term.warn_outside(x)
        return Records(len(x), {"X": x})

    def _predicted(self, x: Records, points: FloatArray) -> FloatArray:
        return self._limited(x, self._fit.form.predictor(x, self._fit.coefficients, points), points)

    def predict(self, X: CurveData, *, t: ArrayLike | None = None, s: ArrayLike | None = None) -> Any:
        """Predict response curves.

        Parameters
        ----------
        X : FDataGrid, DataFrame or array_like of shape (n, S')
            Predictor curves, on the training grid or on another one over the same domain.
        t : array_like of shape (T',), optional
            Where to predict, within the training domain; default the training grid.
        s : array_like of shape (S',), optional
            Grid of a plain array `X`, wanted where its length is not that of the training grid, which is the default.

        Returns
        -------
        FDataGrid, DataFrame or ndarray of shape (n, T')
            The kind that Y was; a data frame has the index of X.

        Raises
        ------
        InputError
            X on another domain or not finite, of another number of points and without a grid, or `t` outside the
            training domain.

        Warns
        -----
        ExtrapolationWarning
            Some values of X lie outside the training range; says how many.

        Notes
        -----
        In a private fit the surface is continued as a constant beyond the range of X, and a prediction farther from
        the mean curve than 2.5 standard deviations of Y is pulled back by as much as it is uncertain: of its excess e
        (in L2 norm) ``e³ / (e² + v)`` is kept, v being a quarter of the integrated variance that :meth:`predict_se`
        gives. All of it is computed from releases. The surface itself is not changed.
        """
        x, points = self._read(X, s), points_within(t, self.t_, self._y.unit)
        return self._wrap(self._predicted(x, points), points, x)

    def predict_interval(
        self, X: CurveData, level: float = 0.95, *, t: ArrayLike | None = None, s: ArrayLike | None = None
    ) -> tuple[Any, Any]:
        r"""Pointwise prediction intervals for new response curves.

        ``Ŷ(t) ± q sqrt{Σ_k φ_k(t)² z' Var(Θ̂_k) z + R(t, t) (1 + 1/n)}`` with R the covariance of Y - Ŷ and q the
        quantile of the t distribution with the mean residual degrees of freedom (z for large n). In a private fit
        Var(Θ̂) includes the noise, and q was calibrated on a private histogram of residuals; the limit on predictions
        (see :meth:`predict`) moves an interval and leaves its width.

        Parameters
        ----------
        X, t, s
            As in :meth:`predict`.
        level : float
            Nominal coverage at each point, in (0, 1).

        Returns
        -------
        lower, upper : FDataGrid, DataFrame or ndarray of shape (n, T')
        """
        fraction(level, "level")
        x, points = self._read(X, s), points_within(t, self.t_, self._y.unit)
        mean, se = self._fit.predicted(x, points)
        mean = self._limited(x, mean, points)
        half = self._half_width(x, points, self._with_beyond(se, None, points), level, "constant")
        return self._wrap(mean - half, points, x), self._wrap(mean + half, points, x)

    def predict_se(self, X: CurveData, *, t: ArrayLike | None = None, s: ArrayLike | None = None) -> Any:
        r"""Pointwise standard errors of the predicted curves: of the mean E[Y | X], not of a new response.

        ``sqrt{Σ_k φ_k(t)² z' Var(Θ̂_k) z + R(t, t) / n + O(t)}``. O(t) is the variance over curves of the part of
        E[Y | X] outside the kept components, which the features explain and the model leaves out; with enough
        components it is 0. So the errors cover at each t on average over curves, whatever ``n_components`` is. They do
        not know of a part of F that the basis cannot follow: the default sizes leave little of it (at nominal 95 % the
        errors covered 91 to 97 % in five simulated cohorts at n = 200 and 2,000), of others :meth:`check` tells.
        Eigenfunctions and smoothing parameters are taken as known. In a private fit Var(Θ̂) includes the noise, and O
        is 0.

        Parameters
        ----------
        X, t, s
            As in :meth:`predict`.

        Returns
        -------
        FDataGrid, DataFrame or ndarray of shape (n, T')
            In the unit of Y.
        """
        x, points = self._read(X, s), points_within(t, self.t_, self._y.unit)
        return self._wrap(self._standard_errors(x, None, points), points, x)

    def _wrap(self, values: FloatArray, grid: FloatArray, records: Records) -> Any:
        return self._y.wrap(values, grid, rows=records.curves("X"))

    def score(self, X: CurveData, Y: CurveData, sample_weight: None = None) -> float:
        """Share of the variance of Y (about its mean curve, integrated over t) that the predictions explain."""
        from fdadp.functional.metrics import functional_r2

        score_is_not_private(self)
        inputs, _ = aligned(None, {"X": X, "Y": Y}, "Y")
        X, Y = inputs["X"], inputs["Y"]
        y, x = as_curves(Y, name="Y", default=self.t_), self._read(X, None)
        if x.n != len(y):
            raise InputError(f"X and Y must hold the same number of curves, got {x.n} and {len(y)}")
        same_rows(X=x.curves("X"), Y=y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExtrapolationWarning)
            predicted = self._predicted(x, points_within(y.grid, self.t_, self._y.unit))
        return functional_r2(y.values, predicted, t=y.grid)
