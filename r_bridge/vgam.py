"""VGAM through R: the Laplace noise of the published experiments."""

from __future__ import annotations

from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from r_bridge._rpy2 import call

__all__ = ["rlaplace"]


def rlaplace(n: int, location: float = 0.0, scale: float = 1.0, *, seed: int | None = None) -> FloatArray:
    """Draw from the Laplace distribution with ``VGAM::rlaplace``; for comparisons, never for a release.

    Parameters
    ----------
    n : int
    location, scale : float
    seed : int, optional
        For R's ``set.seed``.

    Returns
    -------
    ndarray of shape (n,)

    Raises
    ------
    RBridgeUnavailable
        No R, rpy2 or VGAM.
    InputError
        Scale not above 0, or n below 1.

    Examples
    --------
    >>> rlaplace(3, scale=2.0, seed=1)  # doctest: +SKIP
    array([-1.26592126, -0.59076247,  0.31496147])
    """
    if not scale > 0:
        raise InputError(f"scale must be above 0, got {scale!r}")
    if n < 1:
        raise InputError(f"n must be at least 1, got {n!r}")
    draws: FloatArray = call("rlaplace", "VGAM", n=int(n), location=float(location), scale=float(scale), seed=seed)
    return draws
