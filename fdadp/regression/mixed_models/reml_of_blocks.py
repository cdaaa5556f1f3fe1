"""REML of covariances from blocks of rows that are independent of each other, where no model of fewer numbers is left.

Loads of coefficients tie all functions and rows of a person together. The blocks are those of
:mod:`~fdadp.regression.mixed_models.estimated_covariances`, with responses as a last column of their features.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.regression.mixed_models.estimated_covariances import Block
from fdadp.repeated.fixed_effects import Weighed
from fdadp.repeated.random_slopes import SlopeSums, slope_start
from fdadp.repeated.reml_search import LevelCovariances, over_factors


def weighed_blocks(blocks: Sequence[Block], covariances: Sequence[FloatArray]) -> Weighed:
    """Normal equations of P coefficients at known covariances of all levels: (P, P) and (P,)."""
    gram, log_det, _ = _normal(blocks, covariances)
    return Weighed(gram[:-1, :-1], gram[:-1, -1], float(gram[-1, -1]), log_det)


def block_deviance_and_gradient(
    blocks: Sequence[Block], covariances: Sequence[FloatArray], beyond: FloatArray
) -> tuple[float, list[FloatArray]]:
    """-2 log restricted likelihood, and its derivatives in the covariance of each level.

    `beyond` (P + 1, P + 1) are products of features and responses from rows whose covariance is known.
    """
    gram, value, left = _normal(blocks, covariances)
    gram = gram + beyond
    own = gram[:-1, :-1]
    spread, theta = np.linalg.inv(own), np.linalg.solve(own, gram[:-1, -1])
    value += float(np.linalg.slogdet(own)[1] + gram[-1, -1] - gram[:-1, -1] @ theta)
    about = np.append(-theta, 1.0)
    seen = np.outer(about, about)
    seen[:-1, :-1] += spread
    gradients = [np.zeros_like(covariance) for covariance in covariances]
    for block, (W, WF) in zip(blocks, left, strict=True):
        D = block.count * W - np.einsum("nbP,PQ,ncQ->bc", WF, seen, WF, optimize=True)
        for load, gradient in zip(block.loads, gradients, strict=True):
            gradient += np.einsum("ubk,bc,ucl->kl", load, D, load, optimize=True)
    return value, gradients


def _normal(
    blocks: Sequence[Block], covariances: Sequence[FloatArray]
) -> tuple[FloatArray, float, list[tuple[FloatArray, FloatArray]]]:
    """``F'V⁻¹F``, log determinant of V, and ``V⁻¹`` and ``V⁻¹F`` of each block."""
    size = blocks[0].features.shape[2]
    gram, log_det, left = np.zeros((size, size)), 0.0, []
    for block in blocks:
        pairs = zip(block.loads, covariances, strict=True)
        V = sum(np.einsum("ubk,kl,ucl->bc", load, own, load, optimize=True) for load, own in pairs)
        W = np.asarray(np.linalg.inv(V), dtype=np.float64)
        WF = W @ block.features
        gram += np.einsum("nbP,nbQ->PQ", block.features, WF, optimize=True)
        log_det += block.count * float(np.linalg.slogdet(V)[1])
        left.append((W, WF))
    return gram, log_det, left


def slopes_beside_loads(s: SlopeSums, blocks: Sequence[Block], *, tolerance: float = 1e-9) -> LevelCovariances:
    """REML of G (q k, q k) of persons and R (k, k) of rows, from blocks with responses."""
    sums, (root, first) = s.sums, slope_start(s)
    assert sums.loads is not None
    size, noise = sums.p * sums.k, sums.noise_variance()
    beyond = np.zeros((size + sums.loads.count + 1,) * 2)
    if noise > 0:
        own = np.block([[sums.loads.gram, sums.loads.right[:, None]], [sums.loads.right[None], np.zeros((1, 1))]])
        beyond[size:, size:] = own / noise

    def criterion(between: Sequence[FloatArray], of_rows: FloatArray) -> tuple[float, list[FloatArray], FloatArray]:
        value, (d_g, d_r) = block_deviance_and_gradient(blocks, (between[0], of_rows), beyond)
        return value, [d_g], d_r

    (G,), R, value, steps = over_factors(criterion, root, [first], sums.n_rows, tolerance)
    return LevelCovariances(G, R, noise, value, True, steps)
