"""One noisy release, as ledgers and studies have it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Release:
    """One noisy release.

    Attributes
    ----------
    name : str
        What was released.
    size : int
        Number of values.
    noise : str
        Distribution of the noise.
    scale : float
        Its scale, in units of the released values.
    sensitivity : float
        The sensitivity that the scale was derived from.
    epsilon : float or None
        The ε claimed for it; None where it is accounted for in μ or ρ.
    rho : float or None
        The ρ (zCDP) spent on it.
    mu : float or None
        The μ (Gaussian DP) spent on it, where that is what adds up: as squares.
    share : float or None
        Share of the fit's budget that was set aside for it.
    sd : float or None
        Standard deviation of the noise on each value, in their units.
    clip : float or None
        Bound on the norm of one person's contribution.
    norm : str
        The norm in which contributions are clipped and the sensitivity is measured.
    adjacency, unit : str
        What the guarantee compares, and what counts as one person.
    secure : bool
        Whether the noise may be used for a release.
    lattice_bits : int or None
        Contributions were truncated to multiples of clip · 2^-bits.
    delta : float or None
        The δ of a release that is accounted for in (ε, δ) by itself: it takes a whole budget. 0 of a pure one.
    draw : str
        How near the drawn noise is to its law, for noise that may be used for a release: exact, within a distance that
        is counted in δ, or not proved (``docs/theory/noise.md#exactness``).
    """

    name: str
    size: int
    noise: str
    scale: float
    sensitivity: float
    epsilon: float | None = None
    rho: float | None = None
    share: float | None = None
    sd: float | None = None
    clip: float | None = None
    norm: str = ""
    adjacency: str = ""
    unit: str = ""
    secure: bool = False
    lattice_bits: int | None = None
    delta: float | None = None
    mu: float | None = None
    draw: str = ""

    @property
    def spent(self) -> float:
        """The privacy cost in the measure of its budget: μ²/2, ρ or ε."""
        return self.mu**2 / 2 if self.mu is not None else self.rho or self.epsilon or 0.0

    @property
    def cost(self) -> str:
        """The privacy cost in words."""
        if self.mu is not None:
            return f"mu {self.mu:.4g}"
        if self.rho is not None:
            return f"rho {self.rho:.4g}"
        if self.delta is not None:
            return f"epsilon {self.epsilon:g}, " + (
                f"delta {self.delta:g}" if self.delta else "pure (better than asked)"
            )
        return "" if self.epsilon is None else f"claimed epsilon {self.epsilon:g}"
