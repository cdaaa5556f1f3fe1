"""Selections: which candidate has a large sum of utilities."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import PrivacyError
from fdadp.privacy.kernel._kernel import Kernel
from fdadp.privacy.kernel._sums import cell_sums
from fdadp.privacy.rows._local import RowFunction, Rows, evaluate
from fdadp.privacy.rows._rows import LINF, test_utilities


class Selections:
    """The exponential mechanism on sums, by Gumbel noise or permute-and-flip."""

    __slots__ = ()

    _kernel: Kernel

    def select(self, utilities: RowFunction, *, share: float, name: str) -> int:
        """Release the index of a candidate with a large sum of utilities over persons.

        The kernel clips each person's utilities to [0, 1] itself. The law of the selected index does not change when
        the same constant is added to all sums. So a person who is added, removed or blanked out, who moves each sum by
        something in [0, 1], moves them in effect by something in [-½, ½]: L∞ sensitivity Δ = ½; where a person is
        replaced, Δ = 1. (ε, δ): Gumbel noise of scale s, the exponential mechanism, ρ = ½ (Δ/s)²; pure ε:
        permute-and-flip, ε = 2Δ/s. See :mod:`fdadp.privacy.noise.sources`.
        """
        shape = self._kernel.probe(utilities, name, 1)[0]
        k = math.prod(shape)
        if k < 2:
            raise PrivacyError(f"{name}: at least two candidates are wanted, got {k}")

        def contributions(rows: Rows, m: int) -> FloatArray:
            values = evaluate(utilities, rows, m, [shape])[0].reshape(-1, k)
            finite = np.isfinite(values).all(axis=1, keepdims=True)
            return np.where(finite, np.clip(values, 0.0, 1.0), np.nan)

        noisy, _ = self._kernel.release("select", k, 1.0, share, name, LINF, 24, contributions)
        return int(noisy[0])

    def select_test(
        self,
        cells: RowFunction,
        tests: npt.ArrayLike | sparse.csr_array,
        sizes: npt.ArrayLike,
        *,
        share: float,
        name: str,
    ) -> int:
        """Release the index of a test with a large sum of the weights of the persons who pass it.

        As :meth:`select`, of utilities that are a person's weight for the tests that it passes and 0 for the others,
        and as private; but where every row is a person, weights are added up by cells, in one addition a feature, and
        the sums of the tests are integer sums of cells: the integers that :meth:`select` would get, many times faster.

        Parameters
        ----------
        cells : callable
            Row-local; gives the pair (codes (m, d), weights (m,)): for each of d features which of its cells the row
            is in, and the row's weight, which is clipped to [0, 1]. A row with a code that is no cell counts as no row.
        tests : array_like or sparse array of shape (C, sum of sizes)
            0 and 1: which cells pass. A test may let cells of one feature pass only, so that a person's utility is at
            most its weight; so a sparse one takes memory, and a release time, linear in the number of features.
        sizes : array_like of int
            Number of cells of each feature.
        """
        shapes = self._kernel.probe(cells, name, 2)
        starts: IntArray = np.concatenate([[0], np.cumsum(np.asarray(sizes, dtype=np.int64))]).astype(np.int64)
        passing = _zeros_and_ones(tests)
        if shapes != [(len(starts) - 1,), ()]:
            raise PrivacyError(
                f"{name}: the function must give {len(starts) - 1} codes and one weight a row, got shapes {shapes}"
            )
        if passing is None or passing.shape[1] != starts[-1] or passing.shape[0] < 2:
            raise PrivacyError(
                f"{name}: tests must be 0 and 1, at least two rows of {starts[-1]}, got shape {np.shape(tests)}"
            )
        of = (np.searchsorted(starts, passing.indices, side="right") - 1).astype(np.int64)
        test = np.repeat(np.arange(passing.shape[0]), np.diff(passing.indptr))
        feature = np.zeros(passing.shape[0], dtype=np.int64)
        feature[test] = of
        if (feature[test] != of).any():
            raise PrivacyError(f"{name}: a test must be of one feature; some let cells of several pass")
        if self._kernel.vault.grouped:
            passes = np.zeros((passing.shape[0], int(np.diff(starts).max())), dtype=np.int64)
            passes[test, passing.indices - starts[of]] = 1

            def utilities(rows: Rows) -> FloatArray:
                codes, weights = cells(rows)
                out = np.empty((len(codes), len(passes)))
                test_utilities(codes, weights, starts, passes, feature, out)
                return out

            return self.select(utilities, share=share, name=name)

        def sums(bits: int) -> IntArray:
            task = partial(cell_sums, f=cells, shapes=shapes, starts=starts, bits=bits)
            return np.asarray(passing @ self._kernel.vault.total(task))

        noisy, _ = self._kernel.release("select", passing.shape[0], 1.0, share, name, LINF, 24, None, exact=sums)
        return int(noisy[0])


def _zeros_and_ones(tests: npt.ArrayLike | sparse.csr_array) -> sparse.csr_array | None:
    """Tests as a sparse array of integers that holds its ones; None if they are not 0 and 1 in two dimensions."""
    given = tests if sparse.issparse(tests) else np.asarray(tests, dtype=np.float64)
    if given.ndim != 2:
        return None
    found = sparse.csr_array(given, copy=True)
    found.sum_duplicates()
    found.eliminate_zeros()
    return found.astype(np.int64) if (found.data == 1).all() else None
