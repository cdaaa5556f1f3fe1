"""What a fitted additive model says of curves: predictions, intervals, standard errors, the surface, the score."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from fdadp._common.checks import numbers
from fdadp._common.typing import ArrayLike, CurveData, FloatArray
from fdadp.errors import ExtrapolationWarning, InputError
from fdadp.functional.curves import Curves, Kind, as_curves, as_grid, check_finite, same_order, same_rows, wrap
from fdadp.functional.fpca import Eigenbasis
from fdadp.functional.margins import Margin
from fdadp.functional.quadrature import quadrature_weights
from fdadp.privacy._seen import score_is_not_private
from fdadp.regression.missing import MissingValues
from fdadp.regression.quantiles import QuantileTransform
from fdadp.terms._rows import FeatureMap

__all__ = ["Predictions"]

FARTHEST = 2.5
"""Standard deviations of Y from its mean curve beyond which a private prediction is not taken at its word."""


class Predictions:
    """Of :class:`~fdadp.AdditiveFunctionOnFunction`, from what its fit left."""

    period_s: float | None
    quadrature: str
    coef_: FloatArray
    eigenfunctions_: FloatArray
    eigenvalues_: FloatArray
    mean_: FloatArray
    noise_variance_: float
    residual_variance_: FloatArray
    s_: FloatArray
    t_: FloatArray
    x_range_: tuple[float, float]
    _basis: Eigenbasis
    _clip_x: bool
    _covariance: FloatArray
    _feature_mean: FloatArray
    _interval_functions: FloatArray
    _mean_variance: FloatArray
    _missing: MissingValues
    _quantile: tuple[float, float]
    _rotation: FloatArray
    _s_margin: Margin
    _transform: QuantileTransform | None = None
    _x_margin: Margin
    _y_columns: pd.Index[Any] | None
    _y_kind: Kind
    _x_names: list[str] | None

    def _centred_features(self, x: Curves) -> FloatArray:
        """Raw feature rows about their mean, shape (n, n_basis_x * n_basis_s)."""
        length = self.s_[-1] - self.s_[0]
        if abs(x.grid[0] - self.s_[0]) > 1e-6 * length or abs(x.grid[-1] - self.s_[-1]) > 1e-6 * length:
            raise InputError(
                f"X must lie on the training domain [{self.s_[0]:g}, {self.s_[-1]:g}], "
                f"got [{x.grid[0]:g}, {x.grid[-1]:g}]"
            )
        low, high = self.x_range_
        transform = self._transform
        outside = int(((x.values < low) | (x.values > high)).sum()) if transform is None else transform.count_outside(x)
        if outside:
            where = f"the training range [{low:g}, {high:g}]" if transform is None else "the training range at their s"
            warnings.warn(
                f"{outside} of {x.values.size} points of X lie outside {where}; the surface is continued "
                f"{'linearly' if transform is None and not self._clip_x else 'as a constant'} there",
                ExtrapolationWarning,
                stacklevel=3,
            )
        weights = self._weights_over_s(x.grid)
        features = FeatureMap(self._x_margin.basis, self._s_margin.basis, x.grid, weights)
        values = np.clip(x.values, low, high) if self._clip_x else x.values
        rows = features.rows(values if transform is None else transform(x))
        return np.asarray(rows - self._feature_mean)

    def _weights_over_s(self, grid: FloatArray) -> FloatArray:
        """Quadrature weights on a grid of X; of a periodic s the way from the last point to the first counts too."""
        weights = quadrature_weights(grid, self.quadrature)
        if self.period_s is not None and self.quadrature == "trapezoid":
            weights[[0, -1]] += (self.period_s - (grid[-1] - grid[0])) / 2
        return weights

    def _read(self, X: CurveData, s: ArrayLike | None) -> Curves:
        check_is_fitted(self, "coef_")
        x = as_curves(X, s, name="X", default=self.s_)
        if self._x_names is not None and not x.gridded and x.columns is not None:
            same_order(self._x_names, list(x.columns), "X", "the training curves")
        x = self._missing.complete_x(x)
        check_finite(x, "X")
        return x

    def _at(self, t: ArrayLike | None) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Grid, mean and eigenfunctions at `t` (default: the training grid)."""
        if t is None:
            return self.t_, self.mean_, self.eigenfunctions_
        points = as_grid(t, np.size(t), "t")
        return points, *self._basis.evaluate(points)

    def _variances(self, z: FloatArray, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Variance of the predicted mean curves (n, T), and of responses about their means (T,)."""
        from scipy.interpolate import CubicSpline

        features = z @ self._rotation
        if self._covariance.shape[1] > features.shape[1]:  # the constant has a variance of its own
            features = np.hstack((np.ones((len(z), 1)), features))
        quadratic = np.stack([np.einsum("ij,jk,ik->i", features, c, features) for c in self._covariance], axis=1)
        of_mean, residual, functions = self._mean_variance, self.residual_variance_, self._interval_functions
        if not np.array_equal(points, self.t_):
            of_mean, residual = (np.interp(points, self.t_, v) for v in (of_mean, residual))
            functions = np.asarray(CubicSpline(self.t_, functions, axis=1)(points))
        return np.asarray(np.maximum(quadratic, 0.0) @ functions**2 + of_mean), np.asarray(residual)

    def _scores(self, z: FloatArray) -> FloatArray:
        """Predicted scores on the eigenfunctions, shape (n, K).

        In a private fit noise is largest for curves unlike any other, where the surface is continued. A prediction
        farther from the mean curve than `FARTHEST` standard deviations of Y (L2 norms, from the releases) keeps
        ``e³ / (e² + v)`` of its excess e, v being the variance of the predicted curve. Others stay as they are.
        """
        scores: FloatArray = z @ self._raw_coefficients()
        if not self._clip_x:
            return scores
        total = self.eigenvalues_.sum() + self.noise_variance_ * (self.t_[-1] - self.t_[0])
        limit, norms = FARTHEST * np.sqrt(total), np.sqrt((scores * scores).sum(axis=1))
        far = norms > limit
        if far.any():
            excess = norms[far] - limit
            variance = self._variances(z[far], self.t_)[0] @ self._basis.weights
            scores[far] *= ((limit + excess**3 / (excess**2 + variance)) / norms[far])[:, None]
        return scores

    def _raw_coefficients(self) -> FloatArray:
        """B-spline coefficients, shape (n_basis_x * n_basis_s, K), from ``coef_``."""
        raw = np.einsum("ab,kbc,dc->kad", self._x_margin.to_raw, self.coef_, self._s_margin.to_raw)
        return np.asarray(raw.reshape(len(raw), -1).T)

    def predict(self, X: CurveData, t: ArrayLike | None = None, s: ArrayLike | None = None) -> Any:
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
        (in L2 norm) ``e³ / (e² + v)`` is kept, v being the integrated variance that :meth:`predict_se` gives. All of it
        is computed from releases. The surface itself is not changed.
        """
        x = self._read(X, s)
        return self._wrap(*self._curves(x, t), x)

    def _curves(self, x: Curves, t: ArrayLike | None) -> tuple[FloatArray, FloatArray]:
        """Predicted curves (n, T'), and their grid."""
        grid, mean, functions = self._at(t)
        return np.asarray(mean + self._scores(self._centred_features(x)) @ functions), grid

    def predict_interval(
        self, X: CurveData, level: float = 0.95, t: ArrayLike | None = None, s: ArrayLike | None = None
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
        from scipy.stats import norm
        from scipy.stats import t as student

        if not (isinstance(level, (int, float, np.floating)) and 0 < level < 1):
            raise InputError(f"level must lie between 0 and 1, got {level!r}")
        x = self._read(X, s)
        grid, mean, functions = self._at(t)
        z = self._centred_features(x)
        values = mean + self._scores(z) @ functions
        scale, inverse_dof = self._quantile
        tail = (1 + level) / 2
        quantile = scale * (student.ppf(tail, 1 / inverse_dof) if inverse_dof else norm.ppf(tail))
        of_mean, residual = self._variances(z, grid)
        half = quantile * np.sqrt(of_mean + residual)
        return self._wrap(values - half, grid, x), self._wrap(values + half, grid, x)

    def predict_se(self, X: CurveData, t: ArrayLike | None = None, s: ArrayLike | None = None) -> Any:
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
        x = self._read(X, s)
        grid = self._at(t)[0]
        of_mean, _ = self._variances(self._centred_features(x), grid)
        return self._wrap(np.sqrt(of_mean), grid, x)

    def _wrap(self, values: FloatArray, grid: FloatArray, x: Curves) -> Any:
        return wrap(values, grid, kind=self._y_kind, columns=self._y_columns, index=x.index, own_grid=self.t_)

    def surface(self, x: ArrayLike, s: ArrayLike, t: ArrayLike) -> FloatArray:
        """Return F on a product grid.

        Parameters
        ----------
        x, s, t : array_like
            Values of the predictor and points of the domains of X and Y.

        Returns
        -------
        ndarray of shape (len(x), len(s), len(t))
            Centred: for each (s, t), F{X_i(s), s, t} has mean zero over the training curves.

        Raises
        ------
        InputError
            `s` or `t` outside the training domain.
        """
        check_is_fitted(self, "coef_")
        at_x, at_s, at_t = (np.atleast_1d(numbers(v, k)) for k, v in (("x", x), ("s", s), ("t", t)))
        if ((at_s < self.s_[0]) | (at_s > self.s_[-1])).any():
            raise InputError(
                f"s must lie within [{self.s_[0]:g}, {self.s_[-1]:g}], got {at_s.min():g} to {at_s.max():g}"
            )
        functions = self._basis.evaluate(at_t)[1]
        bs = self._s_margin.basis.design(at_s) @ self._s_margin.to_raw
        if self._transform is not None:  # another level of x at each s
            order = np.argsort(at_s)
            levels = np.empty((at_x.size, at_s.size))
            levels[:, order] = self._transform(Curves(np.repeat(at_x[:, None], at_s.size, 1), at_s[order]))
            bx = (self._x_margin.basis.design(levels.ravel()) @ self._x_margin.to_raw).reshape(*levels.shape, -1)
            return np.asarray(np.einsum("abl,bm,klm,kt->abt", bx, bs, self.coef_, functions, optimize=True))
        bx = self._x_margin.basis.design(at_x) @ self._x_margin.to_raw
        return np.asarray(np.einsum("al,bm,klm,kt->abt", bx, bs, self.coef_, functions, optimize=True))

    def score(self, X: CurveData, Y: CurveData, sample_weight: None = None) -> float:
        """Share of the variance of Y (about its mean curve, integrated over t) that the predictions explain."""
        from fdadp.functional.metrics import functional_r2

        score_is_not_private(self)
        y, x = as_curves(Y, name="Y", default=self.t_), self._read(X, None)
        if len(x) != len(y):
            raise InputError(f"X and Y must hold the same number of curves, got {len(x)} and {len(y)}")
        same_rows(X=x, Y=y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExtrapolationWarning)
            predicted = self._curves(x, y.grid)[0]
        return functional_r2(y.values, predicted, y.grid)
