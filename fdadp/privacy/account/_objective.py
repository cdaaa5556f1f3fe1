"""What noise in the objective of a logistic regression costs: (ε, δ) of its minimisers.

Sources: Chaudhuri, Monteleoni & Sarwate (2011), JMLR 12; Redberg, Koskela & Wang (2023), arXiv:2401.00583 (objective
perturbation of generalised linear models).
"""

from __future__ import annotations

import functools
import math

import numpy as np
from scipy.signal import fftconvolve
from scipy.special import log_ndtr, ndtr

from fdadp.errors import PrivacyError

_FLOATS = 1e-11
"""Relative error that is allowed for in values of the normal distribution and in exponentials of up to ε."""


@functools.lru_cache(maxsize=64)
def gaussian_multiplier(epsilon: float, delta: float, ridge: float, problems: int = 1) -> float:
    """Largest μ such that b ~ N(0, I/μ²) in the objective of K logistic problems is (ε, δ)-private.

    Where a person is added or removed, the log-ratio of densities of the K minimisers is at most
    ``K (μ²/2 + log(1 + 1/(4λ))) + μ Σ_k max(0, ζ_k)``, ζ_k ~ N(0, 1) independent: the Jacobian is bounded by the
    rank-one Hessian, and the sign of the gradient of a generalised linear loss is that of its label, whatever w.

    Raises
    ------
    PrivacyError
        λ is so small that the Jacobian alone costs more than ε.
    """
    jacobian = math.log1p(1 / (4 * ridge))
    if problems * jacobian >= epsilon:
        raise PrivacyError(
            f"ridge must be at least {1 / (4 * math.expm1(epsilon / problems)):.3g} at this epsilon, got {ridge:g}"
        )
    low, high = 0.0, 1.0
    while _hockey_stick(epsilon, high, jacobian, problems) <= delta:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _hockey_stick(epsilon, middle, jacobian, problems) <= delta else (low, middle)
    if low < 1e-6:
        raise PrivacyError(f"ridge must be larger at epsilon {epsilon:g} and delta {delta:g}, got {ridge:g}")
    return low


def _hockey_stick(epsilon: float, mu: float, jacobian: float, problems: int) -> float:
    """E (1 - exp(ε - L))_+ for L = K (μ²/2 + jacobian) + μ Σ max(0, ζ_k): δ at ε."""
    gap = epsilon - problems * (mu**2 / 2 + jacobian)
    if problems == 1:
        if gap >= 0:
            plus, minus = float(ndtr(-gap / mu)), math.exp(gap + mu**2 / 2 + float(log_ndtr(-gap / mu - mu)))
        else:
            plus, minus = 1.0, 0.5 * math.exp(gap) + math.exp(gap + mu**2 / 2 + float(log_ndtr(-mu)))
        return plus - minus + _FLOATS * (plus + minus) + 1e-300  # which is what underflows
    # The law of the sum on a grid, each max(0, ζ) rounded up: δ can only come out larger.
    step = 2e-3
    grid = np.arange(0, 12, step)
    law = np.diff(ndtr(grid), prepend=0.0)  # the first cell holds the half that is 0
    law[-1] += 1 - law.sum()
    total = law
    for _ in range(problems - 1):
        total = np.maximum(fftconvolve(total, law), 0.0)
    excess = mu * step * np.arange(total.size) - gap
    rounding = 2e-16 * problems * total.size + 1e-30 * problems  # of the convolutions; what lies beyond 12
    return float((total * np.where(excess > 0, -np.expm1(-np.maximum(excess, 0)), 0.0)).sum()) + rounding
