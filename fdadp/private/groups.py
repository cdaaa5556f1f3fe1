"""White features of several terms in one order: those that explain most under the prior come first.

Each term is whitened by itself. Whitened together, chance correlations between simulated curves would mix the terms in
nearly every direction, and no plan could say that one of them was not afforded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fdadp._common.typing import FloatArray, IntArray
from fdadp.private.white.base import WhiteTerm

__all__ = ["FeatureGroups"]


@dataclass(frozen=True)
class FeatureGroups:
    """Features of terms, merged by their prior shares.

    Attributes
    ----------
    terms : tuple of WhiteTerm
    owner : ndarray of shape (d,)
        Number of the term that each feature is of. Features of one term keep their order.
    shares : ndarray of shape (d,)
        Prior share of each feature in what all of them explain; falling.
    """

    terms: tuple[WhiteTerm, ...]
    owner: IntArray
    shares: FloatArray

    @classmethod
    def merged(cls, terms: Sequence[WhiteTerm], most: int) -> FeatureGroups:
        """Merge terms, and keep as many features as told at most."""
        owner = np.concatenate([np.full(term.shares.size, i) for i, term in enumerate(terms)])
        shares = np.concatenate([term.shares for term in terms])
        order = np.argsort(-shares, kind="stable")[:most]
        kept = shares[order]
        return cls(tuple(terms), owner[order], kept if len(terms) == 1 else kept / kept.sum())

    def counts(self, count: int) -> list[int]:
        """How many of the first `count` features are of each term; 0 where a term was not afforded."""
        return [int((self.owner[:count] == i).sum()) for i in range(len(self.terms))]

    def places(self, term: int, count: int) -> IntArray:
        """Places of a term's features among the first `count`."""
        return np.flatnonzero(self.owner[:count] == term)

    def features(self, seen: Mapping[str, Any], count: int) -> FloatArray:
        """First features of rows, each row by itself; shape (m, count).

        Parameters
        ----------
        seen : mapping of str
            Standardised values by column (:meth:`fdadp.private.white.base.WhiteTerm.features`).
        count : int
        """
        counts = self.counts(count)
        if len(self.terms) == 1:
            return self.terms[0].features(seen, count)
        parts = {i: term.features(seen, counts[i]) for i, term in enumerate(self.terms) if counts[i]}
        out = np.empty((len(next(iter(parts.values()))), count))
        for i, part in parts.items():
            out[:, self.places(i, count)] = part
        return out
