"""Cholesky factors of matrices of blocks that share nothing but a border: smooth functions of each level of a factor.

No row has features of two levels, so that their scatter is exactly zero. With what shares something with all levels
last, the matrix has the form of an arrow. Its factor has no entries between blocks (George & Liu 1981, Computer
Solution of Large Sparse Positive Definite Systems), and costs as many times less as there are levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from fdadp._common.typing import FloatArray, IntArray

CALL = 2**19
"""Multiplications that take as long as to call for the factor of one block."""

SHARED = 0.5
"""Of all coordinates: one that shares something with more of them belongs to the border."""


def in_blocks(gram: FloatArray) -> tuple[IntArray, tuple[slice, ...]]:
    """An order of the coordinates in which blocks that share nothing come first, and these blocks.

    Parameters
    ----------
    gram : ndarray of shape (p, p)

    Returns
    -------
    order : ndarray of shape (p,)
        What is in no block, the border, last.
    blocks : tuple of slice
        Of the coordinates in this order. None: ``order`` is as it was.
    """
    p = len(gram)
    whole = np.arange(p), ()
    if p**3 < 2 * CALL:
        return whole
    linked = gram != 0
    border = linked.sum(axis=1) > SHARED * p
    if border.all():
        return whole
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    inner = np.flatnonzero(~border)
    if not border.any():  # a factor of blocks needs a last one
        border[0] = True
        inner = inner[1:]
    count, label = connected_components(csr_array(linked[np.ix_(inner, inner)]), directed=False)
    ends = np.cumsum(np.bincount(label, minlength=count)).tolist()
    blocks = tuple(slice(a, b) for a, b in zip([0, *ends], ends, strict=False))
    if not worth(blocks, p):
        return whole
    return np.concatenate((inner[np.argsort(label, kind="stable")], np.flatnonzero(border))), blocks


def worth(blocks: Sequence[slice], p: int) -> bool:
    """Whether to use the blocks of a matrix (p, p) costs less than half of a factor without them."""
    inner = sum((own.stop - own.start) ** 2 for own in blocks) * p
    edge = p - blocks[-1].stop if blocks else p
    return bool(2 * (inner + edge * p**2 + CALL * len(blocks)) < p**3)


@dataclass(frozen=True)
class ArrowFactor:
    """``L L' = D A D``, L lower triangular, D diagonal.

    Attributes
    ----------
    blocks : sequence of slice
        The first coordinates; the others are the border.
    triangles : list of ndarray
        Of the blocks, and of what is left of the border.
    feet : list of ndarray of shape (m, q)
        Transposed rows of the border in the columns of each block.
    scale : ndarray of shape (p,)
        D.
    """

    blocks: Sequence[slice]
    triangles: list[FloatArray]
    feet: list[FloatArray]
    scale: FloatArray

    @property
    def edge(self) -> slice:
        """The border."""
        return slice(self.blocks[-1].stop if self.blocks else 0, None)

    @property
    def pivots(self) -> FloatArray:
        """Diagonal of L."""
        diagonals = [triangle.diagonal() for triangle in self.triangles]
        return np.concatenate(diagonals) if self.blocks else diagonals[0]

    def halves(self, right: FloatArray) -> FloatArray:
        """``L⁻¹ D c`` of right sides c (p, K)."""
        out = right * self.scale[:, None]
        for own, triangle, foot in zip(self.blocks, self.triangles, self.feet, strict=False):
            out[own] = lapack.dtrtrs(triangle, out[own], lower=1)[0]
            out[self.edge] -= foot.T @ out[own]
        out[self.edge] = lapack.dtrtrs(self.triangles[-1], out[self.edge], lower=1)[0]
        return out

    def root(self, out: FloatArray) -> None:
        """Write ``L⁻¹ D`` into zeros (p, p)."""
        edge, scale = self.edge, self.scale
        last = lapack.dtrtri(self.triangles[-1], lower=1)[0]
        np.multiply(last, scale[edge], out=out[edge, edge])
        for own, triangle, foot in zip(self.blocks, self.triangles, self.feet, strict=False):
            inverse = lapack.dtrtri(triangle, lower=1)[0] * scale[own]
            out[own, own] = inverse
            out[edge, own] = -(last @ foot.T) @ inverse


def factored(matrix: FloatArray, scale: FloatArray, blocks: Sequence[slice]) -> ArrowFactor | None:
    """Factor a matrix that has another diagonal, such that ``scale`` makes it 1.

    Parameters
    ----------
    matrix : ndarray of shape (p, p)
        Zero between blocks.
    scale : ndarray of shape (p,)
    blocks : sequence of slice
        The first coordinates; the others, at least one, are the border.

    Returns
    -------
    ArrowFactor or None
        None where the matrix is not positive definite in floating point.
    """
    edge = slice(blocks[-1].stop if blocks else 0, None)
    rest = _scaled(matrix[edge, edge], scale[edge])
    triangles, feet = [], []
    for own in blocks:
        triangle, failed = lapack.dpotrf(_scaled(matrix[own, own], scale[own]).T, lower=1, overwrite_a=1)
        if failed:
            return None
        foot = lapack.dtrtrs(triangle, matrix[own, edge] * scale[edge] * scale[own, None], lower=1)[0]
        rest -= foot.T @ foot
        triangles.append(triangle)
        feet.append(foot)
    triangle, failed = lapack.dpotrf(rest.T, lower=1, overwrite_a=1)
    return None if failed else ArrowFactor(blocks, [*triangles, triangle], feet, scale)


def inverse_of(root: FloatArray, blocks: Sequence[slice], out: FloatArray) -> None:
    """Write ``R'R`` of a root R in the form of :meth:`ArrowFactor.root`; of any root, where there are no blocks."""
    edge = root[blocks[-1].stop :] if blocks else root
    np.matmul(edge.T, edge, out=out)
    for own in blocks:
        out[own, own] += root[own, own].T @ root[own, own]


def _scaled(matrix: FloatArray, scale: FloatArray) -> FloatArray:
    out = matrix * scale
    out *= scale[:, None]
    out.flat[:: len(out) + 1] = 1.0
    return out
