"""Functions along the response that a regression on eigenfunctions stands on, and its long form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fdadp._common.checks import numbers
from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError
from fdadp.functional.fpca import Eigenbasis
from fdadp.functional.splines.margins import margin_of
from fdadp.solve.form.long_form import LongForm
from fdadp.solve.linear.block_diagonal import ByFunction
from fdadp.solve.linear.moments import Moments
from fdadp.terms.intercept import ones
from fdadp.terms.on_functions import OnFunctions
from fdadp.terms.spec import TermDesign

NEARLY_WITHIN = 1e-10
"""Share of its norm below which what of a function lies outside others is rounding."""


@dataclass(frozen=True)
class OnBasis:
    """The mean curve and its coordinates.

    It stands on the K eigenfunctions and on what it and the constant have outside them: r orthonormal functions in all,
    whose coordinates are turned into those of a constant and of curves that sum to zero over the grid.

    Attributes
    ----------
    values : ndarray of shape (T, r)
    inner : ndarray of shape (T, r)
        The same times quadrature weights.
    curve : ndarray of shape (r, r - 1)
        Orthonormal coordinates of curves that sum to zero.
    back : ndarray of shape (r, r)
        From the constant and these to coordinates on the functions.
    """

    values: FloatArray
    inner: FloatArray
    curve: FloatArray
    back: FloatArray

    @classmethod
    def of(cls, basis: Eigenbasis) -> OnBasis:
        """Those of an eigenbasis."""
        found, weights = basis.functions.T, basis.weights
        for i, function in enumerate((np.ones(basis.grid.size), basis.mean, basis.grid)):
            if i == 2 and found.shape[1] > 1:
                break  # two functions are enough to tell a constant from a curve
            rest = function
            for _ in range(2):
                rest = rest - found @ np.linalg.lstsq(found, rest, rcond=None)[0]
            size = np.sqrt(weights @ rest**2)
            if size > NEARLY_WITHIN * np.sqrt(weights @ function**2):
                rest = rest - found @ ((found * weights[:, None]).T @ rest)
                found = np.column_stack((found, rest / np.sqrt(weights @ rest**2)))
        constant = np.linalg.lstsq(found, np.ones(basis.grid.size), rcond=None)[0]
        curve = np.linalg.qr(found.mean(axis=0)[:, None], mode="complete")[0][:, 1:]
        return cls(found, found * weights[:, None], curve, np.column_stack((constant, curve)))


def on_functions(designs: Sequence[TermDesign], of: OnBasis, weights: FloatArray, k: int, t: FloatArray) -> LongForm:
    """The long form of a mean curve and of terms on K functions, each with its weight in the least squares."""
    curve = OnFunctions.made(ones("s(t)"), margin_of(t, of.values @ of.curve, smooth=True))
    along = margin_of(t, np.ascontiguousarray(of.values[:, :k]), smooth=True)
    return LongForm((ones("(Intercept)"), curve, *(OnFunctions.made(d, along, weights[:k]) for d in designs)), t)


def in_order(designs: Sequence[TermDesign], by_function: FloatArray) -> FloatArray:
    """Numbers (K, M) of penalties in their order in the long form: by term, then by function."""
    ends = np.cumsum([len(design.penalties) for design in designs])[:-1]
    return np.concatenate([part.ravel() for part in np.split(by_function, ends, axis=1)])


def given_smoothing(smoothing: ArrayLike, k: int, names: Sequence[str]) -> FloatArray:
    """Smoothing parameters (K, M) that were given, for all functions together or for each.

    Raises
    ------
    InputError
        Another shape.
    """
    given, shape = numbers(smoothing, "smoothing"), (k, len(names))
    if given.shape not in (shape, shape[1:]):
        raise InputError(
            f"smoothing must hold {len(names)} smoothing parameters ({', '.join(names)}), or as many for each of {k} "
            f"eigenfunctions, shape {shape}, got shape {given.shape}"
        )
    return np.array(np.broadcast_to(given, shape))


def information_of(features: Moments, weights: FloatArray, back: FloatArray, k: int) -> ByFunction:
    """The information; `back` from coefficients of the mean curve to those on functions, of which K have slopes."""
    n, mean = features.n, features.mean
    products = np.block([[np.ones((1, 1)), mean[None]], [mean[:, None], features.outer / n]])
    rest = (back[k:].T * (n * weights[k:])) @ back[k:]
    return ByFunction(products[None], n * weights[:k], np.zeros_like(mean), back[:k].T, rest)
