"""What an audit from outside finds: a lower bound on ε, beside the ε that is claimed."""

from __future__ import annotations

import math
from dataclasses import dataclass

TOO_SMALL = math.sqrt(2)
"""Factor by which the noise is too small in the mechanism against which audits state their power."""


@dataclass(frozen=True)
class LowerBound:
    """A lower bound on ε.

    Attributes
    ----------
    epsilon, delta : float
        What is claimed.
    found : float
        Lower bound on ε at this δ, at the confidence `level`; 0 where nothing was found.
    level : float
    power : float
        Probability that this audit, with as many draws, finds noise that is too small by √2 where it claims to be just
        enough: of a Gaussian or, without a δ, a Laplace release, of which the scores are the log-likelihood ratio.
    """

    epsilon: float
    delta: float
    found: float
    level: float
    power: float

    @property
    def passed(self) -> bool:
        """Whether the claim stands."""
        return self.found <= self.epsilon

    @property
    def _verdict(self) -> str:
        return (
            f"{'no violation' if self.passed else 'VIOLATION'}; claimed epsilon {self.epsilon:g} "
            f"(delta {self.delta:g}), found at least {self.found:.2f} at {self.level:.0%} confidence; "
            f"power against noise too small by sqrt(2): {self.power:.2f}"
        )
