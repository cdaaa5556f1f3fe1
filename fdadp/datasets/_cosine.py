"""The example of Kim et al. (2018): F(x, s, t) = cos(t - x - 5)."""

from __future__ import annotations

import numpy as np
from numpy import cos, pi, sin

from fdadp._common.checks import generator
from fdadp._common.typing import FloatArray
from fdadp.datasets._simulate import Part, SimulatedCurves, Truth, check_number, check_size, simulate

# cos(t - x - 5) = cos(x) cos(t - 5) + sin(x) sin(t - 5); it does not depend on s.
COSINE = Truth(
    parts=(
        Part(lambda x, s: cos(x) + 0 * s, lambda t: cos(t - 5)),
        Part(lambda x, s: sin(x) + 0 * s, lambda t: sin(t - 5)),
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
    Only the surface is the paper's. Its simulation design could not be consulted when this was written, so the
    rest is this project's choice and published error tables are not to be compared with results from here:
    ``X(s) = a_1 + a_2 √2 sin(2πs) + a_3 √2 cos(2πs)`` with independent normal coefficients of mean 0 and standard
    deviations 1, 0.7, 0.5; ``e(t) = b_1 √2 sin(πt) + b_2 √2 cos(πt)`` with 0.15, 0.1; no intercept; white noise in
    X and Y.

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
    n, size = check_size(n, "n", 1), check_size(n_points, "n_points", 3)
    x_noise, white_noise = check_number(x_noise, "x_noise"), check_number(white_noise, "white_noise")
    smooth_noise = check_number(smooth_noise, "smooth_noise")
    rng = generator(seed)
    s = np.linspace(0.0, 1.0, size)
    basis = np.stack([np.ones(size), np.sqrt(2) * sin(2 * pi * s), np.sqrt(2) * cos(2 * pi * s)])

    def errors(t: FloatArray, count: int, generator: np.random.Generator) -> FloatArray:
        waves = np.sqrt(2) * np.stack([sin(pi * t), cos(pi * t)])
        return np.asarray(smooth_noise * (generator.normal(size=(count, 2)) * ERROR_SD) @ waves)

    return simulate(
        COSINE,
        (rng.normal(size=(n, 3)) * SCORE_SD) @ basis,
        rng,
        errors=errors,
        white_noise=white_noise,
        x_noise=x_noise,
        name="simulate_cosine",
        seed=seed,
    )
