"""White features of several terms in one order: those that explain most under the prior come first.

Each term is whitened by itself. Whitened together, chance correlations between simulated curves would mix the terms in
nearly every direction, and no plan could say that one of them was not afforded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp._common.typing import FloatArray, IntArray
from fdadp.functional.tables.sample import Curves
from fdadp.private.public.columns import Scalars
from fdadp.private.whitened.base import WhiteTerm

if TYPE_CHECKING:
    from fdadp.private.public.prior import PublicPrior


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

    def left_out(self, weights: FloatArray) -> tuple[str, ...]:
        """Names of the terms of which no feature is measured, where weights (D, K) are those of a plan."""
        measured = self.owner[: len(weights) - 1][(weights[1:] > 0).any(axis=1)]
        return tuple(term.name for i, term in enumerate(self.terms) if i not in measured)

    def places(self, term: int, count: int) -> IntArray:
        """Places of a term's features among the first `count`."""
        return np.flatnonzero(self.owner[:count] == term)

    @property
    def separable(self) -> bool:
        """Whether the features of all terms are the same at all points of the response."""
        return all(term.separable for term in self.terms)

    def varying(self, count: int) -> IntArray:
        """Places of those among the first features that differ between points of the response."""
        return np.flatnonzero([not self.terms[i].separable for i in self.owner[:count]])

    def drawn(self, prior: PublicPrior, count: int) -> FloatArray:
        """These under the prior, columns independent of each other, at all points of the response; (N, q, T)."""
        columns = list(dict.fromkeys(term.columns[0] for term in self.terms))

        def of(term: WhiteTerm, own: int) -> FloatArray:
            drawn = term.drawn(prior, own)
            return drawn[np.random.default_rng([prior.seed, columns.index(term.columns[0])]).permutation(len(drawn))]

        return self._of_terms(count, of)

    def along(self, seen: Mapping[str, Any], count: int) -> FloatArray:
        """These features of rows at all points of the response, each row by itself; shape (m, q, T)."""
        return self._of_terms(count, lambda term, own: term.features(seen, own))

    def _of_terms(self, count: int, of: Callable[[WhiteTerm, int], FloatArray]) -> FloatArray:
        owner, counts = self.owner[self.varying(count)], self.counts(count)
        parts = {i: of(self.terms[i], counts[i]) for i in dict.fromkeys(owner.tolist())}
        m, _, points = next(iter(parts.values())).shape
        out = np.empty((m, owner.size, points))
        for i, part in parts.items():
            out[:, owner == i] = part
        return out

    def features(self, seen: Mapping[str, Any], count: int) -> FloatArray:
        """First features of rows, each row by itself; 0 of those that differ between points; shape (m, count).

        Parameters
        ----------
        seen : mapping of str
            Standardised values by column (:meth:`fdadp.private.whitened.base.WhiteTerm.features`).
        count : int
        """
        counts = self.counts(count)
        if len(self.terms) == 1 and self.terms[0].separable:
            return self.terms[0].features(seen, count)
        parts = {i: term.features(seen, counts[i]) for i, term in enumerate(self.terms) if counts[i] and term.separable}
        out = np.zeros((_rows_of(seen), count))
        for i, part in parts.items():
            out[:, self.places(i, count)] = part
        return out


def _rows_of(seen: Mapping[str, Any]) -> int:
    """Number of rows of standardised values."""
    values = next(iter(seen.values()))
    if isinstance(values, Curves):
        return len(values.values)
    return len(values.unit if isinstance(values, Scalars) else values)
