"""The leading principal directions of the features of many terms: few features that say most of what all do."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.functional.splines.margins import SmoothMargin
from fdadp.functional.tables.records import Records
from fdadp.solve.covariance.working_covariance import size_of
from fdadp.terms.spec import TermDesign, no_penalties


@dataclass(frozen=True, kw_only=True)
class Directions(TermDesign):
    """1, and the leading principal directions of the features of terms that are the same at all t.

    Attributes
    ----------
    designs : tuple of TermDesign
    centre : ndarray of shape (p,)
        Means of their features.
    turn : ndarray of shape (p, q)
        From features about their means to directions of variance 1.
    """

    designs: tuple[TermDesign, ...]
    centre: FloatArray
    turn: FloatArray

    @classmethod
    def of(
        cls,
        designs: Sequence[TermDesign],
        records: Records,
        most: int,
        along: SmoothMargin,
        *,
        shrunk: bool = False,
    ) -> Directions:
        """Directions of training rows.

        Parameters
        ----------
        designs : sequence of TermDesign
        records : Records
        most : int
            Number of directions, at most.
        along : SmoothMargin
            Functions along the response.
        shrunk : bool
            With a penalty on each direction, as much heavier as its variance is smaller.
        """
        features = _side_by_side(designs, records)
        centre = features.mean(axis=0)
        ends = np.cumsum([0, *(design.n_features for design in designs)]).tolist()
        alone = [np.full(b - a, size_of(features[:, a:b])) for a, b in itertools.pairwise(ends)]
        units = np.concatenate([np.zeros(0), *alone])  # every term counts alike
        _, sizes, directions = np.linalg.svd((features - centre) / units, full_matrices=False)
        count = min(int((sizes > 1e-8 * max(float(sizes.max(initial=0.0)), 1e-300)).sum()), most)
        penalties = no_penalties(1 + count)
        if shrunk and count:
            penalties = np.concatenate(([0.0], (sizes[0] / sizes[:count]) ** 2))[None]
        return cls(
            name="directions",
            columns=(),
            along=along,
            own_penalties=penalties,
            designs=tuple(designs),
            centre=centre,
            turn=directions[:count].T / sizes[:count] * np.sqrt(records.n) / units[:, None],
        )

    def features(self, records: Records, t: FloatArray | None = None) -> FloatArray:
        """Shape (n, q)."""
        turned = (_side_by_side(self.designs, records) - self.centre) @ self.turn
        return np.hstack((np.ones((records.n, 1)), turned))


def _side_by_side(designs: Sequence[TermDesign], records: Records) -> FloatArray:
    return np.hstack([design.features(records) for design in designs] or [np.zeros((records.n, 0))])
