"""``FPCA``: functional principal components as a scikit-learn transformer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fdadp._common.argument_checks import flag, fraction, one_of
from fdadp._common.typing import ArrayLike, CurveData, FloatArray
from fdadp.errors import InputError
from fdadp.functional.fpca.components import Components
from fdadp.functional.fpca.eigenbasis import (
    AT_ONCE,
    Eigenbasis,
    check_observed,
    dense_eigenbasis,
    few_of_curves,
    few_of_many,
)
from fdadp.functional.fpca.face import FaceSmoother
from fdadp.functional.fpca.sparse import sc_eigenbasis
from fdadp.functional.fpca.ssvd import sequential_scores, ssvd_eigenbasis
from fdadp.functional.quadrature import RULES
from fdadp.functional.tables.curve_inputs import as_curves, check_finite
from fdadp.functional.tables.curve_sample import Curves
from fdadp.functional.tables.row_and_grid_labels import same_rows

OF_GAPS = "method 'sc' takes curves with gaps"
METHODS = ("face", "dense", "sc", "ssvd")


@dataclass(kw_only=True, eq=False, repr=False)
class FPCA(Components):
    """Functional principal component analysis.

    Parameters
    ----------
    n_components : int, float or None
        Number of components, or in (0, 1] the share of variance to explain (the first number whose share
        exceeds it). ``None`` (``method="ssvd"`` only): the threshold of Gavish & Donoho.
    method : {"face", "dense", "sc", "ssvd"}
        * ``"face"``: covariance smoothed by FACE (Xiao et al. 2016), for complete curves with noise;
        * ``"dense"``: the plain covariance (divisor n − 1), as in scikit-fda;
        * ``"sc"``: smoothed covariance and conditional expectation (Yao, Müller & Wang 2005), for missing
          values (NaN) and sparse curves;
        * ``"ssvd"``: smoothed singular value decomposition (Huang, Shen & Buja 2008).
    max_components : int, optional
        Cap on the number found by share of variance.
    n_knots : int, optional
        Of ``"face"``; default ``min(35, T // 3)`` (refund: 35).
    n_basis : int
        Spline functions of ``"sc"``.
    shrink : bool
        With ``"face"``: scores are best linear predictions, shrunk by λ/(λ + σ²w) as ``fpca.face`` gives them.
        Default: projections ``∫ (Y − μ) φ_k``, which the regressions use. ``"sc"`` always predicts.
    refine : bool
        With ``"face"``: look for the least GCV between the 100 points of refund's grid.
    quadrature : {"trapezoid", "equal", "simpson", "riemann"}
        Rule of the inner products; ``"equal"`` is the Euclidean norm of refund's FACE and SVD.

    Attributes
    ----------
    grid_, weights_, mean_ : ndarray of shape (T,)
        The mean is that of the curves at each point; only ``"sc"`` smooths it (refund's ``fpca.face`` does, too, which
        shows where the noise is white). The weights are those of the trapezoidal rule, on uneven grids too, where
        refund's are equal.
    eigenfunctions_ : ndarray of shape (K, T)
        Unit L2 norm; the entry of largest absolute value is positive.
    eigenvalues_ : ndarray of shape (K,)
        In L2 units, divisor n for ``"face"`` and ``"sc"`` (as in refund), n − 1 for the others.
    explained_variance_ratio_ : ndarray of shape (K,)
    noise_variance_ : float
        Of white noise and, with ``"sc"``, of what the kept components leave out (maximum likelihood, see
        :func:`~fdadp.functional.fpca.sc_eigenbasis`). 0 for ``"dense"`` and ``"ssvd"``, which do not estimate it.
    n_components_ : int
    basis_ : Eigenbasis
        All of the above in one.

    References
    ----------
    See :func:`~fdadp.functional.fpca.face_eigenbasis`, :func:`~fdadp.functional.fpca.dense_eigenbasis`,
    :func:`~fdadp.functional.fpca.sc_eigenbasis`, :func:`~fdadp.functional.fpca.ssvd_eigenbasis`.

    Examples
    --------
    >>> import numpy as np
    >>> t = np.linspace(0, 1, 50)
    >>> scores = np.random.default_rng(0).normal(size=(200, 2)) * [2, 1]
    >>> Y = scores @ (np.sqrt(2) * np.sin(np.outer([1, 2], np.pi * t)))
    >>> fpca = FPCA(n_components=0.99).fit(Y, t=t)
    >>> fpca.n_components_, fpca.transform(Y).shape
    (2, (200, 2))
    """

    n_components: float | None = 0.95
    method: str = "face"
    max_components: int | None = None
    n_knots: int | None = None
    n_basis: int = 10
    shrink: bool = False
    refine: bool = False
    quadrature: str = "trapezoid"

    def fit(self, Y: CurveData, y: Any = None, *, t: ArrayLike | None = None) -> FPCA:
        """Find the eigenbasis.

        Parameters
        ----------
        Y : FDataGrid, FDataBasis, FDataIrregular, DataFrame or array_like of shape (n, T)
            At least 2 curves. NaN only with ``method="sc"``.
        y : ignored
            Here for pipelines.
        t : array_like of shape (T,), optional
            Grid; default: that of `Y`, else even on [0, 1].

        Raises
        ------
        InputError
            Bad parameters or curves; the text names the argument or the curve and position.
        """
        self._check_parameters()
        curves = as_curves(Y, t, name="Y")
        if y is not None and np.ndim(y) > 0 and len(y) != len(curves):
            raise InputError(
                f"y is ignored and must have one entry per curve, {len(curves)}, got {len(y)}; a grid is t="
            )
        same_rows(Y=curves, y=y)
        if len(curves) < 2:
            raise InputError(f"Y must have at least 2 curves, got {len(curves)}")
        if self.method == "sc":
            check_observed(curves.values, "Y")
        else:
            check_finite(curves, "Y", cure=OF_GAPS)
            # Equal curves have a mean that differs from them by rounding; that is no variation.
            if np.ptp(curves.values, axis=0).max() <= 1e-14 * max(curves.values.max(), -curves.values.min()):
                raise InputError(f"Y must vary from curve to curve, got {len(curves)} equal ones")
        self._set(self._eigenbasis(curves.values, curves.grid))
        self._scored_by = self.method, self.shrink  # whatever is set later
        self._kind, self._columns = curves.kind, curves.columns
        return self

    def band(self, Y: CurveData, level: float = 0.95, *, t: ArrayLike | None = None) -> tuple[Any, Any]:
        """Pointwise limits for the curves behind noisy or sparse ones, about ``inverse_transform(transform(Y))``.

        Gaussian, from the conditional variance of the scores (Yao, Müller & Wang 2005, section 2.4) and the average
        variance that the kept components leave out. Mean, eigenfunctions and eigenvalues are taken as known, so bands
        of some hundreds of sparse curves cover a few per cent less than `level`.

        Parameters
        ----------
        Y, t
            As in :meth:`transform`.
        level : float
            In (0, 1): share of points of a curve, without noise, that lie within the limits.

        Returns
        -------
        lower, upper : of the kind that was fitted, n curves on the grid of the fit

        Raises
        ------
        InputError
            As :meth:`transform`; also where scores are projections, which have no such variance: ``method`` must be
            ``"sc"``, or ``"face"`` with ``shrink=True``.
        """
        from scipy.stats import norm

        check_is_fitted(self, "basis_")
        method, shrink = self._scored_by
        if method != "sc" and not shrink:
            raise InputError(
                f"method must be 'sc', or 'face' with shrink=True, for a band, got {method!r} with shrink=False: "
                "projections have no conditional variance"
            )
        fraction(level, "level")
        middle = self.basis_.reconstruct(self.transform(Y, t=t))
        curves = self._read(Y, t)
        spread = self._on(curves.grid).conditional_covariance(curves.values)
        functions = self.eigenfunctions_
        variance = np.einsum("kt,nkl,lt->nt", functions, spread, functions, optimize=True)
        half = norm.ppf((1 + level) / 2) * np.sqrt(variance + self.basis_.left_out_variance)
        return self._wrap(middle - half, curves.index), self._wrap(middle + half, curves.index)

    def _scores(self, basis: Eigenbasis, curves: Curves) -> FloatArray:
        method, shrink = self._scored_by
        if method == "sc":
            check_observed(curves.values, "Y")
            return basis.conditional_scores(curves.values)
        check_finite(curves, "Y", cure=OF_GAPS)
        if method == "ssvd":
            return sequential_scores(basis, curves.values)
        return basis.conditional_scores(curves.values) if shrink else basis.scores(curves.values)

    def _eigenbasis(self, values: FloatArray, grid: FloatArray) -> Eigenbasis:
        options: dict[str, Any] = {"max_components": self.max_components, "quadrature": self.quadrature}
        if self.method == "ssvd":
            return ssvd_eigenbasis(values, grid, n_components=self.n_components, **options)
        options["n_components"] = self.n_components
        if self.method == "sc":
            return sc_eigenbasis(values, grid, n_basis=self.n_basis, **options)
        mean, n = values.mean(axis=0), len(values)
        if self.method == "dense":
            if (k := few_of_many(self.n_components, self.max_components, values)) is not None:
                return few_of_curves(values, mean, grid, k, self.quadrature)
            centred = values - mean
            return dense_eigenbasis(mean, centred.T @ centred / (n - 1), grid, **options)
        smoother, total = FaceSmoother.on(grid, self.n_knots), 0.0
        turned = np.empty((n, smoother.basis.shape[1]))
        step = max(AT_ONCE // grid.size, 1)
        for start in range(0, n, step):  # the (T, T) covariance is never formed, nor are all curves centred at once
            centred = values[start : start + step] - mean
            turned[start : start + step] = centred @ smoother.basis
            total += float(np.vdot(centred, centred)) / n
        smoothed, noise, _ = smoother.smooth(turned.T @ turned / len(values), total, refine=self.refine)
        return smoother.eigenbasis(smoothed, noise, mean, **options)

    def _check_parameters(self) -> None:
        one_of(self.method, "method", METHODS)
        one_of(self.quadrature, "quadrature", (*RULES, "equal"))
        for name in ("shrink", "refine"):
            flag(getattr(self, name), name)
        if self.n_components is None and self.method != "ssvd":
            raise InputError(f"n_components must be a number with method={self.method!r}, got None")
        if self.shrink and self.method in ("dense", "ssvd"):
            raise InputError(f"shrink must be False with method={self.method!r}, which estimates no noise, got True")
