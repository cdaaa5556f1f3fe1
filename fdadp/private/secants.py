"""The second moment of features, from differences of released gradients. Costs no privacy."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fdadp._common.typing import FloatArray
from fdadp.private.bayes import Measurement, steady

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
