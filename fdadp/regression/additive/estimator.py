"""Additive function-on-function regression: ``Y_i(t) = μ(t) + ∫ F{X_i(s), s, t} ds + ε_i(t)``."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from fdadp._common.argument_checks import flag, fraction, is_number, is_one_of, numbers, one_of, whole
from fdadp._common.calling_language import warn
from fdadp._common.dask_tasks import is_dask
from fdadp._common.estimators import Estimator, Regressor, ShownByTable, check_is_fitted
from fdadp._common.typing import ArrayLike, CurveData, FloatArray
from fdadp.errors import ExtrapolationWarning, InputError, PublicInputWarning
from fdadp.functional.quadrature import RULES
from fdadp.functional.tables.curve_inputs import as_curves
from fdadp.functional.tables.curve_sample import Curves, Kind
from fdadp.functional.tables.row_and_grid_labels import same_rows
from fdadp.privacy import Privacy
from fdadp.privacy._unaccounted_fits import Kin, score_is_not_private
from fdadp.private.model_from_releases import WhiteDesign
from fdadp.private.public.column_ranges import Range, public_ranges
from fdadp.private.release.mechanisms import EndToEnd, Mechanism, mechanism_of
from fdadp.regression.additive.fitted_surface import FittedSurface, load, save, summarise
from fdadp.regression.additive.ordinary_fit import curve_pairs, fit_chunks, fit_curves, pairs_of
from fdadp.regression.reading.label_joins import aligned
from fdadp.regression.reading.missing_entries import MISSING_CURVES, Completion, completed_response
from fdadp.regression.reading.training_rows import private_law
from fdadp.solve.eigen.surface_fit import SurfaceFit
from fdadp.terms.additive_surface import check_size
from fdadp.terms.records import Records

if TYPE_CHECKING:
    from fdadp.functional.fpca import Eigenbasis
    from fdadp.functional.tables.printed_tables import PrintedSummary
    from fdadp.privacy.noise.sources import Noise
    from fdadp.private.plan.budget_plan import Plan
    from fdadp.regression.additive.basis_check import BasisCheck

NAMES = ("X", "Y")
"""Of the covariate and the response."""

Model = TypeVar("Model", bound="AdditiveFunctionOnFunction")


@dataclass(kw_only=True, eq=False, repr=False)
class AdditiveFunctionOnFunction(ShownByTable, Kin, Regressor, Estimator):
    r"""Additive function-on-function regression.

    .. math::

       Y_i(t) &= \mu(t) + \int F\{X_i(s), s, t\}\,ds + \varepsilon_i(t), \\
       F(x, s, t) &= \sum_k \sum_{l,l'} B_l(x) B_{l'}(s) \phi_k(t) \theta_{l,l',k}

    :math:`\phi_k` are the leading eigenfunctions of the covariance of Y; x and s carry P-splines, with smoothing
    parameters of their own for each k. ``F(x, s, t) = β(s, t) x`` is the linear model. Everything is computed from sums
    over curves, so memory and the cost of choosing the smoothing parameters do not grow with n.

    Parameters
    ----------
    n_basis_x, n_basis_s : int or "auto"
        Number of B-splines over the values of X and over its grid, at least ``degree + 1``. ``"auto"`` grows with the
        number of curves, from 7 x 7 to 20 x 10 cubic splines (:func:`fdadp.terms.additive_surface.basis_sizes`): too
        many do no harm, as they are penalised. Too few leave a bias that no standard error contains.
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
    mechanism : {"dp-aff", "moments"} or Mechanism
        How a private fit is made. ``"dp-aff"``: noisy gradients of residuals on publicly whitened features, private end
        to end; (ε, δ), or pure ε without δ. ``"moments"``: one noisy second moment of features and responses, a
        statistic for any number of models (``moments_``), from which this one is computed; explains less. Objects have
        settings: :class:`fdadp.DPAFF` and :class:`~fdadp.private.release.mechanisms.MomentPerturbation` with ``prior=``
        and ``allow_useless=``. :class:`fdadp.published.PublishedNoise` is the literature's noise on the coefficients.
        It takes eigenbasis, mean and smoothing parameters from the data without noise, and is **not** differentially
        private (see ``ledger_``).
    person_rows : {"mean", "sum"}, optional
        Of a private fit with groups. ``"mean"``, the default: each person counts once, by the mean of its curves.
        ``"sum"``: each curve counts once. An ordinary fit counts each curve once: it asks for ``"sum"`` where persons
        have different numbers of curves.
    max_rows : int, optional
        With ``person_rows="sum"`` in a private fit: curves of a person that count at most, a public number.
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
        Treatment of missing values (NaN) and irregular curves. Refuse them, fill each curve's gaps by straight lines
        (at its ends by the nearest value), or smooth each curve by penalised B-splines. Or fill them in by their
        conditional expectation under an FPCA for sparse curves. ``"fpca"`` does so with gaps of X. Of Y it fits what
        was observed, by generalised least squares under a smooth covariance of the errors
        (docs/decisions/0005-gaps-of-y-on-eigenfunctions.md). The other two take what they fill in for observed. A part
        of the grid on which no curve was observed is an error. ``"auto"`` is ``"raise"``, in a private fit
        ``"linear"``. There ``"raise"`` and ``"fpca"`` are refused before anything is read: an error would tell of the
        data, and an FPCA needs the other people's curves. Gaps of X are then filled within each row, at no cost of
        privacy (``"smooth"``: by a penalised smoother with public settings). Of Y a row counts where it was observed. A
        row without any observation contributes zero.
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
        and of the grid (of the period). F_k has mean zero over the training curves at each s, as functions of s alone
        are not identified.
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

    n_basis_x: int | str = "auto"
    n_basis_s: int | str = "auto"
    n_components: float | Eigenbasis = 0.95
    smoothing: str | ArrayLike = "reml"
    privacy: Privacy | None = None
    bounds: Mapping[str, tuple[float, float]] | None = None
    mechanism: str | Mechanism = "dp-aff"
    person_rows: str | None = None
    max_rows: int | None = None
    degree: int = 3
    penalty_order: int = 2
    quadrature: str = "trapezoid"
    fpca: str = "face"
    missing: str = "auto"
    x_transform: str | None = None
    period_s: float | None = None
    progress: bool | str = "auto"

    _fitted: ClassVar[str] = "coef_"
    _n_unpenalized: ClassVar[int | None] = None
    """Dimension that REML counts as unpenalised, for comparisons with programs that count otherwise."""
    _noise: ClassVar[Noise | None] = None
    """Source of the noise of private fits, for audits."""

    # --- fitting ---

    def fit(
        self,
        X: CurveData,
        Y: CurveData,
        *,
        s: ArrayLike | None = None,
        t: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        by: str | None = None,
    ) -> AdditiveFunctionOnFunction:
        """Fit the model.

        Parameters
        ----------
        X, Y : FDataGrid, DataFrame or array_like of shape (n, S) and (n, T)
            Predictor and response curves, one a row. Of Dask arrays, and DataArrays of them, blocks of rows are added
            up where Dask's active scheduler computes them (docs/cluster.md), and only sums come here. What
            :func:`fdadp.open_curves` gave is read in pieces, or all at once where other settings want that.
        s, t : array_like of shape (S,) and (T,), optional
            Grids of plain arrays; default even on [0, 1].
        groups : array_like of shape (n,), optional
            Person of each row: the privacy unit. Not used without privacy.
        by : {"label", "position"}, optional
            How rows of several tables belong together. Default: by label where all that was given has row labels, as
            data frames and series have; else by position. A label is the person's id (of a MultiIndex the first level;
            the others are the visit). See docs/theory/kernel.md, rule J.

        Returns
        -------
        self

        Raises
        ------
        InputError
            X and Y of different n or with other row labels, column labels that are no grid, or values that are not
            finite (with ``missing="raise"``, the default without privacy). Too few curves, constant X, a basis too
            small for its degree, more components than the data allow, unknown options.
        PrivacyError
            A mechanism that is not available; raised before the data are read.
        """
        self._check_settings()
        if self._is_private:
            from fdadp.regression.additive.private_fit import fit_private

            return self._keep(fit_private(self, X, Y, s, t, groups, by=by))
        if self.privacy is not None:
            self.privacy.check_unit(groups)
        inputs, joined = aligned(by, {"X": X, "Y": Y} | ({} if groups is None else {"groups": groups}), "Y")
        X, Y, groups = inputs["X"], inputs["Y"], inputs.get("groups")
        if is_dask(X) or is_dask(Y):
            return self.fit_chunks({"X": X, "Y": Y}, s=s, t=t)
        if self.privacy is None and self._gaps == "raise" and self.x_transform is None:
            pairs = pairs_of(X, Y, s, t)
            if pairs is not None:
                return self.fit_chunks(pairs)
        return self._keep(replace(fit_curves(self, X, Y, s, t, groups, by), joined=joined))

    def fit_chunks(
        self: Model,
        chunks: Sequence[Any] | Callable[[], Iterable[Any]] | Mapping[str, Any],
        *,
        s: ArrayLike | None = None,
        t: ArrayLike | None = None,
        groups: ArrayLike | bool | None = None,
        x_range: tuple[float, float] | None = None,
        kind: Kind | None = None,
    ) -> Model:
        """Fit from chunks of curves that need not fit into memory together; the answer is that of :meth:`fit`.

        Parameters
        ----------
        chunks : sequence of (X, Y), or function returning an iterator over (X, Y)
            A mapping with X and Y, as a piece of a table that was opened, will do. Read twice; once, after a look at
            the first chunk, if `x_range` is given (fewer than 1,100 curves again a second time where the sizes of the
            bases are ``"auto"``). Pairs that are ``dask.delayed``, or of Dask's arrays, are added up where Dask's
            active scheduler computes them (docs/cluster.md), and only sums come here. A private fit keeps up to 256 MiB
            of curves (as float64), and as many of features. It reads once what fits, else some 30 times. The result is
            the same bit for bit as that of :meth:`fit` for the same noise, whatever the chunks.
            :func:`fdadp.regression.additive.ordinary_fit.curve_pairs` says what is accepted.
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
            from fdadp.regression.additive.private_fit import fit_private_chunks

            return self._keep(fit_private_chunks(self, chunks, s, t, groups, kind))
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
        return self._keep(fit_chunks(self, curve_pairs(chunks, s, t, self.progress), x_range, kind))

    @classmethod
    def made_of(cls: type[Model], found: SurfaceFit, x: Curves, y: Curves) -> Model:
        """A model with default settings of a fit that was made elsewhere, and what its curves were like."""
        return cls()._keep(FittedSurface.of(found, Completion.none(), x, y, fitted_with={"privacy": None}))

    def _keep(self: Model, fitted: FittedSurface) -> Model:
        """Publish a fitted model as attributes, in place of an earlier one."""
        found = fitted.surface
        term = found.term
        self.fitted_: FittedSurface = fitted
        self.smoothing_parameters_, self.edf_ = found.smoothing_parameters, found.edf
        self.criterion_, self.eigenbasis_ = found.criterion, found.basis
        self.eigenfunctions_, self.eigenvalues_ = found.basis.functions, found.basis.values
        self.explained_variance_ratio_ = found.basis.explained_ratio
        self.mean_, self.t_ = found.basis.mean, found.basis.grid
        self.residual_variance_, self.noise_variance_ = found.law.values, found.noise_variance
        self.r2_, self.n_curves_, self.notes_ = found.r2, found.fit.n, found.notes
        self.plan_, self.ledger_, self.privacy_ = found.plan, found.ledger, found.privacy
        self.joined_, self.moments_ = fitted.joined, fitted.moments
        self.coef_, self.x_range_, self.s_, self.n_features_in_ = found.values, term.x_range, term.grid, term.grid.size
        for text in fitted.warned:  # at the end: where warnings are errors the ledger is there
            warn(text, PublicInputWarning)
        return self

    # --- settings ---

    def _check_settings(self) -> None:
        """Public validation: of settings only, before the first curve is read."""
        one_of(self.missing, "missing", MISSING_CURVES)
        if not is_one_of(self.x_transform, (None, "quantile")):
            raise InputError(f"x_transform must be None or 'quantile', got {self.x_transform!r}")
        for name in ("x_transform", "period_s"):
            if self.privacy is not None and getattr(self, name) is not None:
                raise InputError(f"{name} must be None in a private fit, got {getattr(self, name)!r}")
        one_of(self.quadrature, "quadrature", RULES)
        for name in ("n_basis_x", "n_basis_s"):
            least = check_size(getattr(self, name), name, self.degree)
            if not 1 <= whole(self.penalty_order, "penalty_order") < least:
                raise InputError(f"penalty_order must be at least 1 and below {name}, got {self.penalty_order!r}")
        if self.period_s is not None and not (is_number(self.period_s) and 0 < self.period_s < math.inf):
            raise InputError(f"period_s must be a number above 0 or None, got {self.period_s!r}")
        if isinstance(self.smoothing, str) and self.smoothing not in ("reml", "gcv"):
            raise InputError(f"smoothing must be 'reml', 'gcv' or smoothing parameters, got {self.smoothing!r}")
        one_of(self.fpca, "fpca", ("face", "dense"))
        if not is_one_of(self.progress, ("auto",)):
            flag(self.progress, "progress")
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
        if self._is_private and self.missing in ("raise", "fpca"):
            why = "an error would tell of the data" if self.missing == "raise" else "it needs other people's curves"
            raise InputError(
                f"missing must be 'linear' or 'smooth' in a private fit (or 'auto', which is 'linear'), got "
                f"{self.missing!r}: {why}. Nothing was read and nothing was spent"
            )

    @property
    def _is_private(self) -> bool:
        """Whether the fit is to be private end to end."""
        return self.privacy is not None and isinstance(mechanism_of(self.mechanism), EndToEnd)

    @property
    def _gaps(self) -> str:
        """What is done with gaps."""
        if self.missing != "auto":
            return self.missing
        return "linear" if self._is_private else "raise"

    def _public_ranges(self) -> dict[str, Range]:
        """Ranges of X and Y: given, or those of the study."""
        assert self.privacy is not None
        known = self.privacy.bounds_with(self.bounds)
        return public_ranges({name: known[name] for name in NAMES if name in known}, NAMES)

    def plan(self, *, s: ArrayLike | int = 51, t: ArrayLike | int = 51, n: float | None = None) -> Plan:
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
        from fdadp.private.release.plan_and_spend import preview

        self._check_settings()
        if self.privacy is None or not self._is_private:
            raise InputError(
                "privacy and mechanism must be private end to end to have a plan, as Privacy(epsilon=, delta=)"
            )
        mechanism = mechanism_of(self.mechanism)
        assert isinstance(mechanism, EndToEnd)
        return preview(self.privacy, mechanism, s, t, n=n, law=private_law(self.person_rows, self.max_rows))[0]

    # --- what the fit says of new curves ---

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
        In a private fit the surface is continued as a constant beyond the range of X. A prediction farther from the
        mean curve than 2.5 standard deviations of Y is pulled back by as much as it is uncertain. Of its excess e (in
        L2 norm) ``e³ / (e² + v)`` is kept, v being a quarter of the integrated variance that :meth:`predict_se` gives.
        All of it is computed from releases. The surface itself is not changed.
        """
        fitted = self._asked()
        x, points = fitted.curves(X, s), fitted.response.points(t)
        return fitted.shown(fitted.predictor(x, None, None, points), points, x)

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
        fitted = self._asked()
        x, points, errors = fitted.curves(X, s), fitted.response.points(t), fitted.errors
        mean = fitted.predictor(x, None, None, points)
        half = errors.half_width(x, points, errors.of_predictor(x, None, points), level)
        return fitted.shown(mean - half, points, x), fitted.shown(mean + half, points, x)

    def predict_se(self, X: CurveData, *, t: ArrayLike | None = None, s: ArrayLike | None = None) -> Any:
        r"""Pointwise standard errors of the predicted curves: of the mean E[Y | X], not of a new response.

        ``sqrt{Σ_k φ_k(t)² z' Var(Θ̂_k) z + R(t, t) / n + O(t)}``. O(t) is the variance over curves of the part of E[Y |
        X] outside the kept components, which the features explain and the model leaves out; with enough components it
        is 0. So the errors cover at each t on average over curves, whatever ``n_components`` is. They do not contain a
        part of F that the basis cannot follow. The default sizes leave little of it: at nominal 95 % the errors covered
        91 to 97 % in five simulated cohorts at n = 200 and 2,000. :meth:`check` shows it for other sizes.
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
        fitted = self._asked()
        x, points = fitted.curves(X, s), fitted.response.points(t)
        return fitted.shown(fitted.errors.of_predictor(x, None, points), points, x)

    def score(self, X: CurveData, Y: CurveData, sample_weight: None = None) -> float:
        """Share of the variance of Y (about its mean curve, integrated over t) that the predictions explain."""
        from fdadp.functional.metrics import functional_r2

        score_is_not_private(self)
        fitted = self._asked()
        inputs, _ = aligned(None, {"X": X, "Y": Y}, "Y")
        X, Y = inputs["X"], inputs["Y"]
        y, x = as_curves(Y, name="Y", default=self.t_), fitted.curves(X, None)
        if x.n != len(y):
            raise InputError(f"X and Y must hold the same number of curves, got {x.n} and {len(y)}")
        same_rows(X=x.curves("X"), Y=y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExtrapolationWarning)
            predicted = fitted.predictor(x, None, None, fitted.response.points(y.grid))
        return functional_r2(y.values, predicted, t=y.grid)

    def _asked(self) -> FittedSurface:
        """The fitted model; raises NotFittedError before the fit."""
        check_is_fitted(self, "fitted_")
        return self.fitted_

    # --- the surface ---

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
        at, shape = self._points(x, s, t)
        term = self.fitted_.surface.term
        functions = self.eigenbasis_.evaluate(at["t"])[1]
        values = term.effect(at["s"], at["x"]) @ term.coefficients(self.coef_) @ functions
        return np.ascontiguousarray(values.reshape(shape).transpose(1, 0, 2))

    def surface_se(self, x: ArrayLike, s: ArrayLike, t: ArrayLike) -> FloatArray:
        """Return standard errors of F on a product grid; of a private fit they count the noise of privacy.

        Parameters
        ----------
        x, s, t : array_like
            As for :meth:`surface`.

        Returns
        -------
        ndarray of shape (len(x), len(s), len(t))
            ``surface ± 1.96 surface_se`` holds F at some 95 % of the points where curves run. Measured are 96 % with
            1,000 curves, and 81 to 93 % with 100, as smoothing parameters count as known. Private fits have 94 to 99 %,
            about the mean over their prior's curves.

        Raises
        ------
        InputError
            `s` or `t` outside the training domain.

        References
        ----------
        Marra & Wood (2012), Coverage properties of confidence intervals for generalized additive model components,
        doi:10.1111/j.1467-9469.2011.00760.x

        Examples
        --------
        >>> from fdadp import AdditiveFunctionOnFunction, simulate_affr
        >>> data = simulate_affr(scenario=2, n=200, seed=1)
        >>> model = AdditiveFunctionOnFunction().fit(data.X, data.Y)
        >>> model.surface_se(x=[-1, 0, 1], s=[0.5], t=[0.25, 0.75]).shape
        (3, 1, 2)
        """
        at, shape = self._points(x, s, t)
        found = self.fitted_.surface
        design = found.fit.form.designs[-1]
        white = isinstance(design, WhiteDesign)  # these are centred
        rows = (design if white else found.term).effect(at["s"], at["x"])
        slopes = found.by_function.of_slopes(rows if white else found.term.of_centred(rows))
        variance = found.fit.sigma2 * slopes @ design.along.design(at["t"]).T ** 2
        unseen = design.unseen(at)
        total = variance if unseen is None else variance + unseen.reshape(variance.shape)
        return np.ascontiguousarray(np.sqrt(total).reshape(shape).transpose(1, 0, 2))

    def _points(self, x: ArrayLike, s: ArrayLike, t: ArrayLike) -> tuple[dict[str, FloatArray], tuple[int, int, int]]:
        """Points of s, x and t, and how many of each."""
        self._asked()
        at = {name: np.atleast_1d(numbers(v, name)) for name, v in (("s", s), ("x", x), ("t", t))}
        for name, domain in (("s", self.s_), ("t", self.t_)):
            low, high = domain[0], domain[-1]
            if ((at[name] < low) | (at[name] > high)).any():
                got = f"{at[name].min():g} to {at[name].max():g}"
                raise InputError(f"{name} must lie within [{low:g}, {high:g}], got {got}")
        return at, (at["s"].size, at["x"].size, at["t"].size)

    def summary(self) -> PrintedSummary:
        """Tables of the fit, as text (``print``) and HTML (in a notebook)."""
        self._asked()
        return summarise(self)

    def check(
        self, X: CurveData, Y: CurveData, *, s: ArrayLike | None = None, t: ArrayLike | None = None
    ) -> BasisCheck:
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
        from fdadp.regression.additive.basis_check import check_sizes

        self._asked()
        if self.privacy is not None:
            raise InputError("privacy must be None to check sizes: the check reads the curves without privacy")
        x, y = as_curves(X, s, name="X", default=self.s_), as_curves(Y, t, name="Y", default=self.t_)
        if self._gaps != "raise":
            rows = Records(len(x), {"X": x})
            x = Completion.learned(rows, {"X": self._gaps})(rows).curves("X")
        return check_sizes(self, x, completed_response(y, self._gaps))

    def plot_surface(self, t: float | None = None, **kwargs: Any) -> Any:
        """Picture of F(·, ·, t), see :func:`fdadp.plot.surface`."""
        from fdadp.plot import surface

        return surface(self, t=t, **kwargs)

    def plot_predictions(self, X: CurveData, Y: CurveData | None = None, **kwargs: Any) -> Any:
        """Picture of predicted curves with bands beside observed ones, see :func:`fdadp.plot.predictions`."""
        from fdadp.plot import predictions

        return predictions(self, X, Y, **kwargs)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the fitted model to a pickle-free file; return its path.

        The layout is that of :mod:`fdadp.files.npz_files`, documented in
        :mod:`fdadp.regression.additive.fitted_surface`.
        """
        self._asked()
        return save(self, path)

    @classmethod
    def load(cls: type[Model], path: str | os.PathLike[str]) -> Model:
        """Read a model that :meth:`save` wrote.

        Raises
        ------
        FileFormatError
            Not such a file, or one of another version.
        """
        return load(path, cls)
