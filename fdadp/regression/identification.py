"""What training curves cannot tell: refuse a fit without any information, name what is left out of the others."""

from __future__ import annotations

import warnings

import numpy as np

from fdadp._common.typing import BoolArray, FloatArray
from fdadp.errors import IdentificationWarning, InputError
from fdadp.functional.margins import TensorProduct
from fdadp.solve.moments import Moments

__all__ = ["notes_on_x", "refuse_same_curves", "warn_unidentified"]


def refuse_same_curves(name: str, moments: Moments) -> None:
    """Refuse curves that are all the same but for rounding, from the moments of them or of their features.

    Raises
    ------
    InputError
        Naming the argument.
    """
    if moments.scatter.diagonal().max() <= 1e-24 * moments.n * (moments.mean @ moments.mean):
        raise InputError(f"{name} must vary between curves, got the same curve every time")


def notes_on_x(x_basis_sums: FloatArray, degree: int) -> tuple[str, ...]:
    """A note where 99 % of X lie within three tenths of the intervals between knots.

    Parameters
    ----------
    x_basis_sums : ndarray of shape (S, n_basis_x)
        Sums of the basis functions over curves.
    degree : int
        Of the splines: so many more functions than intervals are not zero there.
    """
    shares = np.sort(np.abs(x_basis_sums.sum(axis=0)))[::-1]
    used = int(np.searchsorted(np.cumsum(shares), 0.99 * shares.sum())) + 1
    if used - degree > 0.3 * (shares.size - degree):
        return ()
    return (f"99 % of X lie on {used} of {shares.size} basis functions over x: x_transform='quantile' may fit better",)


def warn_unidentified(identified: BoolArray, smooth: TensorProduct) -> None:
    """Say which of the directions without a penalty, ``∫ s^b X(s)^a ds``, the curves do not tell apart.

    Warns
    -----
    IdentificationWarning
        For one shape times a number, a level or a 0/1 treatment given as a curve, for example.
    """
    lost = np.flatnonzero(~identified)
    if lost.size == 0:
        return
    powers = [(1 + int(i) // smooth.s.size, int(i) % smooth.s.size) for i in lost]
    names = ", ".join("∫ " + _power("s", b) + _power("X(s)", a) + "ds" for a, b in powers)
    warnings.warn(
        f"the curves X do not identify {names}: among the training curves they are functions of the other integrals "
        "of this kind, or do not vary (as for one shape times a number). They are left out; the fit is not affected, "
        "predictions for curves of another shape rest on this choice",
        IdentificationWarning,
        stacklevel=6,
    )


def _power(of: str, exponent: int) -> str:
    return "" if exponent == 0 else f"{of} " if exponent == 1 else f"{of}^{exponent} "
