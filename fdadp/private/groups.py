"""White features of several terms in one order: those that explain most under the prior come first.

Each term is whitened by itself. Whitened together, chance correlations between simulated curves would mix the terms in
nearly every direction, and no plan could say that one of them was not afforded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fdadp._common.typing import FloatArray, IntArray
from fdadp.private.whiten import WhitenedTerm

__all__ = ["FeatureGroups"]


@dataclass(frozen=True)
class FeatureGroups:
    """Features of terms, merged by their prior shares; a priori all terms explain alike much.

    Attributes
    ----------
    terms : tuple of WhitenedTerm
    owner : ndarray of shape (d,)
        Number of the term that each feature is of. Features of one term keep their order.
    shares : ndarray of shape (d,)
        Prior share of each feature in what all of them explain; falling.
    """

    terms: tuple[WhitenedTerm, ...]
    owner: IntArray
    shares: FloatArray

    @classmethod
    def merged(cls, terms: Sequence[WhitenedTerm], most: int) -> FeatureGroups:
        """Merge terms, and keep as many features as told at most."""
        owner = np.concatenate([np.full(term.variances.size, i) for i, term in enumerate(terms)])
        shares = np.concatenate([term.variances / term.variances.sum() for term in terms])
        order = np.argsort(-shares, kind="stable")[:most]
        kept = shares[order]
        return cls(tuple(terms), owner[order], kept if len(terms) == 1 else kept / kept.sum())

    def counts(self, count: int) -> list[int]:
        """How many of the first `count` features are of each term; 0 where a term was not afforded."""
        return [int((self.owner[:count] == i).sum()) for i in range(len(self.terms))]

    def features(self, standard: Sequence[FloatArray], count: int) -> FloatArray:
        """First features of standardised curves, one array (m, S) a term, each row by itself; shape (m, count)."""
        counts = self.counts(count)
        if len(self.terms) == 1:
            return self.terms[0].features(standard[0], count)
        out = np.empty((len(standard[0]), count))
        for i, (term, curves) in enumerate(zip(self.terms, standard, strict=True)):
            if counts[i]:
                out[:, self.owner[:count] == i] = term.features(curves, counts[i])
        return out
