"""Additive function-on-function regression: ``Y_i(t) = μ(t) + ∫ F{X_i(s), s, t} ds + ε_i(t)``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fdadp._common.checks import is_number, is_one_of, one_of, whole
from fdadp._common.tasks import is_dask
from fdadp._common.typing import ArrayLike, CurveData, FloatArray
from fdadp.errors import InputError
from fdadp.functional.quadrature import RULES
from fdadp.functional.tables.alignment import same_rows
from fdadp.functional.tables.curves import as_curves
from fdadp.functional.tables.records import Records
from fdadp.privacy import Privacy
from fdadp.private.release.mechanisms import Mechanism
from fdadp.regression.additive.base import codes_of
from fdadp.regression.additive.from_chunks import FromChunks
from fdadp.regression.additive.views import Views
from fdadp.regression.reading.chunked_records import CurvePairs, pairs_of
from fdadp.regression.reading.completion import MISSING_CURVES, MissingValues
from fdadp.regression.reading.joined import aligned
from fdadp.regression.reading.person_rows import check_max_rows, check_person_rows, person_weights
from fdadp.solve.eigen.surface_fit import SurfaceFit
from fdadp.solve.form.chunks import pairs_in_partitions
from fdadp.terms.curves.functional_additive import surface_on
from fdadp.terms.quantiles import QuantileTransform
from fdadp.terms.sizes import basis_sizes, check_size
from fdadp.terms.surface import Surface

if TYPE_CHECKING:
    from fdadp.functional.fpca import Eigenbasis


@dataclass(kw_only=True, eq=False, repr=False)
class AdditiveFunctionOnFunction(FromChunks, Views):
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
        number of curves, from 7 x 7 to 20 x 10 cubic splines (:func:`fdadp.terms.sizes.basis_sizes`): too many do no
        harm, for they are penalised; too few leave a bias that no standard error knows of.
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
        statistic for any number of models (``moments_``), from which this one is computed; explains less.
        Objects have settings: :class:`fdadp.DPAFF` and :class:`~fdadp.private.release.mechanisms.MomentPerturbation`
        with ``prior=`` and ``allow_useless=``; and
        :class:`fdadp.published.PublishedNoise`, the literature's noise on the coefficients, with eigenbasis, mean and
        smoothing parameters taken from the data without noise: it is **not** differentially private (see ``ledger_``).
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
        Treatment of missing values (NaN) and irregular curves: refuse them; fill each curve's gaps by straight lines
        (at its ends by the nearest value); smooth each curve by penalised B-splines; or fill them in by their
        conditional expectation under an FPCA for sparse curves. So ``"fpca"`` treats gaps of X; of Y it fits what was
        observed, by generalised least squares under a smooth covariance of the errors
        (docs/decisions/0005-gaps-of-y-on-eigenfunctions.md), where the other two take what they fill in for observed.
        A part of the grid on which no curve was observed is an error. ``"auto"`` is
        ``"raise"``, in a private fit ``"linear"``. There ``"raise"`` and ``"fpca"`` are refused before anything is
        read: an error would tell of the data, and an FPCA needs the other people's curves. Gaps of X are then filled
        within each row, at no cost of privacy (``"smooth"``: by a penalised smoother with public settings), and of Y a
        row counts where it was observed; a row without any observation contributes zero.
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
            Predictor and response curves, one a row. Of Dask arrays, and DataArrays of them, blocks of rows
            are added up where Dask's active scheduler computes them (docs/cluster.md), and only sums come here; what
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
            X and Y of different n or with other row labels, column labels that are no grid, values that are not finite
            (with ``missing="raise"``, the default without privacy), too few curves, constant X, a basis too small for
            its degree, more components than the data allow, unknown options.
        PrivacyError
            A mechanism that is not available; raised before the data are read.
        """
        self._check_settings()
        if self._is_private:
            return self._fit_private(X, Y, s, t, groups, by=by)
        if self.privacy is not None:
            self.privacy.check_unit(groups)
        inputs, self.joined_ = aligned(by, {"X": X, "Y": Y} | ({} if groups is None else {"groups": groups}), "Y")
        X, Y, groups = inputs["X"], inputs["Y"], inputs.get("groups")
        if is_dask(X) or is_dask(Y):
            return self.fit_chunks(pairs_in_partitions(X, Y), s=s, t=t)
        if self.privacy is None and self._gaps == "raise" and self.x_transform is None:
            pairs = pairs_of(X, Y, s, t)
            if pairs is not None:
                return self.fit_chunks(pairs)
        x, y = as_curves(X, s, name="X"), as_curves(Y, t, name="Y")
        if len(x) != len(y):
            raise InputError(f"X and Y must hold the same number of curves, got {len(x)} and {len(y)}")
        if by != "position":
            same_rows(X=x, Y=y, groups=groups)
        persons = codes_of(groups, len(x))
        check_person_rows(self.person_rows, grouped=persons is not None)
        check_max_rows(self.person_rows, self.max_rows, 1 if persons is None else int(np.bincount(persons).max()))
        if person_weights(persons) is not None and self.person_rows != "sum":
            raise InputError(
                "person_rows must be 'sum' (each curve counts once) in an ordinary fit where persons have different "
                f"numbers of curves, got {self.person_rows!r}; FunctionalRegression has 'mean' too"
            )
        self._missing = MissingValues(self._gaps)
        complete_x = self._missing.fit_x(x)
        transform = QuantileTransform.of(complete_x) if self.x_transform == "quantile" else None
        if self._missing.how == "fpca" and np.isnan(y.values).any():
            self._missing.refuse_unobserved(y, "Y")
            found = self._of_gaps(complete_x, y, transform)
            if self.privacy is not None:  # the published scheme is about complete curves
                about = found.fit.form.predictor(Records(len(x), {"X": complete_x}), found.fit.coefficients)
                y = self._missing.complete_y(y, about)
            chunks = CurvePairs.of(complete_x, y, self.progress)
        else:
            chunks = CurvePairs.of(complete_x, self._missing.complete_y(y), self.progress)
            found = self._estimated(chunks, None, transform)
        self._adopt(self._publish(found, chunks, persons))
        self._remember(x, y)
        return self

    def _surface(
        self, grid: FloatArray, x_range: tuple[float, float], n: int | None, transform: QuantileTransform | None = None
    ) -> Surface:
        return surface_on(
            "X",
            "X",
            grid,
            x_range,
            basis_sizes((self.n_basis_x, self.n_basis_s), n, grid.size, self.degree),
            (self.degree - 1, self.penalty_order),
            ("n_basis_x", "n_basis_s", "period_s"),
            rule=self.quadrature,
            period=self.period_s,
            transform=transform,
            centred=True,
        )

    def _check_settings(self) -> None:
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
        super()._check_settings()
        if self._is_private and self.missing in ("raise", "fpca"):
            why = "an error would tell of the data" if self.missing == "raise" else "it needs other people's curves"
            raise InputError(
                f"missing must be 'linear' or 'smooth' in a private fit (or 'auto', which is 'linear'), got "
                f"{self.missing!r}: {why}. Nothing was read and nothing was spent"
            )

    @property
    def _least_curves(self) -> int:
        return 2 * self.penalty_order + 1

    @property
    def _gaps(self) -> str:
        return super()._gaps if self.missing == "auto" else self.missing

    def _adopt(self, found: SurfaceFit) -> None:
        super()._adopt(found)
        term = found.term
        self.coef_, self.x_range_, self.s_, self.n_features_in_ = found.values, term.x_range, term.grid, term.grid.size
