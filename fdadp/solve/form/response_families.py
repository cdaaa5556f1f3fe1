"""Families of responses: what links the linear predictor η to the mean, and the likelihood about it.

Every family of this file has a likelihood that is log-concave in η, so that a penalised fit has one maximum. Links are
the canonical ones, but for the gamma family, whose link is the logarithm.

References
----------
McCullagh & Nelder (1989), Generalized Linear Models, doi:10.1201/9780203753736; Wood (2011),
doi:10.1111/j.1467-9868.2010.00749.x, section 2.2 on the scale of saturated likelihoods.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import expit, gammaln, polygamma, psi, xlogy

from fdadp._common.typing import BoolArray, FloatArray
from fdadp.errors import InputError


class Derivatives(NamedTuple):
    """Derivatives in η of half the deviance of each observation, all of the shape of η.

    `residual` is minus the first one, `weight` the second and `slope` the third; `fisher` is the expected second one.
    Where a family is not log-concave, the parabola with the same slope and second derivative `bound` is nowhere below.
    """

    residual: FloatArray
    weight: FloatArray
    slope: FloatArray
    fisher: FloatArray
    bound: FloatArray | None = None


class Family(ABC):
    """A family with its link."""

    name: ClassVar[str]
    link: ClassVar[str]
    known_scale: ClassVar[bool]
    """Whether the scale φ of the variance ``φ V(μ)`` is 1 rather than estimated."""

    log_concave: ClassVar[bool] = True
    """Whether the likelihood is log-concave in η: second derivatives of the deviance are then not negative."""

    canonical: ClassVar[bool] = False
    """Whether the link is the canonical one: second derivatives of the deviance are then what is expected of them."""

    valid: ClassVar[str]
    """What responses must be."""

    extremes: ClassVar[tuple[float, ...]] = ()
    """Means at the end of the parameter space: responses with such a mean have no finite estimate of it."""

    beyond_extremes: ClassVar[str] = ""
    """What responses must have for another mean."""

    first_class: ClassVar[int | None] = None
    """Number of the first class; None where responses are no classes."""

    placeholder: ClassVar[float] = 1.0
    """A valid response, to stand where none was observed."""

    @property
    def n_estimated(self) -> int:
        """Number of parameters beside the scale that the data chose."""
        return 0

    @property
    def shown(self) -> str:
        """Name with the parameters that are known, in words."""
        return self.name

    @abstractmethod
    def mean(self, eta: FloatArray) -> FloatArray:
        """Inverse link."""

    @abstractmethod
    def predictor(self, mean: FloatArray) -> FloatArray:
        """The link."""

    def mean_slope(self, eta: FloatArray) -> FloatArray:
        """Derivative of the mean in η."""
        return self.variance(self.mean(eta))

    @abstractmethod
    def variance(self, mean: FloatArray) -> FloatArray:
        """``V(μ)``."""

    def skewness(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """``V'(μ) (y - μ) / V(μ)``, 0 where the variance does not depend on the mean."""
        return np.zeros_like(eta)

    @abstractmethod
    def half_deviance(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """Half the deviance of each observation with weight 1: by how much its log-likelihood is below saturation."""

    @abstractmethod
    def working(self, y: FloatArray, eta: FloatArray) -> Derivatives:
        """Derivatives of :meth:`half_deviance`."""

    @abstractmethod
    def _possible(self, y: FloatArray, weights: FloatArray | None) -> BoolArray:
        """Which responses can come from this family."""

    @abstractmethod
    def saturated(self, y: FloatArray, weights: FloatArray, scale: float) -> tuple[float, float, float]:
        """Log-likelihood where each mean is the response, and its two derivatives in log φ; weights are positive.

        What of it depends on the responses must not depend on φ, where that is not known.
        """

    def log_likelihood(self, y: FloatArray, eta: FloatArray, weights: FloatArray, scale: float) -> float:
        """Of observations with positive weights."""
        below = float((weights * self.half_deviance(y, eta)).sum()) / scale
        return self.saturated(y, weights, scale)[0] - below

    def deviance_residuals(self, y: FloatArray, mean: FloatArray, weights: FloatArray | None) -> FloatArray:
        """Signed square roots of the deviance of each observation; NaN where there was none."""
        seen = ~np.isnan(y)
        out = np.full(y.shape, np.nan)
        with np.errstate(divide="ignore"):
            eta = np.nan_to_num(self.predictor(mean[seen]), posinf=40.0, neginf=-700.0)
        below = self.half_deviance(y[seen], eta)
        out[seen] = np.sign(self.working(y[seen], eta).residual) * np.sqrt(2 * np.maximum(below, 0.0))
        return out if weights is None else out * np.sqrt(weights)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for summaries, about parameters that the data chose."""
        return ()

    def law(self, eta: FloatArray, se: FloatArray, scale: float) -> Any:
        """Law of new responses of weight 1, as SciPy has it, where η is known with standard errors.

        Of families with the link log the law has the mean and the variance of responses whose log mean is normal.

        Raises
        ------
        InputError
            Responses that are no numbers or counts.
        """
        raise InputError(
            f"predict_interval is there for numbers and counts, got family={self.name!r}; predict_se has standard "
            "errors of the means"
        )

    def interval(self, eta: FloatArray, se: FloatArray, scale: float, level: float) -> tuple[FloatArray, FloatArray]:
        """Equal-tailed intervals of new responses of weight 1: lower and upper ends, of the shape of η."""
        law = self.law(eta, se, scale)
        return np.asarray(law.ppf((1 - level) / 2)), np.asarray(law.ppf((1 + level) / 2))

    def check(self, y: FloatArray, weights: FloatArray | None = None, name: str = "Y", first: int = 0) -> None:
        """Refuse responses that cannot come from this family; NaN is what was not observed.

        Parameters
        ----------
        y : ndarray of shape (n,) or (n, T)
        weights : ndarray of the same shape, optional
        name : str
            Of the response in messages.
        first : int
            Number of the first row.

        Raises
        ------
        InputError
            Naming the row.
        """
        bad = np.argwhere(~(self._possible(y, weights) | np.isnan(y)))
        if len(bad):
            at = tuple(bad[0].tolist())
            where = f"row {first + at[0]}" + (f", position {at[1]}" if len(at) > 1 and y.shape[1] > 1 else "")
            raise InputError(f"{name} must have {self.valid} for family={self.name!r}, got {y[at]:g} in {where}")

    def check_mean(self, mean: float, name: str = "Y") -> None:
        """Refuse responses that leave the intercept without a finite estimate.

        Raises
        ------
        InputError
            Counts that are all 0, or 0/1 responses that are all the same.
        """
        if mean in self.extremes:
            raise InputError(f"{name} must have {self.beyond_extremes} for family={self.name!r}, got only {mean:g}")


@dataclass(frozen=True)
class Gaussian(Family):
    """Numbers with errors of one variance."""

    name = "gaussian"
    link = "identity"
    known_scale = False
    valid = "finite numbers"

    def mean(self, eta: FloatArray) -> FloatArray:
        """The predictor itself."""
        return eta

    def predictor(self, mean: FloatArray) -> FloatArray:
        """The mean itself."""
        return mean

    def variance(self, mean: FloatArray) -> FloatArray:
        """Ones."""
        return np.ones_like(mean)

    def half_deviance(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """``(y - η)² / 2``."""
        return (y - eta) ** 2 / 2

    def working(self, y: FloatArray, eta: FloatArray) -> Derivatives:
        """Weights are 1."""
        ones = np.ones_like(eta)
        return Derivatives(y - eta, ones, np.zeros_like(eta), ones)

    def _possible(self, y: FloatArray, weights: FloatArray | None) -> BoolArray:
        return np.isfinite(y)

    def saturated(self, y: FloatArray, weights: FloatArray, scale: float) -> tuple[float, float, float]:
        """As :meth:`Family.saturated`."""
        value = float(np.log(weights).sum() - y.size * np.log(2 * np.pi * scale)) / 2
        return value, -y.size / 2, 0.0


@dataclass(frozen=True)
class Binomial(Family):
    """0 or 1, or shares of successes whose weights are numbers of trials; link logit."""

    name = "binomial"
    link = "logit"
    canonical = True
    known_scale = True
    valid = "0 or 1 (or shares between them with weights=, the numbers of trials)"
    first_class = 0
    extremes = (0.0, 1.0)
    beyond_extremes = "both 0 and 1"

    def mean(self, eta: FloatArray) -> FloatArray:
        """``1 / (1 + e^-η)``."""
        return np.asarray(expit(eta))

    def predictor(self, mean: FloatArray) -> FloatArray:
        """The log-odds."""
        return np.log(mean) - np.log1p(-mean)

    def variance(self, mean: FloatArray) -> FloatArray:
        """``μ (1 - μ)``."""
        return mean * (1 - mean)

    def half_deviance(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """As :meth:`Family.half_deviance`; without cancellation where the mean is near 0 or 1."""
        size = np.abs(eta)
        beyond = np.log1p(np.exp(-size)) + size * np.abs(y - (eta > 0))
        inside = (y > 0) & (y < 1)
        return np.asarray(beyond + xlogy(y, y) + xlogy(1 - y, 1 - y) if inside.any() else beyond)

    def working(self, y: FloatArray, eta: FloatArray) -> Derivatives:
        """As :meth:`Family.working`."""
        odds, high = np.exp(-np.abs(eta)), eta > 0  # a third of the time of expit
        more = 1 / (1 + odds)
        less = odds * more
        mean, other, weight = np.where(high, more, less), np.where(high, less, more), less * more
        return Derivatives(y * other - (1 - y) * mean, weight, weight * (other - mean), weight)

    def _possible(self, y: FloatArray, weights: FloatArray | None) -> BoolArray:
        return np.asarray((y == 0) | (y == 1) if weights is None else (y >= 0) & (y <= 1))

    def saturated(self, y: FloatArray, weights: FloatArray, scale: float) -> tuple[float, float, float]:
        """As :meth:`Family.saturated`."""
        shares = (y > 0) & (y < 1)  # of all others it is 0
        y, weights = y[shares], weights[shares]
        hits, misses = weights * y, weights * (1 - y)
        ways = gammaln(weights + 1) - gammaln(hits + 1) - gammaln(misses + 1)
        return float((ways + weights * (xlogy(y, y) + xlogy(1 - y, 1 - y))).sum()), 0.0, 0.0


class LogLink(Family):
    """Families whose link is the logarithm."""

    link = "log"

    def mean(self, eta: FloatArray) -> FloatArray:
        """``e^η``."""
        return np.exp(eta)

    def predictor(self, mean: FloatArray) -> FloatArray:
        """The logarithm."""
        return np.log(mean)

    def mean_slope(self, eta: FloatArray) -> FloatArray:
        """The mean."""
        return np.exp(eta)


@dataclass(frozen=True)
class Poisson(LogLink):
    """Counts; link log, so that an offset of log exposure makes them rates."""

    name = "poisson"
    canonical = True
    known_scale = True
    valid = "counts of 0 or more"
    extremes = (0.0,)
    beyond_extremes = "a count above 0"

    def variance(self, mean: FloatArray) -> FloatArray:
        """The mean."""
        return mean

    def half_deviance(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """``y log(y / μ) - (y - μ)``."""
        return np.asarray(xlogy(y, y) - y * eta - y + np.exp(eta))

    def working(self, y: FloatArray, eta: FloatArray) -> Derivatives:
        """Weights are the means."""
        mean = np.exp(eta)
        return Derivatives(y - mean, mean, mean, mean)

    def _possible(self, y: FloatArray, weights: FloatArray | None) -> BoolArray:
        return np.asarray((y >= 0) & (y == np.floor(y)) & np.isfinite(y))

    def saturated(self, y: FloatArray, weights: FloatArray, scale: float) -> tuple[float, float, float]:
        """As :meth:`Family.saturated`."""
        return float((weights * (xlogy(y, y) - y - gammaln(y + 1))).sum()), 0.0, 0.0

    def law(self, eta: FloatArray, se: FloatArray, scale: float) -> Any:
        """As :meth:`Family.law`."""
        return counts_about(eta, se, 0.0)


def counts_about(eta: FloatArray, se: FloatArray, excess: float) -> Any:
    """Negative binomial law of counts of variance ``μ + excess μ²``, where log μ is normal."""
    from scipy.stats import nbinom

    size = 1 / np.maximum((1 + excess) * np.exp(se**2) - 1, LEAST_EXCESS)
    return nbinom(size, size / (size + np.exp(eta + se**2 / 2)))


LEAST_EXCESS = 1e-9
"""Of the squared mean, by which a law's variance is above Poisson's where it is Poisson's."""


@dataclass(frozen=True)
class Gamma(LogLink):
    """Positive numbers whose standard deviation is in proportion to their mean; link log."""

    name = "gamma"
    known_scale = False
    valid = "numbers above 0"

    def variance(self, mean: FloatArray) -> FloatArray:
        """The square of the mean."""
        return mean**2

    def skewness(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """``2 (y - μ) / μ``."""
        return np.asarray(2 * (y * np.exp(-eta) - 1))

    def half_deviance(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """``-log(y / μ) + (y - μ) / μ``."""
        return np.asarray(eta - np.log(y) + y * np.exp(-eta) - 1)

    def working(self, y: FloatArray, eta: FloatArray) -> Derivatives:
        """Observed weights are ``y / μ``, expected ones 1."""
        ratio = y * np.exp(-eta)
        return Derivatives(ratio - 1, ratio, -ratio, np.ones_like(ratio))

    def _possible(self, y: FloatArray, weights: FloatArray | None) -> BoolArray:
        return np.asarray(np.isfinite(y) & (y > 0))

    def saturated(self, y: FloatArray, weights: FloatArray, scale: float) -> tuple[float, float, float]:
        """As :meth:`Family.saturated`: the shape of an observation is its weight divided by φ."""
        different, counts = np.unique(weights, return_counts=True)
        shape = different / scale
        value = float((counts * (shape * np.log(shape) - shape - gammaln(shape))).sum() - np.log(y).sum())
        first = np.log(shape) - psi(shape)
        slope = float((counts * shape * first).sum())
        return value, -slope, slope + float((counts * shape * (1 - shape * polygamma(1, shape))).sum())

    def law(self, eta: FloatArray, se: FloatArray, scale: float) -> Any:
        """As :meth:`Family.law`."""
        from scipy.stats import gamma

        spread = (1 + scale) * np.exp(se**2) - 1
        return gamma(1 / spread, scale=np.exp(eta + se**2 / 2) * spread)


@dataclass(frozen=True)
class ChiSquare(Gamma):
    """Multiples of χ² with as many degrees of freedom as twice the weight, over these; link log.

    It is the gamma family with a scale that is known: a weight of 1/2 is the square of one normal error.
    """

    name = "chi_square"
    known_scale = True

    def saturated(self, y: FloatArray, weights: FloatArray, scale: float) -> tuple[float, float, float]:
        """As :meth:`Family.saturated`."""
        return super().saturated(y, weights, 1.0)[0], 0.0, 0.0
