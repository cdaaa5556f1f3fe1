"""Randomisers that send a direction: a unit vector near the gradient's own more often than one far from it.

Directions are drawn first, from randomness alone, and the record decides only whether one is sent as it is, turned
round, or passed over: the unit vectors that there are in floating point are the same for every record.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import betainc, betaincinv, gammaln

from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.federated.local._base import Randomizer, Reports, as_bytes, inverse_bias, log_odds
from fdadp.federated.local.coins import FULL, Coins, normals, threshold, tossed, uniforms

SMALLEST_CAP = 1 / 256
_BLOCK = 2**20
"""Numbers that are drawn at once."""


class _Sphere(Randomizer):
    """A unit vector for a gradient in the ball of radius R = √D; a report is that vector.

    The gradient is first rounded, unbiasedly, to ±R in its own direction.
    """

    def __init__(self, dimensions: int, epsilon: float) -> None:
        super().__init__(dimensions, epsilon)
        self.radius = math.sqrt(self.dimensions)
        self.width = 8 * self.dimensions
        self.format = f"{self.dimensions} 64-bit floats, little-endian: a unit vector"

    def estimate(self, reports: Reports) -> FloatArray:
        """Unbiased estimates (m, D) of the gradients."""
        vectors = np.ascontiguousarray(reports).view("<f8").astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            wrong = ~(np.abs(np.square(vectors).sum(axis=1) - 1) < 1e-9)
        if wrong.any():
            raise InputError(f"reports must be unit vectors, got {vectors[wrong][0].tolist()}")
        return vectors * self.length

    def _ends(self, gradients: FloatArray, uniform: FloatArray) -> FloatArray:
        """±g/|g|, (m, D), with mean g/R; where g is zero ± the first axis."""
        peak = np.abs(gradients).max(axis=1, keepdims=True)
        zero = peak[:, 0] == 0
        direction = gradients / np.where(peak > 0, peak, 1.0)  # so that squares cannot underflow
        direction[zero, 0] = 1.0
        norm = np.sqrt(np.square(direction).sum(axis=1, keepdims=True))
        plus = uniform < 0.5 + (peak * norm)[:, 0] / (2 * self.radius)
        return np.asarray(np.where(plus[:, None], direction, -direction) / norm)


class L2Ball(_Sphere):
    """A random direction, in the half-space of the gradient with probability e^ε/(1 + e^ε).

    References
    ----------
    Duchi, Jordan & Wainwright (2018), JASA 113, 182-201, arXiv:1604.02390, mechanism for the L2 ball.
    """

    name = "l2_ball"

    def __init__(self, dimensions: int, epsilon: float) -> None:
        super().__init__(dimensions, epsilon)
        self._keep = threshold(self.epsilon)
        D = self.dimensions
        mean = math.exp(gammaln(D / 2) - gammaln((D + 1) / 2)) / math.sqrt(math.pi)  # of |v_1|
        self.length = self.radius * inverse_bias(self._keep) / mean
        self.noise = "a direction of the half-space, or of the other"

    @property
    def exact_epsilon(self) -> float:
        """Largest log-ratio of two probabilities of the coins."""
        return log_odds(self._keep)

    def __call__(self, gradients: FloatArray, coins: Coins) -> Reports:
        """Reports (m, width) of gradients (m, D), from D + 2 words of random bits a row."""
        D = self.dimensions
        words = coins.words(len(gradients), D + 2)
        v = _unit(normals(words[:, :D]))  # before the record is looked at; then only whether it is turned round
        same = (v * self._ends(gradients, uniforms(words[:, D]))).sum(axis=1) >= 0
        keep = tossed(words[:, D + 1], self._keep)
        return as_bytes(np.where((same == keep)[:, None], v, -v).astype("<f8"))


class PrivUnit(_Sphere):
    """A random direction, in a cap about the gradient with probability p, else outside it.

    Parameters
    ----------
    dimensions : int
    epsilon : float
        p and the cap {v: v'u >= γ} are chosen for the shortest estimates, with ε = ln[p/(1-p)] + ln[(1-q)/q],
        q = P(v'u >= γ) for a uniform direction, at least :data:`SMALLEST_CAP` (a report takes some 1/q draws).

    Attributes
    ----------
    p, q, gamma : float

    Notes
    -----
    A direction in the cap has density p/q, one outside (1-p)/(1-q), relative to the uniform law: their ratio is e^ε.
    With c (1-t²)^((D-3)/2) the density of v_1, E v'u = c (1-γ²)^((D-1)/2)/(D-1) · [p/q - (1-p)/(1-q)], by which the
    estimate is scaled.

    *What is not exact.* Directions are drawn until there is one in the cap and one outside, whichever is wanted, so the
    time does not tell. That q is the same for every cap holds for the uniform law; in floats up to relative errors of
    about 10⁻¹³, for which 10⁻⁹ of ε are set aside, without a proof.

    References
    ----------
    Bhowmick, Duchi, Freudiger, Kapoor & Rogers (2018), arXiv:1812.00984, PrivUnit2.
    """

    name = "privunit"
    proved = False

    def __init__(self, dimensions: int, epsilon: float) -> None:
        super().__init__(dimensions, epsilon)
        budget = self.epsilon * (1 - 1e-3) if self.epsilon < 1e-5 else self.epsilon - 1e-9

        def cap(log_q: float) -> tuple[float, float, int, float]:
            """γ, q, numerator of p, and E v'u."""
            D = self.dimensions
            gamma = math.sqrt(max(1 - float(betaincinv((D - 1) / 2, 0.5, min(2 * math.exp(log_q), 1.0))), 0.0))
            q = float(betainc((D - 1) / 2, 0.5, 1 - gamma**2)) / 2
            inside = threshold(budget + math.log(q) - math.log1p(-q))
            p = inside / FULL
            area = math.exp(gammaln(D / 2) - gammaln((D - 1) / 2)) / math.sqrt(math.pi)
            mass = area * (1 - gamma**2) ** ((D - 1) / 2) / (D - 1)
            return gamma, q, inside, mass * (p / q - (1 - p) / (1 - q))

        best = minimize_scalar(
            lambda log_q: -cap(log_q)[3], bounds=(math.log(SMALLEST_CAP), math.log(0.5)), method="bounded"
        )
        self.gamma, self.q, self._inside, mean = cap(float(best.x))
        self.p = self._inside / FULL
        self.length = self.radius / mean
        self.noise = f"a direction of a cap of {100 * self.q:.3g} % of the sphere, or of the rest"

    @property
    def exact_epsilon(self) -> float:
        """Largest log-ratio of two probabilities of the coins, for the uniform law of directions."""
        return log_odds(self._inside) + math.log1p(-self.q) - math.log(self.q)

    def __call__(self, gradients: FloatArray, coins: Coins) -> Reports:
        """Reports (m, width) of gradients (m, D), from 2 words of random bits a row, and some D/q for directions."""
        words = coins.words(len(gradients), 2)
        u = self._ends(gradients, uniforms(words[:, 0]))
        inside, outside = (np.full(u.shape, np.nan) for _ in range(2))
        draws = math.ceil(1 / self.q)
        rows = max(1, _BLOCK // (draws * self.dimensions))
        left = np.arange(len(u))
        while left.size:
            block = left[:rows]
            v = _unit(normals(coins.words(len(block) * draws, self.dimensions))).reshape(len(block), draws, -1)
            member = np.einsum("mkd,md->mk", v, u[block]) >= self.gamma
            for found, fits in ((inside, member), (outside, ~member)):
                new = np.isnan(found[block, 0]) & fits.any(axis=1)
                found[block[new]] = v[new, fits[new].argmax(axis=1)]
            left = left[np.isnan(inside[left, 0]) | np.isnan(outside[left, 0])]
        chosen = np.where(tossed(words[:, 1], self._inside)[:, None], inside, outside)
        return as_bytes(chosen.astype("<f8"))


def _unit(vectors: FloatArray) -> FloatArray:
    return np.asarray(vectors / np.sqrt(np.square(vectors).sum(axis=1, keepdims=True)))
