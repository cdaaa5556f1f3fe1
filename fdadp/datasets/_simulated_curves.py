"""Simulated pairs of curves of which the truth is known: ``Y(t) = mean(t) + ∫ F{X(s), s, t} ds + error``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy import abs as absolute
from numpy import cos, exp, pi, sin

from fdadp._common.argument_checks import generator, is_number, numbers, whole
from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError
from fdadp.functional.quadrature import quadrature_weights


@dataclass(frozen=True)
class Summand:
    """One summand ``G(x, s) h(t)`` of a surface, with the mean of ``∫ G{X(s), s} ds`` over the curves."""

    predictor: Callable[[FloatArray, FloatArray], FloatArray]
    response: Callable[[FloatArray], FloatArray]
    offset: float = 0.0


@dataclass(frozen=True)
class Truth:
    """The true model: ``F = Σ_p G_p(x, s) h_p(t) / scale`` and the mean function.

    Attributes
    ----------
    parts : tuple of Part
    baseline : callable
        t -> the mean of E[Y | X] over the curves.
    scale : float
        What the surface is divided by.
    """

    parts: tuple[Summand, ...]
    baseline: Callable[[FloatArray], FloatArray]
    scale: float = 1.0

    def mean(self, t: FloatArray) -> FloatArray:
        """``E[Y(t) | X] - ∫ F{X(s), s, t} ds``: the baseline, less the mean of the integral."""
        offset = sum((part.offset * part.response(t) for part in self.parts), np.zeros_like(t))
        return np.asarray(self.baseline(t) - offset / self.scale)

    def surface(self, x: FloatArray, s: FloatArray, t: FloatArray) -> FloatArray:
        """``F`` on the product grid: (len(x), len(s), len(t))."""
        grid = np.zeros((x.size, s.size, t.size))
        for part in self.parts:
            grid += part.predictor(x[:, None], s[None, :])[:, :, None] * part.response(t)
        return grid / self.scale

    def signal(self, x: FloatArray, s: FloatArray, t: FloatArray, weights: FloatArray) -> FloatArray:
        """``∫ F{X_i(s), s, t} ds`` for curves x (n, S): (n, T), by the quadrature `weights` (S,)."""
        total = np.zeros((x.shape[0], t.size))
        for part in self.parts:
            total += (part.predictor(x, s) @ weights)[:, None] * part.response(t)
        return total / self.scale


@dataclass(frozen=True, eq=False, repr=False)
class SimulatedCurves:
    """Simulated curves with the truth.

    Attributes
    ----------
    X, Y : FDataGrid
        What is observed, noise included: (n, S) and (n, T), here on the same even grid of [0, 1].
    X_true : ndarray of shape (n, S)
        Predictors without noise.
    mean_function : ndarray of shape (n, T)
        E[Y | X_true]: ``mean(t)`` plus the trapezoidal integral of the surface along `X_true`.
    s, t : ndarray of shape (S,), (T,)
        The grids.
    name : str
    seed : int, SeedSequence or Generator
        As given.
    """

    X: Any
    Y: Any
    X_true: FloatArray
    mean_function: FloatArray
    s: FloatArray
    t: FloatArray
    name: str
    seed: Any
    _truth: Truth = field(repr=False)

    def __repr__(self) -> str:
        return f"<SimulatedCurves {self.name}: {len(self.X_true)} pairs on {len(self.s)} points, seed={self.seed}>"

    def surface(self, x: ArrayLike, s: ArrayLike, t: ArrayLike) -> FloatArray:
        """Return the true F on a product grid.

        Parameters
        ----------
        x, s, t : array_like, one-dimensional
            Values of the predictor, its argument and the response's argument.

        Returns
        -------
        ndarray of shape (len(x), len(s), len(t))
            Known only up to a function of (s, t) from data: compare differences over x, or centred surfaces.

        Raises
        ------
        InputError
            Not one-dimensional or not numeric.
        """
        return self._truth.surface(_axis(x, "x"), _axis(s, "s"), _axis(t, "t"))

    def mean(self, t: ArrayLike) -> FloatArray:
        """Return what is added to the integral of the surface.

        Parameters
        ----------
        t : array_like of shape (T,)

        Returns
        -------
        ndarray of shape (T,)
            ``mean_function = mean(t) + Σ_j w_j F{X_true(s_j), s_j, t}`` with trapezoidal weights on `s`.

        Raises
        ------
        InputError
            Not one-dimensional or not numeric.
        """
        return self._truth.mean(_axis(t, "t"))


Draw = Callable[[int, FloatArray, np.random.Generator], FloatArray]
"""Draws n curves on a grid."""


def simulate(
    truth: Truth,
    n: int,
    seed: Any,
    predictors: Draw,
    errors: Draw,
    *,
    n_points: int,
    noise: Mapping[str, float],
    name: str,
) -> SimulatedCurves:
    """Draw the predictors, the responses, then the noise of the predictors (in this order); settings are checked."""
    from skfda import FDataGrid

    n, size = whole(n, "n"), whole(n_points, "n_points", least=3)
    x_noise, white_noise, smooth_noise = (check_number(value, key) for key, value in noise.items())
    rng, grid = generator(seed), np.linspace(0.0, 1.0, size)
    x_true = predictors(n, grid, rng)
    mean_function = truth.mean(grid) + truth.signal(x_true, grid, grid, quadrature_weights(grid))
    y = mean_function + smooth_noise * errors(n, grid, rng) + white_noise * rng.normal(size=(n, size))
    x = x_true + x_noise * rng.normal(size=(n, size))
    X, Y = (
        FDataGrid(values, grid_points=grid, dataset_name=name, argument_names=(argument,), coordinate_names=(own,))
        for values, argument, own in ((x, "s", "X"), (y, "t", "Y"))
    )
    return SimulatedCurves(X, Y, x_true, mean_function, grid, grid, name, seed, truth)


def check_number(value: Any, name: str) -> float:
    """Return `value` as a finite float of at least 0, else raise InputError."""
    if not is_number(value) or not 0 <= value < math.inf:
        raise InputError(f"{name} must be a number >= 0, got {value!r}")
    return float(value)


def _axis(values: ArrayLike, name: str) -> FloatArray:
    axis = np.atleast_1d(numbers(values, name))
    if axis.ndim != 1:
        raise InputError(f"{name} must be one-dimensional, got shape {axis.shape}")
    return axis


# The example of Kim et al. (2018): F(x, s, t) = cos(t - x - 5).


# cos(t - x - 5) = cos(x) cos(t - 5) + sin(x) sin(t - 5); it does not depend on s.
COSINE = Truth(
    parts=(
        Summand(lambda x, s: cos(x) + 0 * s, lambda t: cos(t - 5)),
        Summand(lambda x, s: sin(x) + 0 * s, lambda t: sin(t - 5)),
    ),
    baseline=lambda t: np.zeros_like(t),
)

SCORE_SD = np.array([1.0, 0.7, 0.5])
"""Standard deviations of the coefficients of 1, √2 sin(2πs), √2 cos(2πs) in X."""

ERROR_SD = np.array([0.15, 0.1])
"""Standard deviations of the coefficients of √2 sin(πt), √2 cos(πt) in the smooth error."""


def simulate_cosine(
    n: int = 200,
    seed: int | np.random.SeedSequence | np.random.Generator = 0,
    *,
    n_points: int = 51,
    x_noise: float = 0.1,
    white_noise: float = 0.1,
    smooth_noise: float = 1.0,
) -> SimulatedCurves:
    r"""Curves with the non-linear surface ``F(x, s, t) = cos(t - x - 5)`` of Kim et al. (2018).

    .. math:: Y_i(t) = \int_0^1 \cos\{t - X_i(s) - 5\}\,ds + e_i(t) + \varepsilon_i(t)

    Parameters
    ----------
    n : int
        Number of pairs of curves.
    seed : int, SeedSequence or Generator
        For :func:`numpy.random.default_rng`. A simulation, so its noise is no privacy noise.
    n_points : int
        Points of the even grid on [0, 1], the same for s and t (default 51).
    x_noise, white_noise : float
        Standard deviations of the white noise in the observed X and in Y.
    smooth_noise : float
        Factor of the smooth error e.

    Returns
    -------
    SimulatedCurves
        As :func:`simulate_affr`; F is not scaled and ``mean(t)`` is 0.

    Raises
    ------
    InputError
        ``n < 1``, ``n_points < 3`` or a negative noise.

    Notes
    -----
    Only the surface is the paper's. Its simulation design could not be consulted when this was written, so the rest is
    this project's choice. Published error tables are not to be compared with results from here. ``X(s) = a_1 + a_2 √2
    sin(2πs) + a_3 √2 cos(2πs)`` with independent normal coefficients of mean 0 and standard deviations 1, 0.7, 0.5.
    ``e(t) = b_1 √2 sin(πt) + b_2 √2 cos(πt)`` with 0.15, 0.1. There is no intercept, and white noise in X and Y.

    References
    ----------
    Kim, J. S., Staicu, A.-M., Maity, A., Carroll, R. J. and Ruppert, D. (2018). Additive function-on-function
    regression. *J. Comput. Graph. Statist.* 27(1):234-244. doi:10.1080/10618600.2017.1356730

    Examples
    --------
    >>> sim = simulate_cosine(n=5, seed=3)
    >>> sim.X.data_matrix.shape
    (5, 51, 1)
    >>> sim.surface(x=[0.0], s=[0.2, 0.8], t=[5.0])[0, :, 0]
    array([1., 1.])
    """
    noise = {"x_noise": x_noise, "white_noise": white_noise, "smooth_noise": smooth_noise}
    name = "simulate_cosine"
    return simulate(COSINE, n, seed, _fourier, _waves, n_points=n_points, noise=noise, name=name)


def _fourier(n: int, s: FloatArray, rng: np.random.Generator) -> FloatArray:
    basis = np.stack([np.ones(s.size), np.sqrt(2) * sin(2 * pi * s), np.sqrt(2) * cos(2 * pi * s)])
    return np.asarray((rng.normal(size=(n, 3)) * SCORE_SD) @ basis)


def _waves(n: int, t: FloatArray, rng: np.random.Generator) -> FloatArray:
    waves = np.sqrt(2) * np.stack([sin(pi * t), cos(pi * t)])
    return np.asarray((rng.normal(size=(n, 2)) * ERROR_SD) @ waves)


# Three scenarios for additive function-on-function regression: nearly linear, strongly non-linear, non-separable.


# The offsets and scales below are the means of the integrals and the root mean square (over curves and t) of the
# centred signal among 20,000 noise-free curves on 51 points, drawn with seed 99.  They are written out so that
# nothing has to be computed on import; tests/python/datasets/test_datasets.py computes them again.
SCENARIOS = {
    1: Truth(
        parts=(
            Summand(lambda x, s: x * sin(2 * pi * s), lambda t: 1 + t, -0.010724500558338507),
            Summand(lambda x, s: x * cos(2 * pi * s), lambda t: 1.2 * cos(pi * t), -0.08591283855709932),
            Summand(lambda x, s: x + 0 * s, lambda t: 0.8 * sin(pi * t), 0.2542279533230499),
            Summand(lambda x, s: 0.2 * x**2 * s, lambda t: cos(pi * t), 0.13918382529665377),
        ),
        baseline=lambda t: 1 + t,
        scale=0.8831217215778595,
    ),
    2: Truth(
        parts=(
            Summand(lambda x, s: 1.6 * sin(1.8 * x + pi * s), lambda t: cos(pi * t), 0.10049358586728249),
            Summand(lambda x, s: 1.5 * cos(1.5 * x) * (1 + s), lambda t: sin(pi * t), 0.47871416685323503),
            Summand(lambda x, s: 2.0 * exp(-(x**2)) * (s - 0.3), lambda t: 1.5 * cos(2 * pi * t), 0.20601207814881656),
            Summand(lambda x, s: 0.8 * absolute(x) * sin(pi * s), lambda t: t, 0.48590919502496915),
        ),
        baseline=lambda t: 1 + t,
        scale=0.5400388101822567,
    ),
    3: Truth(
        parts=(
            Summand(lambda x, s: cos(1.2 * x + 2 * s) * cos(s), cos, 0.2710240297970502),
            Summand(lambda x, s: cos(1.2 * x + 2 * s) * sin(3 * s), lambda t: sin(3 * t), 0.20426156601819745),
            Summand(lambda x, s: 0.6 * x * s, lambda t: t, -0.08830548654464955),
        ),
        baseline=lambda t: 1 + t,
        scale=0.3985107044661118,
    ),
}

SCENARIO_SCORE_SD = np.array([0.6, 0.7, 0.5, 0.35, 0.25, 0.15])
"""Standard deviations of the Fourier coefficients of X in scenarios 1 and 2."""

SCENARIO_ERROR_SD = np.array([0.6, 0.4, 0.25])
"""Standard deviations of the coefficients of the smooth error."""


def simulate_affr(
    scenario: int = 1,
    n: int = 200,
    seed: int | np.random.SeedSequence | np.random.Generator = 0,
    *,
    n_points: int = 51,
    x_noise: float = 0.15,
    white_noise: float = 0.25,
    smooth_noise: float = 1.0,
) -> SimulatedCurves:
    r"""Curves from an additive function-on-function model whose truth is known.

    .. math:: Y_i(t) = \mu(t) + \int_0^1 F\{X_i(s), s, t\}\,ds + e_i(t) + \varepsilon_i(t)

    Parameters
    ----------
    scenario : {1, 2, 3}
        In 1 F is nearly linear in x (a small quadratic part). In 2 it is strongly non-linear (sin, cos, exp(-x²),
        \|x\|). In 3 it is non-separable, ``cos(1.2 x + 2 s)`` times functions of s and t, with rougher X.
    n : int
        Number of pairs of curves.
    seed : int, SeedSequence or Generator
        For :func:`numpy.random.default_rng`. A simulation, so its noise is no privacy noise.
    n_points : int
        Points of the even grid on [0, 1], the same for s and t (default 51).
    x_noise : float
        Standard deviation of the white noise in the observed X.
    white_noise : float
        Standard deviation of the white noise ε in Y.
    smooth_noise : float
        Factor of the smooth error e.

    Returns
    -------
    SimulatedCurves
        ``X``, ``Y`` (FDataGrid), ``X_true`` (n, S), ``mean_function`` (n, T), ``surface(x, s, t)``, ``mean(t)``,
        ``s``, ``t``.

    Raises
    ------
    InputError
        Unknown scenario, ``n < 1``, ``n_points < 3`` or a negative noise.

    Notes
    -----
    X is ``0.4 sin(πs)`` plus six Fourier terms (scenarios 1, 2), or a random level plus an Ornstein-Uhlenbeck process
    with length scale 0.25 (scenario 3). e has three cosine terms with standard deviations 0.6, 0.4, 0.25. F is scaled
    such that the signal has standard deviation 1 (root mean square over curves and t). The baseline ``1 + t`` is the
    mean of E[Y | X] over curves. Both are right up to Monte Carlo error, as the constants come from 20,000 curves.
    Hence ``mean(t)`` is ``1 + t`` less the mean of the scaled integral. The scenarios are this project's own; the third
    is in the manner of the example of Kim et al. (2018), see :func:`~fdadp.datasets.simulate_cosine`.

    Examples
    --------
    >>> sim = simulate_affr(scenario=2, n=10, seed=1)
    >>> sim.mean_function.shape
    (10, 51)
    >>> sim.surface(x=[-1.0, 0.0, 1.0], s=[0.5], t=[0.0, 1.0]).shape
    (3, 1, 2)
    """
    if isinstance(scenario, bool) or not isinstance(scenario, int | np.integer) or scenario not in SCENARIOS:
        raise InputError(f"scenario must be 1, 2 or 3, got {scenario!r}")
    noise = {"x_noise": x_noise, "white_noise": white_noise, "smooth_noise": smooth_noise}
    predictors, name = partial(draw_predictors, scenario), f"simulate_affr, scenario {scenario}"
    truth = SCENARIOS[scenario]
    return simulate(truth, n, seed, predictors, cosine_errors, n_points=n_points, noise=noise, name=name)


def draw_predictors(scenario: int, n: int, s: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Noise-free X (n, S) of a scenario."""
    if scenario == 3:
        covariance = exp(-absolute(s[:, None] - s) / 0.25) + 1e-9 * np.eye(s.size)
        level = rng.normal(0, 0.7, (n, 1)) - 0.3
        return np.asarray(level + 0.8 * (rng.normal(size=(n, s.size)) @ np.linalg.cholesky(covariance).T))
    waves = [f(2 * pi * k * s) for k, f in ((1, sin), (1, cos), (2, sin), (2, cos), (3, sin))]
    basis = np.stack([np.ones_like(s), *(np.sqrt(2) * w for w in waves)])
    return np.asarray(0.4 * sin(pi * s) + (rng.normal(size=(n, 6)) * SCENARIO_SCORE_SD) @ basis)


def cosine_errors(n: int, t: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Smooth errors (n, T): three orthonormal cosines with random coefficients."""
    basis = np.stack([np.ones_like(t), np.sqrt(2) * cos(pi * t), np.sqrt(2) * cos(2 * pi * t)])
    coefficients: Any = rng.normal(size=(n, 3)) * SCENARIO_ERROR_SD
    return np.asarray(coefficients @ basis)
