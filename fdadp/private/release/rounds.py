"""Rounds of noisy gradients: what all of them together measure of ``A Θ*``, and a guard against too long steps.

The measured energy of a gradient must not grow from round to round; where it does, steps are shortened and start again
from the best point.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from fdadp._common.typing import BoolArray, FloatArray
from fdadp.private.denoise.bayes import Measurement, combine, steady

# The second moment of features, from differences of released gradients. Costs no privacy.


BENDS = 0.1
"""Prior variance of what an entry of A is off along a step, for gradients bend, over that of the entry."""


def secant_update(
    a: FloatArray,
    variance: float | FloatArray,
    measurements: list[Measurement],
    active: npt.NDArray[np.bool_],
    *,
    local: bool = False,
) -> FloatArray:
    """Second moment of the features, learned from differences of released gradients.

    ``g_0 - g_t = A (Θ_t - Θ_0) + known noise``: a Gaussian update of each row of ``A ~ N(a, variance)``, entries
    independent, then made symmetric, with eigenvalues of at least 0.1. Replaces a private release of the second moment.

    Gradients are clipped, so that A is not the same everywhere: where a step was far too long nearly all persons are
    clipped, and the gradient is much smaller than it should be. `local` takes differences to the last gradient, the
    longer a step the less is believed of it, and knows that they have the noise of the last in common
    (docs/theory/dp-aff.md#rounds).

    Parameters
    ----------
    a : ndarray of shape (D, D)
    variance : float or ndarray of shape (D, D)
        Of all entries, or of each.
    measurements : list of Measurement
    active : bool ndarray of shape (D, K)
        Pairs of feature and output that are measured at all.
    local : bool
        About the last gradient, not the first.
    """
    if len(measurements) == 1:
        return a
    at = -1 if local else 0
    centre, origin, centre_variance = measurements[at]
    others = measurements[:-1] if local else measurements[1:]
    updated = a.copy()
    for j in range(len(a)):
        on = active[j]
        steps = np.concatenate([(theta - origin)[:, on].T for _, theta, _ in others])
        seen = np.concatenate([(centre - g)[j, on] - a[j] @ (theta - origin)[:, on] for g, theta, _ in others])
        noise = np.diag(np.concatenate([v[j, on] for _, _, v in others]))
        spread = steps * (variance[j] if isinstance(variance, np.ndarray) else variance)
        if local:
            noise += np.diag(BENDS * (spread * steps).sum(axis=1))
            noise += np.tile(np.diag(centre_variance[j, on]), (len(others), len(others)))
        else:
            noise += np.diag(np.tile(centre_variance[j, on], len(others)))
        updated[j] = a[j] + spread.T @ np.linalg.solve(spread @ steps.T + noise, seen)
    return steady((updated + updated.T) / 2)


GUARD_SDS = 3
"""Energies of gradients count as grown from so many sds of noise on."""
DRAWS, SEED = 4000, 1
"""Public draws of features and residuals."""


def left_by_clip(spreads: FloatArray, clip: float) -> float:
    """Share of a gradient that its clip leaves, where features and residuals are normal.

    What is clipped pulls less than it should: ``E[κ f_j² r_k²]`` over what it is for κ = 1, as a mean over the entries
    by their energies, ``κ = min(1, clip/|g|)`` the factor of a person's gradient g.

    Parameters
    ----------
    spreads : ndarray of shape (D, K)
        Root mean squares of the entries of gradients; the first feature is the constant.
    clip : float
        In the same units.
    """
    rng = np.random.default_rng(SEED)
    features = rng.normal(size=(DRAWS, spreads.shape[0])) ** 2
    features[:, 0] = 1.0
    energies = ((features @ spreads**2) * rng.normal(size=(DRAWS, spreads.shape[1])) ** 2).sum(axis=1)
    return float((np.minimum(1.0, clip / np.sqrt(energies)) * energies).sum() / energies.sum())


class Rounds:
    """Gradients that were released, and the second moment A of the features that they show.

    Parameters
    ----------
    weights : ndarray of shape (D, K)
        Of the pairs (feature, output); 0: not measured.
    variance : float or ndarray of shape (D, D)
        Prior variance of an entry of A about its prior mean.
    start : ndarray of shape (D, D), optional
        Prior mean of A; default the identity.
    local : bool
        Whether A is that near the last gradient, rather than near the first: for many rounds.
    """

    def __init__(
        self,
        weights: FloatArray,
        variance: float | FloatArray,
        start: FloatArray | None = None,
        *,
        local: bool = False,
    ) -> None:
        self.active: BoolArray = np.asarray(weights > 0)
        self.weights = np.where(self.active, weights, 1.0)
        self.variance, self.local = variance, local
        self.moment = self._start = np.eye(len(weights)) if start is None else start  # white features have about I
        self._measurements: list[Measurement] = []
        self._damping = 1.0
        self._best: tuple[float, int] | None = None

    def add(self, total: FloatArray, sd: float, theta: FloatArray, unit: float) -> tuple[FloatArray, FloatArray]:
        """Take one gradient in.

        Parameters
        ----------
        total : ndarray of shape (D, K)
            Released sum, in weighted coordinates.
        sd : float
            Of the noise in its entries.
        theta : ndarray of shape (D, K)
            Coefficients that it was measured at.
        unit : float
            What one unit of A is in the sum.

        Returns
        -------
        target, noise : ndarray of shape (D, K)
            ``A Θ*`` as measured, and the variances of its noise; A is :attr:`moment`.
        """
        t, scale = len(self._measurements), self.weights * unit
        gradient = np.where(self.active, total / scale, 0.0)
        self._measurements.append((gradient, theta, np.where(self.active, (sd / scale) ** 2, np.inf)))
        energy, base = float((total**2).sum()), t
        noisy = GUARD_SDS * sd**2 * math.sqrt(2 * int(self.active.sum()))
        if self._best is not None and energy > 2 * self._best[0] + noisy:
            self._damping *= 2
            base = self._best[1]
        if self._best is None or energy < self._best[0]:
            self._best = (energy, t)
        moment = secant_update(self._start, self.variance, self._measurements, self.active, local=self.local)
        self.moment = moment + (self._damping - 1) * np.eye(len(moment))
        return combine(self._measurements, self._measurements[base][1], self.moment, self.variance)

    def together(self, theta: FloatArray, start: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """What all rounds say near coefficients (D, K) that are settled on: no step is to be taken, none is shortened.

        Parameters
        ----------
        theta : ndarray of shape (D, K)
        start : ndarray of shape (D, D)
            Prior mean of A.

        Returns
        -------
        target, noise : ndarray of shape (D, K)
            As of :meth:`add`.
        moment : ndarray of shape (D, D)
        """
        moment = secant_update(start, self.variance, self._measurements, self.active, local=self.local)
        return *combine(self._measurements, theta, moment, self.variance), moment
