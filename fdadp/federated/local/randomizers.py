"""Local randomisers of a gradient: what leaves a user's device, and the unbiased estimate that a server makes of it.

Each is ε-LDP for one report: whatever two records a user may have, whatever the model that was sent, no set of reports
is more than e^ε times as likely with the one as with the other. All estimates of one mechanism have the same length
(:attr:`Randomizer.length`), so the squared error of one report is ``length² - |g|²``.

*Floating point.* Which reports are possible never depends on the record. The condensed-local and the one-coordinate
mechanism send bits, which a coin of rational odds of at most e^ε flips; where the bit before the coin comes from, and
how it was rounded, does not matter. The two others draw their directions first, from randomness alone, and the record
decides only whether one is sent as it is, turned round, or passed over. The unit vectors that there are in floating
point are thus the same for every record (Mironov 2012 has the attack on noise that is added to a float).
"""

from __future__ import annotations

from typing import Any

from fdadp.errors import InputError
from fdadp.federated.local._base import Randomizer
from fdadp.federated.local.signs import CondensedLocal, OneCoordinate
from fdadp.federated.local.sphere import L2Ball, PrivUnit
from fdadp.learners.shared.inputs import positive

MECHANISMS: dict[str, Any] = {cls.name: cls for cls in (CondensedLocal, OneCoordinate, L2Ball, PrivUnit)}


def randomizer(
    mechanism: str,
    dimensions: int,
    *,
    epsilon: float | None = None,
    alpha: float | None = None,
    half_exponent: bool = True,
) -> Randomizer:
    """Make a randomiser for an ε of one report, or for an α of the condensed-local claim.

    Parameters
    ----------
    mechanism : {"cldp", "one_coordinate", "l2_ball", "privunit"}
    dimensions : int
        D, at least 2.
    epsilon : float, optional
        ε_LDP of one report; for ``"cldp"`` κ = ε/D.
    alpha : float, optional
        Instead of it, for ``"cldp"``: κ = α/2 as published (``half_exponent``), or κ = α, which satisfies α-CLDP as
        well, because the sum in the exponential mechanism is the same for every input. ε_LDP is κ D in both.
    half_exponent : bool

    Raises
    ------
    InputError
        Unknown mechanism, or not one of ε and α, or out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from fdadp.federated.local.coins import Coins
    >>> published = randomizer("cldp", 6, alpha=1.0)
    >>> published.kappa, published.epsilon
    (0.5, 3.0)
    >>> reports = published(np.zeros((1000, 6)), Coins(seed=0))
    >>> reports.shape, published.estimate(reports).shape
    ((1000, 1), (1000, 6))
    """
    if mechanism not in MECHANISMS:
        raise InputError(f"mechanism must be one of {', '.join(MECHANISMS)}, got {mechanism!r}")
    if (epsilon is None) == (alpha is None):
        raise InputError(f"epsilon or alpha must be given, not both, got epsilon={epsilon!r} and alpha={alpha!r}")
    if alpha is not None:
        if mechanism != "cldp":
            raise InputError(f'alpha must be left out unless mechanism is "cldp", got {alpha!r} with {mechanism!r}')
        return CondensedLocal(dimensions, positive(alpha, "alpha") / (2 if half_exponent else 1))
    if mechanism == "cldp":
        return CondensedLocal(dimensions, positive(epsilon, "epsilon") / dimensions)
    made: Randomizer = MECHANISMS[mechanism](dimensions, epsilon)
    return made
