"""Additive function-on-function regression: ``Y_i(t) = μ(t) + ∫ F{X_i(s), s, t} ds + ε_i(t)``."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from fdadp._threads import one_blas_thread
from fdadp._typing import ArrayLike, CurveData, FloatArray, IntArray
from fdadp.curves import Curves, as_curves, as_grid, check_finite, wrap
from fdadp.design import FeatureMap
from fdadp.errors import ExtrapolationWarning, InputError
from fdadp.fpca import Eigenbasis, dense_eigenbasis, face_eigenbasis, face_smooth
from fdadp.penalized import PenalizedLeastSquares, Solution
from fdadp.privacy import Ledger, Privacy
from fdadp.quadrature import quadrature_weights
from fdadp.regression.missing import MissingValues
from fdadp.regression.sums import Chunks, TrainingSums, add_up, dask_chunks, is_dask, range_of
from fdadp.splines import BSplines
from fdadp.tensor import Margin

if TYPE_CHECKING:
    from statsmodels.iolib.summary import Summary

    from fdadp.privacy.noise import Noise
    from fdadp.regression.private.moments_fit import NoisyMoments
    from fdadp.regression.private.plan import Plan

__all__ = ["AdditiveFunctionOnFunction"]

FARTHEST = 2.5
"""Standard deviations of Y from its mean curve beyond which a private prediction is not taken at its word."""


class AdditiveFunctionOnFunction(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    r"""Additive function-on-function regression.

    .. math:: Y_i(t) = \mu(t) + \int F\{X_i(s), s, t\}\,ds + \varepsilon_i(t), \qquad
              F(x, s, t) = \sum_k \sum_{l,l'} B_l(x) B_{l'}(s) \phi_k(t) \theta_{l,l',k}

    φ_k are the leading eigenfunctions of the covariance of Y; x and s carry P-splines, with smoothing parameters of
    their own for each k. ``F(x, s, t) = β(s, t) x`` is the linear model. Everything is computed from sums over
    curves, so memory and the cost of choosing the smoothing parameters do not grow with n.

    Parameters
    ----------
    n_basis_x, n_basis_s : int
        Number of B-splines over the values of X and over its grid, at least ``degree + 1``.
    n_components : int or float
        Number K of eigenfunctions of Y, or the share of variance they must explain, in (0, 1].
    smoothing : {"reml", "gcv"} or array_like of shape (2,) or (K, 2)
        How the smoothing parameters (λ_x, λ_s) of each component are chosen, or their values (on mgcv's scale).
    privacy : Privacy, optional
        None fits without privacy. ``Privacy(epsilon=, delta=, bounds=)`` fits privately, end to end; basis sizes,
        components and smoothing are then chosen by the public plan and prior, and the settings above are not used.
        ``Privacy(mechanism="published")`` adds the literature's noise, which is not private end to end (see
        ``ledger_``).
    degree : int
        Degree of the splines.
    penalty_order : int
        Order of the differences that are penalised.
    quadrature : {"trapezoid", "simpson", "riemann", "simpson_legacy"}
        Rule for ∫ ds, see :func:`fdadp.quadrature.quadrature_weights`.
    fpca : {"face", "dense"}
        Eigenfunctions of Y with or without smoothing of the covariance. With ``"face"``, grids of Y with fewer than
        12 points are treated as ``"dense"``.
    missing : {"raise", "smooth", "fpca"}
        Treatment of missing values (NaN) and irregular curves: refuse them; smooth each curve by penalised
        B-splines; or fill them in by their conditional expectation under an FPCA for sparse curves.
    progress : bool or "auto"
        Progress bars: always, never, or on work of more than two seconds.

    Attributes
    ----------
    coef_ : ndarray of shape (K, n_basis_x, n_basis_s)
        ``F_k(x_l, s_l')`` at evenly spread points of the range of X and of the grid, centred so that F_k has mean
        zero over the training curves at each s (functions of s alone are not identified).
    smoothing_parameters_ : ndarray of shape (K, 2)
        (λ_x, λ_s) on mgcv's scale; NaN in a private fit, which shrinks by empirical Bayes instead.
    edf_ : ndarray of shape (K,)
        Effective degrees of freedom of each component, its intercept among them.
    eigenfunctions_ : ndarray of shape (K, T)
        L2-normalised.
    eigenvalues_ : ndarray of shape (K,)
        Variances of the scores of Y.
    explained_variance_ratio_ : ndarray of shape (K,)
        Share of each component in the variance of Y (of its smooth part with ``fpca="face"``).
    mean_ : ndarray of shape (T,)
        Mean of the training responses.
    noise_variance_ : float
        White part of the residual variance, in units of Y squared.
    residual_variance_ : ndarray of shape (T,)
        Pointwise residual variance, corrected for the degrees of freedom used.
    criterion_ : ndarray of shape (K,)
        Value of the criterion at the smoothing parameters (REML where these are given).
    r2_ : float
        Share of the training curves' variance (integrated over t) that the fit explains.
    x_range_ : (float, float)
        Range of the training predictors.
    s_, t_ : ndarray
        Grids of X and Y.
    n_curves_, n_features_in_ : int
        Number of training curves (in a private fit the declared or the released number of persons), and of points of
        a predictor curve.
    plan_ : Plan or None
        How a private fit shared out its budget.
    moments_ : NoisyMoments or None
        The private statistic of ``mechanism="moments"``, not kept in files.
    ledger_ : Ledger or None
        What was released, under which assumptions.
    privacy_ : Privacy or None
        The guarantee of the fit; None where there is none, as with ``mechanism="published"``.

    References
    ----------
    Kim, Staicu, Maity, Carroll & Ruppert (2018), Additive Function-on-Function Regression, Journal of
    Computational and Graphical Statistics 27(1), 234-244, doi:10.1080/10618600.2017.1356730.
    Wood (2011), doi:10.1111/j.1467-9868.2010.00749.x (REML).

    Examples
    --------
    >>> from fdadp import AdditiveFunctionOnFunction, load_canadian_weather
    >>> weather = load_canadian_weather()
    >>> model = AdditiveFunctionOnFunction(n_components=2).fit(weather.X, weather.Y)
    >>> model.coef_.shape
    (2, 7, 7)
    >>> model.predict(weather.X[:3])
    FDataGrid(...)
    """

    def __init__(
        self,
        *,
        n_basis_x: int = 7,
        n_basis_s: int = 7,
        n_components: float = 0.95,
        smoothing: str | ArrayLike = "reml",
        privacy: Privacy | None = None,
        degree: int = 3,
        penalty_order: int = 2,
        quadrature: str = "trapezoid",
        fpca: str = "face",
        missing: str = "raise",
        progress: bool | str = "auto",
    ) -> None:
        self.n_basis_x = n_basis_x
        self.n_basis_s = n_basis_s
        self.n_components = n_components
        self.smoothing = smoothing
        self.privacy = privacy
        self.degree = degree
        self.penalty_order = penalty_order
        self.quadrature = quadrature
        self.fpca = fpca
        self.missing = missing
        self.progress = progress

    # --- fitting, from curves down to coefficients ---

    def fit(
        self,
        X: CurveData,
        Y: CurveData,
        s: ArrayLike | None = None,
        t: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> AdditiveFunctionOnFunction:
        """Fit the model.

        Parameters
        ----------
        X, Y : FDataGrid, DataFrame or array_like of shape (n, S) and (n, T)
            Predictor and response curves, one a row. Dask arrays are read block by block, as by :meth:`fit_chunks`.
        s, t : array_like of shape (S,) and (T,), optional
            Grids of plain arrays; default even on [0, 1].
        groups : array_like of shape (n,), optional
            Person of each row: the privacy unit. Not used without privacy.

        Returns
        -------
        self

        Raises
        ------
        InputError
            X and Y of different n, values that are not finite (with ``missing="raise"``), too few curves, constant X,
            a basis too small for its degree, more components than the data allow, unknown options.
        PrivacyError
            A mechanism that is not available; raised before the data are read.
        """
        self._check_settings()
        if self._is_private:
            return self._fit_private(X, Y, s, t, groups)
        if is_dask(X) or is_dask(Y):
            return self.fit_chunks(dask_chunks(X, Y), s=s, t=t)
        x, y = as_curves(X, s, name="X"), as_curves(Y, t, name="Y")
        if len(x) != len(y):
            raise InputError(f"X and Y must hold the same number of curves, got {len(x)} and {len(y)}")
        persons = _as_groups(groups, len(x))
        self._missing = MissingValues(self.missing)
        complete_x, complete_y = self._missing.fit_x(x), self._missing.complete_y(y)
        self._fit(Chunks.of(complete_x, complete_y, self.progress), persons=persons)
        self._remember_kind(y)
        return self

    def fit_chunks(
        self,
        chunks: Sequence[tuple[Any, ...]] | Callable[[], Iterable[tuple[Any, ...]]],
        *,
        s: ArrayLike | None = None,
        t: ArrayLike | None = None,
        groups: ArrayLike | bool | None = None,
        x_range: tuple[float, float] | None = None,
    ) -> AdditiveFunctionOnFunction:
        """Fit from chunks of curves that need not fit into memory together; the answer is that of :meth:`fit`.

        Parameters
        ----------
        chunks : sequence of (X, Y), or function returning an iterator over (X, Y)
            Read twice; once, after a look at the first chunk, if `x_range` is given. A private fit keeps up to 256 MiB
            of curves (as float64), and as many of features: it reads once what fits, else some 25 times, with the same
            result bit for bit as :meth:`fit` for the same noise, whatever the chunks.
            :func:`fdadp.regression.sums.Chunks` says what is accepted.
        s, t : array_like, optional
            Grids of plain arrays; default even on [0, 1]. A private fit wants them declared.
        groups : array_like of shape (n,) or True, optional
            Private fit: person of each row of all chunks one after the other, or True where the chunks are
            (X, Y, groups). The rows of a person may be spread over chunks.
        x_range : (float, float), optional
            Range of X, if it is known; values beyond it enter by linear continuation. Not for private fits, whose
            range is in ``Bounds(x=)``.

        Returns
        -------
        self

        Raises
        ------
        InputError
            As :meth:`fit`; also ``missing`` other than ``"raise"``, and one-way iterators.
        PrivacyError
            As :meth:`fit`; also, in a private fit, a source that fails while it is read: the budget is then spent.
        """
        self._check_settings()
        if self._is_private:
            if x_range is not None:
                raise InputError(f"x_range must be None in a private fit, got {x_range!r}: see Bounds(x=)")
            return self._fit_private_chunks(chunks, s, t, groups)
        if groups is not None:
            raise InputError("groups must be None when fitting from chunks without end-to-end privacy")
        if self.missing != "raise":
            raise InputError(f"missing must be 'raise' when fitting from chunks, got {self.missing!r}")
        self._missing = MissingValues("raise")
        source = Chunks(chunks, s, t, self.progress)
        self._fit(source, x_range=x_range)
        self._remember_kind(source.head()[1])
        return self

    def _check_settings(self) -> None:
        """Public validation: of settings only, before the first curve is read."""
        if isinstance(self.smoothing, str) and self.smoothing not in ("reml", "gcv"):
            raise InputError(f"smoothing must be 'reml', 'gcv' or smoothing parameters, got {self.smoothing!r}")
        for name, allowed in (("fpca", ("face", "dense")), ("missing", ("raise", "smooth", "fpca"))):
            if getattr(self, name) not in allowed:
                raise InputError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {getattr(self, name)!r}")
        for name in ("n_basis_x", "n_basis_s"):
            BSplines.uniform(0.0, 1.0, getattr(self, name), degree=self.degree, name=name)
            if not 1 <= self.penalty_order < getattr(self, name):
                raise InputError(f"penalty_order must be at least 1 and below {name}, got {self.penalty_order!r}")
        if self.privacy is not None:
            if not isinstance(self.privacy, Privacy):
                raise InputError(f"privacy must be a Privacy or None, got {type(self.privacy).__name__}")
            self.privacy.check()

    @property
    def _is_private(self) -> bool:
        """Whether the fit is to be private end to end."""
        return self.privacy is not None and self.privacy.mechanism != "published"

    def _fit_private(
        self,
        X: CurveData,
        Y: CurveData,
        s: ArrayLike | None = None,
        t: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        *,
        noise: Noise | None = None,
    ) -> AdditiveFunctionOnFunction:
        """Fit from noisy releases; only shapes and grids of the curves are looked at here. `noise` is for audits."""
        from fdadp.regression.private.curves import private_curves
        from fdadp.regression.private.fit import fit_private

        assert self.privacy is not None
        x, y = private_curves(X, s, "X"), private_curves(Y, t, "Y")
        if len(x) != len(y):
            raise InputError("X and Y must hold the same number of curves")
        if groups is not None and np.shape(groups) != (len(x),):
            raise InputError("groups must have one entry per curve")
        self._missing = MissingValues("raise")  # of new curves; gaps in training curves are filled by a public constant
        fit_private(self, (x.values, y.values), groups, x.grid, y.grid, self.privacy, noise=noise)
        self._remember_kind(y)
        return self

    def _fit_private_chunks(
        self, chunks: Any, s: ArrayLike | None, t: ArrayLike | None, groups: ArrayLike | bool | None
    ) -> AdditiveFunctionOnFunction:
        """Fit from noisy releases about chunks, which nothing but the kernel reads."""
        from fdadp.regression.private.chunks import PrivateChunks
        from fdadp.regression.private.fit import fit_private

        assert self.privacy is not None
        if s is None or t is None:
            raise InputError(
                "s and t must be the grids of X and Y when fitting privately from chunks, "
                f"got {'s' if s is None else 't'}=None: chunks are not looked at to find them"
            )
        x_grid, y_grid = as_grid(s, np.size(s), "s"), as_grid(t, np.size(t), "t")
        source = PrivateChunks(chunks, {"X": x_grid, "Y": y_grid}, grouped=groups is True)
        self._missing = MissingValues("raise")
        persons = source.persons if groups is True else groups
        fit_private(self, source, persons, x_grid, y_grid, self.privacy)
        self._y_kind, self._y_columns = source.kind, source.columns
        return self

    def _fit(
        self, chunks: Chunks, *, x_range: tuple[float, float] | None = None, persons: IntArray | None = None
    ) -> None:
        low, high = x_range or range_of(chunks)
        grid = chunks.head()[0].grid
        x_margin = Margin.pspline(
            low, high, self.n_basis_x, degree=self.degree, order=self.penalty_order, name="n_basis_x"
        )
        s_margin = Margin.pspline(
            grid[0], grid[-1], self.n_basis_s, degree=self.degree, order=self.penalty_order, name="n_basis_s"
        )
        sums = add_up(chunks, x_margin, s_margin, quadrature_weights(grid, self.quadrature))
        with one_blas_thread():
            basis = self._eigenbasis(sums)
            solutions = self._solve(sums, basis)
            self._keep(sums, basis, solutions, (low, high))
        self.privacy_: Privacy | None = None
        self.ledger_: Ledger | None = None
        self.plan_: Plan | None = None
        self.moments_: NoisyMoments | None = None
        if self.privacy is not None:
            from fdadp.regression.published import perturb

            perturb(self, chunks, persons)

    def _eigenbasis(self, sums: TrainingSums) -> Eigenbasis:
        y = sums.y
        least = 2 * self.penalty_order + 1
        if y.n < least:
            raise InputError(f"X and Y must hold at least {least} curves, got {y.n}")
        smooth = self.fpca == "face" and sums.t.size >= 12
        estimate = face_eigenbasis if smooth else dense_eigenbasis
        if np.diag(y.scatter).max() <= 1e-24 * y.n * (y.mean @ y.mean):  # beyond rounding
            raise InputError("Y must vary between curves, got the same curve every time")
        # More components than n - 1 have no scores to regress.
        cap = min(y.n - 1, sums.t.size)
        if isinstance(self.n_components, (int, np.integer)) and self.n_components > cap:
            raise InputError(f"n_components must be at most {cap} for {y.n} curves, got {self.n_components}")
        return estimate(
            y.mean,
            y.covariance(ddof=0),
            sums.t,
            n_components=self.n_components,
            max_components=cap,
        )

    def _solve(self, sums: TrainingSums, basis: Eigenbasis) -> list[Solution]:
        """Penalised least squares of each score on the identified coordinates of the features."""
        p = sums.n_features
        rotation = sums.smooth.raw_rotation
        gram = rotation.T @ sums.moments.scatter[:p, :p] @ rotation
        projection = (basis.functions * basis.weights).T  # scores = (Y - mean) @ projection
        cross = rotation.T @ sums.moments.scatter[:p, p:] @ projection
        total = np.einsum("tk,tu,uk->k", projection, sums.y.scatter, projection)
        given = None if isinstance(self.smoothing, str) else self._given_smoothing(basis.n_components)
        problem = PenalizedLeastSquares(gram, cross, total, sums.moments.n, sums.smooth.penalties)
        if given is None:
            return problem.optimize(str(self.smoothing))
        return [problem.solve(given[k], k) for k in range(basis.n_components)]

    def _given_smoothing(self, n_components: int) -> FloatArray:
        try:
            values = np.asarray(self.smoothing, dtype=np.float64)
            return np.array(np.broadcast_to(values, (n_components, 2)))
        except (TypeError, ValueError) as exc:
            raise InputError(
                f"smoothing must be 'reml', 'gcv' or numbers of shape (2,) or ({n_components}, 2), "
                f"got {self.smoothing!r}"
            ) from exc

    def _keep(
        self, sums: TrainingSums, basis: Eigenbasis, solutions: list[Solution], x_range: tuple[float, float]
    ) -> None:
        smooth, features = sums.smooth, sums.features
        shape = (len(solutions), smooth.x.size, smooth.s.size)
        values = np.stack([smooth.rotation @ f.coefficients for f in solutions]).reshape(shape)
        self._x_margin, self._s_margin, self._clip_x = smooth.x, smooth.s, False
        self.s_ = features.grid
        mean_x_basis = sums.x_basis_sums / sums.moments.n
        self.coef_ = values - self._mean_surface(values, mean_x_basis, features.weights)[:, None, :]
        self._rotation = smooth.raw_rotation
        self._feature_mean = sums.moments.mean[: sums.n_features]
        # Bayesian covariance of each component's identified coefficients; (K, p, p).
        self._covariance = np.stack([f.covariance for f in solutions])
        self._unit_variance = np.array([f.noise_variance for f in solutions])
        self.smoothing_parameters_ = np.stack([f.smoothing_parameters for f in solutions])
        self.edf_ = np.array([f.edf_total for f in solutions])
        by_gcv = isinstance(self.smoothing, str) and self.smoothing == "gcv"
        self.criterion_ = np.array([f.gcv if by_gcv else f.reml for f in solutions])
        self._basis = basis
        self._interval_functions = basis.functions
        self._set_basis()
        self.x_range_ = x_range
        self.n_curves_, self.n_features_in_ = sums.moments.n, features.grid.size
        self._keep_residuals(sums, basis, solutions)

    def _set_basis(self) -> None:
        """Publish the eigenbasis of Y as attributes."""
        basis = self._basis
        self.eigenfunctions_, self.eigenvalues_ = basis.functions, basis.values
        self.explained_variance_ratio_ = basis.explained_ratio
        self.mean_, self.t_ = basis.mean, basis.grid

    def _mean_surface(self, values: FloatArray, mean_x_basis: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the mean of F_k{X(s), s} as a function of s, in values at the s-points; shape (K, n_basis_s).

        `mean_x_basis` (S, n_basis_x) is the mean of the B-splines of X(s) over the curves.
        """
        mean_x = mean_x_basis @ self._x_margin.to_raw
        design = self._s_margin.basis.design(self.s_) @ self._s_margin.to_raw  # (S, ks)
        means = np.einsum("jl,klm,jm->jk", mean_x, values, design)
        root = np.sqrt(np.abs(weights))[:, None]
        return np.asarray(np.linalg.lstsq(design * root, means * root, rcond=None)[0].T)

    def _keep_residuals(self, sums: TrainingSums, basis: Eigenbasis, solutions: list[Solution]) -> None:
        """Residual covariance from the sums, with each component's degrees of freedom accounted for."""
        p, n = sums.n_features, sums.moments.n
        slopes = (self._rotation @ np.stack([f.coefficients for f in solutions], axis=1)) @ basis.functions  # (p, T)
        zz, zy, yy = sums.moments.scatter[:p, :p], sums.moments.scatter[:p, p:], sums.y.scatter
        explained = slopes.T @ zy
        residual = yy - explained - explained.T + slopes.T @ zz @ slopes
        self.r2_ = float(1 - (np.diag(residual) @ basis.weights) / (np.diag(yy) @ basis.weights))
        left = np.maximum(n - self.edf_, 1.0)
        inflate = np.sqrt((n - 1) / left) - 1
        widen = np.eye(sums.t.size) + (basis.functions.T * inflate) @ (basis.functions * basis.weights)
        covariance = widen @ residual @ widen.T / (n - 1)
        self.residual_variance_ = np.maximum(np.diag(covariance), 0.0)
        self.noise_variance_ = float(
            face_smooth(covariance, sums.t)[1] if sums.t.size >= 12 else self.residual_variance_.min()
        )
        self._mean_variance = self.residual_variance_ / n
        self._quantile = (1.0, 1 / float(left.mean()))

    def _remember_kind(self, y: Curves) -> None:
        self._y_kind, self._y_columns = y.kind, y.columns

    # --- before a private fit ---

    def plan(self, s: ArrayLike | int = 51, t: ArrayLike | int = 51, n: float | None = None) -> Plan:
        """Plan a private fit from public values alone: which releases, with which shares, features and rounds.

        Nothing is read and nothing spent. ``print`` shows it; :func:`fdadp.plan` says what the fit may be worth.

        Parameters
        ----------
        s, t : array_like or int
            Grids of X and Y, or their numbers of points.
        n : float, optional
            Number of persons to plan for, where ``privacy`` does not declare one.

        Raises
        ------
        PrivacyError, InputError
            As :meth:`fit` would before it reads the data; or the model has no end-to-end privacy.
        """
        from fdadp.regression.private.preview import preview

        self._check_settings()
        if self.privacy is None or not self._is_private:
            raise InputError("privacy must be private end to end to have a plan, as Privacy(epsilon=, delta=, bounds=)")
        return preview(self.privacy, s, t, n=n)[0]

    # --- using the fit ---

    def _centred_features(self, x: Curves) -> FloatArray:
        """Raw feature rows about their mean, shape (n, n_basis_x * n_basis_s)."""
        length = self.s_[-1] - self.s_[0]
        if abs(x.grid[0] - self.s_[0]) > 1e-6 * length or abs(x.grid[-1] - self.s_[-1]) > 1e-6 * length:
            raise InputError(
                f"X must lie on the training domain [{self.s_[0]:g}, {self.s_[-1]:g}], "
                f"got [{x.grid[0]:g}, {x.grid[-1]:g}]"
            )
        low, high = self.x_range_
        outside = int(((x.values < low) | (x.values > high)).sum())
        if outside:
            warnings.warn(
                f"{outside} of {x.values.size} points of X lie outside the training range [{low:g}, {high:g}]; "
                f"the surface is continued {'as a constant' if self._clip_x else 'linearly'} there",
                ExtrapolationWarning,
                stacklevel=3,
            )
        weights = quadrature_weights(x.grid, self.quadrature)
        features = FeatureMap(self._x_margin.basis, self._s_margin.basis, x.grid, weights)
        rows = features.rows(np.clip(x.values, low, high) if self._clip_x else x.values)
        return np.asarray(rows - self._feature_mean)

    def _read(self, X: CurveData, s: ArrayLike | None) -> Curves:
        check_is_fitted(self, "coef_")
        x = self._missing.complete_x(as_curves(X, s, name="X", default=self.s_))
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
            Grid of a plain array `X`; default the training grid if the length is that, else even over its domain.

        Returns
        -------
        FDataGrid, DataFrame or ndarray of shape (n, T')
            The kind that Y was; a data frame has the index of X.

        Raises
        ------
        InputError
            X on another domain or not finite, or `t` outside the training domain.

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
        grid, mean, functions = self._at(t)
        values = mean + self._scores(self._centred_features(x)) @ functions
        return self._wrap(values, grid, x)

    def predict_interval(
        self, X: CurveData, level: float = 0.95, t: ArrayLike | None = None, s: ArrayLike | None = None
    ) -> tuple[Any, Any]:
        r"""Pointwise prediction intervals for new response curves.

        ``Ŷ(t) ± q sqrt{Σ_k φ_k(t)² z' Var(Θ̂_k) z + R(t, t) (1 + 1/n)}`` with R the residual covariance and q the
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

        ``sqrt{Σ_k φ_k(t)² z' Var(Θ̂_k) z + R(t, t) / n}``, what of :meth:`predict_interval` vanishes as n grows.
        Eigenfunctions and smoothing parameters are taken as known. In a private fit Var(Θ̂) includes the noise.

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
        at_x = np.atleast_1d(np.asarray(x, dtype=np.float64))
        at_s = np.atleast_1d(np.asarray(s, dtype=np.float64))
        if ((at_s < self.s_[0]) | (at_s > self.s_[-1])).any():
            raise InputError(
                f"s must lie within [{self.s_[0]:g}, {self.s_[-1]:g}], got {at_s.min():g} to {at_s.max():g}"
            )
        functions = self._basis.evaluate(np.atleast_1d(np.asarray(t, dtype=np.float64)))[1]
        bx = self._x_margin.basis.design(at_x) @ self._x_margin.to_raw
        bs = self._s_margin.basis.design(at_s) @ self._s_margin.to_raw
        return np.asarray(np.einsum("al,bm,klm,kt->abt", bx, bs, self.coef_, functions, optimize=True))

    def score(self, X: CurveData, Y: CurveData, sample_weight: None = None) -> float:
        """Share of the variance of Y (about its mean curve, integrated over t) that the predictions explain."""
        from fdadp.metrics import functional_r2

        y = as_curves(Y, name="Y", default=self.t_)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExtrapolationWarning)
            predicted = as_curves(self.predict(X, t=y.grid), default=y.grid)
        return functional_r2(y.values, predicted.values, y.grid)

    # --- looking at the fit ---

    def summary(self) -> Summary:
        """Tables of the fit, as text (``print``) and HTML (in a notebook)."""
        from fdadp.regression.summary import summarise

        check_is_fitted(self, "coef_")
        return summarise(self)

    def _repr_html_(self) -> str:
        if hasattr(self, "coef_"):
            return str(self.summary().as_html())
        return str(super()._repr_html_())

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def plot_surface(self, t: float | None = None, **kwargs: Any) -> Any:
        """Picture of F(·, ·, t), see :func:`fdadp.plot.surface`."""
        from fdadp.plot import surface

        return surface(self, t=t, **kwargs)

    def plot_predictions(self, X: CurveData, Y: CurveData | None = None, **kwargs: Any) -> Any:
        """Picture of predicted curves with bands beside observed ones, see :func:`fdadp.plot.predictions`."""
        from fdadp.plot import predictions

        return predictions(self, X, Y, **kwargs)

    # --- keeping the fit ---

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the fitted model to a pickle-free file; return its path.

        The layout is that of :mod:`fdadp.storage`, documented in :mod:`fdadp.regression.files`.
        """
        from fdadp.regression.files import save

        check_is_fitted(self, "coef_")
        return save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> AdditiveFunctionOnFunction:
        """Read a model that :meth:`save` wrote.

        Raises
        ------
        FileFormatError
            Not such a file, or one of another version.
        """
        from fdadp.regression.files import load

        return load(path)


def _as_groups(groups: ArrayLike | None, n: int) -> IntArray | None:
    if groups is None:
        return None
    if np.shape(groups) != (n,):
        raise InputError(f"groups must have shape ({n},), one entry per curve, got shape {np.shape(groups)}")
    codes = np.unique(np.asarray(groups), return_inverse=True)[1]
    return np.asarray(codes, dtype=np.int64)
