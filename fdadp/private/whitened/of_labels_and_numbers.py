"""White features of labels with public levels, an effect for each: private factors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp._common.typing import BoolArray, FloatArray, IntArray
from fdadp.errors import InputError
from fdadp.privacy.private_entries import codes_of, index_of
from fdadp.private.public.column_ranges import UNIFORM_VARIANCE, Column, LabelColumn, NumberColumn
from fdadp.private.whitened.white_term import OF_NUMBERS, WhiteTerm, column_of

if TYPE_CHECKING:
    from fdadp.private.public.gaussian_process_prior import PublicPrior


@dataclass(frozen=True, kw_only=True)
class WhiteLevels(WhiteTerm):
    """Features: contrasts between levels, white where all levels are as frequent; zero of what is no public level.

    Attributes
    ----------
    table : ndarray of shape (L, L - 1)
        Features of each level.
    """

    table: FloatArray

    @classmethod
    def of(cls, name: str, column: LabelColumn) -> WhiteLevels:
        """Of equal prior shares."""
        table = contrasts(len(column.levels))
        q = table.shape[1]
        return cls(name=name, columns=(column.name,), shares=np.full(q, OF_NUMBERS / q), table=table)

    def features(self, seen: Mapping[str, Any], count: int) -> FloatArray:
        """Contrasts of the levels of rows."""
        return levels_of_codes(self.table[:, :count], seen[self.columns[0]])

    def axes(self, columns: Mapping[str, Column]) -> dict[str, FloatArray | tuple[Any, ...]]:
        """Levels."""
        return {self.columns[0]: column_of(columns, self.columns[0], LabelColumn).levels}

    def effect(self, columns: Mapping[str, Column], count: int, *points: Any) -> FloatArray:
        """Features of levels: effects about their mean, which the mean of the response has."""
        places = places_of_levels(column_of(columns, self.columns[0], LabelColumn), points[0])
        return np.asarray(self.table[places, :count])


def contrasts(count: int) -> FloatArray:
    """Orthogonal contrasts of so many levels, of mean zero and mean square one over them; shape (count, count - 1).

    Contrast j is between level j and those before it (Helmert's).
    """
    table = np.zeros((count, count - 1))
    for j in range(1, count):
        table[:j, j - 1], table[j, j - 1] = -1.0, j
        table[:, j - 1] *= np.sqrt(count / (j * (j + 1)))
    return table


def levels_of_codes(table: FloatArray, codes: FloatArray) -> FloatArray:
    """Row of a table (L, q) for each code (m,); zeros for what is none."""
    known = (codes[:, None] == np.arange(len(table))).any(axis=1)
    padded = np.vstack((table, np.zeros((1, table.shape[1]))))
    return np.asarray(padded[np.where(known, codes, len(table)).astype(np.int64)])


def places_of_levels(column: LabelColumn, labels: Iterable[Any]) -> IntArray:
    """Number of the level of each label.

    Raises
    ------
    InputError
        A label that is no public level.
    """
    given = list(labels)
    codes = codes_of(np.array([*given, None], dtype=object)[:-1], index_of(column.levels))
    for label, code in zip(given, codes, strict=True):
        if np.isnan(code):
            raise InputError(f"{column.name} must be one of its levels {list(column.levels)!r}, got {label!r}")
    return codes.astype(np.int64)


# White features of numbers that act linearly, ``x β(t)``: private columns of numbers and ``fosr``.


@dataclass(frozen=True, kw_only=True)
class WhiteNumbers(WhiteTerm):
    """Features: numbers about their released locations, in released standard deviations."""

    @classmethod
    def of(cls, name: str, *columns: str) -> WhiteNumbers:
        """Of equal prior shares; not correlated, as far as is known in public."""
        return cls(name=name, columns=columns, shares=np.full(len(columns), OF_NUMBERS / len(columns)))

    def features(self, seen: Mapping[str, Any], count: int) -> FloatArray:
        """Standardised numbers."""
        return np.column_stack([seen[name].standard for name in self.columns])[:, :count]

    def axes(self, columns: Mapping[str, Column]) -> dict[str, FloatArray | tuple[Any, ...]]:
        """None of one number, whose β varies with t alone; of several which one it is."""
        return {} if len(self.columns) == 1 else {"number": self.columns}

    def effect(self, columns: Mapping[str, Column], count: int, *points: Any) -> FloatArray:
        """What stands for β: feature for a unit of the number."""
        own = [column_of(columns, name, NumberColumn) for name in self.columns]
        slopes = [1 / (column.scale * column.half) for column in own]
        wanted = points[0] if points else self.columns
        return np.diag(slopes)[[self.columns.index(name) for name in wanted], :count]


# A white term times a column, by-variables and interactions: products of features that are white if both are.


IN_COMMON = 0.5
"""Share of what all levels have in common, where each level has an effect of its own."""


@dataclass(frozen=True)
class ByNumber:
    """A number that multiplies: about its released location, or as it is, over its root mean square on its range.

    Attributes
    ----------
    column : str
    middle, half : float
        Of the public range, over that root mean square; `half` is 0 where the number is about its location.
    """

    column: str
    middle: float = 0.0
    half: float = 0.0

    @classmethod
    def as_it_is(cls, column: NumberColumn) -> ByNumber:
        """A number that is not centred."""
        size = math.sqrt(column.mid**2 + column.half**2 * UNIFORM_VARIANCE)
        return cls(column.name, column.mid / size, column.half / size)

    @property
    def weights(self) -> FloatArray:
        """Prior share of each copy of the term: there is one."""
        return np.ones(1)

    def values(self, seen: Any) -> FloatArray:
        """What multiplies each copy, shape (m, copies)."""
        return np.asarray(self.middle + self.half * seen.unit if self.half else seen.standard)[:, None]

    def alone(self, seen: Any) -> FloatArray:
        """Features of the column by itself."""
        return np.asarray(seen.standard)[:, None]

    def slopes(self, column: Column) -> tuple[float, float]:
        """Of both, for a unit of the number."""
        assert isinstance(column, NumberColumn)
        alone = 1 / (column.scale * column.half)
        return self.half / column.half if self.half else alone, alone


@dataclass(frozen=True)
class ByLevels:
    """Labels that multiply.

    Attributes
    ----------
    column : str
    table : ndarray of shape (L, copies)
        What multiplies each copy, for each level: contrasts of differences; and 1 first, where each level has an
        effect of its own.
    weights : ndarray of shape (copies,)
        Prior share of each copy of the term.
    """

    column: str
    table: FloatArray
    weights: FloatArray

    @classmethod
    def of(cls, column: LabelColumn, *, differences: bool) -> ByLevels:
        """Effects of levels, or differences between them beside the term itself."""
        table = contrasts(len(column.levels))
        weights = np.full(table.shape[1], 1 / table.shape[1])
        if differences:
            return cls(column.name, table, weights)
        with_common = np.hstack((np.ones((len(table), 1)), table))
        return cls(column.name, with_common, np.append(IN_COMMON, (1 - IN_COMMON) * weights))

    def values(self, seen: Any) -> FloatArray:
        """What multiplies each copy, shape (m, copies)."""
        return levels_of_codes(self.table, seen)

    def alone(self, seen: Any) -> FloatArray:
        """Features of the column by itself."""
        return levels_of_codes(contrasts(len(self.table)), seen)


@dataclass(frozen=True, kw_only=True)
class WhiteTimes(WhiteTerm):
    """Products of the features of a term and of a column.

    Features of a term are about their means, and so are products: what the column does where they are zero is a part of
    the product as users write it, and is added unless it stands in the model by itself.

    Attributes
    ----------
    of : WhiteTerm
    by : ByNumber or ByLevels
    places : tuple of (int, int)
        Of each product the feature of the term, from 1, and that of the column; 0 where it is the column by itself.
    """

    of: WhiteTerm
    by: ByNumber | ByLevels
    places: tuple[tuple[int, int], ...]

    @classmethod
    def product(cls, name: str, term: WhiteTerm, by: ByNumber | ByLevels, *, alone: bool) -> WhiteTimes:
        """Products in order of their shares.

        Parameters
        ----------
        name : str
        term : WhiteTerm
        by : ByNumber or ByLevels
        alone : bool
            Whether the column by itself is a part of it.
        """
        shares = np.outer(term.shares, by.weights)
        places = [(i + 1, j) for i, j in np.ndindex(*shares.shape)]
        every = shares.ravel()
        if alone:
            count = 1 if isinstance(by, ByNumber) else len(by.table) - 1
            places += [(0, j) for j in range(count)]
            every = np.append(every, np.full(count, OF_NUMBERS / count))
        order = np.argsort(-every, kind="stable")
        return cls(
            name=name,
            columns=(*term.columns, by.column),
            shares=every[order],
            of=term,
            by=by,
            places=tuple(places[i] for i in order),
        )

    @property
    def separable(self) -> bool:
        """Whether the features of the term are the same at all points of the response."""
        return self.of.separable

    def at(self, t: FloatArray) -> WhiteTimes:
        """The term at other points of the response."""
        return replace(self, of=self.of.at(t))

    def drawn(self, prior: PublicPrior, count: int) -> FloatArray:
        """Features of the term, multiplied by signs, which stand for what is white and multiplies them."""
        of = self.of.drawn(prior, self.of.shares.size)
        rng = np.random.default_rng(prior.seed)
        size = 1 + max(self.by.weights.size, *(copy for _, copy in self.places))
        signs = rng.choice((-1.0, 1.0), (2, len(of), size, 1))
        which, copy = self._first(count)
        return np.asarray(np.where((which == 0)[:, None], signs[0][:, copy], of[:, which - 1] * signs[1][:, copy]))

    def acts(self, columns: Mapping[str, Column], axes: Mapping[str, Any]) -> BoolArray | None:
        """Where the coefficient function of the term is part of the model, for each level."""
        own = self.of.acts(columns, axes)
        if own is None or not isinstance(self.by, ByLevels):
            return own
        return np.broadcast_to(own, (len(axes[self.by.column]), *own.shape))

    def _first(self, count: int) -> tuple[IntArray, IntArray]:
        which, copy = np.array(self.places[:count], dtype=np.int64).reshape(-1, 2).T
        return which, copy

    def _chosen(self, count: int, products: FloatArray, alone: FloatArray) -> FloatArray:
        """First features from all products (m, J, copies), or (m, J, copies, T), and the column by itself (m, q)."""
        which, copy = self._first(count)
        _, _, _, *points = products.shape
        out = np.empty((len(products), count, *points))
        own = which == 0
        out[:, own] = alone[:, copy[own]].reshape(len(products), -1, *(1 for _ in points))
        out[:, ~own] = products[:, which[~own] - 1, copy[~own]]
        return out

    def features(self, seen: Mapping[str, Any], count: int) -> FloatArray:
        """Products; zero of rows without a public level."""
        own, most = seen[self.by.column], int(self._first(count)[0].max(initial=0))
        of, by = self.of.features(seen, most)[:, :, None], self.by.values(own)[:, None, :]
        products = of * (by if self.separable else by[..., None])
        return self._chosen(count, products, self.by.alone(own))

    def axes(self, columns: Mapping[str, Column]) -> dict[str, FloatArray | tuple[Any, ...]]:
        """Levels first, then those of the term."""
        own: dict[str, FloatArray | tuple[Any, ...]] = {}
        if isinstance(self.by, ByLevels):
            own[self.by.column] = column_of(columns, self.by.column, LabelColumn).levels
        return {**own, **self.of.axes(columns)}

    def effect(self, columns: Mapping[str, Column], count: int, *points: Any) -> FloatArray:
        """For a unit of the number, or at each level; beside the term itself about what it is on average."""
        most, column = int(self._first(count)[0].max(initial=0)), columns[self.by.column]
        if isinstance(self.by, ByNumber):
            slope, alone = self.by.slopes(column)
            own = self.of.effect(columns, most, *points)[:, :, None] * slope
            return self._chosen(count, own, np.full((len(own), 1), alone * self.of.of_values))
        assert isinstance(column, LabelColumn)
        own = self.of.effect(columns, most, *points[1:])
        copies = self.by.table[places_of_levels(column, points[0])]
        products = (own[None, :, :, None] * copies[:, None, None, :]).reshape(-1, most, copies.shape[1])
        return self._chosen(count, products, np.zeros((len(products), len(self.by.table) - 1)))
