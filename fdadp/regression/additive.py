"""Additive function-on-function regression: ``Y_i(t) = μ(t) + ∫ F{X_i(s), s, t} ds + ε_i(t)``."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from fdadp._common.checks import flag, is_one_of, numbers, one_of
from fdadp._common.parameters import NestedParameters
from fdadp._common.threads import one_blas_thread
from fdadp._common.typing import ArrayLike, CurveData, FloatArray, IntArray
from fdadp.errors import InputError, PublicInputWarning
from fdadp.functional.curves import Curves, Kind, as_curves, as_grid, same_rows
from fdadp.privacy import Privacy
from fdadp.privacy._seen import Family
from fdadp.private.mechanisms import EndToEnd, Mechanism, mechanism_of
from fdadp.private.ranges import public_ranges
from fdadp.regression.missing import MISSING, MissingValues, information_lost
from fdadp.regression.predictions import Predictions
from fdadp.responses.functional import Functional, FunctionalResponse
from fdadp.solve.chunks import Chunks, dask_chunks, is_dask, ranges_of
from fdadp.solve.fitted import Fitted
from fdadp.solve.least_squares import fit_sums, refuse_same_curves
from fdadp.solve.residuals import widened
from fdadp.solve.sums import TrainingSums, add_up
from fdadp.terms.additive import Additive, AdditiveTerm
from fdadp.terms.base import Covariate, Term
from fdadp.terms.quantiles import QuantileTransform

if TYPE_CHECKING:
    from statsmodels.iolib.summary import Summary

    from fdadp.functional.fpca import Eigenbasis
    from fdadp.privacy.noise import Noise
    from fdadp.private.moments import NoisyMoments
    from fdadp.private.plan import Plan
    from fdadp.regression.check import BasisCheck

__all__ = ["AdditiveFunctionOnFunction"]


class AdditiveFunctionOnFunction(NestedParameters, Family, Predictions, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    r"""Additive function-on-function regression.

    .. math:: Y_i(t) = \mu(t) + \int F\{X_i(s), s, t\}\,ds + \varepsilon_i(t), \qquad
              F(x, s, t) = \sum_k \sum_{l,l'} B_l(x) B_{l'}(s) \phi_k(t) \theta_{l,l',k}

    φ_k are the leading eigenfunctions of the covariance of Y; x and s carry P-splines, with smoothing parameters of
    their own for each k. ``F(x, s, t) = β(s, t) x`` is the linear model. Everything is computed from sums over
    curves, so memory and the cost of choosing the smoothing parameters do not grow with n.

    Parameters
    ----------
    n_basis_x, n_basis_s : int or "auto"
        Number of B-splines over the values of X and over its grid, at least ``degree + 1``. ``"auto"`` grows with the
        number of curves, from 7 x 7 to 20 x 10 cubic splines (:func:`fdadp.terms.sizes.basis_sizes`): the
        penalties see to it that functions too many do no harm, while too few leave a bias that no standard error
        knows of.
    n_components : int, float or Eigenbasis
        Number K of eigenfunctions of Y, or the share of variance they must explain, in (0, 1]; or orthonormal functions
        given on the grid of Y, about the training curves' mean.
    smoothing : {"reml", "gcv"} or array_like of shape (2,) or (K, 2)
        How the smoothing parameters (λ_x, λ_s) of each component are chosen, or their values (on mgcv's scale).
    privacy : Privacy, optional
        The guarantee of a private fit, as ``Privacy(epsilon=, delta=, n=)``. In one, basis sizes, components and
        smoothing are chosen by the public plan and prior, and the settings above are not used. None fits without
        privacy, and then `bounds` and `mechanism` are checked but not used.
    bounds : dict of (float, float), optional
        Public ranges of the values of the curves in their units, ``{"X": (low, high), "Y": (low, high)}``, chosen
        without looking at them. A fit that is private end to end requires both; they are hints of location and size,
        and values are clipped at three half-widths (docs/bounds.md).
    mechanism : {"dp-aff", "moments", "output"} or Mechanism
        How a private fit is made. ``"dp-aff"``: noisy gradients of residuals on publicly whitened features, private end
        to end; (ε, δ), or pure ε without δ. ``"moments"``: one noisy second moment of features and responses, a
        statistic for any number of models (``moments_``), from which this one is computed; explains less.
        ``"output"``: the ridge solution with noise on its coefficients for the worst case; simple, and seldom of use.
        Objects have settings: :class:`fdadp.DPAFF`, :class:`fdadp.MomentPerturbation`,
        :class:`fdadp.OutputPerturbation` with ``prior=`` and ``allow_useless=``; and
        :class:`fdadp.published.PublishedNoise`, the literature's noise on the coefficients, with eigenbasis, mean and
        smoothing parameters taken from the data without noise: it is **not** differentially private (see ``ledger_``).
    degree : int
        Degree of the splines.
    penalty_order : int
        Order of the differences that are penalised.
    quadrature : {"trapezoid", "simpson", "riemann", "simpson_legacy"}
        Rule for ∫ ds, see :func:`fdadp.functional.quadrature.quadrature_weights`.
    fpca : {"face", "dense"}
        Eigenfunctions of Y with or without smoothing of the covariance. With ``"face"``, grids of Y with fewer than
        12 points are treated as ``"dense"``.
    missing : {"auto", "raise", "linear", "smooth", "fpca"}
        Treatment of missing values (NaN) and irregular curves: refuse them; fill each curve's gaps by straight lines
        (at its ends by the nearest value); smooth each curve by penalised B-splines; or fill them in by their
        conditional expectation under an FPCA for sparse curves. With ``"fpca"`` gaps of Y are filled twice, the second
        time about what X lets expect, and what filled-in values are uncertain by enters the residual variance and the
        standard errors; the other two take them for observed. A part of the grid on which no curve was observed is an
        error. ``"auto"`` is ``"raise"``, in a private fit ``"linear"``. There ``"raise"`` and ``"fpca"`` are refused
        before anything is read: an error would tell of the data, and an FPCA needs the other people's curves. Gaps of X
        are then filled within each row, at no cost of privacy (``"smooth"``: by a penalised smoother with public
        settings), and of Y a row counts where it was observed; a row without any observation contributes zero.
    x_transform : {None, "quantile"}
        ``"quantile"`` takes X(s) by its rank among the training curves at s (McLean et al. 2014; refund's
        ``Qtransform``): for skewed X, where evenly spread knots leave most cells empty. Not in private fits, nor from
        chunks.
    period_s : float, optional
        Makes F periodic in s, as mgcv's ``bs = "cc"``: s and s + period_s are the same point. 365 where the grid is
        1, ..., 365, so that day 365 meets day 1; 24 where it is 0, ..., 24 hours. The penalty over s is then the
        integrated squared second derivative. Not in private fits. (t has no such setting: eigenfunctions of periodic
        responses are nearly periodic by themselves.)
    progress : bool or "auto"
        Progress bars: always, never, or on work of more than two seconds.

    Attributes
    ----------
    coef_ : ndarray of shape (K, n_basis_x, n_basis_s)
        ``F_k(x_l, s_l')`` at evenly spread points of the range of X (with ``x_transform``: of its levels from 0 to 1)
        and of the grid (of the period), centred so that F_k has mean zero over the training curves at each s
        (functions of s alone are not identified).
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
        Pointwise variance of Y about E[Y | X], corrected for the degrees of freedom used. What the features explain
        outside the kept components is not in it, but in the standard errors (:meth:`predict_se`).
    criterion_ : ndarray of shape (K,)
        Value of the criterion at the smoothing parameters (REML where these are given).
    r2_ : float
        Share of the training curves' variance (integrated over t) that the fit explains.
    x_range_ : (float, float)
        Range of the training predictors, in units of X.
    s_, t_ : ndarray
        Grids of X and Y.
    n_curves_, n_features_in_ : int
        Number of training curves (in a private fit the declared or the released number of persons), and of points of
        a predictor curve.
    plan_ : Plan or None
        How a private fit shared out its budget.
    notes_ : tuple of str
        What the releases of a private fit say of its bounds, of n and of what it explains; from released values only.
        Without privacy: that X lies on a few basis functions only.
    moments_ : NoisyMoments or None
        The private statistic of ``mechanism="moments"``, not kept in files.
    ledger_ : Ledger or None
        What was released, under which assumptions.
    privacy_ : Privacy or None
        The guarantee of the fit, whatever was set since; None where there is none, as with the published scheme.

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
    (2, 10, 7)
    >>> model.predict(weather.X[:3])
    FDataGrid(...)
    """

    def __init__(
        self,
        *,
        n_basis_x: int | str = "auto",
        n_basis_s: int | str = "auto",
        n_components: float | Eigenbasis = 0.95,
        smoothing: str | ArrayLike = "reml",
        privacy: Privacy | None = None,
        bounds: Mapping[str, tuple[float, float]] | None = None,
        mechanism: str | Mechanism = "dp-aff",
        degree: int = 3,
        penalty_order: int = 2,
        quadrature: str = "trapezoid",
        fpca: str = "face",
        missing: str = "auto",
        x_transform: str | None = None,
        period_s: float | None = None,
        progress: bool | str = "auto",
    ) -> None:
        self.n_basis_x = n_basis_x
        self.n_basis_s = n_basis_s
        self.n_components = n_components
        self.smoothing = smoothing
        self.privacy = privacy
        self.bounds = bounds
        self.mechanism = mechanism
        self.degree = degree
        self.penalty_order = penalty_order
        self.quadrature = quadrature
        self.fpca = fpca
        self.missing = missing
        self.x_transform = x_transform
        self.period_s = period_s
        self.progress = progress

    _n_unpenalized: ClassVar[int | None] = None
    """Dimension that REML counts as unpenalised, for comparisons with programs that count otherwise."""

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
            Where X, Y and `groups` have labels of rows (data frames, series) these must be equal and in one order; in
            a private fit they are not looked at unless ``Privacy(labels="public")`` says so.
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
            X and Y of different n or with other row labels, column labels that are no grid, values that are not finite
            (with ``missing="raise"``, the default without privacy), too few curves, constant X, a basis too small for
            its degree, more components than the data allow, unknown options.
        PrivacyError
            A mechanism that is not available; raised before the data are read.
        """
        self._check_settings()
        if self.privacy is not None:
            self.privacy.check_unit(groups)
        if self._is_private:
            return self._fit_private(X, Y, s, t, groups)
        if is_dask(X) or is_dask(Y):
            return self.fit_chunks(dask_chunks(X, Y), s=s, t=t)
        x, y = as_curves(X, s, name="X"), as_curves(Y, t, name="Y")
        if len(x) != len(y):
            raise InputError(f"X and Y must hold the same number of curves, got {len(x)} and {len(y)}")
        same_rows(X=x, Y=y, groups=groups)
        persons = _as_groups(groups, len(x))
        self._missing = MissingValues(self._gaps)
        complete_x = self._missing.fit_x(x)
        transform, own_range, levels = None, None, complete_x
        if self.x_transform == "quantile":
            transform = QuantileTransform.of(complete_x)
            own_range, levels = (0.0, 1.0), replace(complete_x, values=transform(complete_x))
        complete_y, uncertain = self._missing.complete_y(y)
        fitted = self._fit(Chunks.of(levels, complete_y, self.progress), x_range=own_range, uncertain=uncertain)
        if uncertain is not None:  # gaps of Y once more, now about what X lets expect
            about = _with_transform(fitted, transform, complete_x).predict({"X": complete_x})[0]
            complete_y, uncertain = self._missing.complete_y(y, about=about)
            fitted = self._fit(Chunks.of(levels, complete_y, self.progress), x_range=own_range, uncertain=uncertain)
        fitted = _with_transform(fitted, transform, complete_x)
        self._adopt(self._publish(fitted, Chunks.of(complete_x, complete_y, self.progress), persons))
        self._remember_kind(x, y)
        return self

    def fit_chunks(
        self,
        chunks: Sequence[tuple[Any, ...]] | Callable[[], Iterable[tuple[Any, ...]]],
        *,
        s: ArrayLike | None = None,
        t: ArrayLike | None = None,
        groups: ArrayLike | bool | None = None,
        x_range: tuple[float, float] | None = None,
        kind: Kind | None = None,
    ) -> AdditiveFunctionOnFunction:
        """Fit from chunks of curves that need not fit into memory together; the answer is that of :meth:`fit`.

        Parameters
        ----------
        chunks : sequence of (X, Y), or function returning an iterator over (X, Y)
            Read twice; once, after a look at the first chunk, if `x_range` is given (fewer than 1,100 curves again a
            second time where the sizes of the bases are ``"auto"``). A private fit keeps up to 256 MiB of curves (as
            float64), and as many of features: it reads once what fits, else some 30 times, with the same result bit
            for bit as :meth:`fit` for the same noise, whatever the chunks.
            :func:`fdadp.solve.chunks.Chunks` says what is accepted.
        s, t : array_like, optional
            Grids of plain arrays; default even on [0, 1]. A private fit wants them declared.
        groups : array_like of shape (n,) or True, optional
            Private fit: True where the chunks are (X, Y, groups); for a list of chunks also the person of each row of
            all of them one after the other. The rows of a person may be spread over chunks.
        x_range : (float, float), optional
            Range of X, if it is known; values beyond it enter by linear continuation. Not for private fits, whose
            range is in `bounds`.
        kind : {"array", "frame", "fdatagrid"}, optional
            What predictions come as; default that of Y. A private fit does not look at the chunks: its default is
            "array", and the labels of a frame are `t` where that is a :class:`pandas.Index`.

        Returns
        -------
        self

        Raises
        ------
        InputError
            As :meth:`fit`; also, without privacy, ``missing`` other than ``"raise"``, and one-way iterators.
        PrivacyError
            As :meth:`fit`; also, in a private fit, a source that fails while it is read: the budget is then spent.
        """
        self._check_settings()
        if self._is_private:
            if x_range is not None:
                raise InputError(f"x_range must be None in a private fit, got {x_range!r}: see bounds")
            return self._fit_private_chunks(chunks, s, t, groups, kind)
        if groups is not None:
            raise InputError("groups must be None when fitting from chunks without end-to-end privacy")
        if self._gaps != "raise":
            raise InputError(f"missing must be 'raise' when fitting from chunks, got {self.missing!r}")
        if x_range is not None:
            bounds = numbers(x_range, "x_range")
            if bounds.shape != (2,) or not np.isfinite(bounds).all() or not bounds[0] < bounds[1]:
                raise InputError(f"x_range must be a pair (low, high) of numbers, got {x_range!r}")
            x_range = (float(bounds[0]), float(bounds[1]))
        if self.x_transform is not None:
            raise InputError("x_transform must be None when fitting from chunks: quantiles need all curves at once")
        self._missing = MissingValues("raise")
        source = Chunks(chunks, s, t, self.progress)
        self._adopt(self._publish(self._fit(source, x_range=x_range), source))
        columns, y = source.head()
        self._remember_kind(columns["X"], y)
        self._y_kind = kind or y.kind
        return self

    def _check_settings(self) -> None:
        """Public validation: of settings only, before the first curve is read."""
        if isinstance(self.smoothing, str) and self.smoothing not in ("reml", "gcv"):
            raise InputError(f"smoothing must be 'reml', 'gcv' or smoothing parameters, got {self.smoothing!r}")
        for name, allowed in (
            ("fpca", ("face", "dense")),
            ("missing", MISSING),
        ):
            one_of(getattr(self, name), name, allowed)
        if not isinstance(self.progress, str):
            flag(self.progress, "progress")
        else:
            one_of(self.progress, "progress", ("auto",))
        self._terms()  # checks their settings
        if not is_one_of(self.x_transform, (None, "quantile")):
            raise InputError(f"x_transform must be None or 'quantile', got {self.x_transform!r}")
        public_ranges(self.bounds, required=False)
        mechanism = mechanism_of(self.mechanism)
        if self.privacy is not None:
            for name in ("x_transform", "period_s"):
                if getattr(self, name) is not None:
                    raise InputError(f"{name} must be None in a private fit, got {getattr(self, name)!r}")
            if not isinstance(self.privacy, Privacy):
                raise InputError(f"privacy must be a Privacy or None, got {type(self.privacy).__name__}")
            if isinstance(mechanism, EndToEnd):
                public_ranges(self.bounds)
                self.privacy.check()
                if self.privacy.n is not None:
                    mechanism.check_n(self.privacy, self.privacy.n)
        if self._is_private and self.missing in ("raise", "fpca"):
            why = "an error would tell of the data" if self.missing == "raise" else "it needs other people's curves"
            raise InputError(
                f"missing must be 'linear' or 'smooth' in a private fit (or 'auto', which is 'linear'), got "
                f"{self.missing!r}: {why}. Nothing was read and nothing was spent"
            )

    @property
    def _is_private(self) -> bool:
        """Whether the fit is to be private end to end."""
        return self.privacy is not None and mechanism_of(self.mechanism).end_to_end

    @property
    def _gaps(self) -> str:
        """What is done with gaps, ``missing="auto"`` resolved."""
        if self.missing != "auto":
            return self.missing
        return "linear" if self._is_private else "raise"

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
        from fdadp.private.inputs import check_groups, private_curves
        from fdadp.regression.files import check_saveable

        assert self.privacy is not None
        if self.privacy.labels == "public":
            same_rows(X=X, Y=Y, groups=groups)
        x, y = private_curves(X, s, "X"), private_curves(Y, t, "Y")
        if len(x) != len(y):
            raise InputError("X and Y must hold the same number of curves")
        if groups is not None:
            check_groups(groups, len(x))
        check_saveable(self, y.columns)
        self._missing = MissingValues(self._gaps, within_rows=True)  # of new curves, as of the training curves
        self._spend((x.values, y.values), groups, x.grid, y.grid, noise=noise)
        self._remember_kind(x, y)
        return self

    def _fit_private_chunks(
        self,
        chunks: Any,
        s: ArrayLike | None,
        t: ArrayLike | None,
        groups: ArrayLike | bool | None,
        kind: Kind | None,
    ) -> AdditiveFunctionOnFunction:
        """Fit from noisy releases about chunks, which nothing but the kernel reads."""
        from fdadp.private.chunks import PrivateChunks
        from fdadp.regression.files import check_saveable

        assert self.privacy is not None
        if s is None or t is None:
            raise InputError(
                "s and t must be the grids of X and Y when fitting privately from chunks, "
                f"got {'s' if s is None else 't'}=None: chunks are not looked at to find them"
            )
        x_grid, y_grid = as_grid(s, np.size(s), "s"), as_grid(t, np.size(t), "t")
        labels: Any = t if hasattr(t, "to_numpy") else None
        source = PrivateChunks(chunks, {"X": x_grid, "Y": y_grid}, groups=groups, kind=kind or "array", columns=labels)
        check_saveable(self, source.columns)
        self._missing = MissingValues(self._gaps, within_rows=True)
        self._spend(source, source.groups, x_grid, y_grid)
        self._y_kind, self._y_columns = source.kind, source.columns
        self._units: list[str | None] = [None, None]
        self._x_names = None
        return self

    def _spend(self, data: Any, groups: Any, s: FloatArray, t: FloatArray, *, noise: Noise | None = None) -> None:
        """Release the model of curves, of which only what is public was checked."""
        from fdadp.private.fit import fit_private

        mechanism = mechanism_of(self.mechanism)
        assert self.privacy is not None and isinstance(mechanism, EndToEnd)
        bounds = public_ranges(self.bounds)
        fitted, statistic, warned = fit_private(
            self, data, groups, s, t, self.privacy, mechanism, bounds, missing=self._gaps, noise=noise
        )
        (term,) = fitted.terms
        assert isinstance(term, AdditiveTerm)
        self._adopt(replace(fitted, terms=(replace(term, quadrature=self.quadrature),)))
        self.moments_: NoisyMoments | None = statistic
        self._fitted_with: dict[str, Any] = {"privacy": self.privacy_, "bounds": bounds, "mechanism": self.mechanism}
        for text in warned:  # at the end: where warnings are errors the ledger is there
            warnings.warn(text, PublicInputWarning, stacklevel=4)

    def _fit(
        self,
        chunks: Chunks,
        *,
        x_range: tuple[float, float] | None = None,
        uncertain: FloatArray | None = None,
    ) -> Fitted:
        sums = self._sums(chunks, x_range)
        if uncertain is not None:
            sums.moments.scatter[sums.n_features :, sums.n_features :] += uncertain
        with one_blas_thread():
            fitted = fit_sums(sums, self._response(sums), self.smoothing, self._n_unpenalized)
        if uncertain is None:
            return fitted
        return widened(fitted, information_lost(uncertain / sums.n, fitted.response.basis, fitted.unit_variance))

    def _sums(self, chunks: Chunks, x_range: tuple[float, float] | None = None) -> TrainingSums:
        """Sums over the training curves."""
        ranges = {"X": x_range} if x_range else ranges_of(chunks)
        terms, known = self._fixed_terms(chunks, ranges), chunks.n
        sums = add_up(chunks, terms)
        if chunks.n == known:
            return sums
        again = self._fixed_terms(chunks, ranges)
        if [term.n_features for term in again] != [term.n_features for term in terms]:
            sums = add_up(chunks, again)  # few curves: only now their number is known
        return sums

    def _terms(self) -> tuple[Additive, ...]:
        """The terms, before the ranges of their covariates are known."""
        return (
            Additive(
                "X",
                self.n_basis_x,
                self.n_basis_s,
                self.degree,
                self.penalty_order,
                self.quadrature,
                self.period_s,
            ),
        )

    def _fixed_terms(self, chunks: Chunks, ranges: Mapping[str, tuple[float, float]]) -> list[Term]:
        heads = chunks.head()[0]
        return [term.fixed(Covariate(heads[term.column].grid, ranges[term.column], chunks.n)) for term in self._terms()]

    def _publish(self, fitted: Fitted, chunks: Chunks, persons: IntArray | None = None) -> Fitted:
        """Let a mechanism that is not private end to end add its noise to the fit."""
        self._fitted_with = {"privacy": None}
        if self.privacy is None:
            return fitted
        self._fitted_with = {"privacy": replace(self.privacy), "mechanism": self.mechanism}
        return mechanism_of(self.mechanism).perturb(fitted, chunks, self.privacy, persons)

    def _response(self, sums: TrainingSums) -> FunctionalResponse:
        """The response on its basis."""
        y = sums.y
        least = 2 * self.penalty_order + 1
        if y.n < least:
            raise InputError(f"X and Y must hold at least {least} curves, got {y.n}")
        refuse_same_curves("Y", y)
        return Functional(self.n_components, self.fpca).fixed(y.n, y.mean, y.scatter, sums.t)

    def _adopt(self, fitted: Fitted) -> None:
        """Publish a fit as attributes."""
        self._fitted = fitted
        basis, residual, term = fitted.response.basis, fitted.residual, self._term
        self.coef_ = fitted.coefficients[0]
        self.smoothing_parameters_, self.edf_, self.criterion_ = (
            fitted.smoothing_parameters,
            fitted.edf,
            fitted.criterion,
        )
        self.eigenfunctions_, self.eigenvalues_ = basis.functions, basis.values
        self.explained_variance_ratio_ = basis.explained_ratio
        self.mean_, self.t_ = basis.mean, basis.grid
        self.residual_variance_, self.noise_variance_ = residual.variance, residual.noise_variance
        self.r2_ = residual.r2
        self.x_range_, self.s_ = term.x_range, term.grid
        self.n_curves_, self.n_features_in_ = fitted.n, term.grid.size
        self.notes_, self.ledger_, self.privacy_ = fitted.notes, fitted.ledger, fitted.privacy
        self.plan_ = fitted.plan
        self.moments_ = None

    def _remember_kind(self, x: Curves, y: Curves) -> None:
        self._y_kind, self._y_columns = y.kind, y.columns
        self._units = [x.unit, y.unit]
        self._x_names = None if x.gridded or x.columns is None else [str(name) for name in x.columns]

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
        from fdadp.private.preview import preview

        self._check_settings()
        if self.privacy is None or not self._is_private:
            raise InputError(
                "privacy and mechanism must be private end to end to have a plan, as Privacy(epsilon=, delta=)"
            )
        mechanism = mechanism_of(self.mechanism)
        assert isinstance(mechanism, EndToEnd)
        return preview(self.privacy, mechanism, s, t, n=n)[0]

    # --- looking at the fit ---

    def summary(self) -> Summary:
        """Tables of the fit, as text (``print``) and HTML (in a notebook)."""
        from fdadp.regression.summary import summarise

        check_is_fitted(self, "coef_")
        return summarise(self)

    def check(self, X: CurveData, Y: CurveData, s: ArrayLike | None = None, t: ArrayLike | None = None) -> BasisCheck:
        """Say whether the bases and the number of components are large enough, as mgcv's ``k.check`` does.

        The model is cross-validated beside ones with a larger basis over x, over s, and more components. A size is
        too small where the larger one explains held-out curves better by more than chance; enlarge it and check again.
        Some twenty fits.

        Parameters
        ----------
        X, Y, s, t
            The training curves, as :meth:`fit` takes them.

        Returns
        -------
        BasisCheck
            ``print`` shows a table; ``adequate`` is the verdict.

        Raises
        ------
        InputError
            A model with a privacy setting (the check reads the curves without privacy), or fewer than 25 curves.

        Examples
        --------
        >>> from fdadp import AdditiveFunctionOnFunction, simulate_affr
        >>> data = simulate_affr(scenario=2, n=300, seed=1)
        >>> print(AdditiveFunctionOnFunction().fit(data.X, data.Y).check(data.X, data.Y))  # doctest: +SKIP
        """
        from fdadp.regression.check import check_sizes

        check_is_fitted(self, "coef_")
        if self.privacy is not None:
            raise InputError("privacy must be None to check sizes: the check reads the curves without privacy")
        treat = MissingValues(self.missing)
        x, y = as_curves(X, s, name="X", default=self.s_), as_curves(Y, t, name="Y", default=self.t_)
        return check_sizes(self, treat.fit_x(x), treat.complete_y(y)[0])

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

        The layout is that of :mod:`fdadp.files.container`, documented in :mod:`fdadp.regression.files`.
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


def _with_transform(fitted: Fitted, transform: QuantileTransform | None, x: Curves) -> Fitted:
    """The fit as one to curves in units of X, where it was one to their ranks."""
    if transform is None:
        return fitted
    (term,) = fitted.terms
    assert isinstance(term, AdditiveTerm)
    own_range = float(x.values.min()), float(x.values.max())
    return replace(fitted, terms=(replace(term, x_range=own_range, transform=transform),))


def _as_groups(groups: ArrayLike | None, n: int) -> IntArray | None:
    if groups is None:
        return None
    if np.shape(groups) != (n,):
        raise InputError(f"groups must have shape ({n},), one entry per curve, got shape {np.shape(groups)}")
    codes = np.unique(np.asarray(groups), return_inverse=True)[1]
    return np.asarray(codes, dtype=np.int64)
