"""Cohorts drawn from the public prior, and what a private fit of them explains."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fdadp._common.threads import one_blas_thread
from fdadp._common.typing import FloatArray
from fdadp.errors import ExtrapolationWarning
from fdadp.functional.tables.curve_sample import Curves
from fdadp.privacy import Budget, Cohort, SeededNoise
from fdadp.privacy.account.epsilon_mu_rho import delta_from_mu
from fdadp.private.model_from_releases import as_surface
from fdadp.private.plan.budget_sharing import make_plan
from fdadp.private.plan.private_design import PrivateDesign
from fdadp.private.public.column_ranges import HALF_WIDTH
from fdadp.private.public.gaussian_process_prior import PublicPrior
from fdadp.private.release.dp_aff import fit_dp_aff
from fdadp.private.rows.row_functions import RowFunctions
from fdadp.solve.eigen.surface_fit import SurfaceFit

EXPLAINABLE = 0.6
"""Share of the variance of Y that the simulated surface explains."""
WHITE = 0.1
"""Share of the unexplained variance that is white; the rest is smooth error."""
TEST_CURVES = 500
LEAST_MULTIPLIER = 0.2
"""Noise below this (ε in the tens) is simulated as if it were this."""


class Outcome(NamedTuple):
    """Of one simulated fit.

    Attributes
    ----------
    share : float
        Explained share of the explainable variance.
    rmspe_ratio, width_ratio : float
        Prediction error, and width of 95 % prediction intervals, relative to the fit without privacy.
    coverage : float
        Of 95 % prediction intervals.
    """

    share: float
    rmspe_ratio: float
    width_ratio: float
    coverage: float


class Population:
    """One law of curves drawn from the prior: correlation length and size of X, surface and mean of Y.

    Parameters
    ----------
    design : PrivateDesign
    rng : Generator
        A simulation, so its noise is no privacy noise.
    """

    def __init__(self, design: PrivateDesign, rng: np.random.Generator) -> None:
        self.design = design
        prior, s = design.prior, design.unit_s
        low, high = np.log(prior.x_lengths)
        kernel = np.exp(-0.5 * ((s[:, None] - s) / np.exp(rng.uniform(low, high))) ** 2)
        self._root = np.linalg.cholesky(kernel + 1e-8 * np.eye(s.size)).T * math.sqrt(0.8)
        self._scale = math.exp(rng.normal(0, 0.25))
        term = design.only.term
        covariance = prior.surface_covariance(*term.shape)
        surface_root = np.linalg.cholesky(covariance + 1e-9 * np.trace(covariance) * np.eye(len(covariance)) / 100)
        size = np.sqrt(design.response_shares)
        self._surface = surface_root @ rng.normal(size=(len(covariance), size.size)) * size
        self._mean = rng.normal(size=size.size) * size
        signal = self._raw_signal(self.curves(4000, rng))
        self._centre = signal.mean(axis=0)
        self._norm = math.sqrt(((signal - self._centre) ** 2).sum(axis=1).mean())

    def curves(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Standardised curves X, shape (n, S)."""
        pilot = self.design.prior.pilot
        if pilot is not None:
            chosen = self.design.prior.x.curves(self.design.unit_s)[rng.integers(len(pilot), size=n)]
            return np.asarray(chosen + 0.1 * rng.normal(size=chosen.shape))
        shapes = rng.normal(size=(n, len(self._root))) @ self._root
        return np.asarray(self._scale * shapes + rng.normal(0, self.design.prior.x_level, (n, 1)))

    def _raw_signal(self, x: FloatArray) -> FloatArray:
        return np.asarray(
            self.design.only.rows(Curves(np.clip(x, -HALF_WIDTH, HALF_WIDTH), self.design.unit_s)) @ self._surface
        )

    def draw(self, n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Draw X (n, S), Y (n, T) and E[Y | X] (n, T); the signal has variance 1."""
        x = self.curves(n, rng)
        coefficients = (self._raw_signal(x) - self._centre) / self._norm + self._mean
        noise = (1 - EXPLAINABLE) / EXPLAINABLE
        smooth = rng.normal(size=coefficients.shape) * np.sqrt(noise * (1 - WHITE) * self.design.response_shares)
        functions = self.design.response.T
        f = coefficients @ functions
        return x, f + smooth @ functions + math.sqrt(noise * WHITE) * rng.normal(size=f.shape), f


def outcomes(prior: PublicPrior, n: int, etas: Sequence[float], seeds: Sequence[int], *, pure: bool) -> list[Outcome]:
    """Mean outcome over populations for each noise per person, with a declared n.

    Parameters
    ----------
    prior : PublicPrior
    n : int
    etas : sequence of float
        Sd of the noise of a sum of sensitivity 1 at the whole budget, divided by n.
    seeds : sequence of int
        One population each, the same for every eta.
    pure : bool
    """
    grid = np.linspace(0, 1, 51)
    design = prior.design(grid, grid)
    found = np.array([_outcomes(design, n, etas, seed, pure=pure) for seed in seeds])
    return [Outcome(*map(float, row)) for row in found.mean(axis=0)]


def _outcomes(design: PrivateDesign, n: int, etas: Sequence[float], seed: int, *, pure: bool) -> list[Outcome]:
    from fdadp.regression import AdditiveFunctionOnFunction

    rng = np.random.default_rng([seed, n])
    population = Population(design, np.random.default_rng(seed))
    x, y, _ = population.draw(n, rng)
    new_x, new_y, new_f = population.draw(TEST_CURVES, rng)
    t, s, w = design.t, design.s, design.t_weights
    reference = AdditiveFunctionOnFunction(n_basis_x=7, n_basis_s=7, progress=False).fit(x, y, s=s, t=t)
    clipped = np.clip(new_x, *reference.x_range_)  # or it would warn of extrapolation
    error = math.sqrt((((np.asarray(reference.predict(clipped)) - new_y) ** 2) @ w).mean())
    low, high = reference.predict_interval(clipped, 0.95)
    width = float((high - low).mean())
    explainable = (((new_f - new_f.mean(axis=0)) ** 2) @ w).mean()
    found = []
    for eta in etas:
        fitted = AdditiveFunctionOnFunction.made_of(
            _fit(design, x, y, eta, seed, pure=pure), Curves(x, s), Curves(y, t)
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExtrapolationWarning)
            predicted = np.asarray(fitted.predict(new_x))
            low, high = fitted.predict_interval(new_x, 0.95)
        found.append(
            Outcome(
                share=max(1 - (((predicted - new_f) ** 2) @ w).mean() / explainable, -1.0),
                rmspe_ratio=math.sqrt((((predicted - new_y) ** 2) @ w).mean()) / error,
                width_ratio=float((high - low).mean()) / width,
                coverage=float(((low <= new_y) & (new_y <= high)).mean()),
            )
        )
    return found


def noisy_budget(multiplier: float, *, pure: bool) -> Budget:
    """A budget of which a sum of sensitivity 1 that takes all has noise of this sd."""
    mu = 1 / multiplier
    epsilon = math.sqrt(2) * mu if pure else mu * (8 + mu / 2)  # any point on the curve of μ will do
    return Budget(epsilon, None if pure else delta_from_mu(mu, epsilon))


def _fit(design: PrivateDesign, x: FloatArray, y: FloatArray, eta: float, seed: int, *, pure: bool) -> SurfaceFit:
    multiplier = max(eta * len(x), LEAST_MULTIPLIER)
    budget = noisy_budget(multiplier, pure=pure)
    cohort = Cohort((x, y), budget=budget, n=len(x), noise=SeededNoise(seed), mechanism="simulation")
    plan = make_plan(float(len(x)), multiplier, design, pure=pure)
    rows = RowFunctions(design, (-8.0, 8.0))
    with one_blas_thread():
        return as_surface(fit_dp_aff(cohort, plan, rows), design, plan)
