"""Matrices of coefficients on K functions along the response that know nothing of each other: K blocks, not one square.

With p features a covariance of all coefficients has (pK)² numbers, and its blocks p² K of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fdadp._common.typing import FloatArray


@dataclass(frozen=True)
class ByFunction:
    """A symmetric matrix of the coefficients of a mean curve (c of them) and of slopes (pK, the function fast).

    Attributes
    ----------
    blocks : ndarray of shape (K, 1 + p, 1 + p) or (1, 1 + p, 1 + p)
        Of the constant and the slopes on each function; one where all are alike.
    sizes : ndarray of shape (K,)
        By which the blocks are multiplied.
    centre : ndarray of shape (p,)
        Values of the features at which the constants are taken.
    turn : ndarray of shape (c, K)
        A constant on each function as coefficients of the mean curve.
    rest : ndarray of shape (c, c)
        Of the mean curve's coefficients, besides what is in the blocks.
    """

    blocks: FloatArray
    sizes: FloatArray
    centre: FloatArray
    turn: FloatArray
    rest: FloatArray

    @cached_property
    def matrix(self) -> FloatArray:
        """All of it, shape (c + pK, c + pK)."""
        c, k = self.turn.shape
        shift = np.eye(1 + self.centre.size)
        shift[0, 1:] = -self.centre  # to constants where features are 0
        blocks = (shift @ self.blocks @ shift.T) * self.sizes[:, None, None]
        out = np.zeros((c + self.centre.size * k,) * 2)
        out[:c, :c] = self.rest + (self.turn * blocks[:, 0, 0]) @ self.turn.T
        out[:c, c:] = np.einsum("ak,kp->apk", self.turn, blocks[:, 0, 1:]).reshape(c, -1)
        out[c:, :c] = out[:c, c:].T
        for i, block in enumerate(blocks):
            out[c + i :: k, c + i :: k] = block[1:, 1:]
        return out

    def variances(self, mean: FloatArray, features: FloatArray) -> FloatArray:
        """Variances of predicted curves, where this is a covariance; shape (n, T).

        Parameters
        ----------
        mean : ndarray of shape (T, c)
            Functions of the mean curve's coefficients.
        features : ndarray of shape (n, p)
        """
        z = np.ones((len(features), 1 + self.centre.size))
        np.subtract(features, self.centre, out=z[:, 1:])
        own = np.stack([((z @ block) * z).sum(axis=1) for block in self.blocks], axis=1) * self.sizes
        along = mean @ self.turn
        return np.asarray(np.maximum(own, 0.0) @ (along**2).T + ((mean @ self.rest) * mean).sum(axis=1))

    def of_slopes(self, rows: FloatArray) -> FloatArray:
        """Variances of what rows (m, p) make of the slopes on each function, where this is a covariance; (m, K)."""
        own = np.stack([((rows @ block[1:, 1:]) * rows).sum(axis=1) for block in self.blocks], axis=1)
        return np.asarray(np.maximum(own * self.sizes, 0.0))
