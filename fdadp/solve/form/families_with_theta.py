"""Families of responses with parameters θ beside the mean, which a fit chooses by REML where they are not given.

References
----------
Wood, Pya & Säfken (2016), Smoothing parameter and model selection for general smooth models,
doi:10.1080/01621459.2016.1180986, section 3.1.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, gammaln, psi, xlogy

from fdadp._common.typing import BoolArray, FloatArray
from fdadp.errors import InputError
from fdadp.solve.form.response_families import Derivatives, Family, LogLink, counts_about


class ThetaSlopes(NamedTuple):
    """Derivatives along the d coordinates of θ's search, shapes (d, ...) with the shape of η.

    Of half the deviance less the saturated log-likelihood, of `residual` and of `weight`.
    """

    loss: FloatArray
    residual: FloatArray
    weight: FloatArray


class ThetaSearch(NamedTuple):
    """Where θ is looked for: starts (m, d), and the ends of d coordinates, each (d,)."""

    starts: FloatArray
    low: FloatArray
    high: FloatArray


class FamilyWithTheta(Family):
    """A family with parameters beside the mean.

    A search goes along coordinates of them that have no unit, such as logarithms.
    """

    @property
    @abstractmethod
    def unknown(self) -> bool:
        """Whether a fit is to choose θ."""

    @abstractmethod
    def at(self, point: FloatArray, chosen: bool = False) -> FamilyWithTheta:
        """The same with θ at a point (d,) of its search; whether the data chose it."""

    def tally(self, y: FloatArray, weights: FloatArray) -> FloatArray:
        """Sums over observations with positive weights, of which :meth:`search` is made."""
        return np.zeros(0)

    @abstractmethod
    def search(self, tally: FloatArray) -> ThetaSearch:
        """Where to look for θ, from the sums over all observations."""

    @abstractmethod
    def slopes(self, y: FloatArray, eta: FloatArray) -> ThetaSlopes:
        """How each observation's likelihood, with weight 1, moves along the coordinates of the search."""


LEAST_THETA, MOST_THETA = 1e-4, 1e5
"""Of the search for θ. At the largest a count of mean 1 has .001 % more variance than Poisson's."""

TRIED = (0.1, 1.0, 10.0, 100.0, MOST_THETA)
"""Starts of the search for θ."""


@dataclass(frozen=True)
class NegativeBinomial(LogLink, FamilyWithTheta):
    """Counts whose variance is ``μ + μ²/θ``; link log. They are Poisson's where θ is infinite.

    Parameters
    ----------
    theta : float, optional
        θ, positive. Default: chosen by REML, together with the smoothing parameters.
    chosen : bool
        Whether the data chose θ. Standard errors take it as known; AIC counts it.

    References
    ----------
    McCullagh & Nelder (1989), section 6.2; mgcv's ``negbin(theta)`` and ``nb()``.
    """

    theta: float | None = None
    chosen: bool = False

    name = "negative_binomial"
    known_scale = True
    valid = "counts of 0 or more"
    extremes = (0.0,)
    beyond_extremes = "a count above 0"

    def __post_init__(self) -> None:
        """Refuse a θ that is no positive number."""
        if self.theta is not None and not (isinstance(self.theta, int | float) and 0 < self.theta < np.inf):
            raise InputError(f"theta must be a positive number or None, got {self.theta!r}")

    @property
    def known(self) -> float:
        """θ; without one the likelihood is not defined."""
        if self.theta is None:
            raise InputError("theta must be given, or chosen by a fit, got None")
        return float(self.theta)

    @property
    def unknown(self) -> bool:
        """As :attr:`FamilyWithTheta.unknown`."""
        return self.theta is None

    def at(self, point: FloatArray, chosen: bool = False) -> NegativeBinomial:
        """With a log θ."""
        return NegativeBinomial(float(np.clip(np.exp(point[0]), LEAST_THETA, MOST_THETA)), chosen)

    def search(self, tally: FloatArray) -> ThetaSearch:
        """Along log θ."""
        return ThetaSearch(np.log(TRIED)[:, None], np.log([LEAST_THETA]), np.log([MOST_THETA]))

    @property
    def n_estimated(self) -> int:
        """1 where the data chose θ."""
        return int(self.chosen)

    @property
    def shown(self) -> str:
        """With θ."""
        return self.name if self.theta is None else f"{self.name}({self.theta:.6g})"

    @property
    def notes(self) -> tuple[str, ...]:
        """θ, and that standard errors know it."""
        if not self.chosen:
            return ()
        if self.known >= 0.999 * MOST_THETA:
            return (
                f"Counts vary no more than Poisson's: theta stopped at {MOST_THETA:g}, where family='poisson' is the "
                "same.",
            )
        return (f"REML chose theta = {self.known:.6g}; standard errors and tests take it as known.",)

    def variance(self, mean: FloatArray) -> FloatArray:
        """``μ + μ²/θ``."""
        return mean + mean**2 / self.known

    def half_deviance(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """``y log(y / μ) - (y + θ) log((y + θ) / (μ + θ))``."""
        mean = np.exp(eta)
        return np.asarray(xlogy(y, y) - y * eta - (y + self.known) * np.log1p((y - mean) / (mean + self.known)))

    def working(self, y: FloatArray, eta: FloatArray) -> Derivatives:
        """Observed weights are ``(y + θ) p (1 - p)`` with ``p = μ / (μ + θ)``, expected ones ``θ p``."""
        theta = self.known
        p, rest = self._shares(eta)
        weight = (y + theta) * p * rest
        return Derivatives(y * rest - theta * p, weight, weight * (rest - p), theta * p)

    def slopes(self, y: FloatArray, eta: FloatArray) -> ThetaSlopes:
        """As :meth:`FamilyWithTheta.slopes`, in log θ."""
        theta = self.known
        p, rest = self._shares(eta)
        away = (y - np.exp(eta)) / (np.exp(eta) + theta)
        saturated = psi(y + theta) - psi(theta) - np.log1p(y / theta)
        loss = theta * (away - np.log1p(away) - saturated)
        residual = p * (y * rest - theta * p)
        return ThetaSlopes(loss[None], residual[None], (p * rest * (theta + (y + theta) * (p - rest)))[None])

    def _shares(self, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``p = μ / (μ + θ)``, and ``1 - p``."""
        odds = eta - np.log(self.known)
        return np.asarray(expit(odds)), np.asarray(expit(-odds))

    def _possible(self, y: FloatArray, weights: FloatArray | None) -> BoolArray:
        return np.asarray((y >= 0) & (y == np.floor(y)) & np.isfinite(y))

    def saturated(self, y: FloatArray, weights: FloatArray, scale: float) -> tuple[float, float, float]:
        """As :meth:`Family.saturated`."""
        theta = self.known
        ways = gammaln(y + theta) - gammaln(theta) - gammaln(y + 1)
        own = ways + xlogy(y, y) - y * np.log(y + theta) - theta * np.log1p(y / theta)
        return float((weights * own).sum()), 0.0, 0.0

    def law(self, eta: FloatArray, se: FloatArray, scale: float) -> Any:
        """As :meth:`Family.law`."""
        return counts_about(eta, se, 1 / self.known)
