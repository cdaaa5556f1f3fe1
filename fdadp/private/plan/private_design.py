"""Public coordinates of a private fit: columns, white features of terms, and a basis of the response."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from fdadp._common.typing import BoolArray, FloatArray, IntArray
from fdadp.functional.quadrature import quadrature_weights
from fdadp.functional.tables.curve_sample import Curves
from fdadp.private.plan.budget_plan import Located
from fdadp.private.public.column_ranges import HALF_WIDTH, Column, CurvesColumn, NumberColumn, Range, Scalars, unit_grid
from fdadp.private.whitened.of_additive_surfaces import WhiteSurface
from fdadp.private.whitened.of_any_term import DerivedTerm
from fdadp.private.whitened.white_term import WhiteTerm

if TYPE_CHECKING:
    from fdadp.private.public.gaussian_process_prior import CurvePrior, PublicPrior

Made = TypeVar("Made")

REMEMBERED = 64
"""What is made of simulated curves and kept in memory, up to .25 MB each where grids have 1,000 points."""

# White features of several terms in one order: those that explain most under the prior come first.
#
# Each term is whitened by itself. Whitened together, chance correlations between simulated curves would mix the terms
# in nearly every direction, and no plan could say that one of them was not afforded.


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
            Standardised values by column (:meth:`fdadp.private.whitened.white_term.WhiteTerm.features`).
        count : int
        """
        counts = self.counts(count)
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


@dataclass(frozen=True)
class PrivateDesign:
    """Coordinates that are white under a public prior.

    Features of a row are the constant and those of `groups`; a response is described by its coefficients on
    `response`. Plans need `feature_shares` and `response_shares` alone, and how many columns are located.

    Attributes
    ----------
    prior : PublicPrior
    columns : tuple of Column
        Before anything was released, in the order of a block of rows; the response comes after them.
    groups : FeatureGroups
        White features.
    t : ndarray of shape (T,)
        Grid of the response; one point where it is a number.
    response : ndarray of shape (T, m)
        Orthonormal basis of Y, from its prior covariance.
    response_shares : ndarray of shape (m,)
        Prior shares of variance of its functions.
    """

    prior: PublicPrior
    columns: tuple[Column, ...]
    groups: FeatureGroups
    t: FloatArray
    response: FloatArray
    response_shares: FloatArray

    @classmethod
    def of(
        cls, prior: PublicPrior, columns: Sequence[Column], terms: Sequence[WhiteTerm], t: FloatArray | None
    ) -> PrivateDesign:
        """Coordinates of several terms.

        Parameters
        ----------
        prior : PublicPrior
        columns : sequence of Column
        terms : sequence of WhiteTerm
        t : ndarray of shape (T,) or None
            Grid of the response; None where it is a number.
        """
        groups = FeatureGroups.merged(terms, prior.max_features)
        if t is None:
            return cls(prior, tuple(columns), groups, np.zeros(1), np.ones((1, 1)), np.ones(1))
        unit = unit_grid(t)
        return cls(prior, tuple(columns), groups, t, *prior.response_functions(unit, quadrature_weights(unit)))

    @property
    def scalar(self) -> bool:
        """Whether the response is a number."""
        return self.t.size == 1

    @property
    def feature_shares(self) -> FloatArray:
        """Prior share of each feature in the variance that is explained, shape (d,)."""
        return self.groups.shares

    @cached_property
    def gradient_shares(self) -> FloatArray:
        """Energy of the product of a feature and a response in each response function, over all; shape (d + 1, m).

        The constant is the first feature. Those that are the same at all t leave the shares of the response as they
        are; others, such as rough curves, move energy from smooth functions to rough ones.
        """
        d = self.feature_shares.size
        out = np.tile(self.response_shares, (d + 1, 1))
        varying = self.groups.varying(d)
        if varying.size:
            mixed = np.einsum(
                "nqt,t,tk,tl->nqkl", self._drawn, self.t_weights, self.response, self.response, optimize=True
            )
            out[1 + varying] = np.einsum("nqkl,l->qk", mixed**2, self.response_shares) / len(mixed)
        return out

    @property
    def shares_of_pairs(self) -> FloatArray | None:
        """The same for plans: None where all features are the same at all points of the response."""
        return None if self.groups.separable else self.gradient_shares

    def linear_in_curves(self, count: int) -> BoolArray:
        """Which of the first features are of terms that are linear in curves alone, shape (count,)."""
        curves = {column.name for column in self.curves}
        linear = [isinstance(term, DerivedTerm) and curves.issuperset(term.columns) for term in self.groups.terms]
        return np.array(linear)[self.groups.owner[:count]]

    @cached_property
    def second_moment(self) -> FloatArray:
        """Second moment of features that differ between points of the response, at each, by the prior; (q, q, T)."""
        return np.asarray(np.einsum("nit,njt->ijt", self._drawn, self._drawn, optimize=True) / len(self._drawn))

    @cached_property
    def _drawn(self) -> FloatArray:
        return self.groups.drawn(self.prior, self.feature_shares.size)

    @property
    def unit_t(self) -> FloatArray:
        """Grid of the response on [0, 1]."""
        return np.zeros(1) if self.scalar else unit_grid(self.t)

    @property
    def t_weights(self) -> FloatArray:
        """Quadrature weights of its points, which sum to one."""
        return np.ones(1) if self.scalar else quadrature_weights(self.unit_t)

    @property
    def curves(self) -> tuple[CurvesColumn, ...]:
        """Columns that are located by releases of their own."""
        return tuple(column for column in self.columns if isinstance(column, CurvesColumn))

    @property
    def numbers(self) -> tuple[NumberColumn, ...]:
        """Columns that are located together."""
        return tuple(column for column in self.columns if isinstance(column, NumberColumn))

    @property
    def located(self) -> Located:
        """Names of both."""
        return Located(tuple(c.name for c in self.curves), tuple(c.name for c in self.numbers))

    @property
    def only(self) -> WhiteSurface:
        """The only term, of the only column of curves."""
        (white,) = self.groups.terms
        assert isinstance(white, WhiteSurface)
        return white

    @property
    def s(self) -> FloatArray:
        """Grid of the only column of curves."""
        (column,) = self.curves
        return column.grid

    @property
    def unit_s(self) -> FloatArray:
        """The same on [0, 1]."""
        return unit_grid(self.s)


