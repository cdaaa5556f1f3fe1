"""Observations that come in chunks: the fit of many terms to them goes through the chunks, and keeps sums."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any, Protocol, TypeVar

import numpy as np

from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import InputError
from fdadp.functional.tables.records import Records, SeenRows, TrainingSummary
from fdadp.solve.fit.observations import Observations
from fdadp.solve.form.family import Family
from fdadp.solve.form.long_form import LongForm, LongSums, System
from fdadp.solve.form.weighted import Blocks, Elsewhere, Observed, Remembered, add_systems, weighted_system

A = TypeVar("A")


class ChunkedSource(Protocol):
    """Chunks of observations that can be gone through more than once."""

    def over(
        self,
        function: Callable[[Observations], A],
        merge: Callable[[A, A], A],
        finish: Callable[[A], Any] | None = None,
    ) -> Any:
        """Merge what a function makes of each chunk; `finish` is of their sum, computed where the rows are."""

    def here(self) -> Iterator[Observations] | None:
        """The chunks, where they are in this process."""


@dataclass(frozen=True)
class ChunkedObservations:
    """What :class:`fdadp.solve.fit.observations.Observations` is, for responses on a grid that are read in chunks.

    Attributes
    ----------
    source : Chunks
        Responses on the grid, NaN where nothing was observed.
    n : int
        Number of records.
    level : float
        Mean of the responses less their offsets.
    mean : float
        Mean of the responses themselves.
    squares : float
        Sum of their squares about it.
    whole : bool
        Whether all of them were observed, with the same weight.
    weighted : bool
        Whether they have weights.
    subtracted : float
        What is taken away from responses.
    """

    source: ChunkedSource
    n: int
    level: float
    mean: float
    squares: float
    whole: bool
    weighted: bool
    subtracted: float = 0.0

    @classmethod
    def seen(cls, source: ChunkedSource, t: FloatArray | None) -> tuple[ChunkedObservations, TrainingSummary]:
        """Look at all chunks once: at the responses, and at what fixes the bases of terms.

        Parameters
        ----------
        source : Chunks
        t : ndarray of shape (T,) or None
            Points of the responses; None: numbers.

        Notes
        -----
        Where responses have gaps, the chunks are read once more, and the record and the point of each observation are
        kept: 16 bytes for each.

        Raises
        ------
        InputError
            No response that was observed with a positive weight.
        """
        found: _Found
        rows: SeenRows
        found, rows = source.over(_looked_at, _both)
        if found.weight <= 0:
            raise InputError("weights must not all be 0" if found.weighted else "responses must not all be missing")
        observed = None
        if found.gaps and t is not None:
            made = source.over(partial(_made, t), operator.add)
            record, at = zip(*made, strict=True)
            observed = np.concatenate(record), np.concatenate(at)
        seen = rows.all_of(partial(_over_records, source), observed)
        whole = not (found.gaps or found.weighted)
        return cls(source, seen.n, found.level, found.mean, found.squares, whole, found.weighted), seen

    def over(
        self,
        function: Callable[[Observations], A],
        merge: Callable[[A, A], A],
        finish: Callable[[A], Any] | None = None,
    ) -> Any:
        """Merge what a function makes of each chunk."""
        return self.source.over(partial(_of_lower, self.subtracted, function), merge, finish)

    def in_blocks(self, form: LongForm, placeholder: float) -> Blocks:
        """Rows of the long form with their responses; `placeholder` stands where none was observed."""
        if self.source.here() is None:
            return Elsewhere(partial(_over_blocks, self, form, placeholder))
        return Remembered(partial(_blocks_here, self, form, placeholder))

    def below(self, level: float) -> ChunkedObservations:
        """The same with lower responses."""
        return replace(self, level=self.level - level, subtracted=self.subtracted + level)

    def system(self, form: LongForm) -> System:
        """Normal equations of least squares."""
        if not self.whole:
            found: System = self.over(partial(_weighted, form), add_systems)
            return found
        sums: LongSums = self.over(partial(_sums, form), LongSums.merge)
        return sums.system(form)

    def of_some(self, rows: IntArray, function: Callable[[Observations], Any]) -> Any:
        """What a function makes of those of some records, in order; computed where these are."""
        return self.over(partial(_some, rows), operator.add, partial(_together, function))

    def null_deviance(self, family: Family) -> float:
        """Deviance of a model that is one mean."""
        if family.name == "gaussian":
            return self.squares
        about = float(family.predictor(np.array(self.mean)))
        return float(2 * self.over(partial(_half_deviance, family, about), operator.add))


@dataclass
class _Found:
    """Of the responses of some rows: weight, mean, sum of squares about it, and mean less offsets."""

    gaps: bool = False
    weighted: bool = False
    weight: float = 0.0
    mean: float = 0.0
    level: float = 0.0
    squares: float = 0.0

    @classmethod
    def of(cls, chunk: Observations) -> _Found:
        """Of a chunk."""
        weights = chunk.used
        here = weights > 0
        found = cls(bool(np.isnan(chunk.y).any()), chunk.weighted)
        if here.any():
            y, w = chunk.y[here], weights[here]
            found.weight, found.level = float(w.sum()), chunk.level
            found.mean = float(w @ y) / found.weight
            found.squares = float(w @ (y - found.mean) ** 2)
        return found

    def merge(self, other: _Found) -> _Found:
        """By parts as in Chan, Golub & LeVeque (1983), doi:10.1080/00031305.1983.10483115."""
        self.gaps |= other.gaps
        self.weighted |= other.weighted
        total = self.weight + other.weight
        if other.weight > 0:
            share = other.weight / total
            self.squares += other.squares + (other.mean - self.mean) ** 2 * self.weight * share
            self.mean += (other.mean - self.mean) * share
            self.level += (other.level - self.level) * share
            self.weight = total
        return self


def _looked_at(chunk: Observations) -> tuple[_Found, SeenRows]:
    return _Found.of(chunk), SeenRows.of(chunk.records, chunk.of_records)


def _both(a: tuple[_Found, SeenRows], b: tuple[_Found, SeenRows]) -> tuple[_Found, SeenRows]:
    return a[0].merge(b[0]), a[1].merge(b[1])


def _made(t: FloatArray, chunk: Observations) -> list[tuple[IntArray, FloatArray]]:
    record, at = np.nonzero(~np.isnan(chunk.y))
    return [(record + chunk.records.first, t[at])]


def _over_records(
    source: ChunkedSource, function: Callable[[Records], A], merge: Callable[[A, A], A], finish: Any = None
) -> Any:
    return source.over(partial(_of_records, function), merge, finish)


def _of_records(function: Callable[[Records], A], chunk: Observations) -> A:
    return function(chunk.records)


def _of_lower(level: float, function: Callable[[Observations], A], chunk: Observations) -> A:
    return function(chunk.below(level))


def _over_blocks(
    chunks: ChunkedObservations,
    form: LongForm,
    placeholder: float,
    function: Callable[[Observed], A],
    merge: Callable[[A, A], A],
) -> A:
    found: A = chunks.over(partial(_of_blocks, form, placeholder, function, merge), merge)
    return found


def _of_blocks(
    form: LongForm,
    placeholder: float,
    function: Callable[[Observed], A],
    merge: Callable[[A, A], A],
    chunk: Observations,
) -> A:
    return reduce(merge, map(function, chunk.blocks(form, placeholder)))


def _blocks_here(chunks: ChunkedObservations, form: LongForm, placeholder: float) -> Iterator[Observed]:
    for chunk in chunks.source.here() or ():
        yield from chunk.below(chunks.subtracted).blocks(form, placeholder)


def _weighted(form: LongForm, chunk: Observations) -> System:
    return weighted_system(chunk.blocks(form, 0.0))


def _sums(form: LongForm, chunk: Observations) -> LongSums:
    return LongSums.over(form, ((part.records, part.y) for part in chunk.without_offset().parts()))


def _some(rows: IntArray, chunk: Observations) -> list[Observations]:
    own = rows - chunk.records.first
    own = own[(own >= 0) & (own < chunk.n)]
    return [chunk.some(own)] if own.size else []


def _together(function: Callable[[Observations], A], parts: list[Observations]) -> A:
    return function(Observations.together(parts))


def _half_deviance(family: Family, about: float, chunk: Observations) -> float:
    here = chunk.used > 0
    y = chunk.y[here]
    return float(chunk.used[here] @ family.half_deviance(y, np.full(y.size, about)))
