"""The public prior: what is believed about curves and surface before any data are read.

The private fit measures the data in coordinates that are white under this prior
(:mod:`fdadp.private.plan.private_design`), so that a fixed amount of noise costs as little as possible. A wrong prior
costs accuracy, never privacy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp._common.argument_checks import is_number
from fdadp._common.typing import ArrayLike, CurveData, FloatArray
from fdadp.errors import PrivacyError
from fdadp.functional.tables.curve_inputs import as_curves
from fdadp.private.plan.private_design import PrivateDesign, made_of, of_a_surface
from fdadp.private.public.column_ranges import HALF_WIDTH, CurvesColumn, Range

if TYPE_CHECKING:
    from matplotlib.figure import Figure


LENGTHS, PER_LENGTH = 40, 100
"""Correlation lengths of the simulated curves, and curves of each."""
KEPT = 512
"""Points up to which the curves that were drawn last are kept: 16 MB."""
LOG_SCALE_SD, SHAPE_SHARE = 0.25, 0.8
"""Sd of the logarithm of their scales; share of the variance that is about their own levels."""
JITTER = 1e-8
FINE_LENGTH = 0.07
"""Correlation length in s of surfaces that vary fast."""
FURTHER, ROUGH_LENGTH = 16, 0.03
"""Response functions that are added where responses are seen to be rough, and the correlation length of these."""
DEGREE = 3
LEAST = {"n_basis_x": 5, "n_basis_s": 5, "n_response": 1, "max_features": 1, "seed": 0}
FEWEST_PILOTS = 20
DRAWN, PANELS, PANEL_SIZE = 12, 3, (3.6, 3.0)
"""Curves in each panel of a picture, panels, and inches of one."""
POINTS = 101
"""Of these curves."""
LINES: dict[str, Any] = {"linewidth": 0.9, "alpha": 0.8}
"""How they look."""


@dataclass(frozen=True)
class CurvePrior:
    """Prior of the curves of one covariate.

    Parameters
    ----------
    scale : float, optional
        Expected standard deviation, in units of the curves.
    lengths : (float, float)
        Shortest and longest correlation length, as shares of the domain; log-uniform between them.
    level : float
        Standard deviation of the curves' own levels, relative to that of the curves.
    seed : int
        Of the simulated curves.
    pilot : ndarray of shape (n, S), optional
        Standardised public curves on an even grid, instead of simulated ones.
    """

    scale: float | None = None
    lengths: tuple[float, float] = (0.05, 0.5)
    level: float = 0.5
    seed: int = 12345
    pilot: Any = None

    def curves(self, grid: FloatArray, n_per_length: int = PER_LENGTH, n_lengths: int = LENGTHS) -> FloatArray:
        """Curves from the prior, standardised (mean 0, scale about 1), on a grid on [0, 1]; shape (m, S)."""
        if self.pilot is not None:
            at = np.linspace(0, 1, self.pilot.shape[1])
            return np.stack([np.interp(grid, at, curve) for curve in self.pilot])
        draw = _drawn if grid.size <= KEPT else _drawn.__wrapped__
        return draw(self.seed, tuple(self.lengths), self.level, n_per_length, n_lengths, tuple(grid.tolist())).copy()

    def standard(self, grid: FloatArray) -> FloatArray:
        """The same, within ±4 as standardised curves are; shape (m, S)."""
        return np.clip(self.curves(grid), -HALF_WIDTH, HALF_WIDTH)


@lru_cache(maxsize=1)  # a fit asks for the same curves in turn
def _drawn(
    seed: int, lengths: tuple[float, float], level: float, n_per_length: int, n_lengths: int, grid: tuple[float, ...]
) -> FloatArray:
    rng, at = np.random.default_rng(seed), np.array(grid)
    distance = np.abs(at[:, None] - at[None])
    low, high = np.log(lengths)
    parts = []
    for _ in range(n_lengths):
        kernel = np.exp(-0.5 * (distance / np.exp(rng.uniform(low, high))) ** 2)
        root = np.linalg.cholesky(kernel + JITTER * np.eye(at.size))
        scale = np.exp(rng.normal(0, LOG_SCALE_SD))
        levels = rng.normal(0, level, n_per_length)
        shape = (root @ rng.normal(size=(at.size, n_per_length))).T
        parts.append(scale * shape * np.sqrt(SHAPE_SHARE) + levels[:, None])
    return np.vstack(parts)


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
    fine : float
        Share of surfaces that vary fast in s (correlation length .07), from 0 to below 1.
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

    Examples
    --------
    >>> PublicPrior(surface_x=0.3).surface_x
    0.3
    """

    x_scale: float | None = None
    x_lengths: tuple[float, float] = (0.05, 0.5)
    x_level: float = 0.5
    surface_x: float = 0.15
    surface_s: float = 0.25
    linear: float = 2.0
    main: float = 0.1
    fine: float = 0.0
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
        if not is_number(self.fine) or not 0 <= self.fine < 1:
            raise PrivacyError(f"fine must be a share from 0 to below 1, got {self.fine!r}")
        for name, least in LEAST.items():
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
        if len(curves) < FEWEST_PILOTS or not np.isfinite(curves.values).all():
            raise PrivacyError(f"X must hold at least {FEWEST_PILOTS} complete pilot curves, got {len(curves)}")
        scale = float(curves.values.std())
        if not scale > 0:
            raise PrivacyError("X must vary, got constant pilot curves")
        standard = (curves.values - curves.values.mean()) / scale
        return cls(x_scale=scale, pilot=standard, **kwargs)

    @property
    def x(self) -> CurvePrior:
        """The prior of the curves."""
        return CurvePrior(self.x_scale, self.x_lengths, self.x_level, self.seed, self.pilot)

    def surface_covariance(self, n_x: int, n_s: int) -> FloatArray:
        """Prior covariance of the coefficients of n_x times n_s cubic B-splines, shape (n_x n_s, n_x n_s).

        A Gaussian process over values and domain: surfaces are the more alike the nearer they are in both.
        """
        x = (np.arange(n_x) - 1) / (n_x - DEGREE) - 0.5  # centres of the B-splines, as shares of the range
        s = (np.arange(n_s) - 1) / (n_s - DEGREE)
        in_x = np.exp(-0.5 * ((x[:, None] - x) / self.surface_x) ** 2) + self.linear * np.outer(x, x)
        in_s = np.exp(-0.5 * ((s[:, None] - s) / self.surface_s) ** 2) + self.main
        if self.fine:
            in_s = (1 - self.fine) * in_s + self.fine * np.exp(-0.5 * ((s[:, None] - s) / FINE_LENGTH) ** 2)
        return np.asarray(np.kron(in_x, in_s), dtype=np.float64)

    def response_functions(
        self, t: FloatArray, weights: FloatArray, *, rough: float = 0.0
    ) -> tuple[FloatArray, FloatArray]:
        """Orthonormal basis of responses, and the prior shares of variance of its functions.

        Responses have their own level and slope, and a Gaussian process about them.

        Parameters
        ----------
        t, weights : ndarray of shape (T,)
            Grid on [0, 1] and quadrature weights that sum to one.
        rough : float
            Share of the variance that is of a process of length .03, for which there are 16 functions more.

        Returns
        -------
        functions : ndarray of shape (T, m)
        shares : ndarray of shape (m,)
        """
        kernel = np.exp(-0.5 * ((t[:, None] - t) / self.y_length) ** 2)
        kernel += 0.5 + 2 * np.outer(t - 0.5, t - 0.5)
        if rough:
            short = np.exp(-0.5 * ((t[:, None] - t) / ROUGH_LENGTH) ** 2)
            kernel = (1 - rough) * kernel / (weights @ np.diag(kernel)) + rough * short
        root = np.sqrt(weights)
        values, vectors = np.linalg.eigh(root[:, None] * kernel * root)
        order = np.argsort(-values)[: min(self.n_response + (FURTHER if rough else 0), t.size)]
        return np.ascontiguousarray(vectors[:, order] / root[:, None]), values[order] / values[order].sum()

    def design(
        self, s: ArrayLike, t: ArrayLike, *, bounds: Range = (-HALF_WIDTH, HALF_WIDTH), missing: str = "linear"
    ) -> PrivateDesign:
        """Public coordinates of the additive term of one column of curves; the last ones are remembered.

        Parameters
        ----------
        s, t : array_like
            Grids of X and Y.
        bounds : (float, float)
            Public range of X; default that of standardised curves.
        missing : {"linear", "smooth"}
            How gaps of X are filled.
        """
        s, t = (np.array(grid, dtype=np.float64) for grid in (s, t))
        design = made_of(of_a_surface, self, [s, t])
        (column,) = design.curves
        own = CurvesColumn.guessed(column.name, 0, s, bounds, column.geometric_scale, self.x_scale, missing=missing)
        return replace(design, columns=(own,), t=t)  # grids that fitted models hand to their users

    def plot(self, ax: Any = None, n_curves: int = DRAWN) -> Figure:
        """Picture of likely curves X, slices of surfaces F and mean responses.

        Parameters
        ----------
        ax : array_like of three Axes, optional
        n_curves : int
            Curves drawn in each panel.

        Returns
        -------
        Figure
        """
        from fdadp.plot._matplotlib_figures import PALETTE, panels

        figure, axes = panels(PANELS, ax, size=PANEL_SIZE, columns=(PANELS,))
        rng = np.random.default_rng(self.seed)
        share, x = np.linspace(0.0, 1.0, POINTS), np.linspace(-HALF_WIDTH, HALF_WIDTH, POINTS)
        design, curves = self.design(share, share), self.x.curves(share)
        chosen = curves[rng.choice(len(curves), min(n_curves, len(curves)), replace=False)]
        term = design.only.term
        covariance = self.surface_covariance(*term.shape)
        jitter = JITTER * np.trace(covariance) / len(covariance)
        root = np.linalg.cholesky(covariance + jitter * np.eye(len(covariance)))
        surfaces = (root @ rng.normal(size=(len(root), n_curves))).T.reshape(n_curves, *term.shape)
        at_half = term.over_s.basis.design(np.array([0.5]))[0]
        slices = np.einsum("al,klm,m->ka", term.over_x.basis.design(x), surfaces, at_half)
        slices = slices - slices.mean(axis=1, keepdims=True)
        scores = rng.normal(size=(n_curves, design.response_shares.size)) * np.sqrt(design.response_shares)
        for axis, at, lines, label_x, label_y in (
            (axes[0], share, chosen, "s, share of the domain", "X, in standard deviations"),
            (axes[1], x, slices, "x, in standard deviations", "F(x, s = 0.5), centred"),
            (axes[2], share, scores @ design.response.T, "t, share of the domain", "Y, relative"),
        ):
            axis.set_prop_cycle(color=PALETTE[:-1])
            axis.plot(at, np.transpose(lines), **LINES)
            axis.set_xlabel(label_x)
            axis.set_ylabel(label_y)
        figure.suptitle(f"Public prior: {self.describe()}", fontsize="medium")
        return figure

    def describe(self) -> str:
        """One line for the ledger."""
        source = "simulated curves" if self.pilot is None else f"{len(self.pilot)} public pilot curves"
        scale = "range/8" if self.x_scale is None else f"{self.x_scale:g}"
        return f"{source}, scale of X {scale}, {self.n_basis_x} x {self.n_basis_s} splines, seed {self.seed}"
