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
    """Where θ is looked for: starts (m, d), the next to each other near, and the ends of d coordinates, each (d,).

    `unbounded` is the error where the last coordinate ends at its lowest, for there the likelihood has no bound.
    """

    starts: FloatArray
    low: FloatArray
    high: FloatArray
    unbounded: str = ""


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


LEAST_NU, MOST_NU = 3.0, 1e8
"""Of the search for degrees of freedom ν; the least are mgcv's."""

NORMAL_NU = 1e5
"""Degrees of freedom from which on errors are said to be normal: their kurtosis is then .00006."""

WIDE = 25.0
"""Range of the search for log σ below that of the responses' standard deviation."""

NO_ERRORS = (
    "the response must not be fitted without error in three quarters of its values for family='scaled_t', as one with "
    "many ties is: its likelihood has no bound then, got a sigma that goes to 0; family='gaussian' fits it"
)


@dataclass(frozen=True)
class ScaledT(FamilyWithTheta):
    """Numbers with errors ``σ t`` of Student's law with ν degrees of freedom, whose tails are long; identity link.

    An error that is large beside σ hardly pulls. The likelihood is not log-concave there: weights of such observations
    are negative, and there can be several maxima.

    Parameters
    ----------
    nu, sigma : float, optional
        ν above 2, and σ above 0, in units of the response. Default: both are chosen by REML, together with the
        smoothing parameters; ν is then above 3.
    chosen : bool
        Whether the data chose them. Standard errors take them as known; AIC counts them.

    References
    ----------
    Lange, Little & Taylor (1989), Robust statistical modeling using the t distribution,
    doi:10.1080/01621459.1989.10478852; mgcv's ``scat()``.
    """

    nu: float | None = None
    sigma: float | None = None
    chosen: bool = False

    name = "scaled_t"
    link = "identity"
    known_scale = True
    log_concave = False
    valid = "finite numbers"

    def __post_init__(self) -> None:
        """Refuse one parameter without the other, and parameters that no law with a variance has."""
        if (self.nu is None) != (self.sigma is None):
            raise InputError(f"nu and sigma must both be given or both None, got {self.nu!r} and {self.sigma!r}")
        for name, value, least in (("nu", self.nu, 2), ("sigma", self.sigma, 0)):
            if value is not None and not (isinstance(value, int | float) and least < value < np.inf):
                raise InputError(f"{name} of scaled t must be a finite number above {least}, got {value!r}")

    @property
    def known(self) -> tuple[float, float]:
        """ν and σ; without them the likelihood is not defined."""
        if self.nu is None or self.sigma is None:
            raise InputError("nu and sigma must be given, or chosen by a fit, got None")
        return float(self.nu), float(self.sigma)

    @property
    def unknown(self) -> bool:
        """As :attr:`FamilyWithTheta.unknown`."""
        return self.nu is None

    def at(self, point: FloatArray, chosen: bool = False) -> ScaledT:
        """With ``log(ν - 3)`` and log σ."""
        return ScaledT(LEAST_NU + float(np.exp(point[0])), float(np.exp(point[1])), chosen)

    def tally(self, y: FloatArray, weights: FloatArray) -> FloatArray:
        """Sums of weights, and of responses and their squares with these."""
        return np.array([weights.sum(), (weights * y).sum(), (weights * y**2).sum()])

    def search(self, tally: FloatArray) -> ThetaSearch:
        """Along ``log(ν - 3)`` and log σ, from two shares of the standard deviation of the responses."""
        first, second = tally[1:] / tally[0]
        variance = second - first**2
        if variance <= 1e-15 * second:
            raise InputError(f"the response must have different values for family='scaled_t', got only {first:g}")
        spread = np.log(variance) / 2
        starts = [(log_nu, spread + np.log(share)) for log_nu in (3.0, 0.0) for share in (1.0, 0.3)]
        low, high = [np.log(1e-8), spread - WIDE], [np.log(MOST_NU - LEAST_NU), spread + 5]
        return ThetaSearch(np.array(starts), np.array(low), np.array(high), NO_ERRORS)

    @property
    def n_estimated(self) -> int:
        """2 where the data chose ν and σ."""
        return 2 * int(self.chosen)

    @property
    def shown(self) -> str:
        """With ν and σ."""
        return self.name if self.unknown else f"{self.name}({self.nu:.6g}, {self.sigma:.6g})"

    @property
    def notes(self) -> tuple[str, ...]:
        """ν and σ, and that standard errors know them."""
        if not self.chosen:
            return ()
        nu, sigma = self.known
        if nu >= NORMAL_NU:
            return (
                f"Errors have no longer tails than normal ones: nu went to infinity, where family='gaussian' is the "
                f"same. REML chose sigma = {sigma:.6g}.",
            )
        return (f"REML chose nu = {nu:.6g} and sigma = {sigma:.6g}; standard errors and tests take them as known.",)

    def mean(self, eta: FloatArray) -> FloatArray:
        """The predictor itself."""
        return eta

    def predictor(self, mean: FloatArray) -> FloatArray:
        """The mean itself."""
        return mean

    def mean_slope(self, eta: FloatArray) -> FloatArray:
        """Ones."""
        return np.ones_like(eta)

    def variance(self, mean: FloatArray) -> FloatArray:
        """``σ² ν / (ν - 2)``."""
        nu, sigma = self.known
        return np.full_like(mean, sigma**2 * nu / (nu - 2))

    def half_deviance(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """``(ν + 1) / 2 log(1 + r² / ν)``, r the error divided by σ."""
        nu, sigma = self.known
        return np.asarray((nu + 1) / 2 * np.log1p(((y - eta) / sigma) ** 2 / nu))

    def working(self, y: FloatArray, eta: FloatArray) -> Derivatives:
        """As :meth:`Family.working`: weights are negative of errors beyond ``σ √ν``."""
        nu, sigma = self.known
        error, inner, bound = self._parts(y, eta)
        share = bound / (nu + 1)  # 1 / (νσ² + error²)
        weight = bound * share * (inner - error**2)
        slope = 2 * error * bound * share**2 * (3 * inner - error**2)
        fisher = np.full_like(eta, (nu + 1) / (nu + 3) / sigma**2)
        return Derivatives(bound * error, weight, slope, fisher, bound)

    def slopes(self, y: FloatArray, eta: FloatArray) -> ThetaSlopes:
        """As :meth:`FamilyWithTheta.slopes`, in ``log(ν - 3)`` and log σ."""
        nu, sigma = self.known
        error, inner, bound = self._parts(y, eta)
        share, squares, pace = bound / (nu + 1), error**2, nu - LEAST_NU
        of_nu = (np.log1p(squares / inner) - bound * squares / nu) / 2 - _beside_normal(nu)[1]
        of_inner = bound * share**2 * (3 * squares - inner)  # of the weight, along νσ²
        residual = np.array([pace * error * share * (1 - sigma**2 * bound), -2 * inner * bound * share * error])
        weight = np.array([pace * (share**2 * (inner - squares) + sigma**2 * of_inner), 2 * inner * of_inner])
        return ThetaSlopes(np.array([pace * of_nu, 1 - bound * squares]), residual, weight)

    def _parts(self, y: FloatArray, eta: FloatArray) -> tuple[FloatArray, float, FloatArray]:
        """The error, ``νσ²``, and ``(ν + 1) / (νσ² + error²)``."""
        nu, sigma = self.known
        error, inner = y - eta, nu * sigma**2
        return error, inner, (nu + 1) / (inner + error**2)

    def _possible(self, y: FloatArray, weights: FloatArray | None) -> BoolArray:
        return np.isfinite(y)

    def saturated(self, y: FloatArray, weights: FloatArray, scale: float) -> tuple[float, float, float]:
        """As :meth:`Family.saturated`."""
        nu, sigma = self.known
        own = _beside_normal(nu)[0] - np.log(sigma) - np.log(2 * np.pi) / 2
        return float(weights.sum() * own), 0.0, 0.0

    def law(self, eta: FloatArray, se: FloatArray, scale: float) -> Any:
        """As :meth:`Family.law`: with the variance of a new response about its estimated mean."""
        from scipy.stats import t

        nu, sigma = self.known
        return t(nu, loc=eta, scale=np.sqrt(sigma**2 + se**2 * (nu - 2) / nu))


def _beside_normal(nu: float) -> tuple[float, float]:
    """By how much the log-density of t at 0 is above the normal law's, and the derivative in ν.

    Of many degrees of freedom by its series, where differences of ``log Γ`` would have no digits left.
    """
    half = nu / 2
    if half > 50:
        value = -1 / (8 * half) + 1 / (192 * half**3) - 1 / (640 * half**5)
        slope = 1 / (8 * half**2) - 1 / (64 * half**4) + 1 / (128 * half**6)
    else:
        value = float(gammaln(half + 0.5) - gammaln(half) - np.log(half) / 2)
        slope = float(psi(half + 0.5) - psi(half)) - 1 / (2 * half)
    return value, slope / 2
