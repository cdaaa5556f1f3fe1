"""Three scenarios for additive function-on-function regression: nearly linear, strongly non-linear, non-separable."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import abs as absolute
from numpy import cos, exp, pi, sin

from fdadp._common.checks import generator
from fdadp._common.typing import FloatArray
from fdadp.datasets._simulate import SimulatedCurves, Summand, Truth, check_number, check_size, simulate
from fdadp.errors import InputError

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

SCORE_SD = np.array([0.6, 0.7, 0.5, 0.35, 0.25, 0.15])
"""Standard deviations of the Fourier coefficients of X in scenarios 1 and 2."""

ERROR_SD = np.array([0.6, 0.4, 0.25])
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
        1: F nearly linear in x (a small quadratic part); 2: strongly non-linear (sin, cos, exp(-x²), \|x\|);
        3: non-separable, ``cos(1.2 x + 2 s)`` times functions of s and t, with rougher X.
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
    X is ``0.4 sin(πs)`` plus six Fourier terms (scenarios 1, 2), or a random level plus an Ornstein-Uhlenbeck
    process with length scale 0.25 (scenario 3). e has three cosine terms with standard deviations 0.6, 0.4, 0.25.
    F is scaled such that the signal has standard deviation 1 (root mean square over curves and t), and the
    baseline ``1 + t`` is the mean of E[Y | X] over curves, both up to Monte Carlo error: the constants come from
    20,000 curves. Hence ``mean(t)`` is ``1 + t`` less the mean of the scaled integral. The scenarios are this
    project's own; the third is in the manner of the example of Kim et al. (2018), see
    :func:`~fdadp.datasets.simulate_cosine`.

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
    n, size = check_size(n, "n", 1), check_size(n_points, "n_points", 3)
    x_noise, white_noise = check_number(x_noise, "x_noise"), check_number(white_noise, "white_noise")
    smooth_noise = check_number(smooth_noise, "smooth_noise")
    rng = generator(seed)
    return simulate(
        SCENARIOS[scenario],
        draw_predictors(scenario, n, np.linspace(0.0, 1.0, size), rng),
        rng,
        errors=lambda t, count, generator: smooth_noise * cosine_errors(t, count, generator),
        white_noise=white_noise,
        x_noise=x_noise,
        name=f"simulate_affr, scenario {scenario}",
        seed=seed,
    )


def draw_predictors(scenario: int, n: int, s: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Noise-free X (n, S) of a scenario."""
    if scenario == 3:
        covariance = exp(-absolute(s[:, None] - s) / 0.25) + 1e-9 * np.eye(s.size)
        level = rng.normal(0, 0.7, (n, 1)) - 0.3
        return np.asarray(level + 0.8 * (rng.normal(size=(n, s.size)) @ np.linalg.cholesky(covariance).T))
    waves = [f(2 * pi * k * s) for k, f in ((1, sin), (1, cos), (2, sin), (2, cos), (3, sin))]
    basis = np.stack([np.ones_like(s), *(np.sqrt(2) * w for w in waves)])
    return np.asarray(0.4 * sin(pi * s) + (rng.normal(size=(n, 6)) * SCORE_SD) @ basis)


def cosine_errors(t: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
    """Smooth errors (n, T): three orthonormal cosines with random coefficients."""
    basis = np.stack([np.ones_like(t), np.sqrt(2) * cos(pi * t), np.sqrt(2) * cos(2 * pi * t)])
    coefficients: Any = rng.normal(size=(n, 3)) * ERROR_SD
    return np.asarray(coefficients @ basis)
