"""What an audit from outside finds: a lower bound on ε, beside the ε that is claimed."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["LowerBound"]


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
    """

    epsilon: float
    delta: float
    found: float
    level: float

    @property
    def passed(self) -> bool:
        """Whether the claim stands."""
        return self.found <= self.epsilon

    @property
    def _verdict(self) -> str:
        return (
            f"{'no violation' if self.passed else 'VIOLATION'}; claimed epsilon {self.epsilon:g} "
            f"(delta {self.delta:g}), found at least {self.found:.2f} at {self.level:.0%} confidence"
        )