def curves_column(
    prior: PublicPrior, name: str, at: int, grid: FloatArray, bounds: Range, missing: str = "linear"
) -> CurvesColumn:
    """A column of curves as the prior sees it."""
    unit = unit_grid(grid)
    size = made_of(_size, prior.x, [unit])
    return CurvesColumn.guessed(name, at, grid, bounds, size, prior.x_scale, missing=missing)


def _size(x: CurvePrior, unit: FloatArray) -> float:
    """Geometric mean of the sizes of the prior's curves."""
    curves = x.standard(unit)
    return float(np.exp(np.log(np.sqrt((curves * curves) @ quadrature_weights(unit))).mean()))


def made_of(
    make: Callable[..., Made], prior: CurvePrior | PublicPrior, grids: Sequence[FloatArray], *names: str
) -> Made:
    """What a function makes of a prior, grids and names. Of simulated curves it is kept for fits with the same."""
    if prior.pilot is not None:
        return make(prior, *grids, *names)
    found: Made = _kept(make, prior, tuple(tuple(grid.tolist()) for grid in grids), names)
    return found


@lru_cache(maxsize=REMEMBERED)
def _kept(make: Callable[..., Any], prior: Any, grids: tuple[tuple[float, ...], ...], names: tuple[str, ...]) -> Any:
    return make(prior, *map(np.array, grids), *names)


def of_a_surface(prior: PublicPrior, s: FloatArray, t: FloatArray) -> PrivateDesign:
    """Coordinates of the additive term of one column of standardised curves, X."""
    white = WhiteSurface.on("X", "X", s, prior)
    return PrivateDesign.of(prior, [curves_column(prior, "X", 0, s, (-HALF_WIDTH, HALF_WIDTH))], [white], t)
