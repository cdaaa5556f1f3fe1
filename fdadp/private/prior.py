"""The public prior: what is believed about curves and surface before any data are read.

The private fit measures the data in coordinates that are white under this prior, so that a fixed amount of noise
costs as little as possible. A wrong prior costs accuracy, never privacy.
"""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass
from functools import cached_property, lru_cache
from numbers import Integral
from typing import Any

import numpy as np

from fdadp._common.checks import is_number
from fdadp._common.typing import ArrayLike, CurveData, FloatArray
from fdadp.errors import PrivacyError
from fdadp.functional.curves import Curves, as_curves
from fdadp.functional.quadrature import quadrature_weights
from fdadp.terms.additive import Additive
from fdadp.terms.base import HALF_WIDTH, Covariate, Unfixed

__all__ = ["PublicPrior", "WhiteDesign"]


@dataclass(frozen=True)
class PublicPrior:
    """Gaussian-process priors on X, on the surface F and on Y; all of it public.

    Parameters
    ----------
    x_scale : float, optional
        Expected standard deviation of X, in its units. Default: an eighth of the public range of X. Only a starting
        point: location and scale are refined privately where the budget allows.
    x_lengths : (float, float)
        Shortest and longest correlation length of X, as shares of its domain; log-uniform between them.
    x_level : float
        Standard deviation of the curves' own levels, relative to that of X.
    surface_x, surface_s : float
        Correlation lengths of F in x (share of ±4 standard deviations) and in s (share of the domain).
    linear : float
        Weight of surfaces that are linear in x.
    main : float
        Weight of surfaces that do not depend on s.
    y_length : float
        Correlation length of Y, as a share of its domain.
    n_basis_x, n_basis_s : int
        B-splines over x and s.
    n_response : int
        Number of basis functions of Y.
    max_features : int
        Features kept at most; the plan usually takes fewer.
    seed : int
        Of the curves simulated from the prior.
    pilot : ndarray of shape (n, S), optional
        Standardised public pilot curves on an even grid, which replace the simulated ones (:meth:`from_pilot`).

    Raises
    ------
    PrivacyError
        A scale, length or weight that is not positive, or a basis too small.
    """

    x_scale: float | None = None
    x_lengths: tuple[float, float] = (0.05, 0.5)
    x_level: float = 0.5
    surface_x: float = 0.15
    surface_s: float = 0.25
    linear: float = 2.0
    main: float = 0.1
    y_length: float = 0.25
    n_basis_x: int = 12
    n_basis_s: int = 7
    n_response: int = 8
    max_features: int = 60
    seed: int = 12345
    pilot: Any = None

    def __post_init__(self) -> None:
        try:
            lengths = tuple(float(v) for v in self.x_lengths)
        except (TypeError, ValueError):
            lengths = ()
        if len(lengths) != 2 or not 0 < lengths[0] <= lengths[1] < math.inf:
            raise PrivacyError(f"x_lengths must be a pair (short, long) of positive numbers, got {self.x_lengths!r}")
        object.__setattr__(self, "x_lengths", lengths)
        for name in ("x_scale", "x_level", "surface_x", "surface_s", "linear", "main", "y_length"):
            value = getattr(self, name)
            if name == "x_scale" and value is None:
                continue
            if not is_number(value) or not 0 < value < math.inf:
                raise PrivacyError(f"{name} must be positive, got {value!r}")
        for name, least in (("n_basis_x", 5), ("n_basis_s", 5), ("n_response", 1), ("max_features", 1), ("seed", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
                raise PrivacyError(f"{name} must be at least {least}, a whole number, got {value!r}")
            object.__setattr__(self, name, int(value))
        if self.pilot is not None and getattr(self.pilot, "ndim", 0) != 2:
            raise PrivacyError(f"pilot must be curves (n, S), see PublicPrior.from_pilot, got {self.pilot!r}")

    @classmethod
    def from_pilot(cls, X: CurveData, **kwargs: Any) -> PublicPrior:
        """Prior whose curves are those of a **public** pilot sample, for which no privacy is promised.

        Parameters
        ----------
        X : FDataGrid or array_like of shape (n, S)
            Public curves, at least 20; their scale and shape are taken over.
        **kwargs
            Other parameters of the prior.
        """
        curves = as_curves(X, name="X")
        if len(curves) < 20 or not np.isfinite(curves.values).all():
            raise PrivacyError(f"X must hold at least 20 complete pilot curves, got {len(curves)}")
        scale = float(curves.values.std())
        if not scale > 0:
            raise PrivacyError("X must vary, got constant pilot curves")
        standard = (curves.values - curves.values.mean()) / scale
        return cls(x_scale=scale, pilot=standard, **kwargs)

    def curves(self, grid: FloatArray, n_per_length: int = 100, n_lengths: int = 40) -> FloatArray:
        """Curves from the prior, standardised (mean 0, scale about 1), on a grid on [0, 1]; shape (m, S)."""
        if self.pilot is not None:
            at = np.linspace(0, 1, self.pilot.shape[1])
            return np.stack([np.interp(grid, at, curve) for curve in self.pilot])
        rng = np.random.default_rng(self.seed)
        distance = np.abs(grid[:, None] - grid[None])
        low, high = np.log(self.x_lengths)
        parts = []
        for _ in range(n_lengths):
            kernel = np.exp(-0.5 * (distance / np.exp(rng.uniform(low, high))) ** 2)
            root = np.linalg.cholesky(kernel + 1e-8 * np.eye(grid.size))
            scale = np.exp(rng.normal(0, 0.25))
            level = rng.normal(0, self.x_level, n_per_length)
            shape = (root @ rng.normal(size=(grid.size, n_per_length))).T
            parts.append(scale * shape * np.sqrt(0.8) + level[:, None])
        return np.vstack(parts)

    def design(self, s: ArrayLike, t: ArrayLike, term: Unfixed | None = None) -> WhiteDesign:
        """Public coordinates on the grids of X and Y, of the additive term or another; the last ones are remembered."""
        s, t = (np.array(grid, dtype=np.float64) for grid in (s, t))
        term = Additive() if term is None else term
        if self.pilot is not None:
            return WhiteDesign(self, s, t, term)
        design = copy(_design(self, tuple(s.tolist()), tuple(t.tolist()), term))
        design.s, design.t = s, t  # which fitted models hand to their users
        return design

    def response(self, t: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Orthonormal basis of Y from its prior covariance, and the prior shares of variance of its functions.

        Parameters
        ----------
        t, weights : ndarray of shape (T,)
            Grid on [0, 1] and quadrature weights that sum to one.

        Returns
        -------
        functions : ndarray of shape (T, m)
        shares : ndarray of shape (m,)
        """
        kernel = np.exp(-0.5 * ((t[:, None] - t) / self.y_length) ** 2)
        kernel += 0.5 + 2 * np.outer(t - 0.5, t - 0.5)
        root = np.sqrt(weights)
        values, vectors = np.linalg.eigh(root[:, None] * kernel * root)
        order = np.argsort(-values)[: min(self.n_response, t.size)]
        return np.ascontiguousarray(vectors[:, order] / root[:, None]), values[order] / values[order].sum()

    def plot(self, **kwargs: Any) -> Any:
        """Picture of curves, surfaces and responses that the prior holds for likely, see :func:`fdadp.plot.prior`."""
        from fdadp.plot import prior

        return prior(self, **kwargs)

    def describe(self) -> str:
        """One line for the ledger."""
        source = "simulated curves" if self.pilot is None else f"{len(self.pilot)} public pilot curves"
        scale = "range/8" if self.x_scale is None else f"{self.x_scale:g}"
        return f"{source}, scale of X {scale}, {self.n_basis_x} x {self.n_basis_s} splines, seed {self.seed}"


class WhiteDesign:
    """Coordinates that are white under a public prior.

    Features of a curve are ``(1, (Z(x) - z0) W)``; a response is described by its coefficients on `response`.

    Attributes
    ----------
    term : Term
        On standardised curves, on [0, 1].
    centre : ndarray of shape (p,)
        Prior mean z0 of the raw features.
    whitening : ndarray of shape (p, d)
        W: white under (prior of X) x (prior of F), the most telling direction first.
    feature_shares : ndarray of shape (d,)
        Prior share of each direction in the variance that the surface explains.
    geometric_scale : float
        Geometric mean, under the prior, of a standardised curve's root mean square.
    response : ndarray of shape (T, m)
        Orthonormal basis of Y, from its prior covariance.
    response_shares : ndarray of shape (m,)
        Prior shares of variance of its functions.
    s_weights, t_weights : ndarray
        Quadrature weights that sum to one.
    """

    def __init__(self, prior: PublicPrior, s: FloatArray, t: FloatArray, term: Unfixed) -> None:
        self.prior, self.s, self.t = prior, s, t
        self.unit_s, self.unit_t = ((g - g[0]) / (g[-1] - g[0]) for g in (s, t))
        self.s_weights, self.t_weights = quadrature_weights(self.unit_s), quadrature_weights(self.unit_t)
        start = term.standard(Covariate(self.unit_s, (-HALF_WIDTH, HALF_WIDTH)), prior)
        curves = np.clip(prior.curves(self.unit_s), -HALF_WIDTH, HALF_WIDTH)
        rows = np.zeros((len(curves), start.n_features))
        self.term = start.learned(start.add_to(Curves(curves, self.unit_s), rows), len(curves))
        self.centre = rows.mean(axis=0)
        self.geometric_scale = float(np.exp(np.log(np.sqrt((curves * curves) @ self.s_weights)).mean()))
        root = _symmetric_root(self.surface_covariance)
        shares, axes = np.linalg.eigh(root @ np.atleast_2d(np.cov(rows.T)) @ root)
        order = np.argsort(-shares)[: prior.max_features]
        order = order[shares[order] > 1e-12 * shares.max()]
        self.feature_shares = shares[order] / shares[order].sum()
        self.whitening = np.ascontiguousarray(root @ axes[:, order] / np.sqrt(shares[order]))
        self._set_response()

    @cached_property
    def surface_covariance(self) -> FloatArray:
        """Prior covariance of the coefficients of the features, shape (p, p)."""
        return self.term.prior_covariance(self.prior)

    def rows(self, standard: FloatArray) -> FloatArray:
        """Feature rows of standardised curves (n, S) on the grid, shape (n, p)."""
        return self.term.rows(Curves(standard, self.unit_s))

    def _set_response(self) -> None:
        self.response, self.response_shares = self.prior.response(self.unit_t, self.t_weights)


@lru_cache(maxsize=8)
def _design(prior: PublicPrior, s: tuple[float, ...], t: tuple[float, ...], term: Unfixed) -> WhiteDesign:
    return WhiteDesign(prior, np.array(s), np.array(t), term)


def _symmetric_root(matrix: FloatArray) -> FloatArray:
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T)
